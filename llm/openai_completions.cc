#include "llm/openai_completions.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "llm/model_errors.h"
#include "llm/openai_chunk.h"
#include "llm/sse.h"

namespace llm {

namespace {

using base::ErrorCode;
using base::Json;

constexpr std::size_t max_whole_answer = 64u << 20;

// Servers parse replayed arguments and fail on what is no object; the model still sees what it wrote.
std::string replayed_arguments(const std::string& arguments) {
  if (base::trim(arguments).empty()) return "{}";
  const auto parsed = base::parse_json(arguments);
  if (parsed && parsed->is_object()) return arguments;
  return "{\"invalid_arguments\":" + base::quote(arguments) + "}";
}

// Reads the body of one answer: events, or one JSON value from servers that do not stream although asked to.
class AnswerReader {
 public:
  explicit AnswerReader(const StreamSink& sink) : assembler(sink) {}

  bool take(std::string_view bytes, bool& progress) {
    if (!decided_) {
      const std::size_t start = bytes.find_first_not_of(" \t\r\n");
      if (start == std::string_view::npos) return true;
      const char first = bytes[start];
      whole_ = first == '{' || first == '[' || first == '<';
      decided_ = true;
    }
    if (whole_) {
      progress = true;
      body_.append(bytes);
      return body_.size() <= max_whole_answer;
    }
    auto fed = parser_.feed(bytes, [&](const SseEvent& event) {
      const ChunkAssembler::Fed what = assembler.feed(event.name, event.data);
      if (what == ChunkAssembler::Fed::content) progress = true;
      return what == ChunkAssembler::Fed::content || what == ChunkAssembler::Fed::nothing;
    });
    if (fed) return *fed;
    broken_ = std::move(fed.error());
    return false;
  }

  // `cut`: the body did not reach its end.
  tl::expected<Completion, ModelError> finish(bool cut) {
    if (broken_)
      return tl::unexpected(ModelError{*broken_, false, -1, assembler.anything_streamed(), assembler.partial()});
    if (!decided_) {
      return tl::unexpected(
          ModelError{{ErrorCode::cut_stream, "the model server sent an empty answer", {}}, true, -1, false, {}});
    }
    if (!whole_) {
      if (!cut) {
        const auto ignored = parser_.finish([&](const SseEvent& event) {
          assembler.feed(event.name, event.data, true);
          return true;
        });
        (void)ignored;
      }
      if (assembler.empty() && !assembler.failure() && !assembler.ended() && !cut)
        return unreadable("no event of an answer");
      return assembler.finish();
    }
    if (body_.size() > max_whole_answer) return unreadable("more than 64 MiB");
    const std::string_view body = base::trim(body_);
    if (body.front() == '<') return unreadable("an HTML page; check base_url");
    assembler.feed("", body, true);
    if (assembler.empty() && !assembler.failure()) {
      return base::parse_json(body) || !cut ? unreadable("JSON that is no chat completion") : assembler.finish();
    }
    if (!assembler.failure()) assembler.feed("", "[DONE]");  // whole: a missing finish reason does not matter
    return assembler.finish();
  }

  ChunkAssembler assembler;

 private:
  tl::expected<Completion, ModelError> unreadable(const std::string& what) {
    return tl::unexpected(ModelError{{ErrorCode::malformed, "the model server answered 200 with " + what,
                                      base::ellipsize(base::to_utf8(body_), 300)},
                                     false,
                                     -1,
                                     assembler.anything_streamed(),
                                     assembler.partial()});
  }

  SseParser parser_;
  bool decided_ = false, whole_ = false;
  std::string body_;
  std::optional<base::Error> broken_;
};

}  // namespace

OpenAiCompletions::OpenAiCompletions(OpenAiOptions options, HttpPost post)
    : options_(std::move(options)), post_(std::move(post)) {}

std::string OpenAiCompletions::encode(const Message& message) const {
  switch (message.role) {
    case Role::user:
      return "{\"role\":\"user\",\"content\":" + base::quote(message.text) + "}";
    case Role::tool:
      return "{\"role\":\"tool\",\"tool_call_id\":" + base::quote(message.tool_call_id) +
             ",\"content\":" + base::quote(message.text) + "}";
    case Role::assistant:
      break;
  }
  const bool text = !message.text.empty();
  if (!text && message.tool_calls.empty()) return {};  // no server takes it
  // With calls and no text: null, which most servers take ("" is refused by some, a missing member by others).
  std::string out = "{\"role\":\"assistant\",\"content\":" + (text ? base::quote(message.text) : std::string("null"));
  if (!message.tool_calls.empty()) {
    if (!options_.reasoning_field.empty()) {
      out += "," + base::quote(options_.reasoning_field) + ":" + base::quote(message.reasoning);
    }
    out += ",\"tool_calls\":[";
    bool first = true;
    for (const ToolCall& call : message.tool_calls) {
      if (!first) out += ",";
      first = false;
      out += "{\"id\":" + base::quote(call.id) +
             ",\"type\":\"function\",\"function\":{\"name\":" + base::quote(call.name) +
             ",\"arguments\":" + base::quote(replayed_arguments(call.arguments)) + "}}";
    }
    out += "]";
  }
  return out + "}";
}

std::string OpenAiCompletions::make_head(const RequestHeader& header, bool ask_usage) {
  std::string out = "{\"model\":" + base::quote(header.model) + ",\"stream\":true";
  if (ask_usage) out += ",\"stream_options\":{\"include_usage\":true}";
  if (const auto params = base::parse_json(header.params); params && params->is_object()) {
    for (const auto& [name, value] : params->items()) {
      if (name == "messages" || name == "tools" || name == "model" || name == "stream") continue;
      out += "," + base::quote(name) + ":" + base::dump(value);
    }
  }
  if (!header.tools.empty()) {
    out += ",\"tools\":[";
    bool first = true;
    for (const ToolSpec& tool : header.tools) {
      if (!first) out += ",";
      first = false;
      out += "{\"type\":\"function\",\"function\":{\"name\":" + base::quote(tool.name) +
             ",\"description\":" + base::quote(tool.description) + ",\"parameters\":" +
             (tool.parameters.empty() ? std::string("{\"type\":\"object\",\"properties\":{}}") : tool.parameters) +
             "}}";
    }
    out += "]";
  }
  out += ",\"messages\":[";
  if (!header.system.empty()) out += "{\"role\":\"system\",\"content\":" + base::quote(header.system) + "}";
  return out;
}

std::string OpenAiCompletions::head(const RequestHeader& header) const { return make_head(header, true); }

tl::expected<Completion, ModelError> OpenAiCompletions::complete(const RequestHeader& header,
                                                                 const std::vector<WireMessage>& messages,
                                                                 const StreamSink& sink, std::stop_token stop) {
  const bool ask_usage = !usage_refused_;
  auto result = request(join_body(make_head(header, ask_usage), messages), sink, stop);
  if (!result && ask_usage && result.error().error.code == ErrorCode::bad_request &&
      (base::contains_ignoring_case(result.error().error.message, "stream_options") ||
       base::contains_ignoring_case(result.error().error.message, "include_usage"))) {
    usage_refused_ = true;  // token counts are missing from now on; that is better than no answer
    result = request(join_body(make_head(header, false), messages), sink, std::move(stop));
  }
  if (!result) redact(result.error());
  return result;
}

tl::expected<Completion, ModelError> OpenAiCompletions::request(std::string body, const StreamSink& sink,
                                                                std::stop_token stop) {
  HttpRequest request;
  request.url = options_.url;
  request.body = std::move(body);
  request.limits = options_.limits;
  request.headers = options_.headers;
  request.headers.emplace_back("Content-Type", "application/json");
  request.headers.emplace_back("Accept", "text/event-stream");
  if (!options_.key.empty()) request.headers.emplace_back("Authorization", "Bearer " + options_.key);

  AnswerReader reader(sink);
  HttpSink http_sink;
  http_sink.on_body = [&](std::string_view bytes, bool& progress) { return reader.take(bytes, progress); };
  auto response = post_(request, http_sink, std::move(stop));
  if (!response) {
    // Once the server had said that the answer is complete, how the connection ends does not matter.
    if (response.error().code != ErrorCode::cancelled && (reader.assembler.ended() || reader.assembler.failure())) {
      return reader.finish(true);
    }
    ModelError error = transport_failure(std::move(response.error()));
    error.anything_streamed = reader.assembler.anything_streamed();
    error.partial = reader.assembler.partial();
    return tl::unexpected(std::move(error));
  }
  if (response->status / 100 != 2) {
    return tl::unexpected(
        http_failure(response->status, response->headers, response->error_body, std::chrono::system_clock::now()));
  }
  return reader.finish(false);
}

// A server may repeat what it was sent, its own headers included.
void OpenAiCompletions::redact(ModelError& error) const {
  const auto hide = [&](const std::string& secret) {
    if (secret.size() < 6) return;
    for (std::string* text : {&error.error.message, &error.error.detail}) {
      for (std::size_t at; (at = text->find(secret)) != std::string::npos;) text->replace(at, secret.size(), "(key)");
      // Foreign text is cut to a length: the cut may go through the key.
      constexpr std::string_view mark = "…";
      if (!text->ends_with(mark)) continue;
      const std::string_view kept = std::string_view(*text).substr(0, text->size() - mark.size());
      for (std::size_t n = std::min(secret.size() - 1, kept.size()); n >= 4; --n) {
        if (!kept.ends_with(std::string_view(secret).substr(0, n))) continue;
        text->replace(kept.size() - n, n, "(key)");
        break;
      }
    }
  };
  hide(options_.key);
  for (const auto& [name, value] : options_.headers) hide(value);
}

}  // namespace llm

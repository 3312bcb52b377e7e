#include "llm/openai_chunk.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"
#include "llm/model_errors.h"

namespace llm {

namespace {

using base::ErrorCode;
using base::Json;

constexpr std::size_t max_answer_bytes = 64u << 20;  // no model answers more; an endless one must not eat the memory
constexpr std::size_t max_calls = 512;

std::string_view string_member(const Json& object, std::string_view key) {
  const Json* value = base::find(object, key);
  if (value == nullptr || !value->is_string()) return {};
  return value->get_ref<const Json::string_t&>();
}

std::int64_t count_member(const Json& object, std::string_view key) {
  return std::max<std::int64_t>(base::get_int(object, key).value_or(0), 0);
}

// Null unless the member is an object.
const Json* object_member(const Json& object, std::string_view key) {
  const Json* value = base::find(object, key);
  return value != nullptr && value->is_object() ? value : nullptr;
}

bool is_json_object(std::string_view text) {
  const auto parsed = base::parse_json(text);
  return parsed && parsed->is_object();
}

}  // namespace

ChunkAssembler::Fed ChunkAssembler::feed(std::string_view name, std::string_view data, bool last) {
  const std::string_view trimmed = base::trim(data);
  if (trimmed == "[DONE]") {
    done_ = true;
    return Fed::done;
  }
  if (trimmed.empty()) return Fed::nothing;
  if (trimmed.front() == ':') {
    base::log_info("a comment of the model server arrived as data and was skipped");
    return Fed::nothing;
  }
  auto parsed = base::parse_json(trimmed);
  if (!parsed && !base::valid_utf8(trimmed)) parsed = base::parse_json(base::to_utf8(trimmed));  // a torn character
  if (!parsed) {
    if (name == "error") {
      failure_ = stream_failure(Json(base::to_utf8(trimmed)));
      return Fed::error;
    }
    if (last) return Fed::nothing;
    failure_ =
        ModelError{{ErrorCode::malformed, "the model server sent an event that is not JSON: " + parsed.error().message,
                    base::ellipsize(base::to_utf8(trimmed), 300)},
                   false,
                   -1,
                   false,
                   {}};
    return Fed::error;
  }
  const Json& chunk = *parsed;
  if (const Json* error = stream_error(chunk, name)) {
    failure_ = stream_failure(*error);
    return Fed::error;
  }
  if (!chunk.is_object()) return Fed::nothing;
  bool content = false;
  if (const Json* choices = base::find(chunk, "choices"); choices != nullptr && choices->is_array()) {
    for (const Json& choice : *choices) {
      if (!choice.is_object() || base::get_int(choice, "index").value_or(0) != 0) continue;  // one answer was asked for
      content = take_choice(choice) || content;
      break;
    }
    ++events_;
  }
  if (const Json* usage = object_member(chunk, "usage")) {
    take_usage(*usage);
    ++events_;
  } else if (const Json* groq = object_member(chunk, "x_groq"); groq != nullptr && object_member(*groq, "usage")) {
    take_usage(*object_member(*groq, "usage"));
  }
  if (oversized_) {
    failure_ =
        ModelError{{ErrorCode::malformed, "the model's answer is longer than 64 MiB or has too many tool calls", {}},
                   false,
                   -1,
                   false,
                   {}};
    return Fed::error;
  }
  if (failure_) return Fed::error;
  return content ? Fed::content : Fed::nothing;
}

bool ChunkAssembler::take_choice(const Json& choice) {
  bool content = false;
  const Json* delta = object_member(choice, "delta");
  if (delta == nullptr) delta = object_member(choice, "message");  // a whole answer
  if (delta != nullptr) content = take_delta(*delta);
  if (const Json* usage = object_member(choice, "usage")) take_usage(*usage);
  const std::string_view reason = string_member(choice, "finish_reason");
  if (reason.empty()) return content;
  finish_ = std::string(reason);
  if (reason == "model_context_window_exceeded") {
    failure_ =
        ModelError{{ErrorCode::context_overflow, "the conversation is longer than the model's context window", {}},
                   false,
                   -1,
                   false,
                   {}};
  } else if (reason == "error" || reason == "network_error") {
    failure_ = ModelError{
        {ErrorCode::server, "the model server broke the answer off (finish reason " + std::string(reason) + ")", {}},
        true,
        -1,
        false,
        {}};
  }
  return true;
}

bool ChunkAssembler::take_delta(const Json& delta) {
  bool content = false;
  // Some servers send the same thought under both names.
  std::string_view thought = string_member(delta, "reasoning_content");
  if (thought.empty()) thought = string_member(delta, "reasoning");
  content = reasoning(thought) || content;
  if (const Json* value = base::find(delta, "content")) content = take_content(*value) || content;
  content = text(string_member(delta, "refusal")) || content;
  if (const Json* calls = base::find(delta, "tool_calls"); calls != nullptr && calls->is_array()) {
    for (const Json& fragment : *calls) {
      if (!fragment.is_object()) continue;
      take_call(fragment);
      content = true;
    }
  }
  return content;
}

// A string, or parts: {type: "text", text}, {type: "thinking", thinking: [parts] or string}.
bool ChunkAssembler::take_content(const Json& content) {
  if (content.is_string()) return text(content.get_ref<const Json::string_t&>());
  bool any = false;
  if (!content.is_array()) return any;
  for (const Json& part : content) {
    any = text(string_member(part, "text")) || any;
    if (const Json* thinking = base::find(part, "thinking")) {
      if (thinking->is_string()) any = reasoning(thinking->get_ref<const Json::string_t&>()) || any;
      if (!thinking->is_array()) continue;
      for (const Json& inner : *thinking) any = reasoning(string_member(inner, "text")) || any;
    }
  }
  return any;
}

bool ChunkAssembler::grow(std::size_t bytes) {
  size_ += bytes;
  if (size_ > max_answer_bytes) oversized_ = true;
  return !oversized_;
}

bool ChunkAssembler::text(std::string_view piece) {
  if (piece.empty() || !grow(piece.size())) return false;
  text_.append(piece);
  streamed_ = true;
  if (sink_.on_text) sink_.on_text(piece);
  return true;
}

bool ChunkAssembler::reasoning(std::string_view piece) {
  if (piece.empty() || !grow(piece.size())) return false;
  reasoning_.append(piece);
  streamed_ = true;
  if (sink_.on_reasoning) sink_.on_reasoning(piece);
  return true;
}

// Which call a fragment belongs to. An id decides where there is one (servers give every parallel call index 0); the
// same id under another index is another call. Without an id the index does, and without both a name starts a call.
ChunkAssembler::Call& ChunkAssembler::call_for(const Json& fragment, std::string_view id, std::string_view name,
                                               bool has_arguments) {
  const std::optional<std::int64_t> index = base::get_int(fragment, "index");
  const auto same_index = [&](const Call& call) { return !index || !call.index || *call.index == *index; };
  const auto start = [&]() -> Call& {
    if (calls_.size() >= max_calls) {
      oversized_ = true;
      return calls_.back();
    }
    calls_.push_back(Call{index, std::string(id), {}, {}});
    return calls_.back();
  };
  if (!id.empty()) {
    for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
      if (call->id == id && same_index(*call)) return *call;
    }
    if (index && !calls_.empty() && calls_.back().id.empty() && calls_.back().index == index) {
      calls_.back().id = id;  // its first fragment had none
      return calls_.back();
    }
    return start();
  }
  if (index) {
    for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
      if (call->index != index) continue;
      // No ids, every call at index 0: a name with arguments after complete arguments is the next call.
      const bool next = call->id.empty() && !name.empty() && has_arguments && is_json_object(call->arguments);
      return next ? start() : *call;
    }
    return start();
  }
  if (calls_.empty()) return start();
  return name.empty() || calls_.back().arguments.empty() ? calls_.back() : start();
}

void ChunkAssembler::take_call(const Json& fragment) {
  const Json* function = object_member(fragment, "function");
  const Json& source = function != nullptr ? *function : fragment;
  const std::string_view name = string_member(source, "name");
  const Json* arguments = base::find(source, "arguments");
  const bool has_arguments = arguments != nullptr && !arguments->is_null() &&
                             !(arguments->is_string() && arguments->get_ref<const Json::string_t&>().empty());
  Call& call = call_for(fragment, string_member(fragment, "id"), name, has_arguments);
  if (!grow(name.size())) return;
  // Names come once, with every fragment, or in pieces.
  if (call.name.empty() || (name.size() > call.name.size() && name.starts_with(call.name))) {
    call.name = name;
  } else if (!call.name.starts_with(name)) {
    call.name.append(name);
  }
  if (!has_arguments) return;
  if (arguments->is_string()) {
    const auto& piece = arguments->get_ref<const Json::string_t&>();
    if (grow(piece.size())) call.arguments.append(piece);
  } else if (arguments->is_structured()) {
    std::string whole = base::dump(*arguments);
    if (grow(whole.size())) call.arguments = std::move(whole);
  }
}

void ChunkAssembler::take_usage(const Json& usage) {
  Usage result;
  const bool openai_names = base::find(usage, "prompt_tokens") != nullptr;
  result.input_tokens = count_member(usage, openai_names ? "prompt_tokens" : "input_tokens");
  result.output_tokens =
      count_member(usage, base::find(usage, "completion_tokens") != nullptr ? "completion_tokens" : "output_tokens");
  if (const Json* details = object_member(usage, "prompt_tokens_details")) {
    result.cached_tokens = count_member(*details, "cached_tokens");
  } else if (base::find(usage, "prompt_cache_hit_tokens") != nullptr) {
    result.cached_tokens = count_member(usage, "prompt_cache_hit_tokens");
  } else if (base::find(usage, "cached_tokens") != nullptr) {
    result.cached_tokens = count_member(usage, "cached_tokens");
  }
  // Anthropic's names count what was read from the cache beside the input; behind OpenAI's names it is mostly included.
  const std::int64_t read = count_member(usage, "cache_read_input_tokens");
  if (read > 0 && result.cached_tokens == 0) {
    result.cached_tokens = read;
    if (!openai_names || read > result.input_tokens) {
      result.input_tokens += read + count_member(usage, "cache_creation_input_tokens");
    }
  }
  if (const Json* details = object_member(usage, "completion_tokens_details")) {
    result.reasoning_tokens = count_member(*details, "reasoning_tokens");
  }
  if (result.input_tokens == 0 && result.output_tokens == 0) return;  // placeholders of early chunks
  usage_ = result;
}

Message ChunkAssembler::partial() const {
  Message message;
  message.role = Role::assistant;
  message.text = text_;
  message.reasoning = reasoning_;
  return message;
}

ModelError ChunkAssembler::incomplete() const {
  return ModelError{{ErrorCode::cut_stream, "the model server ended the stream before the answer was complete", {}},
                    true,
                    -1,
                    streamed_,
                    partial()};
}

tl::expected<Completion, ModelError> ChunkAssembler::finish() {
  if (failure_) {
    ModelError error = *failure_;
    error.anything_streamed = streamed_;
    error.partial = partial();
    return tl::unexpected(std::move(error));
  }
  // Calls that are complete are no sign of the end: more of them, or of the text they belong to, may have been lost.
  if (!ended()) return tl::unexpected(incomplete());
  Completion completion;
  completion.message = partial();
  completion.usage = usage_;
  const std::string reason = finish_.value_or("");
  const bool at_limit = reason == "length" || reason == "max_tokens" || reason == "max_output_tokens";
  for (Call& call : calls_) {
    const bool whole = is_json_object(call.arguments);
    const bool none = base::trim(call.arguments).empty();
    if (call.name.empty() && call.id.empty() && none && !at_limit) continue;  // a placeholder, no call
    if (call.name.empty() || (at_limit && !whole)) {
      ++completion.dropped_calls;
      continue;
    }
    completion.message.tool_calls.push_back(
        ToolCall{std::move(call.id), std::move(call.name), none ? "{}" : std::move(call.arguments)});
  }
  std::vector<ToolCall>& calls = completion.message.tool_calls;
  int made_up = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto taken = [&](const std::string& id) {
      return id.empty() || std::any_of(calls.begin(), calls.end(),
                                       [&](const ToolCall& other) { return &other != &calls[i] && other.id == id; });
    };
    while (taken(calls[i].id)) calls[i].id = "call_" + std::to_string(++made_up);
  }
  if (at_limit) {
    completion.finish = FinishReason::max_tokens;
  } else if (reason == "content_filter") {
    completion.finish = FinishReason::content_filter;
  } else if (!calls.empty()) {
    completion.finish = FinishReason::tool_calls;
  } else if (reason.empty() || reason == "stop" || reason == "tool_calls" || reason == "function_call" ||
             reason == "eos" || reason == "end_turn") {
    completion.finish = FinishReason::stop;
  } else {
    completion.finish = FinishReason::other;
  }
  const bool may_be_empty =
      completion.finish == FinishReason::max_tokens || completion.finish == FinishReason::content_filter;
  if (calls.empty() && base::trim(completion.message.text).empty() && !may_be_empty) {
    const std::string what = reasoning_.empty() ? "nothing" : "only reasoning, no answer";
    return tl::unexpected(
        ModelError{{ErrorCode::empty_response, "the model answered with " + what, {}}, true, -1, streamed_, partial()});
  }
  return completion;
}

}  // namespace llm

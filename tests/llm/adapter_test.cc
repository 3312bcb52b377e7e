// The adapter over a scripted HttpPost: what is sent, and how what comes back is read.
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "llm/openai_completions.h"

namespace {

using base::ErrorCode;
using llm::FinishReason;
using llm::Message;
using llm::Role;

// One scripted answer: pieces of a body, a status, or a failure after the pieces.
struct Script {
  int status = 200;
  std::vector<std::string> pieces;
  std::optional<base::Error> failure;
  std::multimap<std::string, std::string> headers;
};

struct Fixture {
  std::deque<Script> scripts;
  std::vector<llm::HttpRequest> requests;
  std::vector<bool> progress;
  bool stopped_by_reader = false;
  std::string text, reasoning;
  llm::OpenAiOptions options;
  llm::RequestHeader header;

  Fixture() {
    options.url = "https://h.example/v1/chat/completions";
    options.key = "sk-very-secret-key";
    header.model = "m";
  }

  llm::HttpPost post() {
    return [this](const llm::HttpRequest& request, const llm::HttpSink& sink,
                  std::stop_token) -> base::Result<llm::HttpResponse> {
      requests.push_back(request);
      Script script = scripts.front();
      scripts.pop_front();
      llm::HttpResponse response;
      response.status = script.status;
      response.headers = script.headers;
      if (script.status / 100 != 2) {
        for (const auto& piece : script.pieces) response.error_body += piece;
        return response;
      }
      for (const auto& piece : script.pieces) {
        bool moved = false;
        const bool go_on = sink.on_body(piece, moved);
        progress.push_back(moved);
        if (!go_on) {
          stopped_by_reader = true;
          return response;
        }
      }
      if (script.failure) return tl::unexpected(*script.failure);
      return response;
    };
  }

  tl::expected<llm::Completion, llm::ModelError> complete(const std::vector<Message>& messages = {}) {
    llm::OpenAiCompletions adapter(options, post());
    return complete_on(adapter, messages);
  }
  tl::expected<llm::Completion, llm::ModelError> complete_on(llm::OpenAiCompletions& adapter,
                                                             const std::vector<Message>& messages = {}) {
    std::vector<llm::WireMessage> wire;
    for (const auto& message : messages) wire.push_back(std::make_shared<const std::string>(adapter.encode(message)));
    const llm::StreamSink sink{[this](std::string_view piece) { text += piece; },
                               [this](std::string_view piece) { reasoning += piece; }};
    return adapter.complete(header, wire, sink, {});
  }
};

Message user(std::string text) {
  Message message;
  message.text = std::move(text);
  return message;
}
Message assistant(std::string text, std::vector<llm::ToolCall> calls, std::string reasoning = {}) {
  Message message;
  message.role = Role::assistant;
  message.text = std::move(text);
  message.tool_calls = std::move(calls);
  message.reasoning = std::move(reasoning);
  return message;
}

const std::string stream =
    ": OPENROUTER PROCESSING\r\n\r\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n"
    "data:{\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"d\xC3\xA9j\xC3\xA0\"}}]}\n\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xF0\x9F\x98\x80 ok\"}}]}\n\n"
    "data: "
    "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"type\":\"function\","
    "\"function\":{\"name\":\"bash\",\"arguments\":\"\"}}]}}]}\n\n"
    "data: "
    "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"command\\\":"
    "\"}}]}}]}\n\n"
    "data: "
    "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"ls\\\"}\"}}]}"
    "}]}\n\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3}}\n\n"
    "data: [DONE]\n\n";

}  // namespace

TEST_CASE("the request", "[adapter]") {
  Fixture f;
  f.header.system = "Be \"brief\".";
  f.header.params = R"({"max_tokens":100,"messages":"no","temperature":0.5})";
  f.header.tools = {{"bash", "Runs a command.", R"({"type":"object","properties":{"command":{"type":"string"}}})"},
                    {"noop", "", ""}};
  f.options.headers = {{"X-Extra", "extra-value"}};
  f.scripts = {{200, {stream}, {}, {}}};
  REQUIRE(
      f.complete({user("hi\xFF"), assistant("", {{"c1", "bash", "{}"}}), Message{Role::tool, "out", "", {}, "c1"}}));
  REQUIRE(f.requests.size() == 1);
  const auto& request = f.requests[0];
  CHECK(request.body ==
        "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"max_tokens\":100,"
        "\"temperature\":0.5,"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"bash\",\"description\":\"Runs a "
        "command.\",\"parameters\":"
        "{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\"}}}}},{\"type\":\"function\","
        "\"function\":{\"name\":"
        "\"noop\",\"description\":\"\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}}],\"messages\":["
        "{\"role\":\"system\",\"content\":\"Be \\\"brief\\\".\"},{\"role\":\"user\",\"content\":\"hi\xEF\xBF\xBD\"},"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{"
        "\"name\":"
        "\"bash\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"out\"}]}");
  const std::vector<std::pair<std::string, std::string>> expected = {{"X-Extra", "extra-value"},
                                                                     {"Content-Type", "application/json"},
                                                                     {"Accept", "text/event-stream"},
                                                                     {"Authorization", "Bearer sk-very-secret-key"}};
  CHECK(request.headers == expected);
}

TEST_CASE("a body starts with the body of the step before", "[adapter]") {
  Fixture f;
  const llm::OpenAiCompletions adapter(f.options, f.post());
  for (const char* system : {"", "s"}) {
    f.header.system = system;
    std::vector<llm::WireMessage> messages;
    std::string before;
    for (const auto& message : {user("a"), assistant("", {}), assistant("b", {}), user("c")}) {
      messages.push_back(std::make_shared<const std::string>(adapter.encode(message)));
      const std::string body = llm::request_body(adapter, f.header, messages);
      REQUIRE(base::parse_json(body));
      if (!before.empty()) CHECK(body.starts_with(before.substr(0, before.size() - 2)));
      before = body;
    }
  }
}

TEST_CASE("messages that servers refuse are not sent", "[adapter]") {
  Fixture f;
  const llm::OpenAiCompletions plain(f.options, f.post());
  CHECK(plain.encode(assistant("", {}, "only thoughts")).empty());
  CHECK(plain.encode(assistant("t", {}, "thought")) == R"({"role":"assistant","content":"t"})");
  CHECK(plain.encode(assistant("", {{"c", "f", ""}})).find(R"("arguments":"{}")") != std::string::npos);
  CHECK(plain.encode(assistant("", {{"c", "f", "{oops"}})).find(R"("arguments":"{\"invalid_arguments\":\"{oops\"}")") !=
        std::string::npos);
  f.options.reasoning_field = "reasoning_content";
  const llm::OpenAiCompletions deepseek(f.options, f.post());
  CHECK(deepseek.encode(assistant("", {{"c", "f", "{}"}}, "why"))
            .find(R"("content":null,"reasoning_content":"why","tool_calls")") != std::string::npos);
  CHECK(deepseek.encode(assistant("", {{"c", "f", "{}"}})).find(R"("reasoning_content":"")") != std::string::npos);
  CHECK(deepseek.encode(assistant("t", {}, "why")) == R"({"role":"assistant","content":"t"})");
}

TEST_CASE("a stream cut at every byte gives the same answer", "[adapter]") {
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    Fixture f;
    f.scripts = {{200, {stream.substr(0, cut), stream.substr(cut)}, {}, {}}};
    const auto result = f.complete();
    INFO(cut);
    REQUIRE(result);
    CHECK(result->message.text == "\xF0\x9F\x98\x80 ok");
    CHECK(result->message.reasoning == "d\xC3\xA9j\xC3\xA0");
    REQUIRE(result->message.tool_calls.size() == 1);
    CHECK(result->message.tool_calls[0].arguments == R"({"command":"ls"})");
    CHECK(result->usage->input_tokens == 12);
    CHECK(f.text == result->message.text);
    CHECK(f.reasoning == result->message.reasoning);
    CHECK(f.stopped_by_reader);
  }
}

TEST_CASE("heartbeats are no progress, content is", "[adapter]") {
  Fixture f;
  f.scripts = {{200,
                {": ping\n\n", "data: {\"choices\":[]}\n\n",
                 "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n", "data: [DONE]\n\n"},
                {},
                {}}};
  REQUIRE(f.complete());
  CHECK(f.progress == std::vector<bool>{false, false, true, false});
}

TEST_CASE("[DONE] ends reading at once", "[adapter]") {
  Fixture f;
  f.scripts = {{200, {stream, "never read"}, {}, {}}};
  REQUIRE(f.complete());
  CHECK(f.progress.size() == 1);
}

TEST_CASE("a whole JSON answer although a stream was asked for", "[adapter]") {
  const std::string whole =
      R"({"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hello","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]},"finish_reason":null}],"usage":{"prompt_tokens":1,"completion_tokens":2}})";
  Fixture f;
  f.scripts = {{200, {whole.substr(0, 50), whole.substr(50)}, {}, {}}};
  const auto result = f.complete();
  REQUIRE(result);
  CHECK(result->message.text == "hello");
  CHECK(f.text == "hello");
  REQUIRE(result->message.tool_calls.size() == 1);
  CHECK(result->usage->output_tokens == 2);
}

TEST_CASE("answers that are none", "[adapter]") {
  const auto fails = [](std::vector<std::string> pieces, ErrorCode code, const char* text) {
    Fixture f;
    f.scripts = {{200, std::move(pieces), {}, {}}};
    const auto result = f.complete();
    REQUIRE_FALSE(result);
    INFO(result.error().error.message);
    CHECK(result.error().error.code == code);
    CHECK(result.error().error.message.find(text) != std::string::npos);
  };
  fails({}, ErrorCode::cut_stream, "empty");
  fails({"<!DOCTYPE html><html>"}, ErrorCode::malformed, "HTML");
  fails({"{\"hello\":1}"}, ErrorCode::malformed, "no chat completion");
  fails({"{\"choices\":[{\"mess"}, ErrorCode::malformed, "no chat completion");
  fails({"hello there\n"}, ErrorCode::malformed, "no event");
  fails({"{\"error\":{\"message\":\"whole error\",\"code\":500}}"}, ErrorCode::server, "whole error");
  fails({"data: {\"error\":{\"message\":\"first\"}}\n\n"}, ErrorCode::server, "first");
  fails({"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"choi"}, ErrorCode::cut_stream,
        "before the answer was complete");
  fails({"data: nonsense\n\n"}, ErrorCode::malformed, "not JSON");
}

TEST_CASE("what a cut, a limit and a stop leave behind", "[adapter]") {
  const std::string half = "data: {\"choices\":[{\"delta\":{\"reasoning\":\"r\",\"content\":\"half\"}}]}\n\n";
  for (const ErrorCode code : {ErrorCode::cut_stream, ErrorCode::timed_out, ErrorCode::cancelled}) {
    Fixture f;
    f.scripts = {{200, {half}, base::Error{code, "why", ""}, {}}};
    const auto result = f.complete();
    REQUIRE_FALSE(result);
    CHECK(result.error().error.code == code);
    CHECK(result.error().retryable == (code != ErrorCode::cancelled));
    CHECK(result.error().anything_streamed);
    CHECK(result.error().partial.text == "half");
    CHECK(result.error().partial.reasoning == "r");
    CHECK(result.error().partial.role == Role::assistant);
  }
  Fixture f;  // the end had been announced
  f.scripts = {{200,
                {half, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"},
                base::Error{ErrorCode::cut_stream, "why", ""},
                {}}};
  CHECK(f.complete());
}

TEST_CASE("a connection that closes before the answer's end leaves no call to run", "[adapter]") {
  const std::string call =
      R"(data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]})"
      "\n\n";
  Fixture closed;
  closed.scripts = {{200, {call}, {}, {}}};
  const auto result = closed.complete();
  REQUIRE_FALSE(result);
  CHECK(result.error().error.code == ErrorCode::cut_stream);
  CHECK(result.error().retryable);
  for (const char* end :
       {"data: [DONE]\n\n", "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"}) {
    Fixture whole;
    whole.scripts = {{200, {call, end}, {}, {}}};
    CHECK(whole.complete());
  }
}

TEST_CASE("a refused stream_options is left out from then on", "[adapter]") {
  Fixture f;
  f.scripts = {{400, {R"({"error":{"message":"Unknown parameter: stream_options"}})"}, {}, {}},
               {200, {stream}, {}, {}},
               {200, {stream}, {}, {}}};
  llm::OpenAiCompletions adapter(f.options, f.post());
  REQUIRE(f.complete_on(adapter));
  REQUIRE(f.complete_on(adapter));
  REQUIRE(f.requests.size() == 3);
  CHECK(f.requests[0].body.find("stream_options") != std::string::npos);
  CHECK(f.requests[1].body.find("stream_options") == std::string::npos);
  CHECK(f.requests[2].body.find("stream_options") == std::string::npos);
  Fixture other;
  other.scripts = {{400, {R"({"error":{"message":"model is unknown"}})"}, {}, {}}};
  CHECK_FALSE(other.complete());
}

TEST_CASE("the key is in no error, not even in part", "[adapter]") {
  const auto check = [](Script script) {
    Fixture f;
    f.options.headers = {{"api-key", "another-secret"}};
    f.scripts = {std::move(script)};
    const auto result = f.complete();
    REQUIRE_FALSE(result);
    const std::string all = result.error().error.message + result.error().error.detail;
    INFO(all);
    CHECK(all.find("very-secret") == std::string::npos);
    CHECK(all.find("another-secret") == std::string::npos);
    CHECK(all.find("sk-very") == std::string::npos);
    CHECK(all.find("(key)") != std::string::npos);
  };
  check({401, {R"({"error":{"message":"bad key sk-very-secret-key, and another-secret"}})"}, {}, {}});
  check({200, {"data: {\"error\":{\"message\":\"Bearer sk-very-secret-key\"}}\n\n"}, {}, {}});
  check({200, {"data: {sk-very-secret-key\n\n"}, {}, {}});
  Script cut_through{500, {}, {}, {}};  // the excerpt that is shown ends inside the key
  cut_through.pieces.emplace_back(590, 'x');
  cut_through.pieces.emplace_back("sk-very-secret-key");
  check(cut_through);
}

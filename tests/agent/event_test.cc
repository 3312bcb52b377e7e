#include "agent/event.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "agent/scrub.h"
#include "base/text.h"

namespace {

using namespace agent;
using base::Json;

base::JsonPtr source() { return base::share(Json{{"kind", "plugin"}, {"plugin", "p"}, {"form", "snapshot"}}); }

std::vector<ContentBlock> content() {
  return {{ContentBlock::Type::text, "hi \xE2\x82\xAC", "", ""},
          {ContentBlock::Type::resource_link, "", "file:///a", "a"},
          {ContentBlock::Type::resource, "body", "file:///b", ""}};
}

std::vector<Payload> every_payload() {
  event::AssistantMessage answer;
  answer.message_id = "m";
  answer.message = {llm::Role::assistant, "text", "why", {{"c1", "bash", "{\"a\":1}"}}, ""};
  answer.route = "r";
  answer.model = "m";
  answer.usage = llm::Usage{1, 2, 3, 4};
  answer.finish = llm::FinishReason::tool_calls;
  answer.interrupted = true;
  event::TurnEnd error{3, TurnEndReason::error, std::nullopt, "server", "it broke", "title", "t"};
  event::TurnEnd aborted{3, TurnEndReason::aborted, AbortCause::parent, "", "", "title", "t"};
  return {event::Header{"id", "/w", "now"},
          event::InboxSpliced{{{"i", InboxTarget::next_step, content(), source()}}, {"x", "y"}},
          event::TurnStart{3},
          error,
          aborted,
          event::StepStart{3, 4},
          event::StepEnd{3, 4},
          event::UserMessage{content(), nullptr},
          event::UserMessage{content(), source()},
          event::RequestHeader{"r", {"m", "system", {{"bash", "runs", "{}"}}, "{\"t\":1}"}},
          event::AssistantChunk{"m", "text", "x"},
          answer,
          event::AssistantAborted{"m", "shown"},
          event::ToolCall{"c1", "bash", "{"},
          event::ToolResult{"c1", "out", true, base::share(Json{{"exit_code", 1}})},
          event::ToolResult{"c1", "out", false, nullptr},
          event::ApprovalAsked{"a", "bash", "c1", "why", true},
          event::ApprovalDecided{"a", ApprovalOutcome::allowed_once},
          event::ApprovalPolicySet{ApprovalPolicy::never},
          event::SandboxMode{sandbox::Mode::workspace_write},
          event::PermissionPreset{"p"},
          event::SessionTitle{"t"},
          event::LlmRetry{2, "server", "no", 500}};
}

std::string why(const std::string& line) {
  auto event = decode(line);
  REQUIRE_FALSE(event.has_value());
  CHECK(event.error().code == base::ErrorCode::corrupt);
  return event.error().message;
}

}  // namespace

TEST_CASE("every event is read back as it was written", "[event]") {
  std::vector<bool> seen(std::variant_size_v<Payload>);
  for (const Payload& payload : every_payload()) {
    const std::string line = encode({7, "2026-01-01T00:00:00.000Z", payload});
    INFO(line);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(line.rfind("{\"seq\":7,\"time\":\"2026-01-01T00:00:00.000Z\",\"type\":\"", 0) == 0);
    auto event = decode(line);
    REQUIRE(event.has_value());
    REQUIRE(event->has_value());
    CHECK((*event)->payload.index() == payload.index());
    CHECK(encode(**event) == line);
    seen[payload.index()] = true;
  }
  CHECK(std::count(seen.begin(), seen.end(), false) == 0);
}

TEST_CASE("the spelling of events is fixed", "[event]") {
  CHECK(encode({1, "t", event::ToolCall{"c", "bash", "{}"}}) ==
        R"({"seq":1,"time":"t","type":"tool/call","data":{"call_id":"c","name":"bash","arguments":"{}"}})");
  CHECK(
      encode({1, "t", event::TurnEnd{1, TurnEndReason::aborted, AbortCause::user, "", "", "T", "u"}}) ==
      R"({"seq":1,"time":"t","type":"turn/end","data":{"turn":1,"reason":"aborted","cause":"user","title":"T","time":"u"}})");
  CHECK(
      encode({1, "t", event::TurnEnd{1, TurnEndReason::error, std::nullopt, "server", "m", "T", "u"}}) ==
      R"({"seq":1,"time":"t","type":"turn/end","data":{"turn":1,"reason":"error","error":{"code":"server","message":"m"},"title":"T","time":"u"}})");
  CHECK(
      encode({1, "t", event::AssistantChunk{"m", "text", "x"}}) ==
      R"({"seq":1,"time":"t","type":"assistant/chunk","data":{"message_id":"m","kind":"text","text":"x"},"ignorable":true})");
}

TEST_CASE("what is no event is refused by name", "[event]") {
  CHECK(why("") != "");
  CHECK(why("[1]") == "event is not an object");
  CHECK(why(R"({"time":"t","type":"turn/start","data":{"turn":1}})") == "event lacks \"seq\"");
  CHECK(why(R"({"seq":-1,"time":"t","type":"turn/start","data":{"turn":1}})") == "event.seq is not a whole number");
  CHECK(why(R"({"seq":1,"time":"t","type":"turn/start","data":{}})") == "turn/start lacks \"turn\"");
  CHECK(why(R"({"seq":1,"time":"t","type":"turn/start","data":7})") == "turn/start is not an object");
  CHECK(why(R"({"seq":1,"time":"t","type":"turn/start","data":{"turn":1,"more":1}})") ==
        "turn/start has the unknown member \"more\"");
  CHECK(why(R"({"seq":1,"time":"t","type":"turn/start","data":{"turn":"1"}})") ==
        "turn/start.turn is not a whole number");
  CHECK(why(R"({"seq":1,"time":"t","type":"sandbox/mode","data":{"mode":"root"}})") ==
        "sandbox/mode.mode has the unknown value \"root\"");
  CHECK(why(R"({"seq":1,"time":"t","type":"user/message","data":{"content":[{"type":"text"}]}})") ==
        "user/message.content[0] lacks \"text\"");
  CHECK(why(R"({"seq":1,"time":"t","type":"session","data":{"id":"i","cwd":"/","created":"t","version":2}})")
            .find("version 2") != std::string::npos);
}

TEST_CASE("an unknown type is refused unless it says that it may be ignored", "[event]") {
  CHECK(why(R"({"seq":1,"time":"t","type":"later/thing","data":{}})").find("\"later/thing\"") != std::string::npos);
  CHECK(why(R"({"seq":1,"time":"t","type":"later/thing","data":{},"ignorable":false})") != "");
  auto ignored = decode(R"({"seq":1,"time":"t","type":"later/thing","data":{"x":1},"ignorable":true})");
  REQUIRE(ignored.has_value());
  CHECK_FALSE(ignored->has_value());
}

TEST_CASE("text that is not UTF-8 is the same in memory and in the log", "[event]") {
  Payload payload = event::ToolResult{"c", std::string("a\0b\xff", 4), false, base::share(Json{{"out", "\xfe"}})};
  scrub(payload);
  const auto& result = std::get<event::ToolResult>(payload);
  CHECK(result.content ==
        "a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD");
  auto event = decode(encode({1, "t", payload}));
  REQUIRE(event.has_value());
  CHECK(std::get<event::ToolResult>((*event)->payload).content == result.content);
  CHECK(*std::get<event::ToolResult>((*event)->payload).facts == *result.facts);
}

TEST_CASE("content reads as text for the model", "[event]") {
  CHECK(model_text(content()) == "hi \xE2\x82\xAC\n[a](file:///a)\n<resource uri=\"file:///b\">\nbody\n</resource>");
  CHECK(model_text({}).empty());
}

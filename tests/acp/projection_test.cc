#include "acp/projection.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "acp/bounds.h"

namespace {

namespace event = agent::event;
using base::Json;

struct Shown {
  std::vector<Json> updates;
  std::vector<std::string> keys;
  std::string mode = "read-only";
  std::int64_t window = 0;
  agent::CallView call_view{"Run ls", "execute", {}, {}, {}, {}};
  agent::CallView result_view{"Run ls", "execute", {}, {}, "out", {}};

  acp::Projector projector() {
    acp::Views views;
    views.call = [this](const event::ToolCall&) { return call_view; };
    views.result = [this](const event::ToolCall&, const event::ToolResult&) { return result_view; };
    views.context_window = [this](const std::string&) { return window; };
    views.mode = [this] { return mode; };
    return {views, [this](Json&& update, std::string key) {
              updates.push_back(std::move(update));
              keys.push_back(std::move(key));
            }};
  }
  std::vector<std::string> kinds() const {
    std::vector<std::string> list;
    for (const auto& update : updates) list.push_back(update["sessionUpdate"]);
    return list;
  }
  std::string joined(const char* kind) const {
    std::string text;
    for (const auto& update : updates)
      if (update["sessionUpdate"] == kind) text += update["content"]["text"].get<std::string>();
    return text;
  }
};

agent::Event at(agent::Payload payload, std::int64_t seq = 7) {
  return {seq, "2026-11-30T12:00:00.000Z", std::move(payload)};
}

event::AssistantMessage assistant(const std::string& id, const std::string& text, const std::string& reasoning = "") {
  event::AssistantMessage message;
  message.message_id = id;
  message.message.role = llm::Role::assistant;
  message.message.text = text;
  message.message.reasoning = reasoning;
  return message;
}

event::UserMessage user(const std::string& text, base::JsonPtr source = nullptr) {
  return {{{agent::ContentBlock::Type::text, text, "", ""}}, std::move(source)};
}

TEST_CASE("A streamed message is shown once, and only its missing rest when committed") {
  Shown shown;
  auto projector = shown.projector();
  projector.delta({agent::LiveDelta::Kind::thought, "m1", "hm"});
  projector.delta({agent::LiveDelta::Kind::text, "m1", "Hello "});
  projector.delta({agent::LiveDelta::Kind::text, "m1", "wor"});
  projector.live(at(assistant("m1", "Hello world", "hm")));
  CHECK(shown.joined("agent_message_chunk") == "Hello world");
  CHECK(shown.joined("agent_thought_chunk") == "hm");
  CHECK(shown.updates[0]["messageId"] == "m1-thought");
  CHECK(shown.updates[1]["messageId"] == "m1");
  CHECK(shown.updates.size() == 4);
  CHECK(shown.keys[1] == shown.keys[2]);
  CHECK(shown.keys[0] != shown.keys[1]);

  // An adapter that streams nothing: the whole text at once.
  projector.live(at(assistant("m2", "all at once")));
  CHECK(shown.updates.back()["content"]["text"] == "all at once");
}

TEST_CASE("A replay shows what the user typed and what was answered, but no context message") {
  Shown shown;
  auto projector = shown.projector();
  projector.replay(at(user("do it"), 3));
  projector.replay(at(user("policy text", base::share(Json{{"kind", "plugin"}})), 4));
  projector.replay(at(assistant("m1", "done", "thinking")));
  CHECK(shown.kinds() == std::vector<std::string>{"user_message_chunk", "agent_thought_chunk", "agent_message_chunk"});
  CHECK(shown.updates[0] == Json{{"sessionUpdate", "user_message_chunk"},
                                 {"content", {{"type", "text"}, {"text", "do it"}}},
                                 {"messageId", "user-3"}});
  Shown live;
  auto other = live.projector();
  other.live(at(user("do it")));
  CHECK(live.updates.empty());
}

TEST_CASE("Text that was shown and then retried is replayed under its own message id") {
  Shown shown;
  auto projector = shown.projector();
  projector.replay(at(event::AssistantAborted{"m1", "half"}));
  projector.replay(at(assistant("m2", "whole")));
  CHECK(shown.updates[0]["messageId"] == "m1");
  CHECK(shown.joined("agent_message_chunk") == "halfwhole");
  Shown live;
  auto other = live.projector();
  other.delta({agent::LiveDelta::Kind::text, "m1", "half"});
  other.live(at(event::AssistantAborted{"m1", "half"}));
  CHECK(live.updates.size() == 1);
}

TEST_CASE("A call is shown before anything else of it") {
  Shown shown;
  auto projector = shown.projector();
  shown.call_view.locations = {{"/w/a.txt", 3}, {"relative", 1}, {"/w/b.txt", 0}};
  shown.result_view.diffs = {{"/w/a.txt", std::nullopt, "new"}, {"/w/b.txt", "old", "new"}};
  shown.result_view.raw_output = base::share(Json{{"exit_code", 0}});
  projector.live(at(event::ToolCall{"c1", "bash", R"({"command":"ls"})"}));
  projector.live(at(event::ToolResult{"c1", "out", false, nullptr}));
  REQUIRE(shown.kinds() == std::vector<std::string>{"tool_call", "tool_call_update", "tool_call_update"});
  CHECK(shown.updates[0] == Json{{"sessionUpdate", "tool_call"},
                                 {"toolCallId", "c1"},
                                 {"title", "Run ls"},
                                 {"kind", "execute"},
                                 {"status", "pending"},
                                 {"locations", {{{"path", "/w/a.txt"}, {"line", 3}}, {{"path", "/w/b.txt"}}}},
                                 {"rawInput", {{"command", "ls"}}}});
  CHECK(shown.updates[1]["status"] == "in_progress");
  const Json& last = shown.updates[2];
  CHECK(last["status"] == "completed");
  CHECK(last["rawOutput"] == Json{{"exit_code", 0}});
  REQUIRE(last["content"].size() == 3);
  CHECK(last["content"][0] == Json{{"type", "diff"}, {"path", "/w/a.txt"}, {"newText", "new"}, {"oldText", nullptr}});
  CHECK(last["content"][1]["oldText"] == "old");
  CHECK(last["content"][2] == Json{{"type", "content"}, {"content", {{"type", "text"}, {"text", "out"}}}});
}

TEST_CASE("a call that asks first is pending until it was allowed") {
  for (const auto outcome : {agent::ApprovalOutcome::allowed_once, agent::ApprovalOutcome::rejected}) {
    Shown shown;
    auto projector = shown.projector();
    const std::string arguments =
        R"({"command":"ls","sandbox_permissions":"danger-full-access","justification":"because"})";
    projector.live(at(event::ToolCall{"c1", "bash", arguments}));
    projector.live(at(event::ApprovalAsked{"a1", "bash", "c1", "escalate", true}));
    REQUIRE(shown.kinds() == std::vector<std::string>{"tool_call"});
    projector.live(at(event::ApprovalDecided{"a1", outcome}));
    const bool allowed = outcome == agent::ApprovalOutcome::allowed_once;
    REQUIRE(shown.updates.size() == (allowed ? 2 : 1));
    if (allowed) CHECK(shown.updates[1]["status"] == "in_progress");
  }
}

TEST_CASE("A call that never started is shown with its result") {
  Shown shown;
  auto projector = shown.projector();
  auto message = assistant("m1", "");
  message.message.tool_calls = {{"c9", "bash", "{}"}};
  shown.result_view.text.reset();
  projector.live(at(message));
  CHECK(shown.updates.empty());
  projector.live(at(event::ToolResult{"c9", "not started: the turn was cancelled", true, nullptr}));
  REQUIRE(shown.kinds() == std::vector<std::string>{"tool_call", "tool_call_update"});
  CHECK(shown.updates[1]["status"] == "failed");
  CHECK(shown.updates[1]["content"][0]["content"]["text"] == "not started: the turn was cancelled");
  // A second result, or one of no known call, shows nothing.
  projector.live(at(event::ToolResult{"c9", "again", false, nullptr}));
  projector.live(at(event::ToolResult{"unknown", "x", false, nullptr}));
  CHECK(shown.updates.size() == 2);
}

TEST_CASE("Hostile views stay within the protocol") {
  Shown shown;
  auto projector = shown.projector();
  shown.call_view.title = "";
  shown.call_view.kind = "invented";
  projector.live(at(event::ToolCall{"c1", "mystery", "not json"}));
  CHECK(shown.updates[0]["title"] == "mystery");
  CHECK(shown.updates[0]["kind"] == "other");
  CHECK(shown.updates[0]["rawInput"] == "not json");
}

TEST_CASE("The title is sent when it changes, on a replay once at its end") {
  Shown shown;
  auto projector = shown.projector();
  event::TurnEnd end;
  end.title = "Fix the build";
  end.time = "2026-11-30T12:00:01.000Z";
  projector.live(at(end));
  projector.live(at(end));
  REQUIRE(shown.updates.size() == 1);
  CHECK(shown.updates[0] == Json{{"sessionUpdate", "session_info_update"},
                                 {"title", "Fix the build"},
                                 {"updatedAt", "2026-11-30T12:00:01.000Z"}});
  Shown replayed;
  auto other = replayed.projector();
  other.replay(at(end));
  CHECK(replayed.updates.empty());
  other.finish_replay();
  CHECK(replayed.kinds() == std::vector<std::string>{"session_info_update"});
  other.live(at(end));
  CHECK(replayed.updates.size() == 1);
}

TEST_CASE("Usage is sent only when the window is known") {
  Shown shown;
  auto projector = shown.projector();
  auto message = assistant("m1", "");
  message.usage = llm::Usage{100, 20, 0, 0};
  projector.live(at(message));
  CHECK(shown.updates.empty());
  shown.window = 1000;
  projector.live(at(message));
  CHECK(shown.updates.back() == Json{{"sessionUpdate", "usage_update"}, {"used", 120}, {"size", 1000}});
}

TEST_CASE("A mode changed by anyone is sent once") {
  Shown shown;
  auto projector = shown.projector();
  projector.live(at(event::SandboxMode{sandbox::Mode::read_only}));
  CHECK(shown.updates.empty());
  shown.mode = "custom";
  projector.live(at(event::SandboxMode{sandbox::Mode::workspace_write}));
  projector.live(at(event::ApprovalPolicySet{}));
  projector.live(at(event::PermissionPreset{"custom"}));
  REQUIRE(shown.updates.size() == 1);
  CHECK(shown.updates[0] == Json{{"sessionUpdate", "current_mode_update"}, {"currentModeId", "custom"}});
  projector.replay(at(event::SandboxMode{sandbox::Mode::workspace_write}));
  CHECK(shown.updates.size() == 1);
}

TEST_CASE("No update makes a line over the limit, whatever is in it") {
  Shown shown;
  auto projector = shown.projector();
  const std::string nasty(1 << 20, '\x01');  // six bytes each on the wire
  shown.call_view.title = nasty;
  shown.call_view.locations.assign(10000, {"/" + nasty.substr(0, 4000), 1});
  shown.result_view = shown.call_view;
  shown.result_view.text = nasty;
  shown.result_view.raw_output = base::share(Json{{"x", nasty}});
  shown.result_view.diffs.assign(1000, {"/w/a", "small", "other"});
  shown.result_view.diffs.push_back({"/w/" + nasty, nasty, nasty});
  projector.live(at(event::ToolCall{"c1", nasty, base::dump(Json{{"command", nasty}})}));
  projector.live(at(event::ToolCall{"c2", "bash", nasty}));
  projector.live(at(event::ToolResult{"c1", nasty, true, nullptr}));
  projector.replay(at(user(nasty)));
  projector.replay(at(assistant("m1", nasty, nasty)));
  for (const auto piece : acp::split_text(nasty, 15'000)) projector.delta({agent::LiveDelta::Kind::text, "m2", piece});
  REQUIRE(shown.updates.size() > 10);

  // Also when the queue merges everything it may.
  std::vector<Json> lines;
  for (std::size_t i = 0; i < shown.updates.size(); ++i) {
    Json params{{"sessionId", "s"}, {"update", shown.updates[i]}};
    if (i > 0 && !shown.keys[i].empty() && shown.keys[i] == shown.keys[i - 1])
      acp::merge_update(lines.back(), std::move(params));
    else
      lines.push_back(std::move(params));
  }
  CHECK(lines.size() < shown.updates.size());
  for (const auto& line : lines) CHECK(base::dump(line).size() + 200 < acp::max_line_out);
  CHECK(shown.joined("user_message_chunk") == nasty);
}

TEST_CASE("Merging joins chunks and folds updates of a call") {
  Json chunk{{"update", {{"sessionUpdate", "agent_message_chunk"}, {"content", {{"type", "text"}, {"text", "a"}}}}}};
  Json more{{"update", {{"sessionUpdate", "agent_message_chunk"}, {"content", {{"type", "text"}, {"text", "b"}}}}}};
  acp::merge_update(chunk, std::move(more));
  CHECK(chunk["update"]["content"]["text"] == "ab");

  Json call{{"update", {{"sessionUpdate", "tool_call"}, {"toolCallId", "c"}, {"title", "t"}, {"status", "pending"}}}};
  Json done{{"update", {{"sessionUpdate", "tool_call_update"}, {"toolCallId", "c"}, {"status", "failed"}}}};
  acp::merge_update(call, std::move(done));
  CHECK(call["update"] ==
        Json{{"sessionUpdate", "tool_call"}, {"toolCallId", "c"}, {"title", "t"}, {"status", "failed"}});

  Json usage{{"update", {{"sessionUpdate", "usage_update"}, {"used", 1}, {"size", 9}}}};
  Json newer{{"update", {{"sessionUpdate", "usage_update"}, {"used", 2}, {"size", 9}}}};
  acp::merge_update(usage, std::move(newer));
  CHECK(usage["update"]["used"] == 2);
}

TEST_CASE("Pieces end at character borders and lose nothing") {
  const std::string text = "aé😀z";
  for (std::size_t limit = 1; limit < 9; ++limit) {
    std::string joined;
    for (const auto piece : acp::split_text(text, limit)) {
      CHECK(piece.size() <= limit);
      joined += piece;
    }
    CHECK(joined == text);
  }
  CHECK(acp::split_text("", 4).empty());
  CHECK(acp::split_text("éé", 3) == std::vector<std::string_view>{"é", "é"});
}

}  // namespace

// Turns over the wire: streaming, calls, consent, cancelling, several sessions at once, the end of the connection.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <thread>

#include "agent/approval.h"
#include "support.h"

namespace {

using support::Json;
using support::text_prompt;

struct Turns {
  support::Folder folder;
  std::string cwd = folder.make("w");
  support::Harness harness{{folder.make("state"), true, true, true, 1000}};
  std::string session;

  support::Client& client() { return *harness.client; }
  void add_tool(const std::string& name, bool reads_only, support::LambdaTool::Run run) {
    harness.services.tools.push_back(std::make_shared<support::LambdaTool>(name, reads_only, std::move(run)));
  }
  // A tool that asks and says what came of it.
  void add_asking_tool() {
    add_tool("ask", false, [this](const Json& arguments, agent::ToolContext& context) -> agent::ToolOutcome {
      const auto outcome =
          harness.services.approval->ask(context.session,
                                         {"ask", context.call_id, base::share(arguments), "for the log",
                                          "danger-full-access", justification, subject, grounded},
                                         context.stop);
      return {std::string(agent::name(outcome)), outcome != agent::ApprovalOutcome::allowed_once, nullptr};
    });
  }
  std::string justification = "need it";
  agent::ApprovalSubject subject{"/real/file", "", {}};
  bool grounded = true;
  void open() {
    harness.start();
    harness.initialize();
    session = harness.new_session(cwd);
  }
  Json prompt(const std::string& text = "do it") { return client().call("session/prompt", text_prompt(session, text)); }
  std::string text_of(const char* kind) {
    std::string text;
    for (const auto& update : client().updates(session))
      if (update["sessionUpdate"] == kind) text += update["content"]["text"].get<std::string>();
    return text;
  }
  Json last_of_call(const std::string& call) {
    Json found;
    for (const auto& update : client().updates(session))
      if (update.value("toolCallId", "") == call) found = update;
    return found;
  }
  void wait_for_text(const std::string& of, const std::string& text) {
    client().wait(
        [&](const Json& m) {
          return m.value("method", "") == "session/update" && m["params"]["sessionId"] == of &&
                 m["params"]["update"].contains("content") && m["params"]["update"]["content"].is_object() &&
                 m["params"]["update"]["content"]["text"].get<std::string>().find(text) != std::string::npos;
        },
        "the text " + text);
  }
};

TEST_CASE_METHOD(Turns, "A text turn streams, then answers") {
  harness.model->script = support::in_order({support::says("Hello there, friend", "let me think")});
  open();
  const Json answer = prompt("greet me\nplease");
  CHECK(answer["result"] ==
        Json{{"stopReason", "end_turn"},
             {"_meta", {{"acp_agent", {{"denied", false}, {"escalation", ""}, {"sandbox_unavailable", false}}}}}});
  CHECK(text_of("agent_message_chunk") == "Hello there, friend");
  CHECK(text_of("agent_thought_chunk") == "let me think");
  CHECK(text_of("user_message_chunk").empty());
  std::vector<std::string> kinds;
  std::string message_id;
  for (const auto& update : client().updates(session)) {
    kinds.push_back(update["sessionUpdate"]);
    if (kinds.back() != "agent_message_chunk") continue;
    if (message_id.empty()) message_id = update["messageId"];
    CHECK(update["messageId"] == message_id);
  }
  CHECK(std::count(kinds.begin(), kinds.end(), "session_info_update") == 1);
  CHECK(std::count(kinds.begin(), kinds.end(), "usage_update") == 1);
}

TEST_CASE_METHOD(Turns, "A call is shown, started, finished") {
  add_tool("look", true, [](const Json&, agent::ToolContext&) -> agent::ToolOutcome {
    return {"found", false, nullptr};
  });
  harness.model->script =
      support::in_order({support::calls({{"c1", "look", R"({"what":"around"})"}}, "I look"), support::says("done")});
  open();
  CHECK(prompt()["result"]["stopReason"] == "end_turn");
  Json folded;
  for (const auto& update : client().updates(session))
    if (update.value("toolCallId", "") == "c1")
      for (const auto& [key, value] : update.items()) folded[key] = value;
  CHECK(folded["title"] == "look around");
  CHECK(folded["kind"] == "read");
  CHECK(folded["status"] == "completed");
  CHECK(folded["rawInput"] == Json{{"what", "around"}});
  CHECK(folded["rawOutput"] == Json{{"bytes", 5}});
  CHECK(folded["locations"][0]["path"] == cwd + "/file");
  CHECK(folded["content"][0]["type"] == "diff");
  CHECK(folded["content"][1]["content"]["text"] == "found");
}

TEST_CASE_METHOD(Turns, "Every answer to a permission request, and what comes of it") {
  add_asking_tool();
  harness.model->script = support::cycling({support::calls({{"c", "ask", R"({"what":"x"})"}}), support::says("done")});
  open();
  struct Case {
    Json result;
    int error;
    std::string outcome;
  };
  const auto selected = [](const char* option) {
    return Json{{"outcome", {{"outcome", "selected"}, {"optionId", option}}}};
  };
  const std::vector<Case> cases{{selected("allow-once"), 0, "allowed-once"},
                                {selected("reject-once"), 0, "rejected"},
                                {selected("allow-always"), 0, "rejected"},
                                {selected(""), 0, "rejected"},
                                {{{"outcome", {{"outcome", "selected"}}}}, 0, "rejected"},
                                {{{"outcome", {{"outcome", "granted"}, {"optionId", "allow-once"}}}}, 0, "rejected"},
                                {{{"outcome", {{"outcome", "cancelled"}}}}, 0, "cancelled"},
                                {{{"outcome", "allow-once"}}, 0, "unavailable"},
                                {Json::object(), 0, "unavailable"},
                                {"allow-once", 0, "unavailable"},
                                {nullptr, -32800, "cancelled"},
                                {nullptr, -32601, "unavailable"}};
  int n = 1;
  for (const Case& one : cases) {
    const auto id = client().request("session/prompt", text_prompt(session, "x"));
    const Json request = client().wait(
        [&](const Json& m) { return m.value("method", "") == "session/request_permission" && m["id"] == n; },
        "a permission request");
    const std::string call = request["params"]["toolCall"]["toolCallId"];
    if (n == 1) {
      CHECK(request["params"]["toolCall"] ==
            Json{{"toolCallId", call},
                 {"title", "ask x"},
                 {"kind", "execute"},
                 {"status", "pending"},
                 {"locations", {{{"path", cwd + "/file"}, {"line", 1}}}},
                 {"rawInput", {{"what", "x"}}},
                 {"content",
                  {{{"type", "content"},
                    {"content",
                     {{"type", "text"},
                      {"text",
                       "Allow once with danger-full-access:\n\n    /real/file\n\nThe model's words: need it"}}}}}}});
      CHECK(request["params"]["options"] ==
            Json{{{"optionId", "allow-once"}, {"name", "Allow once"}, {"kind", "allow_once"}},
                 {{"optionId", "reject-once"}, {"name", "Reject"}, {"kind", "reject_once"}}});
    }
    if (one.error)
      client().respond_error(request, one.error);
    else
      client().respond(request, one.result);
    CHECK(client().answer(id)["result"]["stopReason"] == "end_turn");
    INFO(one.result.dump() << " " << one.error);
    CHECK(last_of_call(call)["content"].back()["content"]["text"] == one.outcome);
    CHECK(last_of_call(call)["status"] == (one.outcome == "allowed-once" ? "completed" : "failed"));
    ++n;
  }
}

TEST_CASE_METHOD(Turns, "What is asked stands before the model's words, which are one line") {
  add_asking_tool();
  justification = "harmless.\n\nAllow once with danger-full-access:\n\n    ls\r\n" + std::string(500, '\n') + "end";
  subject = {"true #\rls\n" + std::string(3, '\n') + "rm -rf ~", "/work/a\nb", {}};
  grounded = false;
  harness.model->script = support::cycling({support::calls({{"c", "ask", "{}"}}), support::says("done")});
  open();
  const auto id = client().request("session/prompt", text_prompt(session, "x"));
  const Json request = client().permission(session);
  CHECK(request["params"]["toolCall"]["content"][0]["content"]["text"] ==
        "Allow once with danger-full-access (5 lines, 21 bytes):\n\n"
        "    true #\uFFFDls\n    \n    \n    \n    rm -rf ~\n\n"
        "in /work/a b\n\n"
        "The model's words: harmless. Allow once with danger-full-access: ls end\n\n"
        "This was not denied before in this session: it asks without having tried.");
  client().respond(request, {{"outcome", {{"outcome", "cancelled"}}}});
  client().answer(id);
}

TEST_CASE_METHOD(Turns, "What would be changed is shown as its diff, and in part where it is too large") {
  add_asking_tool();
  subject.diffs = {{"/real/file", "old\n", "new\n"},
                   {"/real/large", std::nullopt, "first\n" + std::string(70000, 'x')}};
  harness.model->script = support::cycling({support::calls({{"c", "ask", "{}"}}), support::says("done")});
  open();
  const auto id = client().request("session/prompt", text_prompt(session, "x"));
  const Json request = client().permission(session);
  const Json& content = request["params"]["toolCall"]["content"];
  REQUIRE(content.size() == 3);
  CHECK(content[1] == Json{{"type", "diff"}, {"path", "/real/file"}, {"newText", "new\n"}, {"oldText", "old\n"}});
  const std::string part = content[2]["content"]["text"];
  CHECK(part.find("The diff of /real/large is too large to show (") == 0);
  CHECK(part.find("The new text begins:\n\n    first\n    xxx") != std::string::npos);
  CHECK(part.size() < 20000);
  client().respond(request, {{"outcome", {{"outcome", "cancelled"}}}});
  client().answer(id);
}

TEST_CASE_METHOD(Turns, "Cancelling while a permission is open ends both, and a late answer changes nothing") {
  add_asking_tool();
  harness.model->script =
      support::in_order({support::calls({{"c", "ask", "{}"}, {"d", "ask", "{}"}}), support::says("again")});
  open();
  const auto id = client().request("session/prompt", text_prompt(session, "x"));
  const Json request = client().permission(session);
  client().notify("session/cancel", {{"sessionId", session}});
  CHECK(client().answer(id)["result"]["stopReason"] == "cancelled");
  client().wait(
      [&](const Json& m) {
        return m.value("method", "") == "$/cancel_request" && m["params"]["requestId"] == request["id"];
      },
      "$/cancel_request");
  CHECK(last_of_call("c")["status"] == "failed");
  CHECK(last_of_call("d")["status"] == "failed");  // shown, though it never started
  client().respond(request, {{"outcome", {{"outcome", "selected"}, {"optionId", "allow-once"}}}});
  CHECK(prompt()["result"]["stopReason"] == "end_turn");
}

TEST_CASE_METHOD(Turns, "Cancelling while the model streams, by either way, keeps the session usable") {
  harness.model->script = support::cycling({support::waits_for_stop(), support::says("fine")});
  open();
  for (const bool by_request_id : {false, true}) {
    const auto before = text_of("agent_message_chunk").size();
    const auto id = client().request("session/prompt", text_prompt(session, "x"));
    while (text_of("agent_message_chunk").size() == before) std::this_thread::yield();
    const auto second = client().request("session/prompt", text_prompt(session, "y"));
    CHECK(client().answer(second)["error"]["code"] == -32600);
    if (by_request_id)
      client().notify("$/cancel_request", {{"requestId", id}});
    else
      client().notify("session/cancel", {{"sessionId", session}});
    CHECK(client().answer(id)["result"]["stopReason"] == "cancelled");
    CHECK(prompt()["result"]["stopReason"] == "end_turn");
  }
}

TEST_CASE_METHOD(Turns, "A cancelled prompt is answered however early or late the cancel comes") {
  harness.model->script = support::in_order({support::says("some words")});
  open();
  for (int round = 0; round < 50; ++round) {
    const auto id = client().request("session/prompt", text_prompt(session, "x"));
    if (round % 2 == 0)
      client().notify("session/cancel", {{"sessionId", session}});
    else
      client().notify("$/cancel_request", {{"requestId", id}});
    const std::string reason = client().answer(id)["result"]["stopReason"];
    CHECK((reason == "cancelled" || reason == "end_turn"));
    CHECK(prompt()["result"]["stopReason"] == "end_turn");
  }
}

TEST_CASE_METHOD(Turns, "$/cancel_request means the request of exactly that id") {
  // Set by the very call that cancels, so a wrong one shows before the next request is answered.
  std::atomic<bool> stopped{false};
  harness.model->script =
      support::in_order({[&](const auto& messages, const llm::StreamSink& sink, std::stop_token stop) {
        const std::stop_callback seen(stop, [&] { stopped = true; });
        return support::waits_for_stop()(messages, sink, stop);
      }});
  open();
  const auto id = client().request("session/prompt", text_prompt(session, "x"));
  wait_for_text(session, "partial");
  client().notify("$/cancel_request", {{"requestId", std::to_string(id)}});
  client().notify("$/cancel_request", {{"requestId", id + 100}});
  client().notify("$/cancel_request", Json::object());
  CHECK(client().call("session/set_mode", {{"sessionId", session}, {"modeId", "read-only"}}).contains("result"));
  CHECK(client().call("session/load", {{"sessionId", session}, {"cwd", cwd}})["error"]["code"] == -32600);
  CHECK(!stopped);
  client().notify("$/cancel_request", {{"requestId", id}});
  CHECK(client().answer(id)["result"]["stopReason"] == "cancelled");
}

TEST_CASE_METHOD(Turns, "Errors of the model become errors with details, kind and whether to retry") {
  harness.model->script =
      support::in_order({support::fails(base::ErrorCode::auth, "the key was refused"),
                         support::fails(base::ErrorCode::bad_request, "no such model"), support::says("fine")});
  open();
  const Json auth = prompt();
  CHECK(auth["error"]["code"] == -32000);
  const Json bad = prompt();
  CHECK(bad["error"]["code"] == -32603);
  CHECK(bad["error"]["data"] == Json{{"details", "no such model"}, {"kind", "bad_request"}, {"retryable", false}});
  CHECK(prompt()["result"]["stopReason"] == "end_turn");
}

TEST_CASE_METHOD(Turns, "A permission open in one session blocks no other") {
  add_asking_tool();
  harness.model->script = support::in_order({support::calls({{"c", "ask", "{}"}}), support::says("other work")});
  open();
  const auto first = client().request("session/prompt", text_prompt(session, "x"));
  const Json request = client().permission(session);
  const std::string second = harness.new_session(folder.make("w2"));
  CHECK(client().call("session/prompt", text_prompt(second, "y"))["result"]["stopReason"] == "end_turn");
  wait_for_text(second, "ot");
  client().respond(request, {{"outcome", {{"outcome", "selected"}, {"optionId", "allow-once"}}}});
  CHECK(client().answer(first)["result"]["stopReason"] == "end_turn");
}

TEST_CASE_METHOD(Turns, "Many sessions at once keep their updates apart and in order") {
  add_tool("look", true, [](const Json&, agent::ToolContext& context) -> agent::ToolOutcome {
    return {context.session.id(), false, nullptr};
  });
  add_tool("act", false, [](const Json&, agent::ToolContext& context) -> agent::ToolOutcome {
    return {context.session.id(), false, nullptr};
  });
  // The conversation's length says where a turn stands, whichever session asks.
  harness.model->script = [](std::size_t) -> support::Answer {
    return [](const std::vector<llm::WireMessage>& messages, const llm::StreamSink& sink, std::stop_token stop) {
      if (messages.back()->find("user words") != std::string::npos)
        return support::calls({{"a", "look", "{}"}, {"b", "look", "{}"}, {"c", "act", "{}"}}, "looking")(messages, sink,
                                                                                                         stop);
      return support::says("all seen, all done")(messages, sink, stop);
    };
  };
  open();
  constexpr int count = 8, rounds = 5;
  std::vector<std::string> sessions{session};
  for (int i = 1; i < count; ++i) sessions.push_back(harness.new_session(folder.make("w" + std::to_string(i))));
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::int64_t> prompts;
    for (const auto& one : sessions)
      prompts.push_back(client().request("session/prompt", text_prompt(one, "user words")));
    for (const auto id : prompts) CHECK(client().answer(id)["result"]["stopReason"] == "end_turn");
  }
  for (const auto& one : sessions) {
    std::map<std::string, Json> finished;
    for (const auto& update : client().updates(one)) {
      const std::string call = update.value("toolCallId", "");
      if (call.empty()) continue;
      if (update["sessionUpdate"] == "tool_call") CHECK(!finished.count(call));
      finished[call];
      if (update.contains("rawOutput")) finished[call] = update;
    }
    CHECK(finished.size() == 3 * rounds);
    for (const auto& [call, update] : finished) CHECK(update["content"].back()["content"]["text"] == one);
  }
}

TEST_CASE_METHOD(Turns, "A client that does not read holds the model back, and is still heard") {
  std::atomic<std::size_t> streamed{0};
  std::atomic<bool> stopped{false};
  harness.model->script = [&](std::size_t) -> support::Answer {
    return [&](const auto&, const llm::StreamSink& sink,
               std::stop_token stop) -> tl::expected<llm::Completion, llm::ModelError> {
      const std::string piece(4096, 'x');
      while (!stop.stop_requested() && streamed < (64u << 20)) {
        sink.on_text(piece);
        streamed += piece.size();
      }
      stopped = stop.stop_requested();
      llm::ModelError error;
      error.error = {base::ErrorCode::cancelled, "cancelled", ""};
      return tl::make_unexpected(error);
    };
  };
  open();
  client().stop_reading();
  client().request("session/prompt", text_prompt(session, "x"));
  // Until the model stands still. A slow machine may end this early, never wrongly.
  for (std::size_t last = 0, still = 0; still < 3 && streamed < (32u << 20);) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    still = streamed > (1u << 20) && streamed == last ? still + 1 : 0;
    last = streamed;
  }
  client().notify("session/cancel", {{"sessionId", session}});
  while (harness.agent->find(session)->turn_open()) std::this_thread::yield();
  CHECK(stopped);
  CHECK(streamed < (8u << 20));
}

TEST_CASE_METHOD(Turns, "The end of input ends everything soon, whatever runs") {
  add_asking_tool();
  harness.model->script = support::in_order({support::calls({{"c", "ask", "{}"}}), support::waits_for_stop()});
  open();
  client().request("session/prompt", text_prompt(session, "x"));
  client().permission(session);
  const std::string second = harness.new_session(cwd);
  client().request("session/prompt", text_prompt(second, "x"));
  wait_for_text(second, "partial");
  const auto begin = std::chrono::steady_clock::now();
  harness.finish();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
}

TEST_CASE_METHOD(Turns, "stop() answers what is pending before the connection ends") {
  harness.model->script = support::in_order({support::waits_for_stop()});
  open();
  const auto id = client().request("session/prompt", text_prompt(session, "x"));
  wait_for_text(session, "partial");
  harness.server->stop();
  const Json answer = client().answer(id);
  CHECK(answer["error"]["code"] == -32603);
  CHECK(answer["error"]["data"]["kind"] == "cancelled");
}

}  // namespace

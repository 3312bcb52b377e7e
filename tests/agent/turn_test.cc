#include "agent/turn.h"

#include <sys/resource.h>

#include <csignal>

#include "tests/agent/support.h"

namespace {

using namespace agent;
using namespace test;
using base::ErrorCode;

ToolOutcome ok(std::string text) { return {std::move(text), false, nullptr}; }

std::string roles(const std::vector<Json>& messages) {
  std::string list;
  for (const Json& one : messages) list += one["role"].get<std::string>().substr(0, 1);
  return list;
}

}  // namespace

TEST_CASE("a text turn, event by event", "[turn]") {
  Bench bench;
  bench.model->then(text("hello"));
  auto session = bench.open();
  const PromptEnd end = bench.prompt(session->id(), "  hi there \nsecond line");
  CHECK(end.reason == TurnEndReason::completed);
  CHECK_FALSE(end.error.has_value());
  CHECK(bench.types(*session) ==
        "session inbox/spliced turn/start session/title step/start user/message inbox/spliced request/header "
        "assistant/message step/end turn/end");
  CHECK(session->title() == "hi there");
  CHECK(session->inbox().empty());
  const auto message = bench.all<event::AssistantMessage>(*session).at(0);
  CHECK(message.message.text == "hello");
  CHECK(message.route == "scripted");
  CHECK(message.model == "model-1");
  const auto last = bench.all<event::TurnEnd>(*session).at(0);
  CHECK(last.title == "hi there");
  CHECK_FALSE(last.time.empty());
}

TEST_CASE("the title is bounded and set once", "[turn]") {
  Bench bench;
  bench.model->then(text("a"));
  bench.model->then(text("b"));
  auto session = bench.open();
  bench.prompt(session->id(), std::string(500, 'x'));
  CHECK(session->title().size() <= 80);
  bench.prompt(session->id(), "another");
  CHECK(bench.all<event::SessionTitle>(*session).size() == 1);
  CHECK(bench.all<event::RequestHeader>(*session).size() == 1);
}

TEST_CASE("deltas carry the id of the message they become; backpressure is waited for between them", "[turn]") {
  Bench bench;
  bench.model->then([](const llm::StreamSink& sink, std::stop_token) -> Answer {
    sink.on_reasoning("hm");
    sink.on_text("he");
    sink.on_text("llo");
    return text("hello");
  });
  auto session = bench.open();
  std::vector<std::string> seen;
  Observer observer;
  observer.on_delta = [&](const LiveDelta& delta) {
    seen.push_back((delta.kind == LiveDelta::Kind::text ? "text " : "thought ") + delta.id + " " +
                   std::string(delta.text));
  };
  observer.wait_drained = [&](std::stop_token) {
    seen.push_back("waited");
    (void)session->title();  // no lock is held
  };
  session->set_observer(observer);
  bench.prompt(session->id(), "hi");
  session->set_observer({});
  const std::string id = bench.all<event::AssistantMessage>(*session).at(0).message_id;
  CHECK(seen == std::vector<std::string>{"thought " + id + " hm", "waited", "text " + id + " he", "waited",
                                         "text " + id + " llo", "waited"});
}

TEST_CASE("chunks are logged when asked for", "[turn]") {
  Bench bench;
  bench.services.log->chunks = true;
  bench.model->then(text("hello"));
  auto session = bench.open();
  bench.prompt(session->id(), "hi");
  CHECK(bench.all<event::AssistantChunk>(*session).size() == 1);
  CHECK(test::has(slurp(session->folder() + "/session.jsonl"), "\"ignorable\":true"));
}

TEST_CASE("reads run together, changes are barriers, results are in call order", "[turn]") {
  Bench bench;
  std::atomic<int> running{0}, most{0};
  Gate both;
  bench.tool("read", true, [&](const Json& arguments, ToolContext&) {
    most = std::max(most.load(), ++running);
    if (running == 2) both.open();
    if (arguments["n"] < 2) both.wait();
    --running;
    return ok("read " + base::dump(arguments["n"]));
  });
  bench.tool("write", false,
             [&](const Json&, ToolContext&) { return ok(running == 0 ? "written" : "written beside a read"); });
  bench.model->then(calls(
      {{"a", "read", R"({"n":0})"}, {"b", "read", R"({"n":1})"}, {"c", "write", "{}"}, {"d", "read", R"({"n":3})"}}));
  bench.model->then(text("done"));
  auto session = bench.open();
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
  CHECK(most == 2);
  std::string order;
  for (const auto& result : bench.all<event::ToolResult>(*session))
    order += result.call_id + "=" + result.content + " ";
  CHECK(order == "a=read 0 b=read 1 c=written d=read 3 ");
  CHECK(roles(bench.model->request(1)) == "uatttt");
}

TEST_CASE("no more reads run at once than the limit", "[turn]") {
  Bench bench;
  bench.services.loop.parallel_reads = 3;
  std::atomic<int> running{0}, most{0}, ran{0};
  bench.tool("read", true, [&](const Json&, ToolContext&) {
    most = std::max(most.load(), ++running);
    std::this_thread::yield();
    --running;
    ++ran;
    return ok("x");
  });
  std::vector<llm::ToolCall> many;
  for (int i = 0; i < 20; ++i) many.push_back({"c" + std::to_string(i), "read", "{}"});
  bench.model->then(calls(many));
  bench.model->then(text("done"));
  auto session = bench.open();
  bench.prompt(session->id(), "go");
  CHECK(most <= 3);
  CHECK(ran == 20);
}

TEST_CASE("a change is on disk before it runs, and a call sees its policy", "[turn]") {
  Bench bench;
  bench.policies(sandbox::Mode::workspace_write, ApprovalPolicy::ask);
  sandbox::Policy policy;
  std::string log, call_id;
  bench.tool("write", false, [&](const Json&, ToolContext& context) {
    policy = context.policy;
    log = slurp(context.session.folder() + "/session.jsonl");
    call_id = context.call_id;
    return ok("x");
  });
  bench.model->then(calls({{"a", "write", ""}}));
  bench.model->then(text("done"));
  auto session = bench.open();
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
  CHECK(policy.mode == sandbox::Mode::workspace_write);
  CHECK(policy.workspace_root == bench.folder / "work");
  CHECK(policy.session_id == session->id());
  CHECK(has(log, "\"type\":\"tool/call\",\"data\":{\"call_id\":\"" + call_id));
}

TEST_CASE("bad calls get every violation in one error result and run nothing", "[turn]") {
  Bench bench;
  int ran = 0;
  bench.services.tools.push_back(std::make_shared<LambdaTool>(
      "edit", false, [&](const Json&, ToolContext&) { return ++ran, ok("x"); },
      R"({"type":"object","properties":{"path":{"type":"string"},"count":{"type":"integer"}},"required":["path","text"],"additionalProperties":false})"));
  bench.model->then(calls({{"a", "edit", R"({"path":1,"count":"x","more":true})"},
                           {"b", "edit", R"({"path":)"},
                           {"c", "edit", "[]"},
                           {"d", "nothing", "{}"},
                           {"e", "edit", "{}"},
                           {"f", "edit", R"({"sandbox_permissions":"danger-full-access"})"}}));
  bench.model->then(text("done"));
  auto session = bench.open();
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
  CHECK(ran == 0);
  const auto results = bench.all<event::ToolResult>(*session);
  REQUIRE(results.size() == 6);
  CHECK_FALSE(has(results[4].content, "nothing is confined here"));
  CHECK(has(results[5].content, "nothing is confined here"));
  for (const auto& result : results) CHECK(result.is_error);
  INFO(results[0].content);
  for (const char* named : {"path", "count", "more", "text"}) CHECK(has(results[0].content, named));
  CHECK(has(results[1].content, "not valid JSON"));
  CHECK(has(results[2].content, "one JSON object"));
  CHECK(has(results[3].content, "unknown tool \"nothing\""));
  CHECK(has(results[3].content, "edit"));
  CHECK(has(results[4].content, "path"));
  CHECK(has(results[4].content, "text"));
}

TEST_CASE("empty arguments are an empty object", "[turn]") {
  Bench bench;
  bench.tool("t", true, [](const Json& arguments, ToolContext&) { return ok(base::dump(arguments)); });
  bench.model->then(calls({{"a", "t", ""}}));
  bench.model->then(text("done"));
  auto session = bench.open();
  bench.prompt(session->id(), "go");
  CHECK(bench.all<event::ToolResult>(*session).at(0).content == "{}");
}

TEST_CASE("a tool that throws is an error result", "[turn]") {
  Bench bench;
  bench.tool("t", true, [](const Json&, ToolContext&) -> ToolOutcome { throw std::runtime_error("secret"); });
  bench.model->then(calls({{"a", "t", "{}"}, {"b", "t", "{}"}}));
  bench.model->then(text("done"));
  auto session = bench.open();
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
  for (const auto& result : bench.all<event::ToolResult>(*session)) {
    CHECK(result.is_error);
    CHECK_FALSE(has(result.content, "secret"));
  }
}

TEST_CASE("call ids are unique in a session, and names can be sent again", "[turn]") {
  Bench bench;
  bench.tool("t", true, [](const Json&, ToolContext&) { return ok("x"); });
  bench.model->then(calls({{"0", "t", ""}, {"0", "t", ""}, {"", "t", ""}, {std::string(9000, 'x'), "a b!", ""}}));
  bench.model->then(calls({{"0", "t", ""}}));
  bench.model->then(text("done"));
  auto session = bench.open();
  bench.prompt(session->id(), "go");
  std::string ids;
  for (const auto& call : bench.all<event::ToolCall>(*session)) ids += call.call_id + ":" + call.name + " ";
  CHECK(ids == "0:t 0-2:t call:t call-2:a_b_ 0-3:t ");
}

TEST_CASE("max tokens: nothing of the answer is run", "[turn]") {
  Bench bench;
  int ran = 0;
  bench.tool("t", true, [&](const Json&, ToolContext&) { return ++ran, ok("x"); });
  Completion cut = calls({{"a", "t", "{}"}}, FinishReason::max_tokens);
  cut.dropped_calls = 1;
  bench.model->then(cut);
  bench.model->then(text("go on"));
  auto session = bench.open();
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::max_tokens);
  CHECK(ran == 0);
  const auto result = bench.all<event::ToolResult>(*session).at(0);
  CHECK(has(result.content, "not started"));
  CHECK(has(result.content, "output limit"));
  CHECK(bench.all<event::ToolCall>(*session).empty());
  CHECK(bench.prompt(session->id(), "more").reason == TurnEndReason::completed);
}

TEST_CASE("max tokens with nothing said is no empty answer", "[turn]") {
  Bench bench;
  bench.model->then(text("", FinishReason::max_tokens));
  bench.model->then(text("better"));
  auto session = bench.open();
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::max_tokens);
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
  CHECK(roles(bench.model->request(1)) == "uu");
}

TEST_CASE("a content filter blocks the turn", "[turn]") {
  Bench bench;
  bench.model->then(text("I", FinishReason::content_filter));
  auto session = bench.open();
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::blocked);
  CHECK(bench.all<event::TurnEnd>(*session).at(0).reason == TurnEndReason::blocked);
}

TEST_CASE("an empty answer is retried in the same step", "[turn]") {
  Bench bench;
  bench.model->then(text(""));
  bench.model->then(text("there"));
  auto session = bench.open();
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
  CHECK(bench.all<event::StepStart>(*session).size() == 1);
  const auto retry = bench.all<event::LlmRetry>(*session).at(0);
  CHECK(retry.attempt == 1);
  CHECK(retry.code == "empty_response");
  CHECK(bench.model->bodies().at(0) == bench.model->bodies().at(1));
}

TEST_CASE("a shown answer that is retried is aborted, and the retry has a new id", "[turn]") {
  Bench bench;
  bench.model->then([](const llm::StreamSink& sink, std::stop_token) -> Answer {
    sink.on_text("half");
    return failed(ErrorCode::cut_stream, true);
  });
  bench.model->then(text("whole"));
  auto session = bench.open();
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
  CHECK(has(bench.types(*session), "request/header assistant/aborted llm/retry assistant/message"));
  const auto aborted = bench.all<event::AssistantAborted>(*session).at(0);
  const auto message = bench.all<event::AssistantMessage>(*session).at(0);
  CHECK(aborted.text == "half");
  CHECK(aborted.message_id != message.message_id);
  bench.model->then(text("x"));
  bench.prompt(session->id(), "more");
  CHECK_FALSE(has(bench.model->bodies().back(), "half"));
}

TEST_CASE("retries end; what is not retryable is not retried", "[turn]") {
  Bench bench;
  bench.services.loop.retry_delays_ms = {1, 1};
  auto session = bench.open();
  for (int i = 0; i < 3; ++i) bench.model->then(failed(ErrorCode::server, true));
  PromptEnd end = bench.prompt(session->id(), "go");
  CHECK(end.reason == TurnEndReason::error);
  CHECK(end.error->code == ErrorCode::server);
  CHECK(end.retryable);
  CHECK(bench.all<event::LlmRetry>(*session).size() == 2);
  const auto last = bench.all<event::TurnEnd>(*session).at(0);
  CHECK(last.reason == TurnEndReason::error);
  CHECK(last.code == "server");
  CHECK(last.message == "the server said no");

  bench.model->then(failed(ErrorCode::auth, false));
  end = bench.prompt(session->id(), "go");
  CHECK(end.error->code == ErrorCode::auth);
  CHECK_FALSE(end.retryable);
  CHECK(bench.all<event::LlmRetry>(*session).size() == 2);

  bench.model->then(text("now"));
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
}

TEST_CASE("retry-after is obeyed up to its limit", "[turn]") {
  Bench bench;
  auto session = bench.open();
  bench.model->then(failed(ErrorCode::rate_limit, true, 30));
  bench.model->then(text("x"));
  const auto begun = std::chrono::steady_clock::now();
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
  CHECK(std::chrono::steady_clock::now() - begun >= std::chrono::milliseconds(30));
  CHECK(bench.all<event::LlmRetry>(*session).at(0).delay_ms == 30);
  bench.model->then(failed(ErrorCode::rate_limit, true, 60'001));
  const PromptEnd end = bench.prompt(session->id(), "go");
  CHECK(end.reason == TurnEndReason::error);
  CHECK(end.retryable);
}

TEST_CASE("the same call again and again is answered by a reminder at 3, 5 and 8", "[turn]") {
  Bench bench;
  bench.tool("t", true, [](const Json&, ToolContext&) { return ok("same"); });
  for (int i = 0; i < 9; ++i) bench.model->then(calls({{"", "t", R"({"n":1})"}}));
  bench.model->then(calls({{"", "t", R"({"n":2})"}}));
  bench.model->then(text("done"));
  auto session = bench.open();
  bench.prompt(session->id(), "go");
  std::string reminded;
  for (std::size_t i = 0; i < bench.model->bodies().size(); ++i) {
    const auto messages = bench.model->request(i);
    if (has(messages.back()["text"].get<std::string>(), "[reminder]")) reminded += std::to_string(i) + " ";
  }
  CHECK(reminded == "3 5 8 ");
  CHECK(has(bench.model->request(3).back()["text"].get<std::string>(), "3 times"));
  for (const auto& message : bench.all<event::UserMessage>(*session)) {
    CHECK((message.source == nullptr) == !has(model_text(message.content), "[reminder]"));
  }
  CHECK(session->inbox().empty());
}

TEST_CASE("steps are limited", "[turn]") {
  Bench bench;
  bench.services.loop.max_steps = 2;
  bench.tool("t", true, [](const Json&, ToolContext&) { return ok("x"); });
  bench.model->then(calls({{"", "t", R"({"n":1})"}}));
  bench.model->then(calls({{"", "t", R"({"n":2})"}}));
  bench.model->then(text("later"));
  auto session = bench.open();
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::max_steps);
  CHECK(bench.model->bodies().size() == 2);
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
}

TEST_CASE("what waits for the next step is claimed by it, and steering keeps the turn going", "[turn]") {
  Bench bench;
  auto session = bench.open();
  const auto add = [&](const char* id, InboxTarget target, const char* said) {
    return session->append(event::InboxSpliced{{{id, target, words(said), nullptr}}, {}}).has_value();
  };
  REQUIRE(add("i", InboxTarget::injected, "injected"));
  REQUIRE(add("later", InboxTarget::next_turn, "for another turn"));
  bench.model->then([&](const llm::StreamSink&, std::stop_token) -> Answer {
    return text(add("s", InboxTarget::next_step, "steering") ? "first" : "not added");
  });
  bench.model->then(text("second"));
  CHECK(bench.prompt(session->id(), "mine").reason == TurnEndReason::completed);
  const auto last = bench.model->request(1);
  CHECK(roles(last) == "uuau");
  CHECK(last[0]["text"] == "injected");
  CHECK(last[1]["text"] == "for another turn");  // one prompt a turn, in order of arrival
  CHECK(last[3]["text"] == "steering");
  REQUIRE(session->inbox().size() == 1);
  CHECK(model_text(session->inbox()[0].content) == "mine");
}

TEST_CASE("a log that cannot be written ends the turn, and the session takes no other", "[turn]") {
  Bench bench;
  auto session = bench.open();
  bench.tool("t", false, [&](const Json&, ToolContext&) { return ok("x"); });
  // The limit on file size is the kernel's own full disk. SIGXFSZ is ignored so that the write fails instead.
  struct rlimit old {};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit tight = old;
  bench.model->then([&](const llm::StreamSink&, std::stop_token) -> Answer {
    tight.rlim_cur = std::filesystem::file_size(session->folder() + "/session.jsonl") + 10;
    ::setrlimit(RLIMIT_FSIZE, &tight);
    return text("an answer that does not fit");
  });
  const PromptEnd end = bench.prompt(session->id(), "go");
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  CHECK(end.reason == TurnEndReason::error);
  REQUIRE(end.error.has_value());
  CHECK(end.error->code == ErrorCode::io);
  CHECK(has(end.error->message, "cannot be written"));
  const PromptEnd again = bench.prompt(session->id(), "go");
  CHECK(again.reason == TurnEndReason::error);
  CHECK(bench.model->bodies().size() == 1);
  // The next process cuts the half line and goes on.
  const std::string id = session->id();
  session.reset();
  bench.restart();
  REQUIRE(bench.agent().load_session(id, "", nullptr).has_value());
  bench.model->then(text("fine"));
  CHECK(bench.prompt(id, "go").reason == TurnEndReason::completed);
}

TEST_CASE("facts of a turn for its answer", "[turn]") {
  Bench bench;
  const auto facts = [](Json members, bool is_error = false) {
    return ToolOutcome{"x", is_error, base::share(std::move(members))};
  };
  std::deque<ToolOutcome> outcomes;
  bench.tool("t", true, [&](const Json&, ToolContext&) {
    ToolOutcome next = outcomes.front();
    outcomes.pop_front();
    return next;
  });
  auto session = bench.open();
  const auto run = [&](std::vector<ToolOutcome> list) {
    outcomes.assign(list.begin(), list.end());
    for (std::size_t i = 0; i < list.size(); ++i) {
      bench.model->then(calls({{"", "t", "{\"n\":" + std::to_string(i) + "}"}}));
    }
    bench.model->then(text("done"));
    return bench.prompt(session->id(), "go");
  };
  PromptEnd end = run({facts({{"denied", true}, {"denied_key", "k"}})});
  CHECK(end.denied);
  CHECK(end.escalation.empty());
  end = run(
      {facts({{"denied", true}, {"denied_key", "k"}}), facts({{"denied_key", "k"}, {"escalation", "allowed-once"}})});
  CHECK_FALSE(end.denied);
  CHECK(end.escalation == "allowed-once");
  end = run({facts({{"denied", true}, {"denied_key", "k"}}), facts({{"denied_key", "other"}})});
  CHECK(end.denied);
  end = run({facts({{"denied", true}, {"denied_key", "k"}, {"exit_code", 0}})});
  CHECK_FALSE(end.denied);
  end = run({facts({{"denied", true}, {"denied_key", "k"}, {"exit_code", 1}})});
  CHECK(end.denied);
  end = run({facts({{"escalation", "rejected"}, {"denied_key", "k"}}, true)});
  CHECK(end.denied);
  CHECK(end.escalation == "rejected");
  end = run({facts({{"sandbox_unavailable", true}}, true)});
  CHECK(end.sandbox_unavailable);
  CHECK_FALSE(end.denied);
  end = run({facts({{"sandbox_unavailable", true}}, true), ok("fine")});
  CHECK_FALSE(end.sandbox_unavailable);
}

TEST_CASE("what a call touched is kept in its result only where it matters", "[turn]") {
  Bench bench;
  std::deque<Json> outcomes = {Json{{"denied_key", "k"}, {"more", 1}}, Json{{"denied_key", "k"}, {"denied", true}},
                               Json{{"denied_key", "k"}}, Json{{"denied_key", "other"}, {"escalation", "rejected"}}};
  bench.tool("t", true, [&](const Json&, ToolContext&) {
    ToolOutcome next{"x", false, base::share(outcomes.front())};
    outcomes.pop_front();
    return next;
  });
  auto session = bench.open();
  for (int i = 0; i < 4; ++i) bench.model->then(calls({{"", "t", "{\"n\":" + std::to_string(i) + "}"}}));
  bench.model->then(text("done"));
  bench.prompt(session->id(), "go");
  const auto results = bench.all<event::ToolResult>(*session);
  REQUIRE(results.size() == 4);
  CHECK_FALSE(results[0].facts->contains("denied_key"));
  CHECK(results[0].facts->contains("more"));
  CHECK(results[1].facts->at("denied_key") == "k");
  CHECK(results[2].facts->at("denied_key") == "k");  // it settles the denial before it
  CHECK(results[3].facts->at("denied_key") == "other");
}

TEST_CASE("a NUL in an answer repeats the end of what was shown", "[turn]") {
  Bench bench;
  bench.model->then(text(std::string("x\0 costs 5", 10)));
  auto session = bench.open();
  std::string shown;
  Observer observer;
  observer.on_delta = [&](const LiveDelta& delta) { shown += delta.text; };
  session->set_observer(observer);
  bench.prompt(session->id(), "hi");
  session->set_observer({});
  CHECK(shown == "x\xEF\xBF\xBD costs 5");
  CHECK(bench.all<event::AssistantMessage>(*session).at(0).message.text == shown);
}

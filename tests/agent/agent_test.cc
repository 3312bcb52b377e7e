#include "agent/agent.h"

#include "tests/agent/support.h"

namespace {

using namespace agent;
using namespace test;
using base::ErrorCode;

}  // namespace

TEST_CASE("no ready route is an auth error that says what to set", "[agent]") {
  Bench bench;
  bench.services.routes[0].ready = false;
  bench.services.routes[0].missing = "set OPENAI_API_KEY";
  auto session = bench.agent().new_session(bench.folder / "work");
  REQUIRE_FALSE(session.has_value());
  CHECK(session.error().code == ErrorCode::auth);
  CHECK(has(session.error().message, "OPENAI_API_KEY"));
}

TEST_CASE("a session without a route can be loaded, and its prompt says what is missing", "[agent]") {
  Bench bench;
  const std::string id = bench.open()->id();
  bench.restart();
  bench.services.routes[0].ready = false;
  REQUIRE(bench.agent().load_session(id, bench.folder / "work", nullptr).has_value());
  const PromptEnd end = bench.prompt(id, "go");
  CHECK(end.reason == TurnEndReason::error);
  CHECK(end.error->code == ErrorCode::auth);
  CHECK_FALSE(bench.agent().find(id)->turn_open());
}

TEST_CASE("one prompt at a time; the next may come with the answer", "[agent]") {
  Bench bench;
  Gate asked, answer;
  bench.model->then([&](const llm::StreamSink&, std::stop_token) -> Answer {
    asked.open();
    answer.wait();
    return text("one");
  });
  bench.model->then(text("two"));
  auto session = bench.open();
  std::promise<PromptEnd> second;
  REQUIRE(bench.agent().prompt(session->id(), words("go"), [&](PromptEnd) {
    // The client sends its next prompt the moment it has this answer.
    auto taken = bench.agent().prompt(session->id(), words("on"), [&](PromptEnd end) { second.set_value(end); });
    CHECK(taken.has_value());
  }));
  asked.wait();
  auto busy = bench.agent().prompt(session->id(), words("too soon"), [](PromptEnd) { FAIL("called"); });
  REQUIRE_FALSE(busy.has_value());
  CHECK(busy.error().code == ErrorCode::busy);
  CHECK(bench.agent().load_session(session->id(), "", nullptr).error().code == ErrorCode::busy);
  answer.open();
  CHECK(get(second.get_future()).reason == TurnEndReason::completed);
  CHECK(bench.agent().prompt("nobody", words("x"), [](PromptEnd) {}).error().code == ErrorCode::not_found);
}

TEST_CASE("two sessions run at once and know nothing of each other", "[agent]") {
  Bench bench;
  std::filesystem::create_directory(bench.folder / "other");
  bench.policies(sandbox::Mode::workspace_write, ApprovalPolicy::ask);
  Gate both;
  std::atomic<int> inside{0};
  bench.tool("meet", false, [&](const Json&, ToolContext& context) -> ToolOutcome {
    if (++inside == 2) both.open();
    both.wait();
    return {context.policy.workspace_root, false, nullptr};
  });
  for (int i = 0; i < 2; ++i) bench.model->then(calls({{"a", "meet", "{}"}}));
  for (int i = 0; i < 2; ++i) bench.model->then(text("done"));
  auto one = bench.open();
  auto two = bench.agent().new_session(bench.folder / "other");
  REQUIRE(two.has_value());
  auto first = bench.start(one->id(), "in one");
  auto second = bench.start((*two)->id(), "in two");
  CHECK(get(std::move(first)).reason == TurnEndReason::completed);
  CHECK(get(std::move(second)).reason == TurnEndReason::completed);
  CHECK(bench.all<event::ToolResult>(*one).at(0).content == bench.folder / "work");
  CHECK(bench.all<event::ToolResult>(**two).at(0).content == bench.folder / "other");
  CHECK_FALSE(has(slurp(one->folder() + "/session.jsonl"), "in two"));
}

TEST_CASE("a fresh agent continues a session byte for byte", "[agent]") {
  Bench bench;
  bench.policies(sandbox::Mode::workspace_write, ApprovalPolicy::ask);
  bench.tool("t", true, [](const Json&, ToolContext&) -> ToolOutcome { return {"odd \xff bytes", false, nullptr}; });
  bench.model->then(calls({{"a", "t", R"({"n":1})"}}));
  bench.model->then([](const llm::StreamSink& sink, std::stop_token) -> Answer {
    sink.on_text("lost");
    return failed(ErrorCode::cut_stream, true);
  });
  bench.model->then(text("first answer \xE2\x82\xAC"));
  std::string id;
  {
    auto session = bench.open();
    id = session->id();
    bench.prompt(id, "one");
  }
  const auto before = bench.model->bodies();
  bench.restart();
  std::vector<Event> replayed;
  auto session = bench.agent().load_session(id, bench.folder / "work", [&](const Event& e) { replayed.push_back(e); });
  REQUIRE(session.has_value());
  CHECK((*session)->title() == "one");
  CHECK(replayed.size() == bench.events(**session).size());
  bench.model->then(failed(ErrorCode::bad_request, false));
  bench.prompt(id, "two");
  bench.model->then(text("end"));
  bench.prompt(id, "three");
  const auto bodies = bench.model->bodies();
  CHECK(bodies[3].compare(0, before.back().size() - 2, before.back(), 0, before.back().size() - 2) == 0);
  // Every request that was sent, from the log alone.
  CHECK(regenerate_requests(bench.events(**session), *bench.model) == bodies);
  CHECK(bodies.size() == 5);
}

TEST_CASE("requests are regenerated for every way a step can end", "[agent]") {
  Bench bench;
  bench.services.loop.retry_delays_ms = {1};
  auto session = bench.open();
  const auto check = [&] { CHECK(regenerate_requests(bench.events(*session), *bench.model) == bench.model->bodies()); };
  bench.model->then(failed(ErrorCode::server, true));
  bench.model->then(failed(ErrorCode::server, true));
  bench.prompt(session->id(), "fails twice");
  check();
  bench.model->then([&](const llm::StreamSink& sink, std::stop_token) -> Answer {
    sink.on_text("some");
    bench.agent().cancel(session->id());
    return failed(ErrorCode::cancelled, false);
  });
  bench.prompt(session->id(), "stopped with text");
  check();
  bench.model->then([&](const llm::StreamSink&, std::stop_token) -> Answer {
    bench.agent().cancel(session->id());
    return failed(ErrorCode::cancelled, false);
  });
  bench.prompt(session->id(), "stopped without");
  check();
  bench.model->then(text("", FinishReason::max_tokens));
  bench.prompt(session->id(), "nothing");
  check();
  // Stopped after the claim, before the request.
  Observer observer;
  observer.on_event = [&](const Event& event) {
    if (const auto* start = std::get_if<event::StepStart>(&event.payload); start && start->turn == 5) {
      bench.agent().cancel(session->id());
    }
  };
  session->set_observer(observer);
  CHECK(bench.prompt(session->id(), "never sent").reason == TurnEndReason::aborted);
  session->set_observer({});
  check();
  bench.model->then(text("end"));
  bench.prompt(session->id(), "last");
  check();
  CHECK(bench.model->bodies().size() == 6);
}

TEST_CASE("a log cut after any line, or in it, loads and goes on", "[agent]") {
  Bench bench;
  bench.policies(sandbox::Mode::read_only, ApprovalPolicy::ask);
  bench.services.approval->add_answerer(
      [](Session&, const ApprovalRequest&, std::stop_token) { return std::optional(ApprovalOutcome::rejected); });
  bench.tool("read", true, [](const Json&, ToolContext&) -> ToolOutcome { return {"r", false, nullptr}; });
  bench.tool("write", false, [&](const Json& arguments, ToolContext& context) -> ToolOutcome {
    auto escalation =
        resolve_escalation(arguments, context, "write", "this operation", "k", {}, true, bench.services.approval.get());
    return escalation ? ToolOutcome{"w", false, nullptr} : escalation.error();
  });
  bench.model->then(failed(ErrorCode::server, true));
  bench.model->then(calls({{"a", "read", "{}"},
                           {"b", "read", "{}"},
                           {"c", "write", R"({"sandbox_permissions":"workspace-write","justification":"x"})"},
                           {"d", "write", "{}"}}));
  bench.model->then(text("done"));
  bench.model->then(calls({{"e", "read", "{}"}}, FinishReason::max_tokens));
  std::string id, file;
  {
    auto session = bench.open();
    id = session->id();
    file = session->folder() + "/session.jsonl";
    bench.prompt(id, "one");
    bench.prompt(id, "two");
  }
  bench.restart();
  const std::string whole = slurp(file);
  std::size_t loads = 0;
  for (std::size_t end = whole.find('\n') + 1; end != std::string::npos + 1; end = whole.find('\n', end) + 1) {
    for (const std::size_t extra : {std::size_t{0}, std::size_t{7}}) {
      if (end + extra > whole.size()) continue;
      put(file, whole.substr(0, end + extra));
      INFO("cut at byte " << end + extra);
      auto session = bench.agent().load_session(id, "", nullptr);
      REQUIRE(session.has_value());
      CHECK_FALSE((*session)->turn_open());
      bench.model->then(text("on"));
      CHECK(bench.prompt(id, "go on").reason == TurnEndReason::completed);
      const auto bodies = bench.model->bodies();
      const auto again = regenerate_requests(bench.events(**session), *bench.model);
      REQUIRE_FALSE(again.empty());
      CHECK(again.back() == bodies.back());
      ++loads;
      bench.restart();
    }
  }
  CHECK(loads > 60);
}

TEST_CASE("loading a live session replays its file", "[agent]") {
  Bench bench;
  bench.model->then(text("hello"));
  auto session = bench.open();
  bench.prompt(session->id(), "hi");
  std::vector<Event> replayed;
  auto again = bench.agent().load_session(session->id(), bench.folder / "work/.", [&](const Event& event) {
    replayed.push_back(event);
    CHECK(bench.agent().prompt(session->id(), words("now?"), [](PromptEnd) {}).error().code == ErrorCode::busy);
  });
  REQUIRE(again.has_value());
  CHECK(*again == session);
  CHECK(replayed.size() == bench.events(*session).size());
  bench.model->then(text("more"));
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
}

TEST_CASE("a session belongs to its folder", "[agent]") {
  Bench bench;
  const std::string id = bench.open()->id();
  int replayed = 0;
  const auto count = [&](const Event&) { ++replayed; };
  CHECK(bench.agent().load_session(id, "/", count).error().code == ErrorCode::invalid_argument);
  bench.restart();
  auto other = bench.agent().load_session(id, bench.folder.path(), count);
  CHECK(other.error().code == ErrorCode::invalid_argument);
  CHECK(has(other.error().message, bench.folder / "work"));
  CHECK(replayed == 0);
  CHECK(bench.agent().load_session("nobody", "/", count).error().code == ErrorCode::not_found);
  CHECK(bench.agent().load_session("../x", "/", count).error().code == ErrorCode::not_found);
  CHECK(bench.agent().load_session(id, bench.folder / "work", count).has_value());
  CHECK(replayed == 1);
}

TEST_CASE("presets append only what changed", "[agent]") {
  Bench bench;
  bench.policies(sandbox::Mode::workspace_write, ApprovalPolicy::ask);
  bench.services.presets = {{"read-only", sandbox::Mode::read_only, ApprovalPolicy::ask},
                            {"workspace-write", sandbox::Mode::workspace_write, ApprovalPolicy::ask},
                            {"danger-full-access", sandbox::Mode::danger_full_access, ApprovalPolicy::never}};
  auto session = bench.open();
  const std::string id = session->id();
  CHECK(bench.agent().current_preset(*session) == "workspace-write");
  REQUIRE(bench.agent().set_preset(id, "workspace-write"));
  CHECK(bench.types(*session) == "session");
  REQUIRE(bench.agent().set_preset(id, "read-only"));
  CHECK(bench.types(*session) == "session sandbox/mode permission/preset");
  CHECK(bench.agent().current_preset(*session) == "read-only");
  REQUIRE(bench.agent().set_preset(id, "read-only"));
  CHECK(bench.types(*session) == "session sandbox/mode permission/preset");
  REQUIRE(bench.agent().set_preset(id, "danger-full-access"));
  CHECK(bench.types(*session) ==
        "session sandbox/mode permission/preset sandbox/mode approval/policy permission/preset");
  auto unknown = bench.agent().set_preset(id, "root");
  CHECK(unknown.error().code == ErrorCode::invalid_argument);
  CHECK(has(unknown.error().message, "workspace-write"));
  CHECK(bench.agent().set_preset("nobody", "read-only").error().code == ErrorCode::not_found);
  REQUIRE(session->append(event::SandboxMode{sandbox::Mode::read_only}));
  CHECK(bench.agent().current_preset(*session) == "custom");
  session.reset();
  bench.restart();
  REQUIRE(bench.agent().load_session(id, "", nullptr).has_value());
  CHECK(bench.agent().current_preset(*bench.agent().find(id)) == "custom");
}

TEST_CASE("shutdown ends turns as disposed within its time and refuses work", "[agent]") {
  Bench bench;
  Gate asked;
  bench.model->then([&](const llm::StreamSink&, std::stop_token stop) -> Answer {
    asked.open();
    wait_stop(stop);
    return failed(ErrorCode::cancelled, false);
  });
  auto session = bench.open();
  auto running = bench.start(session->id(), "go");
  asked.wait();
  const auto begun = std::chrono::steady_clock::now();
  bench.agent().shutdown();
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(2));
  const PromptEnd end = get(std::move(running));
  CHECK(end.reason == TurnEndReason::aborted);
  CHECK(end.cause == AbortCause::disposed);
  CHECK(bench.all<event::TurnEnd>(*session).at(0).cause == AbortCause::disposed);
  CHECK_FALSE(bench.agent().new_session(bench.folder / "work").has_value());
  CHECK_FALSE(bench.agent().load_session(session->id(), "", nullptr).has_value());
  CHECK_FALSE(bench.agent().prompt(session->id(), words("x"), [](PromptEnd) {}).has_value());
  bench.agent().shutdown();
}

TEST_CASE("shutdown lets no command start, and kills running ones without their grace", "[agent]") {
  Bench bench;
  bench.services.shell = std::make_shared<sandbox::ShellExecutor>(sandbox::ShellOptions{}, nullptr);
  bench.open();
  bench.agent().shutdown();
  const auto outcome = bench.services.shell->run(sandbox::ShellRequest{"true", "/", {}, {}, "", {}}, {});
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error().code == ErrorCode::cancelled);
}

TEST_CASE("views are the tool's own for calls that could run, plain for others", "[agent]") {
  Bench bench;
  bench.tool("t", true, [](const Json&, ToolContext&) -> ToolOutcome { return {"x", false, nullptr}; });
  const event::ToolCall good{"c", "t", "{}"}, bad{"c", "t", "{"}, unknown{"c", "nothing", "{}"};
  CHECK(bench.agent().view(good, "/").title == "view of t");
  CHECK(bench.agent().view(bad, "/").title == "t");
  CHECK(bench.agent().view(bad, "/").kind == "other");
  CHECK(bench.agent().view(unknown, "/").title == "nothing");
  const event::ToolResult result{"c", "text", true, base::share(Json{{"started", false}})};
  CHECK(bench.agent().view(good, result, "/").text == "text");
  CHECK(bench.agent().view(unknown, result, "/").text == "text");
}

TEST_CASE("a fault of ours ends the turn, not the session", "[agent]") {
  Bench bench;
  auto session = bench.open();
  bench.model->then([](const llm::StreamSink&, std::stop_token) -> Answer { throw std::runtime_error("broken"); });
  const PromptEnd end = bench.prompt(session->id(), "go");
  CHECK(end.reason == TurnEndReason::error);
  CHECK(end.error->code == ErrorCode::internal);
  CHECK(bench.all<event::TurnEnd>(*session).at(0).reason == TurnEndReason::error);
  bench.model->then(text("fine"));
  CHECK(bench.prompt(session->id(), "go").reason == TurnEndReason::completed);
}

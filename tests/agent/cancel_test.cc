// A turn can be stopped in every state; every call keeps exactly one result (the scripted model checks it), and the
// session takes the next prompt.
#include "agent/agent.h"
#include "tests/agent/support.h"

namespace {

using namespace agent;
using namespace test;
using base::ErrorCode;

Answer stopped() { return failed(ErrorCode::cancelled, false); }

void check_cancelled(const PromptEnd& end) {
  CHECK(end.reason == TurnEndReason::aborted);
  CHECK(end.cause == AbortCause::user);
  CHECK_FALSE(end.error.has_value());
}

struct CancelBench : Bench {
  // Cancels, and waits for the answer no longer than the contract allows.
  PromptEnd cancel(std::future<PromptEnd> running, const std::string& id) {
    const auto begun = std::chrono::steady_clock::now();
    agent().cancel(id);
    PromptEnd end = get(std::move(running));
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(1));
    return end;
  }
  void goes_on(const std::string& id) {
    model->then(text("fine"));
    CHECK(prompt(id, "next").reason == TurnEndReason::completed);
  }
};

}  // namespace

TEST_CASE("cancel while streaming keeps what was shown", "[cancel]") {
  CancelBench bench;
  Gate shown;
  bench.model->then([&](const llm::StreamSink& sink, std::stop_token stop) -> Answer {
    sink.on_text("half an ");
    shown.open();
    wait_stop(stop);
    return stopped();
  });
  auto session = bench.open();
  auto running = bench.start(session->id(), "go");
  shown.wait();
  check_cancelled(bench.cancel(std::move(running), session->id()));
  const auto message = bench.all<event::AssistantMessage>(*session).at(0);
  CHECK(message.interrupted);
  CHECK(message.message.text == "half an ");
  const auto end = bench.all<event::TurnEnd>(*session).at(0);
  CHECK(end.reason == TurnEndReason::aborted);
  CHECK(end.cause == AbortCause::user);
  bench.goes_on(session->id());
  CHECK(bench.model->request(1)[1]["text"] == "half an ");
}

TEST_CASE("cancel before anything was shown leaves nothing to send", "[cancel]") {
  CancelBench bench;
  Gate asked;
  bench.model->then([&](const llm::StreamSink&, std::stop_token stop) -> Answer {
    asked.open();
    wait_stop(stop);
    return stopped();
  });
  auto session = bench.open();
  auto running = bench.start(session->id(), "go");
  asked.wait();
  check_cancelled(bench.cancel(std::move(running), session->id()));
  bench.goes_on(session->id());
  CHECK(bench.model->request(1).size() == 2);
}

TEST_CASE("cancel while a tool runs", "[cancel]") {
  CancelBench bench;
  Gate started;
  bench.tool("slow", false, [&](const Json&, ToolContext& context) -> ToolOutcome {
    started.open();
    wait_stop(context.stop);
    return {"partial output", true, nullptr};
  });
  bench.model->then(calls({{"a", "slow", "{}"}, {"b", "slow", "{}"}, {"c", "unknown", "{}"}}));
  auto session = bench.open();
  auto running = bench.start(session->id(), "go");
  started.wait();
  check_cancelled(bench.cancel(std::move(running), session->id()));
  const auto results = bench.all<event::ToolResult>(*session);
  REQUIRE(results.size() == 3);
  CHECK(has(results[0].content, "partial output\n[aborted"));
  CHECK(fact(results[0], "aborted") == "true");
  for (int i = 1; i < 3; ++i) {
    CHECK(has(results[static_cast<std::size_t>(i)].content, "not started"));
    CHECK(fact(results[static_cast<std::size_t>(i)], "started") == "false");
  }
  CHECK(bench.all<event::ToolCall>(*session).size() == 1);
  bench.goes_on(session->id());
}

TEST_CASE("a call that was done before the stop reached it says so", "[cancel]") {
  CancelBench bench;
  Gate started;
  bench.tool("write", false, [&](const Json&, ToolContext& context) -> ToolOutcome {
    started.open();
    wait_stop(context.stop);
    return {"written", false, nullptr};
  });
  bench.model->then(calls({{"a", "write", "{}"}}));
  auto session = bench.open();
  auto running = bench.start(session->id(), "go");
  started.wait();
  check_cancelled(bench.cancel(std::move(running), session->id()));
  const auto result = bench.all<event::ToolResult>(*session).at(0);
  CHECK(result.content == "written");
  CHECK_FALSE(result.is_error);
  bench.goes_on(session->id());
}

TEST_CASE("cancel while reads run together", "[cancel]") {
  CancelBench bench;
  std::atomic<int> begun{0};
  Gate all;
  bench.tool("slow", true, [&](const Json&, ToolContext& context) -> ToolOutcome {
    if (++begun == 3) all.open();
    wait_stop(context.stop);
    return {"", true, nullptr};
  });
  bench.model->then(calls({{"a", "slow", "{}"}, {"b", "slow", "{}"}, {"c", "slow", "{}"}}));
  auto session = bench.open();
  auto running = bench.start(session->id(), "go");
  all.wait();
  check_cancelled(bench.cancel(std::move(running), session->id()));
  for (const auto& result : bench.all<event::ToolResult>(*session)) CHECK(fact(result, "aborted") == "true");
  bench.goes_on(session->id());
}

TEST_CASE("cancel while an approval is open", "[cancel]") {
  CancelBench bench;
  bench.policies(sandbox::Mode::read_only, ApprovalPolicy::ask);
  Gate open;
  bench.services.approval->add_answerer([&](Session&, const ApprovalRequest&, std::stop_token stop) {
    open.open();
    wait_stop(stop);
    return std::optional(ApprovalOutcome::cancelled);
  });
  int ran = 0;
  bench.tool("write", false, [&](const Json& arguments, ToolContext& context) -> ToolOutcome {
    auto escalation =
        resolve_escalation(arguments, context, "write", "this operation", "k", {}, true, bench.services.approval.get());
    if (!escalation) return escalation.error();
    ++ran;
    return {"x", false, nullptr};
  });
  bench.model->then(calls({{"a", "write", R"({"sandbox_permissions":"workspace-write","justification":"please"})"}}));
  auto session = bench.open();
  auto running = bench.start(session->id(), "go");
  open.wait();
  const PromptEnd end = bench.cancel(std::move(running), session->id());
  check_cancelled(end);
  CHECK(end.escalation == "cancelled");
  CHECK(ran == 0);
  CHECK(bench.all<event::ApprovalDecided>(*session).at(0).outcome == ApprovalOutcome::cancelled);
  bench.goes_on(session->id());
}

TEST_CASE("cancel while waiting for a retry", "[cancel]") {
  CancelBench bench;
  bench.services.loop.retry_delays_ms = {60'000};
  bench.model->then(failed(ErrorCode::server, true));
  auto session = bench.open();
  Gate retrying;
  Observer observer;
  observer.on_event = [&](const Event& event) {
    if (std::holds_alternative<event::LlmRetry>(event.payload)) retrying.open();
  };
  session->set_observer(observer);
  auto running = bench.start(session->id(), "go");
  retrying.wait();
  check_cancelled(bench.cancel(std::move(running), session->id()));
  session->set_observer({});
  CHECK(bench.all<event::AssistantMessage>(*session).empty());
  bench.goes_on(session->id());
}

TEST_CASE("cancel while waiting for the front end", "[cancel]") {
  CancelBench bench;
  Gate waiting;
  bench.model->then([&](const llm::StreamSink& sink, std::stop_token stop) -> Answer {
    sink.on_text("x");
    if (stop.stop_requested()) return stopped();
    return text("x");
  });
  auto session = bench.open();
  Observer observer;
  observer.wait_drained = [&](std::stop_token stop) {
    waiting.open();
    wait_stop(stop);
  };
  session->set_observer(observer);
  auto running = bench.start(session->id(), "go");
  waiting.wait();
  check_cancelled(bench.cancel(std::move(running), session->id()));
  session->set_observer({});
  bench.goes_on(session->id());
}

TEST_CASE("a whole answer that came with the stop is kept, and its calls are not run", "[cancel]") {
  CancelBench bench;
  int ran = 0;
  bench.tool("t", true, [&](const Json&, ToolContext&) -> ToolOutcome {
    return ++ran, ToolOutcome{"x", false, nullptr};
  });
  auto session = bench.open();
  bench.model->then([&](const llm::StreamSink&, std::stop_token) -> Answer {
    bench.agent().cancel(session->id());
    return calls({{"a", "t", "{}"}});
  });
  check_cancelled(bench.prompt(session->id(), "go"));
  CHECK(ran == 0);
  CHECK_FALSE(bench.all<event::AssistantMessage>(*session).at(0).interrupted);
  bench.model->then([&](const llm::StreamSink&, std::stop_token) -> Answer {
    bench.agent().cancel(session->id());
    return text("whole");
  });
  check_cancelled(bench.prompt(session->id(), "go"));
  bench.goes_on(session->id());
}

TEST_CASE("cancel races with everything and is answered once each time", "[cancel]") {
  CancelBench bench;
  bench.tool("t", true, [](const Json&, ToolContext&) -> ToolOutcome { return {"x", false, nullptr}; });
  auto session = bench.open();
  for (int i = 0; i < 60; ++i) {
    // Calls while nobody cancels, text in the end.
    std::atomic<int> left{3};
    for (int n = 0; n < 4; ++n) {
      bench.model->then([&left](const llm::StreamSink& sink, std::stop_token stop) -> Answer {
        sink.on_text("s");
        if (stop.stop_requested()) return stopped();
        if (left-- == 0) return text("end");
        return calls({{"", "t", "{}"}, {"", "t", "{}"}});
      });
    }
    auto running = bench.start(session->id(), "go");
    for (int spin = 0; spin < i * 20; ++spin) std::this_thread::yield();
    bench.agent().cancel(session->id());
    const PromptEnd end = get(std::move(running));
    CHECK((end.reason == TurnEndReason::aborted || end.reason == TurnEndReason::completed));
    bench.model->forget();
  }
  CHECK_FALSE(read_log(session->folder() + "/session.jsonl")->damage.has_value());
}

TEST_CASE("cancel of an idle or unknown session is nothing", "[cancel]") {
  CancelBench bench;
  auto session = bench.open();
  bench.agent().cancel(session->id());
  bench.agent().cancel("nobody");
  bench.goes_on(session->id());
}

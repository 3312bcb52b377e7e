#include "agent/context/context.h"

#include "tests/agent/support.h"

namespace {

using namespace agent;
using namespace test;

// Context messages in the messages of a request.
std::vector<std::string> contexts(const std::vector<Json>& messages) {
  std::vector<std::string> found;
  for (const Json& one : messages) {
    const std::string said = one["text"].get<std::string>();
    if (has(said, "runtime context")) found.push_back(said);
  }
  return found;
}

}  // namespace

TEST_CASE("the context message and its source", "[context]") {
  Bench bench;
  bench.policies(sandbox::Mode::read_only, ApprovalPolicy::ask);
  bench.model->then(text("hello"));
  auto session = bench.open();
  bench.prompt(session->id(), "hi");
  const auto message = *session->last_context();
  const Json& source = *message.source;
  CHECK(source["kind"] == "plugin");
  CHECK(source["plugin"].is_string());
  CHECK(source["form"] == "snapshot");
  REQUIRE(source["sections"].size() == 2);
  CHECK(source["sections"][0]["name"] == "sandbox:policy");
  CHECK(source["sections"][1]["name"] == "approval:policy");
  const std::string said = model_text(message.content);
  CHECK(has(said, "current runtime context"));
  CHECK(has(said, "supersedes"));
  for (const Json& section : source["sections"]) {
    CHECK(section.size() == 2);
    CHECK(has(said, section["text"].get<std::string>()));
  }
  // A user message, before the prompt it goes with.
  const auto sent = bench.model->request(0);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0]["role"] == "user");
  CHECK(sent[0]["text"] == said);
  CHECK(sent[1]["text"] == "hi");
  CHECK_FALSE(has(bench.model->head({"m", bench.services.loop.system, {}, "{}"}), "sandbox"));
}

TEST_CASE("each mode and each policy is stated; read-only does not make a model give up", "[context]") {
  Bench bench;
  bench.policies(sandbox::Mode::read_only, ApprovalPolicy::ask);
  auto session = bench.open();
  const auto stated = [&] { return compose_context(bench.services, *session); };
  CHECK(has(stated()[0].second, "read-only"));
  CHECK(has(stated()[0].second, "try the operation normally"));
  CHECK(has(stated()[1].second, "ask"));
  REQUIRE(session->append(event::SandboxMode{sandbox::Mode::workspace_write}));
  CHECK(has(stated()[0].second, "workspace-write"));
  CHECK(has(stated()[0].second, bench.folder / "work"));
  REQUIRE(session->append(event::SandboxMode{sandbox::Mode::danger_full_access}));
  CHECK(has(stated()[0].second, "danger-full-access"));
  REQUIRE(session->append(event::ApprovalPolicySet{ApprovalPolicy::never}));
  CHECK(has(stated()[1].second, "do not request escalation"));
}

TEST_CASE("the home folder as workspace is named", "[context]") {
  Bench bench;
  bench.services.host.home = bench.folder / "work";
  bench.policies(sandbox::Mode::workspace_write, ApprovalPolicy::ask);
  auto session = bench.open();
  CHECK(has(compose_context(bench.services, *session)[0].second, "home folder"));
}

TEST_CASE("without the policy plugins it is said that there is no sandbox and nobody to ask", "[context]") {
  Bench bench;
  bench.model->then(text("hello"));
  bench.services.context = {sandbox_policy_section(bench.services), approval_policy_section(bench.services)};
  auto session = bench.open();
  bench.prompt(session->id(), "hi");
  const ContextTexts stated = compose_context(bench.services, *session);
  REQUIRE(stated.size() == 2);
  CHECK(stated[0] == std::pair<std::string, std::string>("sandbox:policy",
                                                         "File sandbox: none. Changes to files are not confined."));
  CHECK(has(stated[1].second, "Approval policy: none. Nobody can be asked"));
}

TEST_CASE("a policy over tools that do not confine is not stated as if it held", "[context]") {
  const auto stated = [](std::shared_ptr<sandbox::Fs> fs, std::shared_ptr<sandbox::ShellExecutor> shell) {
    Bench bench;
    bench.policies(sandbox::Mode::read_only, ApprovalPolicy::ask);
    bench.services.fs = std::move(fs);
    bench.services.shell = std::move(shell);
    const ContextSection section = sandbox_policy_section(bench.services);
    return section.text(*bench.open());
  };
  const auto open_shell = std::make_shared<sandbox::ShellExecutor>(sandbox::ShellOptions{}, nullptr);
  CHECK(stated(sandbox::make_local_fs(), open_shell) == "File sandbox: none. Changes to files are not confined.");
  CHECK_FALSE(has(stated(sandbox::make_fenced_fs({}), nullptr), "not confined"));
  CHECK(has(stated(sandbox::make_fenced_fs({}), open_shell), "This holds for file tools; commands are not confined."));
}

TEST_CASE("it is appended when absent or different and never rewritten", "[context]") {
  Bench bench;
  bench.policies(sandbox::Mode::read_only, ApprovalPolicy::ask);
  bench.tool("switch", true, [](const Json&, ToolContext& context) -> ToolOutcome {
    const bool switched = context.session.append(event::SandboxMode{sandbox::Mode::danger_full_access}).has_value();
    return {"x", !switched, nullptr};
  });
  for (int i = 0; i < 2; ++i) bench.model->then(text("hello"));
  bench.model->then(calls({{"a", "switch", "{}"}}));
  bench.model->then(text("done"));
  auto session = bench.open();
  bench.prompt(session->id(), "one");
  bench.prompt(session->id(), "two");
  CHECK(contexts(bench.model->request(1)).size() == 1);
  bench.prompt(session->id(), "three");
  CHECK(contexts(bench.model->request(2)).size() == 1);
  const auto after = contexts(bench.model->request(3));
  REQUIRE(after.size() == 2);
  CHECK(has(after[0], "read-only"));
  CHECK(has(after[1], "danger-full-access"));
  CHECK(has(after[1], "Approval policy: ask"));  // the whole of it
}

TEST_CASE("a default changed while the process was down shows in the next message", "[context]") {
  Bench bench;
  bench.policies(sandbox::Mode::read_only, ApprovalPolicy::ask);
  bench.model->then(text("hello"));
  std::string id;
  {
    auto session = bench.open();
    id = session->id();
    bench.prompt(id, "one");
  }
  bench.restart();
  bench.policies(sandbox::Mode::workspace_write, ApprovalPolicy::never);
  REQUIRE(bench.agent().load_session(id, "", nullptr).has_value());
  bench.model->then(text("hello"));
  bench.prompt(id, "two");
  const auto stated = contexts(bench.model->request(1));
  REQUIRE(stated.size() == 2);
  CHECK(has(stated[1], "workspace-write"));
  CHECK(has(stated[1], "never"));
}

TEST_CASE("one that waits in the inbox is replaced, not doubled", "[context]") {
  Bench bench;
  bench.policies(sandbox::Mode::read_only, ApprovalPolicy::ask);
  auto session = bench.open();
  const event::UserMessage stale = context_message({{"sandbox:policy", "something old"}});
  REQUIRE(session->append(event::InboxSpliced{{{"w", InboxTarget::next_step, stale.content, stale.source}}, {}}));
  bench.model->then(text("hello"));
  bench.prompt(session->id(), "hi");
  const auto stated = contexts(bench.model->request(0));
  REQUIRE(stated.size() == 1);
  CHECK(has(stated[0], "read-only"));
  CHECK(session->inbox().empty());
}

TEST_CASE("reconciling compares the sections", "[context]") {
  const ContextTexts one{{"a", "x"}}, other{{"a", "y"}};
  CHECK(reconcile_context(one, std::nullopt).has_value());
  CHECK_FALSE(reconcile_context(one, context_message(one)).has_value());
  CHECK(reconcile_context(other, context_message(one)).has_value());
  CHECK(reconcile_context({}, context_message(one)).has_value());
  CHECK_FALSE(reconcile_context({}, std::nullopt).has_value());
  CHECK(is_snapshot(context_message(one).source));
  CHECK_FALSE(is_snapshot(nullptr));
}

#include <thread>

#include "tests/tools/support.h"
#include "tools/plugins.h"

using agent::ApprovalOutcome;
using sandbox::Mode;
using test::fact;
using test::has;
using test::Json;
using test::slurp;
using test::text_fact;

namespace {

sandbox::ConfinedArgv fake(const std::string& script) {
  sandbox::ConfinedArgv argv;
  argv.argv = {"/bin/bash", "-c", script, "runner"};
  argv.backend = "fake";
  argv.status = sandbox::StatusChannel::launcher;
  argv.denial_signatures = {{"permission denied", false}};
  argv.enforcement = {sandbox::Coverage::partial, {"metadata changes not covered"}};
  return argv;
}

const std::string ran = "printf R >&3; exec 3>&-; exec \"$@\"";

struct Bench : test::ToolBench {
  std::vector<agent::ApprovalRequest> asked;
  std::shared_ptr<agent::Tool> tool;

  explicit Bench(Mode mode_now = Mode::danger_full_access, std::shared_ptr<sandbox::Sandbox> box = nullptr,
                 std::optional<ApprovalOutcome> answer = std::nullopt)
      : ToolBench(mode_now) {
    auto shell = std::make_shared<sandbox::ShellExecutor>(test::shell_options(), std::move(box));
    tool = tools::make_bash_tool(shell, answer ? test::approvals(asked, *answer) : nullptr);
  }
  agent::ToolOutcome bash(const std::string& command, Json more = Json::object()) {
    more["command"] = command;
    return run(*tool, more);
  }
};

const Json widen = {{"sandbox_permissions", "danger-full-access"}, {"justification", "the task says so"}};

}  // namespace

TEST_CASE("bash: stdout, then stderr, then the exit code, which is no error") {
  Bench bench;
  CHECK(bench.bash("echo out").content == "out");
  CHECK(bench.bash("true").content == "(no output)");
  CHECK(bench.bash("echo out; echo err >&2").content == "out\n[stderr]\nerr");
  const auto failed = bench.bash("echo err >&2; exit 3");
  CHECK(failed.content == "[stderr]\nerr\n[exit code: 3]");
  CHECK_FALSE(failed.is_error);
  CHECK(base::get_int(*failed.facts, "exit_code") == 3);
  CHECK(bench.bash("false").content == "(no output)\n[exit code: 1]");
  CHECK(bench.bash("kill -KILL $$").content == "(no output)\n[killed by signal: SIGKILL]");
}

TEST_CASE("bash: the time-out is a line and a fact of its own") {
  Bench bench;
  const auto outcome = bench.bash("trap 'exit 7' TERM; echo begun; sleep 300 & wait", {{"timeout_ms", 500}});
  CHECK(outcome.content == "begun\n[timed out after 500ms]\n[exit code: 7]");
  CHECK(fact(outcome, "timed_out"));
  CHECK_FALSE(outcome.is_error);
}

TEST_CASE("bash: workdir is relative to the session's folder and must exist") {
  Bench bench;
  std::filesystem::create_directory(bench.cwd + "/sub");
  CHECK(bench.bash("pwd").content == bench.cwd);
  CHECK(bench.bash("pwd", {{"workdir", "sub"}}).content == bench.cwd + "/sub");
  CHECK(bench.bash("pwd", {{"workdir", "/"}}).content == "/");
  const auto outcome = bench.bash("pwd", {{"workdir", "none"}});
  CHECK(outcome.is_error);
  CHECK(has(outcome.content, "working directory"));
  CHECK_FALSE(fact(outcome, "sandbox_unavailable"));
}

TEST_CASE("bash: a denial is a marker and a hint before the exit code, and a fact beside it") {
  Bench bench(Mode::read_only, std::make_shared<test::FakeSandbox>(fake(ran)), ApprovalOutcome::rejected);
  const auto outcome = bench.bash("echo 'x: Permission denied' >&2; exit 1");
  CHECK_FALSE(outcome.is_error);
  const std::string marker = "[sandbox: file access denied under read-only mode]\n";
  const std::size_t at = outcome.content.find(marker);
  REQUIRE(at != std::string::npos);
  CHECK(has(outcome.content.substr(at + marker.size()), "sandbox_permissions"));
  CHECK(outcome.content.ends_with("\n[exit code: 1]"));
  CHECK(fact(outcome, "denied"));
  CHECK(text_fact(outcome, "denied_key") == "echo 'x: Permission denied' >&2; exit 1\n" + bench.cwd);
  CHECK(text_fact(outcome, "enforcement") == "partial (metadata changes not covered)");
  CHECK(text_fact(outcome, "mode") == "read-only");
}

TEST_CASE("bash: the granted retry is grounded and runs wider") {
  Bench bench(Mode::read_only, std::make_shared<test::FakeSandbox>(fake(ran)), ApprovalOutcome::allowed_once);
  bench.bash("echo 'x: Permission denied' >&2; exit 1");
  const auto outcome = bench.bash("echo 'x: Permission denied' >&2; exit 1", widen);
  CHECK(fact(outcome, "escalated"));
  CHECK_FALSE(fact(outcome, "denied"));
  CHECK(text_fact(outcome, "mode") == "danger-full-access");
  CHECK(text_fact(outcome, "enforcement").empty());
  REQUIRE(bench.asked.size() == 1);
  CHECK(bench.asked[0].grounded);
  bench.bash("another", widen);
  CHECK_FALSE(bench.asked.at(1).grounded);
}

TEST_CASE("bash: a folder that is turned while the user is asked does not take the grant elsewhere") {
  Bench bench(Mode::read_only);
  const test::Folder other;
  std::filesystem::create_directory(bench.cwd + "/wd");
  const auto approval = std::make_shared<agent::ApprovalService>(agent::ApprovalPolicy::ask);
  bench.tool = tools::make_bash_tool(
      std::make_shared<sandbox::ShellExecutor>(test::shell_options(), std::make_shared<test::FakeSandbox>(fake(ran))),
      approval);
  approval->add_answerer([&](agent::Session&, const agent::ApprovalRequest&, std::stop_token) {
    std::filesystem::remove(bench.cwd + "/wd");
    std::filesystem::create_directory_symlink(other.path(), bench.cwd + "/wd");
    return std::optional(ApprovalOutcome::allowed_once);
  });
  Json arguments = widen;
  arguments["workdir"] = "wd";
  const auto outcome = bench.bash("touch made", arguments);
  CHECK(outcome.is_error);
  CHECK(has(outcome.content, "changed while the user was asked; the command was not run"));
  CHECK_FALSE(std::filesystem::exists(other / "made"));
}

TEST_CASE("bash: the user's no is for this command and nothing runs") {
  Bench bench(Mode::read_only, std::make_shared<test::FakeSandbox>(fake(ran)), ApprovalOutcome::rejected);
  const auto outcome = bench.bash("touch made", widen);
  CHECK(outcome.is_error);
  CHECK(has(outcome.content, "the user rejected escalating this command to \"danger-full-access\""));
  CHECK_FALSE(std::filesystem::exists(bench.cwd + "/made"));
}

TEST_CASE("bash: no usable backend and a failed runner are SANDBOX_UNAVAILABLE") {
  for (const std::shared_ptr<sandbox::Sandbox>& box :
       {std::shared_ptr<sandbox::Sandbox>(std::make_shared<test::NoSandbox>()),
        std::shared_ptr<sandbox::Sandbox>(std::make_shared<test::FakeSandbox>(fake("echo 'bwrap: no' >&2; exit 1")))}) {
    Bench bench(Mode::read_only, box, ApprovalOutcome::allowed_once);
    auto outcome = bench.bash("touch made");
    CHECK(outcome.is_error);
    CHECK(outcome.content.starts_with("SANDBOX_UNAVAILABLE: "));
    CHECK(fact(outcome, "sandbox_unavailable"));
    // Also for a granted escalation to a confining mode.
    outcome = bench.bash("touch made", {{"sandbox_permissions", "workspace-write"}, {"justification", "x"}});
    CHECK(fact(outcome, "sandbox_unavailable"));
    CHECK(fact(outcome, "escalated"));
    CHECK_FALSE(std::filesystem::exists(bench.cwd + "/made"));
  }
}

TEST_CASE("bash: what was cut, what held on and what was killed is said before the markers") {
  Bench bench;
  auto outcome = bench.bash("seq 100000; exit 1");
  const std::string file = text_fact(outcome, "spill_file");
  CHECK(outcome.content.ends_with("[output cut; all of it is in " + file + "]\n[exit code: 1]"));
  CHECK(file.starts_with(bench.session->folder() + "/output/"));
  CHECK(has(slurp(file), "\n50000\n"));
  outcome = bench.bash("sleep 300 & echo ok");
  CHECK(has(outcome.content, "ok\n[a background process still held the output open"));
  CHECK(has(outcome.content, "[1 background process was still running when the command ended: killed]"));
  CHECK(base::get_int(*outcome.facts, "stragglers_killed") == 1);
}

TEST_CASE("bash: a cancelled command says so") {
  Bench bench;
  std::thread canceller([&] {
    while (!std::filesystem::exists(bench.cwd + "/up")) std::this_thread::yield();
    bench.stop.request_stop();
  });
  const auto outcome = bench.bash("echo begun; touch up; sleep 300");
  canceller.join();
  CHECK(outcome.is_error);
  CHECK(has(outcome.content, "begun\n[aborted"));
}

TEST_CASE("bash: what a client sees") {
  Bench bench;
  const auto view = bench.tool->view_call({{"command", "\n  make test\nmake install"}}, bench.cwd);
  CHECK(view.title == "make test…");
  CHECK(bench.tool->view_call({{"command", "\n make test \n\n"}}, bench.cwd).title == "make test");
  CHECK(bench.tool->view_call({{"command", "true #\rls"}}, bench.cwd).title == "true #…");
  CHECK(bench.tool->view_call({{"command", "a \x1b]0; b \x07"}}, bench.cwd).title == "a \uFFFD]0; b \uFFFD");
  CHECK(view.kind == "execute");
  CHECK(bench.tool->view_call({{"command", std::string(5000, 'x')}}, bench.cwd).title.size() <= 120);
  CHECK(bench.tool->view_call(Json::object(), bench.cwd).title == "bash");
  bench.bash("seq 100000");
  CHECK(bench.view.text->size() < 33'000);
  CHECK(base::get_int(*bench.view.raw_output, "exit_code") == 0);
}

TEST_CASE("bash: the escalation members are there exactly when the executor confines") {
  Bench bench;
  agent::Capabilities confining;
  confining.shell_confines = true;
  CHECK(has(bench.tool->spec(confining).parameters, "\"sandbox_permissions\""));
  CHECK(has(bench.tool->spec(confining).description, "work around"));
  CHECK(base::parse_json(bench.tool->spec(confining).parameters).has_value());
  CHECK_FALSE(has(bench.tool->spec({}).parameters, "sandbox_permissions"));
  CHECK_FALSE(has(bench.tool->spec({}).description, "sandbox"));
  CHECK_FALSE(has(bench.tool->spec({}).parameters, "run_in_background"));
  CHECK(has(bench.tool->spec({}).parameters, "120000"));
}

TEST_CASE("the plugins: background is refused, four tools are given, the observation policy may be mounted later") {
  const auto configured = [](const agent::Plugin& plugin, const std::string& text) {
    const base::ConfigWorld world{[](const std::string&) { return std::optional<std::string>(); }, "/"};
    const base::ConfigFile file = base::parse_config("cordis.yml", text, world);
    REQUIRE(file.faults.empty());
    std::vector<base::Fault> faults;
    base::ConfigReader reader(file.entries.at(0).config, "cordis.yml", &faults);
    auto mount = plugin.configure(reader, {});
    reader.finish();
    return std::pair(mount, faults);
  };
  const auto background =
      configured(tools::tool_plugins().at(0), "- id: b\n  name: tool-bash\n  config:\n    background: true\n").second;
  REQUIRE(background.size() == 1);
  CHECK(has(background[0].text, "job"));
  const auto [bash_mount, no_faults] =
      configured(tools::tool_plugins().at(0), "- id: b\n  name: tool-bash\n  config:\n    background: false\n");
  CHECK(no_faults.empty());
  const auto [fs_mount, none] = configured(tools::tool_plugins().at(1), "- id: f\n  name: tool-fs\n");
  CHECK(none.empty());

  test::ToolBench bench;
  agent::Services services;
  services.shell = std::make_shared<sandbox::ShellExecutor>(test::shell_options(), nullptr);
  services.fs = sandbox::make_local_fs();
  REQUIRE(bash_mount(services));
  REQUIRE(fs_mount(services));
  std::vector<std::string> names;
  for (const auto& tool : services.tools) names.push_back(tool->spec({}).name);
  CHECK(names == std::vector<std::string>{"bash", "read", "write", "edit"});
  services.fs_observation = true;
  test::put(bench.cwd + "/f", "old");
  CHECK(has(bench.run(*services.tools[2], {{"file_path", "f"}, {"content", "new"}}).content, "FS_NOT_OBSERVED"));
}

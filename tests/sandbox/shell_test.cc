#include "sandbox/shell.h"

#include <signal.h>

#include <thread>

#include "base/text.h"
#include "sandbox/local_sandbox.h"
#include "tests/sandbox/support.h"

using namespace sandbox;
using std::chrono::milliseconds;
using test::Folder;
using test::put;
using test::slurp;
using Clock = std::chrono::steady_clock;

namespace {

struct Unconfined {
  Folder folder;
  ShellExecutor shell{test::shell_options(), nullptr};

  ShellRequest request(const std::string& command) {
    ShellRequest result;
    result.command = command;
    result.workdir = folder.path();
    result.policy.mode = Mode::danger_full_access;
    result.policy.session_id = "session-1";
    result.spill_dir = folder / "output";
    return result;
  }
  ShellOutcome run(const std::string& command, std::optional<milliseconds> timeout = std::nullopt) {
    ShellRequest asked = request(command);
    asked.timeout = timeout;
    auto outcome = shell.run(asked, {});
    if (!outcome) FAIL(outcome.error().message);
    return *outcome;
  }
};

bool alive(const std::string& pid_file) {
  const std::string pid = slurp(pid_file);
  return !pid.empty() && kill(std::stoi(pid), 0) == 0;
}

milliseconds since(Clock::time_point begin) { return std::chrono::duration_cast<milliseconds>(Clock::now() - begin); }

ConfinedArgv through(const std::string& script, StatusChannel status) {
  ConfinedArgv argv;
  argv.argv = {"/bin/bash", "-c", script, "runner"};
  argv.backend = "fake";
  argv.status = status;
  argv.denial_signatures = {{"permission denied", false}};
  return argv;
}

// An executor whose sandbox is the script: it gets the command as its arguments.
struct Fake {
  Unconfined base;
  std::shared_ptr<test::FakeSandbox> sandbox;
  ShellExecutor shell;
  explicit Fake(const std::string& script, StatusChannel status) : Fake(through(script, status)) {}
  explicit Fake(ConfinedArgv argv)
      : sandbox(std::make_shared<test::FakeSandbox>(std::move(argv))), shell(test::shell_options(), sandbox) {}
  base::Result<ShellOutcome> run(const std::string& command, milliseconds timeout = milliseconds{20'000},
                                 std::stop_token stop = {}) {
    ShellRequest asked = base.request(command);
    asked.policy.mode = Mode::read_only;
    asked.timeout = timeout;
    return shell.run(asked, stop);
  }
};

const std::string ran = "printf R >&3; exec 3>&-; exec \"$@\"";

}  // namespace

TEST_CASE("output, error output and exit code are separate facts") {
  Unconfined u;
  const ShellOutcome outcome = u.run("echo out; echo err >&2; exit 3");
  CHECK(outcome.out == "out\n");
  CHECK(outcome.err == "err\n");
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.signal.empty());
  CHECK_FALSE(outcome.enforcement);
  CHECK_FALSE(outcome.denied);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.mode == Mode::danger_full_access);
}

TEST_CASE("exactly bash -c: no state between calls") {
  Unconfined u;
  CHECK(u.run("x=1; cd /; echo $0").out == "/bin/bash\n");
  CHECK(u.run("echo \"[$x]\"; pwd").out == "[]\n" + u.folder.path() + "\n");
}

TEST_CASE("a command with no output hangs") {
  Unconfined u;
  CHECK(u.run("true").exit_code == 0);
  CHECK(u.run("false").exit_code == 1);
}

TEST_CASE("waits on a stdin prompt") {
  Unconfined u;
  const auto begin = Clock::now();
  CHECK(u.run("read x; echo $?").out == "1\n");
  CHECK(u.run("cat /dev/stdin; seq 2 | cat < /dev/stdin").out == "1\n2\n");
  CHECK(u.run("if (: </dev/tty) 2>/dev/null; then echo tty; else echo none; fi").out == "none\n");
  CHECK(since(begin) < milliseconds{10'000});
}

TEST_CASE("a FIFO read freezes everything") {
  Unconfined u;
  std::stop_source stop;
  std::thread canceller([&] {
    while (!std::filesystem::exists(u.folder / "f")) std::this_thread::yield();
    stop.request_stop();
  });
  const auto outcome = u.shell.run(u.request("mkfifo f; cat f"), stop.get_token());
  canceller.join();
  REQUIRE(outcome);
  CHECK(outcome->cancelled);
  CHECK(outcome->duration < milliseconds{5'000});
}

TEST_CASE("a background child that keeps writing holds the call") {
  Unconfined u;
  const ShellOutcome outcome = u.run("(while :; do echo x; done) & echo ok");
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.pipe_held_open);
  CHECK(outcome.stragglers_killed >= 1);
  CHECK(outcome.out.find("ok") != std::string::npos);
  CHECK(outcome.duration < milliseconds{10'000});
}

TEST_CASE("setsid with redirects still hangs") {
  Unconfined u;
  const ShellOutcome outcome = u.run("setsid sleep 300 </dev/null >f 2>&1 & echo ok");
  CHECK(outcome.out == "ok\n");
  CHECK(outcome.stragglers_killed == 1);
  CHECK_FALSE(outcome.pipe_held_open);
  const ShellOutcome extra = u.run("exec 7>&1; setsid sleep 300 </dev/null >f 2>&1 & echo ok");
  CHECK(extra.out == "ok\n");
  CHECK(extra.pipe_held_open);
  CHECK(extra.duration < milliseconds{10'000});
}

TEST_CASE("a double fork or setsid escapes the group") {
  Unconfined u;
  const ShellOutcome outcome =
      u.run("setsid -f bash -c 'echo $$ > pid; exec sleep 300' >/dev/null 2>&1; while [ ! -s pid ]; do :; done");
  CHECK(outcome.stragglers_killed == 1);
  CHECK_FALSE(alive(u.folder / "pid"));
}

TEST_CASE("a child ignores SIGTERM") {
  Unconfined u;
  const ShellOutcome outcome = u.run("trap '' TERM; echo $$ > pid; while :; do sleep 1; done", milliseconds{300});
  CHECK(outcome.timed_out);
  CHECK(outcome.timeout == milliseconds{300});
  CHECK(outcome.signal == "SIGKILL");
  CHECK_FALSE(outcome.exit_code);
  CHECK(outcome.duration >= milliseconds{3'000});
  CHECK_FALSE(alive(u.folder / "pid"));
}

TEST_CASE("on a time-out a command may still clean up, and its exit code is a fact of its own") {
  Unconfined u;
  const ShellOutcome outcome = u.run("trap 'echo cleaned; exit 7' TERM; sleep 300 & wait", milliseconds{500});
  CHECK(outcome.timed_out);
  CHECK(outcome.exit_code == 7);
  CHECK(outcome.out == "cleaned\n");
}

TEST_CASE("a time limit over the cap is the cap") {
  Unconfined u;
  ShellOptions options = test::shell_options();
  options.max_timeout = milliseconds{300};
  ShellExecutor shell(options, nullptr);
  ShellRequest asked = u.request("sleep 60");
  asked.timeout = milliseconds{100'000};
  const auto outcome = shell.run(asked, {});
  REQUIRE(outcome);
  CHECK(outcome->timed_out);
  CHECK(outcome->timeout == milliseconds{300});
}

TEST_CASE("a cancelled command that ignores SIGTERM is gone soon") {
  Unconfined u;
  std::stop_source stop;
  std::thread canceller([&] {
    while (slurp(u.folder / "pid").empty()) std::this_thread::yield();
    stop.request_stop();
  });
  const auto begin = Clock::now();
  const auto outcome =
      u.shell.run(u.request("trap '' TERM; echo $$ > pid; while :; do sleep 1; done"), stop.get_token());
  canceller.join();
  REQUIRE(outcome);
  CHECK(outcome->cancelled);
  CHECK_FALSE(outcome->timed_out);
  CHECK(outcome->signal == "SIGKILL");
  CHECK(since(begin) < milliseconds{2'900});
  CHECK_FALSE(alive(u.folder / "pid"));
}

TEST_CASE("shutdown kills what runs at once and nothing starts any more") {
  Unconfined u;
  std::thread ender([&] {
    while (slurp(u.folder / "pid").empty()) std::this_thread::yield();
    u.shell.shutdown();
  });
  const auto outcome = u.shell.run(u.request("trap '' TERM; echo $$ > pid; while :; do sleep 1; done"), {});
  ender.join();
  REQUIRE(outcome);
  CHECK(outcome->cancelled);
  CHECK(outcome->signal == "SIGKILL");
  CHECK(u.shell.run(u.request("true"), {}).error().code == base::ErrorCode::cancelled);
}

TEST_CASE("a call that was stopped before it started does not run") {
  Unconfined u;
  std::stop_source stop;
  stop.request_stop();
  CHECK(u.shell.run(u.request("touch made"), stop.get_token()).error().code == base::ErrorCode::cancelled);
  CHECK_FALSE(std::filesystem::exists(u.folder / "made"));
}

TEST_CASE("cut only by lines, one giant line passes") {
  Unconfined u;
  const ShellOutcome outcome = u.run("head -c 20000000 /dev/zero | tr '\\0' a");
  CHECK(outcome.truncated);
  CHECK(outcome.out.size() < shell_output_limit + 200);
  CHECK(outcome.spill_lost == 0);
  CHECK(std::filesystem::file_size(outcome.spill_file) == 20'000'000);
}

TEST_CASE("the tail is lost") {
  Unconfined u;
  const ShellOutcome outcome =
      u.run("yes 'a line of output' | head -c 10000000; echo; echo the error in the last line");
  CHECK(outcome.out.ends_with("the error in the last line\n"));
  CHECK(outcome.out.starts_with("a line of output\n"));
}

TEST_CASE("the middle is lost for good") {
  Unconfined u;
  const ShellOutcome outcome = u.run("seq 100000; echo done >&2");
  REQUIRE(outcome.truncated);
  CHECK(outcome.out.find("bytes left out") != std::string::npos);
  CHECK(slurp(outcome.spill_file).find("\n50000\n") != std::string::npos);
  CHECK(outcome.err == "done\n");
}

TEST_CASE("output that is not cut makes no file") {
  Unconfined u;
  CHECK(u.run("seq 100").spill_file.empty());
  CHECK_FALSE(std::filesystem::exists(u.folder / "output"));
}

TEST_CASE("NUL bytes and invalid UTF-8 kill the session") {
  Unconfined u;
  const ShellOutcome outcome = u.run("printf 'a\\0b\\xff\\n'");
  CHECK(outcome.out ==
        "a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD\n");
  CHECK(base::valid_utf8(outcome.out));
}

TEST_CASE("terminal sequences are stored") {
  Unconfined u;
  const ShellOutcome outcome = u.run(R"(printf '\e[?1049h\e[?1000h\e]0;title\aplain\n10%%\r20%%\r100%%\n')");
  CHECK(outcome.out == "plain\n100%\n");
}

TEST_CASE("output is seen while the command runs") {
  Unconfined u;
  ShellRequest asked = u.request("echo first; while [ ! -e go ]; do :; done; echo second");
  std::string live;
  asked.on_output = [&](std::string_view text) {
    live += text;
    put(u.folder / "go", "");
  };
  const auto outcome = u.shell.run(asked, {});
  REQUIRE(outcome);
  CHECK(live == "first\nsecond\n");
}

TEST_CASE("a bad working directory and an impossible command are command-start errors") {
  Unconfined u;
  put(u.folder / "file", "");
  for (const std::string& workdir : {u.folder / "none", u.folder / "file", std::string("/x\0y", 4)}) {
    ShellRequest asked = u.request("true");
    asked.workdir = workdir;
    CHECK(u.shell.run(asked, {}).error().code == base::ErrorCode::command_start);
  }
  CHECK(u.shell.run(u.request(std::string("touch a\0b", 9)), {}).error().code == base::ErrorCode::command_start);
  CHECK(u.shell.run(u.request(": " + std::string(200'000, 'x')), {}).error().code == base::ErrorCode::command_start);
}

TEST_CASE("the environment: secrets go, programs neither page nor ask") {
  const auto set = [](const char* name, const char* value) { REQUIRE(setenv(name, value, 1) == 0); };
  for (const char* name : {"OPENAI_API_KEY", "GITHUB_TOKEN", "My_Secret_x", "DB_PASSWORD", "PGPASSWD_FILE_PASSPHRASE",
                           "AWS_CREDENTIALS_FILE", "AZURE_PAT", "SENTRY_DSN", "ROUTE_SETTING", "KEY", "GIT_CONFIG_KEY_",
                           "GIT_CONFIG_KEY_0_KEY"})
    set(name, "leak");
  for (const char* name : {"MONKEY", "KEYBOARD_LAYOUT", "PATTERN", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK",
                           "NPM_TOKEN", "GIT_CONFIG_KEY_0", "GIT_CONFIG_KEY_12", "GIT_CONFIG_VALUE_0"})
    set(name, "stays");
  set("PAGER", "less");
  ShellOptions options = test::shell_options();
  options.pass_env = {"NPM_TOKEN", "ROUTE_SETTING"};
  options.strip_env = {"ROUTE_SETTING"};
  Unconfined u;
  ShellExecutor shell(options, nullptr);
  const auto outcome = shell.run(u.request("env; tty || true"), {});
  REQUIRE(outcome);
  const std::string out = "\n" + outcome->out;
  CHECK(out.find("=leak") == std::string::npos);
  for (const char* line : {"MONKEY=stays", "KEYBOARD_LAYOUT=stays", "PATTERN=stays", "TOKENIZERS_PARALLELISM=stays",
                           "SSH_AUTH_SOCK=stays", "NPM_TOKEN=stays", "GIT_CONFIG_KEY_0=stays",
                           "GIT_CONFIG_KEY_12=stays", "GIT_CONFIG_VALUE_0=stays", "NO_COLOR=1", "TERM=dumb",
                           "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "ACP_AGENT_SESSION_ID=session-1"}) {
    INFO(line);
    CHECK(out.find("\n" + std::string(line) + "\n") != std::string::npos);
  }
  CHECK(out.find("\nPATH=") != std::string::npos);
}

TEST_CASE("TMPDIR is kept if it may be written, else it is /tmp") {
  ShellOptions options = test::shell_options();
  options.host.tmpdir = "/var/tmp";
  const ShellExecutor shell(options, std::make_shared<test::NoSandbox>());
  const auto tmpdir = [&](Mode mode, const std::vector<std::string>& roots) {
    Policy policy;
    policy.mode = mode;
    std::string value;
    for (const auto& [name, text] : shell.child_environment(policy, roots)) {
      if (name == "TMPDIR") value = text;
    }
    return value;
  };
  CHECK(tmpdir(Mode::workspace_write, {"/ws", "/var/tmp"}) == "/var/tmp");
  CHECK(tmpdir(Mode::workspace_write, {"/ws", "/tmp"}) == "/tmp");
  CHECK(tmpdir(Mode::read_only, {}) == "/tmp");
}

TEST_CASE("no usable backend: nothing runs; with danger-full-access granted it does") {
  Unconfined u;
  ShellExecutor shell(test::shell_options(), std::make_shared<test::NoSandbox>());
  CHECK(shell.confines());
  ShellRequest asked = u.request("touch made");
  for (const Mode mode : {Mode::read_only, Mode::workspace_write}) {
    asked.policy.mode = mode;
    CHECK(shell.run(asked, {}).error().code == base::ErrorCode::sandbox_unavailable);
  }
  CHECK_FALSE(std::filesystem::exists(u.folder / "made"));
  asked.policy.mode = Mode::danger_full_access;
  const auto outcome = shell.run(asked, {});
  REQUIRE(outcome);
  CHECK_FALSE(outcome->enforcement);
  CHECK(std::filesystem::exists(u.folder / "made"));
}

TEST_CASE("a runner that cannot be started is SANDBOX_UNAVAILABLE") {
  const Folder folder;
  put(folder / "no-exec", "#!/bin/sh\n");
  test::put_program(folder / "no-interpreter", "#!/no/such/interpreter\n");
  for (const std::string& runner : {folder / "missing", folder / "no-exec", folder / "no-interpreter"}) {
    INFO(runner);
    ConfinedArgv argv = through("", StatusChannel::none);
    argv.argv = {runner};
    Fake fake(argv);
    const auto outcome = fake.run("true");
    REQUIRE_FALSE(outcome.has_value());
    CHECK(outcome.error().code == base::ErrorCode::sandbox_unavailable);
    ShellRequest asked = fake.base.request("true");
    asked.policy.mode = Mode::read_only;
    asked.workdir = folder / "nowhere";
    CHECK(fake.shell.run(asked, {}).error().code == base::ErrorCode::command_start);
  }
}

TEST_CASE("a runner that fails before the command is told from a command that fails") {
  Fake good(ran, StatusChannel::launcher);
  const auto ordinary = good.run("echo 'landlock-run: no' >&2; exit 125");
  REQUIRE(ordinary);
  CHECK_FALSE(ordinary->runner_failed);
  CHECK(ordinary->exit_code == 125);
  CHECK(good.sandbox->failures == 0);

  Fake broken("echo 'bwrap: no namespaces' >&2; exit 1", StatusChannel::launcher);
  const auto failed = broken.run("touch made");
  REQUIRE(failed);
  CHECK(failed->runner_failed);
  CHECK(failed->runner_failure == "bwrap: no namespaces");
  CHECK(broken.sandbox->failures == 1);

  Fake late("printf R >&3; printf 'Fexec 2\\n' >&3; exit 125", StatusChannel::launcher);
  CHECK(late.run("true")->runner_failed);
}

TEST_CASE("the command cannot forge the launcher's status") {
  Fake fake(ran, StatusChannel::launcher);
  const auto outcome = fake.run("printf Fexec >&3; exit 0");
  REQUIRE(outcome);
  CHECK_FALSE(outcome->runner_failed);
}

TEST_CASE("bwrap's own status pipe decides when there is no launcher inside") {
  const std::string json =
      "echo '{ \"child-pid\": 1 }' >&3; \"$@\" 3>&-; code=$?; echo \"{ \\\"exit-code\\\": $code }\" >&3; exit $code";
  Fake good(json, StatusChannel::bwrap);
  const auto outcome = good.run("echo 'bwrap: fake' >&2; exit 1");
  REQUIRE(outcome);
  CHECK_FALSE(outcome->runner_failed);
  Fake bad("echo '{ \"child-pid\": 1 }' >&3; echo 'bwrap: Cannot chdir' >&2; exit 1", StatusChannel::bwrap);
  CHECK(bad.run("true")->runner_failed);
}

TEST_CASE("a call that we timed out or cancelled is never a runner failure") {
  Fake fake("trap 'exit 1' TERM; sleep 300 & wait", StatusChannel::launcher);
  const auto late = fake.run("true", milliseconds{300});
  REQUIRE(late);
  CHECK(late->timed_out);
  CHECK_FALSE(late->runner_failed);
  std::stop_source stop;
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds{200});
    stop.request_stop();
  });
  const auto cancelled = fake.run("true", milliseconds{20'000}, stop.get_token());
  canceller.join();
  REQUIRE(cancelled);
  CHECK(cancelled->cancelled);
  CHECK_FALSE(cancelled->runner_failed);
  CHECK(fake.sandbox->failures == 0);
}

TEST_CASE("a denial needs a failed command and its backend's words") {
  Fake fake(ran, StatusChannel::launcher);
  const auto denied = fake.run("echo 'x: Permission denied' >&2; exit 1");
  CHECK(denied->denied);
  CHECK(denied->denial_source == "text");
  CHECK(denied->exit_code == 1);
  CHECK_FALSE(fake.run("echo 'x: Permission denied' >&2; exit 0")->denied);
  CHECK_FALSE(fake.run("echo 'x: Permission denied'; exit 1")->denied);
  CHECK_FALSE(fake.run("echo 'x: Read-only file system' >&2; exit 1")->denied);
}

TEST_CASE("a partial runner whose child just fails is an ordinary result") {
  ConfinedArgv argv =
      through("echo 'landlock-run: partial enforcement (older Landlock ABI)' >&2; exec \"$@\"", StatusChannel::none);
  argv.runner_failure_rules = {{{125}, {"landlock-run: partial enforcement (older Landlock ABI)"}, {"landlock-run:"}}};
  argv.enforcement = {Coverage::partial, {"older ABI"}};
  Fake fake(argv);
  const auto outcome = fake.run("exit 125");
  REQUIRE(outcome);
  CHECK_FALSE(outcome->runner_failed);
  CHECK_FALSE(outcome->denied);
  CHECK(outcome->enforcement->coverage == Coverage::partial);
}

TEST_CASE("two policies at once, each in its own world") {
  const auto launcher = base::helper_path("landlock-run");
  LocalSandboxOptions options;
  options.host = test::shell_options().host;
  options.launcher = launcher.value_or("");
  options.call_init = test::shell_options().call_init;
  const std::shared_ptr<Sandbox> real = make_local_sandbox(options);
  ShellExecutor shell(test::shell_options(), real);
  const Folder one, two;
  const auto run = [&](const Folder& own, const std::string& target, Mode mode) {
    ShellRequest asked;
    asked.command = "echo x > " + target;
    asked.workdir = own.path();
    asked.policy.mode = mode;
    asked.policy.workspace_root = own.path();
    return shell.run(asked, {});
  };
  auto first = run(one, one / "a", Mode::workspace_write);
  if (!first && first.error().code == base::ErrorCode::sandbox_unavailable) {
    WARN("no backend on this machine: " + first.error().message);
    REQUIRE(getenv("CI") == nullptr);
    return;
  }
  REQUIRE(first);
  CHECK(first->exit_code == 0);
  CHECK(slurp(one / "a") == "x\n");
  std::optional<base::Result<ShellOutcome>> other;
  std::thread beside([&] { other = run(two, two / "b", Mode::workspace_write); });
  const auto denied = run(one, two / "c", Mode::workspace_write);
  beside.join();
  CHECK((*other)->exit_code == 0);
  CHECK(denied->denied);
  CHECK(denied->exit_code != 0);
  CHECK_FALSE(std::filesystem::exists(two / "c"));
  const auto read_only = run(one, one / "d", Mode::read_only);
  CHECK(read_only->denied);
  CHECK(read_only->enforcement.has_value());
  CHECK_FALSE(std::filesystem::exists(one / "d"));
}

TEST_CASE("BASH_ENV is read inside the confinement") {
  const auto launcher = base::helper_path("landlock-run");
  LocalSandboxOptions options;
  options.host = test::shell_options().host;
  options.launcher = launcher.value_or("");
  options.call_init = test::shell_options().call_init;
  ShellExecutor shell(test::shell_options(), make_local_sandbox(options));
  const Folder own, outside;
  put(own / "env", "echo inside > " + own.path() + "/mark; echo out > " + outside.path() + "/mark\n");
  REQUIRE(setenv("BASH_ENV", (own / "env").c_str(), 1) == 0);
  ShellRequest asked;
  asked.command = "true";
  asked.workdir = own.path();
  asked.policy.mode = Mode::workspace_write;
  asked.policy.workspace_root = own.path();
  const auto outcome = shell.run(asked, {});
  unsetenv("BASH_ENV");
  if (!outcome) {
    WARN("no backend on this machine: " + outcome.error().message);
    REQUIRE(getenv("CI") == nullptr);
    return;
  }
  CHECK(slurp(own / "mark") == "inside\n");
  CHECK_FALSE(std::filesystem::exists(outside / "mark"));
}

TEST_CASE("attached: the exit code a shell would show") {
  Unconfined u;
  Policy policy;
  policy.mode = Mode::danger_full_access;
  const auto code = [&](const std::vector<std::string>& argv) {
    return u.shell.run_attached(argv, u.folder.path(), policy, {});
  };
  CHECK(code({"/bin/bash", "-c", "exit 5"}) == 5);
  CHECK(code({"/bin/bash", "-c", "kill -TERM $$"}) == 128 + SIGTERM);
  CHECK(code({"/no/such/program"}).error().code == base::ErrorCode::command_start);
  CHECK(code({}).error().code == base::ErrorCode::invalid_argument);
}

// base::Child and call-init together, with real processes.
#include "base/child.h"

#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "tests/native/support.h"

using base::StartFailure;
using test::run;

TEST_CASE("exit codes and signals come through as they are") {
  for (const int code : {0, 37, 125, 126, 127}) {
    const auto outcome = run(test::bash("exit " + std::to_string(code)));
    CHECK_FALSE(outcome.exit.start_failure);
    CHECK(outcome.exit.signal == 0);
    CHECK(outcome.exit.exit_code == code);
  }
  const auto killed = run(test::bash("kill -USR1 $$"));
  CHECK(killed.exit.signal == SIGUSR1);
}

TEST_CASE("what could not be started is told apart") {
  auto options = test::options({"/nonexistent/command"});
  auto outcome = run(options);
  REQUIRE(outcome.exit.start_failure);
  CHECK(outcome.exit.start_failure->step == StartFailure::Step::exec_command);
  CHECK(outcome.exit.start_failure->error_number == ENOENT);

  outcome = run(test::options({"/etc/passwd"}));
  REQUIRE(outcome.exit.start_failure);
  CHECK(outcome.exit.start_failure->step == StartFailure::Step::exec_command);
  CHECK(outcome.exit.start_failure->error_number == EACCES);

  options = test::options({"/bin/true"});
  options.cwd = "/nonexistent";
  outcome = run(options);
  REQUIRE(outcome.exit.start_failure);
  CHECK(outcome.exit.start_failure->step == StartFailure::Step::chdir);
  CHECK(outcome.exit.start_failure->error_number == ENOENT);

  options = test::options({"/bin/true"});
  options.call_init = "/nonexistent/call-init";
  outcome = run(options);
  REQUIRE(outcome.exit.start_failure);
  CHECK(outcome.exit.start_failure->step == StartFailure::Step::exec_reaper);
  CHECK(outcome.exit.start_failure->text() == "cannot run the helper call-init: No such file or directory");
}

TEST_CASE("the command sees a clean world") {
  const int leaked = open("/etc/passwd", O_RDONLY);  // deliberately not close-on-exec
  REQUIRE(leaked >= 0);
  std::signal(SIGUSR2, SIG_IGN);
  auto options = test::bash(
      "pwd; env | grep -c .; echo $A; readlink "
      "/proc/self/fd/0;"
      "grep -E '^Sig(Blk|Ign)' /proc/self/status | cut -f2 | tr '\\n' ' '; ps -o tty= -p $$; read x || echo eof; echo "
      "e >&2");
  options.cwd = "/usr";
  options.env.emplace_back("A", "x y");
  const auto outcome = run(options);
  CHECK(run(test::options({"/bin/ls", "/proc/self/fd"})).out == "0\n1\n2\n3\n");  // 3: the folder ls reads
  close(leaked);
  std::signal(SIGUSR2, SIG_DFL);
  INFO(outcome.out);
  CHECK(outcome.out.find("/usr\n") == 0);
  CHECK(outcome.out.find("\nx y\n/dev/null\n0000000000000000 0000000000000000 ?") != std::string::npos);
  CHECK(outcome.out.find("\neof\n") != std::string::npos);
  CHECK(outcome.err == "e\n");
}

TEST_CASE("a command in a user namespace of its own has the ids of the agent and no right outside, or does not start") {
  auto options =
      test::bash("cat /proc/self/uid_map; grep CapEff /proc/self/status; unshare -m true || hostname changed");
  options.user_namespace = true;
  std::ifstream map("/proc/self/uid_map");
  const std::string ours{std::istreambuf_iterator<char>(map), {}};
  const auto outcome = run(options);
  if (geteuid() != 0) {
    REQUIRE(outcome.exit.start_failure);
    CHECK(outcome.exit.start_failure->error_number == EPERM);
    CHECK(outcome.out.empty());
    return;
  }
  INFO(outcome.out << outcome.err);
  REQUIRE_FALSE(outcome.exit.start_failure);
  unsigned long first = 0, above = 0, count = 0, inner_first = 0, inner_above = 0, inner_count = 0;
  std::istringstream(ours) >> first >> above >> count;
  std::istringstream(outcome.out) >> inner_first >> inner_above >> inner_count;
  CHECK(inner_first == first);
  CHECK(inner_above == first);
  CHECK(inner_count == count);
  CHECK(outcome.err.empty());  // its own mounts are its own
  options.argv = {"/bin/sh", "-c", "echo x > /proc/sys/kernel/hostname; mount -t tmpfs none /mnt"};
  CHECK(run(options).exit.exit_code != 0);
  options.argv = {"/nonexistent/command"};
  const auto missing = run(options);
  REQUIRE(missing.exit.start_failure);
  CHECK(missing.exit.start_failure->step == StartFailure::Step::exec_command);
  CHECK(missing.exit.start_failure->error_number == ENOENT);
}

TEST_CASE("a name without a slash is looked up in the child's own PATH") {
  test::Folder folder;
  std::ofstream(folder / "tool") << "#!/bin/sh\necho found\n";
  REQUIRE(chmod((folder / "tool").c_str(), 0755) == 0);
  auto options = test::options({"tool"});
  options.env = {{"PATH", folder.path()}};
  CHECK(run(options).out == "found\n");
}

TEST_CASE("background processes outlive the direct child until the call is finished, then none is left") {
  test::Folder folder;
  test::Alive alive(folder / "alive");
  auto child =
      base::Child::start(test::bash("exec 9>" + alive.path() +
                                    "; sleep 1000 & setsid sleep 1001 & (setsid bash -c 'trap \"\" TERM HUP; echo >&9;"
                                    " sleep 1002; sleep 1003' &) ; exit 3"));
  REQUIRE(child);
  CHECK(test::wait(**child).exit_code == 3);
  REQUIRE(alive.up());
  CHECK((*child)->finish() >= 3);
  CHECK(alive.gone());
  CHECK((*child)->finish() >= 3);  // again: the same answer, nothing to do
}

TEST_CASE("nothing is counted when nothing was left") {
  CHECK(run(test::bash("sleep 0.01 & wait; exit 0")).stragglers == 0);
}

TEST_CASE("terminate reaches every descendant and leaves the traps their time") {
  test::Folder folder;
  test::Alive alive(folder / "alive");
  auto child = base::Child::start(
      test::bash("exec 9>" + alive.path() +
                 "; trap 'echo outer; exit 5' TERM;"
                 "setsid bash -c 'trap \"echo inner; exit\" TERM; echo >&9; sleep 1000 & wait' & wait"));
  REQUIRE(child);
  REQUIRE(alive.up());
  (*child)->terminate();
  CHECK(test::wait(**child).exit_code == 5);
  (*child)->finish();  // the inner shell may have started its sleep after the signal
  CHECK(alive.gone());
  const std::string out = test::drain((*child)->out());
  CHECK(out.find("outer") != std::string::npos);
  CHECK(out.find("inner") != std::string::npos);
}

TEST_CASE("a command that ignores SIGTERM is killed, from any thread, and is no straggler") {
  test::Folder folder;
  test::Alive alive(folder / "alive");
  auto child =
      base::Child::start(test::bash("trap '' TERM; exec 9>" + alive.path() + "; echo >&9; sleep 1000; sleep 1000"));
  REQUIRE(child);
  REQUIRE(alive.up());
  std::thread other([&] {
    (*child)->terminate();
    (*child)->kill_all();
  });
  CHECK(test::wait(**child).signal == SIGKILL);
  other.join();
  CHECK((*child)->finish() == 0);
  CHECK(alive.gone());
}

TEST_CASE("a process tree that keeps forking is outrun") {
  test::Folder folder;
  test::Alive alive(folder / "alive");
  // Each generation leaves the one before: double fork without end, at most a few alive at a time.
  const std::string script = "exec 9>" + alive.path() + "; f() { (setsid bash -c 'echo >&9; exec bash " +
                             (folder / "f") + "' &); }; declare -f f >" + (folder / "f") + "; echo f >>" +
                             (folder / "f") + "; f; exit 0";
  auto child = base::Child::start(test::bash(script));
  REQUIRE(child);
  CHECK(test::wait(**child).exit_code == 0);
  REQUIRE(alive.up());
  (*child)->finish();
  CHECK(alive.gone());
}

TEST_CASE("a wait can be stopped and timed, and the child goes on") {
  auto child = base::Child::start(test::options({"/bin/sleep", "1000"}));
  REQUIRE(child);
  std::stop_source source;
  const base::StopFd stop(source.get_token());
  auto late = (*child)->wait_exit(stop, std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == base::ErrorCode::timed_out);
  source.request_stop();
  auto stopped = (*child)->wait_exit(stop, std::nullopt);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == base::ErrorCode::cancelled);
}

TEST_CASE("an agent that is killed leaves nothing behind") {
  test::Folder folder;
  test::Alive alive(folder / "alive");
  const auto options =
      test::bash("exec 9>" + alive.path() + "; (setsid bash -c 'echo >&9; sleep 1000' &); trap '' TERM; sleep 1000");
  const pid_t agent = fork();
  REQUIRE(agent >= 0);
  if (agent == 0) {
    auto child = base::Child::start(options);
    for (;;) pause();
  }
  REQUIRE(alive.up());
  kill(agent, SIGKILL);
  waitpid(agent, nullptr, 0);
  CHECK(alive.gone());
}

TEST_CASE("two calls are ended independently") {
  test::Folder folder;
  test::Alive first(folder / "first"), second(folder / "second");
  auto one = base::Child::start(test::bash("exec 9>" + first.path() + "; echo >&9; sleep 1000"));
  auto two = base::Child::start(test::bash("exec 9>" + second.path() + "; echo >&9; sleep 1000"));
  REQUIRE(one);
  REQUIRE(two);
  REQUIRE(first.up());
  REQUIRE(second.up());
  (*one)->finish();
  CHECK(first.gone());
  two->reset();
  CHECK(second.gone());
}

TEST_CASE("the reaper alone keeps no pipe of the command open") {
  auto child = base::Child::start(test::bash("exec >&- 2>&-; sleep 1000"));
  REQUIRE(child);
  CHECK(test::drain((*child)->out()).empty());
  CHECK(test::drain((*child)->err()).empty());
}

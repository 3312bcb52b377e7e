// The real backends on this kernel. A backend that does not work here is skipped with its reason; with CI=true that
// fails, and in any case at least one confining backend must have run.
#include "sandbox/local_sandbox.h"
#include "sandbox/shell.h"

#include <poll.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/child.h"
#include "base/fd.h"
#include "tests/sandbox/support.h"

using sandbox::ConfinedArgv;
using sandbox::LocalSandboxOptions;
using sandbox::Mode;
using sandbox::Policy;
using sandbox::StatusChannel;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

namespace {

const std::stop_token never;

LocalSandboxOptions options_for(const std::string& backend) {
  LocalSandboxOptions options;
  if (!backend.empty()) options.chain = {backend};
  options.host.home = "/nonexistent";
  options.host.state_dir = "/var/tmp/acp-test-no-such-state";
  options.launcher = base::helper_path("landlock-run").value();
  options.call_init = base::helper_path("call-init").value();
  return options;
}

// The backends that work here, asked once. Which is usable is the kernel's to say, so an unusable one is no failure of
// ours.
const Words& backends() {
  static const Words usable = [] {
    Words found;
    for (const char* name : {"bwrap", "landlock"}) {
      const auto lines = sandbox::make_local_sandbox(options_for(name))->describe(never);
      const std::string said = lines.empty() ? "" : lines.front();
      if (said.rfind(std::string(name) + ": works", 0) == 0) {
        found.emplace_back(name);
        continue;
      }
      std::cerr << "skipped: " << said << "\n";
      const char* ci = std::getenv("CI");
      if (ci != nullptr && std::string(ci) == "true") FAIL("CI=true and a backend is missing: " << said);
    }
    if (found.empty()) FAIL("no confining backend works here");
    return found;
  }();
  return usable;
}

std::string drain(int fd) {
  std::string text;
  for (char buffer[4096];;) {
    pollfd set{fd, POLLIN, 0};
    if (poll(&set, 1, 20'000) <= 0) FAIL("a pipe was not closed in time");
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

struct Outcome {
  base::ChildExit exit;
  std::string out, err, status;
};

Outcome run_confined(const sandbox::ConfinedArgv& confined, const std::string& cwd) {
  base::ChildOptions options;
  options.argv = confined.argv;
  options.supervision = confined.supervision;
  options.user_namespace = confined.user_namespace;
  options.env = {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}, {"LC_ALL", "C"}, {"TMPDIR", "/tmp"}};
  options.cwd = cwd;
  options.call_init = base::helper_path("call-init").value();
  options.launcher_status = true;
  auto child = base::Child::start(options);
  REQUIRE(child);
  const base::StopFd stop{never};
  auto exit = (*child)->wait_exit(stop, std::chrono::steady_clock::now() + std::chrono::seconds(30));
  REQUIRE(exit);
  (*child)->finish();
  return {*exit, drain((*child)->out()), drain((*child)->err()), drain((*child)->launcher_status())};
}

// A workspace and an outside beside it, both canonical, below /var/tmp.
struct World {
  test::Folder folder;
  std::string ws = folder / "ws", out = folder / "out";
  World() {
    fs::create_directories(ws);
    fs::create_directories(out);
    test::put(out + "/f", "ORIG");
  }
  Policy policy(Mode mode) const {
    Policy policy;
    policy.mode = mode;
    policy.workspace_root = ws;
    return policy;
  }
  Outcome run(sandbox::Sandbox& box, Mode mode, const std::string& script) const {
    auto confined = box.confine({"/bin/bash", "-c", script}, policy(mode), ws, never);
    REQUIRE(confined);
    return run_confined(*confined, ws);
  }
};

}  // namespace

TEST_CASE("what the policy allows works, and nothing else changes") {
  for (const std::string& backend : backends()) {
    DYNAMIC_SECTION(backend) {
      World world;
      auto box = sandbox::make_local_sandbox(options_for(backend));
      const std::string outside = "echo n > " + world.out + "/new; echo n >> " + world.out + "/f; rm -f " + world.out +
                                  "/f; ln " + world.out + "/f h; mkdir " + world.out + "/d; ln -s " + world.out +
                                  " l; echo n > l/g; echo n > /var/tmp/acp-escape; echo n > /proc/self/root" +
                                  world.out + "/r; mv inside " + world.out + "/m; ";
      const auto wide = world.run(
          *box, Mode::workspace_write,
          "echo y > inside; mkdir -p a/b; mv inside a/b/c; cp a/b/c inside; echo z > /dev/null; " + outside + "true");
      CHECK(wide.status == "R");
      CHECK(wide.exit.exit_code == 0);
      CHECK(test::slurp(world.ws + "/a/b/c") == "y\n");

      const auto narrow = world.run(
          *box, Mode::read_only,
          "echo n > /dev/null && cat a/b/c; echo n > narrow; echo n > /tmp/acp-narrow; " + outside + "exit 7");
      CHECK(narrow.exit.exit_code == 7);
      CHECK(narrow.out.find("y\n") == 0);
      CHECK_FALSE(fs::exists(world.ws + "/narrow"));
      CHECK_FALSE(fs::exists("/tmp/acp-narrow"));

      CHECK(test::slurp(world.out + "/f") == "ORIG");
      for (const char* name : {"new", "d", "g", "r", "m"}) CHECK_FALSE(fs::exists(world.out + "/" + name));
      CHECK_FALSE(fs::exists("/var/tmp/acp-escape"));
      CHECK(fs::hard_link_count(world.out + "/f") == 1);
    }
  }
}

TEST_CASE("root works on files of other owners in the workspace, and on none outside") {
  if (geteuid() != 0) {
    WARN("skipped: only root has rights over files of other owners");
    return;
  }
  for (const std::string& backend : backends()) {
    DYNAMIC_SECTION(backend) {
      World world;
      fs::create_directories(world.ws + "/theirs");
      test::put(world.ws + "/theirs/f", "ORIG");
      for (const std::string& path : {world.ws + "/theirs/f", world.ws + "/theirs", world.out + "/f", world.out})
        REQUIRE(chown(path.c_str(), 1234, 1234) == 0);
      REQUIRE(chmod((world.ws + "/theirs").c_str(), 0700) == 0);
      auto box = sandbox::make_local_sandbox(options_for(backend));
      const auto done = world.run(
          *box, Mode::workspace_write,
          "echo more >> theirs/f && chmod 600 theirs/f && chown 4321 theirs/f && mv theirs/f g; "
          "echo n > " +
              world.out + "/f; chmod 777 " + world.out + "/f; rm -f " + world.out + "/f; chown 0 " + world.out + "/f");
      INFO(done.err);
      struct stat info {};
      REQUIRE(stat((world.ws + "/g").c_str(), &info) == 0);
      CHECK(info.st_uid == 4321);
      CHECK(test::slurp(world.ws + "/g") == "ORIGmore\n");
      REQUIRE(stat((world.out + "/f").c_str(), &info) == 0);
      CHECK(info.st_uid == 1234);
      CHECK((info.st_mode & 0777) != 0777);
      CHECK(test::slurp(world.out + "/f") == "ORIG");
    }
  }
}

TEST_CASE("a folder that the operator adds is written by commands, what is beside it is not") {
  for (const std::string& backend : backends()) {
    DYNAMIC_SECTION(backend) {
      World world;
      fs::create_directories(world.out + "/cache");
      auto box = sandbox::make_local_sandbox(options_for(backend));
      Policy policy = world.policy(Mode::workspace_write);
      policy.writable = {world.out + "/cache"};
      const std::string script = "echo y > " + world.out + "/cache/made; chmod 600 " + world.out +
                                 "/cache/made; echo n > " + world.out + "/cache/../f";
      auto confined = box->confine({"/bin/bash", "-c", script}, policy, world.ws, never);
      REQUIRE(confined);
      const auto done = run_confined(*confined, world.ws);
      INFO(done.err);
      CHECK(test::slurp(world.out + "/cache/made") == "y\n");
      CHECK(test::slurp(world.out + "/f") == "ORIG");
      policy.mode = Mode::read_only;
      confined = box->confine({"/bin/bash", "-c", script}, policy, world.ws, never);
      REQUIRE(confined);
      run_confined(*confined, world.ws);
      CHECK(fs::file_size(world.out + "/cache/made") == 2);

      auto options = options_for(backend);
      options.host.own_files = {world.out + "/cache/acp-agent"};
      test::put(world.out + "/cache/acp-agent", "program");
      policy.mode = Mode::workspace_write;
      confined = sandbox::make_local_sandbox(options)->confine(
          {"/bin/bash", "-c", "echo n > " + world.out + "/cache/acp-agent"}, policy, world.ws, never);
      if (confined) run_confined(*confined, world.ws);
      CHECK(confined.has_value() == (backend == "bwrap"));
      CHECK(test::slurp(world.out + "/cache/acp-agent") == "program");
    }
  }
}

TEST_CASE("/tmp is one and the same for calls and the host") {
  for (const std::string& backend : backends()) {
    DYNAMIC_SECTION(backend) {
      World world;
      auto box = sandbox::make_local_sandbox(options_for(backend));
      const std::string name = "/tmp/" + fs::path(world.folder.path()).filename().string();
      CHECK(world.run(*box, Mode::workspace_write, "echo shared > " + name).exit.exit_code == 0);
      CHECK(test::slurp(name) == "shared\n");
      CHECK(world.run(*box, Mode::read_only, "cat " + name).out == "shared\n");
      fs::remove(name);
    }
  }
}

TEST_CASE("kernel settings, FIFOs, inherited descriptors and mounts are out of reach, for root too") {
  for (const std::string& backend : backends()) {
    DYNAMIC_SECTION(backend) {
      World world;
      auto box = sandbox::make_local_sandbox(options_for(backend));
      const std::string fifo = world.out + "/fifo";
      REQUIRE(mkfifo(fifo.c_str(), 0666) == 0);
      const base::Fd reader(open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
      const base::Fd file(open((world.out + "/f").c_str(), O_WRONLY | O_APPEND));  // both deliberately inheritable
      const base::Fd directory(open(world.out.c_str(), O_RDONLY | O_DIRECTORY));
      const auto outcome =
          world.run(*box, Mode::workspace_write,
                    "cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness && echo BAD sys;"
                    "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo BAD core;"
                    "timeout 2 bash -c 'echo n > " +
                        fifo +
                        "' && echo BAD fifo;"
                        "echo n >&" +
                        std::to_string(file.get()) +
                        " && echo BAD fd;"
                        "echo n > /proc/self/fd/" +
                        std::to_string(directory.get()) +
                        "/x && echo BAD dirfd;"
                        "mount -o remount,bind,rw / && echo BAD remount; mount -t tmpfs none " +
                        world.ws +
                        " && echo BAD mount;"
                        "umount /proc && echo BAD umount; echo n > " +
                        world.out + "/f && echo BAD write; grep NoNewPrivs /proc/self/status");
      CHECK(outcome.out == "NoNewPrivs:\t1\n");
      CHECK(test::slurp(world.out + "/f") == "ORIG");
      CHECK_FALSE(fs::exists(world.out + "/x"));
      char byte;
      CHECK(::read(reader.get(), &byte, 1) <= 0);
    }
  }
}

TEST_CASE("exit codes pass through, and a child that prints a runner's words ran all the same") {
  for (const std::string& backend : backends()) {
    DYNAMIC_SECTION(backend) {
      World world;
      auto box = sandbox::make_local_sandbox(options_for(backend));
      for (const int code : {0, 37, 125, 126, 127}) {
        const auto outcome = world.run(
            *box, Mode::read_only, "echo 'bwrap: no' >&2; echo 'landlock-run: no' >&2; exit " + std::to_string(code));
        CHECK(outcome.exit.exit_code == code);
        CHECK(outcome.status == "R");
      }
      const auto killed = world.run(*box, Mode::read_only, "kill -TERM $$");
      CHECK(
          (killed.exit.signal == SIGTERM || killed.exit.exit_code == 128 + SIGTERM));  // bwrap says it the shell's way
      auto missing = box->confine({"/nonexistent/tool"}, world.policy(Mode::read_only), world.ws, never);
      REQUIRE(missing);
      CHECK(run_confined(*missing, world.ws).status == "RFexec 2");
    }
  }
}

TEST_CASE("what was run says how it was confined") {
  for (const std::string& backend : backends()) {
    DYNAMIC_SECTION(backend) {
      World world;
      auto box = sandbox::make_local_sandbox(options_for(backend));
      auto confined = box->confine({"true"}, world.policy(Mode::workspace_write), world.ws, never);
      REQUIRE(confined);
      CHECK(confined->backend == backend);
      CHECK(confined->roots == Words{world.ws, "/tmp"});
      CHECK(confined->status == StatusChannel::launcher);
      if (backend == "bwrap") {
        CHECK(to_string(confined->enforcement) == "full");
        REQUIRE(confined->denial_signatures.size() == 2);
        CHECK(confined->denial_signatures[0].text == "read-only file system");
        CHECK_FALSE(confined->denial_signatures[0].only_outside_roots);
        CHECK(confined->denial_signatures[1].text == "permission denied");
        CHECK(confined->denial_signatures[1].only_outside_roots);
      } else {
        CHECK(to_string(confined->enforcement).rfind("partial (protected paths not covered", 0) == 0);
        REQUIRE(confined->denial_signatures.size() == 1);
        CHECK(confined->denial_signatures[0].text == "permission denied");
        CHECK_FALSE(confined->denial_signatures[0].only_outside_roots);
      }
    }
  }
}

TEST_CASE("the agent's state below a root is kept, or the call is refused") {
  for (const std::string& backend : backends()) {
    DYNAMIC_SECTION(backend) {
      World world;
      auto options = options_for(backend);
      options.host.state_dir = world.ws + "/.local/state/acp-agent";  // not there yet
      auto box = sandbox::make_local_sandbox(options);
      auto confined = box->confine({"true"}, world.policy(Mode::workspace_write), world.ws, never);
      if (backend == "landlock") {
        REQUIRE_FALSE(confined);
        CHECK(confined.error().code == base::ErrorCode::sandbox_unavailable);
        CHECK(confined.error().message.find("XDG_STATE_HOME") != std::string::npos);
        continue;
      }
      const auto outcome = world.run(
          *box, Mode::workspace_write,
          "echo y > fine; cd .local; echo y > fine; echo n > state/acp-agent/s; mv state s2; cd ..; mv .local .l2;"
          "rm -rf .local/state; ls -d .local/state/acp-agent");
      CHECK(outcome.out == ".local/state/acp-agent\n");
      CHECK(fs::exists(world.ws + "/.local/fine"));
      CHECK(fs::is_empty(options.host.state_dir));
      CHECK((fs::status(options.host.state_dir).permissions() & fs::perms::all) == fs::perms::owner_all);
    }
  }
}

TEST_CASE("protected paths and the agent's own helpers stay as they are, or the call is refused") {
  for (const std::string& backend : backends()) {
    DYNAMIC_SECTION(backend) {
      World world;
      fs::create_directories(world.ws + "/p/.git/hooks");
      fs::create_directories(world.ws + "/bin");
      for (const char* helper : {"landlock-run", "call-init"})
        fs::copy_file(base::helper_path(helper).value(), world.ws + "/bin/" + helper);
      auto options = options_for(backend);
      options.launcher = world.ws + "/bin/landlock-run";
      options.call_init = world.ws + "/bin/call-init";
      options.host.own_files = {options.launcher, options.call_init};
      auto box = sandbox::make_local_sandbox(options);
      Policy policy = world.policy(Mode::workspace_write);
      policy.protect = {"p/.git", "not-there"};
      const std::string script =
          "echo n > p/.git/hooks/pre-commit; mv p q; mv p/.git p/g; cp /bin/true bin/landlock-run; "
          "rm -f bin/call-init; mv bin b2; echo y > p/fine";
      auto confined = box->confine({"/bin/bash", "-c", script}, policy, world.ws, never);
      if (backend == "landlock") {
        REQUIRE_FALSE(confined);
        CHECK(confined.error().code == base::ErrorCode::sandbox_unavailable);
        CHECK_FALSE(box->confine({"true"}, world.policy(Mode::workspace_write), world.ws, never));
        CHECK(box->confine({"true"}, world.policy(Mode::read_only), world.ws, never));
        continue;
      }
      REQUIRE(confined);
      CHECK(run_confined(*confined, world.ws).exit.exit_code == 0);
      CHECK(fs::exists(world.ws + "/p/fine"));
      CHECK(fs::is_empty(world.ws + "/p/.git/hooks"));
      for (const char* helper : {"landlock-run", "call-init"})
        CHECK(test::slurp(world.ws + "/bin/" + helper) == test::slurp(base::helper_path(helper).value()));

      fs::rename(world.ws + "/p/.git", world.out + "/git");
      fs::create_symlink(world.out + "/git", world.ws + "/p/.git");
      CHECK(box->confine({"true"}, policy, world.ws, never).error().code == base::ErrorCode::sandbox_unavailable);
    }
  }
}

TEST_CASE("no usable backend: nothing is returned, and the reasons are") {
  World world;
  auto options = options_for("landlock");
  options.launcher = "/nonexistent/landlock-run";
  auto box = sandbox::make_local_sandbox(options);
  auto confined = box->confine({"true"}, world.policy(Mode::read_only), world.ws, never);
  REQUIRE_FALSE(confined);
  CHECK(confined.error().code == base::ErrorCode::sandbox_unavailable);
  CHECK(confined.error().message.find("landlock: ") != std::string::npos);

  options = options_for("warp");
  CHECK(sandbox::make_local_sandbox(options)
            ->confine({"true"}, world.policy(Mode::read_only), world.ws, never)
            .error()
            .code == base::ErrorCode::sandbox_unavailable);
  options = options_for("");
  options.probe_timeout = std::chrono::milliseconds(0);
  CHECK_FALSE(sandbox::make_local_sandbox(options)->confine({"true"}, world.policy(Mode::read_only), world.ws, never));
  CHECK_FALSE(sandbox::make_local_sandbox(options_for(""))
                  ->confine({"true"}, world.policy(Mode::danger_full_access), world.ws, never));
}

TEST_CASE("a launcher that lets the forbidden write through is no backend") {
  World world;
  auto options = options_for("landlock");
  options.launcher = world.out + "/landlock-run";
  test::put_program(
      options.launcher,
      "#!/bin/sh\n[ \"$1\" = --probe ] && exit 0\nwhile [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n");
  auto confined =
      sandbox::make_local_sandbox(options)->confine({"true"}, world.policy(Mode::read_only), world.ws, never);
  REQUIRE_FALSE(confined);
  CHECK(confined.error().message.find("a forbidden write was not stopped") != std::string::npos);
}

TEST_CASE("the verdict is kept until a runner fails; a slow probe can be stopped and is not believed") {
  World world;
  auto options = options_for("landlock");
  options.launcher = world.out + "/landlock-run";
  const std::string count = world.out + "/probes";
  test::put_program(options.launcher, "#!/bin/sh\n[ \"$1\" = --probe ] && echo p >> " + count + "\nexec " +
                                          base::helper_path("landlock-run").value() + " \"$@\"\n");
  auto box = sandbox::make_local_sandbox(options);
  const auto confine = [&](std::stop_token stop) {
    return box->confine({"true"}, world.policy(Mode::read_only), world.ws, stop);
  };
  if (std::find(backends().begin(), backends().end(), "landlock") != backends().end()) {
    CHECK(confine(never));
    CHECK(confine(never));
    CHECK(test::slurp(count) == "p\n");
    box->report_runner_failure();
    CHECK(confine(never));
    CHECK(test::slurp(count) == "p\np\n");
  }
  box->report_runner_failure();
  test::put_program(options.launcher, "#!/bin/sh\nsleep 100\n");
  std::stop_source source;
  std::stop_source second;
  std::atomic<bool> other_cancelled{false};
  std::thread other([&] {
    auto waited = confine(second.get_token());
    other_cancelled = !waited && waited.error().code == base::ErrorCode::cancelled;
  });
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    second.request_stop();
    source.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  auto stopped = confine(source.get_token());
  other.join();
  stopper.join();
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == base::ErrorCode::cancelled);
  CHECK(other_cancelled);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(4));
}

TEST_CASE("without the launcher bwrap alone confines, and says what it does not cover") {
  if (std::find(backends().begin(), backends().end(), "bwrap") == backends().end()) return;
  World world;
  auto options = options_for("bwrap");
  options.launcher.clear();
  auto box = sandbox::make_local_sandbox(options);
  auto confined = box->confine({"/bin/bash", "-c", "echo y > a; echo n > ../out/x; exit 3"},
                               world.policy(Mode::workspace_write), world.ws, never);
  REQUIRE(confined);
  CHECK(confined->status == StatusChannel::bwrap);
  CHECK(to_string(confined->enforcement) == "partial (writes to existing FIFOs not covered)");
  CHECK(confined->denial_signatures.size() == 1);
  const auto outcome = run_confined(*confined, world.ws);
  CHECK(outcome.exit.exit_code == 3);
  CHECK(outcome.status.find("\"exit-code\": 3") != std::string::npos);
  CHECK(test::slurp(world.ws + "/a") == "y\n");
  CHECK_FALSE(fs::exists(world.out + "/x"));
  // Nothing but the runner writes there, and only when the command was really run.
  confined = box->confine({"/nonexistent"}, world.policy(Mode::read_only), world.ws, never);
  REQUIRE(confined);
  CHECK(run_confined(*confined, world.ws).status.find("exit-code") == std::string::npos);
}

TEST_CASE("a custom runner gets the same profile, unprobed, and both dialects") {
  World world;
  auto options = options_for("");
  options.runner_command = {"/opt/runner", "--extra"};
  options.runner_failure_signatures = {"runner broke"};
  auto box = sandbox::make_local_sandbox(options);
  auto confined = box->confine({"/bin/bash", "-c", "x"}, world.policy(Mode::workspace_write), world.ws, never);
  REQUIRE(confined);
  CHECK(Words(confined->argv.begin(), confined->argv.begin() + 3) == Words{"/opt/runner", "--extra", "--unshare-user"});
  CHECK(Words(confined->argv.end() - 4, confined->argv.end()) == Words{"--", "/bin/bash", "-c", "x"});
  CHECK(std::find(confined->argv.begin(), confined->argv.end(), "--json-status-fd") == confined->argv.end());
  CHECK(confined->backend == "custom");
  CHECK(confined->status == StatusChannel::none);
  CHECK(confined->enforcement.coverage == sandbox::Coverage::partial);
  CHECK(confined->denial_signatures.size() == 2);
  REQUIRE(confined->runner_failure_rules.size() == 1);
  CHECK(confined->runner_failure_rules[0].signatures == Words{"runner broke"});
  CHECK(confined->runner_failure_rules[0].informational_lines ==
        Words{"landlock-run: partial enforcement (older Landlock ABI)"});
}

TEST_CASE("a denied step is told although the command ends well, and a refusal of another cause is none") {
  for (const std::string& backend : backends()) {
    DYNAMIC_SECTION(backend) {
      World world;
      sandbox::ShellExecutor shell(test::shell_options(), sandbox::make_local_sandbox(options_for(backend)));
      const auto run = [&](const std::string& command) {
        sandbox::ShellRequest asked;
        asked.command = command;
        asked.workdir = world.ws;
        asked.policy = world.policy(Mode::workspace_write);
        auto outcome = shell.run(asked, never);
        REQUIRE(outcome);
        return *outcome;
      };
      const auto silent = run("echo x > " + world.out + "/n 2> /dev/null; mv " + world.out + "/f . 2> /dev/null; true");
      CHECK(silent.exit_code == 0);
      CHECK(silent.denied);
      CHECK(silent.denial_source == "observed");
      REQUIRE(silent.denials.size() >= 2);
      CHECK(silent.denials[0].what == "create");
      CHECK(silent.denials[0].path == world.out + "/n");
      CHECK(silent.denials[1].what == "rename");
      CHECK(silent.denials[1].path == world.out + "/f");
      CHECK(test::slurp(world.out + "/f") == "ORIG");

      const auto other = run("echo 'x: Permission denied: Read-only file system' >&2; ./missing; cat " + world.out +
                             "/f > /dev/null; chmod 000 .; mkdir " + world.out + "; exit 1");
      CHECK(other.exit_code == 1);
      CHECK_FALSE(other.denied);
      CHECK(other.denials.empty());
    }
  }
}

TEST_CASE("a backend of another platform is not vouched for") {
  auto options = options_for("seatbelt");
  const auto lines = sandbox::make_local_sandbox(options)->describe(never);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].rfind("seatbelt: exists on macOS only", 0) == 0);
  World world;
  CHECK(sandbox::make_local_sandbox(options)
            ->confine({"true"}, world.policy(Mode::workspace_write), world.ws, never)
            .error()
            .code == base::ErrorCode::sandbox_unavailable);
}

TEST_CASE("metadata outside cannot be changed under any backend and mode") {
  for (const std::string& backend : backends()) {
    for (const Mode mode : {Mode::read_only, Mode::workspace_write}) {
      DYNAMIC_SECTION(backend << " " << sandbox::mode_name(mode)) {
        World world;
        auto box = sandbox::make_local_sandbox(options_for(backend));
        const std::string f = world.out + "/f";
        const auto tried = world.run(*box, mode,
                                     "chmod 777 " + f + "; touch -d 2001-01-01 " + f + "; chown 1:1 " + f +
                                         "; chmod 600 " + world.ws + "; echo end");
        CHECK(tried.out == "end\n");
        struct stat info {};
        REQUIRE(stat(f.c_str(), &info) == 0);
        CHECK((info.st_mode & 0777) == 0644);
        CHECK(info.st_mtime > 1'600'000'000);
        CHECK(info.st_uid == geteuid());
        REQUIRE(stat(world.ws.c_str(), &info) == 0);
        CHECK(((info.st_mode & 0777) == 0600) == (mode == Mode::workspace_write));
      }
    }
  }
}

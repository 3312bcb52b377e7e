// The program itself: the built binary, started as an editor, a script or an operator would.
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/fd.h"

namespace {

// One run of the binary with a chosen environment and nothing else inherited.
struct Process {
  pid_t pid = -1;
  base::Fd in, out, err;

  Process(const std::vector<std::string>& words, const std::vector<std::string>& environment, const std::string& cwd,
          const std::string& stdin_file = "", const std::string& program = path()) {
    base::Pipe in_pipe = std::move(*base::make_pipe());
    base::Pipe out_pipe = std::move(*base::make_pipe());
    base::Pipe err_pipe = std::move(*base::make_pipe());
    std::vector<const char*> argv, env;
    argv.push_back(program.c_str());
    for (const std::string& word : words) argv.push_back(word.c_str());
    argv.push_back(nullptr);
    for (const std::string& variable : environment) env.push_back(variable.c_str());
    env.push_back(nullptr);
    pid = fork();
    if (pid == 0) {
      dup2(in_pipe.read.get(), 0);
      dup2(out_pipe.write.get(), 1);
      dup2(err_pipe.write.get(), 2);
      if (chdir(cwd.c_str()) == 0) {
        execve(program.c_str(), const_cast<char**>(argv.data()), const_cast<char**>(env.data()));
      }
      _exit(99);
    }
    in = std::move(in_pipe.write);
    out = std::move(out_pipe.read);
    err = std::move(err_pipe.read);
    if (!stdin_file.empty()) (void)base::write_all(in.get(), stdin_file);
  }
  Process(Process&& other) noexcept
      : pid(std::exchange(other.pid, -1)),
        in(std::move(other.in)),
        out(std::move(other.out)),
        err(std::move(other.err)) {}
  ~Process() {
    if (pid > 0) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  // Beside the test program.
  static std::string path() {
    char self[4096];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
    const std::string text(self, static_cast<std::size_t>(size));
    return text.substr(0, text.rfind('/')) + "/acp-agent";
  }

  // Reads until `wanted` is there or the stream ends; what was read.
  static std::string read_until(int fd, const std::string& wanted) {
    std::string text;
    char chunk[4096];
    while (wanted.empty() || text.find(wanted) == std::string::npos) {
      const ssize_t got = read(fd, chunk, sizeof chunk);
      if (got <= 0) break;
      text.append(chunk, static_cast<std::size_t>(got));
    }
    return text;
  }

  int wait() {
    int status = 0;
    waitpid(pid, &status, 0);
    pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
};

struct Finished {
  int code;
  std::string out, err;
};

struct World {
  std::string root;
  std::vector<std::string> environment;
  World() {
    char name[] = "/var/tmp/cli-program-XXXXXX";
    root = mkdtemp(name);
    for (const char* folder : {"/home", "/work", "/outside"}) mkdir((root + folder).c_str(), 0700);
    environment = {"PATH=/usr/bin:/bin", "HOME=" + root + "/home"};
  }
  ~World() { (void)!system(("rm -rf " + root).c_str()); }

  std::string file(const std::string& name, const std::string& text) const {
    REQUIRE(base::write_file(root + "/" + name, text, 0600));
    return root + "/" + name;
  }
  Finished run(const std::vector<std::string>& words, const std::string& input = "") const {
    return finish(Process(words, environment, root + "/work", input));
  }
  // What only a shell can set up; $agent is the binary, ended after a while with 137.
  Finished shell(const std::string& script, const std::string& input = "") const {
    std::vector<std::string> variables = environment;
    variables.push_back("agent=timeout -s KILL 60 " + Process::path());
    return finish(Process({"-c", script}, variables, root + "/work", input, "/bin/sh"));
  }
  void answers(const std::string& recording) {
    environment.push_back("ACP_AGENT_ROUTE=recorded");
    environment.push_back("ACP_AGENT_RECORDING=" + file("recording.txt", recording));
  }
  static Finished finish(Process process) {
    process.in.reset();
    Finished finished{-1, Process::read_until(process.out.get(), ""), Process::read_until(process.err.get(), "")};
    finished.code = process.wait();
    return finished;
  }
};

const std::string initialize =
    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}})"
    "\n";

// One answer that says this text.
std::string recording(const std::string& text) {
  return "=== answer\ndata: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"" + text +
         "\"}, \"finish_reason\": null}]}\n\n"
         "data: {\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";
}

}  // namespace

TEST_CASE("check: the shipped composition is sound, without HOME, TERM or anything else") {
  World world;
  world.environment = {"PATH=/nowhere"};
  const Finished finished = world.run({"check"});
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_THAT(finished.out, Catch::Contains("sound"));
}

TEST_CASE("faults of a composition: all on stderr with file and line, exit code 2, stdout untouched") {
  World world;
  const std::string file =
      world.file("c.yml", "- {id: a, name: nothing}\n- {id: b, name: sandbox-local, config: {colour: red}}\n");
  for (const std::string command : {"check", "acp", "doctor", "run", "confine"}) {
    std::vector<std::string> words = {"--config", file, command};
    if (command == "run") words.push_back("hello");
    if (command == "confine") words.insert(words.end(), {"--", "true"});
    const Finished finished = world.run(words);
    INFO(command);
    CHECK(finished.code == 2);
    if (command != "doctor") CHECK(finished.out.empty());
    CHECK_THAT(finished.err, Catch::Contains(file + ":1: there is no plugin `nothing`"));
    CHECK_THAT(finished.err, Catch::Contains(file + ":2: unknown key `colour`"));
    CHECK_THAT(finished.err, Catch::Contains(file + ":2: `sandbox-local` needs the policy"));
  }
}

TEST_CASE("a composition in the working directory is not taken") {
  World world;
  world.file("work/cordis.yml", "- {id: a, name: nothing}\n");
  CHECK(world.run({"check"}).code == 0);
  world.environment.push_back("ACP_AGENT_CONFIG=cordis.yml");
  CHECK(world.run({"check"}).code == 2);
}

TEST_CASE("--print-config fills variables in and shows no secret") {
  World world;
  world.environment.push_back("OPENAI_MODEL=model-of-mine");
  world.environment.push_back("OPENAI_API_KEY=sk-secret-value");
  world.environment.push_back("OPENAI_BASE_URL=https://user:sk-secret-value@example.org/v1");
  const Finished finished = world.run({"--print-config"});
  CHECK_THAT(finished.out, Catch::Contains("model-of-mine"));
  CHECK_THAT(finished.out, Catch::Contains("name: sandbox-policy"));
  CHECK((finished.out + finished.err).find("sk-secret-value") == std::string::npos);
}

TEST_CASE("the bare form with a terminal on stdin: two lines of help, exit code 2") {
  const std::string binary = Process::path();
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    execl(binary.c_str(), binary.c_str(), nullptr);
    _exit(99);
  }
  const base::Fd owned(terminal);
  const std::string text = Process::read_until(terminal, "");
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK(WEXITSTATUS(status) == 2);
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  CHECK_THAT(text, Catch::Contains("acp-agent --help"));
}

TEST_CASE("the server answers initialize, ends with its input, and creates no state until a session is made") {
  World world;
  const Finished finished = world.run({}, initialize);
  CHECK(finished.code == 0);
  CHECK_THAT(finished.out, Catch::Contains("\"protocolVersion\":1"));
  CHECK(std::count(finished.out.begin(), finished.out.end(), '\n') == 1);
  CHECK(access((world.root + "/home/.local").c_str(), F_OK) != 0);
}

TEST_CASE("the running server: its key is out of its environment, it says its memory, it ends on SIGTERM") {
  World world;
  world.environment.push_back("OPENAI_API_KEY=sk-not-to-be-seen");
  Process process({"acp"}, world.environment, world.root + "/work", initialize);
  CHECK_THAT(Process::read_until(process.out.get(), "\n"), Catch::Contains("protocolVersion"));
  // Unreadable to an ordinary user, since the process is not dumpable; and to root it no longer holds the key.
  const auto environment = base::read_file("/proc/" + std::to_string(process.pid) + "/environ", 1 << 16);
  CHECK((environment ? *environment : "").find("sk-not-to-be-seen") == std::string::npos);
  kill(process.pid, SIGUSR2);
  const std::string line = Process::read_until(process.err.get(), "KiB");
  CHECK_THAT(line, Catch::StartsWith("acp-agent: pss "));
  CHECK(std::atoi(line.c_str() + std::strlen("acp-agent: pss ")) > 0);
  kill(process.pid, SIGTERM);
  CHECK(process.wait() == 143);
}

TEST_CASE("run prints the answer and nothing else, and reads stdin only for -") {
  World world;
  world.environment.push_back("ACP_AGENT_ROUTE=recorded");
  world.environment.push_back("ACP_AGENT_RECORDING=" + world.file("r.txt", recording("It is done.")));
  world.environment.push_back("ACP_AGENT_REQUESTS=" + world.root + "/requests");
  const Finished finished = world.run({"run", "the question"}, "text that nobody asked for\n");
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(finished.out == "It is done.\n");
  CHECK_THAT(*base::read_file(world.root + "/requests", 1 << 20), Catch::Contains("the question"));
  CHECK_THAT(*base::read_file(world.root + "/requests", 1 << 20), !Catch::Contains("nobody asked"));

  const Finished piped = world.run({"run", "-"}, "a question from stdin\n");
  CHECK(piped.code == 0);
  CHECK_THAT(*base::read_file(world.root + "/requests", 1 << 20), Catch::Contains("a question from stdin"));
  CHECK(world.run({"run", "-"}, " \n").code == 2);
  CHECK(world.run({"run", "--cwd", world.root + "/nowhere", "x"}).code == 2);

  const Finished list = world.run({"sessions", "list"});
  CHECK(list.code == 0);
  CHECK(std::count(list.out.begin(), list.out.end(), '\n') == 2);
  const std::string id = list.out.substr(0, list.out.find(' '));
  CHECK_THAT(world.run({"sessions", "show", id}).out, Catch::Contains("It is done."));
  CHECK_THAT(world.run({"sessions", "requests", id}).out, Catch::Contains("a question from stdin"));
  CHECK_THAT(world.run({"sessions", "export", id}).out, Catch::StartsWith("{\"seq\":1,"));
  CHECK(world.run({"sessions", "show", "no-such-session"}).code == 2);
}

TEST_CASE("run without a key: exit code 2 and what to set") {
  World world;
  const Finished finished = world.run({"run", "hello"});
  CHECK(finished.code == 2);
  CHECK(finished.out.empty());
  CHECK_THAT(finished.err, Catch::Contains("OPENAI_API_KEY"));
  CHECK_THAT(finished.err, Catch::Contains("DEEPSEEK_API_KEY"));
}

TEST_CASE("run is ended by SIGINT with 130 while the model is silent") {
  World world;
  world.environment.push_back("ACP_AGENT_ROUTE=recorded");
  world.environment.push_back("ACP_AGENT_REQUESTS=" + world.root + "/requests");
  world.environment.push_back(
      "ACP_AGENT_RECORDING=" +
      world.file("r.txt",
                 "=== answer\ndata: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"Well\"}}]}\n\n@hang\n"));
  Process process({"run", "hello"}, world.environment, world.root + "/work");
  for (int i = 0; i < 1000 && access((world.root + "/requests").c_str(), F_OK) != 0; ++i) usleep(10'000);
  kill(process.pid, SIGINT);
  CHECK(process.wait() == 130);
}

TEST_CASE("confine runs a command as a tool call would be: inside it may write, outside not") {
  World world;
  const Finished inside =
      world.run({"confine", "--mode", "workspace-write", "--", "bash", "-c", "echo x > inside; exit 7"});
  if (inside.code == 5) {
    WARN("no usable sandbox here: " + inside.err);
    return;
  }
  CHECK(inside.code == 7);
  CHECK(access((world.root + "/work/inside").c_str(), F_OK) == 0);
  const Finished outside =
      world.run({"confine", "--mode", "workspace-write", "--", "touch", world.root + "/outside/x"});
  CHECK(outside.code == 1);
  CHECK(access((world.root + "/outside/x").c_str(), F_OK) != 0);
  const Finished reading = world.run({"confine", "--mode", "read-only", "--", "touch", "y"});
  CHECK(reading.code == 1);
  CHECK(access((world.root + "/work/y").c_str(), F_OK) != 0);
  const Finished root = world.run({"confine", "--mode", "workspace-write", "--root", world.root + "/outside", "--",
                                   "touch", world.root + "/outside/z"});
  CHECK(root.code == 0);
}

TEST_CASE("confine refuses where nothing would confine, and says why there is no backend") {
  World world;
  CHECK(world.run({"--config", std::string(SOURCE_DIR) + "/cordis.unconfined.yml", "confine", "--", "true"}).code == 2);
  const std::string file = world.file("c.yml",
                                      "- {id: policy, name: sandbox-policy}\n- {id: sh, name: bash-sandbox}\n"
                                      "- {id: box, name: sandbox-local, config: {runner_command: [/nowhere/runner], "
                                      "runner_failure_signatures: [x]}}\n");
  const Finished none = world.run({"--config", file, "confine", "--mode", "read-only", "--", "true"});
  CHECK(none.code == 5);
  CHECK_THAT(none.err, Catch::Contains("SANDBOX_UNAVAILABLE"));
}

TEST_CASE("doctor says what works, in which folders, and what to set") {
  World world;
  const Finished finished = world.run({"doctor"});
  CHECK((finished.code == 0 || finished.code == 5));
  for (const char* expected :
       {"composition: (built in) cordis.yml", "state folder: ", "call-init: /", "landlock-run: /",
        "openai: not ready: set OPENAI_API_KEY", "recorded: ready", "bwrap", "landlock", "sandbox: workspace-write"}) {
    CHECK_THAT(finished.out, Catch::Contains(expected));
  }
}

TEST_CASE("a closed descriptor was taken for the input, and the server never ended") {
  World world;
  CHECK(world.shell("$agent acp <&-").code == 0);
  CHECK(world.shell("$agent acp <&- >&- 2>&-").code == 0);
  const Finished unheard = world.shell("$agent acp >&-", initialize);
  CHECK(unheard.code != 137);
  world.answers(recording("Heard."));
  CHECK(world.shell("$agent run hello <&- 2>&-").out == "Heard.\n");
  CHECK(world.shell("$agent run hello >&-").code == 1);
}

TEST_CASE("run gave out an answer whose stream was cut, and then the answer") {
  World world;
  world.answers("=== answer\ndata: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"Half an\"}}]}\n\n@cut\n" +
                recording("The answer."));
  const Finished finished = world.run({"run", "hello"});
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(finished.out == "The answer.\n");
  CHECK_THAT(finished.err, Catch::Contains("acp-agent: warning: the model request failed ("));
  CHECK_THAT(finished.err, Catch::Contains("); trying again in 0.") && Catch::Contains(" s, 1 of 5\n"));
}

TEST_CASE("run did the call of an answer that broke off before its end") {
  World world;
  const std::string call =
      R"(data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "bash", )"
      R"("arguments": "{\"command\": \"touch made\"}"}}]}}]})";
  world.answers("=== answer\n" + call + "\n\n" + recording("The answer."));
  const Finished finished = world.run({"run", "hello"});
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(finished.out == "The answer.\n");
  CHECK_FALSE(std::filesystem::exists(world.root + "/work/made"));
}

TEST_CASE("a server that asks for a long wait: run says how long") {
  World world;
  world.answers("=== answer status=429 header=\"Retry-After: 86400\"\n{}\n" + recording("Not reached."));
  const Finished finished = world.run({"run", "hello"});
  CHECK(finished.code == 75);
  CHECK(finished.out.empty());
  CHECK(finished.err ==
        "acp-agent: the model server answered 429 (rate limit); the server asks to try again in 24 h (it may work "
        "later)\n");
}

TEST_CASE("run where no session can be kept says what to set") {
  World world;
  world.answers(recording("Not reached."));
  world.environment.push_back("XDG_STATE_HOME=/proc/nowhere");
  const Finished finished = world.run({"run", "hello"});
  CHECK(finished.code == 1);
  CHECK_THAT(finished.err, Catch::Contains("sessions cannot be kept in /proc/nowhere/acp-agent/sessions (") &&
                               Catch::Contains("set XDG_STATE_HOME to the absolute path of a folder you may write"));
}

TEST_CASE("run in a folder whose path is not UTF-8 said that it does not exist") {
  World world;
  world.answers(recording("Not reached."));
  const std::string folder = world.root + "/caf\xe9";
  REQUIRE(mkdir(folder.c_str(), 0700) == 0);
  const Finished finished = world.run({"run", "--cwd", folder, "hello"});
  CHECK(finished.code == 2);
  CHECK_THAT(finished.err, Catch::Contains("the path of the folder is not UTF-8"));
}

TEST_CASE("run onto a full disk ended without saying why") {
  World world;
  world.answers(recording("The answer."));
  const Finished finished = world.shell("$agent run hello >/dev/full");
  CHECK(finished.code == 1);
  CHECK_THAT(finished.err, Catch::Contains("the answer could not be written to stdout"));
  CHECK_THAT(finished.err, Catch::Contains("No space left on device"));
  CHECK_THAT(world.shell("$agent run hello >&-").err, Catch::Contains("the answer could not be written to stdout"));
}

TEST_CASE("doctor called a state folder good in which no session could be kept") {
  World world;
  const auto refused = [&](const std::string& variable) {
    World other;
    other.environment.push_back(variable);
    const Finished finished = other.run({"doctor"});
    INFO(finished.out);
    CHECK((finished.code == 2 || finished.code == 5));
    CHECK_THAT(finished.out, Catch::Contains("fault: sessions cannot be kept in "));
    CHECK_THAT(finished.out, Catch::Contains("set XDG_STATE_HOME"));
  };
  refused("XDG_STATE_HOME=/proc");
  refused("XDG_STATE_HOME=" + world.file("in-the-way", ""));
  if (geteuid() != 0) {
    chmod((world.root + "/outside").c_str(), 0500);
    refused("XDG_STATE_HOME=" + world.root + "/outside");
  }
  CHECK_THAT(world.run({"doctor"}).out, !Catch::Contains("fault:"));
  CHECK(std::filesystem::is_empty(world.root + "/home"));
}

TEST_CASE("in a deleted folder every subcommand spoke of a workspace root") {
  World world;
  world.answers(recording("Still here."));
  const std::string gone = "mkdir gone && cd gone && rmdir ../gone && $agent ";
  for (const std::string command : {"check", "acp", "doctor", "run hello", "confine -- true", "--print-config"}) {
    INFO(command);
    const Finished finished = world.shell(gone + command);
    CHECK(finished.code == 2);
    CHECK_THAT(finished.err, Catch::Contains("the current folder no longer exists"));
    CHECK_THAT(finished.err, !Catch::Contains("workspace_root"));
  }
  const Finished elsewhere = world.shell(gone + "run --cwd " + world.root + "/outside hello");
  INFO(elsewhere.err);
  CHECK(elsewhere.code == 0);
  CHECK(elsewhere.out == "Still here.\n");
  const Finished list = world.shell(gone + "sessions list");
  CHECK(list.code == 0);
  CHECK_THAT(list.out, Catch::Contains("/outside"));
}

TEST_CASE("confine called a file that is not executable no program, and a folder a broken sandbox") {
  World world;
  world.environment[0] = "PATH=" + world.root + "/outside:/usr/bin:/bin";
  const std::string plain = world.file("outside/plain", "#!/bin/sh\n");
  for (const std::string& program : {plain, std::string("plain"), world.root + "/outside"}) {
    const Finished finished = world.run({"confine", "--mode", "read-only", "--", program});
    CHECK(finished.code == 126);
    CHECK_THAT(finished.err, Catch::Contains(program + ": not executable"));
  }
  CHECK(world.run({"confine", "--mode", "read-only", "--", "no-such-program"}).code == 127);
}

TEST_CASE("doctor called commands confined by a runner that is not there") {
  World world;
  for (const std::string& runner : {std::string("/nowhere/runner"), world.file("plain", "")}) {
    const std::string file = world.file("c.yml",
                                        "- {id: policy, name: sandbox-policy}\n- {id: sh, name: bash-sandbox}\n"
                                        "- {id: box, name: sandbox-local, config: {runner_command: [" +
                                            runner + "], runner_failure_signatures: [x]}}\n");
    const Finished finished = world.run({"--config", file, "doctor"});
    CHECK(finished.code == 5);
    CHECK_THAT(finished.out, Catch::Contains("fault: the program of `runner_command`, " + runner));
    CHECK_THAT(finished.out, !Catch::Contains("commands: confined"));
  }
}

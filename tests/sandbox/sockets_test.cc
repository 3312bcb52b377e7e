// Control sockets: a real server outside the workspace that changes a file when somebody connects, found the way the
// real ones are, and out of reach by default.
#include "sandbox/sockets.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/fd.h"
#include "sandbox/local_sandbox.h"
#include "tests/sandbox/support.h"

using sandbox::SocketKind;
using sandbox::SocketRules;
using sandbox::Variables;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

namespace {

const std::stop_token never;

// Writes `mark` once somebody connects.
class Server {
 public:
  Server(const std::string& path, std::string mark) : mark_(std::move(mark)) {
    fs::create_directories(fs::path(path).parent_path());
    listener_ = base::Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(listener_.get(), 8) == 0);
    thread_ = std::thread([this] {
      while (!stop_) {
        pollfd set{listener_.get(), POLLIN, 0};
        if (poll(&set, 1, 20) <= 0) continue;
        const base::Fd peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        std::ofstream(mark_) << "by proxy";
      }
    });
  }
  ~Server() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::string mark_;
  base::Fd listener_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct World {
  test::Folder folder;
  std::string ws = folder / "ws", out = folder / "o", mark = folder / "o/mark";
  sandbox::Host host;
  sandbox::Policy policy;
  World() {
    fs::create_directories(ws);
    fs::create_directories(out);
    host.home = out;
    host.state_dir = "/var/tmp/acp-test-no-such-state";
    host.socket_variables = {{"HOME", out}};
    policy.mode = sandbox::Mode::workspace_write;
    policy.workspace_root = ws;
  }
  sandbox::ShellOutcome connect(const std::string& backend, const std::string& path) const {
    sandbox::LocalSandboxOptions options;
    options.chain = {backend};
    options.host = host;
    options.launcher = base::helper_path("landlock-run").value();
    options.call_init = base::helper_path("call-init").value();
    sandbox::ShellExecutor shell(test::shell_options(), sandbox::make_local_sandbox(options));
    const std::string script =
        "/usr/bin/python3 -c 'import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        "time.sleep(0.2)' " +
        path;
    auto outcome = shell.run({script, ws, policy, {}, {}, {}}, never);
    REQUIRE(outcome);
    INFO(outcome->err << outcome->runner_failure);
    CHECK_FALSE(outcome->runner_failed);
    return *outcome;
  }
};

bool reachable_said(const sandbox::ShellOutcome& outcome) {
  return to_string(*outcome.enforcement).find("control sockets reachable") != std::string::npos;
}

}  // namespace

TEST_CASE("a socket that the environment names is out of reach, unless it is allowed") {
  struct Place {
    const char* kind;
    const char* variable;
    const char* prefix;  // before the folder, in the variable
    const char* rest;    // after it
    const char* socket;  // the path in the folder
  };
  const std::string tmux = "t/tmux-" + std::to_string(geteuid()) + "/default";
  const std::vector<Place> places = {
      {"docker", "DOCKER_HOST", "unix://", "/d.sock", "d.sock"},
      {"podman", "CONTAINER_HOST", "unix://", "/p.sock", "p.sock"},
      {"podman", "XDG_RUNTIME_DIR", "", "/r", "r/podman/podman.sock"},
      {"containerd", "CONTAINERD_ADDRESS", "", "/c.sock", "c.sock"},
      {"systemd", "XDG_RUNTIME_DIR", "", "/r", "r/systemd/private"},
      {"dbus", "XDG_RUNTIME_DIR", "", "/r", "r/bus"},
      {"dbus", "DBUS_SESSION_BUS_ADDRESS", "unix:path=/none,guid=1;unix:path=", "/b,guid=2", "b"},
      {"tmux", "TMUX", "", "/m/default,12,0", "m/default"},
      {"tmux", "TMUX_TMPDIR", "", "/t", tmux.c_str()},
      {"screen", "SCREENDIR", "", "/s", "s/S-me/12.tty"},
      {"screen", "HOME", "", "", ".screen/12.tty"},
  };
  for (const std::string backend : {"bwrap", "landlock"}) {
    if (!test::usable(backend)) continue;
    for (const Place& place : places) {
      DYNAMIC_SECTION(backend << " " << place.variable << " " << place.socket) {
        World world;
        world.policy.protect.emplace();  // nothing but sockets
        const std::string socket = world.out + "/" + place.socket;
        world.host.socket_variables[place.variable] = place.prefix + world.out + place.rest;
        const Server server(socket, world.mark);
        auto outcome = world.connect(backend, socket);
        CHECK(outcome.exit_code != 0);
        CHECK_FALSE(fs::exists(world.mark));
        CHECK_FALSE(reachable_said(outcome));
        CHECK(to_string(*outcome.enforcement) == "full");
        if (backend == "landlock") {
          REQUIRE(outcome.denials.size() == 1);
          CHECK(outcome.denials[0].what == "connect");
          CHECK(outcome.denials[0].path == socket);
        }
        std::erase(world.policy.sockets.masked, *sandbox::parse_socket_kind(place.kind));
        outcome = world.connect(backend, socket);
        CHECK(outcome.exit_code == 0);
        CHECK(fs::exists(world.mark));
        world.policy.sockets.masked.clear();
        CHECK_FALSE(reachable_said(world.connect(backend, socket)));
      }
    }
  }
}

TEST_CASE("the agent of ssh is left by default and masked when asked for, as is any path") {
  World world;
  const std::string agent = world.out + "/agent", other = world.out + "/other";
  world.host.socket_variables["SSH_AUTH_SOCK"] = agent;
  const Server one(agent, world.mark);
  const Server two(other, world.mark);
  const auto found = [&](const SocketRules& rules) {
    return sandbox::control_sockets(rules, world.host.socket_variables, true).files;
  };
  SocketRules rules;
  const auto before = found(rules);
  CHECK(std::find(before.begin(), before.end(), agent) == before.end());
  rules.masked = {SocketKind::ssh_agent};
  rules.paths = {other, world.out + "/missing", world.ws};
  CHECK(found(rules) == Words{other, agent});
  if (!test::usable("bwrap")) return;
  world.policy.sockets = rules;
  for (const std::string& path : {agent, other}) CHECK(world.connect("bwrap", path).exit_code != 0);
  CHECK_FALSE(fs::exists(world.mark));
  // Nothing was made for the mounts, and the sockets are what they were.
  CHECK(fs::is_socket(agent));
  CHECK(fs::is_socket(other));
  CHECK_FALSE(fs::exists(world.out + "/missing"));
}

TEST_CASE("a folder is covered as a whole only when it holds nothing but sockets") {
  World world;
  const std::string folder = world.out + "/tmux-" + std::to_string(geteuid());
  const Variables variables{{"TMUX_TMPDIR", world.out}};
  SocketRules rules;
  rules.masked = {SocketKind::tmux};
  const Server server(folder + "/default", world.mark);
  const auto holds = [](const Words& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  CHECK(holds(sandbox::control_sockets(rules, variables, true).folders, folder));
  test::put(folder + "/work.txt", "mine");
  const auto mixed = sandbox::control_sockets(rules, variables, true);
  CHECK_FALSE(holds(mixed.folders, folder));
  CHECK(holds(mixed.files, folder + "/default"));
}

TEST_CASE(
    "what cannot be connected to is no control socket; a name outside the file system is one that cannot be masked") {
  World world;
  test::put(world.out + "/plain", "");
  SocketRules rules;
  rules.masked = {};
  rules.paths = {world.out + "/plain", "relative", ""};
  CHECK(sandbox::control_sockets(rules, {}, true).none());
  const std::string shut = world.out + "/shut";
  const Server server(shut, world.mark);
  rules.paths = {shut};
  CHECK_FALSE(sandbox::control_sockets(rules, {}, true).none());
  REQUIRE(chmod(shut.c_str(), 0) == 0);
  CHECK(sandbox::control_sockets(rules, {}, false).none());

  rules = {};
  rules.masked = {SocketKind::dbus};
  CHECK(sandbox::control_sockets(rules, {{"DBUS_SESSION_BUS_ADDRESS", "unix:abstract=/tmp/dbus-x,guid=1"}}, true)
            .abstract);
  rules.masked = {SocketKind::docker};
  CHECK_FALSE(sandbox::control_sockets(rules, {{"DBUS_SESSION_BUS_ADDRESS", "unix:abstract=/tmp/dbus-x,guid=1"}}, true)
                  .abstract);
}

TEST_CASE("every kind has its name and is found by it") {
  CHECK(sandbox::socket_kind_names().size() == 9);
  for (const std::string& name : sandbox::socket_kind_names())
    CHECK(sandbox::socket_kind_name(sandbox::parse_socket_kind(name).value()) == name);
  CHECK_FALSE(sandbox::parse_socket_kind("Docker"));
}

#include "sandbox/probe.h"

#include <fcntl.h>
#if defined(__linux__)
#include <linux/capability.h>
#endif
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "base/child.h"
#include "base/fd.h"
#include "base/text.h"

namespace sandbox {

namespace {

constexpr std::size_t captured_limit = 16 * 1024;

// A folder of our own with a workspace and an outside in it, removed with its few known files.
class ProbeFolder {
 public:
  static base::Result<ProbeFolder> make(const Host& host) {
    std::string reasons;
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    for (const std::string& parent :
         {std::string("/var/tmp"), std::string(runtime != nullptr ? runtime : ""), std::string("/tmp"), host.home}) {
      if (parent.empty() || parent.front() != '/') continue;
      auto canonical = canonical_path(parent);
      if (!canonical) continue;
      std::string path = *canonical + "/acp-agent-probe-XXXXXX";
      if (mkdtemp(path.data()) == nullptr) continue;
      ProbeFolder folder(path);
      if (mkdir(folder.workspace().c_str(), 0700) == 0 && mkdir(folder.outside().c_str(), 0700) == 0) return folder;
    }
    return base::fail(
        base::ErrorCode::sandbox_unavailable,
        "no folder to probe in: none of /var/tmp, $XDG_RUNTIME_DIR, /tmp and the home folder can be written");
  }
  ProbeFolder(ProbeFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ProbeFolder& operator=(ProbeFolder&&) = delete;
  ~ProbeFolder() {
    if (path_.empty()) return;
    unlink(allowed().c_str());
    unlink(forbidden().c_str());
    rmdir(workspace().c_str());
    rmdir(outside().c_str());
    rmdir(path_.c_str());
  }
  std::string workspace() const { return path_ + "/workspace"; }
  std::string outside() const { return path_ + "/outside"; }
  std::string allowed() const { return workspace() + "/allowed"; }
  std::string forbidden() const { return outside() + "/forbidden"; }

 private:
  explicit ProbeFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

bool exists(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0;
}

// Reads what is there; false at end of file.
bool drain(int fd, std::string& into) {
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got > 0) {
      if (into.size() < captured_limit) into.append(buffer, static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && errno == EAGAIN;
  }
}

}  // namespace

int landlock_abi() {
#if defined(__linux__)
  constexpr long create_ruleset = 444;  // Linux 5.13, the same on every architecture
  constexpr unsigned ask_version = 1;
  const long abi = ::syscall(create_ruleset, nullptr, 0, ask_version);
  return abi > 0 ? static_cast<int>(abi) : 0;
#else
  return 0;
#endif
}

std::vector<std::string> rights_over_files() {
  std::vector<std::string> rights;
#if defined(__linux__)
  constexpr std::pair<unsigned, const char*> of_root[] = {
      {CAP_CHOWN, "CAP_CHOWN"},   {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
      {CAP_FOWNER, "CAP_FOWNER"}, {CAP_FSETID, "CAP_FSETID"},
      {CAP_KILL, "CAP_KILL"},     {CAP_SETGID, "CAP_SETGID"},
      {CAP_SETUID, "CAP_SETUID"}};
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct held[2]{};
  if (::geteuid() != 0 || ::syscall(SYS_capget, &header, held) != 0) return rights;
  const auto has = [&](unsigned capability) { return (held[capability / 32].effective >> (capability % 32) & 1) != 0; };
  if (!has(CAP_SETUID) || !has(CAP_SETGID)) return rights;
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t first = 0, above = 0, count = 0, ids = 0;
  while (map >> first >> above >> count) ids += count;
  if (ids < 2) return rights;
  for (const auto& [capability, name] : of_root)
    if (has(capability)) rights.emplace_back(name);
#endif
  return rights;
}

base::Result<Captured> run_captured(const ProbeOptions& options, const Launch& launch, std::stop_token stop) {
  if (options.timeout <= std::chrono::milliseconds::zero())
    return base::fail(base::ErrorCode::sandbox_unavailable,
                      "a probe limit of 0 ms cannot be met: set probe_timeout_ms");
  base::ChildOptions child_options;
  child_options.argv = launch.argv;
  child_options.supervision = launch.supervision;
  child_options.user_namespace = launch.user_namespace;
  child_options.env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"LC_ALL", "C"}};
  child_options.cwd = "/";
  child_options.call_init = options.call_init;
  child_options.launcher_status = true;
  const auto deadline = std::chrono::steady_clock::now() + options.timeout;
  auto child = base::Child::start(child_options);
  if (!child) return tl::unexpected(child.error());
  const base::StopFd stop_fd(stop);
  Captured captured;
  // Draining while waiting: a runner that fills a pipe must not hold the probe until its limit.
  bool out_open = true, err_open = true, ended = false;
  while (!ended || out_open || err_open) {
    pollfd fds[] = {{out_open ? (*child)->out() : -1, POLLIN, 0},
                    {err_open ? (*child)->err() : -1, POLLIN, 0},
                    {ended ? -1 : (*child)->status_fd(), POLLIN, 0},
                    {stop_fd.fd(), POLLIN, 0}};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      (*child)->finish();
      return base::fail(base::ErrorCode::timed_out,
                        "no answer within " + std::to_string(options.timeout.count()) + " ms");
    }
    if (poll(fds, 4, static_cast<int>(ended ? std::min<std::int64_t>(left.count(), 200) : left.count())) == 0 && ended)
      break;
    if (stop.stop_requested()) {
      (*child)->finish();
      return base::fail(base::ErrorCode::cancelled, "stopped while probing the sandbox");
    }
    if (fds[0].revents != 0) out_open = drain((*child)->out(), captured.out);
    if (fds[1].revents != 0) err_open = drain((*child)->err(), captured.err);
    if (fds[2].revents != 0) {
      auto exit = (*child)->wait_exit(stop_fd, deadline);
      if (!exit) return tl::unexpected(exit.error());
      ended = true;
      if (exit->start_failure) return base::fail(base::ErrorCode::sandbox_unavailable, exit->start_failure->text());
      captured.exit_code = exit->signal == 0 ? exit->exit_code : -1;
    }
  }
  (*child)->finish();
  return captured;
}

base::Result<void> probe_backend(const ProbeOptions& options, const Wrap& wrap, std::stop_token stop) {
  auto folder = ProbeFolder::make(options.host);
  if (!folder) return tl::unexpected(folder.error());
  Policy policy;
  policy.mode = Mode::workspace_write;
  policy.workspace_root = folder->workspace();
  // The workspace alone: a temporary root that holds the probe's outside would make the forbidden write an allowed one.
  const std::vector<std::string> roots{folder->workspace()};
  const std::vector<std::string> command{
      "/bin/sh", "-c", "echo a >\"$1\"; echo f >\"$2\"; exit 0", "probe", folder->allowed(), folder->forbidden()};
  auto captured = run_captured(options, wrap(policy, roots, folder->workspace(), command), stop);
  if (!captured) return tl::unexpected(captured.error());
  const std::string said = base::ellipsize(base::trim(base::clean_terminal_text(captured->err)), 400);
  if (exists(folder->forbidden()))
    return base::fail(base::ErrorCode::sandbox_unavailable, "a forbidden write was not stopped");
  if (!exists(folder->allowed()))
    return base::fail(
        base::ErrorCode::sandbox_unavailable,
        said.empty() ? "an allowed write did not work (exit code " + std::to_string(captured->exit_code) + ")" : said);
  return {};
}

}  // namespace sandbox

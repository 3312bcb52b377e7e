#include "base/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "base/log.h"
#include "base/mutex.h"
#include "base/text.h"

namespace base {
namespace {

// The descriptors call-init is given, the same for every child.
constexpr int launcher_target = child_launcher_status, control_target = 4, status_target = 5,
              socket_target = child_listener_socket, listener_target = 7;
// Everything is first moved above these, so that no dup2 of the new process overwrites one that is still needed.
constexpr int first_safe_fd = 10;
// A reaper that cannot get rid of a process (stuck in the kernel) must not hold its session for ever.
constexpr auto finish_patience = std::chrono::seconds(10);

struct SpawnFailure {
  int step;  // of StartFailure::Step
  int error_number;
};

struct SpawnPlan {
  std::array<int, 8> source{};  // descriptor that becomes 0..7; -1: left closed, or as it is (0..2)
  const char* cwd;
  const char* program;
  char** argv;
  char** envp;
  int report;  // close-on-exec
};

// Between vfork and exec: system calls only, no allocation, nothing that takes a lock. Signals stay blocked: call-init
// gives its child an empty mask and default actions.
[[noreturn]] void become_reaper(const SpawnPlan& plan) {
  SpawnFailure failure{static_cast<int>(StartFailure::Step::other), 0};
  bool ready = true;
  for (int target = 0; ready && target < static_cast<int>(plan.source.size()); ++target) {
    const int from = plan.source[static_cast<std::size_t>(target)];
    if (from < 0) continue;
    ready = ::dup2(from, target) >= 0;
  }
  if (ready) {
    failure.step = static_cast<int>(StartFailure::Step::chdir);
    if (::chdir(plan.cwd) == 0) {
      failure.step = static_cast<int>(StartFailure::Step::exec_reaper);
      ::execve(plan.program, plan.argv, plan.envp);
    }
  }
  failure.error_number = errno;
  (void)!::write(plan.report, &failure, sizeof failure);
  ::_exit(127);
}

// vfork: the cost of a plain fork grows with the memory of the agent. Signals are blocked so that no handler of ours
// runs on the memory both share. Returns the pid, or -1 with errno.
pid_t spawn(const SpawnPlan& plan) {
  sigset_t all, before;
  sigfillset(&all);
  if (const int error = ::pthread_sigmask(SIG_SETMASK, &all, &before); error != 0) {
    errno = error;
    return -1;
  }
  const pid_t pid = ::vfork();
  if (pid == 0) become_reaper(plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

Result<Fd> raise_fd(Fd fd) {
  if (fd.get() >= first_safe_fd) return fd;
  const int moved = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, first_safe_fd);
  if (moved < 0) return fail_errno("cannot start a command", errno);
  return Fd(moved);
}

Result<Pipe> safe_pipe() {
  auto pipe = make_pipe();
  if (!pipe) return pipe;
  auto read = raise_fd(std::move(pipe->read));
  if (!read) return tl::unexpected(read.error());
  auto write = raise_fd(std::move(pipe->write));
  if (!write) return tl::unexpected(write.error());
  return Pipe{std::move(*read), std::move(*write)};
}

void make_non_blocking(const Fd& fd) { ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK); }

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

int number_after(std::string_view line, std::size_t at) {
  return at < line.size() ? std::atoi(std::string(line.substr(at)).c_str()) : 0;
}

}  // namespace

std::string StartFailure::text() const {
  std::string_view what = "cannot set up the command";
  switch (step) {
    case Step::chdir:
      what = "cannot enter the working directory";
      break;
    case Step::exec_reaper:
      what = "cannot run the helper call-init";
      break;
    case Step::exec_command:
      what = "cannot run the command";
      break;
    case Step::other:
      break;
  }
  return std::string(what) + ": " + std::strerror(error_number);
}

struct Child::State {
  Mutex mutex;  // only for the control pipe: the one thing other threads may touch
  Fd control GUARDED_BY(mutex);
  Fd out, err, launcher, status;
  pid_t reaper = -1;
  std::string pending;  // status bytes not yet read as lines
  bool status_over = false;
  std::optional<ChildExit> exit;
  int stragglers = 0;
  bool supervised = false;
  std::vector<Denial> denials;
  bool finished = false;

  void close_control() {
    Lock lock(mutex);
    control.reset();
  }

  void take_line(std::string_view line) {
    if (line.empty()) return;
    switch (line[0]) {
      case 'E':
        exit = ChildExit{std::nullopt, number_after(line, 2), 0};
        break;
      case 'K':
        exit = ChildExit{std::nullopt, -1, number_after(line, 2)};
        break;
      case 'F': {
        const bool at_exec = line.substr(0, 7) == "F exec ";
        const auto space = line.rfind(' ');
        exit = ChildExit{StartFailure{at_exec ? StartFailure::Step::exec_command : StartFailure::Step::other,
                                      number_after(line, space + 1)},
                         -1, 0};
        break;
      }
      case 'L':
        supervised = true;
        break;
      case 'D': {
        const auto space = line.find(' ', 2);
        if (space != std::string_view::npos)
          denials.push_back({std::string(line.substr(2, space - 2)), to_utf8(line.substr(space + 1))});
        break;
      }
      case 'P':
        log_warning(std::string("a process started by a command could not be ended: ") +
                    std::strerror(number_after(line, 2)));
        break;
      case 'Z':
        stragglers = number_after(line, 2);
        break;
      default:
        break;  // S
    }
  }

  // Takes what is there without blocking.
  void read_status() {
    std::array<char, 256> bytes;
    while (!status_over) {
      const ssize_t n = ::read(status.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        status_over = true;
        return;
      }
      pending.append(bytes.data(), static_cast<std::size_t>(n));
      for (auto end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
        take_line(std::string_view(pending).substr(0, end));
        pending.erase(0, end + 1);
      }
    }
  }
};

Child::Child() : state_(std::make_unique<State>()) {}
Child::~Child() { finish(); }

Result<std::unique_ptr<Child>> Child::start(const ChildOptions& options) {
  if (options.argv.empty() || options.argv[0].empty()) return fail(ErrorCode::invalid_argument, "no command to run");
  std::unique_ptr<Child> child(new Child());
  State& state = *child->state_;

  std::vector<std::string> args{"call-init", "--control", std::to_string(control_target), "--status",
                                std::to_string(status_target)};
  if (options.launcher_status) args.insert(args.end(), {"--pass", std::to_string(launcher_target)});
  if (options.user_namespace) args.emplace_back("--user-namespace");
  if (options.supervision) {
    args.insert(args.end(), {"--pass", std::to_string(socket_target), "--listener", std::to_string(listener_target)});
    for (const auto& [option, paths] :
         {std::pair{"--root", &options.supervision->roots}, std::pair{"--keep", &options.supervision->kept},
          std::pair{"--absent", &options.supervision->absent}, std::pair{"--open", &options.supervision->open},
          std::pair{"--own", &options.supervision->own}, std::pair{"--quiet", &options.supervision->quiet},
          std::pair{"--socket", &options.supervision->sockets}}) {
      for (const std::string& path : *paths) args.insert(args.end(), {option, path});
    }
  }
  args.emplace_back("--");
  args.insert(args.end(), options.argv.begin(), options.argv.end());
  std::vector<std::string> env;
  env.reserve(options.env.size());
  for (const auto& [name, value] : options.env) env.push_back(name + "=" + value);
  auto argv = pointers(args);
  auto envp = pointers(env);

  SpawnPlan plan;
  plan.source.fill(-1);
  plan.cwd = options.cwd.c_str();
  plan.program = options.call_init.c_str();
  plan.argv = argv.data();
  plan.envp = envp.data();

  std::vector<Fd> theirs;  // closed here when the reaper has its own copies
  const auto hand_over = [&](int target, Fd fd) {
    plan.source[static_cast<std::size_t>(target)] = fd.get();
    theirs.push_back(std::move(fd));
  };
  if (!options.inherit_stdio) {
    auto null = raise_fd(Fd(::open("/dev/null", O_RDWR | O_CLOEXEC)));
    if (!null) return tl::unexpected(null.error());
    hand_over(0, std::move(*null));
    for (const auto& [target, ours] : {std::pair{1, &state.out}, std::pair{2, &state.err}}) {
      auto pipe = safe_pipe();
      if (!pipe) return tl::unexpected(pipe.error());
      make_non_blocking(pipe->read);
      *ours = std::move(pipe->read);
      hand_over(target, std::move(pipe->write));
    }
  }
  if (options.launcher_status) {
    auto pipe = safe_pipe();
    if (!pipe) return tl::unexpected(pipe.error());
    make_non_blocking(pipe->read);
    state.launcher = std::move(pipe->read);
    hand_over(launcher_target, std::move(pipe->write));
  }
  if (options.supervision) {
    std::array<int, 2> ends{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return fail_errno("cannot start a command", errno);
    Fd first(ends[0]), second(ends[1]);
    auto sender = raise_fd(std::move(first));
    auto receiver = raise_fd(std::move(second));
    if (!sender || !receiver) return fail_errno("cannot start a command", errno);
    hand_over(socket_target, std::move(*sender));
    hand_over(listener_target, std::move(*receiver));
  }
  auto control = safe_pipe();
  auto status = control ? safe_pipe() : tl::unexpected(control.error());
  auto report = status ? safe_pipe() : tl::unexpected(status.error());
  if (!report) return tl::unexpected(report.error());
  make_non_blocking(control->write);
  make_non_blocking(status->read);
  state.status = std::move(status->read);
  {
    Lock lock(state.mutex);
    state.control = std::move(control->write);
  }
  hand_over(control_target, std::move(control->read));
  hand_over(status_target, std::move(status->write));
  plan.report = report->write.get();

  const pid_t pid = spawn(plan);
  if (pid < 0) return fail_errno("cannot start a process", errno);
  state.reaper = pid;
  theirs.clear();
  report->write.reset();

  SpawnFailure failure{};
  ssize_t n;
  do {
    n = ::read(report->read.get(), &failure, sizeof failure);  // end of file at once: exec closed the only other end
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof failure)) {
    state.exit = ChildExit{StartFailure{static_cast<StartFailure::Step>(failure.step), failure.error_number}, -1, 0};
  }
  return child;
}

int Child::out() const { return state_->out ? state_->out.get() : -1; }
int Child::err() const { return state_->err ? state_->err.get() : -1; }
int Child::launcher_status() const { return state_->launcher ? state_->launcher.get() : -1; }
int Child::status_fd() const { return state_->status.get(); }

bool Child::supervised() const { return state_->supervised; }
const std::vector<Denial>& Child::denials() const { return state_->denials; }

Result<ChildExit> Child::wait_exit(const StopFd& stop, std::optional<std::chrono::steady_clock::time_point> deadline) {
  State& state = *state_;
  for (;;) {
    if (!state.exit) state.read_status();
    if (state.exit) return *state.exit;
    if (state.status_over) return fail(ErrorCode::internal, "the reaper of the command was killed");
    if (auto ready = wait_fd(state.status.get(), POLLIN, stop, deadline); !ready) return tl::unexpected(ready.error());
  }
}

void Child::terminate() {
  Lock lock(state_->mutex);
  if (state_->control) (void)!::write(state_->control.get(), "T", 1);
}

void Child::kill_all() { state_->close_control(); }

int Child::finish() {
  State& state = *state_;
  if (state.finished) return state.stragglers;
  state.finished = true;
  state.close_control();
  if (state.reaper < 0) return 0;
  const auto deadline = std::chrono::steady_clock::now() + finish_patience;
  for (state.read_status(); !state.status_over; state.read_status()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd wait{state.status.get(), POLLIN, 0};
    if (left <= 0) {
      log_warning("a process started by a command cannot be ended; it is left to its reaper");
      return state.stragglers;
    }
    ::poll(&wait, 1, static_cast<int>(left));
  }
  // The status pipe is closed by the reaper's exit, so this returns at once.
  while (::waitpid(state.reaper, nullptr, 0) < 0 && errno == EINTR) {
  }
  return state.stragglers;
}

ProgramFile find_program(const std::string& name, const std::string& path) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name);
  } else {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');)
      candidates.push_back((folder.empty() ? "." : folder) + "/" + name);
  }
  ProgramFile found = ProgramFile::missing;
  for (const std::string& candidate : candidates) {
    struct stat info {};
    if (stat(candidate.c_str(), &info) != 0) continue;
    // A folder passes access() too, for its x means something else.
    if (S_ISREG(info.st_mode) && access(candidate.c_str(), X_OK) == 0) return ProgramFile::executable;
    found = ProgramFile::not_executable;
  }
  return found;
}

std::string search_path() {
  const char* path = std::getenv("PATH");
  return path != nullptr ? path : "/usr/bin:/bin";
}

Result<std::string> helper_path(const std::string& name) {
  std::array<char, PATH_MAX> buffer;
  const ssize_t n = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (n <= 0 || n == static_cast<ssize_t>(buffer.size())) {
    return fail(ErrorCode::not_found,
                "cannot find the agent's own folder through /proc/self/exe, so not its helper " + name);
  }
  const std::string self(buffer.data(), static_cast<std::size_t>(n));
  const std::string folder = self.substr(0, self.rfind('/'));
  for (const std::string& candidate :
       {folder + "/" + name, folder.substr(0, folder.rfind('/')) + "/libexec/acp-agent/" + name}) {
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return fail(ErrorCode::not_found,
              "the helper " + name + " is neither in " + folder + " nor in ../libexec/acp-agent; install it there");
}

}  // namespace base

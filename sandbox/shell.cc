#include "sandbox/shell.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/child.h"
#include "base/fd.h"
#include "sandbox/classify.h"
#include "sandbox/shell_stream.h"

namespace sandbox {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds timeout_grace{3000};  // between SIGTERM and SIGKILL
constexpr milliseconds cancel_grace{300};
constexpr milliseconds drain_grace{200};  // for output of what outlives the direct child
constexpr milliseconds reaper_patience{5000};
constexpr std::size_t read_piece = 64 * 1024;
constexpr std::size_t last_drain = 1u << 20;       // a pipe holds less, and nobody writes any more
constexpr std::size_t longest_argument = 131'071;  // the kernel takes no longer single argument

// What a call is started with.
struct Start {
  std::unique_ptr<base::Child> child;
  std::optional<ConfinedArgv> confined;
  std::string cwd;
};

base::Result<std::string> usable_workdir(const std::string& workdir) {
  if (workdir.find('\0') != std::string::npos)
    return base::fail(base::ErrorCode::command_start, "the working directory contains a NUL byte");
  const auto real = canonical_path(workdir);
  if (!real)
    return base::fail(base::ErrorCode::command_start,
                      "cannot use the working directory " + workdir + ": " + real.error().message);
  struct stat status {};
  if (stat(real->c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return base::fail(base::ErrorCode::command_start, "cannot use the working directory " + workdir + ": not a folder");
  return *real;
}

base::Result<std::string> find_bash() {
  for (const char* path : {"/bin/bash", "/usr/bin/bash"}) {
    if (access(path, X_OK) == 0) return std::string(path);
  }
  return base::fail(base::ErrorCode::command_start, "bash is neither at /bin/bash nor at /usr/bin/bash; install it");
}

// The runner is missing, not executable, or its interpreter is: no command can run. Everything else (no memory,
// argument list too long, a bad working directory) is about this one call.
bool runner_unusable(const base::StartFailure& failure) {
  if (failure.step != base::StartFailure::Step::exec_command) return false;
  static constexpr std::array<int, 7> numbers = {ENOENT, EACCES, EPERM, ENOTDIR, ENOEXEC, ELOOP, ELIBBAD};
  return std::find(numbers.begin(), numbers.end(), failure.error_number) != numbers.end();
}

tl::unexpected<base::Error> start_error(const base::StartFailure& failure, const Start& start) {
  if (start.confined && runner_unusable(failure))
    return base::fail(base::ErrorCode::sandbox_unavailable,
                      "the " + start.confined->backend +
                          " sandbox runner cannot be started, so the command did not run: " + failure.text());
  return base::fail(base::ErrorCode::command_start, "the command could not be started: " + failure.text());
}

base::Result<Start> start_child(const ShellExecutor& shell, Sandbox* sandbox, const std::vector<std::string>& argv,
                                const std::string& workdir, const Policy& policy, bool inherit_stdio,
                                std::stop_token stop) {
  for (const std::string& argument : argv) {
    if (argument.find('\0') != std::string::npos)
      return base::fail(base::ErrorCode::command_start,
                        "the command contains a NUL byte, which no program can be given");
    if (argument.size() > longest_argument)
      return base::fail(base::ErrorCode::command_start,
                        "the command is longer than 131071 bytes; write it to a file and run that");
  }
  Start start;
  auto cwd = usable_workdir(workdir);
  if (!cwd) return tl::unexpected(cwd.error());
  start.cwd = std::move(*cwd);
  base::ChildOptions options;
  options.argv = argv;
  if (sandbox != nullptr && policy.mode != Mode::danger_full_access) {
    auto confined = sandbox->confine(argv, policy, start.cwd, stop);
    if (!confined) return tl::unexpected(confined.error());
    start.confined = std::move(*confined);
    options.argv = start.confined->argv;
    options.launcher_status = start.confined->status != StatusChannel::none;
    options.supervision = start.confined->supervision;
    options.user_namespace = start.confined->user_namespace;
  }
  if (stop.stop_requested()) return base::fail(base::ErrorCode::cancelled, "cancelled before the command was started");
  options.env = shell.child_environment(policy, start.confined ? start.confined->roots : std::vector<std::string>{});
  options.cwd = start.cwd;
  options.call_init = shell.options().call_init;
  options.inherit_stdio = inherit_stdio;
  auto child = base::Child::start(options);
  if (!child)
    return base::fail(base::ErrorCode::command_start, "the command could not be started: " + child.error().message);
  start.child = std::move(*child);
  return start;
}

// One read. False at end of file.
bool read_some(int fd, std::string& buffer, std::string_view& got) {
  buffer.resize(read_piece);
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0) {
    got = std::string_view(buffer).substr(0, static_cast<std::size_t>(n));
    return true;
  }
  got = {};
  return n < 0 && (errno == EAGAIN || errno == EINTR);
}

std::string read_rest(int fd) {
  std::string all, buffer;
  std::string_view got;
  while (fd >= 0 && all.size() < last_drain && read_some(fd, buffer, got) && !got.empty()) all += got;
  return all;
}

std::string signal_name(int number) {
  const char* abbreviation = sigabbrev_np(number);
  return abbreviation != nullptr ? std::string("SIG") + abbreviation : "SIG" + std::to_string(number);
}

enum class Cause { none, timeout, cancel, shutdown };

// Follows one running child to its end. Everything it found is in its members.
class Watch {
 public:
  Watch(base::Child& child, CallOutput& output, DenialScanner* scanner, milliseconds limit, std::stop_token stop,
        std::stop_token shutdown)
      : child_(child),
        output_(output),
        scanner_(scanner),
        stop_(std::move(stop)),
        shutdown_(std::move(shutdown)),
        begin_(Clock::now()),
        limit_at_(begin_ + limit) {}

  base::Result<void> run();

  base::ChildExit exit;
  Cause cause = Cause::none;
  bool pipe_held_open = false;
  int stragglers = 0;
  std::string status;
  Clock::time_point begin() const { return begin_; }

 private:
  bool drained() const { return out_ < 0 && err_ < 0; }
  void take(int& fd, bool is_err);
  void decide();
  void wait();
  bool over();

  base::Child& child_;
  CallOutput& output_;
  DenialScanner* scanner_;
  base::StopFd stop_, shutdown_;
  const base::StopFd never_{std::stop_token{}};
  Clock::time_point begin_, limit_at_;
  std::optional<Clock::time_point> kill_at_;      // set with a cause
  std::optional<Clock::time_point> drain_until_;  // set when the direct child has ended
  int out_ = child_.out(), err_ = child_.err();
  bool exited_ = false, stop_fired_ = false, shutdown_fired_ = false;
  std::string buffer_;
};

void Watch::take(int& fd, bool is_err) {
  std::string_view got;
  if (!read_some(fd, buffer_, got)) fd = -1;
  if (got.empty()) return;
  if (is_err && scanner_ != nullptr) scanner_->append(got);
  is_err ? output_.append_err(got) : output_.append_out(got);
}

void Watch::decide() {
  const auto now = Clock::now();
  if (shutdown_fired_) {
    if (cause == Cause::none && !exited_) cause = Cause::shutdown;
    kill_at_ = now;
    return;
  }
  if (cause != Cause::none || exited_) return;
  if (stop_fired_) {
    cause = Cause::cancel;
    kill_at_ = now + cancel_grace;
  } else if (now >= limit_at_) {
    cause = Cause::timeout;
    kill_at_ = now + timeout_grace;
  }
  if (cause != Cause::none) child_.terminate();
}

// Whether there is nothing left to wait for.
bool Watch::over() {
  const auto now = Clock::now();
  if (kill_at_ && now >= *kill_at_) return true;
  if (!exited_) return false;
  if (drained()) return true;
  if (stop_fired_ && cause == Cause::none) return true;  // it had ended by itself: only its leftovers are waited for
  // After a SIGTERM what the command started has the whole grace, too.
  return !kill_at_ && now >= *drain_until_;
}

void Watch::wait() {
  std::array<pollfd, 5> set = {
      pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}, pollfd{exited_ ? -1 : child_.status_fd(), POLLIN, 0},
      pollfd{stop_fired_ ? -1 : stop_.fd(), POLLIN, 0}, pollfd{shutdown_fired_ ? -1 : shutdown_.fd(), POLLIN, 0}};
  const auto until = kill_at_ ? *kill_at_ : drain_until_ ? *drain_until_ : limit_at_;
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  if (poll(set.data(), set.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000))) <= 0) return;
  if (set[0].revents != 0) take(out_, false);
  if (set[1].revents != 0) take(err_, true);
  stop_fired_ = stop_fired_ || set[3].revents != 0;
  shutdown_fired_ = shutdown_fired_ || set[4].revents != 0;
  if (set[2].revents == 0) return;
  const auto ended = child_.wait_exit(never_, Clock::now());  // the pipe also tells that the command has started
  if (!ended && ended.error().code == base::ErrorCode::timed_out) return;
  exited_ = true;
  drain_until_ = Clock::now() + drain_grace;
}

base::Result<void> Watch::run() {
  while (!over()) {
    wait();
    decide();
  }
  pipe_held_open = exited_ && !drained() && cause == Cause::none;
  stragglers = child_.finish();
  // What was written before the end and not yet read. Bounded: the pipe may have been handed to a stranger.
  for (std::size_t round = 0; round < last_drain / read_piece && !drained(); ++round) {
    const std::size_t open = static_cast<std::size_t>(out_ >= 0) + static_cast<std::size_t>(err_ >= 0);
    std::size_t idle = 0;
    for (const bool is_err : {false, true}) {
      int& fd = is_err ? err_ : out_;
      if (fd < 0) continue;
      pollfd one{fd, POLLIN, 0};
      if (poll(&one, 1, 0) > 0) {
        take(fd, is_err);
      } else {
        ++idle;
      }
    }
    if (idle == open) break;
  }
  auto ended = child_.wait_exit(never_, Clock::now() + reaper_patience);
  if (!ended) return tl::unexpected(ended.error());
  exit = *ended;
  status = read_rest(child_.launcher_status());
  return {};
}

}  // namespace

ShellExecutor::ShellExecutor(ShellOptions options, std::shared_ptr<Sandbox> sandbox)
    : options_(std::move(options)), sandbox_(std::move(sandbox)) {}

base::Result<ShellOutcome> ShellExecutor::run(const ShellRequest& request, std::stop_token stop) {
  if (stop.stop_requested() || shutdown_.stop_requested())
    return base::fail(base::ErrorCode::cancelled, "cancelled before the command was started");
  auto bash = find_bash();
  if (!bash) return tl::unexpected(bash.error());
  auto start =
      start_child(*this, sandbox_.get(), {*bash, "-c", request.command}, request.workdir, request.policy, false, stop);
  if (!start) return tl::unexpected(start.error());

  ShellOutcome outcome;
  outcome.mode = sandbox_ ? request.policy.mode : Mode::danger_full_access;
  outcome.timeout = std::clamp(request.timeout.value_or(options_.timeout), milliseconds{1}, options_.max_timeout);
  std::optional<DenialScanner> scanner;
  if (start->confined) {
    outcome.enforcement = start->confined->enforcement;
    outcome.backend = start->confined->backend;
    scanner.emplace(*start->confined, *bash);
  }
  CallOutput output(shell_output_limit, SpillFile(request.spill_dir, spill_call_limit, spill_session_limit),
                    request.on_output, shell_live_limit);
  Watch watch(*start->child, output, scanner ? &*scanner : nullptr, outcome.timeout, stop, shutdown_.get_token());
  if (auto ended = watch.run(); !ended) return tl::unexpected(ended.error());
  output.finish();
  outcome.duration = std::chrono::duration_cast<milliseconds>(Clock::now() - watch.begin());
  if (watch.exit.start_failure) return start_error(*watch.exit.start_failure, *start);

  outcome.out = output.out();
  outcome.err = output.err();
  if (watch.exit.signal != 0) {
    outcome.signal = signal_name(watch.exit.signal);
  } else {
    outcome.exit_code = watch.exit.exit_code;
  }
  outcome.timed_out = watch.cause == Cause::timeout;
  outcome.cancelled = watch.cause == Cause::cancel || watch.cause == Cause::shutdown;
  outcome.truncated = output.truncated();
  outcome.spill_file = output.spill().path();
  outcome.spill_lost = output.spill().lost();
  outcome.stragglers_killed = watch.stragglers;
  outcome.pipe_held_open = watch.pipe_held_open;
  if (!start->confined) return outcome;

  const RunEvidence evidence{watch.status, outcome.exit_code, watch.exit.signal, watch.cause != Cause::none,
                             outcome.err};
  if (auto words = find_runner_failure(*start->confined, evidence)) {
    outcome.runner_failed = true;
    outcome.runner_failure = std::move(*words);
    sandbox_->report_runner_failure();
  } else if (start->child->supervised()) {
    outcome.denials = start->child->denials();
    outcome.denied = !outcome.denials.empty();
    if (outcome.denied) outcome.denial_source = "observed";
  } else if (outcome.exit_code != 0 && scanner->finish()) {
    outcome.denied = true;
    outcome.denial_source = "text";
  }
  return outcome;
}

namespace {

// A misspelt program would look like a failed runner from outside the confinement.
base::Result<void> check_program(const std::string& name) {
  if (base::find_program(name, base::search_path()) != base::ProgramFile::missing) return {};
  return base::fail(base::ErrorCode::command_start, name + ": no such program");
}

}  // namespace

base::Result<int> ShellExecutor::run_attached(const std::vector<std::string>& argv, const std::string& cwd,
                                              const Policy& policy, std::stop_token stop) {
  if (argv.empty()) return base::fail(base::ErrorCode::invalid_argument, "no command given");
  if (auto found = check_program(argv.front()); !found) return tl::unexpected(found.error());
  auto start = start_child(*this, sandbox_.get(), argv, cwd, policy, true, stop);
  if (!start) return tl::unexpected(start.error());
  base::Child& child = *start->child;
  const base::StopFd stop_fd(stop);
  auto exit = child.wait_exit(stop_fd, std::nullopt);
  const bool ended_by_us = !exit;
  if (!exit && exit.error().code == base::ErrorCode::cancelled) {
    child.terminate();
    const base::StopFd never{std::stop_token{}};
    exit = child.wait_exit(never, Clock::now() + cancel_grace);
    child.finish();
    if (!exit) exit = child.wait_exit(never, Clock::now() + reaper_patience);
  }
  child.finish();
  if (!exit) return tl::unexpected(exit.error());
  if (exit->start_failure) return start_error(*exit->start_failure, *start);
  if (start->confined) {
    const std::string status = read_rest(child.launcher_status());
    RunEvidence evidence;
    evidence.status = status;
    evidence.signal = exit->signal;
    if (exit->signal == 0) evidence.exit_code = exit->exit_code;
    evidence.ended_by_us = ended_by_us;
    if (auto words = find_runner_failure(*start->confined, evidence)) {
      sandbox_->report_runner_failure();
      return base::fail(
          base::ErrorCode::sandbox_unavailable,
          "the " + start->confined->backend + " sandbox runner failed, so the command did not run: " + *words);
    }
  }
  return exit->signal != 0 ? 128 + exit->signal : exit->exit_code;
}

}  // namespace sandbox

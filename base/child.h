// One child command under its own reaper. Every command of the product (confined, unconfined, probes, hooks later) is
// started as `call-init ... -- argv`: native/call-init.c says what the reaper does and defines both pipes' protocol.
// The agent is no subreaper and waits only for its own pids.
//
// Life: start() -> read stdout/stderr through the descriptors -> wait_exit() (the direct child ended) -> finish()
// (closes the control pipe: whatever the call still has running is killed; waits for the reaper). Destroying a Child
// does finish(). One thread drives a Child; terminate()/kill_all() may be called from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace base {

// What call-init is to know of the policy of a confined command whose launcher sends it the listener of its filter
// (native/supervise.h). Canonical paths.
struct Supervision {
  std::vector<std::string> roots;    // writable
  std::vector<std::string> kept;     // read-only inside a root
  std::vector<std::string> absent;   // names that must not be made, nor anything below, in folders that exist
  std::vector<std::string> open;     // folders below such a name in which all is as ever
  std::vector<std::string> own;      // where the runner has file systems of the call's own
  std::vector<std::string> quiet;    // a denial there is not worth a word
  std::vector<std::string> sockets;  // not to be connected to: themselves, or what is below
};

// A change that the policy denied and the user could have made.
struct Denial {
  std::string what;  // "write", "create", "remove", "rename", "link", "cut", "chmod", "chown", "touch", "setfattr",
                     // "connect", ...
  std::string path;
};

// Descriptors of the child besides 0, 1, 2, where the options ask for them.
inline constexpr int child_launcher_status = 3, child_listener_socket = 6;

struct ChildOptions {
  std::vector<std::string> argv;                         // argv[0] absolute, or looked up in `env`'s PATH
  std::vector<std::pair<std::string, std::string>> env;  // the whole environment
  std::string cwd;                                       // absolute
  std::string call_init;                                 // absolute path of the helper
  bool launcher_status = false;  // also open child_launcher_status for a launcher's status pipe (landlock-run)
  std::optional<Supervision> supervision;  // also open child_listener_socket
  bool user_namespace = false;             // of its own with all ids of ours: call-init --user-namespace
  // stdin is /dev/null, 1 and 2 are pipes; with this they are the caller's (confine, run by hand).
  bool inherit_stdio = false;
};

// Why a command did not start. A failed chdir and a failed exec are different facts.
struct StartFailure {
  enum class Step { chdir, exec_reaper, exec_command, other } step = Step::other;
  int error_number = 0;
  std::string text() const;
};

struct ChildExit {
  std::optional<StartFailure> start_failure;
  int exit_code = -1;  // valid when signal == 0 and !start_failure
  int signal = 0;
};

class Child {
 public:
  // Fails only when this process could not fork or make pipes; everything later is in ChildExit.
  static Result<std::unique_ptr<Child>> start(const ChildOptions& options);
  ~Child();

  int out() const;  // read ends, non-blocking; -1 with inherit_stdio
  int err() const;
  int launcher_status() const;  // read end of the child's descriptor 3, or -1
  int status_fd() const;        // becomes readable when wait_exit() would not block

  // Waits for the direct child to end (not for its descendants).
  Result<ChildExit> wait_exit(const StopFd& stop, std::optional<std::chrono::steady_clock::time_point> deadline);

  // As many denials as call-init tells of; more may have happened.
  static constexpr std::size_t max_denials = 64;

  // Whether the listener came, and what was denied so far: complete after wait_exit() for the direct child, after
  // finish() for all it started. Paths are cut and cleaned by call-init. Thread of the owner.
  bool supervised() const;
  const std::vector<Denial>& denials() const;

  void terminate();  // SIGTERM to every descendant, once; returns at once
  void kill_all();   // SIGKILL to every descendant; returns at once, finish() waits
  // Closes the control pipe: SIGKILL to every descendant until none is left, and waits for the reaper. Returns how many
  // descendants were still running after the direct child had ended (0 when it was the direct child that was killed).
  int finish();

 private:
  Child();
  struct State;
  std::unique_ptr<State> state_;
};

// What execvp() would find: a name with a slash is a path, any other is looked up in the folders of `path` (as $PATH).
enum class ProgramFile { executable, not_executable, missing };
ProgramFile find_program(const std::string& name, const std::string& path);
std::string search_path();  // $PATH, or what stands for it where that is not set

// Directory of the running executable's helpers: beside it, or ../libexec/acp-agent. Never PATH, never the environment.
Result<std::string> helper_path(const std::string& name);

}  // namespace base

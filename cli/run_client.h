// The client half of `run`: one session and one prompt over a transport, with nothing an editor could not do. The
// answer goes to stdout, what happens to stderr.
//
// Threads: drive() is called once, by the owner, and waits; the peer's reader thread shows updates and answers
// permission requests; interrupt() may be called from any thread and does not block.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/line_transport.h"
#include "cli/exit_code.h"

namespace cli {

struct RunRequest {
  std::string cwd;  // absolute
  std::string prompt;
  bool allow = false;  // permission requests: allowed once, or rejected
};

// Where it shows what happens; tests look at it.
struct RunOutput {
  std::function<base::Result<void>(std::string_view)> answer;  // an error: nobody reads it any more, and why
  std::function<void(std::string_view)> activity;
  // The answer goes to a person who watches it come, and sees which part broke off. Else a message is given out when it
  // is complete: a script could not tell an attempt that broke off from the answer.
  bool live = false;
};

class RunClient {
 public:
  RunClient(std::unique_ptr<base::LineTransport> transport, RunRequest request, RunOutput output);
  ~RunClient();
  int drive();                 // the exit code
  void interrupt(int signal);  // cancels the prompt; drive() then returns 128 + signal

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cli

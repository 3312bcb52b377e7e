// One live session's driver: the thread that runs its turns, one after the other. Owned by Agent. prompt() and cancel()
// from any thread, never blocking on a turn; cancel() takes no session lock.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "agent/agent.h"
#include "agent/services.h"
#include "agent/session.h"
#include "agent/tool_table.h"
#include "agent/turn.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace agent {

class Driver {
 public:
  // `services` and `tools` outlive the driver.
  Driver(const Services& services, const ToolTable& tools, std::shared_ptr<Session> session);
  ~Driver();  // begin_shutdown() and join()

  const std::shared_ptr<Session>& session() const { return session_; }

  // busy while a turn runs or the session is held; cancelled after begin_shutdown(). Else `done` is called exactly
  // once.
  base::Result<void> prompt(std::vector<ContentBlock> content, std::function<void(PromptEnd)> done);
  void cancel(AbortCause cause);

  // Keeps prompts out while the session is being replayed. False: a turn is running.
  bool hold();
  void release();

  void begin_shutdown();
  void join();

 private:
  struct Job {
    std::vector<ContentBlock> content;
    std::function<void(PromptEnd)> done;
    std::shared_ptr<TurnStop> stop;
  };
  void drive();
  PromptEnd run(Job& job);

  const Services& services_;
  const ToolTable& tools_;
  const std::shared_ptr<Session> session_;

  base::Mutex mutex_;  // leaf
  base::CondVar changed_;
  std::optional<Job> next_ GUARDED_BY(mutex_);
  std::shared_ptr<TurnStop> current_ GUARDED_BY(mutex_);  // of the turn that waits or runs; null: idle
  bool held_ GUARDED_BY(mutex_) = false;
  bool closing_ GUARDED_BY(mutex_) = false;

  base::Thread thread_;  // last: everything above is there when it starts
};

}  // namespace agent

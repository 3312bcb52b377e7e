#include "agent/driver.h"

#include "base/log.h"

namespace agent {

using base::ErrorCode;

Driver::Driver(const Services& services, const ToolTable& tools, std::shared_ptr<Session> session)
    : services_(services), tools_(tools), session_(std::move(session)), thread_("session", [this] { drive(); }) {}

Driver::~Driver() {
  begin_shutdown();
  join();
}

base::Result<void> Driver::prompt(std::vector<ContentBlock> content, std::function<void(PromptEnd)> done) {
  base::Lock lock(mutex_);
  if (closing_) return base::fail(ErrorCode::cancelled, "the agent is shutting down");
  if (current_) {
    return base::fail(ErrorCode::busy, "a prompt of this session is still running; wait for its answer or cancel it");
  }
  if (held_) return base::fail(ErrorCode::busy, "the session is being loaded; wait for that answer first");
  current_ = std::make_shared<TurnStop>();
  next_ = Job{std::move(content), std::move(done), current_};
  changed_.notify_all();
  return {};
}

void Driver::cancel(AbortCause cause) {
  std::shared_ptr<TurnStop> current;
  {
    base::Lock lock(mutex_);
    current = current_;
  }
  // Outside the lock: callbacks of whatever waits run here.
  if (current) current->stop(cause);
}

bool Driver::hold() {
  base::Lock lock(mutex_);
  if (current_ || held_) return false;
  held_ = true;
  return true;
}

void Driver::release() {
  base::Lock lock(mutex_);
  held_ = false;
}

void Driver::begin_shutdown() {
  {
    base::Lock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  cancel(AbortCause::disposed);
}

void Driver::join() { thread_.join(); }

PromptEnd Driver::run(Job& job) {
  try {
    return run_turn({services_, tools_, *session_, *job.stop}, std::move(job.content));
  } catch (const std::exception& error) {
    base::log_error(std::string("a turn ended by an exception: ") + error.what());
  } catch (...) {
    base::log_error("a turn ended by an unknown exception");
  }
  PromptEnd end;
  end.reason = TurnEndReason::error;
  end.error = base::Error{ErrorCode::internal, "internal error; the turn was given up", ""};
  if (auto closed = session_->abandon_turn(*end.error); !closed) end.error = closed.error();
  return end;
}

void Driver::drive() {
  for (;;) {
    std::optional<Job> job;
    bool closing = false;
    {
      base::Lock lock(mutex_);
      while (!next_ && !closing_) changed_.wait(mutex_);
      if (!next_) return;
      job = std::exchange(next_, std::nullopt);
      closing = closing_;
    }
    PromptEnd end;
    if (closing) {  // never begun: nothing to log
      end.reason = TurnEndReason::aborted;
      end.cause = AbortCause::disposed;
    } else {
      end = run(*job);
    }
    {
      // Idle before the answer: the client may send its next prompt the moment it reads it.
      base::Lock lock(mutex_);
      current_.reset();
    }
    try {
      job->done(std::move(end));
    } catch (const std::exception& error) {
      base::log_error(std::string("the answer to a prompt failed: ") + error.what());
    }
  }
}

}  // namespace agent

#include "agent/approval.h"

#include <atomic>
#include <map>

#include "base/log.h"
#include "base/mutex.h"

namespace agent {
namespace {

// Answer and stop race for this one value; the first to set it wins.
class Settlement {
 public:
  bool settle(ApprovalOutcome outcome) {
    int open = none;
    return value_.compare_exchange_strong(open, static_cast<int>(outcome));
  }
  ApprovalOutcome outcome() const { return static_cast<ApprovalOutcome>(value_.load()); }

 private:
  static constexpr int none = -1;
  std::atomic<int> value_{none};
};

}  // namespace

struct ApprovalService::State {
  explicit State(ApprovalPolicy policy) : default_policy(policy) {}

  // Waits for the session's turn to ask. False: stopped first.
  bool enter(const std::string& session, const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] {
      base::Lock lock(mutex);
      changed.notify_all();
    });
    base::Lock lock(mutex);
    const std::uint64_t ticket = next_ticket++;
    queues[session].push_back(ticket);
    while (queues[session].front() != ticket) {
      if (stop.stop_requested()) {
        auto& queue = queues[session];
        queue.erase(std::find(queue.begin(), queue.end(), ticket));
        return false;
      }
      changed.wait(mutex);
    }
    return true;
  }

  void leave(const std::string& session) {
    base::Lock lock(mutex);
    auto found = queues.find(session);
    found->second.erase(found->second.begin());
    if (found->second.empty()) queues.erase(found);
    changed.notify_all();
  }

  // The answerers in order until one answers or the request is settled by a stop.
  void answer(Session& session, const ApprovalRequest& request, const std::stop_token& stop, Settlement& settlement) {
    std::vector<Answerer> asked;
    {
      base::Lock lock(mutex);
      asked = answerers;
    }
    for (const Answerer& answerer : asked) {
      if (stop.stop_requested()) return;
      std::optional<ApprovalOutcome> outcome;
      try {
        outcome = answerer(session, request, stop);
      } catch (const std::exception& error) {
        base::log_error(std::string("an approval answerer failed: ") + error.what());
        outcome = ApprovalOutcome::unavailable;
      } catch (...) {
        base::log_error("an approval answerer failed");
        outcome = ApprovalOutcome::unavailable;
      }
      if (outcome) {
        settlement.settle(*outcome);
        return;
      }
    }
    settlement.settle(ApprovalOutcome::unavailable);
  }

  const ApprovalPolicy default_policy;
  base::Mutex mutex;  // leaf
  base::CondVar changed;
  std::vector<Answerer> answerers GUARDED_BY(mutex);
  std::map<std::string, std::vector<std::uint64_t>> queues GUARDED_BY(mutex);  // by session id; the front is asking
  std::uint64_t next_ticket GUARDED_BY(mutex) = 0;
};

ApprovalService::ApprovalService(ApprovalPolicy default_policy) : state_(std::make_unique<State>(default_policy)) {}
ApprovalService::~ApprovalService() = default;

void ApprovalService::add_answerer(Answerer answerer) {
  base::Lock lock(state_->mutex);
  state_->answerers.push_back(std::move(answerer));
}

ApprovalPolicy ApprovalService::policy(const Session& session) const {
  return session.settings().approval.value_or(state_->default_policy);
}

ApprovalPolicy ApprovalService::default_policy() const { return state_->default_policy; }

ApprovalOutcome ApprovalService::ask(Session& session, const ApprovalRequest& request, std::stop_token stop) {
  return decide(session, request, std::move(stop)).outcome;
}

ApprovalService::Decision ApprovalService::decide(Session& session, const ApprovalRequest& request,
                                                  std::stop_token stop) {
  Decision decision;
  if (!session.turn_open()) return decision;
  const bool waited = state_->enter(session.id(), stop);

  const std::string id = session.world().new_id();
  const event::ApprovalAsked asked{id, request.tool_name, request.call_id, request.reason, request.grounded};
  if (session.append(asked)) {
    Settlement settlement;
    if (policy(session) == ApprovalPolicy::never) {
      decision.by_policy = true;
      settlement.settle(ApprovalOutcome::rejected);
    } else {
      // Runs at once when the stop came first. Its destructor waits for a run on another thread, so the outcome read
      // below is final.
      const std::stop_callback stopped(stop, [&settlement] { settlement.settle(ApprovalOutcome::cancelled); });
      if (waited) state_->answer(session, request, stop, settlement);
    }
    decision.outcome = settlement.outcome();
    // What the log does not say did not happen: nothing is granted without its pair on disk.
    const bool logged = session.append(event::ApprovalDecided{id, decision.outcome}).has_value();
    const bool granted = decision.outcome == ApprovalOutcome::allowed_once;
    if (!logged || (granted && !session.sync())) decision = {};
  }
  if (waited) state_->leave(session.id());
  return decision;
}

}  // namespace agent

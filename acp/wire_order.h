// Checks the order of what goes to the client. Debug and sanitizer builds (ACP_AGENT_CHECK_WIRE_ORDER) run it in the
// writer and abort on a violation, which makes every test an ordering test. Remembers every call and session it saw, so
// it is not for release builds. Any thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"

namespace acp {

class WireOrder {
 public:
  // A request of the client, before it is handled.
  void incoming(const base::Json& id, const std::string& method, const base::Json& params) EXCLUDES(mutex_);
  // A message of ours about to be written; the rule it breaks, if any.
  std::optional<std::string> outgoing(const base::Json& message) EXCLUDES(mutex_);

 private:
  struct Request {
    std::string method, session;
  };
  // Of one id. A client may reuse an id before it is answered, and then nothing says which request an answer is for:
  // they count as open until as many answers came.
  struct Pending {
    std::vector<Request> requests;
    std::size_t answers = 0;
    bool any_succeeded = false;
  };
  struct SessionState {
    bool announced = false;      // by the result of session/new or session/load
    int loads = 0, prompts = 0;  // not answered yet
    std::set<std::string> calls;
  };

  std::optional<std::string> answer(const base::Json& message) REQUIRES(mutex_);
  std::optional<std::string> update(const base::Json& params) REQUIRES(mutex_);
  std::optional<std::string> permission(const base::Json& params) REQUIRES(mutex_);

  base::Mutex mutex_;
  std::map<std::string, Pending> pending_ GUARDED_BY(mutex_);  // by the id's JSON text
  std::map<std::string, SessionState> sessions_ GUARDED_BY(mutex_);
};

}  // namespace acp

// The state behind one acp::Server: the peer, the sessions this client opened, and what the method handlers share.
// Handlers run on the reader thread and never block. Included by acp/ only.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "acp/projection.h"
#include "acp/server.h"
#include "agent/agent.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/rpc_peer.h"

namespace acp {

struct OpenSession {
  explicit OpenSession(std::shared_ptr<agent::Session> opened) : session(std::move(opened)) {}

  const std::shared_ptr<agent::Session> session;

  struct Prompt {
    base::JsonPtr id;
    base::Reply reply;
  };
  // A turn begins on the reader thread only, so a handler that was told "no" may rely on it.
  bool turn_runs() EXCLUDES(mutex) {
    base::Lock lock(mutex);
    return prompt.has_value();
  }

  base::Mutex mutex;
  std::optional<Prompt> prompt GUARDED_BY(mutex);  // the turn that runs
};

struct Connection : std::enable_shared_from_this<Connection> {
  Connection(agent::Agent& served, ServerOptions given) : agent(served), options(std::move(given)) {}

  agent::Agent& agent;
  const ServerOptions options;
  std::unique_ptr<base::RpcPeer> peer;  // set once, before anything runs
  std::atomic<bool> initialized{false};

  std::shared_ptr<OpenSession> find(const std::string& id) EXCLUDES(mutex);
  std::shared_ptr<OpenSession> keep(std::shared_ptr<agent::Session> session) EXCLUDES(mutex);
  // The session's projector, sending to this client; it must not outlive the session.
  std::shared_ptr<Projector> projector(const agent::Session& session);
  // From here on what happens in the session is sent. Call after the answer that names the session was given.
  void observe(const std::shared_ptr<OpenSession>& open, const std::shared_ptr<Projector>& projector);
  void update(const std::string& session_id, base::Json&& update, std::string merge_key);
  // {currentModeId, availableModes}
  base::Json modes(const agent::Session& session) const;

  base::Mutex mutex;
  std::map<std::string, std::shared_ptr<OpenSession>> sessions GUARDED_BY(mutex);
};

// One request or notification. `reply` is null for a notification.
struct Call {
  const base::Json& params;  // an object
  const base::Json& id;      // null for a notification
  base::Reply* reply;
};
using Handler = void(Connection&, Call);

// Asks this client for consent (session/request_permission). Holds the connection weakly: the approval service outlives
// it.
agent::Answerer permission_answerer(std::weak_ptr<Connection> connection);

}  // namespace acp

// ACP v1 to one client over one transport: methods in, updates and answers out. The same server serves stdio and `run`.
// serve() reads on the calling thread, which never runs a turn; end of input, a dead client or stop() end it, after
// which the agent is shut down (within 2 s).
#pragma once

#include <memory>
#include <string>

#include "agent/agent.h"
#include "base/line_transport.h"

namespace acp {

struct ServerOptions {
  std::string version;   // agentInfo
  bool presets = false;  // presets composed and surface is editor: modes are advertised
};

class Server {
 public:
  // `agent` outlives the server. Adds the server's answerer to the agent's approval service, when there is one.
  Server(agent::Agent& agent, std::unique_ptr<base::LineTransport> transport, ServerOptions options);
  ~Server();
  void serve();
  void stop();  // any thread, also from a signal-waiting thread

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace acp

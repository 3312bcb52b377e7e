// `acp-agent acp`: the server on stdin and stdout.
#include <algorithm>

#include "acp/server.h"
#include "agent/agent.h"
#include "base/line_transport.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/signals.h"

namespace cli {
int serve(const Program& program, const Options& options) {
  const Loaded loaded = load(program, options);
  if (!sound_for(loaded, program, agent::Seam::front_end) || !sound_for(loaded, program, agent::Seam::loop)) {
    return exit_status::usage;
  }
  base::Result<std::unique_ptr<base::LineTransport>> transport = base::stdio_transport();
  if (!transport) {
    note("acp-agent: " + transport.error().message);
    return exit_status::usage;
  }
  const agent::Services& services = loaded.composition.services;
  agent::Agent agent(services);
  acp::ServerOptions server_options;
  server_options.version = program.version;
  server_options.presets =
      !services.presets.empty() && std::any_of(services.front_ends.begin(), services.front_ends.end(),
                                               [](const agent::FrontEnd& front) { return front.surface == "editor"; });
  acp::Server server(agent, std::move(*transport), server_options);
  program.signals->on_end([&server](int) { server.stop(); });
  server.serve();
  program.signals->on_end({});
  const int signal = program.signals->first();
  return signal == 0 ? exit_status::done : 128 + signal;
}

}  // namespace cli

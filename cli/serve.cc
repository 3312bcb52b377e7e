// `acp-agent acp`: the server on stdin and stdout.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "acp/server.h"
#include "agent/agent.h"
#include "base/line_transport.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/signals.h"

namespace cli {
namespace {

// The protocol gets descriptors of its own; 0 and 1 become harmless, so that nothing but the transport can write to the
// client, whatever a library prints.
std::unique_ptr<base::LineTransport> stdio_transport() {
  base::Fd in(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  base::Fd out(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  const base::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!in || !out || !null) return nullptr;
  dup2(null.get(), STDIN_FILENO);
  dup2(fcntl(STDERR_FILENO, F_GETFD) >= 0 ? STDERR_FILENO : null.get(), STDOUT_FILENO);
  return base::fd_transport(std::move(in), std::move(out));
}

}  // namespace

int serve(const Program& program, const Options& options) {
  const Loaded loaded = load(program, options);
  if (!sound_for(loaded, program, agent::Seam::front_end) || !sound_for(loaded, program, agent::Seam::loop)) {
    return exit_status::usage;
  }
  std::unique_ptr<base::LineTransport> transport = stdio_transport();
  if (!transport) {
    note("acp-agent: stdin or stdout is closed; an editor opens both");
    return exit_status::usage;
  }
  const agent::Services& services = loaded.composition.services;
  agent::Agent agent(services);
  acp::ServerOptions server_options;
  server_options.version = program.version;
  server_options.presets =
      !services.presets.empty() && std::any_of(services.front_ends.begin(), services.front_ends.end(),
                                               [](const agent::FrontEnd& front) { return front.surface == "editor"; });
  acp::Server server(agent, std::move(transport), server_options);
  program.signals->on_end([&server](int) { server.stop(); });
  server.serve();
  program.signals->on_end({});
  const int signal = program.signals->first();
  return signal == 0 ? exit_status::done : 128 + signal;
}

}  // namespace cli

// `acp-agent run`: the same server an editor talks to, over an in-memory transport, with a client that prints.
#include <unistd.h>

#include <array>
#include <cerrno>

#include "acp/server.h"
#include "agent/agent.h"
#include "base/line_transport.h"
#include "base/text.h"
#include "base/thread.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/run_client.h"
#include "cli/signals.h"

namespace cli {
namespace {

constexpr std::size_t prompt_limit = 16u << 20;

base::Result<std::string> read_stdin() {
  std::string text;
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, chunk.data(), chunk.size());
    if (got == 0) return text;
    if (got < 0) {
      if (errno == EINTR) continue;
      return base::fail_errno("cannot read the prompt from stdin", errno);
    }
    text.append(chunk.data(), static_cast<std::size_t>(got));
    if (text.size() > prompt_limit) return base::fail(base::ErrorCode::limit, "the prompt on stdin is over 16 MiB");
  }
}

int refuse(const std::string& text) {
  note("acp-agent run: " + text);
  return exit_status::usage;
}

}  // namespace

int run(const Program& program, const Options& options) {
  agent::Overrides overrides;
  overrides.approval = options.approve;
  overrides.mode = options.mode;
  const Loaded loaded = load(program, options, overrides);
  if (!sound_for(loaded, program, agent::Seam::loop)) return exit_status::usage;
  if (options.mode && !loaded.composition.gives(agent::Seam::policy)) {
    return refuse("--mode needs a sandbox-policy entry in " + loaded.source.name);
  }
  const base::Result<std::string> cwd = sandbox::canonical_path(options.cwd.empty() ? "." : options.cwd);
  if (!cwd) return refuse(cwd.error().message);
  // The protocol is UTF-8: the server would look for another path.
  if (!base::valid_utf8(*cwd)) {
    return refuse("the path of the folder is not UTF-8 (" + base::to_utf8(*cwd) + "); rename it, or use another");
  }

  RunRequest request;
  request.cwd = *cwd;
  request.prompt = options.prompt;
  request.allow = options.approve == agent::ApprovalPolicy::ask;
  if (options.prompt == "-") {
    base::Result<std::string> text = read_stdin();
    if (!text) return refuse(text.error().message);
    request.prompt = std::move(*text);
  }
  if (request.prompt.find_first_not_of(" \t\r\n") == std::string::npos) return refuse("the prompt is empty");

  agent::Agent agent(loaded.composition.services);
  auto [client_end, server_end] = base::memory_transport_pair();
  acp::ServerOptions server_options;
  server_options.version = program.version;
  acp::Server server(agent, std::move(server_end), server_options);
  base::Thread serving("server", [&server] { server.serve(); });

  int code = exit_status::failed;
  {
    RunClient client(std::move(client_end), std::move(request), {write_answer, note, watched()});
    program.signals->on_end([&client](int signal) { client.interrupt(signal); });
    code = client.drive();
    program.signals->on_end({});
  }
  server.stop();
  serving.join();
  return code;
}

}  // namespace cli

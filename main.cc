#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

#include "base/log.h"
#include "cli/program.h"
#include "cli/signals.h"
#include "plugins.h"

namespace {

void set_log_level() {
  const char* level = std::getenv("ACP_AGENT_LOG");
  const std::string_view wanted = level ? level : "";
  if (wanted == "debug") base::set_log_level(base::LogLevel::debug);
  if (wanted == "info") base::set_log_level(base::LogLevel::info);
  if (wanted == "error") base::set_log_level(base::LogLevel::error);
}

// A closed standard descriptor would be given to the next file opened, and that one taken for the input or the answer.
// Opened for reading alone: what is written to it is an error, as it is on a closed one.
void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd) _exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // First: until then a child of the same user could read the keys in this process's environment and memory.
  prctl(PR_SET_DUMPABLE, 0);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  fill_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // a TLS shutdown on a closed socket raises it; writers see EPIPE
  mallopt(M_ARENA_MAX, 2);
  set_log_level();

  cli::Signals signals;
  cli::Program program;
  program.version = ACP_AGENT_VERSION;
  program.plugins = plugins::table();
  program.signals = &signals;
  return cli::dispatch(program, argc, argv);
}

#include "cli/signals.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "cli/output.h"

namespace cli {
namespace {

bool ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// smaps_rollup gives itself out under a size of 0, so it is read to its end.
void note_memory() {
  const base::Result<std::string> text = base::read_file("/proc/self/smaps_rollup", 64 * 1024);
  const std::size_t at = text ? text->find("\nPss:") : std::string::npos;
  if (at == std::string::npos) {
    note("acp-agent: pss unknown");
    return;
  }
  note(fmt::format("acp-agent: pss {} KiB", std::strtoull(text->c_str() + at + 5, nullptr, 10)));
}

}  // namespace

Signals::Signals() {
  sigemptyset(&set_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!ignored(signal)) sigaddset(&set_, signal);
  }
  sigaddset(&set_, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  signals_ = base::Fd(signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
  stop_ = base::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread_ = base::Thread("signals", [this] { loop(); });
}

Signals::~Signals() {
  const std::uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void Signals::on_end(std::function<void(int)> handler) {
  base::Lock lock(mutex_);
  handler_ = std::move(handler);
}

int Signals::first() const {
  base::Lock lock(mutex_);
  return first_;
}

void Signals::loop() {
  for (;;) {
    pollfd wait[2] = {{signals_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (poll(wait, 2, -1) < 0 && errno != EINTR) return;
    if (wait[1].revents != 0) return;
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGUSR2) {
      note_memory();
      continue;
    }
    base::Lock lock(mutex_);
    if (first_ != 0 || !handler_) _exit(128 + signal);
    first_ = signal;
    handler_(signal);
  }
}

}  // namespace cli

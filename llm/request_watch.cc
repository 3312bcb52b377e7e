#include "llm/request_watch.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "llm/url.h"

namespace llm {

namespace {
// A socket that is not connected yet ignores shutdown(), so it is repeated until the request has noticed.
constexpr auto shutdown_again = std::chrono::milliseconds(5);
}  // namespace

// Shared by the request and the throw-away thread: whoever is last frees it.
struct RequestWatch::Lookup {
  base::Mutex mutex;
  base::CondVar changed;
  bool done GUARDED_BY(mutex) = false;
  int error GUARDED_BY(mutex) = 0;
  std::vector<std::string> addresses GUARDED_BY(mutex);
};

RequestWatch::RequestWatch(std::stop_token stop) {
  thread_ = base::Thread("http-watch", [this] { run(); });
  callback_.emplace(std::move(stop), [this] {
    const base::Lock lock(mutex_);
    if (cause_ == Cause::none) cause_ = Cause::stopped;
    changed_.notify_all();
  });
}

RequestWatch::~RequestWatch() {
  callback_.reset();
  {
    const base::Lock lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void RequestWatch::expect(Cause cause, Clock::time_point deadline) {
  const base::Lock lock(mutex_);
  const bool earlier = deadline < std::min(deadline_, content_deadline_);
  phase_ = cause;
  deadline_ = deadline;
  if (earlier) changed_.notify_all();  // a later one is noticed when the thread wakes for the old one
}

void RequestWatch::expect_content(Clock::time_point deadline) {
  const base::Lock lock(mutex_);
  const bool earlier = deadline < std::min(deadline_, content_deadline_);
  content_deadline_ = deadline;
  if (earlier) changed_.notify_all();
}

void RequestWatch::use_socket(int fd) {
  const base::Lock lock(mutex_);
  socket_ = fd;
}

RequestWatch::Cause RequestWatch::cause() const {
  const base::Lock lock(mutex_);
  return cause_;
}

void RequestWatch::run() {
  const base::Lock lock(mutex_);
  while (!finished_) {
    const auto now = Clock::now();
    if (cause_ == Cause::none) {
      if (now >= deadline_) {
        cause_ = phase_;
        changed_.notify_all();
      } else if (now >= content_deadline_) {
        cause_ = Cause::no_content;
        changed_.notify_all();
      }
    }
    if (cause_ == Cause::none) {
      const auto wake = std::min(deadline_, content_deadline_);
      if (wake == Clock::time_point::max()) {
        changed_.wait(mutex_);
      } else {
        changed_.wait_until(mutex_, wake);
      }
      continue;
    }
    if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
    changed_.wait_until(mutex_, now + shutdown_again);
  }
}

base::Result<std::vector<std::string>> RequestWatch::resolve(const std::string& host) {
  if (is_ip_address(host)) return std::vector<std::string>{host};
  const auto lookup = std::make_shared<Lookup>();
  const auto look_up = [lookup, host] {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
    std::vector<std::string> addresses;
    for (const addrinfo* entry = found; error == 0 && entry != nullptr; entry = entry->ai_next) {
      char text[NI_MAXHOST];
      if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) {
        addresses.emplace_back(text);
      }
    }
    if (found != nullptr) ::freeaddrinfo(found);
    const base::Lock lock(lookup->mutex);
    lookup->done = true;
    lookup->error = error;
    lookup->addresses = std::move(addresses);
    lookup->changed.notify_all();
  };
  try {
    std::thread(look_up).detach();  // not a base::Thread: that one is joined
  } catch (const std::system_error&) {
    return base::fail(base::ErrorCode::transport, "no thread is left to look up the host name " + host);
  }

  // Two conditions in two places (the look-up's, and this watch's cause), so the wait is a short poll of both.
  const base::Lock lock(lookup->mutex);
  while (!lookup->done) {
    if (cause() != Cause::none) return std::vector<std::string>();
    lookup->changed.wait_until(lookup->mutex, Clock::now() + std::chrono::milliseconds(10));
  }
  if (lookup->addresses.empty()) {
    const std::string why = lookup->error != 0 ? ::gai_strerror(lookup->error) : "it has no address";
    return base::fail(base::ErrorCode::transport, "the host name " + host + " cannot be resolved: " + why);
  }
  return std::move(lookup->addresses);
}

}  // namespace llm

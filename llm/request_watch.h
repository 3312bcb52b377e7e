// The limits and the stop of one HTTP request. A blocking call inside cpp-httplib or OpenSSL has no way to be told to
// end, so one small thread per request watches the deadlines and the stop token and ends the request by shutting its
// socket down. shutdown() acts on a duplicate of the descriptor: httplib may close its own at any moment.
//
// The request's thread calls everything below; the first cause wins and stays. Also carries the result of the name
// look-up, which runs on a throw-away thread that shares ownership of its data (getaddrinfo cannot be stopped either).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace llm {

class RequestWatch {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Cause { none, stopped, connect, first_byte, idle, no_content };

  explicit RequestWatch(std::stop_token stop);
  ~RequestWatch();

  // What is waited for now, and until when; replaces the phase before.
  void expect(Cause cause, Clock::time_point deadline);
  // The second limit of the body phase; runs beside expect()'s.
  void expect_content(Clock::time_point deadline);
  // The socket to shut down; -1: none. Not owned: it stays open until this object is gone or another is set.
  void use_socket(int fd);

  Cause cause() const;

  // Addresses of a host name, in the resolver's order; empty strings never. Fails with transport when there is none; a
  // cause (stop, limit) ends the wait with that cause set and an empty list.
  base::Result<std::vector<std::string>> resolve(const std::string& host);

 private:
  struct Lookup;
  void run();

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  Cause cause_ GUARDED_BY(mutex_) = Cause::none;
  Cause phase_ GUARDED_BY(mutex_) = Cause::none;
  Clock::time_point deadline_ GUARDED_BY(mutex_) = Clock::time_point::max();
  Clock::time_point content_deadline_ GUARDED_BY(mutex_) = Clock::time_point::max();
  int socket_ GUARDED_BY(mutex_) = -1;
  bool finished_ GUARDED_BY(mutex_) = false;
  base::Thread thread_;
  std::optional<std::stop_callback<std::function<void()>>> callback_;  // destroyed first
};

}  // namespace llm

// A joining thread with the product's 512 KB stack (std::thread cannot set one) and a name for debuggers. An exception
// that reaches the entry is logged and ends the thread, never the process. Owner joins; the destructor does.
#pragma once

#include <pthread.h>

#include <functional>
#include <string>

namespace base {

inline constexpr std::size_t thread_stack_bytes = 512 * 1024;  // larger under sanitizers, whose frames are bigger

class Thread {
 public:
  Thread() = default;
  // Aborts the process if the system has no thread left: nothing sensible can go on.
  Thread(std::string name, std::function<void()> entry);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread();
  void join();  // no-op when not joinable
  bool joinable() const { return started_; }

 private:
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace base

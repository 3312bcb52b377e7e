// Mutex and CondVar that carry thread-safety annotations (libstdc++'s do not); clang's -Wthread-safety checks them.
// Lock order of the product: session, then queue; every other mutex is a leaf.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define ACP_TSA(x) __attribute__((x))
#else
#define ACP_TSA(x)
#endif
#define GUARDED_BY(x) ACP_TSA(guarded_by(x))
#define REQUIRES(...) ACP_TSA(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) ACP_TSA(locks_excluded(__VA_ARGS__))

namespace base {

class ACP_TSA(capability("mutex")) Mutex {
 public:
  void lock() ACP_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() ACP_TSA(release_capability()) { mutex_.unlock(); }
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

class ACP_TSA(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) ACP_TSA(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() ACP_TSA(release_capability()) { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // The caller holds the mutex (by a Lock in scope); it is released while waiting and held again on return.
  void wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.native(), std::adopt_lock);
    condition_.wait(held);
    held.release();
  }
  // False when the time is over.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point deadline) REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.native(), std::adopt_lock);
    const bool in_time = condition_.wait_until(held, deadline) == std::cv_status::no_timeout;
    held.release();
    return in_time;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace base

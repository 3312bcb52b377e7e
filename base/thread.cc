#include "base/thread.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include "base/log.h"

namespace base {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ACP_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ACP_SANITIZED 1
#endif
#if defined(ACP_SANITIZED)
constexpr std::size_t stack_bytes = 8u << 20;
#else
constexpr std::size_t stack_bytes = thread_stack_bytes;
#endif

struct Start {
  std::string name;
  std::function<void()> entry;
};

void* run_thread(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  pthread_setname_np(pthread_self(), start->name.substr(0, 15).c_str());  // the kernel's limit
  try {
    start->entry();
  } catch (const std::exception& error) {
    log_error(fmt::format("thread {} ended by an exception: {}", start->name, error.what()));
  } catch (...) {
    log_error(fmt::format("thread {} ended by an unknown exception", start->name));
  }
  // What the entry captured is destroyed here, on the thread, before a join returns.
  return nullptr;
}

}  // namespace

Thread::Thread(std::string name, std::function<void()> entry) {
  auto start = std::make_unique<Start>(Start{std::move(name), std::move(entry)});
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const int error = pthread_create(&thread_, &attributes, run_thread, start.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    log_error(fmt::format("cannot start thread {}: {}", start->name, std::strerror(error)));
    std::abort();
  }
  (void)start.release();  // run_thread owns it now
  started_ = true;
}

Thread::Thread(Thread&& other) noexcept : thread_(other.thread_), started_(std::exchange(other.started_, false)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (this != &other) {
    join();
    thread_ = other.thread_;
    started_ = std::exchange(other.started_, false);
  }
  return *this;
}

Thread::~Thread() { join(); }

void Thread::join() {
  if (!started_) return;
  started_ = false;
  // A thread that destroys its own handle (it held the owner's last reference) cannot wait for itself.
  if (pthread_equal(pthread_self(), thread_) != 0) {
    pthread_detach(thread_);
  } else {
    pthread_join(thread_, nullptr);
  }
}

}  // namespace base

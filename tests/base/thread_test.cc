#include "base/thread.h"

#include <pthread.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>

#include "base/log.h"

TEST_CASE("a thread runs its entry, has a name and joins") {
  std::string name(16, '\0');
  {
    base::Thread thread("a-name-too-long-for-the-kernel",
                        [&] { pthread_getname_np(pthread_self(), name.data(), name.size()); });
    CHECK(thread.joinable());
  }
  CHECK(std::string(name.c_str()) == "a-name-too-long");
}

TEST_CASE("a thread's stack is the product's") {
  std::size_t size = 0;
  base::Thread thread("stack", [&] {
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
  });
  thread.join();
  CHECK_FALSE(thread.joinable());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(size <= base::thread_stack_bytes + 4096);
#endif
  CHECK(size >= base::thread_stack_bytes);
}

TEST_CASE("an exception ends the thread only") {
  base::Thread thread("throws", [] { throw std::runtime_error("expected in this test"); });
  thread.join();
  base::Thread other("throws", [] { throw 3; });
  other.join();
  SUCCEED();
}

TEST_CASE("moving keeps one owner") {
  std::atomic<int> runs{0};
  base::Thread first("one", [&] { ++runs; });
  base::Thread second = std::move(first);
  CHECK_FALSE(first.joinable());  // NOLINT(bugprone-use-after-move)
  second = base::Thread("two", [&] { ++runs; });
  second.join();
  second.join();
  CHECK(runs == 2);
}

TEST_CASE("a thread may destroy its own handle") {
  struct Shared {
    base::Thread thread;
    std::atomic<bool> go{false};
  };
  auto done = std::make_shared<std::atomic<bool>>(false);
  auto shared = std::make_shared<Shared>();
  Shared* raw = shared.get();
  raw->thread = base::Thread("self", [shared, done]() mutable {
    shared->go.wait(false);
    shared.reset();  // the last reference: the thread's own handle goes with it
    *done = true;
    done->notify_all();
  });
  raw = nullptr;
  const std::weak_ptr<Shared> gone = shared;
  shared->go = true;
  shared->go.notify_all();
  shared.reset();
  done->wait(false);
  CHECK(gone.expired());
}

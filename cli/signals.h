// Signals as calls on an ordinary thread. Constructed by main before any other thread starts, so that every thread
// inherits the blocked set; a child gets the default one (base/child.h). SIGUSR2 logs this process's own memory: nobody
// outside may read it of a process that is not dumpable.
#pragma once

#include <csignal>
#include <functional>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace cli {

class Signals {
 public:
  Signals();   // blocks SIGINT, SIGTERM, SIGHUP (unless ignored, as under nohup) and SIGUSR2
  ~Signals();  // ends the thread

  // Called once, on the signal thread, with the first SIGINT, SIGTERM or SIGHUP. The second, and any while there is no
  // handler, ends the process at once with 128 + n, and its children die with it, whatever it was doing. The handler
  // must not block nor call this object; after on_end({}) it is not running.
  void on_end(std::function<void(int)> handler);
  int first() const;  // 0: none yet

 private:
  void loop();
  sigset_t set_{};
  base::Fd signals_, stop_;
  mutable base::Mutex mutex_;
  std::function<void(int)> handler_ GUARDED_BY(mutex_);
  int first_ GUARDED_BY(mutex_) = 0;
  base::Thread thread_;
};

}  // namespace cli

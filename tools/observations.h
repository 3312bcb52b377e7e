// Which version of which file a session has seen: what read-before-change is checked against. In memory only: after a
// session is loaded by a fresh process its files must be read again, which is safe and costs one call. Thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"

namespace tools {

class Observations {
 public:
  void saw(const std::string& session_id, const std::string& canonical_path, const std::string& hash);
  std::optional<std::string> seen(const std::string& session_id, const std::string& canonical_path) const;

 private:
  // Forgetting the oldest costs a repeated read, never safety.
  static constexpr std::size_t limit = 20'000;

  using Key = std::pair<std::string, std::string>;
  struct Entry {
    std::string hash;
    std::list<Key>::iterator age;
  };
  mutable base::Mutex mutex_;
  std::map<Key, Entry> entries_ GUARDED_BY(mutex_);
  std::list<Key> ages_ GUARDED_BY(mutex_);  // oldest first
};

}  // namespace tools

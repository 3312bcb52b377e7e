#include "tools/observations.h"

namespace tools {

void Observations::saw(const std::string& session_id, const std::string& canonical_path, const std::string& hash) {
  const base::Lock lock(mutex_);
  Key key{session_id, canonical_path};
  if (const auto found = entries_.find(key); found != entries_.end()) {
    ages_.erase(found->second.age);
    entries_.erase(found);
  }
  ages_.push_back(key);
  entries_[std::move(key)] = {hash, std::prev(ages_.end())};
  if (entries_.size() <= limit) return;
  entries_.erase(ages_.front());
  ages_.pop_front();
}

std::optional<std::string> Observations::seen(const std::string& session_id, const std::string& canonical_path) const {
  const base::Lock lock(mutex_);
  const auto found = entries_.find({session_id, canonical_path});
  if (found == entries_.end()) return std::nullopt;
  return found->second.hash;
}

}  // namespace tools

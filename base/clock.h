// The clock and the id source, as functions so that tests choose them. Any thread.
#pragma once

#include <functional>
#include <string>

namespace base {

struct World {
  std::function<std::string()> now;     // RFC 3339 UTC with milliseconds: 2026-11-30T12:00:00.000Z
  std::function<std::string()> new_id;  // 128 random bits as a version 4 UUID
};

World real_world();

}  // namespace base

#include "base/clock.h"

#include <catch2/catch.hpp>
#include <set>

TEST_CASE("now is RFC 3339 in UTC with milliseconds") {
  const std::string now = base::real_world().now();
  CHECK_THAT(now, Catch::Matches(R"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ)"));
}

TEST_CASE("ids are distinct version 4 UUIDs") {
  const base::World world = base::real_world();
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) {
    const std::string id = world.new_id();
    CHECK_THAT(id, Catch::Matches("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
    ids.insert(id);
  }
  CHECK(ids.size() == 100);
}

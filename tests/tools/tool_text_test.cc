#include "tools/tool_text.h"

#include <catch2/catch.hpp>

TEST_CASE("what was denied: a few in full, the others as a number") {
  const auto denied = [](std::size_t count) {
    std::vector<base::Denial> denials;
    for (std::size_t i = 0; i < count; ++i) denials.push_back({"open", "/d/" + std::to_string(i)});
    return tools::denied_changes(denials);
  };
  CHECK(denied(1) == "[denied: open /d/0]");
  CHECK(denied(5) == "[denied: open /d/0; open /d/1; open /d/2; open /d/3; open /d/4]");
  CHECK(denied(7).ends_with("open /d/4; and 2 more]"));
  CHECK(denied(63).ends_with("; and 58 more]"));
  CHECK(denied(64).ends_with("; and at least 59 more]"));  // nobody counted further
}

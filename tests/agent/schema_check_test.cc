#include "agent/schema_check.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using agent::SchemaCheck;
using base::Json;

TEST_CASE("arguments that fit have no violations", "[schema]") {
  auto check = SchemaCheck::compile(
      R"({"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer","minimum":1}},"required":["a"],"additionalProperties":false})");
  REQUIRE(check.has_value());
  CHECK(check->violations({{"a", "x"}}).empty());
  CHECK(check->violations({{"n", 3}, {"a", ""}}).empty());
}

TEST_CASE("every violation is told with its place", "[schema]") {
  auto check = SchemaCheck::compile(
      R"({"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer","minimum":1},"list":{"type":"array","items":{"type":"object","properties":{"k":{"enum":["x","y"]}}}}},"required":["a","b"],"additionalProperties":false})");
  REQUIRE(check.has_value());
  const auto found = check->violations({{"a", 1}, {"n", 0}, {"c", 1}, {"list", {{{"k", "z"}}}}});
  std::string all;
  for (const auto& line : found) all += line + "\n";
  INFO(all);
  CHECK(all.find("a: ") != std::string::npos);
  CHECK(all.find("n: ") != std::string::npos);
  CHECK(all.find("list[0].k: ") != std::string::npos);
  CHECK(all.find("'b'") != std::string::npos);
  CHECK(all.find("no property 'c'") != std::string::npos);
  CHECK(found.size() == 5);
}

TEST_CASE("numbers and text are not taken for each other", "[schema]") {
  auto check =
      SchemaCheck::compile(R"({"type":"object","properties":{"n":{"type":"integer"},"b":{"type":"boolean"}}})");
  CHECK_FALSE(check->violations({{"n", "3"}}).empty());
  CHECK_FALSE(check->violations({{"b", "true"}}).empty());
  CHECK_FALSE(check->violations({{"n", 1.5}}).empty());
}

TEST_CASE("what is no schema is refused", "[schema]") {
  CHECK_FALSE(SchemaCheck::compile("{").has_value());
  CHECK_FALSE(SchemaCheck::compile(R"({"type":7})").has_value());
}

TEST_CASE("a check is shared by threads", "[schema]") {
  auto check = SchemaCheck::compile(R"({"type":"object","properties":{"a":{"type":"string","pattern":"^x"}}})");
  REQUIRE(check.has_value());
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n)
        good += check->violations({{"a", "xyz"}}).empty() && !check->violations({{"a", 1}}).empty();
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(good == 200);
}

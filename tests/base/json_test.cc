#include "base/json.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "base/thread.h"

using base::Json;

namespace {

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("parse_json keeps the order of members") {
  const auto value = base::parse_json(R"({"z":1,"a":[true,null,"x"],"m":{}})");
  REQUIRE(value);
  CHECK(base::dump(*value) == R"({"z":1,"a":[true,null,"x"],"m":{}})");
}

TEST_CASE("half of a character costs that character, not the whole text") {
  CHECK((*base::parse_json(R"({"a":"x\ud83d","b":"\ude00y","c":"\ud83d\ude00","d":"\\ud83d"})"))["a"] ==
        "x\xEF\xBF\xBD");
  const auto good = base::parse_json(R"(["\ud83d\ud83d\ude00","\\ud83d","\uDBFFz"])");
  REQUIRE(good);
  CHECK((*good)[0] == "\xEF\xBF\xBD\xF0\x9F\x98\x80");
  CHECK((*good)[1] == "\\ud83d");
  CHECK((*good)[2] == "\xEF\xBF\xBDz");
  CHECK_FALSE(base::parse_json(R"(["\ud83d)"));
  CHECK_FALSE(base::parse_json(R"({"a":"\ud83d" x})"));
}

TEST_CASE("parse_json names the byte of a fault") {
  const auto value = base::parse_json(R"({"a": nope})");
  REQUIRE_FALSE(value);
  CHECK(value.error().code == base::ErrorCode::malformed);
  CHECK_THAT(value.error().message, Catch::Contains("byte 8"));
}

TEST_CASE("parse_json refuses what is not one strict JSON value") {
  const char* const bad[] = {"1e999", "NaN", "\"a\nb\"", "// c\n1"};
  for (const char* text : bad) {
    INFO(text);
    CHECK_FALSE(base::parse_json(text));
  }
}

TEST_CASE("parse_json does not stop at a NUL") {
  using namespace std::string_view_literals;
  CHECK_FALSE(base::parse_json("{}\0 garbage"sv));
  CHECK_FALSE(base::parse_json("\"a\0b\""sv));
  CHECK_FALSE(base::parse_json("\"a\\\0\""sv));
}

TEST_CASE("parse_json takes the deepest allowed nesting and refuses the next") {
  const auto nested = [](std::size_t depth) { return repeated("[", depth) + repeated("]", depth); };
  CHECK(base::parse_json(nested(128)));
  const auto deeper = base::parse_json(nested(129));
  REQUIRE_FALSE(deeper);
  CHECK_THAT(deeper.error().message, Catch::Contains("128") && Catch::Contains("byte 129"));
  CHECK(base::parse_json("\"" + repeated("[", 1000) + "\""));  // brackets in text are text
  CHECK(base::parse_json("\"\\\"" + repeated("[", 1000) + "\""));
}

TEST_CASE("parse_json refuses endless nesting on a small stack") {
  bool refused = false;
  base::Thread thread("deep", [&] { refused = !base::parse_json(repeated("{\"a\":[", 1'000'000)); });
  thread.join();
  CHECK(refused);
}

TEST_CASE("parse_json bounds what reading objects costs") {
  const auto object = [](int members) {
    std::string text = "{";
    for (int i = 0; i < members; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
    return text + "}";
  };
  CHECK(base::parse_json(object(2'000)));
  CHECK_FALSE(base::parse_json(object(100'000)));
}

TEST_CASE("dump replaces invalid UTF-8 instead of throwing") {
  CHECK(base::dump(Json("a\xff")) == "\"a\xEF\xBF\xBD\"");
  CHECK(base::quote("a\"\n\xc3") == "\"a\\\"\\n\xEF\xBF\xBD\"");
  CHECK(base::dump_pretty(Json{{"a", 1}}) == "{\n  \"a\": 1\n}");
}

TEST_CASE("typed look-ups never throw") {
  const auto value = base::parse_json(R"({"s":"x","i":-3,"b":true,"big":18446744073709551615,"f":1.0,"n":null})");
  REQUIRE(value);
  CHECK(base::get_string(*value, "s") == "x");
  CHECK(base::get_int(*value, "i") == -3);
  CHECK(base::get_bool(*value, "b") == true);
  CHECK_FALSE(base::get_string(*value, "i"));
  CHECK_FALSE(base::get_int(*value, "s"));
  CHECK_FALSE(base::get_int(*value, "big"));
  CHECK_FALSE(base::get_int(*value, "f"));
  CHECK_FALSE(base::get_bool(*value, "absent"));
  REQUIRE(base::find(*value, "n") != nullptr);
  CHECK(base::find(*value, "n")->is_null());
  CHECK(base::find(Json(3), "n") == nullptr);
  CHECK(base::find(Json::array({1}), "n") == nullptr);
}

#include "llm/sse.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

// Feeds `text` cut at the given positions.
Events parse(const std::string& text, const std::vector<std::size_t>& cuts = {}) {
  Events events;
  llm::SseParser parser;
  const auto keep = [&](const llm::SseEvent& event) {
    events.emplace_back(event.name, event.data);
    return true;
  };
  std::size_t at = 0;
  for (std::size_t cut : cuts) {
    REQUIRE(parser.feed(std::string(text.substr(at, cut - at)), keep));
    at = cut;
  }
  REQUIRE(parser.feed(std::string(text.substr(at)), keep));
  REQUIRE(parser.finish(keep));
  return events;
}

Events data(std::vector<std::string> values) {
  Events events;
  for (std::string& value : values) events.emplace_back("", std::move(value));
  return events;
}

}  // namespace

TEST_CASE("events are read with every line end", "[sse]") {
  const Events expected = data({"one", "two"});
  CHECK(parse("data: one\n\ndata: two\n\n") == expected);
  CHECK(parse("data: one\r\n\r\ndata: two\r\n\r\n") == expected);
  CHECK(parse("data: one\r\rdata: two\r\r") == expected);
}

TEST_CASE("lenient forms of data", "[sse]") {
  CHECK(parse("data:one\n\n") == data({"one"}));
  CHECK(parse("data:  one\n\n") == data({" one"}));
  CHECK(parse("data: {\ndata: \"a\":1\ndata: }\n\n") == data({"{\n\"a\":1\n}"}));
  CHECK(parse("data\n\n") == data({""}));
  CHECK(parse("data: one") == data({"one"}));    // the stream ends inside the last line
  CHECK(parse("data: one\n") == data({"one"}));  // and without the blank line
}

TEST_CASE("comments, unknown fields and blank lines are no events", "[sse]") {
  CHECK(parse(": OPENROUTER PROCESSING\n\n:\n\n\n\nid: 7\nretry: 10\n\ndata: x\n\n") == data({"x"}));
  CHECK(parse("event: error\ndata: x\n\n") == Events{{"error", "x"}});
  CHECK(parse("event: a\n\ndata: x\n\n") == data({"x"}));  // a name without data is forgotten
}

TEST_CASE("a byte order mark is skipped, also in two pieces", "[sse]") {
  const std::string text =
      "\xEF\xBB\xBF"
      "data: x\n\n";
  CHECK(parse(text) == data({"x"}));
  CHECK(parse(text, {1}) == data({"x"}));
  CHECK(parse(text, {1, 2}) == data({"x"}));
  CHECK(parse("\xEF"
              "data: x\n\ndata: y\n\n") == data({"y"}));  // no mark: part of the first line
}

TEST_CASE("every cut gives the same events", "[sse]") {
  const std::string text =
      "\xEF\xBB\xBF: hi\r\ndata: {\"a\":\"\xC3\xA9\"}\r\n\r\nevent: x\ndata: 1\ndata:2\n\n:\rdata: last\r\rdata: open";
  const Events whole = parse(text);
  REQUIRE(whole.size() == 4);
  for (std::size_t i = 0; i <= text.size(); ++i) {
    INFO(i);
    CHECK(parse(text, {i}) == whole);
  }
  std::vector<std::size_t> all;
  for (std::size_t i = 1; i < text.size(); ++i) all.push_back(i);
  CHECK(parse(text, all) == whole);
}

TEST_CASE("a CR at the end of a piece does not delay the event", "[sse]") {
  llm::SseParser parser;
  int events = 0;
  const auto count = [&](const llm::SseEvent&) {
    ++events;
    return true;
  };
  REQUIRE(parser.feed("data: x\r\n\r", count));
  CHECK(events == 1);
  REQUIRE(parser.feed("\ndata: y\r\n\r\n", count));
  CHECK(events == 2);
}

TEST_CASE("the reader can stop", "[sse]") {
  llm::SseParser parser;
  std::string seen;
  const auto fed = parser.feed("data: 1\n\ndata: 2\n\ndata: 3\n\n", [&](const llm::SseEvent& event) {
    seen += event.data;
    return event.data != "2";
  });
  REQUIRE(fed);
  CHECK_FALSE(*fed);
  CHECK(seen == "12");
}

TEST_CASE("an endless event is refused", "[sse]") {
  const auto ignore = [](const llm::SseEvent&) { return true; };
  SECTION("one line") {
    llm::SseParser parser(1000);
    const std::string piece(300, 'x');
    REQUIRE(parser.feed("data: ", ignore));
    for (int i = 0; i < 3; ++i) REQUIRE(parser.feed(piece, ignore));
    const auto fed = parser.feed(piece, ignore);
    REQUIRE_FALSE(fed);
    CHECK(fed.error().code == base::ErrorCode::malformed);
  }
  SECTION("many lines") {
    llm::SseParser parser(1000);
    bool refused = false;
    for (int i = 0; i < 200 && !refused; ++i) refused = !parser.feed("data: 0123456789\n", ignore);
    CHECK(refused);
  }
  SECTION("comments do not count") {
    llm::SseParser parser(1000);
    for (int i = 0; i < 1000; ++i) REQUIRE(parser.feed(": 0123456789\n\n", ignore));
  }
}

#include "base/text.h"

#include <catch2/catch.hpp>
#include <string>

using namespace std::string_literals;

namespace {
const std::string fffd = "\xEF\xBF\xBD";
}

TEST_CASE("valid_utf8 is strict") {
  CHECK(base::valid_utf8(""));
  CHECK(base::valid_utf8("plain ascii, longer than eight bytes"));
  CHECK(base::valid_utf8("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"));
  CHECK(base::valid_utf8("a\0b"s));
  CHECK_FALSE(base::valid_utf8("\xff"));
  CHECK_FALSE(base::valid_utf8("abcdefgh\x80"));
  CHECK_FALSE(base::valid_utf8("\xc0\xaf"));          // overlong
  CHECK_FALSE(base::valid_utf8("\xed\xa0\x80"));      // surrogate
  CHECK_FALSE(base::valid_utf8("\xf4\x90\x80\x80"));  // beyond U+10FFFF
  CHECK_FALSE(base::valid_utf8("\xe2\x82"));          // cut
}

TEST_CASE("to_utf8 replaces what is invalid, and NUL") {
  CHECK(base::to_utf8("ok \xc3\xa9") == "ok \xc3\xa9");
  CHECK(base::to_utf8("a\xff"
                      "b") == "a" + fffd + "b");
  CHECK(base::to_utf8("a\0b\0"s) == "a" + fffd + "b" + fffd);
  CHECK(base::valid_utf8(base::to_utf8("\xe2\x82\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf")));
}

TEST_CASE("terminal sequences are removed") {
  CHECK(base::clean_terminal_text("\x1b[1;31mred\x1b[0m") == "red");
  CHECK(base::clean_terminal_text("\x1b]0;title\x07text") == "text");
  CHECK(base::clean_terminal_text("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\") == "link");
  CHECK(base::clean_terminal_text("\x1bPq#0;2\x1b\\after") == "after");
  CHECK(base::clean_terminal_text("\x1b(Bx\x1b=y\x1b") == "xy");
  CHECK(base::clean_terminal_text("\xc2\x9b"
                                  "31mred\xc2\x9d"
                                  "t\xc2\x9cz") == "redz");
  CHECK(base::clean_terminal_text("a\x08\x07\x0b\x7f\tb\n") == "a\tb\n");
}

TEST_CASE("an unfinished terminal sequence hides no later line") {
  CHECK(base::clean_terminal_text("\x1b]0;title\nsecret work\n") == "\nsecret work\n");
  CHECK(base::clean_terminal_text("\x1bP garbage\nnext") == "\nnext");
  CHECK(base::clean_terminal_text("\x1b[12\nnext") == "\nnext");
}

TEST_CASE("redrawn lines keep their last drawing") {
  CHECK(base::clean_terminal_text(" 10%\r 50%\r100%\ndone\n") == "100%\ndone\n");
  CHECK(base::clean_terminal_text("10%\r20%\r") == "20%");
  CHECK(base::clean_terminal_text("a\r\nb\r\r\nc") == "a\nb\nc");
  CHECK(base::clean_terminal_text("working\r\x1b[Kdone\n") == "done\n");
  CHECK(base::clean_terminal_text("working\r\x1b[K\nnext\n") == "\nnext\n");
  CHECK(base::clean_terminal_text("working\x1b[2K\rx\n") == "x\n");
  CHECK(base::clean_terminal_text("kept\x1b[K\n") == "kept\n");
}

TEST_CASE("ellipsize cuts at a character border and stays within the limit") {
  CHECK(base::ellipsize("short", 5) == "short");
  CHECK(base::ellipsize("longer", 5) == "lo\xE2\x80\xA6");
  const std::string euros = "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac";
  for (std::size_t limit = 0; limit < euros.size(); ++limit) {
    const std::string cut = base::ellipsize(euros, limit);
    INFO(limit);
    CHECK(cut.size() <= limit);
    CHECK(base::valid_utf8(cut));
  }
}

TEST_CASE("ASCII helpers") {
  CHECK(base::to_lower("ABC \xc3\x84z") == "abc \xc3\x84z");
  CHECK(base::contains_ignoring_case("Read-Only File System", "read-only file system"));
  CHECK_FALSE(base::contains_ignoring_case("abc", "d"));
  CHECK(base::trim(" \t a b\r\n") == "a b");
  CHECK(base::trim(" \n").empty());
}

TEST_CASE("HeadTail keeps everything up to its limit") {
  base::HeadTail kept(10);
  kept.append("01234");
  kept.append("56789");
  CHECK_FALSE(kept.truncated());
  CHECK(kept.text() == "0123456789");
  CHECK(kept.total() == 10);
}

TEST_CASE("HeadTail leaves out the middle and says how much") {
  base::HeadTail kept(10);
  for (char c = 'a'; c <= 'z'; ++c) kept.append(std::string(1, c));
  CHECK(kept.truncated());
  CHECK(kept.text() == "abcde\n[\xE2\x80\xA6 16 bytes left out \xE2\x80\xA6]\nvwxyz");
  base::HeadTail at_once(10);
  at_once.append("abcdefghijklmnopqrstuvwxyz");
  CHECK(at_once.text() == kept.text());
}

TEST_CASE("HeadTail shows no half character") {
  const std::string smile = "\xf0\x9f\x98\x80";
  for (std::size_t limit = 8; limit < 16; ++limit) {
    base::HeadTail kept(limit);
    for (int i = 0; i < 10; ++i) kept.append(smile);
    INFO(limit);
    const std::string text = kept.text();
    CHECK(base::valid_utf8(text));
    const std::size_t shown = text.find('\n') + (text.size() - text.rfind('\n') - 1);
    CHECK_THAT(text, Catch::Contains(" " + std::to_string(40 - shown) + " bytes left out"));
  }
}

TEST_CASE("HeadTail whose head is exactly full characters keeps the last one") {
  base::HeadTail kept(8);
  for (int i = 0; i < 5; ++i) kept.append("\xf0\x9f\x98\x80");
  CHECK(kept.text() == "\xf0\x9f\x98\x80\n[\xE2\x80\xA6 12 bytes left out \xE2\x80\xA6]\n\xf0\x9f\x98\x80");
}

TEST_CASE("text that reorders what is shown is defused, other text is kept") {
  CHECK(base::plain_text("a\u202Eb\u2066c\u2069d\u200Ee") == "a\uFFFDb\uFFFDc\uFFFDd\uFFFDe");
  CHECK(base::plain_text("\u05D0\u05D1 caf\u00E9 \U0001F600\n\tx") == "\u05D0\u05D1 caf\u00E9 \U0001F600\n\tx");
}

TEST_CASE("nothing in a plain text hides or redraws another part of it") {
  CHECK(base::plain_text("rm x #\rls") == "rm x #\uFFFDls");
  CHECK(base::plain_text("ls; \x1b]0; rm x \x07") == "ls; \uFFFD]0; rm x \uFFFD");
  CHECK(base::plain_text("a\x08\x7f\xc2\x9b\u2028"
                         "b\xff") == "a\uFFFD\uFFFD\uFFFD\uFFFDb\uFFFD");
}

TEST_CASE("every line is indented") { CHECK(base::indented("a\n\nb") == "    a\n    \n    b"); }

TEST_CASE("a plain line is one line") {
  CHECK(base::plain_line("  one\n\n\ttwo\r\nthree\u2028four ") == "one two three\uFFFDfour");
  CHECK(base::plain_line("\n\n").empty());
}

#include "tools/line_edit.h"

#include <catch2/catch.hpp>

using tools::replace_text;

namespace {

std::string edited(std::string_view text, std::string_view from, std::string_view to, bool all = false) {
  const auto result = replace_text(text, from, to, all);
  return result ? result->text : "ERROR " + result.error().message;
}

std::string refused(std::string_view text, std::string_view from, std::string_view to, bool all = false) {
  const auto result = replace_text(text, from, to, all);
  REQUIRE_FALSE(result.has_value());
  return result.error().message;
}

}  // namespace

TEST_CASE("LF old_string misses a CRLF file") {
  CHECK(edited("a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\n") == "a\r\nx\r\nc\r\n");
  CHECK(edited("a\r\nb\r\nc\r\n", "b", "b1\nb2") == "a\r\nb1\r\nb2\r\nc\r\n");
}

TEST_CASE("an extra blank line on CRLF edits") {
  CHECK(edited("a\r\nb\r\n", "a\n", "a\nnew\n") == "a\r\nnew\r\nb\r\n");
  CHECK(edited("a\r\nb\r\nc\r\n", "b\n", "") == "a\r\nc\r\n");
}

TEST_CASE("mixed line ends are homogenised, a lone CR is eaten") {
  const std::string mixed = "one\ntwo\r\nthree\rstill three\nfour\r\nfive\n";
  CHECK(edited(mixed, "five", "5") == "one\ntwo\r\nthree\rstill three\nfour\r\n5\n");
  CHECK(edited(mixed, "two\nthree", "2\n3") == "one\n2\r\n3\rstill three\nfour\r\nfive\n");
  CHECK(edited(mixed, "one\ntwo\n", "1\n2\nmore\n") == "1\n2\r\nmore\r\nthree\rstill three\nfour\r\nfive\n");
  // An inserted line gets the end of the line it is put beside.
  CHECK(edited(mixed, "four", "four\nhalf") == "one\ntwo\r\nthree\rstill three\nfour\r\nhalf\r\nfive\n");
  CHECK(edited(mixed, "one", "one\nhalf") == "one\nhalf\ntwo\r\nthree\rstill three\nfour\r\nfive\n");
}

TEST_CASE("a last line without an end gets none, lines put before it get the file's") {
  CHECK(edited("a\r\nb", "b", "x\ny") == "a\r\nx\r\ny");
  CHECK(edited("a", "a", "x\ny") == "x\ny");
}

TEST_CASE("carriage returns that are spelt out are meant") {
  CHECK(edited("a\r\nb\r\n", "a\r\nb", "a\nb") == "a\nb\r\n");
  CHECK(edited("a\rb\n", "a\rb", "ab") == "ab\n");
  // A CRLF old_string finds an LF file all the same, and leaves its line ends alone.
  CHECK(edited("a\nb\n", "a\r\nb", "x\r\ny") == "x\ny\n");
}

TEST_CASE("tabs are turned to spaces") {
  CHECK(edited("all:\n\tcc x.c\n", "\tcc x.c", "\tcc -O2 x.c") == "all:\n\tcc -O2 x.c\n");
  const std::string why = refused("all:\n\tcc x.c\n", "    cc x.c", "y");
  CHECK(why.find("line 2") != std::string::npos);
  CHECK(why.find("whitespace") != std::string::npos);
}

TEST_CASE("curly quotes are changed") {
  const std::string curly = "it\xE2\x80\x99s \xE2\x80\x9Cquoted\xE2\x80\x9D\n";
  CHECK(edited(curly, "it\xE2\x80\x99s", "that\xE2\x80\x99s") == "that\xE2\x80\x99s \xE2\x80\x9Cquoted\xE2\x80\x9D\n");
  const std::string why = refused(curly, "\"quoted\"", "x");
  CHECK(why.find("quotation marks") != std::string::npos);
  CHECK(why.find("line 1") != std::string::npos);
}

TEST_CASE("an ambiguous old_string is refused with the count and the lines") {
  CHECK(refused("a\nb\na\n", "a", "x").find("2 times (lines 1, 3)") != std::string::npos);
  CHECK(edited("a\nb\na\n", "a", "x", true) == "x\nb\nx\n");
  CHECK(edited("a\r\nb\na\r\n", "a\n", "x\n", true) == "x\r\nb\nx\r\n");
}

TEST_CASE("nothing to do is refused") {
  CHECK(refused("a", "", "x").find("use write") != std::string::npos);
  CHECK(refused("a", "a", "a").find("same") != std::string::npos);
}

TEST_CASE("a miss says how near it was") {
  CHECK(refused("function one\nbody\n", "function one\nother", "x").find("first line is at line 1") !=
        std::string::npos);
  CHECK(refused("abc", "xyz", "x").find("read the file again") != std::string::npos);
}

TEST_CASE("the line of the first change is counted in the text, not in bytes") {
  const auto result = replace_text("a\r\nb\r\nc\r\n", "b\nc", "b\nd", false);
  REQUIRE(result);
  CHECK(result->first_line == 3);
  CHECK(result->count == 1);
}

TEST_CASE("a replacement inside a multi-byte character's neighbourhood keeps the bytes around it") {
  CHECK(edited("\xC3\xA9\xC3\xA8", "\xC3\xA9\xC3\xA8", "\xC3\xA9\xC3\xAA") == "\xC3\xA9\xC3\xAA");
}

#include "tools/text_file.h"

#include <catch2/catch.hpp>

#include "tools/file_diff.h"
#include "tools/observations.h"

using namespace tools;

namespace {

TextFile text_of(std::string_view bytes) {
  const auto decoded = decode_file(bytes);
  REQUIRE(std::holds_alternative<TextFile>(decoded));
  return std::get<TextFile>(decoded);
}

std::string kind_of(std::string_view bytes) {
  const auto decoded = decode_file(bytes);
  REQUIRE(std::holds_alternative<BinaryFile>(decoded));
  return std::get<BinaryFile>(decoded).kind;
}

using namespace std::string_view_literals;

}  // namespace

TEST_CASE("every encoding goes to text and back to the same bytes") {
  for (const std::string_view bytes : {"plain\n"sv, ""sv, "\xEF\xBB\xBFmarked\n"sv, "\xFF\xFEh\0i\0\n\0"sv,
                                       "\xFE\xFF\0h\0i\0\n"sv, "caf\xE9 latin\n"sv, "\xFF\xFE\x3D\xD8\x00\xDE"sv,
                                       "\xFE\xFF\xD8\x3D\xDE\x00"sv, "\xFF\xFE"sv, "\xFF\xFE\xAC\x20"sv}) {
    const TextFile file = text_of(bytes);
    CHECK(encode_file(file.encoding, file.text) == bytes);
  }
  CHECK(text_of("\xFF\xFE\x3D\xD8\x00\xDE"sv).text == "\xF0\x9F\x98\x80");
  CHECK(text_of("\xFF\xFE\xAC\x20"sv).text == "\xE2\x82\xAC");
  CHECK(text_of("\xEF\xBB\xBFx").text == "x");
  CHECK(text_of("caf\xE9").encoding == Encoding::bytes);
}

TEST_CASE("what could not be written back as it was is binary") {
  CHECK(kind_of("\xFF\xFE\x3D\xD8"sv) == "binary data");     // a lone surrogate
  CHECK(kind_of("\xFF\xFEh\0i"sv) == "binary data");         // half a unit
  CHECK(kind_of("\xFF\xFE\0\0h\0\0\0"sv) == "binary data");  // UTF-32
  CHECK(kind_of("a\0b"sv) == "binary data");
  CHECK(kind_of("\x89PNG\r\n\x1a\n\0\0"sv) == "PNG image");
  CHECK(kind_of("\xFF\xD8\xFF\xE0zzz"sv) == "JPEG image");
  CHECK(kind_of("\x7F"
                "ELF\2\1\0"sv) == "ELF program");
}

TEST_CASE("line ends") {
  CHECK(uniformly_crlf("a\r\nb\r\n"));
  CHECK_FALSE(uniformly_crlf("a\r\nb\n"));
  CHECK_FALSE(uniformly_crlf("a"));
  CHECK(crlf_to_lf("a\r\nb\rc\r\n") == "a\nb\rc\n");
  CHECK(lf_to_crlf("a\nb\r\nc") == "a\r\nb\r\nc");
}

TEST_CASE("a small file is shown whole, a new one without old text") {
  const Hunk change = make_hunk("a\nb\nc\n", "a\nx\nc\n");
  CHECK(change.old_text == "a\nb\nc\n");
  CHECK(change.new_text == "a\nx\nc\n");
  CHECK(change.line == 2);
  CHECK_FALSE(make_hunk(std::nullopt, "new\n").old_text);
}

TEST_CASE("of a large file only the changed part is shown, with some lines around it") {
  std::string before;
  for (int line = 1; line <= 20'000; ++line) before += "line " + std::to_string(line) + "\n";
  std::string after = before;
  after.replace(after.find("line 777\n"), 9, "changed\nand more\n");
  const Hunk hunk = make_hunk(before, after);
  CHECK(hunk.line == 777);
  CHECK(hunk.old_text == "line 774\nline 775\nline 776\nline 777\nline 778\nline 779\nline 780\n");
  CHECK(hunk.new_text == "line 774\nline 775\nline 776\nchanged\nand more\nline 778\nline 779\nline 780\n");
  const Hunk rewritten = make_hunk(before, std::string(1 << 20, 'z'));
  CHECK(rewritten.new_text.size() < whole_file_limit + 100);
  CHECK(rewritten.old_text->size() < whole_file_limit + 100);
}

TEST_CASE("observations are per session and the newest wins") {
  Observations seen;
  seen.saw("s1", "/a", "h1");
  seen.saw("s1", "/a", "h2");
  CHECK(seen.seen("s1", "/a") == "h2");
  CHECK_FALSE(seen.seen("s2", "/a"));
  for (int i = 0; i < 20'001; ++i) seen.saw("s3", "/" + std::to_string(i), "h");
  CHECK_FALSE(seen.seen("s1", "/a"));
  CHECK(seen.seen("s3", "/20000") == "h");
}

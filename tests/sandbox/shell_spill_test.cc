#include "sandbox/shell_spill.h"

#include <catch2/catch.hpp>

#include "sandbox/shell_stream.h"
#include "tests/sandbox/support.h"

using namespace sandbox;

TEST_CASE("an output under the limit is in the file whole") {
  const test::Folder folder;
  SpillFile spill(folder / "output", 1 << 20, 8 << 20);
  spill.append("one\n");
  spill.append("two\n");
  spill.finish();
  CHECK(test::slurp(spill.path()) == "one\ntwo\n");
  CHECK(spill.lost() == 0);
  struct stat status {};
  REQUIRE(stat(spill.path().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("over the limit the head and the newest tail are kept, in order, and the loss is stated in bytes") {
  const test::Folder folder;
  const std::uint64_t limit = 256 * 1024;
  std::string all;
  for (int line = 0; all.size() < 3 * limit; ++line) all += "line " + std::to_string(line) + "\n";
  for (const std::size_t piece : {std::size_t{1000}, std::size_t{300'000}, all.size()}) {
    SpillFile spill(folder / "output", limit, 8 << 20);
    for (std::size_t at = 0; at < all.size(); at += piece) spill.append(std::string_view(all).substr(at, piece));
    spill.finish();
    const std::string lost = std::to_string(all.size() - limit);
    CHECK(test::slurp(spill.path()) ==
          all.substr(0, limit / 2) + "\n[… " + lost + " bytes left out …]\n" + all.substr(all.size() - limit / 2));
    CHECK(spill.lost() == all.size() - limit);
  }
}

TEST_CASE("the spill files of a session share its limit") {
  const test::Folder folder;
  const std::string piece(200 * 1024, 'x');
  SpillFile first(folder / "output", 1 << 20, 400 * 1024);
  first.append(piece);
  first.finish();
  CHECK(first.lost() == 0);
  SpillFile second(folder / "output", 1 << 20, 400 * 1024);
  second.append(piece + piece);
  second.finish();
  CHECK(second.lost() == piece.size());
  CHECK(second.path() != first.path());
  SpillFile third(folder / "output", 1 << 20, 400 * 1024);
  third.append(piece);
  third.finish();
  CHECK(third.path().empty());
  CHECK(third.lost() == piece.size());
}

TEST_CASE("without a folder everything is lost and nothing is written") {
  SpillFile spill("", 1 << 20, 8 << 20);
  spill.append("abc");
  spill.finish();
  CHECK(spill.path().empty());
  CHECK(spill.lost() == 3);
}

TEST_CASE("live text comes by the line, cleaned, never half a character, and stops at its limit") {
  std::string live;
  int calls = 0;
  const auto sink = [&](std::string_view text) {
    live += text;
    ++calls;
  };
  SECTION("by the line") {
    CallOutput output(1000, SpillFile("", 1, 1), sink, 10'000);
    output.append_out("half");
    CHECK(live.empty());
    output.append_out(" line\n\x1b[31mred\x1b[0m\n");
    CHECK(live == "half line\nred\n");
    output.append_err("rest");
    output.finish();
    CHECK(live == "half line\nred\nrest");
  }
  SECTION("a long line in pieces, each whole UTF-8") {
    CallOutput output(1000, SpillFile("", 1, 1), sink, 100'000);
    std::string text;
    for (int i = 0; i < 4000; ++i) text += "\xE2\x82\xAC";
    for (std::size_t at = 0; at < text.size(); at += 1000) output.append_out(std::string_view(text).substr(at, 1000));
    output.finish();
    CHECK(live == text);
    CHECK(calls > 1);
  }
  SECTION("limit") {
    CallOutput output(1000, SpillFile("", 1, 1), sink, 5000);
    for (int i = 0; i < 1000; ++i) output.append_out("0123456789\n");
    output.finish();
    CHECK(live.size() < 5200);
    CHECK(live.ends_with("[more output is not shown while the command runs]\n"));
  }
}

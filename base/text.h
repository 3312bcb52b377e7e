// Text that crosses a border: bytes of children, files and models made safe for JSON, logs and terminals. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace base {

bool valid_utf8(std::string_view bytes);
// Invalid sequences and NUL become U+FFFD.
std::string to_utf8(std::string_view bytes);
// For output of commands: to_utf8, then terminal sequences (CSI, OSC, DCS, charset) removed, other C0 controls but \n
// and \t removed, and each line that was redrawn with carriage returns reduced to its last drawing; CRLF is a line end.
std::string clean_terminal_text(std::string_view bytes);
// For what a user decides about: to_utf8, then every character that could hide, redraw or reorder what is shown
// (controls but \n and \t, line separators, bidirectional controls) becomes U+FFFD. No other is lost.
std::string plain_text(std::string_view bytes);
// The same on one line: line ends and tabs become spaces, runs of them one.
std::string plain_line(std::string_view bytes);
std::string indented(std::string_view text);  // every line behind four spaces
// At most `limit` bytes, cut at a character border, "…" appended when cut.
std::string ellipsize(std::string_view text, std::size_t limit);
std::string to_lower(std::string_view text);                                  // ASCII
bool contains_ignoring_case(std::string_view text, std::string_view needle);  // ASCII
std::string_view trim(std::string_view text);

// Keeps the first and last bytes of a stream in bounded memory. Not thread-safe.
class HeadTail {
 public:
  explicit HeadTail(std::size_t limit) : head_limit_(limit / 2), tail_limit_(limit - limit / 2) {}
  void append(std::string_view bytes);
  std::size_t total() const { return total_; }
  bool truncated() const { return total_ > head_.size() + tail_.size(); }
  // Head, then, when something was left out, a line "[… N bytes left out …]", then tail.
  std::string text() const;

 private:
  std::size_t head_limit_, tail_limit_, total_ = 0;
  std::string head_, tail_;
};

}  // namespace base

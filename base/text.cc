// Terminal sequences are taken out by a small hand-written scanner: what is wanted is the text a person would have
// seen, in one pass over untrusted bytes, and no packaged library does that without drawing a screen. UTF-8 is
// utf8proc's.
#include "base/text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace base {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";
constexpr std::string_view ellipsis = "\xE2\x80\xA6";

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Length of the ASCII run at the start; eight bytes at a time, since nearly all text is ASCII.
std::size_t ascii_prefix(std::string_view text) {
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
  return i;
}

// Bytes of the valid character at the start, or 0.
std::size_t character(std::string_view text) {
  utf8proc_int32_t code = 0;
  const auto size = static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4));
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), size, &code);
  return length > 0 ? static_cast<std::size_t>(length) : 0;
}

// Could hide, redraw or reorder what is shown around it.
bool misleads(std::string_view one) {
  utf8proc_int32_t code = 0;
  const auto size = static_cast<utf8proc_ssize_t>(one.size());
  if (utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(one.data()), size, &code) <= 0) return true;
  const bool control = (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code <= 0x9F);
  const bool line_end = code == 0x2028 || code == 0x2029;
  const bool direction = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                         (code >= 0x2066 && code <= 0x2069);
  return control || line_end || direction;
}

// A position not after `at` that does not split a character.
std::size_t border_before(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  std::size_t border = at;
  while (border > 0 && at - border < 3 && is_continuation(text[border])) --border;
  return is_continuation(text[border]) ? at : border;  // no lead byte near: not UTF-8, any place will do
}

class TerminalText {
 public:
  explicit TerminalText(std::size_t size) { out_.reserve(size); }

  std::string clean(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (c == 0x1b) {
        i = escape(text, i + 1);
      } else if (c == '\n') {
        end_line();
        ++i;
      } else if (c == '\r') {
        redraw_ = true;
        ++i;
      } else if ((c < 0x20 && c != '\t') || c == 0x7f) {
        ++i;
      } else if (c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
        i = c1(text, i);
      } else {
        if (redraw_) out_.resize(line_start_);
        redraw_ = false;
        out_ += text[i++];
      }
    }
    return std::move(out_);
  }

 private:
  void end_line() {
    out_ += '\n';
    line_start_ = out_.size();
    redraw_ = false;
  }

  // Each of these gets the position after the introducer and returns the position after the sequence.
  std::size_t escape(std::string_view text, std::size_t i) {
    if (i >= text.size()) return i;
    const char kind = text[i];
    if (kind == '[') return csi(text, i + 1);
    if (kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_') return control_string(text, i + 1);
    while (i < text.size() && text[i] >= 0x20 && text[i] <= 0x2f) ++i;  // charset and the like: ESC ( B
    if (i < text.size() && text[i] >= 0x30 && text[i] <= 0x7e) ++i;
    return i;
  }

  std::size_t c1(std::string_view text, std::size_t i) {
    const auto code = static_cast<unsigned char>(text[i + 1]);
    if (code == 0x9b) return csi(text, i + 2);
    if (code == 0x9d || code == 0x90 || code == 0x98 || code == 0x9e || code == 0x9f)
      return control_string(text, i + 2);
    return i + 2;
  }

  std::size_t csi(std::string_view text, std::size_t i) {
    const std::size_t begin = i;
    while (i < text.size() && text[i] >= 0x20 && text[i] <= 0x3f) ++i;
    if (i >= text.size() || text[i] < 0x40 || text[i] > 0x7e) return i;  // broken off: what follows is text again
    if (text[i] == 'K') {  // erase in line: how progress bars clear themselves
      const std::string_view parameter = text.substr(begin, i - begin);
      if (parameter == "2" || (redraw_ && (parameter.empty() || parameter == "0"))) out_.resize(line_start_);
    }
    return i + 1;
  }

  // OSC, DCS, SOS, PM, APC: up to BEL, ST, CAN or SUB. An end of line ends one too: an unterminated sequence must not
  // hide the rest of the output.
  std::size_t control_string(std::string_view text, std::size_t i) {
    for (; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\n') return i;
      if (c == '\a' || c == 0x18 || c == 0x1a) return i + 1;
      if (c == 0x1b) return i + 1 < text.size() && text[i + 1] == '\\' ? i + 2 : i;
      if (static_cast<unsigned char>(c) == 0xC2 && i + 1 < text.size() &&
          static_cast<unsigned char>(text[i + 1]) == 0x9c) {
        return i + 2;
      }
    }
    return i;
  }

  std::string out_;
  std::size_t line_start_ = 0;
  bool redraw_ = false;  // a carriage return was seen: what is drawn next replaces the line
};

}  // namespace

bool valid_utf8(std::string_view bytes) {
  for (;;) {
    bytes.remove_prefix(ascii_prefix(bytes));
    if (bytes.empty()) return true;
    const std::size_t length = character(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
}

std::string to_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t run = ascii_prefix(bytes);
    std::string_view ascii = bytes.substr(0, run);
    for (std::size_t nul = ascii.find('\0'); nul != std::string_view::npos; nul = ascii.find('\0')) {
      text.append(ascii.substr(0, nul)).append(replacement);
      ascii.remove_prefix(nul + 1);
    }
    text.append(ascii);
    bytes.remove_prefix(run);
    if (bytes.empty()) break;
    const std::size_t length = character(bytes);
    if (length > 0) {
      text.append(bytes.substr(0, length));
      bytes.remove_prefix(length);
    } else {
      text.append(replacement);
      bytes.remove_prefix(1);
    }
  }
  return text;
}

std::string clean_terminal_text(std::string_view bytes) {
  const std::string text = to_utf8(bytes);
  return TerminalText(text.size()).clean(text);
}

std::string plain_text(std::string_view bytes) {
  const std::string text = to_utf8(bytes);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, character(std::string_view(text).substr(i)));
    const std::string_view one = std::string_view(text).substr(i, length);
    out += misleads(one) ? replacement : one;
    i += length;
  }
  return out;
}

std::string plain_line(std::string_view bytes) {
  std::string lines(bytes);
  std::replace(lines.begin(), lines.end(), '\r', '\n');
  std::string out;
  for (const char c : plain_text(lines)) {
    const bool space = c == '\n' || c == '\t' || c == ' ';
    if (!space) out += c;
    if (space && !out.empty() && out.back() != ' ') out += ' ';
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

std::string indented(std::string_view text) {
  std::string out = "    ";
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out;
}

std::string ellipsize(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  if (limit < ellipsis.size()) return std::string(text.substr(0, border_before(text, limit)));
  return std::string(text.substr(0, border_before(text, limit - ellipsis.size()))) + std::string(ellipsis);
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool contains_ignoring_case(std::string_view text, std::string_view needle) {
  return to_lower(text).find(to_lower(needle)) != std::string::npos;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view space = " \t\r\n\f\v";
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

void HeadTail::append(std::string_view bytes) {
  total_ += bytes.size();
  const std::size_t to_head = std::min(bytes.size(), head_limit_ - head_.size());
  head_.append(bytes.substr(0, to_head));
  bytes.remove_prefix(to_head);
  if (bytes.size() >= tail_limit_) {
    tail_.assign(bytes.substr(bytes.size() - tail_limit_));
    return;
  }
  if (tail_.size() + bytes.size() > tail_limit_) tail_.erase(0, tail_.size() + bytes.size() - tail_limit_);
  tail_.append(bytes);
}

std::string HeadTail::text() const {
  if (!truncated()) return head_ + tail_;
  // Neither end of the gap may show half a character.
  std::string_view head = head_;
  std::size_t lead = head.size();
  while (lead > 0 && head.size() - lead < 3 && is_continuation(head[lead - 1])) --lead;
  if (lead > 0 && static_cast<unsigned char>(head[lead - 1]) >= 0xC0 && character(head.substr(lead - 1)) == 0) {
    head = head.substr(0, lead - 1);
  }
  std::string_view tail = tail_;
  for (int i = 0; i < 3 && !tail.empty() && is_continuation(tail.front()); ++i) tail.remove_prefix(1);
  std::string text(head);
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += fmt::format("[{} {} bytes left out {}]\n", ellipsis, total_ - head.size() - tail.size(), ellipsis);
  return text.append(tail);
}

}  // namespace base

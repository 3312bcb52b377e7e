#include "tools/line_edit.h"

#include <algorithm>
#include <vector>

#include "tools/text_file.h"

namespace tools {
namespace {

int line_of(std::string_view text, std::size_t at) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

std::vector<std::size_t> find_all(std::string_view text, std::string_view what) {
  std::vector<std::size_t> found;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size()))
    found.push_back(at);
  return found;
}

// The text with LF line ends, and where each position of it lies in the original.
class LfView {
 public:
  explicit LfView(std::string_view original) : text(crlf_to_lf(original)) {
    std::size_t dropped = 0;
    for (std::size_t at = 0; at + 1 < original.size(); ++at) {
      if (original[at] == '\r' && original[at + 1] == '\n') crlf_.push_back(at - dropped++);
    }
  }

  // A position at a CRLF is that of its CR: a line end is never taken apart.
  std::size_t original(std::size_t at) const {
    return at + static_cast<std::size_t>(std::lower_bound(crlf_.begin(), crlf_.end(), at) - crlf_.begin());
  }
  bool is_crlf(std::size_t at) const { return std::binary_search(crlf_.begin(), crlf_.end(), at); }

  // The line end of the line that `end` is in, or of the one before it: for lines put in where none is replaced.
  bool crlf_around(std::size_t begin, std::size_t end) const {
    const std::size_t next = text.find('\n', end);
    if (next != std::string::npos) return is_crlf(next);
    const std::size_t previous = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
    return previous != std::string::npos && is_crlf(previous);
  }

  const std::string text;

 private:
  std::vector<std::size_t> crlf_;  // positions in text
};

// `fresh` with its line ends as they are at [begin, end) of the view: one by one where lines are replaced.
std::string with_line_ends(std::string_view fresh, const LfView& view, std::size_t begin, std::size_t end) {
  std::vector<bool> kinds;
  for (std::size_t at = view.text.find('\n', begin); at != std::string::npos && at < end;
       at = view.text.find('\n', at + 1))
    kinds.push_back(view.is_crlf(at));
  const bool otherwise = view.crlf_around(begin, end);
  std::string result;
  std::size_t line = 0;
  for (const char c : fresh) {
    if (c == '\n') {
      if (line < kinds.size() ? kinds[line] : otherwise) result += '\r';
      ++line;
    }
    result += c;
  }
  return result;
}

Edited replace_exactly(std::string_view text, std::string_view from, std::string_view to,
                       const std::vector<std::size_t>& at) {
  Edited edited;
  edited.count = static_cast<int>(at.size());
  edited.first_line = line_of(text, at.front());
  std::size_t done = 0;
  for (const std::size_t place : at) {
    edited.text += text.substr(done, place - done);
    edited.text += to;
    done = place + from.size();
  }
  edited.text += text.substr(done);
  return edited;
}

Edited replace_lines(std::string_view text, const LfView& view, std::string_view from, std::string_view to,
                     const std::vector<std::size_t>& at) {
  const std::size_t shorter = std::min(from.size(), to.size());
  std::size_t before = 0, after = 0;  // what old and new text have in common stays as it is in the file
  while (before < shorter && from[before] == to[before]) ++before;
  while (after < shorter - before && from[from.size() - 1 - after] == to[to.size() - 1 - after]) ++after;
  Edited edited;
  edited.count = static_cast<int>(at.size());
  edited.first_line = line_of(view.text, at.front() + before);
  std::size_t done = 0;
  for (const std::size_t place : at) {
    const std::size_t begin = place + before, end = place + from.size() - after;
    edited.text += text.substr(done, view.original(begin) - done);
    edited.text += with_line_ends(to.substr(before, to.size() - before - after), view, begin, end);
    done = view.original(end);
  }
  edited.text += text.substr(done);
  return edited;
}

// Text reduced to what is compared when looking for the reason of a miss.
struct Folded {
  std::string text;
  std::vector<int> lines;  // of each byte
};

Folded fold(std::string_view text, bool quotes) {
  static constexpr struct {
    std::string_view curly, straight;
  } pairs[] = {{"\xE2\x80\x98", "'"}, {"\xE2\x80\x99", "'"}, {"\xE2\x80\x9C", "\""}, {"\xE2\x80\x9D", "\""}};
  Folded folded;
  int line = 1;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    std::string_view piece = text.substr(at, 1);
    for (const auto& pair : pairs) {
      if (!quotes || text.substr(at, pair.curly.size()) != pair.curly) continue;
      piece = pair.straight;
      at += pair.curly.size() - 1;
      break;
    }
    folded.text += piece;
    folded.lines.push_back(line);
  }
  return folded;
}

std::string why_not_found(std::string_view text, std::string_view old_string) {
  for (const bool quotes : {false, true}) {
    const std::string wanted = fold(old_string, quotes).text;
    const Folded folded = fold(text, quotes);
    const std::size_t at = wanted.empty() ? std::string::npos : folded.text.find(wanted);
    if (at == std::string::npos) continue;
    return "old_string was not found. The text at line " + std::to_string(folded.lines[at]) +
           " differs from it only in " +
           (quotes ? "quotation marks (the file and old_string use different ones, straight or curly)"
                   : "whitespace (tabs, spaces or line breaks)") +
           "; copy it exactly as it is in the file.";
  }
  std::string_view first = old_string.substr(0, old_string.find('\n'));
  while (!first.empty() && (first.back() == '\r' || first.back() == ' ')) first.remove_suffix(1);
  const std::size_t at = first.size() < 4 ? std::string_view::npos : text.find(first);
  if (at != std::string_view::npos && first.size() < old_string.size())
    return "old_string was not found. Its first line is at line " + std::to_string(line_of(text, at)) +
           ", but what follows there is different; read that part again.";
  return "old_string was not found; read the file again and copy the text exactly.";
}

std::string found_often(std::string_view text, const std::vector<std::size_t>& at) {
  std::string lines;
  for (std::size_t i = 0; i < at.size() && i < 10; ++i)
    lines += (i == 0 ? "" : ", ") + std::to_string(line_of(text, at[i]));
  if (at.size() > 10) lines += ", …";
  return "old_string is found " + std::to_string(at.size()) + " times (lines " + lines +
         "); add surrounding lines to make it unique, or set replace_all.";
}

}  // namespace

base::Result<Edited> replace_text(std::string_view text, std::string_view old_string, std::string_view new_string,
                                  bool replace_all) {
  const auto refuse = [](std::string why) { return base::fail(base::ErrorCode::invalid_argument, std::move(why)); };
  if (old_string.empty()) return refuse("old_string is empty; use write to create a file or to replace all of it.");
  if (old_string == new_string) return refuse("old_string and new_string are the same; there is nothing to change.");

  // Carriage returns that are spelt out are meant.
  if (old_string.find('\r') != std::string_view::npos) {
    const auto at = find_all(text, old_string);
    if (at.size() > 1 && !replace_all) return refuse(found_often(text, at));
    if (!at.empty()) return replace_exactly(text, old_string, new_string, at);
  }
  const LfView view(text);
  const std::string from = crlf_to_lf(old_string), to = crlf_to_lf(new_string);
  if (from == to) return refuse("old_string was not found with these line ends.");
  const auto at = find_all(view.text, from);
  if (at.empty()) return refuse(why_not_found(view.text, from));
  if (at.size() > 1 && !replace_all) return refuse(found_often(view.text, at));
  return replace_lines(text, view, from, to, at);
}

}  // namespace tools

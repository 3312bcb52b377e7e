#include "tools/file_diff.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace tools {
namespace {

constexpr int context_lines = 3;

std::string shown(std::string_view text) {
  if (text.size() <= whole_file_limit) return base::to_utf8(text);
  const std::string kept = base::ellipsize(base::to_utf8(text.substr(0, whole_file_limit)), whole_file_limit);
  return kept + "\n[" + std::to_string(text.size()) + " bytes, not all shown]\n";
}

// The start of the line that lies `lines` above the one `at` is in.
std::size_t up(std::string_view text, std::size_t at, int lines) {
  for (;; --lines) {
    while (at > 0 && text[at - 1] != '\n') --at;
    if (at == 0 || lines == 0) return at;
    --at;
  }
}

// The end, line end included, of the line that lies `lines` below the one `at` is in.
std::size_t down(std::string_view text, std::size_t at, int lines) {
  for (; lines >= 0 && at < text.size(); --lines) {
    const std::size_t end = text.find('\n', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  return at;
}

}  // namespace

Hunk make_hunk(const std::optional<std::string>& old_text, const std::string& new_text) {
  Hunk hunk;
  if (!old_text) {
    hunk.new_text = shown(new_text);
    return hunk;
  }
  const std::string_view before = *old_text, after = new_text;
  const std::size_t shorter = std::min(before.size(), after.size());
  std::size_t same = 0, same_end = 0;
  while (same < shorter && before[same] == after[same]) ++same;
  while (same_end < shorter - same && before[before.size() - 1 - same_end] == after[after.size() - 1 - same_end])
    ++same_end;
  hunk.line = 1 + static_cast<int>(std::count(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(same), '\n'));
  if (std::max(before.size(), after.size()) <= whole_file_limit) {
    hunk.old_text = base::to_utf8(before);
    hunk.new_text = base::to_utf8(after);
    return hunk;
  }
  const std::size_t begin = up(before, same, context_lines);
  const std::size_t old_end = down(before, before.size() - same_end, context_lines);
  const std::size_t new_end = after.size() - (before.size() - old_end);  // behind the change both are the same
  hunk.old_text = shown(before.substr(begin, old_end - begin));
  hunk.new_text = shown(after.substr(begin, new_end - begin));
  return hunk;
}

}  // namespace tools

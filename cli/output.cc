#include "cli/output.h"

#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

namespace cli {

std::string inert(std::string_view text) {
  std::string out;
  const std::string safe = base::to_utf8(text);
  out.reserve(safe.size());
  for (std::size_t i = 0; i < safe.size(); ++i) {
    const auto byte = static_cast<unsigned char>(safe[i]);
    if (byte == 0xC2 && i + 1 < safe.size() && static_cast<unsigned char>(safe[i + 1]) < 0xA0) {
      ++i;  // U+0080 to U+009F: eight-bit control sequences
      continue;
    }
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) continue;
    out += safe[i];
  }
  return out;
}

base::Result<void> write_answer(std::string_view text) {
  // A pipe or a file gets the bytes as they are; a terminal would obey them.
  if (watched()) return base::write_all(STDOUT_FILENO, inert(text));
  return base::write_all(STDOUT_FILENO, text);
}

bool watched() { return isatty(STDOUT_FILENO) == 1; }

bool print(std::string_view text) { return write_answer(text).has_value(); }

void note(std::string_view line) { (void)base::write_all(STDERR_FILENO, inert(line) + "\n"); }

}  // namespace cli

// What a client is shown of a file change: both whole texts of a small file, of a large one the part that changed with
// a few lines around it. Pure; any thread.
#pragma once

#include <optional>
#include <string>

namespace tools {

inline constexpr std::size_t whole_file_limit = 64 * 1024;

struct Hunk {
  int line = 1;                         // 1-based, of the first changed line, in the new text
  std::optional<std::string> old_text;  // nothing: the file is new
  std::string new_text;
};

// Texts need not be UTF-8; the hunk's are.
Hunk make_hunk(const std::optional<std::string>& old_text, const std::string& new_text);

}  // namespace tools

// The replacement an `edit` call asks for. old_string is matched exactly, but for line ends: LF in it matches the CRLF
// of a file, and lines put in get the line end used at that place. Every byte outside the part that really differs
// stays. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace tools {

struct Edited {
  std::string text;
  int count = 0;
  int first_line = 0;  // 1-based, of the first replacement
};

// invalid_argument with what to do instead: not found (with the nearest reason), found more than once, nothing to do.
base::Result<Edited> replace_text(std::string_view text, std::string_view old_string, std::string_view new_string,
                                  bool replace_all);

}  // namespace tools

#include "acp/bounds.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace acp {
namespace {

base::Json replaced(std::size_t bytes, std::string_view text) {
  return {{"truncated", true}, {"bytes", bytes}, {"preview", fit_text(text, preview_bytes)}};
}

}  // namespace

std::vector<std::string_view> split_text(std::string_view text, std::size_t limit) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    std::size_t end = std::min(limit, text.size());
    if (end < text.size()) {
      std::size_t border = end;
      while (border > 0 && (static_cast<unsigned char>(text[border]) & 0xC0) == 0x80) --border;
      if (border > 0) end = border;  // otherwise these are no characters: cut anywhere
    }
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return pieces;
}

std::string fit_text(std::string_view text, std::size_t limit) {
  std::string fitted = base::ellipsize(text, limit);
  for (;;) {
    const std::size_t quoted = base::quote(fitted).size();
    if (quoted <= limit || fitted.size() <= 8) return fitted;
    // Escapes are rarely spread evenly, so the proportion is only a guess and the loop decides.
    const std::size_t guess = fitted.size() * limit / quoted;
    fitted = base::ellipsize(text, std::max<std::size_t>(8, std::min(guess, fitted.size() - 4)));
  }
}

base::Json fit_json(const base::Json& value, std::size_t limit) {
  const std::string text = base::dump(value);
  return text.size() <= limit ? value : replaced(text.size(), text);
}

base::Json raw_input(const std::string& arguments) {
  if (arguments.empty()) return base::Json::object();
  if (arguments.size() > raw_input_bytes) return replaced(arguments.size(), arguments);
  if (auto value = base::parse_json(arguments)) return fit_json(*value, raw_input_bytes);
  return fit_json(base::Json(base::to_utf8(arguments)), raw_input_bytes);
}

}  // namespace acp

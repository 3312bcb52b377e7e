#include "base/json.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace base {
namespace {

// nlohmann's ordered object finds a member by walking it, so reading n members costs n²/2 comparisons. This many take
// about half a second; one object may have some 20,000 members.
constexpr std::size_t max_key_comparisons = 200'000'000;

unsigned code_unit(std::string_view text, std::size_t at) {
  unsigned value = 0;
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return 0;
  const auto [end, error] = std::from_chars(text.data() + at + 2, text.data() + at + 6, value, 16);
  return error == std::errc() && end == text.data() + at + 6 ? value : 0;
}

// Half a character, written as an escape: programs whose strings are UTF-16 send it when they cut one in two, and the
// parser refuses the whole text for it.
std::string without_lone_surrogates(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const unsigned unit = code_unit(text, i);
    const bool high = unit >= 0xD800 && unit < 0xDC00, low = unit >= 0xDC00 && unit < 0xE000;
    const unsigned next = high ? code_unit(text, i + 6) : 0;
    if (high && next >= 0xDC00 && next < 0xE000) {
      out += text.substr(i, 12);
      i += 12;
    } else if (high || low) {
      out += "\\ufffd";
      i += 6;
    } else {
      const std::size_t length = text[i] == '\\' ? 2 : 1;
      out += text.substr(i, length);
      i += length;
    }
  }
  return out;
}

// What must be known before the real parser runs: how deep the text nests (its destructor recurses), what its objects
// will cost, and that no NUL is in it (the lexer takes one for the end of the input and would ignore what follows).
// Not a JSON check: the parser still sees every byte.
Result<void> check_shape(std::string_view text) {
  std::array<std::size_t, static_cast<std::size_t>(max_json_depth) + 1> members{};
  std::size_t comparisons = 0;
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\0') return fail(ErrorCode::malformed, fmt::format("invalid JSON at byte {}: NUL", i + 1));
    if (in_string) {
      if (c == '\\') {
        ++i;
        if (i < text.size() && text[i] == '\0') --i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    switch (c) {
      case '"':
        in_string = true;
        break;
      case '[':
      case '{':
        if (++depth > static_cast<std::size_t>(max_json_depth)) {
          return fail(ErrorCode::malformed,
                      fmt::format("JSON nested deeper than {} levels at byte {}", max_json_depth, i + 1));
        }
        members[depth] = 0;
        break;
      case ']':
      case '}':
        if (depth > 0) --depth;
        break;
      case ':':
        comparisons += members[depth]++;
        if (comparisons > max_key_comparisons) {
          return fail(ErrorCode::malformed, fmt::format("JSON objects with too many members at byte {}", i + 1));
        }
        break;
      default:
        break;
    }
  }
  return {};
}

std::string dump_with(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  if (auto shape = check_shape(text); !shape) return tl::unexpected<Error>(shape.error());
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    if (const std::string mended = without_lone_surrogates(text); mended != text) return parse_json(mended);
    return fail(ErrorCode::malformed, fmt::format("invalid JSON at byte {}", error.byte), error.what());
  } catch (const Json::exception& error) {  // a number too large for a double
    return fail(ErrorCode::malformed, "invalid JSON: a number is out of range", error.what());
  }
}

std::string dump(const Json& value) { return dump_with(value, -1); }
std::string dump_pretty(const Json& value) { return dump_with(value, 2); }
std::string quote(std::string_view text) { return dump(Json(text)); }
JsonPtr share(Json value) { return std::make_shared<const Json>(std::move(value)); }

const Json* find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::optional<std::string> get_string(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get_ref<const std::string&>();
}

std::optional<std::int64_t> get_int(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  if (value->is_number_unsigned() &&
      value->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return value->get<std::int64_t>();
}

std::optional<bool> get_bool(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

}  // namespace base

// JSON for the whole product: nlohmann's ordered type (members keep the order they were written in, which keeps wire
// lines readable and request bytes stable). Foreign text enters only through parse_json; no exception leaves this file.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace base {

using Json = nlohmann::ordered_json;
using JsonPtr = std::shared_ptr<const Json>;  // for members: headers see only the forward declaration

// Nesting deeper than this is refused while reading: thousands of nested arrays overflow a 512 KB stack on destruction.
inline constexpr int max_json_depth = 128;

// Strict JSON, one value. Invalid UTF-8 is an error. Fails with malformed and a message naming the byte.
Result<Json> parse_json(std::string_view text);

// Compact, no trailing newline; invalid UTF-8 becomes U+FFFD instead of an exception.
std::string dump(const Json& value);
std::string dump_pretty(const Json& value);  // two spaces

// A JSON string literal of the text, quotes included.
std::string quote(std::string_view text);

JsonPtr share(Json value);

// Typed look-ups that never throw: null when the member is absent or has another type.
const Json* find(const Json& object, std::string_view key);
std::optional<std::string> get_string(const Json& object, std::string_view key);
std::optional<std::int64_t> get_int(const Json& object, std::string_view key);
std::optional<bool> get_bool(const Json& object, std::string_view key);

}  // namespace base

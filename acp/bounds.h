// Every limit on what one outgoing line may hold, and the functions that keep them. Many clients read lines into a
// fixed buffer, so no line is over 256 KiB: the parts below are limits on the serialised size (a control character
// takes six bytes), and their sum plus the envelope stays under that. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace acp {

inline constexpr std::size_t max_line_out = 256 * 1024;

// Raw bytes of one message chunk. The queue may join chunks up to twice this, all of them escaped to six bytes at
// worst.
inline constexpr std::size_t chunk_bytes = 16 * 1024;
inline constexpr std::size_t raw_input_bytes = 64 * 1024;
inline constexpr std::size_t text_content_bytes = 64 * 1024;
inline constexpr std::size_t diffs_bytes = 64 * 1024;       // all diffs of one call
inline constexpr std::size_t large_diff_bytes = 16 * 1024;  // of one that does not fit in there
inline constexpr std::size_t raw_output_bytes = 32 * 1024;
inline constexpr std::size_t locations_bytes = 8 * 1024;
inline constexpr std::size_t title_bytes = 2 * 1024;
inline constexpr std::size_t preview_bytes = 1024;

// Pieces of at most `limit` bytes, cut at character borders; views into `text`. Empty text: no piece.
std::vector<std::string_view> split_text(std::string_view text, std::size_t limit);

// The text, or its beginning, such that its JSON literal is at most `limit` bytes.
std::string fit_text(std::string_view text, std::size_t limit);

// The value when it serialises to at most `limit` bytes, else {"truncated": true, "bytes": n, "preview": "..."}.
base::Json fit_json(const base::Json& value, std::size_t limit);

// The arguments as a client gets them: the JSON value, the bare text when it is no JSON, or the replacement above.
base::Json raw_input(const std::string& arguments);

}  // namespace acp

// A file as text for the model, and back to bytes without touching what was not meant: byte order mark, UTF-16 and
// bytes that are no UTF-8 survive. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tools {

enum class Encoding {
  utf8,
  utf8_bom,
  utf16_le,  // with its byte order mark
  utf16_be,
  bytes,  // some 8-bit encoding nobody can name: text holds the bytes as they are
};
std::string_view encoding_name(Encoding encoding);

struct TextFile {
  Encoding encoding = Encoding::utf8;
  std::string text;  // UTF-8 without mark; raw bytes for Encoding::bytes
};

struct BinaryFile {
  std::string kind;  // "PNG image", "ELF program", "binary data"
};

std::variant<TextFile, BinaryFile> decode_file(std::string_view bytes);
// `text` is valid UTF-8, or anything for Encoding::bytes.
std::string encode_file(Encoding encoding, std::string_view text);

// Every line end is CRLF, and there is one.
bool uniformly_crlf(std::string_view text);
std::string crlf_to_lf(std::string_view text);
std::string lf_to_crlf(std::string_view text);

}  // namespace tools

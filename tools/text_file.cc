// UTF-16 is converted here by hand: iconv loads its tables from files that the machine the binary was copied to may
// lack, std::codecvt is deprecated and cannot refuse a lone surrogate, and ICU is 30 MB for forty lines.
#include "tools/text_file.h"

#include <cstdint>

#include "base/text.h"

namespace tools {
namespace {

constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";
constexpr std::string_view le_mark = "\xFF\xFE";
constexpr std::string_view be_mark = "\xFE\xFF";
constexpr std::size_t sniffed = 8000;  // where a NUL means binary, as git has it

std::uint32_t unit_at(std::string_view bytes, std::size_t at, bool little) {
  const auto first = static_cast<unsigned char>(bytes[at]), second = static_cast<unsigned char>(bytes[at + 1]);
  return little ? first | (second << 8) : (first << 8) | second;
}

void append_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | (code >> 18));
    text += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// Nothing when it is not well formed: it could not be written back as it was.
std::optional<std::string> from_utf16(std::string_view bytes, bool little) {
  if (bytes.size() % 2 != 0) return std::nullopt;
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += 2) {
    std::uint32_t code = unit_at(bytes, at, little);
    if (code == 0 || (code >= 0xDC00 && code < 0xE000)) return std::nullopt;
    if (code >= 0xD800 && code < 0xDC00) {
      at += 2;
      const std::uint32_t low = at < bytes.size() ? unit_at(bytes, at, little) : 0;
      if (low < 0xDC00 || low >= 0xE000) return std::nullopt;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(text, code);
  }
  return text;
}

std::string to_utf16(std::string_view text, bool little) {
  std::string bytes;
  bytes.reserve(2 * text.size());
  const auto put = [&](std::uint32_t unit) {
    const char high = static_cast<char>(unit >> 8), low = static_cast<char>(unit & 0xFF);
    bytes += little ? low : high;
    bytes += little ? high : low;
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (std::size_t i = 1; i < length && at + i < text.size(); ++i)
      code = (code << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3F);
    at += length;
    if (code < 0x10000) {
      put(code);
    } else {
      put(0xD800 + ((code - 0x10000) >> 10));
      put(0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }
  return bytes;
}

std::string binary_kind(std::string_view bytes) {
  struct Magic {
    std::string_view start, kind;
  };
  static constexpr Magic magics[] = {
      {"\x89PNG", "PNG image"},
      {"\xFF\xD8\xFF", "JPEG image"},
      {"GIF8", "GIF image"},
      {"%PDF", "PDF document"},
      {"PK\x03\x04", "ZIP archive"},
      {"\x1F\x8B", "gzip archive"},
      {"\x7F"
       "ELF",
       "ELF program"},
      {"SQLite format 3", "SQLite database"},
  };
  for (const Magic& magic : magics) {
    if (bytes.starts_with(magic.start)) return std::string(magic.kind);
  }
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) return "WebP image";
  return "binary data";
}

}  // namespace

std::string_view encoding_name(Encoding encoding) {
  switch (encoding) {
    case Encoding::utf8:
      return "UTF-8";
    case Encoding::utf8_bom:
      return "UTF-8 with byte order mark";
    case Encoding::utf16_le:
      return "UTF-16LE";
    case Encoding::utf16_be:
      return "UTF-16BE";
    case Encoding::bytes:
      return "not UTF-8";
  }
  return "";
}

std::variant<TextFile, BinaryFile> decode_file(std::string_view bytes) {
  const bool little = bytes.starts_with(le_mark), big = bytes.starts_with(be_mark);
  if (little || big) {
    if (auto text = from_utf16(bytes.substr(2), little))
      return TextFile{little ? Encoding::utf16_le : Encoding::utf16_be, std::move(*text)};
    return BinaryFile{binary_kind(bytes)};
  }
  if (bytes.substr(0, sniffed).find('\0') != std::string_view::npos) return BinaryFile{binary_kind(bytes)};
  if (!base::valid_utf8(bytes)) {
    const std::string kind = binary_kind(bytes);
    if (kind != "binary data") return BinaryFile{kind};
    return TextFile{Encoding::bytes, std::string(bytes)};
  }
  if (bytes.starts_with(utf8_mark)) return TextFile{Encoding::utf8_bom, std::string(bytes.substr(utf8_mark.size()))};
  return TextFile{Encoding::utf8, std::string(bytes)};
}

std::string encode_file(Encoding encoding, std::string_view text) {
  switch (encoding) {
    case Encoding::utf8:
    case Encoding::bytes:
      break;
    case Encoding::utf8_bom:
      return std::string(utf8_mark) + std::string(text);
    case Encoding::utf16_le:
      return std::string(le_mark) + to_utf16(text, true);
    case Encoding::utf16_be:
      return std::string(be_mark) + to_utf16(text, false);
  }
  return std::string(text);
}

bool uniformly_crlf(std::string_view text) {
  bool any = false;
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return false;
    any = true;
  }
  return any;
}

std::string crlf_to_lf(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') continue;
    result += text[at];
  }
  return result;
}

std::string lf_to_crlf(std::string_view text) {
  std::string result;
  result.reserve(text.size() + text.size() / 32);
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n' && (at == 0 || text[at - 1] != '\r')) result += '\r';
    result += text[at];
  }
  return result;
}

}  // namespace tools

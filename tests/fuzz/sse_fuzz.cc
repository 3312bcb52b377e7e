// The event stream parser: no cut of the input may change the events.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "llm/sse.h"

namespace {

std::string events_of(std::string_view text, std::size_t step) {
  llm::SseParser parser(4096);
  std::string out;
  const auto keep = [&](const llm::SseEvent& event) {
    out.append(event.name).push_back('\0');
    out.append(event.data).push_back('\1');
    return true;
  };
  for (std::size_t at = 0; at < text.size(); at += step) {
    const std::string piece(text.substr(at, step));  // a copy, so that a view kept too long is seen by the sanitizer
    if (!parser.feed(piece, keep)) return "too long";
  }
  if (!parser.finish(keep)) return "too long";
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const std::string whole = events_of(text, text.size() + 1);
  // The limit is checked per piece, so a too long input may be noticed earlier or later.
  const std::string cut = events_of(text, bytes[0] % 7 + 1);
  if (whole != cut && whole != "too long" && cut != "too long") std::abort();
  return 0;
}

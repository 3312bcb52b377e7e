// The chunk decoder on any events: one a line. An answer it returns must be usable.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "llm/openai_chunk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  std::string streamed;
  const llm::StreamSink sink{[&](std::string_view piece) { streamed += piece; }, nullptr};
  llm::ChunkAssembler assembler(sink);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const auto fed = assembler.feed("", text.substr(0, end), end == std::string_view::npos);
    if (fed == llm::ChunkAssembler::Fed::done || fed == llm::ChunkAssembler::Fed::error) break;
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  const auto result = assembler.finish();
  if (!result) {
    if (result.error().error.message.empty() || result.error().partial.text != streamed) std::abort();
    return 0;
  }
  if (result->message.text != streamed) std::abort();
  std::set<std::string> ids;
  for (const llm::ToolCall& call : result->message.tool_calls) {
    if (call.name.empty() || call.arguments.empty() || !ids.insert(call.id).second || call.id.empty()) std::abort();
  }
  return 0;
}

#include "sandbox/shell_stream.h"

namespace sandbox {
namespace {

constexpr std::size_t piece_limit = 4 * 1024;  // of one line, before it is shown unfinished

// The end of the last whole character.
std::size_t character_border(std::string_view bytes) {
  for (std::size_t back = 1; back <= 4 && back <= bytes.size(); ++back) {
    const unsigned char byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? bytes.size() - back : bytes.size();
  }
  return bytes.size();
}

}  // namespace

void LiveText::append(std::string_view bytes) {
  if (!sink_ || left_ == 0) return;
  pending_.append(bytes);
  std::size_t end = pending_.rfind('\n');
  end = end == std::string::npos ? 0 : end + 1;
  if (pending_.size() - end > piece_limit) end = character_border(pending_);
  emit(std::string_view(pending_).substr(0, end));
  pending_.erase(0, end);
}

void LiveText::finish() {
  if (sink_ && left_ > 0) emit(pending_);
  pending_.clear();
}

void LiveText::emit(std::string_view bytes) {
  if (bytes.empty()) return;
  std::string text = base::clean_terminal_text(bytes);
  if (text.empty()) return;
  if (text.size() > left_)
    text = base::ellipsize(text, left_) + "\n[more output is not shown while the command runs]\n";
  left_ -= std::min(left_, text.size());
  sink_(text);
}

CallOutput::CallOutput(std::size_t stream_limit, SpillFile spill, std::function<void(std::string_view)> sink,
                       std::size_t live_limit)
    : sink_(std::move(sink)),
      live_left_(live_limit),
      out_(stream_limit),
      err_(stream_limit),
      live_out_(sink_, live_left_),
      live_err_(sink_, live_left_),
      spill_(std::move(spill)) {}

void CallOutput::append(base::HeadTail& kept, LiveText& live, std::string_view bytes) {
  kept.append(bytes);
  live.append(bytes);
  if (spilling_) {
    spill_.append(bytes);
    return;
  }
  early_.append(bytes);
  if (!truncated()) return;
  spilling_ = true;
  spill_.append(early_);
  early_ = std::string();
}

void CallOutput::finish() {
  live_out_.finish();
  live_err_.finish();
  spill_.finish();
}

}  // namespace sandbox

#include "llm/sse.h"

#include <cstring>

namespace llm {

namespace {
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
}

// Returns false while the start is still undecided.
bool SseParser::skip_byte_order_mark(std::string_view& bytes) {
  while (mark_ < byte_order_mark.size()) {
    if (bytes.empty()) return false;
    if (bytes.front() != byte_order_mark[mark_]) {
      partial_.assign(byte_order_mark.substr(0, mark_));  // looked like a mark and is content
      break;
    }
    ++mark_;
    bytes.remove_prefix(1);
  }
  mark_ = byte_order_mark.size();
  return true;
}

base::Result<bool> SseParser::feed(std::string_view bytes, const OnEvent& on_event) {
  if (!skip_byte_order_mark(bytes)) return true;
  std::size_t at = 0;
  std::size_t line_feed = 0;  // position of the next \n, looked up once per \n so that CR-only input stays linear
  bool line_feed_known = false;
  while (at < bytes.size()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes[at] == '\n') {
        ++at;
        continue;
      }
    }
    if (!line_feed_known || line_feed < at) {
      line_feed = bytes.find('\n', at);
      line_feed_known = true;
    }
    const std::size_t stop = line_feed == std::string_view::npos ? bytes.size() : line_feed;
    const void* cr = std::memchr(bytes.data() + at, '\r', stop - at);
    const std::size_t end =
        cr != nullptr ? static_cast<std::size_t>(static_cast<const char*>(cr) - bytes.data()) : stop;
    const std::string_view line = bytes.substr(at, end - at);
    const std::size_t held = partial_.size() + data_.size() + (in_view_ ? view_.size() : 0);
    if (held + line.size() > limit_) {
      return base::fail(base::ErrorCode::malformed,
                        "the server sent an event longer than " + std::to_string(limit_) + " bytes");
    }
    if (end == bytes.size()) {  // no line end yet
      partial_.append(line);
      break;
    }
    after_cr_ = bytes[end] == '\r';
    at = end + 1;
    bool go_on;
    if (partial_.empty()) {
      go_on = take_line(line, true, on_event);
    } else {
      partial_.append(line);
      std::string whole;
      whole.swap(partial_);
      go_on = take_line(whole, false, on_event);
      whole.clear();
      partial_.swap(whole);  // keeps the capacity
    }
    if (!go_on) return false;
  }
  keep();
  return true;
}

base::Result<bool> SseParser::finish(const OnEvent& on_event) {
  mark_ = byte_order_mark.size();
  if (!partial_.empty()) {
    std::string last;
    last.swap(partial_);
    if (!take_line(last, false, on_event)) return false;
  }
  return dispatch(on_event);
}

// `stable`: the line stays where it is until feed() returns.
bool SseParser::take_line(std::string_view line, bool stable, const OnEvent& on_event) {
  if (line.empty()) return dispatch(on_event);
  if (line.front() == ':') return true;
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (field == "data") {
    if (!has_data_ && stable) {
      view_ = value;
      in_view_ = true;
    } else {
      keep();
      if (has_data_) data_.push_back('\n');
      data_.append(value);
    }
    has_data_ = true;
  } else if (field == "event") {
    name_.assign(value);
  }
  return true;
}

bool SseParser::dispatch(const OnEvent& on_event) {
  bool go_on = true;
  if (has_data_) go_on = on_event(SseEvent{name_, in_view_ ? view_ : std::string_view(data_)});
  name_.clear();
  data_.clear();
  has_data_ = in_view_ = false;
  return go_on;
}

// The input goes away: what was only looked at is copied.
void SseParser::keep() {
  if (!in_view_) return;
  data_.assign(view_);
  in_view_ = false;
}

}  // namespace llm

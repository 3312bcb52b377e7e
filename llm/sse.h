// Server-sent events, parsed incrementally while the bytes arrive. An own parser because Debian 12 packages no library
// for it, and because model servers deviate from the standard in ways a strict one drops (no space after `data:`, bare
// CR, a byte order mark in two pieces, a last event without its blank line). Facts: the event stream format of the HTML
// standard.
//
// In place: an event whose lines lie in one piece of input is handed out as views of that input; only what straddles
// two pieces, or data of several lines, is copied. One thread; the owner is whoever reads the stream.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace llm {

struct SseEvent {
  std::string_view name;  // the `event:` field, "" when absent
  std::string_view data;  // lines joined by \n
};

class SseParser {
 public:
  // A model's event is a few hundred bytes; whole answers in one event exist. Beyond this it is no answer.
  static constexpr std::size_t default_limit = 8u << 20;
  explicit SseParser(std::size_t event_limit = default_limit) : limit_(event_limit) {}

  // Views are valid during the call only. Return false to stop: the rest of the input is ignored.
  using OnEvent = std::function<bool(const SseEvent&)>;
  // False: stopped by on_event. Fails with malformed when one event is longer than the limit.
  base::Result<bool> feed(std::string_view bytes, const OnEvent& on_event);
  // The stream ended: an event that lacks its blank line counts.
  base::Result<bool> finish(const OnEvent& on_event);

 private:
  bool skip_byte_order_mark(std::string_view& bytes);
  bool take_line(std::string_view line, bool stable, const OnEvent& on_event);
  bool dispatch(const OnEvent& on_event);
  void keep();

  std::size_t limit_;
  std::size_t mark_ = 0;   // bytes of the byte order mark seen; 3 = past it, or none
  bool after_cr_ = false;  // a \n right now belongs to the \r before it
  std::string partial_;    // a line without its end yet
  std::string name_;
  std::string data_;       // kept data, unless view_ holds it
  std::string_view view_;  // the only data line so far, still in the input of this feed()
  bool has_data_ = false, in_view_ = false;
};

}  // namespace llm

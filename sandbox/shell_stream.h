// What becomes of a command's output while it runs: kept head and tail per stream, live text, spill file. One thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "sandbox/shell_spill.h"

namespace sandbox {

// Live output by the line, cleaned; a long line is passed on in pieces cut at character borders. Stops at a limit.
class LiveText {
 public:
  LiveText(const std::function<void(std::string_view)>& sink, std::size_t& left) : sink_(sink), left_(left) {}
  void append(std::string_view bytes);
  void finish();

 private:
  void emit(std::string_view bytes);

  const std::function<void(std::string_view)>& sink_;
  std::size_t& left_;  // shared by the streams of a call
  std::string pending_;
};

class CallOutput {
 public:
  CallOutput(std::size_t stream_limit, SpillFile spill, std::function<void(std::string_view)> sink,
             std::size_t live_limit);
  CallOutput(const CallOutput&) = delete;
  CallOutput& operator=(const CallOutput&) = delete;

  void append_out(std::string_view bytes) { append(out_, live_out_, bytes); }
  void append_err(std::string_view bytes) { append(err_, live_err_, bytes); }
  void finish();

  std::string out() const { return base::clean_terminal_text(out_.text()); }
  std::string err() const { return base::clean_terminal_text(err_.text()); }
  bool truncated() const { return out_.truncated() || err_.truncated(); }
  const SpillFile& spill() const { return spill_; }

 private:
  void append(base::HeadTail& kept, LiveText& live, std::string_view bytes);

  std::function<void(std::string_view)> sink_;
  std::size_t live_left_;
  base::HeadTail out_, err_;
  LiveText live_out_, live_err_;
  std::string early_;  // both streams as they came, until one of them is cut and the spill file takes over
  bool spilling_ = false;
  SpillFile spill_;
};

}  // namespace sandbox

#include "base/log.h"

#include <poll.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>

#include "base/text.h"

namespace base {
namespace {

// PIPE_BUF: a pipe that poll() calls writable takes so much without blocking.
constexpr std::size_t max_record_bytes = 4096;

// Writes to stderr, but drops a message that would block: editors may ignore our stderr, and a full pipe there must not
// stop a turn. Says afterwards how many were dropped.
class NonBlockingStderr final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t record;
    formatter_->format(message, record);
    std::string text(record.data(), record.size());
    if (dropped_ > 0) text = "(" + std::to_string(dropped_) + " earlier messages dropped) " + text;
    if (text.size() > max_record_bytes) text = ellipsize(text, max_record_bytes - 1) + "\n";
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) {
      ++dropped_;
      return;
    }
    dropped_ = 0;
    (void)!::write(STDERR_FILENO, text.data(), text.size());
  }
  void flush_() override {}

 private:
  std::size_t dropped_ = 0;
};

// Made on first use and never destroyed: threads may log until the process is gone.
spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("acp-agent", std::make_shared<NonBlockingStderr>());
    made->set_pattern("acp-agent: %l: %v");
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(spdlog_level(level)); }

void log(LogLevel level, std::string_view message) {
  if (!logger().should_log(spdlog_level(level))) return;
  std::string line = to_utf8(message);
  for (char& c : line) {  // one message, one line: foreign text cannot forge a second one or drive the terminal
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  logger().log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace base

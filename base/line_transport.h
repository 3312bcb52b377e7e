// Lines in, lines out: what a JSON-RPC peer runs on. Implementations: descriptors (stdio, a child's pipes) and an
// in-memory pair. One thread reads, one thread writes; close() from any thread unblocks both.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/fd.h"

namespace base {

enum class ReadLine { line, end, too_long };

class LineTransport {
 public:
  virtual ~LineTransport() = default;
  // Replaces `line` (without the line end). too_long: a line over the limit was skipped in bounded memory; reading goes on.
  virtual ReadLine read(std::string& line) = 0;
  // One whole line, newline added here. False: the other side is gone, or took nothing for `patience`.
  virtual bool write(std::string_view line, std::chrono::milliseconds patience) = 0;
  virtual void close() = 0;
};

inline constexpr std::size_t max_line_bytes = 64u << 20;  // a 20 MB prompt is taken, an endless line is not

std::unique_ptr<LineTransport> fd_transport(Fd in, Fd out, std::size_t line_limit = max_line_bytes);
std::pair<std::unique_ptr<LineTransport>, std::unique_ptr<LineTransport>> memory_transport_pair();

}  // namespace base

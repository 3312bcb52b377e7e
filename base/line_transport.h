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
  // Replaces `line` (without the line end). too_long: a line over the limit was skipped in bounded memory; reading goes
  // on.
  virtual ReadLine read(std::string& line) = 0;
  // One whole line, newline added here. False: the other side is gone, or took nothing for `patience`.
  virtual bool write(std::string_view line, std::chrono::milliseconds patience) = 0;
  // read() returns end from now on, also one that waits; writing goes on. Any thread.
  virtual void stop_reading() = 0;
  // Both ends of it: read() returns end, write() false, also while they wait. The descriptors close with the object.
  virtual void close() = 0;
};

inline constexpr std::size_t max_line_bytes = 64u << 20;  // a 20 MB prompt is taken, an endless line is not

// The protocol on this process's stdin and stdout. Takes both over: afterwards 0 is /dev/null and 1 is stderr, so
// nothing but the transport can write to the client, whatever a library prints. Fails when either is closed. Call once.
Result<std::unique_ptr<LineTransport>> stdio_transport();
// The descriptors may be shared with other processes (stdin and stdout are), so their flags are left as they are.
std::unique_ptr<LineTransport> fd_transport(Fd in, Fd out, std::size_t line_limit = max_line_bytes);
// Each direction holds a few lines, as a pipe does; an end that is closed or destroyed is gone for the other.
std::pair<std::unique_ptr<LineTransport>, std::unique_ptr<LineTransport>> memory_transport_pair(
    std::size_t line_limit = max_line_bytes);

}  // namespace base

// Recorded answers in place of a server: an HttpPost that plays a file. The adapter above it, the request body it
// builds and the parser of the stream are the real ones. Format: docs/recordings.md. Thread-safe; each answer is played
// once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "llm/http.h"

namespace llm {

struct RecordedStep {
  enum class Kind { bytes, wait, hang, cut } kind = Kind::bytes;
  std::string bytes;  // delivered as one read
  std::int64_t wait_ms = 0;
};

struct RecordedAnswer {
  int status = 200;
  std::string match;  // "": any request
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<RecordedStep> steps;
  int line = 0;
};

// invalid_argument names the line.
base::Result<std::vector<RecordedAnswer>> parse_recording(std::string_view text);

// `requests`: a file every request body is appended to, one line each; "": none.
HttpPost make_recorded_post(std::vector<RecordedAnswer> answers, std::string requests);

}  // namespace llm

// Assembles one answer of the chat completions protocol from its decoded events (or from one whole JSON answer).
// Tolerant of what servers really send: tool calls without index, with repeated or missing ids, with names in pieces or
// arguments as an object; usage in any of its forms and places; null and missing members; error objects inside a
// successful stream. One thread; one assembler per answer. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "llm/adapter.h"
#include "llm/message.h"

namespace llm {

class ChunkAssembler {
 public:
  explicit ChunkAssembler(StreamSink sink) : sink_(std::move(sink)) {}

  // What one event was.
  enum class Fed { nothing, content, done, error };  // done: [DONE]; error: failure() says what the server reported
  // `name` is the event's name, "" for most. An event that is no JSON is an error, unless `last`: then it was cut off.
  Fed feed(std::string_view name, std::string_view data, bool last = false);

  // The answer, or why it is none. Only an answer whose end was announced (finish reason or [DONE]) is complete, however
  // the stream ended: of any other nothing is said, and no call is run.
  tl::expected<Completion, ModelError> finish();

  const std::optional<ModelError>& failure() const { return failure_; }
  bool anything_streamed() const { return streamed_; }
  bool ended() const { return done_ || finish_.has_value(); }  // the server said that the answer is complete
  bool empty() const { return events_ == 0; }                  // no event had anything to do with an answer
  Message partial() const;                                     // text and reasoning so far, no calls

 private:
  struct Call {
    std::optional<std::int64_t> index;
    std::string id, name, arguments;
  };

  bool take_choice(const base::Json& choice);
  bool take_delta(const base::Json& delta);
  bool take_content(const base::Json& content);
  void take_call(const base::Json& fragment);
  Call& call_for(const base::Json& fragment, std::string_view id, std::string_view name, bool has_arguments);
  void take_usage(const base::Json& usage);
  bool text(std::string_view piece);
  bool reasoning(std::string_view piece);
  bool grow(std::size_t bytes);
  ModelError incomplete() const;

  const StreamSink sink_;
  std::string text_, reasoning_;
  std::vector<Call> calls_;
  std::optional<std::string> finish_;
  std::optional<Usage> usage_;
  std::optional<ModelError> failure_;
  std::size_t size_ = 0, events_ = 0;
  bool done_ = false, streamed_ = false, oversized_ = false;
};

}  // namespace llm

// Any bytes as a session log: reading, folding, repairing and regenerating neither crash nor loop, what decodes encodes
// to something that decodes to the same, and a repaired log has no open turn and no call without a result.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "agent/log_read.h"
#include "agent/repair.h"

namespace {

class PlainAdapter : public llm::LlmAdapter {
 public:
  std::string encode(const llm::Message& message) const override { return base::quote(message.text); }
  std::string head(const llm::RequestHeader&) const override { return "{\"messages\":["; }
  tl::expected<llm::Completion, llm::ModelError> complete(const llm::RequestHeader&,
                                                          const std::vector<llm::WireMessage>&, const llm::StreamSink&,
                                                          std::stop_token) override {
    return tl::unexpected<llm::ModelError>(llm::ModelError{});
  }
};

void must(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  agent::Fold fold;
  std::vector<agent::Event> events;
  (void)agent::for_each_event(bytes, "log", fold, [&](const agent::Event& event) {
    const std::string line = agent::encode(event);
    auto again = agent::decode(line);
    must(again.has_value() && again->has_value() && agent::encode(**again) == line);
    events.push_back(event);
  });
  if (!fold.has_header()) return 0;
  for (const agent::Payload& payload : agent::repair(fold, "now")) {
    must(fold.check(payload).has_value());
    fold.apply(payload);
  }
  must(!fold.turn_open() && !fold.step_open() && fold.pending_calls().empty() && fold.open_approvals().empty());
  (void)agent::regenerate_requests(events, PlainAdapter());
  return 0;
}

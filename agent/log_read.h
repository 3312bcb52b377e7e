// From the bytes of a log to events and requests. Pure but for find_log/read_log, which look at the disk; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/event.h"
#include "agent/fold.h"

namespace agent {

// Decodes, checks and folds each line, giving it to `each`. Returns the number of lines; corrupt names line and byte.
// What follows the last newline is not looked at.
base::Result<std::int64_t> for_each_event(std::string_view bytes, const std::string& file, Fold& fold,
                                          const std::function<void(const Event&)>& each);

// Encodes the messages that `wire` does not hold yet.
void encode_new(const llm::LlmAdapter& adapter, const Fold& fold, std::vector<llm::WireMessage>& wire);

}  // namespace agent

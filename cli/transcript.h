// A session's log as text for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/event.h"

namespace cli {

std::string transcript(const std::vector<agent::Event>& events);

}  // namespace cli

// Makes an event's text what its line of JSON will say: invalid UTF-8 and NUL become U+FFFD before anything keeps it,
// so that memory and a fresh load of the log hold the same bytes. Text that is already good is not copied. Pure; any
// thread.
#pragma once

#include "agent/event.h"

namespace agent {

void scrub(Payload& payload);

}  // namespace agent

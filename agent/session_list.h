// The kept sessions, read from the header and the last 64 KB of each log (turn/end re-states title and time), so a list
// needs no index and costs the same for long sessions as for short ones. Takes no lock and changes nothing; any thread.
#pragma once

#include <string>
#include <vector>

#include "agent/session.h"

namespace agent {

struct ListedSession {
  std::string id, cwd, title;
  std::string time;  // of the last event
  std::string file;
};

// Newest first. Logs without a readable header are left out.
std::vector<ListedSession> list_sessions(const LogOptions& options);

}  // namespace agent

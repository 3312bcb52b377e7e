#include "agent/context/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>

namespace agent {

std::string platform_text() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{} {}", name.sysname, name.machine);
}

ContextSection environment_section() {
  ContextSection section;
  section.name = "environment";
  section.text = [platform = platform_text()](const Session& session) {
    return fmt::format("Working directory: {}\nPlatform: {}", session.cwd(), platform);
  };
  return section;
}

}  // namespace agent

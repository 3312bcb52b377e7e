// How cordis.yml entries become model routes. Each function reads its config (faults go to the reader), and returns the
// step that makes the route at mount. Adding a protocol: one file that implements LlmAdapter, with its configure
// function, and one line in the table of routes.cc. The protocol list is closed. Pure but for the files that are named;
// any thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/config_reader.h"
#include "base/error.h"
#include "llm/adapter.h"

namespace llm {

using MakeRoute = std::function<base::Result<Route>()>;
using ConfigureRoute = MakeRoute (*)(const std::string& id, base::ConfigReader& config, const base::ConfigWorld& world);

MakeRoute configure_openai_completions(const std::string& id, base::ConfigReader& config,
                                       const base::ConfigWorld& world);
// The same adapter with recorded bytes instead of a socket; chosen_only. `file`: a recording (docs/recordings.md), or
// "builtin" for the demo's. `requests`: a file that every request body is appended to, one line each.
MakeRoute configure_recorded(const std::string& id, base::ConfigReader& config, const base::ConfigWorld& world);

struct RoutePlugin {
  std::string_view name;  // in cordis.yml
  ConfigureRoute configure;
};
std::span<const RoutePlugin> route_plugins();

}  // namespace llm

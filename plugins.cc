#include "plugins.h"

#include "acp/plugin.h"
#include "llm/routes.h"
#include "tools/plugins.h"

namespace plugins {
namespace {

agent::Plugin route(const llm::RoutePlugin& route_plugin) {
  agent::Plugin plugin;
  plugin.name = route_plugin.name;
  plugin.gives = {agent::Seam::route};
  plugin.configure = [configure = route_plugin.configure](base::ConfigReader& config,
                                                          const agent::ConfigureContext& context) -> agent::Mount {
    llm::MakeRoute make = configure(context.entry_id, config, context.world);
    return [make = std::move(make)](agent::Services& services) -> base::Result<void> {
      base::Result<llm::Route> made = make();
      if (!made) return tl::unexpected<base::Error>(made.error());
      services.routes.push_back(std::move(*made));
      return {};
    };
  };
  return plugin;
}

}  // namespace

std::vector<agent::Plugin> table() {
  std::vector<agent::Plugin> all;
  for (const llm::RoutePlugin& plugin : llm::route_plugins()) all.push_back(route(plugin));
  for (std::vector<agent::Plugin> (*list)() : {sandbox_plugins, tools::tool_plugins, session_plugins}) {
    for (agent::Plugin& plugin : list()) all.push_back(std::move(plugin));
  }
  all.push_back(acp::acp_plugin());
  return all;
}

}  // namespace plugins

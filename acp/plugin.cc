#include "acp/plugin.h"

#include <utility>

namespace acp {

agent::Plugin acp_plugin() {
  agent::Plugin plugin;
  plugin.name = "acp";
  plugin.needs = {agent::Seam::log};
  plugin.uses = {agent::Seam::presets, agent::Seam::approval};
  plugin.gives = {agent::Seam::front_end};
  plugin.configure = [](base::ConfigReader& config, const agent::ConfigureContext&) -> agent::Mount {
    std::string surface = config.choice("surface", "editor", {"editor", "automation"});
    return [surface = std::move(surface)](agent::Services& services) -> base::Result<void> {
      services.front_ends.push_back({"acp", surface});
      return {};
    };
  };
  return plugin;
}

}  // namespace acp

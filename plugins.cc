#include "plugins.h"

#include "acp/plugin.h"
#include "llm/routes.h"
#include "tools/plugins.h"

namespace plugins {
namespace {

agent::Plugin route(std::string name, llm::ConfigureRoute configure) {
  agent::Plugin plugin;
  plugin.name = std::move(name);
  plugin.gives = {agent::Seam::route};
  plugin.configure = [configure](base::ConfigReader& config, const agent::ConfigureContext& context) -> agent::Mount {
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
  return {
      route("llm-openai-completions", llm::configure_openai_completions),
      route("llm-recorded", llm::configure_recorded),
      sandbox_policy(),
      sandbox_local(),
      bash_sandbox(),
      bash_local(),
      fs_sandbox(),
      fs_local(),
      fs_observation_policy(),
      user_approval(),
      permission_presets(),
      tools::bash_plugin(),
      tools::fs_plugin(),
      session_log(),
      agent_loop(),
      acp::acp_plugin(),
  };
}

}  // namespace plugins

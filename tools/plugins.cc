#include "tools/plugins.h"

#include "tools/bash.h"
#include "tools/file_tools.h"

namespace tools {

using agent::Seam;

agent::Plugin bash_plugin() {
  agent::Plugin plugin;
  plugin.name = "tool-bash";
  plugin.needs = {Seam::shell};
  plugin.uses = {Seam::approval, Seam::policy};
  plugin.gives = {Seam::tools};
  plugin.configure = [](base::ConfigReader& config, const agent::ConfigureContext&) -> agent::Mount {
    if (config.boolean("background", false))
      config.fault("background",
                   "`background: true` needs a job table, which no plugin gives; delete it or set it to false");
    return [](agent::Services& services) -> base::Result<void> {
      services.tools.push_back(make_bash_tool(services.shell, services.approval));
      return {};
    };
  };
  return plugin;
}

agent::Plugin fs_plugin() {
  agent::Plugin plugin;
  plugin.name = "tool-fs";
  plugin.needs = {Seam::fs};
  plugin.uses = {Seam::approval, Seam::policy, Seam::fs_observation};
  plugin.gives = {Seam::tools};
  plugin.configure = [](base::ConfigReader&, const agent::ConfigureContext&) -> agent::Mount {
    return [](agent::Services& services) -> base::Result<void> {
      auto shared = std::make_shared<FileTools>();
      shared->fs = services.fs;
      shared->approval = services.approval;
      shared->observe = services.fs_observation;
      services.tools.push_back(make_read_tool(shared));
      services.tools.push_back(make_write_tool(shared));
      services.tools.push_back(make_edit_tool(shared));
      return {};
    };
  };
  return plugin;
}

}  // namespace tools

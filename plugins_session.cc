// The entries around a session: consent, presets, the log and the loop.
#include <fmt/format.h>

#include "agent/approval.h"
#include "agent/context/context.h"
#include "agent/context/environment.h"
#include "assets.h"
#include "base/fd.h"
#include "plugins.h"

namespace plugins {
namespace {

using agent::ConfigureContext;
using agent::Mount;
using agent::Seam;
using agent::Services;
using base::ConfigReader;

constexpr std::size_t system_prompt_limit = 256 * 1024;

agent::ApprovalPolicy read_approval(ConfigReader& config, const char* fallback) {
  const std::string text = config.choice("policy", fallback, {"ask", "never"});
  return agent::parse_approval_policy(text).value_or(agent::ApprovalPolicy::ask);
}

std::vector<agent::Preset> shipped_presets() {
  using agent::ApprovalPolicy;
  using sandbox::Mode;
  return {{"read-only", Mode::read_only, ApprovalPolicy::ask},
          {"workspace-write", Mode::workspace_write, ApprovalPolicy::ask},
          {"danger-full-access", Mode::danger_full_access, ApprovalPolicy::never}};
}

std::vector<agent::Preset> read_presets(ConfigReader& config) {
  auto named = config.named_maps("presets");
  if (!config.has("presets")) return shipped_presets();
  std::vector<agent::Preset> presets;
  for (auto& [id, preset] : named) {
    if (id.empty() || id == "custom") {
      preset.fault("mode",
                   "a preset needs a name, and `custom` is what any other combination is shown as; choose another");
    }
    for (const char* key : {"mode", "policy"}) {
      if (!preset.has(key)) preset.fault(key, fmt::format("preset `{}` needs `{}`", id, key));
    }
    const std::string mode = preset.choice("mode", "read-only", {"read-only", "workspace-write", "danger-full-access"});
    const agent::ApprovalPolicy approval = read_approval(preset, "ask");
    presets.push_back({id, sandbox::parse_mode(mode).value_or(sandbox::Mode::read_only), approval});
    preset.finish();
  }
  if (presets.empty()) config.fault("presets", "`presets` is empty; add one, or delete the key for the shipped three");
  return presets;
}

std::string read_system_prompt(ConfigReader& config) {
  const std::optional<std::string> file = config.optional_string("system_prompt");
  if (!file) return std::string(assets::system_md);
  // Not from the working directory: what the model is told is the operator's, as this file is.
  if (file->empty() || file->front() != '/') {
    config.fault("system_prompt", "`system_prompt` must be the absolute path of a file");
    return {};
  }
  base::Result<std::string> text = base::read_file(*file, system_prompt_limit);
  if (!text) {
    config.fault("system_prompt", fmt::format("`system_prompt` cannot be read: {}", text.error().message));
    return {};
  }
  return std::move(*text);
}

std::string route_ids(const Services& services) {
  std::string ids;
  for (const llm::Route& route : services.routes) ids += (ids.empty() ? "" : ", ") + route.id;
  return ids;
}

agent::Plugin user_approval() {
  agent::Plugin plugin;
  plugin.name = "user-approval";
  plugin.gives = {Seam::approval};
  plugin.configure = [](ConfigReader& config, const ConfigureContext& context) -> Mount {
    const agent::ApprovalPolicy policy = context.overrides.approval.value_or(read_approval(config, "ask"));
    return [policy](Services& services) -> base::Result<void> {
      services.approval = std::make_shared<agent::ApprovalService>(policy);
      return {};
    };
  };
  return plugin;
}

agent::Plugin permission_presets() {
  agent::Plugin plugin;
  plugin.name = "permission-presets";
  plugin.needs = {Seam::approval, Seam::policy, Seam::confining_shell};
  plugin.gives = {Seam::presets};
  plugin.configure = [](ConfigReader& config, const ConfigureContext&) -> Mount {
    return [presets = read_presets(config)](Services& services) -> base::Result<void> {
      for (const agent::Preset& preset : presets) {
        for (const agent::Preset& other : services.presets) {
          if (other.id == preset.id) {
            return base::fail(base::ErrorCode::already_exists,
                              fmt::format("another entry has a preset `{}` already", preset.id));
          }
        }
        services.presets.push_back(preset);
      }
      return {};
    };
  };
  return plugin;
}

agent::Plugin session_log() {
  agent::Plugin plugin;
  plugin.name = "session-log";
  plugin.gives = {Seam::log};
  plugin.configure = [](ConfigReader& config, const ConfigureContext& context) -> Mount {
    agent::LogOptions options;
    options.root = config.string("root", context.state_dir.empty() ? "" : context.state_dir + "/sessions");
    if (options.root.empty()) {
      config.fault(
          "root",
          "there is no home folder to keep sessions in; set XDG_STATE_HOME to an absolute path, or `root` here");
    } else if (options.root.front() != '/') {
      config.fault("root", fmt::format("`root` must be an absolute path, not `{}`", options.root));
    }
    options.chunks = config.boolean("chunks", false);
    return [options](Services& services) -> base::Result<void> {
      services.log = options;
      return {};
    };
  };
  return plugin;
}

agent::Plugin agent_loop() {
  agent::Plugin plugin;
  plugin.name = "agent-loop";
  plugin.needs = {Seam::route, Seam::log};
  plugin.uses = {Seam::tools, Seam::policy, Seam::approval, Seam::shell, Seam::fs};
  plugin.gives = {Seam::loop};
  plugin.configure = [](ConfigReader& config, const ConfigureContext&) -> Mount {
    agent::LoopOptions loop;
    loop.max_steps = static_cast<int>(config.integer("max_steps", 500, 1, 1'000'000));
    loop.parallel_reads = static_cast<int>(config.integer("parallel_reads", 10, 1, 64));
    loop.route = config.string("route", "");
    const std::string origin = config.origin("route");
    loop.system = read_system_prompt(config);
    return [loop, origin](Services& services) -> base::Result<void> {
      services.loop = loop;
      if (!loop.route.empty() && !agent::named_route(services, loop.route)) {
        return base::fail(base::ErrorCode::invalid_argument,
                          fmt::format("`route` names `{}`, which is no model route; choose one of: {}{}", loop.route,
                                      route_ids(services), origin));
      }
      // Both policies are always stated, their absence too.
      services.context.push_back(agent::sandbox_policy_section(services));
      services.context.push_back(agent::approval_policy_section(services));
      services.context.push_back(agent::environment_section());
      return {};
    };
  };
  return plugin;
}

}  // namespace

std::vector<agent::Plugin> session_plugins() {
  return {user_approval(), permission_presets(), session_log(), agent_loop()};
}

}  // namespace plugins

// The entries that decide what a call may change: policy, sandbox, shell and file seams.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <optional>

#include "plugins.h"
#include "sandbox/fs.h"
#include "sandbox/local_sandbox.h"
#include "sandbox/shell.h"

namespace plugins {
namespace {

using agent::ConfigureContext;
using agent::Mount;
using agent::Seam;
using agent::Services;
using base::ConfigReader;

constexpr std::int64_t day_ms = 24 * 60 * 60 * 1000;

const std::vector<std::string>& mode_names() {
  static const std::vector<std::string> names = {"read-only", "workspace-write", "danger-full-access"};
  return names;
}

std::string read_root(ConfigReader& config, const ConfigureContext& context) {
  const std::string written = config.string("workspace_root", context.world.cwd);
  if (written.empty() || written.front() != '/') {
    config.fault("workspace_root", fmt::format("`workspace_root` must be an absolute path or !cwd, not `{}`", written));
    return {};
  }
  const base::Result<std::string> root = sandbox::canonical_path(written);
  if (!root) {
    config.fault("workspace_root", fmt::format("`workspace_root` cannot be used: {}", root.error().message));
    return {};
  }
  return *root;
}

std::optional<std::vector<std::string>> read_protect(ConfigReader& config) {
  std::vector<std::string> paths = config.strings("protect", {});
  if (!config.has("protect")) return std::nullopt;
  for (const std::string& path : paths) {
    const bool climbs = ("/" + path + "/").find("/../") != std::string::npos;
    if (path.empty() || path.front() == '/' || climbs) {
      config.fault("protect",
                   fmt::format("`protect` takes paths below the workspace root, without `..`; `{}` is none", path));
    }
  }
  return paths;
}

// sockets: {allow: [docker], deny: [ssh-agent, /run/other.sock]}
sandbox::SocketRules read_sockets(ConfigReader& config) {
  sandbox::SocketRules rules;
  std::optional<ConfigReader> sockets = config.map("sockets");
  if (!sockets) return rules;
  const auto kind_of = [&](const char* key, const std::string& name) {
    const auto kind = sandbox::parse_socket_kind(name);
    if (!kind) {
      sockets->fault(key, fmt::format("`{}` is no kind of socket; `{}` takes {}", name, key,
                                      fmt::join(sandbox::socket_kind_names(), ", ")));
    }
    return kind;
  };
  for (const std::string& name : sockets->strings("allow", {}))
    if (const auto kind = kind_of("allow", name)) std::erase(rules.masked, *kind);
  for (const std::string& name : sockets->strings("deny", {})) {
    if (!name.empty() && name.front() == '/') {
      rules.paths.push_back(name);
    } else if (const auto kind = kind_of("deny", name)) {
      rules.masked.push_back(*kind);
    }
  }
  sockets->finish();
  return rules;
}

// The reference once kept these on the shell. One policy, one owner: the shell and the file fence must not drift apart.
void refuse_policy_keys(ConfigReader& config) {
  std::string move;
  if (config.has("mode")) move += "mode: " + config.string("mode", "");
  if (config.has("workspace_root")) move += (move.empty() ? "" : ", ") + std::string("workspace_root: !cwd");
  for (const char* key : {"mode", "workspace_root"}) {
    config.refuse(
        key, fmt::format("`{}` belongs to the sandbox-policy entry, which the shell and the file tools share: move "
                         "it there (- id: policy, name: sandbox-policy, config: {{{}}})",
                         key, move));
  }
}

sandbox::ShellOptions read_shell(ConfigReader& config, const ConfigureContext& context) {
  sandbox::ShellOptions options;
  const std::int64_t timeout = config.integer("timeout_ms", 120'000, 1, day_ms);
  const std::int64_t longest = config.integer("max_timeout_ms", 600'000, 1, day_ms);
  if (timeout > longest) {
    config.fault("timeout_ms", fmt::format("`timeout_ms` ({}) is over `max_timeout_ms` ({})", timeout, longest));
  }
  options.timeout = std::chrono::milliseconds(timeout);
  options.max_timeout = std::chrono::milliseconds(longest);
  options.pass_env = config.strings("pass_env", {});
  options.call_init = context.call_init;
  return options;
}

base::Result<void> mount_shell(Services& services, sandbox::ShellOptions options,
                               std::shared_ptr<sandbox::Sandbox> sandbox) {
  if (options.call_init.empty()) {
    return base::fail(base::ErrorCode::not_found,
                      "the helper call-init is missing; it belongs beside acp-agent or in ../libexec/acp-agent");
  }
  options.host = services.host;
  for (const llm::Route& route : services.routes) {
    options.strip_env.insert(options.strip_env.end(), route.key_variables.begin(), route.key_variables.end());
  }
  services.shell = std::make_shared<sandbox::ShellExecutor>(std::move(options), std::move(sandbox));
  return {};
}

agent::Plugin sandbox_policy() {
  agent::Plugin plugin;
  plugin.name = "sandbox-policy";
  plugin.gives = {Seam::policy};
  plugin.configure = [](ConfigReader& config, const ConfigureContext& context) -> Mount {
    agent::PolicyDefaults defaults;
    const std::string mode = config.choice("mode", "read-only", mode_names());
    defaults.mode = context.overrides.mode.value_or(sandbox::parse_mode(mode).value_or(sandbox::Mode::read_only));
    defaults.workspace_root = read_root(config, context);
    defaults.protect = read_protect(config);
    defaults.sockets = read_sockets(config);
    return [defaults, written = config.strings("writable", {})](Services& services) -> base::Result<void> {
      agent::PolicyDefaults complete = defaults;
      for (const std::string& folder : written) {
        auto path = sandbox::further_folder(folder, services.host);
        if (!path) return tl::unexpected(path.error());
        complete.writable.push_back(std::move(*path));
      }
      services.policy = std::move(complete);
      return {};
    };
  };
  return plugin;
}

agent::Plugin sandbox_local() {
  agent::Plugin plugin;
  plugin.name = "sandbox-local";
  plugin.needs = {Seam::policy};
  plugin.gives = {Seam::sandbox};
  plugin.configure = [](ConfigReader& config, const ConfigureContext& context) -> Mount {
    sandbox::LocalSandboxOptions options;
    options.chain = config.strings("chain", {});
    if (config.has("chain") && options.chain.empty())
      config.fault("chain", "`chain` is empty; name a backend, or delete the key for the platform's own");
    for (const std::string& backend : options.chain) {
      if (backend != "bwrap" && backend != "landlock" && backend != "seatbelt") {
        config.fault("chain", fmt::format("`{}` is no backend; `chain` takes bwrap, landlock, seatbelt", backend));
      }
    }
    options.runner_command = config.strings("runner_command", {});
    options.runner_failure_signatures = config.strings("runner_failure_signatures", {});
    if (!options.runner_command.empty() && options.runner_command.front().empty()) {
      config.fault("runner_command", "`runner_command` starts with an empty word; write the program first");
    }
    if (!options.runner_command.empty() && options.runner_failure_signatures.empty()) {
      config.fault("runner_command",
                   "`runner_command` needs `runner_failure_signatures`: the texts your runner prints on stderr "
                   "when it fails itself, one or more");
    }
    if (options.runner_command.empty() && config.has("runner_failure_signatures")) {
      config.fault("runner_failure_signatures",
                   "`runner_failure_signatures` is for a `runner_command`, and there is none");
    }
    if (!options.runner_command.empty() && !options.chain.empty()) {
      config.fault("chain", "`runner_command` replaces the chain; delete `chain` or `runner_command`");
    }
    for (const std::string& signature : options.runner_failure_signatures) {
      if (signature.empty() || signature.find_first_of("\r\n") != std::string::npos) {
        config.fault("runner_failure_signatures", "every runner failure signature is one non-empty line");
      }
    }
    options.probe_timeout = std::chrono::milliseconds(config.integer("probe_timeout_ms", 5000, 1, 600'000));
    options.launcher = context.landlock_run;
    options.call_init = context.call_init;
    if (!context.overrides.chain.empty()) {
      options.chain = context.overrides.chain;
      options.runner_command.clear();
      options.runner_failure_signatures.clear();
    }
    return [options](Services& services) -> base::Result<void> {
      sandbox::LocalSandboxOptions own = options;
      own.host = services.host;
      services.sandbox = sandbox::make_local_sandbox(std::move(own));
      return {};
    };
  };
  return plugin;
}

agent::Plugin bash_sandbox() {
  agent::Plugin plugin;
  plugin.name = "bash-sandbox";
  plugin.needs = {Seam::policy, Seam::sandbox};
  plugin.uses = {Seam::route};
  plugin.gives = {Seam::shell, Seam::confining_shell};
  plugin.configure = [](ConfigReader& config, const ConfigureContext& context) -> Mount {
    refuse_policy_keys(config);
    return [options = read_shell(config, context)](Services& services) {
      return mount_shell(services, options, services.sandbox);
    };
  };
  return plugin;
}

agent::Plugin bash_local() {
  agent::Plugin plugin;
  plugin.name = "bash-local";
  plugin.uses = {Seam::route};
  plugin.gives = {Seam::shell};
  plugin.configure = [](ConfigReader& config, const ConfigureContext& context) -> Mount {
    return
        [options = read_shell(config, context)](Services& services) { return mount_shell(services, options, nullptr); };
  };
  return plugin;
}

agent::Plugin fs_sandbox() {
  agent::Plugin plugin;
  plugin.name = "fs-sandbox";
  plugin.needs = {Seam::policy};
  plugin.gives = {Seam::fs};
  plugin.configure = [](ConfigReader&, const ConfigureContext&) -> Mount {
    return [](Services& services) -> base::Result<void> {
      services.fs = sandbox::make_fenced_fs(services.host);
      return {};
    };
  };
  return plugin;
}

agent::Plugin fs_local() {
  agent::Plugin plugin;
  plugin.name = "fs-local";
  plugin.gives = {Seam::fs};
  plugin.configure = [](ConfigReader&, const ConfigureContext&) -> Mount {
    return [](Services& services) -> base::Result<void> {
      services.fs = sandbox::make_local_fs();
      return {};
    };
  };
  return plugin;
}

agent::Plugin fs_observation_policy() {
  agent::Plugin plugin;
  plugin.name = "fs-observation-policy";
  plugin.needs = {Seam::fs};
  plugin.gives = {Seam::fs_observation};
  plugin.configure = [](ConfigReader&, const ConfigureContext&) -> Mount {
    return [](Services& services) -> base::Result<void> {
      services.fs_observation = true;
      return {};
    };
  };
  return plugin;
}

}  // namespace

std::vector<agent::Plugin> sandbox_plugins() {
  return {sandbox_policy(), sandbox_local(), bash_sandbox(),         bash_local(),
          fs_sandbox(),     fs_local(),      fs_observation_policy()};
}

}  // namespace plugins

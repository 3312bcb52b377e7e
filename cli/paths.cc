#include "cli/paths.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "assets.h"
#include "base/fd.h"

namespace cli {
namespace {

constexpr std::size_t config_limit = 1u << 20;

bool is_absolute(const std::string& path) { return !path.empty() && path.front() == '/'; }

std::string xdg_folder(const Env& env, const char* variable, const char* below_home) {
  if (const auto value = env(variable); value && is_absolute(*value)) return *value;
  const std::string home = home_folder(env);
  return home.empty() ? "" : home + below_home;
}

base::Result<ConfigSource> read_config(const std::string& path) {
  base::Result<std::string> text = base::read_file(path, config_limit);
  if (!text) return tl::unexpected<base::Error>(text.error());
  return ConfigSource{path, std::move(*text)};
}

}  // namespace

Env process_env() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (!value) return std::nullopt;
    return std::string(value);
  };
}

std::string home_folder(const Env& env) {
  if (const auto home = env("HOME"); home && is_absolute(*home)) return *home;
  std::vector<char> buffer(16 * 1024);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return {};
  return is_absolute(found->pw_dir) ? found->pw_dir : "";
}

std::string state_folder(const Env& env) {
  const std::string folder = xdg_folder(env, "XDG_STATE_HOME", "/.local/state");
  return folder.empty() ? "" : folder + "/acp-agent";
}

std::string config_folder(const Env& env) {
  const std::string folder = xdg_folder(env, "XDG_CONFIG_HOME", "/.config");
  return folder.empty() ? "" : folder + "/acp-agent";
}

base::Result<ConfigSource> find_config(const std::string& option, const Env& env, const std::string& executable) {
  if (!option.empty()) return read_config(option);
  if (const auto named = env("ACP_AGENT_CONFIG"); named && !named->empty()) {
    if (!is_absolute(*named)) {
      return base::fail(
          base::ErrorCode::invalid_argument,
          fmt::format("ACP_AGENT_CONFIG must be an absolute path, not `{}`: what a relative one names depends on "
                      "the folder an editor starts in",
                      *named));
    }
    return read_config(*named);
  }
  std::vector<std::string> candidates;
  const std::string own = config_folder(env);
  if (!own.empty()) candidates.push_back(own + "/cordis.yml");
  if (const std::size_t slash = executable.rfind('/'); slash != std::string::npos) {
    candidates.push_back(executable.substr(0, slash) + "/../share/acp-agent/cordis.yml");
  }
  for (const std::string& path : candidates) {
    if (access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) continue;
    base::Result<ConfigSource> source = read_config(path);
    // Nobody named this path, and nobody may have written the file.
    if (!source && !own.empty() && path == own + "/cordis.yml") {
      return base::fail(source.error().code, source.error().message +
                                                 "; your own composition is looked for there: set HOME or "
                                                 "XDG_CONFIG_HOME to a folder you may read, or name a "
                                                 "composition with --config or ACP_AGENT_CONFIG");
    }
    return source;
  }
  return ConfigSource{"(built in) cordis.yml", std::string(assets::cordis_yml)};
}

base::Result<void> check_writable(const std::string& folder) {
  std::string existing = folder;
  struct stat info {};
  // Not stat(): a link that leads nowhere is in the way of the folder.
  while (existing.size() > 1 && lstat(existing.c_str(), &info) != 0) {
    if (errno != ENOENT) return base::fail_errno(existing, errno);
    existing.resize(std::max<std::size_t>(existing.rfind('/'), 1));
  }
  std::string trial = existing + "/.acp-agent-trial-XXXXXX";
  if (!mkdtemp(trial.data())) return base::fail_errno(existing, errno);
  rmdir(trial.c_str());
  return {};
}

}  // namespace cli

#include "acp/session_params.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "acp/answers.h"
#include "base/text.h"
#include "sandbox/policy.h"

namespace acp {
namespace {

using Checked = tl::expected<void, base::RpcError>;

tl::unexpected<base::RpcError> wrong(const std::string& path, const std::string& text) {
  return tl::unexpected(invalid_params(path + ": " + text));
}

Checked check_string(const base::Json& object, const char* key, const std::string& path) {
  if (!base::get_string(object, key)) return wrong(path + "." + key, "must be a string");
  return {};
}

// [{name, value}], as env and headers are.
Checked check_pairs(const base::Json& server, const char* key, const std::string& path) {
  const std::string where = path + "." + key;
  const base::Json* list = base::find(server, key);
  if (!list || !list->is_array()) return wrong(where, "must be an array of {name, value}");
  for (std::size_t i = 0; i < list->size(); ++i) {
    const base::Json& pair = (*list)[i];
    const std::string item = where + "[" + std::to_string(i) + "]";
    if (!pair.is_object()) return wrong(item, "must be an object {name, value}");
    for (const char* member : {"name", "value"})
      if (auto checked = check_string(pair, member, item); !checked) return checked;
  }
  return {};
}

Checked check_server(const base::Json& server, const std::string& path) {
  if (!server.is_object()) return wrong(path, "must be an object");
  if (auto checked = check_string(server, "name", path); !checked) return checked;
  const base::Json* type = base::find(server, "type");
  const std::string kind = !type ? "stdio" : base::get_string(server, "type").value_or("");
  if (kind == "http" || kind == "sse") {
    if (auto checked = check_string(server, "url", path); !checked) return checked;
    return check_pairs(server, "headers", path);
  }
  if (kind != "stdio") return wrong(path + ".type", "must be absent, \"http\" or \"sse\"");
  if (auto checked = check_string(server, "command", path); !checked) return checked;
  const base::Json* args = base::find(server, "args");
  if (!args || !args->is_array()) return wrong(path + ".args", "must be an array of strings");
  for (std::size_t i = 0; i < args->size(); ++i)
    if (!(*args)[i].is_string()) return wrong(path + ".args[" + std::to_string(i) + "]", "must be a string");
  return check_pairs(server, "env", path);
}

tl::expected<std::string, base::RpcError> read_cwd(const base::Json& params) {
  const auto cwd = base::get_string(params, "cwd");
  if (!cwd) return wrong("cwd", "must be a string, the absolute path of an existing directory");
  const std::string shown = "\"" + base::ellipsize(*cwd, 300) + "\"";
  if (cwd->empty() || cwd->front() != '/') return wrong("cwd", "must be an absolute path, not " + shown);
  if (cwd->find('\0') != std::string::npos) return wrong("cwd", "must not contain NUL");
  auto canonical = sandbox::canonical_path(*cwd);
  if (!canonical) return wrong("cwd", shown + " is not usable: " + canonical.error().message);
  struct stat info {};
  if (::stat(canonical->c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return wrong("cwd", shown + " is not a directory");
  return std::move(*canonical);
}

// Absent and null are what a client sends that has none.
const base::Json* given(const base::Json& params, const char* key) {
  const base::Json* value = base::find(params, key);
  return value && !value->is_null() ? value : nullptr;
}

}  // namespace

tl::expected<SessionParams, base::RpcError> read_session_params(const base::Json& params) {
  auto cwd = read_cwd(params);
  if (!cwd) return tl::unexpected(std::move(cwd.error()));
  SessionParams read{std::move(*cwd), 0};
  if (const base::Json* servers = given(params, "mcpServers")) {
    if (!servers->is_array()) return wrong("mcpServers", "must be an array");
    for (std::size_t i = 0; i < servers->size(); ++i)
      if (auto checked = check_server((*servers)[i], "mcpServers[" + std::to_string(i) + "]"); !checked)
        return tl::unexpected(std::move(checked.error()));
    read.mcp_servers = servers->size();
  }
  if (const base::Json* more = given(params, "additionalDirectories")) {
    if (!more->is_array()) return wrong("additionalDirectories", "must be an array");
    if (!more->empty())
      return wrong("additionalDirectories",
                   "this agent works in one directory per session (sessionCapabilities.additionalDirectories is not "
                   "advertised); open another session for another directory");
  }
  return read;
}

}  // namespace acp

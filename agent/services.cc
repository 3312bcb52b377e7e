#include "agent/services.h"

#include <fmt/format.h>

namespace agent {

const llm::Route* named_route(const Services& services, const std::string& wanted) {
  for (const llm::Route& route : services.routes) {
    if (route.id == wanted) return &route;
  }
  for (const llm::Route& route : services.routes) {
    if (!route.chosen_only && (route.protocol == wanted || "llm-" + route.protocol == wanted)) return &route;
  }
  return nullptr;
}

Capabilities capabilities(const Services& services) {
  Capabilities found;
  found.shell_confines = services.shell && services.shell->confines();
  found.fs_confines = services.fs && services.fs->confines();
  return found;
}

const llm::Route* choose_route(const Services& services) {
  if (!services.loop.route.empty()) {
    const llm::Route* route = named_route(services, services.loop.route);
    return route && route->ready ? route : nullptr;
  }
  for (const llm::Route& route : services.routes) {
    if (route.ready && !route.chosen_only) return &route;
  }
  return nullptr;
}

std::string route_missing(const Services& services) {
  if (!services.loop.route.empty()) {
    if (const llm::Route* route = named_route(services, services.loop.route)) {
      return fmt::format("The model route `{}` is not ready: {}", route->id, route->missing);
    }
    std::string ids;
    for (const llm::Route& route : services.routes) ids += (ids.empty() ? "" : ", ") + route.id;
    return fmt::format("There is no model route `{}`; choose one of: {}", services.loop.route, ids);
  }
  std::string text = "No model route is ready.";
  for (const llm::Route& route : services.routes) {
    if (!route.chosen_only) text += fmt::format(" {}: {}.", route.id, route.missing);
  }
  return text;
}

sandbox::Policy policy_of(const PolicyDefaults& defaults, std::string workspace_root) {
  sandbox::Policy policy;
  policy.mode = defaults.mode;
  policy.workspace_root = std::move(workspace_root);
  policy.protect = defaults.protect;
  policy.sockets = defaults.sockets;
  policy.writable = defaults.writable;
  return policy;
}

sandbox::Policy resolve_policy(const std::optional<PolicyDefaults>& defaults, const Session& session) {
  sandbox::Policy policy;
  if (defaults) {
    policy = policy_of(*defaults, session.cwd().empty() ? defaults->workspace_root : session.cwd());
    policy.mode = session.settings().mode.value_or(defaults->mode);
    if (!session.cwd().empty()) policy.worktree = session.worktree();
  } else {
    policy.mode = sandbox::Mode::danger_full_access;
    policy.workspace_root = session.cwd();
  }
  policy.session_id = session.id();
  return policy;
}

sandbox::Policy resolve_policy(const Services& services, const Session& session) {
  return resolve_policy(services.policy, session);
}

}  // namespace agent

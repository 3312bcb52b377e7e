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

sandbox::Policy resolve_policy(const Services& services, const Session& session) {
  sandbox::Policy policy;
  policy.session_id = session.id();
  policy.workspace_root = session.cwd();
  if (!services.policy) {
    policy.mode = sandbox::Mode::danger_full_access;
    return policy;
  }
  policy.mode = session.settings().mode.value_or(services.policy->mode);
  if (policy.workspace_root.empty()) policy.workspace_root = services.policy->workspace_root;
  policy.protect = services.policy->protect;
  return policy;
}

}  // namespace agent

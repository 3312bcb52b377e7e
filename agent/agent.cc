#include "agent/agent.h"

#include <fmt/format.h>

#include <map>

#include "agent/driver.h"
#include "agent/tool_table.h"
#include "base/log.h"
#include "base/mutex.h"

namespace agent {

using base::ErrorCode;

struct Agent::State {
  explicit State(const Services& s) : services(s), tools(s.tools, capabilities(s)) {}

  std::shared_ptr<Driver> driver(const std::string& id) {
    base::Lock lock(mutex);
    const auto found = drivers.find(id);
    return found == drivers.end() ? nullptr : found->second;
  }

  base::Result<std::shared_ptr<Session>> adopt(std::shared_ptr<Session> session) {
    base::Lock lock(mutex);
    if (closing) return base::fail(ErrorCode::cancelled, "the agent is shutting down");
    drivers[session->id()] = std::make_shared<Driver>(services, tools, session);
    return session;
  }

  bool is_closing() {
    base::Lock lock(mutex);
    return closing;
  }

  const Services& services;
  const ToolTable tools;
  base::Mutex mutex;                                                         // leaf
  std::map<std::string, std::shared_ptr<Driver>> drivers GUARDED_BY(mutex);  // by session id; live until shutdown
  bool closing GUARDED_BY(mutex) = false;
  base::Mutex shutdown_mutex;  // one shutdown at a time; the only mutex held while joining
};

namespace {

base::Result<LogOptions> log_of(const Services& services) {
  if (services.log) return *services.log;
  return base::fail(ErrorCode::not_found, "no session log is composed; add a `session-log` entry");
}

base::Result<void> same_folder(const std::string& wanted, const std::string& has) {
  if (wanted.empty() || wanted == has) return {};
  auto canonical = sandbox::canonical_path(wanted);
  if (canonical && *canonical == has) return {};
  return base::fail(ErrorCode::invalid_argument,
                    fmt::format("the session belongs to {} and cannot be moved; load it with that cwd", has));
}

sandbox::Mode effective_mode(const Services& services, const Session& session) {
  return resolve_policy(services, session).mode;
}

ApprovalPolicy effective_approval(const Services& services, const Session& session) {
  return services.approval ? services.approval->policy(session) : ApprovalPolicy::never;
}

}  // namespace

Agent::Agent(const Services& services) : state_(std::make_unique<State>(services)) {}
Agent::~Agent() { shutdown(); }

const Services& Agent::services() const { return state_->services; }

base::Result<std::shared_ptr<Session>> Agent::new_session(const std::string& cwd) {
  if (state_->is_closing()) return base::fail(ErrorCode::cancelled, "the agent is shutting down");
  if (choose_route(state_->services) == nullptr) return base::fail(ErrorCode::auth, route_missing(state_->services));
  auto options = log_of(state_->services);
  if (!options) return tl::unexpected<base::Error>(options.error());
  auto session = Session::create(*options, cwd, state_->services.world);
  if (!session) return session;
  return state_->adopt(std::move(*session));
}

base::Result<std::shared_ptr<Session>> Agent::load_session(const std::string& id, const std::string& cwd,
                                                           const std::function<void(const Event&)>& replay) {
  if (state_->is_closing()) return base::fail(ErrorCode::cancelled, "the agent is shutting down");
  auto options = log_of(state_->services);
  if (!options) return tl::unexpected<base::Error>(options.error());

  if (const std::shared_ptr<Driver> live = state_->driver(id)) {
    if (auto good = same_folder(cwd, live->session()->cwd()); !good) return tl::unexpected<base::Error>(good.error());
    if (!live->hold()) return base::fail(ErrorCode::busy, "a prompt of this session is still running; cancel it first");
    auto log = read_log(live->session()->folder() + "/session.jsonl");
    if (log && !log->damage && replay) {
      for (const Event& event : log->events) replay(event);
    }
    live->release();
    if (!log) return tl::unexpected<base::Error>(log.error());
    if (log->damage) return tl::unexpected<base::Error>(*log->damage);
    return live->session();
  }

  // The folder is compared before the session is taken: a wrong cwd must change nothing.
  auto file = find_log(*options, id);
  if (!file) return tl::unexpected<base::Error>(file.error());
  auto header = read_log_header(*file);
  if (!header) return tl::unexpected<base::Error>(header.error());
  if (auto good = same_folder(cwd, header->cwd); !good) return tl::unexpected<base::Error>(good.error());
  auto session = Session::load(*options, id, state_->services.world, replay);
  if (!session) return session;
  return state_->adopt(std::move(*session));
}

std::shared_ptr<Session> Agent::find(const std::string& id) const {
  const std::shared_ptr<Driver> driver = state_->driver(id);
  return driver ? driver->session() : nullptr;
}

base::Result<void> Agent::prompt(const std::string& id, std::vector<ContentBlock> content,
                                 std::function<void(PromptEnd)> done) {
  const std::shared_ptr<Driver> driver = state_->driver(id);
  if (!driver) return base::fail(ErrorCode::not_found, "there is no open session of that id");
  return driver->prompt(std::move(content), std::move(done));
}

void Agent::cancel(const std::string& id, AbortCause cause) {
  if (const std::shared_ptr<Driver> driver = state_->driver(id)) driver->cancel(cause);
}

base::Result<void> Agent::set_preset(const std::string& id, const std::string& preset) {
  const Services& services = state_->services;
  const std::shared_ptr<Session> session = find(id);
  if (!session) return base::fail(ErrorCode::not_found, "there is no open session of that id");
  for (const Preset& one : services.presets) {
    if (one.id != preset) continue;
    std::vector<Payload> changes;
    if (effective_mode(services, *session) != one.mode) changes.emplace_back(event::SandboxMode{one.mode});
    if (effective_approval(services, *session) != one.approval) {
      changes.emplace_back(event::ApprovalPolicySet{one.approval});
    }
    if (!changes.empty() || current_preset(*session) != preset) changes.emplace_back(event::PermissionPreset{preset});
    return session->append_all(std::move(changes));
  }
  std::string names;
  for (const Preset& one : services.presets) names += (names.empty() ? "" : ", ") + one.id;
  return base::fail(ErrorCode::invalid_argument,
                    fmt::format("unknown mode; choose one of: {}", names.empty() ? "(none is composed)" : names));
}

std::string Agent::current_preset(const Session& session) const {
  const Services& services = state_->services;
  const sandbox::Mode mode = effective_mode(services, session);
  const ApprovalPolicy approval = effective_approval(services, session);
  const auto fits = [&](const Preset& preset) { return preset.mode == mode && preset.approval == approval; };
  const std::optional<std::string> chosen = session.settings().preset;
  for (const Preset& preset : services.presets) {
    if (chosen == preset.id && fits(preset)) return preset.id;
  }
  for (const Preset& preset : services.presets) {
    if (fits(preset)) return preset.id;
  }
  return "custom";
}

CallView Agent::view(const event::ToolCall& call, const std::string& cwd) const {
  return state_->tools.view(call, cwd);
}

CallView Agent::view(const event::ToolCall& call, const event::ToolResult& result, const std::string& cwd) const {
  return state_->tools.view(call, result, cwd);
}

void Agent::shutdown() {
  base::Lock one(state_->shutdown_mutex);
  std::vector<std::shared_ptr<Driver>> all;
  {
    base::Lock lock(state_->mutex);
    state_->closing = true;
    for (const auto& [id, driver] : state_->drivers) all.push_back(driver);
  }
  if (state_->services.shell) state_->services.shell->shutdown();
  for (const auto& driver : all) driver->begin_shutdown();
  for (const auto& driver : all) driver->join();
  for (const auto& driver : all) {
    if (auto synced = driver->session()->sync(); !synced) base::log_error(synced.error().message);
  }
  base::Lock lock(state_->mutex);
  state_->drivers.clear();
}

}  // namespace agent

// What a composition contains: a plain struct with named fields, const once everything is mounted. Adding a seam is
// adding a field here and a Seam in plugin.h. Owned by main for the life of the process.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/approval.h"
#include "agent/session.h"
#include "agent/tool.h"
#include "base/clock.h"
#include "llm/adapter.h"
#include "sandbox/fs.h"
#include "sandbox/sandbox.h"
#include "sandbox/shell.h"

namespace agent {

// Mode default and root of the composition; absent = every call carries {danger-full-access, session cwd}.
struct PolicyDefaults {
  sandbox::Mode mode = sandbox::Mode::read_only;
  std::string workspace_root;
  std::optional<std::vector<std::string>> protect;  // absent: the default list
  sandbox::SocketRules sockets{};
  std::vector<std::string> writable{};  // further folders
};
// What a call gets under these defaults.
sandbox::Policy policy_of(const PolicyDefaults& defaults, std::string workspace_root);

struct Preset {
  std::string id;
  sandbox::Mode mode;
  ApprovalPolicy approval;
};

// One named section of the runtime context message (contract.md 3). Called before every step; pure in the session's
// state. An empty text contributes nothing.
struct ContextSection {
  std::string name;  // "sandbox:policy"
  std::function<std::string(const Session&)> text;
  int order = 100;  // smaller comes first; equal: in the order of mounting
};

struct LoopOptions {
  int max_steps = 500;
  int parallel_reads = 10;
  std::string route;   // chosen route id or plugin kind; "" = the first that is ready and not chosen_only
  std::string system;  // system prompt
  std::vector<std::int64_t> retry_delays_ms{500, 1000, 2000, 4000, 8000};  // one per retry; jitter is added
};

// A fact that a plugin mounted later may still turn on: copies share it, and a copy outlives a moved Services.
class SharedFlag {
 public:
  SharedFlag& operator=(bool value) {
    *value_ = value;
    return *this;
  }
  operator bool() const { return *value_; }

 private:
  std::shared_ptr<std::atomic<bool>> value_ = std::make_shared<std::atomic<bool>>(false);
};

struct FrontEnd {
  std::string name;
  std::string surface;
};

struct Services {
  std::vector<llm::Route> routes;
  std::optional<PolicyDefaults> policy;
  std::shared_ptr<sandbox::Sandbox> sandbox;
  std::shared_ptr<sandbox::ShellExecutor> shell;
  std::shared_ptr<sandbox::Fs> fs;
  SharedFlag fs_observation;  // read before change is enforced
  std::shared_ptr<ApprovalService> approval;
  std::vector<Preset> presets;
  std::vector<std::shared_ptr<Tool>> tools;
  std::vector<ContextSection> context;  // in order
  std::optional<LogOptions> log;
  std::vector<FrontEnd> front_ends;
  LoopOptions loop;
  base::World world;
  sandbox::Host host;
};

Capabilities capabilities(const Services& services);
// By entry id; a plugin's or protocol's name stands for its first route. Null: none.
const llm::Route* named_route(const Services& services, const std::string& wanted);
const llm::Route* choose_route(const Services& services);  // null: none ready; see route_missing()
std::string route_missing(const Services& services);       // what to set
// Approved one-shot mode > last event of the session > default; the session's cwd > the configured root.
sandbox::Policy resolve_policy(const Services& services, const Session& session);
sandbox::Policy resolve_policy(const std::optional<PolicyDefaults>& defaults, const Session& session);

}  // namespace agent

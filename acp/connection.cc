#include "acp/connection.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace acp {
namespace {

std::string title_of(const std::string& id) {
  std::string title = id;
  std::replace(title.begin(), title.end(), '-', ' ');
  if (!title.empty() && title[0] >= 'a' && title[0] <= 'z') title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return title;
}

std::string describe(const agent::Preset& preset) {
  std::string text;
  switch (preset.mode) {
    case sandbox::Mode::read_only:
      text = "Commands and edits cannot change files";
      break;
    case sandbox::Mode::workspace_write:
      text = "Commands and edits can change files in the workspace and in /tmp";
      break;
    case sandbox::Mode::danger_full_access:
      text = "Commands and edits can change every file you can";
      break;
  }
  switch (preset.approval) {
    case agent::ApprovalPolicy::ask:
      return text + "; wider access is asked for, call by call.";
    case agent::ApprovalPolicy::never:
      return text + "; nothing is asked.";
  }
  return text;
}

}  // namespace

std::shared_ptr<OpenSession> Connection::find(const std::string& id) {
  base::Lock lock(mutex);
  const auto found = sessions.find(id);
  return found == sessions.end() ? nullptr : found->second;
}

std::shared_ptr<OpenSession> Connection::keep(std::shared_ptr<agent::Session> session) {
  base::Lock lock(mutex);
  auto& slot = sessions[session->id()];
  if (!slot || slot->session != session) slot = std::make_shared<OpenSession>(std::move(session));
  return slot;
}

void Connection::update(const std::string& session_id, base::Json&& update, std::string merge_key) {
  peer->notify("session/update", {{"sessionId", session_id}, {"update", std::move(update)}},
               {session_id, std::move(merge_key), merge_update});
}

std::shared_ptr<Projector> Connection::projector(const agent::Session& session) {
  const std::string cwd = session.cwd();
  Views views;
  views.call = [this, cwd](const agent::event::ToolCall& call) { return agent.view(call, cwd); };
  views.result = [this, cwd](const agent::event::ToolCall& call, const agent::event::ToolResult& result) {
    return agent.view(call, result, cwd);
  };
  views.context_window = [this](const std::string& route) -> std::int64_t {
    for (const auto& candidate : agent.services().routes)
      if (candidate.id == route) return candidate.context_window;
    return 0;
  };
  if (options.presets) views.mode = [this, of = &session] { return agent.current_preset(*of); };
  return std::make_shared<Projector>(std::move(views),
                                     [this, session_id = session.id()](base::Json&& shown, std::string key) {
                                       update(session_id, std::move(shown), std::move(key));
                                     });
}

void Connection::observe(const std::shared_ptr<OpenSession>& open, const std::shared_ptr<Projector>& projector) {
  // The session outlives this connection: it holds it weakly, and the projector's plain pointer is used only under
  // that.
  const std::weak_ptr<Connection> weak = weak_from_this();
  agent::Observer observer;
  observer.on_event = [weak, projector](const agent::Event& event) {
    if (const auto self = weak.lock()) projector->live(event);
  };
  observer.on_delta = [weak, projector](const agent::LiveDelta& delta) {
    if (const auto self = weak.lock()) projector->delta(delta);
  };
  observer.wait_drained = [weak](std::stop_token stop) {
    if (const auto self = weak.lock()) self->peer->wait_drained(std::move(stop));
  };
  open->session->set_observer(std::move(observer));
}

base::Json Connection::modes(const agent::Session& session) const {
  const std::string current = agent.current_preset(session);
  base::Json available = base::Json::array();
  bool listed = false;
  for (const auto& preset : agent.services().presets) {
    listed = listed || preset.id == current;
    available.push_back({{"id", preset.id}, {"name", title_of(preset.id)}, {"description", describe(preset)}});
  }
  // Shown while it lasts, so that a client finds the current mode among those it knows; it cannot be chosen.
  if (!listed)
    available.push_back({{"id", current},
                         {"name", title_of(current)},
                         {"description", "A combination of sandbox mode and approval policy that is no preset."}});
  return {{"currentModeId", current}, {"availableModes", std::move(available)}};
}

}  // namespace acp

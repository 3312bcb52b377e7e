// `acp-agent sessions list|show|requests|export`: kept sessions, read without taking them.
#include <fmt/format.h>

#include "agent/session_list.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/transcript.h"

namespace cli {
namespace {

constexpr std::size_t listed_title_bytes = 70;

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return base::ellipsize(text, listed_title_bytes);
}

// The route that made the requests; after a change of the composition the chosen one speaks the same wire.
const llm::Route* route_of(const agent::Services& services, const std::vector<agent::Event>& events) {
  for (const agent::Event& event : events) {
    if (const auto* header = std::get_if<agent::event::RequestHeader>(&event.payload)) {
      if (const llm::Route* route = agent::named_route(services, header->route)) return route;
    }
  }
  return services.routes.empty() ? nullptr : &services.routes.front();
}

std::string text_of(const Options& options, const agent::Services& services, const std::vector<agent::Event>& events) {
  std::string text;
  switch (options.action) {
    case SessionsAction::list:
      break;
    case SessionsAction::show:
      return transcript(events);
    case SessionsAction::export_log:
      for (const agent::Event& event : events) text += agent::encode(event) + "\n";
      break;
    case SessionsAction::requests:
      if (const llm::Route* route = route_of(services, events)) {
        for (const std::string& body : agent::regenerate_requests(events, *route->adapter)) text += body + "\n";
      }
      break;
  }
  return text;
}

}  // namespace

int sessions(const Program& program, const Options& options) {
  const Loaded loaded = load(program, options);
  if (!sound_for(loaded, program, agent::Seam::log)) return exit_status::usage;
  const agent::Services& services = loaded.composition.services;

  if (options.action == SessionsAction::list) {
    std::string text;
    for (const agent::ListedSession& session : agent::list_sessions(*services.log)) {
      text += fmt::format("{}  {}  {}  {}\n", session.id, session.time, session.cwd, one_line(session.title));
    }
    return print(text) ? exit_status::done : exit_status::failed;
  }

  const base::Result<std::string> file = agent::find_log(*services.log, options.session);
  if (!file) {
    note("acp-agent sessions: " + file.error().message);
    return exit_status::usage;
  }
  const base::Result<agent::ReadLog> log = agent::read_log(*file);
  if (!log) {
    note("acp-agent sessions: " + log.error().message);
    return exit_status::failed;
  }
  if (!print(text_of(options, services, log->events))) return exit_status::failed;
  if (!log->damage) return exit_status::done;
  note("acp-agent sessions: " + log->damage->message + "; this is everything before it");
  return exit_status::failed;
}

}  // namespace cli

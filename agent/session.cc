#include "agent/session.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "agent/fold.h"
#include "agent/log.h"
#include "agent/log_read.h"
#include "agent/repair.h"
#include "agent/scrub.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/text.h"
#include "sandbox/git_folder.h"

namespace agent {

using base::ErrorCode;

struct Session::State {
  explicit State(base::World w) : world(std::move(w)) {}

  base::Result<void> append(std::vector<Payload> payloads) {
    for (Payload& payload : payloads) scrub(payload);
    base::Lock order(order_mutex);
    std::vector<Event> events;
    std::string lines;
    for (Payload& payload : payloads) {
      Event event{next_seq + static_cast<std::int64_t>(events.size()), world.now(), std::move(payload)};
      if (!events.empty()) lines += '\n';
      lines += encode(event);
      events.push_back(std::move(event));
    }
    {
      // Each against the state before all of them: events that go together do not depend on one another.
      base::Lock lock(mutex);
      for (const Event& event : events) {
        if (auto good = fold.check(event.payload); !good) {
          base::log_error("an event was not logged: " + good.error().message);
          return base::fail(ErrorCode::internal, "an event was not logged: " + good.error().message);
        }
      }
    }
    if (auto written = file->append(lines); !written) return written;
    next_seq += static_cast<std::int64_t>(events.size());
    {
      base::Lock lock(mutex);
      for (const Event& event : events) fold.apply(event.payload);
    }
    if (observer.on_event) {
      for (const Event& event : events) observer.on_event(event);
    }
    return {};
  }

  base::World world;
  std::unique_ptr<LogFile> file;
  std::string id, cwd, worktree;

  // The session mutex: number, write, observers in order. Taken before `mutex` and before any queue's.
  base::Mutex order_mutex;
  std::int64_t next_seq GUARDED_BY(order_mutex) = 1;
  Observer observer GUARDED_BY(order_mutex);

  base::Mutex mutex;  // leaf: the fold and what is derived from it
  Fold fold GUARDED_BY(mutex);
  std::vector<llm::WireMessage> wire GUARDED_BY(mutex);
  std::shared_ptr<llm::LlmAdapter> wire_adapter GUARDED_BY(mutex);
};

Session::Session() = default;
Session::~Session() = default;

base::Result<std::shared_ptr<Session>> Session::create(const LogOptions& options, const std::string& cwd,
                                                       base::World world) {
  auto canonical = sandbox::canonical_path(cwd);
  if (!canonical) return tl::unexpected<base::Error>(canonical.error());
  if (!base::valid_utf8(*canonical)) {
    return base::fail(ErrorCode::invalid_argument, "the session's folder has a name that is not UTF-8");
  }
  std::shared_ptr<Session> session(new Session);
  session->state_ = std::make_unique<State>(std::move(world));
  State& state = *session->state_;
  state.id = state.world.new_id();
  state.cwd = *canonical;
  auto file = LogFile::create(options.root, cwd_slug(*canonical), state.id);
  if (!file) {
    base::Error error = file.error();
    error.message = cannot_keep_sessions(options.root, error.message);
    return tl::unexpected(std::move(error));
  }
  state.file = std::move(*file);
  event::Header header{state.id, state.cwd, state.world.now()};
  if (const std::string worktree = sandbox::linked_worktree(state.cwd); base::valid_utf8(worktree))
    state.worktree = header.worktree = worktree;
  if (auto good = session->append(std::move(header)); !good) {
    return tl::unexpected<base::Error>(good.error());
  }
  return session;
}

base::Result<std::shared_ptr<Session>> Session::load(const LogOptions& options, const std::string& id,
                                                     base::World world,
                                                     const std::function<void(const Event&)>& replay) {
  auto found = find_log(options, id);
  if (!found) return tl::unexpected<base::Error>(found.error());
  auto file = LogFile::open(found->substr(0, found->rfind('/')));
  if (!file) return tl::unexpected<base::Error>(file.error());
  if ((*file)->cut() > 0) {
    base::log_warning(fmt::format("{}: {} bytes of an unfinished last line were cut", *found, (*file)->cut()));
  }
  auto bytes = (*file)->read();
  if (!bytes) return tl::unexpected<base::Error>(bytes.error());

  std::shared_ptr<Session> session(new Session);
  session->state_ = std::make_unique<State>(std::move(world));
  State& state = *session->state_;
  state.file = std::move(*file);
  {
    // Nobody else has the session yet; the locks are for the annotations' sake.
    base::Lock order(state.order_mutex);
    base::Lock lock(state.mutex);
    auto lines = for_each_event(*bytes, *found, state.fold, replay);
    if (!lines) return tl::unexpected<base::Error>(lines.error());
    state.next_seq = *lines + 1;
    state.id = state.fold.header().id;
    state.cwd = state.fold.header().cwd;
    state.worktree = state.fold.header().worktree;
    state.observer.on_event = replay;
  }
  if (state.id != id) {
    return base::fail(ErrorCode::corrupt, fmt::format("{}: line 1 names the session \"{}\"", *found, state.id));
  }
  std::vector<Payload> repairs;
  {
    base::Lock lock(state.mutex);
    repairs = repair(state.fold, state.world.now());
  }
  for (Payload& payload : repairs) {
    if (auto good = session->append(std::move(payload)); !good) return tl::unexpected<base::Error>(good.error());
  }
  session->set_observer({});
  return session;
}

const std::string& Session::id() const { return state_->id; }
const std::string& Session::cwd() const { return state_->cwd; }
const std::string& Session::worktree() const { return state_->worktree; }
const std::string& Session::folder() const { return state_->file->folder(); }
const base::World& Session::world() const { return state_->world; }

base::Result<void> Session::append(Payload payload) {
  std::vector<Payload> one;
  one.push_back(std::move(payload));
  return state_->append(std::move(one));
}

base::Result<void> Session::append_all(std::vector<Payload> payloads) {
  if (payloads.empty()) return {};
  return state_->append(std::move(payloads));
}

base::Result<void> Session::sync() { return state_->file->sync(); }

base::Result<void> Session::abandon_turn(const base::Error& error) {
  std::vector<Payload> events;
  {
    base::Lock lock(state_->mutex);
    if (state_->fold.turn_open()) events = repair(state_->fold, state_->world.now(), error);
  }
  for (Payload& payload : events) {
    if (auto good = append(std::move(payload)); !good) return good;
  }
  return {};
}

void Session::set_observer(Observer observer) {
  base::Lock order(state_->order_mutex);
  state_->observer = std::move(observer);
}

void Session::delta(const LiveDelta& delta) {
  base::Lock order(state_->order_mutex);
  if (state_->observer.on_delta) state_->observer.on_delta(delta);
}

void Session::wait_drained(std::stop_token stop) {
  std::function<void(std::stop_token)> wait;
  {
    base::Lock order(state_->order_mutex);
    wait = state_->observer.wait_drained;
  }
  if (wait) wait(std::move(stop));
}

Settings Session::settings() const {
  base::Lock lock(state_->mutex);
  return state_->fold.settings();
}

std::string Session::title() const {
  base::Lock lock(state_->mutex);
  return state_->fold.title();
}

std::int64_t Session::next_turn() const {
  base::Lock lock(state_->mutex);
  return state_->fold.next_turn();
}

bool Session::turn_open() const {
  base::Lock lock(state_->mutex);
  return state_->fold.turn_open();
}

std::vector<event::InboxItem> Session::inbox() const {
  base::Lock lock(state_->mutex);
  return state_->fold.inbox();
}

std::optional<event::UserMessage> Session::last_context() const {
  base::Lock lock(state_->mutex);
  return state_->fold.last_context();
}

std::optional<event::RequestHeader> Session::last_header() const {
  base::Lock lock(state_->mutex);
  return state_->fold.last_header();
}

std::optional<std::string> Session::last_user_text() const {
  base::Lock lock(state_->mutex);
  return state_->fold.last_user_text();
}

std::vector<llm::WireMessage> Session::wire_messages(const std::shared_ptr<llm::LlmAdapter>& adapter) {
  base::Lock lock(state_->mutex);
  if (state_->wire_adapter != adapter) {
    state_->wire.clear();
    state_->wire_adapter = adapter;
  }
  encode_new(*adapter, state_->fold, state_->wire);
  return state_->wire;
}

bool Session::call_id_used(const std::string& call_id) const {
  base::Lock lock(state_->mutex);
  return state_->fold.call_id_used(call_id);
}

bool Session::denied_before(const std::string& tool_name, const std::string& key) const {
  base::Lock lock(state_->mutex);
  return state_->fold.denied(tool_name, key);
}

bool Session::rejected_in_turn(const std::string& tool_name, const base::Json& arguments) const {
  const SameCall call = SameCall::of(tool_name, arguments);
  base::Lock lock(state_->mutex);
  return state_->fold.rejected_in_turn(call);
}

}  // namespace agent

// One session: its log file (one writer, lock file) and the folds of it. Appending numbers, writes and tells observers
// in order under one mutex; fdatasync happens outside it. Any thread may append; getters return values. The session
// mutex is taken before any queue's; observers must not append and must not block. They may call getters, which take
// another, leaf mutex.
//
// append() also keeps the grammar of a log (docs/log-format.md): an event that would break it (a second result for a
// call, a message before every call has its result, a step outside a turn) is refused with `internal` and nothing is
// written. So in every request each call has exactly one result.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/event.h"
#include "base/clock.h"
#include "base/error.h"

namespace agent {

// What is not logged but shown while it happens.
struct LiveDelta {
  enum class Kind { text, thought, tool_output } kind = Kind::text;
  std::string id;  // message id, or call id
  std::string_view text;
};

struct Observer {
  std::function<void(const Event&)> on_event;
  std::function<void(const LiveDelta&)> on_delta;
  // Backpressure: called by the driver between deltas, holding no lock, before it reads more from the model. Returns
  // when the front end's queue is short again, or on stop. May be empty.
  std::function<void(std::stop_token)> wait_drained;
};

// A per-session setting is its last event; empty = the composition's default.
struct Settings {
  std::optional<sandbox::Mode> mode;
  std::optional<ApprovalPolicy> approval;
  std::optional<std::string> preset;
};

struct LogOptions {
  std::string root;  // <state>/sessions
  bool chunks = false;
};

class Session {
 public:
  // <root>/<cwd slug>/<id>/session.jsonl, folders 0700, file 0600, locked.
  static base::Result<std::shared_ptr<Session>> create(const LogOptions& options, const std::string& cwd,
                                                       base::World world);
  // Finds the session by id, cuts a torn tail, refuses damage before it (corrupt, naming line and byte), closes an open
  // turn as interrupted with results for its calls that say whether they started. busy when another process has it.
  // The events are given to `replay` in order, after that repair.
  static base::Result<std::shared_ptr<Session>> load(const LogOptions& options, const std::string& id,
                                                     base::World world,
                                                     const std::function<void(const Event&)>& replay);
  ~Session();

  const std::string& id() const;
  const std::string& cwd() const;       // canonical, immutable
  const std::string& worktree() const;  // of the header; immutable
  const std::string& folder() const;    // beside the log: spill files, large contents
  const base::World& world() const;

  // A log that cannot be written fails here, and every later append fails with the same error.
  base::Result<void> append(Payload payload);
  // Several events that belong together: one write, and no getter sees some of them.
  base::Result<void> append_all(std::vector<Payload> payloads);
  base::Result<void> sync();
  // Closes an open turn with this error, giving every open call its result: after a fault of ours, so that the session
  // can go on. Does nothing when no turn is open.
  base::Result<void> abandon_turn(const base::Error& error);

  void set_observer(Observer observer);     // one (the front end); replaces
  void delta(const LiveDelta& delta);       // to the observer, in order with events
  void wait_drained(std::stop_token stop);  // the observer's; holds no lock

  Settings settings() const;
  std::string title() const;
  std::int64_t next_turn() const;
  bool turn_open() const;

  // The retained conversation and what enters it next.
  std::vector<event::InboxItem> inbox() const;
  std::optional<event::UserMessage> last_context() const;  // newest retained message with a snapshot source
  std::optional<event::RequestHeader> last_header() const;
  std::optional<std::string> last_user_text() const;
  // The messages of the next request, each encoded once by `adapter` and kept (re-encoded when the adapter changes).
  std::vector<llm::WireMessage> wire_messages(const std::shared_ptr<llm::LlmAdapter>& adapter);
  bool call_id_used(const std::string& call_id) const;

  // `grounded`: an earlier result of this session was denied for the same tool and key (path, or command + workdir).
  bool denied_before(const std::string& tool_name, const std::string& key) const;
  // In this turn the user rejected a call of this tool with JSON-equal arguments, escalation fields left out.
  bool rejected_in_turn(const std::string& tool_name, const base::Json& arguments) const;

 private:
  Session();
  struct State;
  std::unique_ptr<State> state_;
};

// Reads a log without taking it: everything before the first damage. For sessions list/show/requests and replay.
struct ReadLog {
  std::vector<Event> events;
  std::optional<base::Error> damage;
};
base::Result<ReadLog> read_log(const std::string& file);
base::Result<std::string> find_log(const LogOptions& options, const std::string& id);
base::Result<event::Header> read_log_header(const std::string& file);
// Every request body that was sent, in order, byte for byte: one for each llm/retry, one for each assistant/message
// (also an interrupted one), one for a turn/end {error} whose step got no answer. A step cut off by the death of the
// process counts only when its answer was logged.
std::vector<std::string> regenerate_requests(const std::vector<Event>& events, const llm::LlmAdapter& adapter);

}  // namespace agent

// What a client is shown of a session: agent events and live deltas in, `update` objects of session/update out. The
// same code serves live turns and the replay of session/load, so that a replay folds to what was shown live. Pure but
// for its own fold. Not thread-safe: live, the session calls its observer in order under its mutex; a replay runs
// before the session is given an observer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/event.h"
#include "agent/session.h"
#include "agent/tool.h"
#include "base/json.h"

namespace acp {

// Facts of the composition, as functions.
struct Views {
  std::function<agent::CallView(const agent::event::ToolCall&)> call;
  std::function<agent::CallView(const agent::event::ToolCall&, const agent::event::ToolResult&)> result;
  std::function<std::int64_t(const std::string& route)> context_window;  // 0: unknown
  std::function<std::string()> mode;  // the session's current one; null: modes are not offered
};

// The members of a call as tool_call, tool_call_update and session/request_permission show it, all bounded.
base::Json call_members(const agent::event::ToolCall& call, const agent::CallView& view);

base::Json text_content(std::string text);
// A content block for each diff, bounded together; one that is too large is said in words and by its beginning.
base::Json diff_content(const std::vector<agent::Diff>& diffs);

// For base::Merge: joins the texts of message chunks, folds a later update of a call into the queued one, replaces
// others.
void merge_update(base::Json& queued_params, base::Json&& later_params);

class Projector {
 public:
  // merge_key: updates with an equal one may be merged by the queue; empty = never.
  using Emit = std::function<void(base::Json&& update, std::string merge_key)>;

  Projector(Views views, Emit emit);

  void replay(const agent::Event& event);
  void finish_replay();  // the last title and usage
  void live(const agent::Event& event);
  void delta(const agent::LiveDelta& delta);

 private:
  struct Visitor;
  struct Streamed {
    std::size_t text = 0, thought = 0;
  };
  struct Known {
    agent::event::ToolCall call;
    bool shown = false;
  };

  void chunk(const char* kind, const std::string& message_id, std::string_view text, std::size_t& sent);
  void message(const std::string& message_id, std::string_view thought, std::string_view text);
  void show_call(Known& known);
  void started(const std::string& call_id);
  void title(const std::string& title, const std::string& time);
  void usage();
  void mode();

  Views views_;
  Emit emit_;
  std::map<std::string, Streamed> streamed_;  // messages not committed yet
  std::map<std::string, Known> calls_;        // calls without a result yet
  std::map<std::string, std::string> asked_;  // open questions: id to call
  std::string mode_, title_, shown_title_, title_time_;
  std::int64_t used_ = 0, window_ = 0;
  bool replaying_ = false;
};

}  // namespace acp

#include "acp/projection.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "acp/bounds.h"
#include "acp/prompt_content.h"
#include "agent/approval.h"
#include "base/text.h"

namespace acp {
namespace {

namespace event = agent::event;

// The closed list of the protocol; anything else would make strict clients drop the whole message.
const std::string& checked_kind(const std::string& kind) {
  static const std::array<std::string, 10> kinds{"read",    "edit",  "delete", "move",        "search",
                                                 "execute", "think", "fetch",  "switch_mode", "other"};
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  return found == kinds.end() ? kinds.back() : *found;
}

base::Json locations(const std::vector<agent::Location>& list) {
  base::Json array = base::Json::array();
  std::size_t bytes = 0;
  for (const auto& location : list) {
    if (location.path.empty() || location.path.front() != '/') continue;  // the protocol wants absolute paths
    base::Json entry{{"path", location.path}};
    if (location.line && *location.line > 0) entry["line"] = *location.line;
    bytes += base::dump(entry).size();
    if (bytes > locations_bytes) break;
    array.push_back(std::move(entry));
  }
  return array;
}

base::Json result_content(const agent::CallView& view, const event::ToolResult& result) {
  base::Json array = diff_content(view.diffs);
  if (view.text && !view.text->empty())
    array.push_back(text_content(fit_text(*view.text, text_content_bytes)));
  else if (array.empty() && result.is_error && !result.content.empty())
    array.push_back(text_content(fit_text(result.content, text_content_bytes)));
  return array;
}

std::string shown_title(const agent::CallView& view, const event::ToolCall& call) {
  return fit_text(view.title.empty() ? call.name : view.title, title_bytes);
}

}  // namespace

base::Json text_content(std::string text) {
  return {{"type", "content"}, {"content", {{"type", "text"}, {"text", std::move(text)}}}};
}

base::Json diff_content(const std::vector<agent::Diff>& diffs) {
  base::Json array = base::Json::array();
  std::size_t bytes = 0;
  for (const auto& diff : diffs) {
    base::Json entry{{"type", "diff"}, {"path", diff.path}, {"newText", diff.new_text}};
    entry["oldText"] = diff.old_text ? base::Json(*diff.old_text) : base::Json(nullptr);
    const std::size_t size = base::dump(entry).size();
    if (bytes + size <= diffs_bytes) {
      bytes += size;
      array.push_back(std::move(entry));
      continue;
    }
    // Half a diff would be shown as a change that was not made.
    auto note = text_content("The diff of " + fit_text(diff.path, 1024) + " is too large to show (" +
                             std::to_string(size) + " bytes). The new text begins:\n\n" +
                             fit_text(base::indented(base::plain_text(diff.new_text)), large_diff_bytes));
    bytes += base::dump(note).size();
    if (bytes > diffs_bytes) break;
    array.push_back(std::move(note));
  }
  return array;
}

base::Json call_members(const event::ToolCall& call, const agent::CallView& view) {
  base::Json members{{"toolCallId", call.call_id},
                     {"title", shown_title(view, call)},
                     {"kind", checked_kind(view.kind)},
                     {"status", "pending"}};
  if (auto list = locations(view.locations); !list.empty()) members["locations"] = std::move(list);
  members["rawInput"] = raw_input(call.arguments);
  return members;
}

void merge_update(base::Json& queued_params, base::Json&& later_params) {
  base::Json& queued = queued_params["update"];
  base::Json& later = later_params["update"];
  const std::string kind = queued["sessionUpdate"].get<std::string>();
  if (kind == "tool_call" || kind == "tool_call_update") {
    for (auto& [key, value] : later.items())
      if (key != "sessionUpdate") queued[key] = std::move(value);
  } else if (kind == "agent_message_chunk" || kind == "agent_thought_chunk") {
    queued["content"]["text"].get_ref<std::string&>() += later["content"]["text"].get_ref<const std::string&>();
  } else {
    queued = std::move(later);
  }
}

Projector::Projector(Views views, Emit emit) : views_(std::move(views)), emit_(std::move(emit)) {
  if (views_.mode) mode_ = views_.mode();
}

void Projector::chunk(const char* kind, const std::string& message_id, std::string_view text, std::size_t& sent) {
  for (const auto piece : split_text(text, chunk_bytes)) {
    // The bucket bounds what the queue may join into one line.
    const std::string key = std::string(kind) + ":" + message_id + ":" + std::to_string(sent / chunk_bytes);
    sent += piece.size();
    emit_({{"sessionUpdate", kind},
           {"content", {{"type", "text"}, {"text", std::string(piece)}}},
           {"messageId", message_id}},
          key);
  }
}

// What was not streamed yet: everything on a replay, nothing after an ordinary stream.
void Projector::message(const std::string& message_id, std::string_view thought, std::string_view text) {
  Streamed sent;
  if (auto node = streamed_.extract(message_id)) sent = node.mapped();
  if (sent.thought < thought.size())
    chunk("agent_thought_chunk", message_id + "-thought", thought.substr(sent.thought), sent.thought);
  if (sent.text < text.size()) chunk("agent_message_chunk", message_id, text.substr(sent.text), sent.text);
}

void Projector::show_call(Known& known) {
  if (std::exchange(known.shown, true)) return;
  base::Json update{{"sessionUpdate", "tool_call"}};
  update.update(call_members(known.call, views_.call(known.call)));
  emit_(std::move(update), "");  // a call is announced by a line of its own, whatever the client's pace
}

void Projector::started(const std::string& call_id) {
  if (!replaying_)
    emit_({{"sessionUpdate", "tool_call_update"}, {"toolCallId", call_id}, {"status", "in_progress"}},
          "call:" + call_id);
}

void Projector::title(const std::string& title, const std::string& time) {
  if (title.empty()) return;
  title_ = title;
  title_time_ = time;
  if (replaying_ || title_ == shown_title_) return;
  shown_title_ = title_;
  base::Json update{{"sessionUpdate", "session_info_update"}, {"title", fit_text(title_, title_bytes)}};
  if (!title_time_.empty()) update["updatedAt"] = title_time_;
  emit_(std::move(update), "info");
}

void Projector::usage() {
  if (!replaying_ && window_ > 0)
    emit_({{"sessionUpdate", "usage_update"}, {"used", used_}, {"size", window_}}, "usage");
}

// A preset is several events that the session takes in at once: the getter behind views_.mode never shows a half of it.
void Projector::mode() {
  if (replaying_ || !views_.mode) return;
  std::string now = views_.mode();
  if (now == mode_) return;
  mode_ = std::move(now);
  emit_({{"sessionUpdate", "current_mode_update"}, {"currentModeId", mode_}}, "mode");
}

// One overload per event, so that a new event does not compile until it is decided what a client sees of it.
struct Projector::Visitor {
  Projector& self;
  const agent::Event& event;

  void operator()(const event::Header&) const {}
  void operator()(const event::InboxSpliced&) const {}
  void operator()(const event::TurnStart&) const {}
  void operator()(const event::TurnEnd& end) const {
    self.streamed_.clear();
    self.title(end.title, end.time.empty() ? event.time : end.time);
  }
  void operator()(const event::StepStart&) const {}
  void operator()(const event::StepEnd&) const {}
  void operator()(const event::UserMessage& message) const {
    // A client shows what its user typed by itself; a message with a source is context for the model, not user text.
    if (!self.replaying_ || message.source) return;
    const std::string id = "user-" + std::to_string(event.seq);
    for (const auto& block : message.content)
      write_blocks(block, [&](base::Json&& content) {
        self.emit_({{"sessionUpdate", "user_message_chunk"}, {"content", std::move(content)}, {"messageId", id}}, "");
      });
  }
  void operator()(const event::RequestHeader&) const {}
  void operator()(const event::AssistantChunk&) const {}  // the whole message follows
  void operator()(const event::AssistantMessage& message) const {
    self.message(message.message_id, message.message.reasoning, message.message.text);
    for (const auto& call : message.message.tool_calls)
      self.calls_.try_emplace(call.id, Known{{call.id, call.name, call.arguments}, false});
    if (!message.usage) return;
    self.used_ = std::max<std::int64_t>(0, message.usage->input_tokens + message.usage->output_tokens);
    self.window_ = self.views_.context_window ? self.views_.context_window(message.route) : 0;
    self.usage();
  }
  void operator()(const event::AssistantAborted& aborted) const { self.message(aborted.message_id, {}, aborted.text); }
  void operator()(const event::ToolCall& call) const {
    Known& known = self.calls_[call.call_id];
    known.call = call;
    self.show_call(known);
    // One that asks first is pending until it was allowed.
    const auto arguments = base::parse_json(call.arguments);
    if (!arguments || !agent::asks_wider_mode(*arguments)) self.started(call.call_id);
  }
  void operator()(const event::ToolResult& result) const {
    auto node = self.calls_.extract(result.call_id);
    if (!node) return;  // a result of nothing: there is no call to show it on
    Known& known = node.mapped();
    self.show_call(known);  // a call that was never started is shown with its result
    const agent::CallView view = self.views_.result(known.call, result);
    base::Json update{{"sessionUpdate", "tool_call_update"},
                      {"toolCallId", result.call_id},
                      {"status", result.is_error ? "failed" : "completed"}};
    if (!view.title.empty()) update["title"] = shown_title(view, known.call);
    if (auto content = result_content(view, result); !content.empty()) update["content"] = std::move(content);
    if (auto list = locations(view.locations); !list.empty()) update["locations"] = std::move(list);
    if (view.raw_output) update["rawOutput"] = fit_json(*view.raw_output, raw_output_bytes);
    self.emit_(std::move(update), "call:" + result.call_id);
  }
  void operator()(const event::ApprovalAsked& asked) const { self.asked_[asked.id] = asked.call_id; }
  void operator()(const event::ApprovalDecided& decided) const {
    const auto node = self.asked_.extract(decided.id);
    if (node && decided.outcome == agent::ApprovalOutcome::allowed_once) self.started(node.mapped());
  }
  void operator()(const event::ApprovalPolicySet&) const { self.mode(); }
  void operator()(const event::SandboxMode&) const { self.mode(); }
  void operator()(const event::PermissionPreset&) const { self.mode(); }
  void operator()(const event::SessionTitle& set) const { self.title(set.title, event.time); }
  void operator()(const event::LlmRetry&) const {}
};

void Projector::replay(const agent::Event& event) {
  replaying_ = true;
  std::visit(Visitor{*this, event}, event.payload);
  replaying_ = false;
}

void Projector::finish_replay() {
  streamed_.clear();
  title(title_, title_time_);
  usage();
}

void Projector::live(const agent::Event& event) { std::visit(Visitor{*this, event}, event.payload); }

void Projector::delta(const agent::LiveDelta& delta) {
  switch (delta.kind) {
    case agent::LiveDelta::Kind::text:
      chunk("agent_message_chunk", delta.id, delta.text, streamed_[delta.id].text);
      return;
    case agent::LiveDelta::Kind::thought:
      chunk("agent_thought_chunk", delta.id + "-thought", delta.text, streamed_[delta.id].thought);
      return;
    case agent::LiveDelta::Kind::tool_output:
      return;  // the bounded output is in the call's result
  }
}

}  // namespace acp

#include "agent/turn.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "agent/context/context.h"
#include "agent/model_step.h"
#include "agent/tool_step.h"
#include "base/log.h"
#include "base/text.h"

namespace agent {
namespace {

using base::ErrorCode;
using base::Json;
using base::Result;

constexpr std::size_t title_limit = 80;      // bytes
constexpr std::size_t call_id_limit = 128;   // longer ids from a provider are replaced
constexpr std::size_t tool_name_limit = 64;  // what providers accept in a history
constexpr std::size_t logged_error_limit = 2000;

tl::unexpected<base::Error> pass(const base::Error& error) { return tl::unexpected<base::Error>(error); }

std::string title_of(const std::vector<ContentBlock>& prompt) {
  for (const ContentBlock& block : prompt) {
    std::string_view text = base::trim(block.type == ContentBlock::Type::text ? block.text : block.uri);
    text = base::trim(text.substr(0, text.find_first_of("\r\n")));
    if (!text.empty()) return base::ellipsize(base::to_utf8(text), title_limit);
  }
  return "Untitled";
}

bool same(const llm::ToolSpec& a, const llm::ToolSpec& b) {
  return a.name == b.name && a.description == b.description && a.parameters == b.parameters;
}

bool same(const event::RequestHeader& a, const event::RequestHeader& b) {
  return a.route == b.route && a.header.model == b.header.model && a.header.params == b.header.params &&
         a.header.system == b.header.system &&
         std::equal(a.header.tools.begin(), a.header.tools.end(), b.header.tools.begin(), b.header.tools.end(),
                    [](const auto& x, const auto& y) { return same(x, y); });
}

// Providers refuse a history that names a tool in other characters, for good: such a name is the model's slip.
std::string sendable_name(std::string_view name) {
  std::string good;
  for (const char c : name.substr(0, tool_name_limit)) {
    const bool safe =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    good += safe ? c : '_';
  }
  return good.empty() ? "unknown" : good;
}

bool usable_id(std::string_view id) {
  if (id.empty() || id.size() > call_id_limit) return false;
  return std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

struct End {
  TurnEndReason reason = TurnEndReason::completed;
  std::optional<base::Error> error;
  bool retryable = false;
};
End ended(TurnEndReason reason) { return {reason, std::nullopt, false}; }

class Turn {
 public:
  explicit Turn(const TurnSetup& setup) : setup_(setup), session_(setup.session) {}

  PromptEnd run(std::vector<ContentBlock> prompt) {
    Result<End> end = start(std::move(prompt));
    if (end) end = finish(std::move(*end));
    PromptEnd answer;
    if (end) {
      answer.reason = end->reason;
      if (end->reason == TurnEndReason::aborted) answer.cause = setup_.stop.cause();
      answer.error = end->error;
      answer.retryable = end->retryable;
    } else {
      answer.reason = TurnEndReason::error;
      answer.error = end.error();
    }
    facts_.write_to(answer);
    return answer;
  }

 private:
  bool stopped() const { return setup_.stop.stopped(); }

  Result<End> start(std::vector<ContentBlock> prompt) {
    event::InboxSpliced arrived;
    const std::string title = title_of(prompt);
    arrived.added.push_back({session_.world().new_id(), InboxTarget::next_turn, std::move(prompt), nullptr});
    if (auto good = session_.append(std::move(arrived)); !good) return pass(good.error());
    turn_ = session_.next_turn();
    if (auto good = session_.append(event::TurnStart{turn_}); !good) return pass(good.error());
    if (session_.title().empty()) {
      if (auto good = session_.append(event::SessionTitle{title}); !good) return pass(good.error());
    }
    route_ = choose_route(setup_.services);
    if (route_ == nullptr) {
      return End{TurnEndReason::error, base::Error{ErrorCode::auth, route_missing(setup_.services), ""}, false};
    }
    return steps();
  }

  Result<End> finish(End end) {
    if (stopped()) end = ended(TurnEndReason::aborted);
    event::TurnEnd last;
    last.turn = turn_;
    last.reason = end.reason;
    if (end.reason == TurnEndReason::aborted) last.cause = setup_.stop.cause();
    if (end.error) {
      last.code = base::error_name(end.error->code);
      last.message = base::ellipsize(end.error->message, logged_error_limit);
    }
    last.title = session_.title();
    last.time = session_.world().now();
    if (auto good = session_.append(std::move(last)); !good) return pass(good.error());
    if (auto good = session_.sync(); !good) return pass(good.error());
    return end;
  }

  Result<End> steps() {
    for (int step = 1;; ++step) {
      if (stopped()) return ended(TurnEndReason::aborted);
      if (step > setup_.services.loop.max_steps) return ended(TurnEndReason::max_steps);
      if (auto good = session_.append(event::StepStart{turn_, step}); !good) return pass(good.error());
      auto done = inside_step(step == 1);
      if (!done) return pass(done.error());
      if (auto good = session_.append(event::StepEnd{turn_, step}); !good) return pass(good.error());
      if (*done) return **done;
    }
  }

  // Nothing: the turn goes on.
  Result<std::optional<End>> inside_step(bool first) {
    if (auto good = claim(first); !good) return pass(good.error());
    const event::RequestHeader header{route_->id, request_header()};
    const auto last = session_.last_header();
    if (!last || !same(*last, header)) {
      if (auto good = session_.append(header); !good) return pass(good.error());
    }
    auto answer = ask_model(setup_, *route_, header.header);
    if (!answer) return pass(answer.error());
    switch (answer->kind) {
      case ModelAnswer::Kind::not_sent:
        return ended(TurnEndReason::aborted);
      case ModelAnswer::Kind::failed:
        return End{TurnEndReason::error, answer->error, answer->retryable};
      case ModelAnswer::Kind::interrupted: {
        event::AssistantMessage message = committed(*answer);
        message.interrupted = true;
        message.finish = llm::FinishReason::other;
        if (auto good = session_.append(std::move(message)); !good) return pass(good.error());
        return ended(TurnEndReason::aborted);
      }
      case ModelAnswer::Kind::answered:
        break;
    }
    return answered(*answer);
  }

  Result<std::optional<End>> answered(const ModelAnswer& answer) {
    event::AssistantMessage message = committed(answer);
    const std::vector<llm::ToolCall> calls = message.message.tool_calls;
    if (auto good = session_.append(std::move(message)); !good) return pass(good.error());

    if (answer.completion.finish == llm::FinishReason::content_filter) {
      return without_running(calls, "a content filter ended the answer", TurnEndReason::blocked);
    }
    if (answer.completion.finish == llm::FinishReason::max_tokens || answer.completion.dropped_calls > 0) {
      return without_running(calls, "the answer was cut off at the output limit; nothing of it was run",
                             TurnEndReason::max_tokens);
    }
    if (calls.empty()) {
      if (steering_waits()) return std::optional<End>();
      return ended(TurnEndReason::completed);
    }
    if (auto good = run_calls(setup_, calls, facts_); !good) return pass(good.error());
    if (stopped()) return ended(TurnEndReason::aborted);
    if (auto good = watch_repeats(calls); !good) return pass(good.error());
    return std::optional<End>();
  }

  Result<std::optional<End>> without_running(const std::vector<llm::ToolCall>& calls, const std::string& why,
                                             TurnEndReason reason) {
    if (auto good = refuse_calls(session_, calls, 0, why, facts_); !good) return pass(good.error());
    return ended(reason);
  }

  llm::RequestHeader request_header() const {
    llm::RequestHeader header;
    header.model = route_->model;
    header.system = setup_.services.loop.system;
    header.tools = setup_.tools.specs();
    header.params = route_->params;
    return header;
  }

  // What enters this step: whatever waits for the next step and, in the first, one prompt. The context message goes
  // before them, so that the newest thing the model reads is what it is asked. One write.
  Result<void> claim(bool first) {
    std::vector<Payload> messages;
    event::InboxSpliced claimed;
    bool prompt_wanted = first;
    for (const event::InboxItem& item : session_.inbox()) {
      if (item.target == InboxTarget::next_turn && !std::exchange(prompt_wanted, false)) continue;
      claimed.removed.push_back(item.id);
      // A context message that waited is replaced by what the policies say now, below.
      if (!is_snapshot(item.source)) messages.emplace_back(event::UserMessage{item.content, item.source});
    }
    std::vector<Payload> batch;
    const ContextTexts wanted = compose_context(setup_.services, session_);
    if (auto context = reconcile_context(wanted, session_.last_context())) batch.emplace_back(std::move(*context));
    std::move(messages.begin(), messages.end(), std::back_inserter(batch));
    if (!claimed.removed.empty()) batch.emplace_back(std::move(claimed));
    return session_.append_all(std::move(batch));
  }

  bool steering_waits() const {
    const auto inbox = session_.inbox();
    return std::any_of(inbox.begin(), inbox.end(), [](const auto& i) { return i.target == InboxTarget::next_step; });
  }

  event::AssistantMessage committed(const ModelAnswer& answer) {
    event::AssistantMessage message;
    message.message_id = answer.message_id;
    message.message = answer.completion.message;
    message.message.role = llm::Role::assistant;
    message.route = route_->id;
    message.model = route_->model;
    message.usage = answer.completion.usage;
    message.finish = answer.completion.finish;
    std::set<std::string> taken;
    for (llm::ToolCall& call : message.message.tool_calls) {
      call.name = sendable_name(call.name);
      call.id = unique_id(call.id, taken);
      taken.insert(call.id);
    }
    return message;
  }

  // Some providers number calls from 0 in every answer; results and updates need an id of their own.
  std::string unique_id(const std::string& id, const std::set<std::string>& taken) const {
    const std::string wanted = usable_id(id) ? id : "call";
    std::string candidate = wanted;
    for (int n = 2; taken.count(candidate) > 0 || session_.call_id_used(candidate); ++n) {
      candidate = fmt::format("{}-{}", wanted, n);
    }
    return candidate;
  }

  Result<void> watch_repeats(const std::vector<llm::ToolCall>& calls) {
    for (const llm::ToolCall& call : calls) {
      const std::string key = call.name + '\n' + call.arguments;
      repeats_ = key == last_call_ ? repeats_ + 1 : 1;
      last_call_ = key;
      if (repeats_ != 3 && repeats_ != 5 && repeats_ != 8) continue;
      const std::string text = fmt::format(
          "[reminder] {} was now called {} times in a row with the same arguments. Another repetition will not change "
          "the "
          "result: use what it said, try something else, or say what is in the way.",
          call.name, repeats_);
      event::InboxSpliced injected;
      injected.added.push_back(
          {session_.world().new_id(),
           InboxTarget::injected,
           {{ContentBlock::Type::text, text, "", ""}},
           base::share(Json{{"kind", "plugin"}, {"plugin", "repeat-reminder"}, {"form", "reminder"}})});
      if (auto good = session_.append(std::move(injected)); !good) return good;
    }
    return {};
  }

  const TurnSetup& setup_;
  Session& session_;
  const llm::Route* route_ = nullptr;
  std::int64_t turn_ = 0;
  TurnFacts facts_;
  std::string last_call_;
  int repeats_ = 0;
};

}  // namespace

PromptEnd run_turn(const TurnSetup& setup, std::vector<ContentBlock> prompt) {
  PromptEnd end = Turn(setup).run(std::move(prompt));
  if (end.reason == TurnEndReason::error && setup.session.turn_open()) {
    // Either the log is broken, then this changes nothing, or an event of ours was refused: the session must go on.
    if (auto good = setup.session.abandon_turn(*end.error); !good) base::log_error(good.error().message);
  }
  return end;
}

}  // namespace agent

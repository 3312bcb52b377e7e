#include "agent/tool_step.h"

#include <nlohmann/json.hpp>

#include "agent/repair.h"
#include "base/log.h"
#include "base/thread.h"

namespace agent {
namespace {

using base::Json;

constexpr const char* aborted_text = "[aborted: the turn was cancelled while this call ran]";

class CallRunner {
 public:
  CallRunner(const TurnSetup& setup, const std::vector<llm::ToolCall>& calls, TurnFacts& facts)
      : setup_(setup), calls_(calls), facts_(facts) {
    for (const llm::ToolCall& call : calls) prepared_.push_back(setup.tools.prepare(call.name, call.arguments));
  }

  base::Result<void> run() {
    const auto most = static_cast<std::size_t>(std::max(1, setup_.services.loop.parallel_reads));
    std::size_t at = 0;
    while (at < calls_.size()) {
      if (setup_.stop.stopped()) {
        return refuse_calls(setup_.session, calls_, at, "the turn was cancelled before this call ran", facts_);
      }
      std::size_t end = at;
      while (end < calls_.size() && end - at < most && prepared_[end].reads_only) ++end;
      if (end == at) ++end;
      if (auto good = run_group(at, end); !good) return good;
      at = end;
    }
    return {};
  }

 private:
  // One call, or several that only read.
  base::Result<void> run_group(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      auto logged = setup_.session.append(event::ToolCall{calls_[i].id, calls_[i].name, calls_[i].arguments});
      if (!logged) return logged;
    }
    if (!prepared_[begin].reads_only) {
      if (auto synced = setup_.session.sync(); !synced) return synced;
    }
    std::vector<ToolOutcome> outcomes(end - begin);
    std::vector<base::Thread> threads;
    for (std::size_t i = begin + 1; i < end; ++i) {
      threads.emplace_back("read", [this, &outcomes, i, begin] { outcomes[i - begin] = execute(i); });
    }
    outcomes[0] = execute(begin);
    base::Result<void> good;
    for (std::size_t i = begin; i < end; ++i) {
      if (i > begin) threads[i - begin - 1].join();
      if (good) good = log_result(calls_[i], std::move(outcomes[i - begin]));
    }
    return good;
  }

  ToolOutcome execute(std::size_t index) const {
    const ToolTable::Prepared& prepared = prepared_[index];
    if (!prepared.tool) return {prepared.refusal, true, nullptr};
    ToolContext context{setup_.session, calls_[index].id, resolve_policy(setup_.services, setup_.session),
                        setup_.stop.token()};
    ToolOutcome outcome;
    try {
      outcome = prepared.tool->run(*prepared.arguments, context);
    } catch (const std::exception& error) {
      base::log_error("the tool " + calls_[index].name + " failed: " + error.what());
      outcome = {"internal error of the tool; it is not known whether it did anything", true, nullptr};
    } catch (...) {
      base::log_error("the tool " + calls_[index].name + " failed");
      outcome = {"internal error of the tool; it is not known whether it did anything", true, nullptr};
    }
    if (setup_.stop.stopped()) mark_aborted(outcome);
    return outcome;
  }

  // A call that was done before the stop reached it keeps its result: the model must know that it was done.
  static void mark_aborted(ToolOutcome& outcome) {
    const bool said = outcome.facts && (base::get_bool(*outcome.facts, "aborted").value_or(false) ||
                                        base::get_bool(*outcome.facts, "cancelled").value_or(false));
    if (!outcome.is_error && !said) return;
    outcome.is_error = true;
    Json facts = outcome.facts && outcome.facts->is_object() ? *outcome.facts : Json::object();
    facts["aborted"] = true;
    outcome.facts = base::share(std::move(facts));
    if (outcome.content.find("aborted") != std::string::npos) return;
    if (!outcome.content.empty() && outcome.content.back() != '\n') outcome.content += '\n';
    outcome.content += aborted_text;
  }

  // What was touched says something beside a denial, or a question, or where it settles an earlier denial.
  void keep_key_of_denials(const std::string& tool, base::JsonPtr& facts) const {
    const auto key = facts ? base::get_string(*facts, "denied_key") : std::nullopt;
    if (!key || base::get_bool(*facts, "denied").value_or(false) || base::find(*facts, "escalation") ||
        setup_.session.denied_before(tool, *key))
      return;
    Json kept = *facts;
    kept.erase("denied_key");
    facts = base::share(std::move(kept));
  }

  base::Result<void> log_result(const llm::ToolCall& call, ToolOutcome outcome) {
    keep_key_of_denials(call.name, outcome.facts);
    event::ToolResult result{call.id, std::move(outcome.content), outcome.is_error, std::move(outcome.facts)};
    facts_.add(call, result);
    return setup_.session.append(std::move(result));
  }

  const TurnSetup& setup_;
  const std::vector<llm::ToolCall>& calls_;
  TurnFacts& facts_;
  std::vector<ToolTable::Prepared> prepared_;
};

}  // namespace

void TurnFacts::add(const llm::ToolCall& call, const event::ToolResult& result) {
  const Json none = Json::object();
  const Json& facts = result.facts ? *result.facts : none;
  const std::string escalation = base::get_string(facts, "escalation").value_or("");
  const std::string key = base::get_string(facts, "denied_key").value_or("");
  sandbox_unavailable_ = base::get_bool(facts, "sandbox_unavailable").value_or(false);
  if (!escalation.empty()) escalation_ = escalation;
  // A command that ended well did what it was for, whatever step of it was denied on the way.
  const bool denied =
      base::get_bool(facts, "denied").value_or(false) && base::get_int(facts, "exit_code").value_or(1) != 0;
  const bool not_granted = !escalation.empty() && escalation != name(ApprovalOutcome::allowed_once);
  if (denied || not_granted) {
    denied_ = Denied{SameCall(call.name, call.arguments), call.name, key};
  } else if (!result.is_error && denied_ && denied_->tool == call.name) {
    const bool same = (!key.empty() && key == denied_->key) || SameCall(call.name, call.arguments) == denied_->call;
    if (same) denied_.reset();
  }
}

void TurnFacts::write_to(PromptEnd& end) const {
  end.denied = denied_.has_value();
  end.escalation = escalation_;
  end.sandbox_unavailable = sandbox_unavailable_;
}

base::Result<void> run_calls(const TurnSetup& setup, const std::vector<llm::ToolCall>& calls, TurnFacts& facts) {
  return CallRunner(setup, calls, facts).run();
}

base::Result<void> refuse_calls(Session& session, const std::vector<llm::ToolCall>& calls, std::size_t from,
                                const std::string& why, TurnFacts& facts) {
  for (std::size_t i = from; i < calls.size(); ++i) {
    event::ToolResult result = not_started_result(calls[i].id, why);
    facts.add(calls[i], result);
    if (auto logged = session.append(std::move(result)); !logged) return logged;
  }
  return {};
}

}  // namespace agent

#include "tools/bash.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "agent/plugin.h"
#include "assets.h"
#include "base/text.h"
#include "tools/tool_text.h"

namespace tools {
namespace {

using base::Json;

constexpr std::size_t title_limit = 120;

std::string_view without_newlines(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

void add_line(std::string& text, std::string_view line) {
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  text += line;
}

class BashTool : public agent::Tool {
 public:
  BashTool(std::shared_ptr<sandbox::ShellExecutor> shell, std::shared_ptr<agent::ApprovalService> approval)
      : shell_(std::move(shell)), approval_(std::move(approval)) {}

  llm::ToolSpec spec(const agent::Capabilities& capabilities) const override {
    std::string description(base::trim(assets::tool_bash_md));
    if (capabilities.shell_confines) description += "\n" + std::string(base::trim(assets::tool_bash_sandbox_md));
    const sandbox::ShellOptions& options = shell_->options();
    const std::string members = fmt::format(
        R"("command":{{"type":"string","minLength":1}},)"
        R"("description":{{"type":"string","description":"What it does, in a few words."}},)"
        R"("timeout_ms":{{"type":"integer","minimum":1,"description":"Time limit. Default {}, at most {}."}},)"
        R"("workdir":{{"type":"string","description":"Where to run it. Default: the session's working directory."}})",
        options.timeout.count(), options.max_timeout.count());
    return {"bash", std::move(description), object_schema(members, R"("command")", capabilities.shell_confines)};
  }
  bool reads_only(const Json&) const override { return false; }

  agent::CallView view_call(const Json& arguments, const std::string&) const override {
    agent::CallView view;
    view.title = one_line(base::get_string(arguments, "command").value_or(""), title_limit);
    if (view.title.empty()) view.title = "bash";
    view.kind = "execute";
    return view;
  }
  agent::CallView view_result(const Json& arguments, const agent::event::ToolResult& result,
                              const std::string& cwd) const override {
    agent::CallView view = view_call(arguments, cwd);
    view.text = bounded_text(result.content);
    view.raw_output = result.facts ? result.facts : base::share(Json::object());
    return view;
  }

  agent::ToolOutcome run(const Json& arguments, agent::ToolContext& context) override;

 private:
  agent::ToolOutcome could_not_run(const base::Error& error, Json facts) const;
  std::string markers(const sandbox::ShellOutcome& outcome, const agent::ToolContext& context) const;

  std::shared_ptr<sandbox::ShellExecutor> shell_;
  std::shared_ptr<agent::ApprovalService> approval_;
};

agent::ToolOutcome BashTool::could_not_run(const base::Error& error, Json facts) const {
  facts["error"] = base::error_name(error.code);
  if (error.code == base::ErrorCode::sandbox_unavailable) facts["sandbox_unavailable"] = true;
  return {error_text(error), true, base::share(std::move(facts))};
}

agent::ToolOutcome BashTool::run(const Json& arguments, agent::ToolContext& context) {
  const std::string command = base::get_string(arguments, "command").value_or("");
  Json facts = {{"mode", sandbox::mode_name(context.policy.mode)}, {"escalated", false}, {"denied", false}};
  auto workdir =
      absolute_path(base::get_string(arguments, "workdir").value_or(context.session.cwd()), context.session.cwd());
  if (!workdir)
    return could_not_run({workdir.error().code, "workdir: " + workdir.error().message, {}}, std::move(facts));
  const auto real = sandbox::canonical_path(*workdir);
  if (!real) {  // found out before anybody is asked for consent
    return could_not_run(
        {base::ErrorCode::command_start, "cannot use the working directory " + real.error().message, {}},
        std::move(facts));
  }
  workdir = *real;
  const std::string key = command + "\n" + *workdir;
  facts["denied_key"] = key;

  auto escalation = agent::resolve_escalation(arguments, context, "bash", "this command", key, {command, *workdir, {}},
                                              shell_->confines(), approval_.get());
  if (!escalation) return escalation.error();
  facts["mode"] = sandbox::mode_name(escalation->policy.mode);
  facts["escalated"] = escalation->escalated;
  if (!escalation->outcome.empty()) facts["escalation"] = escalation->outcome;
  if (const auto now = sandbox::canonical_path(*workdir); !now || *now != *workdir) {
    return could_not_run(
        {base::ErrorCode::busy, *workdir + " changed while the user was asked; the command was not run", {}},
        std::move(facts));
  }

  sandbox::ShellRequest request;
  request.command = command;
  request.workdir = *workdir;
  request.policy = escalation->policy;
  if (const auto limit = base::get_int(arguments, "timeout_ms"))
    request.timeout =
        std::chrono::milliseconds(std::clamp<std::int64_t>(*limit, 1, shell_->options().max_timeout.count()));
  request.spill_dir = context.session.folder() + "/output";
  request.on_output = [&context](std::string_view text) {
    context.session.delta({agent::LiveDelta::Kind::tool_output, context.call_id, text});
    context.session.wait_drained(context.stop);
  };
  const auto outcome = shell_->run(request, context.stop);
  if (!outcome) return could_not_run(outcome.error(), std::move(facts));

  facts["mode"] = sandbox::mode_name(outcome->mode);
  facts["exit_code"] = outcome->exit_code ? Json(*outcome->exit_code) : Json(nullptr);
  if (!outcome->signal.empty()) facts["signal"] = outcome->signal;
  facts["timed_out"] = outcome->timed_out;
  facts["denied"] = outcome->denied;
  if (outcome->denied) facts["denial_source"] = outcome->denial_source;
  for (const base::Denial& denial : outcome->denials)
    facts["denials"].push_back({{"what", denial.what}, {"path", denial.path}});
  if (outcome->enforcement) {
    facts["enforcement"] = sandbox::to_string(*outcome->enforcement);
    facts["backend"] = outcome->backend;
  }
  facts["runner_failed"] = outcome->runner_failed;
  facts["truncated"] = outcome->truncated;
  if (!outcome->spill_file.empty()) facts["spill_file"] = outcome->spill_file;
  if (outcome->spill_lost > 0) facts["spill_lost"] = outcome->spill_lost;
  facts["stragglers_killed"] = outcome->stragglers_killed;
  facts["pipe_held_open"] = outcome->pipe_held_open;
  facts["duration_ms"] = outcome->duration.count();
  if (outcome->runner_failed)
    return could_not_run(
        {base::ErrorCode::sandbox_unavailable,
         "the " + outcome->backend + " sandbox runner failed, so the command did not run: " + outcome->runner_failure,
         {}},
        std::move(facts));

  std::string text(without_newlines(outcome->out));
  if (const std::string_view err = without_newlines(outcome->err); !err.empty()) {
    add_line(text, "[stderr]");
    add_line(text, err);
  }
  if (text.empty()) text = "(no output)";
  text += markers(*outcome, context);
  // What a stop cut short is no result of the command; the loop says so in the facts.
  return {std::move(text), outcome->cancelled, base::share(std::move(facts))};
}

std::string BashTool::markers(const sandbox::ShellOutcome& outcome, const agent::ToolContext& context) const {
  std::string text;
  const auto line = [&](const std::string& what) { text += "\n" + what; };
  if (outcome.truncated) {
    if (outcome.spill_file.empty()) {
      line("[output cut]");
    } else if (outcome.spill_lost > 0) {
      line(fmt::format("[output cut; most of it is in {}, {} bytes are lost]", outcome.spill_file, outcome.spill_lost));
    } else {
      line(fmt::format("[output cut; all of it is in {}]", outcome.spill_file));
    }
  }
  if (outcome.pipe_held_open) line("[a background process still held the output open; it was not waited for]");
  if (outcome.stragglers_killed > 0)
    line(fmt::format("[{} background process{} still running when the command ended: killed]",
                     outcome.stragglers_killed, outcome.stragglers_killed == 1 ? " was" : "es were"));
  if (!outcome.denials.empty()) line(denied_changes(outcome.denials));
  if (outcome.denied) {
    const bool succeeded = outcome.exit_code == 0 && !outcome.timed_out && !outcome.cancelled;
    line(denial_lines(outcome.mode, shell_->confines(), approval_.get(), context.session, succeeded));
  }
  if (outcome.timed_out) line(fmt::format("[timed out after {}ms]", outcome.timeout.count()));
  if (outcome.cancelled) line("[aborted: the turn was cancelled while this command ran]");
  if (!outcome.signal.empty()) {
    line("[killed by signal: " + outcome.signal + "]");
  } else if (outcome.exit_code.value_or(0) != 0) {
    line(fmt::format("[exit code: {}]", *outcome.exit_code));
  }
  return text;
}

}  // namespace

std::shared_ptr<agent::Tool> make_bash_tool(std::shared_ptr<sandbox::ShellExecutor> shell,
                                            std::shared_ptr<agent::ApprovalService> approval) {
  return std::make_shared<BashTool>(std::move(shell), std::move(approval));
}

agent::Plugin bash_plugin() {
  agent::Plugin plugin;
  plugin.name = "tool-bash";
  plugin.needs = {agent::Seam::shell};
  plugin.uses = {agent::Seam::approval, agent::Seam::policy};
  plugin.gives = {agent::Seam::tools};
  plugin.configure = [](base::ConfigReader& config, const agent::ConfigureContext&) -> agent::Mount {
    if (config.boolean("background", false))
      config.fault("background",
                   "`background: true` needs a job table, which no plugin gives; delete it or set it to false");
    return [](agent::Services& services) -> base::Result<void> {
      services.tools.push_back(make_bash_tool(services.shell, services.approval));
      return {};
    };
  };
  return plugin;
}

}  // namespace tools

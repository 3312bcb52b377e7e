#include "tools/file_tools.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "agent/plugin.h"
#include "base/text.h"
#include "sandbox/fs_posix.h"
#include "tools/file_diff.h"
#include "tools/tool_text.h"

namespace tools {
namespace {

using base::Json;

agent::ToolOutcome failed(const base::Error& error, Json facts) {
  if (error.code == base::ErrorCode::sandbox_unavailable) facts["sandbox_unavailable"] = true;
  facts["error"] = base::error_name(error.code);
  return {error_text(error), true, base::share(std::move(facts))};
}

agent::Diff diff_of(const std::string& path, const Plan& plan) {
  Hunk hunk = make_hunk(plan.old_text, plan.new_text);
  return {path, std::move(hunk.old_text), std::move(hunk.new_text)};
}

// Whether resolve_escalation() could get as far as asking somebody.
bool would_ask(const Json& arguments, const sandbox::Policy& policy) {
  const auto wanted = base::get_string(arguments, "sandbox_permissions");
  const auto mode = wanted ? sandbox::parse_mode(*wanted) : std::nullopt;
  return agent::asks_wider_mode(arguments) && mode && sandbox::strictly_wider(*mode, policy.mode);
}

// By its form: made canonical, such a path would lead to a file of that name.
bool names_folder(std::string_view path) {
  return path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
}

}  // namespace

base::Result<std::optional<Current>> current_file(FileTools& tools, const std::string& session_id,
                                                  const std::string& path) {
  auto content = tools.fs->read(path);
  if (!content) {
    if (content.error().code == base::ErrorCode::not_found) return std::nullopt;
    return tl::unexpected(content.error());
  }
  const std::string& name = content->canonical_path;
  auto decoded = decode_file(content->bytes);
  if (const auto* binary = std::get_if<BinaryFile>(&decoded))
    return base::fail(base::ErrorCode::invalid_argument,
                      name + " is a binary file (" + binary->kind + "); change it with bash");
  if (tools.observe) {
    const auto seen = tools.observations.seen(session_id, name);
    if (!seen)
      return base::fail(base::ErrorCode::fs_not_observed,
                        name + " has not been read in this session; read it before changing it");
    if (*seen != content->hash)
      return base::fail(base::ErrorCode::fs_stale_version, name + " was changed since it was read; read it again");
  }
  return Current{std::move(*content), std::move(std::get<TextFile>(decoded))};
}

agent::ToolOutcome change_file(FileTools& tools, const std::string& tool_name, const Json& arguments,
                               agent::ToolContext& context,
                               const std::function<base::Result<Plan>(const std::string& path)>& make_plan) {
  Json facts = {{"mode", sandbox::mode_name(context.policy.mode)}, {"escalated", false}, {"denied", false}};
  const auto path = absolute_path(base::get_string(arguments, "file_path").value_or(""), context.session.cwd());
  if (!path) return failed(path.error(), std::move(facts));
  if (names_folder(*path))
    return failed({base::ErrorCode::invalid_argument, *path + " names a folder; give the path of a file", {}},
                  std::move(facts));
  const auto target = sandbox::write_target(*path);
  const std::string key = target ? *target : std::filesystem::path(*path).lexically_normal().string();
  facts["path"] = key;
  facts["denied_key"] = key;

  const bool asks = tools.fs->confines() && would_ask(arguments, context.policy);
  agent::ApprovalSubject subject{key, "", {}};
  std::optional<Plan> agreed;  // what the user was shown
  if (asks) {
    auto early = make_plan(*path);
    if (!early) return failed(early.error(), std::move(facts));
    agreed = std::move(*early);
    subject.diffs.push_back(diff_of(key, *agreed));
  }
  auto escalation = agent::resolve_escalation(arguments, context, tool_name, "this operation", key, std::move(subject),
                                              tools.fs->confines(), tools.approval.get());
  if (!escalation) return escalation.error();
  const sandbox::Mode mode = escalation->policy.mode;
  facts["mode"] = sandbox::mode_name(mode);
  facts["escalated"] = escalation->escalated;
  if (!escalation->outcome.empty()) facts["escalation"] = escalation->outcome;

  // What was allowed is this file. A link on the way may have been turned meanwhile; from here on none is followed.
  const std::string& place = escalation->escalated ? key : *path;
  if (escalation->escalated) {
    const auto now = sandbox::write_target(*path);
    if (!now || *now != key)
      return failed(
          {base::ErrorCode::busy, "what the path leads to changed while the user was asked; nothing was done", {}},
          std::move(facts));
  }
  auto plan = make_plan(place);
  if (!plan) return failed(plan.error(), std::move(facts));
  if (agreed && (agreed->bytes != plan->bytes || agreed->expected_hash != plan->expected_hash))
    return failed({base::ErrorCode::busy, key + " changed while the user was asked; nothing was done", {}},
                  std::move(facts));
  if (context.stop.stop_requested())
    return failed({base::ErrorCode::cancelled, "cancelled before anything was changed", {}}, std::move(facts));
  const auto written = tools.fs->write({place, plan->bytes, plan->expected_hash}, escalation->policy);
  if (!written) {
    const bool denied = written.error().code == base::ErrorCode::fs_sandbox_denied;
    facts["denied"] = denied;
    agent::ToolOutcome outcome = failed(written.error(), std::move(facts));
    if (denied)
      outcome.content += "\n" + denial_lines(mode, tools.fs->confines(), tools.approval.get(), context.session, false);
    return outcome;
  }
  tools.observations.saw(context.session.id(), written->canonical_path, written->new_hash);
  const Hunk hunk = make_hunk(plan->old_text, plan->new_text);
  facts["path"] = written->canonical_path;
  facts["old_hash"] = written->old_hash;
  facts["new_hash"] = written->new_hash;
  Json shown = {{"line", hunk.line}};
  shown["old_text"] = hunk.old_text ? Json(*hunk.old_text) : Json(nullptr);
  shown["new_text"] = hunk.new_text;
  facts["hunks"] = Json::array({std::move(shown)});
  return {plan->summary, false, base::share(std::move(facts))};
}

agent::CallView change_call_view(const std::string& verb, const Json& arguments, const std::string& cwd) {
  agent::CallView view;
  view.title = verb;
  view.kind = "edit";
  const auto path = absolute_path(base::get_string(arguments, "file_path").value_or(""), cwd);
  if (!path) return view;
  view.title += " " + shown_path(*path, cwd);
  view.locations.push_back({base::to_utf8(*path), std::nullopt});
  return view;
}

agent::CallView change_result_view(const std::string& verb, const Json& arguments,
                                   const agent::event::ToolResult& result, const std::string& cwd) {
  agent::CallView view = change_call_view(verb, arguments, cwd);
  const Json empty = Json::object();
  const Json& facts = result.facts ? *result.facts : empty;
  Json raw = facts;
  raw.erase("hunks");  // shown as the diff
  raw["output"] = result.content;
  view.raw_output = base::share(std::move(raw));
  const Json* hunks = base::find(facts, "hunks");
  if (result.is_error || hunks == nullptr || !hunks->is_array()) {
    view.text = bounded_text(result.content);
    return view;
  }
  const std::string path = base::get_string(facts, "path").value_or("");
  view.locations.clear();
  for (const Json& hunk : *hunks) {
    view.diffs.push_back({path, base::get_string(hunk, "old_text"), base::get_string(hunk, "new_text").value_or("")});
    view.locations.push_back({path, static_cast<int>(base::get_int(hunk, "line").value_or(1))});
  }
  return view;
}

agent::Plugin fs_plugin() {
  agent::Plugin plugin;
  plugin.name = "tool-fs";
  plugin.needs = {agent::Seam::fs};
  plugin.uses = {agent::Seam::approval, agent::Seam::policy, agent::Seam::fs_observation};
  plugin.gives = {agent::Seam::tools};
  plugin.configure = [](base::ConfigReader&, const agent::ConfigureContext&) -> agent::Mount {
    return [](agent::Services& services) -> base::Result<void> {
      auto shared = std::make_shared<FileTools>();
      shared->fs = services.fs;
      shared->approval = services.approval;
      shared->observe = services.fs_observation;
      services.tools.push_back(make_read_tool(shared));
      services.tools.push_back(make_write_tool(shared));
      services.tools.push_back(make_edit_tool(shared));
      return {};
    };
  };
  return plugin;
}

}  // namespace tools

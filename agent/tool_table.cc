#include "agent/tool_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"

namespace agent {

using base::Json;

namespace {

constexpr std::size_t shown_text_limit = 16 * 1024;  // of a result without a view of its own

CallView plain_view(const event::ToolCall& call) {
  CallView view;
  view.title = call.name;
  view.kind = "other";
  return view;
}

CallView plain_view(const event::ToolCall& call, const event::ToolResult& result) {
  CallView view = plain_view(call);
  view.text = base::ellipsize(result.content, shown_text_limit);
  view.raw_output = result.facts;
  return view;
}

// True when the call ran, or began to: a tool's own view of its result means something only then.
bool was_run(const event::ToolResult& result) {
  return !result.facts || base::get_bool(*result.facts, "started").value_or(true);
}

}  // namespace

ToolTable::ToolTable(const std::vector<std::shared_ptr<Tool>>& tools, const Capabilities& capabilities)
    : confines_(capabilities.shell_confines || capabilities.fs_confines) {
  for (const std::shared_ptr<Tool>& tool : tools) {
    llm::ToolSpec spec = tool->spec(capabilities);
    const bool twice =
        std::any_of(specs_.begin(), specs_.end(), [&](const auto& known) { return known.name == spec.name; });
    if (twice) {
      base::log_error(fmt::format("the tool {} is given twice; the second is left out", spec.name));
      continue;
    }
    auto check = SchemaCheck::compile(spec.parameters);
    if (!check) {
      base::log_error(fmt::format("the tool {} is left out: {}", spec.name, check.error().message));
      continue;
    }
    specs_.push_back(std::move(spec));
    entries_.push_back({tool, std::move(*check)});
  }
}

ToolTable::Prepared ToolTable::prepare(const std::string& name, const std::string& arguments) const {
  Prepared prepared;
  const auto spec = std::find_if(specs_.begin(), specs_.end(), [&](const auto& known) { return known.name == name; });
  if (spec == specs_.end()) {
    std::string names;
    for (const llm::ToolSpec& known : specs_) names += (names.empty() ? "" : ", ") + known.name;
    prepared.refusal = fmt::format("unknown tool \"{}\"; nothing was run. Tools: {}", base::ellipsize(name, 80),
                                   names.empty() ? "none" : names);
    return prepared;
  }
  const Entry& entry = entries_[static_cast<std::size_t>(spec - specs_.begin())];
  auto parsed = arguments.empty() ? base::Result<Json>(Json::object()) : base::parse_json(arguments);
  if (!parsed) {
    prepared.refusal =
        fmt::format("the arguments of {} are not valid JSON ({}); nothing was run", name, parsed.error().message);
    return prepared;
  }
  std::vector<std::string> violations;
  if (!parsed->is_object()) {
    violations.emplace_back("the arguments must be one JSON object");
  } else {
    violations = entry.check.violations(*parsed);
  }
  if (!violations.empty()) {
    prepared.refusal = fmt::format("the arguments of {} do not fit its schema; nothing was run:", name);
    for (const std::string& violation : violations) prepared.refusal += "\n- " + violation;
    if (!confines_ && (base::find(*parsed, "sandbox_permissions") || base::find(*parsed, "justification")))
      prepared.refusal += std::string("\n") + nothing_confined;
    return prepared;
  }
  prepared.arguments = base::share(std::move(*parsed));
  try {
    prepared.reads_only = entry.tool->reads_only(*prepared.arguments);
  } catch (const std::exception& error) {
    prepared.reads_only = false;
    base::log_error(fmt::format("the tool {} failed: {}", name, error.what()));
  }
  prepared.tool = entry.tool;
  return prepared;
}

CallView ToolTable::view(const event::ToolCall& call, const std::string& cwd) const {
  const Prepared prepared = prepare(call.name, call.arguments);
  if (!prepared.tool) return plain_view(call);
  try {
    return prepared.tool->view_call(*prepared.arguments, cwd);
  } catch (const std::exception& error) {
    base::log_error(fmt::format("the view of {} failed: {}", call.name, error.what()));
    return plain_view(call);
  }
}

CallView ToolTable::view(const event::ToolCall& call, const event::ToolResult& result, const std::string& cwd) const {
  const Prepared prepared = prepare(call.name, call.arguments);
  if (!prepared.tool || !was_run(result)) return plain_view(call, result);
  try {
    return prepared.tool->view_result(*prepared.arguments, result, cwd);
  } catch (const std::exception& error) {
    base::log_error(fmt::format("the view of {} failed: {}", call.name, error.what()));
    return plain_view(call, result);
  }
}

}  // namespace agent

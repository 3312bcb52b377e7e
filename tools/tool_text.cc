#include "tools/tool_text.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "agent/approval.h"
#include "base/text.h"

namespace tools {
namespace {

constexpr std::size_t title_path_limit = 200;
constexpr std::size_t client_text_limit = 32'000;
constexpr std::size_t shown_denials = 5;

}  // namespace

base::Result<std::string> absolute_path(const std::string& path, const std::string& cwd) {
  const auto refuse = [](std::string why) { return base::fail(base::ErrorCode::invalid_argument, std::move(why)); };
  if (path.empty()) return refuse("the path is empty");
  if (path.find('\0') != std::string::npos) return refuse("the path contains a NUL byte");
  if (path == "~" || path.starts_with("~/")) return refuse("~ is not expanded in a path; give an absolute one");
  if (path.front() == '/') return path;
  return cwd + (cwd.ends_with('/') ? "" : "/") + path;
}

std::string one_line(std::string_view text, std::size_t limit) {
  text = base::trim(text);
  const std::string_view first = base::trim(text.substr(0, text.find_first_of("\r\n")));
  std::string line = base::plain_line(first);
  if (first.size() < text.size()) line += "…";
  return base::ellipsize(line, limit);
}

std::string shown_path(const std::string& path, const std::string& cwd) {
  const std::string normal = std::filesystem::path(path).lexically_normal().string();
  if (!cwd.empty() && cwd != "/" && normal.starts_with(cwd + "/"))
    return one_line(normal.substr(cwd.size() + 1), title_path_limit);
  return one_line(normal, title_path_limit);
}

std::string object_schema(std::string members, std::string_view required, bool escalates) {
  if (escalates) members += std::string(",") + agent::escalation_schema_members;
  return R"({"type":"object","properties":{)" + members + R"(},"required":[)" + std::string(required) +
         R"(],"additionalProperties":false})";
}

std::string error_text(const base::Error& error) {
  const std::string_view name = base::error_name(error.code);
  if (name.empty() || name.front() < 'A' || name.front() > 'Z') return error.message;
  return std::string(name) + ": " + error.message;
}

std::string denied_changes(const std::vector<base::Denial>& denials) {
  std::string text = "[denied: ";
  for (std::size_t i = 0; i < std::min(denials.size(), shown_denials); ++i)
    text += (i == 0 ? "" : "; ") + denials[i].what + " " + denials[i].path;
  if (denials.size() > shown_denials) {
    text += denials.size() < base::Child::max_denials ? "; and " : "; and at least ";
    text += std::to_string(denials.size() - shown_denials) + " more";
  }
  return text + "]";
}

std::string denial_lines(sandbox::Mode mode, bool confines, const agent::ApprovalService* approval,
                         const agent::Session& session, bool succeeded) {
  // Without an approval service a retry could only be refused.
  const auto policy = approval != nullptr ? approval->policy(session) : agent::ApprovalPolicy::never;
  const std::string hint = agent::denial_hint(mode, confines, policy, succeeded);
  return agent::denial_marker(mode) + (hint.empty() ? "" : "\n" + hint);
}

std::string bounded_text(const std::string& text) {
  base::HeadTail kept(client_text_limit);
  kept.append(text);
  return base::to_utf8(kept.text());
}

}  // namespace tools

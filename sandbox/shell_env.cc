// The environment of a child: what the agent was started with, less names that look like secrets, plus what keeps
// programs from paging, colouring or asking.
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "sandbox/shell.h"

namespace sandbox {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Whole words between underscores, so that PATH, KEYBOARD and MONKEY stay.
bool secret_word(std::string_view word) {
  static constexpr std::string_view exact[] = {"KEY", "TOKEN", "SECRET", "PASSWORD", "PAT", "DSN"};
  return std::find(std::begin(exact), std::end(exact), word) != std::end(exact) || word.starts_with("PASS") ||
         word.starts_with("CREDENTIAL");
}

// GIT_CONFIG_KEY_<n> is the name of a setting. Git fails where GIT_CONFIG_COUNT promises one that is not there.
bool names_git_setting(std::string_view name) {
  constexpr std::string_view prefix = "GIT_CONFIG_KEY_";
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

bool looks_secret(std::string_view name) {
  if (names_git_setting(name)) return false;
  std::string word;
  for (const char c : name) {
    if (c != '_') {
      word += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      continue;
    }
    if (secret_word(word)) return true;
    word.clear();
  }
  return secret_word(word);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> ShellExecutor::child_environment(
    const Policy& policy, const std::vector<std::string>& roots) const {
  std::vector<std::pair<std::string, std::string>> fixed = {
      {"NO_COLOR", "1"},
      {"TERM", "dumb"},
      {"PAGER", "cat"},
      {"GIT_PAGER", "cat"},
      {"GIT_TERMINAL_PROMPT", "0"},
      {"ACP_AGENT_SESSION_ID", policy.session_id},
  };
  if (sandbox_ && policy.mode != Mode::danger_full_access)
    fixed.emplace_back("TMPDIR", child_tmpdir(roots, options_.host));

  std::vector<std::pair<std::string, std::string>> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string_view name = text.substr(0, equals);
    if (contains(options_.strip_env, name)) continue;
    if (looks_secret(name) && !contains(options_.pass_env, name)) continue;
    if (std::any_of(fixed.begin(), fixed.end(), [&](const auto& pair) { return pair.first == name; })) continue;
    result.emplace_back(name, text.substr(equals + 1));
  }
  result.insert(result.end(), fixed.begin(), fixed.end());
  return result;
}

}  // namespace sandbox

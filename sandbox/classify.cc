#include "sandbox/classify.h"

#include <cctype>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"

namespace sandbox {
namespace {

constexpr std::size_t line_limit = 8 * 1024;
constexpr std::size_t words_limit = 600;  // of a runner, in an error text

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

std::string words(std::string_view err, const std::string& otherwise) {
  std::string own;
  for (std::string_view line : lines_of(err)) {
    if (!line.starts_with("bwrap: ") && !line.starts_with("landlock-run: ") && !line.starts_with("sandbox-exec: "))
      continue;
    own += own.empty() ? "" : "\n";
    own += line;
  }
  if (own.empty()) own = std::string(base::trim(err));
  if (own.empty()) return otherwise;
  return base::ellipsize(base::clean_terminal_text(own), words_limit);
}

std::string exit_words(const RunEvidence& evidence) {
  if (evidence.exit_code)
    return "the runner exited with " + std::to_string(*evidence.exit_code) + " before the command ran";
  return "the runner was killed by signal " + std::to_string(evidence.signal) + " before the command ran";
}

std::optional<std::string> judge_launcher(const RunEvidence& evidence) {
  const std::size_t failed = evidence.status.find('F');
  if (failed != std::string_view::npos) {
    const std::string_view said = evidence.status.substr(failed + 1, evidence.status.find('\n', failed) - failed - 1);
    return words(evidence.err, "the launcher failed at " + base::to_utf8(said));
  }
  if (evidence.status.starts_with('R')) return std::nullopt;
  return words(evidence.err, exit_words(evidence));
}

std::optional<std::string> judge_bwrap(const RunEvidence& evidence) {
  for (std::string_view line : lines_of(evidence.status)) {
    const auto value = base::parse_json(line);
    if (value && base::find(*value, "exit-code")) return std::nullopt;
  }
  // A killed bwrap writes no exit-code either, whoever killed it; the command may well have run.
  if (evidence.signal != 0 || !evidence.exit_code) return std::nullopt;
  return words(evidence.err, exit_words(evidence));
}

std::optional<std::string> judge_text(const std::vector<RunnerFailureRule>& rules, const RunEvidence& evidence) {
  for (const RunnerFailureRule& rule : rules) {
    if (!rule.exit_codes.empty()) {
      if (!evidence.exit_code) continue;
      if (std::find(rule.exit_codes.begin(), rule.exit_codes.end(), *evidence.exit_code) == rule.exit_codes.end())
        continue;
    }
    for (std::string_view line : lines_of(evidence.err)) {
      const auto& info = rule.informational_lines;
      if (std::find(info.begin(), info.end(), line) != info.end()) continue;
      for (const std::string& signature : rule.signatures) {
        if (base::contains_ignoring_case(line, signature))
          return base::ellipsize(base::clean_terminal_text(line), words_limit);
      }
    }
  }
  return std::nullopt;
}

bool path_byte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80 ||
         std::strchr("._-/~+@%", c) != nullptr;
}

// "/usr/bin/python3: can't open …": whose message it is, not what it is about.
bool is_program_prefix(std::string_view path, std::string_view rest, std::string_view shell) {
  if (!rest.starts_with(": ")) return false;
  if (path == shell || rest.starts_with(": line ")) return true;
  const std::string folder = std::filesystem::path(path).parent_path().filename();
  return folder == "bin" || folder == "sbin" || folder == "libexec";
}

bool below_a_root(const std::string& path, const std::vector<std::string>& roots) {
  const std::string lexical = std::filesystem::path(path).lexically_normal();
  // A symlinked spelling of a root is that root, and a link inside a root may lead out of it: the real place decides.
  const auto real = canonical_target(path);
  const std::string& place = real ? *real : lexical;
  return std::any_of(roots.begin(), roots.end(), [&](const std::string& root) { return path_within(place, root); });
}

}  // namespace

std::optional<std::string> find_runner_failure(const ConfinedArgv& confined, const RunEvidence& evidence) {
  if (evidence.ended_by_us) return std::nullopt;
  switch (confined.status) {
    case StatusChannel::launcher:
      return judge_launcher(evidence);
    case StatusChannel::bwrap:
      return judge_bwrap(evidence);
    case StatusChannel::none:
      break;
  }
  return judge_text(confined.runner_failure_rules, evidence);
}

std::vector<std::string> paths_in_line(std::string_view line, std::string_view shell) {
  std::vector<std::string> paths;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] != '/') continue;
    const char before = at == 0 ? ' ' : line[at - 1];
    const bool after_utf8_quote = at >= 3 && line.substr(at - 3, 3) == "\xE2\x80\x98";
    if (path_byte(before) && !after_utf8_quote) {  // the middle of a relative path
      while (at + 1 < line.size() && path_byte(line[at + 1])) ++at;
      continue;
    }
    std::size_t end = at;
    std::string_view quote;
    if (before == '\'' || before == '"' || before == '`') quote = before == '`' ? "'" : line.substr(at - 1, 1);
    if (after_utf8_quote) quote = "\xE2\x80\x99";
    const std::size_t close = quote.empty() ? std::string_view::npos : line.find(quote, at);
    if (close != std::string_view::npos) {
      end = close;
    } else {
      while (end < line.size() && path_byte(line[end])) ++end;
    }
    const std::string_view path = line.substr(at, end - at);
    const bool url = before == ':' && path.starts_with("//");
    if (!url && !(at == 0 && is_program_prefix(path, line.substr(end), shell))) paths.emplace_back(path);
    at = end;
  }
  return paths;
}

DenialScanner::DenialScanner(const ConfinedArgv& confined, std::string shell)
    : signatures_(confined.denial_signatures), roots_(confined.roots), shell_(std::move(shell)) {}

void DenialScanner::append(std::string_view bytes) {
  if (found_ || signatures_.empty()) return;
  while (!bytes.empty() && !found_) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    line_.append(piece.substr(0, line_limit - std::min(line_limit, line_.size())));
    if (end == std::string_view::npos) return;
    judge(line_);
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
}

bool DenialScanner::finish() {
  if (!found_) judge(line_);
  line_.clear();
  return found_;
}

void DenialScanner::judge(std::string_view line) {
  for (const DenialSignature& signature : signatures_) {
    if (!base::contains_ignoring_case(line, signature.text)) continue;
    if (signature.only_outside_roots) {
      const auto paths = paths_in_line(line, shell_);
      if (std::all_of(paths.begin(), paths.end(), [&](const std::string& path) { return below_a_root(path, roots_); }))
        continue;
    }
    found_ = true;
    return;
  }
}

}  // namespace sandbox

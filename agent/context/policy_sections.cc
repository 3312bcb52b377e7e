// What the model is told about the two policies. The read-only text must not make it give up: a bare mode line was
// measured to end turns without one tool call, so the text says to try and to follow what a denial says.
#include <fmt/format.h>

#include "agent/context/context.h"
#include "sandbox/git_folder.h"
#include "sandbox/protect.h"

namespace agent {
namespace {

std::string join(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

std::string workspace_text(const sandbox::Policy& policy, const sandbox::Host& host) {
  std::string text = "File sandbox mode: workspace-write. ";
  auto roots = sandbox::writable_roots(policy, host);
  // The folders of a linked worktree's repository are many, and of interest to git alone.
  std::size_t of_git = 0;
  if (roots && !policy.worktree.empty()) {
    const std::vector<std::string> git = sandbox::worktree_roots(policy.worktree);
    of_git = std::erase_if(
        *roots, [&](const std::string& root) { return std::find(git.begin(), git.end(), root) != git.end(); });
  }
  text += roots ? fmt::format("Files can be changed below {}; changes elsewhere are denied.", join(*roots))
                : fmt::format("No folder is writable here: {}.", roots.error().message);
  if (of_git > 0) text += " Git can commit to the repository of this linked worktree.";
  if (const std::string words = sandbox::protected_words(policy); roots && !words.empty())
    text += fmt::format(" Protected in the workspace, not to be changed: {}.", words);
  if (!host.home.empty() && policy.workspace_root == host.home) {
    text += " The workspace is the user's whole home folder: be careful.";
  }
  return text + " Work normally; when something is denied, follow what the denial says.";
}

// What the policy does not hold for; nothing: it holds for nothing, because nothing that was composed confines.
std::optional<std::string> confined_part(const Services& services) {
  const Capabilities confines = capabilities(services);
  const bool any = services.shell || services.fs;
  if (any && !confines.shell_confines && !confines.fs_confines) return std::nullopt;
  if (services.shell && !confines.shell_confines) return " This holds for file tools; commands are not confined.";
  if (services.fs && !confines.fs_confines) return " This holds for commands; file tools are not confined.";
  return "";
}

}  // namespace

ContextSection sandbox_policy_section(const Services& services) {
  ContextSection section;
  section.name = "sandbox:policy";
  section.order = 10;
  section.text = [defaults = services.policy, host = services.host,
                  limits = confined_part(services)](const Session& session) -> std::string {
    if (!defaults || !limits) return "File sandbox: none. Changes to files are not confined.";
    const sandbox::Policy policy = resolve_policy(defaults, session);
    switch (policy.mode) {
      case sandbox::Mode::read_only:
        return std::string(
                   "File sandbox mode: read-only. Everything can be read and commands run; a change to files is denied "
                   "until wider access is granted for that call. This is no reason to give up: try the operation "
                   "normally, and when it is denied follow what the denial says.") +
               *limits;
      case sandbox::Mode::workspace_write:
        return workspace_text(policy, host) + *limits;
      case sandbox::Mode::danger_full_access:
        return "File sandbox mode: danger-full-access. Changes to files are not confined; the user has agreed to that.";
    }
    return {};
  };
  return section;
}

ContextSection approval_policy_section(const Services& services) {
  ContextSection section;
  section.name = "approval:policy";
  section.order = 20;
  section.text = [approval = services.approval](const Session& session) -> std::string {
    if (!approval) {
      return "Approval policy: none. Nobody can be asked: do not request escalation. Do what is possible in the "
             "current mode and report what was denied.";
    }
    switch (approval->policy(session)) {
      case ApprovalPolicy::ask:
        return "Approval policy: ask. A denied call may be escalated as its denial says; the user decides about that "
               "one call. What the user rejects stays rejected: do not work around it.";
      case ApprovalPolicy::never:
        return "Approval policy: never. Nobody can be asked: do not request escalation. Do what is possible in the "
               "current mode and report what was denied.";
    }
    return {};
  };
  return section;
}

}  // namespace agent

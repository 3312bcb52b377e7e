#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <sstream>

namespace cli {
namespace {

const std::vector<std::string> mode_names = {"read-only", "workspace-write", "danger-full-access"};

constexpr const char* about =
    "A coding agent that speaks the Agent Client Protocol on stdin and stdout.\n"
    "Commands and file changes run in a file sandbox; cordis.yml says what the agent consists of.";

constexpr const char* footer =
    "Exit codes: acp-agent run --help. Below the prefix it was installed to, every key and variable is in\n"
    "share/doc/acp-agent/docs/configuration.md, what the sandbox promises in share/doc/acp-agent/SECURITY.md.";

constexpr const char* exit_codes =
    "Exit codes:\n"
    "  0    done\n"
    "  1    failed: the model's answer, or the agent itself\n"
    "  2    usage, composition, no key\n"
    "  3    not done because it was denied: the last call that was denied, or for which wider access was not granted,\n"
    "       was not followed by the same call or one on the same file that succeeded. A denied command that exits 0\n"
    "       does not count, whatever was denied on the way. Also when the model refused\n"
    "  4    stopped at the model's output limit or at max_steps\n"
    "  5    the last call found no sandbox to run in\n"
    "  75   the model could not be reached or was overloaded: try again later\n"
    "  130  SIGINT, 143 SIGTERM\n"
    "A command of the model that exits non-zero is no failure of the run.";

}  // namespace

std::variant<Options, ParseEnd> parse_options(int argc, char** argv, const std::string& version) {
  Options options;
  if (argc <= 1) return options;
  if (argc == 2 && std::string_view(argv[1]) == "acp") {
    options.command = Command::acp;
    return options;
  }

  CLI::App app(about, "acp-agent");
  app.footer(footer);
  app.set_version_flag("--version", "acp-agent " + version);
  app.require_subcommand(0, 1);
  app.fallthrough();
  bool print_config = false;
  app.add_option("--config", options.config, "The composition to use instead of the one that is found")
      ->type_name("FILE");
  app.add_flag("--print-config", print_config, "Print the composition with its variables filled in and secrets hidden");

  std::string mode, approve = "never";
  const auto add_mode = [&](CLI::App* command, const std::string& text) {
    command->add_option("--mode", mode, text)->check(CLI::IsMember(mode_names))->type_name("MODE");
  };

  CLI::App* acp = app.add_subcommand("acp", "Speak the protocol on stdin and stdout (also without a subcommand)");

  CLI::App* run = app.add_subcommand("run", "Do one prompt and end; the answer goes to stdout, activity to stderr");
  run->add_option("--cwd", options.cwd, "The session's folder (default: the current one)")->type_name("DIR");
  run->add_option(
         "--approve", approve,
         "The answer to every question the model raises for wider access: never (default) is no; always is yes, "
         "once per call, whether or not anything was denied before")
      ->check(CLI::IsMember({"never", "always"}))
      ->type_name("never|always");
  add_mode(run, "The sandbox mode instead of the composition's");
  run->footer(exit_codes);
  run->add_option("prompt", options.prompt, "What to do; - reads it from stdin")->required()->type_name("");

  CLI::App* check = app.add_subcommand("check", "Say what is wrong with the composition, without starting");

  CLI::App* confine = app.add_subcommand("confine", "Run one command exactly as a tool call would be");
  add_mode(confine, "The sandbox mode (default: the composition's)");
  confine->add_option("--root", options.root, "The workspace root (default: the current folder)")->type_name("DIR");
  confine->add_option("--runner", options.runner, "Use this backend only")
      ->check(CLI::IsMember({"bwrap", "landlock"}))
      ->type_name("NAME");
  confine->add_option("argv", options.argv, "The command, after --")->required()->type_name("");
  confine->positionals_at_end();

  CLI::App* doctor = app.add_subcommand("doctor", "Say what works here: sandbox, model routes, folders");

  CLI::App* sessions = app.add_subcommand("sessions", "Look at kept sessions");
  sessions->require_subcommand(1);
  sessions->fallthrough();
  const std::map<std::string, std::pair<SessionsAction, std::string>> actions = {
      {"list", {SessionsAction::list, "One line a session, newest first"}},
      {"show", {SessionsAction::show, "What happened, for reading"}},
      {"requests", {SessionsAction::requests, "The model requests, regenerated from the log, one a line"}},
      {"export", {SessionsAction::export_log, "The log up to its first damage"}}};
  for (const auto& [name, action] : actions) {
    CLI::App* sub = sessions->add_subcommand(name, action.second);
    if (action.first != SessionsAction::list) {
      sub->add_option("id", options.session, "The session's id")->required()->type_name("");
    }
    sub->callback([&options, which = action.first] { options.action = which; });
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const bool success = app.exit(error, out, err) == 0;
    return ParseEnd{success ? 0 : 2, success ? out.str() : err.str()};
  }

  if (acp->parsed()) options.command = Command::acp;
  if (run->parsed()) options.command = Command::run;
  if (check->parsed()) options.command = Command::check;
  if (confine->parsed()) options.command = Command::confine;
  if (doctor->parsed()) options.command = Command::doctor;
  if (sessions->parsed()) options.command = Command::sessions;
  if (print_config) {
    if (options.command != Command::bare) return ParseEnd{2, "--print-config stands alone\n"};
    options.command = Command::print_config;
  }
  options.mode = sandbox::parse_mode(mode);
  options.approve = approve == "always" ? agent::ApprovalPolicy::ask : agent::ApprovalPolicy::never;
  return options;
}

}  // namespace cli

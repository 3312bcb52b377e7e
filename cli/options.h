// The command line, parsed by CLI11 in options.cc alone. The forms an editor uses do not reach it, which keeps the
// start short. Pure.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/event.h"
#include "sandbox/policy.h"

namespace cli {

enum class Command { bare, acp, run, check, print_config, confine, doctor, sessions };
enum class SessionsAction { list, show, requests, export_log };

struct Options {
  Command command = Command::bare;
  std::string config;  // --config
  // run
  std::string cwd;
  std::string prompt;
  agent::ApprovalPolicy approve = agent::ApprovalPolicy::never;
  // run and confine
  std::optional<sandbox::Mode> mode;
  // confine
  std::string root;
  std::string runner;
  std::vector<std::string> argv;
  // sessions
  SessionsAction action = SessionsAction::list;
  std::string session;
};

struct ParseEnd {
  int exit_code = 0;
  std::string text;  // help or version (exit code 0, for stdout) or what was wrong (2, for stderr)
};

// Options, or why the process ends now.
std::variant<Options, ParseEnd> parse_options(int argc, char** argv, const std::string& version);

}  // namespace cli

#include "cli/options.h"

#include <catch2/catch.hpp>

namespace {

std::variant<cli::Options, cli::ParseEnd> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "acp-agent");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return cli::parse_options(static_cast<int>(words.size()), argv.data(), "1.2.3");
}

cli::Options options(std::vector<std::string> words) {
  auto parsed = parse(std::move(words));
  REQUIRE(std::holds_alternative<cli::Options>(parsed));
  return std::get<cli::Options>(parsed);
}

cli::ParseEnd end(std::vector<std::string> words) {
  auto parsed = parse(std::move(words));
  REQUIRE(std::holds_alternative<cli::ParseEnd>(parsed));
  return std::get<cli::ParseEnd>(parsed);
}

}  // namespace

TEST_CASE("the command line: the server") {
  CHECK(options({}).command == cli::Command::bare);
  CHECK(options({"acp"}).command == cli::Command::acp);
  CHECK(options({"--config", "/c.yml"}).command == cli::Command::bare);
  CHECK(options({"--config", "/c.yml", "acp"}).config == "/c.yml");
  CHECK(options({"acp", "--config", "/c.yml"}).config == "/c.yml");
}

TEST_CASE("the command line: run asks for nothing wider unless it is told to") {
  const cli::Options plain = options({"run", "do it"});
  CHECK(plain.command == cli::Command::run);
  CHECK(plain.prompt == "do it");
  CHECK(plain.approve == agent::ApprovalPolicy::never);
  CHECK_FALSE(plain.mode);
  const cli::Options full = options({"run", "--cwd", "/w", "--approve", "always", "--mode", "read-only", "-"});
  CHECK(full.cwd == "/w");
  CHECK(full.prompt == "-");
  CHECK(full.approve == agent::ApprovalPolicy::ask);
  CHECK(full.mode == sandbox::Mode::read_only);
  CHECK(end({"run"}).exit_code == 2);
  CHECK(end({"run", "--approve", "sometimes", "x"}).exit_code == 2);
  CHECK(end({"run", "--mode", "open", "x"}).exit_code == 2);
  CHECK(end({"run", "two", "prompts"}).exit_code == 2);
}

TEST_CASE("the command line: what follows -- is the confined command, options and all") {
  const cli::Options confine = options(
      {"confine", "--mode", "workspace-write", "--root", "/w", "--runner", "landlock", "--", "ls", "--mode", "-la"});
  CHECK(confine.command == cli::Command::confine);
  CHECK(confine.mode == sandbox::Mode::workspace_write);
  CHECK(confine.root == "/w");
  CHECK(confine.runner == "landlock");
  CHECK(confine.argv == std::vector<std::string>{"ls", "--mode", "-la"});
  CHECK(options({"confine", "--", "bash", "-c", "echo -- x"}).argv ==
        std::vector<std::string>{"bash", "-c", "echo -- x"});
  CHECK(options({"confine", "--", "printf", "%s", "--", ""}).argv ==
        std::vector<std::string>{"printf", "%s", "--", ""});
  CHECK(end({"confine"}).exit_code == 2);
  CHECK(end({"confine", "--runner", "seatbelt", "--", "ls"}).exit_code == 2);
}

TEST_CASE("the command line: sessions") {
  CHECK(options({"sessions", "list"}).action == cli::SessionsAction::list);
  const cli::Options show = options({"sessions", "show", "abc"});
  CHECK(show.command == cli::Command::sessions);
  CHECK(show.action == cli::SessionsAction::show);
  CHECK(show.session == "abc");
  CHECK(options({"sessions", "requests", "abc"}).action == cli::SessionsAction::requests);
  CHECK(options({"sessions", "export", "abc"}).action == cli::SessionsAction::export_log);
  CHECK(end({"sessions"}).exit_code == 2);
  CHECK(end({"sessions", "show"}).exit_code == 2);
}

TEST_CASE("the command line: help, version, mistakes") {
  CHECK(end({"--version"}).exit_code == 0);
  CHECK(end({"--version"}).text.find("1.2.3") != std::string::npos);
  const cli::ParseEnd help = end({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.text.find("confine") != std::string::npos);
  CHECK(help.text.find("share/doc/acp-agent/docs/configuration.md") != std::string::npos);
  CHECK(end({"run", "--help"}).exit_code == 0);
  const std::string run_help = end({"run", "--help"}).text;
  for (const char* text : {"every question", "  3    not done because it was denied", "  75   ", "  130  SIGINT"})
    CHECK(run_help.find(text) != std::string::npos);
  CHECK(options({"--print-config"}).command == cli::Command::print_config);
  CHECK(end({"frobnicate"}).exit_code == 2);
  CHECK(end({"--frobnicate"}).exit_code == 2);
  CHECK(end({"--print-config", "run", "x"}).exit_code == 2);
}

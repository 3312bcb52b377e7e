// What the sandbox and tool tests share: a folder that goes away, a sandbox whose answer the test writes.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/child.h"
#include "sandbox/local_sandbox.h"
#include "sandbox/shell.h"
#include "tests/folder.h"

namespace test {

inline void put_program(const std::string& path, const std::string& text) {
  put(path, text);
  REQUIRE(chmod(path.c_str(), 0755) == 0);
}

inline sandbox::ShellOptions shell_options() {
  sandbox::ShellOptions options;
  const auto helper = base::helper_path("call-init");
  REQUIRE(helper.has_value());
  options.call_init = *helper;
  options.host.state_dir = "/var/tmp/acp-test-no-such-state";
  return options;
}

// Wraps argv as the test says.
class FakeSandbox : public sandbox::Sandbox {
 public:
  explicit FakeSandbox(sandbox::ConfinedArgv answer) : answer_(std::move(answer)) {}
  base::Result<sandbox::ConfinedArgv> confine(const std::vector<std::string>& argv, const sandbox::Policy&,
                                              const std::string&, std::stop_token) override {
    sandbox::ConfinedArgv confined = answer_;
    confined.argv.insert(confined.argv.end(), argv.begin(), argv.end());
    return confined;
  }
  void report_runner_failure() override { ++failures; }
  std::vector<std::string> describe(std::stop_token) override { return {}; }

  std::atomic<int> failures{0};

 private:
  sandbox::ConfinedArgv answer_;
};

class NoSandbox : public sandbox::Sandbox {
 public:
  base::Result<sandbox::ConfinedArgv> confine(const std::vector<std::string>&, const sandbox::Policy&,
                                              const std::string&, std::stop_token) override {
    return base::fail(base::ErrorCode::sandbox_unavailable, "no backend works here");
  }
  void report_runner_failure() override {}
  std::vector<std::string> describe(std::stop_token) override { return {}; }
};

// Whether a backend works on this kernel.
inline bool usable(const std::string& backend) {
  sandbox::LocalSandboxOptions options;
  options.chain = {backend};
  options.launcher = base::helper_path("landlock-run").value();
  options.call_init = base::helper_path("call-init").value();
  const auto lines = sandbox::make_local_sandbox(options)->describe({});
  return !lines.empty() && lines.front().rfind(backend + ": works", 0) == 0;
}

}  // namespace test

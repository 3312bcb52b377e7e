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
#include "sandbox/shell.h"

namespace test {

// Below /var/tmp: /tmp is writable to every confined call.
class Folder {
 public:
  Folder() {
    char name[] = "/var/tmp/acp-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path_ = std::filesystem::canonical(name);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void put(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  REQUIRE(file.good());
}

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

}  // namespace test

#include "cli/paths.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "assets.h"
#include "base/fd.h"

namespace {

cli::Env env_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

// home/, config/acp-agent/, bin/, share/acp-agent/ below a fresh folder.
struct Tree {
  std::string root;
  Tree() {
    char name[] = "/var/tmp/cli-paths-XXXXXX";
    root = mkdtemp(name);
    for (const char* folder :
         {"/home", "/home/.config", "/home/.config/acp-agent", "/bin", "/share", "/share/acp-agent"}) {
      mkdir((root + folder).c_str(), 0700);
    }
  }
  ~Tree() { (void)!system(("rm -rf " + root).c_str()); }
  void write(const std::string& path, const std::string& text) { REQUIRE(base::write_file(root + path, text, 0600)); }
  std::string executable() const { return root + "/bin/acp-agent"; }
};

}  // namespace

TEST_CASE("the state folder: XDG_STATE_HOME, else below the home folder, relative values ignored") {
  CHECK(cli::state_folder(env_of({{"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}})) == "/s/acp-agent");
  CHECK(cli::state_folder(env_of({{"XDG_STATE_HOME", "s"}, {"HOME", "/h"}})) == "/h/.local/state/acp-agent");
  CHECK(cli::state_folder(env_of({{"XDG_STATE_HOME", ""}, {"HOME", "/h"}})) == "/h/.local/state/acp-agent");
  // Without HOME the password database is asked.
  CHECK(cli::home_folder(env_of({})).front() == '/');
  CHECK(cli::home_folder(env_of({{"HOME", "relative"}})) == cli::home_folder(env_of({})));
}

TEST_CASE("the composition is found in this order, and never in the working directory") {
  Tree tree;
  const auto found = [&](const std::string& option, std::map<std::string, std::string> values) {
    values["HOME"] = tree.root + "/home";
    const auto source = cli::find_config(option, env_of(values), tree.executable());
    REQUIRE(source);
    return *source;
  };
  tree.write("/cordis.yml", "of the working directory");
  const std::string before = [] {
    char* path = get_current_dir_name();
    std::string text = path;
    free(path);
    return text;
  }();
  REQUIRE(chdir(tree.root.c_str()) == 0);
  CHECK(found("", {}).text == assets::cordis_yml);
  CHECK(found("", {}).name == "(built in) cordis.yml");
  tree.write("/share/acp-agent/cordis.yml", "installed");
  CHECK(found("", {}).text == "installed");
  tree.write("/home/.config/acp-agent/cordis.yml", "user");
  CHECK(found("", {}).text == "user");
  tree.write("/named.yml", "environment");
  CHECK(found("", {{"ACP_AGENT_CONFIG", tree.root + "/named.yml"}}).text == "environment");
  tree.write("/option.yml", "option");
  CHECK(found(tree.root + "/option.yml", {{"ACP_AGENT_CONFIG", tree.root + "/named.yml"}}).text == "option");
  REQUIRE(chdir(before.c_str()) == 0);
}

TEST_CASE("a composition that was named but is not there is an error, and so is one that cannot be read") {
  Tree tree;
  const cli::Env env = env_of({{"HOME", tree.root + "/home"}});
  CHECK_FALSE(cli::find_config(tree.root + "/nowhere.yml", env, tree.executable()));
  CHECK_FALSE(cli::find_config("", env_of({{"ACP_AGENT_CONFIG", tree.root + "/nowhere.yml"}}), tree.executable()));
  const auto relative = cli::find_config("", env_of({{"ACP_AGENT_CONFIG", "cordis.yml"}}), tree.executable());
  REQUIRE_FALSE(relative);
  CHECK(relative.error().message.find("absolute path") != std::string::npos);
  // A folder in the place of the file.
  mkdir((tree.root + "/home/.config/acp-agent/cordis.yml").c_str(), 0700);
  const auto folder = cli::find_config("", env, tree.executable());
  REQUIRE_FALSE(folder);
  CHECK_THAT(folder.error().message, Catch::Contains("your own composition is looked for there: set HOME or "));
}

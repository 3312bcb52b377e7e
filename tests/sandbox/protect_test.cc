// Protected paths, with real git: what they hold, what keeps working, and that nothing planted in the workspace moves a
// mount or widens a later call.
#include "sandbox/protect.h"

#include <algorithm>
#include <filesystem>

#include "sandbox/fs.h"
#include "sandbox/git_folder.h"
#include "sandbox/local_sandbox.h"
#include "tests/sandbox/support.h"

using sandbox::Host;
using sandbox::Mode;
using sandbox::Policy;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

namespace {

const std::stop_token never;
const std::string as_somebody =
    "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a "
    "GIT_COMMITTER_EMAIL=a@b; g() { git -c protocol.file.allow=always -c init.defaultBranch=main \"$@\"; }; ";

bool contains(const Words& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

struct World {
  test::Folder folder;
  std::string ws = folder / "ws", out = folder / "out";
  Host host;
  Policy policy;
  World() {
    for (const std::string& path : {ws, out}) fs::create_directories(path);
    host.home = "/nonexistent";
    host.state_dir = "/var/tmp/acp-test-no-such-state";
    policy.mode = Mode::workspace_write;
    policy.workspace_root = ws;
    policy.sockets.masked.clear();
  }
  // On the host, as the user would.
  std::string unconfined(const std::string& script, bool must = true) const {
    sandbox::ShellExecutor shell(test::shell_options(), nullptr);
    Policy all;
    all.mode = Mode::danger_full_access;
    const auto outcome = shell.run({as_somebody + script, ws, all, {}, {}, {}}, never);
    REQUIRE(outcome);
    INFO(script << "\n" << outcome->out << outcome->err);
    if (must) REQUIRE(outcome->exit_code == 0);
    return outcome->out + outcome->err;
  }
  base::Result<sandbox::ShellOutcome> run(const std::string& script, const std::string& backend = "bwrap") const {
    sandbox::LocalSandboxOptions options;
    options.chain = {backend};
    options.host = host;
    options.launcher = base::helper_path("landlock-run").value();
    options.call_init = base::helper_path("call-init").value();
    auto shell_options = test::shell_options();
    shell_options.host = host;
    sandbox::ShellExecutor shell(shell_options, sandbox::make_local_sandbox(options));
    return shell.run({as_somebody + script, ws, policy, {}, {}, {}}, never);
  }
  // Each line is one attack; none may succeed as a command, and what it aims at is looked at by the caller.
  void attacks(const Words& scripts) const {
    for (const std::string& script : scripts) {
      const auto outcome = run("( " + script + " ) 2>&1");
      REQUIRE(outcome);
      INFO(script << "\n" << outcome->out << outcome->err << outcome->runner_failure);
      CHECK_FALSE(outcome->runner_failed);
      CHECK(outcome->exit_code.value_or(0) != 0);
    }
  }
  void works(const std::string& script) const {
    const auto outcome = run(script);
    REQUIRE(outcome);
    INFO(script << "\n" << outcome->out << outcome->err << outcome->runner_failure);
    CHECK(outcome->exit_code == 0);
  }
  Words roots() const { return sandbox::writable_roots(policy, host).value(); }
  sandbox::Protected guarded() const { return sandbox::protected_paths(policy, roots(), host).value(); }
  bool written(const std::string& path, const std::string& bytes = "x") const {
    return sandbox::make_fenced_fs(host)->write({path, bytes, std::nullopt}, policy).has_value();
  }
};

std::string listing(const std::string& folder) {
  Words names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += name + " ";
  return text;
}

}  // namespace

TEST_CASE("a repository keeps its hooks and config, the editor its tasks, and git works") {
  World world;
  world.unconfined(
      "g init -q . && echo 1 > f && g add f && g commit -qm 1 && mkdir .vscode && echo t > .vscode/tasks.json && "
      "echo e > .envrc && cp -r .git " +
      world.folder / "before");
  const auto guarded = world.guarded();
  CHECK(guarded.kept ==
        Words{world.ws + "/.envrc", world.ws + "/.git/config", world.ws + "/.git/hooks", world.ws + "/.vscode"});
  CHECK(guarded.absent == Words{world.ws + "/.git/commondir", world.ws + "/.git/config.worktree", world.ws + "/.idea",
                                world.ws + "/.mcp.json"});
  CHECK(guarded.links.empty());

  for (const std::string& path : guarded.kept) {
    CHECK_FALSE(world.written(path));
    CHECK_FALSE(world.written(path + "/new"));
  }
  for (const std::string& path : guarded.absent) {
    CHECK_FALSE(world.written(path));
    CHECK_FALSE(world.written(path + "/new"));
  }
  CHECK(world.written(world.ws + "/.git/info/grafts"));
  CHECK(world.written(world.ws + "/AGENTS.md"));

  if (!test::usable("bwrap")) return;
  world.attacks({
      "echo n > .git/hooks/pre-commit",
      "g config core.fsmonitor touch",
      "echo n >> .git/config",
      "rm -f .git/config",
      "mv .git .g2 && mkdir -p .git/hooks",
      "mv .git/hooks .git/h2",
      "rm -rf .git/hooks",
      "mv .git/config .git/c2",
      "echo n > c2 && mv c2 .git/config",
      "echo n > .vscode/tasks.json",
      "mv .vscode v2",
      "rm -rf .vscode",
      "echo n > .envrc",
      "mv .envrc e2",
      "chmod 777 .git/hooks",
      "mount -o remount,bind,rw .git/hooks",
      "umount .git/hooks",
  });
  CHECK(world.unconfined("diff -r .git/hooks " + (world.folder / "before") + "/hooks && diff .git/config " +
                         (world.folder / "before") + "/config") == "");
  CHECK(test::slurp(world.ws + "/.vscode/tasks.json") == "t\n");
  CHECK(test::slurp(world.ws + "/.envrc") == "e\n");

  world.works("echo 2 > f && g add f && g commit -qm 2 && echo 3 > f && g stash -q && g stash pop -q");
  world.works(
      "g checkout -q . && g checkout -qb side HEAD~1 && echo s > s && g add s && g commit -qm s && g rebase -q main");
  world.works("g worktree add -q wt -b wt && cd wt && echo w > w && g add w && g commit -qm w");
  world.works("g worktree remove wt && g branch -q -D wt && g tag t && g tag -d t && g gc -q");
  CHECK(listing(world.ws) == ".envrc .git .vscode AGENTS.md c2 f s ");
}

TEST_CASE("what does not exist leaves nothing behind, and hooks laid down before git init are refused to the fence") {
  World world;
  CHECK(world.guarded().kept.empty());
  CHECK(contains(world.guarded().absent, world.ws + "/.git/hooks"));
  CHECK_FALSE(world.written(world.ws + "/.git/hooks/pre-commit"));
  CHECK_FALSE(world.written(world.ws + "/.mcp.json"));
  if (!test::usable("bwrap")) return;
  world.works("true");
  CHECK(listing(world.ws) == "");
  world.works("g init -q . && echo 1 > f && g add f && g commit -qm 1");
  world.attacks({"g config a.b c"});
}

TEST_CASE("submodules, worktrees elsewhere, and what the config names as hooks or config are held too") {
  World world;
  world.unconfined(
      "g init -q ../sub && g -C ../sub commit -q --allow-empty -m s && g init -q . && g submodule --quiet add ../sub "
      "libs/sub && g commit -qm 1 && g worktree add -q ../out/wt -b wt && g worktree add -q in -b in && mkdir hooks.d "
      "&& "
      "echo > more.cfg && g config core.hooksPath hooks.d && g config include.path ../more.cfg && "
      "printf '[includeIf \"onbranch:a]b\"] path = ../third.cfg # why\\n' >> .git/config && echo > third.cfg");
  const auto guarded = world.guarded();
  const std::string git = world.ws + "/.git";
  for (const char* name : {"/modules/libs/sub/hooks", "/modules/libs/sub/config", "/worktrees/wt/commondir", "/config"})
    CHECK(contains(guarded.kept, git + name));
  CHECK_FALSE(contains(guarded.kept, git + "/worktrees/in/commondir"));
  for (const char* name : {"/hooks.d", "/more.cfg", "/third.cfg"}) CHECK(contains(guarded.kept, world.ws + name));
  CHECK(guarded.links.empty());
  if (!test::usable("bwrap")) return;
  world.attacks({
      "echo n > .git/modules/libs/sub/hooks/post-checkout",
      "g -C libs/sub config a.b c",
      "mv .git/modules .git/m2",
      "mv .git/modules/libs .git/modules/l2",
      "mv .git/modules/libs/sub .git/modules/libs/s2",
      "echo /tmp > .git/worktrees/wt/commondir",
      "mv .git/worktrees/wt .git/worktrees/w2",
      "echo n > hooks.d/pre-commit",
      "mv hooks.d h2",
      "echo n > more.cfg",
  });
  world.works(
      "cd libs/sub && echo 1 > f && g add f && g commit -qm 1 && cd ../.. && g add libs/sub && g commit -qm up");
  world.works("cd in && echo 1 > f && g add f && g commit -qm 1 && cd .. && g worktree remove in");
}

TEST_CASE("more submodules than can be mounted are held by their folder") {
  World world;
  for (int i = 0; i < 70; ++i) {
    fs::create_directories(world.ws + "/.git/modules/m" + std::to_string(i) + "/hooks");
    test::put(world.ws + "/.git/modules/m" + std::to_string(i) + "/HEAD", "ref: refs/heads/main\n");
  }
  const auto kept = world.guarded().kept;
  CHECK(kept == Words{world.ws + "/.git/modules"});
}

TEST_CASE("a link planted in the place of a protected path moves no mount and stops no later call") {
  World world;
  fs::create_directories(world.ws + "/src");
  fs::create_directories(world.ws + "/.git/real");
  test::put(world.out + "/f", "ORIG");
  fs::create_symlink(world.out, world.ws + "/.vscode");
  fs::create_symlink(world.out + "/new", world.ws + "/.idea");
  fs::create_symlink("/oldroot" + world.out + "/new", world.ws + "/.envrc");
  fs::create_symlink(".", world.ws + "/.mcp.json");
  fs::create_symlink("real", world.ws + "/.git/hooks");
  const auto guarded = world.guarded();
  CHECK(guarded.kept == Words{world.ws + "/.git/real"});
  CHECK(guarded.links.size() == 5);
  CHECK_FALSE(world.written(world.ws + "/.git/hooks/pre-commit"));
  if (!test::usable("bwrap")) return;
  const auto outcome = world.run("echo y > src/f; echo n > .git/real/x; echo n > .vscode/x; true");
  REQUIRE(outcome);
  CHECK_FALSE(outcome->runner_failed);
  CHECK(to_string(*outcome->enforcement).find("a protected path is a link: " + world.ws) != std::string::npos);
  CHECK(fs::exists(world.ws + "/src/f"));
  CHECK(fs::is_empty(world.ws + "/.git/real"));
  CHECK(listing(world.out) == "f ");
  CHECK(test::slurp(world.out + "/f") == "ORIG");

  world.policy.protect = Words{".vscode"};
  CHECK(world.run("true").error().code == base::ErrorCode::sandbox_unavailable);
  CHECK_FALSE(world.written(world.ws + "/src/g"));
}

TEST_CASE("a list replaces the default, an empty one switches it off, and the agent's own config is in neither") {
  World world;
  world.unconfined("g init -q . && mkdir mine .vscode conf && echo c > conf/cordis.yml && echo c > other.yml");
  world.host.config_dir = world.ws + "/conf/acp-agent";
  world.host.config_file = world.ws + "/other.yml";
  world.policy.protect = Words{"mine/", "later"};
  CHECK(world.guarded().kept == Words{world.ws + "/mine", world.ws + "/other.yml"});
  CHECK(world.guarded().absent == Words{world.ws + "/conf/acp-agent", world.ws + "/later"});
  CHECK(sandbox::protected_words(world.policy) == "mine/, later");
  world.policy.protect = Words{};
  CHECK(world.guarded().kept == Words{world.ws + "/other.yml"});
  CHECK(sandbox::protected_words(world.policy) == "");
  CHECK_FALSE(world.written(world.ws + "/conf/acp-agent/cordis.yml"));
  CHECK(sandbox::protected_words(Policy{}) == "git hooks and config, .vscode, .idea, .envrc, .mcp.json");
  if (!test::usable("bwrap")) return;
  world.works("g config a.b c && echo y > .vscode/x");
  // The folder is made rather than left to the command to make.
  world.attacks({"echo n > other.yml", "echo n > conf/acp-agent/cordis.yml", "mv conf conf2", "rm -rf conf/acp-agent"});
}

TEST_CASE("Landlock alone: the default list is reported as not covered, a chosen one is refused") {
  if (!test::usable("landlock")) return;
  World world;
  world.unconfined("g init -q .");
  auto outcome = world.run("true", "landlock");
  REQUIRE(outcome);
  CHECK(outcome->exit_code == 0);
  CHECK(to_string(*outcome->enforcement).find("protected paths not covered") != std::string::npos);
  world.policy.protect = Words{};
  outcome = world.run("true", "landlock");
  REQUIRE(outcome);
  CHECK(to_string(*outcome->enforcement).find("protected") == std::string::npos);
  world.policy.protect = Words{".git"};
  CHECK(world.run("true", "landlock").error().code == base::ErrorCode::sandbox_unavailable);
  world.policy.protect.reset();
  world.policy.mode = Mode::read_only;
  outcome = world.run("true", "landlock");
  REQUIRE(outcome);
  CHECK(to_string(*outcome->enforcement).find("protected") == std::string::npos);
}

TEST_CASE("a linked worktree commits to its repository, and to nothing else of it") {
  World world;
  const std::string common = world.folder / "repo/.git";
  world.unconfined(
      "rmdir ../ws && g init -q ../repo && cd ../repo && echo 1 > f && g add f && g commit -qm 1 && "
      "g worktree add -q ../ws -b ws && g worktree add -q ../out/other -b other");
  const std::string own = common + "/worktrees/ws";
  CHECK(sandbox::linked_worktree(world.ws) == own);
  CHECK(world.roots() == Words{world.ws, "/tmp"});  // not without the session's word
  world.policy.worktree = own;
  CHECK(world.roots() ==
        Words{world.ws, "/tmp", common + "/objects", common + "/refs", common + "/logs", common + "/worktrees"});
  for (const std::string& path : {world.ws + "/.git", own + "/commondir", common + "/worktrees/other/commondir"})
    CHECK(contains(world.guarded().kept, path));
  for (const char* name : {"/hooks/pre-commit", "/config", "/commondir", "/worktrees/other/commondir"})
    CHECK_FALSE(world.written(common + name));

  for (const std::string backend : {"bwrap", "landlock"}) {
    if (!test::usable(backend)) continue;
    INFO(backend);
    const auto outcome = world.run(
        "echo 2 > g && g add g && g commit -qm 2 && echo 3 > g && g stash -q && g stash apply -q "
        "&& g checkout -q . && g checkout -qb s" +
            backend +
            " HEAD~1 && echo s > s && g add s && "
            "g commit -qm s && g rebase -q ws && g checkout -q ws && rm -f s && g reset -q --hard HEAD~1",
        backend);
    REQUIRE(outcome);
    INFO(outcome->out << outcome->err);
    CHECK(outcome->exit_code == 0);
  }
  if (!test::usable("bwrap")) return;
  world.works("g worktree add -q sub -b sub && cd sub && echo 1 > h && g add h && g commit -qm 3");
  world.attacks({
      "echo n > " + common + "/hooks/pre-commit",
      "echo n >> " + common + "/config",
      "echo /tmp > " + common + "/commondir",
      "echo /tmp > " + own + "/commondir",
      "echo /tmp > " + common + "/worktrees/other/commondir",
      "mv " + common + "/worktrees/other " + common + "/worktrees/o2",
      "echo 'gitdir: /tmp' > .git",
      "mv .git g2",
      "echo n > ../repo/f",
  });
}

TEST_CASE("config of a worktree elsewhere is not laid down, also where there was none") {
  World world;
  const std::string feature = world.folder / "feature", config = world.ws + "/.git/worktrees/feature/config.worktree";
  world.unconfined("g init -q . && g commit -q --allow-empty -m 1 && g config extensions.worktreeConfig true && " +
                   ("g worktree add -q " + feature + " && g worktree add -q inside"));
  const Words absent = world.guarded().absent;
  CHECK(std::count(absent.begin(), absent.end(), config) == 1);
  CHECK_FALSE(world.written(config));
  CHECK_FALSE(world.written(world.ws + "/.git/worktrees/inside/config.worktree"));
  for (const std::string backend : {"bwrap", "landlock"}) {
    if (!test::usable(backend)) continue;
    for (const std::string& way :
         {std::string("echo n > .git/worktrees/feature/config.worktree"),
          std::string("echo n > .git/worktrees/inside/config.worktree"),
          "g -C " + feature + " config --worktree core.editor n",
          std::string(
              "mkdir p && echo n > p/config.worktree; mv -T .git/worktrees/feature o; mv -T p .git/worktrees/feature"),
          std::string("mkdir p && echo n > p/config.worktree; mv -T .git/worktrees/feature o; ln -sT ../../p "
                      ".git/worktrees/feature"),
          std::string("mkdir -p p/feature && echo n > p/feature/config.worktree; mv -T .git/worktrees o; mv -T p "
                      ".git/worktrees")}) {
      INFO(backend << ": " << way);
      const auto outcome = world.run(way, backend);
      REQUIRE(outcome);
      CHECK(outcome->exit_code.value_or(0) != 0);
      CHECK_FALSE(fs::exists(config));
      if (fs::exists(world.ws + "/o")) {  // back again
        const std::string place = fs::exists(world.ws + "/o/feature") ? "/.git/worktrees" : "/.git/worktrees/feature";
        fs::remove_all(world.ws + place);
        fs::rename(world.ws + "/o", world.ws + place);
      }
      fs::remove_all(world.ws + "/p");
    }
    const auto outcome = world.run("g worktree add -q new-" + backend +
                                       " && g -C inside commit -q --allow-empty -m 2 && "
                                       "g worktree remove inside && g worktree add -q inside inside",
                                   backend);
    REQUIRE(outcome);
    INFO(backend << outcome->err);
    CHECK(outcome->exit_code == 0);
    world.unconfined("g -C inside status && g -C " + feature + " status");
  }
}

TEST_CASE("what is laid down as a submodule's git folder is refused, work in a submodule is not") {
  World world;
  world.unconfined("g init -q " + world.folder / "sub" + " && g -C " + world.folder / "sub" +
                   " commit -q --allow-empty -m 1 && g init -q . && "
                   "g -c protocol.file.allow=always submodule add -q " +
                   world.folder / "sub" +
                   " deep/m && g commit -qm 1 && g init -q --bare b && echo n > b/hooks/post-checkout");
  const std::string modules = world.ws + "/.git/modules";
  for (const std::string& path : {modules + "/x/config", modules + "/deep/x", modules + "/deep/m/hooks/new"})
    CHECK_FALSE(world.written(path));
  CHECK(world.written(modules + "/deep/m/info/new"));
  if (!test::usable("bwrap")) return;
  world.works("cd deep/m && echo 2 > f && g add f && g commit -qm 2 && g checkout -qb b && g gc -q && g fsck");
  world.attacks({"mkdir .git/modules/x", "mv b .git/modules/x", "ln -s ../../b .git/modules/x",
                 "cp -r b .git/modules/x", "mv b .git/modules/deep/x",
                 "mkdir p; mv b p/m; mv .git/modules o; mv p .git/modules", "mv .git/modules/deep o",
                 "g clone -q --bare . .git/modules/deep/x"});
  CHECK(listing(modules) == "deep ");
  CHECK(listing(modules + "/deep") == "m ");
  world.unconfined("rm -rf .git/modules deep");
  world.attacks({"mkdir .git/modules", "mv b .git/modules", "ln -s ../b .git/modules"});
  CHECK_FALSE(fs::exists(fs::symlink_status(modules)));
}

TEST_CASE("a bare repository as the workspace keeps its hooks and config") {
  World world;
  world.unconfined("g init -q --bare . && rm -rf " + world.folder / "c" + " && g clone -q . " + world.folder / "c" +
                   " && g -C " + world.folder / "c" + " commit -q --allow-empty -m 1");
  CHECK(world.guarded().kept == Words{world.ws + "/config", world.ws + "/hooks"});
  CHECK_FALSE(world.written(world.ws + "/hooks/post-update"));
  CHECK_FALSE(world.written(world.ws + "/commondir"));
  if (!test::usable("bwrap")) return;
  world.attacks({"echo n > hooks/pre-receive", "echo n >> config", "mv hooks h2", "echo /tmp > commondir"});
  world.works("g fetch -q " + world.folder / "c" + " HEAD:new && g gc -q && g update-ref refs/heads/x new");
}

TEST_CASE("a repository that lost its config and hooks is not replaced by a prepared one") {
  World world;
  world.unconfined("g init -q . && rm -rf .git/hooks .git/config && g init -q p && echo n > p/.git/hooks/pre-commit");
  for (const std::string backend : {"bwrap", "landlock"}) {
    if (!test::usable(backend)) continue;
    for (const std::string way : {"mv .git o && mv p/.git .git", "mv .git o && ln -s p/.git .git",
                                  "mv p/.git/hooks .git/hooks", "cp p/.git/config .git/config"}) {
      INFO(backend << ": " << way);
      const auto outcome = world.run(way, backend);
      REQUIRE(outcome);
      CHECK(outcome->exit_code.value_or(0) != 0);
      if (fs::exists(world.ws + "/o")) fs::rename(world.ws + "/o", world.ws + "/.git");
      CHECK_FALSE(fs::exists(world.ws + "/.git/hooks"));
      CHECK_FALSE(fs::exists(world.ws + "/.git/config"));
    }
  }
}

TEST_CASE("a folder that was closed is not opened again to get at what it holds") {
  World world;
  world.unconfined("g init -q . && mkdir -p .vscode && echo t > .vscode/tasks.json");
  if (!test::usable("bwrap")) return;
  for (const char* mode : {"000", "644"}) {
    for (const auto& [folder, file] : {std::pair{".git", ".git/config"}, std::pair{".vscode", ".vscode/tasks.json"}}) {
      INFO(folder << " " << mode);
      world.unconfined(std::string("chmod ") + mode + " " + folder);
      // Root gets in and out as it likes, so to root the folder is not closed, and what it holds is held itself.
      world.attacks({std::string("chmod 755 ") + folder + "; echo x >> " + file, std::string("mv -T ") + folder + " o",
                     std::string("mkdir p && mv -T p ") + folder, std::string("rmdir ") + folder});
      world.unconfined(std::string("chmod 755 ") + folder + "; rmdir p");
      CHECK_FALSE(fs::exists(world.ws + "/o"));
    }
  }
  world.works("g status -s && g add -A && g commit -qm 1");
}

TEST_CASE("a .git file that a command wrote widens nothing") {
  World world;
  const std::string repo = world.folder / "repo";
  world.unconfined(
      "g init -q ../repo && cd ../repo && g commit -q --allow-empty -m 1 && g worktree add -q ../out/wt -b wt");
  const auto forged = [&](const std::string& pointer) {
    test::put(world.ws + "/.git", "gitdir: " + pointer + "\n");
    return sandbox::linked_worktree(world.ws);
  };
  CHECK(forged(repo + "/.git/worktrees/wt") == "");  // of another folder: nothing there names this one
  CHECK(forged(repo + "/.git") == "");
  CHECK(forged("/") == "");
  // A folder of the workspace that claims a repository elsewhere as its own.
  const std::string fake = world.ws + "/worktrees/x";
  fs::create_directories(fake);
  test::put(fake + "/gitdir", world.ws + "/.git\n");
  test::put(fake + "/HEAD", "ref: refs/heads/main\n");
  test::put(fake + "/commondir", repo + "/.git\n");
  CHECK(forged(fake) == "");
  fs::create_directory_symlink(repo + "/.git", world.ws + "/worktrees/link");
  CHECK(forged(world.ws + "/worktrees/link/worktrees/wt") == "");
  fs::create_symlink(world.out + "/wt/.git", world.ws + "/.git2");
  fs::rename(world.ws + "/.git2", world.ws + "/.git");
  CHECK(sandbox::linked_worktree(world.ws) == "");
  fs::remove(world.ws + "/.git");

  // Settled as true, then changed: the word of the session alone does not suffice either.
  world.unconfined("rm -rf ../ws/* && rmdir ../ws && cd ../repo && g worktree add -q ../ws -b ws");
  world.policy.worktree = sandbox::linked_worktree(world.ws);
  REQUIRE(world.policy.worktree == repo + "/.git/worktrees/ws");
  CHECK(world.roots().size() > 2);
  test::put(world.ws + "/.git", "gitdir: " + repo + "/.git/worktrees/wt\n");
  CHECK(world.roots().size() == 2);
}

TEST_CASE("a worktree's own config that is not there yet cannot be held, so that worktree gets no repository") {
  World world;
  world.unconfined(
      "rmdir ../ws && g init -q ../repo && cd ../repo && g commit -q --allow-empty -m 1 && "
      "g worktree add -q ../ws -b ws && g config extensions.worktreeConfig true");
  CHECK(sandbox::linked_worktree(world.ws) == "");
  const std::string own = world.folder / "repo/.git/worktrees/ws";
  test::put(own + "/config.worktree", "");
  test::put(own + "/commondir", world.out + "\n");
  CHECK(sandbox::linked_worktree(world.ws) == "");
  test::put(own + "/commondir", "../..\n");
  CHECK(sandbox::linked_worktree(world.ws) == own);
  world.policy.worktree = own;
  CHECK(contains(world.roots(), own));  // and not the folder of all
  CHECK(contains(world.guarded().kept, own + "/config.worktree"));
}

TEST_CASE("every backend and the fence hold the same list") {
  World world;
  world.unconfined("g init -q . && mkdir .vscode");
  sandbox::ProfileInput input;
  input.policy = world.policy;
  input.roots = world.roots();
  input.host = world.host;
  input.cwd = world.ws;
  input.argv = {"true"};
  const auto guarded = world.guarded();
  input.read_only = guarded.kept;
  input.absent = guarded.absent;
  const Words argv = sandbox::bwrap_argv("/usr/bin/bwrap", input);
  const std::string seatbelt = sandbox::seatbelt_profile(input);
  for (const std::string& path : guarded.kept) {
    const Words mount{"--ro-bind", path, path};
    CHECK(std::search(argv.begin(), argv.end(), mount.begin(), mount.end()) != argv.end());
  }
  for (const auto* list : {&guarded.kept, &guarded.absent})
    for (const std::string& path : *list)
      CHECK(seatbelt.find("(deny file-write* (subpath \"" + path + "\"))\n") != std::string::npos);
  CHECK(seatbelt.find("(deny file-write-unlink (literal \"" + world.ws + "/.git\"))\n") != std::string::npos);
}

TEST_CASE("a denied change of a protected path, and of the state below a root, is told") {
  World world;
  fs::create_directories(world.ws + "/.vscode");
  fs::create_directories(world.ws + "/state/acp-agent");
  world.host.state_dir = world.ws + "/state/acp-agent";
  const auto outcome = world.run("echo x > .vscode/tasks.json; echo x > state/acp-agent/x; echo x > fine; true");
  REQUIRE(outcome);
  REQUIRE(outcome->denials.size() == 2);
  CHECK(outcome->denials[0].path == world.ws + "/.vscode/tasks.json");
  CHECK(outcome->denials[1].path == world.ws + "/state/acp-agent/x");
}

TEST_CASE("a command planted a protected name that was not there") {
  World world;
  world.unconfined("g init -q .");
  world.attacks(
      {"echo x > .git/commondir", "mkdir .vscode", "echo x > .envrc", "mkdir e; mv e .idea", "ln -s /etc .mcp.json"});
  for (const char* name : {"/.git/commondir", "/.vscode", "/.envrc", "/.idea", "/.mcp.json"})
    CHECK_FALSE(fs::exists(fs::symlink_status(world.ws + name)));
  world.works("echo x > a && g add a && g commit -qm a && mkdir sub && cd sub && g init -q . && echo x > b && g add b");
}

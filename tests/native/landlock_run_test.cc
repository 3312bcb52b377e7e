// landlock-run on this kernel. Without Landlock here, or switched off: skipped with the kernel's reason, failed with
// CI=true.
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "tests/native/support.h"

namespace {

bool landlock_works() {
  static const bool works = [] {
    const auto probe = test::run(test::options({test::helper("landlock-run"), "--probe"}));
    if (probe.exit.exit_code == 0) {
      const std::string first = probe.out.substr(0, probe.out.find('\n'));
      REQUIRE((first == "landlock: fully enforced" || first == "landlock: partially enforced (older ABI)"));
      REQUIRE(probe.out.substr(first.size()).starts_with("\nlistener: "));
      return true;
    }
    std::cerr << "skipped: " << probe.err;
    const char* ci = std::getenv("CI");
    if (ci != nullptr && std::string(ci) == "true") FAIL("CI=true and no Landlock: " << probe.err);
    return false;
  }();
  return works;
}

test::Outcome launch(std::vector<std::string> grants, std::vector<std::string> command) {
  std::vector<std::string> argv{test::helper("landlock-run"), "--status", "3", "--quiet"};
  argv.insert(argv.end(), grants.begin(), grants.end());
  argv.emplace_back("--");
  argv.insert(argv.end(), command.begin(), command.end());
  auto options = test::options(std::move(argv));
  options.launcher_status = true;
  return test::run(options);
}

}  // namespace

TEST_CASE("landlock-run: what is allowed works, what is not fails") {
  if (!landlock_works()) return;
  test::Folder folder;
  std::filesystem::create_directories(folder / "in");
  std::filesystem::create_directories(folder / "out");
  std::ofstream(folder / "out/f") << "ORIG";
  std::ofstream(folder / "out/one") << "ORIG";
  const std::string in = folder / "in", out = folder / "out";
  const auto outcome =
      launch({"--ro", "/", "--rw", "/dev/null", "--rw", in, "--rw", out + "/one"},
             {"/bin/bash", "-c",
              "cd " + in + "; echo x > a; mkdir d; mv a d/b; ln d/b d/c; rm d/c; echo y > /dev/null; cat " + out +
                  "/f; echo 1 > " + out +
                  "/one;"
                  "echo n > " +
                  out + "/new; echo n > " + out + "/f; rm " + out + "/f; mv d/b " + out + "/b; ln " + out +
                  "/f h;"
                  "mkdir " +
                  out + "/d; ln -s /etc " + out + "/l; truncate -s 0 " + out +
                  "/f; grep NoNewPrivs /proc/self/status; exit 9"});
  CHECK(outcome.launcher == "R");
  CHECK(outcome.exit.exit_code == 9);
  CHECK(outcome.out == "ORIGNoNewPrivs:\t1\n");
  CHECK(test::slurp(in + "/d/b") == "x\n");
  CHECK(test::slurp(out + "/f") == "ORIG");
  CHECK(test::slurp(out + "/one") == "1\n");
  for (const char* name : {"new", "b", "d", "l"}) CHECK_FALSE(std::filesystem::exists(out + "/" + name));
  CHECK_FALSE(std::filesystem::exists(in + "/h"));
  CHECK(outcome.err.find("Permission denied") != std::string::npos);
}

TEST_CASE("landlock-run: a FIFO and a file of another folder are out of reach through links and /proc too") {
  if (!landlock_works()) return;
  test::Folder folder;
  std::filesystem::create_directories(folder / "in");
  std::ofstream(folder / "f") << "ORIG";
  std::filesystem::create_symlink(folder / "f", folder / "in/link");
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0666) == 0);
  const base::Fd reader(open((folder / "fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto outcome = launch({"--ro", "/", "--rw", folder / "in"},
                              {"/bin/bash", "-c",
                               "cd " + (folder / "in") + "; echo n > link; echo n > ../f; echo n > /proc/self/root" +
                                   (folder / "f") + "; echo n > " + (folder / "fifo")});
  CHECK(outcome.exit.exit_code == 1);
  CHECK(test::slurp(folder / "f") == "ORIG");
  char byte;
  CHECK(::read(reader.get(), &byte, 1) <= 0);
}

TEST_CASE(
    "landlock-run: of root's capabilities only those for files and ids are kept, and no descriptor is passed on") {
  if (!landlock_works()) return;
  const auto outcome =
      launch({"--ro", "/"}, {"/bin/bash", "-c", "grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status | cut -f2"});
  std::istringstream lines(outcome.out);
  std::string line;
  for (int i = 0; i < 4 && std::getline(lines, line); ++i) CHECK((std::stoull(line, nullptr, 16) & ~0xfbull) == 0);
  CHECK(launch({"--ro", "/"}, {"/bin/ls", "/proc/self/fd"}).out == "0\n1\n2\n3\n");  // 3: the folder ls reads
}

TEST_CASE("landlock-run: signals do not leave the sandbox where the kernel can keep them in") {
  if (!landlock_works()) return;
  constexpr long create_ruleset = 444;
  if (syscall(create_ruleset, nullptr, 0, 1) < 6) {
    WARN("this kernel's Landlock (ABI below 6) does not confine signals");
    return;
  }
  const std::string reach = "kill -0 " + std::to_string(getpid()) + " && echo reached";
  CHECK(launch({"--ro", "/"}, {"/bin/bash", "-c", reach}).out.empty());
  CHECK(launch({"--ro", "/"}, {"/bin/bash", "-c", "sleep 60 & kill $!; wait $!; echo $?"}).out == "143\n");
}

TEST_CASE("landlock-run: its own failures are said on both channels and run nothing") {
  if (!landlock_works()) return;
  test::Folder folder;
  auto outcome = launch({"--ro", "/"}, {"/nonexistent"});
  CHECK(outcome.exit.exit_code == 125);
  CHECK(outcome.launcher == "RFexec 2");
  CHECK(outcome.err == "landlock-run: cannot run /nonexistent: No such file or directory\n");

  outcome = launch({"--ro", "/", "--rw", folder / "missing"}, {"/bin/touch", folder / "ran"});
  CHECK(outcome.exit.exit_code == 125);
  CHECK(outcome.launcher == "Fpath 2");
  CHECK_FALSE(std::filesystem::exists(folder / "ran"));

  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"--rw"},
                                             {"--what", "x", "--", "/bin/true"},
                                             {"--ro", "/"},
                                             {"--ro", "/", "--"},
                                             {"--status", "0", "--", "/bin/true"}}) {
    std::vector<std::string> argv{test::helper("landlock-run")};
    argv.insert(argv.end(), bad.begin(), bad.end());
    outcome = test::run(test::options(argv));
    CHECK(outcome.exit.exit_code == 125);
    CHECK(outcome.err.find("landlock-run: ") == 0);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
}

TEST_CASE("landlock-run: exit codes of the command are its own") {
  if (!landlock_works()) return;
  for (const int code : {0, 37, 125, 126, 127}) {
    const auto outcome =
        launch({"--ro", "/"}, {"/bin/bash", "-c", "echo 'landlock-run: fake' >&2; exit " + std::to_string(code)});
    CHECK(outcome.exit.exit_code == code);
    CHECK(outcome.launcher == "R");
  }
  CHECK(launch({"--ro", "/"}, {"/bin/bash", "-c", "kill -TERM $$"}).exit.signal == SIGTERM);
}

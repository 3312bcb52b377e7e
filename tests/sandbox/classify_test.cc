#include "sandbox/classify.h"

#include <catch2/catch.hpp>

using namespace sandbox;

namespace {

ConfinedArgv confined(StatusChannel status) {
  ConfinedArgv argv;
  argv.backend = "test";
  argv.status = status;
  return argv;
}

RunEvidence exited(int code, std::string_view status = {}, std::string_view err = {}) {
  RunEvidence evidence;
  evidence.exit_code = code;
  evidence.status = status;
  evidence.err = err;
  return evidence;
}

RunEvidence killed(int signal, std::string_view status = {}) {
  RunEvidence evidence;
  evidence.signal = signal;
  evidence.status = status;
  return evidence;
}

bool denied(const ConfinedArgv& argv, std::string_view err) {
  DenialScanner scanner(argv, "/bin/bash");
  scanner.append(err);
  return scanner.finish();
}

ConfinedArgv bwrap_with_launcher() {
  ConfinedArgv argv = confined(StatusChannel::launcher);
  argv.denial_signatures = {{"read-only file system", false}, {"permission denied", true}};
  argv.roots = {"/var/tmp/acp-classify/ws", "/tmp"};
  return argv;
}

}  // namespace

TEST_CASE("R and then the end means that the command was exec'd, whatever it exits with") {
  const ConfinedArgv argv = confined(StatusChannel::launcher);
  for (const int code : {0, 1, 125, 126, 127})
    CHECK_FALSE(find_runner_failure(argv, exited(code, "R", "landlock-run: cannot\nbwrap: no\n")));
  CHECK_FALSE(find_runner_failure(argv, killed(9, "R")));
}

TEST_CASE("nothing on the launcher's pipe is a runner failure") {
  const ConfinedArgv argv = confined(StatusChannel::launcher);
  CHECK(find_runner_failure(argv, exited(1, "", "bwrap: no user namespace\nnoise\n")).value() ==
        "bwrap: no user namespace");
  CHECK(find_runner_failure(argv, exited(0)).value().find("exited with 0") != std::string::npos);
  CHECK(find_runner_failure(argv, killed(9)));
}

TEST_CASE("any F is a runner failure, also after R") {
  const ConfinedArgv argv = confined(StatusChannel::launcher);
  CHECK(find_runner_failure(argv, exited(125, "Frestrict 38\n")).value().find("restrict 38") != std::string::npos);
  CHECK(find_runner_failure(argv, exited(125, "RFexec 2\n")));
}

TEST_CASE("a call we ended is never a runner failure") {
  for (const StatusChannel channel : {StatusChannel::launcher, StatusChannel::bwrap, StatusChannel::none}) {
    ConfinedArgv argv = confined(channel);
    argv.runner_failure_rules = {{{}, {}, {"bwrap: "}}};
    RunEvidence evidence = exited(143, "", "bwrap: killed\n");
    CHECK(find_runner_failure(argv, evidence));
    evidence.ended_by_us = true;
    CHECK_FALSE(find_runner_failure(argv, evidence));
  }
}

TEST_CASE("bwrap alone: no exit-code line is a runner failure only when bwrap exited by itself") {
  const ConfinedArgv argv = confined(StatusChannel::bwrap);
  CHECK_FALSE(find_runner_failure(argv, exited(1, "{ \"child-pid\": 7 }\n{ \"exit-code\": 1 }\n", "bwrap: fake\n")));
  CHECK(find_runner_failure(argv, exited(1, "{ \"child-pid\": 7 }\n", "bwrap: Can't chdir\n")).value() ==
        "bwrap: Can't chdir");
  CHECK(find_runner_failure(argv, exited(1, "", "bwrap: Can't\n")));
  CHECK_FALSE(find_runner_failure(argv, killed(9, "{ \"child-pid\": 7 }\n")));
}

TEST_CASE("text rules: exit code gate, informational lines, then a fatal signature") {
  ConfinedArgv argv = confined(StatusChannel::none);
  argv.runner_failure_rules = {{{125}, {"landlock-run: partial enforcement (older Landlock ABI)"}, {"landlock-run:"}}};
  const std::string note = "landlock-run: partial enforcement (older Landlock ABI)\n";
  CHECK_FALSE(find_runner_failure(argv, exited(125, "", note + "the child's own words\n")));
  CHECK_FALSE(find_runner_failure(argv, exited(1, "", "landlock-run: no\n")));
  CHECK(find_runner_failure(argv, exited(125, "", note + "LANDLOCK-RUN: cannot open /x\n")).value() ==
        "LANDLOCK-RUN: cannot open /x");
  // The line as a part of another is no informational line.
  CHECK(find_runner_failure(argv, exited(125, "", "x " + note)));
  argv.runner_failure_rules = {{{}, {}, {"sandbox-exec: "}}};
  CHECK(find_runner_failure(argv, exited(65, "", "sandbox-exec: bad profile\n")));
  CHECK_FALSE(find_runner_failure(argv, exited(1, "", "plain failure\n")));
}

TEST_CASE("each backend has its own denial dialect, never the union") {
  ConfinedArgv landlock = confined(StatusChannel::launcher);
  landlock.denial_signatures = {{"permission denied", false}};
  CHECK(denied(landlock, "touch: cannot touch 'x': PERMISSION DENIED\n"));
  CHECK_FALSE(denied(landlock, "touch: cannot touch 'x': Read-only file system\n"));
  ConfinedArgv bwrap = confined(StatusChannel::bwrap);
  bwrap.denial_signatures = {{"read-only file system", false}};
  CHECK(denied(bwrap, "touch: cannot touch 'x': Read-only file system\n"));
  CHECK_FALSE(denied(bwrap, "cat: /etc/shadow: Permission denied\n"));
}

TEST_CASE("permission denied counts only for an absolute path outside the roots") {
  const ConfinedArgv argv = bwrap_with_launcher();
  CHECK(denied(argv, "touch: cannot touch '/etc/x y': Permission denied\n"));
  CHECK(denied(argv, "mkdir: cannot create directory \xE2\x80\x98/etc/x\xE2\x80\x99: Permission denied\n"));
  CHECK(denied(argv, "bash: line 1: /etc/x: Permission denied\n"));
  CHECK(denied(argv, "Error: EACCES: permission denied, open '/usr/lib/x'\n"));
  CHECK(denied(argv, "PermissionError: [Errno 13] Permission denied: '/var/lib/x'\n"));
  CHECK_FALSE(denied(argv, "cat: secret: Permission denied\n"));
  CHECK_FALSE(denied(argv, "cat: /var/tmp/acp-classify/ws/secret: Permission denied\n"));
  CHECK_FALSE(denied(argv, "sub/dir/x: Permission denied\n"));
  CHECK_FALSE(denied(argv, "git@example.com: Permission denied (publickey).\n"));
  CHECK_FALSE(denied(argv, "fatal: https://example.com/a.git: permission denied\n"));
  CHECK(denied(argv, "/etc/x: Permission denied\n"));
  CHECK(denied(argv, "bash: /tmp/../etc/x: Permission denied\n"));
}

TEST_CASE("the program that complains is not what the complaint is about") {
  const ConfinedArgv argv = bwrap_with_launcher();
  CHECK_FALSE(denied(argv, "/bin/bash: line 1: ./run.sh: Permission denied\n"));
  CHECK_FALSE(denied(argv, "/usr/bin/python3: can't open file 'x.py': [Errno 13] Permission denied\n"));
  CHECK(denied(argv, "/usr/bin/touch: cannot touch '/etc/x': Permission denied\n"));
}

TEST_CASE("a denial in the part of stderr that is not kept is still seen") {
  const ConfinedArgv argv = bwrap_with_launcher();
  DenialScanner scanner(argv, "/bin/bash");
  const std::string noise(1000, 'x');
  for (int i = 0; i < 200; ++i) scanner.append(noise + "\n");
  scanner.append("touch: x: Read-only ");
  scanner.append("file system\n");
  for (int i = 0; i < 200; ++i) scanner.append(noise + "\n");
  CHECK(scanner.finish());
}

TEST_CASE("a signature is not found across two lines, and a line without end is judged") {
  const ConfinedArgv argv = bwrap_with_launcher();
  CHECK_FALSE(denied(argv, "Read-only\nfile system\n"));
  CHECK(denied(argv, "x: Read-only file system"));
  CHECK_FALSE(denied(argv, std::string(100'000, 'a')));
}

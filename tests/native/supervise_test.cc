// The launcher's filter and call-init's answers, on this kernel, without a sandbox around: Landlock allows everything
// here, so that what is refused was refused by the filter or by call-init.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <iostream>

#include "tests/native/support.h"

namespace {

bool can_listen() {
  static const bool can = [] {
    const auto probe = test::run(test::options({test::helper("landlock-run"), "--probe"}));
    if (probe.out.find("\nlistener: works\n") != std::string::npos) return true;
    std::cerr << "skipped: " << probe.out << probe.err;
    const char* ci = std::getenv("CI");
    if (ci != nullptr && std::string(ci) == "true") FAIL("CI=true and no listener: " << probe.out << probe.err);
    return false;
  }();
  return can;
}

using Words = std::vector<std::string>;
const Words python{"/usr/bin/python3", "-c"};

// A workspace with a file in it, a file and a folder outside.
struct World {
  test::Folder folder;
  std::string in = folder / "in", out = folder / "out";
  Words kept{in + "/kept"};
  Words sockets;  // not to be connected to
  World() {
    std::filesystem::create_directories(in + "/kept");
    std::filesystem::create_directories(out);
    for (const std::string& file : {in + "/f", in + "/kept/f", out + "/f"}) {
      std::ofstream(file) << "x";
      REQUIRE(chmod(file.c_str(), 0644) == 0);
    }
  }

  struct Run {
    test::Outcome outcome;
    std::vector<std::string> denials;
    bool supervised;
  };
  Run run(const std::string& script, std::vector<std::string> program = {"/bin/bash", "-c"}) const {
    std::vector<std::string> argv{
        test::helper("landlock-run"), "--status", "3", "--listener", "6", "--quiet", "--rw", "/"};
    if (!sockets.empty()) argv.emplace_back("--ask-connect");
    argv.emplace_back("--");
    argv.insert(argv.end(), program.begin(), program.end());
    argv.push_back(script);
    auto options = test::options(argv);
    options.cwd = in;
    options.launcher_status = true;
    options.supervision = base::Supervision{{in},
                                            kept,
                                            {in + "/absent", in + "/deep/absent", in + "/closed"},
                                            {in + "/closed/open"},
                                            {},
                                            {"/dev/tty", "/dev/null"},
                                            sockets};
    auto child = base::Child::start(options);
    REQUIRE(child);
    Run run;
    run.outcome = test::follow(**child);
    run.supervised = (*child)->supervised();
    for (const base::Denial& denial : (*child)->denials()) run.denials.push_back(denial.what + " " + denial.path);
    return run;
  }
  mode_t mode_of(const std::string& path) const {
    struct stat info {};
    REQUIRE(lstat(path.c_str(), &info) == 0);
    return info.st_mode & 07777;
  }
};

}  // namespace

TEST_CASE("metadata of files outside is refused, whatever the way to it") {
  if (!can_listen()) return;
  World world;
  std::filesystem::create_symlink(world.out + "/f", world.in + "/link");
  std::filesystem::create_directory_symlink(world.out, world.in + "/dir");
  for (const std::string& way :
       {world.out + "/f", std::string("../out/f"), std::string("link"), std::string("dir/f"), std::string("kept/f"),
        world.in + "/../out/f", std::string("/proc/self/root") + world.out + "/f",
        std::string("/proc/self/cwd/../out/f")}) {
    INFO(way);
    const auto run = world.run("chmod 777 " + way + "; touch -d 2001-01-01 " + way + "; chown 12345:12345 " + way);
    CHECK(run.supervised);
    CHECK(run.outcome.exit.exit_code != 0);
    CHECK(world.mode_of(world.out + "/f") == 0644);
    CHECK(world.mode_of(world.in + "/kept/f") == 0644);
    struct stat info {};
    REQUIRE(stat((world.out + "/f").c_str(), &info) == 0);
    CHECK(info.st_uid == geteuid());
    CHECK(info.st_mtime > 1'600'000'000);
  }
}

TEST_CASE("metadata calls on descriptors and names of descriptors are answered for the file they mean") {
  if (!can_listen()) return;
  World world;
  const std::string script =
      "import os\n"
      "for p in ('" +
      world.out + "/f', '" + world.in +
      "/f'):\n"
      "  fd = os.open(p, os.O_RDONLY)\n"
      "  for change in (lambda: os.fchmod(fd, 0o600), lambda: os.chmod('/proc/self/fd/%d' % fd, 0o600),\n"
      "                 lambda: os.utime(fd, (1, 1)), lambda: os.setxattr(fd, 'user.x', b'y'),\n"
      "                 lambda: os.fchown(fd, os.getuid(), os.getgid())):\n"
      "    try:\n"
      "      change(); print('done')\n"
      "    except OSError as e:\n"
      "      print(e.errno)\n";
  const auto run = world.run(script, python);
  CHECK(run.outcome.out == "13\n13\n13\n13\n13\ndone\ndone\ndone\ndone\ndone\n");
  CHECK(world.mode_of(world.out + "/f") == 0644);
  CHECK(world.mode_of(world.in + "/f") == 0600);
  struct stat info {};
  REQUIRE(stat((world.in + "/f").c_str(), &info) == 0);
  CHECK(info.st_mtime == 1);
  char value = 0;
  CHECK(getxattr((world.in + "/f").c_str(), "user.x", &value, 1) == 1);
  CHECK(getxattr((world.out + "/f").c_str(), "user.x", &value, 1) < 0);
}

TEST_CASE("inside, every kind of metadata change is done as it was asked") {
  if (!can_listen()) return;
  World world;
  const auto run = world.run(
      "set -e; chmod u+x,g=,o= f; stat -c %a f; touch -d @1000000000.123456789 f; stat -c %.9Y f; ln -s nowhere l; "
      "touch -h -d @5 l; stat -c %Y l; chown -h $(id -u):$(id -g) l; cp -a f g; stat -c '%a %Y' g; mkdir d; "
      "chmod 1777 d; stat -c %a d; touch f; tar cf t f l; mkdir x; tar -C x -xpf t; stat -c '%a %Y' x/f");
  CHECK(run.outcome.err == "");
  CHECK(run.outcome.exit.exit_code == 0);
  CHECK(run.outcome.out.starts_with("700\n1000000000.123456789\n5\n700 1000000000\n1777\n700 "));
  CHECK(run.denials == Words{});
}

TEST_CASE("links of /proc are not followed to what they mean for call-init") {
  if (!can_listen()) return;
  World world;
  const auto run =
      world.run("mkdir sub; echo > sub/f; cd sub; chmod 600 /proc/self/cwd/f; chmod 600 /proc/self/../self/cwd/f");
  CHECK(run.outcome.exit.exit_code == 1);
  CHECK(world.mode_of(world.in + "/sub/f") == 0600);  // by the process's own way
  CHECK(world.mode_of(world.in + "/f") == 0644);
}

TEST_CASE("a change that the kernel would refuse has the kernel's error") {
  if (!can_listen()) return;
  const World world;
  const auto run = world.run(R"(
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def no(call, *args): print("done" if call(*args) == 0 else errno.errorcode[ctypes.get_errno()])
os.symlink("loop", "loop"); place = os.open("f", os.O_PATH)
no(libc.fchmod, 99, 0o600); no(libc.fchmod, -1, 0o600); no(libc.fchmod, -100, 0o600); no(libc.fchmod, place, 0o600)
no(libc.futimens, place, None); no(libc.fchownat, place, b"", -1, -1, 0x1000); no(libc.fchownat, 99, b"", -1, -1, 0x1000)
no(libc.fchmodat, 99, b"f", 0o600, 0); no(libc.chmod, b"loop", 0o600); no(libc.fchownat, -100, b"f", -1, -1, 0x40)
no(libc.fsetxattr, place, b"user.x", b"x", 1, 0); no(libc.ioctl, place, 0x40086602, b"\0" * 8))",
                             python);
  CHECK(run.outcome.out == "EBADF\nEBADF\nEBADF\nEBADF\nEBADF\ndone\nEBADF\nEBADF\nELOOP\nEINVAL\nEBADF\nEBADF\n");
  CHECK(run.denials.empty());
}

TEST_CASE("attributes that carry privileges and inode flags are refused inside, too") {
  if (!can_listen()) return;
  World world;
  const auto run = world.run(
      "import os, fcntl, struct\n"
      "def no(change):\n"
      "  try:\n    change(); print('done')\n"
      "  except OSError as e:\n    print(e.errno)\n"
      "no(lambda: os.setxattr('f', 'security.capability', b'\\1\\0\\0\\2' + b'\\0' * 16))\n"
      "no(lambda: os.setxattr('f', 'trusted.x', b'y'))\n"
      "fd = os.open('f', os.O_RDONLY)\n"
      "no(lambda: fcntl.ioctl(fd, 0x40086602, struct.pack('l', 0x10)))\n"
      "no(lambda: os.chmod('missing', 0o600))\n"
      "no(lambda: os.utime('', (1, 1)))\n"
      "os.symlink('missing', 'l')\n"
      "no(lambda: os.lchown('l', os.getuid(), os.getgid()))\n"
      "no(lambda: fcntl.ioctl(fd, 0x5412, b'x'))\n"   // TIOCSTI
      "no(lambda: fcntl.ioctl(fd, 0x541c, b'x'))\n",  // TIOCLINUX
      python);
  CHECK(run.outcome.out == "1\n1\n1\n2\n2\ndone\n1\n1\n");
}

TEST_CASE("somebody else's ids are taken on for what they ask") {
  if (!can_listen()) return;
  if (geteuid() != 0) {
    WARN("skipped: only root can be somebody else");
    return;
  }
  World world;
  const auto run = world.run(
      "setpriv --reuid 65534 --regid 65534 --clear-groups chmod 777 f || echo refused; setpriv --reuid 65534 --regid "
      "65534 --clear-groups bash -c 'echo > /dev/null'; chmod 640 f && echo own");
  CHECK(run.outcome.out == "refused\nown\n");
  CHECK(world.mode_of(world.in + "/f") == 0640);
}

TEST_CASE("denied changes are observed with what and where, and nothing else is") {
  if (!can_listen()) return;
  World world;
  const std::string& out = world.out;
  const auto run = world.run(
      "echo x > a; rm a; mkdir d; mv d e; ln -s x l; ln f h; chmod 600 f; cat " + out + "/f > /dev/null; ls " + out +
      " > /dev/null; mkdir " + out + " 2> /dev/null; rm -f " + out +
      "/none; echo > /dev/null; : < /dev/tty; "
      "echo x > " +
      out + "/new; echo x >> " + out + "/f; echo x >> " + out + "/f; mkdir " + out + "/m; mv " + out +
      "/new moved; rmdir " + out + "/m; truncate -s 0 " + out + "/f; chmod 600 " + out + "/f; echo x > kept/n");
  CHECK(run.supervised);
  CHECK(run.denials == Words{"create " + out + "/new", "write " + out + "/f", "create " + out + "/m",
                             "rename " + out + "/new", "remove " + out + "/m", "chmod " + out + "/f",
                             "create " + world.in + "/kept/n"});
}

TEST_CASE("a file that is made or cut by an open for reading is observed") {
  if (!can_listen()) return;
  World world;
  const auto run = world.run(
      "import os\n"
      "os.open('" +
          world.out +
          "/f', os.O_RDONLY | os.O_CREAT)\n"
          "os.open('" +
          world.out +
          "/n', os.O_RDONLY | os.O_CREAT)\n"
          "os.open('" +
          world.out + "/f', os.O_RDONLY | os.O_TRUNC)\n",
      python);
  CHECK(run.denials == Words{"create " + world.out + "/n", "write " + world.out + "/f"});
}

TEST_CASE("a protected name that does not exist is not made, by whatever call") {
  if (!can_listen()) return;
  World world;
  std::filesystem::create_directories(world.in + "/deep");
  for (const char* way :
       {"echo x > absent", "mkdir absent", "ln -s f absent", "ln f absent", "mv f absent", "mkfifo absent",
        "echo x > deep/../absent", "cd deep; echo x > ../absent", "mkdir d; echo x > d/absent; mv d/absent deep/absent",
        "cp f deep/absent", "ln -s /nowhere l; mv -T l absent", "touch absent", "ln -s absent via; echo x > via"}) {
    INFO(way);
    const auto run = world.run(way);
    CHECK(run.outcome.exit.exit_code == 1);
    CHECK_FALSE(run.denials.empty());
    CHECK_FALSE(std::filesystem::exists(std::filesystem::symlink_status(world.in + "/absent")));
    CHECK_FALSE(std::filesystem::exists(std::filesystem::symlink_status(world.in + "/deep/absent")));
    CHECK(std::filesystem::exists(world.in + "/f"));
  }
  CHECK(world.run("ls absent; cat absent; echo x > absent2; mkdir absentminded").denials == Words{});
}

TEST_CASE("a protected name is not made by moving what holds it, nor by a path that only the process can follow") {
  if (!can_listen()) return;
  for (const char* way : {"mkdir p; echo x > p/absent; mv deep old; mv p deep",
                          "mkdir p; echo x > p/absent; mv deep old; ln -s p deep",
                          "mkdir p; echo x > p/absent; exchange('p', 'deep')",
                          "mkdir p; echo x > p/absent; exchange('deep', 'p')",
                          "echo x > /proc/self/cwd/absent",
                          "mkdir s; cd s; ln -s /proc/self/cwd here; echo x > here/../absent",
                          "cd deep; ln -s /proc/self/cwd/absent here; echo x > here",
                          "echo x > /proc/$$/cwd/absent",
                          "cd deep; exec 9< .; echo x > /dev/fd/9/absent",
                          "cd deep; exec 9< .; mv ../f /proc/self/fd/9/absent",
                          "cd deep; exec 9< .; ln -s f /proc/thread-self/fd/9/absent",
                          "mkdir /proc/self/cwd/absent",
                          "publish('absent')",
                          "nameless('absent')",
                          "in_root('absent')",
                          "deep_down('absent')",
                          "listen('absent')",
                          "hidden('absent')",
                          "unreadable('absent')",
                          "rooted('absent')"}) {
    INFO(way);
    World world;
    std::filesystem::create_directories(world.in + "/deep");
    const std::string text = way;
    const auto call = text.find_last_of(';') == std::string::npos ? 0 : text.find_last_of(';') + 2;
    const bool python_call = text.back() == ')';
    const auto run = world.run(python_call ? R"(
import ctypes, os, shutil, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0: raise OSError(ctypes.get_errno())
def publish(name):
    fd = os.open(".", os.O_TMPFILE | os.O_WRONLY)
    os.link("/proc/self/fd/%d" % fd, name + "-not"); os.link("/proc/self/fd/%d" % fd, name)
def nameless(name):
    fd = os.open("f", os.O_RDONLY); sys.exit(libc.linkat(fd, b"", -100, name.encode(), 0x1000) != 0)
def in_root(name):
    how = struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o644, 0x10)
    sys.exit(libc.syscall(437, os.open(".", os.O_RDONLY), b"/" + name.encode(), how, 24) < 0)
def deep_down(name):
    for i in range(18): os.mkdir("n" * 250); os.chdir("n" * 250)
    open("here", "w"); os.mkdir("../" * 18 + name)
def listen(name): socket.socket(socket.AF_UNIX).bind(name)
def hidden(name): libc.prctl(4, 0); open(name, "w")
def unreadable(name):
    os.setgroups([]) if os.geteuid() == 0 else None
    shutil.copy("/bin/touch", "t"); os.chmod("t", 0o111); sys.exit(os.spawnv(os.P_WAIT, "./t", ["t", name]))
def rooted(name):
    if libc.unshare(0x10000000) != 0 and os.geteuid() != 0: sys.exit(1)
    os.chroot("."); open("/" + name, "w")
)" + ("os.system(\"" + text.substr(0, call) + "true\")\n" + text.substr(call))
                                           : text,
                               python_call ? python : Words{"/bin/bash", "-c"});
    INFO(run.outcome.err);
    CHECK(run.outcome.exit.exit_code == 1);
    CHECK_FALSE(std::filesystem::exists(std::filesystem::symlink_status(world.in + "/absent")));
    CHECK_FALSE(std::filesystem::exists(std::filesystem::symlink_status(world.in + "/deep/absent")));
  }
}

TEST_CASE("below a closed folder all is as ever in the open ones alone") {
  if (!can_listen()) return;
  World world;
  std::filesystem::create_directories(world.in + "/closed/open");
  test::put(world.in + "/closed/open/f", "x");
  for (const char* way : {"echo x > closed/n", "mkdir closed/n", "mv f closed/n", "mkdir p; mv p closed/p",
                          "mkdir p; mv closed old; mv p closed", "ln -s f closed/n", "chmod 700 closed"}) {
    INFO(way);
    CHECK(world.run(way).outcome.exit.exit_code == 1);
    CHECK_FALSE(std::filesystem::exists(world.in + "/closed/n"));
    CHECK_FALSE(std::filesystem::exists(world.in + "/closed/p"));
    if (std::filesystem::exists(world.in + "/old")) std::filesystem::rename(world.in + "/old", world.in + "/closed");
  }
  const auto run = world.run("cd closed/open; echo x > n; mkdir m; mv f m/f; chmod 700 m; touch -d 2001-01-01 n");
  CHECK(run.outcome.exit.exit_code == 0);
  CHECK(run.denials.empty());
}

TEST_CASE("ways to a descriptor of one's own are no ways to a name") {
  if (!can_listen()) return;
  World world;
  const auto run = world.run(
      "ln -s /dev/stdout log; echo a > /dev/stdout; echo b > log; echo c > /dev/fd/1; echo d >> /proc/self/fd/1; "
      "echo d > /proc/$$/fd/1; "
      "echo e > /dev/stderr; exec 9> g; echo f > /proc/self/fd/9; cat g");
  CHECK(run.outcome.exit.exit_code == 0);
  CHECK(run.outcome.out == "a\nb\nc\nd\nd\nf\n");
  CHECK(run.denials.empty());
}

TEST_CASE("denials are counted to their limit, which is known to who tells them") {
  if (!can_listen()) return;
  const World world;
  const auto run = world.run("for i in $(seq 80); do echo > " + world.out + "/n$i; done");
  CHECK(run.denials.size() == base::Child::max_denials);
}

TEST_CASE("a program that hides its memory works as ever") {
  if (!can_listen()) return;
  const World world;
  const auto run = world.run(
      "import ctypes, os; libc = ctypes.CDLL(None); print(libc.prctl(4, 0), libc.prctl(3)); open('n', 'w'); "
      "os.chmod('n', 0o600); libc.prctl(4, 1); print(libc.prctl(3))",
      python);
  CHECK(run.outcome.out == "0 1\n1\n");
  CHECK(world.mode_of(world.in + "/n") == 0600);
}

TEST_CASE("what would have failed anyway is no denial, what the confinement alone forbids is one") {
  if (!can_listen()) return;
  World world;
  const std::string& out = world.out;
  std::filesystem::create_directories(out + "/full/x");
  const auto denials = [&](const std::string& script) { return world.run(script).denials; };
  CHECK(denials("mv f " + out + "/full/") == Words{"rename " + out + "/full/f"});
  CHECK(denials("rmdir " + out + "/full; rm " + out + "/full; rmdir " + out + "/f; mv -T " + out + "/full/x " + out +
                "/full") == Words{});
  test::put(world.in + "/g", "x");
  const auto kept =
      world.run("import ctypes; ctypes.CDLL(None).renameat2(-100, b'g', -100, b'" + out + "/f', 1)", python);
  CHECK(kept.denials.empty());  // RENAME_NOREPLACE
  CHECK(denials("rmdir " + out + "/full/x") == Words{"remove " + out + "/full/x"});
  std::filesystem::remove_all(world.in + "/kept");
  CHECK(denials("rm -f *; cd ..; rmdir in") == Words{"remove " + world.in});
}

TEST_CASE("a socket bound outside is a denial") {
  if (!can_listen()) return;
  World world;
  const auto run =
      world.run("import socket; socket.socket(socket.AF_UNIX).bind('" + world.out +
                    "/s'); socket.socket(socket.AF_UNIX).bind('s'); "
                    "socket.socket(socket.AF_UNIX).bind('\\0acp-test-none'); socket.socket().bind(('', 0))",
                python);
  CHECK(run.outcome.exit.exit_code == 0);
  CHECK(run.denials == Words{"create " + world.out + "/s"});
}

TEST_CASE("more protected paths than a small table holds are all kept") {
  if (!can_listen()) return;
  World world;
  for (int i = 0; i < 300; ++i) world.kept.push_back(world.in + "/kept" + std::to_string(i));
  std::ofstream(world.in + "/kept299") << "x";
  const auto run = world.run("chmod 777 kept299; chmod 700 f");
  CHECK(run.denials == Words{"chmod " + world.in + "/kept299"});
  CHECK(world.mode_of(world.in + "/f") == 0700);
}

TEST_CASE("what the user could not have changed anyway is no denial of the sandbox") {
  if (!can_listen()) return;
  if (geteuid() == 0) {
    WARN("skipped: root can change everything");
    return;
  }
  World world;
  CHECK(world.run("echo x > /etc/passwd; echo x > /etc/new; chmod 600 /etc/passwd; true").denials == Words{});
}

TEST_CASE("foreign system calls and io_uring do not exist inside") {
  if (!can_listen()) return;
  World world;
  // 425: io_uring_setup. 0x40000000 + 39: getpid of x32.
  const auto run = world.run(
      "import ctypes\n"
      "c = ctypes.CDLL(None, use_errno=True)\n"
      "for n in (425, 426, 427, 0x40000000 + 39, 452, 463, 466, 469):\n"
      "  ctypes.set_errno(0); c.syscall(n, 0, 0, 0, 0, 0); print(ctypes.get_errno())\n",
      python);
  CHECK(run.outcome.out == "38\n38\n38\n38\n38\n38\n38\n38\n");
}

TEST_CASE("mounts, keys and limits of other processes are out of reach, also in a user namespace of one's own") {
  if (!can_listen()) return;
  World world;
  const auto run = world.run(
      "import ctypes, os, resource\n"
      "c = ctypes.CDLL(None, use_errno=True)\n"
      "def no(*a):\n"
      "  ctypes.set_errno(0); c.syscall(*a); return ctypes.get_errno()\n"
      "c.unshare(0x10000000 | 0x20000)\n"
      "print({no(n, -100, b'/', 1) for n in (165, 166, 155, 308, 428, 429, 430, 431, 432, 433, 442, 467)})\n"
      "print({no(n, 0, 0, 0) for n in (248, 249, 250)})\n"
      "limit = (ctypes.c_ulong * 2)(64, 64)\n"
      "print(no(302, os.getppid(), 7, limit, None), no(302, os.getppid(), 7, None, limit), no(302, 0, 7, limit, "
      "None))\n"
      "resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\n",
      python);
  CHECK(run.outcome.out == "{1}\n{38}\n1 0 0\n");
  CHECK(run.outcome.exit.exit_code == 0);
}

TEST_CASE("with nobody to ask, metadata is refused whole or left free") {
  if (!can_listen()) return;
  World world;
  const auto chmod_with = [&](const std::string& option) {
    std::vector<std::string> argv{test::helper("landlock-run"), "--quiet", "--rw", "/"};
    if (!option.empty()) argv.push_back(option);
    argv.insert(argv.end(), {"--", "/bin/chmod", "600", world.out + "/f"});
    return test::run(test::options(argv)).exit.exit_code;
  };
  CHECK(chmod_with("--refuse-metadata") == 1);
  CHECK(world.mode_of(world.out + "/f") == 0644);
  CHECK(chmod_with("") == 0);
  CHECK(world.mode_of(world.out + "/f") == 0600);
}

TEST_CASE("a listener that cannot be handed over stops the command") {
  if (!can_listen()) return;
  World world;
  auto options = test::options({test::helper("landlock-run"), "--status", "3", "--listener", "3", "--quiet", "--rw",
                                "/", "--", "/bin/touch", world.in + "/ran"});
  options.launcher_status = true;
  const auto outcome = test::run(options);
  CHECK(outcome.exit.exit_code == 125);
  CHECK(outcome.launcher.starts_with("Ffilter "));
  CHECK_FALSE(std::filesystem::exists(world.in + "/ran"));
}

TEST_CASE("a command that forks much is answered to its end, and killed while it asks") {
  if (!can_listen()) return;
  World world;
  const auto busy = world.run(
      "for i in 1 2 3 4 5 6 7 8; do (for j in $(seq 50); do echo > f$i.$j; chmod 600 f$i.$j; rm f$i.$j; done) & done; "
      "wait; ls | wc -l");
  CHECK(busy.outcome.out == "2\n");
  CHECK(busy.denials == Words{});
  const auto left = world.run("(while :; do chmod 600 f; chmod 644 f; done) & sleep 0.2; echo done");
  CHECK(left.outcome.out == "done\n");
}

namespace {

// Listens, and counts whoever comes.
class Server {
 public:
  explicit Server(const std::string& name, int backlog = 8) {  // '@' first: without a place in the file system
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(name.size() < sizeof address.sun_path);
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    REQUIRE(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(listen(listener_.get(), backlog) == 0);
  }
  int came() {
    int count = 0;
    while (base::Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).get() >= 0) ++count;
    return count;
  }

 private:
  base::Fd listener_{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
};

// `connect(NAME)` prints the error number, 0 for none.
const std::string connecting = R"(
import ctypes, errno, os, signal, socket, struct, sys, threading, time
def connect(name, kind=socket.SOCK_STREAM):
    try: socket.socket(socket.AF_UNIX, kind).connect(name); print(0)
    except OSError as e: print(e.errno)
)";

}  // namespace

TEST_CASE("a socket of the list is not connected to, by whatever name, and that is told") {
  if (!can_listen()) return;
  World world;
  const std::string path = world.out + "/control", folder = world.out + "/many";
  std::filesystem::create_directory(folder);
  Server control(path), inner(folder + "/one");
  std::filesystem::create_symlink(path, world.in + "/soft");
  std::filesystem::create_directory_symlink(world.out, world.in + "/dir");
  world.sockets = {path, folder};
  const auto run = world.run(connecting + R"(
for name in ("-c", "../out/control", "soft", "dir/control", "/proc/self/cwd/soft", "../out/many/one"): connect(name)
os.link("../out/control", "hard"); connect("hard")
os.rename("../out/control", "moved"); connect("moved")
os.chdir(".."); connect("in/moved"); connect("out/many/one\0")
s = socket.socket(socket.AF_UNIX); s.setblocking(False)
print(s.connect_ex("in/moved")))",
                             python);
  CHECK(run.outcome.out == [] {
    std::string all = "2\n";  // "-c" is no socket
    for (int i = 0; i < 10; ++i) all += std::to_string(EACCES) + "\n";
    return all;
  }());
  CHECK(control.came() == 0);
  CHECK(inner.came() == 0);
  const auto told = [&](const std::string& what) {
    return std::find(run.denials.begin(), run.denials.end(), what) != run.denials.end();
  };
  CHECK(told("connect " + path));
  CHECK(told("connect " + folder + "/one"));
  CHECK(told("connect " + world.in + "/moved"));
}

TEST_CASE("an address that changes while it is looked at leads to no socket of the list") {
  if (!can_listen()) return;
  World world;
  const std::string path = world.out + "/c", free = world.out + "/f2";
  Server control(path, 512), other(free, 512);
  world.sockets = {path};
  const auto run = world.run(connecting + R"(
control, free = b"../out/c\0", b"../out/f2\0"
libc = ctypes.CDLL(None, use_errno=True)
address = ctypes.create_string_buffer(struct.pack("H", socket.AF_UNIX) + free, 110)
stop = False
def swap():
    while not stop:
        ctypes.memmove(ctypes.addressof(address) + 2, control, len(control))
        ctypes.memmove(ctypes.addressof(address) + 2, free, len(free))
threading.Thread(target=swap).start()
reached = 0
for i in range(300):
    s = socket.socket(socket.AF_UNIX)
    reached += libc.connect(s.fileno(), address, 110) == 0
stop = True
print(0 < reached))",
                             python);
  CHECK(run.outcome.out == "True\n");
  CHECK(control.came() == 0);
  CHECK(other.came() > 0);
}

TEST_CASE("other connections are made as ever, with the errors of ever") {
  if (!can_listen()) return;
  World world;
  const std::string path = world.out + "/control", free = world.in + "/free";
  Server control(path), other(free);
  world.sockets = {path};
  const auto run = world.run(connecting + R"(
connect("free"); connect("missing"); connect("f"); connect("missing/x"); connect("x" * 107)
s = socket.socket(socket.AF_UNIX); s.setblocking(False); print(s.connect_ex("free"))
libc = ctypes.CDLL(None, use_errno=True)
def raw(fd, address, length): libc.connect(fd, address, length); print(errno.errorcode[ctypes.get_errno()])
raw(0, struct.pack("H", socket.AF_UNIX) + b"free\0", 7); raw(99, b"", 0); raw(s.fileno(), 8, 20); raw(s.fileno(), b"", 200)
server = socket.create_server(("127.0.0.1", 0)); name = server.getsockname()
c = socket.socket(); c.connect(name); server.accept()[0].send(b"tcp"); print(c.recv(3).decode())
server.close(); print(socket.socket().connect_ex(name) == errno.ECONNREFUSED)
d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); d.connect(("127.0.0.1", 9)); print(d.getpeername()[1])
def thread(): connect("free")
t = threading.Thread(target=thread); t.start(); t.join()
def own_table(): libc.unshare(0x400); connect("free")  # CLONE_FILES
t = threading.Thread(target=own_table); t.start(); t.join())",
                             python);
  CHECK(run.outcome.out == "0\n2\n111\n2\n2\n0\nENOTSOCK\nEBADF\nEFAULT\nEINVAL\ntcp\nTrue\n9\n0\n0\n");
  CHECK(other.came() == 4);
  CHECK(control.came() == 0);
  CHECK(run.denials.empty());
}

TEST_CASE("a name without a place reaches a program of the call alone") {
  if (!can_listen()) return;
  World world;
  const std::string name = "@acp-test-" + std::to_string(getpid());
  Server outside(name), control(world.out + "/control");
  world.sockets = {world.out + "/control"};
  const auto run = world.run(connecting + "name = '\\0" + name.substr(1) + R"('
connect(name)
s = socket.socket(socket.AF_UNIX); s.bind(name + "x"); s.listen(); connect(name + "x"); connect(name + "y")
s = socket.socket(socket.AF_UNIX); s.bind(name + "\0x"); s.listen(); connect(name + "\0x"); connect(name + "@x")
own = str(os.fstat(s.fileno()).st_ino)
t = socket.socket(socket.AF_UNIX); t.bind("\0\n0: 2 0 10000 1 1 " + own + " @" + name[1:]); connect(name))",
                             python);
  CHECK(run.outcome.out == "1\n0\n1\n0\n111\n1\n");
  CHECK(outside.came() == 0);
}

TEST_CASE("waiting for a connection is ended by a signal that is caught, and by the end of the call") {
  if (!can_listen()) return;
  World world;
  const std::string path = world.out + "/control", full = world.in + "/full";
  Server control(path), busy(full, 0);
  world.sockets = {path};
  const auto begun = std::chrono::steady_clock::now();
  const auto run = world.run(connecting + R"(
waiting = [socket.socket(socket.AF_UNIX) for _ in range(8)]
for s in waiting: s.setblocking(False); s.connect_ex("full")
class Late(Exception): pass
def late(*_): raise Late
signal.signal(signal.SIGALRM, late); signal.setitimer(signal.ITIMER_REAL, 0.2)
try: connect("full")
except Late: print("late")
signal.setitimer(signal.ITIMER_REAL, 0)
s = socket.socket(socket.AF_UNIX); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 300000))
try: s.connect("full")
except BlockingIOError: print("timed out")
sys.stdout.flush()
if os.fork() == 0: connect("full")
)",
                             python);
  CHECK(run.outcome.out == "late\ntimed out\n");
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(5));
}

TEST_CASE("a connection is made with the rights of who asks") {
  if (!can_listen() || geteuid() != 0) return;
  World world;
  const std::string path = world.out + "/control", shut = world.in + "/shut", open = world.in + "/open";
  Server control(path), own(shut), all(open);
  REQUIRE(chmod(shut.c_str(), 0600) == 0);
  REQUIRE(chmod(open.c_str(), 0666) == 0);
  for (const std::string& folder : {world.folder.path(), world.in, world.out})
    REQUIRE(chmod(folder.c_str(), 0755) == 0);
  world.sockets = {path};
  const auto run = world.run(connecting + R"(
connect("shut")
os.setgroups([]); os.setresgid(1000, 1000, 1000); os.setresuid(1000, 1000, 1000)
libc = ctypes.CDLL(None); libc.prctl(4, 1)
connect("shut"); connect("open"))",
                             python);
  CHECK(run.outcome.out == "0\n13\n0\n");
}

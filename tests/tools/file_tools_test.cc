#include "tests/tools/support.h"

using namespace std::string_literals;
using agent::ApprovalOutcome;
using sandbox::Mode;
using test::fact;
using test::has;
using test::Json;
using test::put;
using test::slurp;
using test::text_fact;

namespace {

sandbox::Host host() {
  sandbox::Host result;
  result.state_dir = "/var/tmp/acp-test-no-such-state";
  return result;
}

struct Bench : test::ToolBench {
  std::shared_ptr<tools::FileTools> shared = std::make_shared<tools::FileTools>();
  std::shared_ptr<agent::Tool> reader, writer, editor;
  std::vector<agent::ApprovalRequest> asked;

  explicit Bench(Mode mode_now = Mode::danger_full_access, std::optional<ApprovalOutcome> answer = std::nullopt,
                 bool fenced = true)
      : ToolBench(mode_now) {
    shared->fs = fenced ? sandbox::make_fenced_fs(host()) : sandbox::make_local_fs();
    shared->observe = true;
    if (answer) shared->approval = test::approvals(asked, *answer);
    reader = tools::make_read_tool(shared);
    writer = tools::make_write_tool(shared);
    editor = tools::make_edit_tool(shared);
  }
  agent::ToolOutcome read(const std::string& path, Json more = Json::object()) {
    more["file_path"] = path;
    return run(*reader, more);
  }
  agent::ToolOutcome write(const std::string& path, const std::string& content, Json more = Json::object()) {
    more["file_path"] = path;
    more["content"] = content;
    return run(*writer, more);
  }
  agent::ToolOutcome edit(const std::string& path, const std::string& from, const std::string& to,
                          Json more = Json::object()) {
    more["file_path"] = path;
    more["old_string"] = from;
    more["new_string"] = to;
    return run(*editor, more);
  }
  // Bytes put there, read, edited, and the bytes then.
  std::string edited(const std::string& bytes, const std::string& from, const std::string& to) {
    const std::string path = cwd + "/f";
    put(path, bytes);
    read(path);
    const auto outcome = edit(path, from, to);
    return outcome.is_error ? "ERROR " + outcome.content : slurp(path);
  }
};

const Json widen = {{"sandbox_permissions", "workspace-write"}, {"justification", "the task says so"}};

}  // namespace

TEST_CASE("read: numbered lines, and nothing else for a small file") {
  Bench bench;
  put(bench.cwd + "/f", "one\n\ttwo\nthree");
  CHECK(bench.read("f").content == "1\tone\n2\t\ttwo\n3\tthree");
  CHECK(bench.read("f", {{"offset", 2}, {"limit", 1}}).content == "2\t\ttwo\n[lines 2-2 of 3; go on with offset 3]");
  CHECK(bench.view.title == "Read f");
  CHECK(bench.view.kind == "read");
  CHECK(bench.view.locations.at(0).path == bench.cwd + "/f");
  CHECK(bench.view.locations.at(0).line == 2);
  put(bench.cwd + "/empty", "");
  CHECK(bench.read("empty").content == "(empty file)");
  CHECK(bench.read("f", {{"offset", 9}}).is_error);
}

TEST_CASE("read: 2,000 lines, 2,000 characters a line, 50 KiB") {
  Bench bench;
  std::string lines;
  for (int i = 1; i <= 5000; ++i) lines += "x\n";
  put(bench.cwd + "/many", lines);
  CHECK(has(bench.read("many").content, "\n2000\tx\n[lines 1-2000 of 5000; go on with offset 2001]"));
  CHECK(has(bench.read("many", {{"limit", 9999}}).content, "[lines 1-2000 of 5000"));
  std::string wide;
  for (int i = 0; i < 3000; ++i) wide += "\xE2\x82\xAC";
  put(bench.cwd + "/wide", wide + "\nnext\n");
  const std::string shown = bench.read("wide").content;
  CHECK(has(shown, "line cut, 9000 bytes"));
  CHECK(std::count(shown.begin(), shown.end(), '\xAC') == 2000);
  CHECK(has(shown, "2\tnext"));
  std::string heavy;
  for (int i = 0; i < 100; ++i) heavy.append(1000, 'h').append("\n");
  put(bench.cwd + "/heavy", heavy);
  const std::string page = bench.read("heavy").content;
  CHECK(page.size() < 51 * 1024);
  CHECK(has(page, "[lines 1-51 of 100; go on with offset 52]"));
}

TEST_CASE("read refuses what is no text, and says what it is") {
  Bench bench;
  put(bench.cwd + "/image", "\x89PNG\r\n\x1a\n\0\0"s);
  REQUIRE(mkfifo((bench.cwd + "/fifo").c_str(), 0600) == 0);
  for (const auto& [path, part] : {std::pair{"image"s, "PNG image"s},
                                   {"fifo"s, "a FIFO"s},
                                   {"."s, "ls"s},
                                   {"none"s, "No such file"s},
                                   {"~/x"s, "~"s},
                                   {"a\0b"s, "NUL"s}}) {
    INFO(path);
    const auto outcome = bench.read(path);
    CHECK(outcome.is_error);
    CHECK(has(outcome.content, part));
  }
}

TEST_CASE("read allows every mode and every place") {
  Bench bench(Mode::read_only);
  put(bench.folder / "elsewhere", "text\n");
  CHECK(bench.read(bench.folder / "elsewhere").content == "1\ttext");
  CHECK(bench.view.title == "Read " + bench.folder.path() + "/elsewhere");
}

TEST_CASE("read before change") {
  Bench bench;
  put(bench.cwd + "/f", "old\n");
  auto outcome = bench.write("f", "new\n");
  CHECK(outcome.is_error);
  CHECK(has(outcome.content, "FS_NOT_OBSERVED: "));
  CHECK(has(bench.edit("f", "old", "new").content, "FS_NOT_OBSERVED: "));
  bench.read("f");
  CHECK_FALSE(bench.edit("f", "old", "new").is_error);
  CHECK_FALSE(bench.write("f", "again\n").is_error);  // an own write counts as a read
  put(bench.cwd + "/f", "other\n");
  CHECK(has(bench.write("f", "mine\n").content, "FS_STALE_VERSION: "));
  CHECK(has(bench.edit("f", "other", "mine").content, "FS_STALE_VERSION: "));
  CHECK(slurp(bench.cwd + "/f") == "other\n");
  bench.read("f");
  CHECK_FALSE(bench.edit("f", "other", "mine").is_error);
  bench.open_session();  // what another session saw does not count
  CHECK(has(bench.edit("f", "mine", "x").content, "FS_NOT_OBSERVED: "));
}

TEST_CASE("a file is one file under every spelling of its path") {
  Bench bench;
  std::filesystem::create_symlink("real", bench.cwd + "/link");
  put(bench.cwd + "/real", "old\n");
  bench.read("link");
  CHECK_FALSE(bench.edit(bench.cwd + "/../ws/./real", "old", "new").is_error);
  CHECK(slurp(bench.cwd + "/real") == "new\n");
}

TEST_CASE("without the observation policy nothing needs to be read") {
  Bench bench;
  bench.shared->observe = false;
  put(bench.cwd + "/f", "old\n");
  CHECK_FALSE(bench.edit("f", "old", "new").is_error);
  CHECK_FALSE(bench.write("f", "x").is_error);
}

TEST_CASE("the file changed between consent and write") {
  Bench bench(Mode::read_only);
  const std::string path = bench.cwd + "/f";
  put(path, "old\n");
  bench.shared->approval = std::make_shared<agent::ApprovalService>(agent::ApprovalPolicy::ask);
  bench.shared->approval->add_answerer([&](agent::Session&, const agent::ApprovalRequest&, std::stop_token) {
    put(path, "else\n");
    return std::optional(ApprovalOutcome::allowed_once);
  });
  bench.read("f");
  const auto outcome = bench.edit("f", "old", "new", widen);
  CHECK(has(outcome.content, "FS_STALE_VERSION: "));
  CHECK(slurp(path) == "else\n");
}

TEST_CASE("who is asked sees the change itself") {
  Bench bench(Mode::read_only, ApprovalOutcome::allowed_once);
  put(bench.cwd + "/f", "old\nkept\n");
  bench.read("f");
  CHECK_FALSE(bench.edit("f", "old", "new", widen).is_error);
  CHECK_FALSE(bench.write("g", "made\n", widen).is_error);
  REQUIRE(bench.asked.size() == 2);
  const auto& edited = bench.asked[0].subject;
  CHECK(edited.what == bench.cwd + "/f");
  REQUIRE(edited.diffs.size() == 1);
  CHECK(edited.diffs[0].path == bench.cwd + "/f");
  CHECK(edited.diffs[0].old_text == "old\nkept\n");
  CHECK(edited.diffs[0].new_text == "new\nkept\n");
  const auto& made = bench.asked[1].subject;
  REQUIRE(made.diffs.size() == 1);
  CHECK_FALSE(made.diffs[0].old_text);
  CHECK(made.diffs[0].new_text == "made\n");
  CHECK(bench.view.diffs.at(0).new_text == "made\n");
}

TEST_CASE("another change than the one that was shown is not made") {
  Bench bench(Mode::read_only);
  bench.shared->observe = false;
  const std::string path = bench.cwd + "/f";
  put(path, "old\n");
  bench.shared->approval = std::make_shared<agent::ApprovalService>(agent::ApprovalPolicy::ask);
  bench.shared->approval->add_answerer([&](agent::Session&, const agent::ApprovalRequest&, std::stop_token) {
    put(path, "old\nelse\n");
    return std::optional(ApprovalOutcome::allowed_once);
  });
  CHECK(has(bench.edit("f", "old", "new", widen).content, "changed while the user was asked"));
  CHECK(slurp(path) == "old\nelse\n");
}

TEST_CASE("a link that is turned while the user is asked does not take the grant elsewhere") {
  Bench bench(Mode::read_only);
  const test::Folder other;
  std::filesystem::create_directory(bench.cwd + "/a");
  std::filesystem::create_directory_symlink(bench.cwd + "/a", bench.cwd + "/link");
  std::string asked_about;
  bench.shared->approval = std::make_shared<agent::ApprovalService>(agent::ApprovalPolicy::ask);
  bench.shared->approval->add_answerer([&](agent::Session&, const agent::ApprovalRequest& request, std::stop_token) {
    asked_about = request.subject.what;
    std::filesystem::remove(bench.cwd + "/link");
    std::filesystem::create_directory_symlink(other.path(), bench.cwd + "/link");
    return std::optional(ApprovalOutcome::allowed_once);
  });
  const auto outcome = bench.write("link/f", "x", widen);
  CHECK(outcome.is_error);
  CHECK(has(outcome.content, "changed while the user was asked"));
  CHECK(asked_about == bench.cwd + "/a/f");
  CHECK_FALSE(std::filesystem::exists(other / "f"));
  CHECK_FALSE(std::filesystem::exists(bench.cwd + "/a/f"));
}

TEST_CASE("write and edit: facts and the diff a client sees") {
  Bench bench;
  auto outcome = bench.write("dir/f", "a\nb\n");
  CHECK_FALSE(outcome.is_error);
  CHECK(has(outcome.content, "created"));
  CHECK(bench.view.title == "Write dir/f");
  REQUIRE(bench.view.diffs.size() == 1);
  CHECK(bench.view.diffs[0].path == bench.cwd + "/dir/f");
  CHECK_FALSE(bench.view.diffs[0].old_text);
  CHECK(bench.view.diffs[0].new_text == "a\nb\n");
  CHECK(text_fact(outcome, "old_hash").empty());
  outcome = bench.edit("dir/f", "b", "c");
  CHECK(bench.view.diffs.at(0).old_text == "a\nb\n");
  CHECK(bench.view.diffs.at(0).new_text == "a\nc\n");
  CHECK(bench.view.locations.at(0).line == 2);
  CHECK(bench.view.kind == "edit");
  CHECK(text_fact(outcome, "path") == bench.cwd + "/dir/f");
  CHECK(text_fact(outcome, "denied_key") == bench.cwd + "/dir/f");
  CHECK(text_fact(outcome, "old_hash") == sandbox::sha256_hex("a\nb\n"));
  CHECK(text_fact(outcome, "new_hash") == sandbox::sha256_hex("a\nc\n"));
  CHECK(text_fact(outcome, "mode") == "danger-full-access");
  CHECK_FALSE(fact(outcome, "escalated"));
  CHECK_FALSE(fact(outcome, "denied"));
}

TEST_CASE("LF old text, a CRLF file; the byte order mark; UTF-16") {
  Bench bench;
  CHECK(bench.edited("a\r\nb\r\n", "a\nb", "a\nx") == "a\r\nx\r\n");
  CHECK(bench.edited("\xEF\xBB\xBFkey = 1\n", "key = 1", "key = 2") == "\xEF\xBB\xBFkey = 2\n");
  CHECK(bench.edited("\xFF\xFEh\0i\0\r\0\n\0"s, "hi", "h\xC3\xA9") == "\xFF\xFEh\0\xE9\0\r\0\n\0"s);
  CHECK(bench.edited("all:\n\tcc\n", "\tcc", "\tgcc") == "all:\n\tgcc\n");
}

TEST_CASE("Latin-1 is rewritten as U+FFFD") {
  Bench bench;
  CHECK(bench.edited("caf\xE9\nname = 1\n", "name = 1", "name = 2") == "caf\xE9\nname = 2\n");
  CHECK(has(bench.edited("caf\xE9\nname = 1\n", "name = 1", "n\xC3\xA4me = 1"), "ERROR"));
  put(bench.cwd + "/f", "caf\xE9\n");
  const auto shown = bench.read("f").content;
  CHECK(has(shown, "not UTF-8"));
  CHECK(base::get_string(*bench.edit("f", "caf\xEF\xBF\xBD", "x").facts, "error") == "invalid_argument");
  CHECK(slurp(bench.cwd + "/f") == "caf\xE9\n");
}

TEST_CASE("write keeps encoding and line ends of the file it replaces") {
  Bench bench;
  const auto written = [&](const std::string& bytes, const std::string& content) {
    put(bench.cwd + "/f", bytes);
    bench.read("f");
    bench.write("f", content);
    return slurp(bench.cwd + "/f");
  };
  CHECK(written("a\r\nb\r\n", "x\ny\n") == "x\r\ny\r\n");
  CHECK(written("a\r\nb\n", "x\ny\n") == "x\ny\n");
  CHECK(written("\xEF\xBB\xBF"
                "a\n",
                "x\n") == "\xEF\xBB\xBFx\n");
  CHECK(written("\xEF\xBB\xBF"
                "a\n",
                "\xEF\xBB\xBFx\n") == "\xEF\xBB\xBFx\n");
  CHECK(written("\xFE\xFF\0a"s, "b") == "\xFE\xFF\0b"s);
}

TEST_CASE("edit: what cannot be done is refused with what to do") {
  Bench bench;
  put(bench.cwd + "/f", "a\na\n");
  bench.read("f");
  CHECK(has(bench.edit("f", "a", "b").content, "2 times"));
  CHECK(has(bench.edit("f", "zzz", "b").content, "not found"));
  CHECK(has(bench.edit("f", "", "b").content, "use write"));
  CHECK(has(bench.edit("none", "a", "b").content, "create it with write"));
  CHECK_FALSE(bench.edit("f", "a", "b", {{"replace_all", true}}).is_error);
  CHECK(slurp(bench.cwd + "/f") == "b\nb\n");
  put(bench.cwd + "/bin", "a\0b"s);
  CHECK(has(bench.write("bin", "text").content, "binary file"));
}

TEST_CASE("a path that names a folder by its form is no file to make or change") {
  Bench bench;
  for (const char* path : {"w/", "w/.", "w/..", "w//", ".", "/"}) {
    INFO(path);
    CHECK(has(bench.write(path, "x").content, " names a folder; give the path of a file"));
    CHECK(has(bench.edit(path, "a", "b").content, " names a folder; give the path of a file"));
  }
  CHECK_FALSE(std::filesystem::exists(bench.cwd + "/w"));
  put(bench.cwd + "/f", "text\n");
  CHECK(bench.read("f/").is_error);
  CHECK(has(bench.read("./").content, "is a folder"));
}

TEST_CASE("a denied write carries code, marker and hint, and its facts") {
  Bench bench(Mode::read_only, ApprovalOutcome::rejected);
  const auto outcome = bench.write("f", "x");
  CHECK(outcome.is_error);
  CHECK(has(outcome.content, "FS_SANDBOX_DENIED: "));
  CHECK(has(outcome.content, "\n[sandbox: file access denied under read-only mode]\n"));
  CHECK(has(outcome.content, "sandbox_permissions"));
  CHECK(fact(outcome, "denied"));
  CHECK(text_fact(outcome, "denied_key") == bench.cwd + "/f");
  CHECK(text_fact(outcome, "mode") == "read-only");
  CHECK(bench.view.diffs.empty());
  CHECK(has(bench.view.text.value_or(""), "FS_SANDBOX_DENIED"));
  CHECK_FALSE(std::filesystem::exists(bench.cwd + "/f"));
}

TEST_CASE("without an approval service a denial has no hint, and escalation its own text") {
  Bench bench(Mode::read_only);
  CHECK_FALSE(has(bench.write("f", "x").content, "sandbox_permissions"));
  const auto outcome = bench.write("f", "x", widen);
  CHECK(outcome.is_error);
  CHECK(has(outcome.content, "no approval service"));
}

TEST_CASE("the granted retry runs once, wider, and is a fact") {
  Bench bench(Mode::read_only, ApprovalOutcome::allowed_once);
  bench.write("f", "x");
  const auto outcome = bench.write("f", "x", widen);
  CHECK_FALSE(outcome.is_error);
  CHECK(slurp(bench.cwd + "/f") == "x");
  CHECK(fact(outcome, "escalated"));
  CHECK(text_fact(outcome, "mode") == "workspace-write");
  CHECK(text_fact(outcome, "escalation") == "allowed-once");
  REQUIRE(bench.asked.size() == 1);
  CHECK(bench.asked[0].grounded);
  CHECK(bench.write("f", "y").is_error);  // nothing is stored
}

TEST_CASE("the user's no is for this operation") {
  Bench bench(Mode::read_only, ApprovalOutcome::rejected);
  const auto outcome = bench.write("f", "x", widen);
  CHECK(has(outcome.content, "the user rejected escalating this operation to \"workspace-write\""));
  CHECK_FALSE(bench.asked.at(0).grounded);
  CHECK_FALSE(std::filesystem::exists(bench.cwd + "/f"));
}

TEST_CASE("nobody is asked for a change that cannot be made") {
  Bench bench(Mode::read_only, ApprovalOutcome::allowed_once);
  put(bench.cwd + "/f", "a\n");
  CHECK(has(bench.edit("f", "a", "b", widen).content, "FS_NOT_OBSERVED"));
  bench.read("f");
  CHECK(has(bench.edit("f", "zzz", "b", widen).content, "not found"));
  CHECK(bench.asked.empty());
}

TEST_CASE("a granted confining mode still confines") {
  Bench bench(Mode::read_only, ApprovalOutcome::allowed_once);
  const auto outcome = bench.write(bench.folder / "outside", "x", widen);
  CHECK(has(outcome.content, "FS_SANDBOX_DENIED"));
  CHECK(has(outcome.content, "under workspace-write mode]"));
  CHECK(fact(outcome, "escalated"));
  CHECK(fact(outcome, "denied"));
}

TEST_CASE("a call that was stopped before its change changes nothing") {
  Bench bench;
  bench.stop.request_stop();
  CHECK(bench.write("f", "x").is_error);
  CHECK_FALSE(std::filesystem::exists(bench.cwd + "/f"));
}

TEST_CASE("the escalation members are there exactly when the file system confines") {
  Bench bench;
  agent::Capabilities confining;
  confining.fs_confines = true;
  for (agent::Tool* tool : {bench.writer.get(), bench.editor.get()}) {
    CHECK(has(tool->spec(confining).parameters, "\"sandbox_permissions\""));
    CHECK(has(tool->spec(confining).description, "sandbox_permissions"));
    CHECK_FALSE(has(tool->spec({}).parameters, "sandbox_permissions"));
    CHECK_FALSE(has(tool->spec({}).description, "sandbox"));
    CHECK(base::parse_json(tool->spec(confining).parameters).has_value());
    CHECK_FALSE(tool->reads_only(Json::object()));
  }
  CHECK_FALSE(has(bench.reader->spec(confining).parameters, "sandbox_permissions"));
  CHECK(bench.reader->reads_only(Json::object()));
}

TEST_CASE("an unconfined file system refuses the escalation fields") {
  Bench bench(Mode::read_only, ApprovalOutcome::allowed_once, false);
  CHECK(bench.write("f", "x", widen).is_error);
  CHECK(bench.asked.empty());
}

TEST_CASE("views of arguments that are nonsense") {
  Bench bench;
  for (const Json& arguments :
       {Json::object(), Json{{"file_path", 7}}, Json{{"file_path", "a\0b"s}}, Json{{"file_path", "x\ny"}}}) {
    for (agent::Tool* tool : {bench.reader.get(), bench.writer.get(), bench.editor.get()}) {
      const auto view = tool->view_call(arguments, bench.cwd);
      CHECK_FALSE(view.title.empty());
      CHECK_FALSE(has(view.title, "\n"));
    }
  }
}

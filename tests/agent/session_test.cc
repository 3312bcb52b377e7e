#include "agent/session.h"

#include <sys/stat.h>

#include "tests/agent/support.h"

namespace {

using namespace agent;
using base::ErrorCode;
using test::Json;

struct Disk {
  test::Folder folder;
  LogOptions options{folder / "state/sessions", false};
  base::World world = base::real_world();

  std::shared_ptr<Session> make() {
    auto session = Session::create(options, folder.path(), world);
    REQUIRE(session.has_value());
    return *session;
  }
};

void put(Session& session, Payload payload) {
  auto good = session.append(std::move(payload));
  if (!good) FAIL(good.error().message);
}

event::UserMessage user(const std::string& text) { return {test::words(text), nullptr}; }

event::TurnEnd ended(std::int64_t turn) {
  event::TurnEnd end;
  end.turn = turn;
  return end;
}

event::AssistantMessage answer(const std::string& text, std::vector<llm::ToolCall> calls = {}) {
  event::AssistantMessage message;
  message.message_id = "m";
  message.message = {llm::Role::assistant, text, "", std::move(calls), ""};
  message.route = "r";
  message.model = "m";
  return message;
}

}  // namespace

TEST_CASE("a session lives in its folder with its first event in it", "[session]") {
  Disk disk;
  auto session = disk.make();
  CHECK(session->cwd() == disk.folder.path());
  CHECK(session->folder().rfind(disk.options.root + "/", 0) == 0);
  const auto log = read_log(session->folder() + "/session.jsonl");
  REQUIRE(log.has_value());
  REQUIRE(log->events.size() == 1);
  CHECK(log->events[0].seq == 1);
  CHECK(std::get<event::Header>(log->events[0].payload).id == session->id());
  CHECK(*find_log(disk.options, session->id()) == session->folder() + "/session.jsonl");
  CHECK(find_log(disk.options, "nobody").error().code == ErrorCode::not_found);
}

TEST_CASE("whether the folder is a linked worktree is settled when the session begins", "[session]") {
  Disk disk;
  const std::string ws = disk.folder / "ws", git = disk.folder / "repo/.git", own = git + "/worktrees/w";
  const auto lay = [](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  };
  for (const char* name : {"/objects", "/refs"}) std::filesystem::create_directories(git + name);
  for (const std::string& file : {git + "/HEAD", git + "/config", own + "/HEAD"}) lay(file, "");
  lay(own + "/gitdir", ws + "/.git\n");
  lay(own + "/commondir", "../..\n");
  std::filesystem::create_directory(ws);
  const auto plain = *Session::create(disk.options, ws, disk.world);
  CHECK(plain->worktree().empty());

  lay(ws + "/.git", "gitdir: " + own + "\n");
  auto session = *Session::create(disk.options, ws, disk.world);
  CHECK(session->worktree() == own);
  const std::string id = session->id(), before = plain->id();
  session.reset();
  Services services;
  services.policy = PolicyDefaults{sandbox::Mode::workspace_write, ws, {}};
  const auto worktree_of = [&](const std::string& name) {
    const auto loaded = Session::load(disk.options, name, disk.world, {});
    REQUIRE(loaded.has_value());
    return resolve_policy(services, **loaded).worktree;
  };
  std::filesystem::remove(ws + "/.git");
  CHECK(worktree_of(id) == own);
  lay(ws + "/.git", "gitdir: " + own + "\n");
  CHECK(resolve_policy(services, *plain).worktree.empty());
  CHECK(before != id);
}

TEST_CASE("the session's folder is canonical and must be there", "[session]") {
  Disk disk;
  std::filesystem::create_directory(disk.folder / "real");
  std::filesystem::create_symlink(disk.folder / "real", disk.folder / "link");
  CHECK((*Session::create(disk.options, disk.folder / "link/../link/.", disk.world))->cwd() == disk.folder / "real");
  CHECK(Session::create(disk.options, disk.folder / "missing", disk.world).error().code == ErrorCode::not_found);
  std::filesystem::create_directory(disk.folder / "bad\xff");
  CHECK(Session::create(disk.options, disk.folder / "bad\xff", disk.world).error().code == ErrorCode::invalid_argument);
}

TEST_CASE("events are numbered, written and observed in one order", "[session]") {
  Disk disk;
  auto session = disk.make();
  std::vector<std::int64_t> seen;
  std::vector<std::string> deltas;
  Observer observer;
  observer.on_event = [&](const Event& event) {
    seen.push_back(event.seq);
    (void)session->settings();  // getters may be called from an observer
    (void)session->title();
  };
  observer.on_delta = [&](const LiveDelta& delta) { deltas.push_back(delta.id + ":" + std::string(delta.text)); };
  session->set_observer(observer);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        put(*session, event::SessionTitle{std::to_string(t) + "/" + std::to_string(i)});
        session->delta({LiveDelta::Kind::text, "m", "x"});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  REQUIRE(seen.size() == 200);
  for (std::size_t i = 0; i < seen.size(); ++i) REQUIRE(seen[i] == static_cast<std::int64_t>(i) + 2);
  CHECK(deltas.size() == 200);
  CHECK_FALSE(read_log(session->folder() + "/session.jsonl")->damage.has_value());
  session->set_observer({});
}

TEST_CASE("a setting is its last event", "[session]") {
  Disk disk;
  auto session = disk.make();
  CHECK_FALSE(session->settings().mode.has_value());
  put(*session, event::SandboxMode{sandbox::Mode::read_only});
  REQUIRE(session->append_all({event::SandboxMode{sandbox::Mode::danger_full_access},
                               event::ApprovalPolicySet{ApprovalPolicy::never}, event::PermissionPreset{"p"}}));
  const std::string id = session->id();
  session.reset();
  auto again = Session::load(disk.options, id, disk.world, nullptr);
  REQUIRE(again.has_value());
  CHECK((*again)->settings().mode == sandbox::Mode::danger_full_access);
  CHECK((*again)->settings().approval == ApprovalPolicy::never);
  CHECK((*again)->settings().preset == "p");
}

TEST_CASE("an event that breaks the grammar is refused and not written", "[session]") {
  Disk disk;
  auto session = disk.make();
  const auto refused = [&](Payload payload) {
    auto result = session->append(std::move(payload));
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == ErrorCode::internal);
  };
  refused(event::Header{"x", "/", "t"});
  refused(event::StepStart{1, 1});
  refused(ended(1));
  refused(answer("x"));
  refused(event::ApprovalAsked{"a", "bash", "c", "r"});
  put(*session, event::TurnStart{1});
  refused(event::TurnStart{2});
  put(*session, event::StepStart{1, 1});
  refused(event::StepStart{1, 2});
  refused(ended(1));
  refused(event::ToolCall{"c", "bash", "{}"});
  put(*session, user("hi"));
  put(*session, answer("", {{"c1", "bash", "{}"}, {"c2", "bash", "{}"}}));
  refused(user("between"));
  refused(answer("again"));
  refused(event::StepEnd{1, 1});
  refused(event::ToolResult{"c2", "out of order", false, nullptr});
  refused(event::ToolResult{"c3", "unknown", false, nullptr});
  put(*session, event::ToolCall{"c1", "bash", "{}"});
  refused(event::ToolCall{"c1", "bash", "{}"});
  put(*session, event::ToolResult{"c1", "one", false, nullptr});
  refused(event::ToolResult{"c1", "twice", false, nullptr});
  put(*session, event::ToolResult{"c2", "two", false, nullptr});
  put(*session, event::StepEnd{1, 1});
  put(*session, event::StepStart{1, 2});
  refused(answer("", {{"c1", "bash", "{}"}}));
  refused(answer("", {{"", "bash", "{}"}}));
  refused(answer("", {{"d", "bash", "{}"}, {"d", "bash", "{}"}}));
  put(*session, event::ApprovalAsked{"a", "bash", "c", "r"});
  put(*session, event::StepEnd{1, 2});
  refused(ended(1));
  refused(event::ApprovalDecided{"b"});
  put(*session, event::ApprovalDecided{"a"});
  refused(event::InboxSpliced{{}, {"nothing"}});
  put(*session, ended(1));
  CHECK_FALSE(read_log(session->folder() + "/session.jsonl")->damage.has_value());
}

TEST_CASE("what is sent: messages in order, each encoded once, empty answers left out", "[session]") {
  Disk disk;
  auto session = disk.make();
  auto model = std::make_shared<test::ScriptedModel>();
  put(*session, event::TurnStart{1});
  put(*session, event::StepStart{1, 1});
  put(*session, user("hi"));
  const auto before = session->wire_messages(model);
  REQUIRE(before.size() == 1);
  event::AssistantMessage nothing = answer("");
  nothing.interrupted = true;
  put(*session, event::AssistantAborted{"m", "shown"});
  put(*session, nothing);
  CHECK(session->wire_messages(model).size() == 1);
  put(*session, event::StepEnd{1, 1});
  put(*session, event::StepStart{1, 2});
  event::AssistantMessage partial = answer("half a");
  partial.interrupted = true;
  put(*session, partial);
  const auto after = session->wire_messages(model);
  REQUIRE(after.size() == 2);
  CHECK(after[0] == before[0]);  // the same string, not an equal one
  CHECK(test::has(*after[1], "half a"));
  auto other = std::make_shared<test::ScriptedModel>();
  CHECK(session->wire_messages(other)[0] != before[0]);
}

TEST_CASE("damage is named by line and byte, and is refused for writing", "[session]") {
  Disk disk;
  std::string id, file;
  {
    auto session = disk.make();
    id = session->id();
    file = session->folder() + "/session.jsonl";
    put(*session, event::SessionTitle{"one"});
    put(*session, event::SessionTitle{"two"});
  }
  const std::string good = test::slurp(file);
  const std::size_t second = good.find('\n') + 1;
  const std::size_t third = good.find('\n', second) + 1;
  std::string bad = good;
  SECTION("a byte changed") { bad[second] = 'x'; }
  SECTION("a line lost") { bad.erase(second, third - second); }
  SECTION("a line twice") { bad.insert(second, good.substr(0, second)); }
  SECTION("an empty line") { bad.insert(second, "\n"); }
  SECTION("a second half fused") { bad.erase(third - 5, 5); }
  test::put(file, bad);
  auto loaded = Session::load(disk.options, id, disk.world, nullptr);
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().code == ErrorCode::corrupt);
  CHECK(test::has(loaded.error().message, "line 2 (byte " + std::to_string(second) + ")"));
  const auto log = read_log(file);
  REQUIRE(log.has_value());
  CHECK(log->damage.has_value());
  CHECK(log->events.size() == 1);
  CHECK(test::slurp(file) == bad);
}

TEST_CASE("a log without its header, or with another session's, is refused", "[session]") {
  Disk disk;
  auto session = disk.make();
  const std::string id = session->id(), file = session->folder() + "/session.jsonl";
  std::string bytes = test::slurp(file);
  session.reset();
  SECTION("empty") { test::put(file, ""); }
  SECTION("torn") { test::put(file, bytes.substr(0, bytes.size() - 1)); }
  SECTION("zeros") { test::put(file, std::string(300, '\0')); }
  SECTION("another id") { test::put(file, bytes.replace(bytes.find(id), id.size(), std::string(id.size(), 'a'))); }
  CHECK(Session::load(disk.options, id, disk.world, nullptr).error().code == ErrorCode::corrupt);
  const auto header = read_log_header(file);
  CHECK((!header || header->id != id));
}

TEST_CASE("an open turn is closed on load, and its calls say whether they started", "[session]") {
  Disk disk;
  std::string id;
  {
    auto session = disk.make();
    id = session->id();
    put(*session, event::InboxSpliced{{{"p", InboxTarget::next_turn, test::words("unclaimed"), nullptr},
                                       {"s", InboxTarget::injected, test::words("kept"), nullptr}},
                                      {}});
    put(*session, event::SessionTitle{"T"});
    put(*session, event::TurnStart{1});
    put(*session, event::StepStart{1, 1});
    put(*session, user("go"));
    put(*session, answer("", {{"c1", "a", "{}"}, {"c2", "b", "{}"}, {"c3", "c", "{}"}}));
    put(*session, event::ToolCall{"c1", "a", "{}"});
    put(*session, event::ToolResult{"c1", "done", false, nullptr});
    put(*session, event::ToolCall{"c2", "b", "{}"});
    put(*session, event::ApprovalAsked{"q", "b", "c2", "r"});
  }
  std::vector<Event> replayed;
  auto session = Session::load(disk.options, id, disk.world, [&](const Event& event) { replayed.push_back(event); });
  REQUIRE(session.has_value());
  CHECK_FALSE((*session)->turn_open());
  CHECK((*session)->next_turn() == 2);
  REQUIRE((*session)->inbox().size() == 1);
  CHECK((*session)->inbox()[0].id == "s");
  REQUIRE(replayed.size() == 17);
  CHECK(std::get<event::ApprovalDecided>(replayed[11].payload).outcome == ApprovalOutcome::cancelled);
  const auto& started = std::get<event::ToolResult>(replayed[12].payload);
  const auto& not_started = std::get<event::ToolResult>(replayed[13].payload);
  CHECK(started.call_id == "c2");
  CHECK(started.is_error);
  CHECK(test::has(started.content, "while this call was running"));
  CHECK(test::fact(started, "started") == "true");
  CHECK(not_started.call_id == "c3");
  CHECK(test::has(not_started.content, "not started"));
  CHECK(test::fact(not_started, "started") == "false");
  const auto& end = std::get<event::TurnEnd>(replayed[15].payload);
  CHECK(end.reason == TurnEndReason::interrupted);
  CHECK(end.title == "T");
  // A second load finds nothing to repair.
  const std::string file = (*session)->folder() + "/session.jsonl";
  session->reset();
  const std::string bytes = test::slurp(file);
  CHECK(Session::load(disk.options, id, disk.world, nullptr).has_value());
  CHECK(test::slurp(file) == bytes);
}

TEST_CASE("a session is loaded by one process at a time", "[session]") {
  Disk disk;
  auto session = disk.make();
  CHECK(Session::load(disk.options, session->id(), disk.world, nullptr).error().code == ErrorCode::busy);
}

TEST_CASE("what was refused is neither folded nor observed", "[session]") {
  Disk disk;
  auto session = disk.make();
  put(*session, event::SessionTitle{"kept"});
  int seen = 0;
  Observer observer;
  observer.on_event = [&](const Event&) { ++seen; };
  session->set_observer(observer);
  CHECK_FALSE(session->append_all({event::SessionTitle{"lost"}, event::StepStart{1, 1}}).has_value());
  CHECK(seen == 0);
  CHECK(session->title() == "kept");
}

TEST_CASE("same calls are found whatever the order of members", "[session]") {
  Disk disk;
  auto session = disk.make();
  put(*session, event::TurnStart{1});
  put(*session, event::StepStart{1, 1});
  put(*session, answer("", {{"c1", "bash", R"({"a":1,"b":[2.0,"x"],"sandbox_permissions":"m","justification":"j"})"}}));
  put(*session, event::ToolCall{"c1", "bash", "{}"});
  put(*session, event::ApprovalAsked{"q", "bash", "c1", "r"});
  put(*session, event::ApprovalDecided{"q", ApprovalOutcome::rejected});
  put(*session, event::ToolResult{"c1", "no", true, base::share(Json{{"denied", true}, {"denied_key", "k"}})});
  put(*session, event::StepEnd{1, 1});
  CHECK(session->rejected_in_turn("bash", Json{{"b", {2, "x"}}, {"a", 1}}));
  CHECK(session->rejected_in_turn("bash", Json{{"b", {2, "x"}}, {"a", 1}, {"sandbox_permissions", "other"}}));
  CHECK_FALSE(session->rejected_in_turn("bash", Json{{"b", {2, "y"}}, {"a", 1}}));
  CHECK_FALSE(session->rejected_in_turn("write", Json{{"b", {2, "x"}}, {"a", 1}}));
  CHECK(session->denied_before("bash", "k"));
  CHECK_FALSE(session->denied_before("write", "k"));
  CHECK_FALSE(session->denied_before("bash", "other"));
  put(*session, ended(1));
  put(*session, event::TurnStart{2});
  CHECK_FALSE(session->rejected_in_turn("bash", Json{{"b", {2, "x"}}, {"a", 1}}));
  CHECK(session->denied_before("bash", "k"));
}

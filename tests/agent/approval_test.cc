#include "agent/approval.h"

#include "tests/agent/support.h"

namespace {

using namespace agent;
using test::Json;

struct Fixture {
  test::Folder folder;
  LogOptions options{folder / "state/sessions", false};
  std::shared_ptr<Session> session;
  std::stop_source stop;
  std::vector<ApprovalRequest> asked;
  int calls = 0;

  Fixture() { session = open(); }
  std::shared_ptr<Session> open() {
    auto made = Session::create(options, folder.path(), base::real_world());
    REQUIRE(made.has_value());
    return *made;
  }
  void turn() {
    REQUIRE(session->append(event::TurnStart{session->next_turn()}));
    REQUIRE(session->append(event::StepStart{session->next_turn() - 1, 1}));
  }
  Answerer says(ApprovalOutcome outcome) {
    return [this, outcome](Session&, const ApprovalRequest& request, std::stop_token) {
      asked.push_back(request);
      return std::optional(outcome);
    };
  }
  // "asked decided:rejected ..." of the log
  std::string trail() {
    std::string list;
    const auto log = read_log(session->folder() + "/session.jsonl");
    REQUIRE(log.has_value());
    for (const Event& event : log->events) {
      if (std::holds_alternative<event::ApprovalAsked>(event.payload)) list += "asked ";
      if (const auto* decided = std::get_if<event::ApprovalDecided>(&event.payload)) {
        list += std::string(name(decided->outcome)) + " ";
      }
    }
    return list;
  }
  ApprovalRequest request() { return {"bash", "c1", base::share(Json::object()), "why", "", "", {}, false}; }
};

}  // namespace

TEST_CASE("an answer is logged as a pair before it is given", "[approval]") {
  Fixture f;
  f.turn();
  ApprovalService service(ApprovalPolicy::ask);
  const auto outcome = GENERATE(ApprovalOutcome::allowed_once, ApprovalOutcome::rejected, ApprovalOutcome::cancelled);
  service.add_answerer(f.says(outcome));
  CHECK(service.ask(*f.session, f.request(), f.stop.get_token()) == outcome);
  CHECK(f.trail() == "asked " + std::string(name(outcome)) + " ");
}

TEST_CASE("without a turn nobody is asked and nothing is logged", "[approval]") {
  Fixture f;
  ApprovalService service(ApprovalPolicy::ask);
  service.add_answerer(f.says(ApprovalOutcome::allowed_once));
  CHECK(service.ask(*f.session, f.request(), f.stop.get_token()) == ApprovalOutcome::unavailable);
  CHECK(f.asked.empty());
  CHECK(f.trail().empty());
}

TEST_CASE("never is rejected before any answerer", "[approval]") {
  Fixture f;
  f.turn();
  ApprovalService service(ApprovalPolicy::ask);
  service.add_answerer(f.says(ApprovalOutcome::allowed_once));
  REQUIRE(f.session->append(event::ApprovalPolicySet{ApprovalPolicy::never}));
  const auto decision = service.decide(*f.session, f.request(), f.stop.get_token());
  CHECK(decision.outcome == ApprovalOutcome::rejected);
  CHECK(decision.by_policy);
  CHECK(f.asked.empty());
  CHECK(f.trail() == "asked rejected ");
}

TEST_CASE("the first answer wins; a throw and silence are unavailable", "[approval]") {
  Fixture f;
  f.turn();
  ApprovalService service(ApprovalPolicy::ask);
  CHECK(service.ask(*f.session, f.request(), f.stop.get_token()) == ApprovalOutcome::unavailable);
  service.add_answerer(
      [](Session&, const ApprovalRequest&, std::stop_token) { return std::optional<ApprovalOutcome>(); });
  CHECK(service.ask(*f.session, f.request(), f.stop.get_token()) == ApprovalOutcome::unavailable);
  SECTION("an answer") {
    service.add_answerer(f.says(ApprovalOutcome::rejected));
    service.add_answerer(f.says(ApprovalOutcome::allowed_once));
    CHECK(service.ask(*f.session, f.request(), f.stop.get_token()) == ApprovalOutcome::rejected);
    CHECK(f.asked.size() == 1);
  }
  SECTION("a throw") {
    service.add_answerer([](Session&, const ApprovalRequest&, std::stop_token) -> std::optional<ApprovalOutcome> {
      throw std::runtime_error("broken");
    });
    service.add_answerer(f.says(ApprovalOutcome::allowed_once));
    CHECK(service.ask(*f.session, f.request(), f.stop.get_token()) == ApprovalOutcome::unavailable);
    CHECK(f.asked.empty());
  }
}

TEST_CASE("a stop before the answer wins, and the answer is dropped", "[approval]") {
  Fixture f;
  f.turn();
  ApprovalService service(ApprovalPolicy::ask);
  service.add_answerer([&](Session&, const ApprovalRequest&, std::stop_token) {
    f.stop.request_stop();
    return std::optional(ApprovalOutcome::allowed_once);
  });
  CHECK(service.ask(*f.session, f.request(), f.stop.get_token()) == ApprovalOutcome::cancelled);
  CHECK(f.trail() == "asked cancelled ");
}

TEST_CASE("an open request is cancelled by a stop", "[approval]") {
  Fixture f;
  f.turn();
  ApprovalService service(ApprovalPolicy::ask);
  test::Gate open;
  service.add_answerer([&](Session&, const ApprovalRequest&, std::stop_token stop) {
    open.open();
    test::wait_stop(stop);
    return std::optional(ApprovalOutcome::cancelled);
  });
  auto waiting =
      std::async(std::launch::async, [&] { return service.ask(*f.session, f.request(), f.stop.get_token()); });
  open.wait();
  f.stop.request_stop();
  CHECK(test::get(std::move(waiting)) == ApprovalOutcome::cancelled);
}

TEST_CASE("one request is open at a time per session; others queue and can be stopped there", "[approval]") {
  Fixture f;
  f.turn();
  auto second = f.open();
  REQUIRE(second->append(event::TurnStart{1}));
  ApprovalService service(ApprovalPolicy::ask);
  test::Gate first_open, release;
  std::atomic<int> open{0}, most{0}, answered{0};
  service.add_answerer([&](Session& session, const ApprovalRequest& request, std::stop_token) {
    if (&session == second.get()) return std::optional(ApprovalOutcome::rejected);
    most = std::max(most.load(), ++open);
    if (request.call_id == "first") {
      first_open.open();
      release.wait();
    }
    --open;
    ++answered;
    return std::optional(ApprovalOutcome::allowed_once);
  });
  const auto ask = [&](const char* call, std::stop_token stop) {
    ApprovalRequest request = f.request();
    request.call_id = call;
    return service.ask(*f.session, request, std::move(stop));
  };
  auto first = std::async(std::launch::async, [&] { return ask("first", f.stop.get_token()); });
  first_open.wait();
  auto queued = std::async(std::launch::async, [&] { return ask("queued", f.stop.get_token()); });
  std::stop_source gone;
  auto stopped = std::async(std::launch::async, [&] { return ask("stopped", gone.get_token()); });
  gone.request_stop();
  CHECK(test::get(std::move(stopped)) == ApprovalOutcome::cancelled);
  // Another session does not wait for this one.
  CHECK(service.ask(*second, f.request(), f.stop.get_token()) == ApprovalOutcome::rejected);
  CHECK(answered == 0);
  release.open();
  CHECK(test::get(std::move(first)) == ApprovalOutcome::allowed_once);
  CHECK(test::get(std::move(queued)) == ApprovalOutcome::allowed_once);
  CHECK(most == 1);
  CHECK(answered == 2);
}

TEST_CASE("answer and stop race once", "[approval]") {
  Fixture f;
  f.turn();
  ApprovalService service(ApprovalPolicy::ask);
  std::atomic<bool> go{false};
  service.add_answerer([&](Session&, const ApprovalRequest&, std::stop_token) {
    go = true;
    return std::optional(ApprovalOutcome::allowed_once);
  });
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    std::stop_source stop;
    go = false;
    std::thread racer([&] {
      while (!go) std::this_thread::yield();
      stop.request_stop();
    });
    const auto outcome = service.ask(*f.session, f.request(), stop.get_token());
    racer.join();
    CHECK((outcome == ApprovalOutcome::allowed_once || outcome == ApprovalOutcome::cancelled));
    expected += "asked " + std::string(name(outcome)) + " ";
  }
  CHECK(f.trail() == expected);
}

// --- escalation ---

namespace {

struct Escalating : Fixture {
  ApprovalService service{ApprovalPolicy::ask};
  sandbox::Mode mode = sandbox::Mode::read_only;
  bool confines = true;
  bool no_service = false;
  std::string call_id;
  int step = 0;

  tl::expected<Escalation, ToolOutcome> resolve(const Json& arguments, const std::string& key = "k") {
    call_id = "call-" + std::to_string(++calls);
    if (session->turn_open()) {
      REQUIRE(session->append(event::StepEnd{1, ++step}));
      REQUIRE(session->append(event::StepStart{1, step + 1}));
      event::AssistantMessage message;
      message.message.tool_calls = {{call_id, "bash", base::dump(arguments)}};
      REQUIRE(session->append(message));
      REQUIRE(session->append(event::ToolCall{call_id, "bash", base::dump(arguments)}));
    }
    sandbox::Policy policy;
    policy.mode = mode;
    policy.workspace_root = folder.path();
    ToolContext context{*session, call_id, policy, stop.get_token()};
    auto result = resolve_escalation(arguments, context, "bash", "this command", key, {"touch x", folder.path(), {}},
                                     confines, no_service ? nullptr : &service);
    if (session->turn_open()) {
      event::ToolResult logged{call_id, result ? "ran" : result.error().content, !result,
                               result ? nullptr : result.error().facts};
      REQUIRE(session->append(logged));
    }
    return result;
  }
  std::string refused(const Json& arguments) {
    auto result = resolve(arguments);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().is_error);
    CHECK(base::get_string(*result.error().facts, "escalation").has_value());
    CHECK(base::get_bool(*result.error().facts, "escalated") == false);
    outcome = *base::get_string(*result.error().facts, "escalation");
    return result.error().content;
  }
  std::string outcome;
  Json wider(const char* to = "workspace-write") {
    return {{"command", "touch x"}, {"sandbox_permissions", to}, {"justification", "to make x"}};
  }
};

}  // namespace

TEST_CASE("without the two fields a call keeps its policy and nobody is asked", "[escalation]") {
  Escalating f;
  f.turn();
  auto plain = f.resolve({{"command", "ls"}});
  REQUIRE(plain.has_value());
  CHECK_FALSE(plain->escalated);
  CHECK(plain->policy.mode == sandbox::Mode::read_only);
  CHECK(f.trail().empty());
}

TEST_CASE("every refusal has its own text, in order", "[escalation]") {
  Escalating f;
  f.service.add_answerer(f.says(ApprovalOutcome::allowed_once));
  f.turn();
  CHECK(f.refused({{"sandbox_permissions", "workspace-write"}}) ==
        "sandbox_permissions was sent without justification; send both or neither");
  CHECK(f.refused({{"justification", "x"}}) ==
        "justification was sent without sandbox_permissions; send both or neither");
  CHECK(test::has(f.refused({{"sandbox_permissions", "workspace-write"}, {"justification", " \n"}}),
                  "justification is blank"));
  CHECK(f.outcome == "refused");
  f.confines = false;
  CHECK(test::has(f.refused(f.wider()), "nothing is confined here"));
  f.confines = true;
  CHECK(test::has(f.refused(f.wider("root")), "must be"));
  f.mode = sandbox::Mode::workspace_write;
  CHECK(f.refused(f.wider()) ==
        "sandbox escalation to \"workspace-write\" is not strictly wider than this call's current \"workspace-write\" "
        "mode");
  f.mode = sandbox::Mode::danger_full_access;
  CHECK(f.refused(f.wider()) ==
        "sandbox escalation to \"workspace-write\" is not strictly wider than this call's current "
        "\"danger-full-access\" mode");
  f.mode = sandbox::Mode::read_only;
  f.no_service = true;
  CHECK(test::has(f.refused(f.wider()), "no approval service"));
  CHECK(f.outcome == "unavailable");
  f.no_service = false;
  CHECK(f.asked.empty());
  CHECK(f.trail().empty());
}

TEST_CASE("outside a turn there is no session to ask through", "[escalation]") {
  Escalating f;
  f.service.add_answerer(f.says(ApprovalOutcome::allowed_once));
  CHECK(test::has(f.refused(f.wider()), "no session turn"));
  CHECK(f.asked.empty());
}

TEST_CASE("policy never says that approvals are off, not that a user refused", "[escalation]") {
  Escalating f;
  f.service.add_answerer(f.says(ApprovalOutcome::allowed_once));
  f.turn();
  REQUIRE(f.session->append(event::ApprovalPolicySet{ApprovalPolicy::never}));
  const std::string text = f.refused(f.wider());
  CHECK(test::has(text, "approvals are off"));
  CHECK_FALSE(test::has(text, "user rejected"));
  CHECK(f.asked.empty());
  CHECK(f.trail() == "asked rejected ");
}

TEST_CASE("a grant widens one call and is logged before it", "[escalation]") {
  Escalating f;
  f.service.add_answerer(f.says(ApprovalOutcome::allowed_once));
  f.turn();
  auto granted = f.resolve(f.wider("danger-full-access"));
  REQUIRE(granted.has_value());
  CHECK(granted->escalated);
  CHECK(granted->outcome == "allowed-once");
  CHECK(granted->policy.mode == sandbox::Mode::danger_full_access);
  CHECK(granted->policy.workspace_root == f.folder.path());
  REQUIRE(f.asked.size() == 1);
  CHECK(f.asked[0].reason == "escalate sandbox to danger-full-access: to make x");
  CHECK(f.asked[0].mode == "danger-full-access");
  CHECK(f.asked[0].justification == "to make x");
  CHECK(f.asked[0].subject.what == "touch x");
  CHECK(f.asked[0].call_id == f.call_id);
  CHECK(f.trail() == "asked allowed-once ");
  auto next = f.resolve({{"command", "touch x"}});
  REQUIRE(next.has_value());
  CHECK(next->policy.mode == sandbox::Mode::read_only);
}

TEST_CASE("a rejected call is not asked again in its turn", "[escalation]") {
  Escalating f;
  f.service.add_answerer(f.says(ApprovalOutcome::rejected));
  f.turn();
  CHECK(f.refused(f.wider()) == "the user rejected escalating this command to \"workspace-write\"");
  CHECK(f.outcome == "rejected");
  Json again = {{"justification", "please"}, {"sandbox_permissions", "danger-full-access"}, {"command", "touch x"}};
  CHECK(f.refused(again).rfind("the user rejected escalating this command to \"danger-full-access\"", 0) == 0);
  CHECK(f.outcome == "rejected");
  CHECK(f.asked.size() == 1);
  Json other = f.wider();
  other["command"] = "touch y";
  (void)f.refused(other);
  CHECK(f.asked.size() == 2);
  CHECK(f.trail() == "asked rejected asked rejected ");
}

TEST_CASE("cancelled and nobody there have texts of their own", "[escalation]") {
  Escalating f;
  f.turn();
  CHECK(test::has(f.refused(f.wider()), "nobody answered"));
  CHECK(f.outcome == "unavailable");
  f.service.add_answerer(f.says(ApprovalOutcome::cancelled));
  CHECK(test::has(f.refused(f.wider()), "was cancelled"));
  CHECK(f.outcome == "cancelled");
}

TEST_CASE("after a grant the stop is looked at once more", "[escalation]") {
  Escalating f;
  f.turn();
  // The stop comes after the answer settled the request and before the call starts: when the pair is logged.
  Observer observer;
  observer.on_event = [&](const Event& event) {
    if (std::holds_alternative<event::ApprovalDecided>(event.payload)) f.stop.request_stop();
  };
  f.service.add_answerer(f.says(ApprovalOutcome::allowed_once));
  f.session->set_observer(observer);
  const std::string text = f.refused(f.wider());
  CHECK(test::has(text, "stopped before it started"));
  CHECK(f.trail() == "asked allowed-once ");
  f.session->set_observer({});
}

TEST_CASE("grounded means an earlier denial of the same tool and key", "[escalation]") {
  Escalating f;
  f.service.add_answerer(f.says(ApprovalOutcome::allowed_once));
  f.turn();
  REQUIRE(f.resolve(f.wider(), "k").has_value());
  CHECK_FALSE(f.asked.back().grounded);
  REQUIRE(f.session->append(event::StepEnd{1, ++f.step}));
  REQUIRE(f.session->append(event::StepStart{1, f.step + 1}));
  event::AssistantMessage message;
  message.message.tool_calls = {{"denied", "bash", "{}"}};
  REQUIRE(f.session->append(message));
  REQUIRE(f.session->append(
      event::ToolResult{"denied", "", false, base::share(Json{{"denied", true}, {"denied_key", "k"}})}));
  REQUIRE(f.resolve(f.wider(), "k").has_value());
  CHECK(f.asked.back().grounded);
  REQUIRE(f.resolve(f.wider(), "other").has_value());
  CHECK_FALSE(f.asked.back().grounded);
}

TEST_CASE("the denial texts", "[escalation]") {
  using sandbox::Mode;
  CHECK(denial_marker(Mode::read_only) == "[sandbox: file access denied under read-only mode]");
  CHECK(test::has(denial_hint(Mode::read_only, true, ApprovalPolicy::ask, false), "\"workspace-write\""));
  CHECK_FALSE(test::has(denial_hint(Mode::workspace_write, true, ApprovalPolicy::ask, false), "\"workspace-write\""));
  CHECK(denial_hint(Mode::read_only, true, ApprovalPolicy::ask, false).find('\n') == std::string::npos);
  CHECK(denial_hint(Mode::read_only, false, ApprovalPolicy::ask, false).empty());
  CHECK(denial_hint(Mode::read_only, true, ApprovalPolicy::never, false).empty());
  const std::string invited = denial_hint(Mode::read_only, true, ApprovalPolicy::ask, false);
  const std::string reserved = denial_hint(Mode::read_only, true, ApprovalPolicy::ask, true);
  CHECK(test::has(invited, "[to do it all the same, retry this exact call once"));
  CHECK(test::has(reserved, "[the command succeeded; only if what was denied is needed, retry this exact call once"));
  auto members = base::parse_json(std::string("{") + escalation_schema_members + "}");
  REQUIRE(members.has_value());
  CHECK((*members)["sandbox_permissions"]["enum"] == Json{"workspace-write", "danger-full-access"});
  CHECK(members->contains("justification"));
}

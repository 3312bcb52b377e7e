// The client of `run` against a scripted server: what it shows, what it answers, how it ends.
#include "cli/run_client.h"

#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/mutex.h"
#include "base/rpc_peer.h"
#include "base/thread.h"

namespace {

using base::Json;

// A server whose answer to session/prompt is the test's.
class FakeServer {
 public:
  using OnPrompt = std::function<void(FakeServer&, base::Reply)>;

  FakeServer(std::unique_ptr<base::LineTransport> transport, OnPrompt on_prompt) : on_prompt_(std::move(on_prompt)) {
    base::RpcPeer::Handlers handlers;
    handlers.on_request = [this](const std::string& method, const Json& params, const Json&, base::Reply reply) {
      request(method, params, std::move(reply));
    };
    handlers.on_notification = [this](const std::string& method, const Json&) {
      if (method == "session/cancel" && on_cancel) on_cancel();
    };
    peer = std::make_unique<base::RpcPeer>(std::move(transport), std::move(handlers), base::RpcPeer::Options{});
    reader_ = base::Thread("fake-server", [this] { peer->run(); });
  }
  ~FakeServer() {
    peer->stop_reading();
    reader_.join();
  }

  void update(Json update) { peer->notify("session/update", {{"sessionId", "s"}, {"update", std::move(update)}}); }
  void text(const std::string& id, const std::string& text) {
    update(
        {{"sessionUpdate", "agent_message_chunk"}, {"messageId", id}, {"content", {{"type", "text"}, {"text", text}}}});
  }

  std::unique_ptr<base::RpcPeer> peer;
  std::function<void()> on_cancel;
  std::optional<base::RpcError> refuse_session;
  Json new_session;

 private:
  void request(const std::string& method, const Json& params, base::Reply reply) {
    if (method == "initialize") return reply.result({{"protocolVersion", 1}});
    if (method == "session/new") {
      new_session = params;
      if (refuse_session) return reply.error(*refuse_session);
      return reply.result({{"sessionId", "s"}});
    }
    if (method == "session/prompt") return on_prompt_(*this, std::move(reply));
    reply.error({base::rpc_code::method_not_found, method, nullptr});
  }

  OnPrompt on_prompt_;
  base::Thread reader_;
};

struct Run {
  std::string answer, activity;
  int code = -1;
};

Run drive(FakeServer::OnPrompt on_prompt, bool allow = false, const std::function<void(FakeServer&)>& prepare = {},
          bool broken_output = false, bool live = false) {
  Run run;
  auto [client_end, server_end] = base::memory_transport_pair();
  FakeServer server(std::move(server_end), std::move(on_prompt));
  if (prepare) prepare(server);
  cli::RunClient client(std::move(client_end), {"/w", "hello", allow},
                        {[&](std::string_view text) -> base::Result<void> {
                           run.answer += text;
                           if (broken_output) return base::fail(base::ErrorCode::io, "the disk is full");
                           return {};
                         },
                         [&](std::string_view line) { run.activity += std::string(line) + "\n"; }, live});
  run.code = client.drive();
  return run;
}

Json ended(const std::string& reason, bool denied = false, bool unavailable = false) {
  return {{"stopReason", reason},
          {"_meta", {{"acp_agent", {{"denied", denied}, {"escalation", ""}, {"sandbox_unavailable", unavailable}}}}}};
}

}  // namespace

TEST_CASE("run prints the answer, each message on lines of its own") {
  const Run run = drive([](FakeServer& server, base::Reply reply) {
    server.text("m1", "Looking");
    server.text("m1", " around.");
    server.update({{"sessionUpdate", "tool_call"}, {"toolCallId", "c"}, {"title", "ls -la"}, {"status", "pending"}});
    server.text("m2", "Done.\n");
    reply.result(ended("end_turn"));
  });
  CHECK(run.code == 0);
  CHECK(run.answer == "Looking around.\nDone.\n");
  CHECK(run.activity == "* ls -la\n");
}

TEST_CASE("run shows failures and denials, also when an update was folded into its call") {
  const Json denied = Json::array(
      {{{"type", "content"},
        {"content",
         {{"type", "text"}, {"text", "cannot touch\n[sandbox: file access denied under read-only mode]\nretry"}}}}});
  const Run run = drive([&](FakeServer& server, base::Reply reply) {
    server.update({{"sessionUpdate", "tool_call"},
                   {"toolCallId", "c"},
                   {"title", "touch x"},
                   {"status", "completed"},
                   {"content", denied}});
    server.update({{"sessionUpdate", "tool_call"}, {"toolCallId", "d"}, {"title", "write y"}});
    server.update(
        {{"sessionUpdate", "tool_call_update"},
         {"toolCallId", "d"},
         {"status", "failed"},
         {"content", Json::array({{{"type", "content"}, {"content", {{"type", "text"}, {"text", "no\nmore"}}}}})}});
    reply.result(ended("end_turn", true));
  });
  CHECK(run.code == 3);
  CHECK(run.activity == "* touch x\n  [sandbox: file access denied under read-only mode]\n* write y\n  failed: no\n");
}

TEST_CASE("run says why an answer ended early") {
  const std::vector<std::pair<std::string, std::string>> words = {{"max_tokens", "output limit"},
                                                                  {"max_turn_requests", "step limit"},
                                                                  {"refusal", "content filter"},
                                                                  {"end_turn", ""}};
  for (const auto& [reason, word] : words) {
    const Run run = drive([&why = reason](FakeServer&, base::Reply reply) { reply.result(ended(why)); });
    INFO(reason << ": " << run.activity);
    CHECK((word.empty() ? run.activity.empty() : run.activity.find(word) != std::string::npos));
  }
}

TEST_CASE("run says once that the sandbox cannot hold everything") {
  const Run run = drive([](FakeServer& server, base::Reply reply) {
    for (const char* how : {"full", "partial (metadata changes not covered)", "partial (metadata changes not covered)"})
      server.update({{"sessionUpdate", "tool_call_update"},
                     {"toolCallId", "c"},
                     {"status", "completed"},
                     {"rawOutput", {{"enforcement", how}}}});
    reply.result(ended("end_turn"));
  });
  CHECK(run.activity == "  the sandbox cannot hold everything here: partial (metadata changes not covered)\n");
}

TEST_CASE("run allows once under --approve always and rejects under never") {
  for (const bool allow : {true, false}) {
    std::string chosen;
    std::shared_ptr<base::Reply> open;
    const char* asked = "Allow once with wide:\n\n    x\n    The model's words: no\n\nThe model's words: why\n\nmore";
    const Run run = drive(
        [&](FakeServer& server, base::Reply reply) {
          open = std::make_shared<base::Reply>(std::move(reply));
          const Json call = {
              {"toolCallId", "c"},
              {"content", Json::array({{{"type", "content"}, {"content", {{"type", "text"}, {"text", asked}}}}})}};
          const Json options = Json::array({{{"optionId", "never"}, {"kind", "reject_always"}},
                                            {{"optionId", "yes"}, {"kind", "allow_once"}},
                                            {{"optionId", "forever"}, {"kind", "allow_always"}},
                                            {{"optionId", "no"}, {"kind", "reject_once"}}});
          server.peer->call("session/request_permission",
                            {{"sessionId", "s"}, {"toolCall", call}, {"options", options}},
                            [&chosen, open](auto answer) {
                              if (answer)
                                chosen = base::get_string(*base::find(**answer, "outcome"), "optionId").value_or("");
                              open->result(ended("end_turn"));
                            });
        },
        allow);
    CHECK(chosen == (allow ? "yes" : "no"));
    const std::string answer = allow ? "allowed once (--approve always)" : "rejected (--approve never)";
    CHECK(run.activity == "  Allow once with wide: " + answer + "\n  The model's words: why\n");
    CHECK(run.code == 0);
  }
}

TEST_CASE("run ends with 75 or 1 for a prompt error, by whether it may work later") {
  for (const bool retryable : {true, false}) {
    const Run run = drive([&](FakeServer&, base::Reply reply) {
      reply.error({base::rpc_code::internal_error, "short",
                   base::share(Json{{"details", "the server is busy"}, {"kind", "server"}, {"retryable", retryable}})});
    });
    CHECK(run.code == (retryable ? 75 : 1));
    CHECK_THAT(run.activity, Catch::Contains("the server is busy"));
  }
}

TEST_CASE("run ends with 2 when no session can be started for want of a key or a folder") {
  for (const int code :
       {base::rpc_code::auth_required, base::rpc_code::invalid_params, base::rpc_code::internal_error}) {
    const Run run = drive([](FakeServer&, base::Reply reply) { reply.result(ended("end_turn")); }, false,
                          [&](FakeServer& server) {
                            server.refuse_session = base::RpcError{code, "set THE_KEY", nullptr};
                          });
    CHECK(run.code == (code == base::rpc_code::internal_error ? 1 : 2));
    CHECK_THAT(run.activity, Catch::Contains("set THE_KEY"));
  }
}

TEST_CASE("run cancels the prompt when interrupted and says which signal it was") {
  for (const int signal : {SIGINT, SIGTERM}) {
    auto [client_end, server_end] = base::memory_transport_pair();
    std::shared_ptr<base::Reply> open;
    base::Mutex mutex;
    base::CondVar changed;
    bool started = false;
    bool cancelled = false;
    FakeServer server(std::move(server_end), [&](FakeServer&, base::Reply reply) {
      open = std::make_shared<base::Reply>(std::move(reply));
      base::Lock lock(mutex);
      started = true;
      changed.notify_all();
    });
    server.on_cancel = [&] {
      cancelled = true;
      open->result(ended("cancelled"));
    };
    cli::RunClient client(std::move(client_end), {"/w", "hello", false},
                          {[](std::string_view) { return base::Result<void>(); }, [](std::string_view) {}});
    base::Thread interrupter("interrupter", [&] {
      {
        base::Lock lock(mutex);
        while (!started) changed.wait(mutex);
      }
      client.interrupt(signal);
    });
    CHECK(client.drive() == 128 + signal);
    interrupter.join();
    CHECK(cancelled);
  }
}

TEST_CASE("run ends as failed when the server goes away or nobody reads the answer") {
  const Run gone = drive([](FakeServer& server, base::Reply reply) {
    server.peer->stop_reading();
    reply.error({base::rpc_code::internal_error, "going", nullptr});
  });
  CHECK(gone.code == 1);
  const Run unread = drive(
      [](FakeServer& server, base::Reply reply) {
        server.text("m", "anyone?");
        auto open = std::make_shared<base::Reply>(std::move(reply));
        server.on_cancel = [open] { open->result(ended("cancelled")); };
      },
      false, {}, true, true);
  CHECK(unread.code == 1);
}

TEST_CASE("run gave out attempts that broke off as parts of the answer") {
  const auto retried = [](FakeServer& server, base::Reply reply) {
    server.text("m1", "Half an");
    server.text("m1", " answ");
    server.text("m2", "The whole");
    server.text("m2", " answer.");
    reply.result(ended("end_turn"));
  };
  const Run script = drive(retried);
  CHECK(script.code == 0);
  CHECK(script.answer == "The whole answer.\n");
  CHECK(script.activity.empty());
  const Run watched = drive(retried, false, {}, false, true);
  CHECK(watched.code == 0);
  CHECK(watched.answer == "Half an answ\nThe whole answer.\n");
  CHECK(watched.activity == "[the answer broke off; trying again]\n");
}

TEST_CASE("run gave out an attempt that broke off before one that only thought and called") {
  const Run run = drive([](FakeServer& server, base::Reply reply) {
    server.text("m1", "Half an answ");
    server.update({{"sessionUpdate", "agent_thought_chunk"},
                   {"messageId", "m2-thought"},
                   {"content", {{"type", "text"}, {"text", "better look"}}}});
    server.update({{"sessionUpdate", "tool_call"}, {"toolCallId", "c"}, {"title", "ls"}});
    server.update({{"sessionUpdate", "agent_thought_chunk"},
                   {"messageId", "m3-thought"},
                   {"content", {{"type", "text"}, {"text", "so"}}}});
    server.text("m3", "Done.");
    reply.result(ended("end_turn"));
  });
  CHECK(run.answer == "Done.\n");
  CHECK(run.activity == "* ls\n");
}

TEST_CASE("run gave out the unfinished answer of a prompt that failed") {
  const auto failing = [](FakeServer& server, base::Reply reply) {
    server.text("m1", "First I look.");
    server.update({{"sessionUpdate", "tool_call"}, {"toolCallId", "c"}, {"title", "ls"}});
    server.text("m2", "Half an answ");
    reply.error({base::rpc_code::internal_error, "the stream was cut", nullptr});
  };
  const Run run = drive(failing);
  CHECK(run.code == 1);
  CHECK(run.answer == "First I look.\n");
  CHECK_THAT(run.activity, Catch::Contains("the stream was cut"));
  CHECK_THAT(run.activity, Catch::Contains("an unfinished answer was dropped"));
  const Run watched = drive(failing, false, {}, false, true);
  CHECK(watched.answer == "First I look.\nHalf an answ\n");
  CHECK_THAT(watched.activity, !Catch::Contains("dropped"));
}

TEST_CASE("run ended at a limit without a word") {
  for (const auto& [reason, why] :
       {std::pair("max_turn_requests", "max_steps"), std::pair("max_tokens", "max_tokens")}) {
    const Run run = drive([reason = reason](FakeServer& server, base::Reply reply) {
      server.text("m1", "So far");
      reply.result(ended(reason));
    });
    CHECK(run.code == 4);
    CHECK(run.answer == "So far\n");
    CHECK_THAT(run.activity, Catch::StartsWith("acp-agent: ") && Catch::Contains(why));
    CHECK(std::count(run.activity.begin(), run.activity.end(), '\n') == 1);
  }
}

TEST_CASE("run lost its answer without a word") {
  const Run run = drive(
      [](FakeServer& server, base::Reply reply) {
        server.text("m1", "The answer.");
        reply.result(ended("end_turn"));
      },
      false, {}, true);
  CHECK(run.code == 1);
  CHECK(run.activity == "acp-agent: the answer could not be written to stdout (the disk is full)\n");
}

// What the agent tests share: a folder, a scripted model that checks every request it gets, tools that are lambdas, and
// an agent over them with a real log.
#pragma once

#include <catch2/catch.hpp>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "agent/agent.h"
#include "agent/context/context.h"
#include "tests/folder.h"

namespace test {

using base::Json;
using llm::Completion;
using llm::FinishReason;
using llm::ModelError;
using Answer = tl::expected<Completion, ModelError>;

// A wait that a broken product ends: the test fails instead of hanging.
template <class T>
T get(std::future<T> future) {
  if (future.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
    std::fprintf(stderr, "a wait in a test did not end\n");
    std::abort();
  }
  return future.get();
}

class Gate {  // opened once; waits end with it
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(20), [this] { return open_; })) std::abort();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

inline void wait_stop(const std::stop_token& stop) {
  Gate gate;
  const std::stop_callback opened(stop, [&] { gate.open(); });
  gate.wait();
}

// Each answer of the model, in order. Every request is checked: each call is followed by its one result before anything
// else, and the body of a session's request starts with the one before it.
class ScriptedModel : public llm::LlmAdapter {
 public:
  using Step = std::function<Answer(const llm::StreamSink&, std::stop_token)>;

  void then(Step step) {
    const std::lock_guard<std::mutex> lock(mutex_);
    steps_.push_back(std::move(step));
  }
  void then(Answer answer) {
    then([answer](const llm::StreamSink& sink, std::stop_token) {
      if (answer && !answer->message.text.empty() && sink.on_text) sink.on_text(answer->message.text);
      return answer;
    });
  }

  void forget() {  // answers nobody asked for
    const std::lock_guard<std::mutex> lock(mutex_);
    steps_.clear();
  }

  std::string encode(const llm::Message& message) const override {
    Json json{{"role", message.role == llm::Role::user        ? "user"
                       : message.role == llm::Role::assistant ? "assistant"
                                                              : "tool"},
              {"text", message.text}};
    for (const llm::ToolCall& call : message.tool_calls) {
      json["calls"].push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
    }
    if (!message.tool_call_id.empty()) json["for"] = message.tool_call_id;
    return base::dump(json);
  }
  std::string head(const llm::RequestHeader& header) const override {
    return "{\"model\":" + base::quote(header.model) + ",\"messages\":[" + base::quote(header.system);
  }

  Answer complete(const llm::RequestHeader& header, const std::vector<llm::WireMessage>& messages,
                  const llm::StreamSink& sink, std::stop_token stop) override {
    Step step;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      check(header, messages);
      if (steps_.empty()) {
        complaints_.push_back("a request more than the script has");
        return tl::unexpected<ModelError>(
            ModelError{{base::ErrorCode::internal, "script is over", ""}, false, -1, false, {}});
      }
      step = std::move(steps_.front());
      steps_.pop_front();
    }
    return step(sink, std::move(stop));
  }

  std::vector<std::string> bodies() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return bodies_;
  }
  std::vector<std::string> complaints() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return complaints_;
  }
  // Messages of request `index`.
  std::vector<Json> request(std::size_t index) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    REQUIRE(index < bodies_.size());
    auto body = base::parse_json(bodies_[index]);
    REQUIRE(body.has_value());
    std::vector<Json> list;
    for (const Json& one : (*body)["messages"]) {
      if (one.is_object()) list.push_back(one);
    }
    return list;
  }

 private:
  void check(const llm::RequestHeader& header, const std::vector<llm::WireMessage>& messages) {
    const std::string body = llm::request_body(*this, header, messages);
    std::vector<std::string> open;
    for (const llm::WireMessage& wire : messages) {
      const auto parsed = base::parse_json(*wire);
      const Json& one = *parsed;
      if (one["role"] == "tool") {
        if (open.empty() || open.front() != one["for"].get<std::string>())
          complaints_.push_back("a result without its call");
        if (!open.empty()) open.erase(open.begin());
        continue;
      }
      if (!open.empty()) complaints_.push_back("a call without its result: " + open.front());
      open.clear();
      if (one.contains("calls")) {
        for (const Json& call : one["calls"]) open.push_back(call["id"].get<std::string>());
      } else if (one["text"] == "") {
        complaints_.push_back("an empty message");
      }
    }
    if (!open.empty()) complaints_.push_back("a call without its result at the end: " + open.front());
    // A session is told by its first message, which it encodes once.
    std::string& last = last_[messages.empty() ? nullptr : messages.front()];
    if (!last.empty() && body.compare(0, last.size() - 2, last, 0, last.size() - 2) != 0) {
      complaints_.push_back("the request does not start with the one before it");
    }
    last = body;
    bodies_.push_back(body);
  }

  mutable std::mutex mutex_;
  std::deque<Step> steps_;
  std::vector<std::string> bodies_, complaints_;
  std::map<llm::WireMessage, std::string> last_;
};

inline Completion text(std::string words, FinishReason finish = FinishReason::stop) {
  Completion completion;
  completion.message.role = llm::Role::assistant;
  completion.message.text = std::move(words);
  completion.finish = finish;
  return completion;
}

inline Completion calls(std::vector<llm::ToolCall> list, FinishReason finish = FinishReason::tool_calls) {
  Completion completion = text("", finish);
  completion.message.tool_calls = std::move(list);
  return completion;
}

inline tl::unexpected<ModelError> failed(base::ErrorCode code, bool retryable, std::int64_t retry_after_ms = -1) {
  return tl::unexpected<ModelError>(ModelError{{code, "the server said no", ""}, retryable, retry_after_ms, false, {}});
}

class LambdaTool : public agent::Tool {
 public:
  using Run = std::function<agent::ToolOutcome(const Json&, agent::ToolContext&)>;
  LambdaTool(
      std::string name, bool reads, Run run,
      std::string schema = R"({"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":true})")
      : name_(std::move(name)), reads_(reads), run_(std::move(run)), schema_(std::move(schema)) {}

  llm::ToolSpec spec(const agent::Capabilities&) const override { return {name_, "a tool", schema_}; }
  bool reads_only(const Json&) const override { return reads_; }
  agent::CallView view_call(const Json&, const std::string&) const override {
    agent::CallView view;
    view.title = "view of " + name_;
    view.kind = "read";
    return view;
  }
  agent::CallView view_result(const Json&, const agent::event::ToolResult& result, const std::string&) const override {
    agent::CallView view;
    view.text = result.content;
    return view;
  }
  agent::ToolOutcome run(const Json& arguments, agent::ToolContext& context) override {
    return run_(arguments, context);
  }

 private:
  std::string name_;
  bool reads_;
  Run run_;
  std::string schema_;
};

inline std::vector<agent::ContentBlock> words(std::string said) {
  return {{agent::ContentBlock::Type::text, std::move(said), "", ""}};
}

// An agent with one scripted route. Configure `services` before the first use of agent().
class Bench {
 public:
  Bench() {
    std::filesystem::create_directory(folder / "work");
    services.world = base::real_world();
    services.log = agent::LogOptions{folder / "state/sessions", false};
    services.loop.system = "be good";
    services.loop.retry_delays_ms = {1, 1, 1, 1, 1};
    llm::Route route;
    route.id = "scripted";
    route.model = "model-1";
    route.ready = true;
    route.adapter = model;
    services.routes.push_back(route);
  }
  ~Bench() {
    agent_.reset();
    for (const std::string& complaint : model->complaints()) {
      UNSCOPED_INFO(complaint);
      CHECK(false);
    }
  }

  void tool(std::string name, bool reads, LambdaTool::Run run) {
    services.tools.push_back(std::make_shared<LambdaTool>(std::move(name), reads, std::move(run)));
  }
  void policies(sandbox::Mode mode, agent::ApprovalPolicy approval) {
    services.policy = agent::PolicyDefaults{mode, folder / "work", {}};
    services.approval = std::make_shared<agent::ApprovalService>(approval);
    services.context = {agent::approval_policy_section(services), agent::sandbox_policy_section(services)};
  }

  agent::Agent& agent() {
    if (!agent_) agent_ = std::make_unique<agent::Agent>(services);
    return *agent_;
  }
  void restart() { agent_.reset(); }

  std::shared_ptr<agent::Session> open() {
    auto session = agent().new_session(folder / "work");
    REQUIRE(session.has_value());
    return *session;
  }

  std::future<agent::PromptEnd> start(const std::string& id, const std::string& said) {
    auto promise = std::make_shared<std::promise<agent::PromptEnd>>();
    auto future = promise->get_future();
    auto taken =
        agent().prompt(id, words(said), [promise](agent::PromptEnd end) { promise->set_value(std::move(end)); });
    REQUIRE(taken.has_value());
    return future;
  }
  agent::PromptEnd prompt(const std::string& id, const std::string& said) { return get(start(id, said)); }

  std::vector<agent::Event> events(const agent::Session& session) const {
    auto log = agent::read_log(session.folder() + "/session.jsonl");
    REQUIRE(log.has_value());
    if (log->damage) FAIL(log->damage->message);
    return log->events;
  }
  // "turn/start step/start ..." without what every turn has around it, when `inner`.
  std::string types(const agent::Session& session) const {
    std::string list;
    for (const agent::Event& event : events(session))
      list += (list.empty() ? "" : " ") + std::string(agent::type_name(event.payload));
    return list;
  }
  template <class E>
  std::vector<E> all(const agent::Session& session) const {
    std::vector<E> found;
    for (const agent::Event& event : events(session)) {
      if (const E* one = std::get_if<E>(&event.payload)) found.push_back(*one);
    }
    return found;
  }

  Folder folder;
  std::shared_ptr<ScriptedModel> model = std::make_shared<ScriptedModel>();
  agent::Services services;

 private:
  std::unique_ptr<agent::Agent> agent_;
};

inline std::string fact(const agent::event::ToolResult& result, const char* name) {
  if (!result.facts) return "";
  const Json* value = base::find(*result.facts, name);
  return value == nullptr ? "" : value->is_string() ? value->get<std::string>() : base::dump(*value);
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace test

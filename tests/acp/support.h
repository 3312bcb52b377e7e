// A real agent with a scripted model and lambda tools behind a real acp::Server, and a client that talks to it in
// lines. The client runs the order checker over everything it reads, so every test is an ordering test in every build.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "acp/server.h"
#include "acp/wire_order.h"
#include "agent/agent.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace support {

using base::Json;

// A folder below /var/tmp that is removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  const std::string& path() const { return path_; }
  std::string make(const std::string& name) const;  // a folder in it

 private:
  std::string path_;
};

// One answer of the model. Called on the session's driver thread.
using Answer = std::function<tl::expected<llm::Completion, llm::ModelError>(
    const std::vector<llm::WireMessage>& messages, const llm::StreamSink& sink, std::stop_token stop)>;

Answer says(const std::string& text, const std::string& thought = "");
Answer calls(std::vector<llm::ToolCall> list, const std::string& text = "");
Answer fails(base::ErrorCode code, const std::string& message);
Answer waits_for_stop();  // after streaming "partial"

// Which answer a model gives to its n-th request.
using Plot = std::function<Answer(std::size_t request)>;
Plot in_order(std::vector<Answer> list);  // the last one again and again
Plot cycling(std::vector<Answer> list);

class Model : public llm::LlmAdapter {
 public:
  Plot script;  // requests are counted from 0
  std::string encode(const llm::Message& message) const override;
  std::string head(const llm::RequestHeader& header) const override;
  tl::expected<llm::Completion, llm::ModelError> complete(const llm::RequestHeader& header,
                                                          const std::vector<llm::WireMessage>& messages,
                                                          const llm::StreamSink& sink, std::stop_token stop) override;

 private:
  std::atomic<std::size_t> requests_{0};
};

class LambdaTool : public agent::Tool {
 public:
  using Run = std::function<agent::ToolOutcome(const Json& arguments, agent::ToolContext& context)>;
  LambdaTool(std::string name, bool reads_only, Run run)
      : name_(std::move(name)), reads_only_(reads_only), run_(std::move(run)) {}
  llm::ToolSpec spec(const agent::Capabilities&) const override;
  bool reads_only(const Json&) const override { return reads_only_; }
  agent::CallView view_call(const Json& arguments, const std::string& cwd) const override;
  agent::CallView view_result(const Json& arguments, const agent::event::ToolResult& result,
                              const std::string& cwd) const override;
  agent::ToolOutcome run(const Json& arguments, agent::ToolContext& context) override {
    return run_(arguments, context);
  }

 private:
  const std::string name_;
  const bool reads_only_;
  const Run run_;
};

class Client {
 public:
  explicit Client(std::unique_ptr<base::LineTransport> transport);
  ~Client();
  void send_line(const std::string& line);
  void send(const Json& message);
  std::int64_t request(const std::string& method, Json params = Json::object());
  void notify(const std::string& method, Json params);
  void respond(const Json& request, Json result);
  void respond_error(const Json& request, int code);

  // The first message, read or yet to come, that fits. Fails the test after a long time.
  Json wait(const std::function<bool(const Json&)>& fits, const std::string& what);
  Json answer(std::int64_t id);
  Json call(const std::string& method, Json params = Json::object()) {
    return answer(request(method, std::move(params)));
  }
  Json permission(const std::string& session);  // the open request of that session
  std::vector<Json> all();
  std::vector<Json> updates(const std::string& session);
  void stop_reading() { paused_ = true; }
  void close() { transport_->close(); }

 private:
  void read();

  std::unique_ptr<base::LineTransport> transport_;
  std::atomic<bool> paused_{false};
  acp::WireOrder order_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<Json> messages_ GUARDED_BY(mutex_);
  std::vector<std::string> faults_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
  std::int64_t next_id_ = 1;
  base::Thread reader_;
};

struct Setup {
  std::string state;  // log root
  bool presets = true;
  bool key = true;
  bool approval = true;
  std::int64_t window = 0;
};

// Agent, server and client, in one process. `model` and `services.tools` are set before start().
class Harness {
 public:
  explicit Harness(Setup setup);
  ~Harness();
  void start();
  void initialize();
  std::string new_session(const std::string& cwd);
  void finish();  // closes the client's side and waits for serve()

  std::shared_ptr<Model> model = std::make_shared<Model>();
  agent::Services services;
  std::unique_ptr<agent::Agent> agent;
  std::unique_ptr<acp::Server> server;
  std::unique_ptr<Client> client;

 private:
  const Setup setup_;
  base::Thread serving_;
};

Json text_prompt(const std::string& session, const std::string& text);

}  // namespace support

#include "support.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "acp/bounds.h"

namespace support {

Folder::Folder() {
  std::string pattern = "/var/tmp/acp-test-XXXXXX";
  if (!::mkdtemp(pattern.data())) std::abort();
  path_ = std::filesystem::canonical(pattern).string();
}
Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}
std::string Folder::make(const std::string& name) const {
  const std::string path = path_ + "/" + name;
  std::filesystem::create_directories(path);
  return path;
}

Answer says(const std::string& text, const std::string& thought) {
  return [=](const auto&, const llm::StreamSink& sink, std::stop_token) {
    if (!thought.empty() && sink.on_reasoning) sink.on_reasoning(thought);
    for (std::size_t at = 0; at < text.size(); at += 5)
      if (sink.on_text) sink.on_text(std::string_view(text).substr(at, 5));
    llm::Completion completion;
    completion.message.role = llm::Role::assistant;
    completion.message.text = text;
    completion.message.reasoning = thought;
    completion.usage = llm::Usage{100, 10, 0, 0};
    return tl::expected<llm::Completion, llm::ModelError>(completion);
  };
}

Answer calls(std::vector<llm::ToolCall> list, const std::string& text) {
  return [=](const auto&, const llm::StreamSink& sink, std::stop_token) {
    if (!text.empty() && sink.on_text) sink.on_text(text);
    llm::Completion completion;
    completion.message.role = llm::Role::assistant;
    completion.message.text = text;
    completion.message.tool_calls = list;
    completion.finish = llm::FinishReason::tool_calls;
    return tl::expected<llm::Completion, llm::ModelError>(completion);
  };
}

Answer fails(base::ErrorCode code, const std::string& message) {
  return [=](const auto&, const llm::StreamSink&, std::stop_token) -> tl::expected<llm::Completion, llm::ModelError> {
    llm::ModelError error;
    error.error = {code, message, ""};
    return tl::make_unexpected(error);
  };
}

Answer waits_for_stop() {
  return [](const auto&, const llm::StreamSink& sink,
            std::stop_token stop) -> tl::expected<llm::Completion, llm::ModelError> {
    if (sink.on_text) sink.on_text("partial");
    base::Mutex mutex;
    base::CondVar changed;
    const std::stop_callback wake(stop, [&] {
      base::Lock lock(mutex);
      changed.notify_all();
    });
    base::Lock lock(mutex);
    while (!stop.stop_requested()) changed.wait(mutex);
    llm::ModelError error;
    error.error = {base::ErrorCode::cancelled, "cancelled", ""};
    error.anything_streamed = true;
    return tl::make_unexpected(error);
  };
}

Plot in_order(std::vector<Answer> list) {
  return [list = std::move(list)](std::size_t request) { return list[std::min(request, list.size() - 1)]; };
}

Plot cycling(std::vector<Answer> list) {
  return [list = std::move(list)](std::size_t request) { return list[request % list.size()]; };
}

std::string Model::encode(const llm::Message& message) const { return base::dump(Json{{"text", message.text}}); }
std::string Model::head(const llm::RequestHeader&) const { return R"({"messages":[)"; }
tl::expected<llm::Completion, llm::ModelError> Model::complete(const llm::RequestHeader&,
                                                               const std::vector<llm::WireMessage>& messages,
                                                               const llm::StreamSink& sink, std::stop_token stop) {
  return script(requests_++)(messages, sink, std::move(stop));
}

llm::ToolSpec LambdaTool::spec(const agent::Capabilities&) const {
  return {name_, "a tool of the tests", R"({"type":"object","properties":{}})"};
}
agent::CallView LambdaTool::view_call(const Json& arguments, const std::string& cwd) const {
  agent::CallView view;
  view.title = name_ + " " + base::get_string(arguments, "what").value_or("");
  view.kind = reads_only_ ? "read" : "execute";
  view.locations = {{cwd + "/file", 1}};
  return view;
}
agent::CallView LambdaTool::view_result(const Json& arguments, const agent::event::ToolResult& result,
                                        const std::string& cwd) const {
  agent::CallView view = view_call(arguments, cwd);
  view.text = result.content;
  view.diffs = {{cwd + "/file", std::nullopt, result.content}};
  view.raw_output = base::share(Json{{"bytes", result.content.size()}});
  return view;
}

Client::Client(std::unique_ptr<base::LineTransport> transport)
    : transport_(std::move(transport)), reader_("client", [this] { read(); }) {}

Client::~Client() {
  close();
  reader_.join();
  base::Lock lock(mutex_);
  CHECK(faults_ == std::vector<std::string>{});
}

void Client::read() {
  std::string line;
  while (!paused_ && transport_->read(line) != base::ReadLine::end) {
    auto message = base::parse_json(line);
    base::Lock lock(mutex_);
    if (!message) {
      faults_.push_back("not JSON: " + line.substr(0, 200));
      continue;
    }
    if (line.size() > acp::max_line_out) faults_.push_back("a line of " + std::to_string(line.size()) + " bytes");
    if (auto broken = order_.outgoing(*message)) faults_.push_back(*broken);
    messages_.push_back(std::move(*message));
    changed_.notify_all();
  }
  base::Lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void Client::send_line(const std::string& line) { transport_->write(line, std::chrono::seconds(30)); }
void Client::send(const Json& message) { send_line(base::dump(message)); }

std::int64_t Client::request(const std::string& method, Json params) {
  const std::int64_t id = next_id_++;
  order_.incoming(id, method, params);
  send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
  return id;
}
void Client::notify(const std::string& method, Json params) {
  send({{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
}
void Client::respond(const Json& request, Json result) {
  send({{"jsonrpc", "2.0"}, {"id", request["id"]}, {"result", std::move(result)}});
}
void Client::respond_error(const Json& request, int code) {
  send({{"jsonrpc", "2.0"}, {"id", request["id"]}, {"error", {{"code", code}, {"message", "no"}}}});
}

Json Client::wait(const std::function<bool(const Json&)>& fits, const std::string& what) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  base::Lock lock(mutex_);
  for (std::size_t seen = 0;;) {
    for (; seen < messages_.size(); ++seen)
      if (fits(messages_[seen])) return messages_[seen];
    if (ended_ || !changed_.wait_until(mutex_, deadline)) break;
  }
  FAIL("did not get " << what);
  return {};
}

Json Client::answer(std::int64_t id) {
  return wait([id](const Json& m) { return !m.contains("method") && m.contains("id") && m["id"] == id; },
              "the answer to request " + std::to_string(id));
}

Json Client::permission(const std::string& session) {
  return wait(
      [&](const Json& m) {
        return m.contains("method") && m["method"] == "session/request_permission" &&
               m["params"]["sessionId"] == session;
      },
      "a permission request");
}

std::vector<Json> Client::all() {
  base::Lock lock(mutex_);
  return messages_;
}

std::vector<Json> Client::updates(const std::string& session) {
  std::vector<Json> list;
  for (const auto& message : all())
    if (message.contains("method") && message["method"] == "session/update" &&
        message["params"]["sessionId"] == session)
      list.push_back(message["params"]["update"]);
  return list;
}

Harness::Harness(Setup setup) : setup_(std::move(setup)) {
  llm::Route route;
  route.id = "scripted";
  route.protocol = "openai-completions";
  route.model = "test";
  route.models = {"test"};
  route.context_window = setup_.window;
  route.ready = setup_.key;
  route.missing = setup_.key ? "" : "set OPENAI_API_KEY";
  route.adapter = model;
  services.routes.push_back(route);
  services.policy = agent::PolicyDefaults{sandbox::Mode::workspace_write, "", {}};
  if (setup_.approval) services.approval = std::make_shared<agent::ApprovalService>(agent::ApprovalPolicy::ask);
  services.presets = {{"read-only", sandbox::Mode::read_only, agent::ApprovalPolicy::ask},
                      {"workspace-write", sandbox::Mode::workspace_write, agent::ApprovalPolicy::ask},
                      {"danger-full-access", sandbox::Mode::danger_full_access, agent::ApprovalPolicy::never}};
  services.log = agent::LogOptions{setup_.state + "/sessions", false};
  services.world = base::real_world();
  services.host = sandbox::read_host(setup_.state);
  services.loop.retry_delays_ms = {1, 1};
}

void Harness::start() {
  auto [ours, theirs] = base::memory_transport_pair();
  agent = std::make_unique<agent::Agent>(services);
  server = std::make_unique<acp::Server>(*agent, std::move(theirs), acp::ServerOptions{"1.2.3", setup_.presets});
  client = std::make_unique<Client>(std::move(ours));
  serving_ = base::Thread("serve", [this] { server->serve(); });
}

void Harness::initialize() {
  const Json answer = client->call("initialize", {{"protocolVersion", 1}});
  REQUIRE(answer.contains("result"));
}

std::string Harness::new_session(const std::string& cwd) {
  const Json answer = client->call("session/new", {{"cwd", cwd}, {"mcpServers", Json::array()}});
  INFO(answer.dump());
  REQUIRE(answer.contains("result"));
  return answer["result"]["sessionId"];
}

void Harness::finish() {
  if (client) client->close();
  serving_.join();
}

Harness::~Harness() {
  finish();
  client.reset();
  server.reset();
  agent.reset();
}

Json text_prompt(const std::string& session, const std::string& text) {
  return {{"sessionId", session}, {"prompt", Json::array({{{"type", "text"}, {"text", text}}})}};
}

}  // namespace support

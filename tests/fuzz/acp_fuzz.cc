// The whole ACP server, a real agent behind it, against hostile lines: whatever comes, every line out is valid JSON-RPC
// of bounded size in the promised order, and the server ends with its input. In the lines "$S" stands for the newest
// session id and "$W" for an existing folder. The first byte chooses how permission requests are answered.
#include <stdlib.h>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "acp/bounds.h"
#include "acp/server.h"
#include "acp/wire_order.h"
#include "agent/agent.h"
#include "base/mutex.h"
#include "base/text.h"

namespace {

using base::Json;

void require(bool fact, const std::string& what) {
  if (fact) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

// One folder for the process; the sessions of each input are removed with it.
const std::string& folder() {
  static const std::string path = [] {
    std::string pattern = "/var/tmp/acp-fuzz-XXXXXX";
    require(::mkdtemp(pattern.data()) != nullptr, "no folder");
    return std::filesystem::canonical(pattern).string();
  }();
  return path;
}

class Script final : public base::LineTransport {
 public:
  Script(std::string_view text, int mood) : text_(text), mood_(mood) {}

  base::ReadLine read(std::string& line) override {
    base::Lock lock(mutex_);
    if (stopped_) return base::ReadLine::end;
    if (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      line = text_.substr(0, end);
      text_ = end == std::string_view::npos ? std::string_view() : text_.substr(end + 1);
      replace_all(line, "$S", session_);
      replace_all(line, "$W", folder());
      if (line.size() > 65536) return base::ReadLine::too_long;
      note(line);
      return base::ReadLine::line;
    }
    // Turns get a moment to do something; then the input ends, whatever they do.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (replies_.empty() && !stopped_ && answers_ < requests_)
      if (!changed_.wait_until(mutex_, deadline)) break;
    if (replies_.empty()) return base::ReadLine::end;
    line = std::move(replies_.front());
    replies_.pop_front();
    return base::ReadLine::line;
  }

  bool write(std::string_view line, std::chrono::milliseconds) override {
    require(base::valid_utf8(line) && line.find('\n') == std::string_view::npos, "a line that is not clean");
    require(line.size() <= acp::max_line_out, "a line that is too long");
    const auto message = base::parse_json(line);
    require(message && message->is_object(), "a line that is not JSON");
    base::Lock lock(mutex_);
    const auto broken = order_.outgoing(*message);
    require(!broken, broken.value_or(""));
    const auto method = base::get_string(*message, "method");
    if (!method) {
      ++answers_;
      if (const Json* result = base::find(*message, "result"))
        if (auto id = base::get_string(*result, "sessionId")) session_ = *id;
    } else if (*method == "session/request_permission") {
      reply(*message);
    }
    changed_.notify_all();
    return true;
  }

  void stop_reading() override { close(); }
  void close() override {
    base::Lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  // What the peer will take for a request; taking too much for one only makes the checker more patient.
  void note(const std::string& line) REQUIRES(mutex_) {
    const auto message = base::parse_json(line);
    if (!message || !message->is_object()) return;
    const auto method = base::get_string(*message, "method");
    const Json* id = base::find(*message, "id");
    if (!method || !id) return;
    const Json* params = base::find(*message, "params");
    order_.incoming(*id, *method, params ? *params : Json::object());
    ++requests_;
  }

  void reply(const Json& request) REQUIRES(mutex_) {
    if (mood_ == 0) return;
    Json answer{{"jsonrpc", "2.0"}, {"id", request["id"]}};
    const char* option = mood_ == 1 ? "allow-once" : "reject-once";
    if (mood_ == 3)
      answer["result"] = Json{{"outcome", 5}};
    else
      answer["result"] = Json{{"outcome", {{"outcome", "selected"}, {"optionId", option}}}};
    replies_.push_back(base::dump(answer));
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  std::string_view text_ GUARDED_BY(mutex_);
  const int mood_;
  std::deque<std::string> replies_ GUARDED_BY(mutex_);
  acp::WireOrder order_;
  std::string session_ GUARDED_BY(mutex_) = "none";
  int requests_ GUARDED_BY(mutex_) = 0;
  int answers_ GUARDED_BY(mutex_) = 0;
  bool stopped_ GUARDED_BY(mutex_) = false;
};

// Calls the tool for a question of the user, and speaks when it has the result.
class Model final : public llm::LlmAdapter {
 public:
  std::string encode(const llm::Message& message) const override { return message.role == llm::Role::tool ? "1" : "0"; }
  std::string head(const llm::RequestHeader&) const override { return "{\"messages\":["; }
  tl::expected<llm::Completion, llm::ModelError> complete(const llm::RequestHeader&,
                                                          const std::vector<llm::WireMessage>& messages,
                                                          const llm::StreamSink& sink, std::stop_token) override {
    llm::Completion completion;
    completion.message.role = llm::Role::assistant;
    completion.message.text = "words";
    sink.on_reasoning("thought");
    sink.on_text("wor");
    if (*messages.back() == "0") completion.message.tool_calls = {{"c", "ask", "{\"x\":1}"}};
    return completion;
  }
};

class Ask final : public agent::Tool {
 public:
  explicit Ask(agent::ApprovalService& approval) : approval_(approval) {}
  llm::ToolSpec spec(const agent::Capabilities&) const override { return {"ask", "asks", R"({"type":"object"})"}; }
  bool reads_only(const Json&) const override { return false; }
  agent::CallView view_call(const Json&, const std::string&) const override {
    agent::CallView view;
    view.title = "Ask";
    view.kind = "other";
    return view;
  }
  agent::CallView view_result(const Json& arguments, const agent::event::ToolResult& result,
                              const std::string& cwd) const override {
    agent::CallView view = view_call(arguments, cwd);
    view.text = result.content;
    return view;
  }
  agent::ToolOutcome run(const Json& arguments, agent::ToolContext& context) override {
    const auto outcome = approval_.ask(
        context.session, {"ask", context.call_id, base::share(arguments), "because", false}, context.stop);
    return {std::string(agent::name(outcome)), false, nullptr};
  }

 private:
  agent::ApprovalService& approval_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  agent::Services services;
  llm::Route route;
  route.id = "scripted";
  route.ready = true;
  route.context_window = 1000;
  route.adapter = std::make_shared<Model>();
  services.routes.push_back(route);
  services.approval = std::make_shared<agent::ApprovalService>(agent::ApprovalPolicy::ask);
  services.presets = {{"read-only", sandbox::Mode::read_only, agent::ApprovalPolicy::ask},
                      {"workspace-write", sandbox::Mode::workspace_write, agent::ApprovalPolicy::ask}};
  services.policy = agent::PolicyDefaults{sandbox::Mode::read_only, "", {}};
  services.tools.push_back(std::make_shared<Ask>(*services.approval));
  const std::string logs = folder() + "/sessions";
  services.log = agent::LogOptions{logs, false};
  services.world = base::real_world();
  {
    agent::Agent agent(services);
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    acp::Server server(agent, std::make_unique<Script>(text, data[0] % 4), {"0", true});
    server.serve();
  }
  std::error_code ignored;
  std::filesystem::remove_all(logs, ignored);
  return 0;
}

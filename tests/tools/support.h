// A session with an open step, and a way to run tools in it.
#pragma once

#include <nlohmann/json.hpp>

#include "agent/approval.h"
#include "agent/services.h"
#include "agent/tool.h"
#include "tests/sandbox/support.h"
#include "tools/bash.h"
#include "tools/file_tools.h"

namespace test {

using base::Json;

class ToolBench {
 public:
  explicit ToolBench(sandbox::Mode mode_now = sandbox::Mode::danger_full_access) : mode(mode_now) {
    std::filesystem::create_directory(cwd);
    open_session();
  }

  agent::ToolOutcome run(agent::Tool& tool, const Json& arguments) {
    const std::string name = tool.spec({}).name;
    const std::string id = "call-" + std::to_string(++calls_);
    llm::Message message;
    message.role = llm::Role::assistant;
    message.tool_calls = {{id, name, base::dump(arguments)}};
    agent::event::AssistantMessage answer;
    answer.message_id = id;
    answer.message = message;
    append(agent::event::StepStart{1, ++steps_});
    append(std::move(answer));
    append(agent::event::ToolCall{id, name, base::dump(arguments)});
    sandbox::Policy policy;
    policy.mode = mode;
    policy.workspace_root = cwd;
    policy.session_id = session->id();
    agent::ToolContext context{*session, id, policy, stop.get_token()};
    agent::ToolOutcome outcome = tool.run(arguments, context);
    agent::event::ToolResult result{id, outcome.content, outcome.is_error, outcome.facts};
    append(result);
    append(agent::event::StepEnd{1, steps_});
    view = tool.view_result(arguments, result, cwd);
    return outcome;
  }

  void open_session() {
    agent::LogOptions options;
    options.root = folder / "sessions";
    auto made = agent::Session::create(options, cwd, base::real_world());
    REQUIRE(made.has_value());
    session = *made;
    calls_ = steps_ = 0;
    append(agent::event::TurnStart{1});
  }

  Folder folder;
  std::string cwd = folder / "ws";
  sandbox::Mode mode;
  std::stop_source stop;
  std::shared_ptr<agent::Session> session;
  agent::CallView view;  // of the last result

 private:
  void append(agent::Payload payload) {
    const auto logged = session->append(std::move(payload));
    if (!logged) FAIL(logged.error().message);
  }
  int calls_ = 0, steps_ = 0;
};

inline std::shared_ptr<agent::ApprovalService> approvals(std::vector<agent::ApprovalRequest>& asked,
                                                         agent::ApprovalOutcome answer) {
  auto service = std::make_shared<agent::ApprovalService>(agent::ApprovalPolicy::ask);
  service->add_answerer([&asked, answer](agent::Session&, const agent::ApprovalRequest& request, std::stop_token) {
    asked.push_back(request);
    return std::optional(answer);
  });
  return service;
}

inline bool fact(const agent::ToolOutcome& outcome, const char* name) {
  return outcome.facts && base::get_bool(*outcome.facts, name).value_or(false);
}
inline std::string text_fact(const agent::ToolOutcome& outcome, const char* name) {
  return outcome.facts ? base::get_string(*outcome.facts, name).value_or("") : "";
}
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace test

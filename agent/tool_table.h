// The tools of a composition with what was sent about them: built once, const, shared by every session. Any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/schema_check.h"
#include "agent/services.h"
#include "agent/tool.h"

namespace agent {

class ToolTable {
 public:
  // A tool whose schema cannot be read is left out and logged as an error; so is a second tool of one name.
  ToolTable(const std::vector<std::shared_ptr<Tool>>& tools, const Capabilities& capabilities);

  const std::vector<llm::ToolSpec>& specs() const { return specs_; }

  // A call that may be run, or the text that tells the model everything that is wrong with it.
  struct Prepared {
    std::shared_ptr<Tool> tool;  // null: refused
    base::JsonPtr arguments;
    bool reads_only = true;
    std::string refusal;
  };
  Prepared prepare(const std::string& name, const std::string& arguments) const;

  // How a client shows a call; a call that could not be run is shown by its name and text.
  CallView view(const event::ToolCall& call, const std::string& cwd) const;
  CallView view(const event::ToolCall& call, const event::ToolResult& result, const std::string& cwd) const;

 private:
  struct Entry {
    std::shared_ptr<Tool> tool;
    SchemaCheck check;
  };
  bool confines_;  // anything in this composition
  std::vector<llm::ToolSpec> specs_;
  std::vector<Entry> entries_;  // as specs_
};

}  // namespace agent

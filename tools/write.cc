#include <nlohmann/json.hpp>

#include "assets.h"
#include "base/text.h"
#include "tools/file_tools.h"
#include "tools/tool_text.h"

namespace tools {
namespace {

using base::Json;

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

class WriteTool : public agent::Tool {
 public:
  explicit WriteTool(std::shared_ptr<FileTools> tools) : tools_(std::move(tools)) {}

  llm::ToolSpec spec(const agent::Capabilities& capabilities) const override {
    std::string description(base::trim(assets::tool_write_md));
    if (capabilities.fs_confines) description += "\n" + std::string(base::trim(assets::tool_fs_sandbox_md));
    return {"write", std::move(description),
            object_schema(
                R"("file_path":{"type":"string","description":"Absolute, or relative to the working directory."},)"
                R"("content":{"type":"string","description":"The whole new content."})",
                R"("file_path","content")", capabilities.fs_confines)};
  }
  bool reads_only(const Json&) const override { return false; }
  agent::CallView view_call(const Json& arguments, const std::string& cwd) const override {
    return change_call_view("Write", arguments, cwd);
  }
  agent::CallView view_result(const Json& arguments, const agent::event::ToolResult& result,
                              const std::string& cwd) const override {
    return change_result_view("Write", arguments, result, cwd);
  }

  agent::ToolOutcome run(const Json& arguments, agent::ToolContext& context) override {
    const std::string content = base::get_string(arguments, "content").value_or("");
    return change_file(*tools_, "write", arguments, context, [&](const std::string& path) -> base::Result<Plan> {
      const auto current = current_file(*tools_, context.session.id(), path);
      if (!current) return tl::unexpected(current.error());
      Plan plan;
      plan.new_text = content;
      if (!*current) {
        plan.bytes = content;
        plan.summary = "created " + path;
        return plan;
      }
      const TextFile& old = (*current)->text;
      // Encoding, mark and line ends are the file's, not the model's.
      const bool marked = old.encoding != Encoding::utf8 && old.encoding != Encoding::bytes;
      if (marked && plan.new_text.starts_with(byte_order_mark)) plan.new_text.erase(0, byte_order_mark.size());
      if (uniformly_crlf(old.text) && plan.new_text.find("\r\n") == std::string::npos)
        plan.new_text = lf_to_crlf(plan.new_text);
      plan.bytes = encode_file(old.encoding, plan.new_text);
      plan.expected_hash = (*current)->content.hash;
      plan.old_text = old.text;
      plan.summary = "wrote " + (*current)->content.canonical_path;
      return plan;
    });
  }

 private:
  std::shared_ptr<FileTools> tools_;
};

}  // namespace

std::shared_ptr<agent::Tool> make_write_tool(std::shared_ptr<FileTools> tools) {
  return std::make_shared<WriteTool>(std::move(tools));
}

}  // namespace tools

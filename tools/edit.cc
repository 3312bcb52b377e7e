#include <nlohmann/json.hpp>

#include "assets.h"
#include "base/text.h"
#include "tools/file_tools.h"
#include "tools/line_edit.h"
#include "tools/tool_text.h"

namespace tools {
namespace {

using base::Json;

bool ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

class EditTool : public agent::Tool {
 public:
  explicit EditTool(std::shared_ptr<FileTools> tools) : tools_(std::move(tools)) {}

  llm::ToolSpec spec(const agent::Capabilities& capabilities) const override {
    std::string description(base::trim(assets::tool_edit_md));
    if (capabilities.fs_confines) description += "\n" + std::string(base::trim(assets::tool_fs_sandbox_md));
    return {"edit", std::move(description),
            object_schema(
                R"("file_path":{"type":"string","description":"Absolute, or relative to the working directory."},)"
                R"("old_string":{"type":"string","description":"Text to replace, exactly as it is in the file."},)"
                R"("new_string":{"type":"string"},)"
                R"("replace_all":{"type":"boolean","description":"Replace every occurrence. Default false."})",
                R"("file_path","old_string","new_string")", capabilities.fs_confines)};
  }
  bool reads_only(const Json&) const override { return false; }
  agent::CallView view_call(const Json& arguments, const std::string& cwd) const override {
    return change_call_view("Edit", arguments, cwd);
  }
  agent::CallView view_result(const Json& arguments, const agent::event::ToolResult& result,
                              const std::string& cwd) const override {
    return change_result_view("Edit", arguments, result, cwd);
  }

  agent::ToolOutcome run(const Json& arguments, agent::ToolContext& context) override {
    return change_file(*tools_, "edit", arguments, context,
                       [&](const std::string& path) { return make_plan(arguments, context.session.id(), path); });
  }

 private:
  base::Result<Plan> make_plan(const Json& arguments, const std::string& session_id, const std::string& path) {
    const std::string from = base::get_string(arguments, "old_string").value_or("");
    const std::string to = base::get_string(arguments, "new_string").value_or("");
    auto current = current_file(*tools_, session_id, path);
    if (!current) return tl::unexpected(current.error());
    if (!*current) return base::fail(base::ErrorCode::not_found, path + " does not exist; create it with write");
    const TextFile& file = (*current)->text;
    if (file.encoding == Encoding::bytes && !(ascii(from) && ascii(to)))
      return base::fail(
          base::ErrorCode::invalid_argument,
          path +
              " is not UTF-8, so only ASCII text can be replaced in it without damage; use ASCII in old_string "
              "and new_string, or change it with bash (iconv, sed)");
    auto edited = replace_text(file.text, from, to, base::get_bool(arguments, "replace_all").value_or(false));
    if (!edited) return tl::unexpected(edited.error());
    Plan plan;
    plan.bytes = encode_file(file.encoding, edited->text);
    plan.expected_hash = (*current)->content.hash;
    plan.old_text = file.text;
    plan.new_text = std::move(edited->text);
    plan.summary = "edited " + (*current)->content.canonical_path + " (" + std::to_string(edited->count) +
                   (edited->count == 1 ? " replacement, line " : " replacements, first at line ") +
                   std::to_string(edited->first_line) + ")";
    return plan;
  }

  std::shared_ptr<FileTools> tools_;
};

}  // namespace

std::shared_ptr<agent::Tool> make_edit_tool(std::shared_ptr<FileTools> tools) {
  return std::make_shared<EditTool>(std::move(tools));
}

}  // namespace tools

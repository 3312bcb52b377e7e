#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "assets.h"
#include "base/text.h"
#include "tools/file_tools.h"
#include "tools/tool_text.h"

namespace tools {
namespace {

using base::Json;

constexpr std::int64_t line_count_limit = 2000;
constexpr std::size_t line_length_limit = 2000;  // characters
constexpr std::size_t page_limit = 50 * 1024;    // bytes

// At most line_length_limit characters.
std::string cut_line(std::string_view line) {
  std::size_t characters = 0, at = 0;
  for (; at < line.size(); ++at) {
    if ((static_cast<unsigned char>(line[at]) & 0xC0) == 0x80) continue;
    if (characters++ == line_length_limit) break;
  }
  if (at == line.size()) return std::string(line);
  return std::string(line.substr(0, at)) + "… [line cut, " + std::to_string(line.size()) + " bytes]";
}

struct Page {
  std::string text;
  std::int64_t first = 0, last = 0, lines = 0;  // 1-based; last < first: nothing
};

Page make_page(std::string_view text, std::int64_t offset, std::int64_t limit) {
  Page page;
  page.first = offset;
  page.last = offset - 1;
  bool full = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    ++page.lines;
    if (full || page.lines < offset) continue;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string shown = std::to_string(page.lines) + "\t" + cut_line(line) + "\n";
    full = page.lines >= offset + limit || (page.last >= offset && page.text.size() + shown.size() > page_limit);
    if (full) continue;
    page.text += shown;
    page.last = page.lines;
  }
  return page;
}

std::string footer(const Page& page, const TextFile& file) {
  std::string text;
  if (page.last < page.lines) {
    text = "[lines " + std::to_string(page.first) + "-" + std::to_string(page.last) + " of " +
           std::to_string(page.lines) + "; go on with offset " + std::to_string(page.last + 1) + "]";
  }
  std::string about;
  if (file.encoding != Encoding::utf8) about = encoding_name(file.encoding);
  if (uniformly_crlf(file.text)) about += std::string(about.empty() ? "" : ", ") + "CRLF line ends";
  if (!about.empty()) text += (text.empty() ? "[" : "\n[") + about + "]";
  return text;
}

class ReadTool : public agent::Tool {
 public:
  explicit ReadTool(std::shared_ptr<FileTools> tools) : tools_(std::move(tools)) {}

  llm::ToolSpec spec(const agent::Capabilities&) const override {
    return {"read", std::string(base::trim(assets::tool_read_md)),
            object_schema(
                R"("file_path":{"type":"string","description":"Absolute, or relative to the working directory."},)"
                R"("offset":{"type":"integer","minimum":1,"description":"First line, 1-based."},)"
                R"("limit":{"type":"integer","minimum":1,"description":"Number of lines, at most 2000."})",
                R"("file_path")", false)};
  }
  bool reads_only(const Json&) const override { return true; }

  agent::CallView view_call(const Json& arguments, const std::string& cwd) const override {
    agent::CallView view;
    view.title = "Read";
    view.kind = "read";
    const auto path = absolute_path(base::get_string(arguments, "file_path").value_or(""), cwd);
    if (!path) return view;
    view.title += " " + shown_path(*path, cwd);
    const auto offset = base::get_int(arguments, "offset");
    const bool usable = offset && *offset >= 1 && *offset <= INT32_MAX;
    view.locations.push_back(
        {base::to_utf8(*path), usable ? std::optional<int>(static_cast<int>(*offset)) : std::nullopt});
    return view;
  }
  agent::CallView view_result(const Json& arguments, const agent::event::ToolResult& result,
                              const std::string& cwd) const override {
    agent::CallView view = view_call(arguments, cwd);
    view.text = bounded_text(result.content);
    view.raw_output = result.facts ? result.facts : base::share(Json::object());
    return view;
  }

  agent::ToolOutcome run(const Json& arguments, agent::ToolContext& context) override {
    const auto path = absolute_path(base::get_string(arguments, "file_path").value_or(""), context.session.cwd());
    if (!path) return {error_text(path.error()), true, nullptr};
    const auto content = tools_->fs->read(*path);
    if (!content) return refused(*path, content.error());
    const auto decoded = decode_file(content->bytes);
    if (const auto* binary = std::get_if<BinaryFile>(&decoded))
      return {content->canonical_path + " is a binary file (" + binary->kind + ", " +
                  std::to_string(content->bytes.size()) + " bytes); look into it with bash (file, xxd, strings)",
              true, nullptr};
    const TextFile& file = std::get<TextFile>(decoded);
    const std::int64_t offset = std::max<std::int64_t>(base::get_int(arguments, "offset").value_or(1), 1);
    const std::int64_t limit =
        std::clamp<std::int64_t>(base::get_int(arguments, "limit").value_or(line_count_limit), 1, line_count_limit);
    const Page page = make_page(file.encoding == Encoding::bytes ? base::to_utf8(file.text) : file.text, offset, limit);
    if (offset > 1 && page.last < page.first)
      return {"offset " + std::to_string(offset) + " is behind the end: " + content->canonical_path + " has " +
                  std::to_string(page.lines) + " lines",
              true, nullptr};
    tools_->observations.saw(context.session.id(), content->canonical_path, content->hash);
    std::string text = page.lines == 0 ? "(empty file)\n" : page.text;
    text += footer(page, file);
    if (text.ends_with('\n')) text.pop_back();
    const Json facts = {{"path", content->canonical_path}, {"hash", content->hash}, {"lines", page.lines}};
    return {std::move(text), false, base::share(facts)};
  }

 private:
  static agent::ToolOutcome refused(const std::string& path, const base::Error& error) {
    struct stat status {};
    const bool folder = stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    return {folder ? path + " is a folder; list it with bash (ls -la)" : error_text(error), true, nullptr};
  }

  std::shared_ptr<FileTools> tools_;
};

}  // namespace

std::shared_ptr<agent::Tool> make_read_tool(std::shared_ptr<FileTools> tools) {
  return std::make_shared<ReadTool>(std::move(tools));
}

}  // namespace tools

#include "acp/prompt_content.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "acp/answers.h"
#include "acp/bounds.h"
#include "base/text.h"

namespace acp {
namespace {

using agent::ContentBlock;
using Read = tl::expected<ContentBlock, base::RpcError>;

constexpr std::size_t uri_bytes = 8 * 1024;

Read wrong(const std::string& path, const std::string& text) {
  return tl::unexpected(invalid_params(path + ": " + text));
}

Read read_text(const base::Json& block, const std::string& path) {
  auto text = base::get_string(block, "text");
  if (!text) return wrong(path + ".text", "must be a string");
  return ContentBlock{ContentBlock::Type::text, std::move(*text), "", ""};
}

Read read_link(const base::Json& block, const std::string& path) {
  auto uri = base::get_string(block, "uri");
  if (!uri || uri->empty()) return wrong(path + ".uri", "must be a non-empty string");
  auto name = base::get_string(block, "name");
  if (!name) return wrong(path + ".name", "must be a string");
  return ContentBlock{ContentBlock::Type::resource_link, "", std::move(*uri), std::move(*name)};
}

Read read_resource(const base::Json& block, const std::string& path) {
  const base::Json* resource = base::find(block, "resource");
  if (!resource || !resource->is_object()) return wrong(path + ".resource", "must be an object");
  auto uri = base::get_string(*resource, "uri");
  if (!uri || uri->empty()) return wrong(path + ".resource.uri", "must be a non-empty string");
  if (auto text = base::get_string(*resource, "text"))
    return ContentBlock{ContentBlock::Type::resource, std::move(*text), std::move(*uri), ""};
  const auto blob = base::get_string(*resource, "blob");
  if (!blob) return wrong(path + ".resource", "must have a string member text or blob");
  // Base64: four characters for three bytes. The model is told, so that nothing is dropped silently.
  const std::string mime = base::get_string(*resource, "mimeType").value_or("unknown type");
  std::string note = "[binary content, " + base::ellipsize(mime, 100) + ", about " +
                     std::to_string(blob->size() / 4 * 3) + " bytes; not shown]";
  return ContentBlock{ContentBlock::Type::resource, std::move(note), std::move(*uri), ""};
}

Read read_block(const base::Json& block, const std::string& path) {
  if (!block.is_object()) return wrong(path, "must be an object");
  const auto type = base::get_string(block, "type");
  if (!type) return wrong(path + ".type", "must be a string");
  if (*type == "text") return read_text(block, path);
  if (*type == "resource_link") return read_link(block, path);
  if (*type == "resource") return read_resource(block, path);
  if (*type == "image" || *type == "audio")
    return wrong(path, *type + " content is not accepted (promptCapabilities." + *type + " is false)");
  return wrong(path + ".type",
               "unknown content type \"" + base::ellipsize(*type, 60) + "\"; use text, resource_link or resource");
}

bool blank(const ContentBlock& block) {
  return block.type == ContentBlock::Type::text && base::trim(block.text).empty();
}

}  // namespace

tl::expected<std::vector<ContentBlock>, base::RpcError> read_prompt(const base::Json* prompt) {
  if (!prompt || !prompt->is_array())
    return tl::unexpected(invalid_params("prompt: must be an array of content blocks"));
  std::vector<ContentBlock> content;
  content.reserve(prompt->size());
  for (std::size_t i = 0; i < prompt->size(); ++i) {
    auto block = read_block((*prompt)[i], "prompt[" + std::to_string(i) + "]");
    if (!block) return tl::unexpected(std::move(block.error()));
    content.push_back(std::move(*block));
  }
  if (std::all_of(content.begin(), content.end(), blank))
    return tl::unexpected(invalid_params("prompt: is empty; give at least one block that is not blank"));
  return content;
}

void write_blocks(const ContentBlock& block, const std::function<void(base::Json&&)>& emit) {
  switch (block.type) {
    case ContentBlock::Type::text:
      for (const auto piece : split_text(block.text, chunk_bytes))
        emit({{"type", "text"}, {"text", std::string(piece)}});
      return;
    case ContentBlock::Type::resource_link:
      emit({{"type", "resource_link"},
            {"uri", fit_text(block.uri, uri_bytes)},
            {"name", fit_text(block.name, uri_bytes)}});
      return;
    case ContentBlock::Type::resource:
      emit({{"type", "resource"},
            {"resource",
             {{"uri", fit_text(block.uri, uri_bytes)}, {"text", fit_text(block.text, text_content_bytes)}}}});
      return;
  }
}

}  // namespace acp

#include "acp/prompt_content.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using agent::ContentBlock;
using base::Json;

std::string refused(const Json& prompt) {
  const auto content = acp::read_prompt(&prompt);
  if (content) return "";
  CHECK(content.error().code == -32602);
  return content.error().message;
}

std::vector<Json> blocks(const ContentBlock& block) {
  std::vector<Json> list;
  acp::write_blocks(block, [&](Json&& content) { list.push_back(std::move(content)); });
  return list;
}

TEST_CASE("Text, links and embedded text are taken") {
  const Json prompt{{{"type", "text"}, {"text", "look at"}, {"annotations", {{"priority", 1}}}},
                    {{"type", "resource_link"}, {"uri", "file:///w/a.txt"}, {"name", "a.txt"}, {"size", 3}},
                    {{"type", "resource"}, {"resource", {{"uri", "file:///w/b.txt"}, {"text", "b"}}}}};
  const auto content = acp::read_prompt(&prompt);
  REQUIRE(content);
  REQUIRE(content->size() == 3);
  CHECK((*content)[0].type == ContentBlock::Type::text);
  CHECK((*content)[0].text == "look at");
  CHECK((*content)[1].type == ContentBlock::Type::resource_link);
  CHECK((*content)[1].uri == "file:///w/a.txt");
  CHECK((*content)[1].name == "a.txt");
  CHECK((*content)[2].type == ContentBlock::Type::resource);
  CHECK((*content)[2].text == "b");

  // And back, as a replay shows them.
  CHECK(blocks((*content)[0]).at(0) == Json{{"type", "text"}, {"text", "look at"}});
  CHECK(blocks((*content)[1]).at(0) == Json{{"type", "resource_link"}, {"uri", "file:///w/a.txt"}, {"name", "a.txt"}});
  CHECK(blocks((*content)[2]).at(0) ==
        Json{{"type", "resource"}, {"resource", {{"uri", "file:///w/b.txt"}, {"text", "b"}}}});
}

TEST_CASE("Of a binary resource the model is told that it is there") {
  const Json prompt{{{"type", "resource"},
                     {"resource", {{"uri", "file:///w/x.bin"}, {"blob", "AAAA"}, {"mimeType", "application/pdf"}}}}};
  const auto content = acp::read_prompt(&prompt);
  REQUIRE(content);
  CHECK((*content)[0].text == "[binary content, application/pdf, about 3 bytes; not shown]");
}

TEST_CASE("What is not advertised or not well formed is refused by its path") {
  const Json text{{"type", "text"}, {"text", "x"}};
  CHECK(refused({text, {{"type", "image"}, {"data", "AA=="}, {"mimeType", "image/png"}}}) ==
        "prompt[1]: image content is not accepted (promptCapabilities.image is false)");
  CHECK(refused({{{"type", "audio"}, {"data", ""}, {"mimeType", "a"}}}).find("prompt[0]: audio content") == 0);
  CHECK(refused({text, {{"type", "text"}}}) == "prompt[1].text: must be a string");
  CHECK(refused({text, {{"type", "text"}, {"text", 5}}}) == "prompt[1].text: must be a string");
  CHECK(refused({{{"type", "resource_link"}, {"name", "a"}}}).find("prompt[0].uri") == 0);
  CHECK(refused({{{"type", "resource_link"}, {"uri", "file:///a"}}}).find("prompt[0].name") == 0);
  CHECK(refused({{{"type", "resource"}}}).find("prompt[0].resource") == 0);
  CHECK(refused({{{"type", "resource"}, {"resource", {{"text", "a"}}}}}).find("prompt[0].resource.uri") == 0);
  CHECK(refused({{{"type", "resource"}, {"resource", {{"uri", "u"}}}}}).find("prompt[0].resource:") == 0);
  CHECK(refused({{{"type", "video"}}}).find("prompt[0].type: unknown content type \"video\"") == 0);
  CHECK(refused(Json::array({"text"})) == "prompt[0]: must be an object");
  CHECK(refused(Json::array({Json::object()})) == "prompt[0].type: must be a string");
  CHECK(refused(Json::array()).find("prompt: is empty") == 0);
  CHECK(refused({{{"type", "text"}, {"text", " \n"}}}).find("prompt: is empty") == 0);
  CHECK(refused("hello").find("prompt: must be an array") == 0);
  CHECK(!acp::read_prompt(nullptr));
}

TEST_CASE("Long text is written in pieces") {
  const std::string text(100'000, 'x');
  std::string joined;
  for (const auto& block : blocks({ContentBlock::Type::text, text, "", ""})) joined += block["text"].get<std::string>();
  CHECK(joined == text);
}

}  // namespace

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/context/context.h"

namespace agent {
namespace {

using base::Json;

ContextTexts texts_of(const event::UserMessage& message) {
  ContextTexts texts;
  const Json* sections = message.source ? base::find(*message.source, "sections") : nullptr;
  if (sections == nullptr || !sections->is_array()) return texts;
  for (const Json& section : *sections) {
    texts.emplace_back(base::get_string(section, "name").value_or(""), base::get_string(section, "text").value_or(""));
  }
  return texts;
}

}  // namespace

ContextTexts compose_context(const Services& services, const Session& session) {
  std::vector<const ContextSection*> sections;
  for (const ContextSection& section : services.context) sections.push_back(&section);
  std::stable_sort(sections.begin(), sections.end(), [](const auto* a, const auto* b) { return a->order < b->order; });
  ContextTexts texts;
  for (const ContextSection* section : sections) {
    std::string text = section->text(session);
    if (!text.empty()) texts.emplace_back(section->name, std::move(text));
  }
  return texts;
}

event::UserMessage context_message(const ContextTexts& sections) {
  std::string text = "This is the current runtime context. It supersedes earlier ones.";
  Json list = Json::array();
  for (const auto& [name, section] : sections) {
    text += "\n\n[" + name + "]\n" + section;
    list.push_back({{"name", name}, {"text", section}});
  }
  Json source{{"kind", "plugin"}, {"plugin", "runtime-context"}, {"form", "snapshot"}, {"sections", std::move(list)}};
  event::UserMessage message;
  message.content.push_back({ContentBlock::Type::text, std::move(text), "", ""});
  message.source = base::share(std::move(source));
  return message;
}

std::optional<event::UserMessage> reconcile_context(const ContextTexts& wanted,
                                                    const std::optional<event::UserMessage>& retained) {
  if (!retained && wanted.empty()) return std::nullopt;
  if (retained && texts_of(*retained) == wanted) return std::nullopt;
  return context_message(wanted);
}

}  // namespace agent

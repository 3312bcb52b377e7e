// The getters of a composition's values: known keys, types, ranges, nearest words. No YAML here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>

#include "base/config_node.h"
#include "base/text.h"

namespace base {

using Node = ConfigReader::Node;
using Kind = Node::Kind;

namespace {

using config::kind_name;
using config::snake_case;

// Edits between two short words: insert, delete, replace.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

const Node::Member* member(const Node& node, std::string_view key) {
  for (const Node::Member& candidate : node.members) {
    if (candidate.key == key || snake_case(candidate.key) == key) return &candidate;
  }
  return nullptr;
}

std::string origin_of(const Node& node) {
  if (node.variable.empty()) return {};
  return " (the value comes from the environment variable " + node.variable + ")";
}

// A string as a getter takes it; a fault text otherwise. A number is taken as the text it is written as.
tl::expected<std::string, std::string> as_string(const Node& node) {
  if (node.is_text() && !(node.kind == Kind::plain && config::is_boolean(to_lower(node.text)))) return node.text;
  return tl::make_unexpected("must be a string, is " + kind_name(node));
}

}  // namespace

namespace config {

std::string cite(std::string_view text) { return "`" + ellipsize(text, 80) + "`"; }

std::string kind_name(const Node& node) {
  switch (node.kind) {
    case Kind::null:
      return "empty";
    case Kind::absent:
      return "absent";
    case Kind::plain:
      return cite(node.text);
    case Kind::quoted:
      return "the string " + cite(node.text);
    case Kind::resolved:
      return node.secret ? "(hidden)" : cite(node.text);
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a map";
  }
  return "something else";
}

std::string snake_case(std::string_view key) {
  std::string snake;
  for (const char c : key) {
    if (c >= 'A' && c <= 'Z') {
      if (!snake.empty() && snake.back() != '_') snake += '_';
      snake += static_cast<char>(c - 'A' + 'a');
    } else {
      snake += c;
    }
  }
  return snake;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string* nearest = nearest_name(word, known);
  return nearest == nullptr ? std::string() : fmt::format("; did you mean `{}`?", *nearest);
}

bool is_boolean(std::string_view text) { return text == "true" || text == "false"; }

}  // namespace config

using config::cite;
using config::suggestion;

const std::string* nearest_name(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > 64) return nullptr;
  const std::string snake = config::snake_case(word);
  std::size_t best = std::min<std::size_t>(3, snake.size() / 2 + 1);
  const std::string* nearest = nullptr;
  for (const std::string& candidate : known) {
    const bool begins = snake.size() >= 3 && candidate.compare(0, snake.size(), snake) == 0;
    const std::size_t edits = begins ? 1 : edit_distance(snake, candidate);
    if (edits < best) {
      best = edits;
      nearest = &candidate;
    }
  }
  return nearest;
}

std::string to_string(const Fault& fault) {
  return fault.line > 0 ? fmt::format("{}:{}: {}", fault.file, fault.line, fault.text)
                        : fmt::format("{}: {}", fault.file, fault.text);
}

ConfigReader::ConfigReader(std::shared_ptr<const Node> node, std::string where, std::vector<Fault>* faults)
    : node_(std::move(node)), where_(std::move(where)), faults_(faults) {}

int ConfigReader::line() const { return node_->line; }

bool ConfigReader::has(std::string_view key) const {
  const auto* found = member(*node_, key);
  return found != nullptr && found->value->kind != Kind::absent;
}

std::string ConfigReader::origin(std::string_view key) const {
  const auto* found = member(*node_, key);
  return found == nullptr ? std::string() : origin_of(*found->value);
}

const ConfigReader::Node* ConfigReader::take(std::string_view key) {
  const auto* found = member(*node_, key);
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
    known_.emplace_back(key);
    for (const auto& other : node_->members) {
      if (&other == found || (other.key != key && snake_case(other.key) != key)) continue;
      report(other.line, fmt::format("duplicate key {}: it is `{}` in another spelling", cite(other.key), key));
    }
  }
  if (found == nullptr || found->value->kind == Kind::absent) return nullptr;
  if (found->value->kind == Kind::null) {
    report(found->line, fmt::format("`{}` has no value; give it one or remove the line", key));
    return nullptr;
  }
  return found->value.get();
}

void ConfigReader::report(int line, std::string text) {
  // What is written at that line is right: whoever reads the fault must look elsewhere.
  for (const auto& given : node_->members)
    if (given.line == line) text += origin_of(*given.value);
  const bool prefix = !where_.empty() && where_ != node_->file;
  faults_->push_back({node_->file, line, prefix ? where_ + ": " + text : std::move(text)});
}

void ConfigReader::fault(std::string_view key, std::string text) {
  const auto* found = member(*node_, key);
  report(found == nullptr ? node_->line : found->line, std::move(text));
}

void ConfigReader::refuse(std::string_view key, std::string text) {
  const auto* found = member(*node_, key);
  refused_.emplace_back(key);
  if (found != nullptr) report(found->line, std::move(text));
}

std::optional<std::string> ConfigReader::optional_string(std::string_view key) {
  const Node* value = take(key);
  if (value == nullptr) return std::nullopt;
  auto text = as_string(*value);
  if (text) return *text;
  report(value->line, fmt::format("`{}` {}", key, text.error()));
  return std::nullopt;
}

std::string ConfigReader::string(std::string_view key, std::string fallback) {
  return optional_string(key).value_or(std::move(fallback));
}

std::string ConfigReader::required_string(std::string_view key) {
  const std::size_t before = faults_->size();
  std::string text = optional_string(key).value_or("");
  if (!text.empty() || faults_->size() != before) return text;
  const auto* found = member(*node_, key);
  if (found == nullptr || found->value->kind != Kind::absent) {
    fault(key, fmt::format("`{}` is required and must not be empty", key));
  } else if (!found->value->text.empty()) {
    fault(key,
          fmt::format("`{}` is required, and the environment variable {} is not set", key, cite(found->value->text)));
  }  // else the value itself is a fault already
  return text;
}

std::int64_t ConfigReader::integer(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max) {
  const Node* value = take(key);
  if (value == nullptr) return fallback;
  const std::string& text = value->text;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = (value->kind == Kind::plain || value->kind == Kind::resolved) && !text.empty() &&
                     end == text.data() + text.size() && error != std::errc::invalid_argument;
  if (!whole) {
    report(value->line, fmt::format("`{}` must be a whole number, is {}", key, kind_name(*value)));
    return fallback;
  }
  if (error == std::errc::result_out_of_range || number < min || number > max) {
    report(value->line, fmt::format("`{}` must be between {} and {}, is {}", key, min, max, kind_name(*value)));
    return fallback;
  }
  return number;
}

bool ConfigReader::boolean(std::string_view key, bool fallback) {
  const Node* value = take(key);
  if (value == nullptr) return fallback;
  const std::string text = to_lower(value->text);
  if (value->kind == Kind::plain || value->kind == Kind::resolved) {
    if (text == "true") return true;
    if (text == "false") return false;
    if (value->kind == Kind::resolved && text == "1") return true;
    if (value->kind == Kind::resolved && text == "0") return false;
  }
  report(value->line, fmt::format("`{}` must be true or false, is {}", key, kind_name(*value)));
  return fallback;
}

std::string ConfigReader::choice(std::string_view key, std::string fallback, const std::vector<std::string>& choices) {
  const Node* value = take(key);
  if (value == nullptr) return fallback;
  if (value->is_text() && std::find(choices.begin(), choices.end(), value->text) != choices.end()) return value->text;
  report(value->line, fmt::format("`{}` must be one of {}, is {}", key, fmt::join(choices, ", "), kind_name(*value)));
  return fallback;
}

std::vector<std::string> ConfigReader::strings(std::string_view key, std::vector<std::string> fallback) {
  const Node* value = take(key);
  if (value == nullptr) return fallback;
  if (value->kind != Kind::list) {
    report(value->line, fmt::format("`{}` must be a list of strings, is {}", key, kind_name(*value)));
    return fallback;
  }
  std::vector<std::string> texts;
  bool sound = true;
  for (const auto& item : value->items) {
    if (item->kind == Kind::absent) continue;
    if (auto text = as_string(*item)) {
      texts.push_back(std::move(*text));
    } else {
      sound = false;
      report(item->line, fmt::format("an item of `{}` {}", key, text.error()));
    }
  }
  return sound ? texts : fallback;
}

std::vector<std::pair<std::string, std::string>> ConfigReader::string_map(std::string_view key) {
  std::vector<std::pair<std::string, std::string>> texts;
  const Node* value = take(key);
  if (value == nullptr) return texts;
  if (value->kind != Kind::map) {
    report(value->line, fmt::format("`{}` must be a map of strings, is {}", key, kind_name(*value)));
    return texts;
  }
  for (const auto& [name, line, node] : value->members) {
    if (node->kind == Kind::absent) continue;
    if (auto text = as_string(*node)) {
      texts.emplace_back(name, std::move(*text));
    } else {
      report(line, fmt::format("{} in `{}` {}", cite(name), key, text.error()));
    }
  }
  return texts;
}

std::vector<ConfigReader> ConfigReader::maps(std::string_view key) {
  std::vector<ConfigReader> readers;
  const Node* value = take(key);
  if (value == nullptr) return readers;
  if (value->kind != Kind::list) {
    report(value->line, fmt::format("`{}` must be a list of maps, is {}", key, kind_name(*value)));
    return readers;
  }
  for (const auto& item : value->items) {
    if (item->kind == Kind::map) {
      readers.emplace_back(item, where_, faults_);
    } else if (item->kind != Kind::absent) {
      report(item->line, fmt::format("an item of `{}` must be a map, is {}", key, kind_name(*item)));
    }
  }
  return readers;
}

std::optional<ConfigReader> ConfigReader::map(std::string_view key) {
  const Node* value = take(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind != Kind::map) {
    report(value->line, fmt::format("`{}` must be a map, is {}", key, kind_name(*value)));
    return std::nullopt;
  }
  return ConfigReader(std::shared_ptr<const Node>(node_, value), where_, faults_);
}

std::vector<std::pair<std::string, ConfigReader>> ConfigReader::named_maps(std::string_view key) {
  std::vector<std::pair<std::string, ConfigReader>> readers;
  const Node* value = take(key);
  if (value == nullptr) return readers;
  if (value->kind != Kind::map) {
    report(value->line, fmt::format("`{}` must be a map of names to maps, is {}", key, kind_name(*value)));
    return readers;
  }
  for (const auto& [name, line, node] : value->members) {
    if (node->kind == Kind::map) {
      readers.emplace_back(name, ConfigReader(node, where_, faults_));
    } else if (node->kind != Kind::absent) {
      report(line, fmt::format("{} in `{}` must be a map, is {}", cite(name), key, kind_name(*node)));
    }
  }
  return readers;
}

void ConfigReader::finish() {
  const auto in = [](const std::vector<std::string>& list, const std::string& key) {
    const std::string snake = snake_case(key);
    return std::any_of(list.begin(), list.end(),
                       [&](const std::string& known) { return known == key || known == snake; });
  };
  std::vector<std::string> offered;
  std::copy_if(known_.begin(), known_.end(), std::back_inserter(offered),
               [&](const std::string& key) { return !in(refused_, key); });
  for (const auto& [key, line, value] : node_->members) {
    if (in(known_, key) || in(refused_, key)) continue;
    std::string near = suggestion(key, offered);
    if (near.empty()) near = offered.empty() ? "; there are none here" : ".";
    if (!offered.empty()) near += fmt::format(" Keys: {}", fmt::join(offered, ", "));
    report(line, "unknown key " + cite(key) + near);
  }
}

}  // namespace base

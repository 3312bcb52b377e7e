#include "base/config_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>
// yaml.h first: eventhandler.h leans on it.
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <unordered_set>

#include "base/config_node.h"
#include "base/text.h"

namespace base {
namespace {

using config::cite;
using config::kind_name;
using config::snake_case;
using config::suggestion;
using Node = ConfigReader::Node;
using Kind = Node::Kind;

constexpr std::size_t max_file_bytes = 1u << 20;
constexpr std::size_t max_depth = 128;
constexpr std::string_view reference_prefix = "@deepseek-ai/dsh-";

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

// Whether a word of the name says that the value is a credential.
bool names_secret(std::string_view name) {
  static constexpr std::array<std::string_view, 12> words{"key",    "keys",    "token",      "tokens",
                                                          "secret", "secrets", "password",   "passwords",
                                                          "passwd", "pass",    "credential", "credentials"};
  // OPENAI_API_KEY is no camelCase.
  const bool capitals = std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  const std::string text = capitals ? to_lower(name) : snake_case(name);
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of("_-. ", begin), text.size());
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    if (std::find(words.begin(), words.end(), word) != words.end()) return true;
    begin = end + 1;
  }
  return false;
}

// 'text' or "text" without its quotes.
std::optional<std::string> unquoted(std::string_view text) {
  if (text.size() < 2 || (text.front() != '\'' && text.front() != '"') || text.back() != text.front()) {
    return std::nullopt;
  }
  const std::string_view inside = text.substr(1, text.size() - 2);
  if (inside.find(text.front()) != std::string_view::npos || inside.find('\\') != std::string_view::npos) {
    return std::nullopt;
  }
  return std::string(inside);
}

// Turns yaml-cpp's events into Nodes. Working on events instead of YAML::Node keeps the order of members, sees both of
// two equal keys, never expands an alias, and can stop at the depth limit.
class TreeBuilder : public YAML::EventHandler {
 public:
  struct TooDeep {};

  TreeBuilder(const std::string& file, const ConfigWorld& world, std::vector<Fault>& faults)
      : file_(file), world_(world), faults_(faults) {}

  std::shared_ptr<Node> root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark&, const std::string&) override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    deliver(make(Kind::null, mark), mark.line + 1);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fault(mark.line + 1, "aliases (`*name`) are not supported; write the value out");
    deliver(make(Kind::absent, mark), mark.line + 1);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    auto node = make(Kind::plain, mark);
    node->text = value;
    if (tag == "!") {
      node->kind = Kind::quoted;
    } else if (tag != "?" && !tag.empty()) {
      resolve(tag, *node);
    }
    deliver(std::move(node), mark.line + 1);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    std::shared_ptr<Node> node;
    bool key_next = true;  // of a map
    bool drop_value = false;
    std::string key;
    int key_line = 0;
    std::unordered_set<std::string> keys;
  };

  std::shared_ptr<Node> make(Kind kind, const YAML::Mark& mark) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->file = file_;
    node->line = mark.line + 1;
    return node;
  }

  void fault(int line, std::string text) { faults_.push_back({file_, line, std::move(text)}); }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0)
      fault(mark.line + 1, "anchors (`&name`) are not supported; write the value out where it is needed");
  }

  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (stack_.size() >= max_depth) {
      fault(mark.line + 1, fmt::format("nested deeper than {} levels", max_depth));
      throw TooDeep{};
    }
    refuse_anchor(mark, anchor);
    if (!tag.empty() && tag != "?" && tag != "!") fault(mark.line + 1, "unknown tag " + cite(shown_tag(tag)));
    stack_.push_back(Frame{make(kind, mark), true, false, {}, 0, {}});
  }

  void close() {
    auto node = std::move(stack_.back().node);
    stack_.pop_back();
    const int line = node->line;
    deliver(std::move(node), line);
  }

  void deliver(std::shared_ptr<Node> node, int line) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.node->kind == Kind::list) {
      if (node->kind == Kind::null) node->line = frame.node->line;
      frame.node->items.push_back(std::move(node));
      return;
    }
    if (frame.key_next) {
      take_key(frame, *node, line);
    } else if (!frame.drop_value) {
      node->line = frame.key_line;
      frame.node->members.push_back({std::move(frame.key), frame.key_line, std::move(node)});
    }
    frame.key_next = !frame.key_next;
  }

  void take_key(Frame& frame, const Node& node, int line) {
    frame.key = node.text;
    frame.key_line = line;
    frame.drop_value = true;
    if (node.kind == Kind::absent) return;  // a fault already
    if (node.kind != Kind::plain && node.kind != Kind::quoted) {
      fault(line, "a key must be plain text");
    } else if (node.kind == Kind::plain && node.text == "<<") {
      fault(line, "merge keys (`<<`) are not supported; write the members out");
    } else if (!frame.keys.insert(node.text).second) {
      fault(line, "duplicate key " + cite(node.text));
    } else {
      frame.drop_value = false;
    }
  }

  static std::string shown_tag(const std::string& tag) {
    constexpr std::string_view core = "tag:yaml.org,2002:";
    return tag.compare(0, core.size(), core) == 0 ? "!!" + tag.substr(core.size()) : tag;
  }

  void resolve(const std::string& tag, Node& node) {
    const std::string written(trim(node.text));
    node.text.clear();
    node.kind = Kind::absent;
    if (tag == "!env") return from_environment(written, node);
    if (tag == "!cwd") {
      if (!written.empty()) return fault(node.line, "`!cwd` takes no value");
      return become(node, world_.cwd);
    }
    if (tag == "tag:yaml.org,2002:js") return from_script(written, node);
    fault(node.line, "unknown tag " + cite(shown_tag(tag)) + "; `!env NAME`, `!env NAME default` and `!cwd` are known");
  }

  void from_environment(const std::string& written, Node& node) {
    const std::size_t space = written.find_first_of(" \t\n");
    const std::string name = written.substr(0, space);
    if (!is_variable_name(name)) {
      return fault(node.line, "`!env` needs the name of a variable: `!env NAME` or `!env NAME default`");
    }
    std::optional<std::string> fallback;
    if (space != std::string::npos) {
      fallback = std::string(trim(std::string_view(written).substr(space)));
      if (auto inside = unquoted(*fallback)) fallback = std::move(inside);
    }
    look_up(name, std::move(fallback), node);
  }

  // The two forms a composition of the reference is known to use. Read as what they say, never evaluated.
  void from_script(const std::string& written, Node& node) {
    if (written == "process.cwd()") return become(node, world_.cwd);
    constexpr std::string_view prefix = "process.env.";
    const std::size_t operation = written.find("??");
    if (written.compare(0, prefix.size(), prefix) == 0 && operation != std::string::npos) {
      const std::string name(trim(std::string_view(written).substr(prefix.size(), operation - prefix.size())));
      auto fallback = unquoted(trim(std::string_view(written).substr(operation + 2)));
      if (is_variable_name(name) && fallback) return look_up(name, std::move(fallback), node);
    }
    fault(node.line,
          "`!!js` is not evaluated; write `!cwd` for `process.cwd()`, `!env NAME default` for "
          "`process.env.NAME ?? 'default'`, or the value itself");
  }

  void look_up(const std::string& name, std::optional<std::string> fallback, Node& node) {
    std::optional<std::string> value = world_.env ? world_.env(name) : std::nullopt;
    if (value && (!valid_utf8(*value) || value->find('\0') != std::string::npos)) {
      return fault(node.line, "the environment variable " + cite(name) + " is not valid UTF-8");
    }
    node.secret = value.has_value() && names_secret(name);
    if (value) node.variable = name;
    if (!value) value = std::move(fallback);
    if (value) return become(node, std::move(*value));
    node.text = name;  // for the message, should the value be required
  }

  static void become(Node& node, std::string text) {
    node.kind = Kind::resolved;
    node.text = std::move(text);
  }

  const std::string& file_;
  const ConfigWorld& world_;
  std::vector<Fault>& faults_;
  std::vector<Frame> stack_;
  std::shared_ptr<Node> root_;
};

// Stops at the first sign of more than one document.
class SecondDocument final : public TreeBuilder {
 public:
  struct Found {
    int line = 0;
  };
  using TreeBuilder::TreeBuilder;
  void OnDocumentStart(const YAML::Mark& mark) override { throw Found{mark.line + 1}; }
};

std::shared_ptr<const Node> empty_map(const std::string& file, int line) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::map;
  node->file = file;
  node->line = line;
  return node;
}

// One item of the file: a map of exactly id, name and config.
void read_entry(const std::shared_ptr<const Node>& node, ConfigFile& out, std::map<std::string, int>& ids) {
  const auto fault = [&](int line, std::string text) { out.faults.push_back({out.file, line, std::move(text)}); };
  if (node->kind != Kind::map) {
    if (node->kind != Kind::absent) fault(node->line, "an entry must be a map with `id`, `name` and `config`");
    return;
  }
  ConfigEntry entry;
  entry.line = node->line;
  entry.config = empty_map(out.file, node->line);
  ConfigReader reader(node, "", &out.faults);
  entry.id = reader.required_string("id");
  entry.written_name = reader.required_string("name");
  entry.name = entry.written_name;
  if (entry.name.compare(0, reference_prefix.size(), reference_prefix) == 0) {
    entry.name.erase(0, reference_prefix.size());
  }
  if (!entry.id.empty()) {
    const auto [first, added] = ids.emplace(entry.id, node->line);
    if (!added) {
      reader.fault("id", fmt::format("the id {} is used by the entry at line {} too", cite(entry.id), first->second));
    }
  }
  for (const auto& [key, line, value] : node->members) {
    if (key == "config") {
      if (value->kind == Kind::map) {
        entry.config = value;
      } else if (value->kind != Kind::null && value->kind != Kind::absent) {
        fault(line, "`config` must be a map, is " + kind_name(*value));
      }
    } else if (key != "id" && key != "name") {
      fault(line, "unknown key " + cite(key) + " in an entry: an entry has `id`, `name` and `config`" +
                      (suggestion(key, {"id", "name", "config"}).empty() ? "; settings belong under `config`"
                                                                         : suggestion(key, {"id", "name", "config"})));
    }
  }
  if (!entry.name.empty()) out.entries.push_back(std::move(entry));
}

}  // namespace

ConfigFile parse_config(std::string file, std::string_view text, const ConfigWorld& world) {
  ConfigFile out;
  out.file = std::move(file);
  const auto fault = [&](int line, std::string message) { out.faults.push_back({out.file, line, std::move(message)}); };
  const auto line_at = [&](std::size_t byte) {
    return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(byte), '\n'));
  };
  if (text.size() > max_file_bytes) {
    fault(0, fmt::format("larger than {} bytes", max_file_bytes));
    return out;
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fault(line_at(nul), "a NUL byte");
    return out;
  }
  if (!valid_utf8(text)) {
    std::size_t begin = 0;  // a line end is never inside a character, so the first bad line can be looked for by itself
    for (std::size_t end = 0; begin < text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      if (!valid_utf8(text.substr(begin, end - begin))) break;
    }
    fault(line_at(std::min(begin, text.size())), "not valid UTF-8");
    return out;
  }

  TreeBuilder tree(out.file, world, out.faults);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(tree);
    SecondDocument second(out.file, world, out.faults);
    parser.HandleNextDocument(second);
  } catch (const TreeBuilder::TooDeep&) {
    return out;  // reported by the builder
  } catch (const SecondDocument::Found& found) {
    fault(found.line, "a second document, or text outside the list: one file is one list of entries");
    return out;
  } catch (const YAML::Exception& error) {
    fault(std::max(error.mark.line, -1) + 1, "invalid YAML: " + error.msg);
    return out;
  }

  const auto root = tree.root();
  if (root == nullptr || root->kind == Kind::null) {
    fault(0, "holds no entries; a composition is a list of entries with `id`, `name` and `config`");
    return out;
  }
  if (root->kind != Kind::list) {
    if (root->kind != Kind::absent) fault(root->line, "must be a list of entries with `id`, `name` and `config`");
    return out;
  }
  std::map<std::string, int> ids;
  for (const auto& item : root->items) read_entry(item, out, ids);
  return out;
}

namespace {

// user:password@ of a URL is a credential wherever it stands.
std::string without_user_info(const std::string& text) {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string::npos) return text;
  const std::size_t begin = scheme + 3;
  const std::size_t end = std::min(text.find_first_of("/?#", begin), text.size());
  const std::size_t at = text.rfind('@', end);
  if (at == std::string::npos || at < begin || at >= end) return text;
  return text.substr(0, begin) + "(hidden)" + text.substr(at);
}

// Numbers and booleans tell nothing, and `api_key_env: NAME` names a variable, not a key.
bool may_be_shown(std::string_view key, const Node& node) {
  const bool number = !node.text.empty() && node.text.find_first_not_of("0123456789") == std::string::npos;
  const bool tokens = snake_case(key).find("tokens") != std::string::npos;  // a count
  if (node.kind == Kind::plain && (config::is_boolean(node.text) || (number && tokens))) return true;
  const bool variable = std::all_of(node.text.begin(), node.text.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  const std::string snake = snake_case(key);
  return variable && !node.secret && snake.size() > 4 && snake.compare(snake.size() - 4, 4, "_env") == 0;
}

void emit(YAML::Emitter& out, const Node& node, std::string_view key, bool hidden) {
  switch (node.kind) {
    case Kind::null:
    case Kind::absent:
      out << YAML::Null;
      return;
    case Kind::plain:
    case Kind::quoted:
    case Kind::resolved:
      if ((hidden && !may_be_shown(key, node)) || node.secret) {
        out << "(hidden)";
      } else if (node.kind == Kind::plain) {
        out << without_user_info(node.text);
      } else {
        out << YAML::DoubleQuoted << without_user_info(node.text);
      }
      return;
    case Kind::list:
      out << YAML::BeginSeq;
      for (const auto& item : node.items) {
        if (item->kind != Kind::absent) emit(out, *item, key, hidden);
      }
      out << YAML::EndSeq;
      return;
    case Kind::map:
      out << YAML::BeginMap;
      for (const auto& member : node.members) {
        if (member.value->kind == Kind::absent) continue;
        out << YAML::Key << member.key << YAML::Value;
        emit(out, *member.value, member.key, hidden || names_secret(member.key) || to_lower(member.key) == "headers");
      }
      out << YAML::EndMap;
      return;
  }
}

}  // namespace

std::string print_config(const ConfigEntry& entry, int indent) {
  YAML::Emitter out;
  emit(out, *entry.config, "", false);
  const std::string margin(static_cast<std::size_t>(std::max(indent, 0)), ' ');
  std::string text;
  std::istringstream lines(out.c_str());
  for (std::string line; std::getline(lines, line);) text += margin + line + "\n";
  return text;
}

}  // namespace base

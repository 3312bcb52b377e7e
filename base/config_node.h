// The tree a composition file becomes, shared by its reader (config_reader.cc, the only file that sees yaml-cpp) and
// the getters (config_values.cc). Private to these two. Built once, then const; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"

namespace base {

// One value of the file, with `!env`, `!cwd` and `!!js` resolved already.
struct ConfigReader::Node {
  enum class Kind {
    null,
    absent,    // `!env` of an unset variable (`text` is its name), or a value that is a fault already (`text` is empty)
    plain,     // as written, not quoted: may be a number or a boolean
    quoted,    // a string
    resolved,  // a string from outside the file; the getter converts it
    list,
    map,
  };
  struct Member {
    std::string key;
    int line = 0;
    std::shared_ptr<const Node> value;
  };

  bool is_text() const { return kind == Kind::plain || kind == Kind::quoted || kind == Kind::resolved; }

  Kind kind = Kind::null;
  std::string file;
  int line = 0;  // of the key, for the value of a member: yaml-cpp marks an empty value on a later line
  std::string text;
  std::string variable;  // the environment variable that gave the value; "" = none did
  bool secret = false;   // from an environment variable whose name says so
  std::vector<Member> members;
  std::vector<std::shared_ptr<const Node>> items;
};

namespace config {

// A foreign text inside a message, short and in back-ticks.
std::string cite(std::string_view text);
// What a value is, for "…, is <this>".
std::string kind_name(const ConfigReader::Node& node);
// workspaceRoot and workspace_root are one key.
std::string snake_case(std::string_view key);
// "; did you mean `mode`?", or nothing when no known word is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& known);
bool is_boolean(std::string_view text);

}  // namespace config
}  // namespace base

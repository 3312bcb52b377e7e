// Reads cordis.yml. A ConfigFile is the parsed text; a ConfigReader walks one `config` map and records every fault
// (unknown key, missing key, wrong type, out of range, duplicate key, anchor, merge key, unknown tag, depth) with file
// and line instead of stopping at the first. yaml-cpp stays inside config_reader.cc; no exception leaves it. Keys are
// snake_case; the camelCase spelling of the same key is accepted, both at once are a duplicate. Values may be `!env
// NAME`, `!env NAME default`,
// `!cwd`, `!!js process.cwd()`, `!!js process.env.NAME ?? 'text'`; any other tag or `!!js` text is a fault. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace base {

struct Fault {
  std::string file;
  int line = 0;  // 1-based; 0 = the whole file
  std::string text;
};
std::string to_string(const Fault& fault);  // "cordis.yml:12: text"

// The known word a misspelt one most likely means; null when none is near.
const std::string* nearest_name(std::string_view word, const std::vector<std::string>& known);

struct ConfigWorld {
  std::function<std::optional<std::string>(const std::string&)> env;
  std::string cwd;
};

class ConfigReader {
 public:
  struct Node;  // opaque
  // `where` names the map's owner and stands before each fault's text; empty: nothing does. `faults` outlives the
  // reader.
  ConfigReader(std::shared_ptr<const Node> node, std::string where, std::vector<Fault>* faults);

  // Each marks the key as known. Absent: the default. Wrong: a fault, and the default. An `!env NAME` without a default
  // whose variable is unset counts as absent.
  std::string string(std::string_view key, std::string fallback);
  std::optional<std::string> optional_string(std::string_view key);
  std::string required_string(std::string_view key);  // non-empty, else a fault
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max);
  bool boolean(std::string_view key, bool fallback);
  // One of `choices`; a fault lists them.
  std::string choice(std::string_view key, std::string fallback, const std::vector<std::string>& choices);
  std::vector<std::string> strings(std::string_view key, std::vector<std::string> fallback);
  std::vector<std::pair<std::string, std::string>> string_map(std::string_view key);   // in file order
  std::optional<ConfigReader> map(std::string_view key);                               // its finish() is the caller's
  std::vector<ConfigReader> maps(std::string_view key);                                // a list of maps
  std::vector<std::pair<std::string, ConfigReader>> named_maps(std::string_view key);  // name -> map, in file order
  bool has(std::string_view key) const;
  // " (the value comes from the environment variable NAME)", for a fault found later; "" where it does not.
  std::string origin(std::string_view key) const;

  // A key this plugin knows only to refuse: when present, a fault with this text.
  void refuse(std::string_view key, std::string text);
  void fault(std::string_view key, std::string text);  // at the key's line, or the entry's when absent
  // Reports every key nobody asked for, with the nearest known one and all that are known. Call once, last.
  void finish();
  int line() const;

 private:
  // The value of a key, marked as known; null when there is none. Reports an empty one and a second spelling.
  const Node* take(std::string_view key);
  void report(int line, std::string text);

  std::shared_ptr<const Node> node_;
  std::string where_;
  std::vector<Fault>* faults_;
  std::vector<std::string> known_, refused_;
};

struct ConfigEntry {
  std::string id;
  std::string name;  // plugin, with a leading @deepseek-ai/dsh- dropped
  int line = 0;
  std::string written_name;                          // as in the file
  std::shared_ptr<const ConfigReader::Node> config;  // an empty map when the entry has none
};

struct ConfigFile {
  std::string file;
  std::vector<ConfigEntry> entries;
  std::vector<Fault> faults;  // of the file's own shape: an entry has exactly id, name, config
};

ConfigFile parse_config(std::string file, std::string_view text, const ConfigWorld& world);
// The entry's config with !env and !cwd resolved, as YAML text indented by `indent`; values of keys that name a secret
// (key, token, secret, password, and anything under `headers`) are printed as "(hidden)".
std::string print_config(const ConfigEntry& entry, int indent);

}  // namespace base

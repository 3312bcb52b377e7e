#include "base/config_reader.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using base::ConfigReader;
using base::Fault;

namespace {

base::ConfigWorld world() {
  return {[](const std::string& name) -> std::optional<std::string> {
            if (name == "MODE") return "read-only";
            if (name == "COUNT") return "42";
            if (name == "YES") return "true";
            if (name == "EMPTY") return "";
            if (name == "MY_API_KEY") return "sk-very-secret";
            if (name == "BAD") return "\xff";
            return std::nullopt;
          },
          "/work dir"};
}

base::ConfigFile parse(std::string_view text) { return base::parse_config("cordis.yml", text, world()); }

std::vector<std::string> texts(const std::vector<Fault>& faults) {
  std::vector<std::string> all;
  for (const Fault& fault : faults) all.push_back(base::to_string(fault));
  return all;
}

// The faults of a file whose only interest is one of them.
std::string only_fault(std::string_view text) {
  const auto all = texts(parse(text).faults);
  if (all.size() != 1) return std::to_string(all.size()) + " faults: " + (all.empty() ? "" : all[0] + " ...");
  return all[0];
}

// One entry whose config is `config`, each line indented by four; the config starts at line 4.
struct Entry {
  explicit Entry(const std::string& config) {
    std::string text = "- id: one\n  name: plugin\n  config:\n";
    std::size_t begin = 0;
    while (begin < config.size()) {
      const std::size_t end = std::min(config.find('\n', begin), config.size());
      text += "    " + config.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
    file = parse(text);
    REQUIRE(file.entries.size() == 1);
    reader.emplace(file.entries[0].config, "cordis.yml", &faults);
  }
  ConfigReader* operator->() { return &*reader; }
  std::vector<std::string> said() {
    auto all = texts(file.faults);
    for (const std::string& text : texts(faults)) all.push_back(text);
    return all;
  }

  base::ConfigFile file;
  std::vector<Fault> faults;
  std::optional<ConfigReader> reader;
};

using Said = std::vector<std::string>;

}  // namespace

TEST_CASE("entries are read in order, with their lines") {
  const auto file = parse(
      "# a comment\n"
      "- id: a\n"
      "  name: '@deepseek-ai/dsh-sandbox-local'\n"
      "\n"
      "- name: tool-bash\n"
      "  id: b\n"
      "  config:\n"
      "- id: c\n"
      "  name: x\n"
      "  config: {mode: read-only}\n");
  CHECK(texts(file.faults).empty());
  REQUIRE(file.entries.size() == 3);
  CHECK(file.entries[0].name == "sandbox-local");
  CHECK(file.entries[0].written_name == "@deepseek-ai/dsh-sandbox-local");
  CHECK(file.entries[0].line == 2);
  CHECK(file.entries[1].id == "b");
  CHECK(file.entries[1].line == 5);
  CHECK(file.entries[2].line == 8);
  for (const auto& entry : file.entries) REQUIRE(entry.config != nullptr);
  std::vector<Fault> faults;
  ConfigReader empty(file.entries[1].config, "", &faults);
  CHECK(empty.string("mode", "d") == "d");
  empty.finish();
  CHECK(faults.empty());
}

TEST_CASE("the shape of a file: each fault with its line") {
  CHECK(only_fault("") ==
        "cordis.yml: holds no entries; a composition is a list of entries with `id`, `name` and `config`");
  CHECK_THAT(only_fault("# only a comment\n"), Catch::Contains("holds no entries"));
  CHECK(only_fault("\nid: a\n") == "cordis.yml:2: must be a list of entries with `id`, `name` and `config`");
  CHECK_THAT(only_fault("- id: a\n  name: b\n-\n- id: c\n  name: d\n"), Catch::Contains("an entry must be a map"));
  CHECK(only_fault("- id: a\n  name: b\n- plain\n") ==
        "cordis.yml:3: an entry must be a map with `id`, `name` and `config`");
  CHECK(
      only_fault("- id: a\n  name: b\n  cofig: {}\n") ==
      "cordis.yml:3: unknown key `cofig` in an entry: an entry has `id`, `name` and `config`; did you mean `config`?");
  CHECK_THAT(only_fault("- id: a\n  name: b\n  mode: x\n"),
             Catch::StartsWith("cordis.yml:3: unknown key `mode`") && Catch::Contains("under `config`"));
  CHECK(only_fault("- name: b\n") == "cordis.yml:1: `id` is required and must not be empty");
  CHECK(only_fault("- id: a\n  name: ''\n") == "cordis.yml:2: `name` is required and must not be empty");
  CHECK(only_fault("- id: a\n  name:\n\n- id: b\n  name: c\n") ==
        "cordis.yml:2: `name` has no value; give it one or remove the line");
  CHECK(only_fault("- id: a\n  name: b\n  config: [1]\n") == "cordis.yml:3: `config` must be a map, is a list");
  CHECK(only_fault("- id: a\n  name: b\n- id: c\n  name: d\n- name: e\n  id: a\n") ==
        "cordis.yml:6: the id `a` is used by the entry at line 1 too");
}

TEST_CASE("YAML that is refused: each with its line") {
  const std::string entry = "- id: a\n  name: b\n  config:\n";
  CHECK_THAT(only_fault("- id: a\n  name: [\n"), Catch::StartsWith("cordis.yml:3: invalid YAML: "));
  CHECK_THAT(only_fault("- id: a\n\tname: b\n"), Catch::StartsWith("cordis.yml:2: invalid YAML: "));
  CHECK(only_fault(entry + "    x: 1\n    y: 2\n    x: 3\n") == "cordis.yml:6: duplicate key `x`");
  CHECK(only_fault(entry + "    x: {p: 1, p: 2}\n") == "cordis.yml:4: duplicate key `p`");
  CHECK(only_fault("- id: a\n  name: b\n  id: c\n") == "cordis.yml:3: duplicate key `id`");
  CHECK_THAT(only_fault(entry + "    x: &here 1\n"), Catch::StartsWith("cordis.yml:4: anchors"));
  CHECK_THAT(only_fault(entry + "    x: &here\n      y: 1\n"), Catch::StartsWith("cordis.yml:4: anchors"));
  const auto alias = texts(parse(entry + "    x: &here 1\n    y: *here\n").faults);
  REQUIRE(alias.size() == 2);
  CHECK_THAT(alias[1], Catch::StartsWith("cordis.yml:5: aliases"));
  CHECK_THAT(only_fault(entry + "    <<: {x: 1}\n"), Catch::StartsWith("cordis.yml:4: merge keys"));
  CHECK(only_fault(entry + "    ? [a, b]\n    : 1\n") == "cordis.yml:4: a key must be plain text");
  CHECK(only_fault(entry + "    ? {a: b}\n    : 1\n") == "cordis.yml:4: a key must be plain text");
  CHECK(only_fault(entry + "    !env MODE: 1\n") == "cordis.yml:4: a key must be plain text");
  CHECK(only_fault(entry + "    ~: 1\n") == "cordis.yml:4: a key must be plain text");
  CHECK_THAT(only_fault("- id: a\n  name: b\n---\n- id: c\n  name: d\n"),
             Catch::Contains("cordis.yml:3") && Catch::Contains("second document"));
  CHECK_THAT(only_fault(entry + "    x: !secret y\n"), Catch::StartsWith("cordis.yml:4: unknown tag `!secret`"));
  CHECK_THAT(only_fault(entry + "    x: !!str 5\n"), Catch::StartsWith("cordis.yml:4: unknown tag `!!str`"));
  CHECK_THAT(only_fault(entry + "    x: !!set {y}\n"), Catch::StartsWith("cordis.yml:4: unknown tag `!!set`"));
  CHECK_THAT(only_fault(entry + "    x: !foo [y]\n"), Catch::StartsWith("cordis.yml:4: unknown tag `!foo`"));
  CHECK(only_fault("- id: a\n  name:\n    " + std::string(200, '[')) == "cordis.yml:3: nested deeper than 128 levels");
  CHECK_THAT(only_fault("- id: a\n  name: b\n" + std::string(200, '[')),
             Catch::Contains("cordis.yml:3") && Catch::Contains("second document"));
  CHECK(only_fault("- id: a\n  name: \"x" + std::string(1, '\0') + "y\"\n") == "cordis.yml:2: a NUL byte");
  CHECK(only_fault("- id: a\n  name: b\n  \xff\n") == "cordis.yml:3: not valid UTF-8");
  CHECK_THAT(only_fault("# " + std::string(1 << 20, 'x')), Catch::StartsWith("cordis.yml: larger than"));
}

TEST_CASE("all faults of a file are told together") {
  CHECK(parse("- id: a\n  name: b\n  more: 1\n- id: a\n  name: &x c\n- 3\n").faults.size() == 4);
}

TEST_CASE("values of every type") {
  Entry entry(
      "text: hello\n"
      "number: 7\n"
      "negative: -7\n"
      "on: true\n"
      "off: false\n"
      "mode: read-only\n"
      "list: [a, 'b', 3]\n"
      "headers: {X-One: a, fooBar: b, foo_bar: c}\n"
      "models:\n"
      "  - id: m1\n"
      "  - id: m2\n"
      "presets:\n"
      "  first: {mode: x}\n"
      "  second: {mode: y}\n");
  CHECK(entry->string("text", "") == "hello");
  CHECK(entry->string("number", "") == "7");
  CHECK(entry->integer("number", 0, 0, 10) == 7);
  CHECK(entry->integer("negative", 0, -10, 10) == -7);
  CHECK(entry->boolean("on", false));
  CHECK_FALSE(entry->boolean("off", true));
  CHECK(entry->choice("mode", "", {"read-only", "workspace-write"}) == "read-only");
  CHECK(entry->strings("list", {}) == std::vector<std::string>{"a", "b", "3"});
  const auto headers = entry->string_map("headers");
  REQUIRE(headers.size() == 3);
  CHECK(headers[0] == std::pair<std::string, std::string>("X-One", "a"));
  CHECK(headers[2].first == "foo_bar");
  auto models = entry->maps("models");
  REQUIRE(models.size() == 2);
  CHECK(models[1].required_string("id") == "m2");
  CHECK(models[1].line() == 14);
  auto presets = entry->named_maps("presets");
  REQUIRE(presets.size() == 2);
  CHECK(presets[0].first == "first");
  CHECK(presets[1].second.string("mode", "") == "y");
  CHECK(entry->has("text"));
  CHECK_FALSE(entry->has("nothing"));
  CHECK(entry->string("nothing", "fallback") == "fallback");
  CHECK_FALSE(entry->optional_string("nothing"));
  entry->finish();
  CHECK(entry.said() == Said{});
}

TEST_CASE("values of the wrong type: a fault at the key, and the default") {
  Entry entry(
      "text: [a]\n"
      "flag: yes\n"
      "quoted: \"5\"\n"
      "count: soon\n"
      "float: 1.5\n"
      "low: -1\n"
      "huge: 99999999999999999999\n"
      "mode: wide\n"
      "list: a\n"
      "items: [a, [b], ~]\n"
      "map: [a]\n"
      "headers: {a: {}}\n"
      "models: [{id: a}, b]\n"
      "presets: {a: b}\n"
      "empty:\n"
      "bool: true\n"
      "last: {}\n");
  CHECK(entry->string("text", "d") == "d");
  CHECK(entry->boolean("flag", true));
  CHECK(entry->integer("quoted", 1, 0, 9) == 1);
  CHECK(entry->integer("count", 2, 0, 9) == 2);
  CHECK(entry->integer("float", 3, 0, 9) == 3);
  CHECK(entry->integer("low", 4, 0, 9) == 4);
  CHECK(entry->integer("huge", 5, 0, 9) == 5);
  CHECK(entry->choice("mode", "narrow", {"narrow", "open"}) == "narrow");
  CHECK(entry->strings("list", {"d"}) == std::vector<std::string>{"d"});
  CHECK(entry->strings("items", {"d"}) == std::vector<std::string>{"d"});
  CHECK(entry->string_map("map").empty());
  CHECK(entry->string_map("headers").empty());
  CHECK(entry->maps("models").size() == 1);
  CHECK(entry->named_maps("presets").empty());
  CHECK(entry->string("empty", "d") == "d");
  CHECK(entry->string("bool", "d") == "d");
  CHECK(entry->string("last", "d") == "d");
  entry->finish();
  CHECK(entry.said() == Said{
                            "cordis.yml:4: `text` must be a string, is a list",
                            "cordis.yml:5: `flag` must be true or false, is `yes`",
                            "cordis.yml:6: `quoted` must be a whole number, is the string `5`",
                            "cordis.yml:7: `count` must be a whole number, is `soon`",
                            "cordis.yml:8: `float` must be a whole number, is `1.5`",
                            "cordis.yml:9: `low` must be between 0 and 9, is `-1`",
                            "cordis.yml:10: `huge` must be between 0 and 9, is `99999999999999999999`",
                            "cordis.yml:11: `mode` must be one of narrow, open, is `wide`",
                            "cordis.yml:12: `list` must be a list of strings, is `a`",
                            "cordis.yml:13: an item of `items` must be a string, is a list",
                            "cordis.yml:13: an item of `items` must be a string, is empty",
                            "cordis.yml:14: `map` must be a map of strings, is a list",
                            "cordis.yml:15: `a` in `headers` must be a string, is a map",
                            "cordis.yml:16: an item of `models` must be a map, is `b`",
                            "cordis.yml:17: `a` in `presets` must be a map, is `b`",
                            "cordis.yml:18: `empty` has no value; give it one or remove the line",
                            "cordis.yml:19: `bool` must be a string, is `true`",
                            "cordis.yml:20: `last` must be a string, is a map",
                        });
}

TEST_CASE("unknown keys are told with the nearest known one and all that are known") {
  Entry entry("mod: a\ntimeoutMS: 5\nwhatever: 1\n");
  CHECK(entry->string("mode", "d") == "d");
  entry->integer("timeout_ms", 1, 0, 9);
  entry->finish();
  CHECK(entry.said() == Said{"cordis.yml:4: unknown key `mod`; did you mean `mode`? Keys: mode, timeout_ms",
                             "cordis.yml:5: unknown key `timeoutMS`; did you mean `timeout_ms`? Keys: mode, timeout_ms",
                             "cordis.yml:6: unknown key `whatever`. Keys: mode, timeout_ms"});
}

TEST_CASE("the camelCase spelling of a key is the key; both are a duplicate") {
  Entry entry("workspaceRoot: /a\ntimeoutMs: 3\ntimeout_ms: 4\n");
  CHECK(entry->has("workspace_root"));
  CHECK(entry->string("workspace_root", "") == "/a");
  CHECK(entry->string("workspace_root", "") == "/a");
  CHECK(entry->integer("timeout_ms", 0, 0, 9) == 3);
  CHECK(entry->integer("timeout_ms", 0, 0, 9) == 3);
  entry->finish();
  CHECK(entry.said() == Said{"cordis.yml:6: duplicate key `timeout_ms`: it is `timeout_ms` in another spelling"});
}

TEST_CASE("values from outside the file") {
  Entry entry(
      "mode: !env MODE\n"
      "count: !env COUNT\n"
      "yes: !env YES\n"
      "fallback: !env UNSET some text\n"
      "quoted: !env UNSET 'some text'\n"
      "empty: !env EMPTY fallback\n"
      "absent: !env UNSET\n"
      "root: !cwd\n"
      "js_root: !!js process.cwd()\n"
      "js_env: !!js process.env.MODE ?? 'text'\n"
      "js_text: !!js process.env.UNSET ?? \"text\"\n"
      "list: [!env MODE, !env UNSET, !cwd ]\n"
      "quoted_js: !!js \"process.env.UNSET ?? 'x'\"\n");
  CHECK(entry->choice("mode", "", {"read-only"}) == "read-only");
  CHECK(entry->integer("count", 0, 0, 100) == 42);
  CHECK(entry->boolean("yes", false));
  CHECK(entry->string("fallback", "") == "some text");
  CHECK(entry->string("quoted", "") == "some text");
  CHECK(entry->string("empty", "d").empty());
  CHECK_FALSE(entry->has("absent"));
  CHECK(entry->string("absent", "d") == "d");
  CHECK(entry->string("root", "") == "/work dir");
  CHECK(entry->string("js_root", "") == "/work dir");
  CHECK(entry->string("js_env", "") == "read-only");
  CHECK(entry->string("js_text", "") == "text");
  CHECK(entry->strings("list", {}) == std::vector<std::string>{"read-only", "/work dir"});
  CHECK(entry->string("quoted_js", "") == "x");
  entry->finish();
  CHECK(entry.said() == Said{});
}

TEST_CASE("values from outside that cannot be: a fault, and the default") {
  Entry entry(
      "a: !env\n"
      "b: !env not-a-name\n"
      "c: !cwd sub\n"
      "d: !!js 1 + 1\n"
      "e: !!js process.env.NAME\n"
      "f: !!js process.exit() ?? 'x'\n"
      "g: !env BAD\n"
      "h: !env MODE\n"
      "i: !env UNSET\n");
  for (const char* key : {"a", "b", "c", "d", "e", "f", "g"}) CHECK(entry->string(key, "d") == "d");
  CHECK(entry->integer("h", 3, 0, 9) == 3);
  CHECK(entry->required_string("i").empty());
  CHECK(entry->required_string("a").empty());
  entry->finish();
  const Said said = entry.said();
  REQUIRE(said.size() == 9);
  CHECK_THAT(said[0], Catch::StartsWith("cordis.yml:4: `!env` needs the name"));
  CHECK_THAT(said[1], Catch::StartsWith("cordis.yml:5: `!env` needs the name"));
  CHECK(said[2] == "cordis.yml:6: `!cwd` takes no value");
  CHECK_THAT(said[3], Catch::StartsWith("cordis.yml:7: `!!js` is not evaluated; write"));
  CHECK_THAT(said[4], Catch::StartsWith("cordis.yml:8: `!!js`"));
  CHECK_THAT(said[5], Catch::StartsWith("cordis.yml:9: `!!js`"));
  CHECK(said[6] == "cordis.yml:10: the environment variable `BAD` is not valid UTF-8");
  CHECK(
      said[7] ==
      "cordis.yml:11: `h` must be a whole number, is `read-only` (the value comes from the environment variable MODE)");
  CHECK(said[8] == "cordis.yml:12: `i` is required, and the environment variable `UNSET` is not set");
}

TEST_CASE("a plugin refuses and adds faults at the key's line, or the map's") {
  Entry entry("mode: x\nother: y\n");
  entry->refuse("mode", "move it to sandbox-policy");
  entry->refuse("workspace_root", "not there, not said");
  entry->fault("other", "is odd");
  entry->fault("missing", "is missing");
  CHECK(entry->required_string("also_missing").empty());
  entry->string("other", "");
  entry->finish();
  CHECK(entry.said() == Said{"cordis.yml:4: move it to sandbox-policy", "cordis.yml:5: is odd",
                             "cordis.yml:3: is missing",
                             "cordis.yml:3: `also_missing` is required and must not be empty"});
}

TEST_CASE("a reader can name its owner in front of its faults") {
  const auto file = parse("- id: a\n  name: b\n  config:\n    x: 1\n");
  std::vector<Fault> faults;
  ConfigReader(file.entries[0].config, "entry `a`", &faults).finish();
  CHECK(texts(faults) == Said{"cordis.yml:4: entry `a`: unknown key `x`; there are none here"});
}

TEST_CASE("print_config resolves values and hides secrets") {
  Entry entry(
      "base_url: https://user:pw@host/v1\n"
      "api_key: sk-abc\n"
      "apiKey2: !env MY_API_KEY\n"
      "clientToken: t0ken\n"
      "note: !env MY_API_KEY\n"
      "api_key_env: OPENAI_API_KEY\n"
      "password: 12345678\n"
      "other_key_env: sk-pasted-by-mistake\n"
      "max_tokens: 4096\n"
      "headers:\n"
      "  X-Custom: hush\n"
      "secrets: [one, {two: three}]\n"
      "root: !cwd\n"
      "mode: !env MODE\n"
      "unset: !env UNSET\n"
      "text: \"true\"\n"
      "list: [a, 1]\n");
  const std::string text = base::print_config(entry.file.entries[0], 4);
  for (const char* secret : {"sk-abc", "sk-very", "t0ken", "12345678", "pasted", "hush", "one", "three", "user:pw"}) {
    INFO(secret);
    CHECK_THAT(text, !Catch::Contains(secret));
  }
  CHECK_THAT(text, Catch::Contains("    base_url: \"https://(hidden)@host/v1\"\n") ||
                       Catch::Contains("    base_url: https://(hidden)@host/v1\n"));
  CHECK_THAT(text, Catch::Contains("    api_key: (hidden)\n"));
  CHECK_THAT(text, Catch::Contains("    api_key_env: OPENAI_API_KEY\n"));
  CHECK_THAT(text, Catch::Contains("    max_tokens: 4096\n"));
  CHECK_THAT(text, Catch::Contains("      X-Custom: (hidden)\n"));
  CHECK_THAT(text, Catch::Contains("    root: \"/work dir\"\n"));
  CHECK_THAT(text, Catch::Contains("    mode: \"read-only\"\n"));
  CHECK_THAT(text, Catch::Contains("    text: \"true\"\n"));
  CHECK_THAT(text, !Catch::Contains("unset"));

  // What is printed is a composition again.
  const auto again = parse("- id: one\n  name: plugin\n  config:\n" + text);
  CHECK(texts(again.faults) == Said{});
  CHECK(base::print_config(again.entries.at(0), 4) == text);
}

TEST_CASE("an entry without config prints an empty map") {
  const auto file = parse("- id: a\n  name: b\n");
  CHECK(base::print_config(file.entries.at(0), 2) == "  {}\n");
}

TEST_CASE("a secret of the environment is not shown in a fault") {
  Entry entry("count: !env MY_API_KEY\n");
  entry->integer("count", 0, 0, 9);
  CHECK(entry.said() == Said{"cordis.yml:4: `count` must be a whole number, is (hidden) (the value comes from the "
                             "environment variable MY_API_KEY)"});
}

TEST_CASE("a fault about a value that came from the environment names the variable") {
  base::ConfigWorld world;
  world.env = [](const std::string& name) { return name == "MODE" ? std::optional<std::string>("foo") : std::nullopt; };
  const auto file = base::parse_config("c.yml", "- id: a\n  name: b\n  config:\n    mode: !env MODE\n", world);
  std::vector<base::Fault> faults;
  base::ConfigReader reader(file.entries.at(0).config, "", &faults);
  reader.choice("mode", "x", {"x", "y"});
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].text.find("(the value comes from the environment variable MODE)") != std::string::npos);
  CHECK(reader.origin("mode") == " (the value comes from the environment variable MODE)");
  CHECK(reader.origin("other").empty());
}

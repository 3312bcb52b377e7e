#include "llm/routes.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

namespace {

struct Configured {
  std::vector<std::string> faults;
  base::Result<llm::Route> route = llm::Route{};
};

Configured configure(const std::string& yaml, const std::map<std::string, std::string>& env = {},
                     llm::ConfigureRoute function = llm::configure_openai_completions) {
  base::ConfigWorld world;
  world.env = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = env.find(name);
    return found == env.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
  world.cwd = "/var/tmp";
  const base::ConfigFile file = base::parse_config("c.yml", "- id: r\n  name: x\n  config:\n" + yaml, world);
  REQUIRE(file.faults.empty());
  REQUIRE(file.entries.size() == 1);
  std::vector<base::Fault> faults;
  base::ConfigReader reader(file.entries[0].config, "", &faults);
  Configured out;
  auto make = function("r", reader, world);
  reader.finish();
  for (const auto& fault : faults) out.faults.push_back(base::to_string(fault));
  out.route = make();
  return out;
}

}  // namespace

TEST_CASE("a route with everything", "[routes]") {
  const auto c = configure(
      "    base_url: https://api.example/v1/\n    api_key_env: MY_KEY\n    models: [a, b]\n    model: c\n    "
      "context_window: 1000\n"
      "    max_tokens: 50\n    temperature: 0.2\n    headers: {X-Title: t}\n    idle_timeout_ms: 5\n",
      {{"MY_KEY", "sk-1\n"}});
  CHECK(c.faults.empty());
  REQUIRE(c.route);
  CHECK(c.route->id == "r");
  CHECK(c.route->protocol == "openai-completions");
  CHECK(c.route->ready);
  CHECK(c.route->model == "c");
  CHECK(c.route->models == std::vector<std::string>{"c", "a", "b"});
  CHECK(c.route->context_window == 1000);
  CHECK(c.route->params == R"({"max_tokens":50,"temperature":0.2})");
  CHECK(c.route->key_variables == std::vector<std::string>{"MY_KEY"});
  CHECK_FALSE(c.route->chosen_only);
  CHECK(c.route->adapter);
}

TEST_CASE("what is missing is said", "[routes]") {
  const auto missing = [](const std::string& yaml, const std::map<std::string, std::string>& env = {}) {
    const auto c = configure(yaml, env);
    CHECK(c.faults.empty());
    CHECK(c.route->ready == c.route->missing.empty());
    return c.route->missing;
  };
  CHECK(missing("    model: m\n").find("OPENAI_API_KEY") != std::string::npos);
  CHECK(missing("    model: m\n", {{"OPENAI_API_KEY", ""}}).find("OPENAI_API_KEY") != std::string::npos);
  CHECK(missing("    model: m\n    base_url: http://localhost:11434\n").empty());
  CHECK(missing("    model: m\n    base_url: http://127.0.0.1:1/v1\n").empty());
  CHECK(missing("    model: m\n    api_key_env: ''\n").empty());
  CHECK(missing("    model: m\n    headers: {api-key: x}\n").empty());
  CHECK(missing("    context_window: 1\n", {{"OPENAI_API_KEY", "k"}}).find("model") != std::string::npos);
  const std::string odd = missing("    model: m\n", {{"OPENAI_API_KEY", "sk-a\nX-Evil: 1"}});
  CHECK(odd.find("line break") != std::string::npos);
  CHECK(odd.find("sk-a") == std::string::npos);
}

TEST_CASE("faults of a route", "[routes]") {
  const auto fault = [](const std::string& yaml, const char* text) {
    const auto c = configure("    model: m\n" + yaml);
    REQUIRE(c.faults.size() == 1);
    INFO(c.faults[0]);
    CHECK(c.faults[0].find("c.yml:5") != std::string::npos);
    CHECK(c.faults[0].find(text) != std::string::npos);
  };
  fault("    api_key: sk-1\n", "api_key_env");
  fault("    base_url: api.example/v1\n", "https://");
  fault("    base_url: https://u:p@h/v1\n", "user or password");
  fault("    base_url: ''\n", "base_url");
  fault("    api_key_env: sk-abc.def\n", "name of an environment variable");
  fault("    headers: {\"a b\": x}\n", "no HTTP header name");
  fault("    headers: {x: \"a\\nb\"}\n", "line break");
  fault("    headers: {Host: x}\n", "Host");
  fault("    temperature: warm\n", "0 to 2");
  fault("    temperature: 3\n", "0 to 2");
  fault("    reasoning_field: thoughts\n", "reasoning_content");
  fault("    modle: x\n", "modle");
}

TEST_CASE("quirks by host", "[routes]") {
  const auto body = [](const std::string& url) {
    const auto c = configure("    model: m\n    max_tokens: 5\n    base_url: " + url + "\n", {{"OPENAI_API_KEY", "k"}});
    llm::Message message;
    message.role = llm::Role::assistant;
    message.tool_calls = {{"c", "f", "{}"}};
    return c.route->params + c.route->adapter->encode(message);
  };
  CHECK(body("https://api.deepseek.com").find("reasoning_content") != std::string::npos);
  CHECK(body("https://api.deepseek.com").find("\"max_tokens\"") != std::string::npos);
  CHECK(body("https://notdeepseek.com").find("reasoning_content") == std::string::npos);
  CHECK(body("https://api.openai.com/v1").find("\"max_completion_tokens\"") != std::string::npos);
}

TEST_CASE("the recorded route", "[routes]") {
  const auto c = configure("    file: builtin\n", {}, llm::configure_recorded);
  CHECK(c.faults.empty());
  CHECK(c.route->chosen_only);
  CHECK(c.route->ready);
  CHECK(c.route->key_variables.empty());
  const auto absent = configure("    file: no/such/file\n", {}, llm::configure_recorded);
  REQUIRE(absent.faults.size() == 1);
  CHECK(absent.faults[0].find("cannot be read") != std::string::npos);
  const auto wrong = configure("    file: /etc/hostname\n", {}, llm::configure_recorded);
  REQUIRE(wrong.faults.size() == 1);
  CHECK(wrong.faults[0].find("line 1") != std::string::npos);
}

// Every method's answers, good and bad, over the wire.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "support.h"

namespace {

using support::Json;
using support::text_prompt;

int code(const Json& answer) { return answer.contains("error") ? answer["error"]["code"].get<int>() : 0; }
std::string message(const Json& answer) {
  return answer.contains("error") ? answer["error"]["message"].get<std::string>() : "";
}

struct Wire {
  support::Folder folder;
  std::string cwd = folder.make("w");
  support::Harness harness;
  explicit Wire(bool key = true, bool presets = true) : harness({folder.make("state"), presets, key, true, 0}) {
    harness.model->script = support::in_order({support::says("hello")});
    harness.start();
  }
  support::Client& client() { return *harness.client; }
  Json call(const std::string& method, Json params) { return client().call(method, std::move(params)); }
};

TEST_CASE("initialize answers version 1 and what is served, whatever version is asked") {
  Wire wire;
  for (const Json& params :
       {Json{{"protocolVersion", 1}}, Json{{"protocolVersion", 99}}, Json{{"protocolVersion", 0}},
        Json{{"protocolVersion", 2}, {"info", {{"name", "x"}}}, {"capabilities", Json::object()}}}) {
    const Json result = wire.call("initialize", params)["result"];
    CHECK(result["protocolVersion"] == 1);
    CHECK(result["agentCapabilities"] ==
          Json{{"loadSession", true},
               {"promptCapabilities", {{"image", false}, {"audio", false}, {"embeddedContext", true}}},
               {"mcpCapabilities", {{"http", false}, {"sse", false}}},
               {"sessionCapabilities", Json::object()}});
    REQUIRE(result["authMethods"].size() == 1);
    CHECK(!result["authMethods"][0].contains("type"));
    CHECK(result["agentInfo"]["version"] == "1.2.3");
  }
  CHECK(code(wire.call("initialize", Json::object())) == -32602);
  CHECK(code(wire.call("initialize", {{"protocolVersion", "1"}})) == -32602);
}

TEST_CASE("Before initialize only initialize is served") {
  Wire wire;
  CHECK(code(wire.call("session/new", {{"cwd", wire.cwd}, {"mcpServers", Json::array()}})) == -32600);
  CHECK(code(wire.call("nonsense", Json::object())) == -32600);
  wire.harness.initialize();
  CHECK(code(wire.call("nonsense", Json::object())) == -32601);
  CHECK(code(wire.call("_vendor/x", Json::object())) == -32601);
  CHECK(code(wire.call("session/cancel", Json::object())) == -32601);
  wire.client().notify("session/new", {{"cwd", wire.cwd}});
  wire.client().notify("nonsense", Json::object());
  wire.client().notify("session/cancel", {{"sessionId", 5}});
  wire.client().notify("session/cancel", {{"sessionId", "unknown"}});
  wire.client().notify("$/cancel_request", {{"requestId", 12345}});
  const auto before = wire.client().all().size();
  CHECK(code(wire.call("session/prompt", text_prompt("unknown", "x"))) == -32002);
  CHECK(wire.client().all().size() == before + 1);
}

TEST_CASE("authenticate answers at once by whether a key is there") {
  {
    Wire wire;
    wire.harness.initialize();
    CHECK(wire.call("authenticate", {{"methodId", "api-key"}})["result"] == Json::object());
    CHECK(code(wire.call("authenticate", {{"methodId", "other"}})) == -32602);
    CHECK(code(wire.call("authenticate", Json::object())) == -32602);
  }
  Wire wire(false);
  wire.harness.initialize();
  for (const Json& answer : {wire.call("authenticate", {{"methodId", "api-key"}}),
                             wire.call("session/new", {{"cwd", wire.cwd}, {"mcpServers", Json::array()}})}) {
    CHECK(code(answer) == -32000);
    CHECK(message(answer).find("OPENAI_API_KEY") != std::string::npos);
    CHECK(answer["error"]["data"]["kind"] == "auth");
  }
}

TEST_CASE("session/new checks its parameters and says which is wrong") {
  Wire wire;
  wire.harness.initialize();
  const auto refused = [&](Json params) {
    const Json answer = wire.call("session/new", std::move(params));
    CHECK(code(answer) == -32602);
    return message(answer);
  };
  const std::string file = wire.folder.path() + "/file";
  std::ofstream(file) << "x";
  CHECK(refused(Json::object()).find("cwd: must be a string") == 0);
  CHECK(refused({{"cwd", "relative"}}).find("cwd: must be an absolute path") == 0);
  CHECK(refused({{"cwd", ""}}).find("cwd: must be an absolute path") == 0);
  CHECK(refused({{"cwd", wire.cwd + "/none"}}).find("is not usable") != std::string::npos);
  CHECK(refused({{"cwd", file}}).find("is not a directory") != std::string::npos);
  CHECK(refused({{"cwd", wire.cwd + std::string("\0x", 2)}}).find("NUL") != std::string::npos);
  CHECK(refused({{"cwd", wire.cwd}, {"mcpServers", "x"}}).find("mcpServers: must be an array") == 0);
  CHECK(refused({{"cwd", wire.cwd}, {"mcpServers", {1}}}).find("mcpServers[0]: ") == 0);
  const Json good{{"name", "a"}, {"command", "/bin/x"}, {"args", Json::array()}, {"env", Json::array()}};
  const auto bad = [&](const char* key, Json value) {
    Json server = good;
    server[key] = std::move(value);
    return refused({{"cwd", wire.cwd}, {"mcpServers", {good, server}}});
  };
  CHECK(bad("name", 1).find("mcpServers[1].name: ") == 0);
  CHECK(bad("command", nullptr).find("mcpServers[1].command: ") == 0);
  CHECK(bad("args", {"a", 2}).find("mcpServers[1].args[1]: ") == 0);
  CHECK(bad("args", "a").find("mcpServers[1].args: ") == 0);
  CHECK(bad("env", Json::array({{{"name", "a"}}})).find("mcpServers[1].env[0].value: ") == 0);
  CHECK(bad("env", {{"a", "b"}}).find("mcpServers[1].env: ") == 0);
  CHECK(bad("type", "ws").find("mcpServers[1].type: ") == 0);
  CHECK(bad("type", "http").find("mcpServers[1].url: ") == 0);
  CHECK(refused({{"cwd", wire.cwd}, {"additionalDirectories", {"/tmp"}}}).find("additionalDirectories: ") == 0);

  // Well-formed servers and missing lists are no reason to refuse.
  const Json http{{"type", "http"}, {"name", "h"}, {"url", "http://x"}, {"headers", Json::array()}};
  for (const Json& params :
       {Json{{"cwd", wire.cwd}}, Json{{"cwd", wire.cwd}, {"mcpServers", {good, http}}},
        Json{{"cwd", wire.cwd}, {"mcpServers", nullptr}, {"additionalDirectories", Json::array()}}})
    CHECK(wire.call("session/new", params)["result"]["sessionId"].is_string());
}

TEST_CASE("Parameters that are no object and lines that are no request are answered, and the agent goes on") {
  Wire wire;
  wire.harness.initialize();
  wire.client().send_line(R"({"jsonrpc":"2.0","id":"a","method":"session/new","params":[1]})");
  CHECK(code(wire.client().wait([](const Json& m) { return m.value("id", Json()) == "a"; }, "an answer")) == -32602);
  for (const char* line : {"garbage", "[]", "{}", R"({"jsonrpc":"2.0","id":{},"method":"x"})", "\"x\"", "{\"id\":1"})
    wire.client().send_line(line);
  CHECK(wire.harness.new_session(wire.cwd).size() > 8);
}

TEST_CASE("session/prompt refuses what it cannot take and names it") {
  Wire wire;
  wire.harness.initialize();
  const std::string session = wire.harness.new_session(wire.cwd);
  CHECK(code(wire.call("session/prompt", {{"prompt", Json::array()}})) == -32602);
  CHECK(message(wire.call("session/prompt", {{"sessionId", session}})).find("prompt: must be an array") == 0);
  const Json image{{"type", "image"}, {"data", "AA=="}, {"mimeType", "image/png"}};
  CHECK(message(wire.call("session/prompt", {{"sessionId", session}, {"prompt", {image}}})).find("prompt[0]: image") ==
        0);
  // And the session goes on.
  CHECK(wire.call("session/prompt", text_prompt(session, "x"))["result"]["stopReason"] == "end_turn");
}

TEST_CASE("Modes are offered to editors, set, and announced once") {
  Wire wire;
  wire.harness.initialize();
  const Json result = wire.call("session/new", {{"cwd", wire.cwd}})["result"];
  const std::string session = result["sessionId"];
  CHECK(result["modes"]["currentModeId"] == "workspace-write");
  REQUIRE(result["modes"]["availableModes"].size() == 3);
  CHECK(result["modes"]["availableModes"][0]["name"] == "Read only");
  CHECK(wire.call("session/set_mode", {{"sessionId", session}, {"modeId", "danger-full-access"}})["result"] ==
        Json::object());
  CHECK(code(wire.call("session/set_mode", {{"sessionId", session}, {"modeId", "nonsense"}})) == -32602);
  CHECK(code(wire.call("session/set_mode", {{"sessionId", session}, {"modeId", "custom"}})) == -32602);
  CHECK(code(wire.call("session/set_mode", {{"sessionId", session}})) == -32602);
  CHECK(code(wire.call("session/set_mode", {{"modeId", "read-only"}})) == -32602);
  CHECK(code(wire.call("session/set_mode", {{"sessionId", "unknown"}, {"modeId", "read-only"}})) == -32002);
  CHECK(wire.client().updates(session) ==
        std::vector<Json>{{{"sessionUpdate", "current_mode_update"}, {"currentModeId", "danger-full-access"}}});

  // Changed by something else, to what is no preset.
  REQUIRE(wire.harness.agent->find(session)->append(agent::event::SandboxMode{sandbox::Mode::read_only}));
  wire.client().wait([](const Json& m) { return m.dump().find("\"custom\"") != std::string::npos; }, "a custom mode");
  const Json loaded = wire.call("session/load", {{"sessionId", session}, {"cwd", wire.cwd}})["result"];
  CHECK(loaded["modes"]["currentModeId"] == "custom");
  CHECK(loaded["modes"]["availableModes"].size() == 4);
}

TEST_CASE("Without presets there are no modes") {
  Wire wire(true, false);
  wire.harness.initialize();
  const Json result = wire.call("session/new", {{"cwd", wire.cwd}})["result"];
  CHECK(!result.contains("modes"));
  CHECK(code(wire.call("session/set_mode", {{"sessionId", result["sessionId"]}, {"modeId", "read-only"}})) == -32601);
}

TEST_CASE("session/load tells an unknown session, a wrong folder and a damaged log apart") {
  support::Folder folder;
  const std::string cwd = folder.make("w"), other = folder.make("other");
  const std::string state = folder.make("state");
  std::string session;
  {
    support::Harness first({state, true, true, true, 0});
    first.model->script = support::in_order({support::says("hello")});
    first.start();
    first.initialize();
    session = first.new_session(cwd);
    first.client->call("session/prompt", text_prompt(session, "x"));
  }
  {
    support::Harness second({state, true, true, true, 0});
    second.start();
    second.initialize();
    auto& client = *second.client;
    for (const char* id : {"", "unknown", "../../etc", "a/b", "0f0f0f0f-0000-4000-8000-000000000000"})
      CHECK(code(client.call("session/load", {{"sessionId", id}, {"cwd", cwd}})) == -32002);
    CHECK(code(client.call("session/load", {{"cwd", cwd}})) == -32602);
    const Json moved = client.call("session/load", {{"sessionId", session}, {"cwd", other}});
    CHECK(code(moved) == -32602);
    CHECK(message(moved).find(cwd) != std::string::npos);
    CHECK(code(client.call("session/load", {{"sessionId", session}, {"cwd", "w"}})) == -32602);
    CHECK(client.updates(session).empty());

    // Another spelling of the same folder is the same folder.
    CHECK(client.call("session/load", {{"sessionId", session}, {"cwd", cwd + "/../w/."}}).contains("result"));
    CHECK(!client.updates(session).empty());
  }

  // Damage before the last line: refused, and nothing of it is shown.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(state)) {
    if (entry.path().filename() != "session.jsonl") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out);
    std::string first_line;
    std::getline(file, first_line);
    file.seekp(static_cast<std::streamoff>(first_line.size()) + 1);
    file << "#";
  }
  support::Harness third({state, true, true, true, 0});
  third.start();
  third.initialize();
  const Json damaged = third.client->call("session/load", {{"sessionId", session}, {"cwd", cwd}});
  CHECK(code(damaged) == -32603);
  CHECK(damaged["error"]["data"]["kind"] == "corrupt");
  CHECK(damaged["error"]["data"]["details"].get<std::string>().find("line 2") != std::string::npos);
  CHECK(third.client->updates(session).empty());
}

}  // namespace

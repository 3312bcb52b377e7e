// session/load in a fresh agent shows what was shown live.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "support.h"

namespace {

using support::Json;
using support::text_prompt;

// Chunks of one message joined, updates of one call folded into its last state, the last title; usage left out, and the
// user's own words, which a client shows live by itself.
Json normal(const std::vector<Json>& updates) {
  Json list = Json::array();
  std::map<std::string, std::size_t> place;
  for (const auto& update : updates) {
    const std::string kind = update["sessionUpdate"];
    if (kind == "usage_update" || kind == "user_message_chunk") continue;
    const std::string key = update.value("messageId", update.value("toolCallId", kind));
    const auto [found, added] = place.try_emplace(key, list.size());
    if (added) {
      list.push_back(update);
      list.back().erase("updatedAt");
      if (kind == "session_info_update") place[key] = list.size() - 1;
      continue;
    }
    Json& held = list[found->second];
    if (update.contains("messageId")) {
      held["content"]["text"] =
          held["content"]["text"].get<std::string>() + update["content"]["text"].get<std::string>();
    } else {
      for (const auto& [name, value] : update.items())
        if (name != "sessionUpdate" && name != "updatedAt") held[name] = value;
    }
  }
  // The title is announced when it is known, on a replay at its end: its place says nothing.
  std::stable_partition(list.begin(), list.end(),
                        [](const Json& u) { return u["sessionUpdate"] != "session_info_update"; });
  return list;
}

TEST_CASE("A fresh agent replays what was shown live") {
  support::Folder folder;
  const std::string cwd = folder.make("w"), state = folder.make("state");
  const auto tools = [] {
    return std::vector<std::shared_ptr<agent::Tool>>{
        std::make_shared<support::LambdaTool>("look", true,
                                              [](const Json&, agent::ToolContext&) -> agent::ToolOutcome {
                                                return {std::string(100'000, '\n') + "seen", false, nullptr};
                                              }),
        std::make_shared<support::LambdaTool>("act", false, [](const Json&, agent::ToolContext&) -> agent::ToolOutcome {
          return {"could not", true, nullptr};
        })};
  };
  Json live;
  std::string session;
  {
    support::Harness first({state, true, true, true, 1000});
    first.services.tools = tools();
    first.model->script =
        support::in_order({support::calls({{"a", "look", R"({"what":"1"})"}, {"b", "look", "{}"}}, "I look"),
                           support::calls({{"a", "act", R"({"what":"2"})"}, {"x", "no_such_tool", "{}"}}),
                           support::says(std::string(200'000, 'y') + "end", std::string(50'000, 'z')),
                           support::waits_for_stop(), support::says("last words")});
    first.start();
    first.initialize();
    session = first.new_session(cwd);
    first.client->call("session/prompt", text_prompt(session, "first words"));
    const auto id = first.client->request("session/prompt", text_prompt(session, "second words"));
    first.client->wait([](const Json& m) { return m.dump().find("\"partial\"") != std::string::npos; }, "partial");
    first.client->call("session/set_mode", {{"sessionId", session}, {"modeId", "read-only"}});
    first.client->notify("session/cancel", {{"sessionId", session}});
    CHECK(first.client->answer(id)["result"]["stopReason"] == "cancelled");
    first.client->call("session/prompt", text_prompt(session, "third words"));
    auto updates = first.client->updates(session);
    updates.erase(std::remove_if(updates.begin(), updates.end(),
                                 [](const Json& u) { return u["sessionUpdate"] == "current_mode_update"; }),
                  updates.end());
    live = normal(updates);

    // Loaded again in the same connection: the same once more.
    const auto count = first.client->updates(session).size();
    const Json again = first.client->call("session/load", {{"sessionId", session}, {"cwd", cwd}});
    CHECK(again["result"]["modes"]["currentModeId"] == "read-only");
    auto replayed = first.client->updates(session);
    replayed.erase(replayed.begin(), replayed.begin() + static_cast<std::ptrdiff_t>(count));
    CHECK(normal(replayed) == live);
    CHECK(first.client->call("session/prompt", text_prompt(session, "fourth words")).contains("result"));
    // The turn after the load is shown once, not twice.
    int last_words = 0;
    std::string text;
    for (const auto& update : first.client->updates(session))
      if (update["sessionUpdate"] == "agent_message_chunk") text += update["content"]["text"].get<std::string>();
    for (std::size_t at = 0; (at = text.find("last words", at)) != std::string::npos; ++at) ++last_words;
    CHECK(last_words == 3);
  }
  support::Harness second({state, true, true, true, 1000});
  second.services.tools = tools();
  second.model->script = support::in_order({support::says("fresh")});
  second.start();
  second.initialize();
  const Json answer = second.client->call("session/load", {{"sessionId", session}, {"cwd", cwd}});
  CHECK(answer["result"]["modes"]["currentModeId"] == "read-only");
  const auto updates = second.client->updates(session);
  Json replayed = normal(updates);
  // The fourth turn came after `live` was taken; its one message stands before the title.
  REQUIRE(replayed.size() == live.size() + 1);
  replayed.erase(replayed.size() - 2);
  CHECK(replayed == live);

  std::string user;
  for (const auto& update : updates)
    if (update["sessionUpdate"] == "user_message_chunk") user += update["content"]["text"].get<std::string>() + "|";
  CHECK(user == "first words|second words|third words|fourth words|");
  CHECK(second.client->call("session/prompt", text_prompt(session, "x"))["result"]["stopReason"] == "end_turn");
}

}  // namespace

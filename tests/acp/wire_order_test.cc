#include "acp/wire_order.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using base::Json;

Json result(int id, Json value = Json::object()) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(value)}};
}
Json failure(Json id, int code, const std::string& text = "no") {
  return {{"jsonrpc", "2.0"}, {"id", std::move(id)}, {"error", {{"code", code}, {"message", text}}}};
}
Json update(const std::string& kind, const std::string& call = "", const std::string& session = "s") {
  Json body{{"sessionUpdate", kind}};
  if (!call.empty()) body["toolCallId"] = call;
  return {{"jsonrpc", "2.0"}, {"method", "session/update"}, {"params", {{"sessionId", session}, {"update", body}}}};
}
Json permission(const std::string& call) {
  return {{"jsonrpc", "2.0"},
          {"id", 1},
          {"method", "session/request_permission"},
          {"params", {{"sessionId", "s"}, {"toolCall", {{"toolCallId", call}}}}}};
}

struct Order {
  acp::WireOrder order;
  bool ok(const Json& message) { return !order.outgoing(message).has_value(); }
  std::string broken(const Json& message) { return order.outgoing(message).value_or(""); }
  void open() {
    order.incoming(1, "session/new", Json::object());
    REQUIRE(ok(result(1, {{"sessionId", "s"}})));
  }
  void prompt(int id) { order.incoming(id, "session/prompt", Json{{"sessionId", "s"}}); }
};

TEST_CASE_METHOD(Order, "Nothing with a new session id comes before the session/new result") {
  order.incoming(1, "session/new", Json::object());
  CHECK(broken(update("usage_update")).find("before the result that names session s") != std::string::npos);
  CHECK(broken(permission("c")).find("before the result") != std::string::npos);
  REQUIRE(ok(result(1, {{"sessionId", "s"}})));
  CHECK(ok(update("usage_update")));
}

TEST_CASE_METHOD(Order, "A failed session/new names no session") {
  order.incoming(1, "session/new", Json::object());
  REQUIRE(ok(failure(1, -32602)));
  CHECK(!ok(update("usage_update")));
}

TEST_CASE_METHOD(Order, "The whole replay comes before the session/load result") {
  order.incoming(1, "session/load", Json{{"sessionId", "s"}});
  CHECK(ok(update("user_message_chunk")));
  CHECK(ok(update("tool_call", "c")));
  CHECK(ok(update("tool_call_update", "c")));
  REQUIRE(ok(result(1)));
  CHECK(broken(update("user_message_chunk")).find("outside a turn or replay") != std::string::npos);
  CHECK(ok(update("session_info_update")));
}

TEST_CASE_METHOD(Order, "Nothing of a turn comes after its answer") {
  open();
  CHECK(!ok(update("agent_message_chunk")));
  prompt(2);
  for (const char* kind : {"agent_message_chunk", "agent_thought_chunk", "plan"}) CHECK(ok(update(kind)));
  CHECK(ok(update("tool_call", "c")));
  REQUIRE(ok(result(2)));
  for (const char* kind : {"agent_message_chunk", "agent_thought_chunk", "plan"}) CHECK(!ok(update(kind)));
  CHECK(!ok(update("tool_call_update", "c")));
  CHECK(!ok(permission("c")));
  CHECK(ok(update("current_mode_update")));
}

TEST_CASE_METHOD(Order, "A refused second prompt does not end the first") {
  open();
  prompt(2);
  prompt(3);
  REQUIRE(ok(failure(3, -32600)));
  CHECK(ok(update("agent_message_chunk")));
  REQUIRE(ok(result(2)));
  CHECK(!ok(update("agent_message_chunk")));
}

TEST_CASE_METHOD(Order, "A call comes before its permission and its updates") {
  open();
  prompt(2);
  CHECK(broken(permission("c")).find("before its tool_call c") != std::string::npos);
  CHECK(broken(update("tool_call_update", "c")).find("before the tool_call c") != std::string::npos);
  CHECK(ok(update("tool_call", "c")));
  CHECK(ok(permission("c")));
  CHECK(ok(update("tool_call_update", "c")));
}

TEST_CASE_METHOD(Order, "A request is answered once") {
  order.incoming(1, "initialize", Json::object());
  REQUIRE(ok(result(1)));
  CHECK(broken(result(1)).find("second answer") != std::string::npos);
  CHECK(!ok(failure(1, -32603)));
  CHECK(!ok(result(99)));
  // Two requests that carry the same id are two answers.
  order.incoming(5, "x", Json::object());
  order.incoming(5, "x", Json::object());
  CHECK(ok(failure(5, -32601)));
  CHECK(ok(failure(5, -32601)));
  CHECK(!ok(failure(5, -32601)));
}

TEST_CASE_METHOD(Order, "Of requests that share an id, each is open until all are answered") {
  open();
  prompt(2);
  order.incoming(2, "session/prompt", Json{{"sessionId", "other"}});
  CHECK(ok(failure(2, -32002)));
  CHECK(ok(update("agent_message_chunk")));
  CHECK(ok(result(2)));
  CHECK(!ok(update("agent_message_chunk")));
  CHECK(!ok(result(2)));
}

TEST_CASE_METHOD(Order, "What the peer answers by itself is no answer to a request of the same id") {
  CHECK(ok(failure(nullptr, -32700)));
  CHECK(ok(failure(nullptr, -32600, "invalid request: not an object")));
  CHECK(ok(failure("x", -32602, "params must be an object")));
  CHECK(!ok(failure("x", -32602, "cwd: must be a string")));
  open();
  prompt(2);
  CHECK(ok(failure(2, -32600, "invalid request: method must be a string")));
  CHECK(ok(update("agent_message_chunk")));
  CHECK(ok(result(2)));
  CHECK(!ok(result(2)));
}

}  // namespace

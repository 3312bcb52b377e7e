#include "base/rpc_peer.h"

#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <future>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "base/thread.h"

using namespace std::chrono_literals;
using base::Json;
using base::ReadLine;
using base::RpcPeer;

namespace {

constexpr auto patient = 20s;

// A peer over a memory pair, run on its own thread; the test is the other side, line by line.
struct Talk {
  explicit Talk(RpcPeer::Handlers handlers, RpcPeer::Options options = {}) {
    std::unique_ptr<base::LineTransport> ours;
    std::tie(ours, client) = base::memory_transport_pair(100'000);
    peer = std::make_unique<RpcPeer>(std::move(ours), std::move(handlers), options);
    reader = base::Thread("reader", [p = peer.get()] { p->run(); });
  }
  ~Talk() {
    client->close();
    reader.join();
  }
  void send(std::string_view line) { REQUIRE(client->write(line, patient)); }
  std::string line() {
    std::string text;
    return client->read(text) == ReadLine::line ? text : "(end)";
  }
  Json message() { return base::parse_json(line()).value_or(Json()); }
  std::string ask(std::string_view text) {
    send(text);
    return line();
  }

  std::unique_ptr<base::LineTransport> client;
  std::unique_ptr<RpcPeer> peer;
  base::Thread reader;
};

RpcPeer::Handlers echo() {
  RpcPeer::Handlers handlers;
  handlers.on_request = [](const std::string& method, const Json& params, const Json&, base::Reply reply) {
    if (method == "drop") return;
    if (method == "throw") throw std::runtime_error("expected in this test");
    if (method == "null") return reply.result(nullptr);
    if (method == "twice") {
      reply.result(Json{{"first", true}});
      return reply.error({});
    }
    if (method == "fail") return reply.error({-32002, "no such thing", base::share(Json{{"details", "d"}})});
    reply.result(Json{{"method", method}, {"params", params}});
  };
  return handlers;
}

void join_text(Json& queued, Json&& later) {
  queued["text"] = queued["text"].get<std::string>() + later["text"].get<std::string>();
}

base::Merge chunk(const std::string& session, const std::string& message) { return {session, message, join_text}; }

// Holds the writer inside on_write until released, so that what a test queues meets a writer that is behind.
struct Gate {
  std::promise<void> entered, release;
  std::atomic<bool> armed{true};
  std::function<void(const Json&, std::string_view)> on_write() {
    return [this](const Json&, std::string_view) {
      if (!armed.exchange(false)) return;
      entered.set_value();
      release.get_future().wait();
    };
  }
};

}  // namespace

TEST_CASE("a request is answered with its own id, type and all") {
  Talk talk(echo());
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}})") ==
        R"({"jsonrpc":"2.0","id":1,"result":{"method":"m","params":{"a":1}}})");
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":"1","method":"m"})") ==
        R"({"jsonrpc":"2.0","id":"1","result":{"method":"m","params":{}}})");
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":null,"method":"m","params":null})") ==
        R"({"jsonrpc":"2.0","id":null,"result":{"method":"m","params":{}}})");
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":-9007199254740993,"method":"null"})") ==
        R"({"jsonrpc":"2.0","id":-9007199254740993,"result":{}})");
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":18446744073709551615,"method":"null"})") ==
        R"({"jsonrpc":"2.0","id":18446744073709551615,"result":{}})");
}

TEST_CASE("malformed lines are answered and reading goes on") {
  Talk talk(echo());
  const auto code = [&](std::string_view line) {
    const Json answer = base::parse_json(talk.ask(line)).value();
    return std::to_string(answer["error"]["code"].get<int>()) + " " + base::dump(answer["id"]);
  };
  CHECK(code("garbage") == "-32700 null");
  CHECK(code(R"({"jsonrpc":"2.0","id":1,"method":"m")") == "-32700 null");
  CHECK(code("\"\xff\"") == "-32700 null");
  CHECK(code(std::string(1000, '[')) == "-32700 null");
  CHECK(code(R"([{"jsonrpc":"2.0","id":1,"method":"m"}])") == "-32600 null");
  CHECK(code("[]") == "-32600 null");
  CHECK(code("3") == "-32600 null");
  CHECK(code("{}") == "-32600 null");
  CHECK(code(R"({"id":7,"method":"m"})") == "-32600 7");
  CHECK(code(R"({"jsonrpc":"1.0","id":"x","method":"m"})") == "-32600 \"x\"");
  CHECK(code(R"({"jsonrpc":"2.0","id":7})") == "-32600 7");
  CHECK(code(R"({"jsonrpc":"2.0","id":7,"method":3})") == "-32600 7");
  CHECK(code(R"({"jsonrpc":"2.0","id":1.5,"method":"m"})") == "-32600 null");
  CHECK(code(R"({"jsonrpc":"2.0","id":{"a":1},"method":"m"})") == "-32600 null");
  CHECK(code(R"({"jsonrpc":"2.0","id":true,"method":"m"})") == "-32600 null");
  CHECK(code(R"({"jsonrpc":"2.0","id":4,"method":"m","params":[1]})") == "-32602 4");
  CHECK(code(std::string(200'000, 'x')) == "-32600 null");
  CHECK_THAT(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"m"})"), Catch::Contains("result"));
}

TEST_CASE("blank lines, bad notifications and stray answers are not answered") {
  std::vector<std::string> heard;
  RpcPeer::Handlers handlers = echo();
  handlers.on_notification = [&](const std::string& method, const Json&) { heard.push_back(method); };
  Talk talk(std::move(handlers));
  talk.send("");
  talk.send("  ");
  talk.send(R"({"jsonrpc":"2.0","method":"n1"})");
  talk.send(R"({"jsonrpc":"2.0","method":"n2","params":[1]})");
  talk.send(R"({"jsonrpc":"2.0","id":99,"result":{}})");
  talk.send(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}})");
  talk.send(R"({"id":"zz","error":3})");
  CHECK_THAT(talk.ask(R"({"jsonrpc":"2.0","id":5,"method":"m"})"), Catch::Contains("\"id\":5"));
  CHECK(heard == std::vector<std::string>{"n1"});
}

TEST_CASE("a request is answered exactly once") {
  Talk talk(echo());
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"drop"})") ==
        R"({"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error: the request was dropped"}})");
  CHECK_THAT(talk.ask(R"({"jsonrpc":"2.0","id":2,"method":"throw"})"), Catch::Contains("-32603"));
  CHECK_THAT(talk.ask(R"({"jsonrpc":"2.0","id":3,"method":"twice"})"), Catch::Contains("first"));
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":4,"method":"fail"})") ==
        R"({"jsonrpc":"2.0","id":4,"error":{"code":-32002,"message":"no such thing","data":{"details":"d"}}})");
}

TEST_CASE("two open requests with one id are both answered") {
  std::vector<base::Reply> open;
  RpcPeer::Handlers handlers;
  handlers.on_request = [&](const std::string&, const Json&, const Json&, base::Reply reply) {
    open.push_back(std::move(reply));
    if (open.size() < 2) return;
    for (base::Reply& each : open) each.result(Json::object());
    open.clear();
  };
  Talk talk(std::move(handlers));
  talk.send(R"({"jsonrpc":"2.0","id":1,"method":"m"})");
  talk.send(R"({"jsonrpc":"2.0","id":1,"method":"m"})");
  CHECK(talk.line() == R"({"jsonrpc":"2.0","id":1,"result":{}})");
  CHECK(talk.line() == R"({"jsonrpc":"2.0","id":1,"result":{}})");
}

TEST_CASE("a reply may come from another thread, and after the peer") {
  std::promise<base::Reply> kept;
  RpcPeer::Handlers handlers;
  handlers.on_request = [&](const std::string&, const Json&, const Json&, base::Reply reply) {
    kept.set_value(std::move(reply));
  };
  std::optional<base::Reply> reply;
  {
    Talk talk(std::move(handlers));
    talk.send(R"({"jsonrpc":"2.0","id":1,"method":"m"})");
    reply = kept.get_future().get();
  }
  reply->result(Json::object());
}

TEST_CASE("our calls get their answers") {
  Talk talk({});
  std::promise<tl::expected<base::JsonPtr, base::RpcError>> good, bad, odd;
  const auto into = [](auto& promise) { return [&promise](auto answer) { promise.set_value(std::move(answer)); }; };
  const std::int64_t first = talk.peer->call("ask", Json{{"q", 1}}, into(good));
  talk.peer->call("ask", Json::object(), into(bad));
  talk.peer->call("ask", Json::object(), into(odd));
  CHECK(talk.line() == R"({"jsonrpc":"2.0","id":1,"method":"ask","params":{"q":1}})");
  CHECK(first == 1);
  talk.line();
  talk.line();
  talk.send(R"({"jsonrpc":"2.0","id":2,"error":{"code":-32800,"message":"cancelled","data":{"x":1}}})");
  talk.send(R"({"jsonrpc":"2.0","id":"1","result":{"wrong":"type of id"}})");
  talk.send(R"({"jsonrpc":"2.0","id":1,"result":{"a":"yes"}})");
  talk.send(R"({"jsonrpc":"2.0","id":3,"error":"no object"})");
  const auto answer = good.get_future().get();
  REQUIRE(answer);
  CHECK(base::dump(**answer) == R"({"a":"yes"})");
  const auto error = bad.get_future().get();
  REQUIRE_FALSE(error);
  CHECK(error.error().code == base::rpc_code::cancelled);
  CHECK(error.error().message == "cancelled");
  CHECK(base::dump(*error.error().data) == R"({"x":1})");
  CHECK(odd.get_future().get().error().code == base::rpc_code::internal_error);
}

TEST_CASE("cancel_call asks for one of our own calls only") {
  Talk talk({});
  std::promise<void> answered;
  const std::int64_t id = talk.peer->call("slow", Json::object(), [&](auto) { answered.set_value(); });
  talk.peer->cancel_call(id + 100);
  talk.peer->cancel_call(id);
  CHECK_THAT(talk.line(), Catch::Contains("slow"));
  CHECK(talk.line() == R"({"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}})");
  talk.send(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"cancelled"}})");
  answered.get_future().wait();
  talk.peer->cancel_call(id);
  talk.peer->notify("done", Json::object());
  CHECK_THAT(talk.line(), Catch::Contains("done"));
}

TEST_CASE("end of input fails pending calls, and later ones at once") {
  Talk talk({});
  std::promise<tl::expected<base::JsonPtr, base::RpcError>> pending;
  talk.peer->call("ask", Json::object(), [&](auto answer) { pending.set_value(std::move(answer)); });
  CHECK_FALSE(talk.peer->dead());
  talk.client->close();
  CHECK_FALSE(pending.get_future().get());
  CHECK(talk.peer->dead());
  bool failed = false;
  talk.peer->call("ask", Json::object(), [&](auto answer) { failed = !answer; });
  CHECK(failed);
  talk.peer->wait_drained({});
}

TEST_CASE("stop_reading ends run while the writer goes on") {
  Talk talk({});
  talk.peer->stop_reading();
  talk.reader.join();
  talk.peer->notify("late", Json::object());
  CHECK_THAT(talk.line(), Catch::Contains("late"));
}

TEST_CASE("no invalid text leaves") {
  Talk talk({});
  talk.peer->notify("n", Json{{"text", "a\xff\xed\xa0\x80\nb"}});
  const std::string line = talk.line();
  CHECK(base::valid_utf8(line));
  CHECK(line.find('\n') == std::string::npos);
  CHECK(base::parse_json(line));
}

TEST_CASE("two threads notify: each one's order is kept, no line is torn") {
  Talk talk({});
  constexpr int count = 2000;
  const auto produce = [&](const char* who) {
    for (int i = 0; i < count; ++i) talk.peer->notify(who, Json{{"i", i}, {"pad", std::string(50, 'x')}});
  };
  base::Thread left("left", [&] { produce("left"); });
  base::Thread right("right", [&] { produce("right"); });
  std::map<std::string, int> next;
  for (int i = 0; i < 2 * count; ++i) {
    const Json message = talk.message();
    const std::string who = message["method"];
    REQUIRE(message["params"]["i"] == next[who]++);
  }
  CHECK(next["left"] == count);
  CHECK(next["right"] == count);
}

TEST_CASE("what a slow writer has not written yet is merged") {
  Gate gate;
  RpcPeer::Handlers handlers;
  handlers.on_write = gate.on_write();
  Talk talk(std::move(handlers));
  const auto text = [](const char* t) { return Json{{"text", t}}; };
  talk.peer->notify("u", text("first"), chunk("s1", "m1"));
  gate.entered.get_future().wait();  // "first" is being written: what comes now must not change it
  talk.peer->notify("u", text("a"), chunk("s1", "m1"));
  talk.peer->notify("u", text("b"), chunk("s1", "m1"));
  talk.peer->notify("u", text("other session"), chunk("s2", "m1"));
  talk.peer->notify("u", text("c"), chunk("s1", "m1"));    // another session in between does not matter
  talk.peer->notify("u", text("d"), chunk("s1", "m2"));    // another message does
  talk.peer->notify("u", text("e"), chunk("s1", "m1"));    // and its order is kept
  talk.peer->notify("u", text("f"), {"s1", "", nullptr});  // no key: never merged
  talk.peer->notify("u", text("g"), {"s1", "", nullptr});
  gate.release.set_value();
  std::vector<std::string> texts;
  for (int i = 0; i < 7; ++i) texts.push_back(talk.message()["params"]["text"]);
  CHECK(texts == std::vector<std::string>{"first", "abc", "other session", "d", "e", "f", "g"});
}

TEST_CASE("nothing is merged past an answer or a request") {
  Gate gate;
  RpcPeer::Handlers handlers = echo();
  handlers.on_write = gate.on_write();
  Talk talk(std::move(handlers));
  talk.peer->notify("u", Json{{"text", "0"}});
  gate.entered.get_future().wait();
  talk.peer->notify("u", Json{{"text", "1"}}, chunk("s", "m"));
  talk.peer->call("permission", Json::object(), [](auto) {});
  talk.peer->notify("u", Json{{"text", "2"}}, chunk("s", "m"));
  gate.release.set_value();
  CHECK_THAT(talk.line(), Catch::Contains("\"0\""));
  CHECK_THAT(talk.line(), Catch::Contains("\"1\""));
  CHECK_THAT(talk.line(), Catch::Contains("permission"));
  CHECK_THAT(talk.line(), Catch::Contains("\"2\""));
}

TEST_CASE("on_write sees every line in order, before it is written") {
  std::vector<std::string> seen;
  RpcPeer::Handlers handlers;
  handlers.on_write = [&](const Json& message, std::string_view line) {
    CHECK(base::dump(message) == line);
    seen.emplace_back(line);
  };
  Talk talk(std::move(handlers));
  talk.peer->notify("a", Json::object());
  talk.peer->notify("b", Json::object());
  const std::vector<std::string> read{talk.line(), talk.line()};
  CHECK(seen == read);
}

TEST_CASE("wait_drained holds a producer back until the client reads") {
  RpcPeer::Options options;
  options.high_water = 10'000;
  Talk talk({}, options);
  for (int i = 0; i < 100; ++i) talk.peer->notify("u", Json{{"pad", std::string(5'000, 'x')}});
  std::atomic<bool> drained{false};
  base::Thread producer("producer", [&] {
    talk.peer->wait_drained({});
    drained = true;
  });
  CHECK_FALSE(drained);
  for (int i = 0; i < 100; ++i) talk.line();
  producer.join();
  CHECK(drained);
}

TEST_CASE("wait_drained obeys its stop token") {
  RpcPeer::Options options;
  options.high_water = 1;
  Talk talk({}, options);
  for (int i = 0; i < 100; ++i) talk.peer->notify("u", Json{{"pad", std::string(5'000, 'x')}});
  std::stop_source source;
  base::Thread producer("producer", [&] { talk.peer->wait_drained(source.get_token()); });
  source.request_stop();
  producer.join();
  talk.peer->wait_drained(source.get_token());
}

TEST_CASE("a client that reads nothing is dead") {
  base::Pipe in = base::make_pipe().value();
  base::Pipe out = base::make_pipe().value();
  RpcPeer::Options options;
  options.dead_after = 50ms;
  options.high_water = 1000;
  RpcPeer peer(base::fd_transport(std::move(in.read), std::move(out.write)), {}, options);
  bool failed = false;
  peer.call("ask", Json::object(), [&](auto answer) { failed = !answer; });
  for (int i = 0; i < 100; ++i) peer.notify("u", Json{{"pad", std::string(5'000, 'x')}});
  peer.run();  // returns although the client's end of stdin stays open
  CHECK(failed);
  CHECK(peer.dead());
  peer.wait_drained({});
  peer.notify("u", Json::object());
}

TEST_CASE("shutdown drains what is queued, for a bounded time") {
  SECTION("a client that reads gets everything") {
    Talk talk({});
    for (int i = 0; i < 50; ++i) talk.peer->notify("u", Json{{"i", i}, {"pad", std::string(5'000, 'x')}});
    base::Thread closer("closer", [&] { talk.peer->shutdown(patient); });
    for (int i = 0; i < 50; ++i) CHECK(talk.message()["params"]["i"] == i);
    CHECK(talk.line() == "(end)");
    closer.join();
    talk.peer->shutdown(0ms);
  }
  SECTION("a client that does not read cannot hold it up") {
    Talk talk({});
    std::promise<void> failed;
    talk.peer->call("ask", Json::object(), [&](auto) { failed.set_value(); });
    for (int i = 0; i < 50; ++i) talk.peer->notify("u", Json{{"pad", std::string(5'000, 'x')}});
    talk.peer->shutdown(20ms);
    failed.get_future().wait();
    CHECK(talk.peer->dead());
  }
}

TEST_CASE("two peers talk to each other") {
  auto [left_end, right_end] = base::memory_transport_pair();
  RpcPeer left(std::move(left_end), {}, {});
  RpcPeer right(std::move(right_end), echo(), {});
  base::Thread left_reader("left", [&] { left.run(); });
  base::Thread right_reader("right", [&] { right.run(); });
  std::promise<std::string> answer, unknown;
  left.call("hello", Json{{"n", 1}}, [&](auto a) { answer.set_value(base::dump(**a)); });
  CHECK(answer.get_future().get() == R"({"method":"hello","params":{"n":1}})");
  right.call("anything", Json::object(), [&](auto a) { unknown.set_value(a.error().message); });
  CHECK(unknown.get_future().get() == "method not found: anything");
  left.shutdown(patient);
  right.shutdown(patient);
}

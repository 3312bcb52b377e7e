// The transport against servers that misbehave, over plain sockets.
#include <catch2/catch.hpp>
#include <future>
#include <string>

#include "http_call.h"
#include "raw_server.h"

namespace {

using base::ErrorCode;
using test::call;
using test::RawServer;
using test::read_request;
using test::request_to;
using test::send_all;
using namespace std::chrono_literals;

const std::string chunked_head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

std::string url(const RawServer& server, const std::string& path = "/v1/chat/completions") {
  return "http://127.0.0.1:" + std::to_string(server.port()) + path;
}

llm::HttpPost direct() { return llm::make_http_post({}); }

// A request that is stopped when `ready` says so must end long before its limits (minutes). The promise is 100 ms; the
// bound here allows for a loaded machine under a sanitizer.
template <class Ready>
void check_stops(const llm::HttpRequest& request, Ready ready) {
  std::stop_source source;
  auto running = std::async(std::launch::async, [&] { return call(direct(), request, source.get_token()); });
  ready();
  const auto start = std::chrono::steady_clock::now();
  source.request_stop();
  const auto out = running.get();
  const auto took = std::chrono::steady_clock::now() - start;
  INFO("stopped within " << std::chrono::duration_cast<std::chrono::microseconds>(took).count() << " us");
  REQUIRE_FALSE(out.response);
  CHECK(out.response.error().code == ErrorCode::cancelled);
  CHECK(took < 2s);
}

}  // namespace

TEST_CASE("a request and its streamed answer", "[http]") {
  std::string seen;
  RawServer server([&](int fd, int) {
    seen = read_request(fd);
    send_all(fd, chunked_head + "5\r\nhello\r\n1\r\n \r\n");
    send_all(fd, "5\r\nworld\r\n0\r\n\r\n");
  });
  const auto out = call(direct(), request_to(url(server, "/v1/x?api-version=1")));
  REQUIRE(out.response);
  CHECK(out.response->status == 200);
  CHECK(out.response->headers.find("content-type")->second == "text/event-stream");
  CHECK(out.body == "hello world");
  CHECK(out.heads == 1);
  CHECK(seen.find("POST /v1/x?api-version=1 HTTP/1.1\r\n") == 0);
  CHECK(seen.find("Authorization: Bearer sk-secret\r\n") != std::string::npos);
  CHECK(seen.find("Accept-Encoding: identity\r\n") != std::string::npos);
  CHECK(seen.find("Host: 127.0.0.1:" + std::to_string(server.port()) + "\r\n") != std::string::npos);
  CHECK(seen.ends_with("\r\n\r\n{\"model\":\"m\"}"));
}

TEST_CASE("a name is resolved, and the next address tried", "[http]") {
  RawServer server([&](int fd, int) {
    read_request(fd);
    send_all(fd, ok);
  });
  // localhost is ::1 and 127.0.0.1 on most machines; nothing listens on ::1.
  const auto out = call(direct(), request_to("http://localhost:" + std::to_string(server.port()) + "/"));
  REQUIRE(out.response);
  CHECK(out.body == "ok");
  const auto unknown = call(direct(), request_to("http://no-such-host.invalid/"));
  REQUIRE_FALSE(unknown.response);
  CHECK(unknown.response.error().code == ErrorCode::transport);
  CHECK(unknown.message().find("no-such-host.invalid") != std::string::npos);
}

TEST_CASE("nobody listens", "[http]") {
  int port = 0;
  ::close(test::listen_loopback(1, port));
  const auto out = call(direct(), request_to("http://127.0.0.1:" + std::to_string(port) + "/"));
  REQUIRE_FALSE(out.response);
  CHECK(out.response.error().code == ErrorCode::transport);
  CHECK(out.message().find("cannot connect to 127.0.0.1:" + std::to_string(port)) != std::string::npos);
}

TEST_CASE("an error body is kept up to its limit", "[http]") {
  RawServer server([&](int fd, int) {
    read_request(fd);
    send_all(
        fd, "HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 1000000\r\n\r\n" + std::string(1'000'000, 'x'));
  });
  auto request = request_to(url(server));
  request.limits.error_body = 1000;
  const auto out = call(direct(), request);
  REQUIRE(out.response);
  CHECK(out.response->status == 429);
  CHECK(out.response->headers.find("retry-after")->second == "7");
  CHECK(out.response->error_body == std::string(1000, 'x'));
  CHECK(out.body.empty());
}

TEST_CASE("an answer to a request whose body was not taken", "[http]") {
  RawServer server([&](int fd, int) {
    char byte;
    (void)!::recv(fd, &byte, 1, 0);
    send_all(fd, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
  });  // closed with most of the body unread: the sender's write fails
  auto request = request_to(url(server));
  request.body.assign(8 << 20, 'x');
  const auto out = call(direct(), request);
  REQUIRE(out.response);
  CHECK(out.response->status == 413);
  CHECK(out.response->error_body == "big");
}

TEST_CASE("a body that ends early is a cut", "[http]") {
  const auto cut = [](const std::string& bytes, bool reset = false) {
    RawServer server([&](int fd, int) {
      read_request(fd);
      send_all(fd, bytes);
      if (reset) {
        const linger now{1, 0};
        ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
      }
    });
    return call(direct(), request_to(url(server)));
  };
  for (const bool reset : {false, true}) {
    const auto chunked = cut(chunked_head + "5\r\nhello\r\n", reset);
    REQUIRE_FALSE(chunked.response);
    CHECK(chunked.response.error().code == (chunked.heads == 1 ? ErrorCode::cut_stream : ErrorCode::transport));
  }
  const auto length = cut("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
  REQUIRE_FALSE(length.response);
  CHECK(length.response.error().code == ErrorCode::cut_stream);
  CHECK(length.body == "hello");
  const auto until_close = cut("HTTP/1.1 200 OK\r\n\r\nhello");
  REQUIRE(until_close.response);
  CHECK(until_close.body == "hello");
  const auto nothing = cut("");
  REQUIRE_FALSE(nothing.response);
  CHECK(nothing.response.error().code == ErrorCode::transport);
  CHECK(nothing.message().find("without an answer") != std::string::npos);
}

TEST_CASE("what is no HTTP answer, or has no end", "[http]") {
  const auto answer = [](const std::string& bytes, int repeat = 0) {
    RawServer server([&](int fd, int) {
      read_request(fd);
      send_all(fd, bytes);
      for (int i = 0; i < repeat; ++i) send_all(fd, std::string(1000, 'x'));
      ::shutdown(fd, SHUT_WR);
      test::wait_for_close(fd);
    });
    return call(direct(), request_to(url(server)));
  };
  for (const auto& out : {answer("SSH-2.0-OpenSSH_9.2\r\n"), answer("\r\n\r\n"), answer(std::string(100, '\0'))}) {
    REQUIRE_FALSE(out.response);
    CHECK(out.response.error().code == ErrorCode::transport);
  }
  // A status line, a header, headers, a chunk size without end: refused before memory or the stack is full.
  for (const auto& out : {answer("HTTP/1.1 200 ", 2000), answer("HTTP/1.1 200 OK\r\nX: ", 2000), answer("x", 2000),
                          answer(chunked_head + "5;", 2000)}) {
    REQUIRE_FALSE(out.response);
    CHECK(out.response.error().code == ErrorCode::malformed);
    CHECK(out.message().find("without end") != std::string::npos);
  }
}

TEST_CASE("a compressed body is refused", "[http]") {
  RawServer server([&](int fd, int) {
    read_request(fd);
    send_all(fd, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc");
  });
  const auto out = call(direct(), request_to(url(server)));
  REQUIRE_FALSE(out.response);
  CHECK(out.response.error().code == ErrorCode::malformed);
  CHECK(out.message().find("gzip") != std::string::npos);
  CHECK(out.body.empty());
}

TEST_CASE("a compressed error keeps its status", "[http]") {
  RawServer server([&](int fd, int) {
    read_request(fd);
    send_all(fd, "HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc");
  });
  const auto out = call(direct(), request_to(url(server)));
  REQUIRE(out.response);
  CHECK(out.response->status == 429);
  CHECK(out.response->headers.count("retry-after") == 1);
  CHECK(out.response->error_body.find("compressed as br") != std::string::npos);
}

TEST_CASE("a slow reader is not a slow server", "[http]") {
  RawServer server([&](int fd, int) {
    read_request(fd);
    send_all(fd, chunked_head + "1\r\na\r\n");
    std::this_thread::sleep_for(50ms);
    send_all(fd, "1\r\nb\r\n0\r\n\r\n");
  });
  auto request = request_to(url(server));
  request.limits.idle = 1s;
  request.limits.no_content = 1s;
  llm::HttpSink sink;
  sink.on_body = [](std::string_view, bool& progress) {
    std::this_thread::sleep_for(1500ms);
    progress = true;
    return true;
  };
  const auto response = direct()(request, sink, {});
  INFO((response ? "" : response.error().message));
  CHECK(response);
}

TEST_CASE("plain HTTP through a proxy", "[http]") {
  std::string seen;
  RawServer proxy([&](int fd, int) {
    seen = read_request(fd);
    send_all(fd, ok);
  });
  llm::HttpEnvironment environment;
  environment.http_proxy = "http://us%3Aer:pass@127.0.0.1:" + std::to_string(proxy.port());
  const auto out = call(llm::make_http_post(environment), request_to("http://api.test/v1/x"));
  REQUIRE(out.response);
  CHECK(seen.find("POST http://api.test:80/v1/x HTTP/1.1\r\n") == 0);
  CHECK(seen.find("Host: api.test\r\n") != std::string::npos);
  CHECK(seen.find("Proxy-Authorization: Basic dXM6ZXI6cGFzcw==") != std::string::npos);
}

TEST_CASE("redirects keep the request and never leave the host", "[http]") {
  RawServer other([&](int fd, int) { read_request(fd); });
  std::string second;
  std::string location;
  std::string status = "307";
  RawServer server([&](int fd, int) {
    for (;;) {
      const std::string request = read_request(fd);
      if (request.empty()) return;
      if (request.find("POST /new") == 0) {
        second = request;
        send_all(fd, ok);
      } else {
        send_all(fd, "HTTP/1.1 " + status + " Moved\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n");
      }
    }
  });
  const auto go = [&] {
    second.clear();
    return call(direct(), request_to(url(server)));
  };
  const std::string same = "http://127.0.0.1:" + std::to_string(server.port());
  for (const std::string& target : {std::string("/new"), same + "/new"}) {
    for (const char* code : {"307", "308"}) {
      location = target;
      status = code;
      const auto out = go();
      REQUIRE(out.response);
      CHECK(out.response->status == 200);
      CHECK(second.find("Authorization: Bearer sk-secret") != std::string::npos);
      CHECK(second.ends_with("{\"model\":\"m\"}"));
    }
  }
  status = "302";
  location = "/new";
  CHECK(go().response->status == 302);
  status = "307";
  const std::vector<std::string> elsewhere = {"http://127.0.0.1:" + std::to_string(other.port()) + "/new",
                                              "http://localhost/new",
                                              "https://127.0.0.1:" + std::to_string(server.port()) + "/new",
                                              "//127.0.0.1:" + std::to_string(other.port()) + "/new"};
  for (const std::string& target : elsewhere) {
    location = target;
    const auto out = go();
    REQUIRE(out.response);
    CHECK(out.response->status == 307);
    CHECK(out.response->headers.find("location")->second == target);
  }
  CHECK(other.connections() == 0);
  location = "/again";
  const auto circle = go();
  REQUIRE_FALSE(circle.response);
  CHECK(circle.message().find("circle") != std::string::npos);
}

TEST_CASE("a connection is used again, and a stale one costs nothing", "[http]") {
  const llm::HttpPost post = direct();
  SECTION("kept open") {
    RawServer server([&](int fd, int) {
      while (!read_request(fd).empty()) send_all(fd, chunked_head + "8\r\nhi [END]\r\n0\r\n\r\n");
    });
    for (int i = 0; i < 3; ++i) {
      const auto out = call(post, request_to(url(server)), {}, true, "[END]");
      REQUIRE(out.response);
      CHECK(out.body == "hi [END]");
    }
    CHECK(server.connections() == 1);
  }
  SECTION("closed by the server after each answer, without saying so") {
    RawServer server([&](int fd, int) {
      read_request(fd);
      send_all(fd, ok);
    });
    for (int i = 0; i < 3; ++i) REQUIRE(call(post, request_to(url(server))).response);
    CHECK(server.connections() == 3);
  }
  SECTION("closed when the next request arrives") {
    RawServer server([&](int fd, int) {
      read_request(fd);
      send_all(fd, ok);
      read_request(fd);
    });
    REQUIRE(call(post, request_to(url(server))).response);
    REQUIRE(call(post, request_to(url(server))).response);
    CHECK(server.connections() == 2);
  }
  SECTION("a new connection that fails is not tried again") {
    RawServer server([&](int fd, int) { read_request(fd); });
    CHECK_FALSE(call(post, request_to(url(server))).response);
    CHECK(server.connections() == 1);
  }
}

TEST_CASE("the end of the answer ends the request, whatever the server does then", "[http]") {
  RawServer server([&](int fd, int) {
    read_request(fd);
    send_all(fd, chunked_head + "5\r\n[END]\r\n");
    test::wait_for_close(fd);
  });
  const auto out = call(direct(), request_to(url(server)), {}, true, "[END]");
  REQUIRE(out.response);
  CHECK(out.took < 5s);
}

TEST_CASE("each limit fires with its own text", "[http]") {
  const auto limited = [](const std::string& bytes, const char* option, llm::HttpLimits limits,
                          bool heartbeats = false) {
    RawServer server([&](int fd, int) {
      read_request(fd);
      send_all(fd, bytes);
      pollfd entry{fd, POLLIN, 0};
      while (::poll(&entry, 1, 20) == 0) {
        if (heartbeats) send_all(fd, "3\r\n:\n\n\r\n");
      }
    });
    auto request = request_to(url(server));
    request.limits = limits;
    const auto out = call(direct(), request, {}, false);
    REQUIRE_FALSE(out.response);
    INFO(out.message());
    CHECK(out.response.error().code == ErrorCode::timed_out);
    CHECK(out.message().find(option) != std::string::npos);
    CHECK(out.took < 20s);
  };
  llm::HttpLimits first;
  first.first_byte = 100ms;
  limited("", "first_byte_timeout_ms", first);
  llm::HttpLimits idle;
  idle.idle = 100ms;
  limited(chunked_head, "idle_timeout_ms", idle);
  limited(chunked_head + "5\r\nhel", "idle_timeout_ms", idle);
  llm::HttpLimits content;
  content.no_content = 300ms;
  content.idle = 30s;
  limited(chunked_head, "no_content_timeout_ms", content, true);
}

TEST_CASE("a server that accepts nobody", "[http]") {
  int port = 0;
  const int listener = test::listen_loopback(0, port);
  std::vector<int> fill;  // the queue of connections nobody accepts; further ones get no answer
  for (int i = 0; i < 4; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address = test::loopback(port);
    (void)!::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
    fill.push_back(fd);
  }
  auto request = request_to("http://127.0.0.1:" + std::to_string(port) + "/");
  SECTION("the limit") {
    request.limits.connect = 200ms;
    const auto out = call(direct(), request);
    REQUIRE_FALSE(out.response);
    CHECK(out.response.error().code == ErrorCode::timed_out);
    CHECK(out.message().find("connect_timeout_ms") != std::string::npos);
    CHECK(out.took < 10s);
  }
  SECTION("a stop") {
    check_stops(request, [] { std::this_thread::sleep_for(100ms); });  // nothing tells that connect() is under way
  }
  SECTION("stopped before it began") {
    std::stop_source source;
    source.request_stop();
    const auto out = call(direct(), request, source.get_token());
    REQUIRE_FALSE(out.response);
    CHECK(out.response.error().code == ErrorCode::cancelled);
  }
  for (const int fd : fill) ::close(fd);
  ::close(listener);
}

TEST_CASE("a stop ends the request in every state", "[http]") {
  std::promise<void> reached;
  const auto ready = [&] { reached.get_future().wait(); };
  SECTION("waiting for headers") {
    RawServer server([&](int fd, int) {
      read_request(fd);
      reached.set_value();
      test::wait_for_close(fd);
    });
    check_stops(request_to(url(server)), ready);
  }
  SECTION("sending") {
    RawServer server([&](int fd, int) {
      char byte;
      (void)!::recv(fd, &byte, 1, 0);
      reached.set_value();
      pollfd entry{fd, 0, 0};  // reads nothing, so the sender blocks; woken by the reset
      ::poll(&entry, 1, 30'000);
    });
    auto request = request_to(url(server));
    request.body.assign(64 << 20, 'x');
    check_stops(request, ready);
  }
  SECTION("streaming") {
    RawServer server([&](int fd, int) {
      read_request(fd);
      send_all(fd, chunked_head + "5\r\nhello\r\n");
      reached.set_value();
      test::wait_for_close(fd);
    });
    check_stops(request_to(url(server)), ready);
  }
  SECTION("in the TLS handshake") {
    RawServer server([&](int fd, int) {
      char byte;
      (void)!::recv(fd, &byte, 1, 0);
      reached.set_value();
      test::wait_for_close(fd);
    });
    check_stops(request_to("https://127.0.0.1:" + std::to_string(server.port()) + "/"), ready);
  }
}

TEST_CASE("the handshake counts as connecting", "[http]") {
  RawServer server([&](int fd, int) { test::wait_for_close(fd); });
  auto request = request_to("https://127.0.0.1:" + std::to_string(server.port()) + "/");
  request.limits.connect = 200ms;
  const auto out = call(direct(), request);
  REQUIRE_FALSE(out.response);
  CHECK(out.response.error().code == ErrorCode::timed_out);
  CHECK(out.message().find("connect_timeout_ms") != std::string::npos);
}

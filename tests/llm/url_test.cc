#include "llm/url.h"

#include <catch2/catch.hpp>

#include "llm/proxy.h"

TEST_CASE("the endpoint of every form of base URL", "[url]") {
  const auto endpoint = [](const char* base) {
    const auto url = llm::chat_completions_url(base);
    return url ? url->to_string() : "! " + url.error().message;
  };
  CHECK(endpoint("https://api.openai.com/v1") == "https://api.openai.com/v1/chat/completions");
  CHECK(endpoint("https://api.openai.com/v1/") == "https://api.openai.com/v1/chat/completions");
  CHECK(endpoint("https://api.deepseek.com") == "https://api.deepseek.com/v1/chat/completions");
  CHECK(endpoint("http://localhost:11434/") == "http://localhost:11434/v1/chat/completions");
  CHECK(endpoint("https://h.example/v1/chat/completions") == "https://h.example/v1/chat/completions");
  CHECK(endpoint("https://h.example/openai/deployments/d?api-version=2024-10-21") ==
        "https://h.example/openai/deployments/d/chat/completions?api-version=2024-10-21");
  CHECK(endpoint("HTTPS://H.Example:443/v1") == "https://h.example/v1/chat/completions");
  CHECK(endpoint("http://[::1]:8080/v1") == "http://[::1]:8080/v1/chat/completions");
  for (const char* bad :
       {"", "api.openai.com/v1", "ftp://x/v1", "https://", "https:///v1", "https://a b/v1", "https://h/v1#x",
        "https://h:0/v1", "https://h:99999/", "https://h:x/", "https://user:pw@h/v1", "https://[::1/v1",
        "https://h\n/v1", "https://[zz]/", "https://h\"/"}) {
    INFO(bad);
    CHECK_FALSE(llm::chat_completions_url(bad));
  }
}

TEST_CASE("NO_PROXY", "[url]") {
  const auto matches = [](const char* list, const char* host, int port = 443) {
    return llm::no_proxy_matches(list, host, port);
  };
  CHECK(matches("*", "anything"));
  CHECK(matches("a.example, b.example", "b.example"));
  CHECK(matches("example", "a.example"));
  CHECK(matches(".example", "a.example"));
  CHECK(matches("*.example", "a.example"));
  CHECK(matches("Example", "a.example"));
  CHECK_FALSE(matches("ample", "a.example"));
  CHECK_FALSE(matches("a.example", "example"));
  CHECK(matches("a.example:8443", "a.example", 8443));
  CHECK_FALSE(matches("a.example:8443", "a.example", 443));
  CHECK(matches("10.0.0.0/8", "10.1.2.3"));
  CHECK_FALSE(matches("10.0.0.0/8", "11.1.2.3"));
  CHECK(matches("192.168.4.0/22", "192.168.7.1"));
  CHECK_FALSE(matches("192.168.4.0/22", "192.168.8.1"));
  CHECK(matches("fd00::/8", "fd12::1"));
  CHECK(matches("[fd12::1]:443", "fd12::1"));
  CHECK(matches("10.1.2.3", "10.1.2.3"));
  CHECK_FALSE(matches("0.1.2.3", "10.1.2.3"));
  CHECK_FALSE(matches("", "a"));
  CHECK_FALSE(matches("10.0.0.0/99,/8,10.0.0.0/", "10.0.0.1"));
}

TEST_CASE("which proxy is used", "[url]") {
  llm::HttpEnvironment environment;
  environment.https_proxy = "http://us%40er:pw@proxy.example:3128";
  environment.http_proxy = "plain.example:8080";
  environment.no_proxy = "internal.example";
  const auto proxy = [&](const char* text) { return llm::choose_proxy(environment, *llm::parse_url(text)); };
  const auto https = proxy("https://api.example/");
  REQUIRE(https);
  REQUIRE(*https);
  CHECK((*https)->host == "proxy.example");
  CHECK((*https)->port == 3128);
  CHECK((*https)->user == "us@er");
  CHECK((*https)->to_string().find("pw") == std::string::npos);
  CHECK((*proxy("http://api.example/"))->host == "plain.example");
  CHECK_FALSE(*proxy("https://internal.example/"));
  CHECK_FALSE(*proxy("https://localhost:8443/"));
  CHECK_FALSE(*proxy("https://127.0.0.5/"));
  CHECK_FALSE(*proxy("http://[::1]/"));
  environment.https_proxy = "socks5://proxy.example";
  CHECK_FALSE(proxy("https://api.example/"));
  environment.https_proxy = "https://proxy.example";
  REQUIRE_FALSE(proxy("https://api.example/"));
  CHECK(proxy("https://api.example/").error().message.find("HTTPS_PROXY") != std::string::npos);
}

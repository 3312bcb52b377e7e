#include "llm/url.h"

#include <arpa/inet.h>

#include <charconv>

#include "base/text.h"

namespace llm {

namespace {

using base::ErrorCode;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

bool plain_host(std::string_view host) {
  for (const char c : host) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    if (!ok) return false;
  }
  return !host.empty();
}

}  // namespace

std::string Url::host_port() const {
  std::string text = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != (tls() ? 443 : 80)) text += ":" + std::to_string(port);
  return text;
}

std::string Url::to_string() const { return scheme + "://" + host_port() + path + query; }

bool is_ip_address(const std::string& host) {
  unsigned char buffer[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 || inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1") return true;
  in_addr address{};
  return inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

base::Result<Url> parse_url(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) {
      return base::fail(ErrorCode::invalid_argument, "a URL cannot hold spaces or control characters");
    }
  }
  Url url;
  const std::size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) {
    return base::fail(ErrorCode::invalid_argument, "a URL starts with https:// or http://");
  }
  url.scheme = base::to_lower(text.substr(0, scheme_end));
  if (url.scheme != "http" && url.scheme != "https") {
    return base::fail(ErrorCode::invalid_argument, "the URL scheme \"" + base::ellipsize(url.scheme, 40) +
                                                       "\" is not supported; use https:// or http://");
  }
  std::string_view rest = text.substr(scheme_end + 3);
  if (rest.find('#') != std::string_view::npos) {
    return base::fail(ErrorCode::invalid_argument, "a URL with a #fragment cannot be requested; remove it");
  }
  const std::size_t authority_end = rest.find_first_of("/?");
  std::string_view authority = rest.substr(0, authority_end);
  rest = authority_end == std::string_view::npos ? std::string_view() : rest.substr(authority_end);
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = authority.substr(0, at);
    const std::size_t colon = user.find(':');
    url.user = percent_decode(user.substr(0, colon));
    if (colon != std::string_view::npos) url.password = percent_decode(user.substr(colon + 1));
    authority.remove_prefix(at + 1);
  }
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) {
      return base::fail(ErrorCode::invalid_argument, "the URL's IPv6 address lacks its closing ]");
    }
    url.host = base::to_lower(authority.substr(1, close - 1));
    if (!is_ip_address(url.host)) return base::fail(ErrorCode::invalid_argument, "the URL's [...] is no IPv6 address");
    port = authority.substr(close + 1);
  } else {
    const std::size_t colon = authority.find(':');
    url.host = base::to_lower(authority.substr(0, colon));
    if (!plain_host(url.host)) {
      return base::fail(ErrorCode::invalid_argument, "the URL has no valid host name (letters, digits, '.', '-')");
    }
    port = colon == std::string_view::npos ? std::string_view() : authority.substr(colon);
  }
  url.port = url.tls() ? 443 : 80;
  if (!port.empty()) {
    int value = 0;
    const char* end = port.data() + port.size();
    const auto result = std::from_chars(port.data() + 1, end, value);
    if (port.front() != ':' || result.ec != std::errc() || result.ptr != end || value < 1 || value > 65535) {
      return base::fail(ErrorCode::invalid_argument, "the URL's port is not a number from 1 to 65535");
    }
    url.port = value;
  }
  const std::size_t query = rest.find('?');
  url.path = std::string(rest.substr(0, query));
  if (query != std::string_view::npos) url.query = std::string(rest.substr(query));
  return url;
}

base::Result<Url> chat_completions_url(std::string_view base_url) {
  auto url = parse_url(base_url);
  if (!url) return url;
  if (!url->user.empty() || !url->password.empty()) {
    return base::fail(ErrorCode::invalid_argument,
                      "a base URL cannot hold a user or password; put the key in the variable named by api_key_env");
  }
  constexpr std::string_view endpoint = "/chat/completions";
  while (url->path.ends_with('/')) url->path.pop_back();
  if (url->path.ends_with(endpoint)) return url;
  if (url->path.empty()) url->path = "/v1";
  url->path += endpoint;
  return url;
}

}  // namespace llm

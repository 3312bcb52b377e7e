#include "llm/proxy.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace llm {

namespace {

struct Address {
  unsigned char bytes[16] = {};
  int bits = 0;  // 32, 128; 0: no address
};

Address parse_address(std::string_view text) {
  Address address;
  const std::string copy(text);
  if (inet_pton(AF_INET, copy.c_str(), address.bytes) == 1) {
    address.bits = 32;
  } else if (inet_pton(AF_INET6, copy.c_str(), address.bytes) == 1) {
    address.bits = 128;
  }
  return address;
}

bool in_network(const Address& host, std::string_view network, std::string_view prefix) {
  const Address base = parse_address(network);
  int bits = -1;
  const auto result = std::from_chars(prefix.data(), prefix.data() + prefix.size(), bits);
  if (host.bits == 0 || base.bits != host.bits || result.ec != std::errc() || bits < 0 || bits > host.bits)
    return false;
  const int whole = bits / 8;
  if (std::memcmp(host.bytes, base.bytes, static_cast<std::size_t>(whole)) != 0) return false;
  if (bits % 8 == 0) return true;
  const int mask = 0xff << (8 - bits % 8);
  return ((host.bytes[whole] ^ base.bytes[whole]) & mask & 0xff) == 0;
}

bool entry_matches(std::string_view entry, std::string_view host, int port) {
  if (entry == "*") return true;
  const Address address = parse_address(host);
  if (const std::size_t slash = entry.find('/'); slash != std::string_view::npos) {
    return in_network(address, entry.substr(0, slash), entry.substr(slash + 1));
  }
  if (entry.starts_with('[')) {  // [::1] or [::1]:8080
    const std::size_t close = entry.find(']');
    if (close == std::string_view::npos) return false;
    const std::string_view wanted = entry.substr(close + 1);
    if (!wanted.empty() && wanted != ":" + std::to_string(port)) return false;
    entry = entry.substr(1, close - 1);
  } else if (const std::size_t colon = entry.find(':');
             colon != std::string_view::npos && entry.find(':', colon + 1) == std::string_view::npos) {
    if (entry.substr(colon + 1) != std::to_string(port)) return false;
    entry = entry.substr(0, colon);
  }
  if (address.bits != 0) {
    const Address other = parse_address(entry);
    return other.bits == address.bits && std::memcmp(other.bytes, address.bytes, sizeof address.bytes) == 0;
  }
  if (entry.starts_with("*.")) entry.remove_prefix(1);
  while (entry.starts_with('.')) entry.remove_prefix(1);
  if (entry.empty()) return false;
  if (host == entry) return true;
  return host.size() > entry.size() && host.ends_with(entry) && host[host.size() - entry.size() - 1] == '.';
}

std::string environment_value(const char* lower, const char* upper) {
  for (const char* name : {lower, upper}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

}  // namespace

bool no_proxy_matches(std::string_view no_proxy, std::string_view host, int port) {
  const std::string list = base::to_lower(no_proxy);
  std::size_t at = 0;
  while (at < list.size()) {
    const std::size_t end = std::min(list.find_first_of(", \t", at), list.size());
    const std::string_view entry = std::string_view(list).substr(at, end - at);
    if (!entry.empty() && entry_matches(entry, host, port)) return true;
    at = end + 1;
  }
  return false;
}

base::Result<std::optional<Url>> choose_proxy(const HttpEnvironment& environment, const Url& url) {
  const std::string& value = url.tls() ? environment.https_proxy : environment.http_proxy;
  if (value.empty() || is_loopback(url.host) || no_proxy_matches(environment.no_proxy, url.host, url.port)) {
    return std::nullopt;
  }
  const std::string variable = url.tls() ? "HTTPS_PROXY" : "HTTP_PROXY";
  auto proxy = parse_url(value.find("://") == std::string::npos ? "http://" + value : value);
  if (!proxy) {
    return base::fail(base::ErrorCode::invalid_argument,
                      variable + " cannot be used: " + proxy.error().message + " (expected http://host:port)");
  }
  if (proxy->tls()) {
    return base::fail(base::ErrorCode::invalid_argument,
                      variable + " names an https:// proxy; only http:// proxies are supported");
  }
  return std::optional<Url>(std::move(*proxy));
}

HttpEnvironment read_http_environment() {
  HttpEnvironment environment;
  environment.https_proxy = environment_value("https_proxy", "HTTPS_PROXY");
  environment.http_proxy = environment_value("http_proxy", "HTTP_PROXY");
  environment.no_proxy = environment_value("no_proxy", "NO_PROXY");
  environment.cert_file = environment_value("SSL_CERT_FILE", "SSL_CERT_FILE");
  environment.cert_dir = environment_value("SSL_CERT_DIR", "SSL_CERT_DIR");
  return environment;
}

}  // namespace llm

// TLS and proxies: a real server with certificates made here. The only test that includes httplib.h (for its server,
// and with it OpenSSL).
#define CPPHTTPLIB_OPENSSL_SUPPORT
#include <httplib.h>
#include <openssl/pem.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "base/fd.h"
#include "http_call.h"
#include "raw_server.h"

namespace {

using base::ErrorCode;
using test::call;
using test::request_to;

struct Certificate {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* x509 = X509_new();
  ~Certificate() {
    X509_free(x509);
    EVP_PKEY_free(key);
  }
};

void extend(X509* x509, int nid, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
  X509_add_ext(x509, extension, -1);
  X509_EXTENSION_free(extension);
}

// `names`: "DNS:localhost,IP:127.0.0.1", or "" for an authority. `days` < 0: expired.
std::unique_ptr<Certificate> make_certificate(const char* common_name, const char* names, const Certificate* issuer,
                                              int days = 2) {
  auto made = std::make_unique<Certificate>();
  X509* x509 = made->x509;
  static long serial = 1;
  X509_set_version(x509, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), serial++);
  X509_gmtime_adj(X509_getm_notBefore(x509), -10L * 86400);
  X509_gmtime_adj(X509_getm_notAfter(x509), days * 86400L);
  X509_set_pubkey(x509, made->key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name), -1, -1, 0);
  X509_set_issuer_name(x509, X509_get_subject_name(issuer != nullptr ? issuer->x509 : x509));
  if (*names != '\0') extend(x509, NID_subject_alt_name, names);
  extend(x509, NID_basic_constraints, issuer == nullptr && *names == '\0' ? "critical,CA:TRUE" : "critical,CA:FALSE");
  X509_sign(x509, issuer != nullptr ? issuer->key : made->key, EVP_sha256());
  return made;
}

// One authority for all cases, its certificate in a file.
struct Authority {
  std::unique_ptr<Certificate> certificate = make_certificate("test authority", "", nullptr);
  std::string folder, file;
  Authority() {
    char name[] = "/var/tmp/acp-tls-XXXXXX";
    folder = ::mkdtemp(name);
    file = folder + "/ca.pem";
    BIO* out = BIO_new_file(file.c_str(), "w");
    PEM_write_bio_X509(out, certificate->x509);
    BIO_free(out);
  }
  ~Authority() {
    ::unlink(file.c_str());
    ::rmdir(folder.c_str());
  }
  llm::HttpEnvironment environment() const {
    llm::HttpEnvironment environment;
    environment.cert_file = file;
    environment.cert_dir = folder;  // not the system's: a test must not depend on what is trusted there
    return environment;
  }
};

const Authority& authority() {
  static const Authority one;
  return one;
}

class TlsServer {
 public:
  explicit TlsServer(std::unique_ptr<Certificate> certificate)
      : certificate_(std::move(certificate)), server_(certificate_->x509, certificate_->key) {
    server_.Post("/v1/x", [this](const httplib::Request& request, httplib::Response& response) {
      ++requests;
      proxy_header = request.get_header_value("Proxy-Authorization");
      response.set_chunked_content_provider("text/event-stream", [](std::size_t, httplib::DataSink& sink) {
        const std::string piece = "data: hi [END]\n\n";
        sink.write(piece.data(), piece.size());
        sink.done();
        return true;
      });
    });
    server_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response&) {
      last_peer = request.remote_port;
      return httplib::Server::HandlerResponse::Unhandled;
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    server_.wait_until_ready_compat();
  }
  ~TlsServer() {
    server_.stop();
    thread_.join();
  }
  std::string url(const std::string& host) const { return "https://" + host + ":" + std::to_string(port_) + "/v1/x"; }
  int port() const { return port_; }
  std::atomic<int> requests{0}, last_peer{0};
  std::string proxy_header;

 private:
  struct Server : httplib::SSLServer {
    using SSLServer::SSLServer;
    void wait_until_ready_compat() const {
      while (!is_running()) std::this_thread::yield();
    }
  };
  std::unique_ptr<Certificate> certificate_;
  Server server_;
  int port_ = 0;
  std::thread thread_;
};

// A CONNECT proxy: tunnels to 127.0.0.1 whatever host was named. Remembers the request it got.
struct Proxy {
  explicit Proxy(std::string refuse = {}) : refusal(std::move(refuse)) {}
  std::string seen;
  const std::string refusal;
  test::RawServer server{[this](int fd, int) {
    std::string head;
    char byte;
    while (head.find("\r\n\r\n") == std::string::npos && ::recv(fd, &byte, 1, 0) == 1) head.push_back(byte);
    seen = head;
    if (!refusal.empty()) return test::send_all(fd, refusal);
    const std::size_t colon = head.find(':');
    sockaddr_in address = test::loopback(std::atoi(head.c_str() + colon + 1));
    const int other = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(other, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      test::send_all(fd, "HTTP/1.1 200 Connection established\r\n\r\n");
      for (bool open = true; open;) {
        pollfd both[2] = {{fd, POLLIN, 0}, {other, POLLIN, 0}};
        ::poll(both, 2, -1);
        for (int i = 0; i < 2 && open; ++i) {
          if (both[i].revents == 0) continue;
          char buffer[4096];
          const ssize_t n = ::recv(both[i].fd, buffer, sizeof buffer, 0);
          if (n <= 0) open = false;
          if (n > 0) test::send_all(both[1 - i].fd, std::string(buffer, static_cast<std::size_t>(n)));
        }
      }
    }
    ::close(other);
  }};
  std::string address() const { return "127.0.0.1:" + std::to_string(server.port()); }
};

}  // namespace

TEST_CASE("a server with a certificate of a known authority", "[tls]") {
  TlsServer server(make_certificate("x", "DNS:localhost,IP:127.0.0.1", authority().certificate.get()));
  const llm::HttpPost post = llm::make_http_post(authority().environment());
  int peer = 0;
  for (int i = 0; i < 3; ++i) {
    const auto out = call(post, request_to(server.url("localhost")), {}, true, "[END]");
    INFO(out.message());
    REQUIRE(out.response);
    CHECK(out.body == "data: hi [END]\n\n");
    if (i > 0) CHECK(server.last_peer == peer);  // one connection, one handshake
    peer = server.last_peer;
  }
  const auto by_address = call(post, request_to(server.url("127.0.0.1")));
  INFO(by_address.message());
  CHECK(by_address.response);
}

TEST_CASE("certificates that are refused", "[tls]") {
  const auto refused = [](std::unique_ptr<Certificate> certificate, const std::string& host, const char* why,
                          llm::HttpEnvironment environment = authority().environment()) {
    TlsServer server(std::move(certificate));
    const auto out = call(llm::make_http_post(environment), request_to(server.url(host)));
    REQUIRE_FALSE(out.response);
    INFO(out.message());
    CHECK(out.response.error().code == ErrorCode::invalid_argument);
    CHECK(out.message().find("certificate") != std::string::npos);
    CHECK(out.message().find(why) != std::string::npos);
    CHECK(out.message().find("sk-secret") == std::string::npos);
    CHECK(server.requests == 0);
  };
  const Certificate* ca = authority().certificate.get();
  refused(make_certificate("x", "DNS:other.example", ca), "localhost", "ostname mismatch");
  refused(make_certificate("x", "IP:127.0.0.2", ca), "127.0.0.1", "IP address mismatch");
  // The common name does not count beside alternative names, nor do wildcards without a domain.
  refused(make_certificate("localhost", "DNS:other.example", ca), "localhost", "ostname mismatch");
  refused(make_certificate("x", "DNS:*", ca), "localhost", "ostname mismatch");
  refused(make_certificate("localhost", "DNS:localhost", nullptr), "localhost", "self-signed");
  refused(make_certificate("localhost", "DNS:localhost", ca, -1), "localhost", "expired");
  llm::HttpEnvironment system;
  system.cert_dir = "/nonexistent";
  refused(make_certificate("localhost", "DNS:localhost", ca), "localhost", "unable to get local issuer", system);
}

TEST_CASE("a certificate file that cannot be read", "[tls]") {
  TlsServer server(make_certificate("x", "DNS:localhost", authority().certificate.get()));
  llm::HttpEnvironment environment;
  environment.cert_file = "/nonexistent/ca.pem";
  const auto out = call(llm::make_http_post(environment), request_to(server.url("localhost")));
  REQUIRE_FALSE(out.response);
  CHECK(out.message().find("SSL_CERT_FILE") != std::string::npos);
  CHECK(out.message().find("/nonexistent/ca.pem") != std::string::npos);
}

TEST_CASE("through a proxy", "[tls]") {
  TlsServer server(make_certificate("x", "DNS:api.test,DNS:localhost", authority().certificate.get()));
  Proxy proxy;
  llm::HttpEnvironment environment = authority().environment();
  environment.https_proxy = "http://user:proxy-password@" + proxy.address();
  SECTION("the tunnel; the name is the proxy's to resolve, the password is for the proxy alone") {
    const llm::HttpPost post = llm::make_http_post(environment);
    for (int i = 0; i < 2; ++i) {
      const auto out = call(post, request_to(server.url("api.test")), {}, true, "[END]");
      INFO(out.message());
      REQUIRE(out.response);
    }
    CHECK(proxy.seen.find("CONNECT api.test:" + std::to_string(server.port())) == 0);
    CHECK(proxy.seen.find("Proxy-Authorization: Basic dXNlcjpwcm94eS1wYXNzd29yZA==") != std::string::npos);
    CHECK(proxy.seen.find("sk-secret") == std::string::npos);
    CHECK(server.proxy_header.empty());
    CHECK(proxy.server.connections() == 1);
  }
  SECTION("the certificate is still checked") {
    const auto out = call(llm::make_http_post(environment), request_to(server.url("wrong.test")));
    REQUIRE_FALSE(out.response);
    CHECK(out.message().find("certificate") != std::string::npos);
  }
  SECTION("loopback and NO_PROXY go around it") {
    CHECK(call(llm::make_http_post(environment), request_to(server.url("localhost"))).response);
    environment.no_proxy = "no-such-host.invalid";
    CHECK_FALSE(call(llm::make_http_post(environment), request_to("https://no-such-host.invalid/")).response);
    CHECK(proxy.server.connections() == 0);
  }
  SECTION("it refuses") {
    Proxy unauthorized("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
    environment.https_proxy = "http://user:proxy-password@" + unauthorized.address();
    const auto out = call(llm::make_http_post(environment), request_to(server.url("api.test")));
    REQUIRE_FALSE(out.response);
    CHECK(out.message().find("407") != std::string::npos);
    CHECK(out.message().find("proxy-password") == std::string::npos);
    Proxy broken("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad");
    environment.https_proxy = "http://" + broken.address();
    const auto gateway = call(llm::make_http_post(environment), request_to(server.url("api.test")));
    REQUIRE_FALSE(gateway.response);
    INFO(gateway.message());
    CHECK(gateway.message().find(broken.address()) != std::string::npos);
  }
  SECTION("it is not there") {
    environment.https_proxy = "http://127.0.0.1:1";
    const auto out = call(llm::make_http_post(environment), request_to(server.url("api.test")));
    REQUIRE_FALSE(out.response);
    CHECK(out.message().find("proxy 127.0.0.1:1") != std::string::npos);
  }
}

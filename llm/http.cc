// The only user of cpp-httplib (0.11.4). What the library leaves open is closed here:
//  - a blocking connect, handshake, write or read is ended by RequestWatch, which shuts the socket down; never by
//    Client::stop(), which waits for the very call it should end;
//  - requests run over our own Stream (process_socket is virtual): it bounds the status line and the headers, which
//  httplib
//    would collect without end (and match with a recursive regex), counts bytes for the stale-connection rule, and
//    keeps an early answer to a request whose sending failed;
//  - certificates are verified by OpenSSL in the handshake, host name included: httplib's own host check accepts a `*`
//    anywhere and the common name of a certificate whose alternative names do not match. httplib's check is off only
//    because the stricter one replaces it;
//  - proxy credentials would go to the server behind the tunnel as well; they are hidden from that request.
#define CPPHTTPLIB_OPENSSL_SUPPORT  // as Debian's library is built: it changes class layouts
#include <httplib.h>
#include <poll.h>

#include <chrono>
#include <cstring>
#include <deque>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/text.h"
#include "llm/http.h"
#include "llm/proxy.h"
#include "llm/request_watch.h"
#include "llm/url.h"

namespace llm {

namespace {

using base::ErrorCode;
using Clock = RequestWatch::Clock;
using Cause = RequestWatch::Cause;

constexpr std::size_t max_status_line = 512;  // httplib's regex recurses once per character
constexpr std::size_t max_line = 16 * 1024;
constexpr std::size_t max_head = 256 * 1024;
constexpr std::size_t read_size = 16 * 1024;  // one TLS record
constexpr int max_redirects = 5;
constexpr std::size_t max_idle_connections = 8;
constexpr auto max_idle_time = std::chrono::seconds(55);  // common servers and balancers close at 60
constexpr auto drain_time = std::chrono::milliseconds(20);
constexpr auto never = std::chrono::hours(24);  // httplib's own time-outs; RequestWatch is the authority

// What one request and its Stream share. The request's thread only.
struct Exchange {
  RequestWatch& watch;
  const HttpLimits& limits;
  bool started = false;      // connected, through a proxy's tunnel and the handshake; the request is being sent
  std::size_t received = 0;  // bytes of any kind
  bool in_body = false;
  bool complete = false;   // the reader has all it wants
  bool oversized = false;  // status line, header or chunk line without end
  Clock::time_point paused_at = {};
  Clock::time_point content_deadline = {};

  // The reader may wait for its client; that is no fault of the server's.
  void pause() {
    paused_at = Clock::now();
    watch.expect(Cause::idle, Clock::time_point::max());
    watch.expect_content(Clock::time_point::max());
  }
  void resume(bool progress) {
    const auto now = Clock::now();
    content_deadline = progress ? now + limits.no_content : content_deadline + (now - paused_at);
    watch.expect(Cause::idle, now + limits.idle);
    watch.expect_content(content_deadline);
  }

  void start() {
    started = true;
    watch.expect(Cause::first_byte, Clock::now() + limits.first_byte);
  }
};

class ExchangeStream : public httplib::Stream {
 public:
  ExchangeStream(int sock, SSL* ssl, Exchange& exchange) : sock_(sock), ssl_(ssl), exchange_(exchange) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  socket_t socket() const override { return sock_; }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}

  // httplib reads lines one byte at a time; 0: end, -1: failed.
  ssize_t read(char* out, std::size_t size) override {
    if (begin_ == end_) {
      const ssize_t n = fill();
      if (n <= 0) return n;
    }
    const std::size_t n = std::min(size, end_ - begin_);
    std::memcpy(out, buffer_.data() + begin_, n);
    begin_ += n;
    if (size == 1 && !count_line_byte(*out)) return -1;
    return static_cast<ssize_t>(n);
  }

  // A failed write is not reported: the server may have answered (413, 401) and closed before taking all of the body,
  // and that answer is worth more than the broken pipe. Without an answer the read fails.
  ssize_t write(const char* bytes, std::size_t size) override {
    std::size_t done = 0;
    while (!write_failed_ && done < size) {
      const ssize_t n = write_some(bytes + done, size - done);
      if (n <= 0) {
        write_failed_ = true;
        break;
      }
      done += static_cast<std::size_t>(n);
    }
    return static_cast<ssize_t>(size);
  }

 private:
  bool count_line_byte(char c) {
    line_ = c == '\n' ? 0 : line_ + 1;
    if (!exchange_.in_body) ++head_;
    const bool first_line = !exchange_.in_body && head_ == line_;
    if (line_ > (first_line ? max_status_line : max_line) || head_ > max_head) exchange_.oversized = true;
    return !exchange_.oversized;
  }

  ssize_t fill() {
    if (!waiting_) {
      waiting_ = true;
      exchange_.watch.expect(Cause::first_byte, Clock::now() + exchange_.limits.first_byte);
    }
    if (exchange_.complete && (ssl_ == nullptr || SSL_pending(ssl_) == 0)) {
      // Only the end of the body is missing. It mostly comes along, and then the connection can be used again.
      if (drain_until_ == Clock::time_point()) drain_until_ = Clock::now() + drain_time;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(drain_until_ - Clock::now());
      pollfd entry{sock_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) return -1;
    }
    buffer_.resize(read_size);
    const ssize_t n = read_some();
    if (n <= 0) return n;
    exchange_.received += static_cast<std::size_t>(n);
    if (exchange_.in_body) exchange_.watch.expect(Cause::idle, Clock::now() + exchange_.limits.idle);
    begin_ = 0;
    end_ = static_cast<std::size_t>(n);
    return n;
  }

  ssize_t read_some() {
    for (;;) {
      if (ssl_ == nullptr) {
        const ssize_t n = ::recv(sock_, buffer_.data(), buffer_.size(), 0);
        if (n < 0 && (errno == EINTR || errno == EAGAIN) && exchange_.watch.cause() == Cause::none) continue;
        return n;
      }
      ERR_clear_error();
      const int n = SSL_read(ssl_, buffer_.data(), static_cast<int>(buffer_.size()));
      if (n > 0) return n;
      if (!again(n)) return SSL_get_error(ssl_, n) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
    }
  }

  ssize_t write_some(const char* bytes, std::size_t size) {
    for (;;) {
      if (ssl_ == nullptr) {
        const ssize_t n = ::send(sock_, bytes, size, MSG_NOSIGNAL);
        if (n < 0 && (errno == EINTR || errno == EAGAIN) && exchange_.watch.cause() == Cause::none) continue;
        return n;
      }
      ERR_clear_error();
      const int n = SSL_write(ssl_, bytes, static_cast<int>(std::min<std::size_t>(size, 1u << 20)));
      if (n > 0) return n;
      if (!again(n)) return -1;
    }
  }

  bool again(int result) const {
    const int error = SSL_get_error(ssl_, result);
    const bool transient =
        error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE || (error == SSL_ERROR_SYSCALL && errno == EINTR);
    return transient && exchange_.watch.cause() == Cause::none;
  }

  const int sock_;
  SSL* const ssl_;
  Exchange& exchange_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::size_t line_ = 0, head_ = 0;
  bool waiting_ = false, write_failed_ = false;
  Clock::time_point drain_until_;
};

class PlainClient : public httplib::ClientImpl {
 public:
  using ClientImpl::ClientImpl;
  Exchange* exchange = nullptr;

 private:
  bool process_socket(const Socket& socket, std::function<bool(httplib::Stream&)> callback) override {
    exchange->start();
    ExchangeStream stream(socket.sock, nullptr, *exchange);
    return callback(stream);
  }
};

class TlsClient : public httplib::SSLClient {
 public:
  TlsClient(const std::string& host, int port, X509_STORE* store) : SSLClient(host, port) {
    SSL_CTX* context = ssl_context();
    if (context == nullptr) return;
    enable_server_certificate_verification(false);  // httplib's own, see the top of this file
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, &TlsClient::on_verify);
    SSL_CTX_set_app_data(context, this);
    SSL_CTX_set1_cert_store(context, store);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    X509_VERIFY_PARAM* parameters = SSL_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    named_ = (is_ip_address(host) ? X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str())
                                  : X509_VERIFY_PARAM_set1_host(parameters, host.c_str(), host.size())) == 1;
  }

  Exchange* exchange = nullptr;
  bool usable() const { return is_valid() && named_; }
  long certificate_error() const { return certificate_error_; }
  void clear_certificate_error() { certificate_error_ = X509_V_OK; }

 private:
  static int on_verify(int ok, X509_STORE_CTX* store_context) {
    if (ok != 1) {
      SSL* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store_context, SSL_get_ex_data_X509_STORE_CTX_idx()));
      auto* client = static_cast<TlsClient*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
      client->certificate_error_ = X509_STORE_CTX_get_error(store_context);
    }
    return ok;
  }

  bool process_socket(const Socket& socket, std::function<bool(httplib::Stream&)> callback) override {
    exchange->start();
    const std::string proxy_user = std::exchange(proxy_basic_auth_username_, std::string());
    ExchangeStream stream(socket.sock, socket.ssl, *exchange);
    const bool ok = callback(stream);
    proxy_basic_auth_username_ = proxy_user;
    return ok;
  }

  bool named_ = false;
  long certificate_error_ = X509_V_OK;
};

// One connection to one server, used by one request at a time; idle ones wait in the pool.
struct Connection {
  std::unique_ptr<PlainClient> plain;
  std::unique_ptr<TlsClient> tls;
  base::Fd socket;  // duplicate of httplib's; what RequestWatch shuts down
  RequestWatch* watch = nullptr;
  Clock::time_point idle_since;

  ~Connection() {
    if (watch != nullptr) watch->use_socket(-1);
  }
  httplib::ClientImpl& client() { return tls ? static_cast<httplib::ClientImpl&>(*tls) : *plain; }
  void attach(Exchange* exchange) {
    if (tls) {
      tls->exchange = exchange;
      tls->clear_certificate_error();
    } else {
      plain->exchange = exchange;
    }
    if (watch != nullptr) watch->use_socket(-1);
    watch = exchange != nullptr ? &exchange->watch : nullptr;
    if (watch != nullptr) watch->use_socket(socket.get());
  }
  // Nothing to read, neither an end nor bytes nobody asked for.
  bool quiet() const {
    pollfd entry{socket.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 0;
  }
  // httplib made a socket and is about to connect it.
  void on_socket(int sock) {
    base::Fd copy(::fcntl(sock, F_DUPFD_CLOEXEC, 0));
    if (watch != nullptr) watch->use_socket(copy.get());
    socket = std::move(copy);
  }
};

std::string limit_text(std::chrono::milliseconds limit) {
  const auto ms = limit.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

class Transport {
 public:
  explicit Transport(HttpEnvironment environment) : environment_(std::move(environment)) {}
  ~Transport() {
    idle_.clear();
    if (store_ != nullptr) X509_STORE_free(store_);
  }

  base::Result<HttpResponse> post(const HttpRequest& request, const HttpSink& sink, std::stop_token stop) {
    auto url = parse_url(request.url);
    if (!url) return tl::unexpected(url.error());
    RequestWatch watch(std::move(stop));
    for (int redirects = 0;; ++redirects) {
      std::optional<Url> redirected;
      auto response = post_once(request, *url, sink, watch, redirected);
      if (!response || !redirected) return response;
      if (redirects == max_redirects) {
        return base::fail(ErrorCode::transport, "the server " + url->host_port() + " redirects in a circle");
      }
      url = std::move(*redirected);
    }
  }

 private:
  base::Result<HttpResponse> post_once(const HttpRequest& request, const Url& url, const HttpSink& sink,
                                       RequestWatch& watch, std::optional<Url>& redirected) {
    auto proxy = choose_proxy(environment_, url);
    if (!proxy) return tl::unexpected(proxy.error());
    const std::string key =
        url.scheme + "://" + url.host + ":" + std::to_string(url.port) + (*proxy ? " " + (*proxy)->to_string() : "");

    const Clock::time_point deadline = Clock::now() + request.limits.connect;
    watch.expect(Cause::connect, deadline);
    if (std::unique_ptr<Connection> reused = take_idle(key)) {
      Exchange exchange{watch, request.limits};
      Outcome outcome = send(*reused, request, url, sink, exchange);
      const bool stale = !outcome.sent && exchange.received == 0 && watch.cause() == Cause::none;
      if (!stale) return conclude(key, std::move(reused), outcome, url, *proxy, exchange, request.limits, redirected);
    }  // a kept connection that the server closed meanwhile: once more on a new one

    watch.expect(Cause::connect, deadline);
    const Url& peer = *proxy ? **proxy : url;
    auto addresses = watch.resolve(peer.host);
    if (!addresses) return tl::unexpected(addresses.error());
    for (std::size_t i = 0; i < addresses->size(); ++i) {
      auto connection = connect(url, *proxy, (*addresses)[i], deadline, addresses->size() - i);
      if (!connection) return tl::unexpected(connection.error());
      Exchange exchange{watch, request.limits};
      Outcome outcome = send(**connection, request, url, sink, exchange);
      const bool unreachable = !outcome.sent && !exchange.started &&
                               (!(*connection)->tls || (*connection)->tls->certificate_error() == X509_V_OK);
      if (unreachable && watch.cause() == Cause::none && i + 1 < addresses->size()) continue;
      return conclude(key, std::move(*connection), outcome, url, *proxy, exchange, request.limits, redirected);
    }
    Exchange exchange{watch, request.limits};
    return limit_error(exchange, url);
  }

  struct Outcome {
    bool sent = false;     // httplib saw the whole exchange through
    bool aborted = false;  // we stopped reading: `refusal`, a redirect, or the kept part of an error body is full
    httplib::Error error = httplib::Error::Success;
    HttpResponse response;
    std::optional<base::Error> refusal;
    std::string location;
    bool reusable = false;
  };

  Outcome send(Connection& connection, const HttpRequest& request, const Url& url, const HttpSink& sink,
               Exchange& exchange) {
    Outcome outcome;
    httplib::Request req;
    req.method = "POST";
    req.path = url.target();
    for (const auto& [name, value] : request.headers) req.headers.emplace(name, value);
    req.headers.emplace("Accept-Encoding", "identity");
    if (req.headers.count("User-Agent") == 0) req.headers.emplace("User-Agent", "acp-agent");
    req.headers.emplace("Host", url.host_port());
    req.content_length_ = request.body.size();
    // A provider instead of req.body: httplib copies that twice.
    req.content_provider_ = [&](std::size_t offset, std::size_t length, httplib::DataSink& out) {
      return out.write(request.body.data() + offset, length);
    };
    req.response_handler = [&](const httplib::Response& res) { return take_head(res, outcome, sink, exchange); };
    req.content_receiver = [&](const char* bytes, std::size_t size, std::uint64_t, std::uint64_t) {
      if (exchange.complete) return true;  // draining
      const std::string_view piece(bytes, size);
      if (outcome.response.status / 100 != 2) {
        std::string& kept = outcome.response.error_body;
        kept.append(piece.substr(0, exchange.limits.error_body - kept.size()));
        outcome.aborted = kept.size() == exchange.limits.error_body;
        return !outcome.aborted;
      }
      bool progress = false;
      exchange.pause();
      exchange.complete = !sink.on_body(piece, progress);
      exchange.resume(progress);
      return !exchange.complete || outcome.reusable;
    };
    connection.attach(&exchange);
    httplib::Response res;
    try {
      outcome.sent = connection.client().send(req, res, outcome.error);
    } catch (const std::exception&) {  // its regex, a number out of range, no memory
      outcome.error = httplib::Error::Unknown;
    }
    if (outcome.sent && outcome.response.status == 0) take_head(res, outcome, sink, exchange);  // no body: 204, CONNECT
    return outcome;
  }

  // False: do not read the body.
  bool take_head(const httplib::Response& res, Outcome& outcome, const HttpSink& sink, Exchange& exchange) {
    HttpResponse& response = outcome.response;
    response.status = res.status;
    for (const auto& [name, value] : res.headers) response.headers.emplace(base::to_lower(name), value);
    const auto header = [&](const char* name) {
      const auto found = response.headers.find(name);
      return found == response.headers.end() ? std::string() : base::to_lower(base::trim(found->second));
    };
    exchange.in_body = true;
    exchange.pause();
    exchange.resume(true);
    outcome.reusable = header("transfer-encoding") == "chunked" || response.headers.count("content-length") > 0;
    if (res.status == 307 || res.status == 308) outcome.location = res.get_header_value("Location");
    const std::string encoding = header("content-encoding");
    if (!encoding.empty() && encoding != "identity") {
      const std::string what = "a body compressed as " + base::ellipsize(base::to_utf8(encoding), 40);
      if (res.status / 100 == 2) {
        outcome.refusal = base::Error{ErrorCode::malformed,
                                      "the server answered " + std::to_string(res.status) + " with " + what +
                                          ", though it was asked not to compress",
                                      {}};
      } else {
        response.error_body = "(" + what + ")";  // its status says more
      }
      outcome.aborted = true;
      return false;
    }
    if (!outcome.location.empty()) {
      outcome.aborted = true;
      return false;
    }
    if (sink.on_headers) sink.on_headers(response);
    return true;
  }

  base::Result<HttpResponse> conclude(const std::string& key, std::unique_ptr<Connection> connection, Outcome& outcome,
                                      const Url& url, const std::optional<Url>& proxy, Exchange& exchange,
                                      const HttpLimits& limits, std::optional<Url>& redirected) {
    const std::string host = url.host_port();
    if (exchange.complete || outcome.sent) {
      if (!exchange.started) {  // httplib passes a refused CONNECT off as the answer
        return base::fail(
            ErrorCode::invalid_argument,
            "the proxy " + (proxy ? proxy->host_port() : host) + " answered " +
                std::to_string(outcome.response.status) +
                " to CONNECT; put its user and password into HTTPS_PROXY (http://user:password@host:port)");
      }
      if (outcome.sent && outcome.reusable) put_idle(key, std::move(connection));
      return std::move(outcome.response);
    }
    if (exchange.watch.cause() != Cause::none) return limit_error(exchange, url);
    if (outcome.refusal) return tl::unexpected(*outcome.refusal);
    if (outcome.aborted) {
      if (!outcome.location.empty()) follow(url, outcome.location, redirected);
      return std::move(outcome.response);
    }
    if (exchange.oversized) {
      return base::fail(ErrorCode::malformed, "the server " + host + " sent a header or chunk line without end");
    }
    if (exchange.in_body) {
      return base::fail(ErrorCode::cut_stream, "the connection to " + host + " ended in the middle of the answer");
    }
    if (exchange.received > 0) {
      return base::fail(ErrorCode::transport, "the server " + host + " sent something that is no HTTP answer");
    }
    if (exchange.started) {
      return base::fail(ErrorCode::transport, "the server " + host + " closed the connection without an answer");
    }
    return connect_error(*connection, outcome, url, proxy, limits);
  }

  base::Result<HttpResponse> connect_error(Connection& connection, const Outcome& outcome, const Url& url,
                                           const std::optional<Url>& proxy, const HttpLimits& limits) {
    const std::string where = proxy ? " through the proxy " + proxy->host_port() : std::string();
    if (connection.tls && connection.tls->certificate_error() != X509_V_OK) {
      return base::fail(ErrorCode::invalid_argument,
                        "the certificate of " + url.host_port() +
                            " was refused: " + X509_verify_cert_error_string(connection.tls->certificate_error()) +
                            " (a private certificate authority is named with SSL_CERT_FILE)");
    }
    const std::string host = url.host_port();
    if (outcome.error == httplib::Error::SSLConnection) {
      return base::fail(ErrorCode::transport, "the TLS handshake with " + host + where + " failed");
    }
    if (outcome.error == httplib::Error::ConnectionTimeout) {
      return base::fail(ErrorCode::timed_out, "no connection to " + host + where + " within " +
                                                  limit_text(limits.connect) + " (connect_timeout_ms)");
    }
    if (proxy && outcome.error == httplib::Error::Read) {
      return base::fail(ErrorCode::transport, "the proxy " + proxy->host_port() + " closed the connection to " + host);
    }
    return base::fail(ErrorCode::transport, "cannot connect to " + (proxy ? "the proxy " + proxy->host_port() : host) +
                                                ": refused or unreachable");
  }

  base::Result<HttpResponse> limit_error(const Exchange& exchange, const Url& url) {
    const std::string host = url.host_port();
    const HttpLimits& limits = exchange.limits;
    switch (exchange.watch.cause()) {
      case Cause::connect:
        return base::fail(ErrorCode::timed_out, "no connection to " + host + " within " + limit_text(limits.connect) +
                                                    " (connect_timeout_ms)");
      case Cause::first_byte:
        return base::fail(ErrorCode::timed_out, host + " did not begin to answer within " +
                                                    limit_text(limits.first_byte) + " (first_byte_timeout_ms)");
      case Cause::idle:
        return base::fail(ErrorCode::timed_out, host + " stopped in the middle of the answer: nothing for " +
                                                    limit_text(limits.idle) + " (idle_timeout_ms)");
      case Cause::no_content:
        return base::fail(ErrorCode::timed_out, host +
                                                    " kept the connection alive but sent nothing of the answer for " +
                                                    limit_text(limits.no_content) + " (no_content_timeout_ms)");
      case Cause::stopped:
      case Cause::none:
        break;
    }
    return base::fail(ErrorCode::cancelled, "the request was stopped");
  }

  // Same scheme, host and port only: the key goes nowhere else. Anything else stays the answer.
  static void follow(const Url& url, const std::string& location, std::optional<Url>& redirected) {
    std::optional<Url> next;
    if (location.starts_with('/') && !location.starts_with("//")) {
      auto parsed = parse_url(url.scheme + "://" + url.host_port() + location.substr(0, location.find('#')));
      if (parsed) next = std::move(*parsed);
    } else if (auto parsed = parse_url(location.substr(0, location.find('#')))) {
      next = std::move(*parsed);
    }
    if (next && next->scheme == url.scheme && next->host == url.host && next->port == url.port) {
      redirected = std::move(next);
    }
  }

  base::Result<std::unique_ptr<Connection>> connect(const Url& url, const std::optional<Url>& proxy,
                                                    const std::string& address, Clock::time_point deadline,
                                                    std::size_t addresses_left) {
    auto connection = std::make_unique<Connection>();
    if (url.tls()) {
      auto store = certificate_store();
      if (!store) return tl::unexpected(store.error());
      connection->tls = std::make_unique<TlsClient>(url.host, url.port, *store);
      if (!connection->tls->usable()) return base::fail(ErrorCode::internal, "OpenSSL cannot make a TLS client");
    } else {
      connection->plain = std::make_unique<PlainClient>(url.host, url.port);
    }
    httplib::ClientImpl& client = connection->client();
    client.set_keep_alive(true);
    client.set_follow_location(false);
    client.set_decompress(false);
    client.set_url_encode(false);
    client.set_tcp_nodelay(true);
    client.set_read_timeout(never);
    client.set_write_timeout(never);
    // All but the last address get a share, so that a dead one leaves time for the others; the watch ends the last.
    const auto left = std::max<Clock::duration>(deadline - Clock::now(), std::chrono::milliseconds(1));
    client.set_connection_timeout(addresses_left > 1 ? left / static_cast<int>(addresses_left)
                                                     : Clock::duration(never));
    if (proxy) {
      client.set_proxy(address, proxy->port);
      if (!proxy->user.empty()) client.set_proxy_basic_auth(proxy->user, proxy->password);
    } else {
      client.set_hostname_addr_map({{url.host, address}});
    }
    Connection* raw = connection.get();
    client.set_socket_options([raw](int sock) { raw->on_socket(sock); });
    return connection;
  }

  // Made on first use: starting the process touches no OpenSSL. As OpenSSL reads the two variables: each replaces its
  // half of the default.
  base::Result<X509_STORE*> certificate_store() {
    const base::Lock lock(mutex_);
    if (store_ != nullptr) return store_;
    X509_STORE* store = X509_STORE_new();
    if (store == nullptr) return base::fail(ErrorCode::internal, "OpenSSL cannot make a certificate store");
    const std::string& file = environment_.cert_file;
    const std::string& dir = environment_.cert_dir;
    if (!file.empty()) {
      if (X509_STORE_load_file(store, file.c_str()) != 1) {
        X509_STORE_free(store);
        return base::fail(ErrorCode::invalid_argument,
                          "SSL_CERT_FILE names " + file + ", which cannot be read as PEM certificates");
      }
    } else {
      X509_STORE_load_file(store, X509_get_default_cert_file());  // absent on Debian, whose store is the folder
    }
    X509_STORE_load_path(store, dir.empty() ? X509_get_default_cert_dir() : dir.c_str());
    ERR_clear_error();
    store_ = store;
    return store_;
  }

  std::unique_ptr<Connection> take_idle(const std::string& key) {
    std::vector<std::unique_ptr<Connection>> expired;  // closed after the lock is gone
    const base::Lock lock(mutex_);
    const auto oldest = Clock::now() - max_idle_time;
    for (auto it = idle_.begin(); it != idle_.end();) {
      if (it->second->idle_since < oldest || !it->second->quiet()) {
        expired.push_back(std::move(it->second));
        it = idle_.erase(it);
      } else {
        ++it;
      }
    }
    for (auto it = idle_.rbegin(); it != idle_.rend(); ++it) {
      if (it->first != key) continue;
      std::unique_ptr<Connection> found = std::move(it->second);
      idle_.erase(std::next(it).base());
      return found;
    }
    return nullptr;
  }

  void put_idle(const std::string& key, std::unique_ptr<Connection> connection) {
    connection->attach(nullptr);
    if (connection->client().is_socket_open() == 0) return;
    connection->idle_since = Clock::now();
    std::unique_ptr<Connection> surplus;
    const base::Lock lock(mutex_);
    idle_.emplace_back(key, std::move(connection));
    if (idle_.size() > max_idle_connections) {
      surplus = std::move(idle_.front().second);
      idle_.pop_front();
    }
  }

  const HttpEnvironment environment_;
  base::Mutex mutex_;
  X509_STORE* store_ GUARDED_BY(mutex_) = nullptr;
  std::deque<std::pair<std::string, std::unique_ptr<Connection>>> idle_ GUARDED_BY(mutex_);
};

}  // namespace

HttpPost make_http_post(HttpEnvironment environment) {
  const auto transport = std::make_shared<Transport>(std::move(environment));
  return [transport](const HttpRequest& request, const HttpSink& sink, std::stop_token stop) {
    return transport->post(request, sink, std::move(stop));
  };
}

}  // namespace llm

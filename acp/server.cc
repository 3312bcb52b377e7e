#include "acp/server.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "acp/answers.h"
#include "acp/connection.h"
#include "acp/wire_order.h"
#include "base/log.h"
#include "base/text.h"

namespace acp {

// One line per method here and one in the table; the handlers are in methods_*.cc.
Handler initialize, authenticate, session_new, session_load, session_set_mode, session_prompt, session_cancel,
    cancel_request;

namespace {

namespace code = base::rpc_code;

struct Method {
  std::string_view name;
  enum Kind { request, notification } kind;
  Handler* handler;
};

constexpr Method methods[] = {
    {"initialize", Method::request, initialize},
    {"authenticate", Method::request, authenticate},
    {"session/new", Method::request, session_new},
    {"session/load", Method::request, session_load},
    {"session/set_mode", Method::request, session_set_mode},
    {"session/prompt", Method::request, session_prompt},
    {"session/cancel", Method::notification, session_cancel},
    {"$/cancel_request", Method::notification, cancel_request},
};

const Method* find_method(std::string_view name, Method::Kind kind) {
  const auto* const found = std::find_if(std::begin(methods), std::end(methods), [&](const Method& method) {
    return method.name == name && method.kind == kind;
  });
  return found == std::end(methods) ? nullptr : found;
}

void on_request(Connection& connection, const std::string& name, const base::Json& params, const base::Json& id,
                base::Reply reply) {
  if (!connection.initialized && name != "initialize")
    return reply.error(rpc_error(code::invalid_request, "send initialize first"));
  const Method* method = find_method(name, Method::request);
  if (!method) return reply.error(rpc_error(code::method_not_found, "unknown method " + base::ellipsize(name, 100)));
  if (!params.is_object()) return reply.error(invalid_params("params: must be an object"));
  method->handler(connection, {params, id, &reply});
}

void on_notification(Connection& connection, const std::string& name, const base::Json& params) {
  const Method* method = find_method(name, Method::notification);
  if (!method || !connection.initialized || !params.is_object()) return;
  method->handler(connection, {params, base::Json(), nullptr});
}

// A client that takes nothing for so long at the end is not waited for.
constexpr std::chrono::milliseconds last_drain{300};

}  // namespace

struct Server::State {
  std::shared_ptr<Connection> connection;
#ifdef ACP_AGENT_CHECK_WIRE_ORDER
  WireOrder order;
#endif
};

Server::Server(agent::Agent& agent, std::unique_ptr<base::LineTransport> transport, ServerOptions options)
    : state_(std::make_shared<State>()) {
  state_->connection = std::make_shared<Connection>(agent, std::move(options));
  // The peer is a member of what these point to, and its threads end with it.
  Connection* const connection = state_->connection.get();
  base::RpcPeer::Handlers handlers;
  handlers.on_notification = [connection](const std::string& method, const base::Json& params) {
    on_notification(*connection, method, params);
  };
#ifdef ACP_AGENT_CHECK_WIRE_ORDER
  WireOrder* const order = &state_->order;
  handlers.on_request = [connection, order](const std::string& method, const base::Json& params, const base::Json& id,
                                            base::Reply reply) {
    order->incoming(id, method, params);
    on_request(*connection, method, params, id, std::move(reply));
  };
  handlers.on_write = [order](const base::Json& message, std::string_view line) {
    const auto broken = order->outgoing(message);
    if (!broken) return;
    std::fprintf(stderr, "wire order: %s\n%.*s\n", broken->c_str(),
                 static_cast<int>(std::min<std::size_t>(line.size(), 4096)), line.data());
    std::abort();
  };
#else
  handlers.on_request = [connection](const std::string& method, const base::Json& params, const base::Json& id,
                                     base::Reply reply) {
    on_request(*connection, method, params, id, std::move(reply));
  };
#endif
  connection->peer =
      std::make_unique<base::RpcPeer>(std::move(transport), std::move(handlers), base::RpcPeer::Options{});
  if (agent.services().approval) agent.services().approval->add_answerer(permission_answerer(state_->connection));
}

Server::~Server() { state_->connection->peer->shutdown(std::chrono::milliseconds(0)); }

void Server::serve() {
  base::RpcPeer& peer = *state_->connection->peer;
  peer.run();
  state_->connection->agent.shutdown();
  peer.shutdown(last_drain);
}

void Server::stop() { state_->connection->peer->stop_reading(); }

}  // namespace acp

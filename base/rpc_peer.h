// One end of a JSON-RPC 2.0 conversation over lines. Knows framing, ids, answering exactly once and the outgoing queue;
// knows no method. Used by the ACP server, by `run`'s client side and, later, by MCP.
//
// Threads: run() is the reader and calls the handlers on its own thread; handlers must not block. One writer thread
// drains the queue. Every other method may be called from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/line_transport.h"

namespace base {

// Codes of JSON-RPC and ACP (acp.md 1.5).
namespace rpc_code {
inline constexpr int parse_error = -32700, invalid_request = -32600, method_not_found = -32601, invalid_params = -32602,
                     internal_error = -32603, auth_required = -32000, not_found = -32002, cancelled = -32800;
}

struct RpcError {
  int code = rpc_code::internal_error;
  std::string message;
  JsonPtr data;  // null: no data member
};

// Answers one request exactly once: dropping it unanswered sends an internal error; a second answer is logged and
// dropped. Movable, any thread. Outlives the peer harmlessly.
class Reply {
 public:
  Reply(Reply&&) noexcept;
  Reply& operator=(Reply&&) noexcept;
  ~Reply();
  void result(Json value);  // an object; never null (clients read a null result as no answer)
  void error(RpcError error);

 private:
  friend class RpcPeer;
  struct Core;
  explicit Reply(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

// How a queued notification takes in a later one instead of queueing it. The last queued message of the same `stream`
// (an ordering domain: a session id) with an equal non-empty `key` is given to `merge`, which changes it in place. An
// answer or a request queued in between is a fence: what comes after it is never merged into what stands before it.
struct Merge {
  std::string stream;
  std::string key;
  void (*merge)(Json& queued_params, Json&& later_params) = nullptr;
};

class RpcPeer {
 public:
  // An exception of a handler is logged; the request it had is answered with an internal error.
  struct Handlers {
    std::function<void(const std::string& method, const Json& params, const Json& id, Reply reply)> on_request;
    std::function<void(const std::string& method, const Json& params)> on_notification;
    // Sees every line in the order it is written, before it is written. For order checks and mirrors; writer thread.
    std::function<void(const Json& message, std::string_view line)> on_write;
  };
  struct Options {
    std::chrono::milliseconds dead_after{60'000};  // a client that takes nothing for so long is dead
    std::size_t high_water = 1u << 20;             // wait_drained() waits until the queue is under this
  };

  RpcPeer(std::unique_ptr<LineTransport> transport, Handlers handlers, Options options);
  ~RpcPeer();  // shutdown() with no time to drain

  // Reads until end of input, or until the writer found the other side dead. Then every pending outgoing call fails
  // with transport. Malformed lines are answered (-32700 / -32600, id null) and reading goes on; a batch is -32600.
  void run();
  void stop_reading();  // makes run() return; any thread

  void notify(const std::string& method, Json params, Merge merge = {});

  using OnAnswer = std::function<void(tl::expected<JsonPtr, RpcError>)>;
  // Sends a request; on_answer is called once, on the reader thread or, at the end, on the thread that ends the peer,
  // or, when the peer has ended already, at once on the caller's: hold no lock that on_answer takes. Returns its id for
  // cancel_call.
  std::int64_t call(const std::string& method, Json params, OnAnswer on_answer);
  // Sends $/cancel_request for one of our own calls; its answer still arrives through on_answer. Unknown id: nothing.
  void cancel_call(std::int64_t id);

  // Backpressure: returns when the queue is under the high-water mark, the token stops, or the peer is dead.
  // The caller holds no lock.
  void wait_drained(std::stop_token stop);
  bool dead() const;  // end of input or a dead writer

  // Fails pending calls, lets the writer drain for at most `drain`, closes the transport, joins. Idempotent.
  void shutdown(std::chrono::milliseconds drain);

 private:
  friend class Reply;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace base

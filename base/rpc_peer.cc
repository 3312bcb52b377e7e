#include "base/rpc_peer.h"

#include <fmt/format.h>

#include <atomic>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/text.h"
#include "base/thread.h"

namespace base {
namespace {

// What a message will take on the wire, near enough for the queue's account and without serialising it: a merged
// notification is measured again at every merge.
std::size_t wire_size(const Json& value) {
  std::size_t size = 8;
  if (value.is_string()) {
    size += value.get_ref<const std::string&>().size();
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.items()) size += key.size() + wire_size(member);
  } else if (value.is_array()) {
    for (const Json& item : value) size += wire_size(item);
  }
  return size;
}

Json envelope() { return Json{{"jsonrpc", "2.0"}}; }

Json error_message(Json id, const RpcError& error) {
  Json body{{"code", error.code}, {"message", error.message}};
  if (error.data) body["data"] = *error.data;
  Json message = envelope();
  message["id"] = std::move(id);
  message["error"] = std::move(body);
  return message;
}

RpcError gone() {
  return RpcError{rpc_code::internal_error, "the other side is gone",
                  share(Json{{"details", "The connection ended before an answer came."}, {"kind", "transport"}})};
}

bool valid_id(const Json& id) { return id.is_null() || id.is_string() || id.is_number_integer(); }

}  // namespace

struct RpcPeer::State {
  struct Outgoing {
    Json message;
    Merge merge;
    std::size_t bytes = 0;
  };
  using Queue = std::list<Outgoing>;

  State(std::unique_ptr<LineTransport> with, Handlers handle, Options choose)
      : transport(std::move(with)), handlers(std::move(handle)), options(choose) {}

  void enqueue(Json message, Merge merge = {});
  void write_queue();
  void dispatch(std::string_view line, const std::shared_ptr<State>& self);
  void request(Json id, const std::string& method, const Json& params, const std::shared_ptr<State>& self);
  void answer(const Json& message);
  void invalid(Json id, int code, std::string text) {
    enqueue(error_message(std::move(id), {code, std::move(text), {}}));
  }
  void end();
  bool over_high_water() REQUIRES(mutex) { return queued_bytes >= options.high_water && !writer_dead && !ended; }

  const std::unique_ptr<LineTransport> transport;
  const Handlers handlers;
  const Options options;

  mutable Mutex mutex;
  CondVar changed;
  Queue queue GUARDED_BY(mutex);
  // The last queued message of each stream, while nothing outside any stream (an answer, a request) was queued after
  // it: such a message is a fence, so that a later update cannot slip in before it.
  std::unordered_map<std::string, Queue::iterator> last_of_stream GUARDED_BY(mutex);
  std::size_t queued_bytes GUARDED_BY(mutex) = 0;  // the message being written included
  bool writing GUARDED_BY(mutex) = false;
  bool closing GUARDED_BY(mutex) = false;      // the writer is to return
  bool writer_dead GUARDED_BY(mutex) = false;  // nothing can be written any more
  bool ended GUARDED_BY(mutex) = false;        // no answer can arrive any more
  std::int64_t next_id GUARDED_BY(mutex) = 1;
  std::map<std::int64_t, OnAnswer> pending GUARDED_BY(mutex);
  bool shut_down GUARDED_BY(mutex) = false;

  Thread writer;
};

void RpcPeer::State::enqueue(Json message, Merge merge) {
  Lock lock(mutex);
  if (writer_dead || closing) return;
  const auto last = merge.stream.empty() ? last_of_stream.end() : last_of_stream.find(merge.stream);
  if (last != last_of_stream.end() && !merge.key.empty() && merge.merge != nullptr &&
      last->second->merge.key == merge.key) {
    Outgoing& queued = *last->second;
    merge.merge(queued.message["params"], std::move(message["params"]));
    queued_bytes -= queued.bytes;
    queued.bytes = wire_size(queued.message);
    queued_bytes += queued.bytes;
    return;  // the writer has been told of it already
  }
  if (merge.stream.empty()) last_of_stream.clear();
  const std::size_t bytes = wire_size(message);
  queue.push_back(Outgoing{std::move(message), std::move(merge), bytes});
  queued_bytes += bytes;
  const auto added = std::prev(queue.end());
  if (!added->merge.stream.empty()) last_of_stream.insert_or_assign(added->merge.stream, added);
  changed.notify_all();
}

void RpcPeer::State::write_queue() {
  for (;;) {
    Queue taken;
    {
      Lock lock(mutex);
      while (queue.empty() && !closing) changed.wait(mutex);
      if (queue.empty() || closing) return;
      const auto last = last_of_stream.find(queue.front().merge.stream);
      if (last != last_of_stream.end() && last->second == queue.begin()) last_of_stream.erase(last);
      taken.splice(taken.begin(), queue, queue.begin());
      writing = true;
    }
    const std::string line = dump(taken.front().message);
    if (handlers.on_write) handlers.on_write(taken.front().message, line);
    const bool written = transport->write(line, options.dead_after);
    Lock lock(mutex);
    writing = false;
    queued_bytes -= taken.front().bytes;
    if (!written) {
      writer_dead = true;
      queue.clear();
      last_of_stream.clear();
      queued_bytes = 0;
      transport->stop_reading();
    }
    changed.notify_all();
    if (!written) return;
  }
}

void RpcPeer::State::dispatch(std::string_view line, const std::shared_ptr<State>& self) {
  if (trim(line).empty()) return;
  auto parsed = parse_json(line);
  if (!parsed) return invalid(nullptr, rpc_code::parse_error, "parse error: " + parsed.error().message);
  Json& message = *parsed;
  if (message.is_array())
    return invalid(nullptr, rpc_code::invalid_request, "invalid request: batches are not supported");
  if (!message.is_object()) return invalid(nullptr, rpc_code::invalid_request, "invalid request: not an object");

  const Json* id = find(message, "id");
  const Json* method = find(message, "method");
  if (method == nullptr && (find(message, "result") != nullptr || find(message, "error") != nullptr)) {
    return answer(message);  // whatever is wrong with it: an error sent back could be taken for an answer to its id
  }
  Json usable_id = id != nullptr && valid_id(*id) ? *id : Json(nullptr);
  if (id != nullptr && !valid_id(*id)) {
    return invalid(nullptr, rpc_code::invalid_request, "invalid request: id must be a string, an integer or null");
  }
  if (get_string(message, "jsonrpc") != "2.0") {
    return invalid(std::move(usable_id), rpc_code::invalid_request, "invalid request: jsonrpc must be \"2.0\"");
  }
  if (method == nullptr || !method->is_string()) {
    return invalid(std::move(usable_id), rpc_code::invalid_request, "invalid request: method must be a string");
  }
  const auto& name = method->get_ref<const std::string&>();
  const auto given = message.find("params");  // moved, not copied: a prompt may carry megabytes
  const Json params = given == message.end() || given->is_null() ? Json::object() : std::move(*given);
  if (!params.is_object()) {
    if (id != nullptr) return invalid(std::move(usable_id), rpc_code::invalid_params, "params must be an object");
    return log_warning("a notification whose params are not an object was ignored: " + ellipsize(name, 100));
  }
  if (id != nullptr) return request(std::move(usable_id), name, params, self);
  if (handlers.on_notification) handlers.on_notification(name, params);
}

void RpcPeer::State::answer(const Json& message) {
  const auto id = get_int(message, "id");
  OnAnswer on_answer;
  if (id) {
    Lock lock(mutex);
    if (const auto found = pending.find(*id); found != pending.end()) {
      on_answer = std::move(found->second);
      pending.erase(found);
    }
  }
  if (!on_answer) return log_warning("an answer to an unknown request was ignored");
  if (const Json* error = find(message, "error"); error != nullptr && !error->is_null()) {
    RpcError failure;
    failure.code = static_cast<int>(get_int(*error, "code").value_or(rpc_code::internal_error));
    failure.message = get_string(*error, "message").value_or("the answer is an error without a message");
    if (const Json* data = find(*error, "data")) failure.data = share(*data);
    return on_answer(tl::make_unexpected(std::move(failure)));
  }
  const Json* result = find(message, "result");
  on_answer(share(result == nullptr ? Json(nullptr) : *result));
}

// Nothing will be answered any more.
void RpcPeer::State::end() {
  std::map<std::int64_t, OnAnswer> unanswered;
  {
    Lock lock(mutex);
    ended = true;
    unanswered.swap(pending);
    changed.notify_all();
  }
  for (auto& [id, on_answer] : unanswered) on_answer(tl::make_unexpected(gone()));
}

struct Reply::Core {
  Core(std::weak_ptr<RpcPeer::State> with, Json for_id, std::string for_method)
      : peer(std::move(with)), id(std::move(for_id)), method(std::move(for_method)) {}
  ~Core() {
    if (answered) return;
    log_error("a request was dropped unanswered: " + ellipsize(method, 100));
    send(error_message(id, {rpc_code::internal_error, "internal error: the request was dropped", {}}));
  }

  void send(Json message) {
    if (answered.exchange(true)) return log_error("a second answer was dropped: " + ellipsize(method, 100));
    if (const auto state = peer.lock()) state->enqueue(std::move(message));
  }

  const std::weak_ptr<RpcPeer::State> peer;
  const Json id;
  const std::string method;
  std::atomic<bool> answered{false};
};

void RpcPeer::State::request(Json id, const std::string& method, const Json& params,
                             const std::shared_ptr<State>& self) {
  Reply reply(std::make_shared<Reply::Core>(self, id, method));
  if (handlers.on_request) return handlers.on_request(method, params, id, std::move(reply));
  reply.error({rpc_code::method_not_found, "method not found: " + ellipsize(method, 100), {}});
}

Reply::Reply(std::shared_ptr<Core> core) : core_(std::move(core)) {}
Reply::Reply(Reply&&) noexcept = default;
Reply& Reply::operator=(Reply&&) noexcept = default;
Reply::~Reply() = default;

void Reply::result(Json value) {
  if (!core_) return;
  Json message = envelope();
  message["id"] = core_->id;
  message["result"] = value.is_null() ? Json::object() : std::move(value);
  core_->send(std::move(message));
}

void Reply::error(RpcError error) {
  if (core_) core_->send(error_message(core_->id, error));
}

RpcPeer::RpcPeer(std::unique_ptr<LineTransport> transport, Handlers handlers, Options options)
    : state_(std::make_shared<State>(std::move(transport), std::move(handlers), options)) {
  state_->writer = Thread("rpc-writer", [state = state_.get()] { state->write_queue(); });
}

RpcPeer::~RpcPeer() { shutdown(std::chrono::milliseconds(0)); }

void RpcPeer::run() {
  const auto state = state_;  // this object may be destroyed while the last handler runs
  std::string line;
  for (;;) {
    switch (state->transport->read(line)) {
      case ReadLine::line:
        // A handler that throws has dropped its Reply, which answers; the reader goes on.
        try {
          state->dispatch(line, state);
        } catch (const std::exception& error) {
          log_error(fmt::format("a handler failed: {}", ellipsize(error.what(), 500)));
        }
        break;
      case ReadLine::too_long:
        state->invalid(nullptr, rpc_code::invalid_request, "invalid request: the line is too long");
        break;
      case ReadLine::end:
        return state->end();
    }
  }
}

void RpcPeer::stop_reading() { state_->transport->stop_reading(); }

void RpcPeer::notify(const std::string& method, Json params, Merge merge) {
  Json message = envelope();
  message["method"] = method;
  message["params"] = std::move(params);
  state_->enqueue(std::move(message), std::move(merge));
}

std::int64_t RpcPeer::call(const std::string& method, Json params, OnAnswer on_answer) {
  std::int64_t id = 0;
  OnAnswer refused;
  {
    Lock lock(state_->mutex);
    id = state_->next_id++;
    const bool alive = !state_->ended && !state_->writer_dead && !state_->closing;
    if (alive) {
      state_->pending.emplace(id, std::move(on_answer));
    } else {
      refused = std::move(on_answer);
    }
  }
  if (refused) {
    refused(tl::make_unexpected(gone()));
    return id;
  }
  Json message = envelope();
  message["id"] = id;
  message["method"] = method;
  message["params"] = std::move(params);
  state_->enqueue(std::move(message));
  return id;
}

void RpcPeer::cancel_call(std::int64_t id) {
  {
    Lock lock(state_->mutex);
    if (state_->pending.count(id) == 0) return;
  }
  notify("$/cancel_request", Json{{"requestId", id}});
}

void RpcPeer::wait_drained(std::stop_token stop) {
  const auto state = state_;
  // Declared before the lock: destroying it waits for a callback that wants the same mutex.
  const std::stop_callback wake(stop, [&state] {
    Lock lock(state->mutex);
    state->changed.notify_all();
  });
  Lock lock(state->mutex);
  while (state->over_high_water() && !stop.stop_requested()) state->changed.wait(state->mutex);
}

bool RpcPeer::dead() const {
  Lock lock(state_->mutex);
  return state_->ended || state_->writer_dead;
}

void RpcPeer::shutdown(std::chrono::milliseconds drain) {
  const auto deadline = std::chrono::steady_clock::now() + drain;
  {
    Lock lock(state_->mutex);
    if (std::exchange(state_->shut_down, true)) return;
  }
  state_->transport->stop_reading();
  state_->end();
  {
    Lock lock(state_->mutex);
    while ((!state_->queue.empty() || state_->writing) && !state_->writer_dead) {
      if (!state_->changed.wait_until(state_->mutex, deadline) && std::chrono::steady_clock::now() >= deadline) break;
    }
    state_->closing = true;
    state_->changed.notify_all();
  }
  state_->transport->close();
  state_->writer.join();
}

}  // namespace base

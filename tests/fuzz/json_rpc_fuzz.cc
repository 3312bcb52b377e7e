// Whatever a client sends, the peer's every line is valid JSON-RPC, each request is answered once, and the reader ends
// with the input. Bytes after the first are the lines; the first byte chooses how the handler treats requests.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/rpc_peer.h"
#include "base/text.h"

namespace {

void require(bool fact) {
  if (!fact) std::abort();
}

void check_line(std::string_view line) {
  require(base::valid_utf8(line) && line.find('\n') == std::string_view::npos);
  const auto message = base::parse_json(line);
  require(message && message->is_object() && base::get_string(*message, "jsonrpc") == "2.0");
  const bool call = base::find(*message, "method") != nullptr;
  const bool result = base::find(*message, "result") != nullptr;
  const bool error = base::find(*message, "error") != nullptr;
  require(call ? !result && !error : result != error);
  require(call || base::find(*message, "id") != nullptr);
}

// Gives the peer the fuzzer's lines and checks what it writes.
class Script final : public base::LineTransport {
 public:
  explicit Script(std::string_view text) : text_(text) {}
  base::ReadLine read(std::string& line) override {
    if (text_.empty()) return base::ReadLine::end;
    const std::size_t end = text_.find('\n');
    line = text_.substr(0, end);
    text_ = end == std::string_view::npos ? std::string_view() : text_.substr(end + 1);
    return line.size() > 4096 ? base::ReadLine::too_long : base::ReadLine::line;
  }
  bool write(std::string_view line, std::chrono::milliseconds) override {
    check_line(line);
    return true;
  }
  void stop_reading() override {}
  void close() override {}

 private:
  std::string_view text_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const int mood = data[0] % 4;
  base::RpcPeer::Handlers handlers;
  handlers.on_request = [&](const std::string& method, const base::Json& params, const base::Json&, base::Reply reply) {
    if (mood == 1) return;
    if (mood == 2) return reply.error({base::rpc_code::invalid_params, method, base::share(params)});
    reply.result(base::Json{{"method", method}, {"params", params}});
    if (mood == 3) reply.result(nullptr);
  };
  int answers = 0;
  {
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    base::RpcPeer peer(std::make_unique<Script>(text), handlers, {});
    for (int i = 0; i < 3; ++i) {
      const auto id = peer.call("ask", base::Json::object(), [&](const auto&) { ++answers; });
      if (i == 0) peer.cancel_call(id);
    }
    peer.run();
    peer.shutdown(std::chrono::seconds(10));
  }
  require(answers == 3);
  return 0;
}

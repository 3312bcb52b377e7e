#include "llm/recorded.h"

#include <assets.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/fd.h"
#include "llm/openai_completions.h"

namespace {

using base::ErrorCode;

struct Played {
  std::vector<std::string> reads;
  base::Result<llm::HttpResponse> response = llm::HttpResponse{};
};

Played play(const llm::HttpPost& post, const std::string& body, std::stop_token stop = {}) {
  Played out;
  llm::HttpRequest request;
  request.body = body;
  llm::HttpSink sink;
  sink.on_body = [&](std::string_view bytes, bool&) {
    out.reads.emplace_back(bytes);
    return true;
  };
  out.response = post(request, sink, std::move(stop));
  return out;
}

llm::HttpPost recording(const char* text, std::string requests = {}) {
  auto answers = llm::parse_recording(text);
  REQUIRE(answers);
  return llm::make_recorded_post(std::move(*answers), std::move(requests));
}

}  // namespace

TEST_CASE("answers are played in order, and by what the request holds", "[recorded]") {
  const auto post = recording(
      "# two sessions\n\n=== answer match=\"beta\"\ndata: b1\n\n=== answer\ndata: first\n\n"
      "=== answer status=429 header=\"Retry-After: 1\"\n{\"error\":\"slow\"}\n=== answer match=\"say "
      "\\\"x\\\"\"\ndata: x\n");
  CHECK(play(post, "alpha").reads == std::vector<std::string>{"data: first\n\n"});
  CHECK(play(post, "beta").reads == std::vector<std::string>{"data: b1\n\n"});
  const Played refused = play(post, "beta");
  REQUIRE(refused.response);
  CHECK(refused.response->status == 429);
  CHECK(refused.response->error_body == "{\"error\":\"slow\"}\n");
  CHECK(refused.response->headers.find("retry-after")->second == "1");
  const Played none = play(post, "alpha");
  REQUIRE_FALSE(none.response);
  CHECK(none.response.error().message.find("no answer left") != std::string::npos);
  CHECK(play(post, "say \"x\"").reads.size() == 1);
}

TEST_CASE("orders inside an answer", "[recorded]") {
  const auto post = recording("=== answer\nda\n@chunk\nta\n@wait 1\nend\n@cut\n=== answer\ndata: x\n@hang\n");
  const Played cut = play(post, "");
  CHECK(cut.reads == std::vector<std::string>{"da\n", "ta\n", "end\n"});
  REQUIRE_FALSE(cut.response);
  CHECK(cut.response.error().code == ErrorCode::cut_stream);

  std::stop_source source;
  std::jthread stopper([&] { source.request_stop(); });
  const Played hung = play(post, "", source.get_token());
  REQUIRE_FALSE(hung.response);
  CHECK(hung.response.error().code == ErrorCode::cancelled);
}

TEST_CASE("a malformed recording is refused with its line", "[recorded]") {
  const auto message = [](const char* text) {
    const auto parsed = llm::parse_recording(text);
    REQUIRE_FALSE(parsed);
    return parsed.error().message;
  };
  CHECK(message("") == "the recording has no === answer");
  CHECK(message("# x\ndata: x\n").find("line 2") == 0);
  CHECK(message("=== answer status=9\n").find("status") != std::string::npos);
  CHECK(message("=== answer matches=x\n").find("unknown attribute matches") != std::string::npos);
  CHECK(message("=== answer match=\"x\n").find("closing") != std::string::npos);
  CHECK(message("=== answer\n@wait\n").find("line 2") == 0);
  CHECK(message("=== answer\n@wait x\n").find("milliseconds") != std::string::npos);
  CHECK(message("=== answer\n@hang\ndata: x\n").find("line 3") == 0);
}

TEST_CASE("every request is kept, one a line, for the owner only", "[recorded]") {
  char folder[] = "/var/tmp/acp-llm-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string file = std::string(folder) + "/requests";
  const auto post = recording("=== answer\ndata: x\n=== answer\ndata: y\n", file);
  play(post, "{\"a\":1}");
  play(post, "{\"b\":2}");
  CHECK(base::read_file(file, 1000).value() == "{\"a\":1}\n{\"b\":2}\n");
  struct stat info {};
  REQUIRE(::stat(file.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  ::unlink(file.c_str());
  ::rmdir(folder);
}

TEST_CASE("the built-in recording plays to its end", "[recorded]") {
  auto answers = llm::parse_recording(assets::demo_recording_txt);
  REQUIRE(answers);
  const std::size_t count = answers->size();
  for (auto& answer : *answers) {
    for (auto& step : answer.steps) step.wait_ms = 0;
  }
  llm::OpenAiCompletions adapter({}, llm::make_recorded_post(std::move(*answers), ""));
  llm::RequestHeader header;
  std::vector<std::string> calls;
  for (std::size_t i = 0; i < count; ++i) {
    const auto result = adapter.complete(header, {}, {}, {});
    REQUIRE(result);
    for (const auto& call : result->message.tool_calls) {
      calls.push_back(call.name);
      CHECK(call.arguments.find("/var") == std::string::npos);
    }
    CHECK((result->finish == llm::FinishReason::stop) == (i + 1 == count));
  }
  CHECK(calls == std::vector<std::string>{"bash", "bash", "bash", "read", "edit"});
}

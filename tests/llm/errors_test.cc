#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "llm/model_errors.h"

namespace {

using base::ErrorCode;
using llm::http_failure;

const auto now = std::chrono::system_clock::from_time_t(1'700'000'000);  // Tue, 14 Nov 2023 22:13:20 GMT

llm::ModelError failure(int status, const std::string& body, const llm::ResponseHeaders& headers = {}) {
  return http_failure(status, headers, body, now);
}

}  // namespace

TEST_CASE("each status has its class", "[errors]") {
  struct Row {
    int status;
    const char* body;
    ErrorCode code;
    bool retryable;
  };
  const std::vector<Row> rows = {
      {400, R"({"error":{"message":"bad"}})", ErrorCode::bad_request, false},
      {401, "", ErrorCode::auth, false},
      {402, "", ErrorCode::quota, false},
      {403, "", ErrorCode::auth, false},
      {404, "<html><head><title>Not Found</title></head></html>", ErrorCode::bad_request, false},
      {408, "", ErrorCode::timed_out, true},
      {409, "", ErrorCode::server, true},
      {413, "", ErrorCode::context_overflow, false},
      {422, R"({"detail":[{"msg":"field required"}]})", ErrorCode::bad_request, false},
      {425, "", ErrorCode::server, true},
      {429, "", ErrorCode::rate_limit, true},
      {429, R"({"error":{"message":"no","code":"insufficient_quota"}})", ErrorCode::quota, false},
      {429, R"({"error":{"message":"x","code":"1113"}})", ErrorCode::quota, false},
      {500, "", ErrorCode::server, true},
      {502, "<html>bad gateway</html>", ErrorCode::server, true},
      {503, "", ErrorCode::server, true},
      {529, R"({"error":{"type":"overloaded_error"}})", ErrorCode::server, true},
      {501, "", ErrorCode::bad_request, false},
      {302, "", ErrorCode::bad_request, false},
      {500, R"({"error":{"message":"Cannot use tools with stream"}})", ErrorCode::bad_request, false},
      {400, R"({"error":{"message":"x","code":"content_filter"}})", ErrorCode::content_filter, false},
  };
  for (const Row& row : rows) {
    const auto error = failure(row.status, row.body);
    INFO(row.status << " " << row.body << " -> " << error.error.message);
    CHECK(error.error.code == row.code);
    CHECK(error.retryable == row.retryable);
    CHECK(error.error.message.find(std::to_string(row.status)) != std::string::npos);
  }
}

TEST_CASE("the overflow phrases of each provider", "[errors]") {
  for (const char* text :
       {"prompt is too long: 210000 tokens > 200000 maximum", "Input is too long for requested model.",
        "Your input exceeds the context window of this model",
        "The input token count (1200000) exceeds the maximum number of tokens allowed",
        "This model's maximum prompt length is 131072", "Please reduce the length of the messages or completion",
        "This endpoint's maximum context length is 128000 tokens", "the request exceeds the available context size",
        "tokens to keep is greater than the context length", "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 262144", "too large for model with 32768 maximum context length",
        "maximum allowed input length", "prompt too long; exceeded max context length by 12 tokens"}) {
    INFO(text);
    CHECK(failure(400, std::string(R"({"error":{"message":")") + text + "\"}}").error.code ==
          ErrorCode::context_overflow);
  }
  CHECK(failure(400, R"({"error":{"code":"context_length_exceeded","message":"x"}})").error.code ==
        ErrorCode::context_overflow);
  CHECK(failure(500, R"({"error":{"type":"exceed_context_size_error","message":"x","n_ctx":4096}})").error.code ==
        ErrorCode::context_overflow);
  CHECK(failure(400, "").error.code == ErrorCode::context_overflow);
  CHECK(failure(429, R"({"message":"Too many tokens, please wait before trying again."})").error.code ==
        ErrorCode::rate_limit);
  CHECK(failure(400, R"({"message":"Too many tokens, please wait before trying again."})").error.code ==
        ErrorCode::rate_limit);
}

TEST_CASE("the message says what the server said, whatever the shape of its body", "[errors]") {
  const auto says = [](int status, const char* body, const char* text) {
    const std::string message = failure(status, body).error.message;
    INFO(message);
    CHECK(message.find(text) != std::string::npos);
  };
  says(400, R"({"error":{"message":"shape one"}})", "shape one");
  says(400, R"({"error":"shape two"})", "shape two");
  says(400, R"([{"error":{"message":"shape three"}}])", "shape three");
  says(400, R"({"message":"shape four"})", "shape four");
  says(400, R"({"detail":"shape five"})", "shape five");
  says(422, R"({"detail":[{"loc":["body"],"msg":"shape six"}]})", "shape six");
  says(400, "shape seven\n", "shape seven");
  says(404, "<!doctype html><title>Not here</title>", "Not here");
  says(400, R"({"odd":1})", R"({"odd":1})");
  says(400, R"({"error":{"message":"outer","metadata":{"raw":"inner"}}})", "inner");
  says(404, "", "base_url");
  says(401, "", "api_key_env");
  CHECK(failure(400, "a\x01\x1b[31m\nb\xFF").error.message.find('\x1b') == std::string::npos);
}

TEST_CASE("when to try again", "[errors]") {
  using Headers = llm::ResponseHeaders;
  const auto after = [](const Headers& headers) { return llm::retry_after_ms(headers, now); };
  CHECK(after({}) == -1);
  CHECK(after({{"retry-after", "7"}}) == 7000);
  CHECK(after({{"retry-after", "1.5"}}) == 1500);
  CHECK(after({{"retry-after-ms", "1200"}, {"retry-after", "9"}}) == 1200);
  CHECK(after({{"retry-after", "Tue, 14 Nov 2023 22:13:30 GMT"}}) == 10'000);
  CHECK(after({{"retry-after", "Tue, 14 Nov 2023 22:00:00 GMT"}}) == 0);
  CHECK(after({{"retry-after", "soon"}}) == -1);
  CHECK(after({{"x-ratelimit-reset-requests", "1s"},
               {"x-ratelimit-reset-tokens", "6m0s"},
               {"x-ratelimit-remaining-tokens", "0"}}) == 360'000);
  CHECK(after({{"x-ratelimit-reset-requests", "250ms"}, {"x-ratelimit-reset-tokens", "6m0s"}}) == 250);
  CHECK(
      failure(
          429,
          R"({"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}})")
          .retry_after_ms == 34'000);
  CHECK(failure(429, R"({"error":{"message":"Rate limit reached. Please try again in 6m0s."}})").retry_after_ms ==
        360'000);
  CHECK(failure(429, "{}").error.message == "the model server answered 429 (rate limit)");
  CHECK(failure(400, "x", {{"retry-after", "7"}}).retry_after_ms == -1);
  CHECK(llm::parse_duration_ms("1h2m3.5s") == 3'723'500);
  CHECK(llm::parse_duration_ms("x") == -1);
  CHECK(llm::parse_duration_ms("99999999999999999999999") == -1);
}

TEST_CASE("which failures without an answer are worth a retry", "[errors]") {
  const auto retryable = [](ErrorCode code) { return llm::transport_failure(base::Error{code, "", ""}).retryable; };
  CHECK(retryable(ErrorCode::transport));
  CHECK(retryable(ErrorCode::timed_out));
  CHECK(retryable(ErrorCode::cut_stream));
  CHECK_FALSE(retryable(ErrorCode::cancelled));
  CHECK_FALSE(retryable(ErrorCode::invalid_argument));
  CHECK_FALSE(retryable(ErrorCode::malformed));
}

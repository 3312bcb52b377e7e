#include "llm/model_errors.h"

#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace llm {

namespace {

using base::ErrorCode;
using base::Json;
using Time = std::chrono::system_clock::time_point;

template <std::size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& phrases) {
  for (const std::string_view phrase : phrases) {
    if (base::contains_ignoring_case(text, phrase)) return true;
  }
  return false;
}

constexpr std::array<std::string_view, 5> quota_phrases{"insufficient balance", "insufficient_quota",
                                                        "exceeded your current quota", "credit balance is too low",
                                                        "billing hard limit"};

// Looked at before the overflow phrases: "Too many tokens, please wait" is throttling.
constexpr std::array<std::string_view, 9> throttle_phrases{
    "too many tokens, please wait", "too many requests",  "rate limit",         "rate_limit", "ratelimit", "throttl",
    "resource_exhausted",           "please wait before", "requests per minute"};

constexpr std::array<std::string_view, 24> overflow_phrases{"context_length_exceeded",
                                                            "exceed_context_size_error",
                                                            "prompt is too long",
                                                            "input is too long",
                                                            "exceeds the context window",
                                                            "exceeds the maximum number of tokens",
                                                            "maximum prompt length is",
                                                            "reduce the length of the messages",
                                                            "maximum context length",
                                                            "exceeds the available context size",
                                                            "greater than the context length",
                                                            "context window exceeds limit",
                                                            "exceeded model token limit",
                                                            "exceeds model token limit",
                                                            "maximum allowed input length",
                                                            "prompt too long",
                                                            "exceeded max context length",
                                                            "model_context_window_exceeded",
                                                            "context length exceeded",
                                                            "context window is full",
                                                            "too many tokens",
                                                            "exceeds the maximum input",
                                                            "input token count",
                                                            "longer than the model's context"};

constexpr std::array<std::string_view, 4> overload_phrases{"overloaded", "server_error", "internal_error",
                                                           "service unavailable"};

std::string string_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer() || value.is_number_unsigned()) return base::dump(value);
  return {};
}

std::string member(const Json& object, std::string_view key) {
  const Json* value = base::find(object, key);
  return value == nullptr ? std::string() : string_of(*value);
}

// What an error body says, whatever its shape.
struct Said {
  std::string message;
  std::string codes;  // code, type, status, each on its own line; lower case
  int status = 0;     // a numeric code of an error inside a stream
  std::int64_t retry_ms = -1;
};

void read_error(const Json& error, Said& said) {
  if (error.is_string()) {
    said.message = error.get<std::string>();
    return;
  }
  if (error.is_array()) {
    if (!error.empty()) read_error(error.front(), said);
    return;
  }
  if (!error.is_object()) return;
  for (const char* key : {"message", "error_message", "msg", "detail", "error"}) {
    const Json* value = base::find(error, key);
    if (value == nullptr || value->is_null()) continue;
    if (value->is_structured()) {
      read_error(*value, said);
    } else if (said.message.empty()) {
      said.message = string_of(*value);
    }
  }
  for (const char* key : {"code", "type", "status", "error_type", "error_code"}) {
    const std::string code = base::to_lower(member(error, key));
    if (!code.empty()) said.codes += code + "\n";
    if (said.status == 0 && code.size() == 3 && (code[0] == '4' || code[0] == '5'))
      said.status = std::atoi(code.c_str());
  }
  if (const Json* metadata = base::find(error, "metadata"); metadata != nullptr) {  // a gateway's upstream text
    const std::string raw = member(*metadata, "raw");
    if (!raw.empty()) said.message += (said.message.empty() ? "" : ": ") + raw;
  }
  if (const Json* details = base::find(error, "details"); details != nullptr && details->is_array()) {
    for (const Json& detail : *details) {
      const std::string delay = member(detail, "retryDelay");
      if (!delay.empty()) said.retry_ms = parse_duration_ms(delay);
    }
  }
}

Said read_body(std::string_view body) {
  Said said;
  const std::string_view trimmed = base::trim(body);
  if (trimmed.empty()) return said;
  auto parsed = base::parse_json(trimmed);
  if (parsed && (parsed->is_structured() || parsed->is_string())) {
    read_error(*parsed, said);
    if (said.message.empty() && !parsed->empty()) said.message = base::dump(*parsed);
  } else if (trimmed.front() == '<') {
    said.message = "an HTML page instead of JSON";
    const std::string lower = base::to_lower(trimmed);
    const std::size_t open = lower.find("<title>"), close = lower.find("</title>");
    if (open != std::string::npos && close != std::string::npos && open + 7 < close) {
      said.message += ", titled \"" + std::string(base::trim(trimmed.substr(open + 7, close - open - 7))) + "\"";
    }
  } else {
    said.message = trimmed;
  }
  return said;
}

// One printable line.
std::string tidy(std::string_view text) {
  std::string out = base::to_utf8(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  return base::ellipsize(out, 600);
}

// "try again in 6m0s", "Please retry in 6.2s".
std::int64_t spoken_delay_ms(std::string_view message) {
  const std::string lower = base::to_lower(message);
  for (const std::string_view lead : {"try again in ", "retry in ", "retry after "}) {
    const std::size_t at = lower.find(lead);
    if (at == std::string::npos) continue;
    std::string_view rest = std::string_view(lower).substr(at + lead.size());
    rest = rest.substr(0, rest.find_first_not_of("0123456789.smh"));
    while (rest.ends_with('.')) rest.remove_suffix(1);
    return parse_duration_ms(rest);
  }
  return -1;
}

struct Class {
  ErrorCode code;
  bool retryable;
  std::string_view what;
  std::string_view hint;
};

Class classify(int status, const Said& said, bool empty_body) {
  const std::string all = base::to_lower(said.message) + "\n" + said.codes;
  const bool has_code = !said.codes.empty();
  const bool quota_code = contains_any(
      said.codes,
      std::array<std::string_view, 4>{"insufficient_quota", "1113\n", "billing_error", "insufficient_balance"});
  if (status == 402 || quota_code || (contains_any(all, quota_phrases) && said.retry_ms < 0)) {
    return {ErrorCode::quota, false, "quota", "the account has no credit left; top it up or use another key"};
  }
  const bool throttled = contains_any(all, throttle_phrases);
  if (status == 429 || (throttled && status != 401 && status != 403)) {
    return {ErrorCode::rate_limit, true, "rate limit", ""};
  }
  const bool sizable = status == 0 || status == 400 || status == 413 || status == 422 || status >= 500;
  if ((sizable && contains_any(all, overflow_phrases)) || status == 413 || (status == 400 && empty_body)) {
    return {ErrorCode::context_overflow, false, "context overflow", "the conversation is too long for the model"};
  }
  if (contains_any(said.codes, std::array<std::string_view, 2>{"content_filter", "content_policy"})) {
    return {ErrorCode::content_filter, false, "content filter", ""};
  }
  if (base::contains_ignoring_case(all, "cannot use tools with stream")) {
    return {ErrorCode::bad_request, false, "bad request",
            "this server version cannot stream and call tools at once; update it (llama-server: start with --jinja)"};
  }
  switch (status) {
    case 401:
      return {ErrorCode::auth, false, "unauthorized", "check the API key in the variable named by api_key_env"};
    case 403:
      return {ErrorCode::auth, false, "forbidden", "the key may not use this model or server"};
    case 404:
      return {ErrorCode::bad_request, false, "not found", "check base_url (does it need /v1?) and model"};
    case 407:
      return {ErrorCode::bad_request, false, "proxy authentication required",
              "put user and password into the proxy variable"};
    case 408:
      return {ErrorCode::timed_out, true, "request timeout", ""};
    case 409:
    case 425:
      return {ErrorCode::server, true, "conflict", ""};
    case 501:
    case 505:
      return {ErrorCode::bad_request, false, "unsupported by the server", "check base_url"};
    default:
      break;
  }
  if (status >= 500) {
    const bool busy = status == 503 || status == 529 || contains_any(all, overload_phrases);
    return {ErrorCode::server, true, busy ? "overloaded or unavailable" : "server error", ""};
  }
  if (status >= 300 && status < 400) {
    return {ErrorCode::bad_request, false, "redirect not followed",
            "set base_url to the address it leads to; a key is never sent to another host by itself"};
  }
  if (status >= 400) return {ErrorCode::bad_request, false, "bad request", ""};
  // Inside a stream, without a number.
  if (contains_any(said.codes, std::array<std::string_view, 3>{"authentication", "invalid_api_key", "permission"})) {
    return {ErrorCode::auth, false, "unauthorized", "check the API key"};
  }
  if (has_code &&
      contains_any(said.codes, std::array<std::string_view, 3>{"invalid_request", "bad_request", "model_not_found"})) {
    return {ErrorCode::bad_request, false, "bad request", ""};
  }
  return {ErrorCode::server, true, "server error", ""};
}

}  // namespace

std::int64_t parse_duration_ms(std::string_view text) {
  text = base::trim(text);
  if (text.empty()) return -1;
  double total = 0;
  while (!text.empty()) {
    std::size_t digits = 0;
    while (digits < text.size() &&
           (std::isdigit(static_cast<unsigned char>(text[digits])) != 0 || text[digits] == '.')) {
      ++digits;
    }
    if (digits == 0 || digits > 18) return -1;
    const double value = std::strtod(std::string(text.substr(0, digits)).c_str(), nullptr);
    text.remove_prefix(digits);
    double unit = 1000;
    if (text.starts_with("ms")) {
      unit = 1;
      text.remove_prefix(2);
    } else if (!text.empty()) {
      const char c = text.front();
      if (c != 'h' && c != 'm' && c != 's' && c != 'd') return -1;
      unit = c == 'd' ? 86'400'000.0 : c == 'h' ? 3'600'000.0 : c == 'm' ? 60'000.0 : 1000.0;
      text.remove_prefix(1);
    }
    total += value * unit;
  }
  if (!(total >= 0) || total > 1e12) return -1;
  return static_cast<std::int64_t>(std::ceil(total));
}

std::int64_t retry_after_ms(const ResponseHeaders& headers, Time now) {
  const auto header = [&](const char* name) -> std::string {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : std::string(base::trim(found->second));
  };
  if (const std::string ms = header("retry-after-ms"); !ms.empty()) {
    const std::int64_t seconds = parse_duration_ms(ms);  // a bare number reads as seconds
    if (seconds >= 0) return (seconds + 999) / 1000;
  }
  if (const std::string after = header("retry-after"); !after.empty()) {
    const std::int64_t ms = parse_duration_ms(after);
    if (ms >= 0) return ms;
    std::tm date{};
    if (::strptime(after.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date) != nullptr) {
      const auto wait = std::chrono::system_clock::from_time_t(::timegm(&date)) - now;
      return std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(wait).count(), 0);
    }
  }
  std::int64_t exhausted = -1, shortest = -1;
  for (const char* budget : {"requests", "tokens"}) {
    const std::int64_t reset = parse_duration_ms(header((std::string("x-ratelimit-reset-") + budget).c_str()));
    if (reset < 0) continue;
    if (header((std::string("x-ratelimit-remaining-") + budget).c_str()) == "0") exhausted = std::max(exhausted, reset);
    if (shortest < 0 || reset < shortest) shortest = reset;
  }
  return exhausted >= 0 ? exhausted : shortest;
}

ModelError http_failure(int status, const ResponseHeaders& headers, std::string_view body, Time now) {
  const Said said = read_body(body);
  const Class kind = classify(status, said, base::trim(body).empty());
  ModelError error;
  error.error.code = kind.code;
  error.error.message = "the model server answered " + std::to_string(status) + " (" + std::string(kind.what) + ")";
  if (!said.message.empty()) error.error.message += ": " + tidy(said.message);
  if (!kind.hint.empty()) error.error.message += " [" + std::string(kind.hint) + "]";
  if (const auto location = headers.find("location"); status / 100 == 3 && location != headers.end()) {
    error.error.message += " (to " + tidy(location->second) + ")";
  }
  if (!said.message.empty()) error.error.detail = tidy(body);
  error.retryable = kind.retryable;
  if (kind.retryable) {
    error.retry_after_ms = retry_after_ms(headers, now);
    if (error.retry_after_ms < 0) error.retry_after_ms = said.retry_ms;
    if (error.retry_after_ms < 0) error.retry_after_ms = spoken_delay_ms(said.message);
  }
  return error;
}

const Json* stream_error(const Json& event, std::string_view event_name) {
  if (event.is_array() && !event.empty()) {
    const Json* inner = base::find(event.front(), "error");
    return inner != nullptr && !inner->is_null() ? inner : nullptr;
  }
  if (const Json* error = base::find(event, "error"); error != nullptr && !error->is_null()) {
    if (error->is_structured() ? !error->empty()
                               : (error->is_string() && !error->get_ref<const Json::string_t&>().empty())) {
      return error;
    }
  }
  if (event_name == "error") return &event;
  const auto object = base::get_string(event, "object");
  if (object && *object == "error") return &event;
  const Json* message = base::find(event, "error_message");
  if (message != nullptr && message->is_string() && !message->get_ref<const Json::string_t&>().empty()) return &event;
  return nullptr;
}

ModelError stream_failure(const Json& value) {
  Said said;
  read_error(value, said);
  if (said.message.empty()) said.message = base::dump(value);
  const Class kind = classify(said.status, said, false);
  ModelError error;
  error.error.code = kind.code;
  error.error.message =
      "the model server reported an error instead of an answer (" + std::string(kind.what) + "): " + tidy(said.message);
  if (!kind.hint.empty()) error.error.message += " [" + std::string(kind.hint) + "]";
  error.error.detail = tidy(base::dump(value));
  error.retryable = kind.retryable;
  if (kind.retryable) error.retry_after_ms = said.retry_ms >= 0 ? said.retry_ms : spoken_delay_ms(said.message);
  return error;
}

ModelError transport_failure(base::Error error) {
  ModelError result;
  result.retryable =
      error.code == ErrorCode::timed_out || error.code == ErrorCode::transport || error.code == ErrorCode::cut_stream;
  result.error = std::move(error);
  return result;
}

}  // namespace llm

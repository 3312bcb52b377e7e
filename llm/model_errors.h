// What a failed answer of a model server means: its code, whether trying again can help, and when. Pure; any thread.
// Facts: the public error tables of the servers and what they send in practice (throttling that reads like an overflow,
// quota errors as 429, errors inside a 200 stream, bodies that are strings, arrays, HTML or nothing).
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "llm/adapter.h"

namespace llm {

using ResponseHeaders = std::multimap<std::string, std::string>;  // names lower case

// An answer whose status is not 2xx.
ModelError http_failure(int status, const ResponseHeaders& headers, std::string_view body,
                        std::chrono::system_clock::time_point now);

// The error value inside an event or a whole JSON answer, or null: {error}, [{error}], {object: "error"},
// {error_message}, or anything under `event: error`.
const base::Json* stream_error(const base::Json& event, std::string_view event_name);
ModelError stream_failure(const base::Json& error);

// Fails without any answer (limits, connection, stop).
ModelError transport_failure(base::Error error);

// Milliseconds a server asks to wait, -1 when it does not: retry-after-ms, retry-after (seconds or a date),
// x-ratelimit-reset-* of an exhausted budget.
std::int64_t retry_after_ms(const ResponseHeaders& headers, std::chrono::system_clock::time_point now);
std::int64_t parse_duration_ms(std::string_view text);  // "6m0s", "1.5s", "250ms", "2"; -1 when it is none

}  // namespace llm

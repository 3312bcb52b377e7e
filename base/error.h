// The one error value of the product. Functions that can fail return Result<T>; expected outcomes (exit code, denied,
// timed out) are data, not errors. No exception crosses a function of ours. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace base {

// Closed list. Adding one: error_name() in error.cc does not compile until it is named.
enum class ErrorCode {
  invalid_argument,
  not_found,
  already_exists,
  busy,
  io,
  corrupt,
  limit,
  cancelled,
  timed_out,
  internal,
  // Sandbox and files; their names are upper case in texts (SANDBOX_UNAVAILABLE, FS_SANDBOX_DENIED, ...).
  sandbox_unavailable,
  command_start,
  fs_sandbox_denied,
  fs_permission_denied,
  fs_not_observed,
  fs_stale_version,
  // Model.
  auth,
  quota,
  rate_limit,
  server,
  context_overflow,
  bad_request,
  content_filter,
  transport,
  cut_stream,
  malformed,
  empty_response,
};

std::string_view error_name(ErrorCode code);  // "sandbox_unavailable" is "SANDBOX_UNAVAILABLE", "rate_limit" stays

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  // for its reader: says what happened and what to do
  std::string detail;   // optional second line for operators (errno text, server body)
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string detail = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(detail)});
}

// "<what>: <strerror(error_number)>". EACCES/EPERM/EROFS map to fs_permission_denied, ENOENT to not_found, else io.
tl::unexpected<Error> fail_errno(std::string_view what, int error_number);

}  // namespace base

#include "base/error.h"

#include <cerrno>
#include <cstring>

namespace base {

std::string_view error_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::already_exists:
      return "already_exists";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::io:
      return "io";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::limit:
      return "limit";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::timed_out:
      return "timed_out";
    case ErrorCode::internal:
      return "internal";
    case ErrorCode::sandbox_unavailable:
      return "SANDBOX_UNAVAILABLE";
    case ErrorCode::command_start:
      return "command_start";
    case ErrorCode::fs_sandbox_denied:
      return "FS_SANDBOX_DENIED";
    case ErrorCode::fs_permission_denied:
      return "FS_PERMISSION_DENIED";
    case ErrorCode::fs_not_observed:
      return "FS_NOT_OBSERVED";
    case ErrorCode::fs_stale_version:
      return "FS_STALE_VERSION";
    case ErrorCode::auth:
      return "auth";
    case ErrorCode::quota:
      return "quota";
    case ErrorCode::rate_limit:
      return "rate_limit";
    case ErrorCode::server:
      return "server";
    case ErrorCode::context_overflow:
      return "context_overflow";
    case ErrorCode::bad_request:
      return "bad_request";
    case ErrorCode::content_filter:
      return "content_filter";
    case ErrorCode::transport:
      return "transport";
    case ErrorCode::cut_stream:
      return "cut_stream";
    case ErrorCode::malformed:
      return "malformed";
    case ErrorCode::empty_response:
      return "empty_response";
  }
  return "internal";
}

tl::unexpected<Error> fail_errno(std::string_view what, int error_number) {
  ErrorCode code = ErrorCode::io;
  if (error_number == EACCES || error_number == EPERM || error_number == EROFS) code = ErrorCode::fs_permission_denied;
  if (error_number == ENOENT) code = ErrorCode::not_found;
  return fail(code, std::string(what) + ": " + std::strerror(error_number));
}

}  // namespace base

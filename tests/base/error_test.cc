#include "base/error.h"

#include <catch2/catch.hpp>
#include <cerrno>

TEST_CASE("errors of the system are mapped") {
  const base::Error denied = base::fail_errno("open x", EACCES).value();
  CHECK(denied.code == base::ErrorCode::fs_permission_denied);
  CHECK(denied.message == "open x: Permission denied");
  CHECK(base::fail_errno("", EROFS).value().code == base::ErrorCode::fs_permission_denied);
  CHECK(base::fail_errno("", ENOENT).value().code == base::ErrorCode::not_found);
  CHECK(base::fail_errno("", ENOSPC).value().code == base::ErrorCode::io);
}

TEST_CASE("names of errors") {
  CHECK(base::error_name(base::ErrorCode::sandbox_unavailable) == "SANDBOX_UNAVAILABLE");
  CHECK(base::error_name(base::ErrorCode::fs_sandbox_denied) == "FS_SANDBOX_DENIED");
  CHECK(base::error_name(base::ErrorCode::rate_limit) == "rate_limit");
}

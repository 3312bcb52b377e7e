#include "cli/exit_code.h"

#include <catch2/catch.hpp>
#include <csignal>

namespace {

cli::RunEnd ended(std::string stop_reason) {
  cli::RunEnd end;
  end.stop_reason = std::move(stop_reason);
  return end;
}

}  // namespace

TEST_CASE("the exit code of a run: each reason by itself") {
  CHECK(cli::exit_code(ended("end_turn")) == 0);
  CHECK(cli::exit_code(ended("max_tokens")) == 4);
  CHECK(cli::exit_code(ended("max_turn_requests")) == 4);
  CHECK(cli::exit_code(ended("refusal")) == 3);
  CHECK(cli::exit_code(ended("cancelled")) == 1);
  CHECK(cli::exit_code(ended("something new")) == 1);
  cli::RunEnd end = ended("end_turn");
  end.denied = true;
  CHECK(cli::exit_code(end) == 3);
  end = ended("end_turn");
  end.sandbox_unavailable = true;
  CHECK(cli::exit_code(end) == 5);
  end = {};
  end.error = true;
  CHECK(cli::exit_code(end) == 1);
  end.retryable = true;
  CHECK(cli::exit_code(end) == 75);
  end = {};
  end.signal = SIGINT;
  CHECK(cli::exit_code(end) == 130);
  end.signal = SIGTERM;
  CHECK(cli::exit_code(end) == 143);
}

TEST_CASE("the exit code of a run: which reason goes first") {
  cli::RunEnd end = ended("max_tokens");
  end.denied = end.sandbox_unavailable = true;
  CHECK(cli::exit_code(end) == 4);
  end.stop_reason = "end_turn";
  CHECK(cli::exit_code(end) == 5);
  end.sandbox_unavailable = false;
  CHECK(cli::exit_code(end) == 3);
  end.error = true;
  end.stop_reason = "max_tokens";
  CHECK(cli::exit_code(end) == 1);
  end.retryable = true;
  CHECK(cli::exit_code(end) == 75);
  end.signal = SIGINT;
  CHECK(cli::exit_code(end) == 130);
}

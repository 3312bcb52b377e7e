#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "base/fd.h"

namespace {

// Puts a pipe in the place of stderr for a while.
class StderrPipe {
 public:
  StderrPipe() : pipe_(base::make_pipe().value()), saved_(::dup(STDERR_FILENO)) {
    ::fcntl(pipe_.read.get(), F_SETFL, O_NONBLOCK);
    ::dup2(pipe_.write.get(), STDERR_FILENO);
  }
  ~StderrPipe() { restore(); }
  void restore() {
    if (saved_) ::dup2(saved_.get(), STDERR_FILENO);
    saved_.reset();
  }
  std::string taken() {
    std::string all;
    std::string chunk(65536, '\0');
    for (ssize_t n = 0; (n = ::read(pipe_.read.get(), chunk.data(), chunk.size())) > 0;) {
      all.append(chunk, 0, static_cast<std::size_t>(n));
    }
    return all;
  }

 private:
  base::Pipe pipe_;
  base::Fd saved_;
};

}  // namespace

TEST_CASE("the log goes to stderr from warning on, one line a message") {
  StderrPipe err;
  base::log_info("not shown");
  base::log_warning("first\nforged: line \x1b[31m {} \xff");
  base::set_log_level(base::LogLevel::debug);
  base::log(base::LogLevel::debug, "shown");
  base::set_log_level(base::LogLevel::warning);
  const std::string text = err.taken();
  err.restore();
  CHECK_THAT(text, !Catch::Contains("not shown"));
  CHECK_THAT(text, Catch::Contains("first forged: line  [31m {} \xEF\xBF\xBD\n"));
  CHECK_THAT(text, Catch::Contains("debug: shown\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
}

TEST_CASE("a stderr that nobody reads does not block; what was dropped is said") {
  StderrPipe err;
  const std::string message(1000, 'x');
  for (int i = 0; i < 500; ++i) base::log_error(message);
  (void)err.taken();
  base::log_error("after");
  const std::string text = err.taken();
  err.restore();
  CHECK_THAT(text, Catch::Contains("earlier messages dropped)") && Catch::Contains("after"));
}

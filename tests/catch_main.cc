// The one translation unit with Catch2's main. SIGPIPE is ignored as in the product.
#define CATCH_CONFIG_RUNNER
#include <csignal>

#include <catch2/catch.hpp>

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return Catch::Session().run(argc, argv);
}

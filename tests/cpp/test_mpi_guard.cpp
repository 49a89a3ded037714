#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "harness/status.hpp"
#include "mpi/guard.hpp"

using namespace fabricheck;
using namespace fabricheck::mpi;

namespace {

/// The status and sentence that a crash by `signal` in guarded work becomes.
std::pair<Status, std::string> crash(int signal) {
  try {
    guarded(true, [signal] { (void)std::raise(signal); });
  } catch (const Failure& failure) {
    return {failure.status(), failure.what()};
  }
  return {Status::good, ""};
}

}  // namespace

TEST_CASE("a crash of MPI on device buffers is a sentence") {
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) {
    CAPTURE(signal);
    // Twice: what a first crash leaves behind does not spoil the second.
    for (int i = 0; i < 2; ++i) {
      const auto [status, sentence] = crash(signal);
      CHECK(status == Status::unsupported);
      CHECK(sentence.find("MPI crashed on device buffers (") == 0);
      CHECK(sentence.find("--without and --buffers host") != std::string::npos);
    }
  }
}

TEST_CASE("what does not crash is left alone, and handlers are put back") {
  struct sigaction before{};
  (void)sigaction(SIGSEGV, nullptr, &before);
  int calls = 0;
  guarded(true, [&calls] { ++calls; });
  guarded(false, [&calls] { ++calls; });
  CHECK(calls == 2);
  CHECK_THROWS_WITH_AS(guarded(true, [] { throw Failure(Status::software, "MPI_Send failed"); }),
                       "MPI_Send failed", Failure);
  struct sigaction after{};
  (void)sigaction(SIGSEGV, nullptr, &after);
  const bool same = before.sa_handler == after.sa_handler;
  CHECK(same);
}

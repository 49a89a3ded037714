#include "mpi/guard.hpp"

#include <pthread.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <cstring>

namespace fabricheck::mpi {
namespace {

constexpr std::array<int, 3> kCrashes{SIGSEGV, SIGBUS, SIGABRT};
sigjmp_buf escape;
volatile std::sig_atomic_t guarding = 0;
pthread_t guarded_thread;

void on_crash(int signal) {
  if (guarding != 0 && pthread_equal(pthread_self(), guarded_thread) != 0) {
    guarding = 0;
    siglongjmp(escape, signal);
  }
  (void)std::signal(signal, SIG_DFL);  // elsewhere it ends the process as ever
}

/// Handles the signals of crashes during its lifetime.
class CrashHandlers {
 public:
  CrashHandlers() {
    struct sigaction action{};
    action.sa_handler = on_crash;
    for (std::size_t i = 0; i < kCrashes.size(); ++i) {
      (void)sigaction(kCrashes.at(i), &action, &before_.at(i));
    }
  }
  CrashHandlers(const CrashHandlers&) = delete;
  CrashHandlers& operator=(const CrashHandlers&) = delete;
  ~CrashHandlers() {
    guarding = 0;
    for (std::size_t i = 0; i < kCrashes.size(); ++i) {
      (void)sigaction(kCrashes.at(i), &before_.at(i), nullptr);
    }
  }

 private:
  std::array<struct sigaction, kCrashes.size()> before_{};
};

}  // namespace

void guarded(bool armed, const std::function<void()>& work) {
  if (!armed) {
    work();
    return;
  }
  const CrashHandlers handlers;
  // Control returns here from within MPI, whose state is lost: afterwards only a document is
  // written.
  const int signal = sigsetjmp(escape, 1);
  if (signal == 0) {
    guarded_thread = pthread_self();
    guarding = 1;
    work();
    return;
  }
  throw MpiCrash(Status::unsupported,
                 std::string("MPI crashed on device buffers (") + strsignal(signal) +
                     "), it does not take them here: see --trial, --without and --buffers host");
}

}  // namespace fabricheck::mpi

#include "ranks/mail.hpp"

#include <unistd.h>

#include <algorithm>

#include "harness/sampling.hpp"
#include "harness/simulation.hpp"
#include "ranks/mpi_call.hpp"

namespace fabricheck {
namespace {

constexpr int kLongestSimulated = 1 << 18;  // bytes; a longer one is an error of MPI

}  // namespace

Mail::Mail(MPI_Comm world) {
  FABRICHECK_MPI(MPI_Comm_dup(world, &comm_));
  FABRICHECK_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
}

void Mail::send(int to, int tag, const std::string& text) {
  // The simulated clock runs while MPI is asked; there all texts are kept.
  sent_.remove_if([](Sent& message) {
    int done = 0;
    if (!kSimulated) {
      (void)MPI_Test(&message.request, &done, MPI_STATUS_IGNORE);
    }
    return done != 0;
  });
  auto& message = sent_.emplace_back();
  message.text = text;
  FABRICHECK_MPI(MPI_Isend(message.text.data(), static_cast<int>(text.size()), MPI_CHAR, to, tag,
                           comm_, &message.request));
}

std::string Mail::receive(int from, int tag) { return *receive_until(from, tag, std::nullopt); }

std::optional<std::string> Mail::receive_until(int from, int tag, std::optional<double> until) {
  MPI_Status status;
  int length = 0;
  if (kSimulated) {
    // Nothing hangs by itself there, and the simulated clock would run while MPI is asked.
    std::string text(kLongestSimulated, ' ');
    FABRICHECK_MPI(MPI_Recv(text.data(), kLongestSimulated, MPI_CHAR, from, tag, comm_, &status));
    FABRICHECK_MPI(MPI_Get_count(&status, MPI_CHAR, &length));
    text.resize(static_cast<std::size_t>(length));
    return text;
  }
  constexpr useconds_t longest_nap = 1000;
  int there = 0;
  for (useconds_t nap = 0; there == 0; nap = std::min(longest_nap, nap + nap / 8 + 1)) {
    FABRICHECK_MPI(MPI_Iprobe(from, tag, comm_, &there, &status));
    if (there == 0 && until && wall_seconds() > *until) {
      return std::nullopt;
    }
    if (there == 0) {
      (void)usleep(nap);
    }
  }
  FABRICHECK_MPI(MPI_Get_count(&status, MPI_CHAR, &length));
  std::string text(static_cast<std::size_t>(length), ' ');
  FABRICHECK_MPI(
      MPI_Recv(text.data(), length, MPI_CHAR, status.MPI_SOURCE, tag, comm_, MPI_STATUS_IGNORE));
  return text;
}

}  // namespace fabricheck

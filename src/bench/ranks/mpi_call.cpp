#include "ranks/mpi_call.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "harness/simulation.hpp"

namespace fabricheck {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) {
    return;
  }
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  (void)MPI_Error_string(code, text, &length);
  const std::string name(call);
  throw MpiError(Status::software,
                 name.substr(0, name.find('(')) + " failed: " +
                     std::string(text).substr(0, std::string(text).find_first_of("\r\n")));
}

void wait_quietly(MPI_Request* request) {
  if (kSimulated) {  // other ranks have no processor to keep from them
    FABRICHECK_MPI(MPI_Wait(request, MPI_STATUS_IGNORE));
    return;
  }
  constexpr useconds_t longest = 1000;
  int done = 0;
  // Each sleep is an eighth longer than the one before, so that it adds little to the time waited.
  for (useconds_t nap = 0; done == 0; nap = std::min(longest, nap + nap / 8 + 1)) {
    FABRICHECK_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
    if (done == 0) {
      (void)usleep(nap);
    }
  }
}

}  // namespace fabricheck

// MPI calls that throw. Includes mpi.h, so only sources that call MPI include this.
#pragma once

#include <mpi.h>

#include "harness/status.hpp"

namespace fabricheck {

/// MPI returned an error.
class MpiError : public Failure {
 public:
  using Failure::Failure;
};

/// Throws MpiError (software), naming the call and MPI's message, unless `code` is
/// MPI_SUCCESS.
void check_mpi(int code, const char* call);

#define FABRICHECK_MPI(call) ::fabricheck::check_mpi((call), #call)

/// Waits by sleeping, which leaves the processor to ranks that work. With more ranks than cores,
/// waiting in MPI would cost the others most of their time.
void wait_quietly(MPI_Request* request);

}  // namespace fabricheck

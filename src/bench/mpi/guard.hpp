// Distinguishes an MPI that crashes on device memory from an MPI that returns an error.
#pragma once

#include <functional>
#include <string>

#include "harness/status.hpp"

namespace fabricheck::mpi {

/// MPI crashed on buffers of devices.
class MpiCrash : public Failure {
 public:
  using Failure::Failure;
};

/// Runs `work`. If `armed`, a crash in it (segmentation fault, bus error, abort) becomes MpiCrash
/// (unsupported) with a sentence, after which MPI must not be used any more.
void guarded(bool armed, const std::function<void()>& work);

/// What MPI reports about its support of device memory, as a sentence; empty when it cannot be
/// queried.
std::string mpi_about_devices();

}  // namespace fabricheck::mpi

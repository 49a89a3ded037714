// MPI that crashes on memory of a device is told from MPI that gives an error.
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

/// Runs `work`. Where `armed`, a crash in it (segmentation fault, bus error, abort) becomes
/// MpiCrash (unsupported) that says so, after which MPI must not be used any more.
void guarded(bool armed, const std::function<void()>& work);

/// What MPI says of itself and memory of devices, as a sentence; empty when it cannot be asked.
std::string mpi_about_devices();

}  // namespace fabricheck::mpi

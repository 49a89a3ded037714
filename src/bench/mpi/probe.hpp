// A test whether MPI accepts buffers on devices, before anything is measured.
#pragma once

#include <mpi.h>

#include <string>

#include "mpi/arrays.hpp"

namespace fabricheck::mpi {

/// How to make an MPI of this version accept buffers on devices, with the present values of its
/// variables.
std::string device_buffers_advice(const std::string& library);

/// Sends some messages from rank 0 to rank 1, which both have buffers on devices; other ranks
/// return at once. Throws Failure(setting) when MPI crashes or fails on them, or copies them by the
/// processor: below 0.5 GB/s, a tenth of the slowest link of devices. Ends as soon as the rate is
/// known, which takes half a second at 10 MB/s. `armed` is that of Worker, `library` the version
/// that MPI reports.
void require_device_messages(MPI_Comm world, Accessor accessor, bool armed,
                             const std::string& library);

}  // namespace fabricheck::mpi

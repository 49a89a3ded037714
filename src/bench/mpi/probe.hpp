// A test whether MPI accepts buffers on devices, before anything is measured.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>

#include "mpi/arrays.hpp"

namespace fabricheck::mpi {

/// How to make an MPI of this version accept buffers on devices, with the present values of its
/// variables.
std::string device_buffers_advice(const std::string& library);

/// Runs `work`, the first messages of buffers on devices. Throws Failure(setting) with that advice
/// when MPI crashes or fails in it. `armed` is that of Worker, `library` the version that MPI
/// reports.
void with_advice(bool armed, const std::string& library, const std::function<void()>& work);

/// Sends some messages from rank 0 to rank 1, which both have buffers on devices; other ranks
/// return at once. Throws Failure(setting) as with_advice does, or when MPI copies them by the
/// processor: below 0.5 GB/s, a tenth of the slowest link of devices. Ends as soon as the rate is
/// known, which takes half a second at 10 MB/s.
void require_device_messages(MPI_Comm world, Accessor accessor, bool armed,
                             const std::string& library);

}  // namespace fabricheck::mpi

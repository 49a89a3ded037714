#include "mpi/probe.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "harness/simulation.hpp"
#include "harness/sizes.hpp"
#include "harness/status.hpp"
#include "mpi/guard.hpp"
#include "ranks/mpi_call.hpp"

namespace fabricheck::mpi {
namespace {

enum ProbeTag { kProbeSize = 1, kProbeMessage, kProbeDone };

constexpr std::array<std::uint64_t, 3> kSizes{64ULL << 10, 1ULL << 20, 16ULL << 20};
constexpr double kLeastRate = 5e8;         // bytes per second
constexpr double kDecisiveSeconds = 0.02;  // no latency lasts as long
constexpr int kTimed = 3;                  // of each size; one before them makes the connection

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return std::string(name) + (value == nullptr ? " is not set" : " is " + std::string(value));
}

/// The messages of one size; 0 ends them. Rank 1's part.
void answer(MPI_Comm world, Accessor accessor) {
  for (;;) {
    std::uint64_t bytes = 0;
    FABRICHECK_MPI(
        MPI_Recv(&bytes, sizeof bytes, MPI_BYTE, 0, kProbeSize, world, MPI_STATUS_IGNORE));
    if (bytes == 0) {
      return;
    }
    const MessageArray array(accessor, bytes, moved_bytes(bytes));
    for (int i = 0; i <= kTimed; ++i) {
      FABRICHECK_MPI(MPI_Recv(array.data(), static_cast<int>(bytes), MPI_BYTE, 0, kProbeMessage,
                              world, MPI_STATUS_IGNORE));
      FABRICHECK_MPI(MPI_Send(nullptr, 0, MPI_BYTE, 0, kProbeDone, world));
    }
  }
}

/// The seconds of the fastest of some messages from rank 0 to rank 1.
double fastest(MPI_Comm world, Accessor accessor, std::uint64_t bytes) {
  FABRICHECK_MPI(MPI_Send(&bytes, sizeof bytes, MPI_BYTE, 1, kProbeSize, world));
  const MessageArray array(accessor, bytes, moved_bytes(bytes));
  double seconds = std::numeric_limits<double>::max();
  for (int i = 0; i <= kTimed; ++i) {
    const double start = MPI_Wtime();
    FABRICHECK_MPI(
        MPI_Send(array.data(), static_cast<int>(bytes), MPI_BYTE, 1, kProbeMessage, world));
    FABRICHECK_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 1, kProbeDone, world, MPI_STATUS_IGNORE));
    seconds = i == 0 ? seconds : std::min(seconds, MPI_Wtime() - start);
  }
  return seconds;
}

void ask(MPI_Comm world, Accessor accessor, const std::string& library) {
  double rate = 0;
  std::uint64_t last = 0;
  for (const auto bytes : kSizes) {
    const double seconds = fastest(world, accessor, bytes);
    last = bytes;
    rate = static_cast<double>(bytes) / seconds;
    if (rate >= kLeastRate || seconds >= kDecisiveSeconds) {
      break;
    }
  }
  const std::uint64_t end = 0;
  FABRICHECK_MPI(MPI_Send(&end, sizeof end, MPI_BYTE, 1, kProbeSize, world));
  if (rate < kLeastRate) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3f", rate / 1e9);
    throw Failure(Status::setting,
                  "a message of " + format_size(last) + " between buffers of devices goes at " +
                      text.data() +
                      " GB/s from rank 0 to rank 1: MPI takes them for memory of the host, and the "
                      "processor copies them; " +
                      device_buffers_advice(library));
  }
}

Failure not_taken(const Failure& failure, const std::string& library) {
  return {Status::setting, std::string("the first message between buffers of devices failed: ") +
                               failure.what() + "; " + device_buffers_advice(library)};
}

}  // namespace

std::string device_buffers_advice(const std::string& library) {
  const auto cray = "Cray MPICH takes them with MPICH_GPU_SUPPORT_ENABLED=1 (" +
                    value_of("MPICH_GPU_SUPPORT_ENABLED") +
                    ") and a program linked with its GTL (libmpi_gtl_hsa, libmpi_gtl_cuda)";
  const auto open = "Open MPI takes them when built with UCX or libfabric for ROCm or CUDA (" +
                    value_of("UCX_TLS") + ", " + value_of("OMPI_MCA_pml") + ")";
  if (library.find("CRAY MPICH") != std::string::npos) {
    return cray;
  }
  if (library.find("Open MPI") != std::string::npos) {
    return open;
  }
  if (library.find("MPICH Version") != std::string::npos) {
    return "MPICH takes them when built for HIP or CUDA (" + value_of("MPIR_CVAR_ENABLE_GPU") + ")";
  }
  return cray + ", " + open;
}

void require_device_messages(MPI_Comm world, Accessor accessor, bool armed,
                             const std::string& library) {
  int rank = 0;
  FABRICHECK_MPI(MPI_Comm_rank(world, &rank));
  if (rank > 1) {
    return;
  }
  with_advice(armed, library,
              [&] { rank == 0 ? ask(world, accessor, library) : answer(world, accessor); });
}

void with_advice(bool armed, const std::string& library, const std::function<void()>& work) {
  try {
    guarded(armed, work);
  } catch (const MpiCrash& crash) {
    throw not_taken(crash, library);
  } catch (const MpiError& error) {
    throw not_taken(error, library);
  }
}

}  // namespace fabricheck::mpi

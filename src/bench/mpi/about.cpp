// What MPI reports about itself.
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // Open MPI
#endif

#include "mpi/guard.hpp"

namespace fabricheck::mpi {

std::string mpi_about_devices() {
  [[maybe_unused]] const auto part = [](const char* what, bool known) {
    return std::string(what) + (known ? " yes" : " no");
  };
  [[maybe_unused]] const std::string head = "what MPI says of itself and buffers of devices: ";
#if defined(MPIX_GPU_SUPPORT_CUDA) && defined(MPIX_GPU_SUPPORT_HIP)
  int cuda = 0;
  int hip = 0;
  if (MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &cuda) == MPI_SUCCESS &&
      MPIX_GPU_query_support(MPIX_GPU_SUPPORT_HIP, &hip) == MPI_SUCCESS) {
    return head + part("CUDA", cuda != 0) + ", " + part("HIP", hip != 0);
  }
  return "";
#elif defined(MPIX_ROCM_AWARE_SUPPORT) && defined(MPIX_CUDA_AWARE_SUPPORT)
  return head + part("CUDA", MPIX_Query_cuda_support() == 1) + ", " +
         part("ROCm", MPIX_Query_rocm_support() == 1);
#elif defined(MPIX_CUDA_AWARE_SUPPORT)
  return head + part("CUDA", MPIX_Query_cuda_support() == 1);
#else
  return "";
#endif
}

}  // namespace fabricheck::mpi

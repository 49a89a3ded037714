#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "mpi/probe.hpp"

using namespace fabricheck;
using namespace fabricheck::mpi;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each MPI is told in its own words to take buffers of devices") {
  unsetenv("UCX_TLS");
  setenv("MPICH_GPU_SUPPORT_ENABLED", "0", 1);
  const auto cray = device_buffers_advice("MPI VERSION : CRAY MPICH version 8.1.28.29");
  CHECK(has(cray, "MPICH_GPU_SUPPORT_ENABLED=1 (MPICH_GPU_SUPPORT_ENABLED is 0)"));
  CHECK(has(cray, "GTL (libmpi_gtl_hsa"));
  CHECK_FALSE(has(cray, "Open MPI"));
  const auto open = device_buffers_advice("Open MPI v5.0.11, package: Open MPI");
  CHECK(has(open, "UCX_TLS is not set"));
  CHECK_FALSE(has(open, "MPICH"));
  CHECK(has(device_buffers_advice("MPICH Version: 4.2.3"), "MPIR_CVAR_ENABLE_GPU is not set"));
  const auto unknown = device_buffers_advice("SMPI Version 4.1");
  CHECK(has(unknown, "GTL"));
  CHECK(has(unknown, "Open MPI"));
  unsetenv("MPICH_GPU_SUPPORT_ENABLED");
}

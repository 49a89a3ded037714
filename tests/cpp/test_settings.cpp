#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "harness/gate.hpp"
#include "harness/host.hpp"
#include "harness/settings.hpp"

using namespace fabricheck;

namespace {

/// Sets a variable for its own life time.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("a gate is not closed where launches block, and the variable is named") {
  StartGate gate;
  gate.close();
  gate.open();
  const Variable blocking("HIP_LAUNCH_BLOCKING", "1");
  try {
    gate.close();
    FAIL("no error");
  } catch (const Failure& failure) {
    CHECK(failure.status() == Status::setting);
    CHECK(std::string(failure.what()).find("HIP_LAUNCH_BLOCKING is 1: ") == 0);
  }
}

TEST_CASE("a variable blocks unless it is 0 or empty, and switches engines off when it is 0") {
  for (const char* value : {"0", ""}) {
    const Variable blocking("HIP_LAUNCH_BLOCKING", value);
    CHECK_FALSE(blocking_setting());
  }
  for (const char* value : {"1", "3", "true"}) {
    const Variable blocking("HIP_LAUNCH_BLOCKING", value);
    REQUIRE(blocking_setting());
    CHECK(blocking_setting()->text() == "HIP_LAUNCH_BLOCKING is " + std::string(value));
  }
  const Variable on("HSA_ENABLE_SDMA", "1");
  const Variable off("HSA_ENABLE_PEER_SDMA", "0");
  // CUDA_LAUNCH_BLOCKING is obeyed by another runtime.
  const Variable foreign("CUDA_LAUNCH_BLOCKING", "1");
  REQUIRE(runtime_settings().size() == 1);
  CHECK(runtime_settings()[0].concerns == "peer-engines");
  CHECK(describe_settings(2)[0]["name"] == "HSA_ENABLE_PEER_SDMA");
}

TEST_CASE("little is queued behind a gate where kernels copy, whose queue holds 32 copies") {
  CHECK(StartGate::max_queued() == 128);
  for (const char* name : {"HSA_ENABLE_SDMA", "HSA_ENABLE_PEER_SDMA"}) {
    const Variable off(name, "0");
    CHECK(StartGate::max_queued() == 16);
  }
}

TEST_CASE("the host runtime sees all of its devices, whatever hides those of others") {
  const Variable hidden("ROCR_VISIBLE_DEVICES", "0");
  const Variable granted("SLURM_GPUS_ON_NODE", "1");
  CHECK(hiding_settings(2).empty());
  CHECK(lacks_devices("there is none", 2).status() == Status::unsupported);
}

TEST_CASE("NUMA balancing is a setting that names its file and how to switch it off") {
  const std::string path = "numa_balancing_" + std::to_string(getpid());
  for (const char* value : {"1", "2"}) {
    std::ofstream(path) << value << "\n";
    REQUIRE(numa_balancing_setting(path));
    CHECK(numa_balancing_setting(path)->find(path + " is " + value) != std::string::npos);
    CHECK(numa_balancing_setting(path)->find("sysctl kernel.numa_balancing=0") !=
          std::string::npos);
  }
  std::ofstream(path) << "0\n";
  CHECK_FALSE(numa_balancing_setting(path));
  std::ofstream(path) << "";
  CHECK_FALSE(numa_balancing_setting(path));
  (void)unlink(path.c_str());
  CHECK_FALSE(numa_balancing_setting(path));
}

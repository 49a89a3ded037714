#include "harness/gate.hpp"

#include <hip/hip_runtime.h>

#include "harness/settings.hpp"

namespace fabricheck {
namespace {

// About ten seconds at 2 GHz (and 20 s on the host runtime, which counts nanoseconds): long
// against any queueing, short against a watchdog.
constexpr long long kPatienceCycles = 20000000000LL;

__global__ void wait_kernel(volatile int* flags) {
  const long long start = clock64();
  while (flags[0] == 0) {
    if (clock64() - start > kPatienceCycles) {
      flags[1] = 1;
      break;
    }
  }
}

}  // namespace

StartGate::StartGate() : memory_(Buffer::on_host(-1, 4096)), flags_(memory_.as<volatile int>()) {
  flags_[0] = 1;
  flags_[1] = 0;
}

StartGate::~StartGate() {
  // After a failure, streams may still wait: freeing what they read would fault the device.
  open();
  for (const int device : devices_) {
    (void)hipSetDevice(device);
    (void)hipDeviceSynchronize();
  }
}

int StartGate::max_queued() {
  for (const auto& setting : runtime_settings()) {
    if (setting.concerns != "launches") {
      return 16;
    }
  }
  return 128;
}

void StartGate::close() {
  require_free_launches();
  flags_[0] = 0;
  flags_[1] = 0;
}

void StartGate::wait_on(const TimedStream& stream) {
  stream.use();
  devices_.insert(stream.device());
  hipLaunchKernelGGL(wait_kernel, dim3(1), dim3(1), 0, stream.get(), flags_);
  FABRICHECK_HIP(hipGetLastError());
}

void StartGate::open() { flags_[0] = 1; }

void StartGate::check() const {
  if (flags_[1] != 0) {
    throw Failure(Status::runtime_error,
                  "a device gave up waiting for the start of what was queued; that happens where a "
                  "launch blocks until the device is done, as under some profilers");
  }
}

}  // namespace fabricheck

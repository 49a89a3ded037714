#include "harness/gate.hpp"

#include <hip/hip_runtime.h>

#include "harness/settings.hpp"

namespace fabricheck {
namespace {

// About ten seconds at 2 GHz (and 20 s on the host runtime, which counts nanoseconds): long
// compared with any queueing, short compared with a watchdog.
constexpr long long kPatienceCycles = 20000000000LL;

// Flags are read and written past the caches of a device: relaxed accesses at system scope, which
// HIP's compiler makes of these built-ins. nvcc has none of them; there a volatile access is one.
__host__ __device__ inline int read_flag(const int* flag) {
#if defined(__CUDACC__)
  return *static_cast<const volatile int*>(flag);
#else
  return __atomic_load_n(flag, __ATOMIC_RELAXED);
#endif
}

__host__ __device__ inline void write_flag(int* flag, int value) {
#if defined(__CUDACC__)
  *static_cast<volatile int*>(flag) = value;
#else
  __atomic_store_n(flag, value, __ATOMIC_RELAXED);
#endif
}

__global__ void wait_kernel(int* flags) {
  const long long start = clock64();
  while (read_flag(&flags[0]) == 0) {
    if (clock64() - start > kPatienceCycles) {
      write_flag(&flags[1], 1);
      break;
    }
  }
}

}  // namespace

StartGate::StartGate() : memory_(Buffer::on_host(-1, 4096)), flags_(memory_.as<int>()) {
  write_flag(&flags_[0], 1);
  write_flag(&flags_[1], 0);
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
    if (setting.concerns != concern::launches) {
      return 16;
    }
  }
  return 128;
}

void StartGate::close() {
  require_free_launches();
  write_flag(&flags_[0], 0);
  write_flag(&flags_[1], 0);
}

void StartGate::wait_on(const TimedStream& stream) {
  stream.use();
  devices_.insert(stream.device());
  hipLaunchKernelGGL(wait_kernel, dim3(1), dim3(1), 0, stream.get(), flags_);
  FABRICHECK_HIP(hipGetLastError());
}

void StartGate::open() { write_flag(&flags_[0], 1); }

void StartGate::check() const {
  if (read_flag(&flags_[1]) != 0) {
    throw Failure(Status::software,
                  "a device gave up waiting for the start of what was queued; that happens where a "
                  "launch blocks until the device is done, as under some profilers");
  }
}

}  // namespace fabricheck

#include "overlap/compute.hpp"

#include <hip/hip_runtime.h>

#include <cmath>

#include "harness/devices.hpp"
#include "harness/pattern.hpp"

namespace fabricheck::overlap {
namespace {

constexpr std::uint32_t kStartSeed = 0x5eed0400;
constexpr std::uint32_t kStepSeed = 0x5eed0401;
constexpr unsigned kValues = 4;  // of a thread: none of their chains waits for another one

/// `factor` is 1, which no compiler knows: x becomes start + iterations * step, exactly.
__global__ void __launch_bounds__(Compute::kBlock)
    multiply_add_kernel(const double* __restrict__ start, const double* __restrict__ step,
                        double* __restrict__ result, double factor, int iterations) {
  const std::uint64_t threads = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  const auto i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  double x0 = start[i];
  double x1 = start[i + threads];
  double x2 = start[i + 2 * threads];
  double x3 = start[i + 3 * threads];
  const double y0 = step[i];
  const double y1 = step[i + threads];
  const double y2 = step[i + 2 * threads];
  const double y3 = step[i + 3 * threads];
  for (int n = 0; n < iterations; ++n) {
    x0 = fma(factor, y0, x0);
    x1 = fma(factor, y1, x1);
    x2 = fma(factor, y2, x2);
    x3 = fma(factor, y3, x3);
  }
  result[i] = x0;
  result[i + threads] = x1;
  result[i + 2 * threads] = x2;
  result[i + 3 * threads] = x3;
}

}  // namespace

Compute::Compute(const TimedStream& stream, unsigned threads)
    : blocks_(static_cast<unsigned>(compute_units(stream.device())) * threads / kBlock),
      words_(static_cast<std::uint64_t>(blocks_) * kBlock * kValues),
      start_(Buffer::on_device(stream.device(), bytes())),
      step_(Buffer::on_device(stream.device(), bytes())),
      result_(Buffer::on_device(stream.device(), bytes())) {
  fill(stream, start_.as<double>(), words_, kStartSeed);
  fill(stream, step_.as<double>(), words_, kStepSeed);
  stream.synchronize();
}

void Compute::queue(const TimedStream& stream, int launches) const {
  for (int i = 0; i < launches; ++i) {
    hipLaunchKernelGGL(multiply_add_kernel, dim3(blocks_), dim3(kBlock), 0, stream.get(),
                       start_.as<double>(), step_.as<double>(), result_.as<double>(), 1.0,
                       iterations_);
  }
}

void Compute::poison_result(const TimedStream& stream) const {
  poison(stream, result_.as<double>(), words_);
  stream.synchronize();
}

Verification Compute::check(const TimedStream& stream, const std::vector<Fault>& faults) const {
  inject(faults, stream, result_.as<double>(), words_);
  return compare(stream, result_.as<double>(), words_,
                 {1, kStartSeed, static_cast<double>(iterations_), kStepSeed});
}

}  // namespace fabricheck::overlap

#include "p2p/chase.hpp"

#include <hip/hip_runtime.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/concurrent.hpp"
#include "harness/devices.hpp"
#include "harness/simulation.hpp"

namespace fabricheck::p2p {
namespace {

constexpr std::uint64_t kLineWords = 16;  // 128 B, the longest line of the devices in use
/// Rules count operations, which are longer than loads.
constexpr int kLoadsOfOperation = 255;
constexpr unsigned kBlock = 256;
constexpr std::uint64_t kNowhere = ~0ULL;
/// Launches of one sample, each with another of as many blocks as there are compute units, over
/// which the device spreads them. On an H200 half of the blocks were 6 % farther from a peer than
/// the others: a median of one each would be of either half.
constexpr int kUnitsOfSample = 16;
/// What a sample lasts at least, if the most loads allow: in shorter ones launches would show.
constexpr double kLeastSeconds = 0.016;

/// A permutation of 0 to 2^bits - 1: every step of it can be undone.
__host__ __device__ inline std::uint64_t line_of(std::uint64_t step, int bits) {
  const std::uint64_t mask = (1ULL << bits) - 1;
  const int shift = (bits + 1) / 2;
  std::uint64_t x = step & mask;
  for (int round = 0; round < 3; ++round) {
    x = (x * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL) & mask;
    x ^= x >> shift;
  }
  return x;
}

/// The first word of a line.
__host__ __device__ inline std::uint64_t* line_at(std::uint64_t* array, std::uint64_t step,
                                                  int bits) {
  return array + kLineWords * line_of(step, bits);
}

/// Each line holds the address of the next: a load needs nothing but the one before.
__global__ void cycle_kernel(std::uint64_t* array, int bits) {
  const auto step = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (step < (1ULL << bits)) {
    *line_at(array, step, bits) = reinterpret_cast<std::uint64_t>(line_at(array, step + 1, bits));
  }
}

// To AMD's compiler a loaded address may be of any memory: it would use flat loads, which also wait
// for the LDS, instead of global ones.
#if defined(__HIP_PLATFORM_AMD__)
using GlobalWord = const std::uint64_t __attribute__((address_space(1)));
#else
using GlobalWord = const std::uint64_t;
#endif

/// *start: the address to start at; *end: where the loads led. Only the chosen block, of one
/// thread, makes them.
__global__ void chase_kernel(const std::uint64_t* start, std::uint64_t* end, int loads,
                             unsigned chosen) {
  if (blockIdx.x != chosen) {
    return;
  }
  // threadIdx.x is 0. Without it AMD's compiler sees that all threads load the same, and uses the
  // scalar unit and its cache.
  const auto* at = reinterpret_cast<GlobalWord*>(start[threadIdx.x]);
  for (int i = 0; i < loads; ++i) {
    at = reinterpret_cast<GlobalWord*>(*at);
  }
  *end = reinterpret_cast<std::uint64_t>(at);
}

}  // namespace

std::uint64_t chase_line(std::uint64_t step, int bits) { return line_of(step, bits); }

unsigned chase_unit(unsigned turn, unsigned units) {
  const double golden = 0.6180339887498949;
  return static_cast<unsigned>(std::fmod(turn * golden, 1.0) * units);
}

ChaseArray::ChaseArray(const TimedStream& owner, std::uint64_t bytes)
    : bytes_(bytes), array_(Buffer::on_device(owner.device(), bytes)) {
  while ((2ULL << bits_) * kLineWords * sizeof(std::uint64_t) <= bytes_) {
    ++bits_;
  }
  const auto lines = 1ULL << bits_;
  owner.use();
  hipLaunchKernelGGL(cycle_kernel, dim3(static_cast<unsigned>((lines + kBlock - 1) / kBlock)),
                     dim3(kBlock), 0, owner.get(), array_.as<std::uint64_t>(), bits_);
  FABRICHECK_HIP(hipGetLastError());
  owner.synchronize();
}

std::uint64_t ChaseArray::address_at(std::uint64_t step) const {
  return reinterpret_cast<std::uint64_t>(line_at(words(), step, bits_));
}

Series ChaseArray::measure(Series series, const TimedStream& stream, const SamplingRules& rules,
                           double warm_up, const std::vector<Fault>& faults) {
  // Where the next launch starts, and where the last one ended: nowhere until it has.
  const auto scratch = Buffer::on_device(stream.device(), 2 * sizeof(std::uint64_t));
  auto* next = scratch.as<std::uint64_t>();
  auto* end = next + 1;
  const auto units = static_cast<unsigned>(compute_units(stream.device()));
  const auto run = [&](int loads) {
    const std::uint64_t before[2] = {address_at(step_), kNowhere};
    stream.use();
    FABRICHECK_HIP(hipMemcpy(next, before, sizeof before, hipMemcpyDefault));
    const double begun = host_seconds();
    stream.mark_start();
    declare_loads(stream.get(), array_.as<void>(), static_cast<std::uint64_t>(loads));
    for (int unit = 0; unit < kUnitsOfSample; ++unit) {
      const int part = loads * (unit + 1) / kUnitsOfSample - loads * unit / kUnitsOfSample;
      if (part > 0) {
        hipLaunchKernelGGL(chase_kernel, dim3(units), dim3(1), 0, stream.get(), next,
                           unit + 1 < kUnitsOfSample ? next : end, part,
                           chase_unit(turn_++, units));
      }
    }
    FABRICHECK_HIP(hipGetLastError());
    stream.mark_stop();
    stream.synchronize();
    step_ += static_cast<std::uint64_t>(loads);
    return BatchTimes{{stream.seconds()}, host_seconds() - begun};
  };
  auto long_enough = rules;
  long_enough.batch_seconds = std::max(rules.batch_seconds, kLeastSeconds);
  long_enough.max_batch = kLoadsOfOperation * rules.max_batch;
  series.batch = calibrate(run, long_enough, warm_up);
  const auto samples = take_samples(run, series.batch, long_enough);

  inject(faults, stream, scratch.as<double>() + 1, 1);
  stream.synchronize();
  std::uint64_t arrived = 0;
  FABRICHECK_HIP(hipMemcpy(&arrived, end, sizeof arrived, hipMemcpyDefault));
  const auto expected = address_at(step_);
  series.verification.bytes_checked = sizeof arrived;
  if (arrived != expected) {
    series.verification.errors = 1;
    series.verification.first_mismatch =
        Verification::Mismatch{stream.device(), 0, expected, arrived};
  }
  series.bytes = bytes_;
  series.bytes_moved = sizeof arrived;
  series.block_size = 1;
  series.stores = stores::plain;
  return with_samples({std::move(series)}, samples).front();
}

}  // namespace fabricheck::p2p

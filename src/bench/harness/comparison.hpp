// The comparison of an array with the values that it must hold, bit by bit: by a kernel, or by
// threads of the host. For sources of device code.
#pragma once

#include <hip/hip_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>

#include "harness/hip.hpp"
#include "harness/series.hpp"

namespace fabricheck {

/// What a comparison, or a part of one, has found.
struct Comparison {
  unsigned long long errors = 0;     ///< elements that differ
  unsigned long long first = ~0ULL;  ///< the first of them
  unsigned long long compared = 0;   ///< elements that were compared
};

/// Threads of a block of a kernel that compares, and the elements of each: several, because all
/// threads add to the same counts.
constexpr unsigned kComparingThreads = 256;
constexpr unsigned kElementsOfThread = 16;

template <typename T>
__host__ __device__ inline std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);  // little-endian, as every system of these devices
  return bits;
}

/// Compares the elements `first`, `first` + `step` and so on below `last`. `expected(i)` is the
/// value of element `i`.
template <typename T, typename Expectation>
__host__ __device__ inline Comparison compare_some(const T* data, std::uint64_t first,
                                                   std::uint64_t last, std::uint64_t step,
                                                   const Expectation& expected) {
  Comparison comparison;
  for (auto i = first; i < last; i += step) {
    if (bits_of<T>(expected(i)) != bits_of(data[i]) && comparison.errors++ == 0) {
      comparison.first = i;
    }
    ++comparison.compared;
  }
  return comparison;
}

/// The part of the calling thread in a kernel that compares `count` elements.
template <typename T, typename Expectation>
__device__ inline void compare_by_thread(const T* data, std::uint64_t count,
                                         const Expectation& expected, Comparison* all) {
  constexpr std::uint64_t of_block = kComparingThreads * kElementsOfThread;
  const auto begin = blockIdx.x * of_block;
  const auto end = begin + of_block < count ? begin + of_block : count;
  const auto first = begin + threadIdx.x;
  if (first < end) {
    const auto part = compare_some(data, first, end, kComparingThreads, expected);
    if (part.errors > 0) {
      atomicAdd(&all->errors, part.errors);
      atomicMin(&all->first, part.first);
    }
    atomicAdd(&all->compared, part.compared);
  }
}

/// Compares `count` elements by the kernel that `launch` launches on the stream, with blocks of
/// kComparingThreads, and waits for it.
Comparison run_comparison(const TimedStream& stream, std::uint64_t count,
                          const std::function<void(dim3 grid, Comparison* all)>& launch);

/// Throws Failure(software) unless `count` elements were compared.
void require_compared(const Comparison& comparison, std::uint64_t count, int device);

/// Calls `work` for parts of [0, count) by as many threads as this one has cores, because one
/// thread takes longer to compare a large array than a device to copy it. Small arrays are one
/// part.
void in_parts(std::uint64_t count,
              const std::function<void(std::uint64_t first, std::uint64_t last)>& work);

/// The result of the comparison of `count` elements. `device` is -1 if a thread of the host can
/// read them.
template <typename T, typename Expectation>
Verification verification_of(const Comparison& comparison, const T* data, std::uint64_t count,
                             const Expectation& expected, int device) {
  require_compared(comparison, count, device);
  Verification result;
  result.bytes_checked = comparison.compared * sizeof(T);
  result.errors = comparison.errors;
  if (comparison.errors > 0) {
    T seen{};
    if (device < 0) {
      seen = data[comparison.first];
    } else {
      FABRICHECK_HIP(hipMemcpy(&seen, data + comparison.first, sizeof seen, hipMemcpyDefault));
    }
    result.first_mismatch = {device, comparison.first * sizeof(T),
                             bits_of<T>(expected(comparison.first)), bits_of(seen)};
  }
  return result;
}

/// Compares by a kernel that calls compare_by_thread: see run_comparison.
template <typename T, typename Expectation, typename Launch>
Verification compare_on_device(const TimedStream& stream, const T* data, std::uint64_t count,
                               const Expectation& expected, const Launch& launch) {
  if (count == 0) {
    return {};
  }
  const auto comparison = run_comparison(stream, count, launch);
  return verification_of(comparison, data, count, expected, stream.device());
}

/// Compares by threads of the host.
template <typename T, typename Expectation>
Verification compare_on_host(const T* data, std::uint64_t count, const Expectation& expected) {
  Comparison all;
  std::mutex mutex;
  in_parts(count, [&](std::uint64_t first, std::uint64_t last) {
    const auto part = compare_some(data, first, last, 1, expected);
    const std::lock_guard lock(mutex);
    all.errors += part.errors;
    all.first = std::min(all.first, part.first);
    all.compared += part.compared;
  });
  return verification_of(all, data, count, expected, -1);
}

}  // namespace fabricheck

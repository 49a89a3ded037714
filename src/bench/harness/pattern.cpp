#include "harness/pattern.hpp"

#include <hip/hip_runtime.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fabricheck {
namespace {

constexpr unsigned kBlock = 256;
constexpr std::uint64_t kPoison = 0xfff8deaddeadbeefULL;

__host__ __device__ inline std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

__global__ void fill_kernel(double* data, std::uint64_t words, std::uint32_t seed) {
  const auto i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < words) {
    data[i] = pattern_value(i, seed);
  }
}

__global__ void poison_kernel(std::uint64_t* data, std::uint64_t words) {
  const auto i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < words) {
    data[i] = kPoison;
  }
}

__global__ void flip_kernel(std::uint64_t* data, std::uint64_t word, int bit) {
  data[word] ^= 1ULL << bit;
}

__host__ __device__ inline double value_of(std::uint64_t i, const Expected& expected) {
  return expected.first_factor * pattern_value(i, expected.first_seed) +
         expected.second_factor * pattern_value(i, expected.second_seed);
}

__host__ __device__ inline double value_of(std::uint64_t i, const ExpectedSums& expected) {
  const std::uint64_t thread = i / 2 % expected.block_size;
  const std::uint64_t half = i % 2;
  const std::uint64_t chunk = expected.elements_of_thread * expected.block_size;
  double sum = 0;
  for (auto first = i / 2 / expected.block_size * chunk; first < expected.elements;
       first += expected.blocks * chunk) {
    for (auto at = first + thread; at < first + chunk && at < expected.elements;
         at += expected.block_size) {
      sum += pattern_value(2 * at + half, expected.seed);
    }
  }
  return sum;
}

/// found[0]: number of differences; found[1]: the first word that differs.
template <typename Expectation>
__global__ void compare_kernel(const double* data, std::uint64_t words, Expectation expected,
                               unsigned long long* found) {
  const auto i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < words) {
    if (bits_of(value_of(i, expected)) != bits_of(data[i])) {
      atomicAdd(&found[0], 1ULL);
      atomicMin(&found[1], static_cast<unsigned long long>(i));
    }
  }
}

/// Adds the comparison of the incomplete last word after `words` whole ones; `bytes` (1 to 7) of it
/// were written.
void add_last(Verification& result, std::uint64_t words, std::uint64_t bytes, std::uint32_t seed,
              double found, int device) {
  auto right = kPoison;
  const double value = pattern_value(words, seed);
  memcpy(&right, &value, bytes);
  const auto seen = bits_of(found);
  result.bytes_checked += bytes;
  if (right != seen) {
    ++result.errors;
    if (!result.first_mismatch) {
      result.first_mismatch = {device, words * sizeof(double), right, seen};
    }
  }
}

/// Calls `work` for parts of [0, words) by as many threads as this one has cores, because one
/// thread takes longer to compare a large array than a device to copy it. Small arrays are one
/// part.
void in_parts(std::uint64_t words,
              const std::function<void(std::uint64_t first, std::uint64_t last)>& work) {
  constexpr std::uint64_t least = 1 << 20;
  cpu_set_t cores;
  const int open = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  const auto parts = std::clamp<std::uint64_t>(words / least, 1, std::clamp(open, 1, 16));
  std::vector<std::thread> threads;
  threads.reserve(parts);
  std::uint64_t done = 0;  // by this thread: what no other was found for
  for (std::uint64_t part = parts - 1; part > 0 && done == 0; --part) {
    try {
      threads.emplace_back(work, words * part / parts, words * (part + 1) / parts);
    } catch (const std::exception&) {
      done = words * (part + 1) / parts;
    }
  }
  work(0, done > 0 ? done : words / parts);
  for (auto& thread : threads) {
    thread.join();
  }
}

dim3 grid_for(std::uint64_t words) {
  return dim3(static_cast<unsigned>((words + kBlock - 1) / kBlock));
}

template <typename Expectation>
Verification compare_words(const TimedStream& stream, const double* data, std::uint64_t words,
                           const Expectation& expected) {
  stream.use();
  const auto scratch = Buffer::on_device(stream.device(), 2 * sizeof(unsigned long long));
  auto* found = scratch.as<unsigned long long>();
  unsigned long long counts[2] = {0, ~0ULL};
  FABRICHECK_HIP(hipMemcpy(found, counts, sizeof counts, hipMemcpyDefault));
  hipLaunchKernelGGL(HIP_KERNEL_NAME(compare_kernel<Expectation>), grid_for(words), dim3(kBlock), 0,
                     stream.get(), data, words, expected, found);
  FABRICHECK_HIP(hipGetLastError());
  stream.synchronize();
  FABRICHECK_HIP(hipMemcpy(counts, found, sizeof counts, hipMemcpyDefault));

  Verification result;
  result.bytes_checked = words * sizeof(double);
  result.errors = counts[0];
  if (result.errors > 0) {
    const std::uint64_t word = counts[1];
    double seen = 0;
    FABRICHECK_HIP(hipMemcpy(&seen, data + word, sizeof seen, hipMemcpyDefault));
    result.first_mismatch = {stream.device(), word * sizeof(double),
                             bits_of(value_of(word, expected)), bits_of(seen)};
  }
  return result;
}

}  // namespace

void fill(const TimedStream& stream, double* data, std::uint64_t words, std::uint32_t seed) {
  stream.use();
  hipLaunchKernelGGL(fill_kernel, grid_for(words), dim3(kBlock), 0, stream.get(), data, words,
                     seed);
  FABRICHECK_HIP(hipGetLastError());
}

void poison(const TimedStream& stream, double* data, std::uint64_t words) {
  stream.use();
  hipLaunchKernelGGL(poison_kernel, grid_for(words), dim3(kBlock), 0, stream.get(),
                     reinterpret_cast<std::uint64_t*>(data), words);
  FABRICHECK_HIP(hipGetLastError());
}

void flip_bit(const TimedStream& stream, double* data, std::uint64_t word, int bit) {
  stream.use();
  hipLaunchKernelGGL(flip_kernel, dim3(1), dim3(1), 0, stream.get(),
                     reinterpret_cast<std::uint64_t*>(data), word, bit);
  FABRICHECK_HIP(hipGetLastError());
}

Verification compare(const TimedStream& stream, const double* data, std::uint64_t words,
                     const Expected& expected) {
  return compare_words(stream, data, words, expected);
}

Verification compare(const TimedStream& stream, const double* data, const ExpectedSums& expected) {
  auto result = compare_words(stream, data, expected.words(), expected);
  result.bytes_checked = 2 * expected.elements * sizeof(double);
  return result;
}

Verification compare_bytes(const TimedStream& stream, const double* data, std::uint64_t bytes,
                           std::uint32_t seed) {
  const auto words = bytes / sizeof(double);
  auto result = words > 0 ? compare(stream, data, words, Expected{1, seed, 0, 0}) : Verification{};
  if (const auto rest = bytes % sizeof(double)) {
    stream.use();
    stream.synchronize();
    double last = 0;
    FABRICHECK_HIP(hipMemcpy(&last, data + words, sizeof last, hipMemcpyDefault));
    add_last(result, words, rest, seed, last, stream.device());
  }
  return result;
}

void fill(double* data, std::uint64_t words, std::uint32_t seed) {
  in_parts(words, [=](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i < last; ++i) {
      data[i] = pattern_value(i, seed);
    }
  });
}

void poison(double* data, std::uint64_t words) {
  double value = 0;
  memcpy(&value, &kPoison, sizeof value);
  in_parts(words, [=](std::uint64_t first, std::uint64_t last) {
    std::fill(data + first, data + last, value);
  });
}

Verification compare(const double* data, std::uint64_t words, const Expected& expected) {
  Verification result;
  result.bytes_checked = words * sizeof(double);
  std::mutex mutex;
  in_parts(words, [&](std::uint64_t first, std::uint64_t last) {
    std::uint64_t errors = 0;
    std::uint64_t earliest = last;
    for (std::uint64_t i = first; i < last; ++i) {
      if (bits_of(value_of(i, expected)) != bits_of(data[i]) && errors++ == 0) {
        earliest = i;
      }
    }
    if (errors == 0) {
      return;
    }
    const std::lock_guard lock(mutex);
    result.errors += errors;
    const auto offset = earliest * sizeof(double);
    if (!result.first_mismatch || offset < result.first_mismatch->offset_bytes) {
      result.first_mismatch = {-1, offset, bits_of(value_of(earliest, expected)),
                               bits_of(data[earliest])};
    }
  });
  return result;
}

Verification compare_bytes(const double* data, std::uint64_t bytes, std::uint32_t seed) {
  const auto words = bytes / sizeof(double);
  auto result = compare(data, words, Expected{1, seed, 0, 0});
  if (const auto rest = bytes % sizeof(double)) {
    add_last(result, words, rest, seed, data[words], -1);
  }
  return result;
}

void flip_bit(double* data, std::uint64_t word, int bit) {
  const auto flipped = bits_of(data[word]) ^ 1ULL << bit;
  memcpy(data + word, &flipped, sizeof flipped);
}

}  // namespace fabricheck

#include "harness/pattern.hpp"

#include <hip/hip_runtime.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "harness/comparison.hpp"

namespace fabricheck {
namespace {

constexpr unsigned kBlock = 256;
constexpr std::uint64_t kPoison = 0xfff8deaddeadbeefULL;

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

template <typename Expectation>
__global__ void compare_kernel(const double* data, std::uint64_t words, Expectation expected,
                               Comparison* all) {
  compare_by_thread(data, words, expected, all);
}

/// Adds the comparison of the incomplete last word after `words` whole ones; `bytes` (1 to 7) of it
/// were written.
void add_last(Verification& result, std::uint64_t words, std::uint64_t bytes, std::uint32_t seed,
              double last_word, int device) {
  auto right = kPoison;
  const double value = pattern_value(words, seed);
  memcpy(&right, &value, bytes);
  const auto seen = bits_of(last_word);
  result.bytes_checked += bytes;
  if (right != seen) {
    ++result.errors;
    if (!result.first_mismatch) {
      result.first_mismatch = {device, words * sizeof(double), right, seen};
    }
  }
}

dim3 grid_for(std::uint64_t words) {
  return dim3(static_cast<unsigned>((words + kBlock - 1) / kBlock));
}

template <typename Expectation>
Verification compare_words(const TimedStream& stream, const double* data, std::uint64_t words,
                           const Expectation& expected) {
  return compare_on_device(stream, data, words, expected, [&](dim3 grid, Comparison* all) {
    hipLaunchKernelGGL(HIP_KERNEL_NAME(compare_kernel<Expectation>), grid, dim3(kComparingThreads),
                       0, stream.get(), data, words, expected, all);
  });
}

}  // namespace

Comparison run_comparison(const TimedStream& stream, std::uint64_t count,
                          const std::function<void(dim3 grid, Comparison* all)>& launch) {
  constexpr std::uint64_t of_block = kComparingThreads * kElementsOfThread;
  stream.use();
  const auto scratch = Buffer::on_device(stream.device(), sizeof(Comparison));
  auto* const all = scratch.as<Comparison>();
  Comparison comparison;
  // The count begins here: if a copy is lost, fresh memory or this value is then no result.
  comparison.compared = count;
  // In the order of the stream, because a copy of pageable memory may return before it is made.
  FABRICHECK_HIP(
      hipMemcpyAsync(all, &comparison, sizeof comparison, hipMemcpyDefault, stream.get()));
  launch(dim3(static_cast<unsigned>((count + of_block - 1) / of_block)), all);
  FABRICHECK_HIP(hipGetLastError());
  stream.synchronize();
  FABRICHECK_HIP(hipMemcpy(&comparison, all, sizeof comparison, hipMemcpyDefault));
  comparison.compared -= count;
  return comparison;
}

void require_compared(const Comparison& comparison, std::uint64_t count, int device) {
  if (comparison.compared != count) {
    throw Failure(Status::software,
                  "the comparison on " +
                      (device < 0 ? "the host" : "device " + std::to_string(device)) +
                      " compared " + std::to_string(comparison.compared) + " of " +
                      std::to_string(count) + " elements");
  }
}

void in_parts(std::uint64_t count,
              const std::function<void(std::uint64_t first, std::uint64_t last)>& work) {
  constexpr std::uint64_t least = 1 << 20;
  cpu_set_t cores;
  const int open = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  const auto parts = std::clamp<std::uint64_t>(count / least, 1, std::clamp(open, 1, 16));
  std::vector<std::thread> threads;
  threads.reserve(parts);
  std::uint64_t done = 0;  // by this thread: what no other was found for
  for (std::uint64_t part = parts - 1; part > 0 && done == 0; --part) {
    try {
      threads.emplace_back(work, count * part / parts, count * (part + 1) / parts);
    } catch (const std::exception&) {
      done = count * (part + 1) / parts;
    }
  }
  work(0, done > 0 ? done : count / parts);
  for (auto& thread : threads) {
    thread.join();
  }
}

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
  auto result = compare(stream, data, words, Expected{1, seed, 0, 0});
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
  return compare_on_host(data, words, expected);
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

#include "mpi/values.hpp"

#include <hip/hip_runtime.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "harness/comparison.hpp"
#include "harness/sizes.hpp"

namespace fabricheck {
namespace {

constexpr unsigned kBlock = 256;
constexpr std::array<DataType, 4> kTypes{DataType::byte, DataType::int32, DataType::float32,
                                         DataType::float64};

/// A hash of element and rank: the finisher of SplitMix64 (S. Vigna, public domain).
__host__ __device__ inline std::uint64_t hash_of(std::uint64_t i, int rank, std::uint32_t message) {
  std::uint64_t x = i + 0x9e3779b97f4a7c15ULL * (static_cast<std::uint64_t>(rank) + 1) +
                    (static_cast<std::uint64_t>(message) << 40);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Whole numbers that 4096 ranks can add without rounding or overflow: 12 bits of a float's 24,
/// 40 of a double's 53, 18 of an int32's 31. A byte is never 255, the poison.
template <typename T>
__host__ __device__ inline T value_of(std::uint64_t i, int rank, std::uint32_t message) {
  const std::uint64_t hash = hash_of(i, rank, message);
  if (sizeof(T) == 1) {
    // hash % 255, by halves, as 2^32 % 255 is 1: devices have no division of 64 bits.
    return static_cast<T>((static_cast<std::uint32_t>(hash) % 255 + (hash >> 32) % 255) % 255);
  }
  const int bits = sizeof(T) == 8 ? 40 : (T(1) / T(2) > T(0) ? 12 : 18);
  return static_cast<T>(1 + (hash >> (64 - bits)) % ((1ULL << bits) - 1));
}

template <typename T>
struct Element {
  Content content;

  __host__ __device__ T operator()(std::uint64_t i) const {
    T sum = 0;
    for (int rank = 0; rank < content.ranks; ++rank) {
      sum = static_cast<T>(
          sum + value_of<T>(content.first + i, content.first_rank + rank, content.message));
    }
    return sum;
  }
};

template <typename T>
__global__ void fill_kernel(T* data, std::uint64_t count, Content content) {
  const auto i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) {
    data[i] = Element<T>{content}(i);
  }
}

template <typename T>
__global__ void set_kernel(T* data, std::uint64_t count) {
  const auto i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) {
    data[i] = static_cast<T>(~T(0));
  }
}

__global__ void flip_kernel(std::uint8_t* data, std::uint64_t byte, int bit) {
  data[byte] = static_cast<std::uint8_t>(data[byte] ^ (1U << bit));
}

template <typename T>
__global__ void compare_kernel(const T* data, std::uint64_t count, Content content,
                               Comparison* all) {
  compare_by_thread(data, count, Element<T>{content}, all);
}

dim3 grid_for(std::uint64_t elements) {
  return dim3(static_cast<unsigned>((elements + kBlock - 1) / kBlock));
}

/// Calls `work` with a null pointer of the element's type.
template <typename Work>
void with_type(DataType type, const Work& work) {
  switch (type) {
    case DataType::byte:
      return work(static_cast<std::uint8_t*>(nullptr));
    case DataType::int32:
      return work(static_cast<std::int32_t*>(nullptr));
    case DataType::float32:
      return work(static_cast<float*>(nullptr));
    case DataType::float64:
      return work(static_cast<double*>(nullptr));
  }
}

template <typename T>
void set_bits(const TimedStream& stream, T* data, std::uint64_t count) {
  if (count > 0) {
    hipLaunchKernelGGL(set_kernel<T>, grid_for(count), dim3(kBlock), 0, stream.get(), data, count);
    FABRICHECK_HIP(hipGetLastError());
  }
}

}  // namespace

const char* type_name(DataType type) {
  switch (type) {
    case DataType::byte:
      return datatype::byte;
    case DataType::int32:
      return datatype::int32;
    case DataType::float32:
      return datatype::float32;
    case DataType::float64:
      return datatype::float64;
  }
  return "";
}

std::uint64_t type_bytes(DataType type) {
  std::uint64_t bytes = 0;
  with_type(type, [&bytes](auto* element) { bytes = sizeof *element; });
  return bytes;
}

std::vector<DataType> parse_types(const std::string& text) {
  std::vector<DataType> types;
  for (const auto& name : split_list(text, "the list of types")) {
    const auto* match = std::find_if(kTypes.begin(), kTypes.end(),
                                     [&name](DataType type) { return name == type_name(type); });
    if (match == kTypes.end()) {
      throw Failure(Status::usage,
                    "'" + name + "' is not a type: choose from byte, int32, float, double");
    }
    if (std::find(types.begin(), types.end(), *match) != types.end()) {
      throw Failure(Status::usage, "'" + text + "' names the type " + name + " twice");
    }
    types.push_back(*match);
  }
  return types;
}

void fill(Accessor accessor, void* array, const Region& region) {
  if (region.count == 0) {
    return;
  }
  with_type(region.content.type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    auto* data = static_cast<T*>(array) + region.offset;
    if (accessor == nullptr) {
      for (std::uint64_t i = 0; i < region.count; ++i) {
        data[i] = Element<T>{region.content}(i);
      }
      return;
    }
    accessor->use();
    hipLaunchKernelGGL(fill_kernel<T>, grid_for(region.count), dim3(kBlock), 0, accessor->get(),
                       data, region.count, region.content);
    FABRICHECK_HIP(hipGetLastError());
    accessor->synchronize();
  });
}

void poison(Accessor accessor, void* array, std::uint64_t bytes) {
  if (accessor == nullptr) {
    std::memset(array, 0xff, bytes);
    return;
  }
  const auto words = bytes / sizeof(std::uint64_t);
  auto* data = static_cast<std::uint64_t*>(array);
  accessor->use();
  set_bits(*accessor, data, words);
  set_bits(*accessor, reinterpret_cast<std::uint8_t*>(data + words), bytes % sizeof(std::uint64_t));
  accessor->synchronize();
}

Verification compare(Accessor accessor, const void* array, const Region& region) {
  Verification result;
  with_type(region.content.type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const auto* data = static_cast<const T*>(array) + region.offset;
    const Element<T> expected{region.content};
    if (accessor == nullptr) {
      result = compare_on_host(data, region.count, expected);
    } else {
      result = compare_on_device(
          *accessor, data, region.count, expected, [&](dim3 grid, Comparison* all) {
            hipLaunchKernelGGL(compare_kernel<T>, grid, dim3(kComparingThreads), 0, accessor->get(),
                               data, region.count, region.content, all);
          });
    }
    if (result.first_mismatch) {
      result.first_mismatch->offset_bytes += region.offset * sizeof(T);
    }
  });
  return result;
}

void add(Verification& sum, const Verification& part) {
  sum.bytes_checked += part.bytes_checked;
  sum.errors += part.errors;
  if (part.first_mismatch && (!sum.first_mismatch || part.first_mismatch->offset_bytes <
                                                         sum.first_mismatch->offset_bytes)) {
    sum.first_mismatch = part.first_mismatch;
  }
}

void flip_bit(Accessor accessor, void* array, std::uint64_t byte, int bit) {
  auto* data = static_cast<std::uint8_t*>(array);
  if (accessor == nullptr) {
    data[byte] = static_cast<std::uint8_t>(data[byte] ^ (1U << bit));
    return;
  }
  accessor->use();
  hipLaunchKernelGGL(flip_kernel, dim3(1), dim3(1), 0, accessor->get(), data, byte, bit);
  FABRICHECK_HIP(hipGetLastError());
  accessor->synchronize();
}

std::uint64_t element_bits(const Content& content, std::uint64_t i) {
  std::uint64_t bits = 0;
  with_type(content.type, [&](auto* element) {
    bits = bits_of(Element<std::remove_pointer_t<decltype(element)>>{content}(i));
  });
  return bits;
}

std::string element_text(DataType type, std::uint64_t bits) {
  std::array<char, 40> text{};
  with_type(type, [&](auto* element) {
    std::remove_pointer_t<decltype(element)> value{};
    memcpy(&value, &bits, sizeof value);
    if (sizeof value == 1) {
      std::snprintf(text.data(), text.size(), "0x%02x", static_cast<unsigned>(bits));
    } else {
      std::snprintf(text.data(), text.size(), "%.17g", static_cast<double>(value));
    }
  });
  return text.data();
}

}  // namespace fabricheck

// Compiled as device code.
#include "ranks/values.hpp"

#include <hip/hip_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "harness/simulation.hpp"

namespace fabricheck {
namespace {

constexpr unsigned kBlock = 256;

__host__ __device__ inline std::uint32_t hash_of(int rank, std::uint64_t element,
                                                 std::uint32_t salt) {
  // The integer hash "lowbias32" (C. Wellons, 2018) over rank and element.
  auto x = static_cast<std::uint32_t>(element) ^
           (static_cast<std::uint32_t>(element >> 32) * 0x9e3779b9U) ^
           (static_cast<std::uint32_t>(rank + 1) * 0x85ebca6bU) ^ salt;
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

template <typename T>
__host__ __device__ inline T element_of(const Values& values, std::uint64_t i) {
  const std::uint32_t mask = sizeof(T) == 1 ? 15 : 4095;
  std::uint32_t sum = 0;
  for (int rank = 0; rank < values.ranks; ++rank) {
    sum += hash_of(values.first_rank + rank, values.offset + i, values.salt) & mask;
  }
  return static_cast<T>(sum);
}

/// Bit by bit, so that a not-a-number is found.
template <typename T>
__host__ __device__ inline bool same(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  Bits first;
  Bits second;
  memcpy(&first, &a, sizeof a);
  memcpy(&second, &b, sizeof b);
  return first == second;
}

template <typename T>
__global__ void fill_kernel(T* data, std::uint64_t count, Values values) {
  const auto i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) {
    data[i] = element_of<T>(values, i);
  }
}

/// found[0]: number of differences; found[1]: the first element that differs.
template <typename T>
__global__ void compare_kernel(const T* data, std::uint64_t count, Values expected,
                               unsigned long long* found) {
  const auto i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count && !same(data[i], element_of<T>(expected, i))) {
    atomicAdd(&found[0], 1ULL);
    atomicMin(&found[1], static_cast<unsigned long long>(i));
  }
}

dim3 grid_for(std::uint64_t count) {
  return dim3(static_cast<unsigned>((count + kBlock - 1) / kBlock));
}

/// Calls `work` with a null pointer of the type's C++ type.
template <typename Work>
void with_type(Datatype type, const Work& work) {
  switch (type) {
    case Datatype::byte:
      return work(static_cast<std::uint8_t*>(nullptr));
    case Datatype::int32:
      return work(static_cast<std::int32_t*>(nullptr));
    case Datatype::float32:
      return work(static_cast<float*>(nullptr));
    case Datatype::float64:
      return work(static_cast<double*>(nullptr));
  }
}

template <typename T>
void fill_array(T* data, std::uint64_t count, int device, const Values& values) {
  if (device >= 0) {
    const TimedStream stream(device);
    stream.use();
    hipLaunchKernelGGL(fill_kernel<T>, grid_for(count), dim3(kBlock), 0, stream.get(), data, count,
                       values);
    FABRICHECK_HIP(hipGetLastError());
    stream.synchronize();
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    data[i] = element_of<T>(values, i);
  }
}

/// Number of differences, and the first element that differs.
template <typename T>
void count_differences(const T* data, std::uint64_t count, int device, const Values& expected,
                       unsigned long long (&counts)[2]) {
  if (device < 0) {
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!same(data[i], element_of<T>(expected, i)) && counts[0]++ == 0) {
        counts[1] = i;
      }
    }
    return;
  }
  const TimedStream stream(device);
  const auto scratch = Buffer::on_device(device, sizeof counts);
  auto* found = scratch.as<unsigned long long>();
  FABRICHECK_HIP(hipMemcpy(found, counts, sizeof counts, hipMemcpyDefault));
  hipLaunchKernelGGL(compare_kernel<T>, grid_for(count), dim3(kBlock), 0, stream.get(), data, count,
                     expected, found);
  FABRICHECK_HIP(hipGetLastError());
  stream.synchronize();
  FABRICHECK_HIP(hipMemcpy(counts, found, sizeof counts, hipMemcpyDefault));
}

std::string text_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", number);
  return text;
}

/// Copies between the array and the host, either way.
void copy_bytes(void* to, const void* from, std::uint64_t bytes, int device) {
  if (device < 0) {
    std::memcpy(to, from, bytes);
  } else {
    FABRICHECK_HIP(hipMemcpy(to, from, bytes, hipMemcpyDefault));
  }
}

}  // namespace

const char* datatype_name(Datatype type) {
  constexpr const char* names[] = {"byte", "int32", "float", "double"};
  return names[static_cast<int>(type)];
}

Datatype parse_datatype(const std::string& word) {
  for (const auto type : {Datatype::byte, Datatype::int32, Datatype::float32, Datatype::float64}) {
    if (word == datatype_name(type)) {
      return type;
    }
  }
  throw Failure(Status::usage, "'" + word + "' is no type: write byte, int32, float or double");
}

std::uint64_t datatype_size(Datatype type) {
  return type == Datatype::byte ? 1 : type == Datatype::float64 ? 8 : 4;
}

int value(int rank, std::uint64_t element, std::uint32_t salt, Datatype type) {
  const std::uint32_t mask = type == Datatype::byte ? 15 : 4095;
  return static_cast<int>(hash_of(rank, element, salt) & mask);
}

Array::Array(Datatype type, std::uint64_t elements, int device)
    : type_(type),
      elements_(elements),
      device_(device),
      buffer_(device < 0 ? Buffer::on_host(-1, elements * datatype_size(type), HostMemory::pageable)
                         : Buffer::on_device(device, elements * datatype_size(type))) {}

std::uint64_t Array::real(std::uint64_t first, std::uint64_t count) const {
  const auto moved = moved_bytes(bytes()) / datatype_size(type_);
  return first >= moved ? 0 : std::min(count, moved - first);
}

void Array::fill(const Values& values) { fill(values, 0, elements_); }

void Array::fill(const Values& values, std::uint64_t first, std::uint64_t count) {
  const auto some = real(first, count);
  if (some > 0) {
    with_type(type_, [&](auto* typed) {
      fill_array(static_cast<decltype(typed)>(data()) + first, some, device_, values);
    });
  }
}

void Array::poison() {
  // All bits set: no number for floats, and above every sum of bytes.
  const auto some = real(0, elements_) * datatype_size(type_);
  if (device_ < 0) {
    std::memset(data(), 0xff, some);
  } else {
    FABRICHECK_HIP(hipSetDevice(device_));
    FABRICHECK_HIP(hipMemset(data(), 0xff, some));
    FABRICHECK_HIP(hipDeviceSynchronize());
  }
}

Verification Array::verify(const Values& expected, int rank, int document_device) const {
  return verify(expected, 0, elements_, rank, document_device);
}

Verification Array::verify(const Values& expected, std::uint64_t first, std::uint64_t count,
                           int rank, int document_device) const {
  Verification result;
  const auto some = real(first, count);
  if (some == 0) {
    return result;
  }
  result.bytes_checked = some * datatype_size(type_);
  with_type(type_, [&](auto* typed) {
    using T = std::remove_pointer_t<decltype(typed)>;
    const auto* elements = static_cast<const T*>(data()) + first;
    unsigned long long counts[2] = {0, ~0ULL};
    count_differences(elements, some, device_, expected, counts);
    result.errors = counts[0];
    if (counts[0] > 0) {
      T seen{};
      copy_bytes(&seen, elements + counts[1], sizeof seen, device_);
      Verification::Mismatch mismatch;
      mismatch.device = device_ < 0 ? -1 : document_device;
      mismatch.offset_bytes = (first + counts[1]) * sizeof(T);
      mismatch.rank = rank;
      mismatch.expected_text = text_of(static_cast<double>(element_of<T>(expected, counts[1])));
      mismatch.found_text = text_of(static_cast<double>(seen));
      result.first_mismatch = mismatch;
    }
  });
  return result;
}

void Array::inject(const std::vector<Fault>& faults) {
  for (const auto& fault : faults) {
    if (fault.kind == Fault::Kind::unwritten) {
      poison();
    } else if (fault.kind == Fault::Kind::flip_bit) {
      const auto offset = fault.offset_bytes + static_cast<std::uint64_t>(fault.bit / 8);
      if (offset >= bytes()) {
        throw Failure(Status::usage, "the fault at byte " + std::to_string(fault.offset_bytes) +
                                         " lies outside an array of " + std::to_string(bytes()) +
                                         " B");
      }
      unsigned char byte = 0;
      auto* place = static_cast<unsigned char*>(data()) + offset;
      copy_bytes(&byte, place, 1, device_);
      byte = static_cast<unsigned char>(byte ^ (1U << (fault.bit % 8)));
      copy_bytes(place, &byte, 1, device_);
    }
  }
}

void add(Verification& sum, const Verification& part) {
  sum.bytes_checked += part.bytes_checked;
  sum.errors += part.errors;
  if (!sum.first_mismatch) {
    sum.first_mismatch = part.first_mismatch;
  }
}

nlohmann::json to_json(const Verification& verification) {
  nlohmann::json first = nullptr;
  if (verification.first_mismatch) {
    const auto& found = *verification.first_mismatch;
    first = {found.device, found.offset_bytes, found.rank, found.expected_text, found.found_text};
  }
  return {verification.bytes_checked, verification.errors, first};
}

Verification verification_of(const nlohmann::json& text) {
  Verification result{text[0], text[1], std::nullopt};
  if (!text[2].is_null()) {
    result.first_mismatch =
        Verification::Mismatch{text[2][0], text[2][1], 0, 0, text[2][2], text[2][3], text[2][4]};
  }
  return result;
}

}  // namespace fabricheck

#include "stream/kernels.hpp"

#include <hip/hip_runtime.h>

#include <algorithm>
#include <array>
#include <utility>

#include "harness/devices.hpp"
#include "harness/simulation.hpp"
#include "harness/sizes.hpp"
#include "harness/store.hpp"

namespace fabricheck::stream {
namespace {

constexpr std::array<std::pair<StreamOperation, const char*>, 6> kNames{{
    {StreamOperation::copy, operation::copy},
    {StreamOperation::scale, operation::scale},
    {StreamOperation::add, operation::add},
    {StreamOperation::triad, operation::triad},
    {StreamOperation::read_only, operation::read_only},
    {StreamOperation::write_only, operation::write_only},
}};

/// Element `i` of the result.
template <StreamOperation Operation, bool StreamingLoads>
__device__ inline double2 result_of(const double2* a, const double2* b, double k, std::uint64_t i) {
  double2 result = load<StreamingLoads>(a + i);
  if (Operation == StreamOperation::scale) {
    result.x *= k;
    result.y *= k;
  } else if (Operation == StreamOperation::add) {
    const double2 other = load<StreamingLoads>(b + i);
    result.x += other.x;
    result.y += other.y;
  } else if (Operation == StreamOperation::triad) {
    const double2 other = load<StreamingLoads>(b + i);
    result.x += k * other.x;
    result.y += k * other.y;
  }
  return result;
}

/// The default: the grid covers the arrays, one element a thread.
template <StreamOperation Operation, bool StreamingStores>
__global__ void __launch_bounds__(1024)
    stream_kernel(const double2* __restrict__ a, const double2* __restrict__ b,
                  double2* __restrict__ c, double k, std::uint64_t elements) {
  const auto i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements) {
    store<StreamingStores>(c + i, result_of<Operation, false>(a, b, k, i));
  }
}

/// Calls `several(i)` for the elements i, i + blockDim.x, ... of this thread, `Elements` at a time,
/// and `one(i)` for each of what is left at the end of the array.
template <int Elements, typename Several, typename One>
__device__ inline void for_each_element(std::uint64_t elements, const Several& several,
                                        const One& one) {
  const auto chunk = static_cast<std::uint64_t>(Elements) * blockDim.x;
  auto i = blockIdx.x * chunk + threadIdx.x;
  for (; i + (Elements - 1) * static_cast<std::uint64_t>(blockDim.x) < elements;
       i += gridDim.x * chunk) {
    several(i);
  }
  if (Elements > 1) {
    for (; i < elements; i += blockDim.x) {
      one(i);
    }
  }
}

/// The same with a loop over the arrays and any number of elements a thread: all are loaded before
/// the first is stored.
template <StreamOperation Operation, bool StreamingLoads, bool StreamingStores, int Elements>
__global__ void __launch_bounds__(1024)
    loop_kernel(const double2* __restrict__ a, const double2* __restrict__ b,
                double2* __restrict__ c, double k, std::uint64_t elements) {
  for_each_element<Elements>(
      elements,
      [=](std::uint64_t first) {
        double2 results[Elements];
        FABRICHECK_UNROLL
        for (int j = 0; j < Elements; ++j) {
          const auto i = first + static_cast<std::uint64_t>(j) * blockDim.x;
          results[j] = result_of<Operation, StreamingLoads>(a, b, k, i);
        }
        FABRICHECK_UNROLL
        for (int j = 0; j < Elements; ++j) {
          const auto i = first + static_cast<std::uint64_t>(j) * blockDim.x;
          store<StreamingStores>(c + i, results[j]);
        }
      },
      [=](std::uint64_t i) {
        store<StreamingStores>(c + i, result_of<Operation, StreamingLoads>(a, b, k, i));
      });
}

template <bool StreamingLoads, int Elements>
__global__ void __launch_bounds__(1024)
    read_kernel(const double2* __restrict__ a, double2* __restrict__ c, std::uint64_t elements) {
  double2 sum = {0, 0};
  for_each_element<Elements>(
      elements,
      [a, &sum](std::uint64_t first) {
        double2 values[Elements];
        FABRICHECK_UNROLL
        for (int j = 0; j < Elements; ++j) {
          const auto i = first + static_cast<std::uint64_t>(j) * blockDim.x;
          values[j] = load<StreamingLoads>(a + i);
        }
        FABRICHECK_UNROLL
        for (int j = 0; j < Elements; ++j) {
          sum.x += values[j].x;
          sum.y += values[j].y;
        }
      },
      [a, &sum](std::uint64_t i) {
        const double2 value = load<StreamingLoads>(a + i);
        sum.x += value.x;
        sum.y += value.y;
      });
  const auto thread = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread < elements) {
    c[thread] = sum;
  }
}

template <bool StreamingStores, int Elements>
__global__ void __launch_bounds__(1024)
    write_kernel(double2* __restrict__ c, std::uint32_t seed, std::uint64_t elements) {
  const auto write = [=](std::uint64_t i) {
    const double2 value = {pattern_value(2 * i, seed), pattern_value(2 * i + 1, seed)};
    store<StreamingStores>(c + i, value);
  };
  for_each_element<Elements>(
      elements,
      [=](std::uint64_t first) {
        FABRICHECK_UNROLL
        for (int j = 0; j < Elements; ++j) {
          write(first + static_cast<std::uint64_t>(j) * blockDim.x);
        }
      },
      write);
}

/// A launch of which the kernel has still to be chosen.
struct Launch {
  const TimedStream& stream;
  const Arrays& arrays;
  dim3 grid;
  dim3 block;

  [[nodiscard]] const double2* a() const { return reinterpret_cast<const double2*>(arrays.a); }
  [[nodiscard]] const double2* b() const { return reinterpret_cast<const double2*>(arrays.b); }
  [[nodiscard]] double2* c() const { return reinterpret_cast<double2*>(arrays.c); }
  [[nodiscard]] std::uint64_t elements() const { return arrays.bytes / sizeof(double2); }
};

template <StreamOperation Operation, bool StreamingStores>
void launch_default(const Launch& launch) {
  hipLaunchKernelGGL(HIP_KERNEL_NAME(stream_kernel<Operation, StreamingStores>), launch.grid,
                     launch.block, 0, launch.stream.get(), launch.a(), launch.b(), launch.c(),
                     kStreamFactor, launch.elements());
}

template <StreamOperation Operation, bool StreamingLoads, bool StreamingStores, int Elements>
void launch_exactly(const Launch& launch) {
  if constexpr (Operation == StreamOperation::read_only) {
    hipLaunchKernelGGL(HIP_KERNEL_NAME(read_kernel<StreamingLoads, Elements>), launch.grid,
                       launch.block, 0, launch.stream.get(), launch.a(), launch.c(),
                       launch.elements());
  } else if constexpr (Operation == StreamOperation::write_only) {
    hipLaunchKernelGGL(HIP_KERNEL_NAME(write_kernel<StreamingStores, Elements>), launch.grid,
                       launch.block, 0, launch.stream.get(), launch.c(), launch.arrays.write_seed,
                       launch.elements());
  } else {
    hipLaunchKernelGGL(
        HIP_KERNEL_NAME(loop_kernel<Operation, StreamingLoads, StreamingStores, Elements>),
        launch.grid, launch.block, 0, launch.stream.get(), launch.a(), launch.b(), launch.c(),
        kStreamFactor, launch.elements());
  }
}

template <StreamOperation Operation, bool StreamingLoads, bool StreamingStores>
void launch_with([[maybe_unused]] int elements, const Launch& launch) {
#ifndef FABRICHECK_SIM_RUNTIME  // its node does not tell kernels apart: VariantOptions::parse
  switch (elements) {
    case 2:
      return launch_exactly<Operation, StreamingLoads, StreamingStores, 2>(launch);
    case 4:
      return launch_exactly<Operation, StreamingLoads, StreamingStores, 4>(launch);
    case 8:
      return launch_exactly<Operation, StreamingLoads, StreamingStores, 8>(launch);
  }
#endif
  launch_exactly<Operation, StreamingLoads, StreamingStores, 1>(launch);
}

/// Whether the default kernel does: it has no other operations and loads, and no loop.
bool is_default(StreamOperation operation, const Variant& variant) {
  return operation != StreamOperation::read_only && operation != StreamOperation::write_only &&
         !variant.streaming_loads && variant.elements == 1 && variant.grid == 0;
}

template <StreamOperation Operation>
void launch_as(const Variant& variant, const Launch& launch) {
  // What no operation or build tells apart is compiled once.
  constexpr bool loads = kStreamingLoads && Operation != StreamOperation::write_only;
  constexpr bool stores = Operation != StreamOperation::read_only;
  const bool streaming = variant.stores == Stores::streaming;
  if constexpr (stores && Operation != StreamOperation::write_only) {
    if (is_default(Operation, variant)) {
      return streaming ? launch_default<Operation, true>(launch)
                       : launch_default<Operation, false>(launch);
    }
  }
  if (loads && variant.streaming_loads) {
    return stores && streaming ? launch_with<Operation, loads, stores>(variant.elements, launch)
                               : launch_with<Operation, loads, false>(variant.elements, launch);
  }
  return stores && streaming ? launch_with<Operation, false, stores>(variant.elements, launch)
                             : launch_with<Operation, false, false>(variant.elements, launch);
}

}  // namespace

void VariantOptions::add_to(CommandLine& line) {
  line.add({"--loads",
            "how kernels read: plain, streaming (which caches should not keep), or both in turn: "
            "plain,streaming"},
           loads);
  line.add({"--elements",
            "elements of 16 B that a thread loads before it stores, of 1, 2, 4 and 8: 1,4"},
           elements);
  line.add({"--grid",
            "blocks of a launch, which loop over the arrays, and so the most compute units at "
            "work: 1,16,256; cover: as many blocks as cover the arrays"},
           grid);
}

std::vector<Variant> VariantOptions::parse() const {
  std::vector<Variant> variants;
  for (const auto& blocks : split_list(grid, "the list of grids")) {
    Variant variant;
    variant.grid = blocks == "cover" ? 0 : parse_index(blocks, "the number of blocks");
    if (blocks != "cover" && variant.grid == 0) {
      throw Failure(Status::usage, "a launch has at least one block, and '" + grid + "' says 0");
    }
    for (const auto& way : split_list(loads, "the list of loads")) {
      variant.streaming_loads = way == loads::streaming;
      if (!variant.streaming_loads && way != loads::plain) {
        throw Failure(Status::usage,
                      "'" + way + "' is no way to load: choose from plain, streaming");
      }
      if (variant.streaming_loads && !kStreamingLoads) {
        throw Failure(Status::unsupported, "a CPU has no streaming loads: leave --loads out");
      }
      for (const auto& item : split_list(elements, "the list of elements a thread")) {
        variant.elements = parse_index(item, "the number of elements a thread");
        if (variant.elements < 1 || variant.elements > 8 || 8 % variant.elements != 0) {
          throw Failure(Status::usage, "a thread has 1, 2, 4 or 8 elements, and not " + item);
        }
        if (kSimulated && (variant.elements > 1 || variant.grid > 0)) {
          throw Failure(Status::unsupported,
                        "the simulated node does not tell kernels apart: leave --elements and "
                        "--grid out");
        }
        variants.push_back(variant);
      }
    }
  }
  return variants;
}

std::vector<Variant> variants_of(StreamOperation operation, const std::vector<Variant>& variants) {
  std::vector<Variant> differing = variants;
  if (operation == StreamOperation::write_only) {
    const bool loads = variants.front().streaming_loads;
    differing.erase(std::remove_if(differing.begin(), differing.end(),
                                   [loads](const Variant& variant) {
                                     return variant.streaming_loads != loads;
                                   }),
                    differing.end());
  }
  return differing;
}

std::vector<StreamOperation> parse_operations(const std::string& text) {
  std::vector<StreamOperation> operations;
  for (const auto& name : split_list(text, "the list of kernels")) {
    const auto entry = std::find_if(kNames.begin(), kNames.end(),
                                    [&name](const auto& known) { return name == known.second; });
    if (entry == kNames.end()) {
      std::string names;
      for (const auto& known : kNames) {
        names += (names.empty() ? "" : ", ") + std::string(known.second);
      }
      throw Failure(Status::usage, "'" + name + "' is not a kernel: choose from " + names);
    }
    operations.push_back(entry->first);
  }
  return operations;
}

const char* operation_name(StreamOperation operation) {
  return kNames[static_cast<std::size_t>(operation)].second;
}

int arrays_moved(StreamOperation operation) {
  switch (operation) {
    case StreamOperation::copy:
    case StreamOperation::scale:
      return 2;
    case StreamOperation::add:
    case StreamOperation::triad:
      return 3;
    case StreamOperation::read_only:
    case StreamOperation::write_only:
      return 1;
  }
  return 0;
}

Expected expected_result(StreamOperation operation, std::uint32_t seed_a, std::uint32_t seed_b) {
  Expected expected{1, seed_a, 0, seed_b};
  if (operation == StreamOperation::scale) {
    expected.first_factor = kStreamFactor;
  } else if (operation == StreamOperation::add) {
    expected.second_factor = 1;
  } else if (operation == StreamOperation::triad) {
    expected.second_factor = kStreamFactor;
  }
  return expected;
}

std::uint64_t blocks_of(StreamOperation operation, const Variant& variant, int device,
                        std::uint64_t bytes, int block_size) {
  constexpr int threads_of_unit = 2048;
  const auto of_block = static_cast<std::uint64_t>(variant.elements) * block_size * sizeof(double2);
  const auto covering = (bytes + of_block - 1) / of_block;
  if (variant.grid > 0) {
    return std::min<std::uint64_t>(covering, variant.grid);
  }
  if (operation == StreamOperation::read_only) {
    return std::min<std::uint64_t>(
        covering, std::uint64_t(compute_units(device)) * (threads_of_unit / block_size));
  }
  return covering;
}

ExpectedSums expected_sums(const Variant& variant, int device, std::uint64_t bytes, int block_size,
                           std::uint32_t seed) {
  return {seed, bytes / sizeof(double2),
          blocks_of(StreamOperation::read_only, variant, device, bytes, block_size),
          static_cast<std::uint64_t>(block_size), static_cast<std::uint64_t>(variant.elements)};
}

void describe(Series& series, StreamOperation operation, const Variant& variant, int device,
              std::uint64_t bytes, int block_size) {
  const bool streaming = variant.stores == Stores::streaming;
  if (operation != StreamOperation::read_only) {
    series.stores = streaming ? stores::streaming : stores::plain;
  }
  if (operation != StreamOperation::write_only) {
    series.loads = variant.streaming_loads ? loads::streaming : loads::plain;
  }
  series.elements = variant.elements;
  series.block_size = block_size;
  if (operation == StreamOperation::read_only || variant.grid > 0) {
    series.grid = blocks_of(operation, variant, device, bytes, block_size);
  }
}

int passes_of_launch(StreamOperation operation, const Variant& variant, int operations, bool cpu,
                     bool past_caches) {
  const bool loops = variant.grid > 0 || operation == StreamOperation::read_only;
  return !kSimulated && !cpu && past_caches && !loops ? operations : 1;
}

void launch(StreamOperation operation, const Variant& variant, const TimedStream& stream,
            const Arrays& arrays, int block_size, int passes) {
  const auto blocks = blocks_of(operation, variant, stream.device(), arrays.bytes, block_size);
  const Launch launch{stream, arrays,
                      dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(passes)),
                      dim3(static_cast<unsigned>(block_size))};
  switch (operation) {
    case StreamOperation::copy:
      return launch_as<StreamOperation::copy>(variant, launch);
    case StreamOperation::scale:
      return launch_as<StreamOperation::scale>(variant, launch);
    case StreamOperation::add:
      return launch_as<StreamOperation::add>(variant, launch);
    case StreamOperation::triad:
      return launch_as<StreamOperation::triad>(variant, launch);
    case StreamOperation::read_only:
      return launch_as<StreamOperation::read_only>(variant, launch);
    case StreamOperation::write_only:
      return launch_as<StreamOperation::write_only>(variant, launch);
  }
}

}  // namespace fabricheck::stream

#include "stream/kernels.hpp"

#include <hip/hip_runtime.h>

#include "harness/simulation.hpp"
#include "harness/sizes.hpp"
#include "harness/store.hpp"

namespace fabricheck::stream {
namespace {

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

template <StreamOperation Operation, bool StreamingLoads, bool StreamingStores, int Elements>
__global__ void __launch_bounds__(1024)
    stream_kernel(const double2* __restrict__ a, const double2* __restrict__ b,
                  double2* __restrict__ c, double k, std::uint64_t elements) {
  const auto first = static_cast<std::uint64_t>(blockIdx.x) * Elements * blockDim.x + threadIdx.x;
  if (first + static_cast<std::uint64_t>(Elements - 1) * blockDim.x < elements) {
    double2 results[Elements];
#pragma unroll
    for (int j = 0; j < Elements; ++j) {
      results[j] = result_of<Operation, StreamingLoads>(
          a, b, k, first + static_cast<std::uint64_t>(j) * blockDim.x);
    }
#pragma unroll
    for (int j = 0; j < Elements; ++j) {
      store<StreamingStores>(c + first + static_cast<std::uint64_t>(j) * blockDim.x, results[j]);
    }
  } else if (Elements > 1) {  // the end of the arrays
    for (std::uint64_t i = first; i < elements; i += blockDim.x) {
      store<StreamingStores>(c + i, result_of<Operation, StreamingLoads>(a, b, k, i));
    }
  }
}

/// What a launch needs besides its variant.
struct Launch {
  const TimedStream& stream;
  const double2* a;
  const double2* b;
  double2* c;
  std::uint64_t elements;
  int block_size;
  int passes;
};

template <StreamOperation Operation, bool StreamingLoads, bool StreamingStores, int Elements>
void launch_exactly(const Launch& it) {
  const auto block = static_cast<unsigned>(it.block_size);
  const auto covered = static_cast<std::uint64_t>(block) * Elements;
  const dim3 grid(static_cast<unsigned>((it.elements + covered - 1) / covered),
                  static_cast<unsigned>(it.passes));
  hipLaunchKernelGGL(
      HIP_KERNEL_NAME(stream_kernel<Operation, StreamingLoads, StreamingStores, Elements>), grid,
      dim3(block), 0, it.stream.get(), it.a, it.b, it.c, kStreamFactor, it.elements);
}

template <StreamOperation Operation, bool StreamingLoads, bool StreamingStores>
void launch_with(int elements, const Launch& it) {
  switch (elements) {
    case 1:
      return launch_exactly<Operation, StreamingLoads, StreamingStores, 1>(it);
    case 2:
      return launch_exactly<Operation, StreamingLoads, StreamingStores, 2>(it);
    case 4:
      return launch_exactly<Operation, StreamingLoads, StreamingStores, 4>(it);
    default:
      return launch_exactly<Operation, StreamingLoads, StreamingStores, 8>(it);
  }
}

template <StreamOperation Operation>
void launch_as(const Variant& variant, const Launch& it) {
  const bool stores = variant.stores == Stores::streaming;
  if (variant.streaming_loads) {
    stores ? launch_with<Operation, true, true>(variant.elements, it)
           : launch_with<Operation, true, false>(variant.elements, it);
  } else {
    stores ? launch_with<Operation, false, true>(variant.elements, it)
           : launch_with<Operation, false, false>(variant.elements, it);
  }
}

}  // namespace

std::vector<StreamOperation> parse_operations(const std::string& text) {
  std::vector<StreamOperation> operations;
  for (const auto& name : split_list(text, "the list of kernels")) {
    bool known = false;
    for (const auto operation : {StreamOperation::copy, StreamOperation::scale,
                                 StreamOperation::add, StreamOperation::triad}) {
      if (name == operation_name(operation)) {
        operations.push_back(operation);
        known = true;
      }
    }
    if (!known) {
      throw Failure(Status::usage,
                    "'" + name + "' is not a kernel: choose from copy, scale, add, triad");
    }
  }
  return operations;
}

std::vector<int> parse_elements(const std::string& text) {
  std::vector<int> elements;
  for (const auto& item : split_list(text, "the list of elements a thread")) {
    const int number = parse_index(item, "the number of elements a thread");
    if (number != 1 && number != 2 && number != 4 && number != 8) {
      throw Failure(Status::usage, "a thread has 1, 2, 4 or 8 elements, and not " + item);
    }
    elements.push_back(number);
  }
  return elements;
}

const char* operation_name(StreamOperation operation) {
  switch (operation) {
    case StreamOperation::copy:
      return operation::copy;
    case StreamOperation::scale:
      return operation::scale;
    case StreamOperation::add:
      return operation::add;
    case StreamOperation::triad:
      return operation::triad;
  }
  return "";
}

int arrays_moved(StreamOperation operation) {
  return operation == StreamOperation::add || operation == StreamOperation::triad ? 3 : 2;
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

int passes_of_launch(int operations, bool cpu, bool past_caches) {
  return !kSimulated && !cpu && past_caches ? operations : 1;
}

void launch(StreamOperation operation, Variant variant, const TimedStream& stream, const double* a,
            const double* b, double* c, std::uint64_t bytes, int block_size, int passes) {
  const Launch it{stream,
                  reinterpret_cast<const double2*>(a),
                  reinterpret_cast<const double2*>(b),
                  reinterpret_cast<double2*>(c),
                  bytes / sizeof(double2),
                  block_size,
                  passes};
  switch (operation) {
    case StreamOperation::copy:
      return launch_as<StreamOperation::copy>(variant, it);
    case StreamOperation::scale:
      return launch_as<StreamOperation::scale>(variant, it);
    case StreamOperation::add:
      return launch_as<StreamOperation::add>(variant, it);
    case StreamOperation::triad:
      return launch_as<StreamOperation::triad>(variant, it);
  }
}

}  // namespace fabricheck::stream

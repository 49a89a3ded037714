#include "stream/kernels.hpp"

#include <hip/hip_runtime.h>

#include "harness/simulation.hpp"
#include "harness/sizes.hpp"
#include "harness/store.hpp"

namespace fabricheck::stream {
namespace {

template <StreamOperation Operation, bool Streaming>
__global__ void __launch_bounds__(1024)
    stream_kernel(const double2* __restrict__ a, const double2* __restrict__ b,
                  double2* __restrict__ c, double k, std::uint64_t elements) {
  const auto i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= elements) {
    return;
  }
  double2 result = a[i];
  if (Operation == StreamOperation::scale) {
    result.x *= k;
    result.y *= k;
  } else if (Operation == StreamOperation::add) {
    const double2 other = b[i];
    result.x += other.x;
    result.y += other.y;
  } else if (Operation == StreamOperation::triad) {
    const double2 other = b[i];
    result.x += k * other.x;
    result.y += k * other.y;
  }
  store<Streaming>(c + i, result);
}

template <StreamOperation Operation>
void launch_as(Stores stores, const TimedStream& stream, const double* a, const double* b,
               double* c, std::uint64_t bytes, int block_size, int passes) {
  const std::uint64_t elements = bytes / sizeof(double2);
  const auto block = static_cast<unsigned>(block_size);
  const dim3 grid(static_cast<unsigned>((elements + block - 1) / block),
                  static_cast<unsigned>(passes));
  const auto* from_a = reinterpret_cast<const double2*>(a);
  const auto* from_b = reinterpret_cast<const double2*>(b);
  auto* to = reinterpret_cast<double2*>(c);
  if (stores == Stores::streaming) {
    hipLaunchKernelGGL(HIP_KERNEL_NAME(stream_kernel<Operation, true>), grid, dim3(block), 0,
                       stream.get(), from_a, from_b, to, kStreamFactor, elements);
  } else {
    hipLaunchKernelGGL(HIP_KERNEL_NAME(stream_kernel<Operation, false>), grid, dim3(block), 0,
                       stream.get(), from_a, from_b, to, kStreamFactor, elements);
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

void launch(StreamOperation operation, Stores stores, const TimedStream& stream, const double* a,
            const double* b, double* c, std::uint64_t bytes, int block_size, int passes) {
  switch (operation) {
    case StreamOperation::copy:
      return launch_as<StreamOperation::copy>(stores, stream, a, b, c, bytes, block_size, passes);
    case StreamOperation::scale:
      return launch_as<StreamOperation::scale>(stores, stream, a, b, c, bytes, block_size, passes);
    case StreamOperation::add:
      return launch_as<StreamOperation::add>(stores, stream, a, b, c, bytes, block_size, passes);
    case StreamOperation::triad:
      return launch_as<StreamOperation::triad>(stores, stream, a, b, c, bytes, block_size, passes);
  }
}

}  // namespace fabricheck::stream

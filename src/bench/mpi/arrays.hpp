// The source and the destination of one rank's messages.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/hip.hpp"
#include "mpi/values.hpp"

namespace fabricheck::mpi {

/// Memory that a rank sends from or receives into.
class MessageArray {
 public:
  MessageArray() = default;
  /// Memory of the stream's device, or with null pageable host memory; poisoned. Of a slice of a
  /// large array (a simulated node has no more) only `moved` bytes at the start hold data. Throws
  /// Failure(unsupported) when memory is missing.
  MessageArray(Accessor accessor, std::uint64_t bytes, std::uint64_t moved);

  [[nodiscard]] void* data() const { return data_; }

 private:
  Buffer buffer_;
  std::shared_ptr<void> whole_;  // of a simulation, instead of a buffer that is a slice
  void* data_ = nullptr;
};

}  // namespace fabricheck::mpi

// The source and the destination of one rank's messages.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/hip.hpp"
#include "ranks/values.hpp"

namespace fabricheck {

/// Memory that a rank sends from or receives into.
class MessageArray {
 public:
  MessageArray() = default;
  /// Of the stream's device, with null of the host, pageable. `moved` bytes at the start really
  /// move; the rest is there on a simulated node only by its size. Throws Failure(unsupported) when
  /// memory is missing.
  MessageArray(Toucher toucher, std::uint64_t bytes, std::uint64_t moved);

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  Buffer buffer_;
  std::shared_ptr<void> sliced_;  // of a simulation, instead of the buffer
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace fabricheck

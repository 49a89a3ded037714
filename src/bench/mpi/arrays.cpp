#include "mpi/arrays.hpp"

#include <mpi.h>

#include "harness/simulation.hpp"

namespace fabricheck {
namespace {

#ifdef FABRICHECK_SIMULATED
/// Memory of which only the first `moved` bytes are each rank's own, and are copied with a message:
/// all ranks' other bytes are the same few pages.
std::shared_ptr<void> sliced(std::uint64_t bytes, std::uint64_t moved) {
  const std::size_t shared[2] = {moved, bytes};
  return {smpi_shared_malloc_partial(bytes, shared, 1), [](void* data) { smpi_shared_free(data); }};
}
#else
std::shared_ptr<void> sliced(std::uint64_t, std::uint64_t) { return nullptr; }
#endif

}  // namespace

MessageArray::MessageArray(Toucher toucher, std::uint64_t bytes, std::uint64_t moved)
    : bytes_(bytes) {
  if (kSimulated && moved < bytes) {
    sliced_ = sliced(bytes, moved);
    data_ = sliced_.get();
  } else {
    buffer_ = toucher != nullptr ? Buffer::on_device(toucher->device(), bytes)
                                 : Buffer::on_host(-1, bytes, HostMemory::pageable);
    data_ = buffer_.as<void>();
  }
  poison(toucher, data_, moved);
}

}  // namespace fabricheck

#include "mpi/arrays.hpp"

#include <cstdlib>

#include "harness/simulation.hpp"

namespace fabricheck::mpi {

MessageArray::MessageArray(Accessor accessor, std::uint64_t bytes, std::uint64_t moved) {
  if (kSimulated && moved == bytes && moved_bytes(bytes) < bytes) {
    // A Buffer of the simulated node holds only a slice; messages go by the ranks' places anyway.
    whole_ = {std::malloc(bytes), std::free};
    data_ = whole_.get();
  } else {
    buffer_ = accessor != nullptr ? Buffer::on_device(accessor->device(), bytes)
                                  : Buffer::on_host(-1, bytes, HostMemory::pageable);
    data_ = buffer_.as<void>();
  }
  poison(accessor, data_, moved);
}

}  // namespace fabricheck::mpi

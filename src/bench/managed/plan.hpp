// The measurements of managed: operations on memory that host and device share, and the way in
// which its data moves to its user.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/devices.hpp"
#include "harness/host.hpp"

namespace fabricheck::managed {

/// Memory that kernels and the host use at the same address.
enum class SharedMemory {
  managed,  ///< hipMallocManaged
  pinned,   ///< hipHostMalloc, mapped
};

enum class Movement {
  zero_copy,       ///< every access goes over the link, the data stay
  page_migration,  ///< an access to a page that is elsewhere brings the page
  prefetch,        ///< hipMemPrefetchAsync brings the pages before
};

enum class SharedOperation {
  read,          ///< a kernel copies the shared array to device memory; its pages are on the host
  write,         ///< a kernel copies device memory to the shared array; its pages are on the host
  host_read,     ///< the CPU copies the shared array to its own memory; pages are on the device
  host_write,    ///< the CPU writes the shared array; its pages are on the device
  prefetch_h2d,  ///< pages are prefetched from the host to the device
  prefetch_d2h,  ///< and back
};

const char* memory_name(SharedMemory memory);
const char* movement_name(Movement movement);
const char* operation_name(SharedOperation operation);

/// Names of comma-separated lists. Throw Failure(usage).
std::vector<SharedMemory> parse_memories(const std::string& text);
std::vector<SharedOperation> parse_shared_operations(const std::string& text);

bool is_prefetch(SharedOperation operation);
/// Whether the CPU moves the data.
bool by_host(SharedOperation operation);
/// Whether the pages must be on the device before each sample.
bool starts_on_device(SharedOperation operation);

/// How data of shared memory moves to a kernel of a device of architecture `arch`. Throws
/// Failure(unsupported) if the device has no managed memory, or moves it in neither of the two
/// ways.
Movement movement_of(SharedMemory memory, int device, const std::string& arch,
                     const ManagedMemory& known);

/// Why a device does not move data as required, and how to change that; empty if it does.
std::optional<std::string> unexpected(Movement expected, Movement seen, SharedMemory memory,
                                      int device, const std::string& arch);

/// Whether an operation has a meaning: the last four need pages that can leave the host.
bool is_possible(SharedOperation operation, Movement movement);

/// What the pages of the shared array show about an operation that should move them.
struct Proved {
  Movement movement = Movement::page_migration;
  std::string remark;    ///< what is other than assumed, of a series that counts; empty: nothing
  std::string obstacle;  ///< why the series does not count; empty: it does
};

/// Compares the location of the pages before and after a sample with the operation. On AMD, one
/// page in a hundred may be elsewhere; other drivers are believed only if all pages were in one
/// place, before and after. If the system does not report the location, the assumption stands.
Proved prove_movement(SharedOperation operation, Movement assumed, const std::string& arch,
                      const PagePlaces& before, const PagePlaces& after);

}  // namespace fabricheck::managed

// The four STREAM kernels over arrays of doubles, in elements of 16 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/hip.hpp"
#include "harness/pattern.hpp"

namespace fabricheck::stream {

/// copy c = a, scale c = k a, add c = a + b, triad c = a + k b.
enum class StreamOperation { copy, scale, add, triad };

/// How a kernel writes: store.hpp.
enum class Stores { plain, streaming };

/// How a kernel is written: what AMD tunes. The defaults are what all checks but the scans of
/// variants measure.
struct Variant {
  Stores stores = Stores::plain;
  bool streaming_loads = false;
  int elements = 1;  ///< of 16 bytes a thread: 1, 2, 4 or 8
};

/// The numbers of elements a thread that a comma-separated list names. Throws Failure(usage).
std::vector<int> parse_elements(const std::string& text);

/// Streaming on a CPU with arrays past its caches, which reads a line before it overwrites part of
/// it; else plain: a GPU writes whole sectors anyway.
inline Stores automatic_stores(bool cpu, bool past_caches) {
  return cpu && past_caches ? Stores::streaming : Stores::plain;
}

/// The factor k. STREAM uses 3.0, which keeps all results exact (pattern.hpp).
constexpr double kStreamFactor = 3.0;

/// Operations of a comma-separated list. Throws Failure(usage).
std::vector<StreamOperation> parse_operations(const std::string& text);

const char* operation_name(StreamOperation operation);

/// Arrays read and written: 2 for copy and scale, 3 for add and triad.
int arrays_moved(StreamOperation operation);

/// What the destination holds afterwards, when a and b were filled with these seeds.
Expected expected_result(StreamOperation operation, std::uint32_t seed_a, std::uint32_t seed_b);

/// How many of the operations of a batch one launch makes. All of them where arrays are past the
/// caches of a GPU: a launch starts and drains in some us, which would count for each operation
/// (on an H200 12 us of a peer read's 1440). Else one, for what a small array shows is the launch;
/// so does a CPU, and a simulated node, which knows launches and not how they drain.
int passes_of_launch(int operations, bool cpu, bool past_caches);

/// Queues `passes` over `bytes` (a multiple of 16) of each array on the stream, in one launch. The
/// grid covers the arrays, once more for each pass. Of several elements a thread all are read
/// before the first is written, and those of neighbouring threads are neighbours.
void launch(StreamOperation operation, Variant variant, const TimedStream& stream, const double* a,
            const double* b, double* c, std::uint64_t bytes, int block_size, int passes = 1);

}  // namespace fabricheck::stream

// The four STREAM kernels, and kernels that only read or write, over arrays of doubles in elements
// of 16 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/command_line.hpp"
#include "harness/hip.hpp"
#include "harness/pattern.hpp"
#include "harness/series.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck::stream {

/// copy c = a, scale c = k a, add c = a + b, triad c = a + k b; read_only sums a and writes a sum a
/// thread to c, write_only makes the values of c of their index.
enum class StreamOperation { copy, scale, add, triad, read_only, write_only };

/// How a kernel writes: store.hpp.
enum class Stores { plain, streaming };

/// How a kernel is written: what is tuned. The defaults are what all checks but the scans of
/// variants measure.
struct Variant {
  Stores stores = Stores::plain;
  bool streaming_loads = false;
  int elements = 1;  ///< of 16 bytes, that a thread loads before it stores: 1, 2, 4 or 8
  int grid = 0;      ///< blocks of a launch, which loop over the arrays; 0: as many as cover them
};

/// The variants of a command line.
struct VariantOptions {
  std::string loads = loads::plain;
  std::string elements = "1";
  std::string grid = "cover";

  void add_to(CommandLine& line);
  /// Every combination, in order: of each grid each way to load with each number of elements.
  /// Throws Failure(usage), or Failure(unsupported) for what this build cannot tell apart.
  [[nodiscard]] std::vector<Variant> parse() const;
};

/// Those of the variants that differ for an operation: what loads nothing has one way to load.
std::vector<Variant> variants_of(StreamOperation operation, const std::vector<Variant>& variants);

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

/// Arrays read and written: 2 for copy and scale, 3 for add and triad, else 1.
int arrays_moved(StreamOperation operation);

/// What the destination holds afterwards, when a and b were filled with these seeds; of write_only
/// seed_a is that of the kernel. Not of read_only.
Expected expected_result(StreamOperation operation, std::uint32_t seed_a, std::uint32_t seed_b);

/// The blocks of a launch. Without a grid they cover the arrays; those of read_only are as many as
/// a device holds at a time, so that a thread has many elements for the sum that it writes.
std::uint64_t blocks_of(StreamOperation operation, const Variant& variant, int device,
                        std::uint64_t bytes, int block_size);

/// What read_only leaves of `bytes` of an array filled with `seed`.
ExpectedSums expected_sums(const Variant& variant, int device, std::uint64_t bytes, int block_size,
                           std::uint32_t seed);

/// How many of the operations of a batch one launch makes. All of them where arrays are past the
/// caches of a GPU: a launch starts and drains in some us, which would count for each operation
/// (on an H200 12 us of a peer read's 1440). Else one, for what a small array shows is the launch;
/// so does a CPU, and a simulated node, which knows launches and not how they drain. One also of a
/// grid that loops: blocks of several passes would be at work at once, on more compute units than
/// the grid allows, and one pass would find in the caches what another has just read.
int passes_of_launch(StreamOperation operation, const Variant& variant, int operations, bool cpu,
                     bool past_caches);

/// Puts the variant, as launched, into a series of `bytes` an array.
void describe(Series& series, StreamOperation operation, const Variant& variant, int device,
              std::uint64_t bytes, int block_size);

/// The arrays of a launch; of write_only a and b are not used, nor is b of kernels with one source.
struct Arrays {
  const double* a;
  const double* b;
  double* c;
  std::uint64_t bytes;           ///< of each, a multiple of 16
  std::uint32_t write_seed = 0;  ///< of the values that write_only makes
};

/// Queues `passes` over the arrays on the stream, in one launch: blocks_of() blocks, once more for
/// each pass. Elements of neighbouring threads are neighbours.
void launch(StreamOperation operation, const Variant& variant, const TimedStream& stream,
            const Arrays& arrays, int block_size, int passes = 1);

}  // namespace fabricheck::stream

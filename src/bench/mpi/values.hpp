// The contents of message buffers: values of several types whose sums over ranks are exact, the
// poison of destinations, and the comparison, by kernels or by the calling thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/hip.hpp"
#include "harness/series.hpp"

namespace fabricheck {

/// The type of an element, by its name in the result document: byte, int32, float, double.
enum class DataType { byte, int32, float32, float64 };

const char* type_name(DataType type);
std::uint64_t type_bytes(DataType type);

/// Types of a comma-separated list. Throws Failure(usage) for an unknown or repeated type.
std::vector<DataType> parse_types(const std::string& text);

/// The most ranks whose values may be summed in any order and stay exact, partial sums included.
constexpr int kMostRanksOfSums = 4096;

/// Element i of an array holds the sum over ranks r of value(first + i, r), for `ranks` ranks from
/// `first_rank` on. Values are whole numbers above zero. The arrays of two ranks always differ, and
/// no value has all bits set, which is the poison. Bytes have no sums: `ranks` is 1.
struct Content {
  DataType type = DataType::float64;
  int first_rank = 0;
  int ranks = 1;
  std::uint64_t first = 0;    ///< index of the array's first element within the message
  std::uint32_t message = 0;  ///< tells messages of one rank apart
};

/// Part of an array, in elements, and its content.
struct Region {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  Content content;
};

/// Reads and writes an array: by kernels on the device of a stream or, if null, by the calling
/// thread.
using Accessor = const TimedStream*;

/// Writes the content of the region. Waits for kernels.
void fill(Accessor accessor, void* array, const Region& region);

/// Sets all bits of `bytes` bytes, which is not a value of any type: unwritten elements are found.
void poison(Accessor accessor, void* array, std::uint64_t bytes);

/// Compares element by element, bit by bit. `errors` counts elements; the mismatch has the byte
/// offset into the array, and the elements' bits.
Verification compare(Accessor accessor, const void* array, const Region& region);

/// Adds the counts, and keeps the mismatch with the lower offset.
void add(Verification& sum, const Verification& part);

/// Flips one bit of a byte: an injected fault.
void flip_bit(Accessor accessor, void* array, std::uint64_t byte, int bit);

/// Bits of the element `i` of content, in the low bytes.
std::uint64_t element_bits(const Content& content, std::uint64_t i);

/// An element as a printed number, from its bits; a byte in hexadecimal.
std::string element_text(DataType type, std::uint64_t bits);

}  // namespace fabricheck

// What messages hold: whole numbers that every type has exactly, also summed over ranks; the poison
// of receive buffers; and the comparison of every element, on the device or on the host.
#pragma once

#include <cstdint>
#include <string>

#include "harness/document.hpp"
#include "harness/fault.hpp"
#include "harness/hip.hpp"

namespace fabricheck {

enum class Datatype { byte, int32, float32, float64 };

/// The word of the result document: byte, int32, float or double.
const char* datatype_name(Datatype type);
/// Throws Failure(usage) for a word that is none of them.
Datatype parse_datatype(const std::string& word);
std::uint64_t datatype_size(Datatype type);

/// Element i is the sum over ranks `first_rank` to `first_rank + ranks - 1` of
/// value(rank, offset + i, salt); of one rank: what it sends.
struct Values {
  int first_rank = 0;
  int ranks = 1;
  std::uint64_t offset = 0;
  std::uint32_t salt = 0;  ///< tells operations apart
};

/// Below 16 for bytes, so that up to 17 ranks have a sum that fits; below 4096 for the others, so
/// that up to 4096 ranks have one that float holds.
int value(int rank, std::uint64_t element, std::uint32_t salt, Datatype type);

/// An array of a rank: on its device, or pageable memory of the host.
class Array {
 public:
  /// `device` as the runtime numbers it; negative: host memory.
  Array(Datatype type, std::uint64_t elements, int device);

  [[nodiscard]] void* data() const { return buffer_.as<void>(); }
  [[nodiscard]] Datatype type() const { return type_; }
  [[nodiscard]] std::uint64_t elements() const { return elements_; }
  [[nodiscard]] std::uint64_t bytes() const { return elements_ * datatype_size(type_); }
  [[nodiscard]] int device() const { return device_; }
  /// The NUMA domain that host memory was found on; -1: not known, or a device's.
  [[nodiscard]] int numa_domain() const { return buffer_.numa_domain(); }
  /// device or host-pageable, as the result document has it.
  [[nodiscard]] const char* memory() const { return device_ < 0 ? "host-pageable" : "device"; }

  /// Fills `count` elements from `first` on with values; of all of them, and waits.
  void fill(const Values& values);
  void fill(const Values& values, std::uint64_t first, std::uint64_t count);
  /// Makes all of it look as if never written.
  void poison();
  /// Compares `count` elements from `first` on. The first difference, by its byte offset in the
  /// array, has the rank's number, and a device as the document numbers them (negative: none). On a
  /// simulated node only what was really moved is compared (bytes_checked).
  [[nodiscard]] Verification verify(const Values& expected, int rank, int document_device) const;
  [[nodiscard]] Verification verify(const Values& expected, std::uint64_t first,
                                    std::uint64_t count, int rank, int document_device) const;
  /// Makes faults on purpose. Throws Failure(usage) when an offset lies outside.
  void inject(const std::vector<Fault>& faults);

 private:
  [[nodiscard]] std::uint64_t real(std::uint64_t first, std::uint64_t count) const;
  Datatype type_;
  std::uint64_t elements_;
  int device_;
  Buffer buffer_;
};

/// Adds up what several ranks, or parts, found: the first mismatch is that of the first that has
/// one.
void add(Verification& sum, const Verification& part);
nlohmann::json to_json(const Verification& verification);
Verification verification_of(const nlohmann::json& text);

}  // namespace fabricheck

#include "harness/fault.hpp"

#include "harness/pattern.hpp"
#include "harness/sizes.hpp"

namespace fabricheck {

std::vector<Fault> parse_faults(const std::vector<std::string>& texts) {
  std::vector<Fault> faults;
  for (const auto& text : texts) {
    Fault fault;
    if (text == "unwritten") {
      fault.unwritten = true;
    } else {
      const auto first = text.find(':');
      const auto second = first == std::string::npos ? first : text.find(':', first + 1);
      if (second == std::string::npos || text.substr(0, first) != "flip-bit") {
        throw Failure(Status::usage,
                      "'" + text + "' is not a fault: write flip-bit:OFFSET:BIT or unwritten");
      }
      fault.offset_bytes =
          parse_whole(text.substr(first + 1, second - first - 1), "the byte offset");
      fault.bit = parse_index(text.substr(second + 1), "the bit");
      if (fault.bit > 63) {
        throw Failure(Status::usage, "the bit of '" + text + "' is above 63");
      }
    }
    faults.push_back(fault);
  }
  return faults;
}

void inject(const std::vector<Fault>& faults, const TimedStream& stream, double* data,
            std::uint64_t words) {
  for (const auto& fault : faults) {
    if (fault.unwritten) {
      poison(stream, data, words);
      continue;
    }
    const auto word = fault.offset_bytes / sizeof(double);
    if (word >= words) {
      throw Failure(Status::usage, "the fault at byte " + std::to_string(fault.offset_bytes) +
                                       " lies outside an array of " +
                                       format_size(words * sizeof(double)));
    }
    flip_bit(stream, data, word, fault.bit);
  }
}

}  // namespace fabricheck

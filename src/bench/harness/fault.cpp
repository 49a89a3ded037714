#include "harness/fault.hpp"

#include <cstdlib>
#include <utility>

#include "harness/pattern.hpp"
#include "harness/sizes.hpp"
#ifdef FABRICHECK_HOST_RUNTIME
#include "faults.hpp"
#endif

namespace fabricheck {
#ifdef FABRICHECK_HOST_RUNTIME
constexpr bool kOperationFaults = true;

std::vector<Fault> arm(const std::vector<Fault>& faults) {
  std::vector<Fault> others;
  for (const auto& fault : faults) {
    if (fault.kind == Fault::Kind::drop) {
      fabricheck_host::drop(fault.operation);
    } else if (fault.kind == Fault::Kind::delay) {
      fabricheck_host::delay(fault.operation);
    } else {
      others.push_back(fault);
    }
  }
  return others;
}

void require_made() {
  if (fabricheck_host::awaits_fault()) {
    throw Failure(Status::usage, "an injected fault never happened: there were " +
                                     std::to_string(fabricheck_host::operations()) +
                                     " launches and copies");
  }
}
#else
constexpr bool kOperationFaults = false;

std::vector<Fault> arm(const std::vector<Fault>& faults) { return faults; }
void require_made() {}
#endif

namespace {

Fault parse_fault(const std::string& text, bool host_memory) {
  Fault fault;
  for (const auto& [name, kind] :
       {std::pair("unwritten", Fault::Kind::unwritten),
        std::pair(status::device_error, Fault::Kind::device_error),
        std::pair(status::refused, Fault::Kind::refused), std::pair("abort", Fault::Kind::abort)}) {
    if (text == name) {
      fault.kind = kind;
      return fault;
    }
  }
  const auto first = text.find(':');
  const auto second = first == std::string::npos ? first : text.find(':', first + 1);
  const auto name = text.substr(0, first);
  if (host_memory && name == "pages-on" && first != std::string::npos) {
    fault.kind = Fault::Kind::pages_on;
    fault.domain = parse_index(text.substr(first + 1), "the NUMA domain");
    return fault;
  }
  if (kOperationFaults && (name == "drop" || name == "delay") && first != std::string::npos) {
    fault.kind = name == "drop" ? Fault::Kind::drop : Fault::Kind::delay;
    fault.operation = parse_whole(text.substr(first + 1), "the launch or copy");
    return fault;
  }
  if (name != "flip-bit" || second == std::string::npos) {
    throw Failure(Status::usage,
                  "'" + text + "' is not a fault: write flip-bit:OFFSET:BIT, unwritten, " +
                      (host_memory ? "pages-on:DOMAIN, " : "") + "device-error, refused" +
                      (kOperationFaults ? ", drop:N, delay:N" : "") + " or abort");
  }
  fault.offset_bytes = parse_whole(text.substr(first + 1, second - first - 1), "the byte offset");
  fault.bit = parse_index(text.substr(second + 1), "the bit");
  if (fault.bit > 63) {
    throw Failure(Status::usage, "the bit of '" + text + "' is above 63");
  }
  return fault;
}

template <typename Poison, typename Flip>
void inject_by(const std::vector<Fault>& faults, std::uint64_t words, const Poison& poison_all,
               const Flip& flip) {
  for (const auto& fault : faults) {
    if (fault.kind == Fault::Kind::unwritten) {
      poison_all();
    } else if (fault.kind == Fault::Kind::device_error) {
      check_hip(hipErrorECCNotCorrectable, "an injected call");
    } else if (fault.kind == Fault::Kind::refused) {
      check_hip(hipErrorInvalidValue, "an injected call");
    } else if (fault.kind == Fault::Kind::abort) {
      std::abort();
    } else if (fault.kind == Fault::Kind::flip_bit) {
      const auto word = fault.offset_bytes / sizeof(double);
      if (word >= words) {
        throw Failure(Status::usage, "the fault at byte " + std::to_string(fault.offset_bytes) +
                                         " lies outside an array of " +
                                         format_size(words * sizeof(double)));
      }
      flip(word, fault.bit);
    }
  }
}

}  // namespace

std::vector<Fault> parse_faults(const std::vector<std::string>& texts, bool host_memory) {
  std::vector<Fault> faults;
  for (const auto& text : texts) {
    faults.push_back(parse_fault(text, host_memory));
  }
  return faults;
}

std::optional<int> pages_on(const std::vector<Fault>& faults) {
  for (const auto& fault : faults) {
    if (fault.kind == Fault::Kind::pages_on) {
      return fault.domain;
    }
  }
  return std::nullopt;
}

void inject(const std::vector<Fault>& faults, const TimedStream& stream, double* data,
            std::uint64_t words) {
  inject_by(
      faults, words, [&] { poison(stream, data, words); },
      [&](std::uint64_t word, int bit) { flip_bit(stream, data, word, bit); });
}

void inject(const std::vector<Fault>& faults, double* data, std::uint64_t words) {
  inject_by(
      faults, words, [&] { poison(data, words); },
      [&](std::uint64_t word, int bit) { flip_bit(data, word, bit); });
}

}  // namespace fabricheck

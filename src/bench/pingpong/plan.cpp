#include "pingpong/plan.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "harness/devices.hpp"
#include "harness/names.hpp"
#include "harness/sizes.hpp"
#include "memcpy/plan.hpp"

namespace fabricheck::pingpong {
namespace {

constexpr std::array<std::pair<Exchange, const char*>, 3> kExchanges{{
    {Exchange::h2d, operation::h2d},
    {Exchange::d2h, operation::d2h},
    {Exchange::there_and_back, operation::there_and_back},
}};

}  // namespace

const char* exchange_name(Exchange exchange) {
  return kExchanges.at(static_cast<std::size_t>(exchange)).second;
}

std::vector<Exchange> parse_exchanges(const std::string& text) {
  return parse_names(text, kExchanges, "the list of operations", "an operation");
}

std::vector<std::uint64_t> exchange_sizes(const std::string& text, std::uint64_t cache_bytes) {
  if (text.empty()) {
    return array_sizes("", std::max<std::uint64_t>(64 << 20, cache_bytes / 2));
  }
  return parse_size_list(text);
}

const std::vector<std::string>& placement_names() {
  // Those of src/fabricheck/node/placement.py.
  static const std::vector<std::string> names{"given",      "right",         "in_order",
                                              "half_right", "half_rotated",  "far",
                                              "spread",     "shared_domain", "shared_device"};
  return names;
}

std::uint64_t ExchangeJob::bytes_moved() const {
  return exchange == Exchange::there_and_back ? 2 * bytes : bytes;
}

std::string ExchangeJob::text() const {
  return std::string(exchange_name(exchange)) + " of " + format_size(bytes) + " with " +
         copies::memory_word(memory) + " memory";
}

std::vector<ExchangeJob> plan_exchanges(const std::vector<HostMemory>& memory,
                                        const std::vector<Exchange>& exchanges,
                                        const std::vector<std::uint64_t>& sizes) {
  std::vector<ExchangeJob> jobs;
  for (const auto kind : memory) {
    for (const auto exchange : exchanges) {
      for (const auto size : sizes) {
        jobs.push_back({kind, exchange, size});
      }
    }
  }
  return jobs;
}

}  // namespace fabricheck::pingpong

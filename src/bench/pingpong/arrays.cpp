#include "pingpong/arrays.hpp"

#include "harness/host.hpp"
#include "harness/huge_pages.hpp"
#include "harness/pattern.hpp"
#include "harness/sampling.hpp"
#include "harness/simulation.hpp"
#include "memcpy/plan.hpp"

namespace fabricheck::pingpong {
namespace {

std::uint64_t whole_words(std::uint64_t bytes) {
  return (bytes + sizeof(double) - 1) / sizeof(double);
}

std::uint64_t words_moved(const ExchangeJob& job) { return whole_words(moved_bytes(job.bytes)); }

void add(Verification& sum, const Verification& part) {
  sum.bytes_checked += part.bytes_checked;
  sum.errors += part.errors;
  if (!sum.first_mismatch) {
    sum.first_mismatch = part.first_mismatch;
  }
}

}  // namespace

ExchangeArrays::ExchangeArrays(const Owner& owner, const ExchangeNeeds& needs,
                               std::optional<int> pages_on)
    : owner_(owner), memory_(needs.memory), stream_(owner.device) {
  const auto words = whole_words(needs.bytes);
  const auto bytes = words * sizeof(double);
  // Each array is touched before the next is requested, because only then the free memory is known.
  if (needs.to_device) {
    source_ = Buffer::on_host(owner.numa_domain, bytes, memory_, pages_on);
    source_huge_ = huge_page_bytes(source_.as<void>(), bytes);
    fill(source_.as<double>(), whole_words(moved_bytes(needs.bytes)), seed_of(Exchange::h2d));
  }
  if (needs.to_host) {
    destination_ = Buffer::on_host(owner.numa_domain, bytes, memory_, pages_on);
    destination_huge_ = huge_page_bytes(destination_.as<void>(), bytes);
  }
  on_device_ = Buffer::on_device(owner.device, bytes);
}

// The data from the host and from the device differs on all ranks, so that another one's is found.
std::uint32_t ExchangeArrays::seed_of(Exchange exchange) const {
  return 0x5eed0600U + 2 * static_cast<std::uint32_t>(owner_.rank) +
         (exchange == Exchange::d2h ? 1 : 0);
}

void ExchangeArrays::prepare(const ExchangeJob& job) const {
  const auto words = words_moved(job);
  if (job.to_device()) {
    poison(stream_, on_device_.as<double>(), words);
  } else {
    fill(stream_, on_device_.as<double>(), words, seed_of(job.exchange));
  }
  if (job.to_host() && !by_cpu()) {
    poison(stream_, destination_.as<double>(), words);
  }
  stream_.synchronize();
  if (job.to_host() && by_cpu()) {
    poison(destination_.as<double>(), words);
  }
}

double ExchangeArrays::run(const ExchangeJob& job) const {
  stream_.use();
  const double start = host_seconds();
  if (job.to_device()) {
    FABRICHECK_HIP(
        hipMemcpy(on_device_.as<void>(), source_.as<void>(), job.bytes, hipMemcpyHostToDevice));
  }
  if (job.to_host()) {
    FABRICHECK_HIP(hipMemcpy(destination_.as<void>(), on_device_.as<void>(), job.bytes,
                             hipMemcpyDeviceToHost));
  }
  // The last part of pageable memory may still be on its way when the call returns.
  FABRICHECK_HIP(hipDeviceSynchronize());
  return host_seconds() - start;
}

Verification ExchangeArrays::check(const ExchangeJob& job, const std::vector<Fault>& faults) const {
  const auto bytes = moved_bytes(job.bytes);
  const auto words = words_moved(job);
  const auto seed = seed_of(job.exchange);
  auto* on_device = on_device_.as<double>();
  auto* on_host = destination_.as<double>();
  if (!job.to_host()) {
    inject(faults, stream_, on_device, words);
  } else if (by_cpu()) {
    inject(faults, on_host, words);
  } else {
    inject(faults, stream_, on_host, words);
  }
  Verification result;
  if (job.to_device()) {
    add(result, compare_bytes(stream_, on_device, bytes, seed));
  }
  if (job.to_host()) {
    auto comparison = by_cpu() ? compare_bytes(on_host, bytes, seed)
                               : compare_bytes(stream_, on_host, bytes, seed);
    if (comparison.first_mismatch) {
      comparison.first_mismatch->device = -1;
    }
    add(result, comparison);
  }
  return result;
}

void ExchangeArrays::prove_pages() {
  for (auto* buffer : {&source_, &destination_}) {
    if (buffer->as<void>() != nullptr) {
      buffer->prove_pages();
    }
  }
}

Place ExchangeArrays::place_of(const Buffer& buffer, std::optional<std::uint64_t> huge) const {
  return {copies::memory_word(memory_), -1, buffer.numa_domain(), huge};
}

Place ExchangeArrays::source_place(const ExchangeJob& job) const {
  return job.to_device() ? place_of(source_, source_huge_)
                         : Place{memory::device, owner_.device, -1};
}

Place ExchangeArrays::destination_place(const ExchangeJob& job) const {
  return job.to_device() ? Place{memory::device, owner_.device, -1}
                         : place_of(destination_, destination_huge_);
}

}  // namespace fabricheck::pingpong

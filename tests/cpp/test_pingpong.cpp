#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/host.hpp"
#include "harness/pattern.hpp"
#include "harness/status.hpp"
#include "pingpong/arrays.hpp"
#include "pingpong/plan.hpp"
#include "pingpong/report.hpp"

using namespace fabricheck;
using namespace fabricheck::pingpong;

namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;

template <typename Parse>
std::pair<Status, std::string> failure_of(const Parse& parse) {
  try {
    (void)parse();
  } catch (const Failure& failure) {
    return {failure.status(), failure.what()};
  }
  return {Status::good, ""};
}

ExchangeArrays arrays_of(HostMemory memory, std::uint64_t bytes, int rank = 0) {
  return ExchangeArrays({rank, 0, -1}, {memory, bytes, true, true}, std::nullopt);
}

}  // namespace

TEST_CASE("operations of pingpong by name, in the order written") {
  CHECK(parse_exchanges("there-and-back,h2d") ==
        std::vector<Exchange>{Exchange::there_and_back, Exchange::h2d});
  const auto [status, sentence] = failure_of([] { return parse_exchanges("h2d-sync"); });
  CHECK(status == Status::usage);
  CHECK(sentence == "'h2d-sync' is not an operation: choose from h2d, d2h, there-and-back");
}

TEST_CASE("sizes of pingpong go down to any number of bytes, and are past the caches by default") {
  CHECK(exchange_sizes("4:32", 0) == std::vector<std::uint64_t>{4, 8, 16, 32});
  CHECK(exchange_sizes("3,100", 0) == std::vector<std::uint64_t>{3, 100});
  CHECK(exchange_sizes("", 8 * kMiB) == std::vector<std::uint64_t>{256 * kMiB});
  CHECK(exchange_sizes("", 256 * kMiB) == std::vector<std::uint64_t>{512 * kMiB});
}

TEST_CASE("every operation at every size, those of one kind of memory together") {
  std::vector<std::string> texts;
  for (const auto& job : plan_exchanges({HostMemory::pageable, HostMemory::pinned},
                                        {Exchange::h2d, Exchange::there_and_back}, {4, kMiB})) {
    texts.push_back(job.text());
    CHECK(job.bytes_moved() == (job.exchange == Exchange::there_and_back ? 2 : 1) * job.bytes);
  }
  CHECK(texts == std::vector<std::string>{"h2d of 4 B with host-pageable memory",
                                          "h2d of 1 MiB with host-pageable memory",
                                          "there-and-back of 4 B with host-pageable memory",
                                          "there-and-back of 1 MiB with host-pageable memory",
                                          "h2d of 4 B with host-pinned memory",
                                          "h2d of 1 MiB with host-pinned memory",
                                          "there-and-back of 4 B with host-pinned memory",
                                          "there-and-back of 1 MiB with host-pinned memory"});
}

TEST_CASE("copies of any number of bytes are verified to the last, and no further") {
  for (const auto memory : {HostMemory::pageable, HostMemory::pinned}) {
    for (const auto exchange : {Exchange::h2d, Exchange::d2h, Exchange::there_and_back}) {
      for (const std::uint64_t bytes : {1, 4, 8, 13, 4096, 100003}) {
        CAPTURE(bytes);
        CAPTURE(exchange_name(exchange));
        const ExchangeJob job{memory, exchange, bytes};
        const auto arrays = arrays_of(memory, bytes);
        arrays.prepare(job);
        CHECK(arrays.run(job) > 0);
        const auto found = arrays.check(job, {});
        CHECK(found.errors == 0);
        CHECK(found.bytes_checked == job.bytes_moved());
      }
    }
  }
}

TEST_CASE("one flipped bit is found where the last copy went") {
  struct Row {
    Exchange exchange;
    int device;
  };
  for (const auto memory : {HostMemory::pageable, HostMemory::pinned}) {
    for (const auto& row :
         {Row{Exchange::h2d, 0}, Row{Exchange::d2h, -1}, Row{Exchange::there_and_back, -1}}) {
      // Byte 96 is in the last word, of which only half is copied; 40 in a whole one.
      for (const std::uint64_t offset : {40, 96}) {
        const ExchangeJob job{memory, row.exchange, 100};
        const auto arrays = arrays_of(memory, 100);
        arrays.prepare(job);
        (void)arrays.run(job);
        const auto found = arrays.check(job, {{Fault::Kind::flip_bit, offset, 5, 0}});
        CHECK(found.errors == 1);
        REQUIRE(found.first_mismatch);
        CHECK(found.first_mismatch->device == row.device);
        CHECK(found.first_mismatch->offset_bytes == offset);
        CHECK((found.first_mismatch->expected ^ found.first_mismatch->found) == 1U << 5);
      }
    }
  }
}

TEST_CASE("what is not copied, too short, or too long, is found") {
  const ExchangeJob job{HostMemory::pageable, Exchange::d2h, 100};
  const auto arrays = arrays_of(HostMemory::pageable, 104);
  arrays.prepare(job);
  CHECK(arrays.check(job, {}).errors == 13);  // words, the last one of 4 B
  (void)arrays.run({HostMemory::pageable, Exchange::d2h, 96});
  CHECK(arrays.check(job, {}).errors == 1);
  (void)arrays.run({HostMemory::pageable, Exchange::d2h, 101});
  const auto found = arrays.check(job, {});
  CHECK(found.errors == 1);
  CHECK(found.first_mismatch->offset_bytes == 96);
}

TEST_CASE("both directions are verified at both ends, and ranks hold different data") {
  const ExchangeJob there_and_back{HostMemory::pageable, Exchange::there_and_back, 4096};
  const ExchangeJob h2d{HostMemory::pageable, Exchange::h2d, 4096};
  const ExchangeJob d2h{HostMemory::pageable, Exchange::d2h, 4096};
  const auto arrays = arrays_of(HostMemory::pageable, 4096);
  arrays.prepare(there_and_back);
  (void)arrays.run(h2d);
  CHECK(arrays.check(there_and_back, {}).errors == 512);  // those of the host
  arrays.prepare(d2h);
  (void)arrays.run(d2h);
  CHECK(arrays.check(there_and_back, {}).errors ==
        1024);  // the device's own data are not the host's
}

TEST_CASE("what a rank measured survives being told") {
  RankPart part;
  part.source = {"host-pageable", -1, 3, 4096};
  part.destination = {"device", 0, -1};
  part.in_memory = false;
  part.seconds = {0.25, 0.5};
  part.verification.bytes_checked = 100;
  part.verification.errors = 2;
  part.verification.first_mismatch = Verification::Mismatch{};
  part.verification.first_mismatch->device = 0;
  part.verification.first_mismatch->offset_bytes = 96;
  part.verification.first_mismatch->expected = ~0ULL;
  part.verification.first_mismatch->found = 1;
  const ExchangeJob job{HostMemory::pageable, Exchange::there_and_back, 1000};
  const auto told = nlohmann::json::parse(to_json(part).dump());
  const auto series = exchange_series(job, rank_part(told), 5, {5, 7}, false);
  CHECK(series.role == "share");
  CHECK(series.device == 5);
  CHECK(series.device_set == std::vector<int>{5, 7});
  CHECK(series.source.numa_domain == 3);
  CHECK(series.source.huge_page_bytes == 4096);
  CHECK(series.source.device == -1);
  CHECK(series.destination.device == 5);  // as the document numbers it
  CHECK(series.bytes_moved == 2000);
  CHECK(series.direction == "both-ways");
  CHECK_FALSE(series.in_memory);
  CHECK(series.seconds == part.seconds);
  CHECK(series.verification.errors == 2);
  CHECK(series.verification.first_mismatch->device == 5);
  CHECK(series.verification.first_mismatch->expected == ~0ULL);
  CHECK(exchange_series(job, part, 0, {0}, true).role == "single");
}

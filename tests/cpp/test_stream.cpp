#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "stream/device_set.hpp"

using namespace fabricheck;
using namespace fabricheck::stream;

namespace {

constexpr std::uint64_t kBytes = 16 * 1021;  // a prime number of elements: no block size divides it

SamplingRules quick() {
  SamplingRules rules;
  rules.batch_seconds = 1e-5;
  rules.series_seconds = 0;
  return rules;
}

}  // namespace

TEST_CASE("every kernel writes what it should at every block size") {
  DeviceSet set({0}, {}, {}, kBytes);
  for (const auto operation : parse_operations("copy,scale,add,triad")) {
    for (const int block : {1, 64, 100, 256, 1024}) {
      CAPTURE(operation_name(operation));
      CAPTURE(block);
      const auto stores = block < 256 ? Stores::plain : Stores::streaming;
      const auto series = set.measure({operation, kBytes, block, stores}, quick(), 0, {});
      REQUIRE(series.size() == 1);
      CHECK(series[0].verification.errors == 0);
      CHECK(series[0].verification.bytes_checked == kBytes);
      CHECK(series[0].seconds.size() >= 7);
    }
  }
}

TEST_CASE("stores are plain within a CPU's caches and tried past them, unless asked for") {
  const std::uint64_t large = 64 << 20;  // two arrays are 128 MiB
  DeviceSet set({0}, {}, {}, large);
  const auto stores_of = [&set](std::uint64_t bytes, std::optional<Stores> asked) {
    return set.measure({StreamOperation::copy, bytes, 256, asked}, quick(), 0, {})[0];
  };
  CHECK(stores_of(kBytes, {}).stores == "plain");
  CHECK(stores_of(kBytes, Stores::streaming).stores == "streaming");
  const auto automatic = stores_of(large, {});
  CHECK((automatic.stores == "plain" || (automatic.in_memory && automatic.stores == "streaming")));
}

TEST_CASE("one launch makes a batch on a GPU with arrays past its caches, else one operation") {
  const auto passes = [](StreamOperation operation, int grid, bool cpu, bool past_caches) {
    return passes_of_launch(operation, Variant{Stores::plain, false, 1, grid}, 16, cpu,
                            past_caches);
  };
  CHECK(passes(StreamOperation::copy, 0, false, true) == 16);
  CHECK(passes(StreamOperation::copy, 0, false, false) == 1);
  CHECK(passes(StreamOperation::copy, 0, true, true) == 1);
  // Passes of a grid that loops would be at work at the same time.
  CHECK(passes(StreamOperation::copy, 8, false, true) == 1);
  CHECK(passes(StreamOperation::read_only, 0, false, true) == 1);
}

TEST_CASE("a launch of several passes writes the whole array, in each of them") {
  const TimedStream stream(0);
  constexpr auto words = kBytes / sizeof(double);
  const auto from = Buffer::on_device(0, kBytes);
  const auto to = Buffer::on_device(0, kBytes);
  fill(stream, from.as<double>(), words, 1);
  for (const auto stores : {Stores::plain, Stores::streaming}) {
    poison(stream, to.as<double>(), words);
    launch(StreamOperation::copy, {stores}, stream,
           {from.as<double>(), from.as<double>(), to.as<double>(), kBytes}, 100, 3);
    CHECK(compare(stream, to.as<double>(), words, {1, 1, 0, 0}).errors == 0);
  }
}

TEST_CASE("every variant of every kernel writes what it should, whatever the grid") {
  DeviceSet set({0}, {}, {}, kBytes);
  VariantOptions options;
  options.elements = "1,2,4,8";
  options.grid = "cover,1,3";
  for (const auto operation : parse_operations("copy,scale,add,triad,read-only,write-only")) {
    for (const auto& variant : options.parse()) {
      for (const int block : {1, 100, 1024}) {
        CAPTURE(operation_name(operation));
        CAPTURE(variant.elements);
        CAPTURE(variant.grid);
        CAPTURE(block);
        const auto stores = block < 256 ? Stores::plain : Stores::streaming;
        const auto series =
            set.measure({operation, kBytes, block, stores, variant}, quick(), 0, {})[0];
        CHECK(series.verification.errors == 0);
        CHECK(series.verification.bytes_checked == kBytes);
        CHECK(series.elements == variant.elements);
        const bool loops = operation == StreamOperation::read_only || variant.grid > 0;
        CHECK((series.grid > 0) == loops);
        CHECK((variant.grid == 0 || series.grid <= std::uint64_t(variant.grid)));
      }
    }
  }
}

TEST_CASE("a kernel that only reads has to have read every element") {
  const TimedStream stream(0);
  constexpr auto words = kBytes / sizeof(double);
  const auto from = Buffer::on_device(0, kBytes);
  const auto to = Buffer::on_device(0, kBytes);
  const Variant variant{Stores::plain, false, 4, 3};
  const auto expected = expected_sums(variant, 0, kBytes, 64, 1);
  for (const std::uint64_t wrong : {std::uint64_t{0}, words / 2, words - 1}) {
    fill(stream, from.as<double>(), words, 1);
    flip_bit(stream, from.as<double>(), wrong, 51);
    poison(stream, to.as<double>(), words);
    launch(StreamOperation::read_only, variant, stream,
           {from.as<double>(), nullptr, to.as<double>(), kBytes}, 64);
    CHECK(compare(stream, to.as<double>(), expected).errors == 1);
  }
}

TEST_CASE("faults are found in what only reads and what only writes") {
  DeviceSet set({0}, {}, {}, kBytes);
  for (const auto operation : {StreamOperation::read_only, StreamOperation::write_only}) {
    const auto with = [&](const std::string& fault) {
      return set.measure({operation, kBytes, 64, {}, Variant{Stores::plain, false, 8, 2}}, quick(),
                         0, parse_faults({fault}))[0];
    };
    CHECK(with("flip-bit:800:7").verification.first_mismatch->offset_bytes == 800);
    // Two blocks of 64 threads leave a sum of 16 bytes each.
    const bool sums = operation == StreamOperation::read_only;
    CHECK(with("unwritten").verification.errors == (sums ? 2 * 64 * 2 : kBytes / 8));
  }
}

TEST_CASE("what only writes has one way to load") {
  const std::vector<Variant> both{{Stores::plain, false, 2}, {Stores::plain, true, 2}};
  CHECK(variants_of(StreamOperation::copy, both).size() == 2);
  CHECK(variants_of(StreamOperation::write_only, both).size() == 1);
  CHECK(variants_of(StreamOperation::write_only, {both[1]}).size() == 1);
}

TEST_CASE("variants that a build cannot tell apart are refused") {
  const auto parse = [](const std::string& loads, const std::string& elements,
                        const std::string& grid) {
    VariantOptions options;
    options.loads = loads;
    options.elements = elements;
    options.grid = grid;
    return options.parse();
  };
  CHECK(parse("plain", "1,8", "cover,2").size() == 4);
  CHECK_THROWS_WITH_AS((void)parse("streaming", "1", "cover"),
                       "a CPU has no streaming loads: leave --loads out", Failure);
  CHECK_THROWS_WITH_AS((void)parse("plain", "3", "cover"),
                       "a thread has 1, 2, 4 or 8 elements, and not 3", Failure);
  CHECK_THROWS_WITH_AS((void)parse("plain", "1", "0"),
                       "a launch has at least one block, and '0' says 0", Failure);
  CHECK_THROWS_AS((void)parse("fast", "1", "cover"), Failure);
}

TEST_CASE("bytes are counted as STREAM does") {
  DeviceSet set({0}, {}, {}, kBytes);
  const auto bytes_of = [&set](StreamOperation operation) {
    return set.measure({operation, kBytes, 256, {}}, quick(), 0, {})[0].bytes_moved;
  };
  CHECK(bytes_of(StreamOperation::copy) == 2 * kBytes);
  CHECK(bytes_of(StreamOperation::triad) == 3 * kBytes);
  CHECK(bytes_of(StreamOperation::read_only) == kBytes);
  CHECK(bytes_of(StreamOperation::write_only) == kBytes);
}

TEST_CASE("a set gives a share for each device and their sum") {
  DeviceSet set({1, 0}, {Placement::Kind::host, -1}, {Placement::Kind::host, -1}, kBytes);
  const auto series = set.measure({StreamOperation::copy, kBytes, 256, {}}, quick(), 0, {});
  REQUIRE(series.size() == 3);
  CHECK(series[0].role == "share");
  CHECK(series[0].device == 1);
  CHECK(series[0].experiment == "E5");
  CHECK(series[0].source.memory == "host-pinned");
  CHECK(series[2].role == "sum");
  CHECK(series[2].bytes_moved == 4 * kBytes);
  for (std::size_t i = 0; i < series[2].seconds.size(); ++i) {
    CHECK(series[2].seconds[i] >= std::max(series[0].seconds[i], series[1].seconds[i]));
  }
}

TEST_CASE("a set keeps the arrays of the devices that the one before had") {
  const Placement host{Placement::Kind::host, -1};
  auto first = std::make_unique<DeviceSet>(std::vector<int>{0, 1}, host, host, kBytes, false);
  DeviceSet second({1, 0}, host, host, kBytes, false, std::move(first));
  const auto series = second.measure({StreamCase{StreamOperation::copy, kBytes, 256, {}}}, quick(),
                                     0, parse_faults({"unwritten"}));
  REQUIRE(series.size() == 3);
  CHECK(series[0].device == 1);
  CHECK(series[1].device == 0);
  CHECK(series[0].verification.errors == kBytes / 8);  // poisoned anew, and compared
  CHECK(series[2].verification.errors == kBytes / 4);
}

TEST_CASE("arrays of a set before are kept only where they are the same") {
  const auto set = [] {
    return std::make_unique<DeviceSet>(std::vector<int>{0}, Placement{}, Placement{}, kBytes,
                                       false);
  };
  CHECK_THROWS_AS(DeviceSet({0}, {}, {}, 2 * kBytes, false, set()), std::invalid_argument);
  CHECK_THROWS_AS(DeviceSet({0}, {}, {}, kBytes, true, set()), std::invalid_argument);
}

TEST_CASE("places decide experiment and direction") {
  const auto described = [](const std::string& source, const std::string& destination) {
    DeviceSet set({0}, parse_placement(source), parse_placement(destination), kBytes);
    const auto series = set.measure({StreamOperation::copy, kBytes, 256, {}}, quick(), 0, {})[0];
    return series.experiment + " " + series.direction;
  };
  CHECK(described("device", "device") == "E1 local");
  CHECK(described("peer:1", "device") == "E8 one-way");
  CHECK(described("peer:1", "peer:1") == "E8 both-ways");
  CHECK(described("host", "device") == "E5 one-way");
}

TEST_CASE("a fault is found in the measurement it is made in") {
  DeviceSet set({0, 1}, {}, {}, kBytes);
  const auto series = set.measure({StreamOperation::add, kBytes, 256, {}}, quick(), 0,
                                  parse_faults({"flip-bit:800:7"}));
  CHECK(series[0].verification.errors == 1);
  CHECK(series[1].verification.first_mismatch->device == 1);
  CHECK(series[1].verification.first_mismatch->offset_bytes == 800);
  CHECK(series[2].verification.errors == 2);
}

TEST_CASE("words that mean nothing are refused") {
  CHECK_THROWS_AS((void)parse_operations("copy,paste"), Failure);
  CHECK_THROWS_AS((void)parse_placement("peer"), Failure);
  CHECK_THROWS_AS((void)parse_placement("peer:x"), Failure);
  CHECK_THROWS_AS(DeviceSet({0}, {Placement::Kind::peer, 0}, {}, kBytes), Failure);
}

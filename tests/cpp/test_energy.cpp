// Counters of energy on composed trees, and what a hold makes of their changes.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "fake_nvml.hpp"
#include "harness/energy.hpp"
#include "harness/sampling.hpp"
#include "harness/statistics.hpp"

using namespace fabricheck;
namespace fs = std::filesystem;

namespace {

/// A tree of files in place of /sys, which its test composes.
class Tree {
 public:
  Tree() : root_(fs::temp_directory_path() / ("fabricheck-energy-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { fs::remove_all(root_); }

  void write(const fs::path& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  /// An AMD device whose gpu_metrics of version 1.3 counts so many steps of 1/65536 J.
  void add_amd(const std::string& address, std::uint64_t steps) const {
    const auto folder = fs::path("bus/pci/devices") / address;
    write(folder / "vendor", "0x1002\n");
    std::string metrics(128, '\0');
    metrics[0] = char(128);
    metrics[2] = 1;
    metrics[3] = 3;
    for (int i = 0; i < 8; ++i) {
      metrics[24 + static_cast<std::size_t>(i)] = static_cast<char>(steps >> (8 * i) & 0xff);
    }
    write(folder / "gpu_metrics", metrics);
  }
  [[nodiscard]] EnergyCounters counters(const std::vector<std::string>& addresses,
                                        const std::string& nvml = "libno-such.so") const {
    StateScope scope;
    for (const auto& address : addresses) {
      scope.devices.push_back({static_cast<int>(scope.devices.size()), address});
    }
    return energy_counters({root_.string(), "/proc", nvml}, scope);
  }

 private:
  fs::path root_;
};

/// The changes of a counter that follows a load from 2 s to 12 s of a hold of 14 s.
struct Course {
  double idle_w = 100;
  double loaded_w = 500;
  double step_s = 0.1;
  double delay_s = 0;

  [[nodiscard]] double joules(double at) const {
    const double from = 2 + delay_s;
    const double loaded = std::min(std::max(at - from, 0.0), 10.0);
    return idle_w * at + (loaded_w - idle_w) * loaded;
  }
  [[nodiscard]] std::vector<EnergyTick> ticks() const {
    std::vector<EnergyTick> ticks;
    for (double at = 0.03; at < 14; at += step_s) {
      ticks.push_back({at, joules(at)});
    }
    return ticks;
  }
};
constexpr HoldTimes kTimes{0, 2, 12, 14};

}  // namespace

TEST_CASE("the driver's unit of an AMD device is 1/65536 J, also beyond 32 bits") {
  Tree tree;
  tree.add_amd("0000:c1:00.0", 65536ULL * 1000000);
  const auto found = tree.counters({"0000:c1:00.0"});
  REQUIRE(found.counters.size() == 1);
  CHECK(found.counters[0].kind == "device");
  CHECK(found.counters[0].joules().value() == doctest::Approx(1000000));
  CHECK(found.problems.empty());
}

TEST_CASE("the die that counts counts for its package, and the other one is no problem") {
  Tree tree;
  tree.add_amd("0000:c1:00.0", 65536);
  tree.add_amd("0000:c6:00.0", 0);
  tree.add_amd("0000:c9:00.0", 65536);
  tree.add_amd("0000:ce:00.0", 0);
  // In the order of HIP, which may differ from that of the addresses.
  const auto found =
      tree.counters({"0000:c9:00.0", "0000:ce:00.0", "0000:c1:00.0", "0000:c6:00.0"});
  REQUIRE(found.counters.size() == 2);
  CHECK(found.problems.empty());
  CHECK(found.counters[0].kind == "package");
  CHECK(found.counters[0].devices == std::vector<int>{2, 3});
  CHECK(found.counters[1].devices == std::vector<int>{0, 1});
}

TEST_CASE("a die whose package is not known has no counter, and says why") {
  Tree tree;
  tree.add_amd("0000:c1:00.0", 65536);
  tree.add_amd("0000:c6:00.0", 0);
  tree.add_amd("0000:ce:00.0", 0);
  const auto found = tree.counters({"0000:c1:00.0", "0000:c6:00.0", "0000:ce:00.0"});
  REQUIRE(found.counters.size() == 1);
  CHECK(found.counters[0].kind == "device");
  CHECK(found.problems.size() == 2);
}

TEST_CASE("Cray's counters are of accelerators and of the node, not of devices by number") {
  Tree tree;
  tree.add_amd("0000:c1:00.0", 65536);
  tree.write("cray/pm_counters/accel0_energy", "123456 J 1700000000123456 us\n");
  tree.write("cray/pm_counters/accel0_power", "90 W 1700000000123456 us\n");
  tree.write("cray/pm_counters/cpu_energy", "5 J 1700000000123456 us\n");
  tree.write("cray/pm_counters/energy", "9876543 J 1700000000123456 us\n");
  tree.write("cray/pm_counters/accel1_energy", "7 W 1700000000123456 us\n");  // another unit
  const auto found = tree.counters({"0000:c1:00.0"});
  REQUIRE(found.counters.size() == 3);
  CHECK(found.counters[1].kind == "accelerator");
  CHECK(found.counters[1].name == "accel0");
  CHECK(found.counters[1].devices.empty());
  CHECK(found.counters[1].joules().value() == 123456);
  CHECK(found.counters[2].kind == "node");
  CHECK(found.counters[2].joules().value() == 9876543);
}

TEST_CASE("NVML counts millijoules, and its reason is told where it does not") {
  const auto* library = FABRICHECK_TEST_NVML;
  void* handle = dlopen(library, RTLD_NOW);
  REQUIRE(handle != nullptr);
  auto* fake = reinterpret_cast<FakeNvmlFunction>(dlsym(handle, "fake_nvml"))();
  *fake = {};
  Tree tree;
  tree.write("bus/pci/devices/0000:00:06.0/vendor", "0x10de\n");
  CHECK(tree.counters({"0000:00:06.0"}, library).counters.empty());
  CHECK(tree.counters({"0000:00:06.0"}, library).problems.size() == 1);
  fake->fields[83] = 5000000000000ULL;
  const auto found = tree.counters({"0000:00:06.0"}, library);
  REQUIRE(found.counters.size() == 1);
  CHECK(found.counters[0].joules().value() == doctest::Approx(5e9));
  *fake = {};
  dlclose(handle);
}

TEST_CASE("a hold gives watts of its load, idle power, the step and the delay") {
  Course course;
  course.delay_s = 0.15;
  const auto counted = counted_energy(course.ticks(), kTimes);
  CHECK(counted.why.empty());
  CHECK(counted.watts.size() >= 7);
  for (const double watts : counted.watts) {
    CHECK(watts == doctest::Approx(500));
  }
  CHECK(*counted.idle_before_w == doctest::Approx(100));
  CHECK(*counted.step_s == doctest::Approx(0.1));
  CHECK(*counted.delay_s == doctest::Approx(0.15).epsilon(0.02));
}

TEST_CASE("watts are of the time after a long delay, which the first half second would lower") {
  Course course;
  course.delay_s = 0.6;
  for (const double watts : counted_energy(course.ticks(), kTimes).watts) {
    CHECK(watts == doctest::Approx(500));
  }
}

TEST_CASE("a load that idle power hides has watts and no delay") {
  Course course;
  course.loaded_w = 105;
  const auto counted = counted_energy(course.ticks(), kTimes);
  CHECK(median(counted.watts) == doctest::Approx(105));
  CHECK(!counted.delay_s);
}

TEST_CASE("a counter that is too slow, stands or goes back has no watts, and says why") {
  Course slow;
  slow.step_s = 0.5;
  const auto of_slow = counted_energy(slow.ticks(), kTimes);
  CHECK(of_slow.watts.empty());
  CHECK(of_slow.why.find("19 times") != std::string::npos);
  CHECK(counted_energy({}, kTimes).why == "the counter did not move");
  auto reset = Course{}.ticks();
  for (std::size_t i = 60; i < reset.size(); ++i) {
    reset[i].joules -= reset[60].joules;
  }
  const auto of_reset = counted_energy(reset, kTimes);
  CHECK(of_reset.watts.empty());
  CHECK(of_reset.why == "the counter went back");
  CHECK(!of_reset.idle_before_w);
}

TEST_CASE("a hold lasts as long as the step of its counter needs") {
  // A counter of 300 W that changes every 10 ms.
  const EnergyCounter counter{"device", "0000:00:06.0", {3}, "test", [] {
                                return std::optional(std::floor(wall_seconds() * 100) * 3);
                              }};
  EnergyMeter meter({counter}, [] { return nlohmann::json::array(); }, 0.7);
  const auto held = meter.hold(0.1, [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return EnergyMeter::Repeated{5, 0.02};
  });
  CHECK(held.seconds >= 1);
  CHECK(held.counters.at(0).counted.watts.size() >= 7);
  CHECK(median(held.counters.at(0).counted.watts) == doctest::Approx(300).epsilon(0.1));
  const auto json = energy_json(held, 1000, {3});
  CHECK(json["bytes"] == held.operations * 1000);
  CHECK(json["counters"][0]["works"] == true);
  CHECK(energy_json(held, 1000, {2, -1})["counters"][0]["works"] == false);
}

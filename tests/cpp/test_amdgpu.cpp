// The reader of AMD's devices, on the trees of tests/outputs/state: each has an ORIGIN.md.
#include <doctest/doctest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/amdgpu.hpp"
#include "harness/gpu_metrics.hpp"
#include "harness/state.hpp"

using namespace fabricheck;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const fs::path kStates = FABRICHECK_TEST_STATES;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

/// A copy of a tree, which a test may change.
class Tree {
 public:
  explicit Tree(const char* machine)
      : root_(fs::temp_directory_path() / ("fabricheck-amd-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::copy(kStates / machine, root_, fs::copy_options::recursive);
    fs::create_directories(root_ / "proc/self/ns");
    fs::create_symlink("pid:[4026531836]", root_ / "proc/self/ns/pid");
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { fs::remove_all(root_); }

  [[nodiscard]] fs::path device(const std::string& address) const {
    return root_ / "sys/bus/pci/devices" / address;
  }
  [[nodiscard]] const fs::path& root() const { return root_; }
  [[nodiscard]] NodeState state() const {
    return NodeState({(root_ / "sys").string(), (root_ / "proc").string(), "libno-such.so"});
  }
  [[nodiscard]] static StateScope scope(const std::vector<std::string>& addresses) {
    StateScope scope;
    for (const auto& address : addresses) {
      scope.devices.push_back({static_cast<int>(scope.devices.size()), address});
    }
    return scope;
  }
  [[nodiscard]] json before(const std::vector<std::string>& addresses) const {
    return state().before(scope(addresses));
  }

 private:
  fs::path root_;
};

std::string reason(const json& snapshot, const std::string& item) {
  for (const auto& entry : snapshot["absent"]) {
    if (entry["item"] == item) {
      return entry["why"];
    }
  }
  return "";
}

GpuMetrics metrics_of(const std::string& file) {
  const auto metrics =
      gpu_metrics(file_bytes((kStates / "gpu_metrics_versions" / file).string()).value_or(""));
  REQUIRE(metrics);
  return *metrics;
}

std::string metrics_file(const std::string& file) {
  return file_bytes((kStates / "gpu_metrics_versions" / file).string()).value();
}

}  // namespace

TEST_CASE("the highest level of a clock is found, whether one is marked or not") {
  CHECK(highest_clock_mhz("0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz\n") == 1700);
  CHECK(highest_clock_mhz("S: 131Mhz *\n0: 500Mhz\n1: 2100Mhz\n") == 2100);
  CHECK(highest_clock_mhz("S: 19Mhz *\n") == std::nullopt);
  CHECK(highest_clock_mhz("unavailable") == std::nullopt);
  CHECK(highest_clock_mhz("") == std::nullopt);
}

TEST_CASE("power is read in microwatts") {
  CHECK(watts_of("560000000\n") == doctest::Approx(560));
  CHECK(watts_of("0\n") == std::nullopt);
  CHECK(watts_of("") == std::nullopt);
  CHECK(watts_of("n/a") == std::nullopt);
}

TEST_CASE("gpu_metrics is read in each of its layouts") {
  const auto mi250 = metrics_of("v1_3_mi250.bin");
  CHECK(mi250.version == "1.3");
  CHECK(mi250.value("energy_accumulator") == 62929744071539);
  CHECK(mi250.value("pcie_link_width") == 16);
  CHECK(mi250.value("pcie_link_speed") == 160);
  CHECK(mi250.value("indep_throttle_status") == 0);
  for (const std::string version : {"4", "5", "6", "7", "8", "9"}) {
    const auto metrics = metrics_of("v1_" + version + "_mi300x.bin");
    INFO(version);
    CHECK(metrics.version == "1." + version);
    CHECK(metrics.value("energy_accumulator") == 15182700000);
    CHECK(metrics.value("pcie_link_width") == 16);
    CHECK(metrics.value("pcie_link_speed") == 320);
    CHECK(metrics.value("xgmi_link_width") == 16);
    CHECK(metrics.value("xgmi_link_speed") == 32);
    CHECK_FALSE(metrics.value("indep_throttle_status"));
    const bool counts = version >= "6";
    CHECK(metrics.value("accumulation_counter") ==
          (counts ? std::optional(3808991) : std::nullopt));
    CHECK(metrics.value("ppt_residency_acc") == (counts ? std::optional(585613) : std::nullopt));
    CHECK(metrics.value("socket_thm_residency_acc") ==
          (counts ? std::optional(2190) : std::nullopt));
    CHECK(metrics.value("hbm_thm_residency_acc") == (counts ? std::optional(0) : std::nullopt));
    const auto links = metrics.values.find("xgmi_link_status");
    REQUIRE((links != metrics.values.end()) == (version >= "7"));
    if (version >= "7") {
      CHECK(links->second == std::vector<std::uint64_t>{0, 1, 1, 1, 1, 1, 1, 1});
    }
  }
  CHECK_FALSE(metrics_of("v1_6_mi300a_no_pcie.bin").value("pcie_link_width"));
}

TEST_CASE("gpu_metrics that is cut, or of a layout that is not known, is not read") {
  for (const auto* file : {"v1_3_mi250.bin", "v1_8_mi300x.bin", "v1_9_mi300x.bin"}) {
    auto bytes = metrics_file(file);
    CHECK(gpu_metrics(bytes + std::string(100, '\0')));
    for (const std::size_t size : {std::size_t{0}, std::size_t{7}, bytes.size() - 1}) {
      CHECK_FALSE(gpu_metrics(bytes.substr(0, size)));
    }
    bytes[3] = 10;
    CHECK_FALSE(gpu_metrics(bytes));
    bytes[2] = 2;
    CHECK_FALSE(gpu_metrics(bytes));
  }
  auto bytes = metrics_file("v1_3_mi250.bin");
  bytes[0] = 64;  // it states less than the layout has
  CHECK_FALSE(gpu_metrics(bytes));
  bytes = metrics_file("v1_9_mi300x.bin");
  bytes[4] = static_cast<char>(bytes[4] + 1);  // one record more than there is
  CHECK_FALSE(gpu_metrics(bytes));
  bytes = metrics_file("v1_9_mi300x.bin");
  const auto records = static_cast<unsigned char>(bytes[4]);
  REQUIRE(records > 1);
  bytes[4] = 1;  // a record of more values than there are
  bytes[8] = '\xff';
  bytes[9] = static_cast<char>(bytes[9] | 3);
  CHECK_FALSE(gpu_metrics(bytes));
}

TEST_CASE("bits of throttling become words") {
  const auto bit = [](unsigned number) { return std::uint64_t{1} << number; };
  CHECK(amd_throttle_words(0) == json::array());
  CHECK(amd_throttle_words(bit(0) | bit(34)) == json{"power", "thermal"});
  CHECK(amd_throttle_words(bit(7)) == json{"power"});
  CHECK(amd_throttle_words(bit(36)) == json{"thermal"});
  CHECK(amd_throttle_words(bit(42)) == json{"thermal"});
  for (const unsigned hardware : {16U, 23U, 38U, 41U, 44U, 47U}) {
    CHECK(amd_throttle_words(bit(hardware)) == json{"hardware"});
  }
  CHECK(amd_throttle_words(bit(56)) == json{"other"});
  CHECK(amd_throttle_words(bit(63)) == json{"other"});
}

TEST_CASE("dies of an MI250X: power is of the first, memory errors are not counted by the driver") {
  const Tree tree("mi250x_cray_load");
  const auto snapshot = tree.before({"0000:c1:00.0", "0000:C6:00.0"});
  const auto& first = snapshot["devices"][0];
  CHECK(first["clock_mhz"] == 1700);
  CHECK(first["clock_max_mhz"] == 1700);
  CHECK(first["memory_clock_mhz"] == 1600);
  CHECK(first["memory_clock_max_mhz"] == 1600);
  CHECK(first["temperature_c"] == 61);
  CHECK(first["memory_temperature_c"] == 65);
  CHECK(first["power_w"] == 144);
  CHECK(first["power_cap_w"] == 560);
  CHECK(first["power_cap_default_w"] == 560);
  CHECK(first["busy_percent"] == 100);
  CHECK(first["throttle"] == json::array());
  CHECK(first["vbios"] == "113-D65201-046");
  CHECK(first["firmware"]["smc"] == "0x00443600");
  CHECK_FALSE(first["firmware"].contains("asd"));  // it is 0: there is none
  CHECK(first["pcie"] == json{{"width", 16},
                              {"width_max", 16},
                              {"width_max_port", nullptr},
                              {"gt_per_s", 16.0},
                              {"gt_per_s_max", 16.0},
                              {"replays", 0}});
  CHECK(first["memory_errors"] == json{{"corrected", 0}, {"uncorrected", 0}});
  CHECK(reason(snapshot, "devices.memory_errors") ==
        "no ras/umc_err_count: those of its memory are not known");
  const auto& second = snapshot["devices"][1];
  CHECK(second["power_cap_w"].is_null());
  CHECK(second["energy_j"].is_null());
  CHECK(second["temperature_c"] == 55);
  CHECK(reason(snapshot, "devices.power_cap_w") ==
        "device 1: power1_cap is '0': the second die of a package has none of its own");
  CHECK(reason(snapshot, "devices.links") ==
        "gpu_metrics 1.3 does not tell the state of xGMI links");
  CHECK(reason(snapshot, "devices.processes").find("KFD") != std::string::npos);
  CHECK(reason(snapshot, "devices.compute_partition") == "the driver does not tell it");
  CHECK(snapshot["opening_seconds"].is_null());
  CHECK(snapshot["sources"]["devices.temperature_c"] == "temp2_input (junction)");
  CHECK(snapshot["sources"]["devices.throttle"] == "gpu_metrics 1.3");

  fs::copy_file(kStates / "mi250x_throttled/gpu_metrics",
                tree.device("0000:c1:00.0") / "gpu_metrics", fs::copy_options::overwrite_existing);
  CHECK(tree.before({"0000:c1:00.0"})["devices"][0]["throttle"] == json{"power", "thermal"});
}

TEST_CASE("a link that the package has narrowed, and processes by those that use the device") {
  const Tree tree("mi250_rocm6");
  const auto snapshot = tree.before({"0000:29:00.0"});
  const auto& device = snapshot["devices"][0];
  CHECK(device["pcie"] == json{{"width", 8},
                               {"width_max", 16},
                               {"width_max_port", nullptr},
                               {"width_max_port", nullptr},
                               {"gt_per_s", 2.5},
                               {"gt_per_s_max", 16.0},
                               {"replays", 3824}});
  CHECK(snapshot["sources"]["devices.pcie.width"] == "gpu_metrics 1.3");
  CHECK(device["energy_j"].get<double>() == doctest::Approx(279426720261621.0 / 65536));
  CHECK(reason(snapshot, "devices.memory_errors").empty());
  // The other one has the driver open, and uses no device.
  REQUIRE(device["processes"].size() == 1);
  CHECK(device["processes"][0]["pid"] == 2254756);
  CHECK(device["processes"][0]["command"] == "work");
  CHECK(device["processes"][0]["memory_bytes"] == 209715200);
  write(tree.device("0000:29:00.0") / "ras/umc_err_count", "ue: 2\nce: 31\nde: 5\n");
  write(tree.device("0000:29:00.0") / "ras/sdma_err_count", "ue: 1\nce: 4\n");
  CHECK(tree.before({"0000:29:00.0"})["devices"][0]["memory_errors"] ==
        json{{"corrected", 35}, {"uncorrected", 3}});
  write(tree.device("0000:29:00.0") / "ras/umc_err_count", "Query currently inaccessible\n");
  CHECK(reason(tree.before({"0000:29:00.0"}), "devices.memory_errors") ==
        "ras/umc_err_count is 'Query currently inaccessible'");
}

TEST_CASE("the driver's RAS blocks are listed: links by themselves, all others with the memory") {
  // Behind PCIe the driver has a file for each block; xgmi_wafl only where devices are joined.
  const Tree tree("mi250_rocm6");
  const auto ras = tree.device("0000:29:00.0") / "ras";
  write(ras / "xgmi_wafl_err_count", "ue: 1\nce: 0\n");
  write(ras / "pcie_bif_err_count", "ue: 0\nce: 6\n");
  write(ras / "mca_mpio_err_count", "ue: 2\nce: 9\n");
  write(ras / "gpu_vram_bad_pages", "0x00000001 : 0x00001000 : R\n");
  const auto snapshot = tree.before({"0000:29:00.0"});
  const auto& device = snapshot["devices"][0];
  CHECK(device["link_errors"] == json{{"bif-corrected", {{"all", 6}}},
                                      {"bif-uncorrected", json::object()},
                                      {"xgmi-corrected", json::object()},
                                      {"xgmi-uncorrected", {{"all", 1}}}});
  CHECK(snapshot["sources"]["devices.link_errors"] ==
        "ras/pcie_bif_err_count, ras/xgmi_wafl_err_count");
  CHECK(device["memory_errors"] == json{{"corrected", 9}, {"uncorrected", 2}});
  CHECK(reason(snapshot, "devices.link_errors.xgmi-corrected").empty());
  write(ras / "xgmi_wafl_err_count", "Query currently inaccessible\n");
  const auto later = tree.before({"0000:29:00.0"});
  CHECK(later["devices"][0]["link_errors"].count("xgmi-uncorrected") == 0);
  CHECK(reason(later, "devices.link_errors.xgmi-corrected") ==
        "ras/xgmi_wafl_err_count is 'Query currently inaccessible'");
  // As with EINVAL, that a driver answers: nothing can be read.
  fs::remove(ras / "xgmi_wafl_err_count");
  fs::create_directory(ras / "xgmi_wafl_err_count");
  CHECK(reason(tree.before({"0000:29:00.0"}), "devices.link_errors.xgmi-corrected") ==
        "ras/xgmi_wafl_err_count cannot be read");
}

TEST_CASE("AER's counters of the device are of its link to the host") {
  const Tree tree("mi250x_cray_load");
  const auto folder = tree.device("0000:c1:00.0");
  const auto none = tree.before({"0000:c1:00.0"});
  CHECK(none["devices"][0]["link_errors"].is_null());
  CHECK(reason(none, "devices.link_errors.aer-fatal") ==
        "no TOTAL_ERR_FATAL in aer_dev_fatal of the device in /sys");
  CHECK(reason(none, "devices.link_errors.xgmi-corrected").rfind("no ras/xgmi_wafl_err_count", 0) ==
        0);
  write(folder / "aer_dev_correctable", "RxErr 3\nBadTLP 1\nTOTAL_ERR_COR 4\n");
  write(folder / "aer_dev_nonfatal", "Undefined 0\nTOTAL_ERR_NONFATAL 0\n");
  write(folder / "aer_dev_fatal", "TLP 1\nTOTAL_ERR_FATAL 1\n");
  const auto told = tree.before({"0000:c1:00.0"});
  CHECK(told["devices"][0]["link_errors"] == json{{"aer-corrected", {{"all", 4}}},
                                                  {"aer-fatal", {{"all", 1}}},
                                                  {"aer-nonfatal", json::object()}});
}

TEST_CASE("an MI355X of a driver that has both files of a block counts it once") {
  const Tree tree("mi355x_aca");
  const auto snapshot = tree.before({"0000:75:00.0"});
  const auto& device = snapshot["devices"][0];
  CHECK(device["link_errors"] ==
        json{{"xgmi-corrected", {{"all", 2}}}, {"xgmi-uncorrected", json::object()}});
  CHECK(device["memory_errors"] == json{{"corrected", 0}, {"uncorrected", 0}});
  CHECK(snapshot["sources"]["devices.link_errors"] == "ras/xgmi_wafl_err_count");
}

TEST_CASE("an MI300X of a new driver: deep sleep, links, partitions") {
  const Tree tree("mi300x_xe9680");
  const auto snapshot = tree.before({"0000:1b:00.0"});
  const auto& device = snapshot["devices"][0];
  CHECK(device["clock_mhz"] == 131);
  CHECK(device["clock_max_mhz"] == 2100);
  CHECK(device["memory_clock_max_mhz"] == 1300);
  CHECK(device["temperature_c"] == 39);
  CHECK(device["memory_temperature_c"] == 32);
  CHECK(device["power_w"] == 191);
  CHECK(device["power_cap_w"] == 750);
  CHECK(device["compute_partition"] == "SPX");
  CHECK(device["memory_partition"] == "NPS1");
  CHECK(device["ecc"] == true);
  CHECK(device["memory_errors"] == json{{"corrected", 0}, {"uncorrected", 0}});
  CHECK(snapshot["sources"]["devices.memory_errors.corrected"] ==
        "ras/aca_gfx, ras/aca_mmhub, ras/aca_sdma, ras/aca_umc");
  CHECK(device["link_errors"] ==
        json{{"xgmi-corrected", json::object()}, {"xgmi-uncorrected", json::object()}});
  CHECK(device["links"] == json{{"number", 8}, {"down", {0}}, {"width", 16}, {"gb_per_s", 64.0}});
  CHECK(device["throttle"].is_null());
  CHECK(reason(snapshot, "devices.throttle") == "gpu_metrics 1.8 does not tell it");
  CHECK(device["throttled_s"] == json{{"power", 0.0}, {"thermal", 0.0}, {"hardware", 0.0}});
  CHECK(device["processes"][0]["pid"] == 1168514);
  // The highest clock of the device, which a lowered level does not change.
  std::ofstream(tree.root() / "sys/class/kfd/kfd/topology/nodes/2/properties", std::ios::app)
      << "max_engine_clk_fcompute 2150\n";
  CHECK(tree.before({"0000:1b:00.0"})["devices"][0]["clock_max_mhz"] == 2150);
  write(tree.device("0000:1b:00.0") / "gpu_metrics", metrics_file("v1_8_mi300x_link_down.bin"));
  const auto down = tree.before({"0000:1b:00.0"})["devices"][0];
  CHECK(down["links"]["down"] == json{0, 3});
  CHECK(down["pcie"]["width"] == 8);
}

TEST_CASE("cycles of throttling become seconds between two snapshots") {
  const Tree tree("mi300x_xe9680");
  const auto place = tree.device("0000:1b:00.0") / "gpu_metrics";
  write(place, metrics_file("v1_6_mi300x.bin"));
  auto state = tree.state();
  const auto before = state.before(Tree::scope({"0000:1b:00.0"}));
  CHECK(before["devices"][0]["throttled_s"]["power"] == 0.0);
  write(place, metrics_file("v1_6_mi300x_later.bin"));
  usleep(100000);
  const auto after = state.after();
  const auto& throttled = after["devices"][0]["throttled_s"];
  // A quarter of the cycles, in a time that is longer than the pause and than no test takes.
  CHECK(throttled["power"].get<double>() > 0.25 * 0.1);
  CHECK(throttled["power"].get<double>() < 0.25 * 60);
  CHECK(throttled["thermal"] == 0.0);
  CHECK(throttled["hardware"] == 0.0);
  CHECK(after["sources"]["devices.throttled_s.power"] ==
        "gpu_metrics 1.6, from the snapshot before on");
  auto again = tree.state();
  (void)again.before(Tree::scope({"0000:1b:00.0"}));
  write(place, metrics_file("v1_6_mi300x.bin"));
  CHECK(reason(again.after(), "devices.throttled_s") == "gpu_metrics 1.6 did not go on counting");
  // Another process has no snapshot before.
  const auto afterwards = tree.state().afterwards(Tree::scope({"0000:1b:00.0"}));
  CHECK(afterwards["devices"][0]["throttled_s"].is_null());
}

TEST_CASE("cycles of throttling during a load alone become seconds") {
  const Tree tree("mi300x_xe9680");
  const auto place = tree.device("0000:1b:00.0") / "gpu_metrics";
  auto state = tree.state();
  (void)state.before(Tree::scope({"0000:1b:00.0"}));
  write(place, metrics_file("v1_6_mi300x.bin"));
  usleep(200000);
  state.begin_throttling();
  write(place, metrics_file("v1_6_mi300x_later.bin"));
  usleep(100000);
  const auto throttled = state.throttled();
  CHECK(throttled[0]["index"] == 0);
  // A quarter of the cycles in the load, without the time before it.
  CHECK(throttled[0]["throttled_s"]["power"].get<double>() > 0.25 * 0.1);
  CHECK(throttled[0]["throttled_s"]["power"].get<double>() < 0.25 * 60);
  CHECK(throttled[0]["throttled_s"]["thermal"] == 0.0);
}

TEST_CASE("seconds of counters are those between two readings") {
  const json first{{"power", 2.0}, {"thermal", 5.0}, {"hardware", nullptr}};
  const json last{{"power", 3.5}, {"thermal", 1.0}, {"hardware", 1.0}};
  CHECK(seconds_between(first, last) ==
        json{{"power", 1.5}, {"thermal", nullptr}, {"hardware", nullptr}});
  CHECK(seconds_between(nullptr, last).is_null());
}

TEST_CASE("an MI300X of an older driver, and a Radeon with a real gpu_metrics") {
  const Tree older("mi300x_kernel_6_8");
  const auto snapshot = older.before({"0000:1b:00.0"});
  CHECK(snapshot["devices"][0]["clock_mhz"] == 2105);
  CHECK(snapshot["devices"][0]["throttled_s"].is_null());
  CHECK(reason(snapshot, "devices.throttle") == "gpu_metrics 1.5 does not tell it");
  CHECK(snapshot["sources"]["devices.memory_errors.corrected"] ==
        "ras/gfx_err_count, ras/mmhub_err_count, ras/sdma_err_count, ras/umc_err_count");
  const Tree radeon("rx6900xt");
  const auto real = radeon.before({"0000:2d:00.0"});
  CHECK(real["devices"][0]["throttle"] == json::array());
  CHECK(real["devices"][0]["power_w"] == 36);
  CHECK(real["devices"][0]["pcie"]["gt_per_s"] == 16.0);
  CHECK(real["devices"][0]["memory_errors"].is_null());
  for (const auto& item : real["devices"][0].items()) {
    const auto& name = item.key();
    const auto parts = name == "memory_errors" || name == "throttled_s";
    const auto told = !item.value().is_null() || !reason(real, "devices." + name).empty();
    CHECK_MESSAGE((told || parts), name);
  }
}

TEST_CASE("partitions are of one device, and processes of any of them use it") {
  const Tree tree("mi300x_xe9680");
  const auto nodes = tree.root() / "sys/class/kfd/kfd/topology/nodes";
  // As older drivers number partitions, in the low bits, and newer ones, in the high bits.
  write(nodes / "3/properties", "simd_count 152\nlocation_id 6913\ndomain 0\n");
  write(nodes / "3/gpu_id", "501\n");
  write(nodes / "4/properties", "simd_count 152\nlocation_id 536877824\ndomain 0\n");
  write(nodes / "4/gpu_id", "502\n");
  write(nodes / "5/properties", "simd_count 152\nlocation_id 7168\ndomain 0\n");
  write(nodes / "5/gpu_id", "503\n");
  const auto all = tree.root() / "sys/class/kfd/kfd/proc";
  write(all / "71/vram_501", "1\n");
  write(all / "72/vram_502", "2\n");
  write(all / "73/vram_503", "3\n");
  write(all / "74/vram_501", "0\n");
  write(all / "74/queues/0/gpuid", "501");
  const auto snapshot = tree.before({"0000:1b:00.0"});
  std::set<int> pids;
  for (const auto& process : snapshot["devices"][0]["processes"]) {
    pids.insert(process["pid"].get<int>());
  }
  CHECK(pids == std::set<int>{71, 72, 74, 1168514});
}

TEST_CASE("in a container those that had the driver open before are others, for certain") {
  const Tree tree("mi250_rocm6");
  fs::remove(tree.root() / "proc/self/ns/pid");
  fs::create_symlink("pid:[4026532417]", tree.root() / "proc/self/ns/pid");
  auto state = tree.state();
  // This run opens the driver now, under the number that the host gives it.
  write(tree.root() / "sys/class/kfd/kfd/proc/999/vram_64146", "4096\n");
  const auto snapshot = state.before(Tree::scope({"0000:29:00.0"}));
  REQUIRE(snapshot["devices"][0]["processes"].size() == 1);
  const auto& process = snapshot["devices"][0]["processes"][0];
  CHECK(process["pid"] == 2254756);
  CHECK(process["command"].is_null());  // a process of that number here is another one
  CHECK(reason(snapshot, "devices.processes").rfind("1 process(es)", 0) == 0);
  // Of a launch it may be a rank, whose MPI opened the driver.
  auto ranks = tree.state();
  auto scope = Tree::scope({"0000:29:00.0"});
  scope.alone = false;
  CHECK(ranks.before(scope)["devices"][0]["processes"].is_null());
}

TEST_CASE("what reading resets, or disturbs, is not opened") {
  const Tree tree("mi300x_xe9680");
  const auto folder = tree.device("0000:1b:00.0");
  const int watch = inotify_init1(IN_NONBLOCK);
  for (const auto* name : {"xgmi_error", "pcie_bw"}) {
    write(folder / name, "0\n");
  }
  REQUIRE(inotify_add_watch(watch, folder.c_str(), IN_OPEN) >= 0);
  (void)tree.before({"0000:1b:00.0"});
  std::set<std::string> opened;
  alignas(inotify_event) std::array<char, 1 << 16> events{};
  for (ssize_t got = 0; (got = read(watch, events.data(), events.size())) > 0;) {
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
      opened.insert(event->len > 0 ? event->name : "");
      at += static_cast<ssize_t>(sizeof *event + event->len);
    }
  }
  (void)close(watch);
  CHECK(opened.count("gpu_metrics") == 1);  // the watch sees what is opened
  CHECK(opened.count("xgmi_error") == 0);
  CHECK(opened.count("pcie_bw") == 0);
}

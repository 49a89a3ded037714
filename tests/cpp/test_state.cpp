#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "fake_nvml.hpp"
#include "harness/host_load.hpp"
#include "harness/nvml.hpp"
#include "harness/pci.hpp"
#include "harness/state.hpp"

using namespace fabricheck;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char* kAddress = "0000:00:06.0";

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string stat_line(int pid, const std::string& command, int parent, int user, int system,
                      int ended = 0, int started = 100) {
  return std::to_string(pid) + " (" + command + ") S " + std::to_string(parent) +
         " 1 1 0 -1 4194560 1 2 3 4 " + std::to_string(user) + " " + std::to_string(system) + " " +
         std::to_string(ended) + " 0 20 0 1 0 " + std::to_string(started) + " 1000 200\n";
}

/// A machine of files: one NVIDIA device, the process 10 with its child 11, and process 20.
class Machine {
 public:
  Machine() : root_(fs::temp_directory_path() / ("fabricheck-state-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    const auto device = root_ / "sys/bus/pci/devices" / kAddress;
    write(device / "vendor", "0x10de\n");
    write(device / "current_link_speed", "16.0 GT/s PCIe\n");
    write(device / "max_link_speed", "32.0 GT/s PCIe\n");
    write(device / "current_link_width", "8\n");
    write(device / "max_link_width", "16\n");
    const auto system = root_ / "sys/devices/system";
    write(system / "cpu/online", "0-3,8\n");
    write(system / "cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    write(system / "cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
    write(system / "node/node0/meminfo", "Node 0 MemFree:        1024 kB\n");
    write(root_ / "proc/loadavg", "1.64 0.78 0.31 2/339 1387\n");
    write(root_ / "proc/meminfo",
          "MemTotal: 7302640 kB\nHugePages_Total: 12\nHugePages_Free: 7\nHugepagesize: 2048 kB\n");
    processes(0, 0);
    in_namespace("pid:[4026531836]");
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() { fs::remove_all(root_); }

  /// So many ticks of all cores, of which process 20 had so many.
  void processes(int all, int of_other) const {
    write(root_ / "proc/stat", "cpu  " + std::to_string(1000 + all) + " 0 0 5000 9 0 0 0 7 0\n");
    write(root_ / "proc/1/stat", stat_line(1, "init", 0, 5, 5));
    write(root_ / "proc/10/stat", stat_line(10, "stream", 1, 100, 50));
    write(root_ / "proc/11/stat", stat_line(11, "child of (it)", 10, 7, 0));
    write(root_ / "proc/20/stat", stat_line(20, "greedy", 1, 400 + of_other, 0));
    write(root_ / "proc/20/comm", "greedy\n");
  }
  void in_namespace(const std::string& name) const {
    const auto link = root_ / "proc/self/ns/pid";
    fs::create_directories(link.parent_path());
    fs::remove(link);
    fs::create_symlink(name, link);
  }
  [[nodiscard]] StateRoots roots(const char* nvml = FABRICHECK_TEST_NVML) const {
    return {(root_ / "sys").string(), (root_ / "proc").string(), nvml};
  }
  [[nodiscard]] static StateScope scope() { return {{{0, kAddress}}, {}, {0, 1}, {10}, true}; }
  [[nodiscard]] const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

/// The library that takes the place of NVIDIA's, with nothing set.
FakeNvml& fake() {
  static void* library = dlopen(FABRICHECK_TEST_NVML, RTLD_NOW);
  auto* function = reinterpret_cast<FakeNvmlFunction>(dlsym(library, "fake_nvml"));
  *function() = FakeNvml{};
  return *function();
}

std::string reason(const json& snapshot, const std::string& item) {
  for (const auto& entry : snapshot["absent"]) {
    if (entry["item"] == item) {
      return entry["why"];
    }
  }
  return "";
}

}  // namespace

TEST_CASE("cores are busy in user, nice, system and interrupts, with guests counted once") {
  const auto times = core_times("cpu  10 20 30 1000 500 4 6 50 10 20\ncpu0 1 2 3 4\n");
  REQUIRE(times);
  CHECK(times->busy == 70);
  CHECK(times->stolen == 50);
  CHECK_FALSE(core_times("intr 1 2 3"));
  CHECK_FALSE(core_times(""));
}

TEST_CASE("a process is read from its line, whatever its command is called") {
  const auto process = process_time(stat_line(42, "a) S (b", 7, 30, 12, 9, 88));
  REQUIRE(process);
  CHECK(process->pid == 42);
  CHECK(process->command == "a) S (b");
  CHECK(process->parent == 7);
  CHECK(process->ticks == 42);
  CHECK(process->ended_ticks == 9);
  CHECK(process->started == 88);
  CHECK_FALSE(process_time("42 (cut"));
  CHECK_FALSE(process_time(""));
}

TEST_CASE("what this run did, with its children and those that ended, is not of others") {
  const auto at = [](double seconds, std::uint64_t busy, std::vector<std::string> lines) {
    HostTimes times;
    times.at = seconds;
    times.cores = CoreTimes{busy, 0};
    for (const auto& line : lines) {
      times.processes.emplace(process_time(line)->pid, *process_time(line));
    }
    return times;
  };
  // 10 is the run; its child 11 ends with 60 ticks and was 20 before; 12 is new and is of 11.
  const auto before = at(5, 1000,
                         {stat_line(10, "run", 1, 100, 0), stat_line(11, "c", 10, 20, 0),
                          stat_line(20, "other", 1, 500, 0, 0, 3)});
  const auto after = at(6, 1300,
                        {stat_line(10, "run", 1, 130, 10, 60), stat_line(12, "d", 10, 30, 0),
                         stat_line(20, "other", 1, 590, 0, 0, 3), stat_line(30, "late", 1, 50, 0)});
  const auto load = other_load(before, after, {10}, 100);
  REQUIRE(load);
  CHECK(load->seconds == doctest::Approx(1));
  CHECK(load->busy_cores == doctest::Approx((300 - (40 + 60 - 20 + 30)) / 100.0));
  REQUIRE(load->processes.size() == 2);
  CHECK(load->processes[0].pid == 20);
  CHECK(load->processes[0].cores == doctest::Approx(0.9));
  CHECK(load->processes[1].pid == 30);
  // The same number again, of another process: all of its time is new.
  const auto again = at(6, 1300, {stat_line(20, "new", 1, 60, 0, 0, 999)});
  CHECK(other_load(before, again, {10}, 100)->processes[0].cores == doctest::Approx(0.6));
  // Without the rule of a single tick, 0.04 s would show any process that did something.
  const auto soon = at(5.04, 1001, {stat_line(20, "other", 1, 501, 0, 0, 3)});
  CHECK(other_load(before, soon, {10}, 100)->processes.empty());
  // The run's own time is counted by other ticks than that of the cores: no load below none.
  CHECK(other_load(before, at(6, 1001, {stat_line(10, "run", 1, 200, 0)}), {10}, 100)->busy_cores ==
        0);
  CHECK_FALSE(other_load(before, HostTimes{}, {10}, 100));
}

TEST_CASE("reasons of NVIDIA's clocks become words, and idleness none") {
  CHECK(throttle_words(0) == json::array());
  CHECK(throttle_words(0x1 | 0x2 | 0x10 | 0x100) == json::array());
  CHECK(throttle_words(0x4) == json{"power"});
  CHECK(throttle_words(0x20) == json{"thermal"});
  CHECK(throttle_words(0x40 | 0x8) == json{"thermal"});
  CHECK(throttle_words(0x8) == json{"hardware"});
  CHECK(throttle_words(0x80 | 0x8 | 0x4) == json{"power", "hardware"});
  CHECK(throttle_words(0x200) == json{"other"});
}

TEST_CASE("an error of the memory that comes between the snapshots is in the second") {
  const Machine machine;
  auto& nvml = fake();
  NodeState state(machine.roots());
  const auto before = state.before(Machine::scope());
  nvml.uncorrected = 1;
  nvml.corrected = 70;
  machine.processes(200, 90);
  const auto after = state.after();
  CHECK(before["devices"][0]["memory_errors"] == json{{"corrected", 0}, {"uncorrected", 0}});
  CHECK(after["devices"][0]["memory_errors"] == json{{"corrected", 70}, {"uncorrected", 1}});
  CHECK(after["opening_seconds"] == 0);
  REQUIRE(after["host"]["others"]["processes"].size() == 1);
  CHECK(after["host"]["others"]["processes"][0]["pid"] == 20);
  CHECK(after["host"]["others"]["processes"][0]["command"] == "greedy");
  CHECK(after["host"]["others"]["processes"][0]["user"].is_string());
}

TEST_CASE(
    "of the snapshot after a run the document has what is not as before, what became unknown too") {
  const Machine machine;
  auto& nvml = fake();
  NodeState state(machine.roots());
  const auto before = state.before(Machine::scope());
  nvml.uncorrected = 1;
  nvml.errors = {{"nvmlDeviceGetPowerUsage", 999}};
  machine.processes(200, 90);
  const auto written = both_states(before, state.after());
  CHECK(written["before"]["devices"][0]["power_w"].is_number());
  CHECK(written["before"]["devices"] == before["devices"]);
  CHECK(written["before"]["host"] == before["host"]);
  CHECK(written["after"]["devices"] ==
        json{{{"index", 0},
              {"memory_errors", {{"corrected", 0}, {"uncorrected", 1}}},
              {"power_w", nullptr}}});
  const auto& host = written["after"]["host"];
  CHECK(host.size() == 1);
  CHECK(host.contains("others"));
  CHECK(written["after"].contains("at"));
  CHECK(both_states(before, nullptr)["after"].is_null());
}

TEST_CASE("a link of NVIDIA's up to Hopper has three counters, and none while it is down") {
  const Machine machine;
  auto& nvml = fake();
  nvml.links = 3;
  nvml.links_down = 1;
  for (unsigned link = 0; link < 3; ++link) {
    nvml.link_counters[{0, link}] = link == 1 ? 7 : 0;
    nvml.link_counters[{1, link}] = 0;
    nvml.link_counters[{2, link}] = link == 2 ? 99 : 0;
  }
  const auto told = NodeState(machine.roots()).before(Machine::scope());
  CHECK(told["devices"][0]["link_errors"] == json{{"nvlink-crc", json::object()},
                                                  {"nvlink-recovery", json::object()},
                                                  {"nvlink-replay", {{"1", 7}}}});
  CHECK(told["devices"][0]["links"]["down"] == json{2});
  nvml.link_counters.erase({1, 0});
  nvml.link_counters.erase({1, 1});
  const auto fewer = NodeState(machine.roots()).before(Machine::scope());
  CHECK(fewer["devices"][0]["link_errors"].count("nvlink-recovery") == 0);
  CHECK(reason(fewer, "devices.link_errors.nvlink-recovery") ==
        "nvmlDeviceGetNvLinkErrorCounter: Not Supported");
}

TEST_CASE("a link of Blackwell has fields, also while it is down, and a field may be missing") {
  const Machine machine;
  auto& nvml = fake();
  nvml.links = 2;
  nvml.links_down = 1;
  for (unsigned link = 0; link < 2; ++link) {
    for (const unsigned field : {206U, 207U, 208U, 209U, 210U, 211U, 212U, 213U, 214U, 219U}) {
      nvml.link_fields[{field, link}] = 0;
    }
  }
  nvml.link_fields[{214, 1}] = 1;
  nvml.link_fields[{213, 0}] = 4;
  const auto told = NodeState(machine.roots()).before(Machine::scope());
  const auto& errors = told["devices"][0]["link_errors"];
  CHECK(errors["nvlink-recovery-failed"] == json{{"1", 1}});
  CHECK(errors["nvlink-recovered"] == json{{"0", 4}});
  CHECK(errors["nvlink-integrity"] == json::object());
  CHECK(errors.count("nvlink-symbol") == 0);
  CHECK(errors.count("nvlink-replay") == 0);
  CHECK(reason(told, "devices.link_errors.nvlink-symbol") ==
        "nvmlDeviceGetFieldValues does not tell field 221");
  CHECK(told["sources"]["devices.link_errors"] == "nvmlDeviceGetFieldValues");
}

TEST_CASE("errors and functions that are missing are reasons, and the rest is read") {
  const Machine machine;
  auto& nvml = fake();
  nvml.errors = {{"nvmlDeviceGetTotalEccErrors", 3}, {"nvmlDeviceGetPowerUsage", 999}};
  const auto with_errors = NodeState(machine.roots()).before(Machine::scope());
  CHECK(with_errors["devices"][0]["memory_errors"].is_null());
  CHECK(reason(with_errors, "devices.memory_errors.uncorrected") ==
        "nvmlDeviceGetTotalEccErrors: Not Supported");
  CHECK(reason(with_errors, "devices.power_w") == "nvmlDeviceGetPowerUsage: Unknown Error");
  CHECK(reason(with_errors, "devices.links") == "nvmlDeviceGetNvLinkState: Not Supported");
  CHECK(with_errors["devices"][0]["clock_mhz"] == 1980);

  const auto old = NodeState(machine.roots(FABRICHECK_TEST_OLD_NVML)).before(Machine::scope());
  const auto& device = old["devices"][0];
  CHECK(device["throttle"] == json::array());
  CHECK(old["sources"]["devices.throttle"] == "nvmlDeviceGetCurrentClocksThrottleReasons");
  CHECK(device["energy_j"].is_null());
  CHECK(reason(old, "devices.energy_j") == "this version of NVML has no nvmlDeviceGetFieldValues");
  CHECK(device["processes"].is_null());
  CHECK(reason(old, "devices.processes") ==
        "this version of NVML has no nvmlDeviceGetComputeRunningProcesses_v3");
}

TEST_CASE("a library that is not there, or that does not start, leaves the host's state") {
  const Machine machine;
  const auto none = NodeState(machine.roots("libno-such-nvml.so.1")).before(Machine::scope());
  CHECK(none["opening_seconds"].is_null());
  CHECK(reason(none, "devices").rfind("cannot open libno-such-nvml.so.1: ", 0) == 0);
  CHECK(none["devices"][0]["clock_mhz"].is_null());
  CHECK(none["devices"][0]["pcie"]["width"] == 8);
  fake().errors = {{"nvmlInit_v2", 9}};
  const auto stopped = NodeState(machine.roots()).before(Machine::scope());
  CHECK(reason(stopped, "devices") == "nvmlInit_v2: Driver Not Loaded");
  CHECK(stopped["host"]["load_1min"] == 1.64);
  fake().errors = {{"nvmlDeviceGetHandleByPciBusId_v2", 15}};
  const auto lost = NodeState(machine.roots()).before(Machine::scope());
  CHECK(reason(lost, "devices") == "nvmlDeviceGetHandleByPciBusId_v2: GPU is lost");
}

TEST_CASE("another process on a device is named, and this run's never") {
  const Machine machine;
  auto& nvml = fake();
  nvml.processes = {{20, 4096}, {77, ~0ULL}};
  NodeState state(machine.roots());
  const auto before = state.before(Machine::scope());
  const auto& listed = before["devices"][0]["processes"];
  REQUIRE(listed.size() == 2);
  CHECK(listed[0]["pid"] == 20);
  CHECK(listed[0]["command"] == "greedy");
  CHECK(listed[0]["user"].is_string());
  CHECK(listed[0]["memory_bytes"] == 4096);
  CHECK(listed[1] ==
        json{{"pid", 77}, {"user", nullptr}, {"command", nullptr}, {"memory_bytes", nullptr}});
  // The run and its child use it now, and more than the first call has room for.
  nvml.processes = {{10, 1}, {11, 1}, {20, 4096}};
  const auto after = state.after();
  REQUIRE(after["devices"][0]["processes"].size() == 1);
  CHECK(after["devices"][0]["processes"][0]["pid"] == 20);
  nvml.processes.assign(200, {20, 1});
  CHECK(state.after()["devices"][0]["processes"].size() == 1);
  nvml.processes.clear();
  CHECK(state.after()["devices"][0]["processes"] == json::array());
}

TEST_CASE("in a container processes count as others only where the run is among those listed") {
  const Machine machine;
  machine.in_namespace("pid:[4026532417]");
  auto& nvml = fake();
  NodeState state(machine.roots());
  // Nothing of this run is on the device yet: whatever is listed is another one.
  nvml.processes = {{4000, 1}};
  auto snapshot = state.before(Machine::scope());
  CHECK(snapshot["devices"][0]["processes"][0]["pid"] == 4000);
  // By the numbers of the host 4010 may be this run.
  nvml.processes = {{4000, 1}, {4010, 1}};
  snapshot = state.after();
  REQUIRE(snapshot["devices"][0]["processes"].size() == 1);
  CHECK(snapshot["devices"][0]["processes"][0]["pid"] == 4000);
  CHECK(reason(snapshot, "devices.processes").rfind("1 process(es)", 0) == 0);
  nvml.processes = {{4010, 1}};
  snapshot = state.after();
  CHECK(snapshot["devices"][0]["processes"].is_null());
  // The driver numbers as the container does: the run is in its list.
  nvml.processes = {{10, 1}, {4010, 1}};
  snapshot = state.after();
  REQUIRE(snapshot["devices"][0]["processes"].size() == 1);
  CHECK(snapshot["devices"][0]["processes"][0]["pid"] == 4010);
  CHECK(reason(snapshot, "devices.processes").empty());
  CHECK(reason(snapshot, "host.others.processes") ==
        "/proc shows the processes of this container alone");

  // Ranks may have opened devices with MPI, before anything is listed.
  NodeState ranks(machine.roots());
  auto scope = Machine::scope();
  scope.alone = false;
  nvml.processes = {{4010, 1}};
  CHECK(ranks.before(scope)["devices"][0]["processes"].is_null());
}

TEST_CASE("the host is read from the files of the system") {
  const Machine machine;
  fake();
  const auto controllers = machine.root() / "sys/devices/system/edac/mc";
  for (const auto& [name, file, text] :
       {std::tuple("mc0", "mc_name", "F19h_M30h"), std::tuple("mc0", "ce_count", "3"),
        std::tuple("mc0", "ue_count", "0"), std::tuple("mc8", "mc_name", "MI200"),
        std::tuple("mc8", "ce_count", "0"), std::tuple("mc8", "ue_count", "2"),
        std::tuple("mc9", "mc_name", "MI200"), std::tuple("power", "control", "auto")}) {
    fs::create_directories(controllers / name);
    std::ofstream(controllers / name / file) << text << "\n";
  }
  const auto snapshot = NodeState(machine.roots()).before(Machine::scope());
  const auto& host = snapshot["host"];
  CHECK(host["load_1min"] == 1.64);
  CHECK(host["cores"] == 5);
  CHECK(host["governor"] == "performance,powersave");
  CHECK(host["huge_pages_reserved"] == 12);
  CHECK(host["huge_pages_free"] == 7);
  CHECK(host["huge_page_bytes"] == 2 << 20);
  CHECK(host["free_bytes"] == json{{"0", 1 << 20}});
  CHECK(host["memory_errors"] ==
        json{{{"controller", "mc0 (F19h_M30h)"}, {"corrected", 3}, {"uncorrected", 0}},
             {{"controller", "mc8 (MI200)"}, {"corrected", 0}, {"uncorrected", 2}}});
  CHECK(host["others"]["seconds"].get<double>() >= 0.04);
  CHECK(host["others"]["processes"] == json::array());
  CHECK(snapshot["sources"]["host.governor"] == "scaling_governor");
  fs::remove_all(machine.root() / "sys/devices");
  fs::remove(machine.root() / "proc/loadavg");
  fs::remove(machine.root() / "proc/stat");
  const auto bare = NodeState(machine.roots()).before(Machine::scope());
  for (const auto* item :
       {"load_1min", "cores", "governor", "free_bytes", "others", "memory_errors"}) {
    CHECK_MESSAGE(bare["host"][item].is_null(), item);
    CHECK_MESSAGE(!reason(bare, std::string("host.") + item).empty(), item);
  }
}

TEST_CASE("accelerators are those that PCI shows and that answer, whatever their driver") {
  const Machine machine;
  const auto sys = machine.root() / "sys";
  const auto add = [&sys](const std::string& address, const std::string& vendor,
                          const std::string& class_code, const std::string& config = "\x01") {
    const auto folder = sys / "bus/pci/devices" / address;
    write(folder / "vendor", vendor + "\n");
    write(folder / "device", "0x7408\n");
    write(folder / "class", class_code + "\n");
    write(folder / "config", config);
    return folder;
  };
  const auto driven = add("0000:c1:00.0", "0x1002", "0x038000");
  write(driven / "current_compute_partition", "CPX\n");
  fs::create_directories(sys / "bus/pci/drivers/amdgpu");
  fs::create_directory_symlink(sys / "bus/pci/drivers/amdgpu", driven / "driver");
  add("0000:05:00.0", "0x1002", "0x120000");
  add("0000:c2:00.0", "0x1002", "0x038000", std::string(64, '\xff'));  // fell off the bus
  fs::create_directory_symlink(driven, add("0000:c1:02.0", "0x1002", "0x038000") / "physfn");
  add("0000:03:00.0", "0x1a03", "0x030000");  // of the BMC
  add("0000:04:00.0", "0x102b", "0x030000");
  add("0000:07:00.0", "0x10de", "0x068000");  // a switch
  CHECK(pci_functions(sys.string()) == json{{{"address", "0000:05:00.0"},
                                             {"vendor", "0x1002"},
                                             {"device", "0x7408"},
                                             {"driver", nullptr},
                                             {"mode", nullptr},
                                             {"accessible", nullptr}},
                                            {{"address", "0000:c1:00.0"},
                                             {"vendor", "0x1002"},
                                             {"device", "0x7408"},
                                             {"driver", "amdgpu"},
                                             {"mode", "CPX"},
                                             {"accessible", nullptr}}});
  // Its device file, which a control group can close.
  write(sys / "bus/pci/devices/0000:c1:00.0/drm/renderD128/dev", "226:128\n");
  CHECK(pci_functions(sys.string())[1]["accessible"] == false);
  write(machine.root() / "dev/dri/renderD128", "");
  CHECK(pci_functions(sys.string())[1]["accessible"] == true);
  const auto host = NodeState(machine.roots()).before(Machine::scope())["host"];
  CHECK(host["pci_functions"].size() == 2);
  CHECK(pci_functions((sys / "nothing").string()).is_null());
}

TEST_CASE("the other end of a link is the port above the package of the device") {
  const Machine machine;
  fake();
  const auto devices = machine.root() / "sys/bus/pci/devices";
  const auto root = machine.root() / "sys/devices/pci0000:00";
  const auto port = root / "0000:00:01.0";
  const auto inside = port / "0000:04:00.0";
  write(port / "vendor", "0x8086\n");
  write(port / "max_link_width", "8\n");
  write(inside / "vendor", "0x10de\n");
  write(inside / "max_link_width", "32\n");
  fs::rename(devices / kAddress, inside / kAddress);
  fs::create_directory_symlink(inside / kAddress, devices / kAddress);
  const auto pcie_of = [&machine] {
    return NodeState(machine.roots()).before(Machine::scope())["devices"][0]["pcie"];
  };
  CHECK(pcie_of()["width_max"] == 16);
  CHECK(pcie_of()["width_max_port"] == 8);
  write(port / "max_link_width", "255\n");
  CHECK(pcie_of()["width_max_port"].is_null());
  write(port / "vendor", "0x10de\n");  // a processor of the same vendor
  write(port / "max_link_width", "16\n");
  CHECK(pcie_of()["width_max_port"] == 16);
}

TEST_CASE("a reason that not all devices have names those that have it") {
  const Machine machine;
  fake();
  auto scope = Machine::scope();
  scope.devices.push_back({3, "0000:00:07.0"});
  scope.elsewhere = {4, 5};
  const auto snapshot = NodeState(machine.roots()).before(scope);
  REQUIRE(snapshot["devices"].size() == 2);
  CHECK(snapshot["devices"][1]["index"] == 3);
  CHECK(reason(snapshot, "devices") ==
        "device 3: nvmlDeviceGetHandleByPciBusId_v2: Unknown Error; "
        "devices 4, 5: of another machine than rank 0's");
}

TEST_CASE("the scope of a run has the devices and cores of this machine") {
  json document{{"host", {{"cores_allowed", {0, 1, 2}}}},
                {"devices",
                 {{{"index", 0}, {"pci_address", "0000:c1:00.0"}},
                  {{"index", 1}, {"pci_address", nullptr}},
                  {{"index", 2}, {"pci_address", "0000:c1:00.0"}}}}};
  const auto alone = state_scope(document, {7});
  CHECK(alone.alone);
  CHECK(alone.cores == std::vector<int>{0, 1, 2});
  REQUIRE(alone.devices.size() == 2);
  document["ranks"] = {{{"host", "a"}, {"cores", {4}}, {"visible_devices", {0, 1}}},
                       {{"host", "a"}, {"cores", {5}}, {"visible_devices", {1}}},
                       {{"host", "b"}, {"cores", {6}}, {"visible_devices", {2}}}};
  const auto ranks = state_scope(document, {7, 8});
  CHECK_FALSE(ranks.alone);
  CHECK(ranks.cores == std::vector<int>{4, 5});
  REQUIRE(ranks.devices.size() == 1);
  CHECK(ranks.devices[0].index == 0);
  CHECK(ranks.elsewhere == std::vector<int>{2});
}

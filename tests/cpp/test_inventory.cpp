// The description of a node, on trees of KFD and PCI. Where not said otherwise, a value of KFD is
// what the kernel makes of the machine by kfd_crat.c (kfd_fill_gpu_xgmi_link_to_gpu,
// kfd_fill_gpu_direct_io_link_to_cpu) and amdgpu_xgmi.c: weight 15 a hop of xGMI, 13 within a
// package, 20 a segment of PCIe; min_bandwidth the rate of one link, 50,000 MB/s of MI200 (25 GT/s,
// 16 lanes) and 64,000 of MI300 (32 GT/s), max_bandwidth that of all parallel ones; both 0 where a
// device is between two. No such machine was used.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "fake_nvml.hpp"
#include "harness/identity.hpp"
#include "harness/kfd.hpp"
#include "harness/pci.hpp"
#include "harness/rocm.hpp"
#include "harness/status.hpp"
#include "inventory/document.hpp"

using namespace fabricheck;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr int kPcie = 2;
constexpr int kXgmi = 11;
constexpr std::uint64_t kMi300x = 192ULL << 30;  ///< bytes of memory

using Matrix = std::vector<std::vector<int>>;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

/// Sixteen cores of each domain, as a node of Frontier has them.
json cores_of(std::size_t domain) {
  json cores = json::array();
  for (std::size_t i = 0; i < 16; ++i) {
    cores.push_back(16 * domain + i);
  }
  return cores;
}

/// A machine of files, and what the runtime tells of it.
class Tree {
 public:
  Tree() : root_(fs::temp_directory_path() / ("fabricheck-inventory-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    facts_.host = {{"numa_domains", json::array()}, {"numa_balancing", 0}};
    facts_.peer_access = [](int, int) { return true; };
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { fs::remove_all(root_); }

  /// A node of cores of KFD, which is the next NUMA domain.
  int add_domain() {
    auto& domains = facts_.host["numa_domains"];
    const auto index = domains.size();
    domains.push_back({{"index", index}, {"cores", cores_of(index)}, {"memory_bytes", 1 << 30}});
    return add_node("cpu_cores_count 32\nsimd_count 0\n");
  }
  int add_node(const std::string& properties) {
    write(node(nodes_) / "properties", properties);
    return nodes_++;
  }
  int add_gpu(unsigned location, unsigned domain = 0) {
    return add_node("cpu_cores_count 0\nsimd_count 440\nlocation_id " + std::to_string(location) +
                    "\ndomain " + std::to_string(domain) + "\n");
  }
  void link(int from, int to, int type, int weight, int min, int max,
            const char* kind = "io_links") {
    write(node(from) / kind / std::to_string(links_++) / "properties",
          "type " + std::to_string(type) + "\nnode_from " + std::to_string(from) + "\nnode_to " +
              std::to_string(to) + "\nweight " + std::to_string(weight) + "\nmin_bandwidth " +
              std::to_string(min) + "\nmax_bandwidth " + std::to_string(max) + "\n");
  }
  void link_both(int one, int other, int type, int weight, int min, int max,
                 const char* kind = "io_links") {
    link(one, other, type, weight, min, max, kind);
    link(other, one, type, weight, min, max, kind);
  }
  [[nodiscard]] fs::path function(const std::string& address) const {
    return root_ / "bus/pci/devices" / address;
  }
  void add_function(const std::string& address, int numa_node, const char* device,
                    const char* vendor = kAmd) const {
    write(function(address) / "vendor", std::string(vendor) + "\n");
    write(function(address) / "class", "0x120000\n");
    write(function(address) / "device", std::string(device) + "\n");
    write(function(address) / "numa_node", std::to_string(numa_node) + "\n");
    const int near = std::max(numa_node, 0);
    write(function(address) / "local_cpulist",
          std::to_string(16 * near) + "-" + std::to_string(16 * near + 15) + "\n");
    for (const auto* name : {"current_link_width", "max_link_width"}) {
      write(function(address) / name, "16\n");
    }
    for (const auto* name : {"current_link_speed", "max_link_speed"}) {
      write(function(address) / name, "16.0 GT/s PCIe\n");
    }
  }
  /// A device that the runtime lists.
  void add_device(const std::string& address, const char* name, const char* arch,
                  std::uint64_t memory_bytes = 68702699520) {
    facts_.devices.push_back({{"name", name},
                              {"arch", arch},
                              {"memory_bytes", memory_bytes},
                              {"pci_address", address},
                              {"numa_domain", nullptr}});
  }
  RuntimeFacts& facts() { return facts_; }
  [[nodiscard]] json describe(const char* nvml = "libno-such.so") const {
    return describe_machine(facts_, roots(nvml));
  }
  /// What the drivers list, without a runtime.
  [[nodiscard]] json listed(const char* nvml = "libno-such.so") const {
    return driver_devices(roots(nvml));
  }

 private:
  [[nodiscard]] StateRoots roots(const char* nvml) const {
    StateRoots roots;
    roots.sys = root_.string();
    roots.nvml = nvml;
    return roots;
  }
  [[nodiscard]] fs::path node(int number) const {
    return root_ / "class/kfd/kfd/topology/nodes" / std::to_string(number);
  }

  fs::path root_;
  RuntimeFacts facts_;
  int nodes_ = 0;
  int links_ = 0;
};

/// The driver's file gpu_metrics, one of tests/outputs/state/gpu_metrics_versions.
void add_metrics(const fs::path& function, const std::string& name) {
  fs::copy_file(fs::path(FABRICHECK_TEST_STATES) / "gpu_metrics_versions" / name,
                function / "gpu_metrics");
}

/// Compares a description with the one that the tests of the comparison with node models read;
/// WRITE_SNAPSHOTS writes it.
void check_kept(const json& description, const std::string& name) {
  const auto path = fs::path(FABRICHECK_TEST_INVENTORIES) / (name + ".json");
  if (std::getenv("WRITE_SNAPSHOTS") != nullptr) {
    write(path, description.dump() + "\n");
  }
  std::ifstream file(path);
  CHECK_MESSAGE(json::parse(file, nullptr, false) == description, name);
}

json link_of(const json& description, int from, int to) {
  for (const auto& link : description["links"]) {
    if (link["from"] == from && link["to"] == to) {
      return link;
    }
  }
  return nullptr;
}

Matrix matrix(const json& description) {
  const auto count = description["devices"].size();
  Matrix links(count, std::vector<int>(count));
  for (const auto& link : description["links"]) {
    links[link["from"]][link["to"]] = link["links"].is_null() ? -1 : link["links"].get<int>();
  }
  return links;
}

std::string reason(const json& description, const std::string& item) {
  for (const auto& entry : description["absent"]) {
    if (entry["item"] == item) {
      return entry["why"];
    }
  }
  return "";
}

json function_at(const json& description, const std::string& address) {
  for (const auto& function : description["pci_functions"]) {
    if (function["address"] == address) {
      return function;
    }
  }
  return nullptr;
}

/// Whether a member, named as "devices.cores" or "devices.pcie.width", is null anywhere.
bool any_null(const json& description, const std::string& item) {
  const auto first = item.find('.');
  const auto second = item.find('.', first + 1);
  const auto& all = description[item.substr(0, first)];
  return std::any_of(all.begin(), all.end(), [&](const json& one) {
    const auto& member = one[item.substr(first + 1, second - first - 1)];
    return member.is_null() ||
           (second != std::string::npos && member[item.substr(second + 1)].is_null());
  });
}

/// Whether each null of devices and links has a reason, and each other value a source and none.
void check_provenance(const json& description) {
  for (const auto& entry : description["absent"]) {
    const std::string item = entry["item"];
    if (item.find('.') != std::string::npos) {
      CHECK_MESSAGE(any_null(description, item), item);
    }
  }
  for (const std::string items : {"devices", "links"}) {
    for (const auto& one : description[items]) {
      for (const auto& member : one.items()) {
        const auto item = items + "." + member.key();
        if (member.key() == "index" || member.key() == "from" || member.key() == "to") {
          continue;
        }
        if (member.value().is_object()) {
          for (const auto& part : member.value().items()) {
            const auto name = item + "." + part.key();
            CHECK_MESSAGE((part.value().is_null() ? !reason(description, name).empty()
                                                  : description["sources"].contains(name)),
                          name);
          }
        } else if (member.value().is_null()) {
          CHECK_MESSAGE(
              (!reason(description, item).empty() ||
               !reason(description, item + ".width").empty() || member.key() == "host_link"),
              item);
        } else {
          CHECK_MESSAGE(description["sources"].contains(item), item);
        }
      }
    }
  }
}

/// Links of each pair, as config/nodes/mi250x.yaml has them: Schieffer et al., arXiv:2410.00801.
const Matrix kFrontier{{0, 4, 1, 0, 0, 0, 2, 0}, {4, 0, 0, 1, 0, 1, 0, 0}, {1, 0, 0, 4, 2, 0, 0, 0},
                       {0, 1, 4, 0, 0, 0, 0, 1}, {0, 0, 2, 0, 0, 4, 1, 0}, {0, 1, 0, 0, 4, 0, 0, 1},
                       {2, 0, 0, 0, 1, 0, 0, 4}, {0, 0, 0, 1, 0, 1, 4, 0}};

/// A node of Frontier or LUMI-G with those links: eight devices at the addresses that LUMI's user
/// guide prints, near the domains of the same file (gcd-numa-lumi).
struct Frontier : Tree {
  std::vector<std::string> addresses;
  explicit Frontier(const Matrix& links = kFrontier, int missing = -1) {
    const std::vector<int> buses{0xc1, 0xc6, 0xc9, 0xce, 0xd1, 0xd6, 0xd9, 0xde};
    const std::vector<int> domains{3, 3, 1, 1, 0, 0, 2, 2};
    for (int i = 0; i < 4; ++i) {
      add_domain();
    }
    std::vector<int> nodes(8, -1);
    for (std::size_t i = 0; i < 8; ++i) {
      char address[32];
      std::snprintf(address, sizeof address, "0000:%02x:00.0", static_cast<unsigned>(buses[i]));
      addresses.emplace_back(address);
      add_function(address, domains[i], "0x7408");
      if (static_cast<int>(i) == missing) {
        continue;
      }
      add_device(address, "AMD Instinct MI250X", "gfx90a:sramecc+:xnack-");
      nodes[i] = add_gpu(static_cast<unsigned>(buses[i]) << 8);
      link(nodes[i], domains[i], kXgmi, 15, 50000, 50000);
    }
    for (std::size_t a = 0; a < 8; ++a) {
      for (std::size_t b = 0; b < 8; ++b) {
        if (a == b || nodes[a] < 0 || nodes[b] < 0) {
          continue;
        }
        const int parallel = links[a][b];
        link(nodes[a], nodes[b], kXgmi, parallel > 0 ? 15 : 30, parallel > 0 ? 50000 : 0,
             50000 * parallel);
      }
    }
  }
};

FakeNvml& fake(const char* library) {
  void* opened = dlopen(library, RTLD_NOW);
  auto* function = reinterpret_cast<FakeNvmlFunction>(dlsym(opened, "fake_nvml"));
  *function() = FakeNvml{};
  return *function();
}

/// Two H100 of a virtual machine, as measured (driver 580.159.04): 18 links of each to a switch, no
/// domain in /sys, 26,562 MB/s of a link in field 164.
struct TwoH100 : Tree {
  FakeNvml& nvml;
  explicit TwoH100(const char* library = FABRICHECK_TEST_NVML) : nvml(fake(library)) {
    add_domain();
    for (const auto* address : {"0000:00:06.0", "0000:00:07.0"}) {
      add_function(address, -1, "0x2330", kNvidia);
      write(function(address) / "subsystem_vendor", "0x10de\n");
      write(function(address) / "subsystem_device", "0x16c1\n");
      for (const auto* name : {"current_link_speed", "max_link_speed"}) {
        write(function(address) / name, "32.0 GT/s PCIe\n");
      }
      add_device(address, "NVIDIA H100 80GB HBM3", "sm_90", 85017493504);
    }
    nvml.addresses = {"0000:00:06.0", "0000:00:07.0"};
    nvml.links = 18;
    nvml.fields = {{164, 26562}};  // it does not tell field 90
  }
};

}  // namespace

TEST_CASE("a node of Frontier has the links of its map, and is joined to its cores by xGMI") {
  const Frontier tree;
  check_kept(tree.describe(), "mi250x");
  add_metrics(tree.function("0000:d1:00.0"), "v1_3_mi250.bin");
  const auto node = tree.describe();
  CHECK(matrix(node) == kFrontier);
  const auto quad = link_of(node, 0, 1);
  CHECK(quad["kind"] == "xgmi");
  CHECK(quad["gb_per_s"] == 50.0);
  CHECK(quad["weight"] == 15);
  CHECK(quad["hops"] == 1);
  CHECK(quad["peer_access"] == true);
  const auto far = link_of(node, 0, 7);
  CHECK(far["kind"] == "xgmi");
  CHECK(far["hops"] == 2);
  CHECK(far["gb_per_s"].is_null());
  CHECK(reason(node, "links.gb_per_s").find("other devices are between them") != std::string::npos);
  REQUIRE(node["devices"].size() == 8);
  const auto& device = node["devices"][4];
  CHECK(device["index"] == 4);
  CHECK(device["name"] == "AMD Instinct MI250X");
  CHECK(device["memory_bytes"] == 68702699520);
  CHECK(device["pci_address"] == "0000:d1:00.0");
  CHECK(device["numa_domain"] == 0);
  CHECK(device["cores"] == cores_of(0));
  CHECK(device["host_link"] == json{{"kind", "xgmi"}, {"gb_per_s", 50.0}});
  // /sys and gpu_metrics have a width and a speed of a link that no data takes.
  CHECK(device["pcie"].is_null());
  CHECK(reason(node, "devices.pcie").find("no PCIe") != std::string::npos);
  CHECK(node["sources"]["devices.host_link.gb_per_s"] == "KFD io_links");
  CHECK(node["sources"]["devices.cores"] == "local_cpulist");
  CHECK(function_at(node, "0000:d1:00.0")["indices"] == json{4});
  CHECK(function_at(node, "0000:d1:00.0")["in_driver"] == true);
  check_provenance(node);
}

TEST_CASE("a link that is gone is one fewer of its pair, or none where it was the only one") {
  auto links = kFrontier;
  links[0][1] = links[1][0] = 3;
  links[1][3] = links[3][1] = 0;
  const auto node = Frontier(links).describe();
  check_kept(node, "mi250x-links-gone");
  CHECK(link_of(node, 0, 1)["links"] == 3);
  CHECK(link_of(node, 1, 0)["links"] == 3);
  CHECK(link_of(node, 1, 3)["links"] == 0);
  CHECK(link_of(node, 1, 3)["hops"] == 2);
}

TEST_CASE("a link that one end alone has is shown of that direction alone") {
  auto links = kFrontier;
  links[6][0] = 1;
  const auto node = Frontier(links).describe();
  CHECK(link_of(node, 0, 6)["links"] == 2);
  CHECK(link_of(node, 6, 0)["links"] == 1);
}

TEST_CASE("a device that is off the bus is not seen at all") {
  const Frontier tree(kFrontier, 5);
  fs::remove_all(tree.function("0000:d6:00.0"));
  const auto node = tree.describe();
  CHECK(node["devices"].size() == 7);
  CHECK(node["pci_functions"].size() == 7);
  check_kept(node, "mi250x-device-off-the-bus");
}

TEST_CASE("a device that PCI shows and the driver does not is seen") {
  const Frontier tree(kFrontier, 5);
  const auto node = tree.describe();
  check_kept(node, "mi250x-device-off-the-driver");
  CHECK(node["devices"].size() == 7);
  CHECK(node["pci_functions"].size() == 8);
  CHECK(function_at(node, "0000:d6:00.0")["in_driver"] == false);
  CHECK(function_at(node, "0000:d6:00.0")["indices"] == json::array());
  CHECK(function_at(node, "0000:d9:00.0")["indices"] == json{5});
}

TEST_CASE("a device that a setting hides from the runtime is one that the driver has") {
  Frontier tree;
  tree.facts().devices.erase(5);
  const auto function = function_at(tree.describe(), "0000:d6:00.0");
  CHECK(function["in_driver"] == true);
  CHECK(function["indices"] == json::array());
}

TEST_CASE("without any device of the runtime PCI's functions are described") {
  Frontier tree;
  tree.facts().devices = json::array();
  tree.facts().problem = "no device";
  const auto node = tree.describe();
  CHECK(node["devices"] == json::array());
  CHECK(reason(node, "devices") == "no device");
  CHECK(node["pci_functions"].size() == 8);
}

TEST_CASE("without KFD the links are unknown, and what the runtime and PCI tell is there") {
  Frontier tree;
  fs::remove_all(tree.function("").parent_path().parent_path().parent_path().parent_path() /
                 "class");
  const auto node = tree.describe();
  CHECK(link_of(node, 0, 1)["kind"].is_null());
  CHECK(reason(node, "links.links").find("class/kfd/kfd/topology/nodes") != std::string::npos);
  CHECK(node["devices"][0]["numa_domain"] == 3);
  CHECK(node["devices"][0]["pcie"]["gt_per_s"] == 16.0);
  CHECK(function_at(node, "0000:d1:00.0")["in_driver"].is_null());
  check_provenance(node);
}

TEST_CASE("where PCI tells no domain, KFD does by the nearest cores") {
  const Frontier tree;
  write(tree.function("0000:d9:00.0") / "numa_node", "-1\n");
  const auto node = tree.describe();
  CHECK(node["devices"][6]["numa_domain"] == 2);
  CHECK(node["devices"][6]["cores"] == cores_of(2));
  CHECK(node["sources"]["devices.numa_domain"] == "KFD io_links, numa_node");
}

namespace {

/// Two MI210 of one hive, and a third of another. Nodes 2, 3 and 6 of eight in two hives: verbatim
/// from testdata/topo-mi210-xgmi-pcie of ROCm/k8s-device-plugin at
/// ed7646843003e8f0b6a0630346f01bb4d1ecff2e.
struct Mi210 : Tree {
  explicit Mi210(std::size_t count) {
    const int first = add_domain();
    const int second = add_domain();
    const std::vector<unsigned> locations{25344, 17152, 58112};
    const std::vector<std::string> addresses{"0000:63:00.0", "0000:43:00.0", "0000:e3:00.0"};
    std::vector<int> nodes;
    for (std::size_t i = 0; i < count; ++i) {
      nodes.push_back(add_gpu(locations[i]));
      add_function(addresses[i], i < 2 ? 0 : 1, "0x740f");
      add_device(addresses[i], "AMD Instinct MI210", "gfx90a:sramecc+:xnack-");
      link(nodes[i], i < 2 ? first : second, kPcie, 20, 312, 32000);
      link(nodes[i], i < 2 ? second : first, kPcie, 52, 0, 0, "p2p_links");
    }
    link_both(nodes[0], nodes[1], kXgmi, 15, 50000, 50000);
    if (count > 2) {
      link_both(nodes[0], nodes[2], kPcie, 72, 0, 0, "p2p_links");
    }
  }
};

}  // namespace

TEST_CASE("two MI210 have one link, and a path over PCIe to one of another hive") {
  check_kept(Mi210(2).describe(), "mi210-x2");
  const Mi210 tree(3);
  const auto node = tree.describe();
  CHECK(link_of(node, 0, 1)["kind"] == "xgmi");
  CHECK(link_of(node, 0, 1)["links"] == 1);
  CHECK(link_of(node, 0, 1)["gb_per_s"] == 50.0);
  CHECK(link_of(node, 2, 0)["kind"] == "pcie");
  CHECK(link_of(node, 2, 0)["links"] == 0);
  CHECK(link_of(node, 2, 0)["weight"] == 72);
  // The driver of that machine has it, and this tree leaves it out.
  CHECK(link_of(node, 1, 2)["kind"] == "none");
  const auto& device = node["devices"][0];
  CHECK(device["host_link"] == json{{"kind", "pcie"}, {"gb_per_s", nullptr}});
  CHECK(device["pcie"]["width"] == 16);
  CHECK(device["pcie"]["gt_per_s_max"] == 16.0);
  check_provenance(node);
}

namespace {

/// Eight MI300X in SPX, one link of each pair (ROCm docs, MI300 series microarchitecture). Their
/// addresses are invented, in the form of a machine of eight. One pair may have lost its link, so
/// that other devices are between the two.
struct Mi300x : Tree {
  explicit Mi300x(std::size_t one = 0, std::size_t other = 0) {
    add_domain();
    add_domain();
    std::vector<int> nodes;
    for (unsigned i = 0; i < 8; ++i) {
      const auto address = "0000:" + std::to_string(10 + 10 * i) + ":00.0";
      const auto bus = static_cast<unsigned>(std::strtoul(address.c_str() + 5, nullptr, 16));
      add_function(address, static_cast<int>(i / 4), "0x74a1");
      write(function(address) / "current_compute_partition", "SPX\n");
      write(function(address) / "current_memory_partition", "NPS1\n");
      add_device(address, "AMD Instinct MI300X", "gfx942:sramecc+:xnack-", kMi300x);
      nodes.push_back(add_gpu(bus << 8));
      link(nodes.back(), static_cast<int>(i / 4), kPcie, 20, 312, 64000);
    }
    for (std::size_t a = 0; a < 8; ++a) {
      for (std::size_t b = 0; b < 8; ++b) {
        if (a != b) {
          const bool gone = one != other && std::set{a, b} == std::set{one, other};
          link(nodes[a], nodes[b], kXgmi, gone ? 30 : 15, gone ? 0 : 64000, gone ? 0 : 64000);
        }
      }
    }
  }
};

}  // namespace

TEST_CASE("eight MI300X in SPX have one link of 64 GB/s for each pair") {
  check_kept(Mi300x(2, 5).describe(), "mi300x-link-2-5-gone");
  const Mi300x tree;
  check_kept(tree.describe(), "mi300x");
  add_metrics(tree.function("0000:80:00.0"), "v1_8_mi300x_link_down.bin");
  const auto node = tree.describe();
  CHECK(node["links"].size() == 56);
  for (const auto& link : node["links"]) {
    CHECK(link["links"] == 1);
    CHECK(link["gb_per_s"] == 64.0);
  }
  CHECK(node["devices"][7]["compute_partition"] == "SPX");
  CHECK(node["devices"][7]["memory_partition"] == "NPS1");
  CHECK(node["devices"][7]["numa_domain"] == 1);
  CHECK(node["devices"][7]["pcie"]["width"] == 8);
  CHECK(node["devices"][7]["pcie"]["width_max"] == 16);
  CHECK(node["sources"]["devices.pcie.width"] == "current_link_width, gpu_metrics 1.8");
  check_provenance(node);
}

namespace {

/// Two MI300X in CPX, eight nodes each. Locations, weights and bandwidths are those of
/// testdata/topo-mi300-cpx of ROCm/k8s-device-plugin at ed7646843003e8f0b6a0630346f01bb4d1ecff2e,
/// whose locations have the number of a partition as the function; `high` has it in the high bits,
/// as newer drivers do.
struct Cpx : Tree {
  explicit Cpx(bool high = false) {
    add_domain();
    add_domain();
    std::vector<int> nodes;
    for (const unsigned card : {1280U, 9984U}) {
      char address[32];
      std::snprintf(address, sizeof address, "0000:%02x:00.0", card >> 8);
      add_function(address, 0, "0x74a1");
      write(function(address) / "current_compute_partition", "CPX\n");
      write(function(address) / "current_memory_partition", "NPS1\n");
      for (unsigned i = 0; i < 8; ++i) {
        nodes.push_back(add_gpu(high ? card | i << 28 : card + i));
        link(nodes.back(), 0, kPcie, 20, 0, 64000);
      }
    }
    for (std::size_t a = 0; a < 16; ++a) {
      for (std::size_t b = 0; b < 16; ++b) {
        if (a != b && a / 8 == b / 8) {
          link(nodes[a], nodes[b], kXgmi, 13, 819200, 819200);
        } else if (a != b) {
          link(nodes[a], nodes[b], kXgmi, 41, 0, 0);
        }
      }
    }
  }
  void add_partition(const std::string& address) {
    add_device(address, "AMD Instinct MI300X", "gfx942:sramecc+:xnack-", kMi300x / 8);
  }
};

}  // namespace

TEST_CASE("partitions of an MI300X in CPX are found by their number, or by their order") {
  for (const bool high : {false, true}) {
    CAPTURE(high);
    Cpx tree(high);
    for (const std::string bus : {"05", "27"}) {
      for (int i = 0; i < 8; ++i) {
        tree.add_partition("0000:" + bus + ":00." + (high ? "0" : std::to_string(i)));
      }
    }
    const auto node = tree.describe();
    if (high) {
      check_kept(node, "mi300x-cpx");
    }
    CHECK(node["devices"].size() == 16);
    CHECK(node["devices"][13]["compute_partition"] == "CPX");
    CHECK(node["devices"][13]["pcie"]["width"] == 16);
    CHECK(node["devices"][13]["pci_id"] == "1002:74a1");
    const auto inside = link_of(node, 1, 6);
    CHECK(inside["kind"] == "package");
    CHECK(inside["links"] == 0);
    CHECK(inside["gb_per_s"].is_null());
    const auto between = link_of(node, 7, 8);
    CHECK(between["kind"] == "xgmi");
    CHECK(between["links"].is_null());
    CHECK(between["weight"] == 41);
    CHECK(reason(node, "links.links").find("between partitions of two cards") != std::string::npos);
    CHECK(function_at(node, "0000:27:00.0")["indices"].size() == 8);
    check_provenance(node);
  }
}

TEST_CASE("of partitions that are hidden in part, those without a number are not guessed") {
  Cpx numbered;
  numbered.add_partition("0000:05:00.3");
  numbered.add_partition("0000:27:00.1");
  CHECK(link_of(numbered.describe(), 0, 1)["weight"] == 41);
  Cpx bare(true);
  bare.add_partition("0000:05:00.0");
  bare.add_partition("0000:05:00.0");
  const auto node = bare.describe();
  CHECK(link_of(node, 0, 1)["kind"].is_null());
  CHECK(reason(node, "links.kind") ==
        "the runtime shows 2 of 8 partitions of its card: which, is not known");
}

// Four MI300A: domains and locations of PCI, cores and simd_count are those that
// pkg/collector/testdata/README.md of mahendrapaipuri/ceems shows of such a node; two links of each
// pair as in config/nodes/mi300a.yaml (LLNL).
TEST_CASE("an MI300A is within one package with its cores, at one address in four PCI domains") {
  Tree tree;
  std::vector<int> nodes;
  for (int i = 0; i < 4; ++i) {
    tree.add_domain();
  }
  for (unsigned i = 0; i < 4; ++i) {
    const auto address = "000" + std::to_string(i) + ":02:00.0";
    tree.add_function(address, static_cast<int>(i), "0x74a0");
    tree.add_device(address, "AMD Instinct MI300A", "gfx942:sramecc+:xnack+");
    nodes.push_back(tree.add_gpu(512, i));
    tree.link(nodes.back(), static_cast<int>(i), kXgmi, 13, 819200, 819200);
    for (int other = 0; other < 4; ++other) {
      if (other != static_cast<int>(i)) {
        tree.link(nodes.back(), other, kXgmi, 47, 0, 0, "p2p_links");
      }
    }
  }
  for (const int a : nodes) {
    for (const int b : nodes) {
      if (a != b) {
        tree.link(a, b, kXgmi, 15, 64000, 128000);
      }
    }
  }
  const auto node = tree.describe();
  check_kept(node, "mi300a");
  for (const auto& link : node["links"]) {
    CHECK(link["kind"] == "xgmi");
    CHECK(link["links"] == 2);
    CHECK(link["gb_per_s"] == 64.0);
  }
  CHECK(node["devices"][2]["host_link"] == json{{"kind", "package"}, {"gb_per_s", nullptr}});
  CHECK(node["devices"][2]["pcie"].is_null());
  CHECK(node["devices"][2]["numa_domain"] == 2);
  check_provenance(node);
}

TEST_CASE("a kernel that tells no bandwidth leaves the number of links unknown") {
  Tree tree;
  tree.add_domain();
  const int one = tree.add_gpu(0xc100);
  const int other = tree.add_gpu(0xc600);
  tree.link_both(one, other, kXgmi, 15, 0, 0);
  tree.add_device("0000:c1:00.0", "", "gfx90a");
  tree.add_device("0000:c6:00.0", "", "gfx90a");
  tree.add_function("0000:c1:00.0", -1, "0x7408");
  write(tree.function("0000:c1:00.0") / "product_name", "AMD Instinct MI250X\n");
  const auto node = tree.describe();
  CHECK(link_of(node, 0, 1)["links"].is_null());
  CHECK(link_of(node, 0, 1)["hops"] == 1);
  CHECK(reason(node, "links.links") == "KFD of this kernel tells no bandwidth of the link");
  CHECK(node["devices"][0]["name"] == "AMD Instinct MI250X");
  CHECK(node["devices"][1]["name"].is_null());
  // Of one domain every device is near it.
  CHECK(node["devices"][0]["numa_domain"] == 0);
  CHECK(node["devices"][0]["cores"] == cores_of(0));
  check_provenance(node);
}

TEST_CASE("what a device is comes from PCI, else from the compute driver, whatever its name") {
  Tree tree;
  tree.add_domain();
  tree.add_node(
      "cpu_cores_count 0\nsimd_count 1216\nvendor_id 4098\ndevice_id 29877\n"
      "location_id 768\ndomain 0\n");
  tree.add_device("0000:03:00.0", "", "gfx942:sramecc+:xnack-", kMi300x);
  const auto without = tree.describe();
  CHECK(without["devices"][0]["pci_id"] == "1002:74b5");
  CHECK(without["devices"][0]["pci_subsystem"].is_null());
  CHECK(without["sources"]["devices.pci_id"] == "KFD vendor_id, device_id");
  check_provenance(without);
  tree.add_function("0000:03:00.0", -1, "0x74a1");
  write(tree.function("0000:03:00.0") / "subsystem_vendor", "0x1002\n");
  write(tree.function("0000:03:00.0") / "subsystem_device", "0x74a1\n");
  const auto listed = tree.describe();
  CHECK(listed["devices"][0]["pci_id"] == "1002:74a1");
  CHECK(listed["devices"][0]["pci_subsystem"] == "1002:74a1");
  CHECK(listed["sources"]["devices.pci_id"] == "vendor, device");
  // AMD's runtime numbers a partition as a function, of which PCI has the first alone.
  const auto sys = tree.function("0000:03:00.0").parent_path() / "../../..";
  auto partition = new_device();
  read_identity(sys.string(), "libno-such.so", "0000:03:00.5", partition);
  CHECK(partition.values()["pci_id"] == "1002:74a1");
  write(tree.function("0000:03:00.0") / "device", "none\n");
  CHECK(tree.describe()["devices"][0]["pci_id"] == "1002:74b5");
}

TEST_CASE("where PCI is not shown, NVIDIA's library tells what a device is") {
  const TwoH100 tree;
  fs::remove_all(tree.function("0000:00:06.0"));
  const auto node = tree.describe(FABRICHECK_TEST_NVML);
  CHECK(node["devices"][0]["pci_id"] == "10de:2330");
  CHECK(node["devices"][0]["pci_subsystem"] == "10de:16c1");
  CHECK(node["sources"]["devices.pci_id"] == "nvmlDeviceGetPciInfo_v3, vendor, device");
  tree.nvml.errors["nvmlDeviceGetPciInfo_v3"] = 3;
  const auto silent = tree.describe(FABRICHECK_TEST_NVML);
  CHECK(silent["devices"][0]["pci_id"].is_null());
  CHECK(reason(silent, "devices.pci_id") == "device 0: the driver does not tell it");
}

TEST_CASE("an error of the runtime about a pair leaves its access unknown") {
  Frontier tree;
  tree.facts().peer_access = [](int from, int to) {
    if (from == 2 && to == 3) {
      throw Failure(Status::device_error, "no answer");
    }
    return true;
  };
  const auto node = tree.describe();
  CHECK(link_of(node, 2, 3)["peer_access"].is_null());
  CHECK(link_of(node, 2, 3)["links"] == 4);
  CHECK(reason(node, "links.peer_access") == "pair 2-3: no answer");
}

TEST_CASE("two H100 are joined by a switch, by all links of each") {
  const TwoH100 tree;
  const auto node = tree.describe(FABRICHECK_TEST_NVML);
  const auto link = link_of(node, 0, 1);
  CHECK(link["kind"] == "nvswitch");
  CHECK(link["links"] == 18);
  CHECK(link["gb_per_s"].get<double>() == doctest::Approx(26.562));
  CHECK(link["peer_access"] == true);
  const auto& device = node["devices"][1];
  CHECK(device["numa_domain"] == 0);
  CHECK(device["cores"].size() == 32);
  CHECK(node["sources"]["devices.cores"] == "nvmlDeviceGetCpuAffinity");
  CHECK(device["compute_partition"] == "none");
  CHECK(device["pci_id"] == "10de:2330");
  CHECK(device["pci_subsystem"] == "10de:16c1");
  CHECK(device["host_link"]["kind"] == "pcie");
  CHECK(device["pcie"]["gt_per_s"] == 32.0);  // as /sys has it, which goes first
  CHECK(function_at(node, "0000:00:07.0")["in_driver"] == true);
  check_provenance(node);
}

TEST_CASE("without a runtime the drivers list the devices of NVIDIA's library, and of KFD") {
  const TwoH100 tree;
  const auto devices = tree.listed(FABRICHECK_TEST_NVML);
  REQUIRE(devices.size() == 2);
  CHECK(devices[1]["pci_address"] == "0000:00:07.0");
  CHECK(devices[1]["arch"] == "sm_90");
  CHECK(tree.listed().empty());
  const Frontier frontier;
  const auto dies = frontier.listed();
  REQUIRE(dies.size() == 8);
  for (std::size_t i = 0; i < dies.size(); ++i) {
    CHECK(dies[i]["pci_address"] == frontier.describe()["devices"][i]["pci_address"]);
    CHECK(dies[i]["arch"] == "gfx");  // the tree does not have gfx_target_version
  }
}

TEST_CASE("links that are down are no links") {
  const TwoH100 tree;
  auto& nvml = tree.nvml;
  nvml.links_down = 2;
  nvml.p2p_status = 3;
  nvml.fields = {};
  const auto node = tree.describe(FABRICHECK_TEST_NVML);
  CHECK(link_of(node, 0, 1)["links"] == 16);
  CHECK(link_of(node, 0, 1)["peer_access"] == false);
  CHECK(link_of(node, 0, 1)["gb_per_s"].is_null());
  CHECK(reason(node, "links.gb_per_s").find("does not tell field 164") != std::string::npos);
}

TEST_CASE("NVLink from device to device leads to that device alone") {
  const TwoH100 tree;
  auto& nvml = tree.nvml;
  nvml.links = 4;
  nvml.end_kind = 0;
  const auto node = tree.describe(FABRICHECK_TEST_NVML);
  CHECK(link_of(node, 0, 1)["kind"] == "nvlink");
  CHECK(link_of(node, 0, 1)["links"] == 4);
  CHECK(link_of(node, 1, 0)["kind"] == "pcie");  // its links lead to 0000:00:07.0 in this library
  CHECK(link_of(node, 1, 0)["links"] == 0);
}

TEST_CASE("a device without NVLink is joined by PCIe, as NVML tells it where /sys does not") {
  const TwoH100 tree;
  auto& nvml = tree.nvml;
  nvml.links = 0;
  nvml.c2c = 1;
  for (const auto* name :
       {"current_link_width", "max_link_width", "current_link_speed", "max_link_speed"}) {
    fs::remove(tree.function("0000:00:06.0") / name);
  }
  const auto node = tree.describe(FABRICHECK_TEST_NVML);
  CHECK(link_of(node, 0, 1)["kind"] == "pcie");
  CHECK(node["devices"][0]["pcie"]["width"] == 16);
  CHECK(node["devices"][0]["pcie"]["gt_per_s"] == 16.0);
  CHECK(node["devices"][0]["pcie"]["gt_per_s_max"] == 32.0);
  CHECK(node["devices"][0]["host_link"]["kind"] == "nvlink-c2c");
  check_provenance(node);
}

TEST_CASE("a library without a function, and none at all, leave reasons") {
  const TwoH100 tree(FABRICHECK_TEST_OLD_NVML);
  const auto old = tree.describe(FABRICHECK_TEST_OLD_NVML);
  CHECK(link_of(old, 0, 1)["kind"].is_null());
  CHECK(reason(old, "links.kind") ==
        "this version of NVML has no nvmlDeviceGetNvLinkRemoteDeviceType");
  CHECK(old["devices"][0]["cores"].size() == 32);
  check_provenance(old);
  const auto none = tree.describe();
  CHECK(reason(none, "links.kind").rfind("cannot open libno-such.so", 0) == 0);
  CHECK(none["devices"][0]["pcie"]["width"] == 16);
  CHECK(none["devices"][0]["numa_domain"] == 0);
  check_provenance(none);
}

TEST_CASE("virtual devices share the memory of the machine, and have no links") {
  Tree tree;
  tree.add_domain();
  for (int i = 0; i < 2; ++i) {
    tree.facts().devices.push_back({{"name", "virtual"},
                                    {"arch", "host"},
                                    {"memory_bytes", 1024},
                                    {"pci_address", nullptr},
                                    {"numa_domain", 0}});
  }
  const auto node = tree.describe();
  CHECK(link_of(node, 1, 0)["kind"] == "none");
  CHECK(node["devices"][1]["cores"] == cores_of(0));
  CHECK(node["pci_functions"].is_null());
  CHECK(reason(node, "pci_functions").find("bus/pci/devices cannot be read") != std::string::npos);
  check_provenance(node);
}

TEST_CASE("ROCm's version is that of the installation that HIP was loaded from, or not told") {
  const auto root = fs::temp_directory_path() / ("fabricheck-rocm-" + std::to_string(getpid()));
  fs::remove_all(root);
  const auto core = root / "opt/rocm/core-10.1";
  write(core / ".info/version", "10.1.0\n");
  write(core / "lib/libamdhip64.so.7", "");
  fs::create_directory_symlink(core / "lib", root / "opt/rocm/lib");
  CHECK(rocm_version_of(core / "lib/libamdhip64.so.7") == "10.1.0");
  // A link from another folder leads to the same installation.
  CHECK(rocm_version_of(root / "opt/rocm/lib/libamdhip64.so.7") == "10.1.0");
  write(root / "opt/rocm-6.3.1/.info/version", "6.3.1-48 (build)\n");
  write(root / "opt/rocm-6.3.1/lib/llvm/libamdhip64.so", "");
  CHECK(rocm_version_of(root / "opt/rocm-6.3.1/lib/llvm/libamdhip64.so") == "6.3.1-48");
  // Spack has HIP in a prefix of its own, beside a ROCm of another version.
  write(root / "spack/hip-7.1.0/lib/libamdhip64.so.7", "");
  CHECK(!rocm_version_of(root / "spack/hip-7.1.0/lib/libamdhip64.so.7"));
  write(root / "opt/rocm-6.3.1/lib/program", "");
  CHECK(!rocm_version_of(root / "opt/rocm-6.3.1/lib/program"));
  CHECK(!rocm_version_of(root / "opt/rocm/lib/libamdhip64.so.9"));
  CHECK(!rocm_version());  // of the host runtime
  fs::remove_all(root);
}

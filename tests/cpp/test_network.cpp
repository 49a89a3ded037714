// NICs of a tree like /sys, what messages left a node by, and where NICs are.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/nics.hpp"
#include "harness/status.hpp"
#include "mpi/network.hpp"
#include "mpi/plan.hpp"

using namespace fabricheck;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

/// A folder that is removed afterwards.
struct Tree {
  fs::path root = fs::temp_directory_path() / ("fabricheck-nics-" + std::to_string(getpid()));
  Tree() { fs::remove_all(root); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { fs::remove_all(root); }

  [[nodiscard]] NicRoots roots() const { return {root / "sys", root / "proc"}; }
  [[nodiscard]] fs::path of(const std::string& name) const { return root / "sys" / "class" / name; }
};

const std::vector<Nic> kPair{{Nic::Kind::cxi, "cxi0", "hsn0", "02:00:00:00:07:ea"},
                             {Nic::Kind::cxi, "cxi1", "hsn1", "02:00:00:00:07:c1"},
                             {Nic::Kind::net, "hsn0", "hsn0", "02:00:00:00:07:ea"},
                             {Nic::Kind::net, "hsn1", "hsn1", "02:00:00:00:07:c1"}};

using Counts = std::map<std::string, std::uint64_t>;
const Counts kStart{{"cxi0", 100}, {"cxi1", 200}, {"hsn0", 300}, {"hsn1", 400}};

Counts moved(const Counts& by) {
  auto counts = kStart;
  for (const auto& [name, bytes] : by) {
    counts[name] += bytes;
  }
  return counts;
}

}  // namespace

TEST_CASE("NICs have their interface and its address, their counters those of their kind") {
  const Tree tree;
  write(tree.of("cxi/cxi0/device/telemetry/hni_sts_tx_ok_octets"), "1234@1700000000.5\n");
  write(tree.of("cxi/cxi0/device/properties/pcie_corr_err"), "7\n");
  write(tree.of("cxi/cxi0/device/net/hsn0/x"), "");
  write(tree.of("net/hsn0/address"), "02:00:00:00:07:ea\n");
  write(tree.of("net/hsn0/statistics/tx_bytes"), "99\n");
  write(tree.of("net/lo/statistics/tx_bytes"), "garbled\n");
  write(tree.of("infiniband/mlx5_0/ports/1/counters/port_xmit_data"), "25\n");
  const auto found = nics(tree.roots());
  REQUIRE(found.size() == 4);
  CHECK(found[0].name == "cxi0");
  CHECK(found[0].interface == "hsn0");
  CHECK(found[0].address == "02:00:00:00:07:ea");
  CHECK(found[1].name == "mlx5_0");
  CHECK(found[1].interface.empty());
  CHECK(!found[2].bypasses_kernel());
  const auto sent = sent_bytes(found, tree.roots());
  CHECK(sent == Counts{{"cxi0", 1234}, {"hsn0", 99}, {"mlx5_0", 100}});
  CHECK(nic_errors(found, tree.roots()).at("cxi0") ==
        Counts{{"device/properties/pcie_corr_err", 7}});
}

TEST_CASE("The provider is that of the files of NICs that stay open") {
  const Tree tree;
  CHECK(open_provider(tree.roots()).empty());
  const auto fds = tree.root / "proc" / "self" / "fd";
  fs::create_directories(fds);
  fs::create_symlink("/dev/null", fds / "0");
  CHECK(open_provider(tree.roots()).empty());
  fs::create_symlink("/dev/infiniband/uverbs3", fds / "5");
  CHECK(open_provider(tree.roots()) == "verbs");
}

TEST_CASE("Messages went by the NIC whose own counter moved") {
  const auto use = network_use(kPair, kStart, moved({{"cxi1", 1050}, {"cxi0", 20}}), 1000, "cxi");
  CHECK(use.transport == "nic");
  CHECK(use.provider == "cxi");
  REQUIRE(use.nics.size() == 1);
  CHECK(use.nics[0].first == "cxi1");
  CHECK(use.nics[0].second == doctest::Approx(1.05));
}

TEST_CASE("Messages over two NICs name both, the busiest first") {
  const auto use = network_use(kPair, kStart, moved({{"cxi0", 400}, {"cxi1", 610}}), 1000, "cxi");
  REQUIRE(use.nics.size() == 2);
  CHECK(use.nics[0].first == "cxi1");
}

TEST_CASE("What the kernel sent over a NIC is the kernel's, although the NIC carried it") {
  const auto use = network_use(kPair, kStart, moved({{"cxi0", 1020}, {"hsn0", 1010}}), 1000, "");
  CHECK(use.transport == "kernel");
  CHECK(use.provider == "tcp");
  REQUIRE(use.nics.size() == 1);
  CHECK(use.nics[0].first == "hsn0");
}

TEST_CASE("Without a counter that moved messages stayed on the node, if all can be read") {
  CHECK(network_use(kPair, kStart, moved({}), 1000, "").transport == "within-node");
  auto after = moved({});
  after.erase("cxi1");
  const auto unknown = network_use(kPair, kStart, after, 1000, "cxi");
  CHECK(unknown.transport.empty());
  CHECK(to_json(unknown)["transport"].is_null());
}

TEST_CASE("Places are of addresses, of a list of nodes, or unknown") {
  const auto place = Places("address").place_of("n1", "02:00:00:00:07:ea");
  REQUIRE(place);  // HPE's example: group 0, switch 31, port 42
  CHECK(place->group == "0");
  CHECK(place->network_switch == "31");
  CHECK(place->port == "42");
  CHECK(!Places("address").place_of("n1", "3c:ec:ef:00:00:01"));
  CHECK(!Places("address").place_of("n1", "ff:ff:ff:ff:ff:ff"));
  CHECK(!Places("none").place_of("n1", "02:00:00:00:07:ea"));
  const Tree tree;
  write(tree.root / "places", "n1 a leaf1\nn2 a leaf2\n\nn3 b leaf3\n");
  const Places listed((tree.root / "places").string());
  CHECK(distance_of(listed.place_of("n1", ""), listed.place_of("n1", "")) == "same-switch");
  CHECK(distance_of(listed.place_of("n1", ""), listed.place_of("n2", "")) == "same-group");
  CHECK(distance_of(listed.place_of("n1", ""), listed.place_of("n3", "")) == "other-group");
  CHECK(distance_of(listed.place_of("n1", ""), listed.place_of("n4", "")).empty());
}

TEST_CASE("A file of places that is missing or has another line is refused") {
  const Tree tree;
  const auto file = (tree.root / "places").string();
  CHECK_THROWS_WITH_AS(Places{file}, doctest::Contains("cannot be read"), Failure);
  write(file, "n1 a leaf1\nn2 a\n");
  CHECK_THROWS_WITH_AS(Places{file}, doctest::Contains("line 2"), Failure);
  write(file, "n1 a leaf1\nn1 a leaf1\nn1 a leaf2\n");
  CHECK_THROWS_WITH_AS(Places{file}, doctest::Contains("n1 is at two places"), Failure);
  write(file, "\n");
  CHECK_THROWS_WITH_AS(Places{file}, doctest::Contains("has no line"), Failure);
  CHECK_THROWS_WITH_AS(Places{tree.root.string()}, doctest::Contains("has no line"), Failure);
}

TEST_CASE("Counterparts are the ranks with the same number on their nodes") {
  using mpi::RankPair;
  const std::vector<std::string> nodes{"a", "a", "b", "b"};
  CHECK(mpi::counterparts(nodes) == std::vector<RankPair>{{0, 2}, {2, 0}, {1, 3}, {3, 1}});
  CHECK(mpi::counterparts_at_once(nodes) ==
        std::vector<std::vector<RankPair>>{{{0, 2}, {1, 3}}, {{2, 0}, {3, 1}}});
  CHECK(mpi::counterparts({"a", "b", "a", "b"}) ==
        std::vector<RankPair>{{0, 1}, {1, 0}, {2, 3}, {3, 2}});
  CHECK(mpi::counterparts_at_once({"a", "b"}).empty());
}

TEST_CASE("Counterparts of one node, or of nodes with other numbers of ranks, are refused") {
  CHECK_THROWS_WITH_AS(mpi::counterparts({"a", "a"}), doctest::Contains("has one: a"), Failure);
  CHECK_THROWS_WITH_AS(mpi::counterparts({"a", "b", "b"}), doctest::Contains("a has 1, b has 2"),
                       Failure);
}

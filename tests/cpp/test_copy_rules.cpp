#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "harness/copy_rules.hpp"
#include "harness/kfd.hpp"
#include "harness/movers.hpp"

using namespace fabricheck;

namespace {

constexpr std::uint64_t kMi = 1 << 20;

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

std::optional<PeerWay> links(int count) { return PeerWay{true, true, count, 3}; }

/// "kernel", "copy-engine" with the number of engines, or with ? where that is not known.
std::string text(const Mover& mover) {
  if (mover.engine == "kernel") {
    CHECK_FALSE(mover.engines);
    return mover.engine;
  }
  return mover.engine + " " + (mover.engines ? std::to_string(*mover.engines) : "?");
}

std::string peer(const char* version, std::uint64_t bytes, const std::optional<PeerWay>& way) {
  return text(CopyRules(version).peer(bytes, way));
}

std::string host(const char* version, std::uint64_t bytes) {
  return text(CopyRules(version).host(bytes));
}

}  // namespace

TEST_CASE("engines are ganged over parallel links from ROCm 6.0 on") {
  for (const auto* version : {"5.2.21151", "5.7.31921"}) {
    for (const int count : {1, 2, 4}) {
      CHECK(peer(version, 64 * kMi, links(count)) == "copy-engine 1");
    }
    CHECK(peer(version, 64 * kMi, std::nullopt) == "copy-engine 1");
  }
  // As many as the link has, of those that are free just then.
  CHECK(peer("6.0.32831", 64 * kMi, links(1)) == "copy-engine 1");
  CHECK(peer("6.0.32831", 64 * kMi, links(4)) == "copy-engine ?");
  CHECK(peer("6.0.32831", 64 * kMi, PeerWay{true, false, 1, 3}) == "copy-engine ?");
  for (const auto* version : {"6.1.40093", "6.2.41134", "6.3.42134", "6.4.1", "7.0.51831"}) {
    CAPTURE(version);
    CHECK(peer(version, 64 * kMi, links(1)) == "copy-engine 1");
    CHECK(peer(version, 64 * kMi, links(2)) == "copy-engine 2");
    CHECK(peer(version, 64 * kMi, links(4)) == "copy-engine 3");
    CHECK(peer(version, 64 * kMi, PeerWay{true, false, 4, 3}) == "copy-engine 1");
    CHECK(peer(version, 64 * kMi, PeerWay{false, true, 4, 3}) == "copy-engine 1");
    CHECK(peer(version, 64 * kMi, std::nullopt) == "copy-engine ?");
    CHECK(peer(version, 64 * kMi, PeerWay{true, true, 4, 0}) == "copy-engine ?");
    const Variable off("HSA_ENABLE_SDMA_GANG", "0");
    CHECK(peer(version, 64 * kMi, links(4)) == "copy-engine 1");
    CHECK(peer(version, 64 * kMi, std::nullopt) == "copy-engine 1");
  }
  CHECK(peer("6.1", 4095, links(4)) == "copy-engine 1");
  CHECK(peer("6.1", 4096, links(4)) == "copy-engine 3");
}

TEST_CASE("small copies between devices are by kernel from ROCm 6.2 on") {
  for (const auto* version : {"5.2", "5.7", "6.1"}) {
    CHECK(peer(version, 16, links(1)) == "copy-engine 1");
    CHECK(peer(version, kMi, links(1)) == "copy-engine 1");
  }
  for (const auto* version : {"6.2", "6.3", "7.0"}) {
    CAPTURE(version);
    CHECK(peer(version, 16, links(4)) == "kernel");
    CHECK(peer(version, kMi, links(4)) == "kernel");
    CHECK(peer(version, kMi + 1, links(4)) == "copy-engine 3");
    {
      const Variable less("ROC_P2P_SDMA_SIZE", "64");
      CHECK(peer(version, 64 * 1024, links(1)) == "kernel");
      CHECK(peer(version, 64 * 1024 + 1, links(1)) == "copy-engine 1");
    }
    const Variable none("ROC_P2P_SDMA_SIZE", "0");
    const Variable forced("GPU_FORCE_BLIT_COPY_SIZE", "0");
    CHECK(peer(version, 16, links(4)) == "copy-engine 1");
  }
}

TEST_CASE("copies of a few KiB are by kernel from ROCm 7 on, to and from the host too") {
  CHECK(host("6.3", 256) == "copy-engine 1");
  CHECK(host("7.0", 16 * 1024) == "kernel");
  CHECK(host("7.0", 16 * 1024 + 1) == "copy-engine 1");
  const Variable none("GPU_FORCE_BLIT_COPY_SIZE", "0");
  CHECK(host("7.0", 256) == "copy-engine 1");
  const Variable large("GPU_FORCE_BLIT_COPY_SIZE", "4096");
  CHECK(host("6.3", 256) == "kernel");
  CHECK(host("6.3", 4 * kMi) == "kernel");
  CHECK(host("6.3", 4 * kMi + 1) == "copy-engine 1");
  // Before, the smaller ones of these were by engine all the same.
  CHECK(host("6.2", kMi - 1) == "copy-engine 1");
  CHECK(host("6.2", 4 * kMi) == "kernel");
}

TEST_CASE("the variable for copies between devices alone does nothing where engines are ganged") {
  const Variable off("HSA_ENABLE_PEER_SDMA", "0");
  CHECK(peer("5.2", 64 * kMi, links(4)) == "copy-engine 1");
  CHECK(peer("5.7", 64 * kMi, links(4)) == "kernel");
  CHECK(peer("6.0", 64 * kMi, links(4)) == "kernel");
  CHECK(peer("6.3", 64 * kMi, links(4)) == "copy-engine 3");
  CHECK(peer("6.3", 64 * kMi, links(1)) == "kernel");
  CHECK(peer("6.3", 64 * kMi, std::nullopt) == "copy-engine ?");
  CHECK(host("5.7", 64 * kMi) == "copy-engine 1");
  {
    const Variable gang("HSA_ENABLE_SDMA_GANG", "0");
    CHECK(peer("6.3", 64 * kMi, links(4)) == "kernel");
  }
  CHECK(CopyRules("5.2").notes(true)[0].find("this ROCm does not know it") != std::string::npos);
  CHECK(CopyRules("5.7").notes(true)[0].find("not engines") != std::string::npos);
  CHECK(CopyRules("6.3").notes(true)[0].find("several together still do") != std::string::npos);
  CHECK(CopyRules("6.3").notes(false).empty());
}

TEST_CASE("with all engines off kernels copy, in every version") {
  const Variable off("HSA_ENABLE_SDMA", "0");
  for (const auto* version : {"5.2", "5.7", "6.0", "6.3", "7.0"}) {
    CHECK(peer(version, 64 * kMi, links(4)) == "kernel");
    CHECK(host(version, 64 * kMi) == "kernel");
    CHECK(CopyRules(version).notes(false).size() == 1);
  }
}

TEST_CASE("a version that is not known is told by a sentence, and counts as the newest") {
  CHECK(CopyRules("6.3.42134").notes(true).empty());
  CHECK(CopyRules("5.2.21151").notes(true).empty());
  CHECK(CopyRules("7.16.26401").notes(true).empty());  // of ROCm 10.1
  for (const auto* version : {"9.1.12345", "unknown", "", "6", "six.three", "-1.2"}) {
    CAPTURE(version);
    REQUIRE(CopyRules(version).notes(true).size() == 1);
    CHECK(CopyRules(version).notes(true)[0] ==
          "HIP '" + std::string(version) +
              "' is not known: what moves copies is told as of 7, the newest known one");
    CHECK(peer(version, 64 * kMi, links(4)) == "copy-engine 3");
    CHECK(host(version, 256) == "kernel");
  }
  CHECK(CopyRules("4.5.2").notes(true)[0].find("as of 5.2, the oldest known one") !=
        std::string::npos);
  CHECK(peer("4.5.2", 64 * kMi, links(4)) == "copy-engine 1");
}

TEST_CASE("a variable with a word that ROCm does not know is told by a sentence") {
  const Variable engines("HSA_ENABLE_SDMA", "off");
  CHECK(CopyRules("6.3").notes(true)[0] ==
        "HSA_ENABLE_SDMA is 'off', neither 0 nor 1: ROCm does what it does without it");
  CHECK(host("6.3", kMi) == "copy-engine 1");
  const Variable size("ROC_P2P_SDMA_SIZE", "64K");
  REQUIRE(CopyRules("6.3").notes(true).size() == 2);
  CHECK(CopyRules("6.3").notes(true)[1] ==
        "ROC_P2P_SDMA_SIZE is '64K', no number of KiB: ROCm reads it as 64");
  CHECK(peer("6.3", 64 * 1024, links(1)) == "kernel");
  CHECK(peer("6.3", 64 * 1024 + 1, links(1)) == "copy-engine 1");
}

TEST_CASE("within a device of AMD a kernel copies, whatever the engines are") {
  Series local;
  Movers("gfx90a:sramecc+:xnack-", "5.7").of_peers(local, 1, 1, 64 * kMi);
  CHECK(local.engine == "kernel");
  CHECK_FALSE(local.engines);
  Movers("sm_90", "13.0").of_peers(local, 1, 1, kMi);
  CHECK(local.engine == "copy-engine");
}

TEST_CASE("of devices that are not AMD's the number of engines is not known") {
  const Variable off("HSA_ENABLE_SDMA", "0");
  const Movers movers("sm_90", "13.0");
  Series series;
  movers.of_host(series, kMi);
  CHECK(series.engine == "copy-engine");
  CHECK_FALSE(series.engines);
  movers.of_peers(series, 0, 1, kMi);
  CHECK(series.engine == "copy-engine");
  CHECK(movers.notes(true).empty());
  CHECK(movers.pageable_note().empty());
  Movers("gfx90a:sramecc+:xnack-", "6.3").of_host(series, kMi);
  CHECK(series.engine == "kernel");
}

namespace {

/// A tree as the kernel driver makes it, with two devices and one CPU.
class Topology {
 public:
  explicit Topology(const std::string& link) {
    root_ = std::filesystem::temp_directory_path() / ("kfd" + std::to_string(getpid()));
    write("nodes/0/properties", "cpu_cores_count 16\nsimd_count 0\ndomain 0\nlocation_id 0\n");
    write("nodes/4/properties",
          "simd_count 440\nnum_sdma_engines 2\nnum_sdma_xgmi_engines 3\nlocation_id 49408\n"
          "domain 0\n");
    for (const char* compute_unit : {"0", "1"}) {
      write(std::string("nodes/4/caches/") + compute_unit + "/properties",
            "processor_id_low 1\nlevel 1\nsize 32\ntype 9\nsibling_map 1,0\n");
    }
    for (const char* die : {"2", "3"}) {
      write(std::string("nodes/4/caches/") + die + "/properties", "level 2\nsize 4096\n");
    }
    write("nodes/4/caches/4/properties", "level 3\nsize 262144\n");
    write("nodes/5/properties", "simd_count 440\nlocation_id 50688\ndomain 0\n");
    write("nodes/4/io_links/0/properties", "type 2\nnode_from 4\nnode_to 0\nweight 20\n");
    write("nodes/4/io_links/1/properties", "node_from 4\nnode_to 5\n" + link);
  }
  ~Topology() { std::filesystem::remove_all(root_); }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  [[nodiscard]] std::uint64_t cache(const char* address) const {
    return kfd_cache(root_.string(), address);
  }
  [[nodiscard]] std::optional<PeerWay> way(const char* from, const char* to) const {
    return kfd_way(root_.string(), from, to);
  }

 private:
  void write(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << content;
  }
  std::filesystem::path root_;
};

}  // namespace

TEST_CASE("the width of a link is what the kernel driver tells") {
  const Topology quad("type 11\nweight 15\nmin_bandwidth 50000\nmax_bandwidth 200000\n");
  const auto way = quad.way("0000:c1:00.0", "0000:c6:00.0");
  REQUIRE(way);
  CHECK(way->xgmi);
  CHECK(way->direct);
  CHECK(way->links == 4);
  CHECK(way->engines == 3);
  CHECK_FALSE(quad.way("0000:c6:00.0", "0000:c1:00.0"));  // no link of that direction
  CHECK_FALSE(quad.way("0000:c1:00.0", "0000:d1:00.0"));
  CHECK_FALSE(quad.way("somewhere", "0000:c6:00.0"));
  CHECK_FALSE(kfd_way("/nowhere", "0000:c1:00.0", "0000:c6:00.0"));
}

TEST_CASE("the driver tells the caches behind L2, of all dies together") {
  const Topology tree("type 11\n");
  CHECK(tree.cache("0000:c1:00.0") == 256 * kMi);
  CHECK(tree.cache("0000:c6:00.0") == 0);
  CHECK(tree.cache("0000:d1:00.0") == 0);
}

TEST_CASE("without bandwidths a link counts once, as ROCm counts it") {
  const Topology old("type 11\nweight 15\nmin_bandwidth 0\nmax_bandwidth 0\n");
  CHECK(old.way("0000:c1:00.0", "0000:c6:00.0")->links == 1);
  const Topology far("type 11\nweight 30\nmin_bandwidth 50000\nmax_bandwidth 50000\n");
  CHECK_FALSE(far.way("0000:c1:00.0", "0000:c6:00.0")->direct);
  const Topology pcie("type 2\nweight 40\nmin_bandwidth 0\nmax_bandwidth 0\n");
  CHECK_FALSE(pcie.way("0000:c1:00.0", "0000:c6:00.0")->xgmi);
}

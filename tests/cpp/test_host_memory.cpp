#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/hip.hpp"
#include "harness/host.hpp"
#include "harness/huge_pages.hpp"
#include "harness/numa.hpp"

using namespace fabricheck;

namespace {

constexpr std::size_t kBytes = 3 << 20;

int usable_domain() {
  for (const auto& domain : host_domains()) {
    if (domain.obstacle.empty()) {
      return domain.index;
    }
  }
  return -1;
}

std::string mapping(const std::string& range, int size, int rss, int huge, int reserved = 0) {
  return range + " rw-p 00000000 00:00 0 \nSize:  " + std::to_string(size) +
         " kB\nRss:   " + std::to_string(rss) + " kB\nAnonHugePages:  " + std::to_string(huge) +
         " kB\nPrivate_Hugetlb:  " + std::to_string(reserved) + " kB\nVmFlags: rd wr mr\n";
}

}  // namespace

TEST_CASE("host memory of both kinds lies where it was asked for") {
  const int domain = usable_domain();
  for (const auto kind : {HostMemory::pinned, HostMemory::pageable}) {
    auto buffer = Buffer::on_host(domain, kBytes, kind);
    REQUIRE(buffer.as<char>() != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.as<char>()) % 4096 == 0);
    buffer.as<char>()[kBytes - 1] = 7;
    CHECK(buffer.numa_domain() == domain);
    CHECK(page_places(buffer.as<char>(), kBytes).domains == std::vector<int>{domain});
    buffer.prove_pages();
    const auto moved = std::move(buffer);
    CHECK(moved.numa_domain() == domain);
    CHECK(moved.as<char>()[kBytes - 1] == 7);
  }
}

TEST_CASE("more host memory than there is, is refused with both sizes") {
  for (const auto kind : {HostMemory::pinned, HostMemory::pageable}) {
    try {
      (void)Buffer::on_host(-1, 1ULL << 50, kind);
      FAIL("no error");
    } catch (const Failure& failure) {
      CHECK(failure.status() == Status::unsupported);
      const std::string sentence = failure.what();
      CHECK(sentence.find("1024 TiB more") != std::string::npos);
      CHECK((sentence.find("page-locked") != std::string::npos) == (kind == HostMemory::pinned));
    }
  }
}

TEST_CASE("page-locked memory that is not coherent is refused where a runtime has none") {
  for (const auto kind : {HostMemory::pinned, HostMemory::noncoherent}) {
    const auto flags = host_malloc_flags(kind, false);
    CHECK((flags & hipHostMallocMapped) != 0);
    CHECK(((flags & hipHostMallocCoherent) != 0) == (kind == HostMemory::pinned));
    CHECK(host_malloc_flags(kind, true) == (flags | hipHostMallocNumaUser));
  }
  try {
    (void)Buffer::on_host(-1, kBytes, HostMemory::noncoherent);
    FAIL("no error");
  } catch (const Failure& failure) {
    CHECK(failure.status() == Status::unsupported);
    CHECK(std::string(failure.what()).find("is always coherent") != std::string::npos);
  }
}

TEST_CASE("memory limits of control groups count, in version 1 and 2, of all groups above") {
  const auto root =
      std::filesystem::temp_directory_path() / ("fabricheck-groups-" + std::to_string(getpid()));
  const auto write = [&root](const std::string& group, const std::string& prefix, const char* limit,
                             const char* used) {
    std::filesystem::create_directories(root / group);
    const bool first = prefix == "memory/";
    std::ofstream(root / group / (first ? "memory.limit_in_bytes" : "memory.max")) << limit;
    std::ofstream(root / group / (first ? "memory.usage_in_bytes" : "memory.current")) << used;
  };
  CHECK_FALSE(group_memory_available("0::/job/step\n", root));
  write("job/step", "", "max\n", "10\n");
  CHECK_FALSE(group_memory_available("0::/job/step\n", root));
  write("job", "", "1000\n", "300\n");
  CHECK(group_memory_available("0::/job/step\n", root) == 700);
  CHECK_FALSE(group_memory_available("0::/other\n", root));
  // Version 1, as Slurm makes them beside an empty version 2.
  const std::string hybrid = "9:cpuset:/slurm\n4:rdma,memory:/slurm/job/step\n0::/other\n";
  CHECK_FALSE(group_memory_available(hybrid, root));
  write("memory/slurm/job/step", "memory/", "9223372036854771712\n", "200\n");
  write("memory/slurm/job", "memory/", "500\n", "200\n");
  CHECK(group_memory_available(hybrid, root) == 300);
  write("memory/slurm", "memory/", "100\n", "200\n");
  CHECK(group_memory_available(hybrid, root) == 0);
  std::filesystem::remove_all(root);
}

TEST_CASE("the smallest quota of the control groups grants time of cores") {
  const auto root =
      std::filesystem::temp_directory_path() / ("fabricheck-quotas-" + std::to_string(getpid()));
  const auto write = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  };
  CHECK_FALSE(group_cpu_quota("0::/pod/box\n", root));
  write("pod/box/cpu.max", "max 100000\n");
  CHECK_FALSE(group_cpu_quota("0::/pod/box\n", root));
  write("pod/cpu.max", "400000 100000\n");
  CHECK(group_cpu_quota("0::/pod/box\n", root) == 4.0);
  CHECK_FALSE(group_cpu_quota("0::/other\n", root));
  // A container sees its own group as the root.
  write("cpu.max", "150000 100000\n");
  CHECK(group_cpu_quota("0::/\n", root) == 1.5);
  // Version 1, as under Docker.
  const std::string first = "4:cpuset:/box\n3:cpu,cpuacct:/box\n0::/\n";
  write("cpu/box/cpu.cfs_quota_us", "-1\n");
  write("cpu/box/cpu.cfs_period_us", "100000\n");
  CHECK(group_cpu_quota(first, root) == 1.5);
  write("cpu/box/cpu.cfs_quota_us", "50000\n");
  CHECK(group_cpu_quota(first, root) == 0.5);
  std::filesystem::remove_all(root);
}

TEST_CASE("what each domain has free is read from its meminfo") {
  const auto nodes =
      std::filesystem::temp_directory_path() / ("fabricheck-nodes-" + std::to_string(getpid()));
  CHECK(free_memory_of_domains(nodes).empty());
  for (const std::string domain : {"0", "3"}) {
    std::filesystem::create_directories(nodes / ("node" + domain));
    std::ofstream(nodes / ("node" + domain) / "meminfo")
        << "Node " + domain + " MemTotal:       131000 kB\nNode " + domain + " MemFree:        10" +
               domain + " kB\n";
  }
  std::filesystem::create_directories(nodes / "power");
  CHECK(free_memory_of_domains(nodes) ==
        std::map<int, std::uint64_t>{{0, 100 * 1024}, {3, 103 * 1024}});
  std::filesystem::remove_all(nodes);
}

TEST_CASE("pageable memory is a mapping of its own, so that its huge pages can be counted") {
  const auto first = Buffer::on_host(-1, kBytes, HostMemory::pageable);
  const auto second = Buffer::on_host(-1, kBytes, HostMemory::pageable);
  for (const auto* buffer : {&first, &second}) {
    if (const auto huge = huge_page_bytes(buffer->as<void>(), kBytes)) {
      CHECK(*huge <= kBytes);
    }
  }
}

TEST_CASE("huge pages are counted from the text of smaps") {
  const auto plain = mapping("1000-3000", 8, 8, 0);
  CHECK(huge_bytes_in(plain, 0x1000, 0x3000) == 0);
  CHECK(huge_bytes_in(plain, 0x1000, 0x2000) == 0);
  const auto mixed = mapping("200000-800000", 6144, 6144, 4096);
  CHECK(huge_bytes_in(mixed, 0x200000, 0x800000) == 4 << 20);
  CHECK(huge_bytes_in(plain + mixed, 0x200000, 0x800000) == 4 << 20);
  const auto whole = mapping("200000-600000", 4096, 4096, 4096);
  CHECK(huge_bytes_in(whole, 0x200000, 0x300000) == 1 << 20);
  const auto reserved = mapping("200000-600000", 4096, 0, 0, 4096);
  CHECK(huge_bytes_in(reserved, 0x200000, 0x600000) == 4 << 20);
  const auto two = mapping("1000-3000", 8, 8, 0) + mapping("3000-203000", 2048, 2048, 2048);
  CHECK(huge_bytes_in(two, 0x1000, 0x203000) == 2 << 20);
}

TEST_CASE("what the system does not say of huge pages is not known") {
  CHECK_FALSE(huge_bytes_in("", 0x1000, 0x2000));
  CHECK_FALSE(huge_bytes_in(mapping("1000-3000", 8, 8, 0), 0x1000, 0x4000));
  // Pages of a driver are mapped, and counted nowhere.
  CHECK_FALSE(huge_bytes_in(mapping("1000-3000", 8, 0, 0), 0x1000, 0x3000));
  // Which part of the mapping is huge?
  CHECK_FALSE(huge_bytes_in(mapping("200000-800000", 6144, 6144, 4096), 0x200000, 0x400000));
}

// Where host memory lies, on a kernel and a HIP that are stand-ins: the kernel's policies and pages
// are tables, and hipHostMalloc places memory as ROCm's does.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/gate.hpp"
#include "harness/hip.hpp"
#include "harness/host.hpp"
#include "memcpy/copies.hpp"
#include "pingpong/arrays.hpp"

using namespace fabricheck;
using namespace fabricheck::copies;
using namespace fabricheck::pingpong;

namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr std::uintptr_t kPage = 4096;

struct Kernel {
  int policy = MPOL_DEFAULT;
  unsigned long mask = 0;
  bool forbids = false;                     ///< as a container's profile may
  bool moves = true;                        ///< pages, when it is asked to
  std::map<std::uintptr_t, int> domain_of;  ///< of pages
  std::vector<std::uintptr_t> asked;

  [[nodiscard]] int preferred() const { return mask == 0 ? 0 : __builtin_ctzl(mask); }
  void place(const void* data, std::size_t bytes, int domain) {
    const auto first = reinterpret_cast<std::uintptr_t>(data);
    for (auto page = first; page < first + bytes; page += kPage) {
      domain_of[page] = domain;
    }
  }
  long move_pages(unsigned long count, void** pages, const int* targets, int* status) {
    for (unsigned long i = 0; i < count; ++i) {
      const auto page = reinterpret_cast<std::uintptr_t>(pages[i]);
      if (targets != nullptr && moves) {
        domain_of[page] = targets[i];
      }
      asked.push_back(page);
      status[i] = domain_of.emplace(page, preferred()).first->second;
    }
    return 0;
  }
};
Kernel kernel;

struct Hip {
  bool libnuma = true;  ///< built with it, so that it follows the thread's policy
  unsigned flags = 0;   ///< of the last call
};
Hip hip;

/// A new machine, and the one of before for the next test.
struct Fresh {
  Fresh() { reset(); }
  ~Fresh() { reset(); }
  static void reset() {
    kernel = {};
    hip = {};
  }
};

}  // namespace

extern "C" long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (auto& one : a) {
    one = va_arg(list, long);
  }
  va_end(list);
  const bool of_memory = number == SYS_set_mempolicy || number == SYS_get_mempolicy ||
                         number == SYS_mbind || number == SYS_move_pages;
  if (of_memory && kernel.forbids) {
    errno = EPERM;
    return -1;
  }
  switch (number) {
    case SYS_set_mempolicy:
      kernel.policy = static_cast<int>(a[0]);
      kernel.mask = a[1] == 0 ? 0 : *reinterpret_cast<unsigned long*>(a[1]);
      return 0;
    case SYS_get_mempolicy:
      *reinterpret_cast<int*>(a[0]) = kernel.policy;
      if (a[1] != 0) {
        *reinterpret_cast<unsigned long*>(a[1]) = kernel.mask;
      }
      return 0;
    case SYS_mbind:
      kernel.place(reinterpret_cast<void*>(a[0]), static_cast<std::size_t>(a[1]),
                   __builtin_ctzl(*reinterpret_cast<unsigned long*>(a[3])));
      return 0;
    case SYS_move_pages:
      return kernel.move_pages(static_cast<unsigned long>(a[1]), reinterpret_cast<void**>(a[2]),
                               reinterpret_cast<int*>(a[3]), reinterpret_cast<int*>(a[4]));
    default: {
      static const auto real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
      return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
  }
}

// Threads are where they want to be: this machine need not have a core for each domain.
extern "C" int sched_setaffinity(pid_t, std::size_t, const cpu_set_t*) noexcept { return 0; }
extern "C" int sched_getaffinity(pid_t, std::size_t size, cpu_set_t* cores) noexcept {
  std::memset(cores, 0, size);
  int device = 0;
  (void)hipGetDevice(&device);
  CPU_SET_S(static_cast<std::size_t>(device), size, cores);
  return 0;
}

// Where it is asked to and was built with libnuma, ROCm looks at the thread's policy, and allocates
// nothing when it may not; else it takes the domain of the current device. Device i of the host
// runtime is on domain i here.
extern "C" hipError_t __real__Z13hipHostMallocPPvmj(void** data, std::size_t bytes, unsigned flags);
extern "C" hipError_t __wrap__Z13hipHostMallocPPvmj(void** data, std::size_t bytes,
                                                    unsigned flags) {
  const bool asks = hip.libnuma && (flags & hipHostMallocNumaUser) != 0;
  if (asks && kernel.forbids) {
    return hipErrorOutOfMemory;
  }
  const auto error = __real__Z13hipHostMallocPPvmj(data, bytes, flags);
  int domain = 0;
  (void)hipGetDevice(&domain);
  if (asks && (kernel.policy == MPOL_BIND || kernel.policy == MPOL_PREFERRED)) {
    domain = kernel.preferred();
  }
  hip.flags = flags;
  if (error == hipSuccess) {
    kernel.place(*data, bytes, domain);
  }
  return error;
}

TEST_CASE("new memory prefers a domain for a while, by a policy that ROCm follows") {
  const Fresh fresh;
  struct Former {
    int policy;
    unsigned long mask;
  };
  for (const auto& former : {Former{MPOL_DEFAULT, 0}, Former{MPOL_BIND, 3},
                             Former{MPOL_INTERLEAVE, 15}, Former{MPOL_PREFERRED, 2}}) {
    kernel.policy = former.policy;
    kernel.mask = former.mask;
    {
      const HostBinding binding(2);
      CHECK(kernel.policy == MPOL_PREFERRED);
      CHECK(kernel.mask == 1UL << 2);
    }
    CHECK(kernel.policy == former.policy);
    CHECK(kernel.mask == former.mask);
  }
}

TEST_CASE("memory of memcpy and pingpong lies on each domain asked for, near whichever device") {
  for (const bool libnuma : {true, false}) {
    for (const auto kind : {HostMemory::pinned, HostMemory::pageable}) {
      for (const int domain : {0, 1, 2, 3}) {
        const Fresh fresh;
        hip.libnuma = libnuma;
        FABRICHECK_HIP(hipSetDevice(3 - domain));
        auto buffer = Buffer::on_host(domain, kBytes, kind);
        CHECK(buffer.numa_domain() == domain);
        ExchangeNeeds needs{kind, kBytes, true, true};
        ExchangeArrays arrays({0, 3 - domain, domain}, needs, std::nullopt);
        arrays.prove_pages();
        CHECK(arrays.source_place({kind, Exchange::h2d, kBytes}).numa_domain == domain);
        CHECK(arrays.destination_place({kind, Exchange::d2h, kBytes}).numa_domain == domain);
        FABRICHECK_HIP(hipSetDevice(domain));  // where the thread then counts as bound
        HostSide host(domain, kind, {kBytes, true, true}, std::nullopt);
        host.prove_pages();
        CHECK(host.source_place().numa_domain == domain);
        CHECK(host.destination_place().numa_domain == domain);
      }
    }
  }
}

TEST_CASE(
    "where no domain is asked for, memory is where plain hipHostMalloc puts it, and is told") {
  for (const int device : {0, 1, 2, 3}) {
    const Fresh fresh;
    FABRICHECK_HIP(hipSetDevice(device));
    HostSide host(-1, HostMemory::pinned, {kBytes, true, true}, std::nullopt);
    CHECK((hip.flags & hipHostMallocNumaUser) == 0);
    host.prove_pages();
    CHECK(host.source_place().numa_domain == device);
    CHECK(host.destination_place().numa_domain == device);
  }
}

TEST_CASE("pages are moved only where they went astray, and never where a fault put them") {
  const Fresh fresh;
  FABRICHECK_HIP(hipSetDevice(3));
  (void)Buffer::on_host(1, kBytes);
  CHECK(kernel.asked.size() == kBytes / kPage);  // asked once, none moved
  CHECK_THROWS_WITH_AS((void)Buffer::on_host(1, kBytes, HostMemory::pinned, 2),
                       "host memory was asked for on NUMA domain 1, but its pages are on domain "
                       "2, and the system does not tell what is free there",
                       Failure);
}

TEST_CASE("pages that stay astray end the run, and the sentence names both domains") {
  const Fresh fresh;
  hip.libnuma = false;
  kernel.moves = false;
  FABRICHECK_HIP(hipSetDevice(3));
  try {
    (void)Buffer::on_host(2, kBytes);
    FAIL("no error");
  } catch (const Failure& failure) {
    CHECK(failure.status() == Status::setting);
    CHECK(std::string(failure.what())
              .find("host memory was asked for on NUMA domain 2, but its pages are on domain 3") ==
          0);
  }
}

TEST_CASE("pages that move away while they are used are found") {
  const Fresh fresh;
  auto buffer = Buffer::on_host(1, kBytes);
  kernel.place(buffer.as<char>() + kBytes / 2, kPage, 3);
  CHECK_THROWS_WITH_AS(
      buffer.prove_pages(),
      "host memory was asked for on NUMA domain 1, but its pages are on domains 1, 3, "
      "where they were moved while they were used",
      Failure);
}

TEST_CASE("pages elsewhere are a setting, and what was free in all domains is named") {
  const std::map<int, std::uint64_t> free_before{{0, 1ULL << 30}, {1, 64ULL << 30}};
  const auto full = astray_failure("pages are astray", 0, 2ULL << 30, free_before);
  CHECK(full.status() == Status::setting);
  CHECK(std::string(full.what()) ==
        "pages are astray: of 2 GiB asked for, free before were 1 GiB on domain 0, 64 GiB on "
        "domain 1; give back page cache or end what uses memory of domain 0, or ask for smaller "
        "arrays");
  const auto policy = astray_failure("pages are astray", 1, 2ULL << 30, free_before);
  CHECK(policy.status() == Status::setting);
  CHECK(std::string(policy.what()) ==
        "pages are astray: of 2 GiB asked for, free before were 1 GiB on domain 0, 64 GiB on "
        "domain 1; see the memory policy of the job (numactl --show)");
  const auto unknown = astray_failure("pages are astray", 2, 2ULL << 30, free_before);
  CHECK(unknown.status() == Status::setting);
  CHECK(std::string(unknown.what()) ==
        "pages are astray, and the system does not tell what is free there");
}

TEST_CASE("where the system forbids to ask, memory is there and its domain is not known") {
  const Fresh fresh;
  CHECK(pages_obstacle().empty());
  kernel.forbids = true;
  CHECK(pages_obstacle().find("move_pages: Operation not permitted") != std::string::npos);
  auto buffer = Buffer::on_host(1, kBytes);
  buffer.prove_pages();
  CHECK(buffer.numa_domain() == -1);
}

TEST_CASE("of an array above 4 GiB pages are asked for from end to end") {
  const Fresh fresh;
  constexpr std::size_t bytes = 6ULL << 30;
  void* data = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(data != MAP_FAILED);
  (void)page_places(data, bytes);
  (void)munmap(data, bytes);
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  const std::set<std::uintptr_t> asked(kernel.asked.begin(), kernel.asked.end());
  CHECK(asked.size() == kPagesAsked);
  CHECK(*asked.begin() == first);
  CHECK(*asked.rbegin() == first + bytes - kPage);
  auto before = first;
  std::uintptr_t farthest = 0;
  for (const auto page : asked) {
    farthest = std::max(farthest, page - before);
    before = page;
  }
  CHECK(farthest <= bytes / kPagesAsked + kPage);
}

TEST_CASE("of a small array every page is asked for, its parts of pages too") {
  const Fresh fresh;
  alignas(4096) static char data[5 * 4096];
  (void)page_places(data + 100, 3 * 4096);
  CHECK(kernel.asked.size() == 4);
  CHECK(page_places(data, 0).on_host == 0);
}

TEST_CASE("a gate's memory is coherent by name") {
  const Fresh fresh;
  FABRICHECK_HIP(hipSetDevice(0));
  const StartGate gate;
  const unsigned wanted = hipHostMallocCoherent | hipHostMallocMapped | hipHostMallocPortable;
  CHECK((hip.flags & wanted) == wanted);
}

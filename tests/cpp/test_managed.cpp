#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "harness/status.hpp"
#include "managed/plan.hpp"

using namespace fabricheck;

namespace {

constexpr auto kManaged = SharedMemory::managed;
constexpr auto kPinned = SharedMemory::pinned;
constexpr auto kZeroCopy = Movement::zero_copy;
constexpr auto kMigration = Movement::page_migration;

struct Known {
  const char* arch;
  bool managed, concurrent, pageable;
  std::optional<Movement> movement;  ///< of managed memory; nothing: not supported
  const char* part;                  ///< of the sentence that refuses
};

ManagedMemory asked(const Known& one) {
  return {one.managed, one.concurrent, one.pageable, xnack_of(one.arch)};
}

/// The sentence of a failure with the status `unsupported`.
std::string refusal(const Known& one) {
  try {
    (void)movement_of(kManaged, 3, one.arch, asked(one));
  } catch (const Failure& failure) {
    CHECK(failure.status() == Status::unsupported);
    return failure.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an architecture says whether xnack is on, or nothing") {
  CHECK(xnack_of("gfx90a:sramecc+:xnack+") == true);
  CHECK(xnack_of("gfx90a:sramecc+:xnack-") == false);
  CHECK(xnack_of("gfx90a:xnack-:sramecc+") == false);
  for (const char* arch : {"gfx90a", "gfx90a:sramecc+", "gfx90a:xnack", "sm_90", "host", ""}) {
    CHECK(xnack_of(arch) == std::nullopt);
  }
}

TEST_CASE("how managed memory moves follows from the architecture and the attributes") {
  const Known table[] = {
      // AMD: xnack decides, whatever the attributes say.
      {"gfx90a:sramecc+:xnack+", true, true, true, kMigration, ""},
      {"gfx90a:sramecc+:xnack+", true, false, false, kMigration, ""},
      {"gfx90a:sramecc+:xnack-", true, true, false, kZeroCopy, ""},
      {"gfx90a:sramecc+:xnack-", true, true, true, kZeroCopy, ""},
      // Devices without the word: whether kernels reach pageable memory.
      {"gfx1030", true, true, false, kZeroCopy, ""},
      {"gfx942", true, true, true, kMigration, ""},
      // NVIDIA: pages migrate with concurrent access, and all memory at each launch without.
      {"sm_90", true, true, false, kMigration, ""},
      {"sm_90", true, true, true, kMigration, ""},
      {"sm_52", true, false, false, std::nullopt, "device 3 (sm_52) moves all managed memory"},
      {"gfx90a:sramecc+:xnack+", false, false, true, std::nullopt, "does not support managed"},
      {"host", false, false, false, std::nullopt, "device 3 (host) does not support managed"},
  };
  for (const auto& one : table) {
    CAPTURE(one.arch);
    CHECK(movement_of(kPinned, 3, one.arch, asked(one)) == kZeroCopy);
    if (one.movement) {
      CHECK(movement_of(kManaged, 3, one.arch, asked(one)) == *one.movement);
    } else {
      CHECK(refusal(one).find(one.part) != std::string::npos);
    }
  }
}

TEST_CASE("what is not expected is told with what would help") {
  const std::string on = "gfx90a:sramecc+:xnack+";
  const std::string off = "gfx90a:sramecc+:xnack-";
  CHECK(unexpected(kMigration, kMigration, kManaged, 0, on) == std::nullopt);
  CHECK(unexpected(kZeroCopy, kZeroCopy, kPinned, 0, off) == std::nullopt);
  CHECK(*unexpected(kMigration, kZeroCopy, kManaged, 1, off) ==
        "device 1 (" + off + ") does not migrate pages: HSA_XNACK=1 is needed");
  CHECK(*unexpected(kZeroCopy, kMigration, kManaged, 0, on) ==
        "device 0 (" + on + ") migrates pages: HSA_XNACK=0 is needed");
  CHECK(*unexpected(kZeroCopy, kMigration, kManaged, 0, "sm_90") ==
        "device 0 (sm_90) migrates pages: zero-copy there is of --memory pinned");
  CHECK(*unexpected(kMigration, kZeroCopy, kPinned, 0, on) ==
        "pinned memory does not migrate: page-migration is of --memory managed");
}

TEST_CASE("memory whose pages stay on the host is used by kernels only") {
  for (const auto operation : parse_shared_operations("read,write")) {
    CHECK(is_possible(operation, kZeroCopy));
    CHECK(is_possible(operation, kMigration));
  }
  for (const auto operation :
       parse_shared_operations("host-read,host-write,prefetch-h2d,prefetch-d2h")) {
    CHECK_FALSE(is_possible(operation, kZeroCopy));
    CHECK(is_possible(operation, kMigration));
  }
}

TEST_CASE("who moves the data, and where the pages are before") {
  using Operations = std::vector<SharedOperation>;
  const auto all =
      parse_shared_operations("read,write,host-read,host-write,prefetch-h2d,prefetch-d2h");
  const auto those = [&all](bool (*condition)(SharedOperation)) {
    Operations found;
    for (const auto operation : all) {
      if (condition(operation)) {
        found.push_back(operation);
      }
    }
    return found;
  };
  CHECK(those(by_host) == Operations{SharedOperation::host_read, SharedOperation::host_write});
  CHECK(those(is_prefetch) ==
        Operations{SharedOperation::prefetch_h2d, SharedOperation::prefetch_d2h});
  CHECK(those(starts_on_device) == Operations{SharedOperation::host_read,
                                              SharedOperation::host_write,
                                              SharedOperation::prefetch_d2h});
}

TEST_CASE("lists of names are refused with the name and the choice") {
  CHECK(parse_memories("pinned,managed") == std::vector<SharedMemory>{kPinned, kManaged});
  CHECK_THROWS_WITH_AS((void)parse_memories("pageable"),
                       "'pageable' is not a kind of memory: choose from managed, pinned", Failure);
  CHECK_THROWS_WITH_AS((void)parse_shared_operations("read,copy"),
                       doctest::Contains("'copy' is not an operation: choose from read, write"),
                       Failure);
  CHECK_THROWS_WITH_AS((void)parse_shared_operations("read,read"), "'read,read' names read twice",
                       Failure);
  CHECK_THROWS_AS((void)parse_shared_operations(""), Failure);
}

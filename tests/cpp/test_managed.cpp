#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "harness/status.hpp"
#include "managed/plan.hpp"

using namespace fabricheck;
using namespace fabricheck::managed;

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

TEST_CASE("pages tell whether an operation moved them") {
  const auto pages = [](std::size_t on_host, std::size_t off_host, std::size_t unknown = 0) {
    PagePlaces places;
    places.on_host = on_host;
    places.off_host = off_host;
    places.unknown = unknown;
    return places;
  };
  const auto host = pages(1000, 0);
  const auto device = pages(0, 1000);
  const auto nowhere = pages(0, 0, 1000);
  const std::string amd = "gfx90a:sramecc+:xnack+";
  const std::string stayed_on_device =
      "its pages stayed on the device and were used over the link: zero-copy";
  const std::string stayed_on_host =
      "its pages stayed on the host and were used over the link: zero-copy";
  struct Row {
    const char* operation;
    std::string arch;
    PagePlaces before, after;
    Movement movement;
    std::string remark, obstacle;
  };
  const auto prefetch = Movement::prefetch;
  const Row table[] = {
      {"read", amd, host, device, kMigration, "", ""},
      {"read", amd, host, host, kZeroCopy, stayed_on_host, ""},
      {"host-read", amd, device, host, kMigration, "", ""},
      {"host-read", amd, device, pages(995, 5), kMigration, "", ""},
      {"host-read", amd, device, device, kZeroCopy, stayed_on_device, ""},
      {"host-write", amd, device, device, kZeroCopy, stayed_on_device, ""},
      {"host-write", amd, device, pages(500, 500), kMigration, "",
       "0 % of its pages were on the host before it and 50 % after it, which is neither zero-copy "
       "nor page-migration"},
      {"host-read", amd, host, host, kMigration, "",
       "100 % of its pages were on the host before it and 100 % after it, which is neither "
       "zero-copy nor page-migration"},
      {"prefetch-h2d", amd, host, device, prefetch, "", ""},
      {"prefetch-h2d", amd, host, host, prefetch, "",
       "hipMemPrefetchAsync moved nothing, its pages stayed on the host"},
      {"prefetch-d2h", amd, device, device, prefetch, "",
       "hipMemPrefetchAsync moved nothing, its pages stayed on the device"},
      // Where the system does not say it of all pages, nothing is changed.
      {"prefetch-h2d", amd, nowhere, nowhere, prefetch, "", ""},
      {"host-read", amd, pages(0, 999, 1), device, kMigration, "", ""},
      // Drivers of others are believed only where all pages are at one place.
      {"host-read", "sm_90", device, device, kZeroCopy, stayed_on_device, ""},
      {"host-read", "sm_90", pages(1, 999), pages(1, 999), kMigration, "", ""},
      {"host-read", "sm_90", host, host, kMigration, "", ""},
      {"prefetch-h2d", "sm_90", host, host, prefetch, "",
       "hipMemPrefetchAsync moved nothing, its pages stayed on the host"},
  };
  for (const auto& row : table) {
    CAPTURE(row.operation);
    CAPTURE(row.arch);
    const auto operation = parse_shared_operations(row.operation).front();
    const auto proved = prove_movement(operation, kMigration, row.arch, row.before, row.after);
    CHECK(proved.obstacle == row.obstacle);
    if (row.obstacle.empty()) {
      CHECK(proved.movement == row.movement);
      CHECK(proved.remark == row.remark);
    }
  }
  // Where nothing was to move, pages that stayed say nothing new.
  const auto stays = prove_movement(SharedOperation::read, kZeroCopy, amd, host, host);
  CHECK(stays.movement == kZeroCopy);
  CHECK(stays.remark.empty());
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
  CHECK_THROWS_WITH_AS((void)parse_shared_operations("read,read"),
                       "the list of operations 'read,read' names read twice", Failure);
  CHECK_THROWS_AS((void)parse_shared_operations(""), Failure);
}

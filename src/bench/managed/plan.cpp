#include "managed/plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "harness/copy_rules.hpp"
#include "harness/names.hpp"
#include "harness/status.hpp"

namespace fabricheck::managed {
namespace {

template <typename Value, std::size_t Count>
using Names = std::array<std::pair<Value, const char*>, Count>;

constexpr Names<SharedMemory, 2> kMemories{{
    {SharedMemory::managed, memory::managed},
    {SharedMemory::pinned, "pinned"},
}};

constexpr Names<Movement, 3> kMovements{{
    {Movement::zero_copy, movement::zero_copy},
    {Movement::page_migration, movement::page_migration},
    {Movement::prefetch, movement::prefetch},
}};

constexpr Names<SharedOperation, 6> kOperations{{
    {SharedOperation::read, operation::read},
    {SharedOperation::write, operation::write},
    {SharedOperation::host_read, operation::host_read},
    {SharedOperation::host_write, operation::host_write},
    {SharedOperation::prefetch_h2d, operation::prefetch_h2d},
    {SharedOperation::prefetch_d2h, operation::prefetch_d2h},
}};

template <typename Value, std::size_t Count>
const char* name_of(const Names<Value, Count>& names, Value value) {
  const auto known = std::find_if(names.begin(), names.end(),
                                  [value](const auto& entry) { return entry.first == value; });
  return known == names.end() ? "" : known->second;
}

std::string device_text(int device, const std::string& arch) {
  return "device " + std::to_string(device) + " (" + arch + ")";
}

/// The fraction of the pages that is in memory of the host; empty if the system does not report the
/// location of all of them.
std::optional<double> part_on_host(const PagePlaces& places) {
  const auto known = places.on_host + places.off_host;
  if (known == 0 || places.unknown > 0) {
    return std::nullopt;
  }
  return static_cast<double>(places.on_host) / static_cast<double>(known);
}

std::string percent_on_host(double part) {
  return std::to_string(std::lround(100 * part)) + " % of its pages were on the host";
}

}  // namespace

const char* memory_name(SharedMemory memory) { return name_of(kMemories, memory); }
const char* movement_name(Movement movement) { return name_of(kMovements, movement); }
const char* operation_name(SharedOperation operation) { return name_of(kOperations, operation); }

std::vector<SharedMemory> parse_memories(const std::string& text) {
  return parse_names(text, kMemories, "the list of kinds of memory", "a kind of memory");
}

std::vector<SharedOperation> parse_shared_operations(const std::string& text) {
  return parse_names(text, kOperations, "the list of operations", "an operation");
}

bool is_prefetch(SharedOperation operation) {
  return operation == SharedOperation::prefetch_h2d || operation == SharedOperation::prefetch_d2h;
}

bool by_host(SharedOperation operation) {
  return operation == SharedOperation::host_read || operation == SharedOperation::host_write;
}

bool starts_on_device(SharedOperation operation) {
  return by_host(operation) || operation == SharedOperation::prefetch_d2h;
}

Movement movement_of(SharedMemory memory, int device, const std::string& arch,
                     const ManagedMemory& known) {
  if (memory == SharedMemory::pinned) {
    return Movement::zero_copy;  // page-locked: it cannot move
  }
  if (!known.managed) {
    throw Failure(Status::unsupported,
                  device_text(device, arch) + " does not support managed memory");
  }
  if (is_amd(arch)) {
    return known.xnack.value_or(known.pageable_access) ? Movement::page_migration
                                                       : Movement::zero_copy;
  }
  if (!known.concurrent_access) {
    throw Failure(Status::unsupported,
                  device_text(device, arch) +
                      " moves all managed memory at each launch, as it has no concurrent access: "
                      "that is neither zero-copy nor page-migration");
  }
  return Movement::page_migration;
}

std::optional<std::string> unexpected(Movement expected, Movement seen, SharedMemory memory,
                                      int device, const std::string& arch) {
  if (expected == seen) {
    return std::nullopt;
  }
  if (memory == SharedMemory::pinned) {
    return "pinned memory does not migrate: page-migration is of --memory managed";
  }
  const auto name = device_text(device, arch);
  if (seen == Movement::page_migration) {
    return name + " migrates pages: " +
           (is_amd(arch) ? "HSA_XNACK=0 is needed" : "zero-copy there is of --memory pinned");
  }
  return name + " does not migrate pages: HSA_XNACK=1 is needed";
}

bool is_possible(SharedOperation operation, Movement movement) {
  return movement == Movement::page_migration ||
         (!starts_on_device(operation) && !is_prefetch(operation));
}

Proved prove_movement(SharedOperation operation, Movement assumed, const std::string& arch,
                      const PagePlaces& before, const PagePlaces& after) {
  Proved proved{is_prefetch(operation) ? Movement::prefetch : assumed, "", ""};
  const auto first = part_on_host(before);
  const auto last = part_on_host(after);
  if (assumed != Movement::page_migration || !first || !last) {
    return proved;
  }
  const double tolerance = is_amd(arch) ? 0.01 : 0;
  const double start = starts_on_device(operation) ? 0 : 1;
  const auto is_at = [tolerance](double part, double place) {
    return std::abs(part - place) <= tolerance;
  };
  const bool ready = is_at(*first, start);
  if (ready && is_at(*last, 1 - start)) {
    return proved;
  }
  if (ready && is_at(*last, start)) {
    const std::string where = start > 0 ? "on the host" : "on the device";
    if (is_prefetch(operation)) {
      proved.obstacle = "hipMemPrefetchAsync moved nothing, its pages stayed " + where;
    } else {
      proved.movement = Movement::zero_copy;
      proved.remark = "its pages stayed " + where + " and were used over the link: zero-copy";
    }
  } else if (is_amd(arch)) {
    proved.obstacle = percent_on_host(*first) + " before it and " +
                      std::to_string(std::lround(100 * *last)) +
                      " % after it, which is neither zero-copy nor page-migration";
  }
  return proved;
}

}  // namespace fabricheck::managed

#include "memcpy/plan.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "harness/devices.hpp"
#include "harness/names.hpp"
#include "harness/sizes.hpp"
#include "harness/status.hpp"

namespace fabricheck::copies {
namespace {

constexpr std::array<std::pair<CopyOperation, const char*>, 7> kOperations{{
    {CopyOperation::h2d, operation::h2d},
    {CopyOperation::d2h, operation::d2h},
    {CopyOperation::both, operation::both},
    {CopyOperation::h2d_sync, operation::h2d_sync},
    {CopyOperation::d2h_sync, operation::d2h_sync},
    {CopyOperation::h2d_latency, operation::h2d_latency},
    {CopyOperation::d2h_latency, operation::d2h_latency},
}};
constexpr std::array<std::pair<HostMemory, const char*>, 3> kMemory{{
    {HostMemory::pinned, "pinned"},
    {HostMemory::noncoherent, "noncoherent"},
    {HostMemory::pageable, "pageable"},
}};

const HostDomain& domain_at(int index, const std::vector<HostDomain>& known) {
  std::string indices;
  for (const auto& domain : known) {
    if (domain.index == index) {
      return domain;
    }
    indices += (indices.empty() ? "" : ", ") + std::to_string(domain.index);
  }
  throw Failure(Status::unsupported, "NUMA domain " + std::to_string(index) +
                                         " does not exist: the host has " + indices);
}

std::vector<int> usable_domains(const std::vector<HostDomain>& known) {
  std::vector<int> usable;
  for (const auto& domain : known) {
    if (domain.obstacle.empty()) {
      usable.push_back(domain.index);
    }
  }
  return usable;
}

/// The domain if it can be measured. `whose` is said with the obstacle.
int usable(int index, const std::vector<HostDomain>& known, const std::string& whose) {
  const auto& domain = domain_at(index, known);
  if (!domain.obstacle.empty()) {
    throw Failure(domain.closed ? Status::setting : Status::unsupported, domain.obstacle + whose);
  }
  return index;
}

}  // namespace

const char* operation_name(CopyOperation operation) {
  return kOperations.at(static_cast<std::size_t>(operation)).second;
}

bool goes_to_device(CopyOperation operation) {
  return operation != CopyOperation::d2h && operation != CopyOperation::d2h_sync &&
         operation != CopyOperation::d2h_latency;
}

bool goes_to_host(CopyOperation operation) {
  return operation != CopyOperation::h2d && operation != CopyOperation::h2d_sync &&
         operation != CopyOperation::h2d_latency;
}

bool is_synchronous(CopyOperation operation) {
  return operation == CopyOperation::h2d_sync || operation == CopyOperation::d2h_sync;
}

bool is_latency(CopyOperation operation) {
  return operation == CopyOperation::h2d_latency || operation == CopyOperation::d2h_latency;
}

const char* memory_word(HostMemory memory) {
  switch (memory) {
    case HostMemory::pinned:
      return memory::host_pinned;
    case HostMemory::noncoherent:
      return memory::host_noncoherent;
    case HostMemory::pageable:
      break;
  }
  return memory::host_pageable;
}

std::vector<CopyOperation> parse_copy_operations(const std::string& text) {
  return parse_names(text, kOperations, "the list of operations", "an operation");
}

std::vector<HostMemory> parse_host_memory(const std::string& text) {
  return parse_names(text, kMemory, "the list of memory", "a kind of host memory");
}

std::vector<int> parse_devices(const std::string& text, int count) {
  std::vector<int> devices;
  for (const auto& set : parse_device_sets({text}, count)) {
    devices.insert(devices.end(), set.begin(), set.end());
  }
  return devices;
}

Positions plan_positions(const std::string& domains, const std::vector<int>& devices,
                         const std::vector<int>& nearest, const std::vector<HostDomain>& known) {
  const auto all_usable = usable_domains(known);
  Positions result;
  if (domains == "any") {
    for (const int device : devices) {
      result.positions.push_back({device, -1});
    }
    return result;
  }
  if (domains == "near") {
    for (const int device : devices) {
      int near = nearest.at(static_cast<std::size_t>(device));
      if (near < 0 && all_usable.size() == 1) {
        near = all_usable.front();
      }
      const auto name = "device " + std::to_string(device);
      if (near >= 0) {
        (void)usable(near, known, ", and " + name + " is attached to it");
      } else {
        result.notes.push_back("the system does not tell the NUMA domain of " + name +
                               ": its host memory is wherever the system puts it");
      }
      // Behind the last one of the same domain, so that these share their host memory.
      const auto same =
          std::find_if(result.positions.rbegin(), result.positions.rend(),
                       [near](const Position& position) { return position.domain == near; });
      const auto place = same == result.positions.rend() ? result.positions.end() : same.base();
      result.positions.insert(place, {device, near});
    }
    return result;
  }
  std::vector<int> chosen;
  if (domains == "each") {
    chosen = all_usable;
    for (const auto& domain : known) {
      if (!domain.obstacle.empty()) {
        result.notes.push_back(domain.obstacle + ": it is not measured");
      }
    }
    if (chosen.empty()) {
      throw Failure(Status::unsupported, "no NUMA domain of the host can be measured");
    }
  } else {
    for (const auto& item : split_list(domains, "the list of NUMA domains")) {
      const int index = usable(parse_index(item, "the NUMA domain"), known, "");
      if (std::find(chosen.begin(), chosen.end(), index) != chosen.end()) {
        throw Failure(Status::usage,
                      "the list of NUMA domains '" + domains + "' names " + item + " twice");
      }
      chosen.push_back(index);
    }
  }
  for (const int domain : chosen) {
    for (const int device : devices) {
      result.positions.push_back({device, domain});
    }
  }
  return result;
}

std::string CopyJob::text() const {
  return std::string(operation_name(operation)) + " of " + format_size(bytes) + " between " +
         memory_word(memory) + " memory" +
         (position.domain < 0 ? "" : " of NUMA domain " + std::to_string(position.domain)) +
         " and device " + std::to_string(position.device);
}

bool CopyJob::needs_gate() const {
  // A copy of pageable memory returns when it is done: behind a closed gate it never would.
  return memory != HostMemory::pageable &&
         (operation == CopyOperation::both || is_latency(operation));
}

std::vector<CopyJob> plan_copies(const std::vector<Position>& positions,
                                 const std::vector<HostMemory>& memory,
                                 const std::vector<CopyOperation>& operations,
                                 const std::vector<std::uint64_t>& sizes) {
  std::vector<CopyJob> jobs;
  for (auto first = positions.begin(); first != positions.end();) {
    const auto last = std::find_if(first, positions.end(), [first](const Position& position) {
      return position.domain != first->domain;
    });
    for (const auto kind : memory) {
      for (auto position = first; position != last; ++position) {
        for (const auto operation : operations) {
          if (is_latency(operation)) {
            jobs.push_back({*position, kind, operation, kLatencyBytes});
            continue;
          }
          for (const auto size : sizes) {
            jobs.push_back({*position, kind, operation, size});
          }
        }
      }
    }
    first = last;
  }
  return jobs;
}

}  // namespace fabricheck::copies

// Managed memory: its pages stay on the host, or follow who touches them.
#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "machine.hpp"

namespace fabricheck_sim {
namespace {

constexpr std::uint64_t kPage = 4096;

/// Part of a managed allocation.
struct Range {
  Pages* pages = nullptr;  ///< null: no managed memory
  Place home;              ///< its place on the host
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

Range range_of(const void* data, std::uint64_t bytes) {
  auto& all = machine();
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const auto after = all.managed.upper_bound(address);
  if (after == all.managed.begin()) {
    return {};
  }
  const auto entry = std::prev(after);
  const auto& allocation = all.allocations.at(entry->first);
  const auto first = address - entry->first;
  if (first >= allocation.bytes) {
    return {};
  }
  const auto last = std::min<std::uint64_t>(allocation.bytes, first + bytes);
  return {&entry->second, allocation.place, first, last};
}

/// The flows over those routes that the pages of a range take to a place.
std::vector<Flow> flows_to(const Range& range, const Place& to,
                           const std::map<std::pair<Place, Place>, Route>& routes) {
  std::vector<Flow> flows;
  for (const auto& [from, bytes] : range.pages->bytes(range.first, range.last)) {
    if (from.empty() || from == to) {
      continue;
    }
    const auto route = routes.find({from, to});
    if (route == routes.end()) {
      throw std::runtime_error("pages do not move from " + from + " to " + to +
                               " in this simulation");
    }
    flows.push_back({&route->second, bytes});
  }
  return flows;
}

/// Moves a range to a place; the flows that this takes.
std::vector<Flow> moved(const Range& range, const Place& to,
                        const std::map<std::pair<Place, Place>, Route>& routes) {
  auto flows = flows_to(range, to, routes);
  range.pages->move(range.first, range.last, to);
  return flows;
}

}  // namespace

const Place& Pages::at(std::uint64_t offset) const {
  return std::prev(runs_.upper_bound(offset))->second;
}

std::map<Place, std::uint64_t> Pages::bytes(std::uint64_t first, std::uint64_t last) const {
  std::map<Place, std::uint64_t> result;
  while (first < last) {
    const auto next = runs_.upper_bound(first);
    const auto end = next == runs_.end() ? last : std::min(last, next->first);
    result[std::prev(next)->second] += end - first;
    first = end;
  }
  return result;
}

void Pages::move(std::uint64_t first, std::uint64_t last, const Place& place) {
  first = first / kPage * kPage;
  last = (last + kPage - 1) / kPage * kPage;
  const Place behind = at(last);
  runs_.erase(runs_.lower_bound(first), runs_.upper_bound(last));
  runs_[first] = place;
  runs_[last] = behind;
}

bool xnack() { return variable("HSA_XNACK") == "1"; }

std::optional<Place> page_place(const void* data) {
  const auto range = range_of(data, 1);
  if (range.pages == nullptr) {
    return std::nullopt;
  }
  const auto& place = range.pages->at(range.first);
  return place.empty() ? range.home : place;
}

std::uint64_t bytes_on_devices(const void* data, std::uint64_t bytes) {
  const auto range = range_of(data, bytes);
  if (range.pages == nullptr) {
    return 0;
  }
  std::uint64_t elsewhere = 0;
  for (const auto& [place, part] : range.pages->bytes(range.first, range.last)) {
    elsewhere += place.empty() || place == range.home ? 0 : part;
  }
  return elsewhere;
}

std::vector<Flow> pages_to_device(int device, const void* data, std::uint64_t bytes) {
  const auto range = range_of(data, bytes);
  if (range.pages == nullptr || !xnack()) {
    return {};
  }
  return moved(range, place_of_device(device), machine().node.migration);
}

void host_access(const void* data, std::uint64_t bytes) {
  const auto range = range_of(data, bytes);
  if (range.pages == nullptr || !xnack()) {
    return;
  }
  // No model says how fast the host reads pages that stay on a device: as fast as a copy.
  const auto& node = machine().node;
  spend({0, machine().coherent_devices ? flows_to(range, range.home, node.copy)
                                       : moved(range, range.home, node.migration)});
}

}  // namespace fabricheck_sim

using namespace fabricheck_sim;

hipError_t hipMallocManaged(void** data, std::size_t bytes, unsigned) {
  // The host's memory for all its life, though its pages may be on a device for a while.
  const auto error = hipHostMalloc(data, bytes, hipHostMallocNumaUser);
  if (error == hipSuccess) {
    machine().managed.emplace(reinterpret_cast<std::uintptr_t>(*data),
                              Pages(xnack() ? Place() : user_host_place()));
  }
  return error;
}

hipError_t hipMemPrefetchAsync(const void* data, std::size_t bytes, int device,
                               hipStream_t stream) {
  const auto range = range_of(data, bytes);
  if (range.pages == nullptr || bytes == 0) {
    return result(hipErrorInvalidValue);
  }
  if (!xnack()) {
    return result(hipErrorNotSupported);
  }
  if (device != hipCpuDeviceId && !exists(device)) {
    return result(hipErrorInvalidDevice);
  }
  if (machine().idle_prefetch) {
    return hipSuccess;
  }
  const auto to = device == hipCpuDeviceId ? range.home : place_of_device(device);
  const auto& copies = machine().node.copy;
  try {
    Cost cost{0, moved(range, to, copies)};
    for (const auto& flow : cost.flows) {
      cost.start = std::max(cost.start, flow.route->start);
    }
    fabricheck_sim::enqueue(stream, cost, [] {});
  } catch (const std::runtime_error&) {
    return result(hipErrorInvalidDevice);
  }
  return hipSuccess;
}

#include "harness/movers.hpp"

#include "harness/devices.hpp"
#include "harness/kfd.hpp"
#include "harness/rocm.hpp"
#include "harness/simulation.hpp"
#include "harness/sizes.hpp"

namespace fabricheck {
namespace {

void tell(Series& series, const Mover& mover) {
  series.engine = mover.engine;
  series.engines = mover.engines;
}

}  // namespace

Movers::Movers() : Movers(device_arch(0), hip_version()) {}

Movers::Movers(std::string arch, const std::string& version)
    : arch_(std::move(arch)), amd_(is_amd(arch_)), rules_(version) {}

std::optional<PeerWay> Movers::way(int from, int to) const {
  const auto known = ways_.find({from, to});
  if (known != ways_.end()) {
    return known->second;
  }
  return ways_[{from, to}] = peer_way(from, to);
}

void Movers::of_host(Series& series, std::uint64_t bytes) const {
  tell(series, amd_ ? rules_.host(bytes) : Mover{});
}

void Movers::of_peers(Series& series, int from, int to, std::uint64_t bytes) const {
  if (amd_ && from == to) {
    tell(series, {engine::kernel, std::nullopt});
    return;
  }
  auto mover = amd_ ? rules_.peer(bytes, way(from, to)) : Mover{};
  if (mover.engines.value_or(1) > 1 && arch_.rfind("gfx90a", 0) != 0) {
    mover.engines.reset();  // newer devices have engines of their own for each link
  }
  tell(series, mover);
}

std::vector<std::string> Movers::notes(bool between_peers) const {
  if (!amd_) {
    return {};
  }
  auto notes = rules_.notes(between_peers);
  if (between_peers && rules_.gangs()) {
    const int count = device_count();
    bool unknown = false;
    for (int pair = 0; pair < count * count; ++pair) {
      unknown = unknown || (pair / count != pair % count && !way(pair / count, pair % count));
    }
    notes.push_back(unknown ? "several copy engines may share a copy between devices; how many is "
                              "not known, for the links are not told in " +
                                  std::string(kKfdTopology)
                            : "several copy engines share a copy between devices where several "
                              "links join them, an MPI's copies too");
  }
  return notes;
}

std::string Movers::sharing_note(int copies) const {
  constexpr int engines = PeerWay{}.engines;
  if (!amd_ || copies < 2 || rules_.peer(UINT64_MAX, PeerWay{}).engine == engine::kernel) {
    return "";
  }
  if (copies > engines) {
    return "more than " + std::to_string(engines) +
           " copies leave a device at once, which has so many engines towards devices: they share "
           "these";
  }
  return rules_.gangs() ? "copies that leave a device at once share its engines where several "
                          "engines move one copy"
                        : "";
}

std::string Movers::pageable_note() const {
  if (!amd_ || kSimulated) {
    return "";
  }
  return "copies of pageable memory of at most " + format_size(kStagedBytes) +
         " go through a buffer that the processor copies to or from; of larger ones ROCm pins the "
         "pages, in parts, and one copy engine moves them";
}

}  // namespace fabricheck

// The place of a rank: its cores, NUMA domains and devices; and the combined view of all ranks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fabricheck {

/// The device of a rank among `count` that its process sees. `map` has one for each rank of the
/// launch, or is empty; `local_rank` counts the ranks of this machine. Throws Failure(usage) when
/// the map is too short, Failure(unsupported) for a device that does not exist, or Failure(setting)
/// if one may be hidden (settings.hpp).
int choose_device(const std::vector<int>& map, int rank, int local_rank, int count);

/// The numbers of a list such as 3,1,0; none for an empty text. Throws Failure(usage); `what` names
/// a number.
std::vector<int> numbers_of(const std::string& text, const std::string& what);

/// Sets the device of this rank before MPI is initialized, as MPI libraries with device support
/// require: the one that --map names, or the one with the rank's number on its machine. A wrong
/// guess has no effect.
void set_device_early(int argc, char** argv);

/// The NUMA domain that contains all `cores`; -1 when there are several. `domains` is the member
/// numa_domains of a result document's host.
int domain_of_cores(const std::vector<int>& cores, const nlohmann::json& domains);

/// The facts that a rank reports: `host` (as in the result document), `node` (the scheduler's name
/// of it, else the host's), `devices` as its process numbers them, `cores`, `numa_domain`,
/// `memory_domain`, and `device` (as its process numbers it; -1: none). Devices that are null are
/// those of the first rank of the node. Of `host` the name and NUMA domains are needed, these only
/// on the node of rank 0.
struct RankReport {
  nlohmann::json host;
  std::string node;
  nlohmann::json devices;
  std::vector<int> cores;
  int numa_domain = -1;
  int memory_domain = -1;
  int device = -1;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankReport, host, node, devices, cores, numa_domain,
                                   memory_domain, device)

/// The members `devices` and `ranks` of the document, and the NUMA domains of rank 0's machine as
/// all its ranks see them. A launcher may show each rank other devices. They are identified by
/// node, PCI address and unique id, and numbered in the order in which they are first seen.
/// Devices without either are identified by their number. In a launch over several nodes the host
/// of a rank is its node: machines that stand for several nodes have one host name.
struct Together {
  nlohmann::json devices = nlohmann::json::array();
  nlohmann::json ranks = nlohmann::json::array();
  nlohmann::json numa_domains;
  std::vector<std::string> nodes;  ///< of each rank
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Together, devices, ranks, numa_domains, nodes)
Together together(const std::vector<RankReport>& reports);

}  // namespace fabricheck

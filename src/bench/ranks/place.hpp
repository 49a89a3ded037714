// Where a rank is: its cores, NUMA domains and devices; and what the ranks together make of it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fabricheck {

/// The device of a rank among `count` that its process sees. `map` has one for each rank of the
/// launch, or none; `local_rank` counts the ranks of this machine. Throws Failure(usage) when the
/// map is too short, Failure(unsupported) for a device that does not exist, or
/// Failure(setting) where one may be hidden (settings.hpp).
int choose_device(const std::vector<int>& map, int rank, int local_rank, int count);

/// The numbers of a list as 3,1,0; none of an empty text. Throws Failure(usage); `what` names one.
std::vector<int> numbers_of(const std::string& text, const std::string& what);

/// Sets the device of this rank before MPI is initialized, as MPI libraries that know devices want
/// it: the one that --map names, or that of the number that the launcher gave the rank on its
/// machine. A wrong guess does no harm.
void set_device_early(int argc, char** argv);

/// The NUMA domain that has all of `cores`; -1 when there are several. `domains` is the member
/// numa_domains of a result document's host.
int domain_of_cores(const std::vector<int>& cores, const nlohmann::json& domains);

/// What a rank tells: `host` (as the result document has it), `devices` as its process numbers
/// them, `cores`, `numa_domain`, `memory_domain`, and `device` (as its process numbers it; -1:
/// none).
struct RankReport {
  nlohmann::json host;
  nlohmann::json devices;
  std::vector<int> cores;
  int numa_domain = -1;
  int memory_domain = -1;
  int device = -1;
};
nlohmann::json to_json(const RankReport& report);
RankReport rank_report(const nlohmann::json& report);

/// The members `devices` and `ranks` of the document, and the NUMA domains of rank 0's machine as
/// all its ranks see them. A launcher may show each rank other devices: they are told apart by
/// machine, PCI address and unique id, and numbered in the order in which they are first seen. Of
/// devices without either the number counts.
struct Together {
  nlohmann::json devices = nlohmann::json::array();
  nlohmann::json ranks = nlohmann::json::array();
  nlohmann::json numa_domains;
};
Together together(const std::vector<RankReport>& reports);

}  // namespace fabricheck

#include "p2p/plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "harness/settings.hpp"
#include "harness/sizes.hpp"
#include "harness/status.hpp"

namespace fabricheck::p2p {
namespace {

constexpr std::array<std::pair<PeerOperation, const char*>, 7> kNames{{
    {PeerOperation::engine, operation::engine},
    {PeerOperation::read, operation::read},
    {PeerOperation::write, operation::write},
    {PeerOperation::copy, operation::copy},
    {PeerOperation::latency, operation::latency},
    {PeerOperation::latency_host, operation::latency_host},
    {PeerOperation::chase, operation::chase},
}};

/// Both directions only where one operation has one direction.
constexpr std::array<PeerOperation, 3> kOneWay{PeerOperation::engine, PeerOperation::read,
                                               PeerOperation::write};

Pair parse_pair(const std::string& text, int count, bool local) {
  const auto dash = text.find('-');
  if (dash == std::string::npos) {
    throw Failure(Status::usage, "'" + text + "' is not a pair: write two devices as in 0-1");
  }
  const Pair pair{parse_index(text.substr(0, dash), "the device"),
                  parse_index(text.substr(dash + 1), "the device")};
  for (const int device : {pair.from, pair.to}) {
    if (device >= count) {
      throw no_such_device("device " + std::to_string(device) + " of the pair " + text, count);
    }
  }
  if (pair.from == pair.to && !local) {
    throw Failure(Status::usage, "the pair " + text + " is one device twice");
  }
  return pair;
}

/// The pairs, and behind them the reverse of each that is not among them.
std::vector<Pair> with_reverse(const std::vector<Pair>& pairs) {
  auto both = pairs;
  for (const auto& pair : pairs) {
    const Pair reverse{pair.to, pair.from};
    if (std::find(both.begin(), both.end(), reverse) == both.end()) {
      both.push_back(reverse);
    }
  }
  return both;
}

}  // namespace

std::vector<Pair> parse_pairs(const std::string& text, int count, bool local) {
  std::vector<Pair> pairs;
  if (local && text == "self") {
    for (int device = 0; device < count; ++device) {
      pairs.push_back({device, device});
    }
    return pairs;
  }
  if (text == "all") {
    for (int from = 0; from < count; ++from) {
      for (int to = 0; to < count; ++to) {
        if (from != to) {
          pairs.push_back({from, to});
        }
      }
    }
    return pairs;
  }
  for (const auto& item : split_list(text, "the list of pairs")) {
    const auto pair = parse_pair(item, count, local);
    if (std::find(pairs.begin(), pairs.end(), pair) != pairs.end()) {
      throw Failure(Status::usage, "'" + text + "' names the pair " + item + " twice");
    }
    pairs.push_back(pair);
  }
  return pairs;
}

std::string Measurement::name() const {
  for (const auto& [known, word] : kNames) {
    if (known == operation) {
      return std::string(word) + (both ? "-both" : "");
    }
  }
  return "";
}

bool Measurement::by_kernel() const {
  return operation != PeerOperation::engine && operation != PeerOperation::latency &&
         operation != PeerOperation::latency_host;
}

bool Measurement::is_latency() const {
  return operation == PeerOperation::latency || operation == PeerOperation::latency_host ||
         operation == PeerOperation::chase;
}

int Measurement::executor(const Pair& pair) const {
  return operation == PeerOperation::read || operation == PeerOperation::chase ? pair.to
                                                                               : pair.from;
}

int Measurement::owner(const Pair& pair) const {
  return executor(pair) == pair.from ? pair.to : pair.from;
}

std::vector<Measurement> parse_measurements(const std::string& text) {
  std::vector<Measurement> known;
  for (const auto& entry : kNames) {
    known.push_back({entry.first, false});
    if (std::find(kOneWay.begin(), kOneWay.end(), entry.first) != kOneWay.end()) {
      known.push_back({entry.first, true});
    }
  }
  std::vector<Measurement> measurements;
  for (const auto& name : split_list(text, "the list of operations")) {
    const auto measurement =
        std::find_if(known.begin(), known.end(),
                     [&name](const Measurement& candidate) { return candidate.name() == name; });
    if (measurement == known.end()) {
      std::string names;
      for (const auto& candidate : known) {
        names += (names.empty() ? "" : ", ") + candidate.name();
      }
      throw Failure(Status::usage, "'" + name + "' is not an operation: choose from " + names);
    }
    if (std::any_of(measurements.begin(), measurements.end(),
                    [&name](const Measurement& candidate) { return candidate.name() == name; })) {
      throw Failure(Status::usage, "'" + text + "' names the operation " + name + " twice");
    }
    measurements.push_back(*measurement);
  }
  return measurements;
}

std::string Job::text() const {
  std::string result = what.name() + (bytes > 0 ? " of " + format_size(bytes) : "");
  for (const auto& pair : pairs) {
    result += (pair == pairs.front() ? " from device " : ", ") + std::to_string(pair.from) +
              " to " + std::to_string(pair.to);
  }
  return result;
}

std::vector<Lane> lanes_of(const Job& job) {
  std::map<int, int> streams;
  std::map<int, int> destinations;
  std::vector<Lane> lanes;
  for (const auto& pair : job.pairs) {
    lanes.push_back({streams[job.what.executor(pair)]++, destinations[pair.to]++});
  }
  return lanes;
}

int queues_needed(const std::vector<std::string>& sets) {
  constexpr int devices = 16;
  int lanes = 0;
  for (const auto& set : sets) {
    std::map<std::string, int> copies;  // by device: of a read or of both ways the other end works
    if (set == "all") {
      lanes = std::max(lanes, devices - 1);
      continue;
    }
    for (std::size_t first = 0; first < set.size();) {
      const auto end = std::min(set.find_first_of("-,", first), set.size());
      ++copies[set.substr(first, end - first)];
      first = end + 1;
    }
    for (const auto& [device, count] : copies) {
      lanes = std::max(lanes, count);
    }
  }
  return lanes + 2;
}

std::vector<Job> with_variants(const std::vector<Job>& jobs,
                               const std::vector<stream::Variant>& variants) {
  std::vector<Job> all;
  for (const auto& job : jobs) {
    if (!job.what.by_kernel() || job.what.is_latency()) {
      all.push_back(job);
      continue;
    }
    for (const auto& variant : variants) {
      all.push_back(job);
      all.back().variant = variant;
    }
  }
  return all;
}

std::vector<Job> plan_jobs(const std::vector<Measurement>& measurements,
                           const std::vector<Pair>& pairs,
                           const std::vector<std::vector<Pair>>& sets,
                           const std::vector<std::uint64_t>& sizes) {
  std::vector<Job> jobs;
  for (const auto& what : measurements) {
    for (const auto& pair : pairs) {
      if (pair.from == pair.to && (what.both || what.by_kernel())) {
        throw Failure(Status::usage, what.name() + " is between two devices, and the pair " +
                                         std::to_string(pair.from) + "-" + std::to_string(pair.to) +
                                         " is one: choose from engine, latency, latency-host");
      }
    }
    if (what.is_latency()) {
      std::set<int> local;
      for (const auto& pair : pairs) {
        if (what.operation == PeerOperation::chase) {
          for (const int device : {pair.from, pair.to}) {
            if (local.insert(device).second) {
              jobs.push_back({what, {{device, device}}, 0});
            }
          }
        }
        jobs.push_back({what, {pair}, 0});
      }
      continue;
    }
    for (const auto size : sizes) {
      std::set<std::pair<int, int>> done;
      for (const auto& pair : pairs) {
        if (!what.both) {
          jobs.push_back({what, {pair}, size});
        } else if (done.insert(std::minmax(pair.from, pair.to)).second) {
          jobs.push_back({what, with_reverse({pair}), size});
        }
      }
      for (const auto& set : sets) {
        jobs.push_back({what, what.both ? with_reverse(set) : set, size});
      }
    }
  }
  return jobs;
}

}  // namespace fabricheck::p2p

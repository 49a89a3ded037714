// fabric: rates between all NICs of many nodes, which meet in rounds (E17).
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/campaign.hpp"
#include "harness/devices.hpp"
#include "harness/run.hpp"
#include "harness/simulation.hpp"
#include "harness/sizes.hpp"
#include "harness/statistics.hpp"
#include "mpi/crossing.hpp"

namespace {

using namespace fabricheck;
using namespace fabricheck::fabric;
using nlohmann::json;

struct Options {
  std::string buffers;
  std::string size = "4MiB";
  std::string latency_size = "8";
  std::string places = "none";
  CampaignOptions campaign;

  void define(CommandLine& line) {
    line.add({"--buffers",
              "memory of the messages: device or host; default: device where the rank has one"},
             buffers, {"device", "host"});
    line.add({"--size", "bytes of each message of a rate"}, size);
    line.add({"--window", "messages under way at once, a sample of a rate"},
             campaign.amounts.messages, 1, 1024);
    line.add({"--repetitions", "samples of each rate, of which it is the median"},
             campaign.amounts.repetitions, 1, 1000);
    line.add({"--latency-size", "bytes of each message of a latency"}, latency_size);
    line.add({"--round-trips", "messages there and back of a sample of a latency"},
             campaign.amounts.round_trips, 1, 1000000);
    line.add({"--places",
              "where the place of a NIC comes from: address (as Slingshot gives them), none, or a "
              "file of lines NODE GROUP SWITCH"},
             places);
    line.add({"--all-to", "up to so many nodes each meets each other one"}, campaign.all_to, 2,
             100000);
    line.add({"--rounds", "of more nodes: rounds of each distance that occurs"}, campaign.rounds, 1,
             100000);
    line.add({"--again", "rounds of suspects with proven partners"}, campaign.again, 0, 1000);
    line.add({"--round-limit", "seconds in which a node must answer, else it is left out", "s"},
             campaign.round_limit, 0.1, 3600);
  }
};

/// What a rank's device is; empty without one.
std::string device_text(const RankGroup& group) {
  if (group.device() < 0) {
    return "";
  }
  const auto device = describe_devices()[static_cast<std::size_t>(group.device())];
  return device["arch"] == "host" ? "" : device["name"].get<std::string>();
}

void lead(const Options& options, Run& run, Crew& crew, const RankGroup& group,
          const std::vector<json>& reports) {
  std::vector<Member> members;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    members.push_back({group.nodes()[rank], reports[rank]["leader"], reports[rank]["device"]});
  }
  std::vector<int> leaders;
  for (const auto& member : members) {
    if (std::find(leaders.begin(), leaders.end(), member.leader) == leaders.end()) {
      leaders.push_back(member.leader);
    }
  }
  std::unique_ptr<Campaign> campaign;
  try {
    campaign = std::make_unique<Campaign>(run, crew, options.campaign, members);
    campaign->measure();
  } catch (...) {
    crew.end(campaign ? campaign->leaders() : leaders, campaign && campaign->has_lost());
    throw;
  }
  crew.end(campaign->leaders(), campaign->has_lost());
}

void measure(Options& options, RankGroup& group, Run& run) {
  std::unique_ptr<TimedStream> stream;
  std::unique_ptr<Mail> mail;
  std::unique_ptr<Meter> meter;
  std::unique_ptr<Crew> crew;
  group.step("options and buffers", [&] {
    const bool on_host = options.buffers.empty() ? group.device() < 0 : options.buffers == "host";
    if (!on_host && group.device() < 0) {
      throw Failure(Status::unsupported, "there is no device for buffers of devices");
    }
    auto& amounts = options.campaign.amounts;
    amounts.bytes = parse_size(options.size);
    amounts.latency_bytes = parse_size(options.latency_size);
    if (amounts.bytes == 0 || amounts.bytes > 1ULL << 30 || amounts.latency_bytes > amounts.bytes) {
      throw Failure(Status::usage, "--size is from 1 B to 1 GiB, and --latency-size not above it");
    }
    options.campaign.memory = on_host ? memory::host_pageable : memory::device;
    if (!on_host) {
      stream = std::make_unique<TimedStream>(group.device());
    }
    const auto& here = group.ranks_here();
    mail = std::make_unique<Mail>(MPI_COMM_WORLD);
    meter =
        std::make_unique<Meter>(MPI_COMM_WORLD, stream.get(), amounts, here, group.data_faults());
    crew = std::make_unique<Crew>(group, *mail, *meter, Places(options.places), group.node(),
                                  options.campaign.round_limit);
  });
  const auto reports = group.gather_to_root(
      {{"leader", group.ranks_here().front()}, {"device", device_text(group)}});
  group.part();
  if (group.rank() == 0) {
    lead(options, run, *crew, group, reports);
  } else {
    crew->follow();
  }
}

std::string number(double value) { return value > 0 ? formatted("%.2f", value) : "-"; }

/// The median and the lowest of each kind of rate.
void print_rates(const json& document, std::FILE* out) {
  const auto rounds = document.value("rounds", json());
  if (rounds.is_null()) {
    return;
  }
  Table table{{left("distance"), left("what"), right("number"), right("lowest"), right("median"),
               right("highest"), left("unit")}};
  const std::vector<std::pair<std::string, std::vector<const char*>>> kinds{
      {"each NIC apart", {"out", "back"}},
      {"all NICs at once", {"together_out", "together_back"}},
      {"both ways, all NICs", {"both"}},
      {"latency", {"latency"}}};
  const auto place_of = [&rounds](const json& node, std::size_t nic) {
    return mpi::network_place(rounds["nodes"][node.get<std::size_t>()]["nics"][nic]);
  };
  std::map<std::string, std::map<std::size_t, std::vector<double>>> values;
  for (const auto& round : rounds["rounds"]) {
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      for (const char* member : kinds[kind].second) {
        for (std::size_t pair = 0; pair < round["pairs"].size(); ++pair) {
          const auto& nodes = round["pairs"][pair];
          for (std::size_t nic = 0; nic < round[member][pair].size(); ++nic) {
            const auto& rate = round[member][pair][nic];
            if (!rate.is_null()) {
              const auto distance =
                  fabricheck::distance_of(place_of(nodes[0], nic), place_of(nodes[1], nic));
              values[distance.empty() ? "unknown" : distance][kind].push_back(rate.get<double>());
            }
          }
        }
      }
    }
  }
  for (auto& [distance, by_kind] : values) {
    for (auto& [kind, all] : by_kind) {
      std::sort(all.begin(), all.end());
      table.rows.push_back({distance, kinds[kind].first, std::to_string(all.size()),
                            number(all.front()), number(median(all)), number(all.back()),
                            kinds[kind].first == "latency" ? "us" : "GB/s"});
    }
  }
  print_table(table, out);
  std::fprintf(
      out,
      "%zu nodes, %zu rounds, measured again: %zu; fabricheck network fabric says which are "
      "at fault\n",
      rounds["nodes"].size(), rounds["rounds"].size(), rounds["suspects"].size());
}

}  // namespace

int main(int argc, char** argv) {
  RankGroup group(argc, argv);
  group.tell_root_only();
  Options options;
  Program program;
  program.name = "fabric";
  program.description =
      "Messages between the NICs of many nodes in one launch, one rank beside each NIC. Nodes "
      "meet\n"
      "in rounds, each with one partner: each NIC apart, there and back, then all NICs at once "
      "one\n"
      "way and both ways, and the latency; what arrives is compared. NICs that are low with most\n"
      "partners are measured again with partners that are not. A node that dies or hangs is named\n"
      "and left out, and the rest goes on.\n"
      "Example: srun --ntasks-per-node=4 fabric --places address --output result.json";
  program.table = print_rates;
  program.define_options = [&options](CommandLine& line) { options.define(line); };
  program.body = [&options, &group](Run& run) { measure(options, group, run); };
  program.launch = &group;
  return run_program(program, argc, argv);
}

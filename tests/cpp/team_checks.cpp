// What ranks do together, checked by four of them: by MPI on this machine, or in a simulation. Ends
// with 5 when something is not as it should be, with a line for each such thing.
#include <cmath>
#include <cstdio>
#include <string>

#include "harness/run.hpp"
#include "harness/simulation.hpp"
#include "ranks/group.hpp"
#include "ranks/mpi_call.hpp"
#include "ranks/values.hpp"

using namespace fabricheck;
using nlohmann::json;

namespace {

void expect(bool good, const std::string& what) {
  if (!good) {
    throw Failure(Status::wrong_data, "not so: " + what);
  }
}

/// The failure that a step ends with.
std::string failure_of(Team& team, const std::function<void()>& work) {
  try {
    team.step("a step that fails", work);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

void agreement(Team& team) {
  const auto told = team.gather({{"rank", team.rank()}});
  expect(told.size() == 4 && told[2]["rank"] == 2, "every rank has what each rank gave");
  const auto said = failure_of(team, [&team] {
    if (team.rank() >= 2) {
      throw Failure(Status::unsupported, "rank " + std::to_string(team.rank()) + " can not");
    }
  });
  expect(said == "rank 2: rank 2 can not", "the lowest rank that failed is heard by all: " + said);
  expect(failure_of(team, [] {}).empty(), "the next step is a new one");
}

void exchange(Team& team, const SamplingRules& rules) {
  if (team.rank() == 0 || team.rank() == 3) {
    const Group pair(team, {3, 0});
    expect(pair.member() == (team.rank() == 3 ? 0 : 1), "members are in the order of the group");
    Array data(Datatype::int32, 1000, -1);
    if (pair.member() == 0) {
      data.fill({3});
      FABRICHECK_MPI(MPI_Send(data.data(), 1000, MPI_INT32_T, 1, 0, comm_of(pair)));
    } else {
      data.poison();
      FABRICHECK_MPI(
          MPI_Recv(data.data(), 1000, MPI_INT32_T, 0, 0, comm_of(pair), MPI_STATUS_IGNORE));
      expect(data.verify({3}, 0, -1).errors == 0, "a message has the sender's values");
    }
  }
  const Group all(team, team.everyone());
  Array mine(Datatype::byte, 1001, -1);
  Array sum(Datatype::byte, 1001, -1);
  mine.fill({team.rank()});
  sum.poison();
  const auto run = [&](int batch) {
    const double start = host_seconds();
    for (int i = 0; i < batch; ++i) {
      FABRICHECK_MPI(
          MPI_Allreduce(mine.data(), sum.data(), 1001, MPI_UNSIGNED_CHAR, MPI_SUM, comm_of(all)));
    }
    return host_seconds() - start;
  };
  const auto samples = sample(all, run, rules, TimeOf::mean);
  expect(sum.verify({0, 4}, team.rank(), -1).errors == 0, "a sum has all ranks' values");
  expect(static_cast<int>(samples.seconds.size()) >= rules.min_samples, "there are samples");
  for (const auto& members : samples.members) {
    expect(members.size() == 4, "a sample has a time of each member");
  }
  const auto batches = team.gather({{"batch", samples.batch}, {"samples", samples.seconds}});
  expect(batches.front() == batches.back(), "all members know the same samples");
}

/// Seconds of a message of 1 GiB from one rank to another, of which each pair here has one.
double message(Team& team, int from, int to, bool copies_too) {
  constexpr std::uint64_t bytes = 1ULL << 30;
  Array data(Datatype::byte, bytes, team.device());
  Array other(Datatype::byte, bytes, team.device());
  team.barrier();
  const double start = host_seconds();
  if (team.rank() == from) {
    FABRICHECK_MPI(MPI_Send(data.data(), 1 << 30, MPI_BYTE, to, 0, MPI_COMM_WORLD));
  } else if (team.rank() == to) {
    FABRICHECK_MPI(
        MPI_Recv(data.data(), 1 << 30, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else if (copies_too && team.rank() == 2) {
    const auto remote = Buffer::on_device(1, bytes);
    FABRICHECK_HIP(hipSetDevice(team.device()));
    FABRICHECK_HIP(hipMemcpy(remote.as<void>(), other.data(), bytes, hipMemcpyDefault));
  }
  return host_seconds() - start;
}

/// Ranks 0 and 2 are on device 0, ranks 1 and 3 on device 1 of three_devices.json: an engine copies
/// 8 GB/s, the link between both has 10 GB/s.
void simulated_messages(Team& team) {
  const auto expect_seconds = [&team](double found, double wanted, int ranks, const char* what) {
    // Ranks leave a barrier one after the other.
    expect(team.rank() >= ranks || std::abs(found / wanted - 1) < 1e-3,
           std::string(what) + ": " + std::to_string(found) + " s");
  };
  const double gib = std::pow(2.0, 30);
  const int even = team.rank() / 2 * 2;
  expect_seconds(message(team, 0, 1, false), 5e-6 + gib / 8e9, 2, "a message takes start and link");
  expect_seconds(message(team, even, even + 1, false), 5e-6 + gib / 5e9, 4,
                 "two messages share the link");
  expect_seconds(message(team, 0, 1, true), 5e-6 + gib / 5e9, 3,
                 "a message and a copy by engine share the link");
}

}  // namespace

int main(int argc, char** argv) {
  Team team(argc, argv);
  Program program;
  program.name = "affinity";  // its document needs no series
  program.description = "Checks of what ranks do together; four of them.";
  program.define_options = [](CommandLine&) {};
  program.rules.batch_seconds = 1e-4;
  program.rules.warm_up_seconds = 0;
  program.rules.series_seconds = 0;
  program.body = [&team](Run& run) {
    team.step("size", [&team] { expect(team.size() == 4, "there are four ranks"); });
    agreement(team);
    team.step("exchange", [&] { exchange(team, run.options().rules); });
    if (kSimulated) {
      team.step("messages", [&team] { simulated_messages(team); });
    }
  };
  program.launch = &team;
  return run_program(program, argc, argv);
}

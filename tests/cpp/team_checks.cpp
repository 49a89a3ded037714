// What ranks do together, checked by four of them: by MPI on this machine, or in a simulation. Ends
// with 5 when something is not as it should be, with a line for each such thing.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "harness/run.hpp"
#include "harness/simulation.hpp"
#include "mpi/probe.hpp"
#include "ranks/mpi_call.hpp"
#include "ranks/team.hpp"
#include "ranks/values.hpp"

using namespace fabricheck;
using namespace fabricheck::mpi;
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
      throw Failure(Status::unsupported, "rank " + std::to_string(team.rank()) + " cannot");
    }
  });
  expect(said == "rank 2: rank 2 cannot", "the lowest rank that failed is heard by all: " + said);
  expect(failure_of(team, [] {}).empty(), "the next step is a new one");
}

void exchange(Team& team) {
  const auto check = [](const std::vector<std::int32_t>& data, int first, int ranks) {
    return compare(nullptr, data.data(), {0, data.size(), {DataType::int32, first, ranks, 0, 0}})
               .errors == 0;
  };
  std::vector<std::int32_t> mine(1000);
  std::vector<std::int32_t> received(1000);
  fill(nullptr, mine.data(), {0, mine.size(), {DataType::int32, team.rank(), 1, 0, 0}});
  if (team.rank() == 3) {
    FABRICHECK_MPI(MPI_Send(mine.data(), 1000, MPI_INT32_T, 0, 0, MPI_COMM_WORLD));
  } else if (team.rank() == 0) {
    FABRICHECK_MPI(
        MPI_Recv(received.data(), 1000, MPI_INT32_T, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    expect(check(received, 3, 1), "a message has the sender's values");
  }
  FABRICHECK_MPI(
      MPI_Allreduce(mine.data(), received.data(), 1000, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD));
  expect(check(received, 0, 4), "a sum has all ranks' values");
}

/// An MPI that fails on the first message, as one does that reads memory of a device by the kernel:
/// here for want of a rank to send to.
void first_messages() {
  MPI_Comm alone = MPI_COMM_NULL;
  FABRICHECK_MPI(MPI_Comm_dup(MPI_COMM_SELF, &alone));
  FABRICHECK_MPI(MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN));
  try {
    require_device_messages(alone, nullptr, false, "CRAY MPICH version 8.1");
    expect(false, "a message to nobody fails");
  } catch (const Failure& failure) {
    const std::string said = failure.what();
    expect(failure.status() == Status::setting, "a first message that fails is a setting: " + said);
    expect(said.find("MPICH_GPU_SUPPORT_ENABLED") != std::string::npos, "it is named: " + said);
  }
  FABRICHECK_MPI(MPI_Comm_free(&alone));
}

/// Seconds of a message of 1 GiB from one rank to another, of which each pair here has one.
double message(Team& team, int from, int to, bool copies_too) {
  constexpr std::uint64_t bytes = 1ULL << 30;
  const auto data = Buffer::on_device(team.device(), bytes);
  const auto other = Buffer::on_device(team.device(), bytes);
  team.barrier();
  const double start = host_seconds();
  if (team.rank() == from) {
    FABRICHECK_MPI(MPI_Send(data.as<void>(), 1 << 30, MPI_BYTE, to, 0, MPI_COMM_WORLD));
  } else if (team.rank() == to) {
    FABRICHECK_MPI(
        MPI_Recv(data.as<void>(), 1 << 30, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else if (copies_too && team.rank() == 2) {
    const auto remote = Buffer::on_device(1, bytes);
    FABRICHECK_HIP(hipSetDevice(team.device()));
    FABRICHECK_HIP(hipMemcpy(remote.as<void>(), other.as<void>(), bytes, hipMemcpyDefault));
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
  expect_seconds(message(team, even, even + 1, false), 5e-6 + gib / 4e9, 4,
                 "two messages between the same devices share the engine");
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
  program.body = [&team](Run&) {
    team.step("size", [&team] { expect(team.size() == 4, "there are four ranks"); });
    agreement(team);
    team.step("exchange", [&team] { exchange(team); });
    team.step("first messages", first_messages);
    if (kSimulated) {
      team.step("messages", [&team] { simulated_messages(team); });
    }
  };
  program.launch = &team;
  return run_program(program, argc, argv);
}

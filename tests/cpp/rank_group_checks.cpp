// What ranks do together, checked by four of them: by MPI on this machine, or in a simulation. Ends
// with 5 when something is not as it should be, with a line for each such thing.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "harness/run.hpp"
#include "harness/simulation.hpp"
#include "mpi/probe.hpp"
#include "mpi/values.hpp"
#include "ranks/mpi_call.hpp"
#include "ranks/rank_group.hpp"

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
std::string failure_of(RankGroup& group, const std::function<void()>& work) {
  try {
    group.step("a step that fails", work);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

void agreement(RankGroup& group) {
  const auto told = group.gather({{"rank", group.rank()}});
  expect(told.size() == 4 && told[2]["rank"] == 2, "every rank has what each rank gave");
  const auto said = failure_of(group, [&group] {
    if (group.rank() >= 2) {
      throw Failure(Status::unsupported, "rank " + std::to_string(group.rank()) + " cannot");
    }
  });
  expect(said == "rank 2: rank 2 cannot", "the lowest rank that failed is heard by all: " + said);
  expect(failure_of(group, [] {}).empty(), "the next step is a new one");
}

void exchange(RankGroup& group) {
  const auto check = [](const std::vector<std::int32_t>& data, int first, int ranks) {
    return compare(nullptr, data.data(), {0, data.size(), {DataType::int32, first, ranks, 0, 0}})
               .errors == 0;
  };
  std::vector<std::int32_t> mine(1000);
  std::vector<std::int32_t> received(1000);
  fill(nullptr, mine.data(), {0, mine.size(), {DataType::int32, group.rank(), 1, 0, 0}});
  if (group.rank() == 3) {
    FABRICHECK_MPI(MPI_Send(mine.data(), 1000, MPI_INT32_T, 0, 0, MPI_COMM_WORLD));
  } else if (group.rank() == 0) {
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
double message(RankGroup& group, int from, int to, bool copies_too) {
  constexpr std::uint64_t bytes = 1ULL << 30;
  const auto data = Buffer::on_device(group.device(), bytes);
  const auto other = Buffer::on_device(group.device(), bytes);
  group.barrier();
  const double start = host_seconds();
  if (group.rank() == from) {
    FABRICHECK_MPI(MPI_Send(data.as<void>(), 1 << 30, MPI_BYTE, to, 0, MPI_COMM_WORLD));
  } else if (group.rank() == to) {
    FABRICHECK_MPI(
        MPI_Recv(data.as<void>(), 1 << 30, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else if (copies_too && group.rank() == 2) {
    const auto remote = Buffer::on_device(1, bytes);
    FABRICHECK_HIP(hipSetDevice(group.device()));
    FABRICHECK_HIP(hipMemcpy(remote.as<void>(), other.as<void>(), bytes, hipMemcpyDefault));
  }
  return host_seconds() - start;
}

/// Ranks 0 and 2 are on device 0, ranks 1 and 3 on device 1 of three_devices.json: an engine copies
/// 8 GB/s, the link between both has 10 GB/s.
void simulated_messages(RankGroup& group) {
  const auto expect_seconds = [&group](double found, double wanted, int ranks, const char* what) {
    // Ranks leave a barrier one after the other.
    expect(group.rank() >= ranks || std::abs(found / wanted - 1) < 1e-3,
           std::string(what) + ": " + std::to_string(found) + " s");
  };
  const double gib = std::pow(2.0, 30);
  const int even = group.rank() / 2 * 2;
  expect_seconds(message(group, 0, 1, false), 5e-6 + gib / 8e9, 2,
                 "a message takes start and link");
  expect_seconds(message(group, even, even + 1, false), 5e-6 + gib / 4e9, 4,
                 "two messages between the same devices share the engine");
  expect_seconds(message(group, 0, 1, true), 5e-6 + gib / 5e9, 3,
                 "a message and a copy-engine transfer share the link");
}

}  // namespace

int main(int argc, char** argv) {
  RankGroup group(argc, argv);
  Program program;
  program.name = "affinity";  // its document needs no series
  program.description = "Checks of what ranks do together; four of them.";
  program.define_options = [](CommandLine&) {};
  program.body = [&group](Run&) {
    group.step("size", [&group] { expect(group.size() == 4, "there are four ranks"); });
    agreement(group);
    group.step("exchange", [&group] { exchange(group); });
    group.step("first messages", first_messages);
    if (kSimulated) {
      group.step("messages", [&group] { simulated_messages(group); });
    }
  };
  program.launch = &group;
  return run_program(program, argc, argv);
}

#include "fabric/meter.hpp"

#include <algorithm>
#include <functional>

#include "harness/simulation.hpp"
#include "harness/statistics.hpp"
#include "mpi/crossing.hpp"

namespace fabricheck::fabric {
namespace {

using nlohmann::json;

// Messages of a round that somebody gave up must not be taken for those of a later one.
constexpr int kRoundsOfTags = 1000;
constexpr int kTagsOfRound = 8;
constexpr int kFirstTag = 100;

int tag_of(int sequence) { return kFirstTag + sequence % kRoundsOfTags * kTagsOfRound; }
int gate_tag_of(int sequence) { return tag_of(sequence) + mpi::kTagsOfExchange; }

/// Does `work`; a failure is kept in the result, so that the other ranks of the node go on.
bool attempt(json& result, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const Failure& failure) {
    result["failed"] = failure.what();
  }
  return false;
}

}  // namespace

Meter::Meter(MPI_Comm world, Accessor accessor, const Amounts& amounts, std::vector<int> here,
             std::vector<Fault> faults)
    : accessor_(accessor), amounts_(amounts), here_(std::move(here)), faults_(std::move(faults)) {
  FABRICHECK_MPI(MPI_Comm_dup(world, &comm_));
  FABRICHECK_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  FABRICHECK_MPI(MPI_Comm_rank(comm_, &rank_));
  position_ =
      static_cast<std::size_t>(std::find(here_.begin(), here_.end(), rank_) - here_.begin());
  source_ = mpi::MessageArray(accessor_, amounts_.bytes, moved_bytes(amounts_.bytes));
  destination_ = mpi::MessageArray(accessor_, amounts_.bytes, moved_bytes(amounts_.bytes));
  fill(accessor_, source_.data(), region(rank_));
}

Region Meter::region(int rank) const {
  return {0, moved_bytes(amounts_.bytes), {DataType::byte, rank, 1, 0, 0}};
}

void Meter::gate(int tag, const mpi::Patience& patience) {
  const auto pass = [&](const std::vector<int>& from, const std::vector<int>& to) {
    std::vector<MPI_Request> requests;
    for (const int rank : from) {
      FABRICHECK_MPI(MPI_Irecv(nullptr, 0, MPI_BYTE, rank, tag, comm_, &requests.emplace_back()));
    }
    patience.wait_quietly(requests, requests.size());
    requests.clear();
    for (const int rank : to) {
      FABRICHECK_MPI(MPI_Isend(nullptr, 0, MPI_BYTE, rank, tag, comm_, &requests.emplace_back()));
    }
    patience.wait_quietly(requests, 0);
  };
  const int leader = here_.front();
  const std::vector<int> others(here_.begin() + 1, here_.end());
  if (rank_ == leader) {
    pass(others, others);
  } else {
    pass({}, {leader});
    pass({leader}, {});
  }
}

json Meter::prove(const std::vector<int>& peers, int sequence, const std::string& node,
                  const Places& places, const mpi::Patience& patience) {
  json result = {{"network", nullptr}};
  attempt(result, [&] {
    for (std::size_t turn = 0; turn < here_.size(); ++turn) {
      if (turn == position_ && peers[turn] >= 0) {
        attempt(result, [&] {
          const auto use = mpi::cross(comm_, accessor_, peers[turn], node, places, patience);
          result["network"] = to_json(use);
        });
      }
      gate(gate_tag_of(sequence), patience);
    }
  });
  return result;
}

double Meter::rate(const mpi::Exchange& exchange, bool both, const mpi::Patience& patience) const {
  std::vector<double> rates;
  const double bytes = static_cast<double>(amounts_.bytes) * amounts_.messages * (both ? 2 : 1);
  // The first sample makes connections and mappings.
  const int samples = kSimulated ? 1 : amounts_.repetitions + 1;
  for (int i = 0; i < samples; ++i) {
    const double seconds = mpi::windows(exchange, both, amounts_.messages, 1, patience);
    if (kSimulated || i > 0) {
      rates.push_back(bytes / seconds / 1e9);
    }
  }
  return median(std::move(rates));
}

double Meter::latency(mpi::Exchange exchange, const mpi::Patience& patience) const {
  exchange.count = static_cast<int>(amounts_.latency_bytes);
  std::vector<double> samples;
  for (int i = 0; i < (kSimulated ? 1 : amounts_.repetitions); ++i) {
    mpi::meet(exchange, patience);
    const double start = MPI_Wtime();
    for (int trip = 0; trip < amounts_.round_trips; ++trip) {
      mpi::there_and_back(exchange, patience);
    }
    samples.push_back((MPI_Wtime() - start) / 2 / amounts_.round_trips * 1e6);
  }
  return median(std::move(samples));
}

void Meter::apart(const mpi::Exchange& exchange, json& result, const mpi::Patience& patience) {
  const double micros = latency(exchange, patience);
  const double out = rate(exchange, false, patience);
  auto reverse = exchange;
  reverse.first = !exchange.first;
  const double back = rate(reverse, false, patience);
  // The source of messages has the clock.
  result[exchange.first ? "out" : "back"] = exchange.first ? out : back;
  result["latency"] = micros;
}

void Meter::check(int peer, json& result) {
  const auto expected = region(peer);
  for (const auto& fault : faults_) {
    if (fault.kind == Fault::Kind::unwritten) {
      poison(accessor_, destination_.data(), expected.count);
    } else if (fault.kind == Fault::Kind::flip_bit && fault.offset_bytes < expected.count) {
      flip_bit(accessor_, destination_.data(), fault.offset_bytes, fault.bit % 8);
    }
  }
  const auto comparison = compare(accessor_, destination_.data(), expected);
  result["checked"] = result["checked"].get<std::uint64_t>() + comparison.bytes_checked;
  if (comparison.errors > 0 && !result.contains("wrong")) {
    result["wrong"] = {
        {"errors", comparison.errors},
        {"offset_bytes", comparison.first_mismatch->offset_bytes},
        {"expected", element_text(DataType::byte, comparison.first_mismatch->expected)},
        {"found", element_text(DataType::byte, comparison.first_mismatch->found)}};
  }
  poison(accessor_, destination_.data(), expected.count);
}

void Meter::renew() {
  given_up_.push_back(std::move(destination_));
  destination_ = mpi::MessageArray(accessor_, amounts_.bytes, moved_bytes(amounts_.bytes));
}

json Meter::round(const std::vector<int>& peers, int sequence, bool first,
                  const mpi::Patience& patience) {
  json result = {{"checked", 0}};
  const int peer = peers[position_];
  mpi::Exchange exchange{comm_,
                         peer,
                         first,
                         source_.data(),
                         destination_.data(),
                         static_cast<int>(amounts_.bytes),
                         MPI_BYTE,
                         tag_of(sequence)};
  const int tag = gate_tag_of(sequence);
  bool good = peer >= 0;
  const bool in_time = attempt(result, [&] {
    poison(accessor_, destination_.data(), moved_bytes(amounts_.bytes));
    for (std::size_t turn = 0; turn < here_.size(); ++turn) {
      if (turn == position_ && good) {
        good = attempt(result, [&] { apart(exchange, result, patience); });
      }
      gate(tag, patience);
    }
    if (good) {
      check(peer, result);
    }
    for (const bool out : {true, false}) {
      exchange.first = first == out;
      gate(tag, patience);
      if (good) {
        good = attempt(result, [&] {
          const double gbs = rate(exchange, false, patience);
          if (exchange.first) {
            result[out ? "together_out" : "together_back"] = gbs;
          }
        });
      }
    }
    gate(tag, patience);
    if (good) {
      good = attempt(result, [&] { result["both"] = rate(exchange, true, patience); });
    }
    if (good) {
      check(peer, result);
    }
  });
  if (!in_time || (peer >= 0 && !good)) {
    renew();
  }
  return result;
}

}  // namespace fabricheck::fabric

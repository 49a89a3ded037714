#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "mpi/contents.hpp"
#include "mpi/plan.hpp"

using namespace fabricheck;
using namespace fabricheck::mpi;

namespace {

template <typename Parse>
std::pair<Status, std::string> failure_of(const Parse& parse) {
  try {
    (void)parse();
  } catch (const Failure& failure) {
    return {failure.status(), failure.what()};
  }
  return {Status::good, ""};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> texts(const std::vector<MpiJob>& jobs) {
  std::vector<std::string> result;
  for (const auto& job : jobs) {
    result.push_back(std::string(job.experiment()) + " " + job.text());
  }
  return result;
}

MpiRequest request_of(int ranks) {
  MpiRequest request;
  request.ranks = ranks;
  request.pair_operations = parse_pair_operations("latency,bandwidth");
  request.pairs = parse_rank_pairs("all", ranks);
  request.together = parse_together("rounds", request.pairs, ranks);
  request.sizes = {1 << 20};
  request.collectives = parse_collectives("reduce,bcast,allreduce,reduce_scatter,allgather");
  request.rank_counts = parse_rank_counts("each", ranks);
  request.collective_sizes = {1 << 20};
  request.types = parse_types("byte,int32,float,double");
  request.counts = parse_counts("1,1009");
  return request;
}

MpiJob collective(MpiOperation operation, int ranks, std::uint64_t count) {
  return {operation, {}, ranks, DataType::int32, count, false};
}

}  // namespace

TEST_CASE("a tournament of disjoint pairs has every ordered pair once") {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    CAPTURE(ranks);
    const auto pairs = parse_rank_pairs("all", ranks);
    CHECK(pairs.size() == static_cast<std::size_t>(ranks * (ranks - 1)));
    std::map<std::pair<int, int>, int> met;
    const auto sets = parse_together("rounds", pairs, ranks);
    for (const auto& set : sets) {
      std::set<int> busy;
      for (const auto& pair : set) {
        CHECK(busy.insert(pair.from).second);
        CHECK(busy.insert(pair.to).second);
        ++met[{pair.from, pair.to}];
      }
      CHECK(set.size() == static_cast<std::size_t>(ranks / 2));
    }
    if (ranks < 4) {
      CHECK(sets.empty());  // one pair at a time is no set
      continue;
    }
    CHECK(sets.size() == static_cast<std::size_t>(2 * (ranks % 2 == 0 ? ranks - 1 : ranks)));
    CHECK(met.size() == pairs.size());
    for (const auto& [pair, times] : met) {
      CHECK(times == 1);
    }
  }
}

TEST_CASE("rounds have only the pairs asked for") {
  const auto sets = parse_together("rounds", parse_rank_pairs("0-1,2-3,3-2", 4), 4);
  REQUIRE(sets.size() == 1);
  CHECK(sets[0] == std::vector<RankPair>{{0, 1}, {2, 3}});
  CHECK(parse_together("none", parse_rank_pairs("all", 4), 4).empty());
  CHECK(parse_together("3-0,2-1", {}, 4).front().size() == 2);
}

TEST_CASE("pairs, sets and numbers of ranks that mean nothing are refused by name") {
  using Row = std::pair<std::string, std::string>;
  for (const auto& [written, part] :
       {Row{"0", "'0' is not a pair: write two ranks as in 0-1"},
        Row{"0-x", "'x' is not a whole number"}, Row{"1-1", "the pair 1-1 is one rank twice"},
        Row{"0-1,0-1", "names the pair 0-1 twice"}, Row{"0-1,", "has an empty item"}}) {
    const auto& text = written;  // no lambda of C++17 may use a structured binding
    CAPTURE(text);
    const auto [status, sentence] = failure_of([&text] { return parse_rank_pairs(text, 4); });
    CHECK(status == Status::usage);
    CHECK(contains(sentence, part));
  }
  const auto [status, sentence] = failure_of([] { return parse_rank_pairs("0-1,2-9", 4); });
  CHECK(status == Status::unsupported);
  CHECK(contains(sentence, "rank 9 of the pair 2-9 does not exist: the launch has 4, 0 to 3"));
  CHECK(contains(failure_of([] { return parse_together("0-1,1-2", {}, 4); }).second,
                 "in the set 0-1,1-2 a rank is in two pairs, the second 1-2"));
  CHECK(contains(failure_of([] { return parse_rank_counts("1", 4); }).second,
                 "a collective needs two ranks"));
  CHECK(failure_of([] { return parse_rank_counts("5", 4); }).first == Status::unsupported);
  CHECK(contains(failure_of([] { return parse_rank_counts("2,2", 4); }).second, "has 2 twice"));
  CHECK(parse_rank_counts("each", 4) == std::vector<int>{2, 3, 4});
  CHECK(parse_rank_counts("all", 4) == std::vector<int>{4});
  CHECK(parse_rank_counts("4,2", 4) == std::vector<int>{4, 2});
  for (const std::string text : {"0", "-1", "1,x", "2000000000000"}) {
    CHECK(failure_of([&text] { return parse_counts(text); }).first == Status::usage);
  }
}

TEST_CASE("operations are known by name, reductions as a group") {
  CHECK(parse_collectives("none").empty());
  CHECK(parse_collectives("reductions") == std::vector<MpiOperation>{MpiOperation::reduce,
                                                                     MpiOperation::allreduce,
                                                                     MpiOperation::reduce_scatter});
  CHECK(contains(failure_of([] { return parse_collectives("alltoall"); }).second,
                 "'alltoall' is not a collective: choose from reduce, bcast, allreduce, "
                 "reduce_scatter, allgather"));
  CHECK(contains(failure_of([] { return parse_collectives("reductions,reduce"); }).second,
                 "names reduce twice"));
  CHECK(contains(failure_of([] { return parse_pair_operations("bcast"); }).second,
                 "'bcast' is not an operation of pairs: choose from latency, bandwidth, "
                 "bandwidth-both"));
}

TEST_CASE("the plan of two ranks is all there is to two ranks, reductions last") {
  auto request = request_of(2);
  request.types = parse_types("byte,float");
  request.counts = {250};
  CHECK(texts(plan_mpi(request)) ==
        std::vector<std::string>{"E9 latency of 16 B of byte from rank 0 to 1",
                                 "E9 latency of 16 B of byte from rank 1 to 0",
                                 "E9 bandwidth of 1 MiB of byte from rank 0 to 1",
                                 "E9 bandwidth of 1 MiB of byte from rank 1 to 0",
                                 "E10 bcast of 1 MiB of float among ranks 0 to 1",
                                 "E10 allgather of 1 MiB of float among ranks 0 to 1",
                                 "E12 exchange of 250 B of byte among ranks 0 to 1",
                                 "E12 exchange of 1000 B of float among ranks 0 to 1",
                                 "E12 bcast of 250 B of byte among ranks 0 to 1",
                                 "E12 bcast of 1000 B of float among ranks 0 to 1",
                                 "E12 allgather of 250 B of byte among ranks 0 to 1",
                                 "E12 allgather of 1000 B of float among ranks 0 to 1",
                                 "E10 reduce of 1 MiB of float among ranks 0 to 1",
                                 "E10 allreduce of 1 MiB of float among ranks 0 to 1",
                                 "E10 reduce_scatter of 1 MiB of float among ranks 0 to 1",
                                 "E12 reduce of 1000 B of float among ranks 0 to 1",
                                 "E12 allreduce of 1000 B of float among ranks 0 to 1",
                                 "E12 reduce_scatter of 1000 B of float among ranks 0 to 1"});
}

TEST_CASE("the plan of eight ranks has all 56 pairs alone and at once, and collectives on 2 to 8") {
  const auto jobs = plan_mpi(request_of(8));
  std::map<std::string, int> counts;
  for (const auto& job : jobs) {
    const auto key = std::string(job.experiment()) + " " + operation_name(job.operation);
    counts[key + (job.pairs.size() > 1 ? " at once" : "")] += 1;
    CHECK(job.has(job.members().front()));
  }
  CHECK(counts["E9 latency"] == 56);
  CHECK(counts["E9 bandwidth"] == 56);
  CHECK(counts["E9 bandwidth at once"] == 14);
  CHECK(counts["E10 allreduce"] == 7);
  CHECK(counts["E12 exchange"] == 4 * 2);
  CHECK(counts["E12 bcast"] == 4 * 2);
  CHECK(counts["E12 reduce"] == 3 * 2);  // bytes have no sums
}

TEST_CASE("what MPI is known not to do is not planned") {
  auto request = request_of(4);
  for (const auto operation : parse_collectives("reductions")) {
    request.without.insert(operation);
  }
  for (const auto& job : plan_mpi(request)) {
    CHECK_FALSE(is_reduction(job.operation));
  }
}

TEST_CASE("both ways at once is measured once for each two ranks, and for each round") {
  auto request = request_of(4);
  request.pair_operations = parse_pair_operations("bandwidth-both");
  request.collectives = {};
  request.types = {};
  const auto jobs = plan_mpi(request);
  CHECK(jobs.size() == 6 + 3);
  CHECK(jobs.front().text() == "bandwidth-both of 1 MiB of byte from rank 0 to 1");
  CHECK(jobs.back().pairs.size() == 2);
}

TEST_CASE("sizes that are no whole number of elements, and too many ranks to sum, are refused") {
  auto request = request_of(2);
  request.collective_sizes = {1001};
  CHECK(contains(failure_of([&] { return plan_mpi(request); }).second,
                 "1001 B is not a multiple of the 4 B of float"));
  request = request_of(2);
  request.rank_counts = {kMostRanksOfSums + 1};
  CHECK(contains(failure_of([&] { return plan_mpi(request); }).second, "at most 4096 ranks"));
}

TEST_CASE("windows hold 4 to 64 messages") {
  CHECK(window_for(1) == 64);
  CHECK(window_for(256 << 10) == 64);
  CHECK(window_for(1 << 20) == 16);
  CHECK(window_for(1 << 30) == 4);
}

TEST_CASE("a message arrives as it was given, at the rank it is for") {
  const MpiJob one{MpiOperation::bandwidth, {{2, 0}}, 0, DataType::float64, 10, true};
  CHECK(contents_of(one, 2).given.size() == 1);
  CHECK(contents_of(one, 2).received.empty());
  CHECK(contents_of(one, 0).given.empty());
  CHECK(contents_of(one, 0).received.front().content.first_rank == 2);
  CHECK(contents_of(one, 1).given.empty());
  const MpiJob both{MpiOperation::latency, {{2, 0}}, 0, DataType::float64, 10, true};
  CHECK(contents_of(both, 2).received.front().content.first_rank == 0);
  const auto exchange = collective(MpiOperation::exchange, 3, 5);
  for (int from = 0; from < 3; ++from) {
    for (const auto& given : contents_of(exchange, from).given) {
      const int to = static_cast<int>(given.offset / 5);
      CHECK(to != from);
      bool found = false;
      for (const auto& received : contents_of(exchange, to).received) {
        found = found || (received.offset == static_cast<std::uint64_t>(from) * 5 &&
                          received.content.first_rank == from &&
                          received.content.message == given.content.message);
      }
      CHECK(found);
    }
  }
}

TEST_CASE("what a reduce_scatter leaves are parts of one sum, one element apart at most") {
  CHECK(scatter_counts(10, 4) == std::vector<int>{3, 3, 2, 2});
  CHECK(scatter_counts(1, 3) == std::vector<int>{1, 0, 0});
  for (const std::uint64_t count : {1ULL, 7ULL, 1009ULL}) {
    std::uint64_t next = 0;
    for (int rank = 0; rank < 8; ++rank) {
      const auto part = contents_of(collective(MpiOperation::reduce_scatter, 8, count), rank);
      REQUIRE(part.received.size() == 1);
      CHECK(part.received[0].content.first == next);
      CHECK(part.received[0].content.ranks == 8);
      next += part.received[0].count;
    }
    CHECK(next == count);
  }
}

TEST_CASE("each rank ends with what its collective promises") {
  const auto gathered = contents_of(collective(MpiOperation::allgather, 3, 7), 1);
  CHECK(extent_of(gathered.given) == 7);
  CHECK(extent_of(gathered.received) == 21);
  CHECK(gathered.received[2].content.first_rank == 2);
  CHECK(contents_of(collective(MpiOperation::bcast, 3, 7), 0).in_place);
  CHECK_FALSE(contents_of(collective(MpiOperation::bcast, 3, 7), 2).in_place);
  CHECK(contents_of(collective(MpiOperation::bcast, 3, 7), 2).received[0].content.first_rank == 0);
  CHECK(contents_of(collective(MpiOperation::reduce, 3, 7), 0).received[0].content.ranks == 3);
  CHECK(contents_of(collective(MpiOperation::reduce, 3, 7), 1).received.empty());
  CHECK(contents_of(collective(MpiOperation::allreduce, 3, 7), 2).received[0].content.ranks == 3);
  CHECK(contents_of(collective(MpiOperation::allreduce, 3, 7), 3).received.empty());
}

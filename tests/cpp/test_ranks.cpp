// What ranks do without MPI: places, the board, faults.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "ranks/board.hpp"
#include "ranks/fault.hpp"
#include "ranks/place.hpp"

using namespace fabricheck;
using nlohmann::json;

namespace {

json device(int index, const json& address, const json& id = nullptr) {
  return {{"index", index}, {"name", "one"}, {"pci_address", address}, {"unique_id", id}};
}

RankReport report(const std::string& host, const json& devices, int own) {
  RankReport result;
  result.host = {{"hostname", host},
                 {"numa_domains", json::array({{{"index", 0}, {"cores", {0, 1}}}})}};
  result.node = host;
  result.devices = devices;
  result.device = own;
  result.cores = {0};
  result.numa_domain = 0;
  return result;
}

std::vector<int> visible(const json& rank) { return rank["visible_devices"]; }

}  // namespace

TEST_CASE("a rank has the device of the map, else that of its number on its machine") {
  CHECK(choose_device({}, 5, 1, 4) == 1);
  CHECK(choose_device({}, 5, 5, 4) == 1);
  CHECK(choose_device({}, 5, 5, 1) == 0);
  CHECK(choose_device({3, 0, 2}, 2, 0, 4) == 2);
  CHECK_THROWS_WITH_AS((void)choose_device({3, 0}, 2, 0, 4), doctest::Contains("--map names"),
                       Failure);
  CHECK_THROWS_WITH_AS((void)choose_device({4}, 0, 0, 4), doctest::Contains("device 4"), Failure);
  CHECK(numbers_of("3,0", "device") == std::vector<int>{3, 0});
  CHECK(numbers_of("", "device").empty());
  CHECK_THROWS_AS((void)numbers_of("3,,0", "device"), Failure);
}

TEST_CASE("cores are of one NUMA domain or of several") {
  const json domains = {{{"index", 0}, {"cores", {0, 1}}}, {{"index", 3}, {"cores", {2, 3}}}};
  CHECK(domain_of_cores({2, 3}, domains) == 3);
  CHECK(domain_of_cores({1, 2}, domains) == -1);
  CHECK(domain_of_cores({9}, domains) == -1);
}

TEST_CASE("ranks that each see one device have different devices") {
  const auto first = json::array({device(0, "0000:c1:00.0")});
  const auto second = json::array({device(0, "0000:c6:00.0")});
  const auto all = together({report("a", first, 0), report("a", second, 0), report("a", first, 0)});
  REQUIRE(all.devices.size() == 2);
  CHECK(all.devices[1]["index"] == 1);
  CHECK(all.devices[1]["pci_address"] == "0000:c6:00.0");
  CHECK(visible(all.ranks[1]) == std::vector<int>{1});
  CHECK(all.ranks[1]["device"] == 1);
  CHECK(all.ranks[2]["device"] == 0);
}

TEST_CASE("devices keep apart by machine, by unique id, and by number where there is neither") {
  const auto plain = json::array({device(0, nullptr), device(1, nullptr)});
  CHECK(together({report("a", plain, 0), report("a", plain, 1)}).devices.size() == 2);
  CHECK(together({report("a", plain, 0), report("b", plain, 1)}).devices.size() == 4);
  const auto slices = json::array({device(0, "0000:c1:00.0", "x"), device(1, "0000:c1:00.0", "y")});
  CHECK(together({report("a", slices, 0)}).devices.size() == 2);
}

TEST_CASE("nodes of a scheduler on one machine are different machines, and ranks name them") {
  const auto plain = json::array({device(0, "0000:c1:00.0")});
  auto reports = std::vector{report("vm", plain, 0), report("vm", plain, 0)};
  CHECK(together(reports).ranks[1]["host"] == "vm");
  reports[0].node = "n0";
  reports[1].node = "n1";
  const auto all = together(reports);
  CHECK(all.devices.size() == 2);
  CHECK(all.ranks[1]["device"] == 1);
  CHECK(all.ranks[1]["host"] == "n1");
  CHECK(all.nodes == std::vector<std::string>{"n0", "n1"});
}

TEST_CASE("a rank without a device or a proved domain says so") {
  const auto all = together({report("a", json::array({device(0, nullptr)}), -1)});
  CHECK(all.ranks[0]["device"].is_null());
  CHECK(all.ranks[0]["memory_domain"].is_null());
  CHECK(all.ranks[0]["numa_domain"] == 0);
}

TEST_CASE("NUMA domains are what the ranks of a machine see together") {
  auto other = report("a", json::array(), -1);
  other.host["numa_domains"] =
      json::array({{{"index", 1}, {"cores", {7}}}, {{"index", 0}, {"cores", {5, 1}}}});
  auto stranger = report("b", json::array(), -1);
  stranger.host["numa_domains"] = json::array({{{"index", 9}, {"cores", {9}}}});
  const auto all = together({report("a", json::array(), -1), other, stranger});
  REQUIRE(all.numa_domains.size() == 2);
  CHECK(all.numa_domains[0]["cores"] == json({0, 1, 5}));
  CHECK(all.numa_domains[1]["index"] == 1);
}

TEST_CASE("a report survives being sent") {
  const auto sent = report("a", json::array({device(0, nullptr)}), 0);
  const RankReport back = json::parse(json(sent).dump());
  CHECK(back.host == sent.host);
  CHECK(back.cores == sent.cores);
  CHECK(back.memory_domain == -1);
}

TEST_CASE("the board tells whom the others wait for") {
  Notice zero;
  Notice one;
  Notice two;
  const std::vector<const Notice*> board{&zero, &one, nullptr, &two};
  CHECK(waited_for_on(board).empty());
  enter(zero, "first");
  enter(two, "first");
  CHECK(waited_for_on(board) == "; rank 1 has not come to: first");
  enter(one, "first");
  CHECK(waited_for_on(board) == "; at: first");
  ++zero.left;
  CHECK(waited_for_on(board) == "; ranks 1, 3 are still at: first");
  ++one.left;
  CHECK(waited_for_on(board) == "; rank 3 is still at: first");
}

TEST_CASE("the board tells who failed, with a sentence of any length") {
  Notice zero;
  Notice one;
  const std::vector<const Notice*> board{&zero, &one};
  CHECK_FALSE(trouble_on(board, true));
  fail(one, {Status::unsupported, "no such core", false});
  const auto found = trouble_on(board, true);
  REQUIRE(found);
  CHECK(found->sentence == "rank 1: no such core");
  CHECK(found->status == Status::unsupported);
  fail(zero, {Status::software, std::string(5000, 'x'), false});
  CHECK(trouble_on(board, true)->sentence.rfind("rank 0: xxx", 0) == 0);
}

TEST_CASE("the board tells who died, also while nobody asked the system for its end") {
  const auto child = fork();
  if (child == 0) {
    _exit(0);
  }
  siginfo_t ended{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);  // a zombie
  Notice zero;
  Notice one;
  zero.process = getpid();
  one.process = child;
  enter(one, "the middle");
  const std::vector<const Notice*> board{&zero, &one};
  REQUIRE(trouble_on(board, true));
  CHECK(trouble_on(board, true)->sentence == "rank 1 died, after it came to: the middle");
  CHECK_FALSE(trouble_on(board, false));
  (void)waitpid(child, nullptr, 0);
  CHECK(is_dead(child));
  one.gone = true;
  CHECK_FALSE(trouble_on(board, true));
  CHECK_FALSE(is_dead(getpid()));
}

TEST_CASE("faults of ranks are read, and what is none is refused") {
  CHECK(parse_rank_fault("rank:1:hang").kind == RankFault::Kind::hang);
  CHECK(parse_rank_fault("rank:1:hang").step == 1);
  const auto die = parse_rank_fault("rank:12:die:3");
  CHECK(die.kind == RankFault::Kind::die);
  CHECK(die.rank == 12);
  CHECK(die.step == 3);
  CHECK(parse_rank_fault("rank:0:throw").kind == RankFault::Kind::fail);
  const auto flip = parse_rank_fault("rank:2:flip-bit:8:3");
  CHECK(flip.kind == RankFault::Kind::data);
  CHECK(flip.data.offset_bytes == 8);
  CHECK(flip.data.bit == 3);
  for (const auto* text : {"", "rank", "rank:", "rank:1", "rank:x:hang", "rank:1:sleep",
                           "rank:1:hang:x", "rank:1:flip-bit:8", "flip-bit:8:3"}) {
    CHECK_THROWS_AS((void)parse_rank_fault(text), Failure);
  }
  CHECK_THROWS_WITH_AS(inject_rank_faults({parse_rank_fault("rank:1:throw:2")}, 1, 2),
                       "injected failure", Failure);
  CHECK_NOTHROW(inject_rank_faults({parse_rank_fault("rank:1:throw:2")}, 1, 1));
  CHECK_NOTHROW(inject_rank_faults({parse_rank_fault("rank:1:die:2")}, 0, 2));
}

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "machine.hpp"

using namespace fabricheck_sim;
using nlohmann::json;

namespace {

json good() {
  std::ifstream file(FABRICHECK_TEST_NODE);
  return json::parse(file);
}

/// The sentence that refuses a text.
std::string refusal(const std::string& text) {
  const std::string path = "refused-node.json";
  std::ofstream(path) << text;
  std::string sentence;
  try {
    (void)read_node(path);
  } catch (const std::runtime_error& error) {
    sentence = error.what();
  }
  (void)std::remove(path.c_str());
  return sentence;
}

bool names(const std::string& sentence, const std::string& part) {
  return sentence.find("refused-node.json") != std::string::npos &&
         sentence.find(part) != std::string::npos;
}

bool always(const Place&, const Place&) { return true; }
bool never(const Place&, const Place&) { return false; }

}  // namespace

TEST_CASE("a platform is read with its routes") {
  const auto node = read_node(FABRICHECK_TEST_NODE);
  CHECK(node.devices.size() == 4);
  CHECK(node.launch == doctest::Approx(2e-6));
  const auto& copy = node.copy.at({"device0", "device1"});
  CHECK(copy.start == doctest::Approx(5e-6));
  CHECK(node.links[copy.links.back()].each);
  CHECK(node.links[copy.links.back()].bytes_per_second == doctest::Approx(8e9));
  CHECK(node.pageable.size() == 2);
  const auto& pageable = node.pageable.at({"domain0", "device0"});
  CHECK(node.links[pageable.links.back()].bytes_per_second == doctest::Approx(40e9));
  CHECK(pageable.start == doctest::Approx(3e-6));
  CHECK(node.pin == doctest::Approx(7e-6));
  CHECK(node.staged_bytes == 65536);
}

TEST_CASE("pages take the way of copies between host and device, and the link of its faults") {
  const auto node = read_node(FABRICHECK_TEST_NODE);
  CHECK(node.migration.size() == 2);
  for (const auto& ends : {std::pair("domain0", "device0"), std::pair("device0", "domain0")}) {
    const auto& links = node.migration.at(ends).links;
    REQUIRE(links.size() == 2);
    CHECK(node.links[links.front()].name == "domain 0");
    CHECK(node.links[links.back()].name == "page migration of device0");
    CHECK(node.links[links.back()].bytes_per_second == doctest::Approx(2e9));
    CHECK_FALSE(node.links[links.back()].each);
  }
}

TEST_CASE("messages have a way by engine and by kernel, and the rate of one alone") {
  const auto node = read_node(FABRICHECK_TEST_NODE);
  const auto engine = message_ways(node, always);
  const auto kernel = message_ways(node, never);
  const std::pair devices{"device0", "device1"};
  CHECK(engine.at(devices).bytes_per_second == doctest::Approx(8e9));
  CHECK(kernel.at(devices).bytes_per_second == doctest::Approx(10e9));
  const auto& host = engine.at({"domain0", "domain0"});
  CHECK(host.bytes_per_second == doctest::Approx(25e9));  // its link counts twice
  CHECK(host.host_only);
  CHECK_FALSE(engine.at(devices).host_only);
}

TEST_CASE("a message takes its bytes, and what it costs its receiver") {
  auto node = read_node(FABRICHECK_TEST_NODE);
  const auto ways = message_ways(node, always);
  const auto seconds = [&](const MessageWay& way, double bytes) {
    return bytes / (way.bytes_per_second * message_factor(node, way, bytes));
  };
  const auto& devices = ways.at({"device0", "device1"});
  CHECK(seconds(devices, 8e6) == doctest::Approx(1e-3 + 6e-6));
  CHECK(seconds(devices, 1024 + 16) == doctest::Approx(0.13e-6 + 6e-6));
  CHECK(seconds(devices, 1023 + 16) == doctest::Approx(0.13e-6 + 0.5e-6).epsilon(1e-3));
  CHECK(seconds(devices, 16) == doctest::Approx(2e-9 + 0.5e-6));
  CHECK(seconds(ways.at({"domain0", "domain0"}), 25e6) == doctest::Approx(1e-3 + 0.5e-6));
}

TEST_CASE("what is no platform is refused with file and reason") {
  CHECK_THROWS_WITH_AS((void)read_node("nowhere.json"),
                       doctest::Contains("'nowhere.json', which cannot be read"),
                       std::runtime_error);
  CHECK(names(refusal("{"), "is no JSON"));
  CHECK(names(refusal("{}"), "format is not fabricheck-platform-6"));
  auto other = good();
  other["links"][0]["gbs"] = 0;
  CHECK(names(refusal(other.dump()), "bandwidth of 'memory 0' is not positive"));
  other = good();
  other["copy"][0]["links"].push_back("no such");
  CHECK(names(refusal(other.dump()), "unknown link 'no such'"));
  other = good();
  other["links"].erase(other["links"].size() - 1);
  CHECK(names(refusal(other.dump()), "no link 'page migration of device3'"));
  other = good();
  other["kernel"][0]["read"] = json::array();
  CHECK(names(refusal(other.dump()), "a route has no link"));
  other = good();
  other["copy"].back()["pageable"] = json::array();
  CHECK(names(refusal(other.dump()), "a route has no link"));
  other = good();
  other["message_cost"]["us"] = 0;
  CHECK(names(refusal(other.dump()), "us of message_cost is not positive"));
  other = good();
  other["pageable"]["pin_us"] = -1;
  CHECK(names(refusal(other.dump()), "pin_us is not positive"));
  other = good();
  other.erase("domains");
  CHECK(names(refusal(other.dump()), "domains"));
  other = good();
  other["devices"] = json::array();
  CHECK(names(refusal(other.dump()), "no device"));
}

TEST_CASE("a link that is slow for some sizes gives them routes of their own") {
  auto content = good();
  content["links"][4]["faults"] =
      json::array({{{"bytes", {1000, 2000}}, {"bandwidth_factor", 0.5}},
                   {{"bytes", {2000, 3000}}, {"bandwidth_factor", 0.25}},
                   {{"delay_us", 3}, {"first", 2}}});
  const std::string path = "slow-sizes.json";
  std::ofstream(path) << content.dump();
  auto node = read_node(path);
  (void)std::remove(path.c_str());
  const auto& route = node.copy.at({"device0", "device1"});
  const auto narrow = [&](std::uint64_t bytes) {
    std::vector<double> found;
    for (auto i = route.links.size(); i < route.of(bytes).links.size(); ++i) {
      found.push_back(node.links[route.of(bytes).links[i]].bytes_per_second);
    }
    return found;
  };
  CHECK(narrow(999).empty());
  CHECK(narrow(1000) == std::vector{5e9});
  CHECK(narrow(2000) == std::vector{5e9, 2.5e9});
  CHECK(narrow(3000) == std::vector{2.5e9});
  CHECK(narrow(3001).empty());
  CHECK(node.copy.at({"device1", "device0"}).by_size.empty());
  const auto& way = node.messages.at({"device0", "device1"}).by_engine;
  CHECK(way.of(1500).links.size() == way.links.size() + 1);
  for (const double delay : {3e-6, 3e-6, 0.0}) {
    CHECK(delay_by_faults(node, {{&route, 10, 0}, {&route, 20, 0}}) == doctest::Approx(delay));
  }
}

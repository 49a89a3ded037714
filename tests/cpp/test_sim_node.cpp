#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "machine.hpp"

using fabricheck_sim::message_routes;
using fabricheck_sim::read_node;
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

TEST_CASE("messages between ranks go by engine, or read their own memory and write the other") {
  const auto node = read_node(FABRICHECK_TEST_NODE);
  const auto names_of = [&node](const fabricheck_sim::Route& route) {
    std::vector<std::string> names;
    for (const auto link : route.links) {
      names.push_back(node.links[link].name);
    }
    return names;
  };
  const std::pair<std::string, std::string> ends{"device0", "device1"};
  const auto engine = message_routes(node, true);
  CHECK(names_of(engine.at(ends)) == names_of(node.copy.at(ends)));
  CHECK(engine.at(ends).start == doctest::Approx(5e-6));
  const auto kernel = message_routes(node, false);
  auto links = names_of(node.kernel.at({0, "device0", false}));
  for (const auto& link : names_of(node.kernel.at({0, "device1", true}))) {
    links.push_back(link);
  }
  CHECK(names_of(kernel.at(ends)) == links);
  CHECK(kernel.at(ends).start == doctest::Approx(2e-6));
  // Within a device there is no engine; within a domain memory is read and written.
  CHECK(names_of(engine.at({"device1", "device1"})).size() == 2);
  CHECK(names_of(engine.at({"domain0", "domain0"})) ==
        std::vector<std::string>{"domain 0", "domain 0"});
  CHECK(engine.count({"device0", "device3"}) == 0);
  CHECK(engine.count({"device0", "domain0"}) == 1);
}

TEST_CASE("messages of devices without a way between them go through host memory") {
  auto other = good();
  other["copy"].push_back({{"source", "device2"},
                           {"destination", "domain1"},
                           {"links", {"memory 2"}},
                           {"start_us", 3}});
  other["copy"].push_back({{"source", "domain1"},
                           {"destination", "device3"},
                           {"links", {"memory 3"}},
                           {"start_us", 4}});
  const std::string path = "staged-node.json";
  std::ofstream(path) << other.dump();
  const auto node = read_node(path);
  (void)std::remove(path.c_str());
  const auto routes = message_routes(node, true);
  CHECK(routes.at({"device2", "device3"}).links.size() == 2);
  CHECK(routes.at({"device2", "device3"}).start == doctest::Approx(7e-6));
  CHECK(routes.count({"device3", "device2"}) == 0);
}

TEST_CASE("what is no platform is refused with file and reason") {
  CHECK_THROWS_WITH_AS((void)read_node("nowhere.json"),
                       doctest::Contains("'nowhere.json', which can not be read"),
                       std::runtime_error);
  CHECK(names(refusal("{"), "is no JSON"));
  CHECK(names(refusal("{}"), "format is not fabricheck-platform-3"));
  auto other = good();
  other["links"][0]["gbs"] = 0;
  CHECK(names(refusal(other.dump()), "bandwidth of 'memory 0' is not positive"));
  other = good();
  other["copy"][0]["links"].push_back("no such");
  CHECK(names(refusal(other.dump()), "unknown link 'no such'"));
  other = good();
  other["migration_gbs"] = -1;
  CHECK(names(refusal(other.dump()), "migration_gbs is not positive"));
  other = good();
  other["kernel"][0]["read"] = json::array();
  CHECK(names(refusal(other.dump()), "a route has no link"));
  other = good();
  other["copy"].back()["pageable"] = json::array();
  CHECK(names(refusal(other.dump()), "a route has no link"));
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

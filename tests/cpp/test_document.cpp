#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/document.hpp"
#include "harness/host.hpp"
#include "harness/series.hpp"

using namespace fabricheck;
namespace fs = std::filesystem;

namespace {

/// A folder of its own, removed afterwards.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "fabricheck-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  [[nodiscard]] std::string file(const char* name) const { return (path / name).string(); }
};

nlohmann::json read(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

Series series_of(std::vector<double> seconds) {
  Series series;
  series.experiment = "E1";
  series.operation = "copy";
  series.device = 0;
  series.device_set = {0};
  series.source = {"device", 0, -1};
  series.destination = {"device", 0, -1};
  series.bytes = 500;
  series.bytes_moved = 1000;
  series.batch = 2;
  series.host_seconds = seconds;
  series.seconds = std::move(seconds);
  series.verification.bytes_checked = 500;
  return series;
}

}  // namespace

TEST_CASE("a series holds rates of 1e9 bytes per second and every sample in order") {
  const auto json = series_json(series_of({1e-6, 2e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6}), 0.1);
  // 2 operations of 1000 bytes in 1 us are 2 GB/s.
  CHECK(json["samples"][0] == doctest::Approx(2.0));
  CHECK(json["samples"][1] == doctest::Approx(1.0));
  CHECK(json["median"] == doctest::Approx(2.0));
  CHECK(json["ci95"][0] == doctest::Approx(1.0));
  CHECK(json["host_clock"]["agrees"] == true);
  CHECK(json["noisy"] == true);  // half of (2 - 1) over 2 is 25 %
  CHECK(json["bytes_counted"] == "read+write");
  CHECK(json["verification"]["first_mismatch"].is_null());
}

TEST_CASE("a latency is the time of one operation in us, and less is better") {
  auto series = series_of({4e-6, 6e-6, 5e-6});  // of two operations each
  series.latency = true;
  series.host_seconds = {5e-6};
  const auto json = series_json(series, 0.1);
  CHECK(json["unit"] == "us");
  CHECK(json["better"] == "lower");
  CHECK(json["samples"][0] == doctest::Approx(2.0));
  CHECK(json["median"] == doctest::Approx(2.5));
  CHECK(json["host_clock"]["ratio"] == doctest::Approx(1.0));
  CHECK(json["bytes_moved"] == 1000);
}

TEST_CASE("clocks that differ by more than 2 % do not agree") {
  auto series = series_of({1e-6, 1e-6});
  series.host_seconds = {1.03e-6, 1.03e-6};
  const auto json = series_json(series, 0.1);
  CHECK(json["host_clock"]["agrees"] == false);
  CHECK(json["ci95"].is_null());
  CHECK(json["noisy"] == false);
}

TEST_CASE("a mismatch names device, offset, expected and found") {
  auto series = series_of({1e-6});
  series.verification.errors = 3;
  series.verification.first_mismatch = {4, 4096, 0x3ff0, 0xffff};
  const auto mismatch = series_json(series, 0.1)["verification"]["first_mismatch"];
  CHECK(mismatch["device"] == 4);
  CHECK(mismatch["offset_bytes"] == 4096);
  CHECK(mismatch["expected"] == "0x0000000000003ff0");
  CHECK(mismatch["found"] == "0x000000000000ffff");
}

TEST_CASE("a document appears only when it is finished") {
  const Folder folder;
  const auto path = folder.file("result.json");
  {
    Document document(path, {{"clock", "measured"}});
    CHECK_FALSE(fs::exists(path));
    const auto partial = read(path + ".partial");
    CHECK(partial["complete"] == false);
    CHECK(partial["outcome"]["status"] == "running");
    document.add_series(series_json(series_of({1e-6}), 0.1));
    document.begin("copy of 1 KiB");
    CHECK(read(path + ".partial")["series"].size() == 1);
    document.finish("good", 0, "", true);
  }
  CHECK_FALSE(fs::exists(path + ".partial"));
  const auto finished = read(path);
  CHECK(finished["complete"] == true);
  CHECK(finished["outcome"]["exit_code"] == 0);
  CHECK(finished["outcome"]["message"].is_null());
}

TEST_CASE("an older document of that name does not survive the start of a run") {
  const Folder folder;
  const auto path = folder.file("result.json");
  std::ofstream(path) << "{}";
  const Document document(path, nlohmann::json::object());
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("a link beside a document is not followed") {
  const Folder folder;
  const auto path = folder.file("result.json");
  const auto victim = folder.file("victim.txt");
  std::ofstream(victim) << "[]";
  for (const auto* suffix : {".new", ".partial", ".partial.new"}) {
    fs::create_symlink(victim, path + suffix);
  }
  Document document(path, nlohmann::json::object());
  document.finish("good", 0, "", true);
  CHECK(read(path)["outcome"]["exit_code"] == 0);
  CHECK(read(victim).is_array());
}

TEST_CASE("a place that cannot be written is refused before anything is measured") {
  const Folder folder;
  try {
    const Document document(folder.file("missing/result.json"), nlohmann::json::object());
    FAIL("no failure");
  } catch (const Failure& failure) {
    CHECK(failure.status() == Status::usage);
    CHECK(std::string(failure.what()).find("missing/result.json") != std::string::npos);
    CHECK(std::string(failure.what()).find("No such file or directory") != std::string::npos);
  }
}

TEST_CASE("a folder and an empty name are refused before anything is measured") {
  const Folder folder;
  for (const auto& path : {folder.path.string(), std::string()}) {
    CHECK_THROWS_AS(Document(path, nlohmann::json::object()), Failure);
  }
}

TEST_CASE("a document that was finished is not written again") {
  const Folder folder;
  const auto path = folder.file("result.json");
  Document document(path, nlohmann::json::object());
  document.finish("good", 0, "", true);
  document.finish("time-limit", 6, "late", false);
  CHECK(read(path)["outcome"]["exit_code"] == 0);
  CHECK_FALSE(fs::exists(path + ".partial"));
}

TEST_CASE("a full disk is named") {
  REQUIRE(fs::exists("/dev/full"));
  try {
    write_whole("/dev/full", "{}");
    FAIL("no failure");
  } catch (const Failure& failure) {
    CHECK(failure.status() == Status::software);
    CHECK(std::string(failure.what()).find("/dev/full") != std::string::npos);
    CHECK(std::string(failure.what()).find("No space left on device") != std::string::npos);
  }
}

TEST_CASE("notes are not repeated") {
  Document document("-", nlohmann::json::object());
  document.add_note("a");
  document.add_note("a");
  CHECK(document.content()["notes"].size() == 1);
}

TEST_CASE("the node has the scheduler's name, and none without a scheduler") {
  setenv("SLURMD_NODENAME", "node3", 1);
  CHECK(scheduler_node() == "node3");
  setenv("SLURMD_NODENAME", "", 1);
  CHECK(scheduler_node().is_null());
  unsetenv("SLURMD_NODENAME");
  CHECK(scheduler_node().is_null());
}

TEST_CASE("the time is written as RFC 3339") {
  const auto text = timestamp();
  CHECK(text.size() == std::string("2026-01-01T00:00:00.000Z").size());
  CHECK(text[10] == 'T');
  CHECK(text.back() == 'Z');
}

TEST_CASE("of a variable that is set twice the document has the first value, and a sentence") {
  std::vector<std::string> entries{
      "ROC_P2P_SDMA_SIZE=0", "DEBUG_CLR_LIMIT_BLIT_WG=16", "PAL_X=1",        "FI_PROVIDER=cxi",
      "HOME=/secret",        "ROC_P2P_SDMA_SIZE=64",       "FI_PROVIDER=cxi"};
  std::vector<char*> block;
  for (auto& entry : entries) {
    block.push_back(entry.data());
  }
  block.push_back(nullptr);
  char** kept = environ;
  environ = block.data();
  const auto environment = describe_environment();
  const auto notes = environment_notes();
  environ = kept;
  CHECK(environment.size() == 4);
  CHECK(environment["ROC_P2P_SDMA_SIZE"] == "0");
  CHECK(environment["DEBUG_CLR_LIMIT_BLIT_WG"] == "16");
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] == "ROC_P2P_SDMA_SIZE is set twice, to '0' and to '64': the first is in effect");
}

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "harness/document.hpp"
#include "harness/watchdog.hpp"

using namespace fabricheck;
namespace fs = std::filesystem;

namespace {

/// A launch whose rank 1 has died, or not, while nobody has waited for the ranks to agree on it.
class OneOfTwo : public Launch {
 public:
  OneOfTwo(int rank, bool other_died) : rank_(rank), other_died_(other_died) {}
  [[nodiscard]] int rank() const override { return rank_; }
  void define_options(CommandLine& /*line*/) override {}
  void describe(Document& /*document*/, const std::vector<std::string>& /*faults*/) override {}
  [[nodiscard]] std::vector<int> processes() const override { return {}; }
  void barrier() const override {}
  Outcome agree(const Outcome& mine) override { return mine; }
  std::optional<Outcome> trouble(bool now) override {
    return now && other_died_ ? std::optional(Outcome{Status::software, "rank 1 died", false})
                              : std::nullopt;
  }
  [[nodiscard]] bool is_abandoned() const override { return rank_ != 0 && other_died_; }
  [[nodiscard]] std::string waited_for() const override { return ""; }
  void leave() override {}

 private:
  int rank_;
  bool other_died_;
};

/// The exit code of a rank that waits for ever, once something happened to it.
int ended_after(const std::function<void(Watchdog&)>& event, int rank, bool other_died,
                const std::string& path) {
  const auto child = fork();
  if (child == 0) {
    (void)alarm(60);  // a test that fails ends
    hold_signals();
    OneOfTwo launch(rank, other_died);
    Document document(path, nlohmann::json::object());
    Watchdog watchdog("test", 600, document, &launch);
    event(watchdog);
    for (;;) {
      pause();
    }
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/// The exit code of a rank that a launcher asks to end.
int ended_by_the_launcher(int rank, bool other_died, const std::string& path) {
  return ended_after([](Watchdog&) { (void)kill(getpid(), SIGTERM); }, rank, other_died, path);
}

nlohmann::json outcome_of(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file)["outcome"];
}

}  // namespace

TEST_CASE("a rank that is asked to end says which one died, where one did") {
  std::string name = (fs::temp_directory_path() / "fabricheck-XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  const auto path = (folder / "result.json").string();

  CHECK(ended_by_the_launcher(0, true, path) == 4);
  CHECK(outcome_of(path)["message"] == "rank 1 died");
  CHECK(outcome_of(path)["status"] == "software");

  CHECK(ended_by_the_launcher(0, false, path) == 128 + SIGTERM);
  CHECK(outcome_of(path)["message"] == "interrupted by signal 15");

  CHECK(ended_by_the_launcher(1, true, "/dev/null") == 128 + SIGTERM);  // rank 0 speaks
  fs::remove_all(folder);
}

TEST_CASE("a rank that rank 0 has left alone ends, and so does one that cannot leave the launch") {
  const auto nothing = [](Watchdog&) {};
  CHECK(ended_after(nothing, 1, true, "/dev/null") == 0);

  const auto leave = [](Watchdog& watchdog) { watchdog.begin_leaving(5, 0.1); };
  CHECK(ended_after(leave, 0, false, "/dev/null") == 5);
  CHECK(ended_after(leave, 1, false, "/dev/null") == 5);
}

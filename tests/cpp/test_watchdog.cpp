#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
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
  Outcome agree(const Outcome& mine) override { return mine; }
  std::optional<Outcome> trouble(bool now) override {
    return now && other_died_ ? std::optional(Outcome{Status::runtime_error, "rank 1 died", false})
                              : std::nullopt;
  }
  [[nodiscard]] std::string waited_for() const override { return ""; }
  void leave() override {}

 private:
  int rank_;
  bool other_died_;
};

/// The exit code of a rank that a launcher asks to end.
int ended_by_the_launcher(int rank, bool other_died, const std::string& path) {
  const auto child = fork();
  if (child == 0) {
    hold_signals();
    OneOfTwo launch(rank, other_died);
    Document document(path, nlohmann::json::object());
    const Watchdog watchdog("test", 600, document, &launch);
    (void)kill(getpid(), SIGTERM);
    for (;;) {
      pause();
    }
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
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
  CHECK(outcome_of(path)["status"] == "runtime-error");

  CHECK(ended_by_the_launcher(0, false, path) == 128 + SIGTERM);
  CHECK(outcome_of(path)["message"] == "interrupted by signal 15");

  CHECK(ended_by_the_launcher(1, true, "/dev/null") == 128 + SIGTERM);  // rank 0 speaks
  fs::remove_all(folder);
}

// The ranks of a launch: the identity of this rank, and their synchronization.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/launch.hpp"
#include "ranks/fault.hpp"

namespace fabricheck {

/// The launch to which this process belongs as a rank. All ranks must call everything marked
/// collective, in the same order.
class RankGroup : public Launch {
 public:
  /// Initializes MPI. Create this at the start of main, and pass it to Program::launch.
  RankGroup(int argc, char** argv);
  ~RankGroup() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  /// Also accepts faults of host memory on other NUMA domains, for a program that can make them.
  void allow_page_faults() { page_faults_ = true; }

  /// Only rank 0 will know of the other ranks (their devices, memory and nodes): for a program of
  /// tens of thousands of ranks, of which each needs to know few.
  void tell_root_only() { root_only_ = true; }

  /// The following is known in the body of a program.

  /// This rank's device by the runtime's number, already set; -1 without one.
  [[nodiscard]] int device() const { return device_; }
  /// A rank's device by the document's number; -1: none.
  [[nodiscard]] int device_of(int rank) const;
  /// The devices of several ranks, each once, in the order of the ranks.
  [[nodiscard]] std::vector<int> devices_of(const std::vector<int>& ranks) const;
  /// The NUMA domain of a rank's host memory; -1: unknown.
  [[nodiscard]] int memory_domain_of(int rank) const;
  /// The node of each rank: the scheduler's name of it, else the host's.
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }
  /// This rank's node.
  [[nodiscard]] const std::string& node() const { return node_; }
  /// The ranks of this node, in order.
  [[nodiscard]] const std::vector<int>& ranks_here() const { return ranks_here_; }
  [[nodiscard]] bool several_nodes() const;
  /// Ranks 0 to size - 1.
  [[nodiscard]] std::vector<int> everyone() const;
  /// The injected faults of data of this rank.
  [[nodiscard]] const std::vector<Fault>& data_faults() const { return data_faults_; }

  /// Runs `work` on each rank. If it threw on one, throws on all ranks, afterwards, the failure of
  /// the lowest such rank, its sentence with "rank 3: " before it. If others wait in `work` for the
  /// rank that threw, the run still ends with that sentence. Collective.
  void step(const std::string& what, const std::function<void()>& work);

  /// The value that each rank gives, in the order of ranks, on every rank. Collective.
  [[nodiscard]] std::vector<nlohmann::json> gather(const nlohmann::json& mine) const;
  /// The same on rank 0 only, and nothing on the others. Collective.
  [[nodiscard]] std::vector<nlohmann::json> gather_to_root(const nlohmann::json& mine) const;

  /// From here on nothing is collective, up to the end of the run, so that a rank that dies or
  /// hangs keeps no other one: the outcome is that of rank 0. Collective.
  void part();
  /// After part(): begins a step of this rank. Injected faults of the step happen.
  void begin_alone(const std::string& what);
  /// After part(): ranks were lost, so that MPI cannot be left together. Rank 0 ends the launch
  /// once its document is written.
  void lose_ranks() { lost_ranks_ = true; }
  void define_options(CommandLine& line) override;
  void describe(Document& document, const std::vector<std::string>& faults) override;
  [[nodiscard]] std::vector<int> processes() const override;
  void barrier() const override;
  Outcome agree(const Outcome& mine) override;
  std::optional<Outcome> trouble(bool now) override;
  [[nodiscard]] bool is_abandoned() const override;
  [[nodiscard]] std::string waited_for() const override;
  void leave() override;

 private:
  struct State;
  [[nodiscard]] Outcome lowest(const Outcome& mine) const;
  void share(nlohmann::json& value, int root) const;
  void take_place();

  int rank_ = 0;
  int size_ = 1;
  int device_ = -1;
  int steps_ = 0;
  std::string map_text_;
  std::string bind_text_;
  nlohmann::json ranks_;
  std::string node_;
  std::vector<std::string> nodes_;
  std::vector<int> ranks_here_;
  bool page_faults_ = false;
  bool root_only_ = false;
  bool parted_ = false;
  bool lost_ranks_ = false;
  std::vector<RankFault> faults_;
  std::vector<Fault> data_faults_;
  std::unique_ptr<State> state_;
};

}  // namespace fabricheck

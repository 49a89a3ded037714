#include "ranks/rank_group.hpp"

#include <hip/hip_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <csignal>
#include <cstring>
#include <mutex>
#include <new>

#include "harness/command_line.hpp"
#include "harness/devices.hpp"
#include "harness/document.hpp"
#include "harness/host.hpp"
#include "harness/numa.hpp"
#include "harness/sampling.hpp"
#include "harness/settings.hpp"
#include "harness/simulation.hpp"
#include "harness/sizes.hpp"
#include "harness/watchdog.hpp"
#include "ranks/board.hpp"
#include "ranks/mpi_call.hpp"
#include "ranks/place.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

constexpr double kGrace = 2;  // seconds in which ranks may still agree on a failure by themselves

/// Waits until processes have ended, for a while.
void wait_for_end(const std::vector<long>& processes) {
  const double start = wall_seconds();
  for (const long process : processes) {
    while (!is_dead(process) && wall_seconds() - start < kGrace) {
      (void)usleep(1000);
    }
  }
}

/// The ranks that share memory with `rank` and, where one machine stands for several nodes of a
/// scheduler, its node too.
MPI_Comm ranks_of_node(int rank) {
  constexpr int kLongestName = 256;
  MPI_Comm machine = MPI_COMM_NULL;
  FABRICHECK_MPI(
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine));
  int count = 0;
  FABRICHECK_MPI(MPI_Comm_size(machine, &count));
  const auto scheduled = scheduler_node();
  std::string name = scheduled.is_null() ? "" : scheduled.get<std::string>();
  name.resize(kLongestName);
  std::string names(static_cast<std::size_t>(count) * kLongestName, '\0');
  FABRICHECK_MPI(MPI_Allgather(name.data(), kLongestName, MPI_CHAR, names.data(), kLongestName,
                               MPI_CHAR, machine));
  int first = 0;
  while (names.compare(static_cast<std::size_t>(first) * kLongestName, kLongestName, name) != 0) {
    ++first;
  }
  MPI_Comm node = MPI_COMM_NULL;
  FABRICHECK_MPI(MPI_Comm_split(machine, first, rank, &node));
  FABRICHECK_MPI(MPI_Comm_free(&machine));
  return node;
}

std::string first_line(std::string text) { return text.substr(0, text.find_first_of("\r\n")); }

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  FABRICHECK_MPI(MPI_Get_library_version(text, &length));
  auto line = first_line(text);
  // Columns of blanks and tabs become one blank.
  const auto blank = [](unsigned char a, unsigned char b) {
    return std::isspace(a) && std::isspace(b);
  };
  line.erase(std::unique(line.begin(), line.end(), blank), line.end());
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

/// The NUMA domain of memory that this rank allocates; -1: the system does not say.
int allocated_domain() {
  constexpr std::size_t bytes = 4096;
  void* data = map_pages(bytes);
  if (data == nullptr) {
    return -1;
  }
  touch_pages(data, bytes);
  const int domain = numa_domain_of(data, bytes);
  unmap_pages(data, bytes);
  return domain;
}

}  // namespace

struct RankGroup::State {
  Notice* notice_of_rank = nullptr;
  std::vector<const Notice*> board;
  mutable std::mutex looking;  // the watchdog's thread looks at the board
  MPI_Win window = MPI_WIN_NULL;
  MPI_Comm here = MPI_COMM_NULL;  // the ranks of this node; of a simulation none
  std::unique_ptr<Notice> private_notice;
  std::optional<HostBinding> memory;
  int local_rank = 0;
  std::vector<int> ranks_here;
  std::string agreed;                // the failure that all ranks know of
  std::atomic<bool> settled{false};  // nothing that happens now matters any more
  bool left = false;                 // the board is no more
  Status ended = Status::good;       // of this rank, after part()
  std::optional<double> trouble_since;

  Together together_of(RankReport& report, const RankGroup& group) const;

  /// Where all ranks are one process its memory is the board, else memory of the machine.
  void make(int rank, int size) {
    board.assign(static_cast<std::size_t>(size), nullptr);
    if (kSimulated) {
      local_rank = rank;
      private_notice = std::make_unique<Notice>();
      notice_of_rank = private_notice.get();
      FABRICHECK_MPI(MPI_Allgather(&notice_of_rank, sizeof notice_of_rank, MPI_BYTE, board.data(),
                                   sizeof notice_of_rank, MPI_BYTE, MPI_COMM_WORLD));
      return;
    }
    here = ranks_of_node(rank);
    FABRICHECK_MPI(MPI_Comm_rank(here, &local_rank));
    int count = 0;
    FABRICHECK_MPI(MPI_Comm_size(here, &count));
    void* memory_of_window = nullptr;
    FABRICHECK_MPI(MPI_Win_allocate_shared(sizeof(Notice), 1, MPI_INFO_NULL, here,
                                           &memory_of_window, &window));
    notice_of_rank = new (memory_of_window) Notice;
    notice_of_rank->process = getpid();
    std::vector<int> ranks(static_cast<std::size_t>(count));
    FABRICHECK_MPI(MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, here));
    ranks_here = ranks;
    for (int i = 0; i < count; ++i) {
      MPI_Aint bytes = 0;
      int unit = 0;
      void* notice = nullptr;
      FABRICHECK_MPI(MPI_Win_shared_query(window, i, &bytes, &unit, &notice));
      board[static_cast<std::size_t>(ranks[static_cast<std::size_t>(i)])] =
          static_cast<Notice*>(notice);
    }
  }
};

/// The devices and ranks of all reports, the NUMA domains of rank 0's machine and the node of each
/// rank. Ranks that see the devices of the first rank of their node only say so.
Together RankGroup::State::together_of(RankReport& report, const RankGroup& group) const {
  int leader = group.rank();  // of this node, in the launch
  if (here != MPI_COMM_NULL) {
    FABRICHECK_MPI(MPI_Bcast(&leader, 1, MPI_INT, 0, here));
    const auto seen = dumped(report.devices);
    auto first = seen;
    int length = static_cast<int>(first.size());
    FABRICHECK_MPI(MPI_Bcast(&length, 1, MPI_INT, 0, here));
    first.resize(static_cast<std::size_t>(length));
    FABRICHECK_MPI(MPI_Bcast(first.data(), length, MPI_CHAR, 0, here));
    if (leader != group.rank() && first == seen) {
      report.devices = nullptr;
    }
  }
  // Of other hosts than that of rank 0 the document has only the name.
  json host = {{"hostname", report.host["hostname"]}};
  if (leader == 0 || here == MPI_COMM_NULL) {
    host["numa_domains"] = report.host["numa_domains"];
  }
  report.host = host;
  std::vector<RankReport> reports;
  for (const auto& content : group.gather_to_root(report)) {
    reports.push_back(content);
  }
  auto all = group.rank() == 0 ? together(reports) : Together{};
  if (kSimulated || !group.root_only_) {
    json content = all;
    group.share(content, 0);
    all = content;
  }
  return all;
}

RankGroup::RankGroup(int argc, char** argv) : state_(std::make_unique<State>()) {
  hold_signals();                       // threads that MPI starts must not take them
  (void)std::signal(SIGUSR1, SIG_IGN);  // MPICH's launcher tells by it that another rank died
  if (!kSimulated) {
    set_device_early(argc, argv);
  }
  int provided = 0;  // the watchdog's thread makes no call of MPI
  FABRICHECK_MPI(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));
  FABRICHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  FABRICHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  FABRICHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  state_->make(rank_, size_);
}

RankGroup::~RankGroup() = default;

void RankGroup::define_options(CommandLine& line) {
  line.heading("Ranks");
  line.add(
      {"--map",
       "the device of each rank, as 3,1,0; default: the only one that a rank sees, else that of "
       "its number on its machine, in a simulation the one it was put on"},
      map_text_);
  line.add({"--bind", "a core for each rank, as 49,57,17; default: the launcher's binding"},
           bind_text_);
  line.heading("Options");
}

void RankGroup::take_place() {
  const auto cores = numbers_of(bind_text_, "core");
  const auto place = simulated_place();
  const auto domains = describe_host()["numa_domains"];
  int domain = place.domain;
  if (!cores.empty()) {
    if (static_cast<std::size_t>(rank_) >= cores.size()) {
      throw Failure(Status::usage, "--bind names the cores of " + std::to_string(cores.size()) +
                                       " rank(s), and there are more");
    }
    const int core = cores[static_cast<std::size_t>(rank_)];
    domain = domain_of_cores({core}, domains);
    if (kSimulated && domain < 0) {
      throw Failure(Status::unsupported, "the node has no core " + std::to_string(core));
    }
    bind_to_core(core);
  }
  if (kSimulated && domain >= 0) {
    state_->memory.emplace(domain);
  }
  const auto map = numbers_of(map_text_, "device");
  if (kSimulated && map.empty()) {
    device_ = place.device;
    if (device_ < 0 && place.domain < 0) {
      throw lacks_devices(place.name + " is not visible", device_count());
    }
  } else {
    device_ = choose_device(map, rank_, state_->local_rank, device_count());
  }
  if (device_ >= 0) {
    FABRICHECK_HIP(hipSetDevice(device_));
  }
}

void RankGroup::describe(Document& document, const std::vector<std::string>& faults) {
  RankReport report;
  std::vector<RankFault> parsed;
  step("place and devices", [&] {
    for (const auto& text : faults) {
      parsed.push_back(parse_rank_fault(text, page_faults_));
      if (parsed.back().rank >= size_) {
        throw Failure(Status::usage, "'" + text + "' is a fault of a rank that does not exist");
      }
    }
    take_place();
    report.host = describe_host();
    const auto scheduled = scheduler_node();
    report.node = scheduled.is_null() ? report.host["hostname"] : scheduled;
    report.devices = describe_devices();
    report.device = device_;
    report.cores = report.host["cores_allowed"].get<std::vector<int>>();
    if (kSimulated) {
      const auto place = simulated_place();
      const auto cores = numbers_of(bind_text_, "core");
      if (!cores.empty()) {
        report.cores = {cores[static_cast<std::size_t>(rank_)]};
      } else if (place.domain >= 0) {
        for (const auto& domain : report.host["numa_domains"]) {
          if (domain["index"] == place.domain) {
            report.cores = domain["cores"].get<std::vector<int>>();
          }
        }
      }
    }
    report.numa_domain = domain_of_cores(report.cores, report.host["numa_domains"]);
    report.memory_domain = allocated_domain();
  });
  node_ = report.node;
  const auto all = state_->together_of(report, *this);
  ranks_ = all.ranks;
  nodes_ = all.nodes;
  ranks_here_ = state_->ranks_here;
  for (int other = 0; kSimulated && other < size_; ++other) {
    if (nodes_[static_cast<std::size_t>(other)] == report.node) {
      ranks_here_.push_back(other);
    }
  }
  auto host = document.content()["host"];
  if (!all.numa_domains.is_null()) {
    host["numa_domains"] = all.numa_domains;
  }
  auto versions = describe_versions();
  versions["mpi"] = mpi_version();
  document.set("host", host);
  document.set("devices", all.devices);
  document.set("versions", versions);
  document.set("ranks", ranks_);
  steps_ = 0;
  faults_ = parsed;
  for (const auto& fault : faults_) {
    if (fault.kind == RankFault::Kind::data && fault.rank == rank_) {
      data_faults_.push_back(fault.data);
    }
  }
  data_faults_ = arm(data_faults_);
}

int RankGroup::device_of(int rank) const {
  const auto& device = ranks_.at(static_cast<std::size_t>(rank))["device"];
  return device.is_null() ? -1 : device.get<int>();
}

std::vector<int> RankGroup::devices_of(const std::vector<int>& ranks) const {
  std::vector<int> devices;
  for (const int rank : ranks) {
    const int device = device_of(rank);
    if (device >= 0 && std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(device);
    }
  }
  return devices;
}

int RankGroup::memory_domain_of(int rank) const {
  const auto& domain = ranks_.at(static_cast<std::size_t>(rank))["memory_domain"];
  return domain.is_null() ? -1 : domain.get<int>();
}

std::vector<int> RankGroup::processes() const {
  std::vector<int> processes;
  for (const auto* notice : state_->board) {
    if (notice != nullptr) {  // null: on another machine
      processes.push_back(static_cast<int>(notice->process));
    }
  }
  return processes;
}

bool RankGroup::several_nodes() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [this](const auto& node) { return node != nodes_.front(); });
}

std::vector<int> RankGroup::everyone() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank) {
    ranks.push_back(rank);
  }
  return ranks;
}

void RankGroup::step(const std::string& what, const std::function<void()>& work) {
  ++steps_;
  Outcome mine;
  try {
    inject_rank_faults(faults_, rank_, steps_);
    enter(*state_->notice_of_rank, what);
    work();
  } catch (const Failure& failure) {
    mine = {failure.status(), failure.what(), false};
  } catch (const std::invalid_argument& error) {
    mine = {Status::usage, error.what(), false};
  } catch (const std::exception& error) {
    mine = {Status::software, error.what(), false};
  }
  if (mine.status != Status::good) {
    fail(*state_->notice_of_rank, mine);
  }
  ++state_->notice_of_rank->left;
  const auto all = lowest(mine);
  if (!all.complete) {
    state_->agreed = all.sentence;
    throw Failure(all.status, all.sentence);
  }
}

Outcome RankGroup::lowest(const Outcome& mine) const {
  const int failed = mine.complete ? size_ : rank_;
  int first = size_;
  MPI_Request request = MPI_REQUEST_NULL;
  FABRICHECK_MPI(MPI_Iallreduce(&failed, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request));
  wait_quietly(&request);
  json outcome = {static_cast<int>(mine.status), mine.sentence};
  share(outcome, first < size_ ? first : 0);
  const auto status = static_cast<Status>(outcome[0].get<int>());
  const auto sentence = outcome[1].get<std::string>();
  if (first == size_) {
    return {status, sentence, true};
  }
  const bool named = size_ == 1 || sentence == state_->agreed;
  return {status, (named ? "" : "rank " + std::to_string(first) + ": ") + sentence, false};
}

void RankGroup::share(json& value, int root) const {
  auto text = rank_ == root ? dumped(value) : std::string();
  int length = static_cast<int>(text.size());
  MPI_Request request = MPI_REQUEST_NULL;
  FABRICHECK_MPI(MPI_Ibcast(&length, 1, MPI_INT, root, MPI_COMM_WORLD, &request));
  wait_quietly(&request);
  text.resize(static_cast<std::size_t>(length));
  FABRICHECK_MPI(MPI_Ibcast(text.data(), length, MPI_CHAR, root, MPI_COMM_WORLD, &request));
  wait_quietly(&request);
  if (rank_ != root) {
    value = json::parse(text);
  }
}

void RankGroup::part() {
  step("parting", [] {});
  parted_ = true;
}

void RankGroup::begin_alone(const std::string& what) {
  ++steps_;
  inject_rank_faults(faults_, rank_, steps_);
  enter(*state_->notice_of_rank, what);
}

Outcome RankGroup::agree(const Outcome& mine) {
  if (parted_) {
    state_->ended = mine.status;
    return mine;
  }
  try {
    if (!mine.complete && mine.sentence != state_->agreed) {
      fail(*state_->notice_of_rank, mine);
    }
    const auto all = lowest(mine);
    if (!all.complete) {
      state_->agreed = all.sentence;
      state_->settled = true;
    }
    return all;
  } catch (const Failure& failure) {
    return {failure.status(), failure.what(), false};
  }
}

std::optional<Outcome> RankGroup::trouble(bool now) {
  const std::lock_guard lock(state_->looking);
  if (state_->settled || parted_) {
    return std::nullopt;
  }
  auto seen = trouble_on(state_->board, !kSimulated);
  if (!seen || now) {
    return seen;
  }
  if (!state_->trouble_since) {
    state_->trouble_since = wall_seconds();
  }
  return wall_seconds() - *state_->trouble_since < kGrace ? std::nullopt : seen;
}

bool RankGroup::is_abandoned() const {
  const std::lock_guard lock(state_->looking);
  if (state_->left) {
    return false;
  }
  const auto* first = state_->board.front();  // null: on another machine
  return first != nullptr && first->process > 0 && !first->gone && is_dead(first->process);
}

std::string RankGroup::waited_for() const {
  const std::lock_guard lock(state_->looking);
  return state_->settled ? "" : waited_for_on(state_->board);
}

std::vector<json> RankGroup::gather_to_root(const json& mine) const {
  const auto text = dumped(mine);
  const int length = static_cast<int>(text.size());
  std::vector<int> lengths(rank_ == 0 ? static_cast<std::size_t>(size_) : 0);
  MPI_Request request = MPI_REQUEST_NULL;
  FABRICHECK_MPI(
      MPI_Igather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD, &request));
  wait_quietly(&request);
  std::vector<int> offsets{0};  // where each text begins, and the last one ends
  for (const int each : lengths) {
    offsets.push_back(offsets.back() + each);
  }
  std::string all(static_cast<std::size_t>(offsets.back()), ' ');
  FABRICHECK_MPI(MPI_Igatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(),
                              offsets.data(), MPI_CHAR, 0, MPI_COMM_WORLD, &request));
  wait_quietly(&request);
  std::vector<json> values;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    values.push_back(json::parse(all.data() + offsets[i], all.data() + offsets[i + 1]));
  }
  return values;
}

std::vector<json> RankGroup::gather(const json& mine) const {
  json all = gather_to_root(mine);
  share(all, 0);
  return all.get<std::vector<json>>();
}

void RankGroup::barrier() const { FABRICHECK_MPI(MPI_Barrier(MPI_COMM_WORLD)); }

void RankGroup::leave() {
  {
    const std::lock_guard lock(state_->looking);
    state_->settled = true;
    state_->notice_of_rank->gone = true;
    state_->left = true;
  }
  state_->memory.reset();
  if (lost_ranks_) {
    // What hangs does not end by itself, and MPI_Finalize waits for it.
    if (rank_ == 0) {
      std::fflush(nullptr);
      (void)MPI_Abort(MPI_COMM_WORLD, static_cast<int>(state_->ended));
    }
    for (;;) {  // a launcher may end all when one leaves without MPI_Finalize
      (void)pause();
    }
  }
  std::vector<long> others;
  for (const auto* notice : state_->board) {
    if (notice != nullptr && notice != state_->notice_of_rank && notice->process > 0) {
      others.push_back(notice->process);
    }
  }
  if (state_->window != MPI_WIN_NULL) {
    (void)MPI_Win_free(&state_->window);
  }
  if (state_->here != MPI_COMM_NULL) {
    (void)MPI_Comm_free(&state_->here);
  }
  (void)MPI_Finalize();
  if (rank_ == 0) {
    wait_for_end(others);
  }
}

}  // namespace fabricheck

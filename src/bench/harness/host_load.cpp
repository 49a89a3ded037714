#include "harness/host_load.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "harness/device_reading.hpp"
#include "harness/sampling.hpp"

namespace fabricheck {
namespace {

constexpr std::size_t kMostProcesses = 5;

/// The start of a file of `folder`, read with plain calls: there may be thousands of processes, and
/// a stream takes several times as long. Empty if it cannot be read.
std::string start_of(int folder, const std::string& name) {
  const int file = openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return "";  // it has ended
  }
  std::array<char, 1024> text{};
  const auto got = read(file, text.data(), text.size());
  (void)close(file);
  return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

std::uint64_t total_ticks(const std::map<int, ProcessTime>& processes, const std::set<int>& pids) {
  std::uint64_t ticks = 0;
  for (const int pid : pids) {
    ticks += processes.at(pid).ticks + processes.at(pid).ended_ticks;
  }
  return ticks;
}

/// The times of the host and of some processes; null: of all.
HostTimes times_of(const std::string& proc, const std::set<int>* pids) {
  HostTimes times;
  DIR* folder = opendir(proc.c_str());
  if (folder == nullptr) {
    return times;
  }
  const int number = dirfd(folder);
  times.at = wall_seconds();
  times.cores = core_times(start_of(number, "stat"));
  const auto add = [&](const std::string& name) {
    if (auto process = process_time(start_of(number, name + "/stat"))) {
      times.processes.emplace(process->pid, std::move(*process));
    }
  };
  if (pids != nullptr) {
    for (const int pid : *pids) {
      add(std::to_string(pid));
    }
  } else {
    while (const auto* entry = readdir(folder)) {
      if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) != 0) {
        add(entry->d_name);
      }
    }
  }
  (void)closedir(folder);
  return times;
}

double grown(std::uint64_t from, std::uint64_t to) {
  return to > from ? static_cast<double>(to - from) : 0;
}

}  // namespace

std::optional<CoreTimes> core_times(const std::string& stat) {
  // user nice system idle iowait irq softirq steal; what guests take follows, and is in user, too.
  std::array<unsigned long long, 8> part{};
  if (std::sscanf(stat.c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &part[0], &part[1],
                  &part[2], &part[3], &part[4], &part[5], &part[6], &part[7]) < 7) {
    return std::nullopt;
  }
  return CoreTimes{part[0] + part[1] + part[2] + part[5] + part[6], part[7]};
}

std::optional<ProcessTime> process_time(const std::string& stat) {
  const auto open = stat.find('(');
  const auto shut = stat.rfind(')');  // a command may have brackets of its own
  if (open == std::string::npos || shut == std::string::npos || shut < open) {
    return std::nullopt;
  }
  ProcessTime process;
  process.pid = std::atoi(stat.c_str());
  process.command = stat.substr(open + 1, shut - open - 1);
  unsigned long long user = 0;
  unsigned long long system = 0;
  long long ended_user = 0;
  long long ended_system = 0;
  unsigned long long started = 0;
  if (std::sscanf(stat.c_str() + shut + 1,
                  " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld %*d %*d %*d %*d "
                  "%llu",
                  &process.parent, &user, &system, &ended_user, &ended_system, &started) != 6) {
    return std::nullopt;
  }
  process.ticks = user + system;
  process.ended_ticks = static_cast<std::uint64_t>(std::max(0LL, ended_user + ended_system));
  process.started = started;
  return process;
}

HostTimes host_times(const std::string& proc) { return times_of(proc, nullptr); }

HostTimes host_times(const std::string& proc, const std::set<int>& pids) {
  return times_of(proc, &pids);
}

std::set<int> with_children(const std::map<int, ProcessTime>& processes,
                            const std::vector<int>& pids) {
  std::set<int> family;
  for (const int pid : pids) {
    if (processes.count(pid) > 0) {
      family.insert(pid);
    }
  }
  for (std::size_t before = family.size() + 1; before != family.size();) {
    before = family.size();
    for (const auto& [pid, process] : processes) {
      if (family.count(process.parent) > 0) {
        family.insert(pid);
      }
    }
  }
  return family;
}

std::optional<OtherLoad> other_load(const HostTimes& before, const HostTimes& after,
                                    const std::vector<int>& pids, double ticks_per_second) {
  OtherLoad load;
  load.seconds = after.at - before.at;
  if (!before.cores || !after.cores || !(load.seconds > 0)) {
    return std::nullopt;
  }
  const double ticks_of_core = load.seconds * ticks_per_second;
  const auto former = with_children(before.processes, pids);
  const auto ours = with_children(after.processes, pids);
  const double own_ticks =
      grown(total_ticks(before.processes, former), total_ticks(after.processes, ours));
  load.busy_cores =
      std::max(0.0, grown(before.cores->busy, after.cores->busy) - own_ticks) / ticks_of_core;
  load.stolen_cores = grown(before.cores->stolen, after.cores->stolen) / ticks_of_core;
  for (const auto& [pid, process] : after.processes) {
    if (ours.count(pid) > 0) {
      continue;
    }
    const auto known = before.processes.find(pid);
    const bool same = known != before.processes.end() && known->second.started == process.started;
    const double ticks = grown(same ? known->second.ticks : 0, process.ticks);
    // In a short time, one tick may stand for a moment's work and says nothing about a process.
    if (ticks > 1 && ticks >= kLeastCores * ticks_of_core) {
      load.processes.push_back({pid, process.command, ticks / ticks_of_core});
    }
  }
  std::stable_sort(load.processes.begin(), load.processes.end(),
                   [](const auto& a, const auto& b) { return a.cores > b.cores; });
  load.processes.resize(std::min(load.processes.size(), kMostProcesses));
  return load;
}

std::optional<std::string> user_of_process(const std::string& proc, int pid) {
  struct stat folder{};
  if (stat((proc + "/" + std::to_string(pid)).c_str(), &folder) != 0) {
    return std::nullopt;
  }
  passwd entry{};
  passwd* user = nullptr;
  std::array<char, 4096> memory{};
  if (getpwuid_r(folder.st_uid, &entry, memory.data(), memory.size(), &user) == 0 &&
      user != nullptr) {
    return user->pw_name;
  }
  return std::to_string(folder.st_uid);
}

std::optional<std::string> command_of_process(const std::string& proc, int pid) {
  return file_text(proc + "/" + std::to_string(pid) + "/comm");
}

}  // namespace fabricheck

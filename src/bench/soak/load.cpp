#include "soak/load.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "harness/concurrent.hpp"
#include "harness/simulation.hpp"

namespace fabricheck::soak {
namespace {

using nlohmann::json;

/// Passes that calibrate: the rate of a lane depends on which others are still at work.
constexpr int kCalibrations = 5;

/// Most mismatches that a document lists: a broken device may have one in every pass.
constexpr std::size_t kMostListed = 1000;

/// Seconds that processors worked for this process.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string hexadecimal(std::uint64_t word) {
  char text[19];
  std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(word));
  return text;
}

/// The numbers of the bits in which two words differ, 0 is the least significant.
json bits_between(std::uint64_t expected, std::uint64_t found) {
  json bits = json::array();
  for (int bit = 0; bit < 64; ++bit) {
    if (((expected ^ found) >> bit) & 1) {
      bits.push_back(bit);
    }
  }
  return bits;
}

}  // namespace

void Load::for_each_lane(const std::function<void(std::size_t)>& work) {
  std::map<int, std::vector<std::size_t>> of_holder;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    of_holder[lanes_[i]->holder().device()].push_back(i);
  }
  std::vector<std::function<void()>> works;
  for (const auto& [device, lanes] : of_holder) {
    works.emplace_back([&work, some = lanes] {
      for (const auto lane : some) {
        work(lane);
      }
    });
  }
  if (works.size() == 1) {
    works.front()();
  } else {
    (void)run_at_once(works);
  }
}

std::vector<double> Load::work() {
  for (const auto& lane : lanes_) {
    lane->stream().use();
    lane->stream().mark_start();
    lane->queue(lane->batch);
    FABRICHECK_HIP(hipGetLastError());
    lane->stream().mark_stop();
  }
  std::vector<double> seconds;
  for (const auto& lane : lanes_) {
    lane->stream().synchronize();
  }
  for (const auto& lane : lanes_) {
    seconds.push_back(lane->stream().seconds());
  }
  return seconds;
}

void Load::calibrate(double seconds) {
  // A simulated pass is as long as it is counted: calibration takes little of the node's time.
  const double shorter = kSimulated ? 100 : 1;
  seconds /= shorter;
  for_each_lane([this](std::size_t lane) { (void)lanes_[lane]->prepare(); });
  for (int i = 0; i < kCalibrations; ++i) {
    const auto took = work();
    std::vector<double> of_one;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      of_one.push_back(took[lane] / lanes_[lane]->batch);
      if (!kSimulated) {
        seconds = std::min(seconds, kMostQueued * of_one.back());
      }
    }
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      const double wanted = seconds / of_one[lane];
      // A first operation alone says little of one among all others.
      const double most = i == 0 && !kSimulated ? 16.0 : 1e9;
      lanes_[lane]->batch = static_cast<int>(std::clamp(std::round(wanted), 1.0, most));
    }
  }
  for (const auto& lane : lanes_) {
    lane->batch = static_cast<int>(shorter * lane->batch);
  }
}

void Load::count(long pass, std::vector<Verification> verified, bool at_rest) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    auto& all = lanes_[i]->verification;
    all.bytes_checked += verified[i].bytes_checked;
    all.errors += verified[i].errors;
    if (verified[i].errors > 0) {
      if (!all.first_mismatch) {
        all.first_mismatch = verified[i].first_mismatch;
      }
      if (wrong_.size() < kMostListed) {
        wrong_.push_back({host_seconds() - began_, pass, i, at_rest, std::move(verified[i])});
      }
    }
  }
}

void Load::run(double seconds, long least, const FaultsOf& faults,
               const std::function<void(long)>& begun) {
  began_ = host_seconds();
  const double processors = processor_seconds();
  for (long pass = 0; pass < least || host_seconds() - began_ < seconds; ++pass) {
    begun(pass);
    std::vector<Verification> at_rest(lanes_.size());
    for_each_lane([&](std::size_t lane) { at_rest[lane] = lanes_[lane]->prepare(); });
    count(pass - 1, std::move(at_rest), true);
    begins_.push_back(host_seconds() - began_);
    const auto took = work();
    ends_.push_back(host_seconds() - began_);
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i]->seconds.push_back(took[i]);
    }
    std::vector<Verification> after(lanes_.size());
    for_each_lane([&](std::size_t lane) {
      std::vector<Fault> here;
      if (lanes_[lane]->is_memory) {
        here = faults(pass, *lanes_[lane]);
      }
      after[lane] = lanes_[lane]->verify(here);
    });
    count(pass, std::move(after), false);
    cpu_seconds_ = processor_seconds() - processors;
  }
}

std::vector<Series> Load::series() const {
  std::vector<Series> all;
  for (const auto& lane : lanes_) {
    if (lane->seconds.empty()) {
      continue;
    }
    auto series = lane->describe();
    series.role = role::beside;
    series.device = lane->stream().device();
    if (series.device_set.empty()) {
      series.device_set = {series.device};
    }
    series.batch = lane->batch;
    series.seconds = lane->seconds;
    series.verification = lane->verification;
    all.push_back(std::move(series));
  }
  return all;
}

json Load::member() const {
  json passes = json::array();
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    passes.push_back({begins_[i], ends_[i]});
  }
  json wrong = json::array();
  for (const auto& each : wrong_) {
    const auto& first = *each.verification.first_mismatch;
    wrong.push_back({{"at_s", each.at},
                     {"pass", each.pass},
                     {"series", each.lane},
                     {"at_rest", each.at_rest},
                     {"errors", each.verification.errors},
                     {"device", first.device < 0 ? json(nullptr) : json(first.device)},
                     {"offset_bytes", first.offset_bytes},
                     {"expected", hexadecimal(first.expected)},
                     {"found", hexadecimal(first.found)},
                     {"bits", bits_between(first.expected, first.found)}});
  }
  return {{"passes", passes},
          {"cpu_s", kSimulated ? json(nullptr) : json(cpu_seconds_)},
          {"readings", json::array()},
          {"wrong", wrong}};
}

}  // namespace fabricheck::soak

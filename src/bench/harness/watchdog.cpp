#include "harness/watchdog.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <thread>
#include <utility>

#include "harness/sampling.hpp"
#include "harness/simulation.hpp"

namespace fabricheck {
namespace {

constexpr double kOthersLater = 5;  // seconds after rank 0's time limit at which other ranks end
constexpr double kRootPoll = 0.2;   // seconds between two looks of rank 0 at the other ranks
constexpr double kOthersPoll = 2;   // and of another rank at rank 0
constexpr std::chrono::milliseconds kPatience{500};

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&set, signal);
  }
  return set;
}

/// The signal that came within `seconds`; -1: none.
int signal_within(double seconds) {
  const auto set = handled_signals();
  timespec pause{};
  pause.tv_sec = static_cast<time_t>(seconds);
  pause.tv_nsec = static_cast<long>((seconds - static_cast<double>(pause.tv_sec)) * 1e9);
  return sigtimedwait(&set, nullptr, &pause);  // -1 too when a debugger interrupts it
}

}  // namespace

void hold_signals() {
  const auto set = handled_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void say(const std::string& name, const std::string& sentence) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), sentence.c_str());
}

Watchdog::Watchdog(std::string name, double seconds, Document& document, Launch* launch)
    : name_(std::move(name)), seconds_(seconds), document_(document), launch_(launch) {
  thread_ = std::thread([this] { watch(); });
  if (kSimulated && launch != nullptr) {
    forget_halt_ = on_simulated_halt([this] {
      const auto trouble = launch_->trouble(true);  // nothing goes on: there is nothing to wait for
      end(status_word(trouble ? trouble->status : Status::software),
          static_cast<int>(trouble ? trouble->status : Status::software),
          trouble ? trouble->sentence
                  : "the simulation came to a halt: every rank waits" + launch_->waited_for());
    });
  }
}

Watchdog::~Watchdog() {
  stopping_ = true;
  pthread_kill(thread_.native_handle(), SIGHUP);
  thread_.join();
  if (forget_halt_) {
    forget_halt_();
  }
}

void Watchdog::begin_leaving(int code, double seconds) {
  leaving_code_ = code;
  leaving_ends_ = wall_seconds() + seconds;
}

void Watchdog::watch() {
  const bool speaks = launch_ == nullptr || launch_->rank() == 0;
  const auto deadline = wall_seconds() + seconds_ + (speaks ? 0 : kOthersLater);
  for (;;) {
    const auto left = deadline - wall_seconds();
    if (left <= 0) {
      const auto missing = launch_ == nullptr ? "" : launch_->waited_for();
      const auto last = document_.last_begun();
      end(status_word(Status::time_limit), static_cast<int>(Status::time_limit),
          "not finished within the time limit of " + nlohmann::json(seconds_).dump() + " s" +
              (missing.empty() && !last.empty() ? "; the last that began was " + last : missing));
    }
    const bool polls = launch_ != nullptr && !kSimulated;
    const bool looks = polls && speaks;
    const int signal =
        signal_within(polls ? std::min(left, speaks ? kRootPoll : kOthersPoll) : left);
    if (stopping_) {
      return;
    }
    if (leaving_ends_ > 0 && wall_seconds() > leaving_ends_) {
      _exit(leaving_code_);
    }
    if (polls && !speaks && signal < 0 && launch_->is_abandoned()) {
      _exit(0);  // the exit code of a launch is that of rank 0
    }
    // A launcher that sees a rank die asks the others to end: first, what happened to that rank.
    if (const auto trouble = looks ? launch_->trouble(signal >= 0) : std::nullopt) {
      end(status_word(trouble->status), static_cast<int>(trouble->status), trouble->sentence);
    }
    if (signal >= 0) {
      if (!speaks) {
        std::this_thread::sleep_for(kPatience);  // lest rank 0 takes this rank for a dead one
      }
      end(status::interrupted, 128 + signal, "interrupted by signal " + std::to_string(signal));
    }
  }
}

void Watchdog::end(const char* word, int code, const std::string& sentence) {
  if (launch_ == nullptr || launch_->rank() == 0) {
    say(name_, sentence);
    try {
      document_.finish(word, code, sentence, false);
    } catch (const Failure& failure) {
      say(name_, failure.what());
    }
  }
  _exit(code);
}

}  // namespace fabricheck

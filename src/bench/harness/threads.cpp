// Work of this machine at the same time, by threads.
#include <atomic>
#include <exception>
#include <thread>

#include "harness/concurrent.hpp"

namespace fabricheck {

std::vector<double> run_at_once(const std::vector<std::function<void()>>& works) {
  std::vector<double> seconds(works.size());
  std::vector<std::exception_ptr> errors(works.size());
  std::atomic<std::size_t> ready{0};
  std::atomic<bool> started{false};
  double start = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < works.size(); ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (!started) {
        std::this_thread::yield();
      }
      try {
        works[i]();
      } catch (...) {
        errors[i] = std::current_exception();
      }
      seconds[i] = host_seconds() - start;
    });
  }
  while (ready < works.size()) {
    std::this_thread::yield();
  }
  start = host_seconds();
  started = true;
  for (auto& thread : threads) {
    thread.join();
  }
  for (const auto& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
  return seconds;
}

}  // namespace fabricheck

// The kernels of the host runtime beside plain C loops: same threads, same arrays, in turn.
// Prints the ratio of bandwidths, with the stores that are faster here as `stream` chooses them,
// and exits with 1 when it is below 0.9 for copy or triad. A machine that others use makes it
// waver, so the tests only build it.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <functional>
#include <map>
#include <vector>

#include "harness/devices.hpp"
#include "harness/pattern.hpp"
#include "harness/statistics.hpp"
#include "stream/kernels.hpp"

namespace {

using namespace fabricheck;
using namespace fabricheck::stream;

constexpr int kRounds = 15;
constexpr double kLeast = 0.9;

void plain_copy(double* c, const double* a, long n, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (long i = 0; i < n; ++i) {
    c[i] = a[i];
  }
}

void plain_triad(double* c, const double* a, const double* b, long n, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (long i = 0; i < n; ++i) {
    c[i] = a[i] + kStreamFactor * b[i];
  }
}

double seconds_of(const TimedStream& stream, const std::function<void()>& work) {
  stream.mark_start();
  work();
  stream.mark_stop();
  stream.synchronize();
  return stream.seconds();
}

}  // namespace

int main() {
  const std::uint64_t bytes = 128ULL << 20;
  const auto n = static_cast<long>(bytes / sizeof(double));
  const TimedStream stream(0);
  const auto a = Buffer::on_device(0, bytes);
  const auto b = Buffer::on_device(0, bytes);
  const auto c = Buffer::on_device(0, bytes);
  fill(stream, a.as<double>(), bytes / 8, 1);
  fill(stream, b.as<double>(), bytes / 8, 2);
  poison(stream, c.as<double>(), bytes / 8);

  bool good = true;
  for (const auto operation : {StreamOperation::copy, StreamOperation::triad}) {
    const auto plain = [&] {
      fabricheck_cpu::enqueue(stream.get(), [&, operation](int cores) {
        if (operation == StreamOperation::copy) {
          plain_copy(c.as<double>(), a.as<double>(), n, cores);
        } else {
          plain_triad(c.as<double>(), a.as<double>(), b.as<double>(), n, cores);
        }
      });
    };
    const auto kernel = [&](Stores stores) {
      launch(operation, {stores}, stream, {a.as<double>(), b.as<double>(), c.as<double>(), bytes},
             256);
    };
    (void)seconds_of(stream, plain);
    std::map<Stores, std::vector<double>> ratios;
    std::map<Stores, std::vector<double>> rates;
    for (int round = 0; round < kRounds; ++round) {
      for (const auto stores : {Stores::streaming, Stores::plain}) {
        const double loop = seconds_of(stream, plain);
        const double ours = seconds_of(stream, [&] { kernel(stores); });
        ratios[stores].push_back(loop / ours);
        rates[stores].push_back(arrays_moved(operation) * static_cast<double>(bytes) / ours / 1e9);
      }
    }
    const auto stores = median(rates[Stores::plain]) > median(rates[Stores::streaming])
                            ? Stores::plain
                            : Stores::streaming;
    const auto summary = summarise(ratios[stores]);
    std::printf(
        "%s (%s stores): %.2f GB/s (read+write), %.3f of a plain loop (95 %% interval %.3f to "
        "%.3f)\n",
        operation_name(operation), stores == Stores::plain ? "plain" : "streaming",
        median(rates[stores]), summary.median, summary.interval->first, summary.interval->second);
    good = good && summary.median >= kLeast;
  }
  return good ? 0 : 1;
}

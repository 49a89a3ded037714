// Messages between two ranks: windows of them, and single ones there and back.
#pragma once

#include <mpi.h>

#include <optional>
#include <vector>

#include "ranks/mpi_call.hpp"

namespace fabricheck::mpi {

/// The other rank of a pair did not answer in time.
class NoAnswer : public Failure {
 public:
  using Failure::Failure;
};

/// How long a rank waits for another one: forever, or to a point of wall_seconds().
class Patience {
 public:
  Patience() = default;
  explicit Patience(std::optional<double> until) : until_(until) {}

  [[nodiscard]] bool ends() const { return until_.has_value(); }

  /// Waits for all of the requests, of which the first `receives` are of receiving. Throws NoAnswer
  /// when the time is over: receives are cancelled then, and sends left alone.
  void wait(std::vector<MPI_Request>& requests, std::size_t receives) const;
  /// The same without occupying the processor.
  void wait_quietly(std::vector<MPI_Request>& requests, std::size_t receives) const;

 private:
  void wait(std::vector<MPI_Request>& requests, std::size_t receives, bool quietly) const;

  std::optional<double> until_;
};

/// The messages of this rank with another one, which has the same count, type and tag.
struct Exchange {
  MPI_Comm comm = MPI_COMM_NULL;
  int peer = 0;
  bool first = false;  ///< this rank is the source of what goes one way
  const void* source = nullptr;
  void* destination = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
  int tag = 1;  ///< and the two after it
};

/// The number of tags of an exchange.
constexpr int kTagsOfExchange = 3;

/// Seconds of `batch` windows of messages, from the first of them, when both ranks are ready, to
/// the last acknowledgement. `both`: both ways at once.
double windows(const Exchange& exchange, bool both, int window, int batch,
               const Patience& patience = {});

/// Waits until the other rank is ready.
void meet(const Exchange& exchange, const Patience& patience = {});

/// One message there and one back.
void there_and_back(const Exchange& exchange, const Patience& patience = {});

}  // namespace fabricheck::mpi

#include "mpi/messages.hpp"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "harness/sampling.hpp"

namespace fabricheck::mpi {
namespace {

constexpr int kReady = 1;  // after the tag of messages
constexpr int kAcknowledgement = 2;
constexpr useconds_t kLongestNap = 1000;

/// Waits a moment for a message, on a core that may be shared: of more ranks than cores, the other
/// rank gets it at once. Where something else keeps it, a rank that gives it up between any two
/// looks would move nothing; one that sleeps gets it back when it wakes.
class Moment {
 public:
  void pass() {
    if (shared_) {
      (void)usleep(1);
      return;
    }
    const double start = wall_seconds();
    std::this_thread::yield();
    shared_ = wall_seconds() - start > kLongestTurn;
  }

 private:
  static constexpr double kLongestTurn = 1e-3;  // s; another rank gives the core back before
  bool shared_ = false;
};

void send(const Exchange& exchange, const void* data, int count, MPI_Datatype type, int tag,
          const Patience& patience) {
  if (!patience.ends()) {
    FABRICHECK_MPI(MPI_Send(data, count, type, exchange.peer, tag, exchange.comm));
    return;
  }
  std::vector<MPI_Request> request(1);
  FABRICHECK_MPI(MPI_Isend(data, count, type, exchange.peer, tag, exchange.comm, request.data()));
  patience.wait(request, 0);
}

void receive(const Exchange& exchange, void* data, int count, MPI_Datatype type, int tag,
             const Patience& patience) {
  if (!patience.ends()) {
    FABRICHECK_MPI(
        MPI_Recv(data, count, type, exchange.peer, tag, exchange.comm, MPI_STATUS_IGNORE));
    return;
  }
  std::vector<MPI_Request> request(1);
  FABRICHECK_MPI(MPI_Irecv(data, count, type, exchange.peer, tag, exchange.comm, request.data()));
  patience.wait(request, 1);
}

/// An empty message both ways.
void sign(const Exchange& exchange, int tag, const Patience& patience) {
  if (!patience.ends()) {
    FABRICHECK_MPI(MPI_Sendrecv(nullptr, 0, MPI_BYTE, exchange.peer, tag, nullptr, 0, MPI_BYTE,
                                exchange.peer, tag, exchange.comm, MPI_STATUS_IGNORE));
    return;
  }
  std::vector<MPI_Request> requests(2);
  FABRICHECK_MPI(
      MPI_Irecv(nullptr, 0, MPI_BYTE, exchange.peer, tag, exchange.comm, requests.data()));
  FABRICHECK_MPI(MPI_Isend(nullptr, 0, MPI_BYTE, exchange.peer, tag, exchange.comm, &requests[1]));
  patience.wait(requests, 1);
}

}  // namespace

void Patience::wait(std::vector<MPI_Request>& requests, std::size_t receives) const {
  wait(requests, receives, false);
}

void Patience::wait_quietly(std::vector<MPI_Request>& requests, std::size_t receives) const {
  wait(requests, receives, true);
}

void Patience::wait(std::vector<MPI_Request>& requests, std::size_t receives, bool quietly) const {
  const int count = static_cast<int>(requests.size());
  if (!until_) {
    if (quietly) {
      for (auto& request : requests) {
        fabricheck::wait_quietly(&request);
      }
    } else {
      FABRICHECK_MPI(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE));
    }
    return;
  }
  int done = 0;
  Moment moment;
  for (useconds_t nap = 0;; nap = std::min(kLongestNap, nap + nap / 8 + 1)) {
    FABRICHECK_MPI(MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE));
    if (done != 0) {
      return;
    }
    if (wall_seconds() > *until_) {
      break;
    }
    if (quietly) {
      (void)usleep(nap);
    } else {
      moment.pass();
    }
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i] != MPI_REQUEST_NULL) {
      if (i < receives) {
        (void)MPI_Cancel(&requests[i]);
      }
      (void)MPI_Request_free(&requests[i]);
    }
  }
  throw NoAnswer(Status::software, "the other rank does not answer");
}

double windows(const Exchange& exchange, bool both, int window, int batch,
               const Patience& patience) {
  std::vector<MPI_Request> requests;
  const auto& [comm, peer, first, source, destination, count, type, tag] = exchange;
  double start = 0;
  for (int i = 0; i < batch; ++i) {
    requests.clear();
    const int receives = !first || both ? window : 0;
    for (int message = 0; message < receives; ++message) {
      FABRICHECK_MPI(
          MPI_Irecv(destination, count, type, peer, tag, comm, &requests.emplace_back()));
    }
    if (i == 0) {
      // The clock starts when the other side is ready to receive, and has poisoned before.
      meet(exchange, patience);
      start = MPI_Wtime();
    }
    if (first || both) {
      for (int message = 0; message < window; ++message) {
        FABRICHECK_MPI(MPI_Isend(source, count, type, peer, tag, comm, &requests.emplace_back()));
      }
    }
    patience.wait(requests, static_cast<std::size_t>(receives));
    if (both) {
      sign(exchange, tag + kAcknowledgement, patience);
    } else if (first) {
      receive(exchange, nullptr, 0, MPI_BYTE, tag + kAcknowledgement, patience);
    } else {
      send(exchange, nullptr, 0, MPI_BYTE, tag + kAcknowledgement, patience);
    }
  }
  return MPI_Wtime() - start;
}

void meet(const Exchange& exchange, const Patience& patience) {
  sign(exchange, exchange.tag + kReady, patience);
}

void there_and_back(const Exchange& exchange, const Patience& patience) {
  for (const bool sends : {exchange.first, !exchange.first}) {
    if (sends) {
      send(exchange, exchange.source, exchange.count, exchange.type, exchange.tag, patience);
    } else {
      receive(exchange, exchange.destination, exchange.count, exchange.type, exchange.tag,
              patience);
    }
  }
}

}  // namespace fabricheck::mpi

// Texts from one rank to another: what rank 0 commands, and what it is answered.
#pragma once

#include <mpi.h>

#include <list>
#include <optional>
#include <string>

namespace fabricheck {

class Mail {
 public:
  /// Collective.
  explicit Mail(MPI_Comm world);
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  /// Sends a text, and does not wait until it is there.
  void send(int to, int tag, const std::string& text);

  /// The next text of a rank with a tag. Does not occupy the processor meanwhile.
  std::string receive(int from, int tag);

  /// The same; nothing when the time of wall_seconds() is over. `from` may be MPI_ANY_SOURCE.
  std::optional<std::string> receive_until(int from, int tag, std::optional<double> until);

 private:
  struct Sent {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  MPI_Comm comm_ = MPI_COMM_NULL;  // never freed: a rank that is gone would be waited for
  std::list<Sent> sent_;
};

}  // namespace fabricheck

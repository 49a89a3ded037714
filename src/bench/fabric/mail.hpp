// Texts from one rank to another, which wait for no rank that does not answer.
#pragma once

#include <mpi.h>

#include <list>
#include <optional>
#include <string>

#include "mpi/messages.hpp"

namespace fabricheck::fabric {

class Mail {
 public:
  /// Collective.
  explicit Mail(MPI_Comm world);
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  /// Sends a text, and does not wait until it is there.
  void send(int to, int tag, const std::string& text);

  /// The next text of a rank (MPI_ANY_SOURCE: of any) with a tag; nothing when the time is over.
  /// Does not occupy the processor meanwhile.
  std::optional<std::string> receive(int from, int tag, const mpi::Patience& patience = {});

 private:
  struct Sent {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  MPI_Comm comm_ = MPI_COMM_NULL;  // never freed: a rank that is gone would be waited for
  std::list<Sent> sent_;
};

}  // namespace fabricheck::fabric

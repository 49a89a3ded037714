"""NICs of a simulated system count what they send, and messages share the links of a node."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from fabricheck.node import load
from fabricheck.node.system import platform_json

pytestmark = pytest.mark.slow

BYTES = 64 << 20
#: Rank 0 sends to rank 1 twice, the second time beside a transfer of its node over the same link,
#: and prints both rates and what its NIC has sent.
PROGRAM = r"""
#include <cstdint>
#include <cstdio>
#include <mpi.h>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>
namespace s4u = simgrid::s4u;
constexpr int bytes = 64 << 20;
static s4u::CommPtr beside(const std::string& name) {
  for (int i = 0;; ++i) {
    auto* source = s4u::Host::by_name("node0/source" + std::to_string(i));
    auto* destination = s4u::Host::by_name("node0/destination" + std::to_string(i));
    std::vector<s4u::Link*> links;
    source->route_to(destination, links, nullptr);
    for (const auto* link : links) {
      if (link->get_name() == name) {
        auto flow = s4u::Comm::sendto_init();
        flow->set_payload_size(bytes)->set_source(source)->set_destination(destination);
        return flow;
      }
    }
  }
}
int main(int argc, char** argv) {
  static char data[16];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* large = static_cast<char*>(SMPI_SHARED_MALLOC(bytes));
  for (int round = 0; round < 2; ++round) {
    if (rank == 1) {
      MPI_Send(data, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
      MPI_Recv(large, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      continue;
    }
    MPI_Recv(data, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    s4u::CommPtr flow;
    if (round == 1) flow = beside("link 0-1 of node0");
    const double start = MPI_Wtime();
    MPI_Ssend(large, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    std::printf("%.2f GB/s\n", 1e-9 * bytes / (MPI_Wtime() - start));
    if (flow) flow->wait();
  }
  if (rank == 0) {
    const auto* nic = s4u::Link::by_name("nic cxi0 of node0 out");
    std::printf("%llu bytes\n", (unsigned long long)*nic->get_data<std::uint64_t>());
  }
  SMPI_SHARED_FREE(large);
  MPI_Finalize();
  return 0;
}
"""


def test_a_message_shares_the_links_of_its_node_and_is_counted(tmp_path, programs: Path):
    overlay = tmp_path / "overlay.yaml"
    change = {"names": ["link 0-1 of node0"], "bandwidth_factor": 0.2}
    overlay.write_text(yaml.safe_dump({"name": "x", "description": "y", "resources": [change]}))
    (tmp_path / "node.json").write_text(platform_json(load("mi250x", overlay), 2))
    (tmp_path / "program.cpp").write_text(PROGRAM)
    (tmp_path / "hosts").write_text("node0/device0\nnode1/device1\n")
    subprocess.run(
        ["smpicxx", "-std=c++17", "-o", "program", "program.cpp"], cwd=tmp_path, check=True
    )
    done = subprocess.run(
        ["smpirun", "-np", "2", "-platform", programs / "libfabricheck_node.so",
         "-hostfile", "hosts", "--log=root.thresh:error", "./program"],
        cwd=tmp_path,
        env=os.environ | {"FABRICHECK_SIMULATED_NODE": "node.json"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    alone, beside = map(float, re.findall(r"([\d.]+) GB/s", done.stdout))
    link = 0.2 * 200 * 0.7522
    assert alone == pytest.approx(25 * 0.9528, rel=2e-3)
    assert beside == pytest.approx(link / 2, rel=2e-3)
    (sent,) = map(int, re.findall(r"(\d+) bytes", done.stdout))
    assert sent == 2 * BYTES  # of the data alone

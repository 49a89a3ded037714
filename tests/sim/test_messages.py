"""Messages between ranks on a simulated node: MPI under SMPI, with the node as its platform."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from fabricheck.node import load
from fabricheck.node.system import platform_json

pytestmark = pytest.mark.slow

#: Rank 0 sends a window of messages to rank 1 and waits for its answer, as osu_bw does.
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { bytes = 16 << 20, most = 8 };
int main(int argc, char **argv) {
  MPI_Request requests[most];
  const int window = atoi(argv[1]);
  char *data = malloc(bytes), answer = 0;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double start = MPI_Wtime();
  for (int i = 0; i < window; i++) {
    if (rank == 0) MPI_Isend(data, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, requests + i);
    else MPI_Irecv(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, requests + i);
  }
  MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
  if (rank == 0) {
    MPI_Recv(&answer, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%.3f GB/s\n", 1e-9 * window * bytes / (MPI_Wtime() - start));
  } else {
    MPI_Send(&answer, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def window_of(tmp_path_factory, programs: Path):
    """Return the bandwidth in GB/s of a window of messages between two devices."""
    folder = tmp_path_factory.mktemp("messages")
    (folder / "program.c").write_text(PROGRAM)
    (folder / "node.json").write_text(platform_json(load("mi250x")))
    subprocess.run(["smpicc", "-o", "program", "program.c"], cwd=folder, check=True)

    def window_of(messages: int, destination: int, engines: bool) -> float:
        (folder / "hosts").write_text(f"device0\ndevice{destination}\n")
        plugin = programs / "libfabricheck_node.so"
        command = ["smpirun", "-np", "2", "-platform", plugin, "-hostfile", "hosts",
                   "--log=root.thresh:error", "./program", str(messages)]  # fmt: skip
        variables = {"FABRICHECK_SIMULATED_NODE": "node.json", "HSA_ENABLE_SDMA": str(int(engines))}
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        match = re.search(r"([\d.]+) GB/s", done.stdout)
        assert match, done.stdout + done.stderr
        return float(match[1])

    return window_of


@pytest.mark.parametrize("destination", [1, 6, 2])
def test_messages_in_flight_share_the_engine(window_of, destination):
    peak = load("mi250x").peer_peak_gbs(0, destination, "copy-engine")
    one, several = window_of(1, destination, True), window_of(8, destination, True)
    # The answer counts less for more in flight, which reach no more than one engine copies.
    assert one < several <= peak


def test_without_engines_they_have_the_links(window_of):
    by_engine, by_kernel = (window_of(8, 1, engines) for engines in (True, False))
    assert by_kernel > 2 * by_engine
    tiers = [window_of(8, destination, False) for destination in (1, 6, 2)]
    # Each message costs some time beside its bytes, of which the fast ones feel more.
    assert tiers[0] == pytest.approx(2 * tiers[1], rel=0.04)
    assert tiers[1] == pytest.approx(2 * tiers[2], rel=0.02)

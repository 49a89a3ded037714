"""A stand-in for the program mpi over two nodes with four AMD MI250X: valid documents, no messages.

FAKE_NODES names one thing that is wrong, or FAKE_DISTANCES the distances of the pairs of ranks
beside the four NICs.
"""

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import factories

FAULT = os.environ.get("FAKE_NODES", "")
DISTANCES = os.environ.get("FAKE_DISTANCES", "same-group,same-group,same-group,same-group")
NODES, DEVICES = ("n1", "n2"), (1, 3, 5, 7)
EACH = len(DEVICES)
#: GB/s of a NIC and us; by rank of the pair's source a little more.
RATES = {"bandwidth": 23.0, "bandwidth-both": 44.0, "latency": 2.5}


def network(rank):
    used = {"name": f"cxi{rank % EACH}", "part": 1.0}
    told = {"nics": [used], "transport": "nic", "provider": "cxi"}
    if FAULT == "tcp":
        told = {"nics": [{"name": "hsn0", "part": 1.0}], "transport": "kernel", "provider": "tcp"}
    elif FAULT == "one-nic":
        used["name"] = "cxi0"
    return told | {"place": {"group": "0", "switch": str(rank % EACH), "port": None}}


def ranks():
    for rank in range(2 * EACH):
        node, own = divmod(rank, EACH)
        device = 8 * node + DEVICES[own]
        yield {
            "rank": rank,
            "host": NODES[node],
            "cores": [0],
            "numa_domain": 0,
            "memory_domain": 0,
            "visible_devices": list(range(8 * node, 8 * node + 8)),
            "device": device,
            "network": network(rank),
        }


def series(operation, role, pairs):
    devices = [8 * (rank // EACH) + DEVICES[rank % EACH] for pair in pairs for rank in pair]
    apart, both = operation == "latency", operation == "bandwidth-both"
    nbytes = 16 if apart else 64 << 20
    value = RATES[operation] + 0.01 * pairs[0][0]
    value *= len(pairs) if role == "sum" else 1
    ends = [None, None] if role == "sum" else devices[:2]
    ways = 2 if both else 1
    moved = ways * nbytes * (len(pairs) if role == "sum" else 1)
    return factories.series(
        [value] * 7,
        experiment="E17",
        operation=operation,
        role=role,
        device=None,
        device_set=devices,
        ranks=[rank for pair in pairs for rank in pair],
        source=factories.place(device=ends[0]),
        destination=factories.place(device=ends[1]),
        engine="mpi",
        datatype="byte",
        direction="both-ways" if both else "one-way",
        distance=None if role == "sum" else DISTANCES.split(",")[pairs[0][0] % EACH],
        bytes=nbytes,
        bytes_moved=moved,
        bytes_counted="once",
        block_size=None,
        unit="us" if apart else "GB/s",
        better="lower" if apart else "higher",
        host_clock=None,
        regime="cache" if apart else "memory",
        verification={
            "bytes_checked": 2 * nbytes if apart else moved,
            "errors": 0,
            "first_mismatch": None,
        },
        **({"p99": 4.0} if apart else {}),
    )


def every():
    there = [(rank, rank + EACH) for rank in range(EACH)]
    back = [(target, source) for source, target in there]
    for operation in ("latency", "bandwidth", "bandwidth-both"):
        sets = [there] if operation == "bandwidth-both" else [there, back]
        for pairs in sets:
            yield from (series(operation, "single", [pair]) for pair in pairs)
        for pairs in sets if operation != "latency" else ():
            yield from (series(operation, "share", [pair]) for pair in pairs)
            yield series(operation, "sum", pairs)


def main():
    now = datetime.now(UTC)
    devices = [
        factories.device(index, arch="gfx90a", pci_address=f"0000:{index:02x}:00.0")
        for index in range(16)
    ]
    host = factories.document()["host"] | {"scheduler_node": "n1"}
    document = factories.document(
        program=factories.document()["program"] | {"name": "mpi", "runtime": "rocm"},
        host=host,
        devices=devices,
        started=now.isoformat(),
        finished=(now + timedelta(seconds=1)).isoformat(),
        versions={"runtime": "6.3", "driver": "6.3", "mpi": "a stand-in"},
        ranks=list(ranks()),
        arguments=["mpi", *sys.argv[1:]],
        options={"noise_limit": 0.1},
        environment={
            name: "BLOCK" if FAULT == "policy" else value
            for name, value in os.environ.items()
            if name.startswith("MPICH_")
        },
        duration_s=1.0,
        series=list(every()),
    )
    Path(sys.argv[-1]).write_text(json.dumps(document))


main()

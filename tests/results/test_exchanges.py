"""Series of copies by several ranks (E6): what loads, and which contradictions do not."""

import json

import pytest

import factories
from fabricheck.core.errors import InvalidDocument
from fabricheck.results import document

SIZE = 1 << 28
OPERATIONS = ("h2d", "d2h", "both")


def rank(number, device, domain=0):
    """Build a rank bound to one core of NUMA domain 0."""
    return {
        "rank": number,
        "host": factories.simulated_document()["host"]["hostname"],
        "cores": [0],
        "numa_domain": 0,
        "memory_domain": domain,
        "visible_devices": [0, 1],
        "device": device,
    }


def exchange(operation="h2d", member=0, device=None, **changes):
    """Build a series of `pingpong`, of one of two ranks, without noise."""
    own = member if device is None else device
    built = factories.host_copy(operation, own, memory="host-pageable")
    built |= {
        "experiment": "E6",
        "role": "share",
        "device_set": [0, 1],
        "ranks": [member],
        "placement": "right",
        "batch": 1,
    }
    if operation == "both":
        checked = built["verification"] | {"bytes_checked": 2 * SIZE}
        built |= {"direction": "both-ways", "bytes_moved": 2 * SIZE, "verification": checked}
    return built | changes


def parse(*series, ranks=None):
    content = factories.simulated_document(series=list(series))
    content["devices"] = [factories.device(0), factories.device(1)]
    domains = content["host"]["numa_domains"]
    domains.append({"index": 1, "cores": [2, 3], "memory_bytes": 16 << 30})
    content["versions"]["mpi"] = "an MPI 1.0"
    content["ranks"] = [rank(0, 0), rank(1, 1)] if ranks is None else ranks
    return document.parse(json.dumps(content), "x.json")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_copies_of_all_ranks_load(operation):
    parse(exchange(operation, 0), exchange(operation, 1))


def test_ranks_may_share_a_device():
    shared = {"device": 1, "device_set": [1]}
    parse(exchange("both", 0, **shared), exchange("both", 1, **shared),
          ranks=[rank(0, 1), rank(1, 1)])  # fmt: skip


def test_one_rank_measures_alone():
    alone = {"role": "single", "device_set": [0]}
    parse(exchange(**alone), ranks=[rank(0, 0)])


def test_a_rank_whose_memory_is_anywhere_says_no_domain():
    nowhere = factories.place("host-pageable", None, None)
    parse(exchange(source=nowhere), ranks=[rank(0, 0, domain=None), rank(1, 1)])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"operation": "h2d-sync"}, "operation: 'h2d-sync' is not an operation of E6"),
        ({"direction": "both-ways", "bytes_moved": 2 * SIZE}, "direction: is both-ways"),
        ({"engine": "mpi"}, "datatype: does not fit the engine mpi"),
        ({"engine": "cpu"}, "engine: is cpu, but h2d uses copy-engine or kernel"),
        ({"engine": "kernel", "engines": 2}, "engines: is 2, but the engine is kernel"),
        ({"bytes_counted": "read+write"}, "bytes_counted: is read+write, but h2d counts once"),
        ({"unit": "us", "better": "lower"}, "unit: is us, but h2d is a bandwidth"),
        ({"batch": 2}, "batch: is 2, but a sample of h2d is one copy"),
        ({"bytes_moved": 2 * SIZE}, f"bytes_moved: is {2 * SIZE}, but {SIZE} bytes are counted"),
        ({"role": "single"}, "role: is single, but with 2 rank(s) each is a share"),
        ({"role": "sum", "device": None}, "role: is sum, but with 2 rank(s) each is a share"),
        ({"ranks": None}, "ranks: is missing in a series of E6"),
        ({"ranks": [0, 1]}, "ranks: are 2, but a copy has one"),
        ({"ranks": [2]}, "ranks: rank 2 is not among the document's ranks"),
        ({"ranks": [1]}, "device: is 0, but the device of rank 1 is 1"),
        ({"placement": None}, "placement: is null, but the experiment is E6"),
        ({"device_set": [0]}, "device_set: is [0], but the devices of all ranks are [0, 1]"),
        ({"device_set": [1, 0]}, "device_set: is [1, 0], but the devices of all ranks are [0, 1]"),
        (
            {"destination": factories.place(device=1)},
            "destination.device: is 1, but the device of the series is 0",
        ),
        (
            {"source": factories.place("host-pageable", None, 1)},
            "source.numa_domain: is 1, but memory of rank 0 is on 0",
        ),
        (
            {"source": factories.place("host-pageable", None, None)},
            "source.numa_domain: is None, but memory of rank 0 is on 0",
        ),
        (
            {"source": factories.place("managed", None, 0)},
            "source: is managed to device, which is not h2d",
        ),
        (
            {"source": factories.place(), "destination": factories.place("host-pageable", None, 0)},
            "source: is device to host-pageable, which is not h2d",
        ),
    ],
)
def test_contradictions_are_refused(changes, said):
    with pytest.raises(InvalidDocument) as caught:
        parse(exchange(**changes))
    assert f"$.series[0].{said}" in str(caught.value)


def test_both_counts_both_copies_and_verifies_both():
    half = exchange("both", bytes_moved=SIZE)
    with pytest.raises(InvalidDocument, match=f"bytes_moved: is {SIZE}, but {2 * SIZE} bytes"):
        parse(half)
    checked = exchange()["verification"] | {"bytes_checked": 2 * SIZE}
    with pytest.raises(InvalidDocument, match="bytes_checked"):
        parse(exchange(verification=checked))

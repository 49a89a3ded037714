"""Series between host and device: what loads, and which contradictions do not."""

import json

import pytest

import factories
from fabricheck.core.errors import InvalidDocument
from fabricheck.results import document

OPERATIONS = ("read", "write", "host-read", "host-write", "prefetch-h2d", "prefetch-d2h")
SUM = 2
PINNED = factories.place("host-pinned", None, 0)
NO_MANAGED = {"managed": True, "concurrent_access": False, "pageable_access": False, "xnack": None}


def parse(*series, **changes):
    content = factories.simulated_document(series=list(series), **changes)
    return document.parse(json.dumps(content), "x.json")


def refused(*series, **changes):
    with pytest.raises(InvalidDocument) as caught:
        parse(*series, **changes)
    return str(caught.value)


@pytest.mark.parametrize("memory", ["host-pinned", "host-noncoherent", "host-pageable"])
@pytest.mark.parametrize("experiment", ["E2", "E4"])
def test_copies_load(experiment, memory):
    names = ("h2d", "d2h", "h2d-sync", "d2h-sync")
    one_way = [factories.host_copy(name, memory=memory) for name in names]
    series = [*one_way, *factories.both_ways(1, memory=memory)]
    loaded = parse(*(one | {"experiment": experiment} for one in series))
    assert loaded["series"][-1]["bytes_moved"] == 2 << 28


@pytest.mark.parametrize("operation", OPERATIONS)
def test_managed_memory_loads(operation):
    parse(factories.managed_copy(operation))
    migrated = "prefetch" if operation.startswith("prefetch") else "page-migration"
    parse(factories.managed_copy(operation, movement=migrated))


def test_mapped_memory_is_read_and_written_by_kernels():
    parse(factories.managed_copy("read", source=PINNED))
    parse(factories.managed_copy("write", destination=PINNED))


def test_what_devices_and_places_may_say_and_may_leave_out():
    for asked in (NO_MANAGED, NO_MANAGED | {"xnack": True}, None):
        clocks = {"power_cap_w": 500.0, "clock_mhz": 1700, "memory_clock_mhz": None}
        place = PINNED | {"huge_page_bytes": None if asked is None else 1 << 28}
        devices = [factories.device(0, managed_memory=asked, **clocks)]
        parse(factories.host_copy(source=place), devices=devices)
    for wrong in ({"power_cap_w": 0}, {"managed_memory": {"managed": True}}):
        assert "$.devices[0]" in refused(
            factories.host_copy(), devices=[factories.device(0, **wrong)]
        )
    broken = PINNED | {"huge_page_bytes": -1}
    assert "huge_page_bytes: -1 is less than" in refused(factories.host_copy(source=broken))


def test_wrong_data_on_the_host_has_no_device():
    wrong = factories.mismatched()
    wrong["first_mismatch"]["device"] = None
    outcome = {"exit_code": 5, "status": "wrong-data", "message": "a word differs"}
    parse(factories.host_copy("d2h", verification=wrong), outcome=outcome)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"operation": "copy"}, "operation: 'copy' is not an operation of E4"),
        ({"operation": "read"}, "operation: 'read' is not an operation of E4"),
        (
            {"source": factories.place(), "destination": PINNED},
            "source: is device to host-pinned, which is not h2d",
        ),
        ({"experiment": "E3"}, "operation: 'h2d' is not an operation of E3"),
        ({"engine": "cpu"}, "engine: is cpu, but h2d uses copy-engine or kernel"),
        ({"engine": "kernel", "engines": 2}, "engines: is 2, but the engine is kernel"),
        ({"direction": "both-ways"}, "direction: is both-ways, but h2d is one-way"),
        ({"role": "share"}, "role: is share, which h2d cannot have"),
        ({"unit": "us", "better": "lower"}, "unit: is us, but h2d is a bandwidth"),
        ({"movement": "zero-copy"}, "movement: is zero-copy, but the experiment is E4"),
        ({"bytes_counted": "read+write"}, "bytes_counted: is read+write, but h2d counts once"),
        ({"bytes_moved": 2 << 28}, "bytes_moved: is 536870912, but 268435456 bytes are counted"),
        (
            {"source": factories.place("host-pinned", None)},
            "source.numa_domain: is null, but E4 tells series apart by NUMA domain",
        ),
        ({"source": factories.place("host-pinned", None, 3)}, "NUMA domain 3 is not among"),
        ({"source": factories.place("managed", None, 0)}, "which is not h2d"),
    ],
)  # fmt: skip
def test_contradictions_of_a_copy(changes, said):
    assert said in refused(factories.host_copy(**changes))


@pytest.mark.parametrize(
    ("index", "changes", "said"),
    [
        (SUM, {"bytes_moved": 1 << 28}, "bytes_moved: is 268435456, but the shares move 536870912"),
        (SUM, {"source": factories.place(device=None), "destination": PINNED},
         "source: is device to host-pinned, which is not both"),
        (SUM, {"source": factories.place("host-pinned", None)}, "source.numa_domain: is null"),
        (SUM, {"verification": {"bytes_checked": (2 << 28) + 8, "errors": 0,
         "first_mismatch": None}}, "2 array(s) of 268435456 bytes have fewer"),
        (0, {"role": "single"}, "role: is single, which both cannot have"),
        (1, {"bytes_moved": 2 << 28}, "bytes_moved"),
        (1, {"direction": "one-way"}, "direction: is one-way, but both is both-ways"),
    ],
)  # fmt: skip
def test_contradictions_of_both_directions(index, changes, said):
    series = factories.both_ways()
    series[index] |= changes
    assert f"$.series[{index}]." in refused(*series) and said in refused(*series)


@pytest.mark.parametrize(
    ("operation", "changes", "said"),
    [
        ("read", {"movement": None}, "movement: is missing, but the memory is managed or mapped"),
        ("read", {"movement": "prefetch"}, "movement: is prefetch, but the operation is read"),
        ("read", {"movement": "guessed"}, "movement: 'guessed' is not one of"),
        ("prefetch-h2d", {"movement": "page-migration"}, "movement: is page-migration, but the"),
        ("read", {"experiment": "E2"}, "operation: 'read' is not an operation of E2"),
        ("read", {"experiment": "E1"}, "movement: is zero-copy, but the experiment is E1"),
        ("read", {"source": factories.place("managed", 0)},
         "source.device: contradicts read, whose pages are on the host there"),
        ("write", {"destination": factories.place("managed", 0, 0)}, "destination.numa_domain: is"),
        ("prefetch-h2d", {"destination": factories.place("managed", None, 0)},
         "destination.device: contradicts prefetch-h2d, whose pages are on a device there"),
        ("prefetch-d2h", {"destination": factories.place("managed", 0)}, "are on the host there"),
        ("host-read", {"engine": "kernel"}, "engine: is kernel, but host-read uses cpu"),
        ("write", {"source": PINNED}, "source: is host-pinned to managed, which is not write"),
    ],
)  # fmt: skip
def test_contradictions_of_managed_memory(operation, changes, said):
    assert said in refused(factories.managed_copy(operation, **changes))


def test_a_missing_movement_is_said_where_the_field_is_absent_too():
    series = factories.managed_copy()
    del series["movement"]
    assert "movement: is missing" in refused(series)

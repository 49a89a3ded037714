"""Documents of several ranks: what loads, and which contradictions do not."""

import json

import pytest

import factories
from fabricheck.core.errors import InvalidDocument
from fabricheck.results import document

HOST = factories.place("host-pageable", None, 0)
VERSIONS = {"runtime": "1", "driver": "0", "mpi": "MPICH Version: 5.0.2"}
ONE, GIB = 1 << 20, 1 << 30


def rank(index, device=None, **changes):
    """Build a rank that is on core 0 and uses the device of its number, of two."""
    own = index % 2 if device is None else device
    base = {"rank": index, "host": "here", "cores": [0], "numa_domain": 0, "memory_domain": 0}
    return base | {"visible_devices": [0, 1], "device": own} | changes


def message(operation="bandwidth", ranks=(0, 1), value=30.0, **changes):
    """Build a series of messages between two ranks, or of a collective, on devices."""
    collective = operation not in ("bandwidth", "bandwidth-both", "latency")
    slow = collective or operation == "latency"
    both = operation == "bandwidth-both"
    ends = [factories.place(device=None if collective else member % 2) for member in ranks[:2]]
    return factories.series(
        [value],
        experiment="E10" if collective else "E9",
        operation=operation,
        device=None,
        device_set=list(dict.fromkeys(member % 2 for member in ranks)),
        source=ends[0],
        destination=ends[1],
        engine="mpi",
        direction="collective" if collective else "both-ways" if both else "one-way",
        ranks=list(ranks),
        datatype="byte",
        bytes=ONE,
        bytes_moved=ONE * (2 if both else 1),
        bytes_counted="once",
        block_size=None,
        unit="us" if slow else "GB/s",
        better="lower" if slow else "higher",
        host_clock=None,
    ) | (changes)


def content(*series, ranks=None, **changes):
    members = [rank(index) for index in range(4)] if ranks is None else ranks
    result = factories.simulated_document(series=list(series), versions=VERSIONS, **changes)
    result["host"] |= {"hostname": "here"}
    result["devices"] = [factories.device(index) for index in (0, 1)]
    return result | {"ranks": members}


def parse(*series, **changes):
    return document.parse(json.dumps(content(*series, **changes)), "x.json")


def refused(*series, **changes):
    with pytest.raises(InvalidDocument) as caught:
        parse(*series, **changes)
    return str(caught.value)


def test_messages_of_pairs_and_of_all_load():
    pairs = [message(name) for name in ("bandwidth", "bandwidth-both", "latency")]
    names = ("reduce", "bcast", "allreduce", "reduce_scatter", "allgather")
    together = [message(name, range(count)) for name in names for count in (2, 3, 4)]
    verified = [
        message("allreduce", range(4), experiment="E12", datatype=word)
        for word in ("byte", "int32", "float", "double")
    ]
    loaded = parse(*pairs, *together, *verified)
    assert loaded["series"][-1]["datatype"] == "double"


def test_disjoint_pairs_at_once_load():
    shares = [message(ranks=pair, role="share") for pair in ((0, 1), (2, 3))]
    nowhere = factories.place(device=None)
    total = message(
        ranks=range(4), role="sum", bytes_moved=2 * ONE, source=nowhere, destination=nowhere
    )
    parse(*shares, total)
    assert "bytes_moved: is 1048576, but 2097152" in refused(*shares, total | {"bytes_moved": ONE})
    odd = total | {"ranks": [0, 1, 2]}
    assert "ranks: are 3, which is not a number of pairs" in refused(odd)


def test_messages_of_host_memory_need_no_device():
    nobody = [rank(index) | {"device": None} for index in range(2)]
    series = message(source=HOST, destination=HOST, device_set=[])
    parse(series, ranks=nobody)
    assert "device_set: is [], but the devices of the ranks are [0, 1]" in refused(series)


def test_what_was_skipped_is_told():
    skipped = [{"operation": "allreduce", "reason": "MPI crashed in a trial."}]
    assert parse(message(), skipped=skipped)["skipped"] == skipped
    assert "$.skipped[0]" in refused(message(), skipped=[{"operation": "allreduce"}])


def test_a_document_of_affinity_needs_no_series():
    program = content()["program"]
    parse(program=program | {"name": "affinity"})
    assert "is empty, but the outcome is good" in refused(program=program | {"name": "mpi"})


def test_wrong_data_names_the_rank():
    wrong = factories.mismatched()
    wrong["bytes_checked"] = ONE
    wrong["first_mismatch"] |= {"rank": 3, "device": None, "expected": "28", "found": "29"}
    outcome = {"exit_code": 5, "status": "wrong-data", "message": "an element differs"}
    parse(message("allreduce", range(4), verification=wrong), outcome=outcome)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rank": 1}, "ranks[0].rank: is 1, but ranks are in order from 0"),
        ({"cores": [0, 0]}, "ranks[0].cores: names one twice"),
        ({"visible_devices": [0, 0]}, "ranks[0].visible_devices: names one twice"),
        ({"visible_devices": [0, 7]}, "device 7 is not among the document's devices"),
        ({"visible_devices": [1]}, "device 0 is not among those that the rank sees"),
        ({"memory_domain": 9}, "NUMA domain 9 is not among the host's"),
        ({"numa_domain": None}, "numa_domain: is null, but the cores are in domain 0"),
        ({"numa_domain": 0, "cores": []}, "is 0, but the cores are in several domains or none"),
    ],
)
def test_contradictions_of_a_rank(changes, said):
    ranks = [rank(0, **changes), rank(1)]
    assert said in refused(message(), ranks=ranks)


def test_domains_of_other_machines_are_not_in_the_document():
    parse(message(), ranks=[rank(0), rank(1, host="there", numa_domain=9, memory_domain=9)])


def test_ranks_and_the_version_of_mpi_belong_together():
    whole = content(message())
    for change in ({"versions": {"runtime": "1", "driver": "0"}}, {"ranks": None}):
        with pytest.raises(InvalidDocument, match=r"\$\.versions\.mpi: is (missing|set)"):
            document.parse(json.dumps(whole | change), "x.json")
    lonely = whole | {"ranks": None, "versions": {"runtime": "1", "driver": "0"}}
    with pytest.raises(InvalidDocument, match="but the document has no ranks"):
        document.parse(json.dumps(lonely), "x.json")


@pytest.mark.parametrize(
    ("series", "said"),
    [
        (message(ranks=(0, 9)), "ranks: rank 9 is not among"),
        (message() | {"ranks": [0, 0]}, "ranks: names a rank twice"),
        (message() | {"ranks": [0]}, "ranks: are 1, but bandwidth needs two"),
        (message() | {"ranks": None}, "ranks: is missing in a series of E9"),
        (
            message(operation="bandwidth") | {"operation": "copy"},
            "'copy' is not an operation of E9",
        ),
        (message(direction="both-ways"), "direction: is both-ways, but bandwidth is one-way"),
        (message("bcast", direction="local"), "is local, but bcast is collective"),
        (message(unit="us", better="lower"), "unit: is us, but bandwidth is in GB/s"),
        (message(bytes_counted="read+write"), "is read+write, but messages count once"),
        (message(device=0), "device: is 0, but messages have none"),
        (
            message("bcast", role="share"),
            "role: is share, but bcast is measured over all its ranks",
        ),
        (message(device_set=[1]), "device_set: is [1], but the devices of the ranks are [0, 1]"),
        (message(role="share", device_set=[1]), "device_set: lacks a device of the ranks"),
        (
            message(source=factories.place(device=1)),
            "source.device: is 1, but the device of rank 0 is 0",
        ),
        (message(source=factories.place("managed")), "is managed, which no message has"),
        (message(datatype=None), "datatype: does not fit the engine mpi"),
        (message(placement="right"), "placement: is set, but the experiment is E9"),
        (message(bytes_moved=7), "bytes_moved: is 7, but 1048576 bytes are counted once"),
        (factories.host_copy(placement="right"), "placement: is set, but no ranks take part"),
        (factories.host_copy(datatype="byte"), "datatype: is set, but no ranks take part"),
        (factories.host_copy(direction="collective"), "ranks: is missing in a series of E4"),
        (factories.host_copy(device_set=[]), "device_set: is empty"),
    ],
)
def test_contradictions_of_a_series(series, said):
    assert said in refused(series)


def test_no_more_is_verified_than_the_ranks_hold():
    for series, arrays in (
        (message("allgather", range(4)), 16),
        (message("bandwidth-both"), 2),
        (message(), 1),
    ):
        enough = {"bytes_checked": arrays * ONE, "errors": 0, "first_mismatch": None}
        parse(series | {"verification": enough})
        more = enough | {"bytes_checked": arrays * ONE + 1}
        assert f"{arrays} array(s) of {ONE} bytes" in refused(series | {"verification": more})

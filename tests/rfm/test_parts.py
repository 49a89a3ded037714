"""The parts of fabricheck.rfm, each with documents and folders of its own."""

from __future__ import annotations

import math
import os
from types import SimpleNamespace
from unittest import mock

import pytest
from reframe.core.exceptions import SanityError

import factories
from fabricheck.core.errors import InvalidInputError
from fabricheck.rfm import acceptance, guard, host, on_partition
from fabricheck.rfm.build import BuildCheck
from fabricheck.rfm.metrics import LARGEST, Metric, MetricError, where_measured
from fabricheck.site import sites
from fabricheck.tools.topology.host import last_level_cache_bytes


def of_device(index, value, **changes):
    return factories.series([value] * 7, device=index, device_set=[index], **changes)


def document(*series, **changes):
    return {
        "complete": True,
        "program": {"name": "stream", "runtime": "host"},
        "clock": "measured",
        "host": {"hostname": "nid001"},
        "devices": [
            factories.device(0),
            factories.device(1, pci_address="0000:c1:00.0"),
            factories.device(2),
        ],
        "faults_injected": [],
        "outcome": {"exit_code": 0, "status": "good", "message": None},
        "series": list(series),
    } | changes


def evaluate(document, metric, population):
    return metric.figure(document, population)


COPY = {"operation": "copy"}
THREE = (of_device(0, 30.0), of_device(1, 10.0), of_device(2, 20.0))
ALL = {"device": range(3)}


@pytest.mark.parametrize(
    ("reduce", "better", "value", "devices"),
    [
        ("worst", "higher", 10.0, [1]),
        ("best", "higher", 30.0, [0]),
        ("worst", "lower", 30.0, [0]),
        ("best", "lower", 10.0, [1]),
        ("median", "higher", 20.0, [0, 1, 2]),
    ],
)
def test_reductions(reduce, better, value, devices):
    series = [one | {"better": better} for one in THREE]
    figure = evaluate(document(*series), Metric("copy", COPY, reduce=reduce), ALL)
    assert figure.value == value
    assert [one["device"] for one in figure.decisive] == devices
    assert len(figure.series) == 3


def test_the_median_is_no_mean():
    uneven = document(*(of_device(index, value) for index, value in enumerate([10.0, 20.0, 60.0])))
    assert evaluate(uneven, Metric("copy", COPY, reduce="median"), ALL).value == 20.0


def test_nested_fields_and_the_largest_size():
    small = of_device(0, 50.0, bytes=1 << 10)
    peer = of_device(0, 5.0, source=factories.place("peer", 1))
    metric = Metric("x", {"source.memory": "device", "bytes": LARGEST})
    figure = evaluate(document(small, *THREE, peer), metric, {"device": [0]})
    assert figure.value == 30.0


def test_pairs_are_told_apart_by_two_fields():
    def pair(source, destination, value):
        return of_device(
            source,
            value,
            source=factories.place("device", source),
            destination=factories.place("peer", destination),
        )

    fields = ("source.device", "destination.device")
    population = {"source.device": [0, 1], "destination.device": [2]}
    both = document(pair(0, 2, 40.0), pair(1, 2, 37.0))
    assert evaluate(both, Metric("dual_worst", COPY, fields), population).value == 37.0
    with pytest.raises(MetricError, match=r"no series .* source.device 1, destination.device 2"):
        evaluate(document(pair(0, 2, 40.0)), Metric("dual_worst", COPY, fields), population)


def test_a_class_of_pairs_is_a_metric_over_just_those():
    def pair(source, destination, value):
        ends = {"source": factories.place("device", source),
                "destination": factories.place("peer", destination)}  # fmt: skip
        return of_device(source, value, **ends) | {"device_set": [source, destination]}

    said = document(pair(0, 1, 40.0), pair(1, 0, 37.0), pair(0, 2, 10.0))
    metric = Metric("quad", COPY, ("device_set",), among=(([0, 1],), ([1, 0],)))
    figure = evaluate(said, metric, {})
    assert figure.value == 37.0
    assert where_measured(said, figure.decisive) == (
        "pair 1-0, devices 0 and 1 (0000:c1:00.0) of node nid001"
    )
    with pytest.raises(MetricError, match="no series for operation copy, device_set"):
        evaluate(said, Metric("dual", COPY, ("device_set",), among=(([2, 0],),)), {})


def test_a_series_that_is_there_twice_is_no_metric():
    with pytest.raises(MetricError, match="copy has more than one series for operation copy"):
        evaluate(document(THREE[0], THREE[0]), Metric("copy", COPY), {"device": [0]})


def test_a_series_in_another_unit_is_no_metric():
    metric = Metric("copy", COPY, unit="us")
    with pytest.raises(MetricError, match="declared in us, but device 0 of node nid001 reported"):
        evaluate(document(*THREE), metric, {"device": [0]})


def test_a_share_between_devices_is_no_metric():
    pairs = document(*factories.pair_series())
    both = {"operation": "engine-both"}
    with pytest.raises(MetricError, match=r"engine is declared for shares .* for their sum\."):
        evaluate(pairs, Metric("engine", both | {"role": "share", "device": 0}, ()), {})
    assert evaluate(pairs, Metric("engine", both | {"role": "sum"}, ()), {})


def test_where_names_each_device_once_with_its_address():
    together = factories.series(role="sum", device=None, device_set=[2, 1, 0])
    said = "devices 0, 1 (0000:c1:00.0) and 2 of node nid001"
    assert where_measured(document(), [together, THREE[1]]) == said


def test_where_names_each_proved_numa_domain_once():
    said = document()
    copies = [factories.host_copy("h2d", 1, 2), factories.host_copy("d2h", 1, 2)]
    assert where_measured(said, copies) == (
        "device 1 (0000:c1:00.0) and NUMA domain 2 of node nid001"
    )
    copies += [factories.host_copy("h2d", 0, 0), factories.host_copy("h2d", 2, None)]
    assert where_measured(said, copies) == (
        "devices 0, 1 (0000:c1:00.0) and 2 and NUMA domains 0 and 2 of node nid001"
    )


def test_where_names_ranks_that_have_no_device():
    ranks = factories.series(device=None, device_set=[], ranks=[0, 1])
    assert where_measured(document(), [ranks]) == "ranks 0 and 1 of node nid001"


def test_a_cell_that_is_missing_is_named_by_device_and_domain():
    ends = ("device", "source.numa_domain")
    metric = Metric("h2d", {"operation": "h2d"}, ends, among=((1, 2), (1, 3)))
    said = document(factories.host_copy("h2d", 1, 2))
    with pytest.raises(MetricError, match=r"device 1 \(.*\) and NUMA domain 3 of node nid001\."):
        evaluate(said, metric, {})
    total = Metric("both", {"role": "sum"}, ("device_set",))
    assert evaluate(document(*factories.both_ways(1)), total, {"device_set": [[1]]}).value == 50.0
    with pytest.raises(MetricError, match=r"in the result of device 2 of node nid001\."):
        evaluate(said, total, {"device_set": [[2]]})


def test_a_member_that_is_absent_is_no_value():
    metric = Metric("read", {"movement": "zero-copy"})
    read = factories.managed_copy("read", 0)
    assert evaluate(document(read), metric, {"device": [0]}).value == 25.5
    with pytest.raises(MetricError, match="no series for movement zero-copy"):
        evaluate(document(*THREE), metric, {"device": [0]})


def test_a_message_of_a_document_controls_no_terminal():
    document = {"outcome": {"message": "bad \x1b[2J\x9b2J"}}
    job = SimpleNamespace(exitcode=4, state="COMPLETED", nodelist=["n1"], pin_nodes=None)
    assert str(on_partition.of_end(job, "stream", document)).endswith(": bad \\x1b[2J\\x9b2J")


def ended(code=0, state=None, nodes=(), awaited=()):
    return SimpleNamespace(exitcode=code, state=state, nodelist=nodes, pin_nodes=awaited)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(ended(0, "TIMEOUT"), id="time limit"),
        pytest.param(ended(143, "CANCELLED"), id="cancelled"),
        pytest.param(ended(0, "NODE_FAIL", ["node3"], ["node3"]), id="node failed"),
        pytest.param(ended(0, "CANCELLED", [], ["node3"]), id="never started"),
        pytest.param(ended(6, "FAILED"), id="own time limit"),
        pytest.param(ended(None), id="no exit code"),
        pytest.param(ended(99), id="unknown exit code"),
        pytest.param(ended(139), id="signal"),
    ],
)
def test_how_a_job_ended_is_said(job, wording):
    assert not on_partition.ended_well(job)
    error = on_partition.of_end(job, "stream", None)
    wording(str(error))
    names = {"CANCELLED": "EndedBySchedulerError", "TIMEOUT": "TimeOverError"}
    assert type(error).__name__ == names.get(job.state, "SanityError")
    assert isinstance(error, SanityError)


def test_the_document_says_why_a_program_ended(wording):
    assert on_partition.ended_well(ended(0, "COMPLETED"))
    wording(
        str(on_partition.of_end(ended(3), "stream", document(outcome={"message": "no device 9"})))
    )


def faults(value, unit="GB/s", role="single", **bound):
    better = "higher" if unit == "GB/s" else "lower"
    series = of_device(1, 1.0, median=value, unit=unit, better=better, role=role)
    if role == "sum":
        series |= {"device": None, "device_set": [0, 1]}
    said = document(series)
    over = () if role == "sum" else ("device",)
    figure = evaluate(said, Metric("m", COPY, over, unit=unit), {"device": [1]})
    limit = acceptance.Bound(100.0, "derived", "a formula", **bound)
    return list(acceptance.figure_faults(said, [figure], lambda one: limit))


def test_values_outside_physics(wording):
    assert faults(100.0) == []
    wording(faults(100.1))
    told = [faults(value) for value in (0.0, -1.0, math.inf, math.nan)]
    assert [len(each) for each in told] == [1, 1, 1, 1]
    wording(fault for each in told for fault in each)


def test_a_latency_has_its_bound_below(wording):
    assert faults(100.0, "us") == []
    wording(faults(99.0, "us"))


def test_a_sum_has_the_bound_of_its_devices_where_each_has_its_own(wording):
    assert faults(150.0, role="sum", per_device=True) == []
    wording(faults(201.0, role="sum", per_device=True))
    wording(faults(150.0, role="sum", per_device=False))


def test_a_bound_on_read_and_written_bytes_is_half_for_a_copy_counted_once():
    bound = acceptance.Bound(100.0, "derived", "a formula", bytes_counted="read+write")
    for value, counted, wrong in (
        (51.0, "once", True),
        (49.0, "once", False),
        (51.0, "read+write", False),
    ):
        series = of_device(0, value, bytes_counted=counted)
        said = document(series)
        figure = evaluate(said, Metric("m", COPY), {"device": [0]})
        assert len(list(acceptance.figure_faults(said, [figure], lambda one: bound))) == wrong


def test_a_unit_without_a_bound(wording):
    said = document(*THREE)
    figure = evaluate(said, Metric("m", COPY), {"device": [0]})
    wording(acceptance.figure_faults(said, [figure], lambda one: None))
    # As where a node model does not know a peak.
    assert not [*acceptance.figure_faults(said, [figure], lambda one: None, may_be_unknown=True)]


def cpu(folder, number, cache="32768K", shared="0-1", hertz="3700000"):
    for index, level, size in ((0, "1", "32K"), (3, "3", cache)):
        cache_folder = folder / f"cpu{number}" / "cache" / f"index{index}"
        cache_folder.mkdir(parents=True)
        (cache_folder / "level").write_text(f"{level}\n")
        (cache_folder / "size").write_text(f"{size}\n")
        (cache_folder / "shared_cpu_list").write_text(f"{shared}\n")
    (folder / f"cpu{number}" / "cpufreq").mkdir()
    (folder / f"cpu{number}" / "cpufreq" / "cpuinfo_max_freq").write_text(f"{hertz}\n")


def test_a_shared_cache_counts_once_and_each_cache_counts(tmp_path):
    cpu(tmp_path, 0)
    cpu(tmp_path, 1)
    assert last_level_cache_bytes(tmp_path) == 32 << 20
    assert host.array_bytes(tmp_path) == 128 << 20
    cpu(tmp_path, 2, shared="2-3")
    assert last_level_cache_bytes(tmp_path) == 64 << 20
    assert host.array_bytes(tmp_path) == 128 << 20
    cpu(tmp_path, 4, shared="4-5", cache=f"{66 << 10}K")
    assert host.array_bytes(tmp_path, cores=64) == 320 << 20  # twice 130 MiB, in steps of 64
    assert host.array_bytes(tmp_path, cores=4) == 256 << 20  # of a core 128 MiB, of both arrays


def test_arrays_of_large_caches_are_not_larger_than_needed(tmp_path):
    cpu(tmp_path, 0, cache=f"{260 << 10}K")
    assert host.array_bytes(tmp_path, cores=64) == 576 << 20
    assert host.scan_bytes(tmp_path, cores=64) == 1 << 30
    cpu(tmp_path, 1, shared="1", cache=f"{1152 << 10}K")
    assert host.array_bytes(tmp_path, cores=64) == host.PAST_ANY_CACHE // 2
    assert not host.arrays_fit_caches(tmp_path, cores=64)


def test_arrays_of_few_cores_are_bounded_by_time(tmp_path):
    cpu(tmp_path, 0, shared="0-1", cache=f"{480 << 10}K")
    assert host.array_bytes(tmp_path, cores=2) == 128 << 20
    assert host.arrays_fit_caches(tmp_path, cores=2)
    assert host.array_bytes(tmp_path, cores=16) == 960 << 20  # both: four times 480 MiB
    assert not host.arrays_fit_caches(tmp_path, cores=16)


def test_a_machine_that_hides_its_caches_and_frequency(tmp_path):
    cpu(tmp_path, 0, cache="unknown", hertz="unknown")
    assert last_level_cache_bytes(tmp_path) == 32 << 10
    assert last_level_cache_bytes(tmp_path / "none") == 0
    assert host.array_bytes(tmp_path / "none") == 128 << 20
    bound = host.memory_bound(tmp_path)
    assert bound["value"] == pytest.approx((os.cpu_count() or 1) * 192 * 6)
    assert "6 GHz, a frequency assumed because the system states none" in str(bound["how"])


def test_the_bound_takes_the_frequency_of_the_system(tmp_path):
    cpu(tmp_path, 0)
    bound = host.memory_bound(tmp_path)
    assert bound["value"] == pytest.approx((os.cpu_count() or 1) * 192 * 3.7)
    assert (bound["origin"], bound["bytes_counted"]) == ("derived", "read+write")
    assert str(bound["how"]).endswith("3.7 GHz")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = (", "bad.py cannot be read: SyntaxError"),
        ("import no_such", "bad.py cannot be read: ModuleNotFoundError: No module named"),
        ("site_configuration = 1", "bad.py must assign site_configuration, a mapping of lists"),
        (
            "site_configuration = {'systems': {}}",
            "bad.py must assign site_configuration, a mapping of",
        ),
        ("", "bad.py must assign site_configuration, a mapping of lists"),
    ],
)
def test_a_site_file_that_is_none_is_named(tmp_path, text, sentence):
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(InvalidInputError, match=sentence.replace(".", r"\.")):
        sites.gather(tmp_path)


def test_a_folder_without_sites(tmp_path):
    with pytest.raises(InvalidInputError, match="no site file with a system in"):
        sites.gather(tmp_path)


class OwnCheck(SimpleNamespace):
    """Stands in for a check of this suite, which is known by its module."""

    __module__ = "fabricheck.rfm.base"


def check_on(scheduler, name="a:x", tags=(), made=OwnCheck, runtime="host", repeats=""):
    return made(
        current_partition=SimpleNamespace(
            fullname=name, scheduler=SimpleNamespace(registered_name=scheduler)
        ),
        current_environ=SimpleNamespace(extras={"runtime": runtime}),
        tags=set(tags),
        repeats=repeats,
    )


def test_local_partitions_measure_one_after_the_other():
    host, gpu = check_on("local", "local:host"), check_on("local", "local:gpu")
    assert guard._waits(host, [gpu]) and guard._waits(host, [host])
    assert not guard._waits(host, []) and not guard._waits(host, [check_on("slurm")])


def test_simulated_checks_run_beside_each_other_and_never_beside_one_that_measures():
    host, simulated = check_on("local"), check_on("local", runtime="sim")
    assert not guard._waits(simulated, [simulated]) and not guard._waits(simulated, [])
    assert guard._waits(simulated, [simulated, host]) and guard._waits(host, [simulated])
    repeating = check_on("local", runtime="sim", repeats="stream_local")
    assert guard._waits(repeating, [simulated]) and not guard._waits(repeating, [])
    # A test of somebody else measures this host wherever it runs.
    plain = check_on("local", runtime="sim", made=SimpleNamespace)
    assert guard._waits(plain, [simulated]) and guard._waits(simulated, [plain])


def test_what_measures_this_machine_runs_before_simulated_nodes():
    def case(runtime, **check):
        environ = SimpleNamespace(extras={"runtime": runtime})
        return SimpleNamespace(check=OwnCheck(**check), environ=environ)

    first, again = case("sim", runs_first=True), case("host", repeats="stream_local")
    assert sorted([first, again], key=guard._turn) == [again, first]


def test_other_partitions_are_left_to_their_scheduler():
    assert not guard._waits(check_on("slurm"), [check_on("slurm", "a:y"), check_on("local")])


@pytest.mark.parametrize("simulated", [True, False])
def test_a_build_writes_the_platform_of_a_simulated_node_alone(simulated):
    """The programs that it built read the platform from where it is written."""
    check = mock.MagicMock(simulated=simulated, without_devices=False, ranks=0)
    check._started.return_value = [("stream", ())]
    BuildCheck._set_run(check)
    assert check._write_platform.called == simulated

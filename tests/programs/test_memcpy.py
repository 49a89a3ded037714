"""`memcpy`: its documents of copies between host and device, and how it ends on faults."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from pathlib import Path

import pytest

from fabricheck.results.document import load
from forbidden import forbid_memory_calls

#: Short, and never too noisy.
QUICK = ("--sizes", "64KiB", "--batch-time", "0.0001", "--warm-up", "0", "--series-time", "0",
         "--noise-limit", "10")  # fmt: skip
OPERATIONS = ("h2d", "d2h", "both", "h2d-sync", "d2h-sync", "h2d-latency", "d2h-latency")
ALL = ("--operations", ",".join(OPERATIONS))
MEMORY = {"pinned": "host-pinned", "pageable": "host-pageable"}

#: A machine of two packages with one core and one NUMA domain each, as hwloc describes it.
TOPOLOGY = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" gp_index="1" {machine}>{packages}
  </object>
</topology>
"""
PACKAGE = """
    <object type="Package" os_index="{domain}" gp_index="{package}" {sets}>
      <object type="NUMANode" os_index="{domain}" gp_index="{node}" {sets} local_memory="{memory}"/>
      <object type="PU" os_index="{core}" gp_index="{unit}" {sets}/>
    </object>"""


@pytest.fixture
def memcpy(run):
    return functools.partial(run, "memcpy")


def last_domain() -> int:
    """Return the highest NUMA domain that this machine has."""
    folders = Path("/sys/devices/system/node").glob("node[0-9]*")
    return max((int(folder.name[4:]) for folder in folders), default=0)


def sets(cores: list[int], domains: list[int]) -> str:
    mask, nodes = (hex(sum(1 << bit for bit in bits)) for bits in (cores, domains))
    return f'cpuset="{mask}" complete_cpuset="{mask}" nodeset="{nodes}" complete_nodeset="{nodes}"'


@pytest.fixture
def faked(tmp_path: Path):
    """Return variables by which hwloc sees domain 0, and one more that does not exist.

    Its memory is what the argument says; binding and asking for pages are this machine's own.
    """

    def make(memory: int) -> tuple[int, dict[str, str]]:
        cores = sorted(os.sched_getaffinity(0))[:2]
        if len(cores) < 2:
            pytest.skip("two packages need a core each, and one is open to this process")
        domains = [0, last_domain() + 1]
        packages = "".join(
            PACKAGE.format(
                domain=domain,
                core=core,
                sets=sets([core], [domain]),
                memory=size,
                package=10 + i,
                node=20 + i,
                unit=30 + i,
            )
            for i, (domain, core, size) in enumerate(
                zip(domains, cores, [1 << 30, memory], strict=True)
            )
        )
        whole = sets(cores, domains)
        allowed = whole.replace("complete_", "allowed_").split(" ")
        machine = f"{whole} {allowed[1]} {allowed[3]}"
        file = tmp_path / "topology.xml"
        file.write_text(TOPOLOGY.format(machine=machine, packages=packages))
        return domains[1], {"HWLOC_XMLFILE": str(file), "HWLOC_THISSYSTEM": "1"}

    return make


def host_and_device(series):
    """Return the place on the host and the one on the device."""
    to_device = series["source"]["memory"].startswith("host-")
    names = ("source", "destination") if to_device else ("destination", "source")
    return tuple(series[name] for name in names)


def size_of(operation):
    return "16 B" if operation.endswith("-latency") else "64 KiB"


def test_one_launch_gives_every_operation_for_every_device_and_kind_of_memory(memcpy):
    ran = memcpy(*QUICK, *ALL)
    assert ran.code == 0, ran.err
    document = load(ran.output)
    assert document["complete"]
    assert document["options"]["domains"] == "near"
    near = {device["index"]: device["numa_domain"] for device in document["devices"]}
    found = []
    for series in document["series"]:
        assert series["experiment"] == "E2"
        latency = series["operation"].endswith("-latency")
        assert (series["engine"], series["unit"]) == ("copy-engine", "us" if latency else "GB/s")
        assert not latency or series["bytes"] == 16
        assert series["bytes_counted"] == "once"
        assert series["stores"] is series["block_size"] is None
        assert series["verification"]["bytes_checked"] > 0
        host, device = host_and_device(series)
        if series["role"] == "sum":
            assert series["source"] == host
            assert series["device"] is host["device"] is device["device"] is None
            continue
        assert device["device"] == series["device"] == series["device_set"][0]
        assert host["numa_domain"] == near[series["device"]]
        assert device["numa_domain"] is None
        found.append((series["operation"], series["device"], host["memory"]))
    once = [name for name in OPERATIONS if name != "both"]
    for memory in MEMORY.values():
        for device in (0, 1):
            for operation in once:
                assert found.count((operation, device, memory)) == 1
            assert found.count(("both", device, memory)) == 2


def test_both_directions_are_shares_and_their_sum(memcpy):
    ran = memcpy(*QUICK, "--operations", "both", "--devices", "1")
    assert ran.code == 0, ran.err
    for first, memory in zip((0, 3), MEMORY.values(), strict=True):
        to_device, to_host, total = ran.series[first : first + 3]
        assert [one["role"] for one in (to_device, to_host, total)] == ["share", "share", "sum"]
        assert to_device["source"]["memory"] == to_host["destination"]["memory"] == memory
        assert to_device["destination"]["memory"] == to_host["source"]["memory"] == "device"
        assert total["bytes_moved"] == 2 * (64 << 10)
        assert total["source"]["memory"] == memory
        assert {one["direction"] for one in (to_device, to_host, total)} == {"both-ways"}


def test_which_clock_a_copy_is_timed_by(memcpy):
    ran = memcpy(*QUICK, *ALL, "--devices", "0")
    for series in ran.series:
        host, _ = host_and_device(series)
        by_events = host["memory"] == "host-pinned" and not series["operation"].endswith("-sync")
        # Of shares the whole is compared.
        assert (series["host_clock"] is not None) == (by_events and series["role"] != "share")


def test_one_launch_scans_sizes(memcpy):
    ran = memcpy("--sizes", "256:4KiB", "--devices", "1,0", "--memory", "pageable",
                 "--operations", "d2h,h2d", *QUICK[2:])  # fmt: skip
    assert ran.code == 0, ran.err
    keys = [(one["device"], one["operation"], one["bytes"]) for one in ran.series]
    sizes = [256, 512, 1024, 2048, 4096]
    assert keys == [(d, name, size) for d in (1, 0) for name in ("d2h", "h2d") for size in sizes]


def test_where_memory_lies_for_which_no_domain_is_asked(memcpy):
    ran = memcpy(*QUICK, "--domains", "any", "--operations", "h2d,d2h")
    assert ran.code == 0, ran.err
    assert {one["experiment"] for one in ran.series} == {"E2"}
    assert all(host_and_device(one)[0]["numa_domain"] is not None for one in ran.series)
    notes = [note for note in load(ran.output)["notes"] if "without a policy" in note]
    for memory in ("host-pinned", "host-pageable"):
        for device in (0, 1):
            said = f"{memory} memory without a policy, with device {device} as the current one, has"
            (note,) = (note for note in notes if note.startswith(said))
            assert ", and the " in note


def test_every_domain_gives_series_of_e4(memcpy):
    ran = memcpy(*QUICK, "--domains", "each", "--memory", "pinned", "--operations", "h2d,both")
    assert ran.code == 0, ran.err
    series = ran.series
    assert {one["experiment"] for one in series} == {"E4"}
    assert all(host_and_device(one)[0]["numa_domain"] is not None for one in series)


def test_people_get_a_line_for_each_series(memcpy):
    ran = memcpy(*QUICK, "--devices", "0", "--memory", "pageable", "--operations", "d2h")
    domain = ran.series[0]["destination"]["numa_domain"]
    assert f"device 0 -> host-pageable NUMA {domain}" in ran.err
    assert "verified" in ran.err


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_flipped_bit_is_found_where_the_destination_lies(memcpy, operation, memory):
    ran = memcpy(*QUICK, "--devices", "1", "--operations", operation, "--memory", memory,
                 "--inject-fault", "flip-bit:8:3")  # fmt: skip
    assert ran.code == 5
    for series in ran.series:
        if series["role"] == "sum":
            continue
        mismatch = series["verification"]["first_mismatch"]
        assert mismatch["device"] == series["destination"]["device"]
        assert mismatch["offset_bytes"] == 8
        assert int(mismatch["expected"], 16) ^ int(mismatch["found"], 16) == 1 << 3
    side = "to" if operation.startswith("d2h") else "from"
    assert (
        f"{operation} of {size_of(operation)} on device 1 {side} {MEMORY[memory]} memory"
        in ran.sentence
    )


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_destination_that_is_never_written_is_found(memcpy, operation, memory):
    ran = memcpy(*QUICK, "--devices", "0", "--operations", operation, "--memory", memory,
                 "--inject-fault", "unwritten")  # fmt: skip
    ran.found_nothing_written()


@pytest.mark.parametrize("memory", MEMORY)
def test_pages_on_another_domain_than_asked_end_the_run(memcpy, faked, memory):
    domain, variables = faked(memory=1 << 30)
    ran = memcpy(*QUICK, "--domains", str(domain), "--memory", memory, **variables)
    assert ran.code == 8
    found = re.fullmatch(
        f"memcpy: h2d of 64 KiB between {MEMORY[memory]} memory of NUMA domain {domain} and "
        f"device 0: host memory was asked for on NUMA domain {domain}, but its pages are on domain "
        r"(\d+), and the system does not tell what is free there",
        ran.sentence,
    )
    assert 0 <= int(found[1]) < domain
    document = load(ran.output)
    assert not document["complete"]
    assert not document["series"]


def test_what_other_domains_measured_is_kept(memcpy, faked):
    _, variables = faked(memory=1 << 30)
    ran = memcpy(*QUICK, "--domains", "each", "--memory", "pageable", **variables)
    assert ran.code == 8
    assert {host_and_device(one)[0]["numa_domain"] for one in ran.series} == {0}


def test_a_domain_without_memory_is_left_out_with_a_note(memcpy, faked):
    domain, variables = faked(memory=0)
    ran = memcpy(*QUICK, "--domains", "each", "--operations", "h2d", **variables)
    assert ran.code == 0, ran.err
    document = load(ran.output)
    assert f"NUMA domain {domain} has no memory: it is not measured" in document["notes"]
    assert {one["source"]["numa_domain"] for one in document["series"]} == {0}


def test_a_domain_without_memory_that_is_asked_for_ends_the_run(memcpy, faked):
    domain, variables = faked(memory=0)
    ran = memcpy(*QUICK, "--domains", f"0,{domain}", **variables)
    assert ran.code == 3
    assert ran.sentence == f"memcpy: NUMA domain {domain} has no memory"


def test_a_host_where_threads_can_not_be_bound_is_an_error(memcpy):
    # A topology that is not this machine's: hwloc then says yes, and does nothing.
    ran = memcpy(*QUICK, "--domains", "1", HWLOC_SYNTHETIC="numa:2 pu:1")
    assert ran.code == 4
    assert ran.sentence.endswith("cannot be bound to the cores of NUMA domain 1")


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["--devices", "7"], 3, ["device 7 does not exist: the runtime has 2, 0 to 1"]),
        (["--devices", "0,0"], 2, ["names device 0 twice"]),
        (["--domains", "4711"], 3, ["NUMA domain 4711 does not exist: the host has 0"]),
        (["--domains", "far"], 2, ["the NUMA domain 'far' is not a whole number"]),
        (["--domains", "0,0"], 2, ["names 0 twice"]),
        (["--memory", "managed"], 2, ["'managed' is not a kind of host memory", "pageable"]),
        (["--operations", "h2d,dma"], 2, ["'dma' is not an operation", "h2d-sync"]),
        (["--sizes", "24"], 2, ["24 B is not a multiple of 16 B"]),
        (["--sizes", "100TiB"], 3, ["h2d of 100 TiB between host-pinned memory", "the host has",
                                    "100 TiB more page-locked are needed"]),
        (["--sizes", "100TiB", "--memory", "pageable"], 3, ["100 TiB more are needed"]),
        (["--inject-fault", "pages-on:x"], 2, ["the NUMA domain 'x' is not a whole number"]),
        (["--inject-fault", "page-on:1"], 2, ["is not a fault", "pages-on:DOMAIN, device-error"]),
        (["--inject-fault", "pages-on:0", "--domains", "0"], 2, ["needs another NUMA domain"]),
        (["--inject-fault", "pages-on:4711"], 8, ["NUMA domain 4711 is not open"]),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence_and_its_exit_code(memcpy, arguments, code, parts):
    ran = memcpy(*arguments)
    ran.refused(code, parts)
    assert ran.output.exists()


def test_other_programs_have_no_pages_to_put_elsewhere(programs, tmp_path):
    command = [str(programs / "stream"), "--inject-fault", "pages-on:1", "--output",
               str(tmp_path / "result.json")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2
    assert (
        "'pages-on:1' is not a fault: write flip-bit:OFFSET:BIT, unwritten, device-error"
        in done.stderr
    )


def test_help_explains_itself(programs):
    done = subprocess.run(
        [str(programs / "memcpy"), "--help"], capture_output=True, text=True, check=True
    )
    for word in ("--domains", "--memory", "h2d-sync", "pageable", "near", "pages-on", "Exit codes",
                 "Example", "GB/s"):  # fmt: skip
        assert word in done.stdout


FORBIDDEN = (
    "the system does not say where pages are (move_pages: Operation not permitted): the NUMA "
    "domains of host memory are asked for, and not proved; a container needs a profile that allows "
    "move_pages, get_mempolicy and set_mempolicy"
)


def test_where_nothing_says_where_pages_are_a_run_goes_on_with_a_note(run):
    ran = run("memcpy", *QUICK, preexec_fn=forbid_memory_calls)
    assert ran.code == 0, ran.err
    assert FORBIDDEN in load(ran.output)["notes"]
    for series in ran.series:
        assert series["source"]["numa_domain"] is series["destination"]["numa_domain"] is None


@pytest.mark.parametrize("domains", ["0", "each"])
def test_domains_that_nothing_proves_are_not_measured(run, domains):
    ran = run("memcpy", *QUICK, "--domains", domains, preexec_fn=forbid_memory_calls)
    assert ran.code == 8
    assert ran.sentence == f"memcpy: --domains {domains} cannot be measured: {FORBIDDEN}"
    assert load(ran.output)["outcome"]["status"] == "setting"

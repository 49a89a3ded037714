"""The faults that the suite is tested against, and what must be said of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proof.faults import files
from proof.faults.rows import DATA, HW, INCOMPLETE, PASS, PERF, UNSTABLE, Made, Must, Row
from proof.faults.sessions import HOST, Session, Site
from proof.faults.soaks import OverHours
from session_builder import crashed_node, of_many, refused_node, slow_node, sound_node


def resource(*names: str, **effect: Any) -> dict[str, Any]:
    """Return an overlay of one change of resources."""
    return {"resources": [{"names": list(names), **effect}]}


def slow(*names: str, factor: float, **more: Any) -> dict[str, Any]:
    """Return an overlay that leaves resources a part of their bandwidth."""
    return resource(*names, bandwidth_factor=factor, **more)


def link(a: int, b: int) -> tuple[str, str]:
    """Return the names of the two directions of a link."""
    return f"link {a}-{b}", f"link {b}-{a}"


MIB = 1 << 20

#: Another document than the program left, as where a launcher did something else.
EDIT = """"$real" "$@"; python3 -c "import json
d = json.load(open('result.json')); {}
json.dump(d, open('result.json', 'w'))"\n"""


#: An operation whose times are so many times longer.
SLOWER = """
for s in d['series']:
    if s['operation'] == '{0}':
        s.update(samples=[{1} * one for one in s['samples']], median={1} * s['median'])"""


def injected(fault: str) -> str:
    """Return the script that has a program make a fault, or one of all that smpirun starts."""
    return f'exec "$real" "$@" --inject-fault {fault}'


def sooner(fault: str = "") -> str:
    """Return the script that lets a program end at a time limit of 3 s, with a fault in it."""
    return (
        f'exec "$real" $(echo "$@" | sed "s/--time-limit [0-9]*/--time-limit 3/") {fault}'.strip()
    )


LINKS = (
    Row(1, "a quad link at half width, both ways", "S",
        Session(["p2p_kernel"], ["stream_local"], slow(*link(0, 1), factor=0.5)),
        Must(PERF, ["0-1"], diagnosis="link 0-1"), quick=True),
    Row(2, "a dual link at half width, both ways", "S",
        Session(["p2p_kernel"], ["stream_local"], slow(*link(0, 6), factor=0.5)),
        Must(PERF, ["0-6"], diagnosis="link 0-6")),
    Row(3, "a single link at half width, both ways", "S",
        Session(["p2p_kernel"], ["stream_local"], slow(*link(0, 2), factor=0.5)),
        Must(PERF, ["0-2"], diagnosis="link 0-2")),
    Row(4, "a link 10 % slow in one direction", "S",
        Session(["p2p_kernel"], ["stream_local"], slow("link 0-6", factor=0.9)),
        Must(PERF, ["0-6"], without=["6-0"], diagnosis="link 0-6, one direction")),
    Row(5, "a link gone", "S",
        Session(["node_topology", "p2p_engine"], ["stream_local"],
                {"links": [{"pair": [0, 6], "gone": True}]}),
        Must(HW, ["0-6"], diagnosis="link 0-6 gone")),
    Row(6, "cables of two packages swapped", "S",
        Session(["node_topology"], ["stream_local"],
                {"remap_links": [0, 1, 4, 5, 2, 3, 6, 7]}),
        Must(HW, ["0-2"], diagnosis="cables of packages 2, 3 and 4, 5 exchanged")),
    Row(7, "latency of one pair doubled", "S",
        Session(["p2p_engine"], ["p2p_kernel"],
                resource("copy engine of copies device0-device6", delay_us=10.74)),
        Must(PERF, ["0-6"], without=["6-0"], diagnosis="latency of copies 0-6")),
    Row(8, "bandwidth of one pair collapses at 1 to 16 MiB only", "S",
        Session(["p2p_small"], ["p2p_kernel"],
                slow(*link(0, 6), factor=0.1, bytes=[MIB, 16 * MIB])),
        Must(PERF, ["0-6"], diagnosis="link 0-6")),
    Row(8, "the same, where messages of such a size are judged", "S",
        Session(["mpi_pairs", "mpi_collectives", "p2p_kernel", "p2p_engine"], ["stream_local"],
                slow(*link(0, 6), factor=0.1, bytes=[MIB, 16 * MIB])),
        Must(PERF, ["0-6"], diagnosis="link 0-6")),
    Row(9, "the copy engines of a device at half their rate", "S",
        Session(["p2p_engine"], ["p2p_kernel"],
                slow("copy engine of copies device3-*", factor=0.5)),
        Must(PERF, ["3-2"], diagnosis="copies from device 3")),
    Row(10, "both directions of a pair take turns", "S",
        Session(["p2p_engine", "p2p_kernel"], ["stream_local"],
                resource(*link(0, 6), take_turns=True)),
        Must(PERF, ["0-6"], diagnosis="turns of both directions of link 0-6")),
    Row(11, "engines switched off by the node's environment", "S",
        Session(["p2p_engine"], ["p2p_kernel"],
                wrapped={"p2p": 'HSA_ENABLE_SDMA=0 exec "$real" "$@"'}),
        Must(INCOMPLETE, ["HSA_ENABLE_SDMA"]), quick=True),
    Row(11, "compute units masked by the node's environment", "S",
        Session(["p2p_kernel"], ["p2p_engine"],
                wrapped={"p2p": 'HSA_CU_MASK=0-7:0-15 exec "$real" "$@"'}),
        Must(INCOMPLETE, ["HSA_CU_MASK", "compute units"])),
    Row(11, "links taken from messages by the node's environment", "S",
        Session(["mpi_pairs"], ["p2p_kernel"],
                wrapped={"smpirun": 'UCX_TLS=rc,sm exec "$real" "$@"'}),
        Must(INCOMPLETE, ["UCX_TLS", "links"])),
    Row(12, "an engine that hangs", "S",
        Session(["p2p_engine"], ["stream_local"],
                resource("copy engine of copies device0-device6", hangs=True),
                wrapped={"p2p": sooner()}),
        Must(INCOMPLETE, ["time limit", "engine", "device 0 to 6"])),
)  # fmt: skip

#: What a session measures first, and again at its end.
AGAIN = ("stream_local", "stream_again", "p2p_kernel", "p2p_again")

#: What only small copies, several transfers of a device at once, or the end of a session show.
SMALL = (
    Row(65, "copies from the host to one device start 20 us later", "S",
        Session(["memcpy_small"], ["memcpy_near"], resource("host link to device5", delay_us=20)),
        Must(PERF, ["device 5"], diagnosis="latency of host copies to device 5")),
    Row(66, "bandwidth of host copies of one device collapses below 1 MiB only", "S",
        Session(["memcpy_small"], ["memcpy_near"],
                slow("host link * device5", factor=0.1, bytes=[4 << 10, MIB - 1])),
        Must(PERF, ["device 5"], diagnosis="host link of device 5")),
    Row(67, "bandwidth of one pair collapses below 1 MiB only", "S",
        Session(["p2p_small"], ["p2p_engine"],
                slow(*link(0, 6), factor=0.1, bytes=[4 << 10, MIB - 1])),
        Must(PERF, ["0-6"], diagnosis="link 0-6")),
    Row(68, "what a device sends to several others at once has the rate of one link", "S",
        Session(["p2p_one_to_many"], ["p2p_kernel", "p2p_engine"],
                resource("link 3-2", "link 3-1", "link 3-7", take_turns=True)),
        Must(PERF, ["3-2"], diagnosis="transfers at once from device 3")),
    Row(68, "what several devices send to one at once has the rate of one link", "S",
        Session(["p2p_one_to_many"], ["p2p_kernel", "p2p_engine"],
                resource("link 2-3", "link 1-3", "link 7-3", take_turns=True)),
        Must(PERF, ["2-3"], diagnosis="transfers at once to device 3")),
    Row(69, "memory of one device becomes 30 % slow while the session runs", "S",
        Session(["stream_again"], ["stream_local"], slow("memory of device3", factor=0.7),
                during=["stream_again"]),
        Must(PERF, ["device 3"], diagnosis="HBM of device 3"), quick=True),
    Row(69, "host link of one device becomes 30 % slow while the session runs", "S",
        Session(["memcpy_again"], ["memcpy_near", *AGAIN], slow("host link * device5", factor=0.7),
                during=["memcpy_again"]),
        Must(PERF, ["device 5"], diagnosis="host link of device 5")),
    Row(69, "a link becomes 50 % slow while the session runs", "S",
        Session(["p2p_again"], ["p2p_kernel"], slow(*link(0, 6), factor=0.5),
                during=["p2p_again"]),
        Must(PERF, ["0-6"], diagnosis="link 0-6")),
)  # fmt: skip

MEMORY = (
    *(
        Row(13, f"memory of one device {percent} % slow", "S",
            Session(["stream_local"], ["p2p_kernel"],
                    slow("memory of device3", factor=1 - percent / 100)),
            Must(PERF, ["device 3"], diagnosis="HBM of device 3"), quick=percent == 8)
        for percent in (5, 8, 15)
    ),
    Row(14, "a device 10 % slow in everything", "S",
        Session(["stream_local", "p2p_kernel", "memcpy_near"], ["node_topology"],
                slow("*device4*", "link 4-*", "link *-4", factor=0.9)),
        Must(PERF, ["device 4"], diagnosis="device 4")),
    Row(15, "host link of one device 10 % slow, one way", "S",
        Session(["memcpy_near"], ["stream_local"], slow("host link to device5", factor=0.9)),
        Must(PERF, ["device 5"], diagnosis="host link to device 5")),
    Row(15, "host link of one device 10 % slow, both ways", "S",
        Session(["memcpy_near"], ["stream_local"],
                slow("host link * device5", factor=0.9)),
        Must(PERF, ["device 5"], diagnosis="host link of device 5")),
    *(
        Row(16, f"a NUMA domain with {percent} % of its DDR", "S",
            Session(["memcpy_numa", "stream_concurrent"], ["stream_local"],
                    slow("memory of domain1", factor=percent / 100)),
            Must(PERF, ["NUMA domain 1"], diagnosis="DDR of NUMA domain 1"))
        for percent in (50, 80)
    ),
    Row(17, "NUMA map rotated", "S",
        Session(["node_topology"], ["stream_local"], {"rotate_numa": 1}),
        Must(HW, ["device 0"], diagnosis="NUMA domains rotated by 1")),
    Row(20, "pageable copies of one device 20 % slow", "S",
        Session(["memcpy_near_pageable"], ["memcpy_near"],
                slow("pageable copies * device3", factor=0.8)),
        Must(PERF, ["device 3"], diagnosis="pageable copies of device 3")),
    Row(20, "the same, by the limits of documents", "S",
        Made("the same overlay, judged by the references of LUMI",
             lambda folder: Session(["memcpy_near_pageable", "memcpy_near"], overlay=slow(
                 "pageable copies * device3", factor=0.8))(folder, Site("lumi"))),
        Must(PERF, ["device 3"], diagnosis="pageable copies of device 3")),
)  # fmt: skip

RANKS = (
    Row(21, "the launcher ignores the binding", "L",
        Session(["affinity"], ["stream_local"],
                wrapped={"smpirun": EDIT.format(
                    "d['ranks'][0].update(cores=[1], numa_domain=0, memory_domain=0)")}),
        Must(INCOMPLETE, ["rank 0"])),
    Row(22, "two ranks on one device", "L",
        Session(["affinity"], ["stream_local"],
                wrapped={"smpirun": EDIT.format("d['ranks'][1]['device'] = 0")}),
        Must(INCOMPLETE, ["rank 1", "device 0"])),
    Row(23, "MPI stages device messages through the host", "L",
        Session(["mpi_pairs"], ["p2p_engine"], variables={"FABRICHECK_SIM_MESSAGE_GBS": "0.3"}),
        Must(INCOMPLETE, ["MPICH_GPU_SUPPORT_ENABLED"])),
    Row(24, "MPI without GPU support: it crashes at buffers of devices", "H",
        Made("`mpi_trial.json`, recorded on two H200",
             lambda folder: files.recorded(folder, "two-devices-mpi/mpi_trial", 3)),
        Must(INCOMPLETE, ["MPI crashed on device buffers", "--buffers host"])),
    Row(25, "OSU built without ROCm", "L",
        Made("what such an OSU printed, as recorded", files.osu_without_rocm),
        Must(INCOMPLETE, ["osu_bw", "was built without support for rocm"]), quick=True),
    Row(26, "messages of collectives at 15 % of their links", "S",
        Session(["mpi_collectives"], ["mpi_pairs"],
                slow("copy engine of messages *", factor=0.15, bytes=[MIB, MIB])),
        Must(PERF, ["mpi_collectives", "reduce_2", "devices 0"],
             diagnosis="collectives of MPI")),
    Row(26, "all-reduce 3 times slower than it is", "L",
        Session(["mpi_collectives"], ["mpi_pairs"],
                wrapped={"smpirun": EDIT.format(SLOWER.format("allreduce", 3))}),
        Must(PERF, ["mpi_collectives", "allreduce_8", "devices 0"],
             diagnosis="allreduce of MPI")),
    Row(27, "one rank slow", "S",
        Session(["mpi_pairs", "mpi_collectives"], ["p2p_kernel"],
                slow("copy engine of messages *device3*", factor=0.3)),
        Must(PERF, ["3-2"], diagnosis="messages of device 3")),
)  # fmt: skip

WRONG = (
    Row(28, "one bit wrong in peer reads, writes and kernel copies", "P",
        Session(["p2p_kernel"], ["stream_local"], wrapped={"p2p": injected("flip-bit:4096:3")}),
        Must(DATA, ["p2p_kernel", "device 1", "offset 4096"]), quick=True),
    Row(28, "one bit wrong in copy-engine transfers, peer reads and writes", "H",
        Made("`p2p_flip.json`, recorded on two H200",
             lambda folder: files.recorded(folder, "faults-x2/p2p_flip", 5)),
        Must(DATA, ["device 1", "offset 4096"])),
    Row(29, "one bit wrong in an engine copy", "P",
        Session(["p2p_engine"], ["stream_local"], wrapped={"p2p": injected("flip-bit:8:60")}),
        Must(DATA, ["engine", "device 1", "offset 8"])),
    Row(30, "one bit wrong in a message", "P",
        Session(["mpi_data"], ["p2p_kernel"],
                wrapped={"smpirun": injected("rank:1:flip-bit:0:3")}),
        Must(DATA, ["exchange", "device 1", "offset 0"])),
    Row(31, "one bit wrong in collectives, all-reduce among them, on one rank", "P",
        Session(["mpi_collectives"], ["p2p_kernel"],
                wrapped={"smpirun": injected("rank:3:flip-bit:4096:3")}),
        Must(DATA, ["device 3", "offset 4096"])),
    Row(32, "one bit wrong at large sizes only", "P",
        Session(["mpi_data"], ["p2p_kernel"],
                wrapped={"smpirun": injected("rank:1:flip-bit:1000000:3")}),
        Must(DATA, ["262147", "device 1", "offset 1000000"])),
    Row(33, "destination never written", "P",
        Session(["p2p_kernel"], ["stream_local"], wrapped={"p2p": injected("unwritten")}),
        Must(DATA, ["device 1", "offset 0"])),
    Row(33, "destination never written", "H",
        Made("`p2p_unwritten.json`, recorded on two H200",
             lambda folder: files.recorded(folder, "faults-x2/p2p_unwritten", 5)),
        Must(DATA, ["device 1", "offset 0"])),
)  # fmt: skip

STAND_IN = {"stream": 'exec python "$tests/rfm/fake_stream.py" "$@"'}

STATE = (
    Row(18, "NUMA balancing on", "L",
        Made("a description by `inventory` with the kernel's switch", files.numa_balancing),
        Must(INCOMPLETE, ["numa_balancing", "kernel.numa_balancing=0"]), quick=True),
    Row(19, "pages on another domain than asked", "P",
        Session(["memcpy_near"], ["stream_local"], wrapped={"memcpy": injected("pages-on:0")}),
        Must(INCOMPLETE, ["on domain 0", "free there"])),
    Row(34, "a device missing", "L",
        Session(["stream_local"], system=HOST, wrapped=STAND_IN,
                variables={"FAKE_STREAM": "device-missing", "FABRICHECK_MPI": "OFF"}),
        Must(HW, ["1 device", "the partition states 2"])),
    Row(35, "devices in another order", "L",
        Made("a description by `inventory` with another order, and a model without PCI addresses",
             files.other_order),
        Must(HW, ["0-1"])),
    Row(36, "another process on a device", "F",
        Made("the state of a node in a document", files.another_process),
        Must(UNSTABLE, ["process 4711", "copy_loop", "device 0"]), quick=True),
    Row(37, "the host's cores busy", "F",
        Made("the state of a node in a document", files.busy_host),
        Must(UNSTABLE, ["15.8 of 16 cores", "bash"]), quick=True),
    Row(37, "few of the host's cores open to the session", "F",
        Made("the cores and the state of a node in a document", files.few_cores),
        Must(INCOMPLETE, ["16 cores", "could use 4"]), quick=True),
    Row(38, "new uncorrected memory errors during a run", "F",
        Made("counters in a document of a run that passed", files.uncorrected),
        Must(HW, ["device 0", "2 new uncorrected memory errors"], drained=["node1"]), quick=True),
    Row(38, "an xGMI link that counts new uncorrected errors", "F",
        Made("counters in a document of a run that passed",
             lambda folder: files.link_errors(folder, "xgmi-uncorrected", "all")),
        Must(HW, ["device 0", "2 new uncorrected xGMI errors"], drained=["node1"]), quick=True),
    Row(38, "an NVLink of Blackwell whose recovery failed", "F",
        Made("counters in a document of a run that passed",
             lambda folder: files.link_errors(folder, "nvlink-recovery-failed", "4")),
        Must(HW, ["device 0", "failed NVLink recovery events on link 4"], drained=["node1"])),
    Row(39, "throttling of a device that is slow", "F",
        Made("counters in a document", files.throttled),
        Must(PERF, ["device 0", "throttled by power"]), quick=True),
    Row(39, "PCIe replays beside a pass", "F",
        Made("counters in a document of a run that passed", files.replays),
        Must(PASS, ["device 0", "PCIe replays"])),
    Row(39, "NVLink replays beside a pass", "F",
        Made("counters in a document of a run that passed",
             lambda folder: files.link_errors(folder, "nvlink-replay", "4")),
        Must(PASS, ["device 0", "2 new NVLink replays on link 4"]), quick=True),
)  # fmt: skip

ENDS = (
    Row(40, "a rank hangs", "P",
        Session(["affinity"], ["mpi_data"],
                wrapped={"affinity": sooner("--inject-fault rank:1:hang")}, system=HOST),
        Must(INCOMPLETE, ["time limit", "rank 1"])),
    Row(40, "a program hangs", "S",
        Session(["stream_local"], ["node_topology"],
                resource("memory of device3", hangs=True, bytes=[256 * MIB, 1 << 40]),
                wrapped={"stream": sooner()}),
        Must(INCOMPLETE, ["time limit", "device 3"])),
    Row(41, "a rank dies", "P",
        Session(["affinity"], ["mpi_data"], wrapped={"affinity": injected("rank:1:die")},
                system=HOST),
        Must(INCOMPLETE, ["affinity"])),
    Row(41, "a program dies", "L",
        Session(["stream_local"], ["p2p_kernel"], wrapped={"stream": "kill -SEGV $$"}),
        Must(INCOMPLETE, ["stream", "signal 11"])),
    Row(42, "a document cut at every byte", "F",
        Made("a document that ends after each of its bytes", files.cut_at_every_byte),
        Must(INCOMPLETE, ["0 of"])),
    Row(43, "the disk is full", "F",
        Made("`stream --output /dev/full`", files.full_disk),
        Must(INCOMPLETE, ["/dev/full", "4 series"])),
    Row(44, "the clock jumps back", "L",
        Session(["stream_local"], system=HOST, wrapped=STAND_IN,
                variables={"FAKE_STREAM": "stale", "FABRICHECK_MPI": "OFF"}),
        Must(INCOMPLETE, ["the node's clock is wrong"])),
    Row(44, "the host's clock runs at another rate than the device's", "L",
        Session(["stream_local"], system=HOST, wrapped=STAND_IN,
                variables={"FAKE_STREAM": "clocks-differ", "FABRICHECK_MPI": "OFF"}),
        Must(INCOMPLETE, ["host's clock"])),
    Row(45, "the session is killed", "F",
        Made("SIGKILL to a session and all it started, before its first, second and third "
             "document", files.killed),
        Must(INCOMPLETE, ["0 of the finished documents are lost"])),
)  # fmt: skip

FLEET = (
    Row(46, "another version of a library than the lock's", "F",
        Made("the MPI in a document", files.other_library),
        Must([*INCOMPLETE, *PASS], ["MPICH 3.0"]),
        not_yet="versions at run time are not compared with the lock"),
    Row(47, "another driver than the other nodes", "F",
        Made("documents of eight nodes", files.other_driver),
        Must(PASS, ["driver", "node5", "570.86.15"]), quick=True),
    Row(48, "a node 3 % slow among 100", "F",
        Made("documents of 100 nodes", files.slow_among_100), Must(PERF, ["node42"]),
        not_yet="nodes are not compared in what they measured"),
    Row(49, "a metric that falls 1 % a week", "F",
        Made("documents of eight weeks", files.falling), Must(PERF, ["1 %", "week"]),
        not_yet="no session is compared with those of the weeks before"),
)  # fmt: skip

TIME = (
    Row(50, "slow the first time only", "S",
        Session(overlay=resource("memory of device3", "copy engine of copies device0-*",
                                 delay_us=100000, first=1)),
        Must(PASS)),
    Row(50, "slow in a part of its samples", "H",
        Made("`memcpy_at_times.json`, recorded on two H200", files.at_times),
        Must(UNSTABLE, ["device 0", "4 of 17 samples"])),
    Row(51, "too noisy", "S",
        Session(["p2p_engine"], ["node_topology"], variables={"FABRICHECK_SIM_NOISE": "0.5"}),
        Must(UNSTABLE, ["p2p"])),
)  # fmt: skip

#: What is hardware, and what only looks so.
EVIDENCE = (
    Row(52, "PCIe x8 of x16 under load", "F",
        Made("the state of a device in a document of a run that passed", files.narrow),
        Must(HW, ["device 0", "8 of 16 lanes"], drained=["node1"]), quick=True),
    Row(53, "seven of eight devices", "F",
        Made("a document of `topology`", files.one_of_seven),
        Must(HW, ["8 amd devices", "7 amd devices"], drained=["node1"])),
    Row(54, "a link trained at half its width on a new system", "F",
        Made("two sessions of four nodes without a calibration", files.half_width),
        Must(PERF, ["engine_alike"], drained=["node1"]), quick=True),
    Row(55, "a program that crashes twice on one of many nodes", "F",
        Made("two sessions of twenty nodes",
             lambda folder: files.over_nodes(folder, *2 * [of_many(crashed_node())])),
        Must(HW, ["passed on 19 other nodes"], drained=["node1"]), quick=True),
    Row(55, "a program that crashes once", "F",
        Made("a session of twenty nodes",
             lambda folder: files.over_nodes(folder, of_many(crashed_node()))),
        Must(INCOMPLETE, ["signal 11"])),
    Row(56, "a partition of one node that misses its limits", "F",
        Made("two sessions of one node",
             lambda folder: files.over_nodes(folder, *2 * [of_many(slow_node(), 1)])),
        Must(PERF, ["copy_worst"])),
    Row(57, "a rolling update of a driver over forty nodes", "F",
        Made("two sessions; twenty nodes have the new driver, and are slow",
             lambda folder: files.over_nodes(folder, *2 * [
                 {f"node{n}": slow_node("7.0") if n <= 20 else sound_node()
                  for n in range(1, 41)}])),
        Must(PERF, ["Software and settings first: all 20 nodes"]), quick=True),
    Row(58, "a new system on which nothing ever passed", "F",
        Made("two sessions of eight nodes of which each has a call of the runtime refused",
             lambda folder: files.over_nodes(folder, *2 * [
                 {f"node{n}": refused_node()
                  for n in range(1, 9)}])),
        Must(INCOMPLETE, ["Software and settings first: all 8 nodes"])),
    Row(59, "H100 in a partition of H200", "F",
        Made("the devices of a document",
             lambda folder: files.other_kind(folder, name="NVIDIA H100 80GB HBM3",
                                             memory_bytes=85017493504)),
        Must(INCOMPLETE, ["NVIDIA H100 80GB HBM3", "NVIDIA H200"]), quick=True),
    Row(60, "a GPU in MIG", "F",
        Made("the state of a device in a document", files.divided),
        Must(INCOMPLETE, ["MIG", "nvidia-smi -mig 0"])),
    Row(61, "a folder of programs of another runtime", "L",
        Session(["stream_local"],
                wrapped={"stream": "exec $tests/../build/host/bin/stream \"$@\""}),
        Must(INCOMPLETE, ["runtime host"])),
    Row(62, "a GPU is lost in mid-run", "F",
        Made("what PCI showed before, and after the program was aborted",
             lambda folder: files.aborted(folder, {}, pci_functions=[])),
        Must(HW, ["0000:41:00.0", "left the bus"], drained=["node1"]), quick=True),
    Row(63, "an abort with a count of uncorrected errors", "F",
        Made("counters that another process read after the abort",
             lambda folder: files.aborted(
                 folder, {"memory_errors": {"corrected": 0, "uncorrected": 1}})),
        Must(HW, ["device 0", "1 new uncorrected memory error"], drained=["node1"])),
    Row(63, "an abort that ROCr calls an ECC error", "F",
        Made("the last words of ROCr in a document",
             lambda folder: files.aborted(folder, {}, runtime_log=[
                 {"kind": "hardware", "pci_address": None,
                  "text": "HW Exception by GPU node-4 (Agent handle: 0x5) reason :ECC"}])),
        Must(HW, ["HW Exception", "ECC"], drained=["node1"])),
    Row(63, "an abort without a count, once", "F",
        Made("a document of a program that was aborted",
             lambda folder: files.aborted(folder, {}, runtime_log=[
                 {"kind": "unclear", "pci_address": None,
                  "text": "HW Exception by GPU node-4 (Agent handle: 0x5) reason :GPU Hang"}])),
        Must(INCOMPLETE, ["signal 6"])),
    Row(64, "a control group closes a device", "F",
        Made("what PCI shows, and the file of a device that is closed", files.closed),
        Must(INCOMPLETE, ["0000:42:00.0", "control group"]), quick=True),
)  # fmt: skip

#: What only hours of load show, by the clock of the simulated node.
HOURS = (
    Row(70, "memory of one device loses 5 % in ten hours", "S",
        OverHours(slow("memory of device3", factor=0.95, when={"grows_h": 10}), minutes=30),
        Must(PERF, ["drift", "copy 3"])),
    Row(71, "a link that flaps: 12 minutes of each two hours", "S",
        OverHours(slow(*link(0, 6), factor=0.1,
                       when={"begins_h": 1, "every_h": 2, "lasts_h": 0.2}), minutes=30),
        Must(UNSTABLE, ["comes-and-goes", "0-6"])),
    Row(72, "a device that heat throttles after 20 minutes", "S",
        OverHours({**slow("memory of device5", factor=0.7, when={"begins_h": 0.3333}),
                   "devices": [{"device": 5, "throttled": "thermal",
                                "when": {"begins_h": 0.3333}}]}),
        Must(PERF, ["copy 5"])),
    Row(73, "one wrong bit in ten hours", "S",
        OverHours({"devices": [{"device": 2,
                                "flip": {"at_h": 4.3, "offset_bytes": 8192, "bit": 17}}]}),
        Must(DATA, ["wrong-data", "copy 2", "byte 8192", "bits 17"])),
    Row(74, "PCIe packets sent again 20 times a minute", "S",
        OverHours({"devices": [{"device": 1, "replays": 1200}]}),
        Must(UNSTABLE, ["counters", "PCIe replay", "device 1"])),
    Row(75, "uncorrected memory errors from the sixth hour on", "S",
        OverHours({"devices": [{"device": 4, "uncorrected": 2, "when": {"begins_h": 6}}]}),
        Must(HW, ["memory-errors", "device 4"])),
    *(
        Row(76, f"a healthy node for ten hours, noise {seed}", "S",
            OverHours(seed=seed), Must(PASS))
        for seed in (1, 2, 3, 4, 5)
    ),
)  # fmt: skip

ROWS: Sequence[Row] = tuple(
    sorted(
        (*LINKS, *SMALL, *MEMORY, *RANKS, *WRONG, *STATE, *ENDS, *FLEET, *TIME, *EVIDENCE, *HOURS),
        key=lambda row: row.number,
    )
)

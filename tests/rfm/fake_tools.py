"""Stand-ins for programs of OSU, nccl-tests and rccl-tests: same command lines and output, no data.

The first argument is the program's name. FAKE_TOOL names one thing that it does wrong, and FAKE_AT
the launch in which it does: the devices that it sees, as in 0,2. Its values are made up, and differ
by operation, size and devices, so that a test can tell what a metric was made of.
"""

import os
import sys

AT = os.environ.get("FAKE_AT")
SEEN = os.environ.get("CUDA_VISIBLE_DEVICES", os.environ.get("HIP_VISIBLE_DEVICES", ""))
FAULT = os.environ.get("FAKE_TOOL", "") if AT in (None, SEEN) else ""
TITLES = {
    "osu_bw": "Bandwidth",
    "osu_latency": "Latency",
    "osu_reduce": "Reduce Latency",
    "osu_bcast": "Broadcast Latency",
    "osu_allreduce": "Allreduce Latency",
    "osu_reduce_scatter": "Reduce_scatter Latency",
    "osu_allgather": "Allgather Latency",
}
#: busbw over algbw, as PERFORMANCE.md of nccl-tests has it, for n ranks.
FACTORS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "broadcast": None, "reduce": None}


def options_of(words, flags=()):
    """Return the value of each option, and of flags whether they are given.

    argparse takes twice as long to import as all else here.
    """
    found, rest = dict.fromkeys(flags, False), iter(words)
    for word in rest:
        if word.startswith("-"):
            found[word[1:]] = word[1:] in flags or next(rest)
    return found


def doubled(first, last):
    return [first << step for step in range(64) if first << step <= last]


def osu(name, words):
    options = options_of(words, flags=("c", "f"))
    on = f"-{options['d'].upper()}" if "d" in options else ""
    unit = "Bandwidth (MB/s)" if name == "osu_bw" else "Avg Latency(us)"
    full = "   Min Latency(us)   Max Latency(us)  Iterations" if options["f"] else ""
    verdict = "        Validation" if options["c"] else ""
    print(f"\n# OSU MPI{on} {TITLES[name]} Test v7.4\n# Datatype: MPI_CHAR.")
    print(f"# Size      {unit}{full}{verdict}", flush=True)
    if FAULT == "crash":
        print("mpiexec: a process ended by signal 11", file=sys.stderr)
        return 139
    sizes = doubled(*map(int, options["m"].split(":")))
    for size in sizes:
        value = osu_value(name, size)
        cells = [f"{size:<10}", f"{value:.2f}"]
        cells += [f"{value:.2f}", f"{value:.2f}", options["i"]] if options["f"] else []
        wrong = FAULT == "wrong" and size == sizes[-1]
        print("  ".join([*cells, *(["Fail" if wrong else "Pass"] if options["c"] else [])]))
        if wrong and options["c"]:
            print(f"DATA VALIDATION ERROR: {name} exited with status 1 on message size {size}.")
            return 1
    return 0


def osu_value(name, size):
    """Return MB/s or us: the devices are in the digits, size and program in the magnitude."""
    devices = [int(part) for part in SEEN.split(",")] if SEEN else [0, 0]
    if FAULT == "impossible":
        return 2e6  # MB/s
    if name == "osu_bw":
        return (50 + devices[0] / 10 + devices[-1] / 100) * 1000 * (0.5 if size < 1 << 24 else 1)
    return 10 + len(devices) + list(TITLES).index(name) / 10 + size / 1e6


def nccl(name, words):
    options = {"t": 1} | {name: int(value) for name, value in options_of(words).items()}
    ranks = options["t"] * options["g"]
    print("# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809")
    print(f"# Collective test starting: {name}_perf")
    threads, gpus = options["t"], options["g"]
    print(
        f"# nThread {threads} nGpus {gpus} minBytes {options['b']} maxBytes {options['e']} step: "
        f"{options['f']}(factor) warmup iters: {options['w']} iters: {options['n']} agg iters: 1 "
        "validation: 1 graph: 0 unalign: 0\n#\n# Using devices"
    )
    for rank, device in enumerate(SEEN.split(",")[:ranks]):
        print(f"#  Rank {rank} Group 0 Pid 1 on node1 device {rank} [0000:c{device}:00] A100")
    group = "  time  algbw  busbw  #wrong"
    print(f"#\n#  out-of-place  in-place\n#  size  count  type  redop  root{group}{group}")
    print("#  (B)  (elements)  (us)  (GB/s)  (GB/s)  (us)  (GB/s)  (GB/s)")
    for size in doubled(options["b"], options["e"]):
        print(nccl_row(name, size, ranks))
    print("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.5\n#")
    print(f"# Collective test concluded: {name}_perf\n#")
    return 0


def nccl_row(name, size, ranks):
    divided = name in ("all_gather", "reduce_scatter")
    count = size // 4 // ranks if divided else size // 4
    size = count * 4 * ranks if divided else size
    factor = FACTORS[name] * (ranks - 1) / ranks if FACTORS[name] else 1.0
    reduction = "none" if name in ("all_gather", "broadcast") else "sum"
    row = f"{size} {count} float {reduction} {0 if name in ('broadcast', 'reduce') else -1}"
    moved = size / (3e5 if divided else 1.9e5)
    for time in (10.0 + ranks + moved, 11.0 + ranks + moved):
        speed = size / time / 1e3
        row += f" {time:.2f} {speed:.2f} {speed * factor:.2f} 0"
    return row


if __name__ == "__main__":
    program, *arguments = sys.argv[1:]
    known = osu if program in TITLES else nccl
    # A real mpiexec starts every rank, and rank 0 prints.
    if os.environ.get("PMI_RANK", "0") != "0":
        sys.exit()
    sys.exit(known(program.removesuffix("_perf"), arguments))

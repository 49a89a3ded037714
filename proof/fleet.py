"""Time `fabricheck fleet` on a drawn fleet, beside the diagnosis of an installed SuperBench.

    python -m proof.fleet [--nodes 9408] [--superbench VENV/bin/sb]
    python -m proof.fleet --found

The second form counts what is found of faults by part and size, and false names.

It draws a fleet with ten faults, writes it as one table, as one file a node and, for SuperBench, as
its raw data, rules and baseline, and times each program by itself: seconds, and most memory.
Nothing of SuperBench is in this repository.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from fabricheck.judge.fleet import outliers, reading
from fleet import drawn_fleets
from fleet.drawn_fleets import Fault

#: The fractions behind the median from which a value is a defect by SuperBench's rules, and how
#: many spreads one has to be, so that noise names few nodes. Its examples have 5 %.
SUPERBENCH_RULES, SPREADS = (0.05, 0.25, 0.5, 0.9), 12


def faults(nodes: int) -> list[Fault]:
    """Return ten faults of 3 to 10 % on ten nodes."""
    shapes = (
        ("everything", 0.03), ("everything", 0.10), ("device 3", 0.03), ("device 5", 0.06),
        ("pair 0-6", 0.03), ("pair 2-3", 0.10), ("domain 1", 0.07), ("domain 2", 0.10),
        ("p2p_engine engine_links4_worst", 0.05), ("stream_local triad_median", 0.03),
    )  # fmt: skip
    step = nodes // len(shapes)
    return [Fault(at * step + step // 2, where, part) for at, (where, part) in enumerate(shapes)]


#: A small process of its own: one that this large one starts would count this one's memory.
_LAUNCHER = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
out = open(sys.argv[1], "w")
code = subprocess.run(sys.argv[2:], stdout=out, stderr=subprocess.STDOUT).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = time.perf_counter() - began
print(json.dumps([code, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000]))
"""


@dataclass(frozen=True)
class Timed:
    """A finished command: exit code, seconds, those of its processor, most memory in MB, output."""

    code: int
    seconds: float
    busy: float
    memory: float
    said: str

    def __str__(self) -> str:
        return (
            f"{self.seconds:.1f} s ({self.busy:.1f} s of processors), {self.memory:.0f} MB, "
            f"exit {self.code}"
        )


def timed(command: Sequence[str]) -> Timed:
    """Run a command by itself."""
    with tempfile.NamedTemporaryFile("r") as out:
        launched = [sys.executable, "-c", _LAUNCHER, out.name, *command]
        told = subprocess.run(launched, capture_output=True, text=True, check=True).stdout
        return Timed(*json.loads(told), out.read())


def write_superbench(folder: Path, rows: pl.DataFrame) -> list[str]:
    """Write raw data, rules and baseline; return the options that name them."""
    named = rows.with_columns((pl.col("check") + "/" + pl.col("metric")).alias("name"))
    wide = named.pivot(on="name", index="node", values="value")
    wide.write_ndjson(folder / "raw.jsonl")
    rules: dict[str, dict[str, object]] = {}
    units = dict(named.select("name", "unit").unique().iter_rows())
    baseline = {name: wide[name].median() for name in units}
    for name, unit in sorted(units.items()):
        spread = 1.4826 * (wide[name] / baseline[name] - 1).abs().median()
        part = next((one for one in SUPERBENCH_RULES if one > SPREADS * spread), 0.95)
        criteria = f"lambda x:x>{part}" if unit == "us" else f"lambda x:x<-{part}"
        rule = {"function": "variance", "criteria": criteria, "categories": unit, "metrics": []}
        rules.setdefault(f"{unit} {part}", rule)["metrics"].append(name)  # type: ignore[attr-defined]
    text = json.dumps({"version": "v0.12", "superbench": {"rules": rules}})
    (folder / "rules.yaml").write_text(text, encoding="utf-8")
    (folder / "baseline.json").write_text(json.dumps(baseline), encoding="utf-8")
    files = {"-d": "raw.jsonl", "-r": "rules.yaml", "-b": "baseline.json"}
    return [part for option, name in files.items() for part in (option, str(folder / name))]


def found(nodes: int, metrics: int, seed: int) -> None:
    """Print how many of ten faults each are found, by part and size, and how many other nodes."""
    parts = ("everything", "device 3", "pair 0-6", "pair 2-3", "domain 1")
    named = "p2p_kernel read_links4_worst"
    print("| of one node slower | " + " | ".join(parts) + f" | {named} | others named |")
    with tempfile.TemporaryDirectory() as folder:
        for at, size in enumerate((0.0, 0.015, 0.02, 0.03, 0.05, 0.07, 0.10)):
            planted = [
                Fault(one * 10 + each * 700 + 5, where, size)
                for one, where in enumerate((*parts, named))
                for each in range(10)
            ]
            path = Path(folder, "fleet.parquet")
            drawn_fleets.fleet(nodes, seed + 10_000 * at, planted, metrics).write_parquet(path)
            (partition,) = reading.read([str(path)]).partitions
            odd_ones = {one.node for one in outliers.judge(partition).outliers}
            names = drawn_fleets.names(nodes)
            told = [
                sum(names[one.node] in odd_ones for one in planted if one.where == where)
                for where in (*parts, named)
            ]
            others = len(odd_ones - {names[one.node] for one in planted})
            print(f"| {100 * size:.3g} % | " + " | ".join(map(str, [*told, others])) + " |")


def main() -> None:
    """Draw, time and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=9408)
    parser.add_argument("--metrics", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--superbench", metavar="SB", help="the program sb of an installation")
    parser.add_argument("--found", action="store_true", help="count what is found instead")
    options = parser.parse_args()
    nodes = options.nodes
    if options.found:
        found(nodes, options.metrics, options.seed)
        return
    print(
        f"{nodes} nodes x {options.metrics} metrics; {len(os.sched_getaffinity(0))} cores, "
        f"Python {platform.python_version()}, polars {pl.__version__}"
    )
    planted = faults(nodes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = drawn_fleets.fleet(nodes, options.seed, planted, options.metrics)
        if options.superbench:
            arguments = write_superbench(folder, rows)
        rows = rows.sort("node", maintain_order=True)
        drawn_fleets.as_exported(rows.lazy()).sink_parquet(folder / "fleet.parquet")
        (folder / "nodes").mkdir()
        for (node,), own in rows.group_by("node", maintain_order=True):
            drawn_fleets.as_exported(own.lazy()).collect().write_parquet(
                folder / "nodes" / f"{node}.parquet"
            )
        sizes = [
            sum(one.stat().st_size for one in folder.glob(each)) / 1e6
            for each in ("fleet.parquet", "nodes/*.parquet")
        ]
        print(f"one table {sizes[0]:.0f} MB, one file a node {sizes[1]:.0f} MB")
        del rows
        ours = [str(Path(sys.executable).with_name("fabricheck")), "fleet"]
        seconds = {}
        for what, arguments_of in {
            "one table": ["fleet.parquet"],
            "one table, with the page": ["fleet.parquet", "--output", "page.html"],
            "one file a node": ["nodes"],
            "before and after": ["fleet.parquet", "--after", "fleet.parquet"],
        }.items():
            paths = [one if one[0] == "-" else str(folder / one) for one in arguments_of]
            one = timed([*ours, *paths])
            seconds[what] = one.seconds
            print(f"fabricheck fleet, {what}: {one}")
            if what == "one table":
                print(one.said)
        wanted = {drawn_fleets.names(nodes)[one.node] for one in planted}
        told = json.loads(timed([*ours, str(folder / "fleet.parquet"), "--json"]).said)
        named = {one["node"] for part in told["partitions"] for one in part["outliers"]}
        print(f"{len(named & wanted)} of {len(wanted)} faults found, {len(named - wanted)} false")
        if options.superbench:
            version = subprocess.run(
                [options.superbench, "version"], capture_output=True, text=True, check=True
            ).stdout.strip()
            command = [options.superbench, "result", "diagnosis", *arguments]
            one = timed([*command, "--output-dir", str(folder), "--output-file-format", "jsonl"])
            written = folder / "diagnosis_summary.jsonl"
            lines = written.read_text(encoding="utf-8").splitlines() if written.exists() else []
            own = {json.loads(line)["index"] for line in lines}
            print(
                f"SuperBench {version}, sb result diagnosis: {one}; {len(own & wanted)} of "
                f"{len(wanted)} faults, {len(own - wanted)} other nodes"
            )
            if one.code:
                print(one.said[-2000:])
            print(f"ratio to one table: {one.seconds / seconds['one table']:.1f}")


if __name__ == "__main__":
    main()

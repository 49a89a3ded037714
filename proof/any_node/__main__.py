"""Measure nodes of AMD's models, drafted from their driver, with faults; write what was said.

python -m proof.any_node            # 20 sessions; 3 minutes
python -m proof.any_node --write    # into docs/evidence/simulated-node.md
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fabricheck.core import whole_files
from fabricheck.core.checkout import ROOT
from proof.any_node import nodes
from proof.faults.sessions import Said

PAGE, BLOCK = ROOT / "docs" / "evidence" / "simulated-node.md", "drafted nodes"


def rows(block: str) -> list[str]:
    """Return the rows of the table in a block, without its head."""
    return [line for line in block.splitlines() if line.startswith("| ")][1:]


def lines(found: Mapping[tuple[str, str], Said]) -> Iterator[str]:
    """Yield the table of what was said of each model and fault, all simulated."""
    yield f"| model (simulated) | {' | '.join(nodes.FAULTS)} |"
    yield "|---" * (len(nodes.FAULTS) + 1) + "|"
    for name in nodes.MODELS:
        cells = [_cell(found.get((name, fault)), name, fault) for fault in nodes.FAULTS]
        yield f"| {name} | {' | '.join(cells)} |"


def _cell(said: Said | None, name: str, fault: str) -> str:
    if said is None:
        return "has no such mode"
    if not nodes.is_named(name, fault, said):
        return f"{said.status}, **not named**: {said.diagnosis}"
    if fault == "healthy":
        return "nothing failed"
    told = said.diagnosis or nodes.named(name, fault)
    return f"{said.status}: {told}" if told else said.status


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; 1 where a fault is not named or a healthy node fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write it into the page")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        folders = [Path(scratch, name, fault.replace(" ", "-")) for name, fault in nodes.CASES]
        names, faults = zip(*nodes.CASES, strict=True)
        found = dict(zip(nodes.CASES, pool.map(nodes.session, names, faults, folders), strict=True))
    text = "\n".join(lines(found)) + "\n"
    print(text)
    if chosen.write:
        whole_files.rewrite_block(PAGE, {BLOCK: text})
    return 0 if all(nodes.is_named(*case, said) for case, said in found.items()) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Series of a kernel beside copies: what loads, which contradictions do not, and how they show."""

from __future__ import annotations

import json

import pytest

import factories
from fabricheck.core.errors import InvalidFile
from fabricheck.results import document

KERNEL = {
    "experiment": "E3", "operation": "compute", "unit": "us", "better": "lower",
    "bytes_moved": 1 << 28, "bytes_counted": "once", "regime": "cache",
}  # fmt: skip
COPY = {
    "experiment": "E3", "operation": "write", "destination": factories.place("host-pinned", None),
    "direction": "one-way", "movement": "zero-copy", "bytes_moved": 1 << 28,
    "bytes_counted": "once",
}  # fmt: skip


def text(*series):
    return json.dumps(factories.document(series=list(series)))


def both(role, **changes):
    return [factories.series(role=role, host_clock=None, **fields, **changes)
            for fields in (KERNEL, COPY)]  # fmt: skip


@pytest.mark.parametrize("experiment", ["E2", "E3", "E7", "E8"])
def test_kernels_load_alone_and_beside_copies(experiment):
    kernels = [factories.series(role=role, **KERNEL | {"experiment": experiment})
               for role in ("single", "beside")]  # fmt: skip
    document.parse(text(*kernels), "x.json")


def test_noise_of_what_works_beside_something_else_ends_no_run():
    wide = [50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 110.0]
    noisy = factories.series(wide, role="beside", noisy=True, host_clock=None, **COPY)
    document.parse(text(noisy), "x.json")
    with pytest.raises(InvalidFile, match="is true beyond the caches"):
        document.parse(text(noisy | {"role": "single"}), "x.json")


def test_the_table_says_which_worked_beside_the_other(command, tmp_path):
    file = tmp_path / "result.json"
    file.write_text(text(*both("single"), *both("beside")))
    shown = command("results", "show", file, "--all", env={"COLUMNS": "160"})
    assert shown.output.count("0, beside") == 2

"""`managed` on a CPU: what it refuses there, and its documents of pinned memory."""

from __future__ import annotations

import functools
import subprocess

import pytest

QUICK = ("--sizes", "64KiB", "--devices", "1", "--warm-up", "0", "--series-time", "0")


@pytest.fixture
def managed(run):
    return functools.partial(run, "managed")


def test_a_virtual_device_has_no_managed_memory(managed):
    ran = managed()
    assert ran.code == 3
    assert ran.err == "managed: device 0 (host) does not support managed memory\n"
    document = ran.document
    assert not document["complete"]
    assert document["outcome"]["status"] == "unsupported"
    assert document["devices"][0]["managed_memory"] == {
        "managed": False,
        "concurrent_access": False,
        "pageable_access": False,
        "xnack": None,
    }


def test_pinned_memory_is_measured_by_kernels(managed):
    ran = managed(*QUICK, "--memory", "pinned", "--expect", "zero-copy")
    assert ran.code == 0, ran.err
    document = ran.document
    read, write = document["series"]
    assert (read["operation"], write["operation"]) == ("read", "write")
    assert (read["source"]["memory"], read["destination"]["memory"]) == ("host-pinned", "device")
    assert (write["source"]["memory"], write["destination"]["memory"]) == ("device", "host-pinned")
    for series in (read, write):
        assert series["movement"] == "zero-copy"
        assert series["device_set"] == [1]
        assert series["batch"] == 1
        assert len(series["samples"]) >= 7
        assert series["verification"] == {
            "bytes_checked": 65536,
            "errors": 0,
            "first_mismatch": None,
        }
    assert document["options"]["expect"] == "zero-copy"
    assert "pinned memory, whose pages stay on the host: host-read" in document["notes"][0]


@pytest.mark.parametrize("operation", ["read", "write"])
@pytest.mark.parametrize(("fault", "errors"), [("flip-bit:8:0", 1), ("unwritten", 65536 // 8)])
def test_wrong_data_is_found(managed, operation, fault, errors):
    ran = managed(*QUICK, "--memory", "pinned", "--operations", operation, "--inject-fault", fault)
    assert ran.code == 5
    (series,) = ran.document["series"]
    assert series["verification"]["errors"] == errors


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["--devices", "5"], 3, ["device 5 does not exist", "has 2, 0 to 1"]),
        (["--devices", "0,0"], 2, ["names device 0 twice"]),
        (["--memory", "device"], 2, ["'device' is not a kind of memory", "managed, pinned"]),
        (["--memory", "pinned", "--operations", "copy"], 2, ["'copy' is not an operation"]),
        (["--memory", "pinned", "--operations", "read,read"], 2, ["names read twice"]),
        (["--memory", "pinned", "--operations", "prefetch-h2d"], 3, ["stay on the host"]),
        (["--memory", "pinned", "--expect", "page-migration"], 3, ["does not migrate"]),
        (["--expect", "speed"], 2, ["--expect"]),
        (["--memory", "pinned", "--sizes", "24"], 2, ["24 B is not a multiple of 16 B"]),
        (["--memory", "pinned", "--sizes", "100TiB"], 3, ["of memory free, but 100 TiB"]),
        (["--memory", "pinned", "--inject-fault", "flip"], 2, ["'flip' is not a fault"]),
    ],
)
def test_bad_input_gets_one_sentence_and_its_exit_code(managed, arguments, code, parts):
    ran = managed(*arguments)
    assert ran.code == code
    # What is not measured of pinned memory may stand above it.
    assert ran.sentence.startswith("managed: ")
    for part in parts:
        assert part in ran.sentence
    if ran.output.exists():
        assert ran.document["outcome"]["exit_code"] == code


def test_help_explains_itself(programs):
    done = subprocess.run(
        [str(programs / "managed"), "--help"], capture_output=True, text=True, check=True
    )
    for word in ("--expect", "page-migration", "HSA_XNACK", "prefetch-h2d", "Exit codes", "GB/s"):
        assert word in done.stdout

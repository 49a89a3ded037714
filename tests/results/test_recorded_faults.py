"""Faults injected on two H200, as recorded: each document names what is wrong, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricheck.results.document import load

FOLDER = Path(__file__).resolve().parents[1] / "outputs" / "h200" / "faults-x2"
#: What a destination holds before it is written, and what a rank sees of it as a float.
POISON, AS_FLOAT = "0xfff8deaddeadbeef", "-nan"
#: By file the fault that was asked for; by operation the wrong words or elements, the device and
#: rank that hold the first one (None: host memory, no ranks), its byte, and what was found there.
FAULTS = {
    "p2p_flip": ("flip-bit:4096:3", {
        "engine": (1, 1, None, 4096, "0x3ffc9cd4a0000008"),
        "read": (1, 1, None, 4096, "0x3ffc9cd4a0000008"),
        "write": (1, 1, None, 4096, "0x3ffc9cd4a0000008"),
    }),
    "p2p_unwritten": ("unwritten", {
        "engine": (32 << 20, 1, None, 0, POISON),
        "read": (32 << 20, 1, None, 0, POISON),
        "write": (32 << 20, 1, None, 0, POISON),
    }),
    "memcpy_unwritten": ("unwritten", {
        "h2d": (8 << 20, 0, None, 0, POISON),
        "d2h": (8 << 20, None, None, 0, POISON),
    }),
    "stream_unwritten": ("unwritten", {"copy": (256 << 20, 0, None, 0, POISON)}),
    "bcast_flip": ("rank:1:flip-bit:4096:3", {"bcast": (1, 1, 1, 4096, "1091.0009765625")}),
    # The other half of the elements, those of the root, are right.
    "bcast_unwritten": ("rank:1:unwritten", {"bcast": (1 << 18, 1, 1, 0, AS_FLOAT)}),
}  # fmt: skip


def test_every_recording_is_looked_at():
    assert {file.stem for file in FOLDER.glob("*.json")} == FAULTS.keys()


@pytest.mark.parametrize("name", FAULTS)
def test_the_first_wrong_word_is_named(name):
    fault, expected = FAULTS[name]
    document = load(FOLDER / f"{name}.json")
    assert document["faults_injected"] == [fault]
    found = {}
    for one in document["series"]:
        first = one["verification"]["first_mismatch"]
        found[one["operation"]] = (
            one["verification"]["errors"],
            first["device"],
            first.get("rank"),
            first["offset_bytes"],
            first["found"],
        )
        assert first["expected"] != first["found"]
    assert found == expected


@pytest.mark.parametrize("name", FAULTS)
def test_the_run_ended_with_wrong_data_and_a_sentence_that_says_where(name):
    document = load(FOLDER / f"{name}.json")
    outcome = document["outcome"]
    assert (outcome["exit_code"], outcome["status"], document["complete"]) == (
        5,
        "wrong-data",
        True,
    )
    _, expected = FAULTS[name]
    errors, _, rank, offset, found = next(iter(expected.values()))
    message = outcome["message"]
    assert f": {errors} of " in message and f"at byte {offset}: expected " in message
    assert message.endswith(f"found {found}")
    whose = "rank 1 at" if rank is not None else "device 0"
    assert whose in message


@pytest.mark.parametrize("name", FAULTS)
def test_shown_as_wrong_and_as_made_on_purpose(command, name):
    shown = command("results", "show", FOLDER / f"{name}.json")
    text = " ".join(shown.stdout.split())
    assert f"injected faults: {FAULTS[name][0]}" in text
    assert "outcome wrong-data: " in text
    assert "WRONG" in text and " verified" not in text


def test_the_documents_are_valid(command):
    files = [str(FOLDER / f"{name}.json") for name in FAULTS]
    valid = command("results", "validate", *files)
    lines = valid.stdout.splitlines()
    for line, (fault, _) in zip(lines, FAULTS.values(), strict=True):
        assert line.endswith(f", measured, outcome wrong-data, with injected faults ({fault})).")

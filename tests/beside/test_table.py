"""Values, ratios, verdicts and the Markdown of recorded rounds."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from fabricheck.beside import table
from fabricheck.beside.cases import BESIDE_NVIDIA, Cell, Comparison, Ours
from fabricheck.beside.launches import TESTCASES
from fabricheck.beside.table import OurOutput, Row, Values
from fabricheck.core.errors import FabricheckError, InvalidFile

ROOT = Path(__file__).parents[2]
CELL = Cell("nvbandwidth", ("device_local_copy", 0, 0), "nvbandwidth")
OTHER = Cell("babelstream", ("Copy",), "babelstream-1GiB")
BEGIN = "<!-- fabricheck beside table -->"
END = "<!-- end of fabricheck beside table -->"


def row(ours, *tools, unit="GB/s", target=1.0, half_width=0.0):
    """Build a row of one or two tools from the values of rounds."""
    case = Comparison("a case", Ours("stream", "copy"), (CELL, OTHER), unit, target)
    cells = zip((CELL, OTHER), tools, strict=False)
    values = None if ours is None else Values(tuple(ours), half_width)
    return Row(case, values, tuple((cell, Values(tuple(told))) for cell, told in cells))


def named(rows, name):
    (found,) = [one for one in rows if one.comparison.name == name]
    return found


# Ratios and verdicts


def test_the_ratio_is_of_medians_to_the_best_tool():
    found = row([100, 104, 110], [99, 103, 130], [104, 105, 106])
    assert found.best[0] == OTHER
    assert found.ratio == 104 / 105
    # Of times the shortest is the best.
    assert row([2.0], [2.2], [2.1], unit="us").ratio == 2.0 / 2.1


def test_the_half_width_is_of_both():
    found = row([99, 100, 101], [198, 200, 208])
    assert found.ours.spread == pytest.approx(0.01)
    assert found.half_width == pytest.approx(0.5 * (0.01**2 + 0.025**2) ** 0.5)


def test_the_spread_is_at_least_that_inside_a_round():
    assert Values((100.0, 100.0), 0.03).spread == 0.03
    assert Values((100.0,), 0.03).spread is None
    # From nine rounds on the 95 % interval leaves out the outermost.
    assert Values((1, 99, 100, 100, 100, 100, 100, 101, 900)).spread == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("ours", "theirs", "unit", "target", "verdict"),
    [
        ([100, 100], [100, 100], "GB/s", 1.0, "reached"),
        ([99.9, 99.9], [100, 100], "GB/s", 1.0, "missed"),
        ([99.8, 100], [100, 100], "GB/s", 1.0, "equal within the spread"),
        ([99.8, 100], [100, 100], "GB/s", 1.02, "missed"),
        ([102, 102], [100, 100], "GB/s", 1.02, "reached"),
        ([2.0, 2.0], [2.1, 2.1], "us", 1.0, "reached"),
        ([2.2, 2.2], [2.1, 2.1], "us", 1.0, "missed"),
        ([2.2, 2.0], [2.05, 2.05], "us", 1.0, "equal within the spread"),
        # One round tells no spread: it is unknown whether what is short is equal within it.
        ([99.99], [100], "GB/s", 1.0, "not judged (one round)"),
        ([99, 100], [101], "GB/s", 1.0, "not judged (one round)"),
        ([100], [100], "GB/s", 1.0, "reached"),
        ([100, 100], [100, 100], "GB/s", None, "not judged"),
        (None, [100, 100], "GB/s", 1.0, table.NOTHING),
    ],
)
def test_verdicts(ours, theirs, unit, target, verdict):
    assert row(ours, theirs, unit=unit, target=target).verdict == verdict


def test_nothing_is_judged_without_a_tool():
    found = row([100, 100])
    assert (found.ratio, found.verdict, found.best) == (None, table.NOTHING, None)


# The cases


def test_the_cases_are_the_ones_that_were_asked_for():
    names = [case.name for case in BESIDE_NVIDIA]
    assert len(set(names)) == len(names)
    targets = {case.name: case.target for case in BESIDE_NVIDIA if case.target != 1.0}
    assert targets == {
        "copy on the device": 1.02,
        "write to a peer, kernel": 1.01,
        "copy of 16 B to a peer, host's clock": None,
    }
    assert len(TESTCASES) == len(set(TESTCASES)) == 24
    # What is not judged says why.
    assert all(case.note for case in BESIDE_NVIDIA if case.target is None)


# Recorded rounds


def test_values_are_those_of_the_outputs(recorded):
    rows = table.read(recorded[0]).rows
    assert [found.comparison for found in rows] == list(BESIDE_NVIDIA)
    copy = named(rows, "copy on the device")
    # Counted once; BabelStream's read and written halves of 3450 and 4030.
    assert copy.ours.values == (2130.0, 2130.0)
    assert [values.median for _, values in copy.tools] == pytest.approx([2090.0, 1725.0, 2015.0])
    # Row 1, column 0: device 1 reads from device 0.
    read = named(rows, "read from a peer, kernel")
    assert [values.values for _, values in read.tools] == [(377.0, 377.0)]
    both = named(rows, "both directions between peers, engine, beside writes")
    assert both.ours.median == 782.0
    assert [values.median for _, values in both.tools] == [782.0, 772.0]
    share = named(rows, "device to host, engine, beside the other direction")
    assert share.ours.median == 50.8
    share = named(rows, "host to device, engine, beside the other direction")
    assert share.ours.median == 51.0
    chase = named(rows, "load from a peer, pointer chase in 2 MiB")
    assert chase.ours.median == pytest.approx(810.0)
    assert [values.median for _, values in chase.tools] == [829.0]


def test_every_case_has_a_value_of_each_of_its_tools(recorded):
    for found in table.read(recorded[0]).rows:
        assert found.ours is not None and len(found.ours.values) == 2
        assert [cell for cell, _ in found.tools] == list(found.comparison.tools)


@pytest.mark.parametrize("file", ["nvbandwidth-2.txt", "p2p-test-1.txt", "babelstream-1GiB-1.txt",
                                  "p2p-chase-1.json"])  # fmt: skip
def test_a_damaged_file_is_an_error_that_names_it(recorded, tmp_path, file):
    folder = tmp_path / "copy"
    shutil.copytree(recorded[0], folder)
    text = (folder / file).read_text()
    (folder / file).write_text(text[: len(text) // 2])
    with pytest.raises(FabricheckError, match=file):
        table.read(folder)
    (folder / file).unlink()
    with pytest.raises(FabricheckError, match=file):
        table.read(folder)


def test_no_rounds(tmp_path):
    with pytest.raises(FabricheckError, match="contains no recorded rounds") as caught:
        table.read(tmp_path)
    assert caught.value.exit_code == 3


# Markdown


def lines_of(command, folder, *more):
    ended = command("beside", "table", folder, *more)
    return ended.stdout.splitlines()


def test_the_page_has_commands_versions_date_and_devices(command, recorded):
    text = "\n".join(lines_of(command, recorded[0]))
    assert "## beside-composed" in text
    assert "GPU-composed-1" in text and "nvbandwidth v0.8" in text and ", 2 rounds." in text
    assert "cuda-stream --csv --device 0 -s 67108864 -n 30" in text
    assert text.count("--output stream-1.json") == 1 and "stream-2.json" not in text


def counted(lines):
    """Return the line that counts the verdicts."""
    (line,) = [line for line in lines if line.startswith("Of ")]
    return line


def test_rows_tell_ratio_and_verdict(command, recorded, wording):
    rows = table.read(recorded[0]).rows
    verdicts = {
        "copy on the device": "missed",
        "host to device, engine": "reached",
        "load from a peer, pointer chase in 2 MiB": "reached",
        "copy of 16 B to a peer, host's clock": "not judged",
    }
    assert {name: named(rows, name).verdict for name in verdicts} == verdicts
    assert named(rows, "copy on the device").ratio == pytest.approx(1.019, abs=5e-4)
    lines = lines_of(command, recorded[0])
    by_case = {line.split(" | ")[0].lstrip("| "): line for line in lines}
    wording([*(by_case[name] for name in verdicts), counted(lines)])


def test_one_table_for_each_folder(command, recorded, tmp_path):
    shutil.copytree(recorded[0], tmp_path / "beside-again")
    heads = [line for line in lines_of(command, recorded[0], tmp_path / "beside-again")
             if line.startswith("## ")]  # fmt: skip
    assert heads == ["## beside-composed", "## beside-again"]


def test_folders_of_one_name_are_told_apart(command, recorded, tmp_path):
    again = tmp_path / "again" / recorded[0].name
    shutil.copytree(recorded[0], again)
    shutil.copytree(recorded[0], tmp_path / "beside-other")
    lines = lines_of(command, recorded[0], again, tmp_path / "beside-other")
    assert [line for line in lines if line.startswith("## ")] == [
        f"## {recorded[0].parent.name}/beside-composed",
        "## again/beside-composed",
        "## beside-other",
    ]


def test_a_folder_is_not_counted_twice(command, recorded, tmp_path):
    (tmp_path / "link").symlink_to(recorded[0])
    arguments = ["beside", "table", str(recorded[0]), str(tmp_path / "link")]
    ended = command(*arguments, code=2)
    assert (ended.exit_code, "is named twice" in ended.stderr) == (2, True)


def changed(recorded, folder, change):
    """Copy recorded rounds, with another manifest."""
    shutil.copytree(recorded[0], folder)
    content = json.loads((folder / table.FILE).read_text())
    change(content)
    (folder / table.FILE).write_text(json.dumps(content))
    return folder


def test_one_round_is_counted_as_not_judged_where_it_is_short(command, recorded, tmp_path):
    def one_round(content):
        content["rounds"] = 1
        content["launches"] = [one for one in content["launches"] if one["round"] == 1]

    lines = lines_of(command, changed(recorded, tmp_path / "one", one_round))
    (copy,) = [line for line in lines if line.startswith("| copy on the device ")]
    assert "| 1.019 ± unknown | >= 1.02 | not judged (one round) |" in copy
    (said,) = [line for line in lines if line.startswith("Of 25 targets: ")]
    count = sum("| not judged (one round) |" in line for line in lines)
    assert said.endswith(f" 0 missed, {count} not judged (one round).") and count > 1


def test_a_launch_of_another_name_is_refused(recorded, tmp_path):
    def rename(content):
        (found,) = [one for one in content["launches"] if one["output"] == "babelstream-1GiB-2.txt"]
        found["name"] = "babelstream-9"

    folder = changed(recorded, tmp_path / "other", rename)
    with pytest.raises(FabricheckError, match=r"rounds\.json: .*babelstream-9 is not a launch of"):
        table.read(folder)


def test_rounds_that_broke_off_say_what_is_missing(command, recorded, tmp_path, wording):
    def cut(content):
        content["rounds"], content["finished"] = 4, None
        content["launches"] = content["launches"][:-2]

    folder = changed(recorded, tmp_path / "cut", cut)
    missing = table.load(folder).missing()
    assert missing[2] == ("stream-from-host", "stream") and set(missing) == {2, 3, 4}
    lines = lines_of(command, folder)
    (head,) = [line for line in lines if "rounds requested" in line]
    # It begins with when the rounds were recorded.
    wording([head.partition(", ")[2], *(line for line in lines if line.startswith("Missing"))])


def test_only_the_part_between_the_markers_is_written(command, recorded, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    assert lines_of(command, recorded[0], "--page", page) == []
    first = page.read_text()
    assert first.startswith(f"before\n\n{BEGIN}\n\nPrograms") and "\nold\n" not in first
    assert first.endswith(f"\n\n{END}\n\nafter\n")
    lines_of(command, recorded[0], "--page", page)
    assert page.read_text() == first


@pytest.mark.parametrize(
    "text",
    [
        "none\n",
        f"{BEGIN}\n",
        f"{END}\n{BEGIN}\n",
        f"{BEGIN}\n{BEGIN}\n{END}\n",
    ],
    ids=["none", "no-end", "end-first", "two"],
)
def test_markers_that_are_not_once_each_in_order(command, recorded, tmp_path, text, wording):
    page = tmp_path / "page.md"
    page.write_text(text)
    ended = command("beside", "table", recorded[0], "--page", page, code=4)
    wording(ended.stderr)
    assert page.read_text() == text


def test_a_page_that_is_not_there(command, recorded, tmp_path):
    arguments = ["beside", "table", str(recorded[0]), "--page", str(tmp_path / "none.md")]
    command(*arguments, code=3)


def test_the_rounds_on_two_h100_give_what_their_page_says(command, wording):
    folder = ROOT / "tests" / "outputs" / "h100" / "beside"
    rows = table.read(folder).rows
    verdicts = Counter(row.verdict for row in rows if row.comparison.target is not None)
    assert verdicts == {"reached": 21, "equal within the spread": 3, table.NOTHING: 1}
    assert named(rows, "copy on the device").ratio == pytest.approx(1.026, abs=5e-4)
    wording(counted(lines_of(command, folder)))


# Documents that were recorded on devices, for other purposes


@pytest.mark.parametrize(
    ("file", "launch", "first"),
    [
        ("one-device/memcpy_round_1", "memcpy", {"operation": "h2d"}),
        ("two-devices/p2p_pair", None, {"operation": "engine"}),
        ("four-devices/p2p_chase", "p2p-chase", {"direction": "one-way"}),
    ],
)
def test_documents_of_devices_are_read(file, launch, first):
    output = OurOutput(ROOT / "tests" / "outputs" / "h200" / f"{file}.json", launch or "p2p")
    if launch is None:
        # It has both directions of the pair, and the launch of the rounds has one.
        series = [one for one in output.document["series"] if one["device_set"] == [0, 1]]
        output.document["series"] = series
    if launch == "p2p-chase":
        series = [one for one in output.document["series"] if one["device_set"] != [1, 0]]
        output.document["series"] = series
    cases = [case for case in BESIDE_NVIDIA if case.ours.launch == output.launch]
    assert cases
    values = [output.value(case)[0] for case in cases]
    (expected, *_) = [
        one["median"]
        for one in output.document["series"]
        if all(one[name] == value for name, value in first.items())
    ]
    assert values[0] == expected * (1000 if launch == "p2p-chase" else 1)


def test_a_document_in_another_unit_is_refused():
    output = OurOutput(ROOT / "tests/outputs/h200/one-device/memcpy_round_1.json", "memcpy")
    for series in output.document["series"]:
        series["unit"] = "us"
    case = next(case for case in BESIDE_NVIDIA if case.ours.launch == "memcpy")
    with pytest.raises(InvalidFile, match=rf"{case.ours.operation} is in us, but .* in GB/s"):
        output.value(case)


def test_a_manifest_with_a_key_twice_is_refused(recorded, tmp_path):
    text = (recorded[0] / table.FILE).read_text()
    (tmp_path / table.FILE).write_text(text.replace('"rounds":', '"rounds": 1, "rounds":', 1))
    with pytest.raises(FabricheckError, match="contains the key 'rounds' twice"):
        table.load(tmp_path)

"""Pairs of devices are shown as one matrix for each operation."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import factories
from fabricheck.cli import app
from fabricheck.core import show

P2P = Path(__file__).resolve().parents[1] / "outputs" / "h200" / "four-devices" / "p2p_all.json"
NOTHING_CHECKED = {"bytes_checked": 0, "errors": 0, "first_mismatch": None}


def shown(document, folder, *options):
    path = factories.write(folder / "result.json", document)
    result = CliRunner().invoke(app, ["results", "show", str(path), *options])
    assert result.exit_code == 0, result.output
    assert all(len(line) <= show.PIPED_WIDTH for line in result.stdout.splitlines())
    return result.stdout


def one_way(source, destination, value=100.0, **changes):
    """Build a series of one pair by copy engine."""
    return factories.series(
        [value] * 7,
        **{
            "experiment": "E7",
            "operation": "engine",
            "engine": "copy-engine",
            "block_size": None,
            "direction": "one-way",
            "source": factories.place(device=source),
            "destination": factories.place("peer", destination),
            "device": source,
            "device_set": [source, destination],
            "bytes_moved": changes.get("bytes", 1 << 28),
            "bytes_counted": "once",
        }
        | changes,
    )


def node(series, count=4, **changes):
    devices = [factories.device(index) for index in range(count)]
    return factories.document(series=series, devices=devices, **changes)


def every_pair(count=4, **changes):
    return [
        one_way(a, b, 100.0 + 10 * a + b, **changes)
        for a in range(count)
        for b in range(count)
        if a != b
    ]


def rows(text):
    """Return the cells of the lines that begin with a device."""
    lines = [line.split() for line in text.splitlines()]
    return {line[0]: line[1:] for line in lines if line and line[0].isdigit() and len(line) > 2}


def test_a_matrix_by_source_and_destination(tmp_path):
    text = shown(node(every_pair()), tmp_path)
    assert "engine, 256 MiB (row: source, column: destination)" in text
    assert rows(text)["0"] == ["-", "101.00", "102.00", "103.00"]
    assert rows(text)["3"] == ["130.00", "131.00", "132.00", "-"]
    assert "12 pairs: worst 0 -> 1 with 101.00, best 3 -> 2 with 132.00" in text
    assert "all verified" in text and "Op " not in text
    everything = shown(node(every_pair()), tmp_path, "--all")
    assert everything.count("\nengine ") == 12 and "row: source" not in everything


def test_few_pairs_are_rows(tmp_path):
    text = shown(node([one_way(0, 1), one_way(1, 0), one_way(0, 2)]), tmp_path)
    assert text.count("\nengine ") == 3 and "row: source" not in text


def test_the_worst_latency_is_the_longest(tmp_path):
    text = shown(node(every_pair(unit="us", better="lower", operation="latency")), tmp_path)
    assert "worst 3 -> 2 with 132.00, best 0 -> 1 with 101.00" in text


def test_what_is_not_good_is_marked(tmp_path):
    series = every_pair()
    series[0] = one_way(0, 1, verification=factories.mismatched())
    series[1] = one_way(0, 2, verification=NOTHING_CHECKED)
    samples = [100.0, 150.0, 200.0, 250.0, 300.0, 350.0]
    clock = {"median": 225.0 * 1.5, "ratio": 1.5, "agrees": False}
    noise = {"samples": samples, "noisy": True, "host_clock": clock}
    series[2] = one_way(0, 3) | {
        name: value
        for name, value in factories.series(**noise).items()
        if name in (*noise, "median", "mad", "ci95", "relative_half_width")
    }
    outcome = {"exit_code": 5, "status": "wrong-data", "message": "a word differs"}
    text = shown(node(series, outcome=outcome), tmp_path)
    assert rows(text)["0"] == ["-", "100.00!", "100.00?", "225.00~"]
    one_line = " ".join(text.split())
    assert "1 WRONG; 1 not verified; 1 noisy; 1 with clocks that differ" in one_line
    assert "all verified" not in one_line


def test_of_several_sizes_the_largest_is_in_the_matrix_and_bad_ones_are_rows(tmp_path):
    small = every_pair(bytes=1 << 10)
    small[4] = one_way(1, 2, bytes=1 << 10, verification=factories.mismatched(checked=1 << 10))
    outcome = {"exit_code": 5, "status": "wrong-data", "message": "a word differs"}
    text = shown(node(small + every_pair(), outcome=outcome), tmp_path)
    assert "engine, 256 MiB" in text
    [row] = [line.split() for line in text.splitlines() if line.startswith("engine ")]
    assert row[1:10] == ["1", "to", "2", "device", "->", "peer", "2", "1", "KiB"] and "WRONG" in row
    assert "11 more series: --all" in text


def test_a_sum_is_in_both_cells_and_counts_once():
    result = CliRunner().invoke(app, ["results", "show", str(P2P)])
    text = " ".join(result.stdout.split())
    assert "engine-both, 256 MiB (sum of both directions)" in text
    assert "6 pairs: worst 1 and 2 with 778.58, best 0 and 1 with 779.20" in text
    assert "1 779.20 - 778.58 778.75" in text and "3 778.91 778.75 778.98 -" in text
    assert "copy, 256 MiB (row: device that executes, column: device of both arrays)" in text
    # The diagonal is a device with itself; it is no pair.
    assert "0 0.3387 1.0014 1.0012 0.9958" in text
    assert "12 pairs: worst 3 -> 1 with 1.0049, best 0 -> 3 with 0.9958" in text
    assert "12 more series: --all" in text


def test_devices_for_themselves_are_no_pairs(tmp_path):
    alone = [factories.series(device=index, device_set=[index]) for index in range(8)]
    text = shown(node(alone, 8), tmp_path)
    assert text.count("\ncopy 0-7 ") == 1 and "row: source" not in text and "pairs:" not in text


@pytest.mark.parametrize(("count", "fits"), [(10, True), (12, False)])
def test_a_matrix_that_is_too_wide_is_summed_up(tmp_path, count, fits):
    text = shown(node(every_pair(count), count), tmp_path)
    assert (len(rows(text)) >= count) == fits
    assert f"{count * (count - 1)} pairs: worst 0 -> 1 with 101.00" in text

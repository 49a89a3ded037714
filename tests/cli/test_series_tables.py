"""How `results show` shows series: a row for each kind, with its worst and its best place."""

from __future__ import annotations

import pytest

import factories

NOTHING_CHECKED = {"bytes_checked": 0, "errors": 0, "first_mismatch": None}
OPERATIONS = ("read", "write", "host-read", "host-write", "prefetch-h2d", "prefetch-d2h")
WRONG = {"exit_code": 5, "status": "wrong-data", "message": "a word differs"}


def shown(command, folder, series, *options, **changes):
    domains = [{"index": one, "cores": [one], "memory_bytes": 1 << 37} for one in range(3)]
    host = factories.document()["host"] | {"numa_domains": domains}
    devices = [factories.device(index) for index in range(12)]
    document = factories.document(series=series, host=host, devices=devices, **changes)
    path = factories.write(folder / "result.json", document)
    result = command("results", "show", path, *options)
    return result.stdout


def rows(text):
    """Return the rows of kinds and of single series, with one blank between words."""
    return [
        " ".join(line.split())
        for line in text.splitlines()
        if line.endswith(tuple("ydreEGsx ")) and "B " in line and "  " in line
    ]


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


def every_pair(count=4, **changes):
    return [
        one_way(a, b, 100.0 + 10 * a + b, **changes)
        for a in range(count)
        for b in range(count)
        if a != b
    ]


def domains(operation="h2d", **changes):
    """Build the series of every domain with every device: 10 x domain + device."""
    return [
        factories.host_copy(
            operation, device, domain, value=10.0 * (domain + 1) + device, **changes
        )
        for domain in range(3)
        for device in range(4)
    ]


def test_a_kind_has_its_worst_and_its_best_place(command, tmp_path):
    assert rows(shown(command, tmp_path, every_pair())) == [
        "E7 engine peer 256 MiB 12 101 0 to 1 116 132 3 to 2 0 % verified"
    ]
    everything = shown(command, tmp_path, every_pair(), "--all")
    assert everything.count("\nengine ") == 12 and "Worst" not in everything


def test_a_matrix_has_each_pair_and_what_was_wrong(command, tmp_path):
    series = every_pair(3)
    series[0] = one_way(0, 1, verification=factories.mismatched())
    both = one_way(0, 1, 55.0, operation="engine-both", direction="both-ways")
    text = shown(command, tmp_path, [*series, both, factories.series()], "--matrix", outcome=WRONG)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    first = lines.index("E7 engine peer of 256 MiB, measured, in GB/s")
    assert lines[first + 1 : first + 5] == [
        "from to 0 to 1 to 2",
        "0 - WRONG 102",
        "1 110 - 112",
        "2 120 121 -",
    ]
    # Both ways at once are one value of two devices, in whichever order they were measured.
    assert lines[-2:] == ["0 - 55", "1 55 -"]


def test_without_pairs_the_matrix_says_so(command, tmp_path, wording):
    wording(shown(command, tmp_path, [factories.series()], "--matrix").splitlines()[-1])


def test_the_worst_latency_is_the_longest(command, tmp_path):
    (row,) = rows(
        shown(command, tmp_path, every_pair(unit="us", better="lower", operation="latency"))
    )
    assert row == "E7 latency peer 256 MiB 12 132 3 to 2 116 101 0 to 1 0 % verified"


def test_what_is_equal_in_the_digits_shown_has_no_worst_place(command, tmp_path):
    alone = [factories.series([10.0] * 9, device=index, device_set=[index]) for index in range(8)]
    assert rows(shown(command, tmp_path, alone)) == ["E1 copy device 256 MiB 8 10 0 % verified"]


def test_what_is_wrong_not_verified_or_too_noisy_is_shown_by_itself(command, tmp_path):
    series = every_pair()
    series[0] = one_way(0, 1, verification=factories.mismatched())
    series[1] = one_way(0, 2, verification=NOTHING_CHECKED)
    noisy = factories.series([100.0, 150.0, 200.0, 250.0, 300.0, 350.0], noisy=True)
    clock = {"median": 225.0 * 1.5, "ratio": 1.5, "agrees": False}
    kept = ("samples", "noisy", "median", "mad", "ci95", "relative_half_width")
    series[2] = one_way(0, 3, host_clock=clock) | {name: noisy[name] for name in kept}
    text = " ".join(shown(command, tmp_path, series, outcome=WRONG).split())
    assert "E7 engine peer 256 MiB 9 110 1 to 0 121 132 3 to 2 0 % verified" in text
    assert "engine 0 to 1 device -> peer 1 256 MiB - 100.00 100.00 - 100.00 7 1 WRONG" in text
    assert "engine 0 to 2 device -> peer 2 256 MiB - 100.00 100.00 - 100.00 7 not verified" in text
    assert "engine 0 to 3 device -> peer 3 256 MiB - 225.00" in text
    assert "6 verified, noisy, clocks differ" in text


def test_noise_that_is_only_reported_is_counted(command, tmp_path):
    samples = [100.0, 150.0, 200.0, 250.0, 300.0, 350.0]
    noisy = [
        factories.series(
            samples if index < 2 else [225.0] * 6, device=index, device_set=[index],
            noisy=index < 2, regime="cache", host_clock=None,
        )
        for index in range(4)
    ]  # fmt: skip
    assert rows(shown(command, tmp_path, noisy)) == [
        "E1 copy device 256 MiB 4 225 56 % verified, 2 noisy, cache"
    ]


def test_of_several_sizes_the_largest_is_shown_and_bad_ones_by_themselves(command, tmp_path):
    small = every_pair(bytes=1 << 10)
    small[4] = one_way(1, 2, bytes=1 << 10, verification=factories.mismatched(checked=1 << 10))
    text = " ".join(shown(command, tmp_path, small + every_pair(), outcome=WRONG).split())
    assert "E7 engine peer 256 MiB 12 101 0 to 1 116 132 3 to 2 0 % verified" in text
    assert "engine 1 to 2 device -> peer 2 1 KiB" in text and "WRONG" in text
    assert "11 more series: --all" in text


def test_a_sum_and_its_shares_are_rows_of_their_own(command, tmp_path):
    series = [one for device in range(4) for one in factories.both_ways(device, domain=1)]
    kinds = [row.split(" 256 MiB ") for row in rows(shown(command, tmp_path, series))]
    assert [kind.split()[-1] for kind, _ in kinds] == ["share", "share", "sum"]
    assert all(said.startswith("4 ") for _, said in kinds)
    assert "\nboth sum 3  pinned N1" in shown(command, tmp_path, series, "--all")


def test_the_worst_domain_and_device_are_named(command, tmp_path):
    pageable = domains("d2h", memory="host-pageable")
    series = domains()
    series[5]["verification"] = factories.mismatched()
    assert rows(shown(command, tmp_path, [*series, *pageable], outcome=WRONG))[:2] == [
        "E4 d2h device-pageable 256 MiB 12 10 0 N0 21.5 33 3 N2 - verified",
        "E4 h2d pinned-device 256 MiB 11 10 0 N0 22 33 3 N2 - verified",
    ]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_managed_memory_shows_what_moved_it(command, tmp_path, operation):
    (row,) = rows(shown(command, tmp_path, [factories.managed_copy(operation)]))
    movement = "prefetch" if operation.startswith("prefetch") else "zero-copy"
    assert row.startswith(f"E3 {operation} ") and f" {movement} 256 MiB 1 " in row
    assert "managed" in row.replace("prefetch managed", "managed")
    text = shown(command, tmp_path, [factories.managed_copy(operation)], "--all")
    (row,) = [line for line in text.splitlines() if line.startswith(f"{operation} ")]
    assert "managed" in row and ("managed 0 " in row) == (operation not in ("read", "write"))


def test_a_scan_stays_one_whatever_its_pages_are(command, tmp_path):
    scan = [
        factories.managed_copy(bytes=1 << power, bytes_moved=1 << power, source=place)
        for power in range(20, 26)
        for place in [factories.place("managed", None, 0) | {"huge_page_bytes": 1 << power}]
    ]
    for one in scan:
        one["verification"]["bytes_checked"] = one["bytes"]
    text = shown(command, tmp_path, scan)
    assert len(rows(text)) == 1 and "5 more series" in " ".join(text.split())

"""How series between host and devices are shown."""

import pytest
from typer.testing import CliRunner

import factories
from fabricheck.cli import app
from fabricheck.core import show

OPERATIONS = ("read", "write", "host-read", "host-write", "prefetch-h2d", "prefetch-d2h")


def shown(folder, series, *options, **changes):
    domains = [{"index": one, "cores": [one], "memory_bytes": 1 << 37} for one in range(3)]
    host = factories.document()["host"] | {"numa_domains": domains}
    devices = [factories.device(index) for index in range(4)]
    said = factories.simulated_document(series=series, host=host, devices=devices, **changes)
    path = factories.write(folder / "result.json", said)
    result = CliRunner().invoke(app, ["results", "show", str(path), *options])
    assert result.exit_code == 0, result.output
    assert all(len(line) <= show.PIPED_WIDTH for line in result.stdout.splitlines())
    return result.stdout


def cells(operation="h2d", **changes):
    """Build the series of every domain with every device: 10 x domain + device."""
    return [
        factories.host_copy(
            operation, device, domain, value=10.0 * (domain + 1) + device, **changes
        )
        for domain in range(3)
        for device in range(4)
    ]


def rows(text):
    return [line.split() for line in text.splitlines() if line[:1] == "N" and line[1:2].isdigit()]


def test_domains_and_devices_are_a_matrix(tmp_path):
    text = shown(tmp_path, cells())
    assert "h2d, pinned, 256 MiB (row: NUMA domain, column: device)" in text
    assert rows(text)[2] == ["N2", "30.000", "31.000", "32.000", "33.000"]
    one_line = " ".join(text.split())
    said = "12 pairs: worst N0 and device 0 with 10.000, best N2 and device 3 with 33.000, median"
    assert said in one_line and "all verified" in one_line and "Op " not in text


def test_kinds_of_memory_and_operations_have_matrices_of_their_own(tmp_path):
    both = [one for device in range(4) for one in factories.both_ways(device, domain=1)]
    text = shown(tmp_path, [*cells(), *cells("d2h", memory="host-pageable"), *both])
    for title in ("h2d, pinned,", "d2h, pageable,", "both, pinned,"):
        assert text.count(f"{title} 256 MiB (row: NUMA domain, column: device)") == 1
    assert rows(text)[-1] == ["N1", "50.000", "50.000", "50.000", "50.000"]


def test_a_cell_that_is_missing_or_wrong_is_seen(tmp_path):
    series = cells()
    series[5]["verification"] = factories.mismatched()
    outcome = {"exit_code": 5, "status": "wrong-data", "message": "a word differs"}
    text = shown(tmp_path, [*series[:2], *series[3:]], outcome=outcome)
    assert rows(text)[0] == ["N0", "10.000", "11.000", "-", "13.000"]
    assert rows(text)[1][2] == "21.000!"
    assert "1 WRONG" in " ".join(text.split())


def test_copies_of_e2_are_rows_with_kind_of_memory_and_domain(tmp_path):
    pageable = {"memory": "host-pageable", "domain": 2}
    series = [factories.host_copy("d2h", 1, **pageable), *factories.both_ways(1, **pageable)]
    text = shown(tmp_path, [one | {"experiment": "E2"} for one in series])
    assert "d2h  1      device -> pageable N2" in text
    # Of both directions the sum; its shares are with the rest.
    assert text.count("\nboth ") == 1 and "sum 1" in text
    assert "of both directions of one device their sum; 2 more series: --all" in " ".join(
        text.split()
    )
    assert shown(tmp_path, series, "--all").count("\nboth ") == 3


@pytest.mark.parametrize("operation", OPERATIONS)
def test_managed_memory_shows_what_moved_it(tmp_path, operation):
    text = shown(tmp_path, [factories.managed_copy(operation)])
    movement = "prefetch" if operation.startswith("prefetch") else "zero-copy"
    (row,) = [line for line in text.splitlines() if line.startswith(f"{operation} ")]
    assert f"bytes counted once; by {movement}" in text
    assert "managed" in row and ("managed 0 " in row) == (operation not in ("read", "write"))


def test_a_scan_stays_one_whatever_its_pages_are(tmp_path):
    scan = [
        factories.managed_copy(bytes=1 << power, bytes_moved=1 << power, source=place)
        for power in range(20, 26)
        for place in [factories.place("managed", None, 0) | {"huge_page_bytes": 1 << power}]
    ]
    for one in scan:
        one["verification"]["bytes_checked"] = one["bytes"]
    text = shown(tmp_path, scan)
    assert text.count("\nread ") == 1 and "5 more series" in " ".join(text.split())


def test_devices_with_the_host_are_no_pairs(tmp_path):
    copies = [
        one | {"experiment": "E2"}
        for device in range(4)
        for one in [factories.host_copy("h2d", device), *factories.both_ways(device)]
    ]
    read = [factories.managed_copy("read", device) for device in range(4)]
    text = shown(tmp_path, [*copies, *read])
    assert "row:" not in text
    # Devices that agree share a row; sums of both directions are of a device each.
    assert [text.count(f"\n{name} ") for name in ("h2d", "both", "read")] == [1, 4, 1]
    assert text.count("0-3") == 2

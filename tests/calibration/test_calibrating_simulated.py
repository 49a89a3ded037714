"""A rehearsal: references of the simulated partition from sessions of the simulated node.

The documents are of the programs themselves; of slow nodes an overlay made them slow.
"""

import os
import shutil
import subprocess

import pytest
import yaml
from calibrate_command import entries, run
from nodes_of_sessions import NIGHT, nights, times, write
from test_references_written import REPOSITORY

import factories
from fabricheck.core.errors import InvalidInputError
from fabricheck.judge.calibration import record
from fabricheck.judge.calibration.gathering import gather
from fabricheck.node import load as load_node
from fabricheck.node.system import platform_json
from fabricheck.references import calibrated
from fabricheck.references.listing import rows
from fabricheck.references.stated import References
from fabricheck.results.document import load
from plain_references import in_plain_form

ROOT = REPOSITORY.parent
SIM = "local:sim-mi250x"
CHECK = "p2p_kernel"
METRIC = "write_links4_worst"
OVERLAY = "link 0-1 at half width"
#: One direction of each quad pair is enough.
PAIRS = "0-1,2-3,4-5,6-7"


def simulate(folder, overlay=None):
    """Run p2p on a simulated node; return ReFrame's case, as it would be, and the document."""
    program = ROOT / "build" / "sim" / "bin" / "p2p"
    if not program.is_file():
        pytest.fail(f"There is no program {program}: build it with 'make build'.")
    platform, output = folder / "node.json", folder / "result.json"
    platform.write_text(platform_json(load_node("mi250x", overlay)))
    asked = ["--operations", "write", "--pairs", PAIRS, "--sizes", "1GiB", "--output", str(output)]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FABRICHECK_")}
    subprocess.run([str(program), *asked], env=kept | {"FABRICHECK_SIMULATED_NODE": str(platform)},
                   check=True, capture_output=True, timeout=60)  # fmt: skip
    document = load(output)
    worst = min(series["median"] for series in document["series"])
    values = {f"{SIM}:{METRIC}": [worst, 0, None, None, "GB/s", "pass"]}
    return factories.case(CHECK, system="local", partition="sim-mi250x", environ="sim",
                          tags=["E8"], perfvalues=values), document  # fmt: skip


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return simulate(tmp_path_factory.mktemp("healthy"))


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    overlay = ROOT / "config" / "nodes" / "overlays" / "link-0-1-half-width.yaml"
    return simulate(tmp_path_factory.mktemp("slow"), str(overlay))


@pytest.fixture
def folder(tmp_path):
    references = tmp_path / "references"
    references.mkdir()
    # Of the check that the sessions have, and of the metric.
    kept = in_plain_form(References(REPOSITORY), CHECK)
    kept[CHECK][SIM] = {METRIC: kept[CHECK][SIM][METRIC]}
    (references / "p2p.yaml").write_text(yaml.safe_dump(kept, sort_keys=False))
    return references


def job(folder, *nodes):
    made = {f"n{index}": one for index, one in enumerate(nodes)}
    return nights(folder.parent / "17", made, ids=False)


def entry(folder):
    return entries(folder, CHECK, SIM)[METRIC]


def test_all_that_is_written_says_that_it_is_simulated(command, folder, healthy, wording):
    before = entry(folder)
    said = run(command, folder, [job(folder, *[healthy] * 3)], "--write", system=SIM)
    wording(said.stdout.splitlines()[0])
    assert entry(folder) != before
    found = calibrated.read(folder / "calibrations" / "local-sim-mi250x.yaml")
    assert found.clock == "simulated"
    # Devices have no ids here, and nodes are told apart all the same.
    assert found.device_sets == {"A": [], "B": [], "C": []}
    assert found.checks[CHECK][METRIC].published.value == 148
    assert References(folder).origin(CHECK, SIM, METRIC).clock == "simulated"
    row = told(folder)
    assert (row.kind, row.how) == ("simulated", "median of 6 simulated sessions")


def told(folder):
    """Return what `fabricheck limits show` says of the metric."""
    from fabricheck.references.listing import CheckMetrics

    metrics = {METRIC: {"unit": "GB/s", "entry": entry(folder)}}
    (row,) = rows([CheckMetrics(CHECK, SIM, "sim", metrics)], References(folder), {SIM: None}, {})
    return row


def test_a_simulated_record_is_no_ground_for_another_partition(command, folder, healthy, wording):
    run(command, folder, [job(folder, *[healthy] * 3)], "--write", system=SIM)
    arguments = ["limits", "transfer", SIM, "lumi:gpu", "--output", str(folder)]
    wording(command(*arguments, code=4).stderr)


def test_a_majority_of_slow_simulated_nodes(command, folder, healthy, slow, wording):
    sessions = job(folder, slow, healthy, slow, slow, healthy)
    said = run(command, folder, [sessions], system=SIM)
    assert f"campaign 1, devices A (devices without ids), node n0 with overlay {OVERLAY}" in (
        said.stdout
    )
    wording(said.stderr)
    kept = record.build(gather([sessions], SIM).runs, SIM).checks[CHECK][METRIC]
    assert kept.entry == [0, None, None, "GB/s"]
    assert {name: group.median for name, group in kept.by_devices.items()} == pytest.approx(
        {"A": 75.211, "B": 150.4, "C": 75.211, "D": 75.211, "E": 150.4}, rel=1e-4
    )
    # One of five is set aside.
    shutil.rmtree(folder.parent / "17")
    few = job(folder, slow, *[healthy] * 4)
    wording(run(command, folder, [few], system=SIM).stderr)
    found = record.build(gather([few], SIM).runs, SIM)
    assert found.overlays == {"A": OVERLAY}
    assert found.checks[CHECK][METRIC].excluded == ["A"]


def test_all_simulated_nodes_slow(command, folder, slow, wording):
    sessions = job(folder, *[slow] * 3)
    refused = run(command, folder, [sessions], "--write", "--accept-looser", code=2, system=SIM)
    wording(refused.stderr)
    refused = run(command, folder, [sessions], "--write", "--accept-slow", code=2, system=SIM)
    wording(refused.stderr)
    assert not (folder / "calibrations").exists()


def test_an_impossible_simulated_value(command, folder, healthy, wording):
    case, document = times(*healthy, 1.6)
    refused = run(
        command, folder, [job(folder, (case, document), healthy, healthy)], code=4, system=SIM
    )
    wording(refused.stderr)


def test_three_simulated_sessions_only(command, folder, healthy, wording):
    sessions = nights(folder.parent / "17", {"n0": healthy}, often=3, ids=False)
    refused = run(command, folder, [sessions], "--write", code=4, system=SIM)
    wording(refused.stderr)


def test_two_modes_of_simulated_sessions(command, folder, healthy, slow, wording):
    """One node, with the overlay in every other session: each of both is a node of its own."""
    results = [
        write(folder.parent / f"r{number}", *one, number, number * NIGHT, "n0")
        for number, one in enumerate([healthy, slow] * 3)
    ]
    wording(run(command, folder, results, system=SIM).stderr)
    kept = record.build(gather(results, SIM).runs, SIM).checks[CHECK][METRIC]
    assert kept.entry == [0, None, None, "GB/s"]
    assert {name: (group.n, group.median) for name, group in kept.by_devices.items()} == {
        "A": (3, pytest.approx(150.4, rel=1e-4)), "B": (3, pytest.approx(75.211, rel=1e-4))
    }  # fmt: skip


def test_what_was_measured_is_not_calibrated_with_what_was_simulated(folder, healthy):
    case, document = healthy
    program = document["program"] | {"runtime": "rocm"}
    real = {**document, "clock": "measured", "node": None, "program": program}
    real.pop("simulated_s", None)
    results = write(folder.parent / "r", case, real, 0, 0, "n0")
    with pytest.raises(InvalidInputError, match=f"is measured, but {SIM} is a simulated partition"):
        gather([results], SIM)
    elsewhere = {**case, "system": "local", "partition": "host"}
    results = write(folder.parent / "s", elsewhere, document, 0, 0, "n0")
    with pytest.raises(InvalidInputError, match="is simulated, but local:host is no simulated"):
        gather([results], "local:host")


def test_what_was_published_outlives_the_entry_that_it_was_of(
    command, folder, healthy, slow, wording
):
    """The rehearsal of docs/limits.md: limits go first, and documents are not forgotten."""
    content = yaml.safe_load((folder / "p2p.yaml").read_text())
    # No other key has it.
    content[CHECK] = {key: content[CHECK][key] for key in (SIM,)}
    (folder / "p2p.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    first = nights(folder.parent / "16", {"n0": healthy}, often=1, ids=False)
    run(command, folder, [first], "--report-only", "--accept-looser", "--write", system=SIM)
    assert entry(folder) == [0, None, None, "GB/s"]
    refused = run(command, folder, [job(folder, *[slow] * 3)], "--write", code=2, system=SIM)
    wording(refused.stderr)

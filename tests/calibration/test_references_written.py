"""What a calibration writes: the record, over what the reference files state."""

import re
from pathlib import Path

import pytest
from calibrate_command import entries

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.judge.calibration import changes, record
from fabricheck.judge.calibration.gathering import gather
from fabricheck.references import calibrated
from fabricheck.references.stated import References
from session_builder import HOST, measured, several

REPOSITORY = Path(__file__).resolve().parents[2] / "reference_values"
STEADY = [100.0, 100.5, 99.5, 100.0, 100.2, 99.9]

STREAM = """\
# Head of the file.
stream_local:
  local:host:
    # Of a machine.
    $why: >-
      Nothing that it
      should reach.
    copy_worst: [0, null, null, GB/s]
    # The next one is of a sum.
    add_worst: [0, null, null, GB/s]  # not stated

  # Another partition.
  other:part:
    copy_worst: {limit: [1400, -0.05, null, GB/s], source: {kind: site, why: of a document}}

# The end.
mpi_data:
  local:host:
    unverified: [0, 0, 0, count]
"""


@pytest.fixture
def folder(tmp_path):
    references = tmp_path / "references"
    references.mkdir()
    (references / "stream.yaml").write_text(STREAM)
    return references


def proposal(folder, sessions):
    return changes.propose(record.build(gather(sessions, HOST).runs, HOST), folder)


def write(folder, sessions, accept_looser=False):
    return changes.write(proposal(folder, sessions), accept_looser)


def require(folder, entry):
    """Let the present file require something of copy_worst on local:host."""
    text = (folder / "stream.yaml").read_text()
    old = "    copy_worst: [0, null, null, GB/s]"
    assert text.count(old) == 1
    (folder / "stream.yaml").write_text(text.replace(old, f"    copy_worst: {entry}"))


def test_the_record_is_all_that_is_written(folder):
    """It is the one place of what is calibrated; the files stay, and others' entries count."""
    before = References(folder)
    assert write(folder, several(folder.parent, STEADY)) == folder / "calibrations/local-host.yaml"
    assert (folder / "stream.yaml").read_text() == STREAM
    after = References(folder)
    assert entries(folder) == {
        "copy_worst": [100.0, -0.02, None, "GB/s"],
        "add_worst": [0, None, None, "GB/s"],
    }
    for check, partition in (("stream_local", "other:part"), ("mpi_data", HOST)):
        assert after.entries(check, partition) == before.entries(check, partition)
    origin = after.origin("stream_local", HOST, "copy_worst")
    assert (origin.kind, origin.record) == ("calibration", "calibrations/local-host.yaml")
    assert after.origin("stream_local", HOST, "add_worst").kind == "report only"
    text = (folder / "calibrations" / "local-host.yaml").read_text()
    write(folder, several(folder.parent, STEADY))
    assert (folder / "calibrations" / "local-host.yaml").read_text() == text


def test_what_counts_no_longer_in_a_file_is_said(folder, wording):
    wording(proposal(folder, several(folder.parent, STEADY)).notes)


def test_the_record_holds_what_the_entries_rest_on(folder):
    sessions = several(folder.parent, STEADY)
    sessions.append(measured(folder.parent, 9, {"copy_worst": 1.0}, 70, result="fail"))
    write(folder, sessions)
    path = folder / "calibrations" / "local-host.yaml"
    assert "node1" not in path.read_text()  # the host's name
    found = calibrated.read(path)
    assert found.same_devices and found.device_sets == {"A": ["GPU-a", "GPU-b"]}
    assert [one.campaign for one in found.sessions] == [1, 1, 1, 2, 2, 2, 2]
    assert [one.model_dump() for one in found.unused] == [
        {"session": 7, "check": "stream_local", "why": "failed (fail)"}
    ]
    assert found.programs[0]["commit"] == "unknown" and found.versions[0]["driver"] == "none"
    one = found.checks["stream_local"]["copy_worst"]
    assert list(one.values.values()) == STEADY
    assert (one.n, one.median, one.min, one.max) == (6, 100.0, 99.5, 100.5)
    assert (one.campaigns[1].median, one.campaigns[2].median) == (100.0, 100.0)
    assert one.between_campaigns == 0 and one.within_run == 0
    assert one.tolerance.worst == pytest.approx(1.5 * 0.005)
    assert (one.entry, one.why) == ([100.0, -0.02, None, "GB/s"], "rule")
    assert one.by_devices is None


def test_sessions_of_other_devices_are_side_by_side(folder, wording):
    sessions = [
        measured(folder.parent, number, {"copy_worst": value}, 2 * number, ids)
        for number, (value, ids) in enumerate(
            [(100.0, ("GPU-a",)), (100.0, ("GPU-a", "GPU-b")), (90.0, ("GPU-c",)),
             (90.0, ("GPU-c",)), (90.0, ("GPU-c",)), (90.0, ("GPU-c",))]
        )
    ]  # fmt: skip
    found = proposal(folder, sessions).record
    assert not found.same_devices
    assert found.device_sets == {"A": ["GPU-a", "GPU-b"], "B": ["GPU-c"]}
    one = found.checks["stream_local"]["copy_worst"]
    assert {name: (group.n, group.median) for name, group in one.by_devices.items()} == {
        "A": (2, 100.0),
        "B": (4, 90.0),
    }
    wording(one.why)


@pytest.mark.parametrize(
    ("present", "effect"),
    [
        ("[0, null, null, GB/s]", "required"),
        ("[100.0, -0.02, null, GB/s]", "same"),
        ("[100.0, -0.05, null, GB/s]", "tighter"),
        ("[90, -0.02, null, GB/s]", "tighter"),
        ("[100.0, -0.01, null, GB/s]", "looser"),
        ("[103, -0.05, null, GB/s]", "tighter"),  # 97.85 at present, 98 then
        ("[104, -0.05, null, GB/s]", "looser"),  # 98.8 at present
        ("[100.0, -0.05, 0.1, GB/s]", "looser"),  # there would be no upper limit
    ],
)
def test_the_effect_of_a_change(folder, present, effect):
    require(folder, present)
    (copy,) = proposal(folder, several(folder.parent, STEADY)).changes
    assert (copy.metric, copy.effect) == ("copy_worst", effect)


def test_nothing_is_loosened_silently(folder, wording):
    require(folder, "[110, -0.05, null, GB/s]")
    text = (folder / "stream.yaml").read_text()
    sessions = several(folder.parent, STEADY)
    with pytest.raises(UsageError) as error:
        write(folder, sessions)
    wording(str(error.value))
    assert (folder / "stream.yaml").read_text() == text
    assert not (folder / "calibrations").exists()
    write(folder, sessions, accept_looser=True)
    assert entries(folder)["copy_worst"][0] == 100.0


def test_a_slow_majority_needs_to_be_accepted(folder):
    # Physics cannot tell that one fast session of six was the healthy one; the reference can.
    require(folder, "[100, -0.05, null, GB/s]")
    slow = several(folder.parent, [90.0, 90.1, 90.2, 90.0, 90.1, 100.0])
    (change,) = proposal(folder, slow).changes
    assert change.entry == (90.1, -0.02, None, "GB/s") and change.effect == "looser"
    with pytest.raises(UsageError, match=r"and 90\.1 GB/s itself misses the present limit"):
        write(folder, slow)


def test_a_requirement_that_noise_lifts_needs_to_be_accepted(folder):
    require(folder, "[100, -0.05, null, GB/s]")
    noisy = several(folder.parent, [100.0, 101, 99, 102, 80, 100])
    with pytest.raises(UsageError, match=r"would become report only \(noisy: 80 to 102 GB/s"):
        write(folder, noisy)


@pytest.mark.parametrize("stated", ["[0, 0, 0, count]", "[0, null, 0, count]", None])
def test_counts_keep_what_is_required_of_them(folder, stated):
    own = "    unverified: [0, 0, 0, count]\n"
    text = STREAM.replace(own, "" if stated is None else f"    unverified: {stated}\n")
    (folder / "stream.yaml").write_text(text)
    before = entries(folder, "mpi_data")
    write(folder, several(folder.parent, [0.0] * 6, "unverified", check="mpi_data", unit="count"))
    assert entries(folder, "mpi_data") == (before or {"unverified": [0, 0, 0, "count"]})


def test_a_metric_of_the_record_that_no_session_has_any_longer_becomes_report_only(folder):
    both = [measured(folder.parent / "both", number, {"copy_worst": one, "new": one}, 30 * number)
            for number, one in enumerate(STEADY)]  # fmt: skip
    write(folder, both)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"new: .* report only \(no session measures it\)"):
            write(folder, several(folder.parent, STEADY))
    write(folder, several(folder.parent, STEADY), accept_looser=True)
    assert entries(folder)["new"] == [0, None, None, "GB/s"]
    # It stays known, so that a later limit of it is not the first one.
    write(folder, several(folder.parent, STEADY))
    assert entries(folder)["new"] == [0, None, None, "GB/s"]
    (new,) = [one for one in proposal(folder, both).changes if one.metric == "new"]
    assert new.effect == "required"


def test_an_expected_failure_stays(folder, wording):
    require(folder, "[$xfail, known, [100, -0.05, null, GB/s]]")
    found = proposal(folder, several(folder.parent, STEADY))
    assert found.changes == []
    wording(found.notes)


def test_a_record_on_which_a_lost_check_rests_is_not_replaced(folder):
    write(folder, several(folder.parent, STEADY))
    other = several(folder.parent / "other", [0.0] * 6, "unverified", check="mpi_data",
                    unit="count")  # fmt: skip
    with pytest.raises(InvalidInputError, match="The references of stream_local on local:host"):
        write(folder, other)


def test_a_check_without_a_reference_file(folder):
    with pytest.raises(NotFoundError, match=r"No file in .* has references of check unknown"):
        proposal(folder, several(folder.parent, STEADY, check="unknown"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Cut.\nstream_local: [", "line 3: it is not valid YAML"),
        (
            "one: {a:b: {}}\none: {a:b: {}}\n",
            r"line 2: it is not valid YAML \(the key 'one' occurs twice\)",
        ),
        ("- 1\n", "it must contain a mapping"),
        ("", "it must contain a mapping"),
        ("# Cut.\n", "it must contain a mapping"),
        ("{}", "dictionary should have at least 1 item"),
        ("one: text\n", "one: it must contain a mapping"),
        ("one: {$index: [$partition], a:b: {}}\n", r"one.\$index: it must contain a mapping"),
        ("one:\n  a:b: [1]\n", "one.a:b: it must contain a mapping"),
        ("one:\n  a:b: {$why: [1]}\n", r"\$why of one on a:b is not a text"),
        (
            "one:\n  a:b: {m: {limit: [1, -0.1, null, us]}}\n",
            r"m of one on a:b is neither \[value, lower, upper, unit\] nor a mapping of limit",
        ),
        (
            "one:\n  a:b:\n    m_{worst,median}: [0, null, null, us]\n"
            "    m_worst: [0, null, null, us]\n",
            "m_worst of one on a:b is there twice",
        ),
    ],
)
def test_a_file_that_can_not_be_read(folder, text, said):
    (folder / "broken.yaml").write_text(text)
    with pytest.raises(InvalidInputError, match=rf"/broken\.yaml: {said}"):
        References(folder)


def test_files_of_the_folder_that_hold_no_references(folder):
    for name in ("published_values.yaml", "fidelity-mi250x.yaml"):
        (folder / name).write_text("records: []\n")
    assert References(folder).file_of.keys() == {"stream_local", "mpi_data"}


def test_what_is_no_record(tmp_path):
    path = tmp_path / "record.yaml"
    with pytest.raises(NotFoundError, match="There is no calibration record"):
        calibrated.read(path)
    path.write_text("kind: something\n")
    with pytest.raises(
        InvalidInputError, match=r"record\.yaml: is not a calibration record \(kind: "
    ):
        calibrated.read(path)


@pytest.mark.parametrize(
    ("pattern", "damaged", "said"),
    [
        *(
            (
                r"\bmedian: [\d.]+",
                f"median: {value}",
                "median: input should be a (finite|valid) number",
            )
            for value in ("nan", ".nan", ".inf", "inf")
        ),
        # YAML's true is 1 to Python, and would be the first session.
        (r"\bvalues: \{\d+", "values: {true", "input should be a valid integer, not True"),
    ],
)
def test_a_record_with_something_else_for_a_number(folder, pattern, damaged, said):
    write(folder, several(folder.parent, STEADY))
    path = folder / "calibrations" / "local-host.yaml"
    path.write_text(re.sub(pattern, damaged, path.read_text(), count=1))
    with pytest.raises(InvalidInputError, match=rf"\(checks\..*{said}"):
        calibrated.read(path)


def test_a_record_of_an_earlier_format(folder):
    write(folder, several(folder.parent, STEADY))
    path = folder / "calibrations" / "local-host.yaml"
    path.write_text(path.read_text().replace("format: 2", "format: 1"))
    said = r"is not a calibration record \(format: input should be 2, not 1\)\.$"
    with pytest.raises(InvalidInputError, match=said):
        References(folder).record(HOST)


def test_a_long_value_is_not_repeated_in_a_sentence(folder):
    write(folder, several(folder.parent, STEADY))
    path = folder / "calibrations" / "local-host.yaml"
    path.write_text(path.read_text().replace("same_devices: true", f"same_devices: {'x' * 99}"))
    with pytest.raises(
        InvalidInputError, match=r"same_devices: input should be .*boolean"
    ) as error:
        calibrated.read(path)
    assert "xxx" not in str(error.value)


def test_a_record_counts_for_its_own_partition_alone(folder):
    """a-b:c and a:b-c have one name of a file."""
    write(folder, several(folder.parent, STEADY))
    own = folder / "calibrations" / "local-host.yaml"
    text = own.read_text().replace("partition: local:host", "partition: a-b:c")
    (folder / "calibrations" / "a-b-c.yaml").write_text(text)
    assert entries(folder, partition="a-b:c")["copy_worst"] == [100.0, -0.02, None, "GB/s"]
    assert entries(folder, partition="a:b-c") == {}


@pytest.mark.parametrize(
    "entry", ["[]", "[1]", "[1, 2, 3, 4, 5]", "[.nan, -0.02, null, GB/s]", "[100, -0.02, null, us]"]
)
def test_a_record_with_an_entry_that_is_no_reference(folder, entry, wording):
    write(folder, several(folder.parent, STEADY))
    path = folder / "calibrations" / "local-host.yaml"
    text = path.read_text()
    own = "entry: [100.0, -0.02, null, GB/s]"
    assert own in text
    path.write_text(text.replace(own, f"entry: {entry}"))
    with pytest.raises(InvalidInputError) as error:
        calibrated.read(path)
    wording(str(error.value))


def test_a_check_of_the_file_that_was_never_calibrated_is_not_lost(folder):
    """The record never had the check."""
    file = folder / "stream.yaml"
    other = "stream_other:\n  local:host:\n    sum: [5, -0.1, null, GB/s]\n"
    file.write_text(f"{file.read_text()}\n{other}")
    for _ in range(2):
        write(folder, several(folder.parent, STEADY))
    assert entries(folder, "stream_other") == {"sum": [5, -0.1, None, "GB/s"]}

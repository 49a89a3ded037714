"""What a log says of devices after a program ended badly: who is told what, and who is drained."""

import pytest

import factories
from session_builder import SessionBuilder, failed, good_case, rules

NETIR = "NVRM: Xid (PCI:0000:41:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)"


def aborted(text, row, kind="unclear", addresses=("0000:41:00.0",)):
    """Build the case of a program that was aborted, and its document with lines of a log."""
    lines = [
        {"kind": kind, "pci_address": address, "text": text, "row": row} for address in addresses
    ]
    document = factories.on_h200(
        aftermath=factories.aftermath(kernel_log=lines),
        complete=False,
        finished=None,
        outcome={"exit_code": None, "status": "running", "message": None},
    )
    return good_case() | failed("sanity", "ended", job_exitcode=134), document


@pytest.mark.parametrize(
    ("row", "kind", "status", "live"),
    [
        ("xid-79", "hardware", "HW-FAIL", True),
        ("xid-74-connection", "hardware", "HW-FAIL", True),
        ("xid-74-parity", "hardware", "INCOMPLETE", None),
        ("xid-74", "unclear", "INCOMPLETE", None),
        ("xid-94", "unclear", "INCOMPLETE", None),
        ("xid-149-150-fatal", "unclear", "INCOMPLETE", None),
    ],
)
def test_only_a_line_on_hardware_drains_a_node(tmp_path, row, kind, status, live):
    case, document = aborted("NVRM: Xid", row, kind)
    found = SessionBuilder(tmp_path).add(case, document).verdicts()["node1"]
    assert found.status == status
    assert (found.drain.live if found.drain is not None else None) == live
    rule = "device-error" if status == "HW-FAIL" else "log-line"
    assert rule in rules(found)


FIRST, SECOND = "0000:41:00.0", "0000:5d:00.0"


@pytest.mark.parametrize(
    ("programs", "status"),
    [
        ([[FIRST, FIRST]], "INCOMPLETE"),
        ([[FIRST, FIRST, FIRST]], "HW-FAIL"),
        ([[FIRST, FIRST, SECOND, SECOND]], "INCOMPLETE"),
        ([[FIRST], [FIRST], [SECOND]], "INCOMPLETE"),
        ([[FIRST], [FIRST], [FIRST]], "HW-FAIL"),
    ],
)
def test_an_error_to_report_if_it_comes_again_is_evidence_from_the_third_one_on(
    tmp_path, programs, status
):
    session = SessionBuilder(tmp_path)
    for number, addresses in enumerate(programs):
        case, document = aborted("NVRM: Xid", "xid-74-parity", "hardware", addresses)
        names = {"display_name": f"stream {number}", "unique_name": f"stream_{number}"}
        session.add(case | names, document)
    found = session.verdict()
    assert found.status == status
    named = [reason for reason in found.reasons if reason.rule == "device-error"]
    assert [reason.component for reason in named] == (
        [f"device 0 ({FIRST})"] if status == "HW-FAIL" else []
    )


def test_an_uncorrected_counter_stays_evidence_beside_a_contained_error(tmp_path):
    case, document = aborted("NVRM: Xid (PCI:0000:41:00): 94, Contained", "xid-94")
    errors = {"memory_errors": {"corrected": 0, "uncorrected": 1}}
    first = [factories.device_state(0), factories.device_state(1)]
    last = [factories.device_state(0, **errors), factories.device_state(1)]
    found = (
        SessionBuilder(tmp_path)
        .add(case, document | {"state": factories.state(first, last)})
        .verdict()
    )
    assert (found.status, rules(found)) == ("HW-FAIL", {"memory-errors", "log-line", "ended"})


def test_a_line_of_unknown_meaning_is_quoted_in_verdict_results_and_page(
    command, tmp_path, monkeypatch, wording
):
    results = tmp_path / "results"
    monkeypatch.setenv("FABRICHECK_RESULTS", str(results))
    SessionBuilder(results).each(
        [aborted("amdgpu 0000:41:00.0: <b>new words</b>", "none-of-today")]
    ).write()
    # Status 4: the document is that of an unfinished run.
    command("report", "--output", tmp_path / "page", code=4)
    page = tmp_path / "page" / "index.html"
    shown = [
        command("verdict", code=None).stdout,
        command("results", "show", code=None).stdout,
        page.read_text().replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", '"'),
    ]
    (node,) = command("verdict", code=None, json=True).json["nodes"]
    (told,) = [one["sentence"] for one in node["reasons"] if one["rule"] == "log-line"]
    wording(told)
    line = '"amdgpu 0000:41:00.0: <b>new words</b>"'
    assert line in told and all(line in " ".join(text.split()) for text in shown)
    assert "<b>new words" not in page.read_text()


def test_the_action_of_the_vendor_stands_where_the_line_is_told(tmp_path, wording):
    found = SessionBuilder(tmp_path).add(*aborted(NETIR, "xid-149-150-fatal")).verdict()
    (told,) = [reason.sentence for reason in found.reasons if reason.rule == "log-line"]
    wording(told)
    assert f'"{NETIR}"' in told

"""Sessions to be judged: reports and documents of one or several nodes, as ReFrame leaves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import factories
from fabricheck.judge.verdict import judging
from fabricheck.results import reading
from factories import judged

#: The partition of the cases; no site of the repository has it, so nothing is expected there.
WHERE = "cluster:gpu"


def kept(name="copy_worst") -> dict[str, list]:
    """Build a metric that kept its limit."""
    return {f"{WHERE}:{name}": judged()}


def kept_on_gpus(*experiments: str) -> dict[str, Any]:
    """Build what makes a case one that kept a limit of some experiments.

    :param experiments: by default those of the memory, the host links and the pairs of GPUs.
    """
    alike = {f"{WHERE}:of_members_alike": judged(100.0, 100.0, -0.05, None, "%")}
    tags = [*(experiments or ("E1", "E2", "E7")), "smoke"]
    return {"perfvalues": kept() | alike, "tags": tags}


def good(name: str = "stream_local", node: str | None = "node1", **changes: Any) -> dict[str, Any]:
    """Build a case that passed on a node of a scheduler; on this machine where the node is None."""
    placed = {"scheduler": "local", "job_nodelist": ["vm"]}
    shown = name
    if node is not None:
        placed = {"scheduler": "squeue", "job_nodelist": [node]}
        shown = f"{name} %.part={WHERE} %.nid={node}"
    system, partition = WHERE.split(":")
    own = {"system": system, "partition": partition, "display_name": shown}
    unique = {"unique_name": f"{name}_{node}", "perfvalues": kept(), "job_exitcode": 0}
    return factories.case(name) | own | unique | placed | changes


def failed(phase: str, reason: str = "no reason", error: str = "SanityError", **changes: Any):
    """Build what makes a case one that failed in a phase."""
    return {
        "result": "fail",
        "fail_phase": phase,
        "fail_reason": reason,
        "fail_info": {"exc_type": error},
    } | changes


def missed(metric: str = "copy_worst", unit: str = "GB/s", **changes: Any) -> dict[str, Any]:
    """Build what makes a case one that missed a reference."""
    own = (
        f"Metric {metric}: device 0 (0000:c1:00.0) of node node1 measured 7 {unit}, and at least 9"
    )
    reason = f"performance error: failed to meet reference(s): {metric}=7.00000001\n{own}."
    values = {f"{WHERE}:{metric}": judged(7.0, unit=unit, result="fail")}
    return failed("performance", reason, "PerformanceError", perfvalues=values) | changes


def ended(status: str, code: int | None, message: str | None = "it says so", **changes: Any):
    """Build the document of a run that ended with a status."""
    complete = status in ("good", "wrong-data", "too-noisy")
    outcome = {"exit_code": code, "status": status, "message": message}
    return factories.document(complete=complete, outcome=outcome) | changes


def write(
    results: Path,
    cases: list[tuple[dict[str, Any], dict[str, Any] | None]],
    number: int = 0,
    command: str = "reframe -c checks -r -t smoke",
    earlier: list[dict[str, Any]] = (),
    start: float = factories.SESSION_START,
) -> Path:
    """Write a session of cases with their documents (None for none); returns the results folder."""
    for case, document in cases:
        kind = "output" if case["result"] == "pass" else "stage"
        if document is not None:
            folder = factories.case_folder(results, case["unique_name"], kind)
            name = (
                "result.json"
                if document["outcome"]["status"] != "running"
                else "result.json.partial"
            )
            path = factories.write(folder / name, document)
            factories.write_metrics(path, case.get("perfvalues") or {})
    runs = [earlier] if earlier else []
    report = factories.session(results, [case for case, _ in cases], number, start, runs)
    content = json.loads(report.read_text())
    content["session_info"] |= {"cmdline": command, "version": "4.10.4"}
    report.write_text(json.dumps(content))
    return results


def judge(*folders: Path, nodes: tuple[str, ...] = (), set_tag: str | None = None):
    """Return the verdicts of the sessions in some folders, by node; simulated ones with a star."""
    found = judging.judge(reading.read([str(one) for one in folders]), nodes, set_tag)
    return {f"{one.node}{'*' if one.simulated else ''}": one for one in found}


def only(results: Path, case: dict[str, Any], document: dict[str, Any] | None, **more: Any):
    """Return the verdict on the one node of a session of one case."""
    (found,) = judge(write(results, [(case, document)], **more)).values()
    return found


def rules(verdict) -> set[str]:
    """Return the names of the rules that a verdict rests on."""
    return {reason.rule for reason in verdict.reasons}


def of_mi250x(slow, **changes):
    """Return a document of local copies on the simulated node, one device of it slow."""
    series = [
        factories.series(
            [7.0 if index == slow else 9.4],
            host_clock=None,
            device=index,
            device_set=[index],
            source=factories.place(device=index),
            destination=factories.place(device=index),
        )
        for index in range(8)
    ]
    devices = [factories.device(index) for index in range(8)]
    return factories.simulated_document(devices=devices, series=series, **changes)


def versions(driver="6.12.12"):
    """Build the versions of a document by its driver."""
    return {"runtime": "6.3", "driver": driver}


def sound(driver="6.12.12"):
    """Build what makes a case one that passed, and its document."""
    return {}, factories.document(versions=versions(driver))


def slow(driver="6.12.12"):
    """Build what makes a case one that missed its reference, and its document."""
    return missed(), factories.document(versions=versions(driver))


def hung(driver="6.12.12"):
    """Build what makes a case one that hung, and its document."""
    return failed("sanity", "the time limit", job_exitcode=6), ended(
        "time-limit", 6, "120 s were over", versions=versions(driver)
    )


def crashed(driver="6.12.12"):
    """Build what makes a case one that a signal of its own ended, and its document."""
    return failed("sanity", "ended by signal 11", job_exitcode=139), factories.killed_document() | {
        "versions": versions(driver)
    }


def refused(driver="6.12.12", status="refused", code=11):
    """Build what makes a case one of which a call of the runtime failed, and its document."""
    document = ended(status, code, "hipMemcpy failed", versions=versions(driver))
    return failed("sanity", job_exitcode=code), document


def over_nodes(folder, *sessions):
    """Judge nodes by sessions, each with the case and the document of every node."""
    folders = []
    for number, nodes in enumerate(sessions):
        cases = [(good(node=node) | case, document) for node, (case, document) in nodes.items()]
        folders.append(write(folder / str(number), cases, start=factories.SESSION_START + number))
    return judge(*folders)


def of_many(bad, number=20, others=None):
    """Return the nodes of a session, the first of which is bad."""
    return {f"node{n}": bad if n == 1 else others or sound() for n in range(1, number + 1)}

"""Sessions as ReFrame leaves them: what each check came to on each node, and its document.

    session = SessionBuilder(tmp_path)
    session.passed("memcpy")
    session.missed("copy_worst", 7.0, least=9.0, node="node2")
    session.failed("run", "the time limit", node="node3")
    verdicts = session.verdicts()

`tests/factories.py` builds the parts: documents, series, states, cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Self

import factories
from factories import judged

#: The partition of the cases; no site of the repository has it, so nothing is expected there.
PARTITION = "cluster:gpu"

#: This machine, which has a partition of that name.
HOST = "local:host"

#: What is simulated on the nodes of a job.
SIMULATED = "cluster:model"

MINUTE_S = 60

#: The node of a case that names none: node1 of a scheduler, or this machine, which has a partition.
USUAL = ""

#: The document of a check that passed.
GOOD = factories.document()

#: A case's changes and its document, as `missed` and `failed` make them.
Outcome = tuple[dict[str, Any], dict[str, Any] | None]


def failed(
    phase: str, reason: str = "no reason", error: str = "SanityError", **changes: Any
) -> dict[str, Any]:
    """Build what makes a case one that failed in a phase."""
    return {
        "result": "fail",
        "fail_phase": phase,
        "fail_reason": reason,
        "fail_info": {"exc_type": error},
    } | changes


def missed(
    metric: str = "copy_worst",
    value: float = 7.0,
    least: float = 9.0,
    unit: str = "GB/s",
    where: str = PARTITION,
    **changes: Any,
) -> dict[str, Any]:
    """Build what makes a case one of which a metric missed its limit."""
    own = (
        f"Metric {metric}: device 0 (0000:c1:00.0) of node node1 measured {value:g} {unit}, and "
        f"at least {least:g}"
    )
    reason = f"performance error: failed to meet reference(s): {metric}={value + 1e-8:.8f}\n{own}."
    values = {f"{where}:{metric}": judged(value, least / 0.9, unit=unit, result="fail")}
    return failed("performance", reason, "PerformanceError", perfvalues=values) | changes


def kept_on_gpus(*experiments: str) -> dict[str, Any]:
    """Build what makes a case one that kept a limit of some experiments.

    :param experiments: by default those of the memory, the host links and the pairs of GPUs.
    """
    alike = {f"{PARTITION}:of_members_alike": judged(100.0, 100.0, -0.05, None, "%")}
    tags = [*(experiments or ("E1", "E2", "E7")), "smoke"]
    return {"perfvalues": {f"{PARTITION}:copy_worst": judged()} | alike, "tags": tags}


def ended(
    status: str, code: int | None, message: str | None = "it says so", **changes: Any
) -> dict[str, Any]:
    """Build the document of a run that ended with a status."""
    complete = status in ("good", "wrong-data", "too-noisy")
    outcome = {"exit_code": code, "status": status, "message": message}
    return factories.document(complete=complete, outcome=outcome) | changes


def document_of(node: str, value: float = 10.0, **changes: Any) -> dict[str, Any]:
    """Build the document of a node whose copies have this bandwidth, in GB/s, and little noise."""
    samples = [value * (1 + step / 1000) for step in range(-4, 5)]
    series = [factories.series(samples, host_clock=None)]
    content = factories.document(series=series, **changes)
    content["host"] = content["host"] | {"hostname": f"{node}.cluster", "scheduler_node": node}
    return content


def good_case(
    check: str = "stream_local",
    node: str | None = "node1",
    where: str = PARTITION,
    **changes: Any,
) -> dict[str, Any]:
    """Build a case that passed on a node of a scheduler; without a node on this machine."""
    system, partition = where.split(":")
    case = factories.case(check, system=system, partition=partition)
    if node is None:
        case |= {"scheduler": "local", "job_nodelist": ["vm"]}
    else:
        case |= {
            "display_name": f"{check} %.part={where} %.nid={node}",
            "unique_name": f"{check}_{node}",
            "scheduler": "squeue",
            "job_nodelist": [node],
        }
    kept = {f"{where}:copy_worst": judged()}
    return case | {"perfvalues": kept, "job_exitcode": 0} | changes


class SessionBuilder:
    """A session in a results folder, until it is written.

    number: of its report. command: what was typed; None where the report does not say. stamp: that
    of its mark.
    """

    def __init__(
        self,
        results: Path,
        number: int = 0,
        *,
        where: str = PARTITION,
        command: str | None = "reframe -c checks -r -t smoke",
        start: float = factories.SESSION_START,
        stamp: str | None = None,
    ) -> None:
        self.results = results
        self.number = number
        self.where = where
        self.command = command
        self.start = start
        self.stamp = stamp
        self.runs: list[list[Outcome]] = [[]]

    def add(self, case: dict[str, Any], document: dict[str, Any] | None = None) -> Self:
        """Add a case with its document, None where it left none."""
        self.runs[-1].append((case, document))
        return self

    def bare(self, cases: Iterable[dict[str, Any]]) -> Self:
        """Add cases that left no document."""
        return self.each((case, None) for case in cases)

    def rerun(self) -> Self:
        """Let what is added from here on belong to a further run, as one of --max-retries."""
        self.runs.append([])
        return self

    def each(self, outcomes: Iterable[Outcome]) -> Self:
        """Add cases, each with its document."""
        self.runs[-1].extend(outcomes)
        return self

    def check(
        self,
        check: str = "stream_local",
        node: str | None = USUAL,
        document: dict[str, Any] | None = GOOD,
        **changes: Any,
    ) -> Self:
        """Let a check come to what the changes of its case say.

        where: the full name of another partition. All else replaces fields of the case.
        """
        where = changes.pop("where", self.where)
        if node == USUAL:
            node = None if where.startswith("local:") else "node1"
        return self.add(good_case(check, node, where, **changes), document)

    def passed(
        self,
        check: str = "stream_local",
        node: str | None = USUAL,
        document: dict[str, Any] | None = GOOD,
        **changes: Any,
    ) -> Self:
        """Let a check pass: its copies reached 10 GB/s, and 9 are required."""
        return self.check(check, node, document, **changes)

    def missed(
        self,
        metric: str = "copy_worst",
        value: float = 7.0,
        least: float = 9.0,
        unit: str = "GB/s",
        *,
        check: str = "stream_local",
        node: str | None = USUAL,
        document: dict[str, Any] | None = GOOD,
        **changes: Any,
    ) -> Self:
        """Let a metric of a check miss its limit."""
        slow = missed(metric, value, least, unit, changes.get("where", self.where))
        return self.check(check, node, document, **slow | changes)

    def failed(
        self,
        phase: str,
        reason: str = "no reason",
        error: str = "SanityError",
        *,
        check: str = "stream_local",
        node: str | None = USUAL,
        document: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Self:
        """Let a check fail in a phase of ReFrame; it left no document unless one is given."""
        return self.check(check, node, document, **failed(phase, reason, error) | changes)

    def lost(self, node: str, check: str = "stream_local") -> Self:
        """Let the job of a check never get its node."""
        never = {"result": "fail", "job_nodelist": [], "perfvalues": None, "job_exitcode": None}
        reason = "job killed because max_pending_time was exceeded"
        return self.check(check, node, None, **never, fail_reason=reason)

    def nodes(self, outcomes: Mapping[str, Outcome], check: str = "stream_local") -> Self:
        """Let a check come to something on each node."""
        for node, (changes, document) in outcomes.items():
            self.check(check, node, document, **changes)
        return self

    def copies(self, values: Mapping[str, float | None], check: str = "stream_local") -> Self:
        """Let copies reach so many GB/s on each node, where 9 are required; None: it is lost."""
        for node, value in values.items():
            if value is None:
                self.lost(node, check)
            else:
                self.add(self._copied(check, node, value), document_of(node, value))
        return self

    def _copied(self, check: str, node: str, value: float, **changes: Any) -> dict[str, Any]:
        result = "pass" if value >= 9.0 else "fail"
        values = {f"{self.where}:copy_worst": judged(value, result=result)}
        return good_case(check, node, self.where, perfvalues=values, result=result, **changes)

    def measured(
        self,
        values: Mapping[str, float],
        unit: str = "GB/s",
        check: str = "stream_local",
        ids: Sequence[str] = ("GPU-a", "GPU-b"),
        document: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> Self:
        """Let a check on this machine measure metrics that have no limit.

        :param ids: of its devices.
        :param document: what is otherwise in it.
        """
        series = [
            factories.series(
                [value] * 9, unit=unit, better="lower" if unit == "us" else "higher",
                host_clock=None,
            )
            for value in values.values()
            if 0 < value < float("inf") and unit != "count"
        ]  # fmt: skip
        content = {
            "started": datetime.fromtimestamp(self.start + 10, UTC).isoformat(),
            "finished": datetime.fromtimestamp(self.start + 20, UTC).isoformat(),
            "devices": [factories.device(index, unique_id=one) for index, one in enumerate(ids)],
            "series": series or [factories.series()],
        } | dict(document or {})
        case = factories.case(check, perfvalues=without_limits(values, unit, self.where))
        return self.add(case | changes, factories.document(**content))

    def write(self) -> Path:
        """Write the report, the documents and what metrics are made of; return the folder."""
        self.write_report()
        return self.results

    def write_report(self) -> Path:
        """Write all that `write` does; return the path of ReFrame's report."""
        for case, document in chain.from_iterable(self.runs):
            if document is not None:
                write_document(self.results, case, document)
        session_info = {
            "data_version": "4.2",
            "uuid": f"{self.number:08x}-0000-4000-8000-000000000000",
            "hostname": "node1",
            "time_start_unix": self.start,
            "time_end_unix": self.start + MINUTE_S,
            "prefix_output": str(self.results / "output"),
            "prefix_stage": str(self.results / "stage"),
        }
        if self.stamp is not None:
            session_info["log_files"] = [f"/results/logs/reframe-{self.stamp}.log"]
        if self.command is not None:
            session_info |= {"cmdline": self.command, "version": "4.10.4"}
        runs = [{"testcases": [placed(self.results, case) for case, _ in run]} for run in self.runs]
        report = {"session_info": session_info, "runs": runs}
        return factories.write(self.results / "reports" / f"run-{self.number}.json", report)

    def verdicts(self, nodes: Sequence[str] = (), set_tag: str | None = None) -> dict[str, Any]:
        """Write it; return the verdicts by node."""
        return judge(self.write(), nodes=nodes, set_tag=set_tag)

    def verdict(self) -> Any:
        """Write it; return the verdict on its one node."""
        (found,) = self.verdicts().values()
        return found


def placed(results: Path, case: dict[str, Any]) -> dict[str, Any]:
    """Return a case with its folders, which `factories.case_folder` names unless it states them."""
    name = case["unique_name"]
    folders = {"stagedir": str(factories.case_folder(results, name, "stage"))}
    if case["result"] == "pass":
        folders["outputdir"] = str(factories.case_folder(results, name))
    return folders | case


def write_document(results: Path, case: dict[str, Any], document: dict[str, Any]) -> Path:
    """Write the document of a case and what its metrics are made of; return its path."""
    folders = placed(results, case)
    folder = Path(folders.get("outputdir", folders["stagedir"]))
    running = document["outcome"]["status"] == "running"
    name = "result.json.partial" if running else "result.json"
    path = factories.write(folder / name, document)
    factories.write_metrics(path, case.get("perfvalues") or {})
    return path


def without_limits(
    values: Mapping[str, float], unit: str = "GB/s", where: str = HOST
) -> dict[str, Any]:
    """Build what ReFrame records of metrics that have no limit."""
    return {f"{where}:{name}": judged(value, 0, None, None, unit) for name, value in values.items()}


def measured(
    folder: Path,
    number: int,
    values: Mapping[str, float],
    minutes: float,
    ids: Sequence[str] = ("GPU-a", "GPU-b"),
    **more: Any,
) -> Path:
    """Write a session of one check on this machine in a folder of its own; returns the folder.

    :param minutes: when it began, after the first one.
    """
    start = factories.SESSION_START + minutes * MINUTE_S
    results = folder / f"session-{number}"
    session = SessionBuilder(results, number, where=HOST, command=None, start=start)
    return session.measured(values, ids=ids, **more).write()


def several(
    folder: Path, values: Sequence[float], metric: str = "copy_worst", **more: Any
) -> list[Path]:
    """Write sessions of one metric, one a minute after the other, the later half after a pause."""
    half = len(values) // 2
    return [
        measured(
            folder, number, {metric: value}, 2 * number + (60 if number >= half else 0), **more
        )
        for number, value in enumerate(values)
    ]


def write_job(
    results: Path,
    values: Mapping[str, float | None],
    name: str = "17",
    simulated: Mapping[str, float] | None = None,
    options: Mapping[str, Any] | None = None,
    **requested: dict[str, Any],
) -> Path:
    """Write a job over many nodes with a session a node; returns its folder.

    A node without a value has no results folder. simulated: by node the value of a partition that
    is simulated there. options: of the sessions. requested: by node what else is known of it.
    """
    folder = results / "every-node" / name
    folder.mkdir(parents=True)
    shares = {}
    for node, value in values.items():
        shares[node] = {"results": node if value is not None else None} | requested.get(node, {})
        if value is not None:
            session = SessionBuilder(folder / node, **options or {})
            _of_job(session, node, value, simulated and simulated[node])
    content = {"partition": None, "started": "2026-01-02T03:04:00Z", "job": name, "nodes": shares}
    factories.write(folder / "nodes.json", {"form": "fabricheck-nodes-1"} | content)
    return folder


def _of_job(session: SessionBuilder, node: str, value: float, simulated: float | None) -> None:
    """Write the session of a node of a job: steps of the allocation, to which ReFrame is local."""
    step = {"scheduler": "local", "job_nodelist": ["login"]}

    def add(check: str, value: float, document: dict[str, Any], **changes: Any) -> None:
        names = {"display_name": check, "unique_name": check}
        case = session._copied(check, node, value, **step, **names)
        session.add(case | changes, document)

    add("stream_local", value, document_of(node, value))
    if simulated is not None:
        model = factories.simulated_document()
        told = {key: model[key] for key in ("clock", "node", "program")}
        partition = SIMULATED.split(":")[1]
        add("stream_scan", simulated, document_of(node, simulated) | told, partition=partition)
    session.write()


def judge(*folders: Path, nodes: Sequence[str] = (), set_tag: str | None = None) -> dict[str, Any]:
    """Return the verdicts of the sessions in some folders, by node; simulated ones with a star."""
    # Tests that only read sessions need nothing of it.
    from fabricheck.judge.verdict import judging
    from fabricheck.results import reading

    found = judging.judge(reading.read([str(one) for one in folders]), tuple(nodes), set_tag)
    return {f"{one.node}{'*' if one.simulated else ''}": one for one in found}


def rules(verdict: Any) -> set[str]:
    """Return the names of the rules that a verdict rests on."""
    return {reason.rule for reason in verdict.reasons}


def of_mi250x(slow: int | None, **changes: Any) -> dict[str, Any]:
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


def versions(driver: str = "6.12.12") -> dict[str, str]:
    """Build the versions of a document by its driver."""
    return {"runtime": "6.3", "driver": driver}


def sound_node(driver: str = "6.12.12") -> Outcome:
    """Build the outcome of a node whose check passed."""
    return {}, factories.document(versions=versions(driver))


def slow_node(driver: str = "6.12.12") -> Outcome:
    """Build the outcome of a node that missed its limit."""
    return missed(), factories.document(versions=versions(driver))


def hung_node(driver: str = "6.12.12") -> Outcome:
    """Build the outcome of a node on which the check hung."""
    document = ended("time-limit", 6, "120 s were over", versions=versions(driver))
    return failed("sanity", "the time limit", job_exitcode=6), document


def crashed_node(driver: str = "6.12.12") -> Outcome:
    """Build the outcome of a node on which a signal of its own ended the program."""
    document = factories.killed_document() | {"versions": versions(driver)}
    return failed("sanity", "ended by signal 11", job_exitcode=139), document


def refused_node(driver: str = "6.12.12", status: str = "refused", code: int = 11) -> Outcome:
    """Build the outcome of a node on which a call of the runtime failed."""
    document = ended(status, code, "hipMemcpy failed", versions=versions(driver))
    return failed("sanity", job_exitcode=code), document


def of_many(bad: Outcome, number: int = 20, others: Outcome | None = None) -> dict[str, Outcome]:
    """Return the nodes of a session, the first of which is bad."""
    return {f"node{n}": bad if n == 1 else others or sound_node() for n in range(1, number + 1)}


def verdicts_of_sessions(folder: Path, *sessions: Mapping[str, Outcome]) -> dict[str, Any]:
    """Judge nodes by sessions, each with the outcome of every node."""
    folders = []
    for number, outcomes in enumerate(sessions):
        session = SessionBuilder(folder / str(number), start=factories.SESSION_START + number)
        folders.append(session.nodes(outcomes).write())
    return judge(*folders)

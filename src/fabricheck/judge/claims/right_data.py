"""The claim that MPI moves right data between buffers of devices (E12)."""

from __future__ import annotations

from fabricheck.core.amounts import about
from fabricheck.judge.claims import needs
from fabricheck.judge.claims.model import Claim, Finding, Number, verdict
from fabricheck.results.observed import Observed, Point


def _right_data(observed: Observed) -> Finding:
    needs.devices(observed)
    # All series: those whose data was wrong are no points of `Observed`.
    found = [
        Point("", document, series)
        for document in observed.documents
        if not document["faults_injected"]
        for series in document["series"]
        if series["experiment"] == "E12" and series["source"]["memory"] == "device"
    ]
    needs.some(found, "messages of MPI whose data were compared on devices", "E12")
    wrong = [one for one in found if one.series["verification"]["errors"]]
    operations = sorted({one.operation for one in found})
    skipped = {
        entry["operation"]
        for one in found
        for entry in one.document.get("skipped") or ()
        if entry["operation"] not in operations
    }
    most = max(one.ranks or 0 for one in found)
    told = sorted({f"{one.operation} of {about(one.bytes)}" for one in wrong})
    beside = f"; not tested: {', '.join(sorted(skipped))}" if skipped else ""
    checked = sum(one.series["verification"]["bytes_checked"] for one in found)
    clock = found[0].clock
    return verdict(
        not wrong,
        f"Of {len(found)} series of {', '.join(operations)} on {most} devices {len(wrong)} had "
        f"wrong data{': ' + ', '.join(told[:3]) if told else ''}{beside}.",
        Number("series", float(len(found)), "series", clock, None, True),
        Number("with wrong data", float(len(wrong)), "series", clock, None, True),
        Number("compared", float(checked), "B", clock, None, True),
    )


CLAIMS = (
    Claim(
        id="mpi-right-data",
        statement="An MPI that takes buffers of devices moves right data between them.",
        document="lab-notes",
        where="GPU-aware MPI",
        rule="no message and no collective of E12 has a wrong byte; what was left out, as an MPI "
        "that crashes in it has it, is named and not judged",
        judge=_right_data,
        experiments=("E12",),
        built_in="its MPI moves data within one process, which says nothing of another MPI",
    ),
)

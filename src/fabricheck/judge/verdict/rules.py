"""The table of rules that lead to each status, shown in docs/reference/verdict.md.

A rule applies to one attempt of a check, to the node, or to the rounds of a soak. `checks` combines
a check's attempts, `node` combines all checks into a node's status, and `judge/drift` applies those
of a soak.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from fabricheck.core.show import markdown
from fabricheck.judge.verdict.next_steps import NEXT_STEPS
from fabricheck.results.series import Place

NodeStatus = Literal["PASS", "INCOMPLETE", "UNSTABLE", "PERF-FAIL", "HW-FAIL", "DATA-FAIL"]

#: All statuses, the worst first. A node has the worst status that is proven.
STATUSES: tuple[NodeStatus, ...] = (
    "DATA-FAIL",
    "HW-FAIL",
    "PERF-FAIL",
    "UNSTABLE",
    "INCOMPLETE",
    "PASS",
)

#: The statuses of a failed node: a fault is proven.
FAILED: frozenset[NodeStatus] = frozenset({"DATA-FAIL", "HW-FAIL", "PERF-FAIL"})

#: How a rule can show that the hardware of a node is at fault. `positive` shows it alone, also
#: where many nodes have it. `contrast` shows it where the same check, with the same programs,
#: runtime and driver, passed on another node or earlier on this one, failed here twice in the same
#: way, and few nodes failed so. Only these make a line for the scheduler live (`verdict.evidence`).
Evidence = Literal["positive", "contrast"]

#: The rules that are a fault of a node where the same software does not show it elsewhere.
ISOLATING = frozenset({"time-limit", "ended", "refused"})

#: The attempts that must fail in the same way before it counts as how the node is.
TIMES = 2

#: What an attempt failed by: the rule, and the metric where it has one.
Way = tuple[str, str | None]


def worst(statuses: Iterable[NodeStatus]) -> NodeStatus:
    """Return the worst of some statuses; PASS if there are none."""
    return min(statuses, key=STATUSES.index, default="PASS")


@dataclass(frozen=True)
class Rule:
    """One row of the table.

    when: the finding, for the docs. status: its status. beside_a_pass: its status if another
    attempt of the same check on the same node passed; None if a later pass removes it, because the
    node was not tested, or not exclusively. evidence: how it can show a fault of the hardware; None
    where it never does.
    """

    name: str
    status: NodeStatus
    when: str
    beside_a_pass: NodeStatus | None = "UNSTABLE"
    evidence: Evidence | None = None


_OF_A_CHECK = (
    # Data
    Rule(
        "wrong-data",
        "DATA-FAIL",
        "A program or a third-party tool found wrong data: the status `wrong-data`, its exit "
        "code 5, or a series with verification errors. Once is enough for the status.",
        "DATA-FAIL",
        "contrast",
    ),
    Rule(
        "wrong-data-twice",
        "DATA-FAIL",
        "One process of this suite found wrong data in two series, and neither MPI nor RCCL moved "
        "it.",
        "DATA-FAIL",
        "positive",
    ),
    # Hardware
    Rule(
        "device-error",
        "HW-FAIL",
        "The runtime's error names hardware (the status `device-error`: an uncorrectable memory "
        "error, NVLink, a lost device, a hardware stack error), or a line of a log does (the "
        "reference of the result document lists them).",
        "HW-FAIL",
        "positive",
    ),
    Rule(
        "memory-errors",
        "HW-FAIL",
        "The driver counted new uncorrected errors of a device's memory during a run, or the "
        "host those of a memory controller. Once is enough.",
        "HW-FAIL",
        "positive",
    ),
    Rule(
        "link-errors",
        "HW-FAIL",
        "The driver counted new uncorrected errors of a device's links during a run, or between "
        "programs of a session (the reference of the result document lists the kinds). Once is "
        "enough.",
        "HW-FAIL",
        "positive",
    ),
    Rule(
        "lost",
        "HW-FAIL",
        "A device, a link or a NIC is gone that the node model states (published or measured), "
        "that PCI shows or that an earlier session of the host had, beside others that are there; "
        "and no mode, control group or variable explains it.",
        "HW-FAIL",
        "positive",
    ),
    Rule(
        "pcie-lanes",
        "HW-FAIL",
        "The PCIe link of a device has fewer lanes under load than both of its ends support.",
        "HW-FAIL",
        "positive",
    ),
    Rule(
        "devices",
        "HW-FAIL",
        "The node shows fewer devices than the partition states. No setting is known to hide them, "
        "and PCI does not tell which are missing.",
        evidence="contrast",
    ),
    Rule(
        "topology",
        "HW-FAIL",
        "`node_topology` found the node to differ from what its node model states of this kind of "
        "machine: other links than the model's, NUMA domains or cores.",
        evidence="contrast",
    ),
    Rule(
        "nics",
        "HW-FAIL",
        "`nic_inventory` found the node's NICs to differ from its node model or its fabric: one "
        "that is down, too slow, at another place, or that counted uncorrected errors.",
        evidence="contrast",
    ),
    Rule(
        "isolated",
        "HW-FAIL",
        "A check hung, was ended by a signal, or had a call of the runtime refused, twice in the "
        "same way on this node, and passed with the same programs, runtime and driver elsewhere or "
        "earlier. Without this contrast it is `time-limit`, `ended` or `refused`.",
        evidence="contrast",
    ),
    # Speed
    Rule(
        "reference",
        "PERF-FAIL",
        "A metric missed its reference, each time it was measured.",
        evidence="contrast",
    ),
    Rule(
        "peers",
        "PERF-FAIL",
        "A member is at least 20 % behind its peers on the node in two attempts, whose documents "
        "show that nobody else used node or device. It needs no calibration, and is not "
        "provisional.",
        evidence="contrast",
    ),
    Rule(
        "network",
        "PERF-FAIL",
        "Rounds over several nodes named the node, or one of its NICs: it is slower with all "
        "partners than others are, and was so again with partners that proved good.",
        evidence="contrast",
    ),
    # Variation
    Rule(
        "at-times",
        "UNSTABLE",
        "A metric missed its reference, but at least a tenth of the samples that decided it "
        "reached it: the node can be as fast, and something slowed it down at times. Not where "
        "the device itself reports that it was slowed down.",
    ),
    Rule(
        "too-noisy",
        "UNSTABLE",
        "A program ended with `too-noisy`: values vary too much to be judged.",
    ),
    Rule(
        "device-in-use",
        "UNSTABLE",
        "A metric missed its reference, or values were too noisy or implausible, while another "
        "process used a participating device before or after the run. The sentence names the "
        "process. Nothing is proven against the node.",
        None,
    ),
    Rule(
        "host-busy",
        "UNSTABLE",
        "The same where others kept the host busy: more than one core and more than 5 % of all, "
        "or a hypervisor took more than 1 % of them.",
        None,
    ),
    Rule(
        "varies",
        "UNSTABLE",
        "A check passed at one attempt and failed at another: a retry, `--repeat`, or several "
        "sessions. (Wrong data stays DATA-FAIL.)",
    ),
    # Unknown causes
    Rule(
        "time-limit",
        "INCOMPLETE",
        "A program reached its time limit: it hung, or was slow. A program whose kernel hangs "
        "can end minutes later, when the driver has reset the device; its job then ends too.",
    ),
    Rule(
        "ended",
        "INCOMPLETE",
        "A run ended from outside or without an explanation: its job reached a limit of the "
        "scheduler, its node failed (`NODE_FAIL`), a signal ended it.",
    ),
    Rule(
        "software",
        "INCOMPLETE",
        "A program ended with `software`: an exception, an MPI error, a rank that died, a file, a "
        "quota, an order of events.",
    ),
    Rule(
        "refused",
        "INCOMPLETE",
        "A call of the runtime failed by an error that names no hardware, such as a launch failure "
        "or an invalid value (`refused`), or the runtime lists no device at all.",
    ),
    Rule(
        "log-line",
        "INCOMPLETE",
        "After a program ended badly, a log has a line that is no evidence by itself: a contained "
        "error, one that follows from another, a reset, or one whose meaning is unknown. The "
        "sentence quotes it, and says what the vendor tells to do.",
        None,
    ),
    Rule(
        "cancelled",
        "INCOMPLETE",
        "A job was cancelled or preempted, or the session stopped before the check.",
        None,
    ),
    Rule(
        "not-started",
        "INCOMPLETE",
        "A check could not be set up or submitted: no program, no reference, a refused job.",
        None,
    ),
    Rule(
        "usage",
        "INCOMPLETE",
        "A program refused its command line (`usage`), or does not support what was requested "
        "(`unsupported`) although the devices exist.",
    ),
    Rule(
        "setting",
        "INCOMPLETE",
        "A setting of the node or the job prevents the measurement, or changed what was "
        "measured: a program ended with `setting`, a variable that neither the check nor the site "
        "sets took engines, compute units, links or NICs away or made launches wait, a setting "
        "hides devices, a mode divides them (CPX, MIG), or they are of another kind than the "
        "partition states. Also a miss of what the host moves, by a program with fewer than half "
        "of the node's cores. The sentence names what to change. Nothing is proven against the "
        "hardware.",
        None,
    ),
    Rule(
        "tool",
        "INCOMPLETE",
        "A third-party tool did not finish, or its output is unusable: its library may be at "
        "fault as well as the node. Also where the state or the speed of a NIC cannot be read.",
    ),
    Rule(
        "not-believed",
        "INCOMPLETE",
        "A result was not accepted: a physically impossible value, another runtime, clock, "
        "command line or node than requested, or too little verified. It proves nothing against "
        "or for the node.",
    ),
    Rule(
        "placement",
        "INCOMPLETE",
        "Ranks are not bound as requested (`affinity`): check the launcher first; what ranks "
        "measured does not belong to this placement.",
    ),
    Rule(
        "unverified",
        "INCOMPLETE",
        "`mpi_data` did not verify every message: no data was found wrong, but not all is "
        "proven right.",
    ),
    Rule(
        "no-value",
        "INCOMPLETE",
        "A metric has no value, or one that was expected to fail passed.",
    ),
    Rule(
        "no-document",
        "INCOMPLETE",
        "A check has no result document, or one that is cut off, damaged, or from another run "
        "or node.",
    ),
    Rule("not-judged", "INCOMPLETE", "No run report states whether the check passed.", None),
    Rule("failed", "INCOMPLETE", "A check failed in another way, such as one that only builds."),
)

_OF_A_NODE = (
    Rule(
        "missing",
        "INCOMPLETE",
        "A check of the selected set did not run, or only on another node; or the partition has "
        "lost a check that its features imply or its last session had.",
    ),
    Rule(
        "silent",
        "INCOMPLETE",
        "The node was to be measured but has no result: it is down, or failed.",
    ),
    Rule("session", "INCOMPLETE", "The session on the node was stopped or killed."),
    Rule(
        "report",
        "INCOMPLETE",
        "The run report of the node's session cannot be read, or one of several folders has none; "
        "or the session left nothing but its mark, or the record of its checks is lost.",
    ),
    Rule(
        "diagnosis",
        "PERF-FAIL",
        "The smallest set of degraded components that explains the missed limits, before them, or "
        "after the first where it is unsure, and with the status of the first; or, after them, "
        "that none explains them (`fabricheck diagnose`).",
    ),
    Rule("nothing-passed", "INCOMPLETE", "No check failed, and none passed either."),
    Rule(
        "nothing-judged",
        "INCOMPLETE",
        "No value of the memory of its GPUs (E1), of their host links (E2) or of their pairs (E7, "
        "E8) was compared with a limit; or no GPU was measured although the site, the allocation "
        "or PCI shows some.",
    ),
)

#: What a site may accept by these names (the extra `accepts`): then it is a caveat.
_DEVIATIONS = (
    Rule(
        "other-references",
        "INCOMPLETE",
        "The references that judged are not those of this commit: a file of `reference_values` was "
        "changed, or `RFM_REFERENCE_PREFIX` names a folder with other files; or the model of "
        "the node was changed in `config/nodes`, of the checkout or of the working folder.",
    ),
    Rule(
        "wide-limits",
        "INCOMPLETE",
        "A limit accepts less than half of its reference, or more than twice a time, by no rule "
        "for metrics without a reference.",
    ),
    Rule(
        "left-out-checks",
        "INCOMPLETE",
        "Options left checks out that the partition has: `-n`, `-x`, a tag that is no set.",
    ),
    Rule(
        "without-mpi",
        "INCOMPLETE",
        "A variable left checks of ranks out: `FABRICHECK_MPI=OFF`, or collectives "
        "`FABRICHECK_CUDA_MPI_WITHOUT` or that of `ROCM`. `local:gpu` accepts it.",
    ),
    Rule(
        "changed-checks",
        "INCOMPLETE",
        "`-S` or `-P` set a variable of the checks other than overlay, nodes and times, "
        "`--disable-hook` left a part of them out, or a check is from another file than this "
        "commit's, as `RFM_CHECK_SEARCH_PATH` names it.",
    ),
    Rule(
        "other-programs",
        "INCOMPLETE",
        "The programs were not built from the sources of this checkout.",
    ),
)

#: Rules over the rounds of a soak: none of them is evidence that drains a node.
_OF_A_SOAK = (
    Rule(
        "drift",
        "PERF-FAIL",
        "A rate, a clock or a quiet metric lost more over the rounds than the floor of its "
        "noise, and the 95 % interval of its slope (Theil-Sen) is below zero.",
    ),
    Rule(
        "step",
        "PERF-FAIL",
        "All rounds before are above all rounds after by more than the floor, at least three "
        "on either side, and two levels are nearer to them than a line.",
    ),
    Rule(
        "straggler",
        "PERF-FAIL",
        "A device or pair is behind the median of its peers by more than the floor, and by "
        "more than twice what these differ.",
    ),
    Rule(
        "comes-and-goes",
        "UNSTABLE",
        "In at least two rounds, and at most half of them, the slowest tenth of the passes "
        "lost more than the floor, and than three times what is usual.",
    ),
    Rule(
        "counters",
        "UNSTABLE",
        "A counter of errors grew faster than its source allows; without a source its growth "
        "is only reported.",
    ),
    Rule(
        "throttled",
        "UNSTABLE",
        "Heat or a limit of the board throttled a device for more than 1 % of the load; of "
        "the power cap it is only reported.",
    ),
    Rule(
        "unfinished",
        "INCOMPLETE",
        "Hours that the soak was to have are not there, or a round that can be judged.",
    ),
)

#: The table by name, in the order of the docs.
RULES: dict[str, Rule] = {
    rule.name: rule for rule in (*_OF_A_CHECK, *_OF_A_NODE, *_DEVIATIONS, *_OF_A_SOAK)
}

#: The rules that rounds of load alone lead to a status by.
OF_A_SOAK = tuple(rule.name for rule in _OF_A_SOAK)


def table(names: Iterable[str] = tuple(RULES)) -> list[str]:
    """Return rules as the lines of a table in Markdown, for the docs; all of them by default."""
    rows = (
        (
            f"`{rule.name}`",
            rule.status,
            _beside(rule),
            rule.evidence or "",
            rule.when,
            NEXT_STEPS[rule.name],
        )
        for rule in map(RULES.__getitem__, names)
    )
    heading = ("rule", "status", "beside a pass", "evidence", "when", "next step")
    return list(markdown(heading, rows))


def _beside(rule: Rule) -> str:
    if rule in (*_OF_A_NODE, *_DEVIATIONS, *_OF_A_SOAK):
        return ""
    return rule.beside_a_pass or "nothing"


@dataclass(frozen=True)
class Finding:
    """Why something did not pass: a rule, and a sentence that names metric, pair and devices.

    check: its name without the node; None for the node as a whole. metric: the failed metric.
    partition: that of the check; None for the node as a whole.
    status: the status of the rule, or its status beside a pass. isolates: whether it is a fault of
    the node where the same software does not show it elsewhere. devices: those that decided a
    missed limit; empty where they are unknown. causes: the keys of the causes that it names. place:
    of a difference from the node model. stands_for: the findings that it tells of, as their number.
    far_behind_peers: whether a member is, while nobody else is known to have used node or device.
    component: the part that it names, as ``device 6 (0000:df:00.0)``; None where it names none.
    """

    rule: Rule
    sentence: str
    check: str | None
    metric: str | None
    status: NodeStatus
    isolates: bool = False
    devices: frozenset[int] = frozenset()
    causes: frozenset[tuple[object, ...]] = frozenset()
    partition: str | None = None
    place: Place | None = None
    stands_for: int = 1
    far_behind_peers: bool = False
    component: str | None = None

    @property
    def way(self) -> Way:
        """In which way it failed: the rule, and the metric where it has one."""
        return self.rule.name, self.metric

    @property
    def with_check(self) -> str:
        """The sentence, preceded by its check."""
        return f"{self.check}: {self.sentence}" if self.check else self.sentence


def finding(
    rule: str, sentence: str, check: str | None = None, metric: str | None = None
) -> Finding:
    """Return a finding by the name of its rule; its sentence without line breaks."""
    return Finding(RULES[rule], " ".join(sentence.split()), check, metric, RULES[rule].status)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings once each, the worst first."""
    return sorted(dict.fromkeys(findings), key=lambda each: STATUSES.index(each.status))

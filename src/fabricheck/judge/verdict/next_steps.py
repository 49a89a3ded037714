"""What to do next about a finding: a step for each rule of the table, shown beside the rule."""

from __future__ import annotations

from collections.abc import Mapping

_VENDOR = "Drain the node and give the vendor the component: fabricheck results pack --vendor NODE."
_REPEAT = "Measure the node again, and judge both sessions together."
_ALONE = "Measure the node again with nobody else on it."

#: The next step by the name of its rule. A vendor is called on evidence only; what a setting or the
#: suite itself can cause is looked at first.
NEXT_STEPS: Mapping[str, str] = {
    "wrong-data": "Take the node out of production and repeat the check; wrong data twice goes to "
    "the vendor: fabricheck results pack --vendor NODE.",
    "wrong-data-twice": _VENDOR,
    "device-error": "Drain the node, do what the vendor states for the line, and reset the device; "
    "if it comes back: fabricheck results pack --vendor NODE.",
    "memory-errors": "Drain the node and reset the device, so that it retires the memory; if it "
    "comes back: fabricheck results pack --vendor NODE.",
    "link-errors": "Drain the node, reseat or clean the connection, and measure again; if it comes "
    "back: fabricheck results pack --vendor NODE.",
    "lost": "Drain the node and restart it from power off; if the part stays away: fabricheck "
    "results pack --vendor NODE.",
    "pcie-lanes": "Drain the node, reseat the device and measure again; if it stays: fabricheck "
    "results pack --vendor NODE.",
    "devices": "Look for the missing devices by lspci and in the driver's log, and restart the "
    "node.",
    "topology": "Compare with a node of the same kind (fabricheck node compare): where all differ, "
    "correct the node model.",
    "nics": "Look at the cable and the switch port of the NIC, then run fabricheck network nics "
    "again.",
    "isolated": "Drain the node, restart it and measure again; if it comes back: fabricheck "
    "results pack --vendor NODE.",
    "reference": f"{_REPEAT} If it stays, compare with a neighbour: fabricheck compare.",
    "peers": f"{_REPEAT} If it stays: fabricheck results pack --vendor NODE.",
    "network": "Look at the cable and the switch port of the NIC that is named, then measure the "
    "network again.",
    "at-times": _REPEAT,
    "too-noisy": _ALONE,
    "device-in-use": _ALONE,
    "host-busy": _ALONE,
    "varies": _REPEAT,
    "time-limit": "Look whether the driver of the node answers, and measure again.",
    "ended": "Look at the job's output for what ended it, and measure again.",
    "software": "Read the program's error: it is of software until another node shows otherwise.",
    "refused": "Compare driver and runtime with a node that passes.",
    "log-line": "Do what the vendor states for the line, and measure again.",
    "cancelled": _REPEAT,
    "not-started": "Correct what kept the check from starting: fabricheck site check.",
    "usage": "Correct the options or the site file: fabricheck site check.",
    "setting": "Change the setting that the sentence names, and measure again.",
    "tool": "Read the tool's output, and measure again.",
    "not-believed": "Look at what was requested and what ran, and measure again.",
    "placement": "Correct the launcher's binding: fabricheck site check.",
    "unverified": _REPEAT,
    "no-value": "Read the check's output, and measure again.",
    "no-document": "Look whether the disk is full, and measure again.",
    "not-judged": _REPEAT,
    "failed": "Read the check's output.",
    "missing": "Run the whole set.",
    "silent": "Look whether the node is up, and measure it again.",
    "session": _REPEAT,
    "report": _REPEAT,
    "diagnosis": f"{_REPEAT} If it stays: fabricheck results pack --vendor NODE.",
    "nothing-passed": "Read why the checks were skipped, and measure again.",
    "nothing-judged": "Run the whole set on a partition that has the GPUs.",
    "other-references": "Undo the change of the references, or let the site accept it by this "
    "name.",
    "wide-limits": "Calibrate the partition, or let the site accept it by this name.",
    "left-out-checks": "Run the whole set.",
    "without-mpi": "Build with MPI, or let the site accept it by this name.",
    "changed-checks": "Run the checks of this commit without the option, or let the site accept "
    "it by this name.",
    "other-programs": "Build the programs of this checkout, and measure again.",
    "drift": "Look at the device's temperature and clocks of the same hours on the page, then "
    "measure the node quietly: fabricheck diagnose.",
    "step": "Look in the node's log for what happened at that hour, then measure the node quietly: "
    "fabricheck diagnose.",
    "straggler": "Measure the node quietly: slow alone as well, it goes to the vendor: fabricheck "
    "results pack --vendor NODE.",
    "comes-and-goes": "Look at the link's counters of errors and at what else ran at those hours, "
    "and run the soak again.",
    "counters": "Drain the node, reseat or clean the connection, and run the soak again; if it "
    "comes back: fabricheck results pack --vendor NODE.",
    "throttled": "Look at the node's cooling and its power supply, and run the soak again.",
    "unfinished": "Start the same command again: it goes on with the hours that are not there.",
}

"""The commands of `fabricheck`: their modules, groups and sections in the help, and exit codes."""

from __future__ import annotations

from importlib.util import find_spec

from fabricheck.core.vocabulary import COMMAND_EXITS, EXIT_DEFECT

_OTHERS = (f"{code} {meaning}" for code, meaning in COMMAND_EXITS.items() if code != EXIT_DEFECT)
EXIT_CODES = f"Exit codes: {'; '.join(_OTHERS)}. {EXIT_DEFECT} is {COMMAND_EXITS[EXIT_DEFECT]}."


#: The extra of pyproject.toml that installs a package which only some commands need.
EXTRAS = {
    "altair": "report",
    "jinja2": "report",
    "polars": "results",
    "reframe": "run",
    "vl_convert": "report",
}

#: The groups of commands, with their lines of the help.
GROUPS = {
    "results": "Sessions and documents: list, show, check and export them.",
    "node": "Node models, and what the drivers of a node report.",
    "limits": "What each metric must reach, and where that comes from.",
    "site": "A site before its first measurement.",
    "network": "NICs, and what is slow between nodes.",
    "acceptance": "The acceptance of a machine: agreement, record, signature.",
    "papers": "Comparison with publications.",
    "beside": "Third-party tools beside our programs.",
}

#: The module that adds each command to `commands`, and its line of the help, which needs no import.
_ALL = {
    "verdict": ("cli.verdict", "Judge each node PASS, PERF-FAIL, HW-FAIL, ..., with reasons."),
    "diagnose": ("cli.diagnose", "Show which degraded components explain missed limits."),
    "report": ("cli.report", "Write the HTML page of a session."),
    "summary": ("cli.summary", "Show a session on one screen: status, E1 to E17, worst findings."),
    "compare": ("cli.compare", "Show what is worse, better or missing in B relative to A."),
    "every-node": ("cli.every_node", "Run a session on each node of the allocation."),
    "soak": ("cli.soak", "Measure this node under load for hours, in rounds."),
    "drift": ("cli.drift", "Judge the rounds of a soak: drift, errors that grow, wrong data."),
    "fleet": ("cli.fleet", "Show which of many nodes stand out, and what changed on them."),
    "results list": ("cli.results_list", "List the sessions, latest first."),
    "results show": ("cli.results_show", "Show what was measured."),
    "results coverage": ("cli.coverage", "Show which of E1 to E17 a session ran, and why not all."),
    "results validate": (
        "cli.results_validate",
        "Report whether documents are valid and complete.",
    ),
    "results export": ("cli.export", "Write results as one table, or as OpenMetrics."),
    "results join": ("cli.results_join", "Join the sessions of several results folders into one."),
    "results osu": ("cli.results_osu", "Compare the program mpi with OSU Micro-Benchmarks."),
    "results pack": ("cli.pack", "Pack all sessions into one archive, to send."),
    "results record": ("cli.record", "Run third-party benchmarks, as a check does."),
    "node show": ("cli.node", "Show a node model, or what files or drivers tell of a node."),
    "node health": ("cli.health", "Print one line on this node's health, beside a job."),
    "node compare": ("cli.node", "Compare a node model with the drivers of this machine."),
    "node draft": ("cli.node_files", "Draft a node model from the drivers of this machine."),
    "node record": ("cli.record", "Write the comparison to a result document, as a check does."),
    "node best-gpus": ("cli.node", "Print the best K devices of a node."),
    "node platform": ("cli.node_files", "Print the platform of a node for the simulator."),
    "limits show": ("cli.references", "Show the reference of each metric, and its source."),
    "limits check": ("cli.references", "Check the reference files: each limit and its source."),
    "limits calibrate": ("cli.calibrate", "Calibrate references of a partition from its sessions."),
    "limits transfer": ("cli.limits", "Use a calibrated partition's record for another one."),
    "limits noise": ("cli.limits", "Show how much repeated measurements differ."),
    "site check": ("cli.site_check", "Report what is missing before a site's checks can run."),
    "site first-hour": (
        "cli.first_hour",
        "Run the first hour's ten commands, and pack the output.",
    ),
    "site sets": ("cli.sets", "Show the checks of each set, and their times."),
    "network nics": ("cli.nics", "Compare the NICs of this node with its node model."),
    "network record": ("cli.record", "Write that to a result document, as a check does."),
    "network fabric": ("cli.fabric", "Name the NICs, nodes and switches that are slow."),
    "acceptance status": (
        "cli.acceptance_status",
        "Show which node has met which agreed criterion, and what to run next.",
    ),
    "acceptance close": ("cli.acceptance_close", "Write the record into one folder, and sign it."),
    "acceptance verify": (
        "cli.acceptance_verify",
        "Check a record: digests, signatures, and its documents judged again.",
    ),
    "acceptance repeat": (
        "cli.acceptance_repeat",
        "Print the commands that build the same programs beside today's, and compare.",
    ),
    "papers claims": (
        "papers.claims_command",
        "Show which published findings are reproduced here.",
    ),
    "papers fidelity": (
        "papers.fidelity_command",
        "Compare a simulated node with published values.",
    ),
    "beside rounds": ("beside.command", "Run third-party tools and our programs in rounds."),
    "beside table": ("beside.command", "Compare recorded rounds."),
}

#: Those whose subpackage is installed: the core does without `papers` and `beside`.
COMMANDS = {
    name: (module, line)
    for name, (module, line) in _ALL.items()
    if find_spec(f"fabricheck.{module.partition('.')[0]}") is not None
}

#: The sections of the help.
SECTIONS = {
    "Every day": ("verdict", "diagnose", "report", "summary", "compare"),
    "Hours": ("soak", "drift"),
    "Many nodes": ("every-node", "fleet"),
    "Groups (fabricheck GROUP --help)": tuple(
        group for group in GROUPS if any(name.startswith(f"{group} ") for name in COMMANDS)
    ),
}

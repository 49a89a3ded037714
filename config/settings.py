"""ReFrame's settings: gathers the sites of config/sites, and sets what all of them share."""

import logging
import os
import platform
import re
import sys
from pathlib import Path

from fabricheck.core.errors import FabricheckError, end_session
from fabricheck.results import marking

ROOT = Path(__file__).resolve().parents[1]
SESSION = marking.new_stamp()

# Before the imports that take time: a session that is killed in them has its mark.
try:
    MARK = None
    if marking.measures(sys.argv[1:]):
        MARK = marking.leave(SESSION, ["reframe", *sys.argv[1:]], default=ROOT / "results")
except FabricheckError as _error:
    end_session(_error)

# ruff: noqa: E402
from fabricheck.core import processes
from fabricheck.rfm import distributed, guard, host, launchers
from fabricheck.schedulers import table
from fabricheck.site import sets, sites, this_machine

processes.collect_rarely()

try:
    sets.require_mode(sys.argv[1:])
    RESULTS = host.results_folder(default=ROOT / "results")
    _folders = sites.folders(Path(__file__).resolve().parent / "sites")
    # A session needs one system: reading all takes longer than the rest of its start.
    _system, _partition = sites.selected(sys.argv[1:])
    if not _system:
        _matched = sites.of_this_machine(host.system_name(), host.full_system_name, *_folders)
        _system = _matched.system
    _gathered = sites.gather(*_folders, system=_system)
    this_machine.choose(_gathered["systems"], f"{_system}:{_partition}")
    distributed.allow_jobs(_gathered["systems"], sys.argv)
except FabricheckError as _error:
    end_session(_error)

# These three have no key in a settings file, and are read after it (ReFrame 4.10.4).
os.environ.setdefault("RFM_WARN_AS_ERROR", "yes")
os.environ.setdefault("RFM_REFERENCE_PREFIX", str(ROOT / "reference_values"))
os.environ.setdefault("RFM_TIMESTAMP_DIRS", SESSION)

# A full disk fails the checks; a traceback for each line of a log adds nothing.
logging.raiseExceptions = False

# ReFrame writes the user's name in its reports, and ends where a container has none for the user.
os.environ["LOGNAME"] = host.user_name()

guard.install(MARK)
launchers.register()

for _name in ("logs", "reports"):
    (RESULTS / _name).mkdir(exist_ok=True)

#: With each message about a check ReFrame reads all of its variables: those for debugging, which
#: take half of the time of a dry run, are for who asks for them (-v, RFM_VERBOSE).
_verbose = "RFM_VERBOSE" in os.environ or any(
    option == "--verbose" or re.fullmatch("-v+", option) for option in sys.argv
)

_logfile = {
    "type": "file",
    "name": str(RESULTS / "logs" / f"reframe-{SESSION}.log"),
    "level": "debug2",
    "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
    "append": False,
}
_perflog = {
    "type": "filelog",
    "basedir": str(RESULTS / "perflogs"),
    "prefix": "%(check_system)s/%(check_partition)s",
    "level": "info",
    "format": "%(check_result)s|%(check_job_completion_time)s|%(check_display_name)s|"
    "%(check_system)s|%(check_partition)s|%(check_environ)s|%(check_jobid)s|%(check_perfvalues)s",
    "format_perfvars": "%(check_perf_value)s|%(check_perf_unit)s|%(check_perf_ref)s|"
    "%(check_perf_lower_thres)s|%(check_perf_upper_thres)s|",
    "append": True,
}

for _each in _gathered["systems"]:
    _each.setdefault("prefix", str(RESULTS))
    # It is chosen already, by more than ReFrame compares: the short name too, in any case.
    _each["hostnames"] = [sites.ANY_HOST]
    for _of_system in _each["partitions"]:
        # Without one ReFrame looks at the processor, and keeps what it sees in the home folder:
        # in a container that may be read-only. No check reads it.
        _of_system.setdefault("processor", {"arch": platform.machine()})

_general = {
    "check_search_path": [str(ROOT / "reframe_checks")],
    "check_search_recursive": True,
    "trap_job_errors": True,
    "resolve_module_conflicts": False,
    "report_file": str(RESULTS / "reports" / "run-{sessionid}.json"),
}

# A dry run starts nothing, and yet ReFrame pauses after each check: for 0.1 s by its own rate.
if "--dry-run" in sys.argv:
    _general["poll_rate_max"] = 1000

# ReFrame polls the end of a check ever more rarely, after 10 s once a second, as suits the
# scheduler of a cluster. Without a scheduler that only delays each check.
_without_queue = [
    system["name"]
    for system in _gathered["systems"]
    if not any(table.has_queue(partition["scheduler"]) for partition in system["partitions"])
]

site_configuration = {
    **_gathered,
    "general": [
        _general,
        {**_general, "poll_rate_min": 4, "target_systems": _without_queue},
    ],
    # --mode=smoke is -t smoke, and no other tag: -t matches any part of a tag.
    "modes": sets.modes(),
    "storage": [{"enable": True, "sqlite_db_file": str(RESULTS / "results.db")}],
    "logging": [
        {
            "level": "debug2" if _verbose else "verbose",
            "handlers": [_logfile],
            "handlers_perflog": [_perflog],
        }
    ],
}

"""Each command of the handbook parses, is taken by ReFrame, or prints what its page shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import reframe
import typer.main

from fabricheck.cli import app
from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import UsageError
from site_dry_runs import ASKED

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
HANDBOOK = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(fabricheck [^`\n]+?)`")

#: What is no command of ours, by how a line begins, and what tries it.
OTHERS = {
    r"git (clone|checkout|-C)|cp ": "plain git and cp",
    r"make (run|setup|build)|git checkout COMMIT && make": "tests/ci/test_run.py, test_setup.py",
    r"ci/setup\.sh|PIP_NO_INDEX=1 ": "tests/ci/test_setup.py",
    r"source |module |export |sbatch --wrap|set -e|exit |#": "a shell",
    r"\( module --force purge|spack-env/install": "tests/spack, tests/rfm/test_build_check.py",
    r"spack |python -m pip download": "not tried (docs/install.md says so)",
    r"cmake ": "the build of every test; with rocm and cuda ci/compile-check.sh",
    r"ci/bundle\.sh": "tests/build",
    r"ci/slurm/slurm\.sh": "test_a_cluster_without_one",
    r"pytest |make snapshots": "what it runs",
    r"srun --ntasks-per-node=4": "tests/programs/test_fabric_program.py",
    r"FABRICHECK_HOST_DEVICES=3 /tmp/count": "tests/docs/test_extending.py",
    r"0 \d+ \* \* ": "cron",
}  # fmt: skip


class Command(NamedTuple):
    """A command of a page, what the page shows of its output, and its number there."""

    page: str
    number: int
    line: str
    shown: str | None


def commands() -> list[Command]:
    """Return the commands of all blocks of the README and the handbook."""
    found = []
    for page, text in HANDBOOK.items():
        lines: list[tuple[str, str | None]] = []
        for kind, block in BLOCK.findall(text):
            if kind == "console":
                for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                    line, _, shown = part.partition("\n")
                    lines.append((line, shown))
            elif kind in ("sh", "") and not block.startswith(("#!/bin/sh", "run: measuring")):
                joined = re.sub(r" *\\\n *", " ", block)
                lines += [(line.strip(), None) for line in joined.splitlines() if line.strip()]
        found += [Command(page, number, *each) for number, each in enumerate(lines)]
    return found


COMMANDS = commands()


def bare(line: str) -> str:
    """Return a line without its comment."""
    return re.sub(r"\s{2,}#.*|\s+# .*", "", line)


def of_ours(line: str) -> list[list[str]]:
    """Return the words of each call of fabricheck in a line."""
    parts = re.split(r" ?(?:&&|;|\|) ?", bare(line))
    words = [shlex.split(part) for part in parts if "fabricheck " in part]
    calls = []
    for each in words:
        if len(each) > 1 and " fabricheck " in f" {each[-1]}":  # sbatch --wrap "fabricheck ..."
            each = shlex.split(each[-1])
        if "fabricheck" in each and each[0] in ("fabricheck", "salloc"):
            calls.append(each[each.index("fabricheck") + 1 :])
    return calls


def parse(words: list[str]) -> str:
    """Parse a call of fabricheck without running it, and return the command that it is."""
    command = typer.main.get_command(app)
    context = command.make_context("fabricheck", list(words))
    while hasattr(command, "resolve_command"):
        rest = [*getattr(context, "_protected_args", ()), *context.args]
        if not rest:
            return context.command_path
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    return context.command_path


#: Evidence, and the pages that the reference is made from, name commands in their sentences.
OTHER_PAGES = [*(ROOT / "docs").glob("evidence/*.md"), *(ROOT / "docs").glob("reference/*.md")]
TEXTS = {**HANDBOOK, **{str(page.relative_to(ROOT)): page.read_text() for page in OTHER_PAGES}}
SPANS = sorted({(page, span) for page, text in TEXTS.items() for span in INLINE.findall(text)})


@pytest.mark.parametrize(
    ("page", "words"),
    [
        *((one.page, words) for one in COMMANDS for words in of_ours(one.line)),
        *((page, shlex.split(span)[1:]) for page, span in SPANS),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value)[:60],
)
def test_each_call_of_fabricheck_parses(page, words):
    if words == ["COMMAND", "--help"]:
        return
    try:
        parse(words)
    except typer.Exit as ended:
        assert "--help" in words and ended.exit_code == 0
    except (typer.BadParameter, UsageError):
        # A sentence may name a command without all that it needs.
        assert (page, f"fabricheck {' '.join(words)}") in SPANS


def test_a_call_that_does_not_parse_is_found():
    for words in (["verdcit"], ["verdict", "--jsn"], ["limits", "calibrate", "--writ"]):
        with pytest.raises((typer.BadParameter.__base__, UsageError)):
            parse(words)


def test_every_other_command_is_known():
    known = re.compile("|".join(f"(?:{pattern})" for pattern in OTHERS))
    strange = [
        one.line
        for one in COMMANDS
        if "fabricheck " not in one.line and "reframe " not in one.line
        and not known.match(one.line)
    ]  # fmt: skip
    assert strange == []


# --- with ReFrame ---------------------------------------------------------------------------------

RUN = re.compile(r"\breframe (?!-hpc)[^|&;]*")
#: The command of the healthy session, and that of the one without a link.
HEALTHY = "reframe --system=local:sim-mi250x --mode=node -r"
FAULTY = f"{HEALTHY} -S overlay=$PWD/config/nodes/overlays/link-0-6-gone.yaml"
SITE = re.search(r"^```python\n(.*?)^```$", HANDBOOK["site.md"], re.M | re.S)
CHECKS = re.findall(
    r"^```python\n# (checks/\w+.py)\n(.*?)^```$", HANDBOOK["extending.md"], re.M | re.S
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that looks as the checkout, with the site and the checks of the pages."""
    made = tmp_path_factory.mktemp("h")
    for name in ("config", "reframe_checks", "reference_values", "ci", "build", "docs", "tests"):
        (made / name).symlink_to(ROOT / name)
    (made / "sites").mkdir()
    (made / "sites" / "north.py").write_text(SITE[1])
    (made / "checks").mkdir()
    for name, text in CHECKS:
        (made / name).write_text(text)
    return made


@pytest.fixture(scope="module")
def shell(folder):
    """Return what runs a line in that folder, with a results folder."""
    clean = {
        name: value for name, value in os.environ.items()
        if not name.startswith(("FABRICHECK_", "RFM_", "SLURM_"))
    }  # fmt: skip
    path = f"{Path(sys.executable).parent}:{ROOT}/.venv/mpich/bin:{os.environ['PATH']}"

    def call(line: str, results: Path, **variables: str) -> tuple[int, str]:
        environment = clean | {
            "PATH": path,
            "COLUMNS": "100",
            "HOME": str(folder),
            "PYTHONPATH": f"{ROOT}/src",
            "FABRICHECK_RESULTS": str(results),
            "FABRICHECK_SIM_PROGRAMS": str(ROOT / "build" / "sim" / "bin"),
            "RFM_CONFIG_FILES": str(ROOT / "config" / "settings.py"),
            "RFM_INSTALL_PREFIX": reframe.INSTALL_PREFIX,
            "RFM_CHECK_SEARCH_PATH": str(ROOT / "reframe_checks"),
            "RFM_CHECK_SEARCH_RECURSIVE": "y",
        }
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment | variables,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    return call


def sessions() -> list[str]:
    """Return each command line of ReFrame once, without those that need nodes of a Slurm."""
    found = {}
    for one in COMMANDS:
        line = bare(one.line).replace("reframe $RUN", "reframe --system=local:sim-mi250x -r")
        for call in RUN.findall(line):
            words = shlex.split(call)
            if "build" not in words and not any("--distribute" in word for word in words):
                found[shlex.join(words)] = None
    return list(found)


@pytest.mark.full
@pytest.mark.parametrize("line", sessions())
def test_reframe_lists_the_checks_of_each_command(shell, folder, tmp_path, line):
    words = [word for word in shlex.split(line) if word not in ("-r", "--dry-run")]
    words = ["-l" if word == "-r" else os.path.expandvars(word.replace("$PWD", str(folder)))
             for word in words]  # fmt: skip
    variables = {**ASKED, "FABRICHECK_SITES": str(folder / "sites"), "FABRICHECK_NODE": "mi300x"}
    if not any(word.startswith("--system") for word in words):
        words.append("--system=lumi:gpu")
    if "tiny_copies" in words:
        return  # tests/docs/test_extending.py runs it
    code, said = shell(shlex.join([*words, "-l"]), tmp_path, **variables)
    assert code == 0, said
    assert int(re.search(r"Found (\d+) check", said)[1]) > 0, said


@pytest.fixture(scope="module")
def recorded(shell, tmp_path_factory):
    """The results folders of the healthy session alone, and of both."""
    both = tmp_path_factory.mktemp("r") / "results"
    both.mkdir()
    code, said = shell(HEALTHY, both)
    assert code == 0, said
    healthy = both.parent / "healthy"
    shutil.copytree(both, healthy, symlinks=True)
    assert shell(FAULTY, both)[0] == 1
    return {HEALTHY: healthy, FAULTY: both}


def pattern(shown: str) -> re.Pattern[str]:
    """Return what an output must have, whatever its blanks; `...` is anything."""
    parts = [re.escape(word) for word in shown.split()]
    text = r"\s+".join(parts).replace(re.escape("..."), r"[\s\S]*?")
    return re.compile(text.replace(r"\s+[\s\S]*?\s+", r"[\s\S]*?"))


PRINTED = [name for name in HANDBOOK if any(one.page == name and one.shown for one in COMMANDS)]


@pytest.mark.full
@pytest.mark.parametrize("page", PRINTED)
def test_each_command_prints_what_its_page_shows(shell, recorded, tmp_path, page):
    results = shutil.copytree(recorded[FAULTY], tmp_path / "results", symlinks=True)
    for one in COMMANDS:
        if one.page != page or one.shown is None:
            continue
        if one.line in recorded:
            results = shutil.copytree(
                recorded[one.line], tmp_path / f"of-{one.number}", symlinks=True
            )
            continue
        _, said = shell(one.line, results)
        assert pattern(one.shown).search(said), f"{one.line}\n{said}"


@pytest.mark.full
def test_a_cluster_without_one(shell, tmp_path, tmp_path_factory):
    """The lines of docs/site.md on a Slurm of this machine; node2 is lost after the job."""
    blocks = [text for _, text in BLOCK.findall(HANDBOOK["site.md"]) if "slurm.sh start" in text]
    slurm = tmp_path_factory.mktemp("s")
    lines = [bare(line).replace("/tmp/slurm", str(slurm)) for line in blocks[0].splitlines()]
    start, conf, salloc, kill, stop = lines
    code, said = shell(start, tmp_path)
    assert code == 0, said
    try:
        code, said = shell(f"{conf}; {salloc}", tmp_path)
        assert code == 0 and "4 PASS" in said, said
        assert shell(kill, tmp_path)[0] == 0
    finally:
        assert shell(stop, tmp_path)[0] == 0


def in_stead(folder, **bodies: str) -> dict[str, str]:
    """Make programs that record their call, and env.sh that puts them on the PATH."""
    for name, body in bodies.items():
        called = f'echo "{name} $* as $FABRICHECK_SESSION" >> {folder}/calls'
        (folder / name).write_text(f"#!/bin/sh\n{called}\n{body}\n")
        (folder / name).chmod(0o755)
    (folder / "env.sh").write_text(f"export PATH={folder}:$PATH\n")
    return {"PATH": os.environ["PATH"]}


@pytest.mark.parametrize(
    ("report", "verdict", "ends"), [(0, 0, 0), (0, 12, 12), (4, 12, 12), (4, 0, 4), (3, 3, 3)]
)
def test_the_script_of_a_night_ends_with_the_verdict_of_its_session(
    tmp_path, report, verdict, ends
):
    (lines,) = [text for _, text in BLOCK.findall(HANDBOOK["run.md"]) if 'verdict "$1"' in text]
    script = tmp_path / "judge.sh"
    script.write_text(lines.replace("/path/to/fabricheck", str(tmp_path)))
    script.chmod(0o755)
    body = f'[ "$1" != report ] || exit {report}; [ "$1" != verdict ] || exit {verdict}'
    environment = in_stead(tmp_path, fabricheck=body, sbatch="exit 0")
    crontab = re.findall(r"^\d+ +\d+ +\* +\* +\d +(.*)$", HANDBOOK["run.md"], re.M)
    begins, judges = (
        line.replace("\\%", "%").replace("/path/to", str(tmp_path)) for line in crontab
    )
    # Cron starts them on Sunday evening and Monday morning.
    days = {"sunday": "2026-11-29 22:00", "monday": "2026-11-30 07:00"}
    for day, now in days.items():
        (tmp_path / day).mkdir()
        fake = tmp_path / day / "date"
        fake.write_text(
            "#!/bin/sh\n"
            f'[ "$1" = -d ] && exec /bin/date -d "{now} 1 day ago" "$3"\n'
            f'exec /bin/date -d "{now}" "$1"\n'
        )
        fake.chmod(0o755)

    def cron(line: str, day: str) -> int:
        path = f"{tmp_path / day}:{tmp_path}:{environment['PATH']}"
        return subprocess.run(["bash", "-c", line], env={"PATH": path}, check=False).returncode

    assert cron(begins, "sunday") == 0
    assert cron(judges, "monday") == ends
    started, shown, judged = (tmp_path / "calls").read_text().splitlines()
    assert started.endswith(" as week-2026-48")
    assert shown == "fabricheck report week-2026-48 as "
    assert judged == "fabricheck verdict week-2026-48 as "


@pytest.mark.parametrize(
    ("session", "verdict", "ends"), [(0, 0, 0), (1, 12, 12), (2, 3, 3), (1, 0, 1), (0, 13, 13)]
)
def test_the_lines_for_any_ci_judge_their_own_session_or_stop(tmp_path, session, verdict, ends):
    (lines,) = [text for _, text in BLOCK.findall(HANDBOOK["run.md"]) if "CI_JOB_ID" in text]
    body = f'[ "$1" != verdict ] || exit {verdict}'
    environment = in_stead(tmp_path, reframe=f"exit {session}", fabricheck=body)
    environment["CI_JOB_ID"] = "7"
    ended = subprocess.run(["bash", "-c", lines], env=environment, cwd=tmp_path, check=False)
    assert ended.returncode == ends
    started, judged, *_ = (tmp_path / "calls").read_text().splitlines()
    assert started.startswith("reframe ") and started.endswith(" as ci-7")
    assert judged == "fabricheck verdict ci-7 as ci-7"

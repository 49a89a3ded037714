"""Only the table of ways to reach nodes names a scheduler; what else does has its reason here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fabricheck

PACKAGE = Path(fabricheck.__file__).parent

NAMED = re.compile(
    r"slurm|\bsrun|\bsbatch|salloc|scontrol|squeue|sacct|scancel|sbcast|flux|pbs|qsub|qstat|\bssh",
    re.IGNORECASE,
)

#: The files outside the table that name one, and why.
WHY = {
    "cli/acceptance_close.py": "keys of ssh sign a record",
    "cli/acceptance_verify.py": "keys of ssh sign a record",
    "cli/every_node.py": "the help of the command names what a user types",
    "cli/first_hour.py": "what is asked for outside any allocation",
    "core/lines.py": "advice about labels in the text of launchers",
    "judge/verdict/health.py": "a look outside any allocation is drained by the first row",
    "judge/verdict/model.py": "files of before the table are of the first row",
    "judge/verdict/node_facts.py": "documents of before the table are of the first row",
    "references/agreement.py": "keys of ssh sign a record",
    "report/acceptance_verified.py": "keys of ssh sign a record",
    "report/acceptance_words.py": "keys of ssh sign a record",
    "results/model.py": "the meaning of a member of the result document",
    "results/other_devices.py": "variables in documents that show which devices a job had",
    "results/requested_nodes.py": "files of before the table are of the first row",
    "rfm/distributed.py": "sessions of before the table are of the first row",
    "rfm/guard.py": "it is told how a job of squeue has ended",
    "rfm/hosts.py": "ReFrame's scheduler ssh, whose jobs it completes",
    "rfm/jobs.py": "ReFrame's scheduler squeue, whose jobs it completes",
    "rfm/launchers.py": "launchers that ReFrame lacks, by their names",
    "rfm/network_benchmarks.py": "a word of site files",
    "rfm/reframe_internals.py": "modules and names of ReFrame",
    "run/site_check.py": "what is asked for outside any allocation",
    "site/clusters.py": "the helpers of site files choose a row by its name",
    "site/sites.py": "a word of site files",
    "tools/runner.py": "what launchers add to the output of a failed program",
    "tools/signatures.py": "keys of ssh sign a record",
}


def names_of(file: Path) -> set[str]:
    """Return the names and texts of a module that name a scheduler, without its prose."""
    tree = ast.parse(file.read_text())
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    words: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            words.add(node.value)
        elif isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            words.update(alias.name for alias in node.names)
    return {word for word in words if NAMED.search(word)}


@pytest.mark.slow
def test_only_the_table_names_a_scheduler():
    files = {
        str(file.relative_to(PACKAGE)): names_of(file)
        for file in PACKAGE.rglob("*.py")
        if file.parent.name != "schedulers"
    }
    naming = {name: sorted(words) for name, words in files.items() if words}
    assert naming.keys() - WHY.keys() == set(), naming
    assert WHY.keys() - naming.keys() == set()

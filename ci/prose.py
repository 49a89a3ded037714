#!/usr/bin/env python3
"""Looks for words of ci/prose.yaml in the README and the pages of docs/: ci/prose.py [FILE...].

Ends with 1 and a line for each that it finds, with what to write instead.
"""

import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
WORDS = yaml.load((ROOT / "ci" / "prose.yaml").read_text(), Loader=yaml.CSafeLoader)
#: What is no prose: code in lines, and what is quoted of a program in a table of records.
CODE = re.compile(r"`[^`]*`|<!--.*?-->|\]\([^)]*\)")

#: The markers of what commands write into pages.
RECORDED = {f"<!-- {name} -->" for name in ("drawn systems", "drawn faults", "drawn sessions")}

PROSE = {
    **{rf"(?i)(?<![\w-]){re.escape(old)}(?![\w-])": new
       for old, new in WORDS["everywhere"].items()},
    **WORDS["pages"],
}  # fmt: skip


def misused_words(path):
    """Yield line, word and what to write instead of each word of a page."""
    fenced = recorded = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        # What a command wrote between its markers.
        recorded = line in RECORDED or (recorded and not line.startswith("<!-- end"))
        for pattern, new in WORDS["spelling"].items():
            yield from ((number, word[0], new) for word in re.finditer(pattern, line))
        text = "" if fenced or recorded else CODE.sub("", line)
        for pattern, new in PROSE.items():
            yield from ((number, word[0], new) for word in re.finditer(pattern, text))


def main():
    """Print what is found, and return the exit code."""
    pages = [*map(Path, sys.argv[1:])] or [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    lines = [
        f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{number}: {word!r}: "
        f"write {new}"
        for path in pages
        for number, word, new in misused_words(path)
    ]
    for line in lines:
        print(line, file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())

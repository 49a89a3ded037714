"""Reference files: read, changed in one partition, and written with all else as it was."""

from __future__ import annotations

import copy
import io
import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark, YAMLError
from ruamel.yaml.scalarstring import FoldedScalarString, LiteralScalarString
from ruamel.yaml.tokens import CommentToken

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.judge.calibration.rule import Entry, entry_of

PROVENANCE = "x-provenance"
BOUNDS = "x-bounds"
INDEX = ["$partition"]

#: What is in the folder of the reference files and holds none: published values, and what simulated
#: nodes are compared with.
OTHERS = ("published_values.yaml", "fidelity-*.yaml")

#: A metric's stem is its name without how it was reduced; provenance may name either.
REDUCED = re.compile(r"_(worst|median|best_block|worst_block)$")

_BOUND = (
    "The rule of docs/calibration.md, applied to repeated sessions of the partition: the record "
    "that x-provenance names has their values, and of each metric what decided its tolerance."
)


class ReferenceFile:
    """One file of references; `content` is changed in place."""

    def __init__(self, path: Path) -> None:
        """Read a file.

        :raises InvalidInputError: when it is no map of YAML, has no check, or has something else
            where a map belongs.
        """
        self.path = path
        self._yaml = YAML()
        self._yaml.preserve_quotes = True
        # Lines stay as long as they are.
        self._yaml.width = 1 << 16
        self._yaml.indent(mapping=2, sequence=4, offset=2)
        try:
            self.content = self._yaml.load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, YAMLError) as error:
            said = " ".join(str(error).split())
            raise InvalidInputError(f"{path}: can not be read as YAML ({said}).") from None
        if not isinstance(self.content, CommentedMap):
            raise InvalidInputError(f"{path}: is no map of checks.")
        if not self.checks:
            raise InvalidInputError(f"{path}: has no check with its references.")
        for key in (PROVENANCE, BOUNDS, *self.checks):
            self._refuse_no_map(key)

    def _refuse_no_map(self, key: str) -> None:
        """Refuse what is no map: a check, what is said of origins and bounds, and their parts."""
        found = self.content.get(key)
        if found is not None and not isinstance(found, CommentedMap):
            raise InvalidInputError(f"{self.path}: {key} is no map.")
        for name, part in (found or {}).items():
            plain = name == "$index" or key == BOUNDS or part is None
            if not plain and not isinstance(part, CommentedMap):
                raise InvalidInputError(f"{self.path}: {name} of {key} is no map.")

    @property
    def checks(self) -> dict[str, CommentedMap]:
        """The checks that the file has references of."""
        return {
            name: value
            for name, value in self.content.items()
            if isinstance(value, CommentedMap) and "$index" in value
        }

    def partition(self, check: str, partition: str, named: str | None = None) -> Mapping[str, Any]:
        """Return the metrics of a check in a partition as they stand, none where there are none.

        :param named: the set whose entries count where the partition has none of its own.
        :raises InvalidInputError: when ReFrame takes those of a key that is a pattern.
        """
        table = self.checks[check]
        found = table.get(partition)
        if partition not in table:
            self._refuse_pattern(check, partition)
        if found is None and named is not None:
            found = table.get(named)
        return found if found is not None else {}

    def _refuse_pattern(self, check: str, partition: str) -> None:
        """Refuse a key that matches a partition: ReFrame takes keys for patterns where it must."""
        for key in self.checks[check]:
            if isinstance(key, str) and _matches(key, partition):
                raise InvalidInputError(
                    f"{self.path}: the references of {check} on {partition} are those of {key}, "
                    "which matches it as a pattern: give the partition entries of its own, with "
                    "the same limits, so that what changes can be told."
                )

    def adopt(self, check: str, partition: str, named: str, replaced: set[str]) -> None:
        """Give a partition without own entries of a check those of its set, which stays as it is.

        Of the metrics that are not `replaced` it is also copied where they are from.
        """
        table = self.checks[check]
        if table.get(partition) is not None or table.get(named) is None:
            return
        stated = self.provenance(named)
        table[partition] = own = CommentedMap()
        for metric in table[named]:
            entry = table[named][metric]
            plain = entry_of(entry)
            own[metric] = copy.deepcopy(entry) if plain is None else self._sequence(plain)
            stem = REDUCED.sub("", metric)
            keys = (f"{check}.{metric}", f"{check}.{stem}", metric, stem)
            found = next((stated[key] for key in keys if key in stated), None)
            if found is not None and metric not in replaced:
                copied = CommentedMap(found)
                copied.fa.set_flow_style()
                origins = self.content[PROVENANCE]
                if origins.get(partition) is None:
                    origins[partition] = CommentedMap()
                origins[partition][f"{check}.{metric}"] = copied

    def provenance(self, partition: str) -> Mapping[str, Any]:
        """Return what the file says of where a partition's values are from."""
        found = (self.content.get(PROVENANCE) or {}).get(partition)
        return found if isinstance(found, Mapping) else {}

    def put(self, check: str, partition: str, entries: Mapping[str, Entry]) -> None:
        """Set entries of a check in a partition; the others stay.

        :raises InvalidInputError: when the check's entries are not by partition.
        """
        table = self.checks[check]
        if table["$index"] != INDEX:
            raise InvalidInputError(
                f"{self.path}: the references of {check} are not by partition: $index is "
                f"{table['$index']}, and only {INDEX} can be written."
            )
        present = self.partition(check, partition)
        new = {
            metric: entry
            for metric, entry in entries.items()
            if entry_of(present.get(metric)) != entry
        }
        if new:
            own = self._unshared(table, partition)
            for metric, entry in new.items():
                own[metric] = self._sequence(entry)

    def state(self, partition: str, origin: Mapping[str, str]) -> None:
        """Say where a partition's values are from, and why their bounds are as they are.

        What is said of single metrics stays; `forget` drops it.
        """
        stated = self.content.get(PROVENANCE)
        if stated is None:
            stated = CommentedMap()
            self.content.insert(0, PROVENANCE, stated)
        own = self._unshared(stated, partition)
        for index, (key, value) in enumerate(origin.items()):
            if key in own:
                own[key] = value
            else:
                own.insert(index, key, value)
        for key in [key for key, one in own.items() if not isinstance(one, Mapping)]:
            if key not in origin:
                _drop(own, key)
        bounds = self.content.get(BOUNDS)
        if bounds is None:
            bounds = CommentedMap()
            self.content.insert(list(self.content).index(PROVENANCE) + 1, BOUNDS, bounds)
        if "calibrated" not in bounds:
            bounds.insert(0, "calibrated", _folded(_BOUND))

    def forget(self, partition: str, metrics: set[tuple[str, str]]) -> None:
        """Drop what is said of single metrics, given as check and metric, that are calibrated now.

        What also holds of a metric that is not among them stays.
        """
        own = self.provenance(partition)
        for key in [key for key, one in own.items() if isinstance(one, Mapping)]:
            named = set(self._named(partition, key))
            if named and named <= metrics:
                _drop(own, key)

    def _named(self, partition: str, key: str) -> Iterator[tuple[str, str]]:
        for check in self.checks:
            for metric in self.partition(check, partition):
                stem = REDUCED.sub("", metric)
                if key in (metric, stem, f"{check}.{metric}", f"{check}.{stem}"):
                    yield check, metric

    def _unshared(self, table: Any, key: str) -> Any:
        """Return a map that is of this key only, so that a change is of nothing else.

        Partitions share maps by anchors and merges (``<<``); others keep the one that they share.
        """
        own = table.get(key)
        if own is None:
            table[key] = own = CommentedMap()
        merging = [one for one in table.values() if isinstance(one, CommentedMap) and one.merge]
        if any(one is own for one in merging) or any(
            own is merged for one in merging for merged in one.merge
        ):
            flat = {id(one): _flat(one) for one in merging}
            for name, one in table.items():
                if id(one) in flat:
                    table[name] = flat[id(one)]
            own = table[key]
        if _places(self.content, own) > 1:
            first = next(name for name, one in table.items() if one is own)
            apart = _flat(own)
            # Comments stay where they are: at the first place of what was shared.
            for one in (own,) if first == key else (apart,):
                one.ca.items.clear()
                one.ca.comment = None
            table[key] = own = apart
        return own

    def _sequence(self, entry: Entry) -> Any:
        """Return an entry for the file; report only is its anchor, where it has one."""
        for key, value in self.content.items():
            anchored = str(key).startswith("x-report-only") and isinstance(value, CommentedSeq)
            if anchored and entry_of(value) == entry:
                return value
        made = CommentedSeq(entry)
        made.fa.set_flow_style()
        return made

    def text(self) -> str:
        """Return the file as it is to be written."""
        out = io.StringIO()
        self._yaml.dump(self.content, out)
        # A table that grew ends before the next one.
        return re.sub(r"(?m)^( .*\n)(?=[\w$][\w$-]*:)", r"\1\n", out.getvalue())


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.match(f"^{pattern}$", name) is not None
    except re.error:
        return False


def _flat(table: Any) -> Any:
    """Return a map with what it merges written out, and its comments."""
    own = dict(table.non_merged_items())
    made = CommentedMap({name: table[name] for name in table if name not in own})
    made.update(own)
    made.ca.items.update(table.ca.items)
    made.ca.comment = table.ca.comment
    if table.fa.flow_style():
        made.fa.set_flow_style()
    return made


def _places(node: Any, wanted: Any) -> int:
    """Count the places of a document at which a map stands."""
    if not isinstance(node, CommentedMap):
        return 0
    values = [value for _, value in node.non_merged_items()]
    return sum((one is wanted) + _places(one, wanted) for one in values)


def _drop(table: Any, key: str) -> None:
    """Delete a key; the comments before and after it stay, as most are of what follows."""
    keys = list(table)
    at = keys.index(key)
    _, above, below, _ = table.ca.items.pop(key, None) or [None] * 4
    # After a block of text a comment begins on a line of its own, after all else on the same one.
    block = isinstance(table.pop(key), (FoldedScalarString, LiteralScalarString))
    lines = "".join(f"{' ' * token.column}{token.value}" for token in above or [])
    text = (f"\n{lines}" if above else "") + (
        ("\n" if block else "") + below.value if below else ""
    )
    slots = table.ca.items.setdefault(keys[at - 1], [None] * 4)
    if text and slots[2] is None:
        slots[2] = CommentToken(text, CommentMark(0))
    elif text:
        slots[2].value += text.removeprefix("\n")


def _folded(text: str) -> Any:
    """Return a text that is written on several lines."""
    made = FoldedScalarString(text)
    lines = textwrap.wrap(text, 96)
    ends = itertools.accumulate(len(line) + 1 for line in lines[:-1])
    made.fold_pos = [end - 1 for end in ends]
    return made


def read_folder(folder: Path) -> dict[str, ReferenceFile]:
    """Return by check the file that has its references.

    :raises NotFoundError: when there is no such folder.
    :raises InvalidInputError: when a file is not readable or has no checks, or a check is in two of
        them.
    """
    if not folder.is_dir():
        raise NotFoundError(f"There is no folder of reference files {folder}.")
    found: dict[str, ReferenceFile] = {}
    for path in sorted(folder.glob("*.yaml")):
        if any(path.match(name) for name in OTHERS):
            continue
        file = ReferenceFile(path)
        for check in file.checks:
            if check in found:
                raise InvalidInputError(f"{path}: {check} is in {found[check].path} as well.")
            found[check] = file
    return found

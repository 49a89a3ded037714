"""Which tests can see a change, the likeliest first: by the words of both, and by the way between.

A change has words: of its lines, of what is named around them, of the functions that they are in,
and of its path. A test has words: of its name, its text, the fixtures, functions and constants that
it uses, and what its file is about; a test of a snapshot has those of the recorded text. Two words
side by side are one more, so that a sentence counts by its order. The rarer a word is among all
tests, the more it counts (as in BM25).

A test has a way to a changed file by imports, or by text that names the file or its folder. The
fewer the steps, the more its words count.

All this is read from the tree as it is: nothing is recorded that goes stale, and a new test or
check takes part at once. Not seen is a test that has other words than the change.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from weighing import Weighed, Weights, in_row, in_threes, literals, row, words

#: What a word of a change counts: gone from a line, as a test may quote it; in a changed line, in
#: the name of what holds it, in the body of that function, and in the path.
GONE, CHANGED, NAME, BODY, PATH = 7.0, 3.0, 6.0, 1.0, 2.0

#: What the name of a function counts that uses what changed in its file.
USER = 4.0

#: What three words of a text count that a changed function states, for a test that quotes them, and
#: how many tests may: what more of them have is a way of speaking.
QUOTED, FEW = 10.0, 20

#: What it counts that a test names the folder of a page, as the words of prose are those of any
#: test, or the folder of a new file, of which no test has words; twice that of one that names the
#: file, or reads all such files of the folder.
READS = 100.0

#: What puts a test before all that only have words of a change.
FIRST = 1e6

#: How much more the words count of a test that imports the changed module itself, or names the file
#: or its folder, where few do.
NEAR = 0.15

#: What a word of a test counts: in its name, in its text, in what it uses of its file or of its
#: fixtures, in what it uses of other files, in what its file is about.
IN_NAME, IN_TEXT, IN_USED, IN_HELPER, IN_ABOUT = 3.0, 1.0, 0.5, 0.05, 0.5

#: How little a word gains by being there more often, and a long text loses.
SATURATION, LENGTH = 1.5, 0.3

#: How much less a test counts for each test of its file that is likelier: another file may see what
#: these do not.
AGAIN = 0.02

#: What the words of a test count by the steps between it and the file; the last is of those without
#: a way, which may start the file as a program.
STEPS = (2.0, 1.6, 1.3, 1.1, 0.6)

_NAME = re.compile(r"\w+")
_IMPORT = re.compile(r"^\s*import ([\w.]+)", re.MULTILINE)
_FROM = re.compile(r"^\s*from ([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Change:
    """A file, from the root, and its text before and after; empty where there was or is none."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, eq=False)
class Test:
    """A test function, or one of the recorded texts that a function compares.

    imports: the modules that its file and its fixtures import. uses: the text of all that it says
    and uses, or the recorded text.
    """

    id: str
    path: str
    text: str
    slow: bool
    weighed: Weighed
    imports: set[str]
    uses: str
    recorded: bool = False

    @cached_property
    def row(self) -> str:
        """The words of what it uses, as ``in_row``."""
        return in_row(self.uses)


def _names_folder(text: str, folder: str) -> bool:
    """Return whether a text names a folder."""
    return any(name in text for name in (f'"{folder}"', f"{folder}/", f'/{folder}"'))


@cache
def _names(text: str) -> frozenset[str]:
    return frozenset(_NAME.findall(text))


def imported(text: str) -> set[str]:
    """Return the modules that a text imports, each with those that hold it."""
    modules = set(_IMPORT.findall(text))
    for module, names in _FROM.findall(text):
        modules |= {module, *(f"{module}.{name}" for name in _NAME.findall(names))}
    return modules


def bound(node: ast.stmt) -> list[str]:
    """Return the names that a statement gives a meaning."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            parts = [part for target in targets for part in ast.walk(target)]
        case ast.AnnAssign(target=target):
            parts = [*ast.walk(target)]
        case _:
            return []
    return [part.id for part in parts if isinstance(part, ast.Name)]


def span(node: ast.stmt) -> slice:
    """Return the lines of a statement, with those of its decorators."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return slice(first - 1, node.end_lineno)


@dataclass
class File:
    """A Python file, and what it defines."""

    path: Path
    module: str
    text: str = ""
    imports: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read it."""
        self.text = self.path.read_text(encoding="utf-8")
        self.imports = imported(self.text)

    @cached_property
    def tree(self) -> ast.Module:
        """What it states."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """Its lines."""
        return self.text.splitlines()

    @cached_property
    def defined(self) -> dict[str, ast.stmt]:
        """Its statements by the names that they define."""
        return {name: node for node in self.tree.body for name in bound(node)}

    def text_of(self, node: ast.stmt) -> str:
        """Return the text of a statement."""
        return "\n".join(self.lines[span(node)])

    def tests(self) -> Iterator[tuple[str, Function]]:
        """Yield its tests, each with its name behind that of the file."""
        for node in self.tree.body:
            if isinstance(node, Function) and node.name.startswith("test_"):
                yield node.name, node
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    if isinstance(method, Function) and method.name.startswith("test_"):
                        yield f"{node.name}::{method.name}", method

    def marks(self, node: Function) -> str:
        """Return the marks of a test and of its file, as text."""
        of_file = self.defined.get("pytestmark")
        texts = [ast.unparse(decorator) for decorator in node.decorator_list]
        return "\n".join([*texts, ast.unparse(of_file) if of_file else ""])


class Tree:
    """The tests of a tree, and the ways from them to its files."""

    def __init__(self, root: Path, changes: Iterable[Change] | None = None) -> None:
        """Read all tests, and the imports of all modules.

        :param changes: those that are asked for, whose words alone are counted, which takes half
            the time; None for any.
        """
        self.root = root
        tests = [File(path, path.stem) for path in sorted((root / "tests").rglob("*.py"))]
        sources = [(root / "src", path) for path in sorted((root / "src").rglob("*.py"))]
        sources += [(root, path) for path in sorted((root / "proof").rglob("*.py"))]
        source = [self._of_source(*each) for each in sources]
        self.files = {str(file.path.relative_to(root)): file for file in (*tests, *source)}
        self.conftests = {
            file.path.parent: file for file in tests if file.path.name == "conftest.py"
        }
        # A test file imports another one by its name, or by its folder's and its own.
        helpers = [file for file in tests if file.path.name != "conftest.py"]
        self.helpers = {file.module: file for file in helpers}
        self.helpers |= {
            self._of_source(root / "tests", helper.path).module: helper for helper in helpers
        }
        self.wanted = None if changes is None else self._wanted(changes)
        self.tests: list[Test] = []
        for file in tests:
            for name, node in file.tests():
                if "mark.full" not in file.marks(node):
                    self.tests += self._tests(file, name, node)
        self.importers: dict[str, set[str]] = defaultdict(set)
        for file in self.files.values():
            for module in file.imports:
                self.importers[module].add(file.module)
        self.having = self._having()

    def _wanted(self, changes: Iterable[Change]) -> set[str]:
        """Return the words that choosing asks for."""
        wanted: set[str] = set()
        for change in changes:
            wanted |= self._weights(change).keys()
            for three in threes_of(change):
                first, middle, last = three.split()
                wanted |= {f"{first} {middle}", f"{middle} {last}"}
        return wanted

    def _of_source(self, folder: Path, path: Path) -> File:
        parts = path.relative_to(folder).with_suffix("").parts
        return File(path, ".".join(parts).removesuffix(".__init__"))

    def _tests(self, file: File, name: str, node: Function) -> Iterator[Test]:
        """Yield a test, or those of the recorded texts that it compares."""
        path = str(file.path.relative_to(self.root))
        slow = "slow" in file.marks(node)
        text = "\n".join([file.text_of(node), *self._sentences(file, node)])
        weighed = Weighed(self.wanted)
        imports = {*file.imports}
        texts = [text]
        for holder, used in self._used(file, node):
            helps = holder is not file and holder.path.name != "conftest.py"
            weighed.add(holder.text_of(used), IN_HELPER if helps else IN_USED)
            texts.append(holder.text_of(used))
            if holder is not file:
                imports |= imported(holder.text_of(used))
        weighed.add(text, IN_TEXT)
        weighed.add(node.name, IN_NAME)
        about = f"{ast.get_docstring(file.tree)} {file.path.stem} {file.path.parent.name}"
        weighed.add(about, IN_ABOUT)
        recorded = self._recorded(file, node)
        if not recorded:
            uses = "\n".join(texts)
            yield Test(f"{path}::{name}", path, text, slow, weighed, imports, uses)
        for expected in recorded:
            content = expected.read_text(encoding="utf-8")
            pairs = Weighed(self.wanted)
            pairs.add_pairs(content)
            test, path_of = f"{path}::{name}[{expected.stem}]", expected.relative_to(self.root)
            yield Test(test, str(path_of), "", slow, pairs, imports, content, recorded=True)

    def _sentences(self, file: File, node: Function) -> list[str]:
        """Return the sentences that a test sees by the fixture `wording`, in its snapshot."""
        folder = file.path.parent.relative_to(self.root / "tests")
        snapshot = self.root / "tests/snapshots/sentences" / folder / f"{file.path.stem}.txt"
        if "wording" not in [argument.arg for argument in node.args.args] or not snapshot.exists():
            return []
        sentences: list[str] = []
        of_this_test = False
        for line in snapshot.read_text(encoding="utf-8").splitlines():
            if line.startswith("== "):
                of_this_test = re.split(r"[\[ ]", line.removeprefix("== "))[0] == node.name
            elif of_this_test:
                sentences.append(line)
        return sentences

    def _recorded(self, file: File, node: Function) -> list[Path]:
        """Return the texts of the snapshots that a test compares."""
        decorators = "".join(map(ast.unparse, node.decorator_list))
        if not decorators.count("OF_DRY_RUNS"):
            return []
        of_dry_runs = ast.unparse(file.defined["OF_DRY_RUNS"])
        texts = sorted((file.path.parent / "expected").glob("*.txt"))
        of_others = "not in OF_DRY_RUNS" in decorators
        return [text for text in texts if (repr(text.stem) in of_dry_runs) != of_others]

    def _used(self, file: File, node: Function) -> Iterator[tuple[File, ast.stmt]]:
        """Yield what a test uses of its file, the fixtures of its folders, and other test files."""
        holders = [file, *(self.conftests[at] for at in file.path.parents if at in self.conftests)]
        holders += [self.helpers[name] for name in sorted(file.imports) if name in self.helpers]
        seen = {node.name}
        todo = [file.text_of(node)]
        for text in todo:
            for name in sorted(_names(text) - seen):
                seen.add(name)
                for holder in holders:
                    if name in holder.defined:
                        todo.append(holder.text_of(holder.defined[name]))
                        yield holder, holder.defined[name]
                        break

    def _having(self) -> dict[str, list[tuple[int, float]]]:
        """Return by word the numbers of the tests that have it, each with what it counts there."""
        having: dict[str, list[tuple[int, float]]] = defaultdict(list)
        usual = sum(test.weighed.length for test in self.tests) / max(len(self.tests), 1)
        for number, test in enumerate(self.tests):
            least = SATURATION * (1 - LENGTH + LENGTH * test.weighed.length / usual)
            for word, times in test.weighed.words.items():
                having[word].append((number, times / (times + least)))
        return having

    def steps(self, path: str) -> dict[str, int]:
        """Return the modules that have a way to a file, each with its number of steps."""
        steps: dict[str, int] = {}
        if path in self.files:
            steps[self.files[path].module] = 0
        else:
            *folders, name = Path(path).parts
            inner = [folder for folder in folders if folder != Path(path).stem][::-1]
            # What reads all files of a folder that end so.
            alike = f'"*{Path(path).suffix}"'
            for file in self.files.values():
                in_folder = bool(inner) and _names_folder(file.text, inner[0])
                if name in file.text or (alike in file.text and in_folder):
                    steps[file.module] = 0
                    continue
                for way, folder in enumerate(inner, 1):
                    if _names_folder(file.text, folder):
                        steps[file.module] = way
                        break
        todo = sorted(steps, key=steps.__getitem__)
        for module in todo:
            for importer in self.importers[module]:
                if importer not in steps:
                    steps[importer] = steps[module] + 1
                    todo.append(importer)
        return steps

    def _users(self, change: Change) -> set[str]:
        """Return the names in the changed file that use what changed, also through others."""
        if change.path not in self.files:
            return set()
        file = self.files[change.path]
        uses = {name: {*_NAME.findall(file.text_of(node))} for name, node in file.defined.items()}
        spans = [new for _, new in _spans(change)]
        holders = around(change.path, change.after, spans)
        todo = " ".join(names for names, _ in holders).split()
        changed = {*todo}
        users: set[str] = set()
        for used in todo:
            new = {name for name, inside in uses.items() if used in inside} - users - changed
            users |= new
            todo += sorted(new)
        return users

    def _weights(self, change: Change) -> Weights:
        """Return the words of a change and of what uses it, each with the most that it counts."""
        weights = words_of(change)
        for name in self._users(change):
            word = name.strip("_").lower()
            weights[word] = max(USER, weights.get(word, 0))
        return weights

    def _quoting(self, change: Change) -> dict[int, float]:
        """Return what it counts of a test, by its number, that it quotes a changed function."""
        quoting: dict[int, float] = {}
        for three in threes_of(change):
            first, middle, last = three.split()
            having = self._having_pair(first, middle) & self._having_pair(middle, last)
            having = {number for number in having if three in self.tests[number].row}
            if len(having) <= FEW:
                counts = QUOTED * self._rarity(len(having))
                quoting |= {number: max(counts, quoting.get(number, 0)) for number in having}
        return quoting

    def _having_pair(self, first: str, second: str) -> set[int]:
        """Return the numbers of the tests that have two words side by side."""
        return {number for number, _ in self.having.get(f"{first} {second}", ())}

    def recording(self, change: Change) -> list[Test]:
        """Return the recorded texts that have a phrase which the change takes away."""
        phrases = gone_phrases(change)
        recorded = [test for test in self.tests if test.recorded]
        return [test for test in recorded if any(phrase in test.row for phrase in phrases)]

    def _rarity(self, having: int) -> float:
        """Return what a word counts that so many tests have."""
        return math.log(1 + len(self.tests) / (having + 0.5))

    def _ways(self, change: Change, numbers: Iterable[int]) -> dict[int, int]:
        """Return the steps from each of some tests to the changed file, as an index of STEPS."""
        steps = self.steps(change.path)
        ways = {}
        for number in numbers:
            test = self.tests[number]
            names = {*test.imports}
            if test.path in self.files:
                names.add(self.files[test.path].module)
            known = [steps[name] for name in names if name in steps]
            ways[number] = min([*known, len(STEPS) - 2]) if known else len(STEPS) - 1
        return ways

    def ranked(self, change: Change) -> list[Test]:
        """Return the tests that have words of a change, those first that are likeliest to see it.

        A test that is changed itself comes before all others, then the recorded texts that have a
        phrase which is gone.
        """
        scores: dict[int, float] = defaultdict(float)
        for word, weight in self._weights(change).items():
            having = self.having.get(word, [])
            for number, share in having:
                scores[number] += weight * self._rarity(len(having)) * share
        quoting = self._quoting(change)
        ways = self._ways(change, {*scores, *quoting})
        of_way = Counter(ways.values())
        recording = {test.id for test in self.recording(change)}
        changed = [line for line in _changed(change) if line.strip()]
        new = not change.before and change.path not in self.files
        reads_folder = new or change.path.endswith(".md")
        for number, way in ways.items():
            test = self.tests[number]
            scores[number] *= STEPS[way]
            if way <= 1:
                scores[number] *= 1 + NEAR * self._rarity(of_way[0] + way * of_way[1])
                if reads_folder:
                    scores[number] += READS * (2 - way)
            scores[number] += quoting.get(number, 0)
            if test.id in recording:
                scores[number] += FIRST
            if test.path == change.path and any(line in test.text for line in changed):
                scores[number] = math.inf
        # Less of a test that has likelier ones in its file.
        likelier: Counter[str] = Counter()
        for number in sorted(scores, key=lambda test: -scores[test]):
            path = self.tests[number].path
            scores[number] /= 1 + AGAIN * likelier[path]
            likelier[path] += 1
        return [self.tests[number] for number in sorted(scores, key=lambda test: -scores[test])]


@cache
def _spans(change: Change) -> list[tuple[slice, slice]]:
    """Return which lines changed, before and after."""
    lines = change.before.splitlines(), change.after.splitlines()
    codes = difflib.SequenceMatcher(None, *lines, autojunk=False).get_opcodes()
    return [(slice(a, b), slice(c, d)) for kind, a, b, c, d in codes if kind != "equal"]


def _changed(change: Change) -> list[str]:
    """Return the changed lines, those before and those after."""
    before, after = change.before.splitlines(), change.after.splitlines()
    spans = _spans(change)
    return [line for old, new in spans for line in (*before[old], *after[new])]


def words_of(change: Change) -> Weights:
    """Return the words of a change, each with the most that it counts."""
    weights: Weights = {}

    def count(text: str, weight: float) -> None:
        for word in words(text):
            weights[word] = max(weight, weights.get(word, 0))

    before, after = change.before.splitlines(), change.after.splitlines()
    for old, new in _spans(change):
        left, come = "\n".join(before[old]), "\n".join(after[new])
        count(f"{left}\n{come}", CHANGED)
        for word in words(left).keys() - words(come).keys():
            weights[word] = GONE
    count(" ".join([Path(change.path).stem, Path(change.path).parent.name]), PATH)
    for text, which in ((change.before, 0), (change.after, 1)):
        spans = [both[which] for both in _spans(change)]
        for name, body in around(change.path, text, spans):
            count(name, NAME)
            count(body, BODY)
    return weights


def threes_of(change: Change) -> set[str]:
    """Return each three neighbours in the texts that the changed functions state."""
    if not change.path.endswith(".py"):
        return set()
    threes = set()
    for which, text in enumerate((change.before, change.after)):
        spans = [both[which] for both in _spans(change)]
        for _, body in around(change.path, text, spans):
            for literal in literals(body):
                threes |= in_threes(literal)
    return threes


def gone_phrases(change: Change) -> set[str]:
    """Return the phrases of three words and more that a change takes away, as ``in_row``.

    Of Python these are whole texts, each up to what is formatted into it; of others three words.
    """
    if change.path.endswith(".py"):
        texts = literals(change.before) - literals(change.after)
        return {in_row(text) for text in texts if len(row(text)) > 2}
    before, after = change.before.splitlines(), change.after.splitlines()
    spans = _spans(change)
    left = "\n".join(line for old, _ in spans for line in before[old])
    come = "\n".join(line for _, new in spans for line in after[new])
    return in_threes(left) - in_threes(come)


def around(path: str, text: str, spans: Sequence[slice]) -> Iterator[tuple[str, str]]:
    """Yield the names of what holds the changed lines, each with its text where it is a function.

    Of YAML and Markdown these are the keys and the headings above.
    """
    lines = text.splitlines()
    if not path.endswith(".py"):
        for changed in spans:
            yield " ".join(_headings(lines, changed.start)), ""
        return
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        lines_of_node = span(node)
        if any(
            lines_of_node.start < max(changed.stop, changed.start + 1)
            and changed.start < lines_of_node.stop
            for changed in spans
        ):
            body = "\n".join(lines[lines_of_node]) if isinstance(node, Function) else ""
            yield " ".join(bound(node)), body


def _headings(lines: Sequence[str], number: int) -> Iterator[str]:
    """Yield the lines above one that are indented less, or are the heading of Markdown."""
    indent = 99
    for line in reversed(lines[: number + 1]):
        indent_of_line = len(line) - len(line.lstrip())
        if line.startswith("#"):
            yield line
            return
        if line.strip() and indent_of_line < indent:
            indent = indent_of_line
            yield line.partition(":")[0]


@dataclass(frozen=True)
class Chosen:
    """The ids of tests, those first that are likeliest to see some changes.

    recording: those of the recorded texts that have a phrase which is gone.
    """

    quick: list[str]
    slow: list[str]
    recording: list[str]


def chosen(root: Path, changes: Iterable[Change], quick: int, slow: int) -> Chosen:
    """Return the tests that can see some changes, of each file in turn the likeliest.

    :param quick: so many quick ones.
    :param slow: so many slow ones.
    """
    changes = list(changes)
    tree = Tree(root, changes)
    ranked = [tree.ranked(change) for change in changes]
    longest = max(map(len, ranked), default=0)
    at_place = [tests[place : place + 1] for place in range(longest) for tests in ranked]
    tests = dict.fromkeys(test for tests in at_place for test in tests)
    recording = {test.id: None for change in changes for test in tree.recording(change)}
    return Chosen(
        [test.id for test in tests if not test.slow][:quick],
        [test.id for test in tests if test.slow][:slow],
        [*recording],
    )

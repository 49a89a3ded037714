"""Parser of the JSON (``-j``) of ROCm Validation Suite's modules pebb, pbqt and babel.

For pebb and pbqt it contains neither sizes nor directions. These are in the configuration, so the
name of the action has to state them. Sources of the format: action.cpp of each module and
docs/schemas of ROCm 7.2.0. The format of 6.3 has other entries, and is refused.
"""

from __future__ import annotations

import re
from typing import Any

from fabricheck.core import strict_json
from fabricheck.core.errors import GarbledOutput, InvalidDocument, OtherRunError
from fabricheck.core.lines import Printed, agree, printed
from fabricheck.tools.outputs import PlacedValues

#: The ends of a copy, by module: those of pebb are a NUMA node and a GPU.
_ENDS = {"pebb": ("srccpu", "dstgpu"), "pbqt": ("srcgpu", "dstgpu")}

#: Arrays that RVS counts for a function of babel; a function that only reads counts as two.
ARRAYS = {"Read": 2, "Write": 2, "Copy": 2, "Mul": 2, "Add": 3, "Triad": 3, "Dot": 2}

_RATE = re.compile(r"([0-9]+\.[0-9]{3}) GBps( \(\*\))?")
_NONE = ("NA", "(not measured)")
_SIX = re.compile(r"[0-9]+\.[0-9]{6}")
_ID = re.compile(r"[0-9]{1,9}")


def parse(text: str, origin: str, module: str) -> PlacedValues:
    """Parse one log of one module: GB/s (1e9 bytes per second); copies count bytes once.

    The values of pebb and pbqt are by action, source and destination, as RVS numbers NUMA nodes and
    GPUs: all bytes of a run over its time, of both directions together if the action has both. The
    values of babel are by action, GPU and function: bytes read and written in the best run.

    :param origin: the file, for errors.
    :param module: ``pebb``, ``pbqt`` or ``babel``.
    :raises GarbledOutput: when the text is cut off, damaged, contradicts itself, or a test failed.
    :raises OtherRunError: when it is of another module.
    """
    reader = _Reader(origin)
    values: dict[tuple[str | int, ...], float] = {}
    for action, entries in reader.actions(text, module).items():
        if module == "babel":
            values |= reader.functions(action, entries)
        else:
            values |= reader.copies(action, entries, _ENDS[module])
    return PlacedValues(values)


class _Reader:
    def __init__(self, origin: str) -> None:
        self.origin = origin

    def garbled(self, reason: str) -> GarbledOutput:
        return GarbledOutput(self.origin, None, reason)

    def actions(self, text: str, module: str) -> dict[str, list[dict[str, str]]]:
        if not text.strip():
            raise self.garbled("the text is empty")
        try:
            root = strict_json.parse(text, self.origin)
        except InvalidDocument as error:
            raise self.garbled(f"it is cut off, or not JSON of RVS: it {error.reason}") from None
        if not isinstance(root, dict) or root.get("version") != "1.0" or len(root) != 2:
            raise self.garbled("it is not JSON of RVS of version 1.0 and one module")
        if module not in root:
            found = next(name for name in root if name != "version")
            raise OtherRunError(self.origin, None, f"it is of the module {found}, not {module}")
        actions = root[module]
        if not isinstance(actions, dict) or not actions:
            raise self.garbled(f"the module {module} has no action")
        for name, entries in actions.items():
            if not isinstance(entries, list) or not entries:
                raise self.garbled(f"the action {name} has no entry")
            for entry in entries:
                self._require_texts(name, entry)
        return actions

    def _require_texts(self, action: str, entry: Any) -> None:
        if not isinstance(entry, dict) or not all(isinstance(x, str) for x in entry.values()):
            raise self.garbled(f"an entry of the action {action} is not an object of texts")

    def _passed(self, action: str, entry: dict[str, str]) -> None:
        if entry.get("pass") != "true":
            raise self.garbled(f"a test of the action {action} did not pass")

    def copies(
        self, action: str, entries: list[dict[str, str]], ends: tuple[str, str]
    ) -> dict[tuple[str | int, ...], float]:
        last: dict[tuple[str, str], str] = {}
        for entry in entries:
            if set(entry) == {"message"}:
                continue
            if set(entry) != {*ends, "intf", "throughput", "pass"}:
                raise self.garbled(
                    f"an entry of the action {action} has {', '.join(sorted(entry)) or 'nothing'}"
                )
            self._passed(action, entry)
            source, target = (entry[end] for end in ends)
            if not _ID.fullmatch(source) or not _ID.fullmatch(target):
                raise self.garbled(f"{source} and {target} of the action {action} are not numbers")
            # Means of parts of the run precede the mean of the whole run.
            last[source, target] = entry["throughput"]
        values: dict[tuple[str | int, ...], float] = {}
        for (source, target), word in last.items():
            if word in _NONE:
                continue
            match = _RATE.fullmatch(word)
            if match is None or float(match[1]) <= 0:
                raise self.garbled(f"'{word}' of the action {action} is not a positive throughput")
            if match[2] is not None:
                raise self.garbled(f"the action {action} has no mean of the whole run")
            values[action, int(source), int(target)] = float(match[1])
        return values

    def functions(
        self, action: str, entries: list[dict[str, str]]
    ) -> dict[tuple[str | int, ...], float]:
        values: dict[tuple[str | int, ...], float] = {}
        sizes: dict[int, Printed] = {}
        for entry in entries:
            gpu = entry.get("gpu_id", "")
            if not _ID.fullmatch(gpu):
                raise self.garbled(f"an entry of the action {action} has no gpu_id")
            if "Array size" in entry:
                sizes[int(gpu)] = self._number(action, entry, "Array size")
                continue
            size = sizes.get(int(gpu))
            if size is None:
                raise self.garbled(f"the action {action} has no 'Array size' of GPU {gpu}")
            self._passed(action, entry)
            name = entry.get("Function", "")
            place = (action, int(gpu), name)
            if name not in ARRAYS or place in values:
                raise self.garbled(f"the action {action} has a wrong function '{name}', or twice")
            rate = self._number(action, entry, "MBytes/sec")
            times = [self._number(action, entry, key) for key in ("Min(s)", "Average(s)", "Max(s)")]
            if sorted(times, key=lambda one: one.value) != times:
                raise self.garbled(f"the times of {name} of GPU {gpu} are not in order")
            moved = (ARRAYS[name] * size.low, ARRAYS[name] * size.high)
            if not agree((rate.low * times[0].low, rate.high * times[0].high), moved):
                raise self.garbled(f"{rate.value:g} MBytes/sec of {name} contradicts its time")
            values[place] = rate.value / 1e3
        for gpu_id in sizes:
            if not any(one[1] == gpu_id for one in values):
                raise self.garbled(f"the action {action} has no function of GPU {gpu_id}")
        return values

    def _number(self, action: str, entry: dict[str, str], key: str) -> Printed:
        word = entry.get(key, "")
        found = printed(word) if _SIX.fullmatch(word) else None
        if found is None or found.value <= 0:
            raise self.garbled(
                f"'{key}' of the action {action} is '{word}', which is not a positive value"
            )
        return found

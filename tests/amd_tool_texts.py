"""Composed: what AMD's tools print, written after their sources, with made-up values.

No output of them was recorded by this project. TransferBench: 1.52, and its client after it,
of 1.67 as ROCm/TransferBench 2bc42cd8 has it;
rocm_bandwidth_test: that of ROCm 6.3.3; BabelStream: HIP, 5.0.
"""

from __future__ import annotations

MIB = 1 << 20

#: Variables that decide what TransferBench does here.
VARIABLES = (
    "OUTPUT_TO_CSV", "SHOW_ITERATIONS", "USE_GPU_DMA", "USE_DMA_EXEC", "USE_REMOTE_READ",
    "NUM_GPU_DEVICES", "A2A_DIRECT", "SWEEP_MIN", "SWEEP_MAX", "SWEEP_EXE",
)  # fmt: skip


def settings(version, part, shown):
    """Compose the list of environment variables that stands above each preset."""
    lines = [f"TransferBench v{version}", "=" * 63]
    lines += ["[Common]                              (Suppress by setting HIDE_ENV=1)"]
    common = {"NUM_ITERATIONS": 10, "NUM_WARMUPS": 3, "SHOW_ITERATIONS": 0}
    for name, value in common.items():
        lines.append(_setting(name, value))
    lines += ["", f"[{part} Related]"]
    lines += [_setting(name, value) for name, value in shown.items()]
    return [*lines, ""]


def _setting(name, value):
    return f"{name:<20} = {value:>12} : what it does (0, 1)"


def transferbench_p2p(
    size=64 * MIB, cpus=2, gpus=2, executor="GFX", remote=False, version="1.60.00",
    rate=None, idle=(), wrongly_idle=(),
):  # fmt: skip
    """Compose preset p2p.

    idle: NUMA nodes without CPUs, whose copies have no value, nor what is both ways with them;
    wrongly_idle: only the former.
    """
    rate = rate or _rate
    kinds = ["CPU"] * cpus + ["GPU"] * gpus
    names = [f"{kind} {i - cpus * (kind == 'GPU'):02d}" for i, kind in enumerate(kinds)]
    lines = settings(
        version,
        "P2P",
        {
            "NUM_GPU_SE": 1,
            "USE_GPU_DMA": int(executor == "DMA"),
            "USE_REMOTE_READ": int(remote),
        },
    )
    lines.append(f"Bytes Per Direction {size}")
    for part in ("Uni", "Bi"):
        near, far = ("Remote", "Local") if remote else ("Local", "Remote")
        lines.append(
            f"{part}directional copy peak bandwidth GB/s [{near} read / {far} write] "
            f"(GPU-Executor: {executor})"
        )
        corner = "SRC\\DST" if part == "Bi" else "SRC\\EXE+DST" if remote else "SRC+EXE\\DST"
        gap = "   " if cpus else ""
        head = f"{corner:>12}"
        head += "".join(f"{name[:3]:>7} {name[4:]}" for name in names[:cpus]) + gap
        head += "".join(f"{name[:3]:>7} {name[4:]}" for name in names[cpus:])
        lines.append(head)
        told = {}
        for i, source in enumerate(names):
            if i == cpus and i:
                lines.append("")
            arrows = (" ->",) if part == "Uni" else (" ->", "<- ")
            cells = {}
            for arrow in arrows:
                cells[arrow] = []
                for target in names:
                    alone = {source} & {*idle, *wrongly_idle} if part == "Uni" else set()
                    both = {source, target} & {*idle} or source == target
                    if alone or (part == "Bi" and both):
                        cells[arrow].append(None)
                        continue
                    ends = (source, target) if arrow == " ->" else (target, source)
                    value = round(rate(*ends, part == "Bi"), 2)
                    cells[arrow].append(value)
                    if source != target:
                        told.setdefault((source[:3], target[:3]), []).append(value)
            if part == "Bi":
                cells["<->"] = [
                    None if one is None else one + other
                    for one, other in zip(cells[" ->"], cells["<- "], strict=True)
                ]
            for arrow, row in cells.items():
                lines.append(f"{source[:3]:>5} {source[4:]} {arrow:>3}{_p2p_row(row, cpus)}")
            if part == "Bi" and source != names[-1]:
                lines.append("")
        pairs = [("CPU", "CPU"), ("CPU", "GPU"), ("GPU", "CPU"), ("GPU", "GPU")]
        lines.append(" " * 25 + "".join(f"  {a}->{b}" for a, b in pairs))
        means = [told.get(pair) for pair in pairs]
        during = "UniDir" if part == "Uni" else " BiDir"
        lines.append(
            f"Averages (During {during}):"
            + "".join(f"{sum(m) / len(m):10.2f}" if m else f"{'N/A':>10}" for m in means)
        )
        lines.append("")
    return "\n".join(lines) + "\n"


def _p2p_row(row, cpus):
    words = [f"{'N/A':>10}" if cell is None else f"{cell:10.2f}" for cell in row]
    return "".join(words[:cpus]) + ("   " if cpus else "") + "".join(words[cpus:])


def _rate(source, target, both):
    """Return a made-up rate, another one for each place."""
    if source == target:
        value = 1690.85 if source[0] == "G" else 43.39
    else:
        value = 48.5 if source[0] == target[0] == "G" else 25.1
    number = 10 * int(source[4:]) + int(target[4:]) + 0.5 * (source[0] == "C")
    return value + 0.01 * number - (2.3 if both else 0)


def transferbench_a2a(
    size=64 * MIB, gpus=4, version="1.60.00", direct=True, shown=None, missing=(),
    scale=1.0, borders=True,
):  # fmt: skip
    """Compose preset a2a; missing: pairs without a link of their own.

    borders: whether the table of 1.67 has them (SHOW_BORDERS).
    """
    names = [f"GPU {i:02d}" for i in range(gpus)]
    pairs = [(i, j) for i in range(gpus) for j in range(gpus) if i != j and (i, j) not in missing]
    rates = {pair: round(scale * (47 + 0.011 * pair[0] - 0.107 * pair[1]), 3) for pair in pairs}
    shown = {"A2A_DIRECT": int(direct), "A2A_MODE": 0, "NUM_SUB_EXEC": 8, "USE_DMA_EXEC": 0,
             "USE_REMOTE_READ": 0} | (shown or {})  # fmt: skip
    lines = settings(version, "AllToAll", shown)
    if version.startswith("1.67"):
        lines += _bordered_a2a(size, names, rates, borders)
        return "\n".join([*lines, *_a2a_totals(rates)]) + "\n"
    lines += [
        "GPU-GFX All-To-All benchmark:",
        "==========================",
        f"- Copying {size} bytes between {'directly connected' if direct else 'all'} pairs of GPUs "
        f"using 8 CUs ({len(pairs)} Transfers)",
        "Test 1:",
        f" Executor: GPU 00 | {3 * 47:7.3f} GB/s |    1.489 ms | {size * 3:12d} bytes",
        "",
        "Summary:" if version == "1.52" else f"Summary: [{size} bytes per Transfer]",
        "=" * 58,
        "SRC\\DST " + "".join(f" {name}    " for name in names) + "    STotal      Actual",
    ]
    totals = []
    for i, name in enumerate(names):
        row = [rates.get((i, j)) for j in range(gpus)]
        known = [cell for cell in row if cell is not None]
        totals.append((sum(known), min(known, default=0.0) * len(known)))
        cells = [f"{'N/A':>8}" if cell is None else f"{cell:8.3f}" for cell in row]
        lines.append(
            name
            + "".join(f" {cell}  " for cell in cells)
            + f"    {totals[-1][0]:8.3f}    {totals[-1][1]:8.3f}"
        )
    columns = [sum(rate for (_, j), rate in rates.items() if j == k) for k in range(gpus)]
    actual = [one for _, one in totals]
    total = sum(rates.values())
    lines += [
        "",
        "RTotal"
        + "".join(f" {cell:8.3f}  " for cell in columns)
        + f"    {total:8.3f}    {min(actual):8.3f}   "
        + f" {max(actual):8.3f}",
        "",
        *_a2a_totals(rates),
    ]
    return "\n".join(lines) + "\n"


def _a2a_totals(rates):
    total = sum(rates.values())
    return [
        f"Average   bandwidth (GPU Timed): {total / len(rates):8.3f} GB/s",
        f"Aggregate bandwidth (GPU Timed): {total:8.3f} GB/s",
        f"Aggregate bandwidth (CPU Timed): {0.7 * total:8.3f} GB/s",
    ]


def _bordered_a2a(size, names, rates, borders):
    """Compose what 1.67 prints of a2a up to its totals: a table of cells that are as wide as the
    widest of their column, and a line between some rows."""
    count = len(names)
    body = [[rates.get((i, j)) for j in range(count)] for i in range(count)]
    sums = [sum(cell for cell in row if cell is not None) for row in body]
    known = [[cell for cell in row if cell is not None] for row in body]
    actual = [min(row, default=0.0) * len(row) for row in known]
    columns = [sum(row[j] for row in body if row[j] is not None) for j in range(count)]
    rows = [[" SRC\\DST ", *(f" {name} " for name in names), " STotal ", " Actual "]]
    for name, row, total, least in zip(names, body, sums, actual, strict=True):
        cells = [" N/A " if cell is None else f" {cell:.2f} " for cell in row]
        rows.append([f" {name} ", *cells, f" {total:.2f} ", f" {least:.2f} "])
    last = [*columns, sum(sums), sum(actual)]
    rows.append([" RTotal ", *(f" {cell:.2f} " for cell in last)])
    rows.append([""] * (count + 1) + [" CPU Timed: ", f" {0.7 * sum(sums):.2f} "])
    widths = [max(len(row[column]) for row in rows) for column in range(count + 3)]
    upright = {0, 1, count + 1, count + 2, count + 3}
    lines = [
        "GPU-GFX All-To-All benchmark:",
        "==============================",
        f"[{size} bytes per Transfer] [GFX:8] [1 Read(s) 1 Write(s)] [MemType:fine-grained] "
        "[NIC QueuePairs:0] [#Ranks:1]",
    ]
    for number, row in enumerate(rows):
        if borders and number in (0, 1, count + 1, count + 2):
            lines.append(_border(widths, upright, number, len(rows)))
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        edges = ["│" if borders and column in upright else " " for column in range(count + 4)]
        if number == len(rows) - 1:
            edges[: count + 1] = [" "] * (count + 1)
        text = "".join(edge + cell for edge, cell in zip(edges, [*cells, ""], strict=True))
        lines.append(text)
    if borders:
        lines.append(_border(widths, upright, len(rows), len(rows)))
    return [*lines, ""]


def _border(widths, upright, number, rows):
    corner = "┌" if number == 0 else "└" if number == rows else "├"
    middle = "┬" if number == 0 else "┴" if number == rows else "┼"
    line = corner
    for column, width in enumerate(widths):
        line += "-" * width + (middle if column + 1 in upright else "-")
    return line[:-1] + {"┬": "┐", "┴": "┘", "┼": "┤"}[middle]


def transferbench_one_to_all(gpus=4, executor="G", version="1.60.00", size=None, scale=1.0):
    """Compose preset one2all; with a size preset pcopy of 1.52."""
    if size is not None:
        lines = settings(version, "Parallel-copy", {"USE_GPU_DMA": int(executor == "D")})
        how = "DMA" if executor == "D" else "GFX (4 CUs)"
        lines.append(
            f"Bytes to copy: {size} from GPU 0 using {how} "
            f"[Sweeping {gpus - 1} to {gpus - 1} parallel writes]"
        )
    else:
        shown = {"EXE_INDEX": 0, "SWEEP_DIR": 0, "SWEEP_EXE": executor}
        lines = settings(version, "One-To-All", shown)
        lines.append(f"Executing (G0 -> {executor}0 -> G*)")
    lines.append("".join(f"   GPU {i:<3d}   " for i in range(1, gpus)))
    lines.append("-------------" * (gpus - 1))
    others = range(1, gpus)
    row = "".join(f"  {scale * (47.1 / len(others) + other):8.3f}   " for other in others)
    groups = "".join(f" (G0 {executor}0 G{other})" for other in others)
    lines.append(f"{row} {len(others)} 4{groups}")
    return "\n".join(lines) + "\n"


def transferbench_scaling(size=64 * MIB, cpus=1, gpus=2, most=8, version="1.60.00", scale=1.0):
    """Compose preset scaling."""
    names = [f"CPU{i:02d}" for i in range(cpus)] + [f"GPU{i:02d}" for i in range(gpus)]
    lines = settings(version, "Scaling", {"LOCAL_IDX": 0, "SWEEP_MAX": most, "SWEEP_MIN": 1})
    lines += [
        "GPU-GFX Scaling benchmark:",
        "==========================",
        f"- Copying {size} bytes from GPU 0 to other devices",
        "- All numbers reported as GB/sec",
        "",
        "NumCUs" + "".join(f"   {name}     " for name in names),
    ]
    rates = {
        units: [round(scale * min(20.1 + i, 9.3 * units - i), 2) for i in range(len(names))]
        for units in range(1, most + 1)
    }
    for units, row in rates.items():
        lines.append(f"{units:4d}  " + "".join(f" {cell:7.2f}     " for cell in row))
    best = []
    for i in range(len(names)):
        top = max(row[i] for row in rates.values())
        best.append((top, next(units for units, row in rates.items() if row[i] == top)))
    lines.append(" Best " + "".join(f" {top:7.2f}({units:3d})" for top, units in best))
    return "\n".join(lines) + "\n"


ACCESS = "Inter-Device Access"
DISTANCE = "Inter-Device Numa Distance"
ONE_WAY = "Unidirectional copy peak bandwidth GB/s"
BOTH_WAYS = "Bidirectional copy peak bandwidth GB/s"


def rocm_bandwidth_test(cpus=1, gpus=2, scale=1.0, place="{:02x}:0.0"):
    """Compose its matrices."""
    count = cpus + gpus
    command = "./rocm-bandwidth-test (rocm_bandwidth -a + rocm_bandwidth -A)"
    lines = ["." * 40, "", f"{'':10}RocmBandwidthTest Version: 2.6.0", ""]
    lines += [f"{'':10}Launch Command is: {command}", "", ""]
    for i in range(count):
        told = f"{'':10}Device: {i},  composed device"
        if i >= cpus:
            told += f",  GPU-{i:016x},  {place.format(6 + i - cpus)}"
        lines.append(told)
    lines.append("")
    for title in (ACCESS, DISTANCE, ONE_WAY, BOTH_WAYS):
        wide = 12 if "copy" in title else 10
        lines += [f"{'':10}{title}", ""]
        lines += [f"{'':10}{'D/D':10}" + "".join(f"{j:<{wide}}" for j in range(count)), ""]
        for i in range(count):
            cells = [rbt_cell(title, i, j, cpus, scale) for j in range(count)]
            lines += [f"{'':10}{i:<10}" + "".join(f"{cell:<{wide}}" for cell in cells), ""]
        lines.append("")
    return "\n".join(lines) + "\n"


def rbt_cell(title, i, j, cpus, scale):
    """Return one cell of rocm_bandwidth_test's matrices."""
    if title == ACCESS:
        return "1"
    if title == DISTANCE:
        return str(0 if i == j else 15 + i + j)
    if max(i, j) < cpus or (title == BOTH_WAYS and i == j):
        return "N/A"
    if title == ONE_WAY:
        value = 925.889 if i == j else 28.349 if min(i, j) < cpus else 48.902
        return f"{scale * (value + 0.01 * i + 0.1 * j):.3f}"
    return f"{scale * ((51.8 if min(i, j) < cpus else 97.6) + 0.01 * (i + j)):.3f}"


def hip_stream_csv(csv):
    """Compose hip-stream's output of cuda-stream's: other words stand above the same table."""
    head = csv[: csv.index("function,")]
    own = ["BabelStream", "Version: 5.0", "Implementation: HIP", "Using HIP device composed GPU"]
    return csv.replace(head, "\n".join([*own, "Driver: 60342134", "Memory: DEFAULT"]) + "\n")

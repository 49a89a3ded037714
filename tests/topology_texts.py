"""Tool outputs composed by their documented formats from a node model.

None of these was recorded on a machine. The formats are those of rocm-smi (``showNodesBw``,
``showHwTopology``, ``showBus``), of amd-smi (``topology``) and of nvidia-smi (``topo -m``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fabricheck.node import NodeModel, format_cores

CLOSING = f"{' End of ROCm SMI Log ':=^80}"


def rocm_table(title: str, labels: Sequence[str], cell: Callable[[int, int], str]) -> str:
    lines = [f"{f' {title} ':=^84}", "       " + "".join(f"{label:<13}" for label in labels)]
    for a, label in enumerate(labels):
        row = "".join(f"{cell(a, b):<12} " for b in range(len(labels)))
        lines.append(f"{label:<6} {row}")
    return "\n".join(lines)


def gpus(node: NodeModel) -> list[str]:
    return [f"GPU{device.index}" for device in node.devices]


def bandwidth_cell(node: NodeModel, a: int, b: int) -> str:
    if a == b:
        return "N/A"
    link = node.links.get((min(a, b), max(a, b)))
    if link is None:
        return "0-0"
    return f"{int(link.peak_gbs * 1000)}-{int(link.total_gbs * 1000)}"


def shownodesbw(node: NodeModel) -> str:
    table = rocm_table("Bandwidth", gpus(node), lambda a, b: bandwidth_cell(node, a, b))
    return (
        f"\n\n{' ROCm System Management Interface ':=^84}\n{table}\n"
        "Format: min-max; Units: mps\n"
        '"0-0" min-max bandwidth indicates devices are not connected directly\n'
        f"{CLOSING}\n"
    )


def numa_list(node: NodeModel) -> str:
    lines = [f"{' Numa Nodes ':=^80}"]
    for device in node.devices:
        for what in ("Node", "Affinity"):
            lines.append(f"GPU[{device.index}]\t\t: (Topology) Numa {what}: {device.domain}")
    return "\n".join(lines)


def showtoponuma(node: NodeModel) -> str:
    return f"{numa_list(node)}\n{CLOSING}\n"


def showtopo(node: NodeModel) -> str:
    labels = gpus(node)
    hops = node.hop_matrix
    tables = (
        rocm_table("Weight between two GPUs", labels, lambda a, b: str(15 * hops[a][b])),
        rocm_table("Hops between two GPUs", labels, lambda a, b: str(int(a != b))),
        rocm_table("Link Type between two GPUs", labels, lambda a, b: "0" if a == b else "XGMI"),
    )
    return "\n\n".join((*tables, numa_list(node))) + f"\n{CLOSING}\n"


def showbus(addresses: Sequence[str]) -> str:
    lines = [f"GPU[{i}]\t\t: PCI Bus: {a.upper()}" for i, a in enumerate(addresses)]
    return "\n".join((f"{' PCI Bus ID ':=^80}", *lines, CLOSING)) + "\n"


def amd_smi(node: NodeModel, addresses: Sequence[str], *, order: Sequence[int] = ()) -> str:
    """Compose ``amd-smi topology``; it shows device ``order[i]`` in place i."""
    order = order or range(len(addresses))
    shown = [addresses[index] for index in order]

    def table(title: str, cell: Callable[[int, int], str]) -> str:
        lines = [f"{title}:", " " * 13 + " ".join(shown)]
        for a, label in zip(order, shown, strict=True):
            lines.append(f"{label} " + " ".join(f"{cell(a, b):<12}" for b in order))
        return "\n".join(lines)

    tables = (
        table("ACCESS TABLE", lambda a, b: "ENABLED"),
        table("WEIGHT TABLE", lambda a, b: str(15 * node.hop_matrix[a][b])),
        table("HOPS TABLE", lambda a, b: str(int(a != b))),
        table("LINK TYPE TABLE", lambda a, b: "SELF" if a == b else "XGMI"),
        table("NUMA BW TABLE", lambda a, b: bandwidth_cell(node, a, b)),
        table("DMA TABLE", lambda a, b: "SELF" if a == b else "T"),
    )
    legend = "\n\nLegend:\n  SELF = Current GPU\n  N/A = Not supported\n  <BW from>-<BW to>\n"
    return "\n\n".join(tables) + legend


def topo_m(
    node: NodeModel, *, nics: int = 1, between: Callable[[int, int], str] | None = None
) -> str:
    """Compose ``nvidia-smi topo -m`` with network cards beside the devices."""
    names = [*gpus(node), *(f"NIC{i}" for i in range(nics))]
    count = len(node.devices)
    lines = ["\t" + "\t".join((*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"))]
    for a, name in enumerate(names):
        cells = []
        for b in range(len(names)):
            if a == b:
                cells.append(" X ")
            elif max(a, b) >= count:
                cells.append("PXB")
            elif between is not None:
                cells.append(between(a, b))
            else:
                cells.append(f"NV{node.link_matrix[a][b]}")
        row = f"{name}\t" + "\t".join(cells)
        if a < count:
            domain = node.domains[node.devices[a].domain]
            row += f"\t{format_cores(domain.cores)}\t{domain.index}\t\tN/A"
        else:
            row += "\t\t\t\t"
        lines.append(row)
    return "\n".join(lines) + "\n\nLegend:\n\n  X    = Self\n  NV#  = bonded set of # NVLinks\n"


def query(addresses: Sequence[str]) -> str:
    return "".join(f"{i}, 0000{address.upper()}\n" for i, address in enumerate(addresses))


PCI = tuple(f"0000:{bus}:00.0" for bus in ("c1", "c6", "c9", "ce", "d1", "d6", "d9", "de"))

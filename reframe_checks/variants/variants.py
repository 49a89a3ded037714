"""Variants of the kernels: elements per thread, loads, and the number of blocks (E1 and E8).

All other checks use one element of 16 B per thread, plain loads, and as many blocks as cover the
arrays, unless config/devices.yaml states another shape. These checks tell whether another variant
is faster on a kind of device, and how many compute units a path needs: a grid of N blocks uses at
most N compute units.
"""

from dataclasses import dataclass, field
from functools import partial
from itertools import product

import reframe as rfm

from fabricheck.node import products
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import Figure, Metric, series_of
from fabricheck.rfm.pairs import pair_arguments, peers_of_the_first

ELEMENTS = (1, 2, 4, 8)
LOADS = ("plain", "streaming")
GRIDS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

#: Four elements per thread, so that few compute units fill a path.
SWEEP = ("--elements", "4", "--grid", ",".join(map(str, GRIDS)))
SCAN = ("--elements", ",".join(map(str, ELEMENTS)), "--loads", ",".join(LOADS))

#: Few samples: the variants are compared with each other.
SAMPLES = ("--max-samples", "15", "--series-time", "0.5")

#: Threads of a block of the kernels between devices, in the other checks as well.
PEER_BLOCK = 1024

#: The part of the best rate that counts as all of it.
ENOUGH = 0.95


@dataclass(frozen=True)
class Units(Metric):
    """The fewest blocks with 95 % of the best rate of a sweep.

    compared: the metric of the sweep's series, in GB/s.
    """

    compared: Metric = field(kw_only=True)

    def figure(self, document, population):
        """Compute the figure; the series with the fewest blocks decides it.

        :raises MetricError: as `Metric.figure` does.
        """
        chosen = series_of(document, self.compared, population, self.compared.unit)
        best = max(series["median"] for series in chosen)
        enough = [series for series in chosen if series["median"] >= ENOUGH * best]
        fewest = min(enough, key=lambda series: series["grid"])
        return Figure(self, fewest["grid"], chosen, (fewest,))


def of_variants(name, where, loads=LOADS, *, blocks, usual):
    """Return the variant that other checks measure, and the best one of some series.

    :param loads: how the kernel loads; ``(None,)`` for a kernel that only writes.
    :param blocks: the threads of a block that are tried.
    :param usual: threads of a block, elements per thread and loads in other checks.
    """
    block_size, elements, usual_loads = usual
    default = {
        **where,
        "block_size": block_size,
        "elements": elements,
        "loads": usual_loads if len(loads) > 1 else loads[0],
    }
    variants = tuple(product(blocks, ELEMENTS, loads))
    over = ("block_size", "elements", "loads")
    return [
        Metric(f"{name}_default", default, (), independent=True),
        Metric(f"{name}_best", where, over, "best", among=variants, independent=True, alike=False),
    ]


def of_sweep(name, where):
    """Return the rate of one block, the best rate, and the fewest blocks that reach it."""
    grids = tuple((blocks,) for blocks in GRIDS)
    best = Metric(f"{name}_best", where, ("grid",), "best", among=grids, alike=False)
    return [
        Metric(f"{name}_one_block", {**where, "grid": 1}, ()),
        best,
        Units(f"{name}_blocks", where, ("grid",), unit="count", among=grids, compared=best),
    ]


class VariantCheck(MeasuringCheck):
    """The common part; simulated kernels are alike, and virtual devices lack streaming loads."""

    tags = {"full"}
    valid_systems = ["+devices +peers -simulated"]
    seconds = 300


class StreamVariantCheck(VariantCheck):
    """Kernels of device 0 on its own memory."""

    program = "stream"
    valid_prog_environs = ["+stream"]

    def program_arguments(self):
        """Return the arguments of the class, and the size and the noise limit of the partition."""
        limits = ["--sizes", str(self.extra("array_bytes"))]
        limits += ["--noise-limit", str(self.extra("noise_limit"))]
        return ["--devices", "0", *self.arguments, *limits, *SAMPLES]

    @staticmethod
    def where(kernel):
        """Return the fields of the series of a kernel."""
        return {"experiment": "E1", "operation": kernel, "role": "single", "regime": "memory"}


@rfm.simple_test
class stream_variants(StreamVariantCheck):
    """Every shape: threads of a block, elements per thread, plain and streaming loads.

    `fabricheck limits calibrate` proposes of it the shape that the checks of a device's memory
    have (config/devices.yaml).
    """

    descr = "Shapes of the kernels on the memory of the first device (E1)"
    tags = {"E1", "full"}
    arguments = ("--kernels", "copy,triad,read-only,write-only", *SCAN)

    def blocks(self):
        """Return the threads of a block that are tried."""
        return self.extra("scan_block_sizes")

    def program_arguments(self):
        """Return the arguments with the threads of a block."""
        return [*super().program_arguments(), "--block-sizes", ",".join(map(str, self.blocks()))]

    def expected_metrics(self):
        """Return the shape of the other checks and the best one, of each kernel."""
        model = self.node.device_model if self.node else None
        shape = products.kernel_shape(model)
        return [
            metric
            for kernel in ("copy", "triad", "read-only", "write-only")
            for metric in of_variants(
                kernel.replace("-", "_"),
                self.where(kernel),
                (None,) if kernel == "write-only" else LOADS,
                blocks=self.blocks(),
                usual=(shape.block_size, shape.elements, shape.loads),
            )
        ]


@rfm.simple_test
class stream_blocks(StreamVariantCheck):
    """From one block to more than there are compute units."""

    descr = "The number of blocks that fill the memory of the first device (E1)"
    tags = {"E1", "full"}
    arguments = ("--kernels", "copy,read-only", "--block-sizes", "1024", *SWEEP)

    def expected_metrics(self):
        """Return the rate of one block, the best, and the number of blocks, of each kernel."""
        return [
            metric
            for kernel in ("copy", "read-only")
            for metric in of_sweep(kernel.replace("-", "_"), self.where(kernel))
        ]


class PeerVariantCheck(VariantCheck):
    """Kernels between device 0 and one device of each link class; metrics are of the widest path.

    The widest path needs the most compute units. The document has the others.
    """

    program = "p2p"
    tags = {"E8", "full"}
    valid_systems = ["+devices +several_devices +peers -simulated"]
    valid_prog_environs = ["+p2p"]

    def program_arguments(self):
        """Return pairs, operations and arguments, and the size and limits of the partition."""
        pairs = ",".join(f"{a}-{b}" for a, b in peers_of_the_first(self.required_node).values())
        what = ["--pairs", pairs, "--operations", "read,write"]
        return [*what, *self.arguments, *pair_arguments(self)]

    def expected_metrics(self):
        """Return the metrics of each operation on the widest path."""
        node = self.required_node
        pairs = peers_of_the_first(node).values()
        widest = max(pairs, key=lambda pair: node.peer_peak_gbs(*pair))
        return [
            metric
            for operation in ("read", "write")
            for metric in self.metrics_of(
                operation,
                {"operation": operation, "role": "single", "device_set": list(widest)},
            )
        ]


@rfm.simple_test
class p2p_variants(PeerVariantCheck):
    """Every number of elements per thread, with plain and with streaming loads."""

    descr = "Variants of kernels from and to a peer (E8)"
    arguments = ("--block-size", str(PEER_BLOCK), *SCAN)
    metrics_of = staticmethod(
        partial(of_variants, blocks=(PEER_BLOCK,), usual=(PEER_BLOCK, 1, "plain"))
    )


@rfm.simple_test
class p2p_blocks(PeerVariantCheck):
    """From one block to more than there are compute units."""

    descr = "The number of blocks that fill the path to a peer (E8)"
    arguments = ("--block-size", str(PEER_BLOCK), *SWEEP)
    metrics_of = staticmethod(of_sweep)

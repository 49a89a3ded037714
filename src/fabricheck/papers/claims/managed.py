"""Claims on managed memory compared with copies (E3, with E2)."""

from __future__ import annotations

from fabricheck.core.amounts import about
from fabricheck.papers.claims import host, needs
from fabricheck.papers.claims.host import LINK_POINTS
from fabricheck.papers.claims.judging import above, above_by, longest
from fabricheck.papers.claims.model import Claim, Finding, NotTestable, number, verdict
from fabricheck.papers.claims.published import value
from fabricheck.papers.claims.rules import (
    HOST_LINK,
    Group,
    Points,
    each_above,
    part_of_peak,
    ratio,
)
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series, largest

#: Up to 32 MB, zero-copy must be nearer to pinned memory than above, where the paper's peaks differ
#: by 10 %; half of that is required.
FOLLOWS = 0.05

#: The paper's ratio of pinned memory to migration is 10.1: an order of magnitude, to a factor of 2.
MAGNITUDE = 2.0

#: The figure starts at 4 KB.
FIGURE_START = 4000

_WORDS = {"zero-copy": "zero-copy access", "page-migration": "page migration"}


def reads(observed: Observed, movement: str) -> list[Series]:
    """Return the reads by kernels from managed memory that lies on the host.

    :param movement: zero-copy or page-migration.
    """
    found = observed.select(
        experiment="E3", operation="read", engine="kernel", host_memory="managed", movement=movement
    )
    return list(needs.some(found, f"{_WORDS[movement]} by kernels", "E3"))


def _largest(movement: str) -> Group:
    def choose(observed: Observed) -> Points:
        found = needs.large(reads(observed, movement), f"{_WORDS[movement]} by kernels", "E3")
        return largest(found, lambda point: point.device)

    return Group(_WORDS[movement], choose)


ZERO_COPY, MIGRATION = _largest("zero-copy"), _largest("page-migration")


def _follows(observed: Observed) -> Finding:
    pinned = longest(host.copies(observed, "h2d", "pinned"))
    zero_copy = longest(reads(observed, "zero-copy"))
    limit = value("paper-h2d-zerocopy-crossover") * 1e6
    common = [size for size in sorted(zero_copy) if size in pinned and size >= FIGURE_START]
    # 32 MiB are 33.6 MB, the 32 MB of the paper's axis.
    below = [size for size in common if size <= limit * 1.05]
    beyond = [size for size in common if size > limit * 1.05]
    if len(below) < 3 or not beyond:
        raise NotTestable(
            "the session has no zero-copy and copies of pinned memory over the same sizes on both "
            "sides of 32 MB (E2, E3)"
        )
    lags = [size for size in below if above_by(pinned[size], zero_copy[size], FOLLOWS)]
    first_lag = f", first at {lags[0] / 1e6:.3g} MB" if lags else ""
    faster = [size for size in beyond if above(pinned[size], zero_copy[size])]
    return verdict(
        not lags and len(faster) == len(beyond),
        f"Up to 32 MB zero-copy is over 5 % below pinned memory at {len(lags)} of {len(below)} "
        f"sizes{first_lag}; above, pinned is faster at {len(faster)} of {len(beyond)}.",
        *(number(f"pinned, {about(size)}", pinned[size]) for size in common),
        *(number(f"zero-copy, {about(size)}", zero_copy[size]) for size in common),
    )


CLAIMS = (
    Claim(
        id="pinned-above-zero-copy",
        statement="Copies of pinned memory are faster than zero-copy access.",
        document="paper",
        where="IV.A, figures 2 and 3",
        rule="on every device that has both, with its largest size, pinned is above zero-copy and "
        "the intervals do not meet; no tolerance, as published ones differ by 10 %",
        requires=needs.devices,
        judge=each_above(host.PINNED, ZERO_COPY),
        experiments=("E2", "E3"),
        records=("paper-h2d-pinned", "paper-h2d-managed-zerocopy"),
        rests_on=("simulation.host_link_efficiency", "simulation.host_kernel_efficiency"),
    ),
    Claim(
        id="zero-copy-above-migration",
        statement="Zero-copy access is faster than page migration.",
        document="paper",
        where="IV.A, figures 2 and 3",
        rule="on every device that has both, with its largest size, zero-copy is above migration "
        "and the intervals do not meet; no tolerance, as the published ratio is 9",
        requires=needs.devices,
        judge=each_above(ZERO_COPY, MIGRATION),
        experiments=("E3",),
        records=("paper-h2d-managed-zerocopy", "paper-h2d-managed-migration"),
        rests_on=("simulation.host_kernel_efficiency", "simulation.migration_gbs"),
    ),
    Claim(
        id="migration-ten-times-slower",
        statement="Page migration is an order of magnitude slower than copies of pinned memory.",
        document="paper",
        where="IV.A, figure 2",
        rule="the ratio of the medians over the devices is 5 to 20: the published one, 10.1, to a "
        "factor of two, as the document calls it no number",
        requires=needs.devices,
        judge=ratio(
            host.PINNED,
            MIGRATION,
            lambda found, wanted: wanted / MAGNITUDE <= found <= wanted * MAGNITUDE,
            lambda: value("paper-h2d-pinned") / value("paper-h2d-managed-migration"),
        ),
        experiments=("E2", "E3"),
        records=("paper-h2d-pinned", "paper-h2d-managed-migration"),
        rests_on=("simulation.host_link_efficiency", "simulation.migration_gbs"),
    ),
    Claim(
        id="zero-copy-follows-pinned",
        statement="Zero-copy keeps up with pinned memory to 32 MB; above that pinned is faster.",
        document="paper",
        where="IV.A, figure 3",
        rule="from 4 KB to 32 MB zero-copy is nowhere more than 5 % below pinned, half of what the "
        "peaks above differ by, noise counting for it; at every larger size pinned is above it "
        "and the intervals do not meet; to be faster than pinned counts as keeping up",
        requires=needs.devices,
        judge=_follows,
        experiments=("E2", "E3"),
        records=("paper-h2d-zerocopy-crossover",),
        rests_on=("simulation.host_link_efficiency", "simulation.host_kernel_efficiency"),
    ),
    Claim(
        id="zero-copy-71-of-link",
        statement="Zero-copy access reaches 71 % of the host link's peak.",
        document="paper",
        where="IV.A",
        rule="the median over the devices is 25.5 / 36 of the node model's host link, 3 points "
        "either way: the document prints one number, of another node",
        requires=needs.fabric_to_host,
        judge=part_of_peak(
            ZERO_COPY, HOST_LINK, ("paper-h2d-managed-zerocopy", "paper-cpugpu-uni"), LINK_POINTS
        ),
        experiments=("E3",),
        records=("paper-h2d-managed-zerocopy", "paper-cpugpu-uni"),
        rests_on=("simulation.host_kernel_efficiency",),
    ),
)

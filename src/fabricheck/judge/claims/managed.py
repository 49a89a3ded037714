"""Claims on managed memory beside copies (E3, with E2)."""

from __future__ import annotations

from fabricheck.core.amounts import about
from fabricheck.judge.claims import host, needs
from fabricheck.judge.claims.judging import above, above_by, least_ratio, middle
from fabricheck.judge.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.judge.claims.published import value
from fabricheck.results.observed import Observed, Point
from fabricheck.results.observed.point import curve, largest

#: Up to 32 MB zero-copy has to be nearer to pinned memory than above, where the paper's peaks
#: differ by 10 %: half of it.
FOLLOWS = 0.05

#: The paper's ratio of pinned memory to migration is 10.1: an order of magnitude, to a factor of 2.
MAGNITUDE = 2.0

#: The figure starts at 4 KB.
FIGURE_START = 4000

#: As for the other parts of the host link.
LINK_POINTS = host.LINK_POINTS

_WORDS = {"zero-copy": "zero-copy access", "page-migration": "page migration"}


def reads(observed: Observed, movement: str) -> list[Point]:
    """Return what kernels read of managed memory that lies on the host.

    :param movement: zero-copy or page-migration.
    """
    found = observed.select(
        experiment="E3", operation="read", engine="kernel", memory="managed", movement=movement
    )
    return list(needs.some(found, f"{_WORDS[movement]} by kernels", "E3"))


def _by_device(observed: Observed, movement: str) -> dict[int | None, Point]:
    found = needs.large(reads(observed, movement), f"{_WORDS[movement]} by kernels", "E3")
    return dict(largest(found, lambda point: point.device))


def _beats(
    ones: dict[int | None, Point], others: dict[int | None, Point], one: str, other: str
) -> Finding:
    worst = least_ratio(ones, others)
    if worst is None:
        raise NotTestable(f"no device has both {one} and {other}")
    device, mine, its = worst
    common = [device for device in ones if device in others]
    rate, other_rate = (middle(points[key] for key in common) for points in (ones, others))
    return verdict(
        all(above(ones[device], others[device]) for device in common),
        f"{one[0].upper()}{one[1:]} gives {rate:.2f} GB/s and {other} "
        f"{other_rate:.2f}, medians of {len(common)} device(s); the "
        f"least ratio is {mine.median / its.median:.2f}, on device {device}.",
        *(number(f"{one}, device {key}", ones[key]) for key in common),
        *(number(f"{other}, device {key}", others[key]) for key in common),
    )


def _pinned_above_zero_copy(observed: Observed) -> Finding:
    needs.devices(observed)
    zero_copy = _by_device(observed, "zero-copy")
    pinned = host.by_device(observed, "h2d", "pinned")
    return _beats(pinned, zero_copy, "pinned memory", "zero-copy")


def _zero_copy_above_migration(observed: Observed) -> Finding:
    needs.devices(observed)
    zero_copy, moved = (_by_device(observed, name) for name in ("zero-copy", "page-migration"))
    return _beats(zero_copy, moved, "zero-copy", "page migration")


def _order_of_magnitude(observed: Observed) -> Finding:
    needs.devices(observed)
    moved = _by_device(observed, "page-migration")
    pinned = host.by_device(observed, "h2d", "pinned")
    common = [device for device in moved if device in pinned]
    if not common:
        raise NotTestable("no device has both page migration and copies of pinned memory (E2, E3)")
    ratio = middle(pinned[key] for key in common) / middle(moved[key] for key in common)
    wanted = value("paper-h2d-pinned") / value("paper-h2d-managed-migration")
    return verdict(
        wanted / MAGNITUDE <= ratio <= wanted * MAGNITUDE,
        f"Copies of pinned memory are {ratio:.1f} times as fast as page migration, medians of "
        f"{len(common)} device(s); published is {wanted:.1f}.",
        computed("pinned over migration", ratio, "ratio", moved[common[0]]),
        *(number(f"pinned, device {key}", pinned[key]) for key in common),
        *(number(f"migration, device {key}", moved[key]) for key in common),
    )


def _follows(observed: Observed) -> Finding:
    needs.devices(observed)
    pinned = host.sizes(observed, "h2d", "pinned")
    by_owner: dict[int | None, list[Point]] = {}
    for point in reads(observed, "zero-copy"):
        by_owner.setdefault(point.device, []).append(point)
    zero_copy = {point.bytes: point for point in max(map(curve, by_owner.values()), key=len)}
    limit = value("paper-h2d-zerocopy-crossover") * 1e6
    common = [size for size in sorted(zero_copy) if size in pinned and size >= FIGURE_START]
    # 32 MiB are 33.6 MB: what the paper's axis has for 32 MB.
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


def _zero_copy_part(observed: Observed) -> Finding:
    node = needs.fabric_to_host(observed)
    points = _by_device(observed, "zero-copy")
    wanted = 100 * value("paper-h2d-managed-zerocopy") / value("paper-cpugpu-uni")
    rate = middle(points.values())
    part = 100 * rate / node.host_peak_gbs(0)
    return verdict(
        abs(part - wanted) <= LINK_POINTS,
        f"Zero-copy reaches {rate:.2f} GB/s, {part:.1f} % of the host link's peak, the median of "
        f"{len(points)} device(s); published are {value('paper-h2d-managed-zerocopy'):g} of "
        f"{value('paper-cpugpu-uni'):g} GB/s, {wanted:.1f} %.",
        computed("of the host link's peak", part, "percent", *points.values()),
        *(number(f"zero-copy, device {device}", point) for device, point in points.items()),
    )


CLAIMS = (
    Claim(
        id="pinned-above-zero-copy",
        statement="Copies of pinned memory are faster than zero-copy access.",
        document="paper",
        where="IV.A, figures 2 and 3",
        rule="on every device that has both, with its largest size, pinned is above zero-copy and "
        "the intervals do not meet; no tolerance, as published ones differ by 10 %",
        judge=_pinned_above_zero_copy,
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
        judge=_zero_copy_above_migration,
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
        judge=_order_of_magnitude,
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
        judge=_zero_copy_part,
        experiments=("E3",),
        records=("paper-h2d-managed-zerocopy", "paper-cpugpu-uni"),
        rests_on=("simulation.host_kernel_efficiency",),
    ),
)

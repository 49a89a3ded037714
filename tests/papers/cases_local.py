"""Cases of the claims on a device's own memory (E1)."""

from __future__ import annotations

from observations import Cases, around, of

import factories

MIB, GIB = 2**20, 2**30


def stream(value, device=0, operation="copy", **changes):
    """Build a series of STREAM on the memory of a device, without noise."""
    own = {"device": device, "device_set": [device], "operation": operation}
    place = factories.place(device=device)
    if operation == "triad":
        own["bytes_moved"] = 3 * changes.get("bytes", 256 * MIB)
    return factories.series([value], **own | {"source": place, "destination": place} | changes)


def each(value, **changes):
    """Build the same series of eight devices."""
    return [stream(value, device, **changes) for device in range(8)]


def scan(*sizes_and_values, **changes):
    """Build triad over array sizes in MiB."""
    return [
        stream(value, bytes=size * MIB, operation="triad", **changes)
        for size, value in sizes_and_values
    ]


def blocks(**values):
    """Build triad by block size: ``b256=1340.0``, with noise."""
    return of(
        *(
            stream(value, operation="triad", block_size=int(name[1:])) | noisy(value)
            for name, value in values.items()
        )
    )


def noisy(value):
    """Return what a series of nine samples around a value has."""
    built = factories.series(around(value))
    return {name: built[name] for name in ("samples", "median", "mad", "ci95")}


def large_blocks(*values, least=128):
    """Build copy with large arrays, a block size each, of which each is twice the one before."""
    return [
        stream(value, bytes=2 * GIB, block_size=least << place)
        for place, value in enumerate(values)
    ]


PLATEAU = [(size, 1340.0) for size in (64, 128, 256, 512)]

CASES = {
    "local-stream-87": Cases(
        lambda: of(*each(1400.0)),
        lambda: of(*each(1300.0)),
        lambda: of(*each(1340.0, operation="triad")),
    ),
    "local-triad-82": Cases(
        lambda: of(*each(1349.0, operation="triad")),
        lambda: of(*each(1400.0, operation="triad")),
        lambda: of(*each(1400.0)),
    ),
    "local-copy-above-triad": Cases(
        lambda: of(*each(1420.0), *each(1340.0, operation="triad")),
        lambda: of(*each(1400.0), *each(1400.0, operation="triad")),
        lambda: of(*each(1400.0)),
    ),
    "a100-triad-87": Cases(
        lambda: of(stream(1350.0, operation="triad"), node="a100-jureca", runtime="cuda"),
        lambda: of(stream(1200.0, operation="triad"), node="a100-jureca", runtime="cuda"),
        lambda: of(stream(1350.0, operation="triad"), node="mi250x"),
    ),
    "saturation-64mib": Cases(
        lambda: of(*scan((8, 500.0), (16, 900.0), (32, 1200.0), *PLATEAU)),
        lambda: of(*scan((8, 1330.0), (16, 1335.0), (32, 1338.0), *PLATEAU)),
        lambda: of(*scan(*PLATEAU)),
    ),
    "blocks-of-256": Cases(
        lambda: blocks(b64=1250.0, b256=1340.0, b1024=1345.0),
        lambda: blocks(b64=1400.0, b256=1340.0, b1024=1345.0),
        lambda: blocks(b256=1340.0),
    ),
    "blocks-76-to-88": Cases(
        lambda: of(*large_blocks(1245.0, 1440.0)),
        lambda: of(*large_blocks(1100.0, 1440.0)),
        lambda: of(*large_blocks(1440.0)),
    ),
}

"""The cases that run each kernel, and the injected faults that each must detect."""

import itertools
import re
import struct
import threading
from array import array
from dataclasses import replace

from .machine import BLOCK, COMPARED_BY_BLOCK, NOTHING_FOUND
from .values import (
    GUARD,
    GUARD_BYTE,
    TYPES,
    Content,
    Wrong,
    double_bits,
    line_of,
    memory,
    pattern,
    patterns,
    require,
    unwritten,
)

POISON = 0xFFF8DEADDEADBEEF  # of harness/pattern.cpp
COUNTS = [1, 255, 256, 300, 1000]  # less than a wave, less than a block, full ones, odd tails

SEEDS = 0x5EED0100, 0x5EED0101
COMPARE, FLIP = "harness/pattern compare_kernel<Expected>", "harness/pattern flip_kernel"
COMPARE_SUMS = "harness/pattern compare_kernel<ExpectedSums>"
#: Elements, block, grid and passes of kernels that loop: no full chunk, several chunks a block,
#: more blocks than chunks.
LOOPS = [(1, 64, 1, 1), (1025, 64, 2, 1), (700, 256, 3, 2), (40, 64, 2, 1)]


def expected(first, second=(0.0, 0)):
    """Return the bytes of harness/pattern.hpp's Expected, of two terms (factor, seed)."""
    return struct.pack("<dIxxxxdIxxxx", *first, *second)


def fill(device, kernel):
    """The case of the fill kernel: values of two seeds."""
    for count, seed in itertools.product(COUNTS, SEEDS):
        data = unwritten("Q", count)
        device.over(kernel, count, data, count, seed)
        require(f"{count} words", data, patterns(count, (1.0, seed)))


def poison(device, kernel):
    """The case of the poison kernel: the poison, up to the last word and not beyond."""
    for count in COUNTS:
        data = unwritten("Q", count)
        device.over(kernel, count, data, count)
        require(f"{count} words", data, [POISON] * count)


def flip(device, kernel):
    """Each bit of a word, and no other."""
    right = patterns(300, (1.0, SEEDS[0]))
    data = memory("Q", right)
    for bit in range(64):
        word = (37 * bit) % 300
        right[word] ^= 1 << bit
        device.launch(kernel, 1, 1, data, word, bit)
        require(f"bit {bit} of word {word}", data, right)
    device.elements = 300


def expected_sums(seed, elements, blocks, block, of_thread):
    """Return the bytes of harness/pattern.hpp's ExpectedSums."""
    return struct.pack("<IxxxxQQQQ", seed, elements, blocks, block, of_thread)


def sums(seed, elements, blocks, block, of_thread):
    """Return the bits of the sums that a launch of the read kernel leaves, two a thread."""
    totals = [0.0] * (2 * blocks * block)
    for i in range(elements):
        chunk, place = divmod(i, of_thread * block)
        thread = chunk % blocks * block + place % block
        for half in (0, 1):
            totals[2 * thread + half] += pattern(2 * i + half, seed)
    return [double_bits(total) for total in totals[: 2 * elements]]


def faults_of_words(device, data, count, expectation, compare_kernel=COMPARE):
    """Has flipped bits and an unwritten range found in an array that is right."""
    clean = data[:]
    device.find("no fault", compare_kernel, data, count, expectation, NOTHING_FOUND)
    for words in [[0], [count // 2], [count - 1], [count - 1, 3, count // 3]]:
        for n, word in enumerate(words):
            device.launch(FLIP, 1, 1, data, word, (0, 31, 63)[n])
        right = (len(words), min(words))
        device.find(f"bits of words {words}", compare_kernel, data, count, expectation, right)
        data[:] = clean
    first, last = count // 4, count // 4 + 17
    data[first:last] = array("Q", [POISON] * (last - first))
    device.find("unwritten range", compare_kernel, data, count, expectation, (17, first))
    data[:] = clean


def compare(device, kernel):
    """The case of the compare kernel: correct data of one term and of two, faults, another seed."""
    for count in [*COUNTS, COMPARED_BY_BLOCK + 300]:
        data = memory("Q", patterns(count, (3.0, SEEDS[0]), (2.0, SEEDS[1])))
        sides = expected((3.0, SEEDS[0]), (2.0, SEEDS[1]))
        device.find("no fault", kernel, data, count, sides, NOTHING_FOUND)
    faults_of_words(device, data, count, sides)
    device.find("other seed", kernel, data, count, expected((1.0, SEEDS[1])), (count, 0))


def compare_sums(device, kernel):
    """The case of the kernel that compares sums: right ones, faults, and those of another grid."""
    given = SEEDS[0], 900, 3, 64, 2
    data = memory("Q", sums(*given))
    faults_of_words(device, data, len(data) - GUARD, expected_sums(*given), kernel)
    other = expected_sums(*given[:2], 1, 64, 2)
    device.find("one block", kernel, data, 128, other, (128, 0))


# By operation, the factors of a and b in the value that it writes.
OPERATIONS = {"copy": (1.0, 0.0), "scale": (3.0, 0.0), "add": (1.0, 1.0), "triad": (1.0, 3.0)}


def stream(operation):
    """Return the case of an operation of stream_kernel."""

    def case(device, kernel):
        a, b = OPERATIONS[operation]
        for elements, block, passes in [(1, 64, 1), (300, 256, 2), (1025, 1024, 1), (500, 128, 1)]:
            words = 2 * elements
            device.elements = max(device.elements, elements)
            sources = [patterns(words, (1.0, seed)) for seed in SEEDS]
            of_a, of_b, to = *(memory("Q", s) for s in sources), unwritten("Q", words)
            grid = (-(-elements // block), passes)
            device.launch(kernel, grid, block, of_a, of_b, to, 3.0, elements)
            require(f"{elements} elements", to, patterns(words, (a, SEEDS[0]), (b, SEEDS[1])))
            for array_, source in zip((of_a, of_b), sources, strict=True):
                require("a source", array_, source)
        sides = expected((a, SEEDS[0]), (b, SEEDS[1]))
        faults_of_words(device, to, words, sides)
        # A kernel that stops early: the poison of the unwritten elements is found.
        to = memory("Q", [POISON] * words)
        device.launch(kernel, -(-elements // block), block, of_a, of_b, to, 3.0, elements - 7)
        device.find("stopped short", COMPARE, to, words, sides, (14, words - 14))

    return case


def loop(operation, of_thread):
    """Return the case of an operation of loop_kernel, with a number of elements a thread."""

    def case(device, kernel):
        a, b = OPERATIONS[operation]
        for elements, block, blocks, passes in LOOPS:
            words = 2 * elements
            device.elements = max(device.elements, elements)
            of_a, of_b = (memory("Q", patterns(words, (1.0, seed))) for seed in SEEDS)
            to = unwritten("Q", words)
            device.launch(kernel, (blocks, passes), block, of_a, of_b, to, 3.0, elements)
            right = patterns(words, (a, SEEDS[0]), (b, SEEDS[1]))
            require(f"{elements} elements in {blocks} blocks", to, right)
        sides = expected((a, SEEDS[0]), (b, SEEDS[1]))
        device.find("no fault", COMPARE, to, words, sides, NOTHING_FOUND)
        # A kernel that stops early: the poison of the unwritten elements is found.
        to = memory("Q", [POISON] * words)
        device.launch(kernel, blocks, block, of_a, of_b, to, 3.0, elements - 7)
        device.find("stopped short", COMPARE, to, words, sides, (14, words - 14))

    return case


def read(of_thread):
    """Return the case of read_kernel with a number of elements a thread."""

    def case(device, kernel):
        for elements, block, blocks, passes in LOOPS:
            device.elements = max(device.elements, elements)
            data = memory("Q", patterns(2 * elements, (1.0, SEEDS[0])))
            given = SEEDS[0], elements, blocks, block, of_thread
            right = sums(*given)
            to = unwritten("Q", len(right))
            device.launch(kernel, (blocks, passes), block, data, to, elements)
            require(f"{elements} elements in {blocks} blocks", to, right)
            if elements == 700:
                wanted = expected_sums(*given)
                device.find("no fault", COMPARE_SUMS, to, len(right), wanted, NOTHING_FOUND)
                # The top bit of a value's fraction, in an element of the last chunk.
                device.launch(FLIP, 1, 1, data, 2 * elements - 1, 51)
                device.launch(kernel, blocks, block, data, to, elements)
                place = (elements - 1) % (of_thread * block) % block
                chunk = (elements - 1) // (of_thread * block)
                word = 2 * (chunk % blocks * block + place) + 1
                device.find("a wrong element", COMPARE_SUMS, to, len(right), wanted, (1, word))

    return case


def write(device, kernel):
    """The case of write_kernel: values of two seeds, up to the last element and not beyond."""
    for (elements, block, blocks, passes), seed in itertools.product(LOOPS, SEEDS):
        device.elements = max(device.elements, elements)
        to = unwritten("Q", 2 * elements)
        device.launch(kernel, (blocks, passes), block, to, seed, elements)
        require(f"{elements} elements", to, patterns(2 * elements, (1.0, seed)))


def multiply_add(device, kernel):
    """start + iterations * step on four values a thread; one iteration too few is found."""
    blocks, iterations = 2, 5
    words = device.elements = blocks * BLOCK * 4
    start, step = (memory("Q", patterns(words, (1.0, seed))) for seed in SEEDS)
    for done in [1, iterations]:
        result = unwritten("Q", words)
        device.launch(kernel, blocks, BLOCK, start, step, result, 1.0, done)
        right = patterns(words, (1.0, SEEDS[0]), (float(done), SEEDS[1]))
        require(f"{done} iterations", result, right)
    sides = expected((1.0, SEEDS[0]), (float(iterations), SEEDS[1]))
    faults_of_words(device, result, words, sides)
    device.launch(kernel, blocks, BLOCK, start, step, result, 1.0, iterations - 1)
    device.find("an iteration too few", COMPARE, result, words, sides, (words, 0))


def cycle_of(data, bits):
    """Return the words of a chase's array, of which the first of each line is an address."""
    guard = int.from_bytes(GUARD_BYTE * 8, "little")
    words = [guard] * (16 << bits)
    for step in range(2**bits):
        following = data.buffer_info()[0] + 128 * line_of(step + 1, bits)
        words[16 * line_of(step, bits)] = following
    return words


CYCLE = "p2p/chase cycle_kernel"


def cycle(device, kernel):
    """The case of the cycle kernel: one cycle through all lines, only the first words written."""
    for bits in [0, 1, 5, 9]:
        data = unwritten("Q", 16 << bits)
        device.over(kernel, 2**bits, data, bits)
        require(f"{2**bits} lines", data, cycle_of(data, bits))


def chase(device, kernel):
    """Only the chosen block chases, to where its loads lead; a wrong address is seen."""
    bits = 6
    data = unwritten("Q", 16 << bits)
    device.launch(CYCLE, 1, BLOCK, data, bits)
    device.elements = 2**bits

    def ended(loads, chosen, blocks):
        at = memory("Q", [data.buffer_info()[0] + 128 * line_of(7, bits)])
        end = memory("Q", [2**64 - 1])
        device.launch(kernel, blocks, 1, at, end, loads, chosen)
        require("behind the end", end[1:], [])
        return end[0]

    for loads, chosen in [(1, 0), (5, 3), (64, 2), (101, 1)]:
        right = data.buffer_info()[0] + 128 * line_of(7 + loads, bits)
        if (seen := ended(loads, chosen, 4)) != right:
            raise Wrong(f"{loads} loads end at {seen:#x}, not {right:#x}")
    if ended(5, 9, 4) != 2**64 - 1:
        raise Wrong("a block that is not chosen writes where it ended")
    wrong = 16 * line_of(9, bits)
    data[wrong] = data.buffer_info()[0] + 128 * line_of(20, bits)
    if ended(5, 0, 1) == data.buffer_info()[0] + 128 * line_of(12, bits):
        raise Wrong("does not see a wrong address on its way")
    device.faults += 1


PATIENCE = 20_000_000_000  # cycles: kPatienceCycles of harness/gate.cpp


def wait(device, kernel):
    """The case of the gate: open, opened by the host while the kernel polls, and never opened."""
    clock = device.emulator.clock
    device.elements = 1

    def waited(opened, step):
        flags = memory("i", [opened, 0])
        clock[:] = array("Q", [0, step])
        device.launch(kernel, 1, 1, flags)
        require("behind the flags", flags[2:], [])
        return list(flags[:2])

    if (seen := waited(1, 1000)) != [1, 0]:
        raise Wrong(f"an open gate: the flags are {seen}")
    seen, polls = waited_until_opened(device, kernel)
    if seen != [1, 0] or polls < 20:
        raise Wrong(f"opened after 20 polls: the flags are {seen}, after {polls} polls")
    step = PATIENCE // 20
    seen, readings = waited(0, step), clock[0] // step
    # The first reading is the start; the kernel gives up when more than its patience has passed.
    if seen != [0, 1] or readings != 1 + 21:
        raise Wrong(f"a gate that stays closed: flags {seen} after {readings} readings, not 22")
    device.faults += 1


def waited_until_opened(device, kernel):
    """Open a gate from another thread after 20 polls of the kernel; return flags and polls."""
    clock, step = device.emulator.clock, 1000
    flags = memory("i", [0, 0])
    clock[:] = array("Q", [0, step])
    ended = threading.Event()

    def opened():
        while clock[0] <= 20 * step and not ended.wait(0.001):
            pass
        flags[0] = 1

    host = threading.Thread(target=opened)
    host.start()
    try:
        device.launch(kernel, 1, 1, flags)
    finally:
        ended.set()
        host.join()
    return list(flags[:2]), clock[0] // step - 1


def contents(type_name):
    """Return the contents of messages of a type; bytes have no sums over ranks."""
    ranks = 1 if type_name == "unsigned char" else 5
    return [
        Content(type_name),
        Content(type_name, first_rank=3, ranks=ranks, first=2**33 + 1, message=7),
    ]


def fill_values(type_name):
    """Return the case of ranks' fill_kernel of a type."""

    def case(device, kernel):
        for content, count in itertools.product(contents(type_name), [1, 255, 300]):
            data = unwritten(TYPES[type_name][0], count)
            device.over(kernel, count, data, count, content.packed())
            require(f"{count} elements", data, content.elements(count))

    return case


def set_bits(code):
    """The case of ranks' set_kernel, of elements of an array's code."""

    def case(device, kernel):
        for count in COUNTS:
            data = unwritten(code, count)
            device.over(kernel, count, data, count)
            require(f"{count} elements", data, [2 ** (8 * data.itemsize) - 1] * count)

    return case


FLIP_BYTE = "mpi/values flip_kernel"


def flip_byte(device, kernel):
    """The case of the flip of each bit of a byte, and no other."""
    right = Content("unsigned char").elements(100)
    data = memory("B", right)
    for n in range(16):
        byte, bit = (n * 7) % 100, n % 8
        right[byte] ^= 1 << bit
        device.launch(kernel, 1, 1, data, byte, bit)
        require(f"bit {bit} of byte {byte}", data, right)
    device.elements = 100


def compare_values(type_name):
    """Return the case of ranks' compare_kernel of a type."""
    code = TYPES[type_name][0]
    size = array(code).itemsize

    def case(device, kernel):
        count = 300
        for content in contents(type_name):
            clean = content.elements(count)

            def finds(fault, right, changed=None, flipped=(), content=content, clean=clean):
                data = memory(code, changed or clean)
                for byte in flipped:
                    device.launch(FLIP_BYTE, 1, 1, data, byte, 5)
                device.find(fault, kernel, data, count, content.packed(), right)

            finds("no fault", NOTHING_FOUND)
            more = COMPARED_BY_BLOCK + 1
            whole = memory(code, content.elements(more))
            device.find("two blocks", kernel, whole, more, content.packed(), NOTHING_FOUND)
            for element in [0, 100, count - 1]:
                finds(
                    f"bit of element {element}", (1, element), flipped=[element * size + size - 1]
                )
            finds("three bits", (3, 64), flipped=[n * size for n in (128, 64, 255)])
            unset = [2 ** (8 * size) - 1] * 20
            finds("unwritten range", (20, 40), [*clean[:40], *unset, *clean[60:]])
            # Elements of another rank's message, of the neighbour, and of another message: a byte
            # may be equal by chance.
            wrong = replace(content, first_rank=content.first_rank + 1).elements(count)
            mixed = [*clean[:70], *wrong[70:90], *clean[90:]]
            finds("elements of another rank", differing(mixed, clean), mixed)
            shifted = [*clean[:200], *clean[201:], content.element(count)]
            finds("shifted elements", differing(shifted, clean), shifted)
            late = replace(content, message=content.message + 1).elements(count)
            finds("another message", differing(late, clean), late)

    return case


def differing(data, right):
    """Return the number of differing elements, and the first."""
    places = [i for i, (value, other) in enumerate(zip(data, right, strict=True)) if value != other]
    return len(places), places[0]


# Every kernel: its source under src/bench, and its name in ci/machine-code.py.
CASES = {
    "harness/gate wait_kernel": wait,
    "harness/pattern fill_kernel": fill,
    "harness/pattern poison_kernel": poison,
    FLIP: flip,
    COMPARE: compare,
    COMPARE_SUMS: compare_sums,
    **{
        f"stream/kernels stream_kernel<{operation}, {streaming}>": stream(operation)
        for operation in OPERATIONS
        for streaming in ("false", "true")
    },
    **{
        f"stream/kernels loop_kernel<{operation}, {loads}, {stores}, {n}>": loop(operation, n)
        for operation in OPERATIONS
        for loads in ("false", "true")
        for stores in ("false", "true")
        for n in (1, 2, 4, 8)
    },
    **{
        f"stream/kernels read_kernel<{loads}, {n}>": read(n)
        for loads in ("false", "true")
        for n in (1, 2, 4, 8)
    },
    **{
        f"stream/kernels write_kernel<{stores}, {n}>": write
        for stores in ("false", "true")
        for n in (1, 2, 4, 8)
    },
    "overlap/compute multiply_add_kernel": multiply_add,
    CYCLE: cycle,
    "p2p/chase chase_kernel": chase,
    **{f"mpi/values fill_kernel<{name}>": fill_values(name) for name in TYPES},
    "mpi/values set_kernel<unsigned char>": set_bits("B"),
    "mpi/values set_kernel<unsigned long>": set_bits("Q"),
    FLIP_BYTE: flip_byte,
    **{f"mpi/values compare_kernel<{name}>": compare_values(name) for name in TYPES},
}


def source_kernels(folder):
    """Return each `__global__` of the sources in a folder, as `folder/file name`."""
    for source in sorted(folder.glob("**/*.[ch]pp")):
        text = re.sub(r"__launch_bounds__\(.*?\)", "", source.read_text())
        unit = source.relative_to(folder).with_suffix("")
        for name in re.findall(r"__global__\s+void\s+(\w+)\(", text):
            yield f"{unit} {name}"


def not_run(folder):
    """Return sentences on kernels of the sources without a case, and on cases without a kernel."""
    run, written = {kernel.partition("<")[0] for kernel in CASES}, set(source_kernels(folder))
    yield from (f"{kernel} is run by no case" for kernel in sorted(written - run))
    yield from (f"{kernel} has a case and is not in {folder}" for kernel in sorted(run - written))

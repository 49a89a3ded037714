"""Code objects in memory, and the emulator that runs their kernels."""

import importlib
import re
import struct
import subprocess
import sys
import types
from array import array

import yaml

from .values import Wrong, memory, require

BLOCK = 256
COMPARED_BY_BLOCK = 16 * BLOCK  # elements, of harness/comparison.hpp
NOTHING_FOUND = (0, 2**64 - 1)


class CodeObject:
    """A code object in memory, and the metadata of its kernels."""

    def __init__(self, path, readobj):
        self.blob = path.read_bytes()
        # ROCm's linked library names its own, older one.
        compilers = re.findall(rb"clang version ([0-9.]+)", self.blob)
        self.compiler = "clang " + max(compilers, default=b"unknown").decode()
        (headers,) = struct.unpack_from("<Q", self.blob, 32)
        (count,) = struct.unpack_from("<H", self.blob, 56)
        segments = [
            struct.unpack_from("<IIQQQQ", self.blob, headers + 56 * n) for n in range(count)
        ]
        loaded = [(offset, at, size) for kind, _, offset, at, _, size in segments if kind == 1]
        self.image = array("B", bytes(max(at + size for _, at, size in loaded) + 64))
        for offset, at, size in loaded:
            self.image[at : at + size] = array("B", self.blob[offset : offset + size])
        notes = subprocess.run([readobj, "--notes", path], capture_output=True, text=True).stdout
        metadata = re.search(r"^ *AMDGPU Metadata: ---\n(.*?)^\.\.\.", notes, re.M | re.S)
        self.metadata = yaml.safe_load(metadata[1])["amdhsa.kernels"]

    @property
    def base(self):
        """The address at which it is loaded."""
        return self.image.buffer_info()[0]

    def offset_of(self, symbol):
        """Return the offset of a symbol of its dynamic table."""
        (sections,) = struct.unpack_from("<Q", self.blob, 40)
        (count,) = struct.unpack_from("<H", self.blob, 60)
        headers = [
            struct.unpack_from("<IIQQQQIIQQ", self.blob, sections + 64 * n) for n in range(count)
        ]
        _, _, _, _, start, size, strings, *_ = next(h for h in headers if h[1] == 11)
        for at in range(start, start + size, 24):
            name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", self.blob, at)
            begin = headers[strings][4] + name
            if self.blob[begin : self.blob.index(b"\0", begin)].decode() == symbol:
                return value
        raise Wrong(f"has no symbol {symbol}")


# Fields of a kernel descriptor's properties that take user registers, in their order.
DISPATCH, ARGUMENTS = 1, 3
USER_REGISTERS = [4, 2, 2, 2, 2, 2, 1]


class Kernel:
    """A kernel of a loaded code object."""

    def __init__(self, code, metadata):
        self.code, self.metadata = code, metadata
        descriptor = code.offset_of(metadata[".symbol"])
        raw = code.image[descriptor : descriptor + 64].tobytes()
        (start,) = struct.unpack_from("<q", raw, 16)
        self.entry = code.base + descriptor + start
        (self.resources,) = struct.unpack_from("<I", raw, 52)
        (self.properties,) = struct.unpack_from("<H", raw, 56)

    def arguments(self, given, grid, block):
        """Return the kernel's argument segment, laid out as its metadata state."""
        hidden = {
            "hidden_block_count_x": grid[0],
            "hidden_block_count_y": grid[1],
            "hidden_block_count_z": 1,
            "hidden_group_size_x": block,
            "hidden_group_size_y": 1,
            "hidden_group_size_z": 1,
            "hidden_grid_dims": 2 if grid[1] > 1 else 1,
        }
        segment = bytearray(max(8, self.metadata[".kernarg_segment_size"]))
        fields = self.metadata[".args"]
        shown = [f for f in fields if not f[".value_kind"].startswith("hidden_")]
        if len(shown) != len(given):
            raise Wrong(f"takes {len(shown)} arguments, and {len(given)} are given")
        values = iter(given)
        for field in fields:
            kind, size = field[".value_kind"], field[".size"]
            value = hidden.get(kind, 0) if kind.startswith("hidden_") else next(values)
            if isinstance(value, array):
                value = value.buffer_info()[0]
            if isinstance(value, float):
                value = struct.pack("<d", value)
            if isinstance(value, int):
                value = value.to_bytes(size, "little")
            if len(value) != size:
                raise Wrong(f"has an argument of {size} bytes where {len(value)} are given")
            segment[field[".offset"] : field[".offset"] + size] = value
        return array("B", bytes(segment))

    def user_registers(self, arguments, packet):
        """Return the content of the registers that a launch fills."""
        registers = []
        for field, count in enumerate(USER_REGISTERS):
            if self.properties >> field & 1:
                value = {DISPATCH: packet, ARGUMENTS: arguments}.get(field, 0)
                registers += [value & 0xFFFFFFFF, value >> 32, 0, 0][:count]
        return registers + [0] * ((self.resources >> 1 & 31) - len(registers))


class Emulator:
    """The emulator of a checkout, with an added clock."""

    def __init__(self, checkout):
        self.checkout = checkout
        # The emulator is imported as `test.mockgpu`, but Python has a `test` of its own.
        sys.path.insert(0, str(checkout))
        package = types.ModuleType("test")
        package.__path__ = [str(checkout / "test")]
        sys.modules["test"] = package
        self.module = importlib.import_module("test.mockgpu.amd.emu")
        self.clock = array("Q", [0, 0])  # time, and the step of each reading
        self.add_clock()

    def add_clock(self):
        """Make s_memtime read a clock in memory, which each reading advances."""
        emu, uop = self.module, self.module.UOp
        handlers = emu._INST_HANDLERS  # noqa: SLF001
        others = handlers[emu.irc.SMEM]
        first = self.clock.buffer_info()[0] >> 2

        def compiled(instruction, context):
            if instruction.op.name != "S_MEMTIME":
                return others(instruction, context)
            words = [context.vmem.index(uop.const(first + n, emu.dtypes.uint64)) for n in range(4)]
            now, step = (emu._u64(words[n].load(), words[n + 1].load()) for n in (0, 2))  # noqa: SLF001
            register = context.inst_field(type(instruction).sdata)
            stores = []
            for n, (old, new) in enumerate(
                zip(emu._split64(now), emu._split64(now + step), strict=True)  # noqa: SLF001
            ):
                stores.append(context.wsgpr_dyn(register + uop.const(n, emu.dtypes.uint32), old))
                stores.append(words[n].store(new))
            return uop.sink(*stores, *context.inc_pc())

        handlers[emu.irc.SMEM] = compiled

    def commit(self):
        """The commit of the checkout, or `unknown`."""
        ended = subprocess.run(
            ["git", "-C", self.checkout, "rev-parse", "HEAD"], capture_output=True, text=True
        )
        return ended.stdout.strip() or "unknown"


class Device:
    """The kernels of one build for one target, on the emulator."""

    def __init__(self, emulator, kernels):
        self.emulator, self.kernels = emulator, kernels
        self.start_row()

    def start_row(self):
        """Reset the counters of a row."""
        self.blocks = self.elements = self.faults = 0

    def launch(self, kernel, blocks, block, *arguments):
        """Run a kernel with `blocks` blocks, or (x, y) of them."""
        grid = blocks if isinstance(blocks, tuple) else (blocks, 1)
        self.blocks += grid[0] * grid[1]
        code = self.kernels[kernel]
        segment = code.arguments(arguments, grid, block)
        packet = array("B", struct.pack(
            "<HHHHHHIIIIIQQQQ", 2, 1, block, 1, 1, 0, grid[0] * block, grid[1], 1, 0, 0, 0,
            segment.buffer_info()[0], 0, 0,
        ))  # fmt: skip
        registers = code.user_registers(segment.buffer_info()[0], packet.buffer_info()[0])
        self.emulator.module.run_asm(
            code.entry, len(code.code.image), *grid, 1, block, 1, 1, segment.buffer_info()[0],
            code.resources, 0, "cdna", registers,
        )  # fmt: skip

    def over(self, kernel, count, *arguments, of_block=BLOCK):
        """Run a kernel over `count` elements, of which each block has `of_block`."""
        self.elements = max(self.elements, count)
        self.launch(kernel, -(-count // of_block), BLOCK, *arguments)

    def find(self, fault, kernel, data, count, expected, right):
        """Require that a comparing kernel finds a number of differences, and the first one.

        It must have compared all elements: their number is added to what stood there.
        """
        result = memory("Q", (*NOTHING_FOUND, count))
        self.over(kernel, count, data, count, expected, result, of_block=COMPARED_BY_BLOCK)
        require("elements compared, and behind", result[2:], [2 * count])
        if tuple(result[:2]) != right:
            raise Wrong(f"{fault}: finds (number, first) {tuple(result[:2])}, not {right}")
        self.faults += right != NOTHING_FOUND

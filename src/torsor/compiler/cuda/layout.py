"""Memory layout of arrays, and the copies between global and shared memory.

Entry e of state i of an array is at ``pointer + i * state + e * entry``. Threads of a warp have consecutive states, so
memory is read at full speed if consecutive states are adjacent (coordinate-major). If the entries of a state are
adjacent (row-major, NumPy's order), the array is *staged*: a warp copies its 32 states to shared memory in full lines,
and each thread reads its state from there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torsor.base.arrays import Shape
from torsor.compiler.cuda.gpu import WARP
from torsor.compiler.llvm.rules import Emitter

# The two forms of a kernel: for the GPU, and for the CPU of this machine, where tests run it thread by thread.

PHASES = ("take", "compute", "give")
"""The phases of a kernel, between which the threads of a warp synchronise."""

_REGISTERS = "tid", "ctaid", "ntid"


@dataclass(frozen=True)
class Form:
    """The differences between the GPU and CPU forms: pointer types, and the computation of the thread number.

    On the GPU, one function performs all ``PHASES``. On the CPU each phase is a function of the thread number and the
    shared memory of its warp.
    """

    on_gpu: bool

    @property
    def memory(self) -> str:
        """LLVM type of pointers to arrays."""
        return "ptr addrspace(1)" if self.on_gpu else "ptr"

    @property
    def shared(self) -> str:
        """LLVM type of pointers to shared memory."""
        return "ptr addrspace(3)" if self.on_gpu else "ptr"

    def start(self, shared: int) -> list[str]:
        """Return the instructions that set %first (the first state of the warp), %lane and %tile.

        ``shared`` is the shared memory of a warp, in bytes.
        """
        if not self.on_gpu:
            return [f"  %first = and i64 %thread, {-WARP}", f"  %lane = and i64 %thread, {WARP - 1}"]
        lines = []
        for name in _REGISTERS:
            lines.append(f"  %{name}.x = call i32 @llvm.nvvm.read.ptx.sreg.{name}.x()")
            lines.append(f"  %{name} = zext i32 %{name}.x to i64")
        return [
            *lines,
            f"  %warp = and i64 %tid, {-WARP}",
            "  %before = mul i64 %ctaid, %ntid",
            "  %first = add i64 %before, %warp",
            f"  %lane = and i64 %tid, {WARP - 1}",
            f"  %place = mul i64 %warp, {shared // WARP}",
            "  %tile = getelementptr i8, ptr addrspace(3) @tile, i64 %place",
        ]

    def wait(self) -> list[str]:
        """Return the instruction that synchronises the threads of a warp."""
        return ["  call void @llvm.nvvm.bar.warp.sync(i32 -1)"] if self.on_gpu else []

    def head(self, name: str, arrays: int, tables: int = 0, attributes: Sequence[str] = ()) -> str:
        """Return the head of a function, with its name and parameters."""
        places = [f"i64 %p.{k}, i64 %b.{k}, i64 %e.{k}" for k in range(arrays)]
        parameters = ", ".join(["i64 %states", *places, *(f"i64 %t.{k}" for k in range(tables))])
        if self.on_gpu:
            return f"define ptx_kernel void @{name}({parameters}) {' '.join(attributes)} {{"
        return f"define void @{name}(i64 %thread, ptr %tile, {parameters}) {{"

    def declarations(self) -> list[str]:
        """Return the declarations required by these instructions."""
        if not self.on_gpu:
            return []
        lines = [f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}.x()" for name in _REGISTERS]
        lines.append("declare void @llvm.nvvm.bar.warp.sync(i32)")
        lines.append("@tile = external addrspace(3) global [0 x i8], align 16")
        return lines


GPU, PROCESSOR = Form(True), Form(False)


# Bytes of shared memory for the tiles of one warp. An SM of Hopper has 227 kB, enough for 8 warps, with which its
# register file (255 registers per thread) is also full.
LARGEST_TILE = 28 * 1024


def collapsed(lengths: Shape, strides: Shape) -> int | None:
    """Return the stride of several axes merged into one in row-major order, or None if they cannot be merged."""
    result: int | None = None
    whole = 0  # required stride of the next outer axis
    for length, stride in zip(reversed(lengths), reversed(strides), strict=True):
        if length == 1:
            continue
        if result is None:
            result = stride
        elif stride != whole:
            return None
        whole = stride * length
    return result or 0


class Placed(NamedTuple):
    """An array argument: the address of its first entry, and its strides (bytes between states and between entries)."""

    pointer: int
    state: int
    entry: int


class Tile(NamedTuple):
    """The location of a staged array in the shared memory of a warp.

    It starts at ``offset``. ``pitch`` is the number of bytes between states, chosen so that the threads of a warp use
    all banks of shared memory evenly. A thread reads ``access`` bytes at a time, the largest access size that divides
    the size of a state.
    """

    offset: int
    pitch: int
    access: int
    size: int

    @classmethod
    def of(cls, entries: int, size: int, offset: int) -> "Tile":
        """Return the tile of an array with ``entries`` entries of ``size`` bytes per state."""
        row = entries * size
        access = math.gcd(row, 16)
        pitch = row if row // access % 2 else row + 16
        return cls(offset, pitch, access, WARP * pitch)


def tiles(entries: Sequence[int], size: int, staged: Sequence[bool]) -> tuple[list[Tile | None], int]:
    """Return the tile of each staged array, and the total number of bytes for one warp."""
    result: list[Tile | None] = []
    total = 0
    for count, stage in zip(entries, staged, strict=True):
        tile = Tile.of(count, size, total) if stage else None
        result.append(tile)
        if tile is not None:
            total += -(-tile.size // 16) * 16
    return result, total


def choose_staged(entries: Sequence[int], size: int, requested: Sequence[bool]) -> tuple[bool, ...]:
    """Return flags of the staged arrays: the requested ones, in order, until shared memory is full."""
    room, chosen = LARGEST_TILE, []
    for count, want in zip(entries, requested, strict=True):
        needs = Tile.of(count, size, 0).size if want else 0
        chosen.append(want and needs <= room)
        room -= needs if chosen[-1] else 0
    return tuple(chosen)


# Row-major arrays use shared memory: a warp copies its 32 states in full lines, and each thread reads its state.

_VECTOR = 16  # bytes per copy of a thread
_LOAD = "<4 x i32>"


class Staged(NamedTuple):
    """A staged array: parameter number, entries per state, and tile."""

    number: int
    entries: int
    tile: Tile


def write_copies(e: Emitter, form: Form, arrays: Sequence[Staged], into_tile: bool) -> None:
    """Write the code that copies staged arrays into their tiles, or back.

    Full warps of dense arrays aligned to 16 bytes are copied 16 bytes at a time, and all others entry by entry.
    """
    if not arrays:
        return
    way = "in" if into_tile else "out"
    for array in arrays:
        k, row = array.number, array.entries * e.scalar.size
        e.lines += [
            f"  %{way}.skip.{k} = mul i64 %first, %b.{k}",
            f"  %{way}.from.{k} = add i64 %p.{k}, %{way}.skip.{k}",
            f"  %{way}.chunk.{k} = inttoptr i64 %{way}.from.{k} to {form.memory}",
            f"  %{way}.tile.{k} = getelementptr i8, {form.shared} %tile, i64 {array.tile.offset}",
            f"  %{way}.dense.{k} = icmp eq i64 %b.{k}, {row}",
            f"  %{way}.rest.{k} = and i64 %p.{k}, {_VECTOR - 1}",
            f"  %{way}.even.{k} = icmp eq i64 %{way}.rest.{k}, 0",
        ]
    whole = e.put(f"icmp eq i64 %count, {WARP}")
    for array in arrays:
        for condition in ("dense", "even"):
            whole = e.put(f"and i1 {whole}, %{way}.{condition}.{array.number}")
    e.lines += [f"  br i1 {whole}, label %{way}.lines, label %{way}.single", f"{way}.lines:"]
    _write_lines(e, form, arrays, way)
    e.lines += [f"  br label %{way}.done", f"{way}.single:"]
    e.block = f"{way}.single"
    for array in arrays:
        _write_single(e, form, array, way)
    e.lines += [f"  br label %{way}.done", f"{way}.done:"]
    e.block = f"{way}.done"


def _write_lines(e: Emitter, form: Form, arrays: Sequence[Staged], way: str) -> None:
    """Write copies of 16 bytes: first all loads, which overlap, and then all stores."""
    moves = []
    for array in arrays:
        row = array.entries * e.scalar.size
        vectors = WARP * row // _VECTOR
        for first in range(0, vectors, WARP):
            index = "%lane" if first == 0 else e.put(f"add i64 %lane, {first}")
            if first + WARP > vectors:  # idle threads repeat the last copy
                inside = e.put(f"icmp slt i64 {index}, {vectors}")
                index = e.put(f"select i1 {inside}, i64 {index}, i64 {vectors - 1}")
            there = e.put(f"mul i64 {index}, {_VECTOR}")
            here = there
            if array.tile.pitch != row:
                rows = e.put(f"udiv i64 {index}, {row // _VECTOR}")
                padding = e.put(f"mul i64 {rows}, {array.tile.pitch - row}")
                here = e.put(f"add i64 {there}, {padding}")
            outer = e.put(f"getelementptr i8, {form.memory} %{way}.chunk.{array.number}, i64 {there}")
            inner = e.put(f"getelementptr i8, {form.shared} %{way}.tile.{array.number}, i64 {here}")
            pair = (form.memory, outer), (form.shared, inner)
            (kind, source), (other, goal) = pair if way == "in" else reversed(pair)
            moves.append((e.put(f"load {_LOAD}, {kind} {source}, align {_VECTOR}"), f"{other} {goal}"))
    e.lines += [f"  store {_LOAD} {value}, {goal}, align {_VECTOR}" for value, goal in moves]


def _write_single(e: Emitter, form: Form, array: Staged, way: str) -> None:
    """Write a loop that copies one entry at a time; the states need not be adjacent."""
    k, scalar, label = array.number, e.scalar, f"{way}.{array.number}"
    before = e.block
    total = e.put(f"mul i64 %count, {array.entries}")
    some = e.put(f"icmp slt i64 %lane, {total}")
    e.lines += [
        f"  br i1 {some}, label %loop.{label}, label %after.{label}",
        f"loop.{label}:",
        f"  %j.{label} = phi i64 [ %lane, %{before} ], [ %next.{label}, %loop.{label} ]",
        f"  %row.{label} = udiv i64 %j.{label}, {array.entries}",
        f"  %entry.{label} = urem i64 %j.{label}, {array.entries}",
        f"  %across.{label} = mul i64 %entry.{label}, {scalar.size}",
        f"  %down.{label} = mul i64 %row.{label}, %b.{k}",
        f"  %outer.{label} = add i64 %down.{label}, %across.{label}",
        f"  %low.{label} = mul i64 %row.{label}, {array.tile.pitch}",
        f"  %inner.{label} = add i64 %low.{label}, %across.{label}",
        f"  %there.{label} = getelementptr i8, {form.memory} %{way}.chunk.{k}, i64 %outer.{label}",
        f"  %here.{label} = getelementptr i8, {form.shared} %{way}.tile.{k}, i64 %inner.{label}",
    ]
    pair = f"{form.memory} %there.{label}", f"{form.shared} %here.{label}"
    source, goal = pair if way == "in" else reversed(pair)
    e.lines += [
        f"  %value.{label} = load {scalar.name}, {source}, align {scalar.size}",
        f"  store {scalar.name} %value.{label}, {goal}, align {scalar.size}",
        f"  %next.{label} = add i64 %j.{label}, {WARP}",
        f"  %more.{label} = icmp slt i64 %next.{label}, {total}",
        f"  br i1 %more.{label}, label %loop.{label}, label %after.{label}",
        f"after.{label}:",
    ]
    e.block = f"after.{label}"

"""How arrays lie in memory, and how a kernel reads or writes them.

The entry e of state i of an array is at ``pointer + i * state + e * entry``. Threads of a warp have consecutive states,
so memory is read at full speed if consecutive states are neighbours (coordinate-major). If the entries of a state are
neighbours (row-major, the order of NumPy), a warp copies its 32 states to shared memory in whole lines, and each
thread takes its state from there: the array is *staged*.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torsor.base.arrays import Shape
from torsor.compiler.cuda.card import WARP

# Bytes of shared memory that the tiles of one warp may take. An SM of Hopper has 227 kB: with 8 warps of 255 registers
# a thread, its register file is full as well.
LARGEST_TILE = 28 * 1024


def collapsed(lengths: Shape, strides: Shape) -> int | None:
    """Return the stride of several axes counted as one, row by row; None if they do not lie so.

    Example:
        >>> collapsed((4, 3), (24, 8)), collapsed((4, 3), (0, 0)), collapsed((4, 3), (0, 8))
        (8, 0, None)
    """
    found: int | None = None
    whole = 0  # the stride that the next axis outwards must have
    for length, stride in zip(reversed(lengths), reversed(strides), strict=True):
        if length == 1:
            continue
        if found is None:
            found = stride
        elif stride != whole:
            return None
        whole = stride * length
    return found or 0


@dataclass(frozen=True)
class Placed:
    """An array of a call: the address of its first entry, and the bytes between states and between entries."""

    pointer: int
    state: int
    entry: int


@dataclass(frozen=True)
class Tile:
    """The place of one staged array in the shared memory of a warp: ``offset`` and bytes from state to state.

    A thread reads ``access`` bytes at a time, the most that divide the bytes of a state; ``pitch`` is such that the
    threads of a warp then use all banks of shared memory alike.

    Example:
        >>> Tile.of(6, 4, 0), Tile.of(32, 4, 0)
        (Tile(offset=0, pitch=24, access=8, size=768), Tile(offset=0, pitch=144, access=16, size=4608))
    """

    offset: int
    pitch: int
    access: int
    size: int

    @classmethod
    def of(cls, entries: int, size: int, offset: int) -> "Tile":
        """Return the tile of an array with this number of entries a state, of ``size`` bytes each."""
        row = entries * size
        access = math.gcd(row, 16)
        pitch = row if row // access % 2 else row + 16
        return cls(offset, pitch, access, WARP * pitch)


def tiles(entries: Sequence[int], size: int, staged: Sequence[bool]) -> tuple[list[Tile | None], int]:
    """Return the tile of each staged array, and the bytes of all of them for one warp."""
    found: list[Tile | None] = []
    total = 0
    for count, stage in zip(entries, staged, strict=True):
        tile = Tile.of(count, size, total) if stage else None
        found.append(tile)
        if tile is not None:
            total += -(-tile.size // 16) * 16
    return found, total


def choose_staged(entries: Sequence[int], size: int, wanted: Sequence[bool]) -> tuple[bool, ...]:
    """Return which arrays are staged: those that are wanted, in order, as long as shared memory lasts.

    Example:
        >>> choose_staged((6, 6, 3000), 4, (True, False, True))
        (True, False, False)
    """
    room, chosen = LARGEST_TILE, []
    for count, want in zip(entries, wanted, strict=True):
        needs = Tile.of(count, size, 0).size if want else 0
        chosen.append(want and needs <= room)
        room -= needs if chosen[-1] else 0
    return tuple(chosen)

"""Machine code that evaluates a function at the spline nodes of many cases and returns sums over the nodes."""

import ctypes
from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array, Indices
from torsor.compiler.cache import Signature, StoredKernel, keep
from torsor.compiler.llvm import native
from torsor.compiler.llvm.fold import CONTRACTED, FIRST, NODE, SLOT, SLOTS, SPAN, Kind, write_fold
from torsor.compiler.llvm.target import host
from torsor.compiler.machine_code import prepared, sines_of

_DTYPE = "float64"
_ALIGN = 4096  # bytes; the memory of a call is aligned to a page
_MAX_KEPT = 2**24  # bytes; larger memory is not kept for later calls


class SplineNodes:
    """Nodes (K,) whose profiles depend on P of ``count`` control points, starting with number ``first`` (K,).

    ``B`` (D, K, P) contains the weights of the control points in the profiles and their derivatives. Successive nodes
    with the same control points form a span; ``spans`` is the number of spans.
    """

    def __init__(self, B: Array, first: Indices, count: int):
        self.basis: Array = np.ascontiguousarray(B.swapaxes(0, 1)).reshape(len(first), -1)
        self.orders, self.points, self.count = len(B), B.shape[2], count
        self.places: Indices = np.zeros((len(first), len(NODE)), dtype=np.int64)
        is_last = np.append(np.diff(first) != 0, True)
        self.spans, slot = 0, 0
        for k, place in enumerate(self.places):
            place[FIRST], place[SPAN], place[SLOT] = first[k], self.spans, slot
            slot += 1
            if is_last[k] or slot == SLOTS:
                place[CONTRACTED], slot = slot, 0
            self.spans += int(is_last[k])

    def __len__(self) -> int:
        return len(self.places)

    def inputs(self, kind: Kind, size: int) -> int:
        """Return the number of entries of an input per case or node from its ``size`` at one node."""
        return self.count * size // self.points if kind == "window" else self._rows(kind, size)

    def outputs(self, kind: Kind, size: int) -> int:
        """Return the number of entries of an output per case from its ``size`` at one node."""
        if kind == "first":
            return self.count * size // self.orders
        return self.spans * size * self.points**2 // self.orders**2 if kind == "second" else self._rows(kind, size)

    def _rows(self, kind: Kind, size: int) -> int:
        return size * len(self.places) if kind == "rows" else size


class Targets(NamedTuple):
    """Indices of the entries of a "first" or "second" output in ``size`` results (``size``: unused)."""

    places: Indices
    size: int


_NO_TARGETS: Mapping[str, Targets] = {}


class Fold:
    """A compiled function of a node that is evaluated at all nodes of B cases (see ``compiler.llvm.fold``).

    ``kinds`` contains the kinds of inputs and outputs by name; the defaults are "case" and "sums". ``key`` is the cache
    key of the code, and ``width`` is the number of cases computed together.

    Example:
        >>> points, basis, scale = ca.SX.sym("points", 2), ca.SX.sym("basis", 2), ca.SX.sym("scale")
        >>> square = ca.Function("square", [points, basis, scale], [scale * ca.dot(points, basis) ** 2],
        ...     ["points", "basis", "scale"], ["total"])
        >>> fold = Fold(square, {"points": "window", "basis": "node"}, 1, 2, "an example")
        >>> nodes = SplineNodes(np.array([[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]]), np.array([0, 0, 0]), 2)
        >>> fold(nodes, 1, {"points": np.array([[1.0, 3.0]]), "basis": nodes.basis, "scale": np.array([2.0])})["total"]
        array([[28.]])
    """

    def __init__(
        self,
        source: ca.Function | StoredKernel,
        kinds: Mapping[str, Kind],
        orders: int,
        points: int,
        key: str,
        width: int | None = None,
    ):
        self.signature = Signature.of(source)
        names_in, names_out = self.signature.names_in, self.signature.names_out
        own = [kinds.get(name, "case") for name in names_in], [kinds.get(name, "sums") for name in names_out]
        width = width or host().width(_DTYPE)
        if isinstance(source, ca.Function):
            program = prepared(source)
            modules = write_fold(program, [*own[0], *own[1]], orders, points, _DTYPE, width)
            code = native.emit(modules, quick=True) + sines_of(program, modules[0], _DTYPE, width)
            keep(key, source, code, whole=False)
        else:
            code = source.code
        sizes = [[rows * columns for rows, columns in part] for part in self.signature[3:]]
        self._inputs, self._outputs = (
            list(zip(*part, strict=True)) for part in ((names_in, own[0], sizes[0]), (names_out, own[1], sizes[1]))
        )
        self._code, self._block = native.link(code, ["fold", "fixed"]), 8 * width
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(self._code["fold"])
        self._fixed = ctypes.c_int64.from_address(self._code["fixed"]).value
        self._free: list[NDArray[np.uint8]] = []  # reusable memory of earlier calls

    def __call__(
        self,
        nodes: SplineNodes,
        cases: int,
        inputs: Mapping[str, Array],
        targets: Mapping[str, Targets] = _NO_TARGETS,
    ) -> dict[str, Array]:
        """Return the outputs (B, ...) for input arrays, whose entries are numbered along all other axes.

        ``targets`` are the targets of outputs of the kinds "first" and "second".
        """
        place, used, results = self._fixed, list[Array](), dict[str, Array]()
        words = [cases, len(nodes), _address(nodes.places), _address(nodes.basis)]
        for name, kind, size in self._inputs:
            array = _entries(inputs[name])
            rows, count = len(nodes) if kind == "node" else cases, nodes.inputs(kind, size)
            if array.shape != (rows, count):
                shapes = f"{array.shape} instead of {(rows, count)}"
                raise ValueError(f"{self.signature.name}: {name} has the shape {shapes}")
            step = array.strides[0]
            words += [_address(array), step, step if kind == "node" else 8 * size, count, place, 0, 0]
            place += self._block * count if kind == "window" else 0
            used.append(array)  # keeps their memory alive during the call
        for name, kind, size in self._outputs:
            count, own = nodes.outputs(kind, size), targets[name] if kind in ("first", "second") else None
            if own is not None and len(own.places) != count:
                raise ValueError(f"{self.signature.name}: {name} has {count} entries, not {len(own.places)}")
            array = results[name] = np.empty((cases, count if own is None else own.size))
            more = [0, 0] if own is None else [own.size, _address(own.places)]
            words += [_address(array), array.strides[0], 8 * size, count, place, *more]
            place += 0 if kind == "rows" else self._block * (count + (0 if own is None else own.size + 1))
        if cases:
            memory = self._memory(place)
            table = (ctypes.c_int64 * len(words))(*words)
            start = _address(memory)
            self._call(ctypes.addressof(table), start + -start % _ALIGN)
            if len(memory) <= _MAX_KEPT:
                self._free.append(memory)
        return results

    def _memory(self, size: int) -> NDArray[np.uint8]:
        """Return page-aligned memory of ``size`` bytes."""
        try:
            memory = self._free.pop()
        except IndexError:
            memory = np.zeros(0, dtype=np.uint8)
        return memory if len(memory) >= size + _ALIGN else np.empty(size + _ALIGN, dtype=np.uint8)


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]  # faster than ``ctypes``
    return address


def _entries(array: Array) -> Array:
    """Return an array (B, ...) as (B, count) with adjacent entries."""
    flat = array.reshape(len(array), -1)
    is_adjacent = flat.shape[1] <= 1 or flat.strides[1] == flat.itemsize
    return flat if is_adjacent and flat.dtype == np.float64 else np.ascontiguousarray(flat, dtype=np.float64)

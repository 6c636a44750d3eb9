"""Compiled functions on the GPU, which are called like ``Kernel`` but with CuPy arrays."""

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Shape
from torsor.base.errors import ModelError
from torsor.compiler import cache
from torsor.compiler.cache import StoredKernel
from torsor.compiler.cuda.code import Plan, threads_of_block, write_kernel
from torsor.compiler.cuda.device import Launch, current
from torsor.compiler.cuda.gpu import WARP
from torsor.compiler.cuda.large_functions import split, whole
from torsor.compiler.cuda.layout import Placed, choose_staged, collapsed
from torsor.compiler.kernel import VirtualMachine
from torsor.compiler.llvm.fusion import with_reciprocals
from torsor.compiler.machine_code import compiler_fingerprint, program_key
from torsor.compiler.order import ordered
from torsor.compiler.program import Program, read_program


class Loaded(NamedTuple):
    """A kernel on a GPU, with the number of threads and the shared memory of a block, and the tables in GPU memory."""

    launch: Launch
    threads: int
    shared: int
    tables: list[Any]


def require_card() -> None:
    """Raise ImportError if CuPy is missing, and RuntimeError if there is no NVIDIA GPU."""
    current()


class CudaKernel(VirtualMachine):
    """A compiled function on the GPU; ``function`` is the CasADi function that defines it.

    CuPy arrays, and other arrays that expose GPU memory (``__dlpack__``, ``__cuda_array_interface__``), are used in
    place. NumPy arrays are copied to the GPU. Results are CuPy arrays, computed on CuPy's current stream. Calls do not
    wait for the GPU. PTX is generated on the first call with a new array layout.

    ``key`` is the cache key of the function, by default a hash of all operations.
    """

    def __init__(
        self,
        function: ca.Function | StoredKernel,
        dtype: str,
        inputs: Sequence[Shape] | None,
        outputs: Sequence[Shape] | None,
        key: str | None = None,
    ):
        super().__init__(function, inputs, outputs)
        self.dtype, self.threads, self._device, self._key = dtype, 1, current(), key
        self._size = 8 if dtype == "float64" else 4
        self._entries = [math.prod(shape) for shape in (*self.inputs, *self.outputs)]
        self._loaded: dict[tuple[int, tuple[bool, ...]], list[Loaded]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the CasADi function; on unpickling, PTX is loaded from the cache or generated again."""
        return self.pickled(self.dtype, self.inputs, self.outputs)

    def __repr__(self) -> str:
        return f"<CudaKernel {self.signature.name}: {self.dtype}>"

    @property
    def xp(self) -> Any:
        """The array module, which is CuPy."""
        return self._device.xp

    @property
    def direct(self) -> Callable[..., Any]:
        """The kernel itself, because there is no faster path."""
        return self

    @cached_property
    def _program(self) -> Program:
        return read_program(self.function)

    def __call__(self, *values: Any, out: Any = None) -> Any:
        """Evaluate the function: take one array per input, and return one CuPy array or a tuple of them.

        ``out`` contains GPU arrays for the results, with matching shapes and types and arbitrary strides.
        """
        if len(values) != len(self.inputs):
            raise TypeError(f"{self.signature.name} takes {len(self.inputs)} arguments, but {len(values)} were given")
        device = self._device
        arrays = [device.received(value, self.dtype) for value in values]
        for k, (array, value) in enumerate(zip(arrays, values, strict=True)):
            self.check_shape(k, array, value)
        batch = self.batch(arrays)
        outputs = self._checked_out(out, batch)
        with device.of([*arrays, *(item for item in outputs if item is not None)]):
            if 0 in batch:
                pairs = zip(outputs, self.outputs, strict=True)
                empty = [self._empty(batch, core, True) if item is None else item for item, core in pairs]
                return empty[0] if len(empty) == 1 else tuple(empty)
            placed = [self._placed(a, batch, shape) for a, shape in zip(arrays, self.inputs, strict=True)]
            results = self._evaluate([item for item, _ in placed], [item for _, item in placed], outputs, batch)
        return results[0] if len(results) == 1 else tuple(results)

    def _evaluate(self, arrays: list[Any], places: list[Placed], outputs: list[Any], batch: Shape) -> list[Any]:
        """Return the results for checked inputs; ``arrays`` keeps copies of the inputs alive."""
        states = math.prod(batch)
        dense = [self._is_row_major(place) for place in places]
        to_stage = choose_staged(self._entries, self._size, (*dense, *self._rows_out(places, dense, outputs, batch)))
        results: list[Any] = []
        for k, (core, array) in enumerate(zip(self.outputs, outputs, strict=True), start=len(arrays)):
            written, share = array, self._device.xp.may_share_memory
            overlaps = array is not None and any(share(array, item) for item in arrays)
            if array is None or overlaps or self._place(array, batch, core) is None:
                written = self._empty(batch, core, to_stage[k])
            places.append(self._place(written, batch, core) or Placed(0, 0, 0))
            results.append(written)
        # An array in ``out`` that is row-major but not staged is written correctly, but slowly.
        staged = choose_staged(self._entries, self._size, [self._is_row_major(place) for place in places])
        arguments = [states, *(n for place in places for n in (place.pointer, place.state, place.entry))]
        for kernel in self._kernel(staged):
            tables = map(self._device.pointer, kernel.tables)
            kernel.launch(-(-states // kernel.threads), kernel.threads, kernel.shared, [*arguments, *tables])
        for k, array in enumerate(outputs):
            if array is not None and array is not results[k]:
                array[...] = results[k]
                results[k] = array
        return results

    def _rows_out(self, places: list[Placed], dense: list[bool], outputs: list[Any], batch: Shape) -> list[bool]:
        """Return flags of row-major results: arrays in ``out`` keep their order, and new arrays follow the inputs."""
        columns = any(item.state == self._size and item.entry != self._size and item.entry for item in places)
        new = any(dense) or not columns
        result = []
        for array, core in zip(outputs, self.outputs, strict=True):
            place = None if array is None else self._place(array, batch, core)
            result.append(math.prod(core) > 1 and (new if place is None else self._is_row_major(place)))
        return result

    def _is_row_major(self, place: Placed) -> bool:
        return place.entry == self._size and place.state not in (0, self._size)

    def _empty(self, batch: Shape, core: Shape, rows: bool) -> Any:
        """Return a new array (*batch, *core) with adjacent entries of a state (``rows``) or adjacent states."""
        xp = self._device.xp
        if rows or math.prod(core) <= 1:
            return xp.empty((*batch, *core), self.dtype)
        made = xp.empty((*core, *batch), self.dtype)
        return made.transpose(*range(len(core), made.ndim), *range(len(core)))

    def _placed(self, array: Any, batch: Shape, core: Shape) -> tuple[Any, Placed]:
        """Return an input, copied if its states are not evenly spaced, and its memory layout."""
        xp = self._device.xp
        whole = xp.broadcast_to(array, (*batch, *core))
        place = self._place(whole, batch, core)
        if place is None:
            whole = xp.ascontiguousarray(whole)
            place = self._place(whole, batch, core)
        assert place is not None
        return whole, place

    def _place(self, array: Any, batch: Shape, core: Shape) -> Placed | None:
        """Return the layout of an array (*batch, *core), or None if its states or entries are not evenly spaced."""
        split = len(batch)
        state, entry = collapsed(batch, array.strides[:split]), collapsed(core, array.strides[split:])
        return None if state is None or entry is None else Placed(self._device.pointer(array), state, entry)

    def _checked_out(self, out: Any, batch: Shape) -> list[Any]:
        """Return the arrays of ``out=``, with None for missing ones; raise ModelError for invalid ones."""
        arrays = [None] * len(self.outputs) if out is None else list(out) if isinstance(out, tuple) else [out]
        name, kind = self.signature.name, self._device.xp.ndarray
        if len(arrays) != len(self.outputs):
            raise ModelError(f"has {len(arrays)} arrays", argument="out", where=name, allowed=str(len(self.outputs)))
        for array, core in zip(arrays, self.outputs, strict=True):
            shape = (*batch, *core)
            if array is None or (isinstance(array, kind) and (array.shape, array.dtype) == (shape, self.dtype)):
                continue
            result = f"{array.dtype} {array.shape}" if isinstance(array, kind) else type(array).__name__
            allowed = f"a GPU array, {self.dtype} {shape}"
            raise ModelError(f"is {result}", argument="out", where=name, allowed=allowed)
        return arrays

    def _kernel(self, staged: tuple[bool, ...]) -> list[Loaded]:
        """Return the kernels for a layout on the current GPU."""
        device = self._device
        known = self._loaded.get((device.number(), staged))
        if known is None:
            data, parts = self._code(Plan(staged))
            known, tables = [], [device.received(np.frombuffer(table), self.dtype) for table in data]
            for shared, code in parts:
                threads = threads_of_block(shared)
                known.append(Loaded(device.load(code), threads, shared * threads // WARP, tables))
            self._loaded[device.number(), staged] = known
        return known

    def _code(self, plan: Plan) -> tuple[list[bytes], list[tuple[int, bytes]]]:
        """Return the tables, and the shared memory per warp and the code of each part, from disk or generated."""
        device = self._device
        if self._key is None:
            self._key = program_key(self._program, self.inputs, self.outputs, self.dtype, 1)
        key_text = f"{self._key} {device.form} {device.gpu.description} {plan} {self.dtype}"
        name = hashlib.sha256(compiler_fingerprint() + key_text.encode()).hexdigest()
        stored = cache.load(name)
        if stored is None:
            # A part that has only some entries of a result cannot write full lines of it.
            rows_out, program = any(plan.staged[len(self.inputs) :]), with_reciprocals(self._program)
            parts = [whole(ordered(program))] if rows_out else split(program, self._size)
            stored = [len(program.tables).to_bytes(8), *program.tables]
            for part in parts:
                kernel = write_kernel(part, self.dtype, plan, device.form)
                stored += [kernel.shared.to_bytes(8), device.translated(kernel.module)]
            cache.store(name, stored)
        first = 1 + int.from_bytes(stored[0])
        pairs = zip(stored[first::2], stored[first + 1 :: 2], strict=True)
        return stored[1:first], [(int.from_bytes(shared), code) for shared, code in pairs]

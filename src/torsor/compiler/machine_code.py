"""Machine code of a CasADi function, read from the disk cache, or compiled and stored there."""

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cache as memo
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Shape
from torsor.base.errors import ModelError
from torsor.compiler.cache import Signature, keep, recall, source_hash
from torsor.compiler.gufunc import can_call_directly, checked, make_callable, make_gufunc
from torsor.compiler.llvm import native
from torsor.compiler.llvm.angles import has_angles, loops_called, write_angles
from torsor.compiler.llvm.call import write_call
from torsor.compiler.llvm.code import write_llvm
from torsor.compiler.llvm.fusion import with_reciprocals
from torsor.compiler.llvm.rules import Scalar
from torsor.compiler.llvm.target import Target, host
from torsor.compiler.program import Program, read_program
from torsor.compiler.threads import SharedKernel, has_native_threads

# Work of a sine or cosine, of another elementary function, and of an array entry, in operations (for ``threads.py``).
SINE, ELEMENTARY, ENTRY = 20, 40, 2
# NumPy's limit on the number of arrays of a gufunc.
MAX_ARRAYS = 64 if np.__version__ >= "2" else 32

_SINES = {ca.OP_SIN, ca.OP_COS}
_ELEMENTARY = {
    *(ca.OP_TAN, ca.OP_ASIN, ca.OP_ACOS, ca.OP_ATAN, ca.OP_ATAN2, ca.OP_SINH, ca.OP_COSH, ca.OP_TANH, ca.OP_ASINH),
    *(ca.OP_ACOSH, ca.OP_ATANH, ca.OP_EXP, ca.OP_EXPM1, ca.OP_LOG, ca.OP_LOG1P, ca.OP_POW, ca.OP_CONSTPOW, ca.OP_FMOD),
    *(ca.OP_REMAINDER, ca.OP_HYPOT, ca.OP_ERF),
}


class MachineCode(NamedTuple):
    """A gufunc, and a callable ``direct`` that is faster for one state and passes other calls to the gufunc.

    The gufunc divides batches with one axis among threads; ``shared`` does so for batches with more axes. ``run`` is
    the address of the single-threaded loop over states.
    """

    ufunc: np.ufunc
    direct: Callable[..., Any]
    shared: SharedKernel | None
    run: int


def has_machine_code(name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> bool:
    """Return whether a function can be compiled: gufuncs must have an output, and no axes of length 0.

    Empty inputs are omitted (see ``used_inputs``), but if there are inputs, at least one must be nonempty.
    """
    if len(inputs) + len(outputs) > MAX_ARRAYS:
        message = f"{name} has {len(inputs)} inputs and {len(outputs)} outputs; allowed: {MAX_ARRAYS} arrays in all"
        raise ModelError(f"{message}, as for every gufunc", fix="join some with casadi.vertcat, or use device='casadi'")
    return bool(outputs) and all(map(math.prod, outputs)) and (not inputs or bool(used_inputs(inputs)))


def used_inputs(inputs: Sequence[Shape]) -> list[int]:
    """Return the indices of the nonempty inputs, the only ones that the machine code takes."""
    return [k for k, shape in enumerate(inputs) if math.prod(shape)]


def make_code(
    function: ca.Function,
    inputs: list[Shape],
    outputs: list[Shape],
    dtype: str,
    width: int | None,
    key: str | None,
    quick: bool = False,
) -> list[bytes]:
    """Return the object code of a function, and store it on disk; ``inputs`` are the nonempty inputs.

    The cache key is ``key``, which the caller has already looked up. By default, it is a hash of all operations, which
    is looked up here. ``block_width`` returns the default ``width``. For ``quick``, see ``native.emit``.
    """
    whole, program = function, prepared(function)
    width = width or block_width(program, dtype)
    if key is None:
        key = program_key(program, inputs, outputs, dtype, width, quick)
        stored = recall(key)
        if stored is not None:
            return stored.code
    axes = tuple(len(shape) for shape in (*inputs, *outputs))
    scalar, call = Scalar(dtype), ""
    if _has_call(inputs, outputs, quick):
        call = write_call(inputs, outputs, scalar, np.dtype(dtype).num, object.__basicsize__)
    work = _work(program)[0] + ENTRY * sum(rows * columns for rows, columns in (*program.inputs, *program.outputs))
    call += f"\n@work = constant [2 x i64] [i64 {work}, i64 {width}]\n"  # of a block of states, and its states
    modules = write_llvm(program, axes, dtype, width, call)
    objects = native.emit(modules, quick) + sines_of(program, modules[0], dtype, width)
    keep(key, whole, objects, whole=not quick)
    return objects


def prepared(function: ca.Function) -> Program:
    """Return the operations of a function without its empty inputs, as required by code generators."""
    used = used_inputs(Signature.of(function).sizes_in)
    if len(used) < function.n_in():
        symbols = [ca.SX.sym(function.name_in(k), function.sparsity_in(k)) for k in range(function.n_in())]
        function = ca.Function(function.name(), [symbols[k] for k in used], function.call(symbols))
    return with_reciprocals(read_program(function))


def sines_of(program: Program, module: str, dtype: str, width: int) -> list[bytes]:
    """Return the object code of the sines and cosines called by the first module of a program."""
    return _angles(dtype, width, loops_called(module)) if has_angles(program) else []


@memo
def _angles(dtype: str, width: int, loops: tuple[int, ...]) -> list[bytes]:
    """Return the object code of sines and cosines, which functions with the same loops share."""
    return native.emit([write_angles(Scalar(dtype), width, host().constants, loops)])


def load_code(
    objects: list[bytes], name: str, inputs: list[Shape], outputs: list[Shape], dtype: str, threads: int, quick: bool
) -> MachineCode:
    """Return object code as callables that keep the code in memory."""
    is_direct = _has_call(inputs, outputs, quick) and can_call_directly()
    names = ["loop", "run", "prepare", "blocks", "work", "memory", *(("call", "addresses") if is_direct else ())]
    code = native.link(objects, names)
    signature = "->".join(",".join(f"({','.join(map(str, shape))})" for shape in part) for part in (inputs, outputs))
    shared = SharedKernel(code, len(inputs) + len(outputs), threads) if threads > 1 and has_native_threads() else None
    kept: list[Any] = [code, shared]
    loop, data = (code["loop"], None) if shared is None else (shared.loop, shared.data)
    ufunc, run = make_gufunc(loop, name, signature, dtype, kept, data), code["run"]
    if not is_direct:
        return MachineCode(ufunc, checked(ufunc), shared, run)
    direct, definition = make_callable(ufunc, name, dtype, code["call"], code["addresses"])
    kept.append(definition)
    return MachineCode(ufunc, direct, shared, run)


def _has_call(inputs: list[Shape], outputs: list[Shape], quick: bool) -> bool:
    """Return whether the code has a direct call, which requires results with axes (NumPy returns others as numbers).

    A few hundred calls do not make up for the time that its compilation takes.
    """
    return not quick and bool(inputs) and all(outputs)


def block_width(program: Program, dtype: str, target: Target | None = None) -> int:
    """Return the number of states computed together: the lanes of one or two vector registers.

    Elementary functions are long chains of dependent operations. With the short vectors of AArch64, two registers take
    little more time than one if at least half of the work is in such functions. Other code would only store and load
    more values.
    """
    target = target or host()
    work, elementary = _work(program)
    return target.width(dtype) * (2 if target.is_arm and 2 * elementary >= work > 0 else 1)


def _work(program: Program) -> tuple[int, int]:
    """Return the work per state in operations, and the part of elementary functions other than sines and cosines."""
    codes = [operation.code for operation in program.operations]
    elementary = ELEMENTARY * sum(code in _ELEMENTARY for code in codes)
    return elementary + sum(SINE if code in _SINES else code not in _ELEMENTARY for code in codes), elementary


def program_key(
    program: Program, inputs: list[Shape], outputs: list[Shape], dtype: str, width: int, quick: bool = False
) -> str:
    """Return the cache key of code: a hash of everything on which it depends."""
    digest = hashlib.sha256(compiler_fingerprint())
    digest.update(repr((program.name, inputs, outputs, program.inputs, program.outputs, dtype, width, quick)).encode())
    codes = [operation.code for operation in program.operations]
    arguments = [
        value for operation in program.operations for value in (len(operation.arguments), *operation.arguments)
    ]
    results = [-1 if index is None else index for output in program.results for index in output]
    for part in (codes, arguments, results):
        digest.update(np.array(part, dtype=np.int64).tobytes())
    digest.update(np.array([operation.number for operation in program.operations]).tobytes())
    for table in program.tables:
        digest.update(hashlib.sha256(table).digest())
    return digest.hexdigest()


@memo
def compiler_fingerprint() -> bytes:
    """Return the part of the cache key shared by all code: a hash of this package, the machine and all versions."""
    source = source_hash("compiler").encode()
    versions = f"{host().description}|{ca.CasadiMeta.version()}|{np.__version__}|{object.__basicsize__}"
    return hashlib.sha256(source + versions.encode()).digest()

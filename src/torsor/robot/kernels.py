"""Compilation of requests, and the kernel cache shared by robots, simulations and motion problems."""

import hashlib
import json
import pickle
import reprlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array, Maybe, Shape
from torsor.base.checks import flag, one_of
from torsor.base.errors import ModelError, listing, warn
from torsor.base.interrupts import Stoppable
from torsor.base.progress import compiling
from torsor.compiler import AnyKernel, CudaKernel, Kernel, Signature, cache, compiler_fingerprint, keep, recall
from torsor.compiler.cache import StoredKernel
from torsor.compiler.fold import Fold
from torsor.compiler.llvm.fold import Kind
from torsor.dynamics import ALGORITHMS, Algorithm, Request, fingerprint, trace
from torsor.dynamics.algorithms import NO_METHOD, algorithm_names
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.dynamics.recursions.places import AXES
from torsor.dynamics.requests import LOADS, ROWS
from torsor.mechanism import Mechanism, Wheel
from torsor.robot.method_names import ALGORITHM_OF
from torsor.robot.target import Target

Shapes = tuple[Sequence[Shape], Sequence[Shape]]
Indices = NDArray[np.int64]
Values = tuple[ArrayLike, ...]  # inputs of an algorithm
Out = Array | Sequence[Array | None] | None  # arrays for the results, or None for new ones
Place = str | int | None  # a link (by name or index) or a named frame
Loops = str | None  # "open" for the tree that remains when the loops are cut
T = TypeVar("T")

# Maximum order of time derivatives. Each order adds a recursion as long as all previous ones together, and even tenth
# derivatives cannot be measured.
MAX_RATES = 64

# Algorithms that solve with the mass matrix.
SOLVING = {"forward_dynamics", "hybrid_dynamics", "closed_forward_dynamics", "constrained_forward_dynamics"}
SOLVING |= {f"{name}_derivatives" for name in SOLVING}

# Largest condition number of the mass matrix, with rows and columns scaled to a unit diagonal, that leaves two correct
# digits in single precision, whose rounding is 2^-24.
CONDITION = 0.01 * 2**24
POSITIONS = 24  # random positions within the joint limits: a few milliseconds

# Largest number of compiled functions that a robot keeps in memory, so that controllers made in a loop do not fill it.
MAX_KEPT = 512


class Kernels:
    """The compiled functions of one model on one ``target``: from memory, else from disk, else traced and compiled.

    ``identity`` is called once. It returns a hash of everything on which the functions depend, except labels: the
    numbers of the model and the source files that trace it.

    Example:
        >>> x = ca.SX.sym("x")
        >>> kernels = Kernels(Target(), lambda: "a model of the example")
        >>> float(kernels.kernel("square", lambda: ca.Function("square", [x], [x**2]))(3.0))
        9.0
    """

    def __init__(self, target: Target, identity: Callable[[], str]):
        self.target, self._make_identity = target, identity
        self._kernels: dict[Hashable, Any] = {}
        self._functions: dict[Hashable, ca.Function] = {}
        self._patterns: dict[str, list[Indices]] = {}

    def __reduce__(self) -> Any:
        """Raise PicklingError with the reason."""
        message = "the compiled functions of a model cannot be pickled, because they belong to one process"
        raise pickle.PicklingError(f"{message}; fix: pickle the robot or the problem itself, or one Kernel")

    @cached_property
    def identity(self) -> str:
        """Hash of the model."""
        return self._make_identity()

    def function(self, key: Hashable, trace: Callable[[], ca.Function]) -> ca.Function:
        """Return the CasADi function for a key, traced once; a kernel from disk includes its function."""
        function = self._functions.get(key)
        if function is None:
            kernel = self._kernels.get(key)
            with Stoppable():
                function = self._functions[key] = trace() if kernel is None else kernel.function
        return function

    def kernel(
        self,
        key: Hashable,
        trace: Callable[[], ca.Function],
        shapes: Callable[[Signature], Shapes] | None = None,
        label: Callable[[], str] | None = None,
        quick: bool = False,
        width: int | None = None,
    ) -> AnyKernel:
        """Return the compiled function for a key.

        ``label`` returns text that identifies the function in every process (by default the key's repr) and names its
        code on disk. ``shapes`` returns the input and output shapes for one state, by default those of CasADi's
        matrices. ``quick`` is for large functions that are called a few hundred times: see ``Kernel``. ``width`` is the
        number of states that are computed together; it must be part of the key.
        """

        def made(source: ca.Function | StoredKernel, name: str) -> AnyKernel:
            inputs, outputs = (None, None) if shapes is None else shapes(Signature.of(source))
            if self.target.device == "cuda":
                if isinstance(source, ca.Function):
                    keep(name, source, ())  # the code of each array layout is stored when it is generated
                return CudaKernel(source, self.target.dtype, inputs, outputs, name)
            options = vars(self.target) | {"width": width, "key": name, "quick": quick}
            return Kernel(source, inputs=inputs, outputs=outputs, **options)

        result: AnyKernel = self._made(key, repr(key) if label is None else label(), trace, made)
        return result

    def fold(
        self, key: str, trace: Callable[[], ca.Function], kinds: Mapping[str, Kind], orders: int, points: int
    ) -> Fold:
        """Return the fold of a function for a key; the kinds are part of the key."""
        result: Fold = self._made(key, key, trace, lambda source, name: Fold(source, kinds, orders, points, name))
        return result

    def _made(
        self,
        key: Hashable,
        label: str,
        trace: Callable[[], ca.Function],
        made: Callable[[ca.Function | StoredKernel, str], Any],
    ) -> Any:
        """Return the cached object of a key, or create it with ``made(function or stored code, file name)``."""
        result = self._kernels.get(key)
        if result is None:
            name = self._file(label)
            stored = recall(name) if self.target.device != "casadi" else None
            if stored is not None:
                result = made(stored, name)
            else:
                with Stoppable(), _told(key), cache.compiling(name) as waited:
                    stored = recall(name) if waited and self.target.device != "casadi" else None
                    result = made(self.function(key, trace) if stored is None else stored, name)
            self._kernels[key] = result
            if len(self._kernels) > MAX_KEPT:
                oldest = next(iter(self._kernels))
                self._kernels.pop(oldest, None)  # another thread may have removed it
                self._functions.pop(oldest, None)
        return result

    def patterns(self, label: str, make: Callable[[], Sequence[Indices]]) -> list[Indices]:
        """Return integer arrays of a function, such as sparsity patterns: from memory, from disk, or newly computed."""
        if label not in self._patterns:
            name = self._file(f"{label} patterns")
            stored = cache.load(name)
            if stored is not None:
                pairs = zip(stored[1:], json.loads(stored[0]), strict=True)
                result = [np.frombuffer(item, dtype=np.int64).reshape(shape) for item, shape in pairs]
            else:
                result = [np.ascontiguousarray(item, dtype=np.int64) for item in make()]
                content = [json.dumps([item.shape for item in result]).encode(), *(item.tobytes() for item in result)]
                cache.store(name, content)
            self._patterns[label] = result
        return self._patterns[label]

    def _file(self, label: str) -> str:
        """Return the name of a file on disk: a hash of everything that its content depends on."""
        traced_by = cache.source_hash("spatial", "mechanism", "dynamics")  # other sources are in the identity or label
        on_gpu = "cuda " if self.target.device == "cuda" else ""
        key_text = f"{traced_by} {self.identity} {self.target.dtype} {on_gpu}{label}"
        return hashlib.sha256(compiler_fingerprint() + key_text.encode()).hexdigest()


def _told(key: Hashable) -> AbstractContextManager[None]:
    """Return a context that names the function being compiled if compilation takes a long time."""
    return compiling(str(getattr(key, "name", None) or (key if isinstance(key, str) else "a function")))


class RequestShapes(NamedTuple):
    """Shapes for one state: inputs of an algorithm, their tangents, and results."""

    arguments: dict[str, Shape]
    tangents: dict[str, Shape]
    results: dict[str, Shape]


class RobotKernels(Kernels):
    """The compiled algorithms of one mechanism; ``choice`` returns the closure equations of closed-loop algorithms."""

    def __init__(self, mechanism: Mechanism, target: Target, choice: Callable[[Algorithm], ClosureChoice]):
        super().__init__(target, lambda: fingerprint(mechanism))
        self.mechanism, self._choice = mechanism, choice
        self._direct: dict[str, Callable[..., Array]] = {}  # fast path for algorithms without options
        self._plain: dict[str, AnyKernel] = {}  # the same with ``out=``
        self._placed: dict[tuple[object, ...], AnyKernel] = {}  # the same for algorithms of a link or frame
        self._requests: dict[tuple[Any, ...], Request] = {}
        self._once: dict[Hashable, Any] = {}

    @cached_property
    def exact(self) -> "RobotKernels":
        """Kernels in double precision on the host; single precision cannot meet the tolerance of loop closure."""
        device = "cpu" if self.target.device == "cuda" else self.target.device
        target = self.target.changed("", dtype="float64", device=device)
        return self if target == self.target else RobotKernels(self.mechanism, target, self._choice)

    def call(
        self,
        name: str,
        *values: ArrayLike,
        external: Maybe = None,
        place: str | int | None = None,
        loops: Loops = None,
        out: Out = None,
    ) -> Array:
        """Evaluate an algorithm, and return an array or (although the type does not state this) a tuple of arrays."""
        if place is None and external is None and loops is None:
            try:
                return self._direct[name](*values) if out is None else self._plain[name](*values, out=out)
            except KeyError:
                self._plain[name] = self.compiled(self.request(name))
                self._direct[name] = self._plain[name].direct
            except (TypeError, ValueError, OverflowError):
                pass  # the kernel raises an error with the reason
        if external is not None:
            values = (*values, external)
        request = self.request(name, place, external is not None, loops=loops)
        result: Array = self.compiled(request)(*values, out=out)
        return result

    def at_place(
        self,
        name: str,
        values: Values,
        place: Place,
        axes: str = "local",
        point: Maybe = None,
        out: Out = None,
        rows: str = "all",
    ) -> Array:
        """Evaluate an algorithm at a link or frame; ``point`` (..., 3) is fixed to it. It may return a tuple."""
        inputs = values if point is None else (*values, point)
        try:
            kernel = self._placed[name, place, axes, point is None, rows]
            results: Array = kernel.direct(*inputs) if out is None else kernel(*inputs, out=out)
            return results
        except (KeyError, TypeError, ValueError, OverflowError):
            pass  # the first call, or the kernel raises an error with the reason
        kernel = self.compiled(self.request(name, place, axes=axes, point=point is not None, rows=rows))
        if type(place) is str:  # 1, 1.0 and True are equal as keys, but different places
            self._placed[name, place, axes, point is None, rows] = kernel
        result: Array = kernel(*inputs, out=out)
        return result

    def compiled(self, request: Request) -> AnyKernel:
        """Return the compiled function of a request."""
        mechanism = self.mechanism
        if self.target.dtype == "float32" and request.name in SOLVING:
            self.once("condition", lambda: _warn_of_condition(mechanism))

        def shapes(signature: Signature) -> Shapes:
            outputs = list(request.outputs(mechanism).values())
            if request.form == "sparse":
                outputs = [size[:1] for size in signature.sizes_out]
            return list(request.inputs(mechanism).values()), outputs

        return self.kernel(request, lambda: trace(mechanism, request), shapes, lambda: request.label(mechanism))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the data for a key, such as sparsity patterns; ``make`` computes them on the first call."""
        if key not in self._once:
            self._once[key] = make()
        result: T = self._once[key]
        return result

    def shapes(self, request: Request) -> RequestShapes:
        """Return the shapes of a request's arrays."""

        def make() -> RequestShapes:
            item = self.mechanism
            return RequestShapes(request.arguments(item), request.tangents(item), request.results(item))

        return self.once(("shapes", request), make)

    def traced(self, request: Request) -> ca.Function:
        """Return the CasADi function of a request."""
        return self.function(request, lambda: trace(self.mechanism, request))

    def request(
        self,
        name: str,
        place: str | int | None = None,
        external: bool | str = False,
        forced: Sequence[str] | None = None,
        loops: Loops = None,
        **options: Any,
    ) -> Request:
        """Return the checked request of an algorithm; earlier requests are cached.

        The link or frame is ``place``, or part of the name: "jacobian:hand". Tree dynamics raise ModelError if the
        mechanism has loops, unless ``loops`` is "open".
        """
        try:
            arguments = (name, place, external, None if forced is None else tuple(forced), loops, *options.items())
            # 1, 1.0 and True are equal as keys, but different places.
            key = (*arguments, type(place), type(external), *map(type, options.values()))
            known = self._requests.get(key)
        except TypeError:  # an option is not hashable; the checks below raise an error that names it
            return self._checked_request(name, place, external, forced, loops, options)
        if known is None:
            known = self._requests[key] = self._checked_request(name, place, external, forced, loops, options)
        return known

    def _checked_request(
        self,
        name: str,
        place: str | int | None,
        external: bool | str,
        forced: Sequence[str] | None,
        loops: Loops,
        options: dict[str, Any],
    ) -> Request:
        mechanism, where = self.mechanism, self.mechanism.name
        full_name = name
        if isinstance(name, str) and ":" in name and place is None:
            name, _, place = name.partition(":")
        name = ALGORITHM_OF.get(name, name) if isinstance(name, str) else name
        if not isinstance(name, str) or name not in ALGORITHMS:
            fix = "correct the name"
            allowed = algorithm_names(full_name)
            raise ModelError(f"no algorithm {full_name!r}", value=full_name, where=where, allowed=allowed, fix=fix)
        algorithm = ALGORITHMS[name]
        unknown = options.keys() - {field.name for field in fields(Request)}
        if unknown:
            message = f"{name} takes no {', '.join(map(repr, sorted(unknown)))}"
            raise ModelError(message, where=where, allowed="place, axes, point, rows, external, forced, order, loops")
        _check_loops(mechanism, name, loops)
        if not isinstance(external, (bool, str)):
            message, fix = f"of {name} is of type {type(external).__name__}", "pass wrenches as the last input"
            raise ModelError(message, argument="external", where=where, allowed="True or False", fix=fix)
        loads = ("link" if external else "") if isinstance(external, bool) else external
        if loads and not algorithm.external:
            raise ModelError(f"{name} takes no external wrenches", where=where)
        known = LOADS if algorithm.keeps else LOADS[:2]
        if loads not in known:
            allowed = ", ".join(map(repr, known[1:]))
            message = f"wrenches of {name} are {loads!r}"
            raise ModelError(message, argument="external", value=loads, where=where, allowed=allowed)
        if algorithm.at_place != (place is not None):
            message = f"{name} needs the name of a link or frame" if place is None else f"{name} takes no link or frame"
            fix = f"write '{name}:LINK', or pass place=" if place is None else f"omit the link: {name!r}"
            raise ModelError(message, value=place, where=where, fix=fix)
        if place is not None and not isinstance(place, str):
            place = mechanism.links[mechanism.place(place).link].name
        if algorithm.hybrid != (forced is not None):
            message = f"{name} needs names in forced" if forced is None else f"{name} takes no forced coordinates"
            raise ModelError(message, where=where)
        if algorithm.closed and "choice" not in options:
            options = options | {"choice": self._choice(algorithm)}
        driven = None if forced is None else _coordinate_indices(mechanism, forced)
        request = Request(name, loads, place, forced=driven, **options)
        if options.keys() & {"axes", "point", "rows"}:
            _check_axes(algorithm, request, where)
        most = MAX_RATES if algorithm.rates else 1
        if type(request.order) is not int or not 1 <= request.order <= most:
            allowed = f"1 to {most}" if algorithm.rates else "1"
            raise ModelError(f"order of {name} is {reprlib.repr(request.order)}", where=where, allowed=allowed)
        return request


def _check_loops(mechanism: Mechanism, name: str, loops: Loops) -> None:
    """Raise ModelError for tree dynamics if the mechanism has loops, unless ``loops`` is "open"."""
    algorithm, where = ALGORITHMS[name], mechanism.name
    if loops is not None and (not isinstance(loops, str) or loops != "open"):
        message, allowed = f"of {name} is {loops!r}", "'open', or None"
        raise ModelError(message, argument="loops", value=loops, where=where, allowed=allowed)
    if loops == "open" and algorithm.closed:
        raise ModelError(f"{name} keeps the loops closed", where=where, fix="omit loops")
    if loops is None and mechanism.loops and algorithm.instead:
        names = [repr(loop.name) for loop in mechanism.loops]
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        many = "s" if len(names) > 1 else ""
        rolls = all(isinstance(loop, Wheel) for loop in mechanism.loops)
        kind, harm = ("wheel", "let {} slip") if rolls else ("loop", "cut {} open")
        message = f"the robot has the {kind}{many} {listed}, and {name} would {harm.format('them' if many else 'it')}"
        method = "there is no method" if algorithm.instead == NO_METHOD else f"use {algorithm.instead}"
        raise ModelError(message, where=where, fix=f"{method} for closed loops; robot.open_tree() cuts them")


def _check_axes(algorithm: Algorithm, request: Request, where: str) -> None:
    """Raise ModelError for axes, a point or rows that an algorithm does not support."""
    one_of(request.axes, AXES if algorithm.in_axes else ("local",), f"{where}: {request.name}", "axes")
    one_of(request.rows, tuple(ROWS) if algorithm.by_rows else ("all",), where, f"rows of {request.name}")
    flag(request.point, where, f"point of {request.name}")
    if request.point and not algorithm.at_point:
        raise ModelError(f"{request.name} takes no point", where=where)
    if request.point and request.axes == "world":
        why = "the twist at the base origin is the same for all points"
        message = f"{request.name} takes no point with `axes='world'`: {why}"
        raise ModelError(message, where=where, fix="omit the point, or use `axes='aligned'`")


def _coordinate_indices(mechanism: Mechanism, names: Sequence[str]) -> frozenset[int]:
    """Return the indices of coordinates; a joint name refers to all its coordinates."""
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Iterable):
        raise ModelError(f"forced is {names!r}", value=names, where=mechanism.name, allowed="coordinate names")
    of_joints = {joint.name: slices.v for joint, slices in zip(mechanism.joints, mechanism.coordinates, strict=True)}
    result, coordinates = set[int](), mechanism.coordinate_names
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"forced contains {name!r}", value=name, where=mechanism.name, allowed="coordinate names")
        if name in coordinates:
            result.add(coordinates.index(name))
        elif name in of_joints:
            result.update(range(of_joints[name].start, of_joints[name].stop))
        else:
            allowed = listing(coordinates, like=name)
            raise ModelError(f"no coordinate {name!r}", value=name, where=mechanism.name, allowed=allowed)
    return frozenset(result)


def _warn_of_condition(mechanism: Mechanism) -> None:
    """Warn if single-precision accelerations have fewer than two correct digits at the sampled positions."""
    function, (condition, worst, where) = trace(mechanism, Request("mass_matrix")), (0.0, 0, "")
    for k, q in enumerate(_tried_positions(mechanism)):
        result, at = _condition(np.asarray(function(q).full()))
        if result > condition:
            condition, worst, where = result, at, " at some positions" if k else ""
        if condition > CONDITION:
            break
    if condition > CONDITION:
        message = f"the mass matrix, scaled to a unit diagonal, has the condition number {condition:.1e}{where}"
        message += f" (near {mechanism.coordinate_names[worst]!r}), which is too large for float32 accelerations"
        fix = "use robot.to(dtype='float64'), or give light links their real inertia"
        warn(message, where=mechanism.name, allowed=f"{CONDITION:.1e}: two correct digits", fix=fix)


def _tried_positions(mechanism: Mechanism) -> list[Array]:
    """Return the neutral position (nq,) and random ones within the limits (half a turn for joints without limits)."""
    rng, neutral = np.random.default_rng(0), mechanism.neutral()
    lower, upper = np.maximum(mechanism.lower, -np.pi), np.minimum(mechanism.upper, np.pi)
    spread = rng.uniform(np.minimum(lower, upper), np.maximum(lower, upper), (POSITIONS, mechanism.nq))
    for joint, at in zip(mechanism.joints, mechanism.coordinates, strict=True):
        if joint.nq > joint.nv:  # a quaternion
            spread[:, at.q][:, -4:] /= np.linalg.norm(spread[:, at.q][:, -4:], axis=1, keepdims=True)
    return [neutral, *spread] if mechanism.nv else []


def _condition(M: Array) -> tuple[float, int]:
    """Return the condition number of a mass matrix scaled to a unit diagonal, and its worst coordinate."""
    diagonal = np.sqrt(np.maximum(np.diag(M), 0.0))
    weightless = np.flatnonzero(~(diagonal > 0))
    if weightless.size:
        return np.inf, int(weightless[0])
    moments, directions = np.linalg.eigh(M / np.outer(diagonal, diagonal))
    condition = float(moments[-1] / moments[0]) if moments[0] > 0 else np.inf
    return condition, int(np.argmax(np.abs(directions[:, 0])))

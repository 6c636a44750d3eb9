"""How a robot computes: functions are traced when they are first needed, compiled for its target, and kept."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.compiler import (
    DEVICES,
    Kernel,
    OperationCount,
    compile,
    compiler_fingerprint,
    count_operations,
    dtype_name,
    recall,
)
from torsor.dynamics import ALGORITHMS, Request, fingerprint, trace
from torsor.dynamics.requests.request import LOADS, Shape
from torsor.errors import ModelError, describe
from torsor.formats.saving import write
from torsor.mechanism import Mechanism
from torsor.mechanism.edit import Editable
from torsor.robot.export import export_c

__all__ = ["Computing", "Target"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Target:
    """Where a robot's methods compute: type of number, kind of machine, and how many threads."""

    dtype: str = "float64"
    device: str = "cpu"
    threads: int = 1


@dataclass(frozen=True, eq=False, repr=False)
class Computing(Editable):
    """A mechanism whose algorithms can be called, looked at, counted and exported."""

    target: Target = field(default=Target(), compare=False)

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        """Return the robot of a mechanism."""
        return cls(**{f.name: getattr(mechanism, f.name) for f in fields(Mechanism)})

    def to(self, dtype: Any = None, device: str | None = None, threads: int | None = None) -> Self:
        """Return the same robot whose methods compute elsewhere; what is not given stays.

        ``dtype`` is float64 or float32, ``threads`` the number of threads that large batches are shared among,
        ``device`` is cpu (compiled code) or casadi (CasADi's virtual machine: nothing is compiled, but each state
        takes far longer).

        Example:
            >>> import torsor
            >>> torsor.library.two_link().to(dtype="float32").mass_matrix([0.0, 0.0]).dtype
            dtype('float32')
        """
        old = self.target
        try:
            name = old.dtype if dtype is None else dtype_name(dtype)
        except ValueError as error:
            raise ModelError(f"{self.name}: {error}") from None
        target = Target(name, device or old.device, old.threads if threads is None else threads)
        if target.device not in DEVICES:
            raise ModelError(describe(f"device is {device!r}", where=self.name, allowed=", ".join(DEVICES)))
        if type(target.threads) is not int or target.threads < 1:
            raise ModelError(describe(f"threads is {threads!r}", where=self.name, allowed="a whole number from 1"))
        return replace(self, target=target)

    @cached_property
    def _functions(self) -> dict[Request, ca.Function]:
        return {}

    @cached_property
    def _kernels(self) -> dict[Request, Kernel]:
        return {}

    @cached_property
    def _ready(self) -> dict[str, Callable[..., Array]]:
        return {}

    @cached_property
    def _requests(self) -> dict[tuple[Any, ...], Request]:
        return {}

    def _request(
        self,
        name: str,
        place: str | int | None = None,
        external: bool | str = False,
        forced: Sequence[str] | None = None,
        **options: Any,
    ) -> Request:
        """Return what a function is kept under, with the place by its name; what was asked before is remembered."""
        try:
            given = (name, place, external, None if forced is None else tuple(forced), *options.items())
            # 1, 1.0 and True are one key, but not one place.
            key = (*given, type(place), type(external), *map(type, options.values()))
            known = self._requests.get(key)
        except TypeError:  # something that cannot be in a dictionary: it is refused by its name
            return self._new_request(name, place, external, forced, **options)
        if known is None:
            known = self._requests[key] = self._new_request(name, place, external, forced, **options)
        return known

    @cached_property
    def _shapes(self) -> dict[Request, tuple[dict[str, Shape], dict[str, Shape], dict[str, Shape]]]:
        return {}

    def _shapes_of(self, request: Request) -> tuple[dict[str, Shape], dict[str, Shape], dict[str, Shape]]:
        """Return the shapes of the inputs, of their small changes and of the results, for one state."""
        if request not in self._shapes:
            self._shapes[request] = request.arguments(self), request.tangents(self), request.results(self)
        return self._shapes[request]

    def _new_request(
        self, name: str, place: str | int | None, external: bool | str, forced: Sequence[str] | None, **options: Any
    ) -> Request:
        """Return a request, or refuse what there is not."""
        if name not in ALGORITHMS:
            raise ModelError(describe(f"no algorithm {name!r}", where=self.name, allowed=", ".join(ALGORITHMS)))
        algorithm = ALGORITHMS[name]
        unknown = options.keys() - {each.name for each in fields(Request)}
        if unknown:
            found = f"{name} takes no {', '.join(map(repr, sorted(unknown)))}"
            raise ModelError(describe(found, where=self.name, allowed="place, external, forced, order"))
        if not isinstance(external, (bool, str)):
            found, fix = f"external of {name} is of type {type(external).__name__}", "give wrenches as the last input"
            raise ModelError(describe(found, where=self.name, allowed="True or False", fix=fix))
        loads = {True: "link", False: ""}.get(external, external)  # type: ignore[arg-type]
        if loads and not algorithm.external:
            raise ModelError(describe(f"{name} takes no external wrenches", where=self.name))
        if loads not in (LOADS if algorithm.keeps else LOADS[:2]):
            allowed = ", ".join(map(repr, LOADS[1:] if algorithm.keeps else LOADS[1:2]))
            raise ModelError(describe(f"external wrenches of {name}: {loads!r}", where=self.name, allowed=allowed))
        if algorithm.at_place != (place is not None):
            found = f"{name} needs the name of a link or frame" if place is None else f"{name} takes no link or frame"
            fix = "give place=, a link or frame" if place is None else "leave place out"
            raise ModelError(describe(found, where=self.name, fix=fix))
        if place is not None and not isinstance(place, str):
            place = self.links[self.place(place).link].name
        if algorithm.hybrid != (forced is not None):
            found = f"{name} needs the names in forced" if forced is None else f"{name} takes no forced coordinates"
            raise ModelError(describe(found, where=self.name))
        driven = None if forced is None else self._indices(forced)
        request = Request(name, loads, place, driven, **options)
        if type(request.order) is not int or request.order < 1 or (request.order > 1 and not algorithm.rates):
            allowed = "1 or more" if algorithm.rates else "1"
            raise ModelError(describe(f"order of {name} is {request.order!r}", where=self.name, allowed=allowed))
        return request

    def _indices(self, names: Sequence[str]) -> frozenset[int]:
        """Return the indices of coordinates; the name of a joint stands for all of its own."""
        if isinstance(names, str):
            names = [names]
        if not isinstance(names, Iterable):
            raise ModelError(describe(f"forced is {names!r}", where=self.name, allowed="names of coordinates"))
        of_joints = {joint.name: slices.v for joint, slices in zip(self.joints, self.coordinates, strict=True)}
        found, coordinates = set[int](), self.coordinate_names
        for name in names:
            if not isinstance(name, str):
                raise ModelError(describe(f"forced has {name!r}", where=self.name, allowed="names of coordinates"))
            if name in coordinates:
                found.add(coordinates.index(name))
            elif name in of_joints:
                found.update(range(of_joints[name].start, of_joints[name].stop))
            else:
                allowed = ", ".join(self.coordinate_names[:12])
                raise ModelError(describe(f"no coordinate {name!r}", where=self.name, allowed=allowed))
        return frozenset(found)

    def _kernel(self, request: Request) -> Kernel:
        if request not in self._kernels:
            self._kernels[request] = self._recalled(request) or compile(
                self._function(request), **self._settings(request), key=self._cache_key(request)
            )
        return self._kernels[request]

    def _settings(self, request: Request) -> dict[str, Any]:
        shapes = request.inputs(self), request.outputs(self)
        if request.form == "sparse":
            function = self._function(request)
            shapes = shapes[0], {name: function.size_out(name)[:1] for name in function.name_out()}
        inputs, outputs = (list(each.values()) for each in shapes)
        return vars(self.target) | {"inputs": inputs, "outputs": outputs}

    def _cache_key(self, request: Request) -> str:
        """Return the name of a kernel in the cache, which is known without tracing its function."""
        at = None
        if request.place is not None:
            place = self.place(request.place)
            at = place.link, place.pose.tobytes()
        driven = None if request.forced is None else sorted(request.forced)
        rest = replace(request, place=None, forced=None)  # sets have no order, and names do not matter
        return fingerprint(self, rest, at, driven, self.target.dtype, compiler_fingerprint())

    def _recalled(self, request: Request) -> Kernel | None:
        """Return a kernel from the cache; its function comes with it, and need not be traced."""
        kept = recall(self._cache_key(request)) if self.target.device == "cpu" else None
        if kept is None:
            return None
        if request.form == "sparse":
            self._functions.setdefault(request, kept.function)
        return Kernel(kept, **self._settings(request))

    def _call(
        self, name: str, *values: ArrayLike, external: ArrayLike | None = None, place: str | int | None = None
    ) -> Array:
        if place is None and external is None:
            try:
                return self._ready[name](*values)
            except KeyError:
                self._ready[name] = self._kernel(self._request(name)).direct
            except (TypeError, ValueError):
                pass  # the kernel says what is wrong with the inputs
        if external is not None:
            values = (*values, external)
        result: Array = self._kernel(self._request(name, place, external is not None))(*values)
        return result

    # The functions themselves

    def function(
        self,
        name: str,
        place: str | int | None = None,
        external: bool | str = False,
        forced: Sequence[str] | None = None,
        order: int = 1,
    ) -> ca.Function:
        """Return the CasADi function behind a method.

        ``place`` is the link or frame of those that have one. ``external`` adds the wrenches of the environment as an
        input; for derivatives, "link", "world" or "point" says what they keep. ``forced`` names the coordinates driven
        by force in hybrid dynamics, ``order`` is the number of rates in ``force_rate``.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().function("inverse_dynamics")
            Function(inverse_dynamics:(q[2],v[2],a[2])->(inverse_dynamics[2]) SXFunction)
        """
        return self._function(self._request(name, place, external, forced, order=order))

    def _function(self, request: Request) -> ca.Function:
        if request not in self._functions:
            kernel = self._kernels.get(request)
            self._functions[request] = trace(self, request) if kernel is None else kernel.function
        return self._functions[request]

    def operation_count(
        self,
        name: str,
        place: str | int | None = None,
        external: bool | str = False,
        forced: Sequence[str] | None = None,
        order: int = 1,
    ) -> OperationCount:
        """Return the scalar operations that a method takes for one state; arguments as in ``function``.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().operation_count("mass_matrix").trigonometric
            2
        """
        return count_operations(self.function(name, place, external, forced, order))

    def save(self, path: str | Path) -> None:
        """Write the robot as TOML (.toml), which ``torsor.load`` reads back equal, or as URDF (.urdf) or MJCF (.xml).

        As URDF and MJCF it has the same dynamics, as far as the format can say it: a ``ModelWarning`` names what is
        not written, and a ``ModelError`` what cannot be. See ``formats.write_urdf`` and ``formats.write_mjcf``.

        Example:
            >>> import tempfile, torsor
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     torsor.library.two_link().save(folder + "/arm.toml")
            ...     torsor.load(folder + "/arm.toml") == torsor.library.two_link()
            ...     torsor.library.seven_axis_arm().save(folder + "/arm.urdf")
            ...     torsor.load(folder + "/arm.urdf").nv
            True
            7
        """
        write(self, path)

    def export_c(
        self,
        path: str | Path,
        names: Sequence[str] = ("inverse_dynamics",),
        dtype: str = "float64",
        place: str | int | None = None,
        name: str = "torsor_kernels",
        prefix: str = "",
    ) -> list[Path]:
        """Write algorithms as self-contained C99 into a folder and return the paths: header, source, CMakeLists.txt.

        ``names`` are those of the methods; one of a link or frame is written as "jacobian:hand". ``name`` is that of
        the files and of the library, ``prefix`` what the names of the C functions begin with: several robots in one
        program need both. The code does not allocate, has no state and calls libm only: it is meant for controllers.

        Example:
            >>> import tempfile, torsor
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     [path.name for path in torsor.library.two_link().export_c(folder, ["inverse_dynamics"], name="arm")]
            ['arm.h', 'arm.c', 'CMakeLists.txt']
        """
        return export_c(self, path, names, dtype, place, name, prefix)

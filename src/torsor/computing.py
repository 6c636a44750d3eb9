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
from torsor.dynamics import ALGORITHMS, fingerprint, trace
from torsor.errors import ModelError, describe
from torsor.export import export_c
from torsor.formats.toml import write_toml
from torsor.robot import Mechanism
from torsor.robot.edit import Editable

__all__ = ["Computing", "Target"]

Array = NDArray[np.float64]

# Algorithm, whether it takes external wrenches, the name of the link or frame, and the coordinates driven by force.
_Key = tuple[str, bool, str | None, frozenset[int] | None]


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
    def _functions(self) -> dict[_Key, ca.Function]:
        return {}

    @cached_property
    def _kernels(self) -> dict[_Key, Kernel]:
        return {}

    @cached_property
    def _ready(self) -> dict[str, Callable[..., Array]]:
        return {}

    def _key(self, name: str, external: bool, place: str | int | None, forced: Sequence[str] | None) -> _Key:
        """Return what a function is kept under, with the place by its name; refuse what there is not."""
        if name not in ALGORITHMS:
            raise ModelError(describe(f"no algorithm {name!r}", where=self.name, allowed=", ".join(ALGORITHMS)))
        algorithm = ALGORITHMS[name]
        if external and not algorithm.external:
            raise ModelError(describe(f"{name} takes no external wrenches", where=self.name))
        if algorithm.at_place != (place is not None):
            found = f"{name} needs the name of a link or frame" if place is None else f"{name} takes no link or frame"
            raise ModelError(describe(found, where=self.name))
        if place is not None and not isinstance(place, str):
            place = self.links[self.place(place).link].name
        if algorithm.hybrid != (forced is not None):
            found = f"{name} needs the names in forced" if forced is None else f"{name} takes no forced coordinates"
            raise ModelError(describe(found, where=self.name))
        return name, external, place, None if forced is None else self._indices(forced)

    def _indices(self, names: Sequence[str]) -> frozenset[int]:
        """Return the indices of coordinates; the name of a joint stands for all of its own."""
        if isinstance(names, str):
            names = [names]
        if not isinstance(names, Iterable):
            raise ModelError(describe(f"forced is {names!r}", where=self.name, allowed="names of coordinates"))
        of_joints = {joint.name: slices.v for joint, slices in zip(self.joints, self.coordinates, strict=True)}
        found: set[int] = set()
        for name in names:
            if name in self.coordinate_names:
                found.add(self.coordinate_names.index(name))
            elif name in of_joints:
                found.update(range(of_joints[name].start, of_joints[name].stop))
            else:
                allowed = ", ".join(self.coordinate_names[:12])
                raise ModelError(describe(f"no coordinate {name!r}", where=self.name, allowed=allowed))
        return frozenset(found)

    def _kernel(
        self,
        name: str,
        external: bool = False,
        place: str | int | None = None,
        forced: Sequence[str] | None = None,
    ) -> Kernel:
        key = self._key(name, external, place, forced)
        if key not in self._kernels:
            shapes = ALGORITHMS[name].shapes(self)
            names = ALGORITHMS[name].names(external)
            settings: dict[str, Any] = vars(self.target) | {
                "inputs": [shapes[each] for each in names],
                "outputs": [shapes["output"]] * max(1, len(ALGORITHMS[name].results)),
            }
            self._kernels[key] = self._recalled(key, settings) or compile(
                self.function(name, place, external, forced), **settings, key=self._cache_key(key)
            )
        return self._kernels[key]

    def _cache_key(self, key: _Key) -> str:
        """Return the name of a kernel in the cache, which is known without tracing its function."""
        name, external, place, forced = key
        at = None if place is None else (self.place(place).link, self.place(place).pose.tobytes())
        driven = None if forced is None else sorted(forced)
        return fingerprint(self, name, external, at, driven, self.target.dtype, compiler_fingerprint())

    def _recalled(self, key: _Key, settings: dict[str, Any]) -> Kernel | None:
        """Return a kernel from the cache, and with it its function, which then need not be traced."""
        kept = recall(self._cache_key(key)) if self.target.device == "cpu" else None
        if kept is None:
            return None
        function, code = kept
        self._functions.setdefault(key, function)
        return Kernel(function, **settings, code=code)

    def _call(
        self, name: str, *values: ArrayLike, external: ArrayLike | None = None, place: str | int | None = None
    ) -> Array:
        if place is None and external is None:
            try:
                return self._ready[name](*values)
            except KeyError:
                self._ready[name] = self._kernel(name).direct
            except (TypeError, ValueError):
                pass  # the kernel says what is wrong with the inputs
        if external is not None:
            values = (*values, external)
        result: Array = self._kernel(name, external is not None, place)(*values)
        return result

    # The functions themselves

    def function(
        self,
        name: str,
        place: str | int | None = None,
        external: bool = False,
        forced: Sequence[str] | None = None,
    ) -> ca.Function:
        """Return the CasADi function behind a method.

        ``place`` is the link or frame of those that have one, ``external`` adds the wrenches of the environment as an
        input, ``forced`` names the coordinates driven by force in hybrid dynamics.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().function("inverse_dynamics")
            Function(inverse_dynamics:(q[2],v[2],a[2])->(inverse_dynamics[2]) SXFunction)
        """
        key = self._key(name, external, place, forced)
        if key not in self._functions:
            at = None if place is None else self.place(place)
            self._functions[key] = trace(self, name, external=external, place=at, forced=key[3])
        return self._functions[key]

    def operation_count(
        self,
        name: str,
        place: str | int | None = None,
        external: bool = False,
        forced: Sequence[str] | None = None,
    ) -> OperationCount:
        """Return the scalar operations that a method takes for one state; arguments as in ``function``.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().operation_count("mass_matrix").trigonometric
            2
        """
        return count_operations(self.function(name, place, external, forced))

    def save(self, path: str | Path) -> None:
        """Write the robot as TOML, which ``torsor.load`` reads back equal.

        Example:
            >>> import tempfile, torsor
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     torsor.library.two_link().save(folder + "/arm.toml")
            ...     torsor.load(folder + "/arm.toml") == torsor.library.two_link()
            True
        """
        write_toml(self, path)

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

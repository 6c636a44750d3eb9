"""The robot: a mechanism that computes. Each method is an algorithm of ``dynamics``, traced once and kept."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.compiler import (
    DEVICES,
    DTYPES,
    Kernel,
    OperationCount,
    compile,
    compiler_fingerprint,
    count_operations,
    recall,
)
from torsor.dynamics import ALGORITHMS, fingerprint, trace
from torsor.errors import ModelError, describe
from torsor.formats.toml import write_toml
from torsor.robot import Mechanism
from torsor.robot.edit import Editable

__all__ = ["Robot"]

Array = NDArray[np.float64]


# Algorithm, whether it takes external wrenches, and the name of the link or frame.
_Key = tuple[str, bool, str | None]


@dataclass(frozen=True)
class Target:
    """Where a robot's methods compute: type of number, kind of machine, and how many threads."""

    dtype: str = "float64"
    device: str = "cpu"
    threads: int = 1


@dataclass(frozen=True, eq=False, repr=False)
class Robot(Editable):
    """A tree of links and joints with its dynamics.

    Made by ``torsor.load``, ``from_dh``, ``from_mdh``, ``from_screws`` and ``torsor.library``. SI units, radians.
    Arrays have any leading axes, which broadcast: ``q`` is (..., nq), ``v``, ``a`` and forces are (..., nv). Spatial
    vectors have the angular part first. ``external`` is (..., L, 6): the wrench (moment, force) that the environment
    exerts on each moving link, at the link's origin, in the link's axes.

    Example:
        >>> import torsor
        >>> robot = torsor.library.two_link()
        >>> robot.inverse_dynamics([0.3, -1.2], [1.1, -0.7], [2.0, 3.5]).round(6).tolist()
        [1.129562, 0.643878]
    """

    target: Target = field(default=Target(), compare=False)

    @classmethod
    def of(cls, mechanism: Mechanism) -> "Robot":
        """Return the robot of a mechanism."""
        return cls(**{f.name: getattr(mechanism, f.name) for f in fields(Mechanism)})

    def to(self, dtype: str | None = None, device: str | None = None, threads: int | None = None) -> Self:
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
        target = Target(dtype or old.dtype, device or old.device, old.threads if threads is None else threads)
        for name, value, allowed in (("dtype", target.dtype, DTYPES), ("device", target.device, DEVICES)):
            if value not in allowed:
                raise ModelError(describe(f"{name} is {value!r}", where=self.name, allowed=", ".join(allowed)))
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

    def _key(self, name: str, external: bool, place: str | int | None) -> _Key:
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
        return name, external, place

    def _kernel(self, name: str, external: bool = False, place: str | int | None = None) -> Kernel:
        key = self._key(name, external, place)
        if key not in self._kernels:
            shapes = ALGORITHMS[name].shapes(self)
            names = [*ALGORITHMS[name].inputs, *(["external"] if external else [])]
            settings: dict[str, Any] = vars(self.target) | {
                "inputs": [shapes[each] for each in names],
                "outputs": [shapes["output"]],
            }
            self._kernels[key] = self._recalled(key, settings) or compile(
                self.function(name, place, external), **settings, key=self._cache_key(key)
            )
        return self._kernels[key]

    def _cache_key(self, key: _Key) -> str:
        """Return the name of a kernel in the cache, which is known without tracing its function."""
        name, external, place = key
        at = None if place is None else (self.place(place).link, self.place(place).pose.tobytes())
        return fingerprint(self, name, external, at, self.target.dtype, compiler_fingerprint())

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
        if place is not None:
            return self._kernel(name, False, place)(*values)  # type: ignore[no-any-return]
        if external is not None:
            return self._kernel(name, True)(*values, external)  # type: ignore[no-any-return]
        try:
            return self._ready[name](*values)
        except KeyError:
            self._ready[name] = self._kernel(name).direct
        except (TypeError, ValueError):
            pass  # the kernel says what is wrong with the inputs
        return self._kernel(name)(*values)  # type: ignore[no-any-return]

    # The functions themselves

    def function(self, name: str, place: str | int | None = None, external: bool = False) -> ca.Function:
        """Return the CasADi function behind a method; ``place`` for those of one link or frame.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().function("inverse_dynamics")
            Function(inverse_dynamics:(q[2],v[2],a[2])->(inverse_dynamics[2]) SXFunction)
        """
        key = self._key(name, external, place)
        if key not in self._functions:
            at = None if place is None else self.place(place)
            self._functions[key] = trace(self, name, external=external, place=at)
        return self._functions[key]

    def operation_count(self, name: str, place: str | int | None = None, external: bool = False) -> OperationCount:
        """Return the scalar operations that a method takes for one state.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().operation_count("mass_matrix").trigonometric
            2
        """
        return count_operations(self.function(name, place, external))

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

    # Forces

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: ArrayLike | None = None) -> Array:
        """Return the generalised forces (..., nv) of a motion, in N m and N.

        tau = M(q) a + C(q, v) v + g(q) + friction(v) - sum of J^T external, by Newton-Euler recursion (documents
        000-003). Rotor inertias and friction are included.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> float(robot.inverse_dynamics([0.0], [0.0], [0.0])[0].round(9))  # 3 kg, 1 m away
            29.43
        """
        return self._call("inverse_dynamics", q, v, a, external=external)

    def joint_wrenches(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: ArrayLike | None = None) -> Array:
        """Return the reactions (..., L, 6): what each parent exerts on its link through the joint.

        (moment, force) at the link's origin in the link's axes, in N m and N: documents 001 and 003. The component
        along a joint's axis is what its drive, friction and rotor take together; the rest is carried by the bearings.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> robot.joint_wrenches([0.0], [0.0], [0.0])[0].round(9).tolist()
            [0.0, 0.0, 29.43, 0.0, 29.43, 0.0]
        """
        return self._call("joint_wrenches", q, v, a, external=external)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Return M(q) (..., nv, nv): symmetric, rotor inertias on its diagonal. Composite bodies, Walker and Orin 1982.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().mass_matrix([0.0, 0.0]).round(9).tolist()
            [[0.4, 0.16], [0.16, 0.12]]
        """
        return self._call("mass_matrix", q)

    def bias_force(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the forces (..., nv) that remain without acceleration: C(q, v) v + g(q) + friction(v).

        Example:
            >>> import torsor
            >>> torsor.library.two_link().bias_force([0.0, np.pi / 2], [1.0, 0.0]).round(9).tolist()
            [0.0, 0.04]
        """
        return self._call("bias_force", q, v)

    def gravity_force(self, q: ArrayLike) -> Array:
        """Return the forces (..., nv) that hold the robot still against gravity: g(q).

        Example:
            >>> import torsor
            >>> torsor.library.slide_link().gravity_force([0.1, 0.2]).tolist()
            [0.0, 0.0]
        """
        return self._call("gravity_force", q)

    def friction_force(self, v: ArrayLike) -> Array:
        """Return the forces (..., nv) that friction takes: Fs sign(v) + Fv v, or Fs tanh(v / smooth) + Fv v.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().with_friction("joint2", coulomb=1.0).friction_force([1.0, -2.0]).tolist()
            [0.0, -1.0]
        """
        return self._call("friction_force", v)

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return C(q, v) (..., nv, nv): C v are the velocity forces and the rate of M minus 2 C is skew-symmetric.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().coriolis_matrix([0.0, np.pi / 2], [1.0, 0.0]).round(9).tolist()
            [[0.0, -0.04], [0.04, 0.0]]
        """
        return self._call("coriolis_matrix", q, v)

    # Motion

    def poses(self, q: ArrayLike) -> Array:
        """Return the poses (..., L, 4, 4) of the moving links in base axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().poses([0.0, 0.0])[1, :3, 3].round(9).tolist()
            [0.8, 0.0, 0.0]
        """
        return self._call("poses", q)

    def velocities(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the twists (..., L, 6) of the moving links: (omega, v of the origin) in the link's axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().velocities([0.0, 0.0], [1.0, 0.0])[1].round(9).tolist()
            [0.0, 0.0, 1.0, 0.0, 0.8, 0.0]
        """
        return self._call("velocities", q, v)

    def accelerations(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Return (..., L, 6) of the moving links: (rate of omega, acceleration of the origin) in the link's axes.

        The second part is the acceleration of the point, as an accelerometer would have it in the absence of gravity.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().accelerations([0.0, 0.0], [1.0, 0.0], [0.0, 0.0])[1].round(9).tolist()
            [0.0, 0.0, 0.0, -0.8, 0.0, 0.0]
        """
        return self._call("accelerations", q, v, a)

    def pose(self, q: ArrayLike, place: str | int) -> Array:
        """Return the pose (..., 4, 4), in base axes, of a link (name or index) or named frame.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().pose([0.0, 0.0], "link2")[:3, 3].round(9).tolist()
            [0.8, 0.0, 0.0]
        """
        return self._call("pose", q, place=place)

    def velocity(self, q: ArrayLike, v: ArrayLike, place: str | int) -> Array:
        """Return the twist (..., 6) of a link or named frame: (omega, v of its origin) in its own axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().velocity([0.0, 0.0], [1.0, 0.0], "link1").round(9).tolist()
            [0.0, 0.0, 1.0, 0.0, 0.4, 0.0]
        """
        return self._call("velocity", q, v, place=place)

    def acceleration(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, place: str | int) -> Array:
        """Return (..., 6) of a link or named frame: (rate of omega, acceleration of its origin) in its own axes.

        It equals J a + J' v + (0, omega x v), with the place's Jacobian J and twist (omega, v).

        Example:
            >>> import torsor
            >>> torsor.library.two_link().acceleration([0.0, 0.0], [1.0, 0.0], [0.0, 0.0], "link1").round(9).tolist()
            [0.0, 0.0, 0.0, -0.4, 0.0, 0.0]
        """
        return self._call("acceleration", q, v, a, place=place)

    def jacobian(self, q: ArrayLike, link: str | int) -> Array:
        """Return J (..., 6, nv) of a link or named frame: (omega, v of its origin) = J v, in its own axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().jacobian([0.0, 0.0], "link2")[4].round(9).tolist()
            [0.8, 0.4]
        """
        return self._call("jacobian", q, place=link)

    def jacobian_rate(self, q: ArrayLike, v: ArrayLike, link: str | int) -> Array:
        """Return the rate (..., 6, nv) of the Jacobian's components, in the axes of the link or frame.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().jacobian_rate([0.0, 0.0], [0.0, 1.0], "link2")[3].round(9).tolist()
            [0.4, 0.0]
        """
        return self._call("jacobian_rate", q, v, place=link)

    # Sums over the links

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the kinetic energy (...), in J: v^T M v / 2, rotors included.

        Example:
            >>> import torsor
            >>> float(torsor.library.two_link().kinetic_energy([0.0, 0.0], [1.0, 0.0]).round(9))
            0.2
        """
        return self._call("kinetic_energy", q, v)

    def potential_energy(self, q: ArrayLike) -> Array:
        """Return the potential energy (...) in gravity, in J, zero with the centre of mass at the base's origin.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> float(robot.potential_energy([np.pi / 2]).round(9))
            29.43
        """
        return self._call("potential_energy", q)

    def center_of_mass(self, q: ArrayLike) -> Array:
        """Return the centre of mass (..., 3) of the moving links, in base axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().center_of_mass([0.0, 0.0]).round(9).tolist()
            [0.4, 0.0, 0.0]
        """
        return self._call("center_of_mass", q)

    def momentum(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return (..., 6): angular momentum about the centre of mass, and linear momentum, in base axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().momentum([0.0, 0.0], [1.0, 0.0]).round(9).tolist()
            [0.0, 0.0, 0.24, 0.0, 0.4, 0.0]
        """
        return self._call("momentum", q, v)

    # Positions

    def integrate(self, q: ArrayLike, dv: ArrayLike) -> Array:
        """Return the positions (..., nq) after one unit of time at the constant velocity dv (..., nv).

        Example:
            >>> import torsor
            >>> torsor.library.two_link().integrate([0.1, 0.2], [1.0, 1.0]).tolist()
            [1.1, 1.2]
        """
        return self._call("integrate", q, dv)

    def difference(self, q: ArrayLike, q_end: ArrayLike) -> Array:
        """Return the dv (..., nv) with ``integrate(q, dv) = q_end``.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().difference([0.1, 0.2], [1.1, 1.2]).tolist()
            [1.0, 1.0]
        """
        return self._call("difference", q, q_end)

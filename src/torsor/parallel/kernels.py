"""How a parallel robot computes: its functions are traced leg by leg when first needed, compiled and kept."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.compiler import Kernel, OperationCount, compile, compiler_fingerprint, count_operations, recall
from torsor.computing import Target
from torsor.dynamics import fingerprint
from torsor.dynamics.lean import lean
from torsor.dynamics.tree import Tree
from torsor.errors import ModelError, describe
from torsor.model import Robot
from torsor.parallel.closed_form import Strut, closest, strut_of
from torsor.parallel.decomposition import Parts
from torsor.parallel.fitting import fit
from torsor.parallel.legs import Leg, carriage, coordinates_of
from torsor.parallel.limbs import Limb
from torsor.parallel.platforms import Platform
from torsor.parallel.rules import RULES
from torsor.parallel.trigonometry import Known, without_trigonometry
from torsor.robot import Link
from torsor.robot.values import Part, checked_name, frozen_array

__all__ = ["Assembled"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Assembled(Part):
    """A platform and its legs, put together at home, whose algorithms can be called, looked at and counted."""

    platform: Link | Robot
    legs: Sequence[Leg]
    home: Array
    motion: str = "free"
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    name: str = "parallel_robot"
    target: Target = field(default=Target(), compare=False)

    def __post_init__(self) -> None:
        where = checked_name(self.name, "robot")
        self._set(legs=tuple(self.legs), gravity=frozen_array(self.gravity, (3,), where, "gravity"))
        if not self.legs or not all(isinstance(leg, Leg) for leg in self.legs):
            raise ModelError(describe("legs", where=where, allowed="one Leg or more"))
        names = [leg.name for leg in self.legs]
        if len(set(names)) < len(names):
            double = next(name for name in names if names.count(name) > 1)
            raise ModelError(describe(f"two legs are named {double!r}", where=where, fix="give each its own name"))
        if isinstance(self.platform, Robot):
            self._set(motion="")
        home = self._coordinates(self.home, "home")
        if home.shape != (self.carriage.nq,):
            raise ModelError(describe(f"home has shape {home.shape}", where=where, allowed="one pose"))
        home.setflags(write=False)
        self._set(home=home)
        if len(self.driven_names) < self.carriage.nv:
            found = f"{len(self.driven_names)} driven coordinates for a platform with {self.carriage.nv}"
            raise ModelError(describe(found, where=where, allowed=f"{self.carriage.nv} or more"))
        self._fitted  # noqa: B018  # refuses legs that do not fit

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {len(self.legs)} legs, {self.carriage.nv} dof>"

    # What it is

    @cached_property
    def carriage(self) -> Robot:
        """The platform alone on the joints that say how it moves: a robot whose coordinates are the pose and twist."""
        return carriage(self.platform, self.motion, self.gravity)

    @cached_property
    def _fitted(self) -> tuple[Parts, Array]:
        limbs, home, nq, nv = [], [np.zeros(0)], 0, 0
        for leg in self.legs:
            limb, q = fit(leg, self.carriage, self.home, (nq, nv))
            limbs.append(limb)
            home.append(q)
            nq, nv = limb.q.stop, limb.v.stop
        tree = lean(Tree.of(self.carriage))
        struts = tuple(self._strut(tree, limb, q) for limb, q in zip(limbs, home[1:], strict=True))
        return Parts(tree, tuple(limbs), struts), np.concatenate(home)

    @property
    def _parts(self) -> Parts:
        return self._fitted[0]

    @property
    def leg_home(self) -> Array:
        """Positions (nq,) of all legs with the platform at home."""
        return self._fitted[1].copy()

    @cached_property
    def leg_slices(self) -> tuple[slice, ...]:
        """Where the positions of each leg are among those of all."""
        return tuple(limb.q for limb in self._parts.limbs)

    @property
    def nq(self) -> int:
        """Number of positions of all legs."""
        return sum(leg.robot.nq for leg in self.legs)

    @property
    def nv(self) -> int:
        """Number of velocities of all legs."""
        return sum(leg.robot.nv for leg in self.legs)

    @property
    def dof(self) -> int:
        """Number of velocities of the platform."""
        return self.carriage.nv

    @property
    def position_names(self) -> tuple[str, ...]:
        """Names of the legs' positions."""
        return tuple(f"{leg.name}/{name}" for leg in self.legs for name in leg.robot.position_names)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the legs' velocities."""
        return tuple(f"{leg.name}/{name}" for leg in self.legs for name in leg.robot.coordinate_names)

    @property
    def driven_names(self) -> tuple[str, ...]:
        """Names of the driven coordinates, in the order of forces."""
        return tuple(f"{leg.name}/{name}" for leg in self.legs for name in leg.driven)

    @cached_property
    def _driven(self) -> list[int]:
        return [self.position_names.index(name) for name in self.driven_names]

    def _strut(self, tree: Tree, limb: Limb, q: Array) -> Strut | None:
        """Return the closed form of a leg; one that does not find home by it is put together as others are."""
        strut, x = strut_of(limb), ca.SX.sym("x", tree.nq)
        if strut is None:
            return None
        solved = ca.Function("home", [x], [strut.solve(Platform(tree, x), strut.sign(q)).q])
        off = np.asarray(solved(self.home).full()).ravel() - q
        off[:2] = np.sin(off[:2] / 2)  # whole turns do not matter
        return strut if np.abs(off).max() < 1e-9 else None

    @property
    def has_closed_form(self) -> bool:
        """Whether the positions of all legs follow from the pose in closed form: all are UPS legs."""
        return all(strut is not None for strut in self._parts.struts)

    # Functions

    def _sizes(self) -> dict[str, int]:
        limbs = self._parts.limbs
        rows, squares = sum(limb.loop.count for limb in limbs), sum(limb.tree.nv**2 for limb in limbs)
        own = {"n": self.dof, "N": len(self._driven), "q": self.nq, "v": self.nv, "c": rows, "A": squares}
        given = {"pose": self.carriage.nq, "u": self.dof, "u_rate": self.dof, "share": len(self._driven), "dv": self.nv}
        drives, n, m = len(self._driven), self.carriage.nq + self.nq, self.dof + self.nv
        states = {"leg_state": n, "leg_trial": n + self.nv + 2, "state": n + drives, "move": m + drives}
        states["assembly_trial"] = states["state"] + states["move"] + 2
        return own | given | states | {"forces": drives, "guess": self.nq, "external": 6}

    def _signature(self, name: str, fused: bool, external: bool) -> tuple[list[str], list[tuple[int, ...]]]:
        sizes, rule = self._sizes(), RULES[name]
        inputs = [each for each in rule.inputs if not (fused and each == "q")]
        inputs += ["external"] if external else []
        outputs = [tuple(each if isinstance(each, int) else sizes[each] for each in shape) for shape in rule.outputs]
        return inputs, outputs

    def _trace(self, name: str, fused: bool, external: bool) -> ca.Function:
        sizes, rule, parts = self._sizes(), RULES[name], self._parts
        names, _ = self._signature(name, False, external)
        symbols = {each: ca.SX.sym(each, sizes[each]) for each in names}
        found = rule.rule(parts, **symbols)
        results = list(found) if isinstance(found, tuple) else [found]
        if fused:
            q, known = self._closed_positions(symbols["pose"])
            plain = ca.Function(name, list(symbols.values()), results)
            given = [q if each == "q" else symbols[each] for each in names]
            results = without_trigonometry(plain, given, names.index("q"), known)
            del symbols["q"]
        return ca.Function(name, list(symbols.values()), ca.cse(results), list(symbols), _titles(name, len(results)))

    def _closed_positions(self, pose: ca.SX) -> tuple[ca.SX, list[Known]]:
        """Return all legs' positions from the pose, and the sines and cosines that are known then."""
        platform, parts, known = Platform(self._parts.platform, pose), [], []
        for limb, strut in zip(self._parts.limbs, self._parts.struts, strict=True):
            assert strut is not None
            home = self.leg_home[limb.q]
            angles = strut.solve(platform, strut.sign(home))
            q = angles.q
            if any(passive.q for passive in limb.tree.passives):  # a spring sees whole turns
                q = closest(q, home)
            parts.append(q)
            for k in range(2):
                ratio, offset = strut.scale[k]
                known.append(Known(limb.q.start + k, ratio, offset, angles.cosines[k], angles.sines[k]))
        return ca.vertcat(*parts), known

    @cached_property
    def _functions(self) -> dict[tuple[str, bool, bool], ca.Function]:
        return {}

    @cached_property
    def _kernels(self) -> dict[tuple[str, bool, bool], Kernel]:
        return {}

    @cached_property
    def _key(self) -> str:
        """What all functions of this robot depend on."""
        limbs = []
        for leg, limb in zip(self.legs, self._parts.limbs, strict=True):
            places = leg.base.tobytes(), leg.at.tobytes(), limb.tip.link, limb.tip.pose.tobytes()
            own = leg.kind, leg.length, limb.rows, limb.idle.tobytes(), limb.driven
            limbs.append(fingerprint(leg.robot, *places, *own))
        signs = [strut and strut.sign(self.leg_home[strut.limb.q]) for strut in self._parts.struts]
        return fingerprint(self.carriage, limbs, signs, self.leg_home.tobytes(), _source())

    def _function(self, name: str, fused: bool = False, external: bool = False) -> ca.Function:
        asked = name, fused, external
        if asked not in self._functions:
            self._functions[asked] = self._trace(*asked)
        return self._functions[asked]

    def _kernel(self, name: str, fused: bool = False, external: bool = False) -> Kernel:
        asked = name, fused, external
        if asked not in self._kernels:
            sizes = self._sizes()
            names, outputs = self._signature(*asked)
            shapes = {"inputs": [(sizes[each],) for each in names], "outputs": outputs}
            settings: dict[str, Any] = vars(self.target) | shapes
            digest = hashlib.sha256(f"{self._key} {asked} {self.target.dtype}".encode() + compiler_fingerprint())
            key = digest.hexdigest()
            kept = recall(key) if self.target.device == "cpu" else None
            if kept is not None:
                self._functions.setdefault(asked, kept[0])
                self._kernels[asked] = Kernel(kept[0], **settings, code=kept[1])
            else:
                self._kernels[asked] = compile(self._function(*asked), **settings, key=key)
        return self._kernels[asked]

    @cached_property
    def _exact(self) -> Self:
        """The same robot in double precision: what is put together is closed to less than single precision can say."""
        return self if self.target.dtype == "float64" else self.to(dtype="float64")

    def function(self, name: str, positions: bool = False, external: bool = False) -> ca.Function:
        """Return the CasADi function behind a method, for one state.

        ``positions`` makes the legs' positions q an input, also where they follow from the pose in closed form;
        ``external`` makes the wrench on the platform one.

        Example:
            >>> import torsor
            >>> torsor.library.gough_stewart().function("mass_matrix")
            Function(mass_matrix:(pose[7])->(mass_matrix[6x6]) SXFunction)
        """
        if name not in RULES:
            raise ModelError(describe(f"no algorithm {name!r}", where=self.name, allowed=", ".join(RULES)))
        if external and not RULES[name].external:
            raise ModelError(describe(f"{name} takes no external wrench", where=self.name))
        fused = not positions and self.has_closed_form and "q" in RULES[name].inputs
        return self._function(name, fused, external)

    def operation_count(self, name: str, positions: bool = False, external: bool = False) -> OperationCount:
        """Return the scalar operations that a method takes for one state; arguments as in ``function``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.gough_stewart()
            >>> robot.operation_count("inverse_dynamics").trigonometric  # directions of the legs need no angles
            0
        """
        return count_operations(self.function(name, positions, external))

    def to(self, dtype: Any = None, device: str | None = None, threads: int | None = None) -> Self:
        """Return the same robot whose methods compute elsewhere, as ``Robot.to``; what is not given stays.

        Example:
            >>> import torsor
            >>> robot = torsor.library.gough_stewart().to(dtype="float32")
            >>> robot.mass_matrix(robot.home).dtype
            dtype('float32')
        """
        return replace(self, target=self.carriage.to(dtype, device, threads).target)

    # Inputs

    def _coordinates(self, pose: ArrayLike, what: str = "pose") -> Array:
        """Return the platform's coordinates (..., nq) of poses given as such, or as matrices (..., 4, 4)."""
        values, count = np.array(pose, dtype=float), self.carriage.nq
        if values.ndim >= 2 and values.shape[-2:] == (4, 4) and count != 4:
            return coordinates_of(values, self.carriage, self.motion)
        if values.ndim == 0 or values.shape[-1] != count:
            allowed = f"(..., {count}): {', '.join(self.carriage.position_names)}"
            matrices = " or (..., 4, 4)" if count != 4 else ""
            raise ModelError(describe(f"{what} has shape {values.shape}", where=self.name, allowed=allowed + matrices))
        return values


def _titles(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}_{k}" for k in range(count)]


def _source() -> bytes:
    folder = Path(__file__).parent
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))).digest()

"""Compiled functions of a parallel robot: traced leg by leg, compiled on first use, and cached."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import Any, NamedTuple, Self

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, known_name, name_of, real_array
from torsor.base.errors import ModelError, shortened
from torsor.base.summary import Summary
from torsor.compiler import AnyKernel, OperationCount, Signature, count_operations
from torsor.compiler.cache import source_hash
from torsor.dynamics import fingerprint
from torsor.dynamics.trees.lean import lean
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Link
from torsor.mechanism.part import Part
from torsor.robot.closed_loops.search import MIN_SINGULAR_DISTANCE
from torsor.robot.kernels import Kernels
from torsor.robot.parallel import decomposition
from torsor.robot.parallel.decomposition import Parts, legs, moving, platforms, soundness
from torsor.robot.parallel.legs import HOME, Leg, carriage, coordinates_of, fit, length_of
from torsor.robot.parallel.limbs import Limb, Platform, Strut, closest, strut_of
from torsor.robot.robot import Robot
from torsor.robot.target import Target

# Minimum singularity distances of legs and drives.
LEGS, DRIVES = MIN_SINGULAR_DISTANCE, 1e-6


@dataclass(frozen=True)
class Rule:
    """An algorithm: a function of ``Parts`` and symbols, and the shapes of its results in terms of named sizes.

    ``margins`` are the minimum singularity distances that it requires, for the legs and optionally for the drives.
    """

    rule: Callable[..., Any]
    outputs: Sequence[tuple[str, ...]]
    margins: tuple[float, ...] = (LEGS,)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the function's array arguments, without an external wrench."""
        return tuple(name for name in signature(self.rule).parameters if name not in ("parts", "leg", "external"))


RULES = {
    "inverse_dynamics": Rule(decomposition.inverse_dynamics, [("N",)], margins=(LEGS, DRIVES)),
    "platform_force": Rule(decomposition.platform_force, [("n",)]),
    "forward_dynamics": Rule(decomposition.forward_dynamics, [("n",)]),
    "mass_matrix": Rule(decomposition.platform_mass_matrix, [("n", "n")]),
    "inverse_jacobian": Rule(decomposition.inverse_jacobian, [("N", "n")]),
    "jacobian": Rule(decomposition.robot_jacobian, [("n", "N")], margins=(LEGS, DRIVES)),
    "leg_velocities": Rule(decomposition.leg_velocities, [("v",)]),
    "leg_accelerations": Rule(decomposition.leg_accelerations, [("v",), ("v",)]),
    "kinetic_energy": Rule(decomposition.kinetic_energy, [()]),
    "potential_energy": Rule(decomposition.potential_energy, [()], margins=(-1.0,)),
    "closed_positions": Rule(decomposition.closed_positions, [("q",)]),
    "leg_errors": Rule(decomposition.leg_errors, [("c",)]),
    "leg_matrices": Rule(decomposition.leg_matrices, [("A",)]),
    "sides": Rule(decomposition.sides, [("sides",)]),
    "leg_side": Rule(decomposition.leg_side, [()]),
    "leg_trial": Rule(decomposition.leg_trial, [("leg_trial",)]),
    "assembly_trial": Rule(decomposition.assembly_trial, [("assembly_trial",)]),
}
"""All algorithms of a parallel robot by method name, including kinematics."""


# Removal of sines and cosines of known angles: those of a UPS leg are entries of its direction vector.


class Known(NamedTuple):
    """Cosine and sine of the angle ratio * x[place] + offset, where x is one input."""

    place: int
    ratio: float
    offset: float
    cosine: ca.SX
    sine: ca.SX


class _Line(NamedTuple):
    """A value ratio x[place] + offset, or the constant offset if place is None."""

    place: int | None
    ratio: float
    offset: float


def without_trigonometry(
    function: ca.Function, inputs: Sequence[ca.SX], which: int, known: Sequence[Known]
) -> list[ca.SX]:
    """Return the outputs of a function at ``inputs``, using known sines and cosines; x is the input ``which``."""
    work: dict[int, ca.SX] = {}
    lines: dict[int, _Line | None] = {}
    outputs = [ca.SX.zeros(function.sparsity_out(k)) for k in range(function.n_out())]
    table = {(item.place, item.ratio): item for item in known}
    dense = [ca.densify(input_) for input_ in inputs]
    for k in range(function.n_instructions()):
        code, ins, outs = function.instruction_id(k), function.instruction_input(k), function.instruction_output(k)
        if code == ca.OP_OUTPUT:
            outputs[outs[0]].nz[outs[1]] = work[ins[0]]
            continue
        line: _Line | None
        if code == ca.OP_INPUT:
            value = dense[ins[0]].nz[ins[1]]
            line = _Line(ins[1], 1.0, 0.0) if ins[0] == which else None
        elif code == ca.OP_CONST:
            number = function.instruction_constant(k)
            value, line = ca.SX(number), _Line(None, 0.0, number)
        else:
            arguments = [work[i] for i in ins]
            line = _linear_form(code, [lines[i] for i in ins])
            known_value = _lookup(code, lines[ins[0]], table)
            if known_value is not None:
                value = known_value
            else:
                value = ca.SX.unary(code, *arguments) if len(arguments) == 1 else ca.SX.binary(code, *arguments)
        work[outs[0]], lines[outs[0]] = value, line
    return outputs


def _linear_form(code: int, lines: list[_Line | None]) -> _Line | None:
    """Return the linear form of an operation on ``lines``, or None if it is not linear in one input."""
    first, *others = lines
    if first is None or None in others:
        return None
    if code == ca.OP_NEG:
        return _Line(first.place, -first.ratio, -first.offset)
    second = others[0] if others else None
    if second is None or None not in (first.place, second.place):
        return None
    place = second.place if first.place is None else first.place
    if code in (ca.OP_ADD, ca.OP_SUB):
        sign = 1.0 if code == ca.OP_ADD else -1.0
        return _Line(place, first.ratio + sign * second.ratio, first.offset + sign * second.offset)
    if code == ca.OP_MUL:
        number, other = (first, second) if first.place is None else (second, first)
        return _Line(place, number.offset * other.ratio, number.offset * other.offset)
    return None


def _lookup(code: int, line: _Line | None, table: dict[tuple[int, float], Known]) -> ca.SX | None:
    if code not in (ca.OP_SIN, ca.OP_COS) or line is None or line.place is None:
        return None
    known = table.get((line.place, line.ratio))
    if known is None or abs(known.offset - line.offset) > 1e-14:
        return None
    return known.sine if code == ca.OP_SIN else known.cosine


class FunctionKey(NamedTuple):
    """Key of a function: ``checked`` adds ``soundness`` as its last result; ``leg`` is the index of a single leg."""

    name: str
    fused: bool = False
    external: bool = False
    checked: bool = False
    leg: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Assembled(Part):
    """A platform and its legs, assembled at home, with their traced and compiled algorithms."""

    platform: Link | Robot
    legs: Sequence[Leg]
    home: Array
    motion: str = "free"
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    name: str = "parallel_robot"
    target: Target = field(default=Target(), compare=False)

    def __post_init__(self) -> None:
        where = name_of(self.name, "robot")
        listed = tuple(self.legs) if isinstance(self.legs, Iterable) else ()
        self._set(legs=listed, gravity=frozen_array(self.gravity, (3,), where, "gravity"))
        if not listed or not all(isinstance(leg, Leg) for leg in listed):
            kinds = ", ".join(sorted({type(leg).__name__ for leg in listed})) or "none, or not in a list"
            raise ModelError(f"are {kinds}", argument="legs", where=where, allowed="a list of one or more Leg objects")
        names = [leg.name for leg in self.legs]
        if len(set(names)) < len(names):
            double = next(name for name in names if names.count(name) > 1)
            fix = "give each leg its own name"
            raise ModelError(f"two legs are named {double!r}", value=double, where=where, fix=fix)
        if isinstance(self.platform, Robot):
            self._set(motion="")
        home = self._coordinates(self.home, "home")
        if home.shape != (self.carriage.nq,):
            raise ModelError(f"has shape {home.shape}", argument="home", where=where, allowed="one pose")
        self._check_finite(home, "home")
        home.setflags(write=False)
        self._set(home=home)
        if len(self.driven_names) < self.carriage.nv:
            message = f"there are {len(self.driven_names)} driven coordinates for a platform with {self.carriage.nv}"
            raise ModelError(message, where=where, allowed=f"{self.carriage.nv} or more")
        self._refuse_singular(self.home, self.leg_home, at_home=True)  # also raises an error for legs that do not fit

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {len(self.legs)} legs, {self.carriage.nv} dof>"

    def __str__(self) -> str:
        return self._overview().text()

    def _repr_html_(self) -> str:
        return self._overview().html()

    def _overview(self) -> Summary:
        facts = {"platform": self.platform.name, "motion": self.motion or "of its own robot"}
        facts |= {"home": shortened(self.home), "gravity": f"{shortened(self.gravity)} m/s²"}
        head = ("leg", "joints", "mass (kg)", "driven", "connected by", "tip")
        rows = []
        for leg in self.legs:
            types = " ".join(joint.type for joint in leg.robot.joints)
            rows.append((leg.name, types, f"{leg.robot.mass:.4g}", ", ".join(leg.driven), leg.kind, leg.tip))
        return Summary(repr(self).strip("<>"), facts, head, rows)

    @cached_property
    def carriage(self) -> Robot:
        """The platform alone, on the joints of its motion: a robot whose coordinates are pose and twist."""
        return carriage(self.platform, self.motion, self.gravity)

    @cached_property
    def _parts_and_home(self) -> tuple[Parts, Array]:
        limbs, home, nq, nv = list[Limb](), list[Array](), 0, 0
        whole = [Tree.of(self.carriage)]
        tree = lean(whole[0])
        length = length_of(self.legs, tree, self.home)
        for leg in self.legs:
            limb, q, leg_tree = fit(leg, self.carriage, self.home, (nq, nv), length)
            limbs.append(limb)
            home.append(q)
            whole.append(leg_tree)
            nq, nv = limb.q.stop, limb.v.stop
        struts = tuple(self._strut(tree, limb, q) for limb, q in zip(limbs, home, strict=True))
        return Parts(tree, tuple(limbs), struts, tuple(whole), length), np.concatenate(home)

    @property
    def _parts(self) -> Parts:
        return self._parts_and_home[0]

    @property
    def leg_home(self) -> Array:
        """Positions (nq,) of all legs with the platform at home."""
        return self._parts_and_home[1].copy()

    @cached_property
    def leg_slices(self) -> tuple[slice, ...]:
        """The slice of each leg in the positions of all legs."""
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
        """Return the closed form of a leg, or None if there is none that reproduces the home positions."""
        strut, x = strut_of(limb), ca.SX.sym("x", tree.nq)
        if strut is None:
            return None
        solved = ca.Function("home", [x], [strut.solve(Platform(tree, x), strut.signs(q)).q])
        off = np.asarray(solved(self.home).full()).ravel() - q
        off[:2] = np.sin(off[:2] / 2)  # ignores whole turns
        return strut if np.abs(off).max() < 1e-9 else None

    @property
    def has_closed_form(self) -> bool:
        """Whether all leg positions follow from the pose in closed form, which is true if all legs are UPS legs."""
        return all(strut is not None for strut in self._parts.struts)

    def _sizes(self, key: FunctionKey) -> dict[str, int]:
        limbs = self._parts.limbs
        rows, squares = sum(limb.loop.count for limb in limbs), sum(limb.tree.nv**2 for limb in limbs)
        drives, n, m = len(self._driven), self.carriage.nq, self.dof
        sizes = {"n": m, "N": drives, "q": self.nq, "v": self.nv, "c": rows, "A": squares}
        sizes |= {"pose": n, "u": m, "u_rate": m, "share": drives, "forces": drives, "guess": self.nq, "external": 6}
        sizes |= {"state": n + self.nq + drives, "move": m + self.nv + drives, "sides": len(limbs) + 1}
        sizes["assembly_trial"] = sizes["state"] + sizes["move"] + 2
        if key.leg is not None:
            tree = limbs[key.leg].tree
            sizes |= {"leg_q": tree.nq, "leg_state": n + tree.nq, "leg_move": m + tree.nv}
            sizes["leg_trial"] = sizes["leg_state"] + sizes["leg_move"] + 2
        return sizes

    def _signature(self, key: FunctionKey) -> tuple[list[str], list[tuple[int, ...]]]:
        sizes, rule = self._sizes(key), RULES[key.name]
        inputs = [input_ for input_ in rule.inputs if not (key.fused and input_ == "q")]
        inputs += ["external"] if key.external else []
        outputs = [tuple(sizes[size] for size in shape) for shape in rule.outputs]
        if key.checked:
            outputs.append((len(rule.margins) + (not key.fused),))
        return inputs, outputs

    def _trace(self, key: FunctionKey) -> ca.Function:
        sizes, rule, parts = self._sizes(key), RULES[key.name], self._parts
        names, _ = self._signature(key._replace(fused=False))
        symbols = {item: ca.SX.sym(item, sizes[item]) for item in names}
        result = rule.rule(parts, **symbols, **({} if key.leg is None else {"leg": key.leg}))
        results = list(result) if isinstance(result, tuple) else [result]
        if key.checked:
            results.append(soundness(parts, symbols["pose"], symbols["q"], len(rule.margins) > 1, not key.fused))
        if key.fused:
            q, known = self._closed_positions(symbols["pose"])
            plain = ca.Function(key.name, list(symbols.values()), results)
            inputs = [q if item == "q" else symbols[item] for item in names]
            results = without_trigonometry(plain, inputs, names.index("q"), known)
            del symbols["q"]
        titles = [key.name] if len(results) == 1 else [f"{key.name}_{k}" for k in range(len(results))]
        return ca.Function(key.name, list(symbols.values()), ca.cse(results), list(symbols), titles)

    def _closed_positions(self, pose: ca.SX) -> tuple[ca.SX, list[Known]]:
        """Return all leg positions from the pose, and the sines and cosines that the closed forms provide."""
        platform, parts, known = Platform(self._parts.platform, pose), [], []
        for limb, strut in zip(self._parts.limbs, self._parts.struts, strict=True):
            assert strut is not None
            home = self.leg_home[limb.q]
            angles = strut.solve(platform, strut.signs(home))
            q = angles.q
            if any(passive.q for passive in limb.tree.passives):  # the force of a spring depends on whole turns
                q = closest(q, home)
            parts.append(q)
            for k in range(2):
                ratio, offset = strut.scale[k]
                known.append(Known(limb.q.start + k, ratio, offset, angles.cosines[k], angles.sines[k]))
        return ca.vertcat(*parts), known

    @cached_property
    def kernels(self) -> Kernels:
        """Compiled functions of the robot."""
        return Kernels(self.target, self._identity)

    def _identity(self) -> str:
        """Return a hash of everything that all functions depend on."""
        limbs = []
        for leg, limb in zip(self.legs, self._parts.limbs, strict=True):
            places = leg.base.tobytes(), leg.at.tobytes(), limb.tip.link, limb.tip.pose.tobytes()
            facts = leg.kind, leg.length, limb.rows, limb.idle.tobytes(), limb.driven
            limbs.append(fingerprint(leg.robot, *places, *facts))
        signs = [strut and strut.signs(self.leg_home[strut.limb.q]) for strut in self._parts.struts]
        home = self.leg_home.tobytes(), self._parts.length
        return fingerprint(self.carriage, limbs, signs, *home, source_hash("robot/parallel"))

    def _function(self, key: FunctionKey) -> ca.Function:
        return self.kernels.function(key, lambda: self._trace(key))

    def _kernel(
        self, name: str, fused: bool = False, external: bool = False, checked: bool = False, leg: int | None = None
    ) -> AnyKernel:
        key = FunctionKey(name, fused, external, checked, leg)

        def shapes(_: Signature) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
            names, outputs = self._signature(key)
            sizes = self._sizes(key)
            return [(sizes[item],) for item in names], outputs

        return self.kernels.kernel(key, lambda: self._trace(key), shapes)

    @cached_property
    def _exact(self) -> Self:
        """The robot in double precision, because assembly tolerances are below the precision of float32."""
        return self if self.target.dtype == "float64" else self.to(dtype="float64")

    def function(self, name: str, positions: bool = False, external: bool = False) -> ca.Function:
        """Return the CasADi function of a method, for one state.

        If ``positions`` is True, the leg positions q are an input even if they follow from the pose in closed form. If
        ``external`` is True, the wrench on the platform is an input.

        Example:
            >>> torsor.library.gough_stewart().function("mass_matrix")
            Function(mass_matrix:(pose[7])->(mass_matrix[6x6]) SXFunction)
        """
        known_name(name, self._algorithms, self.name, "algorithm")
        if external and "external" not in signature(RULES[name].rule).parameters:
            raise ModelError(f"{name} takes no external wrench", where=self.name)
        fused = not positions and self.has_closed_form and "q" in RULES[name].inputs
        return self._function(FunctionKey(name, fused, external))

    @property
    def _algorithms(self) -> list[str]:
        """Names that ``function`` accepts."""
        return [item for item, rule in RULES.items() if "pose" in rule.inputs]

    def operation_count(self, name: str, positions: bool = False, external: bool = False) -> OperationCount:
        """Return the number of scalar operations of a method for one state; see ``function`` for the arguments.

        Example:
            >>> robot = torsor.library.gough_stewart()
            >>> robot.operation_count("inverse_dynamics").trigonometric  # directions of the legs need no angles
            0
        """
        return count_operations(self.function(name, positions, external))

    def to(self, dtype: Any = None, device: str | None = None, threads: int | str | None = None) -> Self:
        """Return a copy of the robot that is evaluated on another target; see ``Robot.to``.

        Example:
            >>> robot = torsor.library.gough_stewart().to(dtype="float32")
            >>> robot.mass_matrix(robot.home).dtype
            dtype('float32')
        """
        return replace(self, target=self.carriage.to(dtype, device, threads).target)

    def _coordinates(self, pose: ArrayLike, what: str = "pose") -> Array:
        """Return the platform coordinates (..., nq) of poses, which may also be matrices (..., 4, 4)."""
        values, count = real_array(pose, self.name, what), self.carriage.nq
        if values.ndim >= 2 and values.shape[-2:] == (4, 4) and count != 4:
            return coordinates_of(values, self.carriage, self.motion)
        if values.ndim == 0 or values.shape[-1] != count:
            allowed = f"(..., {count}): {', '.join(self.carriage.position_names)}"
            matrices = " or (..., 4, 4)" if count != 4 else ""
            raise ModelError(f"has shape {values.shape}", argument=what, where=self.name, allowed=allowed + matrices)
        return values

    def _check_finite(self, x: Array, what: str = "pose") -> None:
        """Raise ModelError if poses are not finite or have a zero quaternion."""
        sound = np.isfinite(x).all(axis=-1)
        for at in self.carriage.coordinates:
            if at.q.stop - at.q.start > at.v.stop - at.v.start:  # the last four positions are a quaternion
                sound &= (x[..., at.q.stop - 4 : at.q.stop] ** 2).sum(axis=-1) > 0
        if not sound.all():
            worst = x[~sound][0].tolist()
            allowed = "finite numbers, and a rotation"
            raise ModelError(f"is {worst}", argument=what, value=worst, where=self.name, allowed=allowed)

    def _refuse_singular(self, x: Array, q: Array, at_home: bool = False) -> None:
        """Raise ModelError with the uncontrolled motion if a pose (nq of the platform,) is singular."""
        functions = (self._function(FunctionKey(name)) for name in ("leg_matrices", "inverse_jacobian"))
        values = [np.asarray(function(x, q).full()) for function in functions]
        result, motion = legs(self._parts, values[0].ravel())
        pose, fix = ("home", HOME) if at_home else (f"pose {shortened(x.round(6))}", "avoid that pose")
        if result.any():
            leg, limb = self.legs[int(np.argmax(result))], self._parts.limbs[int(np.argmax(result))]
            text = f"leg {leg.name!r} is singular at {pose}: with the platform fixed, "
            text += moving(leg.robot.coordinate_names, motion[limb.v])
            raise ModelError(text, where=self.name, fix=fix)
        platform = platforms(self._parts, values[1])
        if platform.singular:
            text = f"the drives do not control the platform at {pose}: with locked drives, "
            text += moving(self.carriage.coordinate_names, platform.motion)
            raise ModelError(text, where=self.name, fix=f"{fix}, or drive other coordinates")

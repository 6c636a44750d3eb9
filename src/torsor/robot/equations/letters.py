"""Names of quantities in printed equations: SymPy symbols and their LaTeX."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any

import numpy as np
import sympy as sp

from torsor.base.errors import ModelError
from torsor.mechanism import Mechanism
from torsor.mechanism.free import Free, Number, free_numbers, paths_of
from torsor.robot.equations.rules import RULES, Expression, number

_AXES, _SIX = "xyz", ("xx", "xy", "xz", "yy", "yz", "zz")
_PLAIN = {"mass": "m", "rotor_inertia": "I_m", "coulomb": "f_c", "viscous": "f_v", "stiffness": "k"}
# LaTeX of algorithm inputs; other inputs are written with their names.
_MOTION = {"v": r"\dot{q}", "a": r"\ddot{q}", "j": r"\dddot{q}", "tau": r"\tau", "q_end": r"q'"}
_RESULTS = {
    "inverse_dynamics": r"\tau",
    "forward_dynamics": r"\ddot{q}",
    "mass_matrix": "M",
    "coriolis_matrix": "C",
    "gravity_force": "G",
    "bias_force": "h",
    "friction_force": r"\tau^{f}",
    "spring_force": r"\tau^{s}",
    "jacobian": "J",
    "jacobian_rate": r"\dot{J}",
    "pose": "T",
    "velocity": "V",
    "acceleration": "A",
    "kinetic_energy": "E_{k}",
    "potential_energy": "E_{p}",
    "center_of_mass": "r",
    "momentum": "L",
    "regressor": "Y",
}
# Reserved words of SymPy-compatible Python: functions and operators.
_WORDS = {"Matrix", "Mod", "Piecewise"} | {rule.__name__ for rule in RULES.values()}
_OWN = re.compile(r"[cswfd]_[m\d_]+")  # cosines, sines, subexpressions, functions and denominators
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")


@dataclass
class Letters:
    """The LaTeX form of symbols, where it differs from their names."""

    latex: dict[Any, str] = field(default_factory=dict)

    def symbol(self, name: str, latex: str = "") -> Any:
        """Return a symbol without assumptions, so that it equals a user's ``sympy.Symbol(name)``."""
        symbol = sp.Symbol(name)
        letter, _, below = name.partition("_")
        self.latex[symbol] = latex or _letter(letter) + (f"_{{{below.replace('_', ',')}}}" if below else "")
        return symbol

    def inputs(self, shapes: Mapping[str, tuple[int, ...]], rates: bool) -> dict[str, list[Any]]:
        """Return the symbols of an algorithm's inputs; if ``rates``, v, a, j are written as time derivatives of q."""
        results = {}
        for name, shape in shapes.items():
            letter = (_MOTION.get(name) if rates or name not in "vaj" else None) or _letter(name)
            places = [tuple(item + 1 for item in index) for index in np.ndindex(*shape)]
            indices = [("_".join(map(str, place)), below(place)) for place in places]
            results[name] = [self.symbol(f"{name}_{index}", f"{letter}_{{{low}}}") for index, low in indices]
        return results

    def wave(self, kind: str, harmonic: Sequence[int]) -> Any:
        """Return the symbol of the cosine ("c") or sine ("s") of an angle: c_23 for q_2 + q_3, c_2m3 for q_2 - q_3."""
        parts = [(k, item < 0) for k, item in enumerate(harmonic, start=1) for _ in range(abs(item))]
        comma = any(label > 9 for label, _ in parts)
        text = ("_" if comma else "").join(f"{'m' if minus else ''}{label}" for label, minus in parts)
        latex = ("," if comma else "").join(f"{'-' if minus else ''}{label}" for label, minus in parts)
        return self.symbol(f"{kind}_{text}", f"{kind}_{{{latex}}}")

    def result(self, name: str, shape: tuple[int, ...], place: Sequence[int]) -> str:
        """Return the LaTeX form of a result's entry."""
        letter = _RESULTS.get(name) or _letter(name)
        return f"{letter}_{{{below([index + 1 for index in place])}}}" if shape else letter


def below(place: Sequence[int]) -> str:
    """Return an entry's indices as text: "12", or "1,12" if an index has two digits."""
    return ("," if any(index > 9 for index in place) else "").join(map(str, place))


def _letter(name: str) -> str:
    return name if len(name) == 1 else r"\mathrm{" + name.replace("_", r"\_") + "}"


@dataclass
class Parameters:
    """Robot parameters that are written as symbols: ``free``, and the expression for each."""

    free: tuple[Free, ...] = ()
    expressions: tuple[Expression, ...] = ()
    values: dict[Any, float] = field(default_factory=dict)


def parameters(robot: Mechanism, letters: Letters, symbols: bool | Sequence[str] | Mapping[str, Any]) -> Parameters:
    """Return the parameters that are written as symbols.

    ``symbols`` is False for none, True for all nonzero parameters, or a list of paths or {name: path}.
    """
    if symbols is False or symbols is None:
        return Parameters()
    if symbols is True:
        return _all(robot, letters)
    free = free_numbers(robot, symbols)
    values: dict[Any, float] = {}
    for item in free:
        if isinstance(symbols, Mapping):
            if not _NAME.fullmatch(item.name):
                allowed = "a letter, then letters and digits, parts after _: m_2, l_1, I_2_zz"
                raise ModelError(f"{item.name!r} is not a symbol", value=item.name, where=robot.name, allowed=allowed)
            if _OWN.fullmatch(item.name) or item.name in _WORDS or iskeyword(item.name):
                allowed = "names that the equations do not use: c_2 and s_2 are cosine and sine, d_, f_, w_ "
                allowed += "subexpressions; cos, sqrt, lambda are Python words"
                fields = {"value": item.name, "where": robot.name, "allowed": allowed, "fix": "choose another"}
                raise ModelError(f"the symbol {item.name!r} is reserved", **fields)
            symbol = letters.symbol(item.name)
        else:
            symbol = _named(robot, letters, item)
        values[symbol] = item.value
    if len(values) < len(free):
        fix = "pass names: {'m_2': path, ...}"
        raise ModelError("two parameters would have the same symbol", where=robot.name, fix=fix)
    return Parameters(free, tuple(values), values)


def _named(robot: Mechanism, letters: Letters, free: Free) -> Any:
    """Return the symbol of a parameter without a name."""
    (number, _), *others = free.coefficients
    if others:
        return letters.symbol(re.sub(r"\W+", "_", free.name).strip("_"))
    return letters.symbol(*_letters_of(robot, number))


def _letters_of(robot: Mechanism, at: Number) -> tuple[str, str]:
    """Return the name of a parameter's symbol and its LaTeX."""
    k = str(at.index + 1)
    if at.part == "gravity":
        return f"g_{_AXES[at.component]}", ""
    if at.field in _PLAIN:
        letter, _, mark = _PLAIN[at.field].partition("_")
        component = f"_{at.component + 1}" if at.part == "joints" and robot.joints[at.index].nv > 1 else ""
        latex = f"{letter}_{{{mark}{k}{component.replace('_', ',')}}}"
        return f"{letter}_{mark}{k}{component}", latex
    if at.field == "inertia":
        return f"I_{k}{_SIX[at.component]}", ""
    letter = {"com": "r", "origin": "l", "point": "d", "turn": "b"}[at.field]
    if at.field == "origin" and not np.any(robot.joints[at.index].point):
        parent = robot.parents[at.index]
        k = str(parent + 1) if list(robot.parents).count(parent) == 1 else f"{parent + 1}_{k}"
    return f"{letter}_{k}{_AXES[at.component]}", ""


def _all(robot: Mechanism, letters: Letters) -> Parameters:
    """Return all nonzero parameters of a robot; axis points are expressed in link lengths."""
    everything = [f"links.{k}.{name}" for k in range(len(robot.links)) for name in ("mass", "com", "inertia")]
    fields = ("origin", "point", "rotor_inertia", "coulomb", "viscous", "stiffness")
    paths = [f"joints.{k}.{name}" for k in range(len(robot.joints)) for name in fields]
    numbers: list[Free] = []
    for path in [*everything, *paths, "gravity"]:
        try:
            numbers += [free_number for free_number in free_numbers(robot, [path]) if free_number.value]
        except ModelError:  # a joint without that field
            continue
    if not numbers:
        return Parameters()
    chosen = free_numbers(robot, [str(path) for path in paths_of(robot, numbers).values()])
    made, values = list[Expression](), dict[Any, float]()
    lengths: dict[tuple[int, int], Any] = {}
    for free in chosen:
        at = free.coefficients[0][0]
        joint = robot.joints[at.index] if at.field == "point" else None
        if at.part == "gravity" and np.count_nonzero(robot.gravity) == 1:
            symbol, sign = letters.symbol("g"), int(np.sign(free.value))
        elif joint and np.abs(joint.placement[:3, :3] @ joint.point + joint.placement[:3, 3]).max() < 1e-12:
            # The axis passes through the parent's origin, because the link frame is at the far end of the link.
            made.append(_axis(robot, at, lengths))
            continue
        else:
            symbol, sign = letters.symbol(*_shorter(robot, at)), 1
        if at.field == "origin":
            lengths[at.index, at.component] = symbol
        values[symbol] = sign * free.value
        made.append(sign * symbol)
    return Parameters(chosen, tuple(made), values)


def _shorter(robot: Mechanism, at: Number) -> tuple[str, str]:
    """Return the name and LaTeX of a parameter, without the axis if only one component is nonzero."""
    name, latex = _letters_of(robot, at)
    if at.field in ("com", "origin"):
        owner = robot.links[at.index].com if at.field == "com" else robot.joints[at.index].placement[:3, 3]
        siblings = list(robot.parents).count(robot.parents[at.index])
        if np.count_nonzero(owner) == 1 and (at.field == "com" or siblings == 1):
            return name[:-1], latex
    return name, latex


def _axis(robot: Mechanism, at: Number, lengths: Mapping[tuple[int, int], Any]) -> Expression:
    """Return a component of the point -R^T l on an axis through the parent's origin."""
    R = robot.joints[at.index].placement[:3, :3]
    rows = [k for k in range(3) if (at.index, k) in lengths and abs(R[k, at.component]) > 1e-14]
    return sp.Add(*(-number(float(R[k, at.component])) * lengths[at.index, k] for k in rows))

"""Barman 2020: the cost of the recursive Newton-Euler formulation, compared with the recursive Lagrangian one."""

import timeit
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.compiler.compiled import compile
from torsor.compiler.program import OperationCount, count_operations
from torsor.dynamics.requests import MAX_SHARED_OPERATIONS
from torsor.formats import DHLink
from torsor.reproduce.documents.drawing import tidy
from torsor.reproduce.equations import barman, lagrange
from torsor.reproduce.equations.counted import count_as_written
from torsor.reproduce.item import Compute, Outcome, Row, claim, only, same
from torsor.reproduce.samples import standard, standard_chain
from torsor.robot.load import from_dh
from torsor.robot.robot import Robot
from torsor.spatial import make_pose

FORCES, SENSITIVITIES = "inverse_dynamics", "inverse_dynamics_derivatives"
NAMES = {FORCES: "forces", SENSITIVITIES: "sensitivities"}
ROBOTS: dict[str, Callable[[], Robot]] = {
    "two-link arm": library.two_link,
    "six-axis arm (UR5)": library.ur5,
    "human with 55 joints": library.human,
}
WRITTEN = {FORCES: (2, 3, 4, 6, 10, 20, 30), SENSITIVITIES: (2, 3, 4, 5, 6, 8)}  # joints of the counted chains
CUSTOMISED = {FORCES: (2, 3, 4, 6, 10, 20, 30), SENSITIVITIES: (2, 3, 4, 6)}
MAX_COMPILED = 20_000  # operations; compiling more takes too long here
TURN = np.zeros((4, 4))
TURN[0, 1], TURN[1, 0] = -1.0, 1.0  # the derivative of a rotation about z


class Work(NamedTuple):
    """The operation counts of both formulations."""

    newton: OperationCount
    lagrangian: OperationCount

    @property
    def ratio(self) -> float:
        """The multiplications and additions of the Lagrangian formulation, relative to Newton-Euler."""
        return self.lagrangian.arithmetic / self.newton.arithmetic


@cache
def as_written(name: str, n: int) -> Work:
    """Return the operations of chapter III and of the Lagrangian equations for a general chain of n revolute joints.

    The Denavit-Hartenberg matrices and their derivatives are given.
    """
    data, (q, v, a) = standard_chain(n), np.random.default_rng(n).normal(size=(3, n))
    columns = 0 if name == FORCES else n
    newton = count_as_written(lambda q, v, a: barman.sensitivities(data, q, v, a, columns=columns), q, v, a)
    rule = lagrange.inverse_dynamics if name == FORCES else lagrange.sensitivities
    robot, chain = _lagrangian_chain(data, q)

    def equations(chain: Array, v: Array, a: Array) -> Any:
        return rule(robot, [lagrange.Step(*each) for each in chain], v, a)

    return Work(newton, count_as_written(equations, chain, v, a))


def _lagrangian_chain(data: barman.Robot, q: Array) -> tuple[lagrange.Robot, list[list[Array]]]:
    """Return a chain for the Lagrangian equations, with masses that are not 0 or 1, and its transforms."""
    n = len(q)
    J, g = list(1.5 + np.arange(16 * n).reshape(n, 4, 4)), np.array([*data.g, 0.0])
    robot = lagrange.Robot(range(-1, n - 1), n * [True], [], [], J, g, np.eye(4))
    return robot, [_steps(*row) for row in zip(data.theta + q, data.d, data.a, data.alpha, strict=True)]


def transform(theta: float, d: float, a: float, alpha: float) -> Array:
    """Return the pose of frame j in frame j-1 (eqs. 2.10 and 2.11)."""
    return make_pose(barman.rotation(theta, alpha), np.array([a * np.cos(theta), a * np.sin(theta), d]))


def _steps(theta: float, d: float, a: float, alpha: float) -> list[Array]:
    """Return a Denavit-Hartenberg matrix and its first three derivatives with respect to theta."""
    T = transform(theta, d, a, alpha)
    return [T, TURN @ T, TURN @ TURN @ T, TURN @ TURN @ TURN @ T]


def lagrangian(robot: Robot, name: str) -> ca.Function:
    """Return the Lagrangian formulation for one robot, with the simplifications of the library."""
    data = lagrange.symbolic(lagrange.from_library(robot))
    state = q, v, a = [ca.SX.sym(x, robot.nv) for x in "qva"]
    chain = lagrange.steps(data, q)
    found = [lagrange.inverse_dynamics(data, chain, v, a)[:, None]]
    if name == SENSITIVITIES:
        found = list(lagrange.sensitivities(data, chain, v, a)[1:])
    outputs = [ca.vertcat(*(ca.horzcat(*row) for row in matrix)) for matrix in found]
    function = ca.Function(name, state, outputs)
    is_large = function.n_instructions() > MAX_SHARED_OPERATIONS
    return function if is_large else ca.Function(name, state, ca.cse(outputs))


class Customised(NamedTuple):
    """The functions of both formulations for one robot."""

    newton: ca.Function
    lagrangian: ca.Function

    @property
    def work(self) -> Work:
        """The operation counts of both functions."""
        return Work(*map(count_operations, self))

    def times(self) -> Array:
        """Return the times (s) per state of a batch: as machine code, or in CasADi's virtual machine if it is large."""
        size = max(function.n_instructions() for function in self)
        device, batch = ("cpu", 1000) if size < MAX_COMPILED else ("casadi", 3)
        state = np.random.default_rng(1).normal(size=(3, batch, self.newton.size1_in(0)))
        kernels = [compile(function, device=device) for function in self]
        calls = [partial(kernel, *state) for kernel in kernels]
        rounds = [[timeit.timeit(call, number=1) for call in calls] for _ in range(20)]  # other work slows both
        return np.array([min(each) for each in zip(*rounds, strict=True)]) / batch


@cache
def customised(robot: str, name: str) -> Customised:
    """Return the functions of both formulations for a robot."""
    model = ROBOTS[robot]()
    return Customised(model.function(name), lagrangian(model, name))


@cache
def customised_chain(name: str, n: int) -> Work:
    """Return the operations of both formulations, customised for a general chain."""
    data = standard_chain(n)
    rows = zip(data.theta, data.d, data.a, data.alpha, data.m, data.r, data.I, strict=True)
    model = from_dh([DHLink(t, d, a, al, mass=m, com=r, inertia=J) for t, d, a, al, m, r, J in rows], gravity=data.g)
    return Customised(model.function(name), lagrangian(model, name)).work


def _agreement() -> list[Row]:
    """Compare the Lagrangian forces and sensitivities with those of the library."""
    rows = list[Row]()
    samples = {"the random chain of chapter III": standard().robot, **{name: make() for name, make in ROBOTS.items()}}
    for name, robot in samples.items():
        model = robot.to(device="casadi")
        data, (q, v, a) = lagrange.from_library(model), np.random.default_rng(2).normal(size=(3, model.nv))
        found = lagrange.sensitivities(data, lagrange.steps(data, q), v, a)
        ours = model.inverse_dynamics(q, v, a), *model.derivatives.inverse_dynamics(q, v, a)
        scaled = [np.ravel(x.astype(float)) / np.abs(y).max() for x, y in zip(found, ours, strict=True)]
        library_values = [np.ravel(y) / np.abs(y).max() for y in ours]
        rows.append(same(f"forces and sensitivities, {name}", np.hstack(scaled), np.hstack(library_values), 1e-10))
    return rows


def _less(what: str, work: Work) -> Row:
    (a, b, *_), (c, d, *_) = work
    words = f"{a} and {b}, Lagrangian {c} and {d} ({work.ratio:.1f} times)"
    return claim(what, "less than the Lagrangian", words, a < c and b < d)


def _growth(name: str, of: Callable[[str, int], Work], lengths: tuple[int, ...]) -> tuple[str, float]:
    """Return polynomials in n for the multiplications and additions of both formulations, and the largest misfit."""
    degree, words, misfit = 1 if name == FORCES else 2, list[str](), 0.0
    powers = ("n²", "n", "")[2 - degree :]
    for k, title in enumerate(("Newton-Euler", "Lagrangian")):
        texts = []
        for part in range(2):
            values = [of(name, n)[k][part] for n in lengths]
            factors = np.polyfit(lengths, values, degree)
            misfit = max(misfit, float(np.abs(np.polyval(factors, lengths) - values).max()))
            texts.append("".join(f"{x:+.0f}{power}" for x, power in zip(factors, powers, strict=True)))
        words.append(f"{title} {' and '.join(text.lstrip('+') for text in texts)}")
    return "; ".join(words), misfit


def _comparison() -> Outcome:
    rows = list[Row]()
    for name, title in NAMES.items():
        for n in (2, 6, WRITTEN[name][-1]):
            rows.append(_less(f"{title} as written, {n} joints", as_written(name, n)))
    words, misfit = _growth(FORCES, as_written, WRITTEN[FORCES])
    rows.append(claim("forces as written for n joints", "linear order O(n), both", words, misfit < 0.5))
    rows.append(only("sensitivities as written", _growth(SENSITIVITIES, as_written, WRITTEN[SENSITIVITIES])[0]))
    for name, title in NAMES.items():
        rows += [_less(f"customised {title}, {robot}", customised(robot, name).work) for robot in ROBOTS]
        words, _ = _growth(name, customised_chain, CUSTOMISED[name])
        rows.append(only(f"customised {title}, a general chain", f"about {words}"))
    times = {(robot, name): customised(robot, name).times() for name in NAMES for robot in ROBOTS}
    for (robot, name), (ours, other) in times.items():
        words = f"{'less' if ours < other else 'more'} than the Lagrangian"
        rows.append(claim(f"time of customised {NAMES[name]}, {robot}", "less", words, ours < other))

    ours, other = _times_in_numpy()
    words = f"Newton-Euler takes {'more' if ours > other else 'less'}: there, calls cost more than operations"
    rows.append(only("time of forces as written, in NumPy, 6 joints", words))

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 3)
        for axes, (name, title) in zip(panels, NAMES.items(), strict=False):
            _draw_growth(axes, name)
            axes.set_xticks(WRITTEN[name], [str(n) for n in WRITTEN[name]], minor=False)
            axes.set_xticks([], minor=True)
            tidy(axes, title, "number of joints n", "multiplications and additions")
        shown = [(robot.partition(" (")[0].partition(" with")[0], name) for robot, name in times]
        ratios = np.array([other / ours for ours, other in times.values()])
        colours = ["C0" if name == FORCES else "C1" for _, name in shown]
        panels[2].barh(range(len(shown)), ratios, color=colours)
        panels[2].set_yticks(range(len(shown)), [f"{robot}\n{NAMES[name]}" for robot, name in shown], fontsize=8)
        panels[2].axvline(1.0, color="k", linewidth=1)
        panels[2].invert_yaxis()
        tidy(panels[2], "time: Lagrangian / Newton-Euler, customised")

    return Outcome(rows, draw, (13.0, 4.2))


def _times_in_numpy(n: int = 6) -> list[float]:
    """Return the times (s) of the equations as written, evaluated in NumPy one small array at a time."""
    data, (q, v, a) = standard_chain(n), np.random.default_rng(n).normal(size=(3, n))
    robot, chain = _lagrangian_chain(data, q)
    calls = (
        lambda: barman.inverse_dynamics(data, q, v, a),
        lambda: lagrange.inverse_dynamics(robot, [lagrange.Step(*each) for each in chain], v, a),
    )
    return [min(timeit.repeat(call, repeat=5, number=1)) for call in calls]


def _draw_growth(axes: Any, name: str) -> None:
    for of, lengths, style, words in (
        (as_written, WRITTEN[name], "o-", "as written"),
        (customised_chain, CUSTOMISED[name], "s--", "customised"),
    ):
        for k, (title, colour) in enumerate((("Newton-Euler", "C0"), ("Lagrangian", "C3"))):
            values = [of(name, n)[k].arithmetic for n in lengths]
            axes.loglog(lengths, values, style, color=colour, markersize=4, label=f"{title}, {words}")


ITEMS: dict[str, Compute] = {
    "barman/lagrangian": _agreement,
    "barman/work": _comparison,
}

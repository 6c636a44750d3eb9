"""What a search gives: the motion with its forces, and what is to be known of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.motion.results.constraints import Active, Group, active_rows, groups
from torsor.motion.results.samples import Moments, Profiled
from torsor.motion.results.violations import finer, violations
from torsor.motion.terms.term import Cost
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.groups import moments_of
from torsor.motion.transcription.program import Program
from torsor.optimisation.outcome import Iteration, Outcome
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

if TYPE_CHECKING:
    from torsor.motion.problem import MotionProblem
    from torsor.motion.results.replay import Replay

__all__ = ["MotionResult", "Part", "Pass"]

Array = NDArray[np.float64]

GRID = 200  # steps of the profiles in each phase
CLOSER = 10  # times as many nodes, on which violations are proven
HELD = 1e-8  # of a row's scale: what is less outside its bound is not, whatever the tolerance


class Part(NamedTuple):
    """A part of the objective: its name, its weight, and its value without it.

    Example:
        >>> Part("Time", 0.5, 0.4).weighted
        0.2
    """

    title: str
    weight: float
    value: float

    @property
    def weighted(self) -> float:
        """What it adds to the objective."""
        return self.weight * self.value


class Pass(NamedTuple):
    """A round of refinement: nodes of all phases, the largest scaled violation between them, objective, iterations."""

    nodes: int
    violation: float
    objective: float
    iterations: int


@dataclass(frozen=True, eq=False)
class MotionResult(Profiled):
    """A motion that was found for a problem.

    ``problem`` is the one that was solved (with the nodes that refinement added), ``outcome`` what the solver gave.
    Profiles ``q``, ``v``, ``a``, ``j``, ``tau``, ``tau_rate`` and ``reactions`` are at ``times`` (200 steps a phase;
    where phases meet, at the end of the earlier one); ``at(t)`` has them at any time. Shapes are those of ``Moments``.

    Example:
        >>> import torsor
        >>> from torsor import motion
        >>> ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
        >>> problem = motion.MotionProblem(
        ...     torsor.library.two_link(), motion.Phase((0.1, 2.0)), motion.Time(), [*ends, motion.Torques(upper=10.0)]
        ... )
        >>> result = problem.solve()
        >>> result.status, round(result.T, 4), round(result.objective, 4)
        ('optimal', 0.3956, 0.3956)
        >>> result.durations.size, result.q.shape, result.reactions.shape, result.trajectory().times.shape
        (1, (201, 2), (201, 2, 6), (201,))
        >>> result.parts[0].title, result.is_feasible, result.simulate().q_error < 1e-4
        ('Time', True, True)
        >>> result.at([0.0, result.T]).q.round(9).tolist()
        [[0.0, -2.0], [1.0, -1.0]]
    """

    problem: "MotionProblem"
    outcome: Outcome
    solver: str
    tolerance: float = 1e-6
    setup_seconds: float = 0.0
    solve_seconds: float = 0.0
    passes: tuple[Pass, ...] = ()

    def __repr__(self) -> str:
        found = f"T = {self.T:.6g} s, objective {self.objective:.6g}, {self.iterations} iterations"
        return f"<MotionResult of {self.problem.name!r}: {self.status}, {found}>"

    @property
    def x(self) -> Array:
        """The variables (x,)."""
        return self.outcome.x

    @property
    def program(self) -> Program:
        """The nonlinear program that was solved."""
        return self.problem.program

    @property
    def status(self) -> str:
        """How the search ended, in words."""
        return self.outcome.status

    @property
    def is_solved(self) -> bool:
        """Whether the solver proved an optimum to its tolerance."""
        return self.outcome.is_solved

    @property
    def is_stopped(self) -> bool:
        """Whether Ctrl-C or the most seconds ended the search."""
        return self.status.startswith("stopped by") or "seconds" in self.status

    @property
    def iterations(self) -> int:
        """Iterations of the solver, of all rounds of refinement together."""
        return sum(each.iterations for each in self.passes) if self.passes else self.outcome.iterations

    @property
    def log(self) -> list[Iteration]:
        """The iterations: number, objective, violation, step."""
        return self.outcome.log

    @cached_property
    def robot(self) -> Robot:
        """The robot; with free parameters, the one that has those that were found."""
        model = self.problem.robot
        return model if isinstance(model, Robot) else model.at([self.numbers[name] for name in model.names])

    # Time and objective

    @cached_property
    def durations(self) -> Array:
        """Duration of each phase (s)."""
        return np.array([stretch.seconds(self.x) for stretch in self.program.layout.stretches])

    @property
    def T(self) -> float:
        """Duration of the whole motion (s)."""
        return float(self.durations.sum())

    @property
    def numbers(self) -> dict[str, float]:
        """The shared numbers: free parameters of the robot, and those of terms."""
        found = {name: float(self.x[column]) for name, column in self.program.layout.numbers.items()}
        return self.problem.held | found

    @cached_property
    def objective(self) -> float:
        """What was to be least."""
        return float(self.program.value(self.x)[0])

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the objective, by term."""
        return tuple(self._part(term) for term in self.problem.terms if isinstance(term, Cost))

    def _part(self, term: Cost) -> Part:
        problem, total = self.problem, 0.0
        traced = problem._trace([term if term.weight == 1.0 else replace(term, weight=1.0)])
        for index, phase in enumerate(problem.stages):
            if term.holds_in(index, phase):
                batch = Batch(traced, self.program.layout, index, *moments_of(term, phase, self.problem.subject))
                total += batch.value(self.x)[1]
        return Part(term.title, float(term.weight), total)

    # Profiles

    def at(self, t: ArrayLike) -> Moments:
        """Return the motion at times t (K,) in s, or at one."""
        return Moments(self.problem, self.x, t)

    @cached_property
    def moments(self) -> Moments:
        """The motion on the grid of ``times``."""
        grid = np.linspace(0.0, 1.0, GRID + 1)
        return Moments.of_shares(self.problem, self.x, [grid] * len(self.durations))

    @property
    def force_names(self) -> tuple[str, ...]:
        """Names of the columns of ``tau``."""
        robot = self.problem.subject.robot
        return tuple(robot.active if robot.loops else robot.coordinate_names)

    # Constraints

    @cached_property
    def max_violation(self) -> float:
        """By how much the worst row, or variable, is outside its bounds at the nodes, in parts of its scale."""
        program, x = self.program, self.x
        outside = np.maximum(program.lower - x, x - program.upper).max(initial=0.0)
        return float(max(outside, violations(program, x).max(initial=0.0)))

    @cached_property
    def _fine(self) -> tuple[Program, NDArray[np.bool_]]:
        return finer(self.program, CLOSER)

    @cached_property
    def max_violation_fine(self) -> float:
        """The same on a grid ten times finer: what holds there holds between the nodes."""
        program, asked = self._fine
        return max(self.max_violation, float((violations(program, self.x) * asked).max(initial=0.0)))

    @property
    def is_feasible(self) -> bool:
        """Whether all rows hold at the nodes, to ten times the tolerance, or to 1e-8 if that is more."""
        return self.max_violation <= max(10 * self.tolerance, HELD)

    @cached_property
    def active(self) -> list[Active]:
        """The rows and variables at their bounds, with dJ/d(bound) in the user's units."""
        return active_rows(self.program, self.x, self.outcome.multipliers, self.outcome.bound_multipliers)

    @cached_property
    def constraints(self) -> dict[str, Group]:
        """The rows by the names of their terms: violations, active ones, sensitivities."""
        return groups(self.program, self.x, self.outcome.multipliers, self.active, self._fine)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of variables and constraints of the program, and of what is known beforehand."""
        program, layout = self.program, self.program.layout
        points = sum(spline.count for stretch in layout.stretches for spline in stretch.splines)
        free = sum(int((stretch.columns >= 0).sum()) for stretch in layout.stretches)
        equal = int((program.row_lower == program.row_upper).sum())
        found = {"variables": program.n, "constraints": program.m, "equalities": equal, "known": points - free}
        return found | {"frozen": len(self.problem.frozen)}

    # What to do with it

    def report(self, width: int = 110) -> str:
        """Return tables of the motion as text: figures, parts of the objective, constraints."""
        from torsor.motion.results.report import text

        return text(self, width)

    def __rich__(self) -> Any:
        from torsor.motion.results.report import tables

        return tables(self)

    def to_dict(self) -> dict[str, Any]:
        """Return figures and trajectory as plain numbers, lists and strings, as for JSON."""
        from torsor.motion.results.report import plain

        return plain(self)

    def plot(self, path: str | Path | None = None, what: Sequence[str] = ("q", "v", "tau", "reactions")) -> Any:
        """Draw quantities over time, one panel each, limits shaded, and return the figure; ``path`` saves it too.

        ``what`` names them: q, v, a, j, tau, tau_rate, reactions (sizes of the forces). Needs matplotlib.
        """
        from torsor.motion.results.plot import plot

        return plot(self, path, what)

    def save(self, path: str | Path) -> None:
        """Write the result to a .npz file, with the problem in it where that can be written as TOML."""
        from torsor.motion.results.files import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, problem: "MotionProblem | None" = None) -> "MotionResult":
        """Return the result in a .npz file; ``problem`` is needed where the file does not have it."""
        from torsor.motion.results.files import load

        return load(Path(path), problem)

    def to_csv(self, path: str | Path) -> None:
        """Write times, positions, velocities, accelerations and forces as a .csv file, as ``Trajectory.save`` does."""
        from torsor.motion.results.files import to_csv

        to_csv(self, Path(path))

    def trajectory(self) -> Trajectory:
        """Return the motion as a trajectory of the robot."""
        from torsor.motion.results.replay import trajectory

        return trajectory(self)

    def simulate(self, steps: int = 2000) -> "Replay":
        """Return what the robot does under these forces, in that many steps a phase, and how far it gets off."""
        from torsor.motion.results.replay import replay

        return replay(self, steps)

"""The walking constraints as printed in Barman 2020 (eqs. 5.2 to 5.10), each named after its equation.

The tolerances of ``Version`` relax only eq. 5.4: ``slack`` (m) for heights and ``slip`` (m/s) for velocities of the
points in contact. With both 0 these are the printed equations, for which no motion is known
(``torsor.human.printed_gait``).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple, Self, TypeGuard

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.contact.contact_forces import contact_forces
from torsor.human.contact.support import MAX_SIDES, support_sides
from torsor.human.gait.settings import WalkSettings
from torsor.human.terms.forces import MOMENT_ARM, Grounded, Torques
from torsor.human.terms.habits import hand_clearance
from torsor.human.terms.places import Stands, contacts
from torsor.human.terms.problem import HumanProblem
from torsor.human.vector_layout import VectorLayout
from torsor.motion import ExpressionConstraint, MotionError, MotionResult, Node, Positions
from torsor.motion.solve import SolveSettings
from torsor.motion.terms.ends import Ends
from torsor.motion.terms.term import Constraint, Rows
from torsor.optimisation import Outcome, Settings, Watch, row_violations, solve_condensed

# Walking constraints as Barman 2020 prints them: the zero-moment point (5.5) and the arm-leg coupling (5.6).

POLYGON = VectorLayout({f"side {k + 1}": 3 for k in range(MAX_SIDES)})


@dataclass(frozen=True, eq=False, kw_only=True)
class InSupport(Grounded, Constraint):
    """A constraint that keeps the zero-moment point within the support polygon (Barman 2020, eq. 5.5).

    With the zero-moment point x = n_z / f_y, z = -n_x / f_y, the distance from an edge times the vertical force is a
    n_z - b n_x + c f_y, without division. Rows are divided by body weight, in dm. Together they imply f_y >= 0.
    """

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and the edges of the polygon (K, 18)."""
        sides = support_sides(self.body, self.support, s).reshape(len(s), -1)
        return {**super().data(s), "polygon": sides}

    def rows(self, node: Node) -> Rows:
        """Return the distances from the edges, times the vertical force."""
        contact, sides = contact_forces(node), POLYGON.unpack(node.data("polygon", POLYGON.size))
        f, n = contact.level
        moments = ca.vertcat(n[2], -n[0], f[1]) / (MOMENT_ARM * contact.weight)
        rows = ca.vertcat(*(ca.dot(side, moments) for side in sides.values()))
        return Rows(rows, np.zeros(MAX_SIDES), np.full(MAX_SIDES, np.inf), tuple(sides))


def pendulums(node: Node) -> ca.SX:
    """Return the product of the forward components of the left arm and the right leg, in dm^2 (Barman 2020, eq. 5.6).

    The arm is the vector from the shoulder to the wrist, the leg the vector from the hip to the ankle.
    """
    arm = node.position("left_hand") - node.position("left_upper_arm")
    leg = node.position("right_foot") - node.position("right_thigh")
    return 100 * arm[2] * leg[2]


KNEE_FLEXION, KNEE_TOLERANCE = 60.0, 5.0  # degrees: knee flexion at mid-swing, and its tolerance
TOLERANCE = 1e-3  # feasibility tolerance in Barman 2020, relative to the size of the solution
MAX_HEIGHT_BAND = 0.003  # m: the widest band of heights
# Bands of velocities (m/s) in the continuation from wide bands to equations.
SLIPS = (0.25, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.003, 0.002, 0.0016, 0.0014, 0.0012, 0.0011, 0.001, 0.0009, 0.0008)
# Tolerance and maximum iterations of each search in the continuation.
SEARCH_TOLERANCE, MAX_SEARCH_ITERATIONS = 1e-4, 400


class Stage(NamedTuple):
    """A search in the continuation to narrow bounds: its bounds on eq. 5.4 (m, m/s), and its outcome."""

    slack: float
    slip: float
    outcome: Outcome

    @property
    def is_feasible(self) -> bool:
        """Whether the motion satisfies the constraints with these bounds."""
        return self.outcome.violation <= 10 * SEARCH_TOLERANCE

    @property
    def is_accepted(self) -> bool:
        """Whether SNOPT as used in Barman 2020, with a tolerance relative to |x|, accepts the bounds as equations."""
        return max(self.slack, self.slip) <= TOLERANCE * float(np.linalg.norm(self.outcome.x))


@dataclass(frozen=True, eq=False, repr=False)
class PrintedWalk(HumanProblem):
    """The printed walking problem, with bounds on eq. 5.4.

    With a given start, ``solve`` works as for any motion problem. Without one, it narrows wide bounds in steps; each
    search starts from the previous motion.
    """

    @property
    def bands(self) -> tuple[float, float]:
        """The bounds on eq. 5.4: heights (m) and velocities (m/s) of points in contact."""
        first = next(filter(_is_contact, self.conditions))
        assert first.slip is not None
        return first.slack, first.slip

    def with_bands(self, slack: float, slip: float) -> Self:
        """Return the problem with different bounds on eq. 5.4."""
        bands: dict[str, Any] = {"slack": slack, "slip": slip}
        changed = [replace(term, **bands) if _is_contact(term) else term for term in self.conditions]
        return replace(self, constraints=changed)

    def approach(self, seconds: float = math.inf, progress: bool | None = None) -> Iterator[Stage]:
        """Yield the searches with velocity bounds wider than the bounds of the problem, from wide to narrow.

        Each search starts from the previous motion, the first one from the initial guess. The series ends with the
        first search that finds no feasible motion. Ctrl-C raises KeyboardInterrupt; ``seconds`` limits the total time.
        """
        (slack, slip), x, end = self.bands, self.guess(), perf_counter() + seconds
        for wide in (width for width in SLIPS if width > slip):
            high = max(slack, min(MAX_HEIGHT_BAND, wide))
            program = self.with_bands(high, wide).program
            with Watch(progress, f"{self.name}: {1e3 * wide:g} mm/s in contact") as watch:
                left = max(end - perf_counter(), 1e-3)
                outcome = solve_condensed(program, x, Settings(SEARCH_TOLERANCE, MAX_SEARCH_ITERATIONS, left, watch))
            if watch.interrupted:
                raise KeyboardInterrupt
            x = outcome.x
            stage = Stage(high, wide, replace(outcome, violation=float(row_violations(program, x).max())))
            yield stage
            if not stage.is_feasible or perf_counter() > end:
                return

    def solve(self, solver: str | None = None, *, start: Any = None, **settings: Any) -> MotionResult:
        """Return the optimal motion, as ``MotionProblem.solve`` does.

        No motion is known that satisfies the printed equations themselves. The ``MotionError`` contains the motion of
        the continuation that violates them least; with ``check=False`` this motion is returned.
        """
        if start is not None:
            return super().solve(solver, start=start, **settings)
        begun, chosen = (
            perf_counter(),
            self._settings({key: value for key, value in settings.items() if value is not None}),
        )
        stages = [stage for stage in self.approach(chosen.seconds, chosen.progress) if stage.is_feasible]
        left = chosen.seconds - (perf_counter() - begun)
        if stages and not any(self.bands) and left > 0:
            return self._refuse(stages[-1], chosen)
        if np.isfinite(left):
            settings["seconds"] = max(left, 1e-3)
        return super().solve(solver, start=stages[-1].outcome.x if stages else None, **settings)

    def _refuse(self, nearest: Stage, settings: SolveSettings) -> MotionResult:
        """Raise MotionError for equations without a solution; with ``check=False`` return the nearest motion."""
        titles = tuple(term.title for term in self.conditions if _is_contact(term))
        what = (
            "no motion was found that satisfies eq. 5.4 (points in contact have zero height and velocity) together "
            f"with eqs. 5.8 and 5.10; the smallest violation is {nearest.slip:g} m, m/s"
        )
        fix = "use `version='nearest'`, or non-zero bands `slack=`, `slip=`"
        outcome = replace(
            nearest.outcome,
            status="infeasible: 5.4 with 5.8 and 5.10 conflict",
            is_solved=False,
            violation=nearest.slip,
            multipliers=np.zeros(self.program.m),
            bound_multipliers=np.zeros(self.program.n),
        )
        result = MotionResult(self, outcome, "condensed", settings.tolerance)
        if not settings.check:
            return result
        error = MotionError(what, where=self.name, fix=fix)
        error.result, error.conflict, error.violation = result, titles, nearest.slip
        raise error


def _is_contact(term: Constraint | Ends) -> TypeGuard[Stands]:
    """Return whether a term is eq. 5.4 for points in contact; the same class at one instant is eq. 5.10."""
    return isinstance(term, Stands) and term.at is None


def printed_constraints(settings: WalkSettings) -> list[Constraint]:
    """Return the constraints of eqs. 5.2 to 5.7, 5.9 and 5.10; the symmetry (5.8) is a condition at the ends.

    Redundant rows are omitted: the velocity of a foot that stands on three points has six rows, and the foot positions
    at the end of the step follow from its start by symmetry.
    """
    version, walk, body = settings.version, settings.walk, settings.loaded
    step, knee = walk.step, f"{SIDES[1]}_knee_flexion"
    bends, middle = knee in settings.moving, (step.toe_off + 1.0) / 2
    low, high = math.radians(KNEE_FLEXION - KNEE_TOLERANCE), math.radians(KNEE_FLEXION + KNEE_TOLERANCE)
    lower, upper = settings.bounds()
    feet = contacts(body, walk, version.slack, version.slip, placed="y", below=0.0, prefix="5.4 ")
    first = [stance for stance in walk.stances if stance.first == 0.0]
    return [
        Positions(lower=lower, upper=upper, name="5.2 joint angles"),
        Torques(moving=settings.moving, **settings.ground, name="5.3 torques"),
        *feet,
        InSupport(**settings.ground, name="5.5 zero-moment point"),
        ExpressionConstraint(function=pendulums, lower=0.0, labels=("left arm",), name="5.6 arm-leg coupling"),
        ExpressionConstraint(function=hand_clearance, lower=1.0, labels=SIDES, name="5.7 self-avoidance"),
        *([Positions(only=[knee], lower=low, upper=high, at=middle, name="5.9 knee at mid-swing")] if bends else []),
        *(
            Stands(body=body, stance=stance, slack=0.0, axes="xz", at=0.0, name=f"5.10 place of the {stance.side} foot")
            for stance in first
        ),
    ]

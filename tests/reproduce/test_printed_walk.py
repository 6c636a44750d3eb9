"""The printed walk: its objective and rows are the formulas of Barman 2020, chapter V, on any motion."""

from functools import cache

import numpy as np
import pytest

import torsor
from torsor.human import Walk, ground_reaction
from torsor.human.contact.support import convex_hull, support_points, support_sides
from torsor.motion import MotionResult
from torsor.optimisation import Outcome
from torsor.reproduce.documents.printed_walk import BAND, STEP, printed_problem

from ..human.ground import equilibrium

BODY = torsor.library.human()
SAME = BODY.to(device="casadi")  # nothing is compiled
STIFF = ("spine", "shoulder", "elbow", "pronation", "rotation", "inversion")
HELD = {name: 0.0 for name in BODY.coordinate_names if any(part in name for part in STIFF)}
NODES = 11
WALK = Walk(STEP)


@cache
def moved() -> MotionResult:
    """Return a random motion of a body with stiff trunk and arms, of which only values are compiled."""
    problem = printed_problem(0.0, frozen=HELD, nodes=NODES)
    program, rng = problem.program, np.random.default_rng(4)
    x = problem.guess() + 0.2 * rng.normal(size=program.n)
    none = np.zeros(program.m), np.zeros(program.n)
    result = MotionResult(problem, Outcome(x, *none, 0.0, 0, "moved", False), "condensed")
    result.__dict__["robot"] = SAME
    return result


def rows(result: MotionResult, title: str, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the times s, and the values of the rows of a title and a label."""
    program = result.program
    values = program.value(result.x)[1] * program.scales
    found = [(row.s, value) for row, value in zip(program.rows, values, strict=True) if row[:2] == (title, label)]
    assert found, f"no row {label} of {title}"
    s, own = np.array(found, dtype=float).T
    return s, own


def place(result: MotionResult, s: np.ndarray, name: str) -> np.ndarray:
    """Return the positions (K, 3) of a link or landmark."""
    return np.asarray(SAME.pose(result.at(s * result.T).q, name)[:, :3, 3])


@pytest.mark.slow
def test_effort_is_the_integral_of_squared_torques_divided_by_their_limits() -> None:
    """Eq. 5.1, with torques by Newton-Euler and the trapezoidal rule; there is no penalty in it."""
    result, names = moved(), BODY.coordinate_names
    joints = [k for k, name in enumerate(names) if k >= 6 and name in result.problem.model.names]
    relative = equilibrium(result)[:, joints] / BODY.effort_limit[joints]
    every = 200 // (NODES - 1)  # result.times are 200 steps
    effort = np.trapezoid((relative**2).sum(axis=1)[::every], result.times[::every])
    (part,) = result.parts
    assert part.title == "5.1 effort" and part.value == pytest.approx(effort, rel=1e-9)
    assert part.weighted == pytest.approx(result.objective, rel=1e-12)


def test_contact_rows_are_heights_and_velocities() -> None:
    """Eq. 5.4 for all points in contact, with velocities by differences; both are equations."""
    result, step, checked = moved(), 1e-6, 0
    program = result.program
    for stance in WALK.stances:
        part = {1: stance.points[0][0], 3: "foot" if stance.points[0][0] == "heel" else "forefoot"}[len(stance.points)]
        title = f"5.4 {stance.side} {part} stands"
        for point, axes in stance.points:
            name = f"{stance.side} {point}"
            s, heights = rows(result, title, f"y of {name}")
            inside = s[(s > step) & (s < 1 - step)]
            np.testing.assert_allclose(heights, place(result, s, name.replace(" ", "_"))[:, 1], atol=1e-12)
            ends = [place(result, inside + way * step, name.replace(" ", "_")) for way in (1, -1)]
            velocity = (ends[0] - ends[1]) / (2 * step * result.T)
            for axis in axes:
                _, speeds = rows(result, title, f"speed along {axis} of {name}")
                kept = speeds[(s > step) & (s < 1 - step)]
                np.testing.assert_allclose(kept, velocity[:, "xyz".index(axis)], atol=1e-6)
                checked += len(kept)
    assert checked > 60
    equal = program.row_lower == program.row_upper
    contact = np.array([row.title.startswith("5.4") and "stands" in row.title for row in program.rows])
    assert equal[contact].all() and not program.row_lower[contact].any()


def test_free_points_are_above_the_ground_and_hands_clear_of_hips() -> None:
    """The second line of eq. 5.4, eqs. 5.6, 5.7, 5.9 and 5.10."""
    result = moved()
    s, heights = rows(result, "5.4 left toe above the ground", "height of left toe")
    assert s[0] == 0.24  # toe-off
    np.testing.assert_allclose(heights / 10, place(result, s, "left_toe")[:, 1], atol=1e-12)
    s, products = rows(result, "5.6 arm-leg coupling", "left arm")
    arm = place(result, s, "left_hand") - place(result, s, "left_upper_arm")
    leg = place(result, s, "right_foot") - place(result, s, "right_thigh")
    np.testing.assert_allclose(products / 100, arm[:, 2] * leg[:, 2], atol=1e-12)
    s, ratios = rows(result, "5.7 self-avoidance", "right")
    apart = np.linalg.norm(place(result, s, "right_hand") - place(result, s, "right_thigh"), axis=1)
    np.testing.assert_allclose(np.sqrt(ratios), apart / 0.17, atol=1e-12)
    s, knees = rows(result, "5.9 knee at mid-swing", "left_knee_flexion")
    knee = result.at(s * result.T).q[:, BODY.coordinate_names.index("left_knee_flexion")]
    assert s.tolist() == [0.62] and knees == pytest.approx(knee, abs=1e-12)
    s, aside = rows(result, "5.10 place of the right foot", "x of right heel")
    assert s.tolist() == [0.0] and aside == pytest.approx(place(result, s, "right_heel")[:, 0] + 0.05, abs=1e-12)
    s, behind = rows(result, "5.10 place of the left foot", "z of left ball")
    assert behind == pytest.approx(place(result, s, "left_ball")[:, 2] + 0.6 - 0.18, abs=1e-12)


def test_the_zero_moment_point_is_within_the_support_polygon() -> None:
    """Eq. 5.5: rows are distances of the zero-moment point from the sides of the polygon, times the vertical force."""
    result = moved()
    s, _ = rows(result, "5.5 zero-moment point", "side 1")
    at = result.at(s * result.T)
    ground = ground_reaction(SAME, at.q, at.v, at.a)
    force = ground.force[:, 1] / (9.81 * BODY.mass)
    values = np.array([rows(result, "5.5 zero-moment point", f"side {k + 1}")[1] for k in range(6)])
    # The right foot is flat between toe-off and heel-off: its sole from the heel to the ball.
    flat = (s > 0.25) & (s < 0.6)
    x, z = ground.zmp[flat].T
    sides = np.sort([x + 0.095, -0.005 - x, z, 0.18 - z], axis=0)
    np.testing.assert_allclose(np.sort(0.1 * values[:4, flat] / force[flat], axis=0), sides, atol=1e-9)
    assert (values.min(axis=0) < 0).any()  # a random motion is not in balance


def test_mixtures_of_the_points_in_contact_are_within_the_support_polygon() -> None:
    rng = np.random.default_rng(0)
    for s in np.linspace(0.0, 1.0, 12):
        points = support_points(BODY, WALK, float(s))
        inside = rng.dirichlet(np.ones(len(points)), 20) @ points
        (sides,) = support_sides(BODY, WALK, np.array([s]))
        assert (np.column_stack([inside, np.ones(20)]) @ sides.T > 0).all()
        corners = convex_hull(points)
        outside = corners + 0.01 * (corners - corners.mean(axis=0))
        assert (np.column_stack([outside, np.ones(len(outside))]) @ sides.T).min(axis=1).max() < 0


def test_the_printed_problem_has_the_equations_of_chapter_5_and_no_others() -> None:
    """Barman 2020 counts 330 variables with the frozen ones, and 1726 constraints."""
    problem = printed_problem(0.0)
    titles = {term.title.split()[0] for term in (*problem.terms, *problem.conditions)}
    assert titles == {f"5.{k}" for k in range(1, 11)} and len(problem.costs) == 1
    assert len(problem.frozen) == 17 and problem.program.n + 6 * len(problem.frozen) == 330
    assert problem.program.m - problem.program.linear.m == 1704
    assert int((problem.program.row_lower == problem.program.row_upper).sum()) > problem.program.n


def test_bands_relax_heights_and_velocities_of_points_in_contact_alone() -> None:
    exact, near = printed_problem(0.0).program, printed_problem().program
    assert [each[:2] for each in exact.rows] == [each[:2] for each in near.rows]
    for program, band in ((exact, 0.0), (near, BAND)):
        widths = (program.row_upper - program.row_lower) * program.scales / 2
        contact = np.array([" stands" in row.title for row in program.rows])
        assert widths[contact] == pytest.approx(band)
    others = np.flatnonzero(~contact)
    assert (exact.row_lower[others] == near.row_lower[others]).all()
    assert (exact.row_upper[others] == near.row_upper[others]).all()

"""Certificates: shown bounds hold at all times, violated ones are violated, and nothing unchecked counts as shown."""

from fractions import Fraction
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.compiler import VirtualMachine
from torsor.compiler.enclosures import enclose
from torsor.motion.results.certificate import certify
from torsor.motion.results.samples import Course
from torsor.motion.transcription.ranges import Pieces, RowRanges
from torsor.optimisation import Outcome

ARM = torsor.library.two_link()
REACH = motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)
FLAT = ("revolute", "continuous", "prismatic", "helical")  # joints that splines can move
WAYS = np.array([[0.0, 0.0], [0.3, 0.5], [0.8, 0.4], [1.2, 0.9], [1.5, 1.5], [1.4, 2.0], [1.0, 2.1]])
SAMPLES, TEN = 10_000, motion.Torques(upper=10.0)


def unbounded(node: motion.Node) -> ca.SX:
    """Return all quantities that rows consist of, as one column."""
    return ca.vertcat(node.q, node.v, node.a, node.j, node.tau, node.tau_rate, node.t)


def quantities(problem: motion.MotionProblem, x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the same quantities (K, m) as the motion samples them."""
    at = Course(problem, x).at(times)
    return np.concatenate([at.q, at.v, at.a, at.j, at.tau, at.tau_rate, at.times[:, None]], axis=1)


def everything(robot: torsor.Robot, phase: motion.Phase, **options: Any) -> motion.MotionProblem:
    rows = motion.ExpressionConstraint(function=unbounded, upper=1e9)
    return motion.MotionProblem(robot, phase, motion.Effort(), [rows], **options)


CASES = {
    **{
        f"tree {seed}": (torsor.library.random_tree(count, seed, FLAT), {"degree": 3 + seed}, {})
        for seed, count in enumerate((3, 3, 4))
    },
    "frozen": (ARM, {"degree": 4}, {"frozen": {"joint1": 0.4}}),
    "path": (ARM, {"degree": 3}, {"path": motion.Path.through(WAYS, 3)}),
    "clock": (ARM, {"degree": 5, "clock": 2}, {}),
    "own spline": (ARM, {"degree": 5, "own": {"joint2": motion.Spline(7, [0.3, 0.35])}}, {}),
    "two phases": (ARM, {}, {}),
}


@pytest.mark.parametrize("name", list(CASES))
def test_ranges_contain_10_000_samples(name: str) -> None:
    robot, phase, options = CASES[name]
    stage = motion.Phase((0.3, 2.0), knots=[0.1, 0.15, 0.5, 0.8], **phase)
    problem = everything(robot, [stage, stage] if name == "two phases" else stage, **options)
    x = problem.random_start(1, 0.5)
    if "path" in options:
        x = np.clip(x, problem.program.lower, problem.program.upper)
    layout, ranges = problem.program.layout, RowRanges(problem.node, problem.conditions[:1], problem.problem_numbers)
    rng, begun, worst = np.random.default_rng(0), 0.0, 0.0
    for part in layout.phases:
        pieces, T = Pieces(part, x), part.seconds(x)
        edges = np.unique(np.concatenate([pieces.starts, rng.uniform(0, 1, 200), [1.0]]))
        lower, upper, remainders = ranges(pieces, edges[:-1], edges[1:], T, x[list(layout.numbers.values())])
        count = SAMPLES // len(layout.phases) // (len(edges) - 1) + 1
        s = edges[:-1, None] + np.diff(edges)[:, None] * rng.uniform(0, 1, (len(edges) - 1, count))
        times = begun + part.times(x, s.ravel())
        values = quantities(problem, x, times).reshape(*s.shape, -1)
        values[..., -1] -= begun
        # The samples are rounded too, by up to 1e-12 of the largest value of a row.
        slack = 1e-12 * np.abs(values).max(axis=(0, 1))
        assert np.isfinite(lower).all() and np.isfinite(upper).all()
        assert (values >= (lower - slack)[:, None]).all() and (values <= (upper + slack)[:, None]).all()
        worst = max(worst, float(np.median(remainders / (np.ptp(values, axis=(0, 1)) + 1e-6))))
        begun += T
    assert worst < 0.01  # bounds are close


def test_kernels_of_other_rows_have_other_keys() -> None:
    def key(term: motion.Torques) -> str:
        problem = motion.MotionProblem(ARM, motion.Phase(1.0), motion.Effort())
        return RowRanges(problem.node, [term], np.zeros(0)).identity

    assert key(motion.Torques(upper=1.0)) == key(motion.Torques(upper=2.0)) != key(motion.TorqueRates(upper=1.0))


def exact(spline: motion.Spline, points: list[Fraction], s: Fraction, order: int) -> Fraction:
    """Return a derivative of a spline with respect to s, by de Boor's algorithm in rational numbers."""
    knots, p = [Fraction(knot) for knot in spline.knots.tolist()], spline.degree
    for _ in range(order):
        points = [p * (points[j + 1] - points[j]) / (knots[j + p + 1] - knots[j + 1]) for j in range(len(points) - 1)]
        knots, p = knots[1:-1], p - 1
    span = max(k for k in range(p, len(points)) if knots[k] <= s)
    values = points[span - p : span + 1]
    for level in range(1, p + 1):
        for j in range(p, level - 1, -1):
            left, right = knots[span - p + j], knots[span + 1 + j - level]
            share = (s - left) / (right - left)
            values[j] = (1 - share) * values[j - 1] + share * values[j]
    return values[p]


@pytest.mark.parametrize("degree", range(3, 8))
def test_enclosures_of_profiles_contain_exact_splines_with_close_knots(degree: int) -> None:
    rng = np.random.default_rng(degree)
    inner = np.sort(np.concatenate([rng.uniform(0, 1, 6), [0.3, 0.3 + 1e-4, 0.3 + 2e-4]]))
    phase = motion.Phase((0.3, 2.0), knots=inner, degree=degree)
    problem = motion.MotionProblem(ARM, phase, motion.Time())
    x = problem.random_start(0)
    (layout,) = problem.program.layout.phases
    T, points = Fraction(layout.seconds(x)), [[Fraction(c) for c in row] for row in layout.points(x).tolist()]
    s = np.concatenate([rng.uniform(0, 1, 40), inner])
    enclosures = Pieces(layout, x).enclosures(s, s, layout.seconds(x), 4)
    for order in range(4):
        for k, place in enumerate(s.tolist()):
            for joint in range(2):
                c0, c1, c2, r = map(Fraction, enclosures[f"y_{order}"][k, joint].tolist())
                value = exact(layout.splines[joint], points[joint], Fraction(place), order) / T**order
                assert abs(value - c0) <= abs(c1) + abs(c2) + r


def test_torques_of_every_joint_type_are_within_their_enclosures() -> None:
    robot, rng, count = torsor.library.random_tree(9, 1), np.random.default_rng(0), 100
    function = robot.function("inverse_dynamics")
    bounds, values = VirtualMachine(enclose(function, function.name_in())), VirtualMachine(function)
    curves = [rng.normal(size=(count, n, 4)) * [1, 1e-2, 1e-3, 1e-5] for n in (robot.nq, robot.nv, robot.nv)]
    for curve in curves:
        curve[..., 3] = abs(curve[..., 3])
    lower, upper, remainders = bounds(*curves)
    for u in rng.uniform(-1, 1, SAMPLES // count):
        powers = np.array([1.0, u, u * u, float(rng.uniform(-1, 1))])
        tau = values(*(curve @ powers for curve in curves))
        assert (tau >= lower).all() and (tau <= upper).all()
    assert np.median(remainders) < 0.1 * np.median(upper - lower)


def arm_motion(*limits: Any) -> tuple[motion.MotionProblem, np.ndarray]:
    """Return a motion of the two-link arm from rest to rest that no solver has changed, in 0.7 s."""
    stage = motion.Phase((0.3, 2.0), points=9, degree=5, nodes=4)
    problem = motion.MotionProblem(ARM, stage, motion.Time(), [*REACH, *limits])
    x = problem.random_start(3, 0.2)
    x[problem.program.layout.phases[0].duration] = 0.7
    return problem, x


QUANTITIES = {
    "q": motion.Positions, "v": motion.Velocities, "a": motion.Accelerations, "j": motion.Jerks,
    "tau": motion.Torques, "tau_rate": motion.TorqueRates,
}  # fmt: skip


def extreme(problem: motion.MotionProblem, x: np.ndarray, name: str, first: float, last: float) -> tuple[float, float]:
    """Return the largest value of joint 2 at fractions of the duration from the first to the last, and its time."""
    course = Course(problem, x)
    low, high = 0.7 * first, 0.7 * last
    for _ in range(4):  # around the largest sample, ever closer
        t = np.linspace(low, high, 20_001)
        values = getattr(course.at(t), name)[:, 1]
        best = int(np.argmax(values))
        low, high = t[max(best - 1, 0)], t[min(best + 1, len(t) - 1)]
    return float(values[best]), float(t[best])


@pytest.mark.parametrize("during", [(0.0, 1.0), (0.21, 0.48)])
@pytest.mark.parametrize("name", list(QUANTITIES))
def test_bounds_are_shown_above_the_largest_value_and_violated_below(name: str, during: tuple[float, float]) -> None:
    problem, x = arm_motion()
    most, time = extreme(problem, x, name, *during)
    for margin in (1e-6, -1e-6):
        limit = QUANTITIES[name](lower={}, upper={"joint2": most + margin}, during=during)
        bounded, _ = arm_motion(limit)
        (bound,) = certify(bounded, x).bounds
        assert bound.title == limit.title and bound.label == "joint2"
        assert bound.is_shown is (margin > 0) and bound.is_violated is (margin < 0)
        # No sample exceeds the largest value by more than rounding, so the proven excess is nearly exact.
        assert -1e-11 * (1 + abs(most)) < bound.excess + margin < 2e-4 * (1 + abs(most))
        if margin < 0:
            (end,) = (end for begin, end in bound.intervals if begin <= time <= end)
            assert sum(end - begin for begin, end in bound.intervals) < 0.7 / 20 and end <= 0.7 * during[1]


def test_moments_are_checked_alone() -> None:
    problem, x = arm_motion()
    velocity = float(Course(problem, x).at(0.35).v[1])
    for margin in (1e-9, -1e-9):
        limit = motion.Velocities(lower={}, upper={"joint2": velocity + margin}, at=[0.5])
        (bound,) = certify(arm_motion(limit)[0], x).bounds
        assert bound.is_shown is (margin > 0) and abs(bound.excess + margin) < 1e-11
        assert [list(interval) for interval in bound.intervals] == ([] if margin > 0 else [[0.35, 0.35]])


def test_the_extreme_torques_of_a_pendulum_are_those_of_the_closed_form() -> None:
    rod = torsor.library.planar_chain(1, length=1.0, mass=3.0, gravity=(0.0, -9.81, 0.0))
    inertia, weight, angle = 1.0, 3.0 * 9.81 / 2, 2.0  # about the end
    for T in (0.1, 1e4):  # inertia or weight dominates: 6 I angle / T^2 at the start, and the weight at 0
        ends = motion.Start(q=[-angle / 2], v=0.0), motion.End(q=[angle / 2], v=0.0)
        most = 6 * inertia * angle / T**2 + weight * np.cos(angle / 2) if T < 1 else weight
        for factor in (1 + 1e-6, 1 - 1e-6):
            limit = motion.Torques(lower=-np.inf, upper=most * factor)
            phase = motion.Phase((T, 2 * T), points=4)
            problem = motion.MotionProblem(rod, phase, motion.Time(), [*ends, limit])
            (bound,) = certify(problem, np.array([T])).bounds
            assert bound.is_shown is (factor > 1) and -1e-8 < bound.excess / most + factor - 1 < 1e-6


def test_a_motion_that_starts_at_a_bound_is_shown_to_a_tolerance() -> None:
    limit = motion.Positions(lower={"joint1": 0.0}, upper={"joint1": 2.0}, during=(0.0, 0.1))
    problem, x = arm_motion(limit)
    x[:] = problem.guess()
    for tolerance, status in ((0.0, "not shown"), (1e-12, "shown")):
        (bound,) = certify(problem, x, tolerance).bounds
        assert bound.status == status and 0 <= bound.excess < 1e-12
    with refused(argument="tolerance", value=-1.0):
        certify(problem, x, -1.0)


def test_dry_friction_is_bounded_where_the_velocity_changes_sign() -> None:
    rod = torsor.library.planar_chain(1, length=1.0, mass=3.0, gravity=(0.0, 0.0, 0.0)).with_friction(coulomb=2.0)
    ends = motion.Start(q=[0.0], v=0.0), motion.End(q=[0.0], v=0.0)
    phase = motion.Phase((100.0, 200.0), points=5)
    for limit, is_shown in ((2.01, True), (1.99, False)):
        problem = motion.MotionProblem(rod, phase, motion.Time(), [*ends, motion.Torques(upper=limit)])
        (bound,) = certify(problem, np.array([1.0, 100.0])).bounds  # there and back
        assert bound.is_shown is is_shown and bound.is_violated is not is_shown


def test_clearances_are_bounded_by_the_smallest_distance() -> None:
    ball, wall = motion.Sphere(radius=0.1, center=[0.5, 0.6, 0.3]), motion.HalfSpace(normal=[-1, 0, 0], point=[1, 0, 0])
    rods = [motion.Capsule(start=[0, 0, 0], end=[0.5, 0, 0], radius=0.02, link=link) for link in ARM.link_names]
    post = motion.Capsule(start=[0.1, 0.5, -0.5], end=[0.4, 0.9, 0.5], radius=0.02)
    clear = motion.Clearance(first=rods, second=[ball, wall, post])
    problem, x = arm_motion(clear)
    kernels, course, t = problem.kernels_of([clear]), Course(problem, x), np.linspace(0.0, 0.7, SAMPLES)
    inputs = {"y_0": course.at(t).q, "T": np.full(len(t), 0.7), "s": t / 0.7, "given": kernels.given}
    rows = kernels.value(**inputs)["rows"]
    moving = dict(zip(kernels.rows[0].labels, (rows - kernels.rows[0].lower).min(axis=0), strict=True))
    bounds = {bound.label: bound for bound in certify(problem, x).bounds}  # of a half-space, the last end
    for label, least in moving.items():
        bound = bounds[label]
        assert -least <= bound.excess <= -least + 0.02 * (1 + abs(least))
        assert (bound.is_shown, bound.is_violated) == (least > 0, least < 0)
    assert {bound.is_shown for bound in bounds.values()} == {True, False}


def test_a_certified_motion_keeps_its_bounds_at_10_000_samples_and_loses_little_time() -> None:
    for name, loss in (("two-link-time", 5e-4), ("ur5-time", 5e-3)):
        result = motion.PROBLEMS[name]().solve("condensed")
        assert not result.certify().is_proven
        safe = result.certified()
        assert safe.certify().is_proven and safe.certified() is safe
        assert 0 < safe.T / result.T - 1 < loss and safe.is_feasible
        assert f"{100 * (safe.T / result.T - 1):.2g} % slower" in safe.status and abs(safe.objective - safe.T) < 1e-12
        moments = safe.at(np.linspace(0.0, safe.T, SAMPLES))
        for bound in safe.certify().bounds:
            quantity = {"Torques": "tau", "Velocities": "v"}[bound.title]
            column = safe.robot.coordinate_names.index(bound.label)
            limit = (
                10.0
                if name == "two-link-time"
                else getattr(safe.robot, {"tau": "effort_limit", "v": "velocity_limit"}[quantity])[column]
            )
            most = np.abs(getattr(moments, quantity)[:, column]).max()
            assert most <= limit + bound.excess <= limit
        # The smallest factor: a motion that is a tenth of the loss faster is not proven.
        faster = safe.x.copy()
        faster[safe.program.layout.phases[0].duration] -= (safe.T - result.T) / 10
        assert not certify(safe.problem, faster).is_proven


def test_what_cannot_be_checked_is_named_and_not_proven() -> None:
    erf = motion.ExpressionConstraint(function=lambda node: ca.erf(node.q[0]), upper=2.0, name="erf")
    given = motion.ExpressionConstraint(function=lambda node: node.q[0] - node.data("load", 1), upper=9.0, name="data")
    problem, x = arm_motion(erf, given, motion.Unactuated(names=["joint2"]), motion.Torques(upper=1e6))
    certificate = certify(problem, x)
    assert [bound.title for bound in certificate.bounds] == ["Torques", "Torques"]
    assert all(bound.is_shown for bound in certificate.bounds) and not certificate.is_proven
    assert "OP_ERF" in certificate.unchecked["erf"] and "load" in certificate.unchecked["data"]
    assert set(certificate.unchecked) == {"erf", "data", "Unactuated"}
    text = str(certificate)
    assert text.startswith("not proven\nbounds shown at all times: 2 of 2\n") and "Unactuated, not checked" in text


def test_positions_of_closed_loops_are_not_checked() -> None:
    robot = torsor.library.four_bar()
    problem = motion.MotionProblem(robot, motion.Phase(1.0, points=5), motion.Effort(), [motion.Torques(upper=1e6)])
    certificate = certify(problem, problem.guess())
    assert not certificate.bounds and not certificate.is_proven and "closed loops" in certificate.unchecked["Torques"]


def test_rows_that_are_no_number_are_not_shown() -> None:
    root = motion.ExpressionConstraint(function=lambda node: ca.sqrt(node.q[0] - 5), upper=100.0)
    (bound,) = certify(*arm_motion(root)).bounds
    assert not bound.is_shown and not bound.is_violated and bound.excess == np.inf
    assert bound.status == "not shown" and len(bound.intervals) == 1 and np.allclose(bound.intervals[0], [0, 0.7])


def bent(limit: Any, by: float = 0.0, duration: Any = (0.3, 2.0)) -> motion.MotionResult:
    """Return a motion as if a solver had returned it, whose joint 2 is bent."""
    stage = motion.Phase(duration, points=9, nodes=4)
    problem = motion.MotionProblem(ARM, stage, motion.Effort(), [*REACH, limit])
    free = motion.MotionProblem(ARM, stage, motion.Effort(), [*REACH]).solve()
    x = free.x.copy()
    columns = problem.program.layout.phases[0].columns[1]
    x[columns[columns >= 0]] += by
    outcome = Outcome(x, np.zeros(problem.program.m), np.zeros(len(x)), 0.0, 1, "optimal", True)
    return motion.MotionResult(problem, outcome, "ipopt")


def test_motions_that_no_speed_makes_provable_are_refused() -> None:
    range_ = motion.Positions(upper={"joint2": -1.2}, lower={"joint2": -3.0}, during=(0.0, 0.5))
    with refused(error=torsor.MotionError, what="Positions of joint2"):
        bent(range_, 1.0).certified()
    with refused(what="given duration"):
        bent(motion.Torques(upper=1.0), duration=0.5).certified()
    with refused(error=torsor.MotionError, what="Start does not hold"):
        throw = motion.MotionProblem(
            ARM, motion.Phase((0.3, 2.0), points=9), motion.Time(), [motion.Start(q=[0, -2], v=1.0), REACH[1], TEN]
        )
        throw.solve().certified()
    with refused(what="Unactuated"):
        bent(motion.Unactuated(names=["joint2"], at=[0.5])).certified()

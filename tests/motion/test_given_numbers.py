"""Numbers of a problem are inputs of its kernels: other weights, obstacles, paths and payloads compile nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import pytest

from motion.interpreted import interpreted
from torsor import human, library, motion
from torsor.base.errors import ModelError
from torsor.compiler import cache
from torsor.mechanism import Shape
from torsor.motion.many import with_case
from torsor.motion.terms.term import Cost
from torsor.motion.transcription import node_kernels
from torsor.motion.transcription.cases import structure_of

ARM = library.two_link()
BOXED = ARM.with_shapes("link2", [Shape("box", (0.1, 0.2, 0.3))])
ENDS = motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)
TIP = motion.Sphere(link="link2", radius=0.05, center=[0.3, 0.0, 0.0])
ROD = motion.Capsule(link="link2", start=[0.0, 0.0, 0.0], end=[0.3, 0.0, 0.0], radius=0.04)


def _problem(*terms, robot=ARM, duration=(0.1, 2.0), **changes):
    costs = [term for term in terms if isinstance(term, Cost)] or [motion.Time()]
    limits = [term for term in terms if not isinstance(term, Cost)]
    phase = motion.Phase(duration, points=8)
    return motion.MotionProblem(robot, phase, costs, [*ENDS, motion.Torques(upper=10.0), *limits], **changes)


def _turn(angle):
    return np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])


def _curve(end):
    return np.linspace([0.9, 0.0, 0.0], end, 7) + 0.1 * np.sin(np.arange(7))[:, None]


# Two values of the numbers of each term.
TERMS = {
    "weight": (lambda v: [motion.Time(), motion.Effort(weight=v)], 0.01, 0.3),
    "scale": (lambda v: [motion.Effort(scale=v)], [2.0, 3.0], [4.0, 1.0]),
    "width": (lambda v: [motion.Effort(kind="absolute", width=v)], 0.1, 0.3),
    "motor": (lambda v: [motion.ElectricalEnergy(motor_constant=v)], 3.0, [2.0, 4.0]),
    "jerk": (lambda v: [motion.Jerk(frame="link2", scale=v)], 2.0, 5.0),
    "rate": (lambda v: [motion.TorqueRate(scale=v)], 2.0, 5.0),
    "reaction": (lambda v: [motion.Reaction(force=v, moment=2 * v)], 2.0, 5.0),
    "reference": (lambda v: [motion.Reference(values=_curve([v, 1.0, 0.0])[:, :2], scale=v)], 0.5, 0.7),
    "sphere": (lambda v: [motion.Clearance(first=TIP, second=motion.Sphere(center=[2, v, 0], radius=v))], 0.3, 0.5),
    "capsule": (
        lambda v: [motion.Clearance(first=ROD, second=motion.Capsule(start=[2, 0, v], end=[2, v, 1], radius=0.1))],
        0.3,
        0.5,
    ),
    "plane": (
        lambda v: [motion.Clearance(first=ROD, second=motion.HalfSpace(normal=[v, 1, 0], point=[0, -v, 0]))],
        3.0,
        0.0,
    ),
    "shape": (
        lambda v: [motion.Clearance(first="link2", second=motion.Sphere(center=[1, v, 0], radius=v / 4))],
        0.4,
        0.9,
    ),
    "point": (lambda v: [motion.FramePosition(frame="link2", point=[v, 0, 0], upper=9.0)], 0.2, 0.5),
    "speed": (lambda v: [motion.FrameVelocity(frame="link2", speed=v)], 2.0, 3.0),
    "direction": (
        lambda v: [motion.Orientation(frame="link2", axis=[1, 0, 0], direction=[1, v, 0], tolerance=v)],
        0.5,
        0.8,
    ),
    "rotation": (lambda v: [motion.Orientation(frame="link2", rotation=_turn(v), tolerance=1.0)], 0.3, 0.8),
    "aligned": (lambda v: [motion.Orientation(frame="link2", rotation=_turn(v), at=0.5)], 0.3, 0.8),
    "curve": (lambda v: [motion.Follow(frame="link2", curve=_curve([v, 1.0, 0.0]))], 0.1, 0.5),
}


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """Return the list of compiled kernels, none of which was stored before."""
    names, before = list[str](), cache.compiling
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path))
    monkeypatch.setattr(node_kernels, "_COMPILED", {})
    monkeypatch.setattr(cache, "compiling", lambda key: (names.append(key), before(key))[1])
    return names


def _evaluated(problem, x):
    program = problem.program
    (f, rows), (gradient, entries) = program.value(x), program.jacobian(x)
    J = np.zeros((program.m, program.n))
    np.add.at(J, program.structure, entries)
    return np.array(f), rows, gradient, J, program.hessian(x, np.ones(program.m), 1.0)


@pytest.mark.parametrize("kind", TERMS)
def test_other_numbers_compile_nothing_and_give_what_constants_give(kind, compiled, monkeypatch):
    terms, first, second = TERMS[kind]
    robot = BOXED if kind == "shape" else ARM
    problem = _problem(*terms(first), robot=robot)
    x = problem.guess() + 0.1 * np.sin(np.arange(problem.program.n))
    before = _evaluated(problem, x)
    count = len(compiled)
    assert count
    found = _evaluated(_problem(*terms(second), robot=robot), x)
    assert len(compiled) == count
    assert not all(np.array_equal(one, other) for one, other in zip(before, found, strict=True))
    constants = lambda node, values, keep_zeros=False: ca.SX(ca.DM(np.asarray(values, dtype=float)))  # noqa: E731
    monkeypatch.setattr(motion.Node, "given", constants)
    with interpreted():
        expected = _problem(*terms(second), robot=robot)
        assert not expected.program.batches[0].kernels.given.size
    for own, alone in zip(found, _evaluated(expected, x), strict=True):
        np.testing.assert_allclose(own, alone, rtol=0, atol=1e-12 * np.abs(alone).max(initial=0.0))


def test_a_held_mass_and_the_points_of_a_path_compile_nothing(compiled):
    model, name = ARM.parametric(["links.link2.mass"]), "links.link2.mass"
    way, counts = np.linspace([0.0, -2.0], [1.0, -1.0], 7), list[int]()
    for mass, bend in ((0.5, 0.0), (0.8, 0.3)):
        path = motion.Path.through(way + bend * np.sin(np.arange(7))[:, None], at=np.linspace(0, 1, 7) ** (1 + bend))
        numbers = {name: motion.Number(mass, mass, mass)}
        phase, limits = motion.Phase((0.1, 2.0), points=8), motion.Torques(upper=10.0)
        problem = motion.MotionProblem(model, phase, motion.Effort(), [limits], path=path, numbers=numbers)
        x = problem.guess() + 0.05 * np.sin(np.arange(problem.program.n))
        before = len(compiled)
        rows = _evaluated(problem, x)[1].reshape(-1, 2) * 10.0
        counts.append(len(compiled) - before)
        y = problem.program.layout.phases[0].profiles(x, problem.stages[0].nodes, 3)[..., 0]
        q, q_1, q_2 = (path.positions(y[0], order) for order in range(3))
        v, a = q_1 * y[1][:, None], q_1 * y[2][:, None] + q_2 * y[1][:, None] ** 2
        np.testing.assert_allclose(rows, model.at([mass]).inverse_dynamics(q, v, a), rtol=0, atol=1e-11)
    assert counts[0] > 0 and counts[1] == 0


def test_a_row_of_given_numbers_alone_is_constant():
    base = motion.Sphere(link=ARM.base.name, radius=0.1)
    far, near = (motion.Clearance(first=base, second=motion.Sphere(center=[x, 0, 0], radius=0.1)) for x in (1.0, 0.1))
    assert _problem(far).program.m == _problem().program.m
    with pytest.raises(ModelError, match="for every motion"):
        _ = _problem(near).program


@dataclass(frozen=True, eq=False, kw_only=True)
class Near(Cost):
    """The distance of a joint from the mean of some angles."""

    angles: Sequence[float]
    key: str = "angles"

    def data(self, s):
        return {self.key: np.tile(self.angles, (len(s), 1))}

    def integrand(self, node):
        return (node.q[0] - ca.sum1(node.data(self.key, len(self.angles))) / len(self.angles)) ** 2


def test_kernels_on_a_shared_node_are_those_of_a_problem_of_its_own():
    first = _problem(motion.Effort())
    one, two = Near(angles=[0.1, 0.2]), Near(angles=[0.3], key="also")
    for costs in (
        [one, two],
        [motion.TorqueRate(), two, one],
        [two],
        [Near(angles=[0.1, 0.2, 0.3])],
        [motion.Effort()],
    ):
        shared, own = first.changed(objective=costs), _problem(*costs)
        assert shared.node is first.node is not own.node
        identities = [[batch.kernels.identity for batch in each.program.batches] for each in (shared, own)]
        assert identities[0] == identities[1]


LOADED = ARM.parametric(["links.link2.mass", "links.link2.com.x"])
MANY = {
    "weights": (lambda: _problem(motion.Time(), motion.Effort()), [{"Effort.weight": w} for w in (0.01, 0.1, 1.0)]),
    "obstacles": (
        lambda: _problem(motion.Clearance(first=TIP, second=motion.Sphere(center=[0.77, -0.25, 0.0], radius=0.1))),
        [
            {"Clearance.second": motion.Sphere(center=[x, y, z], radius=radius)}
            for x, y, z, radius in ((0.77, -0.25, 0.0, 0.1), (0.8, -0.26, 0.02, 0.12), (0.85, -0.2, 0.0, 0.1))
        ],
    ),
    "payloads": (
        lambda: _problem(robot=LOADED, numbers={name: motion.Number(0.5, 0.5, 0.5) for name in LOADED.names}),
        [{"links.link2.mass": mass, "links.link2.com.x": 0.4 + mass / 10} for mass in (0.5, 0.6, 0.8)],
    ),
    "payloads with a free end": (
        lambda: motion.MotionProblem(
            LOADED,
            motion.Phase((0.1, 2.0), points=8),
            [motion.Time(), motion.Effort(weight=1e-3)],
            [ENDS[0], motion.End(q={"joint1": 1.0}, v=0.0), motion.Torques(upper=10.0)],
            numbers={name: motion.Number(0.5, 0.5, 0.5) for name in LOADED.names},
        ),
        [{"links.link2.mass": 0.5 + k / 10, "phase.duration": (0.1, 2.0 + k)} for k in range(3)],
    ),
}


@pytest.mark.parametrize("kind", MANY)
def test_cases_with_other_numbers_are_one_batch_with_the_solutions_of_each_alone(kind, compiled):
    make, cases = MANY[kind]
    problem = make()
    problem.solve_many(cases[:1], tolerance=1e-8)
    count = len(compiled)
    results = problem.solve_many(cases, tolerance=1e-8)
    assert count == len(compiled) > 0
    with interpreted():
        alone = [with_case(problem, case, k) for k, case in enumerate(cases)]
        assert len({structure_of(each.program) for each in alone}) == 1
    for result, each in zip(results, alone, strict=True):
        found = each.solve("condensed", tolerance=1e-8)
        assert result.status == found.status == "optimal"
        np.testing.assert_allclose(result.objective, found.objective, rtol=1e-8)
    assert len({round(result.objective, 6) for result in results}) == len(cases)


def _solved_as_one_batch(robots, compiled):
    problem = _problem()
    problem.solve_many([{"robot": robot} for robot in robots[:2]])
    count = len(compiled)
    results = problem.solve_many([{"robot": robot} for robot in robots], tolerance=1e-8)
    assert count == len(compiled) > 0
    with interpreted():
        alone = [_problem(robot=robot).solve("condensed", tolerance=1e-8).T for robot in robots]
    np.testing.assert_allclose([result.T for result in results], alone, rtol=1e-7)
    return results


def test_robots_with_other_payloads_are_one_batch_and_compile_once(compiled):
    loads = [ARM.with_payload("link2", mass, [0.3, 0.0, 0.0], 0.01 * np.eye(3)) for mass in (0.0, 0.2, 0.5)]
    for load, result in zip(loads, _solved_as_one_batch(loads, compiled), strict=True):
        assert result.robot.links[1].mass == load.links[1].mass
    (same,) = _problem().solve_many([{"robot": library.two_link()}])
    assert same.problem.robot is ARM


def test_robots_with_other_link_lengths_are_one_batch_and_compile_once(compiled):
    def longer(by):
        placement = ARM.joints[1].placement.copy()
        placement[0, 3] += by
        return replace(ARM, joints=(ARM.joints[0], replace(ARM.joints[1], placement=placement)))

    results = _solved_as_one_batch([longer(by) for by in (0.0, 0.1, 0.2)], compiled)
    assert results[0].T < results[1].T < results[2].T


def test_robots_that_differ_in_more_than_payloads_have_their_own_kernels():
    turned = ARM.with_gravity([0.0, -1.0, 0.0])
    first, second = _problem().solve_many([{}, {"robot": turned}], tolerance=1e-8)
    with interpreted():
        alone = _problem(robot=turned).solve("condensed", tolerance=1e-8)
    np.testing.assert_allclose(second.T, alone.T, rtol=1e-7)
    assert abs(first.T - second.T) > 1e-4


def test_other_weights_of_a_walk_have_the_kernels_of_the_first():
    aims = {"energy": 1.0, "effort": 1.0, "accelerations": 1.0}
    one, other = (human.walking(objective=aims | {"effort": w}).program for w in (1.0, 1.3))
    assert [batch.kernels.identity for batch in one.batches] == [batch.kernels.identity for batch in other.batches]
    assert any((a.kernels.given != b.kernels.given).any() for a, b in zip(one.batches, other.batches, strict=True))

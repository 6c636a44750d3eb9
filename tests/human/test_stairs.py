"""Stairs: the feet share the force on treads of different heights, and the swinging foot stays clear of the edges."""

import casadi as ca
import numpy as np
import pytest

from human.test_free_steps import node_place
from refusals import refused, warned
from torsor.cli.predictions.walk import WALK
from torsor.human import Foot, Step, Stride, walking
from torsor.human.contact.contact_forces import SHARED, contact_forces
from torsor.human.contact.schedule import edges, highest_rise, stairs_of, tread
from torsor.human.gait.settings import CLEARANCE
from torsor.human.terms.places import EDGE, EDGE_ROUNDING, POINTS, ClearsEdge
from torsor.human.terms.problem import pressure
from torsor.library import human

RISE, LENGTH = 0.17, 0.29


def stairs(rise: float = RISE, **more: object):
    step = Step(length=LENGTH, rise=rise, speed=0.5)
    return walking(step=step, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def problem():
    return stairs()


def test_each_foot_is_pressed_at_its_own_tread(problem):
    node = problem.node
    contact = contact_forces(node)
    outputs = [part for side in ("right", "left") for part in contact.feet[side]]
    outputs += [*(contact.pressures[side] for side in ("right", "left")), contact.force]
    given = SHARED.unpack(node.data("shared ground", SHARED.size))
    outputs += [given["height"], node.shared["step width"], node.shared["speed"] * node.T]
    made = ca.Function("feet", [node.symbols], [ca.densify(each) for each in outputs])
    values = 0.2 * np.random.default_rng(5).normal(size=node.symbols.numel())
    values[[node_place(node, each) for each in ca.vertsplit(given["left_at"])]] = [0.0, -1.0]  # one step
    found = [np.array(each).squeeze() for each in made(values)]
    f_right, n_right, f_left, n_left, right, left, f, height, width, long = found
    np.testing.assert_allclose(f_right + f_left, f, atol=1e-12)
    assert abs(float(height)) > 0.01
    for force, moment, place, heel in (
        (f_right, n_right, right, (-width / 2, 0.0, 0.0)),
        (f_left, n_left, left, (width / 2, height, -long)),
    ):
        x, z = place / f[1]
        rest = moment - np.cross(np.array([x, 0.0, z]) + np.array(heel, dtype=float), force)
        assert abs(rest[[0, 2]]).max() < 1e-9 * max(abs(moment).max(), 1.0)


@pytest.mark.parametrize("rise", [RISE, -RISE])
def test_the_swinging_foot_is_beyond_the_riser_or_above_the_tread(rise):
    """The rows are those of plane geometry, rounded within the named radius, with exact derivatives."""
    body, step = human(), Step(length=LENGTH, rise=rise)
    edge = edges(step, Foot.of(body))[1]
    term = ClearsEdge(body=body, side="left", edge=edge, clear=CLEARANCE, name="edge")

    class Flat:
        """A node whose links have poses of the plane: each is (z, y, pitch)."""

        def __init__(self) -> None:
            self.links = {name: ca.SX.sym(name, 3) for name in ("left_foot", "left_toes")}

        def data(self, name: str, count: int) -> ca.SX:
            return ca.SX(term.data(np.zeros(1))[name][0])

        def pose(self, name: str) -> ca.SX:
            z, y, pitch = ca.vertsplit(self.links[name])
            c, s = ca.cos(pitch), ca.sin(pitch)
            rows = [[1, 0, 0, 0], [0, c, -s, y], [0, s, c, z]]
            return ca.vertcat(*(ca.horzcat(*row) for row in rows))

    node = Flat()
    symbols = ca.vertcat(*node.links.values())
    rows = term.rows(node)  # type: ignore[arg-type]
    places = []
    for link, local in (body.place(f"left_{point}") for point in POINTS):
        pose = node.pose(body.link_names[link])
        place = pose[:3, :3] @ ca.SX(local[:3, 3]) + pose[:3, 3]
        places.append(ca.vertcat(place[2], place[1]))
    made = ca.Function("rows", [symbols], [rows.expression, *places, ca.jacobian(rows.expression, symbols)])
    rng = np.random.default_rng(1)
    for _ in range(50):
        at = np.array([edge.z - 0.1, edge.y + 0.1, 0.0] * 2) + 0.15 * rng.normal(size=6)
        values, *points, jacobian = (np.array(each) for each in made(at))
        found = values.ravel() / 10 + CLEARANCE
        heel, ball, toe = (each.ravel() - [edge.z, edge.y] for each in points)
        exact = [max(-edge.ahead * each[0], each[1]) for each in (heel, ball, toe)]
        for a, b in ((heel, ball), (ball, toe)):
            below = (a[1] * (b - a)[0] - a[0] * (b - a)[1]) / np.linalg.norm(b - a)
            exact.append(max(a[0], -b[0], below))
        over = found - exact
        assert over.min() > -1e-12 and over[:3].max() <= EDGE_ROUNDING / 2 + 1e-12 and over.max() <= EDGE_ROUNDING
        step_size = 1e-6
        for k in range(6):
            way = step_size * np.eye(6)[k]
            central = (np.array(made(at + way)[0]) - np.array(made(at - way)[0])) / (2 * step_size)
            np.testing.assert_allclose(jacobian[:, k], central.ravel(), atol=1e-4)


def test_feet_stand_within_their_treads():
    foot = Foot.of(human())
    for rise in (RISE, -RISE):
        back, front = tread(Step(length=LENGTH, rise=rise), foot)
        assert front - back == pytest.approx(LENGTH) and back < 0 < foot.length < front
    back, front = tread(Step(length=0.22, rise=RISE), foot)
    assert back > 0 and front > foot.length  # the heel hangs over the edge, the toes do not touch the riser
    back, front = tread(Step(length=0.22, rise=-RISE), foot)
    assert back < 0 and front < foot.length


def test_a_step_ends_a_rise_higher_with_the_soles_on_their_treads(problem):
    (row,) = [each for each in problem.program.linear.equations if each.label == "q of ty"]
    assert row.lower == row.upper == RISE
    walk = next(each.support for each in problem.terms if each.title == "balance")
    np.testing.assert_allclose(walk.heights(np.array([0.0, 0.1, 0.5, 1.0])), [[0, -RISE]] * 2 + [[0, RISE]] * 2)
    assert stairs_of(walk, human()).profile(0, 1)[:, 1].tolist() == [0.0, 0.0, RISE, RISE]
    assert EDGE.size == 13


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Step(rise=0.17, length="free"), "rise"),
        (lambda: Step(landing="toe"), "landing"),
        (lambda: stairs(0.7), "at most 0.532 m"),
        (lambda: stairs(slope=0.1), "rise is 0.17 m and slope is 0.1 rad"),
        (lambda: walking(step=Step(length=0.15, rise=0.17)), "too short for the ball of a foot of 0.255 m"),
    ],
)
def test_stairs_that_cannot_be_climbed_are_refused(make, words):
    with refused(words):
        make()


def test_treads_shorter_than_the_foot_warn():
    with warned(fix="overhang of the heel"):
        walking(step=Step(length=0.22, rise=0.17, speed=0.5))


def test_the_command_has_stairs():
    made = WALK.problem({"rise": -0.15})
    step = next(each.support for each in made.terms if each.title == "balance").step
    assert (step.rise, step.length, step.speed, step.timing) == (-0.15, 0.29, 0.5, "free")
    assert highest_rise(human()) > 0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*between the nodes")
@pytest.mark.parametrize("rise", [RISE, -RISE])
def test_climbing_obeys_the_laws_of_mechanics(rise):
    result = stairs(rise).solve(tolerance=1e-3, check=False)
    stride, body = Stride(result), human()
    assert result.is_feasible
    # Energy: the joints lift the body, whose motion repeats.
    assert stride.energy.change == pytest.approx(73.0 * 9.81 * rise, rel=1e-9)
    assert abs(stride.energy.residual) < 1e-9 * stride.energy.positive
    assert abs(stride.energy.ground) < 0.05 * stride.energy.positive
    # Force: over a stride the ground carries the weight.
    whole = stride.forces.sum(axis=1)
    np.testing.assert_allclose(np.trapezoid(whole, stride.s, axis=0), [0.0, 1.0, 0.0], atol=2e-3)
    # Pressure: within the sole, on the tread; tolerances are those of the positions of feet and of the nodes.
    at = pressure(stride.samples, stride.body)
    own = at[:, 0][np.isfinite(at[:, 0]).all(axis=1)]
    assert own[:, 2].min() > -0.01 and own[:, 2].max() < Foot.of(body).length + 0.01
    assert set(np.round(own[:, 1], 12)) == {0.0}
    # The swinging foot passes above every edge of the stairs, also between the nodes.
    for point in POINTS:
        _, y, z = body.pose(stride.samples.q[:201], f"left_{point}")[:, :3, 3].T
        for edge in edges(stride.walk.step, Foot.of(body)):
            assert np.maximum(edge.ahead * (edge.z - z), y - edge.y).min() > -0.003
    assert stride.likeness() == {} and "0.17 m" in stride.report()
    if rise > 0:  # people need 1.1 to 1.2 N m/kg upstairs, 0.5 on level ground
        assert stride.moment("knee_extension").max() > 0.8

"""Loops of every kind in random mechanisms: rates by differences, freedoms by counting and by rank; known linkages."""

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.dynamics.loops.closure import Closures
from torsor.dynamics.trees.tree import Tree
from torsor.spatial import from_rpy, inverse_pose, make_pose

from .closing import closed_near
from .mechanisms import EQUATIONS, KINDS
from .test_dynamics import with_multipliers

# Differences of seventh points: exact to the sixth power of the step.
STEP, WEIGHTS = 3e-3, {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
ALL = ("revolute", "prismatic", "helical", "planar", "spherical", "free")


def slope(f, step: float = STEP) -> np.ndarray:
    """Return the derivative at 0 of a function of one number."""
    return sum(w / step * (np.asarray(f(k * step)) - f(-k * step)) for k, w in WEIGHTS.items())


def hold(robot: torsor.Robot, name: str, kind: str, a: str, b: str, q: np.ndarray, rng) -> torsor.Robot:
    """Return the robot with a loop between two links that is closed at q."""
    here = make_pose(from_rpy(rng.normal(size=3)), 0.3 * rng.normal(size=3))
    there = inverse_pose(robot.pose(q, b)) @ robot.pose(q, a) @ here
    if kind == "universal":
        there = there @ make_pose(from_rpy([np.pi / 2, 0, 0]))
    if kind == "rod":
        there = there @ make_pose(p=[0.3, 0.0, 0.4])
    robot = robot.with_frame(f"{name}/a", a, here).with_frame(f"{name}/b", b, there)
    return robot.with_loop(name, f"{name}/a", f"{name}/b", kind, 0.5 if kind == "rod" else 0.0)


def random_loops(seed: int, extras: bool) -> tuple[torsor.Robot, np.ndarray]:
    """Return a random tree, joints that share coordinates among them, with five loops and a gear, closed at q."""
    rng = np.random.default_rng(seed)
    robot = torsor.library.random_tree(9, seed, types=ALL, branching=0.4, extras=extras).to(device="casadi")
    q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    places = [robot.base.name, *robot.link_names]
    for k in range(5):
        a, b = rng.choice(places, 2, replace=False)
        robot = hold(robot, f"loop{k}", KINDS[(seed + k) % len(KINDS)], str(a), str(b), q, rng)
    single = [name for name in robot.coordinate_names if name in robot.position_names]
    shares = {name: float(rng.normal()) for name in single[:3]}
    offset = sum(c * q[robot.position_names.index(name)] for name, c in shares.items())
    return robot.with_coupling("gear", shares, offset), q


@pytest.mark.parametrize("seed", range(8))
def test_rates_of_closure_are_those_that_differences_give(seed: int) -> None:
    robot, q = random_loops(seed, extras=seed % 2 == 1)
    assert np.abs(robot.closed.error(q)).max() < 1e-12
    rng = np.random.default_rng(seed)
    q, v = robot.integrate(q, 0.2 * rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    v /= np.linalg.norm(v)
    A = robot.closed.jacobian(q)
    differences = [slope(lambda h, e=e: robot.closed.error(robot.integrate(q, h * e))) for e in np.eye(robot.nv)]
    np.testing.assert_allclose(A, np.transpose(differences), rtol=0, atol=1e-10 * np.abs(A).max())
    x, y = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    drift = ca.Function("drift", [x, y], [Closures(Tree.of(robot), x, exact=True).drift(y)])
    found = np.array(drift(q, v)).ravel()
    # Along a motion with constant velocities all that is left of the second rate is the drift.
    expected = slope(lambda h: robot.closed.jacobian(robot.integrate(q, h * v)) @ v)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * max(1.0, np.abs(A).max()))
    second = slope(lambda h: slope(lambda k: robot.closed.error(robot.integrate(q, (h + k) * v))))
    np.testing.assert_allclose(found, second, rtol=0, atol=1e-8 * max(1.0, np.abs(A).max()))


def freedoms(robot: torsor.Robot, q: np.ndarray) -> int:
    """Return the degrees of freedom as the rank of differences of the error of closure says."""
    columns = [slope(lambda h, e=e: robot.closed.error(robot.integrate(q, h * e))) for e in np.eye(robot.nv)]
    return robot.nv - int(np.linalg.matrix_rank(np.transpose(columns), tol=1e-7))


def chain(count: int, seed: int, base: str = "fixed") -> tuple[torsor.Robot, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    robot = torsor.library.random_tree(count, seed, types=("revolute",), branching=0.0, extras=False)
    if base == "floating":
        links, joints = [torsor.Link("sky"), robot.base, *robot.links], list(robot.joints)
        joints.append(torsor.Joint("float", "free", "sky", robot.base.name))
        robot = torsor.build("floating", links, joints)
    robot = robot.to(device="casadi")
    return robot, robot.integrate(robot.neutral(), rng.normal(size=robot.nv)), rng


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [3, 7])
def test_a_random_chain_has_the_freedoms_of_gruebler(kind: str, count: int) -> None:
    robot, q, rng = chain(count, 11)
    robot = hold(robot, "loop", kind, robot.link_names[-1], robot.base.name, q, rng)
    mobility, equations = robot.closed.mobility(q), EQUATIONS[kind]
    assert mobility.dof == max(count - equations, 0) == freedoms(robot, q)  # 3: a general 4R does not move at all
    assert mobility.equations == equations and mobility.redundant == max(equations - count, 0)


def test_loops_that_share_links_take_the_freedoms_of_both() -> None:
    robot, q, rng = chain(13, 12)
    robot = hold(robot, "one", "revolute", robot.link_names[7], robot.base.name, q, rng)
    robot = hold(robot, "two", "spherical", robot.link_names[12], robot.link_names[2], q, rng)
    robot = hold(robot, "three", "rod", robot.link_names[10], robot.link_names[5], q, rng)
    assert robot.closed.mobility(q).dof == 13 - 5 - 3 - 1 == freedoms(robot, q)


@pytest.mark.parametrize("kind", KINDS)
def test_loops_of_what_floats_leave_it_floating(kind: str) -> None:
    robot, q, rng = chain(8, 13, "floating")
    assert robot.nv == 14
    own = hold(robot, "own", kind, robot.link_names[-1], robot.link_names[0], q, rng)
    assert own.closed.mobility(q).dof == 14 - EQUATIONS[kind] == freedoms(own, q)
    held = hold(own, "held", kind, robot.link_names[4], robot.base.name, q, rng)
    assert held.closed.mobility(q).dof == 14 - 2 * EQUATIONS[kind] == freedoms(held, q)


def test_rods_hold_a_body_one_freedom_each() -> None:
    body = torsor.build(
        "plate", [torsor.Link("ground"), torsor.Link("plate", 1.0, (0, 0, 0), np.eye(3))],
        [torsor.Joint("float", "free", "ground", "plate")],
    ).to(device="casadi")  # fmt: skip
    rng = np.random.default_rng(14)
    q = body.integrate(body.neutral(), rng.normal(size=6))
    for k in range(6):
        body = hold(body, f"rod{k}", "rod", "plate", "ground", q, rng)
        assert body.closed.mobility(q).dof == 5 - k == freedoms(body, q)


# Mechanisms that count wrongly, and known ones


def dh_loop(*rows: tuple[float, float]) -> torsor.Robot:
    """Return the loop of links with these lengths and twists, its last joint cut."""
    *links, last = (torsor.DHLink(a=a, alpha=alpha) for a, alpha in rows)
    solid = {"mass": 1.0, "com": (-0.2, 0.05, 0.02), "inertia": np.diag([0.02, 0.03, 0.04])}
    made = [torsor.DHLink(a=link.a, alpha=link.alpha, active=k == 0, **solid) for k, link in enumerate(links)]
    return torsor.from_dh([*made, torsor.DHLink(a=last.a, alpha=last.alpha, closes=-1)])


def bennett(one: np.ndarray) -> tuple[torsor.Robot, np.ndarray, np.ndarray]:
    """Return Bennett's linkage, all its angles (..., 3) and their rates by the first, in his closed form."""
    a, alpha, beta = 0.5, 0.7, 1.9
    b = a * np.sin(beta) / np.sin(alpha)
    robot = dh_loop((a, alpha), (b, beta), (a, alpha), (b, beta))
    ratio = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    two = 2 * np.arctan2(ratio, np.tan(one / 2))
    rate = -2 * ratio / (1 + np.cos(one)) / (np.tan(one / 2) ** 2 + ratio**2)
    return robot, np.stack([one, two, -one], axis=-1), np.stack([one**0, rate, -(one**0)], axis=-1)


def test_bennetts_linkage_moves_as_he_said() -> None:
    """Four hinges in space, with sin(alpha) / a the same for neighbours: it moves, where Gruebler counts -2."""
    robot, q, rates = bennett(np.linspace(0.4, 2.6, 7))
    np.testing.assert_allclose(robot.closed.error(q), 0, atol=1e-13)
    for each in q:
        mobility = robot.closed.mobility(each)
        assert (mobility.dof, mobility.redundant, freedoms(robot, each)) == (1, 3, 1)
    np.testing.assert_allclose(robot.closed.jacobian(q) @ rates[..., None], 0, atol=1e-13)


def test_bennetts_linkage_is_assembled_and_driven() -> None:
    robot, q, rates = bennett(np.linspace(0.4, 2.6, 7))
    np.testing.assert_allclose(robot.closed.assemble(q[:, :1], guess=q[3] + 0.01), q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(robot.closed.velocities(q, np.ones(1)), rates, rtol=0, atol=1e-10)
    x, tau = np.array([0.7]), np.array([1.3])
    for each in q:
        a = robot.closed.accelerations(each, x, robot.closed.forward_dynamics(each, x, tau))[1]
        v = robot.closed.velocities(each, x)
        np.testing.assert_allclose(a, with_multipliers(robot, each, v, tau), rtol=0, atol=1e-9 * np.abs(a).max())


def test_four_hinges_in_space_that_are_not_bennetts_do_not_move() -> None:
    robot, q, _ = bennett(np.array(1.0))
    # Another hinge through the same point, but in another direction, closes there and nowhere else.
    tilted = robot.without_loop("joint4").with_frame("tilted", "link3", make_pose(from_rpy([0.1, 0.2, 0])))
    tilted = tilted.with_frame("tilted on base", "base", tilted.pose(q, "tilted"))
    tilted = tilted.with_loop("hinge", "tilted", "tilted on base")
    assert robot.closed.mobility(q).dof == 1 and tilted.closed.mobility(q).dof == 0 == freedoms(tilted, q)


def test_sarrus_linkage_goes_straight() -> None:
    """Two chains of three parallel hinges across each other carry a platform along one line; Gruebler counts 0."""
    solid = {"mass": 1.0, "inertia": np.eye(3) * 0.01}
    links = [torsor.Link("ground"), *(torsor.Link(name, **solid) for name in ("a1", "a2", "platform", "b1", "b2"))]
    across = make_pose(from_rpy([0, 0, np.pi / 2]))
    up = make_pose(p=[0, 0, 0.5])
    joints = [
        torsor.Joint("a1", "revolute", "ground", "a1", make_pose(p=[1, 0, 0]), axis=(0, 1, 0)),
        torsor.Joint("a2", "revolute", "a1", "a2", up, axis=(0, 1, 0)),
        torsor.Joint("a3", "revolute", "a2", "platform", up, axis=(0, 1, 0)),
        torsor.Joint("b1", "revolute", "ground", "b1", across @ make_pose(p=[1, 0, 0]), axis=(0, 1, 0)),
        torsor.Joint("b2", "revolute", "b1", "b2", up, axis=(0, 1, 0)),
    ]
    hinge = make_pose(from_rpy([-np.pi / 2, 0, 0]))  # its z is the y of the links
    frames = [
        torsor.Frame("b2 end", "b2", up @ hinge),
        torsor.Frame("hinge", "platform", make_pose(p=[-1, 0, 0]) @ across @ make_pose(p=[1, 0, 0]) @ hinge),
    ]
    robot = torsor.build("sarrus", links, joints, frames).with_loop("b3", "b2 end", "hinge").with_active(["a1"])
    turn = np.linspace(0.3, 1.3, 5)
    q = np.stack([turn, -2 * turn, turn, turn, -2 * turn], axis=-1)
    np.testing.assert_allclose(robot.closed.error(q), 0, atol=1e-14)
    for each in q:
        assert (robot.closed.mobility(each).dof, robot.closed.mobility(each).redundant, freedoms(robot, each)) == (
            1,
            1,
            1,
        )
    v = robot.closed.velocities(q, np.ones(1))
    np.testing.assert_allclose(v, np.tile([1.0, -2, 1, 1, -2], (5, 1)), rtol=0, atol=1e-11)
    straight = robot.jacobian(q, "platform") @ v[..., None]
    expected = np.zeros((5, 6))
    expected[:, 5] = -np.sin(turn)
    np.testing.assert_allclose(straight[..., 0], expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("parent", [1, 2], ids=["stephenson", "watt"])
def test_six_bars_have_one_freedom(parent: int) -> None:
    """A four-bar and two bars more: on its coupler (Stephenson's third), or on its rocker (Watt's second)."""
    bars = [
        torsor.MDHLink(-1, mass=1.0, active=1),
        torsor.MDHLink(0, d=0.4, mass=1.0),
        torsor.MDHLink(-1, d=1.0, mass=1.0),
        torsor.MDHLink(parent, gamma=0.6, d=0.5, mass=1.0),
        torsor.MDHLink(-1, d=1.8, gamma=0.2, mass=1.0),
    ]
    pins = [torsor.MDHLink(1, d=0.9, closes=7), torsor.MDHLink(3, d=0.8, closes=8)]
    ends = [torsor.MDHLink(2, d=0.8, joint=2), torsor.MDHLink(4, d=0.9, joint=2)]
    robot = torsor.from_mdh([*bars, *pins, *ends]).to(device="casadi")
    q = closed_near(robot, np.array([0.5, 0.24, 1.55, -0.5, 1.5]))
    assert (robot.closed.mobility(q).dof, robot.closed.mobility(q).redundant, freedoms(robot, q)) == (1, 6, 1)
    assert robot.closed.mobility().dof == 1


def test_a_parallelogram_can_go_two_ways_where_it_is_flat() -> None:
    rows = [torsor.MDHLink(-1, mass=1.0, active=1), torsor.MDHLink(0, d=0.5, mass=1.0)]
    rows += [torsor.MDHLink(-1, d=1.0, mass=1.0), torsor.MDHLink(1, d=1.0, closes=4)]
    robot = torsor.from_mdh([*rows, torsor.MDHLink(2, d=0.5, joint="fixed")])
    assert robot.closed.mobility(np.array([0.0, 0.0, 0.0])).dof == 2
    assert robot.closed.mobility(np.array([0.7, -0.7, 0.7])).dof == 1
    np.testing.assert_allclose(
        robot.closed.assemble([[0.3], [1.2]], guess=[0.7, -0.7, 0.7]), [[0.3, -0.3, 0.3], [1.2, -1.2, 1.2]]
    )


@pytest.mark.parametrize("kind", ["weld", "revolute", "prismatic", "cylindrical", "planar"])
def test_axes_that_point_the_opposite_way_are_not_closed(kind: str) -> None:
    robot, q, rng = chain(7, 16)
    robot = hold(robot, "loop", kind, robot.link_names[-1], robot.base.name, q, rng)
    (loop,) = robot.loops
    flipped = robot.without_loop("loop").with_frame(
        "turned", robot.base.name, robot.pose(q, loop.a) @ make_pose(from_rpy([3.0, 0, 0]))
    )
    flipped = flipped.with_loop("loop", loop.a, "turned", kind)
    assert np.abs(flipped.closed.error(q)).max() > 1.9

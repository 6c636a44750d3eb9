"""Compliant contact: closed forms of bounce, slope and rolling, energy, derivatives, and rejected input."""

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import Shape, simulate
from torsor.library.movers import build
from torsor.mechanism import Link
from torsor.simulation import Contact, rollout
from torsor.simulation.contact import contact_wrenches
from torsor.spatial import make_pose

G = 9.81


def body(shape: Shape, mass: float = 1.0, gravity: tuple[float, ...] = (0.0, 0.0, -G), inertia: float = 4e-3) -> Any:
    """A free body; a sphere of 0.1 m and 1 kg has the inertia 4e-3 kg m^2."""
    link = Link("body", mass, np.zeros(3), inertia * np.eye(3), shapes=(shape,))
    return build("body", [link], [], gravity=gravity, base="floating")


BALL = Shape("sphere", (0.1,))


def at(robot: Any, *p: float) -> Any:
    q = robot.neutral()
    q[:3] = p
    return q


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_restitution_is_that_of_hunt_and_crossley(exponent: float) -> None:
    robot, contact = body(BALL, gravity=(0.0, 0.0, 0.0)), Contact(exponent=exponent, stiffness=1e4, dissipation=0.4)
    speed = 1.5
    v0 = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -speed])
    bounce = simulate(robot, at(robot, 0, 0, 0.1), v0, 0.3, contact=contact, step=2e-4)
    e = bounce.v[-1, 5] / speed
    x = contact.dissipation * speed
    assert x * (1 + e) == pytest.approx(np.log((1 + x) / (1 - x * e)), abs=1e-6)
    assert 0.5 < e < 0.8
    assert (np.diff(bounce.kinetic_energy[-500:]) == 0).all()


def slope(angle: float) -> Shape:
    c, s = np.cos(angle), np.sin(angle)
    return Shape("plane", pose=make_pose(np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])))  # descends along x


@pytest.mark.parametrize("kind", ["sphere held", "box"])
def test_a_block_slides_with_g_sin_minus_mu_cos_and_creeps_within_the_bound(kind: str) -> None:
    angle, mu = 0.4, 0.2
    box = Shape("box", (0.4, 0.4, 0.1), friction=mu)
    robot = body(box, inertia=0.02) if kind == "box" else body(BALL, inertia=1e6)
    height = 0.05 if kind == "box" else 0.1
    ground = replace(slope(angle), friction=0.1)
    R = ground.pose[:3, :3]
    q0 = robot.neutral()
    q0[:3] = R @ [0, 0, height - 1e-4]
    q0[3:7] = [0, np.sin(angle / 2), 0, np.cos(angle / 2)]
    given = None if kind == "box" else mu
    contact = Contact(ground, friction=given, slip=1e-2, stiffness=1e4, exponent=1.0, dissipation=5.0)
    down = R[:, 0]
    slide = simulate(robot, q0, None, 0.5, contact=contact, step=5e-4)
    speed = slide.v[:, 3:] @ [1.0, 0, 0]  # own axes: x is down the slope
    rate = (speed[-1] - speed[-201]) / 0.1
    assert rate == pytest.approx(G * (np.sin(angle) - mu * np.cos(angle)), rel=1e-3)
    sticky = Contact(ground, friction=0.8, slip=1e-2, stiffness=1e4, exponent=1.0, dissipation=5.0)
    stuck = simulate(robot, q0, None, 0.5, contact=sticky, step=5e-4)
    r = np.tan(angle) / 0.8
    creep = (stuck.q[-1, :3] - stuck.q[-201, :3]) @ down / 0.1
    assert creep == pytest.approx(1e-2 * r / np.sqrt(1 - r**2), rel=1e-3)


def test_a_sliding_ball_rolls_with_5_of_7_of_its_speed() -> None:
    robot = body(BALL)
    contact = Contact(friction=0.3, slip=1e-3, stiffness=1e4, exponent=1.0)
    v0 = [0.0, 0.0, 0.0, 0.7, 0.0, 0.0]
    roll = simulate(robot, at(robot, 0, 0, 0.1 - G / 1e4), v0, 0.2, contact=contact, step=2e-4)
    velocity = robot.velocity(roll.q[-1], roll.v[-1], "body", axes="aligned")
    radius = 0.1 - G / 1e4 / 2  # from the centre to the middle of the dent; 2/7 of the speed is lost with radius = 0.1
    assert velocity[3] == pytest.approx(0.7 / (1 + 4e-3 / radius**2), rel=1e-4)
    assert velocity[1] * radius == pytest.approx(velocity[3], rel=1e-4)


def test_a_ball_rolls_down_a_slope_as_its_inertia_says() -> None:
    robot, angle = body(BALL), 0.2
    ground = slope(angle)
    contact = Contact(ground, friction=0.8, slip=1e-2, stiffness=1e4, exponent=1.0, dissipation=5.0)
    q0 = at(robot, *(ground.pose[:3, :3] @ [0, 0, 0.1 - G * np.cos(angle) / 1e4]))
    roll = simulate(robot, q0, None, 0.3, contact=contact, step=5e-4)
    speed = np.linalg.norm(roll.v[:, 3:], axis=1)
    share = 1 + 4e-3 / (0.1 - G * np.cos(angle) / 1e4 / 2) ** 2  # 7/5 for a rigid ball
    assert (speed[-1] - speed[-201]) / 0.1 == pytest.approx(G * np.sin(angle) / share, rel=1e-4)


def carts(count: int) -> Any:
    """Balls on rails along x, that touch their neighbours."""
    ball = Shape("sphere", (0.05,))
    links = [Link(f"ball{k}", 1.0, np.zeros(3), 1e-3 * np.eye(3), shapes=(ball,)) for k in range(count)]
    joints = [
        torsor.mechanism.Joint(f"rail{k}", "prismatic", "base", f"ball{k}", axis=np.array([1.0, 0.0, 0.0]))
        for k in range(count)
    ]
    return build("carts", [Link("base"), *links], joints, gravity=(0.0, 0.0, 0.0))


def test_newtons_cradle_passes_momentum_on_and_keeps_energy_without_dissipation() -> None:
    robot = carts(4)
    pairs = [(f"ball{k}", f"ball{k + 1}") for k in range(3)]
    contact = Contact(False, pairs=pairs, stiffness=1e8, dissipation=0.0, friction=0.0)
    q0 = np.array([-0.002, 0.1, 0.202, 0.304])  # gaps: a chain of collisions of two
    swing = simulate(robot, q0, [1.0, 0, 0, 0], 0.02, contact=contact, step=1e-5, record=1e-4)
    assert np.abs(swing.v.sum(axis=1) - 1).max() < 1e-12
    assert swing.v[-1] == pytest.approx([0, 0, 0, 1.0], abs=1e-6)
    assert (swing.v[-1] ** 2).sum() == pytest.approx(1.0, abs=1e-6)


def on_base(*shapes: Shape) -> torsor.Robot:
    """A ball of 1 kg that is free to move up and down above the shapes of the base."""
    ball = Link("ball", 1.0, np.zeros(3), 4e-3 * np.eye(3), shapes=(Shape("sphere", (0.1,)),))
    up = torsor.mechanism.Joint("up", "prismatic", "base", "ball", axis=np.array([0.0, 0.0, 1.0]))
    return build("scene", [Link("base", shapes=shapes), ball], [up])


@pytest.mark.parametrize("kind", ["compliant", "hard"])
def test_a_body_rests_on_one_ground_at_the_depth_of_one_spring(kind: str) -> None:
    settings: dict[str, Any] = {"kind": kind, "stiffness": 1e4} | ({} if kind == "hard" else {"exponent": 1.0})
    wall = Shape("plane", pose=make_pose(np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]]), [-1.0, 0, 0]))
    lower = Shape("plane", name="floor", pose=make_pose(np.eye(3), [0, 0, -0.2]))
    table = Shape("box", (1.0, 1.0, 0.1), name="table", pose=make_pose(np.eye(3), [0, 0, -0.05]))
    for shapes, height, pairs in (
        ((), 0.0, ()),
        ((Shape("plane"),), 0.0, ()),  # the floor of an MJCF scene
        ((lower,), -0.2, ()),
        ((lower,), -0.2, [("ball", "floor")]),
        ((lower,), -0.2, [("floor", "ball")]),
        ((wall,), 0.0, ()),
        ((lower, table), 0.0, [("table", "ball")]),
        ((table,), 0.0, ()),  # its top is the plane z = 0
        ((table,), 0.0, [("table", "ball")]),
        ((Shape("plane", name="floor"), Shape("plane"), lower), 0.0, ()),
    ):
        robot, contact = on_base(*shapes), Contact(pairs=pairs, **settings)
        rest = simulate(robot, [height + 0.1], duration=2.0, contact=contact)
        assert rest.q[-1, 0] == pytest.approx(height + 0.1 - 9.81 / 1e4, abs=1e-7)
    alone = Contact(ground=False, pairs=[("table", "ball")], **settings).touches(on_base(table))
    assert [(first.name, second.name) for first, second in alone] == [("table", "ball/0")]
    other = replace(table, contype=2, conaffinity=2)  # a mask that no shape of the ball has
    assert [first.name for first, _ in Contact(Shape("plane"), **settings).touches(on_base(other))] == ["ground"]
    named = Contact(False, pairs=[("table", "ball")], **settings).touches(on_base(other))
    assert [first.name for first, _ in named] == ["table"]
    with refused(what="two grounds", allowed="one", fix="ground=True"):
        Contact(Shape("plane"), kind=kind).touches(on_base(lower))


SHAPES = (
    Shape("sphere", (0.1,)),
    Shape("capsule", (0.05, 0.3)),
    Shape("box", (0.2, 0.3, 0.1)),
    Shape("cylinder", (0.1, 0.2)),
    Shape("ellipsoid", (0.1, 0.2, 0.15)),
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda each: each.shape)
def test_power_of_contact_is_the_loss_of_elastic_energy_or_less(shape: Shape) -> None:
    robot, contact = body(shape), Contact(stiffness=1e4, exponent=1.0)
    elastic = Contact(stiffness=1e4, exponent=1.0, dissipation=0.0, friction=0.0)
    rng = np.random.default_rng(3)
    functions = [contact_wrenches(robot, each) for each in (contact, elastic)]
    touched = 0
    for _ in range(50):
        q = np.append(rng.normal(size=3) * 0.05, rng.normal(size=4))
        q[3:] /= np.linalg.norm(q[3:])
        v = rng.normal(size=6)
        full, spring = (each(0, q, v).full()[0] @ v for each in functions)
        assert full <= spring + 1e-9
        touched += spring != 0
    assert touched > 20


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES[:4], ids=lambda each: each.shape)
def test_energy_never_grows_from_random_states(shape: Shape) -> None:
    robot = body(shape)
    contact = Contact(stiffness=2e4, exponent=1.0, friction=0.5, slip=0.05)
    rng = np.random.default_rng(0)
    q0 = np.concatenate([np.tile([0, 0, 0.4], (5, 1)), rng.normal(size=(5, 4))], axis=1)
    fall = simulate(robot, q0, 2 * rng.normal(size=(5, 6)), 1.0, contact=contact, step=1e-3)
    touching = np.abs(fall.external).max(axis=(-1, -2)) > 0
    free = ~touching  # no elastic energy: kinetic and potential energy are all
    for energy, mask in zip(fall.energy, free, strict=True):
        assert (np.diff(energy[mask]) < 1e-6 * energy[0]).all()
    assert touching.any(axis=1).all()
    assert np.isfinite(fall.energy).all()


def test_gradients_of_a_rollout_go_through_contact() -> None:
    robot, contact = body(BALL), Contact(stiffness=1e4, exponent=1.5, slip=0.1)
    start, v0 = at(robot, 0, 0, 0.11), np.array([0.3, 0.1, 0.2, 0.5, -0.2, -1.0])

    def end(v: Any) -> float:
        return float(rollout(robot, start, v, 0.05, contact=contact, step=5e-3).q[-1, 0])

    run = rollout(robot, start, v0, 0.05, contact=contact, step=5e-3)
    bars = np.zeros_like(run.q)
    bars[-1, 0] = 1.0
    slopes = [(end(v0 + 1e-6 * e) - end(v0 - 1e-6 * e)) / 2e-6 for e in np.eye(6)]
    assert run.vjp(bars)[1] == pytest.approx(slopes, abs=1e-8)
    function = contact_wrenches(robot, contact)
    jacobian = ca.Function("j", function.mx_in(), [ca.jacobian(function(*function.mx_in()), function.mx_in()[1])])
    assert np.isfinite(jacobian(0, at(robot, 0, 0, 0.5), v0).full()).all()  # far from the ground, too


def test_external_of_the_trajectory_is_the_weight_at_rest_and_adds_to_what_is_given() -> None:
    robot = body(BALL)
    contact = Contact(stiffness=1e4, exponent=1.0, dissipation=5.0)
    push = np.zeros((1, 6))
    push[0, 5] = 1.0
    q0 = at(robot, 0, 0, 0.1 - (G - 1.0) / 1e4)
    rest = simulate(robot, q0, None, 0.1, contact=contact, external=push)
    assert rest.external[-1, 0, 5] == pytest.approx(G, rel=1e-6)
    assert np.abs(rest.a).max() < 1e-6


def test_contact_with_bad_input_is_refused() -> None:
    robot = body(BALL)
    for name in ("stiffness", "slip"):
        for value in (0.0, -1.0, np.nan):
            with refused(argument=name):
                Contact(**{name: value})
    for name, value in (
        ("friction", -0.1),
        ("dissipation", np.nan),
        ("kind", "soft"),
        ("ground", 3),
        ("exponent", 0.5),
    ):
        with refused(argument=name):
            Contact(**{name: value})  # type: ignore[arg-type]
    with refused(fix="with_shapes"):
        simulate(torsor.library.two_link(), contact=Contact())
    with refused(what="no pair of shapes can touch"):
        simulate(robot, contact=Contact(False))
    with refused(value="foot"):
        simulate(robot, contact=Contact(shapes="foot"))
    with refused(argument="contact", allowed="a torsor.simulation.Contact"):
        simulate(robot, contact=3)  # type: ignore[arg-type]
    with refused(argument="pairs"):
        simulate(robot, contact=Contact(pairs=["foot"]))  # type: ignore[list-item]
    with refused(what="move together"):
        simulate(robot, contact=Contact(pairs=[("body", "body")]))
    with refused(what="'ground' (cylinder) and 'body/0' (box)"):
        simulate(body(SHAPES[2]), contact=Contact(Shape("cylinder", (1, 1))))


def test_overlap_at_the_start_names_the_shapes() -> None:
    robot = body(BALL)
    with refused(what="shapes overlap at the start: 'ground' and 'body/0' by 50 mm"):
        simulate(robot, at(robot, 0, 0, 0.05), contact=Contact())


def test_a_step_too_long_warns_with_the_largest_stable_one() -> None:
    robot = body(BALL)
    with warned(what="too long for the contact stiffness: the largest stable step is about 5.3e-05 s"):
        simulate(robot, at(robot, 0, 0, 0.2), duration=1e-3, contact=Contact(slip=1e-3), step=1e-3)


def test_a_mesh_with_many_vertices_touches_with_few_and_states_its_error(tmp_path: Any) -> None:
    points = np.random.default_rng(2).normal(size=(200, 3))
    points *= 0.2 / np.linalg.norm(points, axis=1)[:, None]
    faces = (f"f {k} {k + 1} {k + 2}\n" for k in range(1, 199))
    path = tmp_path / "ball.obj"
    path.write_text("".join(f"v {x} {y} {z}\n" for x, y, z in points) + "".join(faces))
    robot = body(Shape("mesh", (1.0, 1.0, 1.0), name="ball", mesh="ball.obj", path=str(path))).to(device="casadi")
    with warned(what="hulls are reduced to 32 vertices", fix="robot.with_shapes"):
        run = simulate(robot, at(robot, 0, 0, 0.5), duration=0.01, contact=Contact(), step=5e-3)
    assert 5e-3 < run.settings["contact"]["hull_error"] < 0.03

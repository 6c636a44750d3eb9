"""Terrains: planes as functions, heights of steps, blocks and tables, rest on curved ground, and rejected input."""

import pickle
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

import torsor
from gpu_on_cpu import ProcessorDevice
from refusals import refused, warned
from torsor import Shape, simulate
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.mechanism import Joint, Link
from torsor.robot.load import build
from torsor.simulation import Contact, height_field, rollout, rough_ground, steps
from torsor.simulation.contact import friction_of
from torsor.spatial import axis_frame, from_rpy, make_pose

G = 9.81
SHAPES = (
    Shape("sphere", (0.1,)),
    Shape("capsule", (0.05, 0.3)),
    Shape("box", (0.2, 0.3, 0.1)),
    Shape("cylinder", (0.1, 0.2)),
    Shape("ellipsoid", (0.1, 0.2, 0.15)),
)
KINDS: dict[str, dict[str, Any]] = {
    "hard": {"kind": "hard", "stiffness": 1e5},
    "compliant": {"stiffness": 1e5, "exponent": 1.0, "slip": 1e-3},
}
METHODS = {"hard": "rk4", "compliant": "linearly_implicit"}


def body(shape: Shape) -> torsor.Robot:
    link = Link("body", 1.0, np.zeros(3), np.diag([4e-3, 5e-3, 3e-3]), shapes=(shape,))
    return build("body", [link], [], base="floating").to(device="casadi")


def terrain(height: Any) -> ca.Function:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    return ca.Function("height", [x, y], [height(x, y)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda each: each.shape)
def test_a_linear_height_is_a_plane(shape: Shape, kind: str) -> None:
    angle = 0.3
    c, s = np.cos(angle), np.sin(angle)
    plane = Shape("plane", pose=make_pose(np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]), [0, 0, 0.1]))
    robot, rng = body(shape), np.random.default_rng(1)
    q0, v0 = np.append([0.1, 0.2, 0.4], rng.normal(size=4)), rng.normal(size=6)
    runs = [
        rollout(robot, q0, v0, 0.3, contact=Contact(ground, **KINDS[kind]), method=METHODS[kind], step=2e-3)
        for ground in (plane, terrain(lambda x, y: 0.1 - np.tan(angle) * x))
    ]
    assert np.abs(runs[0].v[-1] - v0).max() > 1.0
    np.testing.assert_allclose(runs[1].q, runs[0].q, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_ball_comes_to_rest_at_the_bottom_of_a_bowl(kind: str) -> None:
    """A frictionless ball swings in the bowl, and rests at its bottom at the depth of a spring."""
    robot = body(SHAPES[0])
    contact = Contact(terrain(lambda x, y: x**2 + y**2), friction=0.0, **KINDS[kind])
    rest = rollout(robot, [0.1, 0.05, 0.13, 0, 0, 0, 1], np.zeros(6), 1.0, contact=contact, method=METHODS[kind])
    assert np.abs(rest.q[:, :2]).max() < 0.12  # it stays in the bowl
    level = rollout(robot, [0, 0, 0.1, 0, 0, 0, 1], np.zeros(6), 1.0, contact=contact, method=METHODS[kind])
    np.testing.assert_allclose(level.q[-1, :3], [0, 0, 0.1 - G / 1e5], rtol=0, atol=1e-6)


def test_a_ball_lies_on_each_step_of_stairs() -> None:
    robot = body(SHAPES[0])
    contact = Contact(steps(0.1, 0.3, count=3), **KINDS["compliant"])
    for x, height in ((-0.2, 0.0), (0.15, 0.1), (0.45, 0.2), (0.75, 0.3), (5.0, 0.3)):
        start = [x, 0, height + 0.1, 0, 0, 0, 1]
        rest = simulate(robot, start, None, 0.3, contact=contact, method="linearly_implicit", step=2e-3)
        assert rest.q[-1, 2] == pytest.approx(height + 0.1 - G / 1e5, abs=1e-6)


def test_heights_of_blocks_are_uniform_continuous_and_the_same_in_float32() -> None:
    ground, rng = rough_ground(0.05, seed=3), np.random.default_rng(0)
    cells = rng.integers(-5000, 5000, size=(4000, 2)) * 0.3 + 0.1
    kernel, coarse = (torsor.compile(ground, dtype=dtype) for dtype in ("float64", "float32"))
    z = kernel(cells[:, 0], cells[:, 1])
    assert abs(z.mean() - 0.025) < 1e-3 and abs(z.std() - 0.05 / np.sqrt(12)) < 1e-3
    assert z.min() >= 0 and z.max() <= 0.05 and len(np.unique(z.round(9))) > 300
    near = cells[np.abs(cells).max(axis=1) < 100]
    single = coarse(near[:, 0].astype(np.float32), near[:, 1].astype(np.float32))
    np.testing.assert_allclose(single, kernel(near[:, 0], near[:, 1]), rtol=0, atol=1e-6)
    x = np.linspace(-1, 1, 200_001)
    assert np.abs(np.diff(kernel(x, 0.7 * x))).max() < 1e-5 * 0.05 / 0.04 * 2  # ramps are the steepest parts


needs_tables = pytest.mark.skipif(
    ca.CasadiMeta.version().startswith("3.6."), reason="CasADi 3.6 has no calls in scalar functions"
)
HEIGHTS = np.random.default_rng(4).uniform(-0.2, 0.3, size=(50, 80))
SIZE, CENTER = np.array([8.0, 5.0]), np.array([1.0, 2.0])


@needs_tables
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_heights_between_those_of_a_table_are_bilinear_and_continue_outside(dtype: str) -> None:
    axes = [c + np.linspace(-s / 2, s / 2, n) for c, s, n in zip(CENTER, SIZE, HEIGHTS.shape[::-1], strict=True)]
    x, y = np.random.default_rng(0).uniform(CENTER - SIZE, CENTER + SIZE, size=(5000, 2)).T
    inside = [np.clip(each, axis[0], axis[-1]) for each, axis in zip((y, x), reversed(axes), strict=True)]
    truth = RegularGridInterpolator(axes[::-1], HEIGHTS)(np.stack(inside, axis=-1))
    kernel = torsor.compile(height_field(HEIGHTS, SIZE, CENTER), dtype=dtype)
    found = kernel(x.astype(dtype), y.astype(dtype))
    # In float32, the place in the field is rounded, where slopes are up to 5.
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-13 if dtype == "float64" else 2e-5)
    some = zip(x[:9].astype(dtype), y[:9].astype(dtype), strict=True)
    assert [kernel(*place) for place in some] == found[:9].tolist()


@needs_tables
def test_the_gradient_of_a_field_is_that_of_its_cells() -> None:
    field, (x, y) = height_field(HEIGHTS, SIZE, CENTER), (ca.SX.sym("x"), ca.SX.sym("y"))
    z = field(x, y)
    slopes = torsor.compile(ca.Function("slopes", [x, y], [ca.jacobian(z, ca.vertcat(x, y))]))
    at = np.random.default_rng(1).uniform(CENTER - SIZE / 2, CENTER + SIZE / 2, size=(200, 2))
    kernel, h = torsor.compile(field), 1e-6
    cells = (at - CENTER + SIZE / 2) * (np.array(HEIGHTS.shape[::-1]) - 1) / SIZE % 1
    at = at[(np.abs(cells - 0.5) < 0.49).all(axis=1)]  # within a cell, heights are linear along x and along y
    for axis, step in enumerate(h * np.eye(2)):
        slope = (kernel(*(at + step).T) - kernel(*(at - step).T)) / (2 * h)
        np.testing.assert_allclose(slopes(*at.T)[:, 0, axis], slope, rtol=0, atol=1e-8)
    assert not slopes(100.0, -100.0).any()


@needs_tables
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES[:3], ids=lambda each: each.shape)
def test_motions_on_fields_are_those_on_planes_and_equal_expressions(shape: Shape, kind: str) -> None:
    """The heights at the corners of cells, z = a x + b y + c x y, determine those between them."""
    robot, rng = body(shape), np.random.default_rng(1)
    x, y = (np.linspace(c - s / 2, c + s / 2, n) for c, s, n in zip(CENTER, SIZE, (33, 25), strict=True))
    starts = np.array([[0.1, 0.2, 0.4, *rng.normal(size=4)] for _ in range(3)])
    speeds = rng.normal(size=(3, 6))

    def motion(ground: Any, q: Any = starts, v: Any = speeds) -> Any:
        return rollout(robot, q, v, 0.3, contact=Contact(ground, **KINDS[kind]), method=METHODS[kind], step=2e-3)

    s = np.sin(0.2)
    plane = Shape(
        "plane", pose=make_pose(np.array([[np.cos(0.2), 0, s], [0, 1, 0], [-s, 0, np.cos(0.2)]]), [0, 0, 0.1])
    )
    sloped = np.tile(0.1 - np.tan(0.2) * x, (len(y), 1))
    runs = [motion(ground) for ground in (height_field(sloped, SIZE, CENTER), plane)]
    assert np.abs(runs[0].v[:, -1] - speeds).max() > 1.0
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-10)
    bent = 0.05 * x - 0.1 * y[:, None] + 0.1 * x * y[:, None]
    field = height_field(bent, SIZE, CENTER)
    many, same = motion(field), motion(terrain(lambda x, y: 0.05 * x - 0.1 * y + 0.1 * x * y))
    np.testing.assert_allclose(many.q, same.q, rtol=0, atol=1e-10)
    assert np.array_equal(motion(field, starts[1], speeds[1]).q, many.q[1])


@needs_tables
@pytest.mark.parametrize("kind", KINDS)
def test_motions_on_fields_are_the_same_on_a_gpu(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = ProcessorDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: emulated)
    contact = Contact(height_field(HEIGHTS / 5, SIZE, CENTER), **KINDS[kind])
    settings: dict[str, Any] = {"contact": contact, "method": METHODS[kind], "step": 2e-3}
    starts, v0 = (
        np.array([[0.3 * k, 1.0, 0.2, 0, 0, 0, 1] for k in range(5)]),
        np.array([0.3, 0.1, 0.2, 0.5, 0.4, -1.0]),
    )
    robot = body(SHAPES[0]).to(device="cpu")
    wanted, found = (rollout(each, starts, v0, 0.1, **settings) for each in (robot, robot.to(device="cuda")))
    assert np.abs(wanted.v[:, -1] - v0).max() > 0.1
    np.testing.assert_allclose(found.q, wanted.q, rtol=0, atol=1e-10)
    single = rollout(robot.to(device="cuda", dtype="float32"), starts, v0, 0.1, **settings)
    np.testing.assert_allclose(single.q, wanted.q, rtol=0, atol=1e-3)
    bars = np.zeros_like(wanted.q)
    bars[:, -1, 0] = 1.0
    np.testing.assert_allclose(found.vjp(bars)[1], wanted.vjp(bars)[1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("ground", ["waves", pytest.param("field", marks=needs_tables)])
def test_gradients_go_through_terrain(ground: str) -> None:
    robot, v0 = body(SHAPES[0]), np.array([0.3, 0.1, 0.2, 0.5, -0.2, -1.0])
    waves = terrain(lambda x, y: 0.1 * ca.sin(3 * x) * ca.cos(2 * y))
    field = height_field(HEIGHTS[:4, :4] / 5, SIZE / 4, (0.05, 0.1))
    contact = Contact(waves if ground == "waves" else field, stiffness=1e4)
    settings: dict[str, Any] = {"contact": contact, "method": "linearly_implicit", "step": 5e-3}

    def end(v: Any) -> float:
        return float(rollout(robot, [0, 0, 0.11, 0, 0, 0, 1], v, 0.05, **settings).q[-1, 0])

    run = rollout(robot, [0, 0, 0.11, 0, 0, 0, 1], v0, 0.05, **settings)
    bars = np.zeros_like(run.q)
    bars[-1, 0] = 1.0
    slopes = [(end(v0 + 1e-6 * e) - end(v0 - 1e-6 * e)) / 2e-6 for e in np.eye(6)]
    assert run.vjp(bars)[1] == pytest.approx(slopes, abs=1e-8)


SCENE = """<mujoco>
<asset><hfield name="hills" nrow="5" ncol="7" size="2 1 0.3 0.1" elevation="{elevation}"/></asset>
<worldbody>
  <body pos="1 2 0.3" euler="10 20 90">
    <geom name="hills" type="hfield" hfield="hills" pos="0.1 0 0" friction="0.5"/>
  </body>
  <body name="ball" pos="0.8 2.2 0.7"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
</worldbody>
</mujoco>"""


def scene(heights: Any, pose: Any) -> torsor.Robot:
    """A ball above a height field with edges of 4 m and 2 m on the base."""
    field = Shape("height field", (4.0, 2.0), pose, name="hills", heights=heights)
    links = [Link("base", shapes=(field,)), Link("ball", 1.0, inertia=4e-3 * np.eye(3), shapes=(SHAPES[0],))]
    return build("scene", links, [torsor.mechanism.Joint("free", "free", "base", "ball")])


@needs_tables
def test_height_fields_of_mjcf_are_ground_at_their_pose(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    rows = np.random.default_rng(5).random((5, 7))
    text = SCENE.format(elevation=" ".join(map(str, rows.ravel())))
    (tmp_path / "scene.xml").write_text(text)
    robot = torsor.load(tmp_path / "scene.xml")
    (field,) = robot.base.shapes
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    geom = model.geom("hills").id
    R, p = data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom]
    np.testing.assert_allclose(field.pose[:3], np.column_stack([R, p]), rtol=0, atol=1e-12)
    x, y = np.linspace(-2, 2, 7), np.linspace(-1, 1, 5)
    for i, j in ((1, 1), (2, 5), (3, 3)):  # within the field, rays from above meet the vertices
        above = R @ [x[j] + 1e-9, y[i] + 1e-9, 1.0] + p
        ray = mujoco.mj_ray(model, data, above, -R[:, 2], None, 1, -1, np.zeros(1, np.int32))
        assert 1.0 - ray == pytest.approx(field.heights[i, j], abs=1e-6)
    contact = Contact(**KINDS["compliant"])
    (touch,) = contact.touches(robot)
    assert (touch.first.name, friction_of(touch, contact)) == ("hills", 1.0)  # of the ball, which is larger
    own, contact = scene(field.heights, field.pose), Contact(friction=0.6, **KINDS["compliant"])
    q0 = robot.postures["default"]
    found, same = (
        rollout(each, q0, np.zeros(6), 0.3, contact=contact, method=METHODS["compliant"]) for each in (robot, own)
    )
    np.testing.assert_allclose(found.q, same.q, rtol=0, atol=1e-10)


@needs_tables
@pytest.mark.parametrize("kind", KINDS)
def test_a_ball_that_comes_in_under_a_field_from_its_side_falls_on(kind: str) -> None:
    field = Shape("height field", (2.0, 2.0), heights=np.zeros((3, 3)))
    links = [Link("base", shapes=(field,)), Link("ball", 1.0, np.zeros(3), 1e-3 * np.eye(3), shapes=(SHAPES[0],))]
    robot = build("ball", links, [Joint("free", "free", "base", "ball")]).to(device="casadi")
    q = robot.neutral()
    q[[0, 2]] = 1.3, 0.3
    fall = simulate(
        robot, q, [0, 0, 0, -1.0, 0, 0], 0.5, contact=Contact(**KINDS[kind]), step=5e-3, method=METHODS[kind]
    )
    assert fall.q[-1, [0, 2]] == pytest.approx([0.8, 0.3 - G * 0.5**2 / 2], abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_of_linear_heights_is_a_plane_within_its_borders(kind: str) -> None:
    rng = np.random.default_rng(6)
    pose = make_pose(from_rpy([0.2, -0.1, 0.7]), [0.3, -0.2, 0.1])
    x, y = np.linspace(-2, 2, 21), np.linspace(-1, 1, 11)
    robot = scene(0.2 * x - 0.1 * y[:, None], pose)
    normal = np.array([-0.2, 0.1, 1.0]) / np.sqrt(1.05)
    plane = Shape("plane", pose=pose @ make_pose(axis_frame(normal)))
    start = pose @ [0.1, 0.2, 0.25, 1.0]
    motions = [
        rollout(each, [*start[:3], 0, 0, 0, 1], rng_v, 0.3, contact=Contact(**KINDS[kind]), method=METHODS[kind])
        for rng_v in [rng.normal(size=6)]
        for each in (robot, robot.with_shapes("base", [plane]))
    ]
    assert np.abs(motions[0].v[-1] - motions[0].v[0]).max() > 1.0
    np.testing.assert_allclose(motions[0].q, motions[1].q, rtol=0, atol=1e-10)
    beside = pose @ [2.05, 0.2, 0.25, 1.0]
    fall = rollout(robot, [*beside[:3], 0, 0, 0, 1], np.zeros(6), 0.3, contact=Contact(**KINDS[kind]))
    assert fall.q[-1, 2] == pytest.approx(beside[2] - G / 2 * 0.3**2, abs=1e-9)


def test_height_fields_are_saved_as_toml_and_have_no_distances(tmp_path: Path) -> None:
    robot = scene(HEIGHTS, np.eye(4))
    robot.save(tmp_path / "scene.toml")
    assert torsor.load(tmp_path / "scene.toml").base == robot.base
    assert pickle.loads(pickle.dumps(robot)).base == robot.base
    for suffix in (".urdf", ".sdf", ".xml"):
        with warned(what="cannot express height fields (hills)"):
            robot.save(tmp_path / f"scene{suffix}")
    assert not robot.shapes.distances(robot.neutral()).pairs
    with refused(what="height field, which has no distances"):
        robot.shapes.distances(robot.neutral(), [("hills", "ball")])
    for wrong in ({"heights": None}, {"heights": np.zeros(4)}, {"heights": [[0.0, 1.0], [np.inf, 0.0]]}):
        with refused(argument="heights"):
            Shape("height field", (1.0, 1.0), **wrong)
    with refused(what="a sphere has `heights`"):
        Shape("sphere", (1.0,), heights=np.zeros((2, 2)))


def test_other_shapes_may_be_called_ground() -> None:
    table = Shape("box", (1.0, 1.0, 0.5), make_pose(p=[0, 0, 0.25]), name="ground")
    links = [Link("base", shapes=(table,)), Link("ball", 1.0, inertia=4e-3 * np.eye(3), shapes=(SHAPES[0],))]
    robot = build("scene", links, [torsor.mechanism.Joint("free", "free", "base", "ball")])
    contact = Contact(terrain(lambda x, y: 0.1 * x), **KINDS["compliant"])
    rest = rollout(robot, [0, 0, 0.6, 0, 0, 0, 1], np.zeros(6), 0.3, contact=contact, method="linearly_implicit")
    assert rest.q[-1, 2] == pytest.approx(0.6 - G / 1e5, abs=1e-6)


def test_wrong_terrains_are_refused() -> None:
    x = ca.SX.sym("x")
    with refused(argument="ground", what="takes [(1, 1)]", allowed="x and y"):
        Contact(ca.Function("line", [x], [x]))
    X, Y = ca.MX.sym("X"), ca.MX.sym("Y")
    table = ca.interpolant("table", "linear", [[0.0, 1.0], [0.0, 1.0]], [0.0, 1.0, 2.0, 3.0])
    with refused(argument="ground", what="cannot be expanded", fix="CasADi operations"):
        Contact(ca.Function("table", [X, Y], [table(ca.vertcat(X, Y))]))
    floor = [Link("base", shapes=(Shape("plane", name="floor"),)), Link("ball", 1.0, shapes=(SHAPES[0],))]
    up = torsor.mechanism.Joint("up", "prismatic", "base", "ball", axis=np.array([0.0, 0, 1]))
    with refused(what="two grounds"):
        simulate(build("scene", floor, [up]), contact=Contact(steps(0.1, 0.3)))
    for heights, found in ((np.zeros(4), "(4,)"), (np.zeros((1, 5)), "(1, 5)"), ([[0, 1], [2, np.nan]], "nan")):
        with refused(argument="heights", what=found):
            height_field(heights, (1.0, 1.0))
    with refused(argument="size", allowed="positive"):
        height_field(np.zeros((2, 2)), (1.0, 0.0))
    for call in (lambda: steps(0.1, 0.3, ramp=0.2), lambda: rough_ground(0.05, ramp=0.0)):
        with refused(argument="ramp"):
            call()

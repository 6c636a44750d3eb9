"""Terms of motion problems agree with the robot's own methods for the same motion."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import Shape
from torsor.motion import (
    Accelerations,
    Capsule,
    Clearance,
    Effort,
    ElectricalEnergy,
    End,
    ExpressionCost,
    Follow,
    FramePosition,
    FrameVelocity,
    HalfSpace,
    Jerk,
    Jerks,
    Manipulability,
    MechanicalEnergy,
    MotionProblem,
    Orientation,
    Path,
    Phase,
    Positions,
    Powers,
    Reaction,
    Reactions,
    Reference,
    Sphere,
    Start,
    TorqueRate,
    TorqueRates,
    Torques,
    Unactuated,
    Velocities,
)
from torsor.motion.terms.distances import segment_distance
from torsor.spatial import make_pose

ARM = torsor.library.stanford().with_gravity([0.0, 0.0, -9.81])
HAND = "link6"


class Sample:
    """Values of the rows of terms at a random motion, with the motion itself."""

    def __init__(self, robot, rows, costs=(), **options):
        self.robot = robot
        options = {"points": 6, "nodes": 4} | options
        cost = list(costs) or [ExpressionCost(function=lambda node: ca.SX(1))]
        problem = MotionProblem(robot, Phase((0.5, 2.0), **options), cost, rows)
        self.program = problem.program
        self.x = 0.5 + 0.3 * np.sin(np.arange(self.program.n))
        self.cost, scaled = self.program.value(self.x)
        self.values = scaled * self.program.scales
        self.batch = next((batch for batch in self.program.batches if batch.m), self.program.batches[0])

    def rows(self, title):
        """Return the rows (K, m) of a term."""
        kept = [k for k, row in enumerate(self.program.rows) if row.title == title]
        return self.values[kept].reshape(len(self.batch.s), -1)

    def motion(self, s=None):
        """Return q, v, a, j."""
        return self.program.layout.phases[0].profiles(self.x, self.batch.s if s is None else s, 4)

    def integral(self, values):
        """Return an integral over the phase of values of a motion."""
        phase_layout = self.program.layout.phases[0]
        s, weights = phase_layout.phase.integral(0.0, 1.0)
        return phase_layout.seconds(self.x) * weights @ values(*self.motion(s))


def near(a, b):
    return np.abs(np.asarray(a) - b).max() < 1e-11 * max(1.0, np.abs(b).max())


def test_limits_are_about_what_the_robot_says():
    rows = [
        Positions(lower=-9.0, upper=9.0),
        Velocities(upper=9.0),
        Accelerations(upper=9.0),
        Jerks(upper=9.0),
        Torques(upper=9.0),
        TorqueRates(upper=9.0),
        Powers(upper=9.0),
        Reactions(force=1.0, moment=1.0),
        Unactuated(names=["joint2"], at=[0.0, 1 / 3, 2 / 3, 1.0]),
    ]
    sample = Sample(ARM, rows)
    q, v, a, j = sample.motion()
    tau, rate = ARM.force_rate(q, v, a, j)
    wrench = ARM.joint_wrenches(q, v, a)
    for title, wanted in {
        "Positions": q,
        "Velocities": v,
        "Accelerations": a,
        "Jerks": j,
        "Torques": ARM.inverse_dynamics(q, v, a),
        "TorqueRates": rate,
        "Powers": tau * v,
        "Unactuated": tau[:, 1:2],
        "Reactions": np.stack([(wrench[..., 3:] ** 2).sum(-1), (wrench[..., :3] ** 2).sum(-1)], -1).reshape(4, -1),
    }.items():
        assert near(sample.rows(title), wanted), title


def _turn(R):
    """The rotation vector of a rotation matrix, from its quaternion."""
    x, y, z, w = torsor.spatial.to_quaternion(R)
    size = np.linalg.norm([x, y, z])
    return 2 * np.arctan2(size, w) * np.array([x, y, z]) / size


def test_frames_are_where_the_robot_says():
    R = torsor.spatial.from_rpy([0.3, 0.2, 0.1])
    rows = [
        FramePosition(frame=HAND, lower=-9.0, upper=9.0, point=[0.1, 0.2, 0.3]),
        FramePosition(frame=HAND, lower=-9.0, upper=9.0, seen_from="link2", name="seen"),
        FrameVelocity(frame=HAND, lower=-9.0, upper=9.0, speed=2.0),
        FrameVelocity(frame=HAND, lower=-9.0, upper=9.0, part="angular", axes="own", name="turning"),
        Orientation(frame=HAND, axis=[0, 0, 2], direction=[1, 1, 0], tolerance=0.2),
        Orientation(frame=HAND, rotation=R, tolerance=0.2, name="turned"),
        Orientation(frame=HAND, rotation=R, name="exactly"),
    ]
    sample = Sample(ARM, rows)
    q, v, _, _ = sample.motion()
    T, V, seen = ARM.pose(q, HAND), ARM.velocity(q, v, HAND), ARM.pose(q, "link2")
    fast = np.einsum("kij,kj->ki", T[:, :3, :3], V[:, 3:])
    assert near(sample.rows("FramePosition"), (T @ [0.1, 0.2, 0.3, 1.0])[:, :3])
    assert near(sample.rows("seen"), (np.linalg.inv(seen) @ T)[:, :3, 3])
    assert near(sample.rows("FrameVelocity"), np.c_[fast, (fast**2).sum(-1) / 4])
    assert near(sample.rows("turning"), V[:, :3])
    angle = np.arccos(T[:, :3, 2] @ np.array([1, 1, 0]) / np.sqrt(2))
    assert near(sample.rows("Orientation")[:, 0], (1 - np.cos(angle)) / (1 - np.cos(0.2)))
    turn = np.array([_turn(R.T @ each[:3, :3]) for each in T])
    size = np.linalg.norm(turn, axis=-1)
    assert near(sample.rows("turned")[:, 0], (1 - np.cos(size)) / (1 - np.cos(0.2)))
    assert near(sample.rows("exactly"), turn * (2 * np.sin(size / 2) / size)[:, None])


@pytest.mark.parametrize(
    ("cost", "wanted"),
    [
        (Effort(scale=[1, 2, 3, 4, 5, 6]), lambda r, q, v, a, j, tau: ((tau / np.arange(1, 7)) ** 2).sum(-1)),
        (Effort(kind="absolute", width=1e-9), lambda r, q, v, a, j, tau: np.abs(tau).sum(-1) - 6e-9),
        (MechanicalEnergy(width=1e-9), lambda r, q, v, a, j, tau: np.abs(tau * v).sum(-1) - 6e-9),
        (
            MechanicalEnergy(kind="positive", width=1e-9),
            lambda r, q, v, a, j, tau: np.maximum(tau * v, 0).sum(-1) - 3e-9,
        ),
        (ElectricalEnergy(motor_constant=2.0), lambda r, q, v, a, j, tau: (tau**2 / 4 + tau * v).sum(-1)),
        (TorqueRate(scale=10.0), lambda r, q, v, a, j, tau: (r.force_rate(q, v, a, j)[1] ** 2).sum(-1) / 100),
        (Jerk(), lambda r, q, v, a, j, tau: (j**2).sum(-1)),
        (Jerk(frame=HAND), lambda r, q, v, a, j, tau: (r.task.jerk(q, v, a, j, HAND)[:, 3:] ** 2).sum(-1)),
        (
            Reaction(kind="power", force=2.0, joints=["joint3"], power=4),
            lambda r, q, v, a, j, tau: (r.joint_wrenches(q, v, a)[:, 2, 3:] ** 2).sum(-1) ** 2 / 16,
        ),
        (
            Reference(values=Path.through([[0.0]] * 2 + [[0.0]] * 2, 3, [0, 0.3, 0.7, 1]), names=["joint2"]),
            lambda r, q, v, a, j, tau: q[:, 1] ** 2,
        ),
        (
            Manipulability(frame=HAND, part="all"),
            lambda r, q, v, a, j, tau: (
                -np.linalg.slogdet(r.jacobian(q, HAND) @ r.jacobian(q, HAND).swapaxes(-1, -2))[1]
            ),
        ),
        (
            Manipulability(frame=HAND, axes="xy", kind="reciprocal"),
            lambda r, q, v, a, j, tau: _yoshikawa(r.pose(q, HAND)[:, :2, :3] @ r.jacobian(q, HAND)[:, 3:]),
        ),
    ],
)
def test_costs_are_integrals_of_what_the_robot_says(cost, wanted):
    sample = Sample(ARM, [], [cost])

    def values(q, v, a, j):
        return wanted(ARM, q, v, a, j, ARM.inverse_dynamics(q, v, a))

    integral = sample.integral(values)
    assert abs(sample.cost - integral) < 1e-8 * abs(integral) if "width" in repr(cost) else near(sample.cost, integral)


def _yoshikawa(J):
    return np.linalg.det(J @ J.swapaxes(-1, -2)) ** -0.5


def _apart(a, b):
    """The distance of two segments (2, 3), by a search of both that becomes finer: it is convex."""
    low, high = np.zeros(2), np.ones(2)
    for _ in range(25):
        s, t = np.linspace(low, high, 9).T
        p, q = a[0] + s[:, None] * (a[1] - a[0]), b[0] + t[:, None] * (b[1] - b[0])
        far = np.linalg.norm(p[:, None] - q, axis=-1)
        i, j = np.unravel_index(far.argmin(), far.shape)
        best, step = np.array([s[i], t[j]]), (high - low) / 8
        low, high = np.clip(best - 2 * step, 0, 1), np.clip(best + 2 * step, 0, 1)
    return far.min()


def test_distances_of_segments_are_those_of_their_nearest_points():
    rng, ends = np.random.default_rng(3), ca.SX.sym("ends", 3, 4)
    columns = [ends[:, k] for k in range(4)]
    exact = ca.Function("d", [ends], [segment_distance(columns[:2], columns[2:])])
    seen = set()
    for k in range(30):
        a, b = rng.normal(size=(2, 2, 3))
        if k % 5 == 0:  # parallel
            b[1] = b[0] + (0.5 + 0.1 * k) * (a[1] - a[0])
        found, wanted = float(exact(np.r_[a, b].T)) ** 0.5, _apart(a, b)
        assert abs(found - wanted) < 1e-7
        seen.add(round(found, 3))
    assert len(seen) == 30
    touching = np.array([[0, 0, 0], [1, 0, 0], [1, 0, 0], [2, 1, 0.0]]).T
    assert float(exact(touching)) == 0


def test_clearance_counts_radii_and_the_distance_asked_for():
    ball = Sphere(link=HAND, radius=0.1, center=[0.1, 0, 0])
    rod = Capsule(link="link3", start=[0, 0, 0], end=[0, 0, 0.5], radius=0.05)
    floor = HalfSpace(normal=[0, 0, 3], point=[0, 0, -0.4])
    table = {"kind": "sphere", "center": [0.5, 0.5, 0.5], "radius": 0.2}
    rows = [
        Clearance(first=ball, second=[rod, table], least=0.03),
        Clearance(first=[ball, rod], second=floor, least=0.03, name="floor"),
    ]
    sample = Sample(ARM, rows)
    q = sample.motion()[0]
    center = (ARM.pose(q, HAND) @ [0.1, 0, 0, 1])[:, :3]
    axis = np.stack([ARM.pose(q, "link3")[:, :3, 3], (ARM.pose(q, "link3") @ [0, 0, 0.5, 1])[:, :3]], 1)
    along = axis[:, 1] - axis[:, 0]
    share = np.clip(((center - axis[:, 0]) * along).sum(-1) / (along**2).sum(-1), 0, 1)
    far = np.linalg.norm(center - axis[:, 0] - share[:, None] * along, axis=-1)
    to_table = np.linalg.norm(center - 0.5, axis=-1)
    assert near(sample.rows("Clearance"), np.c_[(far / 0.18) ** 2, (to_table / 0.33) ** 2])
    heights = np.c_[center[:, 2], axis[:, 0, 2], axis[:, 1, 2]] + 0.4
    assert near(sample.rows("floor"), heights)
    first = next(k for k, row in enumerate(sample.program.rows) if row.title == "floor")
    lower = sample.program.row_lower * sample.program.scales
    assert np.allclose(lower[first : first + 3], [0.13, 0.08, 0.08], atol=1e-15)


def test_clearance_takes_the_shapes_of_links():
    rod, box, ball = Shape("capsule", (0.05, 0.3)), Shape("box", (0.1, 0.2, 0.3)), Shape("sphere", (0.1,))
    ground = Shape("plane", pose=make_pose(p=[0, 0, -1.0]))
    arm = ARM.with_shapes("link3", [rod]).with_shapes(HAND, [box]).with_shapes(ARM.base.name, [ground, ball])
    rows = [
        Clearance(first="link3", second=f"{ARM.base.name}/1", least=0.03),
        Clearance(first=HAND, second=ARM.base.name, least=0.03, name="hand"),
    ]
    sample = Sample(arm, rows)
    q = sample.motion()[0]
    base = f"{ARM.base.name}/1"
    distance = arm.shapes.distances(
        q, [("link3", base), (f"{HAND}/0", base), (f"{HAND}/0", f"{ARM.base.name}/0")]
    ).distance
    assert near(sample.rows("Clearance")[:, 0], ((distance[:, 0] + 0.15) / 0.18) ** 2)
    hand = sample.rows("hand")
    assert hand.shape[1] == 9  # eight corners above the plane, one distance from the ball
    assert near(hand[:, :8].min(axis=1), distance[:, 2])
    assert near(hand[:, 8], distance[:, 1])
    meshes = ARM.with_shapes("link3", [box]).with_shapes(HAND, [box])
    with refused(allowed="pairs with a closed form"):
        Sample(meshes, [Clearance(first=HAND, second="link3")]).rows("Clearance")


def test_following_keeps_to_the_curve_at_the_progress():
    curve = Path.through(np.random.default_rng(0).normal(size=(7, 3)))
    sample = Sample(ARM, [Follow(frame=HAND, curve=curve, tolerance=0.01)])
    y = sample.program.layout.phases[0].profiles(sample.x, sample.batch.s, 2)
    away = ARM.pose(y[0][:, :6], HAND)[:, :3, 3] - curve.positions(np.clip(y[0][:, 6], 0, 1))
    assert near(sample.rows("Follow"), np.c_[away, y[1][:, 6]])
    assert y[0][0, 6] == 0 and abs(y[0][-1, 6] - 1) < 1e-15


@pytest.mark.parametrize("name", ["five_bar", "four_bar"])
def test_terms_of_closed_loops_are_those_of_the_closed_mechanism(name):
    robot = getattr(torsor.library, name)()
    begin = robot.closed.assemble([1.2, 0.8] if name == "five_bar" else [0.8])
    rows = [
        Torques(upper=9.0),
        Velocities(upper=9.0),
        Accelerations(upper=9.0),
        Jerks(upper=9.0),
        TorqueRates(upper=9.0),
        Reactions(force=1.0),
        Powers(upper=9.0),
        Positions(lower=-9.0, upper=9.0),
    ]
    problem = MotionProblem(robot, Phase(1.0, points=5, nodes=3), Effort(), rows, assembly=begin)
    program = problem.program
    x = np.repeat(begin[problem.model.places], 5) + 0.1 * np.sin(np.arange(program.n))
    found = program.value(x)[1] * program.scales
    titles = np.array([row.title for row in program.rows])
    s = np.array([0.0, 0.5, 1.0])
    y = program.layout.phases[0].profiles(x, s, 4)
    q = robot.closed.assemble(y[0], begin)
    v, a = robot.closed.accelerations(q, y[1], y[2])
    tau = robot.closed.inverse_dynamics(q, y[1], y[2])
    # rates by going on along the motion for a moment
    ahead, behind = [], []
    for side, values in ((1e-4, ahead), (-1e-4, behind)):
        y0 = y[0] + side * y[1] + side**2 / 2 * y[2] + side**3 / 6 * y[3]
        y1 = y[1] + side * y[2] + side**2 / 2 * y[3]
        y2 = y[2] + side * y[3]
        there = robot.closed.assemble(y0, q)
        values.append(robot.closed.accelerations(there, y1, y2)[1])
        values.append(robot.closed.inverse_dynamics(there, y1, y2))
    j, rate = ((up - down) / 2e-4 for up, down in zip(ahead, behind, strict=True))
    wrench = robot.closed.joint_wrenches(q, y[1], y[2])

    def rows_of(title):
        return found[titles == title].reshape(3, -1)

    assert near(rows_of("Torques"), tau) and near(rows_of("Velocities"), v) and near(rows_of("Accelerations"), a)
    assert near(rows_of("Positions"), q) and near(rows_of("Powers"), tau * y[1])
    assert near(rows_of("Reactions"), (wrench[..., 3:] ** 2).sum(-1))
    assert np.allclose(rows_of("Jerks"), j, rtol=1e-5, atol=1e-4 * np.abs(j).max())
    assert np.allclose(rows_of("TorqueRates"), rate, rtol=1e-5, atol=1e-4 * np.abs(rate).max())


def test_a_mechanism_stays_in_its_way_of_assembly_from_call_to_call():
    robot = torsor.library.four_bar()
    for guess in ([0.5, 1.0, 1.5], [0.5, -1.5, -1.5]):
        begin = robot.closed.assemble([0.5], guess)
        rows = [Start(q=0.5, v=0.0), End(q=1.5, v=0.0), Positions(lower=-9.0, upper=9.0)]
        program = MotionProblem(robot, Phase(1.0, nodes=5), Effort(), rows, assembly=begin.tolist()).program
        x = np.linspace(0.5, 1.5, program.n)
        for shift in (0.0, 0.3, -0.2, 0.0):
            rows_ = program.value(x + shift)[1] * program.scales
        q = robot.closed.assemble(program.layout.phases[0].profiles(x, np.linspace(0, 1, 5), 1)[0], begin)
        assert near(rows_.reshape(5, 3), q)


def test_control_points_within_bounds_keep_the_whole_curve_there_without_rows():
    rows = [Positions(lower=-1.0, upper={"joint1": 0.5}, hull=True, only=["joint1", "joint2"])]
    robot = torsor.library.two_link()
    program = MotionProblem(robot, Phase((0.1, 2.0), points=6), Effort(), [*rows, Start(v=0.0)]).program
    assert program.m == 2  # those of the start
    assert program.lower[:12].tolist() == [-1.0] * 12
    assert program.upper[:12].tolist() == [0.5] * 6 + [np.inf] * 6
    part = MotionProblem(
        robot, Phase(1.0, points=7), Effort(), [Positions(lower=-1.0, hull=True, during=(0.0, 0.25))]
    ).program
    assert np.isfinite(part.lower[:7]).tolist() == [True] * 4 + [False] * 3  # knots at 0.25, 0.5, 0.75


def test_frames_of_the_pose_are_rows_of_their_own_axes():
    robot = torsor.library.two_link().with_frame("tool", "link2", make_pose(p=[0.3, 0, 0]))
    sample = Sample(robot, [FramePosition(frame="tool", lower=[-9, -9, -np.inf], upper=[9, np.inf, np.inf])])
    assert near(sample.rows("FramePosition"), robot.pose(sample.motion()[0], "tool")[:, :2, 3])
    assert sample.program.rows[1].label == "y of tool"

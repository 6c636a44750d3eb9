"""Robots to be written as URDF and MJCF, and the map between their coordinates and the coordinates of the files."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import torsor
from bench import copies as bench_copies
from torsor import library
from torsor.mechanism import Joint, Link, Motor, Spring, Visual
from torsor.spatial import from_rpy, make_pose

TOLERANCE = 1e-12
EARTH = (0.0, 0.0, -9.81)


def human() -> torsor.Robot:
    """A floating pelvis and two legs whose hips, knees and ankles are chains of revolute joints."""
    rng = np.random.default_rng(5)
    links, joints, frames = [Link("world"), Link("pelvis", 11.0, (0, 0, 0.1), np.diag([0.1, 0.09, 0.08]))], [], []
    joints.append(Joint("root", "free", "world", "pelvis"))
    for side, y in (("left", 0.1), ("right", -0.1)):
        parent, at = "pelvis", make_pose(from_rpy([0.1, -0.2, 0.3]), [0, y, -0.05])
        for part, axes in (("thigh", 3), ("shank", 1), ("foot", 2)):
            for k in range(axes):
                last = k == axes - 1
                name = f"{side}_{part}" + ("" if last else f"_{k}")
                inertia = (4.0, (0.01, 0, -0.2), [[0.1, 0.01, 0], [0.01, 0.12, 0.02], [0, 0.02, 0.05]])
                links.append(Link(name, *inertia) if last else Link(name))  # type: ignore[arg-type]
                settings = {"lower": -1.5, "upper": 2.0, "viscous": 0.3, "effort_limit": 200.0, "rotor_inertia": 0.01}
                spring = Spring(3.0, 0.2, 0.4)
                axis, point = rng.normal(size=3), rng.normal(size=3) * 0.02
                joints.append(Joint(name, "revolute", parent, name, at, axis, point, spring=spring, **settings))  # type: ignore[arg-type]
                parent, at = name, make_pose(from_rpy(rng.normal(size=3)), rng.normal(size=3) * 0.01)
            at = make_pose(from_rpy([0, 0.1, 0]), [0, 0, -0.4])
        frames.append(torsor.Frame(f"{side}_sole", f"{side}_foot", make_pose(from_rpy([0, 0, 0.5]), [0.1, 0, -0.05])))
    return torsor.build("human", links, joints, frames)


def bench() -> torsor.Robot:
    """A robot with every kind of one-dof joint, offsets, a joint that turns back, mimics, frames and shapes."""
    box = Visual("box", (0.1, 0.2, 0.3), make_pose(from_rpy([0.3, 0, 0]), [0, 0, 0.1]), (1.0, 0.5, 0.25, 1.0), name="b")
    round_ = Visual("cylinder", (0.05, 0.4)), Visual("sphere", (0.07,)), Visual("capsule", (0.02, 0.3))
    inertia = 2.0, (0.1, 0.05, -0.1), [[0.2, 0.01, 0.03], [0.01, 0.25, -0.02], [0.03, -0.02, 0.3]]
    rng = np.random.default_rng(2)

    def place() -> np.ndarray:
        return make_pose(from_rpy(rng.normal(size=3)), rng.normal(size=3) * 0.3)

    drive = Motor("a & <b>", 1e-3, 20.0, (0, 1, 0), coulomb=0.0, viscous=0.3)  # type: ignore[arg-type]
    away = {"axis": rng.normal(size=3), "point": rng.normal(size=3)}
    joints = [
        Joint(
            '"turn"', "revolute", "a & <b>", "c", place(), offset=0.4, lower=-1, upper=2, spring=Spring(2.0, 0.1, 0.3)
        ),
        Joint("back", "continuous", "c", "d", place(), ratio=-1.0, offset=-0.7, **away, coulomb=0.2, motor=drive),
        Joint("slide", "prismatic", "c", "e", place(), **away, upper=0.5, velocity_limit=3.0, rotor_inertia=0.5),
        Joint("screw", "helical", "d", "f", place(), **away, pitch=0.05, coordinate='"turn"', ratio=-0.5, offset=0.2),
        Joint("bolt", "helical", "e", "g", place(), **away, pitch=-0.02, viscous=0.5, effort_limit=9.0, offset=0.1),
        Joint("finger", "prismatic", "g", "h", place(), coordinate="bolt", ratio=0.3, rotor_inertia=0.3),
        Joint("plane", "planar", "g", "i", place(), **away, viscous=0.2),
    ]
    links = [Link("a & <b>", *inertia, visuals=(box,)), Link("c", *inertia, visuals=round_)]  # type: ignore[arg-type]
    links += [Link(name, *inertia) for name in "defghi"]  # type: ignore[arg-type]
    frames = [torsor.Frame("tool", "i", place()), torsor.Frame("floor", "a & <b>", place())]
    return torsor.build("bench", links, joints, frames)


def expressible(robot: torsor.Robot, elastic: bool) -> torsor.Robot:
    """A random tree without the properties that URDF (``elastic``) or MJCF cannot express."""
    joints, flexible = [], {joint.name for joint in robot.elastic}
    for joint in robot.joints:
        motor, spring = joint.motor, joint.spring
        if motor is not None:
            motor = (
                replace(motor, viscous=0.0)
                if elastic
                else replace(motor, carrier=robot.base.name, stiffness=None, damping=0.0)
            )
        spring = None if spring is None else replace(spring, stiffness=2.5)
        still = joint.nv > 1 if elastic else joint.type == "free"
        rotor = 0.0 if still or joint.coordinate in flexible else joint.rotor_inertia
        joints.append(replace(joint, motor=motor, spring=spring, smooth=0.0, rotor_inertia=rotor))
    return replace(robot, joints=tuple(joints), gravity=EARTH if elastic else robot.gravity)


class Copy(bench_copies.Copy):
    """A robot read back from a file."""

    def states(self, count: int = 1) -> Iterator[tuple[np.ndarray, ...]]:
        rng = np.random.default_rng(3)
        for _ in range(count):
            yield self.state(rng)

    def check(self, places: set[str]) -> None:
        """Compare forces, mass matrix and the poses of places."""
        G = self.G
        for q, v, a in self.states():
            qa = self.q(q)
            assert_equal(
                G.T @ self.again.inverse_dynamics(qa, G @ v, G @ a, loops="open"),
                self.robot.inverse_dynamics(q, v, a, loops="open"),
            )
            assert_equal(G.T @ self.again.mass_matrix(qa, loops="open") @ G, self.robot.mass_matrix(q, loops="open"))
            theirs, ours = poses(self.again, qa), poses(self.robot, q)
            for name in places:
                assert_equal(theirs[name], ours[name])


def poses(robot: torsor.Robot, q: np.ndarray) -> dict[str, np.ndarray]:
    """Return the poses of all links and frames."""
    moved = [*robot.poses(q), np.eye(4)]  # the base is at index -1
    return {name: moved[place.link] @ place.pose for name, place in robot.places.items()}


def assert_equal(found: np.ndarray, expected: np.ndarray, tolerance: float = TOLERANCE) -> None:
    scale = max(np.abs(expected).max(initial=0.0), 1e-3)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


URDF_KINDS = ("revolute", "continuous", "prismatic", "helical", "planar", "free")
MJCF_KINDS = ("revolute", "continuous", "prismatic", "helical", "planar", "spherical")
LIBRARY = {
    name: getattr(library, name)()
    for name in ("six_axis_arm", "seven_axis_arm", "stanford", "quadruped", "free_flying_arm")
}
URDF = {name: robot.with_gravity(EARTH) for name, robot in LIBRARY.items()} | {
    "human": human(),
    "bench": bench(),
    "elastic": library.elastic_arm(),
    **{f"tree{seed}": expressible(library.random_tree(8, seed, URDF_KINDS), True) for seed in range(2)},
}
MJCF = {name: robot for name, robot in LIBRARY.items() if name != "six_axis_arm"} | {
    "human": human(),
    "bench": bench(),
    "chain": library.planar_chain(4),
    **{f"tree{seed}": expressible(library.random_tree(8, seed, MJCF_KINDS), False) for seed in range(2)},
}

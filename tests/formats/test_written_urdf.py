"""Robots written as URDF have the same dynamics when they are read back, here and by Pinocchio."""

import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import ModelError, ModelWarning, library
from torsor.formats import write_urdf
from torsor.mechanism import Frame, Joint, Link, Mechanism, Motor, Spring, Visual
from torsor.spatial import from_rpy, make_pose

from .written import EARTH, URDF, Copy, assert_equal, poses


def written(robot: torsor.Robot, path: Path) -> torsor.Robot:
    """Return the robot read back from a file; a warning of something that is not written is an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*has no word")
        own = "(springs, written|elastic joints, which|rotor inertias, written)"  # which few others read
        warnings.filterwarnings("ignore", message=rf".*cannot express ({own}[^;]*(; )?)+$")
        robot.save(path)
        warnings.simplefilter("ignore", ModelWarning)
        return torsor.load(path)


@pytest.mark.parametrize("name", URDF)
def test_read_back_it_has_the_same_forces_mass_matrix_and_poses(tmp_path: Path, name: str) -> None:
    robot = URDF[name]
    again = written(robot, tmp_path / "robot.urdf")
    assert again.name == robot.name and set(again.coordinate_names) == set(robot.coordinate_names)
    Copy(robot, again).check(set(robot.places))
    ours = {joint.name: joint for joint in robot.joints}
    for joint in again.joints:
        for key in ("effort_limit", "velocity_limit", "lower", "upper"):
            if joint.name in ours:
                assert np.array_equal(getattr(joint, key), getattr(ours[joint.name], key))


def test_fixed_joints_keep_their_names(tmp_path: Path) -> None:
    links = [Link("base"), Link("arm", 1.0), Link("flange"), Link("tool")]
    joints = [
        Joint("elbow", "revolute", "base", "arm"),
        Joint("mount", "fixed", "arm", "flange", make_pose(p=[0.1, 0, 0])),
        Joint("screw", "fixed", "flange", "tool", make_pose(p=[0, 0.2, 0])),
    ]
    robot = torsor.build("arm", links, joints).with_frame("tip", "arm", make_pose(p=[0, 0, 0.3]))

    def fixed(robot: torsor.Robot) -> dict[str, str]:
        robot.save(tmp_path / "arm.urdf")
        found = ET.parse(tmp_path / "arm.urdf").iterfind("joint[@type='fixed']")
        return {joint.find("child").get("link"): joint.get("name") for joint in found}

    assert fixed(robot) == {"flange": "mount", "tool": "screw", "tip": "tip/fixed"}
    assert fixed(torsor.load(tmp_path / "arm.urdf").with_payload("tool", 1.0))["tool"] == "screw"
    assert fixed(robot.attach(robot, "tool", "a/"))["a/flange"] == "a/mount"


def rigid(robot: torsor.Robot) -> torsor.Robot:
    """The robot without the features that Pinocchio does not read."""
    bare = {"spring": None, "motor": None, "rotor_inertia": 0.0}
    return replace(
        robot.without_friction(), joints=tuple(replace(joint, **bare) for joint in robot.without_friction().joints)
    )


class Peer:
    """Pinocchio's model of a file, without followers: its velocities are G(q) v, its forces G^T tau."""

    def __init__(self, path: Path, robot: torsor.Robot):
        pin = pytest.importorskip("pinocchio")
        self.robot, self.model = robot, pin.buildModelFromUrdf(str(path))
        self.data = self.model.createData()

    def state(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return Pinocchio's positions, velocities and accelerations, and G."""
        G, drift, pq = np.zeros((self.model.nv, self.robot.nv)), np.zeros(self.model.nv), np.zeros(self.model.nq)
        for name, theirs in zip(self.model.names[1:], self.model.joints[1:], strict=True):
            ours = self.robot.joint(name)
            at = self.robot.coordinates[self.robot.joints.index(ours)]
            rows, value, block = slice(theirs.idx_v, theirs.idx_v + theirs.nv), q[at.q], np.eye(ours.nv)
            if ours.nv == 1:
                value, block = value * ours.ratio + ours.offset, block * ours.ratio
                value = [np.cos(value[0]), np.sin(value[0])] if theirs.nq == 2 else value
            elif ours.type == "free":  # (v, omega) where ours is (omega, v)
                block = np.roll(block, 3, axis=0)
            else:  # planar: velocities in the axes that turn
                c, s = np.cos(value[2]), np.sin(value[2])
                block = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
                drift[rows] = v[at.v][2] * np.array([[-s, c, 0], [-c, -s, 0], [0, 0, 0]]) @ v[at.v]
                value = [value[0], value[1], c, s]
            pq[theirs.idx_q : theirs.idx_q + theirs.nq] = value
            G[rows, at.v] = block
        return pq, G @ v, G @ a + drift, G


@pytest.mark.parametrize("name", URDF)
def test_read_by_pinocchio_it_has_the_same_forces_mass_matrix_and_poses(tmp_path: Path, name: str) -> None:
    pin = pytest.importorskip("pinocchio")
    robot = rigid(URDF[name])
    again = written(robot, tmp_path / "robot.urdf").to(device="casadi")
    copy, peer = Copy(robot, again), Peer(tmp_path / "robot.urdf", again)
    model, data = peer.model, peer.data
    for q, v, a in copy.states():
        pq, pv, pa, G = peer.state(copy.q(q), copy.G @ v, copy.G @ a)
        G = G @ copy.G
        assert_equal(G.T @ pin.rnea(model, data, pq, pv, pa), copy.robot.inverse_dynamics(q, v, a), 1e-10)
        M = pin.crba(model, data, pq)
        assert_equal(G.T @ (np.triu(M) + np.triu(M, 1).T) @ G, copy.robot.mass_matrix(q), 1e-10)
        pin.framesForwardKinematics(model, data, pq)
        for name, pose in poses(copy.robot, q).items():
            assert_equal(data.oMf[model.getFrameId(name, pin.FrameType.BODY)].homogeneous, pose, 1e-10)


def test_shapes_come_back(tmp_path: Path) -> None:
    (tmp_path / "hull.stl").write_bytes(b"solid")
    pose = make_pose(from_rpy([0.1, 0.2, 0.3]), [1, 2, 3])
    red = (1.0, 0.0, 0.0, 0.5)
    shapes = (
        Visual("box", (1.0, 2.0, 3.0), pose, red, name="crate"),
        Visual("cylinder", (0.1, 0.2)),
        Visual("sphere", (0.3,)),
        Visual("mesh", (1.0, 1.0, -1.0), mesh="hull.stl", path=str(tmp_path / "hull.stl")),
        Visual("mesh", (1.0, 1.0, 1.0), mesh="package://nowhere/hull.stl"),
    )
    robot = torsor.build("block", [Link("ground", visuals=shapes)], [])
    found = written(robot, tmp_path / "block.urdf").base.visuals
    for a, b in zip(found, shapes, strict=True):
        assert_equal(a.pose, b.pose)
        assert replace(a, pose=np.eye(4)) == replace(b, pose=np.eye(4))


def test_rotations_near_a_quarter_turn_of_pitch_come_back_to_the_last_digits(tmp_path: Path) -> None:
    turns = [from_rpy([0.3, sign * np.pi / 2 + tilt, 0.7]) for sign in (-1, 1) for tilt in (0, 1e-9, 1e-7, 1e-5, -1e-6)]
    frames = [Frame(f"f{k}", "ground", make_pose(R)) for k, R in enumerate(turns)]
    again = written(torsor.build("turns", [Link("ground")], [], frames), tmp_path / "turns.urdf")
    for R, frame in zip(turns, again.frames, strict=True):
        assert np.abs(frame.pose[:3, :3] - R).max() < 1e-14


ARM = Link("arm", 1.0, (0.5, 0, 0), np.diag([0.1, 0.2, 0.25]))


def one(kind: str = "continuous", **settings: object) -> torsor.Robot:
    return torsor.build("one", [Link("ground"), ARM], [Joint("pin", kind, "ground", "arm", **settings)])  # type: ignore[arg-type]


OMITTED = {
    r"gravity, which readers assume to be \(0, 0, -9.81\) \(\[0.0, 0.0, -1.62\]\)": one().with_gravity([0, 0, -1.62]),
    r"smooth Coulomb friction, written as sign\(v\) \(pin\)": one(coulomb=1.0, smooth=0.1),
    r"nonlinear stiffness \(pin\)": one(spring=Spring("2 + x**2")),
    r"springs, written as spring_stiffness and spring_reference, which other readers drop \(pin\)$": one(
        spring=Spring(2.0)
    ),
    r"rotor inertias, .* drake:rotor_inertia .*, which readers other than Drake drop \(pin\)$": one(rotor_inertia=0.1),
    r"rotor inertias, written as drake:rotor_inertia .* \(pin\)$": one(motor=Motor("ground", 0.1, 50.0)),
    r"elastic joints, which other readers treat as rigid \(pin\)$": one(motor=Motor("ground", 1.0, stiffness=3.0)),
    r"rotor inertia of joints with several velocities \(pin\)": one("planar", rotor_inertia=0.1),
    r"viscous that differs between the velocities of a joint \(pin\)": one("planar", viscous=[1, 2, 3]),
    r"friction of shapes \(arm\)": one().with_shapes("arm", [torsor.Shape("sphere", (1.0,), friction=0.5)]),
    r"gains of drives \(pin\)": one(kd=1.0),
    r"position limits \(pin\)": one("planar", lower=-1.0),
    r"viscous friction of the motors of elastic joints \(pin\)": one(
        motor=Motor("ground", 1.0, 1.0, stiffness=3.0, viscous=1.0)
    ),
    r"rotor inertia of elastic joints in addition to that of the motor": one(
        rotor_inertia=1.0, motor=Motor("ground", 1.0, 1.0, stiffness=3.0)
    ),
}


@pytest.mark.parametrize("what", OMITTED)
def test_what_urdf_cannot_express_is_named_in_a_warning(tmp_path: Path, what: str) -> None:
    with pytest.warns(ModelWarning, match=f"one.urdf: URDF cannot express (.*; )?{what}") as caught:
        OMITTED[what].save(tmp_path / "one.urdf")
    assert len(caught) == 1 and caught[0].filename == __file__
    assert torsor.load(tmp_path / "one.urdf").joint_names == ("pin",)


REFUSED = {
    r"'tip' closes a loop, which is not written to URDF; fix: save as .xml": library.four_bar(),
    r"joint 'pin' is spherical, which the format does not support": one("spherical"),
    r"joint 'pin' has the position 2.0 q \+ 0.0 for its own coordinate q; allowed: ratio 1 or -1": one(ratio=2.0),
    r"the spring between joint 'pin' and its motor has the stiffness": one(
        motor=Motor("ground", 1.0, stiffness="1 + x**2")
    ),
    r"'one\\x01' in <robot>; allowed: characters that XML allows": replace(one(), name="one\x01"),
}


@pytest.mark.parametrize("found", REFUSED)
def test_a_mechanism_that_urdf_cannot_describe_is_an_error_and_no_file_is_written(tmp_path: Path, found: str) -> None:
    robot = REFUSED[found]
    if robot.loops:
        found = found.replace("tip", robot.loops[0].name)
    with pytest.raises(ModelError, match=f"one.urdf: {found}"):
        robot.save(tmp_path / "one.urdf")
    assert not list(tmp_path.iterdir())


def coupled(couplings: dict[str, tuple[dict[str, float], float]], **settings: object) -> torsor.Robot:
    """Return a chain of four hinges with couplings {name: (coefficients, offset)}."""
    names = ["ground", "a", "b", "c", "d"]
    links = [torsor.Link("ground")] + [
        torsor.Link(name, 1.0 + k, (0.3, 0.1 * k, 0.2), np.diag([0.1, 0.2, 0.25])) for k, name in enumerate(names[1:])
    ]
    joints = [
        torsor.Joint(f"q{name}", "revolute", parent, name, make_pose(p=[0.4, 0, 0.1]), axis=(0, k % 2, 1 - k % 2))
        for k, (parent, name) in enumerate(pairwise(names))
    ]
    robot = torsor.build("coupled", links, joints)
    for name, (coefficients, offset) in couplings.items():
        robot = robot.with_coupling(name, coefficients, offset)
    return robot


def test_couplings_of_two_joints_are_saved_as_mimic_and_need_the_same_forces(tmp_path: Path) -> None:
    robot = coupled({"belt": ({"qa": 1.0, "qc": -2.0}, 0.5), "gear": ({"qc": 3.0, "qd": 2.0}, 0.0)}).with_active(
        ["qa", "qb"]
    )
    with warned(what="cannot express active coordinates (qa, qb)"):
        robot.save(tmp_path / "coupled.urdf")
    again = torsor.load(tmp_path / "coupled.urdf")
    assert again.coordinate_names == ("qa", "qb")
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 2))
    closed = np.array([q[0], q[1], (q[0] - 0.5) / 2, -1.5 * (q[0] - 0.5) / 2])
    for place in ("c", "d"):
        np.testing.assert_allclose(again.pose(q, place), robot.pose(closed, place), atol=1e-14)
    expected = robot.closed.inverse_dynamics(closed, v, a)
    np.testing.assert_allclose(again.inverse_dynamics(q, v, a), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("couplings", "message"),
    [
        (
            {"sum": ({"qa": 1.0, "qb": 1.0, "qc": 1.0}, 0.0)},
            "sum",
        ),
        (
            {"lock": ({"qa": 1.0}, 0.3)},
            "lock",
        ),
        (
            {"belt": ({"qa": 1.0, "qb": -1.0}, 0.0), "cam": ({"qb": 1.0, "qc": [0.1, 0.2]}, 0.0)},
            "cam",
        ),
    ],
)
def test_a_coupling_that_is_no_mimic_is_an_error(tmp_path: Path, couplings: dict, message: str) -> None:
    with refused(message, where="coupled.urdf"):
        coupled(couplings).save(tmp_path / "coupled.urdf")


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.urdf"
    one().save(path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            one(offset=1.0).save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_another_suffix_or_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    plain: Mechanism = one()
    with refused(value=".obj", where="one.obj", allowed=".urdf", fix="name it one.urdf"):
        write_urdf(plain, tmp_path / "one.obj")
    with refused(what="its folder does not exist"):
        one().save(tmp_path / "nowhere" / "one.urdf")


def test_gravity_of_the_earth_needs_no_warning(tmp_path: Path) -> None:
    assert written(one().with_gravity(EARTH), tmp_path / "one.urdf") == one()

"""Robots written as MJCF have the same dynamics when they are read back, here and by MuJoCo."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import ModelWarning, library
from torsor.mechanism import Frame, Joint, Link, Motor, Spring, Visual
from torsor.simulation import Contact
from torsor.simulation.contact import friction_of
from torsor.spatial import from_quaternion, from_rpy, make_pose

from .written import MJCF, Copy, assert_equal, human, poses

mujoco = pytest.importorskip("mujoco")


@pytest.fixture(autouse=True)
def _log(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in another folder for MuJoCo's log, which warns of nearly massless bodies."""
    monkeypatch.chdir(tmp_path_factory.mktemp("log"))


def written(robot: torsor.Robot, path: Path) -> torsor.Robot:
    """Return the robot read back from a file; a warning of a force that is not written is an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*has no word", category=ModelWarning)
        warnings.filterwarnings("ignore", message=".*cannot express (velocity limits|mass or inertia of 0)[^;]*$")
        robot.save(path)
        warnings.simplefilter("error")  # the reader leaves nothing out
        return torsor.load(path)


def bodies(robot: torsor.Robot) -> set[str]:
    """The places of a robot except massless links, which are not written as bodies."""
    massless = {link.name for link in robot.links if not link.mass}
    return {name for name in robot.places if name not in massless}


class Twin:
    """MuJoCo's model of a file, in the coordinates of what is read back of it: qvel = A(q) v."""

    def __init__(self, path: Path, robot: torsor.Robot):
        self.robot, self.model = robot, mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.model)
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT

    def set(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bring MuJoCo into the state and return qacc and A."""
        qpos, A, turned = np.array(q), np.eye(self.robot.nv), np.array(a)
        for joint, at in zip(self.robot.joints, self.robot.coordinates, strict=True):
            if joint.type in ("free", "spherical"):
                qpos[at.q.stop - 4 : at.q.stop] = np.roll(q[at.q.stop - 4 : at.q.stop], 1)
            if joint.type == "free":
                R = from_quaternion(q[at.q][3:])
                A[at.v, at.v] = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
                turned[at.v][3:] += np.cross(v[at.v][:3], v[at.v][3:])
        self.data.qpos[:], self.data.qvel[:] = qpos, A @ v
        mujoco.mj_forward(self.model, self.data)
        return A @ turned, A

    def times_mass(self, columns: np.ndarray) -> np.ndarray:
        made = np.zeros((self.model.nv, columns.shape[1]))
        for k, column in enumerate(columns.T):
            result = np.zeros(self.model.nv)
            mujoco.mj_mulM(self.model, self.data, result, np.ascontiguousarray(column))
            made[:, k] = result
        return made

    def pose(self, name: str) -> np.ndarray:
        kind = "site" if mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_SITE, name) >= 0 else "body"
        found = getattr(self.data, kind)(name)
        return make_pose(found.xmat.reshape(3, 3), found.xpos)


@pytest.mark.parametrize("name", MJCF)
def test_read_back_and_by_mujoco_it_has_the_same_forces_mass_matrix_and_poses(tmp_path: Path, name: str) -> None:
    robot = MJCF[name]
    again = written(robot, tmp_path / "robot.xml")
    copy = Copy(robot, again)
    assert again.name == robot.name
    copy.check(set(robot.places))
    twin = Twin(tmp_path / "robot.xml", copy.again)
    for q, v, a in copy.states():
        qacc, A = twin.set(copy.q(q), copy.G @ v, copy.G @ a)
        rubbing = twin.model.dof_frictionloss * np.sign(twin.data.qvel)
        force = twin.times_mass(qacc[:, None])[:, 0] + twin.data.qfrc_bias - twin.data.qfrc_passive + rubbing
        A = A @ copy.G
        assert_equal(A.T @ force, copy.robot.inverse_dynamics(q, v, a, loops="open"), 1e-10)
        assert_equal(A.T @ twin.times_mass(A), copy.robot.mass_matrix(q, loops="open"), 1e-10)
        ours = poses(copy.robot, q)
        for place in bodies(robot):
            assert_equal(twin.pose(place), ours[place], 1e-10)


def test_a_chain_of_hinges_without_mass_between_them_is_one_body(tmp_path: Path) -> None:
    written(human(), tmp_path / "human.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "human.xml"))
    assert [model.body(name).jntnum[0] for name in ("pelvis", "left_thigh", "left_shank", "left_foot")] == [1, 3, 1, 2]
    assert model.nbody == 8 and (model.body_mass[1:] > 1).all()


def row(kinds: list[str], branch: bool = False) -> torsor.Robot:
    """A chain of joints whose links have no mass, except the last."""
    rng = np.random.default_rng(1)
    links, joints = [Link("ground")], []
    for k, kind in enumerate(kinds):
        links.append(Link(f"link{k}"))
        place = make_pose(from_rpy(rng.normal(size=3)), rng.normal(size=3))
        joints.append(
            Joint(f"joint{k}", kind, links[-2].name, f"link{k}", place, rng.normal(size=3), rng.normal(size=3))
        )
    links[-1] = Link(f"link{k}", 2.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.15]))
    if branch:
        links.append(Link("twig", 1.0, (0, 0, 1), np.diag([0.1, 0.2, 0.15])))
        joints.append(Joint("twig", "continuous", "link0", "twig", make_pose(p=[1, 0, 0])))
    return torsor.build("row", links, joints)


@pytest.mark.parametrize(
    ("robot", "count"),
    [
        (row(["continuous", "prismatic", "continuous"] * 3), 2),
        (row(["spherical", "continuous"]), 2),
        (row(["continuous", "spherical"]), 1),
        (row(["continuous", "continuous"], branch=True), 3),
        (row(["free", "continuous"]), 2),
    ],
    ids=["nine", "ball first", "ball last", "branch", "free on a shelf"],
)
def test_massless_links_are_bodies_only_where_mujoco_needs_them(
    tmp_path: Path, robot: torsor.Robot, count: int
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot.save(tmp_path / "row.xml")
        again = torsor.load(tmp_path / "row.xml")
    moving = mujoco.MjModel.from_xml_path(str(tmp_path / "row.xml"))
    assert (moving.body_jntnum > 0).sum() == count
    if set(robot.coordinate_names) == set(again.coordinate_names):
        Copy(robot, again).check(set(robot.places))


def test_a_free_joint_that_is_not_on_the_world_becomes_three_slides_and_a_ball(tmp_path: Path) -> None:
    at = make_pose(from_rpy([0.1, 0.2, 0.3]), [1, 2, 3])
    arm = Link("arm", 2.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.15]))
    robot = torsor.build("kite", [Link("ground"), arm], [Joint("fly", "free", "ground", "arm", at, viscous=0.2)])
    with warned(what="three prismatic joints and a ball joint (fly)"):
        robot.save(tmp_path / "kite.xml")
    again = torsor.load(tmp_path / "kite.xml").to(device="casadi")
    robot = robot.to(device="casadi")
    rng = np.random.default_rng(0)
    q, v, a = robot.integrate(robot.neutral(), rng.normal(size=6)), rng.normal(size=6), rng.normal(size=6)
    R = from_quaternion(q[3:])
    G = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
    turned = G @ np.r_[a[:3], a[3:] + np.cross(v[:3], v[3:])]
    assert_equal(again.pose(q, "arm"), robot.pose(q, "arm"))
    assert_equal(G.T @ again.inverse_dynamics(q, G @ v, turned), robot.inverse_dynamics(q, v, a))


@pytest.mark.parametrize("name", ["four_bar", "closed_leg"])
def test_loops_hold_the_same_after_writing(tmp_path: Path, name: str) -> None:
    robot = getattr(library, name)().to(device="casadi")
    again = written(robot, tmp_path / "robot.xml").to(device="casadi")
    assert set(again.active) == set(robot.active) and again.closed.mobility().dof == robot.closed.mobility().dof
    copy = Copy(robot, again)
    copy.check(set(robot.places))
    twin = Twin(tmp_path / "robot.xml", copy.again)
    twin.model.opt.disableflags = 0
    for q, sizes in (
        (robot.closed.assemble(np.full(len(robot.active), 0.3)), (0, 1e-10)),
        (robot.neutral() + 0.3, (1e-3, 9)),
    ):
        twin.set(copy.q(q), np.zeros(again.nv), np.zeros(again.nv))
        held = twin.data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        assert held.sum() and sizes[0] <= np.abs(twin.data.efc_pos[held]).max() < sizes[1]


@pytest.mark.parametrize("kind", ["weld", "spherical", "revolute"])
def test_cut_joints_and_couplings_keep_their_places(tmp_path: Path, kind: str) -> None:
    arm = library.seven_axis_arm().with_frame("hand", "link7", make_pose(from_rpy([1, 2, 3]), [0.1, 0.2, 0.3]))
    robot = arm.with_loop("grip", "hand", "link1", kind).with_coupling("belt", {"joint1": 2.0, "joint2": -3.0}, 0.5)
    robot = robot.with_coupling("lock", {"joint3": 2.0}, 0.25).to(device="casadi")
    again = written(robot, tmp_path / "robot.xml").to(device="casadi")
    belt, lock = again.loops[-2:]
    assert belt.coefficients == {"joint1": 1.0, "joint2": -1.5} and belt.offset == 0.25 and lock.offset == 0.125
    loops = again.loops[:-2]
    assert [loop.kind for loop in loops] == ["spherical"] * 2 if kind == "revolute" else [kind]
    q = np.linspace(-1, 1, 7)
    for loop, lever in zip(loops, (0.0, 0.1), strict=False):
        for end, place in ((loop.a, "hand"), (loop.b, "link1")):
            assert_equal(poses(again, q)[end], poses(robot, q)[place] @ make_pose(p=[0, 0, lever]))


def test_shapes_come_back(tmp_path: Path) -> None:
    pose = make_pose(from_rpy([0.1, 0.2, 0.3]), [1, 2, 3])
    corners = "".join(f"v {x} {y} {z}\n" for x, y, z in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)))
    (tmp_path / "hull.obj").write_text(corners + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    shapes = (
        Visual("box", (1.0, 2.0, 3.0), pose, (1.0, 0.0, 0.0, 0.5), name="crate"),
        Visual("cylinder", (0.1, 0.2)),
        Visual("sphere", (0.3,)),
        Visual("capsule", (0.25, 0.5)),
        Visual("mesh", (1.0, 1.0, 0.5), pose, mesh="hull.obj", path=str(tmp_path / "hull.obj")),
    )
    robot = torsor.build("block", [Link("ground", visuals=shapes)], [])
    for a, b in zip(written(robot, tmp_path / "block.xml").base.visuals, shapes, strict=True):
        assert a.shape == b.shape and a.name == b.name and a.path == b.path
        assert_equal(np.array(a.size), np.array(b.size))
        assert_equal(a.pose, b.pose)
        assert a.color == b.color


ARM = Link("arm", 1.0, (0.5, 0, 0), np.diag([0.1, 0.2, 0.25]))


def one(kind: str = "continuous", link: Link = ARM, **settings: object) -> torsor.Robot:
    return torsor.build("one", [Link("ground"), link], [Joint("pin", kind, "ground", link.name, **settings)])  # type: ignore[arg-type]


def test_limits_come_back_on_either_side(tmp_path: Path) -> None:
    for lower, upper in ((-1.0, 2.0), (-np.inf, 2.0), (-1.0, np.inf)):
        pin = written(one("revolute", lower=lower, upper=upper, effort_limit=7.0), tmp_path / "one.xml").joint("pin")
        assert (*pin.lower, *pin.upper, *pin.effort_limit) == (lower, upper, 7.0)


OMITTED = {
    "MJCF cannot express a moving link 'world', written as 'world_' (world)": one(link=replace(ARM, name="world")),
    "MJCF cannot express velocity limits (pin)": one(velocity_limit=3.0),
    "MJCF cannot express smooth Coulomb friction, written as sign(v) (pin)": one(coulomb=1.0, smooth=0.1),
    "MJCF cannot express nonlinear stiffness (pin)": one(spring=Spring("2 + x**2")),
    "MJCF cannot express coulomb that differs between the velocities of a joint (pin)": one(
        "spherical", coulomb=[1, 2, 3]
    ),
    "MJCF cannot express limits of spherical joints (pin)": one("spherical", upper=0.5),
    "MJCF cannot express rotor_inertia of free joints (pin)": one("free", rotor_inertia=0.5),
    "MJCF cannot express gyroscopic moments of rotors in moving links (their armature is written) (pin)": one(
        motor=Motor("arm", 0.01, 3.0)
    ),
    "MJCF cannot express gains of joints with several velocities (pin)": one("spherical", kp=2.0, kd=0.1),
    "MJCF cannot express equal lower and upper limits (pin)": one("revolute", lower=0.0, upper=0.0),
    "MJCF cannot express effort limits of 0 (pin)": one(effort_limit=0.0),
    "MJCF cannot express mass or inertia of 0 in moving bodies, written as 1e-14 (rod)": one(
        link=Link("rod", 1.0, (1, 0, 0))
    ),
    "MJCF cannot express motors of joints with several velocities (pin/wx)": one("spherical").with_active(["pin/wx"]),
}


@pytest.mark.parametrize("what", OMITTED)
def test_what_mjcf_cannot_express_is_named_in_a_warning(tmp_path: Path, what: str) -> None:
    with warned(what) as caught:
        OMITTED[what].save(tmp_path / "one.xml")
    assert len(caught) == 1 and caught[0].filename == __file__
    assert torsor.load(tmp_path / "one.xml").joint_names == ("pin",)


ODD = Link("odd", 1.0, inertia=np.diag([1.0, 1.0, 3.0]), strict=False)
REFUSED = {
    "loop": one().with_loop("bar", "ground", "arm", "rod", length=1.0),
    "coupling 'sum' has 3 coordinates": library.seven_axis_arm().with_coupling(
        "sum", {"joint1": 1.0, "joint2": 1.0, "joint3": 1.0}
    ),
    "robot.without_motor('pin').with_motor('pin', ...)": one(motor=Motor("ground", 1.0, stiffness=1.0)),
    "no body has the principal moments": one(link=ODD),
}


@pytest.mark.parametrize("found", REFUSED)
def test_a_mechanism_that_mjcf_cannot_describe_is_an_error_and_no_file_is_written(tmp_path: Path, found: str) -> None:
    with refused(found, where="one.xml"):
        REFUSED[found].save(tmp_path / "one.xml")
    assert not list(tmp_path.iterdir())


def test_names_and_frames_of_the_base_come_back(tmp_path: Path) -> None:
    odd = 'a "b" <c> & d\n\t'
    joint = Joint(odd, "continuous", odd + "0", odd)
    links = [Link(odd + "0", 2.0, inertia=np.eye(3)), replace(ARM, name=odd)]
    robot = torsor.build("odd", links, [joint], [Frame(odd + "f", odd + "0")])
    again = written(robot, tmp_path / "odd.mjcf")
    assert again.joint_names == (odd,) and again.link_names == (odd,) and odd + "f" in again.places


def test_colours_of_ellipsoids_and_names_of_collision_shapes_come_back(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text("""<mujoco><default><geom friction="0.8"/></default>
      <worldbody><body name="hand"><joint name="j"/>
      <geom name="palm" type="ellipsoid" size="0.1 0.2 0.3" rgba="0.9 0.1 0.123456 1" contype="0" conaffinity="0"/>
      <geom name="tip" type="ellipsoid" size="0.3 0.2 0.1" rgba="0.1 0.2 0.3 1"/>
      <geom name="cap" type="capsule" size="0.1 0.2" rgba="0.3 0.2 0.1 1"/></body></worldbody></mujoco>""")
    robot = torsor.load(tmp_path / "arm.xml")
    assert [shape.name for shape in robot.links[0].shapes] == ["tip", "cap"]
    for suffix in (".xml", ".sdf", ".toml"):
        robot.save(tmp_path / f"again{suffix}")
        (link,) = torsor.load(tmp_path / f"again{suffix}").links
        assert {shape.name for shape in link.shapes} == {"tip", "cap"}
        assert sorted((each.shape, each.size, each.color) for each in link.visuals) == sorted(
            (each.shape, each.size, each.color) for each in robot.links[0].visuals
        )
        assert len(link.visuals) == 3
    with warned(what="ellipsoids (palm, tip)"):
        robot.save(tmp_path / "again.urdf")


@pytest.mark.parametrize("suffix", [".urdf", ".sdf"])
def test_a_visual_of_size_0_is_left_out_so_that_mujoco_reads_the_written_file(tmp_path: Path, suffix: str) -> None:
    if suffix == ".urdf":
        shapes = '<visual><geometry><sphere radius="0"/></geometry></visual>'
        text = f'<robot name="r"><link name="a">{shapes}</link></robot>'
    else:
        shapes = "<visual name='v'><geometry><box><size>0 0 0</size></box></geometry></visual>"
        body = "<inertial><mass>1</mass><inertia/></inertial>"
        text = f'<sdf version="1.9"><model name="r"><link name="a">{body}{shapes}</link></model></sdf>'
    (tmp_path / f"r{suffix}").write_text(text)
    with warned(argument="size", where="line 1: link 'a'"):
        robot = torsor.load(tmp_path / f"r{suffix}")
    robot.save(tmp_path / "r.xml")
    assert not robot.base.visuals and mujoco.MjModel.from_xml_path(str(tmp_path / "r.xml")).ngeom == 0


@pytest.mark.parametrize(
    "actuators",
    [
        '<motor joint="pin" gear="3" ctrlrange="-2 1"/>',
        '<motor joint="pin" gear="3" ctrlrange="-2 1" forcerange="-1.5 1.5"/>',
        '<motor joint="pin" ctrlrange="-2 2"/><general joint="pin" gear="-2" gainprm="5" ctrlrange="0 1"/>',
    ],
)
def test_the_effort_limit_of_motors_is_the_largest_force_in_mujoco(actuators: str, tmp_path: Path) -> None:
    body = '<body><joint name="pin"/><geom size="0.1"/></body>'
    text = f"<mujoco><worldbody>{body}</worldbody><actuator>{actuators}</actuator></mujoco>"
    model = mujoco.MjModel.from_xml_string(text)
    data, forces = mujoco.MjData(model), []
    for side in (-1.0, 1.0):
        data.ctrl[:] = side * 1e9 * np.sign(model.actuator_gear[:, 0])
        mujoco.mj_forward(model, data)
        forces.append(abs(data.qfrc_actuator[0]))
    (tmp_path / "one.xml").write_text(text)
    np.testing.assert_allclose(torsor.load(tmp_path / "one.xml").effort_limit, max(forces), rtol=1e-14)


@pytest.mark.parametrize("kind", ["hinge", "slide"])
def test_gains_of_actuators_are_the_derivatives_of_their_forces_in_mujoco(kind: str, tmp_path: Path) -> None:
    servos = (
        '<position joint="pin" kp="40" kv="2" gear="3"/><velocity joint="pin" kv="5"/><motor joint="pin" gear="7"/>'
        '<general joint="pin" gear="-2" biastype="affine" gainprm="3" biasprm="1 -11 -0.5"/>'
    )
    body = f'<body><joint name="pin" type="{kind}"/><geom size="0.1"/></body>'
    text = f"<mujoco><worldbody>{body}</worldbody><actuator>{servos}</actuator></mujoco>"
    model = mujoco.MjModel.from_xml_string(text)
    data, forces = mujoco.MjData(model), []
    for q, v in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        forces.append(data.qfrc_actuator[0])
    (tmp_path / "one.xml").write_text(text)
    robot = torsor.load(tmp_path / "one.xml")
    np.testing.assert_allclose([robot.kp[0], robot.kd[0]], [forces[0] - forces[1], forces[0] - forces[2]], rtol=1e-14)
    again = written(robot, tmp_path / "again.xml")
    assert (again.kp, again.kd) == (robot.kp, robot.kd)
    (tmp_path / "one.xml").write_text(text.replace("-0.5", "0.5"))
    with warned(what="negative gains of actuators"):
        torsor.load(tmp_path / "one.xml")


@pytest.mark.parametrize("floor", ['friction="0.4"', 'friction="0.4" priority="-1"', 'friction="2" priority="3"', ""])
@pytest.mark.parametrize("ball", ['friction="0.6"', 'friction="0.3" priority="3"', 'friction="0.3" priority="4"'])
def test_friction_between_two_shapes_is_that_of_mujoco(floor: str, ball: str, tmp_path: Path) -> None:
    body = f'<body><freejoint/><geom size="0.1" {ball}/></body>'
    plane = f'<geom type="plane" size="1 1 1" {floor}/>'
    text = f"<mujoco><worldbody>{plane}{body}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    (tmp_path / "ball.xml").write_text(text)
    (touch,) = Contact().touches(torsor.load(tmp_path / "ball.xml"))
    assert friction_of(touch, Contact()) == data.contact.friction[0, 0]
    assert friction_of(touch, Contact(friction=0.1)) == 0.1
    (tmp_path / "ball.xml").write_text(text.replace(plane, ""))
    robot = torsor.load(tmp_path / "ball.xml")  # without a floor
    (touch,) = Contact().touches(robot)
    assert friction_of(touch, Contact()) == robot.links[0].shapes[0].friction

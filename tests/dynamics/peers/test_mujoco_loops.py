"""Equality constraints of MJCF against MuJoCo itself: the same residuals, and motions that its own matrices require.

MuJoCo's constraints are soft. Its mass matrix, bias and Jacobian of the constraints, put into the equations with
multipliers, give the motion with rigid constraints; its own solution approaches that as they stiffen.
"""

import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import torsor
from bench.coordinates import MujocoCoordinates, quaternions
from robot.closed_loops.closing import closed_near

mujoco = pytest.importorskip("mujoco")
from .test_mujoco import Twin as Tree

BAR = '<geom type="capsule" fromto="0 0 0 {0} 0 0" size="0.02"/>'
FOUR_BAR = f"""
<mujoco model="four bar">
  <option gravity="0 -9.81 0"/>
  <worldbody>
    <body name="crank"><joint name="main" ref="20"/>{BAR.format(0.4)}
      <body name="coupler" pos="0.4 0 0" euler="0 0 40"><joint name="knee" damping="0.1"/>{BAR.format(0.9)}</body>
    </body>
    <body name="rocker" pos="1 0 0" euler="0 0 90"><joint name="swing" stiffness="3"/>{BAR.format(0.8)}
      <site name="top" pos="0.8 0 0"/>
    </body>
  </worldbody>
  <equality><connect name="pin" body1="coupler" body2="rocker" anchor="0.9 0 0"/></equality>
  <actuator><motor joint="main"/></actuator>
</mujoco>
"""
# Three legs of a hinge, a slide and a ball each carry a plate: the plate hangs on one, sites hold it to the others.
LEG = """
<body name="hip{0}" pos="{1}" euler="0 0 {2}"><joint name="lean{0}" axis="0 1 0"/>{3}
  <body name="shin{0}"><joint name="push{0}" type="slide" axis="0 0 1" ref="0.1" armature="0.1"/>
    <geom type="box" size="0.03 0.03 0.2" pos="0 0 0.2"/><site name="ankle{0}" pos="0 0 0.6"/>{4}</body>
</body>
"""
CYLINDER = '<geom type="cylinder" size="0.04 0.2"/>'
PLATE = """
<body name="plate" pos="0 0 0.6"><joint name="ball" type="ball" damping="0.02"/>
  <geom type="cylinder" size="0.3 0.02" pos="-0.3 0 0"/>
  <site name="corner1" pos="-0.45 0.26 0.02"/><site name="corner2" pos="-0.45 -0.26 0.02"/></body>
"""
TRIPOD = f"""
<mujoco model="tripod">
  <worldbody>
    {LEG.format(0, "0.35 0 0", 0, CYLINDER, PLATE)}
    {LEG.format(1, "-0.17 0.3 0", 120, CYLINDER, "")}
    {LEG.format(2, "-0.17 -0.3 0", 240, CYLINDER, "")}
  </worldbody>
  <equality>
    <connect site1="ankle1" site2="corner1"/>
    <connect site1="ankle2" site2="corner2"/>
  </equality>
  <actuator><motor joint="push0"/><motor joint="push1"/><motor joint="push2"/></actuator>
</mujoco>
"""


def chain(count: int) -> str:
    """Bodies connected by hinges about axes in all directions."""
    axes, text = ["0 0 1", "0 1 0.3", "1 0.2 0", "0 0.5 1", "1 1 0", "0.3 0 1", "1 0 -0.4"], ""
    for k in reversed(range(count)):
        joint = f'<joint name="j{k}" axis="{axes[k]}" ref="{5 * k}"/>'
        text = f'<body name="b{k}" pos="0.3 0.05 0.02" euler="{10 * k} 20 5">{joint}{BAR.format(0.3)}{text}</body>'
    return text


def ring(equality: str, count: int = 7) -> str:
    return f"""
<mujoco model="ring"><worldbody>{chain(count)}</worldbody><equality>{equality}</equality>
  <actuator><motor joint="j1"/></actuator></mujoco>"""


WELD = ring('<weld name="glue" body1="b6" anchor="0.1 0.2 0.3" torquescale="1.7"/>')
POSED = ring('<weld body1="b0" body2="b6" anchor="0.1 0 0.1" relpose="0.3 0.2 0.2 1 0.2 0.3 0.1"/>').replace(
    'joint="j1"',
    'joint="j0"',  # what is behind it is rigid
)
SITES = ring('<weld site1="b6" site2="dock" torquescale="0.5"/>').replace(
    '<joint name="j6"', '<site name="b6" pos="0.1 0 0.2" euler="5 0 9"/><joint name="j6"'
)
SITES = SITES.replace("<worldbody>", '<worldbody><site name="dock" pos="1 0.2 -0.2" euler="10 90 30"/>')
BALL = ring('<weld body1="b4" torquescale="0" anchor="0.1 0.2 0.3"/>', 5).replace('"j1"/>', '"j1"/><motor joint="j2"/>')
GEARS = ring(
    '<joint name="belt" joint1="j2" joint2="j1" polycoef="0.3 -1.5"/><joint name="lock" joint1="j3" polycoef="0.2"/>'
    '<joint joint1="j0" joint2="j4" polycoef="0.1 0"/><connect name="off" body1="b0" body2="b4" anchor="0 0 0" '
    'active="false"/>',
    5,
).replace('"j1"/>', '"j1"/><position joint="j4"/>')
# A floating base has no drive.
FLOATING = (
    FOUR_BAR.replace('<joint name="main" ref="20"/>', '<freejoint name="main"/>')
    .replace("<actuator>", "<!--")
    .replace("</actuator>", "-->")
)
DRIVEN = {
    "four bar": FOUR_BAR,
    "tripod": TRIPOD,
    "weld": WELD,
    "posed": POSED,
    "sites": SITES,
    "ball": BALL,
    "gears": GEARS,
}
FILES = DRIVEN | {"floating": FLOATING}


class Twin(Tree):
    """One file as a robot of Torsor and as a model of MuJoCo, with equality constraints."""

    def __init__(self, text: str, folder: Path):
        path = folder / "robot.xml"
        path.write_text(text)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            MujocoCoordinates.__init__(self, torsor.load(path).to(device="casadi"))
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        off = mujoco.mjtDisableBit
        self.model.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_ACTUATION  # the forces of motors are put in
        self.data = mujoco.MjData(self.model)

    def start(self) -> np.ndarray:
        """Return the pose of the file."""
        q = np.array(self.model.qpos0)
        for quaternion in quaternions(self.robot):
            q[quaternion] = np.roll(q[quaternion], -1)
        return q

    def closed(self, seed: int) -> np.ndarray:
        """Return a place where the loops are closed, not far from the pose of the file."""
        v = 0.2 * np.random.default_rng(seed).normal(size=self.robot.nv)
        return closed_near(self.robot, self.robot.integrate(self.start(), v))

    def equalities(self) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """Return (number, residuals, Jacobian) of each equality constraint of MuJoCo."""
        d, found = self.data, []
        J = d.efc_J.reshape(-1, self.model.nv)
        for e in range(self.model.neq):
            rows = (d.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY) & (d.efc_id == e)
            if rows.any():
                found.append((e, np.array(d.efc_pos[rows]), J[rows].copy()))
        return found

    def ours(self, q: np.ndarray, e: int, theirs: np.ndarray) -> np.ndarray:
        """Return residuals of MuJoCo as ours are: in the axes of the first frame, twice the sine of half an angle."""
        loop = self.loop(e)
        if isinstance(loop, torsor.Coupling):
            return theirs
        found = -self.robot.pose(q, loop.a)[:3, :3].T @ theirs[:3]
        if loop.kind != "weld":
            return found
        one, other = self.quaternions(e)
        side = np.sign(one @ other)  # two quaternions are one rotation
        return np.concatenate([found, -2 * side * theirs[3:] / self.model.eq_data[e, 10]])

    def quaternions(self, e: int) -> list[np.ndarray]:
        """Return MuJoCo's quaternions of the two frames that a weld holds together."""
        m, ends = self.model, (int(self.model.eq_obj1id[e]), int(self.model.eq_obj2id[e]))
        if m.eq_objtype[e] == mujoco.mjtObj.mjOBJ_SITE:
            pairs = [(m.site_bodyid[site], m.site_quat[site]) for site in ends]
        else:
            pairs = [(ends[0], m.eq_data[e, 6:10]), (ends[1], np.eye(4)[0])]
        found = [np.zeros(4), np.zeros(4)]
        for quaternion, (body, turn) in zip(found, pairs, strict=True):
            mujoco.mju_mulQuat(quaternion, self.data.xquat[body], turn)
        return found

    def loop(self, e: int) -> torsor.Loop | torsor.Coupling:
        name = self.model.equality(e).name or f"equality{e}"
        return next(loop for loop in self.robot.loops if loop.name == name)

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return J' v of all equality constraints at a closed place, from MuJoCo's rates of Jacobians of points."""
        m, d, found = self.model, self.data, []
        for e, residuals, _ in self.equalities():
            loop = self.loop(e)
            if isinstance(loop, torsor.Coupling):
                found.append(np.zeros(1))
                continue
            rates = []
            for name in (loop.a, loop.b):
                place = self.robot.place(name)
                body = m.body(self.robot.link_names[place.link] if place.link >= 0 else "world").id
                R, p = d.xmat[body].reshape(3, 3), d.xpos[body]
                linear, angular = np.zeros((3, m.nv)), np.zeros((3, m.nv))
                mujoco.mj_jacDot(m, d, linear, angular, p + R @ place.pose[:3, 3], body)
                rates.append(np.concatenate([linear @ v, angular @ v]))
            change = rates[0] - rates[1]
            if loop.kind == "weld":
                R_b = self.robot.pose(q, loop.b)[:3, :3]
                one, other = self.quaternions(e)
                change[3:] = 0.5 * m.eq_data[e, 10] * np.sign(one @ other) * R_b.T @ change[3:]
            found.append(change[: len(residuals)])
        return np.concatenate(found)


@pytest.fixture(params=FILES)
def twin(request: pytest.FixtureRequest, tmp_path: Path) -> Twin:
    return Twin(FILES[request.param], tmp_path)


@pytest.fixture(params=DRIVEN)
def driven(request: pytest.FixtureRequest, tmp_path: Path) -> Twin:
    return Twin(DRIVEN[request.param], tmp_path)


def test_the_pose_of_the_file_is_closed_as_it_is_there(twin: Twin) -> None:
    q = twin.start()
    twin.set(q)
    theirs = np.concatenate([residuals for _, residuals, _ in twin.equalities()])
    assert (np.abs(theirs).max() < 1e-9) == (np.abs(twin.robot.closed.error(q)).max() < 1e-9)


def test_residuals_are_those_of_mujoco_anywhere(twin: Twin) -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        q = twin.robot.integrate(twin.robot.neutral(), rng.uniform(-2, 2, twin.robot.nv))
        twin.set(q)
        rows = {twin.loop(e).name: twin.ours(q, e, residuals) for e, residuals, _ in twin.equalities()}
        theirs = np.concatenate([rows[loop.name] for loop in twin.robot.loops])
        np.testing.assert_allclose(twin.robot.closed.error(q), theirs, rtol=0, atol=1e-10)


def test_jacobians_are_those_of_mujoco_where_loops_are_closed(twin: Twin) -> None:
    q = twin.closed(1)
    A = twin.velocity_map(q)
    twin.set(q)
    rows = {twin.loop(e).name: np.array([twin.ours(q, e, c) for c in (J @ A).T]).T for e, _, J in twin.equalities()}
    theirs = np.concatenate([rows[loop.name] for loop in twin.robot.loops])
    np.testing.assert_allclose(twin.robot.closed.jacobian(q), theirs, rtol=0, atol=1e-10)


def motion(twin: Twin, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, velocities and forces of the active coordinates, and these forces among all."""
    robot, rng, q = twin.robot, np.random.default_rng(seed), twin.closed(seed)
    x, tau = rng.normal(size=(2, len(robot.active)))
    given = np.zeros(robot.nv)
    given[[robot.coordinate_names.index(name) for name in robot.active]] = tau
    return q, x, tau, given


def test_accelerations_are_those_that_mujocos_matrices_and_multipliers_give(driven: Twin) -> None:
    robot = driven.robot
    assert len(robot.active) == robot.closed.mobility().dof
    for seed in range(3):
        q, x, tau, given = motion(driven, seed)
        v = robot.closed.velocities(q, x)
        driven.set(q, v)
        J = np.concatenate([J for *_, J in driven.equalities()])
        force = given + driven.data.qfrc_passive - driven.data.qfrc_bias
        system = np.block([[driven.mass_matrix(), -J.T], [J, np.zeros((len(J), len(J)))]])
        a = np.linalg.lstsq(system, np.r_[force, -driven.drift(q, v)], rcond=1e-12)[0][: robot.nv]
        found = robot.closed.forward_dynamics(q, x, tau)
        np.testing.assert_allclose(robot.closed.accelerations(q, x, found)[1], a, rtol=0, atol=1e-9 * np.abs(a).max())


def test_mujocos_own_solution_at_rest_comes_near_as_its_constraints_stiffen(driven: Twin) -> None:
    """A tenth of the compliance is a tenth of the error.

    MuJoCo adds (1 - d) / d of a rough estimate of the mechanism's own, with d at most 0.9999; here the estimate is made
    less. In motion it would not come near: MuJoCo leaves J' v out of what it asks of the accelerations.
    """
    q, x, tau, given = motion(driven, 5)
    rest = 0 * x
    exact = driven.robot.closed.accelerations(q, rest, driven.robot.closed.forward_dynamics(q, rest, tau))[1]
    driven.model.eq_solimp[:, :2] = 0.9999
    errors = []
    for _ in range(5):
        driven.set(q)
        driven.data.qfrc_applied[:] = given
        mujoco.mj_forward(driven.model, driven.data)
        errors.append(np.abs(driven.data.qacc - exact).max() / np.abs(exact).max())
        driven.model.body_invweight0[:] /= 10
        driven.model.dof_invweight0[:] /= 10
    # Below 1e-7 its solver stops.
    ratios = [one / two for one, two in pairwise(errors) if one < 0.02 and two > 3e-7]
    np.testing.assert_allclose(ratios, 10, rtol=0.05)
    assert ratios and errors[-1] < 1e-3


def test_files_keep_the_loops_of_mjcf(twin: Twin, tmp_path: Path) -> None:
    twin.robot.save(tmp_path / "robot.toml")
    again = torsor.load(tmp_path / "robot.toml")
    assert (
        again.to(device="casadi") == twin.robot
        and again.loops == twin.robot.loops
        and again.active == twin.robot.active
    )


def test_names_of_constraints_sites_and_drives_are_kept(tmp_path: Path) -> None:
    robot = Twin(FOUR_BAR, tmp_path).robot
    assert robot.loops == (torsor.Loop("pin", "pin/a", "pin/b", "spherical"),) and robot.active == ("main",)
    robot = Twin(TRIPOD, tmp_path).robot
    assert [(loop.name, loop.a, loop.b) for loop in robot.loops] == [
        ("equality0", "ankle1", "corner1"),
        ("equality1", "ankle2", "corner2"),
    ]
    assert robot.active == ("push0", "push1", "push2")
    robot = Twin(GEARS, tmp_path).robot
    assert [loop.name for loop in robot.loops] == ["belt", "lock", "equality2"] and robot.active == ("j1", "j4")
    text = FOUR_BAR.replace('name="top"', 'name="pin/a"')
    assert Twin(text, tmp_path).robot.loops[0].a == "pin/a_"
    assert (
        Twin(FOUR_BAR.replace("<option ", '<option><flag equality="disable"/></option><option '), tmp_path).robot.loops
        == ()
    )

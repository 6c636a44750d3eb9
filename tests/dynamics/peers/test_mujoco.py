"""The MJCF reader compared with MuJoCo itself: the same files, the same states, the same numbers.

MuJoCo's coordinates differ from ours (``MujocoCoordinates``): qvel = A(q) v. ``Twin`` keeps a file in both libraries.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import torsor
from bench.coordinates import MujocoCoordinates
from bench.twins import mujoco_mass_matrix
from refusals import refused, warned
from torsor import ModelWarning
from torsor.spatial import from_quaternion, to_quaternion

mujoco = pytest.importorskip("mujoco")

FILES = Path(__file__).parents[2] / "data" / "mjcf"
STATES = 3
RECENT = hasattr(mujoco.MjModel, "actuator_armature")  # older versions cannot read some of the files
recent = pytest.mark.skipif(not RECENT, reason=f"MuJoCo {mujoco.__version__} has no actuator_armature")
TOLERANCE = 1e-10
FREED = {
    "drone.xml": ('<body name="frame" pos="0 0 0.5" euler="0 0 20">', '<body name="frame"><freejoint name="root"/>')
}


def source(file, base):
    """Return the text of a file, with a free joint if the base floats, and its meshes by name."""
    text = (FILES / file).read_text()
    if base == "floating":
        text = text.replace(*FREED[file])
    return text, {mesh.name: mesh.read_bytes() for mesh in (FILES / "meshes").iterdir()}


class Twin(MujocoCoordinates):
    """One file as a robot of Torsor and as a model of MuJoCo."""

    def __init__(self, file: str, base: str):
        super().__init__(torsor.load(FILES / file, base=base).to(device="casadi"))  # few states: not worth compiling
        self.model = self.compiled(*source(file, base))
        self.data = mujoco.MjData(self.model)
        # Limits and contacts push; their forces are not compared, and a random state can be deep in one.
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY

    def compiled(self, text, assets):
        """Return MuJoCo's model of a file."""
        return mujoco.MjModel.from_xml_string(text, assets)

    def set(self, q, v=None):
        """Bring MuJoCo into the state."""
        self.data.qpos[:] = self.positions(q)
        self.data.qvel[:] = 0.0 if v is None else self.velocity_map(q) @ v
        mujoco.mj_forward(self.model, self.data)

    def mass_matrix(self):
        """Return MuJoCo's mass matrix."""
        return mujoco_mass_matrix(self.model, self.data)

    def jacobian(self, function, index, R, q):
        """Return MuJoCo's Jacobian of a body or site as ours is: (angular, linear) in the place's own axes."""
        linear, angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        function(self.model, self.data, linear, angular, index)
        return np.vstack([R.T @ angular, R.T @ linear]) @ self.velocity_map(q)

    def bodies(self):
        """Return (index, name) of all bodies but the world."""
        return [(i, self.model.body(i).name or f"body{i}") for i in range(1, self.model.nbody)]

    def sites(self):
        """Return (index, name) of all sites, named as the reader does."""
        links = {name for _, name in self.bodies()}
        names = [self.model.site(i).name or f"site{i}" for i in range(self.model.nsite)]
        return [(i, f"{name}/site" if name in links else name) for i, name in enumerate(names)]

    def states(self):
        """Yield random (q, v, a), quaternions anywhere on their sphere."""
        rng = np.random.default_rng(20240607)
        for _ in range(STATES):
            q = self.robot.integrate(self.robot.neutral(), rng.uniform(-3, 3, self.robot.nv))
            yield q, rng.normal(size=self.robot.nv), rng.normal(size=self.robot.nv)


NAMES = [path.name for path in sorted(FILES.glob("*.xml")) if RECENT or path.name != "geared.xml"]
CASES = [(name, "fixed") for name in NAMES] + [("drone.xml", "floating")]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(case))
def twin(request):
    return Twin(*request.param)


def assert_equal(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    scale = np.abs(expected).max(initial=0.0) or 1.0
    assert np.abs(found - expected).max(initial=0.0) <= TOLERANCE * scale


# The same numbers


def test_the_files_are_many_and_have_every_kind_of_joint():
    kinds = {joint.type for file, base in CASES for joint in torsor.load(FILES / file, base=base).joints}
    assert len(CASES) >= 9
    assert kinds == {"free", "spherical", "prismatic", "revolute", "continuous"}


def test_bodies_and_sites_are_where_mujoco_has_them(twin):
    for q, _, _ in twin.states():
        twin.set(q)
        for i, name in twin.bodies():
            pose = twin.robot.pose(q, name)
            assert_equal(pose[:3, 3], twin.data.xpos[i])
            assert_equal(pose[:3, :3], twin.data.xmat[i].reshape(3, 3))
        for i, name in twin.sites():
            pose = twin.robot.pose(q, name)
            assert_equal(pose[:3, 3], twin.data.site_xpos[i])
            assert_equal(pose[:3, :3], twin.data.site_xmat[i].reshape(3, 3))


def test_link_poses_all_at_once_are_the_poses_of_bodies(twin):
    index = {name: i for i, name in twin.bodies()}
    for q, _, _ in twin.states():
        twin.set(q)
        for name, pose in zip(twin.robot.link_names, twin.robot.poses(q), strict=True):
            if name in index:  # the others are between the joints of one body
                assert_equal(pose[:3, 3], twin.data.xpos[index[name]])
                assert_equal(pose[:3, :3], twin.data.xmat[index[name]].reshape(3, 3))


def test_mass_matrix_is_that_of_mujoco(twin):
    for q, _, _ in twin.states():
        twin.set(q)
        A = twin.velocity_map(q)
        assert_equal(twin.robot.mass_matrix(q), A.T @ twin.mass_matrix() @ A)


def test_inverse_dynamics_is_that_of_mujoco_with_damping_and_frictionloss(twin):
    for q, v, a in twin.states():
        twin.set(q, v)
        # Frictionloss is a constraint in MuJoCo, whose force at any speed is its bound, against the motion.
        friction = twin.model.dof_frictionloss * np.sign(twin.data.qvel) - twin.data.qfrc_passive
        force = twin.mass_matrix() @ twin.accelerations(q, v, a) + twin.data.qfrc_bias
        A = twin.velocity_map(q)
        assert_equal(twin.robot.inverse_dynamics(q, v, a), A.T @ (force + friction))
        assert_equal(twin.robot.without_friction().inverse_dynamics(q, v, a), A.T @ force)


def test_bias_force_is_that_of_mujoco_but_for_the_turning_axes_of_free_joints(twin):
    for q, v, _ in twin.states():
        twin.set(q, v)
        turning = twin.mass_matrix() @ twin.accelerations(q, v, np.zeros_like(v))
        expected = twin.velocity_map(q).T @ (twin.data.qfrc_bias + turning)
        assert_equal(twin.robot.without_friction().bias_force(q, v), expected)


def test_gravity_force_is_the_bias_of_mujoco_at_rest(twin):
    for q, _, _ in twin.states():
        twin.set(q)
        assert_equal(twin.robot.gravity_force(q), twin.velocity_map(q).T @ twin.data.qfrc_bias)


def test_jacobians_of_bodies_and_sites_are_those_of_mujoco(twin):
    for q, _, _ in list(twin.states())[:1]:
        twin.set(q)
        for i, name in twin.bodies():
            R = twin.data.xmat[i].reshape(3, 3)
            assert_equal(twin.robot.jacobian(q, name), twin.jacobian(mujoco.mj_jacBody, i, R, q))
        for i, name in twin.sites():
            R = twin.data.site_xmat[i].reshape(3, 3)
            assert_equal(twin.robot.jacobian(q, name), twin.jacobian(mujoco.mj_jacSite, i, R, q))


def test_energies_and_centre_of_mass_are_those_of_mujoco(twin):
    moving = twin.model.body_weldid != 0
    mass = twin.model.body_mass
    for q, v, _ in twin.states():
        twin.set(q, v)
        still = -twin.robot.gravity @ (mass[~moving] @ twin.data.xipos[~moving])  # bodies welded to the world
        potential, kinetic = twin.data.energy
        assert_equal(twin.robot.kinetic_energy(q, v), kinetic)
        assert_equal(twin.robot.potential_energy(q), potential - still)
        assert_equal(twin.robot.center_of_mass(q), mass[moving] @ twin.data.xipos[moving] / mass[moving].sum())


# What the file says beyond motion


def test_positions_at_the_drawn_pose_are_qpos0():
    robot = torsor.load(FILES / "crane.xml")
    model = mujoco.MjModel.from_xml_path(str(FILES / "crane.xml"))
    assert_equal(robot.pose(model.qpos0, "trolley")[:3, 3], [0, 0, 3])
    assert robot.joint("rail").lower == -1 and robot.joint("rail").upper == 4  # in qpos, as the positions are


def test_limits_armature_damping_and_friction_go_to_the_joints():
    robot = torsor.load(FILES / "arm6.xml")
    assert_equal(robot.upper[:3], np.deg2rad([170, 120, 150]))
    assert robot.joint("roll").type == "continuous" and robot.joint("elbow").type == "revolute"
    # 20 x 4 (the larger side), 80 by the joint's own range below 50 x 2, (30 + 10) x 1, none where one is not limited
    assert robot.effort_limit.tolist() == [80, 80, 40, np.inf, np.inf, np.inf]
    assert robot.joint("waist").rotor_inertia.tolist() == [0.02] and robot.joint("waist").viscous.tolist() == [0.4]
    assert robot.joint("pitch").coulomb.tolist() == [0.1]


@recent
def test_armature_and_damping_of_actuators_go_to_their_joints_by_the_gear_squared():
    swing, wag = torsor.load(FILES / "geared.xml").joints
    assert_equal(swing.rotor_inertia, [0.2 + 20**2 * 0.001 + 3**2 * 0.02])
    assert_equal(swing.viscous, [0.1 + 20**2 * 0.002])
    assert_equal(wag.rotor_inertia, [4 * 0.03] * 3)
    assert_equal(wag.viscous, [4 * 0.1] * 3)


@recent
@pytest.mark.parametrize("kind", ["hinge", "slide"])
def test_springs_of_joints_are_those_of_mujoco(tmp_path, kind):
    joint = f'<joint name="pin" type="{kind}" stiffness="2.5" springref="0.3" ref="0.1" damping="0.4"/>'
    path = written(tmp_path, joint, head='<compiler angle="radian"/>')
    robot, model = torsor.load(path), mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = -0.7, 1.3
    mujoco.mj_forward(model, data)
    assert_equal(robot.spring_force([-0.7]) + robot.friction_force([1.3]), -data.qfrc_passive)


def test_disabled_forces_are_not_read(tmp_path):
    damper = "damper" if hasattr(mujoco.mjtDisableBit, "mjDSBL_DAMPER") else "passive"  # of older versions
    flags = f'<option><flag {damper}="disable" frictionloss="disable" gravity="disable" limit="disable"/></option>'
    joint = '<joint name="pin" damping="1" frictionloss="1" range="-10 10" stiffness="0"/>'
    robot = torsor.load(written(tmp_path, joint, head=flags))
    pin = robot.joint("pin")
    assert not robot.gravity.any() and not pin.viscous.any() and not pin.coulomb.any()
    assert pin.type == "continuous" and np.isinf(pin.lower).all()


def test_nameless_bodies_joints_and_sites_are_numbered_and_names_stay_unique(tmp_path):
    robot = torsor.load(FILES / "gimbal.xml")
    assert robot.joint_names == ("outer", "middle", "inner", "joint3", "joint4", "joint5")
    assert robot.link_names[3:] == ("body2/joint3", "body2/joint4", "body2")
    assert [frame.name for frame in robot.frames] == ["site0"]
    second = '<body name="body1"><joint name="joint0"/><geom size="0.1"/></body>'
    robot = torsor.load(written(tmp_path, "<joint/>", inside=second, name=""))
    assert robot.link_names == ("body1_", "body1") and robot.joint_names == ("joint0_", "joint0")


def test_sites_become_frames_and_are_renamed_if_a_link_has_the_same_name():
    robot = torsor.load(FILES / "arm6.xml")
    frames = {frame.name: frame.link for frame in robot.frames}
    assert frames == {"pedestal": "world", "flange": "hand", "tool": "hand", "hand/site": "hand"}


def test_visible_geoms_are_the_visuals():
    grip, blade, *_ = torsor.load(FILES / "tool.xml").links
    assert [visual.shape for visual in grip.visuals] == ["cylinder", "box", "sphere", "capsule"]
    cylinder, box, sphere, capsule = grip.visuals
    assert cylinder.name == "handle" and cylinder.size == (0.03, 0.2)
    assert tuple(cylinder.color) == (0.6, 0.6, 0.7, 1.0)  # the digits of the file, not single precision
    assert box.size == (0.04, 0.2, 0.02) and sphere.size == (0.04,)
    assert_equal(capsule.size, [0.01, np.sqrt(0.03)])
    assert tuple(box.color) == (0.2, 0.4, 0.6, 1.0)
    assert [visual.shape for visual in blade.visuals] == ["mesh", "ellipsoid"]


@recent
def test_the_mesh_of_a_visual_is_the_file_where_mujoco_draws_it():
    visual = torsor.load(FILES / "tool.xml").links[1].visuals[0]
    lines = Path(visual.path).read_text().splitlines()
    corners = np.array([line.split()[1:] for line in lines if line.startswith("v ")], dtype=float)
    ours = corners * visual.size @ visual.pose[:3, :3].T + visual.pose[:3, 3]
    model = mujoco.MjModel.from_xml_path(str(FILES / "tool.xml"))
    R, edge = np.zeros(9), model.geom("edge")
    mujoco.mju_quat2Mat(R, edge.quat)
    theirs = model.mesh_vert @ R.reshape(3, 3).T + edge.pos
    distance = np.linalg.norm(ours[:, None] - theirs[None], axis=2)
    assert len(theirs) >= len(ours) and distance.min(axis=1).max() < 1e-7  # MuJoCo keeps vertices in single precision


# Floating bases


def test_a_floating_base_frees_the_one_welded_body():
    robot = torsor.load(FILES / "drone.xml", base="floating")
    assert robot.joint_names == ("root", "front", "back") and robot.nv == 8
    R = from_quaternion(np.array([0.1, 0.2, 0.3, 0.9]))
    pose = robot.pose(np.concatenate([[1, 2, 3], to_quaternion(R), [0, 0]]), "frame")
    assert_equal(pose[:3, 3], [1, 2, 3])
    assert_equal(pose[:3, :3], R)


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("pendulum.xml", "the base cannot float, because the bodies on the world are 'bob' (1 joints)"),
        ("walker.xml", "one body without joints"),
        ("swarm.xml", "'table' (0 joints), 'flap' (1 joints), 'puck' (1 joints)"),
    ],
)
def test_a_base_that_cannot_float_is_an_error(file, found):
    with refused(found):
        torsor.load(FILES / file, base="floating")


def test_an_unknown_base_is_an_error():
    with refused(argument="base"):
        torsor.load(FILES / "pendulum.xml", base="sliding")


# Warnings and errors


def written(folder, joint='<joint name="pin"/>', *, head="", tail="", inside="", body="", name="arm"):
    """Write a file with one arm and return its path."""
    named = f'name="{name}"' if name else ""
    arm = f'<body {named} {body}>{joint}<geom size="0.1" mass="1" pos="0.3 0 0"/>{inside}</body>'
    path = folder / "arm.xml"
    path.write_text(f"<mujoco>{head}<worldbody>{arm}</worldbody>{tail}</mujoco>")
    return path


PIN, CORD = '<joint name="pin"/>', '<tendon><fixed name="cord" {}><joint joint="pin" coef="1"/></fixed></tendon>'
TAUT = '<tendon tendon1="cord"/>'
OMITTED = {
    "equality constraints of tendons, flexible bodies and geoms (taut)": {
        "tail": CORD.format("") + '<equality><tendon name="taut" tendon1="cord"/></equality>',
    },
    "... 5 in all": {"tail": CORD.format("") + f"<equality>{TAUT * 5}</equality>"},
    "tendons (cord)": {"tail": CORD.format('stiffness="1"')},
    "tendons (cord) ": {"tail": CORD.format('damping="1"')},
    "tendons (cord)  ": {"tail": CORD.format('limited="true" range="-1 1"')},
    "springs of free and ball joints (pin)": {"joint": '<joint name="pin" type="ball" stiffness="2"/>'},
    "nonlinear springs (pin)": {"joint": '<joint name="pin" stiffness="2 3"/>'},
    "nonlinear damping (pin)": {"joint": '<joint name="pin" damping="1 2"/>'},
    "armature and frictionloss of free joints (pin)": {"joint": '<joint name="pin" type="free" armature="1"/>'},
    "limits of ball joints (pin)": {"joint": '<joint name="pin" type="ball" range="0 40"/>'},
    "armature and damping of actuators (pull)": {
        "tail": CORD.format("") + '<actuator><motor name="pull" tendon="cord" armature="1"/></actuator>'
    },
    "gravity compensation (arm)": {"body": 'gravcomp="0.5"'},
    "the motion of mocap bodies, which are fixed here (arm)": {"joint": "", "body": 'mocap="true"'},
    "fluid forces": {"head": '<option density="1.2"/>'},
    "fluid forces ": {"head": '<option viscosity="0.1"/>'},
    "skins (coat)": {
        "tail": '<deformable><skin name="coat" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2"><bone body="arm" '
        'bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/></skin></deformable>'
    },
    "flexible bodies (cloth)": {
        "joint": "",
        "inside": '<flexcomp name="cloth" type="grid" dim="2" count="3 3 1" spacing="0.1 0.1 0.1" radius="0.01"/>',
    },
}


@recent
@pytest.mark.parametrize("what", OMITTED)
def test_features_that_mechanisms_do_not_have_are_named_in_one_warning(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)  # where MuJoCo's log goes
    path = written(tmp_path, **OMITTED[what])
    with pytest.warns(ModelWarning) as caught:
        torsor.load(path)
    (warning,) = caught
    assert str(warning.message).startswith("arm.xml: omitted, because mechanisms do not support it: ")
    assert what.strip() in str(warning.message)
    assert warning.filename == __file__
    with refused(what="mechanisms do not support"):
        torsor.load(path, strict=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"joint": '<joint name="pin" stiffness="2"/>', "head": '<option><flag spring="disable"/></option>'},
        {"tail": '<equality><joint joint1="pin" active="false"/></equality>'},
        {"tail": CORD.format("")},
        {"tail": '<actuator><position joint="pin" kp="3"/></actuator>'},
    ],
)
@recent
def test_features_without_effect_give_no_warning(tmp_path, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torsor.load(written(tmp_path, **settings)).nv == 1


def spoil(monkeypatch, **values):
    """Replace values of MuJoCo's model for the bob of the pendulum: not every version can read them from a file."""
    compiled = mujoco.MjModel.from_xml_path(str(FILES / "pendulum.xml"))
    for name, value in values.items():
        getattr(compiled, name)[1] = value

    monkeypatch.setattr("torsor.formats.mjcf.reading.compile_mjcf", lambda path: (mujoco, compiled, {}))


def test_plugins_of_bodies_are_named_in_a_warning(monkeypatch):
    spoil(monkeypatch, body_plugin=0)
    with warned(where="pendulum.xml", what=": plugins of bodies (bob)"):
        torsor.load(FILES / "pendulum.xml")


def test_an_impossible_inertia_is_a_warning_and_strictly_an_error(monkeypatch):
    spoil(monkeypatch, body_inertia=[1, 1, 3])  # the compiler of MuJoCo 4 refuses it already
    with warned(where="pendulum.xml: link 'bob'", what="no body has the principal moments"):
        robot = torsor.load(FILES / "pendulum.xml")
    assert_equal(np.linalg.eigvalsh(robot.links[0].inertia), [1, 1, 3])
    with refused(where="pendulum.xml: link 'bob'", what="no body has the principal moments"):
        torsor.load(FILES / "pendulum.xml", strict=True)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"joint": '<joint name="pin" typo="1"/>'}, "MuJoCo rejects it: XML Error: Schema violation"),
        ({"joint": '<joint name="pin" axis="0 0 0"/>'}, "MuJoCo rejects it: Error: axis too small"),
        (
            {"inside": '<inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/>'},
            "MuJoCo rejects it: Error: inertia must satisfy",
        ),
        ({"tail": "<worldbody>"}, "not well-formed XML"),
    ],
)
def test_what_mujoco_refuses_is_an_error_that_names_the_file(tmp_path, settings, found):
    with refused(found):
        torsor.load(written(tmp_path, **settings))


def test_a_file_of_another_kind_is_an_error(tmp_path):
    from torsor.formats.mjcf.reading import read_mjcf

    path = tmp_path / "arm.urdf"
    path.write_text("<robot/>")
    with refused(where="arm.urdf", allowed="<mujoco>"):
        read_mjcf(path)


def test_an_xml_bomb_is_refused_before_mujoco_sees_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    path = tmp_path / "bomb.xml"
    path.write_text('<!DOCTYPE a [<!ENTITY b "bang"><!ENTITY c "&b;&b;&b;">]><mujoco model="&c;"/>')
    with refused(where="bomb.xml: line 1", what="a document type or entity declaration"):
        torsor.load(path)


def test_without_mujoco_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r'pendulum.xml: reading MJCF needs .*; fix: pip install "torsor\[mjcf\]"'):
        torsor.load(FILES / "pendulum.xml")

"""Robots written as USD have the same dynamics when they are read back: exactly, and by the schema alone to 1e-6."""

import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from bench.copies import without_surfaces
from refusals import refused
from torsor import ModelWarning, library
from torsor.formats.usd.stage import OWN
from torsor.mechanism import Joint, Link, Shape, build

from .written import MJCF, Copy, assert_equal

pxr = pytest.importorskip("pxr", reason='USD needs usd-core: pip install "torsor[usd]"')
from pxr import Usd, UsdPhysics, UsdUtils  # noqa: E402

ROBOTS = {name: robot for name, robot in MJCF.items() if name != "tree1"} | {
    "ur5": library.ur5(),
    "panda": library.panda(),
}
CHAINS = ("bench", "tree0")
PLAIN = 3e-6  # relative accuracy of the schema alone, whose numbers are of single precision
DATA = "cmeel.prefix/share/example-robot-data/robots"


def written(robot: torsor.Robot, path: Path) -> torsor.Robot:
    """Return the robot read back from a file; the reader must leave nothing out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot.save(path)
    return torsor.load(path)


def without_exact_numbers(path: Path) -> None:
    """Remove all data outside the schema."""
    stage = Usd.Stage.Open(str(path))
    for prim in stage.Traverse():
        prim.ClearCustomDataByKey(OWN)
    stage.Save()


@pytest.mark.parametrize("name", CHAINS)
def test_joints_that_become_chains_have_the_same_dynamics(name: str, tmp_path: Path) -> None:
    robot = ROBOTS[name]
    Copy(robot, written(robot, tmp_path / "robot.usda")).check(set(robot.places))


@pytest.mark.parametrize("name", [name for name in ROBOTS if name not in CHAINS])
def test_all_other_robots_are_equal_to_those_that_were_written(name: str, tmp_path: Path) -> None:
    robot = ROBOTS[name]
    again = written(robot, tmp_path / "robot.usda")
    assert again.joints == robot.joints
    for ours, theirs in zip(robot.links, again.links, strict=True):
        assert replace(ours, visuals=()) == replace(theirs, visuals=())
        for visual, copy in zip(ours.visuals, theirs.visuals, strict=True):
            assert (visual.shape, visual.size, visual.color) == (copy.shape, copy.size, copy.color)
            assert_equal(copy.pose, visual.pose)
    assert np.array_equal(again.gravity, robot.gravity)


@pytest.mark.parametrize("suffix", [".usda", ".usd", ".usdc"])
def test_a_robot_without_chains_is_the_same_in_text_and_in_binary(suffix: str, tmp_path: Path) -> None:
    robot = without_surfaces(library.ur5())
    assert written(robot, tmp_path / f"robot{suffix}") == robot


def test_a_robot_is_read_from_an_archive(tmp_path: Path) -> None:
    written(library.ur5(), tmp_path / "ur5.usdc")
    UsdUtils.CreateNewUsdzPackage(str(tmp_path / "ur5.usdc"), str(tmp_path / "ur5.usdz"))
    assert torsor.load(tmp_path / "ur5.usdz").joints == library.ur5().joints


@pytest.mark.parametrize("name", ["ur5", "chain"])
def test_the_schema_alone_has_single_precision(name: str, tmp_path: Path) -> None:
    robot = ROBOTS[name].to(device="casadi")
    written(robot, tmp_path / "robot.usda")
    without_exact_numbers(tmp_path / "robot.usda")
    plain = torsor.load(tmp_path / "robot.usda").to(device="casadi")
    rng = np.random.default_rng(1)
    q, v, a = robot.integrate(robot.neutral(), rng.normal(size=robot.nv)), *rng.normal(size=(2, robot.nv))
    assert_equal(plain.inverse_dynamics(q, v, a), robot.inverse_dynamics(q, v, a), PLAIN)
    assert_equal(plain.mass_matrix(q), robot.mass_matrix(q), PLAIN)


@pytest.mark.parametrize("mass", [2.0, 1e-50, 0.0])
def test_masses_and_inertias_of_zero_come_back_and_are_not_those_of_shapes(mass: float, tmp_path: Path) -> None:
    ball = Shape("sphere", (0.1,), np.eye(4), "ball")
    tip = Link("tip", mass, (0.5, 0.0, 0.0) if mass else (0.0, 0.0, 0.0), np.zeros((3, 3)), shapes=(ball,))
    rod = Link("rod", 1.0, (0.2, 0.0, 0.0), np.eye(3))
    joints = [Joint("a", "revolute", "base", "rod"), Joint("b", "revolute", "rod", "tip")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = torsor.Robot.of(build("pair", [Link("base"), rod, tip], joints))
        robot.save(tmp_path / "pair.usda")
        again = torsor.load(tmp_path / "pair.usda")
    for ours, theirs in zip(robot.links, again.links, strict=True):
        assert ours.mass == theirs.mass
        assert np.array_equal(ours.com, theirs.com)
        assert np.array_equal(ours.inertia, theirs.inertia)


def test_numbers_that_another_program_changed_count(tmp_path: Path) -> None:
    robot, path = library.ur5(), tmp_path / "ur5.usda"
    written(robot, path)
    stage = Usd.Stage.Open(str(path))
    link = stage.GetPrimAtPath("/ur5/forearm_link")
    UsdPhysics.MassAPI(link).GetMassAttr().Set(7.5)
    joint = stage.GetPrimAtPath("/ur5/joints/elbow_joint")
    joint.GetAttribute("physics:upperLimit").Set(90.0)
    stage.Save()
    again = torsor.load(path)
    assert again.links[robot.link_names.index("forearm_link")].mass == 7.5
    assert float(np.ravel(again.joints[2].upper)[0]) == pytest.approx(np.pi / 2, rel=1e-15)
    assert again.joints[2].lower == robot.joints[2].lower


@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_loops_come_back_with_their_frames_and_drives(name: str, tmp_path: Path) -> None:
    robot = getattr(library, name)()
    again = written(robot, tmp_path / "loop.usda")
    assert again.loops == robot.loops
    assert again.active == robot.active
    assert {frame.name: frame for frame in again.frames} == {frame.name: frame for frame in robot.frames}


def test_shapes_colours_and_postures_come_back(tmp_path: Path) -> None:
    shapes = [torsor.Shape("box", (0.1, 0.2, 0.3), name="b"), torsor.Shape("ellipsoid", (0.1, 0.2, 0.3))]
    shapes += [torsor.Shape("capsule", (0.1, 0.2), contype=2, friction=0.3, priority=1), torsor.Shape("plane")]
    shapes += [torsor.Shape("sphere", (0.1,))]
    robot = ROBOTS["bench"].with_shapes("d", shapes)
    again = written(robot, tmp_path / "robot.usda")
    for name in ("c", "d"):
        ours, theirs = (each.links[each.link_names.index(name)] for each in (robot, again))
        assert ours.shapes == theirs.shapes
        assert ours.visuals == theirs.visuals
    ours, theirs = robot.base.visuals[0], again.base.visuals[0]
    assert (ours.size, ours.color, ours.name) == (theirs.size, theirs.color, theirs.name)
    assert_equal(theirs.pose, ours.pose, 1e-15)


def test_the_physics_parser_of_usd_finds_the_articulation(tmp_path: Path) -> None:
    robot = library.ur5()
    written(robot, tmp_path / "ur5.usda")
    stage = Usd.Stage.Open(str(tmp_path / "ur5.usda"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its successor cannot be called from Python in 26.11
        found = UsdPhysics.LoadUsdPhysicsFromRange(stage, ["/"])
    counts = {kind.name: len(paths) for kind, (paths, _) in found.items()}
    assert counts["Articulation"] == 1
    assert counts["RevoluteJoint"] == robot.nv
    assert counts["RigidBody"] == len(robot.links) + 1
    paths, joints = next(each for kind, each in found.items() if kind.name == "RevoluteJoint")
    elbow = joints[[path.name for path in paths].index("elbow_joint")]
    assert elbow.limit.upper == pytest.approx(180.0, rel=1e-6)
    assert str(elbow.body0) == "/ur5/upper_arm_link"


@pytest.mark.parametrize(
    ("robot", "message"),
    [(library.elastic_arm(), "joint3"), (library.flexible_arm(), "beam1")],
)
def test_what_usd_cannot_express_is_an_error(robot: torsor.Robot, message: str, tmp_path: Path) -> None:
    with refused(message):
        robot.save(tmp_path / "robot.usda")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("link", "message"),
    [
        (Link("tip", 1e39), "physics:mass of /one/tip is too large"),
        (Link("tip", 1.0, (0, 1e39, 0)), "physics:centerOfMass of /one/tip is too large"),  # type: ignore[arg-type]
    ],
)
def test_numbers_too_large_for_single_precision_are_refused(link: Link, message: str, tmp_path: Path) -> None:
    robot = torsor.Robot.of(
        build("one", [Link("base"), link], [Joint("a", "revolute", "base", "tip", rotor_inertia=1)])
    )
    with refused(message, where="one.usda"):
        robot.save(tmp_path / "one.usda")
    assert not list(tmp_path.iterdir())


def test_limits_too_large_for_single_precision_are_none(tmp_path: Path) -> None:
    pin = Joint("a", "revolute", "base", "tip", upper=1e39, effort_limit=1e39, velocity_limit=1e39)
    robot = torsor.Robot.of(build("one", [Link("base"), Link("tip", 1.0, inertia=np.eye(3))], [pin]))
    again = written(robot, tmp_path / "one.usda").joints[0]
    assert np.isinf([again.upper, again.effort_limit, again.velocity_limit]).all()


def test_gains_of_drives_come_back(tmp_path: Path) -> None:
    joints = [
        Joint("a", "revolute", "base", "tip", kp=7.0, kd=0.1),
        Joint("b", "spherical", "tip", "ball", kd=[1.0, 2.0, 3.0]),
    ]
    links = [Link("base"), *(Link(name, 1.0, inertia=np.eye(3)) for name in ("tip", "ball"))]
    again = written(torsor.Robot.of(build("one", links, joints)), tmp_path / "one.usda")
    assert again.kp.tolist() == [7.0, 0.0, 0.0, 0.0] and again.kd.tolist() == [0.1, 1.0, 2.0, 3.0]


def _files() -> list[Path]:
    folder = next((Path(each, DATA) for each in sys.path if Path(each, DATA).is_dir()), None)
    return [] if folder is None else sorted(folder.rglob("*.urdf"))


NO_ROBOTS = ("falcon", "ur3")  # files of example-robot-data without links, or with a child that does not exist
WITH_SURFACES = ("double_pendulum", "ur5_robot", "solo12")


@pytest.mark.slow
def test_example_robot_data_has_files() -> None:
    assert len(_files()) > 70


@pytest.mark.slow
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("path", [path for path in _files() if path.stem not in NO_ROBOTS], ids=lambda path: path.stem)
def test_robots_of_example_robot_data_are_bit_for_bit_the_same(path: Path, base: str, tmp_path: Path) -> None:
    """Without their surfaces, which take most of the time, but for three robots."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = torsor.load(path, base=base)
        robot = robot if path.stem in WITH_SURFACES else without_surfaces(robot)
        again = written(robot, tmp_path / "robot.usda")
    assert again.joints == robot.joints
    for ours, theirs in zip((robot.base, *robot.links), (again.base, *again.links), strict=True):
        assert ours.mass == theirs.mass
        assert np.array_equal(ours.com, theirs.com)
        assert_equal(theirs.inertia, ours.inertia, 1e-15)
        for mine, other in ((ours.visuals, theirs.visuals), (ours.shapes, theirs.shapes)):
            assert [each.shape for each in mine] == [each.shape for each in other]

"""OpenSim skeletons as robots: joints that follow functions of coordinates are exact, including velocity forces."""

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from human.osim_leg import axis, leg
from refusals import refused, warned
from torsor import ModelWarning, Robot
from torsor.formats.osim.model import OsimBody, OsimCoordinate, OsimJoint, OsimLoop, OsimModel
from torsor.formats.osim.reading import mechanism_of
from torsor.human.measured import skeleton
from torsor.mechanism.curves import cubic_spline

from .written import assert_equal

DATA = Path(os.environ.get("TORSOR_WALK_DATA", "/nowhere"))
FILE = "subject_walk_scaled.osim"
ZERO = np.zeros(6)


def robot_of(model: OsimModel) -> Robot:
    return Robot.of(mechanism_of(model)).to(device="casadi")


def slide(function: str, numbers: object, scale: float = 1.0) -> Robot:
    """Return a mass of 2 kg that slides up by a function of a coordinate."""
    axes = [axis(f"rotation{k}", (1, 0, 0), "", "Constant", [0.0]) for k in (1, 2, 3)]
    axes += [axis("translation1", (0, 1, 0), "q", function, numbers, scale)]
    joint = OsimJoint(
        "cam", "CustomJoint", "ground", "load", ZERO, ZERO, (OsimCoordinate("q", 0.5, -2, 3, False),), tuple(axes)
    )
    body = OsimBody("load", 2.0, np.zeros(3), 0.01 * np.eye(3), np.ones(3))
    return robot_of(OsimModel("lift", {"load": body}, {"cam": joint}, {}, np.array([0, -9.81, 0])))


def test_a_mass_on_a_cam_has_the_closed_form() -> None:
    """With the height f(q), T = m (f' v)^2 / 2: tau = m f' (f' a + f'' v^2 + g)."""
    robot, (q, v, a) = slide("PolynomialFunction", [0.3, -0.2, 0.1, 0.7], 1.1), (0.8, 1.3, -0.4)
    f1, f2 = 1.1 * (0.9 * q**2 - 0.4 * q + 0.1), 1.1 * (1.8 * q - 0.4)
    assert robot.inverse_dynamics([q], [v], [a])[0] == pytest.approx(2 * f1 * (f1 * a + f2 * v**2 + 9.81), rel=1e-12)
    assert robot.mass_matrix([q])[0, 0] == pytest.approx(2 * f1**2, rel=1e-12)
    assert (robot.lower[0], robot.upper[0], robot.postures["default"][0]) == (-2.0, 3.0, 0.5)


def test_a_mass_on_a_spline_conserves_its_energy() -> None:
    x, y = [-2.0, -1.0, 0.0, 1.0, 2.0], [-1.5, -0.6, 0.0, 0.5, 1.6]
    robot = slide("SimmSpline", np.ravel(np.column_stack([x, y])))
    curve = cubic_spline(np.array(x), np.array(y))
    q, v, h = 0.9, 0.3, 1e-3

    def rate(q: float, v: float) -> np.ndarray:
        return np.array([v, robot.forward_dynamics([q], [v], [0.0])[0]])

    for _ in range(200):
        k1 = rate(q, v)
        k2 = rate(*(np.array([q, v]) + h / 2 * k1))
        k3 = rate(*(np.array([q, v]) + h / 2 * k2))
        k4 = rate(*(np.array([q, v]) + h * k3))
        q, v = np.array([q, v]) + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def energy(q: float, v: float) -> float:
        height, slope, _ = curve(np.array(q))
        return float((slope * v) ** 2 / 2 + 9.81 * height)

    assert 0.0 < q < 0.7  # between two knots: at a knot the third derivative jumps, which costs the integrator accuracy
    assert energy(q, v) == pytest.approx(energy(0.9, 0.3), rel=1e-9)


LEG = robot_of(leg())


def test_a_knee_by_splines_has_the_forces_of_a_tree_whose_joints_follow_their_functions() -> None:
    """The tree of the skeleton has one joint for each function; its forces become those of the coordinates by f'."""
    body = skeleton(leg())
    tree = replace(body, tree=body.tree.to(device="casadi"))
    rng = np.random.default_rng(2)
    q = np.array([[0.1, 0.2, 0.3, 0.4, 0.9, -0.2, 1.1, 0.0]])
    v, a = rng.normal(size=(2, 1, 8))
    (knee, cap), slopes = (6, 7), 0.2 * q[0, 6] + 0.8  # of the kneecap: 0.1 q^2 + 0.8 q
    q = tree.completed(q)
    v[0, cap] = slopes * v[0, knee]
    a[0, cap] = slopes * a[0, knee] + 0.2 * v[0, knee] ** 2
    x, dx, ddx = tree.states(q, v, a)
    forces = tree.forces(q, tree.tree.inverse_dynamics(x[0], dx[0], ddx[0])[None])[0]
    expected = dict(zip(tree.names, forces, strict=True))
    expected["knee"] += slopes * expected.pop("cap")
    at = [tree.names.index(name) for name in LEG.coordinate_names]
    found = LEG.inverse_dynamics(q[0, at], v[0, at], a[0, at])
    assert_equal(found, np.array([expected[name] for name in LEG.coordinate_names]))
    for name in ("shank", "cap", "calcn_r"):
        assert_equal(LEG.pose(q[0, at], name), tree.tree.pose(x[0], name))


def test_velocities_of_a_knee_are_differences_of_its_poses() -> None:
    q, h = np.array([0.4, 0.9, -0.2, 0.1, 0.2, 0.3, 1.1]), 1e-6
    J = LEG.jacobian(q, "cap")
    for k, unit in enumerate(np.eye(7)):
        there, back = (LEG.pose(q + s * h * unit, "cap") for s in (1, -1))
        R = LEG.pose(q, "cap")[:3, :3]
        W = (there - back)[:3, :3] / (2 * h) @ R.T  # skew(omega), in base axes
        omega, v = np.array([W[2, 1], W[0, 2], W[1, 0]]), (there - back)[:3, 3] / (2 * h)
        twist = np.concatenate([R.T @ omega, R.T @ v])
        np.testing.assert_allclose(J[:, k], twist, atol=1e-7)


def test_forward_dynamics_and_derivatives_of_a_knee_agree_with_inverse_dynamics() -> None:
    rng, h = np.random.default_rng(4), 1e-6
    q, (v, a) = np.array([0.4, 0.9, -0.2, 0.1, 0.2, 0.3, 1.1]), rng.normal(size=(2, 7))
    tau = LEG.inverse_dynamics(q, v, a)
    assert_equal(LEG.forward_dynamics(q, v, tau), a, 1e-10)
    by_q, by_v, by_a = LEG.derivatives.inverse_dynamics(q, v, a)
    for k, unit in enumerate(h * np.eye(7)):
        change = LEG.inverse_dynamics(q + unit, v, a) - LEG.inverse_dynamics(q - unit, v, a)
        assert_equal(by_q[:, k], change / (2 * h), 1e-7)
        assert_equal(
            by_v[:, k], (LEG.inverse_dynamics(q, v + unit, a) - LEG.inverse_dynamics(q, v - unit, a)) / (2 * h), 1e-7
        )
    assert_equal(by_a, LEG.mass_matrix(q))


def test_controllers_know_knees_by_splines() -> None:
    """Computed torque without errors is inverse dynamics."""
    robot = Robot.of(mechanism_of(leg()))
    q, v = np.array([0.4, 0.9, -0.2, 0.1, 0.2, 0.3, 1.1]), np.full(7, 0.3)
    law = torsor.control.computed_torque(robot, q, kp=10.0, kd=1.0)
    expected = LEG.inverse_dynamics(q, 0 * v, 0 * v)
    assert_equal(np.asarray(law(0.0, q, 0 * v)), expected, 1e-10)


def test_coupled_and_locked_coordinates_and_constants() -> None:
    model = leg()
    assert LEG.coordinate_names == ("tx", "ty", "tz", "tilt", "list", "rotation", "knee")
    joint = model.joints["knee_joint"]
    locked = replace(
        model,
        joints={
            **model.joints,
            "knee_joint": joint._replace(coordinates=(joint.coordinates[0]._replace(locked=True),)),
        },
        couplings=(),
    )
    still = robot_of(locked)
    assert "knee" not in still.coordinate_names and "cap" in still.coordinate_names
    q = np.array([0.4, 0.9, -0.2, 0.1, 0.2, 0.3])
    assert_equal(still.pose([*q, 0.7], "shank"), LEG.pose([*q, joint.coordinates[0].default], "shank"))


def test_constraints_between_bodies_are_loops() -> None:
    loops = (
        OsimLoop("glue", "weld", ("shank", "ground"), (ZERO, ZERO)),
        OsimLoop("pin", "spherical", ("cap", "pelvis"), (ZERO, ZERO)),
    )
    robot = robot_of(replace(leg(), loops=loops))
    assert [(loop.name, loop.kind) for loop in robot.loops] == [("glue", "weld"), ("pin", "spherical")]  # type: ignore[union-attr]


def test_a_skeleton_comes_back_from_toml_and_other_formats_refuse_it(tmp_path: Path) -> None:
    robot = Robot.of(mechanism_of(leg()))
    robot.save(tmp_path / "leg.toml")
    assert torsor.load(tmp_path / "leg.toml") == robot
    with refused(value="knee_joint/1"):
        robot.save(tmp_path / "leg.urdf")


NEW = """<OpenSimDocument Version="40500"><Model name="arm"><gravity>0 -9.81 0</gravity><BodySet><objects>
<Body name="arm"><mass>2</mass><mass_center>0 -0.2 0</mass_center><inertia>0.1 0.15 0.1 0.01 0 0</inertia></Body>
</objects></BodySet><JointSet><objects><CustomJoint name="shoulder">
<socket_parent_frame>there</socket_parent_frame><socket_child_frame>here</socket_child_frame>
<coordinates><Coordinate name="angle"><default_value>0.2</default_value><range>-1 2</range></Coordinate></coordinates>
<frames><PhysicalOffsetFrame name="there"><socket_parent>/ground</socket_parent><translation>0 1 0</translation>
<orientation>0.1 0.2 0.3</orientation></PhysicalOffsetFrame>
<PhysicalOffsetFrame name="here"><socket_parent>/bodyset/arm</socket_parent><translation>0 0.1 0</translation>
</PhysicalOffsetFrame></frames><SpatialTransform>
<TransformAxis name="rotation1"><coordinates>angle</coordinates><axis>0 0 1</axis>
<LinearFunction name="function"><coefficients>1 0</coefficients></LinearFunction></TransformAxis>
<TransformAxis name="rotation2"><coordinates></coordinates><axis>1 0 0</axis></TransformAxis>
<TransformAxis name="rotation3"><coordinates></coordinates><axis>0 1 0</axis></TransformAxis>
<TransformAxis name="translation1"><coordinates>angle</coordinates><axis>1 0 0</axis>
<SimmSpline name="function"><x>-1 0 1 2</x><y>0.1 0 0.2 0.1</y></SimmSpline></TransformAxis>
<TransformAxis name="translation2"><coordinates></coordinates><axis>0 1 0</axis></TransformAxis>
<TransformAxis name="translation3"><coordinates></coordinates><axis>0 0 1</axis></TransformAxis>
</SpatialTransform></CustomJoint></objects></JointSet><ForceSet><objects>
<Thelen2003Muscle name="biceps"/></objects></ForceSet></Model></OpenSimDocument>"""
OLD = """<OpenSimDocument Version="30000"><Model name="arm"><gravity>0 -9.81 0</gravity><BodySet><objects>
<Body name="ground"><mass>0</mass><Joint/></Body>
<Body name="arm"><mass>2</mass><mass_center>0 -0.2 0</mass_center><inertia_xx>0.1</inertia_xx>
<inertia_yy>0.15</inertia_yy><inertia_zz>0.1</inertia_zz><inertia_xy>0.01</inertia_xy><VisibleObject>
<scale_factors>1.1 1 0.9</scale_factors></VisibleObject><Joint>
<CustomJoint name="shoulder"><parent_body>ground</parent_body><location_in_parent>0 1 0</location_in_parent>
<orientation_in_parent>0.1 0.2 0.3</orientation_in_parent><location>0 0.1 0</location><orientation>0 0 0</orientation>
<CoordinateSet><objects><Coordinate name="angle"><default_value>0.2</default_value><range>-1 2</range></Coordinate>
</objects></CoordinateSet><reverse>false</reverse><SpatialTransform>
<TransformAxis name="rotation1"><function><LinearFunction><coefficients>1 0</coefficients></LinearFunction></function>
<coordinates>angle</coordinates><axis>0 0 1</axis></TransformAxis>
<TransformAxis name="rotation2"><function><Constant><value>0</value></Constant></function><axis>1 0 0</axis>
</TransformAxis><TransformAxis name="rotation3"><function><Constant><value>0</value></Constant></function>
<axis>0 1 0</axis></TransformAxis>
<TransformAxis name="translation1"><function><NaturalCubicSpline><x>-1 0 1 2</x><y>0.1 0 0.2 0.1</y>
</NaturalCubicSpline></function><coordinates>angle</coordinates><axis>1 0 0</axis></TransformAxis>
<TransformAxis name="translation2"><function><Constant><value>0</value></Constant></function><axis>0 1 0</axis>
</TransformAxis><TransformAxis name="translation3"><function><Constant><value>0</value></Constant></function>
<axis>0 0 1</axis></TransformAxis></SpatialTransform></CustomJoint></Joint></Body></objects></BodySet></Model>
</OpenSimDocument>"""


def read(folder: Path, text: str, **settings: bool) -> Robot:
    (folder / "arm.osim").write_text(text)
    return torsor.load(folder / "arm.osim", **settings)  # type: ignore[arg-type]


def test_versions_3_and_4_of_a_skeleton_are_the_same_robot(tmp_path: Path) -> None:
    old = read(tmp_path, OLD)
    with warned(what="omitted, because mechanisms do not support it: Thelen2003Muscle"):
        new = read(tmp_path, NEW)
    assert old == new
    assert (old.nv, len(old.joints)) == (1, 2)
    (tmp_path / "arm.osim").write_text(OLD)
    assert torsor.human.recordings.read_osim(tmp_path / "arm.osim").bodies["arm"].scale.tolist() == [1.1, 1.0, 0.9]
    with refused(what="do not support Thelen2003Muscle (biceps)"):
        read(tmp_path, NEW, strict=True)


def test_lengths_are_metres_as_in_opensim_whatever_the_file_calls_them(tmp_path: Path) -> None:
    with warned(argument="length_units", where="arm.osim"):
        renamed = read(tmp_path, OLD.replace("<BodySet>", "<length_units>millimeters</length_units><BodySet>"))
    assert renamed == read(tmp_path, OLD)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("CustomJoint", "EllipsoidJoint"), "a EllipsoidJoint"),
        (("<x>-1 0 1 2", "<x>-1 0 0 2"), "in increasing order"),
        (
            ("<coordinates>angle</coordinates><axis>0 0 1", "<coordinates>other</coordinates><axis>0 0 1"),
            "other",
        ),
        (
            ("<coordinates>angle</coordinates><axis>0 0 1", "<coordinates>angle b</coordinates><axis>0 0 1"),
            "one coordinate",
        ),
        (
            ('<LinearFunction name="function"><coefficients>1 0</coefficients></LinearFunction>', "<Sine/>"),
            "has a Sine",
        ),
        (("<coefficients>1 0</coefficients>", "<coefficients>1 0 2</coefficients>"), "coefficients"),
        (("<mass>2", "<mass>nan"), "<mass>"),
        (("<socket_parent>/ground", "<socket_parent>/moon"), "the body is 'moon'"),
        (("0.15 0.1 0.01 0 0</inertia>", "0.9 0.1 0.01 0 0</inertia>"), "no body has the principal moments"),
    ],
)
def test_wrong_skeletons_are_errors_with_words(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    text = NEW.replace(*change).replace('<Thelen2003Muscle name="biceps"/>', "")
    with refused(message):
        read(tmp_path, text, strict=True)


@pytest.mark.skipif(not (DATA / FILE).is_file(), reason="TORSOR_WALK_DATA is not set")
def test_a_whole_skeleton_has_the_forces_of_its_tree() -> None:
    """Bodies of Rajagopal 2016: knees by splines, kneecaps that follow them."""
    with pytest.warns(ModelWarning, match="80 in all"):
        robot = torsor.load(DATA / FILE)
    body = skeleton(torsor.human.recordings.read_osim(DATA / FILE))
    rng, names = np.random.default_rng(0), list(body.names)
    q, v, a = rng.uniform(0.1, 0.4, (3, 5, len(names)))
    for k, given in enumerate(body.coordinates[name] for name in names):
        if given.locked:
            q[:, k], v[:, k], a[:, k] = given.default, 0.0, 0.0
    pairs = [(names.index(name), names.index(other), f) for name, (other, f) in body.couplings.items()]
    for k, m, function in pairs:
        q[:, k], slope, bend = function(q[:, m])
        v[:, k], a[:, k] = slope * v[:, m], slope * a[:, m] + bend * v[:, m] ** 2
    x, dx, ddx = body.states(q, v, a)
    forces = body.forces(q, body.tree.inverse_dynamics(x, dx, ddx))
    for k, m, function in pairs:
        forces[:, m] += function(q[:, m])[1] * forces[:, k]
    at = [names.index(name) for name in robot.coordinate_names]
    assert_equal(robot.inverse_dynamics(q[:, at], v[:, at], a[:, at]), forces[:, at])


COUPLER = """<ConstraintSet><objects><CoordinateCouplerConstraint name="tie">
<coupled_coordinates_function>FUNCTION</coupled_coordinates_function>
<independent_coordinate_names>angle</independent_coordinate_names>
<dependent_coordinate_name>OTHER</dependent_coordinate_name></CoordinateCouplerConstraint></objects></ConstraintSet>"""
LINEAR = "<LinearFunction><coefficients>1 0</coefficients></LinearFunction>"


@pytest.mark.parametrize(
    ("dependent", "function", "message"),
    [
        ("nobody", LINEAR, "nobody"),
        ("angle", "", "LinearFunction"),
        ("angle", LINEAR, "angle"),
    ],
)
def test_couplers_that_couple_nothing_are_errors(dependent: str, function: str, message: str, tmp_path: Path) -> None:
    coupler = COUPLER.replace("FUNCTION", function).replace("OTHER", dependent)
    text = NEW.replace("<BodySet>", coupler + "<BodySet>").replace('<Thelen2003Muscle name="biceps"/>', "")
    with refused(message):
        read(tmp_path, text, strict=True)


@pytest.mark.parametrize(("word", "count"), [("true", 0), ("TRUE", 0), ("1", 0), ("0", 1), ("False", 1), ("", 1)])
def test_flags_have_the_words_that_opensim_reads(word: str, count: int, tmp_path: Path) -> None:
    """SimTK::String::tryConvertToBool: true and false in any case, 1 and 0."""
    locked = OLD.replace("<range>", f"<locked>{word}</locked><range>")
    assert read(tmp_path, locked).nv == count


@pytest.mark.parametrize("key", ["locked", "clamped", "prescribed"])
def test_other_words_of_flags_are_errors(key: str, tmp_path: Path) -> None:
    odd = OLD.replace("<range>", f"<{key}>maybe</{key}><range>")
    with refused(where="Coordinate 'angle'", what=f"<{key}> is 'maybe'", allowed="true"):
        read(tmp_path, odd)


def test_reversed_ranges_are_no_limits_with_a_warning(tmp_path: Path) -> None:
    text = OLD.replace("<range>-1 2</range>", "<range>2 -1</range>")
    with warned(where="arm.osim: coordinate 'angle'", what="lower limit 2 is above"):
        robot = read(tmp_path, text)
    assert np.isinf([robot.lower, robot.upper]).all()
    with refused(where="arm.osim: coordinate 'angle'", fix="exchange the numbers of <range>"):
        read(tmp_path, text, strict=True)


def test_joints_and_constraints_without_a_name_are_named_after_their_class(tmp_path: Path) -> None:
    weld = """<ConstraintSet><objects><WeldConstraint><socket_frame1>/bodyset/second</socket_frame1>
        <socket_frame2>/ground</socket_frame2></WeldConstraint></objects></ConstraintSet></Model>"""
    text = (Path(__file__).parent / "osim" / "joints.osim").read_text().replace("</Model>", weld)
    bare = re.sub(r'<(\w+Joint) name="\w+">', r"<\1>", text)
    assert bare.count("Joint name=") == 0
    named, unnamed = (
        read(tmp_path, item) for item in (text.replace("<WeldConstraint>", '<WeldConstraint name="w">'), bare)
    )
    assert unnamed.nv == named.nv and unnamed.loops[0].name == "WeldConstraint"
    assert [link.mass for link in unnamed.links] == [link.mass for link in named.links]
    for a, b in zip(unnamed.joints, named.joints, strict=True):
        assert a.type == b.type and np.array_equal(a.placement, b.placement) and np.array_equal(a.axis, b.axis)

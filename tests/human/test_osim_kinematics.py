"""Motions of OpenSim's skeletons from their markers: custom joints, couplings and welds are followed exactly."""

import math
import os
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from human.osim_leg import leg
from refusals import refused, warned
from torsor.formats.osim.model import OsimCoordinate, OsimJoint
from torsor.human import recordings
from torsor.human.measured import (
    MeasuredGait,
    Skeleton,
    inverse_dynamics,
    inverse_kinematics,
    marker_paths,
    skeleton,
)
from torsor.human.measured.fitting import coordinates_of, prepared
from torsor.human.measured.normal_equations import equations
from torsor.human.recordings import Markers, OsimModel
from torsor.mechanism.curves import broken_line, cubic_spline
from torsor.spatial import from_rpy, make_pose

DATA = Path(os.environ.get("TORSOR_WALK_DATA", "/nowhere"))
recorded = pytest.mark.skipif(not (DATA / "id_walk.sto").is_file(), reason="TORSOR_WALK_DATA is not set")
LEG = skeleton(leg())


def seen(body: Skeleton, q: np.ndarray) -> Markers:
    """Return where the markers of a skeleton are, at coordinates q (K, n)."""
    return marker_paths(body, body.markers, np.arange(len(q)) / 100, q)


def bending(count: int = 40) -> np.ndarray:
    """Return coordinates (K, 8): the leg rotates, translates and bends; the kneecap follows."""
    s = np.linspace(0.0, 1.0, count)
    q = np.stack([0.1 * s, 0.2 * s, 3.4 * s, 2 * s, 0.9 + 0 * s, -s, 1.1 + np.sin(6 * s), 0 * s], axis=1)
    return LEG.completed(q)


def test_joints_of_the_tree_that_are_coordinates_have_their_names() -> None:
    assert LEG.tree.coordinate_names[:6] == ("tx", "ty", "tz", "tilt", "list", "rotation")
    assert LEG.tree.coordinate_names[6] == "knee_joint/1" and LEG.functions["knee_joint/1"][0] == "knee"


def test_a_motion_comes_back_from_the_markers_of_its_skeleton() -> None:
    q = bending()
    found = inverse_kinematics(LEG, LEG.markers, seen(LEG, q))
    assert LEG.names == ("tilt", "list", "rotation", "tx", "ty", "tz", "knee", "cap")
    assert found.converged.all() and found.determined.all()
    assert np.abs(found.q - q).max() < 1e-9
    assert found.coordinate("cap") == pytest.approx(0.1 * q[:, 6] ** 2 + 0.8 * q[:, 6], abs=1e-9)


def test_a_gait_on_a_skeleton_reads_back_with_its_joint_functions(tmp_path: Path) -> None:
    gait = MeasuredGait(inverse_kinematics(LEG, LEG.markers, seen(LEG, bending())), LEG.mass)
    gait.save(tmp_path / "leg.npz")
    again = torsor.load_result(tmp_path / "leg.npz")
    body = again.motion.body
    assert (body.tree, body.names, body.functions) == (LEG.tree, LEG.names, LEG.functions)
    assert (body.coordinates, body.couplings) == (LEG.coordinates, LEG.couplings)
    np.testing.assert_array_equal(again.trajectory().q, gait.trajectory().q)


def test_gradient_and_hessian_of_a_skeleton_are_those_of_differences() -> None:
    q, fit = bending()[30:31], prepared(LEG, LEG.markers)
    off = seen(LEG, q).positions + 0.02 * np.random.default_rng(1).normal(size=(1, 12, 3))
    y, weights, h = q[:, :7].copy(), np.ones((1, 12)), 1e-6
    y = y[:, [3, 4, 5, 0, 1, 2, 6]]  # slides come first

    made = equations(fit.robot, fit.layout)
    lower = ca.SX.zeros(7, 7)
    for pair, entry in made.hessian.items():
        lower[pair] = lower[pair[::-1]] = entry
    traced = ca.Function("normal", list(made.inputs.values()), [made.cost, made.gradient, lower])

    def at(y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        cost, gradient, hessian = traced(y[0], fit.offsets, fit.local, off[0], weights[0], 1.0)
        return float(cost), 2 * gradient.full()[:, 0], 2 * hessian.full()

    cost, gradient, hessian = at(y)
    for k in range(7):
        step = np.zeros((1, 7))
        step[0, k] = h
        above, below = at(y + step), at(y - step)
        assert gradient[k] == pytest.approx((above[0] - below[0]) / (2 * h), abs=1e-7)
        assert hessian[k] == pytest.approx((above[1] - below[1]) / (2 * h), abs=1e-6)
    assert cost == pytest.approx(((seen(LEG, q).positions - off) ** 2).sum(), rel=1e-12)


def test_ranges_are_kept_where_the_file_says_so_and_frozen_coordinates_stay() -> None:
    q = bending()
    q[:, 6] -= 0.5
    q = LEG.completed(q)
    assert q[:, 6].min() < 0
    recording = seen(LEG, q)
    with warned("the marker error is"):
        assert inverse_kinematics(LEG, LEG.markers, recording).coordinate("knee").min() == 0.0
    assert np.abs(inverse_kinematics(LEG, LEG.markers, recording, ranges=False).q - q).max() < 1e-9
    knee = {"knee": LEG.coordinates["knee"]._replace(locked=True)}
    locked = replace(LEG, coordinates=LEG.coordinates | knee)
    for body, frozen, value in ((LEG, {"knee": 0.3}, 0.3), (locked, {}, 0.1)):
        fit = prepared(body, LEG.markers, frozen=frozen)
        found = coordinates_of(body, fit, np.zeros((2, 6)), None, frozen)
        assert fit.layout.count == 6 and (found[:, 6] == value).all()
        assert found[0, 7] == pytest.approx(0.1 * value**2 + 0.8 * value)
    with refused(fix="freeze knee"):
        inverse_kinematics(LEG, LEG.markers, recording, frozen={"cap": 0.0})
    with refused(argument="tied"):
        inverse_kinematics(LEG, LEG.markers, recording, tied={"knee": "tx"})


def test_joints_without_functions_move_as_in_opensim() -> None:
    """Rotations are about x, the new y and the new z; slides are along axes of the parent's frame."""
    kinds = {"FreeJoint": 6, "UniversalJoint": 2, "GimbalJoint": 3, "PlanarJoint": 3, "SliderJoint": 1, "PinJoint": 1}
    bodies, joints, parent = dict(leg().bodies), {}, "ground"
    body, place, count = bodies["shank"], np.array([0.1, 0.2, -0.1, 0.3, -0.2, 0.1]), 0
    for kind, n in kinds.items():
        own = tuple(OsimCoordinate(f"q{count + k}", 0.0, -9.0, 9.0, False) for k in range(n))
        joints[kind] = OsimJoint(kind, kind, parent, f"after {kind}", place, np.zeros(6), own, ())
        parent, count = f"after {kind}", count + n
    bodies = {joint.child: body._replace(name=joint.child) for joint in joints.values()}
    chain = skeleton(OsimModel("chain", bodies, joints, {}, np.array([0.0, -9.81, 0.0])))
    q = 0.3 * np.random.default_rng(2).normal(size=(1, count))
    found = chain.tree.pose(chain.states(q, 0 * q, 0 * q)[0][0], parent)
    u, fixed = q[0], make_pose(from_rpy(-place[3:]).T, place[:3])
    steps = [
        make_pose(_turned(u[0:3]), u[3:6]),
        make_pose(_turned([u[6], u[7], 0.0]), np.zeros(3)),
        make_pose(_turned(u[8:11]), np.zeros(3)),
        make_pose(_turned([0.0, 0.0, u[11]]), np.array([u[12], u[13], 0.0])),
        make_pose(np.eye(3), np.array([u[14], 0.0, 0.0])),
        make_pose(_turned([0.0, 0.0, u[15]]), np.zeros(3)),
    ]
    expected = np.eye(4)
    for step in steps:
        expected = expected @ fixed @ step
    assert found == pytest.approx(expected, abs=1e-12)
    joints["PinJoint"] = joints["PinJoint"]._replace(kind="EllipsoidJoint")
    with refused(where="model: joint 'PinJoint'", allowed="CustomJoint, Weld"):
        skeleton(OsimModel("chain", bodies, joints, {}, np.zeros(3)))


def _turned(angles: object) -> np.ndarray:
    """Return the rotation about x, the new y and the new z."""
    found = np.eye(3)
    for k, angle in enumerate(np.asarray(angles)):
        turn, (i, j) = np.eye(3), ((1, 2), (2, 0), (0, 1))[k]
        turn[i, i] = turn[j, j] = np.cos(angle)
        turn[j, i], turn[i, j] = np.sin(angle), -np.sin(angle)
        found = found @ turn
    return found


def test_splines_are_those_of_opensim() -> None:
    """A cubic comes back from any of its points; beyond the ends a spline is straight."""
    x = np.array([-0.3, 0.1, 0.4, 1.0, 1.7])
    at = np.linspace(-0.3, 1.7, 20)
    value, slope, bend = cubic_spline(x, x**3 - x)(at)
    assert value == pytest.approx(at**3 - at, abs=1e-12)
    assert slope == pytest.approx(3 * at**2 - 1, abs=1e-12) and bend[1:-1] == pytest.approx(6 * at[1:-1], abs=1e-11)
    beyond = cubic_spline(x, x**3 - x)(np.array([2.7]))
    assert beyond[0][0] == pytest.approx(1.7**3 - 1.7 + 3 * 1.7**2 - 1) and abs(beyond[2][0]) < 1e-10
    assert broken_line(x, x**2)(x)[0] == pytest.approx(x**2, abs=1e-12)


@recorded
@pytest.mark.slow
def test_moments_from_markers_of_opensims_own_motion_are_those_of_opensim() -> None:
    """Markers that OpenSim's coordinates put on its skeleton give its moments back, to 1 % of their peak."""
    body = skeleton(recordings.read_osim(DATA / "subject_walk_scaled.osim"))
    table = recordings.load(DATA / "coordinates.sto", check=False).table
    q = np.stack(
        [0.0 * table.times if n.startswith("mtp") else table.column(n.removesuffix("_beta")) for n in body.names], 1
    )
    motion = inverse_kinematics(body, body.markers, marker_paths(body, body.markers, table.times, q))
    assert motion.converged.all() and np.nanmax(motion.errors) < 1e-6
    ground = recordings.load(DATA / "grf_walk.mot").forces
    # OpenSim filters the motion only.
    found = inverse_dynamics(body, motion.times, motion.q, ground, force_cutoff=math.inf).between(0.5, 1.6)
    assert _differences(found.times, found.moment).max() < 1.0


@recorded
@pytest.mark.slow
def test_moments_of_a_recorded_walk_from_its_markers_on_opensims_skeleton() -> None:
    """OpenSim's coordinates of this recording are no fit of its 41 markers, so that moments differ by more."""
    body = skeleton(recordings.read_osim(DATA / "subject_walk_scaled.osim"))
    markers = recordings.load(DATA / "markers_walk.trc").markers
    motion = inverse_kinematics(body, body.markers, markers, frozen={"mtp_angle_r": 0.0, "mtp_angle_l": 0.0})
    assert motion.converged.all() and np.sqrt(np.nanmean(motion.errors**2)) < 0.0135
    ground = recordings.load(DATA / "grf_walk.mot").forces
    with pytest.warns(torsor.ModelWarning, match="% of the weight, from 0.05"):  # the left foot is on no plate
        found = inverse_dynamics(body, motion.times, motion.q, ground, force_cutoff=math.inf).between(0.5, 1.6)
    hips, knees, ankles = _differences(found.times, found.moment).reshape(3, 2).max(axis=1)
    assert hips < 9.0 and knees < 6.0 and ankles < 4.0


def _differences(times: np.ndarray, moment: object) -> np.ndarray:
    """Return the RMS differences from OpenSim's moments of hips, knees and ankles, in % of their peaks."""
    reference, found = recordings.load(DATA / "id_walk.sto").table, []
    for name in ("hip_flexion", "knee_angle", "ankle_angle"):
        for side in "rl":
            expected = np.interp(times, reference.times, reference.column(f"{name}_{side}_moment"))
            rms = np.sqrt(np.mean((moment(f"{name}_{side}") - expected) ** 2))  # type: ignore[operator]
            found.append(100 * rms / np.abs(expected).max())
    return np.array(found)

"""Inverse dynamics of measured motions: a predicted motion with its own ground forces leaves no residual."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

import torsor
from human.recordings.damage import MASS, clean, torques
from refusals import refused, warned
from torsor.formats.osim.model import OsimAxis, OsimBody, OsimCoordinate, OsimJoint, OsimModel
from torsor.human import recordings
from torsor.human.measured import (
    inverse_dynamics,
    inverse_kinematics,
    measured_gait,
    measured_start,
    scaled_person,
    skeleton,
)
from torsor.human.recordings import GroundForces
from torsor.identification.differentiation import differentiate

DATA = Path(os.environ.get("TORSOR_WALK_DATA", "/nowhere"))
recorded = pytest.mark.skipif(not (DATA / "id_walk.sto").is_file(), reason="TORSOR_WALK_DATA is not set")


def swaying(body: torsor.Robot, t: np.ndarray) -> np.ndarray:
    """Return a motion (K, 55) of whole periods: the body sways, bends and moves up and down."""
    q, names = np.zeros((len(t), body.nq)), body.coordinate_names
    for k, name in enumerate(("tx", "ty", "yaw", "tilt", "right_hip_flexion", "left_knee_flexion", "spine2_lateral")):
        q[:, names.index(name)] = 0.05 * np.sin(2 * np.pi * t + k) + (0.2 if "flexion" in name else 0.0)
    return q


def test_forces_that_the_motion_needs_leave_no_residual() -> None:
    body, t = torsor.library.human(), np.arange(400) / 100
    q = swaying(body, t)
    _, v, a = recordings.rates(t, q)
    need = torsor.human.ground_reaction(body, q, v, a)
    centers = np.stack([need.zmp[:, 0], 0 * t, need.zmp[:, 1]], axis=1)
    shares = np.stack([0.4 + 0 * t, 0.6 + 0 * t], axis=1)[..., None]
    moments = np.zeros((len(t), 3))
    moments[:, 1] = need.twist
    ground = GroundForces(
        ["right", "left"], t, shares * need.force[:, None], np.stack([centers, centers], 1), shares * moments[:, None]
    )
    found = inverse_dynamics(body, t, q, ground, cutoff=None, check=False).between(1.0, 3.0)
    assert np.abs(found.residual_force).max() < 0.02 and np.abs(found.residual_moment).max() < 0.02
    assert found.residual[0] < 1e-4 and "residual force 0.0 % of the weight" in str(found)
    still = inverse_dynamics(body, t, q, ground, cutoff=6.0, check=False).between(1.0, 3.0)
    assert still.moment("right_hip_flexion") == pytest.approx(found.moment("right_hip_flexion"), abs=0.5)


def test_forces_that_are_filtered_like_the_motion_leave_no_residual() -> None:
    """A shake above the cutoff vanishes from motion and forces together; unfiltered forces would still contain it."""
    body, t = torsor.library.human(), np.arange(400) / 100
    q = np.zeros((400, 55))
    q[:, body.coordinate_names.index("ty")] = 0.001 * np.sin(2 * np.pi * 12 * t)
    _, v, a = recordings.rates(t, q)
    force = 0.5 * torsor.human.ground_reaction(body, q, v, a).force[:, None] * np.ones((2, 1))
    under = np.broadcast_to([[-0.085, 0, 0.03], [0.085, 0, 0.03]], force.shape)
    ground = GroundForces(["right", "left"], t, force, under, 0.0 * force, axes="left up forward")
    sizes = [
        np.abs(inverse_dynamics(body, t, q, ground, check=False, **how).between(1.0, 3.0).residual_force).max()
        for how in ({}, {"force_cutoff": math.inf}, {"cutoff": None})
    ]
    assert sizes[0] < 0.01 * sizes[1] and sizes[1] > 300 and sizes[2] < 0.01 * sizes[1]
    with refused(argument="force_cutoff (Hz, up to half the rate)", allowed="a finite number, 50 or less"):
        inverse_dynamics(body, t, q, ground, force_cutoff=60.0)


def test_swapped_feet_and_wrong_axes_are_named() -> None:
    body, t = torsor.library.human(), np.arange(20) / 100
    zero = np.zeros((20, 2, 3))
    half = np.broadcast_to([0.0, body.mass * 9.81 / 2, 0.0], zero.shape)
    far = np.broadcast_to([[0.4, 0, 0.03], [-0.4, 0, 0.03]], zero.shape)
    swapped = GroundForces(["right", "left"], t, half, far, zero, axes="left up forward", source="plates.mot")
    with warned(where="plates.mot", what="force acts 0.49 m from"):
        inverse_dynamics(body, t, np.zeros((20, 55)), swapped)
    tilted = GroundForces(["right", "left"], t, half, far, zero, axes="forward left up", source="plates.mot")
    with refused(where="plates.mot", what="up is z, but gravity of the body is [0.0, -9.81, 0.0]"):
        inverse_dynamics(body, t, np.zeros((20, 55)), tilted)
    with refused(allowed="plate 1"):
        plate = GroundForces(["plate 1"], t, half[:, :1], far[:, :1], zero[:, :1])
        inverse_dynamics(body, t, np.zeros((20, 55)), plate)
    with warned(what="the residual force is up to 100 % of the weight, from 0.05 to 0.14 s"):
        inverse_dynamics(body, t, np.zeros((20, 55)), GroundForces(["right", "left"], t, zero, zero, zero))


def knee_model(points: int) -> OsimModel:
    """Return a pendulum whose shank slides on the thigh as the knee bends, by a polynomial, or by a fine spline."""
    origin, eye = np.zeros(6), np.eye(3)

    def axis(name: str, way: tuple[int, int, int], coordinate: str, numbers: list[float], function: str) -> OsimAxis:
        return OsimAxis(
            name, np.array(way, dtype=float), (coordinate,) if coordinate else (), function, np.array(numbers), 1.0
        )

    x = np.linspace(-1.0, 3.0, points)
    spline = np.stack([x, 0.02 * x**3 - 0.05 * x**2], axis=1).ravel().tolist()
    slide = [0.02, -0.05, 0.0, 0.0] if not points else spline
    moves = (
        axis("rotation1", (0, 0, 1), "knee", [1.0, 0.0], "LinearFunction"),
        axis("rotation2", (1, 0, 0), "knee", [0.1, 0.0], "PolynomialFunction"),
        axis("rotation3", (0, 1, 0), "", [0.0], "Constant"),
        axis("translation1", (1, 0, 0), "knee", slide, "SimmSpline" if points else "PolynomialFunction"),
        axis("translation2", (0, 1, 0), "", [-0.4], "Constant"),
        axis("translation3", (0, 0, 1), "", [0.0], "Constant"),
    )
    bodies = {
        name: OsimBody(name, 2.0, np.array([0.0, -0.2, 0.0]), 0.02 * eye, np.ones(3)) for name in ("thigh", "shank")
    }
    coordinates = {name: (OsimCoordinate(name, 0.0, -2.0, 2.0, False),) for name in ("hip", "knee")}
    hip = OsimJoint("hip_joint", "PinJoint", "ground", "thigh", origin, origin, coordinates["hip"], ())
    knee = OsimJoint("knee_joint", "CustomJoint", "thigh", "shank", origin, origin, coordinates["knee"], moves)
    return OsimModel("leg", bodies, {"hip_joint": hip, "knee_joint": knee}, {}, np.array([0.0, -9.81, 0.0]))


@pytest.mark.parametrize(("points", "accuracy"), [(0, 1e-6), (400, 1e-3)])
def test_moments_of_a_custom_joint_do_the_work_of_its_energy(points: int, accuracy: float) -> None:
    """The power of the moments is the rate of the energy, also where a joint slides as it turns."""
    leg = skeleton(knee_model(points))
    t = np.arange(2001) / 1000
    q = np.stack([0.5 * np.sin(3 * t), 0.8 + 0.5 * np.cos(4 * t)], axis=1)
    v = np.stack([1.5 * np.cos(3 * t), -2.0 * np.sin(4 * t)], axis=1)
    a = np.stack([-4.5 * np.sin(3 * t), -8.0 * np.cos(4 * t)], axis=1)
    x, xd, xdd = leg.states(q, v, a)
    tau = leg.forces(q, leg.tree.inverse_dynamics(x, xd, xdd))
    energy = leg.tree.kinetic_energy(x, xd) + leg.tree.potential_energy(x)
    power = np.gradient(energy, t, edge_order=2)
    assert leg.names == ("hip", "knee") and leg.mass == pytest.approx(4.0)
    assert np.abs((tau * v).sum(axis=1) - power)[2:-2].max() < accuracy * np.abs(power).max() + 1e-4


@pytest.mark.parametrize(("cutoff", "accuracy"), [(6.0, (0.05, 0.09, 0.016)), (10.0, (0.03, 0.03, 0.011))])
def test_moments_of_a_predicted_walk_come_back_filtered(cutoff: float, accuracy: tuple[float, ...]) -> None:
    """With the same filter for motion, forces and expected moments; body and joint positions are fitted to markers."""
    gait = measured_gait(*clean(), mass=MASS, height=1.741, cutoff=cutoff)
    assert gait.dynamics is not None
    for name, predicted in torques().items():
        times = np.arange(len(predicted)) / 100
        expected = differentiate(times, predicted[:, None], cutoff, order=3, ends="straight")[0][:, 0]
        rms = np.sqrt(np.mean((gait.dynamics.moment(name) - expected)[30:150] ** 2))
        limit = accuracy[[joint in name for joint in ("hip", "knee", "ankle")].index(True)]
        assert rms < limit * np.abs(predicted).max(), name


@recorded
@pytest.mark.slow
def test_moments_of_a_recorded_walk_are_those_of_opensim() -> None:
    """With OpenSim's own coordinates and its skeleton, moments agree with its inverse dynamics to 1 % of their peak."""
    body = skeleton(recordings.read_osim(DATA / "subject_walk_scaled.osim"))
    with pytest.warns(torsor.ModelWarning, match="knee_angle_r_beta"):
        table = recordings.load(DATA / "coordinates.sto").table
    # The toes do not move in this recording; the patella follows the knee (its column is in degrees).
    q = np.stack(
        [0.0 * table.times if n.startswith("mtp") else table.column(n.removesuffix("_beta")) for n in body.names], 1
    )
    ground = recordings.load(DATA / "grf_walk.mot").forces
    # OpenSim filters the motion only.
    found = inverse_dynamics(body, table.times, q, ground, force_cutoff=math.inf).between(0.5, 1.6)
    reference = recordings.load(DATA / "id_walk.sto").table.between(0.5, 1.6)
    for side in "rl":
        for name in ("hip_flexion", "hip_adduction", "hip_rotation", "knee_angle", "ankle_angle"):
            expected = reference.column(f"{name}_{side}_moment")
            rate = found.v[:, found.names.index(f"{name}_{side}")]
            for what in (1.0, rate):  # the moment, and its power
                rms = np.sqrt(np.mean((what * (found.moment(f"{name}_{side}") - expected)) ** 2))
                assert rms < 0.01 * np.abs(what * expected).max(), name
    assert found.residual[0] < 0.03


@recorded
@pytest.mark.slow
def test_a_recorded_walk_is_followed_from_its_markers_alone() -> None:
    """Scaled to 41 markers of a walk, with its own kinematics, the body has moments like those of OpenSim's."""
    markers = recordings.load(DATA / "markers_walk.trc").markers
    ground = recordings.load(DATA / "grf_walk.mot").forces
    person = scaled_person(markers, 85.27, 1.80)
    motion = inverse_kinematics(person.body, person.markers, markers)
    assert motion.converged.all() and motion.determined.all() and not motion.swapped
    assert np.sqrt(np.nanmean(motion.errors**2)) < 0.010
    with pytest.warns(
        torsor.ModelWarning, match="% of the weight, from 0.05 to 0.39 s"
    ):  # the left foot is on no plate
        found = inverse_dynamics(person.body, motion.times, motion.q, ground, force_cutoff=math.inf).between(0.5, 1.6)
    assert found.residual[0] < 0.05
    reference = recordings.load(DATA / "id_walk.sto").table
    for name, other in (
        ("hip_flexion", "hip_flexion"),
        ("knee_flexion", "knee_angle"),
        ("ankle_flexion", "ankle_angle"),
    ):
        for side in ("right", "left"):
            expected = np.interp(found.times, reference.times, reference.column(f"{other}_{side[0]}_moment"))
            assert np.corrcoef(found.moment(f"{side}_{name}"), expected)[0, 1] > 0.94


@recorded
@pytest.mark.slow
def test_a_predicted_walk_starts_from_a_measured_stride() -> None:
    markers = recordings.load(DATA / "markers_walk.trc").markers.in_axes("left up forward")
    person = scaled_person(markers, 85.27, 1.80)
    motion = inverse_kinematics(person.body, person.markers, markers, smooth=0.01)
    problem = torsor.human.walking(person.body)
    plain = problem.solve()
    warm = problem.solve(start=measured_start(problem, motion, 0.93, 1.50))  # half a stride
    assert warm.status == "optimal"
    assert warm.objective == pytest.approx(plain.objective, rel=0.01)

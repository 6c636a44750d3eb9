"""Inverse kinematics from markers returns the motion that made them, with exact derivatives, gaps, noise and swaps."""

from contextlib import nullcontext

import numpy as np
import pytest

import torsor
from refusals import warned
from torsor.human.body.person import SEGMENTS
from torsor.human.measured import MarkerSet, inverse_kinematics, marker_set, resized, scaled_person
from torsor.human.measured.fitting import SPINE, Fit, _banded_solve, prepared, second_differences
from torsor.human.measured.marker_set import recognised
from torsor.human.recordings import Markers


def random(*shape: int, seed: int = 5) -> np.ndarray:
    """Return normally distributed numbers that do not depend on the order of the tests."""
    return np.random.default_rng(seed).normal(size=shape)


CLUSTERS = {"thigh": 3, "shank": 3, "upper_arm": 2, "forearm": 2}


def branched() -> torsor.Robot:
    """Return a small tree with slides, hinges about all axes, and two branches."""
    from torsor import Joint, Link
    from torsor.spatial import make_pose

    axes = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1), "turn": (0, 1, 0), "lean": (1, 0, 0)}
    links, joints, before = [Link("ground")], [], "ground"
    for name, axis in axes.items():
        kind = "prismatic" if len(name) == 1 else "revolute"
        joints.append(Joint(name, kind, before, f"{name}_link", axis=np.array(axis, dtype=float)))
        links.append(Link(f"{name}_link", 1.0, np.zeros(3), np.eye(3)))
        before = f"{name}_link"
    for side, sign in (("right", -1.0), ("left", 1.0)):
        above = before
        for part, axis in (("hip", (0, 0, 1)), ("knee", (1, 0, 0))):
            at = make_pose(p=[0.1 * sign, 0.0, 0.0] if part == "hip" else [0.0, -0.4, 0.0])
            joints.append(
                Joint(f"{side}_{part}", "revolute", above, f"{side}_{part}_link", at, np.array(axis, dtype=float))
            )
            links.append(Link(f"{side}_{part}_link", 1.0, np.zeros(3), np.eye(3)))
            above = f"{side}_{part}_link"
    return torsor.build("walker", links, joints)


def on_branches(robot: torsor.Robot) -> MarkerSet:
    """Return three markers on each of its last links and on the body."""
    places = {}
    for link in ("lean_link", "right_hip_link", "right_knee_link", "left_hip_link", "left_knee_link"):
        for k in range(3):
            places[f"{link}{k}"] = link, tuple(random(3, seed=len(places)) * 0.1 + [0.0, -0.1, 0.0])
    return MarkerSet(places)


def measured(robot: torsor.Robot, markers: MarkerSet, q: np.ndarray) -> np.ndarray:
    """Return where the markers are (K, M, 3): by the poses of the links, without the equations that are tested."""
    poses = robot.poses(q)[:, list(markers.links(robot))]
    return np.einsum("kmij,mj->kmi", poses[..., :3, :3], markers.local) + poses[..., :3, 3]


@pytest.fixture(scope="module")
def walker() -> tuple[torsor.Robot, MarkerSet, np.ndarray, np.ndarray]:
    robot = branched()
    markers = on_branches(robot)
    t = np.arange(60) / 50
    q = 0.5 * np.sin(2 * np.pi * 0.7 * t[:, None] + np.arange(robot.nq))
    return robot, markers, q, measured(robot, markers, q)


def recording(markers: MarkerSet, positions: np.ndarray) -> Markers:
    return Markers(markers.names, np.arange(len(positions)) / 50, positions)


def test_the_motion_that_made_the_markers_is_found(walker) -> None:
    robot, markers, q, places = walker
    found = inverse_kinematics(robot, markers, recording(markers, places))
    assert np.abs(found.q - q).max() < 1e-8
    assert found.converged.all() and found.determined.all() and not found.swapped
    assert np.nanmax(found.errors) < 1e-8


def test_gradient_and_hessian_are_exact(walker) -> None:
    robot, markers, q, places = walker
    fit: Fit = prepared(robot, markers)
    y, weights = q[3:6] + 0.1, 1 + 0.2 * random(3, len(markers.names))
    along, step = random(robot.nq), 1e-5

    def normal(at: np.ndarray) -> list[np.ndarray]:
        return fit.normal(at, fit.offsets, fit.local, places[3:6], weights, 1.0)

    cost, gradient, hessian = normal(y)
    (above, up, _), (below, down, _) = normal(y + step * along), normal(y - step * along)
    assert cost == pytest.approx((weights[..., None] * (fit.places(y) - places[3:6]) ** 2).sum(axis=(1, 2)), rel=1e-12)
    assert gradient @ along == pytest.approx((above - below) / (4 * step), rel=1e-7)
    assert hessian @ along == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-8)


def test_missing_markers_are_left_out(walker) -> None:
    robot, markers, q, places = walker
    gaps = places.copy()
    for k in range(len(gaps)):
        gaps[k, [k % 15, (7 * k + 3) % 15]] = np.nan
    gaps[10:13] = np.nan
    with warned(what="3 of 60 frames are not determined by markers: 11, 12, 13"):
        found = inverse_kinematics(robot, markers, recording(markers, gaps))
    assert np.abs((found.q - q)[found.determined]).max() < 1e-8
    assert np.isnan(found.errors[10:13]).all() and np.isnan(found.rms[11])


def test_swapped_markers_are_named(walker) -> None:
    robot, markers, _, places = walker
    wrong = places.copy()
    a, b = markers.names.index("right_knee_link0"), markers.names.index("left_knee_link1")
    wrong[20:25, [a, b]] = wrong[20:25, [b, a]]
    with warned(what="'right_knee_link0' and 'left_knee_link1' look swapped in frames 21 to 25"):
        found = inverse_kinematics(robot, markers, recording(markers, wrong))
    assert found.swapped == ((20, 24, "right_knee_link0", "left_knee_link1"),)
    assert "look swapped" in str(found) and found.worst[0] in range(20, 25)


def test_smoothness_reduces_noise_and_fills_gaps(walker) -> None:
    robot, markers, q, places = walker
    noisy = places + random(*places.shape) * 0.01
    noisy[30:33] = np.nan
    with warned(what="not determined"):
        rough = inverse_kinematics(robot, markers, recording(markers, noisy))
    smooth = inverse_kinematics(robot, markers, recording(markers, noisy), smooth=10.0)
    assert smooth.converged.all()
    assert np.std(smooth.q - q) < 0.5 * np.std((rough.q - q)[rough.determined])
    assert np.abs(smooth.q - q)[30:33].max() < 0.05


@pytest.mark.parametrize(("noise", "poor"), [(0.005, False), (0.02, True)])
def test_errors_above_20_mm_rms_or_40_mm_are_a_warning(walker, noise: float, poor: bool) -> None:
    robot, markers, _, places = walker
    noisy = places + np.random.default_rng(0).normal(scale=noise, size=places.shape)
    with warned("allowed: up to 20 mm RMS and 40 mm") if poor else nullcontext():
        found = inverse_kinematics(robot, markers, recording(markers, noisy))
    assert (found.total_rms > 0.02) == poor and found.total_rms == pytest.approx(np.sqrt(np.mean(found.rms**2)))


def test_ranges_hold(walker) -> None:
    robot, markers, q, places = walker
    from dataclasses import replace

    joints = [replace(joint, upper=0.2, lower=-0.3) if joint.type == "revolute" else joint for joint in robot.joints]
    narrow = torsor.build("narrow", [robot.base, *robot.links], joints)
    seen = recording(markers, places)
    for smooth in (0.0, 1e-3):
        with warned("the marker error is"):
            found = inverse_kinematics(narrow, markers, seen, smooth=smooth)
        assert found.converged.all()
        assert (found.q[:, 3:] <= 0.2).all() and (found.q[:, 3:] >= -0.3).all()
    free = inverse_kinematics(narrow, markers, seen, ranges=False)
    assert np.abs(free.q - q).max() < 1e-8


def test_frozen_tied_and_unmarked_coordinates(walker) -> None:
    robot, markers, q, _ = walker
    q = q.copy()
    q[:, robot.coordinate_names.index("lean")] = 0.2
    q[:, robot.coordinate_names.index("left_hip")] = q[:, robot.coordinate_names.index("right_hip")]
    q[:, robot.coordinate_names.index("left_knee")] = 0.0
    kept = markers.only([name for name in markers.names if "left_knee" not in name])
    found = inverse_kinematics(
        robot, kept, recording(kept, measured(robot, kept, q)), frozen={"lean": 0.2}, tied={"left_hip": "right_hip"}
    )
    assert np.abs(found.q - q).max() < 1e-8


def test_the_banded_system_is_solved() -> None:
    n, count = 4, 30
    blocks = random(count, n, n)
    blocks = blocks @ blocks.transpose(0, 2, 1) + 0.01 * np.eye(n)
    right, bend = random(count, n, seed=6), np.diff(np.eye(count), 2, axis=0)
    matrix = 0.3 * np.kron(bend.T @ bend, np.eye(n))
    for k in range(count):
        matrix[n * k : n * k + n, n * k : n * k + n] += blocks[k]
    found = _banded_solve(blocks, 0.3 * second_differences(count), right)
    assert found.ravel() == pytest.approx(np.linalg.solve(matrix, right.ravel()), rel=1e-9, abs=1e-11)


def test_common_names_of_markers_are_known() -> None:
    known = {
        "RASI": ("asis", "right"),
        "L.PSIS": ("psis", "left"),
        "V.Sacral": ("sacrum", ""),
        "LTHI": ("thigh", "left"),
        "R.SH4": ("shank", "right"),
        "RTIB": ("shank", "right"),
        "LKNE": ("knee", "left"),
        "R_knee_medial": ("knee_medial", "right"),
        "knee_l": ("knee", "left"),
        "LANK": ("ankle", "left"),
        "LHEE": ("heel", "left"),
        "R.MT5": ("mt5", "right"),
        "C7": ("c7", ""),
        "RSHO": ("shoulder", "right"),
        "subject:LELB": ("elbow", "left"),
        "RWRA": ("wrist", "right"),
        "LFHD": ("head_front", "left"),
    }
    assert {name: recognised(name) for name in known} == known


def test_a_resized_body_is_the_human_of_that_size() -> None:
    body, tall = torsor.library.human(1.741, 73.0), torsor.library.human(1.85, 73.0)
    found = resized(body, dict.fromkeys(SEGMENTS, 1.85 / 1.741))
    for one, other in zip(found.links, tall.links, strict=True):
        assert one.com == pytest.approx(other.com, abs=1e-12) and one.inertia == pytest.approx(other.inertia, abs=1e-12)
    for one, other in zip(found.joints, tall.joints, strict=True):
        assert one.placement == pytest.approx(other.placement, abs=1e-12)
    for one, other in zip(found.frames, tall.frames, strict=True):
        assert one.pose == pytest.approx(other.pose, abs=1e-12)


def gait(body: torsor.Robot, count: int) -> np.ndarray:
    """Return a motion (count, 55) of all coordinates that markers show, within the ranges."""
    low, high = (np.where(np.isfinite(each), each, sign) for each, sign in ((body.lower, -0.4), (body.upper, 0.4)))
    t = np.arange(count)[:, None] / 100
    q = 0.6 * (low + high) / 2 + 0.25 * (high - low) * np.sin(2 * np.pi * 0.9 * t + np.arange(55))
    names = body.coordinate_names
    for k, name in enumerate(names):
        if any(part in name for part in ("neck", "head", "wrist", "toe")):
            q[:, k] = 0.0
        if name in SPINE:
            q[:, k] = q[:, names.index(SPINE[name])]
    q[:, names.index("tz")] = 1.3 * t[:, 0]
    return q


def person(height: float = 1.8) -> tuple[torsor.Robot, MarkerSet]:
    """Return a body with 45 markers of common names, those of clusters where tape and skin put them."""
    body = torsor.library.human(height, 80.0)
    names = ["S2", "C7"]
    for side in "RL":
        names += [f"{side}.{part}" for part in ("ASIS", "PSIS", "Knee", "Ankle", "Heel", "MT5", "Toe", "Shoulder")]
        names += [f"{side}.{part}" for part in ("Clavicle", "Elbow", "Wrist")]
        names += [
            f"{side}.{part}{k}"
            for part, count in (("TH", 3), ("SH", 3), ("Biceps", 2), ("Forearm", 2))
            for k in range(count)
        ]
    markers = marker_set(body, names)
    local = (
        markers.local
        + np.array([name in markers.free for name in markers.names])[:, None] * random(len(names), 3) * 0.04
    )
    return body, markers.moved(local)


@pytest.mark.slow
def test_the_human_is_found_to_1e_8_without_noise_and_with_gaps() -> None:
    body, markers = person()
    q = gait(body, 150)
    places = measured(body, markers, q)
    found = inverse_kinematics(body, markers, Markers(markers.names, np.arange(150) / 100, places))
    assert np.abs(found.q - q).max() < 1e-8 and found.converged.all()
    gaps = places.copy()
    gaps[np.random.default_rng(2).random(places.shape[:2]) < 0.05] = np.nan
    found = inverse_kinematics(body, markers, Markers(markers.names, np.arange(150) / 100, gaps))
    assert np.abs(found.q - q).max() < 1e-8


@pytest.mark.slow
def test_scaling_finds_lengths_and_places_of_clusters() -> None:
    body, markers = person()
    factors = {"thigh": 1.06, "shank": 0.95, "upper_arm": 1.05, "trunk": 0.97}
    real = resized(body, factors)
    own = marker_set(real, markers.names)
    own = own.moved(np.where(np.array([name in own.free for name in own.names])[:, None], markers.local, own.local))
    q = gait(real, 80)
    seen = Markers(own.names, np.arange(80) / 100, measured(real, own, q))
    upright = Markers(own.names, [0.0], measured(real, own, np.zeros((1, 55))))
    found = scaled_person(seen, 80.0, 1.8, standing=upright)
    assert found.body.mass == pytest.approx(80.0)
    for name, factor in factors.items():
        assert found.factors[name] == pytest.approx(factor, abs=0.03)
    assert max(found.residuals.values()) < 0.004
    assert "lengths in mm" in str(found)
    rough = scaled_person(seen, 80.0, 1.8)  # without a standing trial
    assert rough.factors["thigh"] == pytest.approx(1.06, abs=0.06)
    assert found.standing and not rough.standing

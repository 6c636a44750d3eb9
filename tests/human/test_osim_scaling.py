"""Skeletons of OpenSim take the sizes of a person from a standing trial."""

import numpy as np
import pytest

import torsor
from human.osim_leg import leg
from human.test_osim_kinematics import seen
from refusals import refused
from torsor.human.measured import Measurement, scale_factors, scaled_model, scaled_skeleton, skeleton
from torsor.human.recordings import Markers

LEG = leg()
FACTORS = {"pelvis": 1.2, "shank": 0.9}
MEASURED = [
    Measurement([("pelvis1", "pelvis2"), ("pelvis2", "pelvis1")], {"pelvis": "xyz"}),
    Measurement([("shank1", "shank2")], {"shank": "xyz"}),
]


def person() -> tuple[Markers, np.ndarray]:
    """Return the standing trial of a larger person, whose movable markers are elsewhere, and the places of these."""
    large = skeleton(scaled_model(LEG, FACTORS))
    q = large.completed(np.tile([0.0, 0.1, 0.4, 1.0, 0.9, 0.2, 0.1, 0.0], (3, 1)))
    still = seen(large, q)
    positions = np.array(still.positions)
    for name in ("pelvis0", "shank0"):
        positions[:, still.names.index(name)] += [0.02, 0.01, -0.03]
    return still, positions


def test_factors_come_from_distances_of_markers() -> None:
    still, _ = person()
    found = scale_factors(LEG, still, MEASURED)
    assert found["pelvis"] == pytest.approx(1.2, abs=1e-12) and found["shank"] == pytest.approx(0.9, abs=1e-12)
    along = scale_factors(LEG, still, [Measurement([("shank1", "shank2")], {"shank": "y"})])
    assert along["shank"] == pytest.approx([1.0, 0.9, 1.0], abs=1e-12)


@pytest.mark.slow
def test_movable_markers_are_put_where_they_were_measured() -> None:
    still, positions = person()
    found = scaled_skeleton(LEG, still.with_positions(positions), MEASURED, 40.0)
    moved = skeleton(found).markers.local - skeleton(scaled_model(LEG, FACTORS)).markers.local
    far = dict(zip(found.markers, np.linalg.norm(moved, axis=1), strict=True))
    assert found.mass == pytest.approx(40.0)
    for name, way in far.items():  # the fixed markers set the posture, with a thousand times the weight
        assert way == pytest.approx(np.sqrt(14) / 100 if name in ("pelvis0", "shank0") else 0.0, abs=1e-4), name


def test_mass_and_inertia_of_a_scaled_body_are_those_of_its_points() -> None:
    x = np.random.default_rng(5).normal(size=(40, 3))
    x -= x.mean(axis=0)

    def inertia(points: np.ndarray, mass: float) -> np.ndarray:
        second = mass * points.T @ points / len(points)
        return np.trace(second) * np.eye(3) - second

    body = LEG.bodies["shank"]._replace(inertia=inertia(x, 2.0))
    factors = np.array([1.1, 0.8, 1.3])
    model = torsor.human.recordings.OsimModel("one", {"shank": body}, {}, {}, LEG.gravity)
    found = scaled_model(model, {"shank": factors}, 3.0).bodies["shank"]
    assert found.inertia == pytest.approx(inertia(x * factors, 3.0), abs=1e-12)
    assert found.com == pytest.approx(factors * body.com) and found.mass == 3.0 and (found.scale == factors).all()


def test_what_cannot_be_scaled_is_named() -> None:
    still, _ = person()
    with refused(value="toe", where="'shank1', 'toe'"):
        scale_factors(LEG, still, [Measurement([("shank1", "toe")], {"shank": "xyz"})])
    with refused(value="shank1"):
        scale_factors(LEG, still.only(["pelvis0"]), [MEASURED[1]])
    with refused(value="shin", where="leg.osim: factors", allowed="shank"):
        scaled_model(LEG, {"shin": 1.0})
    with refused(allowed="0.3 to 3", fix="check the marker pairs"):
        scaled_model(LEG, {"shank": 1000.0})
    with refused(value="long"):
        scale_factors(LEG, still, [Measurement([("shank1", "shank2")], {"shank": "long"})])

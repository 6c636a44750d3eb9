"""A small OpenSim skeleton: a free pelvis, a knee that slides as it bends, and a kneecap that follows."""

import numpy as np

from torsor.formats.osim.model import OsimAxis, OsimBody, OsimCoordinate, OsimCoupling, OsimJoint, OsimMarker, OsimModel

TURNS = {"tilt": (0, 0, 1), "list": (1, 0, 0), "rotation": (0, 1, 0)}
BEND = np.array([0.0, 0.0, 0.5, -0.01, 1.0, -0.03, 1.5, -0.02, 2.2, 0.0])  # of the knee (rad), and its slide (m)


def axis(
    name: str, way: tuple[int, ...], coordinate: str, function: str, numbers: object, scale: float = 1.0
) -> OsimAxis:
    """Return one motion of a custom joint."""
    used = (coordinate,) if coordinate else ()
    return OsimAxis(name, np.array(way, dtype=float), used, function, np.asarray(numbers, dtype=float), scale)


def leg() -> OsimModel:
    """Return the skeleton, of three markers on each of its four bodies."""
    line, none = [1.0, 0.0], [0.0]
    root = [axis(f"rotation{k + 1}", way, name, "LinearFunction", line) for k, (name, way) in enumerate(TURNS.items())]
    root += [
        axis(f"translation{k + 1}", way, f"t{'xyz'[k]}", "LinearFunction", line) for k, way in enumerate(np.eye(3))
    ]
    knee = [
        axis("rotation1", (0, 0, 1), "knee", "LinearFunction", [-1.0, 0.0]),
        axis("rotation2", (1, 0, 0), "knee", "PolynomialFunction", [0.02, 0.05, 0.0]),
        axis("rotation3", (0, 1, 0), "", "Constant", none),
        axis("translation1", (1, 0, 0), "knee", "SimmSpline", BEND, 1.1),
        axis("translation2", (0, 1, 0), "", "Constant", [-0.4]),
        axis("translation3", (0, 0, 1), "", "Constant", none),
    ]
    cap = [
        axis("rotation1", (0, 0, 1), "cap", "PiecewiseLinearFunction", [0.0, 0.0, 1.0, -0.5, 2.0, -0.7]),
        *(axis(name, (1, 0, 0), "", "Constant", none) for name in ("rotation2", "rotation3")),
        axis("translation1", (1, 0, 0), "cap", "SimmSpline", BEND),
        axis("translation2", (0, 1, 0), "", "Constant", [-0.38]),
        axis("translation3", (0, 0, 1), "", "Constant", none),
    ]
    far, zero = 9.0, np.zeros(6)
    free = tuple(OsimCoordinate(name, 0.0, -far, far, False) for name in (*TURNS, "tx", "ty", "tz"))
    bent = OsimCoordinate("knee", 0.1, 0.0, 2.2, False, True)
    tilted = np.array([0.01, 0.02, 0.03, 0.2, -0.1, 0.3])
    joints = [
        OsimJoint("ground_pelvis", "CustomJoint", "ground", "pelvis", zero, zero, free, tuple(root)),
        OsimJoint(
            "knee_joint",
            "CustomJoint",
            "pelvis",
            "shank",
            tilted,
            np.array([0.0, 0.0, 0.0, 0.1, -0.05, 0.15]),
            (bent,),
            tuple(knee),
        ),
        OsimJoint("cap_joint", "CustomJoint", "pelvis", "cap", zero, zero, (bent._replace(name="cap"),), tuple(cap)),
        OsimJoint("sole", "WeldJoint", "shank", "calcn_r", tilted, zero, (), ()),
    ]
    bodies = {
        name: OsimBody(name, 2.0, np.array([0.0, -0.2, 0.0]), 0.02 * np.eye(3), np.ones(3))
        for name in ("pelvis", "shank", "cap", "calcn_r")
    }
    spots = 0.1 * np.random.default_rng(3).normal(size=(len(bodies), 3, 3)) - [0.0, 0.1, 0.0]
    markers = {
        f"{body}{k}": OsimMarker(f"{body}{k}", body, spots[n, k], k > 0)
        for n, body in enumerate(bodies)
        for k in range(3)
    }
    coupled = (OsimCoupling("cap", "knee", "PolynomialFunction", np.array([0.1, 0.8, 0.0]), 1.0),)
    gravity = np.array([0.0, -9.81, 0.0])
    return OsimModel("leg", bodies, {each.name: each for each in joints}, markers, gravity, "leg.osim", coupled)

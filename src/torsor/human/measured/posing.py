"""Where a body stands at first: its standing posture, turned and moved onto the markers."""

import numpy as np

from torsor.base.arrays import Array
from torsor.human.measured.fitting import Fit
from torsor.robot.robot import Robot


def rigid_fit(model: Array, measured: Array, weights: Array) -> tuple[Array, Array]:
    """Return the rotations (K, 3, 3) and translations (K, 3) that bring points (M, 3) closest to (K, M, 3).

    ``weights`` (K, M). By singular value decomposition (Kabsch 1976).

    Example:
        >>> points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
        >>> R, t = rigid_fit(points, points[None] + [0, 0, 2.0], np.ones((1, 4)))
        >>> bool(np.allclose(R, np.eye(3))), t.round(9).tolist()
        (True, [[0.0, 0.0, 2.0]])
    """
    total = np.maximum(weights.sum(axis=1), 1e-30)[:, None]
    middle = weights @ model / total
    centre = np.einsum("km,kmi->ki", weights, measured) / total
    spread = np.einsum("km,kmi,kmj->kij", weights, measured - centre[:, None], model[None] - middle[:, None])
    U, _, Vt = np.linalg.svd(spread)
    U[:, :, 2] *= np.sign(np.linalg.det(U @ Vt))[:, None]
    R = U @ Vt
    return R, centre - np.einsum("kij,kj->ki", R, middle)


def standing_start(fit: Fit, measured: Array, weights: Array) -> Array:
    """Return variables (K, n) of the standing posture, with the whole body moved onto the markers of each frame.

    A body whose first six joints are not three slides and three hinges at right angles stays in the posture.
    """
    body, layout = fit.robot, fit.layout
    y = np.tile(fit.standing, (len(measured), 1))
    ways = _free_root(body)
    if ways is None or min(layout.variables[:6]) < 0:
        return y
    upright = layout.positions(fit.standing)
    upright[:6] = 0.0
    poses = body.poses(upright)
    own = poses[list(layout.links)]
    model = np.einsum("mij,mj->mi", own[:, :3, :3], fit.local) + own[:, :3, 3]
    R, t = rigid_fit(model, measured, weights)
    x = np.tile(upright, (len(measured), 1))
    x[:, 3:6] = _angles(R, ways[3:])
    root = poses[5, :3, 3]
    x[:, :3] = (R @ root + t - body.poses(x)[:, 5, :3, 3]) @ np.linalg.inv(ways[:3])
    for k in range(6):
        slope, constant = _line(fit, k)
        y[:, layout.variables[k]] = (x[:, k] - constant) / slope
    return y


def _free_root(body: Robot) -> Array | None:
    """Return the axes (6, 3) of three slides and three hinges that carry the whole body, at zero; None without them."""
    kinds = [joint.type for joint in body.joints[:6]]
    if kinds != ["prismatic"] * 3 + ["revolute"] * 3 or list(body.parents[:6]) != [-1, 0, 1, 2, 3, 4]:
        return None
    turns = body.poses(np.zeros(body.nq))[:6, :3, :3]
    ways = np.einsum("kij,kj->ki", turns, np.array([joint.axis for joint in body.joints[:6]]))
    square = all(np.allclose(each @ each.T, np.eye(3), atol=1e-9) for each in (ways[:3], ways[3:]))
    return ways if square else None


def _line(fit: Fit, k: int) -> tuple[float, float]:
    """Return the slope and the constant of a position of the root, which moves by its variable."""
    slope, constant = 1.0, 0.0
    for curve in fit.layout.curves[k] if fit.layout.curves else ():
        by, at = curve.line or (1.0, 0.0)
        slope, constant = by * slope, by * constant + at
    return slope, constant


def _angles(R: Array, axes: Array) -> Array:
    """Return the angles (K, 3) about three axes at right angles, each carried by the ones before, of rotations R."""
    own = axes @ R @ axes.T
    first = np.arctan2(-own[:, 1, 2], own[:, 2, 2])
    third = np.arctan2(-own[:, 0, 1], own[:, 0, 0])
    second = np.arcsin(np.clip(own[:, 0, 2], -1, 1))
    return float(np.sign(np.linalg.det(axes))) * np.stack([np.unwrap(first), second, np.unwrap(third)], axis=1)

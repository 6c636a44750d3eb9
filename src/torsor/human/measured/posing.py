"""Where a body stands at first: its standing posture, turned and moved onto the markers."""

import numpy as np

from torsor.arrays import Array
from torsor.human.body.coordinates import GLOBAL
from torsor.human.measured.fitting import Fit


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


def standing_start(fit: Fit, posture: Array, measured: Array, weights: Array) -> Array:
    """Return variables (K, n) of the posture (nq), with the whole body moved onto the markers of each frame.

    A body without the six global coordinates of ``library.human`` stays in the posture.
    """
    body, layout = fit.robot, fit.layout
    q = np.tile(posture, (len(measured), 1))
    if body.coordinate_names[:6] == GLOBAL:
        upright = posture.copy()
        upright[:6] = 0.0
        poses = body.poses(upright)[list(layout.links)]
        model = np.einsum("mij,mj->mi", poses[:, :3, :3], fit.local) + poses[:, :3, 3]
        R, t = rigid_fit(model, measured, weights)
        origin = body.joints[0].placement[:3, 3]
        q[:, :3] = np.einsum("kij,j->ki", R, origin) + t - origin
        # R = Ry(yaw) Rx(tilt) Rz(list)
        q[:, 3] = np.unwrap(np.arctan2(R[:, 0, 2], R[:, 2, 2]))
        q[:, 4] = np.arcsin(np.clip(-R[:, 1, 2], -1, 1))
        q[:, 5] = np.arctan2(R[:, 1, 0], R[:, 1, 1])
    y = np.zeros((len(measured), layout.count))
    for k, variable in reversed(list(enumerate(layout.variables))):
        if variable >= 0:
            y[:, variable] = q[:, k]
    return y

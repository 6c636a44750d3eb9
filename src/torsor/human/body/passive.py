"""Passive torques: what ligaments, tendons and resting muscles exert without any activity.

Hips, knees and ankles follow Riener and Edrich, "Identification of passive elastic joint moments in the lower
extremities", J. Biomechanics 32 (1999) 539-544: with hip flexion h, knee flexion k and dorsiflexion a in degrees,

    hip     exp(1.4655 - 0.0034 k - 0.0750 h) - exp(1.3403 - 0.0226 k + 0.0305 h) + 8.072
    knee    exp(1.800 + 0.0460 a - 0.0352 k + 0.0217 h) - exp(-3.971 + 0.0004 a + 0.0495 k - 0.0128 h)
            - 4.820 + exp(2.220 - 0.150 k)
    ankle   exp(-7.9763 - 0.1949 a + 0.0008 k) - exp(2.1016 + 0.0843 a - 0.0176 k) + 1.792

in N m, in the direction of flexion. They are fits to men of ordinary size and are not scaled here. Toes have a linear
spring of 25 N m/rad and a damper of 1.9 N m s/rad, and all other joints a damper of 0.1 N m s/rad, as in the
simulations of Falisse et al., J. R. Soc. Interface 16 (2019) 20190402.
"""

import math
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import arrays, common_shape, instance_of
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.robot.robot import Robot
from torsor.spatial.vectors import is_symbolic

DAMPING, TOE_STIFFNESS, TOE_DAMPING = 0.1, 25.0, 1.9  # N m s/rad, N m/rad, N m s/rad
LEG = ("hip_flexion", "knee_flexion", "ankle_flexion")


def leg_torques(hip: Any, knee: Any, ankle: Any) -> tuple[Any, Any, Any]:
    """Return the elastic torques (N m) of hip, knee and ankle at angles (rad): numbers, arrays or symbols.

    Example:
        >>> [round(float(each), 1) for each in leg_torques(0.0, 0.0, 0.0)]
        [8.6, 10.4, -6.4]
        >>> [round(float(each), 1) for each in leg_torques(0.0, 0.0, math.radians(20))]  # calves bend the knee
        [8.6, 19.5, -42.4]
    """
    h, k, a = (each * (180 / math.pi) for each in (hip, knee, ankle))
    e = ca.exp if is_symbolic(h) or is_symbolic(k) or is_symbolic(a) else np.exp
    at_hip = e(1.4655 - 0.0034 * k - 0.0750 * h) - e(1.3403 - 0.0226 * k + 0.0305 * h) + 8.072
    at_knee = e(1.800 + 0.0460 * a - 0.0352 * k + 0.0217 * h) - e(-3.971 + 0.0004 * a + 0.0495 * k - 0.0128 * h)
    at_ankle = e(-7.9763 - 0.1949 * a + 0.0008 * k) - e(2.1016 + 0.0843 * a - 0.0176 * k) + 1.792
    return at_hip, at_knee - 4.820 + e(2.220 - 0.150 * k), at_ankle


def torques_by_coordinate(names: tuple[str, ...], q: Any, v: Any) -> list[Any]:
    """Return the passive torque of each coordinate after the six global ones; q and v are indexed by coordinate."""
    found = {name: -DAMPING * v[k] for k, name in enumerate(names) if k >= len(GLOBAL)}
    for side in SIDES:
        angles = (q[names.index(f"{side}_{joint}")] for joint in LEG)
        for joint, torque in zip(LEG, leg_torques(*angles), strict=True):
            found[f"{side}_{joint}"] = found[f"{side}_{joint}"] + torque
        toe = names.index(f"{side}_toe_extension")
        found[names[toe]] = -TOE_STIFFNESS * q[toe] - TOE_DAMPING * v[toe]
    return [found[name] for name in names[len(GLOBAL) :]]


def passive_torques(body: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return the passive torques (..., 55) (N m) of a body (``library.human``) at q and v (..., 55); 0 for the pelvis.

    The torque of the muscles is that of inverse dynamics minus the passive one.

    Example:
        >>> body, still = torsor.library.human(), np.zeros(55)
        >>> torque = passive_torques(body, still, still)
        >>> round(float(torque[body.coordinate_names.index("right_ankle_flexion")]), 2)
        -6.39
    """
    instance_of(body, Robot, "passive torques", "body", allowed="a torsor.library.human()")
    q, v = (arrays(each, (body.nv,), "passive torques", name) for each, name in ((q, "q"), (v, "v")))
    common_shape("passive torques", q=q.shape, v=v.shape)
    q, v = np.broadcast_arrays(q, v)
    found = torques_by_coordinate(body.coordinate_names, np.moveaxis(q, -1, 0), np.moveaxis(v, -1, 0))
    zero = np.zeros(q.shape[:-1])
    return np.stack([*[zero] * len(GLOBAL), *found], axis=-1)

"""Single precision: a warning before accelerations of an ill-conditioned robot are computed in it."""

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import warn
from torsor.dynamics import Request, trace
from torsor.mechanism import Mechanism

# Largest condition number of the mass matrix, rows and columns scaled to a unit diagonal, in single precision, whose
# rounding is 2^-24: two correct digits.
CONDITION = 0.01 * 2**24
POSITIONS = 24  # random positions within the limits of the joints: some milliseconds


def warn_of_condition(mechanism: Mechanism) -> None:
    """Warn if accelerations in single precision have fewer than two correct digits.

    Judged at the neutral position and at random ones within the limits. Positions where the axes of a light link's
    neighbours coincide are rare: there, digits are lost without a warning. An iCub has one correct digit left where its
    hips have turned by 90 degrees, which their limits exclude; within the limits it keeps five.
    """
    function, (condition, worst, where) = trace(mechanism, Request("mass_matrix")), (0.0, 0, "")
    for k, q in enumerate(_positions(mechanism)):
        found, at = _condition(np.asarray(function(q).full()))
        if found > condition:
            condition, worst, where = found, at, " at some positions" if k else ""
        if condition > CONDITION:
            break
    if condition > CONDITION:
        text = f"the mass matrix, scaled to a unit diagonal, has the condition number {condition:.1e}{where}"
        text += f" (near {mechanism.coordinate_names[worst]!r}), too large for accelerations in float32"
        fix = "robot.to(dtype='float64'), or give light links their real inertia"
        warn(text, where=mechanism.name, allowed=f"{CONDITION:.1e}: two correct digits", fix=fix)


def _positions(mechanism: Mechanism) -> list[Array]:
    """Return the neutral position (nq,), and random ones within the limits; joints without them turn half a turn."""
    rng, neutral = np.random.default_rng(0), mechanism.neutral()
    lower, upper = np.maximum(mechanism.lower, -np.pi), np.minimum(mechanism.upper, np.pi)
    spread = rng.uniform(np.minimum(lower, upper), np.maximum(lower, upper), (POSITIONS, mechanism.nq))
    for joint, at in zip(mechanism.joints, mechanism.coordinates, strict=True):
        if joint.nq > joint.nv:  # a quaternion
            spread[:, at.q][:, -4:] /= np.linalg.norm(spread[:, at.q][:, -4:], axis=1, keepdims=True)
    return [neutral, *spread] if mechanism.nv else []


def _condition(M: Array) -> tuple[float, int]:
    """Return the condition number of a mass matrix scaled to a unit diagonal, and the coordinate that causes it."""
    diagonal = np.sqrt(np.maximum(np.diag(M), 0.0))
    weightless = np.flatnonzero(~(diagonal > 0))
    if weightless.size:
        return np.inf, int(weightless[0])
    moments, directions = np.linalg.eigh(M / np.outer(diagonal, diagonal))
    condition = float(moments[-1] / moments[0]) if moments[0] > 0 else np.inf
    return condition, int(np.argmax(np.abs(directions[:, 0])))

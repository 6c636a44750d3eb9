"""Contact forces of hip, knee and ankle, estimated with equivalent muscles.

Net joint reactions are those of a body without muscles; the tension of muscles across a joint presses its bones
together in addition. At each instant the forces F of the muscle groups (``muscle_groups``) are found by static
optimisation,

    minimise  sum (F_i / F_max,i)^2      subject to  R F = M,  0 <= F <= F_max

with lever arms R and the net moments M of hip (flexion and adduction), knee and ankle. With A = R diag(F_max) the
optimum is u = F / F_max = clip(A^T y, 0, 1), where y solves A clip(A^T y, 0, 1) + e y = M: four equations, solved for
all instants at once by Newton's method. The small e keeps it solvable where the muscles are too weak, and the rest is
reported.

All groups of the hip act along the thigh, those of knee and ankle along the shank: contact = reaction - sum F times
that direction. It is an estimate, without passive tissue, co-contraction beyond the optimum, and lateral directions of
muscles.
"""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import arrays, instance_of, one_of, positive_vector, real_array
from torsor.base.errors import ModelError, describe
from torsor.human.body.coordinates import SIDES
from torsor.human.body.person import Person, person_of
from torsor.human.ergonomics.muscle_groups import MOMENTS, NAMES, crosses, largest_forces, lever_arms
from torsor.human.gait.stride import Stride
from torsor.human.terms.problem import load_of
from torsor.human.terms.samples import REACTION_JOINTS, Samples, sampled
from torsor.motion import MotionResult
from torsor.robot.robot import Robot

STEPS, HALVINGS = 60, 30  # most Newton steps, and halvings of each
SOFT, DONE = 1e-7, 1e-10  # e relative to A A^T; accuracy relative to the strongest moment
BONES = {"hip": "thigh", "knee": "shank", "ankle": "shank"}  # links along which the muscles of a joint act

# Peaks of level walking in body weights: instrumented hips (Bergmann et al. 2001) and knees (Kutzner et al. 2010).
IN_VIVO = {"hip": (2.4, 3.0), "knee": (2.2, 2.8)}


class JointContact(NamedTuple):
    """Estimated contact forces of a leg at K instants.

    ``forces`` has the vectors (K, 3) (N) on the link below "hip", "knee" and "ankle", in base axes; ``muscles`` the
    forces (K,) (N) of the groups by name; ``missing`` (K, 4) (N m) is what the groups cannot exert of the moments of
    hip (flexion, adduction), knee and ankle; ``weight`` (N) is that of the body with its load.
    """

    forces: dict[str, Array]
    muscles: dict[str, Array]
    missing: Array
    weight: float

    def peak(self, joint: str) -> float:
        """Return the largest contact force of a joint, in body weights."""
        one_of(joint, tuple(self.forces), "joint contact", "joint")
        return float(np.linalg.norm(self.forces[joint], axis=1).max()) / self.weight


def joint_contact(motion: MotionResult | Stride, side: str = "right") -> JointContact:
    """Return the estimated contact forces of a leg in a predicted motion of a human, or over a stride.

    For a result, the instants are ``result.times``; for a ``Stride`` its 401 instants, of its own side.

    Example:
        >>> joint_contact(None, "middle")
        Traceback (most recent call last):
        torsor.ModelError: joint contact: side is 'middle'; allowed: 'right', 'left'
    """
    one_of(side, SIDES, "joint contact", "side")
    if isinstance(motion, Stride):
        result, samples, side = motion.result, motion.samples, SIDES[0]  # a stride calls its own side right
    else:
        allowed = "the result of a problem of torsor.human, or a Stride"
        instance_of(motion, MotionResult, "joint contact", "motion", allowed=allowed)
        result, samples = motion, sampled(motion, motion.times / motion.T)
    load = load_of(result.problem)
    return contact_of(result.robot, person_of(result.robot, 0.0 if load is None else load.mass), samples, side)


def contact_of(body: Robot, person: Person, samples: Samples, side: str) -> JointContact:
    """Return the estimated contact forces of a leg of a body in a sampled motion."""
    places = [body.coordinate_names.index(f"{side}_{name}") for name in MOMENTS]
    strongest = largest_forces(person)
    forces, missing = muscle_forces(lever_arms(person, samples.q[:, places]), samples.torques[:, places], strongest)
    contacts = {}
    for k, joint in enumerate(REACTION_JOINTS):
        up = body.pose(samples.q, f"{side}_{BONES[joint]}")[:, :3, 1]
        contacts[joint] = samples.reactions[:, SIDES.index(side), k] - (forces @ crosses(joint))[:, None] * up
    weight = body.mass * float(np.linalg.norm(body.gravity))
    return JointContact(contacts, dict(zip(NAMES, forces.T, strict=True)), missing, weight)


def muscle_forces(levers: Array, moments: Array, strongest: Array) -> tuple[Array, Array]:
    """Return the muscle forces (K, N) of least sum of squared fractions of ``strongest`` (N,), and what is missing.

    ``levers`` (K, M, N) (m) times forces are the ``moments`` (K, M) (N m); the missing moments (K, M) are not zero
    where the muscles are too weak.

    Example:
        >>> forces, missing = muscle_forces(np.array([[[0.05, 0.05, -0.04]]]), np.array([[30.0]]), np.full(3, 1000.0))
        >>> forces.round(3).tolist(), float(abs(missing).max()) < 1e-3
        ([[300.0, 300.0, 0.0]], True)
    """
    levers = real_array(levers, "muscle forces", "levers")
    if levers.ndim != 3:
        raise ModelError(describe(f"levers has shape {levers.shape}", where="muscle forces", allowed="(K, M, N)"))
    arrays(levers, levers.shape, "muscle forces", "levers")
    moments = arrays(moments, levers.shape[:2], "muscle forces", "moments")
    strongest = positive_vector(strongest, levers.shape[2], "muscle forces", "strongest", or_zero=True)
    A = levers * strongest
    scale = np.einsum("kij,kij->k", A, A) / A.shape[1]
    soft = SOFT * scale[:, None]
    y = np.zeros(moments.shape)
    for _ in range(STEPS):
        pull = np.einsum("kij,ki->kj", A, y)
        gradient = np.einsum("kij,kj->ki", A, np.clip(pull, 0, 1)) + soft * y - moments
        if np.abs(gradient).max(initial=0.0) <= DONE * np.sqrt(scale.max(initial=0.0)):
            break
        active = ((pull > 0) & (pull < 1)).astype(float)
        hessian = np.einsum("kij,kj,klj->kil", A, active, A) + soft[..., None] * np.eye(A.shape[1])
        y = _descend(A, soft, moments, y, np.linalg.solve(hessian, -gradient[..., None])[..., 0])
    forces = np.clip(np.einsum("kij,ki->kj", A, y), 0, 1) * strongest
    return forces, moments - np.einsum("kij,kj->ki", levers, forces)


def _descend(A: Array, soft: Array, moments: Array, y: Array, step: Array) -> Array:
    """Return y + t step with t halved at each instant until the dual function falls."""
    before, t = _dual(A, soft, moments, y), np.ones(len(y))
    for _ in range(HALVINGS):
        rises = _dual(A, soft, moments, y + t[:, None] * step) > before + 1e-12 * np.abs(before)
        if not rises.any():
            break
        t = np.where(rises, t / 2, t)
    return y + t[:, None] * step


def _dual(A: Array, soft: Array, moments: Array, y: Array) -> Array:
    """Return the convex function (K,) whose gradient is zero at the optimum."""
    pull = np.einsum("kij,ki->kj", A, y)
    inside = np.clip(pull, 0, 1)
    return np.asarray(
        (inside * (pull - inside / 2)).sum(axis=1) + (soft * y * y).sum(axis=1) / 2 - (moments * y).sum(axis=1)
    )

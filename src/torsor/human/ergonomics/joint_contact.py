"""Contact forces in the hip, knee and ankle, estimated with equivalent muscles.

Net joint reactions are those of a body without muscles. Muscle forces across a joint additionally press its bones
together. At each instant, the forces F of the muscle groups (``GROUPS``) are computed by static optimisation,

    minimise  sum (F_i / F_max,i)^2      subject to  R F = M,  0 <= F <= F_max

with moment arms R and the net moments M of hip (flexion and adduction), knee and ankle. With A = R diag(F_max), the
optimum is u = F / F_max = clip(A^T y, 0, 1), where y solves A clip(A^T y, 0, 1) + e y = M. These four equations are
solved for all samples together by Newton's method. A small e keeps them solvable where the muscles are too weak; the
missing moment is reported.

All hip groups act along the thigh, and the knee and ankle groups along the shank, so contact = reaction - sum F times
this direction. The estimate does not include passive tissue, co-contraction beyond the optimum, or lateral muscle
directions.
"""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import arrays, instance_of, one_of, positive_vector, real_array
from torsor.base.errors import ModelError
from torsor.base.files import data_of
from torsor.human.body.coordinates import SIDES
from torsor.human.body.person import Person, person_of
from torsor.human.gait.stride import Stride
from torsor.human.terms.problem import REACTION_JOINTS, Samples, load_of, sampled
from torsor.motion import MotionResult
from torsor.robot.robot import Robot

# Muscle groups of a leg, with maximum forces and moment arms of Geyer and Herr (2010) and Song and Geyer (2015).
#
# Eleven groups act on hip (flexion and adduction), knee and ankle. Moment arms that change with the included angle phi
# of the joint are r(phi) = r_max cos(s (phi - phi_max)), with s such that r(phi_min) = r_min. The knee is straight at
# 180 degrees, and the foot is perpendicular to the shank at 90 degrees. The data describe a man of 80 kg and 1.80 m;
# forces are scaled by mass, and moment arms by height. The hip moment arms (0.08 m) are longer than those of anatomical
# models (0.03 to 0.07 m), so hip forces are underestimated.

MASS, HEIGHT = 80.0, 1.80  # kg and m of the reference person
MOMENTS = ("hip_flexion", "hip_adduction", "knee_flexion", "ankle_flexion")  # coordinates without a side
JOINT_COORDINATES = {"hip": ("hip_flexion", "hip_adduction"), "knee": ("knee_flexion",), "ankle": ("ankle_flexion",)}


class MomentArm(NamedTuple):
    """A moment arm (m) about a coordinate, positive for flexion and adduction, that may depend on the included angle.

    ``largest`` (signed) is reached at the included angle ``at``, and its magnitude decreases to ``least`` at
    ``least_at`` (degrees). If ``least`` is 0, the moment arm is constant.
    """

    coordinate: str
    largest: float
    at: float = 0.0
    least: float = 0.0
    least_at: float = 0.0

    def of(self, included: Array) -> Array:
        """Return the moment arm at included angles (degrees)."""
        if not self.least:
            return np.full(np.shape(included), self.largest)
        rate = np.arccos(self.least / abs(self.largest)) / np.radians(self.least_at - self.at)
        turned = np.clip(rate * np.radians(included - self.at), -1.4, 1.4)  # the model is invalid for larger angles
        return np.asarray(self.largest * np.cos(turned))


class Group(NamedTuple):
    """A muscle group: its ``name``, maximum ``force`` (N), and moment arms."""

    name: str
    force: float
    arms: tuple[MomentArm, ...]


GROUPS = tuple(
    Group(name, row["force"], tuple(MomentArm(coordinate, *arm) for coordinate, arm in row["arms"].items()))
    for name, row in data_of(__name__)["groups"].items()
)
NAMES = tuple(group.name for group in GROUPS)


def largest_forces(person: Person) -> Array:
    """Return the maximum forces (11,) (N) of a person."""
    return np.array([group.force for group in GROUPS]) * person.mass / MASS


def moment_arms(person: Person, flexions: Array) -> Array:
    """Return moment arms (K, 4, 11) (m) about ``MOMENTS`` at angles (K, 4) (rad), positive in flexion and adduction."""
    degrees, scale = np.degrees(flexions), person.height / HEIGHT
    arms = np.zeros((len(flexions), len(MOMENTS), len(GROUPS)))
    for k, group in enumerate(GROUPS):
        for arm in group.arms:
            row = MOMENTS.index(arm.coordinate)
            straight = 90.0 if arm.coordinate == "ankle_flexion" else 180.0
            arms[:, row, k] = scale * arm.of(straight - degrees[:, row])
    return arms


def crosses(joint: str) -> Array:
    """Return 1 for groups (11,) that cross a joint ("hip", "knee" or "ankle"), and 0 for the others."""
    return np.array([float(any(arm.coordinate in JOINT_COORDINATES[joint] for arm in group.arms)) for group in GROUPS])


MAX_NEWTON_STEPS, MAX_HALVINGS = 60, 30  # maximum number of Newton steps, and of halvings per step
REGULARISATION, MOMENT_TOLERANCE = 1e-7, 1e-10  # e relative to A A^T, and accuracy relative to the largest moment
BONES = {"hip": "thigh", "knee": "shank", "ankle": "shank"}  # links along which the muscles of a joint act

# Peaks in level walking, in body weights: instrumented hips (Bergmann et al. 2001) and knees (Kutzner et al. 2010).
IN_VIVO = {"hip": (2.4, 3.0), "knee": (2.2, 2.8)}


class JointContact(NamedTuple):
    """Estimated joint contact forces of a leg at K samples.

    ``forces`` contains the forces (K, 3) (N) on the links below "hip", "knee" and "ankle", in base axes. ``muscles``
    contains the group forces (K,) (N) by name. ``missing`` (K, 4) (N m) is the part of the moments at the hip (flexion,
    adduction), knee and ankle that the groups cannot exert. ``weight`` (N) is the weight of the body including its
    load.
    """

    forces: dict[str, Array]
    muscles: dict[str, Array]
    missing: Array
    weight: float

    def peak(self, joint: str) -> float:
        """Return the largest contact force in a joint, in multiples of body weight."""
        one_of(joint, tuple(self.forces), "joint contact", "joint")
        return float(np.linalg.norm(self.forces[joint], axis=1).max()) / self.weight


def joint_contact(motion: MotionResult | Stride, side: str = "right") -> JointContact:
    """Return the estimated joint contact forces of a leg in a predicted human motion, or over a stride.

    The samples of a result are at ``result.times``. Those of a ``Stride`` are its 401 samples, and the leg is on the
    side of the stride.

    Example:
        >>> joint_contact(None, "middle")
        Traceback (most recent call last):
        torsor.ModelError: joint contact: side is 'middle'; allowed: 'right', 'left'
    """
    one_of(side, SIDES, "joint contact", "side")
    if isinstance(motion, Stride):
        result, samples, side = motion.result, motion.samples, SIDES[0]  # the side of a stride is labelled right
    else:
        allowed = "the result of a problem of torsor.human, or a Stride"
        instance_of(motion, MotionResult, "joint contact", "motion", allowed=allowed)
        result, samples = motion, sampled(motion, motion.times / motion.T)
    load = load_of(result.problem)
    return contact_of(result.robot, person_of(result.robot, 0.0 if load is None else load.mass), samples, side)


def contact_of(body: Robot, person: Person, samples: Samples, side: str) -> JointContact:
    """Return the estimated joint contact forces of a leg in a sampled motion."""
    places = [body.coordinate_names.index(f"{side}_{name}") for name in MOMENTS]
    strongest = largest_forces(person)
    forces, missing = muscle_forces(moment_arms(person, samples.q[:, places]), samples.torques[:, places], strongest)
    contacts = {}
    for k, joint in enumerate(REACTION_JOINTS):
        up = body.pose(samples.q, f"{side}_{BONES[joint]}")[:, :3, 1]
        contacts[joint] = samples.reactions[:, SIDES.index(side), k] - (forces @ crosses(joint))[:, None] * up
    weight = body.mass * float(np.linalg.norm(body.gravity))
    return JointContact(contacts, dict(zip(NAMES, forces.T, strict=True)), missing, weight)


def muscle_forces(levers: Array, moments: Array, strongest: Array) -> tuple[Array, Array]:
    """Return the muscle forces (K, N) with least sum of squared fractions of ``strongest`` (N,), and missing moments.

    The product of ``levers`` (K, M, N) (m) and forces equals the ``moments`` (K, M) (N m), except for the missing
    moments (K, M), which are nonzero where the muscles are too weak.

    Example:
        >>> forces, missing = muscle_forces(np.array([[[0.05, 0.05, -0.04]]]), np.array([[30.0]]), np.full(3, 1000.0))
        >>> forces.round(3).tolist(), float(abs(missing).max()) < 1e-3
        ([[300.0, 300.0, 0.0]], True)
    """
    levers = real_array(levers, "muscle forces", "levers")
    if levers.ndim != 3:
        raise ModelError(f"has shape {levers.shape}", argument="levers", where="muscle forces", allowed="(K, M, N)")
    arrays(levers, levers.shape, "muscle forces", "levers")
    moments = arrays(moments, levers.shape[:2], "muscle forces", "moments")
    strongest = positive_vector(strongest, levers.shape[2], "muscle forces", "strongest", or_zero=True)
    A = levers * strongest
    scale = np.einsum("kij,kij->k", A, A) / A.shape[1]
    soft = REGULARISATION * scale[:, None]
    y = np.zeros(moments.shape)
    for _ in range(MAX_NEWTON_STEPS):
        pull = np.einsum("kij,ki->kj", A, y)
        gradient = np.einsum("kij,kj->ki", A, np.clip(pull, 0, 1)) + soft * y - moments
        if np.abs(gradient).max(initial=0.0) <= MOMENT_TOLERANCE * np.sqrt(scale.max(initial=0.0)):
            break
        active = ((pull > 0) & (pull < 1)).astype(float)
        hessian = np.einsum("kij,kj,klj->kil", A, active, A) + soft[..., None] * np.eye(A.shape[1])
        y = _descend(A, soft, moments, y, np.linalg.solve(hessian, -gradient[..., None])[..., 0])
    forces = np.clip(np.einsum("kij,ki->kj", A, y), 0, 1) * strongest
    return forces, moments - np.einsum("kij,kj->ki", levers, forces)


def _descend(A: Array, soft: Array, moments: Array, y: Array, step: Array) -> Array:
    """Return y + t step, with t halved at each instant until the dual function decreases."""
    before, t = _dual(A, soft, moments, y), np.ones(len(y))
    for _ in range(MAX_HALVINGS):
        rises = _dual(A, soft, moments, y + t[:, None] * step) > before + 1e-12 * np.abs(before)
        if not rises.any():
            break
        t = np.where(rises, t / 2, t)
    return y + t[:, None] * step


def _dual(A: Array, soft: Array, moments: Array, y: Array) -> Array:
    """Return the convex function (K,) whose gradient vanishes at the optimum."""
    pull = np.einsum("kij,ki->kj", A, y)
    inside = np.clip(pull, 0, 1)
    quadratic = (inside * (pull - inside / 2)).sum(axis=1)
    return np.asarray(quadratic + (soft * y * y).sum(axis=1) / 2 - (moments * y).sum(axis=1))

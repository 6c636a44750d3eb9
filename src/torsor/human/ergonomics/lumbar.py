"""Moment, compression and shear at the lowest lumbar disc, L5/S1, with single equivalent muscles.

The wrench exerted by the sacrum on the body above the disc follows from the joint reactions of a motion. Muscles with
one moment arm per direction balance its moment and compress the disc:

    F_m = M_extension / r_e + M_flexion / r_a + |M_lateral| / r_l
    C = F_m + F . n      S = F . t

where F is the force of the upper body on the disc, n is the disc normal, and t is the forward direction in the disc
plane. The upper surface of the sacrum is inclined forward by 40 degrees when standing (sacral slope) and rotates with
the pelvis. Muscles act along n and do not contribute to the shear. Intra-abdominal pressure, whose effect is disputed,
and co-contraction, which increases compression, are not modelled. The values agree with Chaffin and Andersson's model
with r_e = 0.05 m, on which the NIOSH limits (1981) are based.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import arrays, instance_of, number, one_of, positive, real_array, vectors
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import GLOBAL
from torsor.human.body.person import Person, person_of
from torsor.human.body.postures import landmark
from torsor.human.body.strength import SEXES
from torsor.human.body.work_shift import SHIFT_HOURS
from torsor.library.anthropometry import BODY_TABLES
from torsor.robot.robot import Robot

DOSE_LIMITS = {"male": 5500.0, "female": 3500.0}  # N h; recommended daily doses (Jaeger et al. 2000)


class Dose(NamedTuple):
    """Cumulative compression over a shift: ``linear`` (N s), ``squared`` (N h) and the recommended ``limit`` (N h).

    ``linear`` is the integral of compression over all repetitions. ``squared`` is the dose of the Mainz-Dortmund model,
    sqrt(integral of C^2 dt * 8 h), in which doubling the load has the same effect as four times the duration.
    """

    linear: float
    squared: float
    limit: float


def cumulative_dose(times: ArrayLike, compression: ArrayLike, repetitions: float = 1.0, sex: str = "male") -> Dose:
    """Return the dose of ``repetitions`` of a task with ``compression`` (K,) (N) at ``times`` (K,) (s).

    ``sex`` selects the recommended limit. Repetitions that together exceed a shift of 8 hours raise ModelError.

    Example:
        >>> dose = cumulative_dose([0.0, 2.0], [3000.0, 3000.0], repetitions=900)
        >>> dose.linear, round(dose.squared)
        (5400000.0, 6000)
    """
    one_of(sex, SEXES, "cumulative dose", "sex")
    count = number(repetitions, "cumulative dose", "repetitions", above=0.0)
    t = real_array(times, "cumulative dose", "times")
    force: Array = vectors(compression, len(np.atleast_1d(t)), "cumulative dose", "compression")
    if t.ndim != 1 or len(t) < 2 or not (np.diff(t) > 0).all():
        allowed = "(K,) increasing times (s)"
        raise ModelError("do not increase", argument="times", where="cumulative dose", allowed=allowed)
    if count * (t[-1] - t[0]) > SHIFT_HOURS * 3600 * (1 + 1e-9):
        what = f"{count:g} repetitions of {t[-1] - t[0]:.3g} s take {count * (t[-1] - t[0]) / 3600:.3g} hours"
        allowed = f"at most {SHIFT_HOURS:g} hours"
        raise ModelError(what, where="cumulative dose", allowed=allowed, fix="give fewer repetitions")
    if (force < 0).any():
        what = f"is {force.min():.4g} N at {t[int(np.argmin(force))]:g} s"
        allowed = "0 or more, because discs cannot be pulled"
        raise ModelError(what, argument="compression", where="cumulative dose", allowed=allowed)
    steps = np.diff(t)
    linear, squares = (float(count * (steps * (values[1:] + values[:-1]) / 2).sum()) for values in (force, force**2))
    return Dose(linear, float(np.sqrt(squares / 3600 * SHIFT_HOURS)), DOSE_LIMITS[sex])


COMPRESSION_LIMITS = (3400.0, 6400.0)  # N; action limit and maximum permissible limit (NIOSH 1981)
SHEAR_LIMITS = (700.0, 1000.0)  # N; frequent and occasional loads (Gallagher and Marras 2012)
LINK_ABOVE_PELVIS = "spine1/spine1_flexion"  # the first link above the pelvis, whose joint is at the navel


@dataclass(frozen=True)
class LumbarModel:
    """Position of the disc, and moment arms of its muscles (m).

    ``height`` is the height of L5/S1 above the midpoint of the hips for a man with a height of 1.741 m (0.10 m to 0.11
    m in the literature), and ``behind`` is its distance behind this midpoint. Both are proportional to body height.
    ``erector``, ``abdominal`` and ``lateral`` are the moment arms of the muscles for trunk extension, flexion and
    lateral bending: 0.05 m (0.04 m to 0.065 m in the literature), 0.10 m and 0.07 m. ``slope`` (degrees) is the
    inclination of the disc when standing.

    Example:
        >>> LumbarModel(erector=0.06).erector
        0.06
    """

    height: float = 0.105
    behind: float = 0.0
    erector: float = 0.05
    abdominal: float = 0.10
    lateral: float = 0.07
    slope: float = 40.0

    def __post_init__(self) -> None:
        for name in ("height", "erector", "abdominal", "lateral"):
            positive(getattr(self, name), "lumbar model", name)
        number(self.behind, "lumbar model", "behind", least=-0.1, most=0.1)
        number(self.slope, "lumbar model", "slope", least=0.0, below=90.0)


class LumbarLoads(NamedTuple):
    """Loads (...) on L5/S1: moments (N m) of extension, lateral bending and axial rotation, and forces (N).

    ``extension`` is positive if the back muscles act, and negative if the abdominal muscles act. ``lateral`` and
    ``axial`` are about the forward and upward axes of the pelvis. ``muscles`` is the sum of the muscle forces, and
    ``compression`` is the disc compression. ``shear`` and ``side_shear`` are the forward and lateral forces in the disc
    plane.
    """

    extension: Array
    lateral: Array
    axial: Array
    muscles: Array
    compression: Array
    shear: Array
    side_shear: Array


def lumbar_loads(
    body: Robot,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    external: ArrayLike | None = None,
    model: LumbarModel | None = None,
    carried: float = 0.0,
) -> LumbarLoads:
    """Return the loads on L5/S1 of a body (``library.human``) in a posture q (..., 55), or in a motion q, v, a.

    ``external`` (..., L, 6) contains wrenches on links (moment and force at the link origins, in link axes), for
    example from ``hand_wrenches``. Wrenches on the pelvis, legs and feet have no effect. ``carried`` (kg) is the mass
    of a load that the body includes. ``model`` contains the disc position and the moment arms.

    Example:
        >>> body, upright, bent = torsor.library.human(), np.zeros(55), np.zeros(55)
        >>> bent[body.coordinate_names.index("tilt")] = np.radians(60)
        >>> [round(float(lumbar_loads(body, q).compression)) for q in (upright, bent)]
        [287, 1689]
    """
    if not isinstance(body, Robot) or body.coordinate_names[:6] != GLOBAL:
        allowed, fix = f"a body whose first coordinates are {', '.join(GLOBAL)}", "use torsor.library.human()"
        raise ModelError(argument="body", value=body, where="lumbar loads", allowed=allowed, fix=fix)
    model = instance_of(LumbarModel() if model is None else model, LumbarModel, "lumbar loads", "model")
    q = arrays(q, (body.nq,), "lumbar loads", "q")
    rest = np.zeros(q.shape)
    v, a = (
        rest if rate is None else arrays(rate, (body.nv,), "lumbar loads", name) for rate, name in ((v, "v"), (a, "a"))
    )
    force, moment, R = _above(body, q, v, a, external, model, carried)
    x, y, z = (R[..., k] for k in range(3))  # leftward, upward and forward axes of the pelvis
    slope = np.radians(model.slope)
    normal, ahead = np.cos(slope) * y + np.sin(slope) * z, np.cos(slope) * z - np.sin(slope) * y
    extension, lateral, axial = -_dot(moment, x), _dot(moment, z), _dot(moment, y)
    back, belly = np.maximum(extension, 0.0) / model.erector, np.maximum(-extension, 0.0) / model.abdominal
    muscles = back + belly + np.abs(lateral) / model.lateral
    compression = muscles + _dot(force, normal)
    return LumbarLoads(extension, lateral, axial, muscles, compression, -_dot(force, ahead), -_dot(force, x))


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("...i,...i->...", a, b))


def _above(
    body: Robot, q: Array, v: Array, a: Array, external: ArrayLike | None, model: LumbarModel, carried: float
) -> tuple[Array, Array, Array]:
    """Return the force and moment (..., 3) at the disc of the sacrum on the body above L5/S1, and the pelvis axes."""
    scale = _scale(person_of(body, carried))
    disc = scale * np.array([0.0, model.height, -model.behind])
    navel = landmark(body, "spine1")[1] - landmark(body, "pelvis")[1]
    pelvis, above = body.pose(q, "pelvis"), body.pose(q, LINK_ABOVE_PELVIS)
    R, at = pelvis[..., :3, :3], pelvis[..., :3, 3] + _turn(pelvis[..., :3, :3], disc)
    wrench = body.joint_wrenches(q, v, a, external)[..., body.link_names.index(LINK_ABOVE_PELVIS), :]
    moment, force = (_turn(above[..., :3, :3], vector) for vector in (wrench[..., :3], wrench[..., 3:]))
    moment = moment + np.cross(above[..., :3, 3] - at, force)
    # The part of the lower trunk between disc and navel moves with the pelvis and is treated as a point mass.
    share = max(navel - disc[1], 0.0) / navel
    mass = share * body.links[body.link_names.index("pelvis")].mass
    middle = np.array([0.0, (navel + disc[1]) / 2, 0.0])
    rate, accelerated = np.split(body.acceleration(q, v, a, "pelvis"), 2, axis=-1)
    omega = body.velocity(q, v, "pelvis")[..., :3]
    point = accelerated + np.cross(rate, middle) + np.cross(omega, np.cross(omega, middle))
    inertial_force = mass * (_turn(R, point) - body.gravity)
    return force + inertial_force, moment + np.cross(_turn(R, middle - disc), inertial_force), R


def _scale(person: Person) -> float:
    return 1000 * person.height / BODY_TABLES["male"].stature


def disc_height(person: Person, model: LumbarModel) -> float:
    """Return the height (m) of L5/S1 above the midpoint of the hips."""
    return _scale(person) * model.height


def _turn(R: Array, x: Array) -> Array:
    return np.asarray(np.einsum("...ij,...j->...i", R, np.broadcast_to(x, (*R.shape[:-2], 3))))


def compression_tolerance(age: float, sex: str) -> float:
    """Return the mean compressive strength (N) of lumbar discs at an age (years), by sex (Jaeger 2001).

    Example:
        >>> [round(compression_tolerance(age, "male")) for age in (20, 60)]
        [8590, 4710]
    """
    one_of(sex, tuple(BODY_TABLES), "compression tolerance", "sex")
    decades = number(age, "compression tolerance", "age", least=18.0, most=90.0) / 10
    return 1000 * (10.53 - 0.97 * decades if sex == "male" else 7.03 - 0.59 * decades)

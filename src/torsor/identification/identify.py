"""``identify``: robot parameters from measured motions and forces."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.checks import flag, number, one_of, positive, several, table
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.identification.bases import free_coordinates
from torsor.identification.choice import CRITERIA, Wanted, extended
from torsor.identification.closed_robot import (
    MeasuredRobot,
    measured_robot,
    rubbing_joints,
    whole,
    with_friction_models,
)
from torsor.identification.drives import (
    AUTO,
    FRICTION_SUFFIXES,
    OFFERED,
    ROBOT_MODELS,
    TEMPERATURE_LAWS,
    Drives,
    asked_of,
    directions_of,
    warmth_of,
)
from torsor.identification.estimation import INFLUENCES, Method, estimate, root_of
from torsor.identification.measurements import Measurements, measurements_of
from torsor.identification.model import Filter, Model, equations_of
from torsor.identification.physical import Estimate, Prior, UnphysicalError, check_distance, explained, nearest_physical
from torsor.identification.result import Identified
from torsor.identification.simulated_instruments import simulated
from torsor.robot.parallel import ParallelRobot
from torsor.simulation import Trajectory

MIN_NOISE_RATIO = 1e-7  # minimum relative force noise of a physical estimate
NOISE_KINDS = ("auto", "white", "correlated")
SIMULATION = "simulation"


def identify(
    robot: MeasuredRobot | ParallelRobot,
    data: Measurements | Trajectory | Sequence[Any],
    *,
    physical: bool = False,
    among: Sequence[str] = ("*",),
    regularisation: float = 1e-3,
    mass: float | None = None,
    still: float = 0.01,
    friction: str | Sequence[str] | Mapping[str, Any] = "auto",
    couplings: Mapping[str, Mapping[str, float]] | None = None,
    temperature: ArrayLike | None = None,
    criterion: str = "cv",
    bandwidth: float | None = None,
    robust: str | None = None,
    noise: str = "auto",
    instruments: Sequence[ArrayLike] | str | None = None,
    held_out: float = 0.0,
) -> Identified:
    """Return the base parameters of a robot from measured motions and forces, with standard deviations.

    ``robot`` provides geometry, gravity, springs and motors. ``data`` are ``Measurements``, a ``Trajectory``, or a
    tuple (q, v, a, tau). The parameters named by ``among`` (patterns with *, as in ``robot.inertial.base``) are
    unknown; the others are those of the robot. Forces of springs, motors and known parameters are subtracted from tau.
    The remainder, Y pi, is fitted by weighted least squares, which also estimates the noise of each coordinate
    (Gautier's IDIM-WLS). Known environment wrenches (``external`` of the measurements) are added to tau as J^T w. If
    the forces of some coordinates were not measured (``Measurements.of``), the base parameters are those that affect
    the measured forces.

    For a robot with closed loops or a parallel robot, the data contain the drives (active coordinates) or all
    coordinates. Passive joints follow from the loop closure, starting at the robot's posture "home" (or at the first
    sample, if all joints are measured). Values, predictions and residuals refer to the drives. Friction and rotor
    inertias of passive joints are unknown only if ``among`` names them: ["*", "elbow.viscous"].

    Coulomb friction has the sign of the velocity, which noise dominates near rest. If the friction of a coordinate is
    unknown and not ``smooth``, its forces are excluded at speeds below the fraction ``still`` of its maximum speed.

    With ``physical``, all parameters of all links are identified subject to physical consistency (positive definite
    pseudo-inertias; friction and rotor inertias of 0 or more), and ``.robot`` is the resulting robot. Parameters that
    the measurements do not determine stay close to those of ``robot``; ``regularisation`` is the weight of the distance
    from ``robot`` relative to the squared residuals divided by their noise. ``mass`` (kg) is the known total mass of
    all moving links. Standard deviations are those of the least-squares estimate without these constraints.

    ``friction`` names friction models in addition to Coulomb and viscous friction, for all coordinates or by coordinate
    name; () selects none. With "auto", they are selected for all coordinates with unknown friction by a ``criterion``:
    "cv" (cross-validation), "bic" or "aicc". Models are "offset", "asymmetric", "cubic", "power", "stribeck", "load",
    and with a ``temperature`` (N,) or (N, nv) "viscous_temperature" and "coulomb_temperature";
    ``identification/drives.py`` contains their formulas. With ``physical``, "auto" selects among the first five, which
    ``.robot`` supports. ``couplings`` are motors that drive several coordinates, {"motor6": {"joint5": 1.0, "joint6":
    1.0}}: the motor rate is the sum of these factors times the coordinate rates. The inertia and the Coulomb and
    viscous friction of each motor are also identified. The result contains these terms in ``drives``. Friction models
    of ``robot`` are identified again for joints with unknown friction.

    With a ``bandwidth`` (Hz), forces and regressor are low-pass filtered and decimated in the same way. ``robust``,
    "huber" or "bisquare", bounds the influence of outliers. ``noise`` is "white", "correlated" (in time) or "auto",
    which tests the residuals for correlation. This setting affects only the standard deviations, not the values.
    ``instruments`` are q, v, a of the same samples without measurement noise, such as the controller reference. They
    remove the bias caused by noise in the motion (instrumental variables, IDIM-IV). With "simulation", they are the
    simulated motion of the last estimate as it tracks the measured positions, iterated until convergence (which
    requires equally spaced times). ``held_out`` is the fraction of samples at the end that is not used for the
    estimate; ``.held_out`` contains their residuals.

    Example:
        >>> robot = torsor.library.two_link()
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
        >>> found = identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a)))
        >>> bool(np.allclose(found.values, robot.inertial.base().values))
        True
    """
    robot = measured_robot(robot, data, "identify")
    where = robot.name
    physical = flag(physical, where, "physical")
    regularisation = positive(regularisation, where, "regularisation")
    still = number(still, where, "still", least=0.0, below=1.0)
    mass = None if mass is None else positive(mass, where, "mass")
    bandwidth = None if bandwidth is None else positive(bandwidth, where, "bandwidth")
    held_out = number(held_out, where, "held_out", least=0.0, below=1.0)
    robust = None if robust is None else one_of(robust, tuple(INFLUENCES), where, "robust")
    method = Method(robust, one_of(noise, NOISE_KINDS, where, "noise"))
    couplings, names = table({} if couplings is None else couplings, where, "couplings"), robot.coordinate_names
    drives = directions_of(names, couplings, where)
    laws, chosen = asked_of(friction, tuple(drives), robot.nv, where, [names[k] for k in free_coordinates(robot)])
    samples = measurements_of(robot, data)
    temperature = samples.temperature if temperature is None else temperature
    if temperature is None and any(law in TEMPERATURE_LAWS for term_values in laws.values() for law in term_values):
        raise ModelError("depends on temperature", argument="friction", where=where, fix="pass `temperature`")
    one_of(criterion, CRITERIA, where, "criterion")
    settings = {"physical": physical, "among": list(several(among)), "regularisation": regularisation, "still": still}
    settings |= {"mass": mass, "bandwidth": bandwidth, "robust": robust, "noise": noise, "held_out": held_out}
    settings |= {"friction": plain(friction), "couplings": plain(couplings), "criterion": criterion}
    settings |= {"instruments": instruments if isinstance(instruments, str) else instruments is not None}
    robot = _with_unknown_friction(robot.to(dtype="float64"), among, data)
    base = robot.inertial.base(among=among, measured=samples.measured(robot))
    if not len(base):
        raise ModelError("no motion excites any of the unknown parameters", where=where)
    warmth, mean = warmth_of(temperature, samples.tau.shape, None, where)
    used, unseen = _split(samples, held_out)
    model = Model(robot, base, used.q, used.v, used.a, warmth[: len(used)], used.external)
    through = Filter.of(used, bandwidth, where)
    equations = equations_of(model, used, through, still)
    offered = [law for law in OFFERED if temperature is not None or law not in TEMPERATURE_LAWS]
    if friction == AUTO:
        unknown = {name for name, is_unknown in zip(robot.inertial.names, base.unknown, strict=True) if is_unknown}
        rubs = {name for name in names if {f"{name}{suffix}" for suffix in FRICTION_SUFFIXES} & unknown}
        rubs &= {name for name, seen in zip(names, np.any(equations.weights > 0, axis=0).tolist(), strict=True) if seen}
        if physical:
            offered, rubs = [law for law in offered if law in ROBOT_MODELS], rubs & rubbing_joints(robot)
        motors = () if physical else tuple(couplings)
        chosen = tuple(drive for drive in chosen if drive in rubs or drive in motors)
    request = Wanted(drives, tuple(couplings), laws, chosen, criterion, tuple(offered))
    if isinstance(instruments, str):
        one_of(instruments, (SIMULATION,), where, "instruments")
        (complete, terms, changes), found = simulated(model, used, through, equations, request, method)
    else:
        reference = None if instruments is None else _reference(model, instruments, len(samples))
        if reference is not None:
            equations = replace(equations, Z=through(reference.Y))
        complete, terms, changes = extended(model, reference, equations, through, request, method)
        found = estimate(complete, method)
    values, parameters, term_values = found.values[: len(base)], None, found.values[len(base) :]
    if physical:
        prior = Prior(robot.inertial.values, base.columns, base.unknown, len(whole(robot).links))
        b, size = len(base), np.sqrt(np.mean(equations.tau**2, axis=0))
        fit = float(np.min(found.noise / np.maximum(found.noise, MIN_NOISE_RATIO * size)))
        root = root_of(found.covariance[:b, :b]) if len(found.values) > b else found.root  # other unknowns are free
        near = Estimate(base.matrix, values, fit * root)
        try:
            parameters = nearest_physical(near, prior, regularisation, where, mass)
        except UnphysicalError:
            raise explained(robot, used, mass, lambda: nearest_physical(near, prior, regularisation, where)) from None
        values = base.matrix @ parameters
        # The other unknowns are refitted for these values.
        gain = np.linalg.solve(found.covariance[:b, :b], found.covariance[:b, b:]).T
        term_values = found.values[b:] + gain @ (values - found.values[:b])
        used_forces = equations.weights > 0
        solutions = found.values, np.append(values, term_values)
        free, bound = ((equations.tau - complete.Y @ x) * used_forces for x in solutions)
        check_distance(robot, equations.tau * used_forces, free, bound, mass)
    shown = replace(through.measurements(replace(used, weights=None)), weights=equations.weights)
    predicted = through(model.known) + complete.Y @ np.concatenate([values, term_values])
    b = len(base)
    fitted = values, found.covariance[:b, :b], found.condition
    forces = Drives(terms, term_values, found.covariance[b:, b:], changes, criterion, mean) if terms else None
    made = Identified(robot, base, *fitted, shown, predicted, parameters, settings, forces, found.lag).checked()
    if unseen is None:
        return made
    predicted = made.validate(unseen, temperature=None if temperature is None else warmth[len(used) :] + mean)
    return replace(made, held_out=predicted.relative_residuals, unseen=predicted)


def _with_unknown_friction(robot: MeasuredRobot, among: Sequence[str], data: Any) -> MeasuredRobot:
    """Return the robot without friction models of joints whose friction is unknown."""
    patterns = several(among)
    unknown = [
        joint.name
        for joint in whole(robot).joints
        if joint.friction_model
        and any(fnmatchcase(f"{joint.name}{suffix}", each) for each in patterns for suffix in FRICTION_SUFFIXES)
    ]
    return measured_robot(with_friction_models(robot, dict.fromkeys(unknown, "")), data) if unknown else robot


def _split(samples: Measurements, held_out: float) -> tuple[Measurements, Measurements | None]:
    """Return the samples for the estimate and the held-out samples, if any."""
    count = round((1 - held_out) * len(samples))
    if held_out == 0:
        return samples, None
    if not 0 < count < len(samples):
        message = f"is {held_out:g} of {len(samples)} samples: {len(samples) - count} of them"
        allowed, fix = "at least one sample, but not all", "change held_out"
        raise ModelError(message, argument="held_out", where="measurements", allowed=allowed, fix=fix)
    return samples.part(slice(0, count)), samples.part(slice(count, len(samples)))


def _reference(model: Model, instruments: Sequence[ArrayLike], count: int) -> Model:
    """Return the model along the instruments' motion, which must have ``count`` samples."""
    if not isinstance(instruments, (tuple, list)) or len(instruments) != 3:
        allowed = f"(q, v, a) of the samples without measurement noise, or {SIMULATION!r}"
        message = "are not a motion of the samples"
        raise ModelError(message, argument="instruments", where=model.robot.name, allowed=allowed)
    zeros = np.zeros((count, model.robot.nv))
    q, v, a = instruments
    motion = measurements_of(model.robot, (q, v, a, zeros))
    used = slice(0, len(model.v))
    return replace(model, q=motion.q[used], v=motion.v[used], a=motion.a[used])

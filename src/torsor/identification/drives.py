"""Identified drive forces: terms beyond the robot parameters, their values, and their selection."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import frozen_array, number, several
from torsor.base.documents import plain
from torsor.base.errors import ModelError, listing
from torsor.base.files import check_array
from torsor.identification.closed_robot import MeasuredRobot

# Drive forces beyond the robot parameters: other friction models, offsets, and motors that drive several joints.
#
# A term acts along a direction c (nv,), which is one coordinate or the combination that turns a motor. With the rate s
# = c . v along this direction, it adds the force c x phi(s) to tau, with the unknown x and the model phi in ``LAWS``.
# See Armstrong-Helouvry, Dupont and Canudas de Wit 1994 (Stribeck); Hamon, Gautier and Garrec 2010 (load, proportional
# to the force f transmitted by gears); Bittencourt and Gunnarsson 2012 (temperature T).

COUPLING_LAWS = ("inertia", "coulomb", "viscous")  # terms of each motor that drives several joints
AUTO = "auto"


@dataclass(frozen=True, eq=False)
class Motion:
    """Quantities on which terms depend: ``v``, ``a``, ``load`` (forces without friction) and ``warmth``.

    The warmth is the temperature minus its mean. Arrays are (N, nv) for all coordinates, or (N,) along one direction.
    """

    v: Array
    a: Array
    load: Array
    warmth: Array

    def column(self, term: "Term") -> Array:
        """Return the column phi (N,) of a term along its direction."""
        c = np.array(term.direction)
        along = Motion(self.v @ c, self.a @ c, self.load @ c, self.warmth[..., int(np.argmax(np.abs(c)))])
        return np.asarray(LAWS[term.law].column(along, term.shape))

    def columns(self, terms: "Sequence[Term]") -> Array:
        """Return the columns phi (N, k) of all terms."""
        columns = [self.column(term) for term in terms]
        return np.stack(columns, axis=-1) if columns else np.empty((*self.v.shape[:-1], 0))


class Law(NamedTuple):
    """A friction model: ``formula`` for reports, ``column`` (N,) for a motion and a shape, and trial ``shapes``.

    If ``relative`` is True, ``shapes`` are fractions of the maximum speed.
    """

    formula: str
    column: Callable[[Motion, float], Array]
    shapes: tuple[float, ...] = ()
    relative: bool = False


STRIBECK_SHAPES = tuple(np.geomspace(0.01, 0.4, 9).round(4).tolist())
POWER_SHAPES = (0.1, 0.2, 0.35, 0.5, 0.7, 1.4, 1.7, 2.0, 2.5)
LAWS: dict[str, Law] = {
    "inertia": Law("x · acceleration", lambda x, _: x.a),  # of a motor that drives several joints
    "coulomb": Law("x · sign(s)", lambda x, _: np.sign(x.v)),
    "viscous": Law("x · s", lambda x, _: x.v),
    # Sensor offset, or Coulomb friction that differs between directions.
    "offset": Law("x", lambda x, _: np.ones_like(x.v)),
    # Viscous friction that differs between directions.
    "asymmetric": Law("x · |s|", lambda x, _: np.abs(x.v)),
    "cubic": Law("x · s³", lambda x, _: x.v**3),
    "power": Law("x · sign(s) |s|^n", lambda x, n: np.sign(x.v) * np.abs(x.v) ** n, POWER_SHAPES),
    "stribeck": Law(
        "x · sign(s) exp(−(s / s₀)²)", lambda x, s: np.sign(x.v) * np.exp(-((x.v / s) ** 2)), STRIBECK_SHAPES, True
    ),
    "load": Law("x · |f| sign(s)", lambda x, _: np.abs(x.load) * np.sign(x.v)),
    "viscous_temperature": Law("x · (T − T̄) s", lambda x, _: x.warmth * x.v),
    "coulomb_temperature": Law("x · (T − T̄) sign(s)", lambda x, _: x.warmth * np.sign(x.v)),
}
OFFERED = tuple(name for name in LAWS if name not in COUPLING_LAWS)
TEMPERATURE_LAWS = ("viscous_temperature", "coulomb_temperature")
# Models that a robot supports, as text in the joint velocity v, with the value x, the shape s and the largest measured
# speed u. Beyond u, polynomials are constant, because extrapolated friction might drive the joint.
ROBOT_MODELS = {
    "offset": "{x!r}",
    "asymmetric": "{x!r} * fmin(abs(v), {u!r})",
    "cubic": "{x!r} * fmax(fmin(v, {u!r}), -{u!r})**3",
    "power": "{x!r} * sign(v) * fmax(fmin(abs(v), {u!r}), {least!r})**{s!r}",
    "stribeck": "{x!r} * sign(v) * exp(-(v / {s!r})**2)",
}
MIN_SPEED_RATIO = 1e-6  # fraction of the largest speed below which |v|^n is constant; its slope is infinite at rest


@dataclass(frozen=True)
class Term:
    """One term: ``drive`` (a coordinate or a motor), friction model ``law``, direction c (nv,) and model shape."""

    drive: str
    law: str
    direction: tuple[float, ...]
    shape: float = 0.0

    @property
    def name(self) -> str:
        """Name of the parameter, such as "joint2.stribeck"."""
        return f"{self.drive}.{self.law}"

    @property
    def fits_robot(self) -> bool:
        """Whether a robot supports the term, which must be a model of one joint that depends only on its velocity."""
        return self.law in ROBOT_MODELS and np.count_nonzero(self.direction) == 1


def spread(phi: Array, terms: Sequence[Term]) -> Array:
    """Return the regressor columns c phi (N, nv, k) of terms from phi (N, k)."""
    return np.asarray(phi[..., None, :] * np.array([term.direction for term in terms]).T)


def tried(term: Term, motion: Motion) -> list[Term]:
    """Return the term with each trial shape of its model, or the term itself if the model has no shape."""
    law = LAWS[term.law]
    top = float(np.abs(motion.v @ np.array(term.direction)).max(initial=0.0)) if law.relative else 1.0
    shapes = [shape * (top or 1.0) for shape in law.shapes] or [0.0]
    return [Term(term.drive, term.law, term.direction, shape) for shape in shapes]


def directions_of(names: Sequence[str], couplings: Mapping[str, Mapping[str, float]], where: str) -> dict[str, Array]:
    """Return the direction (nv,) of each drive: the named coordinates and the motors of couplings."""
    directions = dict(zip(names, np.eye(len(names)), strict=True))
    for motor, parts in couplings.items():
        if motor in directions or not isinstance(parts, Mapping) or len(parts) < 2:
            allowed = "a new name, and the factors of two coordinates or more: {'motor6': {'joint5': 1, 'joint6': 1}}"
            raise ModelError(f"has {motor!r}: {parts!r}", argument="couplings", where=where, allowed=allowed)
        c = np.zeros(len(names))
        for name, factor in parts.items():
            if name not in names:
                message = f"couplings: {motor!r} turns with {name!r}"
                raise ModelError(message, where=where, allowed=listing(names, like=str(name)))
            c[list(names).index(name)] = number(factor, where, f"couplings: {motor}: {name}")
        directions[motor] = c
    return directions


def asked_of(
    friction: str | Sequence[str] | Mapping[str, Any],
    drives: Sequence[str],
    joints: int,
    where: str,
    undriven: Sequence[str] = (),
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the friction models requested by ``friction`` for each drive, and the drives with automatic selection.

    The first ``joints`` drives are coordinates, and the others are motors that drive several joints. Floating-base
    coordinates are ``undriven`` and have no models unless they are named.
    """
    if not isinstance(friction, Mapping):
        # A motor offset is equivalent to a joint offset, so models are assigned to joints unless they are selected
        # automatically.
        targets = drives if friction == AUTO else drives[:joints]
        friction = dict.fromkeys((target for target in targets if target not in undriven), friction)
    laws: dict[str, tuple[str, ...]] = {}
    for drive, requested in friction.items():
        if drive not in drives:
            allowed = listing(drives, like=str(drive))
            message = f"names {drive!r}, which is not a drive"
            raise ModelError(message, argument="friction", value=drive, where=where, allowed=allowed)
        models = several(requested)
        for law in models if models != (AUTO,) else ():
            if law not in OFFERED:
                allowed = f"{AUTO!r} alone, or models of {', '.join(OFFERED)}"
                fix = "remove it: Coulomb and viscous friction are robot parameters and are always included"
                raise ModelError(f"of {drive!r} is {law!r}", argument="friction", where=where, allowed=allowed, fix=fix)
        laws[drive] = models
    chosen = tuple(drive for drive, models in laws.items() if models == (AUTO,))
    return {drive: models for drive, models in laws.items() if drive not in chosen and models}, chosen


def warmth_of(temperature: Any, shape: tuple[int, ...], mean: float | None, where: str) -> tuple[Array, float]:
    """Return temperatures (N,) or (N, nv) minus their mean, for all coordinates (N, nv), and the mean.

    ``mean`` replaces the computed mean. Without temperatures, the result is zero.
    """
    if temperature is None:
        return np.zeros(shape), 0.0
    each = np.shape(temperature) == shape
    temperatures = frozen_array(temperature, shape if each else shape[:-1], where, "temperature")
    whole = np.broadcast_to(temperatures if each else temperatures[..., None], shape)
    middle = float(whole.mean()) if mean is None else mean
    return whole - middle, middle


FRICTION_SUFFIXES = (".coulomb", ".viscous")


@dataclass(frozen=True, eq=False)
class Drives:
    """Drive forces beyond the robot parameters: ``terms``, their ``values`` (k,) and ``covariance`` (k, k).

    ``changes[drive][model]`` is the increase in the ``criterion`` if a selected friction model is removed or a rejected
    one is added. ``mean`` is the mean temperature of the measurements.

    Example:
        >>> robot = torsor.library.planar_chain(1)
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 200, 1))
        >>> tau = robot.inverse_dynamics(q, v, a) + 0.3
        >>> found = torsor.identify(robot, (q, v, a, tau), friction=["offset"])
        >>> found.drives.names, found.drives.values.round(9).tolist()
        (('joint1.offset',), [0.3])
    """

    terms: tuple[Term, ...]
    values: Array
    covariance: Array
    changes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    criterion: str = "bic"
    mean: float = 0.0

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the terms (k), such as "joint2.stribeck"."""
        return tuple(term.name for term in self.terms)

    @property
    def deviations(self) -> Array:
        """Standard deviations (k,) of the values."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def others(self) -> list[tuple[str, str, float]]:
        """Rejected friction models: drive, model, and the increase in the criterion if the model is added."""
        tried = [(drive, law, rise) for drive, laws in self.changes.items() for law, rise in laws.items()]
        return [each for each in tried if each[1] not in self.chosen(each[0])]

    def left_out(self, joints: Collection[str]) -> str:
        """Return a sentence that names the terms a robot does not support, or "".

        ``joints`` are those that support friction models.

        Example:
            >>> Drives((Term("motor2", "inertia", (1.0, 2.0)),), np.ones(1), np.eye(1)).left_out(["joint1", "joint2"])
            'a robot cannot have the terms motor2.inertia'
        """
        names = [term.name for term in self.terms if not term.fits_robot or term.drive not in joints]
        return f"a robot cannot have the terms {', '.join(names)}" if names else ""

    def robot_models(self, speeds: Mapping[str, float]) -> dict[str, str]:
        """Return the friction of each joint as text in its velocity v; ``speeds`` are the largest measured speeds.

        Example:
            >>> Drives((Term("joint1", "offset", (1.0,)),), np.ones(1), np.eye(1)).robot_models({"joint1": 2.0})
            {'joint1': '1.0'}
        """
        texts: dict[str, list[str]] = {}
        for term, value in zip(self.terms, self.values.tolist(), strict=True):
            if term.fits_robot and term.drive in speeds:
                top = speeds[term.drive]
                numbers = {"x": value, "s": term.shape, "u": top, "least": MIN_SPEED_RATIO * top}
                texts.setdefault(term.drive, []).append(ROBOT_MODELS[term.law].format(**numbers))
        return {drive: " + ".join(parts) for drive, parts in texts.items()}

    def chosen(self, drive: str) -> tuple[str, ...]:
        """Return the friction models of a drive.

        Example:
            >>> Drives((Term("joint1", "offset", (1.0,)),), np.ones(1), np.eye(1)).chosen("joint1")
            ('offset',)
        """
        return tuple(term.law for term in self.terms if term.drive == drive)

    def content(self) -> dict[str, Any]:
        """Return all fields as plain values for ``from_content``."""
        return {
            "terms": [plain(vars(term)) for term in self.terms],
            "values": plain(self.values),
            "covariance": plain(self.covariance),
            "changes": plain(self.changes),
            "criterion": self.criterion,
            "mean_temperature": self.mean,
        }

    @classmethod
    def from_content(cls, found: Mapping[str, Any]) -> "Drives":
        """Return drives from plain values; raise KeyError, TypeError or ValueError if they are invalid.

        Example:
            >>> made = Drives((Term("joint1", "offset", (1.0,)),), np.ones(1), np.eye(1))
            >>> Drives.from_content(made.content()).names
            ('joint1.offset',)
        """
        terms = tuple(
            Term(str(t["drive"]), str(t["law"]), tuple(map(float, t["direction"])), float(t["shape"]))
            for t in found["terms"]
        )
        if any(term.law not in LAWS for term in terms):
            raise ValueError("unknown friction models")
        values, covariance = (np.array(found[key], dtype=float) for key in ("values", "covariance"))
        check_array(values, (len(terms),), "drives: values", "f")
        check_array(covariance, (len(terms),) * 2, "drives: covariance", "f")
        mean = float(found["mean_temperature"])
        return cls(terms, values, covariance, found["changes"], str(found["criterion"]), mean)

    def forces(self, v: Array, a: Array, load: Array, temperature: Any, where: str) -> Array:
        """Return the forces (N, nv) of all terms; ``load`` (N, nv) are the forces without friction."""
        if temperature is None and any(term.law in TEMPERATURE_LAWS for term in self.terms):
            message = "the friction of this estimate depends on the temperature"
            raise ModelError(message, where=where, fix="pass `temperature`")
        warmth, _ = warmth_of(temperature, v.shape, self.mean, where)
        return np.asarray(spread(Motion(v, a, load, warmth).columns(self.terms), self.terms) @ self.values)


def frictional(robot: MeasuredRobot) -> Flags:
    """Return a mask (p,) of the friction parameters of a robot."""
    return np.array([name.endswith(FRICTION_SUFFIXES) for name in robot.inertial.names], dtype=bool)

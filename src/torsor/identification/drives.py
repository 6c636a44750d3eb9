"""The identified forces of drives: terms beyond the parameters of a robot, their values, and how they were chosen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import frozen_array, number, several
from torsor.base.documents import plain
from torsor.base.errors import ModelError, listing
from torsor.base.files import check_array
from torsor.robot.protocols import Dynamics

# Forces of drives beyond the parameters of a robot: friction of other laws, offsets, and motors of several joints.
#
# A term acts along a direction c (nv,): one coordinate, or the combination with which a motor turns. With the rate
# s = c . v of this direction it adds the force c x phi(s) to tau, where x is the unknown and phi the law, see ``LAWS``.
# Armstrong-Helouvry, Dupont and Canudas de Wit 1994 (Stribeck); Hamon, Gautier and Garrec 2010 (load, proportional to
# the force f that gears transmit); Bittencourt and Gunnarsson 2012 (temperature T).

COUPLING = ("inertia", "coulomb", "viscous")  # of each motor that turns with several joints
AUTO = "auto"


@dataclass(frozen=True, eq=False)
class Motion:
    """What terms depend on: ``v``, ``a``, the ``load`` (forces without friction), and the ``warmth``.

    The warmth is the temperature less its mean. All are those of all coordinates (N, nv), or along one direction (N,).
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
        """Return the laws phi (N, k) of all terms."""
        found = [self.column(term) for term in terms]
        return np.stack(found, axis=-1) if found else np.empty((*self.v.shape[:-1], 0))


class Law(NamedTuple):
    """A law: its ``formula`` for reports, its ``column`` (N,) for a motion and a shape, and ``shapes`` to be tried.

    If ``relative``, the shapes are fractions of the top speed.
    """

    formula: str
    column: Callable[[Motion, float], Array]
    shapes: tuple[float, ...] = ()
    relative: bool = False


STRIBECK = tuple(np.geomspace(0.01, 0.4, 9).round(4).tolist())
POWERS = (0.1, 0.2, 0.35, 0.5, 0.7, 1.4, 1.7, 2.0, 2.5)
LAWS: dict[str, Law] = {
    "inertia": Law("x · acceleration", lambda x, _: x.a),  # of a motor that turns with several joints
    "coulomb": Law("x · sign(s)", lambda x, _: np.sign(x.v)),
    "viscous": Law("x · s", lambda x, _: x.v),
    # An offset is that of a sensor, or Coulomb friction that differs between directions.
    "offset": Law("x", lambda x, _: np.ones_like(x.v)),
    # Viscous friction that differs between directions.
    "asymmetric": Law("x · |s|", lambda x, _: np.abs(x.v)),
    "cubic": Law("x · s³", lambda x, _: x.v**3),
    "power": Law("x · sign(s) |s|^n", lambda x, n: np.sign(x.v) * np.abs(x.v) ** n, POWERS),
    "stribeck": Law(
        "x · sign(s) exp(−(s / s₀)²)", lambda x, s: np.sign(x.v) * np.exp(-((x.v / s) ** 2)), STRIBECK, True
    ),
    "load": Law("x · |f| sign(s)", lambda x, _: np.abs(x.load) * np.sign(x.v)),
    "viscous_temperature": Law("x · (T − T̄) s", lambda x, _: x.warmth * x.v),
    "coulomb_temperature": Law("x · (T − T̄) sign(s)", lambda x, _: x.warmth * np.sign(x.v)),
}
OFFERED = tuple(name for name in LAWS if name not in COUPLING)
WARM = ("viscous_temperature", "coulomb_temperature")


@dataclass(frozen=True)
class Term:
    """One term: the ``drive`` (a coordinate or a motor), its ``law``, its direction c (nv,), and the law's shape."""

    drive: str
    law: str
    direction: tuple[float, ...]
    shape: float = 0.0

    @property
    def name(self) -> str:
        """The name of its parameter, such as "joint2.stribeck"."""
        return f"{self.drive}.{self.law}"


def spread(phi: Array, terms: Sequence[Term]) -> Array:
    """Return the columns (N, nv, k) of the regressor of terms with the laws phi (N, k): c phi."""
    return np.asarray(phi[..., None, :] * np.array([term.direction for term in terms]).T)


def tried(term: Term, motion: Motion) -> list[Term]:
    """Return a term with each shape that its law may have; the term itself where the law has none."""
    law = LAWS[term.law]
    top = float(np.abs(motion.v @ np.array(term.direction)).max(initial=0.0)) if law.relative else 1.0
    shapes = [shape * (top or 1.0) for shape in law.shapes] or [0.0]
    return [Term(term.drive, term.law, term.direction, shape) for shape in shapes]


def directions_of(names: Sequence[str], couplings: Mapping[str, Mapping[str, float]], where: str) -> dict[str, Array]:
    """Return the direction (nv,) of each drive: of the coordinates with these names, and of the motors of couplings."""
    found = dict(zip(names, np.eye(len(names)), strict=True))
    for motor, parts in couplings.items():
        if motor in found or not isinstance(parts, Mapping) or len(parts) < 2:
            allowed = "a new name, and the factors of two coordinates or more: {'motor6': {'joint5': 1, 'joint6': 1}}"
            raise ModelError(f"has {motor!r}: {parts!r}", argument="couplings", where=where, allowed=allowed)
        c = np.zeros(len(names))
        for name, factor in parts.items():
            if name not in names:
                text = f"couplings: {motor!r} turns with {name!r}"
                raise ModelError(text, where=where, allowed=listing(names, like=str(name)))
            c[list(names).index(name)] = number(factor, where, f"couplings: {motor}: {name}")
        found[motor] = c
    return found


def asked_of(
    friction: str | Sequence[str] | Mapping[str, Any],
    drives: Sequence[str],
    joints: int,
    where: str,
    undriven: Sequence[str] = (),
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the laws that ``friction`` names for each drive, and the drives whose laws are to be chosen.

    The first ``joints`` of the drives are coordinates, the others motors of several of them. Coordinates of a free base
    are ``undriven``: they get no laws, unless they are named.
    """
    if not isinstance(friction, Mapping):
        # An offset of a motor, say, is one of its joints too: laws are for these, unless they are to be chosen.
        own = drives if friction == AUTO else drives[:joints]
        friction = dict.fromkeys((each for each in own if each not in undriven), friction)
    laws: dict[str, tuple[str, ...]] = {}
    for drive, given in friction.items():
        if drive not in drives:
            allowed = listing(drives, like=str(drive))
            raise ModelError(f"of {drive!r}", argument="friction", value=drive, where=where, allowed=allowed)
        wanted = several(given)
        for law in wanted if wanted != (AUTO,) else ():
            if law not in OFFERED:
                allowed = f"{AUTO!r} alone, or laws of {', '.join(OFFERED)}"
                fix = "Coulomb and viscous friction are parameters of the robot: they need no law"
                raise ModelError(f"of {drive!r} is {law!r}", argument="friction", where=where, allowed=allowed, fix=fix)
        laws[drive] = wanted
    chosen = tuple(drive for drive, wanted in laws.items() if wanted == (AUTO,))
    return {drive: wanted for drive, wanted in laws.items() if drive not in chosen and wanted}, chosen


def warmth_of(temperature: Any, shape: tuple[int, ...], mean: float | None, where: str) -> tuple[Array, float]:
    """Return temperatures (N,) or (N, nv) less their mean, for all coordinates (N, nv), and the mean.

    A ``mean`` that is given is used instead. Without temperatures they are zero.
    """
    if temperature is None:
        return np.zeros(shape), 0.0
    each = np.shape(temperature) == shape
    given = frozen_array(temperature, shape if each else shape[:-1], where, "temperature")
    whole = np.broadcast_to(given if each else given[..., None], shape)
    middle = float(whole.mean()) if mean is None else mean
    return whole - middle, middle


FRICTION = (".coulomb", ".viscous")


@dataclass(frozen=True, eq=False)
class Drives:
    """Forces beyond the parameters of a robot: ``terms``, their ``values`` (k,) and ``covariance`` (k, k).

    ``changes[drive][law]`` says by how much the ``criterion`` would rise without a chosen law, or with one that was not
    chosen; ``mean`` is the mean temperature of the measurements.

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
        """Laws that were tried and not chosen: drive, law, and the rise of the criterion if the law is added."""
        tried = [(drive, law, rise) for drive, laws in self.changes.items() for law, rise in laws.items()]
        return [each for each in tried if each[1] not in self.chosen(each[0])]

    @property
    def left_out(self) -> str:
        """What a robot with the identified parameters does not have, as a sentence.

        Example:
            >>> Drives((Term("joint1", "offset", (1.0,)),), np.ones(1), np.eye(1)).left_out
            'Chosen laws are not in the robot, whose friction is Coulomb and viscous only: joint1.offset'
        """
        text = "Chosen laws are not in the robot, whose friction is Coulomb and viscous only"
        return f"{text}: {', '.join(self.names)}"

    def chosen(self, drive: str) -> tuple[str, ...]:
        """Return the laws of a drive.

        Example:
            >>> Drives((Term("joint1", "offset", (1.0,)),), np.ones(1), np.eye(1)).chosen("joint1")
            ('offset',)
        """
        return tuple(term.law for term in self.terms if term.drive == drive)

    def content(self) -> dict[str, Any]:
        """Return all of it as plain values, from which ``from_content`` makes it again."""
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
        """Return drives from plain values; raise KeyError, TypeError or ValueError where they are none.

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
        if temperature is None and any(term.law in WARM for term in self.terms):
            found = "the friction of this estimate depends on the temperature"
            raise ModelError(found, where=where, fix="give temperature=")
        warmth, _ = warmth_of(temperature, v.shape, self.mean, where)
        return np.asarray(spread(Motion(v, a, load, warmth).columns(self.terms), self.terms) @ self.values)


def frictional(robot: Dynamics) -> Flags:
    """Return which parameters (p,) of a robot are friction."""
    return np.array([name.endswith(FRICTION) for name in robot.inertial.names], dtype=bool)

"""The identified forces of drives: terms beyond the parameters of a robot, their values, and how they were chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.documents import plain
from torsor.base.errors import ModelError, describe
from torsor.base.files import check_array
from torsor.identification.terms import LAWS, WARM, Motion, Term, spread, warmth_of
from torsor.robot.robot import Robot

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
    def needs_temperature(self) -> bool:
        """Whether a term depends on the temperature."""
        return any(term.law in WARM for term in self.terms)

    @property
    def left_out(self) -> str:
        """What a robot with the identified parameters does not have, as a sentence.

        Example:
            >>> Drives((Term("joint1", "offset", (1.0,)),), np.ones(1), np.eye(1)).left_out
            'Chosen laws are not in the robot, whose friction is Coulomb and viscous only: joint1.offset'
        """
        names = ", ".join(self.names)
        return f"Chosen laws are not in the robot, whose friction is Coulomb and viscous only: {names}"

    def chosen(self, drive: str) -> tuple[str, ...]:
        """Return the laws of a drive.

        Example:
            >>> Drives((Term("joint1", "offset", (1.0,)),), np.ones(1), np.eye(1)).chosen("joint1")
            ('offset',)
        """
        return tuple(term.law for term in self.terms if term.drive == drive)

    def content(self) -> dict[str, Any]:
        """Return all of it as plain values, from which ``from_content`` makes it again."""
        keys = ("drive", "law", "direction", "shape")
        return {
            "terms": [plain({key: getattr(term, key) for key in keys}) for term in self.terms],
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
        rows = [(str(t["drive"]), str(t["law"]), tuple(map(float, t["direction"])), t["shape"]) for t in found["terms"]]
        terms = tuple(Term(drive, law, direction, float(shape)) for drive, law, direction, shape in rows)
        if any(term.law not in LAWS for term in terms):
            raise ValueError("unknown laws of friction")
        values, covariance = (np.array(found[key], dtype=float) for key in ("values", "covariance"))
        check_array(values, (len(terms),), "drives: values", "f")
        check_array(covariance, (len(terms),) * 2, "drives: covariance", "f")
        return cls(
            terms, values, covariance, found["changes"], str(found["criterion"]), float(found["mean_temperature"])
        )

    def forces(self, v: Array, a: Array, load: Array, temperature: Any, where: str) -> Array:
        """Return the forces (N, nv) of all terms; ``load`` (N, nv) are the forces without friction."""
        if self.needs_temperature and temperature is None:
            found = "the friction of this estimate depends on the temperature"
            raise ModelError(describe(found, where=where, fix="give temperature="))
        warmth, _ = warmth_of(temperature, v.shape, self.mean, where)
        return np.asarray(spread(Motion(v, a, load, warmth).columns(self.terms), self.terms) @ self.values)


def frictional(robot: Robot) -> Flags:
    """Return which parameters (p,) of a robot are friction.

    Example:
        >>> int(frictional(torsor.library.two_link()).sum())
        4
    """
    return np.array([name.endswith(FRICTION) for name in robot.parameter_names], dtype=bool)

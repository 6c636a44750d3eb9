"""The parameters of a robot in which its forces are linear, and those of them that a motion can show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.dynamics import Tree, parameter_names, parameters, regroupings, units
from torsor.errors import ModelError, describe
from torsor.mechanism.values import frozen_array
from torsor.robot.sensitivities import Sensitivities
from torsor.spatial import from_pseudo_inertia

__all__ = ["BaseParameters", "Parametrised"]

Array = NDArray[np.float64]

# A column that the others give to this share of its length is one of them; rounding is far below, geometry far above.
DEPENDENT = 1e-9


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The parameters that forces depend on: each one of the robot's own, with others that always come with it.

    ``names`` say what each is made of, ``columns`` (b,) where it has its column in the regressor, ``matrix`` (b, p)
    makes their ``values`` (b,) from all parameters: tau = Y[:, columns] @ values. ``unknown`` (p,) says which of them
    are unknown: all, unless some are known. ``by_rule`` says that Khalil's rules alone give them; otherwise numbers
    showed that some parameters more cannot be told apart.
    """

    names: tuple[str, ...]
    columns: NDArray[np.intp]
    matrix: Array
    values: Array
    unknown: NDArray[np.bool_]
    by_rule: bool

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<BaseParameters: {len(self)} of {self.matrix.shape[1]} parameters>"


class Parametrised(Sensitivities):
    """A robot with its parameters, and the matrix of the motion that they are multiplied with."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters: "link2.mx" and so on, then "joint3.rotor_inertia", "...coulomb", "...viscous"."""
        return parameter_names(self)

    def parameters(self) -> Array:
        """Return the parameters (p,): m, m c, J (xx, xy, xz, yy, yz, zz) of each link about its origin, then drives.

        Behind those of the links come rotor inertia, Coulomb and viscous friction of each velocity of each joint.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> dict(zip(robot.parameter_names, robot.parameters().round(9).tolist()))["link1.Jzz"]
            4.0
        """
        return parameters(self)

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Return Y(q, v, a) (..., nv, p) with inverse_dynamics(q, v, a) = Y @ parameters().

        What springs and motors take comes on top: they are not among the parameters.

        Example:
            >>> import torsor
            >>> robot = torsor.library.stanford()
            >>> q, v, a = np.ones(6), np.ones(6), np.ones(6)
            >>> bool(np.allclose(robot.regressor(q, v, a) @ robot.parameters(), robot.inverse_dynamics(q, v, a)))
            True
        """
        return self._call("regressor", q, v, a)

    def energy_regressor(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return h(q, v) (..., p), in J: kinetic energy and energy in gravity = h @ parameters().

        Columns of friction are zero; the energy of springs and of motors' spin comes on top, since they are not among
        the parameters. Zero of the potential as in ``potential_energy``. Gautier and Khalil 1988.

        Example:
            >>> import torsor
            >>> robot = torsor.library.stanford()
            >>> energy = robot.kinetic_energy(np.ones(6), np.ones(6)) + robot.potential_energy(np.ones(6))
            >>> bool(np.allclose(robot.energy_regressor(np.ones(6), np.ones(6)) @ robot.parameters(), energy))
            True
        """
        return self._call("energy_regressor", q, v)

    def power_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Return y(q, v, a) (..., p), in W: v . inverse_dynamics(q, v, a) = y @ parameters().

        It is the rate of ``energy_regressor`` along the motion, and what friction takes. Springs and motors as in
        ``regressor``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.stanford()
            >>> q, v, a = np.ones(6), np.ones(6), np.ones(6)
            >>> bool(np.allclose(robot.power_regressor(q, v, a), v @ robot.regressor(q, v, a)))
            True
        """
        return self._call("power_regressor", q, v, a)

    def with_parameters(self, parameters: ArrayLike) -> Self:
        """Return the robot with other parameters (p,), in the order of ``parameter_names`` and in their units.

        Mass, centre of mass and inertia of each link follow from m, m c and J about its origin. Springs and motors
        stay. Numbers that no body can have are refused, unless the link already had such (``Link.strict``).

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link()
            >>> heavy = robot.with_parameters(2 * robot.parameters())
            >>> heavy.links[1].mass, heavy.links[1].com.round(9).tolist()
            (1.0, [-0.2, 0.0, 0.0])
        """
        pi = frozen_array(parameters, (len(self.parameter_names),), self.name, "parameters")
        links, basis = [], np.array(units())
        for link, ten in zip(self.links, pi[: 10 * len(self.links)].reshape(-1, 10), strict=True):
            if ten[0] < 0 or (ten[0] == 0 and ten[1:4].any()):
                found = f"m is {ten[0]:.6g} kg and m c is {ten[1:4].tolist()} kg m"
                fix = "identify(..., physical=True) finds parameters that a body can have"
                where = f"{self.name}: {link.where}"
                raise ModelError(describe(found, where=where, allowed="a mass above 0, or nothing", fix=fix))
            mass, com, inertia = from_pseudo_inertia(np.einsum("k,kij->ij", ten, basis))
            links.append(replace(link, mass=mass, com=com, inertia=(inertia + inertia.T) / 2))
        joints, rest = [], pi[10 * len(self.links) :].reshape(-1, 3)
        for joint in self.joints:
            own, rest = rest[: joint.nv], rest[joint.nv :]
            joints.append(replace(joint, rotor_inertia=own[:, 0], coulomb=own[:, 1], viscous=own[:, 2]))
        return replace(self, links=tuple(links), joints=tuple(joints))

    def base_parameters(self, seed: int = 0, among: Sequence[str] = ("*",)) -> BaseParameters:
        """Return the smallest set of parameters that gives all forces: what identification can find, and no more.

        Parameters that no motion tells apart are regrouped with those of the links before by Khalil's rules (document
        003, section 3), and checked by numbers: a QR decomposition of the regressor over many random motions finds
        which columns depend on others, by rule or not. ``among`` names the parameters that are unknown, with * for any
        letters; the others are known and are not regrouped.

        Example:
            >>> import torsor
            >>> found = torsor.library.planar_chain(2).without_friction().base_parameters()
            >>> [name for name in found.names if name.startswith("link2")], found.by_rule
            (['link2.mx', 'link2.my', 'link2.Jzz'], True)
        """
        rng, p = np.random.default_rng(seed), len(self.parameter_names)
        unknown = self._unknown(among)
        count = 4 * p // max(self.nv, 1) + 10
        q = self._call("integrate", self.neutral(), rng.normal(size=(count, self.nv)))
        v, a = rng.normal(size=(2, count, self.nv))
        Y = self.to(dtype="float64").regressor(q, v, a).reshape(count * self.nv, p) * unknown
        # Masses last: of what cannot be told apart, moments are kept, and masses go with them.
        preferred = [10 * link + k for link in range(len(self.links)) for k in (9, 7, 4, 5, 6, 8, 1, 2, 3, 0)]
        kept = _independent(Y, [*preferred, *range(len(preferred), p)])
        rules = _within(regroupings(Tree.of(self)), unknown)
        hold = np.abs(Y @ rules.T).max(initial=0.0) <= DEPENDENT * np.abs(Y).max(initial=0.0)
        by_rule = hold and np.linalg.matrix_rank(rules, tol=1e-8) == np.count_nonzero(unknown) - len(kept)
        matrix = _shares_by_rule(rules, kept, unknown) if by_rule else _shares(Y, kept)
        names = tuple(_name(row, self.parameter_names, column) for row, column in zip(matrix, kept, strict=True))
        values = matrix @ self.parameters()
        return BaseParameters(names, np.array(kept, dtype=np.intp), matrix, values, unknown, bool(by_rule))

    def _unknown(self, patterns: Sequence[str]) -> NDArray[np.bool_]:
        """Return which parameters (p,) the patterns name; refuse one that names none."""
        given: list[object] = list(patterns) if isinstance(patterns, Iterable) else [patterns]
        given = [patterns] if isinstance(patterns, str) else given
        allowed = "names of parameters, such as link1.m, or patterns, such as *.viscous"
        unknown = np.zeros(len(self.parameter_names), dtype=bool)
        for pattern in given:
            if not isinstance(pattern, str):
                raise ModelError(describe(f"among has {pattern!r}", where=self.name, allowed=allowed))
            named = np.array([fnmatchcase(name, pattern) for name in self.parameter_names], dtype=bool)
            if named.size and not named.any():
                raise ModelError(describe(f"no parameter is named {pattern!r}", where=self.name, allowed=allowed))
            unknown |= named
        return unknown


def _independent(Y: Array, order: list[int]) -> list[int]:
    """Return columns that span all others, the first in that order."""
    scale = np.linalg.norm(Y, axis=0)
    largest = scale.max(initial=0.0)
    basis: list[Array] = []
    kept: list[int] = []
    for k in order:
        if scale[k] <= DEPENDENT * largest:
            continue
        rest = Y[:, k] / scale[k]
        for _ in range(2):  # twice is enough to be orthogonal to rounding
            for b in basis:
                rest = rest - (b @ rest) * b
        length = float(np.linalg.norm(rest))
        if length > DEPENDENT:
            basis.append(rest / length)
            kept.append(k)
    return sorted(kept)


def _shares(Y: Array, kept: list[int]) -> Array:
    """Return how much of each column of Y each of those kept stands for (b x p), from the numbers."""
    shares = np.linalg.lstsq(Y[:, kept], Y, rcond=None)[0] if kept else np.zeros((0, Y.shape[1]))
    return np.where(np.abs(shares) < 1e-9 * max(1.0, np.abs(shares).max(initial=0.0)), 0.0, shares)


def _within(rules: Array, unknown: NDArray[np.bool_]) -> Array:
    """Return those combinations of changes (r x p) that leave alone what is known."""
    if not len(rules) or unknown.all():
        return rules
    U, sizes, _ = np.linalg.svd(rules[:, ~unknown])
    free = U[:, np.count_nonzero(sizes > 1e-9 * sizes.max(initial=0.0)) :]
    return np.asarray(np.where(unknown, free.T @ rules, 0.0))


def _shares_by_rule(rules: Array, kept: list[int], unknown: NDArray[np.bool_]) -> Array:
    """Return how much of each column each of those kept stands for (b x p), from changes that change no force.

    Y n = 0 for each change n, so that the columns D that are not kept are Y_D = Y_K B with n_D B^T = -n_K.
    """
    shares = np.zeros((len(kept), len(unknown)))
    shares[np.arange(len(kept)), kept] = 1.0
    others = sorted({int(k) for k in np.flatnonzero(unknown)} - set(kept))
    if others:
        B = np.linalg.lstsq(rules[:, others], -rules[:, kept], rcond=None)[0].T
        shares[:, others] = np.where(np.abs(B) < 1e-12 * max(1.0, np.abs(B).max(initial=0.0)), 0.0, B)
    return shares


def _name(row: Array, names: tuple[str, ...], column: int) -> str:
    """Return what a base parameter is made of: its own name first."""
    parts = [names[column]]
    for k in np.flatnonzero(row):
        if k != column:
            share = row[k]
            size = "" if abs(abs(share) - 1) < 1e-9 else f"{abs(share):.6g} "
            parts.append(f"{'+' if share > 0 else '-'} {size}{names[k]}")
    return " ".join(parts)

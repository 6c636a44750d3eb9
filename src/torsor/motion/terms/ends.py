"""Conditions at the ends of phases: given states, continuity, periodicity and symmetry."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from torsor.errors import ModelError, describe
from torsor.motion.transcription.linear_rows import Equation, Part
from torsor.motion.transcription.motion_model import Profiles
from torsor.motion.transcription.splines import whole_number

__all__ = ["End", "Ends", "Linked", "Periodic", "Start", "Symmetric", "of_profiles", "whole_path"]

ORDER_NAMES = ("q", "v", "a", "j")
Given = Any  # None, a number for all, one for each profile, or {name: number}


def _order(value: Any, where: str) -> range:
    """Return the orders of rates up to one."""
    order = whole_number(value)
    if order is None or not 0 <= order < len(ORDER_NAMES):
        raise ModelError(describe(f"order is {value!r}", where=where, allowed="0 to 3"))
    return range(order + 1)


def _moving(names: Sequence[str]) -> int:
    """Return how many profiles move the robot: of the others a condition speaks by name only."""
    return names.moving if isinstance(names, Profiles) else len(names)


def of_profiles(value: Given, names: Sequence[str], where: str) -> dict[int, float]:
    """Return {profile: number} of what is given for profiles.

    Example:
        >>> of_profiles({"joint2": 0.5}, ["joint1", "joint2"], "start")
        {1: 0.5}
        >>> of_profiles(0.0, ["joint1", "joint2"], "start")
        {0: 0.0, 1: 0.0}
    """
    if value is None:
        return {}
    if isinstance(value, Mapping):
        wrong = [name for name in value if name not in names]
        if wrong:
            raise ModelError(describe(f"no profile {wrong[0]!r}", where=where, allowed=", ".join(names)))
        found = {names.index(name): value[name] for name in value}
    else:
        array, count = np.asarray(value), _moving(names)
        if array.dtype.kind not in "biuf" or array.shape not in ((), (count,)):
            allowed = f"a number, {count} of them, or a table by the names {', '.join(names)}"
            raise ModelError(describe(f"{value!r}", where=where, allowed=allowed))
        found = dict(enumerate(np.broadcast_to(array, (count,)).tolist()))
    try:
        numbers = {index: float(each) for index, each in found.items()}
    except (TypeError, ValueError):
        raise ModelError(describe(f"{value!r}", where=where, allowed="numbers")) from None
    if not np.isfinite(list(numbers.values())).all():
        raise ModelError(describe(f"{value!r}", where=where, allowed="finite numbers"))
    return numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class Ends:
    """A condition on the ends of phases; ``name`` appears in reports."""

    name: str = ""

    @property
    def title(self) -> str:
        """The name, or what it is."""
        return self.name or type(self).__name__

    def equations(self, names: Sequence[str], phases: int) -> Iterator[Equation]:
        """Give its equations, for profiles of these names."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class _State(Ends):
    """Positions, velocities, accelerations and jerks of profiles at one end of a phase; None is free."""

    q: Given = None
    v: Given = None
    a: Given = None
    j: Given = None
    phase: int | str | None = None

    _s = 0.0

    def values(self, names: Sequence[str]) -> dict[tuple[int, int], float]:
        """Return {(profile, order): value}."""
        found = {}
        for order, kind in enumerate(ORDER_NAMES):
            for profile, value in of_profiles(getattr(self, kind), names, f"{self.title}: {kind}").items():
                found[profile, order] = value
        return found

    def index(self, phases: int) -> int:
        """Return the phase that it is about: the first for a start, the last for an end."""
        if self.phase is None:
            return 0 if self._s == 0 else phases - 1
        index = whole_number(self.phase)  # a problem puts it in place of a name
        if index is None or not 0 <= index < phases:
            found = f"phase is {self.phase!r}"
            raise ModelError(describe(found, where=self.title, allowed=f"0 to {phases - 1}, or the name of a phase"))
        return index

    def equations(self, names: Sequence[str], phases: int) -> Iterator[Equation]:
        """Give an equation for each value."""
        index = self.index(phases)
        for (profile, order), value in self.values(names).items():
            parts = (Part(index, self._s, order, profile),)
            yield Equation(self.title, f"{ORDER_NAMES[order]} of {names[profile]}", parts, value, value)


@dataclass(frozen=True, eq=False, kw_only=True)
class Start(_State):
    """Where profiles begin: ``q``, ``v``, ``a``, ``j``, each a number, one for each profile, or {name: number}.

    It is about the first phase, or the one given by its index or name. What is None is free.

    Example:
        >>> Start(q=[0.0, 1.0], v=0.0).values(["joint1", "joint2"])
        {(0, 0): 0.0, (1, 0): 1.0, (0, 1): 0.0, (1, 1): 0.0}
    """


@dataclass(frozen=True, eq=False, kw_only=True)
class End(_State):
    """Where profiles end: as ``Start``, about the last phase, or the one given.

    Example:
        >>> End(q={"joint2": 1.0}).values(["joint1", "joint2"])
        {(1, 0): 1.0}
    """

    _s = 1.0


def whole_path(conditions: Sequence[Any]) -> tuple[Any, ...]:
    """Return conditions with the progress along a path from 0 to 1, where they do not say otherwise.

    Example:
        >>> [each.q for each in whole_path([Start(v=0.0)])]
        [0.0, 1.0]
    """
    found = list(conditions)
    for kind, value in ((Start, 0.0), (End, 1.0)):
        states = [k for k, each in enumerate(found) if isinstance(each, kind) and each.phase is None]
        if not states:
            found.append(kind(q=value))
        elif all(found[k].q is None for k in states):
            found[states[0]] = replace(found[states[0]], q=value)
    return tuple(found)


@dataclass(frozen=True, eq=False, kw_only=True)
class Linked(Ends):
    """Profiles go on from each phase to the next, with their rates up to ``order`` (2: accelerations).

    Example:
        >>> [equation.label for equation in Linked(order=0).equations(["joint1"], 2)]
        ['q of joint1, phase 0 to 1']
    """

    order: int = 2

    def equations(self, names: Sequence[str], phases: int) -> Iterator[Equation]:
        """Give an equation for each profile, order and pair of phases."""
        orders = _order(self.order, self.title)
        for before in range(phases - 1):
            for profile, name in enumerate(names):
                for order in orders:
                    parts = Part(before, 1.0, order, profile), Part(before + 1, 0.0, order, profile, -1.0)
                    label = f"{ORDER_NAMES[order]} of {name}, phase {before} to {before + 1}"
                    yield Equation(self.title, label, parts, 0.0, 0.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Symmetric(Ends):
    """The end of the motion is its start mirrored: y_i(end) = sign_i y_k(start) + shift_i, with k = partner of i.

    ``partners`` has {name: name}, ``signs`` {name: -1.0} and ``shifts`` {name: number} where they are not the profile
    itself, 1 and 0. Rates up to ``order`` are mirrored too, without the shift. ``only`` are the names it is about.

    Example:
        >>> mirror = Symmetric(partners={"left": "right", "right": "left"}, order=0)
        >>> [equation.label for equation in mirror.equations(["left", "right"], 1)]
        ['q of left', 'q of right']
    """

    partners: Mapping[str, str] = field(default_factory=dict)
    signs: Mapping[str, float] = field(default_factory=dict)
    shifts: Mapping[str, float] = field(default_factory=dict)
    order: int = 1
    only: Sequence[str] | None = None

    def equations(self, names: Sequence[str], phases: int) -> Iterator[Equation]:
        """Give an equation for each profile and order."""
        for what in ("partners", "signs", "shifts"):
            if not isinstance(getattr(self, what), Mapping):
                found = f"{what} is {getattr(self, what)!r}"
                raise ModelError(describe(found, where=self.title, allowed="a table by names of profiles"))
        signs, shifts = (of_profiles(each, names, self.title) for each in (self.signs, self.shifts))
        only = [self.only] if isinstance(self.only, str) else self.only
        for name in (*self.partners, *self.partners.values(), *(() if only is None else only)):
            if name not in names:
                raise ModelError(describe(f"no profile {name!r}", where=self.title, allowed=", ".join(names)))
        if only is not None and not only:
            raise ModelError(describe("only is empty", where=self.title, allowed=", ".join(names)))
        orders = _order(self.order, self.title)
        for profile, name in enumerate(names):
            if name not in only if only is not None else profile >= _moving(names):
                continue
            other, sign = names.index(self.partners.get(name, name)), signs.get(profile, 1.0)
            for order in orders:
                parts = Part(phases - 1, 1.0, order, profile), Part(0, 0.0, order, other, -sign)
                value = shifts.get(profile, 0.0) if order == 0 else 0.0
                yield Equation(self.title, f"{ORDER_NAMES[order]} of {name}", parts, value, value)


@dataclass(frozen=True, eq=False, kw_only=True)
class Periodic(Symmetric):
    """The end of the motion is its start, but for ``shifts``: rates up to ``order`` (1) are the same.

    Example:
        >>> len(list(Periodic(order=1).equations(["joint1", "joint2"], 1)))
        4
    """

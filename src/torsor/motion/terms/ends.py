"""Conditions at the ends of phases: prescribed states, continuity, periodicity and symmetry."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from torsor.base.checks import by_name, indices_of, table, whole_number
from torsor.base.errors import ModelError
from torsor.motion.transcription.motion_model import Profiles
from torsor.motion.transcription.variables import Equation, Part

ORDER_NAMES = ("q", "v", "a", "j")
Given = Any  # None, one number, one per profile, or {name: number}


def _orders(value: Any, where: str) -> list[tuple[int, str]]:
    """Return the derivative orders from 0 to ``value``, with their names."""
    count = whole_number(value, where, "order", least=0, most=len(ORDER_NAMES) - 1) + 1
    return list(enumerate(ORDER_NAMES[:count]))


def _moving(names: Sequence[str]) -> int:
    """Return the number of profiles that move the robot; conditions on other profiles must name them."""
    return names.moving if isinstance(names, Profiles) else len(names)


def of_profiles(value: Given, names: Sequence[str], where: str) -> dict[int, float]:
    """Return {profile index: number} from one number, one per profile, or {name: number}."""
    if value is None:
        return {}
    is_table = isinstance(value, Mapping)
    named = list(value) if is_table else list(names[: _moving(names)])
    result = by_name(list(value.values()) if is_table else value, named, 0.0, where)
    if not np.isfinite(result).all():
        raise ModelError(f"the value is {value!r}", value=value, where=where, allowed="finite numbers")
    return dict(zip(indices_of(named, names, where), result.tolist(), strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class Ends:
    """A condition on the ends of phases; ``name`` appears in reports."""

    name: str = ""

    @property
    def title(self) -> str:
        """The name, by default the class name."""
        return self.name or type(self).__name__

    def equations(self, names: Sequence[str], phases: int) -> Iterator[Equation]:
        """Yield the equations for the profiles ``names``."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class EndState(Ends):
    """Positions, velocities, accelerations and jerks of profiles at one end of a phase; None means free."""

    q: Given = None
    v: Given = None
    a: Given = None
    j: Given = None
    phase: int | str | None = None

    s = 0.0

    def values(self, names: Sequence[str]) -> dict[tuple[int, int], float]:
        """Return {(profile, order): value}."""
        return {
            (profile, order): value
            for order, kind in enumerate(ORDER_NAMES)
            for profile, value in of_profiles(getattr(self, kind), names, f"{self.title}: {kind}").items()
        }

    def index(self, phases: int) -> int:
        """Return the index of the phase: by default the first for a start and the last for an end."""
        if self.phase is None:
            return 0 if self.s == 0 else phases - 1
        index = self.phase  # the problem has already replaced names with indices
        if not isinstance(index, (int, np.integer)) or isinstance(index, bool) or not 0 <= index < phases:
            allowed = f"0 to {phases - 1}, or the name of a phase"
            raise ModelError(argument="phase", value=self.phase, where=self.title, allowed=allowed)
        return int(index)

    def equations(self, names: Sequence[str], phases: int) -> Iterator[Equation]:
        """Yield one equation per given value of a profile or its derivative."""
        index = self.index(phases)
        for (profile, order), value in self.values(names).items():
            parts = (Part(index, self.s, order, profile),)
            yield Equation(self.title, f"{ORDER_NAMES[order]} of {names[profile]}", parts, value, value)


@dataclass(frozen=True, eq=False, kw_only=True)
class Start(EndState):
    """The start of profiles: ``q``, ``v``, ``a`` and ``j`` are one number, one per profile, or {name: number}.

    It applies to ``phase`` (index or name; by default the first). None leaves a quantity free.

    Example:
        >>> Start(q=[0.0, 1.0], v=0.0).values(["joint1", "joint2"])
        {(0, 0): 0.0, (1, 0): 1.0, (0, 1): 0.0, (1, 1): 0.0}
    """


@dataclass(frozen=True, eq=False, kw_only=True)
class End(EndState):
    """Values at the end of profiles, with the arguments of ``Start``; by default of the last phase.

    Example:
        >>> End(q={"joint2": 1.0}).values(["joint1", "joint2"])
        {(1, 0): 1.0}
    """

    s = 1.0


def whole_path(conditions: Sequence[Any]) -> tuple[Any, ...]:
    """Return conditions with a path progress from 0 to 1, unless they specify different values."""
    completed = list(conditions)
    for kind, value in ((Start, 0.0), (End, 1.0)):
        states = [k for k, condition in enumerate(completed) if isinstance(condition, kind) and condition.phase is None]
        if not states:
            completed.append(kind(q=value))
        elif all(completed[k].q is None for k in states):
            completed[states[0]] = replace(completed[states[0]], q=value)
    return tuple(completed)


@dataclass(frozen=True, eq=False, kw_only=True)
class Linked(Ends):
    """Continuity of profiles between successive phases, with derivatives up to ``order`` (2: accelerations).

    Example:
        >>> [equation.label for equation in Linked(order=0).equations(["joint1"], 2)]
        ['q of joint1, phase 0 to 1']
    """

    order: int = 2

    def equations(self, names: Sequence[str], phases: int) -> Iterator[Equation]:
        """Yield one equation per profile, order and pair of phases."""
        orders = _orders(self.order, self.title)
        for before, (profile, name), (order, letter) in product(range(phases - 1), enumerate(names), orders):
            parts = Part(before, 1.0, order, profile), Part(before + 1, 0.0, order, profile, -1.0)
            label = f"{letter} of {name}, phase {before} to {before + 1}"
            yield Equation(self.title, label, parts, 0.0, 0.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Symmetric(Ends):
    """Symmetry of the ends of a motion: y_i(end) = sign_i y_k(start) + shift_i, where k is the partner of i.

    ``partners`` is {name: name}, ``signs`` is {name: -1.0} and ``shifts`` is {name: number}; the defaults are the
    profile itself, 1 and 0. Derivatives up to ``order`` are mirrored too, without the shift. ``only`` restricts the
    condition to some names. ``paces`` is {name: speed}: the duration times the speed is added to the shift. With
    ``paced_by``, the speed is multiplied by the shared number of that name.

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
    paces: Mapping[str, float] = field(default_factory=dict)
    paced_by: str = ""

    def equations(self, names: Sequence[str], phases: int) -> Iterator[Equation]:
        """Yield one equation per profile and order."""
        for what in ("partners", "signs", "shifts", "paces"):
            table(getattr(self, what), self.title, what)
        tables = (self.signs, self.shifts, self.paces)
        signs, shifts, paces = (of_profiles(numbers, names, self.title) for numbers in tables)
        indices_of([*self.partners, *self.partners.values()], names, self.title)
        profiles = range(_moving(names)) if self.only is None else indices_of(self.only, names, self.title)
        if not profiles:
            raise ModelError("is empty", argument="only", where=self.title, allowed=", ".join(names))
        for profile, (order, letter) in product(sorted(set(profiles)), _orders(self.order, self.title)):
            name, sign = names[profile], signs.get(profile, 1.0)
            other = names.index(self.partners.get(name, name))
            parts = Part(phases - 1, 1.0, order, profile), Part(0, 0.0, order, other, -sign)
            value, pace = (shifts.get(profile, 0.0), paces.get(profile, 0.0)) if order == 0 else (0.0, 0.0)
            label, pacer = f"{letter} of {name}", self.paced_by if pace else ""
            yield Equation(self.title, label, parts, value, value, -pace, pacer)


@dataclass(frozen=True, eq=False, kw_only=True)
class Periodic(Symmetric):
    """Periodicity: the end of the motion equals its start plus ``shifts``, with derivatives up to ``order`` (1)."""

"""Measured data of a motion, and the residuals of a predicted motion."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import by_name, finite_vector, indices_of, real_array, several
from torsor.base.errors import ModelError
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.frames import Reference
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.phase import is_phase

QUANTITIES = ("q", "v", "a", "tau")
MIN_MOMENT_DISTANCE = 1e-9  # smallest distance between two times of the data, as a fraction of the duration


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """Measured data with a descriptive ``name``, such as "walk 3 of person 12".

    ``values`` (K, n) are given at the fractions ``shares`` (K,) of the duration of a ``phase`` (its index or name;
    optional if there is only one), by default equidistant from 0 to 1. ``of`` is the measured quantity: "q", "v", "a"
    or "tau" of the coordinates ``names`` (by default all), in SI units, or a function of a ``motion.Node`` that returns
    a column (n x 1). Residuals are divided by ``scale``, such as a standard deviation: one number, one per quantity, or
    {name: number}.
    """

    name: str
    values: Any
    names: Sequence[str] | None = None
    of: str | Callable[[Node], ca.SX] = "q"
    shares: Any = None
    scale: Any = 1.0
    phase: int | str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            allowed = "a name for the data in the result"
            raise ModelError(argument="name", value=self.name, where="measured data", allowed=allowed)
        if not callable(self.of) and self.of not in QUANTITIES:
            allowed = f"{', '.join(QUANTITIES)}, or a function of a node"
            raise ModelError(argument="of", value=self.of, where=self.name, allowed=allowed)
        values = self.table
        if values.ndim != 2 or not values.size or not np.isfinite(values).all():
            problem = f"have shape {values.shape}" if np.isfinite(values).all() else "are not finite"
            allowed = "finite numbers (moments, quantities)"
            raise ModelError(problem, argument="values", where=self.name, allowed=allowed)
        moments = self.moments
        is_wrong = len(moments) != len(values) or moments.min(initial=0.0) < 0 or moments.max(initial=0.0) > 1
        if is_wrong or (np.diff(moments) < MIN_MOMENT_DISTANCE).any():
            allowed = f"{len(values)} increasing fractions from 0 to 1, one per row of values"
            raise ModelError(argument="shares", value=self.shares, where=self.name, allowed=allowed)

    @cached_property
    def table(self) -> Array:
        """The values as an array."""
        return real_array(self.values, self.name, "values")

    @cached_property
    def moments(self) -> Array:
        """The fractions (K,) of the duration."""
        if self.shares is None:
            return np.linspace(0.0, 1.0, len(self.table))
        result = finite_vector(self.shares)
        return np.full(1, np.nan) if result is None else result


@dataclass(frozen=True, eq=False, kw_only=True)
class _Distances(Constraint):
    """Residuals from measured data, as rows without bounds."""

    data_set: Measured
    key: str  # key of the node data

    def moments(self, phase: Any) -> Array:
        """Return the times of the data, as fractions of the duration."""
        return self.data_set.moments

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the values at the fractions s (K,), which are the times of the data."""
        return {self.key: self.data_set.table}

    def rows(self, node: Node) -> Rows:
        """Return the residuals, divided by their scales."""
        measured, robot = self.data_set, node.robot
        if callable(measured.of):
            quantity = ca.densify(ca.SX(measured.of(node)))
            labels = list(measured.names or (str(k) for k in range(quantity.numel())))
        else:
            rates = robot.coordinate_names
            names = {"q": robot.position_names, "v": rates, "a": rates, "tau": node.force_names}[measured.of]
            kept = indices_of(measured.names, names, measured.name)
            quantity, labels = getattr(node, measured.of)[kept], [names[k] for k in kept]
        count = measured.table.shape[1]
        if quantity.numel() != count or len(labels) != count:
            message = f"the values have {count} columns"
            raise ModelError(message, where=measured.name, allowed=f"{quantity.numel()}: {', '.join(labels)}")
        scale = by_name(measured.scale, labels, np.inf, f"{measured.name}: scale")
        if not (scale > 0).all():
            raise ModelError(argument="scale", value=measured.scale, where=measured.name, allowed="positive numbers")
        free = np.full(count, np.inf)
        distances = (quantity - node.data(self.key, count)) * node.given(1 / scale, keep_zeros=True)
        return Rows(distances, -free, free, tuple(labels))


def _phase_of(data: Measured, problem: ProblemStatement) -> int:
    """Return the phase index of data."""
    stages = list(enumerate(problem.stages))
    for index, phase in stages:
        if is_phase(data.phase, index, phase) or (data.phase is None and len(stages) == 1):
            return index
    allowed = ", ".join(repr(phase.name or index) for index, phase in stages)
    raise ModelError(f"the data belong to phase {data.phase!r}", value=data.phase, where=data.name, allowed=allowed)


class Residuals:
    """Residuals (R,) of a motion from all data, and their Jacobian with respect to the variables of a problem."""

    def __init__(self, problem: ProblemStatement, data: Any):
        shared = ("name", "values", "names", "shares", "scale", "phase")
        self.sets = tuple(
            Measured(**{key: getattr(data_set, key) for key in shared}) if isinstance(data_set, Reference) else data_set
            for data_set in several(data)
        )
        allowed = "motion.Measured, motion.Reference, or a list of them"
        if not self.sets:
            raise ModelError("there are no data", where=problem.name, allowed=allowed)
        for data_set in self.sets:
            if not isinstance(data_set, Measured):
                raise ModelError(f"the data contain {data_set!r}", value=data_set, where=problem.name, allowed=allowed)
            if problem.stages[_phase_of(data_set, problem)].timing.harmonics:
                message = "the data belong to a phase with a clock, but their moments are fractions of its duration"
                raise ModelError(message, where=problem.name, fix="fix the contact times (timing='given')")
        layout, self._batches, self._parts = problem.program.layout, list[Batch](), list[slice]()
        first = 0
        for index, data_set in enumerate(self.sets):
            key, moments = f"measured {index} ({data_set.table.shape[1]})", data_set.moments
            kernels = problem.kernels_of([_Distances(data_set=data_set, key=key, name=data_set.name)])
            batch = Batch(kernels, layout, _phase_of(data_set, problem), moments, np.zeros(len(moments)))
            self._batches.append(batch)
            self._parts.append(slice(first, first + batch.m))
            first += batch.m
        self.n, self.count = layout.size, first

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the data sets."""
        return tuple(data_set.name for data_set in self.sets)

    def value(self, x: Array) -> Array:
        """Return the residuals (R,), divided by their scales."""
        return np.concatenate([batch.value(x)[0] for batch in self._batches])

    def jacobian(self, x: Array) -> Array:
        """Return the derivatives (R, n) of the residuals."""
        result = np.zeros((self.count, self.n))
        for part, batch in zip(self._parts, self._batches, strict=True):
            rows, columns = batch.structure
            kept = columns >= 0
            np.add.at(result[part], (rows[kept], columns[kept]), batch.jacobian(x)[0][kept])
        return result

    def root_mean_squares(self, distances: Array) -> tuple[float, ...]:
        """Return the root mean square residual of each data set, in units of its scale."""
        return tuple(float(np.sqrt(np.mean(distances[part] ** 2))) for part in self._parts)

    @property
    def spread(self) -> float:
        """Sum of squared deviations of the scaled data from their means over time; the most a fit can explain."""
        total = 0.0
        for data_set, batch in zip(self.sets, self._batches, strict=True):
            scale = by_name(data_set.scale, batch.kernels.rows[0].labels, np.inf, data_set.name)
            total += float((((data_set.table - data_set.table.mean(axis=0)) / scale) ** 2).sum())
        return total

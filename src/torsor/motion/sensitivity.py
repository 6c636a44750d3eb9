"""Derivatives of optimal motions with respect to data of their problems, by the implicit function theorem.

Data are the quantities that a case of ``solve_many`` can change: arguments of a built-in problem, or named data of any
problem. The problem is rebuilt with changed data but not solved again: the derivatives of the optimality conditions at
constant variables and multipliers determine the change of the optimum (``optimisation.implicit``).

Control points fixed by end conditions, bounds of rows and variables, and objective weights depend linearly on most
data. The derivatives are then exact: a program in which all control points are variables has a Jacobian and a Hessian
with the derivatives with respect to the known control points. For other data, such as robot parameters, the conditions
are differentiated by central differences of fourth order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Flags, Indices
from torsor.base.checks import several
from torsor.base.errors import ModelError, listing
from torsor.motion.many import with_case
from torsor.motion.results.samples import Course, Moments
from torsor.motion.results.solution import Solution, time_of
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.objectives import Rates
from torsor.motion.terms.term import Cost
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.node_kernels import moments_of
from torsor.motion.transcription.program import Program
from torsor.motion.transcription.variables import Layout, Linear
from torsor.optimisation.implicit import Changes, ImplicitOptimum
from torsor.optimisation.optimum import first_derivatives

STEP = 1e-3  # finite-difference step, relative to the largest entry, or absolute if all entries are 0
LINEAR_CHANGE = 1e-11  # second difference, relative to the values, below which they are linear in the data
TIME_DERIVATIVES = {"q": "v", "v": "a", "a": "j", "tau": "tau_rate"}
# Residual of active scaled rows, per relative change of the data, above which they cannot all stay active.
MAX_RESIDUAL = 1e-6
MAX_NAMED = 4  # largest number of weak constraints that an error names
MOVED = 1e-6  # entry of an undetermined direction (a unit vector) above which its variable is undetermined


# Data


@dataclass(frozen=True, eq=False)
class Datum:
    """Named data of a problem: ``value`` as an array (...), and the names of its entries if it is a dict."""

    problem: ProblemStatement
    name: str
    value: Array
    keys: tuple[str, ...] | None

    @classmethod
    def of(cls, problem: ProblemStatement, name: str) -> "Datum":
        """Return data by the name that cases of ``solve_many`` use; raise ModelError if they are not numbers."""
        where = _where(problem)
        arguments, named = _arguments(problem), _named_data(problem)
        if name in problem.shared:
            fix = f"give it equal bounds: numbers={{{name!r}: motion.Number(value, value, value)}}"
            raise ModelError(f"{name!r} is a variable", value=name, where=where, allowed="data", fix=fix)
        data = named | arguments
        if name not in data:
            allowed = listing([key for key, value in data.items() if _numbers(value) is not None], like=str(name))
            raise ModelError(f"there is no {name!r}", value=name, where=where, allowed=allowed)
        numbers = _numbers(data[name])
        if numbers is None:
            raise ModelError(argument=name, value=data[name], where=where, allowed="numbers that the problem states")
        owner = problem.with_phases(*problem.stages)  # without an origin, cases are named data
        if name in arguments:
            origin = problem.__dict__["origin"]
            named_values = signature(origin.function).bind_partial(*origin.values).arguments
            owner.__dict__["origin"] = origin._replace(values=(), given={**named_values, **origin.given})
        return cls(owner, name, numbers, tuple(data[name]) if isinstance(data[name], Mapping) else None)

    @cached_property
    def step(self) -> float:
        """The finite-difference step, relative to the largest entry of the data."""
        return STEP * (float(np.abs(self.value[np.isfinite(self.value)]).max(initial=0.0)) or 1.0)

    def changed(self, steps: Array) -> ProblemStatement:
        """Return the problem with the data entries changed by ``steps`` (k,) finite-difference steps."""
        flat = self.value.ravel() + self.step * steps
        value: Any = flat.reshape(self.value.shape) if self.value.ndim else float(flat[0])
        case = {self.name: value if self.keys is None else dict(zip(self.keys, flat.tolist(), strict=True))}
        try:
            return with_case(self.problem, case, 0)
        except ModelError as error:
            message = f"cannot change by {self.step:.3g} ({str(error).removeprefix('case 0: ')})"
            raise ModelError(message, argument=self.name, value=self.value, where=_where(self.problem)) from None


def _numbers(value: Any) -> Array | None:
    """Return a value, or the values of a dict, as an array; None if they are not numbers."""
    raw = list(value.values()) if isinstance(value, Mapping) else value
    try:
        numbers = np.array(raw, dtype=float)
    except (TypeError, ValueError):
        return None
    is_numeric = np.asarray(raw).dtype.kind in "iuf" and numbers.size and not np.isnan(numbers).any()
    return numbers if is_numeric else None


def _where(problem: ProblemStatement) -> str:
    return f"{problem.name}: sensitivity"


def _arguments(problem: ProblemStatement) -> dict[str, Any]:
    """Return the arguments of the function that created a problem."""
    origin = problem.__dict__.get("origin")
    if origin is None:
        return {}
    bound = signature(origin.function).bind_partial(*origin.values, **origin.given)
    bound.apply_defaults()
    return dict(bound.arguments)


def _named_data(problem: ProblemStatement) -> dict[str, Any]:
    """Return "TERM.FIELD", "phase.FIELD" and the fixed shared numbers."""
    result: dict[str, Any] = dict(problem.held)
    members: list[tuple[str, Any]] = [(phase.name or "phase", phase) for phase in problem.stages]
    members += [(term.title, term) for term in (*problem.costs, *several(problem.constraints))]
    for title, member in members:
        for entry in fields(member):
            key, value = f"{title}.{entry.name}", getattr(member, entry.name)
            is_one = key not in result or np.array_equal(result[key], value)
            result[key] = value if is_one else None  # None if terms with the same title have different values
    return result


# Optimality conditions and their derivatives


class Conditions:
    """The optimality conditions of a solution, and their derivatives with respect to data."""

    def __init__(self, solution: Solution):
        self.solution, self.problem, self.program = solution, solution.problem, solution.program
        self.optimum = ImplicitOptimum.of(self.program, solution.outcome)
        self.x, self.sides = self.optimum.x, self.optimum.sides

    def changes(self, datum: Datum) -> tuple[Changes, Changes, Array]:
        """Return the derivatives with respect to the data entries, their errors, and the duration derivatives.

        The latter (phases, k) are those of fixed durations; they are 0 for durations that are variables.
        """
        entries = np.flatnonzero(np.isfinite(datum.value))
        ahead = [self._checked(datum, np.eye(datum.value.size)[k]) for k in entries]
        behind = self._checked(datum, -np.isin(np.arange(datum.value.size), entries).astype(float))
        is_linear = all(map(self._has_same_functions, (*ahead, behind)))
        values = self._data_of if is_linear else self._conditions_of
        here = values(self.problem)
        slopes, errors = np.zeros((2, len(here), datum.value.size))
        for k, problem in zip(entries, ahead, strict=True):
            slopes[:, k] = (values(problem) - here) / datum.step
        bend = values(behind) - here + datum.step * slopes.sum(axis=1)
        if not is_linear or np.abs(bend).max() > LINEAR_CHANGE * max(1.0, np.abs(here).max()):
            for k, problem in zip(entries, ahead, strict=True):
                unit = np.eye(datum.value.size)[k]
                back, far, far_back = (values(datum.changed(steps * unit)) for steps in (-1, 2, -2))
                second = (values(problem) - back) / (2 * datum.step)
                errors[:, k] = (second - (far - far_back) / (4 * datum.step)) / 3
                slopes[:, k] = second + errors[:, k]
        read = self._chained if is_linear else self._split
        return read(slopes), read(errors), slopes[-len(self.problem.stages) :]

    def _checked(self, datum: Datum, steps: Array) -> ProblemStatement:
        """Return the problem with changed data; raise ModelError if its variables or rows differ."""
        other = datum.changed(steps)
        own, new = self.program, other.program
        is_same = (own.n, own.m, len(own.batches)) == (new.n, new.m, len(new.batches)) and all(
            np.array_equal(one.columns, two.columns) and one.duration == two.duration
            for one, two in zip(own.layout.phases, new.layout.phases, strict=True)
        )
        if not is_same or _timeless(own) != _timeless(new):
            fix = "" if datum.value.all() else "replace rates of 0 at ends by small numbers (1e-12)"
            what, where = "changes the variables or rows of the program", _where(self.problem)
            allowed = "data that keep them"
            raise ModelError(what, argument=datum.name, value=datum.value, where=where, allowed=allowed, fix=fix)
        return other

    def _has_same_functions(self, other: ProblemStatement) -> bool:
        """Return whether a problem differs only in known control points, bounds and weights of the objective."""
        if [type(cost) for cost in other.costs] != [type(cost) for cost in self.problem.costs]:
            return False
        pairs = list(zip(self.problem.costs, other.costs, strict=True))
        if any(own.weight != new.weight for own, new in pairs):
            other = replace(other, objective=[replace(new, weight=own.weight) for own, new in pairs])
        own_program, program = self.program, other.program
        phases = zip(own_program.layout.phases, program.layout.phases, strict=True)
        return (
            all(own.duration >= 0 or own.phase.bounds == new.phase.bounds for own, new in phases)
            and all(_is_same_batch(*two) for two in zip(own_program.batches, program.batches, strict=True))
            and _unbounded(own_program) == _unbounded(program)
            and [rate.weight for rate in own_program.rates] == [rate.weight for rate in program.rates]
        )

    def _bounds_of(self, problem: ProblemStatement) -> tuple[Array, Array]:
        """Return the active bounds of rows (m,) and variables (n,); rows have the scales of the solution."""
        program, m = problem.program, self.program.m
        scales = program.scales / self.program.scales
        rows = np.where(self.sides[:m] < 0, program.row_lower, program.row_upper) * scales
        variables = np.where(self.sides[m:] < 0, program.lower, program.upper)
        return np.where(self.sides[:m] != 0, rows, 0.0), np.where(self.sides[m:] != 0, variables, 0.0)

    def _data_of(self, problem: ProblemStatement) -> Array:
        """Return the known control points, the bounds, the weights of the objective, and the fixed durations."""
        phases = problem.program.layout.phases
        known = [phase.known[own] for phase, own in zip(phases, self._known, strict=True)]
        weights = [cost.weight for cost in problem.costs]
        return np.concatenate([*known, *self._bounds_of(problem), weights, self._seconds(problem)])

    def _conditions_of(self, problem: ProblemStatement) -> Array:
        """Return f, the gradient of the Lagrangian (n,), rows minus bounds (m,), bounds (n,) and fixed durations."""
        program = problem.program
        scales = program.scales / self.program.scales
        f, g = program.value(self.x)
        gradient, J = first_derivatives(program, self.x)
        rows, variables = self._bounds_of(problem)
        slope = gradient + (self.optimum.multipliers * scales) @ J
        off = np.where(self.sides[: program.m] != 0, g * scales - rows, 0.0)
        return np.concatenate([[f], slope, off, variables, self._seconds(problem)])

    def _seconds(self, problem: ProblemStatement) -> list[float]:
        phases = problem.program.layout.phases
        return [0.0 if phase.duration >= 0 else phase.phase.bounds[0] for phase in phases]

    def _split(self, slopes: Array) -> Changes:
        """Return the slopes of ``_conditions_of`` as those of f, the gradient, the rows and the bounds."""
        n, m = self.program.n, self.program.m
        f, gradient, rows, bounds, _ = np.split(slopes, np.cumsum([1, n, m, n]))
        return Changes(f[0], gradient, rows, bounds)

    def _chained(self, slopes: Array) -> Changes:
        """Return the derivatives of the conditions from those of ``_data_of``."""
        n, m, (by_f, by_gradient, by_rows) = self.program.n, self.program.m, self._by_known
        sizes = [len(by_f), m, n, len(self.problem.costs)]
        known, rows, bounds, weights, _ = np.split(slopes, np.cumsum(sizes))
        objective, gradient = by_f @ known, by_gradient @ known
        for cost, weight in zip(self.problem.costs, weights, strict=True):
            if weight.any():
                value, slope = self._unweighted(cost)
                objective, gradient = objective + value * weight, gradient + slope[:, None] * weight
        return Changes(objective, gradient, by_rows @ known - rows, bounds)

    @cached_property
    def _known(self) -> list[Flags]:
        """Flags (N, points) of the known control points of each phase."""
        return [
            (phase.columns < 0) & [np.arange(phase.columns.shape[1]) < spline.count for spline in phase.splines]
            for phase in self.program.layout.phases
        ]

    @cached_property
    def _by_known(self) -> tuple[Array, Array, Array]:
        """Derivatives of f (k,), Lagrangian gradient (n, k) and rows (m, k) with respect to known control points."""
        problem, own = self.problem, self.program.layout
        layout = Layout.of(problem.stages, problem.model.names, [{} for _ in problem.stages], list(own.numbers))
        batches = tuple(replace(batch, layout=layout) for batch in self.program.batches)
        free, known, x = np.zeros(own.size, dtype=int), list[Indices](), np.zeros(layout.size)
        for phase, wide, is_known in zip(own.phases, layout.phases, self._known, strict=True):
            is_free = phase.columns >= 0
            free[phase.columns[is_free]] = wide.columns[is_free]
            if phase.duration >= 0:
                free[phase.duration] = wide.duration
            known.append(wide.columns[is_known])
            x[wide.columns[is_known]] = phase.known[is_known]
        free[list(own.numbers.values())] = list(layout.numbers.values())
        x[free] = self.x
        rates = tuple(problem.rates_of(cost, batches) for cost in problem.costs if isinstance(cost, Rates))
        unbounded = np.full(layout.size, np.inf)
        linear = Linear(self.program.linear.equations, layout)
        program = Program(layout, batches, linear, -unbounded, unbounded, self.program.factor, rates)
        columns = np.concatenate(known)
        gradient, J = first_derivatives(program, x)
        H = program.hessian(x, self.optimum.multipliers, 1.0)
        return gradient[columns], H[np.ix_(free, columns)], J[:, columns]

    def _unweighted(self, cost: Cost) -> tuple[float, Array]:
        """Return the value and the gradient (n,) of a term of the objective with weight 1."""
        problem, layout, one = self.problem, self.program.layout, replace(cost, weight=1.0)
        if isinstance(one, Rates):
            rate = problem.rates_of(one, self.program.batches)
            return rate.value(self.x), rate.gradient(self.x)
        kernels, value, gradient = problem.kernels_of([one]), 0.0, np.zeros(layout.size)
        for index, phase in enumerate(problem.stages):
            if one.holds_in(index, phase):
                batch = Batch(kernels, layout, index, *moments_of(one, phase, problem.model))
                value, gradient = value + batch.value(self.x)[1], gradient + batch.jacobian(self.x)[1]
        return value, gradient

    @cached_property
    def time_weight(self) -> float | None:
        """The weight of the duration if the objective depends on nothing else, otherwise None."""
        gradient = self.program.jacobian(self.x)[0]
        columns = [phase.duration for phase in self.program.layout.phases]
        weight, others = gradient[columns[0]], np.delete(gradient, columns)
        is_time = min(columns) >= 0 and weight and not others.any() and np.allclose(gradient[columns], weight)
        return float(weight) if is_time else None

    @cached_property
    def degeneracy(self) -> ModelError | None:
        """The reason why the variables have no derivatives, or None."""
        optimum, where = self.optimum, _where(self.problem)
        fix = "add a small motion.Effort to the objective"
        if optimum.point is None:
            message = "it is not determined which constraints are active"
            return ModelError(message, where=where, allowed="an optimum with unique variables", fix=fix)
        if optimum.flat.shape[1]:
            is_moved = np.append(np.abs(optimum.flat).max(axis=1) > MOVED, False)  # known points have the index -1
            phases, names = self.program.layout.phases, self.problem.model.names
            moved = np.any([is_moved[phase.columns].any(axis=1) for phase in phases], axis=0)
            which = listing([names[k] for k in np.flatnonzero(moved)])
            message = f"the objective does not determine {which or 'all variables'}"
            return ModelError(message, where=where, allowed="an optimum with unique variables", fix=fix)
        if optimum.weak.size:
            named = ", ".join(map(self._name, optimum.weak[:MAX_NAMED].tolist()))
            message = f"{optimum.weak.size} constraints are at their bounds without a multiplier ({named})"
            return ModelError(message, where=where, allowed="bounds that limit the motion", fix="change these bounds")
        return None

    def _name(self, index: int) -> str:
        """Return the name of a row or a variable."""
        column = index - self.program.m
        for phase in self.program.layout.phases if column >= 0 else ():
            if phase.duration == column:
                return "a duration"
            for profile, point in np.argwhere(phase.columns == column).tolist():
                return f"control point {point} of {self.problem.model.names[profile]}"
        if column >= 0:
            return next(name for name, place in self.program.layout.numbers.items() if place == column)
        row = self.program.rows[index]
        time = time_of(self.program, self.x, row)
        return f"{row.title} {row.label}" + ("" if time is None else f" at {time:.4g} s")


def _is_same_batch(one: Batch, other: Batch) -> bool:
    """Return whether two batches have the same functions, data and nodes."""
    is_same = one.kernels is other.kernels or one.kernels.identity == other.kernels.identity
    arrays = ((one.s, other.s), (one.weights, other.weights))
    return (
        is_same
        and all(np.array_equal(*two) for two in arrays)
        and np.array_equal(one.data, other.data)
        and np.array_equal(one.kernels.given, other.kernels.given)
    )


def _unbounded(program: Program) -> list[Any]:
    """Return the linear rows without their bounds."""
    return [equation._replace(lower=0.0, upper=0.0) for equation in program.linear.equations]


def _timeless(program: Program) -> list[bool]:
    """Return flags of the linear rows that are 0; their scale is then constant."""
    return [equation.lower == equation.upper == 0.0 for equation in program.linear.equations]


# Results


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Derivatives of an optimal motion with respect to the data ``name`` of shape S, which is () for a number.

    ``objective`` (S) is the derivative of the optimal objective. ``x`` (n, S), ``durations`` (phases, S), ``T`` (S),
    the shared ``numbers`` and ``at(t)`` raise ``ModelError`` if the optimum does not determine them: if an active
    constraint has a zero multiplier, or if several motions are equally good. ``error`` (S) estimates the relative
    finite-difference error; it is 0 for data in which the problem is linear, such as ends, bounds and weights.
    """

    name: str
    value: Array
    objective: Array
    error: Array
    _conditions: Conditions = field(repr=False)
    _datum: Datum = field(repr=False)
    _dx: Array = field(repr=False)
    _by_f: Array = field(repr=False)
    _seconds: Array = field(repr=False)

    @property
    def degeneracy(self) -> ModelError | None:
        """The error that ``x`` raises, or None."""
        return self._conditions.degeneracy

    @property
    def x(self) -> Array:
        """Derivatives (n, S) of the variables."""
        if self.degeneracy is not None:
            raise self.degeneracy
        return self._shaped(self._dx)

    def _shaped(self, derivatives: Array) -> Array:
        return derivatives.reshape((*derivatives.shape[:-1], *self.value.shape))

    @property
    def durations(self) -> Array:
        """Derivatives (phases, S) of the phase durations, in s per unit of the data."""
        columns = [phase.duration for phase in self._conditions.program.layout.phases]
        variables = [np.zeros_like(self.x[0]) if column < 0 else self.x[column] for column in columns]
        return np.stack(variables) + self._shaped(self._seconds)

    @property
    def T(self) -> Array:
        """Derivatives (S) of the duration of the motion."""
        if self.degeneracy is None:
            return np.asarray(self.durations.sum(axis=0))
        if self._conditions.time_weight is None:
            raise self.degeneracy
        return np.asarray((self.objective - self._shaped(self._by_f)) / self._conditions.time_weight)

    @property
    def numbers(self) -> dict[str, Array]:
        """Derivatives (S) of the shared numbers that are variables."""
        return {name: self.x[column] for name, column in self._conditions.program.layout.numbers.items()}

    def at(self, t: ArrayLike, quantity: str = "q") -> Array:
        """Return the derivatives (..., n, S) of "q", "v", "a" or "tau" at constant times t (...).

        They are computed by central differences of fourth order along the exact derivatives of the variables. At the
        knots of cubic splines, where accelerations have kinks, the derivatives of "a" and "tau" are undefined.
        """
        if quantity not in TIME_DERIVATIVES:
            allowed = ", ".join(TIME_DERIVATIVES)
            raise ModelError(argument="quantity", value=quantity, where=_where(self._datum.problem), allowed=allowed)
        dx, datum, x = self.x.reshape(len(self._dx), -1), self._datum, self._conditions.x
        here = Course(self._conditions.problem, x).at(t)
        columns = list[Array]()
        for k in range(dx.shape[1]):
            total = np.zeros(())
            for steps, factor in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
                problem = datum.changed(steps * np.eye(datum.value.size)[k])
                moved = Course(problem, x + steps * datum.step * dx[:, k])
                # At constant time, the fraction of the phase changes.
                late = _times(moved, here)[..., None] * here.sampled(TIME_DERIVATIVES[quantity])
                total = total + factor * (Moments(moved, here.times, here.phase, here.s).sampled(quantity) - late)
            columns.append(total / (12 * datum.step))
        return self._shaped(np.stack(columns, axis=-1))


def _times(course: Course, moments: Moments) -> Array:
    """Return the times (...) at which a course reaches the phases and fractions of ``moments``."""
    if course.problem.stages[0].clock:
        return course.phases[0].times(course.x, np.asarray(moments.s))
    begun = np.cumsum([0.0, *course.durations])
    return np.asarray(begun[moments.phase] + moments.s * course.durations[moments.phase])


def sensitivity(solution: Solution, name: str) -> Sensitivity:
    """Return the derivatives of a solution with respect to data; ``MotionResult.sensitivity`` documents it."""
    problem = solution.problem
    if not solution.is_solved or not solution.is_feasible:
        message, allowed = f"the result is {solution.status}", "an optimal and feasible result"
        raise ModelError(message, value=problem.name, where=_where(problem), allowed=allowed)
    datum = Datum.of(problem, name)
    if "_conditions" not in solution.__dict__:
        solution.__dict__["_conditions"] = Conditions(solution)  # factorised once for all data
    conditions: Conditions = solution.__dict__["_conditions"]
    changes, errors, seconds = conditions.changes(datum)
    optimum = conditions.optimum
    objective, error = optimum.objective(changes), optimum.objective(errors)
    dx = np.full((optimum.program.n, datum.value.size), np.nan)
    size = datum.step / STEP
    relative = _relative(error, objective, solution.objective, size)
    if optimum.point is not None:
        dx, residual = optimum.moved(changes)
        if residual.max(initial=0.0) * size > MAX_RESIDUAL:
            message = "the active constraints cannot all stay active if the data change"
            fix = "remove constraints that repeat others"
            raise ModelError(message, argument=name, value=datum.value, where=_where(problem), fix=fix)
        relative = np.maximum(relative, _relative(optimum.moved(errors)[0], dx, conditions.x, size))
    shape = datum.value.shape
    results = (objective.reshape(shape), relative.reshape(shape))
    return Sensitivity(name, datum.value, *results, conditions, datum, dx, changes.objective, seconds)


def _relative(error: Array, derivative: Array, value: Array | float, size: float) -> Array:
    """Return errors (k,) relative to the largest derivative, or to the largest value per size of the data."""
    floor = max(float(np.abs(value).max(initial=0.0)) / size, 1e-300)
    largest = (np.abs(np.atleast_2d(array)).max(axis=0, initial=0.0) for array in (error, derivative))
    return np.asarray(next(largest) / np.maximum(next(largest), floor))


class Sensitivities(NamedTuple):
    """Derivatives of B optimal motions with respect to the data ``name`` of shape S.

    ``objective`` (B, S), ``T`` (B, S) and ``x`` (B, n, S) are NaN where an optimum does not determine them. ``each``
    contains the ``Sensitivity`` of each motion, or the ``ModelError`` that states why there is none.
    """

    name: str
    objective: Array
    T: Array
    x: Array
    each: tuple[Sensitivity | ModelError, ...]


def sensitivities(results: Sequence[Solution], name: str) -> Sensitivities:
    """Return the derivatives of many motions, such as those of ``solve_many``, with respect to the data ``name``.

    The motions must have the same number of variables and data of the same shape.

    Example:
        >>> from torsor import motion
        >>> arm = motion.PROBLEMS["slide-link"](points=6)
        >>> motion.sensitivities(arm.solve_many([{"u": 0.01}, {"u": 0.02}]), "u").T.round(2).tolist()
        [16.32, 9.83]
    """
    each = list[Sensitivity | ModelError]()
    for result in results:
        try:
            each.append(sensitivity(result, name))
        except ModelError as error:
            each.append(error)
    found = [one for one in each if isinstance(one, Sensitivity)]
    errors = [one for one in each if isinstance(one, ModelError)]
    if not found:
        nothing = ModelError(argument="results", value=results, where="sensitivities", allowed="at least one result")
        raise errors[0] if errors else nothing
    sizes = {(len(one._dx), *one.value.shape) for one in found}
    if len(sizes) > 1:
        allowed = "motions with the same numbers of variables, and data of one shape"
        raise ModelError(f"the sizes are {sorted(sizes)}", argument="results", where="sensitivities", allowed=allowed)
    n, *shape = sizes.pop()

    def stacked(quantity: str, *size: int) -> Array:
        rows = list[Array]()
        for one in each:
            try:
                rows.append(getattr(one, quantity) if isinstance(one, Sensitivity) else np.full(size, np.nan))
            except ModelError:
                rows.append(np.full(size, np.nan))
        return np.stack(rows)

    return Sensitivities(name, stacked("objective", *shape), stacked("T", *shape), stacked("x", n, *shape), tuple(each))

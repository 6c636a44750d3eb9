"""The cases of a study: tables {parameter: value}, as a list, a grid, or random samples."""

import hashlib
import itertools
import json
import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from torsor.base.checks import interval, rows, table, whole_number
from torsor.base.errors import ModelError

# Columns of a results table that are not parameters.
RESERVED_COLUMNS = ("case", "state", "error", "warning", "elapsed", "digest")
LARGEST_INTEGER = 2**53  # larger integers are not exact floating-point numbers


class Case(NamedTuple):
    """A case: its ``number``, from 0 in the order of the study, and the ``values`` of its parameters."""

    number: int
    values: dict[str, Any]

    @property
    def digest(self) -> str:
        """A hash of the values, by which a resumed study identifies computed cases."""
        result = json.dumps(self.values, sort_keys=True)
        return hashlib.blake2b(result.encode(), digest_size=8).hexdigest()


class Cases:
    """A known number of cases, generated one at a time on demand."""

    def __init__(self, count: int, make: Callable[[], Iterator[dict[str, Any]]]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._make()

    def __repr__(self) -> str:
        return f"<Cases: {self._count}>"


def grid(values: Mapping[str, Sequence[Any]] | None = None, **more: Sequence[Any]) -> Cases:
    """Return all combinations of parameter values; the last parameter changes fastest.

    Pass parameters whose names contain dots in a dict; other parameters may also be keyword arguments.

    Example:
        >>> list(grid({"torques.upper": [5.0, 10.0]}, points=[8]))
        [{'torques.upper': 5.0, 'points': 8}, {'torques.upper': 10.0, 'points': 8}]
    """
    all_values = table(values, "grid", "values") | more
    axes = {
        name: rows(values_of_name, "grid", str(name), "a list of values") for name, values_of_name in all_values.items()
    }
    if not axes or not all(axes.values()):
        raise ModelError("there are no values", where="grid", fix="pass lists, such as `height=[1.6, 1.8]`")
    count = math.prod(map(len, axes.values()))
    return Cases(
        count, lambda: (dict(zip(axes, combination, strict=True)) for combination in itertools.product(*axes.values()))
    )


def samples(
    count: int, ranges: Mapping[str, Sequence[float]] | None = None, *, seed: int = 0, **more: Sequence[float]
) -> Cases:
    """Return random cases in which each parameter is independently uniform in an interval (low, high).

    The same seed yields the same cases. A larger ``count`` only adds cases at the end.

    Example:
        >>> cases = list(samples(3, height=(1.5, 1.9), seed=1))
        >>> cases == list(samples(5, height=(1.5, 1.9), seed=1))[:3], 1.5 < cases[0]["height"] < 1.9
        (True, True)
    """
    whole_number(count, "samples", "count")
    whole_number(seed, "samples", "seed", least=0)
    all_ranges = table(ranges, "samples", "ranges") | more
    if not all_ranges:
        raise ModelError("there are no ranges", where="samples", fix="pass them, such as `height=(1.5, 1.9)`")
    ends = {name: interval(ends_of_name, "samples", str(name)) for name, ends_of_name in all_ranges.items()}

    def make() -> Iterator[dict[str, Any]]:
        rng = np.random.default_rng(seed)
        for _ in range(count):
            yield {name: float(rng.uniform(low, high)) for name, (low, high) in ends.items()}

    return Cases(count, make)


def numbered(cases: Iterable[Mapping[str, Any]], fixed: Mapping[str, Any] | None = None) -> Iterator[Case]:
    """Yield numbered cases with validated values of plain Python types."""
    if isinstance(cases, (str, bytes, Mapping)) or not isinstance(cases, Iterable):
        allowed = "a list of tables {parameter: value}, or motion.sweeps.grid(...) or samples(...)"
        raise ModelError(argument="cases", value=cases, where="sweep", allowed=allowed)
    for number, case in enumerate(cases):
        where = f"case {number}"
        if not isinstance(case, Mapping):
            raise ModelError(f"the case is {reprlib.repr(case)}", where=where, allowed="a table {parameter: value}")
        values = dict(fixed or {}) | dict(case)
        for name in values:
            if not isinstance(name, str) or not name or name in RESERVED_COLUMNS:
                allowed = f"text, but not {', '.join(RESERVED_COLUMNS)}, which are columns of the results"
                raise ModelError(f"a parameter is named {name!r}", value=name, where=where, allowed=allowed)
            check_text(name, where, "the name of a parameter")
        yield Case(number, {name: _plain_parameter(value, where, name) for name, value in values.items()})


def check_text(text: str, where: str, what: str) -> str:
    r"""Return text that a file can store; raise ModelError if it contains a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ModelError(f"is {ascii(text)[:60]}", argument=what, where=where, allowed="Unicode text") from None
    return text


def _plain_parameter(value: Any, where: str, name: str) -> Any:
    """Return a JSON value: a number, text, a boolean, None, or lists of these."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain_parameter(entry, where, name) for entry in value]
    if isinstance(value, str):
        return check_text(value, where, name)
    is_exact = isinstance(value, int) and abs(value) <= LARGEST_INTEGER
    if value is None or is_exact or (isinstance(value, float) and math.isfinite(value)):
        return value
    allowed = "finite numbers, text, booleans, and lists of them"
    fix = "create other objects inside the function from such values"
    raise ModelError(argument=name, value=value, where=where, allowed=allowed, fix=fix)


# The results of a case: a row of numbers, text, booleans and arrays by column name.

VALUE_COLUMN = "value"  # the column for functions that return one number or array
Kind = str  # "number", "truth", "text", or "array1", "array2", ... with the number of axes


class Row(NamedTuple):
    """A computed case: its ``number``, ``digest`` and ``values``, the ``results``, and the ``error`` if it failed.

    ``warning`` contains the warnings, ``elapsed`` is the computing time (s), and ``units`` are the known units of
    results.
    """

    number: int
    digest: str
    values: dict[str, Any]
    results: dict[str, Any]
    error: str = ""
    warning: str = ""
    elapsed: float = 0.0
    units: Mapping[str, str] = MappingProxyType({})

    @property
    def state(self) -> str:
        """Whether the case is "done" or "failed"."""
        return "failed" if self.error else "done"

    @property
    def cells(self) -> dict[str, Any]:
        """All values by column name."""
        values = self.number, self.state, self.error, self.warning, self.elapsed, self.digest
        return dict(zip(RESERVED_COLUMNS, values, strict=True)) | self.values | self.results


def results_of(found: Any) -> dict[str, Any]:
    """Return the results of a function by column: nested dicts have dotted names, and a single value is called "value".

    Example:
        >>> results_of({"time": 1.5, "force": {"hip": np.array([1.0, 2.0])}})
        {'time': 1.5, 'force.hip': array([1., 2.])}
        >>> results_of(3)
        {'value': 3.0}
    """
    if found is None:
        return {}
    if isinstance(found, tuple) and hasattr(found, "_asdict"):
        found = found._asdict()
    if not isinstance(found, Mapping):
        return {VALUE_COLUMN: _plain_result(found, VALUE_COLUMN)}
    results: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, Mapping) or hasattr(value, "_asdict"):
            results |= {f"{name}.{inner}": entry for inner, entry in results_of(value).items()}
        else:
            results[str(name)] = _plain_result(value, str(name))
    for name in results:
        check_text(name, "sweep", "the name of a result")
    return results


def _plain_result(value: Any, name: str) -> Any:
    """Return a number, text, a boolean, None, or an array of real numbers."""
    if isinstance(value, str):
        return check_text(value, "sweep", f"the result {name!r}")
    if value is None or isinstance(value, bool):
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # its rows have different lengths
        array = np.array(None)
    if array.dtype.kind == "b" and not array.ndim:
        return bool(array)
    if array.dtype.kind in "fiub":
        return array.astype(float) if array.ndim else float(array)
    allowed = "numbers, text, booleans, arrays of numbers, and tables of these; or a motion problem or its result"
    raise ModelError(f"the result {name!r} is {reprlib.repr(value)}", value=name, where="sweep", allowed=allowed)


NOUNS = {"number": "a number", "truth": "a boolean", "text": "text"}


def noun(kind: Kind) -> str:
    """Return the kind of a column as text, such as "a number"."""
    axes = kind.removeprefix("array")
    return NOUNS.get(kind) or f"an array with {axes} {'axis' if axes == '1' else 'axes'}"


def kind_of(value: Any) -> Kind:
    """Return the column kind of a value."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, str):
        return "text"
    axes = np.ndim(value)
    return f"array{axes}" if axes else "number"

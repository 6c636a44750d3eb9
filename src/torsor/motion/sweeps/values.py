"""What a case gives: a row of numbers, text, truth values and arrays, each under the name of a column."""

import reprlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from torsor.base.errors import ModelError
from torsor.motion.sweeps.cases import OWN, check_text

VALUE = "value"  # the column of a function that returns one number or array
Kind = str  # "number", "truth", "text", or "array1", "array2", ... with the number of axes


class Row(NamedTuple):
    """A computed case: its ``number``, ``digest`` and ``values``, the ``results``, and the ``error`` if it failed.

    ``warning`` has the warnings, ``elapsed`` the time that it took (s), ``units`` those of results as far as known.
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


def results_of(found: Any) -> dict[str, Any]:
    """Return the results of a function by column: nested tables have names with dots, one value is called "value".

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
        return {VALUE: _plain_result(found, VALUE)}
    results: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, Mapping) or hasattr(value, "_asdict"):
            results |= {f"{name}.{inner}": each for inner, each in results_of(value).items()}
        else:
            results[str(name)] = _plain_result(value, str(name))
    for name in results:
        check_text(name, "sweep", "the name of a result")
    return results


def check_names(values: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    """Raise ModelError where a result has the name of a parameter or of a column of every table."""
    for name in results:
        if name in values or name in OWN:
            fix = "give it another name"
            raise ModelError(f"the result {name!r} has the name of another column", value=name, where="sweep", fix=fix)


def _plain_result(value: Any, name: str) -> Any:
    """Return a number, text, a truth value, None, or an array of real numbers."""
    if isinstance(value, str):
        return check_text(value, "sweep", f"the result {name!r}")
    if value is None or isinstance(value, bool):
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        array = np.array(None)
    if array.dtype.kind == "b" and not array.ndim:
        return bool(array)
    if array.dtype.kind in "fiub":
        return array.astype(float) if array.ndim else float(array)
    allowed = "numbers, text, truth values, arrays of numbers, and tables of these; or a motion problem or its result"
    raise ModelError(f"the result {name!r} is {reprlib.repr(value)}", value=name, where="sweep", allowed=allowed)


NOUNS = {"number": "a number", "truth": "a truth value", "text": "text"}


def noun(kind: Kind) -> str:
    """Return the kind of a column in words.

    Example:
        >>> noun("text"), noun("array2")
        ('text', 'an array with 2 axes')
    """
    axes = kind.removeprefix("array")
    return NOUNS.get(kind) or f"an array with {axes} {'axis' if axes == '1' else 'axes'}"


def kind_of(value: Any) -> Kind:
    """Return the kind of the column of a value.

    Example:
        >>> kind_of(2.0), kind_of(True), kind_of("male"), kind_of([1.0, 2.0])
        ('number', 'truth', 'text', 'array1')
    """
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, str):
        return "text"
    axes = np.ndim(value)
    return f"array{axes}" if axes else "number"

"""References for comparisons of walks, in all accepted forms."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torsor.base.archive import load_result
from torsor.base.arrays import Array
from torsor.base.checks import real_array
from torsor.base.errors import ModelError, listing
from torsor.base.files import reading_npz
from torsor.human.comparison.recorded import RecordedWalk, recorded_walk
from torsor.human.gait.references import LABELS, REFERENCES, Reference

ALLOWED = (
    "names of built-in references, files (.mot, .sto, .csv, .npz), a mapping {curve: values}, a Stride, a result of "
    "recorded_walk or torsor.human.measured, or a list of these"
)
CURVES = tuple(name for name in REFERENCES if "," not in name)
MIN_CURVE_VALUES = 3  # minimum number of values of a curve over a stride


class Given(NamedTuple):
    """The ``references``, and ``notes`` on the interpretation of recordings."""

    references: list[Reference]
    notes: list[str]


def given_references(references: Any, side: str, stride_of: Callable[[Any], Any]) -> Given:
    """Return the references for ``Stride.likeness(references=...)``; None selects all built-in references.

    Recordings are divided into strides of one ``side``. ``stride_of`` creates a stride from a saved motion.
    """
    if references is None:
        return Given(list(REFERENCES.values()), [])
    several = references if isinstance(references, list) else [references]
    if not several:
        raise ModelError("the list is empty", where="references", allowed=ALLOWED)
    collected, seen = Given([], []), dict[str, int]()
    for item in several:
        part = _given(item, side, stride_of)
        sources = {reference.source: reference.source for reference in part.references}
        for source in sources:
            seen[source] = seen.get(source, 0) + 1
            sources[source] += f" ({seen[source]})" if seen[source] > 1 else ""  # walk.mot (2)
        collected.references.extend(ref._replace(source=sources[ref.source]) for ref in part.references)
        collected.notes.extend(part.notes)
    return collected


def _given(item: Any, side: str, stride_of: Callable[[Any], Any]) -> Given:
    """Return the references of one item; a list or tuple contains the files of one recording."""
    if isinstance(item, str | Path):
        return _named(item, side, stride_of)
    if isinstance(item, Reference):
        return Given([item], [])
    if isinstance(item, RecordedWalk):
        return Given([curve for name, curve in item.curves.items() if name in CURVES], list(item.notes))
    if hasattr(item, "as_reference"):
        return Given(item.as_reference(), [])
    if isinstance(item, Mapping):
        return Given(_of_mapping(item, "given"), [])
    if isinstance(item, list | tuple):
        return _given(recorded_walk(*item, side=side), side, stride_of)
    if type(item).__module__.startswith(("torsor.human.measured", "torsor.human.recordings")):
        return _given(recorded_walk(item, side=side), side, stride_of)
    raise ModelError(f"the type {type(item).__name__} is not supported", where="references", allowed=ALLOWED)


def _named(name: str | Path, side: str, stride_of: Callable[[Any], Any]) -> Given:
    """Return the references for a built-in name or a file."""
    key = str(name)
    if key in REFERENCES:
        return Given([REFERENCES[key]], [])
    for source, label in LABELS.items():
        if key.lower() in (source, label.lower()):
            return Given([reference for reference in REFERENCES.values() if reference.source == source], [])
    path = Path(name)
    if path.suffix.lower() == ".npz":
        return Given(_archived(path, stride_of), [])
    if not path.suffix and not path.is_file():
        allowed = f"a file, {', '.join(LABELS.values())}, or {listing(CURVES, like=key)}"
        raise ModelError(f"there is no reference {key!r}", value=key, where="references", allowed=allowed)
    return _given(recorded_walk(path, side=side), side, stride_of)


def _archived(path: Path, stride_of: Callable[[Any], Any]) -> list[Reference]:
    """Return the curves of the stride or walk in a .npz file, or of its arrays with curve names."""
    if not path.is_file():
        raise ModelError("the file does not exist", where=str(path))
    with reading_npz(path, "curves of a walk") as arrays:
        curves = {name: values for name, values in arrays.items() if name.removesuffix("_sd") in CURVES}
    if curves:
        return _of_mapping(curves, path.name)
    result = load_result(path)
    stride = result if hasattr(result, "as_reference") else stride_of(result)
    return [reference._replace(source=path.name) for reference in stride.as_reference()]


def _of_mapping(curves: Mapping[Any, Any], label: str) -> list[Reference]:
    """Return references from {curve: values (K,)}, {curve: (mean, sd)} or {curve: strides (N, K)}."""
    if not curves:
        raise ModelError("the mapping is empty", where="references", allowed="{curve: values}")
    references = []
    for name, values in curves.items():
        if isinstance(values, Reference):
            references.append(values)
        elif name in CURVES:
            sd = curves.get(f"{name}_sd")
            if isinstance(values, tuple) and len(values) == 2 and np.ndim(values[0]) == 1:
                values, sd = values
            references.append(_of_values(name, values, sd, label))
        elif not (isinstance(name, str) and name.endswith("_sd") and name.removesuffix("_sd") in curves):
            what, allowed = f"there is no curve {name!r}", listing(CURVES, like=str(name))
            raise ModelError(what, value=name, where=label, allowed=allowed)
    return references


def _of_values(name: str, values: Any, sd: Any, label: str) -> Reference:
    where = f"{label}: {name}"
    array = _curve(values, where, "values")
    if array.ndim == 2:
        sd = array.std(axis=0, ddof=1) if len(array) > 1 else None
        array = array.mean(axis=0)
    band = None if sd is None else _curve(sd, where, "standard deviations")
    if band is not None and (band.shape != array.shape or (band < 0).any()):
        what = f"standard deviations have shape {band.shape} and minimum {band.min():g}"
        raise ModelError(what, where=where, allowed=f"{len(array)} non-negative numbers")
    return Reference(REFERENCES[name].kind, REFERENCES[name].name, label, array, band)


def _curve(values: Any, where: str, what: str) -> Array:
    array = real_array(values, where, what)
    if array.ndim not in (1, 2) or not array.size or array.shape[-1] < MIN_CURVE_VALUES:
        allowed = f"(K,) over a stride, or (strides, K), with K of at least {MIN_CURVE_VALUES}"
        raise ModelError(f"have shape {array.shape}", argument=what, where=where, allowed=allowed)
    if not np.isfinite(array).all():
        raise ModelError("contain NaN or infinity", argument=what, where=where, allowed="finite numbers")
    return array

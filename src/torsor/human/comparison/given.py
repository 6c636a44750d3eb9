"""What a walk is compared with, in all the forms in which it may be given."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from torsor.base.archive import load_result
from torsor.base.arrays import Array
from torsor.base.checks import real_array
from torsor.base.errors import ModelError, listing
from torsor.base.files import reading_npz
from torsor.human.comparison.recorded import RecordedWalk, recorded_walk
from torsor.human.gait.references import LABELS, REFERENCES, Reference

ALLOWED = (
    "names of built-in references, files (.mot, .sto, .csv, .npz), a mapping {curve: values}, a Stride, what "
    "recorded_walk or torsor.human.measured returns, or a list of these"
)
CURVES = tuple(name for name in REFERENCES if "," not in name)
FEWEST = 3  # values of a curve over a stride


@runtime_checkable
class HasCurves(Protocol):
    """A walk that is a reference for others: a ``Stride``."""

    def as_reference(self) -> list[Reference]:
        """Return its curves."""
        ...


class Given(NamedTuple):
    """The ``references``, and ``notes`` about how recordings were read."""

    references: list[Reference]
    notes: list[str]


def given_references(given: Any, side: str, stride_of: Callable[[Any], HasCurves]) -> Given:
    """Return the references of ``Stride.likeness(references=...)``; None stands for all built-in ones.

    Recordings are cut into strides of a ``side``; ``stride_of`` makes a stride of a saved motion.
    """
    if given is None:
        return Given(list(REFERENCES.values()), [])
    several = given if isinstance(given, list) else [given]
    if not several:
        raise ModelError("an empty list", where="references", allowed=ALLOWED)
    found, seen = Given([], []), dict[str, int]()
    for each in several:
        own = _given(each, side, stride_of)
        sources = {each.source: each.source for each in own.references}
        for source in sources:
            seen[source] = seen.get(source, 0) + 1
            sources[source] += f" ({seen[source]})" if seen[source] > 1 else ""  # walk.mot (2)
        found.references.extend(each._replace(source=sources[each.source]) for each in own.references)
        found.notes.extend(own.notes)
    return found


def _given(each: Any, side: str, stride_of: Callable[[Any], HasCurves]) -> Given:
    """Return the references of one thing: a list or a tuple is several files of one recording."""
    if isinstance(each, str | Path):
        return _named(each, side, stride_of)
    if isinstance(each, Reference):
        return Given([each], [])
    if isinstance(each, RecordedWalk):
        return Given(list(each.curves.values()), list(each.notes))
    if isinstance(each, HasCurves):
        return Given(each.as_reference(), [])
    if isinstance(each, Mapping):
        return Given(_of_mapping(each, "given"), [])
    if isinstance(each, list | tuple):
        return _given(recorded_walk(*each, side=side), side, stride_of)
    if type(each).__module__.startswith(("torsor.human.measured", "torsor.human.recordings")):
        return _given(recorded_walk(each, side=side), side, stride_of)
    raise ModelError(f"found {type(each).__name__}", where="references", allowed=ALLOWED)


def _named(name: str | Path, side: str, stride_of: Callable[[Any], HasCurves]) -> Given:
    """Return the references of a built-in name, or of a file."""
    text = str(name)
    if text in REFERENCES:
        return Given([REFERENCES[text]], [])
    for source, label in LABELS.items():
        if text.lower() in (source, label.lower()):
            return Given([each for each in REFERENCES.values() if each.source == source], [])
    path = Path(name)
    if path.suffix.lower() == ".npz":
        return Given(_archived(path, stride_of), [])
    if not path.suffix and not path.is_file():
        allowed = f"a file, {', '.join(LABELS.values())}, or {listing(CURVES, like=text)}"
        raise ModelError(f"no reference {text!r}", value=text, where="references", allowed=allowed)
    return _given(recorded_walk(path, side=side), side, stride_of)


def _archived(path: Path, stride_of: Callable[[Any], HasCurves]) -> list[Reference]:
    """Return the curves of the stride or the walk in a .npz file, or those in arrays with the names of curves."""
    if not path.is_file():
        raise ModelError("no such file", where=str(path))
    with reading_npz(path, "curves of a walk") as arrays:
        own = {name: values for name, values in arrays.items() if name.removesuffix("_sd") in CURVES}
    if own:
        return _of_mapping(own, path.name)
    result = load_result(path)
    stride = result if isinstance(result, HasCurves) else stride_of(result)
    return [each._replace(source=path.name) for each in stride.as_reference()]


def _of_mapping(given: Mapping[Any, Any], label: str) -> list[Reference]:
    """Return the references of {curve: values (K,)}, {curve: (mean, sd)}, or {curve: strides (N, K)}."""
    if not given:
        raise ModelError("an empty mapping", where="references", allowed="{curve: values}")
    found = []
    for name, values in given.items():
        if isinstance(values, Reference):
            found.append(values)
        elif name in CURVES:
            sd = given.get(f"{name}_sd")
            if isinstance(values, tuple) and len(values) == 2 and np.ndim(values[0]) == 1:
                values, sd = values
            found.append(_of_values(name, values, sd, label))
        elif not (isinstance(name, str) and name.endswith("_sd") and name.removesuffix("_sd") in given):
            raise ModelError(f"no curve {name!r}", value=name, where=label, allowed=listing(CURVES, like=str(name)))
    return found


def _of_values(name: str, values: Any, sd: Any, label: str) -> Reference:
    where = f"{label}: {name}"
    array = _curve(values, where, "values")
    if array.ndim == 2:
        sd = array.std(axis=0, ddof=1) if len(array) > 1 else None
        array = array.mean(axis=0)
    band = None if sd is None else _curve(sd, where, "standard deviations")
    if band is not None and (band.shape != array.shape or (band < 0).any()):
        found = f"standard deviations have shape {band.shape}, the least is {band.min():g}"
        raise ModelError(found, where=where, allowed=f"{len(array)} numbers that are not negative")
    return Reference(REFERENCES[name].kind, REFERENCES[name].name, label, array, band)


def _curve(values: Any, where: str, what: str) -> Array:
    array = real_array(values, where, what)
    if array.ndim not in (1, 2) or not array.size or array.shape[-1] < FEWEST:
        allowed = f"(K,) over a stride, or (strides, K), with K of {FEWEST} or more"
        raise ModelError(f"have shape {array.shape}", argument=what, where=where, allowed=allowed)
    if not np.isfinite(array).all():
        raise ModelError("have NaN or infinity", argument=what, where=where, allowed="finite numbers")
    return array

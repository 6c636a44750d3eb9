"""Results on disk: self-contained .npz files (arrays, robot, settings) with a format version.

Files are not trusted: nothing is unpickled or decompressed, and the class that reads a file checks the names, shapes
and types of its arrays. The complete robot is stored as TOML text.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor._version import __version__
from torsor.base.errors import ModelError, listing, warn
from torsor.base.files import check_array, check_target, reading_npz, write_npz
from torsor.base.registry import names, register, registered

FORMAT = 2  # format 1: trajectories and motions without a header
_HEADER, _VERSION = "header", "torsor"
_FIGURES = ("figures", "seconds")  # scalars, which may be NaN: for example, a motion may have no objective
Arrays = dict[str, NDArray[Any]]


def register_result(kind: str, cls: type, words: str) -> None:
    """Register the class of a result kind, and its description for messages, such as "a trajectory"."""
    register("result", kind, (cls, words))


def result_kinds() -> tuple[str, ...]:
    """Return the kinds of results that a file can contain.

    Example:
        >>> "trajectory" in result_kinds()
        True
    """
    return names("result")


# Conversion of text to arrays


def as_bytes(text: str | bytes) -> NDArray[np.uint8]:
    """Return text as an array of bytes, which can be stored without pickling.

    Example:
        >>> as_bytes("arm").tolist()
        [97, 114, 109]
    """
    return np.frombuffer(text.encode() if isinstance(text, str) else text, dtype=np.uint8)


def as_text(array: NDArray[Any]) -> str:
    """Return the text in an array of bytes.

    Example:
        >>> as_text(as_bytes("arm"))
        'arm'
    """
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError(f"text has the type {array.dtype} and {array.ndim} axes; allowed: a row of bytes")
    return array.tobytes().decode()


# Files


@dataclass(frozen=True)
class Archive:
    """The content of a file: its ``kind``, ``arrays`` and their ``units`` by name, and ``settings``.

    ``format`` is the format version.

    Example:
        >>> inner = Archive("trajectory", {"q": np.zeros(2)}, {}).within("first/")
        >>> list(inner), Archive("list", {**inner}, {}).part("first/").arrays["q"].tolist()
        (['first/header', 'first/q'], [0.0, 0.0])
    """

    kind: str
    arrays: Mapping[str, Any]
    settings: Mapping[str, Any]
    units: Mapping[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    def within(self, prefix: str = "") -> dict[str, Any]:
        """Return all arrays, including the header, with a prefix added to their names."""
        header = {"kind": self.kind, "version": __version__, "settings": dict(self.settings), "units": dict(self.units)}
        named = {_HEADER: as_bytes(json.dumps(header)), **self.arrays}
        return {prefix + name: value for name, value in named.items()}

    def part(self, prefix: str) -> "Archive":
        """Return an archive of the arrays whose names begin with a prefix."""
        own = {name.removeprefix(prefix): array for name, array in self.arrays.items() if name.startswith(prefix)}
        return _archive(own, self.format)


def write_archive(path: Path, archive: Archive) -> None:
    """Write an archive atomically."""
    check_target(path)
    write_npz(path, {_VERSION: FORMAT, **archive.within()})


@contextmanager
def reading_archive(path: Path, kind: str = "") -> Iterator[Archive]:
    """Yield the archive in a file, which must be of ``kind`` if given; errors raised in the block name the file."""
    what = registered("result", kind)[1] if kind else "a Torsor result"
    with reading_npz(path, what) as result:
        check_array(result[_VERSION], (), "the format version", "iu")
        format = int(result.pop(_VERSION))
        if 1 <= format <= FORMAT:
            archive = _archive(result, format)
            if kind and archive.kind != kind:
                words = registered("result", archive.kind)[1]
                raise ValueError(f"it is {words}; fix: read it with torsor.load_result")
            yield archive
            if kind:
                _warn_of_nan(path, archive)
            return
    found_, fix = f"its format version is {format}", f"read it with a newer Torsor; this is {__version__}"
    raise ModelError(found_, where=path.name, allowed=f"1 to {FORMAT}", fix=fix)


def _warn_of_nan(path: Path, archive: Archive) -> None:
    """Warn if arrays contain NaN, unless NaN marks an undefined quantity (``Result.undefined``)."""
    undefined = {*_FIGURES, *getattr(registered("result", archive.kind)[0], "undefined", ())}
    counts = dict[str, tuple[int, int]]()
    for name, array in archive.arrays.items():
        if array.dtype.kind == "f" and name.rpartition("/")[2] not in undefined and np.isnan(array).any():
            counts[name] = int(np.isnan(array).sum()), array.size
    if counts:
        shares = listing([f"{name} ({count} of {size} values)" for name, (count, size) in counts.items()])
        fix = "leave these samples out, or compute the result again"
        warn(f"arrays contain NaN, as after a failed computation: {shares}", where=path.name, fix=fix)


def _archive(content: Arrays, format: int) -> Archive:
    if format == 1:  # the kind follows from the arrays
        return Archive("motion" if "x" in content else "trajectory", content, {}, format=format)
    header = json.loads(as_text(content[_HEADER]))
    kinds = {"kind": str, "settings": dict}
    if not isinstance(header, dict) or not all(isinstance(header.get(key), kind) for key, kind in kinds.items()):
        raise ValueError(f"its header does not name a result kind; allowed: {listing(result_kinds())}")
    if registered("result", header["kind"]) is None:
        known = f"allowed: {listing(result_kinds())}"
        raise ValueError(f"no installed package reads results of the kind {header['kind']!r}; {known}")
    arrays = {name: result for name, result in content.items() if name != _HEADER}
    return Archive(header["kind"], arrays, header["settings"], format=format)


def load_result(path: str | Path, **given: Any) -> Any:
    """Load a result from an .npz file that ``save`` wrote, with its robot, problem and settings.

    The file is self-contained: it needs no robot file or meshes, and can be read on any machine. ``given`` contains
    extra arguments for the result class: ``problem=`` for a motion whose problem contains Python functions, or
    ``robot=`` for a trajectory that should use an existing robot object. A ``ModelWarning`` names arrays that contain
    NaN. Files are not trusted; see docs/contribute/security.md.

    Example:
        >>> import tempfile
        >>> fall = torsor.simulate(torsor.library.planar_chain(1), duration=0.01)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fall.save(folder + "/fall.npz")
        ...     torsor.load_result(folder + "/fall.npz")
        <Trajectory of 'planar_chain': 11 samples, 0.01 s, done>
    """
    path = Path(path)
    if path.suffix.lower() != ".npz":
        fix = "use torsor.Trajectory.load(path, robot=...) to read a trajectory table" if path.suffix == ".csv" else ""
        raise ModelError(f"the suffix is {path.suffix!r}", value=path.suffix, where=path.name, allowed=".npz", fix=fix)
    with reading_archive(path) as archive:
        kind = archive.kind
    cls, _ = registered("result", kind)
    return cls.load(path, **given)

"""Results on disk: .npz files with everything in them (arrays, robot, settings), and the version of their format.

A file is read without trusting it: nothing is unpickled, nothing is unpacked, and the class that reads it checks names,
shapes and types of its arrays. The robot is kept whole, as the text of a TOML file.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.errors import ModelError, listing
from torsor.base.files import check_array, check_target, reading_npz, write_npz
from torsor.formats.toml.reading import parse_toml
from torsor.formats.toml.writing import toml_content
from torsor.mechanism import Mechanism
from torsor.robot.robot import Robot

FORMAT = 2  # 1: trajectories and motions, without a header
# The package and the class of each kind, and what it is in messages.
KINDS: Mapping[str, tuple[str, str, str]] = {
    "trajectory": ("torsor.simulation", "Trajectory", "a trajectory"),
    "rollout": ("torsor.simulation", "Rollout", "a rollout"),
    "motion": ("torsor.motion", "MotionResult", "a result of a motion problem"),
    "multistart": ("torsor.motion", "MotionMultistart", "results from random starts"),
    "sequence": ("torsor.motion", "MotionSequence", "a sequence of motions"),
    "retimed": ("torsor.motion", "Retimed", "a retimed motion"),
    "near_optimal_walks": ("torsor.human", "NearOptimalWalks", "walks from several starts"),
    "weights": ("torsor.motion", "WeightFit", "fitted weights of objectives"),
    "stride": ("torsor.human", "Stride", "a stride"),
    "printed_gait": ("torsor.human", "PrintedGait", "a printed gait"),
    "identification": ("torsor.identification", "Identified", "identified parameters"),
    "excitation": ("torsor.identification", "Excitation", "an excitation"),
    "workspace": ("torsor.robot.parallel", "Workspace", "a workspace"),
}
_HEADER, _VERSION = "header", "torsor"
Arrays = dict[str, NDArray[Any]]


def version() -> str:
    """Return the version of Torsor.

    Example:
        >>> version() == torsor.__version__
        True
    """
    return str(import_module("torsor").__version__)


# Text and robots as arrays


def as_bytes(text: str | bytes) -> NDArray[np.uint8]:
    """Return text as an array of bytes, which needs no pickle.

    Example:
        >>> as_bytes("arm").tolist()
        [97, 114, 109]
    """
    return np.frombuffer(text.encode() if isinstance(text, str) else text, dtype=np.uint8)


def as_text(array: NDArray[Any]) -> str:
    """Return the text of an array of bytes.

    Example:
        >>> as_text(as_bytes("arm"))
        'arm'
    """
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError(f"text has the type {array.dtype} and {array.ndim} axes; allowed: a row of bytes")
    return array.tobytes().decode()


def robot_text(robot: Mechanism) -> str:
    """Return a robot as the text of a TOML file, from which ``robot_of`` makes an equal robot.

    Example:
        >>> arm = torsor.library.two_link()
        >>> robot_of(robot_text(arm)) == arm
        True
    """
    return toml_content(robot).decode()


def robot_of(text: str) -> Robot:
    """Return the robot of ``robot_text``; its meshes are not opened."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these warnings were given when the robot was made
        return Robot.of(parse_toml(text.encode(), "robot", strict=False))


# Files


@dataclass(frozen=True)
class Archive:
    """The content of a file: its ``kind``, ``arrays`` by name with their ``units``, and ``settings``.

    ``format`` is the version of the format.

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

    @property
    def robot(self) -> Robot:
        """The robot in it."""
        return robot_of(as_text(self.arrays["robot"]))

    def within(self, prefix: str = "") -> dict[str, Any]:
        """Return all arrays, the header among them, under names that begin with a prefix."""
        header = {"kind": self.kind, "version": version(), "settings": dict(self.settings), "units": dict(self.units)}
        named = {_HEADER: as_bytes(json.dumps(header)), **self.arrays}
        return {prefix + name: value for name, value in named.items()}

    def part(self, prefix: str) -> "Archive":
        """Return the archive whose arrays have names that begin with a prefix."""
        own = {name.removeprefix(prefix): each for name, each in self.arrays.items() if name.startswith(prefix)}
        return _archive(own, self.format)


def write_archive(path: Path, archive: Archive) -> None:
    """Write an archive, whole or not at all."""
    check_target(path)
    write_npz(path, {_VERSION: FORMAT, **archive.within()})


@contextmanager
def reading_archive(path: Path, kind: str = "") -> Iterator[Archive]:
    """Give the archive in a file, which must be of a ``kind``, if one is given; errors within the block name it."""
    what = KINDS[kind][2] if kind else "a result of Torsor"
    with reading_npz(path, what) as found:
        check_array(found[_VERSION], (), "the version of its format", "iu")
        format = int(found.pop(_VERSION))
        if 1 <= format <= FORMAT:
            archive = _archive(found, format)
            if kind and archive.kind != kind:
                raise ValueError(f"it is {KINDS[archive.kind][2]}; fix: read it with torsor.load_result")
            yield archive
            return
    found_, fix = f"its format has the version {format}", f"read it with a newer Torsor; this is {version()}"
    raise ModelError(found_, where=path.name, allowed=f"1 to {FORMAT}", fix=fix)


def _archive(found: Arrays, format: int) -> Archive:
    if format == 1:  # the kind is known from the arrays
        return Archive("motion" if "x" in found else "trajectory", found, {}, format=format)
    header = json.loads(as_text(found[_HEADER]))
    if (
        not isinstance(header, dict)
        or header.get("kind") not in list(KINDS)
        or not isinstance(header.get("settings"), dict)
    ):
        raise ValueError(f"its header names no kind of result; allowed: {listing(KINDS)}")
    arrays = {name: each for name, each in found.items() if name != _HEADER}
    return Archive(header["kind"], arrays, header["settings"], format=format)


def load_result(path: str | Path, **given: Any) -> Any:
    """Return the result in a .npz file that ``save`` wrote, with its robot, its problem and its settings.

    The file needs nothing else: no robot file, no meshes, not the machine that wrote it. ``given`` are arguments of the
    class of the result: ``problem=`` for a motion whose problem has functions of Python, ``robot=`` for a trajectory of
    another robot object. Files are not trusted: see docs/security.md.

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
        fix = "torsor.Trajectory.load(path, robot=...) reads the table of a trajectory" if path.suffix == ".csv" else ""
        raise ModelError(f"the suffix is {path.suffix!r}", value=path.suffix, where=path.name, allowed=".npz", fix=fix)
    with reading_archive(path) as archive:
        kind = archive.kind
    module, name, _ = KINDS[kind]
    return getattr(import_module(module), name).load(path, **given)

"""For all writers: files that are written completely or not at all, and the warning about omitted properties."""

import math
import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torsor.errors import ModelError, describe, listing, warn
from torsor.files import replacing
from torsor.mechanism import Joint, Mechanism, Wheel


def write_file(path: str | Path, suffixes: tuple[str, ...], content: Callable[[], bytes]) -> None:
    """Write a file atomically: if making or writing the content fails, the old file stays as it was.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_file(folder + "/arm.toml", (".toml",), lambda: b"torsor = 1")
        ...     [file.name for file in Path(folder).iterdir()]
        ['arm.toml']
    """
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        found, fix = f"the suffix is {path.suffix!r}", f"name it {path.stem}{suffixes[0]}"
        raise ModelError(describe(found, where=path.name, allowed=", ".join(suffixes), fix=fix))
    if not path.parent.is_dir():
        raise ModelError(describe("its folder does not exist", where=str(path), fix="make the folder first"))
    with replacing(path) as part:
        part.write_bytes(content())


def relative_file(path: Path, file: str) -> str:
    """Return the name of a mesh file relative to the folder of ``path``, so that both can be moved together."""
    try:
        return Path(os.path.relpath(file, path.resolve().parent)).as_posix()
    except ValueError:  # on another drive
        return str(Path(file).resolve())


class Omissions:
    """Properties that a format cannot express, with the names of their parts; one warning reports all of them.

    Example:
        >>> omissions = Omissions()
        >>> omissions.note("velocity limits", "elbow")
        >>> omissions.note("effort limits", "elbow", False)
        >>> dict(omissions.found)
        {'velocity limits': ['elbow']}
    """

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = defaultdict(list)

    def note(self, what: str, name: str, condition: Any = True) -> None:
        """Record, if the condition holds, that a part has something that is not written."""
        if condition and name not in self.found[what]:
            self.found[what].append(name)

    def common(self, joint: Joint, key: str) -> float:
        """Return the number that all velocities of a joint have; no limit or 0, and a note, if they differ."""
        values = np.ravel(getattr(joint, key))
        if (values == values[0]).all():
            return float(values[0])
        self.note(f"{key} that differs between the velocities of a joint", joint.name)
        return math.inf if key.endswith("limit") else 0.0

    def without_wheels(self, mechanism: Mechanism) -> Mechanism:
        """Return a mechanism without its wheels, and note them: no format but TOML has rolling without slipping."""
        wheels = [loop for loop in mechanism.loops if isinstance(loop, Wheel)]
        for wheel in wheels:
            self.note("wheels that roll without slipping", wheel.name)
        return replace(mechanism, loops=tuple(loop for loop in mechanism.loops if loop not in wheels))

    def report(self, source: str, format: str) -> None:
        """Warn of all that is not written, if there is anything."""
        lines = [f"{what} ({listing(names, most=4)})" for what, names in self.found.items()]
        if lines:
            warn(describe(f"{format} cannot express {'; '.join(lines)}", where=source))

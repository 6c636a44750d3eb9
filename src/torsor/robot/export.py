"""A robot's algorithms as C99 source, for controllers that have no Python."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import casadi as ca

from torsor.compiler.c import source as c_source
from torsor.dynamics import ALGORITHMS
from torsor.errors import ModelError, describe


class _Robot(Protocol):
    """The part of the interface of ``Robot`` that is used here."""

    @property
    def name(self) -> str: ...

    def function(self, name: str, place: str | int | None = None) -> ca.Function: ...


def export_c(
    robot: _Robot,
    path: str | Path,
    names: Sequence[str] = ("inverse_dynamics",),
    dtype: str = "float64",
    place: str | int | None = None,
    library: str = "torsor_kernels",
    prefix: str = "",
) -> list[Path]:
    """Write algorithms of a robot as C99 into a folder and return the paths: header, source, CMakeLists.txt.

    ``names`` are those of the robot's methods. An algorithm of one link or frame is written as "jacobian:hand" and
    becomes the C function ``jacobian_hand``, or as "jacobian" for the link or frame ``place``. ``dtype`` is float64 or
    float32. ``library`` names the files, and the names of the C functions begin with ``prefix``. The code does not
    allocate, has no state and calls libm only.

    Example:
        >>> import tempfile
        >>> robot = torsor.library.two_link()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     header, *_ = export_c(robot, folder, ["inverse_dynamics", "jacobian:link2"])
        ...     [line for line in header.read_text().splitlines() if "jacobian_link2(" in line]
        ['void jacobian_link2(const double q[2], double out[12]);']
    """
    functions: dict[str, ca.Function] = {}
    for name in (names,) if isinstance(names, str) else names:
        title, function = _function(robot, name, place)
        if prefix + title in functions:
            raise ModelError(
                describe(f"{name!r} is named twice", where=robot.name, allowed="each name once", fix="leave one out")
            )
        functions[prefix + title] = function
    if not functions:
        raise ModelError(
            describe("no algorithm is named", where=robot.name, allowed=_allowed(), fix="name one or more")
        )
    return c_source.export_c(functions, path, dtype, library)


def _function(robot: _Robot, name: str, place: str | int | None) -> tuple[str, ca.Function]:
    """Return the name in C of an algorithm, and its CasADi function."""
    algorithm, colon, own_place = name.partition(":") if isinstance(name, str) else ("", "", "")
    if algorithm not in ALGORITHMS:
        raise ModelError(
            describe(f"no algorithm {name!r}", where=robot.name, allowed=_allowed(), fix="correct the name")
        )
    if not ALGORITHMS[algorithm].at_place:
        if colon:
            found = f"{name!r}: {algorithm} takes no link or frame"
            raise ModelError(describe(found, where=robot.name, fix=f"write {algorithm!r}"))
        return algorithm, robot.function(algorithm)
    if colon:
        return f"{algorithm}_{own_place}", robot.function(algorithm, own_place)
    if place is None:
        found, fix = f"{name!r} needs the name of a link or frame", f"write '{algorithm}:LINK', or give place"
        raise ModelError(describe(found, where=robot.name, allowed="a link or named frame", fix=fix))
    return algorithm, robot.function(algorithm, place)


def _allowed() -> str:
    """Return the allowed names of algorithms, for error messages."""
    return ", ".join(f"{name}:LINK" if each.at_place else name for name, each in ALGORITHMS.items())

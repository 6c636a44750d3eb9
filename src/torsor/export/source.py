"""A robot's algorithms as source: C99 and C++ for controllers that have no Python, JavaScript for web pages."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import casadi as ca

from torsor.base.errors import ModelError
from torsor.compiler import export_c, export_cpp, export_js
from torsor.compiler.source import About
from torsor.dynamics import ALGORITHMS
from torsor.dynamics.algorithms import algorithm_names
from torsor.export.about import about_parallel, about_robot
from torsor.robot.method_names import ALGORITHM_OF
from torsor.robot.parallel import ParallelRobot
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

Exportable = Robot | Parametric | ParallelRobot  # type: ignore[type-arg]  # a class, for isinstance


def c(
    robot: Exportable,
    folder: str | Path,
    names: Sequence[str] | None = None,
    dtype: str = "float64",
    place: str | int | None = None,
    name: str = "torsor_kernels",
    prefix: str = "",
    loops: str | None = None,
    positions: bool = False,
    overwrite: bool = True,
) -> list[Path]:
    """Write algorithms as self-contained C99 into a folder and return the paths: header, source, CMakeLists.txt.

    ``robot`` is a ``Robot``, ``Parametric`` (its numbers p are the last input of each function) or ``ParallelRobot``.
    ``names`` are names of algorithms, as in ``robot.function``, by default the inverse dynamics (with loops,
    ``constrained_inverse_dynamics``); an algorithm of one link or frame is written as "jacobian:hand", or as "jacobian"
    for the link or frame ``place``. ``loops="open"`` as in ``robot.function``. ``name`` is the name of the files and of
    the library, ``prefix`` goes before the names of the C functions: several robots in one program need both. The code
    allocates nothing, has no state and calls libm only: it is meant for controllers. With ``overwrite=False`` an
    existing file is an error; a file that Torsor did not write is never replaced.

    Functions of a parallel robot take pose, twist and so on as its methods do, and after the pose the positions q of
    all legs, unless they follow from it in closed form (or with ``positions=True``). Singular poses are not refused.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in torsor.export.c(torsor.library.two_link(), folder, ["poses"], name="arm")]
        ['arm.h', 'arm.c', 'CMakeLists.txt']
    """
    functions, about = _functions(robot, names, place, loops, positions, prefix)
    return export_c(functions, folder, dtype, name, about, overwrite)


def cpp(
    robot: Exportable,
    folder: str | Path,
    names: Sequence[str] | None = None,
    dtype: str = "float64",
    place: str | int | None = None,
    name: str = "torsor_kernels",
    prefix: str = "",
    loops: str | None = None,
    positions: bool = False,
    overwrite: bool = True,
) -> list[Path]:
    """Write algorithms as C99 with a C++17 header into a folder: NAME.hpp and the files of ``c``.

    Arguments as of ``c``. The namespace ``name`` has a function for each algorithm, on views of fixed length
    (arrays, ``std::array``, ``std::span``, vectors of Eigen); ``name::robot`` has names, units, limits, gravity.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in torsor.export.cpp(torsor.library.two_link(), folder, name="arm")]
        ['arm.hpp', 'arm.h', 'arm.c', 'CMakeLists.txt']
    """
    functions, about = _functions(robot, names, place, loops, positions, prefix)
    return export_cpp(functions, folder, dtype, name, about, overwrite, prefix)


def js(
    robot: Exportable,
    folder: str | Path,
    names: Sequence[str] | None = None,
    dtype: str = "float64",
    place: str | int | None = None,
    name: str = "torsor_kernels",
    prefix: str = "",
    loops: str | None = None,
    positions: bool = False,
    overwrite: bool = True,
) -> list[Path]:
    """Write algorithms as an ES module into a folder and return the paths: NAME.js, NAME.d.ts, package.json.

    Arguments as of ``c``. The module needs nothing else: ``inverseDynamics(q, v, a, out)`` for one state and
    ``inverseDynamicsRows`` for many take and return typed arrays; ``robot`` has names, units and limits.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in torsor.export.js(torsor.library.two_link(), folder, name="arm")]
        ['arm.js', 'arm.d.ts', 'package.json']
    """
    functions, about = _functions(robot, names, place, loops, positions, prefix)
    return export_js(functions, folder, dtype, name, about, overwrite)


def _functions(
    robot: Exportable,
    names: Sequence[str] | None,
    place: str | int | None,
    loops: str | None,
    positions: bool,
    prefix: str,
) -> tuple[dict[str, ca.Function], About]:
    """Return the functions of algorithms by their names in exported source, and what to say of them."""
    if not isinstance(robot, Exportable):
        raise ModelError(argument="robot", value=robot, where="export", allowed="a Robot, Parametric or ParallelRobot")
    listed = (names,) if isinstance(names, str) else names
    if isinstance(robot, ParallelRobot):
        if place is not None or loops is not None:
            found = f"{'loops' if place is None else 'place'} is not supported for a parallel robot"
            raise ModelError(found, where=robot.name, fix="robot.as_robot() has links and loops")
        chosen = ("inverse_dynamics",) if listed is None else listed
        given = [(each, each, robot.function(each, positions)) for each in chosen]
        named = _with_prefix(robot.name, given, ", ".join(robot._algorithms), prefix)
        return {title: function for title, (_, function) in named.items()}, about_parallel(robot, chosen, prefix)
    if positions:
        found, fix = "is for parallel robots only", "leave positions out"
        raise ModelError(found, argument="positions", where=robot.name, fix=fix)
    if listed is None:
        listed = ("constrained_inverse_dynamics" if robot.loops and loops is None else "inverse_dynamics",)
    given = [_function(robot, each, place, loops) for each in listed]
    named = _with_prefix(robot.name, given, algorithm_names(), prefix)
    titles = [(title, algorithm) for title, (algorithm, _) in named.items()]
    functions = {title: function for title, (_, function) in named.items()}
    if isinstance(robot, Robot):
        return functions, about_robot(robot, titles)
    return functions, about_robot(robot.robot, titles, dict(zip(robot.names, robot.values.tolist(), strict=True)))


Named = dict[str, tuple[str, ca.Function]]
"""Functions by their names in exported source, each with the name of its algorithm."""


def _with_prefix(where: str, functions: Sequence[tuple[str, str, ca.Function]], allowed: str, prefix: str) -> Named:
    """Return functions, given as (name, algorithm, function), by their names with a prefix; there must be one."""
    if not isinstance(prefix, str) or not re.fullmatch(r"([A-Za-z][A-Za-z0-9_]*)?", prefix):
        raise ModelError(argument="prefix", value=prefix, where=where, allowed="letters, digits and _, a letter first")
    named: Named = {}
    for title, algorithm, function in functions:
        if prefix + title in named:
            found, allowed = f"{title!r} is named twice", "each name once"
            raise ModelError(found, value=title, where=where, allowed=allowed, fix="leave one out")
        named[prefix + title] = algorithm, function
    if not named:
        raise ModelError("no algorithm is named", where=where, allowed=allowed, fix="name one or more")
    return named


def _function(
    robot: Robot | Parametric[Any], name: str, place: str | int | None, loops: str | None
) -> tuple[str, str, ca.Function]:
    """Return the name of an exported function, that of its algorithm, and the CasADi function."""
    algorithm, colon, own_place = name.partition(":") if isinstance(name, str) else ("", "", "")
    algorithm = ALGORITHM_OF.get(algorithm, algorithm)
    if algorithm not in ALGORITHMS:
        found, allowed = f"no algorithm {name!r}", algorithm_names(name)
        raise ModelError(found, value=name, where=robot.name, allowed=allowed, fix="correct the name")
    if not ALGORITHMS[algorithm].at_place:
        if colon:
            found = f"{name!r}: {algorithm} takes no link or frame"
            raise ModelError(found, value=name, where=robot.name, fix=f"write {algorithm!r}")
        return algorithm, algorithm, robot.function(algorithm, loops=loops)
    if colon:
        return f"{algorithm}_{own_place}", algorithm, robot.function(algorithm, own_place, loops=loops)
    if place is None:
        found, fix = f"{name!r} needs the name of a link or frame", f"write '{algorithm}:LINK', or give place"
        raise ModelError(found, value=name, where=robot.name, allowed="a link or named frame", fix=fix)
    return algorithm, algorithm, robot.function(algorithm, place, loops=loops)

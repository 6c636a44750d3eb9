"""Robot algorithms as source code: C99 and C++ for controllers, and JavaScript for web pages."""

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
from torsor.robot.about import about_parallel, about_robot
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

    ``robot`` is a ``Robot``, ``Parametric`` (its parameters p are the last input of each function) or
    ``ParallelRobot``. ``names`` contains algorithm names, as in ``robot.function``. The default is inverse dynamics
    (for robots with loops, "closed.inverse_dynamics"). An algorithm for one link or frame is named as "jacobian:hand",
    or as "jacobian" with the link or frame in ``place``. ``dtype`` is float64 or float32. ``loops="open"`` has the same
    meaning as in ``robot.function``. ``name`` is the file and library name, and ``prefix`` precedes the names of the C
    functions. Both must be unique among the robots of a program. The code is suitable for real-time controllers: it
    allocates no memory, has no state and depends only on libm. With ``overwrite=False``, an existing file raises
    ModelError. Files that Torsor did not write are never replaced.

    Functions of a parallel robot take the same arguments as its methods, such as the pose and the twist. The leg
    positions q are an argument after the pose if they do not follow from the pose in closed form, or if ``positions``
    is True. Singular poses are not detected.

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
    """Write algorithms as C99 with a C++17 header into a folder: NAME.hpp and the files that ``c`` writes.

    The arguments are the same as for ``c``. The namespace ``name`` contains a function for each algorithm, which takes
    fixed-length views (arrays, ``std::array``, ``std::span``, Eigen vectors). ``name::robot`` contains names, units,
    limits and gravity.

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

    The arguments are the same as for ``c``. The module has no dependencies. ``inverseDynamics(q, v, a, out)`` for one
    state and ``inverseDynamicsRows(...)`` for many states take and return typed arrays. ``robot`` contains names, units
    and limits.

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
    """Return the functions of algorithms by their exported names, and their description."""
    if not isinstance(robot, Exportable):
        raise ModelError(argument="robot", value=robot, where="export", allowed="a Robot, Parametric or ParallelRobot")
    listed = (names,) if isinstance(names, str) else names
    if isinstance(robot, ParallelRobot):
        if place is not None or loops is not None:
            message = f"{'loops' if place is None else 'place'} is not supported for a parallel robot"
            raise ModelError(message, where=robot.name, fix="export robot.as_robot(), which has links and loops")
        chosen = ("inverse_dynamics",) if listed is None else listed
        functions_by_name = [(each, each, robot.function(each, positions)) for each in chosen]
        named = _with_prefix(robot.name, functions_by_name, ", ".join(robot._algorithms), prefix)
        return {title: function for title, (_, function) in named.items()}, about_parallel(robot, chosen, prefix)
    if positions:
        message, fix = "is supported for parallel robots only", "omit `positions`"
        raise ModelError(message, argument="positions", where=robot.name, fix=fix)
    if listed is None:
        listed = ("constrained_inverse_dynamics" if robot.loops and loops is None else "inverse_dynamics",)
    functions_by_name = [_function(robot, each, place, loops) for each in listed]
    named = _with_prefix(robot.name, functions_by_name, algorithm_names(), prefix)
    titles = [(title, algorithm) for title, (algorithm, _) in named.items()]
    functions = {title: function for title, (_, function) in named.items()}
    if isinstance(robot, Robot):
        return functions, about_robot(robot, titles)
    return functions, about_robot(robot.robot, titles, dict(zip(robot.names, robot.values.tolist(), strict=True)))


Named = dict[str, tuple[str, ca.Function]]
"""Functions by exported name, each with its algorithm name."""


def _with_prefix(where: str, functions: Sequence[tuple[str, str, ca.Function]], allowed: str, prefix: str) -> Named:
    """Return the functions (name, algorithm, function) by prefixed name. There must be at least one."""
    if not isinstance(prefix, str) or not re.fullmatch(r"([A-Za-z][A-Za-z0-9_]*)?", prefix):
        raise ModelError(
            argument="prefix", value=prefix, where=where, allowed="letters, digits and _, starting with a letter"
        )
    named: Named = {}
    for title, algorithm, function in functions:
        if prefix + title in named:
            message, allowed = f"{title!r} is named twice", "each name once"
            raise ModelError(message, value=title, where=where, allowed=allowed, fix="remove one")
        named[prefix + title] = algorithm, function
    if not named:
        raise ModelError("no algorithm is selected", where=where, allowed=allowed, fix="pass one or more names")
    return named


def _function(
    robot: Robot | Parametric[Any], name: str, place: str | int | None, loops: str | None
) -> tuple[str, str, ca.Function]:
    """Return the exported function name, the algorithm name, and the CasADi function."""
    algorithm, colon, own_place = name.partition(":") if isinstance(name, str) else ("", "", "")
    algorithm = ALGORITHM_OF.get(algorithm, algorithm)
    if algorithm not in ALGORITHMS:
        message, allowed = f"there is no algorithm {name!r}", algorithm_names(name)
        raise ModelError(message, value=name, where=robot.name, allowed=allowed, fix="correct the name")
    if not ALGORITHMS[algorithm].at_place:
        if colon:
            message = f"{name!r}: {algorithm} does not take a link or frame"
            raise ModelError(message, value=name, where=robot.name, fix=f"write {algorithm!r}")
        return algorithm, algorithm, robot.function(algorithm, loops=loops)
    if colon:
        return f"{algorithm}_{own_place}", algorithm, robot.function(algorithm, own_place, loops=loops)
    if place is None:
        message, fix = f"{name!r} needs the name of a link or frame", f"write '{algorithm}:LINK', or pass `place`"
        raise ModelError(message, value=name, where=robot.name, allowed="a link or named frame", fix=fix)
    return algorithm, algorithm, robot.function(algorithm, place, loops=loops)

"""A robot's algorithms as source: C99 and C++ for controllers that have no Python, JavaScript for web pages."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import casadi as ca

from torsor.base.errors import ModelError
from torsor.compiler import c as c_source
from torsor.compiler import c as cpp_source
from torsor.compiler import js as js_source
from torsor.compiler.source import About
from torsor.dynamics import ALGORITHMS
from torsor.dynamics.algorithms import algorithm_names
from torsor.mechanism import Mechanism
from torsor.mechanism.loops import Closure
from torsor.robot.about import about_robot


class _Robot(Protocol):
    """The part of the interface of ``Robot`` and of ``Parametric`` that is used here."""

    @property
    def name(self) -> str: ...

    @property
    def loops(self) -> Sequence[Closure]: ...

    def function(self, name: str, place: str | int | None = None, *, loops: str | None = None) -> ca.Function: ...


def export_c(
    robot: _Robot,
    path: str | Path,
    names: Sequence[str] | None = None,
    dtype: str = "float64",
    place: str | int | None = None,
    library: str = "torsor_kernels",
    prefix: str = "",
    loops: str | None = None,
    overwrite: bool = True,
) -> list[Path]:
    """Write algorithms of a robot as C99 into a folder and return the paths: header, source, CMakeLists.txt.

    ``names`` are those of the robot's methods, by default its inverse dynamics: ``constrained_inverse_dynamics`` of a
    robot with loops, unless ``loops`` is "open", which stands for the tree that is left when they are cut. An algorithm
    of one link or frame is written as "jacobian:hand" and becomes the C function ``jacobian_hand``, or as "jacobian"
    for the link or frame ``place``. ``dtype`` is float64 or float32. ``library`` names the files, and the names of the
    C functions begin with ``prefix``. The code does not allocate, has no state and calls libm only. Functions of a
    parametric robot take its numbers as their last input, ``p``.

    Example:
        >>> import tempfile
        >>> robot = torsor.library.two_link()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     header, *_ = export_c(robot, folder, ["inverse_dynamics", "jacobian:link2"])
        ...     [line for line in header.read_text().splitlines() if "jacobian_link2(" in line]
        ['void jacobian_link2(const double q[2], double out[12]);']
    """
    named = _named(robot, names, place, loops, prefix)
    functions = {title: function for title, (_, function) in named.items()}
    return c_source.export_c(functions, path, dtype, library, _about(robot, named), overwrite)


def export_cpp(
    robot: _Robot,
    path: str | Path,
    names: Sequence[str] | None = None,
    dtype: str = "float64",
    place: str | int | None = None,
    library: str = "torsor_kernels",
    prefix: str = "",
    loops: str | None = None,
    overwrite: bool = True,
) -> list[Path]:
    """Write algorithms of a robot as C99 with a header of C++17 into a folder: NAME.hpp and the files of ``export_c``.

    Arguments as of ``export_c``. The functions of the header are in the namespace ``library``, without ``prefix``, and
    take views of fixed length; names, units, limits and gravity are constants in the namespace ``library::robot``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     header, *_ = export_cpp(torsor.library.two_link(), folder, ["gravity_force"])
        ...     [line for line in header.read_text().splitlines() if "gravity_force(View" in line][0]
        'inline void gravity_force(View<const Scalar, 2> q, View<Scalar, 2> out) noexcept'
    """
    named = _named(robot, names, place, loops, prefix)
    functions = {title: function for title, (_, function) in named.items()}
    return cpp_source.export_cpp(functions, path, dtype, library, _about(robot, named), overwrite, prefix)


def export_js(
    robot: _Robot,
    path: str | Path,
    names: Sequence[str] | None = None,
    dtype: str = "float64",
    place: str | int | None = None,
    library: str = "torsor_kernels",
    prefix: str = "",
    loops: str | None = None,
    overwrite: bool = True,
) -> list[Path]:
    """Write algorithms of a robot as an ES module into a folder: module, TypeScript declarations, package.json.

    Arguments as of ``export_c``; the functions have names in camel case (``inverseDynamics``, ``jacobianHand``), and
    the names, units and limits of the robot are the exported constant ``robot``.

    Example:
        >>> import tempfile
        >>> robot = torsor.library.two_link()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     module, *_ = export_js(robot, folder, ["jacobian:link2"])
        ...     [line for line in module.read_text().splitlines() if "function jacobianLink2(" in line]
        ['export function jacobianLink2(q, out) {']
    """
    named = _named(robot, names, place, loops, prefix)
    functions = {title: function for title, (_, function) in named.items()}
    return js_source.export_js(functions, path, dtype, library, _about(robot, named), overwrite)


Named = dict[str, tuple[str, ca.Function]]
"""Functions by their names in exported source, each with the name of its algorithm."""


def _named(
    robot: _Robot, names: Sequence[str] | None, place: str | int | None, loops: str | None, prefix: str
) -> Named:
    """Return the functions of algorithms; by default the inverse dynamics, of closed mechanisms the constrained one."""
    if names is None:
        names = ("constrained_inverse_dynamics" if robot.loops and loops is None else "inverse_dynamics",)
    given = [_function(robot, name, place, loops) for name in ((names,) if isinstance(names, str) else names)]
    return with_prefix(robot.name, given, algorithm_names(), prefix)


def with_prefix(where: str, functions: Sequence[tuple[str, str, ca.Function]], allowed: str, prefix: str) -> Named:
    """Return functions of the robot ``where``, given as (name, algorithm, function), by their names with a prefix.

    ``allowed`` are names of algorithms for the error if there is none.
    """
    if not isinstance(prefix, str) or not re.fullmatch(r"([A-Za-z][A-Za-z0-9_]*)?", prefix):
        raise ModelError(argument="prefix", value=prefix, where=where, allowed="letters, digits and _, a letter first")
    named: Named = {}
    for title, algorithm, function in functions:
        if prefix + title in named:
            raise ModelError(
                f"{title!r} is named twice", value=title, where=where, allowed="each name once", fix="leave one out"
            )
        named[prefix + title] = algorithm, function
    if not named:
        raise ModelError("no algorithm is named", where=where, allowed=allowed, fix="name one or more")
    return named


def _about(robot: _Robot, named: Named) -> About:
    titles = [(title, algorithm) for title, (algorithm, _) in named.items()]
    if isinstance(robot, Mechanism):
        return about_robot(robot, titles)
    parametric: Any = robot  # the class ``Parametric``, as ``Robot`` itself, is defined above this file
    return about_robot(parametric.robot, titles, dict(zip(parametric.names, parametric.values.tolist(), strict=True)))


def _function(robot: _Robot, name: str, place: str | int | None, loops: str | None) -> tuple[str, str, ca.Function]:
    """Return the name of an exported function, that of its algorithm, and the CasADi function."""
    algorithm, colon, own_place = name.partition(":") if isinstance(name, str) else ("", "", "")
    if algorithm not in ALGORITHMS:
        raise ModelError(
            f"no algorithm {name!r}",
            value=name,
            where=robot.name,
            allowed=algorithm_names(name),
            fix="correct the name",
        )
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

"""Selection of the reader and writer of a file, by its suffix and, for XML, by its root element."""

import ast
import importlib
import itertools
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.checks import MAX_NUMBER, flag
from torsor.base.errors import ModelError, listing, missing, warn
from torsor.base.faults import StopReadingError, all_faults
from torsor.base.files import check_file, check_target
from torsor.formats.meshes.mesh_files import USD_SUFFIXES, split_prim
from torsor.formats.search_path import SEARCH_FIX, Finder, searching
from torsor.formats.xml import Element, parse_xml, parse_xml_text
from torsor.mechanism import Mechanism

# Robots by name from the package ``robot_descriptions``: ``robot_descriptions:panda_description``.
#
# Each name is a module of that package, which contains the path of a file. Its first import downloads the robot.

SCHEME = "robot_descriptions:"
_PATHS = ("URDF_PATH", "MJCF_PATH", "XACRO_PATH")
_FOLDERS = ("PACKAGE_PATH", "REPOSITORY_PATH")


def is_description(path: str | PathLike[str]) -> bool:
    """Return whether a name refers to a ``robot_descriptions`` module instead of a file."""
    return str(path).startswith(SCHEME)


def described_robot(name: str) -> tuple[Path, dict[str, object], list[str]]:
    """Return the file of a ``robot_descriptions`` robot, its xacro arguments and its package folders."""
    short = name.removeprefix(SCHEME)
    try:
        package = importlib.import_module("robot_descriptions")
    except ImportError:
        raise missing("robots by name need robot_descriptions", "robots", where=name, instead="pass a file") from None
    if not re.fullmatch(r"[a-zA-Z]\w*", short):
        allowed = "a name such as panda_description"
        raise ModelError(f"no description {short!r}", value=short, where=name, allowed=allowed)
    try:
        with redirect_stdout(sys.stderr):  # the package reports its downloads there
            module = importlib.import_module(f"robot_descriptions.{short}")
    except ModuleNotFoundError as error:
        if error.name != f"robot_descriptions.{short}":
            raise ModelError(f"it needs the package {error.name!r}", value=error.name, where=name) from None
        known = [item.stem for folder in package.__path__ for item in Path(folder).glob("[a-z]*_description.py")]
        near = get_close_matches(short, known, 1) or get_close_matches(f"{short}_description", known, 1)
        fix = f"write {SCHEME}{near[0]}" if near else "run `robot_descriptions list` for all names"
        raise ModelError(f"no description {short!r}", value=short, where=name, fix=fix) from None
    except Exception as error:  # git raises many kinds of errors
        text = " ".join(str(error).split())[:300]
        fix = "check the connection, or pass a file"
        raise ModelError(f"the download failed: {text}", where=name, fix=fix) from None
    path = next((getattr(module, key) for key in _PATHS if hasattr(module, key)), None)
    if path is None:
        raise ModelError("it has no robot file", where=name, allowed=", ".join(_PATHS))
    folders = [str(getattr(module, key)) for key in _FOLDERS if hasattr(module, key)]
    folders += [str(Path(folder).parent) for folder in folders]  # packages are searched for in the parent folder
    folders += [str(folder) for folder in getattr(module, "XACRO_PACKAGE_PATHS", {}).values()]
    arguments = dict(getattr(module, "XACRO_ARGS", {})) if path == getattr(module, "XACRO_PATH", None) else {}
    return Path(path), arguments, [folder for folder in dict.fromkeys(folders) if Path(folder).is_dir()]


# xacro: macros that the package ``xacro`` (extra ``xacro``) expands to URDF or SDF.
#
# Expressions in such a file are Python code, from which the package hides Python's built-in functions. Names with two
# underscores and those of stack frames, through which an expression could reach these functions, are rejected here.
# This is not a sandbox: a .xacro file can use any time and memory, so it should come from a trusted source.

MAX_MACRO_CALLS = 5_000
_ONE_AT_A_TIME = threading.Lock()  # the package keeps its state in global variables
_ARGUMENTS = (str, bool, int, float)
# Names without underscores through which an expression could reach names with underscores, or its callers.
_LEADING_OUT = ("vars", "mro", "gi_frame", "cr_frame", "ag_frame", "tb_frame", "f_back", "f_builtins", "f_globals")


def expanded(path: Path, arguments: Mapping[str, object]) -> Element:
    """Return the root element of an expanded .xacro file.

    ``arguments`` are the values of <xacro:arg>, as on the xacro command line: text, numbers, True and False. $(find
    PKG) is the folder of a package on the search path.
    """
    try:
        import xacro
        from xacro import substitution_args
    except ImportError:
        raise missing("expanding macros needs the package xacro", "xacro", where=path.name) from None
    wrong = {key: value for key, value in arguments.items() if not isinstance(value, _ARGUMENTS)}
    if wrong:
        message, allowed = f"contains {wrong!r}", "{name: text, number, True or False}"
        raise ModelError(message, argument="xacro", value=wrong, where=path.name, allowed=allowed)
    parse_xml(path)  # rejects document type and entity declarations, and names the line of invalid XML
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in arguments.items()}
    known = _Arguments(texts)
    with _ONE_AT_A_TIME, _fenced(xacro, substitution_args, Finder(path)):
        try:
            document = xacro.process_file(str(path), mappings=known, verbosity=0)
            content = document.documentElement.toxml(encoding="utf-8")
        except Exception as error:  # expressions raise errors of any kind
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, ModelError):  # the package wraps our errors in its own
                cause = getattr(cause, "exc", None) or cause.__context__
            text = " ".join(str(error).split())[:300] or type(error).__name__
            raise cause or ModelError(f"xacro rejects it: {text}", where=path.name) from None
    unknown = sorted(arguments.keys() - known.asked)
    if unknown:
        message = f"xacro does not use the arguments {', '.join(map(repr, unknown))}"
        warn(message, where=path.name, allowed=listing(sorted(known.asked), like=unknown[0]))
    return parse_xml_text(content, path.name)


class _Arguments(dict[str, str]):
    """The given arguments and those with defaults. ``asked`` contains the names that the file requests."""

    def __init__(self, arguments: Mapping[str, str]) -> None:
        super().__init__(arguments)
        self.asked = set[str]()

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)


@contextmanager
def _fenced(xacro: Any, substitution_args: Any, finder: Finder) -> Iterator[None]:
    """Make $(find PKG) use Torsor's search path, reject expressions with unsafe names, and limit the macro calls."""

    def find(package: str) -> str:
        folder = finder.package(package)
        if folder is None:
            raise ModelError(f"$(find {package}) does not find the package", where=finder.path.name, fix=SEARCH_FIX)
        return str(folder)

    before = xacro.safe_eval, substitution_args._eval, substitution_args._eval_find
    expand, calls = xacro.handle_macro_call, itertools.count(1)

    def limited(node: Any, *others: Any) -> Any:
        if node.tagName.startswith("xacro:") and next(calls) > MAX_MACRO_CALLS:
            fix = "check for a macro that calls itself, or expand the file first: xacro FILE"
            found = f"there are more than {MAX_MACRO_CALLS:,} macro calls"
            raise ModelError(found, where=finder.path.name, fix=fix)
        return expand(node, *others)

    def safe_eval(expression: str, symbols: Any, local: Any = None) -> Any:
        try:
            nodes = list(ast.walk(ast.parse(expression.strip(), mode="eval")))
        except (SyntaxError, ValueError):
            nodes = []  # the package reports syntax errors itself
        for name in (getattr(node, "attr", "") or getattr(node, "id", "") for node in nodes):
            if name.startswith("__") or name in _LEADING_OUT:
                allowed = f"names without __, and not {', '.join(_LEADING_OUT)}"
                raise ModelError(f"the expression {expression[:80]!r} uses {name!r}", allowed=allowed)
        return before[0](expression, symbols, local)

    def no_eval(expression: str, context: Any) -> str:
        message = f"$(eval {expression[:80]}) can call any Python function"
        raise ModelError(message, where=finder.path.name, fix="write ${...}, or expand it first: xacro FILE")

    xacro.safe_eval, substitution_args._eval, substitution_args._eval_find = safe_eval, no_eval, find
    xacro.handle_macro_call = limited
    try:
        yield
    finally:
        xacro.safe_eval, substitution_args._eval, substitution_args._eval_find = before
        xacro.handle_macro_call = expand


_SDF_MODEL = re.compile(r"\.(?:sdf|world)#")
KINDS = ".urdf, .xml (MJCF, URDF or SDF), .sdf, .world, .xacro, .toml, .yaml (closures of the URDF next to it), "
KINDS += ".usda, .usd, .usdc, .usdz, .osim"
_XML_SUFFIXES = (".urdf", ".xml", ".mjcf", ".sdf", ".world")

# Readers by suffix and by the root element of XML files, and writers by suffix. Modules are imported when first used.
_READERS = {".toml": "read_toml", ".osim": "read_skeleton", ".yaml": "read_closures", ".yml": "read_closures"}
_READERS |= dict.fromkeys(USD_SUFFIXES, "read_usd")
_XML_READERS = {"robot": "read_urdf", "mujoco": "read_mjcf", "sdf": "read_sdf"}
_WRITERS = {".toml": "write_toml", ".urdf": "write_urdf", ".xml": "write_mjcf", ".mjcf": "write_mjcf"}
_WRITERS |= {".sdf": "write_sdf", **dict.fromkeys((".usda", ".usd", ".usdc"), "write_usd")}
WRITTEN = tuple(_WRITERS)
"""Suffixes of the files that ``write`` supports."""
_HOMES = {name: f"{name.removeprefix('read_')}.reading" for name in (*_READERS.values(), *_XML_READERS.values())}
_HOMES |= {name: f"{name.removeprefix('write_')}.writing" for name in _WRITERS.values()}
_HOMES |= {"read_skeleton": "osim.reading", "read_closures": "urdf.closures"}
_HOMES |= {"read_live_mujoco": "mjcf.reading", "read_live_pinocchio": "pinocchio"}
_MODULES = {name: f"torsor.formats.{home}" for name, home in _HOMES.items()}
# Readers of objects by the names of their packages and types, so that these packages need not be imported.
_LIVE = {("mujoco", "MjModel"): "read_live_mujoco", ("mujoco", "MjSpec"): "read_live_mujoco"}
_LIVE |= {("pinocchio", "Model"): "read_live_pinocchio"}


def _live_reader(source: object) -> str:
    """Return the name of the reader of an object, or "" if there is none."""
    kinds = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(source).__mro__)
    return next((_LIVE[kind] for kind in kinds if kind in _LIVE), "")


def named(name: str) -> Any:
    """Return a reader or writer by its name."""
    return getattr(importlib.import_module(_MODULES[name]), name)


def read(
    path: str | Path | Any,
    base: str = "fixed",
    strict: bool | None = None,
    snap: float = 0.0,
    search: Sequence[str | Path] = (),
    xacro: Mapping[str, object] | None = None,
) -> Mechanism:
    """Return the mechanism of a file, object or ``robot_descriptions`` robot. ``torsor.load`` describes the arguments.

    Library robots cannot be read by name.
    """
    live = _live_reader(path)
    if live:
        return _read_live(path, live, base, strict, snap, {"search": search, "xacro": xacro})
    if not isinstance(path, str | PathLike):
        allowed = "a path or name, or a mujoco.MjModel, mujoco.MjSpec or pinocchio.Model"
        raise ModelError(f"is a {type(path).__name__}", argument="path", where="load", allowed=allowed)
    file, model, arguments = Path(path), "", dict(xacro or {})
    folders = [search] if isinstance(search, (str, Path)) else list(search)
    if is_description(path):
        file, described_arguments, more = described_robot(str(path))
        arguments, folders = described_arguments | arguments, [*folders, *more]
    elif (mark := _SDF_MODEL.search(str(path))) is not None:
        file, model = Path(str(path)[: mark.end() - 1]), str(path)[mark.end() :]
    strict = None if strict is None else flag(strict, str(path), "strict")
    with all_faults(), searching(folders), np.errstate(over="ignore", invalid="ignore"):
        try:  # overflow gives infinity, which the parts of the mechanism reject
            return _read(file, base, strict, snap, model, arguments)
        except OverflowError:
            message = "its numbers are too large to compute with"
            raise ModelError(message, where=file.name, allowed=f"numbers up to {MAX_NUMBER:g}") from None
        except ModelError as error:
            name = split_prim(file)[0].name
            if isinstance(error, StopReadingError) or name in error.where:
                raise
            # For a part without a file, such as a frame or a posture.
            raise error.inside(name) from None


def _read_live(
    source: Any, reader: str, base: str, strict: bool | None, snap: float, of_files: dict[str, Any]
) -> Mechanism:
    where = type(source).__name__
    for name, value in of_files.items():
        if value:
            raise ModelError("is only for files", argument=name, value=value, where=where, fix=f"omit `{name}`")
    with all_faults(), np.errstate(over="ignore", invalid="ignore"):
        result: Mechanism = named(reader)(source, base, bool(strict) and flag(strict, where, "strict"), snap)
        return result


def _read(
    path: Path, base: str, strict: bool | None, snap: float, model: str, arguments: dict[str, object]
) -> Mechanism:
    with_prim, path = path, split_prim(path)[0]
    check_file(path, KINDS)
    suffix = path.suffix.lower()
    if arguments and suffix != ".xacro":
        raise ModelError("is only for .xacro files", argument="xacro", where=path.name, allowed="a .xacro file")
    if suffix in _READERS:
        is_strict = suffix == ".toml" if strict is None else strict
        file = with_prim if suffix in USD_SUFFIXES else path
        mechanism: Mechanism = named(_READERS[suffix])(file, base, is_strict, snap)
        return mechanism
    if suffix != ".xacro" and suffix not in _XML_SUFFIXES:
        raise ModelError(f"unknown file type {suffix!r}", value=suffix, where=path.name, allowed=KINDS)
    root = expanded(path, arguments) if suffix == ".xacro" else parse_xml(path, bool(strict))
    if root.tag not in _XML_READERS or (suffix == ".xacro" and root.tag == "mujoco"):
        allowed = "<robot> (URDF), <sdf> (SDF) or <mujoco> (MJCF, not in .xacro)"
        raise ModelError(f"the root element is <{root.tag}>", where=path.name, allowed=allowed)
    if model and root.tag != "sdf":
        raise ModelError(f"it has no model {model!r}", value=model, where=path.name, allowed="models of SDF files")
    models = (model,) if root.tag == "sdf" else ()
    result: Mechanism = named(_XML_READERS[root.tag])(path, base, bool(strict), root, snap, *models)
    return result


def write(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as TOML, URDF, SDF, MJCF (.xml, .mjcf) or USD (.usda, .usd, .usdc), depending on the suffix."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in WRITTEN:
        allowed, fix = ".toml, .urdf, .sdf, .xml (MJCF), .usda, .usd, .usdc", f"name it {path.stem}.toml"
        raise ModelError(f"the suffix is {path.suffix!r}", value=path.suffix, where=path.name, allowed=allowed, fix=fix)
    check_target(path)
    named(_WRITERS[suffix])(mechanism, path)

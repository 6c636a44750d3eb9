"""Motion problems in TOML files: robot, phases, objectives, constraints and settings. See docs/plan/motion.md."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeVar, get_type_hints

import numpy as np

from torsor import library
from torsor.base.decoding import Table, check_keys, check_version, error, file_table, filled, fitted
from torsor.base.errors import ModelError
from torsor.base.files import replacing
from torsor.formats.toml.writing import toml_text as _text
from torsor.motion.solve import DEFAULTS, SolveSettings
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.distances import Body
from torsor.motion.terms.ends import Ends
from torsor.motion.terms.registry import FORM, KEY, kind_of, made, term_registry
from torsor.motion.terms.term import Constraint, Cost, Number
from torsor.motion.transcription.motion_model import Path as JointPath
from torsor.motion.transcription.phase import POINTS, Phase
from torsor.motion.transcription.splines import Spline
from torsor.robot.load import load
from torsor.robot.parallel import ParallelRobot
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

P = TypeVar("P", bound=ProblemStatement)

VERSION = 1
MAX_COUNTS = {"points": 1000, "knots": 1000, "nodes": 100_000, "at": 100_000}  # larger problems would take hours
TOP_KEYS = (
    "torsor", "name", "units", "robot", "free", "numbers", "assembly", "relaxation_order", "frozen", "path", "solver"
)  # fmt: skip
PLAIN_KEYS = {"name": str, "frozen": dict[str, float], "assembly": list[float], "relaxation_order": list[list[str]]}
ARRAY_KEYS = ("phases", "objectives", "constraints")
SETTINGS = {"name": "solver"} | {key: key for key in DEFAULTS if key not in ("solver", "progress")}
SETTING_TYPES = {key: get_type_hints(SolveSettings)[field] for key, field in SETTINGS.items()}


def read_problem(path: Path, make: Callable[..., P]) -> P:
    """Return the problem of a TOML file; ``make`` builds it from the fields of a ``ProblemStatement``."""
    return _Reader(path).read(file_table(path), make)


class _Reader:
    """Reader of one TOML file."""

    def __init__(self, path: Path) -> None:
        self.path, self.source = path, path.name

    def read(self, data: Table, make: Callable[..., P]) -> P:
        check_version(data, VERSION, self.source)
        check_keys(data, (*TOP_KEYS, *ARRAY_KEYS), self.source, required=("robot", "phases", "objectives"))
        units = data.get("units", {})
        if units not in ({}, {"angle": "rad"}):
            fix = "convert degrees to radians; the robot file itself may be in degrees"
            raise error(f"{self.source}: units", f"found {short(units)}", 'angle = "rad"', fix)
        robot = self._robot(data)
        phases = [self._phase(table, where) for table, where in self._tables(data, "phases")]
        costs = [made(term_registry(Cost), table, where) for table, where in self._tables(data, "objectives")]
        known = term_registry(Constraint, Ends)
        conditions = [made(known, table, where) for table, where in self._tables(data, "constraints")]
        if not phases or not costs:
            raise error(self.source, f"there are no {'objectives' if phases else 'phases'}", fix="add at least one")
        options: Table = {"name": self.path.stem}
        options |= {key: self._value(data, key, hint, None) for key, hint in PLAIN_KEYS.items() if key in data}
        if "path" in data:
            options["path"] = self._joint_path(data["path"])
        numbers = self._value(data, "numbers", dict[str, dict[str, float]], {}).items()
        options["numbers"] = {name: filled(Number, entry, f"{self.source}: numbers.{name}") for name, entry in numbers}
        options["settings"] = self._settings(data.get("solver", {}))
        try:
            problem = make(robot, phases, costs, conditions, **options)
            _ = problem.program  # built here so that errors about terms that do not fit the robot name the file
        except ModelError as wrong:
            raise wrong.inside(self.source) from None
        return problem

    def _value(self, data: Table, key: str, hint: Any, default: Any) -> Any:
        return fitted(data[key], hint, f"{self.source}: {key}") if key in data else default

    def _tables(self, data: Table, key: str) -> Iterator[tuple[Table, str]]:
        """Yield the tables of an array, each with its location for messages: its number and its name, if it has one."""
        tables = data.get(key, [])
        if type(tables) is not list or not all(type(table) is dict for table in tables):
            raise error(self.source, f"{key} is {short(tables)}", "an array of tables", f"write [[{key}]]")
        for number, table in enumerate(tables, start=1):
            name = table.get("name")
            where = f"{self.source}: {key.removesuffix('s')} {number}"
            _check_size(table, where)
            yield table, f"{where} {name!r}" if isinstance(name, str) and name else where

    def _robot(self, data: Table) -> Robot | Parametric[Robot]:
        name = self._value(data, "robot", str, "")
        makers = {name: signature(getattr(library, name)).parameters.values() for name in library.__all__}
        ready = [
            maker for maker, parameters in makers.items() if all(one.default is not one.empty for one in parameters)
        ]
        if name in ready:
            loaded = getattr(library, name)()
        else:
            place = self.path.parent / name
            try:
                there = place.is_file()
            except (OSError, ValueError):
                there = False
            if not there:
                allowed = f"a robot file relative to this one, or one of {', '.join(ready)}"
                raise error(f"{self.source}: robot", f"there is no robot {short(name)}", allowed)
            try:
                loaded = load(place)
            except (ValueError, OSError) as wrong:
                raise error(f"{self.source}: robot", f"{short(name)} is not a robot: {wrong}") from None
        robot: Robot = loaded.as_robot() if isinstance(loaded, ParallelRobot) else loaded
        free = self._value(data, "free", list[str] | dict[str, str | dict[str, float]], ())
        try:
            return robot.parametric(free) if free else robot
        except ValueError as wrong:
            raise error(f"{self.source}: free", str(wrong)) from None

    def _phase(self, table: Table, where: str) -> Phase:
        own_splines = table.get("own", {})
        if type(own_splines) is not dict or not all(type(entry) is dict for entry in own_splines.values()):
            raise error(where, f"own is {short(own_splines)}", "a table of tables: own.NAME.points = 8")
        splines = {name: self._spline(entry, f"{where}: own.{name}") for name, entry in own_splines.items()}
        other_fields = {key: value for key, value in table.items() if key != "own"}
        return filled(Phase, other_fields, where, keys={KEY: FORM}, own=splines or None)

    def _spline(self, table: Table, where: str) -> Spline:
        check_keys(table, ("knots", "degree") if "knots" in table else ("points", "degree"), where)
        degree = fitted(table.get("degree", 3), int, f"{where}: degree")
        _check_size(table, where)
        count = fitted(table.get("points", POINTS), int, f"{where}: points")
        try:
            if "knots" in table:
                return Spline(degree, np.array(fitted(table["knots"], list[float], f"{where}: knots")))
            return Spline.uniform(count, degree)
        except ModelError as wrong:
            raise wrong if str(wrong).startswith(self.source) else error(where, str(wrong)) from None

    def _joint_path(self, table: Any) -> JointPath:
        where = f"{self.source}: path"
        if type(table) is not dict or not ({"through"} <= set(table) or {"points"} <= set(table)):
            allowed = "through = [[...], ...] with degree, or points with knots and degree"
            raise error(where, f"found {short(table)}", allowed)
        check_keys(table, ("through", "degree") if "through" in table else ("points", "knots", "degree"), where)
        degree = fitted(table.get("degree", 5), int, f"{where}: degree")
        key = "through" if "through" in table else "points"
        try:
            points = np.array(fitted(table[key], list[list[float]], f"{where}: {key}"))
            if key == "through":
                return JointPath.through(points, degree)
            knots = fitted(table.get("knots", []), list[float], f"{where}: knots")
            return JointPath(Spline(degree, np.array(knots)), points)
        except ModelError as wrong:
            raise wrong if str(wrong).startswith(self.source) else error(where, str(wrong)) from None
        except ValueError:
            allowed = "rows with one number per coordinate"
            raise error(f"{where}: {key}", "the rows have different lengths", allowed) from None

    def _settings(self, table: Any) -> Table:
        where = f"{self.source}: solver"
        check_keys(fitted(table, dict, where), SETTINGS, where)
        result = {SETTINGS[key]: fitted(value, SETTING_TYPES[key], f"{where}: {key}") for key, value in table.items()}
        SolveSettings.of(where, **result)  # raises if the values are invalid
        return result


def _check_size(table: Table, where: str) -> None:
    """Raise ModelError if a count or a list is too large."""
    for key, most in MAX_COUNTS.items():
        value = table.get(key)
        if (type(value) is int and value > most) or (type(value) is list and len(value) > most):
            raise error(where, f"{key} is {short(value)}", f"{most} or fewer")


def save_problem(problem: ProblemStatement, path: Path) -> None:
    """Write a problem as TOML, and its robot as ``NAME.robot.toml`` next to it; they read back as the same program."""
    if path.suffix.lower() != ".toml":
        raise error(path.name, f"the suffix is {path.suffix!r}", ".toml", f"name it {path.stem}.toml")
    text = _content(problem, f"{path.stem}.robot.toml")
    problem.model.robot.save(path.with_name(f"{path.stem}.robot.toml"))
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def _content(problem: ProblemStatement, robot: str) -> str:
    head: Table = {"torsor": VERSION, "name": problem.name, "robot": robot}
    if isinstance(problem.robot, Parametric):
        paths = problem.robot.paths
        head["free"] = list(paths) if all(name == path for name, path in paths.items()) else paths
    if problem.assembly is not None:
        head["assembly"] = _plain(list(problem.assembly), "assembly")
    if problem.relaxation_order:
        head["relaxation_order"] = [list(group) for group in problem.relaxation_order]
    blocks = [_block("", head)]
    if problem.frozen:
        blocks.append(_block("[frozen]", {key: float(value) for key, value in problem.frozen.items()}))
    if problem.path is not None:
        blocks.append(_block("[path]", _plain(problem.path, "path")))
    for name, number in problem.numbers.items():
        blocks.append(_block(f"[numbers.{_key(name)}]", number._asdict()))
    settings = {key: problem.settings[field] for key, field in SETTINGS.items() if field in problem.settings}
    if settings:
        blocks.append(_block("[solver]", settings))
    for phase in problem.stages:
        table, nodes = _entries(phase, f"{problem.name}: phase", skipped=("own", "nodes")), phase.nodes
        if not np.array_equal(nodes, np.linspace(0.0, 1.0, len(nodes))):
            table["nodes"] = nodes.tolist()
        elif len(nodes) != len(replace(phase, nodes=None).nodes):
            table["nodes"] = len(nodes)
        if phase.own:
            table["own"] = {name: _plain(spline, name) for name, spline in phase.own.items()}
        blocks.append(_block("[[phases]]", table))
    blocks += [_block("[[objectives]]", _term(cost, problem.name)) for cost in problem.costs]
    blocks += [_block("[[constraints]]", _term(constraint, problem.name)) for constraint in problem.constraints]
    return "\n".join(blocks)


def _block(head: str, table: Mapping[str, Any]) -> str:
    lines = [f"{_key(key)} = {_text(value)}" for key, value in table.items()]
    return "\n".join([head, *lines] if head else lines) + "\n"


def _key(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else _text(name)


def _term(term: Cost | Constraint | Ends, where: str) -> Table:
    kind = kind_of(type(term))
    where = f"{where}: {term.title}"
    if term_registry(Cost, Constraint, Ends).get(kind) is not type(term):
        message = f"{type(term).__name__} of {type(term).__module__} cannot be written to a file"
        raise error(where, message, "terms of torsor.motion", "keep this problem in Python")
    return {KEY: kind} | _entries(term, where)


def _entries(made: Any, where: str, skipped: tuple[str, ...] = ()) -> Table:
    """Return the fields of a dataclass that differ from their defaults."""
    result: Table = {}
    for entry in fields(made):
        value = getattr(made, entry.name)
        is_default = type(value) is type(entry.default) and bool(np.all(value == entry.default))
        if entry.name in skipped or value is None or is_default:
            continue
        plain = _plain(value, f"{where}: {entry.name}")
        if plain != {}:
            result[FORM if entry.name == KEY else entry.name] = plain
    return result


def _plain(value: Any, where: str) -> Any:
    """Return a value as plain TOML data, or raise ModelError."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry, where) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry, where) for entry in value]
    if isinstance(value, Spline):
        return {"degree": value.degree, "knots": value.inner.tolist()}
    if isinstance(value, JointPath):
        return _plain(value.spline, where) | {"points": value.points.tolist()}
    if isinstance(value, Body):  # a body is a table with a ``kind``
        return {KEY: type(value).__name__.lower()} | _entries(value, where)
    fix = "keep this problem in Python"
    raise error(where, f"a {type(value).__name__} cannot be written to a file", "numbers, strings, lists, tables", fix)

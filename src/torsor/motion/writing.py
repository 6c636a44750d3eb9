"""Writing a motion problem as TOML, which ``files`` reads back to the same program."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.files import replacing
from torsor.formats.toml.schema import Table, error
from torsor.formats.toml.writing import toml_text as _text
from torsor.motion.files import SETTINGS, VERSION
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.distances import Body
from torsor.motion.terms.ends import Ends
from torsor.motion.terms.registry import FORM, KEY, kind_of, term_registry
from torsor.motion.terms.term import Constraint, Cost
from torsor.motion.transcription.paths import Path as JointPath
from torsor.motion.transcription.phase import Phase
from torsor.robot.parametric import Parametric


def save_problem(problem: ProblemStatement, path: Path) -> None:
    """Write a problem as TOML and its robot as ``NAME.robot.toml`` beside it; both read back to the same program."""
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
        table = _entries(phase, f"{problem.name}: phase", skipped=("own", "nodes")) | _nodes(phase)
        if phase.own:
            own = {name: {"degree": each.degree, "knots": each.inner.tolist()} for name, each in phase.own.items()}
            table["own"] = own
        blocks.append(_block("[[phases]]", table))
    blocks += [_block("[[objectives]]", _term(each, problem.name)) for each in problem.costs]
    blocks += [_block("[[constraints]]", _term(each, problem.name)) for each in problem.constraints]
    return "\n".join(blocks)


def _nodes(phase: Phase) -> Table:
    """Return the nodes of a phase: nothing for the default, their number if they are equidistant, else all of them."""
    nodes = phase.nodes
    if not np.array_equal(nodes, np.linspace(0.0, 1.0, len(nodes))):
        return {"nodes": nodes.tolist()}
    return {} if len(nodes) == len(replace(phase, nodes=None).nodes) else {"nodes": len(nodes)}


def _block(head: str, table: Mapping[str, Any]) -> str:
    lines = [f"{_key(key)} = {_text(value)}" for key, value in table.items()]
    return "\n".join([head, *lines] if head else lines) + "\n"


def _key(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else _text(name)


def _term(term: Cost | Constraint | Ends, where: str) -> Table:
    kind = kind_of(type(term))
    where = f"{where}: {term.title}"
    if term_registry(Cost, Constraint, Ends).get(kind) is not type(term):
        found = f"{type(term).__name__} of {type(term).__module__} cannot be written to a file"
        raise error(where, found, "terms of torsor.motion", "keep this problem in Python")
    return {KEY: kind} | _entries(term, where)


def _entries(made: Any, where: str, skipped: tuple[str, ...] = ()) -> Table:
    """Return the fields of a dataclass that differ from their defaults."""
    found: Table = {}
    for each in fields(made):
        value = getattr(made, each.name)
        if each.name in skipped or value is None or (each.default is not MISSING and _is_same(value, each.default)):
            continue
        plain = _plain(value, f"{where}: {each.name}")
        if plain != {}:
            found[FORM if each.name == KEY else each.name] = plain
    return found


def _is_same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(np.all(value == default))


def _plain(value: Any, where: str) -> Any:
    """Return a value as plain TOML data, or raise ModelError."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(each, where) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, where) for each in value]
    if isinstance(value, JointPath):
        spline = value.spline
        return {"degree": spline.degree, "knots": spline.inner.tolist(), "points": value.points.tolist()}
    if isinstance(value, Body):  # a table with a kind
        return {KEY: type(value).__name__.lower()} | _entries(value, where)
    fix = "keep this problem in Python"
    raise error(where, f"a {type(value).__name__} cannot be written to a file", "numbers, strings, lists, tables", fix)

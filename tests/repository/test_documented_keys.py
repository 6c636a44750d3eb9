"""Every key of TOML files has an entry in the documents, with its type and the default that the code has."""

import re
import tomllib
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torsor.formats.toml.reading import _KINDS as FLEXIBLE
from torsor.formats.toml.reading import EACH, KEYS, SINGLE_DEFAULTS
from torsor.mechanism.flexible_links.modes import _MODE as MODE
from torsor.motion.files import ARRAY_KEYS, SETTINGS, TOP_KEYS
from torsor.motion.solve import DEFAULTS
from torsor.motion.terms.distances import KINDS as BODIES
from torsor.motion.terms.ends import Ends
from torsor.motion.terms.registry import term_registry
from torsor.motion.terms.term import Constraint, Cost, Number
from torsor.motion.transcription.phase import Phase

DOCS = Path(__file__).parents[2] / "docs"
POSE = {"position", "rpy", "rotation"}
COMMON = {"name", "phase", "at", "during", "weight"}
IN_PYTHON = {"expression_cost", "expression_constraint"}
TOP_LEVEL = "the top level"
# Tables of robot files by their name in the schema.
TABLES = {
    "file": TOP_LEVEL,
    "units": "`[units]`",
    "link": "`[[links]]`",
    "visual": "`[[links.visuals]]`",
    "shape": "`[[links.shapes]]`",
    "allowed_collision": "`[[allowed_collisions]]`",
    "joint": "`[[joints]]`",
    "spring": "`[joints.spring]`",
    "motor": "`[joints.motor]`",
    "frame": "`[[frames]]`",
    "loop": "`[[loops]]`",
    "wheel": "`[[wheels]]`",
    "coupling": "`[[couplings]]`",
    "posture": "`[[postures]]`",
}
# Required by other code than the schema: the version, one of two names, and the size of all shapes but meshes.
REQUIRED_ELSEWHERE = {("file", "torsor"), ("coupling", "coefficients"), ("visual", "size"), ("shape", "size")}


def rows_of(page: str, head: str) -> list[list[str]]:
    """The cells of the rows of the table whose header begins with these words."""
    lines = (DOCS / page).read_text().splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith(f"| {head} |"))
    columns = lines[first].count("|")
    found = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return found
        assert line.count("|") == columns, line
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def keys_of(page: str, part: str) -> dict[str, str]:
    """The documented keys of a part of a file, with their defaults; a row may have several."""
    found = {}
    for keys, kind, *_, default, _ in rows_of(page, "top-level key" if part == TOP_LEVEL else f"key of {part}"):
        assert kind and default, f"{page}: {keys} has no type or no default"
        found |= dict.fromkeys(re.findall(r"`(\w+)`", keys), default)
    return found


def terms_of(head: str) -> dict[str, dict[str, str]]:
    """The documented keys of objectives or constraints, with their defaults, by kind."""
    found: dict[str, dict[str, str]] = {}
    kinds: list[str] = []
    for kind, keys, type_, default, _ in rows_of("plan/problem_files.md", head):
        kinds = re.findall(r"`(\w+)`", kind) or kinds
        for name in re.findall(r"`(\w+)`", keys) or [""]:
            assert not name or (type_ and default), f"{kinds}: {name} has no type or no default"
            for each in kinds:
                found.setdefault(each, {}).update({name: default} if name else {})
    return found


def agrees(documented: str, default: Any) -> bool:
    """Whether a documented default is that of the code: a value in backticks, "required", or words for None."""
    if documented.startswith("required"):
        return default is MISSING
    value = re.match(r"`([^`]*)`", documented)
    if value is None:
        return default is None or default == ""
    shown = tomllib.loads(f"x = {value[1]}")["x"]
    if isinstance(default, (int, float, tuple)) and not isinstance(default, bool):
        return bool(np.all(np.asarray(shown, dtype=float) == np.asarray(default, dtype=float)))
    return bool(shown == default) or (shown == [] and default == ())


def default_of(field: "Field[Any]") -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


@pytest.mark.parametrize("kind", KEYS)
def test_every_key_of_robot_files_is_documented(kind: str) -> None:
    documented = keys_of("compute/toml.md", TABLES[kind])
    schema = {key.strip("*"): key.endswith("*") for key in KEYS[kind].split()}
    pose = POSE if "position" in schema else set()
    assert documented.keys() == schema.keys() - pose
    for key, default in documented.items():
        required = schema[key] or (kind, key) in REQUIRED_ELSEWHERE
        assert default.startswith("required") == required, key
    assert keys_of("compute/toml.md", "a pose").keys() == POSE


def test_documented_defaults_of_joints_are_those_of_the_reader() -> None:
    documented = keys_of("compute/toml.md", "`[[joints]]`")
    assert all(agrees(documented[key], default) for key, default in (SINGLE_DEFAULTS | EACH).items())


def test_every_key_of_flexible_joints_is_documented() -> None:
    own = {each.name for kind in FLEXIBLE.values() for each in fields(kind) if each.compare}
    assert keys_of("compute/toml.md", "`[joints.flexible]`").keys() == own | {"kind"}


def test_every_key_of_files_of_modes_is_documented() -> None:
    assert keys_of("compute/flexible.md", "a mode file").keys() == {"positions", "masses", "mode"}
    assert keys_of("compute/flexible.md", "`[[mode]]`").keys() == set(MODE)


def test_every_key_of_problem_files_is_documented() -> None:
    page = "plan/problem_files.md"
    assert keys_of(page, TOP_LEVEL).keys() == {*TOP_KEYS, *ARRAY_KEYS}
    assert keys_of(page, "`own.NAME`").keys() == {"points", "degree", "knots"}
    assert keys_of(page, "`[path]`").keys() == {"through", "points", "knots", "degree"}
    numbers = keys_of(page, "`[numbers.NAME]`")
    assert numbers.keys() == set(Number._fields)
    assert all(agrees(numbers[key], default) for key, default in Number._field_defaults.items())
    phase, solver = keys_of(page, "`[[phases]]`"), keys_of(page, "`[solver]`")
    assert phase.keys() == {each.name for each in fields(Phase)}
    assert all(agrees(phase[each.name], each.default) for each in fields(Phase))
    assert solver.keys() == SETTINGS.keys()
    assert all(agrees(solver[key], DEFAULTS[setting]) for key, setting in SETTINGS.items())
    assert keys_of(page, "a body").keys() == {each.name for kind in BODIES.values() for each in fields(kind)} | {"kind"}


@pytest.mark.parametrize("head, bases", [("objective", (Cost,)), ("constraint", (Constraint, Ends))])
def test_every_key_of_objectives_and_constraints_is_documented(head: str, bases: tuple[type, ...]) -> None:
    documented, known = terms_of(head), term_registry(*bases)
    assert documented.keys() == known.keys() - IN_PYTHON
    common = keys_of("plan/problem_files.md", "a term")
    assert common.keys() == COMMON | {"kind"}
    for kind, keys in documented.items():
        own = {"form" if each.name == "kind" else each.name: default_of(each) for each in fields(known[kind])}
        assert keys.keys() == own.keys() - COMMON, kind
        assert all(agrees(default, own[key]) for key, default in keys.items()), kind
        assert all(agrees(common[key], own[key]) for key in own.keys() & COMMON), kind

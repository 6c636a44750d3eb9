"""Results as JSON: plain values with a header, units, and a schema for each kind in ``schemas/``."""

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.archive import FORMAT, KINDS, version
from torsor.base.checks import one_of
from torsor.base.files import check_target, replacing
from torsor.mechanism import Mechanism
from torsor.mechanism.mechanism import FORCES, units

STANDARD_OUTPUT = Path("-")
TABLES = ("bench", "reproduce")  # kinds of documents that are no results of a robot


def header(kind: str) -> dict[str, Any]:
    """Return the value of the key ``torsor`` of every document: version of the format, kind, version of Torsor.

    Example:
        >>> header("trajectory")["kind"]
        'trajectory'
    """
    return {"format": FORMAT, "kind": kind, "version": version()}


def plain(value: Any) -> Any:
    """Return a value as numbers, lists, tables and strings; numbers that are not finite are None, as JSON has none.

    Example:
        >>> plain({"q": np.array([1.0, np.nan]), "n": np.int64(2)})
        {'q': [1.0, None], 'n': 2}
    """
    if isinstance(value, np.ndarray):
        whole = value.dtype.kind != "f" or bool(np.isfinite(value).all())
        return value.tolist() if whole else plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Path):
        return str(value)
    return repr(value)


def robot_facts(robot: Mechanism) -> dict[str, Any]:
    """Return the names of a robot's coordinates with their units, for documents.

    Example:
        >>> robot_facts(torsor.library.planar_chain(1))["force_units"]
        ['N m']
    """
    positions, rates = units(robot)
    return {
        "name": robot.name,
        "mass": robot.mass,
        "positions": list(robot.position_names),
        "position_units": positions,
        "coordinates": list(robot.coordinate_names),
        "velocity_units": [f"{unit}/s" for unit in rates],
        "acceleration_units": [f"{unit}/s^2" for unit in rates],
        "force_units": [FORCES[unit] for unit in rates],
        "joints": list(robot.joint_names),
    }


def state_units(robot: Mechanism) -> dict[str, list[str]]:
    """Return the units of the columns of q, v, a and tau.

    Example:
        >>> state_units(torsor.library.planar_chain(1))
        {'q': ['rad'], 'v': ['rad/s'], 'a': ['rad/s^2'], 'tau': ['N m']}
    """
    facts, keys = robot_facts(robot), ("position", "velocity", "acceleration", "force")
    return {name: facts[f"{key}_units"] for name, key in zip(("q", "v", "a", "tau"), keys, strict=True)}


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document as JSON, whole or not at all; to standard output, if the path is ``-``."""
    text = json.dumps(plain(document), allow_nan=False)
    if path == STANDARD_OUTPUT:
        print(text, flush=True)  # a command may go on, as the viewer does
        return
    check_target(path)
    with replacing(path) as part:
        part.write_text(text + "\n", encoding="utf-8")


def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the documents of a kind: docs/results.md describes them.

    Example:
        >>> torsor.base.documents.schema_of("trajectory")["required"]
        ['torsor', 'units', 'robot', 'settings', 'status', 'times', 'q', 'v', 'a', 'tau', 'external', 'held', 'events']
    """
    one_of(kind, (*KINDS, *TABLES), "schema_of", "kind")
    found: dict[str, Any] = json.loads((files("torsor.base") / "schemas" / f"{kind}.json").read_text("utf-8"))
    return found

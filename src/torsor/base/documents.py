"""Results as JSON: plain values with a header and units; ``schemas/`` contains a schema for each kind."""

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from torsor._version import __version__
from torsor.base.archive import FORMAT, result_kinds
from torsor.base.checks import one_of
from torsor.base.files import check_target, write_text

STANDARD_OUTPUT = Path("-")
TABLES = ("bench", "reproduce")  # document kinds that are not robot results


def header(kind: str) -> dict[str, Any]:
    """Return the header of a document, the value of its key ``torsor``: format version, kind and Torsor version.

    Example:
        >>> header("trajectory")["kind"]
        'trajectory'
    """
    return {"format": FORMAT, "kind": kind, "version": __version__}


def plain(value: Any) -> Any:
    """Return a value as numbers, lists, tables and strings; numbers that are not finite become None.

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
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value) if isinstance(value, Path) else repr(value)


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document as JSON atomically, or to standard output if the path is ``-``."""
    text = json.dumps(plain(document), allow_nan=False)
    if path == STANDARD_OUTPUT:
        print(text, flush=True)  # because some commands, such as the viewer, continue
        return
    check_target(path)
    write_text(path, f"{text}\n")


def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document kind; docs/start/results.md describes the schemas.

    Example:
        >>> torsor.base.documents.schema_of("trajectory")["required"]
        ['torsor', 'units', 'robot', 'settings', 'status', 'times', 'q', 'v', 'a', 'tau', 'external', 'held', 'events']
    """
    one_of(kind, (*result_kinds(), *TABLES), "schema_of", "kind")
    result: dict[str, Any] = json.loads((files("torsor.base") / "schemas" / f"{kind}.json").read_text("utf-8"))
    return result

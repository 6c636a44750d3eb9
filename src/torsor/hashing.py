"""A hash of source files, part of every cache key: code that another version compiled is never used."""

import hashlib
from functools import cache
from pathlib import Path

__all__ = ["source_hash"]

_PACKAGE = Path(__file__).parent


@cache
def source_hash(*places: str) -> str:
    """Return the hash of all Python files in packages or modules, given relative to ``torsor``.

    Example:
        >>> source_hash("spatial") == source_hash("spatial/inertia.py")
        False
    """
    digest = hashlib.sha256()
    for place in places:
        path = _PACKAGE / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            content = file.read_bytes()
            digest.update(f"{file.relative_to(_PACKAGE).as_posix()}:{len(content)}\n".encode() + content)
    return digest.hexdigest()

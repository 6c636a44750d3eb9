"""A hash of source files, part of every cache key: code that another version compiled is never used."""

import hashlib
import sys
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent


@cache
def source_hash(*places: str) -> str:
    """Return the hash of all Python files in packages or modules, given relative to ``torsor``.

    A frozen application or a zip file has no Python files: its size and modification time are hashed instead.

    Example:
        >>> source_hash("spatial") == source_hash("spatial/inertia.py")
        False
    """
    digest = hashlib.sha256()
    for place in places:
        path = _PACKAGE / place
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []
        if not files:
            container = next((each for each in path.parents if each.is_file()), Path(sys.executable))
            status = container.stat()
            digest.update(f"{container}:{status.st_size}:{status.st_mtime_ns}\n".encode())
        for file in files:
            content = file.read_bytes()
            digest.update(f"{file.relative_to(_PACKAGE).as_posix()}:{len(content)}\n".encode() + content)
    return digest.hexdigest()

"""The disk cache of compiled code: each kernel is compiled once on a machine.

A file holds a checksum and the object code of one kernel; its name is the hash of everything that the code depends on.
A file is written under a temporary name and then renamed, so that no process reads an incomplete file. A damaged file
is deleted, and its kernel is compiled again. Files and folders that another user could have written are not read,
because their content is executed.

``TORSOR_CACHE`` names another folder, or is ``off``; ``TORSOR_CACHE_MB`` is the largest size of the folder.
"""

import contextlib
import hashlib
import os
import secrets
import stat
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_MAGIC = b"torsor object code 1\n"
_SUFFIX = ".kernel"
_DEFAULT_MB = 512


class CacheInfo(NamedTuple):
    """The folder of the cache (None if it is switched off), the number of kernels, and their size in bytes."""

    path: Path | None
    kernels: int
    bytes: int


def location() -> Path | None:
    """Return the folder of the cache, or None if it is switched off.

    Example:
        >>> path = location()
        >>> path is None or isinstance(path, Path)
        True
    """
    chosen = os.environ.get("TORSOR_CACHE")
    if chosen is not None:
        return None if chosen.lower() in ("", "0", "off", "no", "none") else Path(chosen).expanduser()
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "torsor" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "torsor"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "torsor"


def info() -> CacheInfo:
    """Return the folder of the cache, the number of kernels and their size.

    Example:
        >>> info().kernels >= 0
        True
    """
    path = location()
    files = [] if path is None else _files(path)
    return CacheInfo(path, len(files), sum(status.st_size for _, status in files))


def clear() -> int:
    """Delete all kernels of the cache and return their number."""
    path = location()
    files = [] if path is None else _files(path)
    for file in [*(file for file, _ in files), *([] if path is None else path.glob(".*.part"))]:
        file.unlink(missing_ok=True)
    return len(files)


def load(key: str) -> list[bytes] | None:
    """Return the object code that is stored under a key, or None if there is none or it cannot be trusted."""
    folder = location()
    if folder is None or not _private(folder):
        return None
    file = folder / (key + _SUFFIX)
    try:
        if not _private(file):
            return None
        content = file.read_bytes()
    except OSError:
        return None
    objects = _unpack(content)
    try:
        if objects is None:
            file.unlink(missing_ok=True)
        else:
            os.utime(file)  # the least recently used files are deleted first
    except OSError:
        pass  # the cache may be read-only
    return objects


def store(key: str, objects: Sequence[bytes]) -> None:
    """Store object code under a key; do nothing if the cache cannot be written, since compiling again is only slow."""
    folder = location()
    if folder is None:
        return
    temporary = folder / f".{key}.{os.getpid()}.{secrets.token_hex(4)}.part"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(folder):
            return
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(_pack(objects))
        temporary.replace(folder / (key + _SUFFIX))
        _prune(folder)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _pack(objects: Sequence[bytes]) -> bytes:
    body = struct.pack("<I", len(objects)) + b"".join(struct.pack("<Q", len(each)) + each for each in objects)
    return _MAGIC + hashlib.sha256(body).digest() + body


def _unpack(content: bytes) -> list[bytes] | None:
    """Return the object code in the content of a file, or None if its checksum is wrong."""
    start = len(_MAGIC) + 32
    body = content[start:]
    if not content.startswith(_MAGIC) or hashlib.sha256(body).digest() != content[len(_MAGIC) : start]:
        return None
    (count,), offset, objects = struct.unpack_from("<I", body), 4, []
    for _ in range(count):
        (length,) = struct.unpack_from("<Q", body, offset)
        objects.append(body[offset + 8 : offset + 8 + length])
        offset += 8 + length
    return objects


def _private(path: Path) -> bool:
    """Return whether only this user (or root) can have written a folder or file."""
    if not hasattr(os, "geteuid"):
        return True  # Windows: folders below the user's profile are private
    try:
        status = path.lstat() if path.name.endswith(_SUFFIX) else path.stat()
    except OSError:
        return False
    safe = not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(status.st_mode)
    return safe and status.st_uid in (os.geteuid(), 0)


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    found = []
    with contextlib.suppress(OSError):  # no folder yet
        for file in folder.glob("*" + _SUFFIX):
            with contextlib.suppress(OSError):  # another process may be pruning
                found.append((file, file.stat()))
    return found


def _prune(folder: Path) -> None:
    """Delete the least recently used kernels beyond the size limit, and old temporary files of killed processes."""
    for leftover in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > 3600:
                leftover.unlink()
    try:
        limit = float(os.environ.get("TORSOR_CACHE_MB", _DEFAULT_MB)) * 1e6
    except ValueError:
        limit = _DEFAULT_MB * 1e6
    total = 0.0
    for file, status in sorted(_files(folder), key=lambda entry: -entry[1].st_mtime):
        total += status.st_size
        if total > limit:
            file.unlink(missing_ok=True)

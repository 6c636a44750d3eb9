"""Disk cache of compiled code, so that each kernel is compiled once per machine.

A kernel call needs only the signature and the object code. Reading a CasADi function of 100,000 operations takes longer
than running its code, so it is read on first access. Code compiled with ``quick`` (see ``Kernel``) is stored without
the CasADi function.

A file contains a checksum, the key and the object code of one kernel. The key, which is also the file name, is the hash
of everything on which the code depends. Damaged files, and files whose name differs from their key, are deleted, and
their kernels are compiled again. Files are written under a temporary name and then renamed, so no process reads an
incomplete file. If several processes need the same kernel, one of them compiles it and the others wait (``compiling``).
Files and folders that another user could have written are not read, because their content is executed.

``TORSOR_CACHE`` selects a different folder, or disables the cache with ``off``. ``TORSOR_CACHE_MB`` is the maximum size
of the folder in MB.
"""

import contextlib
import hashlib
import json
import math
import os
import secrets
import stat
import struct
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import casadi as ca

from torsor.base.arrays import Shape
from torsor.base.errors import ModelError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_PACKAGE = Path(__file__).parents[1]
_MAGIC = b"torsor object code 2\n"
_SUFFIX = ".kernel"
_DEFAULT_MB = 512
_PRUNED_SHARE = 0.05  # fraction of the size limit that a process stores before it prunes again
_stored = dict[Path, float]()  # bytes that this process has stored in each folder since the last pruning
_PAUSE = 0.05  # interval (s) between checks whether another process has compiled a kernel


class CacheInfo(NamedTuple):
    """The cache folder (None if disabled), the number of kernels, and their total size in bytes."""

    path: Path | None
    kernels: int
    bytes: int


def natural_shape(size: tuple[int, int]) -> Shape:
    """Return the default array shape of a CasADi matrix: no axis for a scalar, one for a column, otherwise two."""
    rows, cols = size
    return () if size == (1, 1) else (rows,) if cols == 1 else size


class Signature(NamedTuple):
    """The name of a function, and the names and sizes (rows, columns) of its inputs and outputs."""

    name: str
    names_in: tuple[str, ...]
    names_out: tuple[str, ...]
    sizes_in: tuple[tuple[int, int], ...]
    sizes_out: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, function: "ca.Function | StoredKernel") -> "Signature":
        """Return the signature of a CasADi function or of a stored kernel.

        Example:
            >>> x = ca.SX.sym("x", 2)
            >>> Signature.of(ca.Function("double", [x], [2 * x], ["x"], ["y"])).sizes_in
            ((2, 1),)
        """
        if isinstance(function, StoredKernel):
            return function.signature
        sizes_in = tuple(function.size_in(k) for k in range(function.n_in()))
        sizes_out = tuple(function.size_out(k) for k in range(function.n_out()))
        return cls(function.name(), tuple(function.name_in()), tuple(function.name_out()), sizes_in, sizes_out)

    def shapes(
        self, inputs: Sequence[Shape] | None, outputs: Sequence[Shape] | None
    ) -> tuple[list[Shape], list[Shape]]:
        """Return the array shapes of one state; raise ModelError if they do not match the matrix sizes."""
        result = []
        for what, shapes, sizes in (("inputs", inputs, self.sizes_in), ("outputs", outputs, self.sizes_out)):
            chosen = [tuple(shape) for shape in (map(natural_shape, sizes) if shapes is None else shapes)]
            if [math.prod(shape) for shape in chosen] != [rows * columns for rows, columns in sizes]:
                allowed = f"one shape for each of the matrices {list(sizes)}, with the same number of entries"
                raise ModelError(argument=what, value=chosen, where=self.name, allowed=allowed)
            result.append(chosen)
        return result[0], result[1]


class StoredKernel:
    """A kernel stored on disk: its ``signature`` and object ``code``."""

    def __init__(self, signature: Signature, code: list[bytes], text: bytes):
        self.signature, self.code, self._text = signature, code, text

    @cached_property
    def function(self) -> ca.Function:
        """The CasADi function from which the code was compiled."""
        if not self._text:
            raise LookupError(f"{self.signature.name}: the code was stored without its CasADi function")
        return ca.Function.deserialize(self._text.decode())


def recall(key: str) -> StoredKernel | None:
    """Return the kernel stored under a key, or None."""
    parts = load(key)
    if parts is None:
        return None
    name, names_in, names_out, *sizes = json.loads(parts[0])
    sizes_in, sizes_out = (tuple((rows, columns) for rows, columns in size) for size in sizes)
    return StoredKernel(Signature(name, tuple(names_in), tuple(names_out), sizes_in, sizes_out), parts[2:], parts[1])


def keep(key: str, function: ca.Function, code: Sequence[bytes], whole: bool = True) -> None:
    """Store the object code of a function under a key, including the CasADi function if ``whole`` is True."""
    text = function.serialize().encode() if whole else b""
    store(key, [json.dumps(Signature.of(function)).encode(), text, *code])


@cache
def source_hash(*places: str) -> str:
    """Return the hash of all code and data (.py, .ll, .toml) in packages or modules with paths relative to ``torsor``.

    In a frozen application or a zip file, which has no Python files, the size and modification time are hashed instead.
    """
    digest = hashlib.sha256()
    for place in places:
        path = _PACKAGE / place
        found = path.rglob("*") if path.is_dir() else [path]
        files = sorted(file for file in found if file.suffix in (".py", ".ll", ".toml") and file.is_file())
        if not any(file.suffix == ".py" for file in files):
            container = next((parent for parent in path.parents if parent.is_file()), Path(sys.executable))
            status = container.stat()
            digest.update(f"{container}:{status.st_size}:{status.st_mtime_ns}\n".encode())
        for file in files:
            content = file.read_bytes()
            digest.update(f"{file.relative_to(_PACKAGE).as_posix()}:{len(content)}\n".encode() + content)
    return digest.hexdigest()


def location() -> Path | None:
    """Return the cache folder, or None if the cache is disabled.

    Example:
        >>> path = location()
        >>> path is None or isinstance(path, Path)
        True
    """
    chosen = os.environ.get("TORSOR_CACHE")
    if chosen is not None:
        return None if chosen.lower() in ("", "0", "off", "no", "none") else _expanded(chosen)
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "torsor" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "torsor"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "torsor"


@cache
def _expanded(chosen: str) -> Path | None:
    """Return the folder named by ``TORSOR_CACHE``, or None with one warning if its user does not exist."""
    try:
        return Path(chosen).expanduser()
    except RuntimeError:
        # The compiler also works without a cache, but more slowly.
        message = f"TORSOR_CACHE is {chosen!r}, the folder of a user who does not exist, so compiled code is not stored"
        warnings.warn(f"{message}; allowed: a folder, or off; fix: correct the name", RuntimeWarning, stacklevel=3)
        return None


def info() -> CacheInfo:
    """Return the cache folder (None if the cache is disabled), the number of kernels and their total size in bytes.

    Example:
        >>> info().kernels >= 0
        True
    """
    path = location()
    files = [] if path is None else _files(path)
    return CacheInfo(path, len(files), sum(status.st_size for _, status in files))


def refused() -> str:
    """Return why the selected folder is not used and how to fix it; "" if it is used or the cache is disabled."""
    path, chosen = location(), os.environ.get("TORSOR_CACHE", "")
    if path is None:
        return f"{chosen} is the folder of a user who does not exist" if chosen.startswith("~") else ""
    try:
        status = path.stat()
    except OSError:
        return ""  # the folder is created when the first kernel is stored
    if not stat.S_ISDIR(status.st_mode):
        return f"{path} is not used, because it is not a folder"
    why = _foreign(status)
    is_own = hasattr(os, "geteuid") and status.st_uid == os.geteuid() and not status.st_mode & stat.S_ISVTX
    fix = f"fix: {f'chmod 700 {path}, or ' if is_own else ''}set TORSOR_CACHE to a folder that you own"
    return f"{path} is not used, because {why}; {fix}" if why else ""


def clear() -> int:
    """Delete all kernels in the cache and return their number."""
    path = location()
    files = [] if path is None else _files(path)
    for file in [*(file for file, _ in files), *([] if path is None else path.glob(".*.part"))]:
        file.unlink(missing_ok=True)
    return len(files)


def load(key: str) -> list[bytes] | None:
    """Return the object code stored under a key, or None if there is none or it is not trusted."""
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
    objects = _unpack(content, key)
    try:
        if objects is None:
            file.unlink(missing_ok=True)
        else:
            os.utime(file)  # marks the file as used, because the least recently used files are deleted first
    except OSError:
        pass  # the cache may be read-only
    return objects


@contextlib.contextmanager
def compiling(key: str) -> Iterator[bool]:
    """Wait until no other process holds the compilation lock of the kernel with this key, and hold it.

    The yielded value is True if this process had to wait, and the kernel may have been stored meanwhile. If the
    cache is read-only, processes do not wait.
    """
    folder = location()
    if folder is None:
        yield False
        return
    path, lock, waited = folder / f".{key}.lock", -1, False
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        while _private(folder) and (lock := _locked(path)) < 0:
            waited = True
            time.sleep(_PAUSE)
    except OSError:  # the folder is not writable, or the file system has no locks
        pass
    try:
        yield waited
    finally:
        if lock >= 0:
            with contextlib.suppress(OSError):  # Windows cannot remove open files
                path.unlink()
            os.close(lock)


def _locked(path: Path) -> int:
    """Return an open file with an exclusive lock until the process ends, or -1 if another process holds the lock."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform == "win32":
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), path.stat()):  # the previous holder may have removed it after it was opened
            return file
    except (BlockingIOError, PermissionError, FileNotFoundError):
        pass
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    return -1


def store(key: str, objects: Sequence[bytes]) -> None:
    """Store object code under a key; do nothing if the cache is not writable."""
    folder = location()
    if folder is None:
        return
    temporary = folder / f".{key}.{os.getpid()}.{secrets.token_hex(4)}.part"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(folder):
            return
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            parts = [key.encode(), *objects]
            body = struct.pack("<I", len(parts)) + b"".join(struct.pack("<Q", len(part)) + part for part in parts)
            file.write(_MAGIC + hashlib.sha256(body).digest() + body)
        temporary.replace(folder / (key + _SUFFIX))
        stored = _stored.get(folder, math.inf) + len(body)
        _stored[folder] = 0.0 if stored > _PRUNED_SHARE * _limit() else stored
        if not _stored[folder]:
            _prune(folder)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _unpack(content: bytes, key: str) -> list[bytes] | None:
    """Return the object code in the content of a file, or None if the checksum or the key is wrong."""
    start = len(_MAGIC) + 32
    body = content[start:]
    if not content.startswith(_MAGIC) or hashlib.sha256(body).digest() != content[len(_MAGIC) : start]:
        return None
    (count,), offset, objects = struct.unpack_from("<I", body), 4, []
    for _ in range(count):
        (length,) = struct.unpack_from("<Q", body, offset)
        objects.append(body[offset + 8 : offset + 8 + length])
        offset += 8 + length
    return objects[1:] if objects[:1] == [key.encode()] else None


def _private(path: Path) -> bool:
    """Return whether only this user (or root) could have written a folder or file."""
    try:
        status = path.lstat() if path.name.endswith(_SUFFIX) else path.stat()
    except OSError:
        return False
    return not _foreign(status)


def _foreign(status: os.stat_result) -> str:
    """Return why other users (except root) could have written a folder or file, or "" if they could not."""
    if not hasattr(os, "geteuid"):
        return ""  # on Windows, folders below the user's profile are private
    if status.st_uid not in (os.geteuid(), 0):
        return "it belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"other users can write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return "it is a link" if stat.S_ISLNK(status.st_mode) else ""


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    result = []
    with contextlib.suppress(OSError):  # the folder does not exist yet
        for file in folder.glob("*" + _SUFFIX):
            with contextlib.suppress(OSError):  # another process may be pruning
                result.append((file, file.stat()))
    return result


def _limit() -> float:
    """Return the maximum size of the cache in bytes."""
    try:
        return float(os.environ.get("TORSOR_CACHE_MB", _DEFAULT_MB)) * 1e6
    except ValueError:
        return _DEFAULT_MB * 1e6


def _prune(folder: Path) -> None:
    """Delete the least recently used kernels beyond the size limit, and temporary files of killed processes."""
    for leftover in (*folder.glob(".*.part"), *folder.glob(".*.lock")):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > 3600:
                leftover.unlink()
    total, limit = 0.0, _limit()
    for file, status in sorted(_files(folder), key=lambda entry: -entry[1].st_mtime):
        total += status.st_size
        if total > limit:
            file.unlink(missing_ok=True)

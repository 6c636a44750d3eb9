"""Atomic file writing, and safe reading of NumPy archives (.npz)."""

import errno
import os
import secrets
import shutil
import struct
import tempfile
import tokenize
import tomllib
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from torsor.base.errors import ModelError

# Errors that a damaged or malicious file may cause during decoding.
_DECODING_ERRORS: tuple[type[Exception], ...] = (ValueError, TypeError, ArithmeticError, AttributeError, IndexError)
_DECODING_ERRORS += (MemoryError, EOFError, OSError, RuntimeError)
_DECODING_ERRORS += (SyntaxError,)  # NumPy parses array headers as Python
_DECODING_ERRORS += (tokenize.TokenError, struct.error, zipfile.BadZipFile, zlib.error)
LARGEST_FILE = 16_000_000  # bytes; files of published robots are less than a tenth of this
LARGEST_VARIABLE = "TORSOR_LARGEST_FILE"  # environment variable that changes this limit
LONGEST_NAME = 60  # maximum number of characters of a file name in an error
_MAX_NAME_KEPT = 40  # maximum number of characters of a file name in its temporary name
_KINDS = {"f": "real numbers", "iu": "integers", "b": "booleans"}


def read_limited(path: Path, largest: int = LARGEST_FILE) -> bytes:
    """Return the bytes of a file; raise ModelError if it is larger than ``largest`` (or TORSOR_LARGEST_FILE, bytes).

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "note.txt").write_text("done", encoding="utf-8")
        ...     read_limited(Path(folder, "note.txt"))
        b'done'
    """
    variable = os.environ.get(LARGEST_VARIABLE, "").strip()
    if variable and not (variable.isascii() and variable.isdigit()):
        allowed = f"a number of bytes, for example {LARGEST_FILE}"
        raise ModelError(f"it is {variable[:40]!r}", where=LARGEST_VARIABLE, allowed=allowed)
    largest = int(variable) if variable else largest
    with path.open("rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        fix = f"check the path, or set the environment variable {LARGEST_VARIABLE} to a larger number of bytes"
        raise ModelError("the file is too large", where=path.name, allowed=f"{largest / 1e6:g} MB", fix=fix)
    return content


def data_of(module: str) -> dict[str, Any]:
    """Return the tables in the .toml file next to a module, given by its ``__name__``."""
    package, _, name = module.rpartition(".")
    return tomllib.loads(resources.files(package).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def check_file(path: Path, allowed: str, fix: str = "") -> None:
    """Raise ModelError if a path is not a file; ``allowed`` describes the expected files.

    Example:
        >>> check_file(Path("no/such/log.csv"), "a log: .csv")
        Traceback (most recent call last):
        torsor.ModelError: no/such/log.csv: no such file; allowed: a log: .csv
    """
    try:
        is_file, is_folder, exists = path.is_file(), path.is_dir(), path.exists()
    except (OSError, ValueError):  # the name is impossible
        is_file = is_folder = exists = False
    if not is_file:
        message = "it is a folder" if is_folder else "it is a device or a pipe" if exists else "no such file"
        raise ModelError(message, where=str(path), allowed=allowed, fix=fix)


def check_suffix(path: Path, allowed: Iterable[str], where: str = "") -> None:
    """Raise ModelError if the suffix of a file is not ``allowed``; ``where`` is its name by default."""
    suffixes = tuple(allowed)
    if path.suffix.lower() not in suffixes:
        message, words = f"the suffix is {path.suffix!r}", ", ".join(filter(None, suffixes))
        raise ModelError(message, value=path.suffix, where=where or path.name, allowed=words)


def check_name(path: Path) -> None:
    """Raise ModelError if a file name is impossible because it is too long or contains a null character.

    Example:
        >>> check_name(Path("a" * 300 + ".xml"))
        Traceback (most recent call last):
        torsor.ModelError: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...: its name is too long
    """
    if "\0" in str(path):
        raise ModelError("its name contains a null character", where=str(path).replace("\0", "\\0"))
    try:
        path.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ModelError("its name is too long", where=f"{path.name[:LONGEST_NAME]}...") from None


def check_target(path: Path) -> None:
    """Raise ModelError if a file cannot be written: it is a folder, its folder is missing, or permission is denied.

    An existing file is opened and left unchanged. A new file is created and removed again.

    Example:
        >>> check_target(Path("no", "such.csv"))
        Traceback (most recent call last):
        torsor.ModelError: no/such.csv: its folder does not exist; fix: create the folder first
    """
    check_name(path)
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if target.is_dir():
        raise ModelError("it is a folder", where=str(path), allowed="a file")
    if not target.parent.is_dir():
        raise ModelError("its folder does not exist", where=str(path), fix="create the folder first")
    check_opened(target, str(path))


def check_opened(path: Path, where: str) -> None:
    """Raise ModelError, with the system's message, if a file cannot be opened for writing."""
    is_new = not path.exists()
    if not (is_new or path.is_file()):
        return  # opening a device or pipe might wait for its reader
    try:
        path.open("xb" if is_new else "ab").close()
    except OSError as error:
        raise ModelError(f"it cannot be written ({error.strerror})", where=where, fix="choose another place") from None
    if is_new:
        path.unlink()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` at the end of the block; after an error, the old file is unchanged.

    The new file has the permissions of the old file. Devices and pipes, such as /dev/null, are written to directly.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder, "note.txt")) as part:
        ...         _ = part.write_text("done", encoding="utf-8")
        ...     [file.name for file in Path(folder).iterdir()]
        ['note.txt']
    """
    check_name(path)
    target = Path(os.path.realpath(path)) if path.is_symlink() else path  # keep the link and replace its file
    if target.exists() and not (target.is_file() or target.is_dir()):
        with tempfile.TemporaryDirectory() as folder:  # devices and pipes are not replaced
            part = Path(folder, target.name)
            yield part
            with part.open("rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
        return
    # The same folder makes replacing atomic; the name is short, because names have at most 255 bytes.
    part = target.with_name(f".{target.name[:_MAX_NAME_KEPT]}.{secrets.token_hex(4)}.part")
    try:
        yield part
        if target.is_file():
            shutil.copymode(target, part)  # the new file is as private as the old file
        part.replace(target)
    except OSError as error:
        # Report the file name that the user passed.
        if error.errno is not None and error.filename in (None, part, str(part)):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file atomically, with the same line endings on all systems."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def write_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays to an uncompressed .npz file atomically.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_npz(Path(folder, "x.npz"), {"x": [1.0, 2.0]})
        ...     with reading_npz(Path(folder, "x.npz"), "a vector") as found:
        ...         found["x"].tolist()
        [1.0, 2.0]
    """
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, **arrays)


@contextmanager
def reading_npz(path: Path, what: str) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the arrays in an .npz file by name; raise ModelError for errors in the content, even within the block.

    ``what`` names the expected content, such as "a trajectory". Pickled objects are rejected because they can run code,
    and compressed members because they may decompress to terabytes. OSError is raised if a file does not exist or is
    not readable, and ModelError for a folder or an impossible file name.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_npz(Path(folder, "x.npz"), {"x": [1.0, 2.0]})
        ...     with reading_npz(Path(folder, "x.npz"), "a pair") as found:
        ...         found["y"]
        Traceback (most recent call last):
        torsor.ModelError: x.npz: there is no 'y'; fix: check that the file contains a pair
    """
    with _opened(path, what) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                result = _members(archive)
            yield result
        except KeyError as error:
            fix = f"check that the file contains {what}"
            raise ModelError(f"there is no {error}", where=path.name, fix=fix) from None
        except _DECODING_ERRORS as error:
            raise ModelError(f"not {what}: {error}", where=path.name) from None


def _members(archive: zipfile.ZipFile) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive in this machine's byte order; np.load takes quadratic time for many arrays."""
    result: dict[str, NDArray[Any]] = {}
    for item in archive.infolist():
        name, dot, _ = item.filename.rpartition(".npy")
        if item.compress_type != zipfile.ZIP_STORED:
            raise ValueError("its members are compressed")
        if not dot or name in result:
            fault = "appears twice" if dot else "is not an array"
            raise ValueError(f"its member {item.filename[:LONGEST_NAME]!r} {fault}")
        with archive.open(item) as member:
            array = np.lib.format.read_array(member, allow_pickle=False)
        result[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return result


def _opened(path: Path, what: str) -> BinaryIO:
    try:
        return path.open("rb")
    except (FileNotFoundError, PermissionError):
        raise
    except (OSError, ValueError) as error:  # a folder, or a name that is too long or contains a null character
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        name = path.name if len(path.name) <= LONGEST_NAME else f"{path.name[:LONGEST_NAME]}..."
        raise ModelError(f"not {what}: {reason}", where=name.replace("\0", "\\0")) from None


def check_array(array: NDArray[Any], shape: tuple[int, ...], what: str, kind: str = "f") -> None:
    """Raise ValueError if an array from a file has the wrong shape or kind ("f", "iu" or "b", as in ``dtype.kind``).

    Example:
        >>> check_array(np.zeros(3), (2,), "q")
        Traceback (most recent call last):
        ValueError: q has shape (3,) and type float64; allowed: (2,), real numbers
    """
    if array.shape != shape or array.dtype.kind not in kind or array.dtype.itemsize > 8:  # longer types vary
        message = f"{what} has shape {array.shape} and type {array.dtype}"
        raise ValueError(f"{message}; allowed: {shape}, {_KINDS[kind]}")

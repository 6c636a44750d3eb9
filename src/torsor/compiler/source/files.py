"""Writing exported files: all of them or none, and never over a file that Torsor did not write."""

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from torsor.compiler.source.about import MARK


def check_new(files: Iterable[Path], overwrite: bool) -> None:
    """Raise ValueError if a file exists, unless it may be overwritten: nothing is replaced by accident.

    Example:
        >>> check_new([Path(".")], overwrite=False)
        Traceback (most recent call last):
        ValueError: .: is there already; allowed: a new file; fix: choose another place, or --force (overwrite=True)
    """
    for file in files:
        if file.exists() and not overwrite:
            found = f"{file}: is there already; allowed: a new file"
            raise ValueError(f"{found}; fix: choose another place, or --force (overwrite=True)")


def is_own(file: Path) -> bool:
    """Return whether Torsor wrote a file of text: its first lines say so."""
    return MARK in file.read_text(errors="replace")[:200]


def write_all(folder: Path, texts: Mapping[str, str], overwrite: bool = True) -> list[Path]:
    """Write files under temporary names and then rename them, so that no file is ever incomplete.

    ``texts`` are ASCII, by names in the folder, which may be those of subfolders (``"src/arm.cpp"``).
    """
    parts: dict[Path, Path] = {}
    if "\0" in str(folder):
        raise ValueError(f"{str(folder)!r} has a null character; allowed: a folder; fix: choose another")
    if folder.suffix in {Path(each).suffix for each in texts} and not folder.is_dir():
        found = f"{folder} has the name of a file; allowed: a folder, for {', '.join(texts)}"
        raise ValueError(f"{found}; fix: {str(folder.with_suffix(''))!r}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in texts:
            file = folder / each
            if file.exists() and not is_own(file):
                found = "is there and was not written by Torsor; allowed: files that were"
                raise ValueError(f"{file}: {found}; fix: choose another folder")
        check_new((folder / each for each in texts), overwrite)
        for each, text in texts.items():
            file = folder / each
            file.parent.mkdir(parents=True, exist_ok=True)
            parts[file] = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
            parts[file].write_bytes(text.encode("ascii"))
        for file, part in parts.items():
            part.replace(file)
    except OSError as error:
        raise ValueError(f"cannot write to {folder}: {error}; allowed: a folder; fix: choose another") from error
    finally:
        for part in parts.values():
            if part.exists():
                part.unlink()
    return list(parts)

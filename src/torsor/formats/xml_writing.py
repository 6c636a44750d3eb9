"""What writers share: numbers that read back exactly, names that XML can hold, files that are whole or not there."""

import os
import re
import secrets
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from torsor.errors import ModelError, describe, warn

__all__ = ["LeftOut", "add", "content", "numbers", "put", "seen_from"]

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def put(path: str | Path, suffixes: tuple[str, ...], made: Callable[[], bytes]) -> None:
    """Put a file in place all at once: a write that fails leaves what was there before."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        found, fix = f"the suffix is {path.suffix!r}", f"name it {path.stem}{suffixes[0]}"
        raise ModelError(describe(found, where=path.name, allowed=", ".join(suffixes), fix=fix))
    if not path.parent.is_dir():
        raise ModelError(describe("its folder does not exist", where=str(path), fix="make the folder first"))
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # in the same folder: replacing is then one step
    try:
        part.write_bytes(made())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def numbers(values: Any) -> str:
    """Return numbers with the fewest digits that read back the same.

    Example:
        >>> numbers([1.0, 0.1, -0.0, 1e-7])
        '1 0.1 0 1e-07'
    """
    return " ".join(repr(float(value) + 0.0).removesuffix(".0") for value in np.ravel(values))


def add(parent: ET.Element, tag: str, **attributes: Any) -> ET.Element:
    """Add an element; attributes are text or numbers, and those that are None are left away."""
    made = ET.SubElement(parent, tag)
    for key, value in attributes.items():
        if value is not None:
            made.set(key.rstrip("_"), value if isinstance(value, str) else numbers(value))
    return made


def content(root: ET.Element, source: str) -> bytes:
    """Return the bytes of a file, or refuse a name that XML cannot hold."""
    for element in root.iter():
        for value in element.attrib.values():
            if _NO_XML.search(value):
                found, fix = f"{value!r} in <{element.tag}>", "take the control characters out of the name"
                raise ModelError(describe(found, where=source, allowed="characters that XML has", fix=fix))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def seen_from(path: Path, file: str) -> str:
    """Return a file as one in the folder of ``path`` names it: by the way from there, so both can move."""
    try:
        return Path(os.path.relpath(file, path.resolve().parent)).as_posix()
    except ValueError:  # on another drive
        return str(Path(file).resolve())


class LeftOut:
    """What a format has no word for, with the names of the parts that have it: one warning tells all of it."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = defaultdict(list)

    def note(self, what: str, name: str, there: Any = True) -> None:
        """Remember that a part has something, where it is there."""
        if there and name not in self.found[what]:
            self.found[what].append(name)

    def tell(self, source: str, format: str, most: int = 4) -> None:
        """Warn of what is not written as it is, if there is anything."""
        lines = [f"{what} ({_listing(names, most)})" for what, names in self.found.items() if names]
        if lines:
            warn(describe(f"{format} has no word for {'; '.join(lines)}", where=source))


def _listing(names: list[str], most: int) -> str:
    return ", ".join(names[:most]) + (f", ... {len(names)} in all" if len(names) > most else "")

"""Values in the elements of .osim files: names, texts, numbers, places."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import LARGEST, frozen_array
from torsor.base.errors import ModelError, describe
from torsor.formats.decimals import number_in
from torsor.formats.xml import FLAGS, Element


def name_of(path: Path, element: ET.Element) -> str:
    """Return the name of an element, which it must have."""
    name = element.get("name", "")
    if not name:
        raise ModelError(describe("it has no name", where=where_is(path, element)))
    return name


def text_in(element: ET.Element, key: str) -> str:
    """Return the text of a child element, empty without it."""
    return (element.findtext(key) or "").strip()


def flag_in(path: Path, element: ET.Element, key: str, default: bool = False) -> bool:
    """Return whether a child element is true, in the words that OpenSim reads; ``default`` without it.

    Example:
        >>> flag_in(Path("a.osim"), ET.fromstring("<Coordinate><locked>TRUE</locked></Coordinate>"), "locked")
        True
    """
    text = text_in(element, key).lower()
    if text and text not in FLAGS:
        found = f"<{key}> is {text[:40]!r}"
        raise ModelError(describe(found, where=where_is(path, element), allowed="true, false, 1, 0"))
    return FLAGS.get(text, default)


def numbers_in(
    path: Path, element: ET.Element, key: str, count: int | None, missing: tuple[float, ...] | None = None
) -> Array:
    """Return the numbers in a child element: ``count`` of them, or any number; ``missing`` without that element."""
    text = text_in(element, key)
    if not text and missing is not None:
        return np.array(missing)
    where = where_is(path, element)
    try:
        values = [number_in(each) for each in text.replace(",", " ").split()]
    except ValueError as error:
        raise ModelError(describe(f"<{key}>: {error}", where=where, allowed="numbers")) from None
    if not values or (count is not None and len(values) != count):
        allowed = f"{'some' if count is None else count} numbers"
        raise ModelError(describe(f"<{key}> has {len(values)} numbers", where=where, allowed=allowed))
    return frozen_array(values, (len(values),), where, f"<{key}>", most=LARGEST)


def where_is(path: Path, element: ET.Element) -> str:
    """Return file, line and name of an element, for messages."""
    line = f"line {element.line}: " if isinstance(element, Element) else ""
    return f"{path.name}: {line}{element.tag} {element.get('name', '')!r}"


def place_in(path: Path, element: ET.Element, *keys: str, count: int = 3) -> Array:
    """Return translation and orientation (6,) of a frame, each of ``count`` numbers, zeros where they are missing."""
    return np.concatenate([numbers_in(path, element, key, count, (0.0,) * count) for key in keys])

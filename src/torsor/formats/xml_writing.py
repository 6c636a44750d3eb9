"""Writing XML: elements with numbers that read back exactly, and the bytes of a file."""

import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np

from torsor.errors import ModelError, describe

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def numbers(values: Any) -> str:
    """Return numbers as text, each with the fewest digits that read back to the same number.

    Example:
        >>> numbers([1.0, 0.1, -0.0, 1e-7])
        '1 0.1 0 1e-07'
    """
    return " ".join(repr(float(value) + 0.0).removesuffix(".0") for value in np.ravel(values))


def add_element(parent: ET.Element, tag: str, **attributes: Any) -> ET.Element:
    """Add an element; attributes are text or numbers, and those that are None are not written.

    Example:
        >>> add_element(ET.Element("link"), "origin", xyz=[0, 0, 0.5], rpy=None).attrib
        {'xyz': '0 0 0.5'}
    """
    element = ET.SubElement(parent, tag)
    for key, value in attributes.items():
        if value is not None:
            element.set(key, value if isinstance(value, str) else numbers(value))
    return element


def xml_bytes(root: ET.Element, source: str) -> bytes:
    """Return the bytes of an XML file; raise ModelError for a name with characters that XML does not allow."""
    for element in root.iter():
        for value in element.attrib.values():
            if _NOT_IN_XML.search(value):
                found, fix = f"{value!r} in <{element.tag}>", "remove the control characters from the name"
                raise ModelError(describe(found, where=source, allowed="characters that XML allows", fix=fix))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"

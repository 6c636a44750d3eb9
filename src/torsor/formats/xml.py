"""XML: parsing of unknown sources, without document types and entities; elements of numbers that read back exactly."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from torsor.errors import ModelError, describe

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Element(ET.Element):
    """An XML element with the line of the file where it begins."""

    line: int = 0


def parse_xml(path: Path) -> Element:
    """Return the root element of an XML file; raise ModelError with the file and the line if it cannot be parsed."""
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def element(tag: str, attributes: dict[str, str]) -> Element:
        made = Element(tag, attributes)
        made.line = parser.CurrentLineNumber
        return made

    builder = ET.TreeBuilder(element_factory=element)

    def refuse(*_: object) -> None:
        # Entities can fill the memory ("billion laughs") or read other files; robot descriptions do not need them.
        found, where = "a document type or entity declaration", f"{path.name}: line {parser.CurrentLineNumber}"
        fix = "remove <!DOCTYPE ...> and <!ENTITY ...>"
        raise ModelError(describe(found, where=where, allowed="elements and attributes only", fix=fix))

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(path.read_bytes(), True)
        root = builder.close()
    except ModelError:
        raise
    except expat.ExpatError as error:
        raise ModelError(describe(f"not well-formed XML ({error})", where=path.name, fix="correct that line")) from None
    except (LookupError, ValueError) as error:
        found, fix = f"its encoding cannot be read ({error})", "save it as UTF-8"
        raise ModelError(describe(found, where=path.name, fix=fix)) from None
    assert isinstance(root, Element)
    return root


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

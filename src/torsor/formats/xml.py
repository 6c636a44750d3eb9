"""Parsing XML from unknown sources: document types and entities are refused, and every element knows its line."""

import xml.etree.ElementTree as ET
from pathlib import Path
from xml.parsers import expat

from torsor.errors import ModelError, describe


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
        raise ModelError(
            describe(
                "a document type or entity declaration",
                where=f"{path.name}: line {parser.CurrentLineNumber}",
                allowed="elements and attributes only",
                fix="remove <!DOCTYPE ...> and <!ENTITY ...>",
            )
        )

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
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

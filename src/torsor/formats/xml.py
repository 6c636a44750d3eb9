"""XML from files that nobody has vouched for: no document types, no entities, and every element knows its line."""

import xml.etree.ElementTree as ET
from pathlib import Path
from xml.parsers import expat

from torsor.errors import ModelError, describe

__all__ = ["Element", "parse_xml"]


class Element(ET.Element):
    """An XML element that remembers its line."""

    line: int = 0


def parse_xml(path: Path, text: bytes | None = None) -> Element:
    """Return the root element of an XML file, or raise an error that names the file and the line."""
    content = path.read_bytes() if text is None else text
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def element(tag: str, attributes: dict[str, str]) -> Element:
        made = Element(tag, attributes)
        made.line = parser.CurrentLineNumber
        return made

    builder = ET.TreeBuilder(element_factory=element)

    def refuse(*_: object) -> None:
        # Entities can fill the memory ("billion laughs") or read other files; robot descriptions need none.
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
        parser.Parse(content, True)
        root = builder.close()
    except ModelError:
        raise
    except expat.ExpatError as error:
        raise ModelError(describe(f"not well-formed XML ({error})", where=path.name, fix="correct that line")) from None
    except (LookupError, ValueError) as error:
        fix = "save it as UTF-8"
        raise ModelError(describe(f"its encoding cannot be read ({error})", where=path.name, fix=fix)) from None
    assert isinstance(root, Element)
    return root

"""Safe XML parsing without document type and entity declarations, and writing of numbers that are read back exactly."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import MAX_NUMBER
from torsor.base.decimals import up_to
from torsor.base.errors import ModelError
from torsor.base.faults import refuse_or_warn
from torsor.base.files import read_limited

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


# The root element of MJCF, without comments before it. Atomic groups prevent backtracking in a malicious file.
_MUJOCO = re.compile(rb"\A(?>\s+|<\?.*?\?>)*+<mujoco\b([^<>]*+)>", re.DOTALL)
FLAGS = {"true": True, "1": True, "false": False, "0": False}  # in SDF and OpenSim files, in lower case
MAX_ELEMENTS = 500_000  # published robots have less than a tenth; a million takes a second and half a gigabyte


class Element(ET.Element):
    """An XML element with its file and first line. ``flaw`` is the error of a file that is not well-formed XML."""

    source: str = ""
    line: int = 0
    flaw: "ModelError | None" = None


def where_is(element: Any, owner: str = "") -> str:
    """Return the file, line and owner of an element, for messages."""
    return f"{element.source}: line {element.line}" + (f": {owner}" if owner else "")


def text_of(element: Any, tag: str) -> str:
    """Return the text of a child without surrounding blanks, or an empty string if there is no such child."""
    return (element.findtext(tag) or "").strip()


def flag_of(element: Any, tag: str, owner: str, default: bool = False) -> bool:
    """Return whether a child is true, or ``default`` if there is no such child."""
    text = text_of(element, tag).lower()
    if text and text not in FLAGS:
        where = where_is(element.find(tag), owner)
        raise ModelError(f"<{tag}> is {text[:80]!r}", where=where, allowed="true, false, 1, 0")
    return FLAGS.get(text, default)


def numbers_in(text: str, count: int, description: str, where: str, most: float = MAX_NUMBER) -> Array:
    """Return the numbers (count,) in a text, at most ``most`` in magnitude. Messages contain ``description``."""
    values = floats_in(text, count, most)
    if values is None:
        allowed = ("a number" if count == 1 else f"{count} finite numbers") + up_to(most)
        raise ModelError(description, value=text, where=where, allowed=allowed)
    return np.array(values)


def floats_in(text: str, count: int, most: float = MAX_NUMBER) -> list[float] | None:
    """Return ``count`` numbers in a text, at most ``most`` in magnitude, or None if it contains anything else."""
    if "_" in text or not text.isascii():  # as in ``number_in``
        return None
    try:
        values = [*map(float, text.split())]
    except ValueError:
        return None
    if len(values) != count:
        return None
    for value in values:
        if not -most <= value <= most:  # NaN fails the comparison too
            return None
    return values


def parse_xml(path: Path, strict: bool = False) -> Element:
    """Return the root element of an XML file. If it cannot be parsed, raise ModelError with the file and line.

    Other readers of robot files accept some text that is not well-formed: blanks before the declaration, zeros at the
    end, comments with ``--`` or with bytes of another encoding. Unless ``strict``, it is accepted with a warning.
    """
    content = read_limited(path)
    try:
        return parse_xml_text(content, path.name)
    except _NotWellFormedError as error:
        for repaired, what in _repairs(content):
            try:
                root = parse_xml_text(repaired, path.name)
            except _NotWellFormedError:
                continue
            message = f"{error.what}: {what}" if strict else f"{what}, which XML does not allow; this is ignored"
            refuse_or_warn(ModelError(message, where=path.name, fix="remove it"), strict)
            return root
        if strict:
            raise
        root_of_mjcf = _MUJOCO.match(_without_comments(content))
        if root_of_mjcf and b"<!DOCTYPE" not in content and b"<!ENTITY" not in content:
            model = re.search(rb"""\bmodel\s*=\s*(["'])(.*?)\1""", root_of_mjcf[1])
            root = Element("mujoco", {"model": model[2].decode(errors="replace") if model else ""})
            root.flaw = error  # MuJoCo decides whether it can be read
            return root
        raise ModelError(error.what, where=error.where, fix=error.fix) from None


class _NotWellFormedError(ModelError):
    """A file that is not well-formed XML but may be repairable."""


def parse_xml_text(content: bytes, source: str) -> Element:
    """Return the root element of an XML document in a text. ``source`` is its name in messages."""
    parser, count = expat.ParserCreate(), 0
    parser.buffer_text = True

    def element(tag: str, attributes: dict[str, str]) -> Element:
        nonlocal count
        count += 1
        if count > MAX_ELEMENTS:
            raise ModelError("it has too many elements", where=source, allowed=f"{MAX_ELEMENTS} or fewer")
        made = Element(tag, attributes)
        made.source, made.line = source, parser.CurrentLineNumber
        return made

    builder = ET.TreeBuilder(element_factory=element)

    def refuse(*_: object) -> None:
        # Entities can exhaust memory ("billion laughs") or read other files; robot descriptions do not need them.
        message, where = "it has a document type or entity declaration", f"{source}: line {parser.CurrentLineNumber}"
        fix = "remove <!DOCTYPE ...> and <!ENTITY ...>"
        raise ModelError(message, where=where, allowed="elements and attributes only", fix=fix)

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(content, True)
        root = builder.close()
    except ModelError:
        raise
    except expat.ExpatError as error:
        raise _NotWellFormedError(f"not well-formed XML ({error})", where=source, fix="correct that line") from None
    except (LookupError, ValueError) as error:
        raise ModelError(f"its encoding cannot be read ({error})", where=source, fix="save it as UTF-8") from None
    assert isinstance(root, Element)
    return root


def _repairs(content: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield repaired versions of a file that is not well-formed, each with one more repair, and what was repaired.

    Line numbers do not change: a comment is replaced by as many empty lines.
    """
    result = []
    bare = content.lstrip(b" \t\r\n")
    if bare != content and bare.startswith(b"<?xml"):
        content = bare
        result.append("blanks before <?xml ...?>")
        yield content, result[0]
    bare = content.rstrip(b"\0 \t\r\n")
    if b"\0" in content[len(bare) :]:
        content = bare
        result.append("zeros at the end")
        yield content, " and ".join(result)
    # "<" is not allowed in attributes, so outside CDATA this is a comment, unless it is unterminated.
    if b"<![CDATA[" not in content:
        bare = _without_comments(content)
        if bare != content:
            result.append("'--' or bytes of another encoding in a comment")
            yield bare, " and ".join(result)


def _without_comments(content: bytes) -> bytes:
    """Return the content with each comment replaced by its line feeds, in time proportional to its size."""
    kept, at = [], 0
    while (start := content.find(b"<!--", at)) >= 0 and (end := content.find(b"-->", start + 4)) >= 0:
        kept += [content[at:start], b"\n" * content.count(b"\n", start, end)]
        at = end + 3
    return b"".join([*kept, content[at:]])


def numbers(values: Any) -> str:
    """Return numbers as text, each with the fewest digits from which the same number is read back."""
    return " ".join(repr(float(value) + 0.0).removesuffix(".0") for value in np.ravel(values))


def add_element(parent: ET.Element, tag: str, **attributes: Any) -> ET.Element:
    """Add an element. Attributes are strings or numbers; None is omitted."""
    element = ET.SubElement(parent, tag)
    for key, value in attributes.items():
        if value is not None:
            element.set(key, value if isinstance(value, str) else numbers(value))
    return element


def xml_bytes(root: ET.Element, source: str) -> bytes:
    """Return the bytes of an XML file. Raise ModelError for a name with characters that XML does not allow."""
    for element in root.iter():
        for value in (*element.attrib.values(), element.text or ""):
            if _NOT_IN_XML.search(value):
                message, fix = f"{value!r} in <{element.tag}>", "remove the control characters from the name"
                raise ModelError(message, value=value, where=source, allowed="characters that XML allows", fix=fix)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"

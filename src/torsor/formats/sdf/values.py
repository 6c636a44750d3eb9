"""Texts of SDF elements as numbers, flags and poses, with errors that name file, line and element."""

from math import radians
from typing import Any

import numpy as np

from torsor.base.arrays import IDENTITY, Array
from torsor.base.checks import LARGEST
from torsor.base.errors import ModelError, describe
from torsor.formats.decimals import number_in, up_to
from torsor.formats.xml import FLAGS, Element
from torsor.spatial import from_quaternion, from_rpy, make_pose


def where_of(element: Any, source: str, owner: str = "") -> str:
    """Return file, line and owner of an element, for messages."""
    line = f"{source}: line {element.line}" if isinstance(element, Element) else source
    return f"{line}: {owner}" if owner else line


def text_of(element: Any, tag: str) -> str:
    """Return the text of a child, without blanks around it; empty where there is none.

    Example:
        >>> import xml.etree.ElementTree as ET
        >>> text_of(ET.fromstring("<joint><child> arm </child></joint>"), "child")
        'arm'
    """
    return (element.findtext(tag) or "").strip()


def numbers_of(element: Any, count: int, source: str, owner: str, most: float = LARGEST) -> Array:
    """Return the numbers (count,) in the text of an element; none is larger than ``most`` in size."""
    text = (element.text or "").strip()
    try:
        values = np.array([number_in(word) for word in text.split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (count,) or not (np.abs(values) <= most).all():  # NaN fails the comparison too
        allowed = ("a number" if count == 1 else f"{count} finite numbers") + up_to(most)
        found = f"<{element.tag}> is {text[:80]!r}"
        raise ModelError(describe(found, where=where_of(element, source, owner), allowed=allowed))
    return values


def number_of(element: Any, tag: str, default: float | None, source: str, owner: str, most: float = LARGEST) -> float:
    """Return the number in a child, or the default; without one, the child must be there.

    Example:
        >>> import xml.etree.ElementTree as ET
        >>> number_of(ET.fromstring("<inertial><mass>2</mass></inertial>"), "mass", 1.0, "a.sdf", "link 'arm'")
        2.0
    """
    child = None if element is None else element.find(tag)
    if child is not None:
        return float(numbers_of(child, 1, source, owner, most)[0])
    if default is None:
        found = f"<{element.tag}> has no <{tag}>"
        raise ModelError(describe(found, where=where_of(element, source, owner), fix=f"add <{tag}>...</{tag}>"))
    return default


def flag_of(element: Any, tag: str, source: str, owner: str, default: bool = False) -> bool:
    """Return whether a child is true; ``default`` where there is none."""
    text = text_of(element, tag).lower()
    if text and text not in FLAGS:
        found = f"<{tag}> is {text[:80]!r}"
        raise ModelError(describe(found, where=where_of(element.find(tag), source, owner), allowed="true or false"))
    return FLAGS.get(text, default)


def pose_of(element: Any, source: str, owner: str) -> Array:
    """Return the pose (4 x 4) in a <pose>: a position and roll, pitch, yaw (perhaps in degrees), or a quaternion.

    Example:
        >>> import xml.etree.ElementTree as ET
        >>> pose_of(ET.fromstring('<pose degrees="true">1 0 0 0 0 90</pose>'), "a.sdf", "link 'arm'")[0].tolist()
        [0.0, -1.0, 0.0, 1.0]
    """
    if element is None or not (element.text or "").strip():
        return IDENTITY
    kind, degrees = element.get("rotation_format", "euler_rpy"), element.get("degrees", "false").strip().lower()
    where = where_of(element, source, owner)
    if kind not in ("euler_rpy", "quat_xyzw"):
        raise ModelError(describe(f"rotation_format is {kind!r}", where=where, allowed="euler_rpy, quat_xyzw"))
    if degrees not in FLAGS or (FLAGS[degrees] and kind == "quat_xyzw"):
        raise ModelError(
            describe(f"degrees is {degrees!r}", where=where, allowed="true or false; false with quat_xyzw")
        )
    values = numbers_of(element, 6 if kind == "euler_rpy" else 7, source, owner)
    if not values.any():
        return IDENTITY
    if kind == "euler_rpy":
        angles = [radians(angle) for angle in values[3:]] if FLAGS[degrees] else values[3:]
        return make_pose(from_rpy(angles), values[:3])
    if not values[3:].any():
        raise ModelError(describe("a quaternion of zeros", where=where, allowed="any other"))
    return make_pose(from_quaternion(values[3:]), values[:3])

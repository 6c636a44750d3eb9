"""Frames of an .osim file: on which body each lies, and where. Sockets name them by paths.

A path is absolute ("/bodyset/femur/offset"), or relative to the element that has the socket ("offset", "..").
"""

import posixpath
import xml.etree.ElementTree as ET
from collections.abc import Collection
from pathlib import Path

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, listing
from torsor.formats.osim.model import GROUND
from torsor.formats.osim.steps import pose_of
from torsor.formats.osim.values import place_in, text_in, where_is
from torsor.spatial import to_rpy

OFFSET = "PhysicalOffsetFrame"
_SETS = ("BodySet", "JointSet", "ConstraintSet", "ComponentSet", "MarkerSet")
_PLACE = ("translation", "orientation")
_DEEPEST = 20  # frames on frames (more of them are a cycle), and in frames


class Frames:
    """The frames of a model: bodies, the ground, and frames at a place on others."""

    def __init__(self, path: Path, model: ET.Element, bodies: Collection[str]):
        self.path, self.bodies = path, bodies
        self.paths: dict[ET.Element, str] = {}
        self.offsets: dict[str, ET.Element] = {}
        self._add(model, "")
        for name in _SETS:
            for each in model.iterfind(f"{name}/objects/*"):
                self._add(each, f"/{name.lower()}/{each.get('name', '')}")
        for each in model.iterfind("Ground"):
            self._add(each, f"/{GROUND}")

    def _add(self, element: ET.Element, path: str, depth: int = 0) -> None:
        if depth > _DEEPEST:
            found = "frames in frames, too deep"
            raise ModelError(describe(found, where=where_is(self.path, element), allowed=f"{_DEEPEST} or fewer"))
        self.paths[element] = path
        if element.tag == OFFSET:
            self.offsets[path] = element
        for each in (*element.iterfind("components/*"), *element.iterfind("frames/*")):
            self._add(each, f"{path}/{each.get('name', '')}", depth + 1)

    def of(self, owner: ET.Element) -> tuple[str, Array]:
        """Return the body of a frame, and where (6,) on it the frame lies: of a body, the ground or a frame on them."""
        if owner.tag != OFFSET:
            return self.paths[owner].rpartition("/")[2], np.zeros(6)
        return self._followed(owner, owner, "socket_parent", [place_in(self.path, owner, *_PLACE)])

    def at(self, element: ET.Element, socket: str) -> tuple[str, Array]:
        """Return the body that a socket of an element leads to, and where (6,) on it the frame of the socket lies."""
        return self._followed(element, element, f"socket_{socket}", [])

    def _followed(self, element: ET.Element, owner: ET.Element, key: str, places: list[Array]) -> tuple[str, Array]:
        """Follow sockets from frame to frame until they lead to a body."""
        while len(places) < _DEEPEST:
            named = text_in(owner, key)
            found = self._offset(owner, named)
            if found is None:
                return self._body(element, named if named != ".." else self.paths[owner].rpartition("/")[0], places)
            places.append(place_in(self.path, found, *_PLACE))
            owner, key = found, "socket_parent"
        raise ModelError(describe("its frames lie on each other", where=where_is(self.path, element)))

    def _offset(self, owner: ET.Element, named: str) -> ET.Element | None:
        """Return the frame that a path leads to, None if it leads to a body."""
        path = posixpath.normpath(posixpath.join(self.paths[owner] or "/", named))
        last = named.rpartition("/")[2]
        if path in self.offsets or last in self.bodies or last in ("..", GROUND):
            return self.offsets.get(path)
        alike = [each for key, each in self.offsets.items() if key.rpartition("/")[2] == last]
        return alike[0] if len(alike) == 1 else None

    def _body(self, element: ET.Element, named: str, places: list[Array]) -> tuple[str, Array]:
        body = named.rpartition("/")[2]
        self.check(element, body)
        if len(places) < 2:
            return body, places[0] if places else np.zeros(6)
        pose = np.eye(4)
        for place in reversed(places):
            pose = pose @ pose_of(place)
        return body, np.concatenate([pose[:3, 3], -to_rpy(pose[:3, :3].T)])

    def check(self, element: ET.Element, body: str) -> None:
        """Raise ModelError if there is no such body."""
        if body not in self.bodies and body != GROUND:
            allowed = f"ground, {listing(self.bodies, like=body)}"
            raise ModelError(
                describe(f"the body is {body[:60]!r}", where=where_is(self.path, element), allowed=allowed)
            )

"""Links of SDF: inertia, visuals and collision shapes in the axes of the link."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, warn
from torsor.base.faults import refuse_or_warn
from torsor.formats.sdf.frames import relative_pose
from torsor.formats.sdf.models import Part
from torsor.formats.sdf.unread import Unread
from torsor.formats.sdf.values import number_of, numbers_of, pose_of, text_of, where_of
from torsor.mechanism import Link, Shape, Visual
from torsor.mechanism.parts import VISUAL_SIZES
from torsor.mechanism.shapes import SHAPE_SIZES
from torsor.spatial import axis_frame, make_pose

ALL_MASKS = 0xFFFF  # SDF's default of <collide_bitmask>
# By shape: the elements that give its size, and the count of their numbers.
_SIZES: dict[str, tuple[tuple[str, int], ...]] = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "ellipsoid": (("radii", 3),),
    "plane": (),
    "mesh": (),
}


def read_link(part: Part, strict: bool, masked: bool, unread: Unread) -> Link:
    """Return a link. ``masked`` says whether any shape of the file has a mask, ``unread`` notes what is left out."""
    reader = _LinkReader(part, strict, unread)
    mass, com, inertia = reader.inertia()
    visuals, shapes = tuple(reader.visuals()), tuple(reader.shapes(masked))
    source = where_of(part.element, part.scope.source)
    link = Link(part.frame.name, mass, com, inertia, visuals, strict, source, shapes)
    if link.defect and not strict:
        warn(link.defect)
    return link


class _LinkReader:
    """The state of reading one link."""

    def __init__(self, part: Part, strict: bool, unread: Unread):
        self.part, self.strict, self.unread = part, strict, unread
        self.source, self.owner = part.scope.source, f"link {part.frame.name!r}"

    def pose(self, element: Any) -> Array:
        """Return the pose of an element of the link in the axes of the link."""
        pose = element.find("pose")
        T = pose_of(pose, self.source, self.owner)
        # Version 1.6 has the attribute ``frame``, which 1.7 renamed.
        name = "" if pose is None else (pose.get("relative_to") or pose.get("frame") or "").strip()
        if not name:
            return T
        base = self.part.scope.find(name, where_of(pose, self.source, self.owner))
        return relative_pose(self.part.frame, base) @ T

    def _frame_of(self, element: Any) -> str:
        """Return the <frame> of this link that a shape is placed in, or an empty string."""
        pose = element.find("pose")
        at = None if pose is None else self.part.scope.names.get((pose.get("relative_to") or "").strip())
        return at.name if at is not None and at.kind == "frame" and at.carrier() is self.part.frame else ""

    def inertia(self) -> tuple[float, Array, Array]:
        """Return mass, centre of mass and inertia about it, in the axes of the link; defaults are those of SDF."""
        inertial = self.part.element.find("inertial")
        if inertial is None:
            self.unread.note("links without <inertial>, 1 kg and 1 kg m^2", self.part.element, "assumed")
            return 1.0, np.zeros(3), np.eye(3)
        if inertial.get("auto", "false").strip().lower() in ("true", "1"):
            found, fix = "an inertia that is computed from shapes", "expand it: gz sdf --print --expand-auto-inertials"
            raise ModelError(describe(found, where=where_of(inertial, self.source, self.owner), fix=fix))
        matrix = inertial.find("inertia")
        if matrix is None or inertial.find("mass") is None:
            self.unread.note("<inertial> without <mass> or <inertia>, 1 kg or 1 kg m^2", inertial, "assumed")
        keys, defaults = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
        xx, yy, zz, xy, xz, yz = (
            number_of(matrix, key, default, self.source, self.owner)
            for key, default in zip(keys, defaults, strict=True)
        )
        T = self.pose(inertial)
        R = T[:3, :3]
        inertia = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        mass = number_of(inertial, "mass", 1.0, self.source, self.owner)
        return mass, T[:3, 3], 0.5 * (inertia + inertia.T)

    def visuals(self) -> Iterator[Visual]:
        """Yield what is drawn; one that cannot be used is left out, with a warning."""
        for element in self.part.element.findall("visual"):
            try:
                found = self._geometry(element, VISUAL_SIZES)
                if found is not None:
                    yield Visual(**found, color=self._color(element))
            except ModelError as error:
                refuse_or_warn(str(error) if self.strict else f"{error}; this visual is left out", self.strict)

    def shapes(self, masked: bool) -> Iterator[Shape]:
        """Yield the collision shapes; one that cannot be used is left out, with a warning."""
        for element in self.part.element.findall("collision"):
            try:
                found = self._geometry(element, SHAPE_SIZES)
                if found is not None:
                    mask = self._mask(element) if masked else 1
                    yield Shape(**found, link=self._frame_of(element), contype=mask, conaffinity=mask)
            except ModelError as error:
                refuse_or_warn(str(error) if self.strict else f"{error}; this shape is left out", self.strict)

    def _mask(self, element: Any) -> int:
        """Return the mask of a shape: 32 bits, the last of which is a sign here."""
        text = text_of(element, "surface/contact/collide_bitmask")
        try:
            mask = int(text[:40], 0) if text else ALL_MASKS
        except ValueError:
            mask = -1
        if not 0 <= mask < 2**32:
            found, where = f"collide_bitmask is {text[:40]!r}", where_of(element, self.source, self.owner)
            raise ModelError(describe(found, where=where, allowed="a whole number of 32 bits"))
        return mask - 2**32 if mask >= 2**31 else mask

    def _geometry(self, element: Any, kinds: dict[str, int]) -> dict[str, Any] | None:
        """Return what visuals and collision shapes have in common, or None for kinds that a mechanism does not have."""
        geometry = element.find("geometry")
        shape = None if geometry is None else next(iter(geometry), None)
        if shape is None or shape.tag == "empty":
            return None
        if shape.tag not in kinds:
            self.unread.note(f"<{element.tag}> of a <{shape.tag}>", element)
            return None
        size: list[float] = []
        for tag, count in _SIZES[shape.tag]:
            given = shape.find(tag)
            if given is None:
                found = f"<{shape.tag}> has no <{tag}>"
                raise ModelError(describe(found, where=where_of(shape, self.source, self.owner)))
            size += numbers_of(given, count, self.source, self.owner).tolist()
        found_shape: dict[str, Any] = {"shape": shape.tag, "pose": self.pose(element), "name": element.get("name", "")}
        if shape.tag == "plane":
            normal = shape.find("normal")
            axis = [0, 0, 1] if normal is None else numbers_of(normal, 3, self.source, self.owner)
            if not np.any(axis):
                raise ModelError(describe("a normal of length 0", where=where_of(shape, self.source, self.owner)))
            found_shape["pose"] = found_shape["pose"] @ make_pose(axis_frame(axis))
        elif shape.tag == "mesh":
            size = self._mesh(shape, found_shape)
        return found_shape | {"size": tuple(size)}

    def _mesh(self, shape: Any, found: dict[str, Any]) -> list[float]:
        """Add the file of a mesh to what is found, and return its scale."""
        scale, uri = shape.find("scale"), text_of(shape, "uri")
        if not uri:
            raise ModelError(describe("<mesh> has no <uri>", where=where_of(shape, self.source, self.owner)))
        if shape.find("submesh") is not None:
            self.unread.note("<submesh>, for which the whole mesh is taken", shape)
        file = self.part.finder.file(uri)  # before its folders, which it may add one to
        found |= {"mesh": uri, "path": file, "folders": self.part.finder.folders}
        return [1.0] * 3 if scale is None else numbers_of(scale, 3, self.source, self.owner).tolist()

    def _color(self, element: Any) -> tuple[float, ...] | None:
        """Return red, green, blue and opacity of a visual; None where its material has no colour."""
        kinds = (element.find(f"material/{kind}") for kind in ("diffuse", "ambient"))
        color = next((each for each in kinds if each is not None), None)
        if color is None:
            return None
        count = 3 if len((color.text or "").split()) == 3 else 4  # the opacity may be left out
        rgba = numbers_of(color, count, self.source, self.owner).tolist()
        opacity = 1.0 - number_of(element, "transparency", 0.0, self.source, self.owner)
        return (*rgba[:3], (rgba[3] if count == 4 else 1.0) * opacity)

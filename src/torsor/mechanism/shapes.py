"""Collision shapes of links: convex bodies whose distances decide about contact. Meshes are named, not read."""

from dataclasses import dataclass, field

from torsor.base.arrays import IDENTITY, Array
from torsor.base.checks import LARGEST, frozen_array, frozen_pose, instance_of, one_of, whole_number
from torsor.base.errors import ModelError, describe
from torsor.mechanism.part import Part

# How many numbers give the size of each shape.
SHAPE_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3, "plane": 0, "mesh": 3}
ALL_BITS = 2**31 - 1  # of contype and conaffinity, which are masks of 32 bits with a sign


@dataclass(frozen=True, eq=False)
class Shape(Part):
    """A collision shape of a link, in the link's axes: its kind, ``size`` (m) and ``pose`` (4 x 4).

    A "sphere" has (radius,), a "capsule" or "cylinder" about its z axis (radius, length; that of a capsule is between
    the centres of its ends), a "box" its three edges, an "ellipsoid" three semi-axes. A "plane" has no size: it is the
    half-space below z = 0. A "mesh" has the scale of its file and stands for its convex hull: ``mesh`` is the file name
    as written in the description, ``path`` the path where that file was found. ``folders`` are those that the
    description may take meshes from; None, of shapes that no file describes, allows all.

    ``link`` is the link of the description that the shape belongs to, where that link is welded to another and so a
    frame of the mechanism. Two shapes may touch if ``contype`` of one and ``conaffinity`` of the other have a common
    bit, as in MuJoCo.

    Example:
        >>> Shape("capsule", (0.04, 0.5)).size
        (0.04, 0.5)
        >>> Shape("sphere", (0.0,), name="tip")
        Traceback (most recent call last):
        torsor.ModelError: shape 'tip': size of a sphere is (0.0,); allowed: a positive radius
    """

    shape: str
    size: tuple[float, ...] = ()
    pose: Array = field(default_factory=lambda: IDENTITY)
    name: str = ""
    mesh: str | None = None
    path: str | None = None
    link: str = ""
    contype: int = 1
    conaffinity: int = 1
    folders: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        where = f"shape {self.name!r}" if self.name else "shape"
        one_of(self.shape, tuple(SHAPE_SIZES), where, "shape")
        for key in ("name", "link"):
            instance_of(getattr(self, key), str, where, key, allowed="text")
        size = frozen_array(self.size, (SHAPE_SIZES[self.shape],), where, f"size of a {self.shape}", most=LARGEST)
        self._set(size=tuple(size.tolist()), pose=frozen_pose(self.pose, where, "pose", most=LARGEST))
        for key in ("contype", "conaffinity"):
            whole_number(getattr(self, key), where, key, least=-ALL_BITS - 1, most=ALL_BITS)
        wrong = _wrong_size(self.shape, self.size)
        if wrong:
            raise ModelError(describe(f"size of a {self.shape} is {self.size}", where=where, allowed=wrong))

    def may_touch(self, other: "Shape") -> bool:
        """Return whether the masks of two shapes let them touch.

        Example:
            >>> Shape("sphere", (0.1,), contype=2).may_touch(Shape("plane", conaffinity=4))
            True
        """
        return bool(self.contype & other.conaffinity or other.contype & self.conaffinity)


def _wrong_size(shape: str, size: tuple[float, ...]) -> str:
    """Return what sizes of a shape are allowed if these are not, or an empty string."""
    if shape == "mesh":
        return "" if all(size) else "a scale without 0; negative numbers mirror the mesh"
    if shape == "capsule":
        return "" if size[0] > 0 and size[1] >= 0 else "a positive radius and a length of 0 or more"
    if all(each > 0 for each in size):
        return ""
    words = {"sphere": "a positive radius", "cylinder": "a positive radius and length", "box": "three positive edges"}
    return words.get(shape, "three positive semi-axes")

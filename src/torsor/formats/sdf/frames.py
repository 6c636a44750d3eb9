"""Frames of SDF: models, links, joints and <frame>s have a pose in another frame, and are attached to a link.

Each name is looked up in the scope of its model; ``a::b`` is b in the nested model a. Since version 1.7 a pose may be
``relative_to`` any frame. By default links, frames and nested models are relative to the frame of their model, joints
to their child (as in 1.6, which has no other poses), and a model to the world or the model around it.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torsor.base.arrays import IDENTITY, Array
from torsor.base.errors import ModelError, describe, listing
from torsor.formats.sdf.values import where_of
from torsor.spatial import inverse_pose

WORLD, MODEL = "world", "__model__"
_ROUNDING = 1e-15  # of products of rotations: entries below are 0


@dataclass(eq=False)
class SdfFrame:
    """A frame: its ``pose`` in the frame that ``relative_to`` names in ``scope``, or in ``default``.

    ``kind`` is world, model, link, joint or frame; ``name`` is the full one. ``attached_to`` names the frame that it
    moves with, where it is no link. ``placement`` is the frame inside of a model that the pose of the model is of.
    """

    kind: str
    name: str
    scope: "Scope | None" = None
    pose: Array = field(default_factory=lambda: IDENTITY)
    relative_to: str = ""
    default: "SdfFrame | str | None" = None
    attached_to: str = ""
    inside: "Scope | None" = None
    placement: str = ""
    where: str = ""
    _base: "SdfFrame | None" = None
    _world: Array | None = None

    @property
    def base(self) -> "SdfFrame":
        """The frame that the pose is given in."""
        if self._base is None:
            assert self.scope is not None and self.default is not None
            name = self.relative_to or (self.default if isinstance(self.default, str) else "")
            self._base = self.scope.find(name, self.where) if name else self.default  # type: ignore[assignment]
            if self.placement:
                assert self.inside is not None and self._base is not None
                placed = self.inside.find(self.placement, self.where)
                # The pose given is that of another frame of the model: take the way from it to the model back.
                self.pose = self.pose @ inverse_pose(_pose_below(placed, self))
        assert self._base is not None
        return self._base

    def in_world(self) -> Array:
        """Return the pose (4 x 4) of the frame in the world."""
        way: dict[int, SdfFrame] = {}
        at = self
        while at._world is None and at.kind != WORLD:
            if id(at) in way:
                raise ModelError(describe(f"the pose of {at.name!r} is relative to itself", where=at.where))
            way[id(at)] = at
            at = at.base
        pose = IDENTITY if at._world is None else at._world
        for each in reversed(way.values()):
            pose = each._world = _product(pose, each.pose)
        return pose

    def carrier(self) -> "SdfFrame":
        """Return the link (or the world) that the frame is attached to."""
        at, seen = self, set[int]()
        while at.kind not in ("link", WORLD):
            if id(at) in seen:
                raise ModelError(describe(f"{at.name!r} is attached to itself", where=at.where))
            seen.add(id(at))
            if at.kind == "model":
                assert at.inside is not None
                at = at.inside.canonical(at)
            else:
                assert at.scope is not None
                at = at.scope.find(at.attached_to or MODEL, at.where)
        return at


@dataclass(eq=False)
class Scope:
    """The names of a model: frames, nested models, the frame of the model itself, and the file that it is from."""

    frame: SdfFrame
    version: tuple[int, int]
    source: str
    prefix: str = ""
    canonical_link: str = ""
    names: dict[str, SdfFrame] = field(default_factory=dict)
    nested: dict[str, "Scope"] = field(default_factory=dict)

    def add(self, frame: SdfFrame, name: str, element: Any) -> None:
        """Add a frame by its name in this scope. Before version 1.7, a joint may have the name of a link."""
        other = self.names.get(name)
        if other is not None and (self.version >= (1, 7) or other.kind == frame.kind):
            found = f"a {frame.kind} and a {other.kind} are both named {name!r}"
            raise ModelError(describe(found, where=where_of(element, self.source), allowed="names that differ"))
        if other is None or frame.kind == "link":
            self.names[name] = frame

    def find(self, name: str, where: str) -> SdfFrame:
        """Return the frame of a name; ``a::b`` is b in the nested model a."""
        scope, rest = self, name
        while True:
            if rest == MODEL:
                return scope.frame
            if rest in scope.names:
                return scope.names[rest]
            head, colons, rest = rest.partition("::")
            if not colons or head not in scope.nested:
                break
            scope = scope.nested[head]
        if name == WORLD:
            return THE_WORLD
        raise ModelError(describe(f"no frame {name!r}", where=where, allowed=listing(self.names, most=8, like=name)))

    def canonical(self, model: SdfFrame) -> SdfFrame:
        """Return the link that the frame of the model is attached to: the one that it names, or its first one."""
        if self.canonical_link:
            return self.find(self.canonical_link, model.where)
        waiting = [self]
        while waiting:
            scope = waiting.pop()
            first = next((each for each in scope.names.values() if each.kind == "link"), None)
            if first is not None:
                return first
            waiting.extend(reversed(scope.nested.values()))
        raise ModelError(describe(f"model {model.name!r} has no link", where=model.where))


THE_WORLD = SdfFrame(WORLD, WORLD)


def relative_pose(a: SdfFrame, b: SdfFrame) -> Array:
    """Return the pose (4 x 4) of frame b in frame a; as it is written, where b is relative to a.

    Example:
        >>> from torsor.spatial import make_pose
        >>> arm = SdfFrame("link", "arm", None, make_pose(p=[1, 0, 0]), _base=THE_WORLD)
        >>> hand = SdfFrame("link", "hand", None, make_pose(p=[0, 2, 0]), _base=arm)
        >>> relative_pose(THE_WORLD, hand)[:3, 3].tolist()
        [1.0, 2.0, 0.0]
    """
    if a is b:
        return IDENTITY
    if b.kind != WORLD and b.base is a:
        return b.pose
    if a.kind != WORLD and a.base is b:
        back: Array = inverse_pose(a.pose)
        return back
    if a.kind != WORLD and b.kind != WORLD and a.base is b.base:
        return _product(inverse_pose(a.pose), b.pose)
    return _product(inverse_pose(a.in_world()), b.in_world())


def _pose_below(frame: SdfFrame, model: SdfFrame) -> Array:
    """Return the pose of a frame in the model that it is in, without the pose of the model itself."""
    pose, at, seen = IDENTITY, frame, set[int]()
    while at is not model:
        if id(at) in seen or at.kind == WORLD:
            found = f"the placement frame {frame.name!r} has no pose in its model"
            raise ModelError(describe(found, where=model.where, allowed="a frame inside of the model"))
        seen.add(id(at))
        base = at.base
        pose, at = _product(at.pose, pose), base
    return pose


def _product(A: Array, B: Array) -> Array:
    """Return A B, with entries of the rotation that are rounding errors set to 0."""
    T = A @ B
    R = T[:3, :3]
    R[np.abs(R) < _ROUNDING] = 0.0
    return T

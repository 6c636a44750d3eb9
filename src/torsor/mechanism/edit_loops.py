"""Changing the loops of a mechanism by making another."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from torsor.errors import ModelError, describe
from torsor.mechanism.loops import Coupling, Loop
from torsor.mechanism.mechanism import Mechanism
from torsor.mechanism.parts import Frame, Joint
from torsor.mechanism.values import frozen_array
from torsor.spatial import axis_frame, make_pose

__all__ = ["LoopEdits"]


class LoopEdits(Mechanism):
    """A mechanism with the methods that close and open loops. None of them changes the mechanism itself."""

    def with_loop(
        self,
        name: str,
        frame_a: str,
        frame_b: str,
        kind: str = "revolute",
        length: float = 0.0,
        axis: ArrayLike | None = None,
    ) -> Self:
        """Return the robot with two links or frames held together, as a joint that was cut holds them.

        ``kind`` is weld, revolute, prismatic, cylindrical, universal, spherical, planar or rod (two balls, ``length``
        apart, without mass). Axes are the z axes of the frames; a revolute joint needs them to point the same way, and
        the origins together. ``axis`` (3) is another axis, in each of the two frames' own axes: frames "name/a" and
        "name/b" are made whose z it is.

        Example:
            >>> import torsor
            >>> chain = torsor.library.planar_chain(3).with_frame("tip", "link3", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> chain.with_loop("hinge", "tip", "base").loops[0].kind
            'revolute'
            >>> chain.with_loop("hinge", "tip", "base", axis=(0, 1, 0)).loops[0].a
            'hinge/a'
        """
        if axis is None:
            return replace(self, loops=(*self.loops, Loop(name, frame_a, frame_b, kind, length)))
        direction = frozen_array(axis, (3,), f"{self.name}: loop {name!r}", "axis")
        if not np.linalg.norm(direction) > 0:
            raise ModelError(describe("axis is zero", where=f"{self.name}: loop {name!r}", allowed="a direction"))
        turn, frames = make_pose(axis_frame(direction / np.linalg.norm(direction))), list(self.frames)
        for end, side in ((frame_a, "a"), (frame_b, "b")):
            place = self.place(end)
            link = self.base.name if place.link < 0 else self.links[place.link].name
            frames.append(Frame(f"{name}/{side}", link, place.pose @ turn))
        loop = Loop(name, f"{name}/a", f"{name}/b", kind, length)
        return replace(self, frames=tuple(frames), loops=(*self.loops, loop))

    def with_coupling(self, name: str, shares: Mapping[str, float], offset: float = 0.0) -> Self:
        """Return the robot with a gear, a belt or a lock: the sum of shares times coordinates stays ``offset``.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": 1.0}).loops[0].offset
            0.0
        """
        return replace(self, loops=(*self.loops, Coupling(name, shares, offset)))

    def without_loop(self, name: str) -> Self:
        """Return the robot with a loop or coupling opened.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": 1.0})
            >>> robot.without_loop("belt").loops
            ()
        """
        rest = tuple(loop for loop in self.loops if loop.name != name)
        if len(rest) == len(self.loops):
            allowed = ", ".join(repr(loop.name) for loop in self.loops) or "none: it has no loops"
            raise ModelError(describe(f"no loop {name!r}", where=self.name, allowed=allowed))
        return replace(self, loops=rest)

    def with_active(self, names: Sequence[str]) -> Self:
        """Return the robot with the coordinates that are driven while its loops are closed, in that order.

        The name of a joint stands for all of its coordinates. What moves on its own but is not driven, such as a
        floating base, is named too where forces and accelerations of the closed mechanism are wanted.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().with_active(["joint2"]).active
            ('joint2',)
        """
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise ModelError(describe(f"active is {names!r}", where=self.name, allowed="a list of coordinates"))
        own = {joint.name: joint.velocity_names for joint in self.joints if joint.nv > 1}
        return replace(self, active=tuple(each for name in names for each in own.get(name, (name,))))

    def _without_coordinates(self, joint: Joint) -> dict[str, Any]:
        """Return loops and active coordinates for a robot whose joint is held."""
        for loop in self.loops:
            if isinstance(loop, Coupling) and joint.name in loop.shares:
                fix = f"open it first: robot.without_loop({loop.name!r})"
                raise ModelError(
                    describe(f"joint {joint.name!r} is coupled by {loop.name!r}", where=self.name, fix=fix)
                )
        return {"active": [name for name in self.active if name not in _names(joint)]}

    def _loops_of(self, places: Collection[str], joints: Sequence[Joint]) -> dict[str, Any]:
        """Return the loops and active coordinates of a part of the robot; refuse loops that leave it."""
        names = {name for joint in joints for name in _names(joint)}
        loops = []
        for loop in self.loops:
            ends, within = (loop.shares, names) if isinstance(loop, Coupling) else ((loop.a, loop.b), places)
            inside = [end in within for end in ends]
            if any(inside) and not all(inside):
                fix = f"open it first: robot.without_loop({loop.name!r})"
                raise ModelError(describe(f"loop {loop.name!r} leaves the subtree", where=self.name, fix=fix))
            if all(inside):
                loops.append(loop)
        return {"loops": loops, "active": [name for name in self.active if name in names]}


def _names(joint: Joint) -> tuple[str, ...]:
    """Return the names of all coordinates of a joint, that of its motor included."""
    return (*joint.velocity_names, *([f"{joint.name}/motor"] if joint.is_elastic else []))

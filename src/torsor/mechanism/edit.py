"""Changing a mechanism by making another."""

import reprlib
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from torsor.errors import ModelError, describe
from torsor.mechanism.assemble import assemble, free_name, held
from torsor.mechanism.edit_drives import DriveEdits
from torsor.mechanism.edit_loops import LoopEdits
from torsor.mechanism.loops import renamed
from torsor.mechanism.mechanism import Mechanism
from torsor.mechanism.parts import Frame, Joint, Link
from torsor.mechanism.values import checked_name, frozen_array
from torsor.spatial import composite, move_inertia

__all__ = ["Editable"]


class Editable(DriveEdits, LoopEdits):
    """A mechanism with the methods that make another from it. None of them changes the mechanism itself."""

    def _remake(self, mechanism: Mechanism) -> Self:
        # What this object has beside the mechanism, such as where it computes, stays.
        return replace(self, **{f.name: getattr(mechanism, f.name) for f in fields(Mechanism)})

    def _assembled(self, links: list[Link], joints: list[Joint], frames: list[Frame], **changes: Any) -> Self:
        kept = {"loops": self.loops, "active": self.active}
        settings: dict[str, Any] = {"name": self.name, "gravity": self.gravity, **kept} | changes
        return self._remake(assemble(links=links, joints=joints, frames=frames, **settings))

    def with_gravity(self, gravity: ArrayLike) -> Self:
        """Return the robot under another gravity (3,), m/s^2, in base axes.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().with_gravity([0, -9.81, 0]).gravity.tolist()
            [0.0, -9.81, 0.0]
        """
        return replace(self, gravity=frozen_array(gravity, (3,), self.name, "gravity"))

    def with_frame(self, name: str, link: str, pose: ArrayLike) -> Self:
        """Return the robot with a named frame: ``pose`` (4 x 4) in the axes of a link or of another frame.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_frame("tip", "link2", np.eye(4))
            >>> robot.place("tip").link
            1
        """
        if checked_name(name, "frame", self.name) in self.places:
            raise ModelError(describe(f"there is a link or frame {name!r} already", where=self.name))
        place = self.place(link)
        owner = self.base.name if place.link < 0 else self.links[place.link].name
        pose = frozen_array(pose, (4, 4), f"{self.name}: frame {name!r}", "pose")
        return replace(self, frames=(*self.frames, Frame(name, owner, place.pose @ pose)))

    def with_payload(
        self, link: str, mass: float, com: ArrayLike = (0, 0, 0), inertia: ArrayLike | None = None
    ) -> Self:
        """Return the robot with a load on a link or frame: mass (kg), centre of mass (m), inertia about it (kg m^2).

        ``com`` and ``inertia`` (3 x 3) are in the axes of that link or frame.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().with_payload("link2", 1.5).links[1].mass
            2.0
        """
        place = self.place(link)
        load = Link("payload", mass, com, np.zeros((3, 3)) if inertia is None else inertia)  # type: ignore[arg-type]
        owner = self.base if place.link < 0 else self.links[place.link]
        total = composite(owner.body, move_inertia(place.pose, *load.body))
        loaded = Link(owner.name, *total, owner.visuals, owner.strict)
        if place.link < 0:
            return replace(self, base=loaded)
        return replace(self, links=(*self.links[: place.link], loaded, *self.links[place.link + 1 :]))

    def fix(self, joint: str, value: ArrayLike = 0.0) -> Self:
        """Return the robot with a joint held at ``value``: (nq,) numbers, or one for a joint with one coordinate.

        Joints that follow it are held too. The links they moved are merged into their parents and stay as frames. A
        motor is held with its joint. An elastic joint whose motor is held ("elbow/motor") moves on against the spring.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().fix("joint2", 0.5)
            >>> robot.nv, robot.link_names, [frame.name for frame in robot.frames]
            (1, ('link1',), ['link2'])
        """
        if joint in (f"{each.name}/motor" for each in self.elastic):
            return self._with_motor_held(joint, value)
        leader = self.joint(joint)
        if leader.follows:
            raise ModelError(
                describe(f"joint {joint!r} follows {leader.coordinate!r}", where=self.name, fix="fix that one instead")
            )
        where = f"{self.name}: joint {joint!r}"
        single = leader.nq == 1 and (np.isscalar(value) or getattr(value, "ndim", 1) == 0)
        q = frozen_array(np.array([value]) if single else value, (leader.nq,), where, "value")
        if leader.nq > leader.nv and not np.any(q[-4:]):
            raise ModelError(
                describe("the quaternion is 0", where=where, allowed="any other", fix="0 0 0 1 is no turn")
            )
        joints = [
            held(each, each.ratio * q + each.offset) if each.coordinate == joint else each for each in self.joints
        ]
        return self._assembled([self.base, *self.links], joints, list(self.frames), **self._without_coordinates(leader))

    def attach(self, other: Mechanism, at: str, prefix: str = "") -> Self:
        """Return this robot carrying another one, whose base is welded to a link or frame of this one.

        ``prefix`` goes before the names of the other's links, joints and frames where they would clash.

        Example:
            >>> import torsor
            >>> arm = torsor.library.two_link()
            >>> arm.attach(arm, at="link2", prefix="second/").joint_names
            ('joint1', 'joint2', 'second/joint1', 'second/joint2')
        """
        if not isinstance(other, Mechanism):
            raise ModelError(describe(f"{reprlib.repr(other)} is attached", where=self.name, allowed="a robot"))
        place = self.place(at)
        owner = self.base.name if place.link < 0 else self.links[place.link].name

        def own(name: str) -> str:
            return prefix + name

        mine = {*self.places, *self.joint_names}
        clash = sorted(mine & {own(name) for name in (*other.places, *other.joint_names)})
        if clash:
            fix = "give a prefix for its names, for example prefix='tool/'"
            raise ModelError(describe(f"both robots have {', '.join(map(repr, clash[:6]))}", where=self.name, fix=fix))
        links = [self.base, *self.links, *(replace(x, name=own(x.name)) for x in (other.base, *other.links))]
        weld = Joint(
            free_name(own(f"{other.base.name}/weld"), {*self.joint_names, *map(own, other.joint_names)}),
            "fixed",
            owner,
            own(other.base.name),
            place.pose,
        )
        joints = []
        for x in other.joints:
            names: dict[str, Any] = {key: own(getattr(x, key)) for key in ("name", "parent", "child", "coordinate")}
            motor = x.motor and replace(x.motor, carrier=own(x.motor.carrier))
            joints.append(replace(x, motor=motor, **names))
        frames = [*self.frames, *(Frame(own(x.name), own(x.link), x.pose) for x in other.frames)]
        loops = [*self.loops, *(renamed(loop, own) for loop in other.loops)]
        active = [*self.active, *map(own, other.active)]
        return self._assembled(links, [*self.joints, weld, *joints], frames, loops=loops, active=active)

    def subtree(self, link: str | int) -> Self:
        """Return the part of the robot that a moving link carries, itself and its joint included.

        The base of the new robot is an empty link where the old parent was; gravity keeps its components.

        Example:
            >>> import torsor
            >>> torsor.library.stanford().subtree("link4").joint_names
            ('joint4', 'joint5', 'joint6')
        """
        place = self.place(link)
        if link == self.base.name:
            return self
        if isinstance(link, str) and link not in self.link_names:
            carrier = self.base if place.link < 0 else self.links[place.link]
            fix = f"name the link that carries it, {carrier.name!r}"
            raise ModelError(describe(f"{link!r} is a frame, not a moving link", where=self.name, fix=fix))
        kept = {place.link}
        for i, parent in enumerate(self.parents):
            if parent in kept:
                kept.add(i)
        names = {self.joints[i].name for i in kept}
        for joint in self.joints:
            if (joint.name in names) != (joint.coordinate in names):
                found = f"joint {joint.name!r} follows {joint.coordinate!r}, and one of them is not in the subtree"
                raise ModelError(describe(found, where=self.name, fix="hold it first: robot.fix(...)"))
        root = self.joints[place.link].parent
        carriers = {root, *(self.links[i].name for i in kept)}
        for i in sorted(kept):
            motor = self.joints[i].motor
            if motor is not None and motor.carrier not in carriers:
                found = (
                    f"the motor of joint {self.joints[i].name!r} is on {motor.carrier!r}, which is not in the subtree"
                )
                raise ModelError(describe(found, where=self.name, fix="remove it first: robot.without_motor(...)"))
        links = [Link(root), *(self.links[i] for i in sorted(kept))]
        frames = [frame for frame in self.frames if frame.link in {self.links[i].name for i in kept}]
        joints = [self.joints[i] for i in sorted(kept)]
        parts = self._loops_of({*carriers, *(frame.name for frame in frames)} - {root}, joints)
        return self._assembled(links, joints, frames, name=f"{self.name}/{self.links[place.link].name}", **parts)

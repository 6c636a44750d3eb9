"""Reading UsdPhysics: an articulation of a USD stage as a tree of links and joints, its other joints as closed loops.

The joints and their frames make the tree. Where the bodies stand in the stage only matters for joints to the world.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import IDENTITY, Array
from torsor.base.errors import ModelError, describe, listing
from torsor.formats.chains import joint_chain
from torsor.formats.meshes.usd_files import split_prim
from torsor.formats.usd.bodies import link_of
from torsor.formats.usd.joints import AXES, WORLD, UsdJoint, joint_of, several, single_joint
from torsor.formats.usd.loops import loop_of
from torsor.formats.usd.scene import Scene
from torsor.formats.usd.stage import exact, flag_of, own_data
from torsor.mechanism import Frame, Joint, Link, Mechanism, build
from torsor.mechanism.loops import Closure
from torsor.spatial import inverse_pose

_TURNS = AXES[3:]


def read_usd(path: Path, base: str = "fixed", strict: bool = False, snap: float = 0.0) -> Mechanism:
    """Return the mechanism of a USD stage (.usda, .usd, .usdc, .usdz); needs the extra ``torsor[usd]``.

    Of several articulations, ``scene.usda#/World/arm`` names one. The links are the bodies, with the poses of their
    prims and the names of these. The base is the body that a fixed joint holds at the origin of the stage, else a link
    ``world``; a robot that no joint holds gets a free joint. ``base="floating"`` releases one that is held. Masses,
    lengths and forces are in the units of the stage, angles in degrees, velocities of PhysX in degrees per second; all
    become SI. Joints that are excluded from the articulation, or that close a cycle, become loops. A ``ModelWarning``
    names what is left out; ``strict`` makes it an error.
    """
    file, prim = split_prim(path)
    try:
        scene = Scene.of(file, strict)
        return _Reader(scene, prim).read(base, snap, file)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:  # also those of USD
        if isinstance(error, ModelError):
            raise
        found = f"an attribute cannot be used ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
        fix = "check the types of its attributes, and the dictionary torsor of customData, if there is one"
        raise ModelError(describe(found, where=file.name, fix=fix)) from None


class _Reader:
    """The state of reading one stage: the bodies of the articulation, and its joints, by path."""

    def __init__(self, scene: Scene, wanted: str):
        self.scene = scene
        physics = scene.pxr.UsdPhysics
        every = {str(prim.GetPath()): prim for prim in scene.prims if scene.is_body(prim)}
        found = (joint_of(scene, prim) for prim in scene.prims if prim.IsA(physics.Joint))
        joints = [joint for joint in found if joint is not None]
        self.root, chosen = self._articulation(every, joints, wanted)
        self.bodies = {path: prim for path, prim in every.items() if path in chosen}
        for path in every.keys() - chosen:
            scene.left_out.note("bodies beside the articulation", path)
        own = [joint for joint in joints if any(end.body in chosen for end in joint.ends)]
        self.joints = [replace(joint, name=scene.name(joint.prim, "joint")) for joint in own]
        root = scene.stage.GetPrimAtPath(self.root)
        self.data = own_data(root)
        self.stacks = self._stacks() if flag_of(root.GetAttribute("newton:jointsAddMobility"), False) else {}

    def _articulation(self, bodies: dict[str, Any], joints: list[UsdJoint], wanted: str) -> tuple[str, set[str]]:
        """Return the path of the root and the paths of the bodies of the one articulation that is read."""
        scene, pieces = self.scene, _connected(bodies, joints)
        api = scene.pxr.UsdPhysics.ArticulationRootAPI
        found = dict[str, set[str]]()
        for prim in (prim for prim in scene.prims if prim.HasAPI(api)):
            path = str(prim.GetPath())
            own = next(({end.body for end in each.ends} for each in joints if each.prim == prim), set())
            own |= {body for body in bodies if _is_below(body, path)}
            found[path] = {body for piece in pieces if piece & own for body in piece}
        if not found:
            found = {min(piece, key=list(bodies).index): piece for piece in pieces}
            joined = {end.body for joint in joints for end in joint.ends}
            found = {path: piece for path, piece in found.items() if piece & joined} or found
        found = {path: piece for path, piece in found.items() if piece and _is_below(path, wanted)}
        found = {path: piece for path, piece in found.items() if path == _first(found, piece)}
        moved = {end.body for joint in joints if joint.free for end in joint.ends}
        moving = {path: piece for path, piece in found.items() if piece & moved}
        for each in (found, moving):
            if len(each) == 1:
                return next(iter(each.items()))
        if found:
            what, fix = (
                f"{len(found)} articulations: {listing(found)}",
                f"name one: {scene.source}#{next(iter(found))}",
            )
            raise ModelError(describe(what, where=scene.source, allowed="one", fix=fix))
        what = f"no articulation at {wanted}" if wanted else "no rigid body (PhysicsRigidBodyAPI)"
        raise ModelError(describe(what, where=scene.source, allowed="bodies with joints of UsdPhysics"))

    def _stacks(self) -> dict[str, list[UsdJoint]]:
        """Take joints between the same two bodies as one chain, as Newton means them: the first has the others.

        The chain goes from the first end of the first joint to its second; others may have their ends exchanged.
        """
        stacks = dict[frozenset[str], list[UsdJoint]]()
        for joint in (each for each in self.joints if not each.excluded):
            stack = stacks.setdefault(frozenset(end.body for end in joint.ends), [])
            a, b = joint.ends
            stack.append(
                replace(joint, ends=(b, a), turned=True) if stack and stack[0].ends[0].body != a.body else joint
            )
        later = {joint.name for stack in stacks.values() for joint in stack[1:]}
        self.joints = [joint for joint in self.joints if joint.name not in later]
        return {stack[0].name: stack for stack in stacks.values()}

    def read(self, base: str, snap: float, path: Path) -> Mechanism:
        scene = self.scene
        parents = self._tree(base)
        welded = next((body for body, (joint, before) in parents.items() if self._is_base(joint, before)), None)
        self.names = {body: scene.name(prim, "link") for body, prim in self.bodies.items()}
        self.names[WORLD] = self.names[welded] if welded else scene.unused(str(self.data.get("base", "world")), "link")
        links = [link_of(scene, prim, self.names[body]) for body, prim in self.bodies.items()]
        links += [] if welded else [Link(self.names[WORLD])]
        joints = [self._free(body) for body, (joint, _) in parents.items() if joint is None and body != welded]
        for joint in self.joints:
            ends = [body for body, (by, _) in parents.items() if by is joint and body != welded]
            for body in ends:
                made, steps = self._joint(joint, parents[body][1], body)
                links += made
                joints += steps
        frames = self._frames()
        loops = list(self._loops(parents, frames))
        gravity = scene.gravity()
        scene.report(welded)
        name = str(self.data.get("name", "")) or Path(self.root).name or path.stem
        hung = any(joint is not None and before == WORLD for joint, before in parents.values())
        postures = json.loads(str(self.data.get("postures", "{}")))
        settings = scene.source, base if hung else "fixed", loops, self._active(loops, joints), postures, snap
        return build(name, links, joints, frames, gravity, *settings, self._allowed())

    def _tree(self, base: str) -> dict[str, tuple[UsdJoint | None, str]]:
        """Return, by body, the joint that moves it and the body before; a body that nothing holds has no joint."""
        if base == "floating":  # what is welded to the world is released
            welds = [each for each in self.joints if not (each.free or each.excluded)]
            held = [each for each in welds if WORLD in {end.body for end in each.ends}]
            self.joints = [each for each in self.joints if not any(each is weld for weld in held)]
        inside = [joint for joint in self.joints if not joint.excluded]
        found = dict[str, tuple[UsdJoint | None, str]]()
        starts = [WORLD, *([self.root] if self.root in self.bodies else []), *self.bodies]
        for start in starts:
            if start in found:
                continue
            if start != WORLD:
                found[start] = None, WORLD
            waiting = [start]
            while waiting:
                here = waiting.pop(0)
                for joint in inside:
                    bodies = [end.body for end in joint.ends]
                    there = bodies[1] if bodies[0] == here else bodies[0] if bodies[1] == here else WORLD
                    if there != WORLD and there not in found:
                        found[there] = joint, here
                        waiting.append(there)
        return found

    def _is_base(self, joint: UsdJoint | None, before: str) -> bool:
        """Whether a joint welds its body to the origin of the stage."""
        if joint is None or joint.free or before != WORLD:
            return False
        return bool(np.allclose(self._placement(joint, WORLD), np.eye(4), rtol=0, atol=1e-12))

    def _placement(self, joint: UsdJoint, parent: str) -> Any:
        before, after, sign = joint.between(parent)
        plain = before @ inverse_pose(after)
        return exact(own_data(joint.prim), "placement", plain) if sign > 0 else plain

    def _free(self, body: str) -> Joint:
        data = own_data(self.bodies[body])
        name = str(data.get("free", "")) or self.scene.unused("root", "joint")
        placement = np.array(data.get("free_placement", IDENTITY), dtype=float)
        settings: dict[str, Any] = several(self.scene, self.bodies[body])
        return Joint(name, "free", self.names[WORLD], self.names[body], placement, source=self.scene.source, **settings)

    def _joint(self, joint: UsdJoint, parent: str, child: str) -> tuple[list[Link], list[Joint]]:
        """Return the massless links and the joints of a joint of the tree: one, or a chain of slides and turns."""
        scene, data, ends = self.scene, own_data(joint.prim), (self.names[parent], self.names[child])
        placement, stack = self._placement(joint, parent), self.stacks.get(joint.name, [joint])
        free = {axis for each in stack for axis in each.free}
        if not free or (len(stack) == 1 and len(free) == len(AXES)):
            whole = several(scene, joint.prim) if joint.free else {}
            settings: dict[str, Any] = {"source": scene.source, **whole}
            return [], [Joint(joint.name, "free" if joint.free else "fixed", *ends, placement, **settings)]
        sign = joint.between(parent)[2]
        stack = stack if sign > 0 else stack[::-1]
        before, after, signs = zip(*(each.between(parent) for each in stack), strict=True)
        second = after if sign > 0 else before
        steps = list[Joint | Array]()
        for k, each in enumerate(stack):
            if k:  # on the body that has moved with the joints before
                steps.append(inverse_pose(second[k - 1]) @ second[k])
            steps += self._steps(each, signs[k])
        between = before[0], after[-1]
        links, made = joint_chain(steps, *ends, *between, lambda name: scene.unused(name, "link"))
        if len(made) == 1 and sign > 0:
            made = [
                replace(
                    made[0], placement=placement, **{k: exact(data, k, getattr(made[0], k)) for k in ("axis", "point")}
                )
            ]
        return links, made

    def _steps(self, joint: UsdJoint, sign: float) -> list[Joint]:
        """Return the slides and turns of a joint, in their order as seen from its parent."""
        scene, axes = self.scene, list(joint.free)
        ball = [axis for axis in axes if axis in _TURNS] == list(_TURNS)
        single = [axis for axis in axes if not (ball and axis in _TURNS)]
        names = {axis: joint.name if len(axes) == 1 else f"{joint.name}/{axis}" for axis in single}
        steps = [single_joint(scene, joint, axis, sign, names[axis]) for axis in single]
        if ball:
            whole: dict[str, Any] = several(scene, joint.prim)
            steps.append(Joint(joint.name, "spherical", "parent", "child", source=scene.source, **whole))
        return steps if sign > 0 else steps[::-1]

    def _frames(self) -> list[Frame]:
        """Return the frames that Torsor wrote, on their links."""
        found = []
        for prim in self.scene.prims:
            body = self.scene.body_of(prim) if own_data(prim).get("frame") else None
            if body is not None and str(body.GetPath()) in self.bodies:
                pose = exact(own_data(prim), "pose", self.scene.place_in(prim, body).pose)
                found.append(Frame(self.scene.name(prim, "link"), self.names[str(body.GetPath())], pose))
        return found

    def _loops(self, parents: dict[str, tuple[UsdJoint | None, str]], frames: list[Frame]) -> Iterable[Closure]:
        """Yield the joints that are not in the tree as loops, and add the frames that they need."""
        inside = [joint for joint, _ in parents.values()]
        for joint in self.joints:
            if not any(joint is each for each in inside):
                if len(self.stacks.get(joint.name, [])) > 1:
                    found = f"it and {len(self.stacks[joint.name]) - 1} more between the same bodies close a loop"
                    raise ModelError(describe(found, where=self.scene.where(joint.prim), allowed="one joint"))
                made, loop = loop_of(self.scene, joint, self.names, frames)
                frames += made
                if loop is not None:
                    yield loop

    def _active(self, loops: list[Closure], joints: list[Joint]) -> list[str]:
        """Return the driven coordinates of a robot with loops: those that Torsor wrote, or all with a drive."""
        if "active" in self.data:
            return [str(each) for each in self.data["active"]]
        driven = {
            joint.name for joint in self.joints if any("DriveAPI" in each for each in joint.prim.GetAppliedSchemas())
        }
        return [joint.name for joint in joints if joint.name in driven and not joint.follows] if loops else []

    def _allowed(self) -> list[tuple[str, str, str]]:
        """Return the pairs of links that may touch: those that Torsor wrote, or the filtered pairs of the bodies."""
        if "allowed" in self.data:
            return [(a, b, why) for a, b, why in json.loads(str(self.data["allowed"]))]
        scene, api, found = self.scene, self.scene.pxr.UsdPhysics.FilteredPairsAPI, dict[tuple[str, str], None]()
        for path, prim in self.bodies.items():
            for target in api(prim).GetFilteredPairsRel().GetTargets() if prim.HasAPI(api) else []:
                other = scene.body_of(scene.stage.GetPrimAtPath(target))
                if other is not None and str(other.GetPath()) in self.bodies and other != prim:
                    a, b = sorted((self.names[path], self.names[str(other.GetPath())]))
                    found[a, b] = None
        return [(*pair, "filtered") for pair in found]


def _first(found: dict[str, set[str]], piece: set[str]) -> str:
    """Return the first root of a piece: the root of a robot may be marked on its joint to the world, too."""
    return next(path for path, each in found.items() if each == piece)


def _is_below(path: str, above: str) -> bool:
    """Whether a prim is another one or below it."""
    return path == above or path.startswith(f"{above.rstrip('/')}/")


def _connected(bodies: Iterable[str], joints: Iterable[UsdJoint]) -> list[set[str]]:
    """Return the sets of bodies that joints connect, in the order of the stage; the world connects nothing."""
    pieces = {body: {body} for body in bodies}
    for joint in joints:
        a, b = (pieces.get(end.body) for end in joint.ends)
        if a is not None and b is not None and a is not b:
            a |= b
            pieces.update(dict.fromkeys(b, a))
    return list({id(piece): piece for piece in pieces.values()}.values())

"""Reading OpenSim skeletons as mechanisms without muscles. Joints driven by functions of coordinates become cams.

The coordinates are the same as in OpenSim. The translations and rotations of a joint become consecutive joints. The
first that is linear in its coordinate has this coordinate. The others follow it, either linearly or as cams defined by
splines and polynomials (``mechanism.curves``), so velocity-dependent forces are exact.
"""

from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import direction
from torsor.base.errors import ModelError, listing
from torsor.base.faults import refuse_or_warn
from torsor.formats.joint_decomposition import joint_chain
from torsor.formats.osim.file import read_osim
from torsor.formats.osim.model import (
    GROUND,
    OsimCoordinate,
    OsimJoint,
    OsimModel,
    OsimShape,
    Step,
    couplings_of,
    pose_of,
    steps_of,
)
from torsor.formats.writing import left_out_error
from torsor.mechanism import Frame, Joint, Link, Loop, Mechanism, Visual, build
from torsor.mechanism.curves import IDENTITY, Cam, Curve
from torsor.mechanism.mechanism import DEFAULT
from torsor.mechanism.names import claim_name
from torsor.mechanism.parts import link_of
from torsor.spatial import exp_so3, inverse_pose, make_pose

_Y_TO_Z = make_pose(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]))  # OpenSim cylinders are about y


def visual_of(model: OsimModel, shape: OsimShape) -> Visual | None:
    """Return a surface as a visual, or None for kinds without a similar visual, such as cones and lines."""
    pose, scale = pose_of(shape.place), np.abs(shape.scale)
    if shape.kind == "Mesh" and shape.scale.all():
        size = tuple(shape.scale.tolist())
        return Visual("mesh", size, pose, shape.color, shape.file, shape.found, shape.name, model.folders)
    if not scale.all() or not (shape.size > 0).all():
        return None
    if shape.kind == "Brick":
        return Visual("box", tuple((2 * shape.size * scale).tolist()), pose, shape.color, name=shape.name)
    if shape.kind == "Cylinder" and scale[0] == scale[2]:
        size = (float(shape.size[0] * scale[0]), float(2 * shape.size[1] * scale[1]))
        return Visual("cylinder", size, pose @ _Y_TO_Z, shape.color, name=shape.name)
    if shape.kind in ("Sphere", "Ellipsoid"):
        radii = (shape.size * scale).tolist()
        kind, size = ("sphere", radii[:1]) if len(set(radii)) == 1 else ("ellipsoid", radii)
        return Visual(kind, tuple(size), pose, shape.color, name=shape.name)
    return None


def read_skeleton(path: Path, base: str = "fixed", strict: bool = False, snap: float = 0.0) -> Mechanism:
    """Return the mechanism of an OpenSim skeleton (.osim, versions 3 and 4): bodies, joints, coordinates, markers.

    The coordinates have OpenSim's names, units (rad, m) and meaning. Ball and free joints have three angles about x,
    the new y and the new z, as in OpenSim. Ranges become limits, locked coordinates stay at their default values,
    coupled ones follow their leaders (CoordinateCouplerConstraint), and the default values become the posture
    "default". Welds and points that two bodies share (WeldConstraint, PointConstraint) become loops, and markers become
    frames. Surfaces of bodies become visuals; their meshes are looked up next to the file, in its subfolder Geometry
    and in search folders.

    One ``ModelWarning`` names the omitted parts: muscles and other forces, contact geometry, controllers. ``strict``
    makes it an error.
    """
    model = read_osim(path)
    left_out = dict(model.left_out)
    for shape in model.shapes:
        if visual_of(model, shape) is None:
            left_out.setdefault(f"surfaces of the kind {shape.kind}", []).append(shape.name)
    if left_out:
        refuse_or_warn(left_out_error(left_out, model.source, strict), strict)
    return mechanism_of(model, base, strict, snap)


def mechanism_of(model: OsimModel, base: str = "fixed", strict: bool = False, snap: float = 0.0) -> Mechanism:
    """Return the mechanism of a loaded or scaled skeleton (``torsor.human.measured.scaled_model``)."""
    return _Builder(model, strict).mechanism(base, snap)


class _Builder:
    """Builder of a mechanism, with its links, the coordinates that have a joint, and those that follow."""

    def __init__(self, model: OsimModel, strict: bool):
        self.model, self.strict, self.coordinates = model, strict, model.coordinates
        self.couplings = couplings_of(model, tuple(self.coordinates))
        surfaces = [(shape.body, visual_of(model, shape)) for shape in model.shapes]
        self.links = list[Link]()
        for name in (GROUND, *model.bodies):
            visuals = tuple(visual for body, visual in surfaces if body == name and visual is not None)
            solid = (0.0, np.zeros(3), np.zeros((3, 3))) if name == GROUND else model.bodies[name][1:4]
            self.links.append(link_of(name, solid, visuals, (), strict, model.source))
        self.taken = {link.name for link in self.links}
        self.joint_names = {*self.coordinates, *model.joints}
        self.steps = {name: self._resolved(joint) for name, joint in model.joints.items()}
        self.leaders = self._leaders()

    def mechanism(self, base: str, snap: float) -> Mechanism:
        model, joints = self.model, list[Joint]()
        for name, joint in model.joints.items():
            joints += self._joint(name, joint)
        marked, loops = model.markers.items(), list[Loop]()
        frames = [Frame(claim_name(name, self.taken), at.body, make_pose(p=at.location)) for name, at in marked]
        for item in model.loops:
            ends = [claim_name(f"{item.name}/{letter}", self.taken) for letter in "ab"]
            places = zip(ends, item.bodies, item.places, strict=True)
            frames += [Frame(end, body, pose_of(place)) for end, body, place in places]
            loops.append(Loop(item.name, ends[0], ends[1], item.kind, source=model.source))
        moving = {joint.name for joint in joints if not joint.follows and not joint.is_fixed}
        defaults = {name: coordinate.default for name, coordinate in self.coordinates.items() if name in moving}
        posture = {DEFAULT: defaults} if defaults else None
        parts = self.links, joints, frames, model.gravity, model.source, base, loops
        return build(model.name, *parts, posture_table=posture, snap=snap)

    def _resolved(self, joint: OsimJoint) -> list[tuple[Step, Curve]]:
        """Return the steps of a joint, each with the function that gives its coordinate from its leader.

        Steps of constant functions and of locked coordinates do not move: their coordinate is "".
        """
        result = []
        for step in steps_of(self.model, joint):
            leader, inner = self.couplings.get(step.coordinate, (step.coordinate, IDENTITY))
            if leader not in self.coordinates and not _is_constant(step.function):
                where, allowed = f"{self.model.source}: joint {joint.name!r}", listing(self.coordinates, like=leader)
                raise ModelError(f"no coordinate {leader!r}", value=leader, where=where, allowed=allowed)
            value = self._held(step.coordinate, leader, inner)
            if value is not None:
                step = step._replace(function=Curve((float(step.function(np.array(value))[0]),)))
            result.append((step._replace(coordinate="" if _is_constant(step.function) else leader), inner))
        return result

    def _held(self, coordinate: str, leader: str, inner: Curve) -> float | None:
        """Return the value of a coordinate that is locked or follows a locked one, or None if it moves."""
        if coordinate in self.coordinates and self.coordinates[coordinate].locked:
            return self.coordinates[coordinate].default
        if (leader in self.coordinates and self.coordinates[leader].locked) or _is_constant(inner):
            return float(inner(np.array(self.coordinates[leader].default))[0])
        return None

    def _leaders(self) -> dict[str, tuple[str, int]]:
        """Return, for each coordinate, the joint and number of the step that has it: a linear step, if possible."""
        result = dict[str, tuple[str, int]]()
        for straight in (True, False):
            for name, steps in self.steps.items():
                for k, (step, inner) in enumerate(steps):
                    is_line = _line(step.function, inner) is not None
                    if step.coordinate and is_line == straight:
                        result.setdefault(step.coordinate, (name, k))
        return result

    def _joint(self, name: str, joint: OsimJoint) -> list[Joint]:
        """Return the mechanism joints of an OpenSim joint: one per moving step."""
        model, before, after = self.model.source, pose_of(joint.parent_place), pose_of(joint.child_place)
        steps = list[Joint | Array]()
        for k, (step, inner) in enumerate(self.steps[name]):
            if step.coordinate:
                leads = self.leaders[step.coordinate] == (name, k)
                steps.append(self._moving(step, inner, leads, f"{name}/{k + 1}"))
                continue
            by = float(step.function(np.zeros(1))[0][0]) * direction(step.axis, f"{model}: joint {name!r}", "axis")
            steps.append(make_pose(p=by) if step.kind == "prismatic" else make_pose(exp_so3(by)))
        still = [item for item in steps if not isinstance(item, Joint)]
        if len(still) == len(steps):
            for pose in still:
                before = before @ pose
            return [Joint(name, "fixed", joint.parent, joint.child, before @ inverse_pose(after))]
        ends = joint.parent, joint.child, before, after
        links, moving = joint_chain(steps, *ends, lambda item: claim_name(item, self.taken))
        self.links += links
        return moving

    def _moving(self, step: Step, inner: Curve, leads: bool, name: str) -> Joint:
        """Return a step as the joint that has its coordinate, or as a joint that follows it."""
        coordinate, line = self.coordinates[step.coordinate], _line(step.function, inner)
        settings: dict[str, Any] = {"source": self.model.source, "axis": step.axis}
        if leads:
            name = step.coordinate
            settings |= self._range(coordinate)
        else:
            name = claim_name(name, self.joint_names)
            settings["coordinate"] = step.coordinate
        if line is None:
            cam = Cam.of(step.kind == "revolute", step.function, inner, f"{self.model.source}: joint {name!r}")
            return Joint(name, "flexible", "", "", flexible=cam, **settings)
        slope, constant = line
        return Joint(name, step.kind, "", "", ratio=slope, offset=constant, **settings)

    def _range(self, coordinate: OsimCoordinate) -> dict[str, float]:
        """Return the range of a coordinate as limits. A reversed range is ignored with a warning."""
        if coordinate.lower <= coordinate.upper:
            return {"lower": coordinate.lower, "upper": coordinate.upper}
        message = f"lower limit {coordinate.lower:g} is above upper limit {coordinate.upper:g}"
        where, fix = f"{self.model.source}: coordinate {coordinate.name!r}", "exchange the numbers of <range>"
        refuse_or_warn(ModelError(message, where=where, fix=fix), self.strict, "read as no limit")
        return {}


def _is_constant(function: Curve) -> bool:
    return function.line is not None and function.line[0] == 0


def _line(function: Curve, inner: Curve) -> tuple[float, float] | None:
    """Return slope and constant of a composition of functions, or None if one is not linear or the slope is 0."""
    if function.line is None or inner.line is None:
        return None
    (slope, constant), (first, second) = function.line, inner.line
    return (slope * first, slope * second + constant) if slope * first else None

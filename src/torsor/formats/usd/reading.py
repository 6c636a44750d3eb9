"""Reading UsdPhysics: an articulation of a USD stage becomes a tree of links and joints, and other joints become loops.

The joints and their frames define the tree. The poses of bodies in the stage matter only for joints to the world.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import IDENTITY, Array
from torsor.base.checks import frozen_array
from torsor.base.errors import ModelError, listing
from torsor.formats.joint_decomposition import joint_chain
from torsor.formats.meshes.mesh_files import is_inside, split_prim, triangles_of
from torsor.formats.usd.joints import AXES, WORLD, UsdJoint, joint_of, loop_of, several, single_joint, unread_drives
from torsor.formats.usd.stage import (
    Place,
    Scene,
    decimal,
    exact,
    flag_of,
    number_of,
    own_data,
    rotation_of,
    vector_of,
    wrong_type,
)
from torsor.mechanism import Frame, Joint, Link, Mechanism, Shape, Visual, build
from torsor.mechanism.loops import Closure
from torsor.mechanism.parts import FRICTION, VISUAL_SIZES, Solid, primitive_solid, symmetric, tetrahedra_solid
from torsor.mechanism.parts import link_of as link_of_file
from torsor.spatial import axis_frame, composite, inverse_pose, make_pose, move_inertia

# USD bodies as links: mass properties by the rules of UsdPhysics, surfaces as visuals and collision shapes.
#
# A missing mass follows from the density and volume of the collision shapes. The density of a shape has priority over
# that of the body, which has priority over that of the material; the default is that of water. A missing centre of mass
# or inertia is that of the shapes, scaled to the mass of the body.

WATER = 1000.0  # kg/m^3, the default density
_AXES = {"X": 0, "Y": 1, "Z": 2}
_SIMPLE_SHAPES = ("Cube", "Sphere", "Capsule", "Cylinder", "Plane")
_SCALE_TOLERANCE = 1e-5  # relative difference of scales that count as equal
_HIDDEN_PURPOSES = ("guide", "proxy")  # purposes that are not drawn


def link_of(scene: Scene, prim: Any, name: str) -> Link:
    """Return a body as a link in the axes of its prim, without its scale."""
    place, visuals, shapes, solids = scene.place(prim), list[Visual](), list[Shape](), list[Solid]()
    for part in scene.parts.get(str(prim.GetPath()), []):
        collides = part.HasAPI(scene.pxr.UsdPhysics.CollisionAPI)
        collides = collides and flag_of(scene.pxr.UsdPhysics.CollisionAPI(part).GetCollisionEnabledAttr(), True)
        result = _geometry(scene, part, prim, collides)
        if result is None:
            continue
        image = scene.pxr.UsdGeom.Imageable(part)
        shown = image.ComputePurpose() not in _HIDDEN_PURPOSES and image.ComputeVisibility() != "invisible"
        drawn = shown and result["shape"] in VISUAL_SIZES
        if (drawn or collides) and not all(result["size"]) and not (result["shape"] == "capsule" and result["size"][0]):
            scene.left_out.note("shapes of size 0", part.GetName())
            continue
        if drawn:
            visuals.append(Visual(**result, color=_color(scene, part)))
        if collides:
            data = own_data(part)
            keys = ("contype", "conaffinity", "priority")
            masks: dict[str, Any] = {key: int(data[key]) for key in keys if key in data}
            friction = float(data.get("friction", FRICTION))
            shapes.append(Shape(**result, link=str(data.get("link", "")), friction=friction, **masks))
            solids += _solid(scene, prim, part, result)
    body = _mass(scene, prim, place, solids)
    return link_of_file(name, body, tuple(visuals), tuple(shapes), scene.strict, scene.source)


def _mass(scene: Scene, prim: Any, place: Place, solids: list[Solid]) -> Solid:
    """Return mass, centre of mass and inertia about it of a body. ``solids`` contains those of its collision shapes."""
    units, data, api = scene.units, own_data(prim), scene.pxr.UsdPhysics.MassAPI(prim)
    own_mass = number_of(api.GetMassAttr()) * units.mass
    center, moments = vector_of(api.GetCenterOfMassAttr(), -np.inf), vector_of(api.GetDiagonalInertiaAttr())
    R = rotation_of(api.GetPrincipalAxesAttr())
    R = np.eye(3) if R is None else R
    if "mass" in data and own_mass == decimal(data["mass"]) == 0:  # Torsor wrote a link without mass
        zeros = np.zeros(3), np.zeros((3, 3))
        com, inertia = data.get("com", zeros[0]), data.get("inertia", zeros[1])
        return float(data["mass"]), np.asarray(com, dtype=float), np.asarray(inertia, dtype=float)
    numbers = [own_mass, *moments, *([] if np.isneginf(center).all() else center)]  # minus infinity stands for none
    if not (np.isfinite(numbers).all() and own_mass >= 0):
        message, allowed = f"{own_mass:g}, centre of mass {center}, diagonal inertia {moments}", "finite numbers"
        raise ModelError(message, argument="mass", where=scene.where(prim), allowed=f"{allowed}, a mass of 0 or more")
    volume, middle, shape = composite(*solids) if solids else (0.0, np.zeros(3), np.zeros((3, 3)))
    mass = own_mass or volume
    given_center = bool(np.isfinite(center).all())
    com = center * place.scale * units.length if given_center else middle
    whole = _newton_inertia(prim)
    if whole is not None:
        inertia = whole * units.torque
    elif moments.any() or ("inertia" in data and not np.any(data["inertia"])):  # Torsor wrote an inertia of 0
        inertia = (R * (moments * units.torque)) @ R.T
    else:
        away = com - middle
        inertia = shape * (mass / volume) + mass * (away @ away * np.eye(3) - np.outer(away, away)) if volume else shape
    if not mass or not inertia.any():
        scene.without_mass.append(str(prim.GetPath()))
    inertia = exact(data, "inertia", (inertia + inertia.T) / 2)
    return exact(data, "mass", mass), exact(data, "com", com), inertia


def _newton_inertia(prim: Any) -> Array | None:
    """Return the inertia (3 x 3) that Newton stores in double precision, which has priority over UsdPhysics."""
    attribute = prim.GetAttribute("newton:inertia")
    moments = attribute.Get() if attribute else None
    if moments is None or len(moments) == 0:
        return None
    try:
        return symmetric(frozen_array(np.array(moments, dtype=float), (6,), "", ""))
    except (TypeError, ValueError):  # including ModelError
        raise wrong_type(attribute, moments, "6 finite numbers: xx yy zz xy xz yz") from None


def _solid(scene: Scene, body: Any, part: Any, fields: dict[str, Any]) -> list[Solid]:
    """Return (mass, centre, inertia) of a collision shape with its density, in body axes, or None for a plane."""
    if fields["shape"] == "plane" or "mesh" in own_data(part):
        return []
    if fields["shape"] == "mesh":
        surface, (pose, scale) = triangles_of(part, scene.where(part))[0], scene.place_in(part, body)
        at = surface.scaled(scale * scene.units.length).at(pose).vertices
        faces = at[surface.faces] - at.mean(axis=0)
        volumes = np.linalg.det(faces) / 6
        if abs(volumes.sum()) <= 1e-9 * np.abs(volumes).sum():
            return []
        volume, center, inertia = tetrahedra_solid(faces, volumes * np.sign(volumes.sum()))
        center = center + at.mean(axis=0)
    else:
        primitive = primitive_solid(fields["shape"], np.array(fields["size"]))
        volume, center, inertia = move_inertia(fields["pose"], *primitive)
    mass = number_of(scene.pxr.UsdPhysics.MassAPI(part).GetMassAttr()) * scene.units.mass
    factor = mass / volume if mass else _density(scene, body, part)
    return [(factor * volume, center, factor * inertia)]


def _density(scene: Scene, body: Any, part: Any) -> float:
    """Return the density of a collision shape in kg/m^3."""
    physics = scene.pxr.UsdPhysics
    bound, _ = scene.pxr.UsdShade.MaterialBindingAPI(part).ComputeBoundMaterial("physics")
    densities = [physics.MassAPI(part).GetDensityAttr(), physics.MassAPI(body).GetDensityAttr()]
    densities += [physics.MaterialAPI(bound.GetPrim()).GetDensityAttr()] if bound else []
    first_density = next((value for density in densities for value in [number_of(density)] if value), 0.0)
    if not first_density >= 0 or np.isinf(first_density):
        raise ModelError(f"density is {first_density:g}", where=scene.where(part), allowed="0 or more")
    path, counts = str(body.GetPath()), not number_of(physics.MassAPI(body).GetMassAttr())
    if not first_density and counts and "mass" not in own_data(body) and path not in scene.of_water:
        scene.of_water.append(path)
    return first_density * scene.units.mass / scene.units.length**3 or WATER


def _geometry(scene: Scene, part: Any, body: Any, collides: bool) -> dict[str, Any] | None:
    """Return shape, size, pose and name of a prim in the axes of its body, or None for unsupported shapes."""
    kind, name = part.GetTypeName(), str(own_data(part).get("name", part.GetName()))
    try:
        pose, scale = scene.place_in(part, body)
    except ModelError:
        scene.left_out.note("shapes with shear", name)
        return None
    scale = scale * scene.units.length
    if kind == "Mesh":
        try:
            faces = own_data(part).get("mesh") or len(triangles_of(part, scene.where(part))[0].faces)
        except ModelError:
            faces = None
        if not faces:
            scene.left_out.note("meshes without faces, or with inconsistent points and faces", name)
            return None
        return {"shape": "mesh", "pose": pose, "name": name, **_mesh(scene, part, scale)}
    scale = np.abs(scale)  # these shapes are their own mirror images
    prim: Any = getattr(scene.pxr.UsdGeom, kind)(part) if kind in _SIMPLE_SHAPES else None
    result = {"pose": pose, "name": name}
    if kind == "Cube":
        return result | {"shape": "box", "size": tuple(prim.GetSizeAttr().Get() * scale)}
    if kind == "Sphere":
        radii = prim.GetRadiusAttr().Get() * scale
        if np.ptp(radii) <= _SCALE_TOLERANCE * radii.max():
            return result | {"shape": "sphere", "size": (float(radii[0]),)}
        return result | {"shape": "ellipsoid", "size": tuple(radii)}
    if kind in ("Capsule", "Cylinder", "Plane"):
        along = _AXES[prim.GetAxisAttr().Get()]
        result["pose"] = pose @ make_pose(axis_frame(np.eye(3)[along]))
        if kind == "Plane":
            return result | {"shape": "plane", "size": ()} if collides else None
        across = np.delete(scale, along)
        if np.ptp(across) <= _SCALE_TOLERANCE * across.max():
            size = (prim.GetRadiusAttr().Get() * across[0], prim.GetHeightAttr().Get() * scale[along])
            return result | {"shape": kind.lower(), "size": tuple(map(float, size))}
    scene.left_out.note(f"{'collision shapes' if collides else 'visuals'} of the kind {kind}", name)
    return None


def _mesh(scene: Scene, part: Any, scale: Array) -> dict[str, Any]:
    """Return scale, name, path and folders of a mesh: of Torsor's file if it may be read, otherwise of the prim."""
    data = own_data(part)
    if data.get("mesh"):
        mesh, size = str(data["mesh"]), tuple(float(item) for item in data.get("scale", (1.0, 1.0, 1.0)))
        file = scene.finder.file(mesh)  # resolved before ``folders`` is read, because it may add one
        folders = tuple(dict.fromkeys((*scene.folders, *scene.finder.folders)))
        allowed = file is not None and is_inside(split_prim(Path(file))[0], folders)
        if allowed or not part.GetAttribute("points").Get():
            return {"size": size, "mesh": mesh, "path": file, "folders": folders}
    prim, size = f"#{part.GetPath()}", tuple(scale.tolist())
    return {"size": size, "mesh": f"{scene.source}{prim}", "path": f"{scene.path}{prim}", "folders": scene.folders}


def _color(scene: Scene, part: Any) -> tuple[float, ...] | None:
    """Return red, green, blue and opacity of a prim, or None if it has no colour."""
    surface = scene.pxr.UsdGeom.Gprim(part)
    color, opacity = surface.GetDisplayColorAttr().Get(), surface.GetDisplayOpacityAttr().Get()
    if not all(np.isfinite(np.array(item)).all() for item in (color, opacity) if item):
        scene.left_out.note("colours that are not finite", part.GetName())
        return None
    if not color or surface.GetDisplayColorPrimvar().GetInterpolation() == "uniform":  # of each face
        return None
    return (*(decimal(item) for item in color[0]), decimal(opacity[0]) if opacity else 1.0)


_TURNS = AXES[3:]
# Attributes of bodies that change their motion: disabled gravity, and damping.
_BODY_EFFECTS = (
    "physxRigidBody:disableGravity",
    "physxRigidBody:linearDamping",
    "physxRigidBody:angularDamping",
    "mjc:gravcomp",
)


def read_usd(path: Path, base: str = "fixed", strict: bool = False, snap: float = 0.0) -> Mechanism:
    """Return the mechanism of a USD stage (.usda, .usd, .usdc, .usdz). The extra ``usd`` is required.

    ``scene.usda#/World/arm`` selects one of several articulations. The links are the bodies, with the poses and names
    of their prims. The base is the body that a fixed joint attaches to the origin of the stage, or otherwise a link
    ``world``. A robot that no joint attaches to the world gets a free joint. ``base="floating"`` releases an attached
    robot. Stage units, angles in degrees and PhysX velocities in degrees per second are converted to SI units and
    radians. Joints that are excluded from the articulation, or that close a cycle, become loops. A ``ModelWarning``
    names omitted parts; ``strict`` makes it an error.
    """
    file, prim = split_prim(path)
    try:
        return _Reader(Scene.of(file, strict), prim).read(base, snap, file)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:  # including USD errors
        if isinstance(error, ModelError):
            raise
        message = f"an attribute cannot be used ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
        fix = "check the types of its attributes, and the dictionary torsor of customData, if there is one"
        raise ModelError(message, where=file.name, fix=fix) from None


class _Reader:
    """Reader of one stage, with the bodies and joints of the articulation by path."""

    def __init__(self, scene: Scene, prim_path: str):
        self.scene = scene
        physics = scene.pxr.UsdPhysics
        every = {str(prim.GetPath()): prim for prim in scene.prims if scene.is_body(prim)}
        result = (joint_of(scene, prim) for prim in scene.prims if prim.IsA(physics.Joint))
        joints = [joint for joint in result if joint is not None]
        self.root, chosen = self._articulation(every, joints, prim_path)
        self.bodies = {path: prim for path, prim in every.items() if path in chosen}
        for path in every.keys() - chosen:
            scene.left_out.note("bodies outside the articulation", path)
        chosen_joints = [joint for joint in joints if any(end.body in chosen for end in joint.ends)]
        self.joints = [replace(joint, name=scene.name(joint.prim, "joint")) for joint in chosen_joints]
        root = scene.stage.GetPrimAtPath(self.root)
        self.data = own_data(root)
        self.stacks = self._stacks() if flag_of(root.GetAttribute("newton:jointsAddMobility"), False) else {}

    def _articulation(self, bodies: dict[str, Any], joints: list[UsdJoint], prim_path: str) -> tuple[str, set[str]]:
        """Return the path of the root and the body paths of the articulation to read."""
        scene, pieces = self.scene, _connected(bodies, joints)
        api = scene.pxr.UsdPhysics.ArticulationRootAPI
        result = dict[str, set[str]]()
        for prim in (prim for prim in scene.prims if prim.HasAPI(api)):
            path = str(prim.GetPath())
            ends = next(({end.body for end in joint.ends} for joint in joints if joint.prim == prim), set())
            ends |= {body for body in bodies if _is_below(body, path)}
            result[path] = {body for piece in pieces if piece & ends for body in piece}
        if not result:
            result = {min(piece, key=list(bodies).index): piece for piece in pieces}
            joined = {end.body for joint in joints for end in joint.ends}
            result = {path: piece for path, piece in result.items() if piece & joined} or result
        result = {path: piece for path, piece in result.items() if piece and _is_below(path, prim_path)}
        # The first root of a piece: the root of a robot may also be marked on its joint to the world.
        first = {frozenset(piece): path for path, piece in reversed(result.items())}
        result = {path: piece for path, piece in result.items() if path == first[frozenset(piece)]}
        moved = {end.body for joint in joints if joint.free for end in joint.ends}
        moving = {path: piece for path, piece in result.items() if piece & moved}
        for item in (result, moving):
            if len(item) == 1:
                return next(iter(item.items()))
        if result:
            what = f"{len(result)} articulations: {listing(result)}"
            fix = f"name one: {scene.source}#{next(iter(result))}"
            raise ModelError(what, where=scene.source, allowed="one", fix=fix)
        what = f"no articulation at {prim_path}" if prim_path else "no rigid body (PhysicsRigidBodyAPI)"
        raise ModelError(what, where=scene.source, allowed="bodies with joints of UsdPhysics")

    def _stacks(self) -> dict[str, list[UsdJoint]]:
        """Combine joints between the same two bodies into one chain, as Newton does. The first joint holds the others.

        The chain goes from the first end of the first joint to its second end. Ends of other joints may be exchanged.
        """
        stacks = dict[frozenset[str], list[UsdJoint]]()
        for joint in (item for item in self.joints if not item.excluded):
            stack = stacks.setdefault(frozenset(end.body for end in joint.ends), [])
            a, b = joint.ends
            exchanged = stack and stack[0].ends[0].body != a.body
            stack.append(replace(joint, ends=(b, a), turned=True) if exchanged else joint)
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
        self._note_engine_features()
        scene.report(welded)
        name = str(self.data.get("name", "")) or Path(self.root).name or path.stem
        hung = any(joint is not None and before == WORLD for joint, before in parents.values())
        postures = json.loads(str(self.data.get("postures", "{}")))
        settings = scene.source, base if hung else "fixed", loops, self._active(loops, joints), postures, snap
        return build(name, links, joints, frames, gravity, *settings, self._allowed())

    def _note_engine_features(self) -> None:
        """Record properties that affect the articulation in physics engines but are not part of a mechanism."""
        note = self.scene.left_out.note
        for prim in self.scene.prims:
            kind, name = str(prim.GetTypeName()), prim.GetName()
            note(f"joints of the kind {kind}", name, kind.startswith("Physx") and kind.endswith("Joint"))
            schemas = {str(schema).partition(":")[0] for schema in prim.GetAppliedSchemas()}
            names = {str(item).partition(":")[0] for item in prim.GetAuthoredPropertyNames()}
            tendon = kind == "MjcTendon" or "physxTendon" in names or any("PhysxTendon" in item for item in schemas)
            note("tendons", name, tendon)
            note("forces of PhysxForceAPI", name, "physxForce" in names or "PhysxForceAPI" in schemas)
            note("mjc:springdamper", name, any(_entries(prim, "mjc:springdamper")))
        what = "drives without PhysicsDriveAPI, or of axes that have none"
        for joint in self.joints:
            note(what, joint.name, unread_drives(self.scene, joint))
        for prim in self.bodies.values():
            for key in _BODY_EFFECTS:
                note(key, prim.GetName(), any(_entries(prim, key)))

    def _tree(self, base: str) -> dict[str, tuple[UsdJoint | None, str]]:
        """Return, by body, the joint that moves it and its parent body. An unconnected body has no joint."""
        if base == "floating":  # bodies that are welded to the world are released
            welds = [item for item in self.joints if not (item.free or item.excluded)]
            held = [weld for weld in welds if WORLD in {end.body for end in weld.ends}]
            self.joints = [item for item in self.joints if not any(item is weld for weld in held)]
        inside = [joint for joint in self.joints if not joint.excluded]
        result = dict[str, tuple[UsdJoint | None, str]]()
        starts = [WORLD, *([self.root] if self.root in self.bodies else []), *self.bodies]
        for start in starts:
            if start in result:
                continue
            if start != WORLD:
                result[start] = None, WORLD
            waiting = [start]
            while waiting:
                here = waiting.pop(0)
                for joint in inside:
                    bodies = [end.body for end in joint.ends]
                    there = bodies[1] if bodies[0] == here else bodies[0] if bodies[1] == here else WORLD
                    if there != WORLD and there not in result:
                        result[there] = joint, here
                        waiting.append(there)
        return result

    def _is_base(self, joint: UsdJoint | None, before: str) -> bool:
        """Return whether a joint welds its body to the origin of the stage."""
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
        """Return the massless links and joints of a tree joint: one joint, or a chain of translations and rotations."""
        scene, data, ends = self.scene, own_data(joint.prim), (self.names[parent], self.names[child])
        placement, stack = self._placement(joint, parent), self.stacks.get(joint.name, [joint])
        free = {axis for entry in stack for axis in entry.free}
        if not free or (len(stack) == 1 and len(free) == len(AXES)):
            whole = several(scene, joint.prim) if joint.free else {}
            settings: dict[str, Any] = {"source": scene.source, **whole}
            return [], [Joint(joint.name, "free" if joint.free else "fixed", *ends, placement, **settings)]
        sign = joint.between(parent)[2]
        stack = stack if sign > 0 else stack[::-1]
        before, after, signs = zip(*(entry.between(parent) for entry in stack), strict=True)
        second = after if sign > 0 else before
        steps = list[Joint | Array]()
        for k, item in enumerate(stack):
            if k:  # on the body that has moved with the previous joints
                steps.append(inverse_pose(second[k - 1]) @ second[k])
            steps += self._steps(item, signs[k])
        between = before[0], after[-1]
        links, made = joint_chain(steps, *ends, *between, lambda name: scene.unused(name, "link"))
        if len(made) == 1 and sign > 0:
            geometry = {key: exact(data, key, getattr(made[0], key)) for key in ("axis", "point")}
            made = [replace(made[0], placement=placement, **geometry)]
        return links, made

    def _steps(self, joint: UsdJoint, sign: float) -> list[Joint]:
        """Return the translations and rotations of a joint, in order as seen from its parent."""
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
        """Return the frames written by Torsor, on their links."""
        result = []
        for prim in self.scene.prims:
            body = self.scene.body_of(prim) if own_data(prim).get("frame") else None
            if body is not None and str(body.GetPath()) in self.bodies:
                pose = exact(own_data(prim), "pose", self.scene.place_in(prim, body).pose)
                result.append(Frame(self.scene.name(prim, "link"), self.names[str(body.GetPath())], pose))
        return result

    def _loops(self, parents: dict[str, tuple[UsdJoint | None, str]], frames: list[Frame]) -> Iterable[Closure]:
        """Yield the joints that are not in the tree as loops, and add the frames that they need."""
        inside = [joint for joint, _ in parents.values()]
        for joint in self.joints:
            if not any(joint is item for item in inside):
                if len(self.stacks.get(joint.name, [])) > 1:
                    message = f"it and {len(self.stacks[joint.name]) - 1} more between the same bodies close a loop"
                    raise ModelError(message, where=self.scene.where(joint.prim), allowed="one joint")
                loop = loop_of(self.scene, joint, self.names, frames)
                if loop is not None:
                    yield loop

    def _active(self, loops: list[Closure], joints: list[Joint]) -> list[str]:
        """Return the driven coordinates of a robot with loops: those written by Torsor, or all with a drive."""
        if "active" in self.data:
            return [str(item) for item in self.data["active"]]
        schemas = {joint.name: joint.prim.GetAppliedSchemas() for joint in self.joints}
        driven = [name for name, schema in schemas.items() if any("DriveAPI" in item for item in schema)]
        return [joint.name for joint in joints if joint.name in driven and not joint.follows] if loops else []

    def _allowed(self) -> list[tuple[str, str, str]]:
        """Return the link pairs that may touch: those written by Torsor, or the filtered pairs of the bodies."""
        if "allowed" in self.data:
            return [(a, b, why) for a, b, why in json.loads(str(self.data["allowed"]))]
        scene, api, result = self.scene, self.scene.pxr.UsdPhysics.FilteredPairsAPI, dict[tuple[str, str], None]()
        for path, prim in self.bodies.items():
            for target in api(prim).GetFilteredPairsRel().GetTargets() if prim.HasAPI(api) else []:
                other = scene.body_of(scene.stage.GetPrimAtPath(target))
                if other is not None and str(other.GetPath()) in self.bodies and other != prim:
                    a, b = sorted((self.names[path], self.names[str(other.GetPath())]))
                    result[a, b] = None
        return [(*pair, "filtered") for pair in result]


def _entries(prim: Any, key: str) -> list[Any]:
    """Return the entries of an attribute, which may have several values, one or none."""
    value = prim.GetAttribute(key).Get() if prim.HasAttribute(key) else None
    return [] if value is None else list(value) if hasattr(value, "__len__") else [value]


def _is_below(path: str, above: str) -> bool:
    """Return whether a prim equals another prim or is below it."""
    return path == above or path.startswith(f"{above.rstrip('/')}/")


def _connected(bodies: Iterable[str], joints: Iterable[UsdJoint]) -> list[set[str]]:
    """Return the sets of bodies that joints connect, in stage order. Joints to the world connect no bodies."""
    pieces = {body: {body} for body in bodies}
    for joint in joints:
        a, b = (pieces.get(end.body) for end in joint.ends)
        if a is not None and b is not None and a is not b:
            a |= b
            pieces.update(dict.fromkeys(b, a))
    return list({id(piece): piece for piece in pieces.values()}.values())

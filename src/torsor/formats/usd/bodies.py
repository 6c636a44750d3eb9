"""Bodies of USD as links: mass properties by the rules of UsdPhysics, surfaces as visuals and collision shapes.

A mass that a body does not have follows from the density and the volume of its collision shapes: the density of the
shape counts before that of the body, and that before the one of its material; water without any. Centre of mass and
inertia, if they are not given, are those of the shapes with the mass of the body.
"""

from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.base.faults import refuse_or_warn
from torsor.formats.meshes.mesh_folders import is_inside
from torsor.formats.meshes.usd_files import split_prim, triangles_of
from torsor.formats.usd.scene import Scene
from torsor.formats.usd.stage import (
    Place,
    decimal,
    exact,
    flag_of,
    number_of,
    own_data,
    rotation_of,
    vector_of,
    wrong_type,
)
from torsor.mechanism import Link, Shape, Visual
from torsor.mechanism.parts import VISUAL_SIZES
from torsor.mechanism.solids import Solid, primitive_solid, tetrahedra_solid
from torsor.spatial import axis_frame, composite, make_pose, move_inertia

WATER = 1000.0  # kg/m^3, the density of what has none
_AXES = {"X": 0, "Y": 1, "Z": 2}
_ROUND = 1e-5  # relative difference of scales that count as equal
_HIDDEN = ("guide", "proxy")  # purposes that are not drawn


def link_of(scene: Scene, prim: Any, name: str) -> Link:
    """Return a body as a link in the axes of its prim, without its scale."""
    place, visuals, shapes, solids = scene.place(prim), list[Visual](), list[Shape](), list[Solid]()
    for part in scene.parts.get(str(prim.GetPath()), []):
        collides = part.HasAPI(scene.pxr.UsdPhysics.CollisionAPI)
        collides = collides and flag_of(scene.pxr.UsdPhysics.CollisionAPI(part).GetCollisionEnabledAttr(), True)
        found = _geometry(scene, part, prim, collides)
        if found is None:
            continue
        image = scene.pxr.UsdGeom.Imageable(part)
        shown = image.ComputePurpose() not in _HIDDEN and image.ComputeVisibility() != "invisible"
        if shown and found["shape"] in VISUAL_SIZES:
            visuals.append(Visual(**found, color=_color(scene, part)))
        if collides:
            data = own_data(part)
            masks: dict[str, Any] = {key: int(data[key]) for key in ("contype", "conaffinity") if key in data}
            shapes.append(Shape(**found, link=str(data.get("link", "")), **masks))
            solids += _solid(scene, prim, part, found)
    mass, com, inertia = _mass(scene, prim, place, solids)
    link = Link(name, mass, com, inertia, tuple(visuals), scene.strict, scene.source, tuple(shapes))
    if link.defect and not scene.strict:
        refuse_or_warn(link.defect, strict=False)
    return link


def _mass(scene: Scene, prim: Any, place: Place, solids: list[Solid]) -> Solid:
    """Return mass, centre of mass and inertia about it of a body; ``solids`` are those of its collision shapes."""
    units, data, api = scene.units, own_data(prim), scene.pxr.UsdPhysics.MassAPI(prim)
    own_mass = number_of(api.GetMassAttr()) * units.mass
    center, moments = vector_of(api.GetCenterOfMassAttr(), -np.inf), vector_of(api.GetDiagonalInertiaAttr())
    R = rotation_of(api.GetPrincipalAxesAttr())
    R = np.eye(3) if R is None else R
    if "mass" in data and own_mass == decimal(data["mass"]) == 0:  # Torsor wrote a link without mass, not one of water
        zeros = np.zeros(3), np.zeros((3, 3))
        com, inertia = (
            np.asarray(data.get(key, zero), dtype=float) for key, zero in zip(("com", "inertia"), zeros, strict=True)
        )
        return float(data["mass"]), com, inertia
    _check(scene, prim, own_mass, center, moments)
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
    """Return the inertia (3 x 3) that Newton has in double precision, which counts before that of UsdPhysics."""
    attribute = prim.GetAttribute("newton:inertia")
    given = attribute.Get() if attribute else None
    if given is None or len(given) == 0:
        return None
    try:
        xx, yy, zz, xy, xz, yz = numbers = np.array(given, dtype=float)
        if not np.isfinite(numbers).all():
            raise ValueError
    except (TypeError, ValueError):
        raise wrong_type(attribute, given, "6 finite numbers: xx yy zz xy xz yz") from None
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _check(scene: Scene, prim: Any, mass: float, center: Array, moments: Array) -> None:
    """Raise ModelError for numbers that are none; a centre of minus infinity is the schema's word for none."""
    absent = bool(np.isneginf(center).all())
    if not (np.isfinite(mass) and mass >= 0 and np.isfinite(moments).all() and (absent or np.isfinite(center).all())):
        found = f"mass {mass:g}, centre of mass {center}, diagonal inertia {moments}"
        raise ModelError(describe(found, where=scene.where(prim), allowed="finite numbers, a mass of 0 or more"))


def _solid(scene: Scene, body: Any, part: Any, found: dict[str, Any]) -> list[Solid]:
    """Return (mass, centre, inertia) of a collision shape with its density, in the body's axes; none of a plane."""
    if found["shape"] == "plane" or "mesh" in own_data(part):
        return []
    if found["shape"] != "mesh":
        solid = move_inertia(found["pose"], *primitive_solid(found["shape"], np.array(found["size"])))
    else:
        inside = _mesh_solid(scene, part, body)
        if inside is None:
            return []
        solid = inside
    volume, center, inertia = solid
    api = scene.pxr.UsdPhysics.MassAPI
    mass = number_of(api(part).GetMassAttr()) * scene.units.mass
    factor = mass / volume if mass else _density(scene, body, part)
    return [(factor * volume, center, factor * inertia)]


def _density(scene: Scene, body: Any, part: Any) -> float:
    """Return the density of a collision shape in kg/m^3."""
    physics = scene.pxr.UsdPhysics
    bound, _ = scene.pxr.UsdShade.MaterialBindingAPI(part).ComputeBoundMaterial("physics")
    densities = [physics.MassAPI(part).GetDensityAttr(), physics.MassAPI(body).GetDensityAttr()]
    densities += [physics.MaterialAPI(bound.GetPrim()).GetDensityAttr()] if bound else []
    given = next((value for each in densities for value in [number_of(each)] if value), 0.0)
    if not given >= 0 or np.isinf(given):
        raise ModelError(describe(f"density is {given:g}", where=scene.where(part), allowed="0 or more"))
    path, counts = (
        str(body.GetPath()),
        "mass" not in own_data(body) and not number_of(physics.MassAPI(body).GetMassAttr()),
    )
    if not given and counts and path not in scene.of_water:
        scene.of_water.append(path)
    return given * scene.units.mass / scene.units.length**3 or WATER


def _mesh_solid(scene: Scene, part: Any, body: Any) -> Solid | None:
    """Return the solid inside of a mesh prim of unit density, in the body's axes; None without a volume."""
    surface, _ = triangles_of(part, scene.where(part))
    pose, scale = scene.place_in(part, body)
    at = surface.scaled(scale * scene.units.length).at(pose).vertices
    faces = at[surface.faces] - at.mean(axis=0)
    volumes = np.linalg.det(faces) / 6
    if abs(volumes.sum()) <= 1e-9 * np.abs(volumes).sum():
        return None
    volume, center, inertia = tetrahedra_solid(faces, volumes * np.sign(volumes.sum()))
    return volume, center + at.mean(axis=0), inertia


def _geometry(scene: Scene, part: Any, body: Any, collides: bool) -> dict[str, Any] | None:
    """Return shape, size, pose and name of a prim in the axes of its body, or None if no shape of ours is like it."""
    data, kind = own_data(part), part.GetTypeName()
    name = str(data.get("name", part.GetName()))
    try:
        pose, scale = scene.place_in(part, body)
    except ModelError:
        scene.left_out.note("shapes with shear", name)
        return None
    scale = scale * scene.units.length
    if kind == "Mesh":
        if not own_data(part).get("mesh") and not _has_faces(scene, part):
            scene.left_out.note("meshes without faces, or whose points and faces do not fit together", name)
            return None
        return {"shape": "mesh", "pose": pose, "name": name, **_mesh(scene, part, scale)}
    shaped, scale = scene.pxr.UsdGeom, np.abs(scale)  # these are their own mirror images
    if kind == "Cube":
        size = tuple(shaped.Cube(part).GetSizeAttr().Get() * scale)
        return {"shape": "box", "size": size, "pose": pose, "name": name}
    if kind == "Sphere":
        radii = shaped.Sphere(part).GetRadiusAttr().Get() * scale
        if np.ptp(radii) <= _ROUND * radii.max():
            return {"shape": "sphere", "size": (float(radii[0]),), "pose": pose, "name": name}
        return {"shape": "ellipsoid", "size": tuple(radii), "pose": pose, "name": name}
    if kind in ("Capsule", "Cylinder", "Plane"):
        prim = getattr(shaped, kind)(part)
        along = _AXES[prim.GetAxisAttr().Get()]
        turned = pose @ make_pose(axis_frame(np.eye(3)[along]))
        if kind == "Plane":
            return {"shape": "plane", "size": (), "pose": turned, "name": name} if collides else None
        across = np.delete(scale, along)
        if np.ptp(across) <= _ROUND * across.max():
            size = (prim.GetRadiusAttr().Get() * across[0], prim.GetHeightAttr().Get() * scale[along])
            return {"shape": kind.lower(), "size": tuple(map(float, size)), "pose": turned, "name": name}
    scene.left_out.note(f"{'collision shapes' if collides else 'visuals'} of the kind {kind}", name)
    return None


def _has_faces(scene: Scene, part: Any) -> bool:
    try:
        return len(triangles_of(part, scene.where(part))[0].faces) > 0
    except ModelError:
        return False


def _mesh(scene: Scene, part: Any, scale: Array) -> dict[str, Any]:
    """Return scale, name, path and folders of a mesh: of the file that Torsor named, or of the surface in the stage.

    The surface counts where there is no such file, or where it is not in a folder that may be read.
    """
    data = own_data(part)
    if data.get("mesh"):
        mesh, size = str(data["mesh"]), tuple(float(each) for each in data.get("scale", (1.0, 1.0, 1.0)))
        file = scene.finder.file(mesh)  # before its folders, which it may add one to
        folders = tuple(dict.fromkeys((*scene.folders, *scene.finder.folders)))
        allowed = file is not None and is_inside(split_prim(Path(file))[0], folders)
        if allowed or not part.GetAttribute("points").Get():
            return {"size": size, "mesh": mesh, "path": file, "folders": folders}
    prim, size = f"#{part.GetPath()}", tuple(scale.tolist())
    return {"size": size, "mesh": f"{scene.source}{prim}", "path": f"{scene.path}{prim}", "folders": scene.folders}


def _color(scene: Scene, part: Any) -> tuple[float, ...] | None:
    """Return red, green, blue and opacity of a prim, None without a colour of its own."""
    surface = scene.pxr.UsdGeom.Gprim(part)
    color, opacity = surface.GetDisplayColorAttr().Get(), surface.GetDisplayOpacityAttr().Get()
    if not all(np.isfinite(np.array(each)).all() for each in (color, opacity) if each):
        scene.left_out.note("colours that are not finite", part.GetName())
        return None
    if not color or surface.GetDisplayColorPrimvar().GetInterpolation() == "uniform":  # of each face
        return None
    return (*(decimal(each) for each in color[0]), decimal(opacity[0]) if opacity else 1.0)

"""MuJoCo's compiler without what a mechanism does not need: only meshes that a number follows from are read.

Reading meshes takes most of the time and memory of compiling. A mesh is needed where it decides an inertia or the size
of a fitted shape; every other mesh becomes an octahedron, so that files with missing meshes are read as well. Textures
are not read.
"""

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from torsor.base.errors import ModelError, describe, missing, warn
from torsor.mechanism.names import claim_name

_PARSED = (".xml", ".urdf")
_MESH = 7  # of mjtGeom
# An octahedron about the axes, with the largest moment about x: MuJoCo neither moves nor turns it, so that the poses of
# geoms stay exact.
_CORNERS = np.vstack([np.diag([1.0, 2.0, 3.0]), -np.diag([1.0, 2.0, 3.0])])
_FACES = np.array([[0, 1, 2], [5, 1, 0], [2, 4, 0], [0, 4, 5], [2, 1, 3], [3, 1, 5], [3, 4, 2], [5, 4, 3]])


class Compiled(NamedTuple):
    """The module ``mujoco``, its model of a file, and the files of the meshes that were not read, by mesh."""

    mujoco: Any
    model: Any
    files: Mapping[str, str]


def compile_mjcf(path: Path) -> Compiled:
    """Return MuJoCo's model of a file, with an octahedron in place of every mesh that decides no number."""
    try:
        import mujoco
    except ImportError:
        found = "MJCF is read by the package mujoco, which is not installed"
        raise missing(found, "mjcf", where=path.name) from None
    file = str(path.absolute())  # MuJoCo's paths of meshes begin with the folder as it is given
    with _warnings_of(mujoco, path):
        try:
            if not hasattr(mujoco.MjSpec, "from_file") or path.suffix.lower() not in _PARSED:
                # Old versions have no parser apart from the compiler; that of new ones reads these suffixes alone.
                return Compiled(mujoco, mujoco.MjModel.from_xml_path(file), {})
            spec = mujoco.MjSpec.from_file(file)
            files = _without_meshes(mujoco, spec)
            _without_textures(mujoco, spec)
            return Compiled(mujoco, spec.compile(), files)
        except (ValueError, RuntimeError, mujoco.FatalError, mujoco.UnexpectedError) as error:
            found = f"MuJoCo refuses it: {' '.join(str(error).split())}"
            raise ModelError(describe(found, where=path.name, fix=_fix(str(error)))) from None


def _fix(error: str) -> str:
    """Return the fix of an error of MuJoCo, where it is known."""
    if "XML Error: Error opening" in error:
        return "add the file that is included"
    if "opening file" in error or "opening resource" in error:
        return "add the file, or give the body an <inertial>: a mesh is read only where an inertia follows from it"
    return ""


@contextmanager
def _warnings_of(mujoco: Any, path: Path) -> Iterator[None]:
    """Give MuJoCo's warnings as ModelWarnings; otherwise it writes them to MUJOCO_LOG.TXT in the working folder.

    Those that end with a time are of its simulation, such as a mass matrix that it finds nearly singular, and flexible
    bodies are omitted: these do not matter here.
    """
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(said.append)
    try:
        with warnings.catch_warnings(record=True) as caught:  # the compiler repeats them as warnings of Python
            warnings.simplefilter("always")
            yield
    finally:
        mujoco.set_mju_user_warning(before)
    said += [str(each.message) for each in caught]
    for message in dict.fromkeys(each for each in said if "Time =" not in each and not each.startswith("flex ")):
        warn(describe(f"MuJoCo warns: {' '.join(message.split())}", where=path.name))


def _without_meshes(mujoco: Any, spec: Any) -> dict[str, str]:
    """Replace the meshes that decide no number, and return their files by name."""
    needed = {geom.meshname for geom in spec.geoms if geom.meshname and _needs_mesh(mujoco, spec, geom)}
    needed |= {mesh for skin in spec.skins for mesh in [getattr(skin, "meshname", "")] if mesh}
    files = {}
    for mesh in spec.meshes:
        name = mesh.name or _stem(mesh.file)
        if not mesh.file or name in needed or mesh.plugin.active:
            continue
        files[name] = _file(spec, mesh)
        scale = np.abs(np.where(np.asarray(mesh.scale) == 0, 1.0, mesh.scale))
        mesh.name, mesh.file, mesh.content_type = name, "", ""
        mesh.uservert, mesh.userface = (_CORNERS / scale).ravel().tolist(), _FACES.ravel().tolist()
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # a surface: also where the scale mirrors it
    return files


def _needs_mesh(mujoco: Any, spec: Any, geom: Any) -> bool:
    """Whether an inertia, or the size of a shape that is fitted to the mesh, follows from the mesh of a geom."""
    if int(geom.type) != _MESH:
        return True
    rules, body = getattr(geom, "compiler", None) or spec.compiler, geom.parent
    always = int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE) == int(rules.inertiafromgeom)
    never = int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE) == int(rules.inertiafromgeom)
    if never or (body.explicitinertial and not always) or body.name == "world":
        return False
    least, most = rules.inertiagrouprange
    light = geom.mass == 0 or (np.isnan(geom.mass) and geom.density == 0)
    return bool(least <= geom.group <= most and not light)


def _stem(file: str) -> str:
    """Return the name that MuJoCo gives to an asset without a name."""
    return PurePosixPath(file.replace("\\", "/")).stem


def _file(spec: Any, mesh: Any) -> str:
    """Return the file of a mesh as MuJoCo resolves it."""
    file, folder = mesh.file.replace("\\", "/"), getattr(getattr(mesh, "compiler", None), "meshdir", spec.meshdir)
    file = PurePosixPath(file).name if spec.strippath else file
    return os.path.normpath(PurePosixPath(spec.modelfiledir or "") / (folder or "") / file)


def _without_textures(mujoco: Any, spec: Any) -> None:
    """Replace textures by one pixel: a mechanism has the colours of materials alone."""
    taken = {texture.name for texture in spec.textures}
    for texture in spec.textures:
        # Only a skybox may have no name; a texture of a file has the name of the file.
        texture.name = texture.name or _stem(texture.file) or claim_name("texture", taken)
        texture.file, texture.content_type, texture.width, texture.height = "", "", 1, 1
        texture.cubefiles = [""] * len(texture.cubefiles)
        texture.type = mujoco.mjtTexture.mjTEXTURE_2D
        texture.builtin = mujoco.mjtBuiltin.mjBUILTIN_FLAT

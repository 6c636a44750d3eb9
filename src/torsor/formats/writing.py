"""Helpers of all writers: atomic file writing, mesh copies, and the warning about omitted properties."""

import hashlib
import math
import os
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, listing, warn
from torsor.base.files import replacing
from torsor.formats.meshes.mesh_files import (
    MAX_MESH_BYTES,
    SUFFIXES,
    is_inside,
    obj_content,
    own_folders,
    read_mesh,
    split_prim,
)
from torsor.formats.meshes.triangles import Triangles
from torsor.formats.search_path import SCHEMES, Finder
from torsor.formats.xml import xml_bytes
from torsor.mechanism import Joint, Link, Loop, Mechanism, Shape, Visual, Wheel
from torsor.spatial import from_rpy, to_rpy

# Meshes that cannot be read in their original location are copied next to the written description.

# Other programs do not read surfaces in USD stages or some file types, so these are copied as .obj files. Torsor does
# not read meshes outside the folder of a description (see ``own_folders``), so these are copied unchanged.

_MAX_NAME_KEPT = 40  # characters of a name that are kept in the names of copies and of their folder
_COPIED_SUFFIXES = (*SUFFIXES, ".msh")
_MATERIALS = re.compile(rb"^[ \t]*mtllib[ \t]+([^\r\n]+)", re.MULTILINE)
_TEXTURE = re.compile(rb"<init_from\b|^[ \t]*map_", re.MULTILINE)  # in .dae and .mtl files


def copies_folder(path: Path) -> Path:
    """Return the folder for the mesh copies of a description."""
    return path.resolve().with_name(f"{path.stem[:_MAX_NAME_KEPT]}_meshes")


class MeshCopies:
    """Mesh copies in ``NAME_meshes`` next to a description. Their names depend on the content and are thus unique."""

    def __init__(self, path: Path):
        self.folder = copies_folder(path)
        self.readable = [Path(folder).resolve() for folder in own_folders(path)]
        self.contents: dict[Path, bytes | Path] = {}  # of copies: bytes, or those of a file
        self.textured: list[str] = []
        self._near: dict[Path, Path | None] = {}

    def add(self, name: str, surface: Triangles) -> Path:
        """Return the path of the copy of a surface, which ``save`` will write. The file name contains ``name``."""
        content = obj_content(surface)
        copy = self.folder / f"{name[:_MAX_NAME_KEPT]}-{_digest(content)}.obj"
        self.contents[copy] = content
        return copy

    def reads(self, file: Path) -> bool:
        """Return whether a mesh file is in the folder of the description, or in its package."""
        return any(map(file.resolve().is_relative_to, self.readable))

    def near(self, file: Path, folders: tuple[str, ...] | None) -> Path | None:
        """Return the path of a mesh file, or of a copy of it, that is readable from the folder of the description.

        Folders allowed by the environment (TORSOR_MESHES) are not considered, because another machine may not have
        them. The file may be read from ``folders`` (None: from all). For other files, and for files that are not
        meshes, nothing is copied and the result is None. An .obj file is copied with its materials (.mtl) into a
        separate folder. Textures are not copied; ``textured`` contains the meshes with textures.
        """
        real = file.resolve()
        if self.reads(real):
            return file
        if real not in self._near:
            allowed = folders is None or is_inside(real, folders)
            self._near[real] = self._copied(real) if allowed and _can_be_copied(real) else None
        return self._near[real]

    def _copied(self, file: Path) -> Path:
        content, name = file.read_bytes(), file.stem[:_MAX_NAME_KEPT]
        materials = _materials(file, content) if file.suffix.lower() == ".obj" else []
        parts = [content, *(part for material in materials for part in (material.name.encode(), material.read_bytes()))]
        if any(map(_TEXTURE.search, parts)):
            self.textured.append(file.name)
        digest = _digest(*parts)
        if materials:
            folder = self.folder / f"{name}-{digest}"
            copy = folder / file.name
            self.contents |= {folder / material.name: material for material in materials}
        else:
            copy = self.folder / f"{name}-{digest}{file.suffix}"
        self.contents[copy] = file
        return copy

    def save(self) -> None:
        """Write the copies that do not exist yet."""
        parents = dict.fromkeys((self.folder, *(copy.parent for copy in self.contents))) if self.contents else {}
        taken = [parent for parent in parents if parent.is_symlink() or (parent.exists() and not parent.is_dir())]
        taken += [item for item in self.contents if item.is_symlink() or (item.exists() and not item.is_file())]
        if taken:
            message = "a file, folder or link has the name of the folder for mesh copies"
            raise ModelError(message, where=str(taken[0]), fix="move it, or save under another name")
        for copy, source in self.contents.items():
            content = source.read_bytes() if isinstance(source, Path) else source
            if not copy.is_file() or copy.read_bytes() != content:
                copy.parent.mkdir(parents=True, exist_ok=True)
                with replacing(copy) as part:
                    part.write_bytes(content)


def _digest(*contents: bytes) -> str:
    """Return a hash of several contents and of the boundaries between them."""
    return hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents)).hexdigest()[:16]


def _can_be_copied(file: Path) -> bool:
    """Return whether a file is a mesh of a type and size that viewers read."""
    try:
        return file.suffix.lower() in _COPIED_SUFFIXES and file.is_file() and file.stat().st_size <= MAX_MESH_BYTES
    except OSError:
        return False


def _materials(file: Path, content: bytes) -> list[Path]:
    """Return the material files next to an .obj file that it names, unless they are too large to be read."""
    result = []
    for name in dict.fromkeys(element.decode(errors="replace").strip() for element in _MATERIALS.findall(content)):
        try:
            item = (file.parent / name).resolve()
            beside = item.parent == file.parent and item.suffix.lower() == ".mtl" and item.is_file()
            result += [item] if beside and item.stat().st_size <= MAX_MESH_BYTES else []
        except (OSError, ValueError):  # no file can have such a name
            continue
    return result


def write_file(path: str | Path, suffixes: tuple[str, ...], content: Callable[[], bytes]) -> None:
    """Write a file atomically: if creating or writing the content fails, the old file is unchanged."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        message, fix = f"the suffix is {path.suffix!r}", f"name it {path.stem}{suffixes[0]}"
        raise ModelError(message, value=path.suffix, where=path.name, allowed=", ".join(suffixes), fix=fix)
    if not path.parent.is_dir():
        raise ModelError("its folder does not exist", where=str(path), fix="create the folder first")
    with replacing(path) as part:
        part.write_bytes(content())


def relative_file(path: Path, file: str) -> str:
    """Return the name of a mesh file relative to the folder of ``path``, so that both files can be moved together."""
    try:
        real = Path(file).parent.resolve() / Path(file).name  # a mesh that is a link remains one
        return Path(os.path.relpath(real, path.resolve().parent)).as_posix()
    except ValueError:  # on another drive
        return str(Path(file).resolve())


class MeshNames:
    """Names of mesh files in a description that is written to ``path``.

    A ``package://`` or ``model://`` name is kept if it refers to the same file from there, or if it is not found.
    Otherwise, the name is relative to the description. If a mesh cannot be read from there, ``file`` returns the name
    of a copy, which must be saved (``copies``). ``name`` returns the current location of the mesh.
    """

    def __init__(self, path: Path, omissions: "Omissions"):
        self.path, self.finder, self.omissions, self.copies = path, Finder(path), omissions, MeshCopies(path)

    def finished(self, root: ET.Element, format: str) -> bytes:
        """Return the content of an XML description, after writing the mesh copies and warning about omissions."""
        self.omissions.report(self.path.name, format)
        content = xml_bytes(root, self.path.name)
        self.copies.save()
        return content

    def name(self, mesh: Visual | Shape) -> str:
        """Return the name of the mesh of a visual or a shape."""
        name = mesh.mesh or ""
        if not mesh.path:
            return name
        if name.startswith(SCHEMES):
            result = self.finder.find(name)
            if result is not None and result.resolve() == Path(mesh.path).resolve():
                return name
        return relative_file(self.path, mesh.path)

    def file(self, mesh: Visual | Shape) -> str:
        """Return the name of a mesh file, or of a copy if it cannot be read from the folder of the description."""
        if mesh.path and split_prim(Path(mesh.path))[1]:
            try:
                copy = self.copies.add(Path(mesh.path).stem, read_mesh(mesh.path, mesh.folders))
                return relative_file(self.path, str(copy))
            except (ModelError, ImportError) as error:
                self.omissions.note("surfaces in USD stages that cannot be read, and are only named", str(error))
                return self.name(mesh)
        name = self.name(mesh)
        if not mesh.path or name.startswith(SCHEMES):
            return name
        return relative_file(self.path, str(self.reachable(mesh)))

    def reachable(self, mesh: Visual | Shape) -> Path:
        """Return the path of a mesh file, or of its copy if the file is outside the folder of the description."""
        file = Path(mesh.path or "")
        near = self.copies.near(file, mesh.folders)
        if near is None:
            why = "because the robot may not read them (TORSOR_MESHES allows a folder) or they are not meshes"
            self.omissions.note(f"meshes that are not copied, {why}", mesh.mesh or "")
        elif file.name in self.copies.textured:
            self.omissions.note("textures of meshes outside its folder, which are copied without them", file.name)
        return near or file


def left_out_error(left_out: Mapping[str, Sequence[str]], source: str, strict: bool) -> ModelError:
    """Return the error, or the warning if not ``strict``, about parts of a file that a mechanism cannot represent."""
    lines = (f"{what} ({listing(names, most=4)})" if names else what for what, names in left_out.items())
    omitted = "mechanisms do not support" if strict else "omitted, because mechanisms do not support it:"
    return ModelError(f"{omitted} {'; '.join(lines)}", where=source)


FRICTION_MODELS = "friction beyond Coulomb and viscous friction, which only TOML supports"


class Omissions:
    """Properties that a format cannot express, with the names of the parts. One warning reports all of them."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = defaultdict(list)

    def note(self, what: str, name: str, condition: Any = True) -> None:
        """If the condition is true, record that a property of a part is not written."""
        if condition and name not in self.found[what]:
            self.found[what].append(name)

    def passive(self, joint: Joint, with_motor: bool = True) -> tuple[float, float, dict[str, float]]:
        """Return the viscous and Coulomb friction of a joint and the stiffness and rest position of its spring.

        The damping of the spring is part of the viscous friction. ``with_motor`` adds the friction of the motor.
        Properties that these numbers cannot express are recorded.
        """
        viscous, coulomb = (self.common(joint, key) for key in ("viscous", "coulomb"))
        smooth, motor, spring = joint.smooth if coulomb else 0.0, joint.motor, joint.spring
        if motor is not None and with_motor:
            viscous, coulomb = viscous + motor.viscous, coulomb + motor.coulomb
            smooth = max(smooth, motor.smooth if motor.coulomb else 0.0)
        self.note("smooth Coulomb friction, written as sign(v)", joint.name, smooth)
        self.note(FRICTION_MODELS, joint.name, joint.friction_model)
        if spring is None:
            return viscous, coulomb, {}
        law = isinstance(spring.stiffness, str)
        self.note("nonlinear stiffness", joint.name, law)
        linear = {} if law else {"stiffness": float(spring.stiffness), "rest": spring.rest}
        return viscous + spring.damping, coulomb, linear

    def common(self, joint: Joint, key: str) -> float:
        """Return the number shared by all velocities of a joint. If they differ, record this and return inf or 0."""
        values = np.ravel(getattr(joint, key))
        if (values == values[0]).all():
            return float(values[0])
        self.note(f"{key} that differs between the velocities of a joint", joint.name)
        return math.inf if key.endswith("limit") else 0.0

    def without_toml_only(self, mechanism: Mechanism) -> Mechanism:
        """Return a mechanism without its wheels and height fields, and record them: only TOML supports them."""
        wheels = [loop for loop in mechanism.loops if isinstance(loop, Wheel)]
        for wheel in wheels:
            self.note("wheels that roll without slipping", wheel.name)
        base, *links = map(self._without_fields, (mechanism.base, *mechanism.links))
        loops = tuple(loop for loop in mechanism.loops if loop not in wheels)
        return replace(mechanism, base=base, links=tuple(links), loops=loops)

    def _without_fields(self, link: Link) -> Link:
        fields = [shape for shape in link.shapes if shape.shape == "height field"]
        for shape in fields:
            self.note("height fields", shape.name or link.name)
        kept = tuple(shape for shape in link.shapes if shape.shape != "height field")
        return replace(link, shapes=kept) if fields else link

    def report(self, source: str, format: str) -> None:
        """Warn about the properties that are not written, if there are any."""
        lines = [f"{what} ({listing(names, most=4)})" for what, names in self.found.items()]
        if lines:
            warn(f"{format} cannot express {'; '.join(lines)}", where=source)


def refuse_elastic(mechanism: Mechanism, source: str, format: str, fix: str) -> None:
    """Raise ModelError for an elastic joint, which only TOML and URDF support. ``fix`` may contain ``{joint!r}``."""
    for joint in mechanism.elastic:
        message = f"joint {joint.name!r} is elastic: its motor has its own coordinate, which {format} cannot express"
        raise ModelError(message, value=joint.name, where=source, fix=fix.format(joint=joint.name))


def refused_loop(loop: Loop, kinds: Iterable[str], source: str, format: str) -> ModelError:
    """Return the error for a loop of a kind that a format does not support."""
    message, allowed = f"{loop.name!r} is {loop.kind}", f"{', '.join(kinds)} in {format}"
    return ModelError(message, argument="loop", value=loop.name, where=source, allowed=allowed, fix="save as .toml")


def moments_of(link: Link) -> dict[str, float]:
    """Return the six numbers of the inertia of a link, by their names in URDF and SDF."""
    inertia = (link.inertia + link.inertia.T) / 2
    return {f"i{'xyz'[i]}{'xyz'[j]}": float(inertia[i, j]) for i in range(3) for j in range(i, 3)}


def short_rpy(R: Array) -> Array:
    """Return roll, pitch and yaw that reproduce R to about the last digit, with few decimals if possible."""
    exact = to_rpy(R)
    short = np.array([round(float(angle), 14) for angle in exact])
    rpy = np.where(np.abs(short - exact) <= 2e-16, short, exact)  # 0.3, not 0.30000000000000004
    if np.abs(from_rpy(rpy) - R).max() <= 4e-16:
        return rpy
    # Near a pitch of a quarter turn, only the sum of roll and yaw is well defined: compute roll for the given yaw.
    yaw = math.atan2(R[1, 0], R[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    pitch = math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    return np.array([math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1]), pitch, yaw])

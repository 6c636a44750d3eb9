"""Copies of meshes that cannot be read where they are, beside a description that is written.

Other programs do not read surfaces in stages of USD, and some kinds of files: their copies are .obj files. Torsor reads
no meshes outside of the folder of a description (see ``meshes.mesh_folders``): their copies are the same files.
"""

import hashlib
import re
from pathlib import Path

from torsor.base.errors import ModelError, describe
from torsor.base.files import replacing
from torsor.formats.meshes.mesh_colors import MAX_MESH_BYTES as LARGEST_MATERIALS
from torsor.formats.meshes.mesh_files import MAX_MESH_BYTES, SUFFIXES
from torsor.formats.meshes.mesh_folders import is_inside, own_folders
from torsor.formats.meshes.obj_files import obj_content
from torsor.formats.meshes.triangles import Triangles

_LONGEST = 40  # characters of a name that the names of copies and of their folder keep
_COPIED = (*SUFFIXES, ".msh")
_MATERIALS = re.compile(rb"^[ \t]*mtllib[ \t]+([^\r\n]+)", re.MULTILINE)
_TEXTURE = re.compile(rb"<init_from\b|^[ \t]*map_", re.MULTILINE)  # in .dae and .mtl files


def copies_folder(path: Path) -> Path:
    """Return the folder of the copies of a description.

    Example:
        >>> copies_folder(Path("arm.urdf")).name
        'arm_meshes'
    """
    return path.resolve().with_name(f"{path.stem[:_LONGEST]}_meshes")


class MeshCopies:
    """The copies of one description: in the folder ``NAME_meshes`` beside it, named by their content.

    Hence a copy never replaces another mesh, whatever robots are saved to the same folder, and whatever they name it.
    """

    def __init__(self, path: Path):
        self.folder, self.readable = copies_folder(path), [Path(each).resolve() for each in own_folders(path)]
        self.contents: dict[Path, bytes | Path] = {}  # of copies: bytes, or those of a file
        self.textured: list[str] = []
        self._near: dict[Path, Path | None] = {}

    def add(self, name: str, surface: Triangles) -> Path:
        """Return the path of the copy of a surface, which ``save`` will write; ``name`` becomes a part of its name."""
        content = obj_content(surface)
        copy = self.folder / f"{name[:_LONGEST]}-{_digest(content)}.obj"
        self.contents[copy] = content
        return copy

    def reads(self, file: Path) -> bool:
        """Return whether a mesh file is in the folder of the description, or in its package."""
        return any(map(file.resolve().is_relative_to, self.readable))

    def near(self, file: Path, folders: tuple[str, ...] | None) -> Path | None:
        """Return the path of a mesh file that is read from the folder of the description: its own, or that of a copy.

        Folders that the environment allows here (TORSOR_MESHES) do not count: another machine may not have them.
        ``folders`` are those that the file may be read from, None for all. Of other files, and of those that are no
        meshes, there are no copies: None. An .obj file is copied with its materials (.mtl), into a folder of its own.
        Textures are not copied; ``textured`` are the meshes that have some.
        """
        real = file.resolve()
        if self.reads(real):
            return file
        if real not in self._near:
            allowed = folders is None or is_inside(real, folders)
            self._near[real] = self._copied(real) if allowed and _can_be_copied(real) else None
        return self._near[real]

    def _copied(self, file: Path) -> Path:
        content, name = file.read_bytes(), file.stem[:_LONGEST]
        materials = _materials(file, content) if file.suffix.lower() == ".obj" else []
        parts = [content, *(part for each in materials for part in (each.name.encode(), each.read_bytes()))]
        if any(map(_TEXTURE.search, parts)):
            self.textured.append(file.name)
        digest = _digest(*parts)
        if materials:
            folder = self.folder / f"{name}-{digest}"
            copy = folder / file.name
            self.contents |= {folder / each.name: each for each in materials}
        else:
            copy = self.folder / f"{name}-{digest}{file.suffix}"
        self.contents[copy] = file
        return copy

    def save(self) -> None:
        """Write the copies that are not there yet."""
        parents = dict.fromkeys((self.folder, *(copy.parent for copy in self.contents))) if self.contents else {}
        taken = [each for each in parents if each.is_symlink() or (each.exists() and not each.is_dir())]
        taken += [each for each in self.contents if each.is_symlink() or (each.exists() and not each.is_file())]
        if taken:
            found, fix = "a file, a folder or a link, where copies of meshes go", "move it, or save under another name"
            raise ModelError(describe(found, where=str(taken[0]), fix=fix))
        for copy, source in self.contents.items():
            content = source.read_bytes() if isinstance(source, Path) else source
            if not copy.is_file() or copy.read_bytes() != content:
                copy.parent.mkdir(parents=True, exist_ok=True)
                with replacing(copy) as part:
                    part.write_bytes(content)


def _digest(*contents: bytes) -> str:
    """Return a hash of some contents, and of where each of them ends."""
    return hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in contents)).hexdigest()[:16]


def _can_be_copied(file: Path) -> bool:
    """Return whether a file is a mesh of a kind and a size that viewers read, no device and no other file."""
    try:
        return file.suffix.lower() in _COPIED and file.is_file() and file.stat().st_size <= MAX_MESH_BYTES
    except OSError:
        return False


def _materials(file: Path, content: bytes) -> list[Path]:
    """Return the files of materials beside an .obj file that it names, if they are not too large to be read."""
    found = []
    for name in dict.fromkeys(each.decode(errors="replace").strip() for each in _MATERIALS.findall(content)):
        try:
            each = (file.parent / name).resolve()
            beside = each.parent == file.parent and each.suffix.lower() == ".mtl" and each.is_file()
            found += [each] if beside and each.stat().st_size <= LARGEST_MATERIALS else []
        except (OSError, ValueError):  # no file can have such a name
            continue
    return found

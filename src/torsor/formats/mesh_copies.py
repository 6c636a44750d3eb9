"""Copies (.obj) of surfaces that other programs cannot read where they are, beside a description that is written."""

import hashlib
from pathlib import Path

from torsor.errors import ModelError, describe
from torsor.files import replacing
from torsor.meshes.obj_files import obj_content
from torsor.meshes.triangles import Triangles

_LONGEST = 40  # characters of a name that the names of copies and of their folder keep


class MeshCopies:
    """The copies of one description: in the folder ``NAME_meshes`` beside it, named by their content.

    Hence a copy never replaces another mesh, whatever robots are saved to the same folder, and whatever they name it.
    """

    def __init__(self, path: Path):
        self.folder = path.resolve().with_name(f"{path.stem[:_LONGEST]}_meshes")
        self.contents: dict[Path, bytes] = {}

    def add(self, name: str, surface: Triangles) -> Path:
        """Return the path of the copy of a surface, which ``save`` will write; ``name`` becomes a part of its name."""
        content = obj_content(surface)
        copy = self.folder / f"{name[:_LONGEST]}-{hashlib.sha256(content).hexdigest()[:8]}.obj"
        self.contents[copy] = content
        return copy

    def save(self) -> None:
        """Write the copies that are not there yet."""
        if self.contents and not self.folder.is_dir():
            if self.folder.exists():
                fix = "move it, or save the robot under another name"
                raise ModelError(describe("a file, where meshes need a folder", where=str(self.folder), fix=fix))
            self.folder.mkdir()
        for copy, content in self.contents.items():
            if not copy.is_file() or copy.read_bytes() != content:
                with replacing(copy) as part:
                    part.write_bytes(content)

"""Colours in mesh files: of materials, and of vertices and faces. No texture is read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.formats.meshes.triangles import Triangles

Color = tuple[float, float, float, float]
MAX_MATERIAL_BYTES = 2**20  # bytes of a file of materials
LEVELS = (32, 8, 4, 2)  # shades of each of red, green and blue, until there are few enough colours
FEW = 24  # colours of a surface: each is drawn by itself


class Materials:
    """The files that a mesh in a folder may name: its own materials (.mtl), without their textures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def __getitem__(self, name: str) -> bytes:
        """Return names and colours of a file of materials; any other file raises FileNotFoundError."""
        path = (self.folder / name.strip()).resolve()
        if path.suffix.lower() != ".mtl" or path.parent != self.folder or not path.is_file():
            raise FileNotFoundError(name)
        with path.open("rb") as file:
            return plain_materials(file.read(MAX_MATERIAL_BYTES).decode(errors="replace")).encode()

    get = __getitem__


def plain_materials(text: str) -> str:
    r"""Return the names and diffuse colours of materials (the text of an .mtl file), with opacities as fourth numbers.

    Example:
        >>> plain_materials("newmtl glass\nKd 0 0 1\nmap_Kd wood.png\nd 0.5").splitlines()
        ['newmtl glass', 'Kd 0 0 1 0.5']
    """
    found = dict[str, dict[str, list[str]]]()
    own = dict[str, list[str]]()
    for line in text.splitlines():
        key, *rest = line.split() or [""]
        if key == "newmtl":
            own = found.setdefault(" ".join(rest), {})
        elif key in ("Kd", "d"):
            own[key] = rest
    return "\n".join(
        f"newmtl {name}\nKd {' '.join(own['Kd'][:3] + own.get('d', ['1'])[:1])}"
        for name, own in found.items()
        if "Kd" in own
    )


def without_textures(data: bytes) -> bytes:
    """Return a .glb file whose materials have colours only: no image in it is looked at."""
    length = int.from_bytes(data[12:16], "little")
    header = json.loads(data[20 : 20 + length])
    for name in ("images", "textures", "samplers"):
        header.pop(name, None)
    header["materials"] = [
        {
            "pbrMetallicRoughness": {
                "baseColorFactor": each.get("pbrMetallicRoughness", {}).get("baseColorFactor", [1, 1, 1, 1])
            }
        }
        for each in header.get("materials", [])
    ]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    chunks = len(text).to_bytes(4, "little") + data[16:20] + text + data[20 + length :]
    return data[:8] + (12 + len(chunks)).to_bytes(4, "little") + chunks


def painted(mesh: Any, vertices: Array, faces: NDArray[np.int64]) -> list[tuple[Triangles, Color | None]]:
    """Return the surface of a mesh of trimesh in parts of one colour each; None where it has none."""
    colors = _face_colors(mesh, len(faces))
    if colors is None:
        return [(Triangles(vertices, faces), _material_color(mesh))]
    return by_color(Triangles(vertices, faces), colors)


def by_color(surface: Triangles, colors: Array) -> list[tuple[Triangles, Color | None]]:
    """Return a surface, whose faces have ``colors`` (m, 4), in parts of one colour each."""
    shades, own = _few(colors)
    found = list[tuple[Triangles, Color | None]]()
    for number, shade in enumerate(shades):
        used, indices = np.unique(surface.faces[own == number], return_inverse=True)
        red, green, blue, opacity = shade.tolist()
        found.append((Triangles(surface.vertices[used], indices.reshape(-1, 3)), (red, green, blue, opacity)))
    return found


def _face_colors(mesh: Any, count: int) -> Array | None:
    """Return the colours (m, 4) of faces, 0 to 1, if vertices or faces have some."""
    kind = getattr(mesh.visual, "kind", None)
    if kind not in ("vertex", "face"):
        return None
    colors = np.asarray(mesh.visual.face_colors, dtype=float) / 255
    return colors if colors.shape == (count, 4) else None


def _material_color(mesh: Any) -> Color | None:
    """Return the colour of the material, if the file says one."""
    material = getattr(mesh.visual, "material", None)
    if material is None or getattr(material, "name", None) == "default":
        return None
    given = getattr(material, "baseColorFactor", None)
    given = getattr(material, "diffuse", None) if given is None else given
    if given is None or np.size(given) not in (3, 4):
        return None
    red, green, blue, opacity = (*(np.asarray(given, dtype=float).ravel() / 255).tolist(), 1.0)[:4]
    return red, green, blue, opacity if opacity > 0 else 1.0


def _few(colors: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return at most some colours (k, 4) and which of them each of many (m, 4) has; alike ones become their mean.

    Example:
        >>> shades, own = _few(np.array([[1.0, 0, 0, 1], [0, 0, 1, 1], [1.0, 0, 0, 1]]))
        >>> shades.tolist(), own.tolist()
        ([[0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]], [1, 0, 1])
    """
    for levels in LEVELS:
        _, own = np.unique(np.minimum((colors * levels).astype(int), levels - 1), axis=0, return_inverse=True)
        own = own.reshape(-1)
        if own.max() < FEW:
            break
    sizes = np.bincount(own)
    return np.stack([np.bincount(own, column) for column in colors.T], axis=-1) / sizes[:, None], own

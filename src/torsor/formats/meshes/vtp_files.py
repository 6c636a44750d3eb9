"""Files of VTK with polygons (.vtp), which OpenSim's bones are: points and faces as ASCII numbers in XML."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from torsor.formats.meshes.triangles import Triangles, fans, joined


def read_vtp(path: Path) -> Triangles:
    """Return the polygons of a .vtp file as triangles, in the units of the file (m in OpenSim).

    A polygon of more corners is cut from its first one. Strips, lines and arrays that are not ASCII raise ValueError,
    as does what is no such file.

    Example:
        >>> import tempfile
        >>> text = '''<VTKFile type="PolyData"><PolyData><Piece><Points>
        ... <DataArray format="ascii">0 0 0 1 0 0 1 1 0 0 1 0</DataArray></Points><Polys>
        ... <DataArray Name="connectivity" format="ascii">0 1 2 3</DataArray>
        ... <DataArray Name="offsets" format="ascii">4</DataArray></Polys></Piece></PolyData></VTKFile>'''
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "square.vtp").write_text(text)
        ...     read_vtp(Path(folder, "square.vtp")).faces.tolist()
        [[0, 1, 2], [0, 2, 3]]
    """
    root = ET.fromstring(path.read_bytes())
    pieces = root.findall("PolyData/Piece")
    if root.tag != "VTKFile" or not pieces:
        raise ValueError("no polygons of VTK (PolyData)")
    return joined([_piece(piece) for piece in pieces])


def _piece(piece: ET.Element) -> Triangles:
    if _numbers(piece, "Strips", "connectivity").size:
        raise ValueError("strips of triangles; save it with polygons")
    points = _numbers(piece, "Points").reshape(-1, 3)
    corners, ends = (_numbers(piece, "Polys", name).astype(np.int64) for name in ("connectivity", "offsets"))
    return Triangles(points, fans(corners, np.diff(ends, prepend=0), len(points)))


def _numbers(piece: ET.Element, group: str, name: str | None = None) -> NDArray[np.float64]:
    """Return the numbers of an array of a group, of the first one without a name; none if it is not there."""
    arrays = piece.findall(f"{group}/DataArray")
    found = next((each for each in arrays if name in (None, each.get("Name"))), None)
    if found is None:
        return np.zeros(0)
    if found.get("format") != "ascii":
        raise ValueError(f"{group} as {found.get('format')}; save it as ASCII")
    return np.array((found.text or "").split(), dtype=float)

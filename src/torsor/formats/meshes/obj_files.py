"""Surfaces as .obj files: text that MuJoCo, ROS and mesh editors read."""

from torsor.formats.meshes.triangles import Triangles

_LEAST = 4  # vertices: MuJoCo refuses fewer


def obj_content(surface: Triangles) -> bytes:
    r"""Return the bytes of an .obj file: vertices with nine digits, which give every number of single precision again.

    A surface of one triangle gets a fourth vertex, its first once more.

    Example:
        >>> import numpy as np
        >>> obj_content(Triangles(np.vstack([np.zeros(3), 0.1 * np.eye(3)[:2]]), np.array([[0, 1, 2]]))).splitlines()
        [b'v 0 0 0', b'v 0.1 0 0', b'v 0 0.1 0', b'v 0 0 0', b'f 1 2 3']
    """
    corners = surface.vertices.tolist()
    corners += corners[:1] * (_LEAST - len(corners))
    vertices = "".join(f"v {x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in corners)
    faces = "".join(f"f {a} {b} {c}\n" for a, b, c in (surface.faces + 1).tolist())
    return (vertices + faces).encode("ascii")

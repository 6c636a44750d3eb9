"""How many corners the circles of solids have: the fewer, the more solids a robot has."""

from functools import lru_cache

from torsor.base.scenes import Solid
from torsor.formats.meshes.triangles import Triangles, cylinder, joined, sphere
from torsor.view.scene.scene import Scene, Shown
from torsor.view.scene.solids import UNITS

LEVELS = ((24, 16), (16, 12), (16, 10), (12, 8), (10, 6))  # corners of circles, of bodies and of rods and joints


@lru_cache
def unit(shape: str, around: int) -> Triangles:
    """Return a solid of size 1, as ``torsor.view.scene.solids.UNITS``, whose circles have ``around`` corners."""
    if shape == "box":
        return UNITS[shape]
    return sphere(1.0, around) if shape == "ball" else cylinder(1.0, 1.0, around)


def level(scene: Scene, most: int) -> tuple[int, int]:
    """Return the corners of circles of bodies, and of rods and joints, with which solids have ``most`` triangles.

    Example:
        >>> level(Scene.of(torsor.library.two_link()), 4000), level(Scene.of(torsor.library.human()), 4000)
        ((24, 16), (10, 6))
    """
    for each in LEVELS:
        counts = (
            len(unit(solid.shape, each[shown.kind == "bone"]).faces) for shown in scene.shown for solid in shown.solids
        )
        if sum(counts) <= most:
            return each
    return LEVELS[-1]


def drawn(solid: Solid, around: int) -> Triangles:
    """Return the surface of a solid whose circles have ``around`` corners.

    Example:
        >>> from torsor.view.scene.solids import ball
        >>> len(drawn(ball(0.1, np.eye(4)), 8).faces)
        48
    """
    return unit(solid.shape, around).scaled(solid.size).at(solid.pose)


def detailed(shown: Shown, corners: tuple[int, int]) -> Triangles:
    """Return a surface of a scene, its solids with the ``corners`` of circles that ``level`` gives."""
    if not shown.solids:
        return shown.surface
    return joined([drawn(each, corners[shown.kind == "bone"]) for each in shown.solids])

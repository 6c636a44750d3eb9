"""Distances between the collision shapes of a robot: the accessor ``robot.shapes``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from torsor.base.checks import flag
from torsor.mechanism import Mechanism
from torsor.robot.method_names import Accessor

if TYPE_CHECKING:
    from torsor.geometry.allowed import AllowedCollisions
    from torsor.geometry.distances import Distances
    from torsor.geometry.pairs import Pairs


@dataclass(frozen=True, eq=False, repr=False)
class Shapes(Accessor):
    """Distances between collision shapes, and the link pairs that are allowed to touch: ``robot.shapes``.

    ``robot.with_shapes`` and ``robot.with_allowed_collisions`` return a robot with other shapes or pairs.
    """

    _robot: Mechanism

    def distances(
        self, q: ArrayLike, pairs: Pairs = None, gradient: bool = False, within: float | None = None
    ) -> Distances:
        """Return signed distances (..., P) between collision shapes at q (..., nq), with normals and nearest points.

        ``pairs`` are pairs of link, frame or shape names, or an allowed collision matrix. The default is all pairs
        except those in ``allowed``. ``gradient=True`` adds the derivatives with respect to the coordinates (..., P,
        nv), which are exact where the nearest points are unique. ``within`` (m) skips pairs whose bounding spheres are
        farther apart; their result is the distance between the spheres, which is a lower bound.

        These pairs are computed by compiled functions: spheres and capsules with each other, planes with everything
        except meshes, and spheres with boxes and cylinders. The library coal (the extra ``collision``) computes all
        others. See docs/compute/shapes.md.

        Example:
            >>> ball = torsor.Shape("sphere", (0.1,))
            >>> arm = torsor.library.planar_chain(3).with_shapes("base", [ball]).with_shapes("link3", [ball])
            >>> found = arm.shapes.distances([0.0, 0.3, 0.0], [("base", "link3")], gradient=True)
            >>> found.distance.round(6).tolist(), (found.gradient.round(6) + 0.0).tolist()
            ([1.777542], [[0.0, -0.149438, 0.0]])
        """
        from torsor.geometry.pairs import distance_model

        gradient = flag(gradient, f"{self._robot.name}: distances", "gradient")
        return distance_model(self._robot, pairs, within)(q, gradient)

    def allowed(self, samples: int = 1000, seed: int = 0) -> AllowedCollisions:
        """Return the link pairs that ``distances`` skips by default, with the reason for each.

        They are the pairs from the file (<exclude> in MJCF) or ``with_allowed_collisions``, links connected by a joint,
        and links that always or never overlap in random postures within the limits. ``samples`` is the number of
        postures; 0 disables sampling. Edit the matrix with ``allow`` and ``check``, save it as .srdf, or pass it as
        ``pairs``.

        Example:
            >>> ball = torsor.Shape("sphere", (0.1,))
            >>> arm = torsor.library.planar_chain(3).with_shapes("link1", [ball]).with_shapes("link2", [ball])
            >>> print(arm.shapes.allowed(samples=0))
            planar_chain: 1 pairs of 2 parts may touch
            link1 - link2: adjacent
        """
        from torsor.geometry.allowed import default_matrix

        return default_matrix(self._robot, samples, seed)

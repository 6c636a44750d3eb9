"""Where the markers on a body are in a motion, as a recording would have them."""

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.checks import frozen_array, instance_of
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.measured.skeleton import Skeleton
from torsor.human.recordings import Markers
from torsor.human.recordings.axes import HUMAN, OPENSIM
from torsor.robot.robot import Robot

WHERE_PATHS = "marker paths"


def marker_paths(
    body: Robot | Skeleton, markers: MarkerSet, times: ArrayLike, q: ArrayLike, axes: str | None = None
) -> Markers:
    """Return the recording (K, M, 3) of the markers on a body in a motion q (K, n) at times (K,) in s.

    ``axes`` are those of the motion: "left up forward", those of ``library.human``, for a Robot, and OpenSim's for a
    skeleton. It serves to check what becomes of a motion that is known, and to write a predicted motion as .trc.

    Example:
        >>> body = torsor.library.human()
        >>> heel = MarkerSet({"R.Heel": ("right_foot", (0.0, -0.05, -0.06))})
        >>> marker_paths(body, heel, [0.0], np.zeros((1, 55))).positions.round(3).tolist()
        [[[-0.085, 0.03, -0.06]]]
    """
    instance_of(markers, MarkerSet, WHERE_PATHS, "markers", allowed="a MarkerSet")
    when = frozen_array(times, (np.size(times),), WHERE_PATHS, "times")
    at = frozen_array(q, (len(when), len(body.coordinate_names)), WHERE_PATHS, "q")
    tree, x = (body.tree, body.states(at, 0 * at, 0 * at)[0]) if isinstance(body, Skeleton) else (body, at)
    own = tree.poses(x)[:, list(markers.links(tree))]
    places = np.einsum("kmij,mj->kmi", own[..., :3, :3], markers.local) + own[..., :3, 3]
    given = axes if axes is not None else OPENSIM if isinstance(body, Skeleton) else HUMAN
    return Markers(markers.names, when, places, axes=given, source=tree.name)

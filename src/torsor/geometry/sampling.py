"""Which parts of a robot may touch by default: those that a joint connects, and those that always or never overlap."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import whole_number
from torsor.geometry.allowed import AllowedCollisions, Pair, matrix_of
from torsor.geometry.distances import DistanceModel
from torsor.geometry.placed import Placed, placed_shapes
from torsor.mechanism import Mechanism
from torsor.mechanism.mechanism import lineage

CHUNK = 50  # postures between which pairs that are decided leave the search
WIDE = {True: np.pi, False: 1.0}  # rad or m: how far coordinates without limits are sampled


def default_matrix(robot: Mechanism, samples: int = 1000, seed: int = 0) -> AllowedCollisions:
    """Return the allowed collision matrix of a robot; see ``Robot.allowed_collision_matrix``."""
    count, shapes = whole_number(samples, robot.name, "samples", least=0), placed_shapes(robot)
    start = whole_number(seed, robot.name, "seed", least=0)
    given = list(robot.allowed_collisions) + [(*pair, "adjacent") for pair in _adjacent(robot, shapes)]
    matrix = matrix_of(robot.name, (each.part for each in shapes), reversed(given))  # the file's own reasons stay
    found = _sampled(robot, shapes, shape_pairs(shapes, matrix), count, np.random.default_rng(start)) if count else []
    return matrix_of(robot.name, matrix.parts, [*((*pair, why) for pair, why in matrix.reasons.items()), *found])


def shape_pairs(shapes: Sequence[Placed], matrix: AllowedCollisions) -> list[tuple[int, int]]:
    """Return the pairs of shapes (indices) that are checked: on two links, not allowed to touch, masks that meet."""
    return [
        (i, j)
        for i, a in enumerate(shapes)
        for j, b in enumerate(shapes[i + 1 :], start=i + 1)
        if a.link != b.link
        and not a.shape.shape == b.shape.shape == "plane"
        and a.shape.may_touch(b.shape)
        and (a.part == b.part or matrix.reason(a.part, b.part) is None)
    ]


def _adjacent(robot: Mechanism, shapes: Sequence[Placed]) -> Iterable[Pair]:
    """Yield the parts of links that a joint connects; free joints, and planes of the base, do not count.

    Links without shapes and mass between two joints are part of one joint of several axes.
    """
    solid = {each.link for each in shapes} | {k for k, link in enumerate(robot.links) if link.mass > 0} | {-1}
    by_link = defaultdict[int, list[Placed]](list)
    for each in shapes:
        by_link[each.link].append(each)
    for index, joint in enumerate(robot.joints):
        free, parent = joint.type == "free", robot.parents[index]
        while parent not in solid:
            free, parent = free or robot.joints[parent].type == "free", robot.parents[parent]
        for a in by_link[index] if not free else ():
            yield from ((a.part, b.part) for b in by_link[parent] if b.shape.shape != "plane" and a.part != b.part)


def _sampled(
    robot: Mechanism,
    shapes: Sequence[Placed],
    pairs: Sequence[tuple[int, int]],
    samples: int,
    rng: np.random.Generator,
) -> list[tuple[str, str, str]]:
    """Return the parts that never or always overlap in random postures within the limits."""
    pairs = [pair for pair in pairs if not _unbounded(robot, *(shapes[index].link for index in pair))]
    if not pairs:
        return []
    model = DistanceModel(robot, shapes, pairs, within=0.0)
    names = [(shapes[a].part, shapes[b].part) for a, b in pairs]
    group = {name: k for k, name in enumerate(dict.fromkeys(names))}
    of_pair = np.array([group[name] for name in names])
    touched, apart = np.zeros((2, len(group)), dtype=bool)
    for start in range(0, samples, CHUNK):
        among = ~(touched & apart)[of_pair]
        if not among.any():
            break
        overlap = model(random_postures(robot, min(CHUNK, samples - start), rng), among=among).distance < 0
        together = np.zeros((len(overlap), len(group)), dtype=bool)
        for column, k in enumerate(of_pair.tolist()):
            together[:, k] |= overlap[:, column]
        touched |= together.any(axis=0)
        apart |= (~together).any(axis=0)
    return [(*name, "always" if touched[k] else "never") for name, k in group.items() if not (touched[k] and apart[k])]


def _unbounded(robot: Mechanism, a: int, b: int) -> bool:
    """Return whether two links can be moved as far apart as one likes: samples would say nothing of them."""
    between = set(lineage(robot, a)) ^ set(lineage(robot, b))
    for joint in (robot.joints[index] for index in between):
        limits = np.concatenate([np.atleast_1d(joint.lower), np.atleast_1d(joint.upper)])
        if joint.type in ("free", "planar") or (joint.type == "prismatic" and not np.isfinite(limits).all()):
            return True
    return False


def random_postures(robot: Mechanism, count: int, rng: np.random.Generator) -> Array:
    """Return postures (count, nq): uniform within the limits, rotations uniform, elsewhere half a turn or 1 m wide.

    Example:
        >>> q = random_postures(torsor.library.ur5(), 100, np.random.default_rng(0))
        >>> q.shape, bool(np.abs(q).max() <= 2 * np.pi)
        ((100, 6), True)
    """
    q = np.empty((count, robot.nq))
    wide = np.full(robot.nq, 1.0)
    for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
        if joint.nq == joint.nv:
            wide[slices.q] = [WIDE[bool(turns)] for turns in joint.kind.turns]
    low = np.where(np.isfinite(robot.lower), robot.lower, -wide)
    high = np.where(np.isfinite(robot.upper), robot.upper, np.maximum(wide, low))
    q[:] = rng.uniform(np.minimum(low, high), high, size=q.shape)
    for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
        if joint.nq > joint.nv:  # the last four are a quaternion
            given = rng.normal(size=(count, 4))
            q[:, slices.q.stop - 4 : slices.q.stop] = given / np.linalg.norm(given, axis=1, keepdims=True)
    return q

"""Mobility of mechanisms with loops: degrees of freedom, redundant equations, and control by the drives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.dynamics.loops.constrained import ClosureChoice

# Rank tolerance: singular values below this fraction of the largest are zero. In real mechanisms they are 1e-4 or more.
# Assembly leaves closure errors of 1e-12; where assembly modes meet, position errors are the square root of that.
RANK = 1e-5
MAX_SETS_TRIED = 20_000  # maximum number of coordinate sets for an exhaustive search; beyond it, a greedy one is used


@dataclass(frozen=True, eq=False)
class Output:
    """Singularities between drives and output at one configuration (see ``Mobility``).

    ``still`` (k, N) are directions of the active coordinates that do not move the output: at such a singularity of the
    first kind, the output loses degrees of freedom. ``loose`` (k, 6 or 3) are velocities of the output with the active
    coordinates locked: at such a singularity of the second kind, it gains degrees of freedom. ``dof`` is the number of
    directions in which the output can move.
    """

    dof: int
    still: Array
    loose: Array


@dataclass(frozen=True, eq=False)
class Mobility:
    """The possible motions at one configuration.

    - ``dof``: the number of degrees of freedom there.
    - ``equations`` and ``redundant``: the number of closure equations, and how many of them are redundant.
    - ``uncontrolled`` (k, nv): motions with the active coordinates locked (a singularity of the second kind, or too few
      drives).
    - ``blocked`` (k, N): directions of the active coordinates in which no motion is possible (too many drives, or the
      end of a range).
    - ``control``: the smallest norm of the active velocities over all motions of unit norm. It is 1 if the active
      coordinates control all motions fully, and 0 at a singularity of the second kind.
    - ``margin``: the ratio of the smallest nonzero singular value of the Jacobian of the equations to the largest. It
      approaches 0 near a change point, where the mechanism may continue in several directions.
    - ``output``: the singularities of the requested output, or None.
    - ``position_dof``: the number of degrees of freedom of the positions. For example, a car cannot move sideways, but
      can reach positions at its side.
    """

    dof: int
    equations: int
    redundant: int
    uncontrolled: Array
    blocked: Array
    control: float
    margin: float
    output: Output | None = None
    position_dof: int = 0

    @property
    def is_singular(self) -> bool:
        """Whether the mechanism can move while the active coordinates are locked."""
        return len(self.uncontrolled) > 0


def null_space(A: Array, scale: float | None = None) -> Array:
    """Return orthonormal rows that span the null space of A; the tolerance is relative to ``scale`` (default: norm)."""
    if not A.size:
        return np.eye(A.shape[1])
    _, values, V = np.linalg.svd(A)
    size = max(values[0], 1e-300) if scale is None else scale
    return np.asarray(V[np.count_nonzero(values > RANK * size) :])


def analyse(
    A: Array, active: list[int], units: Array, J: Array | None = None, velocity_rows: Flags | None = None
) -> Mobility:
    """Return the mobility for a nondimensional Jacobian A (c x nv) of the closure equations.

    ``units`` (nv) are the scales of the coordinates. J (6 or 3 x nv) is the scaled Jacobian of an output.
    ``velocity_rows`` (c) marks the equations that do not restrict positions.
    """
    motions = null_space(A)
    dof, nv = motions.shape
    seen = motions[:, active]  # the active coordinates of each motion
    free = null_space(seen.T, 1.0) if dof else np.zeros((0, 0))
    blocked = null_space(seen, 1.0) if active else np.zeros((0, 0))
    output = None
    if J is not None:
        moves = J @ motions.T  # the velocity of the output in each motion
        stills = null_space(moves, 1.0) if dof else np.zeros((0, 0))
        drives, loose = stills @ seen, (moves @ free.T).T  # drives with the output at rest; output with locked drives
        moved = np.linalg.norm(drives, axis=1) > RANK
        visible = np.linalg.norm(loose, axis=1) > RANK
        output = Output(dof - len(stills), drives[moved] * units[active], loose[visible])
    uncontrolled = free @ motions * units
    values = np.linalg.svd(A, compute_uv=False)[: nv - dof] if nv > dof else np.ones(1)
    measures = _control(motions, active), float(values[-1] / values[0])
    of_positions = dof if velocity_rows is None else len(null_space(A[~velocity_rows], max(float(values[0]), 1e-300)))
    counts = dof, len(A), len(A) - (nv - dof)
    return Mobility(*counts, uncontrolled, blocked * units[active], *measures, output, of_positions)


def _control(motions: Array, active: Sequence[int]) -> float:
    """Return the smallest norm of active velocities over all motions of unit norm; it is 0 at a singularity."""
    if not len(motions):
        return 1.0
    if len(active) < len(motions):
        return 0.0
    return float(np.linalg.svd(motions[:, list(active)], compute_uv=False)[-1])


def quality(A: Array, active: list[int]) -> tuple[bool, int, float]:
    """Return a score (higher is better) of a configuration at which equations and coordinates are chosen.

    The criteria are, in this order: whether the numbers of degrees of freedom and active coordinates are equal, the
    rank of A, and the distance from a singularity of the second kind.
    """
    rank = A.shape[1] - len(null_space(A))
    passive = [k for k in range(A.shape[1]) if k not in active]
    values = np.linalg.svd(A[:, passive], compute_uv=False) if A.size and passive else np.ones(1)
    needed = min(rank, len(passive))
    free = float(values[needed - 1] / values[0]) if needed and values[0] > 0 else 0.0
    return A.shape[1] - rank == len(active), rank, free


def valid_sets(A: Array, candidates: list[int], most: int) -> list[tuple[tuple[int, ...], float]]:
    """Return (coordinates, control) of minimal coordinate sets that control the mechanism, best first.

    The control of a set is the smallest norm of its velocities over all motions of unit norm.
    """
    motions = null_space(A)
    dof = len(motions)
    few = comb(len(candidates), dof) <= MAX_SETS_TRIED
    sets = combinations(candidates, dof) if few else _swapped_sets(motions, candidates)
    result = [(item, _control(motions, item)) for item in sets]
    return sorted((item for item in result if item[1] > RANK), key=lambda item: -item[1])[:most]


def _swapped_sets(motions: Array, candidates: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield a set chosen greedily, then all sets that differ from it in one coordinate."""
    rest, best = motions[:, candidates].copy(), list[int]()
    for _ in range(len(motions)):
        k = int(np.argmax(np.linalg.norm(rest, axis=0)))
        direction = rest[:, k] / max(float(np.linalg.norm(rest[:, k])), 1e-300)
        rest = rest - np.outer(direction, direction @ rest)
        best.append(candidates[k])
    others = [k for k in candidates if k not in best]
    swapped = ([*best[:i], k, *best[i + 1 :]] for i in range(len(best)) for k in others)
    return (tuple(sorted(item)) for item in [best, *swapped])


def choose(A: Array, active: list[int]) -> ClosureChoice:
    """Return independent equations and coordinates, active ones first, chosen by elimination with pivoting."""
    rank = A.shape[1] - len(null_space(A))
    scale = float(np.linalg.norm(A, 2)) if A.size else 0.0
    # Passive coordinates are chosen as dependent ones before active coordinates.
    order = [k for k in range(A.shape[1]) if k not in active], list(active)
    rest, dependent = A.copy(), list[int]()
    for group in order:
        while len(dependent) < rank and group:
            lengths = [float(np.linalg.norm(rest[:, k])) for k in group]
            best = int(np.argmax(lengths))
            if lengths[best] <= RANK * scale:
                break
            k = group.pop(best)
            direction = rest[:, k] / lengths[best]
            rest = rest - np.outer(direction, direction @ rest)
            dependent.append(k)
    rows, kept = A[:, dependent].copy(), list[int]()
    for _ in range(rank):
        lengths = [float(np.linalg.norm(row)) for row in rows]
        best = int(np.argmax(lengths))
        direction = rows[best] / lengths[best]
        rows = rows - np.outer(rows @ direction, direction)
        kept.append(best)
    independent = tuple(k for k in range(A.shape[1]) if k not in dependent)
    return ClosureChoice(tuple(sorted(kept)), independent, tuple(active))

"""Likely mistakes in markers: the wrong unit, gaps, jumps, and two markers that exchange their names."""

import re

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.human.recordings.axes import up_axis
from torsor.human.recordings.findings import Finding, finding
from torsor.human.recordings.likely import likely_axes, vertical_axis
from torsor.human.recordings.markers import Markers, runs
from torsor.human.recordings.walking_inspection import walking_findings

# Extents of the markers of one person, in m, far outside of which the unit is wrong: from a hand to raised arms.
SMALLEST, LARGEST = 0.03, 5.0
FEWEST = 4  # markers from which the extent says something
# A marker does not leave a straight line by more than this between two frames: 30 g, the largest accelerations of
# heel strikes, and 30 mm, more than any skin moves at once.
JUMP, ACCELERATION = 0.03, 300.0  # m, m/s²
NEAREST = 0.01  # m: markers are not nearer to each other; smaller exchanges are noise
FEWEST_PAIRS = 3  # of right and left markers: then most of them tell which way right is
EXCHANGE_MARGIN, EXCHANGE_SHARE = (
    0.02,
    0.9,
)  # m, and a part of the frames: a leg that crosses the other one is no exchange
_WORDS = {"R": "L", "r": "l", "Right": "Left", "right": "left", "RIGHT": "LEFT"}
_RIGHT = [  # R.Heel, right_heel, RHEE, heel_r, each perhaps after the name of a person and a colon
    re.compile(pattern)
    for pattern in (
        r"(?:.*:)?(RIGHT|Right|right)",
        r"(?:.*:)?([Rr])[ ._-]",
        r"(?:.*:)?(R)[A-Z]",
        r".*[ ._-]([Rr]|Right|right)$",
    )
]
FROZEN, FEWEST_FROZEN = 0.1, 5  # s, and frames, in which a marker is at exactly the same place
FITS = 0.1  # part of the squared error that is left when two names are exchanged back


def marker_findings(markers: Markers) -> list[Finding]:
    """Return the likely mistakes in markers.

    Example:
        >>> positions = np.zeros((20, 2, 3)) + [[[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]][0]
        >>> positions[:, 1, 0] = 0.3
        >>> positions[10:] = positions[10:, ::-1].copy()
        >>> [each.kind for each in marker_findings(Markers(["toe", "heel"], np.arange(20) / 100, positions))]
        ['swap']
    """
    wrong = _unit(markers)
    if wrong:  # distances say nothing then
        return [*wrong, *_missing(markers)]
    found = _marker_axes(markers)
    swaps = swapped(markers)
    own = {(frame, name) for frame, *names in swaps for name in names}
    exchanged = [f"{a!r} and {b!r} at frame {k + 1} ({markers.times[k]:g} s)" for k, a, b in swaps]
    fix = "exchange them in these frames, or remove the frames and fill the gap"
    found += finding("swap", exchanged, markers.source, fix, "markers exchange their places: ")
    found += _sides(markers)
    far = [
        f"{name!r} at frame {k + 1} ({markers.times[k]:g} s) by {1000 * by:.0f} mm"
        for k, name, by in jumps(markers)
        if (k, name) not in own
    ]
    fix = "remove these frames of the marker (NaN) and call fill_gaps"
    found += finding("jump", far, markers.source, fix, "markers jump: ")
    return [*found, *_frozen(markers, {name for _, name in own}), *walking_findings(markers), *_missing(markers)]


def jumps(markers: Markers) -> list[tuple[int, str, float]]:
    """Return frame, marker and distance (m) of each jump: where a marker leaves the line of its last two frames.

    Example:
        >>> positions = np.zeros((20, 1, 3))
        >>> positions[10:] = 0.5
        >>> jumps(Markers(["toe"], np.arange(20) / 100, positions))[0][:2]
        (10, 'toe')
    """
    error, least = _errors(markers)
    found = []
    for k, name in enumerate(markers.names):
        frames = np.flatnonzero(error[:, k] > least)
        # The two frames after a jump are off the line through it as well.
        first = [int(frame) for n, frame in enumerate(frames) if not n or frame - frames[n - 1] > 2]
        found += [(frame + 2, name, float(error[frame, k])) for frame in first if not name.startswith("*")]
    return sorted(found)


def swapped(markers: Markers) -> list[tuple[int, str, str]]:
    """Return the frame and the two markers of each exchange: with exchanged names both would go on smoothly."""
    positions, predicted = markers.positions[2:], _predicted(markers)
    error, _ = _errors(markers)
    found = list[tuple[int, str, str]]()
    last: dict[tuple[int, int], int] = {}
    for k in np.flatnonzero((error > NEAREST).sum(axis=1) >= 2):
        moved = np.flatnonzero(error[k] > NEAREST)
        keep = error[k, moved] ** 2
        other = ((positions[k, moved][None] - predicted[k, moved][:, None]) ** 2).sum(axis=2)  # (predicted, found)
        better = other + other.T < FITS * (keep[:, None] + keep[None])
        for i, j in np.argwhere(np.triu(better, 1)):
            pair = int(moved[i]), int(moved[j])
            if k - last.get(pair, -9) > 2:  # the two frames after an exchange look like one, too
                found.append((int(k) + 2, markers.names[pair[0]], markers.names[pair[1]]))
            last[pair] = int(k)
    return found


def exchanged_sides(markers: Markers) -> list[tuple[str, str]]:
    """Return pairs of right and left markers that lie the other way round than most pairs, in nearly all frames.

    Example:
        >>> names = ["R.Hip", "L.Hip", "R.Knee", "L.Knee", "R.Heel", "L.Heel"]
        >>> places = np.array([[0.1, 1, 0], [-0.1, 1, 0], [-0.1, 0.5, 0], [0.1, 0.5, 0], [0.1, 0, 0], [-0.1, 0, 0]])
        >>> exchanged_sides(Markers(names, [0.0], places[None]))
        [('R.Knee', 'L.Knee')]
    """
    pairs = [(name, other) for name in markers.names if (other := _left_of(name)) in markers.names]
    if len(pairs) < FEWEST_PAIRS:
        return []
    apart = np.stack([markers.position(right) - markers.position(left) for right, left in pairs], axis=1)
    length = np.linalg.norm(apart, axis=2, keepdims=True)
    ways = np.divide(apart, length, out=np.full_like(apart, np.nan), where=length > 0)
    known = ~np.isnan(ways).any(axis=2)
    enough = known.sum(axis=1) >= FEWEST_PAIRS
    if not enough.any():
        return []
    usual = np.nanmedian(ways[enough], axis=1)
    usual /= np.linalg.norm(usual, axis=1, keepdims=True) + 1e-12
    across = np.nan_to_num(np.einsum("kpi,ki->kp", apart[enough], usual))  # feet are farther apart along the way
    share = (across < -EXCHANGE_MARGIN).sum(axis=0) / np.maximum(known[enough].sum(axis=0), 1)
    return [pair for pair, part in zip(pairs, share, strict=True) if part > EXCHANGE_SHARE]


def _left_of(name: str) -> str:
    """Return the name of the marker on the left side, or "" for a name that is not of the right side."""
    for pattern in _RIGHT:
        matched = pattern.match(name)
        if matched:
            return f"{name[: matched.start(1)]}{_WORDS[matched[1]]}{name[matched.end(1) :]}"
    return ""


def _predicted(markers: Markers) -> Array:
    """Return where each marker would be if it went on straight from its last two frames (K - 2, M, 3)."""
    t, x = markers.times, markers.positions
    if len(t) < 3:
        return np.zeros((0, *x.shape[1:]))
    ratio = ((t[2:] - t[1:-1]) / (t[1:-1] - t[:-2]))[:, None, None]
    return x[1:-1] + ratio * (x[1:-1] - x[:-2])


def _errors(markers: Markers) -> tuple[Array, float]:
    """Return the distances (K - 2, M) from there, 0 where a marker was not seen, and the least that is a jump."""
    error = np.linalg.norm(markers.positions[2:] - _predicted(markers), axis=2)
    step = 1 / markers.rate if markers.rate else 0.0
    return np.nan_to_num(error), max(JUMP, ACCELERATION * step**2)


def _unit(markers: Markers) -> list[Finding]:
    enough = markers.seen.sum(axis=1) >= FEWEST
    if not enough.any():
        return []
    seen = markers.positions[enough]
    extent = float(np.median((np.nanmax(seen, axis=1) - np.nanmin(seen, axis=1)).max(axis=1)))
    if SMALLEST <= extent <= LARGEST:
        return []
    other = "mm" if extent > LARGEST and markers.unit != "mm" else "m"
    place = f"the markers extend over {extent:.4g} m, which no person does; the unit is said to be {markers.unit}"
    return finding("unit", [place], markers.source, f'say the unit: torsor.human.recordings.load(path, unit="{other}")')


def _frozen(markers: Markers, exchanged: set[str]) -> list[Finding]:
    """Return markers that stay at exactly one place while the marker that is nearest to them goes on.

    Of markers that are exchanged nothing is said.
    """
    places, least = [], max(FEWEST_FROZEN, round(FROZEN * markers.rate))
    x = markers.positions
    for k, name in enumerate(markers.names):
        same = np.concatenate([[False], (x[1:, k] == x[:-1, k]).all(axis=1)])
        for first, last in runs(same):
            if last - first + 1 < least or len(markers.names) < 2:
                continue
            apart = np.linalg.norm(x[first - 1] - x[first - 1, k], axis=1)
            apart[k] = np.inf
            other = int(np.nanargmin(np.nan_to_num(apart, nan=np.inf)))
            if exchanged & {name, markers.names[other]}:
                continue
            if np.linalg.norm(x[last, other] - x[first - 1, other]) > JUMP:
                places.append(f"{name!r} from frame {first} to {last + 1}, while {markers.names[other]!r} goes on")
    fix = "remove these frames of the marker (NaN) and call fill_gaps: some programs repeat the last place in a gap"
    return finding("frozen", places, markers.source, fix, "markers do not move: ")


def _sides(markers: Markers) -> list[Finding]:
    places = [f"{right!r} and {left!r}" for right, left in exchanged_sides(markers)]
    fix = "exchange their names if they are: markers.renamed({a: b, b: a})"
    return finding("sides", places, markers.source, fix, "right and left markers lie the other way round than others: ")


def _marker_axes(markers: Markers) -> list[Finding]:
    """Return a finding where the person extends most along another axis than the one that is said to be vertical."""
    said, likely = up_axis(markers.axes), vertical_axis(markers)
    if said is None or likely is None or said == likely:
        return []
    ways = [f"{'-' if sign < 0 else ''}{'xyz'[axis]}" for axis, sign in (said, likely)]
    place = f"the person extends along {ways[1]}, but up is said to be {ways[0]}"
    axes = likely_axes(markers)
    return finding("axes", [place], markers.source, f'say the axes: torsor.human.recordings.load(path, axes="{axes}")')


def _missing(markers: Markers) -> list[Finding]:
    seen: Flags = markers.seen
    never = [f"{name!r}" for name, flags in zip(markers.names, seen.T, strict=True) if not flags.any()]
    fix = "leave them out: markers.only([...]), or export them again"
    found = finding("missing", never, markers.source, fix, "markers are never seen: ")
    gaps = [
        f"{gap.marker!r} frames {gap.first + 1} to {gap.last + 1} ({gap.duration:.3g} s)"
        for gap in markers.gaps()
        if gap.last - gap.first + 1 < len(markers)
    ]
    fix = "torsor.human.recordings.fill_gaps(markers, longest=0.2)"
    return found + finding("gap", gaps, markers.source, fix, "markers are not seen: ")

"""Paths of the joints for retiming: piecewise polynomials q(s), exact through waypoints or with blended corners.

Both kinds have continuous q, q' and q'' (primes are derivatives by s), so that forces along them are continuous. Blends
have continuous q''' too.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.base.errors import ModelError, describe
from torsor.motion.retiming.splines import spline

BLEND = 7  # coefficients of a blend
MOST_WAYPOINTS = 2000
WAY = 0.45  # of a straight piece that a blend takes at most, so that a part of the line is left
KNOTS, LEAST = 360, 30  # intervals of a whole path, and of each piece, by default
MAX_CACHED_GRIDS = 64  # grids with given knots


class JointPath(NamedTuple):
    """Polynomial pieces of B paths: ``breaks`` (B, S + 1) of s, ``pieces`` (B, S, powers, n) of s minus its break."""

    breaks: Array
    pieces: Array

    @classmethod
    def through(cls, s: Array, q: Array) -> "JointPath":
        """Return the cubic splines through q (B, K, n) at s (K,) or (B, K): see ``splines``.

        Example:
            >>> s = np.array([0.0, 1.0, 2.0, 4.0, 5.0])
            >>> path = JointPath.through(s, s[None, :, None] ** 3)
            >>> path.at(np.array([2]), np.array([[0.5]]))[:, 0, 0, 0].round(9).tolist()  # at s = 2.5
            [15.625, 18.75, 15.0, 6.0]
        """
        if s.shape != q.shape[:2]:
            s = np.broadcast_to(s, q.shape[:2])
        if q.shape[1] > 2:
            return cls(s, spline(s, q))
        slope = np.diff(q, axis=1) / np.diff(s, axis=1)[..., None]
        return cls(s, np.stack([q[:, :-1], slope, *np.zeros((2, *slope.shape))], axis=2))

    @classmethod
    def blended(cls, q: Array, tolerance: float | Array) -> "JointPath":
        """Return straight lines through q (B, K, n) whose corners are blended, each within a distance ``tolerance``.

        That is one number, or (B, K - 2, 1).

        Blends turn from the direction e of one line to the direction f of the next, with q'' and q''' = 0 at their
        ends, a way l before and after the corner. In the middle they are 5/32 l |f - e| from the corner, which is the
        largest distance.

        Example:
            >>> path = JointPath.blended(np.array([[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]]), 0.05)
            >>> middle = path.at(np.array([1]), np.diff(path.breaks)[:, 1:2] / 2)[0, 0, 0]
            >>> float(np.linalg.norm(middle - [1.0, 0.0]).round(9))
            0.05
        """
        line = np.diff(q, axis=1)
        length = np.linalg.norm(line, axis=-1, keepdims=True)
        e = line / length
        turn = np.linalg.norm(np.diff(e, axis=1), axis=-1, keepdims=True)
        way = np.minimum(32 / 5 * tolerance / np.maximum(turn, 1e-12), WAY * np.minimum(length[:, 1:], length[:, :-1]))
        none = np.zeros((len(q), 1, 1))
        straight = length - np.concatenate([none, way], axis=1) - np.concatenate([way, none], axis=1)
        count, n = 2 * q.shape[1] - 3, q.shape[2]
        pieces, lengths = np.zeros((len(q), count, BLEND, n)), np.empty((len(q), count))
        lengths[:, ::2], lengths[:, 1::2] = straight[..., 0], 2 * way[..., 0]
        pieces[:, ::2, 0] = q[:, :-1] + np.concatenate([none, way], axis=1) * e
        pieces[:, ::2, 1] = e
        first, last, L = e[:, :-1], e[:, 1:], 2 * way
        pieces[:, 1::2, 0], pieces[:, 1::2, 1] = q[:, 1:-1] - way * first, first
        # q' = e + (f - e) (10 z^3 - 15 z^4 + 6 z^5) with z from 0 to 1, so that the ends are L (e + f) / 2 apart.
        for power, factor in ((4, 2.5), (5, -3.0), (6, 1.0)):
            pieces[:, 1::2, power] = factor * (last - first) / L ** (power - 1)
        breaks = np.concatenate([none[..., 0], np.cumsum(lengths, axis=1)], axis=1)
        return cls(breaks, pieces)

    def at(self, piece: Indices, way: Array) -> Array:
        """Return q and its first three derivatives (4, B, G, n) in pieces (G,), at ways (B, G) from their starts."""
        C, x, found = self.pieces[:, piece], way[..., None], []
        powers = C.shape[2]
        for order in range(4):
            value = np.zeros_like(C[:, :, 0])
            for power in reversed(range(order, powers)):
                value = value * x + float(np.prod(np.arange(power - order + 1, power + 1))) * C[:, :, power]
            found.append(value)
        return np.stack(found)

    def on(self, piece: Indices, s: Array) -> Array:
        """Return q and its derivatives by s (4, T, n) at places s (T,) in pieces (T,) of the first path."""
        return self.path(0).at(piece, (s - self.breaks[0, piece])[None])[:, 0]

    def path(self, b: int) -> "JointPath":
        """Return one of the paths, alone."""
        return self if len(self.breaks) == 1 else JointPath(self.breaks[b : b + 1], self.pieces[b : b + 1])

    def piece_of(self, s: Array) -> Indices:
        """Return the pieces (G,) of places s (G,), of the first path."""
        return np.clip(np.searchsorted(self.breaks[0], s, side="right") - 1, 0, self.pieces.shape[1] - 1)


@dataclass(frozen=True, eq=False)
class Grid:
    """Intervals of B paths: their ``piece`` (G,), and the ways (B, G) of their ends from the start of the piece."""

    piece: Indices
    first: Array
    last: Array

    @classmethod
    def even(cls, path: JointPath, count: int | None) -> "Grid":
        """Return a grid with ``count`` equal intervals in each piece; by default enough for a smooth timing.

        Example:
            >>> line = JointPath.blended(np.array([[[0.0], [3.0]]]), 0.1)
            >>> Grid.even(line, 3).last.tolist()
            [[1.0, 2.0, 3.0]]
        """
        pieces = path.pieces.shape[1]
        count = max(LEAST, -(-KNOTS // pieces)) if count is None else count
        parts = np.linspace(0.0, 1.0, count + 1)
        lengths = np.diff(path.breaks)[..., None]
        shape = len(path.breaks), pieces * count
        return cls(
            np.repeat(np.arange(pieces), count),
            (lengths * parts[:-1]).reshape(shape),
            (lengths * parts[1:]).reshape(shape),
        )

    @classmethod
    def at(cls, path: JointPath, s: Array, where: str) -> "Grid":
        """Return the grid with knots s (G + 1), which all breaks of the path are among; one grid for all paths.

        Example:
            >>> line = JointPath.blended(np.array([[[0.0], [3.0]]]), 0.1)
            >>> Grid.at(line, np.array([0.0, 0.5, 3.0]), "example").first.tolist()
            [[0.0, 0.5]]
        """
        breaks = path.breaks[0]
        if len(path.breaks) > 1 and (path.breaks != breaks).any():
            fix = "give the number of intervals of each piece"
            raise ModelError(describe("knots as an array for paths of different lengths", where=where, fix=fix))
        found = _with_knots(breaks.tobytes(), s.tobytes())
        if found is None:
            allowed = f"increasing numbers from its first s or time to its last, {breaks[-1] - breaks[0]:g} apart"
            raise ModelError(describe("knots are not in the order of the path", where=where, allowed=allowed))
        return found

    def split(self, parts: Indices) -> "Grid":
        """Return the grid with intervals divided into so many ``parts`` (G,).

        Example:
            >>> line = JointPath.blended(np.array([[[0.0], [3.0]]]), 0.1)
            >>> Grid.even(line, 3).split(np.array([1, 2, 1])).first.tolist()
            [[0.0, 1.0, 1.5, 2.0]]
        """
        of = np.repeat(np.arange(len(parts)), parts)
        turn = np.arange(len(of)) - np.repeat(np.cumsum(parts) - parts, parts)
        step = ((self.last - self.first) / parts)[:, of]
        first = self.first[:, of] + turn * step
        last = np.where(turn + 1 == parts[of], self.last[:, of], first + step)
        return Grid(self.piece[of], first, last)

    @cached_property
    def knots(self) -> tuple[Indices, Array]:
        """The pieces (G + 1) of all knots, and their ways (B, G + 1).

        Example:
            >>> Grid.even(JointPath.blended(np.array([[[0.0], [3.0]]]), 0.1), 3).knots[1].tolist()
            [[0.0, 1.0, 2.0, 3.0]]
        """
        return np.append(self.piece, self.piece[-1]), np.concatenate([self.first, self.last[:, -1:]], axis=1)

    @cached_property
    def h(self) -> Array:
        """The lengths (B, G) of the intervals."""
        return self.last - self.first


@lru_cache(maxsize=MAX_CACHED_GRIDS)
def _with_knots(breaks_of_path: bytes, knots: bytes) -> Grid | None:
    """Return the grid with some knots and all breaks of a path, None for knots that are not in its order."""
    breaks, s = np.frombuffer(breaks_of_path), np.frombuffer(knots)
    size = breaks[-1] - breaks[0]
    if len(s) < 2 or not (np.diff(s) > 0).all() or max(abs(s[0] - breaks[0]), abs(s[-1] - breaks[-1])) > 1e-9 * size:
        return None
    s = np.union1d(s[(np.abs(s[:, None] - breaks) > 1e-9 * size).all(axis=1)], breaks)
    piece = np.searchsorted(breaks, (s[1:] + s[:-1]) / 2, side="right") - 1
    return Grid(piece, (s[:-1] - breaks[piece])[None], (s[1:] - breaks[piece])[None])

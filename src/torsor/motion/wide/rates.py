"""The cost of row rates (``RowRates``) for many cases."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array, Indices
from torsor.motion.transcription.program import Program, RowRates
from torsor.motion.wide.blocks import Boundary, NodeBlocks


def rates_structure(program: Program) -> tuple[Any, ...]:
    """Return a key that is equal for costs of row rates that differ only in their weights."""
    return tuple((program.batches.index(rate.batch), rate.chosen.tobytes(), rate.per) for rate in program.rates)


class RatesAt(NamedTuple):
    """The cost at a point, phi (B,), with the derivatives of ``RowRates``.

    d (B, K - 1, chosen) are the row differences and c (B, K - 1) their coefficients. ``first`` (B, K - 1, P) and
    ``second`` (B, K - 1, P, P) are the derivatives of c with respect to T, the clock variables and the divisor.
    """

    value: Array
    d: Array
    c: Array
    first: Array
    second: Array


@dataclass(frozen=True, eq=False)
class BatchedRates:
    """The cost of row rates of a batch, with weights (B,)."""

    own: RowRates
    index: int
    weight: Array

    @classmethod
    def all_of(cls, programs: Sequence[Program]) -> "tuple[BatchedRates, ...]":
        """Return the costs of programs with the same structure."""
        first = programs[0]
        return tuple(
            cls(rate, first.batches.index(rate.batch), np.array([program.rates[k].weight for program in programs]))
            for k, rate in enumerate(first.rates)
        )

    def take(self, at: Indices) -> "BatchedRates":
        """Return the costs of the cases ``at``."""
        return BatchedRates(self.own, self.index, self.weight[at])

    def at(self, x: Array, T: Array, rows: Array) -> RatesAt:
        """Return the cost at x (B, n) for durations (B,) and rows (B, K, m)."""
        layout, s = self.own.batch.layout.phases[self.own.batch.phase], self.own.batch.s
        clock, ticks, columns = layout.phase.timing, list(layout.ticks), self.own.columns
        bases = np.array([np.diff(clock.numeric(s, one) - s) for one in np.eye(len(ticks))]).reshape(-1, len(s) - 1)
        h = np.diff(s) + (np.take(x, ticks, axis=1)[:, None] @ bases)[:, 0]  # linear in the clock variables
        d = np.diff(rows[..., self.own.chosen], axis=1)
        c = self.weight[:, None] / (T[:, None] ** 2 * h)
        shape, by_T = (*h.shape, 1), int(layout.duration >= 0)
        speeds = x[:, None, columns[by_T + len(ticks) :]]
        c = c / speeds.prod(axis=2)
        # c is a product of powers, so its derivatives follow from those of its logarithm, which is a sum.
        powers = [np.broadcast_to(-2 / T[:, None, None], shape)] * by_T + [-(bases / h[:, None]).swapaxes(1, 2)]
        L = np.concatenate([*powers, np.broadcast_to(-1 / speeds, (*h.shape, speeds.shape[2]))], axis=2)
        second = L[..., None] * L[..., None, :]
        if by_T:
            second[..., 0, 0] += 2 / T[:, None] ** 2
        timed = slice(by_T, by_T + len(ticks))
        second[..., timed, timed] += L[..., timed, None] * L[..., None, timed]
        for k in range(timed.stop, len(columns)):
            second[..., k, k] += L[..., k] ** 2
        value = (c * (d**2).sum(axis=2)).sum(axis=1)
        return RatesAt(value, d, c, c[..., None] * L, c[..., None, None] * second)

    def multipliers(self, at: RatesAt) -> Array:
        """Return row multipliers (B, 1 + P, K m): phi_g and its derivatives with respect to ``RowRates.columns``."""
        by_c = np.concatenate([at.c[..., None], at.first], axis=2)  # (B, K - 1, 1 + P)
        steps = 2 * by_c.swapaxes(1, 2)[..., None] * at.d[:, None]
        result = np.zeros((*steps.shape[:2], len(self.own.batch.s), self.own.batch.kernels.m))
        result[:, :, 1:, self.own.chosen] += steps
        result[:, :, :-1, self.own.chosen] -= steps
        return result.reshape(*steps.shape[:2], -1)

    def inside(self, blocks: NodeBlocks, values: Array, k: int, c: Array) -> Array | None:
        """Return the weighted differences (B, steps, columns) of the rows in block k, or None if it has one node."""
        window = blocks.windows[k]
        nodes, m = window.nodes, self.own.batch.kernels.m
        if nodes.stop - nodes.start < 2:
            return None
        own = blocks.block(values, window)[:, : (nodes.stop - nodes.start) * m]
        rows = own.reshape(len(own), -1, m, own.shape[2])[:, :, self.own.chosen]
        steps = np.diff(rows, axis=1) * np.sqrt(2 * c[:, nodes.start : nodes.stop - 1, None, None])
        return steps.reshape(len(own), -1, own.shape[2])

    def across(self, blocks: NodeBlocks, values: Array, boundary: Boundary, c: Array) -> Array:
        """Return the weighted differences (B, chosen, columns) of the rows from one block to the next."""
        m, chosen = self.own.batch.kernels.m, self.own.chosen
        last = boundary.earlier.nodes.stop - boundary.earlier.nodes.start - 1
        result = np.zeros((len(values), len(chosen), len(boundary.columns)))
        result[..., boundary.of_later] += blocks.block(values, boundary.later)[:, chosen]
        result[..., boundary.of_earlier] -= blocks.block(values, boundary.earlier)[:, last * m + chosen]
        return result * np.sqrt(2 * c[:, boundary.earlier.nodes.stop - 1, None, None])

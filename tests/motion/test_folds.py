"""Points, steps and corrections of folds over the nodes are those of the kernels that store Jacobians."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from torsor import library, motion
from torsor.motion.batched import RowPoint, Rows
from torsor.motion.terms.term import Cost
from torsor.motion.transcription.cases import Cases, CasesPoint, FoldedPoint

LOADED = library.two_link().parametric(["links.link2.mass"])
ENDS = motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)


def _arm() -> motion.MotionProblem:
    """Return a problem of the three main joints of an arm in space."""
    robot = library.ur5()
    for name in robot.joint_names[3:]:
        robot = robot.fix(name)
    ends = motion.Start(q=[0.0, -1.2, 1.5], v=0.0), motion.End(q=[1.0, -0.8, 1.0], v=0.0)
    terms = [*ends, motion.Torques(), motion.Velocities()]
    return motion.MotionProblem(robot, motion.Phase((0.1, 3.0), points=12), motion.Time(), terms)


def _several() -> motion.MotionProblem:
    """Return a problem with nodes of three kinds and a shared number."""
    payload = {"links.link2.mass": motion.Number(0.5, 0.4, 0.6)}
    costs, free = [motion.Time(), motion.Effort(weight=1e-3)], motion.End(q={"joint1": 1.0}, v=0.0)
    terms = [ENDS[0], free, motion.Torques(upper=10.0)]
    return motion.MotionProblem(LOADED, motion.Phase((0.1, 2.0), points=8), costs, terms, numbers=payload)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Payload(Cost):
    """The square of the mass, once: no profile is in this cost."""

    is_sum: ClassVar[bool] = True

    def moments(self, phase):
        return np.array([1.0])

    def integrand(self, node):
        return node.shared["links.link2.mass"] ** 2


def _numbers_alone() -> motion.MotionProblem:
    """Return a problem with a cost that depends on a shared number alone."""
    return replace(_several(), objective=[motion.Time(), _Payload()])


def _timed() -> motion.MotionProblem:
    """Return a problem with a given duration."""
    terms = [*ENDS, motion.Torques(upper=20.0)]
    return motion.MotionProblem(library.two_link(), motion.Phase(1.5, points=8), [motion.Effort()], terms)


PROBLEMS = {
    "an arm": _arm,
    "several kinds of nodes": _several,
    "a given duration": _timed,
    "a cost of a number alone": _numbers_alone,
}


def _same(one, other) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(other).max()))


@pytest.mark.parametrize("name", PROBLEMS)
def test_folds_are_the_kernels_with_jacobians(name):
    program, B, rng = PROBLEMS[name]().program, 11, np.random.default_rng(0)
    cases = Cases.of([program] * B)
    assert cases.is_folded
    at = np.clip(rng.uniform(-0.5, 0.5, (B, cases.n)), cases.lower, cases.upper)
    for phase in program.layout.phases:
        if phase.duration >= 0:
            at[:, phase.duration] = rng.uniform(1.0, 2.0, B)
    (_, h), (low, high) = cases.value(at), cases.row_bounds
    w = np.clip(h + rng.normal(size=h.shape), low + 1e-3, high - 1e-3)
    multipliers = [rng.uniform(0.1, 1.0, h.shape) * (np.abs(side) < 1e29) for side in (low, high)]
    rows = Rows(w, rng.normal(size=h.shape), *multipliers)
    weight, curvature, mu, length, dual = rng.uniform(0.2, 1.0, (5, B))
    correctors, first, second = rng.random((B, 4)), rng.normal(size=(B, 2, cases.n)), rng.normal(size=(B, cases.n))
    some, off = np.array([7, 2]), rng.normal(size=(2, h.shape[1]))

    _same(cases.gradient(at, rows), CasesPoint(cases, at, rows, np.ones(B), np.ones(B)).gradient)

    def results(point: RowPoint):
        yield from (point.entries, point.gradient, point.multiplied, point.pushed, point.repelled, *point.totals)
        yield from point.predicted(0.1 * first)
        yield from point.ratios(0.1 * second, mu, correctors)
        step = point.step(mu, correctors[:, 1])
        trial = cases.moved(at + 0.01 * second, rows, step, length, dual)
        yield from (*trial.rows, *trial[1:])
        corrections, own = point.take(some, step.take(some))
        yield from (corrections.off, own.predictor, corrections.correction(own, off))
        corrected, *ratios = corrections.corrected(own, off, second[some])
        yield from (corrected.ds, *ratios)

    points = (kind(cases, at, rows, weight, curvature) for kind in (FoldedPoint, CasesPoint))
    for one, other in zip(*map(results, points), strict=True):
        _same(one, other)

"""Data of terms at each moment, squares of a cost, and held shared numbers."""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.motion import Effort, End, MotionProblem, Number, Phase, Start, Torques
from torsor.motion.starts import read_start
from torsor.motion.terms.term import Cost


@dataclass(frozen=True, eq=False, kw_only=True)
class Near(Cost):
    """How far a joint is from an angle, which is data; ``gives`` is in place of it."""

    angle: float = 0.2
    key: str = "angle"
    gives: Any = None
    asks: int = 1

    def data(self, s):
        given = np.full((len(s), 1), self.angle) if self.gives is None else self.gives(len(s))
        return {} if given is None else {self.key: given}

    def integrand(self, node):
        return ca.SX(0)

    def squares(self, node):
        return node.profile("joint1") - ca.sum1(node.data(self.key, self.asks))


class Plain(Near):
    """The same as an integrand."""

    def integrand(self, node):
        return super().squares(node) ** 2

    def squares(self, node):
        return ca.SX(0, 1)


ENDS = [Start(q=0.0, v=0.0), End(q=0.5, v=0.0)]


def moved(*costs):
    return MotionProblem(torsor.library.two_link(), Phase(1.0, points=6, nodes=5), list(costs), ENDS)


def test_two_terms_with_other_data_of_the_same_name_are_refused():
    with refused(value="angle"):
        moved(Near(name="a"), Near(angle=0.8, name="b")).solve()
    with refused(value="angle", allowed="1"):
        _ = moved(Near(name="a"), Near(asks=2, name="b")).program


def test_data_are_refused_where_they_are_missing_or_of_another_shape():
    with refused(value="angle"):
        moved(Near(asks=1, gives=lambda count: None)).solve()
    for gives in (
        lambda count: np.zeros(count),
        lambda count: np.zeros((count, 2)),
        lambda count: np.zeros((1, 1)),
        lambda count: "abc",
    ):
        with refused(where="Near: data 'angle'", allowed=", 1), one row per moment"):
            moved(Near(gives=gives)).solve()


@pytest.mark.parametrize("weight", [1.0, -0.5, 0.0])
def test_squares_are_the_same_as_their_sum_whatever_the_weight(weight):
    rng, programs = np.random.default_rng(0), [moved(kind(weight=weight), Effort()).program for kind in (Near, Plain)]
    x = rng.normal(size=programs[0].n)
    (f, _), (g, _) = (program.value(x) for program in programs)
    assert np.isclose(f, g, rtol=1e-12)
    jacobians, hessians = zip(
        *((each.jacobian(x)[0], each.hessian(x, np.zeros(0), 1.0)) for each in programs), strict=True
    )
    np.testing.assert_allclose(*jacobians, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(*hessians, rtol=1e-9, atol=1e-12)


def test_a_held_number_is_that_of_the_robot_beside_a_free_one():
    names = ["links.link1.mass", "links.link2.mass"]
    model = torsor.library.two_link().parametric(names)
    numbers = {names[0]: Number(1.0, 0.5, 3.0), names[1]: Number(2.0, 2.0, 2.0)}
    rest, phase = [*ENDS, Torques(upper=60.0)], Phase(1.0, points=6, nodes=11)
    found = MotionProblem(model, phase, Effort(), rest, numbers=numbers).solve()
    assert found.numbers[names[1]] == 2.0
    mass = found.numbers[names[0]]
    alone = MotionProblem(model.at([mass, 2.0]), phase, Effort(), rest).solve()
    assert np.isclose(found.objective, alone.objective, rtol=1e-6)
    freed = MotionProblem(model, phase, Effort(), rest, numbers={names[1]: Number(1.0, 0.5, 3.0)})
    start = read_start(freed, found)
    assert [start[column] for column in freed.program.layout.numbers.values()] == [mass, 2.0]


@pytest.mark.parametrize("side", [np.inf, -np.inf])
def test_a_number_is_not_held_at_infinity(side):
    model = torsor.library.two_link().parametric(["links.link1.mass"])
    numbers = {"links.link1.mass": Number(1.0, side, side)}
    with refused(allowed="a finite value if lower == upper"):
        _ = MotionProblem(model, Phase(1.0, points=6), Effort(), ENDS, numbers=numbers).held

"""Machine code of every algorithm agrees with CasADi's virtual machine, which most other tests use."""

from functools import cache

import numpy as np
import pytest

import torsor
from torsor.dynamics import ALGORITHMS

# Closed loops need a mechanism with loops; hybrid dynamics needs the names of the forced coordinates.
LOOPS = [name for name, each in ALGORITHMS.items() if each.closed or "c" in each.output or "multipliers" in each.inputs]


@cache
def tree() -> tuple[torsor.Robot, np.ndarray]:
    """A tree with every type of joint, springs, motors and elastic joints, and random positions."""
    robot = torsor.library.random_tree(8, seed=4)
    return robot, robot.integrate(robot.neutral(), np.random.default_rng(1).normal(size=(3, robot.nv)))


@cache
def parallelograms() -> tuple[torsor.Robot, np.ndarray]:
    """An arm with several loops, and positions where they are closed."""
    robot = torsor.library.palletiser()
    return robot, robot.closed.assemble(np.random.default_rng(1).uniform(-0.2, 0.4, size=(3, 4)), robot.neutral())


LARGE = {name for name in ALGORITHMS if name.endswith("_derivatives")} - {"inverse_dynamics_derivatives"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in ALGORITHMS]
)
def test_machine_code_agrees_with_the_virtual_machine(name: str) -> None:
    (robot, q), algorithm = parallelograms() if name in LOOPS else tree(), ALGORITHMS[name]
    place = robot.link_names[-1] if algorithm.at_place else None
    forced = robot.coordinate_names[::2] if algorithm.hybrid else None
    request, rng = robot.kernels.request(name, place, algorithm.external, forced), np.random.default_rng(2)
    given = [
        q if each in request.positions else rng.uniform(0.5, 1.5, size=(len(q), *shape))
        for each, shape in request.inputs(robot).items()
    ]
    found, expected = (each.kernels.compiled(request)(*given) for each in (robot, robot.to(device="casadi")))
    if not isinstance(found, tuple):
        found, expected = (found,), (expected,)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape and np.isfinite(theirs).all()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * max(1.0, np.abs(theirs).max(initial=0.0)))

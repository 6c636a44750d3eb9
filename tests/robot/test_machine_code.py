"""Machine code of every algorithm agrees with CasADi's virtual machine, which most other tests use."""

from functools import cache

import numpy as np
import pytest

import torsor
from torsor.compiler import Kernel
from torsor.dynamics import ALGORITHMS

# Closed loops need a mechanism with loops; hybrid dynamics needs the names of the forced coordinates.
LOOPS = [name for name, each in ALGORITHMS.items() if each.closed or "c" in each.output or "multipliers" in each.inputs]


# These are tried with the large robots, so that machine code of every type of joint is tried too; the others with small
# ones, since they take seconds each.
WHOLE = (
    "inverse_dynamics",
    "forward_dynamics",
    "closed_inverse_dynamics",
    "closed_forward_dynamics",
    "cartesian_mass_matrix",  # small trees do not move their last link in all directions
)
LARGE = {name for name in ALGORITHMS if name.endswith("_derivatives")} - {"inverse_dynamics_derivatives"}


@cache
def tree(whole: bool) -> tuple[torsor.Robot, np.ndarray]:
    """A tree with springs, motors and elastic joints, and random positions; a whole one has every type of joint."""
    types = ("revolute", "spherical", "prismatic", "helical")
    robot = torsor.library.random_tree(8, seed=4) if whole else torsor.library.random_tree(4, seed=8, types=types)
    return robot, robot.integrate(robot.neutral(), np.random.default_rng(1).normal(size=(3, robot.nv)))


@cache
def parallelograms(whole: bool) -> tuple[torsor.Robot, np.ndarray]:
    """An arm with several loops, or a linkage with one, and positions where they are closed."""
    robot = torsor.library.palletiser() if whole else torsor.library.five_bar()
    middle = robot.neutral() if whole else robot.closed.assemble([1.2, 0.8])
    count = len(robot.closed.active)
    drives = np.random.default_rng(1).uniform(-0.2, 0.4, size=(3, count)) + (0.0 if whole else [1.2, 0.8])
    return robot, robot.closed.assemble(drives, middle)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in ALGORITHMS]
)
def test_machine_code_agrees_with_the_virtual_machine(name: str) -> None:
    robot, q = (parallelograms if name in LOOPS else tree)(name in WHOLE)
    algorithm = ALGORITHMS[name]
    place = robot.link_names[-1] if algorithm.at_place else None
    forced = robot.coordinate_names[::2] if algorithm.hybrid else None
    request, rng = robot.kernels.request(name, place, algorithm.external, forced), np.random.default_rng(2)
    given = [
        q if each in request.positions else rng.uniform(0.5, 1.5, size=(len(q), *shape))
        for each, shape in request.inputs(robot).items()
    ]
    compiled = robot.kernels.compiled(request)
    shapes = compiled.inputs, compiled.outputs
    interpreted = Kernel(compiled.function, "float64", "casadi", 1, *shapes)
    found, expected = (kernel(*given) for kernel in (compiled, interpreted))
    if not isinstance(found, tuple):
        found, expected = (found,), (expected,)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape and np.isfinite(theirs).all()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * max(1.0, np.abs(theirs).max(initial=0.0)))

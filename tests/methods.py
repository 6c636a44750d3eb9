"""Every method of a tree as a request, with inputs for many states: for tests that go through all of them."""

import math

import numpy as np
from numpy.typing import NDArray

import torsor
from torsor.dynamics import ALGORITHMS, Request

TREE_METHODS = [name for name, algorithm in ALGORITHMS.items() if not algorithm.closed and "loop" not in name]
TREE_METHODS = [name for name in TREE_METHODS if not name.startswith("closure")]


def request_of(robot: torsor.Robot, name: str, **options: object) -> Request:
    """Return the request of a method, at the last link, with the first coordinate driven by force."""
    algorithm = ALGORITHMS[name]
    if algorithm.at_place:
        options["place"] = robot.links[-1].name
    if algorithm.hybrid:
        options["forced"] = [robot.coordinate_names[0]]
    return robot.kernels.request(name, **options)  # type: ignore[arg-type]


def states_of(robot: torsor.Robot, request: Request, count: int, seed: int = 0) -> list[NDArray[np.float64]]:
    """Return inputs for some states; positions are valid ones."""
    rng, found = np.random.default_rng(seed), []
    for name, shape in request.inputs(robot).items():
        if name in ("q", "q_end"):
            step = rng.normal(size=(min(count, 1000), robot.nv))
            some = robot.to(dtype="float64", device="cpu").integrate(robot.neutral(), step)
            found.append(some[np.arange(count) % len(some)])
        else:
            found.append(rng.normal(size=(count, *shape)))
    assert all(math.prod(each.shape[1:]) for each in found)
    return found

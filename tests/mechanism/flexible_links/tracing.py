"""Functions of a robot over CasADi, without compiling them: fast for a few values."""

from typing import Any

import casadi as ca
import numpy as np

import torsor
from torsor.base.arrays import Array
from torsor.dynamics.requests import Request, fingerprint, trace

GROUND = torsor.build("ground", [torsor.Link("ground")], [], gravity=(0.0, 0.0, 0.0))
HUB = torsor.build(
    "hub",
    [torsor.Link("ground"), torsor.Link("hub", 1.0, inertia=np.eye(3))],
    [torsor.Joint("hinge", "revolute", "ground", "hub")],
    gravity=(0.0, 0.0, 0.0),
)


_traced: dict[tuple[str, str], ca.Function] = {}  # tests share robots


class Traced:
    """The algorithms of a robot as functions of numbers or symbols."""

    def __init__(self, robot: torsor.Robot):
        self.robot, self._key = robot, fingerprint(robot)

    def function(self, name: str, **options: Any) -> ca.Function:
        """Return the CasADi function of an algorithm."""
        request = Request(name, **options)
        key = self._key, request.label(self.robot)
        if key not in _traced:
            _traced[key] = trace(self.robot, request)
        return _traced[key]

    def values(self, name: str, *inputs: Any, **options: Any) -> list[Array]:
        """Return the results of an algorithm as arrays (rows x columns)."""
        return [np.array(each) for each in self.function(name, **options).call([ca.DM(x) for x in inputs])]

    def value(self, name: str, *inputs: Any, **options: Any) -> Array:
        """Return the result of an algorithm: a vector, or a matrix."""
        found = self.values(name, *inputs, **options)[0]
        return found.ravel() if found.shape[1] == 1 else found


class Small:
    """Small motions about a state, with some coordinates held."""

    def __init__(self, robot: torsor.Robot, held: tuple[str, ...] = ()):
        n = robot.nv
        q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
        forces = Traced(robot).function("inverse_dynamics")(q, v, np.zeros(n))
        self.stiffness = ca.Function("K", [q, v], [ca.jacobian(forces, q)])
        self.mass = Traced(robot).function("mass_matrix")
        self.free = [k for k, name in enumerate(robot.coordinate_names) if name not in held]

    def frequencies(self, q: Array, v: Array | None = None) -> Array:
        """Return the natural frequencies (rad/s) at positions q and velocities v, in increasing order."""
        free = np.ix_(self.free, self.free)
        K, M = np.array(self.stiffness(q, 0 * q if v is None else v))[free], np.array(self.mass(q))[free]
        return np.sqrt(np.maximum(np.sort(np.linalg.eigvals(np.linalg.solve(M, K)).real), 0.0))


def frequencies(robot: torsor.Robot, q: Array, held: tuple[str, ...] = ()) -> Array:
    """Return the natural frequencies (rad/s) at rest at positions q with some coordinates held."""
    return Small(robot, held).frequencies(q)

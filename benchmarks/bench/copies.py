"""A robot and its copy, written to a file and read back: the same motion in the coordinates of each."""

from dataclasses import replace
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.mechanism import Coupling
from torsor.robot.robot import Robot


class Copy:
    """A robot read back from a file; its velocities are G v for v of the original, and its positions keep their names.

    In MJCF, joints that follow others have their own coordinates, and G contains their ratios. Renamed joints, such as
    SDF joints that had the name of a link, are matched by their order.

    Example:
        >>> import torsor
        >>> arm = torsor.library.two_link()
        >>> Copy(arm, arm).difference(np.random.default_rng(1))
        0.0
    """

    def __init__(self, robot: Robot, again: Robot):
        self.robot = replace(robot.to(device="casadi"), loops=(), active=())
        self.again = replace(again, loops=(), active=()).to(device="casadi")
        relations = {next(iter(each.coefficients)): each for each in again.loops if isinstance(each, Coupling)}
        self.relations = {name: each for name, each in relations.items() if name not in robot.coordinate_names}
        same = {*robot.coordinate_names} == {*again.coordinate_names}
        renamed = len(robot.joints) == len(again.joints) and not self.relations and not same
        self.names = dict(zip(again.position_names, robot.position_names, strict=True)) if renamed else {}
        columns = {name: k for k, name in enumerate(robot.coordinate_names)}
        self.G = np.eye(robot.nv) if renamed else np.zeros((again.nv, robot.nv))
        for row, name in enumerate(() if renamed else again.coordinate_names):
            if name in columns:
                self.G[row, columns[name]] = 1.0
            else:
                leader, ratio = _leader(self.relations[name])
                self.G[row, columns[leader]] = ratio

    def q(self, q: Array) -> Array:
        """Return the positions (nq,) of the copy for given positions of the original."""
        values: dict[str, Any] = dict(zip(self.robot.position_names, q, strict=True))
        for name, each in self.relations.items():
            leader, ratio = _leader(each)
            values[name] = each.offset + ratio * values[leader]
        return np.array([values[self.names.get(name, name)] for name in self.again.position_names])

    def state(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return random positions, velocities and accelerations of the original."""
        q = self.robot.integrate(self.robot.neutral(), rng.uniform(-1, 1, self.robot.nv))
        return q, rng.normal(size=self.robot.nv), rng.normal(size=self.robot.nv)

    def difference(self, rng: np.random.Generator) -> float:
        """Return the largest relative difference of inverse dynamics and mass matrix at a random state."""
        (q, v, a), G = self.state(rng), self.G
        here, there = self.robot, self.again
        forces = here.inverse_dynamics(q, v, a), G.T @ there.inverse_dynamics(self.q(q), G @ v, G @ a)
        masses = here.mass_matrix(q), G.T @ there.mass_matrix(self.q(q)) @ G
        pairs = [(each, other) for each, other in (forces, masses) if np.size(each)]
        return max((_relative(each, other) for each, other in pairs), default=0.0)


def _leader(coupling: Coupling) -> tuple[str, float]:
    """Return the second coordinate of a coupling of two, and how many times it the first one is."""
    _, (leader, factors) = coupling.polynomials.items()
    return leader, -factors[0]


def _relative(expected: Array, found: Array) -> float:
    scale = float(np.abs(expected).max()) or 1.0
    return float(np.abs(found - expected).max()) / scale


def without_surfaces(robot: Robot) -> Robot:
    """Return a robot without visuals and collision shapes, on which its motion does not depend.

    Example:
        >>> import torsor
        >>> without_surfaces(torsor.library.ur5()).base.visuals
        ()
    """
    base, *links = (replace(link, visuals=(), shapes=()) for link in (robot.base, *robot.links))
    return replace(robot, base=base, links=tuple(links))

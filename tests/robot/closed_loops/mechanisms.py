"""Mechanisms with loops, which are closed in the configuration of their construction.

Too few states are asked for to compile them; ``test_machine_code.py`` compiles every method.
"""

from functools import cache

import numpy as np

import torsor
from torsor.spatial import make_pose

KINDS = ["weld", "revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "rod"]
EQUATIONS = dict(zip(KINDS, (6, 5, 5, 4, 4, 3, 3, 1), strict=True))


def chain(n: int, seed: int, types: tuple[str, ...] = ("revolute", "prismatic")) -> torsor.Robot:
    """A random chain of n links, in which each hangs on the one before."""
    return torsor.library.random_tree(n, seed, types=types, branching=0.0, extras=False).to(device="casadi")


@cache
def closed_chain(kind: str, n: int = 7, seed: int = 3) -> tuple[torsor.Robot, np.ndarray]:
    """A random chain whose end is joined to the base where it happens to be, and the positions that close it."""
    robot, rng = chain(n, seed), np.random.default_rng(seed)
    q = robot.integrate(robot.neutral(), 0.5 * rng.normal(size=robot.nv))
    end = make_pose(torsor.spatial.from_rpy(rng.normal(size=3)), rng.normal(size=3))
    robot = robot.with_frame("end", robot.link_names[-1], end)
    there = robot.pose(q, "end")
    if kind == "universal":  # its two axes are perpendicular
        there = there @ make_pose(torsor.spatial.from_rpy([np.pi / 2, 0, 0]))
    if kind == "rod":
        there = there @ make_pose(p=[0.3, 0.0, 0.4])
    robot = robot.with_frame("anchor", robot.base.name, there)
    return robot.with_loop("loop", "anchor", "end", kind, length=0.5 if kind == "rod" else 0.0), q


def four_bar(lengths: tuple[float, float, float, float] = (1.0, 0.4, 0.9, 0.8)) -> torsor.Robot:
    """Ground, crank, coupler and rocker in a plane, driven at the crank; gravity along -y."""
    ground, crank, coupler, rocker = lengths
    rows = [
        torsor.MDHLink(parent=-1, mass=1.0, com=(crank / 2, 0.01, 0), inertia=np.diag([0.01, 0.02, 0.03])),
        torsor.MDHLink(parent=0, d=crank, mass=2.0, com=(coupler / 2, 0, 0), inertia=np.diag([0.01, 0.03, 0.04])),
        torsor.MDHLink(parent=-1, d=ground, mass=1.5, com=(rocker / 2, -0.02, 0), inertia=np.diag([0.02, 0.03, 0.05])),
    ]
    robot = torsor.from_mdh(rows, gravity=(0, -9.81, 0)).to(device="casadi")
    robot = robot.with_frame("coupler_end", "link2", make_pose(p=[coupler, 0, 0]))
    robot = robot.with_frame("rocker_end", "link3", make_pose(p=[rocker, 0, 0]))
    return robot.with_loop("pin", "coupler_end", "rocker_end").with_active(["joint1"])


def slider_crank(crank: float = 0.3, rod: float = 0.8) -> torsor.Robot:
    """A crank, a connecting rod and a piston along x, driven at the crank."""
    links = [
        torsor.Link("ground"),
        torsor.Link("crank", 1.0, (crank / 2, 0, 0), np.diag([0.01, 0.02, 0.03])),
        torsor.Link("rod", 0.5, (rod / 2, 0, 0), np.diag([0.01, 0.02, 0.03])),
        torsor.Link("piston", 2.0, (0, 0, 0), np.diag([0.01, 0.01, 0.01])),
    ]
    joints = [
        torsor.Joint("main", "revolute", "ground", "crank"),
        torsor.Joint("big_end", "revolute", "crank", "rod", make_pose(p=[crank, 0, 0])),
        torsor.Joint("slide", "prismatic", "ground", "piston", axis=(1, 0, 0)),
    ]
    frames = [torsor.Frame("small_end", "rod", make_pose(p=[rod, 0, 0]))]
    robot = torsor.build("slider_crank", links, joints, frames, gravity=(0, -9.81, 0)).to(device="casadi")
    return robot.with_loop("pin", "small_end", "piston").with_active(["main"])

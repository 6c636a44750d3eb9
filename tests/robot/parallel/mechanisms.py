"""Parallel robots for the tests, and random motions of them."""

import json
from functools import cache
from pathlib import Path

import numpy as np

import torsor
from torsor.spatial import from_rpy, inverse_pose, make_pose

TARGET = json.loads((Path(__file__).parents[2] / "data" / "targets.json").read_text())["003_gough"]
KINDS = ("weld", "revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "rod")
COUNTS = dict(zip(KINDS, (6, 5, 5, 4, 4, 3, 3, 1), strict=True))


@cache
def made(name: str, **options: str) -> torsor.ParallelRobot:
    """A robot of the library without compilation, which would take longer than a test of a few states."""
    return getattr(torsor.library, name)(**options).to(device="casadi")


def target_robot() -> torsor.ParallelRobot:
    """The Gough-Stewart platform of Khalil's reference numbers."""
    table, rows = TARGET["leg"], []
    for k in range(3):
        mass, J = table["M"][k], np.array(table["J"][k])
        c = np.array(table["MS"][k]) / mass
        inertia = J - mass * (c @ c * np.eye(3) - np.outer(c, c))
        joint = "prismatic" if table["sigma"][k] else "revolute"
        rows.append(
            torsor.MDHLink(table["ant"][k], alpha=table["alpha"][k], joint=joint, mass=mass, com=c, inertia=inertia)
        )
    leg = torsor.from_mdh(rows)
    legs = [
        torsor.Leg(f"leg{k + 1}", leg, "link3", at, driven=("joint3",), base=base, home=(1.5, 1.5, 1.0))
        for k, (base, at) in enumerate(zip(TARGET["B"], TARGET["P_platform"], strict=True))
    ]
    platform = TARGET["platform"]
    plate = torsor.Link("platform", platform["M"], platform["com"], platform["I_com"])
    return torsor.ParallelRobot(plate, legs, make_pose(p=[0, 0, 0.9]), gravity=table["g"])


def motion(robot: torsor.ParallelRobot, count: int = 3, size: float = 0.05) -> tuple[np.ndarray, ...]:
    """Random poses near home, twists and accelerations."""
    rng = np.random.default_rng(7)
    pose = robot.carriage.integrate(robot.home, size * rng.normal(size=(count, robot.dof)))
    return pose, *rng.normal(size=(2, count, robot.dof))


def two_legs(kind: str) -> torsor.ParallelRobot:
    """A free platform on two random legs, one of which ends in a joint of that kind; six joints are driven."""
    rng = np.random.default_rng(4)
    home, legs = make_pose(from_rpy(0.3 * rng.normal(size=3)), rng.normal(size=3)), []
    for name, closing in (("one", kind), ("two", "weld")):
        count = COUNTS[closing]
        robot = torsor.library.random_tree(count, seed=count, types=("revolute",), branching=0.0, extras=False).to(
            device="casadi"
        )
        tip = make_pose(from_rpy(rng.normal(size=3)), 0.3 * rng.normal(size=3))
        robot = robot.with_frame("tip", robot.link_names[-1], tip)
        tries = rng.normal(size=(50, count))  # of which the farthest from singular is taken
        q = tries[np.argmax(np.linalg.svd(robot.jacobian(tries, "tip"), compute_uv=False)[:, -1])]
        stand = make_pose(from_rpy(rng.normal(size=3)), rng.normal(size=3))
        end = stand @ robot.pose(q, "tip")
        if closing == "universal":
            end = end @ make_pose(from_rpy([np.pi / 2, 0, 0]))
        if closing == "rod":
            end = end @ make_pose(p=[0.3, 0.0, 0.4])
        if closing in ("prismatic", "cylindrical"):
            end = end @ make_pose(p=[0.0, 0.0, 0.2])
        if closing == "planar":
            end = end @ make_pose(p=[0.2, -0.1, 0.0])
        driven = robot.coordinate_names[: count if name == "one" else 6 - COUNTS[kind]]
        length = 0.5 if closing == "rod" else 0.0
        legs.append(torsor.Leg(name, robot, "tip", inverse_pose(home) @ end, closing, driven, stand, q, length))
    plate = torsor.Link("platform", 2.0, (0.1, 0.0, -0.05), np.diag([0.1, 0.2, 0.15]))
    return torsor.ParallelRobot(plate, legs, home, gravity=(1.0, -2.0, -9.0)).to(device="casadi")

"""Compare the distances of all checked shape pairs with Pinocchio and coal in one process; print a table.

    python benchmarks/distances.py

The script needs pin and example-robot-data. Both compute the same pairs of the same shapes: meshes are the same convex
hulls, and the robot "capsules" has the enclosing capsule of each shape. Times are per posture, the best of several
repeats.
"""

import time
import warnings
from collections.abc import Callable
from importlib.metadata import files
from pathlib import Path

import coal
import numpy as np
import pinocchio as pin

import torsor
from torsor.geometry import distance_model, enclosing_capsule, placed_shapes
from torsor.geometry.allowed import random_postures
from torsor.geometry.convex import geometry_of

ROBOTS = ("panda.urdf", "panda_collision.urdf", "a1.urdf", "talos_reduced.urdf")
BATCH, REPEATS = 256, 7


def best(call: Callable[[], object]) -> float:
    """Return the shortest of several times (s) of a warm call."""
    call()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def file_of(name: str) -> Path:
    """Return the path of a robot in example-robot-data."""
    listed = files("example-robot-data") or []
    return next(Path(str(each.locate())).resolve() for each in listed if each.name == name)


def with_capsules(robot: torsor.Robot) -> torsor.Robot:
    """Return the robot with the enclosing capsule of each shape."""
    for link in (robot.base, *robot.links):
        own = [enclosing_capsule(shape) for shape in link.shapes if not shape.link]
        robot = robot.with_shapes(link.name, own) if own else robot
        for part in dict.fromkeys(shape.link for shape in link.shapes if shape.link):
            place = np.linalg.inv(robot.place(part).pose)
            shapes = [enclosing_capsule(shape) for shape in link.shapes if shape.link == part]
            moved = [torsor.Shape("capsule", each.size, place @ each.pose) for each in shapes]
            robot = robot.with_shapes(part, moved)
    return robot


def geometry_model(robot: torsor.Robot, file: Path) -> tuple[pin.Model, pin.GeometryModel, np.ndarray]:
    """Return Pinocchio's model, the robot's shapes as its geometries, and the order of positions."""
    model, geometry = pin.buildModelFromUrdf(str(file)), pin.GeometryModel()
    for each in placed_shapes(robot):
        name = robot.base.name if each.link < 0 else robot.links[each.link].name
        frame = model.frames[model.getFrameId(name)]
        pose = frame.placement * pin.SE3(each.shape.pose)
        geometry.addGeometryObject(pin.GeometryObject(each.name, frame.parentJoint, pose, geometry_of(each, "")))
    return model, geometry, np.array([robot.position_names.index(robot.joint(n).coordinate) for n in model.names[1:]])


def row(title: str, robot: torsor.Robot, file: Path) -> None:
    """Print the times of one robot."""
    prepared = distance_model(robot)
    model, geometry, order = geometry_model(robot, file)
    numbers = {each.name: k for k, each in enumerate(geometry.geometryObjects)}
    for a, b in prepared.names:
        geometry.addCollisionPair(pin.CollisionPair(numbers[a], numbers[b]))
    data, results = model.createData(), geometry.createData()
    q = random_postures(robot, BATCH, np.random.default_rng(0))
    theirs = q[:, order]
    if model.nq != theirs.shape[1]:
        raise SystemExit(f"{title}: Pinocchio has other coordinates")

    def pinocchio() -> None:
        for each in theirs:
            pin.computeDistances(model, data, geometry, results, each)

    pin.computeDistances(model, data, geometry, results, theirs[0])
    expected = np.array([each.min_distance for each in results.distanceResults])
    worst = np.abs(prepared(q[0]).distance - expected)
    near = distance_model(robot, within=0.05)
    slow = best(pinocchio) / BATCH
    times = [
        best(lambda: prepared(q)) / BATCH,
        best(lambda: prepared(q, gradient=True)) / BATCH,
        best(lambda: prepared(q[0])),
        best(lambda: near(q)) / BATCH,
    ]
    cells = [f"{1e6 * each:.1f} ({slow / each:.2g}x)" for each in times]
    closed = sum(len(group.a) for group in prepared._groups)
    print(
        f"| {title} | {len(prepared.pairs)} ({closed}) | {1e6 * slow:.1f} | {' | '.join(cells)} | {worst.max():.1e} |"
    )


def main() -> None:
    """Print the table."""
    print(f"coal {coal.__version__}, Pinocchio {pin.__version__}; microseconds a posture, batch of {BATCH}")
    print(
        "| robot | pairs (closed form) | Pinocchio | batch | with gradient | one posture | within 5 cm | differ (m) |"
    )
    print("|---|---|---|---|---|---|---|---|")
    warnings.simplefilter("ignore")
    for name in ROBOTS:
        file = file_of(name)
        robot = torsor.load(file)
        row(name, robot, file)
        if name in ("panda.urdf", "talos_reduced.urdf"):
            row(f"{name}, capsules", with_capsules(robot), file)


if __name__ == "__main__":
    main()

"""Retimed motions as files: archives to read them back, tables and documents."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from torsor.base.archive import Archive, as_bytes, robot_text
from torsor.base.arrays import Array
from torsor.base.documents import plain, robot_facts, state_units
from torsor.base.files import check_array
from torsor.base.tables import Column, columns_of
from torsor.motion.retiming.bounds import KINDS, SOURCES, Bounds
from torsor.motion.retiming.path import JointPath
from torsor.motion.retiming.timing import Timing
from torsor.robot.robot import Robot

KIND = "retimed"


def archive(robot: Robot, path: JointPath, timing: Timing, bounds: Bounds, settings: Mapping[str, Any]) -> Archive:
    """Return all that ``read`` needs."""
    arrays: dict[str, Any] = {"breaks": path.breaks[0], "pieces": path.pieces[0], "robot": as_bytes(robot_text(robot))}
    arrays |= timing._asdict() | {kind: bounds.values[kind] for kind in KINDS}
    own = {"settings": plain(settings), "sources": dict(bounds.sources), "reactions": plain(bounds.reactions)}
    return Archive(KIND, arrays, own, {"times": ["s"], "pieces": state_units(robot)["q"]})


def read(found: Archive) -> tuple[Robot, JointPath, Timing, Bounds]:
    """Return the parts of a motion in an archive; raise ValueError for arrays that are not those of one."""
    robot, arrays, n = found.robot, found.arrays, found.robot.nv
    knots, count = len(arrays["times"]), len(arrays["breaks"]) - 1
    check_array(arrays["breaks"], (count + 1,), "breaks")
    check_array(arrays["pieces"], (count, arrays["pieces"].shape[1], n), "pieces")
    for name in ("times", "s", "x"):
        check_array(arrays[name], (knots,), name)
    for name in ("u", "w"):
        check_array(arrays[name], (knots - 1,), name)
    for kind in KINDS:
        check_array(arrays[kind], (2, n), kind)
    sources = {kind: str(found.settings["sources"][kind]) for kind in KINDS}
    check_array(arrays["stretch"], (), "stretch", "b")
    if knots < 2 or count < 1 or not (np.diff(arrays["times"]) > 0).all() or not set(sources.values()) <= set(SOURCES):
        raise ValueError("its arrays are not those of a retimed motion")
    links = [(str(joint), int(link), str(kind), float(size)) for joint, link, kind, size in found.settings["reactions"]]
    if any(not 0 <= link < len(robot.links) for _, link, _, _ in links):
        raise ValueError("a reaction of a link that the robot has not")
    path = JointPath(arrays["breaks"][None], arrays["pieces"][None])
    timing = Timing(**{name: arrays[name] for name in Timing._fields[:-1]}, stretch=bool(arrays["stretch"]))
    return robot, path, timing, Bounds({kind: arrays[kind] for kind in KINDS}, sources, tuple(links))


def columns(robot: Robot, times: Array, q: Array, v: Array, a: Array, tau: Array) -> list[Column]:
    """Return the table of a motion (T, n): time, q, v, a and tau.

    Example:
        >>> robot = torsor.library.planar_chain(1)
        >>> [each.head for each in columns(robot, np.zeros(1), *np.zeros((4, 1, 1)))][:3]
        ['time [s]', 'q joint1 [rad]', 'v joint1 [rad/s]']
    """
    found, own = [Column("time", "s", times)], state_units(robot)
    for letter, values in zip(("q", "v", "a", "tau"), (q, v, a, tau), strict=True):
        found += columns_of(letter, robot.coordinate_names, own[letter], values)
    return found


def content(robot: Robot, bounds: Bounds, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain values of the document."""
    return {
        "units": {"times": "s", "duration": "s", "excess": "1", **state_units(robot)},
        "robot": robot_facts(robot),
        "settings": plain(settings),
        "bounds": {
            kind: {"source": bounds.sources[kind], "lower": plain(low), "upper": plain(high)}
            for kind, (low, high) in bounds.values.items()
        },
        "reactions": [
            {"joint": joint, "kind": kind, "bound": size, "unit": "N" if kind == "force" else "N m"}
            for joint, _, kind, size in bounds.reactions
        ],
        **{name: plain(value) for name, value in facts.items()},
    }

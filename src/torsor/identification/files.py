"""Identifications on disk: their arrays, read back with checks."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from torsor.base.archive import Archive, as_bytes, as_text
from torsor.base.documents import plain
from torsor.base.files import check_array
from torsor.identification.closed_robot import ClosedRobot, MeasuredRobot, closed_robot
from torsor.identification.drives import Drives
from torsor.identification.measurements import Measurements, measurements_of
from torsor.mechanism.mechanism import state_units
from torsor.robot.archived import archived_robot, robot_text
from torsor.robot.base_parameters import BaseParameters
from torsor.robot.parallel import ParallelRobot
from torsor.robot.parallel.workspace import parallel_fields, parallel_text
from torsor.robot.robot import Robot


def robot_arrays(robot: MeasuredRobot) -> dict[str, Any]:
    """Return the arrays of a file that hold a robot."""
    if not isinstance(robot, ClosedRobot):
        return {"robot": as_bytes(robot_text(robot))}
    assert robot.closing is not None
    found: dict[str, Any] = {"robot": as_bytes(robot_text(robot.mechanism)), "start": robot.closing.start}
    if isinstance(robot.given, ParallelRobot):
        found["parallel_robot"] = as_bytes(parallel_text(robot.given))
    return found


def robot_of_arrays(found: Archive) -> MeasuredRobot:
    """Return the robot of a file; raise ValueError or KeyError where the arrays are none."""
    tree = archived_robot(found)
    if "start" not in found.arrays:
        return tree
    robot: Robot | ParallelRobot = tree
    if "parallel_robot" in found.arrays:
        robot = ParallelRobot(**parallel_fields(as_text(found.arrays["parallel_robot"])))
    made = closed_robot(robot, np.asarray(found.arrays["start"]))
    check_array(found.arrays["start"], (made.mechanism.nq,), "start", "f")
    return made


SI = "SI: kg, kg m, kg m^2, N m, N m s, N, N s/m"
OWN = ("values", "covariance", "predicted")
BASE = ("columns", "matrix", "values", "unknown")
MEASURED = ("q", "v", "a", "tau", "weights", "times", "temperature", "external")


def archive(
    robot: MeasuredRobot, base: BaseParameters, data: Measurements, settings: Mapping[str, Any], own: Mapping[str, Any]
) -> Archive:
    """Return all that a file of an identification holds; ``own`` are the fields of the result."""
    arrays: dict[str, Any] = {name: own[name] for name in OWN}
    arrays |= {f"base_{name}": getattr(base, name) for name in BASE}
    arrays["base_names"] = as_bytes("\n".join(base.names))
    arrays["base_by_rule"] = base.by_rule
    arrays |= {f"measured_{name}": each for name in MEASURED if (each := getattr(data, name)) is not None}
    if own["parameters"] is not None:
        arrays["parameters"] = own["parameters"]
    arrays |= {"condition": own["condition"], **robot_arrays(robot)}
    if own["drives"] is not None:
        arrays["drives"] = as_bytes(json.dumps(own["drives"].content()))
    if own["held_out"] is not None:
        arrays["held_out"] = own["held_out"]
    arrays["lag"] = own["lag"]
    if data.notes:
        arrays["notes"] = as_bytes(json.dumps(data.notes))
    if own["unseen"] is not None:
        unseen = own["unseen"]
        kept = {f"unseen_{name}": getattr(unseen.measurements, name) for name in MEASURED}
        arrays |= {name: each for name, each in kept.items() if each is not None} | {
            "unseen_predicted": unseen.predicted
        }
    units = state_units(robot)
    measured = {f"measured_{name}": unit for name, unit in units.items()} | {"measured_times": "s"}
    own_units = {"predicted": units["tau"], "values": SI, "base_values": SI, "parameters": SI, "condition": "1"}
    return Archive("identification", arrays, plain(settings), measured | own_units)


def fields_of(found: Archive) -> dict[str, Any]:
    """Return the fields of an identification; raise ValueError or KeyError where the arrays are none."""
    arrays, robot = found.arrays, robot_of_arrays(found)
    names = tuple(as_text(arrays["base_names"]).split("\n"))
    b, p = len(names), len(robot.inertial.names)
    shapes: dict[str, tuple[tuple[int, ...], str]] = {
        "values": ((b,), "f"),
        "covariance": ((b, b), "f"),
        "condition": ((), "f"),
        "base_columns": ((b,), "iu"),
        "base_matrix": ((b, p), "f"),
        "base_values": ((b,), "f"),
        "base_unknown": ((p,), "b"),
        "base_by_rule": ((), "b"),
    }
    notes = tuple(map(str, json.loads(as_text(arrays["notes"])))) if "notes" in arrays else ()
    data = replace(_measured(found, robot, "measured"), notes=notes)
    shapes["predicted"] = (data.tau.shape, "f")
    if "held_out" in arrays:
        shapes["held_out"] = ((robot.nv,), "f")
    if "parameters" in arrays:
        shapes["parameters"] = ((p,), "f")
    for name, (shape, kind) in shapes.items():
        check_array(arrays[name], shape, name, kind)
    columns = arrays["base_columns"]
    if ((columns < 0) | (columns >= p)).any():
        raise ValueError(f"base_columns are outside of 0 to {p - 1}")
    base = BaseParameters(
        names,
        columns.astype(np.intp),
        arrays["base_matrix"],
        arrays["base_values"],
        arrays["base_unknown"],
        bool(arrays["base_by_rule"]),
    )
    own = {name: arrays[name] for name in OWN} | {"condition": float(arrays["condition"])}
    own |= {"parameters": arrays.get("parameters"), "settings": found.settings, "held_out": arrays.get("held_out")}
    own["lag"] = int(arrays.get("lag", 0))
    if "drives" in arrays:
        own["drives"] = Drives.from_content(json.loads(as_text(arrays["drives"])))
    unseen = None
    if "unseen_q" in arrays:
        unseen = {"measurements": _measured(found, robot, "unseen"), "predicted": arrays["unseen_predicted"]}
        check_array(unseen["predicted"], unseen["measurements"].tau.shape, "unseen_predicted", "f")
    return {"prior": robot, "base": base, "measurements": data, "unseen": unseen} | own


def _measured(found: Archive, robot: MeasuredRobot, which: str) -> Measurements:
    """Return the measurements of a file that were used, "measured", or held out, "unseen"."""
    arrays: dict[str, Any] = {name: found.arrays.get(f"{which}_{name}") for name in MEASURED}
    for name in ("q", "v", "a", "tau"):
        if arrays[name] is None:
            raise KeyError(f"{which}_{name}")
    return measurements_of(robot, Measurements(**arrays))

"""Parallel robots and workspaces on disk: JSON with the robots of legs and platform as the text of TOML files."""

import json
from typing import Any

import numpy as np

from torsor.base.archive import Archive
from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.base.files import check_array
from torsor.robot.archived import robot_of, robot_text
from torsor.robot.parallel.kernels import Assembled
from torsor.robot.parallel.legs import Leg
from torsor.robot.robot import Robot

SHAPED = {  # arrays of a workspace: trailing axes, and the kind of their numbers
    **dict.fromkeys(("reachable", "within_limits", "parallel"), ((), "b")),
    **dict.fromkeys(("condition", "determinant"), ((), "f")),
    "q": (("nq",), "f"),
    "leg_motion": (("nv",), "f"),
    "platform_motion": (("dof",), "f"),
    "serial": (("legs",), "b"),
}


def parallel_text(robot: Assembled) -> str:
    """Return a parallel robot as JSON, from which ``parallel_fields`` gives the same robot."""
    legs = [
        {"robot": robot_text(leg.robot), "driven": list(leg.driven)}
        | {name: getattr(leg, name) for name in ("name", "tip", "kind", "length")}
        | {name: _numbers(getattr(leg, name)) for name in ("at", "base", "home")}
        for leg in robot.legs
    ]
    platform = robot_text(robot.platform if isinstance(robot.platform, Robot) else robot.carriage)
    data = {"name": robot.name, "platform": platform, "motion": robot.motion, "legs": legs}
    text = json.dumps(data | {"home": _numbers(robot.home), "gravity": _numbers(robot.gravity)})
    again = parallel_fields(text)
    if again["platform"] != robot.platform or again["legs"] != tuple(robot.legs):
        raise ModelError("it would not read back equal", where=robot.name, fix="check names and visuals")
    return text


def parallel_fields(text: str) -> dict[str, Any]:
    """Return the fields of a parallel robot; raise ValueError or KeyError where the text is none."""
    data = json.loads(text)
    carriage = robot_of(data["platform"])
    legs = []
    for each in data["legs"]:
        numbers: dict[str, Any] = {name: np.array(each[name], dtype=float) for name in ("at", "base", "home")}
        rest = {name: each[name] for name in ("name", "tip", "kind", "length")}
        legs.append(Leg(robot=robot_of(each["robot"]), driven=tuple(each["driven"]), **numbers, **rest))
    own = {name: np.array(data[name], dtype=float) for name in ("home", "gravity")}
    platform = carriage.links[-1] if data["motion"] else carriage
    motion = {"motion": data["motion"]} if data["motion"] else {}
    return {"platform": platform, "legs": tuple(legs), "name": data["name"], **own, **motion}


def _numbers(array: Array | None) -> Any:
    return None if array is None else array.tolist()


def workspace_arrays(found: Archive, robot: Assembled) -> dict[str, Any]:
    """Return the arrays of a workspace of a robot, checked."""
    poses = found.arrays["poses"]
    batch = poses.shape[:-1]
    sizes = {"nq": robot.nq, "nv": robot.nv, "legs": len(robot.legs), "dof": found.arrays["platform_motion"].shape[-1]}
    check_array(poses, (*batch, robot.carriage.nq), "poses")
    for name, (axes, kind) in SHAPED.items():
        check_array(found.arrays[name], (*batch, *(sizes[axis] for axis in axes)), name, kind)
    return {"poses": poses} | {name: found.arrays[name] for name in SHAPED}

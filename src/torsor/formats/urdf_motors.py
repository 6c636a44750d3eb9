"""Motors in URDF: gear ratio, rotor inertia and elasticity from <transmission> elements."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from torsor.errors import ModelError, describe, warn
from torsor.formats.xml import Element
from torsor.mechanism import Joint, Motor

# The elements of each property of a motor: those of ROS and Drake, and our own where these have none.
_TAGS = {
    "inertia": ("drake:rotor_inertia", "rotorInertia"),
    "ratio": ("mechanicalReduction", "drake:gear_ratio"),
    "stiffness": ("stiffness",),
    "damping": ("damping",),
    "coulomb": ("friction",),
    "axis": ("axis",),
    "carrier": ("carrier",),
}


def with_motors(root: Element, joints: list[Joint], source: str) -> list[Joint]:
    """Return the joints with the motors of those simple transmissions that have a rotor inertia.

    The carrier of the motor is the parent link of the joint, and its spin axis the joint axis, unless ``carrier`` and
    ``axis`` give others. A transmission without rotor inertia has no influence on the motion and is ignored.
    """
    motors: dict[str, Motor] = {}
    by_name = {joint.name: joint for joint in joints}
    for transmission in root.findall("transmission"):
        where = f"{source}: line {transmission.line}: transmission {transmission.get('name', '')!r}"  # type: ignore[attr-defined]
        found = dict(_values(transmission, where))
        if "inertia" not in found:
            if "stiffness" in found:
                warn(describe("a stiffness without a rotor inertia is ignored", where=where, fix="add rotorInertia"))
            continue
        driven = [each.get("name", "") for each in transmission.iter("joint")]
        if len(driven) != 1 or len(list(transmission.iter("actuator"))) > 1:
            warn(describe(f"it drives {len(driven)} joints; its motor is ignored", where=where, allowed="one joint"))
            continue
        if driven[0] not in by_name or driven[0] in motors:
            what = "has a motor already" if driven[0] in motors else "does not exist"
            raise ModelError(describe(f"its joint {driven[0]!r} {what}", where=where))
        joint = by_name[driven[0]]
        if found.get("carrier", joint.parent) != joint.parent and "axis" not in found:
            fix = 'add <axis xyz="..."/> in the axes of that link'
            raise ModelError(describe(f"the motor on {found['carrier']!r} has no axis", where=where, fix=fix))
        along = joint.placement[:3, :3] @ joint.axis
        motors[joint.name] = Motor(**({"carrier": joint.parent, "axis": along} | found), source=where)
    return [replace(joint, motor=motors[joint.name]) if joint.name in motors else joint for joint in joints]


def _values(transmission: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each property of the motor; elements have the value as text or as an attribute."""
    for name, tags in _TAGS.items():
        elements = [element for tag in tags for element in transmission.iter(tag)]
        if not elements:
            continue
        text = elements[0].get("value") or elements[0].get("xyz") or elements[0].get("link") or elements[0].text or ""
        if name == "carrier":
            yield name, text.strip()
            continue
        try:
            numbers = [float(word) for word in text.split()]
        except ValueError:
            numbers = []
        if len(numbers) != (3 if name == "axis" else 1):
            allowed = "3 numbers" if name == "axis" else "a number"
            raise ModelError(describe(f"<{elements[0].tag}> is {text!r}", where=where, allowed=allowed))
        yield name, np.array(numbers) if name == "axis" else numbers[0]

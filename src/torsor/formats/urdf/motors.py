"""Motors in URDF: gear ratio, rotor inertia and elasticity from <transmission> elements."""

from dataclasses import replace
from typing import Any

import numpy as np

from torsor.base.errors import ModelError, describe, warn
from torsor.base.faults import refuse_or_warn
from torsor.formats.decimals import number_in
from torsor.formats.xml import Element
from torsor.mechanism import Joint, Motor

# Drake's and our own elements of the rotor, each with the elements of its gear ratio, the first that is there.
# Drake does not read <mechanicalReduction>, which its files give as 1.
_ROTORS = {
    "drake:rotor_inertia": ("drake:gear_ratio", "mechanicalReduction"),
    "rotorInertia": ("mechanicalReduction", "drake:gear_ratio"),
}
# The other elements of a motor, our own, and the property that each gives.
_TAGS = {"stiffness": "stiffness", "damping": "damping", "friction": "coulomb", "axis": "axis", "carrier": "carrier"}


def with_motors(root: Element, joints: list[Joint], source: str, strict: bool = False) -> list[Joint]:
    """Return the joints with the motors of those simple transmissions that have a rotor inertia.

    The carrier of the motor is the parent link of the joint, and its spin axis the joint axis, unless ``carrier`` and
    ``axis`` give others. A transmission without rotor inertia has no influence on the motion and is ignored. One with a
    rotor inertia that drives no joint, or several, is a warning, or an error if ``strict``.
    """
    found = {joint.name: joint for joint in joints}
    for transmission in root.findall("transmission"):
        where = f"{source}: line {transmission.line}: transmission {transmission.get('name', '')!r}"  # type: ignore[attr-defined]
        if not any(_has(transmission, tag) for tag in _ROTORS):
            if _has(transmission, "stiffness"):
                warn(describe("a stiffness without a rotor inertia is ignored", where=where, fix="add rotorInertia"))
            continue
        driven = [each.get("name", "") for each in transmission.iter("joint")]
        unused = ""
        if len(driven) != 1 or len(list(transmission.iter("actuator"))) > 1:
            unused = describe(f"it drives {len(driven)} joints; its motor is ignored", where=where, allowed="one joint")
        elif driven[0] not in found or found[driven[0]].is_fixed:
            what = "does not exist" if driven[0] not in found else "is fixed"
            unused = describe(f"its joint {driven[0]!r} {what}; its motor is ignored", where=where)
        if unused:
            refuse_or_warn(unused, strict)
            continue
        joint = found[driven[0]]
        if joint.motor is not None:
            raise ModelError(describe(f"its joint {joint.name!r} has a motor already", where=where))
        found[joint.name] = replace(joint, motor=_motor(transmission, joint, where))
    return [found[joint.name] if found[joint.name].motor is not None else joint for joint in joints]


def _motor(transmission: Any, joint: Joint, where: str) -> Motor:
    rotor = next(tag for tag in _ROTORS if _has(transmission, tag))
    values: dict[str, Any] = {"inertia": _value(transmission, rotor, where)}
    gears = {tag: _value(transmission, tag, where) for tag in _ROTORS[rotor] if _has(transmission, tag)}
    if gears:
        used, values["ratio"] = next(iter(gears.items()))
        other = next((tag for tag, ratio in gears.items() if ratio not in (1.0, values["ratio"])), None)
        if other is not None:
            warn(
                describe(
                    f"<{used}> is {values['ratio']:g} and <{other}> {gears[other]:g}; the first is used", where=where
                )
            )
        elif used == "mechanicalReduction" and rotor == "drake:rotor_inertia" and values["ratio"] != 1:
            found = f"no <drake:gear_ratio>: <mechanicalReduction> {values['ratio']:g} is used, where Drake takes 1"
            warn(describe(found, where=where, fix='add <drake:gear_ratio value="..."/>'))
    values |= {name: _value(transmission, tag, where) for tag, name in _TAGS.items() if _has(transmission, tag)}
    if values.get("carrier", joint.parent) != joint.parent and "axis" not in values:
        fix = 'add <axis xyz="..."/> in the axes of that link'
        raise ModelError(describe(f"the motor on {values['carrier']!r} has no axis", where=where, fix=fix))
    along = joint.placement[:3, :3] @ joint.axis
    return Motor(**({"carrier": joint.parent, "axis": along} | values), source=where)


def _has(transmission: Any, tag: str) -> bool:
    return next(transmission.iter(tag), None) is not None


def _value(transmission: Any, tag: str, where: str) -> Any:
    """Return the value of an element, which has it as text or as an attribute: a number, an axis or a name."""
    element = next(transmission.iter(tag))
    text = element.get("value") or element.get("xyz") or element.get("link") or element.text or ""
    if tag == "carrier":
        return text.strip()
    count = 3 if tag == "axis" else 1
    try:
        numbers = [number_in(word) for word in text.split()]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        allowed = "a number" if count == 1 else f"{count} numbers"
        raise ModelError(describe(f"<{tag}> is {text!r}", where=where, allowed=allowed))
    return np.array(numbers) if count > 1 else numbers[0]

"""The fingerprint of a mechanism: equal fingerprints mean equal traced functions."""

import hashlib
from dataclasses import fields

import numpy as np

from torsor.hashing import source_hash
from torsor.mechanism import Coupling, Mechanism
from torsor.mechanism.loops import Closure


def fingerprint(mechanism: Mechanism, *more: object) -> str:
    """Return a hash of everything that the traced functions of a mechanism depend on, and of ``more`` (by its repr).

    The source code that traces them is included, so that another version of Torsor does not use cached functions.
    """
    digest = hashlib.sha256(source_hash("spatial", "mechanism", "dynamics").encode())
    digest.update(repr((mechanism.parents, mechanism.coordinates, more)).encode())
    digest.update(mechanism.gravity.tobytes())
    for link, joint in zip(mechanism.links, mechanism.joints, strict=True):
        numbers = (joint.pitch, joint.ratio, joint.offset, joint.smooth, link.mass)
        digest.update(f"{joint.type} {joint.follows} {numbers!r} {joint.spring!r}".encode())
        if joint.motor is not None:  # by index, not by name
            carrier = mechanism.places[joint.motor.carrier].link
            parts = {each.name: getattr(joint.motor, each.name) for each in fields(joint.motor) if each.compare}
            parts |= {"carrier": carrier, "axis": joint.motor.axis.tolist()}
            digest.update(repr(parts).encode())
        arrays = (joint.placement, joint.axis, joint.point, joint.coulomb, joint.viscous, joint.rotor_inertia)
        for array in (*arrays, link.com, link.inertia):
            digest.update(np.asarray(array).tobytes())
    for loop in mechanism.loops:
        digest.update(repr(_ends(mechanism, loop)).encode())
    return digest.hexdigest()


def _ends(mechanism: Mechanism, loop: Closure) -> object:
    """Return the content of a loop, with places and indices instead of names."""
    if isinstance(loop, Coupling):
        return [(mechanism.position_names.index(name), c) for name, c in loop.coefficients.items()], loop.offset
    places = (mechanism.place(end) for end in (loop.a, loop.b))
    return loop.kind, loop.length, [(place.link, place.pose.tobytes()) for place in places]

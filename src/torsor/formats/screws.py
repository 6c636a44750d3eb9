"""Robots described by screw axes and home poses (product of exponentials)."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, frozen_pose, one_of, rows, whole_number
from torsor.base.errors import ModelError, shortened
from torsor.formats.dh import check_floats
from torsor.mechanism import Joint, Link, Mechanism, build
from torsor.spatial import adjoint, inverse_pose, spatial_inertia


def read_screws(
    home: Sequence[ArrayLike],
    screws: Sequence[ArrayLike],
    inertias: Sequence[ArrayLike],
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    frame: Literal["space", "body"] = "space",
    parents: Sequence[int] | None = None,
    name: str = "robot",
    strict: bool = True,
    base: str = "fixed",
) -> Mechanism:
    """Return a mechanism from home poses M_0i (4 x 4), screw axes S_i (6) and spatial inertias G_i (6 x 6).

    G_i is expressed in the frame of link i, which may be anywhere on the link. Screw axes are in the space frame at the
    home position, or in the link frame with ``frame="body"``. An axis (omega, v) has |omega| = 1, or omega = 0 and
    |v| = 1. ``parents`` contains the indices of the parent links (-1 for the base), by default those of the previous
    links.
    """
    item = "a list with one array per link"
    home, screws = rows(home, name, "home", item), rows(screws, name, "screws", item)
    inertias, count = rows(inertias, name, "inertias", item), len(screws)
    if not len(home) == len(inertias) == count:
        message = f"there are {len(home)} home poses, {count} screws and {len(inertias)} inertias"
        raise ModelError(message, where=name, allowed="the same number of each")
    one_of(frame, ("space", "body"), name, "frame")
    check_floats(count, base, name)
    parents = list(range(-1, count - 1)) if parents is None else rows(parents, name, "parents", "a list of indices")
    if len(parents) != count:
        raise ModelError(f"{len(parents)} parents", where=name, allowed=f"{count}, one per link")
    poses = [frozen_pose(M, f"{name}: link {i}", "home pose") for i, M in enumerate(home)]
    links, joints = [Link("base")], []
    for i in range(count):
        where = f"{name}: link {i}"
        above = whole_number(parents[i], where, "parent", least=-1, most=i - 1)
        placement = poses[i] if above < 0 else inverse_pose(poses[above]) @ poses[i]
        screw = frozen_array(screws[i], (6,), where, "screw axis")
        body_screw = screw if frame == "body" else adjoint(inverse_pose(poses[i])) @ screw
        kind, axis, point, pitch = _axis(body_screw, where)
        links.append(_link(f"link{i + 1}", frozen_array(inertias[i], (6, 6), where, "spatial inertia"), where, strict))
        parent, child = links[above + 1].name, links[-1].name
        joints.append(Joint(f"joint{i + 1}", kind, parent, child, placement, axis, point, pitch))
    return build(name, links, joints, gravity=gravity, base=base)


def _axis(screw: Array, where: str) -> tuple[str, Array, Array, float]:
    """Return (type, axis, point, pitch) of a screw (omega, v): v = -omega x point + pitch omega."""
    w, v = screw[:3], screw[3:]
    norm_w, norm_v = np.linalg.norm(w), np.linalg.norm(v)
    if norm_w < 1e-9 and abs(norm_v - 1) < 1e-6:
        return "prismatic", v, np.zeros(3), 0.0
    if abs(norm_w - 1) > 1e-6:
        message = f"{shortened(screw.round(6))} has |omega| = {norm_w:.6g}"
        allowed, fix = "1, or 0 with |v| = 1", "divide it by its length"
        raise ModelError(message, argument="screw axis", where=where, allowed=allowed, fix=fix)
    pitch = float(w @ v)
    turns = abs(pitch) <= 1e-12 * max(1.0, float(norm_v))
    return ("revolute", w, np.cross(w, v), 0.0) if turns else ("helical", w, np.cross(w, v), pitch)


def _link(name: str, G: Array, where: str, strict: bool) -> Link:
    """Return the link of a spatial inertia [[J, [m c]], [-[m c], m 1]], with J about the origin of the link frame."""
    tolerance = 1e-12 * float(np.abs(G).max())  # relative: a link of a microgram also has a centre of mass
    allowed, what = "[[J, [m c]], [-[m c], m 1]]: J symmetric, [m c] skew-symmetric, m the mass", "spatial inertia"
    mass, ms = float(G[3, 3]), np.array([G[2, 4], G[0, 5], G[1, 3]])
    if not mass and np.abs(ms).max() > tolerance:
        message = f"has the first moments {shortened(ms)} but no mass"
        raise ModelError(message, argument=what, where=where, allowed=allowed, fix="give G[3:, 3:] = m 1")
    com = ms / mass if np.abs(ms).max() > tolerance else np.zeros(3)
    about_com = G[:3, :3] - mass * (com @ com * np.eye(3) - np.outer(com, com))
    inertia = 0.5 * (about_com + about_com.T) if com.any() else G[:3, :3]
    if not np.allclose(G, spatial_inertia(mass, com, inertia), rtol=1e-9, atol=tolerance):
        raise ModelError("is not that of a rigid body", argument=what, where=where, allowed=allowed)
    return Link(name, mass, com, inertia, strict=strict)

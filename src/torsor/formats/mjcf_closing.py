"""Writing the equality constraints of MJCF: loops, couplings, and joints that follow others."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from torsor.errors import ModelError, describe
from torsor.formats.xml_writing import add
from torsor.mechanism import Coupling, Joint, Loop, Mechanism
from torsor.mechanism.assemble import free_name
from torsor.spatial import make_pose, to_quaternion

__all__ = ["write_equalities"]

_LEVER = 0.1  # m between the two points that hold an axis
_KINDS = {"weld": ("weld",), "spherical": ("connect",), "revolute": ("connect", "connect")}


def write_equalities(
    root: ET.Element, bodies: dict[str, ET.Element], mechanism: Mechanism, joints: Sequence[Joint], source: str
) -> None:
    """Add <equality> for loops, couplings and ``joints`` that follow, with sites in the ``bodies`` where they end."""
    followers = [joint for joint in joints if joint.follows]
    if not (followers or mechanism.loops):
        return
    equality = add(root, "equality")
    sites = {frame.name for frame in mechanism.frames}
    names: set[str] = {loop.name for loop in mechanism.loops}
    for loop in mechanism.loops:
        if isinstance(loop, Coupling):
            _coupling(equality, loop, source)
        else:
            _loop(equality, loop, bodies, mechanism, sites, names, source)
    for joint in followers:
        name = free_name(f"{joint.name}/follows", names)
        names.add(name)
        polynomial = [joint.offset, joint.ratio, 0, 0, 0]
        add(equality, "joint", name=name, joint1=joint.name, joint2=joint.coordinate, polycoef=polynomial)


def _coupling(equality: ET.Element, coupling: Coupling, source: str) -> None:
    (first, share), *others = coupling.shares.items()
    if len(others) > 1:
        found = f"coupling {coupling.name!r} is of {len(others) + 1} coordinates"
        raise ModelError(describe(found, where=source, allowed="1 or 2 in MJCF", fix="save as .toml"))
    second = others[0][0] if others else None
    polynomial = [coupling.offset / share, -others[0][1] / share if others else 0, 0, 0, 0]
    add(equality, "joint", name=coupling.name, joint1=first, joint2=second, polycoef=polynomial)


def _loop(
    equality: ET.Element,
    loop: Loop,
    bodies: dict[str, ET.Element],
    mechanism: Mechanism,
    sites: set[str],
    names: set[str],
    source: str,
) -> None:
    """Add a loop between the sites of its frames; an axis is held by a second point on it."""
    if loop.kind not in _KINDS:
        found = f"loop {loop.name!r} is {loop.kind}"
        raise ModelError(describe(found, where=source, allowed=f"{', '.join(_KINDS)} in MJCF", fix="save as .toml"))
    links = {frame.name: frame for frame in mechanism.frames}
    for k, tag in enumerate(_KINDS[loop.kind]):
        ends = []
        for end, word in ((loop.a, "a"), (loop.b, "b")):
            if end in links and not k:
                ends.append(end)
                continue
            link, pose = (links[end].link, links[end].pose) if end in links else (end, make_pose())
            p = pose[:3, 3] + k * _LEVER * pose[:3, 2]
            w_last = to_quaternion(pose[:3, :3])
            site = free_name(f"{loop.name}/{word}{k or ''}", sites | set(mechanism.places))
            sites.add(site)
            add(bodies[link], "site", name=site, pos=p, quat=[w_last[3], *w_last[:3]])
            ends.append(site)
        name = loop.name if not k else free_name(f"{loop.name}/axis", names)
        names.add(name)
        add(equality, tag, name=name, site1=ends[0], site2=ends[1])

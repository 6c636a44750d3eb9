"""Writing loops, couplings and followers as equality constraints of MJCF."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from torsor.errors import ModelError, describe
from torsor.formats.names import claim_name
from torsor.formats.xml_writing import add_element
from torsor.mechanism import Coupling, Joint, Loop, Mechanism
from torsor.spatial import make_pose, to_quaternion

_LEVER = 0.1  # m between the two points on the axis of a revolute joint
# The constraints of each kind of loop: a revolute joint is two points on its axis.
_CONSTRAINTS = {"weld": ("weld",), "spherical": ("connect",), "revolute": ("connect", "connect")}


def write_equalities(
    root: ET.Element, bodies: dict[str, ET.Element], mechanism: Mechanism, joints: Sequence[Joint], source: str
) -> None:
    """Add <equality> for loops, couplings and followers among ``joints``, with sites in the ``bodies`` at loop ends."""
    followers = [joint for joint in joints if joint.follows]
    if not (followers or mechanism.loops):
        return
    equality = add_element(root, "equality")
    places: set[str] = set(mechanism.places)
    names: set[str] = {loop.name for loop in mechanism.loops}
    for loop in mechanism.loops:
        if isinstance(loop, Coupling):
            _write_coupling(equality, loop, source)
        else:
            _write_loop(equality, loop, bodies, mechanism, places, names, source)
    for joint in followers:
        name, polynomial = claim_name(f"{joint.name}/follows", names), [joint.offset, joint.ratio, 0, 0, 0]
        add_element(equality, "joint", name=name, joint1=joint.name, joint2=joint.coordinate, polycoef=polynomial)


def _write_coupling(equality: ET.Element, coupling: Coupling, source: str) -> None:
    (first, c), *others = coupling.coefficients.items()
    if len(others) > 1:
        found = f"coupling {coupling.name!r} has {len(others) + 1} coordinates"
        raise ModelError(describe(found, where=source, allowed="1 or 2 in MJCF", fix="save as .toml"))
    second = others[0][0] if others else None
    polynomial = [coupling.offset / c, -others[0][1] / c if others else 0, 0, 0, 0]
    add_element(equality, "joint", name=coupling.name, joint1=first, joint2=second, polycoef=polynomial)


def _write_loop(
    equality: ET.Element,
    loop: Loop,
    bodies: dict[str, ET.Element],
    mechanism: Mechanism,
    places: set[str],
    names: set[str],
    source: str,
) -> None:
    """Add the constraints of a loop between sites; ``places`` and ``names`` are the names in use."""
    if loop.kind not in _CONSTRAINTS:
        found, allowed = f"loop {loop.name!r} is {loop.kind}", f"{', '.join(_CONSTRAINTS)} in MJCF"
        raise ModelError(describe(found, where=source, allowed=allowed, fix="save as .toml"))
    frames = {frame.name: frame for frame in mechanism.frames}
    for k, tag in enumerate(_CONSTRAINTS[loop.kind]):
        ends = []
        for end, letter in ((loop.a, "a"), (loop.b, "b")):
            if end in frames and not k:  # the site of the frame itself
                ends.append(end)
                continue
            link, pose = (frames[end].link, frames[end].pose) if end in frames else (end, make_pose())
            site, (x, y, z, w) = claim_name(f"{loop.name}/{letter}{k or ''}", places), to_quaternion(pose[:3, :3])
            point = pose[:3, 3] + k * _LEVER * pose[:3, 2]
            add_element(bodies[link], "site", name=site, pos=point, quat=[w, x, y, z])
            ends.append(site)
        name = claim_name(f"{loop.name}/axis", names) if k else loop.name
        add_element(equality, tag, name=name, site1=ends[0], site2=ends[1])

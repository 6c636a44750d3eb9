"""Robots with flexible links: an arm of two beams, the same arm as rigid segments, and a continuous eel."""

from typing import Any

import numpy as np

from torsor.base.checks import number, whole_number
from torsor.library.shapes import ball, cylinder, disc, with_visuals
from torsor.mechanism import Joint, Link
from torsor.mechanism.flexible_links import beam, with_beam, with_rod
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.spatial import make_pose

# Length (m), mass (kg) and bending stiffness (N m^2) of each arm link, an aluminium tube of 30 mm.
LENGTH, MASS, BENDING = 1.0, 1.0, 200.0


def flexible_arm(modes: Any = (2, 0), payload: float = 0.5, damping: float = 0.0) -> Robot:
    """Return an arm with two flexible links (1 m, 1 kg each), joints about z, and a ``payload`` (kg) at its tip.

    ``modes`` are the numbers of modes of each link (``flexible_links.beam``), by default two in the horizontal plane,
    and ``damping`` is their damping ratio. With locked joints, the first two natural frequencies agree with those of
    the continuous arm to within a relative error of 2e-3.

    Example:
        >>> arm = flexible_arm()
        >>> arm.coordinate_names
        ('joint1', 'beam1/1', 'beam1/2', 'joint2', 'beam2/1', 'beam2/2')
    """
    load = number(payload, "flexible_arm", "payload", least=0)
    settings: dict[str, Any] = {"length": LENGTH, "mass": MASS, "bending": BENDING, "modes": modes, "damping": damping}
    carried = MASS + load, (MASS / 3 + load) * LENGTH**2
    inner = beam(**settings, carries=carried, coordinates="tip")
    outer = beam(**settings, tip_mass=load)
    # The hub of the second link keeps the mass matrix regular until the beam is added.
    hubs = [Link("base"), Link("link1", 0.1, inertia=1e-4 * np.eye(3))]
    arm = build("flexible_arm", hubs, [Joint("joint1", "revolute", "base", "link1")])
    arm = with_beam(arm, "link1", inner, "beam1")
    elbow = [Link("elbow"), Link("link2", 0.1, inertia=1e-4 * np.eye(3))]
    arm = arm.attach(build("outer", elbow, [Joint("joint2", "revolute", "elbow", "link2")]), "beam1/tip")
    return with_beam(arm, "link2", outer, "beam2")


def segmented_arm(segments: int = 10, payload: float = 0.5, spatial: bool = False) -> Robot:
    """Return the arm of ``flexible_arm`` with each link modelled as a chain of rigid segments and springs.

    The first and last segments of a link are half as long as the others. ``payload`` is in kg. With ``spatial=True``,
    segments also bend about y.

    Example:
        >>> arm = segmented_arm()
        >>> arm.nv, round(arm.mass, 9)
        (20, 2.7)
    """
    n = whole_number(segments, "segmented_arm", "segments", least=3)
    step, links, joints = LENGTH / (n - 1), [Link("base")], list[Joint]()
    parent, reach = "base", 0.0
    for k in (1, 2):
        for i in range(n):
            length, name = step / 2 if i in (0, n - 1) else step, f"link{k}" if i == 0 else f"link{k}/{i}"
            mass = MASS * length / LENGTH
            if i and spatial:
                links.append(Link(f"{name}/y"))
                place = make_pose(p=[reach, 0.0, 0.0])
                axis = np.array([0, 1, 0])
                joints.append(Joint(f"spring{k}/{i}/y", "revolute", parent, f"{name}/y", place, axis=axis))
                parent, reach = f"{name}/y", 0.0
            links.append(Link(name, mass, np.array([length / 2, 0, 0]), mass * length**2 / 12 * np.diag([0, 1, 1])))
            joint = f"joint{k}" if i == 0 else f"spring{k}/{i}"
            joints.append(Joint(joint, "revolute", parent, name, make_pose(p=[reach, 0.0, 0.0])))
            parent, reach = name, length
    arm = build("segmented_arm", links, joints)
    for hub in ("link1", "link2"):
        arm = arm.with_payload(hub, 0.1, inertia=1e-4 * np.eye(3))
    load = number(payload, "segmented_arm", "payload", least=0)
    arm = arm.with_frame("tip", parent, make_pose(p=[reach, 0.0, 0.0])).with_payload(parent, load, [reach, 0.0, 0.0])
    for hinge in arm.joints:
        if hinge.name.startswith("spring"):
            arm = arm.with_spring(hinge.name, BENDING / step)
    return arm


def continuous_eel(
    length: float = 1.2, radius: float = 0.03, density: float = 1000.0, modes: Any = (4, 2, 1), sections: int = 12
) -> Robot:
    """Return an eel as one flexible rod behind a head, with a free base and the density of water.

    It is the limit of ``eel`` for many links; ``length`` and ``radius`` are in m, and ``density`` is in kg/m^3. The
    body has strain modes (``flexible_links.with_rod``; ``modes`` are their numbers) for lateral (y) bending, vertical
    bending and torsion, with the stiffness of muscle (Young's modulus 0.1 MPa). The head is at the origin and swims
    towards -x. Gravity and buoyancy cancel. Pass fluid forces as ``external``, one wrench for each of the ``sections``.

    Example:
        >>> robot = continuous_eel()
        >>> robot.nv, round(robot.mass, 2), robot.coordinate_names[6]
        (13, 3.45, 'body/y1')
    """
    mass, area_moment = density * np.pi * radius**2 * length, np.pi * radius**4 / 4
    head_mass = density * 2 / 3 * np.pi * radius**3
    head = Link("head", head_mass, np.array([-3 / 8 * radius, 0.0, 0.0]), cylinder(head_mass, radius, radius, 0))
    swimmer = build("continuous_eel", [head], [], gravity=(0.0, 0.0, 0.0), base="floating")
    EI = 1e5 * area_moment
    settings: dict[str, Any] = {"radius": radius, "torsion": EI / 1.5, "damping": 0.02, "name": "body"}
    robot = with_rod(swimmer, "head", length, mass, EI, modes, sections=sections, **settings)
    shares = {link.name: link.mass / mass for link in robot.links if link.name.startswith("body/") and link.mass > 0}
    colour = (0.16, 0.38, 0.38)
    visuals = {name: [disc((0, 0, 0), 0, radius, share * length, colour, "capsule")] for name, share in shares.items()}
    return with_visuals(robot, visuals | {"head": [ball((0, 0, 0), 1.1 * radius, colour)]})

"""Robots with rods by strain modes: slender bodies that bend far, such as eel-like and continuum robots."""

from typing import Any, TypeVar

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, instance_of, name_of, number, positive, positive_vector, whole_number
from torsor.base.errors import ModelError, describe
from torsor.mechanism.edit import rebuilt
from torsor.mechanism.mechanism import Mechanism, carrier
from torsor.mechanism.parts import Joint, Link
from torsor.mechanism.rods import RodSection
from torsor.spatial import make_pose

M = TypeVar("M", bound=Mechanism)
MOST_MODES = 12  # of each strain
MOST_SECTIONS = 100


def with_rod(
    robot: M,
    at: str,
    length: float,
    mass: float,
    bending: ArrayLike,
    modes: Any = (3, 0),
    torsion: float | None = None,
    stretch: float | None = None,
    radius: float = 0.0,
    damping: float = 0.0,
    curvature: ArrayLike = (0.0, 0.0, 0.0),
    sections: int = 10,
    name: str = "rod",
) -> M:
    """Return the robot with a uniform rod that is clamped at a link or frame, along its x axis.

    ``length`` is in m, ``mass`` in kg, ``bending`` the stiffness EI (N m^2): one number, or one for bending along y
    (about z) and one along z (about -y). ``torsion`` is GJ (N m^2), ``stretch`` is EA (N). ``modes`` are the numbers of
    polynomials of each strain: (bending along y, along z, torsion, stretch), the last ones may be left out. ``radius``
    (m) of a round rod gives its sections inertia, ``damping`` (s) is the time that multiplies the stiffness, and
    ``curvature`` (3,) rad/m that of the rod at rest, about x, y, z. The mass is that of ``sections`` small bodies at
    the points of a Gauss quadrature, the links ``name/1`` to ``name/N``; ``name/tip`` is the end.

    Coordinates are angles: ``name/y1`` is the angle (rad) by which the whole rod bends about z, ``name/y2`` is the
    amplitude of a curvature that grows linearly from one end to the other, and so on: the strain is the sum of
    P_j(s) q_j / length with Legendre polynomials P_j. A stretch is in m.

    Example:
        >>> import torsor
        >>> base = torsor.build("rod", [torsor.Link("ground")], [])
        >>> robot = with_rod(base, "ground", length=1.0, mass=0.1, bending=1.0, modes=(1, 0), sections=3)
        >>> tip = robot.pose([np.pi / 2], "rod/tip")[:3, 3]  # a quarter of a circle
        >>> (np.pi * tip).round(9).tolist()
        [2.0, 2.0, 0.0]
    """
    instance_of(robot, Mechanism, "with_rod", "robot")
    where = f"{robot.name}: rod {name_of(name, 'rod', robot.name)!r}"
    length, mass = positive(length, where, "length"), positive(mass, where, "mass")
    counts = _counts(modes, where)
    EI = positive_vector(bending, 2, where, "bending").tolist()
    given = {"torsion": torsion, "stretch": stretch}
    for (what, value), count in zip(given.items(), counts[2:], strict=True):
        if count and value is None:
            raise ModelError(describe(f"modes of {what} without a stiffness", where=where, fix=f"give {what}="))
    rest = [0.0 if value is None else positive(value, where, what) for what, value in given.items()]
    N = whole_number(sections, where, "sections", most=MOST_SECTIONS)
    if max(counts) > N:
        found, fix = f"{max(counts)} modes at {N} sections", "give more sections="
        raise ModelError(describe(found, where=where, allowed="no more modes of a strain than sections", fix=fix))
    place = robot.place(at)
    names = [*(f"{name}/{k + 1}" for k in range(N)), f"{name}/tip"]
    taken = {*robot.places, *robot.joint_names} & {name, *names}
    if taken:
        raise ModelError(describe(f"the robot has {sorted(taken)[0]!r} already", where=where, fix="give another name="))
    kappa = frozen_array(curvature, (3,), where, "curvature")
    strain: dict[str, Any] = {"length": length, "counts": counts, "rest": np.array([*kappa, 1.0, 0.0, 0.0])}
    strain |= {"stiffness": np.array([*EI, *rest]), "damping": number(damping, where, "damping", least=0)}
    r = number(radius, where, "radius", least=0)
    nodes, weights = leggauss(N)
    s: Array = np.concatenate([[0.0], (nodes + 1) / 2 * length, [length]])
    links, joints = [robot.base, *robot.links], list(robot.joints)
    parent, pose = carrier(robot, place).name, place.pose
    for k, link in enumerate(names):
        m = mass * float(weights[k]) / 2 if k < N else 0.0
        links.append(Link(link, m, inertia=m * r**2 * np.diag([0.5, 0.25, 0.25])))
        part = RodSection(float(s[k]), float(s[k + 1]), **strain)
        own = name if k == 0 else f"{name}/{k + 1}"
        joints.append(Joint(own, "flexible", parent, link, pose, coordinate=name, flexible=part))
        parent, pose = link, make_pose()
    return rebuilt(robot, links, joints, list(robot.frames))


def _counts(modes: Any, where: str) -> tuple[int, int, int, int]:
    """Return the numbers of modes of bending along y, along z, of torsion and of stretch."""
    given = list(modes) if isinstance(modes, (list, tuple, np.ndarray)) and np.ndim(modes) == 1 else [modes]
    if not 1 <= len(given) <= 4:
        allowed = "one to four numbers: bending along y, along z, torsion, stretch"
        raise ModelError(describe(f"modes is {modes!r}", where=where, allowed=allowed))
    y, z, x, s = (whole_number(each, where, "modes", least=0, most=MOST_MODES) for each in [*given, 0, 0, 0][:4])
    if not y + z + x + s:
        raise ModelError(describe("no mode at all", where=where, allowed="at least one", fix="a rigid link has none"))
    return y, z, x, s

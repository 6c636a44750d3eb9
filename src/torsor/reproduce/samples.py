"""Random robots in the conventions of the documents, each with its library equivalent.

The robots use every parameter that a table in the document can contain, with branches and prismatic joints where
possible, and each has a state. They are deterministic. The library robots are evaluated in the CasADi virtual machine,
because each function is called only once.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.formats import DHLink, MDHLink
from torsor.mechanism import Frame, Joint, Link
from torsor.reproduce.equations import barman, guarino, hua, khalil, lie
from torsor.robot.load import build, from_dh, from_mdh, from_screws
from torsor.robot.robot import Robot
from torsor.spatial import composite, from_rpy, make_pose

JOINTS = (True, False, True, True)  # revolute or not
MASS, SIZE, ANGLE = (0.5, 3.0), 0.4, 1.4  # kg, m, rad


def _inertia(rng: np.random.Generator) -> Array:
    """Return the inertia (3, 3) of ten random 1 kg point masses about their centre of mass."""
    points = rng.normal(size=(10, 3)) * rng.uniform(0.05, 0.2, 3)
    points -= points.mean(axis=0)
    return np.array(sum(p @ p * np.eye(3) - np.outer(p, p) for p in points))


def about_origin(mass: float, com: Array, inertia: Array) -> Array:
    """Return an inertia about the origin from the inertia about the centre of mass."""
    return np.array(inertia + mass * (com @ com * np.eye(3) - np.outer(com, com)))


def _bodies(rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
    return rng.uniform(*MASS, n), rng.uniform(-SIZE, SIZE, (n, 3)), np.array([_inertia(rng) for _ in range(n)])


def _gravity(rng: np.random.Generator) -> Array:
    return np.array([0.0, 0.0, -9.81]) + rng.uniform(-1, 1, 3)


def _links(parents: Sequence[int], joints: Sequence[str], columns: Mapping[str, Any]) -> list[MDHLink]:
    return [
        MDHLink(parent, joint=joint, **{name: column[j] for name, column in columns.items()})
        for j, (parent, joint) in enumerate(zip(parents, joints, strict=True))
    ]


class Standard(NamedTuple):
    """A chain in standard Denavit-Hartenberg parameters, a state, and the load of link 2 on the environment."""

    data: barman.Robot
    robot: Robot
    state: tuple[Array, Array, Array]
    load: barman.Load
    external: Array  # the same load, on the robot, in link axes


@cache
def standard() -> Standard:
    """Return the chain of Barman 2020."""
    rng, n = np.random.default_rng(1), len(JOINTS)
    m, r, inertia = _bodies(rng, n)
    theta, alpha = rng.uniform(-ANGLE, ANGLE, (2, n))
    d, a = rng.uniform(-SIZE, SIZE, (2, n))
    data = barman.Robot(np.array(JOINTS), theta, d, a, alpha, r, m, inertia, _gravity(rng))
    rows = zip(data.revolute, theta, d, a, alpha, r, m, inertia, strict=True)
    links = [
        DHLink(t, dj, aj, al, joint="revolute" if turns else "prismatic", mass=mj, com=c, inertia=J)
        for turns, t, dj, aj, al, c, mj, J in rows
    ]
    robot = from_dh(links, gravity=data.g).to(device="casadi")
    q, v, a_ = rng.normal(size=(3, n))
    k, arm = 2, rng.uniform(-SIZE, SIZE, 3)
    force, moment = 10 * rng.normal(size=(2, 3))
    external, R = np.zeros((n, 6)), robot.poses(q)[k, :3, :3]
    external[k] = -np.concatenate([R.T @ moment + np.cross(arm, R.T @ force), R.T @ force])
    return Standard(data, robot, (q, v, a_), barman.Load(k, force, moment, arm), external)


def standard_chain(n: int) -> barman.Robot:
    """Return a chain of n revolute joints in standard Denavit-Hartenberg parameters, none of which is zero."""
    rng = np.random.default_rng(n)
    m, r, inertia = _bodies(rng, n)
    theta, alpha = rng.uniform(-ANGLE, ANGLE, (2, n))
    d, g = np.full(n, 0.25), np.array([0.0, 0.0, -9.81])  # with a power of two, products with d are exact
    return barman.Robot(np.ones(n, dtype=bool), theta, d, rng.uniform(0.1, SIZE, n), alpha, r, m, inertia, g)


class Modified(NamedTuple):
    """A chain in modified Denavit-Hartenberg parameters, and a motion q, v, a, j."""

    data: guarino.Robot
    robot: Robot
    motion: tuple[Array, Array, Array, Array]


@cache
def modified() -> Modified:
    """Return the chain of Guarino Lo Bianco 2009."""
    rng, n = np.random.default_rng(2), len(JOINTS)
    m, c, inertia = _bodies(rng, n)
    theta, alpha = rng.uniform(-ANGLE, ANGLE, (2, n))
    d, a = rng.uniform(-SIZE, SIZE, (2, n))
    data = guarino.Robot(np.array(JOINTS), a, alpha, theta, d, m, c, inertia, _gravity(rng))
    columns = {"alpha": alpha, "d": a, "theta": theta, "r": d, "mass": m, "com": c, "inertia": inertia}
    links = _links(range(-1, n - 1), ["revolute" if turns else "prismatic" for turns in JOINTS], columns)
    q, v, acceleration, jerk = rng.normal(size=(4, n))
    return Modified(data, from_mdh(links, gravity=data.g).to(device="casadi"), (q, v, acceleration, jerk))


class Screws(NamedTuple):
    """A chain described by screws, and a state."""

    data: lie.Robot
    robot: Robot
    state: tuple[Array, Array, Array]


@cache
def screws() -> Screws:
    """Return the chain of the Lie-algebra notes."""
    rng, n = np.random.default_rng(3), len(JOINTS)
    m, _, inertia = _bodies(rng, n)
    M = np.array([make_pose(from_rpy(rng.uniform(-1, 1, 3)), rng.uniform(-SIZE, SIZE, 3)) for _ in range(n)])
    S = []
    for turns in JOINTS:
        z, place = rng.normal(size=3), rng.uniform(-SIZE, SIZE, 3)
        z /= np.linalg.norm(z)
        S.append(np.concatenate([z, -np.cross(z, place)] if turns else [np.zeros(3), z]))
    data = lie.Robot(M, np.array(S), m, inertia, _gravity(rng))
    none = np.zeros((3, 3))
    G = [np.block([[J, none], [none, mass * np.eye(3)]]) for mass, J in zip(m, inertia, strict=True)]
    q, v, a = rng.normal(size=(3, n))
    return Screws(data, from_screws(list(M), list(data.S), G, gravity=data.g).to(device="casadi"), (q, v, a))


class Tree(NamedTuple):
    """A tree described by six parameters per joint, on a fixed and a free base, with a state and loads."""

    data: khalil.Robot
    robot: Robot
    state: tuple[Array, Array, Array]
    fe: Array
    me: Array
    base: khalil.Base
    floating: Robot

    @property
    def wrenches(self) -> Array:
        """The loads that links exert on their environment, (force, moment)."""
        return np.hstack([self.fe, self.me])

    @property
    def external(self) -> Array:
        """The loads on the links, (moment, force)."""
        return -np.hstack([self.me, self.fe])


@cache
def tree(n: int = 6) -> Tree:
    """Return the tree of Khalil 2010: link 1 carries links 2 and 3, and so on; one joint in four is prismatic."""
    rng = np.random.default_rng(4)
    m, c, inertia = _bodies(rng, n)
    parents = np.array([-1, *((j - 1) // 2 for j in range(1, n))])
    sigma = (np.arange(n) % 4 == 1).astype(int)
    angles, lengths = rng.uniform(-ANGLE, ANGLE, (3, n)), rng.uniform(-SIZE, SIZE, (3, n))
    Ia, Fs, Fv = rng.uniform(0, 0.3, (3, n))
    J = np.array([about_origin(*body) for body in zip(m, c, inertia, strict=True)])
    (gamma, alpha, theta), (b, d, r), g = angles, lengths, _gravity(rng)
    data = khalil.Robot(parents, sigma, gamma, b, alpha, d, theta, r, m, m[:, None] * c, J, Ia, Fs, Fv, g)
    geometry = {name: getattr(data, name) for name in ("gamma", "b", "alpha", "d", "theta", "r")}
    columns = {"mass": m, "com": c, "inertia": inertia, "rotor_inertia": Ia, "coulomb": Fs, "viscous": Fv}
    kinds = ["prismatic" if slides else "revolute" for slides in sigma]
    robot = from_mdh(_links(parents.tolist(), kinds, geometry | columns), gravity=g)
    q, v, a = rng.normal(size=(3, n))
    fe, me = 10 * rng.normal(size=(2, n, 3))
    root = 5.0, rng.uniform(-SIZE, SIZE, 3), _inertia(rng)
    base = khalil.Base(root[0], root[0] * root[1], about_origin(*root), rng.normal(size=3), np.zeros(6))
    body = Link(robot.base.name, *root)
    floating = build("floating_tree", [body, *robot.links], robot.joints, gravity=g, base="floating")
    return Tree(data, robot.to(device="casadi"), (q, v, a), fe, me, base, floating.to(device="casadi"))


class Mixed(NamedTuple):
    """A chain with rigid and elastic joints and motors on other links, and a motion of joints and motors."""

    data: hua.Robot
    robot: Robot
    joints: tuple[Array, Array, Array]
    motors: tuple[Array, Array, Array]  # used at elastic joints

    @property
    def state(self) -> tuple[Array, Array, Array]:
        """The motion (q, v, a) of the library's coordinates."""
        elastic = self.data.K > 0
        q, v, a = (np.concatenate([x, y[elastic]]) for x, y in zip(self.joints, self.motors, strict=True))
        return q, v, a


@cache
def mixed() -> Mixed:
    """Return the chain of Hua et al. 2022: joints 2 and 4 are elastic, and no motor is on the link it drives."""
    rng, n = np.random.default_rng(5), 4
    m, c, inertia = _bodies(rng, n)
    Rfix = np.array([from_rpy(rng.uniform(-1, 1, 3)) for _ in range(n)])
    r, r_tip = rng.uniform(-SIZE, SIZE, (n, 3)), rng.uniform(-SIZE, SIZE, 3)
    carrier, K, eta = (0, 1, 1, 2), np.array([0.0, 100.0, 0.0, 150.0]), rng.uniform(5, 20, n)
    Iz, zm, g = rng.uniform(2e-4, 6e-4, n), rng.normal(size=(n, 3)), np.array([0.0, 0.0, -9.81])
    zm /= np.linalg.norm(zm, axis=1)[:, None]
    bodies = [(float(m[i]), c[i], inertia[i]) for i in range(n)]
    for k, on in enumerate(carrier):
        if on:  # the mass of a motor, its rotor as if locked: about its axis Iz, across it 1.5 Iz
            rotor = Iz[k] * (1.5 * np.eye(3) - 0.5 * np.outer(zm[k], zm[k]))
            bodies[on - 1] = composite(bodies[on - 1], (0.5, rng.uniform(-SIZE, SIZE, 3), rotor))
    m, c, inertia = (np.array(each) for each in zip(*bodies, strict=True))
    data = hua.Robot(Rfix, r, r_tip, m, c, inertia, carrier, eta, Iz, zm, K, g)
    links = [Link("base"), *(Link(f"link{i + 1}", m[i], c[i], inertia[i]) for i in range(n))]
    joints = [
        Joint(f"joint{i + 1}", "revolute", links[i].name, links[i + 1].name, make_pose(Rfix[i], r[i]), Rfix[i].T[:, 2])
        for i in range(n)
    ]
    robot = build("mixed", links, joints, [Frame("tip", "link4", make_pose(p=r_tip))], gravity=g)
    for i in range(n):
        motor = float(Iz[i]), float(eta[i]), links[carrier[i]].name, zm[i]
        robot = robot.with_motor(joints[i].name, *motor, stiffness=float(K[i]) or None)
    (q, v, a), (bent, w, b) = rng.normal(size=(3, n)), rng.normal(size=(3, n))
    theta = q + 0.01 * bent  # springs of some N m
    return Mixed(data, robot.to(device="casadi"), (q, v, a), (theta, w, b))

"""Random robots in every convention: both of Denavit and Hartenberg, screws, URDF, and trees of six parameters.

The library's robots compute in CasADi's virtual machine: each function is called once, and would be compiled for that.
"""

from typing import NamedTuple

import numpy as np

import torsor
from torsor.reproduce.equations import barman, guarino, khalil, lie

# Poses, wrenches and inertias


def pose(R=None, p=(0, 0, 0)):
    R = np.eye(3) if R is None else R
    return np.block([[R, np.reshape(p, (3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])


def turn(axis, angle):
    """Rotation matrix about the x (0), y (1) or z (2) axis."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i] = R[j, j] = np.cos(angle)
    R[j, i], R[i, j] = np.sin(angle), -np.sin(angle)
    return R


def random_rotation(rng):
    return turn(2, rng.uniform(-3, 3)) @ turn(1, rng.uniform(-1.4, 1.4)) @ turn(0, rng.uniform(-3, 3))


def random_inertia(rng):
    """Inertia of a body about its centre of mass: that of ten random points."""
    points = rng.normal(size=(10, 3)) * rng.uniform(0.05, 0.2, 3)
    points -= points.mean(axis=0)
    return sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)


def carry(T, wrench):
    """Components in a frame of a wrench (moment, force) given in another frame, whose pose in the first is T."""
    force = T[:3, :3] @ wrench[3:]
    return np.concatenate([T[:3, :3] @ wrench[:3] + np.cross(T[:3, 3], force), force])


def about_origin(m, c, inertia):
    return inertia + m * (c @ c * np.eye(3) - np.outer(c, c))


# A serial robot, in every convention


class Described(NamedTuple):
    """A robot in one convention, and the poses of the standard frames in its link frames."""

    robot: torsor.Robot
    frames: list

    def in_link_axes(self, wrenches):
        return np.array([carry(T, w) for T, w in zip(self.frames, wrenches, strict=True)])

    def in_standard_axes(self, wrenches):
        return np.array([carry(np.linalg.inv(T), w) for T, w in zip(self.frames, wrenches, strict=True)])


class Serial:
    """A random serial robot in standard Denavit-Hartenberg parameters, and its translations."""

    def __init__(self, n, seed):
        rng = np.random.default_rng([n, seed])
        self.n, self.rng = n, rng
        self.dh = barman.Robot(
            revolute=rng.random(n) < 0.7,
            theta=rng.uniform(-3, 3, n),
            d=rng.uniform(-0.5, 0.5, n),
            a=rng.uniform(-0.5, 0.5, n),
            alpha=rng.uniform(-3, 3, n),
            r=rng.uniform(-0.3, 0.3, (n, 3)),
            m=rng.uniform(0.5, 3, n),
            I=np.array([random_inertia(rng) for _ in range(n)]),
            g=np.array([0, 0, -9.81]) + rng.uniform(-1, 1, 3),
        )
        self.state = tuple(rng.normal(size=(3, n)))
        self.external = rng.normal(size=(n, 6)) * 10  # environment on link j, at O_j in the standard frame j
        self.tip = np.zeros((n, 6))
        self.tip[-1] = rng.normal(size=6) * 10

    # A standard frame j is at the far end of link j, and joint j moves about z of frame j-1:
    #     frame j = frame j-1 . Rot(z, theta_j) Trans(z, d_j) . Trans(x, a_j) Rot(x, alpha_j).
    # Split where the dots are: the frame after the first two factors moves with link j and has its z on the axis of
    # joint j, so it is the modified frame j. It follows from the modified frame j-1 by the last two factors of link j-1
    # (its a and alpha) and the first two of link j; the first link has a = alpha = 0. E_j, the last two factors of link
    # j, is the pose of the standard frame j in the modified frame j, and moves centres of mass, inertias and wrenches.

    @property
    def E(self):
        return [pose(turn(0, alpha), (a, 0, 0)) for a, alpha in zip(self.dh.a, self.dh.alpha, strict=True)]

    @property
    def mdh(self):
        dh, E = self.dh, self.E
        return guarino.Robot(
            revolute=dh.revolute,
            a=np.concatenate([[0], dh.a[:-1]]),
            alpha=np.concatenate([[0], dh.alpha[:-1]]),
            theta=dh.theta,
            d=dh.d,
            m=dh.m,
            c=np.array([T[:3, :3] @ r + T[:3, 3] for T, r in zip(E, dh.r, strict=True)]),
            I=np.array([T[:3, :3] @ J @ T[:3, :3].T for T, J in zip(E, dh.I, strict=True)]),
            g=dh.g,
        )

    @property
    def tree(self):
        mdh, zero = self.mdh, np.zeros(self.n)
        J = np.array([about_origin(*body) for body in zip(mdh.m, mdh.c, mdh.I, strict=True)])
        return khalil.Robot(
            antecedent=np.arange(self.n) - 1,
            sigma=1 - mdh.revolute.astype(int),
            gamma=zero,
            b=zero,
            alpha=mdh.alpha,
            d=mdh.a,
            theta=mdh.theta,
            r=mdh.d,
            M=mdh.m,
            MS=mdh.m[:, None] * mdh.c,
            J=J,
            Ia=zero,
            Fs=zero,
            Fv=zero,
            g=mdh.g,
        )

    @property
    def screws(self):
        """Home poses at the centres of mass, with the axes of the standard frames; axes z of the frames before."""
        dh, T = self.dh, np.eye(4)
        M, S = [], []
        for j in range(self.n):
            z, origin = T[:3, 2], T[:3, 3]
            S.append(np.concatenate([z, np.cross(origin, z)] if dh.revolute[j] else [np.zeros(3), z]))
            T = T @ pose(turn(2, dh.theta[j]), (0, 0, dh.d[j])) @ self.E[j]
            M.append(T @ pose(p=dh.r[j]))
        return lie.Robot(M=np.array(M), S=np.array(S), m=dh.m, I=dh.I, g=dh.g)

    # The library's robots

    def from_dh(self, **settings):
        dh = self.dh
        links = [
            torsor.DHLink(
                theta=dh.theta[j],
                d=dh.d[j],
                a=dh.a[j],
                alpha=dh.alpha[j],
                joint="revolute" if dh.revolute[j] else "prismatic",
                mass=dh.m[j],
                com=dh.r[j],
                inertia=dh.I[j],
            )
            for j in range(self.n)
        ]
        robot = torsor.from_dh(links, gravity=dh.g, **settings).to(device="casadi")
        return Described(robot, [np.eye(4)] * self.n)

    def from_mdh(self, **settings):
        return Described(library_tree(self.tree, self.mdh.c, self.mdh.I, **settings), self.E)

    def from_screws(self, **settings):
        M, S, m, inertia, g = self.screws
        none = np.zeros((3, 3))
        G = [np.block([[J, none], [none, mj * np.eye(3)]]) for mj, J in zip(m, inertia, strict=True)]
        robot = torsor.from_screws(M, S, G, gravity=g, **settings).to(device="casadi")
        return Described(robot, [pose(p=-r) for r in self.dh.r])

    def from_urdf(self, path):
        """URDF link frames lie on the modified frames but are turned at random, so that every axis is oblique."""
        mdh, parts, frames, before = self.mdh, ['<link name="link0"/>'], [], np.eye(3)
        for j in range(self.n):
            Q = random_rotation(self.rng)
            step = pose(turn(0, mdh.alpha[j]), (mdh.a[j], 0, 0))
            step = pose(before).T @ step @ pose(turn(2, mdh.theta[j]), (0, 0, mdh.d[j])) @ pose(Q)
            kind = "continuous" if mdh.revolute[j] else "prismatic"
            parts.append(urdf_link(j + 1, mdh.m[j], Q.T @ mdh.c[j], Q.T @ mdh.I[j] @ Q))
            parts.append(urdf_joint(j + 1, kind, step, Q[2]))
            frames.append(pose(Q).T @ self.E[j])
            before = Q
        path.write_text(f'<robot name="random">{"".join(parts)}</robot>')
        return Described(torsor.load(path).with_gravity(self.dh.g).to(device="casadi"), frames)


def numbers(values):
    return " ".join(repr(float(value)) for value in values)


def urdf_link(number, m, c, J):
    entries = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), J[np.triu_indices(3)], strict=True)
    moments = " ".join(f'{name}="{float(value)!r}"' for name, value in entries)
    inertial = f'<origin xyz="{numbers(c)}" rpy="0 0 0"/><mass value="{float(m)!r}"/><inertia {moments}/>'
    return f'<link name="link{number}"><inertial>{inertial}</inertial></link>'


def urdf_joint(number, kind, T, axis):
    R = T[:3, :3]
    rpy = np.arctan2(R[2, 1], R[2, 2]), np.arctan2(-R[2, 0], np.hypot(R[2, 1], R[2, 2])), np.arctan2(R[1, 0], R[0, 0])
    return (
        f'<joint name="joint{number}" type="{kind}"><parent link="link{number - 1}"/><child link="link{number}"/>'
        f'<origin xyz="{numbers(T[:3, 3])}" rpy="{numbers(rpy)}"/><axis xyz="{numbers(axis)}"/>'
        '<limit lower="-100" upper="100" effort="1e6" velocity="1e3"/></joint>'
    )


def library_tree(tree, c, inertia, **settings):
    """The library's robot of a tree of the reference, with inertias about the centres of mass."""
    links = [
        torsor.MDHLink(
            int(tree.antecedent[j]),
            gamma=tree.gamma[j],
            b=tree.b[j],
            alpha=tree.alpha[j],
            d=tree.d[j],
            theta=tree.theta[j],
            r=tree.r[j],
            joint="prismatic" if tree.sigma[j] else "revolute",
            mass=tree.M[j],
            com=c[j],
            inertia=inertia[j],
            rotor_inertia=tree.Ia[j],
            coulomb=tree.Fs[j],
            viscous=tree.Fv[j],
        )
        for j in range(len(tree.M))
    ]
    return torsor.from_mdh(links, gravity=tree.g, **settings).to(device="casadi")


# A tree with all six parameters


class Tree:
    def __init__(self, n, seed):
        rng = np.random.default_rng([n, seed, 3])
        m, c = rng.uniform(0.5, 3, n), rng.uniform(-0.3, 0.3, (n, 3))
        inertia = np.array([random_inertia(rng) for _ in range(n)])
        self.reference = khalil.Robot(
            antecedent=np.array([rng.integers(-1, j) if j else -1 for j in range(n)]),
            sigma=(rng.random(n) < 0.3).astype(int),
            gamma=rng.uniform(-3, 3, n),
            b=rng.uniform(-0.5, 0.5, n),
            alpha=rng.uniform(-3, 3, n),
            d=rng.uniform(-0.5, 0.5, n),
            theta=rng.uniform(-3, 3, n),
            r=rng.uniform(-0.5, 0.5, n),
            M=m,
            MS=m[:, None] * c,
            J=np.array([about_origin(*body) for body in zip(m, c, inertia, strict=True)]),
            Ia=rng.uniform(0, 0.2, n),
            Fs=rng.uniform(0, 0.3, n),
            Fv=rng.uniform(0, 0.3, n),
            g=np.array([0, 0, -9.81]) + rng.uniform(-1, 1, 3),
        )
        self.robot = library_tree(self.reference, c, inertia)
        self.state = tuple(rng.normal(size=(3, n)))
        self.external = rng.normal(size=(n, 6)) * 10
        self.fe, self.me = -self.external[:, 3:], -self.external[:, :3]

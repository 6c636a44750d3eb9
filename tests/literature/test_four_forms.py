"""One robot has one dynamics: four published forms and the library agree in every convention that can describe it."""

from typing import NamedTuple

import numpy as np
import pytest

import torsor
from references import denavit_hartenberg, khalil, lie, luh_walker_paul

TOLERANCE = 1e-11
SERIAL = [(n, seed) for n in (1, 2, 3, 4, 6, 7, 9) for seed in (0, 1)]
TREES = [(n, seed) for n in (2, 5, 8, 12) for seed in (0, 1)]


def assert_same(actual, expected):
    """Assert agreement relative to the largest component."""
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


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
        self.dh = denavit_hartenberg.Robot(
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
        return luh_walker_paul.Robot(
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

    def from_dh(self):
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
        return Described(torsor.from_dh(links, gravity=dh.g), [np.eye(4)] * self.n)

    def from_mdh(self):
        return Described(library_tree(self.tree, self.mdh.c, self.mdh.I), self.E)

    def from_screws(self):
        M, S, m, inertia, g = self.screws
        none = np.zeros((3, 3))
        G = [np.block([[J, none], [none, mj * np.eye(3)]]) for mj, J in zip(m, inertia, strict=True)]
        return Described(torsor.from_screws(M, S, G, gravity=g), [pose(p=-r) for r in self.dh.r])

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
        return Described(torsor.load(path).with_gravity(self.dh.g), frames)


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


def library_tree(tree, c, inertia):
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
    return torsor.from_mdh(links, gravity=tree.g)


@pytest.fixture(scope="module", params=SERIAL, ids=lambda p: f"{p[0]}-joints-{p[1]}")
def serial(request, tmp_path_factory):
    case = Serial(*request.param)
    path = tmp_path_factory.mktemp("urdf") / "random.urdf"
    described = {
        "standard DH": case.from_dh(),
        "modified DH": case.from_mdh(),
        "screws": case.from_screws(),
        "URDF": case.from_urdf(path),
    }
    return case, described


def test_the_four_published_forms_agree_under_a_load_at_the_tip(serial):
    """Every form has tip loads; all give what the robot does to its environment, hence the minus."""
    case, _ = serial
    tip = -case.tip[-1]
    R = chain_rotation(case, case.n - 1)
    load = denavit_hartenberg.Load(case.n - 1, R @ tip[3:], R @ tip[:3], np.zeros(3))
    expected = denavit_hartenberg.inverse_dynamics(case.dh, *case.state, load)[0]

    assert_same(lie.inverse_dynamics(case.screws, *case.state, carry(pose(p=-case.dh.r[-1]), tip))[0], expected)
    moment, force = np.split(carry(case.E[-1], tip), 2)
    assert_same(luh_walker_paul.inverse_dynamics(case.mdh, *case.state, force, moment)[0], expected)
    me, fe = np.zeros((2, case.n, 3))
    me[-1], fe[-1] = moment, force
    assert_same(khalil.inverse_dynamics(case.tree, *case.state, fe, me)[0], expected)


def chain_rotation(case, link):
    """0R_k of the standard frames at the case's state."""
    R = np.eye(3)
    for j in range(link + 1):
        theta = case.dh.theta[j] + case.dh.revolute[j] * case.state[0][j]
        R = R @ denavit_hartenberg.rotation(theta, case.dh.alpha[j])
    return R


def test_forces_agree_in_every_convention(serial):
    case, described = serial
    loads = -np.array([carry(T, w) for T, w in zip(case.E, case.external, strict=True)])
    expected = khalil.inverse_dynamics(case.tree, *case.state, loads[:, 3:], loads[:, :3])[0]
    for each in described.values():
        external = each.in_link_axes(case.external)
        assert_same(each.robot.inverse_dynamics(*case.state, external=external), expected)


def test_forces_without_loads_agree_in_every_form_and_convention(serial):
    case, described = serial
    expected = denavit_hartenberg.inverse_dynamics(case.dh, *case.state)[0]
    assert_same(lie.inverse_dynamics(case.screws, *case.state)[0], expected)
    assert_same(luh_walker_paul.inverse_dynamics(case.mdh, *case.state)[0], expected)
    assert_same(khalil.inverse_dynamics(case.tree, *case.state)[0], expected)
    for robot, _ in described.values():
        assert_same(robot.inverse_dynamics(*case.state), expected)


def test_a_load_on_any_link_acts_as_in_standard_dh(serial):
    case, described = serial
    robot, _ = described["standard DH"]
    for k in range(case.n):
        R, external = chain_rotation(case, k), np.zeros((case.n, 6))
        external[k] = case.external[k]
        load = denavit_hartenberg.Load(k, -R @ case.external[k, 3:], -R @ case.external[k, :3], np.zeros(3))
        expected = denavit_hartenberg.inverse_dynamics(case.dh, *case.state, load)[0]
        assert_same(robot.inverse_dynamics(*case.state, external=external), expected)


def test_reactions_agree_in_every_convention(serial):
    """All are carried to the standard frame at the far end of each link, where those of the screws' form are also."""
    case, described = serial
    F = lie.inverse_dynamics(case.screws, *case.state)[1]
    expected = np.array([carry(pose(p=r), w) for r, w in zip(case.dh.r, F, strict=True)])
    for each in described.values():
        assert_same(each.in_standard_axes(each.robot.joint_wrenches(*case.state)), expected)

    loads = -np.array([carry(T, w) for T, w in zip(case.E, case.external, strict=True)])
    _, f, m = khalil.inverse_dynamics(case.tree, *case.state, loads[:, 3:], loads[:, :3])
    expected = np.array([carry(np.linalg.inv(T), w) for T, w in zip(case.E, np.hstack([m, f]), strict=True)])
    for each in described.values():
        wrenches = each.robot.joint_wrenches(*case.state, external=each.in_link_axes(case.external))
        assert_same(each.in_standard_axes(wrenches), expected)


def test_mass_matrix_agrees_in_every_convention(serial):
    case, described = serial
    A, _ = khalil.direct_model(case.tree, *case.state[:2])
    for robot, _ in described.values():
        assert_same(robot.mass_matrix(case.state[0]), A)


def test_bias_and_gravity_forces_agree_in_every_convention(serial):
    case, described = serial
    q, v, _ = case.state
    H = khalil.direct_model(case.tree, q, v)[1]
    weight = khalil.direct_model(case.tree, q, np.zeros(case.n))[1]
    for robot, _ in described.values():
        assert_same(robot.bias_force(q, v), H)
        assert_same(robot.gravity_force(q), weight)


def test_twists_agree_in_every_convention(serial):
    case, described = serial
    q, v, _ = case.state
    V = lie.inverse_dynamics(case.screws, *case.state)[2]
    for each in described.values():
        # The power of a wrench is the same in any axes, so the transpose of what carries wrenches carries twists back.
        for link, (T, twist) in enumerate(zip(each.frames, each.robot.velocities(q, v), strict=True)):
            X = np.array([carry(T @ pose(p=case.dh.r[link]), unit) for unit in np.eye(6)]).T
            np.testing.assert_allclose(X.T @ twist, V[link], rtol=0, atol=TOLERANCE * np.abs(V).max())


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


@pytest.fixture(scope="module", params=TREES, ids=lambda p: f"{p[0]}-joints-{p[1]}")
def tree(request):
    return Tree(*request.param)


def test_tree_forces_are_khalils(tree):
    expected = khalil.inverse_dynamics(tree.reference, *tree.state, tree.fe, tree.me)[0]
    assert_same(tree.robot.inverse_dynamics(*tree.state, external=tree.external), expected)
    expected = khalil.inverse_dynamics(tree.reference, *tree.state)[0]
    assert_same(tree.robot.inverse_dynamics(*tree.state), expected)


def test_tree_reactions_are_khalils(tree):
    _, f, m = khalil.inverse_dynamics(tree.reference, *tree.state, tree.fe, tree.me)
    assert_same(tree.robot.joint_wrenches(*tree.state, external=tree.external), np.hstack([m, f]))


def test_tree_model_is_khalils(tree):
    q, v, _ = tree.state
    A, H = khalil.direct_model(tree.reference, q, v)
    assert_same(tree.robot.mass_matrix(q), A)
    assert_same(tree.robot.bias_force(q, v), H)
    assert_same(tree.robot.gravity_force(q), khalil.direct_model(tree.reference, q, 0 * v)[1])

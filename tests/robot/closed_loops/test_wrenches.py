"""Wrenches with closed loops balance the motion of every link, and do no work along free directions of joints."""

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.mechanism import ends_of
from torsor.spatial import adjoint, inverse_pose, make_pose

from .lagrange import Lagrangian
from .loaded import CASES, close, indices, mechanism, state

# What each kind of cut joint lets go: directions of (moment, force) at frame a, where it passes nothing on.
FREE = {"revolute": [2], "spherical": [0, 1, 2], "prismatic": [5]}


def needed(robot: torsor.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
    """The wrench at each link's origin, in its axes, that its motion takes: Newton's and Euler's laws in the world."""
    truth, found = Lagrangian(robot, q), []
    B = ca.jacobian(truth.v, truth.de)
    B, B_rate = truth._at(v, B, truth.rate(B) @ truth.de)
    dde = np.linalg.solve(B, a - B_rate[:, 0])

    def rate(X: ca.SX) -> ca.SX:
        changes = ca.jtimes(X, truth.e, truth.de) + ca.jtimes(X, truth.de, truth.dde)
        return ca.substitute(changes, truth.dde, ca.SX(dde))

    for link in robot.links:
        R, p = truth.poses[link.name]
        w, c = truth.spin(link.name), truth.rate(p + R @ link.com)
        spin = link.inertia @ w
        for joint in robot.joints:  # rotors on this link
            if joint.motor is not None and joint.motor.carrier == link.name:
                name = f"{joint.name}/motor" if joint.is_elastic else joint.name
                rate_of_motor = truth.de[robot.coordinate_names.index(name)]
                spin = spin + joint.motor.inertia * joint.motor.ratio * rate_of_motor * joint.motor.axis
        force = R.T @ (link.mass * (rate(c) - robot.gravity))
        moment = R.T @ rate(R @ spin) + ca.cross(link.com, force)
        found.append(truth._at(v, ca.vertcat(moment, force))[0][:, 0])
    return found


@pytest.mark.parametrize("case", CASES)
def test_every_link_is_in_balance(case: str) -> None:
    robot, q = mechanism(case)
    v, a, x, x_rate, external = state(robot, q)
    joints = robot.closed.joint_wrenches(q, x, x_rate, external)
    loops = robot.closed.loop_wrenches(q, x, x_rate, external)
    cuts = [ends_of(robot, loop) for loop in robot.loops if not isinstance(loop, torsor.Coupling)]
    assert loops.shape == (len(cuts), 6)
    poses = dict(zip(robot.link_names, robot.poses(q), strict=True)) | {robot.base.name: np.eye(4)}
    total = dict(zip(robot.link_names, joints + external, strict=True)) | {robot.base.name: np.zeros(6)}

    def add(link: str, wrench: np.ndarray, there: np.ndarray) -> None:
        """Add a wrench that is known at a pose in the world."""
        total[link] = total[link] + adjoint(inverse_pose(there) @ poses[link]).T @ wrench

    for joint, wrench in zip(robot.joints, joints, strict=True):
        add(joint.parent, -wrench, poses[joint.child])
    for ends, wrench in zip(cuts, loops, strict=True):
        a_on, b_on = (robot.place(end).link for end in ends)
        at_a = robot.pose(q, ends[0])
        add((*robot.link_names, robot.base.name)[a_on], -wrench, at_a)
        add((*robot.link_names, robot.base.name)[b_on], wrench, at_a)
    for name, expected in zip(robot.link_names, needed(robot, q, v, a), strict=True):
        close(total[name], expected, 1e-10 * max(1.0, np.abs(joints).max()))


@pytest.mark.parametrize("kind", FREE)
def test_a_cut_joint_gives_nothing_where_it_is_free(kind: str) -> None:
    robot, q = mechanism(kind)
    _, _, x, x_rate, external = state(robot, q)
    wrench = robot.closed.loop_wrenches(q, x, x_rate, external)[0]
    at_b = make_pose(p=(inverse_pose(robot.pose(q, "anchor")) @ robot.pose(q, "end"))[:3, 3])
    seen = adjoint(at_b).T @ wrench if kind == "prismatic" else wrench
    close(seen[FREE[kind]], np.zeros(len(FREE[kind])), 1e-10 * np.abs(wrench).max())


def test_a_rod_pulls_along_itself() -> None:
    robot, q = mechanism("rod")
    _, _, x, x_rate, external = state(robot, q)
    wrench, force = (
        robot.closed.loop_wrenches(q, x, x_rate, external)[0],
        robot.closed.loop_forces(q, x, x_rate, external)[0],
    )
    along = (inverse_pose(robot.pose(q, "anchor")) @ robot.pose(q, "end"))[:3, 3] / 0.5
    close(wrench, np.r_[np.zeros(3), force * along])


@pytest.mark.parametrize("case", CASES)
def test_passive_joints_give_only_their_springs_and_friction(case: str) -> None:
    robot, q = mechanism(case)
    v, _, x, x_rate, external = state(robot, q)
    wrenches = robot.closed.joint_wrenches(q, x, x_rate, external)
    tau = robot.spring_force(q) + robot.friction_force(v)
    active = np.zeros(robot.nv)
    active[indices(robot)] = robot.closed.inverse_dynamics(q, x, x_rate, external)
    spinning = {joint.name for joint in robot.joints if joint.motor is not None}
    spinning |= {name for loop in robot.loops if isinstance(loop, torsor.Coupling) for name in loop.coefficients}
    for joint, at, wrench in zip(robot.joints, robot.coordinates, wrenches, strict=True):
        if joint.name not in spinning:  # of these, rotors and couplings take a part
            S = adjoint(joint.frame) @ joint.kind.subspace(q[at.q], joint.pitch)
            close(S.T @ wrench, active[at.v] - tau[at.v], 1e-10 * max(1.0, np.abs(wrenches).max()))


def test_a_coupling_has_no_wrench() -> None:
    robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0}).with_active(["joint1"])
    assert robot.closed.loop_wrenches([0.4, 0.2], [1.0], [1.0]).shape == (0, 6)

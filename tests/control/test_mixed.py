"""The controller of Hua et al. 2022: its two error equations, its Lyapunov function and its simulation."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from control.closed_loop import Flow, random_states, run, sines
from refusals import warned
from torsor import control
from torsor.compiler import count_operations
from torsor.control.partition import Partition
from torsor.mechanism.edit import _with_joint

ROOT = Path(__file__).parents[2]


def paper_arm() -> torsor.Robot:
    return torsor.library.elastic_arm()


def frictional_arm() -> torsor.Robot:
    """Everything at once: friction, a joint's own spring, a gear and an offset between motor and joint, all smooth."""
    robot = torsor.library.elastic_arm().with_friction("joint1", coulomb=0.3, viscous=0.4, smooth=0.1)
    robot = robot.with_friction("joint3", coulomb=0.2, viscous=0.3, smooth=0.2)
    robot = robot.with_friction("joint3/motor", coulomb=0.1, viscous=0.2, smooth=0.2)
    robot = robot.with_spring("joint3", "20 + 5 * x**2", damping=0.3, rest=0.2).with_spring("joint2", 30.0)
    return _with_joint(robot, "joint3", lambda joint: replace(joint, ratio=1.5, offset=0.2))


def coupled_arm() -> torsor.Robot:
    """The elastic joint's rotor spins on a link that rigid joints turn: S theta'' and C_1 theta' in the rigid rows."""
    robot = torsor.library.elastic_arm().without_motor("joint3")
    return robot.with_motor("joint3", 0.002, ratio=10.0, carrier="link2", axis=(0.3, 0.5, 1.0), stiffness=80.0)


def elastic_arm_of_six() -> torsor.Robot:
    robot = torsor.library.six_axis_arm().without_friction()
    for name in robot.joint_names[1:]:
        robot = _with_joint(robot, name, lambda joint: replace(joint, rotor_inertia=0.0))  # the motor has its own
        robot = robot.with_motor(name, 1e-4, ratio=80.0, carrier="base", stiffness=3e3)
    return robot


def gains(robot: torsor.Robot) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    n, k = robot.nv - len(robot.elastic), len(robot.elastic)
    return {
        "K_D": rng.uniform(10, 40, n),
        "Lambda": rng.uniform(5, 10, n),
        "K_D_motor": rng.uniform(10, 20, k),
        "Lambda_motor": rng.uniform(20, 40, k),
    }


class Errors:
    """sigma, theta_d and the other errors, rebuilt from the robot's matrices, over the symbols of a flow."""

    def __init__(self, law: control.Controller, K_D, Lambda, K_D_motor, Lambda_motor):
        robot, flow = law.robot, Flow(law)
        count = len(robot.elastic)
        n = robot.nv - count
        joints = [robot.joint_names.index(joint.name) for joint in robot.elastic]
        K = ca.DM([float(joint.motor.stiffness) for joint in robot.elastic])
        ratio = ca.DM([joint.ratio for joint in robot.elastic])
        offset = ca.DM([joint.offset for joint in robot.elastic])
        q, v, theta = flow.q[:n], flow.v[:n], flow.q[n:]
        rest = ratio * q[joints] + offset
        still_q, still_v = ca.vertcat(q, rest), ca.vertcat(v, ca.DM.zeros(count))
        M = robot.function("mass_matrix")(flow.q)[:n, :n]
        C = robot.function("coriolis_matrix")(flow.q, still_v)[:n, :n]
        hold = robot.function("gravity_force")(flow.q) + robot.function("spring_force")(still_q)
        g = (hold + robot.function("friction_force")(still_v))[:n]
        e = law.reference.function(flow.t) - q
        v_r = flow.rate(e) + v + Lambda * e
        sigma = v_r - v
        tau_c = M @ flow.rate(v_r) + C @ v_r + g + K_D * sigma
        theta_d = tau_c[joints] / (ratio * K) + rest
        e_m = theta_d - theta
        e_tau = ca.SX.zeros(n)
        e_tau[joints] = ratio * K * e_m
        sigma_m = flow.rate(e_m) + Lambda_motor * e_m + ratio * sigma[joints]
        B = ca.diag(robot.function("mass_matrix")(flow.q)[n:, n:])
        self.load = M @ flow.rate(sigma) + C @ sigma + K_D * sigma - e_tau
        self.motor = B * flow.rate(sigma_m) + K_D_motor * sigma_m + K * e_m
        self.V = (ca.dot(sigma, M @ sigma) + 2 * ca.dot(e, Lambda * K_D * e)) / 2
        self.V += (ca.dot(sigma_m, B * sigma_m) + ca.dot(e_m, K * e_m)) / 2
        e_rate = flow.rate(e)
        self.loss = -ca.dot(e_rate, K_D * e_rate) - ca.dot(e, Lambda * K_D * Lambda * e)
        self.loss -= ca.dot(sigma_m, K_D_motor * sigma_m) + ca.dot(e_m, K * Lambda_motor * e_m)
        self.size = ca.vertcat(K_D * sigma, e_tau, K_D_motor * sigma_m)
        self.e, self.flow = e, flow


@pytest.mark.parametrize(
    "make", [paper_arm, frictional_arm, coupled_arm, pytest.param(elastic_arm_of_six, marks=pytest.mark.slow)]
)
def test_the_error_equations_hold_in_closed_loop(make) -> None:
    robot = make()
    law = control.mixed(robot, sines(robot.nv - len(robot.elastic)), **gains(robot))
    errors = Errors(law, **gains(robot))
    residual = errors.flow.function(errors.load, errors.motor, errors.size)
    # The rigid joints of coupled_arm turn the rotor about axes that its elastic joint does not touch.
    for t, q, v in random_states(robot, 4):
        load, motor, size = residual(t, q, v)
        assert float(ca.norm_inf(load)) < 1e-9 * max(1, float(ca.norm_inf(size)))
        assert float(ca.norm_inf(motor)) < 1e-9 * max(1, float(ca.norm_inf(size)))


def test_the_rotor_coupling_is_not_zero() -> None:
    robot = coupled_arm()
    assert np.abs(robot.mass_matrix(robot.neutral())[:2, 3]).max() > 1e-3
    assert Partition.of(robot, "mixed").coupled(range(3)) == ["joint3"]
    assert Partition.of(paper_arm(), "mixed").coupled(range(3)) == []


def test_neglected_coupling_is_warned_of_and_small() -> None:
    robot = torsor.library.planar_chain(2, length=0.5)
    for name in robot.joint_names:
        robot = robot.with_motor(name, 1e-4, ratio=100.0, stiffness=300.0)
    with warned(what="elastic joints move the motors of 'joint2'"):
        law = control.mixed(robot, sines(2), 20.0, 8.0, 20.0, 40.0)
    *_, (t, q, _) = run(law, np.zeros(4), np.zeros(4), 4.0, 2e-3)
    assert np.abs(law.reference(t)[0] - q[:2]).max() < 1e-3


@pytest.mark.parametrize("make", [paper_arm, frictional_arm])
def test_the_lyapunov_function_decreases_as_in_the_paper(make) -> None:
    robot = make()
    law = control.mixed(robot, sines(3), **gains(robot))
    errors = Errors(law, **gains(robot))
    rates = errors.flow.function(errors.flow.rate(errors.V), errors.loss)
    for t, q, v in random_states(robot, 4):
        rate, loss = (float(each) for each in rates(t, q, v))
        assert loss < 0
        assert abs(rate - loss) < 1e-9 * abs(loss)
    energy, last = errors.flow.function(errors.V), np.inf
    for k, (t, q, v) in enumerate(run(law, np.array([0.2, -0.3, 0.4, 0.1]), np.zeros(4), 0.5)):
        if k % 10 == 0:
            now = float(energy(t, q, v))
            assert now < last
            last = now


@pytest.mark.slow
def test_the_reference_is_tracked_to_rounding() -> None:
    robot = paper_arm()
    law = control.mixed(robot, sines(3), 30.0, 8.0, 20.0, 40.0)
    *_, (t, q, _) = run(law, np.array([0.0, 0.0, -0.4363, -0.4363]), np.zeros(4), 4.0, 2e-3)
    assert np.abs(law.reference(t)[0] - q[:3]).max() < 1e-8


def test_without_elastic_joints_it_needs_no_motor_gains() -> None:
    robot = torsor.library.six_axis_arm()
    law = control.mixed(robot, sines(6), 30.0, 8.0)
    t, q, v = next(random_states(robot, 1))
    q_d, v_d, a_d = law.reference(t)
    sigma = v_d + 8.0 * (q_d - q) - v
    forces = robot.inverse_dynamics(q, v, a_d + 8.0 * (v_d - v)) + robot.coriolis_matrix(q, v) @ sigma + 30 * sigma
    np.testing.assert_allclose(law(t, q, v), forces, rtol=1e-12)


def test_the_graph_stays_small() -> None:
    law = control.mixed(paper_arm(), sines(3), 30.0, 8.0, 20.0, 40.0)
    assert count_operations(law.function).arithmetic < 2500
    robot = elastic_arm_of_six()
    assert count_operations(control.mixed(robot, sines(6), **gains(robot)).function).arithmetic < 15000


def test_the_simulation_of_the_paper() -> None:
    spec = importlib.util.spec_from_file_location("elastic_arm", ROOT / "examples" / "elastic_arm.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    law = example.controller(paper_arm())
    motion = example.simulate(paper_arm(), law, np.array(list(example.LOADS.values())))
    rms = np.sqrt(np.mean((motion.q[:, :, :3] - law.reference(motion.times)[0]) ** 2, axis=1))
    tau = motion.tau
    for row, case in zip(rms, example.LOADS, strict=True):
        wanted = np.array(example.PAPER.get(case, example.PAPER["payload as printed"]))
        assert (np.abs(row / wanted - 1) < [0.05, 0.2, 0.2]).all(), (case, row)
    # The torques of the paper are lower with the payload: in its sign convention the force points upwards.
    assert np.abs(tau[1, 3000]).max() < np.abs(tau[0, 3000]).max() < np.abs(tau[2, 3000]).max()

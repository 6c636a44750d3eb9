"""Errors for states that closed loops cannot have; results do not depend on the rest of a batch."""

from dataclasses import replace

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import library
from torsor.spatial import make_pose


def side_rods(pins: list[tuple[float, float]]) -> torsor.Robot:
    """Equal cranks on a wheelbase, and a coupling rod pinned to all of them: a locomotive's."""
    links, joints, frames = [torsor.Link("ground")], [], []
    for k, (x, y) in enumerate(pins):
        links.append(torsor.Link(f"crank{k}", 1.0, (0.1, 0, 0), 0.01 * np.eye(3)))
        joints.append(torsor.Joint(f"turn{k}", "revolute", "ground", f"crank{k}", make_pose(p=[x, y, 0])))
        frames.append(torsor.Frame(f"end{k}", f"crank{k}", make_pose(p=[0.3, 0, 0])))
        frames.append(torsor.Frame(f"pin{k}", "rod", make_pose(p=[x, y, 0])))
    links.append(torsor.Link("rod", 2.0, (0.5, 0, 0), 0.1 * np.eye(3)))
    joints.append(torsor.Joint("rod_joint", "revolute", "crank0", "rod", make_pose(p=[0.3, 0, 0])))
    robot = torsor.build("side_rods", links, joints, frames, gravity=(0, -9.81, 0)).to(device="casadi")
    for k in range(1, len(pins)):
        robot = robot.with_loop(f"loop{k}", f"end{k}", f"pin{k}")
    return robot.with_active(["turn0"])


def test_assembly_does_not_pass_from_parallel_to_crossed_cranks() -> None:
    pair = library.four_bar(1.0, 0.4, 1.0, 0.4).to(device="casadi")
    with refused(what="singular on the way there", error=torsor.AssemblyError):
        pair.closed.assemble([0.7], guess=[-0.6, 0.6, -0.6])
    with refused(what="singular there", error=torsor.AssemblyError):
        pair.closed.assemble([0.0], guess=[1.5, -1.5, 1.5])
    turns = np.linspace(3.0, -3.0, 25)
    q = pair.closed.assemble(turns[:, None], guess=[1.5, -1.5, 1.5], missing="nan")
    reached = np.isfinite(q).all(axis=-1)
    np.testing.assert_array_equal(reached, turns > 1e-3)
    parallel = np.stack([turns, -turns, turns], axis=-1)
    np.testing.assert_allclose(q[reached], parallel[reached], rtol=0, atol=1e-9)
    near = pair.closed.assemble([1e-3], guess=[1.5, -1.5, 1.5])
    assert pair.closed.mobility(near).margin < 1e-3 < pair.closed.mobility(q[0]).margin


def test_the_coupling_rod_of_a_locomotive_has_one_freedom() -> None:
    robot, q = side_rods([(0, 0), (1, 0), (2, 0)]), np.array([0.7, 0.7, 0.7, -0.7])
    assert robot.closed.mobility().dof == robot.closed.mobility(q).dof == 1  # although at rest all is in one line
    np.testing.assert_allclose(robot.closed.velocities(q, [1.0]), [1, 1, 1, -1], atol=1e-12)
    M, G = robot.mass_matrix(q, loops="open"), np.array([1.0, 1.0, 1.0, -1.0])
    a = robot.closed.forward_dynamics(q, [0.0], [50.0])
    np.testing.assert_allclose(G @ M @ G * a, 50.0 - G @ robot.gravity_force(q, loops="open"), rtol=1e-10)
    swing = torsor.simulate(robot, q, robot.closed.velocities(q, [0.5]), duration=0.1)
    assert np.abs(swing.closure_error).max() < 1e-12


def test_equations_that_hold_only_some_configurations_are_seen() -> None:
    robot, q = side_rods([(0, 0), (1, 0), (0.5, 0.3)]), np.array([0.7, 0.7, 0.7, -0.7])
    stiff = robot.closed.positions([-1.700041, 2.421466, 2.421466, -2.78088])
    if robot.closed.mobility(stiff).dof != 0:
        stiff = robot.closed.positions([-1.700041, 2.421466, -2.78088, 2.421466])
    assert robot.closed.mobility(stiff).dof == 0 and robot.closed.mobility(q).dof == 1
    with refused(what="redundant elsewhere are independent there"):
        robot.closed.velocities(stiff, [1.0])
    tau = [1.0, 0.0, 0.0, 0.0]
    for batch in ([q, stiff], [stiff, q]):
        a = robot.closed.forward_dynamics(batch, np.zeros((2, 4)), tau, coordinates="all")
        alone = [robot.closed.forward_dynamics(each, np.zeros(4), tau, coordinates="all") for each in batch]
        np.testing.assert_allclose(a, alone, rtol=0, atol=1e-9)
    with refused(what="different numbers of independent closure equations"):
        torsor.simulate(robot, [q, stiff])


def test_drives_that_contradict_each_other_are_refused() -> None:
    short = library.four_bar(1.0, 0.9, 0.4, 0.4).to(device="casadi")
    q = short.closed.assemble([0.3], guess=[0.3, 1, 2])
    both = short.with_active(["crank_joint", "rocker_joint"])
    found = both.closed.assemble([[2.5, q[2]], [0.3, q[2] + 0.5], [0.3, q[2]]], guess=q, missing="nan")
    np.testing.assert_array_equal(np.isnan(found).any(axis=-1), [True, True, False])
    with refused(what="disagree by 0.5: 2 are given, but only 1 are independent"):
        both.closed.assemble([0.3, q[2] + 0.5], guess=q)
    v = short.closed.velocities(q, [1.0])[[0, 2]]
    a = short.closed.accelerations(q, [1.0], [2.0])[1][[0, 2]]
    forces = both.closed.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(forces @ v, short.closed.inverse_dynamics(q, [1.0], [2.0]), rtol=1e-10)
    with refused(what="v_active: rates of the active coordinates contradict each other"):
        both.closed.velocities(q, [1.0, 0.0])


def test_a_gear_of_a_hundred_is_assembled() -> None:
    robot = library.two_link().to(device="casadi")
    robot = robot.with_coupling("gear", {"joint1": 1.0, "joint2": -100.0}).with_active(["joint2"])
    np.testing.assert_allclose(robot.closed.assemble([[2.0], [-1.0]]), [[200.0, 2.0], [-100.0, -1.0]], rtol=1e-12)


def test_a_guess_at_a_dead_point_does_not_say_which_way_is_meant() -> None:
    crank = library.slider_crank().to(device="casadi")
    dead, beyond = crank.closed.assemble([0.0]), crank.closed.assemble([0.01])
    wanted = crank.closed.assemble([1.0], guess=beyond)
    driven = crank.with_active(["slide"])
    with refused(what="singular at the guess", error=torsor.AssemblyError) as error:
        driven.closed.assemble([wanted[2]], guess=dead)
    assert abs(error.value.q[2] - wanted[2]) < 1e-9  # one of the two ways
    np.testing.assert_allclose(driven.closed.assemble([wanted[2]], guess=beyond), wanted, rtol=0, atol=1e-9)


def test_a_rod_whose_ends_meet_is_assembled() -> None:
    arm = library.planar_chain(2, length=1.0).with_frame("tip", "link2", make_pose(p=[1, 0, 0]))
    rod = arm.with_frame("hook", "base", make_pose(p=[2, 0, 0])).with_loop("w", "hook", "tip", "rod", length=1.0)
    assert rod.closed.mobility().dof == 1
    assert np.abs(rod.closed.error(rod.with_active(["joint1"]).closed.assemble([0.8]))).max() < 1e-11


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda r, q: r.closed.forward_dynamics(q, [0, 0], [1.0], method="multipliers"), "tau_active"),
        (lambda r, q: r.closed.assemble("ab"), "q_active"),
        (lambda r, q: r.closed.assemble([1e5, 0.0]), "q_active"),
        (lambda r, q: r.closed.assemble([1.0, 1.0], missing="maybe"), "missing"),
        (
            lambda r, q: r.derivatives.jvp("constrained_velocities", (q + 0.3, [1.0, 0.0]), (None, [1.0, 0.0])),
            "loops are not closed",
        ),
        (
            lambda r, q: r.derivatives.vjp("constrained_velocities", (q + 0.3, [1.0, 0.0]), np.ones(4)),
            "loops are not closed",
        ),
        (
            lambda r, q: r.derivatives.sparse("constrained_velocity_derivatives", q + 0.3, [1.0, 0.0]),
            "loops are not closed",
        ),
        (lambda r, q: r.closed.positions(q[:2]), "q"),
        (lambda r, q: r.closed.active_sets(q, ["joint9"]), "joint9"),
        (lambda r, q: torsor.control.gravity_pd(r, q, kp=1.0, kd=1.0), "gravity_pd does not support robots with loops"),
        (
            lambda r, q: torsor.simulate(r.with_active(r.coordinate_names[::-1]), q, controller=[1, 2, 3, 4]),
            "the order of the forces is ambiguous",
        ),
    ],
)
def test_mistakes_are_named(call, message: str) -> None:
    robot = library.five_bar().to(device="casadi")
    q = robot.closed.assemble([1.9, 1.2], guess=[1.9, -1.2, 1.2, 1.2])
    with refused(message):
        call(robot, q)


def test_empty_batches_give_empty_results() -> None:
    robot = library.five_bar().to(device="casadi")
    none = np.zeros((0, 4))
    assert robot.closed.forward_dynamics(none, none, none, coordinates="all").shape == (0, 4)
    assert robot.closed.forward_dynamics(none, np.zeros((0, 2)), np.zeros((0, 2)), method="multipliers").size == 0
    assert robot.closed.assemble(np.zeros((0, 2))).shape == (0, 4)


def test_attitudes_may_be_given_with_either_sign(tmp_path) -> None:
    library.four_bar().save(tmp_path / "bars.toml")
    floating = torsor.load(tmp_path / "bars.toml", base="floating")
    driven = floating.with_active(["root", "crank_joint"])
    place = np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.6, 0.8, 0.5])
    q = driven.closed.assemble(place)
    other = place.copy()
    other[3:7] *= -2.0
    again = driven.closed.assemble(other)
    np.testing.assert_allclose(driven.pose(again, "coupler"), driven.pose(q, "coupler"), atol=1e-10)
    assert np.abs(driven.closed.error(q)).max() < 1e-11
    still = floating.closed.assemble([0.5], guess=q)  # the base is not driven, and stays
    np.testing.assert_allclose(still, q, atol=1e-10)
    with refused(what="a quaternion in the positions is zero"):
        driven.closed.assemble(place * [1, 1, 1, 0, 0, 0, 0, 1])


def test_a_revolute_loop_across_the_hinges_is_refused_with_the_axis_that_was_meant() -> None:
    y, along = np.array([0.0, 1.0, 0.0]), make_pose(p=[1.0, 0.0, 0.0])
    links = [torsor.Link("ground"), *(torsor.Link(name, 1.0, inertia=np.eye(3)) for name in "abc")]
    ends = (("one", "ground", "a", np.eye(4)), ("two", "a", "b", along), ("three", "ground", "c", along))
    joints = [torsor.Joint(name, "continuous", on, of, at, y) for name, on, of, at in ends]
    frames = [torsor.Frame("left", "b", along), torsor.Frame("right", "c", along)]
    bars = torsor.build("bars", links, joints, frames)
    with refused(where="bars: loop 'tip'", fix="axis=(0.0, 1.0, 0.0)"):
        bars.with_loop("tip", "left", "right")
    assert bars.with_loop("tip", "left", "right", axis=(0.0, 1.0, 0.0)).closed.mobility().dof == 1
    assert bars.with_loop("tip", "left", "right", "spherical").loops[0].kind == "spherical"  # it has no axis
    turned = replace(frames[1], pose=along @ make_pose(np.diag([1.0, -1.0, -1.0])))
    bars = torsor.build("bars", links, joints, [frames[0], turned])
    with refused(fix="use frames whose z axes are along the hinges"):
        bars.with_loop("tip", "left", "right")

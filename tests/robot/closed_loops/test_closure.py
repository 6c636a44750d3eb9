"""Loops close: errors, Jacobians and assembly against closed forms, and errors where loops cannot be closed."""

from collections.abc import Callable

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import torsor
from refusals import refused
from torsor.base.arrays import Array
from torsor.robot.closed_loops.search import Space
from torsor.spatial import make_pose

from .mechanisms import EQUATIONS, KINDS, chain, closed_chain, four_bar, slider_crank


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_chain_has_the_freedoms_that_its_joint_leaves(kind: str) -> None:
    robot, q = closed_chain(kind)
    assert np.abs(robot.closed.error(q)).max() < 1e-12
    mobility = robot.closed.mobility(q)
    assert (mobility.equations, mobility.redundant) == (EQUATIONS[kind], 0)
    assert mobility.dof == robot.nv - EQUATIONS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_the_jacobian_is_the_rate_of_the_error(kind: str) -> None:
    robot, q = closed_chain(kind)
    v = np.random.default_rng(1).normal(size=robot.nv)
    _, rate = robot.derivatives.jvp("closure_error", (q,), (v,))
    np.testing.assert_allclose(robot.closed.jacobian(q) @ v, rate, rtol=0, atol=1e-12)


def test_a_four_bar_is_where_geometry_puts_it() -> None:
    ground, crank, coupler, rocker = 1.0, 0.4, 0.9, 0.8
    robot = four_bar((ground, crank, coupler, rocker))
    angle = np.linspace(-3, 3, 200)
    tip = crank * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    away = np.array([ground, 0.0]) - tip
    length = np.linalg.norm(away, axis=-1)
    # Two circles meet above the line between their centres.
    along = (coupler**2 - rocker**2 + length**2) / (2 * length)
    unit = away / length[:, None]
    normal = np.stack([-unit[:, 1], unit[:, 0]], axis=-1)
    pin = tip + along[:, None] * unit + np.sqrt(coupler**2 - along**2)[:, None] * normal
    q = robot.closed.assemble(angle[:, None], guess=robot.closed.assemble([angle[100]], guess=[0.0, 0.9, 1.6]))
    found = robot.poses(q)[:, 1] @ np.array([coupler, 0, 0, 1])
    np.testing.assert_allclose(found[:, :2], pin, rtol=0, atol=1e-11)
    assert robot.closed.mobility(q[0]).dof == 1 and robot.closed.mobility(q[0]).redundant == 3


def test_a_slider_crank_is_where_geometry_puts_it() -> None:
    robot, angle = slider_crank(0.3, 0.8), np.linspace(-3, 3, 50)
    q = robot.closed.assemble(angle[:, None], guess=[0.0, 0.0, 1.1])
    expected = 0.3 * np.cos(angle) + np.sqrt(0.8**2 - 0.3**2 * np.sin(angle) ** 2)
    np.testing.assert_allclose(q[:, 2], expected, rtol=0, atol=1e-11)
    v = robot.closed.velocities(q, np.ones(1))
    slope = -0.3 * np.sin(angle) - 0.3**2 * np.sin(angle) * np.cos(angle) / np.sqrt(0.64 - 0.09 * np.sin(angle) ** 2)
    np.testing.assert_allclose(v[:, 2], slope, rtol=0, atol=1e-11)


def searching(error: Callable[[Array], Array], jacobian: Callable[[Array], Array]) -> tuple[Space, list[int]]:
    """Return the configurations of one angle, and a list that has the threads at each evaluation of its Jacobian."""
    threads = list[int]()

    def counted(q: Array) -> Array:
        threads.append(max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"))
        return jacobian(q)

    return Space(error, counted, lambda q, dv: q + dv, np.ones(1)), threads


def test_a_search_ends_where_loops_stay_open_and_not_before_they_close() -> None:
    # A bar of length 1 cannot reach a point at the distance 3: it ends where it points to it.
    far, threads = searching(
        lambda q: np.array([np.cos(q[0]) - 3, np.sin(q[0])]), lambda q: np.array([[-np.sin(q[0])], [np.cos(q[0])]])
    )
    q, error = far.closest(np.array([1.0]))
    assert error == pytest.approx(2.0, abs=1e-3) and abs(q[0]) < 0.05
    assert len(threads) < 20 and set(threads) == {1}
    # A bar that just reaches a point closes only at a dead point, where the slope of its error vanishes.
    dead, _ = searching(lambda q: np.array([1 - np.cos(q[0])]), lambda q: np.array([[np.sin(q[0])]]))
    assert dead.closest(np.array([1.0]))[1] < 1e-12


def test_loops_that_cannot_be_closed_are_named() -> None:
    with refused(what="in 'pin'", fix="check the frames"):
        four_bar((5.0, 0.4, 0.9, 0.8)).closed.mobility()


def test_the_guess_chooses_the_way_of_assembly() -> None:
    robot = four_bar()
    one, other = (robot.closed.assemble([0.5], guess=[0.5, turn, turn]) for turn in (1.0, -1.0))
    assert np.abs(robot.closed.error([one, other])).max() < 1e-11
    assert np.abs(one - other).max() > 0.5


def test_of_what_cannot_be_reached_the_closest_is_said() -> None:
    robot = four_bar((1.0, 0.9, 0.4, 0.4))  # the crank cannot turn round
    with refused(allowed="joint1 = 0.863", error=torsor.AssemblyError) as found:
        robot.closed.assemble([2.5], guess=[0.3, 1.0, 2.0])
    error = found.value
    assert abs(error.q_active[0] - np.arccos(0.65)) < 1e-7  # coupler and rocker in one line
    assert np.abs(robot.closed.error(error.q)).max() < 1e-11
    end = np.hypot(0.9 * np.cos(2.5) - 1.0, 0.9 * np.sin(2.5))  # from the crank's end to the rocker's foot
    assert error.closing_error >= (end - 0.8) / np.sqrt(2) - 1e-9  # the larger of two components of that gap
    reach = robot.closed.assemble([[0.3], [2.5]], guess=[0.3, 1.0, 2.0], missing="nan")
    np.testing.assert_allclose(reach[0, 0], 0.3)
    assert np.isnan(reach[1]).all()


def five_bar() -> torsor.Robot:
    """Two arms of 0.3 and 0.4 m, 0.5 m apart, whose ends are pinned; the point is the end of the first."""
    rows = [torsor.MDHLink(parent=-1, mass=1.0, com=(0.1, 0, 0)), torsor.MDHLink(parent=0, d=0.3, mass=1.0)]
    rows += [torsor.MDHLink(parent=-1, d=0.5, mass=1.0, com=(0.1, 0, 0)), torsor.MDHLink(parent=2, d=0.3, mass=1.0)]
    robot = torsor.from_mdh(rows, gravity=(0, -9.81, 0))
    robot = robot.with_frame("point", "link2", make_pose(p=[0.4, 0, 0])).with_frame(
        "other", "link4", make_pose(p=[0.4, 0, 0])
    )
    return robot.with_loop("pin", "point", "other").with_active(["joint1", "joint3"])


def test_singularities_of_both_kinds_are_found_with_their_directions() -> None:
    robot, up = five_bar(), [1.8, -1.0, 1.3, 1.0]
    q = robot.closed.assemble([2.0, 1.0], guess=up)
    general = robot.closed.mobility(q, "point", point=True)
    assert not general.is_singular and general.output.dof == 2 and not len(general.output.still)
    # First kind: an arm is stretched, so that its drive does not move the point along it.
    reach, base = 0.7, np.array([0.5, 0.0])
    angle = 1.2
    point = reach * np.array([np.cos(angle), np.sin(angle)])
    d = np.linalg.norm(point - base)
    lead = np.arctan2(*(point - base)[::-1]) - np.arccos((d**2 + 0.3**2 - 0.4**2) / (2 * d * 0.3))
    bend = np.arctan2(*(point - base - 0.3 * np.array([np.cos(lead), np.sin(lead)]))[::-1]) - lead
    first = robot.closed.mobility([angle, 0.0, lead, bend], "point", point=True)
    assert not first.is_singular and first.output.dof == 1 and len(first.output.still) == 1
    assert abs(first.output.still[0][0]) > 0.1 and abs(first.output.still[0][1]) < 1e-9  # the first drive, alone
    # Second kind: the two far links are in one line, so that the point moves across it with the drives held.
    height = np.sqrt(0.3**2 - 0.15**2)
    a = np.arctan2(height, -0.15)
    flat = [a, -a, np.pi - a, a]
    second = robot.closed.mobility(flat, "point", point=True)
    assert second.is_singular and second.control < 1e-9 and second.dof == 2
    np.testing.assert_allclose(
        np.abs(second.output.loose[0]) / np.linalg.norm(second.output.loose[0]), [0, 1, 0], atol=1e-9
    )
    assert abs(second.uncontrolled[0] @ [1, 0, 1, 0]) < 1e-12
    with refused(fix="drive other"):
        robot.closed.inverse_dynamics(flat, [0.0, 0.0], [1.0, 0.0])
    names = dict(robot.closed.active_sets(flat))
    assert ("joint1", "joint3") not in names and ("joint1", "joint2") in names
    other = robot.with_active(("joint1", "joint2"))
    assert np.isfinite(other.closed.inverse_dynamics(flat, [0.0, 0.0], [1.0, 0.0])).all()


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_what_is_closed_does_not_depend_on_the_size(size: float) -> None:
    robot = four_bar(tuple(size * np.array([1.0, 0.4, 0.9, 0.8])))
    turns = np.linspace(-3.0, 3.0, 13)[:, None]
    q = robot.closed.assemble(turns, guess=[0.5, 0.3, 1.6])
    np.testing.assert_allclose(q, four_bar().closed.assemble(turns, guess=[0.5, 0.3, 1.6]), atol=1e-10)
    mobility = robot.closed.mobility(q[0])
    assert (mobility.dof, mobility.redundant) == (1, 3)


def test_a_dead_point_is_singular_and_names_the_motion_that_is_left() -> None:
    robot = slider_crank(0.3, 0.8).with_active(["slide"])
    q = np.array([0.0, 0.0, 1.1])  # stretched
    mobility = robot.closed.mobility(q)
    assert mobility.is_singular and len(mobility.uncontrolled) == 1
    motion = mobility.uncontrolled[0]
    assert abs(motion[2]) < 1e-12 and abs(motion[0]) > 0.1
    assert not robot.closed.mobility(robot.closed.assemble([0.9], guess=[1.0, -1.5, 0.9])).is_singular


def test_more_drives_than_freedoms_are_blocked_directions() -> None:
    robot = four_bar().with_active(["joint1", "joint3"])
    q = four_bar().closed.assemble([0.7], guess=[0.5, 1.0, 1.5])
    mobility = robot.closed.mobility(q)
    assert mobility.dof == 1 and len(mobility.blocked) == 1 and not mobility.is_singular


def test_too_few_drives_are_refused_by_name() -> None:
    robot, q = closed_chain("spherical")
    robot = robot.with_active(robot.coordinate_names[:1])
    with refused(fix="make"):
        robot.closed.velocities(q, np.ones(1))
    with refused(fix="name the driven"):
        robot.with_active([]).closed.velocities(q, np.ones(0))


def test_a_coupling_is_a_gear() -> None:
    robot = chain(2, 1, ("revolute",)).with_coupling("gear", {"joint1": 3.0, "joint2": -1.0}, offset=0.2)
    robot = robot.with_active(["joint1"])
    q = robot.closed.assemble([[0.1], [0.5]])
    np.testing.assert_allclose(q[:, 1], 3 * q[:, 0] - 0.2, atol=1e-14)
    np.testing.assert_allclose(robot.closed.velocities(q, [1.0]), [[1.0, 3.0]] * 2, atol=1e-14)


def test_edits_keep_loops_or_refuse() -> None:
    robot = four_bar()
    assert robot.fix("joint2", 0.3).loops == robot.loops
    assert robot.with_gravity([0, 0, 0]).active == ("joint1",)
    twice = robot.attach(robot, at="link1", prefix="b/")
    assert [loop.name for loop in twice.loops] == ["pin", "b/pin"] and twice.active == ("joint1", "b/joint1")
    with refused(value="pin"):
        robot.subtree("link1")
    geared = chain(2, 1, ("revolute",)).with_coupling("gear", {"joint1": 1.0, "joint2": 1.0})
    with refused(argument="joint", fix="open it first"):
        geared.fix("joint1")
    assert geared.without_loop("gear").loops == ()


def test_a_file_keeps_loops(tmp_path) -> None:
    robot = four_bar().with_coupling("gear", {"joint1": 1.0, "joint2": -0.5}, 0.1)
    rod = closed_chain("rod")[0]
    for each in (robot, rod):
        each.save(tmp_path / "robot.toml")
        assert torsor.load(tmp_path / "robot.toml") == each


@pytest.mark.parametrize(
    "edit, message",
    [
        (lambda r: r.with_loop("x", "link1", "nowhere"), "ends at 'nowhere', which does not exist"),
        (lambda r: r.with_loop("x", "link1", "link1"), "link1"),
        (lambda r: r.with_loop("x", "link1", "link2", "glue"), "kind"),
        (lambda r: r.with_loop("pin", "link1", "link3"), "pin"),
        (lambda r: r.with_loop("x", "link1", "link3", "rod"), "length"),
        (lambda r: r.with_loop("x", "link1", "link3", length=1.0), "length"),
        (lambda r: r.with_coupling("g", {}), "coefficients"),
        (lambda r: r.with_coupling("g", {"joint1": 1.0, "joint9": 1.0}), "coupling 'g'"),
        (lambda r: r.with_coupling("g", {"joint1": 1.0, "joint2": 0.0}), "coefficient of 'joint2'"),
        (lambda r: r.with_active(["joint9"]), "active"),
        (lambda r: r.with_active("joint1"), "joint1"),
        (lambda r: r.with_active(["joint1", "joint1"]), "active"),
        (lambda r: r.without_loop("x"), "no loop 'x'"),
        (lambda r: r.closed.assemble([0.1, 0.2]), "q_active"),
        (lambda r: r.closed.assemble([np.nan]), "q_active"),
        (lambda r: r.closed.mobility(np.zeros(3)), "the loops are not closed: the closure error"),
        (lambda r: r.closed.mobility(np.zeros((2, 3))), "q"),
        (
            lambda r: r.closed.inverse_dynamics(np.zeros(3), [0.0], [0.0]),
            "q = robot.closed.assemble",
        ),
        (lambda r: r.closed.velocities(np.full(3, np.nan), [0.0]), "closure error is nan"),
    ],
)
def test_mistakes_are_named(edit, message: str) -> None:
    with refused(message):
        edit(four_bar())


def test_single_precision_closes_in_double_and_computes_in_single() -> None:
    robot = four_bar()
    single = robot.to(dtype="float32")
    q = single.closed.assemble([[0.4], [0.9]])
    assert np.abs(robot.closed.error(q)).max() < 1e-11
    found = single.closed.inverse_dynamics(q, [[1.0]], [[2.0]])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, robot.closed.inverse_dynamics(q, [[1.0]], [[2.0]]), rtol=1e-4)


def test_a_hinge_about_another_axis_is_the_same_hinge() -> None:
    turn = make_pose(torsor.spatial.from_rpy([np.pi / 2, 0, 0]))  # z becomes -y of the frame's own axes
    robot = four_bar().without_loop("pin")
    robot = robot.with_frame("a", "coupler_end", turn).with_frame("b", "rocker_end", turn)
    about_y = robot.with_loop("pin", "a", "b", axis=(0, 1, 0))
    q = four_bar().closed.assemble([0.5], guess=[0.5, 1.0, 1.5])
    np.testing.assert_allclose(about_y.closed.assemble([0.5], guess=[0.5, 1.0, 1.5]), q, rtol=0, atol=1e-11)
    assert about_y.closed.mobility(q).dof == 1 and about_y.closed.error(q).size == 5
    with refused(fix="axis=(0.0, 1.0, 0.0)"):
        robot.with_loop("pin", "a", "b")
    with refused(argument="axis", allowed="a direction"):
        robot.with_loop("pin", "a", "b", axis=(0, 0, 0))

"""Sliders of the viewer: every kind of coordinate has its own, closed loops follow, nothing unreachable is shown."""

import numpy as np
import pytest

import torsor
from torsor.view.live.controls import legend, readout
from torsor.view.live.figure import label, node, words
from torsor.view.live.postures import Posture
from torsor.view.live.shots import Film, Still
from torsor.view.live.stage import Clock
from torsor.view.scene import Scene, timeline

HOSTILE = "a/../b <script>alert(1)</script>\x1b[2J"


def test_a_slider_moves_its_coordinate_within_its_limits() -> None:
    arm = Posture(torsor.library.panda())
    assert [slide.name for slide in arm.slides] == list(arm.robot.position_names)
    assert all(slide.low <= slide.start <= slide.high for slide in arm.slides)
    arm.move([100.0] * len(arm.slides))
    np.testing.assert_array_equal(arm.q, arm.robot.upper)
    arm.move([float("nan")] * len(arm.slides))  # what a hostile page could send
    assert np.isfinite(arm.q).all()


def test_rotations_in_space_are_moved_by_rotation_vectors() -> None:
    body = Posture(torsor.library.free_flying_arm())
    turns = [slide for slide in body.slides if slide.turn is not None]
    assert [slide.unit for slide in turns] == ["rad"] * 3
    values = list(body.values)
    values[body.slides.index(turns[2])] = np.pi / 2
    body.move(values)
    at = turns[0].at
    np.testing.assert_allclose(body.q[at : at + 4], [0, 0, np.sqrt(0.5), np.sqrt(0.5)], atol=1e-15)
    assert len(body.slides) == body.robot.nv


def test_loops_stay_closed_and_unreachable_values_have_a_note() -> None:
    linkage = Posture(torsor.library.five_bar())
    assert [slide.name for slide in linkage.slides] == list(linkage.robot.active)
    start = np.array(linkage.values)
    linkage.move(start + 0.1)
    assert linkage.note == ""
    assert linkage.shot.closing is not None and linkage.shot.closing < 1e-9
    np.testing.assert_allclose([linkage.q[slide.at] for slide in linkage.slides], start + 0.1)
    for slide in linkage.slides:
        linkage.move([slide.low if each is slide else each.high for each in linkage.slides])
        if linkage.note:
            break
    assert "nearest" in linkage.note
    assert linkage.shot.closing is not None and linkage.shot.closing < 1e-6


def test_wheels_do_not_hold_a_robot_in_place() -> None:
    cart = Posture(torsor.library.differential_drive())
    assert len(cart.slides) == cart.robot.nv
    assert not cart.robot.loops


def test_a_swing_stays_within_limits_and_begins_where_the_robot_is() -> None:
    arm = Posture(torsor.library.panda())
    np.testing.assert_allclose(arm.sway(0.0).q, arm.home, atol=1e-12)
    for time in np.linspace(0.1, 20.0, 40):
        q = arm.sway(time).q
        assert (q >= arm.robot.lower).all() and (q <= arm.robot.upper).all()


@pytest.mark.parametrize("robot", [torsor.library.ur5(), torsor.library.five_bar(), torsor.library.free_flying_arm()])
def test_samples_of_a_swing_are_its_instants_and_it_repeats(robot: torsor.Robot) -> None:
    posture = Posture(robot)
    times = np.array([0.4, 3.0, posture.period + 0.7, posture.period + 3.0, 2 * posture.period + 0.7])
    q, v, a = posture.swing(times)
    assert np.abs(q[2] - q[4]).max() < 1e-6 and np.abs(q[1] - q[3]).max() < 1e-3
    for time, *own in zip(times, q, v, a, strict=True):
        shot = posture.sway(time)
        active = [posture.robot.coordinate_names.index(name) for name in posture.robot.active]
        rates = [each[active] if posture.robot.loops else each for each in own[1:]]
        for found, expected in zip([own[0], *rates], [shot.q, shot.v, shot.a], strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-6)


def test_forces_at_rest_hold_the_weight() -> None:
    arm = torsor.library.two_link()
    shot = Still(Scene.of(arm), arm.to(device="casadi"), np.array([0.3, 0.4]))
    assert shot.drives is not None and shot.reactions is not None
    np.testing.assert_allclose(shot.drives.forces, arm.gravity_force([0.3, 0.4]), atol=1e-12)
    assert shot.closing is None and shot.energies[0] == 0.0


def test_motors_of_elastic_joints_carry_their_links_at_rest() -> None:
    arm = torsor.library.two_link()
    elastic = arm.with_motor("joint2", 1e-4, 50.0, "link1", stiffness=1000.0).with_gravity((0.0, -9.81, 0.0))
    shot = Still(Scene.of(elastic), elastic.to(device="casadi"), np.array([0.3, 0.4, 0.4]))
    assert shot.drives is not None and shot.drives.names == ("joint1", "joint2/motor")
    expected = arm.with_gravity((0.0, -9.81, 0.0)).gravity_force([0.3, 0.4])
    np.testing.assert_allclose(shot.drives.forces, expected, atol=1e-12)


def test_between_two_samples_a_motion_is_between_them() -> None:
    arm = torsor.library.two_link().to(device="casadi")
    fall = torsor.simulate(arm, [0.1, 0.2], duration=0.2, step=0.01)
    film = Film(Scene.of(arm), timeline(fall))
    positions, turns = film.at(0.055).placed
    before, after = film.at(0.05).placed[0], film.at(0.06).placed[0]
    np.testing.assert_allclose(positions, (before + after) / 2, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(turns, axis=-1), 1.0)
    np.testing.assert_allclose(sum(film.at(0.05).energies), fall.energy[5], atol=1e-9)
    assert film.at(99.0).placed[0].tolist() == film.placed[0][-1].tolist()


def test_time_loops_or_ends() -> None:
    clock = Clock(1.0, playing=True)
    clock.advance(1.25)
    assert clock.time == pytest.approx(0.25) and clock.playing
    clock.loop = False
    clock.advance(2.0)
    assert clock.time == 1.0 and not clock.playing
    clock.play()
    assert clock.time == 0.0


def test_names_from_files_are_neither_paths_nor_markup() -> None:
    assert node(HOSTILE).count("/") == 1
    assert "<" not in words(HOSTILE) and "\x1b" not in words(HOSTILE)
    assert "\x1b" not in label(HOSTILE)
    robot = torsor.library.two_link()
    text = readout(Still(Scene.of(robot), robot.to(device="casadi"), np.zeros(2)))
    assert "joint1" in text
    assert "<script>" not in legend([(HOSTILE, (1.0, 0.0, 0.0))], [HOSTILE])


@pytest.mark.parametrize("robot", [torsor.library.ur5(), torsor.library.four_bar(), torsor.library.free_flying_arm()])
def test_a_swing_has_the_forces_and_energies_of_its_motion(robot: torsor.Robot) -> None:
    posture, step = Posture(robot), 1e-3
    before, here, after = (posture.sway(time) for time in (3.0 - step, 3.0, 3.0 + step))
    v = posture.robot.difference(before.q, after.q) / (2 * step)
    light = posture.robot
    assert here.energies[0] > 0
    assert here.energies[0] == pytest.approx(float(light.kinetic_energy(here.q, v)), rel=1e-4)
    power = (sum(after.energies) - sum(before.energies)) / (2 * step)
    assert here.drives is not None
    assert power == pytest.approx(float(here.drives.forces @ here.v), rel=1e-3, abs=1e-6)
    assert posture.move(posture.values).energies[0] == 0.0  # sliders hold it still


@pytest.mark.parametrize("name", ["ur5", "panda", "six_axis_arm", "scara"])
def test_a_swing_stays_above_the_floor_and_within_the_limits_of_the_drives(name: str) -> None:
    posture = Posture(getattr(torsor.library, name)())
    floor = posture.scene.corners(posture.home)[0][2]
    for time in np.linspace(0.0, 40.0, 81):
        shot = posture.sway(time)
        assert posture.scene.corners(shot.q)[0][2] >= floor - 0.05 * posture.scene.size
        assert (np.abs(shot.v) <= 1.05 * posture.robot.velocity_limit).all()
        assert shot.drives is not None and (np.abs(shot.drives.forces) <= 1.05 * shot.drives.limits).all()

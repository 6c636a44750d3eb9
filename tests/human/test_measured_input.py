"""Errors name implausible markers and ground forces, with the fix."""

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.human.measured import MarkerSet, inverse_dynamics, inverse_kinematics, marker_set, resized, scaled_person
from torsor.human.measured.person import check_pelvis
from torsor.human.recordings import GroundForces, Markers


def arm() -> tuple[torsor.Robot, MarkerSet]:
    robot = torsor.library.planar_chain(2, length=1.0)
    links = [link.name for link in robot.links]
    return robot, MarkerSet({f"m{k}": (links[k % 2], (1.0, 0.1 * k, 0.0)) for k in range(4)})


def seen(positions: object = None, names: tuple[str, ...] = ("m0", "m1", "m2", "m3"), **options: str) -> Markers:
    places = np.random.default_rng(0).normal(size=(3, 4, 3)) if positions is None else np.asarray(positions)
    return Markers(names, np.arange(3) / 100, places, source="arm.trc", **options)


def test_recordings_that_are_no_markers_of_the_set() -> None:
    robot, markers = arm()
    with refused(fix="name the markers as in the recording, which has a, b, c, d"):
        inverse_kinematics(robot, markers, seen(names=("a", "b", "c", "d")))
    with refused(argument="markers", where="arm.trc", allowed="up to 10 m", fix="give positions in m"):
        inverse_kinematics(robot, markers, seen(1000 * np.random.default_rng(0).normal(size=(3, 4, 3))))
    with refused(what="no frame has any marker"):
        inverse_kinematics(robot, markers, seen(np.full((3, 4, 3), np.nan)))
    with refused(argument="recording", allowed="Markers"):
        inverse_kinematics(robot, markers, np.zeros((3, 4, 3)))  # type: ignore[arg-type]
    with refused(where="arm.trc", what="up is z, but gravity of the body"):
        inverse_kinematics(torsor.library.human(), markers, seen(axes="forward left up"))


def test_marker_sets_that_fit_no_body() -> None:
    robot, markers = arm()
    with refused(value="tail", where="marker 'm' on 'planar_chain"):
        inverse_kinematics(robot, MarkerSet({**markers.places, "m": ("tail", (0, 0, 0))}), seen())
    with refused(allowed="(link, (x, y, z))"):
        MarkerSet({"m": ("foot", (0, 0))})  # type: ignore[dict-item]
    with refused(argument="weights"):
        MarkerSet({"m": ("foot", (0, 0, 0))}, weights={"n": 1.0})
    with refused(allowed="names of asis, psis"):
        marker_set(torsor.library.human(), ["R.Heel", "X99", "X98"])
    assert marker_set(torsor.library.human(), ["R.Heel", "X99"], unknown="drop").names == ("R.Heel",)


def test_options_of_inverse_kinematics() -> None:
    robot, markers = arm()
    first, second = robot.coordinate_names
    with refused(value="knee", where="frozen"):
        inverse_kinematics(robot, markers, seen(), frozen={"knee": 0.0})
    with refused(argument="smooth"):
        inverse_kinematics(robot, markers, seen(), smooth=-1.0)
    with refused(what="all coordinates are frozen"):
        inverse_kinematics(robot, markers, seen(), frozen={first: 0.0, second: 0.0})
    with refused(argument="joint1", fix="tie both to the same coordinate"):
        inverse_kinematics(robot, markers, seen(), tied={first: second, second: first})
    with refused(value="four_bar", allowed="a tree of revolute and prismatic joints"):
        on_crank = MarkerSet({f"m{k}": ("crank", (0.0, 0.0, 0.1 * k)) for k in range(4)})
        inverse_kinematics(torsor.library.four_bar(), on_crank, seen())


def test_people_without_known_markers() -> None:
    with refused(where="arm.trc", allowed="3 or more"):
        scaled_person(seen(), 80.0)
    walk = Markers(["R.ASIS", "L.ASIS", "R.Heel", "L.Heel"], np.arange(3) / 100, seen().positions)
    still = Markers(["R.ASIS", "L.ASIS", "R.Heel"], [0.0], walk.positions[:1, :3], source="still.trc")
    with refused(where="still.trc", what="the standing trial does not have L.Heel"):
        scaled_person(walk, 80.0, standing=still)


def test_a_pelvis_without_three_markers_is_named() -> None:
    names = ["R.ASIS", "L.ASIS", "R.Knee", "L.Knee", "R.Heel", "L.Heel"]
    walk = Markers(names, [0.0], np.zeros((1, 6, 3)), source="walk.trc")
    body = torsor.library.human()
    with warned(where="walk.trc", what="the pelvis has 2 markers: R.ASIS, L.ASIS; its hips are gue"):
        check_pelvis(marker_set(body, names), walk)
    with warned(fix="add ASIS, PSIS or sacrum markers"):
        check_pelvis(marker_set(body, names[2:]), walk)


def test_people_outside_of_the_tables() -> None:
    with refused(argument="mass (kg)"):
        scaled_person(seen(), -1.0)
    with refused(argument="height"):
        scaled_person(seen(), 80.0, 18.0)
    with refused(argument="factor of thigh"):
        resized(torsor.library.human(), {"thigh": 4.0})
    with refused(value="tail"):
        resized(torsor.library.human(), {"tail": 1.0})


def test_ground_forces_that_do_not_cover_the_motion() -> None:
    zero = np.zeros((10, 2, 3))
    ground = GroundForces(["right", "left"], np.arange(10) / 100, zero, zero, zero)
    body, t = torsor.library.human(), np.arange(30) / 100
    with refused(what="ground forces cover 0 to 0.09 s, but the motion from 0 to 0.29 s"):
        inverse_dynamics(body, t, np.zeros((30, 55)), ground)
    with refused(argument="q"):
        inverse_dynamics(body, t, np.zeros((30, 5)), ground)
    with refused(what="not equally spaced"):
        inverse_dynamics(body, t**2, np.zeros((30, 55)), ground)
    with refused(value="two_link"):
        inverse_dynamics(torsor.library.two_link(), t, np.zeros((30, 2)), ground)


def test_the_package_is_found_without_an_import_of_its_own() -> None:
    assert torsor.human.measured.resized is resized
    with pytest.raises(AttributeError, match="no attribute 'measurd'"):
        _ = torsor.human.measurd

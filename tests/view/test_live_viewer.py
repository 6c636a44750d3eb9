"""The viewer as a server: drawn objects move, several motions share one clock, and only its own page may connect."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.base.errors import ModelError
from torsor.formats.meshes.triangles import sphere
from torsor.simulation import Trajectory
from torsor.simulation.timeline import timeline
from torsor.view.live import Viewer, show
from torsor.view.live.figure import grown
from torsor.view.live.server import free_port, is_own_page

from .test_scene import slide

viser = pytest.importorskip("viser", reason="viser is not installed (extra: view)")


@pytest.fixture
def shown() -> Iterator[Any]:
    opened = list[Viewer]()

    def opener(*what: Any, **options: Any) -> Viewer:
        viewer = show(*what, open=False, block=False, port=0, **options)
        opened.append(viewer)
        viewer.player.close()  # the test itself lets time pass
        return viewer

    yield opener
    for viewer in opened:
        viewer.player.closed = False
        viewer.stop()


def ball_of(viewer: Viewer, number: int = 0) -> Any:
    return viewer.stage.subjects[number].figure.batches[0].node


def test_the_trail_of_a_swing_is_its_smooth_path_whatever_the_frame_rate(shown: Any) -> None:
    viewer = shown(torsor.library.ur5(), swing=True)
    stage, marks = viewer.stage, viewer.stage.subjects[0].marks
    (name,) = marks.trailed
    line = marks._trails[name][0]
    pieces = np.diff(line.points, axis=1)[:, 0]
    directions = pieces / np.linalg.norm(pieces, axis=-1, keepdims=True)
    fast = np.linalg.norm(pieces, axis=-1) > 0.3 * np.linalg.norm(pieces, axis=-1).max()
    both = fast[1:] & fast[:-1]
    assert (directions[1:] * directions[:-1]).sum(axis=-1)[both].min() > np.cos(np.radians(6.0))
    for _ in range(60):  # few frames a second
        stage.step(0.35)
        stage.draw()
        here = marks._at(name, *stage.subjects[0].shot.placed)
        assert np.linalg.norm(line.points[:, 0] - here, axis=-1).min() < 0.015
    assert marks._trails[name][0] is line
    viewer.move([0.3] * 6)  # the path so far of the sliders
    for angle in (0.3, 0.5):
        viewer.move([angle] * 6)
        stage.step(0.0)
        stage.draw()
    assert marks._trails[name][0].points.shape == (1, 2, 3)


def test_a_robot_moves_with_its_sliders_and_its_marks_with_it(shown: Any) -> None:
    arm = torsor.library.six_axis_arm()
    viewer = shown(arm)
    stage = viewer.stage
    viewer.show("frames", "center", "inertia", "reactions", "moments")
    stage.trail(stage.subjects[0], "link6")
    before = ball_of(viewer).batched_positions.copy()
    for angle in (0.2, 0.4):
        viewer.move([angle] * 6)
        stage.step(0.0)
        stage.draw()
    assert np.abs(ball_of(viewer).batched_positions - before).max() > 0.05
    nodes = stage.subjects[0].marks._nodes
    q = np.full(6, 0.4)
    np.testing.assert_allclose(
        nodes["frames"].batched_positions[1:], arm.to(device="casadi").poses(q)[:, :3, 3], atol=1e-6
    )
    np.testing.assert_allclose(nodes["center"].position, arm.to(device="casadi").center_of_mass(q), atol=1e-12)
    arrows = nodes["reactions"].node
    forces = arm.to(device="casadi").joint_wrenches(q, np.zeros(6), np.zeros(6))[:, 3:]
    longest = arrows.batched_scales[:, 2] / np.linalg.norm(forces, axis=-1)
    np.testing.assert_allclose(longest, longest[0], rtol=1e-5)
    assert stage.subjects[0].marks._trails["link6"][0].points.shape == (1, 2, 3)
    viewer.player.controls.update()
    assert "joint2" in viewer.player.controls.readouts[0].content
    with refused(allowed="one for each slider"):
        viewer.move([0.0])


def test_a_swing_draws_the_path_of_the_end_of_a_serial_chain(shown: Any) -> None:
    for robot, end in ((torsor.library.ur5(), ["ee_link"]), (torsor.library.two_link(), ["link2"])):
        assert list(shown(robot, swing=True).stage.subjects[0].marks._trails) == end
        assert not shown(robot).stage.subjects[0].marks._trails
    assert not shown(torsor.library.quadruped(), swing=True).stage.subjects[0].marks._trails


def test_motions_play_in_common_time_each_until_its_own_end(shown: Any) -> None:
    arm = torsor.library.two_link().to(device="casadi")
    short, long = (torsor.simulate(arm, [0.3, 0.0], [1.0, 0.0], duration=t, step=0.01) for t in (0.1, 0.2))
    viewer = shown(short, long, names=["<b>short</b>", "long"])
    stage = viewer.stage
    assert stage.clock.duration == pytest.approx(0.2) and stage.clock.playing
    stage.step(0.05)
    stage.draw()
    np.testing.assert_array_equal(ball_of(viewer, 0).batched_positions, ball_of(viewer, 1).batched_positions)
    stage.step(0.1)
    stage.draw()
    assert not np.array_equal(ball_of(viewer, 0).batched_positions, ball_of(viewer, 1).batched_positions)
    assert stage.subjects[0].color != stage.subjects[1].color
    stage.spread(1.5)
    assert np.linalg.norm(stage.subjects[1].root.position) == pytest.approx(1.5)
    viewer.player.controls.update()
    assert "&lt;b&gt;short" in viewer.player.controls.head.content
    assert viewer.player.controls.time.value == pytest.approx(0.15)


@pytest.mark.parametrize(("duration", "end"), [(0.0395016, 0.04), (0.07, 0.07)])
def test_the_time_slider_ends_at_the_next_millisecond_which_is_the_end_of_the_motion(
    shown: Any, duration: float, end: float
) -> None:
    arm = torsor.library.two_link().to(device="casadi")
    viewer = shown(torsor.simulate(arm, [0.3, 0.0], duration=duration, step=duration / 10))
    assert viewer.player.controls.time.max == end
    viewer.seek(viewer.player.controls.time.max)
    assert viewer.stage.clock.time == viewer.stage.clock.duration == pytest.approx(duration)


def test_a_program_chooses_the_coordinate_of_the_charts(shown: Any) -> None:
    arm = torsor.library.two_link().to(device="casadi")
    runs = [torsor.simulate(arm, [angle, 0.0], duration=0.1, step=0.01) for angle in (0.0, 0.3)]
    viewer = shown(*runs)
    viewer.chart("joint1")
    viewer.player.controls.update()
    drawn = viewer.player.controls.chart.content
    assert (
        drawn.count("<polyline") == 7 and "error relative to the first (°)" in drawn
    )  # the error of the second motion alone
    with refused(allowed="joint1"):
        viewer.chart("joint9")
    with refused("no motion to chart"):
        shown(arm).chart("joint1")


def test_a_reference_is_an_outline_without_marks(shown: Any) -> None:
    arm = torsor.library.two_link().to(device="casadi")
    run, plan = (torsor.simulate(arm, [angle, 0.0], duration=0.1, step=0.01) for angle in (0.3, 0.0))
    viewer = shown(run, reference=plan)
    (body, ghost), controls = viewer.stage.subjects, viewer.player.controls
    for inner, outer in zip(body.figure.batches, ghost.figure.batches, strict=True):
        assert (inner.node.side, outer.node.side) == ("front", "back")
        assert (outer.node.batched_scales > inner.node.batched_scales).all()  # no two surfaces coincide
    viewer.show("frames", "reactions")
    viewer.stage.fade(0.5)
    assert not ghost.marks.shown and {batch.node.opacity for batch in ghost.figure.batches} == {None}
    (error,) = controls.charts["joint1"]["error: actual − reference (°)"]
    np.testing.assert_allclose(error.values[0], np.degrees(0.3))
    assert len(controls.readouts) == 1 and "reference" in controls.head.content
    with refused(argument="reference"):
        shown(run, reference=arm)


def test_bodies_are_translucent_while_arrows_begin_inside_them(shown: Any) -> None:
    viewer = shown(torsor.library.two_link())
    nodes = [batch.node for batch in viewer.stage.subjects[0].figure.batches]
    viewer.show("moments")
    assert {node.opacity for node in nodes} == {0.6}
    viewer.show("moments", shown=False)
    assert {node.opacity for node in nodes} == {None}


def test_a_measured_person_is_translucent_around_bones_and_has_no_arrows_of_residuals(shown: Any) -> None:
    body = torsor.library.human().to(device="casadi")
    still = np.zeros((2, body.nq))
    line = timeline(Trajectory(body, np.array([0.0, 1.0]), still, still, still, still))
    line = replace(line, ground=np.tile([0.0, 0.0, 0.0, 0.0, 716.0, 0.0], (2, 1, 1)))
    predicted = shown(line).stage.subjects[0].figure
    assert {batch.node.opacity for batch in predicted.fading} == {None}
    assert {batch.node.visible for batch in predicted.inner} == {False}
    viewer = shown(replace(line, markers=np.zeros((2, 1, 3))))
    subject = viewer.stage.subjects[0]
    skin, bones = subject.figure.fading, subject.figure.inner
    assert {batch.node.opacity for batch in skin} == {0.35} and {batch.node.opacity for batch in bones} == {None}
    assert {batch.node.visible for batch in bones} == {True}
    viewer.show("moments")
    viewer.stage.draw()
    drawn, root = subject.marks._nodes["moments"].node.batched_scales.any(axis=1), body.link_names.index("pelvis")
    assert not drawn[: root + 1].any() and drawn[root + 1 :].any()


def test_up_is_against_gravity(shown: Any) -> None:
    upright = torsor.library.two_link().with_gravity([0.0, -9.81, 0.0])
    assert shown(upright).stage.up.tolist() == [0.0, 1.0, 0.0]
    weightless = torsor.library.two_link().with_gravity([0.0, 0.0, 0.0])
    assert shown(weightless).stage.up.tolist() == [0.0, 0.0, 1.0]


def test_an_identification_plays_what_was_measured_with_its_residuals(shown: Any) -> None:
    robot = torsor.library.two_link()
    q, v, a = np.random.default_rng(0).normal(size=(3, 20, 2))
    tau = robot.inverse_dynamics(q, v, a)
    viewer = shown(torsor.identify(robot, (q, v, a, tau)))
    assert "measured − predicted" in viewer.player.controls.readouts[0].content


def test_only_the_own_page_may_connect_and_nothing_is_shared(shown: Any) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    viewer = shown(torsor.library.two_link())
    address = viewer.url.replace("http", "ws")
    asked: dict[str, Any] = {"subprotocols": [f"viser-v{viser.__version__}"], "max_size": None}
    with connect(address, origin=viewer.url, **asked) as own:
        assert own.recv(timeout=10)
    with connect(address, origin="http://evil.example", **asked) as foreign, pytest.raises(ConnectionClosed) as ended:
        foreign.recv(timeout=10)
    assert ended.value.rcvd is not None and ended.value.rcvd.code == 1008
    assert viewer.server.request_share_url() is None


def test_names_that_lead_to_this_machine_are_not_enough() -> None:
    assert not is_own_page("http://rebound.example:8080", "rebound.example:8080", "127.0.0.1")
    assert is_own_page("http://lab.example:8080", "lab.example:8080", "0.0.0.0")
    assert not is_own_page("null", "localhost:8080", "localhost")


def test_addresses_that_are_none_are_refused() -> None:
    for origin, asked in (("http://[", "localhost:8080"), ("http://[", "["), ("http://localhost:8080", "[")):
        assert not is_own_page(origin, asked, "localhost")


@pytest.mark.parametrize("host", ["nohost.invalid", "256.1.1.1", "a..b", "192.0.2.77"])
def test_a_host_that_is_not_this_machine_is_refused_at_once(host: str) -> None:
    with pytest.raises(ModelError, match=r"host .*(no such host|cannot listen)"):
        free_port(host, 8080)


def test_a_taken_port_leads_to_the_next_one_and_none_left_to_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port < free_port("127.0.0.1", port) if port < 65500 else True
    with socket.socket() as last:
        try:
            last.bind(("127.0.0.1", 65535))
        except OSError:
            pytest.skip("something else has the last port")
        last.listen()
        with refused(fix="choose another port"):
            free_port("127.0.0.1", 65535)


@pytest.mark.parametrize(
    "path", ["/../../../../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/%00", "/../_viser.py"]
)
def test_no_file_of_the_machine_is_served(shown: Any, path: str) -> None:
    asked = HTTPConnection(shown(torsor.library.two_link()).url.removeprefix("http://"), timeout=10)
    asked.request("GET", path)
    assert asked.getresponse().status == 404
    asked.close()


def test_another_host_is_warned_of(shown: Any) -> None:
    with warned(what="no password"):
        shown(torsor.library.two_link(), host="0.0.0.0")


def test_what_cannot_be_shown_is_refused() -> None:
    with refused(what="cannot play int"):
        show(3)
    with refused(allowed="1 to 16"):
        show()
    with refused(allowed="1, one for each"):
        show(torsor.library.two_link(), names=["a", "b"])


def test_external_wrenches_are_arrows_of_forces_and_of_moments(shown: Any) -> None:
    arm = torsor.library.planar_chain(2).to(device="casadi")
    wrenches = np.zeros((2, 6))
    wrenches[1] = [0.0, 0.0, 5.0, 3.0, 0.0, 0.0]
    viewer = shown(torsor.simulate(arm, duration=0.01, external=wrenches))
    assert viewer.stage.has("external")
    viewer.show("external")
    viewer.stage.draw()
    nodes = viewer.stage.subjects[0].marks._nodes
    for name in ("external", "external moments"):
        lengths = nodes[name].node.batched_scales[:, 2]
        assert lengths[0] == 0 and lengths[1] > 0
    viewer.show("external", shown=False)
    assert not nodes["external"].node.visible and not nodes["external moments"].node.visible


def test_a_walk_stays_in_place_while_the_ground_passes_under_it(shown: Any) -> None:
    viewer = shown(slide())
    stage, places, grounds = viewer.stage, [], []
    for time in (0.0, 0.6, 1.0, 1.6):
        stage.clock.time, stage.clock.rounds = time % 1.0, int(time)
        stage.draw()
        places.append(ball_of(viewer).batched_positions.copy())
        grounds.append([np.array(node.position) for _, _, node in stage.ground._nodes])
    np.testing.assert_allclose(places[0], places[2], atol=1e-6)
    np.testing.assert_allclose(places[1], places[3], atol=1e-6)
    assert np.ptp(places, axis=0).max() < 0.8  # 2 m a second
    assert all(np.linalg.norm(each, axis=-1).max() <= 5 * stage.ground.cell for each in grounds)
    assert any(np.abs(here).max() > 0 for here in grounds[1])


def test_the_page_begins_with_our_script_and_viser_is_left_as_it_was(shown: Any) -> None:
    usual = viser.infra.WebsockServer
    with urlopen(shown(torsor.library.two_link()).url, timeout=10) as answer:
        page = answer.read().decode()
    assert page.index("swiftshader") < page.index("<script", page.index("<script") + 1)
    assert viser.infra.WebsockServer is usual


def test_an_outline_is_outside_a_mesh_of_either_winding() -> None:
    ball = sphere(1.0)
    for faces in (ball.faces, ball.faces[:, ::-1]):
        outline = grown(ball._replace(faces=faces), 0.5)
        assert np.linalg.norm(outline.vertices, axis=1).min() > 1.49  # along the normals of a coarse ball
        np.testing.assert_array_equal(outline.faces, ball.faces)

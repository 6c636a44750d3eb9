"""Drawn objects other than rigid links: bent beams, loads and seats, force arrows, repeating walks."""

from dataclasses import replace

import numpy as np
import pytest

import torsor
from torsor import human, library
from torsor.base.progress import Bar
from torsor.human.body.drawing import landmarks
from torsor.human.gait.timelines import load_thing, seat_thing
from torsor.mechanism import Visual, flexible_links
from torsor.mechanism.flexible import Modes
from torsor.simulation import Contact
from torsor.spatial import from_rpy, make_pose
from torsor.view.live.postures import Posture
from torsor.view.live.shots import Film
from torsor.view.live.stage import Clock
from torsor.view.pages.content import content
from torsor.view.scene import Scene, Timeline, timeline
from torsor.view.scene.bodies import Beam, beams
from torsor.view.scene.scene import arrows, home


def bending_arm() -> torsor.Robot:
    modes = flexible_links.beam(length=1.0, mass=1.0, bending=20.0, modes=(2, 1))
    return flexible_links.with_flexible_link(library.planar_chain(2), "link1", modes)


def ends(scene: Scene, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the rods of a robot with one beam begin and end."""
    rods = [each for each in scene.shown if each.name.endswith("/beam")]
    poses = scene.poses(q)[[each.link + 1 for each in rods]]
    half = np.array([each.solids[0].size[2] for each in rods])[:, None] * poses[:, :3, 2] / 2
    return poses[:, :3, 3] - half, poses[:, :3, 3] + half


def test_a_flexible_link_is_drawn_from_its_joint_to_its_tip_wherever_that_is() -> None:
    robot = bending_arm()
    scene, q = Scene.of(robot), np.array([0.4, 0.15, -0.03, 0.08, 0.7])
    start, end = ends(scene, q)
    poses = robot.to(device="casadi").poses(q)
    tip = poses[robot.link_names.index("link1/modes/tip"), :3, 3]
    near = 0.02  # rods lap over
    assert np.linalg.norm(start[0] - poses[0, :3, 3]) < near and np.linalg.norm(end[-1] - tip) < near
    assert np.abs(end[:-1] - start[1:]).max() < near  # without gaps
    straight = ends(scene, np.zeros(5))
    assert np.allclose(straight[1][:, 1:], 0.0) and abs(end[-1] - straight[1][-1])[2] > 0.05
    assert not any(each.link == 0 and each.kind == "body" for each in scene.shown)  # no ellipsoid that stays straight


def test_sliders_bend_a_flexible_link_a_little() -> None:
    arm = Posture(bending_arm())
    reach = {slide.name: slide.high for slide in arm.slides}
    assert reach["joint1"] == np.pi and all(reach[f"link1/modes/{k}"] == 0.05 * arm.scene.size for k in (1, 2, 3))


def test_the_points_of_a_beam_move_as_its_modes_say() -> None:
    robot = bending_arm()
    beam = next(beams(robot))
    modes = next(joint.flexible for joint in robot.joints if isinstance(joint.flexible, Modes))
    q = np.array([[0.4, 0.15, -0.03, 0.08, 0.7]])
    eta = q[0, 1:4]
    second = np.einsum("ixkl,k,l->ix", modes.second, eta, eta) / 2
    assert np.allclose(beam.bent(q)[0, 1:], modes.positions + modes.shapes @ eta + second, atol=1e-12)


def test_nodes_that_are_not_on_a_line_are_joined_by_the_shortest_tree() -> None:
    x = np.array([[0.5, 0.0, 0.0], [0.5, 0.3, 0.0], [1.0, 0.0, 0.0]])
    shapes, slopes = np.zeros((3, 3, 1)), np.zeros((3, 3, 1))
    shapes[:, 2, 0] = [0.3, 0.4, 1.0]
    robot = flexible_links.with_beam(
        library.planar_chain(1), "link1", Modes(x, [1.0, 1.0, 0.5], shapes, slopes, [40.0])
    )
    beam = next(beams(robot))
    assert {frozenset(each) for each in beam.pairs.tolist()} == {frozenset(each) for each in ((0, 1), (1, 2), (1, 3))}


def test_shapes_of_a_flexible_link_show_it_at_rest_and_are_faint() -> None:
    arm = library.planar_chain(1)
    shape = Visual("box", (1.0, 0.1, 0.1))
    arm = replace(arm, links=(replace(arm.links[0], visuals=(shape,)),))
    modes = flexible_links.beam(length=1.0, mass=1.0, bending=20.0, modes=(1, 0))
    faint, solid = (Scene.of(each) for each in (flexible_links.with_flexible_link(arm, "link1", modes), arm))
    assert [each.color[3] for each in solid.shown if each.kind == "visual"] == [1.0]
    assert [each.color[3] for each in faint.shown if each.kind == "visual"] == [0.3]


@pytest.mark.parametrize("load", [human.Backpack(10.0), human.Box(8.0)])
def test_loads_are_drawn_where_figures_draw_them(load: human.Backpack | human.Box) -> None:
    body = library.human()
    q = np.random.default_rng(1).normal(scale=0.2, size=(3, 55))
    scene, seat = (
        Scene.of(body, things=(load_thing(body, load),)),
        Scene.of(body, things=(seat_thing(human.Sitting(height=0.4)),)),
    )
    shown = scene.shown[-1]
    poses = scene.poses(q)[:, shown.link + 1]
    corners = np.unique(shown.surface.vertices, axis=0) @ poses[:, :3, :3].swapaxes(1, 2) + poses[:, None, :3, 3]
    points = landmarks(body, q, load)
    expected = np.stack([points[f"load{k}"] for k in range(8)], axis=1)
    assert np.abs(corners - expected).max() < 1e-12
    assert seat.shown[-1].link == -1 and np.isclose(seat.shown[-1].surface.vertices[:, 1].max(), 0.4)


def test_external_forces_are_arrows_in_base_axes_and_moments_alone_are_none() -> None:
    arm = library.planar_chain(2).to(device="casadi")
    weight = arm.mass * 9.81
    pushed = torsor.simulate(arm, [0.5, 0.3], duration=0.01, external=[[0.0] * 6, [0, 0, 0, 0, weight, 0]])
    scene, line = Scene.of(arm), timeline(pushed)
    found = arrows(line, scene)
    assert found is not None and found.shape == (11, 1, 7)
    pose = arm.poses(line.q)[:, 1]
    assert np.allclose(found[:, 0, :3], pose[:, :3, 3])
    length = float(np.linalg.norm(arm.gravity)) / 9.81
    assert np.allclose(found[:, 0, 3:6] * length, scene.size / 3 * pose[:, :3, 1])
    turned = torsor.simulate(arm, duration=0.01, external=[[0.0] * 6, [0, 0, 1.0, 0, 0, 0]])
    assert arrows(timeline(turned), scene) is None


def test_contact_forces_are_arrows_at_the_points_of_contact() -> None:
    pose = make_pose(from_rpy([0.0, 0.2, 0.0]), [0.0, 0.0, 0.5])
    ball = torsor.build("ball", [torsor.Link("ball", 2.0, np.zeros(3), 0.01 * np.eye(3))], [], base="floating")
    ball = ball.with_shapes("ball", [torsor.Shape("sphere", (0.1,))])
    start = ball.neutral()
    start[:3] = pose[:3, 3] + 0.1 * pose[:3, 2]  # on a slope
    contact = Contact(kind="hard", ground=torsor.Shape("plane", pose=pose), friction=1.0)
    run = torsor.simulate(ball, start, duration=0.05, step=5e-4, contact=contact)
    line, scene = timeline(run), Scene.of(ball)
    assert line.floor is not None and line.ground is not None and not line.is_person
    np.testing.assert_allclose(line.floor, [*pose[:3, 2], 0.5 * np.cos(0.2)], atol=1e-12)
    points, forces = line.ground[2:, 0, :3], line.ground[2:, 0, 3:]
    np.testing.assert_allclose(points, run.q[2:, :3] - 0.1 * pose[:3, 2], atol=1e-4)  # the depth of the ball
    np.testing.assert_allclose(forces @ pose[:3, 2], 2.0 * 9.81 * np.cos(0.2), rtol=1e-2)
    found = arrows(line, scene)
    assert found is not None and np.array_equal(found[2:, 0, :3], points) and (found[..., 6] == 1.0).all()
    pushed = torsor.simulate(ball, start, duration=0.05, step=5e-4, contact=contact, external=np.zeros((1, 6)))
    assert timeline(pushed).ground is None  # the wrenches may then act anywhere


def test_the_quadruped_stands_on_the_floor_in_its_home_posture() -> None:
    robot = library.quadruped().to(device="casadi")
    low, _ = Scene.of(robot).corners(home(robot))
    assert abs(low[2]) < 1e-4  # the ball of a foot has corners
    feet = np.stack([robot.pose(home(robot), f"{leg}_foot")[:2, 3] for leg in ("fl", "fr", "hl", "hr")])
    np.testing.assert_allclose(feet.mean(axis=0), robot.center_of_mass(home(robot))[:2], atol=0.02)


# Walks that go on


def slide() -> Timeline:
    """Return a motion that goes on: a cart that moves 2 m in 1 s, with a swinging pole."""
    links = [
        torsor.Link("base"),
        torsor.Link("cart", 2.0, inertia=0.1 * np.eye(3)),
        torsor.Link("pole", 1.0, com=[0.0, 0.0, 0.5]),
    ]
    joints = [
        torsor.Joint("slide", "prismatic", "base", "cart", axis=np.array([1.0, 0.0, 0.0])),
        torsor.Joint("pin", "revolute", "cart", "pole", axis=np.array([0.0, 1.0, 0.0])),
    ]
    robot = torsor.build("cart", links, joints).to(device="casadi")
    t = np.linspace(0.0, 1.0, 101)
    q = np.stack([2 * t + 0.1 * np.sin(2 * np.pi * t), 0.3 * np.sin(2 * np.pi * t)], axis=-1)
    v, a = np.gradient(q, t, axis=0), np.zeros_like(q)
    way = robot.poses(q)[-1, 0, :3, 3] - robot.poses(q)[0, 0, :3, 3]
    ground = np.concatenate([np.outer(t, way), np.tile([0.0, 0.0, 9.0], (101, 1))], axis=-1)[:, None]
    return Timeline(robot, "cart", t, q, v, a, ground=ground, ahead=way)


def test_a_walk_in_the_viewer_stays_in_place_and_goes_on_without_a_jump() -> None:
    line = slide()
    film = Film(Scene.of(line.robot), line)
    first, last = film.at(0.0), film.at(1.0)
    assert np.allclose(first.placed[0][1:], last.placed[0][1:], atol=1e-12)
    assert np.allclose(film.at(2.37).placed[0], film.at(0.37).placed[0], atol=1e-9)
    assert np.allclose(film.speed, line.ahead) and np.abs(film.ground[:, 0, :3]).max() < 1e-12
    assert np.ptp(film.centers[:, np.argmax(np.abs(film.speed))]) < 0.5
    still = Film(film.scene, replace(line, ahead=None))
    assert np.allclose(still.at(2.37).placed[0], still.at(1.0).placed[0])


def test_the_clock_counts_the_rounds_of_a_loop() -> None:
    clock = Clock(2.0, playing=True)
    clock.advance(5.0)
    assert (clock.time, clock.rounds, clock.total) == (1.0, 2, 5.0)
    clock.seek(0.5)
    assert clock.total == 0.5


def test_a_page_knows_how_far_a_walk_goes_and_how_beams_bend() -> None:
    data = content(slide(), None, 60.0, 1000, None, True, Bar(1, False)).data
    assert np.allclose(data["actors"][0]["ahead"], slide().ahead)
    robot = bending_arm()
    found = content(robot, None, 60.0, 1000, None, True, Bar(1, False))
    beam, own = found.data["robots"][0]["beams"][0], next(beams(robot))
    assert isinstance(own, Beam) and found.data["robots"][0]["places"] == len(robot.links) + own.count
    assert np.allclose(found.numbers.read(beam["second"]), own.second.ravel(), atol=1e-6)
    assert beam["at"] == [1, 2, 3] and beam["place"] == len(robot.links)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::torsor.base.errors.ModelWarning")  # optimal at the nodes only
@pytest.mark.parametrize("task", [human.lifting, human.standing_up])
def test_ground_and_seat_carry_the_body_of_a_task(task: object) -> None:
    result = task().solve(check=False, iterations=5)  # type: ignore[operator]
    line = timeline(result)
    weight = line.robot.mass * float(np.linalg.norm(line.robot.gravity))
    assert line.ground is not None and line.external is not None
    assert np.abs(line.reactions[:, 0]).max() < 1e-9 * weight  # nothing else holds the pelvis
    forces = np.nansum(line.ground[..., 3:], axis=1)
    momentum = line.robot.to(device="casadi").center_of_mass(line.q)
    acceleration = np.gradient(np.gradient(momentum, line.times, axis=0), line.times, axis=0)
    assert np.abs(forces - line.robot.mass * (acceleration - line.robot.gravity))[5:-5].max() < 0.05 * weight
    assert len(line.things) == 1


@pytest.mark.parametrize("name", ["ur5", "panda", "six_axis_arm", "quadruped", "human", "gough_stewart", "delta"])
def test_library_robots_are_drawn_with_their_own_shapes(name: str) -> None:
    scene = Scene.of(getattr(library, name)())
    links = {part.link for part in scene.shown if part.kind == "visual"}
    assert links >= {k for k, link in enumerate(scene.robot.links) if link.mass > 0}
    assert not any(part.kind == "body" for part in scene.shown)

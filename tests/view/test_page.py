"""Pages: their numbers are those of the robot, nothing is loaded from outside, and no name becomes code."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from node import needs_node, node
from pages import Scripts, decoded
from refusals import refused
from torsor.formats.meshes.triangles import box, sphere
from torsor.spatial.rotations import from_quaternion
from torsor.view.live.marks import ARROW_COLORS
from torsor.view.live.postures import Posture
from torsor.view.pages import page
from torsor.view.pages.content import MAX_SOLID_TRIANGLES, Numbers, controls, surfaces
from torsor.view.scene import Scene, Timeline, home
from torsor.view.scene.detail import detailed, level, simplified, within

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "src" / "torsor" / "view" / "pages" / "assets"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> @NUMBERS@ \u2028 \"'&"
SINGLE = 2e-7  # rounding to float32, for numbers of size 1


def motion(robot: torsor.Robot, count: int = 9) -> Timeline:
    rng = np.random.default_rng(3)
    v, a = rng.normal(size=(2, count, robot.nv))
    q = robot.to(device="casadi").integrate(robot.neutral(), v)
    return Timeline(robot, robot.name, np.linspace(1.0, 3.0, count), q, v, a)


def matrices(poses: np.ndarray) -> np.ndarray:
    found = np.zeros((*poses.shape[:-1], 4, 4))
    found[..., :3, 3], found[..., 3, 3] = poses[..., :3], 1.0
    for index in np.ndindex(poses.shape[:-1]):
        found[(*index, slice(3), slice(3))] = from_quaternion(poses[index][3:].astype(float))
    return found


@pytest.mark.parametrize("robot", [torsor.library.free_flying_arm(), torsor.library.ur5()], ids=["free", "arm"])
def test_poses_and_energies_in_a_page_are_those_of_the_robot(robot: torsor.Robot) -> None:
    line, light = motion(robot), robot.to(device="casadi")
    actor = decoded(page(line).html)["actors"][0]
    size = np.abs(line.q).max()
    assert np.abs(matrices(actor["poses"]) - light.poses(line.q)).max() < 4 * SINGLE * size
    assert np.abs(actor["com"] - light.center_of_mass(line.q)).max() < 4 * SINGLE * size
    energy = np.stack([light.kinetic_energy(line.q, line.v), light.potential_energy(line.q)], axis=-1)
    assert np.allclose(actor["energy"], energy, rtol=SINGLE, atol=1e-5)
    assert np.allclose(actor["times"], line.times, rtol=SINGLE)


@pytest.mark.parametrize("name", ["human", "gough_stewart", "stanford"])
def test_surfaces_in_a_page_are_those_of_the_scene(name: str) -> None:
    scene = Scene.of(getattr(torsor.library, name)())
    numbers = Numbers()
    robot, note = surfaces(scene, numbers, 40_000)
    assert not note
    shown = [each for each in robot["shown"] if each["kind"] != "inertia"]
    assert [each["name"] for each in shown] == [each.name for each in scene.shown]
    assert len(robot["shapes"]) < len(shown)  # most are images of others
    corners = level(scene, MAX_SOLID_TRIANGLES)
    for mine, theirs in zip(shown, scene.shown, strict=True):
        surface = detailed(theirs, corners)
        shape = robot["shapes"][mine["shape"]]
        vertices = numbers.read(shape["vertices"]).astype(float)
        if "map" in mine:
            map_ = np.reshape(mine["map"], (3, 4))
            vertices = vertices @ map_[:, :3].T + map_[:, 3]
        assert np.abs(vertices - surface.vertices).max() < 4e-6 * scene.size
        assert (numbers.read(shape["faces"]).reshape(-1, 3) == surface.faces).all()
        assert (mine["link"], mine["kind"]) == (theirs.link, theirs.kind)


def test_a_hanging_pendulum_pulls_at_its_joint_with_its_weight() -> None:
    robot = torsor.library.planar_chain(1)
    still = np.zeros((3, 1))
    line = Timeline(
        robot, "still", np.arange(3.0), still - np.pi / 2, still, still, still + 0.5, robot.coordinate_names
    )
    actor = decoded(page(line).html)["actors"][0]
    weight = -robot.mass * robot.gravity
    assert np.allclose(actor["reactions"][:, 0, 3:], weight, atol=1e-4)
    assert np.allclose(actor["reactions"][:, 0, :3], 0.0, atol=1e-4)
    assert actor["drives"]["names"] == list(robot.coordinate_names)
    assert actor["drives"]["tau"].tolist() == [[0.5]] * 3


def test_outside_forces_and_residuals_are_in_base_axes_and_complete() -> None:
    robot = torsor.library.planar_chain(2)
    line = motion(robot, 4)
    wrench, ground = np.zeros((4, 2, 6)), np.full((4, 1, 6), np.nan)
    wrench[:, 1, 3] = 7.0  # along x of the second link
    residuals = np.arange(8.0).reshape(4, 2)
    tau = np.ones((4, 2))
    full = replace(line, tau=tau, driven=robot.coordinate_names, external=wrench, residuals=residuals)
    actor = decoded(page(full).html)["actors"][0]
    axis = robot.to(device="casadi").poses(line.q)[:, 1, :3, 0]
    assert [each["link"] for each in actor["externalAt"]] == [1]
    assert np.allclose(actor["external"][:, 0, 3:], 7.0 * axis, atol=1e-5)
    stands = decoded(page(replace(full, ground=ground)).html)["actors"][0]
    assert "external" not in stands and np.isnan(stands["ground"]).all()  # the ground's forces are shown once


def test_drives_hold_the_joints_of_a_robot_and_not_its_floating_base() -> None:
    for robot, free in ((torsor.library.quadruped(), 6), (torsor.library.ur5(), 0)):
        drives = decoded(page(robot).html)["actors"][0]["drives"]
        assert drives["names"] == list(robot.coordinate_names[free:])
        assert drives["at"] == list(range(free, robot.nv)) and drives["base"] is bool(free)


def test_several_motions_share_their_robot_and_keep_their_titles() -> None:
    line = motion(torsor.library.two_link())
    data = decoded(page({"first": line, "second": line}).html)
    assert [each["title"] for each in data["actors"]] == ["first", "second"]
    assert [each["robot"] for each in data["actors"]] == [0, 0] and len(data["robots"]) == 1


def test_long_motions_are_thinned_and_ends_stay() -> None:
    robot = torsor.library.planar_chain(1)
    q = np.linspace(0.0, 1.0, 5001)[:, None]
    line = Timeline(robot, "long", np.linspace(0.0, 10.0, 5001), q, q, q)
    times = decoded(page(line, rate=20.0).html)["actors"][0]["times"]
    assert len(times) == 201 and times[0] == 0.0 and times[-1] == 10.0


def test_a_failed_motion_is_shown_as_far_as_it_went() -> None:
    line = motion(torsor.library.two_link())
    line.q[5:] = np.nan
    assert len(decoded(page(line).html)["actors"][0]["times"]) == 5


def test_pages_count_bodies_but_not_massless_links() -> None:
    links = [torsor.Link("base"), torsor.Link("cross"), torsor.Link("arm", 1.0, (0.1, 0, 0))]
    joints = [torsor.Joint("first", "revolute", "base", "cross"), torsor.Joint("second", "revolute", "cross", "arm")]
    assert "<p>1 body. Drag" in page(torsor.build("joint", links, joints)).html


def test_hostile_names_stay_text() -> None:
    link, base = torsor.Link(HOSTILE, 1.0, (0.1, 0, 0)), torsor.Link("base")
    joint = torsor.Joint("turn" + HOSTILE, "revolute", "base", HOSTILE)
    robot = torsor.build(HOSTILE, [base, link], [joint], [torsor.Frame("tip" + HOSTILE, HOSTILE, np.eye(4))])
    shown = page(robot, title=HOSTILE)
    found = Scripts(shown.html)
    kinds = [attributes.get("type") for attributes, _ in found.scripts]
    assert kinds == ["application/json", "text/plain", None, "module"]
    assert not [tag for tag, _ in found.tags if tag == "img"]
    data = decoded(shown.html)["robots"][0]
    assert data["name"] == robot.name and data["links"] == [robot.links[0].name]
    frame = Scripts(shown._repr_html_()).tags
    assert [tag for tag, _ in frame] == ["iframe"] and frame[0][1]["srcdoc"] == shown.html


def test_a_page_allows_its_own_scripts_and_loads_nothing() -> None:
    found = Scripts(page([torsor.library.two_link(), torsor.library.four_bar()]).html)
    policy = next(each["content"] for tag, each in found.tags if tag == "meta" and "http-equiv" in each)
    assert policy is not None and "default-src 'none'" in policy and "unsafe" not in policy
    runs = [text for attributes, text in found.scripts if attributes.get("type") in (None, "module")]
    assert len(runs) == 3
    for text in runs:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    for tag, attributes in found.tags:
        assert not {"src", "href", "style", "onclick", "onload"} & set(attributes), tag


def test_pages_are_small() -> None:
    assert len(page(torsor.library.two_link()).html) < 200_000
    shown = [path for path in (ROOT / "docs" / "pages").iterdir() if path.suffix == ".html"]
    assert {path.stem for path in shown} == {
        "gait",
        "walking",
        "platform",
        "tracking",
        "elastic",
        "quadruped",
        "trained",
    }
    for path in shown:
        assert path.stat().st_size < 2_000_000, path.name


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    shown = page(torsor.library.two_link(), tmp_path / "arm.html")
    assert (tmp_path / "arm.html").read_text(encoding="utf-8") == shown.html
    assert [each.name for each in tmp_path.iterdir()] == ["arm.html"]


def test_sliders_are_within_the_limits_and_loops_have_active_ones() -> None:
    arm = torsor.library.ur5()
    sliders = decoded(page(arm).html)["actors"][0]["sliders"]
    assert [each["name"] for each in sliders] == list(arm.coordinate_names)
    assert [each["low"] for each in sliders] == arm.lower.tolist()
    loop = decoded(page(torsor.library.four_bar()).html)["actors"][0]
    assert [each["name"] for each in loop["sliders"]] == ["crank_joint"] and loop["passive"] == [1, 2]
    idle = torsor.library.four_bar().with_active([])
    note = decoded(page(idle).html)["actors"][0]
    assert note["sliders"] == [] and "with_active" in note["note"]


@pytest.mark.parametrize("name", ["free_flying_arm", "quadruped", "four_bar", "ur5"])
def test_sliders_of_pages_have_the_names_order_and_ranges_of_the_viewer(name: str) -> None:
    robot = getattr(torsor.library, name)()
    listed = decoded(page(robot).html)["actors"][0]["sliders"]
    slides = Posture(robot).slides
    assert [(each["name"], each["low"], each["high"]) for each in listed] == [
        (slide.name, slide.low, slide.high) for slide in slides
    ]
    assert {each["unit"] for each in listed} <= {"°", "mm"}


CLOSE = """
const path = process.argv[2], amount = Number(process.argv[3]);
import { readFileSync } from "node:fs";
const own = await import(path);
const { start, sliders, passive, scales } = JSON.parse(readFileSync(`${path}on`));
const followed = new Function(readFileSync(process.argv[1], "utf8") + "; return followed;")();
const found = followed(own, start, sliders[0].index, amount, passive, scales);
console.log(JSON.stringify(found && Array.from(found)));
"""


@needs_node
@pytest.mark.parametrize("name", ["four_bar", pytest.param("gough_stewart", marks=pytest.mark.slow)])
def test_loops_in_a_page_follow_as_the_robot_assembles(name: str, tmp_path: Path) -> None:
    given = getattr(torsor.library, name)()
    robot, start = Scene.of(given).robot, home(given)
    content, module = controls(robot, start, 1.0)
    (tmp_path / "robot.js").write_text(module)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "robot.json").write_text(json.dumps(content))  # the path of the module, and "on"
    closing = ASSETS / "closing.js"
    found = json.loads(node(CLOSE, str(closing), str(tmp_path / "robot.js"), "0.15"))
    active = [robot.position_names.index(each) for each in robot.active]
    goal = start[active]
    goal[0] += 0.15
    light = robot.to(device="casadi")
    assert np.abs(np.array(found)[active] - goal).max() < 1e-12
    assert np.abs(light.closed.error(found)).max() < 1e-7
    assert np.abs(light.difference(start, found)).max() < 1.0  # the same assembly mode
    if name == "gough_stewart":  # legs of 20 m reach no platform
        assert json.loads(node(CLOSE, str(closing), str(tmp_path / "robot.js"), "20")) is None


def test_simplified_meshes_keep_their_shape() -> None:
    ball, cube = sphere(1.0), box([1.0, 1.0, 1.0])
    fewer = simplified(ball, 0.3)
    assert len(fewer.faces) < len(ball.faces)
    assert np.abs(np.linalg.norm(fewer.vertices, axis=1) - 1.0).max() < 0.03
    dense = within([ball, cube], 400)
    assert sum(len(each.faces) for each in dense) <= 400
    corners = simplified(cube, 0.2).vertices
    assert np.abs(np.abs(corners) - 0.5).max() < 1e-3  # corners stay corners


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: page([]), "robots, trajectories"),
        (lambda: page(3), "cannot play int"),
        (lambda: page(torsor.library.two_link(), q=[1.0]), "q"),
        (lambda: page(torsor.library.two_link(), rate=0.0), "rate"),
        (lambda: page(torsor.library.two_link(), trails=["nowhere"]), "nowhere"),
    ],
)
def test_bad_input_raises(call: object, words: str) -> None:
    with refused(words):
        call()  # type: ignore[operator]


def test_arrows_have_the_colours_of_the_viewer() -> None:
    text = (ASSETS / "stage.js").read_text(encoding="utf-8")
    names = {"FORCE": ("reactions", "external", "ground"), "MOMENT": ("moments", "external moments")}
    for constant, kinds in names.items():
        (line,) = re.findall(rf"^const {constant} = (.*);$", text, flags=re.MULTILINE)
        colors = [list(map(int, found.split(", "))) for found in re.findall(r"\[([^]]*)\]", line)]
        for kind, color in zip(kinds, colors, strict=True):
            assert np.abs(np.array(color[:3]) - 255 * np.array(ARROW_COLORS[kind])).max() <= 0.5


@needs_node
@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (-119.6, 119.6, ["\u2212100", "\u221250", "0", "50", "100"]),
        (0.0, 1.0, ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-0.05, 0.05, ["\u22120.04", "\u22120.02", "0", "0.02", "0.04"]),
        (-2.3e5, 2.3e5, ["\u22122.0e+5", "\u22121.0e+5", "0", "1.0e+5", "2.0e+5"]),
        (0.0, 0.0, []),
    ],
)
def test_ticks_of_the_chart_are_round(low: float, high: float, texts: list[str]) -> None:
    script = (ASSETS / "chart.js").read_text(encoding="utf-8")
    script += f"console.log(JSON.stringify(ticks({low}, {high}).map((each) => each.text)));"
    assert json.loads(node(script)) == texts

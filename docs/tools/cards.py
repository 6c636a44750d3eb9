"""Draw the pictures of the cards on the landing page, docs/cards/*.png, and those of five other pages.

python docs/tools/cards.py                    # all of them: two minutes, half of them for the walk
python docs/tools/cards.py control plan       # a selection
"""

import re
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi
import matplotlib.pyplot as plt
import numpy as np
from facts import DOCS, ROOT, ratio, ratios, read_facts
from matplotlib.ticker import MaxNLocator

sys.path.insert(0, str(ROOT / "examples"))

from moving_picture import (
    BLUE,
    GREEN,
    Actor,
    Arm,
    Body,
    Picture,
    View,
    Walker,
    about_z,
    arrows,
    body,
)

import torsor
from pages import elastic_motion
from torsor.control import CenterOfMass, WholeBody
from torsor.formats.meshes.triangles import sphere
from torsor.human import recordings, walking
from torsor.human.measured import measured_gait
from torsor.human.recordings.loading import EXAMPLE_MASS
from torsor.simulation import Contact
from torsor.simulation.timeline import timeline
from torsor.spatial import make_pose
from torsor.view.scene import Scene, home
from torsor.view.scene.curves import charts, span
from torsor.view.scene.detail import detailed

WIDTH, HEIGHT = 480, 300  # pixels
RED = (0.80, 0.25, 0.22)
SAME_FLAGS = "same compiler flags"
PAINT = (0.89, 0.52, 0.2)
LINES = {"own": "#3f51b5", "other": "#f59e0b", "measured": "0.7"}


def compute() -> None:
    """Draw an arm with the forces in its joints."""
    _save("compute", Arm().bodies(0.12), [-1.5, -4.6, 1.5], [-1.3, 0.0, 0.76], 0.29)


def simulate() -> None:
    """Draw the standing quadruped of contact.md, with the forces on its feet; for the page, also over time."""
    example = _code(DOCS / "simulate" / "contact.md", 1)
    robot, stand = example["robot"], example["stand"]
    links = [robot.link_names.index(f"{leg}_shank") for leg in ("fl", "fr", "hl", "hr")]
    forces = np.einsum("tnij,tnj->tni", robot.poses(stand.q)[:, links, :3, :3], stand.external[:, links, 3:])
    feet = np.array([robot.pose(stand.q[-1], f"{leg}_foot")[:3, 3] for leg in ("fl", "fr", "hl", "hr")])
    shown = [*Actor(stand, np.eye(4)).bodies(0.9999), *arrows(feet, forces[-1] / 110.0, GREEN)]
    eye, target = [1.4, -2.1, 0.75], [0.0, 0.0, 0.2]
    _save("simulate", shown, eye, target, 0.3)
    figure, axes = _beside(shown, eye, [0.06, 0.0, 0.2], 0.25)
    axes.plot(stand.times, forces[:, 0, 2], label="each front foot")
    axes.plot(stand.times, forces[:, 2, 2], label="each hind foot")
    axes.axhline(9.81 * robot.mass / 4, color="0.4", linestyle=":", linewidth=0.8, label="a quarter of the weight")
    axes.set(xlabel="time (s)", ylabel="vertical contact force (N)", xlim=(0.0, stand.times[-1]), ylim=(0.0, None))
    axes.legend(frameon=False)
    figure.savefig(DOCS / "simulate" / "contact.png", dpi=130)


# Scenes of contact_errors.py: times (s), the distance (m) by which instants are moved apart, and what the camera sees.
SCENES: dict[str, tuple[tuple[float, ...], float, float]] = {
    "box that slides": ((0.0, 0.14, 0.98), 0.03, 0.9),
    "ball that slides and rolls": ((0.0, 0.24, 0.56, 0.98), 0.0, 1.5),
    "box that falls on a corner": ((0.0, 0.12, 0.24, 0.98), 0.36, 1.5),
    "box that tips over": ((0.0, 0.1, 0.18, 0.98), 0.3, 1.5),
    "capsule that falls and rolls": ((0.0, 0.14, 0.4, 0.98), 0.06, 1.2),
    "legged robot that lands": ((0.0, 0.2, 0.98), 0.75, 2.3),
}


def scenes() -> None:
    """Draw the scenes of the errors of contact, for contact.md."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import contact_errors

    plt.rcParams |= {"font.size": 9}
    figure, every = plt.subplots(2, 3, figsize=(9.0, 3.3), layout="constrained")
    contact = Contact(kind="hard", friction=0.5)
    for axes, (name, (times, apart, width)) in zip(every.ravel(), SCENES.items(), strict=True):
        bodies, v = contact_errors.SCENES[name]
        with tempfile.TemporaryDirectory() as folder:
            robot = contact_errors.load(bodies, folder)[0]
        peer = torsor.formats.Convention(robot, "mujoco")
        start = peer.ours(peer.theirs(home(robot)), [*v, *np.zeros(robot.nv - len(v))])
        q = contact_errors.ours(robot, *start, contact, contact_errors.STEP)
        scene, shown = Scene.of(robot), list[Body]()
        for k, time in enumerate(times):
            poses = make_pose(p=[k * apart, 0.0, 0.0]) @ scene.poses(q[round(time / contact_errors.STEP)])
            fade = 0.6 * (1 - k / (len(times) - 1))
            for part in scene.shown:
                colour = np.array(PAINT if part.link == 0 else part.color[:3])
                colour = colour + fade * (1 - colour)
                shown += [body(detailed(part, (24, 24)), poses[part.link + 1], colour)] * (part.link >= 0)
        across = np.concatenate([each.corners[..., 0].ravel() for each in shown])
        middle = np.array([(across.min() + across.max()) / 2, 0.0, 0.1 * width])
        view = View(600, 270, middle + width * np.array([0.35, -3.0, 1.0]), middle, 0.15)
        axes.imshow(_image(shown, view))
        axes.set_axis_off()
        axes.set_title(f"{name}\n{', '.join(f'{time:g}' for time in times)} s", fontsize=9)
    figure.savefig(DOCS / "simulate" / "contact_scenes.png", dpi=130)


def whole_body() -> None:
    """Draw the quadruped of whole_body.md while its centre of mass sways, with its contact forces, for the page."""
    example = _code(DOCS / "simulate" / "whole_body.md", 1)
    robot, q, tasks, legs = example["walker"], example["q"], example["tasks"], ("fl", "fr", "hl", "hr")
    q[2] = 0.02 - robot.pose(q, "fl_foot")[2, 3]
    x, y, z = robot.center_of_mass(q)
    sway = CenterOfMass(lambda t: casadi.vertcat(x, y + 0.03 * (1 - casadi.cos(np.pi * t)), z), weight=10.0)
    law = WholeBody(robot, [sway, *tasks[1:]], example["feet"])
    contact = Contact(kind="hard", stiffness=4e4)
    run = torsor.simulate(robot, q, duration=4.0, controller=law, contact=contact, step=2e-3)
    links = [robot.link_names.index(f"{leg}_shank") for leg in legs]
    forces = np.einsum("tnij,tnj->tni", robot.poses(run.q)[:, links, :3, :3], run.external[:, links, 3:])
    now = int(np.searchsorted(run.times, 1.0))
    feet = np.array([robot.pose(run.q[now], f"{leg}_foot")[:3, 3] for leg in legs])
    shown = [*Actor(run, np.eye(4)).bodies(0.25), *arrows(feet, forces[now] / 130.0, GREEN)]
    figure, axes = _beside(shown, [1.9, 0.9, 0.75], [0.0, 0.02, 0.19], 0.27)
    axes.plot(run.times, forces[:, [0, 2], 2].sum(axis=1), label="left feet")
    axes.plot(run.times, forces[:, [1, 3], 2].sum(axis=1), label="right feet")
    axes.set(xlabel="time (s)", ylabel="vertical contact force (N)", xlim=(0.0, run.times[-1]), ylim=(0.0, 120.0))
    other, left = axes.twinx(), 1000 * (robot.center_of_mass(run.q)[:, 1] - y)
    other.plot(run.times, left, color="0.4", linestyle=":", label="centre of mass, to the left (right axis)")
    other.set(ylabel="displacement (mm)", ylim=(0.0, 80.0))
    other.spines["right"].set_visible(True)
    figure.legend(loc="outside upper right", frameon=False, ncols=3, fontsize=8)
    figure.savefig(DOCS / "simulate" / "whole_body.png", dpi=130)


def plan() -> None:
    """Draw the Panda of motion.md while it passes the ball; for the page, larger and with its torques."""
    example = _code(DOCS / "plan" / "motion.md", 3)
    arm, result, obstacle = example["arm"], example["around"], example["ball"]
    shown = [body(sphere(obstacle.radius, 24), make_pose(p=obstacle.center), RED)]
    hand = arm.pose(result.q, "panda_hand_tcp")[:, :3, 3]
    shown += [body(sphere(0.012, 12), make_pose(p=point), BLUE) for point in hand]
    for part, fade in ((0.0, 0.6), (0.5, 0.3), (0.9999, 0.0)):
        bodies = Actor(result, np.eye(4)).bodies(part)
        shown += _faded(bodies, fade)
    eye, target = [3.4, 0.5, 1.5], [0.25, 0.02, 0.37]
    _save("plan", shown, eye, target, 0.27)
    figure, axes = _beside(shown, eye, target, 0.29)
    lines = axes.plot(result.times, 100 * result.tau / arm.effort_limit)
    for side in (-60.0, 60.0):
        axes.axhline(side, color="black", linestyle="--", linewidth=0.8)
    axes.set(xlabel="time (s)", ylabel="torque (% of the limit)", xlim=(0.0, 1.0), ylim=(-70.0, 70.0))
    figure.legend(lines, arm.joint_names, frameon=False, fontsize=8, ncols=7, loc="outside upper center")
    figure.savefig(DOCS / "plan" / "motion.png", dpi=130)


def people() -> None:
    """Draw a predicted walk with the ground forces, at three instants."""
    walker, shown = Walker(walking(), 0.0, -0.4, 1), list[Body]()
    for x, part in ((-0.8, 0.02), (0.15, 0.25), (1.05, 0.42)):
        shown += [each._replace(corners=each.corners + np.array([x, 0.0, 0.0])) for each in walker.bodies(part)]
    _save("people", shown, [0.0, -14.0, 2.0], [0.0, 0.0, 0.86], 0.14)


def capture() -> None:
    """Draw the body of the example recording with its measured markers and ground forces."""
    walk = recordings.example()
    gait = measured_gait(walk.markers, walk.forces, mass=EXAMPLE_MASS, height=1.8)
    k = int(np.searchsorted(gait.times, 0.92))
    upright = about_z(-0.5) @ np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    x, _, z = gait.motion.q[k, :3]
    actor = Actor(gait, make_pose(upright, -upright @ [x, 0.0, z]))
    positions = walk.markers.in_axes("left up forward").positions[k]
    points = actor.turned(positions[np.isfinite(positions).all(axis=1)]) + actor.place[:3, 3]
    balls = [body(sphere(0.02, 12), make_pose(p=point), BLUE) for point in points]
    ground = actor.line.ground[k][np.isfinite(actor.line.ground[k]).all(axis=-1)]
    starts, forces = actor.turned(ground[:, :3]) + actor.place[:3, 3], actor.turned(ground[:, 3:])
    shown = [*actor.bodies(k / (len(actor.line) - 1)), *balls, *arrows(starts, forces / 900.0, GREEN)]
    _save("capture", shown, [0.2, -7.0, 1.2], [0.0, 0.0, 0.88], 0.265)


def control() -> None:
    """Draw the errors of the elastic elbow of elastic_joints.md."""
    curves = {name: run[:2] for name, run in _code(DOCS / "simulate" / "elastic_joints.md", 1)["runs"].items()}
    axes = _chart("tracking error of an elastic joint (°)")
    axes.plot(*curves["rigid computed torque"], color=LINES["other"], label="rigid model")
    axes.plot(*curves["rigid, sag-corrected"], color=LINES["measured"], label="sag-corrected")
    axes.plot(*curves["elastic tracking"], color=LINES["own"], label="elastic")
    _save_chart("control", axes)


def elastic() -> None:
    """Draw the UR5 of the page elastic.html, and the charts of its shoulder, for elastic_joints.md."""
    run, plan = elastic_motion()
    shown = list[Body]()
    for part, fade in ((0.0, 0.7), (0.1, 0.4), (0.25, 0.0)):
        bodies = Actor(run, np.eye(4)).bodies(part)
        shown += _faded(bodies, fade)
    figure, axes = _beside(shown, [2.6, -2.6, 1.2], [0.2, 0.05, 0.3], 0.22, rows=4)
    lines = [(timeline(plan), LINES["measured"], True), (timeline(run), LINES["own"], False)]
    found = {title: each for title, each in charts(lines)["shoulder_lift_joint"].items() if "velocity" not in title}
    for each, (title, curves) in zip(axes, found.items(), strict=True):
        for curve in curves:
            style = {"linestyle": "--" if curve.dashed else "-", "alpha": 0.4 if curve.pale else 1.0}
            each.plot(curve.times, curve.values, color=curve.color, **style)
        low, high = span(title, curves)[:2]
        each.set(xlim=(0.0, run.times[-1]), ylim=(1.05 * low - 0.05 * high, 1.05 * high - 0.05 * low))
        each.set_title(title, fontsize=8, loc="left", pad=3)
        each.label_outer()
    axes[-1].set_xlabel("time (s)")
    figure.savefig(DOCS / "simulate" / "elastic_page.png", dpi=130)


def identify() -> None:
    """Draw measured and predicted torques of tutorial 7."""
    names = runpy.run_path(str(ROOT / "examples" / "07_identification.py"))
    new, axes = names["new"], _chart("joint torque (N m)")
    shown = (new.times > 2) & (new.times < 6)
    times, states = new.times[shown], (new.q[shown], new.v[shown], new.a[shown])
    models = names["assumed"], names["identified"].robot
    assumed, identified = (model.inverse_dynamics(*states)[:, 0] for model in models)
    axes.plot(times, new.tau[shown, 0], color=LINES["measured"], linewidth=6, label="measured")
    axes.plot(times, assumed, "--", color=LINES["other"], label="assumed")
    axes.plot(times, identified, color=LINES["own"], label="identified")
    _save_chart("identify", axes)


def deploy() -> None:
    """Draw the measured speeds of programs that are compiled with the same flags."""
    facts = read_facts()
    rows = [row for row in facts["speed"] if row["peer_call"] == SAME_FLAGS]
    axes = _chart(f"times as fast as Pinocchio,\n{SAME_FLAGS}, one core")
    for k, row in enumerate(rows[::-1]):
        times = float(np.median(ratios(facts, row, "x86")))
        axes.barh(k, times, color=LINES["own"], height=0.55)
        axes.text(times, k, f" {ratio(facts, row, 'x86')}", va="center")
        axes.text(0, k + 0.32, row["name"].replace("one call from C++, ", ""), va="bottom")
    axes.set(yticks=[], ylim=(-0.5, len(rows) - 0.1), xlim=(0, 8))
    _save_chart("deploy", axes)


def _faded(bodies: list[Body], fade: float) -> list[Body]:
    """Return bodies in paler colours, behind those of later poses where their surfaces coincide."""
    front = 0.01 * (1 - fade)  # m
    return [each._replace(colour=each.colour + fade * (1 - each.colour), near=front) for each in bodies]


def _code(page: Path, blocks: int) -> dict[str, Any]:
    """Run the first code blocks of a page and return its names."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)[:blocks]:
        exec(block.replace("figure.savefig", "# "), names)
    return names


def _save(name: str, bodies: list[Body], eye: list[float], target: list[float], fov: float) -> None:
    image = _image(bodies, View(WIDTH, HEIGHT, np.array(eye), np.array(target), fov))
    image.save(DOCS / "cards" / f"{name}.png", optimize=True)


def _image(bodies: list[Body], view: View) -> Any:
    picture = Picture(view)
    picture.draw(bodies)
    return picture.image({}, 10)


def _beside(bodies: list[Body], eye: list[float], target: list[float], fov: float, rows: int = 1) -> tuple[Any, Any]:
    """Return a figure with a picture on its left, and the axes of a chart, or of several ones, on its right."""
    plt.rcParams |= {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.5}
    figure = plt.figure(figsize=(9.0, 3.0 + 0.4 * rows), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[5, 4])
    scene, axes = left.subplots(), right.subplots(rows, sharex=True)
    scene.imshow(_image(bodies, View(1000, 720, np.array(eye), np.array(target), fov)))
    scene.set_axis_off()
    return figure, axes


def _chart(title: str) -> Any:
    plt.rcParams |= {"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 2.5}
    axes = plt.subplots(figsize=(WIDTH / 100, HEIGHT / 100), layout="constrained")[1]
    axes.figure.get_layout_engine().set(w_pad=0.15, h_pad=0.1)
    axes.set_title(title, fontsize=12)
    return axes


def _save_chart(name: str, axes: Any) -> None:
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, loc="lower center", ncols=3, fontsize=10, handlelength=1.4, columnspacing=1.0)
        low, high = axes.get_ylim()
        axes.set(xticks=[], ylim=(low - 0.25 * (high - low), high))
        axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.figure.savefig(DOCS / "cards" / f"{name}.png", dpi=100)


PICTURES: tuple[Callable[[], None], ...] = (
    *(compute, simulate, scenes, whole_body, control, elastic, plan),
    *(identify, people, capture, deploy),
)


if __name__ == "__main__":
    (DOCS / "cards").mkdir(exist_ok=True)
    for draw in PICTURES:
        if len(sys.argv) == 1 or draw.__name__ in sys.argv[1:]:
            draw()

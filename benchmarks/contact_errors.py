"""Compare the errors of steps of 2 ms with contact to those of MuJoCo, in six scenes; print the table of contact.md.

The error of each program is the distance from its own motion with steps of 2 ms / 64: the root mean square over 1 s of
three points of each link, 0.1 m from its origin. The largest penetration of the motion follows. Both programs load the
same MJCF file, with friction 0.5. MuJoCo uses elliptic cones, its implicitfast integrator, and otherwise its defaults,
which do not rebound; Torsor's hard contact has its defaults. Compliant contact has MuJoCo's depth at rest and the
dissipation 5 s/m.
"""

import tempfile
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import torsor
from torsor.formats import Convention
from torsor.simulation import Contact
from torsor.simulation.contact import points_at

STEP, FINER, DURATION, SAMPLE = 2e-3, 64, 1.0, 0.02
POINTS = np.vstack([0.1 * np.eye(3), np.ones(3)])  # columns, in link axes
OPTION = '<option cone="elliptic" integrator="implicitfast"/>'
FLOOR = '<geom type="plane" size="0 0 1" friction="0.5"/>'


def thing(geom: str, height: float) -> str:
    """Return a free body with one geom of 1 kg."""
    return f'<body name="thing" pos="0 0 {height}"><freejoint/><geom {geom} mass="1" friction="0.5"/></body>'


def leg(x: float, y: float) -> str:
    """Return a leg with two sprung and damped joints and a ball foot; only the foot touches the ground."""
    joint = '<joint type="hinge" axis="0 1 0" stiffness="60" damping="2" armature="0.01" springref='
    bone = '<geom type="capsule" fromto="0 0 0 0 0 -0.2" contype="0" conaffinity="0" '
    foot = '<geom type="sphere" size="0.02" pos="0 0 -0.2" mass="0.05" friction="0.5"/>'
    shank = f'<body pos="0 0 -0.2">{joint}"-80"/>{bone}size="0.01" mass="0.2"/>{foot}</body>'
    return f'<body pos="{x} {y} 0">{joint}"40"/>{bone}size="0.02" mass="1"/>{shank}</body>'


LEGS = "".join(leg(x, y) for x in (0.2, -0.2) for y in (0.1, -0.1))
TRUNK = '<geom type="box" size="0.25 0.1 0.05" mass="6" contype="0" conaffinity="0"/>'
WALKER = f'<body name="trunk" pos="0 0 0.43"><freejoint/>{TRUNK}{LEGS}</body>'
# Scene: bodies, and the velocity at the start (v in space, omega in body axes), as in MuJoCo.
SCENES = {
    "box that slides": (thing('type="box" size="0.1 0.1 0.05"', 0.05), [2.0, 0.5, 0, 0, 0, 1.0]),
    "ball that slides and rolls": (thing('type="sphere" size="0.1"', 0.1), [1.5, 0, 0, 0, 0, 5.0]),
    "box that falls on a corner": (thing('type="box" size="0.1 0.1 0.05"', 0.3), [0.5, 0, 0, 2.0, 3.0, 0]),
    "box that tips over": (thing('type="box" size="0.05 0.05 0.15"', 0.15), [1.2, 0, 0, 0, 3.0, 0]),
    "capsule that falls and rolls": (
        thing('type="capsule" size="0.05 0.1" euler="90 0 0"', 0.2),
        [1.0, 0, 0, 0.5, 0, 0.5],
    ),
    "legged robot that lands": (WALKER, [0.5, 0, 0, 0, 0.5, 0]),
}


def load(bodies: str, folder: str) -> tuple[torsor.Robot, Path]:
    """Return the robot of a scene, and its MJCF file in a folder."""
    path = Path(folder) / "scene.xml"
    world = f"<worldbody>{FLOOR}{bodies}</worldbody>"
    path.write_text(f'<mujoco>{OPTION}<compiler angle="degree"/>{world}</mujoco>')
    return torsor.load(path), path


def points(robot: torsor.Robot, q: Any) -> Any:
    """Return the points (T, L, 3, 3) at positions q (T, nq)."""
    return (robot.poses(q) @ POINTS)[..., :3, :]


def error(robot: torsor.Robot, q: Any, truth: Any) -> float:
    """Return the root mean square of the distances (m)."""
    squares = ((points(robot, q) - points(robot, truth)) ** 2).sum(axis=-2)
    return float(np.sqrt(squares.mean()))


def theirs(model: Any, v: list[float], step: float, peer: Convention) -> tuple[Any, float, float]:
    """Return the motion of MuJoCo (T, nq) in Torsor's coordinates, the largest depth, and the depth at rest (m)."""
    model.opt.timestep = step
    data = mujoco.MjData(model)
    data.qvel[: len(v)] = v
    rows, deepest = [], 0.0
    for _ in range(round(DURATION / SAMPLE)):
        rows.append(peer.ours(data.qpos))
        for _ in range(round(SAMPLE / step)):
            mujoco.mj_step(model, data)
            deepest = max([deepest, *(-data.contact.dist)])
    mujoco.mj_step(model, data, round(2.0 / step))
    touching = [-contact.dist for contact in data.contact if contact.dist < 0]
    return np.array(rows), deepest, float(np.mean(touching))


def ours(robot: torsor.Robot, start: Any, v: Any, contact: Contact, step: float) -> Any:
    """Return Torsor's motion (T, nq) after each step of 2 ms."""
    method = "rk4" if contact.kind == "hard" else "linearly_implicit"
    return torsor.simulate(robot, start, v, DURATION - SAMPLE, contact=contact, step=step, record=STEP, method=method).q


def main() -> None:
    """Print the table."""
    print("| scene | MuJoCo | hard | compliant |\n|---|---|---|---|")
    for name, (bodies, v) in SCENES.items():
        with tempfile.TemporaryDirectory() as folder:
            robot, path = load(bodies, folder)
            model = mujoco.MjModel.from_xml_path(str(path))
        peer = Convention(robot, "mujoco")
        (truth, _, deep), (coarse, depth, _) = (theirs(model, v, h, peer) for h in (STEP / FINER, STEP))
        _, own = peer.ours(model.qpos0, np.r_[v, np.zeros(model.nv - len(v))])
        cells = [(error(robot, coarse, truth), depth)]
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data, 2000)
        stiffness = float(sum(model.body_mass)) * 9.81 / max(1, data.ncon) / deep
        for settings in ({"kind": "hard"}, {"stiffness": stiffness, "exponent": 1.0, "dissipation": 5.0}):
            contact = Contact(friction=0.5, **settings)
            fine, rough = (ours(robot, truth[0], own, contact, h) for h in (STEP / FINER, STEP))
            every = round(SAMPLE / STEP)
            depth = -float(points_at(robot, contact, rough).distance.min())
            cells.append((error(robot, rough[::every], fine[::every]), depth))
        words = (f"{1e3 * off:.2g} mm, {1e3 * depth:.2g} mm" for off, depth in cells)
        print(f"| {name} | " + " | ".join(words) + " |", flush=True)


if __name__ == "__main__":
    main()

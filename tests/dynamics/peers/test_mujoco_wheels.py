"""Rolling against MuJoCo: its contacts are soft and creep, and approach rolling without slipping as they stiffen."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import warned

mujoco = pytest.importorskip("mujoco")

DISC = """
<mujoco><worldbody><body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="{0} {1} {0}"/>
<geom type="cylinder" size="{2} 1e-4" euler="90 0 0"/></body></worldbody></mujoco>
"""
# Steps (s), and times (s) in which a contact recovers: each stiffer than the one before.
STIFFER = ((5e-4, 2e-3), (2e-4, 8e-4), (1e-4, 4e-4))


def stiff(text: str, step: float, recovers: float, floor: float) -> "mujoco.MjModel":
    """Return a model whose bodies touch a rough floor at a height (m)."""
    root = ET.fromstring(text)
    ET.SubElement(root.find("worldbody"), "geom", type="plane", size="9 9 1", pos=f"0 0 {floor}")
    for geom in root.iter("geom"):
        rough = {"friction": "5 0 0", "condim": "3", "contype": "1", "conaffinity": "1"}
        geom.attrib.update(rough | {"solref": f"{recovers} 1", "solimp": "0.9999 0.9999 0.001"})
    option = root.find("option")
    option = ET.SubElement(root, "option") if option is None else option
    settings = {"timestep": str(step), "integrator": "RK4", "cone": "elliptic", "impratio": "100"}
    option.attrib.update(settings | {"iterations": "200", "tolerance": "1e-14"})
    return mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))


def end(model: "mujoco.MjModel", data: "mujoco.MjData", duration: float) -> np.ndarray:
    for _ in range(round(duration / model.opt.timestep)):
        mujoco.mj_step(model, data)
    return np.array(data.qpos)


def test_a_wobbling_disc_is_what_stiff_contacts_approach() -> None:
    r, duration = 0.3, 0.2
    disc = torsor.library.rolling_disc(r).to(device="casadi")
    q = disc.closed.positions(disc.integrate(disc.neutral(), [0.2, 0, 0, 0, 0, 0]))
    v = disc.closed.velocities(q, [0.1, 8.0, 0.5, 0, 0, 0], coordinates="all")
    expected = torsor.simulate(disc, q, v, duration).q[-1]
    errors = []
    for step, recovers in STIFFER:
        model = stiff(DISC.format(r**2 / 4, r**2 / 2, r), step, recovers, 0.0)
        data = mujoco.MjData(model)
        data.qpos = np.r_[q[:3], q[6], q[3:6]]
        data.qvel = np.r_[torsor.spatial.from_quaternion(q[3:]) @ v[3:], v[:3]]
        errors.append(float(np.abs(end(model, data, duration)[:3] - expected[:3]).max()))
    assert errors[0] > errors[1] > errors[2] and errors[2] < 3e-4


@pytest.mark.slow
def test_a_differential_drive_is_what_stiff_contacts_approach(tmp_path: Path) -> None:
    robot, torques, duration = torsor.library.differential_drive(), [0.5, 0.3], 1.0
    with warned(what="MJCF cannot express wheels that roll without slipping"):
        robot.save(tmp_path / "drive.xml")
    root = ET.fromstring((tmp_path / "drive.xml").read_text())
    for body in root.iter("body"):  # spheres: a cylinder would stand on two points, which do not let it turn
        for shown in body.findall("geom"):
            body.remove(shown)
        if body.get("name").endswith("wheel"):
            ET.SubElement(body, "geom", type="sphere", size="0.05" if "caster" in body.get("name") else "0.1", mass="0")
    expected = torsor.simulate(robot, duration=duration, controller=torques).q[-1]
    errors = []
    for step, recovers in STIFFER:
        model = stiff(ET.tostring(root, encoding="unicode"), step, recovers, 1e-6)  # the plane presses them down
        data = mujoco.MjData(model)
        data.ctrl = torques
        errors.append(np.abs(end(model, data, duration) - expected).max())
    assert errors[0] > errors[1] > errors[2] and errors[2] < 2e-4

"""Finite numbers whose squares or products overflow are refused by every reader, with file, part, number and range."""

from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.base.checks import MAX_NUMBER
from torsor.mechanism import Joint, Link, Motor, build

from .sdf_text import joint as sdf_joint
from .sdf_text import link as sdf_link
from .sdf_text import model as sdf_model
from .test_osim_robots import OLD as OSIM
from .urdf_text import SOUND, arm

UP_TO = r"allowed: .*1e\+50"
MIMIC = (
    '<joint name="wrist" type="continuous"><parent link="hand"/><child link="tip"/><mimic joint="elbow" {}/></joint>'
)
FOLLOWING = arm(extra=f'<link name="tip">{SOUND}</link>{MIMIC}')
MJCF = """<mujoco><worldbody><body name="b"><joint name="pin"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<site name="tip" pos="HERE 0 0"/></body></worldbody></mujoco>"""
TOML = """torsor = 1
units.angle = "rad"
[[links]]
name = "o"
[[links]]
name = "arm"
mass = 1.0
com = [HERE, 0, 0]
[[joints]]
name = "pin"
type = "revolute"
parent = "o"
child = "arm"
"""
USD = """#usda 1.0
(
    metersPerUnit = HERE
)
def Xform "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {}
"""
SDF = sdf_model(
    sdf_link("a"),
    sdf_link("b"),
    sdf_link("c"),
    sdf_joint("revolute", "a", "b", name="j"),
    sdf_joint(
        "revolute",
        "b",
        "c",
        '<axis><xyz>0 0 1</xyz><mimic joint="j"><multiplier>HERE</multiplier></mimic></axis>',
        "k",
    ),
    version="1.11",
)
WRONG = {
    "multiplier.urdf": (FOLLOWING.format('multiplier="HERE"'), "joint 'wrist'", "multiplier"),
    "offset.urdf": (FOLLOWING.format('offset="HERE"'), "joint 'wrist'", "offset"),
    "multiplier.sdf": (SDF, "joint 'k'", "multiplier"),
    "spline.osim": (OSIM.replace("<y>0.1 0 ", "<y>HERE 0 "), "NaturalCubicSpline ''", "y"),
    "line.osim": (OSIM.replace("<coefficients>1 ", "<coefficients>HERE "), "LinearFunction ''", "coefficients"),
    "mass.toml": (TOML, "link 'arm'", "centre of mass"),
}


@pytest.mark.parametrize("value", ["1e60", "1e160", "1e308"])
@pytest.mark.parametrize("name", WRONG)
def test_a_huge_number_of_a_file_is_an_error_with_its_place_and_range(tmp_path: Path, name: str, value: str) -> None:
    text, where, key = WRONG[name]
    (tmp_path / name).write_text(text.replace("HERE", value))
    with refused(allowed="1e+50") as caught:
        torsor.load(tmp_path / name)
    assert name in caught.value.where and where in caught.value.where
    assert key in str(caught.value) and value in str(caught.value).replace("e+", "e")


def test_huge_numbers_of_mjcf_are_errors(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    (tmp_path / "arm.xml").write_text(MJCF.replace("HERE", "1e160"))
    with refused(argument="pose", where="arm.xml: frame 'tip'", allowed="1e+50"):
        torsor.load(tmp_path / "arm.xml")


@pytest.mark.parametrize("unit", ["1e160", "1e-160"])
def test_units_of_stages_whose_powers_overflow_are_errors(tmp_path: Path, unit: str) -> None:
    pytest.importorskip("pxr")
    (tmp_path / "arm.usda").write_text(USD.replace("HERE", unit))
    with refused(where="arm.usda", allowed="1e-20 to 1e+20"):
        torsor.load(tmp_path / "arm.usda")


def test_the_largest_numbers_that_are_allowed_have_finite_forces() -> None:
    """Mass, length squared and ratio squared: the mass matrix is about 1e250."""
    rod = Link("rod", MAX_NUMBER, (MAX_NUMBER, 0, 0), MAX_NUMBER * np.eye(3))
    motor = Motor("ground", MAX_NUMBER, MAX_NUMBER, (0, 0, 1))  # type: ignore[arg-type]
    pins = [
        Joint("a", "revolute", "ground", "rod", motor=motor),
        Joint("b", "revolute", "rod", "tip", coordinate="a", ratio=MAX_NUMBER, offset=MAX_NUMBER, viscous=MAX_NUMBER),
    ]
    tip = Link("tip", MAX_NUMBER, (MAX_NUMBER, 0, 0), MAX_NUMBER * np.eye(3))
    ground = Link("ground", inertia=MAX_NUMBER * np.eye(3))
    robot = torsor.Robot.of(build("huge", [ground, rod, tip], pins)).to(device="casadi")
    assert np.isfinite(robot.mass_matrix([0.3])).all()
    assert np.isfinite(robot.inverse_dynamics([0.3], [1.0], [1.0])).all()
    follower = Joint("c", "revolute", "tip", "end", coordinate="b", ratio=MAX_NUMBER)
    with refused(argument="ratio", where="joint 'c'", allowed="1e+50"):
        build("chain", [ground, rod, tip, Link("end", 1.0)], [*pins, follower])


@pytest.mark.parametrize("ratio", [1e-60, 0.0])
def test_ratios_whose_inverse_overflows_are_refused(ratio: float) -> None:
    with refused(argument="ratio", where="joint 'b'", allowed="from 1e-50 in size"):
        Joint("b", "revolute", "o", "rod", ratio=ratio)

"""Wheels in files: TOML keeps them, and other formats warn that they omit them."""

from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.mechanism import ends_of
from torsor.spatial import make_pose

CART = """
torsor = 1
[units]
angle = "deg"
[[links]]
name = "ground"
[[links]]
name = "hull"
mass = 1.0
inertia = [1, 1, 1, 0, 0, 0]
[[joints]]
name = "planar"
type = "planar"
parent = "ground"
child = "hull"
[[frames]]
name = "axle"
link = "hull"
position = [0, 0, 0.2]
rpy = [-90, 0, 0]
[[wheels]]
name = "left"
frame = "axle"
{}
"""


def every_kind() -> torsor.Robot:
    robot = torsor.library.differential_drive().to(device="casadi")
    robot = robot.with_frame("floor", "ground", make_pose(p=[0, 0, -0.01]))
    robot = robot.with_wheel("omni", "chassis", 0.1, "omni", axis=(0, 1, 0), point=(0, 0, 0.1), roller=0.7)
    robot = robot.with_wheel("edge", "chassis", kind="edge", axis=(0, 1, 0))
    robot = robot.with_wheel("ball", "chassis", 0.2, "ball", point=(0.1, 0.2, 0.19), ground="floor")
    return robot.with_wheel("skid", "caster/fork", kind="skid")


@pytest.mark.parametrize("name", ["differential_drive", "bicycle_car", "rolling_disc", "caster"])
def test_robots_on_wheels_read_back_equal(name: str, tmp_path: Path) -> None:
    robot = getattr(torsor.library, name)()
    robot.save(tmp_path / "robot.toml")
    assert torsor.load(tmp_path / "robot.toml") == robot


def test_every_kind_of_wheel_reads_back_equal(tmp_path: Path) -> None:
    robot = every_kind()
    robot.save(tmp_path / "robot.toml")
    found = torsor.load(tmp_path / "robot.toml")
    assert found == robot and len(found.loops) == 7
    assert found.kernels.exact.call("closure_error", found.neutral()).shape == (17,)


@pytest.mark.parametrize("suffix", ["urdf", "xml"])
def test_other_formats_warn_that_wheels_are_left_out(suffix: str, tmp_path: Path) -> None:
    robot = torsor.library.caster()
    with warned(what="cannot express wheels that roll without slipping (contact)"):
        robot.save(tmp_path / f"robot.{suffix}")
    assert torsor.load(tmp_path / f"robot.{suffix}").nv == robot.nv


def test_rollers_are_in_the_angles_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "cart.toml").write_text(CART.format('kind = "omni"\nradius = 0.2\nroller = 45'))
    wheel = torsor.load(tmp_path / "cart.toml").loops[0]
    assert wheel == torsor.Wheel("left", "axle", "omni", 0.2, np.pi / 4)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "radius"),
        ('radius = "big"', "radius is 'big'"),
        ("radius = 0.1\nwidth = 0.1", "unknown key 'width'"),
        ('radius = 0.1\nkind = "tyre"', "kind"),
        ('radius = 0.1\nground = "sky"', "wheel 'left' ends at 'sky', which does not exist"),
    ],
)
def test_wheels_that_cannot_be_are_refused_with_file_and_name(lines: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "cart.toml").write_text(CART.format(lines))
    with refused(message):
        torsor.load(tmp_path / "cart.toml")


def test_a_robot_with_wheels_is_attached_cut_and_compared() -> None:
    hull = torsor.Link("hull", 1.0, inertia=np.eye(3))
    cart = torsor.build("cart", [hull], [], base="floating")
    both = cart.attach(torsor.library.caster(), at="hull", prefix="left/")
    wheel = both.loops[0]
    assert (wheel.name, wheel.frame, wheel.ground) == ("left/contact", "left/contact/axle", "")
    assert ends_of(both, wheel) == ("world", "left/contact/axle")  # the ground is that of the whole
    assert both.without_loop("left/contact").loops == ()
    assert both != cart.attach(torsor.library.caster(radius=0.06), at="hull", prefix="left/")
    with refused(value="left/contact"):
        both.subtree("left/wheel")

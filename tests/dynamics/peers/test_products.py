"""Commercial arms of the library agree with the files that their manufacturers publish."""

import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import torsor
from robots import robot_file
from torsor.robot.accessors import method_of

FINGERS = {"panda_leftfinger", "panda_rightfinger", "panda_finger_joint1", "panda_finger_joint2"}
HAND = {"panda_hand", "panda_hand_joint", "panda_hand_tcp", "panda_hand_tcp_joint"}


def published(name: str, without: set[str], folder: Path) -> torsor.Robot:
    tree = ElementTree.parse(robot_file(name))
    root = tree.getroot()
    for part in [each for each in root if each.get("name") in without]:
        root.remove(part)
    tree.write(folder / name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torsor.ModelWarning)
        return torsor.load(folder / name)


@pytest.mark.parametrize(
    ("make", "file", "without", "places"),
    [
        (torsor.library.ur5, "ur5_robot.urdf", set(), ["ee_link"]),
        (torsor.library.panda, "panda.urdf", FINGERS, ["panda_hand_tcp"]),
        (lambda: torsor.library.panda(hand=False), "panda.urdf", FINGERS | HAND, ["panda_link8"]),
    ],
)
def test_products_are_the_published_files(make, file, without, places, tmp_path):
    ours, theirs = make(), published(file, without, tmp_path)
    assert ours.coordinate_names == theirs.coordinate_names
    assert [link.name for link in ours.links] == [link.name for link in theirs.links]
    for limit in ("lower", "upper", "velocity_limit", "effort_limit"):
        np.testing.assert_allclose(getattr(ours, limit), getattr(theirs, limit), rtol=1e-11)
    rng = np.random.default_rng(1)
    q, v, a = rng.uniform(-2, 2, (3, 5, ours.nv))
    a_pair = [robot.to(device="casadi") for robot in (ours, theirs)]
    for name, given in (("inverse_dynamics", (q, v, a)), ("mass_matrix", (q,)), ("gravity_force", (q,))):
        one, other = (method_of(robot, name)(*given) for robot in a_pair)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(other).max())
    for place in places:
        one, other = (robot.pose(q, place) for robot in a_pair)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)

"""Messages that list names are short for large robots, and begin with the names most similar to the input."""

import torsor
from refusals import refused
from torsor.base import checks
from torsor.base.errors import listing

NAMES = [f"joint{k}" for k in range(60)] + ["left_elbow", "right_elbow"]


def test_many_names_are_shortened_and_the_nearest_come_first() -> None:
    with refused(value="left_elbwo", allowed=", ... 62 in all") as found:
        checks.indices_of(["left_elbwo"], NAMES, "limits")
    assert str(found.value).count(",") == 12


def test_few_names_are_listed_in_their_order() -> None:
    assert listing(["b", "a"], like="a") == "b, a"
    with refused(value="joint3", allowed="joint1, joint2"):
        checks.indices_of("joint3", ["joint1", "joint2"], "limits")


def test_a_joint_of_a_large_robot_is_found_by_a_similar_name() -> None:
    with refused(value="joint_37", allowed="'joint37',"):
        torsor.library.planar_chain(40).joint("joint_37")


def test_a_joint_is_fixed_by_another_edit_than_that_of_its_type() -> None:
    with refused(where="joint 'joint2'", fix="robot.fix('joint2', value)"):
        torsor.library.two_link().with_joint_type("joint2", "fixed")


def test_a_file_that_is_missing_may_be_one_of_four_kinds() -> None:
    with refused(allowed=".urdf, .xml"):
        torsor.load("no_such.urdf")

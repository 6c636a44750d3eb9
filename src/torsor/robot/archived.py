"""Robots in result files: TOML text stored as an array of bytes."""

import warnings

from torsor.base.archive import Archive, as_text
from torsor.formats.toml.reading import parse_toml
from torsor.formats.toml.writing import toml_content
from torsor.mechanism import Mechanism
from torsor.robot.robot import Robot


def robot_text(robot: Mechanism) -> str:
    """Return a robot as TOML text, from which ``robot_of`` restores an equal robot."""
    return toml_content(robot).decode()


def robot_of(text: str) -> Robot:
    """Return a robot from text written by ``robot_text``; its meshes are not opened."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these warnings were issued when the robot was created
        return Robot.of(parse_toml(text.encode(), "robot", strict=False))


def archived_robot(archive: Archive) -> Robot:
    """Return the robot stored in an archive."""
    return robot_of(as_text(archive.arrays["robot"]))

"""The folders where meshes of a robot file may lie: a file from a stranger must not name any file of the machine."""

import os
from pathlib import Path

GROUPED = ("urdf", "robots", "robot", "xacro", "mjcf", "xml", "model", "models", "description")
"""Usual names of the folder of a description inside of its package: meshes are beside it, ``../meshes``."""
MARKS = "package.xml", "model.config"  # of a ROS package and of a model of Gazebo
ALLOWED = "TORSOR_MESHES"  # in the environment: folders that the user allows
SEARCHED = "TORSOR_PATH", "ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH", "GAZEBO_MODEL_PATH"
"""Variables of the environment that list folders of packages and models; all of them are allowed."""


def own_folders(path: Path) -> tuple[str, ...]:
    """Return the folders whose meshes a description may name: its own or, if it is in one, its package.

    If the description is a link to another file, as in the install folder of a ROS workspace, those of that file too.

    Example:
        >>> [Path(each).name for each in own_folders(Path("arm_description/urdf/arm.urdf"))]
        ['arm_description']
    """
    folders = []
    for file in dict.fromkeys((path.absolute(), path.resolve())):
        package = next((folder for folder in file.parents if is_package(folder)), None)
        around = file.parent.parent if file.parent.name.lower() in GROUPED else file.parent
        folders.append(str(around if package is None else package))
    return tuple(dict.fromkeys(folders))


def is_package(folder: Path) -> bool:
    """Return whether a folder is a ROS package or a model of Gazebo."""
    try:
        return any((folder / mark).is_file() for mark in MARKS)
    except (OSError, ValueError):
        return False


def allowed_folders() -> list[Path]:
    """Return the folders that the user allows for all robots: those of ``SEARCHED`` and of TORSOR_MESHES."""
    listed = (os.environ.get(name, "").split(os.pathsep) for name in (*SEARCHED, ALLOWED))
    return [Path(each) for names in listed for each in names if each]


def is_inside(path: Path, folders: tuple[str, ...]) -> bool:
    """Return whether a file is in one of the folders, or in one that the user allows; links are followed first.

    Example:
        >>> is_inside(Path("arm/../../secret.stl"), ("arm",)), is_inside(Path("arm/meshes/hand.stl"), ("arm",))
        (False, True)
    """
    real = path.resolve()
    return any(real.is_relative_to(folder.resolve()) for folder in (*map(Path, folders), *allowed_folders()))

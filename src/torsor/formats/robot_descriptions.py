"""Robots by name from the package ``robot_descriptions``: ``robot_descriptions:panda_description``.

Each name is a module of that package with the path of a file. Importing it downloads the robot (by git) the first time.
"""

import importlib
import re
import sys
from contextlib import redirect_stdout
from difflib import get_close_matches
from pathlib import Path

from torsor.base.errors import ModelError, describe, missing

SCHEME = "robot_descriptions:"
_PATHS = ("URDF_PATH", "MJCF_PATH", "XACRO_PATH")
_FOLDERS = ("PACKAGE_PATH", "REPOSITORY_PATH")


def is_description(path: str | Path) -> bool:
    """Return whether a robot is named by its module, not by a file.

    Example:
        >>> is_description("robot_descriptions:panda_description")
        True
    """
    return str(path).startswith(SCHEME)


def described_robot(name: str) -> tuple[Path, dict[str, object], list[str]]:
    """Return the file of a robot of ``robot_descriptions``, its xacro arguments and the folders of its packages."""
    short = name.removeprefix(SCHEME)
    try:
        package = importlib.import_module("robot_descriptions")
    except ImportError:
        raise missing("robots by name need robot_descriptions", "robots", where=name, instead="give a file") from None
    if not re.fullmatch(r"[a-zA-Z]\w*", short):
        raise ModelError(describe(f"no description {short!r}", where=name, allowed="a name such as panda_description"))
    try:
        with redirect_stdout(sys.stderr):  # the package tells there what it downloads
            module = importlib.import_module(f"robot_descriptions.{short}")
    except ModuleNotFoundError as error:
        if error.name != f"robot_descriptions.{short}":
            raise ModelError(describe(f"it needs the package {error.name!r}", where=name)) from None
        known = [each.stem for folder in package.__path__ for each in Path(folder).glob("[a-z]*_description.py")]
        near = get_close_matches(short, known, 1) or get_close_matches(f"{short}_description", known, 1)
        fix = f"write {SCHEME}{near[0]}" if near else "robot_descriptions list, on the command line, has all names"
        raise ModelError(describe(f"no description {short!r}", where=name, fix=fix)) from None
    except Exception as error:  # git has errors of many kinds
        text = " ".join(str(error).split())[:300]
        fix = "check the connection, or give a file"
        raise ModelError(describe(f"it cannot be downloaded: {text}", where=name, fix=fix)) from None
    path = next((getattr(module, key) for key in _PATHS if hasattr(module, key)), None)
    if path is None:
        raise ModelError(describe("it has no file of a robot", where=name, allowed=", ".join(_PATHS)))
    folders = [str(getattr(module, key)) for key in _FOLDERS if hasattr(module, key)]
    folders += [str(Path(folder).parent) for folder in folders]  # a package is found in the folder around it
    folders += [str(folder) for folder in getattr(module, "XACRO_PACKAGE_PATHS", {}).values()]
    given = dict(getattr(module, "XACRO_ARGS", {})) if path == getattr(module, "XACRO_PATH", None) else {}
    return Path(path), given, [folder for folder in dict.fromkeys(folders) if Path(folder).is_dir()]

"""A robot as a ROS 2 package: the exported C behind a plugin of inverse_dynamics_solver and a controller.

The files of the package are those of the folder ``ros2_assets`` beside this file, with names filled in where @package@
and so on are written, and the C and C++ that ``compiler/c`` writes. All numbers of the robot are in the latter.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from torsor._version import __version__
from torsor.base.checks import instance_of
from torsor.base.errors import ModelError
from torsor.compiler.c import c_names, cpp_texts
from torsor.compiler.source import asset, is_own, plain, write_all
from torsor.export.about import about_robot
from torsor.mechanism import Joint
from torsor.robot.robot import Robot

_FILES = (  # of the folder ``ros2_assets``; headers are in include/NAME of the ROS 2 package
    *("package.xml", "CMakeLists.txt", "README.md", "controller.xml", "solver.xml", "config/controllers.yaml"),
    *("include/compensator.hpp", "include/description.hpp", "include/releases.hpp"),
    *("src/controller.cpp", "src/solver.cpp", "test/check_numbers.cpp"),
)
_CORIOLIS = "Forces C(q, v) v (nv) of the velocities, without gravity and friction"
_RIGID = "Forces M(q) a + C(q, v) v + g(q) (nv), without friction"
_TAKEN = {  # namespaces that the package uses
    *("std", "controller_interface", "hardware_interface", "inverse_dynamics_solver"),
    *("pluginlib", "rclcpp", "rclcpp_lifecycle"),
}
_LONGEST = 60  # characters of the robot's name in that of the package


def ros2(robot: Robot, path: str | Path, name: str | None = None, overwrite: bool = True) -> list[Path]:
    """Write a ROS 2 package (ament_cmake) for a robot into a folder and return the paths of its files.

    The package needs nothing but the C that is in it, and ROS: ``NAME/CompensationController`` is a chainable
    controller of ros2_control that compensates gravity or all forces of a reference motion, with PD gains, and
    ``NAME/Solver`` has the interface of the package inverse_dynamics_solver. Both compare the robot description with
    the joints of the robot when they start. ``name`` is that of the package, by default ``ROBOT_dynamics``. What an
    earlier export into the folder wrote under another name is removed. The package is written for Humble, Jazzy,
    Kilted, Lyrical and Rolling.

    The robot stands on a fixed base, and its joints are revolute, continuous or prismatic; it has no loops, springs,
    elastic joints or joints that follow others.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = torsor.export.ros2(torsor.library.six_axis_arm(), folder)
        ...     [file.name for file in files if file.suffix == ".xml"]
        ['package.xml', 'controller.xml', 'solver.xml']
    """
    _check(instance_of(robot, Robot, "export.ros2", "robot", allowed="a torsor.Robot"))
    name = package_name(robot.name) if name is None else name
    plain_name = isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)
    if not plain_name or c_names(_TAKEN).new(name) != name:
        allowed = "lower-case letters, digits and single _, a letter first, no word of C or C++ and no package it needs"
        raise ModelError(argument="name", value=name, where=robot.name, allowed=allowed)
    texts, kernels = {}, f"{name}_kernels"
    for title, text in _kernel_texts(robot, name).items():
        if title != "CMakeLists.txt":
            texts["src/" + title if title == f"{kernels}.c" else f"include/{name}/{title}"] = text
    blanks = _blanks(robot, name)
    for title in _FILES:
        text = asset(title, "torsor.export", "ros2_assets")
        texts[title.replace("include/", f"include/{name}/")] = re.sub("@([a-z]+)@", lambda at: blanks[at[1]], text)
    written = write_all(Path(path), texts, overwrite)
    _remove_earlier(Path(path), written)
    return written


def _remove_earlier(folder: Path, written: Sequence[Path]) -> None:
    """Remove what an earlier export wrote under another name of the package; files of others stay."""
    for file in [*folder.glob("include/*/*.h*"), *folder.glob("src/*_kernels.c")]:
        if file not in written and is_own(file):
            file.unlink()
            if not any(file.parent.iterdir()):
                file.parent.rmdir()


def package_name(robot: str) -> str:
    """Return the name of the package of a robot: lower-case letters, digits and single underscores."""
    own = "_".join(re.findall("[a-z0-9]+", robot.lower()))[:_LONGEST].strip("_")
    return f"{own if re.match('[a-z]', own) else f'robot_{own}'.strip('_')}_dynamics"


def _check(robot: Robot) -> None:
    """Raise ModelError for what ros2_control does not know: only joints with one coordinate, driven directly."""

    def fault(joint: Joint) -> str:
        if joint.type not in ("revolute", "continuous", "prismatic"):
            return f"it is {joint.type}"
        if joint.follows or (joint.ratio, joint.offset) != (1.0, 0.0):
            return "it follows another joint, or has a ratio or an offset"
        return "it has a spring" if joint.spring or (joint.motor and joint.motor.is_elastic) else ""

    if robot.loops:
        fix = "torsor.export.c and torsor.export.cpp write its constrained dynamics"
        raise ModelError("the robot has closed loops", where=robot.name, allowed="trees", fix=fix)
    for joint in robot.joints:
        if found := fault(joint):
            allowed = "revolute, continuous and prismatic joints on a fixed base, without springs, each with its own"
            allowed += " coordinate"
            where = f"{robot.name}: joint {joint.name!r}"
            name = joint.coordinate if joint.follows else joint.name
            raise ModelError(found, where=where, allowed=allowed, fix=f"hold the joint: robot.fix({name!r}, 0.0)")
    if not robot.nv:
        raise ModelError("no joint moves", where=robot.name, allowed="one or more")


def _kernel_texts(robot: Robot, name: str) -> dict[str, str]:
    """Return the C and C++ of the functions that controller and solver call."""
    rigid = robot.without_friction()
    functions = {
        "inverse_dynamics": robot.function("inverse_dynamics"),
        "rigid_inverse_dynamics": rigid.function("inverse_dynamics"),
        "mass_matrix": robot.function("mass_matrix"),
        "coriolis_force": rigid.with_gravity([0.0, 0.0, 0.0]).function("bias_force"),
        "gravity_force": robot.function("gravity_force"),
        "friction_force": robot.function("friction_force"),
    }
    prefix = f"{name}_"
    about = about_robot(robot, [(prefix + title, title) for title in functions])
    more = {f"{prefix}coriolis_force": _CORIOLIS, f"{prefix}rigid_inverse_dynamics": _RIGID}
    about = about._replace(results={**about.results, **more})
    named = {prefix + title: function for title, function in functions.items()}
    return cpp_texts(named, "float64", f"{name}_kernels", about, prefix)


def _blanks(robot: Robot, name: str) -> dict[str, str]:
    """Return what is filled into the files: names, and a state with its forces, by which the package tests itself."""
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, robot.nv))
    tau = np.array(robot.function("inverse_dynamics")(q, v, a)).ravel()
    number = re.match(r"\d+\.\d+\.\d+", __version__)
    return {
        "package": name,
        "guard": name.upper(),
        "robot": re.sub(r"[<>]|--+", "_", plain(robot.name)),
        "version": __version__,
        "number": number[0] if number else "0.0.0",
        "joints": ", ".join(map(plain, robot.coordinate_names)),
        "gravity": ", ".join(f"{each:g}" for each in robot.gravity),
        "zeros": ", ".join(["0.0"] * robot.nv),
        **{key: ", ".join(map(repr, each.tolist())) for key, each in (("q", q), ("v", v), ("a", a), ("tau", tau))},
    }

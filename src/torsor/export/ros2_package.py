"""ROS 2 packages of robots: an inverse_dynamics_solver plugin and a controller that use the exported C code.

The package consists of the files in the folder ``ros2_assets``, with placeholders such as @package@ filled in, and the
C and C++ files that ``compiler/c`` writes. These contain all robot parameters.
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
from torsor.mechanism import Joint
from torsor.robot.about import about_robot
from torsor.robot.robot import Robot

_FILES = (  # files of the folder ``ros2_assets``; headers go to include/NAME of the ROS 2 package
    *("package.xml", "CMakeLists.txt", "README.md", "controller.xml", "solver.xml", "config/controllers.yaml"),
    *("include/compensator.hpp", "include/description.hpp", "include/releases.hpp"),
    *("src/controller.cpp", "src/solver.cpp", "test/check_numbers.cpp"),
)
_CORIOLIS = "Velocity-dependent forces C(q, v) v (nv), without gravity and friction"
_RIGID = "Forces M(q) a + C(q, v) v + g(q) (nv), without friction"
_RESERVED_NAMES = {  # namespaces that the package uses
    *("std", "controller_interface", "hardware_interface", "inverse_dynamics_solver"),
    *("pluginlib", "rclcpp", "rclcpp_lifecycle"),
}
_MAX_NAME_LENGTH = 60  # maximum characters of the robot name in the package name


def ros2(robot: Robot, path: str | Path, name: str | None = None, overwrite: bool = True) -> list[Path]:
    """Write a ROS 2 package (ament_cmake) for a robot into a folder, and return the paths of its files.

    The package contains all C code and depends only on ROS. ``NAME/CompensationController`` is a chainable ros2_control
    controller that compensates for gravity or for all forces of a reference motion, with PD feedback. ``NAME/Solver``
    implements the inverse_dynamics_solver interface. At startup, both compare the robot description with the joints of
    the robot. ``name`` is the package name; the default is ``ROBOT_dynamics``. Files from an earlier export to the
    folder under a different name are removed. With ``overwrite=False``, an existing file raises ModelError. The package
    supports Humble, Jazzy, Kilted, Lyrical and Rolling.

    The robot must have a fixed base and revolute, continuous or prismatic joints. Loops, springs, elastic joints, mimic
    joints, and joints with a ratio or an offset are not supported.

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
    if not plain_name or c_names(_RESERVED_NAMES).new(name) != name:
        allowed = "lower-case letters, digits and single _, starting with a letter; no C or C++ keyword, "
        allowed += "no dependency name"
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
    """Remove files of an earlier export under another package name. Other files are kept."""
    for file in [*folder.glob("include/*/*.h*"), *folder.glob("src/*_kernels.c")]:
        if file not in written and is_own(file):
            file.unlink()
            if not any(file.parent.iterdir()):
                file.parent.rmdir()


def package_name(robot: str) -> str:
    """Return the package name of a robot: lower-case letters, digits and single underscores."""
    base_name = "_".join(re.findall("[a-z0-9]+", robot.lower()))[:_MAX_NAME_LENGTH].strip("_")
    return f"{base_name if re.match('[a-z]', base_name) else f'robot_{base_name}'.strip('_')}_dynamics"


def _check(robot: Robot) -> None:
    """Raise ModelError if ros2_control does not support the robot: each joint needs a directly driven coordinate."""

    def fault(joint: Joint) -> str:
        if joint.type not in ("revolute", "continuous", "prismatic"):
            return f"the joint is {joint.type}"
        if joint.follows or (joint.ratio, joint.offset) != (1.0, 0.0):
            return "the joint follows another joint, or has a ratio or an offset"
        return "the joint has a spring" if joint.spring or (joint.motor and joint.motor.is_elastic) else ""

    if robot.loops:
        fix = "use torsor.export.c or torsor.export.cpp for constrained dynamics"
        raise ModelError("the robot has closed loops", where=robot.name, allowed="trees", fix=fix)
    for joint in robot.joints:
        if message := fault(joint):
            allowed = "revolute, continuous and prismatic joints on a fixed base, without springs, each with its own"
            allowed += " coordinate"
            where = f"{robot.name}: joint {joint.name!r}"
            name = joint.coordinate if joint.follows else joint.name
            fix = f"hold the joint: robot.fix({name!r}, 0.0)"
            raise ModelError(message, where=where, allowed=allowed, fix=fix)
    if not robot.nv:
        raise ModelError("the robot has no moving joints", where=robot.name, allowed="one or more")


def _kernel_texts(robot: Robot, name: str) -> dict[str, str]:
    """Return the C and C++ sources of the functions that the controller and the solver call."""
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
    """Return the placeholder values: names, and a state and its forces for the self-test of the package."""
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
        "gravity": ", ".join(f"{component:g}" for component in robot.gravity),
        "zeros": ", ".join(["0.0"] * robot.nv),
        **{key: ", ".join(map(repr, each.tolist())) for key, each in (("q", q), ("v", v), ("a", a), ("tau", tau))},
    }

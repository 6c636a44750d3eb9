"""The exported ROS 2 package is built by colcon and ament_cmake, and pluginlib creates its classes by name.

The build system, pluginlib and Eigen are the real ones (Debian has them); rclcpp, ros2_control and
inverse_dynamics_solver are small packages of stand-ins in the same workspace.
"""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import torsor

FOLDER = Path(__file__).parent
NAME = "six_axis_arm_dynamics"
NEEDED = {  # a file of each package of Debian
    "colcon": "/usr/bin/colcon",
    "python3-colcon-ros": "/usr/lib/python3/dist-packages/colcon_ros",
    "python3-colcon-cmake": "/usr/lib/python3/dist-packages/colcon_cmake",
    "python3-colcon-recursive-crawl": "/usr/lib/python3/dist-packages/colcon_recursive_crawl",
    "python3-colcon-test-result": "/usr/lib/python3/dist-packages/colcon_test_result",
    "ament-cmake": "/usr/share/ament_cmake",
    "ament-cmake-xmllint": "/usr/bin/ament_xmllint",
    "pluginlib-dev": "/usr/share/pluginlib",
    "libeigen3-dev": "/usr/include/eigen3",
}
MISSING = " ".join(name for name, file in NEEDED.items() if not Path(file).exists())
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed (apt install {MISSING})"),
]

# A stand-in by its name, with the packages that its headers include.
STUBS = {
    "rclcpp": [],
    "rclcpp_lifecycle": ["rclcpp"],
    "hardware_interface": ["rclcpp"],
    "controller_interface": ["hardware_interface", "rclcpp_lifecycle"],
    "inverse_dynamics_solver": ["rclcpp"],
}
MANIFEST = """<package format="3">
<name>{name}</name><version>0.0.1</version><description>d</description>
<maintainer email="m@example.com">m</maintainer><license>Apache-2.0</license>
<buildtool_depend>ament_cmake</buildtool_depend>{depends}<export><build_type>ament_cmake</build_type></export>
</package>
"""
STUB = """cmake_minimum_required(VERSION 3.16)
project({name} CXX)
find_package(ament_cmake REQUIRED)
{finds}
install(DIRECTORY include/ DESTINATION include)
ament_export_dependencies({depends})
{exports}
ament_package()
"""
AS_TARGET = """add_library({name} INTERFACE)
target_include_directories({name} INTERFACE $<INSTALL_INTERFACE:include>)
target_link_libraries({name} INTERFACE {targets})
install(TARGETS {name} EXPORT export_{name})
ament_export_targets(export_{name})"""
AS_FOLDERS = "ament_export_include_directories(include)"  # as the packages of ros2_control in Humble
USER = """cmake_minimum_required(VERSION 3.16)
project(user CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(ament_cmake REQUIRED)
find_package({name} REQUIRED)
find_package(controller_interface REQUIRED)
find_package(inverse_dynamics_solver REQUIRED)
find_package(pluginlib REQUIRED)
add_executable(plugins plugins.cpp)
target_include_directories(plugins PRIVATE /usr/include/eigen3 ${{controller_interface_INCLUDE_DIRS}})
target_link_libraries(plugins
  {name}::{name}_kernels inverse_dynamics_solver::inverse_dynamics_solver pluginlib::pluginlib)
install(TARGETS plugins DESTINATION lib/user)
ament_package()
"""


def run(*command: str | Path, given: str = "") -> str:
    # Only the system's programs: those of a virtual environment do not know ament.
    settings = {**os.environ, "PATH": "/usr/bin:/bin"}
    for key in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
        settings.pop(key, None)
    done = subprocess.run(
        list(map(str, command)), input=given, capture_output=True, text=True, timeout=600, env=settings
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def arm() -> torsor.Robot:
    return torsor.library.six_axis_arm().with_friction(coulomb=1.5, viscous=0.25, smooth=0.1)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace after colcon build: stubs, the exported package, and a package that uses it."""
    root = tmp_path_factory.mktemp("colcon")
    torsor.export.ros2(arm(), root / "src" / NAME)
    for name, depends in STUBS.items():
        package = root / "src" / name
        (package / "include").mkdir(parents=True)
        if (FOLDER / "ros_stub" / name).exists():
            shutil.copytree(FOLDER / "ros_stub" / name, package / "include" / name)
        targets = " ".join(f"{each}::{each}" for each in depends)
        exports = AS_FOLDERS if name == "controller_interface" else AS_TARGET.format(name=name, targets=targets)
        finds = "\n".join(f"find_package({each} REQUIRED)" for each in depends)
        text = STUB.format(name=name, finds=finds, depends=" ".join(depends), exports=exports)
        (package / "CMakeLists.txt").write_text(text)
        listed = "".join(f"<depend>{each}</depend>" for each in depends)
        (package / "package.xml").write_text(MANIFEST.format(name=name, depends=listed))
    user = root / "src" / "user"
    user.mkdir()
    (user / "package.xml").write_text(MANIFEST.format(name="user", depends=f"<depend>{NAME}</depend>"))
    (user / "CMakeLists.txt").write_text(USER.format(name=NAME))
    (user / "plugins.cpp").write_text((FOLDER / "drivers" / "plugins.cpp").read_text().replace("PACKAGE", NAME))
    colcon(root, "build", "--cmake-args", "-DPython3_EXECUTABLE=/usr/bin/python3")
    return root


def colcon(root: Path, verb: str, *options: str) -> str:
    return run("/bin/sh", "-c", f'cd "$0" && colcon {verb} "$@"', root, *options)


def test_colcon_builds_the_package_without_a_warning_and_it_tests_itself(workspace: Path) -> None:
    said = workspace / "log" / "latest_build" / NAME / "stderr.log"
    assert not said.exists() or not said.read_text(), said.read_text()
    colcon(workspace, "test")
    assert "1 test, 0 errors, 0 failures" in colcon(workspace, "test-result", "--all")


def test_the_plugins_are_in_the_ament_index(workspace: Path) -> None:
    index = workspace / "install" / NAME / "share" / "ament_index" / "resource_index"
    for base, part in (("controller_interface", "controller"), ("inverse_dynamics_solver", "solver")):
        listed = (index / f"{base}__pluginlib__plugin" / NAME).read_text()
        assert listed == f"share/{NAME}/{part}.xml\n"
        assert (workspace / "install" / NAME / listed.strip()).exists()


def test_pluginlib_makes_the_classes_and_they_compute_what_the_robot_does(workspace: Path) -> None:
    q = np.random.default_rng(4).uniform(-1.0, 1.0, 6)
    urdf, program = workspace / "arm.urdf", workspace / "install" / "user" / "lib" / "user" / "plugins"
    arm().without_friction().save(urdf)
    start = f". {workspace}/install/setup.sh && exec {program} {urdf}"
    lines = run("/bin/sh", "-c", start, given=" ".join(map(str, q))).splitlines()
    said = dict(line.split(" ", 1) for line in lines)
    assert said["controller"] == f"{NAME}/CompensationController" and said["configured"] == "1"
    assert said["solver"] == f"{NAME}/Solver"
    np.testing.assert_allclose(np.array(said["gravity"].split(), float), arm().gravity_force(q), rtol=1e-13, atol=1e-13)


def test_the_manifest_is_valid_by_catkin_pkg_and_by_the_published_schema(workspace: Path) -> None:
    manifest = workspace / "src" / NAME / "package.xml"
    check = (
        "import sys; from catkin_pkg.package import parse_package; found = []; package = parse_package(sys.argv[1]);"
    )
    check += " package.validate(warnings=found); print(package.name, found)"
    assert run("/usr/bin/python3", "-c", check, manifest) == f"{NAME} []\n"
    run("/usr/bin/ament_xmllint", manifest)

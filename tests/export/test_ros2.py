"""The exported ROS 2 package has the published formats and, with stubs, computes the same results as the robot."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from importlib.metadata import files
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.cli.main import main
from torsor.mechanism import Joint, Link

STUB = Path(__file__).parent / "ros_stub"
NAME = "six_axis_arm_dynamics"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
SANITIZED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
NONE = np.full(6, np.nan)

needs_gcc = pytest.mark.skipif(not (shutil.which("g++") and shutil.which("gcc")), reason="g++ is not installed")


def arm() -> torsor.Robot:
    return torsor.library.six_axis_arm().with_friction(coulomb=1.5, viscous=0.25, smooth=0.1)


def run(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ros2") / NAME
    torsor.export.ros2(arm(), folder)
    with warned(what="rotor inertias"):
        arm().without_friction().save(folder / "arm.urdf")
    return folder


def built(package: Path, major: int) -> Path:
    """Return the program with stubs for a version of ros2_control: the package's code, with sanitizers."""
    headers, folder = package / "include", package / f"release{major}"
    source, objects, release = (
        package / "src" / f"{NAME}_kernels.c",
        folder / "kernels.o",
        "HARDWARE_INTERFACE_VERSION_MAJOR",
    )
    folder.mkdir()
    run("gcc", "-std=c99", *STRICT, "-ffp-contract=off", f"-I{headers / NAME}", "-c", source, "-o", objects)
    (folder / "main.cpp").write_text((STUB / "main.cpp").read_text().replace("PACKAGE", NAME))
    sources = [folder / "main.cpp", package / "src" / "controller.cpp", package / "src" / "solver.cpp", objects]
    flags = ["-std=c++17", *STRICT, *SANITIZED, f"-D{release}={major}", f"-I{headers}", f"-I{STUB}"]
    run("g++", *flags, *sources, "-o", folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def program(package: Path) -> Path:
    """Return the program with stubs for Jazzy."""
    return built(package, 4)


def answer(
    program: Path, *numbers: np.ndarray, mode: str = "gravity", urdf: Path | None = None, ignored: str = ""
) -> tuple[int, dict[str, str]]:
    """Return the exit status of the program and its output, by the first word of each line."""
    given = " ".join(str(each) for each in np.concatenate(numbers))
    command = [program, urdf or program.parent.parent / "arm.urdf", mode, *ignored.split()]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
    assert not done.stderr, done.stderr
    return done.returncode, dict(line.split(" ", 1) for line in done.stdout.splitlines())


def vector(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


RNG = np.random.default_rng(4)
Q, V, A, Q_WANTED, V_WANTED, A_WANTED, EFFORT = RNG.uniform(-1.0, 1.0, (7, 6))
KP, KD = RNG.uniform(0.0, 20.0, (2, 6))


@needs_gcc
def test_the_core_without_ros_gives_the_numbers_of_the_robot(package: Path) -> None:
    sources, headers = [package / "test" / "check_numbers.cpp", package / "kernels.o"], package / "include"
    kernels = package / "src" / f"{NAME}_kernels.c"
    run("gcc", "-std=c99", *STRICT, "-ffp-contract=off", f"-I{headers / NAME}", "-c", kernels, "-o", sources[1])
    run("g++", "-std=c++17", *STRICT, f"-I{headers}", *sources, "-o", package / "check")
    assert "largest difference" in run(package / "check")


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("major", [2, 6], ids=["Humble", "Lyrical"])
def test_the_controller_of_another_release_of_ros_writes_the_same_efforts(
    package: Path, program: Path, major: int
) -> None:
    numbers, other = (KP, KD, Q, V, Q_WANTED, V_WANTED, A_WANTED, EFFORT, A), built(package, major)
    for mode in ("gravity", "inverse_dynamics"):
        assert answer(other, *numbers, mode=mode) == answer(program, *numbers, mode=mode)
    empty = other.parent / "empty.urdf"
    empty.touch()
    status, said = answer(other, *numbers, urdf=empty)
    assert status == 3 and said["error:"] == "there is no robot description of six_axis_arm"


@needs_gcc
@pytest.mark.slow
def test_gravity_is_compensated_without_references_and_kd_damps(program: Path) -> None:
    status, said = answer(program, KP, KD, Q, V, NONE, NONE, NONE, NONE, A)
    assert (status, said["ok"], said["allocations"]) == (0, "1", "0")
    np.testing.assert_allclose(vector(said["tau"]), arm().gravity_force(Q) - KD * V, rtol=1e-14)
    assert not vector(said["after"]).any()
    assert said["names"] == "joint1/velocity joint1/effort compensation_controller/joint6/effort"


@needs_gcc
@pytest.mark.slow
def test_the_forces_of_the_reference_motion_are_added_to_pd_and_cut_at_the_limits(program: Path) -> None:
    references = (Q_WANTED, V_WANTED, A_WANTED, EFFORT)
    _, said = answer(program, KP, KD, Q, V, *references, A, mode="inverse_dynamics")
    feedforward = arm().inverse_dynamics(Q_WANTED, V_WANTED, A_WANTED) + EFFORT
    wanted, limit = feedforward + KP * (Q_WANTED - Q) + KD * (V_WANTED - V), arm().effort_limit
    assert np.any(np.abs(wanted) > limit) and said["allocations"] == "0"
    np.testing.assert_allclose(vector(said["tau"]), np.clip(wanted, -limit, limit), rtol=1e-13)


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_state_that_is_no_number_writes_nothing(program: Path, bad: float) -> None:
    q = Q.copy()
    q[3] = bad
    _, said = answer(program, KP, KD, q, V, NONE, NONE, NONE, NONE, A)
    assert said["ok"] == "0" and not vector(said["tau"]).any()


@needs_gcc
@pytest.mark.slow
def test_the_solver_gives_the_terms_of_the_equation_of_motion(program: Path) -> None:
    robot, (_, said) = arm(), answer(program, KP, KD, Q, V, NONE, NONE, NONE, NONE, A)
    M, c, g, f = (vector(said[name]) for name in ("M", "c", "g", "f"))
    np.testing.assert_allclose(M.reshape(6, 6).T, robot.mass_matrix(Q), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(g, robot.gravity_force(Q), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(f, robot.friction_force(V), rtol=1e-13)
    np.testing.assert_allclose(M.reshape(6, 6) @ A + c + g + f, robot.inverse_dynamics(Q, V, A), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(vector(said["torques"]) + f, robot.inverse_dynamics(Q, V, A), rtol=1e-12, atol=1e-12)
    assert said["before"] == "the solver is not initialized" and "has 1 numbers; allowed: 6" in said["wrong"]


GRIPPER = '<joint name="finger" type="prismatic"><parent link="link6"/><child link="f"/></joint></robot>'
CONTROL = "<ros2_control><joint name='other' type='prismatic'/></ros2_control><!-- <joint name='x'/> --></robot>"
CHANGES = {
    "there is no moving joint 'joint3'": ('name="joint3" type="revolute"', 'name="joint3" type="fixed"'),
    "its joint 'elbow' moves, but the model has no such joint": ('name="joint3"', 'name="elbow"'),
    "its joint 'joint3' is prismatic, but in the model it is revolute": (
        'name="joint3" type="revolute"',
        'name="joint3" type="prismatic"',
    ),
    "its joint 'finger' moves": ("</robot>", GRIPPER),
    "mode is": ("", ""),
}


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("fault", CHANGES)
def test_another_robot_description_is_refused_by_name(program: Path, fault: str) -> None:
    text, changed = (program.parent.parent / "arm.urdf").read_text(), program.parent / "changed.urdf"
    changed.write_text(text.replace(*CHANGES[fault]) if CHANGES[fault][0] else text)
    mode = "gravity" if CHANGES[fault][0] else "float"
    status, said = answer(program, KP, KD, Q, V, *[NONE] * 4, A, urdf=changed, mode=mode)
    assert status == 3 and fault in said["error:"]
    if "finger" in fault:
        assert answer(program, KP, KD, Q, V, *[NONE] * 4, A, urdf=changed, ignored="finger")[1]["ok"] == "1"


@needs_gcc
@pytest.mark.slow
def test_joints_in_another_order_are_the_same_robot_and_swapped_names_are_not(program: Path) -> None:
    text, changed = (program.parent.parent / "arm.urdf").read_text(), program.parent / "changed.urdf"
    joints = re.findall(r"<joint .*?</joint>", text, re.DOTALL)
    parts = re.split(r"<joint .*?</joint>", text, flags=re.DOTALL)
    mixed = "".join(part + joint for part, joint in zip(parts, [*joints[::-1], ""], strict=True))
    changed.write_text(mixed.replace("</robot>", CONTROL))
    assert answer(program, KP, KD, Q, V, *[NONE] * 4, A, urdf=changed)[0] == 0
    swap = {"joint2": "joint3", "joint3": "joint2"}
    changed.write_text(re.sub('name="(joint[23])"', lambda found: f'name="{swap[found[1]]}"', text))
    status, said = answer(program, KP, KD, Q, V, *[NONE] * 4, A, urdf=changed)
    assert status == 3 and "but in the model it follows" in said["error:"]


# The order of REP 149: each element with the least and the largest number of its kind, and the attributes it must have.
DEPENDENCIES = "build_depend build_export_depend buildtool_depend buildtool_export_depend exec_depend depend doc_depend"
DEPENDENCIES += " test_depend conflict replace"
ORDER = [
    ("name", 1, 1, set()),
    ("version", 1, 1, set()),
    ("description", 1, 1, set()),
    ("maintainer", 1, 99, {"email"}),
    ("license", 1, 99, set()),
    ("url", 0, 99, set()),
    ("author", 0, 99, set()),
    (DEPENDENCIES, 0, 99, set()),
    ("group_depend", 0, 99, set()),
    ("member_of_group", 0, 99, set()),
    ("export", 0, 1, set()),
]


def test_the_manifest_is_that_of_format_3(package: Path) -> None:
    root = ElementTree.parse(package / "package.xml").getroot()
    assert (root.tag, root.attrib) == ("package", {"format": "3"})
    left = list(root)
    for names, least, most, attributes in ORDER:
        taken = []
        while left and left[0].tag in names.split():
            taken.append(left.pop(0))
        assert least <= len(taken) <= most and all(attributes <= each.attrib.keys() for each in taken), names
    assert not left
    assert re.fullmatch("[a-z](_?[a-z0-9]+)*", root.findtext("name", ""))
    assert re.fullmatch(r"\d+\.\d+\.\d+", root.findtext("version", ""))
    assert root.findtext("export/build_type") == "ament_cmake"
    listed = {each.text for each in root if each.tag.endswith("depend")}
    found = set(re.findall(r"find_package\((\w+) ", (package / "CMakeLists.txt").read_text()))
    assert {name.replace("Eigen3", "eigen") for name in found} == listed


@pytest.mark.parametrize("part", ["controller", "solver"])
def test_the_plugin_description_names_the_class_that_is_compiled(package: Path, part: str) -> None:
    root = ElementTree.parse(package / f"{part}.xml").getroot()
    (entry,) = root
    assert (root.tag, root.attrib) == ("library", {"path": f"{NAME}_{part}"})
    assert entry.tag == "class" and entry.attrib.keys() == {"name", "type", "base_class_type"}
    assert entry.findtext("description")
    source, cmake = (package / "src" / f"{part}.cpp").read_text(), (package / "CMakeLists.txt").read_text()
    assert f"PLUGINLIB_EXPORT_CLASS({entry.attrib['type']}, {entry.attrib['base_class_type']})" in source
    base = entry.attrib["base_class_type"].split("::")[0]
    assert f"pluginlib_export_plugin_description_file({base} {part}.xml)" in cmake
    assert f"add_library({NAME}_{part} SHARED src/{part}.cpp)" in cmake
    assert entry.attrib["name"] == f"{NAME}/{entry.attrib['type'].split('::')[1]}"


def test_the_configuration_is_yaml_with_the_parameters_of_the_controller(package: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="the extra yaml is not installed")
    content = yaml.safe_load((package / "config" / "controllers.yaml").read_text())
    (name,) = [key for key in content if key != "controller_manager"]
    assert content["controller_manager"]["ros__parameters"][name]["type"] == f"{NAME}/CompensationController"
    source = (package / "src" / "controller.cpp").read_text()
    given = content[name]["ros__parameters"]
    assert all(f'"{key}"' in source for key in given) and given["kp"] == [0.0] * 6


@needs_gcc
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
def test_cmake_builds_the_package_against_stand_ins_and_it_tests_itself(package: Path, tmp_path: Path) -> None:
    found = {"rclcpp": "rclcpp::rclcpp", "Eigen3": "Eigen3::Eigen", "ament_cmake": ""}
    for name in ("controller_interface", "hardware_interface", "pluginlib", "rclcpp_lifecycle"):
        found[name] = f"{name}::{name}"
    for name, target in {**found, "inverse_dynamics_solver": ""}.items():
        text = f"add_library({target} INTERFACE IMPORTED)\ntarget_include_directories({target} INTERFACE {STUB})\n"
        (tmp_path / f"{name}Config.cmake").write_text(text if target else "")
    macros = "function(pluginlib_export_plugin_description_file)\nendfunction()\nmacro(ament_package)\nendmacro()\n"
    macros += "macro(ament_export_targets name)\ninstall(EXPORT ${name} DESTINATION share)\nendmacro()\n"
    (tmp_path / "ament_cmakeConfig.cmake").write_text(f"{macros}option(BUILD_TESTING on ON)\n")
    solver = tmp_path / "inverse_dynamics_solverConfig.cmake"
    solver.write_text(f"set(inverse_dynamics_solver_INCLUDE_DIRS {STUB})\n")
    run("cmake", "-S", package, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={tmp_path}", "-Wno-dev")
    run("cmake", "--build", tmp_path / "build")
    assert "100% tests passed" in run("ctest", "--test-dir", tmp_path / "build")
    run("cmake", "--install", tmp_path / "build", "--prefix", tmp_path / "there")
    for file in (f"share/{NAME}/config/controllers.yaml", f"include/{NAME}/{NAME}/{NAME}_kernels.hpp", "lib"):
        assert (tmp_path / "there" / file).exists()


DESCRIBED = """
#include <fstream>
#include <iostream>
#include <iterator>
#include "PACKAGE/description.hpp"
int main(int, char **argv)
{
    std::ifstream file(argv[1]);
    std::cout << PACKAGE::description_fault({std::istreambuf_iterator<char>(file), {}}, {});
}
"""


ZERO = """
#include <iostream>
#include "arm/compensator.hpp"
int main()
{
    arm::Settings settings;
    std::cout << arm::configure("gravity", {}, {}, {}, settings) << "\\n";
    std::cout << arm::configure("gravity", {}, {}, {0.0, 1.0}, settings) << "\\n";
}
"""


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ur5_robot.urdf", "solo12.urdf", "tree"])
def test_the_description_that_a_robot_was_read_from_is_that_of_its_package(name: str, tmp_path: Path) -> None:
    if name == "tree":  # branches, revolute and prismatic joints
        robot = torsor.library.random_tree(7, 2, ("revolute", "prismatic"), branching=0.6, extras=False).with_gravity(
            [0, 0, -9.81]
        )
        path = tmp_path / "robot.urdf"
        robot.save(path)
    else:
        listed = files("example-robot-data") or []
        path = next(Path(str(each.locate())) for each in listed if each.name == name)
        robot = torsor.load(path, strict=False)
    torsor.export.ros2(robot, tmp_path, name="arm")
    (tmp_path / "main.cpp").write_text(DESCRIBED.replace("PACKAGE", "arm"))
    run("g++", "-std=c++17", *STRICT, f"-I{tmp_path / 'include'}", tmp_path / "main.cpp", "-o", tmp_path / "main")
    assert run(tmp_path / "main", path) == ""


@needs_gcc
@pytest.mark.slow
def test_continuous_joints_have_a_package_and_an_effort_limit_of_zero_is_an_error(tmp_path: Path) -> None:
    urdf, inertia = tmp_path / "arm.urdf", 0.1 * np.eye(3)
    links = [Link("base"), Link("arm", 1.0, inertia=inertia), Link("hand", 1.0, inertia=inertia)]
    joints = [Joint("turn", "continuous", "base", "arm", effort_limit=0.0), Joint("wrist", "continuous", "arm", "hand")]
    robot = torsor.build("arm", links, joints)
    robot.save(urdf)
    torsor.export.ros2(robot, tmp_path, name="arm")
    (tmp_path / "main.cpp").write_text(DESCRIBED.replace("PACKAGE", "arm"))
    run("g++", "-std=c++17", *STRICT, f"-I{tmp_path / 'include'}", tmp_path / "main.cpp", "-o", tmp_path / "main")
    assert run(tmp_path / "main", urdf) == ""
    (tmp_path / "zero.cpp").write_text(ZERO)
    kernels = tmp_path / "src" / "arm_kernels.c"
    folders = [f"-I{tmp_path / 'include'}", f"-I{tmp_path / 'include' / 'arm'}"]
    run("g++", "-std=c++17", *STRICT, *folders, tmp_path / "zero.cpp", kernels, "-o", tmp_path / "zero")
    assert run(tmp_path / "zero") == "the model limits the effort of 'turn' to 0; set max_effort\n\n"


def test_the_ros_layer_is_a_page_for_each_class(package: Path) -> None:
    for part in ("controller", "solver"):
        assert len((package / "src" / f"{part}.cpp").read_text().splitlines()) < 150


@pytest.mark.parametrize(
    ("robot", "words"),
    [
        (lambda: torsor.library.four_bar(), "closed loops"),
        (lambda: torsor.library.two_link().with_spring("joint1", 10.0), "the joint has a spring"),
        (lambda: torsor.library.two_link().with_motor("joint1", 1e-3, stiffness=10.0), "the joint has a spring"),
        (lambda: torsor.library.free_flying_arm(), "the joint is free"),
    ],
)
def test_robots_that_ros2_control_does_not_know_are_refused(
    robot: Callable[[], torsor.Robot], words: str, tmp_path: Path
) -> None:
    with refused(words):
        torsor.export.ros2(robot(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_command_names_the_package_and_keeps_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["export", "two_link", str(tmp_path / "arm"), "--to", "ros2", "--name", "my_arm"]
    assert main(command) == 0
    assert (tmp_path / "arm" / "include" / "my_arm" / "my_arm_kernels.hpp").exists()
    assert main(command) == 1 and "--force" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    (tmp_path / "arm" / "include" / "my_arm" / "own.hpp").touch()
    assert main([*command[:-1], "other", "--force"]) == 0  # of the earlier export, only what others wrote is left
    left = {file.relative_to(tmp_path / "arm").as_posix() for file in (tmp_path / "arm").rglob("*my_arm*/*")}
    assert left == {"include/my_arm/own.hpp"}
    assert not (tmp_path / "arm" / "src" / "my_arm_kernels.c").exists()
    assert main([*command, "--force"]) == 0 and not (tmp_path / "arm" / "include" / "other").exists()
    assert main([*command, "--dtype", "float32"]) == 1
    assert "--to ros2 does not support --dtype; allowed: --name" in capsys.readouterr().err
    for name in ("My Arm", "a__b", "std", "rclcpp", "a" * 60 + "-"):
        assert main([*command[:-1], name, "--force"]) == 1
        assert "lower-case letters" in capsys.readouterr().err

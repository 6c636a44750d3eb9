"""The exported C++ header compiles without warnings, takes all kinds of arrays, and agrees with the robot's methods."""

import shutil
import subprocess
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.compiler.c import export_cpp

pytestmark = pytest.mark.skipif(not (shutil.which("g++") and shutil.which("gcc")), reason="g++ is not installed")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Werror"]
SANITIZED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
NAMES = ["inverse_dynamics", "mass_matrix", "gravity_force", "jacobian:link6"]

MAIN = """
#include "arm.hpp"
#include "arm.hpp"
#include <cstdio>
#include <vector>
struct Fixed {  // as a vector of Eigen: data() and a size that is known at compile time
    enum { SizeAtCompileTime = 6 };
    double *data() { return numbers; }
    const double *data() const { return numbers; }
    double numbers[6];
};
int main()
{
    static_assert(arm::robot::coordinates.size() == 6 && arm::robot::gravity[2] < -9.8 && arm::robot::parents[1] == 0);
    double q[6] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
    const std::array<double, 6> v{{1.0, -1.1, 1.2, -1.3, 1.4, -1.5}};
    Fixed a{{2.0, 1.0, 0.0, -1.0, -2.0, -3.0}};
    std::vector<double> J(36);
    arm::jacobian_link6(q, arm::View<double, 36>(J.data()));
    double tau[6];
    arm::inverse_dynamics(q, v, a, tau);
    for (double each : tau) std::printf("%.17g\\n", each);
    for (double each : arm::mass_matrix(q)) std::printf("%.17g\\n", each);
    for (double each : arm::gravity_force(arm::View<const double, 6>(q))) std::printf("%.17g\\n", each);
    for (double each : J) std::printf("%.17g\\n", each);
    for (std::size_t k = 0; k < 6; ++k) std::printf("%.17g\\n", arm::robot::upper[k]);
    std::printf("%s %s\\n", arm::robot::name, arm::robot::coordinates[5]);
    return 0;
}
"""


def run(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(folder: Path, line: str) -> str:
    """Return the compiler output for a program with that line."""
    source = folder / "wrong.cpp"
    source.write_text(f'#include "arm.hpp"\nint main() {{ double six[6] = {{}}, five[5] = {{}}; {line} }}')
    done = subprocess.run(["g++", "-std=c++17", "-fsyntax-only", source], capture_output=True, text=True, timeout=300)
    return done.stderr


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cpp")
    torsor.export.cpp(torsor.library.six_axis_arm(), folder, NAMES, name="arm", prefix="six_")
    (folder / "main.cpp").write_text(MAIN)
    run(
        "gcc", "-std=c99", *STRICT, *SANITIZED, "-O1", "-ffp-contract=off", "-c", folder / "arm.c", "-o", folder / "c.o"
    )
    return folder


def test_a_program_without_warnings_and_faults_gives_the_numbers_of_the_methods(exported: Path) -> None:
    program = exported / "main"
    run("g++", "-std=c++17", *STRICT, *SANITIZED, exported / "main.cpp", exported / "c.o", "-o", program)
    *lines, last = run(program).splitlines()
    robot = torsor.library.six_axis_arm()
    q, v, a = np.arange(1, 7) / 10, np.array([1.0, -1.1, 1.2, -1.3, 1.4, -1.5]), np.arange(2.0, -4.0, -1.0)
    parts = np.split(np.array(lines, dtype=float), np.cumsum([6, 36, 6, 36]))
    wanted = [robot.inverse_dynamics(q, v, a), robot.mass_matrix(q), robot.gravity_force(q), robot.jacobian(q, "link6")]
    for ours, theirs in zip(parts, [*wanted, robot.upper], strict=True):
        np.testing.assert_allclose(ours, theirs.ravel(), rtol=1e-14, atol=1e-14 * np.abs(theirs).max())
    assert last == "six_axis_arm joint6"


@pytest.mark.slow
def test_arrays_of_another_length_do_not_compile(exported: Path) -> None:
    assert refused(exported, "arm::gravity_force(six, six);") == ""
    for line in ("arm::gravity_force(five, six);", "arm::gravity_force(std::array<double, 7>{}, six);"):
        assert "the array has another length" in refused(exported, line)
    for line in (
        "const double *some = six; arm::gravity_force(some, six);",
        "const double no[6] = {}; gravity(six, no);",
    ):
        assert "error" in refused(exported, line)


@pytest.mark.slow
def test_the_program_of_the_documentation_prints_what_is_written_there(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "deploy" / "export_cpp.md").read_text()
    names = ["inverse_dynamics", "gravity_force", "mass_matrix", "jacobian:ee_link"]
    torsor.export.cpp(torsor.library.ur5(), tmp_path, names, name="ur5", prefix="ur5_")
    (tmp_path / "main.cpp").write_text(page.split("```cpp\n")[1].split("```")[0])
    run("gcc", "-std=c99", *STRICT, "-c", tmp_path / "ur5.c", "-o", tmp_path / "ur5.o")
    run("g++", "-std=c++17", *STRICT, tmp_path / "main.cpp", tmp_path / "ur5.o", "-lm", "-o", tmp_path / "main")
    assert f"prints `{run(tmp_path / 'main').strip()}`" in " ".join(page.split())


@pytest.mark.slow
def test_a_span_of_cpp_20_is_taken(exported: Path) -> None:
    source = exported / "span.cpp"
    source.write_text(
        '#include "arm.hpp"\n#include <span>\n'
        "void f(std::span<const double, 6> q, std::span<double, 6> g) { arm::gravity_force(q, g); }\n"
    )
    run("g++", "-std=c++20", *STRICT, "-fsyntax-only", source)


@pytest.mark.slow
def test_cmake_installs_both_headers(exported: Path) -> None:
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    run("cmake", "-S", exported, "-B", exported / "build")
    run("cmake", "--build", exported / "build")
    run("cmake", "--install", exported / "build", "--prefix", exported / "there")
    assert sorted(each.name for each in (exported / "there" / "include").iterdir()) == ["arm.h", "arm.hpp"]


def test_the_header_says_robot_order_units_axes_version_and_licence(exported: Path) -> None:
    for name in ("arm.h", "arm.hpp"):
        head = (exported / name).read_text().split("*/")[0]
        for words in ("Robot six_axis_arm", f"Torsor {torsor.__version__}", "Apache-2.0", "joint1 (rad), joint2", "SI"):
            assert words in head
        assert "in its axes" in head and "Gravity is in base axes" in head


def test_names_of_cpp_and_empty_arguments(tmp_path: Path) -> None:
    x, nothing = ca.SX.sym("x", 2), ca.SX.sym("nothing", 0)
    several = ca.Function("View", [x, nothing], [x[0], x.T], ["this", "std"], ["a", "b"])
    functions = {"robot": several, "namespace": ca.Function("f", [], [ca.SX(1.5)]), "class": several}
    export_cpp(functions, tmp_path, "float32", name="class")
    (tmp_path / "main.cpp").write_text(
        '#include "class.hpp"\nint main() { float x[2] = {1, 2}, a[1], b[2];\n'
        "class_2::robot_2(x, class_2::View<const float, 0>(nullptr), a, b);\n"
        "return class_2::namespace_()[0] == 1.5f && b[1] == 2.0f ? 0 : 1; }\n"
    )
    run("gcc", *STRICT, "-c", tmp_path / "class.c", "-o", tmp_path / "c.o")
    run("g++", "-std=c++17", *STRICT, tmp_path / "main.cpp", tmp_path / "c.o", "-o", tmp_path / "main")
    run(tmp_path / "main")


@pytest.mark.slow
def test_a_compiler_of_cpp_takes_the_c_source_too(tmp_path: Path) -> None:
    robot = torsor.library.seven_axis_arm()  # a function in pieces
    _, _, source, _ = torsor.export.cpp(robot, tmp_path, ["forward_dynamics_derivatives"], name="arm")
    (tmp_path / "main.cpp").write_text('#include "arm.hpp"\nint main() {}\n')
    run("g++", "-std=c++17", *STRICT, "-I", tmp_path, tmp_path / "main.cpp", source, "-o", tmp_path / "main")

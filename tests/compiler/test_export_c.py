"""The exported C compiles without warnings and agrees with CasADi's virtual machine."""

import ctypes
import itertools
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.compiler import VirtualMachine, source
from torsor.compiler.c import C_RULES, CScalar, export_c
from torsor.compiler.llvm.elementary import EVERY_RULE
from torsor.compiler.program import every_operation, uncovered
from torsor.export import c as export_robot

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
TYPES = {"float64": ctypes.c_double, "float32": ctypes.c_float}
INF, NAN = float("inf"), float("nan")
SPECIAL = [
    0.0,
    -0.0,
    0.3,
    -0.7,
    0.7,
    0.95,
    1.0,
    -1.0,
    2.5,
    -3.0,
    17.25,
    1e5,
    5e-324,
    -1e-310,
    1e-40,
    1e300,
    INF,
    -INF,
    NAN,
]

_EXACT = "ceil fabs floor sign sqrt copysign fmax fmin fmod remainder add sub mul div neg sq twice inv"
EXACT = {"numbers", "op_if_else_zero", "op_if_else", "op_lt", "op_le", "op_eq", "op_ne", "op_not", "op_and", "op_or"}
EXACT |= {f"op_{name}" for name in _EXACT.split()}

needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")


def run(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def library(folder: Path, name: str = "torsor_kernels") -> ctypes.CDLL:
    run("gcc", *STRICT, "-fPIC", "-shared", folder / f"{name}.c", "-o", folder / f"{name}.so", "-lm")
    return ctypes.CDLL(str(folder / f"{name}.so"))


def caller(
    lib: ctypes.CDLL, name: str, function: ca.Function, dtype: str = "float64"
) -> Callable[..., list[np.ndarray]]:
    """Return an exported function as a callable on arrays; a guard behind each output shows that no more is written."""
    sizes = [function.size_out(k) for k in range(function.n_out())]

    def call(*values: np.ndarray) -> list[np.ndarray]:
        inputs = [np.ascontiguousarray(value, dtype).ravel() for value in values]
        outputs = [np.full(rows * columns + 1, 77.0, dtype) for rows, columns in sizes]
        getattr(lib, name)(*(each.ctypes.data_as(ctypes.POINTER(TYPES[dtype])) for each in (*inputs, *outputs)))
        assert all(output[-1] == 77.0 for output in outputs)
        return [output[:-1].reshape(size) for output, size in zip(outputs, sizes, strict=True)]

    return call


def virtual(function: ca.Function, *values: np.ndarray) -> list[np.ndarray]:
    shaped = [np.asarray(v, float).reshape(function.size_in(k)) for k, v in enumerate(values)]
    return [result.full() for result in function.call([ca.DM(each) for each in shaped])]


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays have the same numbers, zeros with the same sign, or both no number."""
    return (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))


@pytest.fixture(scope="module")
def every() -> ca.Function:
    return every_operation()


def test_the_table_of_c_covers_every_operation() -> None:
    assert uncovered(C_RULES) == [] and set(EVERY_RULE) <= set(C_RULES)
    assert uncovered({*EVERY_RULE, ca.OP_SIN, ca.OP_COS}) == []  # machine code has its own form of these two
    assert (
        C_RULES[ca.OP_ASSIGN](CScalar("float64"), "w1") == C_RULES[ca.OP_LIFT](CScalar("float64"), "w1", "w2") == "w1"
    )


@needs_gcc
def test_every_operation_in_double_gives_the_bits_of_the_virtual_machine(every: ca.Function, tmp_path: Path) -> None:
    export_c([every], tmp_path)
    call = caller(library(tmp_path), "every", every)
    for x, y in itertools.product(SPECIAL, SPECIAL):
        for name, ours, theirs in zip(every.name_out(), call(x, y), virtual(every, x, y), strict=True):
            # A compiler computes what it knows itself, to half an ulp: x is 1 in one branch of erfinv.
            near = name not in EXACT and np.isclose(ours, theirs, rtol=3e-16, atol=0)
            if name in ("op_fmin", "op_fmax"):  # of 0.0 and -0.0 they may give either
                near = x == y == 0 and np.signbit(x) != np.signbit(y) and ours == 0
            assert np.all(same(ours, theirs) | near), (name, x, y, ours, theirs)


@needs_gcc
def test_every_operation_in_float(every: ca.Function, tmp_path: Path) -> None:
    export_c([every], tmp_path, dtype="float32")
    source = (tmp_path / "torsor_kernels.c").read_text()
    assert "double" not in source and "sinf(" in source
    call = caller(library(tmp_path), "every", every, "float32")
    smooth = [each for each in SPECIAL if not 0 < abs(each) < 1e-30 and not 1e10 < abs(each) < INF]
    for x, y in itertools.product(np.float32(smooth), np.float32(smooth)):
        with np.errstate(over="ignore"):
            wanted = [np.float32(each) for each in virtual(every, x, y)]
        for name, ours, theirs in zip(every.name_out(), call(x, y), wanted, strict=True):
            close = np.isclose(ours, theirs, rtol=1e-5 if name == "op_erfinv" else 1e-6, atol=1e-37)
            assert np.all(same(ours, theirs) | close), (name, x, y, ours, theirs)


@needs_gcc
def test_sines_of_single_precision_are_within_a_unit_and_a_half_of_the_last_place(tmp_path: Path) -> None:
    x = ca.SX.sym("x", 50)
    function = ca.Function("sines", [x], [ca.sin(x), ca.cos(x)])
    export_c([function], tmp_path, dtype="float32")
    call, rng = caller(library(tmp_path), "sines", function, "float32"), np.random.default_rng(0)
    turns = np.arange(-100, 100) * np.pi / 4  # where a sine or a cosine is near 0, and where both are as large
    for angles in np.concatenate([rng.uniform(-999, 999, 500), turns, rng.normal(size=500)]).reshape(-1, 50):
        angles = angles.astype(np.float32)
        sine, cosine = (each.ravel() for each in call(angles))
        for ours, truth in ((sine, np.sin(angles.astype(float))), (cosine, np.cos(angles.astype(float)))):
            np.testing.assert_allclose(ours, truth, rtol=0, atol=1.5 * 2.0**-24)
        np.testing.assert_array_equal(call(-angles)[0].ravel(), -sine)
        np.testing.assert_array_equal(call(-angles)[1].ravel(), cosine)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_read_back_to_the_last_bit(dtype: str) -> None:
    rng = np.random.default_rng(1)
    numbers = np.concatenate(
        [rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, 200), [0.1, 3e-320, 1e22, 2.0**60]]
    )
    with np.errstate(over="ignore"):
        for number in np.abs(numbers.astype(dtype)):
            text = CScalar(dtype).literal(float(number)).removesuffix("f")
            back = INF if text == "INFINITY" else float.fromhex(text) if text.startswith("0x") else float(text)
            assert np.array(back, dtype) == number
            assert dtype == "float64" or np.float32(back) == back  # no second rounding


ROBOTS = {
    "six_axis_arm": torsor.library.six_axis_arm,
    "stanford": torsor.library.stanford,
    "random_tree": lambda: torsor.library.random_tree(9, seed=5),
}
NAMES = ["inverse_dynamics", "mass_matrix", "joint_wrenches", "poses"]


@needs_gcc
@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["six_axis_arm", "stanford", pytest.param("random_tree", marks=pytest.mark.slow)])
def test_robots(name: str, dtype: str, tmp_path: Path) -> None:
    robot = ROBOTS[name]()
    last = robot.link_names[-1]
    files = export_robot(robot, tmp_path, [*NAMES, f"jacobian:{last}", "jacobian"], dtype, place=0)
    assert [file.name for file in files] == ["torsor_kernels.h", "torsor_kernels.c", "CMakeLists.txt"]
    functions = {each: robot.function(each) for each in NAMES}
    functions |= {f"jacobian_{last}": robot.function("jacobian", last), "jacobian": robot.function("jacobian", 0)}
    lib, rng = library(tmp_path), np.random.default_rng(3)
    for title, function in functions.items():
        call = caller(lib, title, function, dtype)
        for _ in range(5):
            values = [rng.normal(size=function.numel_in(k)).astype(dtype) for k in range(function.n_in())]
            wanted = virtual(function, *values)[0]
            tolerance = 1e-12 if dtype == "float64" else 2e-4
            np.testing.assert_allclose(call(*values)[0], wanted, rtol=0, atol=tolerance * max(1, np.abs(wanted).max()))


@needs_gcc
@pytest.mark.parametrize("piece", [7, pytest.param(50, marks=pytest.mark.slow)])
def test_a_function_in_pieces_gives_the_same_bits(piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function = torsor.library.random_tree(5, seed=2).function("inverse_dynamics")
    export_c([function], tmp_path, name="whole")
    monkeypatch.setattr(source, "PIECE", piece)
    (tmp_path / "cut").mkdir()
    export_c([function], tmp_path / "cut", name="cut")
    assert "inverse_dynamics_piece_3(" in (tmp_path / "cut" / "cut.c").read_text()
    values = [np.linspace(-1, 1, function.numel_in(k)) for k in range(3)]
    cut = caller(library(tmp_path / "cut", "cut"), "inverse_dynamics", function)(*values)
    whole = caller(library(tmp_path, "whole"), "inverse_dynamics", function)(*values)
    np.testing.assert_array_equal(cut[0], whole[0])


@needs_gcc
@pytest.mark.slow
def test_a_long_function_reuses_places_and_computes_what_the_virtual_machine_does(tmp_path: Path) -> None:
    function = torsor.library.random_tree(20, seed=1).function("coriolis_matrix")
    assert function.n_instructions() > 50_000
    export_c([function], tmp_path)
    source = (tmp_path / "torsor_kernels.c").read_text()
    scratch = re.search(r"^    double s\[(\d+)\];", source, re.MULTILINE)
    assert scratch and int(scratch[1]) < function.n_instructions() // 10  # places are used again
    q, v = np.linspace(-1, 1, function.numel_in(0)), np.linspace(2, -1, function.numel_in(1))
    wanted = virtual(function, q, v)[0]
    ours = caller(library(tmp_path), "coriolis_matrix", function)(q, v)[0]
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def shapes() -> ca.Function:
    """Return a function with sparse, empty, unused and constant arguments, and with names that C does not allow."""
    a, b, c = ca.SX.sym("a", ca.Sparsity.upper(3)), ca.SX.sym("b", 0), ca.SX.sym("c", 2, 3)
    results = [a @ c.T, ca.SX(2, 2), ca.SX.zeros(0, 2), ca.vertcat(a[0, 0], 3.5, a[0, 0]), ca.SX(2, 1) + c[0, :2].T]
    return ca.Function(
        "int_", [a, b, c, ca.SX.sym("d")], results, ["int", "b", "sin", "w0"], ["s", "new", "I", "y1", "int_"]
    )


@needs_gcc
def test_shapes_and_names(tmp_path: Path) -> None:
    function = shapes()
    titles = [
        "while",
        "main",
        "2 */ x",
        "a-b",
        "a_b",
        "a b",
        "_q",
        "TORSOR_KERNELS_H",
        "",
        "A_B_INT_SIZE",
        "größe",
        "w0",
    ]
    export_c(dict.fromkeys(titles, function), tmp_path)
    names = ["while_", "main_", "x2____x", "a_b", "a_b_2", "a_b_3", "x_q", "TORSOR_KERNELS_H_2", "x", "A_B_INT_SIZE"]
    lib, rng = library(tmp_path), np.random.default_rng(0)
    values = [np.triu(rng.normal(size=(3, 3))), np.zeros(0), rng.normal(size=(2, 3)), 4.0]
    wanted = VirtualMachine(function)(*values)
    for name in [*names, "gr__e", "w0_"]:
        for ours, theirs in zip(caller(lib, name, function)(*values), wanted, strict=True):
            np.testing.assert_array_equal(ours.reshape(theirs.shape), theirs)


@needs_gcc
def test_functions_of_nothing_and_of_mx(tmp_path: Path) -> None:
    x = ca.MX.sym("x", 2)
    matrix = ca.Function("matrix", [x], [ca.sin(x) * 2, x.T])
    export_c([ca.Function("nothing", [], []), ca.Function("number", [], [ca.SX(1.5)]), matrix], tmp_path)
    lib = library(tmp_path)
    lib.nothing()
    assert caller(lib, "number", ca.Function("n", [], [ca.SX(1)]))()[0] == 1.5
    np.testing.assert_allclose(caller(lib, "matrix", matrix)([1.0, 2.0])[0][:, 0], 2 * np.sin([1.0, 2.0]), rtol=1e-15)


MAIN = """
#include "torsor_kernels.h"
#include "torsor_kernels.h"
#include <stdio.h>
int main()
{
    double q[INVERSE_DYNAMICS_Q_SIZE] = {0.3, -1.2}, v[2] = {1.1, -0.7}, a[2] = {2.0, 3.5};
    double tau[INVERSE_DYNAMICS_OUT_SIZE], y[2], x = 0.5;
    inverse_dynamics(q, v, a, tau);
    helper(&x, y);
    printf("%.6f %.6f\\n", tau[0], tau[1]);
    return 0;
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a folder with two exported functions and a program that calls them."""
    x = ca.SX.sym("x")
    helper = ca.Function("helper", [x], [ca.vertcat(ca.erfinv(x), ca.sign(x))], ["x"], ["y"])
    export_c([torsor.library.two_link().function("inverse_dynamics"), helper], tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    shutil.copy(tmp_path / "main.c", tmp_path / "main.cpp")
    return tmp_path


ANSWER = "1.129562 0.643878\n"


@needs_gcc
@pytest.mark.slow
def test_a_program_is_clean_under_the_sanitizers(program: Path) -> None:
    checks = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = [program / "main.c", program / "torsor_kernels.c"]
    run("gcc", *STRICT, *checks, *sources, "-o", program / "main", "-lm")
    assert run(program / "main") == ANSWER


@needs_gcc
def test_a_cpp_program_takes_the_header(program: Path) -> None:
    if not shutil.which("g++"):
        pytest.skip("g++ is not installed")
    run("gcc", *STRICT, "-c", program / "torsor_kernels.c", "-o", program / "kernels.o")
    warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    run("g++", *warnings, program / "main.cpp", program / "kernels.o", "-o", program / "main", "-lm")
    assert run(program / "main") == ANSWER


@pytest.mark.slow
@needs_gcc
def test_cmake_builds_and_installs(program: Path) -> None:
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    run("cmake", "-S", program, "-B", program / "build", "-DCMAKE_INSTALL_LIBDIR=lib")
    run("cmake", "--build", program / "build")
    run("cmake", "--install", program / "build", "--prefix", program / "there")
    there = program / "there"
    inside = ["-I", there / "include", program / "main.c", "-L", there / "lib"]
    (program / "torsor_kernels.h").unlink()
    run("gcc", *inside, "-ltorsor_kernels", "-lm", "-o", program / "main")
    assert run(program / "main") == ANSWER


def exported(folder: Path, functions: Sequence[ca.Function]) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in export_c(functions, folder)}


def test_the_output_is_deterministic_and_allocates_nothing(every: ca.Function, tmp_path: Path) -> None:
    first = exported(tmp_path / "new" / "folder", [every])
    assert first == exported(tmp_path / "new" / "folder", [every_operation()]) == exported(tmp_path / "b", [every])
    assert sorted(each.name for each in (tmp_path / "b").iterdir()) == sorted(first)  # nothing is left behind
    source = first["torsor_kernels.c"].decode()
    assert not re.search(r"malloc|calloc|alloca|free\(", source)
    assert re.findall(r"#include (\S+)", source) == ['"torsor_kernels.h"', "<math.h>"]
    # Outside of functions there is nothing but functions: no variable that threads could share.
    assert not re.search(r"^(?!static double torsor_erfinv\(|void |[ {}/#\n]|\Z)", source, re.MULTILINE)


def test_the_header_says_what_a_function_takes(tmp_path: Path) -> None:
    header = export_c([torsor.library.two_link().function("mass_matrix")], tmp_path)[0].read_text()
    count = torsor.library.two_link().operation_count("mass_matrix")
    assert f"{count.multiplications} multiplications, {count.additions} additions" in header
    assert "out, 2 x 2, out: mass_matrix" in header and "MASS_MATRIX_OUT_SIZE = 4" in header


def function(name: str = "f") -> ca.Function:
    x = ca.SX.sym("x")
    return ca.Function(name, [x], [x * 2])


def free() -> ca.Function:
    return ca.Function("f", [], [ca.SX.sym("p")], {"allow_free": True})


def printing() -> ca.Function:
    x = ca.SX.sym("x")
    return ca.Function("f", [x], [x.printme(1)])


BAD = [
    ("one or more CasADi functions", [], {}),
    ("functions", function(), {}),
    ("CasADi functions", [3], {}),
    ("a string", {3: function()}, {}),
    ("each name once", [function(), function()], {}),
    ("dtype", [function()], {"dtype": "float16"}),
    ("name", [function()], {"name": "a/b"}),
    ("name", [function()], {"name": "test"}),
    ("make them inputs of the function", [free()], {}),
]


@pytest.mark.parametrize(("about", "functions", "settings"), BAD)
def test_errors(about: str, functions: Any, settings: dict[str, Any], tmp_path: Path) -> None:
    with refused(about):
        export_c(functions, tmp_path / "folder", **settings)
    assert not (tmp_path / "folder").exists()


def test_an_operation_without_a_rule_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="OP_PRINTME"):
        export_c([printing()], tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with refused(allowed="a folder"):
            export_c([function()], path)
    (tmp_path / "CMakeLists.txt").write_text("project(mine)")
    with refused(where="CMakeLists.txt", allowed="files written by Torsor"):
        export_c([function()], tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["CMakeLists.txt", "file"]
    closed = tmp_path / "closed"
    closed.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    try:
        (closed / "try").touch()
    except PermissionError:
        with refused(where="closed", allowed="a folder"):
            export_c([function()], closed)


def test_a_write_that_fails_leaves_the_files_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = exported(tmp_path, [function()])
    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if "CMake" in path.name:
            raise OSError("no space left")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with refused(what="no space left"):
        export_c([function("g")], tmp_path)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("names", "place", "message"),
    [
        (["torques"], None, "torques"),
        (["jacobain:hand"], None, "jacobain:hand"),
        ([3], None, "there is no algorithm 3"),
        (["jacobian"], None, "jacobian"),
        (["jacobian:hand"], None, "hand"),
        (["mass_matrix:link1"], None, "mass_matrix:link1"),
        (["poses", "poses"], None, "poses"),
        ([], None, "no algorithm is selected"),
    ],
)
def test_errors_of_robots(names: list[str], place: str | None, message: str, tmp_path: Path) -> None:
    with refused(message):
        export_robot(torsor.library.two_link(), tmp_path / "folder", names, place=place)
    assert not (tmp_path / "folder").exists()


@needs_gcc
def test_numbers_of_a_parametric_robot_are_the_last_input(tmp_path: Path) -> None:
    """The C code at p is the ordinary robot that has these numbers."""
    paths = ["links.link2.mass", "joints.joint3.origin", "gravity.z"]
    model = torsor.library.six_axis_arm().parametric(paths)
    header = torsor.export.c(model, tmp_path, ["inverse_dynamics", "jacobian:link6"])[0].read_text()
    assert "Parameters p: links.link2.mass = 17.4, joints.joint3.origin.x = " in header
    assert "p, 5 x 1, in: robot parameters, in the order above" in header
    lib, rng = library(tmp_path), np.random.default_rng(4)
    force = caller(lib, "inverse_dynamics", model.function("inverse_dynamics"))
    columns = caller(lib, "jacobian_link6", model.function("jacobian", "link6"))
    for _ in range(3):
        p, (q, v, a) = model.values + rng.uniform(0.1, 0.5, 5), rng.normal(size=(3, 6))
        robot = model.at(p)
        tau, J = (robot.function(*each) for each in (("inverse_dynamics",), ("jacobian", "link6")))
        np.testing.assert_allclose(force(q, v, a, p)[0], virtual(tau, q, v, a)[0], rtol=0, atol=1e-11)
        np.testing.assert_allclose(columns(q, p)[0], virtual(J, q)[0], rtol=0, atol=1e-13)


def test_parametric_robots_with_loops_export_and_count_their_own_dynamics(tmp_path: Path) -> None:
    model = torsor.library.four_bar().parametric(["links.0.mass"])
    text = torsor.export.c(model, tmp_path)[0].read_text()
    assert "void constrained_inverse_dynamics(" in text and "const double p[1]" in text
    assert "The robot has closed loops" in text
    with refused(what="mass_matrix would cut"):
        torsor.export.c(model, tmp_path / "tree", ["mass_matrix"])
    with refused(what="mass_matrix would cut"):
        model.operation_count("mass_matrix")
    assert model.operation_count("mass_matrix", loops="open").arithmetic > 0


def test_a_number_that_is_an_input_costs_no_more_than_the_operations_it_takes_part_in() -> None:
    robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
    model = robot.parametric(["gravity"])
    # Forces of a rod in a plane: m r (cos q g_y - sin q g_x), where the robot itself has gravity along y alone.
    assert robot.operation_count("gravity_force") == (1, 0, 1, 0)
    assert model.operation_count("gravity_force").trigonometric == 2
    assert 3 <= model.operation_count("gravity_force").arithmetic <= 5


def test_one_name_may_stand_alone(tmp_path: Path) -> None:
    robot = torsor.library.two_link()
    assert "void pose(" in export_robot(robot, tmp_path, "pose", place=1)[0].read_text()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "math",
            "name",
        ),
        ("Math", "name"),
        ("stdio", "name"),
        ("unistd", "name"),
        ("double", "name"),
        ("while", "name"),
    ],
)
def test_names_that_hide_a_header_or_are_keywords_are_refused(tmp_path: Path, name: str, text: str) -> None:
    with refused(text):
        torsor.export.c(torsor.library.two_link(), tmp_path, name=name)
    assert not list(tmp_path.iterdir())


@needs_gcc
def test_the_cmake_file_forbids_the_fusing_that_the_c_promises_not_to_do(tmp_path: Path) -> None:
    x, y, z = (ca.SX.sym(name) for name in "xyz")
    function = ca.Function("fused", [x, y, z], [x * y - z])
    text = export_c([function], tmp_path)[2].read_text()
    assert "target_compile_options(torsor_kernels PRIVATE -ffp-contract=off)" in text
    flags = ["-std=gnu11", "-O2", "-ffp-contract=off", "-fPIC", "-shared"]  # GNU C fuses across statements by default
    run("gcc", *flags, tmp_path / "torsor_kernels.c", "-o", tmp_path / "torsor_kernels.so", "-lm")
    third = 1.0 / 3.0
    (found,) = caller(ctypes.CDLL(str(tmp_path / "torsor_kernels.so")), "fused", function)(
        *(np.array(each) for each in (third, third, third * third))
    )
    assert found.item() == 0.0


@pytest.mark.parametrize(("export", "name"), [("c", "a.c"), ("c", "a.h"), ("js", "a.js")])
def test_the_name_of_a_file_is_no_folder(tmp_path: Path, export: str, name: str) -> None:
    write = partial(getattr(torsor.export, export), torsor.library.two_link())
    with refused(where=name, allowed="a folder, for torsor_kernels", fix="/a'"):
        write(tmp_path / name)
    assert not list(tmp_path.iterdir())
    (tmp_path / name).mkdir()  # a folder that is there may have any name
    assert len(write(tmp_path / name)) == 3

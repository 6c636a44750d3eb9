"""Code for other processors compiles, fills their vector registers, and has the expected arithmetic instructions."""

import re
from functools import cache

import casadi as ca
import pytest

import torsor
from bench.instructions import InstructionCount, _counted, _instructions, count_instructions
from robots import robot_file
from torsor.compiler import count_operations, read_program
from torsor.compiler.llvm.angles import loops_called, write_angles
from torsor.compiler.llvm.code import write_llvm
from torsor.compiler.llvm.native import C_FUNCTIONS
from torsor.compiler.llvm.rules import Scalar
from torsor.compiler.llvm.target import TARGETS, Target, host

# A pair of sine and cosine, in float64: 18 fused products and sums, 2 products and a difference.
FUSED, PLAIN = 18, 3

FUNCTIONS = {
    "six-axis arm, inverse dynamics": lambda: torsor.library.six_axis_arm().function("inverse_dynamics"),
    "six-axis arm, forward dynamics": lambda: torsor.library.six_axis_arm().function("forward_dynamics"),
    "Stanford arm, inverse dynamics": lambda: torsor.library.stanford().function("inverse_dynamics"),
    "Stanford arm, forward dynamics": lambda: torsor.library.stanford().function("forward_dynamics"),
    "tree of 6 joints, mass matrix": lambda: torsor.library.random_tree(6, seed=1).function("mass_matrix"),
    "humanoid, derivatives": lambda: torsor.load(robot_file("talos_reduced.urdf")).function(
        "inverse_dynamics_derivatives"
    ),
}
CASES = [pytest.param(name, marks=pytest.mark.slow) if "humanoid" in name else name for name in FUNCTIONS]


@cache
def traced(name: str) -> ca.Function:
    """Return a function, which all targets share."""
    return FUNCTIONS[name]()


def modules(function: ca.Function, width: int, dtype: str) -> list[str]:
    program = read_program(function)
    axes = (1,) * (len(program.inputs) + len(program.outputs))
    texts = write_llvm(program, axes, dtype, width)
    return [*texts, write_angles(Scalar(dtype), width, host().constants, loops_called(texts[0]))]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", TARGETS)
def test_the_arithmetic_is_that_of_the_operations_on_whole_vectors(target: str, name: str) -> None:
    function = traced(name)
    count, operations = count_instructions(function, TARGETS[target]), count_operations(function)
    pairs = operations.trigonometric / 2
    assert count.bits == TARGETS[target].bits == 64 * count.width
    assert min(count.memory, count.other) > 0
    # LLVM finds few operations that are not needed. Of the other operations some are divisions and square roots, which
    # are arithmetic, and some change a sign.
    least, most = 0.98 * operations.arithmetic, operations.arithmetic + operations.other
    if target == "SSE2":  # no fused instructions: the C library's fma is called
        assert count.fused == 0
        assert least + PLAIN * pairs <= count.operations <= most + PLAIN * pairs
        return
    assert count.fused > FUSED * pairs
    assert least + (2 * FUSED + PLAIN) * pairs <= count.operations
    if target == "Apple M1":  # a product with several uses is fused with each of them
        assert count.operations <= 1.1 * (most + (2 * FUSED + PLAIN) * pairs)
    else:
        assert count.operations <= most + (2 * FUSED + PLAIN) * pairs


@pytest.mark.parametrize("target", TARGETS)
def test_the_counts_of_a_real_robot(target: str) -> None:
    ur5 = torsor.load(robot_file("ur5_robot.urdf")).function("inverse_dynamics")
    count = count_instructions(ur5, TARGETS[target])
    if target == "SSE2":
        assert count.operations == 275 + 5 * PLAIN
    elif target == "Apple M1":
        assert 260 < count.arithmetic <= 295
    else:
        assert (count.arithmetic, count.fused) == (295, 175)
        assert count.operations == 275 + 5 * (2 * FUSED + PLAIN)


@pytest.mark.parametrize("target", TARGETS)
def test_single_precision_has_twice_the_states(target: str) -> None:
    function = traced("Stanford arm, inverse dynamics")
    double, single = (count_instructions(function, TARGETS[target], dtype) for dtype in ("float64", "float32"))
    assert single.width == 2 * double.width
    assert single.bits == double.bits


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("target", TARGETS)
def test_object_code_is_written_and_calls_only_functions_that_are_provided(target: str, dtype: str) -> None:
    x = ca.SX.sym("x", 12000)  # too many numbers for the stack
    y, z = x[0], x[1]
    results = [ca.sin(y) / z, ca.floor(y), ca.ceil(y), ca.sqrt(y), ca.erf(y), ca.erfinv(y), ca.atan2(y, z), y**z]
    results += [ca.fmod(y, z), ca.fmin(y, z), ca.fabs(y), ca.sign(y), ca.copysign(y, z), ca.tanh(y), ca.hypot(y, z)]
    texts = modules(ca.Function("f", [x], [ca.vertcat(*results)]), TARGETS[target].width(dtype), dtype)
    magic = b"\xcf\xfa\xed\xfe" if "apple" in TARGETS[target].triple else b"\x7fELF"
    objects = TARGETS[target].objects(texts)
    assert all(each.startswith(magic) for each in objects)
    assert "windows" not in TARGETS[target].triple or not any(b".eh_frame" in each for each in objects)
    assembly = TARGETS[target].assembly(texts)
    called = set(re.findall(r"^\t(?:callq?|bl?|jmp)\t_?([\w.]+)(?:@PLT)?", assembly, flags=re.MULTILINE))
    here = set(re.findall(r"^_?([\w.]+):", assembly, flags=re.MULTILINE))
    outside = {name for name in called - here if not name.startswith(".")}
    assert {"malloc", "free"} <= outside
    assert outside <= {*C_FUNCTIONS, *(("_chkstk",) if "windows" in TARGETS[target].triple else ())}


X86 = """
\t.text
piece.0:
\tsubq\t$72, %rsp
\tvmovupd\t64(%rdi), %zmm0
\tvbroadcastsd\t.LCPI0_3(%rip), %zmm1
\tvfmadd213pd\t.LCPI0_0(%rip){1to8}, %zmm2, %zmm1
\tvfnmsub231pd\t%zmm2, %zmm3, %zmm1
\tvaddpd\t128(%rdi), %zmm1, %zmm0
\tvsqrtpd\t%zmm0, %zmm0
\tvxorpd\t%zmm0, %zmm1, %zmm0
\tvpaddq\t%zmm0, %zmm1, %zmm0
\tvmovapd\t%zmm0, %zmm4
\tvmovupd\t%zmm0, (%rsi)
\tpushq\t%rbx
\tmovl\t$5, %eax
\taddq\t$72, %rsp
\tretq
"""
ARM = """
_piece.0:
\tldp\tq0, q1, [x0]
\tldr\tq1, [x8, lCPI0_0@PAGEOFF]
\tmov\tx8, #-46592
\tmovk\tx8, #22859, lsl #16
\tdup.2d\tv2, x8
\tfmov.2d\tv3, #1.00000000
\tfmla.2d\tv0, v1, v2
\tfmls\tv0.2d, v1.2d, v2.d[0]
\tfmul.2d\tv0, v0, v1
\tfneg.2d\tv0, v0
\tmov.16b\tv3, v0
\tadd\tx8, x8, #16
\tadd.2d\tv3, v3, v0
\tstr\tq0, [x1]
\tbl\t_lanes.sin
\tret
"""


def counted(assembly: str, target: Target, width: int) -> InstructionCount:
    return _counted(_instructions(assembly), target, width)


def test_each_instruction_is_in_the_class_where_it_belongs() -> None:
    x86, arm = counted(X86, TARGETS["AVX-512"], 8), counted(ARM, TARGETS["Apple M1"], 2)
    assert (x86.arithmetic, x86.fused, x86.memory, x86.constants, x86.other) == (4, 2, 3, 2, 6)
    assert (arm.arithmetic, arm.fused, arm.memory, arm.constants, arm.other) == (3, 2, 2, 5, 6)
    assert (x86.bits, arm.bits) == (512, 128)


@pytest.mark.parametrize(
    "line, bits",
    [("\tvaddsd\t%xmm0, %xmm1, %xmm0", 64), ("\tmulpd\t%xmm0, %xmm1", 128), ("\tvsubpd\t%ymm0, %ymm1, %ymm2", 256)],
)
def test_scalar_and_short_arithmetic_is_seen(line: str, bits: int) -> None:
    assert counted(line, TARGETS["AVX-512"], 8).bits == bits


def test_scalar_arithmetic_is_seen_on_arm() -> None:
    assert counted("\tfmadd\td0, d1, d2, d3", TARGETS["NEON"], 2).bits == 64


def test_this_machine_is_a_target_like_the_others() -> None:
    count = count_instructions(traced("Stanford arm, inverse dynamics"), host())
    assert count.bits == host().bits
    assert count.operations > 0

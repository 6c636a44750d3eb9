"""Machine code that is written without LLVM: the same instructions, and the same results to the last bit."""

from functools import partial

import casadi as ca
import llvmlite.binding as llvm
import numpy as np
import pytest

import torsor
from torsor.compiler import machine_code
from torsor.compiler.llvm import piece as neon
from torsor.compiler.llvm.code import write_llvm
from torsor.compiler.llvm.fusion import FROM, MINUS, PLUS
from torsor.compiler.llvm.piece import NeonPiece
from torsor.compiler.llvm.rules import Scalar
from torsor.compiler.llvm.target import ENCODED_MARK, TARGETS, host
from torsor.compiler.program import Operation, Program, read_program

on_arm = pytest.mark.skipif(not host().is_arm, reason="the code is that of another processor")
UNARY = (
    *(ca.fabs, ca.floor, ca.ceil, ca.sign, lambda x: -x, lambda x: x * x, lambda x: 2 * x),
    *(lambda x: ca.sqrt(ca.fabs(x)), lambda x: 1 / (2 + ca.fabs(x))),
)

SEVERAL = (
    *(lambda a, b, c: a + b, lambda a, b, c: a - b, lambda a, b, c: a * b, lambda a, b, c: a / (1.5 + ca.fabs(b))),
    *(lambda a, b, c: a * b + c, lambda a, b, c: a * b - c, lambda a, b, c: c - a * b, lambda a, b, c: 0.7 * a + b),
)


def graph(operations: int) -> ca.Function:
    """Return a function of all operations that are encoded, with more values alive than there are registers."""
    rng = np.random.default_rng(operations)
    x = ca.SX.sym("x", 7)
    values = [*ca.vertsplit(x), ca.SX(0.3), ca.SX(1.0)]
    for _ in range(operations):
        a, b, c = (values[k] for k in rng.integers(max(0, len(values) - 90), len(values), 3))
        if rng.random() < 0.8:
            value = SEVERAL[rng.integers(len(SEVERAL))](a, b, c)
        else:
            value = UNARY[rng.integers(len(UNARY))](a)
        values.append(0.25 * value if rng.random() < 0.6 else value)  # which keeps numbers small
    return ca.Function("graph", [x], [ca.vertcat(*values[::9]), ca.vertcat(x[3], 2.5, values[20])])


@on_arm
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_are_those_of_llvm_to_the_last_bit(dtype, monkeypatch):
    monkeypatch.setenv("TORSOR_CACHE", "off")
    function = graph(900)
    encoded = torsor.compile(function, dtype)
    monkeypatch.setattr(machine_code, "write_llvm", partial(write_llvm, encode=False))
    compiled = torsor.compile(function, dtype)
    rng = np.random.default_rng(1)
    states = rng.normal(size=(101, 7))
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, -1.5]
    states[:40] = np.where(rng.random((40, 7)) < 0.4, rng.choice(special, (40, 7)), states[:40])
    for one, other in zip(encoded(states), compiled(states), strict=True):
        assert np.array_equal(one, other, equal_nan=True)
        numbers = ~np.isnan(one)
        assert np.array_equal(np.signbit(one)[numbers], np.signbit(other)[numbers])
        assert numbers[40:].mean() > 0.5


@on_arm
def test_results_that_nobody_uses_leave_no_register_behind(monkeypatch):
    monkeypatch.setenv("TORSOR_CACHE", "off")
    count = 40  # more than registers
    x = ca.SX.sym("x", count)
    pairs = [(i, j) for distance in range(1, count) for i, j in ((k, (k + distance) % count) for k in range(count))]
    kernel = torsor.compile(ca.Function("pairs", [x], [ca.vertcat(*(x[i] - x[j] for i, j in pairs), x)]))
    values = np.random.default_rng(5).normal(size=(3, count))
    expected = [values[:, i] - values[:, j] for i, j in pairs]
    assert np.array_equal(kernel(values), np.column_stack([*expected, values]))


@pytest.mark.parametrize("target", [name for name, each in TARGETS.items() if each.is_arm])
def test_arithmetic_is_encoded_and_the_rest_is_left_to_llvm(target):
    arm = TARGETS[target]
    x = ca.SX.sym("x", 3)
    plain, other = ca.Function("f", [x], [x * x[0] + ca.sin(x)]), ca.Function("f", [x], [ca.exp(x) + x])
    for function, encoded in ((plain, True), (other, False)):
        modules = write_llvm(read_program(function), (1, 1), "float64", 2, target=arm)
        assert any(text.startswith(ENCODED_MARK) for text in modules) == encoded
    for width in (4, 8):  # a value in several registers
        modules = write_llvm(read_program(plain), (1, 1), "float64", width, target=arm)
        assert not any(text.startswith(ENCODED_MARK) for text in modules)
    modules = write_llvm(read_program(plain), (1, 1), "float64", 4, target=TARGETS["AVX2"])
    assert not any(text.startswith(ENCODED_MARK) for text in modules)


# The operation, its arguments, and the LLVM function of which it is the first instruction.
RULES = [
    (ca.OP_ADD, 2, "fadd {v} %a, %b"),
    (ca.OP_SUB, 2, "fsub {v} %a, %b"),
    (ca.OP_MUL, 2, "fmul {v} %a, %b"),
    (ca.OP_DIV, 2, "fdiv {v} %a, %b"),
    (ca.OP_SQ, 1, "fmul {v} %a, %a"),
    (ca.OP_TWICE, 1, "fadd {v} %a, %a"),
    (ca.OP_NEG, 1, "fneg {v} %a"),
    (ca.OP_FABS, 1, "call {v} @llvm.fabs.{s}({v} %a)"),
    (ca.OP_SQRT, 1, "call {v} @llvm.sqrt.{s}({v} %a)"),
    (ca.OP_FLOOR, 1, "call {v} @llvm.floor.{s}({v} %a)"),
    (ca.OP_CEIL, 1, "call {v} @llvm.ceil.{s}({v} %a)"),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("code", "count", "text"), RULES, ids=[text.split("(")[0] for _, _, text in RULES])
def test_instructions_are_those_of_llvm(code, count, text, dtype):
    scalar = Scalar(dtype)
    lanes = 16 // scalar.size
    vector, suffix = f"<{lanes} x {scalar.name}>", f"v{lanes}f{8 * scalar.size}"
    instruction = text.format(v=vector, s=suffix)
    name = instruction.partition("@")[2].partition("(")[0]
    declared = f"declare {vector} @{name}({vector})\n" if name else ""
    head = f"define {vector} @f({', '.join(f'{vector} %{each}' for each in 'ab'[:count])})"
    module = f"{declared}{head} {{\n  %r = {instruction}\n  ret {vector} %r\n}}\n"
    piece = NeonPiece(program(), scalar, {}, 0)
    piece._free = [0]  # LLVM returns the result in the register of the first argument
    assert piece.compute(code, 0.0, list(range(count)), False) == 0
    assert piece._words == first_words(module, 1)


def test_fused_products_are_those_of_llvm():
    # c is the first argument, so that the sum is in the right register
    head = "declare {v} @llvm.fma.v2f64({v}, {v}, {v})\ndefine {v} @f({v} %c, {v} %a, {v} %b) {{\n"
    ends = "  %r = call {v} @llvm.fma.v2f64({v} {a}, {v} %b, {v} %c)\n  ret {v} %r\n}}\n"
    vector = "<2 x double>"
    for code, before, a in ((PLUS, "", "%a"), (FROM, "  %n = fneg {v} %a\n", "%n")):
        piece = NeonPiece(program(), Scalar("float64"), {}, 0)
        assert piece.compute(code, 0.0, [2, 1, 0], True) == 0
        assert piece._words == first_words((head + before + ends).format(v=vector, a=a), 1)
    piece = NeonPiece(program(), Scalar("float64"), {}, 0)
    piece._free = [7]
    assert piece.compute(MINUS, 0.0, [1, 2, 0], True) == 7  # the register of c must not be negated for others
    assert len(piece._words) == 2


def test_loads_stores_and_far_blocks_are_those_of_llvm():
    piece = NeonPiece(program(), Scalar("float64"), {}, 0)
    piece._free = [0]
    assert piece._load(("%in", 3)) == 0
    piece.store(0, ("%out", 4095))
    body = "define void @f(ptr %in, ptr %out) {\n  %p = getelementptr i8, ptr %in, i64 48\n"
    body += "  %q = getelementptr i8, ptr %out, i64 65520\n  %x = load <2 x double>, ptr %p, align 16\n"
    assert piece._words == first_words(body + "  store <2 x double> %x, ptr %q, align 16\n  ret void\n}\n", 2)
    far = NeonPiece(program(), Scalar("float64"), {}, 0)
    far.store(0, ("%in", 3 * 4096 + 2))
    address = "define ptr @f(ptr %in) {\n  %p = getelementptr i8, ptr %in, i64 196608\n  ret ptr %p\n}\n"
    assert far._words[0] == first_words(address, 1)[0] + 9  # in x9, where LLVM returns it in x0
    assert far._words[1] == neon._STR | 2 << 10 | 9 << 5


def program() -> Program:
    return Program("nothing", (Operation(ca.OP_CONST, (), 1.0),), (), (), ())


def first_words(module: str, count: int) -> list[int]:
    found = llvm.ObjectFileRef.from_data(TARGETS["NEON"].objects([module])[0])
    text = next(each.data() for each in found.sections() if each.is_text() and each.size())
    return [int(word) for word in np.frombuffer(text, "<u4")[:count]]


@on_arm
def test_blocks_far_from_the_beginning_are_reached(monkeypatch):
    monkeypatch.setenv("TORSOR_CACHE", "off")
    monkeypatch.setattr(neon, "_SHORT_REACH", neon._PAGE)
    count = neon._PAGE * (len(neon._FAR_POINTERS) + 1) + 5  # more windows than pointers, of inputs and of outputs
    x = ca.SX.sym("x", count)
    kernel = torsor.compile(ca.Function("far", [x], [3.0 - x[::-1]]))
    values = np.random.default_rng(3).normal(size=count)
    assert np.array_equal(kernel(values), 3.0 - values[::-1])


@on_arm
def test_constants_are_found_behind_long_code(monkeypatch):
    monkeypatch.setenv("TORSOR_CACHE", "off")
    count = 5000
    x = ca.SX.sym("x", 2)
    function = ca.Function("same", [x], [ca.repmat(0.3 * x[0], count, 1), ca.repmat(x[1] - 0.7, count, 1)])
    usual = torsor.compile(function)(np.array([1.5, 2.5]))
    monkeypatch.setattr(neon, "_LONG", count)
    long = torsor.compile(function)(np.array([1.5, 2.5]))
    for one, other, number in zip(usual, long, (0.3 * 1.5, 2.5 - 0.7), strict=True):
        assert (one == number).all()
        assert (other == number).all()

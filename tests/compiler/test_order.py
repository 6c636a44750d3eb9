"""The order of operations: fewer live values, each operation once and after its arguments, and the same bits."""

import casadi as ca
import numpy as np
import pytest

import torsor
from robots import robot_file
from torsor.compiler import read_program
from torsor.compiler.order import alive, ordered
from torsor.compiler.program import Program

FUNCTIONS = {
    name: torsor.library.six_axis_arm().function(name)
    for name in ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "mass_matrix", "poses")
}
_BINARY = {ca.OP_ADD: np.add, ca.OP_SUB: np.subtract, ca.OP_MUL: np.multiply, ca.OP_DIV: np.divide}
_UNARY = {ca.OP_SIN: np.sin, ca.OP_COS: np.cos, ca.OP_NEG: np.negative, ca.OP_SQ: np.square, ca.OP_SQRT: np.sqrt}
_UNARY |= {ca.OP_SIGN: np.sign, ca.OP_TWICE: lambda x: x + x, ca.OP_INV: lambda x: 1 / x}


def evaluate(program: Program, inputs: list[np.ndarray]) -> list[float]:
    """Return the results, operation by operation; a value that is not known yet is a KeyError."""
    values: dict[int, float] = {}
    for index, (code, arguments, number) in enumerate(program.operations):
        if code == ca.OP_INPUT:
            values[index] = inputs[arguments[0]][arguments[1]]
        elif code == ca.OP_CONST:
            values[index] = number
        else:
            values[index] = (_BINARY | _UNARY)[code](*(values[each] for each in arguments))
    return [0.0 if each is None else values[each] for result in program.results for each in result]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_order_changes_no_bit_and_needs_no_more_values(name: str) -> None:
    program = read_program(FUNCTIONS[name])
    other = ordered(program)
    assert sorted(each.code for each in other.operations) == sorted(each.code for each in program.operations)
    assert alive(other) <= alive(program)
    inputs = [np.random.default_rng(k).normal(size=rows) for k, (rows, _) in enumerate(program.inputs)]
    assert evaluate(other, inputs) == evaluate(program, inputs)


def test_fewer_values_are_alive() -> None:
    arm = torsor.load(robot_file("ur5_robot.urdf"))
    for name, most in (("inverse_dynamics", 44), ("forward_dynamics", 46), ("inverse_dynamics_derivatives", 150)):
        assert alive(ordered(read_program(arm.function(name)))) <= most


def test_random_graphs_keep_their_results() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = ca.SX.sym("x", 5)
        values = [x[k] for k in range(5)]
        for _ in range(60):
            a, b = (values[k] for k in rng.integers(len(values), size=2))
            values.append([a + b, a * b, a - b, ca.sin(a), ca.cos(a)][rng.integers(5)])
        outputs = [values[k] for k in rng.integers(len(values), size=8)]
        program = read_program(ca.Function("f", [x], [ca.vertcat(*outputs, x[0], 3.0)]))
        other, given = ordered(program), [rng.normal(size=5)]
        assert evaluate(other, given) == evaluate(program, given)


def test_inputs_come_just_before_their_first_use() -> None:
    x = ca.SX.sym("x", 50)
    program = ordered(read_program(ca.Function("f", [x], [ca.sum1(x)])))
    assert alive(program) == 2

"""CasADi functions at complex numbers, instruction by instruction: derivatives by complex steps, exact to rounding.

A function of complex numbers that is analytic has f(x + ih) = f(x) + ih f'(x) but for h^2, which is nothing at 1e-30.
"""

import casadi as ca
import numpy as np

STEP = 1e-30
ONE = {
    ca.OP_ASSIGN: lambda a: a,
    ca.OP_NEG: np.negative,
    ca.OP_SQ: np.square,
    ca.OP_TWICE: lambda a: 2 * a,
    ca.OP_INV: lambda a: 1 / a,
    ca.OP_SIN: np.sin,
    ca.OP_COS: np.cos,
    ca.OP_TAN: np.tan,
    ca.OP_SQRT: np.sqrt,
    ca.OP_EXP: np.exp,
    ca.OP_TANH: np.tanh,
    ca.OP_LOG1P: lambda a: np.log(1 + a),  # NumPy's own is inexact at complex numbers with tiny imaginary parts
    ca.OP_NOT: lambda a: a.real == 0,
}
# Comparisons, and what chooses by them, look at the real parts: they are analytic away from the border.
TWO = {
    ca.OP_ADD: np.add,
    ca.OP_SUB: np.subtract,
    ca.OP_MUL: np.multiply,
    ca.OP_DIV: np.divide,
    ca.OP_FMIN: lambda a, b: np.where(a.real <= b.real, a, b),
    ca.OP_FMAX: lambda a, b: np.where(a.real >= b.real, a, b),
    ca.OP_LT: lambda a, b: a.real < b.real,
    ca.OP_LE: lambda a, b: a.real <= b.real,
    ca.OP_EQ: lambda a, b: a.real == b.real,
    ca.OP_IF_ELSE_ZERO: lambda a, b: np.where(a.real != 0, b, 0),
}


def at_complex(function: ca.Function, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs, each (entries, K), of inputs (entries, K) that may be complex: K at once."""
    count = inputs[0].shape[1]
    work = np.zeros((function.sz_w(), count), dtype=complex)
    outputs = [np.zeros((function.numel_out(k), count), dtype=complex) for k in range(function.n_out())]
    for k in range(function.n_instructions()):
        operation, to, of = function.instruction_id(k), function.instruction_output(k), function.instruction_input(k)
        if operation == ca.OP_CONST:
            work[to[0]] = function.instruction_constant(k)
        elif operation == ca.OP_INPUT:
            work[to[0]] = inputs[of[0]][of[1]]
        elif operation == ca.OP_OUTPUT:
            outputs[to[0]][to[1]] = work[of[0]]
        elif operation in ONE:
            work[to[0]] = ONE[operation](work[of[0]])
        else:
            work[to[0]] = TWO[operation](work[of[0]], work[of[1]])
    return outputs


def slopes_along(function: ca.Function, inputs: list[np.ndarray], directions: list[np.ndarray]) -> list[np.ndarray]:
    """Return the derivatives of all outputs (entries, K) along K directions, (entries of an input, K) each."""
    moved = [each.reshape(-1, 1) + 1j * STEP * way for each, way in zip(inputs, directions, strict=True)]
    return [each.imag / STEP for each in at_complex(function, moved)]

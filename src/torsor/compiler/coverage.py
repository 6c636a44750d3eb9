"""Which operations a target must know: a function that has every one, and a check of a target's table against it.

A target has a table with one rule for each CasADi operation. ``uncovered`` says what a table lacks; the tests of each
target export ``every_operation`` and compare all of its outputs with CasADi's virtual machine.
"""

import math
from collections.abc import Collection

import casadi as ca

_ONE = """
acos acosh asin asinh atan atanh ceil cos cosh erf erfinv exp expm1 fabs floor log log1p sign sin sinh sqrt tan tanh
"""
_TWO = "atan2 copysign fmax fmin fmod hypot remainder"
_PLAIN = {ca.OP_INPUT, ca.OP_CONST, ca.OP_OUTPUT}  # the list itself, not operations


def every_operation() -> ca.Function:
    """Return a function of x and y with one output for each operation, and one with numbers that are hard to write.

    Example:
        >>> every = every_operation()
        >>> every.name_out()[:3], every.size_out("numbers")
        (['op_acos', 'op_acosh', 'op_asin'], (13, 1))
    """
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    results = {f"op_{name}": getattr(ca, name)(x) for name in _ONE.split()}
    results |= {f"op_{name}": getattr(ca, name)(x, y) for name in _TWO.split()}
    results |= {"op_add": x + y, "op_sub": x - y, "op_mul": x * y, "op_div": x / y, "op_neg": -x, "op_sq": x * x}
    results |= {"op_twice": 2 * x, "op_inv": 1 / x, "op_pow": x**y, "op_constpow": x**2.5}
    results |= {"op_lt": x < y, "op_le": x <= y, "op_eq": ca.eq(x, y), "op_ne": ca.ne(x, y)}
    results |= {"op_not": ca.logic_not(x), "op_and": ca.logic_and(x, y), "op_or": ca.logic_or(x, y)}
    results |= {"op_if_else_zero": ca.if_else(x, y, 0), "op_if_else": ca.if_else(x, y, x * 3)}
    numbers = [0.1, -0.1, 1e-310, 1e300, 1 / 3, 0.25, 123456789.125, math.inf, -math.inf, math.nan, -0.0, 5e-324]
    results["numbers"] = ca.vertcat(*numbers, x)
    return ca.Function("every", [x, y], list(results.values()), ["x", "y"], list(results))


def operations_of(function: ca.Function) -> set[int]:
    """Return the codes of the operations in a function of SX."""
    return {function.instruction_id(k) for k in range(function.n_instructions())} - _PLAIN


def operation_name(code: int) -> str:
    """Return CasADi's name of an operation.

    Example:
        >>> operation_name(ca.OP_MUL)
        'OP_MUL'
    """
    return next((each for each in dir(ca) if each.startswith("OP_") and getattr(ca, each) == code), str(code))


def no_rule(title: str, code: int) -> str:
    """Return the message of an operation that a target does not know, with what to do about it.

    Example:
        >>> print(no_rule("f", ca.OP_PRINTME))
        f: no rule for CasADi's operation OP_PRINTME; allowed: the operations in the table of rules; fix: leave \
printme out
    """
    found, allowed = f"no rule for CasADi's operation {operation_name(code)}", "the operations in the table of rules"
    return f"{title}: {found}; allowed: {allowed}; fix: {_fix(code)}"


def _fix(code: int) -> str:
    if code == ca.OP_CALL:
        return "make the function that it calls without never_inline, so that its operations are copied into this one"
    return "leave printme out" if code == ca.OP_PRINTME else "write a rule for it, or the function without it"


def uncovered(rules: Collection[int]) -> list[str]:
    """Return the names of the operations that have no rule in a table, in alphabetical order.

    CasADi drops ``OP_ASSIGN`` and ``OP_LIFT`` from functions of SX, but other code may keep them: they count too.

    Example:
        >>> uncovered({*operations_of(every_operation()), ca.OP_ASSIGN, ca.OP_LIFT} - {ca.OP_MUL, ca.OP_SIN})
        ['OP_MUL', 'OP_SIN']
    """
    needed = operations_of(every_operation()) | {ca.OP_ASSIGN, ca.OP_LIFT}
    return sorted(map(operation_name, needed - set(rules)))


def in_scalars(title: str, function: ca.Function, rules: Collection[int]) -> ca.Function:
    """Return a function in scalar operations, or raise an error if one of them has no rule in the table."""
    if function.has_free():
        found = ", ".join(map(str, function.get_free()))
        raise ValueError(f"{title}: free variables {found}; allowed: none; fix: make them inputs of the function")
    try:
        function = function if function.is_a("SXFunction") else function.expand()
    except RuntimeError as error:
        found = "does not expand to scalar operations; allowed: functions of SX, or that expand to SX"
        raise ValueError(f"{title}: {found}; fix: build it from SX") from error
    for code in sorted(operations_of(function) - set(rules)):
        raise ValueError(no_rule(title, code))
    return function

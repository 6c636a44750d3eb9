"""Joint springs, and motors with rotor inertia, a gear and, in elastic joints, a spring at the gear output."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from reprlib import repr as short
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.checks import MAX_NUMBER, direction, name_of, number
from torsor.base.errors import ModelError, warn
from torsor.mechanism.part import Part

# Nonlinear stiffnesses, which are functions of the deflection x, and friction models, which are functions of the
# velocity v, are stored as text so that they can be compared and saved.
#
# Examples are ``"100 + 500 * x**2"`` and ``"0.4 * sign(v) * exp(-(v / 0.1)**2)"``. A stiffness may be a CasADi
# expression of one symbol, which is converted to text. The parser allows only arithmetic and the functions below, so
# files from unknown sources are safe.

PANELS = 12  # panels of the quadrature in energy_at
MAX_FUNCTION_LENGTH = 2000  # characters in a function; this also limits the recursion of the parser

_NAMES = ("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")  # as in CasADi
_UNARY: dict[str, Callable[[Any], Any]] = {name: getattr(ca, name) for name in _NAMES} | {"abs": ca.fabs}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {"fmin": ca.fmin, "fmax": ca.fmax}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_ALLOWED = f"numbers, x, + - * / **, {', '.join([*_UNARY, *_BINARY])}"
_FRICTION_ALLOWED = _ALLOWED.replace(" x,", " v,") + ", sign"
_PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, ZeroDivisionError, TypeError)
# Text of each CasADi operation.
_TEXTS: dict[int, str] = {
    ca.OP_ADD: "({} + {})",
    ca.OP_SUB: "({} - {})",
    ca.OP_MUL: "({} * {})",
    ca.OP_DIV: "({} / {})",
    ca.OP_POW: "({} ** {})",
    ca.OP_CONSTPOW: "({} ** {})",
    ca.OP_NEG: "(-{})",
    ca.OP_SQ: "({} ** 2)",
    ca.OP_TWICE: "(2 * {})",
    ca.OP_INV: "(1 / {})",
    ca.OP_FABS: "abs({})",
    **{getattr(ca, f"OP_{name.upper()}"): f"{name}({{}})" for name in _NAMES},
    **{getattr(ca, f"OP_{name.upper()}"): f"{name}({{}}, {{}})" for name in _BINARY},
}


def checked_stiffness(value: Any, where: str) -> float | str:
    """Return a stiffness as a number of 0 or more, or as text that defines a function of the deflection x."""
    if isinstance(value, (ca.SX, str)):
        text = value if isinstance(value, str) else _as_text(value, where)
        if len(text) > MAX_FUNCTION_LENGTH:
            raise ModelError(f"stiffness has {len(text)} characters", where=where, allowed=f"{MAX_FUNCTION_LENGTH}")
        at_rest = float(ca.evalf(stiffness_at(text, ca.SX(0), where)))
        if not (math.isfinite(at_rest) and at_rest >= 0):
            message = f"stiffness {short(text)} is {at_rest} at the deflection 0"
            raise ModelError(message, where=where, allowed="a finite number, 0 or more")
        return text
    return number(value, where, "stiffness", least=0, most=MAX_NUMBER)


def stiffness_at(stiffness: float | str | ca.SX, x: ca.SX, where: str = "spring") -> Any:
    """Return the stiffness at a deflection x; a number is returned unchanged, a function as a CasADi expression."""
    if not isinstance(stiffness, str):
        return stiffness
    try:
        return _evaluate(ast.parse(stiffness.strip(), mode="eval").body, {"x": x}, _UNARY)
    except _PARSE_ERRORS as error:
        message = f"{short(stiffness)} cannot be parsed ({error})"
        raise ModelError(message, argument="stiffness", where=where, allowed=_ALLOWED) from None


def checked_friction(value: Any, where: str) -> str:
    """Return the checked text of a friction force as a function of the velocity v; "" means no friction."""
    if not isinstance(value, str):
        allowed = "text in v, such as '0.4 * sign(v) * exp(-(v / 0.1)**2)'"
        raise ModelError(argument="friction_model", value=value, where=where, allowed=allowed)
    if len(value) > MAX_FUNCTION_LENGTH:
        message = f"has {len(value)} characters"
        raise ModelError(message, argument="friction_model", where=where, allowed=f"{MAX_FUNCTION_LENGTH}")
    for v in (0.0, 1.0, -1.0) if value else ():
        force = float(ca.evalf(ca.SX(friction_at(value, ca.SX(v), 0.0, where))))
        if not math.isfinite(force):
            message = f"{short(value)} is {force} at v = {v:g}"
            raise ModelError(message, argument="friction_model", where=where, allowed="finite forces")
    return value


def friction_at(model: str, v: ca.SX, smooth: float = 0.0, where: str = "friction") -> Any:
    """Return a model's friction force at velocity v; if ``smooth`` is not 0, tanh(v / smooth) replaces sign(v)."""
    sign = (lambda s: ca.tanh(s / smooth)) if smooth else ca.sign
    try:
        return _evaluate(ast.parse(model.strip(), mode="eval").body, {"v": v}, _UNARY | {"sign": sign})
    except _PARSE_ERRORS as error:
        message = f"{short(model)} cannot be parsed ({error})"
        raise ModelError(message, argument="friction_model", where=where, allowed=_FRICTION_ALLOWED) from None


def _evaluate(node: ast.expr, symbols: Mapping[str, ca.SX], unary: Mapping[str, Callable[[Any], Any]]) -> Any:
    """Return the value of a syntax tree for ``symbols``; raise ValueError for syntax that is not allowed."""
    match node:
        case ast.Constant(value=float() | int() as constant) if not isinstance(constant, bool):
            return ca.SX(float(constant))
        case ast.Name(id=name) if name in symbols:
            return symbols[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, symbols, unary)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](*(_evaluate(item, symbols, unary) for item in (left, right)))
        case ast.Call(func=ast.Name(id=name), args=[one], keywords=[]) if name in unary:
            return unary[name](_evaluate(one, symbols, unary))
        case ast.Call(func=ast.Name(id=name), args=[one, two], keywords=[]) if name in _BINARY:
            return _BINARY[name](*(_evaluate(item, symbols, unary) for item in (one, two)))
    raise ValueError(f"{ast.unparse(node)!r} is not allowed")


def _as_text(expression: ca.SX, where: str) -> str:
    """Return a CasADi expression of one symbol as text in x."""
    symbols = ca.symvar(expression)
    if expression.shape != (1, 1) or len(symbols) > 1:
        message = f"stiffness has the shape {expression.shape} and the symbols {symbols}"
        raise ModelError(message, where=where, allowed="one expression of one symbol, the deflection")
    function = ca.Function("law", symbols or [ca.SX.sym("x")], [expression])
    texts: dict[int, str] = {}
    result = "0"
    for k in range(function.n_instructions()):
        code = function.instruction_id(k)
        arguments = [texts.get(i, "") for i in function.instruction_input(k)]
        if code == ca.OP_OUTPUT:
            result = arguments[0]
            continue
        if code == ca.OP_CONST:
            text = repr(float(function.instruction_constant(k))).removesuffix(".0")
        elif code == ca.OP_INPUT:
            text = "x"
        elif code in _TEXTS:
            text = _TEXTS[code].format(*arguments)
        else:
            raise ModelError(f"stiffness {expression} contains an unsupported operation", where=where, allowed=_ALLOWED)
        texts[function.instruction_output(k)[0]] = text
        if len(text) > MAX_FUNCTION_LENGTH:
            raise ModelError("stiffness is too long", where=where, allowed=f"{MAX_FUNCTION_LENGTH} characters")
    return result


def energy_at(stiffness: float | str | ca.SX, x: ca.SX) -> Any:
    """Return the energy (J) of a spring at the deflection x: the integral of K(s) s from 0 to x.

    A function K is integrated numerically. The result is exact for polynomials up to degree 10, and has a relative
    error of about 1e-4 if K has kinks.
    """
    if not isinstance(stiffness, str):
        return 0.5 * stiffness * x**2
    # Gauss-Legendre with 6 nodes per panel integrates K(s) s exactly for K up to degree 10; panels handle kinks.
    nodes, weights = np.polynomial.legendre.leggauss(6)
    points = (np.arange(PANELS)[:, None] + (nodes + 1) / 2) / PANELS
    weights = np.broadcast_to(weights / 2 / PANELS, points.shape)
    pairs = zip(points.ravel().tolist(), weights.ravel().tolist(), strict=True)
    return x**2 * sum(w * s * stiffness_at(stiffness, s * x) for s, w in pairs)


@dataclass(frozen=True, eq=False)
class Spring(Part):
    """A spring on a joint: its force is -(K(x) x + D x'), where x is the deflection of the joint from ``rest``.

    ``stiffness`` K (N m/rad or N/m) is a number or a function of x: a CasADi expression of one symbol, or text in x.
    ``damping`` D is in N m s/rad or N s/m, and ``rest`` is in rad or m.

    Example:
        >>> Spring(stiffness="100 + 500 * x**2", rest=0.5).rest
        0.5
    """

    stiffness: float | str
    damping: float = 0.0
    rest: float = 0.0
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        where = self.source or "spring"
        stiffness = checked_stiffness(self.stiffness, where)
        damping = number(self.damping, where, "damping", least=0, most=MAX_NUMBER)
        rest = number(self.rest, where, "rest", least=-MAX_NUMBER, most=MAX_NUMBER)
        self._set(stiffness=stiffness, damping=damping, rest=rest)


@dataclass(frozen=True, eq=False)
class Motor(Part):
    """A motor that drives a joint: its rotor, on the link ``carrier``, spins ``ratio`` times as fast as the joint.

    ``inertia`` (kg m^2) is the inertia of the rotor about its spin axis. Its mass, and its inertia when it does not
    spin, are part of the carrier. ``axis`` is in the carrier's axes. A ``stiffness`` K (as in ``Spring``) makes the
    joint elastic: the rotor has its own coordinate, the motor angle theta at the gear output, and the spring drives the
    joint with K(x) x + D x', where x = theta - q and D is the ``damping``. ``coulomb``, ``viscous`` and ``smooth``
    define motor friction at the gear output.

    Example:
        >>> Motor("upper_arm", inertia=4e-4, ratio=100.0, stiffness=1e4).is_elastic
        True
    """

    carrier: str
    inertia: float
    ratio: float = 1.0
    axis: NDArray[np.float64] = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    stiffness: float | str | None = None
    damping: float = 0.0
    coulomb: float = 0.0
    viscous: float = 0.0
    smooth: float = 0.0
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        name_of(self.carrier, "carrier of a motor", self.source)
        where = self.source or f"motor on {self.carrier!r}"
        names = ("inertia", "damping", "coulomb", "viscous", "smooth")
        values: dict[str, Any] = {n: number(getattr(self, n), where, n, least=0, most=MAX_NUMBER) for n in names}
        ratio = number(self.ratio, where, "ratio", least=-MAX_NUMBER, most=MAX_NUMBER)
        self._set(axis=direction(self.axis, where, "axis"), ratio=ratio, **values)
        if abs(self.ratio) < 1 / MAX_NUMBER:
            message = f"is {self.ratio:g}, so the motor would not drive its joint"
            allowed = f"other numbers, from {1 / MAX_NUMBER:g} in size"
            fix = "pass the number of rotor turns per turn of the joint"
            raise ModelError(message, argument="ratio", where=where, allowed=allowed, fix=fix)
        if self.stiffness is None:
            if self.damping:
                fix = "give a stiffness, or use viscous"
                raise ModelError("needs a spring in the transmission", argument="damping", where=where, fix=fix)
            return
        self._set(stiffness=checked_stiffness(self.stiffness, where))
        if not (self.stiffness and self.inertia):
            message = f"an elastic joint has stiffness {self.stiffness} and inertia {self.inertia}"
            raise ModelError(message, where=where, allowed="values other than 0")

    @property
    def is_elastic(self) -> bool:
        """Whether a spring connects the motor to the joint."""
        return self.stiffness is not None

    def warn_if_too_heavy(self, joint: str, inertia: NDArray[np.float64]) -> None:
        """Warn if the rotor's inertia is larger than the carrier's ``inertia`` (3 x 3, about its centre of mass)."""
        whole = float(self.axis @ inertia @ self.axis)
        if self.inertia > whole * (1 + 1e-9):
            message = f"the rotor of {joint!r} has {self.inertia:.3g} kg m^2 about its axis"
            message += f", but the whole carrier has {whole:.3g}"
            fix = f"add the motor to {self.carrier!r}: with_motor(..., mass=, place=, moments=), or robot.with_payload"
            warn(message, allowed="no more than the carrier", fix=fix)


def saturated_force(tau: ca.SX, limit: NDArray[np.float64]) -> ca.SX:
    """Return forces (n x 1) clipped to -limit and limit (n,), where inf means no limit; NaN remains NaN.

    CasADi's minimum and maximum, like those of C, would turn NaN into the force limit.
    """
    result = [tau[k] for k in range(tau.numel())]
    for k, most in enumerate(limit):
        if np.isfinite(most):
            result[k] = ca.if_else(tau[k] > most, most, ca.if_else(tau[k] < -most, -most, tau[k]))
    return ca.vertcat(ca.SX.zeros(0, 1), *result)

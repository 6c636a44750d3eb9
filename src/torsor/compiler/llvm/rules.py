"""One rule for each CasADi operation: its LLVM instructions on vectors of W states.

A rule is a function of the ``Emitter`` and the names of the argument values; it returns the name of the result. The
CasADi virtual machine defines every operation. Elementary functions other than sin and cos are in ``elementary.py``.
"""

import struct
from collections.abc import Callable

import casadi as ca


class Scalar:
    """A floating-point type: its LLVM name, its size, and the constants of sin and cos in its precision."""

    def __init__(self, dtype: str):
        self.dtype = dtype
        double = dtype == "float64"
        self.name, self.size = ("double", 8) if double else ("float", 4)
        self.integer = f"i{8 * self.size}"
        # Adding 1.5 * 2^(digits - 1) to a number rounds it to a whole one, whose low bits are those of the sum.
        self.rounder = 1.5 * 2.0**52 if double else 1.5 * 2.0**23
        # pi/2 as a sum of three numbers, each rounded to the type: the range reduction of Cody and Waite. With fused
        # products the first difference is exact, so the reduced angle is accurate to its last digits up to the largest
        # angle.
        self.half_pi = (
            (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
            if double
            else (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
        )
        self.largest_angle = 2.0**30 if double else 2.0**17
        # Minimax coefficients of (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 in r^2, |r| < pi/4, highest first.
        self.sin_terms = (
            (
                1.5896795700834133e-10,
                -2.5050758116225594e-08,
                2.755731369192518e-06,
                -0.00019841269829807833,
                0.008333333333322414,
                -0.16666666666666632,
            )
            if double
            else (2.71830425895e-6, -0.000198393340866, 0.00833332938359, -0.166666666416)
        )
        self.cos_terms = (
            (
                -1.135964779612939e-11,
                2.087572327309241e-09,
                -2.7557314352331837e-07,
                2.480158728948218e-05,
                -0.0013888888888874124,
                0.0416666666666666,
            )
            if double
            else (2.4438379648e-5, -0.00138873669117, 0.0416666468546)
        )

    def literal(self, number: float) -> str:
        """Return a number as an LLVM literal: the bits of a double that the type represents exactly."""
        if self.dtype == "float32":
            number = struct.unpack("f", struct.pack("f", _to_float32(number)))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def _to_float32(number: float) -> float:
    """Return a number that can be packed as float32: too large numbers become infinite."""
    return float("inf") * (1 if number > 0 else -1) if abs(number) > 3.4028235677973366e38 else number


class Emitter:
    """Writes the instructions of one function; values are vectors of W numbers of one type."""

    def __init__(self, scalar: Scalar, width: int):
        self.scalar, self.width = scalar, width
        self.vector = f"<{width} x {scalar.name}>"
        self.integers = f"<{width} x {scalar.integer}>"
        self.bits = f"<{width} x i1>"
        self.suffix = f"v{width}f{8 * scalar.size}"
        self.lines: list[str] = []
        self.block = "entry"
        self.masks: dict[str, str] = {}  # the bits of each comparison, whose value is 0 or 1
        self.functions: dict[str, str] = {}  # elementary functions that are called, by name, with their code
        self.called: set[tuple[str, int]] = set()  # C library functions, with the number of their arguments
        self._next = 0

    def put(self, instruction: str) -> str:
        """Write ``name = instruction`` and return the name: a number, which LLVM reads faster than a word."""
        name = f"%{self._next}"
        self._next += 1
        self.lines.append(f"  {name} = {instruction}")
        return name

    def constant(self, number: float) -> str:
        """Return a vector with the same number in all lanes."""
        return f"splat ({self.scalar.name} {self.scalar.literal(number)})"

    def integer(self, number: int) -> str:
        """Return a vector with the same integer in all lanes."""
        return f"splat ({self.scalar.integer} {number})"

    def call(self, intrinsic: str, *arguments: str) -> str:
        """Call an LLVM intrinsic on vectors."""
        typed = ", ".join(f"{self.vector} {argument}" for argument in arguments)
        return self.put(f"call {self.vector} @llvm.{intrinsic}.{self.suffix}({typed})")

    def arithmetic(self, operation: str, *arguments: str) -> str:
        """Add, subtract, multiply or divide; LLVM may fuse products and sums."""
        return self.put(f"{operation} contract {self.vector} {', '.join(arguments)}")

    def exact(self, operation: str, a: str, b: str) -> str:
        """Add, subtract, multiply or divide without fusion."""
        return self.put(f"{operation} {self.vector} {a}, {b}")

    def compare(self, condition: str, a: str, b: str) -> str:
        """Return a comparison as bits."""
        return self.put(f"fcmp {condition} {self.vector} {a}, {b}")

    def select(self, mask: str, a: str, b: str) -> str:
        """Return a where the bit is set and b elsewhere."""
        return self.put(f"select {self.bits} {mask}, {self.vector} {a}, {self.vector} {b}")

    def mask(self, value: str) -> str:
        """Return as bits which lanes are not 0."""
        if value not in self.masks:
            self.masks[value] = self.compare("une", value, "zeroinitializer")
        return self.masks[value]

    def truth(self, mask: str) -> str:
        """Return bits as numbers 0 and 1."""
        value = self.put(f"uitofp {self.bits} {mask} to {self.vector}")
        self.masks[value] = mask
        return value

    def polynomial(self, x: str, terms: tuple[float, ...]) -> str:
        """Return a polynomial of x with the coefficients ``terms``, highest power first (Horner's scheme)."""
        value = self.constant(terms[0])
        for term in terms[1:]:
            value = self.call("fma", value, x, self.constant(term))
        return value

    def sin_cos(self, x: str) -> tuple[str, str]:
        """Return sin and cos: range reduction to |r| < pi/4, two polynomials, and the C library for huge angles."""
        s = self.scalar
        turned = self.call("fma", x, self.constant(0.6366197723675814), self.constant(s.rounder))
        quarter = self.put(f"bitcast {self.vector} {turned} to {self.integers}")
        backwards = self.exact("fsub", self.constant(s.rounder), turned)
        r = x
        for part in s.half_pi:
            r = self.call("fma", backwards, self.constant(part), r)
        z = self.exact("fmul", r, r)
        cubic = self.call("fma", self.exact("fmul", z, r), self.polynomial(z, s.sin_terms), r)
        sin_r = self.select(self.compare("oeq", z, "zeroinitializer"), x, cubic)  # keeps -0.0 and tiny angles
        cos_r = self.call("fma", z, self.constant(-0.5), self.constant(1.0))
        cos_r = self.call("fma", self.exact("fmul", z, z), self.polynomial(z, s.cos_terms), cos_r)
        odd = self.put(f"trunc {self.integers} {quarter} to {self.bits}")
        sin = self._flip_sign(self.select(odd, cos_r, sin_r), quarter)
        after = self.put(f"add {self.integers} {quarter}, {self.integer(1)}")
        cos = self._flip_sign(self.select(odd, sin_r, cos_r), after)
        return self._unless_huge(x, sin, cos)

    def _flip_sign(self, value: str, quarter: str) -> str:
        """Return a value with its sign changed in the third and fourth quadrant."""
        second = self.put(f"and {self.integers} {quarter}, {self.integer(2)}")
        sign = self.put(f"shl {self.integers} {second}, {self.integer(8 * self.scalar.size - 2)}")
        bits = self.put(f"bitcast {self.vector} {value} to {self.integers}")
        flipped = self.put(f"xor {self.integers} {bits}, {sign}")
        return self.put(f"bitcast {self.integers} {flipped} to {self.vector}")

    def _unless_huge(self, x: str, sin: str, cos: str) -> tuple[str, str]:
        huge = self.compare("ogt", self.call("fabs", x), self.constant(self.scalar.largest_angle))
        any_huge = self.put(f"call i1 @llvm.vector.reduce.or.v{self.width}i1({self.bits} {huge})")
        label, before = self._next, self.block
        self.lines.append(f"  br i1 {any_huge}, label %slow.{label}, label %done.{label}, !prof !0")
        self.lines.append(f"slow.{label}:")
        # Only lanes with huge angles change: the result of a state must not depend on its neighbours.
        slow_sin = self.select(huge, self.library("sin", x), sin)
        slow_cos = self.select(huge, self.library("cos", x), cos)
        self.lines.append(f"  br label %done.{label}")
        self.lines.append(f"done.{label}:")
        self.block = f"done.{label}"
        either_sin = self.put(f"phi {self.vector} [ {sin}, %{before} ], [ {slow_sin}, %slow.{label} ]")
        either_cos = self.put(f"phi {self.vector} [ {cos}, %{before} ], [ {slow_cos}, %slow.{label} ]")
        return either_sin, either_cos

    def library(self, name: str, *arguments: str) -> str:
        """Call a function of the C library for each lane."""
        self.called.add((name, len(arguments)))
        typed = ", ".join(f"{self.vector} {argument}" for argument in arguments)
        return self.put(f"call {self.vector} @lanes.{name}({typed})")


Rule = Callable[..., str]


def _arithmetic(operation: str) -> Rule:
    return lambda e, a, b: e.arithmetic(operation, a, b)


def _comparison(condition: str) -> Rule:
    return lambda e, a, b: e.truth(e.compare(condition, a, b))


def _logic(operation: str) -> Rule:
    return lambda e, a, b: e.truth(e.put(f"{operation} {e.bits} {e.mask(a)}, {e.mask(b)}"))


def _intrinsic(name: str) -> Rule:
    return lambda e, *arguments: e.call(name, *arguments)


def _not(e: Emitter, a: str) -> str:
    return e.truth(e.put(f"xor {e.bits} {e.mask(a)}, splat (i1 true)"))


def _sign(e: Emitter, a: str) -> str:
    # -1 or 1 with the sign of a; zeros and NaN are returned unchanged.
    signed = e.call("copysign", e.constant(1.0), a)
    return e.select(e.compare("one", a, "zeroinitializer"), signed, a)


def _extreme(condition: str) -> Rule:
    """Return the rule of fmin or fmax: the first of equal numbers; if one is NaN, the other."""

    def rule(e: Emitter, a: str, b: str) -> str:
        first = e.put(f"or {e.bits} {e.compare(condition, a, b)}, {e.compare('uno', b, b)}")
        return e.select(first, a, b)

    return rule


def _if_else_zero(e: Emitter, condition: str, a: str) -> str:
    return e.select(e.mask(condition), a, "zeroinitializer")


# Elementary functions are not in the table. sin and cos: ``code.py`` lets the emitter compute both of an angle at once.
RULES: dict[int, Rule] = {
    ca.OP_ASSIGN: lambda e, a: a,
    ca.OP_LIFT: lambda e, a, b: a,
    ca.OP_ADD: _arithmetic("fadd"),
    ca.OP_SUB: _arithmetic("fsub"),
    ca.OP_MUL: _arithmetic("fmul"),
    ca.OP_DIV: _arithmetic("fdiv"),
    ca.OP_NEG: lambda e, a: e.put(f"fneg {e.vector} {a}"),
    ca.OP_SQ: lambda e, a: e.arithmetic("fmul", a, a),
    ca.OP_TWICE: lambda e, a: e.arithmetic("fadd", a, a),
    ca.OP_INV: lambda e, a: e.arithmetic("fdiv", e.constant(1.0), a),
    ca.OP_SQRT: _intrinsic("sqrt"),
    ca.OP_FABS: _intrinsic("fabs"),
    ca.OP_FLOOR: _intrinsic("floor"),
    ca.OP_CEIL: _intrinsic("ceil"),
    ca.OP_COPYSIGN: _intrinsic("copysign"),
    ca.OP_SIGN: _sign,
    ca.OP_LT: _comparison("olt"),
    ca.OP_LE: _comparison("ole"),
    ca.OP_EQ: _comparison("oeq"),
    ca.OP_NE: _comparison("une"),
    ca.OP_NOT: _not,
    ca.OP_AND: _logic("and"),
    ca.OP_OR: _logic("or"),
    ca.OP_IF_ELSE_ZERO: _if_else_zero,
    ca.OP_FMIN: _extreme("ole"),
    ca.OP_FMAX: _extreme("oge"),
}
"""The rule of each CasADi operation."""

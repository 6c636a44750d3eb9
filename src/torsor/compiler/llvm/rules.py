"""Rules that translate each CasADi operation to LLVM instructions on vectors of W states.

A rule is a function of the ``Emitter`` and the names of the argument values. It returns the name of the result. Every
operation is defined by the CasADi virtual machine. Elementary functions other than sin and cos are in
``elementary.py``.
"""

import math
import struct
from collections.abc import Callable
from typing import Literal

import casadi as ca

# Minimax coefficients of (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 in r^2 for |r| < pi/4, highest power first.
_SIN_TERMS = (
    *(1.5896795700834133e-10, -2.5050758116225594e-08, 2.755731369192518e-06),
    *(-0.00019841269829807833, 0.008333333333322414, -0.16666666666666632),
)
_COS_TERMS = (
    *(-1.135964779612939e-11, 2.087572327309241e-09, -2.7557314352331837e-07),
    *(2.480158728948218e-05, -0.0013888888888874124, 0.0416666666666666),
)


class Scalar:
    """A floating-point type: LLVM name, size, storage format, and constants of sin and cos in its precision.

    ``digits`` is the number of digits after the first, and ``bias`` that of the exponent. ``smallest`` is the smallest
    number with full precision.
    """

    def __init__(self, dtype: str):
        self.dtype = dtype
        double = dtype == "float64"
        self.name, self.size = ("double", 8) if double else ("float", 4)
        self.integer = f"i{8 * self.size}"
        self.digits, self.bias = (52, 1023) if double else (23, 127)
        self.smallest = 2.0 ** (1 - self.bias)
        # Adding 1.5 * 2^digits to a number rounds it to an integer whose low bits are those of the sum.
        self.rounder = 1.5 * 2.0**self.digits
        # pi/2 as a sum of three numbers, each rounded down to the type (range reduction of Cody and Waite). With fused
        # products, the first difference is exact, so the reduced angle is accurate to the last digits up to the largest
        # angle. All three are positive, which preserves the sign of -0.0.
        self.half_pi = (
            (1.5707963267948966, 6.123233995736765e-17, 1.0828566739219139e-32)
            if double
            else (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15)
        )
        self.largest_angle = 2.0**30 if double else 2.0**17
        self.sin_terms = (
            _SIN_TERMS if double else (2.71830425895e-6, -0.000198393340866, 0.00833332938359, -0.166666666416)
        )
        self.cos_terms = _COS_TERMS if double else (2.4438379648e-5, -0.00138873669117, 0.0416666468546)

    def bits(self, number: float) -> int:
        """Return the bit pattern of a number in this type, as an integer."""
        kinds = "dQ" if self.dtype == "float64" else "fI"
        exact = number if self.dtype == "float64" else _to_float32(number)
        return int(struct.unpack(kinds[1], struct.pack(kinds[0], exact))[0])

    def literal(self, number: float) -> str:
        """Return a number as an LLVM literal, the bits of a double that the type represents exactly."""
        if self.dtype == "float32":
            number = struct.unpack("f", struct.pack("f", _to_float32(number)))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def _to_float32(number: float) -> float:
    """Return a number that can be packed as float32, with overflow to infinity."""
    return float("inf") * (1 if number > 0 else -1) if abs(number) > 3.4028235677973366e38 else number


Constants = Literal["operands", "vectors", "lanes"]
"""How constants reach instructions: as operands, as vectors in a table, or as lanes of vectors if possible."""

_MAX_IMMEDIATE = 4096  # smaller integers take one instruction
MAX_REUSE_DISTANCE = 40  # maximum number of instructions between two uses of a constant that share one load


def _is_immediate(number: float) -> bool:
    """Return whether AArch64 can create the number in one instruction: 0, or n / 16 * 2^e with small n and e."""
    mantissa, exponent = math.frexp(abs(number)) if math.isfinite(number) else (0.1, 0)
    return number == 0 or (-2 <= exponent <= 5 and (mantissa * 32).is_integer())


class Emitter:
    """Emitter of the instructions of one function, whose values are vectors of W numbers of one type."""

    def __init__(self, scalar: Scalar, width: int, constants: Constants = "operands", table: str = "@numbers"):
        self.scalar, self.width = scalar, width
        self.constants, self._table = constants, table
        self.table: list[list[int]] = []  # loaded constants, as bits of each lane
        # The name and last use of each loaded constant; constants of products share vectors.
        self._recent: dict[tuple[str, int], tuple[str, int]] = {}
        self._recent_factors: dict[int, tuple[str, int]] = {}
        self._shared: list[int] = []
        self._shared_since, self._shared_name = -MAX_REUSE_DISTANCE, ""
        self.vector = f"<{width} x {scalar.name}>"
        self.integers = f"<{width} x {scalar.integer}>"
        self.bits = f"<{width} x i1>"
        self.suffix = f"v{width}f{8 * scalar.size}"
        self.lines: list[str] = []
        self.load_flags, self.prefix, self.may_fuse = "", "", True
        self.block = "entry"  # current block
        self.masks: dict[str, str] = {}  # bits of each comparison, whose value is 0 or 1
        self.functions: dict[str, str] = {}  # code of the elementary functions in use, by name
        self._next = 0

    def put(self, instruction: str) -> str:
        """Write ``name = instruction`` and return the name, a number, which LLVM parses faster than a word."""
        name = f"%{self.prefix}{self._next}"
        self._next += 1
        self.lines.append(f"  {name} = {instruction}")
        return name

    def constant(self, number: float) -> str:
        """Return a vector with one number in all lanes: an operand, or a table load that nearby uses share."""
        if self.constants == "operands" or _is_immediate(number):
            return f"splat ({self.scalar.name} {self.scalar.literal(number)})"
        return self._recalled(self.vector, self.scalar.bits(number))

    def addend(self, number: float) -> str:
        """Return a constant that is added to a product.

        AArch64 writes the sum to the register of the constant, so each use needs a new register. Unlike register copies
        and immediate numbers, loads do not use the arithmetic units.
        """
        if self.constants != "lanes":
            return self.constant(number)
        return self._entry(self.vector, [self.scalar.bits(number)] * self.width)

    def integer(self, number: int) -> str:
        """Return a vector with the same integer in all lanes."""
        if self.constants == "operands" or abs(number) < _MAX_IMMEDIATE:
            return f"splat ({self.scalar.integer} {number})"
        return self._recalled(self.integers, number)

    def factor(self, number: float) -> str:
        """Return a constant factor of a product, which AArch64 reads from one lane of a vector of constants."""
        if self.constants != "lanes" or _is_immediate(number):
            return self.constant(number)
        bits = self.scalar.bits(number)
        name, last = self._recent_factors.get(bits, ("", -MAX_REUSE_DISTANCE))
        if self._next - last >= MAX_REUSE_DISTANCE:
            if len(self._shared) == self.width or self._next - self._shared_since >= MAX_REUSE_DISTANCE:
                self._shared, self._shared_since = [], self._next
                self._shared_name = self._entry(self.vector, self._shared)
            mask = f"<{self.width} x i32> splat (i32 {len(self._shared)})"
            self._shared.append(bits)
            name = self.put(f"shufflevector {self.vector} {self._shared_name}, {self.vector} poison, {mask}")
        self._recent_factors[bits] = name, self._next
        return name

    def _recalled(self, kind: str, bits: int) -> str:
        """Return a vector with the same bits in all lanes, loaded recently or newly."""
        name, last = self._recent.get((kind, bits), ("", -MAX_REUSE_DISTANCE))
        if self._next - last >= MAX_REUSE_DISTANCE:
            name = self._entry(kind, [bits] * self.width)
        self._recent[kind, bits] = name, self._next
        return name

    def _entry(self, kind: str, lanes: list[int]) -> str:
        """Load a new table entry; lanes may be added to ``lanes`` later."""
        address = self.put(f"getelementptr {self.vector}, ptr {self._table}, i64 {len(self.table)}")
        self.table.append(lanes)
        return self.load(address, kind)

    def numbers(self) -> str:
        """Return the table of constants, which is not declared constant because LLVM would then not load from it."""
        rows = []
        for lanes in self.table:
            padded = lanes + [0] * (self.width - len(lanes))
            rows.append(f"{self.integers} <{', '.join(f'{self.scalar.integer} {bits}' for bits in padded)}>")
        return f"{self._table} = internal global [{len(rows)} x {self.integers}] [{', '.join(rows)}]" if rows else ""

    def load(self, address: str, kind: str = "") -> str:
        """Load a vector of numbers, or a vector of the LLVM type ``kind``."""
        align = self.width * self.scalar.size
        return self.put(f"load {kind or self.vector}, ptr {address}, align {align}{self.load_flags}")

    def store(self, value: str, address: str) -> None:
        """Store a vector."""
        self.lines.append(f"  store {self.vector} {value}, ptr {address}, align {self.width * self.scalar.size}")

    def call(self, intrinsic: str, *arguments: str) -> str:
        """Call an LLVM intrinsic on vectors."""
        typed = ", ".join(f"{self.vector} {argument}" for argument in arguments)
        return self.put(f"call {self.vector} @llvm.{intrinsic}.{self.suffix}({typed})")

    def arithmetic(self, operation: str, *arguments: str) -> str:
        """Add, subtract, multiply or divide; LLVM may fuse products and sums if ``may_fuse``."""
        return self.put(f"{operation}{' contract' * self.may_fuse} {self.vector} {', '.join(arguments)}")

    def exact(self, operation: str, a: str, b: str) -> str:
        """Add, subtract, multiply or divide without fusion."""
        return self.put(f"{operation} {self.vector} {a}, {b}")

    def compare(self, condition: str, a: str, b: str) -> str:
        """Return a comparison as bits, one per lane."""
        return self.put(f"fcmp {condition} {self.vector} {a}, {b}")

    def select(self, mask: str, a: str, b: str) -> str:
        """Return a where the bit is set and b elsewhere."""
        return self.put(f"select {self.bits} {mask}, {self.vector} {a}, {self.vector} {b}")

    def mask(self, value: str) -> str:
        """Return a mask of nonzero lanes."""
        if value not in self.masks:
            self.masks[value] = self.compare("une", value, "zeroinitializer")
        return self.masks[value]

    def truth(self, mask: str) -> str:
        """Return bits as floating-point numbers, 0 or 1."""
        value = self.put(f"uitofp {self.bits} {mask} to {self.vector}")
        self.masks[value] = mask
        return value

    def entry(self, table: str, count: int, index: str) -> str:
        """Return entries of ``table`` (a typed pointer to ``count`` numbers); an index outside it selects the first."""
        above = self.compare("oge", index, "zeroinitializer")
        below = self.compare("olt", index, self.constant(count))
        inside = self.select(self.put(f"and {self.bits} {above}, {below}"), index, "zeroinitializer")
        places = self.put(f"fptosi {self.vector} {inside} to <{self.width} x i32>")
        result, kind = "poison", self.scalar.name
        for lane in range(self.width):
            place = self.put(f"extractelement <{self.width} x i32> {places}, i64 {lane}")
            address = self.put(f"getelementptr {kind}, {table}, i32 {place}")
            pointer = f"{table.rpartition(' ')[0]} {address}"
            number = self.put(f"load {kind}, {pointer}, align {self.scalar.size}, !invariant.load !0")
            result = self.put(f"insertelement {self.vector} {result}, {kind} {number}, i64 {lane}")
        return result

    def polynomial(self, x: str, terms: tuple[float, ...]) -> str:
        """Return a polynomial in x with the coefficients ``terms``, highest power first (Horner's scheme)."""
        value = self.constant(terms[0])
        for term in terms[1:]:
            value = self.call("fma", value, x, self.addend(term))
        return value

    def sin_cos(self, x: str) -> tuple[str, str]:
        """Return sin and cos of angles that are not huge, by range reduction to |r| < pi/4 and two polynomials."""
        s = self.scalar
        turned = self.call("fma", x, self.constant(0.6366197723675814), self.addend(s.rounder))
        quarter = self.put(f"bitcast {self.vector} {turned} to {self.integers}")
        whole = self.exact("fsub", turned, self.constant(s.rounder))
        r = x
        for part in s.half_pi:
            r = self.call("fma", whole, self.constant(-part), r)
        z = self.exact("fmul", r, r)
        cubic = self.call("fma", self.exact("fmul", z, r), self.polynomial(z, s.sin_terms), r)
        sin_r = self.call("copysign", cubic, r)  # preserves -0.0
        cos_r = self.polynomial(z, (*s.cos_terms, -0.5, 1.0))
        # The last bit of the quarter exchanges sine and cosine and changes the sign of the cosine. The bit before it
        # changes both signs.
        odd = self._sign(quarter, 0)
        exchanged = self.put(f"icmp slt {self.integers} {odd}, zeroinitializer")
        turn = self.put(f"and {self.integers} {self._sign(quarter, 1)}, {self.integer(-(1 << (8 * s.size - 1)))}")
        sin = self._flip(self.select(exchanged, cos_r, sin_r), turn)
        cos = self._flip(self.select(exchanged, sin_r, cos_r), self.put(f"xor {self.integers} {odd}, {turn}"))
        return sin, cos

    def _sign(self, integers: str, bit: int) -> str:
        """Return integers shifted so that the bit is the sign bit."""
        return self.put(f"shl {self.integers} {integers}, {self.integer(8 * self.scalar.size - 1 - bit)}")

    def _flip(self, value: str, sign: str) -> str:
        """Return a value with its sign changed where the highest bit of ``sign`` is set; other bits must be 0."""
        bits = self.put(f"bitcast {self.vector} {value} to {self.integers}")
        flipped = self.put(f"xor {self.integers} {bits}, {sign}")
        return self.put(f"bitcast {self.integers} {flipped} to {self.vector}")

    def is_huge(self, x: str) -> str:
        """Return the bits of the angles that are too large for ``sin_cos``."""
        return self.compare("ogt", self.call("fabs", x), self.constant(self.scalar.largest_angle))


Rule = Callable[..., str]


def _arithmetic(operation: str) -> Rule:
    return lambda e, a, b: e.arithmetic(operation, a, b)


def _comparison(condition: str) -> Rule:
    return lambda e, a, b: e.truth(e.compare(condition, a, b))


def _logic(operation: str) -> Rule:
    return lambda e, a, b: e.truth(e.put(f"{operation} {e.bits} {e.mask(a)}, {e.mask(b)}"))


def _intrinsic(name: str) -> Rule:
    return lambda e, *arguments: e.call(name, *arguments)


def _sign(e: Emitter, a: str) -> str:
    # The result is -1 or 1 with the sign of a; zeros and NaN are returned unchanged.
    signed = e.call("copysign", e.constant(1.0), a)
    return e.select(e.compare("one", a, "zeroinitializer"), signed, a)


def _extreme(condition: str) -> Rule:
    """Return the rule for fmin or fmax: of equal numbers, the first, and if one number is NaN, the other."""

    def rule(e: Emitter, a: str, b: str) -> str:
        first = e.put(f"or {e.bits} {e.compare(condition, a, b)}, {e.compare('uno', b, b)}")
        return e.select(first, a, b)

    return rule


# The table does not include sin and cos (``angles.py``) and other elementary functions (``elementary.py``).
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
    ca.OP_NOT: lambda e, a: e.truth(e.put(f"xor {e.bits} {e.mask(a)}, splat (i1 true)")),
    ca.OP_AND: _logic("and"),
    ca.OP_OR: _logic("or"),
    ca.OP_IF_ELSE_ZERO: lambda e, condition, a: e.select(e.mask(condition), a, "zeroinitializer"),
    ca.OP_FMIN: _extreme("ole"),
    ca.OP_FMAX: _extreme("oge"),
}
"""The rule of each CasADi operation."""

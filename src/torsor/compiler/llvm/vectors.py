"""Vectors of an LLVM function as Python objects, with which elementary functions are written like formulas.

``x * y + 1`` writes a product and a sum, each rounded once and never fused. With ``fma`` for explicit fusion, an
algorithm returns the same bits on every processor and for every width. Comparisons return masks, from which ``where``
selects. There are no branches, so lanes are computed independently.
"""

from collections.abc import Callable, Sequence

from torsor.compiler.llvm.rules import Emitter, Scalar


class _Value:
    """A named vector of an emitter."""

    __slots__ = ("emitter", "name")

    def __init__(self, emitter: Emitter, name: str):
        self.emitter, self.name = emitter, name

    @property
    def dtype(self) -> str:
        """The name of the type of the emitter's numbers."""
        return self.emitter.scalar.dtype

    @property
    def scalar(self) -> Scalar:
        """The type of the emitter's numbers."""
        return self.emitter.scalar


def _of_bits(operation: str) -> Callable[["Mask", "Mask"], "Mask"]:
    return lambda a, b: a._with(operation, b.name)


class Mask(_Value):
    """A vector of bits."""

    __slots__ = ()

    def _with(self, operation: str, name: str) -> "Mask":
        return Mask(self.emitter, self.emitter.put(f"{operation} {self.emitter.bits} {self.name}, {name}"))

    __and__, __or__, __xor__ = map(_of_bits, ("and", "or", "xor"))

    def __invert__(self) -> "Mask":
        return self._with("xor", "splat (i1 true)")


def _of_integers(operation: str) -> Callable[["Whole", "Whole | int"], "Whole"]:
    return lambda a, b: a._with(operation, b)


class Whole(_Value):
    """A vector of integers as wide as the numbers; right shifts fill with zeros."""

    __slots__ = ()

    def _with(self, operation: str, other: "Whole | int") -> "Whole":
        e = self.emitter
        name = e.integer(other) if isinstance(other, int) else other.name
        return Whole(e, e.put(f"{operation} {e.integers} {self.name}, {name}"))

    __add__, __sub__, __and__, __or__, __xor__ = map(_of_integers, ("add", "sub", "and", "or", "xor"))
    __lshift__, __rshift__ = _of_integers("shl"), _of_integers("lshr")

    def is_odd(self) -> Mask:
        """Return a mask of odd lanes."""
        e = self.emitter
        return Mask(e, e.put(f"trunc {e.integers} {self.name} to {e.bits}"))

    def as_bits(self) -> "Number":
        """Return the floating-point numbers that have these bits."""
        e = self.emitter
        return Number(e, e.put(f"bitcast {e.integers} {self.name} to {e.vector}"))


def _of_numbers(operation: str) -> Callable[["Number", "Number | float"], "Number"]:
    return lambda a, b: a._with(operation, b)


def _comparison(condition: str) -> Callable[["Number", "Number | float"], Mask]:
    return lambda a, b: a._compare(condition, b)


class Number(_Value):
    """A vector of floating-point numbers. Comparisons with NaN are false."""

    __slots__ = ()

    def like(self, number: "Number | float") -> "Number":
        """Return a vector with a number in all lanes; a vector is returned unchanged."""
        return number if isinstance(number, Number) else Number(self.emitter, self.emitter.constant(number))

    def _with(self, operation: str, other: "Number | float") -> "Number":
        return Number(self.emitter, self.emitter.exact(operation, self.name, self.like(other).name))

    __add__, __sub__, __mul__, __truediv__ = map(_of_numbers, ("fadd", "fsub", "fmul", "fdiv"))

    def __rsub__(self, other: float) -> "Number":
        return self.like(other) - self

    def __rtruediv__(self, other: float) -> "Number":
        return self.like(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> "Number":
        return Number(self.emitter, self.emitter.put(f"fneg {self.emitter.vector} {self.name}"))

    def __abs__(self) -> "Number":
        return Number(self.emitter, self.emitter.call("fabs", self.name))

    def _compare(self, condition: str, other: "Number | float") -> Mask:
        return Mask(self.emitter, self.emitter.compare(condition, self.name, self.like(other).name))

    __lt__, __le__, __gt__, __ge__ = map(_comparison, ("olt", "ole", "ogt", "oge"))

    def equals(self, other: "Number | float") -> Mask:
        """Return a mask of equal lanes; 0.0 equals -0.0."""
        return self._compare("oeq", other)

    def unordered(self, other: "Number") -> Mask:
        """Return a mask of lanes in which either number is NaN."""
        return self._compare("uno", other)

    def bits(self) -> Whole:
        """Return the bits of the numbers as integers."""
        e = self.emitter
        return Whole(e, e.put(f"bitcast {e.vector} {self.name} to {e.integers}"))

    def with_sign_of(self, other: "Number") -> "Number":
        """Return the magnitude of this number with the sign of ``other``."""
        return Number(self.emitter, self.emitter.call("copysign", self.name, other.name))

    def sqrt(self) -> "Number":
        """Return the square root, rounded correctly."""
        return Number(self.emitter, self.emitter.call("sqrt", self.name))

    def floor(self) -> "Number":
        """Return the largest integer that is not above the number."""
        return Number(self.emitter, self.emitter.call("floor", self.name))

    def power_of_two(self) -> "Number":
        """Return 2 to integer powers, which must be exponents of normal numbers."""
        # The low bits of the sum contain the exponent; the shift removes all others.
        low_bits = (self + self.scalar.rounder).bits()
        return ((low_bits + self.scalar.bias) << self.scalar.digits).as_bits()

    def between(self, low: float, high: float) -> "Number":
        """Return the number clamped to an interval; NaN remains NaN."""
        return self.at_most(high).at_least(low)

    def at_most(self, high: float) -> "Number":
        """Return the number or ``high``, whichever is smaller; NaN remains NaN."""
        return Number(self.emitter, self.emitter.call("minimum", self.name, self.like(high).name))

    def at_least(self, low: float) -> "Number":
        """Return the number or ``low``, whichever is larger; NaN remains NaN."""
        return Number(self.emitter, self.emitter.call("maximum", self.name, self.like(low).name))

    def flipped(self, mask: Mask) -> "Number":
        """Return the number with its sign changed where the mask is set."""
        return where(mask, -self, self)


def where(mask: Mask, a: Number | float, b: Number | float) -> Number:
    """Return a where the mask is set, and b elsewhere."""
    e = mask.emitter
    names = (item.name if isinstance(item, Number) else e.constant(item) for item in (a, b))
    return Number(e, e.select(mask.name, *names))


def fma(a: Number, b: Number | float, c: Number | float) -> Number:
    """Return a b + c, rounded once."""
    return Number(a.emitter, a.emitter.call("fma", a.name, a.like(b).name, a.like(c).name))


def polynomial(x: Number, terms: Sequence[float]) -> Number:
    """Return a polynomial, highest power first; even and odd powers are evaluated separately to halve the latency."""
    square = x * x
    even, odd = (_horner(square, terms[start::2]) for start in ((len(terms) - 1) % 2, len(terms) % 2))
    return fma(odd, x, even)


def _horner(x: Number, terms: Sequence[float]) -> Number:
    value = x.like(terms[0])
    for term in terms[1:]:
        value = fma(value, x, term)
    return value


def two_sum(a: Number, b: Number) -> tuple[Number, Number]:
    """Return a + b and the rounding error of the sum, which the same type represents exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def quick_two_sum(a: Number | float, b: Number) -> tuple[Number, Number]:
    """Return a + b and its rounding error, for a = 0 or |a| >= |b| (Dekker 1971)."""
    a = b.like(a)
    total = a + b
    return total, b - (total - a)


def two_product(a: Number, b: Number) -> tuple[Number, Number]:
    """Return the product a b and its rounding error."""
    product = a * b
    return product, fma(a, b, -product)


def quotient(high: Number, low: Number, over: Number, over_low: Number) -> tuple[Number, Number]:
    """Return (high + low) / (over + over_low) as a sum of two numbers, with one division."""
    inverse = 1.0 / over
    first = high * inverse
    rest = fma(-first, over, high) + fma(-first, over_low, low)
    return first, rest * inverse


def each_lane(function: str, results: Sequence[str], *arguments: Number) -> list[str]:
    """Call a scalar LLVM function for each lane; return one vector per result, with the types ``results``.

    Use it for functions with loops, or with integers wider than the floating-point type. The arguments are passed as
    float64.
    """
    e = arguments[0].emitter
    kind = results[0] if len(results) == 1 else f"{{ {', '.join(results)} }}"
    result = ["poison"] * len(results)
    for lane in range(e.width):
        passed = []
        for argument in arguments:
            number = e.put(f"extractelement {e.vector} {argument.name}, i64 {lane}")
            passed.append(number if e.scalar.name == "double" else e.put(f"fpext float {number} to double"))
        value = e.put(f"call {kind} {function}({', '.join(f'double {entry}' for entry in passed)})")
        for k, item in enumerate(results):
            part = value if len(results) == 1 else e.put(f"extractvalue {kind} {value}, {k}")
            result[k] = e.put(f"insertelement <{e.width} x {item}> {result[k]}, {item} {part}, i64 {lane}")
    return result

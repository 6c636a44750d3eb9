"""The reduction of huge angles, for sin, cos and tan of any number: Payne and Hanek 1983, in integers.

An angle x = M 2^e is a whole number M of 53 bits times a power of two. Of the bits of 2 / pi those that make multiples
of four quarter turns are left out; M times the next 192 bits has the quarter turn in its first two bits, and the angle
within it in the others: with all digits of the type for all numbers, even those next to a multiple of pi/2.
"""

from torsor.compiler.llvm.coefficients import HALF_PI, TWO_OVER_PI
from torsor.compiler.llvm.rules import Emitter, Scalar
from torsor.compiler.llvm.vectors import Number, Whole, each_lane, fma, polynomial, quick_two_sum, two_product, where

_NAME = "@reduce.huge"

Pair = tuple[Number, Number]


def _reduction() -> str:
    """Return the LLVM function of one float64 of at least 2^-9: the angle as a sum of two numbers, and the quarter."""
    words = ", ".join(f"i64 {word}" for word in TWO_OVER_PI)
    high, low = map(Scalar("float64").literal, HALF_PI["float64"])
    return f"""@two.over.pi = internal constant [{len(TWO_OVER_PI)} x i64] [{words}]
define internal {{ double, double, i64 }} {_NAME}(double %x) noinline {{
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %given = and i64 %shifted, 2047
  ; smaller numbers, of lanes whose result is not used, must not read beyond the table
  %small = icmp ult i64 %given, 1014
  %exponent = select i1 %small, i64 1014, i64 %given
  %fraction = and i64 %bits, {2**52 - 1}
  %mantissa = or i64 %fraction, {2**52}
  %first = sub i64 %exponent, 1013
  %word = lshr i64 %first, 6
  %shift = and i64 %first, 63
  %p0 = getelementptr i64, ptr @two.over.pi, i64 %word
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %w0 = load i64, ptr %p0
  %w1 = load i64, ptr %p1
  %w2 = load i64, ptr %p2
  %w3 = load i64, ptr %p3
  %a = call i64 @llvm.fshl.i64(i64 %w0, i64 %w1, i64 %shift)
  %b = call i64 @llvm.fshl.i64(i64 %w1, i64 %w2, i64 %shift)
  %c = call i64 @llvm.fshl.i64(i64 %w2, i64 %w3, i64 %shift)
  ; the first 128 bits of the product, whose last one is 2^-126 of a quarter turn
  %wide = zext i64 %mantissa to i128
  %wide.b = zext i64 %b to i128
  %wide.c = zext i64 %c to i128
  %times.a = mul i64 %a, %mantissa
  %times.b = mul i128 %wide.b, %wide
  %times.c = mul i128 %wide.c, %wide
  %top.a = zext i64 %times.a to i128
  %high.a = shl i128 %top.a, 64
  %high.c = lshr i128 %times.c, 64
  %sum = add i128 %high.a, %times.b
  %turns = add i128 %sum, %high.c
  %half = add i128 %turns, {2**125}
  %quarter = lshr i128 %half, 126
  %whole = shl i128 %quarter, 126
  %rest = sub i128 %turns, %whole
  ; the rest, from -1/2 to 1/2, as a sum of two numbers
  %below = icmp slt i128 %rest, 0
  %opposite = sub i128 0, %rest
  %size = select i1 %below, i128 %opposite, i128 %rest
  %never.zero = or i128 %size, 1
  %zeros = call i128 @llvm.ctlz.i128(i128 %never.zero, i1 true)
  %normal = shl i128 %never.zero, %zeros
  %top = lshr i128 %normal, 75
  %top.64 = trunc i128 %top to i64
  %next = lshr i128 %normal, 12
  %next.64 = trunc i128 %next to i64
  %tail = and i64 %next.64, {2**63 - 1}
  %zeros.64 = trunc i128 %zeros to i64
  %top.exponent = sub i64 {1023 - 51}, %zeros.64
  %tail.exponent = sub i64 {1023 - 114}, %zeros.64
  %top.bits = shl i64 %top.exponent, 52
  %tail.bits = shl i64 %tail.exponent, 52
  %top.scale = bitcast i64 %top.bits to double
  %tail.scale = bitcast i64 %tail.bits to double
  %top.number = sitofp i64 %top.64 to double
  %tail.number = sitofp i64 %tail to double
  %f = fmul double %top.number, %top.scale
  %f.low = fmul double %tail.number, %tail.scale
  ; times pi / 2
  %r = fmul double %f, {high}
  %minus.r = fneg double %r
  %lost = call double @llvm.fma.f64(double %f, double {high}, double %minus.r)
  %more = call double @llvm.fma.f64(double %f, double {low}, double %lost)
  %r.low = call double @llvm.fma.f64(double %f.low, double {high}, double %more)
  %quarter.64 = trunc i128 %quarter to i64
  %backwards = sub i64 0, %quarter.64
  %negative = icmp slt i64 %bits, 0
  %turned = xor i1 %negative, %below
  %minus.low = fneg double %r.low
  %signed = select i1 %turned, double %minus.r, double %r
  %signed.low = select i1 %turned, double %minus.low, double %r.low
  %signed.quarter = select i1 %negative, i64 %backwards, i64 %quarter.64
  %infinite = icmp eq i64 %given, 2047
  %angle = select i1 %infinite, double 0x7FF8000000000000, double %signed
  %r0 = insertvalue {{ double, double, i64 }} poison, double %angle, 0
  %r1 = insertvalue {{ double, double, i64 }} %r0, double %signed.low, 1
  %r2 = insertvalue {{ double, double, i64 }} %r1, i64 %signed.quarter, 2
  ret {{ double, double, i64 }} %r2
}}"""


def reduce_huge(x: Number) -> tuple[Number, Number, Whole]:
    """Return (r, low, quarter) with x = r + low + quarter pi/2 for numbers beyond the limit of the usual reduction."""
    e = x.emitter
    e.functions.setdefault(_NAME, _reduction())
    doubles = f"<{e.width} x double>"
    high, low, quarter = each_lane(_NAME, ("double", "double", "i64"), x)
    if x.dtype == "float64":
        return Number(e, high), Number(e, low), Whole(e, quarter)
    single = e.put(f"fptrunc {doubles} {high} to {e.vector}")
    again = e.put(f"fpext {e.vector} {single} to {doubles}")
    left = e.put(f"fadd {doubles} {e.put(f'fsub {doubles} {high}, {again}')}, {low}")
    rest = e.put(f"fptrunc {doubles} {left} to {e.vector}")
    short = e.put(f"trunc <{e.width} x i64> {quarter} to {e.integers}")
    return Number(e, single), Number(e, rest), Whole(e, short)


def sine_and_cosine(r: Number, low: Number) -> tuple[Pair, Pair]:
    """Return sin(r + low) and cos(r + low), |r| <= pi/4, each as a sum of two numbers."""
    s = r.emitter.scalar
    z, error = two_product(r, r)
    half = z * 0.5
    usual = 1.0 - half
    lost = (1.0 - usual) - half
    sine = quick_two_sum(r, fma(z * r, polynomial(z, s.sin_terms), low * usual))
    rest = fma(z * z, polynomial(z, s.cos_terms), lost - fma(error, 0.5, r * low))
    return sine, quick_two_sum(usual, rest)


def in_quarter(even: Number, odd: Number, quarter: Whole) -> Number:
    """Return the first number in even quarter turns, the second in odd ones, with a minus in every second pair."""
    sign = (quarter & 2) << (8 * even.emitter.scalar.size - 2)
    return (where(quarter.is_odd(), odd, even).bits() ^ sign).as_bits()


def sin_cos_huge(e: Emitter, x: str) -> tuple[str, str]:
    """Return sin and cos of vectors of huge numbers: a call of a function that is written once for each emitter.

    Lanes with numbers below 2^-9 get other numbers; infinities and NaN give NaN.
    """
    name, pair = "@vectors.sin_cos_huge", f"{{ {e.vector}, {e.vector} }}"
    if name not in e.functions:
        body = Emitter(e.scalar, e.width)
        r, low, quarter = reduce_huge(Number(body, "%x"))
        sine, cosine = (high + rest for high, rest in sine_and_cosine(r, low))
        results = in_quarter(sine, cosine, quarter), in_quarter(sine, cosine, quarter + 1)
        first = body.put(f"insertvalue {pair} poison, {e.vector} {results[0].name}, 0")
        both = body.put(f"insertvalue {pair} {first}, {e.vector} {results[1].name}, 1")
        e.functions |= body.functions
        head = f"define internal {pair} {name}({e.vector} %x) noinline {{\nentry:"
        e.functions[name] = "\n".join([head, *body.lines, f"  ret {pair} {both}", "}"])
    result = e.put(f"call {pair} {name}({e.vector} {x})")
    return e.put(f"extractvalue {pair} {result}, 0"), e.put(f"extractvalue {pair} {result}, 1")

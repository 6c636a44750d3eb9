"""tan of any number."""

from torsor.compiler.llvm.huge_angles import reduce_huge, sine_and_cosine
from torsor.compiler.llvm.vectors import Number, Whole, fma, quick_two_sum, quotient, two_product, two_sum, where

# Below this tan x rounds to x.
_TINY = {"float64": 2.0**-28, "float32": 2.0**-13}


def tan(x: Number) -> Number:
    """Return the tangent. A branch leads to the reduction of huge angles; it must be the first of its function."""
    e = x.emitter
    huge = abs(x) > e.scalar.largest_angle
    usual = _reduce(x)
    any_huge = e.put(f"call i1 @llvm.vector.reduce.or.v{e.width}i1({e.bits} {huge.name})")
    e.lines += [f"  br i1 {any_huge}, label %huge, label %reduced", "huge:"]
    far = reduce_huge(x)
    # Only lanes with huge angles change: the result of a state must not depend on its neighbours.
    chosen = where(huge, far[0], usual[0]), where(huge, far[1], usual[1])
    quarter = e.put(f"select {e.bits} {huge.name}, {e.integers} {far[2].name}, {e.integers} {usual[2].name}")
    e.lines += ["  br label %reduced", "reduced:"]
    r, low = (
        Number(e, e.put(f"phi {e.vector} [ {a.name}, %entry ], [ {b.name}, %huge ]"))
        for a, b in zip(usual[:2], chosen, strict=True)
    )
    turns = Whole(e, e.put(f"phi {e.integers} [ {usual[2].name}, %entry ], [ {quarter}, %huge ]"))
    return where(abs(x) < _TINY[x.dtype], x, _tangent(r, low, turns))


def _reduce(x: Number) -> tuple[Number, Number, Whole]:
    """Return (r, low, quarter) with x = r + low + quarter pi/2, up to the largest angle of the type."""
    s = x.emitter.scalar
    turned = fma(x, 0.6366197723675814, s.rounder)
    n = turned - s.rounder
    first, second, third = s.half_pi
    exact = fma(n, -first, x)
    product, error = two_product(n, x.like(-second))
    total, lost = two_sum(exact, product)
    return *quick_two_sum(total, lost + fma(n, -third, error)), turned.bits()


def _tangent(r: Number, low: Number, quarter: Whole) -> Number:
    """Return the tangent of r + low + quarter pi/2."""
    sine, cosine = sine_and_cosine(r, low)
    odd = quarter.is_odd()
    over = [where(odd, b, a) for a, b in zip(sine, cosine, strict=True)]
    under = [where(odd, -a, b) for a, b in zip(sine, cosine, strict=True)]
    first, second = quotient(over[0], over[1], under[0], under[1])
    return first + second

"""tan of any number."""

from torsor.compiler.llvm.huge_angles import reduce_huge
from torsor.compiler.llvm.trigonometry import reduce_angle, tangent
from torsor.compiler.llvm.vectors import Number, Whole, where

# Below this tan x rounds to x.
_TINY = {"float64": 2.0**-28, "float32": 2.0**-13}


def tan(x: Number) -> Number:
    """Return the tangent. A branch leads to the reduction of huge angles; it must be the first of its function."""
    e = x.emitter
    huge = abs(x) > e.scalar.largest_angle
    usual = reduce_angle(x)
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
    return where(abs(x) < _TINY[x.dtype], x, tangent(r, low, turns))

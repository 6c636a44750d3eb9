"""fmod and remainder, exact for all numbers: a long division of integers, lane by lane.

The quotient may have a thousand digits, of which eleven are found in each step; no formula without a loop is exact.
"""

from torsor.compiler.llvm.vectors import Mask, Number, each_lane, where

_NAME = "@exact.remainder"


def _division() -> str:
    """Return the LLVM function of two float64: the size of the rest, as fmod has it, and the quotient's last digit."""
    fraction, one = 2**52 - 1, 2**52

    def parts(name: str) -> str:
        return f"""  %{name}.bits = bitcast double %{name} to i64
  %{name}.size = and i64 %{name}.bits, {2**63 - 1}
  %{name}.field = lshr i64 %{name}.size, 52
  %{name}.fraction = and i64 %{name}.bits, {fraction}
  %{name}.subnormal = icmp eq i64 %{name}.field, 0
  %{name}.normal = or i64 %{name}.fraction, {one}
  %{name}.m = select i1 %{name}.subnormal, i64 %{name}.fraction, i64 %{name}.normal
  %{name}.e = select i1 %{name}.subnormal, i64 1, i64 %{name}.field"""

    return f"""define internal {{ double, i1 }} {_NAME}(double %x, double %y) noinline {{
entry:
{parts("x")}
{parts("y")}
  %size = call double @llvm.fabs.f64(double %x)
  %x.bad = icmp uge i64 %x.size, {2047 << 52}
  %y.zero = icmp eq i64 %y.size, 0
  %y.nan = icmp ugt i64 %y.size, {2047 << 52}
  %bad.some = or i1 %x.bad, %y.zero
  %bad = or i1 %bad.some, %y.nan
  br i1 %bad, label %done, label %valid
valid:
  %digits = sub i64 %x.e, %y.e
  %less = icmp slt i64 %digits, 0
  br i1 %less, label %done, label %first
first:
  %q.first = udiv i64 %x.m, %y.m
  %multiple.first = mul i64 %q.first, %y.m
  %r.first = sub i64 %x.m, %multiple.first
  br label %check
check:
  %left = phi i64 [ %digits, %first ], [ %left.next, %step ]
  %r = phi i64 [ %r.first, %first ], [ %r.next, %step ]
  %q = phi i64 [ %q.first, %first ], [ %q.next, %step ]
  %over = icmp eq i64 %left, 0
  br i1 %over, label %number, label %step
step:
  %many = icmp ugt i64 %left, 11
  %taken = select i1 %many, i64 11, i64 %left
  %left.next = sub i64 %left, %taken
  %shifted = shl i64 %r, %taken
  %q.next = udiv i64 %shifted, %y.m
  %multiple = mul i64 %q.next, %y.m
  %r.next = sub i64 %shifted, %multiple
  br label %check
number:
  ; r 2^(e - 1075) in two steps, both exact
  %power = sub i64 %y.e, 1075
  %half = ashr i64 %power, 1
  %other = sub i64 %power, %half
  %half.biased = add i64 %half, 1023
  %other.biased = add i64 %other, 1023
  %half.bits = shl i64 %half.biased, 52
  %other.bits = shl i64 %other.biased, 52
  %half.power = bitcast i64 %half.bits to double
  %other.power = bitcast i64 %other.bits to double
  %r.number = sitofp i64 %r to double
  %r.half = fmul double %r.number, %half.power
  %rest.exact = fmul double %r.half, %other.power
  %odd.exact = trunc i64 %q to i1
  br label %done
done:
  %rest = phi double [ 0x7FF8000000000000, %entry ], [ %size, %valid ], [ %rest.exact, %number ]
  %odd = phi i1 [ false, %entry ], [ false, %valid ], [ %odd.exact, %number ]
  %r0 = insertvalue {{ double, i1 }} poison, double %rest, 0
  %r1 = insertvalue {{ double, i1 }} %r0, i1 %odd, 1
  ret {{ double, i1 }} %r1
}}"""


def _divided(x: Number, y: Number) -> tuple[Number, Mask]:
    e = x.emitter
    e.functions.setdefault(_NAME, _division())
    rest, odd = each_lane(_NAME, ("double", "i1"), x, y)
    if x.dtype == "float32":  # exact: the rest has no more digits than x and y
        rest = e.put(f"fptrunc <{e.width} x double> {rest} to {e.vector}")
    return Number(e, rest), Mask(e, odd)


def fmod(x: Number, y: Number) -> Number:
    """Return x less the multiple of y next to it towards 0, with the sign of x."""
    return _divided(x, y)[0].with_sign_of(x)


def remainder(x: Number, y: Number) -> Number:
    """Return x less the multiple of y that is nearest to it, the even one if two are."""
    rest, odd = _divided(x, y)
    size = abs(y)
    left = size - rest
    down = (rest > left) | (rest.equals(left) & odd)
    value = where(down, rest - size, rest)
    return value.flipped(x.like(1.0).with_sign_of(x) < 0.0)

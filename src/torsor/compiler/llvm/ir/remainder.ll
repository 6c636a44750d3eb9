define internal { double, i1 } @exact.remainder(double %x, double %y) noinline {
entry:
  %x.bits = bitcast double %x to i64
  %x.size = and i64 %x.bits, 9223372036854775807
  %x.field = lshr i64 %x.size, 52
  %x.fraction = and i64 %x.bits, 4503599627370495
  %x.subnormal = icmp eq i64 %x.field, 0
  %x.normal = or i64 %x.fraction, 4503599627370496
  %x.m = select i1 %x.subnormal, i64 %x.fraction, i64 %x.normal
  %x.e = select i1 %x.subnormal, i64 1, i64 %x.field
  %y.bits = bitcast double %y to i64
  %y.size = and i64 %y.bits, 9223372036854775807
  %y.field = lshr i64 %y.size, 52
  %y.fraction = and i64 %y.bits, 4503599627370495
  %y.subnormal = icmp eq i64 %y.field, 0
  %y.normal = or i64 %y.fraction, 4503599627370496
  %y.m = select i1 %y.subnormal, i64 %y.fraction, i64 %y.normal
  %y.e = select i1 %y.subnormal, i64 1, i64 %y.field
  %size = call double @llvm.fabs.f64(double %x)
  %x.bad = icmp uge i64 %x.size, 9218868437227405312
  %y.zero = icmp eq i64 %y.size, 0
  %y.nan = icmp ugt i64 %y.size, 9218868437227405312
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
  %r0 = insertvalue { double, i1 } poison, double %rest, 0
  %r1 = insertvalue { double, i1 } %r0, i1 %odd, 1
  ret { double, i1 } %r1
}

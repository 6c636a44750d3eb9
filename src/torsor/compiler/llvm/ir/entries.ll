entry:
$before  %none = icmp eq i64 %count, 0
  br i1 %none, label %end, label %body
body:
  %r = phi i64 [ 0, %entry ], [ %r.next, %after ]
  %c = phi i64 [ 0, %entry ], [ %c.next, %after ]
  %e = phi i64 [ 0, %entry ], [ %e.next, %after ]
  %down = mul i64 %r, %row
  %across = mul i64 %c, %column
  %offset = add i64 %down, %across
  %p = getelementptr i8, ptr %array, i64 %offset
  %b.offset = mul i64 %e, $block
  %b = getelementptr i8, ptr %block, i64 %b.offset
$body
after:
  %e.next = add i64 %e, 1
  %c.plus = add i64 %c, 1
  %wrap = icmp eq i64 %c.plus, %columns
  %c.next = select i1 %wrap, i64 0, i64 %c.plus
  %r.plus = add i64 %r, 1
  %r.next = select i1 %wrap, i64 %r.plus, i64 %r
  %last = icmp eq i64 %e.next, %count
  br i1 %last, label %end, label %body
end:
  ret void

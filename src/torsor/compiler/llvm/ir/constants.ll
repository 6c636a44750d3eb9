@runs.first = internal constant [$count x i64] [$first]
@runs.last = internal constant [$count x i64] [$last]
@runs.value = internal constant [$count x $scalar] [$values]
define void @constants(ptr %out) {
entry:
  br label %run
run:
  %k = phi i64 [ 0, %entry ], [ %k.next, %after ]
  %first.p = getelementptr i64, ptr @runs.first, i64 %k
  %first = load i64, ptr %first.p
  %last.p = getelementptr i64, ptr @runs.last, i64 %k
  %last = load i64, ptr %last.p
  %value.p = getelementptr $scalar, ptr @runs.value, i64 %k
  %value = load $scalar, ptr %value.p
  %one = insertelement $vector poison, $scalar %value, i64 0
  %all = shufflevector $vector %one, $vector poison, <$width x i32> zeroinitializer
  br label %body
body:
  %e = phi i64 [ %first, %run ], [ %e.next, %body ]
  %offset = mul i64 %e, $block
  %p = getelementptr i8, ptr %out, i64 %offset
  store $vector %all, ptr %p, align $block
  %e.next = add i64 %e, 1
  %more = icmp sle i64 %e.next, %last
  br i1 %more, label %body, label %after
after:
  %k.next = add i64 %k, 1
  %over = icmp eq i64 %k.next, $count
  br i1 %over, label %end, label %run
end:
  ret void
}

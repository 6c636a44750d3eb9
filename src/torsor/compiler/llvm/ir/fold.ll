$declarations
declare i32 @feclearexcept(i32)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare $vector @llvm.fmuladd.$suffix($vector, $vector, $vector)
declare $vector @llvm.maximum.$suffix($vector, $vector)
$movers
$contractions
define internal void @fill(ptr %to, i64 %count, $scalar %number) noinline {
entry:
  %one = insertelement $vector poison, $scalar %number, i64 0
  %all = shufflevector $vector %one, $vector poison, <$width x i32> zeroinitializer
  br label %body
body:
  %e = phi i64 [ 0, %entry ], [ %e.next, %body ]
  %p = getelementptr $vector, ptr %to, i64 %e
  store $vector %all, ptr %p, align $block
  %e.next = add i64 %e, 1
  %more = icmp slt i64 %e.next, %count
  br i1 %more, label %body, label %end
end:
  ret void
}
define internal void @scatter(ptr %values, i64 %count, ptr %targets, ptr %sums) noinline {
entry:
  br label %body
body:
  %e = phi i64 [ 0, %entry ], [ %e.next, %body ]
  %p = getelementptr $vector, ptr %values, i64 %e
  %value = load $vector, ptr %p, align $block
  %t = getelementptr i64, ptr %targets, i64 %e
  %target = load i64, ptr %t
  %s = getelementptr $vector, ptr %sums, i64 %target
  %before = load $vector, ptr %s, align $block
  %sum = fadd $vector %before, %value
  store $vector %sum, ptr %s, align $block
  %e.next = add i64 %e, 1
  %more = icmp slt i64 %e.next, %count
  br i1 %more, label %body, label %end
end:
  ret void
}
@fixed = constant i64 $fixed
define void @fold(ptr %table, ptr %memory) {
entry:
$body
end:
  ; NumPy would warn of floating-point exceptions in lanes whose results are not used
  %cleared = call i32 @feclearexcept(i32 63)
  ret void
}
!0 = !{!"branch_weights", i32 1, i32 100000}

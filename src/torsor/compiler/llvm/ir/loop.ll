$declarations
declare ptr @malloc(i64)
declare ptr @llvm.ptrmask.p0.i64(ptr, i64)
declare void @free(ptr)
declare void @llvm.trap()
declare i32 @feclearexcept(i32)
$pack_singles
$unpack_singles
$tiles
define void @loop(ptr %arrays, ptr %lengths, ptr %steps, ptr %data) {
  call void @run(ptr %arrays, ptr %lengths, ptr %steps)
  ; NumPy would warn of floating-point exceptions in lanes whose results are not used
  %cleared = call i32 @feclearexcept(i32 63)
  ret void
}
define void @run(ptr %arrays, ptr %lengths, ptr %steps) {
entry:
$take
  call void @prepare(ptr %in)
  call void @blocks(ptr %in, ptr %arrays, ptr %lengths, ptr %steps)
$give  ret void
}
@memory = constant i64 $memory
define void @prepare(ptr %in) {
  %out = getelementptr i8, ptr %in, i64 $in_bytes
  call void @constants(ptr %out)
  ret void
}
define void @blocks(ptr %in, ptr %arrays, ptr %lengths, ptr %steps) {
entry:
  %out = getelementptr i8, ptr %in, i64 $in_bytes
  %scratch = getelementptr i8, ptr %out, i64 $out_bytes
  %states = load i64, ptr %lengths
$heads
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %done ]
  %left = sub i64 %states, %i
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %full, label %end
full:
  %whole = icmp sge i64 %left, $width
  %lanes = select i1 %whole, i64 $width, i64 %left
$pack
$calls
$unpack
  br label %done
done:
  %next = add i64 %i, $width
  br label %head
end:
  ret void
}
!0 = !{!"branch_weights", i32 1, i32 100000}

declare i32 @feclearexcept(i32)
define void @chain(ptr %table, i64 %calls, ptr %block) {
entry:
  %arrays = alloca ptr, i64 $max_arrays
  br label %call
call:
  %c = phi i64 [ 0, %entry ], [ %c.next, %done ]
  %row = phi ptr [ %table, %entry ], [ %row.next, %done ]
  %run = load ptr, ptr %row
  %count.p = getelementptr i64, ptr %row, i64 $arrays
  %count = load i64, ptr %count.p
  %times.p = getelementptr i64, ptr %row, i64 $times
  %times = load i64, ptr %times.p
  %lengths = getelementptr i64, ptr %row, i64 $states
  %words.p = getelementptr i64, ptr %row, i64 $words
  %words = load i64, ptr %words.p
  %row.next = getelementptr i64, ptr %row, i64 %words
  %places = getelementptr i64, ptr %row, i64 $head
  %moves = getelementptr i64, ptr %places, i64 %count
  %steps = getelementptr i64, ptr %moves, i64 %count
  br label %place
place:
  %i = phi i64 [ 0, %call ], [ %i.next, %place ]
  %place.p = getelementptr i64, ptr %places, i64 %i
  %offset = load i64, ptr %place.p
  %first = getelementptr i8, ptr %block, i64 %offset
  %first.p = getelementptr ptr, ptr %arrays, i64 %i
  store ptr %first, ptr %first.p
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %count
  br i1 %i.more, label %place, label %head
head:
  %k = phi i64 [ 0, %place ], [ %k.next, %moved ]
  %more = icmp slt i64 %k, %times
  br i1 %more, label %body, label %done
body:
  call void %run(ptr %arrays, ptr %lengths, ptr %steps)
  br label %move
move:
  %j = phi i64 [ 0, %body ], [ %j.next, %move ]
  %slot = getelementptr ptr, ptr %arrays, i64 %j
  %array = load ptr, ptr %slot
  %move.p = getelementptr i64, ptr %moves, i64 %j
  %bytes = load i64, ptr %move.p
  %next = getelementptr i8, ptr %array, i64 %bytes
  store ptr %next, ptr %slot
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, %count
  br i1 %j.more, label %move, label %moved
moved:
  %k.next = add i64 %k, 1
  br label %head
done:
  %c.next = add i64 %c, 1
  %c.more = icmp slt i64 %c.next, %calls
  br i1 %c.more, label %call, label %end
end:
  %cleared = call i32 @feclearexcept(i32 63)
  ret void
}

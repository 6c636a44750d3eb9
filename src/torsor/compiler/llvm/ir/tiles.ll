entry:
  %final = sub i64 %count, $tile
  ; the second tile begins where a cache line does: stores that cross lines take twice as long
  %address = ptrtoint ptr %array to i64
  %gap = sub i64 0, %address
  %gap.bytes = and i64 %gap, 63
  %gap.entries = udiv i64 %gap.bytes, $size
  %far = icmp ugt i64 %gap.entries, $tile
  %aligned = icmp eq i64 %gap.entries, 0
  %plain = or i1 %far, %aligned
  %second = select i1 %plain, i64 $tile, i64 %gap.entries
  br label %body
body:
  %e = phi i64 [ 0, %entry ], [ %e.next, %body ]
  %offset = mul i64 %e, $size
  %p = getelementptr i8, ptr %array, i64 %offset
  %b.offset = mul i64 %e, $block
  %b = getelementptr i8, ptr %block, i64 %b.offset
$body
  %e.step = add i64 %e, $tile
  %at.first = icmp eq i64 %e, 0
  %e.plus = select i1 %at.first, i64 %second, i64 %e.step
  %over = icmp sgt i64 %e.plus, %final
  ; the last tile ends with the last entry, and repeats some entries of the tile before
  %e.next = select i1 %over, i64 %final, i64 %e.plus
  %last = icmp eq i64 %e, %final
  br i1 %last, label %end, label %body
end:
  ret void

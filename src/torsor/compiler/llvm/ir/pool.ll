$declare_pause
declare ptr @llvm.ptrmask.p0.i64(ptr, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare void @llvm.trap()
$declared@spins = global i64 0
$variables
define void @pause(i64 %count) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %end
body:
  $pause
  %now = load atomic i64, ptr @generation acquire, align 8 ; as a helper does, so that the time is the same
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}
define void @reset() {
$zeros  store ptr null, ptr @job
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %r = call i32 @pthread_cond_init(ptr @ready, ptr null)
  %d = call i32 @pthread_cond_init(ptr @done, ptr null)
  ret void
}

; The call of NumPy: one row of states. Its length determines the number of threads and the chunk length.
define void @loop(ptr %arrays, ptr %lengths, ptr %steps, ptr %kernel) {
entry:
  %job = alloca i64, i64 $job_words, align $align
  %states = load i64, ptr %lengths
load kernel: run* threads least share smallest largest width
  %large = icmp sge i64 %states, %kernel.least
  br i1 %large, label %shared, label %alone
alone:
  call void %kernel.run(ptr %arrays, ptr %lengths, ptr %steps)
  br label %end
shared:
  %shares = sdiv i64 %states, %kernel.share
  %threads = call i64 @llvm.smin.i64(i64 %kernel.threads, i64 %shares)
  %helpers = sub i64 %threads, 1
  %parts = mul i64 %threads, $rounds
  %even = sdiv i64 %states, %parts
  %short = call i64 @llvm.smin.i64(i64 %even, i64 %kernel.largest)
  %wanted = call i64 @llvm.smax.i64(i64 %short, i64 %kernel.smallest)
  %less = sub i64 %wanted, 1
  %full = sdiv i64 %less, %kernel.width
  %blocks = add i64 %full, 1
  %chunk = mul i64 %blocks, %kernel.width
  %last = sub i64 %states, 1
  %whole = sdiv i64 %last, %chunk
  %total = add i64 %whole, 1
$one_row  call void @share(ptr %job)
  br label %end
end:
  ; NumPy would warn of floating-point exceptions in lanes whose results are not used
  %cleared = call i32 @feclearexcept(i32 63)
  ret void
}

; Computes a job, together with helpers if needed and if the pool is free.
define void @share(ptr %job) {
entry:
load job: helpers
  %taken = getelementptr i64, ptr %job, i64 $taken
  store atomic i64 0, ptr %taken seq_cst, align 8
  %joined = getelementptr i64, ptr %job, i64 $joined
  store atomic i64 0, ptr %joined seq_cst, align 8
  %some = icmp sgt i64 %job.helpers, 0
  br i1 %some, label %try, label %alone
try:
  %pair = cmpxchg ptr @busy, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue { i64, i1 } %pair, 1
  br i1 %free, label %open, label %alone
alone:
  call void @work(ptr %job)
  ret void
open:
  %environment = getelementptr i64, ptr %job, i64 $environment
  %kept = call i32 @fegetenv(ptr %environment)
  call void @hire(i64 %job.helpers)
  store atomic ptr %job, ptr @job seq_cst, align 8
  %generation = atomicrmw add ptr @generation, i64 1 seq_cst
  %asleep = load atomic i64, ptr @sleepers seq_cst, align 8
  %workers = load i64, ptr @workers
  %awake = sub i64 %workers, %asleep
  %missing = sub i64 %job.helpers, %awake
  %wake = call i64 @llvm.smin.i64(i64 %missing, i64 %asleep)
  store atomic i64 %wake, ptr @towake seq_cst, align 8
  %any = icmp sgt i64 %wake, 0
  br i1 %any, label %call, label %compute
call:
  ; a helper that is about to sleep holds the lock until it does
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  call void @wake()
  br label %compute
compute:
  call void @work(ptr %job)
  store atomic ptr null, ptr @job seq_cst, align 8
  call void @wait()
  store atomic i64 0, ptr @busy seq_cst, align 8
  ret void
}

; Creates helpers until there are enough, or the system has no more; they get no signals.
define internal void @hire(i64 %helpers) {
entry:
  %present = load i64, ptr @workers
  %enough = icmp sge i64 %present, %helpers
  br i1 %enough, label %end, label %begin
begin:
  %thread = alloca ptr
  %attributes = alloca [32 x i64], align 16
  %all = alloca [32 x i64], align 16
  %old = alloca [32 x i64], align 16
  %filled = call i32 @sigfillset(ptr %all)
  %masked = call i32 @pthread_sigmask(i32 $set_mask, ptr %all, ptr %old)
  %made = call i32 @pthread_attr_init(ptr %attributes)
  %sized = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 $stack)
  %seen = load atomic i64, ptr @generation seq_cst, align 8
  %argument = inttoptr i64 %seen to ptr
  br label %one
one:
  %workers = phi i64 [ %present, %begin ], [ %more, %created ]
  %failed = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @worker, ptr %argument)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %created, label %restore
created:
  %name = load ptr, ptr %thread
  %detached = call i32 @pthread_detach(ptr %name)
  %more = add i64 %workers, 1
  store i64 %more, ptr @workers
  %again = icmp slt i64 %more, %helpers
  br i1 %again, label %one, label %restore
restore:
  %destroyed = call i32 @pthread_attr_destroy(ptr %attributes)
  %unmasked = call i32 @pthread_sigmask(i32 $set_mask, ptr %old, ptr null)
  br label %end
end:
  ret void
}

; Wakes one more helper, if any is still to be woken.
define internal void @wake() {
  %left = atomicrmw sub ptr @towake, i64 1 seq_cst
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %one, label %end
one:
  %told = call i32 @pthread_cond_signal(ptr @ready)
  br label %end
end:
  ret void
}

; A helper: it waits for another generation of job, joins, computes and leaves, forever.
define internal ptr @worker(ptr %argument) {
entry:
  %first = ptrtoint ptr %argument to i64
  %spins = load i64, ptr @spins
  br label %idle
idle:
  %seen = phi i64 [ %first, %entry ], [ %now, %left ]
  br label %spin
spin:
  %i = phi i64 [ 0, %idle ], [ %i.next, %again ]
  %found = load atomic i64, ptr @generation acquire, align 8
  %new = icmp ne i64 %found, %seen
  br i1 %new, label %join, label %again
again:
  $pause
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %spins
  br i1 %more, label %spin, label %sleep
sleep:
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %sleepers = atomicrmw add ptr @sleepers, i64 1 seq_cst
  br label %look
look:
  %later = load atomic i64, ptr @generation seq_cst, align 8
  %changed = icmp ne i64 %later, %seen
  br i1 %changed, label %woken, label %asleep
asleep:
  %slept = call i32 @pthread_cond_wait(ptr @ready, ptr @mutex)
  br label %look
woken:
  %fewer = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  call void @wake()
  call void @wake()
  br label %join
join:
  %now = phi i64 [ %found, %spin ], [ %later, %woken ]
  %before = atomicrmw add ptr @active, i64 1 seq_cst
  %job = load atomic ptr, ptr @job seq_cst, align 8
  %over = icmp eq ptr %job, null
  br i1 %over, label %leave, label %ticket
ticket:
load job: helpers
  %joined = getelementptr i64, ptr %job, i64 $joined
  %number = atomicrmw add ptr %joined, i64 1 seq_cst
  %wanted = icmp slt i64 %number, %job.helpers
  br i1 %wanted, label %enter, label %leave
enter:
  %environment = getelementptr i64, ptr %job, i64 $environment
  %set = call i32 @fesetenv(ptr %environment)
  call void @work(ptr %job)
  br label %leave
leave:
  %inside = atomicrmw sub ptr @active, i64 1 seq_cst
  %last = icmp eq i64 %inside, 1
  br i1 %last, label %tell, label %left
tell:
  %waiting = load atomic i64, ptr @waiting seq_cst, align 8
  %asked = icmp ne i64 %waiting, 0
  br i1 %asked, label %ring, label %left
ring:
  %held = call i32 @pthread_mutex_lock(ptr @mutex)
  %given = call i32 @pthread_mutex_unlock(ptr @mutex)
  %told = call i32 @pthread_cond_signal(ptr @done)
  br label %left
left:
  br label %idle
}

; Takes chunks until none is left, in memory that is allocated once.
define internal void @work(ptr %job) {
entry:
load job: kernel* arrays* steps* length axes lengths* strides*
load job: chunk pieces total several
  %kernel = getelementptr i8, ptr %job.kernel, i64 0
load kernel: prepare* blocks* memory arrays
  %taken = getelementptr i64, ptr %job, i64 $taken
  %shifted = alloca ptr, i64 %kernel.arrays
  %count = alloca i64
  %begin = atomicrmw add ptr %taken, i64 %job.several seq_cst
  %some = icmp slt i64 %begin, %job.total
  br i1 %some, label %allocate, label %nothing
nothing:
  ret void
allocate:
  %size = add i64 %kernel.memory, $align
  %allocated = call ptr @malloc(i64 %size)
  %exhausted = icmp eq ptr %allocated, null
  br i1 %exhausted, label %abort, label %ready
abort:
  call void @llvm.trap() ; out of memory: a gufunc loop cannot raise an error
  unreachable
ready:
  %beyond = getelementptr i8, ptr %allocated, i64 $align_mask
  %memory = call ptr @llvm.ptrmask.p0.i64(ptr %beyond, i64 -$align)
  call void %kernel.prepare(ptr %memory)
  br label %units
units:
  %first = phi i64 [ %begin, %ready ], [ %following, %take ]
  %most = add i64 %first, %job.several
  %stop = call i64 @llvm.smin.i64(i64 %most, i64 %job.total)
  br label %unit
unit:
  %u = phi i64 [ %first, %units ], [ %u.next, %compute ]
  %row = udiv i64 %u, %job.pieces
  %piece = urem i64 %u, %job.pieces
  %start = mul i64 %piece, %job.chunk
  %left = sub i64 %job.length, %start
  %states = call i64 @llvm.smin.i64(i64 %left, i64 %job.chunk)
  store i64 %states, ptr %count
  br label %array
array:
  %k = phi i64 [ 0, %unit ], [ %k.next, %placed ]
  %p.base = getelementptr ptr, ptr %job.arrays, i64 %k
  %base = load ptr, ptr %p.base
  %p.step = getelementptr i64, ptr %job.steps, i64 %k
  %step = load i64, ptr %p.step
  %along = mul i64 %step, %start
  br label %axis
axis:
  %d = phi i64 [ %job.axes, %array ], [ %d.less, %across ]
  %rest = phi i64 [ %row, %array ], [ %rest.less, %across ]
  %offset = phi i64 [ %along, %array ], [ %offset.more, %across ]
  %inmost = icmp eq i64 %d, 0
  br i1 %inmost, label %placed, label %across
across:
  %d.less = sub i64 %d, 1
  %p.axis = getelementptr i64, ptr %job.lengths, i64 %d.less
  %of.axis = load i64, ptr %p.axis
  %index = urem i64 %rest, %of.axis
  %rest.less = udiv i64 %rest, %of.axis
  %line = mul i64 %d.less, %kernel.arrays
  %cell = add i64 %line, %k
  %p.stride = getelementptr i64, ptr %job.strides, i64 %cell
  %stride = load i64, ptr %p.stride
  %further = mul i64 %index, %stride
  %offset.more = add i64 %offset, %further
  br label %axis
placed:
  %address = getelementptr i8, ptr %base, i64 %offset
  %slot = getelementptr ptr, ptr %shifted, i64 %k
  store ptr %address, ptr %slot
  %k.next = add i64 %k, 1
  %others = icmp slt i64 %k.next, %kernel.arrays
  br i1 %others, label %array, label %compute
compute:
  call void %kernel.blocks(ptr %memory, ptr %shifted, ptr %count, ptr %job.steps)
  %u.next = add i64 %u, 1
  %within = icmp slt i64 %u.next, %stop
  br i1 %within, label %unit, label %take
take:
  %following = atomicrmw add ptr %taken, i64 %job.several seq_cst
  %more = icmp slt i64 %following, %job.total
  br i1 %more, label %units, label %end
end:
  call void @free(ptr %allocated)
  ret void
}

; A call waits here until no helper is active: it spins, then sleeps.
define internal void @wait() {
entry:
  %spins = load i64, ptr @spins
  %most = mul i64 %spins, $wait
  br label %spin
spin:
  %i = phi i64 [ 0, %entry ], [ %i.next, %again ]
  %inside = load atomic i64, ptr @active seq_cst, align 8
  %none = icmp eq i64 %inside, 0
  br i1 %none, label %end, label %again
again:
  $pause
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %most
  br i1 %more, label %spin, label %sleep
sleep:
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  store atomic i64 1, ptr @waiting seq_cst, align 8
  br label %look
look:
  %still = load atomic i64, ptr @active seq_cst, align 8
  %left = icmp eq i64 %still, 0
  br i1 %left, label %awake, label %asleep
asleep:
  %slept = call i32 @pthread_cond_wait(ptr @done, ptr @mutex)
  br label %look
awake:
  store atomic i64 0, ptr @waiting seq_cst, align 8
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %end
end:
  ret void
}

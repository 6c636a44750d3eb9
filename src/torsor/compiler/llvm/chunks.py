"""Batches in chunks: how a job and a compiled function are described to threads, and the code that computes chunks."""

from typing import NamedTuple


class Compiled(NamedTuple):
    """A compiled function as threads see it, in words of 8 bytes.

    ``run``, ``prepare``, ``blocks`` and ``memory`` are those of ``write_loop``, ``arrays`` is how many arrays it has.
    Batches of fewer than ``least`` states are computed by one thread, larger ones by one for each ``share`` of states,
    at most ``threads``, in chunks of ``smallest`` to ``largest`` states, multiples of ``width``.
    """

    run: int
    prepare: int
    blocks: int
    memory: int
    arrays: int
    threads: int
    least: int
    share: int
    smallest: int
    largest: int
    width: int


class Job(NamedTuple):
    """A batch for threads, in words of 8 bytes: rows of ``length`` states with the strides ``steps``.

    Rows are counted along ``axes`` outer axes of ``lengths``, with ``strides``: for each axis, one for each array. A
    row is ``pieces`` chunks of ``chunk`` states, all rows are ``total`` chunks; a thread takes ``several`` at a time.
    ``kernel``, ``arrays``, ``steps``, ``lengths`` and ``strides`` are addresses.
    """

    kernel: int
    arrays: int
    steps: int
    length: int
    axes: int
    lengths: int
    strides: int
    chunk: int
    pieces: int
    total: int
    several: int
    helpers: int


# Words of a job that threads write to, on a cache line of their own; then room for a floating-point environment.
TAKEN, JOINED, ENVIRONMENT, JOB_WORDS = 16, 17, 24, 40
ALIGN = 128  # bytes: two cache lines, which some processors load together; and the longest vector
ROUNDS = 4  # chunks for each thread, at least, so that none waits long for the last


def load(struct: str, layout: type[Compiled] | type[Job], *names: str) -> str:
    """Return code that loads words of a structure; those that end with an asterisk are pointers."""
    text = ""
    for given in names:
        name, kind = given.rstrip("*"), "ptr" if given.endswith("*") else "i64"
        text += f"""  %p.{struct}.{name} = getelementptr i64, ptr %{struct}, i64 {layout._fields.index(name)}
  %{struct}.{name} = load {kind}, ptr %p.{struct}.{name}
"""
    return text


WORK = f"""
define internal void @work(ptr %job) {{
entry:
{load("job", Job, "kernel*", "arrays*", "steps*", "length", "axes", "lengths*", "strides*")}
{load("job", Job, "chunk", "pieces", "total", "several")}
  %kernel = getelementptr i8, ptr %job.kernel, i64 0
{load("kernel", Compiled, "prepare*", "blocks*", "memory", "arrays")}
  %taken = getelementptr i64, ptr %job, i64 {TAKEN}
  %shifted = alloca ptr, i64 %kernel.arrays
  %count = alloca i64
  %begin = atomicrmw add ptr %taken, i64 %job.several seq_cst
  %some = icmp slt i64 %begin, %job.total
  br i1 %some, label %allocate, label %nothing
nothing:
  ret void
allocate:
  %size = add i64 %kernel.memory, {ALIGN}
  %allocated = call ptr @malloc(i64 %size)
  %exhausted = icmp eq ptr %allocated, null
  br i1 %exhausted, label %abort, label %ready
abort:
  call void @llvm.trap() ; out of memory: a gufunc loop cannot raise an error
  unreachable
ready:
  %beyond = getelementptr i8, ptr %allocated, i64 {ALIGN - 1}
  %memory = call ptr @llvm.ptrmask.p0.i64(ptr %beyond, i64 {-ALIGN})
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
}}
"""
"""LLVM code of ``work(job)``: takes chunks until none is left, in memory that is taken once."""

"""LLVM code of the threads that share a batch, which wait and compute without the Python interpreter.

There is one pool per process. A call creates a job, which consists of its batch in chunks of states and a counter of
taken chunks. The calling thread publishes the job, wakes helpers, and takes chunks itself until none are left. Helpers
that arrive in time take chunks too. The call does not wait for helpers that have not arrived. It waits until all
helpers that have arrived leave, because they compute chunks of its batch and the job is in its memory.

- A helper increments ``active`` before it reads ``job``, and a call removes ``job`` before it reads ``active``. These
  operations are sequentially consistent, so at least one of the two detects the other, and no helper accesses a job
  that has ended.
- A helper without a job spins for about ten microseconds and then sleeps. Waking a thread is a system call, so the
  calling thread wakes one helper, and each woken helper wakes two more.
- Only one job is shared at a time (``busy``). Other calling threads compute alone in the meantime.
- Helpers use the floating-point environment (rounding mode) of the calling thread, and block all signals, which are
  intended for Python's threads.
"""

import re
from typing import NamedTuple

from torsor.compiler.llvm import ir

# Batches in chunks: the data of a job and of a compiled function for threads, and the code that computes chunks.


class Compiled(NamedTuple):
    """A compiled function for threads, in words of 8 bytes.

    For ``run``, ``prepare``, ``blocks`` and ``memory``, see ``write_loop``; ``arrays`` is the number of arrays. Batches
    of fewer than ``least`` states are computed by one thread, and larger ones by one thread per ``share`` states, with
    at most ``threads`` threads. Chunks have ``smallest`` to ``largest`` states, in multiples of ``width``.
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
    """A batch for threads, in 8-byte words: rows of ``length`` states with strides ``steps``.

    Rows are counted along ``axes`` outer axes with ``lengths`` and ``strides``, which contain one stride per axis and
    array. A row consists of ``pieces`` chunks of ``chunk`` states, and all rows together of ``total`` chunks; a thread
    takes ``several`` chunks at a time. ``kernel``, ``arrays``, ``steps``, ``lengths`` and ``strides`` are addresses.
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


# Words of a job to which threads write, on a separate cache line, followed by space for a floating-point environment.
TAKEN, JOINED, ENVIRONMENT, JOB_WORDS = 16, 17, 24, 40
ALIGN = 128  # bytes; two cache lines, which some processors load together, and the longest vector
ROUNDS = 4  # minimum number of chunks per thread, which shortens the wait for the last chunk
_LAYOUTS: dict[str, type[Compiled] | type[Job]] = {"kernel": Compiled, "job": Job}


def _load(struct: str, *names: str) -> str:
    """Return code that loads words of a structure; names that end with an asterisk are pointers."""
    text = ""
    for field in names:
        name, kind = field.rstrip("*"), "ptr" if field.endswith("*") else "i64"
        text += f"""  %p.{struct}.{name} = getelementptr i64, ptr %{struct}, i64 {_LAYOUTS[struct]._fields.index(name)}
  %{struct}.{name} = load {kind}, ptr %p.{struct}.{name}
"""
    return text


_DECLARED = """
ptr malloc(i64); void free(ptr); i32 feclearexcept(i32); i32 fegetenv(ptr); i32 fesetenv(ptr); i32 sigfillset(ptr);
i32 pthread_sigmask(i32, ptr, ptr); i32 pthread_create(ptr, ptr, ptr, ptr); i32 pthread_detach(ptr);
i32 pthread_attr_init(ptr); i32 pthread_attr_setstacksize(ptr, i64); i32 pthread_attr_destroy(ptr);
i32 pthread_mutex_init(ptr, ptr); i32 pthread_mutex_lock(ptr); i32 pthread_mutex_unlock(ptr);
i32 pthread_cond_init(ptr, ptr); i32 pthread_cond_signal(ptr); i32 pthread_cond_wait(ptr, ptr)
"""
FUNCTIONS = tuple(re.findall(r"(\w+)\(", _DECLARED))
"""C library functions that the code calls."""

STACK = 4 << 20  # bytes of a helper's stack, because some systems provide only 128 kB by default
WAIT = 4  # ratio of the time that a call spins for its helpers to the time that a helper spins for a call

_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "arm": ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"),
}
_VALUES = (
    *("ptr %kernel", "ptr %arrays", "ptr %steps", "i64 %states", "i64 0", "ptr null", "ptr null"),
    *("i64 %chunk", "i64 %total", "i64 %total", "i64 1", "i64 %helpers"),
)
_ONE_ROW = "".join(
    f"  %f.{name} = getelementptr i64, ptr %job, i64 {k}\n  store {value}, ptr %f.{name}\n"
    for k, (name, value) in enumerate(zip(Job._fields, _VALUES, strict=True))
)


def write_pool(family: str, set_mask: int) -> str:
    """Return the module of the pool.

    ``family`` is x86_64, arm or another processor, and ``set_mask`` is the system's SIG_SETMASK. The module contains
    ``loop``, which NumPy calls with a ``Compiled`` as data; ``share``, which computes a ``Job``; ``reset`` for a new
    process; ``pause``, which pauses a number of times; and ``spins``, the number of pauses before a helper sleeps.
    """
    declare_pause, pause = _PAUSES.get(family, ("", ""))
    counts = ("busy", "active", "sleepers", "towake", "waiting", "workers")
    starts = {"generation": "i64 0", "job": "ptr null"} | dict.fromkeys(counts, "i64 0")
    starts |= dict.fromkeys(("mutex", "ready", "done"), "[32 x i64] zeroinitializer")  # larger than on any system
    variables = "".join(f"@{name} = internal global {value}, align {ALIGN}\n" for name, value in starts.items())
    declared = "".join(f"declare {kind} @{rest}\n" for kind, rest in re.findall(r"(\w+) (\w+\(.*?\))", _DECLARED))
    zeros = "".join(f"  store i64 0, ptr @{name}\n" for name in counts)
    values: dict[str, object]
    values = {"taken": TAKEN, "joined": JOINED, "environment": ENVIRONMENT, "job_words": JOB_WORDS, "one_row": _ONE_ROW}
    values |= {"align": ALIGN, "align_mask": ALIGN - 1, "rounds": ROUNDS, "stack": STACK, "wait": WAIT}
    values |= {"declare_pause": declare_pause, "pause": pause, "declared": declared, "variables": variables}
    text = ir("pool", **values, zeros=zeros, set_mask=set_mask)
    return re.sub(r"^load (\w+): (.*)$", lambda line: _load(line[1], *line[2].split()), text, flags=re.MULTILINE)

"""LLVM code of the function that writes the constant entries of the outputs, once for each call of the loop.

Large sparse outputs have thousands of zeros. As single instructions they would dominate LLVM's compile time, so they
are a table of runs of equal neighbours, and the function is a loop over the table.
"""

from itertools import groupby

from torsor.compiler.llvm.rules import Scalar


def write_constants(numbers: dict[int, float], scalar: Scalar, width: int) -> str:
    """Return the function ``constants``, which writes a number to all lanes of each of the given output entries."""
    if not numbers:
        return "define void @constants(ptr %out) {\n  ret void\n}\n"
    runs = _runs({entry: scalar.literal(number) for entry, number in numbers.items()})
    vector, block = f"<{width} x {scalar.name}>", width * scalar.size
    first, last = (", ".join(f"i64 {run[k]}" for run in runs) for k in (0, 1))
    values = ", ".join(f"{scalar.name} {run[2]}" for run in runs)
    return f"""
@runs.first = internal constant [{len(runs)} x i64] [{first}]
@runs.last = internal constant [{len(runs)} x i64] [{last}]
@runs.value = internal constant [{len(runs)} x {scalar.name}] [{values}]
define void @constants(ptr %out) {{
entry:
  br label %run
run:
  %k = phi i64 [ 0, %entry ], [ %k.next, %after ]
  %first.p = getelementptr i64, ptr @runs.first, i64 %k
  %first = load i64, ptr %first.p
  %last.p = getelementptr i64, ptr @runs.last, i64 %k
  %last = load i64, ptr %last.p
  %value.p = getelementptr {scalar.name}, ptr @runs.value, i64 %k
  %value = load {scalar.name}, ptr %value.p
  %one = insertelement {vector} poison, {scalar.name} %value, i64 0
  %all = shufflevector {vector} %one, {vector} poison, <{width} x i32> zeroinitializer
  br label %body
body:
  %e = phi i64 [ %first, %run ], [ %e.next, %body ]
  %offset = mul i64 %e, {block}
  %p = getelementptr i8, ptr %out, i64 %offset
  store {vector} %all, ptr %p, align {block}
  %e.next = add i64 %e, 1
  %more = icmp sle i64 %e.next, %last
  br i1 %more, label %body, label %after
after:
  %k.next = add i64 %k, 1
  %over = icmp eq i64 %k.next, {len(runs)}
  br i1 %over, label %end, label %run
end:
  ret void
}}
"""


def _runs(texts: dict[int, str]) -> list[tuple[int, int, str]]:
    """Return (first entry, last entry, number) for each run of neighbouring entries with the same number.

    Example:
        >>> _runs({7: "0", 5: "0", 6: "0", 8: "1"})
        [(5, 7, '0'), (8, 8, '1')]
    """
    numbered = enumerate(sorted(texts))  # within a run, entry minus position is constant
    groups = groupby(numbered, key=lambda pair: (pair[1] - pair[0], texts[pair[1]]))
    runs = ([entry for _, entry in group] for _, group in groups)
    return [(run[0], run[-1], texts[run[0]]) for run in runs]

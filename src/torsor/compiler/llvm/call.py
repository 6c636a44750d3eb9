"""LLVM code of a Python function that computes one state without NumPy's gufunc machinery.

NumPy needs a microsecond to set up a loop, longer than the run time of most kernels. If all arguments are contiguous
and aligned arrays with matching type and shape, this function allocates the result and calls ``run`` directly. It
passes calls with other arrays to the gufunc, and all other calls (lists, tensors, masked arrays) to the Python object
of the kernel, which checks the arguments. It reads the fields of ``PyArrayObject`` declared in NumPy's headers.
"""

import math

from torsor.compiler.llvm.rules import Scalar

# Addresses in the running process that the code needs, in this order; ``gufunc`` fills the table.
ADDRESSES = (
    *("type of arrays", "description of the type", "PyArray_New", "PyObject_Vectorcall", "PyTuple_New"),
    *("PyTuple_SetItem", "Py_DecRef", "gufunc"),
)

# NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
_FLAGS = 0x101


def write_call(
    inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]], scalar: Scalar, type_number: int, head: int
) -> str:
    """Return the function ``call`` for the module of ``run``; ``head`` is the size of a Python object's header.

    It returns an array, or a tuple of arrays if there are several outputs.
    """
    count, several = len(inputs), len(outputs) > 1
    shapes = [*inputs, *outputs]
    distances = [scalar.size * math.prod(shape) for shape in shapes]  # of states; never 0, as there is one
    distances += [scalar.size * math.prod(shape[axis + 1 :]) for shape in shapes for axis in range(len(shape))]
    tables = (_table([*shape, 1]) for shape in outputs)
    output_shapes = "".join(f"@output.shape.{k} = internal constant {table}\n" for k, table in enumerate(tables))
    checks = "".join(_check(k, shape, head, k + 1 == count) for k, shape in enumerate(inputs))
    new = "".join(_new(k, shape, count, type_number, head, several) for k, shape in enumerate(outputs))
    make = (
        f"""{_address("tuple.new", 4)}  %tuple = call ptr %tuple.new(i64 {len(outputs)})
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %failed, label %new.0
"""
        if several
        else "  br label %new.0\n"
    )
    free = f"{_address('free', 6)}  call void %free(ptr %tuple)\n" if several else ""
    return f"""
@addresses = global [{len(ADDRESSES)} x ptr] zeroinitializer
@one.state = internal constant {_table([1])}
@distances = internal constant {_table(distances)}
{output_shapes}define ptr @call(ptr %self, ptr %args, i64 %nargs) {{
entry:
  %arrays = alloca ptr, i64 {len(shapes)}
{_address("array.type", 0)}{_address("number.type", 1)}  %complete = icmp eq i64 %nargs, {count}
  br i1 %complete, label %check.0, label %other
{checks}make:
{_address("new", 2)}{make}{new}new.{len(outputs)}:
  call void @run(ptr %arrays, ptr @one.state, ptr @distances)
  ret ptr {"%tuple" if several else "%out.0"}
incomplete:
{free}  br label %failed
failed:
  ret ptr null
other:
{_address("vectorcall", 3)}{_address("gufunc", 7)}  br i1 %complete, label %kind.0, label %checked
{"".join(_plain(k, head) for k in range(count))}kind.{count}:
  %result = call ptr %vectorcall(ptr %gufunc, ptr %args, i64 %nargs, ptr null)
  ret ptr %result
checked:
  %checked.result = call ptr %vectorcall(ptr %self, ptr %args, i64 %nargs, ptr null)
  ret ptr %checked.result
}}
"""


def _plain(k: int, head: int) -> str:
    """Return code that branches to ``checked`` unless argument k is an array with the expected dtype."""
    return f"""kind.{k}:
  %q.{k} = getelementptr ptr, ptr %args, i64 {k}
  %b.{k} = load ptr, ptr %q.{k}
  %q.type.{k} = getelementptr i8, ptr %b.{k}, i64 {head - 8}
  %b.type.{k} = load ptr, ptr %q.type.{k}
  %b.array.{k} = icmp eq ptr %b.type.{k}, %array.type
  br i1 %b.array.{k}, label %number.{k}, label %checked
number.{k}:
  %q.descr.{k} = getelementptr i8, ptr %b.{k}, i64 {head + 40}
  %b.descr.{k} = load ptr, ptr %q.descr.{k}
  %b.number.{k} = icmp eq ptr %b.descr.{k}, %number.type
  br i1 %b.number.{k}, label %kind.{k + 1}, label %checked
"""


def _address(name: str, k: int) -> str:
    """Return code that loads address k of the table."""
    return f"""  %p.{name} = getelementptr ptr, ptr @addresses, i64 {k}
  %{name} = load ptr, ptr %p.{name}
"""


def _new(k: int, shape: tuple[int, ...], inputs: int, type_number: int, head: int, several: bool) -> str:
    """Return code that allocates output k, records its address, and adds it to the tuple, if any."""
    defaults = "ptr null, ptr null, i32 0, i32 0, ptr null"  # strides, data, item size, flags, base object
    keep = f"{_address(f'put.{k}', 5)}  %kept.{k} = call i32 %put.{k}(ptr %tuple, i64 {k}, ptr %out.{k})\n"
    return f"""new.{k}:
  %out.{k} = call ptr %new(ptr %array.type, i32 {len(shape)}, ptr @output.shape.{k}, i32 {type_number}, {defaults})
  %no.out.{k} = icmp eq ptr %out.{k}, null
  br i1 %no.out.{k}, label %incomplete, label %made.{k}
made.{k}:
  %p.data.out.{k} = getelementptr i8, ptr %out.{k}, i64 {head}
  %data.out.{k} = load ptr, ptr %p.data.out.{k}
  %slot.out.{k} = getelementptr ptr, ptr %arrays, i64 {inputs + k}
  store ptr %data.out.{k}, ptr %slot.out.{k}
{keep if several else ""}  br label %new.{k + 1}
"""


def _table(numbers: list[int]) -> str:
    return f"[{len(numbers)} x i64] [{', '.join(f'i64 {number}' for number in numbers)}]"


def _check(k: int, shape: tuple[int, ...], head: int, last: bool) -> str:
    """Return the checks of one argument: Python type, dtype and number of axes, and their lengths."""

    def field(name: str, kind: str, offset: int) -> str:
        return f"""  %p.{name}.{k} = getelementptr i8, ptr %a.{k}, i64 {offset}
  %{name}.{k} = load {kind}, ptr %p.{name}.{k}
"""

    offsets = (("data", "ptr", 0), ("axes", "i32", 8), ("shape", "ptr", 16), ("descr", "ptr", 40), ("flags", "i32", 48))
    fields = "".join(field(name, kind, head + offset) for name, kind, offset in offsets)
    code = f"""check.{k}:
  %p.{k} = getelementptr ptr, ptr %args, i64 {k}
  %a.{k} = load ptr, ptr %p.{k}
{field("type", "ptr", head - 8)}  %is.array.{k} = icmp eq ptr %type.{k}, %array.type
  br i1 %is.array.{k}, label %fields.{k}, label %other
fields.{k}:
{fields}  %set.{k} = and i32 %flags.{k}, {_FLAGS}
  %dense.{k} = icmp eq i32 %set.{k}, {_FLAGS}
  %right.axes.{k} = icmp eq i32 %axes.{k}, {len(shape)}
  %right.type.{k} = icmp eq ptr %descr.{k}, %number.type
  %both.{k} = and i1 %right.axes.{k}, %right.type.{k}
  %plain.{k} = and i1 %both.{k}, %dense.{k}
  br i1 %plain.{k}, label %lengths.{k}, label %other
lengths.{k}:
"""
    condition = "true"
    for axis, length in enumerate(shape):
        code += f"""  %pl.{k}.{axis} = getelementptr i64, ptr %shape.{k}, i64 {axis}
  %l.{k}.{axis} = load i64, ptr %pl.{k}.{axis}
  %e.{k}.{axis} = icmp eq i64 %l.{k}.{axis}, {length}
  %c.{k}.{axis} = and i1 %e.{k}.{axis}, {condition}
"""
        condition = f"%c.{k}.{axis}"
    return (
        code
        + f"""  %slot.{k} = getelementptr ptr, ptr %arrays, i64 {k}
  store ptr %data.{k}, ptr %slot.{k}
  br i1 {condition}, label %{"make" if last else f"check.{k + 1}"}, label %other
"""
    )

"""CasADi functions as C99 source: a header, a source file that needs nothing but libm, and a CMakeLists.txt.

Each operation is one statement, and the CMake file compiles with ``-ffp-contract=off``, so that products and sums are
not fused and results are those of the CasADi virtual machine. (GCC without ``-std=c99`` fuses across statements
otherwise.) A long function is divided into pieces, because the compile time grows faster than the length of a function;
values that a later piece uses are stored in an array on the stack.
"""

import heapq
import math
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import casadi as ca

from torsor.compiler.c.rules import C_RULES, HELPERS, KEYWORDS, CScalar, Names, in_scalars
from torsor.compiler.count import count_operations
from torsor.compiler.program import Operation, Program, read_program

DTYPES = ("float64", "float32")
PIECE = 1500  # operations in the longest piece
_FREE = {ca.OP_INPUT, ca.OP_CONST}
_MARK = "Written by Torsor"
_TARGETS = {"all", "clean", "depend", "help", "install", "m", "package", "test"}  # CMake has its own meaning for these
# NAME.h of the folder would hide these headers of the C library, of any standard, from all files that include both.
_HEADERS = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbit
stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
alloca cpio dirent dlfcn endian fcntl features fmtmsg fnmatch ftw glob grp iconv langinfo libgen malloc memory monetary
mqueue ndbm netdb nl_types poll pthread pwd regex sched search semaphore spawn strings stropts syslog tar termios ulimit
unistd utime utmpx values varargs wordexp
"""


def export_c(
    functions: Sequence[ca.Function] | Mapping[str, ca.Function],
    path: str | Path,
    dtype: str = "float64",
    name: str = "torsor_kernels",
) -> list[Path]:
    """Write CasADi functions as C99 into a folder: ``NAME.h``, ``NAME.c`` and ``CMakeLists.txt``; return their paths.

    Each function becomes ``void FUNCTION(const double input[n], ..., double output[m])``, matrices row by row, with the
    name of the CasADi function or its key in a mapping, changed if it is not allowed in C. The code does not allocate
    memory, has no state and calls libm only; outputs must not overlap inputs. ``dtype`` is float64 or float32. The
    folder is created if it does not exist; files that Torsor did not write are not replaced.

    Example:
        >>> import tempfile
        >>> x = ca.SX.sym("x", 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = export_c([ca.Function("norm", [x], [ca.norm_2(x)], ["x"], ["length"])], folder)
        ...     [line for line in files[0].read_text().splitlines() if line.startswith("void")]
        ['void norm(const double x[2], double length[1]);']
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}; allowed: {', '.join(DTYPES)}")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in _TARGETS:
        taken = ", ".join(sorted(_TARGETS))
        raise ValueError(f"name is {name!r}; allowed: letters, digits and _, a letter first, none of {taken}")
    if name.lower() in _HEADERS.split():  # many file systems do not distinguish capitals
        found = f"name is {name!r}: {name}.h would hide the header <{name.lower()}.h> of the C library"
        raise ValueError(f"{found}; allowed: other names; fix: name={name + '_kernels'!r}, for example")
    if name in KEYWORDS:
        raise ValueError(f"name is {name!r}, a keyword of C; allowed: other names; fix: add letters to it")
    names = Names({name.upper() + "_H"})
    kernels = [_Kernel(names.new(title), title, each, CScalar(dtype)) for title, each in _with_names(functions)]
    texts = {f"{name}.h": _header(name, kernels, names), f"{name}.c": _source(name, kernels, names)}
    return _write_all(Path(path), texts | {"CMakeLists.txt": _CMAKE.replace("NAME", name)})


def _with_names(functions: Sequence[ca.Function] | Mapping[str, ca.Function]) -> list[tuple[str, ca.Function]]:
    """Return the functions with their names, or raise an error that describes what is wrong."""
    if not isinstance(functions, Iterable):
        raise ValueError(f"functions is {functions!r}; allowed: a list, or a mapping from names; fix: make it a list")
    items = list(functions.items()) if isinstance(functions, Mapping) else [(None, each) for each in functions]
    if not items:
        raise ValueError("no functions are given; allowed: one or more CasADi functions; fix: name those to be written")
    found: dict[str, ca.Function] = {}
    for key, function in items:
        if not isinstance(function, ca.Function):
            raise ValueError(f"{function!r} is among the functions; allowed: CasADi functions; fix: leave it out")
        title = function.name() if key is None else key
        if not isinstance(title, str):
            raise ValueError(f"a function is named {title!r}; allowed: a string; fix: name it by one")
        if title in found:
            fix = "give a mapping from names of your choice to the functions"
            raise ValueError(f"two functions are named {title!r}; allowed: each name once; fix: {fix}")
        found[title] = function
    return list(found.items())


class _Array(NamedTuple):
    """An argument: its name in C, its original name, its size, and whether it is an output."""

    name: str
    title: str
    size: tuple[int, int]
    output: bool

    def declared(self, scalar: CScalar, qualifier: str = "") -> str:
        """Return the parameter declaration; C has no arrays of length 0."""
        kind, length = scalar.name if self.output else f"const {scalar.name}", math.prod(self.size)
        return f"{kind} {self.name}[{qualifier}{length}]" if length else f"{kind} *{qualifier}{self.name}"


def _arguments_of(operation: Operation) -> tuple[int, ...]:
    """Return the values that an operation needs."""
    return () if operation.code in _FREE else operation.arguments


def _pieces(program: Program) -> list[list[int]]:
    """Return the operations that are needed, cut into pieces of about equal length."""
    needed = {index for output in program.results for index in output if index is not None}
    for index in range(len(program.operations) - 1, -1, -1):
        if index in needed:
            needed.update(_arguments_of(program.operations[index]))
    order = [index for index in sorted(needed) if program.operations[index].code not in _FREE]
    count = max(1, -(-len(order) // PIECE))
    return [order[len(order) * k // count : len(order) * (k + 1) // count] for k in range(count)]


def _places(born: Iterable[tuple[int, int]], ends: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """Return a place for each value, and the number of places, given the times of its creation and of its end.

    From the time of its end on, the place may be reused.
    """
    places, free, busy, count = dict[int, int](), list[int](), list[tuple[int, int]](), 0
    for value, time in born:
        while busy and busy[0][0] <= time:
            free.append(heapq.heappop(busy)[1])
        places[value] = free.pop() if free else count
        count = max(count, places[value] + 1)
        heapq.heappush(busy, (ends[value], places[value]))
    return places, count


class _Kernel:
    """A function that is written in C. ``touched`` are the arrays in the statements written so far."""

    def __init__(self, name: str, title: str, function: ca.Function, scalar: CScalar):
        self.name, self.title, self.scalar = name, title, scalar
        function = in_scalars(title, function)
        self.program = program = read_program(function)
        self.counts = ", ".join(f"{count} {kind}" for kind, count in count_operations(function)._asdict().items())
        self.touched: set[str] = set()
        names = Names()
        # Most functions of Torsor have one output, which has the name of the function.
        wanted = [*function.name_in(), *("out" if each == function.name() else each for each in function.name_out())]
        titles, sizes = [*function.name_in(), *function.name_out()], [*program.inputs, *program.outputs]
        self.arrays = [_Array(names.new(w), titles[k], sizes[k], k >= function.n_in()) for k, w in enumerate(wanted)]
        self.targets: dict[int | None, list[str]] = {}  # the output elements where a value is stored
        for array, entries in zip(self.arrays[function.n_in() :], program.results, strict=True):
            for entry, index in enumerate(entries):
                self.targets.setdefault(index, []).append(f"{array.name}[{entry}]")
        self.pieces = _pieces(program)
        home = {index: number for number, piece in enumerate(self.pieces) for index in piece}
        # Values that a later piece uses have a place in the scratch array, until the piece after their last use.
        ends = {a: n + 1 for i, n in home.items() for a in _arguments_of(program.operations[i]) if home.get(a, n) < n}
        self.slots, self.scratch = _places(((index, home[index]) for index in home if index in ends), ends)

    def declared(self, qualifier: str = "") -> str:
        """Return the declaration of the function."""
        return f"void {self.name}({', '.join(each.declared(self.scalar, qualifier) for each in self.arrays) or 'void'})"

    def _element(self, text: str) -> str:
        self.touched.add(text.split("[")[0])
        return text

    def _value(self, index: int) -> str:
        """Return the text of a value that is not in a local variable: a literal, an input or an element of scratch."""
        operation = self.program.operations[index]
        if operation.code == ca.OP_CONST:
            return self.scalar.literal(operation.number)
        if operation.code == ca.OP_INPUT:
            return self._element(f"{self.arrays[operation.arguments[0]].name}[{operation.arguments[1]}]")
        return self._element(f"s[{self.slots[index]}]")

    def copies(self) -> list[str]:
        """Return the statements for outputs that are constants or inputs."""
        lines = []
        for index, targets in self.targets.items():
            if index is None or self.program.operations[index].code in _FREE:
                text = self.scalar.literal(0.0) if index is None else self._value(index)
                lines += [f"    {self._element(target)} = {text};" for target in targets]
        return lines

    def statements(self, piece: list[int]) -> list[str]:
        """Return the statements of a piece; local variables are reused."""
        last = {argument: index for index in piece for argument in _arguments_of(self.program.operations[index])}
        targets = {index: list(self.targets.get(index, [])) for index in piece}
        for index in piece:
            targets[index] += [f"s[{self.slots[index]}]"] if index in self.slots else []
        local = [index for index in piece if index in last or len(targets[index]) > 1]
        places, _ = _places(((index, index) for index in local), {index: last.get(index, index + 1) for index in local})
        lines, declared = [], set[int]()
        for index in piece:
            operation = self.program.operations[index]
            arguments = [f"w{places[a]}" if a in places else self._value(a) for a in _arguments_of(operation)]
            expression = C_RULES[operation.code](self.scalar, *arguments)
            if index in places:
                kind = "" if places[index] in declared else f"{self.scalar.name} "
                lines.append(f"    {kind}w{places[index]} = {expression};")
                declared.add(places[index])
                expression = f"w{places[index]}"
            lines += [f"    {self._element(target)} = {expression};" for target in targets[index]]
        return lines


def _comment(*lines: str) -> str:
    """Return a comment; characters that could end it or are not ASCII are replaced."""
    return "/* " + "\n * ".join(re.sub(r"[^A-Za-z0-9_ .,:;()<>-]", "_", line) for line in lines) + " */\n"


def _header(name: str, kernels: list[_Kernel], names: Names) -> str:
    guard = f"{name.upper()}_H"
    about = f"{_MARK}. Matrices lie row by row. Outputs must not overlap inputs. Nothing is allocated or kept."
    parts = [f'{_comment(about)}#ifndef {guard}\n#define {guard}\n\n#ifdef __cplusplus\nextern "C" {{\n#endif\n']
    for kernel in kernels:
        lines, sizes = [f"{kernel.title}. Operations: {kernel.counts}."], []
        for each in kernel.arrays:
            way, title = "out" if each.output else "in", "" if each.title == each.name else f": {each.title}"
            lines.append(f"  {each.name}, {each.size[0]} x {each.size[1]}, {way}{title}")
            sizes.append(f"    {names.new(f'{kernel.name}_{each.name}_SIZE'.upper())} = {math.prod(each.size)}")
        enum = "enum {\n" + ",\n".join(sizes) + "\n};\n" if sizes else ""
        parts.append(f"{_comment(*lines)}{kernel.declared()};\n{enum}")
    return "\n".join([*parts, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"])


def _source(name: str, kernels: list[_Kernel], names: Names) -> str:
    codes = {operation.code for kernel in kernels for operation in kernel.program.operations}
    parts = [
        _comment(f"{_MARK}. A statement is one operation; -ffp-contract=off keeps it so.")
        + f'#include "{name}.h"\n\n#include <math.h>\n'
    ]
    if any(len(kernel.pieces) > 1 for kernel in kernels):
        # A compiler that inlined the pieces would take as long as for one long function.
        kept = "static __attribute__((noinline))"
        parts.append(f"#ifdef __GNUC__\n#define TORSOR_PIECE {kept}\n#else\n#define TORSOR_PIECE static\n#endif\n")
    parts += [HELPERS[code](kernels[0].scalar) for code in sorted(codes & HELPERS.keys())]
    return "\n".join([*parts, *(_definition(kernel, names) for kernel in kernels)])


def _definition(kernel: _Kernel, names: Names) -> str:
    """Return the definition of a function, after those of its pieces if it is long."""
    text, lines, touched = "", kernel.copies(), set(kernel.touched)
    for number, piece in enumerate(kernel.pieces):
        kernel.touched.clear()
        statements = kernel.statements(piece)
        touched |= kernel.touched
        if len(kernel.pieces) == 1:
            lines += statements
            continue
        called = names.new(f"{kernel.name}_piece_{number}")
        arrays = [*kernel.arrays, _Array("s", "", (kernel.scratch, 1), True)]
        passed = [each for each in arrays if each.name in kernel.touched]
        head = ", ".join(each.declared(kernel.scalar, "restrict ") for each in passed)
        text += f"TORSOR_PIECE void {called}({head})\n{{\n" + "\n".join(statements) + "\n}\n\n"
        lines.append(f"    {called}({', '.join(each.name for each in passed)});")
    if kernel.scratch:
        lines.insert(0, f"    {kernel.scalar.name} s[{kernel.scratch}];")
    lines += [f"    (void){each.name};" for each in kernel.arrays if each.name not in touched]
    return text + f"{kernel.declared('restrict ')}\n{{\n" + "".join(line + "\n" for line in lines) + "}\n"


_CMAKE = f"""# {_MARK}.
cmake_minimum_required(VERSION 3.13...3.31)
project(NAME LANGUAGES C)
include(GNUInstallDirs)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_library(NAME STATIC NAME.c)
set_target_properties(NAME PROPERTIES
  C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON PUBLIC_HEADER NAME.h)
target_include_directories(NAME PUBLIC
  $<BUILD_INTERFACE:${{CMAKE_CURRENT_SOURCE_DIR}}> $<INSTALL_INTERFACE:${{CMAKE_INSTALL_INCLUDEDIR}}>)
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang|IntelLLVM")
  target_compile_options(NAME PRIVATE -ffp-contract=off)
endif()
if(UNIX)
  target_link_libraries(NAME PUBLIC m)
endif()
install(TARGETS NAME
  ARCHIVE DESTINATION ${{CMAKE_INSTALL_LIBDIR}} PUBLIC_HEADER DESTINATION ${{CMAKE_INSTALL_INCLUDEDIR}})
"""


def _write_all(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files under temporary names and then rename them, so that no file is ever incomplete."""
    parts: dict[Path, Path] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in texts:
            file = folder / each
            if file.exists() and _MARK not in file.read_text(errors="replace")[:200]:
                found = "is there and was not written by Torsor; allowed: files that were"
                raise ValueError(f"{file}: {found}; fix: choose another folder")
        for each, text in texts.items():
            parts[folder / each] = folder / f".{each}.{secrets.token_hex(4)}.part"
            parts[folder / each].write_bytes(text.encode("ascii"))
        for file, part in parts.items():
            part.replace(file)
    except OSError as error:
        raise ValueError(f"cannot write to {folder}: {error}; allowed: a folder; fix: choose another") from error
    finally:
        for part in parts.values():
            if part.exists():
                part.unlink()
    return list(parts)

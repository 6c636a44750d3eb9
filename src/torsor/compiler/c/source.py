"""CasADi functions as C99 source: a header, a source file that needs nothing but libm, and a CMakeLists.txt.

Each operation is one statement, and the CMake file compiles with ``-ffp-contract=off``, so that products and sums are
not fused and results are those of the CasADi virtual machine. (GCC without ``-std=c99`` fuses across statements
otherwise.) The scratch array of a long function, which is divided into pieces, is on the stack.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import casadi as ca

from torsor.compiler.c.rules import C_RULES, HELPERS, KEYWORDS, CScalar, c_names
from torsor.compiler.coverage import in_scalars
from torsor.compiler.source.about import MARK, About, comment
from torsor.compiler.source.files import write_all
from torsor.compiler.source.kernel import SCRATCH, ArrayArgument, SourceKernel
from torsor.compiler.source.names import Names, with_names

DTYPES = ("float64", "float32")
PIECE = 1500  # operations in the longest piece
# CMake has its own meaning for these.
_TARGETS = {
    *("all", "clean", "depend", "edit_cache", "help", "install", "list_install_components", "m", "package"),
    *("package_source", "preinstall", "rebuild_cache", "test"),
}
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
    about: About | None = None,
    overwrite: bool = True,
) -> list[Path]:
    """Write CasADi functions as C99 into a folder: ``NAME.h``, ``NAME.c`` and ``CMakeLists.txt``; return their paths.

    Each function becomes ``void FUNCTION(const double input[n], ..., double output[m])``, matrices row by row, with the
    name of the CasADi function or its key in a mapping, changed if it is not allowed in C. The code does not allocate
    memory, has no state and calls libm only; outputs must not overlap inputs. ``dtype`` is float64 or float32. The
    folder is created if it does not exist; files that Torsor did not write are not replaced, and with
    ``overwrite=False`` no file is. ``about`` goes into the comments of the header.

    Example:
        >>> import tempfile
        >>> x = ca.SX.sym("x", 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = export_c([ca.Function("norm", [x], [ca.norm_2(x)], ["x"], ["length"])], folder)
        ...     [line for line in files[0].read_text().splitlines() if line.startswith("void")]
        ['void norm(const double x[2], double length[1]);']
    """
    texts, _ = c_texts(functions, dtype, name, about or About())
    return write_all(Path(path), texts, overwrite)


def c_texts(
    functions: Sequence[ca.Function] | Mapping[str, ca.Function], dtype: str, name: str, about: About, more: str = ""
) -> tuple[dict[str, str], list[SourceKernel]]:
    """Return the files that ``export_c`` writes, by name, and the functions in them.

    ``more`` is another header, which the CMake file installs beside that of C.
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
    names, scalar = c_names({name.upper() + "_H"}), CScalar(dtype)
    kernels = [
        SourceKernel(names.new(title), title, each, scalar, _arguments(each), PIECE)
        for title, each in ((title, in_scalars(title, each, C_RULES)) for title, each in with_names(functions))
    ]
    header = _header(name, kernels, scalar, names, about)
    cmake = _CMAKE.replace("HEADERS", ";".join([f"{name}.h", *filter(None, [more])])).replace("NAME", name)
    return {f"{name}.h": header, f"{name}.c": _source(name, kernels, scalar, names), "CMakeLists.txt": cmake}, kernels


def _arguments(function: ca.Function) -> list[str]:
    """Return the names of the arguments. Most functions of Torsor have one output, named as the function: ``out``."""
    names = c_names()
    results = ("out" if each == function.name() else each for each in function.name_out())
    return [names.new(each) for each in (*function.name_in(), *results)]


def _declared(each: ArrayArgument, scalar: CScalar, qualifier: str = "") -> str:
    """Return the declaration of a parameter; C has no arrays of length 0."""
    kind = scalar.name if each.output else f"const {scalar.name}"
    return f"{kind} {each.name}[{qualifier}{each.length}]" if each.length else f"{kind} *{qualifier}{each.name}"


def _head(kernel: SourceKernel, scalar: CScalar, qualifier: str = "") -> str:
    """Return the declaration of a function."""
    return f"void {kernel.name}({', '.join(_declared(each, scalar, qualifier) for each in kernel.arrays) or 'void'})"


def remarks(kernel: SourceKernel, about: About) -> str:
    """Return the comment before a function: what it returns, and what its arguments are."""
    lines = [f"{kernel.title}. Operations: {kernel.counts}."]
    lines += [about.results[kernel.title]] if kernel.title in about.results else []
    for each in kernel.arrays:
        way, title = "out" if each.output else "in", "" if each.title == each.name else f": {each.title}"
        meaning = f": {about.arguments[each.title]}" if each.title in about.arguments else ""
        lines.append(f"  {each.name}, {each.size[0]} x {each.size[1]}, {way}{title}{meaning}")
    return comment(*lines)


def _header(name: str, kernels: list[SourceKernel], scalar: CScalar, names: Names, about: About) -> str:
    guard = f"{name.upper()}_H"
    what = f"{MARK}. Matrices lie row by row. Outputs must not overlap inputs. Nothing is allocated or kept."
    top = comment(what, *about.lines)
    parts = [f'{top}#ifndef {guard}\n#define {guard}\n\n#ifdef __cplusplus\nextern "C" {{\n#endif\n']
    for kernel in kernels:
        sizes = [
            f"    {names.new(f'{kernel.name}_{each.name}_SIZE'.upper())} = {each.length}" for each in kernel.arrays
        ]
        enum = "enum {\n" + ",\n".join(sizes) + "\n};\n" if sizes else ""
        parts.append(f"{remarks(kernel, about)}{_head(kernel, scalar)};\n{enum}")
    return "\n".join([*parts, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"])


def _source(name: str, kernels: list[SourceKernel], scalar: CScalar, names: Names) -> str:
    codes = set[int]().union(*(kernel.operations for kernel in kernels))
    definitions = [_definition(kernel, scalar, names) for kernel in kernels]
    parts = [
        comment(f"{MARK}. A statement is one operation; -ffp-contract=off keeps it so.")
        + f'#include "{name}.h"\n\n#include <math.h>\n',
        _PLUS_PLUS,
    ]
    if any("TORSOR_PIECE" in each for each in definitions):
        # A compiler that inlined the pieces would take as long as for one long function.
        kept = "static __attribute__((noinline))"
        parts.append(f"#ifdef __GNUC__\n#define TORSOR_PIECE {kept}\n#else\n#define TORSOR_PIECE static\n#endif\n")
    parts += filter(None, dict.fromkeys(HELPERS[code](scalar) for code in sorted(codes & HELPERS.keys())))
    return "\n".join([*parts, *definitions])


def _definition(kernel: SourceKernel, scalar: CScalar, names: Names) -> str:
    """Return the definition of a function, after those of its pieces if it is long."""
    constants, copies, pieces = kernel.constants(), kernel.copies(), kernel.pieces()
    text, lines = "", kernel.constant_lines(constants) + copies.lines
    for number, piece in enumerate(pieces):
        if len(pieces) == 1:
            lines += piece.lines
            continue
        called = names.new(f"{kernel.name}_piece_{number}")
        arrays = [*kernel.arrays, ArrayArgument(SCRATCH, "", (kernel.scratch, 1), True)]
        passed = [each for each in arrays if each.name in piece.touched]
        head = ", ".join(_declared(each, scalar, "restrict ") for each in passed)
        text += f"TORSOR_PIECE void {called}({head})\n{{\n" + "\n".join(piece.lines) + "\n}\n\n"
        lines.append(f"    {called}({', '.join(each.name for each in passed)});")
    if kernel.scratch:
        lines.insert(0, f"    {scalar.name} {SCRATCH}[{kernel.scratch}];")
    touched = copies.touched.union({array for array, _, _ in constants}, *(piece.touched for piece in pieces))
    lines += [f"    (void){each.name};" for each in kernel.arrays if each.name not in touched]
    return text + f"{_head(kernel, scalar, 'restrict ')}\n{{\n" + "".join(line + "\n" for line in lines) + "}\n"


_PLUS_PLUS = """#ifdef __cplusplus /* commands of C++ compilers take this file for C++, which does not know the word */
#define restrict
#endif
"""

_CMAKE = f"""# {MARK}.
cmake_minimum_required(VERSION 3.13...3.31)
project(NAME LANGUAGES C)
include(GNUInstallDirs)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_library(NAME STATIC NAME.c)
set_target_properties(NAME PROPERTIES
  C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON PUBLIC_HEADER "HEADERS")
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

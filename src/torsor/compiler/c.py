"""CasADi functions as C99 source."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import casadi as ca

from torsor.base.errors import ModelError
from torsor.compiler import source
from torsor.compiler.llvm.rules import Scalar
from torsor.compiler.program import in_scalars
from torsor.compiler.source import MARK, About, ArrayArgument, Language, Names, Rule, SourceKernel, comment, infix

# Single-precision sines and cosines in C: a range reduction and two short polynomials instead of sinf and cosf.
#
# The sinf of newlib takes about 190 cycles on a Cortex-M4F, which would be three quarters of the inverse dynamics of an
# arm. This function takes 70 cycles. k quarter turns are subtracted in three parts of pi/2 (Cody and Waite 1980), of
# which the first two are so short that their products with k are exact. The polynomials for |r| <= pi/4 are those of
# the machine code. Results are the same on every processor unless multiplications and additions are fused. Larger
# angles, infinities and NaN are passed to the C library.

_MAX_ANGLE = 1000.0  # rad; up to this angle, k has at most 10 bits
_HALF_PI = (1.5703125, 0.00048375129699707031, 7.549790126404332e-08)  # 8 bits, 11 bits and the remaining bits


def _sine(literal: Callable[[float], str]) -> str:
    """Return the C function ``torsor_sine`` of sin(x + quarter pi/2), which is the cosine for quarter = 1."""
    single, (first, second, third), largest = Scalar("float32"), map(literal, _HALF_PI), literal(_MAX_ANGLE)
    sine = source.polynomial(literal, *single.sin_terms)
    cosine = source.polynomial(literal, *single.cos_terms, -0.5, 1.0)
    half = literal(0.5)
    return f"""/* sin(x + quarter pi/2), quarter = 0 or 1 */
static float torsor_sine(float x, int quarter)
{{
    int k;
    float turns, r, z, y;
    if (!(x > -{largest} && x < {largest})) {{
        return quarter ? cosf(x) : sinf(x);
    }}
    k = (int)(x * {literal(0.6366197723675814)} + (x < {literal(0.0)} ? -{half} : {half}));
    turns = (float)k;
    r = ((x - turns * {first}) - turns * {second}) - turns * {third};
    z = r * r;
    k += quarter;
    y = k & 1 ? {cosine} : r + r * z * {sine};
    return k & 2 ? -y : y;
}}
"""


# C99 expressions: literals, identifiers, and one rule per CasADi operation.
#
# The CasADi virtual machine defines every operation. Numbers with an exact decimal form of at most this many characters
# are written in decimal, and all others in hexadecimal.
_FEW_DIGITS = 12


class CScalar(Language):
    """A C floating-point type with its literals and libm functions; arrays named in ``integers`` are ``uint32_t``."""

    special = "NAN", "INFINITY"

    def __init__(self, dtype: str, integers: Collection[str] = ()):
        super().__init__(dtype, C_RULES)
        self.integers = integers
        self.name, self.suffix = ("double", "") if self.double else ("float", "f")
        self.local = f"{self.name} "

    def digits(self, number: float) -> str:
        """Return the text of a number.

        C99 guarantees that a hexadecimal number is read exactly; a decimal number may be rounded to a neighbour.
        """
        digits = repr(number)
        exact = len(digits) <= _FEW_DIGITS and Decimal(digits) == Decimal(number)
        if not exact:
            base_16, exponent = number.hex().split("p")
            digits = f"{base_16.rstrip('0').rstrip('.')}p{exponent}"
        return digits + self.suffix

    def element(self, array: str, entry: int) -> str:
        """Return the element of an argument, or of the scratch array, as a floating-point number."""
        return f"({self.name})" * (array in self.integers) + super().element(array, entry)

    def call(self, function: str, *arguments: str) -> str:
        """Return a call to a libm function."""
        return f"{function}{self.suffix}({', '.join(arguments)})"


def _library(name: str) -> Rule:
    return lambda t, *arguments: t.call(name, *arguments)


def _logic(operator: str) -> Rule:
    # NaN is true, because it is not equal to 0.
    return lambda t, a, b: f"{a} != {t.literal(0.0)} {operator} {b} != {t.literal(0.0)}"


_LIBRARY = """
pow sqrt fabs floor ceil copysign fmod remainder hypot exp expm1 log log1p tan asin acos atan atan2 sinh cosh tanh
asinh acosh atanh erf
"""
C_RULES: dict[int, Rule] = {
    **source.RULES,
    **source.rules(_LIBRARY, _library),
    # Zeros and NaN are returned unchanged.
    ca.OP_SIGN: lambda t, a: "{a} < {0} ? -{1} : ({a} > {0} ? {1} : {a})".format(t.literal(0.0), t.literal(1.0), a=a),
    ca.OP_LT: infix("<"),
    ca.OP_LE: infix("<="),
    ca.OP_EQ: infix("=="),
    ca.OP_NE: infix("!="),
    ca.OP_NOT: lambda t, a: f"{a} == {t.literal(0.0)}",
    ca.OP_AND: _logic("&&"),
    ca.OP_OR: _logic("||"),
    ca.OP_IF_ELSE_ZERO: lambda t, a, b: f"{a} == {t.literal(0.0)} ? {t.literal(0.0)} : {b}",
    ca.OP_CONSTPOW: _library("pow"),
    # Of equal numbers, the first is returned, as in the LLVM rules; for 0.0 and -0.0, CasADi returns the result of the
    # C library.
    ca.OP_FMIN: lambda t, a, b: f"{b} < {a} || {a} != {a} ? {b} : {a}",
    ca.OP_FMAX: lambda t, a, b: f"{b} > {a} || {a} != {a} ? {b} : {a}",
    ca.OP_SIN: lambda t, a: t.call("sin", a) if t.double else f"torsor_sine({a}, 0)",
    ca.OP_COS: lambda t, a: t.call("cos", a) if t.double else f"torsor_sine({a}, 1)",
    ca.OP_ERFINV: lambda t, a: f"torsor_erfinv({a})",
}
"""The rule of each CasADi operation."""


def _erfinv(t: CScalar) -> str:
    """Return the C function for the inverse of erf as in CasADi: a rational approximation and two Newton steps."""
    real, one, two, slope = t.name, t.literal(1.0), t.literal(2.0), t.literal(source.SLOPE)
    edges = f"""    if (x >= {one}) return x == {one} ? INFINITY : NAN;
    if (x <= -{one}) return x == -{one} ? -INFINITY : NAN;"""
    root = f"z = {t.call('sqrt', '-' + t.call('log', f'({one} {{sign}} x) / {two}'))};"
    step = f"y = y - ({t.call('erf', 'y')} - x) / ({slope} * {t.call('exp', '-y * y')});"
    return f"""/* The inverse of erf. */
static {real} torsor_erfinv({real} x)
{{
    {real} y, z;
{source.erfinv(t.literal, edges, root, step)}
}}
"""


def _helpers(t: CScalar, codes: set[int]) -> list[str]:
    """Return the C functions for operations with these codes that libm lacks or computes more slowly."""
    sine = [_sine(t.literal)] if not t.double and codes & {ca.OP_SIN, ca.OP_COS} else []
    return sine + ([_erfinv(t)] if ca.OP_ERFINV in codes else [])


_WORDS = source.reserved_words("c")
KEYWORDS = _WORDS["keywords"]
_RESERVED = {*KEYWORDS, *_WORDS["other"], *(name + suffix for name in _WORDS["math"] for suffix in ("", "f", "l"))}


def c_names(taken: Iterable[str] = ()) -> Names:
    """Return a generator of unique identifiers that are not reserved in C, C++ or the C library."""
    return Names(source.words, _RESERVED, taken)


# CasADi functions as C99 source: a header, a source file that needs only libm, and a CMakeLists.txt.
#
# Each operation is one statement, and the CMake file sets ``-ffp-contract=off``, so products and sums are not fused and
# results are those of the CasADi virtual machine. (Otherwise, GCC without ``-std=c99`` fuses across statements.) A long
# function is divided into pieces, and its scratch array is on the stack.


def export_c(
    functions: Sequence[ca.Function] | Mapping[str, ca.Function],
    path: str | Path,
    dtype: str = "float64",
    name: str = "torsor_kernels",
    about: About | None = None,
    overwrite: bool = True,
    integers: Collection[str] = (),
) -> list[Path]:
    """Write CasADi functions as C99 into a folder: ``NAME.h``, ``NAME.c`` and ``CMakeLists.txt``; return their paths.

    Each function becomes ``void FUNCTION(const double input[n], ..., double output[m])``, with matrices in row-major
    order. It is named after the CasADi function or its key in a mapping; invalid C names are changed. The code
    allocates no memory, has no state and calls only libm. Outputs must not overlap inputs. ``dtype`` is float64 or
    float32. The folder is created if it does not exist. Files not written by Torsor are never replaced. With
    ``overwrite=False``, an existing file raises ModelError. ``about`` is written to the comments of the header.
    Inputs named in ``integers`` have the type ``uint32_t``.

    Example:
        >>> import tempfile
        >>> x = ca.SX.sym("x", 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = export_c([ca.Function("norm", [x], [ca.norm_2(x)], ["x"], ["length"])], folder)
        ...     [line for line in files[0].read_text().splitlines() if line.startswith("void")]
        ['void norm(const double x[2], double length[1]);']
    """
    texts, _ = c_texts(functions, dtype, name, about or About(), integers=integers)
    return source.write_all(Path(path), texts, overwrite)


def c_texts(
    functions: Sequence[ca.Function] | Mapping[str, ca.Function],
    dtype: str,
    name: str,
    about: About,
    more: str = "",
    integers: Collection[str] = (),
) -> tuple[dict[str, str], list[SourceKernel]]:
    """Return the files of ``export_c`` by name, and the functions in them.

    ``more`` is an additional header that the CMake file installs with the C header.
    """
    source.check_export(dtype, name, _WORDS["targets"])
    if name.lower() in _WORDS["headers"]:  # many file systems are case-insensitive
        message = f"is {name!r}, so {name}.h would hide the C library header <{name.lower()}.h>"
        fix = f"`name={name + '_kernels'!r}`, for example"
        raise ModelError(message, argument="name", value=name, allowed="other names", fix=fix)
    if name in KEYWORDS:
        message, fix = f"is {name!r}, a C keyword", "add letters to it"
        raise ModelError(message, argument="name", value=name, allowed="other names", fix=fix)
    names, scalar = c_names({name.upper() + "_H"}), CScalar(dtype, integers)
    kernels = [
        SourceKernel(names.new(title), title, item, scalar, _arguments(item), source.PIECE)
        for title, item in ((title, in_scalars(title, item, C_RULES)) for title, item in source.with_names(functions))
    ]
    header = _header(name, kernels, scalar, names, about)
    cmake = f"# {MARK}.\n{source.asset('CMakeLists.txt')}"
    cmake = cmake.replace("HEADERS", ";".join([f"{name}.h", *filter(None, [more])])).replace("NAME", name)
    return {f"{name}.h": header, f"{name}.c": _source(name, kernels, scalar, names), "CMakeLists.txt": cmake}, kernels


def _arguments(function: ca.Function) -> list[str]:
    """Return the argument names; a single output with the name of the function becomes ``out``."""
    names = c_names()
    results = ("out" if item == function.name() else item for item in function.name_out())
    return [names.new(item) for item in (*function.name_in(), *results)]


def _declared(argument: ArrayArgument, scalar: CScalar, qualifier: str = "") -> str:
    """Return the declaration of a parameter, without arrays of length 0, which C does not allow."""
    name = "uint32_t" if argument.name in scalar.integers else scalar.name
    kind = name if argument.output else f"const {name}"
    return (
        f"{kind} {argument.name}[{qualifier}{argument.length}]"
        if argument.length
        else f"{kind} *{qualifier}{argument.name}"
    )


def _head(kernel: SourceKernel, scalar: CScalar, qualifier: str = "") -> str:
    """Return the declaration of a function."""
    return f"void {kernel.name}({', '.join(_declared(array, scalar, qualifier) for array in kernel.arrays) or 'void'})"


def remarks(kernel: SourceKernel, about: About) -> str:
    """Return the comment of a function, which describes its result and arguments."""
    lines = [f"{kernel.title}. Operations: {kernel.counts}."]
    lines += [about.results[kernel.title]] if kernel.title in about.results else []
    for array in kernel.arrays:
        way, title = "out" if array.output else "in", "" if array.title == array.name else f": {array.title}"
        meaning = f": {about.arguments[array.title]}" if array.title in about.arguments else ""
        lines.append(f"  {array.name}, {array.size[0]} x {array.size[1]}, {way}{title}{meaning}")
    return comment(*lines)


def _header(name: str, kernels: list[SourceKernel], scalar: CScalar, names: Names, about: About) -> str:
    guard = f"{name.upper()}_H"
    what = (
        f"{MARK}. Matrices are stored row by row. Outputs must not overlap inputs. No memory is allocated or retained."
    )
    top = comment(what, *about.lines)
    integer = "#include <stdint.h>\n\n" if scalar.integers else ""
    parts = [f'{top}#ifndef {guard}\n#define {guard}\n\n{integer}#ifdef __cplusplus\nextern "C" {{\n#endif\n']
    for kernel in kernels:
        sizes = [f"    {names.new(f'{kernel.name}_{a.name}_SIZE'.upper())} = {a.length}" for a in kernel.arrays]
        enum = "enum {\n" + ",\n".join(sizes) + "\n};\n" if sizes else ""
        parts.append(f"{remarks(kernel, about)}{_head(kernel, scalar)};\n{enum}")
    return "\n".join([*parts, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"])


def _source(name: str, kernels: list[SourceKernel], scalar: CScalar, names: Names) -> str:
    codes = set[int]().union(*(kernel.operations for kernel in kernels))
    definitions = [_definition(kernel, scalar, names) for kernel in kernels]
    top = comment(f"{MARK}. Each statement is one operation; -ffp-contract=off prevents fusion.")
    parts = [f'{top}#include "{name}.h"\n\n#include <math.h>\n', _PLUS_PLUS]
    if any("TORSOR_PIECE" in definition for definition in definitions):
        # Inlining the pieces would take the compiler as long as one long function.
        kept = "static __attribute__((noinline))"
        parts.append(f"#ifdef __GNUC__\n#define TORSOR_PIECE {kept}\n#else\n#define TORSOR_PIECE static\n#endif\n")
    return "\n".join([*parts, *_helpers(scalar, codes), *definitions])


def _definition(kernel: SourceKernel, scalar: CScalar, names: Names) -> str:
    """Return the definition of a function, preceded by the definitions of its pieces if it is long."""
    constants, copies, pieces = kernel.constants(), kernel.copies(), kernel.pieces()
    text, lines = "", kernel.constant_lines(constants) + copies.lines
    for number, piece in enumerate(pieces):
        if len(pieces) == 1:
            lines += piece.lines
            continue
        called = names.new(f"{kernel.name}_piece_{number}")
        arrays = [*kernel.arrays, ArrayArgument(source.SCRATCH, "", (kernel.scratch, 1), True)]
        passed = [array for array in arrays if array.name in piece.touched]
        head = ", ".join(_declared(item, scalar, "restrict ") for item in passed)
        text += f"TORSOR_PIECE void {called}({head})\n{{\n" + "\n".join(piece.lines) + "\n}\n\n"
        lines.append(f"    {called}({', '.join(item.name for item in passed)});")
    if kernel.scratch:
        lines.insert(0, f"    {scalar.name} {source.SCRATCH}[{kernel.scratch}];")
    touched = copies.touched.union({array for array, _, _ in constants}, *(piece.touched for piece in pieces))
    lines += [f"    (void){array.name};" for array in kernel.arrays if array.name not in touched]
    return text + f"{_head(kernel, scalar, 'restrict ')}\n{{\n" + "".join(line + "\n" for line in lines) + "}\n"


_PLUS_PLUS = """#ifdef __cplusplus /* C++ compilers treat this file as C++, which has no keyword restrict */
#define restrict
#endif
"""


# CasADi functions as C99 with a C++17 header: a namespace with fixed-length views and functions.
#
# The functions of the header are inline and call the C functions, so results are identical. A view is a pointer whose
# length is checked by the compiler: arrays, ``std::array``, ``std::span`` and Eigen vectors of a different length do
# not compile. The header needs only the standard library.

_OWN = {"Scalar", "View", "robot", "std"}  # names used by the header


def export_cpp(
    functions: Sequence[ca.Function] | Mapping[str, ca.Function],
    path: str | Path,
    dtype: str = "float64",
    name: str = "torsor_kernels",
    about: About | None = None,
    overwrite: bool = True,
    prefix: str = "",
) -> list[Path]:
    """Write CasADi functions as C99, like ``export_c``, with the C++17 header ``NAME.hpp``; return the paths.

    The header has a namespace ``name`` with ``Scalar``, ``View<Scalar, N>``, the facts of ``about`` as constants in the
    nested namespace ``robot``, and two C++ functions for each C function: ``f(input, ..., output)`` and, if there is
    one output, ``f(input, ...)``, which returns a ``std::array``. Names in the namespace have no ``prefix``.

    Example:
        >>> import tempfile
        >>> x = ca.SX.sym("x", 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = export_cpp([ca.Function("norm", [x], [ca.norm_2(x)], ["x"], ["length"])], folder)
        ...     [line for line in files[0].read_text().splitlines() if line.startswith("inline void")]
        ['inline void norm(View<const Scalar, 2> x, View<Scalar, 1> length) noexcept']
    """
    return source.write_all(Path(path), cpp_texts(functions, dtype, name, about or About(), prefix), overwrite)


def cpp_texts(
    functions: Sequence[ca.Function] | Mapping[str, ca.Function], dtype: str, name: str, about: About, prefix: str
) -> dict[str, str]:
    """Return the files of ``export_cpp`` by name."""
    texts, kernels = c_texts(functions, dtype, name, about, f"{name}.hpp")
    return {f"{name}.hpp": _cpp_header(name, kernels, CScalar(dtype), about, prefix), **texts}


def _cpp_header(name: str, kernels: list[SourceKernel], scalar: CScalar, about: About, prefix: str) -> str:
    guard, space = f"{name.upper()}_HPP", c_names({"std", *(kernel.name for kernel in kernels)}).new(name)
    what = (
        f"{MARK}, for C++17. Matrices are stored row by row. Outputs must not overlap inputs. No "
        "memory is allocated or retained."
    )
    constants = _constants(about.facts, scalar)
    names = c_names({*_OWN, space})
    parts = [
        comment(what, f"Namespace {space}: its functions call those of {name}.h.", *about.lines),
        f'#ifndef {guard}\n#define {guard}\n\n#include "{name}.h"\n\n{_INCLUDES}\nnamespace {space} {{\n',
        f"using Scalar = {scalar.name};\n\n{source.asset('view.hpp')}",
        *([f"namespace robot {{\n{constants}}}  // namespace robot\n"] if constants else []),
        *(_function(kernel, names.new(kernel.title.removeprefix(prefix)), about) for kernel in kernels),
        f"}}  // namespace {space}\n\n#endif\n",
    ]
    return "\n".join(parts)


def _function(kernel: SourceKernel, name: str, about: About) -> str:
    """Return the C++ functions: one that takes views, and one that returns an array."""
    head = ", ".join(_view(item) for item in kernel.arrays)
    passed = ", ".join(f"{item.name}.data()" for item in kernel.arrays)
    code = f"{remarks(kernel, about)}inline void {name}({head}) noexcept\n{{\n    ::{kernel.name}({passed});\n}}\n"
    if len(kernel.outputs) != 1 or not kernel.outputs[0].length:
        return code
    (output,), array = kernel.outputs, f"std::array<Scalar, {kernel.outputs[0].length}>"
    called = ", ".join(item.name for item in kernel.arrays)
    return (
        f"{code}\n[[nodiscard]] inline {array} {name}({', '.join(map(_view, kernel.inputs))}) noexcept\n"
        f"{{\n    {array} {output.name}{{}};\n    {name}({called});\n    return {output.name};\n}}\n"
    )


def _view(argument: ArrayArgument) -> str:
    return f"View<{'' if argument.output else 'const '}Scalar, {argument.length}> {argument.name}"


def _constants(facts: Mapping[str, Any], scalar: CScalar) -> str:
    """Return constants of strings and lists, with names in snake case; mappings are omitted."""
    lines, names = "", c_names(_OWN)
    for key, value in facts.items():
        constant = names.new(re.sub(r"([A-Z])", lambda capital: f"_{capital[0].lower()}", key))
        if isinstance(value, str):
            lines += f"inline constexpr const char *{constant} = {string_literal(value)};\n"
        elif isinstance(value, list):
            whole = bool(value) and all(isinstance(entry, int) for entry in value)
            kind = "int" if whole else "Scalar" if value and not isinstance(value[0], str) else "const char *"
            texts = (string_literal(e) if isinstance(e, str) else scalar.literal(e).strip("()") for e in value)
            entries = ", ".join(map(str, value) if whole else texts)
            filled = f"{{{{{entries}}}}}" if value else "{}"
            lines += f"inline constexpr std::array<{kind}, {len(value)}> {constant}{filled};\n"
    return lines


def string_literal(value: str) -> str:
    r"""Return a C string literal; UTF-8 bytes other than plain ASCII letters are written as octal escapes."""
    kept = {code for code in range(32, 127) if chr(code) not in '"\\?'}
    coded = value.encode(errors="replace")
    return '"' + "".join(chr(byte) if byte in kept else f"\\{byte:03o}" for byte in coded) + '"'


_INCLUDES = """#include <array>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
"""

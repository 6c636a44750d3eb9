"""CasADi functions as C99 with a header of C++17: a namespace with views of fixed length and one function for each.

The functions of the header are inline and call those of C: there is one source of the numbers. A view is a pointer
whose length the compiler checks, so that arrays, ``std::array``, ``std::span`` and vectors of Eigen of another length
do not compile. The header needs the standard library only.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import casadi as ca

from torsor.compiler.c.rules import CScalar, c_names
from torsor.compiler.c.source import c_texts, remarks
from torsor.compiler.source.about import MARK, About, comment
from torsor.compiler.source.files import write_all
from torsor.compiler.source.kernel import ArrayArgument, SourceKernel

_OWN = {"Scalar", "View", "robot", "std"}  # names that the header needs for itself


def export_cpp(
    functions: Sequence[ca.Function] | Mapping[str, ca.Function],
    path: str | Path,
    dtype: str = "float64",
    name: str = "torsor_kernels",
    about: About | None = None,
    overwrite: bool = True,
    prefix: str = "",
) -> list[Path]:
    """Write CasADi functions as C99, as ``export_c``, with the header ``NAME.hpp`` of C++17; return the paths.

    The header has a namespace of the name ``name`` with ``Scalar``, ``View<Scalar, N>``, the facts of ``about`` as
    constants in the namespace ``robot``, and two functions for each: ``f(input, ..., output)``, and, if there is one
    output, ``f(input, ...)`` that returns a ``std::array``. In the namespace the names have no ``prefix``.

    Example:
        >>> import tempfile
        >>> x = ca.SX.sym("x", 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = export_cpp([ca.Function("norm", [x], [ca.norm_2(x)], ["x"], ["length"])], folder)
        ...     [line for line in files[0].read_text().splitlines() if line.startswith("inline void")]
        ['inline void norm(View<const Scalar, 2> x, View<Scalar, 1> length) noexcept']
    """
    return write_all(Path(path), cpp_texts(functions, dtype, name, about or About(), prefix), overwrite)


def cpp_texts(
    functions: Sequence[ca.Function] | Mapping[str, ca.Function], dtype: str, name: str, about: About, prefix: str
) -> dict[str, str]:
    """Return the files that ``export_cpp`` writes, by name."""
    texts, kernels = c_texts(functions, dtype, name, about, f"{name}.hpp")
    return {f"{name}.hpp": _cpp_header(name, kernels, CScalar(dtype), about, prefix), **texts}


def _cpp_header(name: str, kernels: list[SourceKernel], scalar: CScalar, about: About, prefix: str) -> str:
    guard, space = f"{name.upper()}_HPP", c_names({"std", *(each.name for each in kernels)}).new(name)
    what = f"{MARK}, for C++17. Matrices lie row by row. Outputs must not overlap inputs. Nothing is allocated or kept."
    constants = _constants(about.facts, scalar)
    names = c_names({*_OWN, space})
    parts = [
        comment(what, f"Namespace {space}: its functions call those of {name}.h.", *about.lines),
        f'#ifndef {guard}\n#define {guard}\n\n#include "{name}.h"\n\n{_INCLUDES}\nnamespace {space} {{\n',
        f"using Scalar = {scalar.name};\n\n{_VIEW}",
        *([f"namespace robot {{\n{constants}}}  // namespace robot\n"] if constants else []),
        *(_function(kernel, names.new(kernel.title.removeprefix(prefix)), about) for kernel in kernels),
        f"}}  // namespace {space}\n\n#endif\n",
    ]
    return "\n".join(parts)


def _function(kernel: SourceKernel, name: str, about: About) -> str:
    """Return the function of views, and that which returns an array."""
    head = ", ".join(_view(each) for each in kernel.arrays)
    passed = ", ".join(f"{each.name}.data()" for each in kernel.arrays)
    text = f"{remarks(kernel, about)}inline void {name}({head}) noexcept\n{{\n    ::{kernel.name}({passed});\n}}\n"
    if len(kernel.outputs) != 1 or not kernel.outputs[0].length:
        return text
    (output,), array = kernel.outputs, f"std::array<Scalar, {kernel.outputs[0].length}>"
    called = ", ".join(each.name for each in kernel.arrays)
    return (
        f"{text}\n[[nodiscard]] inline {array} {name}({', '.join(_view(each) for each in kernel.inputs)}) noexcept\n"
        f"{{\n    {array} {output.name}{{}};\n    {name}({called});\n    return {output.name};\n}}\n"
    )


def _view(each: ArrayArgument) -> str:
    return f"View<{'' if each.output else 'const '}Scalar, {each.length}> {each.name}"


def _constants(facts: Mapping[str, Any], scalar: CScalar) -> str:
    """Return texts and lists as constants, ``positionUnits`` as ``position_units``; mappings are left out.

    Example:
        >>> print(_constants({"jointNames": ["a"], "lower": [0.5, float("inf")], "n": "x"}, CScalar("float64")), end="")
        inline constexpr std::array<const char *, 1> joint_names{{"a"}};
        inline constexpr std::array<Scalar, 2> lower{{0.5, INFINITY}};
        inline constexpr const char *n = "x";
    """
    lines, names = "", c_names(_OWN)
    for key, value in facts.items():
        own = names.new(re.sub(r"([A-Z])", lambda capital: f"_{capital[0].lower()}", key))
        if isinstance(value, str):
            lines += f"inline constexpr const char *{own} = {_text(value)};\n"
        elif isinstance(value, list):
            whole = bool(value) and all(isinstance(each, int) for each in value)
            kind = "int" if whole else "Scalar" if value and not isinstance(value[0], str) else "const char *"
            entries = ", ".join(_text(each) if isinstance(each, str) else _number(each, scalar) for each in value)
            filled = f"{{{{{entries}}}}}" if value else "{}"
            lines += f"inline constexpr std::array<{kind}, {len(value)}> {own}{filled};\n"
    return lines


def _number(value: float, scalar: CScalar) -> str:
    return str(value) if isinstance(value, int) else scalar.literal(value).strip("()")


def _text(value: str) -> str:
    r"""Return a string literal: bytes of UTF-8 that are not plain letters of ASCII are octal.

    Example:
        >>> print(_text('say "ö"'))
        "say \042\303\266\042"
    """
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

_VIEW = """/* A view of N numbers that belong to the caller: a pointer whose length is known when it is compiled.
 * It is made of arrays, of std::array, of std::span with an extent and of vectors of Eigen with a fixed size; of a
 * pointer, such as that of a std::vector, only explicitly: then N numbers must be there. */
template <class T, std::size_t N>
class View {
public:
    template <std::size_t M>
    constexpr View(T (&array)[M]) noexcept : data_(array)
    {
        static_assert(M == N, "the array has another length");
    }
    template <class Array, class = decltype(std::declval<Array &>().data()),
              class = std::enable_if_t<!std::is_same<std::decay_t<Array>, View>::value>>
    constexpr View(Array &&array) noexcept : data_(array.data())
    {
        static_assert(length<std::decay_t<Array>>(0) == N, "the array has another length, or one that is not fixed");
    }
    constexpr explicit View(T *data) noexcept : data_(data) {}

    constexpr T *data() const noexcept { return data_; }
    static constexpr std::size_t size() noexcept { return N; }
    constexpr T &operator[](std::size_t index) const noexcept { return data_[index]; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + N; }

    static constexpr std::size_t extent = N;

private:
    template <class Array, std::size_t M = std::tuple_size<Array>::value>
    static constexpr std::size_t length(int) noexcept
    {
        return M;
    }
    template <class Array, std::size_t M = Array::extent>
    static constexpr std::size_t length(long) noexcept
    {
        return M;
    }
    template <class Array, int M = Array::SizeAtCompileTime>
    static constexpr std::size_t length(...) noexcept
    {
        return M < 0 ? static_cast<std::size_t>(-1) : static_cast<std::size_t>(M);
    }

    T *data_;
};
"""

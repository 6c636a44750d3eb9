"""CasADi functions as a JavaScript ES module."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import casadi as ca

from torsor.compiler import source
from torsor.compiler.program import in_scalars
from torsor.compiler.source import MARK, About, ArrayArgument, Language, Names, Rule, SourceKernel, comment, plain

# JavaScript expressions: literals, identifiers, and one rule per CasADi operation.
#
# The CasADi virtual machine defines every operation. ECMAScript defines the bits of + - * / %, comparisons, floor,
# ceil, abs, sqrt and fround. The other functions of ``Math`` are approximations of the engine. Helpers provide those
# that ``Math`` lacks.


class JsScalar(Language):
    """The number type of an exported module: float64, or float32 by rounding each result.

    If +, -, *, / and sqrt of float32 numbers are computed in float64 and rounded, the results equal those in float32.
    """

    local, special = "let ", ("NaN", "Infinity")

    def __init__(self, dtype: str):
        super().__init__(dtype, JS_RULES)
        self.array = "Float64Array" if self.double else "Float32Array"

    def expression(self, code: int, *arguments: str) -> str:
        """Return the text of an operation, by its rule."""
        text = super().expression(code, *arguments)
        return text if self.double else f"Math.fround({text})"

    def element(self, array: str, entry: int) -> str:
        """Return an array element; arguments have an offset, but the scratch array has none."""
        if array == source.SCRATCH:
            return f"{array}[{entry}]"
        return f"{array}[{array}$ + {entry}]" if entry else f"{array}[{array}$]"


def _truth(operator: str) -> Rule:
    return lambda t, a, b: f"{a} {operator} {b} ? 1 : 0"


def _logic(operator: str) -> Rule:
    # NaN counts as true, because it is not equal to 0.
    return lambda t, a, b: f"{a} !== 0 {operator} {b} !== 0 ? 1 : 0"


def _library(name: str) -> Rule:
    return lambda t, *arguments: f"Math.{name}({', '.join(arguments)})"


def _helper(name: str) -> Rule:
    return lambda t, *arguments: f"torsor${name}({', '.join(arguments)})"


_LIBRARY = """
sign sqrt floor ceil hypot exp expm1 log log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
"""
JS_RULES: dict[int, Rule] = {
    **source.RULES,
    **source.rules(_LIBRARY, _library),
    **source.rules("pow copysign remainder erf erfinv", _helper),
    ca.OP_LT: _truth("<"),
    ca.OP_LE: _truth("<="),
    ca.OP_EQ: _truth("==="),
    ca.OP_NE: _truth("!=="),
    ca.OP_NOT: lambda t, a: f"{a} === 0 ? 1 : 0",
    ca.OP_AND: _logic("&&"),
    ca.OP_OR: _logic("||"),
    ca.OP_IF_ELSE_ZERO: lambda t, a, b: f"{a} === 0 ? 0 : {b}",
    ca.OP_CONSTPOW: _helper("pow"),
    ca.OP_FABS: _library("abs"),
    # Of equal numbers, the first is returned, as in other targets; for 0 and -0, CasADi returns the result of the C
    # library.
    ca.OP_FMIN: lambda t, a, b: f"{b} < {a} || {a} !== {a} ? {b} : {a}",
    ca.OP_FMAX: lambda t, a, b: f"{b} > {a} || {a} !== {a} ? {b} : {a}",
    ca.OP_FMOD: source.infix("%"),
}
"""The rule of each CasADi operation."""


_RESERVED = source.reserved_words("js")["all"]


def js_names(taken: Iterable[str] = ()) -> Names:
    """Return a generator of unique camel-case identifiers that are not reserved and have no dollar sign."""
    return Names(source.camel, _RESERVED, taken)


# JavaScript functions for operations that ``Math`` lacks or defines differently from C and CasADi.


# Minimax polynomials, highest power first: erf(x)/x in x^2 for x in [0, 1], and erfc(x) exp(x^2) in (x - 2)/(x + 2) for
# x in [1, 6]. Above 6, erf rounds to 1. The error is at most 2 ulp.
_NEAR_COEFFICIENTS = (
    *(5.957176147748911e-11, -1.1372848856791674e-09, 1.4659775274047436e-08, -1.6350312701054695e-07),
    *(1.6461000484121368e-06, -1.4925595266831182e-05, 0.0001205533111164271, -0.000854832698083379),
    *(0.0052239776248180145, -0.026866170645076792, 0.11283791670954879, -0.3761263890318375, 1.1283791670955126),
)
_FAR_COEFFICIENTS = (
    *(-2.22812957637235e-07, 4.146302183268488e-06, 1.859427387429402e-06, -1.4166339069117108e-05),
    *(-2.7640727821912852e-05, 2.7560352756678313e-05, 0.00017436477257256738, 4.355265359817883e-05),
    *(-0.0009819771114740715, -0.0008471431229415333, 0.006997461739200575, 0.0037328924016564484),
    *(-0.07897858101571269, 0.24165819424248763, -0.4271858474139585, 0.2553956763105057),
)


def _erf(t: JsScalar) -> str:
    near, far = source.polynomial(t.literal, *_NEAR_COEFFICIENTS), source.polynomial(t.literal, *_FAR_COEFFICIENTS)
    return f"""// The error function, within 2 ulp.
function torsor$erf(x) {{
    const size = Math.abs(x);
    if (size >= 6) return x > 0 ? 1 : -1;
    if (size < 1) {{
        const z = x * x;
        return x * {near};
    }}
    const z = (size - 2) / (size + 2);
    const value = 1 - Math.exp(-x * x) * {far};
    return x > 0 ? value : x < 0 ? -value : x;
}}
"""


def _erfinv(t: JsScalar) -> str:
    edges = """    if (x >= 1) return x === 1 ? Infinity : NaN;
    if (x <= -1) return x === -1 ? -Infinity : NaN;"""
    step = f"y -= (torsor$erf(y) - x) / ({t.literal(source.SLOPE)} * Math.exp(-y * y));"
    statements = source.erfinv(t.literal, edges, "z = Math.sqrt(-Math.log((1 {sign} x) / 2));", step)
    return f"// The inverse of erf.\nfunction torsor$erfinv(x) {{\n    let y, z;\n{statements}\n}}\n"


# The operations of each helper; helpers precede their callers.
_HELPERS: list[tuple[tuple[int, ...], Callable[[JsScalar], str]]] = [
    ((ca.OP_POW, ca.OP_CONSTPOW), lambda _: source.asset("pow.js")),
    ((ca.OP_COPYSIGN,), lambda _: source.asset("copysign.js")),
    # The remainder by 2 y preserves the parity of the quotient; at most two exact subtractions follow.
    ((ca.OP_REMAINDER,), lambda _: source.asset("remainder.js")),
    ((ca.OP_ERF, ca.OP_ERFINV), _erf),
    ((ca.OP_ERFINV,), _erfinv),
]


def helpers(codes: Iterable[int]) -> list[str]:
    """Return the helper functions for operations with these codes, which use float64 for both types."""
    needed = set(codes)
    return [write(JsScalar("float64")) for operations, write in _HELPERS if needed & set(operations)]


def _argument_text(argument: ArrayArgument, about: About) -> str:
    """Return the description of an argument: size, CasADi name if different, and the caller's text."""
    rows, columns = argument.size
    size = f"{rows} x {columns}" if columns != 1 else f"{rows} number{'s' if rows != 1 else ''}"
    title = "" if argument.title in (argument.name, "") else f", {argument.title}"
    return plain(
        f"{size}{title}" + (f": {about.arguments[argument.title]}" if argument.title in about.arguments else "")
    )


def _returned(kernel: SourceKernel, scalar: JsScalar) -> str:
    if len(kernel.outputs) == 1:
        return scalar.array
    if not kernel.outputs:
        return "{}"
    return "{ " + ", ".join(f"{output.name}: {scalar.array}" for output in kernel.outputs) + " }"


def remarks(kernel: SourceKernel, scalar: JsScalar, about: About) -> str:
    """Return the JSDoc comment of a function: result, and sizes, units and frames of the arguments."""
    what = about.results.get(kernel.title, kernel.title).rstrip(".")
    lines = [plain(f"{what}. Operations: {kernel.counts}.")]
    for item in kernel.inputs:
        kind = "number | ArrayLike<number>" if item.length == 1 else "ArrayLike<number>"
        lines.append(f"@param {{{kind}}} {item.name} - {_argument_text(item, about)}")
    kind, several = _returned(kernel, scalar), len(kernel.outputs) != 1
    sizes = "; ".join(
        (f"{output.name} " if several else "") + _argument_text(output, about) for output in kernel.outputs
    )
    lines += [f"@param {{{kind}}} [out] - {sizes}; created if omitted", f"@returns {{{kind}}} out"]
    return "/**\n" + "".join(f" * {line}\n" for line in lines) + " */\n"


def _type_of(value: object) -> str:
    """Return the TypeScript type of data."""
    if isinstance(value, Mapping):
        return "{ " + "; ".join(f'readonly "{key}": {_type_of(entry)}' for key, entry in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"readonly {_type_of(value[0]) if value else 'string'}[]"
    return "string" if isinstance(value, str) else "number"


def declarations(kernels: Sequence[SourceKernel], scalar: JsScalar, about: About) -> str:
    """Return the TypeScript declarations of a module."""
    parts = [comment(f"{MARK}."), "type Numbers = ArrayLike<number>;\n"]
    if about.facts:
        parts.append(f"export declare const robot: {_type_of(about.facts)};\n")
    arrays = 'readonly { readonly "name": string; readonly "title": string; readonly "size": readonly number[] }[]'
    listed = f'"name": string; readonly "title": string; readonly "inputs": {arrays}; readonly "outputs": {arrays}'
    parts.append(f"export declare const functions: readonly {{ readonly {listed} }}[];\n")
    for kernel in kernels:
        kind = _returned(kernel, scalar)
        parameters = [f"{input_.name}: {'number | ' if input_.length == 1 else ''}Numbers" for input_ in kernel.inputs]
        head = f"({', '.join([*parameters, f'out?: {kind}'])}): {kind};\n"
        parts.append(f"{remarks(kernel, scalar, about)}export declare function {kernel.name}{head}")
        if any(input_.length for input_ in kernel.inputs):
            rows = comment(f"{kernel.name} for many states, row by row.", begin="/**")
            parts.append(f"{rows}export declare function {kernel.name}Rows{head}")
    return "\n".join(parts)


# CasADi functions as an ES module: plain functions of typed arrays that need only ``Math``.
#
# Each operation is one statement. JavaScript never fuses products and sums, so results are those of the CasADi virtual
# machine wherever ECMAScript defines the bits. Engines optimise long functions late and very long ones not at all.
# Pieces of 1500 operations are as fast as the full function and are compiled sooner.

_FILL = 16  # smallest number of zeros for which an output is cleared with fill


def export_js(
    functions: Sequence[ca.Function] | Mapping[str, ca.Function],
    path: str | Path,
    dtype: str = "float64",
    name: str = "torsor_kernels",
    about: About | None = None,
    overwrite: bool = True,
) -> list[Path]:
    """Write CasADi functions as an ES module into a folder: ``NAME.js``, ``NAME.d.ts`` and ``package.json``.

    Each function becomes ``camelCase(input, ..., out)`` for one state, and ``camelCaseRows`` for rows of states. Both
    take and return ``Float64Array``, or ``Float32Array`` if ``dtype`` is float32, with matrices in row-major order.
    Plain arrays of numbers are copied. Several outputs are returned as an object with one array per output. ``out`` is
    optional. The module also exports ``functions``, a list of names and sizes, and the facts in ``about``, if any, as
    ``robot``. The folder is created if it does not exist. Files not written by Torsor are never replaced. With
    ``overwrite=False``, an existing file raises ModelError. The list of paths is returned.

    Example:
        >>> import tempfile
        >>> x = ca.SX.sym("x", 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = export_js([ca.Function("vector_norm", [x], [ca.norm_2(x)], ["x"], ["length"])], folder)
        ...     [line for line in files[0].read_text().splitlines() if line.startswith("export function")]
        ['export function vectorNorm(x, out) {', 'export function vectorNormRows(x, out) {']
    """
    source.check_export(dtype, name)
    scalar, names, kernels, about = JsScalar(dtype), js_names(), list[SourceKernel](), about or About()
    for title, item in source.with_names(functions):
        function, identifier = in_scalars(title, item, JS_RULES), names.new(title)
        while f"{identifier}Rows" in names.taken:
            identifier = names.new(title)
        names.taken.add(f"{identifier}Rows")
        kernels.append(SourceKernel(identifier, title, function, scalar, _arguments(function), source.PIECE))
    texts = {f"{name}.js": _module(kernels, scalar, about), f"{name}.d.ts": declarations(kernels, scalar, about)}
    return source.write_all(Path(path), texts | {"package.json": _package(name)}, overwrite)


def _arguments(function: ca.Function) -> list[str]:
    """Return the argument names: ``out`` for a single output, otherwise names without the function name."""
    names = js_names()
    inputs = [names.new(item) for item in function.name_in()]
    if function.n_out() == 1:
        return [*inputs, "out"]
    return inputs + [names.new(item.removeprefix(function.name() + "_")) for item in function.name_out()]


def data(value: object) -> str:
    r"""Return data as an ASCII JavaScript expression, escaped so that it cannot end a string or a script."""
    return json.dumps(value).replace("<", "\\u003c")


def _package(name: str) -> str:
    """Return package.json, which declares the folder as an ES module and references its types."""
    entry = {"types": f"./{name}.d.ts", "default": f"./{name}.js"}
    content = {"description": MARK, "name": name.lower(), "private": True, "type": "module", "sideEffects": False}
    return json.dumps(content | {"main": entry["default"], "types": entry["types"], "exports": entry}, indent=2) + "\n"


def _module(kernels: list[SourceKernel], scalar: JsScalar, about: About) -> str:
    codes = set[int]().union(*(kernel.operations for kernel in kernels))
    what = f"{MARK}. Matrices are stored row by row. Results are new arrays, or out if it is given."
    parts = [comment(what, *about.lines)]
    if about.facts:
        facts = "".join(f"    {data(key)}: {data(value)},\n" for key, value in about.facts.items())
        parts.append(f"export const robot = {{\n{facts}}};\n")
    parts.append(f"export const functions = [\n    {_listed(kernels)},\n];\n")
    # Inputs that are not typed arrays of the module's type (ARRAY) are copied to one.
    parts += [source.asset("checks.js").replace("ARRAY", scalar.array), *helpers(codes)]
    for kernel in kernels:
        parts += [_core(kernel, scalar), _one(kernel, scalar, about)]
        if any(input_.length for input_ in kernel.inputs):
            parts.append(_rows(kernel, scalar))
    return "\n".join(parts)


def _listed(kernels: list[SourceKernel]) -> str:
    """Return the list of functions as data: names, CasADi names, and sizes (rows, columns)."""

    def sizes(arrays: list[ArrayArgument]) -> list[dict[str, object]]:
        return [{"name": array.name, "title": array.title, "size": array.size} for array in arrays]

    return ",\n    ".join(
        data({"name": k.name, "title": k.title, "inputs": sizes(k.inputs), "outputs": sizes(k.outputs)})
        for k in kernels
    )


def _is_zero(number: float) -> bool:
    """Return whether a number is 0 but not -0."""
    return number == 0.0 and math.copysign(1.0, number) > 0


def _core(kernel: SourceKernel, scalar: JsScalar) -> str:
    """Return the unchecked function, which takes arrays and the offset of a state in each."""
    head, text, lines = ", ".join(f"{array.name}, {array.name}$" for array in kernel.arrays), "", list[str]()
    constants, pieces = kernel.constants(), kernel.pieces()
    zeros = Counter(array for array, _, number in constants if _is_zero(number))
    cleared = [output for output in kernel.outputs if zeros[output.name] >= _FILL]
    lines += [f"    {item.name}.fill(0, {item.name}$, {item.name}$ + {item.length});" for item in cleared]
    left = {output.name for output in kernel.outputs} - {item.name for item in cleared}
    stored = (entry for entry in constants if entry[0] in left or not _is_zero(entry[2]))
    lines += [*kernel.constant_lines(stored), *kernel.copies().lines]
    for number, piece in enumerate(pieces):
        if len(pieces) == 1:
            lines += piece.lines
            continue
        passed = [f"{array.name}, {array.name}$" for array in kernel.arrays if array.name in piece.touched]
        called = f"{kernel.name}$piece{number}({', '.join([*passed, source.SCRATCH])})"
        text += f"function {called} {{\n" + "\n".join(piece.lines) + "\n}\n\n"
        lines.append(f"    {called};")
    if kernel.scratch:
        text = f"const {kernel.name}$scratch = new {scalar.array}({kernel.scratch});\n\n" + text
        lines.insert(0, f"    const {source.SCRATCH} = {kernel.name}$scratch;")
    return text + f"function {kernel.name}$core({head}) {{\n" + "".join(line + "\n" for line in lines) + "}\n"


def _one(kernel: SourceKernel, scalar: JsScalar, about: About) -> str:
    """Return the function for one state; ``out`` may overlap inputs, because it is written at the end.

    In V8, a copy takes less time than checking the buffer of a typed array.
    """
    inputs = [input_.name for input_ in kernel.inputs]
    sizes = [(input_.name, input_.length) for input_ in kernel.inputs]
    lines = [f'{name} = torsor$input({name}, {length}, "{kernel.name}: {name}");' for name, length in sizes]

    def call(outputs: Sequence[str]) -> str:
        return f"{kernel.name}$core({', '.join(f'{item}, 0' for item in (*inputs, *outputs))});"

    made = _made(kernel, scalar, "{}")
    lines += ["if (out === undefined) {", f"    out = {made};", f"    {call(_output_fields(kernel))}"]
    lines += ["    return out;", "}"]
    lines += [*_checked(kernel, kernel.name, "{}"), call(_output_fields(kernel, f"{kernel.name}$out"))]
    copied = zip(_output_fields(kernel, f"{kernel.name}$out"), _output_names(kernel), strict=True)
    lines += [*(f"torsor$copy({own}, {name});" for own, name in copied), "return out;"]
    head = f"export function {kernel.name}({', '.join([*inputs, 'out'])})"
    code = f"const {kernel.name}$out = {made};\n\n{remarks(kernel, scalar, about)}{head} {{\n"
    return code + "".join(f"    {line}\n" for line in lines) + "}\n"


def _rows(kernel: SourceKernel, scalar: JsScalar) -> str:
    names, identifier = [input_.name for input_ in kernel.inputs], f"{kernel.name}Rows"
    varied = [input_ for input_ in kernel.inputs if input_.length]
    lines = [f'{name} = torsor$numbers({name}, "{identifier}: {name}");' for name in names]
    for n, length in ((item.name, item.length) for item in varied):
        lines.append(f'const {n}$count = torsor$count({n}, {length}, "{identifier}: {n}");')
    counts = ", ".join(f"{item.name}$count" for item in varied)
    lines.append(f'const count$ = torsor$common([{counts}], "{identifier}"), fresh$ = out === undefined;')
    lines += [
        f"if (fresh$) out = {_made(kernel, scalar, 'count$ * {}')};",
        *_checked(kernel, identifier, "count$ * {}"),
    ]
    overlap = f"[{', '.join(_output_names(kernel))}], [{', '.join(names)}], {data([*_output_fields(kernel), *names])}"
    lines.append(f'if (!fresh$) torsor$apart({overlap}, "{identifier}");')
    lines += [f"const {item.name}$step = {item.name}$count === 1 ? 0 : {item.length};" for item in varied]
    steps = [f"{input_.name}, " + (f"k$ * {input_.name}$step" if input_.length else "0") for input_ in kernel.inputs]
    ends = [f"{n}, k$ * {output.length}" for n, output in zip(_output_names(kernel), kernel.outputs, strict=True)]
    lines += ["for (let k$ = 0; k$ < count$; k$++) {", f"    {kernel.name}$core({', '.join(steps + ends)});", "}"]
    about = f"{kernel.name} for many states, row by row; an input with one state applies to all of them."
    head = comment(about, begin="/**") + f"export function {identifier}({', '.join([*names, 'out'])})"
    return f"{head} {{\n" + "".join(f"    {line}\n" for line in [*lines, "return out;"]) + "}\n"


def _output_names(kernel: SourceKernel) -> list[str]:
    """Return the output variables in a function: ``out``, or one per output."""
    return ["out"] if len(kernel.outputs) == 1 else [f"out${output.name}" for output in kernel.outputs]


def _output_fields(kernel: SourceKernel, out: str = "out") -> list[str]:
    """Return the outputs as seen by the caller: ``out``, or the fields of ``out``."""
    return [out] if len(kernel.outputs) == 1 else [f"{out}.{output.name}" for output in kernel.outputs]


def _made(kernel: SourceKernel, scalar: JsScalar, length: str) -> str:
    """Return the expression that creates outputs; ``length`` is the array length, with {} for entries per state."""
    made = [f"new {scalar.array}({length.format(output.length)})" for output in kernel.outputs]
    if len(made) == 1:
        return made[0]
    fields = ", ".join(f"{output.name}: {part}" for output, part in zip(kernel.outputs, made, strict=True))
    return f"{{ {fields} }}" if fields else "{}"


def _checked(kernel: SourceKernel, identifier: str, length: str) -> list[str]:
    """Return the statements that check the caller's outputs and, if there are several, assign them to variables."""
    lines, names = list[str](), _output_names(kernel)
    if len(names) != 1:
        lines = [f'torsor$object(out, "{identifier}");']
        lines += [f"const {name} = {text};" for name, text in zip(names, _output_fields(kernel), strict=True)]
    for name, output_field, output in zip(names, _output_fields(kernel), kernel.outputs, strict=True):
        lines.append(f'torsor$output({name}, {length.format(output.length)}, "{identifier}: {output_field}");')
    return lines + ([f'torsor$distinct([{", ".join(names)}], "{identifier}");'] if len(names) > 1 else [])

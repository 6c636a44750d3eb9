"""CasADi functions as an ES module: plain functions of typed arrays that need nothing but ``Math``.

Each operation is one statement. JavaScript never fuses products and sums, so results are those of the CasADi virtual
machine wherever ECMAScript promises the bits (see ``js/rules.py``). Engines leave very long functions unoptimised and
optimise long ones late: pieces of 1500 operations are as fast as one whole, and are compiled sooner.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import casadi as ca

from torsor.compiler.coverage import in_scalars
from torsor.compiler.js.checks import CHECKS
from torsor.compiler.js.declarations import declarations, remarks
from torsor.compiler.js.helpers import helpers
from torsor.compiler.js.rules import JS_RULES, JsScalar, js_names
from torsor.compiler.source.about import MARK, About, comment
from torsor.compiler.source.files import write_all
from torsor.compiler.source.kernel import SCRATCH, ArrayArgument, SourceKernel
from torsor.compiler.source.names import with_names

DTYPES = ("float64", "float32")
PIECE = 1500  # operations in the longest piece
_FILL = 16  # from this number of zeros on, an output is cleared as a whole


def export_js(
    functions: Sequence[ca.Function] | Mapping[str, ca.Function],
    path: str | Path,
    dtype: str = "float64",
    name: str = "torsor_kernels",
    about: About | None = None,
    overwrite: bool = True,
) -> list[Path]:
    """Write CasADi functions as an ES module into a folder: ``NAME.js``, ``NAME.d.ts`` and ``package.json``.

    Each function becomes ``camelCase(input, ..., out)`` for one state, and ``camelCaseRows`` for many, row by row. It
    takes and returns ``Float64Array``, or ``Float32Array`` for the ``dtype`` float32, matrices row by row; arrays of
    numbers are copied. Several outputs are an object with one array for each. ``out`` may be left out. The module also
    exports ``functions``, a list of names and sizes, and, if ``about`` has facts, those as ``robot``. The folder is
    created if it does not exist; files that Torsor did not write are not replaced, and with
    ``overwrite=False`` no file is. Returns the paths.

    Example:
        >>> import tempfile
        >>> x = ca.SX.sym("x", 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = export_js([ca.Function("vector_norm", [x], [ca.norm_2(x)], ["x"], ["length"])], folder)
        ...     [line for line in files[0].read_text().splitlines() if line.startswith("export function")]
        ['export function vectorNorm(x, out) {', 'export function vectorNormRows(x, out) {']
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}; allowed: {', '.join(DTYPES)}")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(f"name is {name!r}; allowed: letters, digits and _, a letter first")
    scalar, names, kernels, about = JsScalar(dtype), js_names(), list[SourceKernel](), about or About()
    for title, each in with_names(functions):
        function, own = in_scalars(title, each, JS_RULES), names.new(title)
        while f"{own}Rows" in names.taken:
            own = names.new(title)
        names.taken.add(f"{own}Rows")
        kernels.append(SourceKernel(own, title, function, scalar, _arguments(function), PIECE))
    texts = {f"{name}.js": _module(kernels, scalar, about), f"{name}.d.ts": declarations(kernels, scalar, about)}
    return write_all(Path(path), texts | {"package.json": _package(name)}, overwrite)


def _arguments(function: ca.Function) -> list[str]:
    """Return the names of the arguments: ``out`` if there is one output, else without the name of the function."""
    names = js_names()
    inputs = [names.new(each) for each in function.name_in()]
    if function.n_out() == 1:
        return [*inputs, "out"]
    return inputs + [names.new(each.removeprefix(function.name() + "_")) for each in function.name_out()]


def data(value: object) -> str:
    r"""Return data as an expression of JavaScript, in ASCII. Nothing in it can end a string or a script.

    Example:
        >>> data(["</script>", -0.0, float("inf")])
        '["\\u003c/script>", -0.0, Infinity]'
    """
    return json.dumps(value).replace("<", "\\u003c")


def _package(name: str) -> str:
    """Return package.json, by which Node and bundlers know that the folder is an ES module, and find its types."""
    entry = {"types": f"./{name}.d.ts", "default": f"./{name}.js"}
    content = {"description": MARK, "name": name.lower(), "private": True, "type": "module", "sideEffects": False}
    return json.dumps(content | {"main": entry["default"], "types": entry["types"], "exports": entry}, indent=2) + "\n"


def _module(kernels: list[SourceKernel], scalar: JsScalar, about: About) -> str:
    codes = set[int]().union(*(kernel.operations for kernel in kernels))
    what = f"{MARK}. Matrices lie row by row. Results are new arrays, or out where it is given."
    parts = [comment(what, *about.lines)]
    if about.facts:
        parts.append(f"export const robot = {_lines(about.facts)};\n")
    parts.append(f"export const functions = [\n    {_listed(kernels)},\n];\n")
    parts += [CHECKS.replace("ARRAY", scalar.array), *helpers(codes)]
    for kernel in kernels:
        parts += [_core(kernel, scalar), _one(kernel, scalar, about)]
        if any(each.length for each in kernel.inputs):
            parts.append(_rows(kernel, scalar))
    return "\n".join(parts)


def _lines(facts: Mapping[str, object]) -> str:
    return "{\n" + "".join(f"    {data(key)}: {data(value)},\n" for key, value in facts.items()) + "}"


def _listed(kernels: list[SourceKernel]) -> str:
    """Return the list of functions as data: names, names in CasADi, and sizes (rows, columns)."""

    def sizes(arrays: list[ArrayArgument]) -> list[dict[str, object]]:
        return [{"name": each.name, "title": each.title, "size": each.size} for each in arrays]

    return ",\n    ".join(
        data({"name": k.name, "title": k.title, "inputs": sizes(k.inputs), "outputs": sizes(k.outputs)})
        for k in kernels
    )


def _is_zero(number: float) -> bool:
    """Return whether a number is 0, and not -0."""
    return number == 0.0 and math.copysign(1.0, number) > 0


def _core(kernel: SourceKernel, scalar: JsScalar) -> str:
    """Return the function without checks, of arrays and of the places in them where a state begins."""
    head, text, lines = ", ".join(f"{each.name}, {each.name}$" for each in kernel.arrays), "", list[str]()
    constants, pieces = kernel.constants(), kernel.pieces()
    zeros = Counter(array for array, _, number in constants if _is_zero(number))
    cleared = [each for each in kernel.outputs if zeros[each.name] >= _FILL]
    lines += [f"    {each.name}.fill(0, {each.name}$, {each.name}$ + {each.length});" for each in cleared]
    left = {each.name for each in kernel.outputs} - {each.name for each in cleared}
    stored = (entry for entry in constants if entry[0] in left or not _is_zero(entry[2]))
    lines += [*kernel.constant_lines(stored), *kernel.copies().lines]
    for number, piece in enumerate(pieces):
        if len(pieces) == 1:
            lines += piece.lines
            continue
        passed = [f"{each.name}, {each.name}$" for each in kernel.arrays if each.name in piece.touched]
        called = f"{kernel.name}$piece{number}({', '.join([*passed, SCRATCH])})"
        text += f"function {called} {{\n" + "\n".join(piece.lines) + "\n}\n\n"
        lines.append(f"    {called};")
    if kernel.scratch:
        text = f"const {kernel.name}$scratch = new {scalar.array}({kernel.scratch});\n\n" + text
        lines.insert(0, f"    const {SCRATCH} = {kernel.name}$scratch;")
    return text + f"function {kernel.name}$core({head}) {{\n" + "".join(line + "\n" for line in lines) + "}\n"


def _one(kernel: SourceKernel, scalar: JsScalar, about: About) -> str:
    """Return the function of one state. A given ``out`` may overlap inputs: it is written when all is computed.

    Asking a typed array for its buffer, in order to refuse that, takes V8 longer than a copy.
    """
    inputs = [each.name for each in kernel.inputs]
    lines = [
        f'{each.name} = torsor$input({each.name}, {each.length}, "{kernel.name}: {each.name}");'
        for each in kernel.inputs
    ]

    def call(outputs: Sequence[str]) -> str:
        return f"{kernel.name}$core({', '.join(f'{each}, 0' for each in (*inputs, *outputs))});"

    made = _made(kernel, scalar, "{}")
    lines += [
        "if (out === undefined) {",
        f"    out = {made};",
        f"    {call(_output_fields(kernel))}",
        "    return out;",
        "}",
    ]
    lines += [*_checked(kernel, kernel.name, "{}"), call(_output_fields(kernel, f"{kernel.name}$out"))]
    copied = zip(_output_fields(kernel, f"{kernel.name}$out"), _output_names(kernel), strict=True)
    lines += [*(f"torsor$copy({own}, {name});" for own, name in copied), "return out;"]
    head = f"export function {kernel.name}({', '.join([*inputs, 'out'])})"
    text = f"const {kernel.name}$out = {made};\n\n{remarks(kernel, scalar, about)}{head} {{\n"
    return text + "".join(f"    {line}\n" for line in lines) + "}\n"


def _rows(kernel: SourceKernel, scalar: JsScalar) -> str:
    """Return the function of many states."""
    names, own = [each.name for each in kernel.inputs], f"{kernel.name}Rows"
    varied = [each for each in kernel.inputs if each.length]
    lines = [f'{name} = torsor$numbers({name}, "{own}: {name}");' for name in names]
    for n, length in ((each.name, each.length) for each in varied):
        lines.append(f'const {n}$count = torsor$count({n}, {length}, "{own}: {n}");')
    counts = ", ".join(f"{each.name}$count" for each in varied)
    lines.append(f'const count$ = torsor$common([{counts}], "{own}"), fresh$ = out === undefined;')
    lines += [f"if (fresh$) out = {_made(kernel, scalar, 'count$ * {}')};", *_checked(kernel, own, "count$ * {}")]
    given = f"[{', '.join(_output_names(kernel))}], [{', '.join(names)}], {data([*_output_fields(kernel), *names])}"
    lines.append(f'if (!fresh$) torsor$apart({given}, "{own}");')
    lines += [f"const {each.name}$step = {each.name}$count === 1 ? 0 : {each.length};" for each in varied]
    steps = [f"{each.name}, " + (f"k$ * {each.name}$step" if each.length else "0") for each in kernel.inputs]
    ends = [f"{n}, k$ * {each.length}" for n, each in zip(_output_names(kernel), kernel.outputs, strict=True)]
    lines += ["for (let k$ = 0; k$ < count$; k$++) {", f"    {kernel.name}$core({', '.join(steps + ends)});", "}"]
    about = f"{kernel.name} for many states, row by row; an input with one state serves all of them."
    head = comment(about, begin="/**") + f"export function {own}({', '.join([*names, 'out'])})"
    return f"{head} {{\n" + "".join(f"    {line}\n" for line in [*lines, "return out;"]) + "}\n"


def _output_names(kernel: SourceKernel) -> list[str]:
    """Return the variables of the outputs inside of a function: ``out``, or one for each of several."""
    return ["out"] if len(kernel.outputs) == 1 else [f"out${each.name}" for each in kernel.outputs]


def _output_fields(kernel: SourceKernel, out: str = "out") -> list[str]:
    """Return the outputs as the caller writes them: ``out``, or the fields of ``out``."""
    return [out] if len(kernel.outputs) == 1 else [f"{out}.{each.name}" for each in kernel.outputs]


def _made(kernel: SourceKernel, scalar: JsScalar, length: str) -> str:
    """Return the expression of new outputs; ``length`` is that of an array, with the entries of a state as {}."""
    made = [f"new {scalar.array}({length.format(each.length)})" for each in kernel.outputs]
    if len(made) == 1:
        return made[0]
    fields = ", ".join(f"{each.name}: {text}" for each, text in zip(kernel.outputs, made, strict=True))
    return f"{{ {fields} }}" if fields else "{}"


def _checked(kernel: SourceKernel, own: str, length: str) -> list[str]:
    """Return the statements that check given outputs, and keep each of several in a variable."""
    lines, names = list[str](), _output_names(kernel)
    if len(names) != 1:
        lines = [f'torsor$object(out, "{own}");']
        lines += [f"const {name} = {text};" for name, text in zip(names, _output_fields(kernel), strict=True)]
    for name, text, each in zip(names, _output_fields(kernel), kernel.outputs, strict=True):
        lines.append(f'torsor$output({name}, {length.format(each.length)}, "{own}: {text}");')
    return lines + ([f'torsor$distinct([{", ".join(names)}], "{own}");'] if len(names) > 1 else [])

"""What editors show of an exported module: JSDoc comments and TypeScript declarations."""

from collections.abc import Mapping, Sequence

from torsor.compiler.js.rules import JsScalar
from torsor.compiler.source.about import MARK, About, comment, plain
from torsor.compiler.source.kernel import ArrayArgument, SourceKernel


def _argument_text(each: ArrayArgument, about: About) -> str:
    """Return what an argument is: its size, its name in CasADi if that is another, and what the caller says of it."""
    rows, columns = each.size
    size = f"{rows} x {columns}" if columns != 1 else f"{rows} number{'s' if rows != 1 else ''}"
    title = "" if each.title in (each.name, "") else f", {each.title}"
    return plain(f"{size}{title}" + (f": {about.arguments[each.title]}" if each.title in about.arguments else ""))


def _returned(kernel: SourceKernel, scalar: JsScalar) -> str:
    if len(kernel.outputs) == 1:
        return scalar.array
    if not kernel.outputs:
        return "{}"
    return "{ " + ", ".join(f"{each.name}: {scalar.array}" for each in kernel.outputs) + " }"


def remarks(kernel: SourceKernel, scalar: JsScalar, about: About) -> str:
    """Return the JSDoc comment of a function: what it returns, sizes, units and frames of its arguments."""
    what = about.results.get(kernel.title, kernel.title).rstrip(".")
    lines = [plain(f"{what}. Operations: {kernel.counts}.")]
    for each in kernel.inputs:
        kind = "number | ArrayLike<number>" if each.length == 1 else "ArrayLike<number>"
        lines.append(f"@param {{{kind}}} {each.name} - {_argument_text(each, about)}")
    kind, several = _returned(kernel, scalar), len(kernel.outputs) != 1
    sizes = "; ".join((f"{each.name} " if several else "") + _argument_text(each, about) for each in kernel.outputs)
    lines += [f"@param {{{kind}}} [out] - {sizes}; made if it is left out", f"@returns {{{kind}}} out"]
    return "/**\n" + "".join(f" * {line}\n" for line in lines) + " */\n"


def _type_of(value: object) -> str:
    """Return the TypeScript type of data.

    Example:
        >>> _type_of({"name": "arm", "lower": [0.0], "active": []})
        '{ readonly "name": string; readonly "lower": readonly number[]; readonly "active": readonly string[] }'
    """
    if isinstance(value, Mapping):
        return "{ " + "; ".join(f'readonly "{key}": {_type_of(each)}' for key, each in value.items()) + " }"
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
        given = [f"{each.name}: {'number | ' if each.length == 1 else ''}Numbers" for each in kernel.inputs]
        head = f"({', '.join([*given, f'out?: {kind}'])}): {kind};\n"
        parts.append(f"{remarks(kernel, scalar, about)}export declare function {kernel.name}{head}")
        if any(each.length for each in kernel.inputs):
            rows = comment(f"{kernel.name} for many states, row by row.", begin="/**")
            parts.append(f"{rows}export declare function {kernel.name}Rows{head}")
    return "\n".join(parts)

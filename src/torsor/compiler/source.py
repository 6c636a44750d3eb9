"""Shared parts of source-text targets: names, statements, comments and files."""

import heapq
import math
import re
import secrets
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.errors import ModelError
from torsor.compiler.program import FREE_OPERATIONS, Program, count_operations, read_program

Rule = Callable[..., str]
DTYPES = ("float64", "float32")
PIECE = 1500  # maximum number of operations in a piece of a function


class Names:
    """Generator of unique identifiers that are not ``reserved``; ``form`` converts any text to an identifier."""

    def __init__(self, form: Callable[[str], str], reserved: Collection[str], taken: Iterable[str] = ()):
        self.form, self.reserved, self.taken = form, reserved, set(taken)

    def new(self, wanted: str) -> str:
        """Return a new identifier that is as similar as possible to ``wanted``."""
        name = self.form(wanted)
        reserved = name in self.reserved or re.fullmatch(r"w\d+", name)  # local variables are w0, w1, ...
        tried, count = name + "_" if reserved else name, 1
        while tried in self.taken:
            count += 1
            tried = f"{name}_{count}"
        self.taken.add(tried)
        return tried


def words(text: str) -> str:
    """Return text that begins with a letter, with underscores for characters other than ASCII letters and digits."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    # Identifiers with leading underscores are reserved for compilers.
    return name if re.match(r"[A-Za-z]", name) else "x" + name


def camel(text: str) -> str:
    """Return text in camel case: ``words`` with capitals instead of underscores."""
    first, *others = [part for part in words(text).split("_") if part]
    return first + "".join(part[0].upper() + part[1:] for part in others)


def with_names(functions: Sequence[ca.Function] | Mapping[str, ca.Function]) -> list[tuple[str, ca.Function]]:
    """Return functions with their names; raise ModelError for invalid functions or names."""
    if not isinstance(functions, Iterable):
        raise ModelError(argument="functions", value=functions, allowed="a list, or a mapping from names")
    items = list(functions.items()) if isinstance(functions, Mapping) else [(None, item) for item in functions]
    if not items:
        raise ModelError("there are no functions", allowed="one or more CasADi functions")
    result: dict[str, ca.Function] = {}
    for key, function in items:
        if not isinstance(function, ca.Function):
            raise ModelError(f"the functions contain {function!r}", value=function, allowed="CasADi functions")
        title = function.name() if key is None else key
        if not isinstance(title, str):
            raise ModelError(f"a function is named {title!r}", value=title, allowed="a string", fix="use a string")
        if title in result:
            fix = "pass a mapping from names of your choice to the functions"
            raise ModelError(f"two functions are named {title!r}", value=title, allowed="each name once", fix=fix)
        result[title] = function
    return list(result.items())


MARK = "Written by Torsor"
"""Begins every exported file; a file without it was not written by Torsor and is not replaced."""


class About(NamedTuple):
    """Documentation of exported source, provided by the caller because the compiler is independent of robots.

    ``lines`` contains general information (robot, coordinate order, units, axes, version, licence), and ``facts``
    contains the same as data (strings, numbers, lists and mappings). ``results`` describes the results of functions by
    name, and ``arguments`` describes arguments by their CasADi names.
    """

    lines: tuple[str, ...] = ()
    facts: Mapping[str, Any] = {}
    results: Mapping[str, str] = {}
    arguments: Mapping[str, str] = {}


def plain(text: str) -> str:
    """Return ASCII text that cannot end a comment; other characters become underscores.

    Slashes are kept only between letters, digits and blanks (m/s), so neither ``*/`` nor ``</script>`` remains.
    """
    text = re.sub(r"[^A-Za-z0-9_ .,:;()<>^=+/-]", "_", text)
    return re.sub(r"(?<![A-Za-z0-9 ])/|/(?![A-Za-z0-9 ])", "_", text)


def asset(name: str, package: str = "torsor.compiler", folder: str = "assets") -> str:
    """Return the text of a file in a package folder, which is included in exported source."""
    return files(package).joinpath(folder, *name.split("/")).read_text(encoding="utf-8").replace("\r\n", "\n")


def reserved_words(language: str) -> dict[str, frozenset[str]]:
    """Return the reserved names of a language ("c" or "js") by kind."""
    return {kind: frozenset(words.split()) for kind, words in tomllib.loads(asset("reserved.toml"))[language].items()}


def comment(*lines: str, begin: str = "/*") -> str:
    """Return a block comment for C and JavaScript."""
    return f"{begin} " + "\n * ".join(map(plain, lines)) + " */\n"


def is_own(file: Path) -> bool:
    """Return whether the first lines of a text file show that Torsor wrote it."""
    return MARK in file.read_text(errors="replace")[:200]


def write_all(folder: Path, texts: Mapping[str, str], overwrite: bool = True) -> list[Path]:
    """Write files under temporary names and then rename them, so that no file is incomplete at any time.

    ``texts`` contains ASCII texts by file name, which may include subfolders (``"src/arm.cpp"``).
    """
    parts: dict[Path, Path] = {}
    if "\0" in str(folder):
        raise ModelError(
            "it contains a null character", where=repr(str(folder)), allowed="a folder", fix="choose another"
        )
    if folder.suffix in {Path(entry).suffix for entry in texts} and not folder.is_dir():
        fix, allowed = repr(str(folder.with_suffix(""))), f"a folder, for {', '.join(texts)}"
        raise ModelError("a file has this name", where=str(folder), allowed=allowed, fix=fix)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        existing = [file for entry in texts if (file := folder / entry).exists()]
        for file in existing:
            if not is_own(file):
                message, allowed = "it exists and was not written by Torsor", "files written by Torsor"
                raise ModelError(message, where=str(file), allowed=allowed, fix="choose another folder")
        if existing and not overwrite:  # avoids accidental replacement
            fix = "pass `overwrite=True`, or use another place"
            raise ModelError("it already exists", where=str(existing[0]), allowed="a new file", fix=fix)
        for item, text in texts.items():
            file = folder / item
            file.parent.mkdir(parents=True, exist_ok=True)
            parts[file] = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
            parts[file].write_bytes(text.encode("ascii"))
        for file, part in parts.items():
            part.replace(file)
    except OSError as error:
        message = f"it cannot be written ({error})"
        raise ModelError(message, where=str(folder), allowed="a folder", fix="choose another") from error
    finally:
        for part in parts.values():
            if part.exists():
                part.unlink()
    return list(parts)


# The inverse of erf as in CasADi, for languages without it: a rational function and two Newton steps.
#
# For abs(x) < ``BORDER``, the function is x times a rational function of z = x^2. Beyond, it is a rational function of
# z = sqrt(-log((1 - abs(x)) / 2)), and for x < -``BORDER``, CasADi takes no Newton steps. The slope of erf at y is
# ``SLOPE`` exp(-y^2).

BORDER = 0.7
SLOPE = 2.0 / math.sqrt(math.pi)


def rules(names: str, rule: Callable[[str], Rule]) -> dict[int, Rule]:
    """Return the rules of CasADi operations for which a language has functions with the same names."""
    return {getattr(ca, f"OP_{name.upper()}"): rule(name) for name in names.split()}


def polynomial(literal: Callable[[float], str], *terms: float) -> str:
    """Return a polynomial in z by Horner's scheme, with the highest power first."""
    text = literal(terms[0])
    for term in terms[1:]:
        text = f"({text} * z + {literal(term)})" if term >= 0 else f"({text} * z - {literal(-term)})"
    return text


def check_export(dtype: str, name: str, taken: Collection[str] = ()) -> None:
    """Raise ModelError if the dtype or file name of an export is invalid."""
    if dtype not in DTYPES:
        raise ModelError(argument="dtype", value=dtype, allowed=", ".join(DTYPES))
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in taken:
        none = f", none of {', '.join(sorted(taken))}" if taken else ""
        raise ModelError(argument="name", value=name, allowed=f"letters, digits and _, a letter first{none}")


def erfinv(literal: Callable[[float], str], edges: str, root: str, step: str) -> str:
    """Return the statements that compute and return y, the inverse of erf at x.

    ``edges`` returns the limits for x at and beyond 1 and -1. ``root`` sets z = sqrt(-log((1 {sign} x) / 2)), where
    {sign} becomes + or -. ``step`` is a Newton step.
    """
    above = polynomial(literal, 1.641345311, 3.429567803, -1.624906493, -1.970840454)
    tail = f"{above} / {polynomial(literal, 1.637067800, 3.543889200, 1.0)}"
    above = polynomial(literal, -0.140543331, 0.914624893, -1.645349621, 0.886226899)
    middle = f"{above} / {polynomial(literal, -0.329097515, 0.012229801, 1.442710462, -2.118377725, 1.0)}"
    return f"""{edges}
    if (x < -{literal(BORDER)}) {{
        {root.format(sign="+")}
        return -{tail};
    }}
    if (x < {literal(BORDER)}) {{
        z = x * x;
        y = x * {middle};
    }} else {{
        {root.format(sign="-")}
        y = {tail};
    }}
    {step}
    {step}
    return y;"""


# Statements of a function in a language: one per operation, in pieces if there are many.
#
# A long function is divided into pieces, because the compile time of C compilers and JavaScript engines grows more than
# linearly with its length. Values used by later pieces are stored in a scratch array, whose elements are reused.

SCRATCH = "s"
"""The name of the scratch array; local variables are w0, w1, ... No argument may have these names."""


def infix(operator: str) -> Rule:
    """Return the rule of an operator between two operands."""
    return lambda t, a, b: f"{a} {operator} {b}"


RULES: dict[int, Rule] = {
    ca.OP_ASSIGN: lambda t, a: a,
    ca.OP_LIFT: lambda t, a, b: a,
    ca.OP_ADD: infix("+"),
    ca.OP_SUB: infix("-"),
    ca.OP_MUL: infix("*"),
    ca.OP_DIV: infix("/"),
    ca.OP_NEG: lambda t, a: f"-{a}",
    ca.OP_SQ: lambda t, a: f"{a} * {a}",
    ca.OP_TWICE: lambda t, a: f"{t.literal(2.0)} * {a}",
    ca.OP_INV: lambda t, a: f"{t.literal(1.0)} / {a}",
}
"""The rules that are the same in most languages."""


class Language:
    """A floating-point type of a language: its literals, operations and array elements.

    ``local`` is the text before the first assignment of a local variable, with a trailing space, and ``special`` are
    the literals of NaN and infinity. A rule is a function of the language and the argument texts. It returns an
    expression. An argument is a name, an array element or a literal, so it needs no parentheses.
    """

    local: str
    special: tuple[str, str]

    def __init__(self, dtype: str, rules: Mapping[int, Rule]):
        self.double, self.rules = dtype == "float64", rules

    def literal(self, number: float) -> str:
        """Return an exact text of a number, in parentheses if it has a sign."""
        if not self.double:
            with np.errstate(over="ignore"):  # overflow becomes infinity
                number = float(np.float32(number))
        if math.copysign(1.0, number) < 0:
            return f"(-{self.literal(-number)})"
        return self.digits(number) if math.isfinite(number) else self.special[math.isinf(number)]

    def digits(self, number: float) -> str:
        """Return the shortest exact text of a finite number without a sign."""
        return repr(number).removesuffix(".0")

    def expression(self, code: int, *arguments: str) -> str:
        """Return the operation with a code, applied to operands that need no parentheses."""
        return self.rules[code](self, *arguments)

    def element(self, array: str, entry: int) -> str:
        """Return the element of an argument, or of the scratch array."""
        return f"{array}[{entry}]"


class ArrayArgument(NamedTuple):
    """An argument: its name in the language, original name, size, and whether it is an output."""

    name: str
    title: str
    size: tuple[int, int]
    output: bool

    @property
    def length(self) -> int:
        """Number of entries, rows times columns."""
        return self.size[0] * self.size[1]


def _pieces(program: Program, longest: int) -> list[list[int]]:
    """Return the required operations in pieces of similar length."""
    needed = {index for index in program.targets if index is not None}
    for index in range(len(program.operations) - 1, -1, -1):
        if index in needed:
            needed.update(program.operations[index].taken)
    order = [index for index in sorted(needed) if program.operations[index].code not in FREE_OPERATIONS]
    count = max(1, -(-len(order) // longest))
    return [order[len(order) * k // count : len(order) * (k + 1) // count] for k in range(count)]


def _places(born: Iterable[tuple[int, int]], ends: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """Return a scratch index for each value, and the number of indices, which are reused after a value's last use."""
    places, free, busy, count = dict[int, int](), list[int](), list[tuple[int, int]](), 0
    for value, time in born:
        while busy and busy[0][0] <= time:
            free.append(heapq.heappop(busy)[1])
        places[value] = free.pop() if free else count
        count = max(count, places[value] + 1)
        heapq.heappush(busy, (ends[value], places[value]))
    return places, count


class Piece(NamedTuple):
    """Statements of a function, and the names of the arrays that they access."""

    lines: list[str]
    touched: set[str]


class SourceKernel:
    """A function (SX; see ``in_scalars``) in a language, in pieces of at most ``longest`` operations.

    ``arguments`` are the names of its inputs and outputs, ``arrays`` are these arguments with outputs last, and
    ``scratch`` is the length of the scratch array.
    """

    def __init__(
        self, name: str, title: str, function: ca.Function, language: Language, arguments: Sequence[str], longest: int
    ):
        self.name, self.title, self.language = name, title, language
        self.program = program = read_program(function)
        self.counts = ", ".join(f"{count} {kind}" for kind, count in count_operations(function)._asdict().items())
        titles, sizes = [*function.name_in(), *function.name_out()], [*program.inputs, *program.outputs]
        n = function.n_in()
        self.arrays = [ArrayArgument(argument, titles[k], sizes[k], k >= n) for k, argument in enumerate(arguments)]
        self.inputs, self.outputs = self.arrays[:n], self.arrays[n:]
        # Output elements to which each value is stored.
        self._targets = {
            index: [(self.outputs[k].name, entry) for k, entry in places] for index, places in program.targets.items()
        }
        self._orders = _pieces(program, longest)
        home = {index: number for number, piece in enumerate(self._orders) for index in piece}
        # Values used by later pieces have an index in the scratch array until the piece after their last use.
        ends = {a: n + 1 for i, n in home.items() for a in program.operations[i].taken if home.get(a, n) < n}
        self._slots, self.scratch = _places(((index, home[index]) for index in home if index in ends), ends)

    @property
    def operations(self) -> set[int]:
        """Codes of the operations."""
        return {operation.code for operation in self.program.operations}

    def constants(self) -> list[tuple[str, int, float]]:
        """Return the constant output entries: array, entry and number."""
        result = []
        for index, targets in self._targets.items():
            if index is None or self.program.operations[index].code == ca.OP_CONST:
                number = 0.0 if index is None else self.program.operations[index].number
                result += [(array, entry, number) for array, entry in targets]
        return result

    def constant_lines(self, constants: Iterable[tuple[str, int, float]]) -> list[str]:
        """Return the statements that store numbers in outputs."""
        element, literal = self.language.element, self.language.literal
        return [f"    {element(array, entry)} = {literal(number)};" for array, entry, number in constants]

    def copies(self) -> Piece:
        """Return the statements that copy inputs to identical outputs."""
        lines, touched = [], set[str]()
        for index, targets in self._targets.items():
            if index is not None and self.program.operations[index].code == ca.OP_INPUT:
                text = self._value(index, touched)
                touched |= {array for array, _ in targets}
                lines += [f"    {self.language.element(*target)} = {text};" for target in targets]
        return Piece(lines, touched)

    def pieces(self) -> list[Piece]:
        """Return the statements of the operations; local variables are reused."""
        return [self._piece(order) for order in self._orders]

    def _value(self, index: int, touched: set[str]) -> str:
        """Return a value that is not in a local variable as text: a literal, an input or a scratch element."""
        operation = self.program.operations[index]
        if operation.code == ca.OP_CONST:
            return self.language.literal(operation.number)
        if operation.code == ca.OP_INPUT:
            place = self.arrays[operation.arguments[0]].name, operation.arguments[1]
        else:
            place = SCRATCH, self._slots[index]
        touched.add(place[0])
        return self.language.element(*place)

    def _piece(self, order: list[int]) -> Piece:
        last = {argument: index for index in order for argument in self.program.operations[index].taken}
        targets = {index: list(self._targets.get(index, [])) for index in order}
        for index in order:
            targets[index] += [(SCRATCH, self._slots[index])] if index in self._slots else []
        local = [index for index in order if index in last or len(targets[index]) > 1]
        places, _ = _places(((index, index) for index in local), {index: last.get(index, index + 1) for index in local})
        lines, declared, touched = list[str](), set[int](), set[str]()
        for index in order:
            operation = self.program.operations[index]
            arguments = [f"w{places[a]}" if a in places else self._value(a, touched) for a in operation.taken]
            expression = self.language.expression(operation.code, *arguments)
            if index in places:
                kind = "" if places[index] in declared else self.language.local
                lines.append(f"    {kind}w{places[index]} = {expression};")
                declared.add(places[index])
                expression = f"w{places[index]}"
            touched |= {array for array, _ in targets[index]}
            lines += [f"    {self.language.element(*target)} = {expression};" for target in targets[index]]
        return Piece(lines, touched)

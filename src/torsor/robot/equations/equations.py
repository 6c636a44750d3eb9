"""Robot equations: a traced algorithm, translated to SymPy and simplified."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np
import sympy as sp
from sympy.printing.latex import LatexPrinter

from torsor.base.checks import flag, one_of, whole_number
from torsor.base.errors import ModelError
from torsor.compiler import count_operations
from torsor.compiler.program import Program, read_program
from torsor.dynamics import Request, trace
from torsor.mechanism import Mechanism
from torsor.robot.equations.algebra import MAX_TERMS, Algebra, Polynomial, TooLongError, non_polynomial
from torsor.robot.equations.letters import Letters, Parameters, parameters
from torsor.robot.equations.readable import Chain, Writer
from torsor.robot.equations.rules import RULES, Expression, number

FORMS = ("latex", "sympy")
DIGITS = 6  # significant digits of numbers in LaTeX
MAX_OPERATIONS = 1500  # largest function that is simplified; larger ones take minutes and fill pages
MIN_NAMED_OPERATIONS = 4  # operations of a subexpression that gets a name; shorter ones are easier to read inline
MAX_LINE_OPERATIONS = 14  # operations in one line of an unsimplified equation
Definitions = dict[Any, Expression]
Symbols = bool | Sequence[str] | Mapping[str, Any]


class _Printer(LatexPrinter):  # type: ignore[misc]
    """SymPy's LaTeX printer with a limited number of digits."""

    def __init__(self, digits: int, symbol_names: Mapping[Any, str]):
        super().__init__({"symbol_names": dict(symbol_names)})
        self.digits = digits

    def _print_Float(self, expr: Any) -> str:
        message = f"{float(expr):.{self.digits}g}"
        mantissa, e, exponent = message.partition("e")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if e else mantissa


@dataclass(frozen=True, eq=False)
class Equations:
    """A robot algorithm as SymPy expressions.

    ``results`` has one entry per result of the algorithm: an expression, a column or a matrix. The results contain the
    symbols of the ``inputs`` (q_1, v_1, a_1, ...), of the ``parameters`` (with their values) and of the
    ``subexpressions``, which are (symbol, expression) pairs in order of evaluation. c_12 is cos(q_1 + q_2), and s_1 is
    sin(q_1).

    Example:
        >>> found = torsor.library.two_link().equations("mass_matrix", form="sympy")
        >>> found.result[0, 1], found.subexpressions
        (0.04*c_2 + 0.12, ((c_2, cos(q_2)),))
        >>> found.expression[0, 1]
        0.04*cos(q_2) + 0.12
    """

    name: str
    results: dict[str, Any]
    subexpressions: tuple[tuple[Any, Expression], ...]
    inputs: dict[str, tuple[Any, ...]]
    parameters: dict[Any, float]
    shapes: dict[str, tuple[int, ...]] = field(repr=False)
    letters: Letters = field(repr=False)

    @property
    def result(self) -> Any:
        """The first result: an expression, a column or a matrix."""
        return next(iter(self.results.values()))

    @property
    def expression(self) -> Any:
        """The first result with all subexpressions inserted."""
        return self.whole(self.result)

    def whole(self, value: Any) -> Any:
        """Return a result with all subexpressions inserted."""
        inline: dict[Any, Expression] = {}
        for symbol, meaning in self.subexpressions:
            inline[symbol] = meaning.xreplace(inline)
        is_matrix = hasattr(value, "shape")
        return value.applyfunc(lambda item: item.xreplace(inline)) if is_matrix else value.xreplace(inline)

    def lines(self, digits: int = DIGITS) -> list[tuple[str, str]]:
        """Return the LaTeX (left, right) sides of the equations for the results, then for the subexpressions."""
        texts = {symbol: self.letters.latex.get(symbol, sp.latex(symbol)) for symbol, _ in self.subexpressions}
        texts = self.letters.latex | texts
        meanings, rows = dict(self.subexpressions), list[tuple[str, Expression]]()
        waves = {symbol for symbol, meaning in meanings.items() if meaning.func in (sp.cos, sp.sin)}  # with short names
        for name, result in self.results.items():
            shape = self.shapes[name]
            entries: dict[Expression, list[str]] = {}
            for place in np.ndindex(*shape):
                value = result[(*place, 0)[: max(len(shape), 2)]] if shape else result
                entries.setdefault(value, []).append(self.letters.result(name, shape, place))
            for value, left in entries.items():
                meaning = meanings.pop(value, value) if value not in waves else value
                if meaning is not value:  # other results refer to this one by its name
                    texts[value] = left[0]
                rows.append((" = ".join(left), meaning))
        rows += [(texts[symbol], meaning) for symbol, meaning in meanings.items()]
        return [(left, _Printer(digits, texts).doprint(value)) for left, value in rows]

    def latex(self, digits: int = DIGITS) -> str:
        """Return the equations as LaTeX, one per line."""
        body = " \\\\\n".join(f"{left} &= {right}" for left, right in self.lines(digits))
        return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"

    def code(self) -> str:
        """Return the equations as lines of SymPy-compatible Python, in order of evaluation.

        Example:
            >>> print(torsor.library.planar_chain(1).equations("gravity_force", form="sympy").code())
            c_1 = cos(q_1)
            gravity_force = Matrix([[4.905*c_1]])
        """
        values = [f"{symbol} = {value}" for symbol, value in self.parameters.items()]
        lines = [f"{symbol} = {value}" for symbol, value in self.subexpressions]
        return "\n".join([*values, *lines, *(f"{name} = {result}" for name, result in self.results.items())])

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"


def equations(
    robot: Mechanism, request: Request, form: str, symbols: Symbols, simplify: bool, digits: int
) -> "Equations | str":
    """Return a request as ``Equations``, or as LaTeX. See ``Robot.equations``."""
    one_of(form, FORMS, robot.name, "form")
    whole_number(digits, robot.name, "digits", most=17)
    letters = Letters()
    free = parameters(robot, letters, symbols)
    result = _made(robot, request, letters, free, flag(simplify, robot.name, "simplify"))
    return result if form == "sympy" else result.latex(digits)


def _made(robot: Mechanism, request: Request, letters: Letters, free: Parameters, simplify: bool) -> Equations:
    request = replace(request, free=free.free)
    function = trace(robot, request, plain=simplify or bool(free.free))
    count = count_operations(function)
    words = f"{request.name} takes {sum(count):,} operations"
    fix = "pass `simplify=False`, which names common subexpressions, or use a smaller robot"
    if simplify and sum(count) > MAX_OPERATIONS:
        raise ModelError(words, where=robot.name, allowed=f"up to {MAX_OPERATIONS:,} to simplify", fix=fix)
    shapes = {name: shape for name, shape in request.arguments(robot).items() if name != "p"}
    inputs = letters.inputs(shapes, rates=robot.nq == robot.nv)
    sizes, input_names = request.results(robot), {str(entry) for entries in inputs.values() for entry in entries}
    taken = [str(value) for value in free.values if str(value) in input_names or str(value) in sizes]
    if taken:
        message = f"the symbol {taken[0]!r} is an input or result of {request.name}"
        raise ModelError(message, where=robot.name, fix="give the parameter another name")
    program = read_program(function)
    try:
        if simplify:
            entries, made = _simplified(robot, program, inputs, letters, free)
        else:
            entries, made = direct(program, inputs, letters, free)
    except TooLongError:
        message = f"{words}, and an expanded one has more than {MAX_TERMS:,} terms"
        raise ModelError(message, where=robot.name, fix=fix) from None
    results = {name: _shaped(entry, shape) for (name, shape), entry in zip(sizes.items(), entries, strict=True)}
    used = {symbol for item in entries for entry in item for symbol in entry.free_symbols}

    def order(symbol: Any) -> tuple[bool, list[int], str]:
        numbers = [int(element) for element in re.findall(r"\d+", symbol.name)]  # c_2 before c_10
        return symbol.name[0] not in "cs", numbers, symbol.name

    arrays = {name: tuple(input_) for name, input_ in inputs.items()}
    defined = tuple(ordered(made, sorted(used, key=order)))
    return Equations(request.name, results, defined, arrays, free.values, sizes, letters)


def _shaped(entries: list[Expression], shape: tuple[int, ...]) -> Any:
    if not shape:
        return entries[0]
    if len(shape) > 2:
        return sp.ImmutableDenseNDimArray(entries, shape)
    return sp.ImmutableMatrix(shape[0], shape[1] if len(shape) > 1 else 1, entries)


def _simplified(
    robot: Mechanism, program: Program, inputs: dict[str, list[Any]], letters: Letters, free: Parameters
) -> tuple[list[list[Expression]], Definitions]:
    """Return the entries of each result in their shortest form, and the definitions of their symbols."""
    symbols = [entry for entries in inputs.values() for entry in entries] + list(free.values)
    angles = len(inputs["q"]) if next(iter(inputs), "") == "q" else 0  # positions are the first symbols
    algebra = Algebra(symbols, range(angles), non_polynomial(program))
    generator = dict(zip(symbols, algebra.ring.gens, strict=False))
    leaves = [[generator[entry] for entry in entries] for entries in inputs.values()]
    leaves.append([_polynomial(expression, generator, algebra) for expression in free.expressions])
    polynomials = algebra.run(program, leaves)
    motion = [entry for name, entries in inputs.items() if name != "q" for entry in entries]
    writer = Writer(algebra, chains(robot), motion, letters, bool(free.free))
    entries = [[writer.expression(item) for item in output] for output in polynomials]
    flat = [item for output in entries for item in output]
    flat, made = inserted(flat, writer.definitions, most=2)
    flat, made = shared(flat, made)
    remaining = iter(flat)
    return [[next(remaining) for _ in output] for output in entries], writer.trigonometric | made


def _polynomial(expression: Expression, generator: Mapping[Any, Polynomial], algebra: Algebra) -> Polynomial:
    """Return an expression that is linear in the parameters as a polynomial."""
    total = algebra.ring.zero
    for symbol, factor in expression.as_coefficients_dict().items():
        total += generator[symbol].mul_ground(sp.QQ(sp.Rational(str(factor)).p, sp.Rational(str(factor)).q))
    return total


def chains(robot: Mechanism) -> list[Chain]:
    """Return chains of consecutive revolute joints with parallel axes, as indices of their positions."""
    result: dict[int, tuple[list[int], list[int]]] = {}  # by the last joint of each chain
    for index, (joint, parent, place) in enumerate(zip(robot.joints, robot.parents, robot.coordinates, strict=True)):
        if not joint.kind.absorbs_turn or joint.ratio != 1:
            continue
        axis = joint.placement[:3, :3] @ joint.axis
        along = float(axis @ robot.joints[parent].axis) if parent in result else 0.0
        positions, signs = result.pop(parent) if abs(abs(along) - 1) < 1e-12 else ([], [])
        turned = signs[-1] * round(along) if signs else 1
        result[index] = [*positions, place.q.start], [*signs, turned]
    return [Chain(tuple(positions), tuple(signs)) for positions, signs in result.values()]


# Common subexpressions: the choice of those that get a name, and their order of evaluation.


def direct(
    program: Program, inputs: dict[str, list[Any]], letters: Letters, free: Parameters
) -> tuple[list[list[Expression]], Definitions]:
    """Return the entries of each output as they are computed, and definitions of repeated expressions."""
    positions, leaves = inputs.get("q", []), [*inputs.values(), free.expressions]
    used = [item for code, item, _ in program.operations if code not in (ca.OP_INPUT, ca.OP_CONST)]
    uses = Counter(part for some in (*used, *program.results) for part in some)
    values: list[Expression] = []
    lengths: list[int] = []
    made: Definitions = {}
    for index, (code, arguments, constant) in enumerate(program.operations):
        length = 0
        if code == ca.OP_INPUT:
            value = leaves[arguments[0]][arguments[1]]
        elif code == ca.OP_CONST:
            value = number(constant)
        else:
            value, length = RULES[code](*(values[k] for k in arguments)), 1 + sum(lengths[k] for k in arguments)
            symbol, angle = None, values[arguments[0]]
            if code in (ca.OP_SIN, ca.OP_COS) and angle in positions:
                harmonic = [int(position == angle) for position in positions]
                symbol = letters.wave("c" if code == ca.OP_COS else "s", harmonic)
            shared = uses[index] > 1 and length > 1 and not value.is_Symbol and not (-value).is_Symbol
            if symbol is None and (shared or length > MAX_LINE_OPERATIONS):
                symbol = sp.Symbol(f"w_{len(made) + 1}")
            if symbol is not None:
                made[symbol], value, length = value, symbol, 0
        values.append(value)
        lengths.append(length)
    zero = sp.Integer(0)
    return [[zero if k is None else values[k] for k in entries] for entries in program.results], made


def shared(expressions: Sequence[Expression], made: Definitions) -> tuple[list[Expression], Definitions]:
    """Return expressions and definitions, with names for common subexpressions."""
    different = list(dict.fromkeys([*expressions, *made.values()]))
    result, short = sp.cse(different, symbols=sp.numbered_symbols("w_", start=1), order="none")
    names: Definitions = {}
    inline: dict[Any, Expression] = {}
    for symbol, value in result:
        value = value.xreplace(inline)
        if value.count_ops() < MIN_NAMED_OPERATIONS:
            inline[symbol] = value
        else:
            names[symbol] = value
    number_of = {old: sp.Symbol(f"w_{k + 1}") for k, old in enumerate(names)}
    renamed = {old: new for old, new in number_of.items() if old != new}

    def final(value: Expression) -> Expression:
        return value.xreplace(inline).xreplace(renamed)

    new = dict(zip(different, map(final, short), strict=True))
    names = {number_of[symbol]: value.xreplace(renamed) for symbol, value in names.items()}
    names = {symbol: new[value] for symbol, value in made.items()} | names
    return [new[expression] for expression in expressions], names


def inserted(expressions: Sequence[Expression], made: Definitions, most: int) -> tuple[list[Expression], Definitions]:
    """Return expressions and definitions after inserting definitions of at most ``most`` operations."""
    kept: Definitions = {}
    inline: dict[Any, Expression] = {}
    for symbol, value in ordered(made, made):
        value = value.xreplace(inline)
        (inline if value.count_ops() <= most else kept)[symbol] = value
    return [expression.xreplace(inline) for expression in expressions], kept


def ordered(made: Mapping[Any, Expression], symbols: Iterable[Any]) -> list[tuple[Any, Expression]]:
    """Return the definitions that symbols need, ordered so that each definition follows those that it uses."""
    result: dict[Any, Expression] = {}
    waiting = [(symbol, False) for symbol in reversed(list(symbols)) if symbol in made]
    while waiting:
        symbol, ready = waiting.pop()
        if symbol in result:
            continue
        if ready:
            result[symbol] = made[symbol]
            continue
        waiting.append((symbol, True))
        used = sorted(made[symbol].free_symbols & made.keys() - result.keys(), key=str, reverse=True)
        waiting += [(item, False) for item in used]
    return list(result.items())

"""Polynomials in the inputs of a function, in cosines and sines of angles, and in values of other functions.

The operations of a traced function are applied to these polynomials exactly, with fractions. sin^2 is replaced by
1 - cos^2 throughout, so that equal expressions become the same polynomial and terms cancel. A quotient, root or other
function of a polynomial is an atom: a generator with a definition.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import casadi as ca
import sympy as sp
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyElement, PolyRing

from torsor.compiler.program import Program
from torsor.robot.equations.rules import exact

Polynomial = Any  # PolyElement: SymPy has no types
MAX_TERMS = 1500  # terms of one polynomial: longer sums are unreadable and slow to simplify
ROUNDING_RATIO = 1e-14  # coefficients below this fraction of the largest are rounding errors


class TooLongError(Exception):
    """Error for a polynomial with more than MAX_TERMS terms."""


class Atom(NamedTuple):
    """A non-polynomial function of polynomials: CasADi's code for the operation, and its arguments."""

    code: int
    arguments: tuple[Polynomial, ...]


class Algebra:
    """The polynomial ring over the input ``symbols`` of a function (``positions`` may be angles) and its ``atoms``."""

    def __init__(self, symbols: Sequence[Any], positions: Sequence[int], atoms: int):
        self.symbols, self.positions = list(symbols), list(positions)
        count = len(self.symbols)
        names = [f"x{k}" for k in range(count)]
        names += [f"{kind}{k}" for k in range(len(self.positions)) for kind in "cs"] + [f"f{k}" for k in range(atoms)]
        self.ring = PolyRing(names, sp.QQ, lex)
        self.pairs = [(count + 2 * k, count + 2 * k + 1) for k in range(len(self.positions))]
        self.first_atom = count + 2 * len(self.positions)
        self.angle: dict[int, Fraction] = {}  # the coefficient of each position in its angle
        self.atoms: list[Atom] = []
        self._known: dict[Atom, int] = {}

    def constant(self, value: Fraction) -> Polynomial:
        """Return a number as a polynomial."""
        return self.ring.ground_new(sp.QQ(value.numerator, value.denominator))

    def run(self, program: Program, leaves: Sequence[Sequence[Polynomial]]) -> list[list[Polynomial]]:
        """Return the entries of each output for inputs with the entries ``leaves``."""
        values: list[Polynomial] = []
        for code, arguments, value in program.operations:
            if code == ca.OP_INPUT:
                values.append(leaves[arguments[0]][arguments[1]])
            elif code == ca.OP_CONST:
                values.append(self.constant(exact(value)))
            else:
                values.append(self.operation(code, *(values[k] for k in arguments)))
            if len(values[-1]) > MAX_TERMS:
                raise TooLongError
        zero = self.ring.zero
        return [[zero if k is None else tidy(values[k]) for k in entries] for entries in program.results]

    def operation(self, code: int, *arguments: Polynomial) -> Polynomial:
        """Return the result of the CasADi operation ``code``."""
        rule = _POLYNOMIAL.get(code)
        if rule is not None:
            return rule(self, *arguments)
        if code in (ca.OP_SIN, ca.OP_COS):
            result = self._trigonometric(arguments[0])
            if result is not None:
                return result[code == ca.OP_SIN]
        if code in (ca.OP_POW, ca.OP_CONSTPOW) and arguments[1].is_ground:
            power = fraction_of(arguments[1].LC) if arguments[1] else 0
            if power == int(power) and 0 <= power <= 8:
                return self.power(arguments[0], int(power))
        return self.atom(code, *arguments)

    def atom(self, code: int, *arguments: Polynomial) -> Polynomial:
        """Return the generator that represents a function of polynomials."""
        atom = Atom(code, arguments)
        if atom not in self._known:
            self._known[atom] = len(self.atoms)
            self.atoms.append(Atom(code, tuple(map(tidy, arguments))))
        return self.ring.gens[self.first_atom + self._known[atom]]

    def times(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """Return the product a b, without squares of sines."""
        if len(a) * len(b) > 40 * MAX_TERMS:
            raise TooLongError
        return self.reduced(a * b)

    def power(self, a: Polynomial, count: int) -> Polynomial:
        """Return the power of a polynomial for an exponent of 0 or more."""
        result = self.ring.one
        for _ in range(count):
            result = self.times(result, a)
        return result

    def reduced(self, a: Polynomial) -> Polynomial:
        """Return the polynomial with squares of sines replaced."""
        for cosine, sine in self.pairs:
            a = self.reduced_at(a, cosine, sine)
        return a

    def reduced_at(self, a: Polynomial, kept: int, gone: int) -> Polynomial:
        """Return the polynomial with x^2 = 1 - y^2 for the generators x (``gone``) and y (``kept``)."""
        if not any(monomial[gone] > 1 for monomial in a):
            return a
        result: dict[tuple[int, ...], Any] = {}
        for monomial, coefficient in a.items():
            half, rest = divmod(monomial[gone], 2)
            for k in range(half + 1):
                new = list(monomial)
                new[gone], new[kept] = rest, monomial[kept] + 2 * k
                key = tuple(new)
                result[key] = result.get(key, 0) + coefficient * math.comb(half, k) * (-1) ** k
        return self.ring.from_dict(result)

    def substituted(self, a: Polynomial, new: Mapping[int, Polynomial]) -> Polynomial:
        """Return the polynomial with some generators replaced by polynomials."""
        total = self.ring.zero
        for monomial, coefficient in a.items():
            rest = tuple(0 if k in new else power for k, power in enumerate(monomial))
            term = self.ring.from_dict({rest: coefficient})
            for k, polynomial in new.items():
                term = self.times(term, self.power(polynomial, monomial[k]))
            total += term
        return total

    def _trigonometric(self, angle: Polynomial) -> tuple[Polynomial, Polynomial] | None:
        """Return the cosine and sine of an angle that is linear in the positions, or None if it is not linear."""
        multiples: dict[int, int] = {}
        offset = 0.0
        where = {place: k for k, place in enumerate(self.positions)}
        for monomial, coefficient in angle.items():
            used = [k for k, power in enumerate(monomial) if power]
            value = fraction_of(coefficient)
            if not used:
                offset = float(value)
            elif len(used) > 1 or monomial[used[0]] > 1 or used[0] not in where:
                return None
            else:
                k = where[used[0]]
                ratio = value / self.angle.setdefault(k, abs(value))
                if ratio.denominator != 1 or abs(ratio) > 8:
                    return None
                multiples[k] = int(ratio)
        quarters = offset / (math.pi / 2)
        if abs(quarters - round(quarters)) < 1e-14:
            turns = [(1, 0), (0, 1), (-1, 0), (0, -1)][round(quarters) % 4]
            c, s = (self.constant(Fraction(turn)) for turn in turns)
        else:
            c, s = self.constant(exact(math.cos(offset))), self.constant(exact(math.sin(offset)))
        for k, multiple in multiples.items():
            cos, sin = (self.ring.gens[item] for item in self.pairs[k])
            step = sin if multiple > 0 else -sin
            for _ in range(abs(multiple)):
                c, s = self.reduced(c * cos - s * step), self.reduced(s * cos + c * step)
        return c, s


def fraction_of(coefficient: Any) -> Fraction:
    """Return a coefficient, whose type depends on the installed SymPy backend, as a fraction."""
    return Fraction(int(coefficient.numerator), int(coefficient.denominator))


def tidy(a: Polynomial) -> Polynomial:
    """Return a polynomial without the terms that are rounding errors."""
    if not a:
        return a
    least = max(abs(item) for item in a.values()) * sp.QQ(1, round(1 / ROUNDING_RATIO))
    return a.ring.from_dict({monomial: item for monomial, item in a.items() if abs(item) > least})


def _quotient(algebra: Algebra, a: PolyElement, b: PolyElement) -> Polynomial:
    if b.is_ground and b:
        return a.mul_ground(1 / b.LC)
    # Quotients are not expanded: a sequence of quotients, as in an elimination, is shorter and clearer.
    return algebra.atom(ca.OP_INV, b) if a == 1 else algebra.atom(ca.OP_DIV, a, b)


_POLYNOMIAL: dict[int, Callable[..., Polynomial]] = {
    ca.OP_ASSIGN: lambda _, a: a,
    ca.OP_LIFT: lambda _, a, b: a,
    ca.OP_ADD: lambda _, a, b: a + b,
    ca.OP_SUB: lambda _, a, b: a - b,
    ca.OP_NEG: lambda _, a: -a,
    ca.OP_TWICE: lambda _, a: 2 * a,
    ca.OP_MUL: lambda algebra, a, b: algebra.times(a, b),
    ca.OP_SQ: lambda algebra, a: algebra.times(a, a),
    ca.OP_DIV: _quotient,
    ca.OP_INV: lambda algebra, a: _quotient(algebra, algebra.ring.one, a),
}


def non_polynomial(program: Program) -> int:
    """Return the maximum number of atoms that a program can have."""
    never = _POLYNOMIAL.keys() - {ca.OP_DIV, ca.OP_INV} | {ca.OP_INPUT, ca.OP_CONST}
    return sum(operation.code not in never for operation in program.operations)

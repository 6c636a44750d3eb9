"""Conversion of polynomials to short expressions, with sums of angles and collected factors."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import casadi as ca
import sympy as sp

from torsor.robot.equations.algebra import Algebra, Polynomial, TooLongError, fraction_of
from torsor.robot.equations.letters import Letters
from torsor.robot.equations.rules import RULES, Expression, number

Monomial = tuple[tuple[Any, int], ...]  # SymPy symbols with their exponents, in the order of their names
Terms = dict[Monomial, Fraction]
Harmonic = tuple[int, ...]  # the multiple of each position in an angle
MAX_FACTORED = 10  # maximum number of terms in a sum that is tested for being a square: four terms squared have ten
MAX_MULTIPLE = 4  # largest integer coefficient that may remain if a common factor is written in front of a sum
MAX_ANGLES = 3  # joints without parallel axes, whose products of cosines are tried as cosines of sums


class Chain(NamedTuple):
    """Positions of consecutive revolute joints with parallel axes, each with the sign of its axis."""

    positions: tuple[int, ...]
    signs: tuple[int, ...]


class Writer:
    """Writer of an algebra's polynomials as expressions; ``definitions`` are the symbols that it introduced.

    ``chains`` are chains of joints with parallel axes. Results are collected by the symbols in ``motion`` (velocities
    and accelerations). ``letters`` names cosines and sines. If ``fractions`` is True, 1/2 is printed instead of 0.5.
    """

    def __init__(
        self, algebra: Algebra, chains: Sequence[Chain], motion: Sequence[Any], letters: Letters, fractions: bool
    ):
        self.algebra, self.motion, self.letters, self.fractions = algebra, set(motion), letters, fractions
        straight = [chain for chain in chains if all(algebra.angle.get(k, 0) == 1 for k in chain.positions)]
        self.chains = [item for item in straight if len(item.positions) > 1]
        self.trigonometric: dict[Any, Expression] = {}
        self.definitions: dict[Any, Expression] = {}
        self._atoms: dict[int, Expression] = {}

    def expression(self, polynomial: Polynomial) -> Expression:
        """Return the shortest of several forms of a polynomial."""
        if not polynomial:
            return sp.Integer(0)
        result = []
        for form in (self._plain, self._sums, self._harmonics):
            try:
                result.append(self._collected(form(polynomial)))
            except TooLongError:  # this form is not short
                continue
            if not self.chains and form == self._plain and len(polynomial) == 1:
                break
        return min(result, key=lambda item: item.count_ops())

    def _plain(self, a: Polynomial) -> Terms:
        """Return the terms in the cosine and sine of each angle, without squares of the more frequent one."""
        return self._terms(self._fewest(a), {})

    def _sums(self, a: Polynomial) -> Terms:
        """Return the terms in absolute angles, such as cosines and sines of q_1 + q_2 for parallel axes."""
        new: dict[int, Polynomial] = {}
        angles: dict[int, Harmonic] = {}
        gens = self.algebra.ring.gens
        for chain in self.chains:
            for before, position, sign in zip(chain.positions, chain.positions[1:], chain.signs[1:], strict=False):
                (c_0, s_0), (c, s) = ([gens[k] for k in self.algebra.pairs[item]] for item in (before, position))
                new[self.algebra.pairs[position][0]] = c * c_0 + s * s_0
                new[self.algebra.pairs[position][1]] = sign * (s * c_0 - c * s_0)
            total = [0] * len(self.algebra.positions)
            for position, sign in zip(chain.positions, chain.signs, strict=True):
                total[position] = sign * chain.signs[0]
                angles[position] = tuple(total)
        return self._terms(self._fewest(self.algebra.substituted(a, new)), angles)

    def _harmonics(self, a: Polynomial) -> Terms:
        """Return the terms, with products of parallel joints' cosines and sines as cosines and sines of sums."""
        grouped = [set(chain.positions) for chain in self.chains]
        if not grouped and len(self.algebra.angle) <= MAX_ANGLES:
            grouped = [set(self.algebra.angle)]
        result: Terms = {}
        for monomial, coefficient in a.items():
            rest = list(monomial)
            products: list[tuple[dict[Any, int], Fraction]] = [({}, fraction_of(coefficient))]
            for group in grouped:
                waves: dict[tuple[str, Harmonic], Fraction] = {("c", (0,) * len(self.algebra.positions)): Fraction(1)}
                for k in group:
                    for kind, place in zip("cs", self.algebra.pairs[k], strict=True):
                        for _ in range(monomial[place]):
                            waves = _times_wave(waves, kind, k)
                        rest[place] = 0
                products = [
                    (symbols | ({self._wave(*wave): 1} if any(wave[1]) else {}), value * part)
                    for symbols, value in products
                    for wave, part in waves.items()
                ]
            common = dict(self._symbols(tuple(rest), {}))
            for symbols, value in products:
                key = _ordered(common | symbols)
                result[key] = result.get(key, Fraction(0)) + value
        return {key: value for key, value in result.items() if value}

    def _fewest(self, a: Polynomial) -> Polynomial:
        for c, s in self.algebra.pairs:
            other = self.algebra.reduced_at(a, s, c)
            a = other if len(other) < len(a) else a
        return a

    def _terms(self, a: Polynomial, angles: dict[int, Harmonic]) -> Terms:
        return {_ordered(dict(self._symbols(monomial, angles))): fraction_of(item) for monomial, item in a.items()}

    def _symbols(self, monomial: tuple[int, ...], angles: dict[int, Harmonic]) -> list[tuple[Any, int]]:
        """Return a monomial's symbols; ``angles`` are the sums of positions whose cosines and sines occur."""
        algebra, result = self.algebra, list[tuple[Any, int]]()
        for place, power in enumerate(monomial):
            if not power:
                continue
            if place < len(algebra.symbols):
                result.append((algebra.symbols[place], power))
            elif place < algebra.first_atom:
                k, sine = divmod(place - len(algebra.symbols), 2)
                single = tuple(int(item == k) for item in range(len(algebra.positions)))
                result.append((self._wave("cs"[sine], angles.get(k, single)), power))
            else:
                atom, sign = self._atom(place - algebra.first_atom)
                result.append((atom, sign * power))
        return result

    def _wave(self, kind: str, harmonic: Harmonic) -> Any:
        symbol, algebra = self.letters.wave(kind, harmonic), self.algebra
        if symbol not in self.trigonometric:
            multiples = [(m * algebra.angle[k], algebra.positions[k]) for k, m in enumerate(harmonic) if m]
            angle = sp.Add(*(number(m, self.fractions) * algebra.symbols[place] for m, place in multiples))
            self.trigonometric[symbol] = (sp.cos if kind == "c" else sp.sin)(angle)
        return symbol

    def _atom(self, k: int) -> tuple[Any, int]:
        """Return the symbol of an atom and its exponent, which is -1 if the symbol is the denominator of a quotient."""
        if k not in self._atoms:
            code, arguments = self.algebra.atoms[k]
            parts = [self.expression(argument) for argument in arguments]
            whole = parts[0] if code == ca.OP_INV else RULES[code](*parts)
            symbol = sp.Symbol(f"{'d' if code == ca.OP_INV else 'f'}_{k + 1}")
            self.definitions[symbol] = whole
            self._atoms[k] = (symbol, -1 if code == ca.OP_INV else 1)
        result: tuple[Any, int] = self._atoms[k]
        return result

    def _collected(self, terms: Terms) -> Expression:
        """Return the sum of terms, collected by velocities and accelerations."""
        groups: dict[Monomial, Terms] = {}
        for monomial, value in terms.items():
            moving = tuple(item for item in monomial if item[0] in self.motion)
            groups.setdefault(moving, {})[tuple(item for item in monomial if item[0] not in self.motion)] = value
        if len(groups) == 1 or all(len(group) == 1 for group in groups.values()):
            return self._nested(terms)
        return sp.Add(*(self._times(moving, factor) for moving, factor in groups.items()))

    def _nested(self, terms: Terms) -> Expression:
        """Return a sum of terms, recursively factoring out the most frequent symbol."""
        if len(terms) == 1:
            ((monomial, value),) = terms.items()
            return number(value, self.fractions) * _product(monomial)
        counts = Counter(symbol for monomial in terms for symbol, power in monomial if power > 0)
        most = max(counts.values(), default=0)
        if most < 2:
            return sp.Add(*(self._nested({monomial: value}) for monomial, value in terms.items()))
        common = min((count for count in counts if counts[count] == most), key=_importance)
        inner, outer = Terms(), Terms()
        for monomial, value in terms.items():
            powers = dict(monomial)
            if powers.get(common, 0) > 0:
                powers[common] -= 1
                inner[_ordered(powers)] = value
            else:
                outer[monomial] = value
        rest = self._nested(outer) if outer else sp.Integer(0)
        return sp.Add(self._times(((common, 1),), inner), rest)

    def _times(self, monomial: Monomial, terms: Terms) -> Expression:
        """Return a monomial times a sum, with the common factor of the coefficients in front."""
        content = _content(terms)
        short = {item: value / content for item, value in terms.items()}
        return sp.Mul(number(content, self.fractions), _product(monomial), self._factored(short))

    def _factored(self, terms: Terms) -> Expression:
        """Return a sum as a power of a shorter sum if possible, otherwise nested."""
        nested = self._nested(terms)
        squares = sum(all(power % 2 == 0 for _, power in monomial) for monomial in terms)
        if not 2 < len(terms) <= MAX_FACTORED or squares < 2 or not self.fractions:
            return nested
        flat = sp.Add(*(sp.Rational(v.numerator, v.denominator) * _product(m) for m, v in terms.items()))
        return min((nested, sp.sqf(flat)), key=lambda item: item.count_ops())


def _content(terms: Terms) -> Fraction:
    """Return the common factor of all coefficients if small integers remain, otherwise 1 or -1."""
    values = list(terms.values())
    sign = -1 if all(value < 0 for value in values) else 1
    above, below = zip(*(value.as_integer_ratio() for value in values), strict=True)
    common = Fraction(math.gcd(*above), math.lcm(*below))
    small = len(values) > 1 and max(abs(value) / common for value in values) <= MAX_MULTIPLE
    return sign * (common if small else Fraction(1))


def _ordered(powers: dict[Any, int]) -> Monomial:
    return tuple(sorted(((item, power) for item, power in powers.items() if power), key=lambda item: item[0].name))


def _product(monomial: Monomial) -> Expression:
    return sp.Mul(*(symbol**power for symbol, power in monomial))


def _importance(symbol: Any) -> tuple[int, str]:
    """Return the sort key for factoring out symbols: masses and inertias, gravity, lengths, then cosines."""
    first = symbol.name[0]
    return ("mIg".find(first) if first in "mIg" else 5 if first in "cs" else 4, symbol.name)


def _times_wave(waves: dict[tuple[str, Harmonic], Fraction], kind: str, k: int) -> dict[tuple[str, Harmonic], Fraction]:
    """Return a sum of cosines and sines, multiplied by the cosine or sine of position k, as another such sum."""
    result: dict[tuple[str, Harmonic], Fraction] = {}
    for (letter, angle), value in waves.items():
        for sign in (1, -1):
            # cos a cos b, cos a sin b, sin a cos b and sin a sin b as half sums of two terms in a + b and a - b
            other = tuple(item + sign * (place == k) for place, item in enumerate(angle))
            part = value / 2 * (sign if kind == "s" and letter == "c" else -sign if kind == letter == "s" else 1)
            new = "c" if letter == kind else "s"
            if next((item for item in other if item), 1) < 0:
                other, part = tuple(-item for item in other), -part if new == "s" else part
            if new == "c" or any(other):
                result[new, other] = result.get((new, other), Fraction(0)) + part
    return {wave: value for wave, value in result.items() if value}

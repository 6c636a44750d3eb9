"""The equations with the columns of all terms: those that are asked for, and those that a criterion chooses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from torsor.base.arrays import Array
from torsor.identification.choice import choose, shaped
from torsor.identification.estimation import Equations, Method, estimate
from torsor.identification.least_squares import Fit
from torsor.identification.model import Filter, Model, with_terms
from torsor.identification.terms import COUPLING, LAWS, OFFERED, WARM, Motion, Term, tried

LOADS = 4  # fits in turn of the transmitted forces and of the friction that depends on them


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is wanted: the direction (nv,) of each drive, the ``motors`` among them, ``laws`` of each drive.

    ``chosen`` are the drives whose laws the ``criterion`` chooses; laws of temperature only where it is ``warm``.
    """

    directions: Mapping[str, Array]
    motors: tuple[str, ...]
    laws: Mapping[str, tuple[str, ...]]
    chosen: tuple[str, ...]
    criterion: str
    warm: bool

    def term(self, drive: str, law: str) -> Term:
        """Return a term of a drive."""
        return Term(drive, law, tuple(self.directions[drive].tolist()))


def extended(
    model: Model, reference: Model | None, equations: Equations, through: Filter, wanted: Wanted, method: Method
) -> tuple[Equations, tuple[Term, ...], dict[str, dict[str, float]]]:
    """Return the equations with all terms, the terms, and what laws of the chosen drives are worth.

    ``reference`` is the model along the motion of the instruments, if any.
    """
    terms = [wanted.term(motor, law) for motor in wanted.motors for law in COUPLING]
    fixed = [wanted.term(drive, law) for drive, laws in wanted.laws.items() for law in laws]
    if not terms and not fixed and not wanted.chosen:
        return equations, (), {}
    builder = _Builder(model, reference, equations, through)
    plain = Method(method.robust, "white")
    builder = builder.at(estimate(builder.whole(terms), plain))
    for term in fixed:
        terms = builder.added(terms, term)
    changes: dict[str, dict[str, float]] = {}
    if wanted.chosen:
        laws = [law for law in OFFERED if wanted.warm or law not in WARM]
        offered = [wanted.term(drive, law) for drive in wanted.chosen for law in laws]
        options = [each for term in offered for each in tried(term, builder.motion)]
        whole = builder.whole(terms)
        found = choose(whole, estimate(whole, plain), builder.columns, options, wanted.criterion)
        changes = {drive: dict(own) for drive, own in found.changes.items()}
        terms += found.terms
        for term in found.terms:
            if LAWS[term.law].shapes:
                terms = builder.added([each for each in terms if each is not term], term)
    if any(term.law == "load" for term in terms):
        for _ in range(LOADS):
            builder = builder.at(estimate(builder.whole(terms), plain))
    return builder.whole(terms), tuple(terms), changes


@dataclass(frozen=True, eq=False)
class _Builder:
    """Columns of terms, whose load is that of base parameters ``values`` (b,); of the given robot at first."""

    model: Model
    reference: Model | None
    equations: Equations
    through: Filter
    values: Array | None = None

    def at(self, found: Fit) -> "_Builder":
        return replace(self, values=found.values[: len(self.model.base)])

    def _motion(self, model: Model) -> Motion:
        return model.motion(model.base.values if self.values is None else self.values)

    @cached_property
    def motion(self) -> Motion:
        return self._motion(self.model)

    def columns(self, terms: Sequence[Term]) -> Array:
        return self.through(self.motion.columns(terms))

    def whole(self, terms: Sequence[Term]) -> Equations:
        """Return the equations with the columns of terms."""
        if not terms:
            return self.equations
        instruments = None
        if self.reference is not None:
            instruments = self.through(self._motion(self.reference).columns(terms))
        return with_terms(self.equations, self.columns(terms), terms, instruments)

    def added(self, terms: Sequence[Term], term: Term) -> list[Term]:
        """Return the terms and one more, with its best shape."""
        if not LAWS[term.law].shapes:
            return [*terms, term]
        whole = self.whole(terms)
        shapes = [each.shape for each in tried(term, self.motion)]
        return [*terms, shaped(whole, estimate(whole, Method(noise="white")), self.columns, term, shapes)]

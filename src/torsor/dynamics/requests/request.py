"""The request of a function of a mechanism: an algorithm, its options, and the form of its results."""

from dataclasses import dataclass, replace

from torsor.dynamics.loops.constrained import Closing
from torsor.dynamics.requests.algorithms import ALGORITHMS, sizes
from torsor.mechanism import Mechanism
from torsor.mechanism.free import Free

__all__ = ["LOADS", "Request", "Shape"]

Shape = tuple[int, ...]

LOADS = ("", "link", "world", "point")
"""No external wrenches; or wrenches that are constant while q changes: in the link, in the world, or in the world as a
couple and a force at a point of the link."""


@dataclass(frozen=True)
class Request:
    """One function of a mechanism, with everything that it depends on besides the mechanism.

    ``loads`` is one of ``LOADS``, ``place`` the name of a link or frame, ``forced`` are the coordinates driven by
    force, ``closing`` is the choice of equations that closes loops, ``order`` the number of rates, ``free`` are the
    numbers of the mechanism that are inputs. ``form`` is "value" for the results, "sparse" for their structural
    nonzeros, "jvp" with Jacobian-vector products, "vjp" with vector-Jacobian products, "jacobian" for all derivatives.
    Derivatives are ``by`` the named inputs (all by default); those by positions are along ``integrate``, or by their
    ``components``.
    """

    name: str
    loads: str = ""
    place: str | None = None
    forced: frozenset[int] | None = None
    closing: Closing | None = None
    order: int = 1
    free: tuple[Free, ...] = ()
    form: str = "value"
    by: tuple[str, ...] = ()
    components: bool = False

    @property
    def plain(self) -> "Request":
        """The same request in the form "value"."""
        return replace(self, form="value", by=(), components=False)

    def arguments(self, mechanism: Mechanism) -> dict[str, Shape]:
        """Return the shape, for one state, of each input of the algorithm."""
        algorithm, size = ALGORITHMS[self.name], sizes(mechanism)
        shapes: dict[str, Shape] = {name: (size[algorithm.size_of(name)],) for name in algorithm.inputs}
        if self.closing is not None and self.closing.coupled and "share" in shapes:
            shapes["share"] = size["N"], size["N"]
        if algorithm.rates:
            shapes |= {f"j_{k}": (size["n"],) for k in range(1, self.order)}
        if self.loads:
            shapes["external"] = size["L"], 6
            if algorithm.rates:
                shapes["external_rate"] = size["L"], 6
            if self.loads == "point":
                shapes["points"] = size["L"], 3
        return shapes | ({"p": (len(self.free),)} if self.free else {})

    def results(self, mechanism: Mechanism) -> dict[str, Shape]:
        """Return the shape, for one state, of each result of the algorithm."""
        algorithm, size = ALGORITHMS[self.name], sizes(mechanism)
        shape = tuple(axis if isinstance(axis, int) else size[axis] for axis in algorithm.output)
        names = algorithm.results
        if algorithm.rates:
            names = (*names, *(f"{names[-1]}_{k}" for k in range(1, self.order)))
        return {f"{self.name}_{each}": shape for each in names} if names else {self.name: shape}

    def inputs(self, mechanism: Mechanism) -> dict[str, Shape]:
        """Return the shape, for one state, of each input of the function."""
        shapes = self.arguments(mechanism)
        if self.form == "jvp":
            return shapes | {f"d_{name}": shape for name, shape in self.tangents(mechanism).items()}
        if self.form == "vjp":
            return shapes | {f"bar_{name}": shape for name, shape in self.results(mechanism).items()}
        return shapes

    def outputs(self, mechanism: Mechanism) -> dict[str, Shape]:
        """Return the shape, for one state, of each output of the function; the lengths of sparse ones are not known."""
        shapes, tangents = self.results(mechanism), self.tangents(mechanism)
        if self.form == "jvp":
            return shapes | {f"d_{name}": shape for name, shape in shapes.items()}
        if self.form == "vjp":
            return shapes | {f"bar_{name}": shape for name, shape in tangents.items()}
        if self.form == "jacobian":
            return {
                f"{name}_by_{each}": shape + tangents[each]
                for name, shape in shapes.items()
                for each in self.by or tangents
            }
        return shapes

    def tangents(self, mechanism: Mechanism) -> dict[str, Shape]:
        """Return the shape of the tangent of each input: for positions, that of a velocity or of their components."""
        turned = {} if self.components else dict.fromkeys(self.positions, (mechanism.nv,))
        return self.arguments(mechanism) | turned

    @property
    def positions(self) -> tuple[str, ...]:
        """The inputs that are positions."""
        algorithm = ALGORITHMS[self.name]
        return tuple(name for name in algorithm.inputs if algorithm.size_of(name) == "nq")

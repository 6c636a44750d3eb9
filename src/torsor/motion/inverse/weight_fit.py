"""The result of a weight fit: the weights, the motion, and the uncertainty of the weights."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from torsor.base.archive import Archive, reading_archive, register_result
from torsor.base.arrays import Array, Flags
from torsor.base.documents import plain
from torsor.base.figures import label_of_title, new_figure, saved, styled
from torsor.base.files import check_array
from torsor.base.result import Result
from torsor.base.summary import Summary
from torsor.base.tables import Column
from torsor.mechanism.mechanism import robot_facts
from torsor.motion.problem import MotionProblem, MotionResult, load_problem
from torsor.motion.results import files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNCLEAR_DEVIATION = 1.0  # standard deviation of the logarithm above which a combination is unclear; 1 is a factor of e
# Change of the data, in units of their scales, when a combination changes by a factor of e; below this value, the data
# are considered independent of the combination.
UNSEEN_CHANGE = 1e-6
TEXT_FIELDS = ("names", "data", "status")


class Combination(NamedTuple):
    """A product of powers of weights: {name: exponent}, and the standard deviation of its logarithm."""

    exponents: dict[str, float]
    deviation: float

    def __str__(self) -> str:
        parts = (f"{name}^{power:.2g}" for name, power in self.exponents.items() if abs(power) > 0.05)
        return " ".join(parts)


@dataclass(frozen=True, eq=False, repr=False)
class WeightFit(Result):
    """The result of ``motion.fit_weights``.

    ``motion`` is the predicted motion of the problem with the fitted weights. ``names`` and ``values`` (k,) are the
    names and values of the weights. ``data`` are the names of the data sets, and ``distances`` their root mean square
    residuals, in units of their scales. ``nearest`` is that of the nearest feasible motion over all data, and
    ``explained`` is the fraction of the variance over time that the prediction explains. ``x_by_weights`` (n, k) and
    ``data_by_weights`` (R, k) are the exact derivatives of variables and residuals with respect to the weights,
    ``residuals`` (R,) are the residuals, and ``history`` (steps, 1 + k) contains the sum of their squares and the
    weights after each step. For ``flat`` and ``weak``, see ``WeightSensitivities``.
    """

    motion: MotionResult
    names: tuple[str, ...]
    values: Array
    data: tuple[str, ...]
    distances: tuple[float, ...]
    nearest: float
    explained: float
    x_by_weights: Array
    data_by_weights: Array
    residuals: Array
    history: Array
    status: str
    flat: int = 0
    weak: int = 0

    kind = "weights"

    def __repr__(self) -> str:
        message = ", ".join(f"{name} {value:.4g}" for name, value in self.weights.items())
        return f"<WeightFit of {self.problem.name!r} to {', '.join(self.data)}: {self.status}, {message}>"

    @property
    def problem(self) -> MotionProblem:
        """The problem with the fitted weights."""
        return self.motion.problem

    @property
    def weights(self) -> dict[str, float]:
        """Weights by name, each of which multiplies the weights of its terms."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    @property
    def is_solved(self) -> bool:
        """Whether the search reached a local optimum."""
        return self.status.startswith("optimal")

    @property
    def iterations(self) -> int:
        """The number of steps that improved the weights."""
        return len(self.history) - 1

    @cached_property
    def _modes(self) -> tuple[Array, Array]:
        """Singular values (k - 1,) and directions (k, k - 1) of the data's derivatives with respect to log weights."""
        J, k = self.data_by_weights * self.values, len(self.names)
        basis = np.linalg.svd(np.ones((1, k)))[2][1:].T  # excludes the common factor, which has no effect
        _, s, vt = np.linalg.svd(J @ basis, full_matrices=False)
        return s, basis @ vt.T

    @property
    def _unseen(self) -> Flags:
        """Flags (k - 1,) of the combinations on which the data do not depend."""
        s = self._modes[0]
        return np.asarray(s <= UNSEEN_CHANGE * max(s.max(initial=0.0), np.sqrt(len(self.residuals))))

    @property
    def noise(self) -> float:
        """Standard deviation of the residuals, corrected for the number of fitted weights."""
        free = max(len(self.residuals) - len(self.names) + 1, 1)
        return float(np.sqrt(self.residuals @ self.residuals / free))

    @property
    def log_covariance(self) -> Array:
        """Covariance (k, k) of the log weights; entries are infinite for weights that the data do not determine."""
        (s, v), unseen = self._modes, self._unseen
        seen = v[:, ~unseen] / np.where(unseen, 1.0, s)[~unseen]
        result = self.noise**2 * seen @ seen.T
        return np.asarray(np.where(np.abs(v[:, unseen]).sum(axis=1)[:, None] > 1e-6, np.inf, result))

    @property
    def deviations(self) -> dict[str, float]:
        """Standard deviations of the log weights; small ones are relative errors."""
        return dict(zip(self.names, np.sqrt(np.diag(self.log_covariance)).tolist(), strict=True))

    @property
    def unclear(self) -> tuple[Combination, ...]:
        """Weight combinations that the data do not determine, worst first."""
        (s, v), unseen, result = self._modes, self._unseen, list[Combination]()
        for k in np.argsort(s).tolist():
            way, deviation = v[:, k], np.inf if unseen[k] else self.noise / float(s[k])
            if deviation > UNCLEAR_DEVIATION:
                sign = 1.0 if way[np.argmax(np.abs(way))] > 0 else -1.0
                exponents = dict(zip(self.names, (sign * way).tolist(), strict=True))
                result.append(Combination(exponents, float(deviation)))
        return tuple(result)

    def report(self) -> str:
        """Return a text report: weights with errors, residuals, and undetermined combinations."""
        return self._summary().text()

    @classmethod
    def load(cls, path: str | Path, problem: MotionProblem | None = None) -> "WeightFit":
        """Load a fit from a .npz file; if it lacks the problem, pass ``problem`` with the fitted weights."""
        with reading_archive(Path(path), cls.kind) as archive:
            motion = MotionResult.of(files.of_archive(archive.part("motion/"), problem, load_problem))
            texts, arrays = {name: archive.settings[name] for name in TEXT_FIELDS}, archive.arrays
            names, data = (tuple(str(text) for text in texts[key]) for key in ("names", "data"))
            k, n, count = len(names), motion.program.n, len(arrays["residuals"])
            shapes: dict[str, tuple[int, ...]] = {"values": (k,), "distances": (len(data),), "figures": (4,)}
            shapes |= {"x_by_weights": (n, k), "data_by_weights": (count, k), "residuals": (count,)}
            shapes["history"] = (len(arrays["history"]), 1 + k)
            for name, shape in shapes.items():
                check_array(arrays[name], shape, name)
            nearest, explained, flat, weak = arrays["figures"].tolist()
            named = {name: arrays[name] for name in shapes if name not in ("distances", "figures")}
            status, distances = str(texts["status"]), tuple(arrays["distances"].tolist())
            counts = {"flat": int(flat), "weak": int(weak), "nearest": nearest, "explained": explained}
            return cls(motion, names=names, data=data, distances=distances, status=status, **named, **counts)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Plot weights and residuals over the search steps and return the figure; with ``path``, save it too."""
        figure = new_figure(9.0, 4.0)
        left, right = figure.subplots(1, 2)
        for name, column in zip(self.names, self.history[:, 1:].T, strict=True):
            left.semilogy(column, "o-", label=name)
        left.legend(frameon=False)
        right.semilogy(np.sqrt(np.maximum(self.history[:, 0], 1e-300) / len(self.residuals)), "o-", color="C0")
        for axes, what in ((left, "weight"), (right, "rms distance (scales)")):
            styled(axes, "", what)
            axes.set_xlabel("step")
        figure.suptitle(label_of_title(f"{self.problem.name}: weights fitted to {', '.join(self.data)}"))
        return saved(figure, path)

    def _archive(self) -> Archive:
        motion = files.archive(self.motion)
        names = ("values", "x_by_weights", "data_by_weights", "residuals", "history", "distances")
        arrays = {name: getattr(self, name) for name in names}
        arrays["figures"] = [self.nearest, self.explained, self.flat, self.weak]
        settings = {name: plain(getattr(self, name)) for name in TEXT_FIELDS}
        units = {"values": "1", "residuals": "scales of the data", "motion/": "as in a motion"}
        return Archive(self.kind, arrays | motion.within("motion/"), settings, units)

    def _columns(self) -> list[Column]:
        weights = [Column(f"weight {name}", "1", self.history[:, 1 + k]) for k, name in enumerate(self.names)]
        steps = Column("step", "1", list(range(len(self.history))))
        return [steps, Column("squared distances", "1", self.history[:, 0]), *weights]

    def _content(self) -> dict[str, Any]:
        return {
            "units": {"distances": "scales of the data"},
            "robot": robot_facts(self.motion.robot),
            "name": self.problem.name,
            "weights": self.weights,
            "deviations": plain(self.deviations),
            "distances": dict(zip(self.data, plain(self.distances), strict=True)),
            **{name: getattr(self, name) for name in ("nearest", "explained")},
            "unclear": [
                {"exponents": combination.exponents, "deviation": plain(combination.deviation)}
                for combination in self.unclear
            ],
            **{name: getattr(self, name) for name in ("iterations", "is_solved", "status")},
        }

    def _summary(self) -> Summary:
        sizes = zip(self.data, self.distances, strict=True)
        facts = {
            "data": "; ".join(f"{name}: rms {distance:.3g} of the scale" for name, distance in sizes),
            "nearest motion": f"rms {self.nearest:.3g}",
            "explained": f"{100 * self.explained:.1f} % of the variance",
            "status": f"{self.status}, {self.iterations} steps",
        }
        if self.unclear:
            facts["not determined by the data"] = "; ".join(
                f"{combination} (+-{combination.deviation:.2g})" for combination in self.unclear
            )
        if self.flat or self.weak:
            facts["degenerate"] = f"{self.flat} flat directions, {self.weak} weak constraints"
        errors = self.deviations
        rows = [(name, f"{value:.6g}", f"{errors[name]:.2g}") for name, value in self.weights.items()]
        return Summary(repr(self).strip("<>"), facts, ("weight", "value", "relative error"), rows)


register_result("weights", WeightFit, "fitted weights of objectives")

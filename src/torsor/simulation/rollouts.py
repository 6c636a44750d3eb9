"""The result of ``rollout``: samples where they were computed, gradients through them, and files without a card."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.archive import Archive, as_bytes, reading_archive, robot_text
from torsor.base.arrays import Array
from torsor.base.documents import plain, robot_facts, state_units
from torsor.base.errors import ModelError, describe
from torsor.base.figures import checked_what
from torsor.base.files import check_array
from torsor.base.result import Result
from torsor.base.summary import Summary
from torsor.base.tables import Column, columns_of
from torsor.mechanism.units import units
from torsor.robot.robot import Robot
from torsor.simulation.plot import plot, summary
from torsor.simulation.samples import Samples

DRAWN = ("q", "v")


@dataclass(frozen=True, eq=False, repr=False)
class Rollout(Result):
    """Motions of a ``robot``: ``q`` (..., T, nq) and ``v`` (..., T, nv) at ``times`` (T,), in s.

    ``q`` and ``v`` are arrays of CuPy if the robot computes on a card; in files and pickles they are arrays of NumPy.
    Nothing is checked: a motion that diverges has numbers that are not finite. ``settings`` says how it was made.

    Example:
        >>> from torsor.simulation import rollout
        >>> rollout(torsor.library.two_link(), np.zeros((100, 2)), np.ones(2), 0.01)
        <Rollout of 'two_link': 100 x 11 samples, 0.01 s>
    """

    times: Array
    q: Any
    v: Any
    _pull: Callable[[Any, Any], tuple[Any, ...]] | None
    robot: Robot
    settings: Mapping[str, Any] = field(default_factory=dict)

    kind = "rollout"

    def vjp(self, q_bar: Any = None, v_bar: Any = None) -> tuple[Any, ...]:
        """Return the gradients of a cost by q0 (..., nq), by v0 (..., nv), and by a constant force or wrench if given.

        ``q_bar`` (..., T, nq) and ``v_bar`` (..., T, nv) are the derivatives of the cost by all samples, zero if they
        are not given. Gradients by positions are those by their components. Each rollout has its own: sum them where
        rollouts have a common start or force. The rollout must have recorded each step (``record=1``), and a rollout
        from a file has no gradients.

        Example:
            >>> from torsor.simulation import rollout
            >>> arm = torsor.library.two_link()
            >>> run = rollout(arm, np.zeros(2), np.array([1.0, 0.0]), 0.01)
            >>> at_end = np.zeros_like(run.q)
            >>> at_end[-1, 0] = 1.0  # the first angle at the end
            >>> dq, dv = run.vjp(at_end)
            >>> round(float(dv[0]), 3)  # about the duration
            0.01
        """
        if self._pull is None:
            found, fix = "gradients of a rollout from a file or a pickle", "compute it again with simulation.rollout"
            raise ModelError(describe(found, where=self.robot.name, fix=fix))
        return self._pull(q_bar, v_bar)

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        batch = "".join(f"{n} x " for n in self.q.shape[:-2])
        return f"<Rollout of {self.robot.name!r}: {batch}{len(self)} samples, {self.times[-1]:.6g} s>"

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: arrays of this machine, and no compiled gradients."""
        return vars(self) | {"q": _here(self.q), "v": _here(self.v), "_pull": None}

    @classmethod
    def load(cls, path: str | Path, robot: Robot | None = None) -> "Rollout":
        """Return the rollout of a .npz file, for the given robot or the one that the file contains."""
        with reading_archive(Path(path), cls.kind) as found:
            own = found.robot if robot is None else robot
            times, q, v = (found.arrays[name] for name in ("times", "q", "v"))
            count, batch = len(np.atleast_1d(times)), q.shape[:-2]
            check_array(times, (count,), "times")
            check_array(q, (*batch, count, own.nq), "q")
            check_array(v, (*batch, count, own.nv), "v")
            if not count or not (np.isfinite(times).all() and (np.diff(times) > 0).all()):
                raise ValueError("the times do not increase")
            return cls(times, q, v, None, own, found.settings)

    def plot(self, path: str | Path | None = None, what: Sequence[str] = DRAWN) -> Any:
        """Draw positions (q) and velocities (v) over time and return the figure; with ``path``, save it too."""
        samples = self._samples()
        return plot(samples, lambda name: getattr(samples, name), checked_what(what, DRAWN), path)

    def _samples(self) -> Samples:
        q, v = (_here(each) for each in (self.q, self.v))
        none = np.zeros_like(v)
        return Samples(self.robot, self.times, q, v, none, none, settings=self.settings)

    def _archive(self) -> Archive:
        robot = as_bytes(robot_text(self.robot))
        arrays: dict[str, Any] = {"times": self.times, "q": _here(self.q), "v": _here(self.v), "robot": robot}
        known = state_units(self.robot)
        return Archive(self.kind, arrays, plain(self.settings), {"times": "s", "q": known["q"], "v": known["v"]})

    def _columns(self) -> list[Column]:
        if self.q.ndim != 2:
            found = f"{tuple(self.q.shape[:-2])} rollouts do not fit into a .csv file"
            raise ModelError(describe(found, where=self.robot.name, fix="save a .npz file"))
        positions, rates = units(self.robot)
        return [
            Column("time", "s", self.times),
            *columns_of("q", self.robot.position_names, positions, _here(self.q)),
            *columns_of("v", self.robot.coordinate_names, [f"{unit}/s" for unit in rates], _here(self.v)),
        ]

    def _content(self) -> dict[str, Any]:
        return {
            "units": {"times": "s"},
            "robot": robot_facts(self.robot),
            "settings": plain(self.settings),
            **{name: plain(_here(getattr(self, name))) for name in ("times", "q", "v")},
        }

    def _summary(self) -> Summary:
        found = summary(self._samples())
        rows = [row[:2] for row in found.rows]  # it has no forces
        facts = {name: text for name, text in found.facts.items() if name != "status"}
        return Summary(f"Rollout of {self.robot.name}", facts, found.head[:2], rows)


def _here(array: Any) -> Array:
    """Return an array of this machine, from a card if it is there."""
    return np.asarray(array.get() if hasattr(array, "get") else array)

"""Periodic excitation trajectories as finite Fourier series."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.archive import Archive, as_bytes, reading_archive, register_result
from torsor.base.arrays import Array
from torsor.base.checks import arrays
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.base.figures import Bound, Quantity, plot_quantities
from torsor.base.files import check_array
from torsor.base.result import Result
from torsor.base.summary import Summary
from torsor.base.tables import Column, check_rate, columns_of, instants, write_points, write_table
from torsor.mechanism.friction import friction_jumps
from torsor.mechanism.mechanism import FORCES, robot_facts, state_units, units
from torsor.robot.archived import archived_robot, robot_text
from torsor.robot.robot import Robot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def features(t: ArrayLike, period: float, harmonics: int) -> tuple[Array, Array, Array]:
    """Return 1, sin(k w t), cos(k w t) and their first two derivatives at times t, each (..., 2 H + 1).

    Here w = 2 pi / period (1/s), and k runs from 1 to H. Sines precede cosines.
    """
    times = np.asarray(t, dtype=float)[..., None]
    w = 2 * np.pi / period * np.arange(1, harmonics + 1)
    s, c = np.sin(w * times), np.cos(w * times)
    one, nothing = np.ones_like(times), np.zeros_like(times)
    value, rate = np.concatenate([one, s, c], -1), np.concatenate([nothing, w * c, -w * s], -1)
    return value, rate, np.concatenate([nothing, -(w**2) * s, -(w**2) * c], -1)


@dataclass(frozen=True, eq=False)
class Series:
    """The Fourier series of a search: ``period`` (s), number of ``harmonics`` H, and ``rest`` (at both ends)."""

    period: float
    harmonics: int
    rest: bool

    @cached_property
    def basis(self) -> Array:
        """Orthonormal basis (2 H + 1, m) of the coefficients of one coordinate.

        With ``rest``, all series in its span have v = 0 and a = 0 at both ends.
        """
        if not self.rest:
            return np.eye(2 * self.harmonics + 1)
        _, rate, second = features(0.0, 2 * np.pi, self.harmonics)
        return np.asarray(np.linalg.svd(np.stack([rate, second]))[2][2:].T)

    def sampled(self, count: int) -> tuple[Array, Array, Array]:
        """Return ``features`` (count, 2 H + 1) at equally spaced times of one period."""
        return features(np.arange(count) * self.period / count, self.period, self.harmonics)


POINTS_PER_PERIOD = 401  # points per period in figures and tables
LIMITS = (("lower", "upper"), ("velocity",), ("acceleration",), ("effort",))
STATUSES = ("done", "interrupted")
FORCES_TITLE = "Forces of the given robot"


class ExcitationInstants:
    """An excitation trajectory sampled at times (...)."""

    def __init__(self, motion: "Excitation", times: Array):
        self.times, self._robot = times, motion.robot
        self.q, self.v, self.a = motion(times)

    @cached_property
    def tau(self) -> Array:
        """Forces (..., n) of ``robot``."""
        return self._robot.inverse_dynamics(self.q, self.v, self.a)


@dataclass(frozen=True, eq=False)
class Excitation(Result):
    """An excitation trajectory, in which q_j(t) is the sum of ``coefficients`` times ``features``.

    ``period`` is in s. ``coefficients`` (2 H + 1, n) are in rad or m: the constant, H sines and H cosines of each
    coordinate. ``condition`` is the condition number of the base regressor along the motion, and ``start_condition``
    that of the initial guess, the best random motion. ``status`` is "done" or "interrupted" (Ctrl-C). ``settings`` are
    the arguments of ``excite``, including the limits (n,).

    Example:
        >>> sway = Excitation(torsor.library.planar_chain(1), 2.0, np.array([[0.0], [1.0], [0.0]]), 1.0, 1.0)
        >>> sway.at(0.5).q.round(9).tolist(), sway.at(0.5).v.round(9).tolist()
        ([1.0], [0.0])
    """

    kind = "excitation"
    robot: Robot
    period: float
    coefficients: Array
    condition: float
    start_condition: float
    status: str = "done"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def harmonics(self) -> int:
        """Number of harmonics H."""
        return len(self.coefficients) // 2

    def __repr__(self) -> str:
        text = f"{self.harmonics} harmonics of {self.period:.6g} s, condition number {self.condition:.4g}"
        return f"<Excitation of {self.robot.name!r}: {text}, {self.status}>"

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return (q, v, a), each (..., n), at times t (...), in s."""
        q, v, a = (feature @ self.coefficients for feature in features(t, self.period, self.harmonics))
        return q, v, a

    def at(self, t: ArrayLike) -> "ExcitationInstants":
        """Return q, v, a and tau (..., n) at any finite times t (...), in s.

        The forces are those of ``robot``.

        Example:
            >>> sway = Excitation(torsor.library.planar_chain(1), 2.0, np.array([[0.0], [1.0], [0.0]]), 1.0, 1.0)
            >>> sway.at([0.0, 0.5]).q.round(9).tolist(), sway.at(0.5).a.round(3).tolist()
            ([[0.0], [1.0]], [-9.87])
        """
        return ExcitationInstants(self, arrays(t, (), self.robot.name, "t"))

    def law(self, t: Any) -> ca.SX:
        """Return the positions (n x 1) at a symbolic (CasADi) time: a reference for controllers of ``torsor.control``.

        Example:
            >>> robot = torsor.library.planar_chain(2)
            >>> sway = Excitation(robot, 2.0, np.array([[0.0, 3.0], [1.0, 0.0], [0.0, 0.0]]), 1.0, 1.0)
            >>> control = torsor.control.computed_torque(robot, sway.law, bandwidth=10.0)
            >>> control.reference(0.5)[0].round(9).tolist()
            [1.0, 3.0]
        """
        w = 2 * np.pi / self.period * np.arange(1, self.harmonics + 1)
        series = ca.vertcat(1, *(ca.sin(each * t) for each in w), *(ca.cos(each * t) for each in w))
        positions: ca.SX = ca.DM(self.coefficients.T) @ series
        return positions

    def report(self) -> str:
        """Return a text summary of the motion with the maximum speed and acceleration of each coordinate.

        Example:
            >>> sway = Excitation(torsor.library.planar_chain(1), 2.0, np.array([[0.0], [1.0], [0.0]]), 1.0, 1.0)
            >>> print(sway.report().splitlines()[-1])
            joint1      3.142 rad/s    9.87 rad/s²
        """
        return self._summary().text()

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Plot positions, velocities, accelerations and forces of one period with their limits.

        The forces are those of ``robot``. With ``path``, the figure is also saved. Plotting requires matplotlib
        (``torsor[plot]``).

        Example:
            >>> sway = Excitation(torsor.library.planar_chain(1), 2.0, np.array([[0.0], [1.0], [0.0]]), 1.0, 1.0)
            >>> len(sway.plot().axes)
            4
        """
        times, rates = np.linspace(0.0, self.period, POINTS_PER_PERIOD), units(self.robot)[1]
        names, (q, v, a) = self.robot.coordinate_names, self(times)
        forces = self.robot.inverse_dynamics(q, v, a)
        bounds, force_units = [self._bounds(*each) for each in LIMITS], [FORCES[unit] for unit in rates]
        drawn = [
            Quantity("Positions", names, rates, q, bounds[0]),
            Quantity("Velocities", names, [f"{unit}/s" for unit in rates], v, bounds[1]),
            Quantity("Accelerations", names, [f"{unit}/s²" for unit in rates], a, bounds[2]),
            Quantity(FORCES_TITLE, names, force_units, forces, bounds[3], friction_jumps(self.robot, v)),
        ]
        how = f"{self.harmonics} harmonics of {self.period:g} s, condition number {self.condition:.4g}, {self.status}"
        return plot_quantities(drawn, times, f"{self.robot.name}: motion that excites the parameters, {how}", path)

    def _bounds(self, *names: str) -> tuple[Bound, ...]:
        """Return the limits of the search by name: a lower and an upper one, or a magnitude."""
        bounds = [bound for name in names if (bound := self.settings.get(name)) is not None]
        if len(bounds) < len(names):
            return ()
        ends = [np.array([np.inf if x is None else x for x in bound], dtype=float) for bound in bounds]
        lower, upper = ends if len(ends) == 2 else (-ends[0], ends[0])
        return (Bound(0.0, self.period, lower, upper),)

    def save(self, path: str | Path, rate: float | None = None) -> None:
        """Write the motion as .npz (for ``load``), .json (for other programs) or .csv (time, q, v and a of one period).

        The table has ``rate`` rows per second (Hz); the default is 401 rows in total. Its column headers are those of
        ``torsor dynamics --states`` and of logs.

        Example:
            >>> import tempfile
            >>> sway = Excitation(torsor.library.planar_chain(1), 2.0, np.array([[0.0], [1.0], [0.0]]), 1.0, 1.0)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     sway.save(folder + "/sway.csv", rate=2.0)
            ...     Path(folder, "sway.csv").read_text().splitlines()[:2]
            ['time [s],q joint1 [rad],v joint1 [rad/s],a joint1 [rad/s^2]', '0.0,0.0,3.141592653589793,0.0']
        """
        path = Path(path)
        if rate is None:
            super().save(path)
            return
        if path.suffix.lower() != ".csv":
            message, fix = f"a rate needs a .csv file, not {path.suffix!r}", "use save_points for controller setpoints"
            raise ModelError(message, value=path.suffix, where=path.name, allowed=".csv", fix=fix)
        write_table(path, self._table(instants(self.period, check_rate(rate, self.period, path.name))))

    def save_points(self, path: str | Path, rate: float = 100.0) -> None:
        """Write one period as controller setpoints at ``rate`` (Hz) to a .json or .yaml file.

        The file has the fields of the ROS message JointTrajectory: ``joint_names``, and ``points`` with ``positions``,
        ``velocities``, ``accelerations`` (rad, m, s) and ``time_from_start``.

        Example:
            >>> import json, tempfile
            >>> sway = Excitation(torsor.library.planar_chain(1), 2.0, np.array([[0.0], [1.0], [0.0]]), 1.0, 1.0)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     sway.save_points(folder + "/sway.json", rate=2.0)
            ...     json.loads(Path(folder, "sway.json").read_text())["points"][1]["positions"]
            [1.0]
        """
        times = instants(self.period, check_rate(rate, self.period, Path(path).name))
        write_points(Path(path), self.robot.coordinate_names, times, self(times))

    @classmethod
    def load(cls, path: str | Path) -> "Excitation":
        """Load a motion from a .npz file.

        Example:
            >>> import tempfile
            >>> sway = Excitation(torsor.library.planar_chain(1), 2.0, np.array([[0.0], [1.0], [0.0]]), 1.0, 1.0)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     sway.save(folder + "/sway.npz")
            ...     Excitation.load(folder + "/sway.npz").period
            2.0
        """
        with reading_archive(Path(path), cls.kind) as fields:
            robot = archived_robot(fields)
            coefficients = fields.arrays["coefficients"]
            figures = fields.arrays["figures"]
            check_array(figures, (3,), "figures")
            check_array(coefficients, (coefficients.shape[0], robot.nv), "coefficients")
            if len(coefficients) % 2 == 0 or not (np.isfinite(coefficients).all() and figures[0] > 0):
                raise ValueError("the coefficients do not form a Fourier series")
            status = str(fields.arrays["status"])
            if status not in STATUSES:
                raise ValueError(f"status {status[:40]!r}; allowed: {', '.join(STATUSES)}")
            period, condition, start = figures.tolist()
            made = cls(robot, period, coefficients, condition, start, status, fields.settings)
            for names in LIMITS:
                for bound in made._bounds(*names):
                    check_array(bound.lower, (robot.nv,), names[0])
                    check_array(bound.upper, (robot.nv,), names[-1])
            return made

    def _archive(self) -> Archive:
        figures = np.array([self.period, self.condition, self.start_condition], dtype=float)
        arrays: dict[str, Any] = {"coefficients": self.coefficients, "figures": figures, "status": self.status}
        arrays["robot"] = as_bytes(robot_text(self.robot))
        units_of_arrays = {"coefficients": state_units(self.robot)["q"], "figures": ["s", "1", "1"]}
        return Archive(self.kind, arrays, plain(self.settings), units_of_arrays)

    def _columns(self) -> list[Column]:
        return self._table(np.linspace(0.0, self.period, POINTS_PER_PERIOD))

    def _table(self, times: Array) -> list[Column]:
        rates = units(self.robot)[1]
        columns = [Column("time", "s", times)]
        for letter, form, values in zip("qva", ("{}", "{}/s", "{}/s^2"), self(times), strict=True):
            columns += columns_of(letter, self.robot.coordinate_names, [form.format(unit) for unit in rates], values)
        return columns

    def _content(self) -> dict[str, Any]:
        return {
            "units": {"period": "s", "coefficients": "rad, m: constant, sines, cosines of each coordinate"},
            "robot": robot_facts(self.robot),
            "settings": plain(self.settings),
            "status": self.status,
            "period": self.period,
            "harmonics": self.harmonics,
            "condition": plain(self.condition),
            "start_condition": plain(self.start_condition),
            "coefficients": plain(self.coefficients),
        }

    def _summary(self) -> Summary:
        name, reached = self.settings.get("criterion"), self.settings.get("reached")
        facts = {} if name is None else {"criterion": str(name)}
        if facts and name != "condition" and reached is not None and None not in reached:
            facts["criterion"] += f": {reached[0]:.4g} (initial guess: {reached[1]:.4g}; lower is better)"
        facts |= {
            "period": f"{self.period:g} s",
            "harmonics": str(self.harmonics),
            "condition number": f"{self.condition:.4g} (initial guess: {self.start_condition:.4g})",
            "status": self.status,
        }
        if self.settings.get("distance") is not None:
            facts["minimum distance of shapes"] = f"{self.settings['distance']:.4g} m"
        ends = [np.abs(each).max(axis=0) for each in self(np.linspace(0.0, self.period, POINTS_PER_PERIOD))[1:]]
        rates = units(self.robot)[1]
        rows = [
            (name, f"{v:.4g} {unit}/s", f"{a:.4g} {unit}/s²")
            for name, unit, v, a in zip(self.robot.coordinate_names, rates, *ends, strict=True)
        ]
        head = ("coordinate", "largest speed", "largest acceleration")
        return Summary(f"Excitation of {self.robot.name}", facts, head, rows)


register_result("excitation", Excitation, "an excitation")

"""The result of ``retime``: a motion along a path, and how far it uses its bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.archive import Archive, as_bytes, reading_archive, register_result
from torsor.base.arrays import Array
from torsor.base.checks import positive
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.base.figures import Bound, Quantity, plot_quantities
from torsor.base.files import check_array
from torsor.base.result import Result
from torsor.base.summary import Summary
from torsor.base.tables import Column, check_rate, columns_of, instants, write_points, write_table
from torsor.base.time_series import TimeAxis
from torsor.mechanism.friction import friction_jumps
from torsor.mechanism.mechanism import FORCES, robot_facts, state_units, units
from torsor.motion.retiming.bounds import KINDS, MIN_SPEED, POLYGON_FRACTION, SOURCES, Bounds
from torsor.motion.retiming.path import JointPath, Timing
from torsor.robot.archived import archived_robot, robot_text
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory
from torsor.simulation.timeline import Timeline, timeline_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


REACTION_UNITS = {"force": "N", "moment": "N m"}


def peak(use: Array) -> float:
    """Return the maximum of ``use`` (I, P), sampled at P equidistant points of each of I intervals.

    Between the points, parabolas through three points interpolate it.

    Example:
        >>> peak(np.array([[-0.5625, 0.9375, 0.4375]]))  # 1 - (x - 1.25)^2 at 0, 1 and 2
        1.0
    """
    left, here, right = use[:, 1:-1] - use[:, :-2], use[:, 1:-1], use[:, 1:-1] - use[:, 2:]
    within = (left + right > 0) & (np.abs(left - right) <= 2 * (left + right))  # the vertex is between the three points
    left, here, right = left[within], here[within], right[within]
    tops = here + (left - right) ** 2 / (8 * (left + right))
    return float(max(use.max(), tops.max(initial=-np.inf)))


CHECKED_FRACTIONS = np.linspace(0.0, 1.0, 9)  # interval fractions at which bounds are checked
ACTIVE_USE = 1 - 1e-6  # smallest use of an active bound
PLOT_POINTS = 401  # points of a plotted curve
LIMIT_TOLERANCE = 1e-9  # rad, m; smaller excess over a position limit counts as rounding


class RetimedInstants:
    """A retimed motion at times (...): q, its derivatives with respect to s (..., 4, n), and the rates of s (...)."""

    def __init__(self, robot: Robot, times: Any, on_path: Array, rate: Any, u: Any, jerk: Any):
        self.times, self.q, self._robot, self._on_path = times, on_path[..., 0, :], robot, on_path
        self._rates = [value[..., None] if isinstance(value, np.ndarray) else value for value in (rate, u, jerk)]

    @cached_property
    def v(self) -> Array:
        """Velocities (..., n)."""
        return np.asarray(self._rates[0] * self._on_path[..., 1, :])

    @cached_property
    def a(self) -> Array:
        """Accelerations (..., n)."""
        rate, u, _ = self._rates
        return np.asarray(u * self._on_path[..., 1, :] + rate**2 * self._on_path[..., 2, :])

    @cached_property
    def jerk(self) -> Array:
        """Jerks (..., n), excluding acceleration jumps."""
        (rate, u, jerk), at = self._rates, self._on_path
        return np.asarray(jerk * at[..., 1, :] + 3 * rate * u * at[..., 2, :] + rate**3 * at[..., 3, :])

    @cached_property
    def tau(self) -> Array:
        """Forces (..., n); dry friction opposes motion along the path, even at rest."""
        tau, still = self._robot.inverse_dynamics(self.q, self.v, self.a), (self.v == 0).all(axis=-1)
        if still.any():
            tau[still] += self._robot.friction_force(MIN_SPEED * self._on_path[..., 1, :][still])
        return tau


@dataclass(frozen=True, eq=False)
class Retimed(Result):
    """A motion along a path: ``at`` any time, and ``q``, ``v``, ``a``, ``jerk``, ``tau`` (G + 1, n) at its knots.

    ``times`` (G + 1) are the knots in s, and ``duration`` is the last of them. ``bounds`` are the enforced bounds with
    their sources, and ``active`` (G + 1) is the active bound at each knot. Where accelerations jump, values at knots
    are those after the jump (at the last knot, before it). The bounds hold on both sides.

    Example:
        >>> line = torsor.motion.retime(torsor.library.planar_chain(1), [[0], [1]], velocity=1.0, acceleration=2.0)
        >>> round(line.duration, 9), line.active[0], line.active[180]  # 1 + 1 / 2
        (1.5, 'acceleration joint1', 'velocity joint1')
    """

    kind = "retimed"
    robot: Robot
    path: JointPath
    timing: Timing
    bounds: Bounds
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Retimed of {self.robot.name!r}: {len(self.times)} knots, {self.duration:.6g} s>"

    @property
    def times(self) -> Array:
        """The times (G + 1) of the knots, in s."""
        return self.timing.times

    @property
    def duration(self) -> float:
        """The duration, in s."""
        return self.timing.duration

    @cached_property
    def _knots(self) -> RetimedInstants:
        return self._in(self.times, np.minimum(np.arange(len(self.times)), len(self.times) - 2))

    @property
    def q(self) -> Array:
        """Positions (G + 1, n) at the knots, in rad or m."""
        return self._knots.q

    @property
    def v(self) -> Array:
        """Velocities (G + 1, n) at the knots."""
        return self._knots.v

    @property
    def a(self) -> Array:
        """Accelerations (G + 1, n) at the knots."""
        return self._knots.a

    @property
    def jerk(self) -> Array:
        """Jerks (G + 1, n) at the knots, excluding acceleration jumps."""
        return self._knots.jerk

    @property
    def tau(self) -> Array:
        """Forces (G + 1, n) at the knots, in N m and N; at rest, friction acts as in the adjacent motion."""
        return self._knots.tau

    @cached_property
    def _axes(self) -> tuple[TimeAxis, TimeAxis]:
        """The time axes of the knots and of the path breaks."""
        name, breaks = self.robot.name, self.path.breaks[0]
        return TimeAxis(self.times, name, len(self.times) - 2), TimeAxis(breaks, name, len(breaks) - 2)

    def _in(self, t: Any, k: Any) -> RetimedInstants:
        """Return the motion at times (...) in intervals k."""
        s, *rates = self.timing.at(t, k)
        return RetimedInstants(self.robot, t, self.path.on(self._axes[1].interval(s), s), *rates)

    def at(self, t: ArrayLike) -> RetimedInstants:
        """Return the motion at times t (...), from 0 to ``duration``: q, v, a, jerk and tau (..., n).

        Example:
            >>> line = torsor.motion.retime(torsor.library.planar_chain(1), [[0], [1]], velocity=1.0, acceleration=2.0)
            >>> now = line.at(0.25)
            >>> now.q.round(9).tolist(), now.v.round(9).tolist(), now.a.round(9).tolist()
            ([0.0625], [0.5], [2.0])
        """
        return self._in(*self._axes[0].find(t))

    def sample(self, dt: float) -> Trajectory:
        """Return the motion in steps of dt (s), with a shorter last step, as a ``Trajectory`` with the forces."""
        times = instants(self.duration, check_rate(1 / positive(dt, self.robot.name, "dt"), self.duration, "sample"))
        at = self.at(times)
        return Trajectory(self.robot, times, at.q, at.v, at.a, at.tau, settings={"method": "retime", **self.settings})

    # Bounds

    def _uses(self, at: RetimedInstants) -> dict[str, Array]:
        """Return the use (T,) of each bound at times (T,): the value divided by the bound of the same sign."""
        bounds, values = self.bounds, {"velocity": at.v, "acceleration": at.a, "jerk": at.jerk, "torque": at.tau}
        if bounds.has("torque_rate"):
            values["torque_rate"] = self.robot.force_rate(at.q, at.v, at.a, at.jerk)[1]
        result = {}
        for kind in KINDS:
            low, high = bounds.values[kind]
            for n, name in enumerate(self.robot.coordinate_names):
                if bounds.has(kind) and np.isfinite([low[n], high[n]]).any():
                    value = values[kind][:, n]
                    result[f"{kind.replace('_', ' ')} {name}"] = np.maximum(value / high[n], value / low[n])
        if bounds.reactions:
            for size, (joint, _, kind, bound) in zip(self._reactions(at).T, bounds.reactions, strict=True):
                result[f"reaction {kind} {joint}"] = size / bound
        return result

    def _reactions(self, at: RetimedInstants) -> Array:
        """Return the magnitudes (T, R) of the bounded forces (N) and moments (N m) at times (T,)."""
        wrenches, parts = self.robot.joint_wrenches(at.q, at.v, at.a), {"force": slice(3, 6), "moment": slice(0, 3)}
        bounded = [wrenches[:, link, parts[kind]] for _, link, kind, _ in self.bounds.reactions]
        return np.asarray(np.linalg.norm(np.stack(bounded, axis=1), axis=-1))

    @cached_property
    def active(self) -> list[str]:
        """The active bound at each knot (G + 1), such as "torque elbow", or "" if there is none.

        Reactions count as active at the polygon inscribed in their bound (``bounds.POLYGON_SIDES``).
        """
        ends = np.stack([self.times[:-1], self.times[1:]], axis=1).ravel()  # interval ends, before and after knots
        uses = self._uses(self._in(ends, np.repeat(np.arange(len(self.timing.u)), 2)))
        if not uses:
            return [""] * len(self.times)
        names, use = list(uses), np.stack(list(uses.values())).reshape(len(uses), -1, 2)  # bounds, intervals, ends
        largest = np.zeros((len(uses), len(self.times)))
        largest[:, :-1] = use[..., 0]
        largest[:, 1:] = np.maximum(largest[:, 1:], use[..., 1])
        largest /= np.array([POLYGON_FRACTION if name.startswith("reaction") else 1.0 for name in names])[:, None]
        best = largest.argmax(axis=0)
        return [names[b] if largest[b, k] >= ACTIVE_USE else "" for k, b in enumerate(best.tolist())]

    @cached_property
    def _within(self) -> dict[str, Array]:
        """The use of each bound at CHECKED_FRACTIONS of each interval between knots or path breaks."""
        timing, path = self.timing, self.path
        ends = np.union1d(timing.s, timing.reached(path.breaks[0]))
        middle, count = (ends[1:] + ends[:-1]) / 2, len(CHECKED_FRACTIONS)
        k = np.clip(np.searchsorted(timing.s, middle) - 1, 0, len(timing.u) - 1)
        piece = path.piece_of(timing.along(middle, k)[0])
        p = ends[:-1, None] + CHECKED_FRACTIONS * np.diff(ends)[:, None]
        s, *rates = timing.along(p.ravel(), np.repeat(k, count))
        return self._uses(RetimedInstants(self.robot, None, path.on(np.repeat(piece, count), s), *rates))

    @cached_property
    def largest(self) -> dict[str, float]:
        """The largest use of each bound, at and between knots."""
        jumps = any(
            np.any(joint.coulomb) or joint.friction_model for joint in self.robot.joints
        )  # forces jump where a joint reverses
        result = self._within.items()
        return {
            name: float(use.max()) if jumps else peak(use.reshape(-1, len(CHECKED_FRACTIONS))) for name, use in result
        }

    @property
    def excess(self) -> float:
        """Largest relative excess over a bound between knots, or 0."""
        return max(0.0, max(self.largest.values(), default=0.0) - 1)

    # Files and figures

    def report(self) -> str:
        """Return the duration, the bounds with their sources, and their use as text.

        Example:
            >>> line = torsor.motion.retime(torsor.library.planar_chain(1), [[0], [1]], velocity=1.0, acceleration=2.0)
            >>> print(line.report())
            Retimed motion of planar_chain
            duration: 1.5 s
            knots: 361
            bounds: velocity, acceleration given; none of jerk, torque, torque rate
            largest use between knots: 100.00 % of velocity joint1
            coordinate  velocity     acceleration
            joint1      1 (100.0 %)  2 (100.0 %)
        """
        return self._summary().text()

    def save(self, path: str | Path, rate: float | None = None) -> None:
        """Write the motion as .npz (for ``load``), .json (for other programs) or .csv (time, q, v, a and tau).

        The table has one row per knot, or ``rate`` (Hz) rows per second.
        """
        path = Path(path)
        if rate is None:
            super().save(path)
            return
        if path.suffix.lower() != ".csv":
            message, fix = f"rate is given, but the suffix is {path.suffix!r}", "use save_points for controllers"
            raise ModelError(message, value=path.suffix, where=path.name, allowed=".csv", fix=fix)
        times = instants(self.duration, check_rate(rate, self.duration, path.name))
        write_table(path, self._table(self.at(times)))

    def save_points(self, path: str | Path, rate: float = 100.0) -> None:
        """Write trajectory points at ``rate`` (Hz) as a ROS JointTrajectory in a .json or .yaml file."""
        times = instants(self.duration, check_rate(rate, self.duration, Path(path).name))
        at = self.at(times)
        write_points(Path(path), self.robot.coordinate_names, times, (at.q, at.v, at.a))

    @classmethod
    def load(cls, path: str | Path) -> "Retimed":
        """Load a motion from a .npz file."""
        with reading_archive(Path(path), cls.kind) as archive:
            robot, arrays = archived_robot(archive), archive.arrays
            n, knots, count = robot.nv, len(arrays["times"]), len(arrays["breaks"]) - 1
            shapes: dict[str, tuple[int, ...]] = {
                "breaks": (count + 1,),
                "times": (knots,),
                "s": (knots,),
                "x": (knots,),
            }
            shapes |= {"pieces": (count, arrays["pieces"].shape[1], n), "u": (knots - 1,), "w": (knots - 1,)}
            for name, shape in (shapes | dict.fromkeys(KINDS, (2, n))).items():
                check_array(arrays[name], shape, name)
            check_array(arrays["stretch"], (), "stretch", "b")
            sources = {kind: str(archive.settings["sources"][kind]) for kind in KINDS}
            is_rising = (np.diff(arrays["times"]) > 0).all()
            if knots < 2 or count < 1 or not is_rising or not set(sources.values()) <= set(SOURCES):
                raise ValueError("its arrays are not those of a retimed motion")
            stored_reactions = archive.settings["reactions"]
            limits = [(str(joint), int(link), str(kind), float(size)) for joint, link, kind, size in stored_reactions]
            if any(not 0 <= link < len(robot.links) for _, link, _, _ in limits):
                raise ValueError("a reaction belongs to a link that the robot does not have")
            joint_path = JointPath(arrays["breaks"][None], arrays["pieces"][None])
            timing = Timing(**{name: arrays[name] for name in Timing._fields[:-1]}, stretch=bool(arrays["stretch"]))
            bounds = Bounds({kind: arrays[kind] for kind in KINDS}, sources, tuple(limits))
            return cls(robot, joint_path, timing, bounds, archive.settings["settings"])

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Plot positions, velocities, accelerations and forces with their bounds; with ``path``, save the figure.

        Jerks, force rates and reactions are included if they are bounded. Plotting requires matplotlib
        (``torsor[plot]``).
        """
        robot, bounds, times = self.robot, self.bounds, np.linspace(0.0, self.duration, PLOT_POINTS)
        at, names, unit_names = self.at(times), robot.coordinate_names, units(robot)[1]
        forces = [FORCES[unit] for unit in unit_names]

        def curves(title: str, kind: str, unit: str, of: Sequence[str], values: Array, jumps: Any = None) -> Quantity:
            limits = (Bound(0.0, self.duration, *bounds.values[kind]),) if bounds.has(kind) else ()
            return Quantity(
                title, names, [f"{quantity_unit}{unit}" for quantity_unit in of], values, limits, jumps, False
            )

        range_of_joints = (Bound(0.0, self.duration, robot.lower, robot.upper),)
        drawn = [
            Quantity("Positions", names, unit_names, at.q, range_of_joints, fits=False),
            curves("Velocities", "velocity", "/s", unit_names, at.v),
            curves("Accelerations", "acceleration", "/s²", unit_names, at.a),
            curves("Forces", "torque", "", forces, at.tau, friction_jumps(robot, at.v)),
        ]
        if bounds.has("jerk"):
            drawn.append(curves("Jerks", "jerk", "/s³", unit_names, at.jerk))
        if bounds.has("torque_rate"):
            rates = robot.force_rate(at.q, at.v, at.a, at.jerk)[1]
            drawn.append(curves("Force rates", "torque_rate", "/s", forces, rates))
        if bounds.reactions:
            joints = [f"{kind} {joint}" for joint, _, kind, _ in bounds.reactions]
            kinds = [REACTION_UNITS[kind] for _, _, kind, _ in bounds.reactions]
            most = np.array([size for *_, size in bounds.reactions])
            bound = Bound(0.0, self.duration, np.full(len(most), -np.inf), most)
            drawn.append(Quantity("Reactions", joints, kinds, self._reactions(at), (bound,), fits=False))
        return plot_quantities(drawn, times, f"{robot.name}: retimed, {self.duration:.4g} s", path)

    def _archive(self) -> Archive:
        path, bounds = self.path, self.bounds
        arrays: dict[str, Any] = {"breaks": path.breaks[0], "pieces": path.pieces[0]}
        arrays |= {"robot": as_bytes(robot_text(self.robot))} | self.timing._asdict()
        arrays |= {kind: bounds.values[kind] for kind in KINDS}
        header = {
            "settings": plain(self.settings),
            "sources": dict(bounds.sources),
            "reactions": plain(bounds.reactions),
        }
        return Archive(self.kind, arrays, header, {"times": ["s"], "pieces": state_units(self.robot)["q"]})

    def _columns(self) -> list[Column]:
        return self._table(self._knots)

    def _table(self, at: RetimedInstants) -> list[Column]:
        """Return time, q, v, a and tau at times (T,)."""
        result, unit_names = [Column("time", "s", at.times)], state_units(self.robot)
        for letter in ("q", "v", "a", "tau"):
            result += columns_of(letter, self.robot.coordinate_names, unit_names[letter], getattr(at, letter))
        return result

    def _content(self) -> dict[str, Any]:
        bounds, names = self.bounds, ("duration", "excess", "times", "q", "v", "a", "tau", "active")
        return {
            "units": {"times": "s", "duration": "s", "excess": "1", **state_units(self.robot)},
            "robot": robot_facts(self.robot),
            "settings": plain(self.settings),
            "bounds": {
                kind: {"source": bounds.sources[kind], "lower": plain(low), "upper": plain(high)}
                for kind, (low, high) in bounds.values.items()
            },
            "reactions": [
                {"joint": joint, "kind": kind, "bound": size, "unit": REACTION_UNITS[kind]}
                for joint, _, kind, size in bounds.reactions
            ],
            **{name: plain(getattr(self, name)) for name in names},
        }

    def _summary(self) -> Summary:
        largest = self.largest
        worst = max(largest, key=lambda name: largest[name], default="")
        facts = {"duration": f"{self.duration:.6g} s", "knots": str(len(self.times)), "bounds": self.bounds.used()}
        if worst:
            facts["largest use between knots"] = f"{100 * largest[worst]:.2f} % of {worst}"
        for joint, _, kind, size in self.bounds.reactions:
            name = f"reaction {kind} {joint}"
            facts[name] = f"{size:g} {REACTION_UNITS[kind]} ({100 * largest[name]:.1f} %)"
        q, robot = self.at(np.linspace(0.0, self.duration, PLOT_POINTS)).q, self.robot
        beyond = np.any((q < robot.lower - LIMIT_TOLERANCE) | (q > robot.upper + LIMIT_TOLERANCE), axis=0).tolist()
        if any(beyond):
            outside = [name for name, is_beyond in zip(robot.coordinate_names, beyond, strict=True) if is_beyond]
            facts["outside position limits"] = ", ".join(outside)
        kinds = [kind for kind in KINDS if self.bounds.has(kind)]
        rows = []
        for k, name in enumerate(self.robot.coordinate_names):
            cells = []
            for kind in kinds:
                use = largest.get(f"{kind.replace('_', ' ')} {name}")
                cells.append(self.bounds.text(kind, k) + ("" if use is None else f" ({abs(100 * use):.1f} %)"))
            rows.append((name, *cells))
        head = ("coordinate", *(kind.replace("_", " ") for kind in kinds))
        return Summary(f"Retimed motion of {self.robot.name}", facts, head, rows)


register_result("retimed", Retimed, "a retimed motion")


@timeline_of.register
def _(result: Retimed) -> Timeline:
    robot, states = result.robot, (result.times, result.q, result.v, result.a, result.tau)
    return Timeline(robot, robot.name, *states, robot.coordinate_names)

"""The result of ``retime``: a motion along a path, with its bounds and what they leave."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
from torsor.motion.retiming.bounds import KINDS, SLOWEST, SOURCES, WITHIN, Bounds
from torsor.motion.retiming.path import JointPath, Timing
from torsor.robot.archived import archived_robot, robot_text
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# How much of each bound a motion uses, at any times: what is said of a timing after it is found.


class Use(NamedTuple):
    """The ``use`` (T,) of a bound: the value relative to the bound on its side of 0, 1 at the bound."""

    name: str
    use: Array


def uses(robot: Robot, bounds: Bounds, q: Array, v: Array, a: Array, jerk: Array, tau: Array) -> list[Use]:
    """Return the use of all bounds in a motion, whose arrays are (T, n)."""
    values = {"velocity": v, "acceleration": a, "jerk": jerk, "torque": tau}
    if bounds.has("torque_rate"):
        values["torque_rate"] = robot.force_rate(q, v, a, jerk)[1]
    found = []
    for kind in KINDS:
        low, high = bounds.values[kind]
        for n, name in enumerate(robot.coordinate_names):
            if bounds.has(kind) and np.isfinite([low[n], high[n]]).any():
                value = values[kind][:, n]
                found.append(Use(f"{kind.replace('_', ' ')} {name}", np.maximum(value / high[n], value / low[n])))
    if bounds.reactions:
        sizes = reactions(robot, bounds, q, v, a)
        for size, (joint, _, kind, bound) in zip(sizes.T, bounds.reactions, strict=True):
            found.append(Use(f"reaction {kind} {joint}", size / bound))
    return found


def reactions(robot: Robot, bounds: Bounds, q: Array, v: Array, a: Array) -> Array:
    """Return the magnitudes (T, R) of the forces (N) and moments (N m) that are bounded, in a motion (T, n).

    Example:
        >>> rod = torsor.library.planar_chain(1, mass=2.0, gravity=(0, -9.81, 0))
        >>> given = {"velocity": 1.0, "acceleration": 1.0}
        >>> bounds = Bounds.of(rod, given, {"joint1": {"force": 30.0}})
        >>> reactions(rod, bounds, *np.zeros((3, 1, 1))).round(9).tolist()  # its weight
        [[19.62]]
    """
    wrenches = robot.joint_wrenches(q, v, a)
    parts = [
        wrenches[:, link, 3:] if kind == "force" else wrenches[:, link, :3] for _, link, kind, _ in bounds.reactions
    ]
    sizes: Array = np.linalg.norm(np.stack(parts, axis=1), axis=-1)
    return sizes


def peak(use: Array) -> float:
    """Return the largest of some uses (I, P) at places with equal distances in each of I intervals.

    Between places it is that of the parabolas through three of them.

    Example:
        >>> peak(np.array([[-0.5625, 0.9375, 0.4375]]))  # 1 - (x - 1.25)^2 at 0, 1 and 2
        1.0
    """
    left, here, right = use[:, 1:-1] - use[:, :-2], use[:, 1:-1], use[:, 1:-1] - use[:, 2:]
    within = (left + right > 0) & (np.abs(left - right) <= 2 * (left + right))  # the top is between the three
    left, here, right = left[within], here[within], right[within]
    tops = here + (left - right) ** 2 / (8 * (left + right))
    return float(max(use.max(), tops.max(initial=-np.inf)))


# The curves of a retimed motion that its figure has: the states and forces, and all else that is bounded.


def quantities(
    robot: Robot, bounds: Bounds, duration: float, q: Array, v: Array, a: Array, jerk: Array, tau: Array
) -> list[Quantity]:
    """Return the curves (T, n) with their bounds; jerks, rates of forces and reactions only where they are bounded.

    Example:
        >>> robot = torsor.library.planar_chain(1)
        >>> bounds = Bounds.of(robot, {"velocity": 1.0, "acceleration": 2.0, "jerk": 9.0})
        >>> [each.title for each in quantities(robot, bounds, 1.0, *np.zeros((5, 1, 1)))]
        ['Positions', 'Velocities', 'Accelerations', 'Forces', 'Jerks']
    """
    names, own = robot.coordinate_names, units(robot)[1]
    forces = [FORCES[unit] for unit in own]

    def of(kind: str) -> tuple[Bound, ...]:
        return (Bound(0.0, duration, *bounds.values[kind]),) if bounds.has(kind) else ()

    limits = (Bound(0.0, duration, robot.lower, robot.upper),)
    found = [
        Quantity("Positions", names, own, q, limits, fits=False),
        Quantity("Velocities", names, [f"{unit}/s" for unit in own], v, of("velocity"), fits=False),
        Quantity("Accelerations", names, [f"{unit}/s²" for unit in own], a, of("acceleration"), fits=False),
        Quantity("Forces", names, forces, tau, of("torque"), friction_jumps(robot, v), False),
    ]
    if bounds.has("jerk"):
        found.append(Quantity("Jerks", names, [f"{unit}/s³" for unit in own], jerk, of("jerk"), fits=False))
    if bounds.has("torque_rate"):
        values, per_second = robot.force_rate(q, v, a, jerk)[1], [f"{unit}/s" for unit in forces]
        found.append(Quantity("Rates of forces", names, per_second, values, of("torque_rate"), fits=False))
    if bounds.reactions:
        joints = [f"{kind} {joint}" for joint, _, kind, _ in bounds.reactions]
        kinds = ["N" if kind == "force" else "N m" for _, _, kind, _ in bounds.reactions]
        most = np.array([size for *_, size in bounds.reactions])
        bound = Bound(0.0, duration, np.full(len(most), -np.inf), most)
        found.append(Quantity("Reactions", joints, kinds, reactions(robot, bounds, q, v, a), (bound,), fits=False))
    return found


# Retimed motions as files: archives to read them back, tables and documents.

KIND = "retimed"


def archive(robot: Robot, path: JointPath, timing: Timing, bounds: Bounds, settings: Mapping[str, Any]) -> Archive:
    """Return all that ``read`` needs."""
    arrays: dict[str, Any] = {"breaks": path.breaks[0], "pieces": path.pieces[0], "robot": as_bytes(robot_text(robot))}
    arrays |= timing._asdict() | {kind: bounds.values[kind] for kind in KINDS}
    own = {"settings": plain(settings), "sources": dict(bounds.sources), "reactions": plain(bounds.reactions)}
    return Archive(KIND, arrays, own, {"times": ["s"], "pieces": state_units(robot)["q"]})


def read(found: Archive) -> tuple[Robot, JointPath, Timing, Bounds]:
    """Return the parts of a motion in an archive; raise ValueError for arrays that are not those of one."""
    robot, arrays = archived_robot(found), found.arrays
    n = robot.nv
    knots, count = len(arrays["times"]), len(arrays["breaks"]) - 1
    check_array(arrays["breaks"], (count + 1,), "breaks")
    check_array(arrays["pieces"], (count, arrays["pieces"].shape[1], n), "pieces")
    for name in ("times", "s", "x"):
        check_array(arrays[name], (knots,), name)
    for name in ("u", "w"):
        check_array(arrays[name], (knots - 1,), name)
    for kind in KINDS:
        check_array(arrays[kind], (2, n), kind)
    sources = {kind: str(found.settings["sources"][kind]) for kind in KINDS}
    check_array(arrays["stretch"], (), "stretch", "b")
    if knots < 2 or count < 1 or not (np.diff(arrays["times"]) > 0).all() or not set(sources.values()) <= set(SOURCES):
        raise ValueError("its arrays are not those of a retimed motion")
    links = [(str(joint), int(link), str(kind), float(size)) for joint, link, kind, size in found.settings["reactions"]]
    if any(not 0 <= link < len(robot.links) for _, link, _, _ in links):
        raise ValueError("a reaction of a link that the robot has not")
    path = JointPath(arrays["breaks"][None], arrays["pieces"][None])
    timing = Timing(**{name: arrays[name] for name in Timing._fields[:-1]}, stretch=bool(arrays["stretch"]))
    return robot, path, timing, Bounds({kind: arrays[kind] for kind in KINDS}, sources, tuple(links))


def columns(robot: Robot, times: Array, q: Array, v: Array, a: Array, tau: Array) -> list[Column]:
    """Return the table of a motion (T, n): time, q, v, a and tau.

    Example:
        >>> robot = torsor.library.planar_chain(1)
        >>> [each.head for each in columns(robot, np.zeros(1), *np.zeros((4, 1, 1)))][:3]
        ['time [s]', 'q joint1 [rad]', 'v joint1 [rad/s]']
    """
    found, own = [Column("time", "s", times)], state_units(robot)
    for letter, values in zip(("q", "v", "a", "tau"), (q, v, a, tau), strict=True):
        found += columns_of(letter, robot.coordinate_names, own[letter], values)
    return found


def content(robot: Robot, bounds: Bounds, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain values of the document."""
    return {
        "units": {"times": "s", "duration": "s", "excess": "1", **state_units(robot)},
        "robot": robot_facts(robot),
        "settings": plain(settings),
        "bounds": {
            kind: {"source": bounds.sources[kind], "lower": plain(low), "upper": plain(high)}
            for kind, (low, high) in bounds.values.items()
        },
        "reactions": [
            {"joint": joint, "kind": kind, "bound": size, "unit": "N" if kind == "force" else "N m"}
            for joint, _, kind, size in bounds.reactions
        ],
        **{name: plain(value) for name, value in facts.items()},
    }


PLACES = np.linspace(0.0, 1.0, 9)  # parts of an interval at which bounds are checked
ACTIVE = 1 - 1e-6  # of a bound
DRAWN = 401
LIMIT = 1e-9  # rad, m beyond a position limit that is rounding


class RetimedInstants:
    """A retimed motion at times (...), from q and its derivatives by s (..., 4, n), and the rates of s (...)."""

    def __init__(self, robot: Robot, times: Any, on_path: Array, rate: Any, u: Any, jerk: Any):
        self.times, self.q, self._robot, self._on_path = times, on_path[..., 0, :], robot, on_path
        self._rates = [each[..., None] if isinstance(each, np.ndarray) else each for each in (rate, u, jerk)]

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
        """Jerks (..., n), without those of steps of the acceleration."""
        (rate, u, jerk), at = self._rates, self._on_path
        return np.asarray(jerk * at[..., 1, :] + 3 * rate * u * at[..., 2, :] + rate**3 * at[..., 3, :])

    @cached_property
    def tau(self) -> Array:
        """Forces (..., n); dry friction acts along the path, also at rest."""
        tau, still = self._robot.inverse_dynamics(self.q, self.v, self.a), (self.v == 0).all(axis=-1)
        if still.any():
            tau[still] += self._robot.friction_force(SLOWEST * self._on_path[..., 1, :][still])
        return tau


@dataclass(frozen=True, eq=False)
class Retimed(Result):
    """A motion along a path: ``at`` any time, and ``q``, ``v``, ``a``, ``jerk``, ``tau`` (G + 1, n) at its knots.

    ``times`` (G + 1) are the knots in s, ``duration`` the last of them, ``bounds`` those that hold, with where they
    come from, ``active`` (G + 1) the bound that each knot is at. Where accelerations step, knots have the values after
    the step (the last one before it); the bounds hold on both sides.

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
    def _knots(self) -> "RetimedInstants":
        return self._in(self.times, np.minimum(np.arange(len(self.times)), len(self.times) - 2))

    @property
    def q(self) -> Array:
        """Positions (G + 1, n) at the knots, in rad and m."""
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
        """Jerks (G + 1, n) at the knots, without those of steps of the acceleration."""
        return self._knots.jerk

    @property
    def tau(self) -> Array:
        """Forces (G + 1, n) at the knots, in N m and N; friction at rest is that of the motion that begins or ends."""
        return self._knots.tau

    @cached_property
    def _axes(self) -> tuple[TimeAxis, TimeAxis]:
        """The knots, and the breaks of the path."""
        name, breaks = self.robot.name, self.path.breaks[0]
        return TimeAxis(self.times, name, len(self.times) - 2), TimeAxis(breaks, name, len(breaks) - 2)

    def _in(self, t: Any, k: Any) -> "RetimedInstants":
        """Return the motion at times (...) in intervals k."""
        s, *rates = self.timing.at(t, k)
        return RetimedInstants(self.robot, t, self.path.on(self._axes[1].interval(s), s), *rates)

    def at(self, t: ArrayLike) -> "RetimedInstants":
        """Return the motion at times t (...), from 0 to ``duration``: q, v, a, jerk and tau (..., n).

        Example:
            >>> line = torsor.motion.retime(torsor.library.planar_chain(1), [[0], [1]], velocity=1.0, acceleration=2.0)
            >>> now = line.at(0.25)
            >>> now.q.round(9).tolist(), now.v.round(9).tolist(), now.a.round(9).tolist()
            ([0.0625], [0.5], [2.0])
        """
        return self._in(*self._axes[0].find(t))

    def sample(self, dt: float) -> Trajectory:
        """Return the motion at steps dt (s), the last one shorter, as a ``Trajectory`` with the forces.

        Example:
            >>> line = torsor.motion.retime(torsor.library.planar_chain(1), [[0], [1]], velocity=1.0, acceleration=2.0)
            >>> line.sample(0.5)
            <Trajectory of 'planar_chain': 4 samples, 1.5 s, done>
        """
        times = instants(self.duration, check_rate(1 / positive(dt, self.robot.name, "dt"), self.duration, "sample"))
        at = self.at(times)
        return Trajectory(self.robot, times, at.q, at.v, at.a, at.tau, settings={"method": "retime", **self.settings})

    # Bounds

    def _uses(self, at: "RetimedInstants") -> list[Use]:
        """Return how much of each bound is used at times (T,)."""
        return uses(self.robot, self.bounds, at.q, at.v, at.a, at.jerk, at.tau)

    @cached_property
    def _at_knots(self) -> list[Use]:
        """How much of each bound the knots use, before and after them."""
        k = np.arange(len(self.timing.u))
        return self._uses(self._in(np.stack([self.times[:-1], self.times[1:]], axis=1).ravel(), np.repeat(k, 2)))

    @cached_property
    def active(self) -> list[str]:
        """The bound that each knot (G + 1) is at, such as "torque elbow"; "" for a knot that is at none.

        Reactions are at their bound where they reach the polygon within it (``rows.SIDES``).
        """
        found = self._at_knots
        if not found:
            return [""] * len(self.times)
        use = np.stack([each.use for each in found]).reshape(len(found), -1, 2)  # bounds, intervals, ends
        most = np.zeros((len(found), len(self.times)))
        most[:, :-1] = use[..., 0]
        most[:, 1:] = np.maximum(most[:, 1:], use[..., 1])
        most /= np.array([WITHIN if each.name.startswith("reaction") else 1.0 for each in found])[:, None]
        best = most.argmax(axis=0)
        return [found[b].name if most[b, k] >= ACTIVE else "" for k, b in enumerate(best.tolist())]

    @cached_property
    def _within(self) -> list[Use]:
        """How much of each bound is used at PLACES of each interval between knots and breaks of the path."""
        timing, path = self.timing, self.path
        ends = np.union1d(timing.s, timing.reached(path.breaks[0]))
        middle, count = (ends[1:] + ends[:-1]) / 2, len(PLACES)
        k = np.clip(np.searchsorted(timing.s, middle) - 1, 0, len(timing.u) - 1)
        piece = path.piece_of(timing.along(middle, k)[0])
        p = ends[:-1, None] + PLACES * np.diff(ends)[:, None]
        s, *rates = timing.along(p.ravel(), np.repeat(k, count))
        return self._uses(RetimedInstants(self.robot, None, path.on(np.repeat(piece, count), s), *rates))

    @cached_property
    def largest(self) -> dict[str, float]:
        """The largest use of each bound, at and between knots: 1 at the bound.

        Example:
            >>> line = torsor.motion.retime(torsor.library.planar_chain(1), [[0], [1]], velocity=1.0, acceleration=2.0)
            >>> {name: round(use, 9) for name, use in line.largest.items()}
            {'velocity joint1': 1.0, 'acceleration joint1': 1.0}
        """
        jumps = any(np.any(joint.coulomb) for joint in self.robot.joints)  # of forces, where a joint turns back
        return {name: float(use.max()) if jumps else peak(use.reshape(-1, len(PLACES))) for name, use in self._within}

    @property
    def excess(self) -> float:
        """By how much any bound is exceeded between knots, at most, relative to the bound: 0 if none is."""
        return max(0.0, max(self.largest.values(), default=0.0) - 1)

    # Files and figures

    def report(self) -> str:
        """Return the facts of the motion as text: duration, bounds and where they come from, and how far they are used.

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
        """Write the motion: .npz to read it back, .json for other programs, .csv with time, q, v, a and tau.

        The table has the knots, or ``rate`` (Hz) rows a second.

        Example:
            >>> import tempfile
            >>> line = torsor.motion.retime(torsor.library.planar_chain(1), [[0], [1]], velocity=1.0, acceleration=2.0)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     line.save(folder + "/line.npz")
            ...     torsor.load_result(folder + "/line.npz").duration == line.duration
            True
        """
        path = Path(path)
        if rate is None:
            super().save(path)
            return
        if path.suffix.lower() != ".csv":
            found, fix = f"a rate, and the suffix {path.suffix!r}", "points for a controller: save_points"
            raise ModelError(found, value=path.suffix, where=path.name, allowed=".csv", fix=fix)
        times = instants(self.duration, check_rate(rate, self.duration, path.name))
        at = self.at(times)
        write_table(path, columns(self.robot, times, at.q, at.v, at.a, at.tau))

    def save_points(self, path: str | Path, rate: float = 100.0) -> None:
        """Write points for a controller, ``rate`` (Hz) a second: a JointTrajectory of ROS as .json or .yaml.

        Example:
            >>> import json, tempfile
            >>> line = torsor.motion.retime(torsor.library.planar_chain(1), [[0], [1]], velocity=1.0, acceleration=2.0)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     line.save_points(folder + "/line.json", rate=2.0)
            ...     len(json.loads(Path(folder, "line.json").read_text())["points"])
            4
        """
        times = instants(self.duration, check_rate(rate, self.duration, Path(path).name))
        at = self.at(times)
        write_points(Path(path), self.robot.coordinate_names, times, (at.q, at.v, at.a))

    @classmethod
    def load(cls, path: str | Path) -> "Retimed":
        """Return the motion in a .npz file."""
        with reading_archive(Path(path), cls.kind) as found:
            return cls(*read(found), found.settings["settings"])

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw positions, velocities, accelerations and forces with their bounds; ``path`` saves the figure.

        Where they are bounded, also jerks, rates of forces and reactions. Needs matplotlib: ``torsor[plot]``.

        Example:
            >>> line = torsor.motion.retime(torsor.library.planar_chain(1), [[0], [1]], velocity=1.0, acceleration=2.0)
            >>> len(line.plot().axes)
            4
        """
        times = np.linspace(0.0, self.duration, DRAWN)
        at = self.at(times)
        drawn = quantities(self.robot, self.bounds, self.duration, at.q, at.v, at.a, at.jerk, at.tau)
        return plot_quantities(drawn, times, f"{self.robot.name}: retimed, {self.duration:.4g} s", path)

    def _archive(self) -> Archive:
        return archive(self.robot, self.path, self.timing, self.bounds, self.settings)

    def _columns(self) -> list[Column]:
        return columns(self.robot, self.times, self.q, self.v, self.a, self.tau)

    def _content(self) -> dict[str, Any]:
        motion = {"times": self.times, "q": self.q, "v": self.v, "a": self.a, "tau": self.tau, "active": self.active}
        facts = {"duration": self.duration, "excess": self.excess, **motion}
        return content(self.robot, self.bounds, self.settings, facts)

    def _outside(self) -> list[str]:
        """Return the coordinates that leave the range of their joints."""
        q, robot = self.at(np.linspace(0.0, self.duration, DRAWN)).q, self.robot
        beyond = np.any((q < robot.lower - LIMIT) | (q > robot.upper + LIMIT), axis=0).tolist()
        return [name for name, own in zip(robot.coordinate_names, beyond, strict=True) if own]

    def _summary(self) -> Summary:
        largest = self.largest
        worst = max(largest, key=lambda name: largest[name], default="")
        facts = {"duration": f"{self.duration:.6g} s", "knots": str(len(self.times)), "bounds": self.bounds.used()}
        if worst:
            facts["largest use between knots"] = f"{100 * largest[worst]:.2f} % of {worst}"
        for joint, _, kind, size in self.bounds.reactions:
            name, unit = f"reaction {kind} {joint}", "N" if kind == "force" else "N m"
            facts[name] = f"{size:g} {unit} ({100 * largest[name]:.1f} %)"
        outside = self._outside()
        if outside:
            facts["beyond their position limits"] = ", ".join(outside)
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

"""Motions for viewers, created from any result: times, states, drive forces and ground reaction forces."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array, Flags
from torsor.base.errors import ModelError
from torsor.base.scenes import Thing
from torsor.compiler import on_host
from torsor.mechanism.mechanism import units
from torsor.robot.robot import Robot
from torsor.simulation.rollout import Rollout, processor_robot
from torsor.simulation.trajectory import Trajectory

ALLOWED = "a trajectory, rollout, motion, retimed path, stride, measured gait, identification; one of a batch: run[3]"

FREE_COORDINATES = 6  # number of coordinates of a free body
PARTS = slice(0, 3), slice(3, 6)  # moment and force of a wrench
MIN_DRIVE_FORCE = 1e-9  # N m, N: force below which a value is rounding error


def floating_base(robot: Robot) -> tuple[str, ...]:
    """Return the names of the six coordinates of a floating base, or none for a fixed base.

    Example:
        >>> floating_base(torsor.library.quadruped())[2:4], floating_base(torsor.library.ur5())
        (('root/wz', 'root/vx'), ())
    """
    root = next((k for k, link in enumerate(robot.links) if link.mass > 0), 0)
    base = robot.coordinate_names[: robot.coordinates[root].v.stop if robot.links else 0]
    return base if len(base) == FREE_COORDINATES and units(robot)[1][: len(base)].count("m") == 3 else ()


@dataclass(frozen=True, eq=False)
class Timeline:
    """Samples of a motion at ``times`` (T,), in s: ``q`` (T, nq), ``v`` and ``a`` (T, nv). ``timeline`` creates them.

    ``tau`` (T, k) are the forces of the coordinates ``driven`` (k names). ``external`` (T, L, 6) are environment
    wrenches on links, as for ``Robot.inverse_dynamics``. ``ground`` (T, G, 6) are ground reaction forces: the point of
    application (m), then the force (N), in base axes, or NaN without contact. ``feet`` (G) are the names of the feet on
    which they act, if known. For a robot in contact with a plane, ``floor`` (4,) is the normal of the plane and its
    distance (m) from the origin of the base; a person has none. ``terrain`` is the height z(x, y) of the ground, if it
    is a function. ``residuals`` (T, k) are the measured minus the predicted forces of an identification. ``valid`` (T,)
    is False where forces are unknown. ``markers`` (T, M, 3) are measured points (m) in base axes, NaN where not
    visible. ``things`` are objects drawn with the robot. In a periodic motion, the last sample is the first one
    displaced by ``ahead`` (3,), in m. ``movie`` writes an animation in its own style; its arguments are a path, the
    frame rate, the slow-motion factor, and whether to show progress. ``rotation_title`` is the name of rotational
    positions in charts: "angle" for people. If the motion is one gait cycle, ``stride`` is the side of its initial heel
    strike.
    """

    robot: Robot
    title: str
    times: Array
    q: Array
    v: Array
    a: Array
    tau: Array | None = None
    driven: tuple[str, ...] = ()
    external: Array | None = None
    ground: Array | None = None
    feet: tuple[str, ...] = ()
    floor: Array | None = None
    terrain: ca.Function | None = None
    residuals: Array | None = None
    valid: Flags | None = None
    markers: Array | None = None
    things: tuple[Thing, ...] = ()
    ahead: Array | None = None
    movie: Callable[[str | Path, int, float, bool | None], Path] | None = None
    rotation_title: str = "position"
    stride: str = ""

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def reactions(self) -> Array:
        """Wrench (T, L, 6) that each parent exerts on its link: moment, then force, in the link's frame."""
        tau = np.zeros_like(self.v) if self.tau is None else self.tau
        return Trajectory(self.robot, self.times, self.q, self.v, self.a, tau, external=self.external).reactions

    @cached_property
    def limits(self) -> Array:
        """Maximum forces (k,) of the drives, infinite if there is no limit."""
        limits = dict(zip(self.robot.coordinate_names, self.robot.effort_limit, strict=True))
        return np.array([limits[name] for name in self.driven])

    @cached_property
    def drives(self) -> NDArray[np.int64]:
        """Columns of ``tau`` with a drive: those with a nonzero force at any time, or with a finite limit above 0.

        Forces on a floating base, which are residuals, come last.
        """
        limits, base = self.limits, floating_base(self.robot)
        moved = np.abs(np.nan_to_num(np.asarray(self.tau))).max(axis=0, initial=0.0) > MIN_DRIVE_FORCE
        columns = np.flatnonzero((limits > 0) & (moved | np.isfinite(limits)))
        last = [self.driven[k] in base for k in columns]
        return columns[np.argsort(last, kind="stable")]

    @property
    def start(self) -> float:
        """Time (s) after the first sample at which viewers start: the second sample with known forces.

        Values just before the first sample with known forces are interpolated from unknown ones.
        """
        if self.valid is None or self.valid[0]:
            return 0.0
        known = np.flatnonzero(self.valid)[:2]
        return float(self.times[known[-1]] - self.times[0]) if len(known) else 0.0

    @property
    def known_tau(self) -> Array | None:
        """Forces ``tau``, with NaN where they are unknown."""
        return self.tau if self.tau is None or self.valid is None else np.where(self.valid[:, None], self.tau, np.nan)

    @property
    def is_person(self) -> bool:
        """Whether this is the motion of a person: ground forces are then measured or predicted, not simulated."""
        return self.ground is not None and self.floor is None

    @property
    def force_scale(self) -> tuple[float, str]:
        """Factor of drive forces, and its effect on their units: moments of people are divided by body mass."""
        return (1.0 / self.robot.mass, "/kg") if self.is_person else (1.0, "")

    @property
    def gaps(self) -> list[tuple[float, float]]:
        """Intervals (s) after the start in which forces are unknown."""
        return [] if self.valid is None else self.intervals(~self.valid)

    def intervals(self, flags: NDArray[np.bool_]) -> list[tuple[float, float]]:
        """Return the intervals (s) after the start in which ``flags`` (T,) are True."""
        times = self.times - self.times[0]
        edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
        pairs = zip(edges[::2], edges[1::2], strict=True)
        return [(float(times[first]), float(times[min(end, len(times) - 1)])) for first, end in pairs]

    def every(self, count: int) -> "Timeline":
        """Return at most ``count`` evenly spaced samples, including the first and the last."""
        if len(self) <= count:
            return self
        return self.kept(np.linspace(0, len(self) - 1, count).round().astype(int))

    def kept(self, samples: NDArray[np.int64]) -> "Timeline":
        """Return the samples with the given indices."""
        names = ("times", "q", "v", "a", "tau", "external", "ground", "residuals", "valid", "markers")
        parts = {name: getattr(self, name) for name in names}
        return replace(self, **{name: part[samples] for name, part in parts.items() if part is not None})


@singledispatch
def timeline_of(result: Any) -> Timeline:
    """Return the timeline of a result; packages register functions for their own classes."""
    raise ModelError(f"cannot play {type(result).__name__}", where="view", allowed=ALLOWED)


def timeline(result: Any, title: str = "") -> Timeline:
    """Return the motion of a result: a simulated trajectory, a predicted motion, a stride, or an identification.

    A walk is shown as one repeating stride; walks and tasks of a human include the ground forces. If a result failed,
    only the samples before the first non-finite one are shown.

    Example:
        >>> fall = torsor.simulate(torsor.library.planar_chain(2), duration=0.5)
        >>> played = timeline(fall)
        >>> len(played), played.every(50).q.shape, played.reactions.shape
        (501, (50, 2), (501, 2, 6))
    """
    found = timeline_of(result)
    line = replace(found, title=title) if title else found
    finite = np.isfinite(line.times) & np.isfinite(line.q).all(axis=-1)
    count = len(line) if finite.all() else int(np.argmin(finite))
    if not count:
        fix = "check the result: its first positions are not finite" if len(line) else ""
        raise ModelError(f"{line.title} has no samples to show", where="view", fix=fix)
    back = np.flatnonzero(np.diff(line.times[:count]) < 0)
    if back.size:
        k, times = int(back[0]), line.times
        text = f"{line.title}: time goes back from {times[k]:g} s to {times[k + 1]:g} s (sample {k + 1})"
        raise ModelError(text, where="view", allowed="times that increase")
    return line if count == len(line) else line.kept(np.arange(count))


@timeline_of.register
def _(result: Timeline) -> Timeline:
    return result


@timeline_of.register
def _(result: Trajectory) -> Timeline:
    _check_single(result)
    tau = None if result.tau.size and np.isnan(result.tau).all() else result.tau
    robot, states = result.robot, (result.times, result.q, result.v, result.a, tau)
    floor, terrain = _ground(result)
    line = Timeline(robot, robot.name, *states, robot.coordinate_names, result.external, terrain=terrain)
    if floor is None or result.external is None:
        return line
    feet = tuple(robot.link_names[k] for k in pushed_links(line))
    return replace(line, ground=contact_forces(line, floor), feet=feet, floor=floor)


@timeline_of.register
def _(result: Rollout) -> Timeline:
    _check_single(result)
    robot, times, q, v = processor_robot(result.robot), result.times, on_host(result.q), on_host(result.v)
    return Timeline(robot, robot.name, times, q, v, np.gradient(v, times, axis=0), terrain=_ground(result)[1])


def _check_single(result: Trajectory | Rollout) -> None:
    """Raise ModelError if a result contains several motions."""
    if result.q.ndim != 2:
        batch = " x ".join(map(str, result.q.shape[:-2]))
        raise ModelError(f"{batch} rollouts at once", where="view", allowed=ALLOWED)


def _ground(result: Trajectory | Rollout) -> tuple[Array | None, ca.Function | None]:
    """Return the plane and the terrain of a simulation with contact, if they are known; files contain no terrain."""
    contact = result.settings.get("contact") or {}
    floor, terrain = contact.get("floor"), contact.get("terrain")
    return None if floor is None else np.array(floor), terrain if isinstance(terrain, ca.Function) else None


MAX_MOTIONS = 5000  # largest number of motions in a batch


@dataclass(frozen=True, eq=False)
class Batch:
    """Motions of a ``robot`` at the same ``times`` (T,), in s: positions ``q`` (N, T, nq). ``batch`` creates it.

    ``floor`` and ``terrain`` are those of a timeline. ``notes`` state which motions are left out.
    """

    robot: Robot
    title: str
    times: Array
    q: Array
    floor: Array | None = None
    terrain: ca.Function | None = None
    notes: tuple[str, ...] = ()

    def every(self, count: int) -> "Batch":
        """Return at most ``count`` evenly spaced samples, including the first and the last."""
        kept = np.unique(np.linspace(0, len(self.times) - 1, min(count, len(self.times))).round().astype(int))
        return replace(self, times=self.times[kept], q=self.q[:, kept])


def batch(result: Any, title: str = "") -> Batch | None:
    """Return the motions of a rollout or trajectory with leading axes, or None for other results.

    Motions that diverged are left out. If more than 5000 remain, evenly spaced ones are returned.

    Example:
        >>> from torsor.simulation import rollout
        >>> run = rollout(torsor.library.two_link(), np.zeros((10, 20, 2)), np.ones(2), 0.01)
        >>> batch(run).q.shape, batch(run[0, 0])
        ((200, 11, 2), None)
    """
    if not isinstance(result, Trajectory | Rollout) or result.q.ndim == 2:
        return None
    robot, count = processor_robot(result.robot), int(np.prod(result.q.shape[:-2]))
    good_q, good_v = (np.isfinite(each).all(axis=(-1, -2)) for each in (result.q, result.v))
    kept = np.flatnonzero(on_host(good_q & good_v))
    if not len(kept):
        raise ModelError(f"all {count} motions diverged", where=robot.name, fix="use a smaller step")
    notes = [f"{count - len(kept):,} of {count:,} motions diverged and are not shown."] if len(kept) < count else []
    if len(kept) > MAX_MOTIONS:
        notes.append(f"{MAX_MOTIONS:,} of {len(kept):,} motions are shown.")
        kept = kept[np.linspace(0, len(kept) - 1, MAX_MOTIONS).round().astype(int)]
    q = np.asarray(on_host(result.q.reshape(count, *result.q.shape[-2:])[kept.tolist()]), dtype=float)
    return Batch(robot, title or robot.name, result.times, q, *_ground(result), notes=tuple(notes))


MIN_CONTACT_FORCE = 1e-6  # of the weight: a smaller normal force is rounding error


def pushed_links(line: Timeline) -> NDArray[np.int64]:
    """Return the indices of the links with external wrenches."""
    return np.flatnonzero(np.asarray(line.external).any(axis=(0, 2)))


def contact_forces(line: Timeline, floor: Array) -> Array:
    """Return the points on a plane, and the forces, (T, G, 6) of the external wrenches on links, in base axes.

    The point is the centre of pressure. It is NaN while the wrench of a link does not push it away from the plane,
    whose normal (3) and distance (m) from the origin are ``floor`` (4,).
    """
    external, normal = np.asarray(line.external), floor[:3]
    links = pushed_links(line)
    poses = line.robot.to(device="casadi").poses(line.q)[:, links]
    moment, force = (np.einsum("tnij,tnj->tni", poses[..., :3, :3], external[:, links, part]) for part in PARTS)
    moment = moment + np.cross(poses[..., :3, 3], force)  # about the origin of the base
    push = force @ normal
    pushes = push > MIN_CONTACT_FORCE * line.robot.mass * float(np.linalg.norm(line.robot.gravity))
    points = (np.cross(normal, moment) + floor[3] * force) / np.where(pushes, push, np.nan)[..., None]
    return np.concatenate([points, np.where(pushes[..., None], force, np.nan)], axis=-1)

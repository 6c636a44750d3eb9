"""An instant in the viewer: link poses, forces, energies and loop-closure error, at rest or during a motion."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.mechanism import Wheel
from torsor.mechanism.mechanism import force_units
from torsor.robot.robot import Robot
from torsor.simulation.timeline import Batch
from torsor.spatial import to_quaternion
from torsor.view.scene import Scene, Timeline
from torsor.view.scene.curves import stances


class Drives(NamedTuple):
    """Drive forces (k,) with names, units, limits (infinite: none) and identification residuals."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    forces: Array
    limits: Array
    residuals: Array | None = None


def placed(poses: Array) -> tuple[Array, Array]:
    """Return positions (..., 3) and quaternions w x y z (..., 4) of poses (..., 4, 4)."""
    return poses[..., :3, 3], np.roll(to_quaternion(poses[..., :3, :3]), 1, axis=-1)


def closing_error(robot: Robot, q: Array) -> Array:
    """Return the largest loop-closure error (...) at positions (..., nq)."""
    return np.asarray(np.abs(robot.closed.error(q)).max(axis=-1, initial=0.0))


class Still:
    """A robot at positions ``q`` (nq,), at rest or with ``rates``: velocities and accelerations.

    Rates are (nv,), or those of the active coordinates of a robot with loops.
    """

    external = ground = markers = None
    is_person = False

    def __init__(self, scene: Scene, robot: Robot, q: Array, rates: tuple[Array, Array] | None = None):
        still = np.zeros(len(robot.active) if robot.loops else robot.nv)
        self.scene, self.robot, self.q = scene, robot, q
        self.v, self.a = (still, still) if rates is None else rates

    @cached_property
    def placed(self) -> tuple[Array, Array]:
        """Positions (L + 1, 3) and quaternions w x y z (L + 1, 4) of the base and the links, in base axes."""
        return placed(self.scene.poses(self.q))

    @property
    def center(self) -> Array:
        """The centre of mass (3,)."""
        return self.scene.center_of_mass(self.q)

    def _held(self, quantity: str) -> Array | None:
        """Return a quantity of the motion, or None if the posture is singular or there are too few drives."""
        robot = self.robot
        if robot.loops and not robot.active:
            return None
        try:
            value: Array = getattr(robot.closed if robot.loops else robot, quantity)(self.q, self.v, self.a)
        except ModelError:
            return None
        return value

    @property
    def reactions(self) -> Array | None:
        """Wrenches (L, 6) that parents exert on their links, in link axes, if the drives can move the robot."""
        return self._held("joint_wrenches")

    @property
    def drives(self) -> Drives | None:
        """The forces of the drives that move or hold the robot."""
        robot, forces = self.robot, self._held("inverse_dynamics")
        names = robot.active if robot.loops else robot.coordinate_names
        if forces is None or robot.loops or not robot.elastic:
            return None if forces is None else drives_of(robot, names, forces)
        forces, joints = (
            np.array(forces),
            dict(zip((joint.name for joint in robot.joints), robot.coordinates, strict=True)),
        )
        for name, motor in robot.motor_coordinates.items():  # the springs are relaxed, so the motors carry the links
            forces[motor.v] += forces[joints[name].v]
        kept = [k for k, name in enumerate(names) if name not in robot.motor_coordinates]
        return drives_of(robot, tuple(names[k] for k in kept), forces[kept])

    @property
    def energies(self) -> tuple[float, float]:
        """Kinetic and potential energy (J)."""
        robot, v = self.robot, self.v
        if robot.loops and v.any():
            v = robot.closed.velocities(self.q, v)
        kinetic = float(robot.kinetic_energy(self.q, v)) if v.any() else 0.0
        return kinetic, float(robot.potential_energy(self.q))

    @property
    def closing(self) -> float | None:
        """The largest loop-closure error (m, or 2 sin(angle/2)), or None without loops."""
        return float(closing_error(self.robot, self.q)) if self.robot.loops else None


def drives_of(
    robot: Robot,
    names: tuple[str, ...],
    forces: Array,
    residuals: Array | None = None,
    scale: tuple[float, str] = (1.0, ""),
) -> Drives:
    """Return coordinate forces with units and limits; ``scale`` is a factor and the text that it adds to the units."""
    limits = dict(zip(robot.coordinate_names, robot.effort_limit.tolist(), strict=True))
    units, (factor, per) = force_units(robot), scale
    bounds = np.array([limits.get(name, np.inf) for name in names])
    shown = tuple(units.get(name, "") + per for name in names)
    return Drives(names, shown, factor * forces, factor * bounds, residuals)


MAX_SAMPLES = 4000  # samples of a motion that are shown: about one minute


@dataclass(frozen=True, eq=False)
class Film:
    """A motion whose quantities are computed for all shown samples on first use.

    Charts show the curves of the ``whole`` motion. A periodic walk is shown in place, as on a treadmill: the distance
    travelled at its mean velocity is subtracted.
    """

    scene: Scene
    whole: Timeline

    @cached_property
    def motion(self) -> Timeline:
        """The samples that are shown."""
        return self.whole.every(MAX_SAMPLES)

    @cached_property
    def robot(self) -> Robot:
        """The robot in CasADi's virtual machine, which for a few hundred samples is faster than compiling."""
        return self.motion.robot.to(device="casadi")

    @cached_property
    def placed(self) -> tuple[Array, Array]:
        """Positions (T, L + 1, 3) and quaternions (T, L + 1, 4) without changes of sign."""
        positions, turns = placed(self.scene.poses(self.motion.q))
        positions = positions - self.way[:, None]
        signs = np.where((turns[1:] * turns[:-1]).sum(axis=-1) < 0, -1.0, 1.0)
        turns[1:] *= np.cumprod(signs, axis=0)[..., None]
        return positions, turns

    @cached_property
    def centers(self) -> Array:
        """The centre of mass (T, 3)."""
        return np.asarray(self.scene.center_of_mass(self.motion.q) - self.way)

    @cached_property
    def ground(self) -> Array | None:
        """Points and vectors of ground reaction forces (T, G, 6)."""
        if self.motion.ground is None:
            return None
        return self.motion.ground - np.pad(self.way, ((0, 0), (0, 3)))[:, None]

    @cached_property
    def reactions(self) -> Array:
        """Wrenches (T, L, 6) that parent links exert on their child links."""
        return replace(self.motion, robot=self.robot).reactions

    @cached_property
    def energies(self) -> Array:
        """Kinetic and potential energies (T, 2), in J."""
        q, v = self.motion.q, self.motion.v
        return np.stack([self.robot.kinetic_energy(q, v), self.robot.potential_energy(q)], axis=-1)

    @cached_property
    def closing(self) -> Array | None:
        """The largest loop-closure errors (T,), if there are loops."""
        loops = [loop for loop in self.robot.loops if not isinstance(loop, Wheel)]
        return closing_error(self.robot, self.motion.q) if loops else None

    @property
    def duration(self) -> float:
        """Duration (s)."""
        return float(self.motion.times[-1] - self.motion.times[0])

    def stances(self, coordinate: str) -> list[tuple[float, float]]:
        """Intervals (s) after the start in which the foot on the side of a coordinate is on the ground."""
        return stances(self.whole, coordinate)

    @property
    def speed(self) -> Array:
        """The mean velocity (3,) of a periodic motion in m/s, or zero for other motions."""
        ahead = self.motion.ahead
        return np.zeros(3) if ahead is None or not self.duration > 0 else ahead / self.duration

    @cached_property
    def way(self) -> Array:
        """The displacement (T, 3) of the ground under a walk that is shown in place, or zero for other motions."""
        return np.outer(self.motion.times - self.motion.times[0], self.speed)

    def within(self, time: float) -> float:
        """Map a time (s) into the motion: modulo its duration if it is periodic, otherwise at most its duration."""
        if self.motion.ahead is None or time <= self.duration:
            return min(time, self.duration)
        return time % self.duration

    def at(self, time: float) -> "Frame":
        """Return the instant ``time`` (s) after the start, interpolated between two samples."""
        times, time = self.motion.times - self.motion.times[0], self.within(time)
        index = int(np.clip(np.searchsorted(times, time, side="right") - 1, 0, max(len(times) - 2, 0)))
        after = min(index + 1, len(times) - 1)
        step = float(times[after] - times[index])
        part = float(np.clip((time - times[index]) / step, 0.0, 1.0)) if step > 0 else 0.0
        return Frame(self, index, after, part)


class Frame:
    """An instant of a motion: the fraction ``part`` (0 to 1) of the way from one sample to the next."""

    def __init__(self, film: Film, before: int, after: int, part: float):
        self.film, self.before, self.after, self.part = film, before, after, part

    def _of(self, samples: Array) -> Array:
        """Interpolate samples (T, ...) at the instant. If either neighbour is NaN, return the nearer one."""
        a, b = samples[self.before], samples[self.after]
        between: Array = a + self.part * (b - a)
        if not np.isnan(between).any():
            return between
        return np.where(np.isnan(between), a if self.part < 0.5 else b, between)

    @cached_property
    def placed(self) -> tuple[Array, Array]:
        """Positions (L + 1, 3) and quaternions w x y z (L + 1, 4) of the base and the links, in base axes."""
        positions, turns = (self._of(samples) for samples in self.film.placed)
        return positions, turns / np.linalg.norm(turns, axis=-1, keepdims=True)

    @property
    def center(self) -> Array:
        """The centre of mass (3,)."""
        return self._of(self.film.centers)

    @property
    def reactions(self) -> Array | None:
        """Wrenches (L, 6) that parents exert on their links, if the drive forces are known."""
        return None if self.film.motion.tau is None else self._of(self.film.reactions)

    @property
    def external(self) -> Array | None:
        """External wrenches (L, 6) on links, except ground reactions, which have their own arrows."""
        motion = self.film.motion
        return None if motion.external is None or motion.ground is not None else self._of(motion.external)

    @property
    def ground(self) -> Array | None:
        """Points and vectors of ground reaction forces (G, 6) in base axes, with NaN where there is none."""
        return None if self.film.ground is None else self._of(self.film.ground)

    @property
    def markers(self) -> Array | None:
        """Measured points (M, 3) in base axes, with NaN where a marker is not visible."""
        return None if self.film.motion.markers is None else self._of(self.film.motion.markers)

    @property
    def is_person(self) -> bool:
        """Whether this is the motion of a person."""
        return self.film.motion.is_person

    @property
    def drives(self) -> Drives | None:
        """The drive forces, with identification residuals (measured minus predicted forces)."""
        motion, known = self.film.motion, self.film.motion.known_tau
        if known is None:
            return None
        chosen = motion.drives
        residuals = None if motion.residuals is None else self._of(motion.residuals)[chosen]
        names = tuple(motion.driven[k] for k in chosen)
        return drives_of(motion.robot, names, self._of(known)[chosen], residuals, motion.force_scale)

    @property
    def energies(self) -> tuple[float, float]:
        """Kinetic and potential energy (J)."""
        kinetic, potential = self._of(self.film.energies)
        return float(kinetic), float(potential)

    @property
    def closing(self) -> float | None:
        """The largest loop-closure error."""
        return None if self.film.closing is None else float(self._of(self.film.closing))


@dataclass(frozen=True, eq=False)
class Crowd:
    """A batch of motions, each displaced by ``offsets`` (N, 3), in m."""

    scene: Scene
    motions: Batch
    offsets: Array

    def placed(self, time: float) -> tuple[Array, Array]:
        """Return the positions and quaternions of ``placed`` for all robots, ``time`` (s) after the start."""
        times, robot = self.motions.times - self.motions.times[0], self.scene.tree
        after = int(np.clip(np.searchsorted(times, time, side="right"), 1, len(times) - 1))
        a, b = (self.motions.q[:, k] for k in (after - 1, after))
        part = float(np.clip((time - times[after - 1]) / (times[after] - times[after - 1]), 0.0, 1.0))
        q = a + part * (b - a) if robot.nq == robot.nv else robot.integrate(a, part * robot.difference(a, b))
        positions, turns = placed(self.scene.poses(q))
        return (positions + self.offsets[:, None]).reshape(-1, 3), turns.reshape(-1, 4)


Shot = Still | Frame
"""One moment."""

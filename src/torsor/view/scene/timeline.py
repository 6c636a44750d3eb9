"""A motion as a viewer plays it, whatever result it comes from: times, states, drive forces, forces of the ground."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.contact.schedule import Walk
from torsor.human.contact.stairs import stairs_of
from torsor.human.contact.support import Sitting, Support
from torsor.human.gait.curves import StrideCurves
from torsor.human.terms.forces import Grounded
from torsor.human.terms.problem import (
    HumanProblem,
    feet_and_seat,
    grounded_term,
    load_of,
    pressure,
    sampled,
    walk_of,
    who,
)
from torsor.identification import Identified
from torsor.identification.closed_robot import ClosedRobot
from torsor.motion import MotionProblem, MotionResult
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory
from torsor.view.scene.things import Thing

REPEATS = 1e-3  # largest difference (rad, m) of the ends of a motion that goes on
ALLOWED = "a trajectory, a motion, a stride or an identification; of a batch of rollouts, one: trajectory[3]"


@dataclass(frozen=True, eq=False)
class Timeline:
    """Samples of a motion at ``times`` (T,), in s: ``q`` (T, nq), ``v`` and ``a`` (T, nv). ``timeline`` makes them.

    ``tau`` (T, k) are the forces of the coordinates ``driven`` (k names). ``external`` (T, L, 6) are wrenches of the
    environment on links, as for ``Robot.inverse_dynamics``. ``ground`` (T, G, 6) are forces of the ground: the point of
    application (m), then the force (N), in base axes; NaN where there is none. ``residuals`` (T, k) are the measured
    less the predicted forces of an identification. ``things`` are what a human carries or sits on. ``ahead`` (3,), in
    m, of a motion that goes on for ever, is how far the whole robot is then: the last sample is the first one, moved.
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
    residuals: Array | None = None
    things: tuple[Thing, ...] = ()
    ahead: Array | None = None

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def reactions(self) -> Array:
        """The wrench of each parent on its link (T, L, 6): moment, then force, at the link's frame in its axes."""
        tau = np.zeros_like(self.v) if self.tau is None else self.tau
        samples = Trajectory(self.robot, self.times, self.q, self.v, self.a, tau, external=self.external)
        return samples.reactions

    @cached_property
    def limits(self) -> Array:
        """The largest forces (k,) of the drives, infinite where there is no limit."""
        limits = dict(zip(self.robot.coordinate_names, self.robot.effort_limit, strict=True))
        return np.array([limits[name] for name in self.driven])

    def every(self, count: int) -> "Timeline":
        """Return at most ``count`` samples, spread evenly, the first and the last included."""
        if len(self) <= count:
            return self
        return self.kept(np.linspace(0, len(self) - 1, count).round().astype(int))

    def kept(self, samples: NDArray[np.int64]) -> "Timeline":
        """Return some of the samples, by their indices."""
        names = ("times", "q", "v", "a", "tau", "external", "ground", "residuals")
        parts = {name: getattr(self, name) for name in names}
        return replace(self, **{name: part[samples] for name, part in parts.items() if part is not None})


def timeline(result: Any, title: str = "") -> Timeline:
    """Return the motion of a result: a simulated trajectory, a predicted motion, a stride, or an identification.

    A walk is shown as one stride, after which it goes on; walks and tasks of a human have the forces of the ground. Of
    a result that failed, the samples before the first that is not finite are shown.

    Example:
        >>> fall = torsor.simulate(torsor.library.planar_chain(2), duration=0.5)
        >>> played = timeline(fall)
        >>> len(played), played.every(50).q.shape, played.reactions.shape
        (501, (50, 2), (501, 2, 6))
    """
    if isinstance(result, Timeline):
        found = result
    elif isinstance(result, Trajectory):
        found = _of_trajectory(result)
    elif isinstance(result, StrideCurves):
        found = _of_stride(result)
    elif isinstance(result, MotionResult):
        found = _of_motion(result)
    elif isinstance(result, Identified):
        found = _of_identified(result)
    else:
        raise ModelError(f"cannot play {type(result).__name__}", where="view", allowed=ALLOWED)
    return _reached(replace(found, title=title) if title else found)


def _reached(line: Timeline) -> Timeline:
    """Return the samples before the first that is not finite: what a simulation or a search that failed has reached."""
    finite = np.isfinite(line.times) & np.isfinite(line.q).all(axis=-1)
    count = len(line) if finite.all() else int(np.argmin(finite))
    if not count:
        fix = "check the result: its first positions are not finite" if len(line) else ""
        raise ModelError(f"{line.title} has no samples to show", where="view", fix=fix)
    back = np.flatnonzero(np.diff(line.times[:count]) < 0)
    if back.size:
        k, times = int(back[0]), line.times
        found = f"{line.title}: time goes back from {times[k]:g} s to {times[k + 1]:g} s (sample {k + 1})"
        raise ModelError(found, where="view", allowed="times that increase")
    return line if count == len(line) else line.kept(np.arange(count))


def _of_trajectory(result: Trajectory) -> Timeline:
    if result.q.ndim != 2:
        batch = " x ".join(map(str, result.q.shape[:-2]))
        raise ModelError(f"{batch} rollouts at once", where="view", allowed=ALLOWED)
    robot, states = result.robot, (result.times, result.q, result.v, result.a, result.tau)
    return Timeline(robot, robot.name, *states, robot.coordinate_names, result.external)


def _of_motion(result: MotionResult) -> Timeline:
    term = next((each for each in result.problem.terms if isinstance(each, Grounded)), None)
    if term is not None and isinstance(term.support, Walk):
        return _of_stride(StrideCurves(result))
    if term is not None:
        return _of_task(result, term)
    states = (result.times, result.q, result.v, result.a)
    return Timeline(result.robot, result.robot.name, *states, result.tau, result.force_names)


def _of_task(result: MotionResult, term: Grounded) -> Timeline:
    """Return a task of a human on its feet, with the forces of the ground and of a seat."""
    body, problem, s = term.body, result.problem, result.times / result.T
    at, tau, external = sampled(result, s), None, None
    if isinstance(problem, HumanProblem):
        tau, external = problem.contact(result)
    states, ground = (result.times, at.q, at.v, at.a), feet_and_seat(result, at, s)
    title = f"{who(problem)}: {problem.name}"
    found = Timeline(body, title, *states, tau, body.coordinate_names, external, ground)
    return replace(found, things=_things(problem, term.support))


def _things(problem: MotionProblem, support: Support) -> tuple[Thing, ...]:
    """Return what the body of a problem carries and sits on."""
    load, seats = load_of(problem), [support] if isinstance(support, Sitting) else []
    found = stairs_of(support, grounded_term(problem).body), support.rails, load
    return (*(each for each in found if each is not None), *seats)


def _of_stride(stride: StrideCurves) -> Timeline:
    body, at, problem = stride.body, stride.samples, stride.result.problem
    forces, moments = at.forces, at.moments
    feet = [body.link_names.index(f"{side}_foot") for side in SIDES]
    poses = body.to(device="casadi").poses(at.q)[:, feet]
    external = np.zeros((len(at.q), len(body.links), 6))
    arms = moments - np.cross(poses[..., :3, 3], forces)
    for part, vectors in ((slice(0, 3), arms), (slice(3, 6), forces)):
        external[:, feet, part] = np.einsum("tfji,tfj->tfi", poses[..., :3, :3], vectors)
    title = f"{who(problem)}, {stride.step.speed:.3g} m/s"
    states = (stride.s * stride.duration, at.q, at.v, at.a, at.torques)
    ground = np.concatenate([pressure(at, body), forces], axis=-1)
    found = Timeline(body, title, *states, body.coordinate_names, external, ground)
    return replace(found, things=_things(problem, walk_of(problem)[1]), ahead=_ahead(at.q))


def _ahead(q: Array) -> Array | None:
    """Return how far a walk goes in the samples q (T, 55) of a stride, if it ends as it began."""
    way = q[-1] - q[0]
    return way[:3].copy() if np.abs(np.delete(way, GLOBAL.index("tz"))).max() < REPEATS else None


def _of_identified(result: Identified) -> Timeline:
    measured, robot = result.measurements, result.prior
    times = np.arange(len(measured), dtype=float) if measured.times is None else measured.times
    motion, tau = (measured.q, measured.v, measured.a), measured.tau
    residuals = tau - result.predicted
    if isinstance(robot, ClosedRobot):
        motion, tau, residuals = robot.whole(*motion), robot.spread(tau), robot.spread(residuals)
        robot = robot.mechanism
    states = (times, *motion, tau)
    return Timeline(robot, f"{robot.name}, measured", *states, robot.coordinate_names, residuals=residuals)

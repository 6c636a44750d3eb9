"""Inverse dynamics of a measured motion with measured ground forces, and residuals between motion and forces.

    tau = M a + C v + g - sum over the feet of J^T (wrench of the ground)

The six global coordinates have no muscles. The remaining force and moment at these coordinates are the residuals, which
measure the inconsistency between motion, masses and ground forces.

Motion and forces are filtered by the same low-pass filter. After a heel strike, accelerations and ground forces have
high-frequency components that cancel in the joint moments. If only the motion is filtered, they remain as artefacts
(Bisseling and Hof 2006, Kristianslund et al. 2012).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Flags
from torsor.base.checks import flag, frozen_array, known_name, number, table, whole_number
from torsor.base.errors import ModelError, listing, warn
from torsor.human.measured.inverse_kinematics import check_upright
from torsor.human.measured.skeleton import Skeleton, tree_of
from torsor.human.recordings import GroundForces
from torsor.human.recordings.processing import uniform_rate
from torsor.human.recordings.recording import at_times, runs
from torsor.identification.differentiation import differentiate
from torsor.robot.robot import Robot

WHERE = "inverse dynamics"
CUTOFF, ORDER = 6.0, 3  # Hz, and order of one pass; walking has little content above this frequency (Winter 2009)
FEET = {"right": "right_foot", "left": "left_foot"}
OSIM_FEET = {"right": "calcn_r", "left": "calcn_l"}
MIN_FORCE = 0.01  # N; below this force, there is no centre of pressure, but all measured forces count
MAX_PRESSURE_DISTANCE = 0.35  # m; a centre of pressure farther from the ankle is not under this foot
EDGE_FRACTION = 0.25  # fraction of 1 / cutoff at the ends of a recording within which accelerations are inaccurate
LARGE_RESIDUAL = 0.25  # fraction of body weight; larger residuals are not noise


@dataclass(frozen=True, eq=False)
class MeasuredDynamics:
    """The inverse dynamics of a motion at K samples.

    It contains ``q``, ``v``, ``a`` and the generalised ``forces`` (K, n) (N m, N) of the coordinates ``names``, at
    ``times`` (K,) (s). ``residual_force`` (K, 3) (N) and ``residual_moment`` (K, 3) (N m, about the pelvis), in base
    axes, are not explained by the ground forces. ``weight`` is in N. ``ground`` contains the ground forces, and
    ``external`` (K, links, 6) the corresponding wrenches on the links of the tree, at the link origins in link axes.
    """

    names: tuple[str, ...]
    times: Array
    q: Array
    v: Array
    a: Array
    forces: Array
    residual_force: Array
    residual_moment: Array
    weight: float
    ground: GroundForces | None = None
    external: Array | None = None

    def moment(self, name: str) -> Array:
        """Return the generalised force (K,) of a coordinate, in N m or N."""
        known_name(name, self.names, WHERE, "coordinate")
        return self.forces[:, self.names.index(name)]

    def between(self, first: float, last: float) -> "MeasuredDynamics":
        """Return the samples from time ``first`` to ``last`` (s)."""
        return self.only((self.times >= first) & (self.times <= last))

    def only(self, kept: Flags) -> "MeasuredDynamics":
        """Return the samples selected by ``kept`` (K,)."""
        cut = ("times", "q", "v", "a", "forces", "residual_force", "residual_moment")
        external = None if self.external is None else self.external[kept]
        return replace(self, external=external, **{name: getattr(self, name)[kept] for name in cut})

    @property
    def residual(self) -> tuple[float, float]:
        """RMS of the residual force and of the residual moment (m), both divided by body weight."""
        sizes = (np.linalg.norm(vectors, axis=1) for vectors in (self.residual_force, self.residual_moment))
        force, moment = (float(np.sqrt(np.mean(vectors**2))) / self.weight for vectors in sizes)
        return force, moment

    def __str__(self) -> str:
        force, moment = self.residual
        return (
            f"{len(self.times)} instants, {self.times[0]:g} to {self.times[-1]:g} s; residual force "
            f"{100 * force:.1f} % of the weight, residual moment {moment * self.weight:.1f} N m RMS"
        )


def inverse_dynamics(
    model: Robot | Skeleton,
    times: ArrayLike,
    q: ArrayLike,
    ground: GroundForces,
    *,
    feet: Mapping[str, str] | None = None,
    cutoff: float | None = CUTOFF,
    force_cutoff: float | None = None,
    order: int = ORDER,
    check: bool = True,
) -> MeasuredDynamics:
    """Return the joint moments of a measured motion q (K, n) at equally spaced times (K,) with measured ground forces.

    ``ground`` contains the forces "right" and "left" (``recordings.by_foot``), in the axes of the motion. ``feet``
    names the links on which they act, by default the feet of ``library.human`` or of OpenSim skeletons. The motion is
    filtered by a zero-phase Butterworth filter with a ``cutoff`` (Hz; default 6, None disables the filter) and two
    passes of ``order`` (default 3), and is differentiated in the frequency domain. ``force_cutoff`` (Hz) is the cutoff
    of the same filter for the ground forces, by default equal to ``cutoff``; ``math.inf`` leaves the forces unfiltered,
    as in OpenSim. Samples within approximately 1 / cutoff of the ends are less accurate. With ``check``, warnings are
    issued for forces far from their foot and for large residuals.

    Example:
        >>> body, t = torsor.library.human(), np.arange(20) / 100
        >>> zero = np.zeros((20, 2, 3))
        >>> half = zero + [0.0, body.mass * 9.81 / 2, 0.0]
        >>> under = zero + [[-0.085, 0, 0.03], [0.085, 0, 0.03]]
        >>> stands = GroundForces(["right", "left"], t, half, under, zero, axes="left up forward")
        >>> found = inverse_dynamics(body, t, np.zeros((20, 55)), stands)
        >>> bool(np.abs(found.residual_force).max() < 1e-9), round(float(found.moment("right_ankle_flexion")[9]), 2)
        (True, -10.11)
    """
    tree, names = tree_of(model), model.coordinate_names
    when = frozen_array(times, (np.size(times),), WHERE, "times")
    positions = frozen_array(q, (len(when), len(names)), WHERE, "q")
    x, v, a = _rates(when, positions, cutoff, order)
    states = model.states(x, v, a) if isinstance(model, Skeleton) else (x, v, a)
    links = _links(tree, feet)
    check_upright(tree, ground.axes, ground.source)
    of_forces = force_cutoff if force_cutoff is not None else math.inf if cutoff is None else cutoff
    acting = _filtered(ground.without_unloaded(MIN_FORCE), of_forces, order)
    external = _external(tree, states[0], when, acting, ground, links, flag(check, WHERE, "check"))
    tau = tree.inverse_dynamics(*states, external)
    force, moment = residual_wrench(tree, states[0], tau)
    forces = model.forces(x, tau) if isinstance(model, Skeleton) else tau
    weight = float(tree.mass * np.linalg.norm(tree.gravity))
    dynamics = MeasuredDynamics(names, when, x, v, a, forces, force, moment, weight, ground, external)
    fault = large_residual(dynamics, cutoff)
    if check and fault:
        warn(**fault)
    return dynamics


def large_residual(dynamics: MeasuredDynamics, cutoff: float | None = CUTOFF) -> dict[str, str]:
    """Return message parts on times with a large residual force, except near the ends; empty if there are none."""
    edge = EDGE_FRACTION / (cutoff or CUTOFF)  # s
    size, t = np.linalg.norm(dynamics.residual_force, axis=1) / dynamics.weight, dynamics.times
    size[(t < t[0] + edge) | (t > t[-1] - edge)] = 0.0
    large = [f"{t[a]:g} to {t[b]:g} s" for a, b in runs(np.asarray(size > LARGE_RESIDUAL))]
    if not large:
        return {}
    what = f"the residual force is up to {100 * size.max():.0f} % of the weight, from {', '.join(large)}"
    fix = "use other times if a foot misses the plates then; otherwise check mass, axes and the plate of each foot"
    return {"what": what, "where": WHERE, "allowed": f"up to {100 * LARGE_RESIDUAL:.0f} %", "fix": fix}


def _rates(times: Array, q: Array, cutoff: float | None, order: int) -> tuple[Array, Array, Array]:
    whole_number(order, WHERE, "order", most=12)
    if cutoff is None:
        cutoff, order = 0.5 * (len(times) - 1) / float(times[-1] - times[0]), 12  # half of the sampling rate
    cutoff = number(cutoff, WHERE, "cutoff (Hz)", above=0.0)
    return differentiate(times, q, cutoff, order=order, ends="straight", where=WHERE)


def _links(tree: Robot, feet: Mapping[str, str] | None) -> dict[str, str]:
    """Return the link of each foot."""
    if feet is not None:
        links = table(feet, WHERE, "feet")
        for link in links.values():
            tree.place(link)
        return links
    for known in (FEET, OSIM_FEET):
        if all(link in tree.places for link in known.values()):
            return known
    fix = 'pass feet={"right": link, "left": link}'
    raise ModelError(f"the feet of {tree.name!r} are unknown", value=tree.name, where=WHERE, fix=fix)


def _filtered(ground: GroundForces, cutoff: float, order: int) -> Array:
    """Return the ground wrenches (T, feet, 6) about the origin, filtered like the motion."""
    wrench, cutoff = ground.wrench(), number(cutoff, WHERE, "force_cutoff (Hz)", above=0.0, finite=False)
    if math.isinf(cutoff):
        return wrench
    rate = uniform_rate(ground.times, ground.source)
    number(cutoff, ground.source, "force_cutoff (Hz, up to half the rate)", most=0.5 * rate)
    equal = np.arange(len(wrench)) / rate  # printed times are rounded
    flat = differentiate(equal, wrench.reshape(len(wrench), -1), cutoff, order=order, ends="straight", where=WHERE)[0]
    return flat.reshape(wrench.shape)


def _external(
    tree: Robot, q: Array, times: Array, wrench: Array, on: GroundForces, feet: Mapping[str, str], check: bool
) -> Array:
    """Return the ground wrenches (K, links, 6) on all links, at the link origins in link axes.

    ``wrench`` (T, feet, 6) contains the wrenches about the origin at the times of the ground forces.
    """
    poses = tree.poses(q)
    external = np.zeros((len(times), len(tree.links), 6))
    for side, link in feet.items():
        if side not in on.names:
            allowed = listing(on.names)
            fix = "torsor.human.recordings.by_foot(forces, markers) assigns plates to feet"
            raise ModelError(f"there is no force of the {side} foot", where=on.source, allowed=allowed, fix=fix)
        at = on.index(side)
        if times[0] < on.times[0] - 1e-9 or times[-1] > on.times[-1] + 1e-9:
            spans = f"{on.times[0]:g} to {on.times[-1]:g} s, but the motion from {times[0]:g} to {times[-1]:g} s"
            raise ModelError(f"ground forces cover {spans}", where=WHERE, fix="cut the motion: between(first, last)")
        sampled = at_times(times, on.times, wrench[:, at])
        k = tree.place(link).link
        R, p = poses[:, k, :3, :3], poses[:, k, :3, 3]
        n, f = sampled[:, :3] - np.cross(p, sampled[:, 3:]), sampled[:, 3:]
        external[:, k] += np.concatenate([np.einsum("kij,ki->kj", R, vector) for vector in (n, f)], axis=1)
        if check:
            _check_place(tree, poses, times, on.without_unloaded(), at, side, link)
    return external


def _check_place(tree: Robot, poses: Array, times: Array, ground: GroundForces, at: int, side: str, link: str) -> None:
    """Warn about forces that act far from their assigned foot."""
    centers = at_times(times, ground.times, ground.centers[:, at])
    place = tree.place(link)
    T = poses[:, place.link] @ place.pose
    far = np.linalg.norm(centers - T[:, :3, 3], axis=1) > MAX_PRESSURE_DISTANCE
    if far.any():
        k = int(np.argmax(far))
        what = f"at {times[k]:g} s the {side} force acts {np.linalg.norm(centers[k] - T[k, :3, 3]):.2f} m from {link}"
        fix = "check the plate of each foot (torsor.human.recordings.by_foot) and the axes of the plates"
        warn(what, where=ground.source, allowed=f"up to {MAX_PRESSURE_DISTANCE} m", fix=fix)


def residual_wrench(tree: Robot, q: Array, tau: Array) -> tuple[Array, Array]:
    """Return the residual force (N) and moment (N m), (K, 3) in base axes, that do the same work as tau[:, :6].

    The moment is about the origin of the first link with a mass.
    """
    root = next(k for k, link in enumerate(tree.links) if link.mass > 0)
    name = tree.links[root].name
    J = tree.jacobian(q, name)[:, :, :6]
    R = tree.pose(q, name)[:, :3, :3]
    wrench = np.linalg.solve(np.swapaxes(J, 1, 2), tau[:, :6, None])[..., 0]
    moment, force = (np.einsum("kij,kj->ki", R, part) for part in (wrench[:, :3], wrench[:, 3:]))
    return force, moment

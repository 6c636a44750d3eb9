"""Regressor and base parameters of mechanisms with closed loops, for the forces of the drives.

    tau_a = G^T Y(q, v, a) pi,   v = G v_a        Y: the regressor of the tree; G: see ``dynamics/loops/constrained.py``

A loop couples the motions of its bodies, so the drives cannot distinguish some parameters that are distinguishable in
the tree, for example two of the four planar parameters of a four-bar linkage's coupler. No set of rules is known to
regroup all of them, so the base parameters are computed by a QR decomposition of Y over random motions (Khalil and
Bennis 1995).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import indices_of, several, vectors
from torsor.base.errors import ModelError
from torsor.dynamics import parameter_names
from torsor.robot.base_parameters import BaseParameters, decomposed, motions_needed, unknown_parameters
from torsor.robot.closed_loops.assembly import assemble
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.constrained import constrained
from torsor.robot.closed_loops.search import CLOSURE_TOLERANCE

CHUNK = 512  # states per batch: the regressor of the tree is large
STEPS, STEP = 40, 0.25  # number and standard deviation (rad or mechanism sizes) of random steps
MIN_REGULARITY = 0.05  # minimum singularity distance of a random configuration, relative to that of the reference
HOME = "home"
OF_DRIVES = (".rotor_inertia", ".coulomb", ".viscous")


def constrained_regressor(closure: LoopClosure, q: ArrayLike, v_active: ArrayLike, a_active: ArrayLike) -> Array:
    """Return the regressor Y (..., N, p) of the forces of the active coordinates; see ``robot.closed.regressor``."""
    kernels, where, n = closure.kernels, closure.name, len(closure.active)
    freedoms = len(closure.driven_choice.independent)
    if n > freedoms:
        message = f"the {n} drives outnumber the {freedoms} degrees of freedom, so their forces are not unique"
        raise ModelError(message, where=where, fix="make fewer coordinates active: robot.with_active([...])")
    states = vectors(q, closure.mechanism.nq, where, "q")
    rates, accelerations = vectors(v_active, n, where, "v_active"), vectors(a_active, n, where, "a_active")
    batch = np.broadcast_shapes(states.shape[:-1], rates.shape[:-1], accelerations.shape[:-1])
    flat = [np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (states, rates, accelerations)]
    Y = np.empty((len(flat[0]), n, len(parameter_names(closure.mechanism))))
    for k in range(0, len(Y), CHUNK):
        at, v_a, a_a = (x[k : k + CHUNK] for x in flat)
        motion: Any = constrained(closure, "constrained_accelerations", (at, v_a, a_a))
        whole = kernels.call("regressor", at, *motion, loops="open")
        G = constrained(closure, "constrained_velocities", (at[:, None], np.eye(n)))  # (..., N, nv): one row per drive
        Y[k : k + CHUNK] = G @ whole
    return Y.reshape(*batch, *Y.shape[1:])


def closed_base_parameters(
    closure: LoopClosure,
    seed: int,
    among: Sequence[str],
    measured: Sequence[str] | None = None,
    known: Sequence[str] = (),
    start: Array | None = None,
) -> BaseParameters:
    """Return the smallest set of parameters that determines the forces of the drives; see ``robot.inertial.base``.

    ``measured`` are the drives whose forces are known; the default is all. ``known`` are patterns of known parameters,
    which take precedence over ``among``. Base parameters depend on the assembly mode, which is that of ``start`` (nq,);
    see ``start_posture``. A parallelogram has fewer base parameters than a crossed linkage with the same bars.
    """
    mechanism = closure.mechanism
    names = parameter_names(mechanism)
    every = unknown_parameters(closure.name, names, several(among))
    named = unknown_parameters(closure.name, names, [part for part in several(among) if part != "*"])
    active = {name + kind for name in mechanism.active for kind in OF_DRIVES}
    passive = np.array([name.endswith(OF_DRIVES) and name not in active for name in names], dtype=bool)
    unknown = np.where(passive, named, every)  # rotor inertias and friction of passive joints only if they are named
    if known:
        unknown &= ~unknown_parameters(closure.name, names, known)
    rows = indices_of(measured, mechanism.active, f"{closure.name}: measured")
    count = motions_needed(len(names), len(rows))
    q, v, a = _random_motions(closure, start_posture(closure) if start is None else start, count, seed)
    return decomposed(mechanism, constrained_regressor(closure, q, v, a)[:, rows], unknown)


def start_posture(closure: LoopClosure) -> Array:
    """Return the posture (nq,) that selects the default assembly mode: "home", or one computed by a search."""
    return closure.mechanism.postures.get(HOME, closure.reference)


def _random_motions(closure: LoopClosure, start: Array, count: int, seed: int) -> tuple[Array, Array, Array]:
    """Return random regular closed configurations (count, nq) in the mode of ``start``, and rates (count, N)."""
    rng, active, closer = np.random.default_rng(seed), closure.active, closure.closer
    if len(closure.active_positions) != len(active):
        message = "an active joint has a quaternion as its position"
        raise ModelError(message, where=closure.name, allowed="active coordinates with one position each")
    q = np.tile(assemble(closure, start[closure.active_positions], start, "raise"), (count, 1))
    side = closer.side(q)
    least = MIN_REGULARITY * np.abs(closer.side(closure.reference[None]))
    for _ in range(STEPS):
        move = np.zeros((count, closure.mechanism.nv))
        move[:, active] = STEP * rng.normal(size=(count, len(active))) * closure.scales[2][active]
        there, error, beyond = closer.close(q, move)
        good = (error <= CLOSURE_TOLERANCE) & closer.accepted(q, there, side, beyond) & (np.abs(beyond) > least)
        q[good], side[good] = there[good], beyond[good]
    v, a = rng.normal(size=(2, count, len(active)))
    return q, v, a

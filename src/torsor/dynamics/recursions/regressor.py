"""Regressors: matrices that map the parameters linearly to forces, energy and power.

A link has ten inertial parameters, about its origin in its own axes: m, m c, and J. The wrench due to a unit value of
each parameter is a column of the Newton-Euler equations and is transformed to the joints above like any wrench. Each
rotor inertia and friction parameter also has a column. Forces of springs and motors do not depend on the parameters.
See Khalil 2010, section 3.1, and Khalil and Dombre 2002. The columns of the energy regressor are the energies due to
unit values (Gautier and Khalil 1988), and those of the power regressor are forces times velocities.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.dynamics.recursions.composite import climb
from torsor.dynamics.recursions.kinematics import motions, moves, sx, twists, world_poses
from torsor.dynamics.recursions.momentum import body_gravity_energy, twice_kinetic_energy
from torsor.dynamics.recursions.newton_euler import body_wrench
from torsor.dynamics.trees.tree import Body, Tree
from torsor.mechanism import Mechanism
from torsor.mechanism.flexible import Modes
from torsor.mechanism.free import PAIRS
from torsor.spatial import (
    axis_frame,
    inverse_pose,
    move_pseudo_inertia,
    pseudo_inertia,
    rotational_inertia,
    second_moment,
)

INERTIAL = ("m", "mx", "my", "mz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz")
"""Inertial parameters of a link: mass, first moments, and moments of inertia about its origin."""


def parameter_basis() -> list[Array]:
    """Return the pseudo-inertia (4 x 4) of each inertial parameter at unit value, in the link's axes."""
    bases = np.zeros((10, 4, 4))
    for P, (i, j) in zip(bases, ((3, 3), (0, 3), (1, 3), (2, 3), *PAIRS), strict=True):
        P[i, j] = P[j, i] = 1.0
    for P in bases[4:]:
        P[:3, :3] = second_moment(P[:3, :3])
    return list(bases)


def _parts(body: Body) -> Iterator[Body]:
    """Yield one body without rotors per inertial parameter, in which only that parameter is nonzero and equal to 1."""
    return (replace(body, P=move_pseudo_inertia(body.link, unit), rotors=()) for unit in parameter_basis())


def regressor(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return Y (nv x p) with tau = Y pi, without the forces of springs and motors; for pi see ``parameters``."""
    _refuse_modes(tree)
    moved = moves(tree, q)
    motion = motions(tree, moved, v, a, sx(tree.gravity))
    blocks: list[ca.SX] = []
    for k, (body, m) in enumerate(zip(tree.bodies, motion, strict=True)):
        rows: dict[int, ca.SX] = {}
        wrenches = zip(*(body_wrench(part, m, None, None) for part in _parts(body)), strict=True)  # 3 x 1 each
        for j, wrench in climb(tree, moved, k, *(ca.horzcat(*columns) for columns in wrenches)):
            above = tree.bodies[j]
            forces = above.joint.ratio * (moved[j].S.T @ wrench)
            for r in range(forces.size1()):
                rows[above.v.start + r] = rows.get(above.v.start + r, 0) + forces[r, :]
        blocks.append(ca.vertcat(ca.SX(0, 10), *(rows.get(r, ca.SX(1, 10)) for r in range(tree.nv))))
    for body in tree.bodies:  # rotor inertia, Coulomb and viscous friction of each velocity of each joint
        rate, acceleration, smooth = body.rate(v), body.rate(a), body.joint.smooth
        for k, index in enumerate(range(body.v.start, body.v.stop)):
            direction = ca.tanh(rate[k] / smooth) if smooth else ca.sign(rate[k])
            columns = ca.SX(tree.nv, 3)
            columns[index, :] = body.joint.ratio * ca.horzcat(acceleration[k], direction, rate[k])
            blocks.append(columns)
    return ca.horzcat(ca.SX(tree.nv, 0), *blocks)


def _refuse_modes(tree: Tree) -> None:
    """Raise ModelError for links with assumed modes, whose forces are not linear in the inertial parameters."""
    bent = next((body.joint.child for body in tree.bodies if body.modal), None)
    if bent is not None:
        message = f"link {bent!r} has assumed modes, whose inertia is not among the parameters"
        names = (body.joint.name for body in tree.bodies if isinstance(body.joint.flexible, Modes))
        fix = f"make the link rigid: robot.fix({next(names)!r}, 0)"
        raise ModelError(message, value=bent, allowed="rigid links and rods", fix=fix)


def power_regressor(tree: Tree, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return y (p x 1) with v . tau = y . pi, the rate of energy plus the power dissipated by friction, in W."""
    return regressor(tree, q, v, a).T @ v


def energy_regressor(tree: Tree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return h (p x 1) with kinetic energy + gravity energy = h . pi, in J; entries for friction are zero."""
    _refuse_modes(tree)
    moved = moves(tree, q)
    columns: list[ca.SX] = []
    for body, V, pose in zip(tree.bodies, twists(tree, moved, v), world_poses(tree, moved), strict=True):
        energies = ((twice_kinetic_energy(p, V, v), body_gravity_energy(p, pose, tree.gravity)) for p in _parts(body))
        columns += [twice / 2 + potential for twice, potential in energies]
    for body in tree.bodies:
        rate = body.rate(v)
        for k in range(rate.size1()):
            columns += [rate[k] ** 2 / 2, ca.SX(1, 1), ca.SX(1, 1)]
    return ca.densify(ca.vertcat(ca.SX(0, 1), *columns))


def inertial(P: Array) -> Array:
    """Return the inertial parameters (10,) of a pseudo-inertia (4 x 4), about the same origin."""
    J = rotational_inertia(P[:3, :3])
    return np.array([P[3, 3], *P[:3, 3], *(J[i, j] for i, j in PAIRS)])


def parameters(mechanism: Mechanism) -> Array:
    """Return pi (p,): ten per link, then rotor inertia, Coulomb and viscous friction of each joint velocity."""
    values: list[float] = []
    for link in mechanism.links:
        values += inertial(pseudo_inertia(*link.body)).tolist()
    for joint in mechanism.joints:
        values += np.column_stack([joint.rotor_inertia, joint.coulomb, joint.viscous]).ravel().tolist()
    return np.array(values)


def parameter_names(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the parameter names in order, such as "link2.mx" or "joint3.coulomb"."""
    links = [f"{link.name}.{item}" for link in mechanism.links for item in INERTIAL]
    drives = ("rotor_inertia", "coulomb", "viscous")
    return (*links, *(f"{v}.{drive}" for joint in mechanism.joints for v in joint.velocity_names for drive in drives))


# Parameter changes that do not change any force: Khalil's rules for regrouping inertial parameters.
#
# Inertia of a link that is equivalent to inertia of its parent (``invisible`` of the kind of joint) can be moved to the
# parent. More rules apply near the base, where the motions of links are restricted. Let u be the only direction about
# which a link rotates, and [[Sigma, ms], [ms, m]] the pseudo-inertia of the link in its joint frame:
#
# - If a link never rotates, only its mass is identifiable.
# - If it rotates about u only, J_uu = tr(Sigma) - Sigma_uu and the part of ms normal to u are identifiable.
# - If it slides along u, after rotations about u only, its ms can be moved to its parent.
# - If it rotates about one fixed line, parallel to gravity, its ms is not identifiable.
# - A rotor inertia is equivalent to inertia of its own link about the joint's axis if all previous rotations are about
#   one direction orthogonal to that axis. It is equivalent to mass of the link if there is no previous joint and
#   gravity has no component along the joint.
# - If no previous joint rotates, three equal rotors of a ball joint are equivalent to the inertia of a ball.
# - Rotor inertias and friction of joints that share a coordinate can be added.
#
# See Khalil and Bennis 1995, and Gautier and Khalil 1990 (cited in Khalil 2010, section 2). The rules are valid for
# every robot and complete for usual ones; ``robot.inertial.base`` checks completeness by a numerical rank.

PARALLEL_TOLERANCE = 1e-9  # sine of an angle below which directions are parallel


@dataclass(frozen=True, eq=False)
class _PossibleMotion:
    """The possible motions of a body: the axes of the joints between the base and the body, at zero positions.

    ``turns`` and ``slides`` (3 x any) are the rotation and translation axes of its own joint in base axes, and
    ``..._before`` are those of the joints before it. ``points`` (3 x any) are the origins of the rotating joints on the
    path, and ``pose`` (4 x 4) is the pose of the body.
    """

    pose: Array
    turns_before: Array
    slides_before: Array
    turns: Array
    slides: Array
    points: Array

    @cached_property
    def u(self) -> Array | None:
        """The direction, in base axes, of all rotations of the body, or None if there is none or more than one."""
        return _common(np.column_stack([self.turns_before, self.turns]))


def _common(directions: Array) -> Array | None:
    """Return a unit vector parallel to all directions (3 x any), or None if there is none."""
    lengths = np.linalg.norm(directions, axis=0)
    if not lengths.size:
        return None
    u = np.asarray(directions[:, 0] / lengths[0])
    return u if np.linalg.norm(np.cross(u, (directions / lengths).T)) <= PARALLEL_TOLERANCE else None


def _along(u: Array, vectors: Array) -> bool:
    """Return whether all vectors (3 x any) are parallel to u, or zero."""
    across = np.linalg.norm(np.cross(u, vectors.T), axis=-1)
    return bool((across <= PARALLEL_TOLERANCE * np.maximum(np.linalg.norm(vectors, axis=0), 1e-3)).all())


class _Row:
    """Parameter changes (p,): of the inertia of a link, or of the rotor inertia and friction of a joint."""

    def __init__(self, tree: Tree):
        self.tree = tree
        self.starts = np.cumsum([10 * len(tree.bodies), *(3 * body.joint.nv for body in tree.bodies)])

    def link(self, i: int, P: Array) -> Array:
        """Return the change (p,) of a body's pseudo-inertia by P (4 x 4), in the body's axes."""
        row = np.zeros(self.starts[-1])
        row[10 * i : 10 * i + 10] = inertial(move_pseudo_inertia(inverse_pose(self.tree.bodies[i].link), P))
        return row

    def drive(self, i: int, k: int, what: int = 0) -> Array:
        """Return a unit change (p,) of rotor inertia (0), Coulomb friction (1) or viscous friction (2)."""
        row = np.zeros(self.starts[-1])
        row[self.starts[i] + 3 * k + what] = 1.0
        return row


def regroupings(tree: Tree) -> Array:
    """Return parameter changes (r x p) that do not change any force, in the order of ``parameters``."""
    bent = next((body.joint.name for body in tree.bodies if body.joint.flexible is not None), None)
    if bent is not None:
        message = f"the regrouping rules are for rigid links, but joint {bent!r} is flexible"
        raise ModelError(message, value=bent, fix=f"fix it first: robot.fix({bent!r}, 0)")
    row, motions = _Row(tree), _possible_motions(tree)
    result = [row.link(i, P) for i, motion in enumerate(motions) for P in _without_effect(motion, tree.gravity)]
    result += _moves_to_parents(tree, row, motions)
    result += _rotors(tree, row, motions)
    result += _of_one_coordinate(tree, row)
    return np.array(result).reshape(len(result), row.starts[-1])


def _possible_motions(tree: Tree) -> list[_PossibleMotion]:
    """Return the possible motions of each body, root to tips."""
    motions: list[_PossibleMotion] = []
    none = np.zeros((3, 0))
    for body in tree.bodies:
        kind, pitch = body.joint.kind, body.joint.pitch
        S = np.array(kind.subspace(kind.neutral, pitch), dtype=float)
        before = motions[body.parent] if body.parent >= 0 else _PossibleMotion(np.eye(4), none, none, none, none, none)
        pose = before.pose @ body.T
        turns, slides = (pose[:3, :3] @ part[:, part.any(axis=0)] for part in (S[:3], S[3:]))
        turns_before = np.column_stack([before.turns_before, before.turns])
        slides_before = np.column_stack([before.slides_before, before.slides])
        points = np.column_stack([before.points, *([pose[:3, 3]] if turns.size else [])])
        motions.append(_PossibleMotion(pose, turns_before, slides_before, turns, slides, points))
    return motions


def _second(R: Array, Sigma: Array) -> Array:
    """Return the pseudo-inertia with the second moments Sigma (3 x 3) in the axes given by the columns of R."""
    P = np.zeros((4, 4))
    P[:3, :3] = R @ Sigma @ R.T
    return P


def _first(ms: Array) -> Array:
    P = np.zeros((4, 4))
    P[:3, 3] = P[3, :3] = ms
    return P


def _without_effect(motion: _PossibleMotion, gravity: Array) -> Iterator[Array]:
    """Yield the changes of a body's pseudo-inertia, in its own axes, that have no effect on any force."""
    if not motion.turns_before.size and not motion.turns.size:
        yield from (P for P in parameter_basis() if P[3, 3] == 0)  # all but the mass
        return
    u = motion.u
    if u is None:
        return
    R = axis_frame(motion.pose[:3, :3].T @ u)  # third axis: u in the body's axes
    for i, j in ((2, 2), (0, 2), (1, 2), (0, 1)):
        Sigma = np.zeros((3, 3))
        Sigma[i, j] = Sigma[j, i] = 1.0
        yield _second(R, Sigma)
    yield _second(R, np.diag([1.0, -1.0, 0.0]))
    yield _first(R[:, 2])
    places = motion.points - motion.pose[:3, 3:]
    still = _along(u, np.column_stack([motion.slides_before, motion.slides, places]))
    if motion.turns.size and still and _along(u, gravity[:, None]):
        yield _first(R[:, 0])
        yield _first(R[:, 1])


def _moves_to_parents(tree: Tree, row: _Row, motions: list[_PossibleMotion]) -> list[Array]:
    """Return the changes that move inertia between a link and its parent."""
    result = []
    for i, (body, motion) in enumerate(zip(tree.bodies, motions, strict=True)):
        parts = [body.joint.kind.invisible(P) for P in parameter_basis()]
        if motion.u is not None and not motion.turns.size and _along(motion.u, motion.slides):
            R = axis_frame(motion.pose[:3, :3].T @ motion.u)
            parts += [_first(R[:, 0]), _first(R[:, 1])]
        for P in parts:
            if P.any():
                on_parent = row.link(body.parent, move_pseudo_inertia(body.T, P)) if body.parent >= 0 else 0.0
                result.append(row.link(i, P) - on_parent)
    return result


def _rotors(tree: Tree, row: _Row, motions: list[_PossibleMotion]) -> list[Array]:
    """Return the changes that move inertia between a rotor and the joint's own link."""
    result = []
    for i, (body, motion) in enumerate(zip(tree.bodies, motions, strict=True)):
        S = np.array(body.joint.kind.subspace(body.joint.kind.neutral, body.joint.pitch), dtype=float)
        if motion.turns.shape[1] > 1:  # several rotors are equivalent to a body only if there are three equal ones
            if not motion.turns_before.size:
                rotors = sum(row.drive(i, int(k)) for k in np.flatnonzero(S[:3].any(axis=0)))
                result.append(row.link(i, _second(np.eye(3), np.eye(3) / 2)) - rotors)
            continue
        before = _common(motion.turns_before)
        orthogonal = before is not None and np.abs(before @ motion.turns).max(initial=0) < 1e-9
        apart = not motion.turns_before.size or orthogonal
        for k in np.flatnonzero(S[:3].any(axis=0)) if apart else ():
            J = np.outer(S[:3, k], S[:3, k])
            result.append(row.link(i, _second(np.eye(3), second_moment(J))) - row.drive(i, int(k)))
        pull, weight = np.abs(tree.gravity @ motion.slides).max(initial=0.0), np.linalg.norm(tree.gravity)
        if body.parent < 0 and not pull > PARALLEL_TOLERANCE * weight:
            mass = parameter_basis()[0]
            result.append(row.link(i, mass) - sum(S[3:, k] @ S[3:, k] * row.drive(i, k) for k in range(S.shape[1])))
    return result


def _of_one_coordinate(tree: Tree, row: _Row) -> list[Array]:
    """Return the changes that move rotor inertia and friction from following joints to those that they follow."""
    leaders = {body.v.start: i for i, body in reversed(list(enumerate(tree.bodies)))}
    result = []
    for i, body in enumerate(tree.bodies):
        first = leaders[body.v.start]
        leader = tree.bodies[first].joint
        if first == i:
            continue
        ratio = abs(body.joint.ratio / leader.ratio)
        same = abs(leader.smooth * ratio - body.joint.smooth) <= 1e-12 * body.joint.smooth
        for what, value in ((0, ratio**2), (2, ratio**2), *([(1, ratio)] if same else [])):
            result.append(row.drive(i, 0, what) - value * row.drive(first, 0, what))
    return result

"""The motion in a step without hard contact: rigid bodies of order 2, with springs, friction and drives implicit.

A force F that resists the motion of one coordinate (a spring, a damper, friction, a joint stop, a drive) is linearised
in the velocity at the end of the step, with K = -dF/dq and D = -dF/dv:

    F(end) = u - z a,    u = F + X (F_ahead - F),    z = h D + X h^2 K

F_ahead is the force at (t + h, q + h v, v). The impedance z is added to the mass matrix (in the articulated-body
recursion to the inertia of the joint), and u acts as a given force, so that no iterations are needed. The number X is
0 where the damping D suffices for stability (from 2 h K on) and 1 where it does not (up to h K), and linear in
between. X = 0 leaves a spring undamped: F(end) is the force at the start position and the end velocity. X = 1 is the
implicit Euler method. Springs, dampers and friction never increase the energy if M is constant, for any K, D and h:

    E(end) - E(start) = -h v*^T (z/h - h K/2) v* - w^T M w / 2,        z/h >= h K

All other forces f are explicit. With the acceleration a(t, q, v) that solves

    (M(q) + z) a = f(t, q, v) + u - C v - g

and local coordinates about q (``chart``), the step is

    t_m = t + h/2,  q_m = q + h/2 v,  v_m = v + h/2 a(t_m, q_m, v),  w = h a(t_m, q_m, v_m)
    v* = v + w,     q* = q + h (v + w/2)

but q* = q + h v* for coordinates with a stiffness K. It is of order 1 with implicit forces. Without them, it is the
Störmer-Verlet method with velocity products at a predicted velocity, which is of order 2 and symplectic where forces do
not depend on velocities.

Saturation is exact. A drive with the limit L either applies exactly L or -L and has no impedance, or applies u - z a.
It is saturated where |u| > L. Without hard contact, this is decided again with the first of the two accelerations: a
saturated drive is released unless u - z a is still beyond the same limit, and another drive is saturated if
|u - z a| > L. A drive exceeds L only if other loads change which drives are saturated, and only for one step.

Coulomb friction Fs tanh(v / s) is a drive with the limit Fs, and D is the slope of its chord from rest: it stops a
joint but never reverses it. Without s, s is 1e-6 rad/s or m/s; in friction models, on coordinates
that springs couple, and before contact impulses, such friction is explicit. Springs of elastic joints and flexible
links, which act on several coordinates, have X = 1.

With closed loops, a also satisfies A a = -A' v, and the part of w that the positions of stiff coordinates follow beyond
w/2 is projected onto A v = 0, so that loops open only by the error of the step.

The linear velocity of a free body is in its own axes. It is added in the axes at the start and rotated afterwards, so
that a spinning body keeps its momentum to rounding.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.dynamics import Body, Tree, tree_of
from torsor.dynamics.loops.constrained import ClosedMass, ClosureChoice, closed_forward_dynamics, closed_velocities
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.elimination import Stiffness, on_body
from torsor.dynamics.recursions.hybrid import forward_dynamics
from torsor.dynamics.recursions.kinematics import Move, moves, world_poses
from torsor.dynamics.recursions.newton_euler import bias_force, inverse_dynamics
from torsor.dynamics.recursions.passive import acts, passive_force, passive_jacobians
from torsor.dynamics.trees.tree import Passive
from torsor.mechanism.free import Free
from torsor.mechanism.mechanism import places_in_q
from torsor.robot.robot import Robot
from torsor.simulation.compliant import ImplicitContact, Slopes
from torsor.simulation.contact import Contact
from torsor.simulation.dynamics import acted, step_inputs, symbols
from torsor.spatial import cross

# rad/s or m/s: the slip speed of Coulomb friction without one, a regularisation that sticking joints do not show.
REST = 1e-6
# Largest closure error after a step, relative to the size of the mechanism: strong impacts and stiff drives move loops
# further than its corrections reach, and the next steps close them.
OPEN = {"float64": 1e-6, "float32": 1e-4}
# Divisor in the place of a stiffness of 0.
TINY = 1e-30


class FreeMotion(NamedTuple):
    """A step without contact: ``inputs`` by name, and the positions in its ``middle``.

    v is the velocity at the start. It and its ``change`` are in the axes that free bodies have in the middle. Positions
    follow the velocity in the middle of the step or, where ``stiff`` is 1, at its end: the mean velocity in the step is
    v + (change + ``followed``) / 2. The ``impedance`` is added to the mass matrix. With loops, M is that sum, including
    implicit contact.
    """

    inputs: dict[str, ca.SX]
    middle: ca.SX
    v: ca.SX
    change: ca.SX
    followed: ca.SX
    impedance: Stiffness
    stiff: dict[int, ca.SX]
    M: ca.SX | None


class Limited(NamedTuple):
    """A force u - z a of a coordinate with the limit L."""

    u: ca.SX
    z: ca.SX
    L: float | ca.SX

    def saturated(self, a: ca.SX | None) -> tuple[ca.SX, ca.SX]:
        """Return the force and the impedance, saturated where |u| > L; given a, where |u - z a| > L."""
        side, is_saturated = ca.if_else(self.u > 0, 1, -1), ca.fabs(self.u) > self.L
        if a is not None:
            end = self.u - self.z * a
            still = ca.if_else(is_saturated, side * end > self.L, ca.fabs(end) > self.L)
            side, is_saturated = ca.if_else(is_saturated, side, ca.sign(end)), still
        return ca.if_else(is_saturated, side * self.L, self.u), ca.if_else(is_saturated, 0, self.z)


class Implicit(NamedTuple):
    """Implicit forces: u (nv x 1) and its impedance, without the ``limited`` forces (coordinate, force).

    ``rows`` are the coordinates on which acting forces are implicit, and ``stiff`` those with a stiffness.
    """

    force: ca.SX
    impedance: Stiffness
    limited: list[tuple[int, Limited]]
    rows: list[int]
    stiff: dict[int, ca.SX]

    def saturated(self, a: ca.SX | None = None) -> tuple[ca.SX, Stiffness]:
        """Return the forces (nv x 1) and the impedance of all, given the first accelerations a or None."""
        force, impedance = ca.SX(self.force), dict(self.impedance)
        for k, drive in self.limited:
            tau, z = drive.saturated(None if a is None else a[k])
            force[k] += tau
            impedance[k, k] = impedance.get((k, k), ca.SX(0)) + z
        return force, impedance


def free_motion(
    robot: Robot,
    acting: ca.Function,
    contact: Contact | None = None,
    choice: ClosureChoice | None = None,
    free: tuple[Free, ...] = (),
) -> FreeMotion:
    """Return a step of length h without hard contact, as expressions of t, q, v, [tau], [external], [p] and h.

    If ``contact`` is hard, impulses follow: the accelerations of this step then do not tell which drives saturate.
    Compliant contact is implicit (``ImplicitContact``). ``choice`` are the equations that keep loops closed, if there
    are any; the end of the step is not projected. p are the ``free`` parameters of the robot.
    """
    is_contact = contact is not None and contact.kind == "hard"
    inputs = step_inputs(acting)
    t, q, v, *held, h = inputs.values()
    tree = tree_of(robot, free, inputs.get("p"), is_lean=False)
    explicit, passives = _separated(tree, is_contact)
    implicit = implicit_forces(robot, passives, acting, inputs)
    first_force, first_impedance = implicit.saturated()
    middle = robot.function("chart")(q, h / 2 * v)
    v_start = turned(tree, q, middle, v)
    touch = None
    if contact is not None and not is_contact:
        touch = ImplicitContact(robot, contact, contact.parameters_in(inputs), middle, v_start, h)
    touched = [] if touch is None else touch.bodies
    own, numbers = tree_of(robot, free, inputs.get("p")), [inputs["p"]] if free else []
    own = replace(own, passives=explicit)
    dynamics, closed = _dynamics(own, numbers, acting, first_impedance, touched, choice, is_contact)

    def accelerated(v: ca.SX, force: ca.SX, impedance: Stiffness, slopes: list[Slopes]) -> tuple[ca.SX, list[ca.SX]]:
        """Return accelerations at the midpoint (of free bodies: those of their origins), and the impedances."""
        tau, *external = acted(acting, [t + h / 2, middle, v, *held])
        for k in implicit.rows:
            tau[k] = 0
        drift, impedances = _in_space(tree, v, ca.SX(robot.nv, 1)), list(impedance.values())
        if touch is not None:
            load = touch.load(slopes, h * drift)
            external, impedances = [sum(external, start=load.wrenches)], [*impedances, *load.impedances]
        return drift + dynamics(middle, v, tau + force, *external, *impedances, *numbers), impedances

    slopes = [] if touch is None else touch.first()
    a, _ = accelerated(v_start, first_force, first_impedance, slopes)
    force, impedance = implicit.saturated(None if is_contact else a)
    slopes = [] if touch is None else touch.second(v_start + h * a, slopes)
    a, impedances = accelerated(v_start + h / 2 * a, force, impedance, slopes)
    change = h * a
    stiff = dict(implicit.stiff)
    if slopes:
        touching = ca.if_else(ca.mmax(ca.vertcat(*(each.c for each in slopes))) > 0, 1, 0)
        stiff = {k: ca.fmax(stiff.get(k, ca.SX(0)), touching) for k in range(robot.nv)}
    followed, M = among(stiff, change), None
    if closed is not None:  # so that loops stay closed
        nearest, M = closed(middle, followed, *impedances, *numbers)
        followed = nearest if stiff else followed
    return FreeMotion(inputs, middle, v_start, change, followed, impedance, stiff, M)


def ended(robot: Robot, motion: FreeMotion, change: ca.SX, mean: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the end (q, v) of a step in which v changes by ``change``, and on average by ``mean``, in middle axes."""
    tree, (q, v, h) = Tree.of(robot), (motion.inputs[name] for name in ("q", "v", "h"))
    change, mean = (turned(tree, motion.middle, q, each) for each in (change, mean))
    mean += v
    end = robot.function("chart")(q, h * robot.function("chart_rate")(h / 2 * v, mean))
    for body in free_bodies(tree):
        origin = slice(body.q.start, body.q.start + 3)
        end[origin] = q[origin] + h * (_axes(body, q) @ mean[_linear(body)])
    return end, turned(tree, q, end, v + change)


def among(stiff: dict[int, ca.SX], change: ca.SX) -> ca.SX:
    """Return a change of v (nv x 1) of the ``stiff`` coordinates, and 0 for others."""
    part = ca.SX(*change.shape)
    for k, share in stiff.items():
        part[k] = share * change[k]
    return part


def _separated(tree: Tree, is_contact: bool) -> tuple[tuple[Passive, ...], tuple[Passive, ...]]:
    """Return the explicit and the implicit passive forces of the tree.

    Friction that jumps at rest is implicit only where the first acceleration shows whether its coordinate sticks: not
    in friction models, not on coordinates that springs couple, and not if contact impulses follow.
    """
    coupled = {k for each in tree.passives if len(each.v) > 1 for k in each.v}
    explicit, implicit = list[Passive](), list[Passive]()
    for each in tree.passives:
        slides = not each.smooth and (is_contact or not coupled.isdisjoint(each.v))
        model, coulomb = "" if each.smooth else each.model, each.coulomb if slides else 0.0
        if model or acts(coulomb):
            explicit.append(replace(each, stiffness=0.0, damping=0.0, coulomb=coulomb, model=model))
        coulomb, model = 0.0 if slides else each.coulomb, each.model if each.smooth else ""
        implicit.append(replace(each, smooth=each.smooth or REST, coulomb=coulomb, model=model))
    return tuple(explicit), tuple(implicit)


def _dynamics(
    tree: Tree,
    numbers: list[ca.SX],
    acting: ca.Function,
    impedance: Stiffness,
    touched: Sequence[tuple[int, ...]],
    choice: ClosureChoice | None,
    is_contact: bool = False,
) -> tuple[ca.Function, ca.Function | None]:
    """Return the function (q, v, tau, [external], impedance..., [p]) -> a; with loops (q, v, impedance..., [p]) -> v.

    The latter also returns the mass matrix, including the impedances, which are those of coordinates, and those of the
    ``touched`` links and pairs of links. ``numbers`` are the symbols p, if any.
    """
    q, v, tau = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv), ca.SX.sym("tau", tree.nv)
    has_load = bool(touched) or "acting_external" in acting.name_out()
    external = [ca.SX.sym("external", len(tree.bodies), 6)] if has_load else []
    load, added = external[0] if external else None, {place: ca.SX.sym("impedance") for place in impedance}
    on_bodies = {bodies: ca.SX.sym("on_bodies", 6, 6) for bodies in touched}
    impedances = [*added.values(), *on_bodies.values(), *numbers]
    inputs = [q, v, tau, *external, *impedances]
    # The recursion has a place for the impedances of links, but not for those that couple two links.
    alone = {} if choice is not None else {bodies: Z for bodies, Z in on_bodies.items() if len(bodies) == 1}
    on_links = {link: Z for (link,), Z in alone.items()}
    added = _spread(tree, q, {bodies: Z for bodies, Z in on_bodies.items() if bodies not in alone}, added)
    if choice is None and is_contact:
        mass = ClosedMass(mass_matrix(tree, q, added), ca.SX(0, tree.nv))  # whose factors contact takes again
        force = tau - inverse_dynamics(tree, q, v, ca.SX.zeros(tree.nv, 1), load)
        return ca.Function("accelerated", inputs, [mass.solve(force)]), None
    if choice is None:
        return ca.Function("accelerated", inputs, [forward_dynamics(tree, q, v, tau, load, added, on_links)]), None
    a = closed_forward_dynamics(tree, q, v, tau, choice, load, added=added)
    nearest, M = closed_velocities(tree, q, v, choice, added=added), mass_matrix(tree, q, added)
    return ca.Function("accelerated", inputs, [a]), ca.Function("closed", [q, v, *impedances], [nearest, M])


def _spread(tree: Tree, q: ca.SX, on_bodies: dict[tuple[int, ...], ca.SX], added: Stiffness) -> Stiffness:
    """Return the impedance of coordinates, including the sum of J^T Z J of links and pairs of links."""
    moved, v, total = moves(tree, q), ca.SX.sym("v", tree.nv), dict(added)
    poses = world_poses(tree, moved)
    for bodies, Z in on_bodies.items():
        J = ca.jacobian(_relative_twist(tree, moved, poses, bodies, v), v)
        whole = J.T @ on_body(tree.bodies[bodies[-1]], Z) @ J
        for i, j in zip(*ca.triu(whole).sparsity().get_triplet(), strict=True):
            total[i, j] = total.get((i, j), ca.SX(0)) + whole[i, j]
    return total


def _relative_twist(
    tree: Tree, moved: list[Move], poses: list[tuple[ca.SX, ca.SX]], bodies: Sequence[int], v: ca.SX
) -> ca.SX:
    """Return the twist of the last of ``bodies`` in its axes, relative to the first if there are two.

    Joints that move both do not appear in it.
    """
    chains = list[list[int]]()
    for j in bodies:
        chains.append([])
        while j >= 0:
            chains[-1].insert(0, j)
            j = tree.bodies[j].parent
    common = set(chains[0]).intersection(*chains[1:]) if len(chains) > 1 else set[int]()
    found = []
    for chain in chains:
        twist = ca.SX.zeros(6, 1)
        for j in chain:
            if j not in common:
                twist = moved[j].down_twist(twist) + moved[j].S @ tree.bodies[j].rate(v)
        found.append(twist)
    if len(found) == 1:
        return found[0]
    (R_first, p_first), (R, p) = (poses[j] for j in bodies)
    omega, linear = R_first @ found[0][:3], R_first @ found[0][3:]
    return found[1] - ca.vertcat(R.T @ omega, R.T @ (linear + cross(omega, p - p_first)))


def implicit_forces(
    robot: Robot, passives: tuple[Passive, ...], acting: ca.Function, inputs: dict[str, ca.SX]
) -> Implicit:
    """Return the implicit forces of a step as expressions of its ``inputs``.

    They are the ``passives`` (springs, dampers and friction), and the acting forces on coordinates that depend on the
    position and the velocity of their coordinate alone.
    """
    t, q, v, *held, h = inputs.values()
    tree, own = Tree.of(robot), places_in_q(robot.joints, robot.coordinates)
    ahead = ca.SX(q)
    for k, i in own.items():
        ahead[i] += h * v[k]
    coupled = {k for each in passives if len(each.v) > 1 for k in each.v}
    several = replace(tree, passives=tuple(each for each in passives if coupled & set(each.v)))
    impedance = {place: h * D + h**2 * K for place, (K, D) in passive_jacobians(several, ahead, v, chord=True).items()}
    result = Implicit(
        -passive_force(several, ahead, v), impedance, [], _separate(acting, own), dict.fromkeys(coupled, ca.SX(1))
    )

    def add(k: int, forces: tuple[ca.SX, ca.SX], K: ca.SX, D: ca.SX, limit: Any = np.inf) -> None:
        """Add a force (now, ahead) to coordinate k."""
        u, z = forces[1], h * D
        if not K.is_zero():
            more = ca.fmin(h * K, ca.fmax(2 * h * K - D, 0))
            u, z = forces[0] + more / ca.fmax(h * K, TINY) * (forces[1] - forces[0]), z + h * more
            result.stiff[k] = ca.fmax(result.stiff.get(k, ca.SX(0)), ca.if_else(K > 0, 1, 0))
        if isinstance(limit, ca.SX) or np.isfinite(limit):
            result.limited.append((k, Limited(u, z, limit)))
            return
        result.force[k] += u
        if not z.is_zero():
            result.impedance[k, k] = result.impedance.get((k, k), ca.SX(0)) + z

    for k in {k for each in passives for k in each.v} - coupled:
        group = [each for each in passives if each.v == (k,)]
        rubbing = dict[tuple[float, float], Passive]()
        for each in group:
            if acts(each.coulomb):  # a parameter p adds a second friction, which may be negative
                kind = each.c[0], each.smooth
                coulomb = each.coulomb + (rubbing[kind].coulomb if kind in rubbing else 0.0)
                rubbing[kind] = replace(each, stiffness=0.0, damping=0.0, model="", coulomb=coulomb)
        parts: list[tuple[Any, Any]] = [(tuple(replace(each, coulomb=0.0) for each in group), np.inf)]
        for those, limit in parts + [((each,), abs(c) * each.coulomb) for (c, _), each in rubbing.items()]:
            alone = replace(tree, passives=those)
            forces = -passive_force(alone, q, v)[k], -passive_force(alone, ahead, v)[k]
            K, D = passive_jacobians(alone, ahead, v, chord=True)[k, k]
            add(k, forces, _resisting(K), _resisting(D), limit)
    limits = dict(zip(acting.name_out(), acting.call([t, q, v, *held]), strict=True)).get("limit")
    names = ["acting_tau"] if limits is None else ["drive_tau", "added_tau"]
    for name in names if result.rows else ():
        law = _slopes(acting, name, result.rows, own)
        now, _, _ = law.call([t, q, v, *held])
        then, K, D = law.call([t + h, ahead, v, *held])
        for k in result.rows:
            limit = float(limits[k]) if limits is not None and name == "drive_tau" else np.inf
            add(k, (now[k], then[k]), K[k], D[k], limit)
    return result


def _slopes(acting: ca.Function, name: str, rows: list[int], own: dict[int, int]) -> ca.Function:
    """Return an acting force with K and D (nv x 1 each) as a function; the force is separate in the ``rows``."""
    inputs = symbols(acting)
    tau = acting.call(inputs)[acting.index_out(name)]
    by_q, by_v = ca.SX.zeros(inputs[1].numel(), 1), ca.SX.zeros(inputs[2].numel(), 1)
    for k in rows:
        by_v[k] = 1
        if k in own:
            by_q[own[k]] = 1
    K, D = (-ca.densify(ca.jtimes(tau, x, seed)) for x, seed in zip(inputs[1:3], (by_q, by_v), strict=True))
    slopes = [ca.vertcat(*map(_resisting, ca.vertsplit(each))) for each in (K, D)]
    return ca.Function("law", inputs, [tau, *slopes])


def _separate(acting: ca.Function, own: dict[int, int]) -> list[int]:
    """Return the coordinates on which the acting force depends only on their own position and velocity."""
    seen: list[set[tuple[int, int]]] = [set() for _ in range(acting.size1_out(0))]
    for k in (1, 2):
        rows, columns = acting.jac_sparsity(0, k).get_triplet()
        for row, column in zip(rows, columns, strict=True):
            seen[row].add((k, column))
    return [k for k, found in enumerate(seen) if found and found <= {(1, own.get(k, -1)), (2, k)}]


def _resisting(slope: ca.SX) -> ca.SX:
    """Return a slope, or 0 where it is negative: such a force drives the motion, and is explicit."""
    slope = ca.SX(slope)
    return slope if slope.is_constant() and float(slope) >= 0 else ca.fmax(slope, 0)


def free_bodies(tree: Tree) -> list[Body]:
    """Return the bodies on free joints."""
    return [body for body in tree.bodies if body.joint.type == "free"]


def turned(tree: Tree, start: ca.SX, end: ca.SX, v: ca.SX) -> ca.SX:
    """Return velocities v at the positions ``start`` with linear velocities of free bodies in their axes at ``end``."""
    v = ca.SX(v)
    for body in free_bodies(tree):
        v[_linear(body)] = _axes(body, end).T @ (_axes(body, start) @ v[_linear(body)])
    return v


def _in_space(tree: Tree, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return accelerations in which free bodies have the acceleration of their origin, not component rates."""
    a = ca.SX(a)
    for body in free_bodies(tree):
        a[_linear(body)] += cross(v[body.v.start : body.v.start + 3], v[_linear(body)])
    return a


def change_of_products(tree: Tree, q: ca.SX, M: ca.SX, v: ca.SX, e: ca.SX) -> ca.SX:
    """Return the derivative along e of the velocity products c(v), in which free bodies have that of their origin.

    As c is quadratic, this is h times its change from v - e / (2 h) to v + e / (2 h).
    """
    rates = ca.SX.sym("v", tree.nv)
    products = bias_force(replace(tree, passives=(), gravity=np.zeros(3)), q, rates)
    products -= M @ _in_space(tree, rates, ca.SX(tree.nv, 1))
    return ca.substitute(ca.jtimes(products, rates, e), rates, v)


def _linear(body: Body) -> slice:
    return slice(body.v.start + 3, body.v.start + 6)


def _axes(body: Body, q: ca.SX) -> ca.SX:
    """Return the rotation matrix of a free body."""
    return ca.SX(body.joint.kind.transform(body.position(q), body.joint.pitch)[0])

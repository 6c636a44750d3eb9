"""Hard contact: a velocity-impulse step with the Coulomb cone, solved by projected Gauss-Seidel in one kernel.

A step of length h without contact (``free_motion``) goes from (q, v) to (q*, v*), with v* = v + w. Impulses p are
added. They are computed in the middle of the step, at q + h/2 v, from the mass matrix M (with the impedance of implicit
forces), the distances between shapes, and the velocities u = J v of the contact points (3 each: normal n and two
tangents):

    v+ = v* + M^-1 J^T p
    0 <= p_n   complementary to   u_n+ + p_n / (h k (l + r)) + d >= 0,          d = x / (l + r), or x / l if x > 0
    |p_t| <= mu p_n,   p_t opposes u_t+ where they are equal, and u_t+ = 0 inside the cone

(Stewart and Trinkle 1996). x + l u_n+ is the distance at the end. The normal constraint is relaxed by a spring k with
damping k r, both evaluated at the end of the step, so that any stiffness is stable: a weight F rests at the depth
F / k, and penetration decays with the time constant r. Friction is not relaxed, so sticking bodies do not creep. The
positions follow the impulses of impacts, and those of forces by half:

    q+ = q* + h M^-1 J^T (p - p_h / 2),    p_h = p_w + s (p - p_w),    J w + G p_w = 0 where shapes touch
    l = h (1 - s/2),    x = distance - (1 - s) h/2 u_n

p_w are the impulses that hold touching shapes against w. s is 1 if no touching point approaches, and falls to 0 at an
approach velocity as large as the change due to w. With a relaxation r < h/2, s is at most 2 r / h, because normal
impulses would oscillate otherwise. (Stiff coordinates of ``free_motion`` follow all impulses.) Impacts thus cause no
penetration, resting bodies do not move, and sliding, rolling and tipping are of order 2.

If impulses displace the positions by e = q+ - q*, the mean velocity in the step changes by e / h, and with it the
velocity products c(v): v+ also changes by -M^-1 c'(v) e, so that the energy errors of moving contact points are of
order h^2. Impulses dissipate the energy p^T G p / 2, in addition to the energy lost to friction and springs;
docs/simulate/contact.md states the size of the errors.

With the restitution e, points rebound by Poisson's hypothesis (Anitescu and Potra 1997). A point that starts at the
distance x_0 > 0 and would be at the depth x_1 > 0 at q* touches after the part 1 - b of the step; b is
x_1 / (x_0 + x_1), or 1 if it already touches at the start. Its velocity is then u_c = u* - b J w (of stiff coordinates:
u*). A first solution, with u_c in place of u* and no springs, gives the impulses p_0 that stop the points. A second one
has the condition (1 + e) p_0n <= p_n in place of 0 <= p_n. The impulses (1 + e) p_0 dissipate the energy
(1 - e^2) p_0^T G p_0 / 2 or more, and friction under the normal impulses (1 + e) p_0n minimises the energy, so that
impacts of any number of points do not increase it. Points whose rebound -e u_cn would be slower than 2 |J w|_n have
u_cn >= 0 in the first solution, so that bodies come to rest. The positions follow only the part b of the impulses of a
rebound, so that heights have errors of order 2, or a larger part if a point would penetrate otherwise.

With closed loops, M^-1 is replaced by the inverse for velocities with A v = 0 (``ClosedMass``), where A = dphi/dq for
independent closure equations phi(q) = 0, so that impulses keep the loops closed. Two Newton corrections of the
positions and two of the velocities remove the remaining errors (``projected_end``).

The impulses (``impulses``) are computed from a first guess and by sweeps, with the matrix G = J M^-1 J^T
(``Mobility``). The first guess is the impulse with which every touching point sticks, which takes one factorisation of
G. The distribution of the tangential load among several points of one body is not unique. The guess is therefore
repeated with shares in proportion to the normal impulses, and without points that pull, so that all points are equally
far from their cones. Otherwise, points with little weight would slip, sweeps would redistribute their load slowly, and
bodies near tipping would creep. Projected Gauss-Seidel sweeps over the points follow. At each point, the normal impulse
is updated, then the tangential impulse: to the one with which the point sticks if it is in the disc mu p_n, and
otherwise by a step of 1 over the larger eigenvalue of its block of G, projected onto the disc. Every subproblem is
convex, and the method is a fixed sequence of operations, for batches and for single motions.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca

from torsor.base.errors import ModelError
from torsor.dynamics import tree_of
from torsor.dynamics.loops.closure import Closures
from torsor.dynamics.loops.constrained import ClosedMass, ClosureChoice
from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.kinematics import symmetric
from torsor.mechanism.free import Free
from torsor.robot.robot import Robot
from torsor.simulation.contact import IMPLICIT, Contact, ContactState
from torsor.simulation.dynamics import step_function
from torsor.simulation.free_motion import OPEN, FreeMotion, among, change_of_products, ended, free_motion
from torsor.simulation.inputs import Prescribed
from torsor.simulation.methods import STEPS, linearly_implicit
from torsor.simulation.selection import chosen_points, tangents

# The mobility of the contact points, G = J M^-1 J^T, in the form that takes fewer operations.


class Mobility:
    """The mobility G = J M^-1 J^T = ``read`` ``write``, which maps impulses to changes of the velocities u = J v.

    M^-1 is that of a ``ClosedMass``, which keeps loops closed.

    If J has few rows, ``write`` is G, ``read`` is 1, and the state of the points is u. Otherwise, ``write`` is
    M^-1 J^T, ``read`` is J, and the state is v, which is shorter and makes factorisations smaller.
    """

    def __init__(self, mass: ClosedMass, J: ca.SX):
        self._mass, self.J = mass, J
        filled = Counter(J.sparsity().get_triplet()[0]).values()
        # The products in the factorisations of ``sticking``.
        self.is_wide = sum(n * (n + 1) / 2 for n in filled) + J.size2() ** 3 / 6 < J.size1() ** 3 / 6
        if self.is_wide:
            self.read, self.write = J, mass.solve(ca.densify(J.T))
            return
        self._Z = mass.restricted(mass.forth(J.T))
        self.read, self.write = ca.SX.eye(J.size1()), symmetric(self._Z.T @ (ca.diag(mass.r) @ self._Z))

    def kicks(self, p: ca.SX) -> ca.SX:
        """Return the velocities M^-1 J^T p (nv x k) due to impulses p (3 K x k)."""
        return self.write @ p if self.is_wide else self._mass.spread(self._Z @ p)

    def block(self, n: int) -> ca.SX:
        """Return the block (3 x 3) of G for the point whose first row is n."""
        return self.read[n : n + 3, :] @ self.write[:, n : n + 3]

    def sticking(self, added: ca.SX) -> Callable[[ca.SX], ca.SX]:
        """Return a solver of (G + D) x = right with diagonal D; it factorises G + D or M + J^T D^-1 J (Woodbury)."""
        J, inverse = self.J, 1 / added
        if not self.is_wide:
            return Squares(ca.densify(symmetric(self.write + ca.diag(added)))).solve
        mass = ClosedMass(ca.densify(symmetric(self._mass.M + J.T @ (ca.diag(inverse) @ J))), self._mass.A)
        return lambda right: inverse * (right - J @ mass.solve(J.T @ (inverse * right)))


# The impulses of hard contact in the Coulomb cone, by one factorisation and projected Gauss-Seidel sweeps.

# Regularisation of G in the first guess, relative to its diagonal: the impulses of many points may not be unique.
_REGULAR = 1e-6
# Compliance of points that do not touch in the first guess, relative to the diagonal of G.
_AWAY = 1e9
# Rounds that distribute tangential impulses in proportion to the normal impulses and release points that pull; a box
# on one edge needs all of them.
ROUNDS = 3
# Smallest share of a point in the normal impulse, relative to the largest; smaller shares are raised to it.
_LEAST_SHARE = 1e-4
# Points do not rebound at a speed below this multiple of the change of their velocity in the step, so that they rest.
_SLOW = 2.0
# m: points may be this much nearer at the end of a step than without the time of impacts, because of rounding.
_NEARER = 1e-9
# 1/kg: the mobility of a point in a direction in which it cannot move. It also keeps derivatives of square roots finite
# at zero.
_IMMOBILE = 1e-12


Frictions = Sequence[Any] | None  # friction coefficients of the points, or None without friction


class Rebound(NamedTuple):
    """The coefficient of restitution, and the changes ``late`` (3 K x 1) of u that positions follow by half."""

    restitution: Any
    late: ca.SX


def impulses(
    sweeps: int,
    mu: Frictions,
    parameters: Sequence[Any],
    mobility: Mobility,
    start: ca.SX,
    change: ca.SX,
    distance: ca.SX,
    h: ca.SX,
    rounds: int,
    rebound: Rebound | None,
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return the impulses p of a step, the parts that positions follow by half (p_h) and not at all, and a residual.

    Impulses are (3 K x 1), the residual is in m/s, and h is the step length (s). ``start`` and ``change`` (3 K x 1) are
    the velocities of the points and their changes without impulses, normal and two tangents each, and ``distance``
    (K x 1) the distances in the middle of the step. The first guess is repeated ``rounds`` times. ``parameters`` are
    the stiffness and the relaxation of ``Contact``, as symbols or numbers.
    """
    stiffness, relaxation = parameters
    free, count, fall = start + change, distance.numel(), start[::3]
    near = distance + h * (fall / 2 + change[::3]) < 0
    fast = ca.mmax(ca.if_else(near, ca.fmax(-fall, 0), 0)) / (ca.mmax(ca.fabs(change[::3])) + _IMMOBILE)
    steady = ca.fmax(1 - fast, 0) * ca.fmin(2 * relaxation / h, 1)
    if rebound is not None:  # distances at the start, and depths at the end without impulses
        apart = distance - h / 2 * fall
        below = ca.fmax(h / 2 * (rebound.late[::3] - fall) - h * change[::3] - distance, 0)
    distance, later = distance - (1 - steady) * h / 2 * fall, h * (1 - steady / 2)
    spring = stiffness * h * (later + relaxation)
    blocks = [mobility.block(3 * k) for k in range(count)]
    wanted, added = ca.SX(free), ca.SX.zeros(3 * count, 1)
    wanted[::3] += distance / ca.if_else(distance > 0, later, later + relaxation)

    def solved(guess: ca.SX, wanted: ca.SX, soft: ca.SX, least: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the impulses, of which normal ones are at least those of ``least`` (3 K x 1), and the residual."""
        right = wanted + mobility.read @ (mobility.write @ least)
        for _ in range(max(rounds, 1) if least.nnz() else rounds):
            guess = -mobility.sticking(_loaded(blocks, guess[::3], soft, mu, least[::3]))(right)
        p = _swept(sweeps, mobility, blocks, wanted, ca.vertsplit(least + guess), soft, mu, least[::3])
        return p, _residual(mobility, blocks, wanted, p, soft, mu, least[::3])

    touching = distance + later * free[::3] < 0
    stuck = ca.DM([_REGULAR] + 2 * [_AWAY if mu is None else _REGULAR])
    for k in range(count):
        added[3 * k : 3 * k + 3] = ca.if_else(touching[k], stuck, _AWAY) * (ca.diag(blocks[k]) + _IMMOBILE)
    stuck_by = mobility.sticking(added)
    held = -stuck_by(change)
    left = mobility.read @ (mobility.write @ held) + change
    held -= stuck_by(left)  # regularisation must not move resting points
    impact, after, error = ca.SX(3 * count, 1), ca.SX.ones(count, 1), ca.SX(0)
    if rebound is not None:
        after = ca.if_else(apart > 0, below / (ca.fmax(apart, _IMMOBILE) + below), 1)
        hitting = free - _thrice(after) * rebound.late
        slow = -rebound.restitution * hitting[::3] < _SLOW * ca.fabs(change[::3])
        hitting[::3] = ca.if_else(slow, ca.fmax(hitting[::3], 0), hitting[::3]) + ca.if_else(touching, 0, apart / h)
        impact, error = solved(-stuck_by(hitting), hitting, ca.SX(_IMMOBILE), impact)
        impact[::3] *= 1 + rebound.restitution
    added[::3] += 1 / spring
    guess = -mobility.sticking(added)(wanted + mobility.read @ (mobility.write @ impact))
    p, residual = solved(guess, wanted, 1 / spring, impact)
    if rebound is None:
        return p, held + steady * (p - held), ca.SX(3 * count, 1), residual
    normal, least = p[::3], impact[::3]
    part = ca.if_else(normal > 0, least / ca.if_else(normal > 0, normal, 1), 0)
    held *= _thrice(ca.if_else(normal > least, 1, 0))
    return p, held + steady * (p - held), _thrice((1 - after) * part) * p, ca.fmax(residual, error)


def _thrice(numbers: ca.SX) -> ca.SX:
    """Return each number (K x 1) for the three directions of its point (3 K x 1)."""
    return ca.SX(ca.kron(numbers, ca.SX.ones(3, 1)))


def _loaded(blocks: list[ca.SX], more: ca.SX, soft: ca.SX, mu: Frictions, least: ca.SX) -> ca.SX:
    """Return a diagonal that regularises G and distributes tangential impulses in proportion to normal impulses.

    Normal impulses (K x 1) are ``least``, and ``more`` where this is positive.
    """
    normal = least + ca.fmax(more, 0)
    largest, added = ca.mmax(ca.vertcat(normal, _IMMOBILE)), []
    for G, p, above in zip(blocks, ca.vertsplit(normal), ca.vertsplit(more), strict=True):
        side = (G[1, 1] + G[2, 2]) / 2  # equal in both directions, so that shares have the direction of the load
        diagonal = ca.vertcat(G[0, 0], side, side) + _IMMOBILE
        share = ca.fmax(p / largest, _LEAST_SHARE)
        tangential = _AWAY if mu is None else _REGULAR / share
        tangential = ca.if_else(p > 0, tangential, _AWAY)
        stuck = ca.vertcat(ca.if_else(above > 0, _REGULAR, _AWAY), tangential, tangential)
        added.append(stuck * diagonal + ca.vertcat(soft, 0, 0))
    return ca.vertcat(*added)


def _residual(
    mobility: Mobility, blocks: list[ca.SX], wanted: ca.SX, p: ca.SX, soft: ca.SX, mu: Frictions, least: ca.SX
) -> ca.SX:
    """Return the largest velocity error (m/s) of a point, which is the change that another sweep would cause."""
    u, left = mobility.read @ (mobility.write @ p) + wanted, []
    for k, G in enumerate(blocks):
        n = 3 * k
        rate = 1 / (G[0, 0] + soft)
        pushed = ca.fmax(p[n] - rate * (u[n] + soft * p[n]), least[k])
        left.append(ca.fabs(pushed - p[n]) / rate)
        if mu is not None:
            slow = 1 / (G[1, 1] + G[2, 2] + _IMMOBILE)
            x, y = _on_disc(p[n + 1] - slow * u[n + 1], p[n + 2] - slow * u[n + 2], mu[k] * p[n])
            left.append(ca.sqrt((x - p[n + 1]) ** 2 + (y - p[n + 2]) ** 2) / slow)
    return ca.mmax(ca.vertcat(*left))


def _swept(
    sweeps: int,
    mobility: Mobility,
    blocks: list[ca.SX],
    wanted: ca.SX,
    p: list[ca.SX],
    soft: ca.SX,
    mu: Frictions,
    least: ca.SX,
) -> ca.SX:
    """Return the impulses after projected Gauss-Seidel sweeps from p; each impulse updates the points' state."""
    points = range(0, len(p), 3)
    for n in points:
        p[n] = ca.fmax(p[n], least[n // 3])
        p[n + 1 : n + 3] = _on_disc(p[n + 1], p[n + 2], ca.SX(0) if mu is None else mu[n // 3] * p[n])
    read, write = mobility.read, mobility.write
    state = write @ ca.vertcat(*p)
    rates = [1 / (G[0, 0] + soft) for G in blocks]
    # 1 over the larger eigenvalue of the tangential block.
    roots = (ca.sqrt(((G[1, 1] - G[2, 2]) / 2) ** 2 + G[1, 2] ** 2 + _IMMOBILE**2) for G in blocks)
    slower = [1 / ((G[1, 1] + G[2, 2]) / 2 + root) for G, root in zip(blocks, roots, strict=True)]
    inverses = [_inverse(G[1:, 1:] + _IMMOBILE * ca.SX.eye(2)) for G in blocks]
    for _ in range(sweeps):
        for n, rate, slow, inverse in zip(points, rates, slower, inverses, strict=True):
            a, b = n + 1, n + 2
            pushed = ca.fmax(p[n] - rate * (read[n, :] @ state + wanted[n] + soft * p[n]), least[n // 3])
            state, p[n] = state + write[:, n] * (pushed - p[n]), pushed
            if mu is not None:
                radius, u = mu[n // 3] * p[n], read[[a, b], :] @ state + wanted[[a, b]]
                sticking = ca.vertcat(p[a], p[b]) - inverse @ u
                x, y = _on_disc(p[a] - slow * u[0], p[b] - slow * u[1], radius)
                sticks = ca.sumsqr(sticking) <= radius**2
                x, y = ca.if_else(sticks, sticking[0], x), ca.if_else(sticks, sticking[1], y)
                state, p[a], p[b] = state + write[:, a] * (x - p[a]) + write[:, b] * (y - p[b]), x, y
    return ca.vertcat(*p)


def _inverse(B: ca.SX) -> ca.SX:
    """Return the inverse of a matrix (2 x 2)."""
    return ca.vertcat(ca.horzcat(B[1, 1], -B[0, 1]), ca.horzcat(-B[1, 0], B[0, 0])) / (
        B[0, 0] * B[1, 1] - B[0, 1] * B[1, 0]
    )


def _on_disc(x: ca.SX, y: ca.SX, radius: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the point nearest to (x, y) in a disc about the origin."""
    length = ca.sqrt(x**2 + y**2 + _IMMOBILE**2)
    outside = length > radius
    scale = ca.if_else(outside, radius / ca.if_else(outside, length, 1), 1)
    return scale * x, scale * y


def hard_step(
    robot: Robot,
    acting: ca.Function,
    contact: Contact,
    choice: ClosureChoice | None = None,
    free: tuple[Free, ...] = (),
) -> ca.Function:
    """Return step(t, q, v, [tau], [external], [p], h) -> (q, v), one step of length h (s) with hard contact.

    With the closure equations ``choice``, the step closes loops and also returns their margin (``runge_kutta``).
    """
    motion, kick, shift, _, _ = _solved(robot, acting, contact, choice, free)
    end = ended(robot, motion, motion.change + kick, (motion.change + motion.followed) / 2 + shift)
    tree = tree_of(robot, free, motion.inputs.get("p"))
    return step_function("hard", tree, motion.inputs, *end, choice, OPEN[robot.target.dtype], motion.M)


def contact_step(
    robot: Robot,
    method: str,
    acting: ca.Function,
    contact: Contact | None,
    choice: ClosureChoice | None = None,
    prescribed: Prescribed | None = None,
    free: tuple[Free, ...] = (),
) -> ca.Function:
    """Return the step of a method, or the step of hard contact, which raises ModelError for any other method.

    Compliant contact is part of the step "linearly_implicit"; for other methods, the forces ``acting`` include it.
    """
    if contact is None or contact.kind == "compliant":
        if method == IMPLICIT:
            return linearly_implicit(robot, acting, choice, prescribed, free, contact)
        return STEPS[method](robot, acting, choice, prescribed, free)
    if method != "rk4":
        what, fix = f'hard contact does not support method "{method}"', "omit `method`"
        raise ModelError(what, where=robot.name, fix=fix)
    return hard_step(robot, acting, contact, choice, free)


def step_key(robot: Robot, method: str, contact: Contact | None) -> str:
    """Return text that identifies the contact in a step of ``method``, without contact in the acting forces."""
    return "" if contact is None or not contact.parameters(method) else contact.key(robot, inputs=True)


def hard_wrenches(
    robot: Robot, acting: ca.Function, contact: Contact, choice: ClosureChoice | None = None
) -> ca.Function:
    """Return the contact wrenches (L x 6) in the step from (t, q, v, [tau], [external], h), and the residual (m/s)."""
    motion, _, _, wrenches, residual = _solved(robot, acting, contact, choice)
    values, names = ca.cse([ca.densify(wrenches), residual]), ["contact", "residual"]
    return ca.Function("hard_contact", list(motion.inputs.values()), values, list(motion.inputs), names)


def _solved(
    robot: Robot, acting: ca.Function, contact: Contact, choice: ClosureChoice | None, free: tuple[Free, ...] = ()
) -> tuple[FreeMotion, ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return a step without contact, changes of v due to impulses, wrenches (L x 6), and the residual (m/s).

    The changes are those at the end of the step, and of the mean that the positions follow.
    """
    motion = free_motion(robot, acting, contact, choice, free)
    h, velocity = motion.inputs["h"], ca.SX.sym("velocity", robot.nv)
    state = ContactState(robot, contact, motion.middle, velocity)
    points, most = state.points, contact.most_points(len(state.points))
    if most < len(points):
        points, left_out = chosen_points(state, most)
    frames = [ca.horzcat(each.normal, tangents(each.normal)) for each in points]
    velocities = [frame.T @ each.velocity for frame, each in zip(frames, points, strict=True)]
    J = ca.jacobian(ca.vertcat(*velocities), velocity)
    tree, rows = tree_of(robot, free, motion.inputs.get("p")), [] if choice is None else list(choice.rows)
    A = Closures(tree, motion.middle).A[rows, :]
    mass = ClosedMass(mass_matrix(tree, motion.middle, motion.impedance), A)

    def followed(change: ca.SX) -> ca.SX:
        part = among(motion.stiff, change)
        return mass.project(part, A @ part) if rows and motion.stiff else part

    links = Counter(tuple(side.link for side in touch) for touch in state.touches)
    rounds = ROUNDS if max(links.values()) > 1 else 0  # a single point has no load to share
    parameters = contact.parameters_in(motion.inputs)
    mu: Frictions = [each.friction for each in points] if contact.friction is None else len(points) * [parameters[0]]
    if contact.friction == 0:
        mu = None
    mobility, (*soft, restitution) = Mobility(mass, J), parameters[1:]
    distance = ca.vertcat(*(each.distance for each in points))
    change = J @ (mass.project(motion.change, A @ motion.change) if rows else motion.change)
    rebound = Rebound(restitution, J @ (motion.change - motion.followed)) if contact.restitution else None
    p, half, early, residual = impulses(
        contact.sweeps, mu, soft, mobility, J @ motion.v, change, distance, h, rounds, rebound
    )
    if most < len(state.points):
        residual = ca.fmax(residual, -left_out / (h + soft[-1]))
    kick, followed_kick = ca.horzsplit(mobility.kicks(ca.horzcat(p, p - half / 2)))
    shift = followed_kick + followed(kick - followed_kick)
    if rebound is not None:
        before = mobility.kicks(early)
        back = before - followed(before)
        end = distance + h * (J @ (motion.v / 2 + (motion.change + motion.followed) / 2 + shift))[::3]
        room = (ca.fmax(end, 0) + _NEARER) / ca.fmax(h * (J @ back)[::3], _NEARER)
        shift -= ca.fmin(1, ca.mmin(room)) * back
    mean = motion.v + (motion.change + kick) / 2
    kick -= mass.solve(change_of_products(tree, motion.middle, mass.M, mean, h * shift))
    forces = [frame @ part / h for frame, part in zip(frames, ca.vertsplit(p, 3), strict=True)]
    return motion, kick, shift, state.wrenches(points, forces), residual

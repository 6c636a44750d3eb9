"""Hard contact: a velocity-impulse step with the Coulomb cone, solved by projected Gauss-Seidel in one kernel.

A step of length h first goes to (q*, v*), its end state without contact (``free_motion``); forces change the velocities
by w. Impulses p are then added. They are computed at (q*, v*) from the mass matrix M (with the impedance of implicit
forces), the distances between shapes, and the velocities u = J v of the contact points (3 each: normal n and two
tangents):

    v+ = v* + M^-1 J^T p
    0 <= p_n   complementary to   u_n+ + p_n / (h k (h + r)) + d >= 0,          d = x / (h + r), or x / h if x > 0
    |p_t| <= mu p_n,   p_t opposes u_t+ where they are equal, and u_t+ = 0 inside the cone

(Stewart and Trinkle 1996), with x = distance - h u_n* + h/2 (J w)_n. The normal constraint is relaxed as a spring k
with damping k r, both evaluated at the end of the step, so that any stiffness is stable: a weight F rests at the depth
F / k, and penetration decays with the time constant r. Friction is not relaxed, so sticking bodies do not creep. The
positions follow the impulses, except that the impulses p_w, which only hold touching shapes against w, contribute half:

    q+ = q* + h M^-1 J^T (p - p_w / 2)          J w + G p_w = 0 where shapes touch

(stiff coordinates of ``free_motion`` follow all impulses, and their part of J w is not in x),
so that impacts cause no penetration, resting bodies do not move, and all other motion is of order 2. Impulses dissipate
the energy p^T G p / 2, in addition to the energy lost to friction and springs. The rest of the step causes energy
errors of order h^2 in flight, and of order h if velocity products accelerate touching points;
docs/simulate/contact.md states their size.

With the restitution e, points rebound by Poisson's hypothesis (Anitescu and Potra 1997). A point touches after the part
1 - s of the step, if its distance of x_0 > 0 at the start becomes x_0 (1 - 1/s) < 0 at q*; s is 1 if it already touches
at the start. Its velocity is then u_c = u* - s J w. A first solution, with u_c in the place of u* and without springs,
gives the impulses p_0 that stop the points. A second one has the condition (1 + e) p_0n <= p_n in the place of
0 <= p_n. The impulses (1 + e) p_0 dissipate the energy (1 - e^2) p_0^T G p_0 / 2 or more, and friction under the normal
impulses (1 + e) p_0n minimises the energy, so that impacts of any number of points do not increase it. Points whose
rebound -e u_cn would be slower than 2 |J w|_n have u_cn >= 0 in the first solution, so that bodies come to rest. The
positions follow the part s of the impulses at points that rebound, so that heights have errors of order 2, or more of
them if a point would penetrate.

With closed loops, M^-1 is replaced by the inverse for velocities with A v = 0 (``ClosedMass``), for independent closure
equations phi(q) = 0 and A = dphi/dq at q*. All impulses then satisfy the loops, and so do v* and w after a projection.
The positions follow the projections, so that resting bodies with loops do not move either. Two Newton corrections of
the positions and one of the velocities remove the remaining errors (``projected_end``).

The impulses are computed in two parts (``impulses``, ``mobility``). The first guess is the impulse with which every
touching point sticks, which takes one factorisation of G = J M^-1 J^T. The distribution of the tangential load among
several points of one body is not unique. The guess is therefore repeated with shares in proportion to the normal
impulses, and without points that pull, so that all points are equally far from their cones. Otherwise, points with
little weight would slip, sweeps would redistribute their load slowly, and bodies near tipping would creep. Projected
Gauss-Seidel sweeps over the points follow. At each point, the normal impulse is updated, then the tangential impulse,
with a step of 1 over the larger eigenvalue of its block of G and a projection onto the disc mu p_n. Every subproblem is
convex, and the method is a fixed sequence of operations, for batches and for single motions.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca

from torsor.base.errors import ModelError
from torsor.dynamics import Tree, lean
from torsor.dynamics.loops.closure import Closures
from torsor.dynamics.loops.constrained import ClosedMass, ClosureChoice
from torsor.dynamics.loops.factors import Squares
from torsor.dynamics.recursions.composite import mass_matrix
from torsor.dynamics.recursions.kinematics import symmetric
from torsor.robot.robot import Robot
from torsor.simulation.contact import IMPLICIT, Contact, ContactState
from torsor.simulation.dynamics import step_function
from torsor.simulation.free_motion import OPEN, FreeMotion, among, free_motion, turned
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
    free: ca.SX,
    distance: ca.SX,
    given: ca.SX,
    h: ca.SX,
    rounds: int,
    rebound: Rebound | None,
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return the impulses of a step, those that hold touching shapes, those that positions leave out, and a residual.

    Impulses are (3 K x 1), the residual is in m/s, and h is the step length (s). ``free`` (3 K x 1) are the velocities
    of the points without impulses, normal and two tangents each, to which forces contribute ``given``. The distance at
    the end of the step is ``distance`` (K x 1) plus h times the normal velocity. The first guess is repeated ``rounds``
    times. ``parameters`` are the stiffness and the relaxation of ``Contact``, as symbols or numbers.
    """
    stiffness, relaxation = parameters
    count, spring = distance.numel(), stiffness * h * (h + relaxation)
    blocks = [mobility.block(3 * k) for k in range(count)]
    wanted, added = ca.SX(free), ca.SX.zeros(3 * count, 1)
    wanted[::3] += distance / ca.if_else(distance > 0, h, h + relaxation)

    def solved(guess: ca.SX, wanted: ca.SX, soft: ca.SX, least: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the impulses, of which normal ones are at least those of ``least`` (3 K x 1), and the residual."""
        right = wanted + mobility.read @ (mobility.write @ least)
        for _ in range(max(rounds, 1) if least.nnz() else rounds):
            guess = -mobility.sticking(_loaded(blocks, guess[::3], soft, mu, least[::3]))(right)
        p = _swept(sweeps, mobility, blocks, wanted, ca.vertsplit(least + guess), soft, mu, least[::3])
        return p, _residual(mobility, blocks, wanted, p, soft, mu, least[::3])

    touching = distance + h * free[::3] < 0
    stuck = ca.DM([_REGULAR] + 2 * [_AWAY if mu is None else _REGULAR])
    for k in range(count):
        added[3 * k : 3 * k + 3] = ca.if_else(touching[k], stuck, _AWAY) * (ca.diag(blocks[k]) + _IMMOBILE)
    stuck_by = mobility.sticking(added)
    held = -stuck_by(given)
    left = mobility.read @ (mobility.write @ held) + given
    held -= stuck_by(left)  # regularisation must not move resting points
    impact, after, error = ca.SX(3 * count, 1), ca.SX.ones(count, 1), ca.SX(0)
    if rebound is not None:
        below = ca.fmax(h / 2 * rebound.late[::3] - h * free[::3] - distance, 0)
        after = ca.if_else(distance > 0, below / (ca.fmax(distance, _IMMOBILE) + below), 1)
        hitting = free - _thrice(after) * rebound.late
        slow = -rebound.restitution * hitting[::3] < _SLOW * ca.fabs(given[::3])
        hitting[::3] = ca.if_else(slow, ca.fmax(hitting[::3], 0), hitting[::3]) + ca.if_else(touching, 0, distance / h)
        impact, error = solved(-stuck_by(hitting), hitting, ca.SX(_IMMOBILE), impact)
        impact[::3] *= 1 + rebound.restitution
    added[::3] += 1 / spring
    guess = -mobility.sticking(added)(wanted + mobility.read @ (mobility.write @ impact))
    p, residual = solved(guess, wanted, 1 / spring, impact)
    if rebound is None:
        return p, held, ca.SX(3 * count, 1), residual
    normal, least = p[::3], impact[::3]
    part = ca.if_else(normal > 0, least / ca.if_else(normal > 0, normal, 1), 0)
    held *= _thrice(ca.if_else(normal > least, 1, 0))
    return p, held, _thrice((1 - after) * part) * p, ca.fmax(residual, error)


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
    for _ in range(sweeps):
        for n, rate, slow in zip(points, rates, slower, strict=True):
            a, b = n + 1, n + 2
            pushed = ca.fmax(p[n] - rate * (read[n, :] @ state + wanted[n] + soft * p[n]), least[n // 3])
            state, p[n] = state + write[:, n] * (pushed - p[n]), pushed
            if mu is not None:
                x, y = (p[i] - slow * (read[i, :] @ state + wanted[i]) for i in (a, b))
                x, y = _on_disc(x, y, mu[n // 3] * p[n])
                state, p[a], p[b] = state + write[:, a] * (x - p[a]) + write[:, b] * (y - p[b]), x, y
    return ca.vertcat(*p)


def _on_disc(x: ca.SX, y: ca.SX, radius: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the point nearest to (x, y) in a disc about the origin."""
    length = ca.sqrt(x**2 + y**2 + _IMMOBILE**2)
    outside = length > radius
    scale = ca.if_else(outside, radius / ca.if_else(outside, length, 1), 1)
    return scale * x, scale * y


def hard_step(robot: Robot, acting: ca.Function, contact: Contact, choice: ClosureChoice | None = None) -> ca.Function:
    """Return step(t, q, v, [tau], [external], h) -> (q, v), one step of length h (s) with hard contact.

    With the closure equations ``choice``, the step closes loops and also returns their margin (``runge_kutta``).
    """
    free, kick, shift, _, _ = _solved(robot, acting, contact, choice)
    q_next = robot.function("chart")(free.q, shift)
    v_next = turned(Tree.of(robot), free.q, q_next, free.v + kick)
    return step_function("hard", robot, free.inputs, q_next, v_next, choice, OPEN[robot.target.dtype])


def contact_step(
    robot: Robot,
    method: str,
    acting: ca.Function,
    contact: Contact | None,
    choice: ClosureChoice | None = None,
    prescribed: Prescribed | None = None,
) -> ca.Function:
    """Return the step of a method, or the step of hard contact, which raises ModelError for any other method.

    Compliant contact is part of the step "linearly_implicit"; for other methods, the forces ``acting`` include it.
    """
    if contact is None or contact.kind == "compliant":
        if method == IMPLICIT:
            return linearly_implicit(robot, acting, choice, prescribed, contact)
        return STEPS[method](robot, acting, choice, prescribed)
    if method != "rk4":
        what, fix = f'hard contact does not support method "{method}"', "omit `method`"
        raise ModelError(what, where=robot.name, fix=fix)
    return hard_step(robot, acting, contact, choice)


def step_key(robot: Robot, method: str, contact: Contact | None) -> str:
    """Return text that identifies the contact in a step of ``method``, without contact in the acting forces."""
    return "" if contact is None or not contact.parameters(method) else contact.key(robot, inputs=True)


def hard_wrenches(
    robot: Robot, acting: ca.Function, contact: Contact, choice: ClosureChoice | None = None
) -> ca.Function:
    """Return the contact wrenches (L x 6) in the step from (t, q, v, [tau], [external], h), and the residual (m/s)."""
    free, _, _, wrenches, residual = _solved(robot, acting, contact, choice)
    values, names = ca.cse([ca.densify(wrenches), residual]), ["contact", "residual"]
    return ca.Function("hard_contact", list(free.inputs.values()), values, list(free.inputs), names)


def _solved(
    robot: Robot, acting: ca.Function, contact: Contact, choice: ClosureChoice | None
) -> tuple[FreeMotion, ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return a step without contact, changes of v and q due to impulses, wrenches (L x 6), and the residual (m/s)."""
    free = free_motion(robot, acting, contact, choice)
    h, velocity = free.inputs["h"], ca.SX.sym("velocity", robot.nv)
    state = ContactState(robot, contact, free.q, velocity)
    points, most = state.points, contact.most_points(len(state.points))
    if most < len(points):
        points, left_out = chosen_points(state, most)
    frames = [ca.horzcat(each.normal, tangents(each.normal)) for each in points]
    velocities = [frame.T @ each.velocity for frame, each in zip(frames, points, strict=True)]
    J = ca.jacobian(ca.vertcat(*velocities), velocity)
    tree, rows = lean(Tree.of(robot)), [] if choice is None else list(choice.rows)
    A = Closures(tree, free.q).A[rows, :]
    mass = ClosedMass(mass_matrix(tree, free.q, free.impedance), A)
    v, change = (mass.project(each, A @ each) if rows else each for each in (free.v, free.change))

    def followed(change: ca.SX) -> ca.SX:
        part = among(free.stiff, change)
        return mass.project(part, A @ part) if rows and free.stiff else part

    u, late = J @ v, change - followed(change)  # the positions follow ``late`` by half
    closing = ca.SX(robot.nv, 1) if not rows else h * (change - late / 2 - (free.change + free.followed) / 2)
    gap = ca.vertcat(*(each.distance for each in points))
    distance = gap - h * u[::3] + (J @ (h / 2 * late + closing))[::3]
    links = Counter(tuple(side.link for side in touch) for touch in state.touches)
    rounds = ROUNDS if max(links.values()) > 1 else 0  # a single point has no load to share
    parameters = contact.parameters_in(free.inputs)
    mu: Frictions = [each.friction for each in points] if contact.friction is None else len(points) * [parameters[0]]
    if contact.friction == 0:
        mu = None
    mobility, (*soft, restitution) = Mobility(mass, J), parameters[1:]
    rebound = Rebound(restitution, J @ late) if contact.restitution else None
    p, held, early, residual = impulses(contact.sweeps, mu, soft, mobility, u, distance, J @ change, h, rounds, rebound)
    if most < len(state.points):
        residual = ca.fmax(residual, -left_out / (h + soft[-1]))
    kick, middle = ca.horzsplit(mobility.kicks(ca.horzcat(p, p - held / 2)))
    shift = closing + h * (middle + followed(kick - middle))
    if contact.restitution:
        before = mobility.kicks(early)
        back = h * (before - followed(before))
        end, nearer = gap + (J @ shift)[::3], (J @ back)[::3]
        room = (ca.fmax(end, 0) + _NEARER) / ca.fmax(nearer, _NEARER)
        shift -= ca.fmin(1, ca.mmin(room)) * back
    forces = [frame @ part / h for frame, part in zip(frames, ca.vertsplit(p, 3), strict=True)]
    return free, v - free.v + kick, shift, state.wrenches(points, forces), residual

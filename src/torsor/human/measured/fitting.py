"""The Levenberg-Marquardt method for a batch of frames, with one compiled kernel, and the fitted body or skeleton."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array, Flags
from torsor.base.checks import flag, indices_of, number, table
from torsor.base.errors import ModelError
from torsor.base.searches import State, advance
from torsor.compiler import AnyKernel
from torsor.compiler.cache import source_hash
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.measured.normal_equations import Equations, Layout, equations, moved_places, solve
from torsor.human.measured.skeleton import Skeleton
from torsor.mechanism import Mechanism
from torsor.mechanism.curves import Curve
from torsor.robot.kernels import Kernels
from torsor.robot.robot import Robot
from torsor.robot.target import Target

RIDGE = 1e-11  # m^2, relative to the sum of weights; added to the diagonal; moment arms of 3 um, below marker accuracy
HOLD_STIFFNESS = 1e9  # stiffness of a held variable, relative to the diagonal
MAX_HELD_ROUNDS = 8  # maximum number of rounds in which variables are held at bounds or released
MAX_STEP = 1.0  # rad, m; largest step
MAX_STEPS = 60  # about ten steps are needed from a standing posture to any other
# Rounding tolerance of a cost: relative, and in m^2 relative to the sum of weights.
RELATIVE_ROUNDING, ABSOLUTE_ROUNDING = 1e-13, 1e-24
FIRST_DAMPING, MIN_DAMPING, MAX_DAMPING = 1e-2, 1e-12, 1e8  # relative to the diagonal

# Near a minimum, after a step below EXACT_STEP (rad, m) with a damping below EXACT_DAMPING, the exact Hessian is used,
# and convergence is quadratic. Farther away, it may be indefinite.
EXACT_DAMPING, EXACT_STEP = 2e-4, 0.05

SOURCES = "human/measured/normal_equations.py", "human/measured/fitting.py", "mechanism/curves.py"  # kernel sources


@cache
def kernels() -> Kernels:
    """Return the kernels for all bodies; lengths and marker positions are inputs."""
    return Kernels(Target(), lambda: source_hash(*SOURCES))


@dataclass(frozen=True, eq=False)
class Fit:
    """A robot with markers for a fit: joint ``offsets`` (links, 3) and marker positions ``local`` (M, 3).

    ``lower`` and ``upper`` (n) bound the variables of the layout. ``standing`` (n) contains the variables of the
    standing posture.
    """

    robot: Robot
    layout: Layout
    offsets: Array
    local: Array
    lower: Array
    upper: Array
    standing: Array

    def places(self, y: Array) -> Array:
        """Return the marker positions (K, M, 3) for variables (K, n)."""

        def traced() -> ca.Function:
            inputs, places, *_ = moved_places(self.robot, self.layout)
            result = ca.cse([ca.horzcat(*places).T])
            return ca.Function("places", list(inputs.values()), result, list(inputs), ["places"])

        positions: Array = kernels().kernel(("places", self.identity), traced)(y, self.offsets, self.local)
        return positions

    @cached_property
    def identity(self) -> str:
        """A hash of everything on which the kernels depend, except their inputs."""
        digest = sha256(repr(self.layout).encode())
        for joint, parent in zip(self.robot.joints, self.robot.parents, strict=True):
            digest.update(f"{joint.type} {parent} {joint.ratio} {joint.offset} {joint.pitch}".encode())
            for array in (joint.placement[:3, :3], joint.axis, joint.point):
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _kernel(self, name: str, trace: Callable[[Equations], dict[str, Any]]) -> AnyKernel:
        def traced() -> ca.Function:
            made = equations(self.robot, self.layout)
            outputs = trace(made)
            results = ca.cse([ca.densify(ca.SX(output)) for output in outputs.values()])
            return ca.Function(name, list(made.inputs.values()), results, list(made.inputs), list(outputs))

        return kernels().kernel((name, self.identity), traced)

    @property
    def step(self) -> AnyKernel:
        """Kernel that returns the cost, next variables (n), largest change and smallest pivot of a frame.

        Variables with ``held`` = 1 take the step ``goal``, enforced by a finite stiffness. A variable beyond its goal
        is pulled back.
        """

        def trace(made: Equations) -> dict[str, Any]:
            y, inputs = made.inputs["y"], made.inputs
            for name in ("held", "goal"):
                inputs[name] = ca.SX.sym(name, y.numel())
            inputs["damping"] = ca.SX.sym("damping")
            total = ca.sum1(inputs["weights"]) + 1e-30
            hessian, right = dict(made.hessian), ca.SX.zeros(y.numel())
            for k in range(y.numel()):
                stiff = RIDGE * total + inputs["held"][k] * HOLD_STIFFNESS * (hessian[k, k] + total)
                hessian[k, k] = hessian[k, k] * (1 + inputs["damping"]) + stiff
                right[k] = inputs["held"][k] * stiff * inputs["goal"][k] - made.gradient[k]
            change, pivot = solve(hessian, right)
            largest, pivot = ca.mmax(ca.fabs(change)), pivot / (ca.mmax(inputs["weights"]) + 1e-30)
            return {"cost": made.cost, "next": y + change, "change": largest, "pivot": pivot}

        return self._kernel("step", trace)

    @property
    def normal(self) -> AnyKernel:
        """Kernel that returns the cost, gradient (n) and Hessian (n, n) of a frame."""

        def trace(made: Equations) -> dict[str, Any]:
            n = self.layout.count
            H = ca.SX.zeros(n, n)
            for (i, j), entry in made.hessian.items():
                H[i, j] = H[j, i] = entry
            return {"cost": made.cost, "gradient": made.gradient, "hessian": H}

        return self._kernel("normal", trace)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Variables (K, n), costs (K,), and flags (K,) of frames that ``converged`` or are ``determined`` by markers."""

    y: Array
    cost: Array
    converged: Flags
    determined: Flags

    def replaced(self, frames: NDArray[np.intp], others: "Fitted", chosen: Flags) -> "Fitted":
        """Return the fit with the results for ``frames[chosen]`` replaced by those in ``others``."""
        parts = [array.copy() for array in vars(self).values()]
        for part, other in zip(parts, vars(others).values(), strict=True):
            part[frames[chosen]] = other[chosen]
        return Fitted(*parts)


# m^2, relative to the largest weight. At a moment arm below 10 mm, a typical marker error rotates a joint by half a
# radian.
MIN_PIVOT = 1e-4


def _bounded_step(
    fit: Fit, y: Array, measured: Array, weights: Array, exact: Array, damped: Array
) -> tuple[Array, Array, Array, Array]:
    """Return the costs, next variables within their bounds, largest changes and smallest pivots of frames.

    Variables that would pass a bound are held there, and are released if they are pulled back from it, until neither
    occurs. This is the primal-dual active-set method (Hintermueller, Ito and Kunisch 2003).
    """

    def solved(chosen: Any, held: Flags, goal: Array) -> tuple[Array, Array, Array, Array]:
        data = y[chosen], fit.offsets, fit.local, measured[chosen], weights[chosen], exact[chosen]
        cost, following, change, pivot = fit.step(*data, held + 0.0, goal, damped[chosen])
        long = np.flatnonzero(change > MAX_STEP)
        if len(long):  # a hinge must not rotate by more than one turn
            following[long] = y[chosen][long] + (following - y[chosen])[long] * (MAX_STEP / change[long])[:, None]
        return cost, following, change, pivot

    def beyond(following: Array) -> Flags:
        return np.asarray((following < fit.lower) | (following > fit.upper))

    held = np.asarray((y <= fit.lower) | (y >= fit.upper))
    cost, following, change, pivot = solved(slice(None), held, np.zeros(y.shape[1]))
    for _ in range(MAX_HELD_ROUNDS):
        required = beyond(following)
        frames = np.flatnonzero((required != held).any(axis=1))
        if not len(frames):
            break
        held[frames] = required[frames]
        goal = np.where(held[frames], np.clip(following[frames], fit.lower, fit.upper) - y[frames], 0.0)
        _, following[frames], change[frames], pivot[frames] = solved(frames, held[frames], goal)
    following = np.clip(following, fit.lower, fit.upper)
    moved = np.flatnonzero(held.any(axis=1))
    change[moved] = np.abs(following[moved] - y[moved]).max(axis=1)
    return cost, following, change, pivot


def fit_frames(
    fit: Fit, y: Array, measured: Array, weights: Array, tolerance: float, damping: float = FIRST_DAMPING
) -> Fitted:
    """Fit each frame separately by least squares, starting from variables y (K, n).

    ``measured`` (K, M, 3) are the marker positions (m), which must be finite even where their ``weights`` (K, M) are 0.
    """
    y = np.clip(y, fit.lower, fit.upper)
    count = len(y)

    def evaluate(at: Array, frames: NDArray[np.intp], damped: Array, last: Any) -> tuple[Array, Array, Array, Array]:
        exact = ((damped < EXACT_DAMPING) & (last < EXACT_STEP)) + 0.0
        chosen = slice(None) if len(frames) == count else frames  # avoids copying all frames
        return _bounded_step(fit, at, measured[chosen], weights[chosen], exact, damped)

    def step(state: State, todo: NDArray[np.intp]) -> State:
        y, cost, following, change, pivot, damped, nothing, _ = state
        lighter, small = np.maximum(damped * 0.1, MIN_DAMPING), change <= tolerance
        tried = following.copy()
        next_state = evaluate(tried, todo, lighter, change)
        better = next_state[0] <= cost * (1 + RELATIVE_ROUNDING) + nothing
        for old, new in zip((y, cost, following, change, pivot, damped), (tried, *next_state, lighter), strict=True):
            old[better] = new[better]
        bad = np.flatnonzero(~better & ~small)
        if len(bad):
            damped[bad] = np.maximum(10 * damped[bad], 10 * EXACT_DAMPING)
            _, following[bad], change[bad], pivot[bad] = evaluate(y[bad], todo[bad], damped[bad], np.inf)
        return [y, cost, following, change, pivot, damped, nothing, small]

    def finished(_k: int, state: State, _: NDArray[np.intp]) -> Flags:
        return np.asarray(state[7] | ~(state[5] < MAX_DAMPING))

    first = evaluate(y, np.arange(count), np.full(count, damping), np.inf)
    small = np.zeros(count, dtype=bool)
    state = [y, *first, np.full(count, damping), ABSOLUTE_ROUNDING * weights.sum(axis=1), small]
    next_state, cost, pivot, converged = np.empty_like(y), np.empty(count), np.empty(count), np.zeros(count, dtype=bool)
    advance(state, step, finished, MAX_STEPS, {0: next_state, 1: cost, 4: pivot, 7: converged})
    return Fitted(next_state, cost, converged, pivot > MIN_PIVOT)


# Fit of all frames together with smoothing, by Newton steps with a block-pentadiagonal system.
#
#     minimise  sum over k of |r_k(y_k)|^2  +  s sum of |y_(k-1) - 2 y_k + y_(k+1)|^2
#
# The matrix has the blocks H_k + s D_kk on its diagonal, and multiples of the identity in the next two blocks on each
# side, where D is the matrix of squared second differences.

MEDIAN_HALF_WIDTHS = (1, 2, 4, 8)  # number of frames on each side of a running median


def second_differences(count: int) -> Array:
    """Return the three upper diagonals (3, K) of D^T D, where D is the second-difference matrix of K numbers."""
    diagonals = np.zeros((3, count))
    for at, one in enumerate((1.0, -2.0, 1.0)):
        for other, two in enumerate((1.0, -2.0, 1.0)):
            if other >= at and count > 2:
                diagonals[other - at, at : count - 2 + at] += one * two
    return diagonals


def fit_smoothly(fit: Fit, start: Fitted, measured: Array, weights: Array, smooth: float, tolerance: float) -> Fitted:
    """Fit all frames with the weight ``smooth`` on second differences, starting from the fit of each frame."""
    count, n = start.y.shape
    if count < 3:
        return start
    diagonals = smooth * second_differences(count)
    total = float(weights.sum(axis=1).max())

    def evaluate(y: Array, exact: float) -> tuple[float, Array, Array, Array]:
        cost, gradient, hessian = fit.normal(y, fit.offsets, fit.local, measured, weights, exact)
        bend = np.diff(y, 2, axis=0)
        pull = np.zeros_like(y)
        pull[:-2] += bend
        pull[1:-1] -= 2 * bend
        pull[2:] += bend
        return float(cost.sum() + smooth * (bend**2).sum()), cost, gradient + smooth * pull, hessian

    # Fits of single frames jump where markers provide little information. Running medians are closer to the smooth
    # motion.
    starts = [start.y, *(_running_median(start.y, half) for half in MEDIAN_HALF_WIDTHS if 2 * half < count)]
    y = min(starts, key=lambda start: evaluate(start, 0.0)[0])
    whole, cost, gradient, hessian = evaluate(y, 0.0)
    damping, exact, converged, diagonal = 0.0, False, False, np.arange(n)
    for _ in range(MAX_STEPS):
        blocks = hessian.copy()
        blocks[:, diagonal, diagonal] = blocks[:, diagonal, diagonal] * (1 + damping) + RIDGE * total
        try:
            following = _bounded(blocks, diagonals, gradient, y, fit)
            trial = evaluate(following, 1.0)
        except np.linalg.LinAlgError:  # far from the minimum, the exact matrix may be indefinite
            trial = np.inf, cost, gradient, hessian
        if trial[0] <= whole * (1 + RELATIVE_ROUNDING):
            change = float(np.abs(following - y).max())
            # Newton's method squares the error, so after a small step with the exact matrix, the next one is below the
            # tolerance.
            converged = change <= (np.sqrt(tolerance) if exact and damping == 0 else tolerance)
            y, damping, exact = following, damping / 10 if damping > 10 * EXACT_DAMPING else 0.0, True
            whole, cost, gradient, hessian = trial
        else:
            converged = trial[0] < np.inf and float(np.abs(following - y).max()) <= tolerance
            _, _, _, hessian = evaluate(y, 0.0)
            damping, exact = max(10 * damping, 10 * EXACT_DAMPING), False
        if converged:
            break
    return Fitted(y, cost, np.full(count, converged), start.determined | converged)


def _running_median(y: Array, half: int) -> Array:
    """Return running means of running medians of y (K, n), both over 2 half + 1 frames with repeated end values."""
    smoothed = y
    for middle in (np.median, np.mean):
        padded = np.pad(smoothed, ((half, half), (0, 0)), mode="edge")
        smoothed = middle(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=0), axis=-1)
    return np.asarray(smoothed)


def _bounded(blocks: Array, diagonals: Array, gradient: Array, y: Array, fit: Fit) -> Array:
    """Return the minimum of the quadratic model within the bounds, by the active-set method of ``_bounded_step``."""
    diagonal = np.arange(y.shape[1])
    stiff = HOLD_STIFFNESS * float(blocks[:, diagonal, diagonal].max())
    held = (y <= fit.lower) | (y >= fit.upper)
    goal = np.zeros_like(y)
    for _ in range(MAX_HELD_ROUNDS):
        firm = blocks.copy()
        firm[:, diagonal, diagonal] += np.where(held, stiff, 0.0)
        following = y + _banded_solve(firm, diagonals, np.where(held, stiff * goal, 0.0) - gradient)
        beyond = (following < fit.lower) | (following > fit.upper)
        if (beyond == held).all():
            break
        held, goal = beyond, np.where(beyond, np.clip(following, fit.lower, fit.upper) - y, 0.0)
    return np.clip(following, fit.lower, fit.upper)


def _banded_solve(blocks: Array, diagonals: Array, right: Array) -> Array:
    """Solve the system with diagonal blocks (K, n, n) + diagonals[0], and multiples of the identity next to them.

    ``right`` is (K, n). Raise LinAlgError if the matrix is not positive definite.
    """
    from scipy.linalg import solveh_banded

    count, n = right.shape
    band = np.zeros((2 * n + 1, count, n))  # row i contains the i-th diagonal below the main one
    for i in range(n):
        band[i, :, : n - i] = blocks[:, np.arange(i, n), np.arange(n - i)]
    for k in range(3):
        band[k * n] += diagonals[k][:, None]
    solution = solveh_banded(
        band.reshape(2 * n + 1, -1), right.ravel(), overwrite_ab=True, lower=True, check_finite=False
    )
    return np.asarray(solution).reshape(count, n)


WHERE = "inverse kinematics"

# Spine joints that bend equally, because shoulder markers determine the total bend of the spine, not its distribution.
SPINE = {f"spine{k}_{way}": f"spine1_{way}" for k in (2, 3, 4) for way in ("flexion", "lateral", "axial")}


def prepared(
    body: Robot | Skeleton,
    markers: MarkerSet,
    posture: Array | None = None,
    frozen: Mapping[str, float] | None = None,
    tied: Mapping[str, str] | None = None,
    *,
    ranges: bool = True,
) -> Fit:
    """Return the fit of a body with markers; ``posture`` contains initial coordinate values."""
    names = list(body.coordinate_names)
    fixed = {name: number(value, WHERE, f"frozen {name}") for name, value in table(frozen, WHERE, "frozen").items()}
    indices_of(list(fixed), names, f"{WHERE}: frozen")
    flag(ranges, WHERE, "ranges")
    if isinstance(body, Skeleton):
        return _of_skeleton(body, markers, posture, fixed, tied, ranges)
    if body.nq != body.nv or body.loops:
        what = f"{body.name!r} has loops or joints with more positions than velocities"
        raise ModelError(what, value=body.name, where=WHERE, allowed="a tree of revolute and prismatic joints")
    ties = dict(table(tied, WHERE, "tied")) if tied is not None else {a: b for a, b in SPINE.items() if a in names}
    indices_of([*ties, *ties.values()], names, f"{WHERE}: tied")
    links = markers.links(body)
    carried = carried_by(body, links)
    values = np.zeros(body.nq) if posture is None else posture.copy()
    for name, value in fixed.items():
        values[names.index(name)] = value
    leaders = {name: ties.get(name, name) for name in names}
    variables, number_of = list[int](), dict[str, int]()
    for k, name in enumerate(names):
        leader = leaders[name]
        if leaders[leader] != leader:
            what = f"is tied to {leader}, which is tied to {leaders[leader]}"
            raise ModelError(what, argument=name, where=WHERE, fix="tie both to the same coordinate")
        is_held = name in fixed or leader in fixed or k not in carried
        variables.append(-1 if is_held else number_of.setdefault(leader, len(number_of)))
    _check_open(number_of)
    held = tuple(0.0 if variable >= 0 else float(value) for variable, value in zip(variables, values, strict=True))
    layout = Layout(links, tuple(variables), held)
    lower, upper, standing = np.full(layout.count, -np.inf), np.full(layout.count, np.inf), np.zeros(layout.count)
    for k, variable in reversed(list(enumerate(variables))):
        if variable >= 0:
            standing[variable] = values[k]
            if ranges:
                lower[variable] = max(lower[variable], body.lower[k])
                upper[variable] = min(upper[variable], body.upper[k])
    offsets = np.array([joint.placement[:3, 3] for joint in body.joints])
    return Fit(body, layout, offsets, markers.local, lower, upper, standing)


def _of_skeleton(
    body: Skeleton,
    markers: MarkerSet,
    posture: Array | None,
    fixed: dict[str, float],
    tied: Mapping[str, str] | None,
    ranges: bool,
) -> Fit:
    """Return the fit of a skeleton, whose variables are the independent coordinates that move markers."""
    if tied:
        fix = "use the couplings of the .osim file"
        raise ModelError("is not supported for skeletons", argument="tied", where=WHERE, allowed="bodies", fix=fix)
    for name in fixed:
        if name in body.couplings:
            what, fix = f"frozen {name} follows {body.couplings[name][0]}", f"freeze {body.couplings[name][0]}"
            raise ModelError(what, where=WHERE, fix=fix)
    values = _start(body, posture) | fixed
    links = markers.links(body.tree)
    carried = carried_by(body.tree, links)
    variables, curves, held, number_of = list[int](), list[tuple[Curve, ...]](), list[float](), dict[str, int]()
    for k, name in enumerate(body.tree.coordinate_names):
        coordinate, function = body.functions[name]
        leader, coupling = body.couplings.get(coordinate, (coordinate, None))
        chain = (function,) if coupling is None else (coupling, function)
        still = function.line is not None and function.line[0] == 0.0
        if leader in fixed or k not in carried or still or body.coordinates[leader].locked:
            variables.append(-1)
            x = np.array([values[leader]])
            for curve in chain:
                x = curve(x)[0]
            held.append(float(x[0]))
            curves.append(())
        else:
            variables.append(number_of.setdefault(leader, len(number_of)))
            curves.append(chain)
            held.append(0.0)
    _check_open(number_of)
    layout = Layout(links, tuple(variables), tuple(held), tuple(curves))
    known = [body.coordinates[name] for name in number_of]
    lower = np.array([c.lower if ranges and c.clamped else -np.inf for c in known])
    upper = np.array([c.upper if ranges and c.clamped else np.inf for c in known])
    standing = np.array([values[name] for name in number_of])
    offsets = np.array([joint.placement[:3, 3] for joint in body.tree.joints])
    return Fit(body.tree, layout, offsets, markers.local, lower, upper, standing)


def coordinates_of(
    body: Robot | Skeleton, fit: Fit, y: Array, posture: Array | None = None, frozen: Mapping[str, float] | None = None
) -> Array:
    """Return the coordinates (K, n) of a body from the variables (K, n) of its fit and its initial posture."""
    if isinstance(body, Robot):
        return fit.layout.positions(y)
    values = _start(body, posture) | dict(frozen or {})
    q = np.tile([values[name] for name in body.names], (len(y), 1))
    for name, variable in zip(body.tree.coordinate_names, fit.layout.variables, strict=True):
        coordinate = body.functions[name][0]
        leader = body.couplings.get(coordinate, (coordinate, None))[0]
        if variable >= 0:
            q[:, body.names.index(leader)] = y[:, variable]
    return body.completed(q)


def _start(body: Skeleton, posture: Array | None) -> dict[str, float]:
    """Return the initial coordinate values of a fit: those of ``posture``, or the defaults of the file."""
    if posture is not None:
        return dict(zip(body.names, posture.tolist(), strict=True))
    return {name: body.coordinates[name].default for name in body.names}


def _check_open(variables: dict[str, int]) -> None:
    if not variables:
        raise ModelError("all coordinates are frozen", where=WHERE, fix="freeze fewer coordinates")


def carried_by(body: Mechanism, links: tuple[int, ...]) -> set[int]:
    """Return the indices of the coordinates that move markers on links."""
    indices = set[int]()
    for link in set(links):
        while link >= 0:
            indices |= set(range(body.coordinates[link].v.start, body.coordinates[link].v.stop))
            link = body.parents[link]
    return indices

"""Levenberg-Marquardt for many frames at once: one compiled kernel evaluates, solves and steps all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.compiler import AnyKernel
from torsor.compiler.cache import source_hash
from torsor.human.measured.normal_equations import Equations, Layout, equations, moved_places, solve
from torsor.robot.kernels import Kernels
from torsor.robot.robot import Robot
from torsor.robot.target import Target

RIDGE = 1e-11  # m^2, of the sum of weights, on the diagonal: levers of 3 um, below what markers measure
HOLD = 1e9  # stiffness, of the diagonal, that holds a variable
MOST_HELD = 8  # rounds in which variables are held at bounds or released
LONGEST = 1.0  # rad, m: of a step
MOST_STEPS = 60  # from a standing posture to any other one it takes about ten
GROWTH, NOTHING = 1e-13, 1e-24  # by which rounding may raise a cost: a fraction, and m^2 of the sum of weights
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-2, 1e-12, 1e8  # fractions of the diagonal

# Near a minimum, after a step below NEAR (rad, m) with a damping below EXACT, the Hessian is exact: convergence is then
# quadratic. Further away it may have a negative direction.
EXACT, NEAR = 2e-4, 0.05

Mask = NDArray[np.bool_]
SOURCES = tuple(f"human/measured/{name}.py" for name in ("normal_equations", "fitting", "curves"))  # of kernels


@cache
def kernels() -> Kernels:
    """Return the kernels of all bodies: lengths and places of markers are inputs."""
    return Kernels(Target(), lambda: source_hash(*SOURCES))


def _identity(robot: Robot, layout: Layout) -> str:
    """Return a hash of what the equations depend on besides their inputs."""
    digest = sha256(repr(layout).encode())
    for joint, parent in zip(robot.joints, robot.parents, strict=True):
        digest.update(f"{joint.type} {parent} {joint.ratio} {joint.offset} {joint.pitch}".encode())
        for each in (joint.placement[:3, :3], joint.axis, joint.point):
            digest.update(np.ascontiguousarray(each).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Fit:
    """A robot with markers, ready to be fitted: ``offsets`` (links, 3) of its joints, ``local`` (M, 3) of its markers.

    ``lower`` and ``upper`` (n) bound the variables of the layout; ``standing`` (n) are those of the standing posture.
    """

    robot: Robot
    layout: Layout
    offsets: Array
    local: Array
    lower: Array
    upper: Array
    standing: Array

    def places(self, y: Array) -> Array:
        """Return the places (K, M, 3) of the markers for variables (K, n)."""

        def traced() -> ca.Function:
            inputs, places, *_ = moved_places(self.robot, self.layout)
            result = ca.cse([ca.horzcat(*places).T])
            return ca.Function("places", list(inputs.values()), result, list(inputs), ["places"])

        found: Array = kernels().kernel(("places", self.identity), traced)(y, self.offsets, self.local)
        return found

    @cached_property
    def identity(self) -> str:
        """A hash of what the kernels depend on besides their inputs."""
        return _identity(self.robot, self.layout)

    def _kernel(self, name: str, trace: Callable[[Equations], dict[str, Any]]) -> AnyKernel:
        key = name, self.identity

        def traced() -> ca.Function:
            made = equations(self.robot, self.layout)
            outputs = trace(made)
            results = ca.cse([ca.densify(ca.SX(each)) for each in outputs.values()])
            return ca.Function(name, list(made.inputs.values()), results, list(made.inputs), list(outputs))

        return kernels().kernel(key, traced)

    @property
    def step(self) -> AnyKernel:
        """The kernel that returns cost, next variables (n), largest change and the least pivot of a frame.

        Variables with ``held`` 1 take the step ``goal``, by a stiffness that gives way a little: where a variable ends
        beyond its goal, it is pulled there.
        """

        def trace(made: Equations) -> dict[str, Any]:
            y, inputs = made.inputs["y"], made.inputs
            for name in ("held", "goal"):
                inputs[name] = ca.SX.sym(name, y.numel())
            inputs["damping"] = ca.SX.sym("damping")
            total = ca.sum1(inputs["weights"]) + 1e-30
            hessian, right = dict(made.hessian), ca.SX.zeros(y.numel())
            for k in range(y.numel()):
                stiff = RIDGE * total + inputs["held"][k] * HOLD * (hessian[k, k] + total)
                hessian[k, k] = hessian[k, k] * (1 + inputs["damping"]) + stiff
                right[k] = inputs["held"][k] * stiff * inputs["goal"][k] - made.gradient[k]
            change, pivot = solve(hessian, right)
            largest = ca.mmax(ca.fabs(change))
            return {
                "cost": made.cost,
                "next": y + change,
                "change": largest,
                "pivot": pivot / (ca.mmax(inputs["weights"]) + 1e-30),
            }

        return self._kernel("step", trace)

    @property
    def normal(self) -> AnyKernel:
        """The kernel that returns cost, gradient (n) and Hessian (n, n) of a frame."""

        def trace(made: Equations) -> dict[str, Any]:
            n = self.layout.count
            H = ca.SX.zeros(n, n)
            for (i, j), entry in made.hessian.items():
                H[i, j] = H[j, i] = entry
            return {"cost": made.cost, "gradient": made.gradient, "hessian": H}

        return self._kernel("normal", trace)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Variables (K, n), costs (K,), and which frames ``converged`` and which are ``determined`` by their markers."""

    y: Array
    cost: Array
    converged: Mask
    determined: Mask


# m^2, of the largest weight: below a lever of 10 mm, the usual error of a marker turns a joint by half a radian.
DETERMINED = 1e-4


def _bounded_step(
    fit: Fit, y: Array, measured: Array, weights: Array, exact: Array, damped: Array
) -> tuple[Array, Array, Array, Array]:
    """Return cost, next variables, largest change and least pivot of frames; the next variables keep the bounds.

    Variables that would pass a bound are held there, and released if they are pulled back from it, until neither
    happens: the primal-dual active set method (Hintermueller, Ito and Kunisch 2003).
    """

    def solved(chosen: Any, held: Mask, goal: Array) -> tuple[Array, Array, Array, Array]:
        data = y[chosen], fit.offsets, fit.local, measured[chosen], weights[chosen], exact[chosen]
        cost, following, change, pivot = fit.step(*data, held + 0.0, goal, damped[chosen])
        long = np.flatnonzero(change > LONGEST)
        if len(long):  # a hinge must not turn around more than once
            following[long] = y[chosen][long] + (following - y[chosen])[long] * (LONGEST / change[long])[:, None]
        return cost, following, change, pivot

    def beyond(following: Array) -> Mask:
        return np.asarray((following < fit.lower) | (following > fit.upper))

    held = np.asarray((y <= fit.lower) | (y >= fit.upper))
    cost, following, change, pivot = solved(slice(None), held, np.zeros(y.shape[1]))
    for _ in range(MOST_HELD):
        wanted = beyond(following)
        frames = np.flatnonzero((wanted != held).any(axis=1))
        if not len(frames):
            break
        held[frames] = wanted[frames]
        goal = np.where(held[frames], np.clip(following[frames], fit.lower, fit.upper) - y[frames], 0.0)
        _, following[frames], change[frames], pivot[frames] = solved(frames, held[frames], goal)
    following = np.clip(following, fit.lower, fit.upper)
    moved = np.flatnonzero(held.any(axis=1))
    change[moved] = np.abs(following[moved] - y[moved]).max(axis=1)
    return cost, following, change, pivot


def fit_frames(
    fit: Fit, y: Array, measured: Array, weights: Array, tolerance: float, damping: float = FIRST_DAMPING
) -> Fitted:
    """Return the least squares of each frame on its own, from variables y (K, n).

    ``measured`` (K, M, 3) are the places of the markers in m, finite also where their ``weights`` (K, M) are 0.
    """
    y = np.clip(y, fit.lower, fit.upper)
    count = len(y)

    def evaluate(at: Array, frames: NDArray[np.intp], damped: Array, last: Any) -> tuple[Array, Array, Array, Array]:
        exact = ((damped < EXACT) & (last < NEAR)) + 0.0
        chosen = slice(None) if len(frames) == count else frames  # no copy of all frames
        return _bounded_step(fit, at, measured[chosen], weights[chosen], exact, damped)

    nothing = NOTHING * weights.sum(axis=1)
    damped, converged = np.full(count, damping), np.zeros(count, dtype=bool)
    cost, following, change, pivot = evaluate(y, np.arange(count), damped, np.inf)
    todo = np.arange(count)
    for _ in range(MOST_STEPS):
        lighter = np.maximum(damped[todo] * 0.1, LEAST_DAMPING)
        found = evaluate(following[todo], todo, lighter, change[todo])
        better = found[0] <= cost[todo] * (1 + GROWTH) + nothing[todo]
        small = change[todo] <= tolerance
        good, bad = todo[better], todo[~better & ~small]
        y[good], cost[good] = following[good], found[0][better]
        following[good], change[good], pivot[good] = found[1][better], found[2][better], found[3][better]
        damped[good] = lighter[better]
        converged[todo[small]] = True
        if len(bad):
            damped[bad] = np.maximum(10 * damped[bad], 10 * EXACT)
            _, following[bad], change[bad], pivot[bad] = evaluate(y[bad], bad, damped[bad], np.inf)
        todo = todo[~small & (damped[todo] < MOST_DAMPING)]
        if not len(todo):
            break
    return Fitted(y, cost, converged, pivot > DETERMINED)

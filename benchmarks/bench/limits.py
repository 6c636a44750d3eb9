"""Comparison of compiled code with the machine limit, the rate of kernels that are almost pure arithmetic."""

from dataclasses import dataclass

import casadi as ca
import numpy as np

import torsor
from bench.instructions import count_instructions
from bench.measure import STATES, best_batch, robots, states
from torsor.compiler import count_operations
from torsor.compiler.llvm.target import host


@dataclass(frozen=True)
class Limit:
    """The distance of a robot's inverse dynamics from the machine limit.

    ``operations`` is the number of additions and multiplications for one state. ``instructions`` is the number of all
    instructions for a block of W states, and ``arithmetic`` that of the floating-point instructions among them (sin and
    cos included). ``reached`` is the rate of arithmetic as a fraction of the peak rate.

    Example:
        >>> Limit("UR5", 277, 1039, 296, 0.5).reached
        0.5
        >>> Limit("UR5", 277, 1039, 296, 2.3)
        Traceback (most recent call last):
        RuntimeError: UR5: 230% of the peak rate; allowed: at most 100%; fix: check the count of instructions \
on this processor, and that nothing else runs on it
    """

    robot: str
    operations: int
    instructions: int
    arithmetic: int
    reached: float

    def __post_init__(self) -> None:
        if not 0 < self.reached <= 1:
            fix = "check the count of instructions on this processor, and that nothing else runs on it"
            found = f"{self.robot}: {self.reached:.0%} of the peak rate"
            raise RuntimeError(f"{found}; allowed: at most 100%; fix: {fix}")


def limits() -> list[Limit]:
    """Return the limits of the robots with a fixed base."""
    rate, width, found = _peak(), host().width("float64"), []
    for title, path, base in robots():
        if base == "fixed":
            robot = torsor.load(path).without_friction()
            function = robot.function("inverse_dynamics")
            kernel, tau = torsor.compile(function), np.empty((STATES, robot.nv))
            seconds = best_batch(kernel, states(robot), tau) / STATES * width
            count, operations = count_instructions(function, host()), count_operations(function).arithmetic
            found.append(Limit(title, operations, count.total, count.arithmetic, count.arithmetic / seconds / rate))
    return found


def _peak() -> float:
    """Return the peak rate of arithmetic instructions (1/s): the better of two kernels that do little else."""
    x = ca.SX.sym("x", 8)
    rates = []
    for result in (_fused_chains(x), _sums_of_products(x)):
        function = ca.Function("peak", [x], [result])
        kernel, given, out = torsor.compile(function), np.full((STATES, 8), 0.5), np.empty(STATES)
        seconds = best_batch(kernel, (given,), out) / STATES * host().width("float64")
        rates.append(count_instructions(function, host()).arithmetic / seconds)
    return max(rates)


def _fused_chains(x: ca.SX) -> ca.SX:
    """Return the sum of many short chains of fused products and sums, which are independent of each other."""
    chains = [x[0] + k for k in range(100)]
    for _ in range(10):
        chains = [chain * x[1] + x[2] for chain in chains]
    return ca.sum1(ca.vertcat(*chains))


def _sums_of_products(x: ca.SX) -> ca.SX:
    """Return a sum of sums of random products, pair by pair.

    On AArch64 fused products and sums overwrite an operand, so that chains need copies, and this is faster.
    """
    picks = np.random.default_rng(0).integers(0, 8, (180, 6, 2)).tolist()
    sums = [ca.sum1(ca.vertcat(*(x[i] * x[j] for i, j in pairs))) for pairs in picks]
    while len(sums) > 1:
        sums = [ca.sum1(ca.vertcat(*sums[k : k + 2])) for k in range(0, len(sums), 2)]
    return sums[0]

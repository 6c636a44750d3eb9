"""The model in an FMU: robot functions of one vector x, whose components are FMU variables.

    x = (parameters, inputs, states)        z = (rates of the states, outputs)

Forward dynamics has the inputs tau and wrenches, and the states q and v. The rates of q are the derivatives of its
components, including quaternions. With closed loops, the first parameter is the closing rate. Inverse dynamics has no
states: q, v and a are inputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import casadi as ca
import numpy as np

from torsor.dynamics import ALGORITHMS, Tree, lean
from torsor.dynamics.loops import constrained
from torsor.dynamics.recursions.newton_euler import joint_wrenches
from torsor.dynamics.requests import pulled, pushed
from torsor.dynamics.trees.imposed import impose, touched
from torsor.export.fmu.settings import Settings
from torsor.export.fmu.variables import STEP, Variable, variables_of
from torsor.robot.robot import Robot
from torsor.simulation.dynamics import position_rate

# Robots with closed loops in an FMU: accelerations, reactions, and projection on the closed loops after a step.
#
# The equations are those of ``simulate``: Lagrange multipliers of independent closure equations and, in co-simulation,
# a projection of the state at the end of each step (``dynamics/loops/constrained.py``). The equations are selected
# once, for the start state in the file. In model exchange, where the importer integrates, closure errors decay at the
# rate ``closing`` (Baumgarte stabilisation).


@dataclass(frozen=True, eq=False)
class Loops:
    """A robot with closed loops and the closure equations selected in its initial state.

    Arguments are symbols by name: p, closing, tau, external (L x 6), q and v.
    """

    robot: Robot
    settings: Settings

    @cached_property
    def choice(self) -> constrained.ClosureChoice:
        """The independent closure equations."""
        return self.robot.closed.closure.independent_near(np.array(self.settings.q0))

    def acceleration(self, given: Mapping[str, ca.SX]) -> ca.SX:
        """Return the accelerations (nv x 1) of all coordinates."""
        tree, (q, v, tau) = self._tree(given), (given[name] for name in ("q", "v", "tau"))
        return constrained.closed_forward_dynamics(tree, q, v, tau, self.choice, given["external"], given["closing"])

    def joint_wrenches(self, given: Mapping[str, ca.SX]) -> ca.SX:
        """Return the wrench (L x 6) that each parent exerts on its link, for accelerations a."""
        tree, (q, v, tau) = self._tree(given, whole=True), (given[name] for name in ("q", "v", "tau"))
        multipliers = constrained.closed_loop_forces(tree, q, v, tau, self.choice, given["external"])
        loads = given["external"] + constrained.loop_loads(tree, q, multipliers)
        return joint_wrenches(tree, q, v, given["a"], loads)

    def closed(self, given: Mapping[str, ca.SX], q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the closed state (nq + nv) nearest to the end (q, v) of a step, and the margin of the equations."""
        q, v, margin = constrained.projected_end(self._tree(given), given["q"], q, v, self.choice)
        return ca.vertcat(q, v), margin

    def _tree(self, given: Mapping[str, ca.SX], whole: bool = False) -> Tree:
        """Return the tree with symbolic parameters, simplified unless ``whole``, which wrenches require."""
        tree, free = Tree.of(self.robot), self.settings.free
        if not whole:
            tree = lean(tree, touched(self.robot, free)) if free else lean(tree)
        return impose(tree, self.robot, free, given["p"]) if free else tree


@dataclass(frozen=True, eq=False)
class Model:
    """A robot and its settings as FMU variables and functions."""

    robot: Robot
    settings: Settings

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, by value reference."""
        return variables_of(self.robot, self.settings)

    @cached_property
    def loops(self) -> Loops | None:
        """The closed loops of the robot, or None."""
        return Loops(self.robot, self.settings) if self.robot.loops else None

    def first(self, *kinds: str) -> int:
        """Return the first value reference of these kinds, excluding the step, or one past the end if there is none."""
        at = (k for k, each in enumerate(self.variables) if each.kind in kinds and each.name != STEP)
        return next(at, len(self.variables))

    @property
    def x(self) -> int:
        """The first value reference of x."""
        return self.first("parameter", "input")

    @property
    def z(self) -> int:
        """The first value reference of z."""
        return self.first("rate", "output")

    @cached_property
    def functions(self) -> dict[str, ca.Function]:
        """The C functions: rates(x), outputs(x, rates), tangent(x, d_x), adjoint(x, bar_z) and the charts of q.

        For closed loops, there is also closed(x, end), which returns the end state of a step from x, projected onto
        the closed loops, and a margin.
        """
        x = ca.SX.sym("x", self.z - self.x)
        rates, functions = self._rates(x), dict[str, ca.Function]()
        known = ca.SX.sym("rates", rates.size1())
        outputs = self._outputs(x, known)
        if not self.settings.inverse:
            functions |= {name: self.robot.function(name) for name in ("chart", "chart_rate")}
            functions["rates"] = _function("rates", {"x": x}, {"rates": rates})
        if self.loops is not None:
            end, nq = ca.SX.sym("end", self.robot.nq + self.robot.nv), self.robot.nq
            state, margin = self.loops.closed(self._given(x), end[:nq], end[nq:])
            functions["closed"] = _function("closed", {"x": x, "end": end}, {"closed": state, "margin": margin})
        if outputs.size1():
            functions["outputs"] = _function("outputs", {"x": x, "rates": known}, {"outputs": outputs})
        z = ca.vertcat(rates, ca.substitute(outputs, known, rates))
        tangents, changes = pushed({"x": x}, {"z": z}, {})
        functions["tangent"] = _function("tangent", {"x": x} | tangents, changes)
        weights, gradients = pulled({"x": x}, {"z": z}, {})
        functions["adjoint"] = _function("adjoint", {"x": x} | weights, gradients)
        return functions

    @cached_property
    def pattern(self) -> list[list[int]]:
        """For each component of z, the value references of the components of x on which it depends."""
        x = ca.SX.sym("x", self.z - self.x)
        rates = self._rates(x)
        z = ca.Function("z", [x], [ca.vertcat(rates, self._outputs(x, rates))])
        pattern: list[list[int]] = [[] for _ in range(z.size1_out(0))]
        for row, column in zip(*z.jac_sparsity(0, 0).get_triplet(), strict=True):
            pattern[row].append(self.x + column)
        return [sorted(each) for each in pattern]

    def _given(self, x: ca.SX) -> dict[str, ca.SX]:
        """Return the algorithm arguments contained in x, by name."""
        robot, settings = self.robot, self.settings
        sizes = {"closing": 1} if robot.loops else {}
        sizes |= {"p": len(settings.free)}
        if settings.inverse:
            sizes |= {"q": robot.nq, "v": robot.nv, "a": robot.nv, "external": 6 * len(settings.external)}
        else:
            sizes |= {"tau": robot.nv, "external": 6 * len(settings.external), "q": robot.nq, "v": robot.nv}
        ends = np.cumsum([0, *sizes.values()]).tolist()
        arguments = {name: x[start:end] for name, (start, end) in zip(sizes, pairwise(ends), strict=True)}
        loads = ca.SX.zeros(len(robot.links), 6)
        for k, link in enumerate(settings.external):
            loads[link, :] = arguments["external"][6 * k : 6 * k + 6].T
        return arguments | {"external": loads}

    def _call(self, given: Mapping[str, ca.SX], name: str, place: str | None = None) -> ca.SX:
        """Return the result of an algorithm; with closed loops, dynamics and reactions are constrained."""
        if self.loops is not None and name in ("forward_dynamics", "joint_wrenches"):
            return self.loops.joint_wrenches(given) if name == "joint_wrenches" else self.loops.acceleration(given)
        robot = self.robot.parametric(self.settings.paths) if self.settings.free else self.robot
        loaded = bool(self.settings.external) and ALGORITHMS[name].external
        function = robot.function(name, place, external=loaded)
        return function(*(given[each] for each in function.name_in()))

    def _rates(self, x: ca.SX) -> ca.SX:
        """Return the rates of q and v."""
        if self.settings.inverse:
            return ca.SX(0, 1)
        arguments = self._given(x)
        q_rate, a = position_rate(self.robot, arguments["q"], arguments["v"]), self._call(arguments, "forward_dynamics")
        return ca.densify(ca.vertcat(q_rate, a))

    def _outputs(self, x: ca.SX, rates: ca.SX) -> ca.SX:
        """Return the outputs that are neither states nor rates."""
        arguments, parts = self._given(x), [ca.SX(0, 1)]
        if self.settings.inverse:
            parts.append(self._call(arguments, "inverse_dynamics"))
        else:
            arguments["a"] = rates[self.robot.nq :]
        results: dict[tuple[str, str | None], ca.SX] = {}
        for output in self.settings.outputs:
            key = output.name, output.place if output.quantity.at == "place" else None
            if key not in results:
                results[key] = self._call(arguments, *key)
            parts.append(output.row(self.robot, results[key]))
        return ca.densify(ca.vertcat(*parts))


def _function(name: str, inputs: Mapping[str, ca.SX], outputs: Mapping[str, ca.SX]) -> ca.Function:
    results = ca.cse([ca.densify(each) for each in outputs.values()])
    return ca.Function(name, list(inputs.values()), results, list(inputs), list(outputs))

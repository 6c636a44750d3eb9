"""The symbolic quantities of one node, from which terms build their expressions, and their derivatives.

The inputs of a node are u = (y, y', y'', y''', T, numbers): profiles and their time derivatives, the duration of the
phase, and the shared numbers. Forces are separate symbols, whose derivatives are computed by the recursions of
``dynamics``. For terms f(u, tau) and J = d tau/du,

    df  = f_u + f_tau J
    d2f = f_uu + f_u,tau J + (...)^T + J^T f_tau,tau J + the Hessian of (f_tau . tau) at constant f_tau
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, compress, pairwise
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.dynamics import fingerprint
from torsor.dynamics.recursions.kinematics import sx
from torsor.motion.transcription.motion_model import ORDERS, MotionModel
from torsor.motion.transcription.phase import EVEN_CLOCK, Clock
from torsor.robot.robot import Robot
from torsor.spatial import cross


class _Derivatives(NamedTuple):
    """Derivatives of values (m x 1) with respect to u (m x u), and the Hessian (u x u) of weights . values."""

    jacobian: ca.SX
    hessian: Callable[[ca.SX], ca.SX]


@dataclass(frozen=True, eq=False)
class _Quantity:
    """A quantity with a symbol (m x 1) and ``orders`` of profiles; its expression is built on demand."""

    symbol: ca.SX
    orders: int
    compute: Callable[[], ca.SX]
    differentiate: Callable[[], _Derivatives]

    @cached_property
    def value(self) -> ca.SX:
        """The expression of the values."""
        return self.compute()

    @cached_property
    def derivatives(self) -> _Derivatives:
        """The derivatives of the values."""
        return self.differentiate()


class Node:
    """The symbolic quantities at one time of a phase, as CasADi SX columns.

    - ``q``, ``v``, ``a``, ``j``: positions, velocities, accelerations and jerks of all coordinates
    - ``y``: the profiles and their time derivatives; ``profile`` returns them by name
    - ``s``: the elapsed fraction of the phase; ``T``: its duration (s); ``t``: the time since its start (s)
    - ``shared``: the numbers of the problem by name, of which ``held`` have fixed values
    - ``data(name, count)`` and ``given(values)``: numbers of terms that can change without compilation
    - ``tau``, ``tau_rate``: forces and their rates, of the coordinates ``force_names`` with ``force_velocities``
    - ``pose(place)`` (4 x 4), ``position(place)``, ``velocity(place)`` (omega, v, in local axes), ``jerk(place)`` and
      ``jacobian(place)`` of links and frames
    - ``wrenches()``: the joint reactions

    ``call`` evaluates any algorithm of the robot, and ``rate`` returns time derivatives.

    Example:
        >>> node = Node(MotionModel(torsor.library.two_link()))
        >>> node.tau.shape, node.position("link2").shape, node.force_names
        ((2, 1), (3, 1), ('joint1', 'joint2'))
    """

    def __init__(
        self,
        model: MotionModel,
        shared: Sequence[str] = (),
        held: Iterable[str] = (),
        clock: Clock = EVEN_CLOCK,
    ):
        self.model, count = model, len(model.names)
        self.clock = clock
        self.y = [ca.SX.sym(f"y_{order}", count) for order in range(ORDERS)]
        self.T, self.s = ca.SX.sym("T"), ca.SX.sym("s")
        self.shared = {name: ca.SX.sym(name) for name in (*model.parameters, *shared)}
        self.held = tuple(held)
        self.all_data: dict[tuple[str, int], ca.SX] = {}
        self.all_given: list[tuple[ca.SX, Array]] = []
        self.Q = ca.SX.sym("Q", model.robot.nq) if model.is_closed else None
        self.path_numbers = ca.SX.sym("path", 0 if model.path is None else model.path.numbers.size)
        self.rates = self._timed()
        self.q, self.v, self.a, self.j = model.motion(self.rates, self.Q, self.path_numbers)
        self._quantities: dict[str, _Quantity] = {}
        self._known: dict[Any, Any] = {}

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.model.robot

    @property
    def t(self) -> ca.SX:
        """Time since the start of the phase (s)."""
        return self.time_fraction * self.T

    @cached_property
    def time_fraction(self) -> ca.SX:
        """The elapsed fraction of the duration, which is s unless the phase has a clock."""
        return self._clock(0)

    @cached_property
    def clock_rate(self) -> ca.SX:
        """The derivative of the time fraction with respect to s."""
        return self._clock(1)

    def _clock(self, order: int) -> ca.SX:
        return self.clock.derivative(self.s, self._column(self.clock.names), order)

    def _timed(self) -> list[ca.SX]:
        """Return profiles and their time derivatives; ``y`` are derivatives with respect to s T."""
        if not self.clock.harmonics:
            return self.y
        result, inverse = [self.y[0]], 1 / self.clock_rate  # products are faster than quotients
        for _ in range(1, ORDERS):
            result.append(self._by_even_time(result[-1]) * inverse)
        return result

    def _by_even_time(self, expression: ca.SX) -> ca.SX:
        """Return the derivative of an expression of y and s with respect to s T."""
        parts = (ca.jtimes(expression, self.y[k], self.y[k + 1]) for k in range(ORDERS - 1))
        return sum(parts, start=ca.jtimes(expression, self.s, 1 / self.T))

    @cached_property
    def numbers(self) -> ca.SX:
        """The shared numbers that are variables, as one column, with free parameters of the robot first."""
        return self._column(name for name in self.shared if name not in self.held)

    @cached_property
    def problem_numbers(self) -> ca.SX:
        """Fixed numbers of the problem as one column: the fixed shared numbers and those of the path."""
        return ca.vertcat(self._column(self.held), self.path_numbers)

    def _column(self, names: Iterable[str]) -> ca.SX:
        return ca.vertcat(ca.SX(0, 1), *map(self.shared.__getitem__, names))

    def data(self, name: str, count: int) -> ca.SX:
        """Return time-dependent values (count x 1) of a term (``Term.data``); changes need no recompilation."""
        if (name, count) not in self.all_data:
            self.all_data[name, count] = ca.SX.sym(name, count)
        return self.all_data[name, count]

    def given(self, values: ArrayLike, keep_zeros: bool = False) -> ca.SX:
        """Return time-independent numbers of a term as inputs of the kernels.

        Changed values need no recompilation. With ``keep_zeros``, zeros are constants, which saves operations, but
        kernels are compiled for each pattern of zeros.
        """
        numbers = ca.DM(np.asarray(values, dtype=float))
        numbers = ca.sparsify(numbers) if keep_zeros else numbers
        symbols = ca.SX.sym(f"given_{len(self.all_given)}", numbers.nnz())
        self.all_given.append((symbols, np.array(numbers.nonzeros())))
        return ca.SX(numbers.sparsity(), symbols)

    def given_numbers(self, first: int = 0) -> tuple[ca.SX, Array]:
        """Return the symbols of ``given`` numbers as one column, and their values, without the ``first`` calls."""
        parts = self.all_given[first:]
        symbols = ca.vertcat(ca.SX(0, 1), *(symbols for symbols, _ in parts))
        return symbols, np.concatenate([np.zeros(0), *(values for _, values in parts)])

    @cached_property
    def _parameters(self) -> ca.SX:
        return self._column(self.model.parameters)

    def call(self, name: str, *values: ca.SX, **options: Any) -> Any:
        """Return a robot algorithm (see ``Robot.function``) applied to symbols."""
        return self.model.call(name, *values, p=self._parameters, **options)

    def profile(self, name: str, order: int = 0) -> ca.SX:
        """Return a profile by name, or its time derivative of order ``order``."""
        return self.rates[order][self.model.names.index(name)]

    @property
    def force_names(self) -> tuple[str, ...]:
        """Coordinate names of ``tau``: all coordinates or, with closed loops, the active ones."""
        return self.robot.active if self.model.is_closed else self.robot.coordinate_names

    @property
    def force_velocities(self) -> ca.SX:
        """Velocities v of the coordinates of ``tau``; tau . v is the power."""
        if not self.model.is_closed:
            return self.v
        return self.v[[self.robot.coordinate_names.index(name) for name in self.robot.active]]

    @property
    def symbols(self) -> ca.SX:
        """All symbols on which expressions of a node may depend."""
        quantity_symbols = [quantity.symbol for quantity in self._quantities.values()]
        parameters = [self.problem_numbers, self.given_numbers()[0], *self.all_data.values()]
        return ca.vertcat(self.u, self.s, *([] if self.Q is None else [self.Q]), *parameters, *quantity_symbols)

    @cached_property
    def identity(self) -> str:
        """A hash of the robot and of the motion as a function of the inputs of a node."""
        inputs = [*self.y, self.T, self.s, self.numbers, self.problem_numbers, *([] if self.Q is None else [self.Q])]
        motion = ca.Function("motion", inputs, [self.q, self.v, self.a, self.j]).serialize()
        model = self.model.source
        return fingerprint(self.robot, () if isinstance(model, Robot) else model.paths, motion)

    # Robot quantities

    @property
    def tau(self) -> ca.SX:
        """Forces (nv x 1) of all coordinates (N m, N); with closed loops, of the active ones (N x 1)."""
        if self.Q is not None:
            return self._compute("constrained_inverse_dynamics", *self._driving(self.Q))
        if self._is_free:
            return self._compute("inverse_dynamics", self.q, self.v, self.a)
        return self._quantity("tau", 3, lambda: self.call("inverse_dynamics", self.q, self.v, self.a), self._forces)

    @property
    def tau_rate(self) -> ca.SX:
        """Force rates (N m/s, N/s)."""
        if self.Q is not None:
            J = self.call("constrained_inverse_dynamics_derivatives", *self._driving(self.Q))
            closed: ca.SX = ca.horzcat(*J) @ ca.vertcat(*(rate[: self.model.names.moving] for rate in self.rates[1:]))
            return closed
        if self._is_free:
            rates: ca.SX = self.call("force_rate", self.q, self.v, self.a, self.j)[1]
            return rates
        state = self.q, self.v, self.a, self.j
        return self._quantity("tau_rate", 4, lambda: self.call("force_rate", *state)[1], self._force_rates)

    @cached_property
    def _is_free(self) -> bool:
        """Whether robot parameters, on which forces depend, are variables."""
        return not set(self.model.parameters).issubset(self.held)

    def rate(self, expression: ca.SX) -> ca.SX:
        """Return the time derivative of an expression of profiles up to accelerations."""
        before = self.value(expression)
        if self.clock.harmonics:
            result = self._by_even_time(before) / self.clock_rate
        else:
            result = sum((ca.jtimes(before, self.y[k], self.y[k + 1]) for k in range(ORDERS - 1)), start=ca.SX(0))
        if self.Q is not None:
            result += ca.jtimes(before, self.Q, self._loop_jacobian @ self.rates[1])
        return result

    def pose(self, place: str) -> ca.SX:
        """Return the pose (4 x 4) of a link or frame in base axes."""
        return self._once(("pose", place), lambda: self._pose(place))

    def _pose(self, place: str) -> ca.SX:
        link, within = self.robot.place(place)
        if link < 0:
            return sx(within)
        # All links are computed together, because terms use many of them.
        link_pose = self._compute("poses", self.q)[4 * link : 4 * link + 4, :]
        return link_pose if np.array_equal(within, np.eye(4)) else link_pose @ sx(within)

    def position(self, place: str) -> ca.SX:
        """Return the position (3 x 1) of the origin of a link or frame, in base axes."""
        return self.pose(place)[:3, 3]

    def velocity(self, place: str) -> ca.SX:
        """Return the twist (omega, v) (6 x 1) of a link or frame at its origin, in local axes."""
        return self._once(("velocity", place), lambda: self._velocity(place))

    def _velocity(self, place: str) -> ca.SX:
        link, within = self.robot.place(place)
        if link < 0:
            return ca.SX.zeros(6, 1)
        V = self._compute("velocities", self.q, self.v)[link, :].T
        if np.array_equal(within, np.eye(4)):
            return V
        R, p = sx(within[:3, :3]), sx(within[:3, 3])
        return ca.vertcat(R.T @ V[:3], R.T @ (V[3:] + cross(V[:3], p)))

    def jerk(self, place: str) -> ca.SX:
        """Return the jerk (6 x 1) of a link or frame (see ``robot.task.jerk``)."""
        return self._compute("jerk", self.q, self.v, self.a, self.j, place=place)

    def jacobian(self, place: str) -> ca.SX:
        """Return the Jacobian (6 x N) of a link or frame with respect to the moving profiles, in base axes."""
        R, rates = self.pose(place)[:3, :3], self.y[1][: self.model.names.moving]
        result: ca.SX = ca.diagcat(R, R) @ ca.jacobian(self.velocity(place), rates)
        return result * self.clock_rate if self.clock.harmonics else result

    def wrenches(self) -> ca.SX:
        """Return the joint reactions (L x 6): the wrenches exerted by parents on their links, in link axes."""
        if self.Q is not None:
            return self._compute("constrained_joint_wrenches", *self._driving(self.Q))
        return self._compute("joint_wrenches", self.q, self.v, self.a)

    def _driving(self, Q: ca.SX) -> tuple[ca.SX, ...]:
        moving = self.model.names.moving
        return Q, self.rates[1][:moving], self.rates[2][:moving], ca.SX.ones(moving, 1)

    def _compute(self, name: str, *values: ca.SX, **options: Any) -> ca.SX:
        """Return the result of an algorithm for the motion of this node, which all terms share."""
        return self._once((name, *options.values()), lambda: self.call(name, *values, **options))

    def _once(self, key: tuple[Any, ...], make: Callable[[], ca.SX]) -> ca.SX:
        """Return the expression of a key, which all terms share."""
        if key not in self._known:
            self._known[key] = make()
        result: ca.SX = self._known[key]
        return result

    # Derivatives

    def _quantity(
        self, name: str, orders: int, compute: Callable[[], ca.SX], differentiate: Callable[[], _Derivatives]
    ) -> ca.SX:
        if name not in self._quantities:
            self._quantities[name] = _Quantity(ca.SX.sym(name, self.robot.nv), orders, compute, differentiate)
        return self._quantities[name].symbol

    def orders(self, expression: ca.SX) -> int:
        """Return the number of profile orders in an expression; 1 means positions only."""
        quantities = self._quantities.values()
        are_used = self.uses(expression, [*self.y, *(quantity.symbol for quantity in quantities)])
        used_orders = compress([*range(1, ORDERS + 1), *(quantity.orders for quantity in quantities)], are_used)
        # With closed loops, second derivatives of positions contain accelerations.
        result: int = max([1 if self.Q is None else 3, *used_orders])
        return result

    @cached_property
    def u(self) -> ca.SX:
        """The inputs u, with respect to which terms are differentiated."""
        return ca.vertcat(*self.y, self.T, self.numbers)

    @cached_property
    def _loop_jacobian(self) -> ca.SX:
        return ca.SX(0, 0) if self.Q is None else self.model.follow(self.Q, self.y[1])

    def _by_u(self, expression: ca.SX) -> ca.SX:
        """Return the Jacobian of a column with respect to u, including the dependence of closed loops on profiles."""
        if self.Q is None:
            return ca.jacobian(expression, self.u)
        n, count = self.y[0].numel(), self.u.numel()
        follow = ca.horzcat(self._loop_jacobian, ca.SX(self.Q.numel(), count - n))
        both, along = ca.vertcat(self.u, self.Q), ca.vertcat(ca.SX.eye(count), follow)
        if expression.numel() < count:  # reverse mode is faster for few rows
            return ca.jacobian(expression, both) @ along
        return ca.jtimes(expression, both, along)

    def _forces(self) -> _Derivatives:
        state = self.q, self.v, self.a
        w = ca.vertcat(*state)
        W = self._by_u(w)
        J = ca.horzcat(*self.call("inverse_dynamics_derivatives", *state))

        def hessian(weights: ca.SX) -> ca.SX:
            H: ca.SX = self.call("inverse_dynamics_hessian", *state, weights)
            return W.T @ H @ W + self._curvature(w, J.T @ weights)

        return _Derivatives(J @ W, hessian)

    def _force_rates(self) -> _Derivatives:
        """Return the derivatives of force rates J w': d(J w') = (dJ/dw w') dw + J dw' with w = (q, v, a)."""
        n, state = self.robot.nv, (self.q, self.v, self.a)
        names = [ca.SX.sym(name, n) for name in "qvaj"]
        w, w_rate, weights = ca.vertcat(*names[:3]), ca.vertcat(*names[1:]), ca.SX.sym("weights", n)
        J = ca.horzcat(*self.call("inverse_dynamics_derivatives", *names[:3]))
        H = self.call("inverse_dynamics_hessian", *names[:3], weights)
        shift = ca.horzcat(ca.SX(3 * n, n), ca.SX.eye(3 * n))  # from (q, v, a, j) to w'
        wide = ca.horzcat(ca.SX.eye(3 * n), ca.SX(3 * n, n))
        along = ca.reshape(ca.jtimes(ca.vec(ca.densify(J)), w, w_rate), *J.shape) @ wide + J @ shift
        turned = ca.reshape(ca.jtimes(ca.vec(ca.densify(H)), w, w_rate), *H.shape)
        second = wide.T @ turned @ wide + wide.T @ H @ shift + shift.T @ H @ wide
        made = ca.Function("rates", [*names, weights], [along, second])
        all_, values = ca.vertcat(*state, self.j), [*state, self.j]
        W = self._by_u(all_)

        jacobian: ca.SX = made(*values, ca.SX.zeros(n, 1))[0]

        def hessian(weights: ca.SX) -> ca.SX:
            return W.T @ made(*values, weights)[1] @ W + self._curvature(all_, jacobian.T @ weights)

        return _Derivatives(jacobian @ W, hessian)

    def _curvature(self, w: ca.SX, weights: ca.SX) -> ca.SX:
        """Return the Hessian of weights . w with respect to u; it is zero without a path, where w is linear."""
        constant = ca.SX.sym("constant", weights.numel())
        jacobian = ca.jacobian(constant.T @ w, self.u)
        return ca.substitute(ca.jacobian(jacobian.T, self.u), constant, ca.densify(weights))

    def value(self, expression: ca.SX) -> ca.SX:
        """Return an expression with quantity symbols replaced by their values."""
        for quantity in self.quantities_in(expression):
            expression = ca.substitute(expression, quantity.symbol, quantity.value)
        return expression

    def derivatives(self, expression: ca.SX, direct: bool = False) -> ca.SX:
        """Return the Jacobian (rows x u) of a column; ``direct`` uses only CasADi's rules."""
        if direct:
            return self._by_u(self.value(expression))
        total = self._by_u(expression)
        for quantity in self.quantities_in(expression):
            total += ca.jacobian(expression, quantity.symbol) @ quantity.derivatives.jacobian
        return self.value(total)

    def second_derivatives(self, expression: ca.SX, direct: bool = False) -> ca.SX:
        """Return the Hessian (u x u) of a scalar; ``direct`` uses only CasADi's rules."""
        if direct:
            return self._by_u(self._by_u(self.value(expression)).T)
        used = self.quantities_in(expression)
        total = self._by_u(self._by_u(expression).T)
        if used:
            Y = ca.vertcat(*(quantity.symbol for quantity in used))
            J = ca.vertcat(*(quantity.derivatives.jacobian for quantity in used))
            by_Y = ca.jacobian(expression, Y).T
            cross = self._by_u(by_Y).T @ J
            total += cross + cross.T + J.T @ ca.jacobian(by_Y, Y) @ J
            for quantity, weights in zip(used, ca.vertsplit(by_Y, self.robot.nv), strict=True):
                total += quantity.derivatives.hessian(weights)
        return self.value(total)

    def quantities_in(self, expression: ca.SX) -> list[_Quantity]:
        """Return the quantities with recursive derivatives on which an expression depends."""
        quantities = self._quantities.values()
        return list(compress(quantities, self.uses(expression, [quantity.symbol for quantity in quantities])))

    def uses(self, expression: ca.SX, symbols: Sequence[ca.SX]) -> list[bool]:
        """Return flags of the symbol columns on which an expression depends."""
        if not symbols:
            return []
        depends = ca.which_depends(expression, ca.vertcat(*symbols), 1, False)
        ends = [0, *accumulate(map(ca.SX.numel, symbols))]
        return [True in depends[first:last] for first, last in pairwise(ends)]

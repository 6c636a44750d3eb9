"""Environments for training policies: many episodes of one robot, stepped together by actions at a control rate.

All states stay on the device of the robot. Between two actions, the kernel of a fixed step (``fixed_step``) is called
several times. A second kernel then evaluates reward, end and observation, and a third one replaces the states of ended
episodes (``episodes``). Nothing waits for the GPU.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Shape
from torsor.base.checks import known_name, one_of, positive, whole_number
from torsor.base.errors import ModelError
from torsor.compiler import AnyKernel
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot
from torsor.simulation.contact import Contact
from torsor.simulation.episodes import (
    CONTACT,
    EXTERNAL,
    NUMBERS,
    OWN,
    PULLED,
    STATE,
    UNREAD_AT_ZERO,
    Episodes,
    Gradients,
    Outcome,
    defaults_of,
    law_of,
    rows_of,
    traced_by_name,
)
from torsor.simulation.fixed_step import FixedStep, with_inputs
from torsor.simulation.frameworks import TorchEnvironments, gymnasium_environment
from torsor.simulation.inputs import Source
from torsor.simulation.methods import STEPS
from torsor.simulation.setup import WHOLE, method_of

_RESULTS = {name: f"{name}_next" for name in ("q", "v", "action", "observation")}
_RESULTS |= {name: name for name in ("reward", "final_observation")}


class Environments:
    """Episodes of ``count`` robots that are stepped together, each with its own state and data.

    ``controller`` converts actions into forces. It is ``control.drives`` with a constant reference, to which the action
    (n) of the n drives is added, or a ``casadi.Function`` with an input ``action`` that returns tau (nv).
    ``observation`` (a vector), ``reward`` and ``stop`` (numbers) are ``casadi.Function`` objects. Their inputs are
    chosen by name: ``t`` (s since the start of the episode), ``q``, ``v``, ``action`` (the last one, which led to q and
    v, or 0 at the start), ``previous_action`` (the one before), and names of data. An episode terminates once ``stop``
    is negative, or if its motion diverges; it is truncated after ``duration`` (s).

    ``starts`` {name: array (rows, ...)} are initial ``q`` and ``v`` (by default the robot's posture, at rest) and data
    with any name, such as commands. Environment i begins with row i modulo rows, or with a random row if there is a
    ``seed``. Each new episode uses another row. The step reads data with these names: ``friction``, ``stiffness``,
    ``relaxation``, ``restitution``, ``dissipation`` and ``slip``, if ``contact`` has them and is included in the step
    (hard contact, or compliant contact with drives or ``method="linearly_implicit"``); ``kp``, ``kd`` and ``reference``
    of drives (rows, n), whose defaults are those of ``controller``; wrenches ``external`` (rows, L, 6); and the
    parameters ``p`` (rows, k) of a parametric robot, such as masses (``robot.parametric``), whose defaults are their
    original values.

    Actions are ``period`` (s) apart, in which steps are no longer than ``step`` (s). For ``contact`` and ``method`` see
    ``rollout``. Arrays have the device and the dtype of the robot (``robot.to``).

    Example:
        >>> q, action = ca.SX.sym("q", 2), ca.SX.sym("action", 2)
        >>> arms = Environments(
        ...     torsor.library.two_link(),
        ...     count=2,
        ...     controller=ca.Function("torque", [action], [action], ["action"], ["tau"]),
        ...     observation=ca.Function("angles", [q], [q], ["q"], ["observation"]),
        ...     reward=ca.Function("distance", [q], [-ca.norm_2(q)], ["q"], ["reward"]),
        ...     starts={"q": np.array([[0.0, 0.0], [3.0, 4.0]])},
        ... )
        >>> arms.step(np.zeros((2, 2))).reward.tolist()
        [-0.0, -5.0]
    """

    def __init__(
        self,
        robot: Robot | Parametric[Robot],
        count: int,
        controller: Any,
        *,
        observation: ca.Function,
        reward: ca.Function,
        stop: ca.Function | None = None,
        starts: Mapping[str, Any] | None = None,
        contact: Contact | None = None,
        method: str = "rk4",
        step: float = 2e-3,
        period: float = 0.02,
        duration: float = 20.0,
        seed: int | None = None,
    ):
        robot, free = with_inputs(robot)
        where = robot.name
        self.robot, self.count = robot, whole_number(count, where, "count")
        self.period, self.duration = positive(period, where, "period"), positive(duration, where, "duration")
        self._steps = max(1, math.ceil(self.period / positive(step, where, "step") - WHOLE))
        one_of(method, tuple(STEPS), where, "method")
        method = method_of(robot, method, hasattr(controller, "gains"), contact)
        defaults = defaults_of(robot, controller, contact, method, free)
        rows, choice = rows_of(robot, {} if starts is None else starts, defaults, contact)
        drawn: dict[str, Shape] = {name: array.shape[1:] for name, array in rows.items()}
        shapes = (
            {"t": ()} | {name: () if name in CONTACT else each.shape[-1:] for name, each in defaults.items()} | drawn
        )

        law, self._gains, self._reads_time = law_of(robot, controller, shapes)
        self._held = [EXTERNAL] if EXTERNAL in drawn else []
        self._parameters = [name for name in CONTACT if name in defaults]
        self._numbers = [NUMBERS] if free else []
        self._unread = [name for name in UNREAD_AT_ZERO if contact is not None and not getattr(contact, name)]
        wrenches = Source(array=np.zeros(drawn[EXTERNAL])) if self._held else Source()
        self._step = FixedStep.of(robot, method, law, wrenches, contact, choice, free=free)

        shapes |= dict.fromkeys(("action", "previous_action"), self._gains["action"])
        given = {"observation": (observation, None), "reward": (reward, 1), "stop": (stop, 1)}
        functions = {
            name: traced_by_name(robot, function, name, shapes, size)
            for name, (function, size) in given.items()
            if name != "stop" or stop is not None
        }
        pool = np.concatenate([each.reshape(len(each), -1) for each in rows.values()], axis=1)
        shapes |= dict.fromkeys(OWN, ()) | {"q_start": (robot.nq,), "v_start": (robot.nv,), "fresh": pool.shape[1:]}
        shapes |= dict.fromkeys(("observation", "final_observation"), (functions["observation"].size1_out(0),))
        periods = max(1, math.ceil(self.duration / self.period - WHOLE))
        self._episodes = Episodes(robot, functions, drawn, shapes, self.period, periods, len(pool))
        self._kernels = self._step.kernel, self._episodes.outcome, self._episodes.restart

        self._dtype, xp = robot.target.dtype, getattr(self._kernels[0], "xp", np)
        self.xp, self._pool = xp, xp.asarray(pool, self._dtype)
        self._shapes: dict[str, Shape] = shapes
        self._h = xp.asarray(np.array(self.period / self._steps, self._dtype))
        names = dict.fromkeys(("periods", "row", "diverged", "action", "observation", *drawn, *defaults))
        self._state = {name: self._zeros(name) for name in names}
        for name, array in defaults.items():
            self._state[name][...] = xp.asarray(array, self._dtype)
        self.reset(seed=seed)

    def __repr__(self) -> str:
        steps = f"{self._steps} x {self.period / self._steps:.6g} s per action"
        return f"<Environments of {self.robot.name!r}: {self.count}, {steps}, {self.duration:.6g} s>"

    @property
    def q(self) -> Any:
        """Positions (N, nq), which may be changed in place."""
        return self._state["q"]

    @property
    def v(self) -> Any:
        """Velocities (N, nv), which may be changed in place."""
        return self._state["v"]

    @property
    def action(self) -> Any:
        """The last actions (N, n), 0 at the start of an episode."""
        return self._state["action"]

    @property
    def t(self) -> Any:
        """Time since the start of each episode (N,), in s."""
        return self._state["periods"] * self.period

    @property
    def data(self) -> dict[str, Any]:
        """Data (N, ...) by name, which may be changed in place; after a step, read them again."""
        return {name: array for name, array in self._state.items() if name not in (*STATE, *OWN, *self._unread)}

    @property
    def observation(self) -> Any:
        """The current observations (N, n)."""
        return self._state["observation"]

    @property
    def diverged(self) -> int:
        """The number of episodes so far whose motion has diverged; this call waits for the GPU."""
        return int(self._state["diverged"].sum())

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes of an observation and of an action."""
        return self._shapes["observation"][0], self._shapes["action"][0]

    def reset(self, which: Any = None, *, seed: int | None = None) -> Any:
        """Start new episodes, and return the observations (N, n) of all environments.

        ``which`` are indices or flags (N,) of environments, which continue with their next rows of ``starts``. By
        default, all environments begin with their first rows, which are random if there is a ``seed``.

        Example:
            >>> q, action = ca.SX.sym("q", 2), ca.SX.sym("action", 2)
            >>> torque = ca.Function("torque", [action], [action], ["action"], ["tau"])
            >>> angles = ca.Function("angles", [q], [q], ["q"], ["observation"])
            >>> first = ca.Function("first", [q], [q[0]], ["q"], ["reward"])
            >>> arms = Environments(torsor.library.two_link(), 2, torque, observation=angles, reward=first)
            >>> before = arms.step(np.ones((2, 2))).observation
            >>> (arms.reset([1]) == before).tolist()
            [[True, True], [False, False]]
        """
        ended = self._zeros("ended")
        ended[... if which is None else self._indices(which)] = 1.0
        if which is None:
            first = np.arange(self.count) % len(self._pool)
            if seed is not None:
                seed = whole_number(seed, self.robot.name, "seed", least=0)
                first = np.random.default_rng(seed).integers(len(self._pool), size=self.count)
            self._state["row"] = self.xp.asarray(first.astype(self._dtype))
        self._state |= self._restarted(self._state | {"ended": ended})
        return self.observation

    def step(self, actions: Any) -> Outcome:
        """Take a step with actions (N, n), start new episodes where the last ones ended, and return the outcome.

        ``outcome.vjp`` returns the gradients of a cost with respect to state and actions (``Gradients``) from its
        gradients with respect to results of the step: ``reward`` (N,), ``observation``, ``final_observation`` (N, n),
        and ``q``, ``v`` and ``action`` after the step, which are zero by default. It repeats the step, with the current
        numbers of drives and contact. There is no gradient through the start of a new episode, and all gradients of
        motions that diverged are zero.

        Example:
            >>> q, action = ca.SX.sym("q", 2), ca.SX.sym("action", 2)
            >>> torque = ca.Function("torque", [action], [action], ["action"], ["tau"])
            >>> angles = ca.Function("angles", [q], [q], ["q"], ["observation"])
            >>> first = ca.Function("first", [q], [q[0]], ["q"], ["reward"])
            >>> arms = Environments(torsor.library.two_link(), 2, torque, observation=angles, reward=first)
            >>> outcome = arms.step(np.zeros((2, 2)))
            >>> outcome.vjp(reward=np.ones(2)).action.round(5).tolist()
            [[0.00107, -0.00143], [0.00107, -0.00143]]
        """
        before, action = self._state, self.xp.array(actions, self._dtype)  # a copy, which ``vjp`` reads later
        if action.shape != (self.count, *self._shapes["action"]):
            allowed = f"{(self.count, *self._shapes['action'])}"
            raise ModelError(f"has shape {action.shape}", argument="actions", where=self.robot.name, allowed=allowed)
        start = {"previous_action": before["action"], "q_start": before["q"], "v_start": before["v"]}
        values = before | start | {"action": action}
        values["q"], values["v"] = deque(self._path(values), maxlen=1)[0]
        found = _call(self._kernels[1], values)
        restarted = self._restarted(values | found)
        self._state = {name: (values | found | restarted)[name] for name in before}

        def vjp(**bars: Any) -> Gradients:
            path = list(self._path(before | {"action": action}))
            return self._pulled(path, values | found | {"periods": before["periods"]}, bars)

        ends = found["terminated"] > 0.5, found["truncated"] > 0.5
        return Outcome(self.observation, found["reward"], *ends, found["observation"], vjp)

    def gymnasium(self) -> Any:
        """Return the environments as a ``gymnasium.vector.VectorEnv`` with NumPy arrays; the extra ``gym`` is required.

        Episodes that have ended start again in the same step (``AutoresetMode.SAME_STEP``): ``info["final_obs"]``
        (N, n) are then the observations at the end of the step, and ``info["_final_obs"]`` (N,) marks these episodes.

        Example:
            >>> q, action = ca.SX.sym("q", 2), ca.SX.sym("action", 2)
            >>> torque = ca.Function("torque", [action], [action], ["action"], ["tau"])
            >>> angles = ca.Function("angles", [q], [q], ["q"], ["observation"])
            >>> first = ca.Function("first", [q], [q[0]], ["q"], ["reward"])
            >>> arms = Environments(torsor.library.two_link(), 2, torque, observation=angles, reward=first)
            >>> arms.gymnasium().action_space.shape
            (2, 2)
        """
        return gymnasium_environment(self)

    def torch(self, differentiable: bool = False) -> TorchEnvironments:
        """Return the environments with PyTorch tensors in the place of arrays; the extra ``torch`` is required.

        Tensors share the memory of the arrays (DLPack), and kernels run on PyTorch's current stream. If
        ``differentiable`` is True, results have gradients with respect to actions: see ``TorchEnvironments``.

        Example:
            >>> q, action = ca.SX.sym("q", 2), ca.SX.sym("action", 2)
            >>> torque = ca.Function("torque", [action], [action], ["action"], ["tau"])
            >>> angles = ca.Function("angles", [q], [q], ["q"], ["observation"])
            >>> first = ca.Function("first", [q], [q[0]], ["q"], ["reward"])
            >>> arms = Environments(torsor.library.two_link(), 2, torque, observation=angles, reward=first)
            >>> arms.torch().reset().tolist()
            [[0.0, 0.0], [0.0, 0.0]]
        """
        return TorchEnvironments(self, differentiable)

    def _zeros(self, name: str) -> Any:
        return self.xp.zeros((self.count, *self._shapes[name]), self._dtype)

    def _indices(self, which: Any) -> Any:
        """Return indices or flags of environments."""
        found = self.xp.asarray(which)
        found = found if len(found.shape) != 1 or found.shape[0] else found.astype("int64")
        if found.dtype.kind not in "biu" or (found.dtype.kind == "b" and found.shape != (self.count,)):
            what, allowed = f"has shape {found.shape} and dtype {found.dtype}", f"indices, or flags {(self.count,)}"
            raise ModelError(what, argument="which", where=self.robot.name, allowed=allowed)
        return found

    def _restarted(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values after new episodes have started where the last ones ended."""
        return _call(self._kernels[2], {**values, "fresh": self._pool[values["row"].astype("int64")]})

    def _path(self, values: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        """Yield q and v at the start and after each step of a period."""
        q, v, inputs = values["q"], values["v"], self._inputs(values)
        yield q, v
        for t in self._times(values):
            q, v = self._kernels[0](t, q, v, *inputs, self._h)
            yield q, v

    def _times(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the time at the start of each step of a period, which is 0 if the controller does not read it."""
        if not self._reads_time:
            return self._steps * [0 * self._h]
        return [(values["periods"] * self._steps + k) * self._h for k in range(self._steps)]

    def _inputs(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the inputs that are constant in a period: wrenches, gains, and parameters of contact and robot."""
        groups = self._gains, self._parameters, self._numbers
        columns = [[values[name].reshape(self.count, -1) for name in names] for names in groups]
        return [values[name] for name in self._held] + [self.xp.concatenate(each, axis=1) for each in columns if each]

    def _pulled(self, path: list[tuple[Any, Any]], values: dict[str, Any], bars: Mapping[str, Any]) -> Gradients:
        """Return the gradients of a step with the states ``path`` from those of its results."""
        for name in bars:
            known_name(name, list(_RESULTS), self.robot.name, "result")
        weights = {
            f"bar_{other}": self.xp.asarray(bars[name], self._dtype) if name in bars else self._zeros(name)
            for name, other in _RESULTS.items()
        }
        found = _call(self._episodes.pull, values | weights)
        q, v, action, previous = (found[f"bar_{name}"] for name in PULLED)
        inputs, size = self._inputs(values), self._shapes["action"][0]
        for t, state in zip(reversed(self._times(values)), reversed(path[:-1]), strict=True):
            q, v, *of_inputs = self._step.pull(t, *state, *inputs, self._h, q, v)
            action = action + of_inputs[len(self._held)][:, :size]
        kept = values["lost"][:, None] < 0.5
        return Gradients(*(self.xp.where(kept, each, 0.0) for each in (q, v, previous, action)))


def _call(kernel: AnyKernel, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a kernel by name, without the ending of next values."""
    results = kernel(*(values[name] for name in kernel.signature.names_in))
    names = (name.removesuffix("_next") for name in kernel.signature.names_out)
    return dict(zip(names, results, strict=True))

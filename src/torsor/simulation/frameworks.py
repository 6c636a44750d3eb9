"""Environments as those of Gymnasium, and on PyTorch tensors with gradients."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from torsor.base.errors import missing
from torsor.compiler import on_host
from torsor.compiler.cuda.device import foreign_stream
from torsor.simulation.episodes import Outcome


def gymnasium_environment(environments: Any) -> Any:
    """Return ``Environments`` as a ``gymnasium.vector.VectorEnv``."""
    try:
        import gymnasium
    except ImportError:
        raise missing("Environments.gymnasium needs Gymnasium", "gym") from None
    count, dtype = environments.count, np.dtype(environments.robot.target.dtype)
    single = [gymnasium.spaces.Box(-np.inf, np.inf, (size,), dtype.type) for size in environments.sizes]
    batch = [gymnasium.vector.utils.batch_space(space, count) for space in single]

    class Vector(gymnasium.vector.VectorEnv):  # type: ignore[misc]
        metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}  # noqa: RUF012
        num_envs = count
        single_observation_space, single_action_space = single
        observation_space, action_space = batch

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            super().reset(seed=seed)
            return on_host(environments.reset(seed=seed)), {}

        def step(self, actions: Any) -> tuple[Any, ...]:
            observation, reward, terminated, truncated, final = map(on_host, environments.step(actions)[:-1])
            ended = terminated | truncated
            info = {"final_obs": final, "_final_obs": ended} if ended.any() else {}
            return observation, reward, terminated, truncated, info

    return Vector()


class TorchEnvironments:
    """Environments whose arrays are PyTorch tensors on the same memory; see ``Environments.torch``.

    If ``differentiable`` is True, results of a step have gradients with respect to its actions and, through the state,
    to those of earlier steps, up to the last ``detach`` or ``reset``.
    """

    def __init__(self, environments: Any, differentiable: bool = False):
        try:
            import torch
        except ImportError:
            raise missing("Environments.torch needs PyTorch", "torch") from None
        self.environments, self._torch = environments, torch
        self._step = _differentiable_step(torch, self) if differentiable else None
        self._state: tuple[Any, ...] = ()
        self.detach()

    def detach(self) -> None:
        """End the graph at the current state: gradients do not reach earlier steps."""
        self._state = self._tensors(self.environments.q, self.environments.v, self.environments.action)

    def reset(self, which: Any = None, *, seed: int | None = None) -> Any:
        """Start new episodes, and return the observations (N, n) of all environments; see ``Environments.reset``."""
        with self.stream():
            self.environments.reset(plain(which), seed=seed)
        self.detach()
        return self.observation

    @property
    def observation(self) -> Any:
        """The current observations (N, n)."""
        return self._tensors(self.environments.observation)[0]

    @property
    def data(self) -> dict[str, Any]:
        """Data (N, ...) by name; see ``Environments.data``."""
        return {name: self._tensors(array)[0] for name, array in self.environments.data.items()}

    def step(self, actions: Any) -> Outcome:
        """Take a step with actions (N, n), and return an outcome of tensors; see ``Environments.step``."""
        if self._step is None:
            with self.stream():
                *results, vjp = self.environments.step(plain(actions))
            return Outcome._make((*self._tensors(*results), vjp))
        outcomes: list[Outcome] = []
        *state, observation, reward, final = self._step(outcomes, *self._state, actions)
        self._state = tuple(state)
        terminated, truncated = self._tensors(outcomes[0].terminated, outcomes[0].truncated)
        return Outcome(observation, reward, terminated, truncated, final, outcomes[0].vjp)

    def _tensors(self, *arrays: Any) -> tuple[Any, ...]:
        """Return tensors on the memory of arrays."""
        share = self._torch.from_dlpack
        # Booleans are shared as bytes, since not all versions of DLPack have them.
        return tuple(share(a.view("uint8")).view(self._torch.bool) if a.dtype == bool else share(a) for a in arrays)

    def stream(self) -> AbstractContextManager[Any]:
        """Return a context in which kernels run on PyTorch's current stream."""
        if self.environments.robot.target.device != "cuda":
            return nullcontext()
        return foreign_stream(self.environments.xp, self._torch.cuda.current_stream().cuda_stream)


def plain(value: Any) -> Any:
    """Return a tensor without its graph; other values are unchanged."""
    return value.detach() if hasattr(value, "detach") else value


def _differentiable_step(torch: Any, here: TorchEnvironments) -> Any:
    """Return the step as a function of a list for its outcome, of the last state and of the actions."""

    class Step(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, outcomes: list[Outcome], *tensors: Any) -> tuple[Any, ...]:
            own = here.environments
            with here.stream():
                outcome = own.step(plain(tensors[-1]))
            outcomes.append(outcome)
            ctx.vjp = outcome.vjp
            return here._tensors(
                own.q, own.v, own.action, outcome.observation, outcome.reward, outcome.final_observation
            )

        @staticmethod
        def backward(ctx: Any, *bars: Any) -> tuple[Any, ...]:
            names = "q", "v", "action", "observation", "reward", "final_observation"
            with here.stream():
                gradients = ctx.vjp(**{name: plain(bar) for name, bar in zip(names, bars, strict=True)})
            return None, *here._tensors(*gradients)

    return Step.apply

"""Train the quadruped of train_quadruped.py through the exact gradients of its steps: SHAC (Xu et al. 2022).

python examples/train_with_gradients.py walk                     # on all cores
python examples/train_with_gradients.py walk --device cuda       # on an NVIDIA GPU

The policy is improved by the gradients of the rewards of short horizons, which flow back through contact and drives,
and of the value at their ends. The task, the network and the files are those of train_quadruped.py.
"""

import argparse
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn
from train_quadruped import ACTION, EPISODE, GAMMA, LAMBDA, Policy, environments, evaluate, film, ground, velocity_error

AVERAGE = 0.98  # of the earlier critic in that of targets
BATCHES, PASSES = 4, 6  # of an update of the critic


def horizon(policy: Policy, critic: nn.Module, own: Any, steps: int) -> tuple[torch.Tensor, ...]:
    """Return the cost of the policy in a horizon, observations, targets of their values, and sums for the progress."""
    own.detach()
    observation = own.observation
    discount = torch.ones(len(observation), device=observation.device)
    cost, rows, sums = torch.zeros((), device=observation.device), [], torch.zeros(4, device=observation.device)
    for k in range(steps):
        outcome = own.step(ACTION * policy.distribution(observation).rsample())
        terminated, truncated, final = outcome.terminated, outcome.truncated, outcome.final_observation
        ended = terminated | truncated
        last = ended | (k == steps - 1)
        after = torch.where(terminated, 0.0, critic(final)[..., 0])
        cost = cost - (discount * (outcome.reward + GAMMA * torch.where(last, after, 0.0))).mean() / steps
        discount = torch.where(ended, 1.0, GAMMA * discount)
        rows.append([observation.detach(), outcome.reward.detach(), after.detach(), last])
        error, reward = velocity_error(final.detach()).mean(), outcome.reward.detach().mean()
        sums += torch.stack([ended.sum(), terminated.sum(), error / steps, reward / steps])
        observation = outcome.observation
    targets, target = [], torch.zeros_like(discount)
    for _, reward, after, last in reversed(rows):
        target = reward + GAMMA * torch.where(last, after, (1 - LAMBDA) * after + LAMBDA * target)
        targets.append(target)
    return cost, torch.cat([each[0] for each in rows]), torch.cat(targets[::-1]), sums


def main() -> None:
    """Train, save, evaluate and draw a policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", type=Path, help="the files are NAME.pt and NAME.html")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--count", type=int, help="robots (default: 2048 on a GPU, 512 on a CPU)")
    parser.add_argument("--iterations", type=int, default=500, help="updates of the policy (default: 500)")
    parser.add_argument("--horizon", type=int, default=24, help="actions of each robot in an update (default: 24)")
    parser.add_argument("--rate", type=float, default=2e-3, help="learning rate at the start (default: 0.002)")
    parser.add_argument("--show", type=int, default=10, help="iterations between lines of progress (default: 10)")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    count, contact = arguments.count or (2048 if arguments.device == "cuda" else 512), ground(0.0)
    own = environments(count, arguments.device, contact, 0).torch(differentiable=True)
    policy = Policy(*own.environments.sizes).to(arguments.device)
    critic = deepcopy(policy.critic)
    acting = [*policy.actor.parameters(), policy.log_deviation]
    actor_step = torch.optim.Adam(acting, lr=arguments.rate, betas=(0.7, 0.95))
    critic_step = torch.optim.Adam(policy.critic.parameters(), lr=1e-3)
    begin, sums = time.perf_counter(), torch.zeros(4, device=arguments.device)
    print("iteration  minutes  reward  velocity error  falls / episodes")
    try:
        for k in range(1, arguments.iterations + 1):
            actor_step.param_groups[0]["lr"] = arguments.rate * (1 - 0.9 * k / arguments.iterations)
            cost, observation, target, found = horizon(policy, critic, own, arguments.horizon)
            actor_step.zero_grad()
            cost.backward(inputs=acting)
            nn.utils.clip_grad_norm_(acting, 1.0)
            actor_step.step()
            for _ in range(PASSES):
                for part in torch.randperm(len(target), device=target.device).chunk(BATCHES):
                    critic_step.zero_grad()
                    (policy.value(observation[part]) - target[part]).square().mean().backward()
                    critic_step.step()
            with torch.no_grad():
                for old, new in zip(critic.parameters(), policy.critic.parameters(), strict=True):
                    old.lerp_(new, 1 - AVERAGE)
            sums += found
            if k % arguments.show == 0:
                episodes, falls, error, reward = sums.tolist()
                text = f"{k:9d}  {(time.perf_counter() - begin) / 60:7.1f}  {reward / arguments.show:6.3f}"
                print(f"{text}  {error / arguments.show:10.3f} m/s  {falls:.0f} / {episodes:.0f}", flush=True)
                sums = torch.zeros_like(sums)
    except KeyboardInterrupt:
        print("stopped")
    torch.save(policy.state_dict(), arguments.name.with_suffix(".pt"))
    error, falls = evaluate(policy, own.environments.torch(), True)
    print(f"{count} episodes of {EPISODE:g} s: velocity error {error:.3f} m/s, {100 * falls:.1f} % end in a fall")
    film(policy, arguments.name.with_suffix(".html"), contact)


if __name__ == "__main__":
    main()

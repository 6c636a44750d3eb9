"""Train a quadruped to follow velocity commands: PPO (Schulman et al. 2017) in PyTorch, without a learning library.

python examples/train_quadruped.py walk                          # on all cores: walks after a few minutes
python examples/train_quadruped.py walk --device cuda            # thousands of robots on an NVIDIA GPU
python examples/train_quadruped.py walk --rough 0.05             # on blocks with random heights of up to 5 cm
python examples/train_quadruped.py walk --policy walk.pt --iterations 0   # only evaluate and draw a policy

The robot of the library (12 drives, four ball feet) follows a forward, a sideways and a turning velocity
of up to 1 m/s and 1 rad/s. Every 20 ms, the policy changes the references of the PD drives; steps take 2 ms. Friction,
gains and commands are different in each episode, and random forces push the trunk. Files: NAME.pt has the policy, and
NAME.html shows a walk. Ctrl-C ends the training, and writes both files. On a GPU, all data stay there.
"""

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import torch
from torch import nn

import torsor
from torsor.simulation import Contact, Environments, rough_ground

PERIOD, EPISODE = 0.02, 20.0  # s
KP, KD = 40.0, 1.0  # N m/rad, N m s/rad
ACTION = 0.3  # rad: change of a reference per unit of the policy
FASTEST = np.array([1.0, 1.0, 1.0])  # m/s, m/s, rad/s: largest commands
STRIDE, LIFT = 0.5, 0.08  # s, m: duration of a stride, and height to which the feet of a diagonal are lifted in turn
HEIGHT = 0.31  # m: desired height of the trunk
BLOCK = 0.3  # m: edge length of blocks on rough ground
ROWS = 1 << 16  # different starts of episodes
PUSH, PUSHED = 40.0, 0.2  # N, s: largest force and duration of a push, one in 4 s on average
GAMMA, LAMBDA, CLIP, ENTROPY, NEAR = 0.99, 0.95, 0.2, 0.003, 0.01  # of PPO; NEAR is the desired divergence of an update


# The task: robot, observation, reward and starts of episodes.


def ground(rough: float) -> Contact:
    """Return the contact of the feet with level ground, or with blocks of heights up to ``rough`` (m)."""
    terrain = rough_ground(rough, BLOCK) if rough else True
    return Contact(terrain, stiffness=4e4, exponent=1.0, friction=0.8)


def functions(robot: torsor.Robot, home: np.ndarray, contact: Contact) -> dict[str, ca.Function]:
    """Return observation, reward and stop as functions of named inputs."""
    sizes = {"q": robot.nq, "v": robot.nv, "action": 12, "previous_action": 12, "command": 3}
    x = {"t": ca.SX.sym("t")} | {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    q, v, command = x["q"], x["v"], x["command"]
    trunk = robot.function("pose", place="trunk")(q)
    up = trunk[2, :3].T  # the vertical in the axes of the trunk
    velocity = v[3:6]  # of the trunk in its axes, like its rate v[:3]
    moves = ca.norm_2(command) > 0.1
    phase = 2 * ca.pi * x["t"] / STRIDE
    clock = ca.if_else(moves, ca.vertcat(ca.sin(phase), ca.cos(phase)), 0)
    observation = ca.vertcat(
        up, 0.5 * velocity, 0.25 * v[:3], q[7:] - home[7:], 0.05 * v[6:], x["action"] / ACTION, command, clock
    )
    lifts = {"fl_foot": clock[0], "hr_foot": clock[0], "fr_foot": -clock[0], "hl_foot": -clock[0]}

    def above(point: ca.SX) -> ca.SX:
        return point[2] - (contact.ground(point[0], point[1]) if isinstance(contact.ground, ca.Function) else 0)

    heights = ca.vertcat(*(above(robot.function("pose", place=foot)(q)[:3, 3]) - 0.02 for foot in lifts))
    wanted = ca.vertcat(*(LIFT * ca.fmax(each, 0) for each in lifts.values()))
    change = (x["action"] - x["previous_action"]) / ACTION
    reward = (
        ca.exp(-3 * ca.sumsqr(velocity[:2] - command[:2]))
        + 0.5 * ca.exp(-3 * (v[2] - command[2]) ** 2)
        + 0.5 * ca.exp(-ca.sumsqr(heights - wanted) / LIFT**2)
        - 0.5 * velocity[2] ** 2
        - 0.02 * ca.sumsqr(v[:2])
        - ca.sumsqr(up[:2])
        - 20 * (above(q) - HEIGHT) ** 2
        - 0.01 * ca.sumsqr(change)
        - 0.1 * ca.sumsqr(q[7::3])  # legs swing forwards rather than sideways
        - 1e-4 * ca.sumsqr(v[6:])
    )
    stop = ca.fmin(above(q) - 0.18, up[2] - 0.5)  # the trunk is low, or tilted by more than 60 degrees
    results = {"observation": observation, "reward": reward, "stop": stop}
    return {
        name: ca.Function(name, [x[each] for each in own], [value], own, [name])
        for name, value in results.items()
        for own in [[each for each in x if ca.depends_on(value, x[each])]]
    }


def starts(robot: torsor.Robot, home: np.ndarray, contact: Contact, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return random states, commands, frictions and gains for the starts of episodes."""
    rows = ROWS
    q, v = np.tile(home, (rows, 1)), rng.normal(scale=0.1, size=(rows, robot.nv))
    q[:, 7:] += rng.normal(scale=0.05, size=(rows, 12))
    if isinstance(contact.ground, ca.Function):
        q[:, :2] = rng.uniform(-20.0, 20.0, size=(rows, 2))
    lift(q, contact)
    command = rng.uniform(-1.0, 1.0, size=(rows, 3)) * FASTEST
    command[rng.uniform(size=rows) < 0.1] = 0.0
    gains = {"kp": KP, "kd": KD}
    return {
        "q": q,
        "v": v,
        "command": command,
        "friction": rng.uniform(0.4, 1.0, size=rows),
        "external": np.zeros((1, len(robot.links), 6)),
        **{name: value * rng.uniform(0.8, 1.2, size=(rows, 12)) for name, value in gains.items()},
    }


def lift(q: np.ndarray, contact: Contact) -> None:
    """Raise standing robots (N, nq) to 3 cm above the ground below their feet."""
    q[:, 2] += 0.03
    if isinstance(contact.ground, ca.Function):
        corners = q[:, None, :2] + [[x, y] for x in (-0.25, 0.25) for y in (-0.15, 0.15)]
        q[:, 2] += np.max(torsor.compile(contact.ground)(corners[..., 0], corners[..., 1]), axis=1)


def environments(count: int, device: str, contact: Contact, seed: int, **changed: Any) -> Environments:
    """Return the environments."""
    robot = torsor.library.quadruped()
    home = robot.postures["home"]
    drives = torsor.control.drives(robot, home, kp=KP, kd=KD).saturated()
    here = robot.to(device=device, dtype="float32", threads=torch.get_num_threads() if device == "cpu" else 1)
    own = starts(robot, home, contact, np.random.default_rng(seed))
    settings = functions(robot, home, contact) | {"starts": own} | changed
    return Environments(here, count, drives, contact=contact, step=2e-3, period=PERIOD, duration=EPISODE, **settings)


def push(external: torch.Tensor) -> None:
    """Begin and end pushes of the trunks at random (N), which stay constant between actions."""
    ends = torch.rand(len(external), 1, device=external.device)
    force = PUSH * (2 * torch.rand(len(external), 2, device=external.device) - 1)
    held = external[:, 0, 3:5] * (ends > PERIOD / PUSHED)
    external[:, 0, 3:5] = torch.where(ends > 1 - PERIOD / 4.0, force, held)


# PPO.


class Policy(nn.Module):
    """The mean action and the value of an observation, each a network, and the deviation of actions."""

    def __init__(self, inputs: int, outputs: int, width: int = 128):
        super().__init__()
        self.actor, self.critic = (_network(inputs, width, size) for size in (outputs, 1))
        self.log_deviation = nn.Parameter(torch.full((outputs,), -0.5))

    def distribution(self, observation: torch.Tensor) -> torch.distributions.Normal:
        """Return the distribution of actions."""
        return torch.distributions.Normal(self.actor(observation), self.log_deviation.exp(), validate_args=False)

    def value(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the expected sum of discounted rewards."""
        return self.critic(observation)[..., 0]


def _network(inputs: int, width: int, outputs: int) -> nn.Sequential:
    sizes = inputs, width, width // 2, outputs
    layers = [each for a, b in pairwise(sizes) for each in (nn.Linear(a, b), nn.ELU())][:-1]
    nn.init.orthogonal_(layers[-1].weight, 0.01)
    return nn.Sequential(*layers)


class Batch(NamedTuple):
    """Samples of T steps of N environments, and sums over them: episodes, falls and velocity errors."""

    observation: torch.Tensor
    action: torch.Tensor
    mean: torch.Tensor
    log_probability: torch.Tensor
    advantage: torch.Tensor
    value: torch.Tensor
    reward: torch.Tensor
    sums: torch.Tensor


@torch.no_grad()
def collect(policy: Policy, own: Any, steps: int) -> Batch:
    """Take steps with random actions; advantages are those of Schulman et al. 2016."""
    rows: list[list[torch.Tensor]] = []
    sums = torch.zeros(3, device=own.observation.device)
    for _ in range(steps):
        observation = own.observation
        distribution, value = policy.distribution(observation), policy.value(observation)
        action = distribution.sample()
        push(own.data["external"])
        outcome = own.step(ACTION * action)
        ended = outcome.terminated | outcome.truncated
        final = torch.where(outcome.truncated, policy.value(outcome.final_observation), 0.0)
        probability = distribution.log_prob(action).sum(-1)
        reward = outcome.reward + GAMMA * final
        rows.append([observation, action, distribution.mean, probability, value, reward, ended.float()])
        sums += torch.stack([ended.sum(), outcome.terminated.sum(), velocity_error(outcome.final_observation).sum()])
    *samples, value, reward, ended = (torch.stack(each) for each in zip(*rows, strict=True))
    after = torch.cat([value[1:], policy.value(own.observation)[None]])
    advantage, total = torch.zeros_like(value), torch.zeros_like(value[0])
    for k in reversed(range(steps)):
        going = 1 - ended[k]
        total = reward[k] + GAMMA * going * after[k] - value[k] + GAMMA * LAMBDA * going * total
        advantage[k] = total
    flat = (each.flatten(0, 1) for each in (*samples, advantage, value, reward))
    return Batch(*flat, sums)


def velocity_error(observation: torch.Tensor) -> torch.Tensor:
    """Return the horizontal velocity errors (m/s) of observations."""
    return (2 * observation[:, 3:5] - observation[:, -5:-3]).norm(dim=-1)


def update(policy: Policy, optimiser: torch.optim.Optimizer, batch: Batch, epochs: int, parts: int) -> None:
    """Improve the policy with the samples; the learning rate keeps the mean divergence of policies near ``NEAR``."""
    target = batch.advantage + batch.value
    advantage = (batch.advantage - batch.advantage.mean()) / (batch.advantage.std() + 1e-8)
    old = policy.log_deviation.detach().clone()
    rate = optimiser.param_groups[0]["lr"]
    for _ in range(epochs):
        divergence = torch.zeros((), device=target.device)
        for k in torch.randperm(len(target), device=target.device).chunk(parts):
            distribution, value = policy.distribution(batch.observation[k]), policy.value(batch.observation[k])
            ratio = (distribution.log_prob(batch.action[k]).sum(-1) - batch.log_probability[k]).exp()
            gain = torch.minimum(ratio * advantage[k], ratio.clamp(1 - CLIP, 1 + CLIP) * advantage[k]).mean()
            loss = 0.5 * (value - target[k]).square().mean() - gain - ENTROPY * distribution.entropy().sum(-1).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimiser.step()
            with torch.no_grad():
                spread = policy.log_deviation - old
                change = (distribution.mean - batch.mean[k]).square().mean(0) / (2 * old).exp()
                divergence += ((1 / spread.exp() ** 2 * (1 + change) - 1) / 2 + spread).sum() / parts
        rate *= torch.where(divergence > 2 * NEAR, 1 / 1.5, torch.where(divergence < NEAR / 2, 1.5, 1.0))
        rate.clamp_(1e-5, 3e-3)


@torch.no_grad()
def evaluate(policy: Policy, own: Any, is_pushed: bool) -> tuple[float, float]:
    """Return the mean velocity error (m/s) and the share of falls in an episode of each environment, without noise."""
    own.data["external"].zero_()
    own.reset()
    fallen = torch.zeros(own.environments.count, dtype=torch.bool, device=own.observation.device)
    error = torch.zeros((), device=own.observation.device)
    steps = round(EPISODE / PERIOD)
    for _ in range(steps):
        if is_pushed:
            push(own.data["external"])
        outcome = own.step(ACTION * policy.actor(own.observation))
        fallen |= outcome.terminated
        error += velocity_error(outcome.final_observation).mean() / steps
    return float(error), float(fallen.float().mean())


@torch.no_grad()
def film(policy: Policy, path: Path, contact: Contact) -> None:
    """Write a page of a robot that walks, turns and stands still."""
    start = torsor.library.quadruped().postures["home"][None].copy()
    lift(start, contact)
    policy = policy.to("cpu")
    commands = [(0.5, 0.0, 0.0), (1.0, 0.0, 0.0), (0.5, 0.0, 1.0), (0.0, 0.5, 0.0), (0.0, 0.0, 0.0)]
    alone = environments(1, "cpu", contact, 0, starts={"q": start, "command": np.array(commands[:1])})
    own, states = alone.torch(), [(alone.q[0], alone.v[0], alone.action[0])]
    for command in commands:
        for _ in range(round(3.0 / PERIOD)):
            alone.data["command"][...] = command
            observation = own.observation
            observation[:, -5:-2] = torch.tensor(command)
            if own.step(ACTION * policy.actor(observation)).terminated:
                break
            states.append((alone.q[0], alone.v[0], alone.action[0]))
        print(f"command {command}: velocity {np.mean([v[[3, 4, 2]] for _, v, _ in states[-100:]], axis=0).round(2)}")
    q, v, action = (np.array(each, dtype=float) for each in zip(*states, strict=True))
    robot, tau = torsor.library.quadruped(), np.zeros_like(v)
    tau[:, 6:] = KP * (robot.postures["home"][7:] + action - q[:, 7:]) - KD * v[:, 6:]
    tau = np.clip(tau, -robot.effort_limit, robot.effort_limit)
    drawn = {"contact": contact.about}  # with the blocks
    motion = torsor.Trajectory(robot, PERIOD * np.arange(len(q)), q, v, np.zeros_like(v), tau, settings=drawn)
    torsor.view.page(motion, path, title="A quadruped that follows velocity commands")
    print(f"wrote {path}")


def train(policy: Policy, own: Any, arguments: argparse.Namespace, save: Callable[[], None]) -> None:
    """Train until all iterations are done or Ctrl-C is pressed, and print the progress."""
    device = own.observation.device
    rate = torch.tensor(1e-3, device=device)
    optimiser = torch.optim.Adam(policy.parameters(), lr=rate, capturable=device.type == "cuda")
    begin = last = time.perf_counter()
    sums, rewards = torch.zeros(3, device=device), torch.zeros((), device=device)
    each = own.environments.count * arguments.horizon
    print("iteration  minutes  actions per second  reward  velocity error  falls / episodes")
    try:
        for k in range(1, arguments.iterations + 1):
            batch = collect(policy, own, arguments.horizon)
            update(policy, optimiser, batch, arguments.epochs, arguments.parts)
            sums, rewards = sums + batch.sums, rewards + batch.reward.mean()
            if k % arguments.show == 0 or k == arguments.iterations:
                now, (episodes, falls, error) = time.perf_counter(), sums.tolist()
                speed, shown = arguments.show * each / (now - last), float(rewards) / arguments.show
                text = f"{k:9d}  {(now - begin) / 60:7.1f}  {speed:18,.0f}  {shown:6.3f}"
                print(f"{text}  {error / arguments.show / each:10.3f} m/s  {falls:.0f} / {episodes:.0f}", flush=True)
                last = now
                sums, rewards = torch.zeros_like(sums), torch.zeros_like(rewards)
                save()
    except KeyboardInterrupt:
        print("stopped")


def main() -> None:
    """Train, save, evaluate and draw a policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", type=Path, help="the files are NAME.pt and NAME.html")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--count", type=int, help="robots (default: 8192 on a GPU, 512 on a CPU)")
    parser.add_argument("--iterations", type=int, default=600, help="updates of the policy (default: 600)")
    parser.add_argument("--horizon", type=int, default=24, help="actions of each robot in an update (default: 24)")
    parser.add_argument("--epochs", type=int, default=4, help="passes through the samples of an update (default: 4)")
    parser.add_argument("--parts", type=int, default=4, help="gradient steps in each pass (default: 4)")
    parser.add_argument("--show", type=int, default=10, help="iterations between lines of progress (default: 10)")
    parser.add_argument("--rough", type=float, default=0.0, help="height of blocks on the ground (m; default: 0)")
    parser.add_argument("--policy", type=Path, help="a file with the policy at the start")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    count = arguments.count or (8192 if arguments.device == "cuda" else 512)
    contact = ground(arguments.rough)
    own = environments(count, arguments.device, contact, arguments.seed).torch()
    print(own.environments)
    policy = Policy(*own.environments.sizes).to(arguments.device)
    if arguments.policy:
        policy.load_state_dict(torch.load(arguments.policy, map_location=arguments.device, weights_only=True))

    def save() -> None:
        torch.save(policy.state_dict(), arguments.name.with_suffix(".pt"))

    train(policy, own, arguments, save)
    save()
    for name, is_pushed in (("without pushes", False), ("with pushes", True)):
        error, falls = evaluate(policy, own, is_pushed)
        text = f"{count} episodes of {EPISODE:g} s {name}: velocity error {error:.3f} m/s"
        print(f"{text}, {100 * falls:.2f} % end in a fall")
    print(f"{own.environments.diverged} motions diverged")
    film(policy, arguments.name.with_suffix(".html"), contact)


if __name__ == "__main__":
    main()

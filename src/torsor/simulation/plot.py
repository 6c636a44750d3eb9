"""The figure of a trajectory, and its short table."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.figures import Bound, Quantity, checked_what, plot_quantities
from torsor.base.summary import Summary
from torsor.mechanism.units import FORCES, units
from torsor.simulation.samples import Samples

# Title of each quantity, and how its unit follows from that of the coordinate.
QUANTITIES = {
    "q": ("Positions", "{}"),
    "v": ("Velocities", "{}/s"),
    "a": ("Accelerations", "{}/s²"),
    "tau": ("Forces of the controller", ""),
    "energy": ("Energy", "J"),
    "reactions": ("Joint reactions: norm of the force", "N"),
    "closure": ("Residual of loop closure", "m, 1"),
}
UNNAMED = {"energy": ["kinetic", "potential", "total"], "closure": ["largest error"]}


def how(samples: Samples) -> str:
    """Return in words how a trajectory was made, as far as its settings say it.

    Example:
        >>> how(torsor.simulate(torsor.library.two_link(), duration=0.01))
        'simulated with rk4, steps of 0.001 s, no controller'
    """
    settings = samples.settings
    if "method" not in settings:
        return str(settings.get("made", "motion"))
    how_long = (
        f"rtol {settings.get('rtol')}" if settings["method"] == "adaptive" else f"steps of {settings.get('step')} s"
    )
    return f"simulated with {settings['method']}, {how_long}, {settings.get('controller')}"


def plot(samples: Samples, curves: Callable[[str], Array], what: str | Sequence[str], path: str | Path | None) -> Any:
    """Return a figure with panels for each quantity over time; ``curves(name)`` are the values (..., T, K) of one."""
    drawn = [_quantity(samples, name, curves(name)) for name in checked_what(what, QUANTITIES)]
    batch = samples.q.shape[:-2]
    count = f", {int(np.prod(batch))} rollouts" if batch else ""
    status = "" if samples.status == "done" else f", {samples.status}"
    return plot_quantities(drawn, samples.times, f"{samples.robot.name}: {how(samples)}{count}{status}", path)


def _quantity(samples: Samples, name: str, values: Array) -> Quantity:
    robot, (positions, rates) = samples.robot, units(samples.robot)
    title, form = QUANTITIES[name]
    if name in UNNAMED:
        return Quantity(title, UNNAMED[name], [form] * len(UNNAMED[name]), values)
    if name == "reactions":
        return Quantity(title, robot.joint_names, [form] * len(robot.joint_names), values)
    names = robot.position_names if name == "q" else robot.coordinate_names
    own = [FORCES[each] if name == "tau" else form.format(each) for each in (positions if name == "q" else rates)]
    return Quantity(title, names, own, values, _limits(samples, name), fits=False)


def _limits(samples: Samples, name: str) -> tuple[Bound, ...]:
    """Return the limits of joints and drives."""
    robot = samples.robot
    pairs = {
        "q": (robot.lower, robot.upper),
        "v": (-robot.velocity_limit, robot.velocity_limit),
        "tau": (-robot.effort_limit, robot.effort_limit),
    }
    if name not in pairs or not len(samples):
        return ()
    return (Bound(float(samples.times[0]), float(samples.times[-1]), *pairs[name]),)


def summary(samples: Samples) -> Summary:
    """Return the short table of a trajectory."""
    robot, batch = samples.robot, samples.q.shape[:-2]
    facts = {
        "status": samples.status,
        "made by": how(samples),
        "rollouts": str(int(np.prod(batch))),
        "samples": str(len(samples)),
        "duration": f"{samples.times[-1] - samples.times[0]:.6g} s" if len(samples) else "0 s",
    }
    if not samples.q.size or not samples.v.size:
        return Summary(f"Trajectory of {robot.name}", facts)
    rates = units(robot)[1]
    ends = [np.abs(each).reshape(-1, robot.nv).max(axis=0) for each in (samples.v, samples.tau)]
    rows = [
        (name, f"{speed:.4g} {unit}/s", f"{force:.4g} {FORCES[unit]}")
        for name, unit, speed, force in zip(robot.coordinate_names, rates, *ends, strict=True)
    ]
    return Summary(f"Trajectory of {robot.name}", facts, ("coordinate", "largest speed", "largest force"), rows)

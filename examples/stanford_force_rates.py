"""Compare force rates of the Stanford arm with backward differences (Guarino Lo Bianco 2009, section V).

The program prints the tables of the paper, the largest differences and the operation counts, and draws one figure:

    python examples/stanford_force_rates.py stanford_force_rates.png
"""

import math
import sys

import matplotlib
import numpy as np
from numpy.typing import NDArray

import torsor

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = NDArray[np.float64]

SECONDS = 2.0
START = np.array([math.pi / 2, 0.0, 0.0, math.pi / 2, math.pi / 4, math.pi / 2])  # Table III
END = np.array([math.pi / 4, math.pi / 2, 2.0, math.pi / 4, math.pi / 2, 0.0])
PERIODS = (1e-2, 1e-3, 1e-4)
PUBLISHED = 2.462e-2  # largest difference of joint 1 at the shortest period, N m/s


def move(t: Array) -> tuple[Array, Array, Array, Array]:
    """Return q, v, a, j on the quintic from START to END, with zero velocity and acceleration at both ends.

    The paper also requires zero jerk at the ends, which no quintic satisfies; its figure shows this quintic.
    """
    s = np.asarray(t)[:, None] / SECONDS
    shape = (
        10 * s**3 - 15 * s**4 + 6 * s**5,
        30 * (s - s**2) ** 2,
        60 * s - 180 * s**2 + 120 * s**3,
        60 - 360 * s * (1 - s),
    )
    way = END - START
    q, v, a, j = (way * derivative / SECONDS**k for k, derivative in enumerate(shape))
    return START + q, v, a, j


def differences(robot: torsor.Robot, period: float) -> tuple[Array, Array]:
    """Return times and the differences between force_rate and backward differences of the forces (eq. 36)."""
    t = np.arange(round(SECONDS / period) + 1) * period
    tau, rate = robot.force_rate(*move(t))
    return t[1:], np.abs(rate[1:] - np.diff(tau, axis=0) / period)


def general_arm(n: int) -> torsor.Robot:
    """Return an arm without zeros in its tables, as in the operation counts of the paper (which add a tip load)."""
    rng, full = np.random.default_rng(0), 0.3 * np.eye(3) + 0.01
    links = []
    for i in range(n):
        alpha, d, r = (0.0, 0.0, 0.3) if i == 0 else rng.uniform(0.3, 1.2, 3)
        links.append(torsor.MDHLink(i - 1, alpha=alpha, d=d, r=r, mass=1.0, com=rng.uniform(0.1, 0.2, 3), inertia=full))
    return torsor.from_mdh(links, name="general")


def print_tables(robot: torsor.Robot) -> None:
    """Print Tables I to III: geometry and inertias of the robot, and start and end of the motion."""
    print("Table I      a (m)   alpha   d (m)   theta      the joint's variable is added to d or theta")
    for joint in robot.joints:
        x, z, p = joint.placement[:3, 0], joint.placement[:3, 2], joint.placement[:3, 3]
        alpha, theta = math.atan2(-z[1], z[2]) + 0.0, math.atan2(-joint.placement[0, 1], x[0]) + 0.0  # without -0
        print(f"{joint.name:10}{p[0]:8.3f}{alpha:8.4f}{z @ p:8.3f}{theta:8.4f}   {joint.type}")
    print("\nTable II mass (kg)   centre of mass (m)         Ixx, Iyy, Izz about it (kg m^2)")
    for link in robot.links:
        centre, moments = (" ".join(f"{x:8.4f}" for x in row) for row in (link.com, np.diag(link.inertia)))
        print(f"{link.name:10}{link.mass:6.2f}  {centre}  {moments}")
    print("\nTable III ", *(f"{name:>8}" for name in robot.coordinate_names))
    for title, row in (("from", START), ("to", END)):
        print(f"{title:10}", *(f"{x:8.4f}" for x in row))


def print_counts(robot: torsor.Robot) -> None:
    """Print multiplications and additions, and those of the formulas in the paper."""
    print("\noperations             multiplications   additions   force rate / forces alone")
    n = robot.nv
    print(f"{'paper, N = 6':24}{309 * n - 162:14}{268 * n - 138:12}")
    for title, arm in (("general arm, 6 revolute", general_arm(n)), ("Stanford arm", robot)):
        both, alone = arm.operation_count("force_rate"), arm.operation_count("inverse_dynamics")
        ratio = both.arithmetic / alone.arithmetic
        print(f"{title:24}{both.multiplications:14}{both.additions:12}{ratio:14.2f}")


def draw(path: str, robot: torsor.Robot, errors: dict[float, tuple[Array, Array]]) -> None:
    """Draw forces, force rates, and the differences between rates and backward differences."""
    t = np.linspace(0.0, SECONDS, 401)
    tau, rate = robot.force_rate(*move(t))
    units = ["N" if joint.type == "prismatic" else "N m" for joint in robot.joints]
    figure, axes = plt.subplots(3, 2, figsize=(11, 10), layout="constrained")
    for column, joints in zip(axes.T, (range(3), range(3, 6)), strict=True):
        for axis, values, per in ((column[0], tau, ""), (column[1], rate, "/s")):
            for i in joints:
                axis.plot(t, values[:, i], color=f"C{i}", label=f"joint {i + 1} ({units[i]}{per})")
    for title, row in zip(("force", "force rate"), axes, strict=False):
        for axis, which in zip(row, ("arm", "wrist"), strict=True):
            axis.set(title=f"{which}: {title}", xlabel="time (s)", xlim=(0, SECONDS))
    late, worst = axes[2]
    for period, (instants, error) in errors.items():
        late.semilogy(instants, error[:, 0], linewidth=0.9, label=f"every {period:g} s")
    late.set(
        title="joint 1: |rate - backward difference| (N m/s)", xlabel="time (s)", xlim=(0, SECONDS), ylim=(1e-6, 10)
    )
    for i in range(robot.nv):
        worst.loglog(list(errors), [error[:, i].max() for _, error in errors.values()], "o-", label=f"joint {i + 1}")
    worst.loglog(PERIODS[-1], PUBLISHED, "kx", markersize=9, label="paper, joint 1")
    worst.set(title="largest difference over the move (N m/s, N/s)", xlabel="sampling period (s)", ylim=(1e-10, 30))
    for axis in axes.flat:
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small", ncols=3 if axis is worst else 1)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Print the tables and save the figure."""
    robot = torsor.library.stanford()
    print_tables(robot)
    errors = {period: differences(robot, period) for period in PERIODS}
    print("\nlargest |force rate - backward difference| (N m/s, joint 3: N/s)")
    for period, (_, error) in errors.items():
        print(f"every {period:6g} s ", *(f"{x:10.5g}" for x in error.max(axis=0)))
    print(f"in the paper    {PUBLISHED:9.4g}  for joint 1 every {PERIODS[-1]:g} s; its Table II lacks a column")
    print_counts(robot)
    draw(sys.argv[1] if len(sys.argv) > 1 else "stanford_force_rates.png", robot, errors)


if __name__ == "__main__":
    main()

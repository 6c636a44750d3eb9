# %% [markdown]
# # 11. Size links and drives: 10,000 motions and their Pareto front
#
# This tutorial computes the fastest motion of an arm for many upper-arm lengths and gear ratios, and the Pareto front
# of cycle time and copper loss.

# %%
import sys
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import torsor
from torsor import motion

SIZE = int(sys.argv[-1]) if sys.argv[-1].isdigit() else 10  # number of lengths and of gear ratios
TORQUE, SPEED, ROTOR = 1.0, 500.0, 3e-5  # of a motor: N m, rad/s, kg m^2
CONSTANT = 0.15  # of a motor, N m / sqrt(W)
FOREARM, DENSITY, EFFORT = 0.4, 5.0, 1e-5  # m, kg/m, weight of the effort in s per ((N m)^2 s)
PICK, PLACE = np.array([0.6, -0.2]), np.array([0.2, 0.45])  # m

arm = torsor.library.planar_chain(2, FOREARM, DENSITY * FOREARM)
arm = arm.with_payload("link2", 1.0, com=(FOREARM, 0, 0))

# %% [markdown]
# The arm moves a payload of 1 kg between two points in a vertical plane, with bounded torques and velocities. If only
# one joint limits the duration, a small effort term (the integral of the squared torques) makes the torques of the
# other joint unique. It slows motions by at most 1.6 %.


# %%
Point = list[float]


def problem(robot: torsor.Robot, torque: float, speed: float, start: Point, end: Point) -> Any:
    """Return the motion problem of an arm."""
    ends = [motion.Start(q=start, v=0.0), motion.End(q=end, v=0.0)]
    limits = [motion.Torques(upper=torque), motion.Velocities(upper=speed)]
    objective = [motion.Time(), motion.Effort(weight=EFFORT)]
    phase = motion.Phase((0.05, 3.0), points=12)
    return motion.MotionProblem(robot, phase, objective, [*ends, *limits])


def posture(point: np.ndarray, length: float) -> list[float]:
    """Return the joint angles, elbow up, at which the payload is at a given point."""
    elbow = np.arccos((point @ point - length**2 - FOREARM**2) / (2 * length * FOREARM))
    inner = np.arctan2(FOREARM * np.sin(elbow), length + FOREARM * np.cos(elbow))
    return [float(np.arctan2(point[1], point[0]) + inner), float(-elbow)]


# %% [markdown]
# Each design sets parameters by their [dotted names](../../plan/sweep.md#functions-and-problems). The upper arm is a
# uniform rod, so its mass, centre of mass and inertia follow from its length. A gear with ratio n multiplies torque by
# n and rotor inertia by n², and divides velocity by n. Both joints have the same drive.


# %%
def design(length: float, ratio: float) -> dict[str, Any]:
    """Return the parameters of a design."""
    mass = DENSITY * length
    upper_arm = {"joints.joint2.origin.x": length, "links.link1.mass": mass}
    upper_arm["links.link1.com.x"] = length / 2
    upper_arm |= {f"links.link1.inertia.{axis}": mass * length**2 / 12 for axis in ("yy", "zz")}
    rotors = {f"joints.{joint.name}.rotor_inertia": ROTOR * ratio**2 for joint in arm.joints}
    bounds = {"Torques.upper": TORQUE * ratio, "Velocities.upper": SPEED / ratio}
    ends = {"Start.q": posture(PICK, length), "End.q": posture(PLACE, length)}
    return upper_arm | rotors | bounds | ends


# %% [markdown]
# After an interruption, `resume=True` skips finished cases. `workers=0` solves all cases in this process, on one core;
# in a notebook, omit it to use all cores.

# %%
lengths = np.linspace(0.25, 0.55, SIZE).tolist()
ratios = np.linspace(30.0, 130.0, SIZE).tolist()
cases = [design(length, ratio) for length in lengths for ratio in ratios]
study = problem(arm, 60.0, 8.0, [0.5, -1.5], [2.0, -1.5])  # placeholders: each case sets bounds and end postures
results = torsor.sweep(study, cases, output=f"designs_{SIZE}.sqlite", resume=True, workers=0)
print(results)

# %% [markdown]
# The copper loss is the integral of (motor torque / motor constant)². A design is on the Pareto front if every faster
# design has a higher loss. The table shows cycle time, loss, upper-arm length and gear ratio.

# %%
seconds, length = results["T"], results["joints.joint2.origin.x"]
ratio = results["Torques.upper"] / TORQUE
loss = results["objective.Effort"] / EFFORT / (ratio * CONSTANT) ** 2
order = np.argsort(seconds)
least = np.fmin.accumulate([np.inf, *loss[order][:-1]])
front = order[loss[order] < least]  # comparisons with NaN (not solved) are false
print(f"{len(front)} designs are on the front, including:")
for k in front[:: max(1, len(front) // 5)]:
    print(f"{seconds[k]:.3f} s  {loss[k]:5.2f} J  {length[k]:.3f} m  ratio {ratio[k]:5.1f}")

# %%
figure = Figure(figsize=(9, 3.6), layout="constrained")
left, right = figure.subplots(1, 2)
dots = left.scatter(seconds, loss, c=ratio, s=6, linewidths=0)
left.step(seconds[front], loss[front], "k", where="post", linewidth=1)
left.set(title="Designs and their Pareto front", xlabel="cycle time (s)", ylabel="copper loss (J)")
figure.colorbar(dots, ax=left, label="gear ratio")
colours = right.pcolormesh(ratios, lengths, seconds.reshape(SIZE, SIZE), cmap="magma")
right.plot(ratio[front], length[front], "wo", markersize=2)
right.set(title="Designs on the front (white)", xlabel="gear ratio", ylabel="upper arm (m)")
figure.colorbar(colours, ax=right, label="cycle time (s)")
figure.savefig(f"designs_{SIZE}.png", dpi=90)
figure

# %% [markdown]
# `python 11_design_study.py 100` solves 10,000 problems (100 lengths and 100 gear ratios) in 10 min on one Intel Xeon
# core. Of the 670 designs on the front, the fastest takes 0.296 s (upper arm 0.292 m, gear ratio 41). Larger ratios
# reduce the motor torque, but also the joint velocity bounds, which slows the motion.
#
# ![The 10,000 designs of the full study](designs_100.png)

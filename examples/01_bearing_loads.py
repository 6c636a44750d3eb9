# %% [markdown]
# # 1. Bearing loads of a UR5
#
# This tutorial computes the loads that the joint bearings of a robot arm carry during a motion. It is for engineers who
# select bearings. The arm moves from one posture to another in one second, along a polynomial that starts and ends at
# rest.

# %%
import numpy as np

import torsor
from torsor.view import bearing_loads

# %%
robot = torsor.library.ur5()
t = np.linspace(0.0, 1.0, 201)[:, None]
start, change = np.array([0, -1.2, 1.4, -0.2, 1.5, 0]), np.array([1.5, 0.6, -0.8, 0.4, -1.0, 1.0])
q, v = start + change * t**3 * (10 - 15 * t + 6 * t**2), change * 30 * t**2 * (1 - t) ** 2
a = change * 60 * t * (1 - t) * (1 - 2 * t)
loads = bearing_loads(robot, robot.joint_wrenches(q, v, a))

# %% [markdown]
# `joint_wrenches` returns the moment and force that each joint exerts on its link, here with shape (201, 6, 6).
# `bearing_loads` splits this wrench at the joint into the axial force, the radial force and the tilting moment of the
# bearing. The moment about the joint axis is not included, because it is the drive torque.

# %%
print("joint                 axial   radial    tilting   (peak; N, N, N m)")
for joint, peak in zip(robot.joints, loads.peak(), strict=True):
    print(f"{joint.name:20}", *(f"{value:8.1f}" for value in peak))

# %%
from matplotlib.figure import Figure

figure = Figure(figsize=(9, 3.2), layout="constrained")
left, right = figure.subplots(1, 2)
left.plot(t, loads.radial, label=[joint.name.removesuffix("_joint") for joint in robot.joints])
left.set(title="Radial bearing force", xlabel="time (s)", ylabel="force (N)")
right.plot(t, loads.tilting)
right.set(title="Tilting moment of the bearing", xlabel="time (s)", ylabel="moment (N m)")
left.legend(fontsize="small", ncols=2)
figure

# %% [markdown]
# For your own robot, use `torsor.load("robot.urdf")`. Add payloads, springs and geared motors with `with_payload`,
# `with_spring` and `with_motor`. All methods then take them into account.

# %%
loaded = robot.with_payload("wrist_3_link", mass=5.0, com=(0, 0, 0.1))
ratio = bearing_loads(loaded, loaded.joint_wrenches(q, v, a)).peak() / loads.peak()
print(f"5 kg at the tool: {ratio[1, 2]:.2f} times the tilting moment of {robot.joints[1].name}")

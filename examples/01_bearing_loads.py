# %% [markdown]
# # 1. Bearing loads of a UR5
#
# Which loads do the bearings of a robot arm carry while it moves? Few libraries answer; here it is one call. The arm
# swings from one posture to another in a second, along a polynomial that starts and ends at rest.

# %%
import numpy as np

import torsor
from torsor.view import bearing_loads

# %%
robot = torsor.library.ur5()
t = np.linspace(0.0, 1.0, 201)[:, None]
start, way = np.array([0, -1.2, 1.4, -0.2, 1.5, 0]), np.array([1.5, 0.6, -0.8, 0.4, -1.0, 1.0])
q, v = start + way * t**3 * (10 - 15 * t + 6 * t**2), way * 30 * t**2 * (1 - t) ** 2
a = way * 60 * t * (1 - t) * (1 - 2 * t)
loads = bearing_loads(robot, robot.joint_wrenches(q, v, a))

# %% [markdown]
# Those were the lines: make a robot, a motion, and ask. `joint_wrenches` gives the moment and the force of each
# joint on its link, (201, 6, 6) here; `bearing_loads` splits them at the joint into the axial and the radial force and
# the moment that tilts the bearing. The moment about the axis is not in it: that is the torque of the drive.

# %%
print("joint                 axial   radial    tilting   (peak; N, N, N m)")
for joint, peak in zip(robot.joints, loads.peak(), strict=True):
    print(f"{joint.name:20}", *(f"{value:8.1f}" for value in peak))

# %%
from matplotlib.figure import Figure

figure = Figure(figsize=(9, 3.2), layout="constrained")
left, right = figure.subplots(1, 2)
left.plot(t, loads.radial, label=[joint.name.removesuffix("_joint") for joint in robot.joints])
left.set(title="Radial force of the bearings", xlabel="time (s)", ylabel="force (N)")
right.plot(t, loads.tilting)
right.set(title="Tilting moment of the bearings", xlabel="time (s)", ylabel="moment (N m)")
left.legend(fontsize="small", ncols=2)
figure

# %% [markdown]
# The same for your own robot: `torsor.load("robot.urdf")`. With a load at the tool, a spring or a gear, use
# `with_payload`, `with_spring` and `with_motor` first; everything that follows takes them into account.

# %%
loaded = robot.with_payload("wrist_3_link", mass=5.0, com=(0, 0, 0.1))
more = bearing_loads(loaded, loaded.joint_wrenches(q, v, a)).peak() / loads.peak()
print(f"5 kg at the tool: {more[1, 2]:.2f} times the tilting moment of {robot.joints[1].name}")

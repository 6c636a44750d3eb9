# %% [markdown]
# # 1. A first robot
#
# This tutorial loads a robot arm, prints its data, draws a posture and computes joint torques.
#
# ![The arm in the viewer](../viewer.png)

# %%
import numpy as np

import torsor

# %% [markdown]
# ## Load and print
#
# `torsor.load` accepts the name of a library robot or the path of a robot file, such as `"robot.urdf"`.

# %%
robot = torsor.load("ur5")
print(robot)

# %% [markdown]
# ## Pose and picture
#
# `q` contains the joint angles (rad). `pose` returns the pose of a link or frame in base axes (4 x 4).
# `torsor.show(robot)` opens the [viewer](../viewer.md) with a slider for each joint.

# %%
q = np.radians([0, -70, 80, -10, 90, 0])
print("tool position (m):", robot.pose(q, "ee_link")[:3, 3].round(3))
torsor.view.draw(robot, q)

# %% [markdown]
# ## Torques
#
# `gravity_force` returns the torques that hold a posture, and `inverse_dynamics` those that produce a motion. The arm
# moves from rest to rest in one second, without and with a payload of 5 kg, 0.1 m from the origin of the last link.

# %%
print("holding torques (N m):", robot.gravity_force(q).round(1))
t = np.linspace(0.0, 1.0, 201)[:, None]
change = np.radians([90, 35, -45, 20, -60, 60])  # rotation of each joint
path, v = q + change * t**3 * (10 - 15 * t + 6 * t**2), change * 30 * t**2 * (1 - t) ** 2
a = change * 60 * t * (1 - t) * (1 - 2 * t)
loaded = robot.with_payload("wrist_3_link", mass=5.0, com=(0, 0, 0.1))
for name, arm in (("empty", robot), ("with 5 kg", loaded)):
    share = np.abs(arm.inverse_dynamics(path, v, a)).max(axis=0) / robot.effort_limit
    print(f"{name}: {share.max():.0%} of the limit of {robot.joint_names[share.argmax()]}")

# %%
from matplotlib.figure import Figure

figure = Figure(figsize=(9, 3.2), layout="constrained")
left, right = figure.subplots(1, 2, sharex=True)
left.plot(t, np.degrees(path), label=robot.joint_names)
left.set(xlabel="time (s)", ylabel="angle (°)")
figure.legend(loc="outside upper center", ncols=6, fontsize="small")
right.plot(t, loaded.inverse_dynamics(path, v, a))
right.set(xlabel="time (s)", ylabel="torque with 5 kg (N m)")
figure

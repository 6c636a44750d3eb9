# %% [markdown]
# # 6. Closed loops and parallel robots
#
# This tutorial for designers of linkages and parallel robots analyses a four-bar linkage, a slider-crank and a
# Gough-Stewart platform.

# %%
import numpy as np
from matplotlib.figure import Figure

import torsor

# %% [markdown]
# ## Bearing forces of a four-bar linkage
#
# The model cuts each loop at one joint. `closed.assemble` computes the passive coordinates for all crank angles,
# starting from the posture `guess`. The crank rotates at a constant 8 rad/s.

# %%
four_bar = torsor.library.four_bar()
turns = np.linspace(0.0, 2 * np.pi, 361)
q = four_bar.closed.assemble(turns[:, None], guess=[0.5, 0.24, 1.55])
torque = four_bar.closed.inverse_dynamics(q, [8.0], [0.0])
joints = np.linalg.norm(four_bar.closed.joint_wrenches(q, [8.0], [0.0])[..., 3:], axis=-1)
pin = np.linalg.norm(four_bar.closed.loop_wrenches(q, [8.0], [0.0])[..., 3:], axis=-1)
print("degrees of freedom:", four_bar.closed.mobility(q[0]).dof)
print(f"crank torque: {torque.min():.1f} to {torque.max():.1f} N m")

# %%
figure = Figure(figsize=(8, 3), layout="constrained")
axes = figure.subplots()
axes.plot(np.degrees(turns), np.concatenate([joints, pin], axis=1), label=["crank", "coupler", "rocker", "cut pin"])
axes.set(title="Bearing forces of a four-bar linkage", xlabel="crank angle (degrees)", ylabel="force (N)")
axes.legend()
axes.grid(alpha=0.3)
figure

# %% [markdown]
# ## A slider-crank through its dead points
#
# At a dead point, the piston velocity does not determine the crank velocity, so the simulation switches to other
# independent coordinates. The crank starts at 60 rad/s and is not driven.

# %%
engine = torsor.library.slider_crank()
start = engine.closed.assemble([0.5])
run = torsor.simulate(engine, start, engine.closed.velocities(start, [60.0]), duration=0.3, step=2e-4)
drift, gap = np.ptp(run.energy) / run.energy[0], np.abs(run.closure_error).max()
print(f"relative energy drift {drift:.0e}, loop closure error {gap:.0e} m")

# %% [markdown]
# ## A Gough-Stewart platform
#
# `ParallelRobot` computes the dynamics leg by leg, which is several times faster than the general method for closed
# loops. Here, it oscillates along x.

# %%
platform = torsor.library.gough_stewart()
t = np.linspace(0.0, 1.0, 201)
pose = np.tile(platform.home, (201, 1))  # x, y, z and a quaternion
pose[:, 0] += 0.1 * np.cos(6 * t)
twist, acceleration = np.zeros((2, 201, 6))
twist[:, 3], acceleration[:, 3] = -0.6 * np.sin(6 * t), -3.6 * np.cos(6 * t)
forces = platform.inverse_dynamics(pose, twist, acceleration)
print("leg forces:", forces.shape, f"{forces.min():.0f} to {forces.max():.0f} N")
driven = [platform.position_names.index(name) for name in platform.driven_names]
lengths = platform.inverse_kinematics(pose)[:, driven]
print(f"largest stroke of a leg: {np.ptp(lengths, axis=0).max():.3f} m")
